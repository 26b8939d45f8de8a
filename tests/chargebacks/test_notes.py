"""Notes of the gateway on cases and alerts: kept in English, told in the reader's language."""

from __future__ import annotations

import pytest
from django.utils import translation

from chargebacks import notes

VALUES = {"due": "2033-05-06 17:00 (UTC)", "recovered": "30.00 EUR", "amount": "92.00", "code": "800.100.152"}


def test_every_note_is_one_that_is_translated() -> None:
    assert sorted(text for name, text in vars(notes).items() if name.endswith("_NOTE")) == sorted(notes.NOTES)


@pytest.mark.parametrize("language", ["de", "fr"])
@pytest.mark.parametrize("note", notes.NOTES)
def test_a_note_is_told_in_the_readers_language_with_its_values(note: str, language: str) -> None:
    kept = note % VALUES
    with translation.override(language):
        told = notes.translate_note(kept)
    assert told != kept
    assert "%" not in told
    assert [value in told for value in VALUES.values()] == [value in kept for value in VALUES.values()]
    with translation.override("en"):
        assert notes.translate_note(kept) == kept


@pytest.mark.parametrize("text", ["", "Refund", "we delivered", "The payment was refunded. Twice"])
def test_what_a_person_wrote_stays_as_it_is(text: str) -> None:
    with translation.override("de"):
        assert notes.translate_note(text) == text

"""The processor's words and what they mean here: every row known, every other word with a defined answer. Ruling D9."""

from __future__ import annotations

import pytest

from gateway import results
from gateway.connectors.simulator.cards import AVS_MEANING, CVV_MEANING
from gateway.connectors.stripe import table

OPERATIONS = ("RG", "PA", "DB", "RB", "CP", "RF", "RV")


@pytest.mark.parametrize("codes", [table.DECLINES, table.ERRORS, table.ON_FOLLOW_UPS, table.UNEXPLAINED])
def test_every_row_leads_to_a_code_of_the_table_that_refuses(codes: dict[object, str]) -> None:
    assert codes
    for word, code in codes.items():
        assert code in results.RESULT_CODES, word
        assert not results.is_approved(code), word
        assert not results.is_pending(code), word


def test_every_reason_of_a_dispute_is_a_reason_of_a_chargeback() -> None:
    for code in (*table.DISPUTES.values(), table.NO_REASON):
        assert code in results.RESULT_CODES
        assert results.is_chargeback(code)


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(
    ("decline", "code", "wanted"),
    [
        ("insufficient_funds", "card_declined", "800.100.155"),
        ("a_word_of_tomorrow", "card_declined", "800.100.152"),
        ("", "card_declined", "800.100.152"),
        ("", "expired_card", "100.100.303"),
        ("", "a_code_of_tomorrow", "900.100.200"),
    ],
)
def test_a_decline_has_a_defined_answer_whatever_its_word(operation: str, decline: str, code: str, wanted: str) -> None:
    assert table.decline_of(decline, code, operation) == wanted


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [("PA", "900.100.200"), ("CP", "700.400.100"), ("RF", "700.400.200"), ("RV", "700.400.300")],
)
def test_a_refusal_without_a_word_is_told_by_what_was_asked(operation: str, wanted: str) -> None:
    assert table.decline_of("", "", operation) == wanted


@pytest.mark.parametrize(
    ("line", "postcode", "wanted"),
    [
        ("pass", "pass", "F"), ("pass", "fail", "A"), ("fail", "pass", "Z"), ("fail", "fail", "N"),
        ("unavailable", "unchecked", "U"), ("", "", ""), ("pass", "", "A"), ("", "fail", "N"),
        ("pass", "unavailable", "A"), ("a_word_of_tomorrow", "", "U"),
    ],
)  # fmt: skip
def test_address_checks_become_the_letters_of_the_specification(line: str, postcode: str, wanted: str) -> None:
    """B337, result.avsResponse."""
    assert table.avs_of(line, postcode) == wanted
    assert wanted in ("", *AVS_MEANING)


def test_code_checks_become_letters_that_are_explained() -> None:
    assert set(table.CVC.values()) <= set(CVV_MEANING)

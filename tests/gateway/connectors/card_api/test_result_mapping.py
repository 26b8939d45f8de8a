"""The mapping of the processor's codes to result codes: every row, and every code that is not in the table. Ruling
D9."""

from __future__ import annotations

import pytest

from gateway.connectors.card_api import result_mapping
from gateway.connectors.simulator.cards import AVS_MEANING, CVV_MEANING
from gateway.core import result_codes
from gateway.core.result_codes import CHARGEBACK_WITHOUT_REASON

OPERATIONS = ("RG", "PA", "DB", "RB", "CP", "RF", "RV")


@pytest.mark.parametrize(
    "codes",
    [
        result_mapping.RESULT_BY_DECLINE_CODE,
        result_mapping.RESULT_BY_ERROR_CODE,
        result_mapping.RESULT_BY_FOLLOW_UP_ERROR,
        result_mapping.RESULT_BY_UNEXPLAINED_FOLLOW_UP,
    ],
)
def test_every_row_leads_to_a_code_of_the_table_that_refuses(codes: dict[object, str]) -> None:
    assert codes
    for word, code in codes.items():
        assert code in result_codes.RESULT_CODES, word
        assert not result_codes.is_approved(code), word
        assert not result_codes.is_pending(code), word


def test_every_reason_of_a_dispute_is_a_reason_of_a_chargeback() -> None:
    for code in (*result_mapping.CHARGEBACK_REASON_BY_DISPUTE.values(), CHARGEBACK_WITHOUT_REASON):
        assert code in result_codes.RESULT_CODES
        assert result_codes.is_chargeback(code)


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
    assert result_mapping.map_decline(decline, code, operation) == wanted


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [("PA", "900.100.200"), ("CP", "700.400.100"), ("RF", "700.400.200"), ("RV", "700.400.300")],
)
def test_a_refusal_without_a_word_is_told_by_what_was_asked(operation: str, wanted: str) -> None:
    assert result_mapping.map_decline("", "", operation) == wanted


@pytest.mark.parametrize(
    ("line", "postcode", "wanted"),
    [
        ("pass", "pass", "F"),
        ("pass", "fail", "A"),
        ("fail", "pass", "Z"),
        ("fail", "fail", "N"),
        ("unavailable", "unchecked", "U"),
        ("", "", ""),
        ("pass", "", "A"),
        ("", "fail", "N"),
        ("pass", "unavailable", "A"),
        ("a_word_of_tomorrow", "", "U"),
    ],
)
def test_address_checks_become_the_letters_of_the_specification(line: str, postcode: str, wanted: str) -> None:
    """B337, result.avsResponse."""
    assert result_mapping.map_address_checks(line, postcode) == wanted
    assert wanted in ("", *AVS_MEANING)


def test_code_checks_become_letters_that_are_explained() -> None:
    assert set(result_mapping.CVV_RESPONSE_BY_CHECK.values()) <= set(CVV_MEANING)

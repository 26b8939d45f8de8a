"""What an authentication's outcome means: every transStatus, every reason, every policy."""

from __future__ import annotations

import itertools

import pytest

from gateway.results import RESULT_CODES, Family, family
from gateway.threeds.verdicts import (
    BY_LACK,
    BY_REASON,
    BY_STATUS,
    CANCELLED,
    TIMED_OUT,
    Lack,
    Policy,
    Then,
    declines,
    lacking,
    verdict,
)

EXPECTED = {
    "Y": (Then.PROVED, "", "000.400.110"),
    "A": (Then.ATTEMPTED, "100.390.109", "000.400.110"),
    "I": (Then.INFORMED, "", "000.400.120"),
    "U": (Then.UNAVAILABLE, "100.390.107", "000.400.101"),
    "N": (Then.REFUSED, "100.380.401", "100.380.401"),
    "R": (Then.REFUSED, "100.390.114", "100.390.114"),
    "C": (Then.CHALLENGE, "", ""),
    "D": (Then.DECOUPLED, "", ""),
}
THREEDS_FAMILIES = {Family.REJECTED_3DS, Family.REJECTED_3DS_RISK, Family.REJECTED_EXTERNAL_RISK}


@pytest.mark.parametrize("status", EXPECTED)
def test_every_status_has_its_verdict(status: str) -> None:
    """EMV 3DS transStatus; decisions, section 3."""
    found = verdict(status)
    assert (found.then, found.payment, found.standalone) == EXPECTED[status]
    assert set(BY_STATUS) == set(EXPECTED)


def test_an_unknown_status_counts_as_unavailable() -> None:
    """A directory that speaks a newer version."""
    assert verdict("X").then is Then.UNAVAILABLE


@pytest.mark.parametrize("reason", BY_REASON)
def test_a_reason_gives_a_refusal_its_code_and_changes_no_success(reason: str) -> None:
    """EMV 3DS transStatusReason."""
    payment, standalone = BY_REASON[reason]
    for status in "NRU":
        assert (verdict(status, reason).payment, verdict(status, reason).standalone) == (payment, standalone)
        assert verdict(status, reason).then is verdict(status).then
    for status in "YAICD":
        assert verdict(status, reason) == verdict(status)
    assert {family(payment), family(standalone)} <= THREEDS_FAMILIES


@pytest.mark.parametrize("lack", Lack)
def test_no_answer_at_all_counts_as_unavailable_with_a_code_of_its_own(lack: Lack) -> None:
    """Not enrolled, not reached, not set up."""
    found = lacking(lack)
    assert (found.then, (found.payment, found.standalone)) == (Then.UNAVAILABLE, BY_LACK[lack])
    assert family(found.payment) is Family.REJECTED_3DS_RISK
    assert family(found.standalone) is Family.REJECTED_3DS


def test_every_code_is_one_of_the_table() -> None:
    """Decisions, section 3."""
    codes = {code for row in BY_STATUS.values() for code in (row.payment, row.standalone)}
    codes |= {code for pair in (*BY_REASON.values(), *BY_LACK.values()) for code in pair}
    assert (codes | {CANCELLED, TIMED_OUT}) - {""} <= set(RESULT_CODES)


@pytest.mark.parametrize(("unavailable", "attempt"), list(itertools.product(Policy, Policy)))
@pytest.mark.parametrize("then", Then)
def test_the_channels_policy_decides_what_is_not_proved(then: Then, unavailable: Policy, attempt: Policy) -> None:
    """Per-channel configuration: go on without liability shift, or decline."""
    expected = {
        Then.REFUSED: True,
        Then.UNAVAILABLE: unavailable is Policy.DECLINE,
        Then.ATTEMPTED: attempt is Policy.DECLINE,
    }.get(then, False)
    assert declines(then, on_unavailable=unavailable, on_attempt=attempt) is expected

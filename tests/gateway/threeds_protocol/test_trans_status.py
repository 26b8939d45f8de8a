"""What an authentication's outcome means: every transStatus, every reason, every policy."""

from __future__ import annotations

import itertools

import pytest

from gateway.core.result_codes import NOT_AUTHENTICATED_CODE, RESULT_CODES, ResultFamily, find_result_family
from gateway.threeds_protocol.trans_status import (
    CHALLENGE_CANCELLED,
    CODES_BY_MISSING_AUTHENTICATION,
    CODES_BY_TRANS_STATUS_REASON,
    VERDICT_BY_TRANS_STATUS,
    AuthenticationResult,
    MissingAuthentication,
    UnprovenPolicy,
    find_missing_verdict,
    find_verdict,
    is_declined_by_policy,
)

EXPECTED = {
    "Y": (AuthenticationResult.PROVED, "", "000.400.110"),
    "A": (AuthenticationResult.ATTEMPTED, "100.390.109", "000.400.110"),
    "I": (AuthenticationResult.INFORMED, "", "000.400.120"),
    "U": (AuthenticationResult.UNAVAILABLE, "100.390.107", "000.400.101"),
    "N": (AuthenticationResult.REFUSED, "100.380.401", "100.380.401"),
    "R": (AuthenticationResult.REFUSED, "100.390.114", "100.390.114"),
    "C": (AuthenticationResult.CHALLENGE, "", ""),
    "D": (AuthenticationResult.DECOUPLED, "", ""),
}
THREEDS_FAMILIES = {ResultFamily.REJECTED_3DS, ResultFamily.REJECTED_3DS_RISK, ResultFamily.REJECTED_EXTERNAL_RISK}


@pytest.mark.parametrize("status", EXPECTED)
def test_every_status_has_its_verdict(status: str) -> None:
    """EMV 3DS transStatus; decisions, section 3."""
    found = find_verdict(status)
    assert (found.then, found.payment, found.standalone) == EXPECTED[status]
    assert set(VERDICT_BY_TRANS_STATUS) == set(EXPECTED)


def test_an_unknown_status_counts_as_unavailable() -> None:
    """A directory that speaks a newer version."""
    assert find_verdict("X").then is AuthenticationResult.UNAVAILABLE


@pytest.mark.parametrize("reason", CODES_BY_TRANS_STATUS_REASON)
def test_a_reason_gives_a_refusal_its_code_and_changes_no_success(reason: str) -> None:
    """EMV 3DS transStatusReason."""
    payment, standalone = CODES_BY_TRANS_STATUS_REASON[reason]
    for status in "NRU":
        assert (find_verdict(status, reason).payment, find_verdict(status, reason).standalone) == (payment, standalone)
        assert find_verdict(status, reason).then is find_verdict(status).then
    for status in "YAICD":
        assert find_verdict(status, reason) == find_verdict(status)
    assert {find_result_family(payment), find_result_family(standalone)} <= THREEDS_FAMILIES


@pytest.mark.parametrize("lack", MissingAuthentication)
def test_no_answer_at_all_counts_as_unavailable_with_a_code_of_its_own(lack: MissingAuthentication) -> None:
    """Not enrolled, not reached; not set up and incomplete decline whatever the policy says."""
    found = find_missing_verdict(lack)
    refused = lack in (MissingAuthentication.NOT_SET_UP, MissingAuthentication.INCOMPLETE)
    assert (found.then, (found.payment, found.standalone)) == (
        AuthenticationResult.REFUSED if refused else AuthenticationResult.UNAVAILABLE,
        CODES_BY_MISSING_AUTHENTICATION[lack],
    )
    assert find_result_family(found.payment) is ResultFamily.REJECTED_3DS_RISK
    assert find_result_family(found.standalone) is ResultFamily.REJECTED_3DS


def test_every_code_is_one_of_the_table() -> None:
    """Decisions, section 3."""
    codes = {code for row in VERDICT_BY_TRANS_STATUS.values() for code in (row.payment, row.standalone)}
    codes |= {
        code
        for pair in (*CODES_BY_TRANS_STATUS_REASON.values(), *CODES_BY_MISSING_AUTHENTICATION.values())
        for code in pair
    }
    assert (codes | {CHALLENGE_CANCELLED, NOT_AUTHENTICATED_CODE}) - {""} <= set(RESULT_CODES)


@pytest.mark.parametrize(("unavailable", "attempt"), list(itertools.product(UnprovenPolicy, UnprovenPolicy)))
@pytest.mark.parametrize("then", AuthenticationResult)
def test_the_channels_policy_decides_what_is_not_proved(
    then: AuthenticationResult, unavailable: UnprovenPolicy, attempt: UnprovenPolicy
) -> None:
    """Per-channel configuration: go on without liability shift, or decline."""
    expected = {
        AuthenticationResult.REFUSED: True,
        AuthenticationResult.UNAVAILABLE: unavailable is UnprovenPolicy.DECLINE,
        AuthenticationResult.ATTEMPTED: attempt is UnprovenPolicy.DECLINE,
    }.get(then, False)
    assert is_declined_by_policy(then, on_unavailable=unavailable, on_attempt=attempt) is expected

"""What follows a declined run, over every code that a run can get. Source: docs/decisions/0022; EPC 173-14."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.connectors.sepa import mandates
from gateway.connectors.sepa.bank_reasons import (
    BANK_REASONS,
    UNLISTED_REASON,
    BankReason,
    MandateEffect,
    find_bank_reason,
)
from gateway.core import result_codes
from gateway.scheduling import dunning
from gateway.scheduling.models import Job

MAY_BE_PRESENTED_AGAIN = {
    "AM04": "not enough money: the one reason of the debtor's for which the rulebook has a second presentation",
    "MS03": "no reason told: stands for AM04 where banks may not tell that money is short (EPC 173-14)",
    "AM02": "above a limit, which shares its code with cards: the next run may be below it",
    "ED05": "settlement between banks failed",
    "TECH": "technical fault of a bank",
    "TM01": "after the bank's cut-off",
}


def is_retried(code: str) -> bool:
    return isinstance(dunning.decide_dunning(code, ""), dunning.DunningRetry)


@pytest.mark.parametrize("row", BANK_REASONS.values(), ids=lambda row: row.code)
def test_a_direct_debit_is_presented_again_for_reasons_that_allow_it_alone(row: BankReason) -> None:
    decision = dunning.decide_debit_dunning(row.declined, row.code)
    again = isinstance(decision, dunning.DunningRetry)
    assert again == row.may_be_presented_again == (row.code in MAY_BE_PRESENTED_AGAIN)
    assert not (again and row.mandate is not MandateEffect.NONE)


@pytest.mark.parametrize("reason", ["AC14", "MD05", "RR07", "DS01", "XXXX"])
def test_a_reason_that_is_not_listed_stops(reason: str) -> None:
    """It may be a regulation's or a mandate's: a further collection would be unauthorized, and costs a fee."""
    row = find_bank_reason(reason)
    assert row is UNLISTED_REASON
    assert dunning.decide_debit_dunning(row.declined, reason) == dunning.DunningStop(reason=Job.Reason.DO_NOT_RETRY)


def test_a_direct_debit_is_presented_again_twice_at_most() -> None:
    for row in (find_bank_reason("MS03"), UNLISTED_REASON):  # the second of a decline without any reason of a bank
        decision = dunning.decide_debit_dunning(row.declined, row.code)
        assert isinstance(decision, dunning.DunningRetry)
        delays = [dunning.get_retry_delay(decision, attempt) for attempt in (1, 2, 3)]
        assert delays == [timedelta(days=3), timedelta(days=5), None]


@pytest.mark.parametrize("code", ["900.100.600", "800.500.100"])
def test_a_direct_debit_that_was_never_presented_is_tried_again_within_the_hour(code: str) -> None:
    decision = dunning.decide_debit_dunning(code, "")
    assert isinstance(decision, dunning.DunningRetry)
    delays = [dunning.get_retry_delay(decision, attempt) for attempt in (1, 3, 4)]
    assert delays == [timedelta(hours=1), timedelta(hours=1), None]


@pytest.mark.parametrize("code", [mandates.MANDATE_LAPSED, mandates.MANDATE_ENDED])
def test_a_mandate_that_is_none_any_more_stops_the_job(code: str) -> None:
    assert not is_retried(code)


def test_every_code_of_the_table_has_a_decision() -> None:
    for code in result_codes.RESULT_CODES:
        decision = dunning.decide_dunning(code, "")
        assert isinstance(decision, dunning.DunningRetry | dunning.DunningStop), code
    assert set(dunning.DUNNING_BY_RESULT_CODE) <= set(result_codes.RESULT_CODES)

"""What may follow what, and the code that says no: one test for each cell.

Source: decisions, section 4; Part A, Basic payment (sequence, numberOfCaptures).
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from gateway.core import result_codes
from gateway.models import Status
from gateway.payments.chain_amounts import OPEN_STATUSES
from gateway.payments.operation_table import (
    INCREMENT_OPERATION,
    INDUSTRY_PRACTICE_OPERATIONS,
    LOCALLY_QUEUED_TYPES,
    OPERATIONS,
    evaluate_operation,
)
from tests.support.chains import after, chain, first

MAY_FOLLOW = {
    "PA": {"CP", "RV", "RC"},
    "DB": {"RF", "RV", "RB", "RC", "CB"},
    "CP": {"RF", "RV", "RB", "RC", "CB"},
    "RB": {"RF", "RV", "CB"},
    "RC": {"RF"},
    "CD": {"RV"},
    "CB": {"CR"},
    "CR": {"CB"},
    "RF": set(),
    "RV": set(),
}
"""Type → what may follow it: the ruling's table."""

FOLLOW_UPS = sorted(set().union(*MAY_FOLLOW.values()))
CODES = {
    # what         over its ceiling         after FINAL              no success behind it
    "CP": {"over": "700.400.100", "closed": "700.400.100", "failed": "700.400.510"},
    "RF": {"over": "700.400.200", "closed": "700.400.200", "failed": "700.400.520"},
    "RV": {"over": "700.400.300", "closed": "700.400.300", "failed": "700.400.530"},
    "CB": {"failed": "700.400.550"},
}
"""The codes that the rulings name; other cells only have to be some refusal."""
WRONG_TYPE, OTHER_CURRENCY, OPEN = "700.300.100", "700.100.500", "700.400.570"

PAIRS = [(kind, behind) for kind in FOLLOW_UPS for behind in MAY_FOLLOW]
RIGHT = [(kind, behind) for kind, behind in PAIRS if kind in MAY_FOLLOW[behind]]
WRONG = [(kind, behind) for kind, behind in PAIRS if kind not in MAY_FOLLOW[behind]]
each_right = pytest.mark.parametrize("kind, behind", RIGHT)
UNIQUE = {"CR", "CB"}


def a(kind: str, amount: str = "100.00", **values: object):  # type: ignore[no-untyped-def]
    """(chain, target): a payment of this type with what has to stand before it."""
    if kind in ("PA", "DB", "CD"):
        target = first(kind, amount, **values)
        return [target], target
    behind = {"CP": "PA", "RF": "DB", "RV": "DB", "RB": "DB", "RC": "DB", "CB": "DB", "CR": "CB"}[kind]
    members, parent = a(behind)
    target = after(parent, kind, amount, **values)
    return [*members, target], target


def code_of(kind: str, members, target, amount: str | None = "10.00", currency: str | None = "EUR") -> str:  # type: ignore[no-untyped-def]
    asked = Decimal(amount) if amount is not None else None
    return evaluate_operation(OPERATIONS[kind], chain(*members), target, asked, currency).code


def test_every_type_of_the_ruling_is_an_operation() -> None:
    """Decisions, section 4."""
    assert set(FOLLOW_UPS) == {code for code, operation in OPERATIONS.items() if operation.follows}
    assert {"PA", "DB", "CD"} == {code for code, operation in OPERATIONS.items() if not operation.follows}


@each_right
def test_what_may_follow_may_follow(kind: str, behind: str) -> None:
    """Decisions, section 4."""
    members, target = a(behind)
    amount = "100.00" if kind in UNIQUE else "10.00"
    assert code_of(kind, members, target, amount) == ""


@pytest.mark.parametrize("kind, behind", WRONG)
def test_what_may_not_follow_is_refused(kind: str, behind: str) -> None:
    """Decisions, section 4: 700.300.100."""
    members, target = a(behind)
    code = code_of(kind, members, target)
    assert code == WRONG_TYPE if kind in ("CP", "RF", "RV") else _is_a_refusal(code)


@each_right
@pytest.mark.parametrize("status", [Status.STARTED, Status.PENDING, Status.IN_DOUBT])
def test_nothing_follows_a_payment_that_is_undecided(kind: str, behind: str, status: Status) -> None:
    """House: a lost answer is a state, and nobody builds on it."""
    members, target = a(behind, status=status)
    code = code_of(kind, members, target)
    assert code == OPEN if kind in CODES else _is_a_refusal(code)


@each_right
def test_nothing_follows_a_payment_that_failed(kind: str, behind: str) -> None:
    """Decisions, section 4: no successful payment behind it."""
    members, target = a(behind, status=Status.DECLINED)
    code = code_of(kind, members, target)
    assert code == CODES[kind]["failed"] if kind in CODES else _is_a_refusal(code)


@each_right
def test_the_currency_is_that_of_the_chain(kind: str, behind: str) -> None:
    """D2; decisions, section 4: other currency."""
    members, target = a(behind)
    assert code_of(kind, members, target, currency="USD") == OTHER_CURRENCY
    assert code_of(kind, members, target, amount="100.00", currency=None) == ""


@pytest.mark.parametrize("kind, behind", [pair for pair in RIGHT if pair[0] in ("CP", "RF", "RV", "CB", "CR")])
def test_more_than_there_is_is_refused(kind: str, behind: str) -> None:
    """Decisions, section 4: over-capture, over-refund, wrong reversal."""
    members, target = a(behind)
    code = code_of(kind, members, target, "100.01")
    assert code == CODES.get(kind, {}).get("over", code)
    assert _is_a_refusal(code)
    assert code_of(kind, members, target, "100.00") == ""


@pytest.mark.parametrize("kind, behind", [pair for pair in RIGHT if pair[0] in ("CP", "RF", "RV")])
@pytest.mark.parametrize("status", list(Status))
def test_what_counts_against_a_ceiling_is_all_that_may_still_move_money(kind: str, behind: str, status: Status) -> None:
    """House: STARTED, PENDING, IN_DOUBT and APPROVED follow-ups count; a declined one gives its amount back."""
    members, target = a(behind)
    earlier = after(target, kind, "60.00", status=status)
    expected = "" if status == Status.DECLINED else CODES[kind]["over"]
    waits = kind == "RV" and status in OPEN_STATUSES  # one reversal at a time: docs/decisions/0068
    assert code_of(kind, [*members, earlier], target, "40.01") == expected
    assert code_of(kind, [*members, earlier], target, "40.00") == (OPEN if waits else "")


@pytest.mark.parametrize("kind, behind", [pair for pair in RIGHT if pair[0] in ("CP", "RF", "RV")])
def test_nothing_follows_what_a_final_follow_up_ended(kind: str, behind: str) -> None:
    """A13.15: sequence=FINAL."""
    members, target = a(behind)
    ending = "CP" if behind == "PA" else "RV" if behind == "CD" else "RF"
    closing = after(target, ending, "10.00", final=True)
    assert code_of(kind, [*members, closing], target, "1.00") == CODES[kind]["closed"]
    refused = after(target, ending, "10.00", final=True, status=Status.DECLINED)
    assert code_of(kind, [*members, refused], target, "1.00") == ""


@pytest.mark.parametrize("behind", ["PA", "DB", "CP", "RB", "CD"])
def test_a_reversal_without_an_amount_takes_all_that_remains(behind: str) -> None:
    """D2."""
    members, target = a(behind)
    if behind == "PA":
        members.append(after(target, "CP", "30.00"))
    elif behind != "CD":
        members.append(after(target, "RF", "30.00"))
    decision = evaluate_operation(OPERATIONS["RV"], chain(*members), target, None, None)
    assert (decision.code, decision.amount) == ("", Decimal("100.00" if behind == "CD" else "70.00"))


@pytest.mark.parametrize("kind", ["CP", "RF", "RV"])
def test_an_amount_of_zero_moves_nothing(kind: str) -> None:
    """D27."""
    members, target = a("PA" if kind == "CP" else "DB")
    assert code_of(kind, members, target, "0.00") == CODES[kind]["over"]


@pytest.mark.parametrize("kind, behind", RIGHT)
def test_every_refusal_has_a_code_of_the_table(kind: str, behind: str) -> None:
    """D9."""
    operation = OPERATIONS[kind]
    assert operation.unknown in result_codes.RESULT_CODES
    for name in ("unknown", "failed", "exceeded", "closed", "disputed", "second_chargeback", "wrong_type", "not_final"):
        code = getattr(operation, name, "")
        assert code == "" or _is_a_refusal(code), name


def test_unknown_payments_have_the_codes_that_clients_match() -> None:
    """D11; decisions, section 3."""
    assert {kind: OPERATIONS[kind].unknown for kind in ("CP", "RF", "RV")} == {
        "CP": "700.400.510",
        "RF": "600.200.500",
        "RV": "700.400.530",
    }


def test_a_captured_authorization_is_reversed_for_what_is_left_only() -> None:
    """Decisions, section 4."""
    authorization = first("PA")
    captured = [authorization, after(authorization, "CP", "60.00")]
    assert code_of("RV", captured, authorization, "40.01") == "700.400.300"
    assert code_of("RV", captured, authorization, "40.00") == ""
    everything = [authorization, after(authorization, "CP", "100.00")]
    assert code_of("RV", everything, authorization, None) == "700.400.300"


def test_a_reversed_payment_is_not_refunded_too() -> None:
    """Decisions, section 4: money goes back once."""
    debit = first("DB")
    reversed_ = [debit, after(debit, "RV", "100.00")]
    assert code_of("RF", reversed_, debit, "0.01") == "700.400.200"
    assert code_of("RV", reversed_, debit, None) == "700.400.300"


def test_number_of_captures_bounds_the_captures() -> None:
    """A13.16."""
    authorization = first("PA", max_captures=2)
    one, two = after(authorization, "CP", "10.00"), after(authorization, "CP", "10.00")
    assert code_of("CP", [authorization, one], authorization) == ""
    assert code_of("CP", [authorization, one, two], authorization) == "700.400.100"
    declined = after(authorization, "CP", "10.00", status=Status.DECLINED)
    assert code_of("CP", [authorization, one, declined], authorization) == ""


def _is_a_refusal(code: str) -> bool:
    return (
        code in result_codes.RESULT_CODES and not result_codes.is_approved(code) and not result_codes.is_pending(code)
    )


@pytest.mark.parametrize("status", sorted([*OPEN_STATUSES, Status.APPROVED]))
@pytest.mark.parametrize("practice", INDUSTRY_PRACTICE_OPERATIONS)
def test_while_a_reversal_is_on_its_way_an_authorization_is_captured_and_not_raised(
    practice: str, status: Status
) -> None:
    """It says how much is left, and could undo what was raised after it."""
    held = first("PA", "100.00", number=1)
    whole = chain(held, after(held, "RV", "30.00", status=status, number=2))
    raised = evaluate_operation(INDUSTRY_PRACTICE_OPERATIONS[practice], whole, held, Decimal("10.00"), "EUR")
    captured = evaluate_operation(OPERATIONS["CP"], whole, held, Decimal("10.00"), "EUR")
    assert (raised.code, captured.code) == ("" if status == Status.APPROVED else INCREMENT_OPERATION.not_final, "")


@pytest.mark.parametrize(
    ("kind", "status", "settled", "code"),
    [
        ("DB", Status.APPROVED, True, "700.300.700"),
        ("DB", Status.APPROVED, False, ""),
        ("PA", Status.APPROVED, True, ""),
        ("DB", Status.PENDING, True, ""),
        ("DB", Status.PENDING, False, ""),
    ],
)
def test_a_debit_that_was_settled_is_not_reversed_and_one_that_waits_here_is_withdrawn(
    kind: str, status: Status, settled: bool, code: str
) -> None:
    [queueing] = [connector for connector, types in LOCALLY_QUEUED_TYPES.items() if "DB" in types]
    target = first(kind, status=status, connector=queueing)
    found = evaluate_operation(OPERATIONS["RV"], chain(target), target, Decimal("100.00"), "EUR", settled=settled)
    assert found.code == code


@pytest.mark.parametrize(
    ("disputed", "amount", "code"),
    [
        (None, "900.00", ""),
        ("60.00", "40.00", ""),
        ("60.00", "40.01", "700.300.600"),
        ("100.00", "0.01", "700.300.600"),
    ],
)
def test_a_rebill_is_of_what_no_chargeback_took(disputed: str | None, amount: str, code: str) -> None:
    """It has no ceiling but where a chargeback stands."""
    members, target = a("DB")
    taken = [after(target, "CB", disputed)] if disputed else []
    assert code_of("RB", [*members, *taken], target, amount) == code

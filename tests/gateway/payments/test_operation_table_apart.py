"""Each condition of the operation table by itself, at its border: what is withdrawn, raised, renewed and disputed, and
what waits for a final result. No database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from gateway.models import Payment
from gateway.payments.operation_table import (
    BATCH_AFTER_END_TEXT,
    FINAL_AMOUNT_TEXT,
    FINAL_CREDIT_TEXT,
    INCREMENT_OPERATION,
    INDUSTRY_PRACTICE_OPERATIONS,
    LATE_REAUTHORIZATION_OPERATION,
    OPERATIONS,
    REAUTHORIZATION_OPERATION,
    RELEASE_OPERATION,
    FollowUpDecision,
    PaymentOperation,
    evaluate_operation,
    find_refusal_text,
    is_locally_queued,
)
from tests.support.chains import after, chain, first

END = datetime(2033, 5, 6, 7, tzinfo=UTC)
SECOND = timedelta(seconds=1)
OPEN, DISPUTED, LATE = "700.400.570", "700.300.600", "700.300.400"
BY_NAME: dict[str, PaymentOperation] = {
    **{kind: OPERATIONS[kind] for kind in OPERATIONS},
    "raise": INCREMENT_OPERATION,
    "renew": REAUTHORIZATION_OPERATION,
    "renew late": LATE_REAUTHORIZATION_OPERATION,
    "release": RELEASE_OPERATION,
}


def decide(
    name: str, members: list[Payment], amount: str | None = "10.00", *, of: int = 0, currency: str = "EUR", **more: Any
) -> FollowUpDecision:
    """``of``: which of the members it follows."""
    asked = Decimal(amount) if amount is not None else None
    return evaluate_operation(BY_NAME[name], chain(*members), members[of], asked, currency, **more)


# --- increments, renewals and releases --------------------------------------------------------------------------------


def test_an_authorization_is_raised_and_renewed_by_its_industry_practice() -> None:
    assert dict(INDUSTRY_PRACTICE_OPERATIONS) == {
        "INCREMENTAL_AUTH": INCREMENT_OPERATION, "REAUTHORIZATION": REAUTHORIZATION_OPERATION,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["raise", "renew", "renew late", "release"])
@pytest.mark.parametrize("kind", ["PA", "DB", "CD"])
def test_only_an_authorization_is_raised_renewed_and_released(name: str, kind: str) -> None:
    assert decide(name, [first(kind)]).code == ("" if kind == "PA" else "700.300.100")


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("raise", ("700.400.510", "700.400.510", "700.400.100", "700.400.510")),
        ("renew", ("700.400.510", "700.400.510", "700.400.100", "700.400.100")),
        ("renew late", ("700.400.510", "700.400.510", "700.400.100", "700.400.100")),
        ("release", ("700.400.530", "700.400.530", "", "700.400.300")),
    ],
)
def test_what_is_no_authorization_any_more_is_refused_by_its_own_code(name: str, codes: tuple[str, ...]) -> None:
    """Unknown, declined, ended by a FINAL capture, captured in full."""
    held, gone = first("PA"), first("PA", status="DECLINED")
    ended, all_of_it = after(held, "CP", "10.00", final=True), after(held, "CP", "100.00")
    assert BY_NAME[name].unknown == codes[0]
    found = [decide(name, members).code for members in ([gone], [held, ended], [held, all_of_it])]
    assert found == list(codes[1:])


@pytest.mark.parametrize("name", ["raise", "renew", "renew late", "release"])
def test_it_needs_the_card_where_the_issuer_is_asked_anew(name: str) -> None:
    operation = BY_NAME[name]
    assert (operation.needs_card, operation.raises) == (name != "release", name == "raise")
    assert operation.code == ("RV" if name == "release" else "PA")
    assert operation.title


@pytest.mark.parametrize(("amount", "code"), [("70.00", ""), ("70.01", "700.400.100"), ("0.00", "700.400.100")])
def test_a_renewal_is_of_what_is_left_at_most(amount: str, code: str) -> None:
    held = first("PA")
    assert decide("renew", [held, after(held, "CP", "30.00")], amount).code == code


@pytest.mark.parametrize(("amount", "code"), [("70.00", ""), ("70.01", "700.400.300")])
def test_a_release_is_of_what_a_final_capture_left(amount: str, code: str) -> None:
    held = first("PA")
    assert decide("release", [held, after(held, "CP", "30.00", final=True)], amount).code == code


def test_a_raise_has_no_ceiling() -> None:
    assert decide("raise", [first("PA", "0.01")], "9999.99") == FollowUpDecision(amount=Decimal("9999.99"))


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [
        ("raise", "FINAL", "700.300.100"),
        ("raise", "ESTIMATED", ""),
        ("raise", "", ""),
        ("renew", "FINAL", ""),
        ("CP", "FINAL", ""),
    ],
)
def test_only_an_estimated_amount_is_raised(name: str, kind: str, code: str) -> None:
    assert decide(name, [first("PA", authorization_kind=kind)]).code == code


def test_an_increment_of_a_final_authorization_is_not_raised_either() -> None:
    """The chain's first authorization says what it is."""
    held = first("PA", authorization_kind="FINAL")
    renewed = after(held, "PA", practice="REAUTHORIZATION", authorization_kind="")
    assert decide("raise", [held, renewed], of=1).code == "700.300.100"


# --- what waits here, and what has no result --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "connector", "queued"),
    [
        ("DB", "sepa", True), ("RB", "sepa", True), ("CD", "sepa", True), ("RF", "sepa", True), ("CP", "sepa", False),
        ("PA", "sepa", False), ("CP", "iso8583", True), ("DB", "iso8583", False), ("DB", "simulator", False),
    ],
)  # fmt: skip
def test_what_is_sent_in_a_file_or_batch_waits_here(kind: str, connector: str, queued: bool) -> None:
    assert is_locally_queued(Payment(payment_type=kind, connector=connector)) is queued


@pytest.mark.parametrize(
    ("name", "kind", "status", "connector", "code"),
    [
        ("RV", "DB", "PENDING", "sepa", ""),
        ("RV", "DB", "PENDING", "simulator", OPEN),
        ("RV", "DB", "STARTED", "sepa", OPEN),
        ("RV", "DB", "IN_DOUBT", "sepa", OPEN),
        ("RV", "DB", "DECLINED", "sepa", "700.400.530"),
        ("RF", "DB", "PENDING", "sepa", OPEN),
        ("RB", "DB", "PENDING", "sepa", OPEN),
        ("RV", "PA", "PENDING", "iso8583", OPEN),
        ("RV", "DB", "APPROVED", "simulator", ""),
    ],
)
def test_only_the_reversal_of_what_waits_here_withdraws_it(
    name: str, kind: str, status: str, connector: str, code: str
) -> None:
    assert decide(name, [first(kind, status=status, connector=connector)]).code == code


@pytest.mark.parametrize("practice", ["INCREMENTAL_AUTH", "REAUTHORIZATION"])
@pytest.mark.parametrize("status", ["STARTED", "PENDING", "IN_DOUBT", "APPROVED", "DECLINED"])
@pytest.mark.parametrize(
    ("name", "final", "waits_for"),
    [
        ("CP", False, {"REAUTHORIZATION"}),
        ("CP", True, {"REAUTHORIZATION", "INCREMENTAL_AUTH"}),
        ("RV", False, {"REAUTHORIZATION", "INCREMENTAL_AUTH"}),
        ("RC", False, set()),
        ("RC", True, {"REAUTHORIZATION", "INCREMENTAL_AUTH"}),
        ("renew", False, set()),
    ],
)
def test_what_changes_a_hold_waits_for_what_raises_or_renews_it(
    practice: str, status: str, name: str, final: bool, waits_for: set[str]
) -> None:
    held = first("PA", number=1)
    members = [held, after(held, "PA", "10.00", practice=practice, status=status, number=2)]
    waits = practice in waits_for and status not in ("APPROVED", "DECLINED")
    assert decide(name, members, final=final) == FollowUpDecision(amount=Decimal(10), code=OPEN if waits else "")


@pytest.mark.parametrize(("name", "final"), [("RV", False), ("RF", True), ("RF", False)])
def test_what_follows_a_capture_does_not_wait_for_an_increment(name: str, final: bool) -> None:
    held = first("PA", number=1)
    members = [
        held, after(held, "CP", "50.00"),
        after(held, "PA", "10.00", practice="INCREMENTAL_AUTH", status="PENDING", number=2),
    ]  # fmt: skip
    assert decide(name, members, of=1, final=final).code == ""


@pytest.mark.parametrize(
    ("name", "kind", "code"), [("RV", "DB", OPEN), ("RF", "DB", ""), ("RV", "PA", OPEN), ("CP", "PA", "")]
)
def test_a_reversal_waits_for_the_one_before_it(name: str, kind: str, code: str) -> None:
    paid = first(kind)
    assert decide(name, [paid, after(paid, "RV", "10.00", status="PENDING")]).code == code


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "late"), [(END - SECOND, False), (END, True), (END + SECOND, True), (None, False)], ids=str
)
@pytest.mark.parametrize(
    ("name", "code"), [("CP", LATE), ("RC", LATE), ("raise", LATE), ("renew", LATE), ("renew late", ""), ("RV", "")]
)
def test_an_authorization_ends_for_what_takes_of_it(name: str, code: str, at: datetime | None, late: bool) -> None:
    held = [first("PA", expires_at=END)]
    assert decide(name, held, at=at).code == (code if late else "")
    assert decide(name, held, at=at, reported=True).code == ""


def test_what_was_captured_in_time_is_received_later() -> None:
    held = first("PA", expires_at=END)
    assert decide("RC", [held, after(held, "CP", "50.00")], of=1, at=END).code == ""


@pytest.mark.parametrize(
    ("name", "kind", "code"),
    [("RV", "DB", "700.300.700"), ("RV", "CD", "700.300.700"), ("RV", "PA", ""), ("RF", "DB", ""), ("CB", "DB", "")],
)
def test_what_was_settled_is_only_not_reversed(name: str, kind: str, code: str) -> None:
    assert decide(name, [first(kind)], settled=True).code == code
    assert decide(name, [first(kind)]).code == ""


# --- numbers of captures, and the order of refusals -------------------------------------------------------------------


@pytest.mark.parametrize(("most", "code"), [(0, "700.400.100"), (1, "700.400.100"), (2, ""), (None, "")])
def test_captures_are_as_many_as_were_said(most: int | None, code: str) -> None:
    held = first("PA", max_captures=most)
    members = [held, after(held, "CP", "10.00")]
    assert decide("CP", members).code == code
    assert decide("RC", members).code == "", "a receipt is none"


@pytest.mark.parametrize(("name", "code"), [("raise", "700.400.510"), ("renew", "700.400.100")])
def test_what_was_captured_as_often_as_was_said_is_neither_raised_nor_renewed(name: str, code: str) -> None:
    held = first("PA", max_captures=1)
    assert decide(name, [held, after(held, "CP", "10.00")]).code == code


def test_the_first_reason_is_told() -> None:
    """From what is wrong with the payment to what is wrong with the amount."""
    wrong: dict[str, Any] = {"status": "PENDING", "connector": "simulator"}
    assert decide("CP", [first("DB", **wrong)], "999.00", currency="USD").code == "700.300.100"
    assert decide("CP", [first("PA", **wrong)], "999.00", currency="USD").code == OPEN
    assert decide("CP", [first("PA", status="DECLINED")], "999.00", currency="USD").code == "700.400.510"
    held = first("PA", expires_at=END)
    ended = [held, after(held, "CP", "10.00", final=True)]
    assert decide("CP", ended, "999.00", currency="USD", at=END).code == "700.100.500"
    assert decide("CP", ended, "999.00", at=END).code == "700.400.100"
    assert decide("CP", [held], "999.00", at=END).code == LATE


@pytest.mark.parametrize(("amount", "told"), [("12.00", "12.00"), (None, "0")])
def test_a_refusal_names_what_was_asked_for(amount: str | None, told: str) -> None:
    assert decide("RF", [first("PA")], amount) == FollowUpDecision(amount=Decimal(told), code="700.300.100")


# --- amounts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["RF", "RV"])
@pytest.mark.parametrize(
    ("amount", "code"),
    [("40.00", ""), ("40.01", DISPUTED), ("100.00", DISPUTED), ("100.01", "above"), ("0.00", DISPUTED)],
)
def test_only_the_disputed_part_of_a_payment_is_blocked_by_its_chargeback(name: str, amount: str, code: str) -> None:
    paid = first("DB")
    above = "700.400.200" if name == "RF" else "700.400.300"
    found = decide(name, [paid, after(paid, "CB", "60.00")], amount)
    assert found == FollowUpDecision(amount=Decimal(amount), code=above if code == "above" else code)


@pytest.mark.parametrize(("name", "code"), [("CB", "700.400.400"), ("RC", "700.100.300")])
def test_a_chargeback_is_not_named_where_it_blocks_nothing(name: str, code: str) -> None:
    paid = first("DB")
    assert decide(name, [paid, after(paid, "CB", "60.00")], "40.01").code == code


@pytest.mark.parametrize(
    ("name", "kind", "amount", "found"),
    [
        ("RV", "DB", None, ("70.00", "")),
        ("RF", "DB", None, ("0", "700.400.200")),
        ("RV", "DB", "0.00", ("0.00", "700.400.300")),
        ("RV", "DB", "-1.00", ("-1.00", "700.400.300")),
        ("RV", "DB", "0.01", ("0.01", "")),
    ],
)
def test_only_a_reversal_takes_all_that_remains(name: str, kind: str, amount: str | None, found: Any) -> None:
    paid = first(kind)
    decision = decide(name, [paid, after(paid, "RF", "30.00")], amount)
    assert (decision.amount, decision.code) == (Decimal(found[0]), found[1])


def test_of_what_was_returned_above_its_amount_nothing_remains() -> None:
    paid = first("DB")
    members = [paid, after(paid, "RF", "100.00"), after(paid, "CB", "30.00")]
    assert decide("RV", members, None) == FollowUpDecision(amount=Decimal(0), code=DISPUTED)


@pytest.mark.parametrize(
    ("amount", "reported", "code"),
    [
        ("100.00", True, ""),
        ("250.00", True, ""),
        ("0.01", True, ""),
        ("0.00", True, "700.400.400"),
        ("100.00", False, "700.400.400"),
        ("70.00", False, ""),
    ],
)
def test_a_chargeback_that_is_reported_has_no_ceiling(amount: str, reported: bool, code: str) -> None:
    paid = first("DB")
    found = decide("CB", [paid, after(paid, "RF", "30.00")], amount, reported=reported)
    assert found == FollowUpDecision(amount=Decimal(amount), code=code)


def test_what_chargebacks_took_whole_is_not_charged_back_again() -> None:
    paid = first("DB")
    assert decide("CB", [paid, after(paid, "CB", "100.00")], reported=True).code == "700.400.400"
    assert decide("CB", [paid, after(paid, "CB", "99.99")], reported=True).code == ""


@pytest.mark.parametrize("reported", [True, False])
def test_other_reports_have_their_ceiling(reported: bool) -> None:
    paid = first("DB")
    assert decide("RF", [paid], "100.01", reported=reported).code == "700.400.200"
    dispute = [paid, after(paid, "CB", "60.00")]
    assert decide("CR", dispute, "60.01", of=1, reported=reported).code == "700.400.410"
    assert decide("CR", dispute, "60.00", of=1, reported=reported).code == ""


@pytest.mark.parametrize("reported", [True, False])
def test_a_second_chargeback_is_final_unless_its_acquirer_reports_otherwise(reported: bool) -> None:
    paid = first("DB")
    dispute = after(paid, "CB")
    won = after(dispute, "CR")
    members = [paid, dispute, won, after(won, "CB")]
    assert decide("CR", members, of=3, reported=reported).code == ("" if reported else "700.400.411")
    assert decide("CR", members[:2], of=1, reported=reported).code == ""


@pytest.mark.parametrize("referenced", [None, first("DB").id])
def test_a_chargeback_of_what_is_not_in_its_chain_is_no_second_one(referenced: Any) -> None:
    alone = first("CB")
    alone.referenced = referenced
    assert decide("CR", [alone]).code == ""


@pytest.mark.parametrize(("kind", "code"), [("DB", "700.300.100"), ("CB", "")])
def test_a_reversal_of_a_chargeback_has_a_code_of_its_own(kind: str, code: str) -> None:
    """What it may not follow is unknown to it."""
    paid = first("DB")
    members = [paid, after(paid, "CB")]
    assert decide("CR", members, of=0 if kind == "DB" else 1).code == ("700.400.420" if code else "")
    assert decide("CR", [paid, after(paid, "CB", status="DECLINED")], of=1).code == "700.400.420"


# --- what is told -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code", "kind", "text"),
    [
        ("raise", "700.300.100", "PA", FINAL_AMOUNT_TEXT),
        ("raise", "700.300.100", "DB", ""),
        ("raise", "700.400.510", "PA", ""),
        ("renew", "700.300.100", "PA", ""),
        ("RV", "700.300.700", "CD", FINAL_CREDIT_TEXT),
        ("RV", "700.300.700", "DB", "It is settled, or its acquirer has cleared the day: refund it (paymentType=RF)."),
        ("RV", "700.400.300", "CD", ""),
        ("CP", LATE, "PA", "The authorization has expired: authorize anew."),
        ("CP", "", "PA", ""),
    ],
)
def test_a_refusal_says_what_to_send_instead(name: str, code: str, kind: str, text: str) -> None:
    assert find_refusal_text(BY_NAME[name], code, Payment(payment_type=kind)) == text


def test_a_batch_after_the_end_is_told_to_the_minute() -> None:
    assert "2033-05-06 07:00 UTC" in BATCH_AFTER_END_TEXT.format(at=END)


@pytest.mark.parametrize(
    ("name", "needs_card", "test_only", "takes_remainder"),
    [
        ("CP", False, False, False),
        ("RF", False, False, False),
        ("RV", False, False, True),
        ("RB", True, False, False),
        ("RC", False, False, False),
        ("CB", False, True, False),
        ("CR", False, True, False),
    ],
)
def test_what_an_operation_needs(name: str, needs_card: bool, test_only: bool, takes_remainder: bool) -> None:
    operation = BY_NAME[name]
    assert (operation.needs_card, operation.test_only, operation.takes_remainder) == (
        needs_card, test_only, takes_remainder,
    )  # fmt: skip

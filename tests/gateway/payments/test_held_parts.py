"""When an approval in part is held, what is kept of it, and what it becomes. docs/decisions/0129."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.port import AcquirerReply
from gateway.core.money import Money
from gateway.models import Payment, Status, Suspension
from gateway.payments import held_parts
from gateway.payments.outcomes import Approved, Declined, OutcomeUnknown, Suspended
from gateway.payments.payment_request import PartCollection
from gateway.payments.states import PaymentTransitionError
from gateway.payments.stored_answer import HeldPart, PrivateFacts, read_held_part, read_private_facts
from tests.support.client import Api

AT = datetime(2035, 11, 15, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PART = HeldPart(amount="46.00", granted_at=(AT - 10 * MINUTE).isoformat(), code="000.100.112", trace_number=77)
HELD = PrivateFacts(held_part=PART).as_json()
ONE, TWO = UUID(int=1), UUID(int=2)


def collecting(until: datetime | None = AT + timedelta(days=1), **facts: Any) -> dict[str, Any]:
    """The answer of a payment that collects the rest until then."""
    return PrivateFacts(collect_until=until.isoformat() if until is not None else "", **facts).as_json()


def payment(**values: Any) -> Payment:
    """Of 92.00 EUR, at its acquirer, and collecting."""
    opened = values.pop("open", None)
    row = Payment(**{"status": "STARTED", "amount": Decimal(92), "currency": "EUR", "answer": collecting(), **values})
    row.trace_number = 5
    row._state.fields_cache["open"] = opened  # type: ignore[attr-defined]
    return row


def approved(amount: str | None = "46.00", **values: Any) -> Approved:
    granted = Money(Decimal(amount), "EUR") if amount is not None else None
    return Approved(reply=AcquirerReply(code="000.100.112", approved=granted, **values), at=AT, duration_ms=31)


# --- beginning ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("collection", "facts"),
    [
        (None, {}),
        (PartCollection(until=AT), {"collect_until": AT.isoformat(), "earlier_parts": ()}),
        (
            PartCollection(until=AT, earlier=(ONE, TWO), takes_part=False),
            {"collect_until": "", "earlier_parts": (ONE.hex, TWO.hex)},
        ),
    ],
    ids=["none", "first", "last"],
)
def test_a_payment_that_may_be_a_part_keeps_until_when_and_the_parts_before_it(
    collection: PartCollection | None, facts: dict[str, Any]
) -> None:
    assert held_parts.list_collection_facts(collection) == facts


# --- holding --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", Status.values)
@pytest.mark.parametrize("answer", [{}, HELD, collecting()], ids=["plain", "part", "collecting"])
def test_a_payment_is_held_while_it_is_pending_with_a_part(status: str, answer: dict[str, Any]) -> None:
    assert held_parts.is_held(payment(status=status, answer=answer)) is (status == "PENDING" and answer is HELD)


@pytest.mark.parametrize("status", Status.values)
@pytest.mark.parametrize("answer", [{}, HELD, collecting()], ids=["plain", "part", "collecting"])
def test_a_payment_once_held_a_part_that_holds_none_any_more_and_is_not_approved(
    status: str, answer: dict[str, Any]
) -> None:
    gave_back = answer is HELD and status not in ("PENDING", "APPROVED")
    assert held_parts.was_held(payment(status=status, answer=answer)) is gave_back
    assert held_parts.was_held(None) is False


@pytest.mark.parametrize("status", ["STARTED", "IN_DOUBT"])
@pytest.mark.parametrize("amount", ["0.01", "46.00", "91.99"])
def test_less_than_the_amount_is_held(status: str, amount: str) -> None:
    row = payment(status=status)
    held = held_parts.hold_part(row, approved(amount))
    assert isinstance(held, Suspended)
    assert (held.reply.code, held.reply.approved, held.at, held.duration_ms) == ("000.200.000", None, AT, 31)
    assert (held.stage, held.deadline) == (Suspension.Stage.PART, AT + 15 * MINUTE)
    kept = read_held_part(row.answer)
    assert kept is not None
    assert (kept.amount, kept.granted_at, kept.code, kept.trace_number) == (amount, AT.isoformat(), "000.100.112", 5)


@pytest.mark.parametrize(
    ("values", "outcome"),
    [
        ({}, approved("92.00")),
        ({}, approved("92.01")),
        ({}, approved(None)),
        ({}, Declined(reply=AcquirerReply(code="800.100.153", approved=Money(Decimal(46), "EUR")), at=AT)),
        ({"answer": {}}, approved()),
        ({"answer": PrivateFacts(whole_amount_only=True).as_json()}, approved()),
        ({"status": "DECLINED"}, approved()),
        ({"status": "PENDING", "answer": {}}, approved()),
        ({"status": "PENDING"}, approved("92.00")),
    ],
    ids=["all", "more", "no amount", "declined", "not collecting", "whole", "ended", "pending", "pending, all"],
)
def test_anything_else_is_what_it_was(values: dict[str, Any], outcome: Any) -> None:
    row = payment(**values)
    before = dict(row.answer)
    assert held_parts.hold_part(row, outcome) is outcome
    assert row.answer == before


@pytest.mark.parametrize(("until", "deadline"), [(14 * MINUTE, 14 * MINUTE), (16 * MINUTE, 15 * MINUTE)])
def test_a_part_is_held_for_a_quarter_of_an_hour_and_not_past_its_checkout(
    until: timedelta, deadline: timedelta
) -> None:
    held = held_parts.hold_part(payment(answer=collecting(AT + until)), approved())
    assert isinstance(held, Suspended)
    assert held.deadline == AT + deadline


def test_what_the_acquirer_said_of_a_part_is_kept() -> None:
    row = payment()
    outcome = approved(
        network_reference="REF", transaction_link="LINK", valid_for=timedelta(hours=1), details={"Detail": "x"}
    )
    held = held_parts.hold_part(row, outcome)
    kept, facts = read_held_part(row.answer), read_private_facts(row.answer)
    assert kept is not None
    assert (kept.network_reference, kept.valid_for_s, facts.transaction_link) == ("REF", 3600, "LINK")
    assert facts.collect_until == (AT + timedelta(days=1)).isoformat()
    assert held.reply.details["Detail"] == "x"
    assert "46.00 of 92.00 EUR; held" in held.reply.details["PartialApproval"]


@pytest.mark.parametrize(
    ("status", "opened", "number"),
    [("STARTED", 6, 5), ("IN_DOUBT", 6, 6), ("IN_DOUBT", None, 5), ("STARTED", None, 5)],
)
def test_a_reversal_will_name_the_message_that_was_sent(status: str, opened: int | None, number: int) -> None:
    """Recovery has not sent it: there its number is kept beside the payment."""
    row = payment(status=status, open=SimpleNamespace(trace_number=opened) if opened is not None else None)
    held_parts.hold_part(row, approved())
    kept = read_held_part(row.answer)
    assert kept is not None
    assert kept.trace_number == number


def test_a_late_approval_of_a_held_payment_moves_nothing() -> None:
    with pytest.raises(PaymentTransitionError):
        held_parts.hold_part(payment(status="PENDING", answer=HELD), approved())
    with pytest.raises(PaymentTransitionError):
        held_parts.hold_part(payment(status="PENDING", answer=HELD), approved("92.00"))


@pytest.mark.parametrize(
    "answer", [collecting(), PrivateFacts(whole_amount_only=True).as_json()], ids=["collecting", "whole"]
)
def test_a_part_that_was_granted_elsewhere_is_given_back(answer: dict[str, Any]) -> None:
    """A rest may be final there later than a part is held."""
    row = payment(status="PENDING", answer=answer)
    outcome = held_parts.hold_part(row, approved(transaction_link="LINK", details={"Detail": "x"}))
    assert isinstance(outcome, OutcomeUnknown)
    assert (outcome.reply.code, outcome.reply.approved, outcome.at, outcome.duration_ms) == (
        "000.200.001", None, AT, 31,
    )  # fmt: skip
    facts = read_private_facts(row.answer)
    assert (facts.whole_amount_only, facts.collect_until, facts.transaction_link) == (True, "", "LINK")
    assert facts.refused_code == "800.100.155"
    assert facts.refused_details == outcome.reply.details
    assert facts.refused_details["Detail"] == "x"
    assert "46.00 of 92.00 EUR; the approval was reversed" in facts.refused_details["PartialApproval"]


# --- ending ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("valid_for_s", "left"), [(3600, timedelta(minutes=50)), (None, None)])
def test_a_part_is_approved_as_it_was_granted_with_the_names_of_the_others(
    valid_for_s: float | None, left: timedelta | None
) -> None:
    """The acquirer counts from its own approval."""
    kept = HeldPart(
        amount="46.00",
        granted_at=(AT - 10 * MINUTE).isoformat(),
        code="000.100.112",
        network_reference="REF",
        valid_for_s=valid_for_s,
    )
    answer = {
        **PrivateFacts(held_part=kept, collect_until=AT.isoformat(), transaction_link="LINK").as_json(),
        "avs": "N", "cvv": "M", "resultDetails": {"Detail": "x", "PartialApproval": "held"},
    }  # fmt: skip
    row = payment(status="PENDING", answer=answer, connector_tx_id="TX")
    other = Payment(id=TWO, brand="MASTER", status="APPROVED", amount=Decimal(46), currency="EUR")
    outcome = held_parts.build_part_approval(row, [other], AT)
    reply = outcome.reply
    assert isinstance(outcome, Approved)
    assert (outcome.at, reply.code, reply.approved) == (AT, "000.100.112", Money(Decimal(46), "EUR"))
    assert (reply.connector_tx_id, reply.network_reference, reply.transaction_link) == ("TX", "REF", "LINK")
    assert (reply.avs, reply.cvv, reply.valid_for) == ("N", "M", left)
    assert reply.details["Detail"] == "x"
    assert reply.details["Parts"] == f"{TWO.hex} MASTER 46.00"
    assert reply.details["PartialApproval"].endswith("46.00 of 92.00 EUR; the rest was paid")
    assert read_held_part(row.answer) is None
    assert read_private_facts(row.answer).collect_until == ""


def test_a_part_is_given_back_by_the_number_of_its_message() -> None:
    row = payment(
        status="PENDING",
        answer=collecting(held_part=PART, transaction_link="LINK") | {"resultDetails": {"Detail": "x"}},
        connector_tx_id="TX",
    )
    outcome = held_parts.begin_giving_back(row, AT)
    assert (outcome.reply.code, outcome.reply.connector_tx_id, outcome.at) == ("000.200.001", "TX", AT)
    assert row.trace_number == 77
    facts = read_private_facts(row.answer)
    assert (facts.whole_amount_only, facts.collect_until, facts.held_part) == (True, "", PART)
    assert facts.refused_details["Detail"] == "x"
    assert "46.00 of 92.00 EUR" in facts.refused_details["PartialApproval"]


@pytest.mark.parametrize(
    ("values", "amount"),
    [
        ({"status": "PENDING", "answer": HELD}, "46.00"),
        ({"status": "APPROVED", "answer": HELD, "approved_amount": Decimal(45)}, "45.00"),
        ({"status": "APPROVED", "approved_amount": Decimal(0)}, "0.00"),
        ({"status": "STARTED"}, "92.00"),
    ],
    ids=str,
)
def test_the_parts_of_an_amount_are_named_with_what_each_is_of(values: dict[str, Any], amount: str) -> None:
    named = held_parts.name_parts([payment(id=ONE, brand="VISA", **values), payment(id=TWO, brand="MASTER")])
    assert named == {"Parts": f"{ONE.hex} VISA {amount}, {TWO.hex} MASTER 92.00"}


def test_a_payment_alone_names_no_parts() -> None:
    assert held_parts.name_parts([]) == {}


def test_what_is_held_together_is_the_sum_of_the_parts() -> None:
    rows = [payment(status="PENDING", answer=HELD), payment(status="PENDING", answer=HELD)]
    assert (held_parts.sum_held(rows), held_parts.sum_held([])) == (Decimal("92.00"), Decimal(0))
    assert held_parts.get_held_amount(rows[0]) == Money(Decimal(46), "EUR")


@pytest.mark.django_db
def test_the_parts_before_are_read_in_their_order(api: Api, django_assert_num_queries: Any) -> None:
    first, second, _other = (api.pay().id for _ in range(3))
    earlier = PrivateFacts(earlier_parts=(second, ONE.hex, first)).as_json()
    with django_assert_num_queries(1):
        found = held_parts.load_earlier_parts(payment(answer=earlier))
        assert [one.id.hex for one in found] == [second, first]
        assert {(one.merchant.name, one.channel.name) for one in found} == {("Shop", "Shop: main")}
    with django_assert_num_queries(0):
        assert held_parts.load_earlier_parts(payment()) == []

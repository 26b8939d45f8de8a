"""A debit is reversed until its settlement, and refunded after it. Source: rulings, section 4; docs/decisions/0069."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from gateway.backoffice.payments.follow_up_offers import list_follow_up_offers
from gateway.models import BatchedCapture, CaptureBatch, Channel, Payment, Status
from gateway.payments import reversal_border
from gateway.payments.follow_ups import load_chain
from gateway.payments.reversal_border import find_beyond_reversal, is_beyond_reversal, is_card_payout
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.settlement import csv, institute, line, payment_of, take_in

TOO_LATE = "700.300.700"
OK = "000.100.110"
HOUR = 3600
NOW = datetime(2035, 11, 15, 12, tzinfo=UTC)


def pay(shop: Shop, kind: str) -> str:
    if kind != "CP":
        return shop.api.pay(paymentType=kind).id
    return shop.api.follow(shop.api.pay(paymentType="PA").id, "CP", "92.00").id


@pytest.mark.parametrize("kind", ["DB", "CP", "CD"])
def test_a_debit_is_reversed_within_a_day(shop: Shop, kind: str) -> None:
    paid = pay(shop, kind)
    jump(23 * HOUR)
    assert shop.api.follow(paid, "RV", "10.00").code == OK
    jump(2 * HOUR)
    late = shop.api.follow(paid, "RV", "10.00")
    assert (late.status, late.code) == (400, TOO_LATE)
    words = late.body["resultDetails"]["ExtendedDescription"]
    assert ("a credit is final" if kind == "CD" else "paymentType=RF") in words


def test_a_payout_to_a_card_is_not_reversed(shop: Shop) -> None:
    """Visa's original credits and Mastercard's payment transactions are final; a funding of one is reversed."""
    sent = {"transactionBai": "AA", "transactionTti": "C07", "recipient__country": "DEU", "sender__name": "Shop"}
    simulated = shop.api.pay(paymentType="CD", transactionProcessingCode="PAYMENT", **sent).id
    assert shop.api.follow(simulated, "RV").code == OK, "no network is asked by the simulator: Part A, CD and RV"
    paid = shop.api.pay(paymentType="CD", transactionProcessingCode="PAYMENT", **sent).id
    Payment.objects.filter(pk=paid).update(connector="iso8583")
    refused = shop.api.follow(paid, "RV")
    assert (refused.status, refused.code) == (400, TOO_LATE)
    assert "pushed to a card" in refused.body["resultDetails"]["ExtendedDescription"]
    chain = load_chain(Payment.objects.get(pk=paid).id, shop.merchant, None)
    assert chain is not None
    assert "RV" not in {offer.code for offer in list_follow_up_offers(chain, chain.first)}
    pulled = shop.api.pay(transactionProcessingCode="FUNDING", **sent).id
    assert shop.api.follow(pulled, "RV").code == OK


def test_it_is_refunded_then(shop: Shop) -> None:
    paid = pay(shop, "DB")
    jump(92 * 24 * HOUR)
    assert shop.api.follow(paid, "RV").code == TOO_LATE
    assert shop.api.follow(paid, "RF", "92.00").code == OK


@pytest.mark.parametrize("hours, code", [(1, TOO_LATE), (100, OK), (0, OK)])
def test_a_channel_may_set_other_hours(shop: Shop, hours: int, code: str) -> None:
    Channel.objects.update(reversal_hours=hours)
    paid = pay(shop, "DB")
    jump(30 * HOUR)
    assert shop.api.follow(paid, "RV").code == code


def test_what_a_settlement_file_tells_of_is_not_reversed(shop: Shop) -> None:
    Channel.objects.update(reversal_hours=0)
    paid, other = pay(shop, "DB"), pay(shop, "DB")
    take_in(csv([line(payment_of(paid))]), institute())
    assert shop.api.follow(paid, "RV").code == TOO_LATE
    assert shop.api.follow(other, "RV").code == OK


def test_an_authorization_is_reversed_whenever(shop: Shop) -> None:
    held = shop.api.pay(paymentType="PA").id
    jump(5 * 24 * HOUR)
    assert shop.api.follow(held, "RV", "10.00").code == OK


def as_stored(ident: str, **changes: object) -> Payment:
    Payment.objects.filter(pk=ident).update(**changes)
    return Payment.objects.select_related("channel").get(pk=ident)


def test_the_hours_run_from_the_approval_and_the_last_moment_is_in_time(shop: Shop) -> None:
    """A payment that waited for its shopper begins to age when it is approved."""
    Channel.objects.update(reversal_hours=24)
    begun = Payment.objects.get(pk=shop.api.pay().id).created_at
    paid = as_stored(shop.api.pay().id, created_at=begun, completed_at=begun + timedelta(hours=10))
    last = begun + timedelta(hours=34)
    moments = (begun + timedelta(hours=25), last, last + timedelta(microseconds=1))
    assert [is_beyond_reversal(paid, at) for at in moments] == [False, False, True]
    undated = as_stored(paid.id.hex, completed_at=None)
    assert [is_beyond_reversal(undated, begun + timedelta(hours=hours)) for hours in (24, 25)] == [False, True]


@pytest.mark.parametrize(
    ("kind", "status", "beyond"),
    [
        ("DB", Status.APPROVED, True),
        ("CD", Status.APPROVED, True),
        ("DB", Status.PENDING, False),
        ("DB", Status.IN_DOUBT, False),
        ("DB", Status.DECLINED, False),
        ("PA", Status.APPROVED, False),
    ],
)
def test_only_what_was_approved_and_moves_money_is_ever_beyond_it(
    shop: Shop, kind: str, status: Status, beyond: bool
) -> None:
    paid = as_stored(shop.api.pay(paymentType=kind).id, status=status)
    assert is_beyond_reversal(paid, paid.created_at + timedelta(days=400)) is beyond


def test_of_captures_at_a_host_those_in_a_batch_are_beyond_it(shop: Shop) -> None:
    """Waiting for a batch, it is withdrawn; a capture elsewhere has no batch, whatever rows there are."""
    Channel.objects.update(reversal_hours=0)
    held = shop.api.pay(paymentType="PA").id
    names = {"waits": "iso8583", "sent": "iso8583", "other": "simulator"}
    paid = {name: as_stored(shop.api.follow(held, "CP", "1.00").id, connector=there) for name, there in names.items()}
    batch = CaptureBatch.objects.create(
        merchant=shop.merchant,
        channel=shop.channel,
        acquirer_merchant_id="M",
        number=1,
        currency="EUR",
        count=2,
        total=2,
        opened_at=paid["sent"].created_at,
    )
    for name, payment in paid.items():
        BatchedCapture.objects.create(
            payment=payment.pk,
            merchant=shop.merchant,
            channel=shop.channel,
            amount=payment.amount,
            currency="EUR",
            batch=None if name == "waits" else batch,
            created_at=payment.created_at,
        )
    found = find_beyond_reversal(paid.values(), paid["sent"].created_at)
    assert {name for name, payment in paid.items() if payment.pk in found} == {"sent"}


# What is asked of whom. No database.


def stored(number: int, **values: Any) -> Payment:
    row = Payment(**{
        "id": UUID(int=number), "payment_type": "DB", "status": Status.APPROVED, "connector": "simulator",
        "means": "card", "created_at": NOW, "channel": Channel(reversal_hours=0), "request": {}, "answer": {}, **values,
    })  # fmt: skip
    row.chain = row.id
    return row


PAYOUT = {"transactionProcessingCode": "PAYMENT"}


@pytest.mark.parametrize(
    ("values", "is_payout"),
    [
        ({}, True),
        ({"connector": "stripe"}, True),
        ({"means": "tokenAccount"}, True),
        ({"connector": "simulator"}, False),
        ({"connector": "sepa"}, False),
        ({"means": "bankAccount"}, False),
        ({"means": ""}, False),
        ({"payment_type": "DB"}, False),
        ({"request": {}}, False),
        ({"request": {"transactionProcessingCode": "FUNDING"}}, False),
    ],
    ids=str,
)
def test_a_credit_that_a_network_pushed_to_a_card_is_a_payout(values: dict[str, Any], is_payout: bool) -> None:
    row = stored(1, **{"payment_type": "CD", "connector": "iso8583", "request": PAYOUT, **values})
    assert is_card_payout(row) is is_payout
    asked: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reversal_border, "find_settled_payments", lambda left: (asked.append(left), set())[1])
        assert is_beyond_reversal(row, NOW) is is_payout
    assert asked == ([] if is_payout else [{row.id}])


def test_of_settlement_is_asked_what_may_still_be_reversed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Payments that are beyond it already, authorizations and what was not approved are not asked about."""
    old = {"channel": Channel(reversal_hours=1), "completed_at": NOW - timedelta(hours=2)}
    rows = [
        stored(1), stored(2), stored(3, **old), stored(4, payment_type="PA"), stored(5, status=Status.DECLINED),
        stored(6, payment_type="CD", connector="iso8583", request=PAYOUT), stored(7, payment_type="CP"),
    ]  # fmt: skip
    asked: list[set[UUID]] = []
    monkeypatch.setattr(
        reversal_border, "find_settled_payments", lambda left: (asked.append(set(left)), {UUID(int=2)})[1]
    )
    found = find_beyond_reversal(iter(rows), NOW)
    assert asked == [{UUID(int=1), UUID(int=2), UUID(int=7)}]
    assert found == {UUID(int=2), UUID(int=3), UUID(int=6)}
    assert find_beyond_reversal([], NOW) == frozenset()
    assert len(asked) == 1

"""The state of a whole payment: one table, kept by the database, whatever happened in which order.

Source: docs/decisions/0076.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chargebacks import cases, ledger
from gateway.core import clock
from gateway.db.statement import WriteStatement
from gateway.models import ChainState, Payment, Status
from gateway.payments import chain_amounts as sums
from gateway.payments import store
from gateway.payments.chain_amounts import Chain
from gateway.payments.chain_states import (
    STORED_CHAIN_STATES,
    ChainStatus,
    build_chain_status_condition,
    has_stored_state,
    mark_authorization_expired,
    resolve_chain_status,
)
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, account_at_host
from tests.support.settlement import BY, payment_of
from tests.support.threads import at_once, times

DECLINED, SILENT = "4000015500000005", "4000090003000000"


def held(shop: Shop, *captures: str, amount: str = "100.00", **more: str) -> str:
    ident = shop.api.pay(paymentType="PA", amount=amount, **more).id
    for each in captures:
        assert shop.api.follow(ident, "CP", each).status == 200
    return ident


def charged(shop: Shop, *follow_ups: tuple[str, str]) -> str:
    ident = shop.api.pay(amount="100.00").id
    for kind, amount in follow_ups:
        assert shop.api.follow(ident, kind, amount).status == 200, (kind, amount)
    return ident


def disputed(shop: Shop) -> str:
    paid = payment_of(charged(shop))
    ledger.record_chargeback(paid, Decimal("40.00"), reason="000.100.221", by=BY)
    return paid.id.hex


def lost(shop: Shop) -> str:
    paid = payment_of(charged(shop))
    cases.accept_dispute(ledger.record_chargeback(paid, Decimal("40.00"), reason="000.100.221", by=BY), BY, "")
    return paid.id.hex


def won(shop: Shop) -> str:
    paid = payment_of(charged(shop))
    case = ledger.record_chargeback(paid, Decimal("40.00"), reason="000.100.221", by=BY)
    ledger.record_chargeback_reversal(case, by=BY)
    return paid.id.hex


def expired(shop: Shop) -> str:
    ident = held(shop)
    write = WriteStatement()
    mark_authorization_expired(write, Payment.objects.get(pk=ident))
    write.run()
    return ident


def void(shop: Shop) -> str:
    ident = held(shop)
    shop.api.follow(ident, "RV", "100.00")
    return ident


def started(shop: Shop) -> str:
    ident = shop.api.pay(card__number=SILENT).id
    Payment.objects.filter(pk=ident).update(status=Status.STARTED, result_code="")
    return ident


def waiting(shop: Shop) -> str:
    ident = shop.api.pay(card__number=SILENT).id
    Payment.objects.filter(pk=ident).update(status=Status.PENDING)
    return ident


EXAMPLES: dict[ChainStatus, Callable[[Shop], str]] = {
    ChainStatus.STARTED: started,
    ChainStatus.WAITING: waiting,
    ChainStatus.IN_DOUBT: lambda shop: shop.api.pay(card__number=SILENT).id,
    ChainStatus.DECLINED: lambda shop: shop.api.pay(card__number=DECLINED).id,
    ChainStatus.RECORDED: lambda shop: shop.api.pay(paymentType="RI").id,
    ChainStatus.VERIFIED: lambda shop: held(shop, amount="0.00", createRegistration="true"),
    ChainStatus.AUTHORIZED: held,
    ChainStatus.PARTLY_CAPTURED: lambda shop: held(shop, "60.00"),
    ChainStatus.CAPTURED: lambda shop: held(shop, "60.00", "40.00"),
    ChainStatus.PARTLY_REFUNDED: lambda shop: charged(shop, ("RF", "30.00")),
    ChainStatus.REFUNDED: lambda shop: charged(shop, ("RF", "30.00"), ("RF", "70.00")),
    ChainStatus.VOIDED: void,
    ChainStatus.EXPIRED: expired,
    ChainStatus.DISPUTED: disputed,
    ChainStatus.CHARGED_BACK: lost,
    ChainStatus.WON_BACK: won,
    ChainStatus.PAID_OUT: lambda shop: shop.api.pay(paymentType="CD").id,
}


def state_of(ident: str) -> ChainStatus:
    return resolve_chain_status(Payment.objects.select_related("standing").get(pk=Payment.objects.get(pk=ident).chain))


def listed(status: ChainStatus) -> list[str]:
    return [row.id.hex for row in Payment.objects.filter(build_chain_status_condition(status))]


def test_every_state_has_an_example() -> None:
    assert set(EXAMPLES) == set(ChainStatus)
    assert set(STORED_CHAIN_STATES) < set(ChainStatus.values)
    assert {each for each in ChainStatus if has_stored_state(each)} < set(STORED_CHAIN_STATES)


@pytest.mark.django_db
@pytest.mark.parametrize("status", ChainStatus)
def test_a_chain_is_in_its_state_and_in_no_other_list(shop: Shop, status: ChainStatus) -> None:
    ident = EXAMPLES[status](shop)
    assert state_of(ident) is status
    assert [each for each in ChainStatus if ident in listed(each)] == [status]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("status", "state"),
    [
        (Status.STARTED, ChainStatus.STARTED),
        (Status.PENDING, ChainStatus.WAITING),
        (Status.IN_DOUBT, ChainStatus.IN_DOUBT),
        (Status.DECLINED, ChainStatus.DECLINED),
    ],
)
def test_a_first_payment_that_is_not_approved_any_more_is_in_its_own_state_alone(
    shop: Shop, status: Status, state: ChainStatus
) -> None:
    """Whatever the database keeps of its chain."""
    ident = held(shop)
    assert Payment.objects.filter(pk=ident).update(status=status) == 1
    ChainState.objects.update_or_create(
        chain_id=ident, defaults={"state": "authorized", "merchant": shop.merchant, "created_at": clock.real_now()}
    )
    assert state_of(ident) is state
    assert [each for each in ChainStatus if ident in listed(each)] == [state]


@pytest.mark.django_db
def test_what_follows_is_listed_under_no_state_of_its_own(shop: Shop) -> None:
    """A list of a state has the payments that chains began with."""
    ident = shop.api.pay(paymentType="RI").id
    follow_up = Payment.objects.get(pk=shop.api.follow(charged(shop), "RF", "1.00").id)
    for kind in ("PA", "DB", "CD", "RF"):
        for status in Status:
            Payment.objects.filter(pk=follow_up.pk).update(payment_type=kind, status=status)
            assert [each for each in ChainStatus if follow_up.id.hex in listed(each)] == [], (kind, status)
    assert listed(ChainStatus.RECORDED) == [ident]


def test_lists_of_these_states_are_read_along_the_databases_states() -> None:
    """Captured and paid out are also those that moved on in nothing, of which it keeps none."""
    without = {"started", "waiting", "in_doubt", "declined", "recorded", "verified", "captured", "paid_out"}
    assert {each.value for each in ChainStatus if not has_stored_state(each)} == without


@pytest.mark.django_db
def test_what_expired_of_one_chain_is_of_no_other(shop: Shop) -> None:
    ident, other = expired(shop), held(shop)
    assert dict(ChainState.objects.values_list("chain_id", "expired")) == {UUID(ident): True, UUID(other): False}


@pytest.mark.django_db
def test_what_ends_an_authorization_makes_it_captured(shop: Shop) -> None:
    """FINAL, the last of numberOfCaptures, and a reversal of the rest all leave nothing to capture."""
    final = held(shop)
    shop.api.follow(final, "CP", "60.00", sequence="FINAL")
    counted = held(shop, "60.00", numberOfCaptures="1")
    rest = held(shop, "60.00")
    shop.api.follow(rest, "RV", "40.00")
    assert [state_of(each) for each in (final, counted, rest)] == [ChainStatus.CAPTURED] * 3


@pytest.mark.django_db
def test_a_decline_moves_no_chain(shop: Shop) -> None:
    ident = charged(shop)
    assert shop.api.follow(ident, "RF", "100.01").status == 400
    assert state_of(ident) is ChainStatus.CAPTURED
    assert not ChainState.objects.exists()


def expect(chain: Chain) -> ChainStatus:
    """The state by the sums that decide about follow-ups, which are written without a look at the database's."""
    first = chain.first
    done = [member for member in chain.members if member.status == Status.APPROVED]
    paid = [member for member in done if member.payment_type in sums.DEBIT_TYPES]
    reopened = sums.sum_payment_amounts(each for each in done if each.reopens_authorization)
    back = sum((sums.compute_refunded_amount(chain, each) for each in paid), Decimal(0)) - reopened
    if sums.sum_payment_amounts(paid) == reopened:  # nothing was, or all of it is held again
        left = sums.compute_capturable_amount(chain, first)
        return ChainStatus.AUTHORIZED if left > 0 else ChainStatus.VOIDED
    if back and all(sums.compute_refundable_amount(chain, each) <= 0 for each in paid):
        return ChainStatus.REFUNDED if any(each.payment_type == "RF" for each in done) else ChainStatus.VOIDED
    if back:
        return ChainStatus.PARTLY_REFUNDED
    open_ = first.payment_type == "PA" and sums.compute_capturable_amount(chain, first) > 0
    drawn_on = open_ and chain.authorization.remaining_captures != 0
    return ChainStatus.PARTLY_CAPTURED if drawn_on else ChainStatus.CAPTURED


def follow_at_random(shop: Shop, chance: random.Random, ident: str, kinds: Sequence[str]) -> None:
    """Eight follow-ups of a chain; after each its state has to be that of the sums."""
    for _ in range(8):
        target = chance.choice(list(Payment.objects.filter(chain=ident, status=Status.APPROVED)))
        amount = f"{chance.choice([10, 25, 40, 100])}.00"
        kind, more = chance.choice(kinds), {}
        if chance.random() < 0.1:
            more["sequence"] = "FINAL"
        shop.api.follow(target.id.hex, kind, amount, **more)
        chain = Chain(list(Payment.objects.filter(chain=ident).order_by("id")))
        assert state_of(ident) is expect(chain), [str(each) for each in chain.members]


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(12))
def test_whatever_follows_the_state_is_that_of_the_sums(shop: Shop, seed: int) -> None:
    """Random chains of captures, refunds, reversals, rebills and increments."""
    chance = random.Random(seed)
    ident = shop.api.pay(paymentType=chance.choice(["PA", "DB"]), amount="100.00").id
    follow_at_random(shop, chance, ident, ["CP", "CP", "RF", "RF", "RV"])


@pytest.mark.django_db
def test_what_a_reversed_capture_gave_back_can_be_captured(shop: Shop, iso_host: IsoHost) -> None:
    """docs/decisions/0096."""
    iso_host.captures_alone = True
    account_at_host(shop.channel, iso_host, reversed_captures="alone")
    ident = held(shop, testMode="EXTERNAL")
    capture = shop.api.follow(ident, "CP", "100.00").id
    shop.api.follow(capture, "RV", "40.00")
    assert state_of(ident) is ChainStatus.PARTLY_CAPTURED
    shop.api.follow(capture, "RV", "60.00")
    assert state_of(ident) is ChainStatus.AUTHORIZED
    again = shop.api.follow(ident, "CP", "70.00").id
    assert state_of(ident) is ChainStatus.PARTLY_CAPTURED
    shop.api.follow(again, "RV", "70.00")
    shop.api.follow(ident, "RV", "100.00")
    assert state_of(ident) is ChainStatus.VOIDED


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(4))
def test_where_reversed_captures_are_held_again_the_state_is_that_of_the_sums(
    shop: Shop, iso_host: IsoHost, seed: int
) -> None:
    iso_host.captures_alone = True
    account_at_host(shop.channel, iso_host, reversed_captures="alone")
    follow_at_random(shop, random.Random(seed), held(shop, testMode="EXTERNAL"), ["CP", "CP", "RV", "RV", "RF"])


@pytest.mark.django_db(transaction=True)
def test_two_refunds_at_once_are_both_counted(committed: Shop) -> None:
    """The second to commit derives the state from both."""
    ident = charged(committed)
    at_once(*times(2, lambda: committed.api.follow(ident, "RF", "50.00")))
    refunded = Payment.objects.filter(chain=ident, payment_type="RF", status=Status.APPROVED).count()
    assert state_of(ident) is (ChainStatus.REFUNDED if refunded == 2 else ChainStatus.PARTLY_REFUNDED)


@pytest.mark.django_db
def test_a_list_of_a_state_is_read_along_an_index(shop: Shop) -> None:
    """No scan of payments, however many there are."""
    rows = Payment.objects.filter(
        build_chain_status_condition(ChainStatus.PARTLY_REFUNDED), standing__merchant=shop.merchant
    )
    rows = rows.order_by("-standing__created_at", "-standing__chain")[:51]
    with CaptureQueriesContext(connection), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        plan = rows.explain()
    assert "chain_state_merchant_time" in plan, plan
    assert "Sort" not in plan, plan


@pytest.mark.django_db
@pytest.mark.parametrize("kind", ["reversed capture that was held again", "reversed authorization"])
def test_a_reversal_that_came_back_counts_neither_in_the_state_nor_in_the_sums(
    shop: Shop, iso_host: IsoHost, kind: str
) -> None:
    iso_host.captures_alone = True
    account_at_host(shop.channel, iso_host, reversed_captures="alone")
    ident = held(shop, testMode="EXTERNAL")
    target = ident
    if kind == "reversed capture that was held again":
        target = shop.api.follow(ident, "CP", "100.00").id
    reversal = Payment.objects.get(pk=shop.api.follow(target, "RV", "100.00").id)
    assert reversal.status == Status.APPROVED
    assert reversal.reopens_authorization is (target != ident)
    before = state_of(ident)
    store.record_returned_transfer(reversal, "failed", at=clock.real_now())
    chain = Chain(list(Payment.objects.filter(chain=ident).order_by("id")))
    left = sums.compute_capturable_amount(chain, chain.first)
    if target == ident:
        assert (before, state_of(ident), left) == (ChainStatus.VOIDED, ChainStatus.AUTHORIZED, Decimal(100))
    else:
        assert (before, state_of(ident), left) == (ChainStatus.AUTHORIZED, ChainStatus.CAPTURED, Decimal(0))
        assert sums.compute_refundable_amount(chain, chain.find(UUID(target)) or chain.first) == Decimal(100)

"""What is read of the archive of payments: whose, which, and when it is not looked into at all. docs/decisions/0130."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import AcquirerExchange, ArchivedPayment, AuthorizationExpiry, ChainState, Payment, PaymentEvent
from gateway.payments import payment_archive
from gateway.payments.payment_archive import (
    EarlierArchive,
    bring_chain_back,
    compute_hot_since,
    find_archived_number,
    find_archived_payment,
    include_archive,
    list_archived_chain,
    list_archived_chains,
    list_archived_orders,
    list_archived_payments,
    list_archived_references,
)
from gateway.personal_data import payment_archiving
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
HOT_DAYS = 1_095
Archive = SimpleNamespace


@pytest.fixture(autouse=True)
def archives(settings: Any) -> None:
    settings.GATEWAY_PAYMENT_HOT_DAYS = HOT_DAYS


def pay(shop: Shop, order: str | None, invoice: str | None, api: Any = None) -> list[UUID]:
    """A payment and its refund."""
    api = api or shop.api
    first = api.pay(merchantTransactionId=order, merchantInvoiceId=invoice)
    refund = api.follow(first.id, "RF", "12.00")
    assert (first.status, refund.status) == (200, 200)
    return [UUID(first.id), UUID(refund.id)]


def move(monkeypatch: pytest.MonkeyPatch) -> int:
    at = clock.real_now() + timedelta(days=HOT_DAYS + 1)
    AcquirerExchange.objects.all().delete()
    AuthorizationExpiry.objects.all().delete()
    with monkeypatch.context() as patch:
        patch.setattr(payment_archiving.clock, "real_now", lambda: at)
        return payment_archiving.archive_old_payments()


@pytest.fixture
def archive(shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch) -> Archive:
    """Two chains of the shop's channel, one of its other one, one of another merchant; all with one order number."""
    other = shop.open_channel("other")
    found = SimpleNamespace(
        merchant=shop.merchant.pk,
        channel=shop.channel.pk,
        other_channel=other.pk,
        stranger=stranger.merchant.pk,
        one=pay(shop, "order-4711", "invoice-1"),
        two=pay(shop, "order-4711", "invoice-2"),
        elsewhere=pay(shop, "order-4711", "invoice-3", shop.api_of(other)),
        theirs=pay(stranger, "order-4711", "invoice-1"),
        unnamed=pay(shop, None, None),
    )
    found.numbers = dict(Payment.objects.values_list("pk", "number"))
    assert move(monkeypatch) == 10
    return found


def ids(rows: list[Payment]) -> list[UUID]:
    return [row.pk for row in rows]


def test_a_payment_is_found_by_its_id_for_its_merchant_and_channel(archive: Archive) -> None:
    first = archive.one[0]
    for whose in ((archive.merchant,), (archive.merchant, archive.channel), (None,), (None, archive.channel)):
        found = find_archived_payment(first, *whose)
        assert found is not None
        assert (found.pk, found.merchant_id, found.channel_id) == (first, archive.merchant, archive.channel)
        assert found.archived_at is not None
    for nobodys in (
        (archive.stranger,),
        (archive.merchant, archive.other_channel),
        (archive.stranger, archive.channel),
    ):
        assert find_archived_payment(first, *nobodys) is None
    assert find_archived_payment(None, archive.merchant) is None
    assert find_archived_payment(UUID(int=1), archive.merchant) is None


def test_payments_are_listed_by_their_ids_newest_first(archive: Archive, django_assert_num_queries: Any) -> None:
    asked = [archive.one[0], archive.theirs[1], archive.two[0], UUID(int=1)]
    assert ids(list_archived_payments(asked)) == [archive.theirs[1], archive.two[0], archive.one[0]]
    with django_assert_num_queries(0):
        assert list_archived_payments([]) == []


def test_a_chain_is_listed_for_its_merchant_and_channel(archive: Archive) -> None:
    row = find_archived_payment(archive.two[0], archive.merchant)
    assert row is not None
    whole = archive.two[::-1]
    assert ids(list_archived_chain(row)) == ids(list_archived_chain(row, archive.channel)) == whole
    assert list_archived_chain(row, archive.other_channel) == []
    chains = [archive.one[0], archive.two[0], archive.elsewhere[0], archive.theirs[0]]
    everything = [*archive.elsewhere[::-1], *whole, *archive.one[::-1]]
    assert ids(list_archived_chains(archive.merchant, None, chains)) == everything
    assert ids(list_archived_chains(archive.merchant, archive.channel, chains)) == everything[2:]
    assert ids(list_archived_chains(archive.stranger, None, chains)) == archive.theirs[::-1]


def test_an_order_is_listed_for_its_merchant_and_channel(archive: Archive) -> None:
    firsts = [archive.elsewhere[0], archive.two[0], archive.one[0]]
    assert ids(list_archived_orders(archive.merchant, None, "order-4711")) == firsts
    assert ids(list_archived_orders(archive.merchant, archive.channel, "order-4711")) == firsts[1:]
    assert ids(list_archived_orders(archive.stranger, None, "order-4711")) == archive.theirs[:1]
    for nobodys in ("", "order-471", "invoice-1"):
        assert list_archived_orders(archive.merchant, None, nobodys) == []


def test_a_payment_is_found_by_its_number(archive: Archive) -> None:
    number = archive.numbers[archive.one[1]]
    for whose in ((archive.merchant, None), (archive.merchant, archive.channel), (None, None)):
        found = find_archived_number(*whose, number)
        assert found is not None
        assert found.pk == archive.one[1]
    for nobodys in ((archive.stranger, None), (archive.merchant, archive.other_channel)):
        assert find_archived_number(*nobodys, number) is None


def test_an_order_or_an_invoice_is_listed_for_the_merchants_that_are_asked_for(archive: Archive) -> None:
    both = [archive.merchant, archive.stranger]
    assert ids(list_archived_references(both, "invoice-1")) == [archive.theirs[0], archive.one[0]]
    assert ids(list_archived_references(both[:1], "invoice-1")) == archive.one[:1]
    assert ids(list_archived_references(both[1:], "order-4711")) == archive.theirs[:1]
    assert ids(list_archived_references(both, "invoice-2")) == archive.two[:1]
    for nobodys in ([], [UUID(int=1)]):
        assert list_archived_references(nobodys, "invoice-1") == []
    assert list_archived_references(both, "") == []


def test_no_more_are_read_at_once_than_a_list_takes(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payment_archive, "MAX_LISTED_ARCHIVED", 2)
    chains = [archive.one[0], archive.two[0]]
    assert ids(list_archived_chains(archive.merchant, None, chains)) == archive.two[::-1]
    assert ids(list_archived_references([archive.merchant], "order-4711")) == [archive.elsewhere[0], archive.two[0]]


# --- coming back ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", [0, 1])
def test_a_chain_comes_back_whole_and_alone(archive: Archive, which: int) -> None:
    assert bring_chain_back(archive.one[which], archive.merchant, archive.channel)
    assert set(Payment.objects.values_list("pk", flat=True)) == set(archive.one)
    assert set(PaymentEvent.objects.values_list("payment_id", flat=True)) == set(archive.one)
    left = set(ArchivedPayment.objects.values_list("pk", flat=True))
    assert left == {*archive.two, *archive.elsewhere, *archive.theirs, *archive.unnamed}
    assert not bring_chain_back(archive.one[which], archive.merchant)


def test_a_chain_comes_back_for_its_merchant_and_channel_only(archive: Archive) -> None:
    assert not bring_chain_back(archive.one[0], archive.stranger)
    assert not bring_chain_back(archive.one[0], archive.merchant, archive.other_channel)
    assert not bring_chain_back(UUID(int=1), archive.merchant)
    assert not Payment.objects.exists()
    assert bring_chain_back(archive.theirs[0], None)


def test_only_the_authorization_that_had_expired_comes_back_expired(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    expired, other, stays = (UUID(shop.api.pay(paymentType="PA").id) for _ in range(3))
    assert shop.api.follow(other.hex, "CP", "92.00").status == 200
    Payment.objects.filter(pk=expired).update(expired_at=clock.real_now())
    ChainState.objects.filter(chain=expired).update(expired=True)
    assert move(monkeypatch) == 3
    for each in (other, expired):
        assert bring_chain_back(each, shop.merchant.pk)
    assert dict(ChainState.objects.values_list("chain", "expired")) == {expired: True, other: False, stays: False}


# --- when it is looked into -------------------------------------------------------------------------------------------


def test_nothing_is_looked_for_where_no_archive_is_kept(
    shop: Shop, settings: Any, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    settings.GATEWAY_PAYMENT_HOT_DAYS = 0
    monkeypatch.setattr(payment_archive, "_EARLIER", SimpleNamespace(holds_payments=lambda: False))
    with django_assert_num_queries(0):
        assert not payment_archive.has_archive()
        assert compute_hot_since(shop.merchant) is None
        assert find_archived_payment(UUID(int=1), None) is None
    monkeypatch.setattr(payment_archive, "_EARLIER", SimpleNamespace(holds_payments=lambda: True))
    assert payment_archive.has_archive()


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=50)])
def test_no_payment_of_the_last_three_years_is_archived_by_its_merchants_clock(shop: Shop, ahead: timedelta) -> None:
    shop.merchant.clock_offset = ahead
    before = clock.real_now()
    since = compute_hot_since(shop.merchant)
    assert since is not None
    assert before <= since - ahead + timedelta(days=HOT_DAYS) < before + timedelta(minutes=1)


def test_an_earlier_archive_is_looked_for_once_a_minute(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, django_assert_num_queries: Any
) -> None:
    now = [1_000.0]
    monkeypatch.setattr(payment_archive.time, "monotonic", lambda: now[0])
    for one in (archive.one, archive.two, archive.elsewhere, archive.theirs, archive.unnamed)[:4]:
        bring_chain_back(one[0], None)
    earlier = EarlierArchive()
    for at, queries, holds in ((1_000.0, 1, True), (1_059.9, 0, True), (1_060.0, 1, False), (1_100.0, 0, False)):
        now[0] = at
        if at == 1_059.9:
            bring_chain_back(archive.unnamed[0], None)
        with django_assert_num_queries(queries):
            assert earlier.holds_payments() is holds


def test_a_statement_reads_both_or_those_that_are_there(
    archive: Archive, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was erased is read as empty, what was null as null."""
    assert bring_chain_back(archive.one[0], archive.merchant)
    asked = "SELECT p.id, p.archived, p.archived_at IS NULL FROM gateway_payment p ORDER BY p.id"
    hot, kept = [(one, False, True) for one in archive.one], [*archive.two, *archive.elsewhere, *archive.theirs]
    cold = [(one, True, False) for one in [*kept, *archive.unnamed]]
    assert execute_sql(include_archive(asked), {}) == hot + cold
    empty = "SELECT count(means_sealed), count(email_key), count(request), count(route) FROM gateway_payment p"
    assert execute_sql(include_archive(f"{empty} WHERE archived"), {}) == [(0, 0, 8, 0)]
    settings.GATEWAY_PAYMENT_HOT_DAYS = 0
    monkeypatch.setattr(payment_archive, "_EARLIER", SimpleNamespace(holds_payments=lambda: False))
    assert execute_sql(include_archive(asked), {}) == hot
    assert include_archive("SELECT 1 FROM gateway_paymentevent") == "SELECT 1 FROM gateway_paymentevent"

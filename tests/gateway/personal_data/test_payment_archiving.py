"""Old payments leave for the archive with their chain, are found by their ids, and come back. docs/decisions/0130."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import itertools
import json
import stat
import threading
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, models, transaction
from django.test import override_settings

from checkout.models import Checkout, PaymentLink
from gateway.access.permissions import FULL_ACCESS
from gateway.access.tokens import TokenLimits
from gateway.core import clock, identifiers
from gateway.core.identifiers import first_id_at
from gateway.models import (
    AcquirerExchange,
    Agreement,
    Approval,
    ArchivedPayment,
    ArchivePosition,
    AuditEntry,
    AuthorizationExpiry,
    ChainState,
    Merchant,
    Notification,
    Payment,
    PaymentEvent,
    Registration,
    RiskDecision,
    Role,
)
from gateway.payments import follow_ups, payment_archive, transaction_query
from gateway.payments.authorization_expiry import expire_authorizations
from gateway.payments.payment_archive import bring_chain_back
from gateway.payments.transaction_query import TransactionQuery, find_transactions, query_from_parameters
from gateway.personal_data import archive_files, payment_archiving
from gateway.personal_data.payment_archiving import GOES_WITH_CHAIN, KEEPS_CHAIN, archive_old_payments
from gateway.personal_data.people import PersonNotFoundError, find_person, parse_person
from gateway.personal_data.table import PAYMENTS, PERSONAL_DATA, Erasing
from reporting.approvals.figures import ApprovalPeriod, compute_figures, count_chosen
from reporting.approvals.gains import list_gains
from reporting.approvals.second_acquirers import compute_cascades, compute_chances
from reporting.approvals.waterfall import compute_waterfalls
from reporting.models import ClearingInstitute
from reporting.month_end.statement import MISSING_PART, MonthScope, build_statement, list_part
from tests.checkout.test_payment_links import create, pay_link
from tests.reporting.test_approval_rates import START, period, write_payments
from tests.reporting.test_second_acquirers import CASCADED, FURTHER, not_honoured
from tests.support import books
from tests.support.client import Answer
from tests.support.clock import jump
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.threads import PATIENCE_S, InThread

pytestmark = pytest.mark.django_db
HOT_DAYS = 1_095


@pytest.fixture(autouse=True)
def archives(settings: Any) -> None:
    settings.GATEWAY_PAYMENT_HOT_DAYS = HOT_DAYS


def later(monkeypatch: pytest.MonkeyPatch, days: float = HOT_DAYS + 1) -> int:
    """What a run archives so many days from now, when the messages to acquirers have gone."""
    at = clock.real_now() + timedelta(days=days)
    AcquirerExchange.objects.all().delete()
    with monkeypatch.context() as patch:
        patch.setattr(payment_archiving.clock, "real_now", lambda: at)
        return archive_old_payments()


def captured(shop: Shop, **more: str) -> list[str]:
    """A preauthorization that was captured and refunded in part: the ids."""
    first = shop.api.pay(paymentType="PA", merchantTransactionId="order-4711", **more)
    capture = shop.api.follow(first.id, "CP", "92.00")
    refund = shop.api.follow(capture.id, "RF", "12.00")
    assert [one.status for one in (first, capture, refund)] == [200, 200, 200]
    return [first.id, capture.id, refund.id]


def archived() -> set[str]:
    return {one.hex for one in ArchivedPayment.objects.values_list("pk", flat=True)}


def hot() -> set[str]:
    return {one.hex for one in Payment.objects.values_list("pk", flat=True)}


def without_archive(answer: Answer) -> dict[str, Any]:
    body = dict(answer.body)
    details = {name: value for name, value in body["resultDetails"].items() if name != "archivedAt"}
    return {name: value for name, value in body.items() if name not in ("ndc", "timestamp")} | {
        "resultDetails": details
    }


# --- leaving --------------------------------------------------------------------------------------------------------


def test_a_chain_leaves_whole_when_its_time_is_over(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = captured(shop)
    assert later(monkeypatch, HOT_DAYS - 1) == 0
    assert hot() == set(ids)
    assert later(monkeypatch) == 3
    assert (hot(), archived()) == (set(), set(ids))
    for model in (PaymentEvent, ChainState, Notification, RiskDecision):
        assert not model._default_manager.exists(), model
    assert later(monkeypatch) == 0


def test_nothing_is_archived_unless_it_is_asked_for(shop: Shop, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.GATEWAY_PAYMENT_HOT_DAYS = 0
    shop.api.pay()
    assert payment_archiving.TIMER.is_off()
    assert later(monkeypatch, 10_000) == 0
    assert Payment.objects.count() == 1


def test_a_chain_with_a_younger_follow_up_stays(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = captured(shop)
    young = Payment.objects.get(pk=ids[2])
    young.pk = UUID(int=first_id_at(clock.real_now() + timedelta(days=30)).int + 1)
    young.number += 1
    young.save(force_insert=True)
    assert [later(monkeypatch, HOT_DAYS + days) for days in (1, 29, 31)] == [0, 0, 4]


def test_the_next_pass_begins_a_day_after_the_last(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.api.pay()
    assert later(monkeypatch) == 1
    shop.api.pay()
    assert [later(monkeypatch, HOT_DAYS + days) for days in (1.5, 1.9, 2.1)] == [0, 0, 1]


def test_a_run_takes_a_bounded_number_of_batches_and_the_next_goes_on(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [shop.api.pay().id for _ in range(5)]
    monkeypatch.setattr(payment_archiving, "ARCHIVE_BATCH_ROWS", 1)
    monkeypatch.setattr(payment_archiving, "MAX_ARCHIVE_ROUNDS", 2)
    assert [later(monkeypatch), later(monkeypatch)] == [2, 2]
    assert hot() == {ids[4]}
    assert ArchivePosition.objects.get().position == UUID(ids[3])
    assert [later(monkeypatch), later(monkeypatch)] == [1, 0]
    assert ArchivePosition.objects.get().position == UUID(int=0)


HOLDERS = ("registration", "agreement", "authorization", "message", "approval", "dispute", "pending", "open", "finding")


@pytest.mark.parametrize("kind", HOLDERS)
def test_a_chain_on_which_something_hangs_stays(shop: Shop, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    other = shop.api.pay().id
    held = UUID(shop.api.pay(paymentType="PA" if kind == "authorization" else "DB").id)
    row = Payment.objects.get(pk=held)
    own = {"merchant": shop.merchant, "channel": shop.channel}
    made = clock.real_now()
    if kind == "registration":
        stored = Registration(pk=identifiers.row_id(), payment=held, created_at=made, **own)
        stored.save(force_insert=True)
        Payment.objects.filter(pk=held).update(registration=stored.pk)
    elif kind == "agreement":
        Agreement(pk=held, reference="R", created_at=made, **own).save(force_insert=True)
    elif kind == "approval":
        clerk = person("clerk", Role.CLERK, shop.merchant)
        Approval.objects.create(
            merchant=shop.merchant,
            payment=row,
            payment_type="RF",
            amount=Decimal(1),
            currency="EUR",
            asked_by=clerk,
            asked_at=made,
            expires_at=made,
        )
    elif kind == "dispute":
        case = apps.get_model("chargebacks.Chargeback")
        case(
            pk=identifiers.row_id(), disputed=held, chain=held, state="LOST", source="HAND", reason_code="1",
            brand="VISA",
            amount=Decimal(1), currency="EUR", opened_at=made, due_at=made, **own,
        ).save(force_insert=True)  # fmt: skip
    elif kind == "pending":
        Payment.objects.filter(pk=held).update(status="PENDING")
    elif kind == "open":
        apps.get_model("gateway.OpenPayment")._default_manager.create(payment=row, recover_at=made)
    elif kind == "finding":
        clearing = books.institute()
        line = books.record(books.settlement(shop, clearing), books.file_of(clearing), row)
        findings = apps.get_model("reporting.Finding")._default_manager
        for payment, closed in ((held, None), (UUID(other), made)):
            findings.create(
                record=line, kind="NOT_BOOKED", merchant=shop.merchant, payment=payment, made_at=made, closed_at=closed
            )
    kept = list(AcquirerExchange.objects.filter(payment=held)) if kind == "message" else []
    AcquirerExchange.objects.exclude(payment=held).delete()
    if not kept:
        AcquirerExchange.objects.all().delete()
    at = clock.real_now() + timedelta(days=HOT_DAYS + 1)
    with monkeypatch.context() as patch:
        patch.setattr(payment_archiving.clock, "real_now", lambda: at)
        assert archive_old_payments() == 1
    assert (archived(), hot()) == ({other}, {held.hex})


@pytest.mark.parametrize(
    ("agreement", "registration"),
    [({"expiry": date(2020, 1, 1)}, None), ({}, "DELETED"), ({"expiry": date(2020, 1, 1)}, "DELETED")],
)
def test_what_can_be_used_no_more_holds_no_chain(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, agreement: dict[str, Any], registration: str | None
) -> None:
    held = UUID(shop.api.pay().id)
    own = {"merchant": shop.merchant, "channel": shop.channel, "created_at": clock.real_now()}
    stored = None
    if registration:
        stored = identifiers.row_id()
        Registration(pk=stored, payment=held, status=registration, **own).save(force_insert=True)
    Agreement(pk=held, reference="R", registration=stored, **agreement, **own).save(force_insert=True)
    Payment.objects.filter(pk=held).update(registration=stored, agreement=held)
    assert later(monkeypatch) == 1


@pytest.mark.parametrize("limit", [{"max_payments": 3}, {"frequency": 28}])
def test_an_agreement_with_limits_counts_its_payments_without_its_registration_too(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, limit: dict[str, int]
) -> None:
    began, later_on, other = (UUID(shop.api.pay().id) for _ in range(3))
    stored = identifiers.row_id()
    own = {"merchant": shop.merchant, "channel": shop.channel, "created_at": clock.real_now()}
    Registration(pk=stored, payment=began, status="DELETED", **own).save(force_insert=True)
    Agreement(pk=began, reference="R", registration=stored, **limit, **own).save(force_insert=True)
    Payment.objects.filter(pk=began).update(registration=stored)
    Payment.objects.filter(pk=later_on).update(agreement=began)
    assert later(monkeypatch) == 1
    assert archived() == {other.hex}


@pytest.mark.parametrize(
    ("changes", "leaves"),
    [
        ({}, False),
        ({"max_payments": None}, True),
        ({"deactivated_at": datetime(2020, 1, 1, tzinfo=UTC)}, True),
        ({"expires_at": datetime(2020, 1, 1, tzinfo=UTC)}, True),
        ({"expires_at": datetime(2100, 1, 1, tzinfo=UTC)}, False),
    ],
)
def test_a_paid_link_is_not_paid_again_when_its_payment_is_old(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any], leaves: bool
) -> None:
    link = create(shop.api).id
    pay_link(link)
    PaymentLink.objects.filter(pk=link).update(**changes)
    assert later(monkeypatch) == leaves
    if not leaves:
        assert shop.api.get(f"/v1/paymentLinks/{link}").body["state"] == "PAID"


def test_a_dispute_that_comes_while_its_chain_is_archived_keeps_it(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = captured(shop)
    other = shop.api.pay().id
    made = clock.real_now()
    apps.get_model("chargebacks.DisputeAlert")(
        pk=identifiers.row_id(), disputed=UUID(ids[1]), chain=UUID(ids[0]), merchant=shop.merchant,
        channel=shop.channel, kind="ALERT", state="OPEN", opened_at=made, due_at=made, moved_at=made,
        amount=Decimal(1), currency="EUR",
    ).save(force_insert=True)  # fmt: skip

    def find_as_before_it(firsts: Any, limit: UUID) -> dict[UUID, list[Payment]]:
        return {first: list(Payment.objects.filter(chain=first).order_by("pk")) for first in firsts}

    monkeypatch.setattr(payment_archiving, "find_movable_chains", find_as_before_it)
    assert later(monkeypatch) == 1
    assert (archived(), hot()) == ({other}, set(ids))


def test_a_chain_that_changes_meanwhile_stays_and_the_others_of_its_batch_leave(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [shop.api.pay().id for _ in range(3)]
    find = payment_archiving.find_movable_chains

    def find_and_change(firsts: Any, limit: UUID) -> Any:
        found = find(firsts, limit)
        if UUID(ids[1]) in found:
            found[UUID(ids[1])][0].follow_ups -= 1  # as if one had begun since
        return found

    monkeypatch.setattr(payment_archiving, "find_movable_chains", find_and_change)
    assert later(monkeypatch) == 2
    assert (archived(), hot()) == ({ids[0], ids[2]}, {ids[1]})
    assert PaymentEvent.objects.filter(payment=ids[1]).count() > 0


def test_a_follow_up_that_came_in_meanwhile_keeps_its_chain(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = captured(shop)
    find = payment_archiving.find_movable_chains
    monkeypatch.setattr(
        payment_archiving,
        "find_movable_chains",
        lambda firsts, limit: {first: chain[:2] for first, chain in find(firsts, limit).items()},
    )
    assert later(monkeypatch) == 0
    assert hot() == set(ids)


def test_what_stood_for_the_payment_alone_goes_with_it(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    paid = Payment.objects.get(pk=shop.api.pay().id)
    now = clock.real_now()
    Checkout.objects.create(
        merchant=shop.merchant, channel=shop.channel, payment=paid, kind="PAYMENT", created_at=now, expires_at=now
    )
    later(monkeypatch)
    assert not Checkout.objects.exists()


def test_nothing_of_the_shopper_is_archived(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    paid = shop.api.pay(
        customer__email="zaphira@shop.example", customer__surname="Quixley", billing__street1="Quixley Lane 9",
        billing__city="Bonn", billing__country="DE", customer__givenName="Zaphira",
        card__holder="Zaphira Quixley", merchantMemo="call Zaphira", merchantInvoiceId="invoice-1",
    )  # fmt: skip
    assert paid.status == 200, paid
    assert later(monkeypatch) == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT row::text || events::text FROM gateway_archivedpayment")
        ((text,),) = cursor.fetchall()
    for word in ("zaphira", "quixley", "lane"):
        assert word not in text.lower()
    assert "invoice-1" in text
    row = ArchivedPayment.objects.get().row
    gone = ("means_sealed", "email_key", "name_keys", "duplicate_guard")
    assert [row[name] for name in gone] == [None] * 4
    with pytest.raises(PersonNotFoundError, match="is archived"):
        find_person(parse_person(shop.merchant, "payment", paid.id))


def test_a_payment_that_somebody_holds_stays_and_nobody_waits(committed: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are taken in the order of their ids, and what another transaction holds is left for the next pass."""
    ids = [committed.api.pay().id for _ in range(3)]
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            Payment.objects.select_for_update().get(pk=ids[1])
            held.set()
            assert let_go.wait(PATIENCE_S)

    holder = InThread(hold)
    holder.start()
    try:
        assert held.wait(PATIENCE_S)
        assert later(monkeypatch) == 2
    finally:
        let_go.set()
        assert holder.end() is None
    assert (archived(), hot()) == ({ids[0], ids[2]}, {ids[1]})


# --- found by its ids -----------------------------------------------------------------------------------------------


def test_an_archived_payment_is_answered_by_its_id(shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    first, capture, refund = captured(shop)
    before = {one: without_archive(shop.api.read(one)) for one in (first, capture, refund)}
    before[first]["card"].pop("expiryMonth"), before[first]["card"].pop("expiryYear")
    before[first]["card"].pop("holder", None)
    assert later(monkeypatch) == 3
    for one, body in before.items():
        answer = shop.api.read(one)
        assert answer.status == 200
        assert answer.body["resultDetails"]["archivedAt"].startswith("20")
        assert without_archive(answer) == body
        assert shop.api.get(f"/v1/query/{one}").body["id"] == one
        assert stranger.api.read(one).status == 404
        assert stranger.api.get(f"/v1/query/{one}").status == 404
    assert shop.api_of(shop.open_channel()).read(first).status == 404
    linked = shop.api.get(f"/v3/query/{refund}", {"includeLinkedTransactions": "true"}).body["records"]
    assert [one["id"] for one in linked] == [refund, capture, first]
    some = shop.api.get(f"/v3/query/{refund}", {"includeLinkedTransactions": "true", "paymentTypes": "PA"}).body
    assert [one["id"] for one in some["records"]] == [refund, first]


def test_an_archived_payment_is_found_by_its_order_and_its_short_id(
    shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, capture, refund = captured(shop)
    number = identifiers.format_short_id(Payment.objects.get(pk=first).number)
    later(monkeypatch)

    def found(api: Any, **fields: str) -> list[str]:
        answer = api.get("/v1/query", fields)
        return [one["id"] for one in answer.body.get("payments", [])]

    assert found(shop.api, merchantTransactionId="order-4711") == [first]
    assert found(shop.api, shortId=number) == [first]
    assert found(shop.api, merchantTransactionId="order-4711", includeLinkedTransactions="true") == [
        refund, capture, first,
    ]  # fmt: skip
    asked = {"merchantTransactionId": "order-4711", "includeLinkedTransactions": "true", "pageNo": "1"}
    page = shop.api.get("/v3/query", asked).body
    assert ([one["id"] for one in page["records"]], page["pages"]) == ([first, capture, refund], 1)
    assert shop.api.get("/v3/query", asked | {"pageNo": "2"}).body["records"] == []
    assert found(shop.api, merchantTransactionId="order-4711", paymentTypes="RF") == []
    assert found(shop.api, merchantTransactionId="order-4712") == []
    assert found(stranger.api, merchantTransactionId="order-4711") == []
    assert found(stranger.api, shortId=number) == []


def test_a_query_is_answered_from_the_archive_as_it_was_before(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """By order and short id: type, method, times, channel, pages, and linked ones of what was found."""
    first, capture, refund = captured(shop)
    again = shop.api.pay(merchantTransactionId="order-4711").id
    elsewhere = shop.api_of(shop.open_channel())
    other = elsewhere.pay(merchantTransactionId="order-4711").id
    Merchant.objects.filter(pk=shop.merchant.pk).update(dispatching=True)
    whole_shop = shop.api.as_entity(shop.merchant.entity_id)
    ids = (first, capture, refund, again, other)
    for day, one in enumerate(ids, 1):
        Payment.objects.filter(pk=one).update(created_at=datetime(2020, 1, day, 10, tzinfo=UTC))
    numbers = [identifiers.format_short_id(Payment.objects.get(pk=one).number) for one in ids]
    narrowed: list[dict[str, str]] = [
        {},
        {"paymentTypes": "PA"},
        {"paymentTypes": "CP,RF"},
        {"paymentMethods": "CC"},
        {"paymentMethods": "DD"},
        {"date.from": "2020-01-04 10:00:00"},
        {"date.from": "2020-01-04 10:00:01"},
        {"date.to": "2020-01-04 10:00:00"},
        {"date.to": "2020-01-04 09:59:59"},
        {"date.from": "2020-01-01 10:00:00", "date.to": "2020-01-01 10:00:00"},
        {"limit": "1"},
    ]

    def ask_all() -> list[Any]:
        answers = []
        for api in (shop.api, elsewhere, whole_shop):
            for linked in ({}, {"includeLinkedTransactions": "true"}):
                answers += [
                    [one["id"] for one in api.get("/v1/query", {"shortId": number, **linked}).body.get("payments", [])]
                    for number in numbers
                ]
                for order in ("order-4711", "order-4712"):
                    asked = {"shortId": numbers[0], "merchantTransactionId": order, **linked}
                    answers.append([one["id"] for one in api.get("/v1/query", asked).body.get("payments", [])])
                for more in narrowed:
                    asked = {"merchantTransactionId": "order-4711", **linked, **more}
                    found = api.get("/v1/query", asked).body.get("payments", [])
                    pages = [api.get("/v3/query", {**asked, "pageNo": page}).body for page in ("1", "2", "3")]
                    paged = [
                        (page["result"]["code"], [one["id"] for one in page.get("records", [])], page.get("pages"))
                        for page in pages
                    ]
                    answers.append((asked, [one["id"] for one in found], paged))
        return answers

    before = ask_all()
    assert {one for answer in before if isinstance(answer, tuple) for one in answer[1]} == set(ids)
    assert later(monkeypatch) == 5
    assert ask_all() == before


def made_on(day: int, *ids: str) -> None:
    Payment.objects.filter(pk__in=ids).update(created_at=datetime(2020, 1, day, 10, tzinfo=UTC))


def test_a_list_by_date_is_answered_from_the_archive_as_it_was_before(
    shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newest first and by pages, with each filter, channel and linked ones, before, while some and after all moved."""
    first, capture, refund = captured(shop)
    others = [shop.api.pay().id for _ in range(3)]
    bank = shop.api.pay(
        paymentBrand="DIRECTDEBIT_SEPA", bankAccount__holder="Jane Jones",
        bankAccount__iban="DE23100000001234567890", bankAccount__bic="MARKDEF1100", bankAccount__country="DE",
        card__number=None, card__expiryMonth=None, card__expiryYear=None, card__cvv=None, card__holder=None,
    ).id  # fmt: skip
    elsewhere = shop.api_of(shop.open_channel())
    other = elsewhere.pay().id
    Merchant.objects.filter(pk=shop.merchant.pk).update(dispatching=True)
    whole_shop = shop.api.as_entity(shop.merchant.entity_id)
    everything = (first, capture, refund, *others, bank, other)
    for day, one in enumerate(everything, 1):
        made_on(day, one)
    made_on(5, others[0], others[1])  # two at one moment
    made_on(9, stranger.api.pay().id)
    narrowed: list[dict[str, str]] = [
        {},
        {"paymentTypes": "DB"},
        {"paymentTypes": "RF"},
        {"paymentTypes": "CP,RF"},
        {"paymentMethods": "CC"},
        {"paymentMethods": "DD"},
        {"paymentMethods": "DD", "paymentTypes": "DB"},
        {"date.from": "2020-01-03 00:00:00"},
        {"date.to": "2020-01-05 10:00:00"},
        {"date.from": "2020-01-02 10:00:00", "date.to": "2020-01-06 09:59:59"},
    ]
    whole = query_from_parameters({"limit": "100"}, shop.merchant, None)

    def ask_all() -> list[Any]:
        answers: list[Any] = []
        for api in (shop.api, elsewhere, whole_shop):
            for linked in ({}, {"includeLinkedTransactions": "true"}):
                for more in narrowed:
                    found = api.get("/v1/query", {**linked, **more}).body.get("payments", [])
                    answers.append(([one["id"] for one in found], linked, more))
                    for page in ("1", "2", "3"):
                        body = api.get("/v3/query", {**linked, **more, "pageNo": page}).body
                        answers.append(
                            (body["result"]["code"], [one["id"] for one in body.get("records", [])], body.get("pages"))
                        )
        for limit, page, linked in itertools.product((1, 2, 3), (None, 1, 2, 3), (False, True)):
            one_page = find_transactions(replace(whole, limit=limit, page=page, linked=linked))
            answers.append(((), [one.pk.hex for one in one_page.payments], one_page.pages))
        return answers

    before = ask_all()
    assert {one for answer in before if isinstance(answer[0], list) for one in answer[0]} == set(everything)
    Payment.objects.filter(pk=others[1]).update(status="PENDING")
    assert later(monkeypatch) == 8
    assert hot() == {others[1]}
    Payment.objects.filter(pk=others[1]).update(status="APPROVED")
    assert ask_all() == before
    assert later(monkeypatch, HOT_DAYS + 5) == 1
    assert ask_all() == before
    january = {"date.from": "2020-01-01 00:00:00", "date.to": "2020-02-01 00:00:00"}
    listed = shop.api.get("/v1/query", january).body["payments"]
    assert all(one["resultDetails"]["archivedAt"].startswith("20") for one in listed)
    assert {one["id"] for one in listed} == set(everything) - {other}


def test_a_list_of_times_in_which_nothing_can_be_archived_does_not_read_the_archive(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    today = clock.merchant_now(shop.merchant)
    for _ in range(2):
        shop.api.pay()
    made_on(1, shop.api.pay().id)
    for days, limit, reads in ((1_094, 100, 0), (1_096, 100, 1), (5_000, 2, 0), (5_000, 3, 1), (5_000, 4, 1)):
        asked = {"limit": "100", "date.from": f"{today - timedelta(days=days):%Y-%m-%d %H:%M:%S}"}
        query = replace(query_from_parameters(asked, shop.merchant, shop.channel), limit=limit)
        with statements() as seen:
            assert len(find_transactions(query).payments) == min(limit, 2 if days < 1_100 else 3)
        assert sum("gateway_archivedpayment" in one for one in seen) == reads, (days, limit)


def test_an_order_with_archived_and_newer_payments_is_answered_whole(
    shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, capture, refund = captured(shop)
    assert later(monkeypatch) == 3
    again = shop.api.pay(merchantTransactionId="order-4711").id
    third = shop.api.pay(merchantTransactionId="order-4711", paymentType="PA").id

    def found(**fields: str) -> list[str]:
        answer = shop.api.get("/v1/query", {"merchantTransactionId": "order-4711"} | fields)
        return [one["id"] for one in answer.body.get("payments", [])]

    assert found() == [third, again, first]
    assert found(paymentTypes="PA") == [third, first]
    assert found(includeLinkedTransactions="true") == [third, again, refund, capture, first]
    query = TransactionQuery(
        merchant=shop.merchant.pk, channel=None, transaction_id="order-4711", number=None, start=None, end=None,
        types=(), methods=(), linked=False, limit=2, page=None,
    )  # fmt: skip

    def page(number: int | None, **more: Any) -> tuple[list[str], int | None]:
        listed = find_transactions(replace(query, page=number, **more))
        return [one.pk.hex for one in listed.payments], listed.pages

    assert page(None) == ([third, again], None)
    assert page(None, linked=True) == ([third, again], None)
    assert [page(number) for number in (1, 2, 3)] == [([first, again], 2), ([third], 2), ([], 2)]
    assert page(1, linked=True) == ([first, capture, refund, again], 2)
    assert stranger.api.get("/v1/query", {"merchantTransactionId": "order-4711"}).body.get("payments", []) == []


@pytest.mark.parametrize("linked", ["false", "true"])
def test_a_chain_that_is_brought_back_while_its_order_is_read_is_listed_once(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, linked: str
) -> None:
    first, capture, refund = captured(shop)
    assert later(monkeypatch) == 3
    read = transaction_query._find_archived

    def bring_back(query: TransactionQuery) -> list[Payment]:
        found = read(query)
        assert payment_archive.bring_chain_back(found[0].pk, shop.merchant.pk)
        return found

    monkeypatch.setattr(transaction_query, "_find_archived", bring_back)
    asked = {"merchantTransactionId": "order-4711", "includeLinkedTransactions": linked}
    listed = [one["id"] for one in shop.api.get("/v1/query", asked).body["payments"]]
    assert listed == ([refund, capture, first] if linked == "true" else [first])


def test_where_nothing_is_archived_an_unknown_id_asks_the_archive_nothing(
    shop: Shop, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.GATEWAY_PAYMENT_HOT_DAYS = 0
    monkeypatch.setattr(payment_archive, "_EARLIER", payment_archive.EarlierArchive())
    unknown = identifiers.row_id().hex
    asked = []
    for _ in range(2):
        with statements() as seen:
            assert shop.api.read(unknown).status == 404
            assert shop.api.follow(unknown, "RF", "1.00").status == 404
            assert shop.api.get("/v1/query", {"merchantTransactionId": "nobody's"}).body.get("payments", []) == []
        asked.append(sum("gateway_archivedpayment" in one for one in seen))
    assert asked == [1, 0], "whether there is an archive is looked up once a minute"


def test_what_was_archived_is_found_after_archiving_was_switched_off(
    shop: Shop, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = shop.api.pay().id
    assert later(monkeypatch) == 1
    settings.GATEWAY_PAYMENT_HOT_DAYS = 0
    monkeypatch.setattr(payment_archive, "_EARLIER", payment_archive.EarlierArchive())
    assert shop.api.read(paid).status == 200


# --- reports --------------------------------------------------------------------------------------------------------


def test_no_report_changes_when_a_chain_is_archived(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A settled debit, one that was reversed in part and settled, one that no line settles; each archived."""
    clearing = books.institute(settles_within_days=1)
    ClearingInstitute.objects.filter(pk=clearing.pk).update(created_at=clock.real_now() - timedelta(days=40))
    settled, missing = (Payment.objects.get(pk=shop.api.pay(amount=amount).id) for amount in ("92.00", "15.00"))
    held = shop.api.pay(paymentType="PA", amount="50.00")
    capture = shop.api.follow(held.id, "CP", "50.00")
    assert shop.api.follow(capture.id, "RV").status == 200
    today = clock.real_now().date()
    where, file = books.settlement(shop, clearing, date=today), books.file_of(clearing)
    books.record(where, file, settled)
    books.record(where, file, Payment.objects.get(pk=capture.id), amount=Decimal("50.00"))
    jump(3 * 86_400)
    shop.merchant.refresh_from_db()
    # What is missing is so from the day after, which may be in the next month.
    begins = sorted({day.replace(day=1) for day in (today, today + timedelta(days=1))})
    months = [MonthScope(month=day, merchants=one) for day in begins for one in (frozenset({shop.merchant.pk}), None)]
    whole = ApprovalPeriod(
        scope=FULL_ACCESS, since=clock.real_now() - timedelta(days=9), until=clock.real_now() + timedelta(days=9)
    )

    def read() -> list[Any]:
        return [
            [build_statement(month).as_json() for month in months],
            [list_part(month, MISSING_PART, "EUR", None, 10) for month in months],
            [list_part(month, "booked", "EUR", None, 10) for month in months],
            [compute_figures(whole, by) for by in ("all", "brand", "acquirer", "day", "cardType")],
            count_chosen(whole),
            compute_waterfalls(whole),
        ]

    def read_lines() -> list[dict[str, Any]]:
        found = shop.api.get(f"/v1/reports/reconciliations/{where.pk.hex}").body["reconciliations"]
        # The holder is erased with the shopper's data.
        return [row | {"card": {**row["card"], "holder": ""}} for row in found]

    before, lines_before = read(), read_lines()
    assert {one for part in before[1] for one in part.ids} == {(missing.pk, Decimal("-15.00"))}
    assert before[4] == 3
    (fall,) = before[5]
    assert {row.step: row.money for row in fall.rows if row.lost} == {"unsettled": Decimal(15)}
    assert later(monkeypatch) == 5
    assert hot() == set()
    assert read() == before
    assert read_lines() == lines_before
    assert [row["matchedTransactions"]["status"] for row in lines_before] == ["MATCHED", "MATCHED"]
    # The page of the list shows archived payments, too.
    clerk = signed_in(person("clerk", Role.MANAGER, shop.merchant))
    lines = f"/admin/reporting/monthclosing/month/{shop.merchant.pk.hex}/{begins[-1]:%Y-%m}/lines/"
    page = clerk.get(lines, {"part": MISSING_PART, "currency": "EUR"})
    assert f"/admin/gateway/payment/{missing.pk}/change/" in page.content.decode()


def test_what_would_bring_most_does_not_change_when_payments_are_archived(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two accounts, charges at two hours, declines that were sent to a second acquirer and such that were not."""
    charge = {"request": {"standingInstruction": {"source": "MIT"}}, "brand": "MASTER"}
    declined = {"code": "800.100.152"}
    write_payments(
        shop.channel,
        [
            {"acquirer_merchant_id": account, **({} if number % 100 < share else declined)}
            for account, share in (("NORTH", 95), ("SOUTH", 80))
            for number in range(300)
        ],
    )
    write_payments(
        shop.channel,
        [
            charge | {"created_at": START + timedelta(hours=hour), **({} if number % 100 < share else declined)}
            for hour, share in ((3, 40), (12, 90))
            for number in range(200)
        ],
    )
    write_payments(shop.channel, [dict(CASCADED) for _ in range(20)])
    write_payments(shop.channel, [not_honoured() | FURTHER for _ in range(10)])
    whole = period()

    def read() -> list[Any]:
        falls = compute_waterfalls(whole)
        cascades = compute_cascades(whole)
        gains = list_gains(whole, falls, compute_figures(whole, "threeDSecure"), cascades)
        return [falls, cascades, compute_chances(whole), gains]

    before = read()
    titles = " ".join(str(one.title) for one in before[3])
    for word in ("SOUTH", "Charge stored cards at", "second acquirer"):
        assert word in titles
    assert before[1]
    assert before[2]
    while later(monkeypatch):
        pass
    assert hot() == set()
    assert read() == before


def test_what_the_archive_holds_no_more_is_read_as_empty() -> None:
    erased = {name for name, value in payment_archiving._ERASED.items() if value is None}
    assert erased == payment_archive.ERASED_COLUMNS


# --- coming back ----------------------------------------------------------------------------------------------------


def test_a_follow_up_brings_the_chain_back_as_it_was(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = captured(shop)
    state = ChainState.objects.values("chain", "state", "expired", "disputed", "created_at").get()
    rows = list(Payment.objects.order_by("pk").values())
    events = list(PaymentEvent.objects.order_by("payment", "sequence").values())
    later(monkeypatch)
    too_much = shop.api.follow(ids[1], "RF", "80.01")
    assert too_much.status == 400
    assert archived() == set()
    assert ChainState.objects.values("chain", "state", "expired", "disputed", "created_at").get() == state
    erased = {"request", "answer", "merchant_memo", "means_sealed", "email_key", "name_keys", "duplicate_guard"}
    back = list(Payment.objects.filter(pk__in=ids).order_by("pk").values())
    assert [{k: v for k, v in one.items() if k not in erased} for one in back] == [
        {k: v for k, v in one.items() if k not in erased} for one in rows
    ]
    assert list(PaymentEvent.objects.filter(payment__in=ids).order_by("payment", "sequence").values()) == events
    rest = shop.api.follow(ids[1], "RF", "80.00")
    assert rest.status == 200
    assert ChainState.objects.get().state == "refunded"


def test_a_chain_that_another_request_brings_back_at_once_is_found(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = captured(shop)
    later(monkeypatch)

    def come_too_late(*asked: Any) -> bool:
        assert bring_chain_back(*asked)
        return bring_chain_back(*asked)

    monkeypatch.setattr(follow_ups, "bring_chain_back", come_too_late)
    assert shop.api.follow(ids[1], "RF", "80.00").status == 200


def test_an_expired_authorization_comes_back_expired(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    paid = UUID(shop.api.pay(paymentType="PA").id)
    Payment.objects.filter(pk=paid).update(expired_at=clock.real_now())
    ChainState.objects.update(expired=True)
    assert ChainState.objects.get().state == "expired"
    apps.get_model("gateway.AuthorizationExpiry")._default_manager.all().delete()
    assert later(monkeypatch) == 1
    assert bring_chain_back(paid, shop.merchant.pk)
    assert ChainState.objects.get().state == "expired"


def test_the_end_of_an_archived_authorization_is_looked_at_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = captured(shop)
    assert AuthorizationExpiry.objects.filter(authorization=ids[0]).exists()
    assert later(monkeypatch) == 3
    jump(400 * 86_400)
    assert expire_authorizations() == 1
    assert not AuthorizationExpiry.objects.exists()
    assert archived() == set(ids)


def test_only_its_merchant_brings_a_chain_back(shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = captured(shop)
    later(monkeypatch)
    assert stranger.api.follow(ids[1], "RF", "1.00").status == 404
    assert not bring_chain_back(UUID(ids[1]), stranger.merchant.pk)
    assert archived() == set(ids)
    assert shop.api.follow(identifiers.row_id().hex, "RF", "1.00").status == 404


def test_the_limits_of_a_token_hold_for_archived_payments(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    paid = shop.api.pay().id
    later(monkeypatch)
    _, text = shop.issue(limits=TokenLimits(amount=Decimal(10)))
    refused = shop.api.with_token(text).follow(paid, "RV")
    assert refused.status in (400, 403)
    assert Payment.objects.count() == 1, "nothing but the payment that was brought back"


def test_a_declined_follow_up_that_slipped_in_finds_its_chain_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = captured(shop)
    later(monkeypatch)
    stray = ArchivedPayment.objects.get(pk=ids[2])
    assert bring_chain_back(UUID(ids[0]), shop.merchant.pk)
    later(monkeypatch, HOT_DAYS + 3)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO gateway_payment SELECT p.* FROM gateway_archivedpayment a CROSS JOIN LATERAL"
            " jsonb_populate_record(NULL::gateway_payment, a.row) p WHERE a.id = %s",
            [stray.pk],
        )
        cursor.execute("DELETE FROM gateway_archivedpayment WHERE id = %s", [stray.pk])
    assert shop.api.follow(ids[2], "RV").status == 400
    assert archived() == set()


# --- the database keeps it ------------------------------------------------------------------------------------------


def test_the_database_refuses_to_lose_what_was_archived_or_has_happened(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured(shop)
    later(monkeypatch)
    shop.api.pay()
    for statement in (
        "DELETE FROM gateway_archivedpayment",
        "UPDATE gateway_archivedpayment SET row = '{}'",
        "DELETE FROM gateway_paymentevent",
        "UPDATE gateway_paymentevent SET result_code = ''",
    ):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)


NOT_A_PAYMENT_OF_A_SHOPPER = {
    # books: kept, and read with the id of an archived payment
    "reporting.Match", "reporting.Finding", "scheduling.JobRun", "gateway.BatchedCapture", "gateway.BulkItem",
    "gateway.SepaMandate", "gateway.BankOrderFollowUp", "gateway.ClerkLimitUsage", "chargebacks.CaseEvent",
    "chargebacks.AcquirerNotice",
    "gateway.AccountUpdate", "chargebacks.Evidence", "chargebacks.CompellingPayment",
    # payments name it: their columns keep the chain
    "gateway.Registration",
    # gone long before: a timer deletes them within days or months
    "gateway.OpenPayment", "gateway.IdempotencyKey", "gateway.RequestLog", "gateway.WebhookDelivery",
    "gateway.RiskObservation", "gateway.CardDecline", "gateway.RiskTrialPayment", "gateway.RiskTrialObservation",
    "gateway.SimulatedOrder", "gateway.ProcessorEvent", "gateway.ProcessorReportedPayment", "gateway.UsedWalletToken",
    "gateway.TokenLimitUsage",
}  # fmt: skip


def test_every_table_that_names_a_payment_has_its_place() -> None:
    """A new one fails here: it keeps its chain from the archive, goes with it, or may outlive it."""
    naming = set()
    for model in apps.get_models():
        for column in model._meta.concrete_fields:
            related = isinstance(column, models.ForeignKey) and column.related_model is Payment
            named = isinstance(column, models.UUIDField) and column.name in ("payment", "disputed", "authorization")
            if related or named:
                naming.add(model._meta.label)
    placed = {label for label, *_ in (*KEEPS_CHAIN, *GOES_WITH_CHAIN)} | {
        "gateway.PaymentEvent", "gateway.AuthorizationExpiry", "gateway.Payment",
    }  # fmt: skip
    assert naming - placed - NOT_A_PAYMENT_OF_A_SHOPPER == set()


def test_no_foreign_key_of_the_database_stands_in_the_way_but_those_that_keep_a_chain() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text FROM pg_constraint"
            " WHERE contype = 'f' AND confrelid = 'gateway_payment'::regclass"
        )
        tables = {name for (name,) in cursor.fetchall()}
    assert tables <= {apps.get_model(label)._meta.db_table for label, *_ in KEEPS_CHAIN}


# --- files ----------------------------------------------------------------------------------------------------------


def test_each_month_is_a_file_with_its_checksum(shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ids = captured(shop)
    later(monkeypatch)
    (one,) = archive_files.export_archive(tmp_path)
    assert (one.path.name, one.payments) == (f"payments-{datetime.now(UTC):%Y-%m}.csv.gz", 3)
    data = one.path.read_bytes()
    assert hashlib.sha256(data).hexdigest() == one.digest
    assert (tmp_path / f"{one.path.name}.sha256").read_text() == f"{one.digest}  {one.path.name}\n"
    lines = list(csv.DictReader(io.StringIO(gzip.decompress(data).decode())))
    assert [line["id"].replace("-", "") for line in lines] == ids
    assert tuple(lines[0]) == archive_files.COLUMNS
    facts = ("payment_type", "amount", "currency", "status", "merchant_transaction_id", "card_last4")
    assert [lines[0][name] for name in facts] == ["PA", "92.00", "EUR", "APPROVED", "order-4711", "0000"]
    assert b"4200000000000000" not in gzip.decompress(data)
    again = archive_files.export_archive(tmp_path)
    assert [each.digest for each in again] == [one.digest], "the same rows give the same bytes"
    assert sorted(path.name for path in tmp_path.iterdir()) == [one.path.name, f"{one.path.name}.sha256"]


def test_files_of_the_archive_are_their_users_alone_and_follow_no_link(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    captured(shop)
    later(monkeypatch)
    (one,) = archive_files.export_archive(tmp_path)
    other = tmp_path / "another user's"
    other.write_text("kept")
    for name in (f"{one.path.stem}.part", f"{one.path.name}.sha256"):
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).symlink_to(other)
    (again,) = archive_files.export_archive(tmp_path)
    assert (again.digest, other.read_text()) == (one.digest, "kept")
    for path in (one.path, tmp_path / f"{one.path.name}.sha256"):
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600


def test_the_command_moves_exports_and_brings_back(
    shop: Shop, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def run(*words: str) -> str:
        out = io.StringIO()
        call_command("payment_archive", *words, stdout=out)
        return out.getvalue()

    assert run("--export", str(tmp_path)) == "No payments are archived.\n"
    assert run() == "0 payments archived.\n"
    paid = shop.api.pay().id
    later(monkeypatch, HOT_DAYS + 5)
    assert ": 1 payments, SHA-256 " in run("--export", str(tmp_path))
    assert run("--export", str(tmp_path), "--month", "2001-01") == "None of 2001-01 are archived.\n"
    for words, about in (
        (("--export", str(tmp_path / "nowhere")), "no such folder"),
        (("--export", str(tmp_path), "--month", "2027-13"), "it must be YYYY-MM"),
        (("--month", "2027-01"), "is for --export"),
        (("--bring-back", "x"), "no archived payment has this id"),
        (("--bring-back", identifiers.row_id().hex), "no archived payment has this id"),
    ):
        with pytest.raises(CommandError, match=about):
            run(*words)
    assert "is among the payments again" in run("--bring-back", paid)
    assert hot() == {paid}
    settings.GATEWAY_PAYMENT_HOT_DAYS = 0
    with pytest.raises(CommandError, match="GATEWAY_PAYMENT_HOT_DAYS is 0"):
        run()


# --- the back office ------------------------------------------------------------------------------------------------


def test_a_clerk_sees_what_is_kept_and_brings_it_back(
    shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, capture, _ = captured(shop)
    number = identifiers.format_short_id(Payment.objects.get(pk=capture).number)
    later(monkeypatch)
    page = f"/admin/gateway/payment/{UUID(capture)}/change/"
    foreign = signed_in(person("foreign", Role.CLERK, stranger.merchant))
    reader = signed_in(person("reader", Role.AUDITOR, shop.merchant))
    clerk = signed_in(person("clerk", Role.CLERK, shop.merchant))
    assert foreign.get(page).status_code in (302, 404)
    shown = clerk.get(page)
    text = shown.content.decode()
    assert shown.status_code == 200
    for word in ("Archived", capture, "order-4711" if "order-4711" in text else capture, "Bring back", UUID(first).hex):
        assert word in text
    assert "Bring back" not in reader.get(page).content.decode()
    for asked in (capture, number):
        found = clerk.get("/admin/gateway/payment/", {"q": asked})
        assert (found.status_code, UUID(capture).hex in found["Location"].replace("-", "")) == (302, True)
        assert foreign.get("/admin/gateway/payment/", {"q": asked}).status_code == 200
    assert reader.post(page).status_code == 403
    assert foreign.post(page).status_code in (302, 404)
    assert len(archived()) == 3
    # It moves no money, so nobody is asked who they are, however long ago they signed in.
    with override_settings(ACCOUNT_REAUTHENTICATION_TIMEOUT=0):
        assert clerk.post(page, follow=True).status_code == 200
    assert archived() == set()
    assert "bring back" in AuditEntry.objects.values_list("action", flat=True)


def test_a_clerk_finds_archived_payments_by_their_order_and_invoice_numbers(
    shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _, _ = captured(shop)
    shop.api.pay(merchantTransactionId="order-4711")
    billed = shop.api.pay(merchantInvoiceId="invoice-9").id
    other = stranger.api.pay(merchantTransactionId="order-4711").id
    assert later(monkeypatch) == 6
    again = shop.api.pay(merchantTransactionId="order-4711").id
    clerk = signed_in(person("clerk", Role.CLERK, shop.merchant))

    def addresses(asked: str) -> tuple[int, set[str]]:
        page = clerk.get("/admin/gateway/payment/", {"q": asked})
        text = (page.content.decode() or page.get("Location", "")).replace("-", "")
        return page.status_code, {one for one in (first, billed, other, again) if one in text}

    assert addresses("order-4711") == (200, {first, again})
    assert addresses("invoice-9") == (302, {billed})
    assert addresses("order-4712") == (200, set())
    Payment.objects.filter(pk=again).update(merchant_transaction_id="else")
    assert addresses("order-4711") == (200, {first})


@pytest.mark.parametrize(("days", "fault"), [(0, False), (1_094, True), (1_095, False), (-1, True)])
def test_too_short_a_time_is_refused(settings: Any, days: int, fault: bool) -> None:
    settings.GATEWAY_PAYMENT_HOT_DAYS = days
    assert ("tollhouse.E051" in {message.id for message in run_checks()}) is fault


def test_what_is_erased_of_a_forgotten_person_is_not_archived() -> None:
    (table,) = [one for one in PERSONAL_DATA if one.model == PAYMENTS]
    erased = {column.name for column in table.columns if column.erasing is Erasing.ERASE}
    filtered = {column.name for column in table.columns if column.erasing is Erasing.FILTER}
    sample = Payment(request={"customer": {"email": "a@shop.example"}}, answer={"card": {"holder": "A"}})
    changes = json.loads(payment_archiving._render_changes(sample))
    assert set(changes) == erased | filtered | {"duplicate_guard"}
    assert "customer" not in changes["request"]
    assert "card" not in changes["answer"]

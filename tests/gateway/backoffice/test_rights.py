"""Every page of the back office, as every role, as a user of another merchant, and as a stranger.

Nobody sees another merchant's rows: not by list, search, filter, export, address, autocomplete, popup or action.
Source: design goals R11; Part A, Authentication, 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Model
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from chargebacks import ledger
from chargebacks.models import Chargeback
from checkout.models import Checkout, OfferRule, PaymentLink, PaymentPageStyle
from gateway.access import audit_log, permissions
from gateway.access.permissions import PERMISSIONS_BY_ROLE, ROLES_BY_PERMISSION, RowOwner
from gateway.backoffice.kit.base import InstallationPage, MerchantPage
from gateway.connectors.sepa import file_planning
from gateway.connectors.sepa.connector import SEPA
from gateway.core import clock, identifiers
from gateway.models import (
    AcquirerAccount,
    AcquirerCost,
    AuditEntry,
    Authentication,
    BankFile,
    BankOrder,
    BatchedCapture,
    CaptureBatch,
    Channel,
    ErasureRequest,
    Grant,
    Merchant,
    Notification,
    Payment,
    ProcessorEvent,
    Psp,
    RequestLog,
    Role,
    RoutingRule,
    RoutingTarget,
    ThreeDSecureConfiguration,
    WebhookDelivery,
    WebhookEndpoint,
)
from gateway.models.webhooks import INSPECTOR_URL_PREFIX
from gateway.notifications import endpoints
from gateway.scheduling.models import Job
from reporting.models import ClearingInstitute, MonthClosing, Settlement, SettlementRecord
from reporting.reconciliation.models import ReconciliationFile
from tests.support import sepa, settlement, shopper, subscriptions
from tests.support.clock import jump
from tests.support.fixtures import BY, Shop, open_division, open_shop
from tests.support.office import person, signed_in
from tests.support.threeds import buy

pytestmark = pytest.mark.django_db
ROLES = list(Role)
each_role = pytest.mark.parametrize("role", ROLES)
OF_MERCHANTS = sorted(
    (model for model, page in admin.site._registry.items() if isinstance(page, MerchantPage)),
    key=lambda model: model._meta.label,
)
OF_INSTALLATION = sorted(
    (model for model, page in admin.site._registry.items() if isinstance(page, InstallationPage)),
    key=lambda model: model._meta.label,
)


def furnish(shop: Shop) -> None:
    """A merchant with a row on every page."""
    account = AcquirerAccount.objects.create(channel=shop.channel, connector="stub", acquirer_merchant_id="4711")
    AcquirerCost.objects.create(account=account, percent=1, valid_from=date(2026, 1, 1))
    rule = RoutingRule.objects.create(channel=shop.channel, name="All to one")
    RoutingTarget.objects.create(rule=rule, account=account)
    ProcessorEvent.objects.create(
        account=account,
        event_id="evt_1",
        kind="refund.created",
        object_id="re_1",
        state="flagged",
        due_at=clock.real_now(),
        created_at=clock.real_now(),
    )
    assert shop.api.pay(merchantTransactionId="order-4711").status == 200
    assert shop.api.pay(amount="92.1").status == 400
    authenticating = shop.open_channel("authenticating", three_d_secure=True)
    ThreeDSecureConfiguration.objects.create(channel=authenticating)
    assert buy(shop.api_of(authenticating), "4200000000000091").status == 200
    assert shopper.create(shop.api).status == 200
    OfferRule.objects.create(merchant=shop.merchant, name="No night wallets")
    link = {"amount": "92.00", "currency": "EUR", "paymentType": "DB"}
    assert shop.api.post("/v1/paymentLinks", link).status == 200
    PaymentPageStyle.objects.create(channel=shop.channel, accent="#aa3300")
    audit_log.record_audit_entry(BY, "change", shop.channel)
    ErasureRequest.objects.create(
        merchant=shop.merchant,
        kind="customer",
        value="4711",
        shown="4•••",
        reason="a letter",
        asked_by=User.objects.get_or_create(username="fina")[0],
        asked_by_name="fina",
        asked_at=clock.real_now(),
    )
    inspector, _secret = endpoints.create_endpoint(shop.merchant, INSPECTOR_URL_PREFIX, by=BY)
    assert endpoints.activate_endpoint(inspector, by=BY).active
    subscriptions.started(shop.api, subscriptions.store_card(shop.api), job__expression="0 0 6 1 * ? *")
    keep_books(shop)


def keep_books(shop: Shop) -> None:
    """A line that waits for somebody, a dispute, a reconciliation file."""
    of = ClearingInstitute.objects.filter(key="simulated").first() or settlement.institute()
    own = shop.channel.pk.hex
    row = settlement.line(ClearingInstituteMerchantId=own, ConnectorTxId1=f"unknown-{own[:8]}", Amount="7.77")
    assert settlement.take_in(settlement.csv([row]), of, f"{shop.merchant.name}.csv").unmatched == 1
    paid = settlement.payment_of(shop.api.pay().id)
    ledger.record_chargeback(paid, Decimal("10.00"), by=BY)
    bank_books(shop)
    batch_books(shop)
    now = clock.real_now()
    ReconciliationFile.objects.create(
        merchant=shop.merchant, day=now.date(), begins_at=now, ends_at=now, names={}, offset=timedelta()
    )
    MonthClosing.objects.create(
        merchant=shop.merchant,
        month=(now.date().replace(day=1) - timedelta(days=1)).replace(day=1),
        figures={"payouts": [], "balances": []},
        digest="0" * 64,
        prepared_by=User.objects.get_or_create(username="fina")[0],
        prepared_by_name="fina",
        prepared_at=now,
    )


def batch_books(shop: Shop) -> None:
    """A capture in a batch that nobody has sent."""
    channel = shop.open_channel("captures by batch")
    host = AcquirerAccount.objects.create(
        channel=channel,
        connector="iso8583",
        acquirer_merchant_id="M-1",
        settings={"host": "127.0.0.1", "port": "1", "terminal": "TERM0001", "capture": "batch"},
    )
    batch = CaptureBatch.objects.create(
        merchant=shop.merchant,
        channel=channel,
        acquirer_merchant_id=host.acquirer_merchant_id,
        number=1,
        currency="EUR",
        count=1,
        total=Decimal("60.00"),
        opened_at=clock.real_now(),
    )
    for state, of in (("IN_BATCH", batch), ("WAITING", None)):
        BatchedCapture.objects.create(
            payment=identifiers.row_id(),
            merchant=shop.merchant,
            channel=channel,
            acquirer_merchant_id="M-1",
            state=state,
            batch=of,
            amount=Decimal("60.00"),
            currency="EUR",
            created_at=clock.real_now(),
            present_at=clock.real_now(),
        )


def bank_books(shop: Shop) -> None:
    """A collection in a file."""
    channel = shop.open_channel("direct debits")
    sepa.account_at_bank(channel)
    sepa.debit(shop.api_of(channel))
    jump(4 * 24 * 3600)
    assert file_planning.plan_due_bank_files(SEPA, shop.merchant) == 1
    Merchant.objects.update(clock_offset=timedelta())


@pytest.fixture(scope="module")
def own(module_db: None) -> Shop:
    shop = open_shop(open_division(), "Shop")
    furnish(shop)
    return shop


@pytest.fixture(scope="module")
def theirs(own: Shop) -> Shop:
    stranger = open_shop(own.merchant.division, "Stranger")
    furnish(stranger)
    return stranger


def base(model: type[Model]) -> str:
    return f"/admin/{model._meta.app_label}/{model._meta.model_name}/"


def rows(model: type[Model], shop: Shop) -> list[Model]:
    """The rows of one merchant, as the page itself places them."""
    page: Any = admin.site._registry[model]
    return [row for row in model._default_manager.all() if page.place(row).merchant == shop.merchant.pk]


def pages(model: type[Model], row: Model) -> Iterator[str]:
    for verb in ("change", "history", "delete"):
        yield f"{base(model)}{row.pk}/{verb}/"


def unknown(path: str) -> str:
    """The same page of a row that does not exist."""
    base, row, verb, _ = path.rsplit("/", 3)
    return f"{base}/{'0' * len(row)}/{verb}/"


# --- every address --------------------------------------------------------------------------------------------------


def addresses(resolver: URLResolver | None = None, prefix: str = "") -> Iterator[str]:
    """Every pattern below /admin/, with something in place of what varies."""
    for each in (resolver or get_resolver()).url_patterns:
        path = prefix + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from addresses(each, path)
        elif isinstance(each, URLPattern) and path.startswith("admin/"):
            yield "/" + path


def concrete(pattern: str, row: str) -> str:
    plain = re.sub(r"<[a-z]+:object_id>|<path:[a-z_]+>", row, pattern)
    plain = re.sub(r"<int:[a-z_]+>", "1", plain)
    plain = re.sub(r"<(?:str:|uuid:|slug:)?[a-z0-9_]+>", row, plain)
    return re.sub(r"\(\?P<[a-z_]+>[^)]*\)|\\|\$|\^|\?", "", plain)


OPEN_TO_STRANGERS = ("/admin/login/", "/admin/language", "/admin/jsi18n/")


def test_a_stranger_opens_no_address_of_the_back_office(client: Client, own: Shop) -> None:
    """A test walks every admin address as a stranger."""
    row = str(Payment.objects.values_list("pk", flat=True)[0])
    for path in {concrete(pattern, row) for pattern in addresses()} - set(OPEN_TO_STRANGERS):
        for answer in (client.get(path), client.post(path, {})):
            assert answer.status_code in (301, 302, 403, 404, 405), (path, answer.status_code)
            if answer.status_code == 302:
                assert answer["Location"].startswith("/admin/"), path
            assert "order-4711" not in answer.content.decode(), path


@each_role
def test_no_address_fails_or_shows_another_merchants_rows(role: Role, own: Shop, theirs: Shop) -> None:
    """Every admin address as every role."""
    node = own.merchant if role != Role.PSP else Psp.objects.create(name="Elsewhere")
    client = signed_in(person("somebody", role, node))
    hidden = {theirs.merchant.pk.hex, str(theirs.merchant.pk), theirs.channel.pk.hex, theirs.merchant.name}
    for path in sorted({concrete(pattern, str(theirs.merchant.pk)) for pattern in addresses()}):
        if path.startswith("/admin/logout"):
            continue
        answer = client.get(path)
        assert answer.status_code < 500, path
        assert not [each for each in hidden if each in answer.content.decode()], path


# --- lists, addresses, search, filters, popups, autocomplete --------------------------------------------------------


@pytest.mark.parametrize("model", OF_MERCHANTS, ids=lambda model: model._meta.label)
def test_a_page_shows_a_users_own_rows_and_nobody_elses(model: type[Model], own: Shop, theirs: Shop) -> None:
    """Design goals R11: another merchant's row looks like one that does not exist."""
    right = f"{model._meta.app_label}.view_{model._meta.model_name}"
    role = next(role for role in (Role.MANAGER, Role.AUDITOR, Role.CLERK) if right in PERMISSIONS_BY_ROLE[role])
    client = signed_in(person("somebody", role, own.merchant))
    mine, others = rows(model, own), rows(model, theirs)
    if model._meta.label in ROWS_OF_THEIR_OWN:
        assert mine, "no row to try with"
        assert others
    listed = client.get(base(model)).content.decode()
    searched = client.get(base(model), {"q": "Stranger"}).content.decode()
    popup = client.get(base(model), {"_popup": "1"}).content.decode()
    for row in others:
        for page in (listed, searched, popup):
            assert f"{base(model)}{row.pk}/" not in page
        assert client.get(f"{base(model)}{row.pk}/change/").status_code == 404
        for path in pages(model, row):
            assert client.get(path).status_code == client.get(unknown(path)).status_code in (403, 404), path
            assert client.post(path, {"post": "yes"}).status_code in (403, 404), path
    for row in mine:
        assert client.get(f"{base(model)}{row.pk}/change/").status_code == 200
        assert client.get(f"{base(model)}{row.pk}/history/").status_code == 200
    assert mine == [] or f"{base(model)}{mine[-1].pk}/change/" in listed
    stranger = signed_in(person("nobody", Role.MANAGER, open_shop(own.merchant.division, "Third").merchant))
    for row in mine:
        assert stranger.get(f"{base(model)}{row.pk}/change/").status_code == 404
    assert f"{base(model)}{mine[-1].pk}/" not in stranger.get(base(model)).content.decode() if mine else True


ROWS_OF_THEIR_OWN = {
    each._meta.label
    for each in (
        AcquirerAccount,
        AuditEntry,
        Authentication,
        BankFile,
        BankOrder,
        BatchedCapture,
        CaptureBatch,
        Channel,
        Chargeback,
        Checkout,
        Job,
        Merchant,
        MonthClosing,
        Notification,
        OfferRule,
        Payment,
        PaymentLink,
        PaymentPageStyle,
        ReconciliationFile,
        RequestLog,
        RoutingRule,
        Settlement,
        SettlementRecord,
        ThreeDSecureConfiguration,
        WebhookDelivery,
        WebhookEndpoint,
    )
}


@pytest.mark.parametrize("model", OF_INSTALLATION, ids=lambda model: model._meta.label)
@each_role
def test_what_belongs_to_the_installation_is_psp_staffs(role: Role, model: type[Model], own: Shop) -> None:
    """Rights by entity tree."""
    node = own.merchant if role != Role.PSP else own.merchant.division.psp
    client = signed_in(person("somebody", role, node))
    assert client.get(base(model)).status_code == (200 if role == Role.PSP else 403)
    for row in model._default_manager.all()[:1]:
        for path in pages(model, row):
            assert client.get(path).status_code in ((200, 403) if role == Role.PSP else (403, 404)), path


def test_a_filter_offers_own_merchants_only(own: Shop, theirs: Shop) -> None:
    """Not by list, search, export, address or autocomplete."""
    client = signed_in(person("somebody", Role.MANAGER, own.merchant))
    page = client.get("/admin/gateway/channel/").content.decode()
    assert own.merchant.name in page
    assert theirs.merchant.name not in page
    page = client.get("/admin/gateway/channel/", {"merchant__id__exact": str(theirs.merchant.pk)}).content.decode()
    assert theirs.channel.name not in page


def test_autocomplete_offers_own_rows_only(own: Shop, theirs: Shop) -> None:
    """Not by autocomplete."""
    client = signed_in(person("somebody", Role.MANAGER, own.merchant))
    asked = {"app_label": "gateway", "model_name": "channel", "field_name": "merchant", "term": ""}
    assert [each["text"] for each in client.get("/admin/autocomplete/", asked).json()["results"]] == ["Shop"]
    asked["term"] = "Stranger"
    assert client.get("/admin/autocomplete/", asked).json()["results"] == []
    clerk = signed_in(person("clerk", Role.CLERK, own.merchant))
    asked |= {"model_name": "acquireraccount", "field_name": "channel", "term": "Stranger"}
    assert clerk.get("/admin/autocomplete/", asked).json()["results"] == []


def test_a_form_takes_no_row_of_another_merchant(own: Shop, theirs: Shop) -> None:
    """What is not offered is not taken either."""
    client = signed_in(person("somebody", Role.MANAGER, own.merchant))
    form = {
        "name": "sneaked in",
        "merchant": str(theirs.merchant.pk),
        "position": "1",
        "parameters": "normal",
        "agreement_ids": "none",
        "limits": "{}",
        "card_testing": "{}",
    }
    answer = client.post("/admin/gateway/channel/add/", form)
    assert answer.status_code == 200
    assert not Channel.objects.filter(name="sneaked in").exists()


def test_a_right_of_one_merchant_is_none_on_another(own: Shop, theirs: Shop) -> None:
    """Manager of one merchant and auditor of another: changes the first, looks at the second."""
    user = person("somebody", Role.MANAGER, own.merchant)
    Grant.objects.create(user=user, role=Role.AUDITOR, merchant=theirs.merchant)
    client = signed_in(user)
    for shop, status in ((own, 200), (theirs, 403)):
        path = f"/admin/gateway/channel/{shop.channel.pk}/change/"
        assert client.get(path).status_code == 200
        assert client.post(path, {"name": ""}).status_code == status


def test_a_grant_on_a_channel_reaches_that_channel_alone(own: Shop) -> None:
    """Rights by entity tree, down to a channel."""
    other = own.open_channel("other")
    assert own.api_of(other).pay(merchantTransactionId="other-4711").status == 200
    client = signed_in(person("somebody", Role.CLERK, own.channel))
    page = client.get("/admin/gateway/payment/").content.decode()
    seen = Payment.objects.filter(channel=own.channel).first()
    hidden = Payment.objects.filter(channel=other).first()
    assert seen is not None
    assert hidden is not None
    assert str(seen.pk) in page
    assert str(hidden.pk) not in page
    assert client.get(f"/admin/gateway/payment/{hidden.pk}/change/").status_code == 404
    assert client.get(f"/admin/gateway/merchant/{own.merchant.pk}/change/").status_code == 404


def test_a_grant_above_reaches_all_below(own: Shop, theirs: Shop) -> None:
    """Rights by entity tree, from PSP and division down."""
    psp = own.merchant.division.psp
    for node in (psp, own.merchant.division):
        user = person(f"at {node.name}", Role.MANAGER, node)
        assert set(permissions.list_permitted_merchants(user)) == {own.merchant, theirs.merchant}
    elsewhere = Psp.objects.create(name="Another")
    user = person("there", Role.PSP, elsewhere)
    assert set(permissions.list_permitted_merchants(user)) == set()
    assert (
        permissions.find_access_scope(User.objects.get(username="at PSP"), "gateway.view_payment").everything is False
    )


# --- the table of rights --------------------------------------------------------------------------------------------


def test_every_right_names_a_page_or_a_verb_of_ours() -> None:
    """No right that opens nothing."""
    verbs = {"operate", "approve", "export", "issue", "move"}
    for right in ROLES_BY_PERMISSION:
        app, _, rest = right.partition(".")
        verb, _, model = rest.partition("_")
        if verb in verbs or model == "vault":
            continue
        assert verb in ("view", "add", "change", "delete"), right
        assert apps.get_model(app, model), right


def test_an_auditor_changes_nothing_and_only_psp_staff_has_it_all() -> None:
    """PSP staff, managers, clerks, developers, auditors."""
    assert {right.partition(".")[2].partition("_")[0] for right in PERMISSIONS_BY_ROLE[Role.AUDITOR]} == {
        "view",
        "export",
    }
    assert PERMISSIONS_BY_ROLE[Role.PSP] == set(ROLES_BY_PERMISSION)
    assert PERMISSIONS_BY_ROLE[Role.CLERK] < PERMISSIONS_BY_ROLE[Role.MANAGER] | {"gateway.view_payment"}


def test_an_inactive_user_has_no_right(own: Shop) -> None:
    user = person("gone", Role.MANAGER, own.merchant)
    User.objects.filter(pk=user.pk).update(is_active=False)
    gone = User.objects.get(pk=user.pk)
    assert not permissions.has_permission(gone, "gateway.view_payment")
    assert list(permissions.list_permitted_merchants(gone)) == []
    assert not gone.has_perm("gateway.view_payment")


def test_the_most_generous_grant_says_when_a_second_person_is_needed(own: Shop, theirs: Shop) -> None:
    """Four eyes above a limit per role."""
    user = person("clerk", Role.CLERK, own.merchant, four_eyes_above=Decimal("100"), four_eyes_day=Decimal("900"))
    right, place = "gateway.operate_payment", RowOwner(merchant=own.merchant.pk, channel=own.channel.pk)
    assert permissions.find_four_eyes_limits(user, right, place) == (Decimal("100"), Decimal("900"))
    Grant.objects.create(
        user=user, role=Role.CLERK, channel=own.channel, four_eyes_above=Decimal("500"), four_eyes_day=Decimal("700")
    )
    again = User.objects.get(pk=user.pk)
    assert permissions.find_four_eyes_limits(again, right, place) == (Decimal("500"), Decimal("900"))
    with pytest.raises(LookupError):
        permissions.find_four_eyes_limits(again, right, RowOwner(merchant=theirs.merchant.pk))
    with pytest.raises(LookupError):
        permissions.find_four_eyes_limits(again, "gateway.approve_payment", place)


@pytest.mark.parametrize(
    "values", [{"role": "clerk"}, {"role": "king"}, {"role": "psp", "merchant": True}, {"merchant": True, "channel": 1}]
)
def test_the_database_refuses_a_grant_that_means_nothing(own: Shop, values: dict[str, Any]) -> None:
    """One node each; PSP staff at a PSP."""
    user = person("somebody", Role.CLERK)
    fields = {"role": "clerk"} | values
    fields |= {name: getattr(own, name) for name in ("merchant", "channel") if name in values}
    with pytest.raises(IntegrityError), transaction.atomic():
        Grant.objects.create(user=user, **fields)

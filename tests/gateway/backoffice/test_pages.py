"""Every page of the back office opens for those who may, and for nobody else; none shows a card.

Source: design goals, back office; Part A, Authentication, 2.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.utils.functional import Promise

from gateway.backoffice.kit.base import BackofficePage
from gateway.backoffice.operations import system_views
from gateway.backoffice.routing.rule_pages import RoutingTrialForm
from gateway.backoffice.schedules.retry_trial_pages import RetryTrialForm
from gateway.backoffice.webhooks.webhook_forms import EndpointForm
from gateway.models import (
    AccessToken,
    AcquirerAccount,
    AuditEntry,
    Channel,
    Merchant,
    Payment,
    RequestLog,
    Role,
    ThreeDSecureConfiguration,
)
from reporting.admin.sftp_sources import SftpSourceForm
from tests.support.client import Answer
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.threeds import buy

pytestmark = pytest.mark.django_db
PAN, CVV = "5454545454545454", "731"
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
each_model = pytest.mark.parametrize("model", MODELS, ids=[model._meta.label for model in MODELS])


@pytest.fixture
def boss() -> Client:
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_superuser("boss"))
    return client


@pytest.fixture
def staff() -> Client:
    """May sign in and has no right at all."""
    client = Client(raise_request_exception=False)
    client.force_login(User.objects.create_user("staff", is_staff=True))
    return client


@pytest.fixture
def paid(shop: Shop) -> Answer:
    """A merchant with some of everything: a payment, a follow-up, a decline, a validation error."""
    AcquirerAccount.objects.create(channel=shop.channel, connector="simulator", acquirer_merchant_id="4711")
    answer = shop.api.pay(card__number=PAN, card__cvv=CVV, paymentBrand="MASTER", merchantTransactionId="order-4711")
    assert answer.status == 200
    assert shop.api.follow(answer.id, "RF", "1.00").status == 200
    assert shop.api.pay(card__number="4444444444444444").status == 400
    authenticating = shop.open_channel("authenticating", three_d_secure=True)
    ThreeDSecureConfiguration.objects.create(channel=authenticating)
    assert buy(shop.api_of(authenticating), PAN, card__cvv=CVV).status == 200
    assert shop.api.pay(amount="92.1", card__number=PAN, card__cvv=CVV).status == 400
    return answer


def paths(model: type[Model]) -> list[str]:
    base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    found = [base, f"{base}?q=4711", f"{base}?q=%00", f"{base}?o=1", f"{base}add/", f"{base}nonsense/change/"]
    for row in model._default_manager.all()[:3]:
        found += [f"{base}{row.pk}/{verb}/" for verb in ("change", "history", "delete")]
    return found


def test_the_back_office_has_the_pages_it_is_for() -> None:
    """Issue: a plain admin for now: entities, tokens, payments, requests, the audit trail."""
    ours = {model.__name__ for model in MODELS if model._meta.app_label == "gateway"}
    assert {
        "Psp",
        "Division",
        "Merchant",
        "Channel",
        "AcquirerAccount",
        "AccessToken",
        "Payment",
        "Notification",
        "RequestLog",
        "AuditEntry",
        "Authentication",
        "ThreeDSecureConfiguration",
    } <= ours


@each_model
def test_every_page_opens_for_a_superuser_and_shows_no_card_number_or_code(
    boss: Client, paid: Answer, model: type[Model]
) -> None:
    """Goals: no page of the back office fails; R8: not even a superuser sees a card."""
    answers = {path: boss.get(path) for path in paths(model)}
    statuses = {path: answer.status_code for path, answer in answers.items()}
    assert {path: status for path, status in statuses.items() if status not in (200, 302, 403, 404)} == {}
    assert statuses[f"{next(iter(statuses))}nonsense/change/"] == 404
    assert statuses[next(iter(statuses))] == 200
    for path, answer in answers.items():
        page = answer.content.decode()
        assert PAN not in page, path
        assert f'"{CVV}"' not in page, path
        assert f"&#x27;{CVV}&#x27;" not in page, path
        assert f"&quot;{CVV}&quot;" not in page, path


@each_model
def test_no_page_opens_for_a_user_without_rights(staff: Client, paid: Answer, model: type[Model]) -> None:
    """Goals: rights are asked on every page."""
    for path in paths(model):
        assert staff.get(path).status_code in (302, 403, 404), path
        assert staff.post(path, {"action": "delete_selected"}).status_code in (302, 403, 404), path


@each_model
def test_no_page_opens_for_a_visitor(client: Client, paid: Answer, model: type[Model]) -> None:
    """Goals: rights are asked on every page."""
    for path in paths(model):
        answer = client.get(path)
        assert answer.status_code == 302, path
        assert answer["Location"].startswith("/admin/login/")


@pytest.mark.parametrize("path", ["/admin/", "/admin/gateway/", "/admin/password_change/", "/admin/jsi18n/"])
def test_the_common_pages_open(boss: Client, client: Client, path: str) -> None:
    """Goals: no page of the back office fails."""
    assert boss.get(path).status_code == 200
    assert client.get(path).status_code in (200, 302)


def test_a_payments_page_tells_what_happened(boss: Client, paid: Answer) -> None:
    row = Payment.objects.get(pk=paid.id)
    page = boss.get(f"/admin/gateway/payment/{row.pk}/change/").content.decode()
    for text in ("begun", "approved", "545454******5454", paid.body["ndc"], "order-4711"):
        assert text in page


@pytest.mark.parametrize("how", ["id", "ndc", "merchantTransactionId", "uuid"])
def test_a_payment_is_found_by_what_the_merchant_has_of_it(boss: Client, paid: Answer, how: str) -> None:
    """B18.4: follow the printed ndc in the back office."""
    term = {
        "id": paid.id,
        "ndc": paid.body["ndc"],
        "merchantTransactionId": "order-4711",
        "uuid": str(Payment.objects.get(pk=paid.id).pk).replace("-", ""),
    }[how]
    answer = boss.get("/admin/gateway/payment/", {"q": term})
    # What names one payment opens it; what several may have lists them.
    shown = answer["Location"] if answer.status_code == 302 else answer.content.decode()
    assert f"/admin/gateway/payment/{Payment.objects.get(pk=paid.id).pk}/change/" in shown


def test_a_search_for_nothing_known_finds_nothing(boss: Client, paid: Answer) -> None:
    for term in ("0" * 32, "nonsense", "'; DROP TABLE", "-", "1234.5678.9012"):
        page = boss.get("/admin/gateway/payment/", {"q": term})
        assert page.status_code == 200
        assert paid.id not in page.content.decode()


@pytest.mark.parametrize("model", [Payment, RequestLog, AuditEntry])
def test_what_happened_is_not_changed_by_hand(boss: Client, paid: Answer, model: type[Model]) -> None:
    """Goals: payments, requests and the audit trail are looked at only."""
    base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
    row = model._default_manager.first()
    assert row is not None
    assert boss.get(f"{base}add/").status_code == 403
    assert boss.post(f"{base}{row.pk}/change/", {"status": "DECLINED"}).status_code == 403
    assert boss.post(f"{base}{row.pk}/delete/", {"post": "yes"}).status_code == 403


def test_a_change_of_a_channel_leaves_what_was_before_and_after(boss: Client, shop: Shop) -> None:
    """Goals: an audit trail with before and after."""
    path = f"/admin/gateway/channel/{shop.channel.pk}/change/"
    form = boss.get(path).context["adminform"].form
    data = {name: "" if value is None else value for name, value in form.initial.items()}
    data |= {"name": "Renamed", "limits": "{}", "brands": "VISA,MASTER", "currencies": "", "active": "on"}
    data = {name: value for name, value in data.items() if value is not False}
    assert boss.post(path, data).status_code == 302
    entry = AuditEntry.objects.get(subject="channel")
    assert (entry.actor, entry.action, entry.subject_id) == ("boss", "change", str(shop.channel.pk))
    assert (entry.before["name"], entry.after["name"]) == ("Shop: main", "Renamed")
    assert (entry.before["brands"], entry.after["brands"]) == ([], ["VISA", "MASTER"])
    assert shop.api.pay().status == 200


@pytest.mark.parametrize(
    "limits",
    ['{"nonsense": null}', '{"*": 5}', '{"*": {"limit": 0, "window_s": 1}}', '{"*": {"limit": 1}}', '{"*": true}', "x"],
)
def test_limits_that_mean_nothing_are_not_saved(boss: Client, shop: Shop, limits: str) -> None:
    """Part A, Limits."""
    path = f"/admin/gateway/channel/{shop.channel.pk}/change/"
    data = {"name": "x", "merchant": str(shop.merchant.pk), "position": "1", "parameters": "normal", "limits": limits}
    assert boss.post(path, data).status_code == 200
    assert Channel.objects.get().limits == {"*": None}


@pytest.mark.parametrize("model", [Merchant, Channel])
def test_an_entity_is_switched_off_and_never_deleted(boss: Client, shop: Shop, model: type[Model]) -> None:
    """Goals: nothing that payments hang on disappears."""
    row = model._default_manager.get()
    assert boss.post(f"/admin/gateway/{model._meta.model_name}/{row.pk}/delete/", {"post": "yes"}).status_code == 403
    assert model._default_manager.filter(pk=row.pk).exists()


def test_a_page_carries_a_policy_that_lets_nothing_foreign_in(boss: Client) -> None:
    """Goals: a strict policy; the theme's expressions and its style element are let through here, and nowhere else."""
    policy = directives(boss.get("/admin/"))
    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == ["'self'", "'unsafe-eval'"]
    assert policy["style-src"] == ["'self'", "'unsafe-inline'"]
    assert policy["frame-ancestors"] == ["'none'"]
    for elsewhere in ("/", "/docs", "/demo/", "/administration", "/admin"):
        assert "unsafe" not in str(directives(boss.get(elsewhere))["script-src"]), elsewhere
        assert "unsafe" not in str(directives(boss.get(elsewhere))["style-src"]), elsewhere


def directives(answer: HttpResponse) -> dict[str, list[str]]:
    """The Content-Security-Policy of an answer: directive → sources."""
    return {name: sources for name, *sources in map(str.split, answer["Content-Security-Policy"].split(";"))}


def test_the_navigation_leads_nobody_to_a_closed_door(shop: Shop, stranger: Shop) -> None:
    """Without the right the line is not there. Found in use: settlement files of every merchant's."""
    manager = signed_in(person("max", Role.MANAGER, shop.merchant))
    links = set(
        re.findall(
            r'href="(/admin/(?:gateway|reporting|chargebacks|checkout|scheduling)/[a-z]+/)"',
            manager.get("/admin/").content.decode(),
        )
    )
    assert "/admin/gateway/payment/" in links
    assert "/admin/reporting/settlementfile/" not in links
    assert {link: manager.get(link).status_code for link in links} == dict.fromkeys(links, 200)
    staff = signed_in(person("petra", Role.PSP, shop.merchant.division.psp))
    assert "/admin/reporting/settlementfile/" in staff.get("/admin/").content.decode()


def test_every_page_of_the_navigation_loads_the_frames_own_files(boss: Client) -> None:
    """Found in use: a page's context had a name of the theme's, and the page asked for files that do not exist."""
    links = set(re.findall(r'href="(/admin/[a-z_-]+/(?:[a-z]+/)*)"', boss.get("/admin/").content.decode()))
    assert "/admin/payment-page-security/" in links
    for link in sorted(links):
        answer = boss.get(link)
        if answer.status_code == 302:
            continue  # asks who it is first
        page = answer.content.decode()
        assert 'src="/static/admin-tollhouse' in page, link
        assert "{'" not in page.partition("</head>")[0], link


def test_labels_of_forms_begin_with_a_capital_letter() -> None:
    """Whoever declares a field writes its label as part of a sentence or not: readers see one manner. A label without
    translation is a name, such as that of a connector's setting."""
    boss = RequestFactory().get("/admin/")
    boss.user = User.objects.create_superuser("boss")
    forms = [
        page.get_form(boss).base_fields for page in admin.site._registry.values() if isinstance(page, BackofficePage)
    ]
    forms += [
        kind.base_fields
        for kind in (RoutingTrialForm, EndpointForm, RetryTrialForm, SftpSourceForm, system_views.TestClockForm)
    ]
    labels = [str(field.label) for fields in forms for field in fields.values() if isinstance(field.label, Promise)]
    assert len(labels) > 100
    assert [label for label in labels if label[:1].islower()] == []


def test_a_page_that_is_opened_again_and_again_leaves_the_labels_of_its_form_as_they_were() -> None:
    """Each opening wrapped the labels of declared fields once more, which made each next one twice as slow."""
    boss = RequestFactory().get("/admin/")
    boss.user = User.objects.create_superuser("boss")
    page = admin.site._registry[AccessToken]
    declared = page.form.declared_fields
    before = {name: field.label for name, field in declared.items()}
    assert isinstance(before["operations"], Promise)
    for _time in range(2):
        kind = page.get_form(boss)
        assert {name: field.label for name, field in declared.items() if field.label is not before[name]} == {}
        assert str(kind.base_fields["operations"].label) == "Operations"
        # A page may make a form of its own of it.
        own: Any = type("Own", (kind,), {})
        assert str(own.base_fields["operations"].label) == "Operations"


def test_the_label_of_a_connectors_setting_is_its_name() -> None:
    """merchantId is written so in documents and in the processor's own pages."""
    boss = RequestFactory().get("/admin/", {"connector": "iso8583"})
    boss.user = User.objects.create_superuser("boss")
    fields = admin.site._registry[AcquirerAccount].get_form(boss).base_fields
    assert "host *" in [field.label for field in fields.values()]

"""Addresses to which money, files, keys and notifications go are changed only after a recent authentication."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from django.contrib.auth.models import User
from django.db.models import Model

from gateway.models import AcquirerAccount, Approval, AuditEntry, Payment, Role, WalletKey, WebhookEndpoint
from gateway.notifications import endpoints
from gateway.scheduling.models import Job
from gateway.wallets import sandbox_tokens as wallets
from reporting.reconciliation.models import SftpTarget
from reporting.settlement.models import SftpSource
from tests.support import settlement
from tests.support.fixtures import BY, Shop
from tests.support.office import person, signed_in
from tests.support.subscriptions import started, store_card

pytestmark = pytest.mark.django_db
SERVER = {
    "verb": "save", "host": "127.0.0.1", "port": "1", "username": "u", "folder": ".", "kind": "password",
    "secret": "correct-horse",
    "host_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1v0pXfYy7cM5m1mX0rOqZC1pQZ0m8m1m2m3m4m5m6m",
}  # fmt: skip


@pytest.fixture
def boss(shop: Shop) -> User:
    return person("boss", Role.MANAGER, shop.merchant)


def wallet_key(shop: Shop) -> tuple[str, dict[str, str]]:
    wallets.generate_channel_keys(shop.channel)
    key = WalletKey.objects.earliest("created_at")
    return f"/admin/gateway/walletkey/{key.pk}/change/", {"name": "Another"}


def webhook(shop: Shop) -> tuple[str, dict[str, str]]:
    row, _secret = endpoints.create_endpoint(shop.merchant, "http://127.0.0.1:9000/", by=BY)
    form = {"url": "http://127.0.0.1:9001/", "kinds": "PAYMENT", "mode": "signed", "wrapper": "none"}
    return f"/admin/gateway/webhookendpoint/{row.pk}/edit/", form


def files_out(shop: Shop) -> tuple[str, dict[str, str]]:
    return f"/admin/reporting/reconciliationfile/target/{shop.merchant.pk}/", SERVER


def files_in(shop: Shop) -> tuple[str, dict[str, str]]:
    form = SERVER | {"pattern": "*.csv", "after_download": "leave", "moved_to": "", "every_s": "300"}
    return f"/admin/reporting/settlementfile/source/{settlement.institute().pk}/", form


def kept() -> list[object]:
    """Everything that these pages change, and what the trail has of it."""
    models: tuple[type[Model], ...] = (WalletKey, WebhookEndpoint, SftpTarget, SftpSource)
    rows = [list(model._default_manager.order_by("pk").values()) for model in models]
    return [rows, list(AuditEntry.objects.exclude(action__in=("view", "refused")).values_list("action", "subject"))]


@pytest.mark.parametrize("page", [wallet_key, webhook, files_out, files_in])
def test_what_redirects_money_files_or_keys_asks_who_one_is(shop: Shop, boss: User, page: object) -> None:
    """A session that was left open changes nothing; the same form of somebody who has just shown it does."""
    path, form = page(shop)  # type: ignore[operator]
    before = kept()
    answer = signed_in(boss, fresh=False).post(path, form)
    assert answer["Location"].startswith("/admin/again/?next=%2Fadmin%2F"), answer["Location"]
    assert kept() == before
    assert signed_in(boss).post(path, form).status_code == 302
    assert kept() != before


def test_an_acquirers_account_asks_who_one_is(shop: Shop) -> None:
    """Who gets the money: the page is not even shown."""
    account = AcquirerAccount.objects.create(channel=shop.channel, connector="stub", acquirer_merchant_id="4711")
    path = f"/admin/gateway/acquireraccount/{account.pk}/change/"
    boss = person("boss", Role.PSP, shop.merchant.division.psp)
    for method in ("get", "post"):
        answer = getattr(signed_in(boss, fresh=False), method)(path)
        assert answer["Location"].startswith("/admin/again/?next=%2Fadmin%2F")
    assert signed_in(boss).get(path).status_code == 200


def test_money_is_moved_by_who_has_just_shown_who_they_are(shop: Shop) -> None:
    """A session that was left open refunds, captures and approves nothing; a schedule stays as it is."""
    clerk = person("clara", Role.CLERK, shop.merchant, four_eyes_above="10.00")
    boss = person("max", Role.MANAGER, shop.merchant)
    shop.api.pay()
    form = f"/admin/gateway/payment/{Payment.objects.get().pk}/do/RF/"
    tired, awake = signed_in(clerk, fresh=False), signed_in(clerk)
    assert tired.get(form)["Location"] == f"/admin/again/?next={quote(form, safe='')}"
    key = re.findall(r'name="key" value="([^"]+)"', awake.get(form).content.decode())[0]
    for amount in ("1.00", "20.00"):
        assert tired.post(form, {"key": key, "amount": amount})["Location"].startswith("/admin/again/")
    assert not Payment.objects.filter(payment_type="RF").exists()
    assert not Approval.objects.exists()
    assert awake.post(form, {"key": key, "amount": "20.00"}).status_code == 302
    decide = f"/admin/gateway/approval/{Approval.objects.get().pk}/decide/"
    asked = signed_in(boss, fresh=False).post(decide, {"verb": "approve"})
    assert asked["Location"].startswith("/admin/again/?next=%2Fadmin%2Fgateway%2Fapproval%2F")
    assert Approval.objects.get().state == Approval.State.ASKED
    signed_in(boss).post(decide, {"verb": "approve"})
    assert Payment.objects.filter(payment_type="RF").count() == 1
    started(shop.api, store_card(shop.api), job__expression="0 0 6 1 * ? *")
    pause = f"/admin/scheduling/job/{Job.objects.get().pk}/do/pause/"
    assert tired.post(pause)["Location"].startswith("/admin/again/")
    assert Job.objects.get().state == Job.State.ACTIVE

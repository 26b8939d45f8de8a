"""What was configured by command has its page, and both refuse the same. The installation's own pages; the first page.

Source: issue 7 (everything that was configured by command gets its page here; pictures).
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.test import Client

from checkout.models import OfferRule
from gateway import clock
from gateway.admin import home
from gateway.models import AuditEntry, Channel, Merchant, Payment, RiskList, RiskSet, Role, WalletKey
from gateway.wallets import testing as wallets
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
SET = {"key": "EVERYDAY", "declineFrom": 50, "rules": [
    {"name": "throw-away", "when": {"kind": "disposable-email"}, "then": {"score": 60}},
]}  # fmt: skip


@pytest.fixture
def boss(shop: Shop) -> Client:
    return signed_in(person("boss", Role.MANAGER, shop.merchant))


def channel_form(shop: Shop, **changes: str) -> dict[str, str]:
    return {
        "name": "Shop: main", "merchant": str(shop.merchant.pk), "active": "on", "position": "100", "brands": "",
        "currencies": "", "parameters": "normal", "agreement_ids": "none", "limits": '{"*": null}',
        "card_testing": "{}", "risk_set": "", "time_zone": "",
    } | changes  # fmt: skip


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"brands": "VISSA"}, "did you mean VISA?"),
        ({"currencies": "EUX"}, "ISO 4217"),
        ({"limits": '{"paymnt": null}'}, "paymnt"),
        ({"card_testing": '{"failures": -1}'}, "failures"),
        ({"risk_set": "NOWHERE"}, "no active rule set"),
        ({"time_zone": "Mars/Olympus"}, "Select a valid choice"),
    ],
)
def test_a_channels_page_refuses_what_the_command_refuses(
    boss: Client, shop: Shop, changes: dict[str, str], words: str
) -> None:
    """Issue 7; docs/configuration.md."""
    page = boss.post(f"/admin/gateway/channel/{shop.channel.pk}/change/", channel_form(shop, **changes))
    assert page.status_code == 200
    assert words in page.content.decode()
    assert Channel.objects.get(pk=shop.channel.pk).brands == []


def test_a_channels_page_changes_what_payments_follow(boss: Client, shop: Shop) -> None:
    """Issue 7: channels, with the audit entry of the change."""
    form = channel_form(shop, brands="MASTER", time_zone="Europe/Berlin")
    assert boss.post(f"/admin/gateway/channel/{shop.channel.pk}/change/", form).status_code == 302
    assert shop.api.pay().status == 400
    assert Channel.objects.get(pk=shop.channel.pk).time_zone == "Europe/Berlin"
    entry = AuditEntry.objects.get(subject="channel", action="change")
    assert (entry.actor, entry.merchant) == ("boss", shop.merchant.pk)


def test_a_rule_set_is_written_here_and_screens(boss: Client, shop: Shop) -> None:
    """Issue 7: risk sets and rules; saved by the configuration's own section."""
    form = {"merchant": str(shop.merchant.pk), "document": json.dumps(SET)}
    assert boss.post("/admin/gateway/riskset/add/", form).status_code == 302
    row = RiskSet.objects.get()
    path = f"/admin/gateway/riskset/{row.pk}/change/"
    assert "throw-away" in boss.get(path).content.decode()
    assert boss.post(path, {"document": json.dumps(SET | {"declineFrom": 60})}).status_code == 302
    row.refresh_from_db()
    assert row.version == 2
    wrong: dict[str, Any] = SET | {"declineFrm": 1}
    page = boss.post(path, {"document": json.dumps(wrong)}).content.decode()
    assert "did you mean declineFrom?" in page
    assert "must stay EVERYDAY" in boss.post(path, {"document": json.dumps(SET | {"key": "X"})}).content.decode()
    boss.post(f"/admin/gateway/channel/{shop.channel.pk}/change/", channel_form(shop, risk_set="EVERYDAY"))
    refused = shop.api.pay(customer__email="jane@mailinator.com", customer__givenName="J", customer__surname="D")
    assert refused.status == 400
    assert {entry.action for entry in AuditEntry.objects.filter(subject="merchant")} == {"configure"}


def test_a_list_becomes_what_its_page_says(boss: Client, shop: Shop) -> None:
    """Issue 7: risk lists."""
    form = {"merchant": str(shop.merchant.pk), "name": "denied", "field": "customer.ip", "lines": "203.0.113.0/24\n\n"}
    assert boss.post("/admin/gateway/risklist/add/", form).status_code == 302
    row = RiskList.objects.get()
    path = f"/admin/gateway/risklist/{row.pk}/change/"
    assert boss.post(path, {"field": "customer.ip", "lines": "198.51.100.7"}).status_code == 302
    assert [entry.value for entry in row.entries.all()] == ["198.51.100.7"]
    assert "entries[0]" in boss.post(path, {"field": "customer.ip", "lines": "nonsense"}).content.decode()
    assert boss.post("/admin/gateway/risklist/add/", form).status_code == 200, "a list that is there is changed"
    clerk = signed_in(person("clerk", Role.CLERK, shop.merchant))
    assert "198.51.100.7" in clerk.get(path).content.decode()


def test_an_offer_rule_names_brands_that_there_are(boss: Client, shop: Shop) -> None:
    """Issue 7: brand-offer rules."""
    form = {
        "merchant": str(shop.merchant.pk), "channel": "", "name": "No wallets", "position": "1", "action": "hide",
        "brands": "WALLETX", "conditions": "{}", "reason": "", "active": "on",
    }  # fmt: skip
    assert "is not a brand of this gateway" in boss.post("/admin/checkout/offerrule/add/", form).content.decode()
    assert boss.post("/admin/checkout/offerrule/add/", form | {"brands": "WALLET1"}).status_code == 302
    assert OfferRule.objects.get().brands == ["WALLET1"]


def test_a_wallet_key_is_named_and_never_shown(boss: Client, shop: Shop) -> None:
    """Issue 7: wallets' keys, state only."""
    wallets.make_keys(shop.channel)
    key = WalletKey.objects.first()
    assert key is not None
    path = f"/admin/gateway/walletkey/{key.pk}/change/"
    page = boss.get(path).content.decode()
    assert key.key_hash[:20] in page
    assert "PRIVATE KEY" not in page
    assert bytes(key.key_sealed).hex() not in page
    assert boss.post(path, {"name": "Old one"}).status_code == 302
    key.refresh_from_db()
    assert (key.name, key.active) == ("Old one", False)
    assert AuditEntry.objects.filter(subject="walletkey", action="view").count() == 1
    assert "key_sealed" not in str(AuditEntry.objects.get(subject="walletkey", action="change").after)


# --- the installation -----------------------------------------------------------------------------------------------


def test_the_vaults_page_shows_ages_and_no_key(shop: Shop) -> None:
    """Issue 7: vault key state; never material."""
    staff = signed_in(person("staff", Role.PSP, shop.merchant.division.psp))
    assert shop.api.pay().status == 200
    page = staff.get("/admin/vault-keys/", {"count": "1"}).content.decode()
    assert "primary" in page
    assert "keyData" not in page
    manager = signed_in(person("manager", Role.MANAGER, shop.merchant))
    assert manager.get("/admin/vault-keys/").status_code == 403
    tired = signed_in(person("tired", Role.PSP, shop.merchant.division.psp), fresh=False)
    assert tired.get("/admin/vault-keys/").status_code == 302


def test_a_clock_is_moved_and_put_back_by_whoever_may(boss: Client, shop: Shop, stranger: Shop) -> None:
    """Issue 7: clock of the test environment; the same verbs as /v1/test/clock."""
    form = {"act": "move", "merchant": str(shop.merchant.pk), "number": "2", "unit": "days"}
    assert boss.post("/admin/test-clock/", form).status_code == 302
    merchant = Merchant.objects.get(pk=shop.merchant.pk)
    assert merchant.clock_offset.days == 2
    assert boss.post("/admin/test-clock/", form | {"merchant": str(stranger.merchant.pk)}).status_code == 200
    assert boss.post("/admin/test-clock/", form | {"number": "99999999"}).status_code == 200
    for nobody in (str(stranger.merchant.pk), "x", ""):
        assert boss.post("/admin/test-clock/", {"act": "reset", "merchant": nobody}).status_code == 404
    assert boss.post("/admin/test-clock/", {"act": "reset", "merchant": str(shop.merchant.pk)}).status_code == 302
    assert not Merchant.objects.get(pk=shop.merchant.pk).clock_offset
    assert AuditEntry.objects.filter(action="move clock").count() == 2
    clerk = signed_in(person("clerk", Role.CLERK, shop.merchant))
    assert clerk.get("/admin/test-clock/").status_code == 403


def test_there_is_no_clock_to_move_in_live(boss: Client, live: None) -> None:
    """Ruling D21."""
    assert boss.get("/admin/test-clock/", secure=True).status_code == 404


# --- the first page ---------------------------------------------------------------------------------------------------


def test_the_first_page_counts_own_payments(boss: Client, shop: Shop, stranger: Shop) -> None:
    """Journey 4, step 2: each picture has a table and a way to its list."""
    cache.clear()
    for _ in range(3):
        assert shop.api.pay().status == 200
    assert shop.api.pay(card__number="4444444444444444").status == 400
    assert stranger.api.pay(paymentBrand="MASTER", card__number="5454545454545454").status == 200
    answer = boss.get("/admin/")
    told = answer.context
    assert (told["approved"], told["declined"], told["rate"]) == (3, 1, 75.0)
    assert [(each["brand"], each["approved"], each["declined"]) for each in told["brands"]] == [("VISA", 3, 1)]
    assert [(each["code"], each["count"]) for each in told["reasons"]] == [("100.100.101", 1)]
    page = answer.content.decode()
    assert "/admin/gateway/payment/?result_code__exact=100.100.101" in page
    assert "MASTER" not in page
    for one in (*told["brands"], *told["reasons"]):
        assert boss.get(one["link"]).status_code == 200


def test_the_first_page_asks_little_and_keeps_its_answer(boss: Client, shop: Shop) -> None:
    """Goals: pictures from aggregates over a bounded window."""
    cache.clear()
    boss.get("/admin/")
    with statements() as asked:
        boss.get("/admin/")
    assert not [sql for sql in asked if "gateway_payment " in sql]
    assert (
        home.since(clock.real() - timedelta(seconds=1)) < Payment().id < home.since(clock.real() + timedelta(seconds=1))
    )

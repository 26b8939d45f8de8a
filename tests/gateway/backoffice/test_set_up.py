"""What was configured by command has its page, and both refuse the same. The installation's pages; the first page."""

from __future__ import annotations

import html
import json
import random
import re
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from django.core import mail
from django.core.cache import cache
from django.db.models import F
from django.test import Client

from chargebacks import ledger
from checkout import offer_rules
from checkout.models import OfferRule
from gateway.background import queue
from gateway.backoffice.risk.rule_fields import CONDITION_INPUTS
from gateway.core import clock
from gateway.core.identifiers import first_id_at
from gateway.models import (
    Approval,
    AuditEntry,
    BackgroundWork,
    Channel,
    Merchant,
    Payment,
    RiskList,
    RiskSet,
    RiskTrial,
    Role,
    ThreeDSecureConfiguration,
    WalletKey,
)
from gateway.models.webhooks import INSPECTOR_URL_PREFIX
from gateway.notifications import endpoints
from gateway.risk.conditions import CONDITION_KINDS
from gateway.risk.rule_sets import MAX_RISK_RULES
from gateway.timers import registry
from gateway.wallets import sandbox_tokens as wallets
from reporting.models import ClearingInstitute
from tests.support import settlement
from tests.support.database import statements
from tests.support.fixtures import BY, Shop, open_shop
from tests.support.office import person, signed_in
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db
SET = {"key": "EVERYDAY", "declineFrom": 50, "rules": [
    {"name": "throw-away", "when": {"kind": "disposable-email"}, "then": {"score": 60}},
]}  # fmt: skip


@pytest.fixture
def boss(shop: Shop) -> Client:
    return signed_in(person("boss", Role.MANAGER, shop.merchant))


def channel_form(shop: Shop, **changes: str) -> dict[str, str]:
    return {
        "name": "Shop: main",
        "merchant": str(shop.merchant.pk),
        "active": "on",
        "position": "100",
        "brands": "",
        "brand_order": "",
        "currencies": "",
        "parameters": "normal",
        "agreement_ids": "none",
        "limits.*.mode": "none",
        "risk_set": "",
        "time_zone": "",
        "descriptor": "",
        "authorization_kind": "ESTIMATED",
        "authorization_days": "",
        "expired_captures": "refuse",
        "partial_approvals": "accept",
        "retry_timing": "table",
        "reversal_hours": "24",
    } | changes


@pytest.mark.parametrize(
    "changes, words",
    [
        ({"brands": "VISSA"}, "did you mean VISA?"),
        ({"brand_order": "VISA,GIROPAY"}, "must be one of"),
        ({"currencies": "EUX"}, "ISO 4217"),
        ({"limits.paymnt.mode": "none"}, "paymnt"),
        ({"limits.payment.mode": "own", "limits.payment.limit": "0", "limits.payment.window_s": "1"}, "payment.limit"),
        ({"limits.payment.mode": "own", "limits.payment.limit": "5"}, "payment.window_s"),
        ({"card_testing.failures": "-1"}, "from 0 to 10000"),
        ({"card_testing.windowSeconds": "an hour"}, "windowSeconds"),
        ({"risk_set": "NOWHERE"}, "no active rule set"),
        ({"time_zone": "Mars/Olympus"}, "Select a valid choice"),
        ({"descriptor": "x" * 128}, "at most 127 characters"),
    ],
)
def test_a_channels_page_refuses_what_the_command_refuses(
    boss: Client, shop: Shop, changes: dict[str, str], words: str
) -> None:
    """Docs/configuration.md."""
    page = boss.post(f"/admin/gateway/channel/{shop.channel.pk}/change/", channel_form(shop, **changes))
    assert page.status_code == 200
    assert words in page.content.decode()
    assert Channel.objects.get(pk=shop.channel.pk).brands == []


def test_a_channels_page_changes_what_payments_follow(boss: Client, shop: Shop) -> None:
    """Channels, with the audit entry of the change."""
    form = channel_form(shop, brands="MASTER", time_zone="Europe/Berlin", descriptor="Shop of Jane")
    assert boss.post(f"/admin/gateway/channel/{shop.channel.pk}/change/", form).status_code == 302
    assert shop.api.pay().status == 400
    paid = shop.api.pay(paymentBrand="MASTER", card__number="5454545454545454")
    assert paid.body["descriptor"] == "Shop of Jane"
    assert Channel.objects.get(pk=shop.channel.pk).time_zone == "Europe/Berlin"
    entry = AuditEntry.objects.get(subject="channel", action="change")
    assert (entry.actor, entry.merchant) == ("boss", shop.merchant.pk)


def three_ds_form(shop: Shop, **changes: str) -> dict[str, str]:
    return {
        "channel": str(shop.channel.pk),
        "networks": "",
        "on_unavailable": "proceed",
        "on_attempt": "proceed",
        "on_soft_decline": "decline",
        "challenge_indicator": "",
        "challenge_minutes": "10",
    } | changes


def test_requestors_are_rows_of_their_networks(boss: Client, shop: Shop) -> None:
    """Everything that was configured by command gets its page; no JSON is typed."""
    ThreeDSecureConfiguration.objects.create(channel=shop.channel, requestors={"visa": {"id": "R-1", "name": "Shop"}})
    path = f"/admin/gateway/threedsecureconfiguration/{shop.channel.pk}/change/"
    opened = boss.get(path).content.decode()
    assert re.search(r'name="requestors\.visa\.id"[^>]* value="R-1"', opened)
    assert 'name="requestors.mastercard.name"' in opened
    rows = {"requestors.visa.id": "R-2", "requestors.visa.name": "", "requestors.mastercard.name": " Shop "}
    assert boss.post(path, three_ds_form(shop, **rows)).status_code == 302
    row = ThreeDSecureConfiguration.objects.get()
    assert row.requestors == {"visa": {"id": "R-2"}, "mastercard": {"name": "Shop"}}
    page = boss.post(path, three_ds_form(shop, **{"requestors.visa.id": "x" * 101}))
    assert re.search(r'id="id_requestors_visa_id_help"><p class="cp-fault">[^<]*100', page.content.decode())
    row.refresh_from_db()
    assert row.requestors["visa"] == {"id": "R-2"}


def set_form(shop: Shop, **changes: str) -> dict[str, str]:
    """SET as its page sends it."""
    return {
        "merchant": str(shop.merchant.pk),
        "key": "EVERYDAY",
        "title": "",
        "active": "on",
        "scores.declineFrom": "50",
        "rules.0.name": "throw-away",
        "rules.0.effect": "score",
        "rules.0.score": "60",
        "rules.0.when.0.kind": "disposable-email",
        "rules.0.when.0.also": "",
    } | changes


def test_a_rule_set_is_written_here_and_screens(boss: Client, shop: Shop) -> None:
    """Risk sets and rules; saved by the configuration's own section."""
    assert boss.get("/admin/gateway/riskset/add/").status_code == 200
    assert boss.post("/admin/gateway/riskset/add/", set_form(shop)).status_code == 302
    row = RiskSet.objects.get()
    assert row.document == SET
    path = f"/admin/gateway/riskset/{row.pk}/change/"
    assert 'value="throw-away"' in boss.get(path).content.decode()
    assert boss.post(path, set_form(shop)).status_code == 302
    row.refresh_from_db()
    assert row.version == 1, "saved as it was, it is the same set"
    assert boss.post(path, set_form(shop, **{"scores.declineFrom": "60", "key": "OTHER"})).status_code == 302
    row.refresh_from_db()
    assert (row.version, row.key, row.document["declineFrom"]) == (2, "EVERYDAY", 60)
    assert "already" in boss.post("/admin/gateway/riskset/add/", set_form(shop)).content.decode()
    boss.post(f"/admin/gateway/channel/{shop.channel.pk}/change/", channel_form(shop, risk_set="EVERYDAY"))
    refused = shop.api.pay(customer__email="jane@mailinator.com", customer__givenName="J", customer__surname="D")
    assert refused.status == 400
    assert {entry.action for entry in AuditEntry.objects.filter(subject="merchant")} == {"configure"}


def test_a_set_of_two_hundred_rules_is_saved_by_its_page(boss: Client, shop: Shop) -> None:
    """Found in review: its inputs were more than a form may have fields, and all of them were lost."""
    form = set_form(shop)
    inputs = [
        (f"rules.{at}.{name}", value)
        for at in range(MAX_RISK_RULES)
        for name, value in (
            ("name", f"rule {at}"),
            ("effect", "score"),
            ("score", "1"),
            *(
                (f"when.{when}.{option}", text)
                for when in range(8)
                for option, text in (
                    ("kind", "field"),
                    ("field", "customer.email"),
                    ("is", f"a{at}-{when}@shop.example\nb@shop.example"),
                )
            ),
        )
    ]
    assert len(inputs) > settings.DATA_UPLOAD_MAX_NUMBER_FIELDS
    packed = {name: value for name, value in form.items() if not name.startswith("rules.")}
    packed["rules"] = json.dumps(inputs)
    answer = boss.post("/admin/gateway/riskset/add/", packed)
    assert answer.status_code == 302, answer.content.decode()
    rules = RiskSet.objects.get().document["rules"]
    assert [rule["name"] for rule in rules] == [f"rule {at}" for at in range(MAX_RISK_RULES)]
    assert rules[199]["when"][7]["is"] == ["a199-7@shop.example", "b@shop.example"]


@pytest.mark.parametrize("text", ["", "nonsense", "{}", "7", "[[1, 2]]", '[["rules.0.name"]]', '"rules"'])
def test_rules_that_were_packed_by_nobodys_script_change_nothing(boss: Client, shop: Shop, text: str) -> None:
    """House: bad input is a clear error, never a 500, and nothing is written."""
    boss.post("/admin/gateway/riskset/add/", set_form(shop))
    before = RiskSet.objects.get().document
    form = {name: value for name, value in set_form(shop).items() if not name.startswith("rules.")}
    answer = boss.post(f"/admin/gateway/riskset/{RiskSet.objects.get().pk}/change/", form | {"rules": text})
    assert answer.status_code == 200
    assert RiskSet.objects.get().document == before


@pytest.mark.parametrize(
    "changes, beside, words",
    [
        (
            {
                "rules.0.when.0.kind": "velocity",
                "rules.0.when.0.per": "customer.ip",
                "rules.0.when.0.count": "payments",
                "rules.0.when.0.over": "many",
                "rules.0.when.0.within": "1h",
            },
            "rules.0.when.0.over",
            "a whole number from 0",
        ),
        ({"rules.0.effect": "decline", "rules.0.code": "000.000.000"}, "rules.0.code", "must be a code of risk"),
        ({"rules.0.name": ""}, "rules.0.name", "is required"),
        (
            {"rules.0.when.0.kind": "list", "rules.0.when.0.field": "customer.emial", "rules.0.when.0.values": "a"},
            "rules.0.when.0.field",
            "did you mean customer.email?",
        ),
        (
            {"rules.0.when.0.kind": "list", "rules.0.when.0.field": "customer.ip", "rules.0.when.0.list": "nowhere"},
            "rules.0.when.0.list",
            "is no list",
        ),
        ({"scores.declineFrom": "a lot"}, "scores.declineFrom", "must be a whole number"),
        ({"avs.N": "explode"}, "avs.N", "must be one of accept, review, decline"),
    ],
)
def test_a_rule_sets_page_says_what_is_wrong_beside_its_field(
    boss: Client, shop: Shop, changes: dict[str, str], beside: str, words: str
) -> None:
    """Real fields, errors by field; the words are those of the command."""
    page = boss.post("/admin/gateway/riskset/add/", set_form(shop, **changes)).content.decode()
    assert not RiskSet.objects.exists()
    field = page[page.index(f'name="{beside}"') :]
    assert words in html.unescape(field[: field.index("</div>")])


def test_every_option_of_every_condition_has_its_input() -> None:
    """The form and the rules know the same: a condition that is added to one is missed in the other."""
    assert {kind: {one.name for one in inputs} for kind, inputs in CONDITION_INPUTS.items()} == {
        kind: set(known.members) for kind, known in CONDITION_KINDS.items()
    }


@pytest.mark.parametrize("kind", CONDITION_KINDS)
def test_every_kind_of_condition_comes_back_as_it_was(boss: Client, shop: Shop, kind: str) -> None:
    """A set that is opened and saved is the same set."""
    RiskList.objects.create(merchant=shop.merchant, name="bad-emails", field="customer.email")
    when = {"kind": kind, **CONDITION_KINDS[kind].example}
    kept = SET | {
        "title": "Everyday",
        "avs": {"N": "decline"},
        "rules": [
            {"name": "one", "when": when, "then": {"verdict": "decline"}},
            {"name": "two", "when": [when, {"kind": "disposable-email"}], "then": {"score": -5}},
        ],
    }
    row = RiskSet.objects.create(merchant=shop.merchant, key="EVERYDAY", document=kept)
    path = f"/admin/gateway/riskset/{row.pk}/change/"
    assert boss.post(path, sent_by(boss.get(path).content.decode())).status_code == 302
    row.refresh_from_db()
    assert row.document == kept
    assert row.version == 1


def sent_by(page: str) -> dict[str, Any]:
    """What a browser sends of the large form of a page."""
    form = max(page.split("<form")[1:], key=len).split("</form>")[0]
    form = re.sub("<template.*?</template>", "", form, flags=re.DOTALL)
    found: dict[str, Any] = {}
    for tag in re.findall("<input[^>]*>", form):
        given = {name: html.unescape(value) for name, value in re.findall(r'([\w-]+)="([^"]*)"', tag)}
        ticked = given.get("type") in ("checkbox", "radio")
        if "name" not in given or (ticked and not re.search(r"\schecked(?=[\s>/])", re.sub('"[^"]*"', "", tag))):
            continue
        if given.get("type") != "submit":
            found.setdefault(given["name"], []).append(given.get("value", "on" if ticked else ""))
    for name, inside in re.findall(r'<select[^>]*name="([^"]+)"[^>]*>(.*?)</select>', form, flags=re.DOTALL):
        chosen = re.findall(r'value="([^"]*)"[^>]*selected', inside)
        found[name] = chosen or re.findall('value="([^"]*)"', inside)[:1]
    for name, inside in re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>(.*?)</textarea>', form, flags=re.DOTALL):
        found[name] = [html.unescape(inside).strip()]
    return found


def test_changed_rules_are_tried_over_past_payments_and_not_saved(boss: Client, shop: Shop) -> None:
    """Rules with a trial run over past payments."""
    assert shop.api.pay(amount="150.00").status == 200
    row = RiskSet.objects.create(merchant=shop.merchant, key="EVERYDAY", document=SET)
    path, today = f"/admin/gateway/riskset/{row.pk}/change/", clock.merchant_now(shop.merchant).date()
    form = set_form(
        shop,
        **{
            "rules.0.name": "large",
            "rules.0.effect": "decline",
            "rules.0.when.0.kind": "amount",
            "rules.0.when.0.currency": "EUR",
            "rules.0.when.0.over": "100.00",
            "_try": "1",
            "trial_of": "whole",
            "trial_from": str(today - timedelta(days=1)),
            "trial_to": str(today),
        },
    )
    wrong = boss.post(path, form | {"trial_to": str(today - timedelta(days=5))}).content.decode()
    assert "before the first one" in wrong
    assert "at most 92 days" in boss.post(path, form | {"trial_from": "2020-01-01"}).content.decode()
    assert not RiskTrial.objects.exists()
    answer = boss.post(path, form)
    trial = RiskTrial.objects.get()
    assert answer["Location"] == f"/admin/gateway/risktrial/{trial.pk}/change/"
    assert "Waits" in boss.get(answer["Location"]).content.decode()
    while BackgroundWork.objects.filter(state__in=queue.OPEN_WORK_STATES).exists():
        assert queue.run_background_work() > 0
    page = boss.get(answer["Location"]).content.decode()
    assert "150.00 EUR" in page
    assert f"/admin/gateway/payment/{Payment.objects.get().pk}/change/" in page
    for show in ("rule0", "blind0", "accept-decline", "rule-1", "nonsense", "rule99999999999"):
        assert boss.get(answer["Location"], {"show": show}).status_code == 200
    assert "EVERYDAY" in boss.get("/admin/gateway/risktrial/").content.decode()
    row.refresh_from_db()
    assert (row.document, row.version) == (SET, 1)
    assert not AuditEntry.objects.filter(action="configure").exists()
    auditor = signed_in(person("auditor", Role.AUDITOR, shop.merchant))
    assert auditor.post(path, form).status_code == 403
    assert RiskTrial.objects.count() == 1


def test_a_list_becomes_what_its_page_says(boss: Client, shop: Shop) -> None:
    """Risk lists."""
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
    """Brand-offer rules."""
    form = {
        "merchant": str(shop.merchant.pk),
        "channel": "",
        "name": "No wallets",
        "position": "1",
        "action": "hide",
        "brands": "WALLETX",
        "conditions.amountAtLeast": "500",
        "reason": "",
        "active": "on",
    }
    assert "is not a brand of this gateway" in boss.post("/admin/checkout/offerrule/add/", form).content.decode()
    assert boss.post("/admin/checkout/offerrule/add/", form | {"brands": "WALLET1"}).status_code == 302
    rule = OfferRule.objects.get()
    assert (rule.brands, rule.conditions) == (["WALLET1"], {"amountAtLeast": "500"})
    path = f"/admin/checkout/offerrule/{rule.pk}/change/"
    wrong = form | {"brands": "WALLET1", "conditions.amountAtLeast": "much", "conditions.scoreBelow": "x"}
    page = boss.post(path, wrong).content.decode()
    for name, words in (("amountAtLeast", "must be an amount"), ("scoreBelow", "must be a whole number")):
        field = page[page.index(f'name="conditions.{name}"') :]
        assert words in field[: field.index("</div>")]


def test_every_condition_of_an_offer_rule_has_its_input(boss: Client, shop: Shop) -> None:
    """A rule that is opened and saved is the same rule."""
    kept = {
        "scoreAtLeast": 5,
        "scoreBelow": 50,
        "emails": ["*@mail.example", "a@b.example"],
        "countries": ["DE", "AT"],
        "notCountries": ["US"],
        "currencies": ["EUR"],
        "amountAtLeast": "5",
        "amountBelow": "500.00",
        "customerStatus": ["NEW"],
    }
    assert set(kept) == set(offer_rules.OFFER_CONDITIONS)
    rule = OfferRule.objects.create(merchant=shop.merchant, name="All of them", conditions=kept)
    path = f"/admin/checkout/offerrule/{rule.pk}/change/"
    assert boss.post(path, sent_by(boss.get(path).content.decode())).status_code == 302
    rule.refresh_from_db()
    assert rule.conditions == kept


def test_a_channels_limits_and_guard_come_back_as_they_were(boss: Client, shop: Shop) -> None:
    """A31.3: limits and the guard in fields of their own."""
    limits = {"*": {"limit": 50, "window_s": 1}, "status": None, "follow-up": {"limit": 5, "window_s": 60}}
    guard = {"enabled": False, "failures": 3, "windowSeconds": 120}
    Channel.objects.filter(pk=shop.channel.pk).update(limits=limits, card_testing=guard)
    path = f"/admin/gateway/channel/{shop.channel.pk}/change/"
    assert boss.post(path, sent_by(boss.get(path).content.decode())).status_code == 302
    kept = Channel.objects.get(pk=shop.channel.pk)
    assert (kept.limits, kept.card_testing) == (limits, guard)


def test_a_wallet_key_is_named_and_never_shown(boss: Client, shop: Shop) -> None:
    """Wallets' keys, state only."""
    wallets.generate_channel_keys(shop.channel)
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
    """Vault key state; never material."""
    staff = signed_in(person("staff", Role.PSP, shop.merchant.division.psp))
    assert shop.api.pay().status == 200
    page = staff.get("/admin/vault-keys/", {"count": "1"}).content.decode()
    assert "primary" in page
    assert "keyData" not in page
    manager = signed_in(person("manager", Role.MANAGER, shop.merchant))
    assert manager.get("/admin/vault-keys/").status_code == 403
    tired = signed_in(person("tired", Role.PSP, shop.merchant.division.psp), fresh=False)
    assert tired.get("/admin/vault-keys/").status_code == 302


def test_a_moved_clock_can_be_put_back_however_many_merchants_there_are(shop: Shop) -> None:
    Merchant.objects.bulk_create(
        Merchant(name=f"A {number:03d}", division=shop.merchant.division) for number in range(201)
    )
    staff = signed_in(person("staff", Role.PSP, shop.merchant.division.psp))
    page = staff.get("/admin/test-clock/").content.decode()
    assert "200 merchants are shown" in page
    form = {"act": "move", "merchant": str(shop.merchant.pk), "number": "2", "unit": "days"}
    answer = staff.post("/admin/test-clock/", form, follow=True).content.decode()
    assert f'name="merchant" value="{shop.merchant.pk}"' in answer
    assert "2 d 0 h" in answer
    assert "2 T 0 h" in staff.get("/admin/test-clock/", HTTP_ACCEPT_LANGUAGE="de").content.decode()


def test_what_a_clock_cannot_be_moved_by_is_told_beside_its_field(boss: Client, shop: Shop) -> None:
    form = {"act": "move", "merchant": str(shop.merchant.pk), "number": "2", "unit": "days"}
    for name, value in (("merchant", "x"), ("merchant", ""), ("number", "0"), ("number", "two"), ("unit", "years")):
        answer = boss.post("/admin/test-clock/", form | {name: value})
        assert answer.status_code == 200
        assert list(answer.context["form"].errors) == [name], value
        assert answer.context["form"]["number"].value() == (value if name == "number" else "2")
    assert not Merchant.objects.get(pk=shop.merchant.pk).clock_offset


def test_a_clock_is_moved_and_put_back_by_whoever_may(boss: Client, shop: Shop, stranger: Shop) -> None:
    """Clock of the test environment; the same verbs as /v1/test/clock."""
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
    """Each picture has a table and a way to its list."""
    cache.clear()
    for _ in range(3):
        assert shop.api.pay().status == 200
    assert shop.api.pay(card__number="4444444444444444").status == 400
    assert stranger.api.pay(paymentBrand="MASTER", card__number="5454545454545454").status == 200
    answer = boss.get("/admin/")
    told = answer.context
    assert [one.value for one in told["figures"]] == ["3", "1", "0", "0"]
    assert told["rate"] == 75.0
    assert [(each["brand"], each["approved"], each["declined"]) for each in told["brands"]] == [("VISA", 3, 1)]
    assert [(each["code"], each["count"]) for each in told["reasons"]] == [("100.100.101", 1)]
    page = answer.content.decode()
    assert "/admin/gateway/payment/?code=100.100.101" in page
    assert "MASTER" not in page
    for link in (*(one["link"] for one in (*told["brands"], *told["reasons"])), *(one.link for one in told["figures"])):
        assert boss.get(link).status_code == 200


def test_the_first_page_compares_its_figures_with_the_same_day_a_week_before(boss: Client, shop: Shop) -> None:
    """Up to the same minute: what was paid later in that hour stands in the chart's column alone."""
    week = timedelta(days=7)
    shop.api.pay()
    page = boss.get("/admin/").content.decode()
    assert "a week before" not in page

    def pay(at: datetime, **changes: str) -> None:
        paid = Payment.objects.get(pk=shop.api.pay(**changes).body["id"])
        ident = UUID(int=first_id_at(at).int | paid.pk.int & 0xFFFFFFFFFFFF)
        Payment.objects.filter(pk=paid.pk).update(id=ident, chain=ident, created_at=at)

    now = clock.real_now()
    for minutes in (1, 2, 90):
        pay(now - week - timedelta(minutes=minutes))
    pay(now - week - timedelta(minutes=3), card__number="4000015500000005")
    pay(now - week - timedelta(hours=25))
    pay(now - week + timedelta(hours=2))
    cache.clear()
    told = boss.get("/admin/")
    assert [(one.value, one.before) for one in told.context["figures"][:2]] == [("1", "3"), ("0", "1")]
    assert told.context["rate"] == 100.0
    assert "75.0 % a week before" in told.content.decode()
    assert {one.before for one in told.context["figures"][2:]} == {""}


def test_the_first_page_asks_little_and_keeps_its_answer(boss: Client, shop: Shop) -> None:
    """Goals: pictures from aggregates over a bounded window."""
    cache.clear()
    boss.get("/admin/")
    with statements() as asked:
        boss.get("/admin/")
    assert not [sql for sql in asked if "gateway_payment " in sql]
    assert (
        first_id_at(clock.real_now() - timedelta(seconds=1))
        < Payment().id
        < first_id_at(clock.real_now() + timedelta(seconds=1))
    )


def test_the_first_page_shows_what_fails_and_waits(boss: Client, shop: Shop) -> None:
    """Webhook health, due settlements, disputes; each links to its list and has a table view."""
    inspector, _secret = endpoints.create_endpoint(shop.merchant, INSPECTOR_URL_PREFIX, by=BY)
    assert endpoints.activate_endpoint(inspector, by=BY).active
    institute = settlement.institute(expects_files_on=[1, 2, 3, 4, 5, 6, 7])
    ClearingInstitute.objects.update(created_at=clock.real_now() - timedelta(days=3))
    paid = settlement.payment_of(shop.api.pay().id)
    ledger.record_chargeback(paid, Decimal("10.00"), by=BY)
    own = shop.channel.pk.hex
    row = settlement.line(ClearingInstituteMerchantId=own, ConnectorTxId1="unknown", Amount="7.77")
    assert settlement.take_in(settlement.csv([row]), institute, "one.csv").unmatched == 1
    cache.clear()
    page = boss.get("/admin/").content.decode()
    for words, link in (
        ("Webhooks", "/admin/gateway/webhookdelivery/?state=waiting"),
        ("Due settlements", "/admin/reporting/settlementrecord/?list=unmatched"),
        ("Disputes", "/admin/chargebacks/chargeback/?list=open"),
    ):
        panel = page[page.index(f"<h2>{words}</h2>") :]
        panel = panel[: panel.index("</section>")]
        assert html.escape(link) in panel
        assert "As a table" in panel
    assert "no file of" in page, "files were expected on the days before"
    assert "10.00 EUR" in page
    stranger = signed_in(person("nobody", Role.MANAGER, open_shop(shop.merchant.division, "Third").merchant))
    other = stranger.get("/admin/").content.decode()
    assert "10.00 EUR" not in other
    assert "Due settlements" not in other
    clerk = signed_in(person("clerk", Role.CLERK, shop.merchant))
    assert "<h2>Webhooks</h2>" not in clerk.get("/admin/").content.decode(), "clerks see no endpoints"


@pytest.mark.parametrize("seed", range(3))
def test_every_number_of_the_first_page_is_that_of_its_list(boss: Client, shop: Shop, seed: int) -> None:
    """Random payments and follow-ups, some before and some after the test clock was moved: lists and figures agree."""
    chance = random.Random(seed)
    amex = {"paymentBrand": "AMEX", "card__number": "377777777777770", "card__cvv": "1234"}
    means: list[dict[str, str]] = [
        {},
        {},
        amex,
        {"card__number": "4000015500000005"},
        {"card__number": "4000090003000000"},
    ]
    for moved in (timedelta(0), timedelta(days=30, minutes=13)):
        shop.merchant.clock_offset = moved
        shop.merchant.save()
        for _ in range(chance.randrange(3, 7)):
            paid = shop.api.pay(**chance.choice(means))
            if paid.status == 200 and chance.random() < 0.5:
                shop.api.follow(paid.id, "RF", "1.00")
    cache.clear()
    answer = boss.get("/admin/")
    told = answer.context

    def count(link: str) -> int:
        listed = boss.get(html.unescape(link))
        return len(listed.context["rows"]) if listed.status_code == 200 else 1

    for figure in told["figures"]:
        assert count(figure.link) == int(figure.value), figure
    for brand in told["brands"]:
        assert (count(brand["approved_link"]), count(brand["declined_link"])) == (brand["approved"], brand["declined"])
    for reason in told["reasons"]:
        assert count(reason["link"]) == reason["count"]
    hours = re.findall(r'<tr><th scope="row"><a href="([^"]+)">[^<]*</a></th>(.*?)</tr>', answer.content.decode())
    shown = {
        link: sum(map(int, re.findall(r"<td[^>]*>([0-9]+)</td>", row))) for link, row in hours if "real_to" in link
    }
    assert sum(shown.values()) == Payment.objects.filter(chain=F("id")).count()
    for link, number in shown.items():
        if number:
            assert count(link) == number, link


def test_a_channel_that_is_being_made_shows_no_id(boss: Client, shop: Shop) -> None:
    """Its id is made when it is saved; one that is shown before is a dead one."""
    assert "th-key" not in boss.get("/admin/gateway/channel/add/").content.decode()
    assert "th-key" in boss.get(f"/admin/gateway/channel/{shop.channel.pk}/change/").content.decode()


def test_a_channels_page_leads_to_where_its_events_and_files_go(boss: Client, shop: Shop) -> None:
    """Channels: webhook endpoints, SFTP targets."""
    inspector, _secret = endpoints.create_endpoint(shop.merchant, INSPECTOR_URL_PREFIX, by=BY)
    page = boss.get(f"/admin/gateway/channel/{shop.channel.pk}/change/").content.decode()
    assert f"/admin/gateway/webhookendpoint/{inspector.pk}/change/" in page
    target = f"/admin/reporting/reconciliationfile/target/{shop.merchant.pk}/"
    assert target in page
    assert boss.get(target).status_code == 200


def test_whoever_asked_is_told_of_the_decision(boss: Client, shop: Shop) -> None:
    """On the first page; by mail where a mail server is set up."""
    clerk = person("clara", Role.CLERK, shop.merchant)
    clerk.email = "clara@shop.example"
    clerk.save()
    paid = Payment.objects.get(pk=shop.api.pay().id)
    now = clock.real_now()
    asked = Approval.objects.create(
        merchant=shop.merchant,
        payment=paid,
        payment_type="RF",
        amount=Decimal("30.00"),
        currency="EUR",
        asked_by=clerk,
        asked_by_name="clara",
        asked_at=now,
        expires_at=now + timedelta(days=7),
    )
    sent = {"verb": "reject", "note": "not yet"}
    assert boss.post(f"/admin/gateway/approval/{asked.pk}/decide/", sent).status_code == 302
    registry.run_timer_now("approval mails")
    (mailed,) = mail.outbox
    assert mailed.to == ["clara@shop.example"]
    assert "30.00 EUR" in mailed.subject
    assert "not yet" in mailed.body
    page = signed_in(clerk).get("/admin/").content.decode()
    assert f"/admin/gateway/approval/{asked.pk}/change/" in page
    assert "Rejected" in page
    assert f"/admin/gateway/approval/{asked.pk}/change/" not in boss.get("/admin/").content.decode()


# --- two at once ------------------------------------------------------------------------------------------------------


def seen_in(page: Any) -> str:
    found = re.search(r'name="seen" value="([0-9a-f]+)"', page.content.decode())
    assert found
    return found[1]


def test_a_form_that_was_opened_earlier_overwrites_nothing_unasked(shop: Shop) -> None:
    """Found in use: two tabs of one channel; what the first had saved was gone with the second, without a word."""
    one = signed_in(person("anna", Role.MANAGER, shop.merchant))
    two = signed_in(person("bert", Role.MANAGER, shop.merchant))
    path = f"/admin/gateway/channel/{shop.channel.pk}/change/"
    form = channel_form(shop)
    marks = [seen_in(client.get(path)) for client in (one, two)]
    assert one.post(path, form | {"refuse_duplicates": "on", "seen": marks[0]}).status_code == 302
    late = two.post(path, form | {"brands": "VISA", "seen": marks[1]})
    shop.channel.refresh_from_db()
    assert (late.status_code, shop.channel.refuse_duplicates, shop.channel.brands) == (200, True, [])
    assert "Changed meanwhile (anna, " in late.content.decode()
    assert two.post(path, form | {"brands": "VISA", "seen": seen_in(late)}).status_code == 302
    shop.channel.refresh_from_db()
    assert (shop.channel.refuse_duplicates, shop.channel.brands) == (False, ["VISA"])


def test_of_two_forms_at_the_same_moment_one_is_asked_again(committed: Shop) -> None:
    """As a race: the row is locked from the comparison to the end."""
    clients = [signed_in(person(name, Role.MANAGER, committed.merchant)) for name in ("anna", "bert")]
    path = f"/admin/gateway/channel/{committed.channel.pk}/change/"
    form = channel_form(committed)
    marks = [seen_in(client.get(path)) for client in clients]

    def send(which: int) -> int:
        return int(clients[which].post(path, form | {"name": f"by {which}", "seen": marks[which]}).status_code)

    assert sorted(at_once(partial(send, 0), partial(send, 1))) == [200, 302]

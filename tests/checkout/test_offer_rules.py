"""Active Payment Method Selection: rules, reasons, and what a page may not get around."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from checkout.models import Checkout, OfferRule
from checkout.offer_rules import (
    OFFER_CONDITIONS,
    BrandRule,
    OfferShopper,
    apply_offer_rules,
    check_offer_conditions,
    is_rule_met,
)
from tests.support.client import Api
from tests.support.fixtures import Shop
from tests.support.shopper import open_checkout

JANE = OfferShopper(amount=None, currency="EUR", country="DE", email="Jane@Mail.example", status="NEW", score=70)

EXAMPLES: dict[str, tuple[object, object, object]] = {
    # condition: one that holds for Jane, one that does not, one that is none
    "scoreAtLeast": (70, 71, "70"),
    "scoreBelow": (71, 70, 100_000),
    "emails": (["*@mail.example"], ["*@shop.example"], "jane@mail.example"),
    "countries": (["FR", "DE"], ["FR"], []),
    "notCountries": (["FR"], ["DE"], [1]),
    "currencies": (["EUR"], ["USD"], "EUR"),
    "amountAtLeast": ("92.00", "92.01", 92),
    "amountBelow": ("92.01", "92.00", "many"),
    "customerStatus": (["NEW"], ["EXISTING"], None),
}


@pytest.mark.parametrize("name", OFFER_CONDITIONS)
def test_every_condition_holds_and_does_not_and_is_checked(name: str) -> None:
    shopper = replace(JANE, amount=Decimal("92.00"))
    yes, no, wrong = EXAMPLES[name]
    assert is_rule_met({name: yes}, shopper)
    assert not is_rule_met({name: no}, shopper)
    assert not check_offer_conditions({name: yes})
    assert check_offer_conditions({name: wrong})


def test_unknown_conditions_are_named() -> None:
    assert "weather" in check_offer_conditions({"weather": "rain"})[0]
    assert check_offer_conditions([]) == ["conditions must be an object"]


def test_the_first_rule_that_speaks_of_a_brand_decides_and_the_order_stays() -> None:
    """A8.14."""
    rules = [
        BrandRule(name="keep VISA", hides=False, brands=frozenset({"VISA"}), conditions={}),
        BrandRule(
            name="risky", hides=True, brands=frozenset(), conditions={"scoreAtLeast": 50}, reason="Risk score 50+"
        ),
    ]
    found = apply_offer_rules(["MASTER", "VISA", "WALLET1"], rules, JANE)
    assert found.brands == ("VISA",)
    assert found.hidden == {"MASTER": "Risk score 50+", "WALLET1": "Risk score 50+"}


def codes(answer: object) -> list[str]:
    return [brand["code"] for brand in answer.body["brands"]]  # type: ignore[attr-defined]


@pytest.mark.django_db
def test_two_shoppers_see_two_lists_and_the_reason_is_kept(shop: Shop) -> None:
    """A8.12."""
    OfferRule.objects.create(
        merchant=shop.merchant,
        name="throwaway",
        brands=["MASTER"],
        conditions={"emails": ["*@trash.example"]},
        reason="Throwaway address",
    )
    low = open_checkout(shop.api, customer__email="jane@mail.example")
    high = open_checkout(shop.api, customer__email="x@trash.example")
    assert codes(low.config("MASTER VISA")) == ["MASTER", "VISA"]
    answer = high.config("MASTER VISA")
    assert codes(answer) == ["VISA"]
    assert answer.body["hidden"] == [{"code": "MASTER", "reason": "Throwaway address"}]
    row = Checkout.objects.get(pk=high.checkout[:32].lower())
    assert row.hidden_brands == {"MASTER": "Throwaway address"}
    refused = high.pay(paymentBrand="MASTER", card__number="5454545454545454")
    assert (refused.status, refused.code) == (400, "600.200.201")
    assert high.pay(paymentBrand=None, card__number="5454545454545454").code == "600.200.201"
    assert high.pay().status == 200


@pytest.mark.django_db
def test_brands_that_cannot_be_paid_with_are_hidden_with_the_reason(shop: Shop) -> None:
    api = shop.api_of(shop.open_channel(brands=["VISA", "DIRECTDEBIT_SEPA"]))
    answer = open_checkout(api).config("MASTER NOSUCH DIRECTDEBIT_SEPA VISA <b>")
    assert codes(answer) == ["DIRECTDEBIT_SEPA", "VISA"]
    assert {one["code"] for one in answer.body["hidden"]} == {"MASTER", "NOSUCH"}


@pytest.mark.django_db
def test_rules_are_configured_by_a_document(shop: Shop, tmp_path: Path) -> None:
    """manage.py configure, section brands."""
    document = tmp_path / "brands.json"
    rules = [{"name": "large", "hide": ["WALLET1"], "when": {"amountAtLeast": "500.00"}, "reason": "Too large"}]
    document.write_text(json.dumps({"brands": {"rules": rules}}))
    call_command("configure", str(document), entity=shop.merchant.entity_id, stdout=io.StringIO())
    row = OfferRule.objects.get()
    assert (row.name, row.brands, row.channel, row.reason) == ("large", ["WALLET1"], None, "Too large")
    shown = io.StringIO()
    call_command("configure", entity=shop.merchant.entity_id, show=True, stdout=shown)
    assert json.loads(shown.getvalue())["brands"]["rules"][0]["hide"] == ["WALLET1"]
    document.write_text(json.dumps({"brands": {"rules": [{"name": "x", "hide": ["NOSUCH"], "when": {"weather": 1}}]}}))
    with pytest.raises(CommandError, match="NOSUCH") as fault:
        call_command("configure", str(document), entity=shop.merchant.entity_id, stdout=io.StringIO())
    assert "weather" in str(fault.value)
    assert OfferRule.objects.count() == 1


@pytest.mark.django_db
def test_the_config_tells_how_to_draw_the_form(api: Api) -> None:
    """Decisions, section 7. The page's own hooks are the page's: nothing here speaks of them (A8.17)."""
    body = open_checkout(api).config("VISA AMEX DIRECTDEBIT_SEPA WALLET1 ONLINETRANSFER", locale="da-DK").body
    assert body["checkout"]["amount"] == "92.00"
    assert body["checkout"]["kind"] == "payment"
    assert 1790 < body["checkout"]["secondsLeft"] <= 1800
    assert (body["locale"], body["lang"], body["dir"]) == ("dk", "da", "ltr")
    assert [brand["kind"] for brand in body["brands"]] == ["card", "card", "bank", "wallet1", "redirect"]
    assert body["brands"][0]["cvv"] == [3]
    assert body["brands"][1]["cvv"] == [4]
    assert body["frames"]["number"].startswith("http://testserver/v1/widget/frame.html?checkout=")
    assert body["createRegistration"] is False
    assert body["registrations"] == []
    assert "onBefore" not in str(body)


@pytest.mark.django_db
def test_a_language_is_found_by_its_code_its_iso_name_or_the_browsers_wish(api: Api) -> None:
    """A8.8; decisions, section 7."""
    browser = open_checkout(api)
    wanted = {"cz": "cz", "cs": "cz", "zh-CN": "cn", "nb": "no", "sv_SE": "se", "el": "gr", "ar": "ar"}
    for sent, expected in wanted.items():
        assert browser.config(locale=sent).body["locale"] == expected
    asked = browser.http.get(
        f"/v1/checkouts/{browser.checkout}/config", headers={"Accept-Language": "tlh, ja;q=0.8, en;q=0.5"}
    )
    assert asked.json()["locale"] == "ja"
    assert browser.config(locale="ar").body["dir"] == "rtl"
    assert browser.config(locale="xx").body["locale"] == "en"


@pytest.mark.django_db
def test_saving_is_offered_to_a_shopper_the_shop_knows(api: Api) -> None:
    """createRegistration from the form only where it is offered."""
    names = {"customer__givenName": "Jane", "customer__surname": "Jones"}
    known = open_checkout(api, customer__merchantCustomerId="17", **names)
    assert known.config().body["createRegistration"] is True
    forced = open_checkout(api, customer__merchantCustomerId="17", createRegistration="false", **names)
    assert forced.config().body["createRegistration"] is False
    assert "createRegistration" in forced.pay(createRegistration="true").errors

"""A risk rule is drafted from chosen chargebacks: what they share and good payments do not, unsaved in a set's form."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from chargebacks import ledger
from chargebacks.models import Chargeback
from gateway.models import RiskSet, Role
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.settlement import BY, payment_of

pytestmark = pytest.mark.django_db
DRAFT = "/admin/chargebacks/chargeback/draft-rule/"


def buy(shop: Shop, email: str, ip: str) -> str:
    named = {"customer.givenName": "A", "customer.surname": "B"}
    return shop.api.pay(**named, **{"customer.email": email, "customer.ip": ip}).id


def dispute(shop: Shop, email: str, ip: str) -> Chargeback:
    payment = payment_of(buy(shop, email, ip))
    return ledger.record_chargeback(payment, payment.amount, reason="000.100.220", by=BY)


@pytest.fixture
def cases(shop: Shop) -> list[Chargeback]:
    for number in range(3):
        buy(shop, f"good{number}@shop.example", f"198.51.100.{number}")
    return [dispute(shop, f"bad{number}@throwaway.example", "203.0.113.7") for number in range(2)]


@pytest.fixture
def manager(shop: Shop) -> Client:
    return signed_in(person("max", Role.MANAGER, shop.merchant))


def draft(client: Client, cases: list[Chargeback]) -> str:
    return unescape(client.get(DRAFT, {"case": [one.pk.hex for one in cases]}, follow=True).content.decode())


def test_what_the_chosen_share_comes_first_with_how_many_good_payments_have_it(
    manager: Client, cases: list[Chargeback]
) -> None:
    page = draft(manager, cases)
    sentences = re.findall(r"<h2>(If [^<]+)</h2>", page)
    assert "If customer.emailDomain is throwaway.example, then it is approved, but under review." in sentences[:2]
    assert "If customer.ip is 203.0.113.7, then it is approved, but under review." in sentences[:2]
    assert re.search(r"<dd>2 \(100 %\)</dd>.*?<dd>0 \(0.0 %\)</dd>", page, re.DOTALL)
    assert "<dd>3 (100.0 %)</dd>" in page, "the card's first digits are those of all payments"


def test_the_draft_stands_in_the_form_and_nothing_is_saved(
    shop: Shop, manager: Client, cases: list[Chargeback]
) -> None:
    kept = {"key": "EVERYDAY", "rules": []}
    row = RiskSet.objects.create(merchant=shop.merchant, key="EVERYDAY", document=kept)
    page = draft(manager, cases)
    addresses = re.findall(r'href="(/admin/gateway/riskset/[^"]+draft=[^"]+)"', page)
    assert {address.partition("?")[0] for address in addresses} == {
        "/admin/gateway/riskset/add/",
        f"/admin/gateway/riskset/{row.pk}/change/",
    }
    for address in addresses[:2]:
        form = unescape(manager.get(address).content.decode())
        assert "A drafted rule stands at the end of the rules." in form
        assert "then it is approved, but under review." in form
    row.refresh_from_db()
    assert row.document == kept


def test_no_value_of_a_shopper_stands_in_an_address(shop: Shop, cases: list[Chargeback]) -> None:
    """Addresses stand in logs and histories; the draft is in the session of who made it."""
    RiskSet.objects.create(merchant=shop.merchant, key="EVERYDAY", document={"key": "EVERYDAY", "rules": []})
    manager, other = (signed_in(person(name, Role.MANAGER, shop.merchant)) for name in ("max", "mia"))
    cases.append(dispute(shop, "bad0@throwaway.example", "203.0.113.7"))
    page = draft(manager, cases)
    assert "customer.email is bad0@throwaway.example" in page
    addresses = re.findall(r'href="(/admin/gateway/riskset/[^"]+draft=[^"]+)"', page)
    assert addresses
    assert not [address for address in addresses if "203.0.113" in address or "throwaway" in address]
    assert addresses == re.findall(r'href="(/admin/gateway/riskset/[^"]+draft=[^"]+)"', draft(manager, cases))
    assert "A drafted rule" in manager.get(addresses[0]).content.decode()
    assert "A drafted rule" not in other.get(addresses[0]).content.decode()


@pytest.mark.parametrize("text", ["", "x", '{"name":"a","when":{},"then":{}}'])
def test_a_draft_that_is_none_is_left_out(manager: Client, text: str) -> None:
    answer = manager.get("/admin/gateway/riskset/add/", {"draft": text})
    assert answer.status_code == 200
    assert "A drafted rule" not in answer.content.decode()


def test_chosen_of_nobody_several_merchants_or_a_stranger_draft_nothing(
    shop: Shop, stranger: Shop, manager: Client, cases: list[Chargeback]
) -> None:
    assert "Choose chargebacks of the list first." in draft(manager, [])
    foreign = dispute(stranger, "bad@throwaway.example", "203.0.113.7")
    assert "Choose chargebacks of the list first." in draft(manager, [foreign])
    psp = signed_in(person("boss", Role.PSP, shop.merchant.division.psp))
    assert "a rule set belongs to one" in draft(psp, [foreign, *cases])
    assert "They share nothing" in draft(manager, cases[:1])
    assert manager.get(DRAFT, {"case": "x\0"}, follow=True).status_code == 200

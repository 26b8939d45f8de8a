"""One search for everything: what a text may name, in one's own part of the tree alone."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from django.test import Client

from chargebacks import ledger
from gateway.backoffice.payments.payment_search import list_search_readings, parse_search_term
from tests.support import books
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.settlement import BY, payment_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def max_(shop: Shop) -> Client:
    return signed_in(person("max", "manager", shop.merchant))


def hits(client: Client, text: str) -> list[tuple[str, str]]:
    answer = client.get("/admin/search/", {"s": text, "extended": "1"})
    assert answer.status_code == 200
    return [(hit.icon, hit.link) for hit in answer.context["results"]]


def linked(client: Client, text: str) -> str:
    return " ".join(link for _icon, link in hits(client, text))


def test_a_payment_is_found_by_whatever_is_at_hand(max_: Client, shop: Shop, stranger: Shop) -> None:
    paid = shop.api.pay(
        amount="1500.00",
        merchantTransactionId="shop-2026-40393",
        customer__email="zoe@shop.example",
        customer__givenName="Zoe",
        customer__surname="Z",
    )
    row = payment_of(paid.id)
    outsider = signed_in(person("otto", "manager", stranger.merchant))
    for text in (paid.id, "shop-2026-40393", "shop-2026", "zoe@shop.example", "0000", "1500", "1,500.00 EUR"):
        assert str(row.pk) in linked(max_, text), text
        assert str(row.pk) not in linked(outsider, text), text


def test_a_text_that_may_be_two_things_finds_both(max_: Client, shop: Shop) -> None:
    """A number is an amount, an order number, and with four digits the end of a card."""
    assert [one.shape for one in list_search_readings("1500")] == ["lastFour", "amountOnly", "order", "orderStart"]
    amount, order = shop.api.pay(amount="15000000.00"), shop.api.pay(merchantTransactionId="15000000")
    found = linked(max_, "15000000")
    assert str(payment_of(amount.id).pk) in found
    assert str(payment_of(order.id).pk) in found
    listed = max_.get("/admin/gateway/payment/", {"q": "1500"}).content.decode()
    assert "?q=amountOnly%3A1500.00" in listed


def test_a_wrong_value_behind_a_prefix_is_said(max_: Client) -> None:
    assert parse_search_term("email:zoe").wrong == "email"
    page = max_.get("/admin/gateway/payment/", {"q": "email:zoe"}).content.decode()
    assert "is not what email: stands for" in page


def test_disputes_payouts_merchants_and_pages_are_found(max_: Client, shop: Shop, stranger: Shop) -> None:
    case = ledger.record_chargeback(payment_of(shop.api.pay().id), Decimal("92.00"), by=BY)
    type(case).objects.filter(pk=case.pk).update(arn="74000000000000000000001")
    payout = books.settlement(shop, books.institute(), reference="PO-2026-11", date=date(2026, 11, 20))
    boss = signed_in(person("root", "psp", shop.merchant.division.psp))
    assert ("gavel", f"/admin/chargebacks/chargeback/{case.pk}/change/") in hits(max_, "74000000000000000000001")
    assert ("account_balance_wallet", f"/admin/reporting/settlement/{payout.pk}/change/") in hits(max_, "PO-2026-11")
    assert ("storefront", f"/admin/gateway/merchant/{shop.merchant.pk}/change/") in hits(boss, "Shop")
    assert ("gavel", "/admin/chargebacks/chargeback/") in hits(max_, "disput")
    outsider = signed_in(person("otto", "manager", stranger.merchant))
    assert not hits(outsider, "PO-2026-11")
    assert not hits(outsider, "74000000000000000000001")


def test_a_whole_card_number_is_not_looked_for(max_: Client, shop: Shop) -> None:
    shop.api.pay()
    answer = max_.get("/admin/search/", {"s": "4200000000000000", "extended": "1"})
    assert "4200000000000000" not in answer.content.decode()
    assert not (answer.context or {}).get("results")

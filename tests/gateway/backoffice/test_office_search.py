"""One search for everything: what a text may name, in one's own part of the tree alone."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from django.test import Client

from chargebacks import ledger
from gateway.backoffice.payments.search_terms import list_search_readings, parse_search_term
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
    shapes = [one.shape for one in list_search_readings("1500")]
    assert shapes == ["lastFour", "amountOnly", "order", "orderStart", "descriptor"]
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


WRITTEN = (
    "4200000000000000", "4200 0000 0000 0000", "4200.0000.0000.0000", "4200/0000/0000/0000", "4200_0000_0000_0000",
    "Jane 4200000000000000", "4200 0000 0000 0000 05/34", "card:4200000000000000", "id:4200000000000000",
    "４２００００００００００００００", "4200\u00a00000\u00a00000\u00a00000", "cvv 731", "/admin/?q=4200000000000000",
)  # fmt: skip


@pytest.mark.parametrize("path", ["/admin/scheduling/job/", "/admin/gateway/merchant/", "/admin/login/"])
@pytest.mark.parametrize("typed", WRITTEN)
def test_card_data_typed_into_any_box_stays_in_no_address(max_: Client, path: str, typed: str) -> None:
    """Found in use: only plain digits were taken out, and only of the whole value. PCI DSS 3.3 and 3.5."""
    answer = max_.get(path, {"q": typed, "p": "1"})
    assert (answer.status_code, answer["Location"]) == (302, f"{path}?p=1")
    assert max_.get(path, {typed: "1"})["Location"] == path


@pytest.mark.parametrize(
    "typed",
    [
        "0190f3c4a1b27c3d9e4f5a6b7c8d9e0f", "0190f3c4-a1b2-7c3d-9e4f-5a6b7c8d9e0f", "1234.5678.9012", "92.00 EUR",
        "5a244340a54ed592723995f861358c6a-01a1fe2a4b9d7306acdeb7adf6eb9330", "4242:9f86d081884c7d659a2feaa0c55ad015",
        "2026-11-23T07:25:15.583123+00:00_01a1fe2a4b9d7306acdeb7adf6eb9330", "order-4711", "4242", "20261123072515",
    ],
)  # fmt: skip
def test_ids_times_and_amounts_are_no_card_data(max_: Client, typed: str) -> None:
    """The detector leaves what lists are narrowed by."""
    assert max_.get("/admin/scheduling/job/", {"q": typed}).status_code == 200

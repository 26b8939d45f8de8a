"""Channels chosen by typing, keys that can be switched off, reasons in the timeline, and the mail to the shopper."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.utils import translation

from gateway.backoffice.follow_ups import clerk_limits
from gateway.backoffice.payments.shopper_mail import build_shopper_mail, resolve_shopper_language
from gateway.backoffice.payments.timeline import build_payment_story
from gateway.models import Payment
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
LIST = "/admin/gateway/payment/"


def payment_of(ident: str) -> Payment:
    return Payment.objects.select_related("merchant", "channel").get(pk=ident)


def test_a_channel_is_found_by_typing_among_ones_own(shop: Shop, stranger: Shop) -> None:
    """Named with its merchant, in the list's filter and in its suggestions."""
    other = shop.open_channel("night sales")
    wanted = shop.api_of(other).pay().id
    shop.api.pay()
    office = signed_in(person("clara", "clerk", shop.merchant))
    names = office.get("/admin/names/channel/", {"q": "night"}).json()["names"]
    assert names == ["Shop: night sales"]
    assert office.get("/admin/names/channel/", {"q": "Stranger"}).json()["names"] == []
    assert office.get("/admin/names/secret/").status_code == 404
    for typed in ("Shop: night sales", "night", other.entity_id):
        rows = office.get(LIST, {"channel": typed}).context["rows"]
        assert [row.pk.hex for row in rows] == [wanted], typed
    page = office.get(LIST, {"channel": "Stranger: main"}).content.decode()
    assert "names none of yours" in page
    assert "names several" in office.get(LIST, {"channel": "Shop"}).content.decode()


def test_single_keys_can_be_switched_off(shop: Shop) -> None:
    """WCAG 2.1.4."""
    office = signed_in(person("max", "manager", shop.merchant))
    assert "data-no-page-keys" not in office.get("/admin/").content.decode()
    office.post("/admin/account/", {"act": "keys"})
    assert "data-no-page-keys" in office.get("/admin/").content.decode()
    office.post("/admin/account/", {"act": "keys", "keys": "on"})
    assert "data-no-page-keys" not in office.get("/admin/").content.decode()


def test_the_reason_of_a_refund_stands_in_the_timeline(shop: Shop) -> None:
    made = shop.api.pay(amount="20.00").id
    office = signed_in(person("clara", "clerk", shop.merchant))
    form = office.get(f"{LIST}{payment_of(made).pk}/do/RF/")
    office.post(
        f"{LIST}{payment_of(made).pk}/do/RF/",
        {"key": form.context["key"], "amount": "5.00", "reason": "duplicate", "note": "ordered twice on Monday"},
    )
    (event,) = [each for each in build_payment_story(payment_of(made)).moments if "by hand" in each.title]
    assert event.title == "clara sent by hand: Refund of 5.00 EUR"
    assert event.lines == ("paid or ordered twice", "ordered twice on Monday")


@pytest.mark.parametrize(
    ("sent", "language"),
    [
        ({"customer__language": "DE"}, "de"), ({"locale": "de_AT"}, "de"), ({"customer__language": "JA"}, "en"),
        ({}, "en"),
    ],
)  # fmt: skip
def test_a_mail_to_the_shopper_is_in_their_language(shop: Shop, sent: dict[str, str], language: str) -> None:
    names = {"customer__givenName": "Zoe", "customer__surname": "Zorn", "customer__email": "zoe@shop.example"}
    payment = payment_of(shop.api.pay(amount="1234.50", **names, **sent).id)
    story = build_payment_story(payment)
    assert resolve_shopper_language(payment) == language
    with translation.override("de" if language == "en" else "en"):
        mail = build_shopper_mail(payment, story.chain, story.status)
    assert mail is not None
    assert ("1.234,50 EUR" if language == "de" else "1,234.50 EUR") in mail["text"]
    assert ("Guten Tag Zoe Zorn," if language == "de" else "Dear Zoe Zorn,") in mail["text"]
    assert mail["address"].startswith("mailto:zoe@shop.example?subject=")


def test_a_card_number_as_order_number_is_masked_in_the_mail_and_its_link(shop: Shop) -> None:
    names = {"customer__givenName": "Zoe", "customer__surname": "Zorn", "customer__email": "zoe@shop.example"}
    paid = shop.api.pay(merchantTransactionId="4111111111111111", **names).id
    page = signed_in(person("clara", "clerk", shop.merchant)).get(f"{LIST}{payment_of(paid).pk}/change/").content
    assert b"mailto:zoe@shop.example" in page
    assert b"4111111111111111" not in page
    story = build_payment_story(payment_of(paid))
    mail = build_shopper_mail(payment_of(paid), story.chain, story.status)
    assert mail is not None
    assert "411111" in mail["text"]


def test_a_bar_shows_why_an_amount_is_over_a_limit() -> None:
    bar = clerk_limits.build_limit_bar(Decimal("50.00"), Decimal("30.00"), Decimal("45.00"), "EUR")
    assert (bar["used"], bar["asked"], bar["limit"]) == (120, 180, 200)
    assert bar["label"] == "30.00 EUR used + 45.00 EUR asked for, of a limit of 50.00 EUR: 25.00 EUR over it"
    within = clerk_limits.build_limit_bar(Decimal("50.00"), Decimal(0), Decimal("45.00"), "EUR")
    assert "over it" not in within["label"]

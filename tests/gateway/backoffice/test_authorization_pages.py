"""Authorizations in the back office: their end on the payment's page, their releases on a page of their own."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from gateway.backoffice.entities.channel_pages import ChannelForm
from gateway.models import AuthorizationRelease, Channel, Role
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
LIST = "/admin/gateway/authorizationrelease/"


@pytest.fixture
def boss(shop: Shop) -> Client:
    return signed_in(person("boss", Role.MANAGER, shop.merchant))


def words(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_a_payments_page_says_what_was_authorized_and_until_when(shop: Shop, boss: Client) -> None:
    held = shop.api.pay(paymentType="PA", amount="100.00").id
    shop.api.follow(held, "PA", "50.00", **{"standingInstruction.industryPractice": "INCREMENTAL_AUTH"})
    shop.api.follow(held, "CP", "30.00")
    page = words(boss, f"/admin/gateway/payment/{held}/change/")
    assert "Granted 100.00 EUR" in page
    assert "Raised by 50.00 EUR" in page
    assert "estimated, raised since" in page
    assert "May be captured until" in page
    assert "Capture…" in page
    pass_time(shop.api, days=11)
    page = words(boss, f"/admin/gateway/payment/{held}/change/")
    assert "Released 120.00 EUR" in page
    assert "expired: it may not be captured any more" in page
    assert "Capture…" not in page


def test_releases_are_listed_with_what_they_released(shop: Shop, stranger: Shop, boss: Client) -> None:
    held = shop.api.pay(paymentType="PA", amount="100.00").id
    shop.api.follow(held, "CP", "30.00", sequence="FINAL")
    assert "to be released" in words(boss, LIST)
    pass_time(shop.api, days=1)
    page = words(boss, LIST)
    assert "70.00 EUR" in page
    row = AuthorizationRelease.objects.get()
    assert str(row.payment.hex if row.payment else "") in words(boss, f"{LIST}{row.pk}/change/")
    assert "70.00 EUR" in words(boss, f"{LIST}?q={held}")
    assert "70.00 EUR" not in words(boss, f"{LIST}?q={row.payment}")
    other = signed_in(person("other", Role.MANAGER, stranger.merchant))
    assert "70.00 EUR" not in words(other, LIST)
    assert other.get(f"{LIST}{row.pk}/change/").status_code in (302, 404)


def test_a_channels_page_takes_and_checks_its_days(shop: Shop) -> None:
    Channel.objects.update(authorization_days={"VISA": 7, "*": None})
    shop.channel.refresh_from_db()
    form = ChannelForm(instance=shop.channel)
    assert form["authorization_days"].value() == "*=none, VISA=7"
    field = form.fields["authorization_days"]
    assert field.clean("MASTER=30, VISA=none") == {"MASTER": 30, "VISA": None}

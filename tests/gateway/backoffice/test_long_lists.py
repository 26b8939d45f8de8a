"""Lists of more rows than a page has: every row is reached, and what is cut says so."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from gateway.access import audit_log
from gateway.backoffice.acquirers import acquirer_health
from gateway.backoffice.kit import base, keyset
from gateway.backoffice.operations import lookup_pages
from gateway.core import clock
from gateway.models import AcquirerAccount, Approval, BackgroundWork, ErasureRequest, Role
from tests.support.fixtures import BY, Shop
from tests.support.office import person, signed_in
from tests.support.settlement import payment_of

pytestmark = pytest.mark.django_db
ROWS = 5


def make_approvals(shop: Shop, user: User) -> None:
    paid, now = payment_of(shop.api.pay().id), clock.real_now()
    for _ in range(ROWS):
        Approval.objects.create(
            merchant=shop.merchant, payment=paid, payment_type="RF", amount=Decimal("1.00"), currency="EUR",
            asked_by=user, asked_by_name="max", asked_at=now, expires_at=now + timedelta(days=7),
        )  # fmt: skip


def make_erasures(shop: Shop, user: User) -> None:
    for _ in range(ROWS):
        ErasureRequest.objects.create(
            merchant=shop.merchant, kind="email", value="a@b.example", shown="a…", reason="asked", asked_by=user,
            asked_by_name="max", asked_at=clock.real_now(),
        )  # fmt: skip


def make_work(shop: Shop, user: User) -> None:
    for number in range(ROWS):
        BackgroundWork.objects.create(
            kind="payments export", title=f"Export {number}", owner=user, asked_at=clock.real_now(), state="DONE"
        )


@pytest.mark.parametrize(
    ("name", "make"),
    [("approval", make_approvals), ("erasurerequest", make_erasures), ("backgroundwork", make_work)],
)
def test_every_row_of_a_long_list_is_reached(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, name: str, make: Callable[[Shop, User], None]
) -> None:
    """Older ones were cut, and nothing said so."""
    monkeypatch.setattr(keyset, "KEYSET_PAGE_ROWS", 2)
    user = person("max", Role.MANAGER, shop.merchant)
    make(shop, user)
    client, base = signed_in(user), f"/admin/gateway/{name}/"
    address, found = "?list=mine", set[str]()
    for _page in range(ROWS):
        page = client.get(base + address).content.decode()
        found |= set(re.findall(rf'href="{base}([0-9a-f-]{{36}})/change/"', page))
        following = re.search(r'rel="next" href="([^"]+)"', page)
        if following is None:
            break
        address = following[1].replace("&amp;", "&")
    assert len(found) == ROWS


def test_health_names_a_channel_with_its_merchant_and_says_that_it_was_cut(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty merchants have a channel "main"."""
    for number in range(2):
        AcquirerAccount.objects.create(
            channel=shop.channel, connector="simulator", acquirer_merchant_id=f"account-{number}", active=True
        )
    client = signed_in(person("max", Role.MANAGER, shop.merchant))
    page = client.get("/admin/gateway/acquireraccount/health/").content.decode()
    assert f"simulator · {shop.merchant.name}: {shop.channel.name}" in page
    assert "are shown." not in page
    monkeypatch.setattr(acquirer_health, "MAX_SHOWN_ACCOUNTS", 1)
    assert "The first 1 are shown." in client.get("/admin/gateway/acquireraccount/health/").content.decode()


def test_accounts_are_found_by_the_name_of_their_merchant(shop: Shop) -> None:
    AcquirerAccount.objects.create(channel=shop.channel, connector="simulator", acquirer_merchant_id="account-7")
    client = signed_in(person("max", Role.MANAGER, shop.merchant))
    for text, there in ((shop.merchant.name, True), ("nobody", False)):
        page = client.get("/admin/gateway/acquireraccount/", {"q": text}).content.decode()
        assert ("account-7" in page) is there


def test_a_history_says_that_it_was_cut(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base, "MAX_HISTORY_ROWS", 2)
    client = signed_in(person("max", Role.MANAGER, shop.merchant))
    history = f"/admin/gateway/channel/{shop.channel.pk}/history/"
    for number, cut in enumerate((False, False, True), 1):
        audit_log.record_audit_entry(BY, "change", shop.channel, after={"number": number})
        page = client.get(history).content.decode()
        assert ("The first 2 are shown." in page) is cut
        assert page.count("changed channel") == min(number, 2)


def test_a_registration_says_that_its_payments_were_cut(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_pages, "MAX_REGISTRATION_PAYMENTS", 1)
    stored = shop.api.pay(createRegistration="true").body["registrationId"]
    client = signed_in(person("max", Role.MANAGER, shop.merchant))
    address = f"/admin/gateway/registration/{UUID(stored)}/change/"
    assert "The first 1 are shown." not in client.get(address).content.decode()
    assert shop.api.post(f"/v1/registrations/{stored}/payments", {
        "paymentType": "DB", "amount": "92.00", "currency": "EUR",
    }).status == 200  # fmt: skip
    assert "The first 1 are shown." in client.get(address).content.decode()

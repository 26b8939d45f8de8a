"""The list of archived payments, and what the list of the others says where it ends. docs/decisions/0151."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from gateway.backoffice.payments import archived_search, payment_search
from gateway.backoffice.payments.payment_filters import PAYMENT_FILTER_NAMES
from gateway.core import clock
from gateway.models import Payment, Role
from tests.gateway.personal_data.test_payment_archiving import HOT_DAYS, captured, later
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
LIST = "/admin/gateway/payment/"
SHOWN = re.compile(r'/admin/gateway/payment/([0-9a-f-]{32,36})/change/"')
LINK = re.compile(r'href="(\?[^"]*archived=1[^"]*)">Show archived payments')


@pytest.fixture(autouse=True)
def archives(settings: Any) -> None:
    settings.GATEWAY_PAYMENT_HOT_DAYS = HOT_DAYS


@pytest.fixture
def clerk(shop: Shop) -> Client:
    return signed_in(person("clerk", Role.CLERK, shop.merchant))


def text_of(client: Client, **asked: str) -> str:
    page = client.get(LIST, asked)
    assert page.status_code == 200
    return page.content.decode()


def shown(client: Client, **asked: str) -> list[str]:
    """The payments of the list of archived ones, in its order."""
    return [one.replace("-", "") for one in SHOWN.findall(text_of(client, archived="1", **asked))]


def today() -> date:
    return clock.real_now().date()


def test_archived_payments_are_listed_newest_first_with_what_is_kept_of_them(
    shop: Shop, clerk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = captured(shop)
    later(monkeypatch)
    shop.api.pay()
    assert shown(clerk) == ids[::-1]
    page = text_of(clerk, archived="1")
    for words in ("order-4711", shop.merchant.name, "•••• ", "92.00", "Payments that are not archived"):
        assert words in page
    for absent in ('name="pick"', "Sums of this list", 'value="xlsx"'):
        assert absent not in page


def test_the_list_of_archived_payments_has_pages(shop: Shop, clerk: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [shop.api.pay().id for _ in range(5)]
    later(monkeypatch)
    monkeypatch.setattr(archived_search.find_archived_page, "__kwdefaults__", {"after": "", "size": 2})
    seen, after = [], ""
    for _ in range(3):
        seen += shown(clerk, **({"after": after} if after else {}))
        found = re.search(r'rel="next" href="\?[^"]*after=([^"&]+)', text_of(clerk, archived="1", after=after))
        after = found[1].replace("%3A", ":").replace("%2B", "+") if found else ""
    assert (seen, after) == (ids[::-1], "")


def test_a_payment_that_is_brought_back_while_the_list_is_read_hides_no_older_ones(
    shop: Shop, clerk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [shop.api.pay().id for _ in range(5)][::-1]
    later(monkeypatch)
    monkeypatch.setattr(archived_search.find_archived_page, "__kwdefaults__", {"after": "", "size": 2})
    read = archived_search.list_archived_payments
    monkeypatch.setattr(archived_search, "list_archived_payments", lambda keys: read(keys)[:-1])
    assert len(shown(clerk)) == 2
    monkeypatch.setattr(
        archived_search, "list_archived_payments", lambda keys: [one for one in read(keys) if one.id.hex != ids[0]]
    )
    page = text_of(clerk, archived="1")
    assert ids[0] not in page.replace("-", "")
    assert 'rel="next"' in page


@pytest.mark.parametrize("merged", [10, 0])
def test_a_clerk_of_one_channel_sees_the_archived_payments_of_that_channel(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, merged: int
) -> None:
    """Read channel by channel, and in one where there are many."""
    monkeypatch.setattr(payment_search, "MAX_MERGED_MERCHANTS", merged)
    second = shop.open_channel()
    own, other = shop.api.pay().id, shop.api_of(second).pay().id
    later(monkeypatch)
    one = signed_in(person("one", Role.CLERK, shop.channel))
    assert shown(one) == [own]
    assert one.get(f"{LIST}{UUID(other)}/change/").status_code == 404


def test_days_narrow_the_archive(shop: Shop, clerk: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    first = shop.api.pay().id
    later(monkeypatch)
    day, yesterday, tomorrow = today(), today() - timedelta(days=1), today() + timedelta(days=1)
    assert shown(clerk, **{"from": str(day), "to": str(day)}) == [first]
    assert shown(clerk, to=str(yesterday)) == []
    assert shown(clerk, **{"from": str(tomorrow)}) == []
    assert shown(clerk, period="yesterday") == []
    assert shown(clerk, period="hour") == [first]


FILTERS = {
    "status": ("APPROVED", "DECLINED"),
    "part": ("first", "follow_up"),
    "type": ("DB", "RF"),
    "brand": ("VISA", "MASTER"),
    "method": ("CC", "DD"),
    "currency": ("EUR", "USD"),
    "mode": ("INTERNAL", "EXTERNAL"),
    "family": ("success", "soft-decline"),
    "code": ("000.100.110", "800.100.152"),
    "connector": ("", "else"),
    "account": ("", "else"),
    "least": ("92", "93"),
    "most": ("92", "91"),
    "real_from": ("2020-01-01", "9000-01-01"),
    "real_to": ("9000-01-01", "2020-01-01"),
    "from": ("2020-01-01", "9000-01-01"),
    "to": ("9000-01-01", "2020-01-01"),
    "period": ("today", "yesterday"),
}


@pytest.mark.parametrize("name", [*FILTERS, "merchant", "channel"])
def test_every_filter_narrows_the_archive_as_it_does_the_others(
    shop: Shop, stranger: Shop, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    made = UUID(shop.api.pay(testMode="INTERNAL").id)
    row = Payment.objects.get(pk=made)
    own = {"connector": row.connector, "account": row.acquirer_merchant_id or "(none)", "code": row.result_code,
           "status": row.status, "brand": row.brand, "mode": row.test_mode}  # fmt: skip
    matching, other = FILTERS.get(name, ("", ""))
    if name in ("merchant", "channel"):
        matching, other = (getattr(each, name).pk.hex for each in (shop, stranger))
    asked = own.get(name, matching)
    everybody = signed_in(person("everybody", Role.AUDITOR, shop.merchant, stranger.merchant))

    def everyday(value: str) -> bool:
        return made.hex in text_of(everybody, **{name: value}).replace("-", "")

    before = (everyday(asked), everyday(other))
    assert before == (True, False)
    later(monkeypatch)
    assert (made.hex in shown(everybody, **{name: asked}), made.hex in shown(everybody, **{name: other})) == before


def test_the_filters_of_the_archive_are_all_but_the_state_of_a_chain() -> None:
    assert {*FILTERS, "merchant", "channel", "state"} == set(PAYMENT_FILTER_NAMES)


def test_the_state_of_a_chain_is_refused_for_the_archive_by_name(shop: Shop, clerk: Client) -> None:
    page = text_of(clerk, archived="1", state="declined")
    assert "A filter cannot be read" in page
    assert 'ck-field wrong">\n        <label for="f-state"' in page


def test_nobody_sees_the_archive_of_another_merchant(
    shop: Shop, stranger: Shop, clerk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, foreign = shop.api.pay().id, stranger.api.pay().id
    later(monkeypatch)
    assert shown(clerk) == [own]
    assert shown(clerk, channel=stranger.channel.pk.hex) == []
    assert set(shown(signed_in(person("all", Role.AUDITOR, shop.merchant, stranger.merchant)))) == {own, foreign}
    monkeypatch.setattr(payment_search, "MAX_MERGED_MERCHANTS", 0)
    assert shown(clerk) == [own]


def test_the_list_says_where_it_ends_and_leads_to_the_archive_with_its_filters(
    shop: Shop, clerk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = shop.api.pay().id
    later(monkeypatch)
    shop.api.pay()
    before = f"{clock.real_now() - timedelta(days=HOT_DAYS):%Y-%m-%d}"
    page = text_of(clerk, brand="VISA", state="captured", to=str(today()))
    assert f"Payments from before {before}" in page
    found = LINK.search(page)
    assert found
    address = found[1].replace("&amp;", "&")
    assert sorted(address.removeprefix("?").split("&")) == ["archived=1", "brand=VISA", f"to={today()}"]
    followed = clerk.get(f"{LIST}{address}").content.decode()
    assert first in followed.replace("-", "")


def test_an_empty_list_leads_to_the_archive_too(shop: Shop, clerk: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.api.pay()
    later(monkeypatch)
    assert LINK.search(text_of(clerk))
    assert LINK.search(text_of(clerk, q="jane@shop.example"))
    assert not LINK.search(text_of(clerk, q="order-1"))  # found in the archive, too


def test_where_nothing_can_be_archived_nothing_is_said_of_it(shop: Shop, clerk: Client, settings: Any) -> None:
    shop.api.pay()
    recent = str(today() - timedelta(days=HOT_DAYS - 2))
    older = str(today() - timedelta(days=HOT_DAYS + 2))
    assert [bool(LINK.search(text_of(clerk, **{"from": since}))) for since in (recent, older)] == [False, True]
    settings.GATEWAY_PAYMENT_HOT_DAYS = 0
    assert "archived" not in text_of(clerk).lower()


def test_a_list_that_goes_on_says_nothing_of_its_end(
    shop: Shop, clerk: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        shop.api.pay()
    monkeypatch.setattr(payment_search, "SEARCH_PAGE_ROWS", 2)
    page = text_of(clerk)
    assert 'rel="next"' in page
    assert not LINK.search(page)


def test_a_payments_time_may_be_the_merchants_own(shop: Shop, clerk: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that is moved is ahead of the ids by which partitions are read."""
    ahead = timedelta(days=400)
    type(shop.merchant).objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    made = shop.api.pay().id
    later(monkeypatch)
    day: datetime = clock.real_now() + ahead
    assert shown(clerk, **{"from": f"{day:%Y-%m-%d}", "to": f"{day:%Y-%m-%d}"}) == [made]

"""Lists are narrowed by any merchant or channel of an installation, however many it has, and by a period."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from gateway.backoffice.kit.list_filters import MAX_FILTER_LINKS
from gateway.backoffice.kit.periods import PERIODS
from gateway.core import clock
from gateway.core.identifiers import first_id_at
from gateway.models import Channel, Grant, Merchant, RequestLog, Role, SavedView, UserPreference
from tests.support.fixtures import Shop, open_shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
CHANNELS, RULES, REQUESTS = "/admin/gateway/channel/", "/admin/gateway/routingrule/", "/admin/gateway/requestlog/"
BY_MERCHANT, BY_CHANNEL = "merchant__id__exact", "channel__id__exact"
NOON = datetime(2026, 5, 14, 12, 0, tzinfo=UTC)


@pytest.fixture
def many(shop: Shop) -> list[Merchant]:
    """Four hundred merchants with a channel "main" each."""
    names = [f"Store {number:03d}" for number in range(400)]
    merchants = Merchant.objects.bulk_create([Merchant(name=name, division=shop.merchant.division) for name in names])
    Channel.objects.bulk_create([Channel(name="main", merchant=merchant) for merchant in merchants])
    return merchants


@pytest.fixture
def office(shop: Shop) -> Client:
    return signed_in(User.objects.create_superuser("root"))


def listed(client: Client, address: str, **asked: str) -> Any:
    """The list that an address shows."""
    answer = client.get(address, asked)
    assert answer.status_code == 200, answer
    return answer.context["cl"]


def listed_ids(client: Client, address: str, **asked: str) -> set[Any]:
    return {row.pk for row in listed(client, address, **asked).result_list}


def text_of(client: Client, address: str, **asked: str) -> str:
    return client.get(address, asked).content.decode()


# --- by a merchant or channel -------------------------------------------------------------------------------------


def test_the_last_of_four_hundred_merchants_is_chosen_by_its_name(office: Client, many: list[Merchant]) -> None:
    """A filter that offered the first hundred left the others out."""
    last = many[-1]
    own = set(last.channels.values_list("pk", flat=True))
    for typed in (last.name, "store 399", "399", last.pk.hex, str(last.pk)):
        assert listed_ids(office, CHANNELS, **{BY_MERCHANT: typed}) == own, typed
    page = text_of(office, CHANNELS, **{BY_MERCHANT: str(last.pk)})
    assert f'value="{last.name}"' in page, "the field names the merchant, not its id"


def test_what_names_none_or_several_finds_nothing_and_says_why(office: Client, many: list[Merchant]) -> None:
    for typed, said in (
        ("Store", "“Store” names several"),
        ("No such shop", "“No such shop” names none of yours"),
        ("<b>", "“&lt;b&gt;” names none of yours"),
        ("x" * 5_000, "names none of yours"),
    ):
        page = text_of(office, CHANNELS, **{BY_MERCHANT: typed})
        assert page.count(said) == 2, "as a message, and at the field, which may be folded away"
        assert listed_ids(office, CHANNELS, **{BY_MERCHANT: typed}) == set()


def test_a_channel_is_typed_with_its_merchant(office: Client, many: list[Merchant]) -> None:
    page = text_of(office, RULES, **{BY_CHANNEL: "Store 123: main"})
    assert 'value="Store 123: main"' in page
    assert 'data-names="/admin/names/channel/"' in page
    assert "“main” names several" in text_of(office, RULES, **{BY_CHANNEL: "main"})


def test_a_filter_keeps_what_else_narrows_the_list(office: Client, many: list[Merchant]) -> None:
    page = text_of(office, CHANNELS, active__exact="1", q="main", p="1", **{BY_MERCHANT: "399"})
    form = page[page.index('aria-label="Merchant"') :]
    form = form[: form.index("</form>")]
    assert '<input type="hidden" name="active__exact" value="1">' in form
    assert '<input type="hidden" name="q" value="main">' in form
    assert 'name="p"' not in form
    assert form.count(f'name="{BY_MERCHANT}"') == 1


def test_a_few_are_links_as_before(shop: Shop) -> None:
    user = person("somebody", Role.MANAGER, shop.merchant)
    for number in range(MAX_FILTER_LINKS - 1):
        other = open_shop(shop.merchant.division, f"Other {number}")
        Grant.objects.create(user=user, role=Role.MANAGER, merchant=other.merchant)
    page = text_of(signed_in(user), CHANNELS)
    assert f"?{BY_MERCHANT}={other.merchant.pk}" in page
    assert "data-names" not in page


def test_one_merchant_is_no_choice(shop: Shop) -> None:
    page = text_of(signed_in(person("somebody", Role.MANAGER, shop.merchant)), CHANNELS)
    assert BY_MERCHANT not in page


def test_nobody_learns_of_a_merchant_that_is_not_theirs(shop: Shop, many: list[Merchant]) -> None:
    """Neither whether a name exists, nor its rows: a foreign merchant reads as one that is not there."""
    client = signed_in(person("somebody", Role.MANAGER, shop.merchant, *many[: MAX_FILTER_LINKS + 1]))
    for typed in (many[-1].name, many[-1].pk.hex):
        assert f"“{typed}” names none of yours" in text_of(client, CHANNELS, **{BY_MERCHANT: typed})
        assert listed_ids(client, CHANNELS, **{BY_MERCHANT: typed}) == set()
    assert many[-1].name not in text_of(client, CHANNELS, **{BY_MERCHANT: many[-1].pk.hex})


def test_a_list_asks_the_same_however_many_merchants_there_are(shop: Shop, office: Client) -> None:
    def count() -> int:
        office.get(CHANNELS)
        with CaptureQueriesContext(connection) as sent:
            office.get(CHANNELS)
        return len(sent)

    Merchant.objects.bulk_create(
        Merchant(name=f"A {number}", division=shop.merchant.division) for number in range(MAX_FILTER_LINKS)
    )
    few = count()
    Merchant.objects.bulk_create(Merchant(name=f"B {number}", division=shop.merchant.division) for number in range(300))
    assert count() == few


# --- by a period --------------------------------------------------------------------------------------------------


@pytest.fixture
def hours(monkeypatch: pytest.MonkeyPatch) -> dict[str, RequestLog]:
    """Requests before noon of a Thursday in May, by how long before."""
    monkeypatch.setattr(clock, "real_now", lambda: NOON)
    RequestLog.objects.all().delete()
    ages = {
        "minutes": timedelta(minutes=20), "morning": timedelta(hours=10), "night": timedelta(hours=13),
        "days": timedelta(days=4), "april": timedelta(days=20), "march": timedelta(days=50),
    }  # fmt: skip
    return {name: log_request(NOON - age) for name, age in ages.items()}


def log_request(at: datetime) -> RequestLog:
    return RequestLog.objects.create(
        id=first_id_at(at), at=at, method="GET", path="/v1/x", status=200, result_code="", duration_ms=1
    )


@pytest.mark.parametrize(
    ("period", "found"),
    [
        ("hour", {"minutes"}), ("day", {"minutes", "morning", "night"}), ("today", {"minutes", "morning"}),
        ("yesterday", {"night"}), ("week", {"minutes", "morning", "night", "days"}),
        ("month", {"minutes", "morning", "night", "days"}), ("last_month", {"april"}),
    ],
)  # fmt: skip
def test_requests_of_a_period(office: Client, hours: dict[str, RequestLog], period: str, found: set[str]) -> None:
    assert listed_ids(office, REQUESTS, period=period) == {hours[name].pk for name in found}


def test_an_end_before_the_beginning_stays_to_be_corrected(office: Client, hours: dict[str, RequestLog]) -> None:
    page = text_of(office, REQUESTS, **{"from": "2026-05-14T10:00", "to": "2026-05-14T09:00"})
    assert 'value="2026-05-14T09:00"' in page


def test_every_period_is_offered(office: Client) -> None:
    page = text_of(office, REQUESTS)
    for value, words in PERIODS.items():
        assert f'<option value="{value}">{words}</option>' in page


def test_from_one_time_to_another(office: Client, hours: dict[str, RequestLog]) -> None:
    """To the minute; the end is not in it. A day is whole."""
    asked = {"from": "2026-05-14T02:00", "to": "2026-05-14T11:40"}
    assert listed_ids(office, REQUESTS, **asked) == {hours["morning"].pk}
    page = text_of(office, REQUESTS, **asked)
    assert 'value="2026-05-14T02:00"' in page
    assert 'value="2026-05-14T11:40"' in page
    assert listed_ids(office, REQUESTS, **{"from": "2026-04-24", "to": "2026-05-10"}) == {
        hours["april"].pk,
        hours["days"].pk,
    }


def test_days_are_those_of_the_readers_zone(office: Client, hours: dict[str, RequestLog]) -> None:
    """One hour before midnight in UTC is one hour after it in Berlin, and what is typed is Berlin's time."""
    UserPreference.objects.create(user=User.objects.get(username="root"), time_zone="Europe/Berlin")
    office.get("/admin/")  # the zone is read with the row of the sign-in, which the first page makes
    assert listed_ids(office, REQUESTS, period="today") == {hours[name].pk for name in ("minutes", "morning", "night")}
    assert listed_ids(office, REQUESTS, period="yesterday") == set()
    asked = {"from": "2026-05-14T01:00", "to": "2026-05-14T01:01"}
    assert listed_ids(office, REQUESTS, **asked) == {hours["night"].pk}
    assert 'value="2026-05-14T01:00"' in text_of(office, REQUESTS, **asked)
    in_utc = {"from": "2026-05-13T23:00Z", "to": "2026-05-13T23:01Z"}
    assert 'value="2026-05-14T01:00"' in text_of(office, REQUESTS, **in_utc), "the same moment, by a link"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"period": "century"}, "this period is not known here"),
        ({"from": "soon"}, "give a date as yyyy-MM-dd"),
        ({"to": "9999-12-31"}, "give a date before the year 9999"),
        ({"from": "2026-05-14T10:00", "to": "2026-05-14T09:00"}, "lies before the beginning"),
        ({"from": "0001-01-01T00:00"}, ""),
        ({"to": "9998-12-31T23:59"}, ""),
    ],
)
def test_a_time_that_cannot_be_read_is_said_to_be_so(
    office: Client, hours: dict[str, RequestLog], asked: dict[str, str], said: str
) -> None:
    page = text_of(office, REQUESTS, **asked)
    if said:
        assert page.count(said) == 2
        assert listed_ids(office, REQUESTS, **asked) == set()


def test_a_period_is_found_along_the_primary_key(office: Client, hours: dict[str, RequestLog]) -> None:
    """A log of years is not read for its last hour: the months that cannot have it are not opened."""
    rows = listed(office, REQUESTS, period="yesterday").queryset
    conditions = str(rows.query)
    assert '"gateway_requestlog"."id" >= ' in conditions
    assert '"gateway_requestlog"."id" < ' in conditions


def test_a_view_keeps_a_period(office: Client) -> None:
    """The period itself is kept, so that "yesterday" is another day tomorrow."""
    form = {"page": "gateway.requestlog", "query": "period=yesterday&p=2", "name": "Of yesterday"}
    office.post("/admin/views/save/", form)
    assert SavedView.objects.get(name="Of yesterday").query == {"period": "yesterday"}


@pytest.mark.parametrize(
    "address",
    [
        "/admin/gateway/registration/",
        "/admin/gateway/authentication/",
        "/admin/gateway/processorevent/",
        "/admin/checkout/checkout/",
    ],
)
def test_other_lists_with_times_have_periods(office: Client, shop: Shop, address: str) -> None:
    shop.api.pay(createRegistration="true")
    everything = listed_ids(office, address)
    assert listed_ids(office, address, period="today") | listed_ids(office, address, period="yesterday") == everything
    assert listed_ids(office, address, period="last_month") == set()
    assert listed_ids(office, address, to="2001-01-01") == set()

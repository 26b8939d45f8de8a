"""Lists are narrowed by any merchant or channel of an installation, however many it has, and by a period."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from checkout.models import Checkout
from gateway.backoffice.kit.list_filters import MAX_FILTER_LINKS
from gateway.backoffice.kit.periods import PERIODS, format_filter_time, parse_filter_end, parse_filter_time
from gateway.core import clock
from gateway.core.identifiers import first_id_at
from gateway.models import (
    AcquirerAccount,
    AcquirerCost,
    Authentication,
    Channel,
    Grant,
    Merchant,
    ProcessorEvent,
    Registration,
    RequestLog,
    Role,
    SavedView,
    UserPreference,
)
from tests.support.fixtures import Shop, open_shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
CHANNELS, RULES, REQUESTS = "/admin/gateway/channel/", "/admin/gateway/routingrule/", "/admin/gateway/requestlog/"
COSTS = "/admin/gateway/acquirercost/"
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
    answer = client.get(address, asked)
    assert answer.status_code == 200, answer
    return answer.content.decode()


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


def test_an_emptied_name_asks_for_every_row_and_keeps_the_other_filters(office: Client, many: list[Merchant]) -> None:
    """Found in use: the list came back with ?e=1 and without any filter."""
    active = set(Channel.objects.filter(name="main").values_list("pk", flat=True)[:3])
    Channel.objects.exclude(pk__in=active).update(active=False)
    for blank in ("", "  "):
        assert listed_ids(office, CHANNELS, active__exact="1", **{BY_MERCHANT: blank}) == active
        assert "names none of yours" not in text_of(office, CHANNELS, **{BY_MERCHANT: blank})


def test_rows_that_cannot_be_typed_are_links_in_the_order_of_their_names(office: Client, shop: Shop) -> None:
    """A filter that cut them at ten left out accounts that nothing else on the page chose."""
    names = [f"Account {number:02d}" for number in range(MAX_FILTER_LINKS + 5)]
    for name in reversed(names):
        account = AcquirerAccount.objects.create(
            channel=shop.channel, connector="stub", acquirer_merchant_id=name, name=name
        )
        AcquirerCost.objects.create(account=account, percent=1, valid_from=date(2026, 1, 1))
    shown = listed(office, COSTS).filter_specs[0].lookup_choices
    assert [name for _pk, name in shown] == names
    page = text_of(office, COSTS)
    for pk, _name in shown:
        assert f"?account__id__exact={pk}" in page
    last = AcquirerAccount.objects.get(name=names[-1])
    assert listed_ids(office, COSTS, account__id__exact=str(last.pk)) == set(last.costs.values_list("pk", flat=True))


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
        ({"to": "9999-12-31"}, "give a year from 1970 to 9998"),
        ({"from": "2026-05-14T10:00", "to": "2026-05-14T09:00"}, "lies before the beginning"),
    ],
)
def test_a_time_that_cannot_be_read_is_said_to_be_so(
    office: Client, hours: dict[str, RequestLog], asked: dict[str, str], said: str
) -> None:
    page = text_of(office, REQUESTS, **asked)
    assert page.count(said) == 2
    assert listed_ids(office, REQUESTS, **asked) == set()
    name = "to" if "to" in asked else next(iter(asked))
    assert page.count('aria-invalid="true"') == 1
    assert f'aria-describedby="fault-{name}"' in page
    assert f'<p class="ck-fault" id="fault-{name}">' in page


ZONES = ("Pacific/Kiritimati", "America/Los_Angeles")  # fourteen hours ahead of UTC, and eight behind


def set_zone(client: Client, zone: str) -> None:
    UserPreference.objects.create(user=User.objects.get(username="root"), time_zone=zone)
    client.get("/admin/")  # the zone is read with the row of the sign-in, which the first page makes


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("name", ["from", "to"])
@pytest.mark.parametrize(
    "text",
    ["0001-01-01", "0001-01-01T00:00", "0001-01-01T00:00Z", "9999-12-31", "9999-12-31T23:59", "9999-12-31T23:59Z"],
)
def test_the_ends_of_the_calendar_are_refused_in_any_zone(
    office: Client, hours: dict[str, RequestLog], zone: str, name: str, text: str
) -> None:
    """A tolerance before the first moment or after the last, or either in another zone, is no time at all."""
    set_zone(office, zone)
    assert text_of(office, REQUESTS, **{name: text}).count("give a year from 1970 to 9998") == 2
    assert listed_ids(office, REQUESTS, **{name: text}) == set()


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize(
    ("first", "last"),
    [
        ("1970-01-01", "9998-12-31"),
        ("1970-01-01T00:00", "9998-12-31T23:59"),
        ("1970-01-01T00:00Z", "9998-12-31T23:59Z"),
    ],
)
def test_the_first_and_the_last_year_are_read_in_any_zone(
    office: Client, hours: dict[str, RequestLog], zone: str, first: str, last: str
) -> None:
    set_zone(office, zone)
    assert {row.pk for row in hours.values()} <= listed_ids(office, REQUESTS, **{"from": first, "to": last})
    with timezone.override(zone):
        for at in (parse_filter_time(first), parse_filter_end(last)):
            assert parse_filter_time(format_filter_time(at)) == at, "what runs later reads it in UTC"


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


def make_registration(shop: Shop, at: datetime) -> Any:
    return Registration.objects.create(
        id=first_id_at(at), merchant=shop.merchant, channel=shop.channel, brand="VISA", method="CC", means="card",
        payment=first_id_at(at), created_at=at,
    ).pk  # fmt: skip


def make_authentication(shop: Shop, at: datetime) -> Any:
    return Authentication.objects.create(
        id=first_id_at(at), merchant=shop.merchant, channel=shop.channel, brand="VISA", amount=Decimal("92.00"),
        currency="EUR", request_id=first_id_at(at), created_at=at,
    ).pk  # fmt: skip


def make_event(shop: Shop, at: datetime) -> Any:
    account, _made = AcquirerAccount.objects.get_or_create(
        channel=shop.channel, connector="stub", acquirer_merchant_id="4711"
    )
    return ProcessorEvent.objects.create(
        id=first_id_at(at), account=account, event_id=f"evt_{at:%d}", kind="refund.created", object_id="re_1",
        due_at=at, created_at=at,
    ).pk  # fmt: skip


def make_checkout(shop: Shop, at: datetime) -> Any:
    return Checkout.objects.create(
        merchant=shop.merchant, channel=shop.channel, kind=Checkout.Kind.PAYMENT, created_at=at, expires_at=at
    ).pk


@pytest.mark.parametrize(
    ("address", "make"),
    [
        ("/admin/gateway/registration/", make_registration),
        ("/admin/gateway/authentication/", make_authentication),
        ("/admin/gateway/processorevent/", make_event),
        ("/admin/checkout/checkout/", make_checkout),
    ],
)
def test_other_lists_with_times_have_periods(
    office: Client, shop: Shop, monkeypatch: pytest.MonkeyPatch, address: str, make: Callable[[Shop, datetime], Any]
) -> None:
    monkeypatch.setattr(clock, "real_now", lambda: NOON)
    today, april = make(shop, NOON - timedelta(hours=2)), make(shop, NOON - timedelta(days=20))
    assert listed_ids(office, address) == {today, april}
    assert listed_ids(office, address, period="today") == {today}
    assert listed_ids(office, address, period="yesterday") == set()
    assert listed_ids(office, address, period="last_month") == {april}
    assert listed_ids(office, address, to="2026-05-13") == {april}
    assert listed_ids(office, address, **{"from": "2026-05-14T10:00"}) == {today}
    assert listed_ids(office, address, **{"from": "2026-05-14T10:01"}) == set()

"""One box finds a payment by whatever a clerk has in hand, in one's own part of the tree, page by page."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gateway.access.permissions import FULL_ACCESS, NO_ACCESS, AccessScope
from gateway.backoffice.kit import time_limit
from gateway.backoffice.payments import payment_search
from gateway.backoffice.payments.payment_filters import PAYMENT_FILTER_NAMES, parse_payment_filters
from gateway.backoffice.payments.search_terms import FullCardNumberError, SearchTerm, parse_search_term
from gateway.core import clock, identifiers, result_codes
from gateway.models import Payment
from tests.support.client import Answer
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
PAN = "5454545454545454"
EMAIL = "Jane.Jones@shop.example"


def own(shop: Shop) -> AccessScope:
    return AccessScope(merchants=frozenset({shop.merchant.pk}))


def ids(page: payment_search.SearchPage) -> list[str]:
    return [row.id.hex for row in page.rows]


def found(text: str, scope: AccessScope = FULL_ACCESS, **filters: str) -> list[str]:
    read, wrong = parse_payment_filters({name.rstrip("_"): value for name, value in filters.items()})
    assert not wrong
    return ids(payment_search.find_payments_page(scope, parse_search_term(text), read))


@pytest.fixture
def paid(shop: Shop) -> Answer:
    answer = shop.api.pay(
        card__number=PAN,
        paymentBrand="MASTER",
        amount="47.11",
        merchantTransactionId="order-4711",
        merchantInvoiceId="invoice-0815",
        customer__email=EMAIL,
        customer__givenName="Jane",
        customer__surname="Jones",
    )
    assert answer.status == 200
    shop.api.pay(amount="1.00", customer__email="somebody@else.example", customer__givenName="A", customer__surname="B")
    return answer


def terms(paid: Answer) -> dict[str, str]:
    row = Payment.objects.get(pk=paid.id)
    return {
        "id": paid.id,
        "uuid": str(row.pk),
        "shortId": identifiers.format_short_id(row.number),
        "ndc": paid.body["ndc"],
        "email": EMAIL.lower(),
        "lastFour": PAN[-4:],
        "amount": "47,11",
        "amount and currency": "47.11 eur",
        "order": "order-4711",
        "invoice": "invoice-0815",
        "fingerprint": f"{PAN[-4:]}:{bytes(row.means_fingerprint or b'').hex()}",
        "named": "order: order-4711",
    }


@pytest.mark.parametrize(
    "how",
    [
        "id",
        "uuid",
        "shortId",
        "ndc",
        "email",
        "lastFour",
        "amount",
        "amount and currency",
        "order",
        "invoice",
        "fingerprint",
        "named",
    ],
)
def test_a_payment_is_found_by_what_a_clerk_has_in_hand(shop: Shop, stranger: Shop, paid: Answer, how: str) -> None:
    """Each shape is recognised, and another merchant's user finds nothing by it."""
    term = terms(paid)[how]
    assert found(term) == [paid.id]
    assert found(term, own(shop)) == [paid.id]
    assert found(term, own(stranger)) == []
    assert found(term, NO_ACCESS) == []


def test_a_user_of_one_channel_finds_what_is_of_that_channel(shop: Shop, paid: Answer) -> None:
    """Issue: rights by entity tree."""
    other = shop.open_channel()
    assert found("order-4711", AccessScope(channels=frozenset({shop.channel.pk}))) == [paid.id]
    assert found("order-4711", AccessScope(channels=frozenset({other.pk}))) == []
    assert found("", AccessScope(channels=frozenset({other.pk}))) == []


def test_a_registrations_id_finds_what_was_paid_with_it(shop: Shop) -> None:
    """Issue: search; also by a registration's id."""
    made = shop.api.pay(createRegistration="true")
    registration = made.body["registrationId"]
    paid = shop.api.post(
        f"/v1/registrations/{registration}/payments", {"paymentType": "DB", "amount": "3.00", "currency": "EUR"}
    )
    assert paid.status == 200, paid
    assert sorted(found(registration)) == sorted([made.id, paid.id])


@pytest.mark.parametrize("text", [PAN, "5454 5454 5454 5454", "5454-5454-5454-5454", f"card {PAN}", f"order:{PAN}"])
def test_a_whole_card_number_is_never_looked_for(text: str) -> None:
    """Brief: full PAN is never accepted."""
    with pytest.raises(FullCardNumberError):
        parse_search_term(text)


@pytest.mark.parametrize("text", ["' OR 1=1 --", "%", "\0", "a\0b", "🦊", "*" * 500, "0" * 32, "@", "99999999999.00"])
def test_any_text_finds_something_or_nothing_and_breaks_nothing(paid: Answer, text: str) -> None:
    """Ground rule: bad input never breaks a page."""
    assert isinstance(found(text), list)


def test_pages_follow_each_other_without_a_gap_or_a_repeat(shop: Shop, stranger: Shop) -> None:
    """Issue: keyset paging; through one merchant, several, and all."""
    made = [(shop if n % 3 else stranger).api.pay(amount=f"{n}.00").id for n in range(1, 12)]
    both = AccessScope(merchants=frozenset({shop.merchant.pk, stranger.merchant.pk}))
    for scope in (both, FULL_ACCESS):
        seen: list[str] = []
        after = ""
        while True:
            page = payment_search.find_payments_page(
                scope, SearchTerm(), parse_payment_filters({})[0], after=after, size=4
            )
            seen += ids(page)
            if not page.after:
                break
            after = page.after
        assert seen == made[::-1]


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "", "2026-13-01"])
def test_a_cursor_that_cannot_be_read_gives_the_first_page(paid: Answer, at: str) -> None:
    read, _wrong = parse_payment_filters({})
    page = payment_search.find_payments_page(FULL_ACCESS, SearchTerm(), read, after=f"{at}_{paid.id}")
    assert paid.id in ids(page)


def test_a_list_of_many_merchants_reads_the_newest_of_all(monkeypatch: Any, shop: Shop, stranger: Shop) -> None:
    """Issue: fast on a million payments: more merchants than EACH_AT_MOST are read off the newest rows."""
    monkeypatch.setattr(payment_search, "MAX_MERGED_MERCHANTS", 1)
    made = [(shop if n % 2 else stranger).api.pay(amount=f"{n}.00").id for n in range(1, 6)]
    page = payment_search.find_payments_page(FULL_ACCESS, SearchTerm(), parse_payment_filters({})[0], size=3)
    rest = payment_search.find_payments_page(
        FULL_ACCESS, SearchTerm(), parse_payment_filters({})[0], after=page.after, size=3
    )
    assert ids(page) + ids(rest) == made[::-1]
    first, last = (Payment.objects.get(pk=made[n]).created_at for n in (0, -1))
    assert found("", from_=f"{first:%Y-%m-%d}", to=f"{last:%Y-%m-%d}") == made[::-1]
    assert found("", to=f"{first - timedelta(days=1):%Y-%m-%d}") == []
    assert found("3.00") == [made[2]]


@pytest.mark.parametrize("each_at_most", [20, 1])
def test_an_amount_is_found_among_the_newest_and_behind_them(
    monkeypatch: Any, shop: Shop, stranger: Shop, each_at_most: int
) -> None:
    """Within a second on a million payments, page by page, without a gap or a repeat."""
    monkeypatch.setattr(payment_search, "MAX_MERGED_MERCHANTS", each_at_most)
    monkeypatch.setattr(payment_search, "MAX_AMOUNT_ROWS", 4)
    made = [(shop if n % 3 else stranger).api.pay(amount="47.11" if n % 2 else "1.00").id for n in range(14)]
    wanted = [ident for n, ident in enumerate(made) if n % 2][::-1]
    for scope, expected in (
        (FULL_ACCESS, wanted),
        (
            AccessScope(merchants=frozenset({shop.merchant.pk})),
            [x for n, x in enumerate(made) if n % 2 and n % 3][::-1],
        ),
    ):
        seen: list[str] = []
        after, pages = "", 0
        while pages == 0 or after:
            page = payment_search.find_payments_page(
                scope, parse_search_term("47.11 EUR"), parse_payment_filters({})[0], after=after, size=2
            )
            seen, after, pages = seen + ids(page), page.after, pages + 1
        assert seen == expected
    Payment.objects.filter(pk=made[1]).update(created_at=clock.real_now() - payment_search.AMOUNT_SEARCH_WINDOW)
    assert made[1] not in found("47.11")
    assert made[1] in found("47.11", from_="2000-01-01")


@pytest.mark.parametrize("each_at_most", [20, 1])
@pytest.mark.parametrize("text", [EMAIL, "1111", "orderStart:order-47"])
def test_what_many_payments_share_is_found_through_all_windows(
    monkeypatch: Any, shop: Shop, text: str, each_at_most: int
) -> None:
    """The newest, the days before them, and all others, page by page, without a gap or a repeat."""
    monkeypatch.setattr(payment_search, "MAX_MERGED_MERCHANTS", each_at_most)
    monkeypatch.setattr(payment_search, "MAX_SHARED_VALUE_ROWS", 3)
    days = (400, 90, 45, 44, 20, 10, 9, 8, 7, 2, 1, 0)
    made = []
    for number, back in enumerate(days):
        shared = {
            "card__number": "4111111111111111",
            "customer__email": EMAIL,
            "customer__givenName": "Jane",
            "customer__surname": "Jones",
            "merchantTransactionId": f"order-47{number}",
        }
        other = {"merchantTransactionId": f"other-47{number}"}
        made.append(shop.api.pay(amount="1.00", **(other if back == 9 else shared)).id)
        Payment.objects.filter(pk=made[-1]).update(created_at=clock.real_now() - timedelta(days=back))
    wanted = [ident for ident, back in zip(made, days, strict=True) if back != 9][::-1]
    seen: list[str] = []
    after, pages = "", 0
    while pages == 0 or after:
        page = payment_search.find_payments_page(
            FULL_ACCESS, parse_search_term(text), parse_payment_filters({})[0], after=after, size=2
        )
        seen, after, pages = seen + ids(page), page.after, pages + 1
    assert seen == wanted


FILTERS = {
    "status": "DECLINED", "type": "RF", "brand": "MASTER", "method": "CC", "currency": "EUR", "mode": "INTERNAL",
    "family": "rejected-bank", "code": "000.100.110", "least": "40", "most": "50.00",
    "connector": "simulator",
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(FILTERS))
def test_each_filter_narrows_to_what_it_names(shop: Shop, paid: Answer, name: str) -> None:
    """Issue: filters."""
    shop.api.follow(paid.id, "RF", "1.00")
    shop.api.pay(card__number="4000015500000005", amount="60.00")
    value = FILTERS[name]
    keeps = {
        "status": lambda p: p.status == value,
        "type": lambda p: p.payment_type == value,
        "brand": lambda p: p.brand == value,
        "method": lambda p: p.method == value,
        "currency": lambda p: p.currency == value,
        "mode": lambda p: p.test_mode == value,
        "family": lambda p: result_codes.find_result_family(p.result_code).value == value,
        "code": lambda p: p.result_code == value,
        "connector": lambda p: p.connector == value,
        "least": lambda p: p.amount >= Decimal(value),
        "most": lambda p: p.amount <= Decimal(value),
    }[name]
    rows = list(Payment.objects.all())
    expected = {row.id.hex for row in rows if keeps(row)}
    assert expected
    assert set(found("", **{name: value})) == expected


@pytest.mark.parametrize("name", PAYMENT_FILTER_NAMES)
def test_a_filter_that_means_nothing_is_named_and_left_out(name: str) -> None:
    """Ground rule: a clear error naming the field."""
    read, wrong = parse_payment_filters({name: "nonsense!"})
    assert set(wrong) == {name}
    assert read == parse_payment_filters({})[0]


def test_every_family_of_result_codes_is_a_filter_of_its_own_codes() -> None:
    """Decisions, section 3: first match wins."""
    codes = list(result_codes.RESULT_CODES)
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE told (code text)")
        cursor.executemany("INSERT INTO told VALUES (%s)", [(code,) for code in codes])
    for family in result_codes.ResultFamily:
        where, _ = parse_payment_filters({"family": family.value})
        sql, values = Payment.objects.filter(where.where()).values("result_code").query.sql_with_params()
        condition = sql.partition(" WHERE ")[2].replace('"gateway_payment"."result_code"', "code")
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT code FROM told WHERE {condition}", values)
            assert {row[0] for row in cursor.fetchall()} == {
                c for c in codes if result_codes.find_result_family(c) is family
            }


def test_no_search_counts_or_reads_the_whole_table(shop: Shop, paid: Answer) -> None:
    """Issue: no COUNT(*) over a million rows."""
    for term in [*terms(paid).values(), ""]:
        with CaptureQueriesContext(connection) as asked:
            found(term)
        assert not [query for query in asked.captured_queries if "COUNT(" in query["sql"].upper()]
        assert len(asked) <= 9


def test_what_takes_too_long_is_given_up(monkeypatch: Any, paid: Answer) -> None:
    """Brief: under a second, and a hint where that cannot be."""
    monkeypatch.setattr(time_limit, "SEARCH_TIMEOUT_MS", 1)
    with (
        pytest.raises(time_limit.SearchTooBroadError),
        time_limit.limit_search_time(),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT pg_sleep(5)")

"""Queries: which transactions are listed, how, and for whom. Source: Part B, Query; rulings D6, D12; decision 0026."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from gateway.api import query
from gateway.core import clock, identifiers
from gateway.core.compact_json import encode_json
from gateway.db import standby
from gateway.db.standby import AS_OF_HEADER
from gateway.models import AcquirerExchange, Payment
from gateway.payments import payment_archive, transaction_query
from gateway.payments.transaction_query import TransactionPage
from gateway.personal_data import payment_archiving
from tests.fuzz import meter
from tests.support.client import Answer, Api
from tests.support.database import statements
from tests.support.fixtures import Shop

LIST, RECORDS = "/v1/query", "/v3/query"
pytestmark = pytest.mark.django_db


def ids(answer: Answer, name: str = "payments") -> list[str]:
    assert answer.status == 200, answer
    assert answer.code == "000.000.100"
    return [one["id"] for one in answer.body[name]]


def nothing(answer: Answer) -> bool:
    return (answer.status, answer.code) == (400, "700.400.580")


@pytest.fixture
def chain(api: Api) -> list[str]:
    """A reservation, its capture and a refund of that, in this order; the first has a merchantTransactionId."""
    held = api.pay(paymentType="PA", merchantTransactionId="order-4711").id
    taken = api.follow(held, "CP", "92.00").id
    return [held, taken, api.follow(taken, "RF", "10.00").id]


# --- linked ones that filters take -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path, listed", [(LIST, "payments"), (RECORDS, "records")])
def test_types_and_methods_beside_an_id_narrow_what_is_linked(
    api: Api, chain: list[str], path: str, listed: str
) -> None:
    """Part B, Query: the transaction of the id is there whatever is asked for beside it."""
    held, taken, refunded = chain
    linked = {"includeLinkedTransactions": "true"}
    for fields, found in (
        ({}, [refunded, taken, held]),
        ({"paymentTypes": "RF"}, [refunded, held]),
        ({"paymentTypes": "CP,RF"}, [refunded, taken, held]),
        ({"paymentTypes": "CP", "paymentMethods": "CC"}, [taken, held]),
        ({"paymentTypes": "CP", "paymentMethods": "DD,VA"}, [held]),
        ({"paymentMethods": "CC"}, [refunded, taken, held]),
        ({"paymentMethods": "DD"}, [held]),
    ):
        body = api.get(f"{path}/{held}", fields | linked).body
        assert [one["id"] for one in body[listed]] == found, fields
        assert path == RECORDS or body["id"] == held
    alone = api.get(f"{path}/{held}", {"paymentTypes": "RF", "paymentMethods": "CC"})
    assert (alone.status, len(alone.body.get(listed, [held]))) == (200, 1)
    registration = api.pay(createRegistration="true").body["registrationId"]
    assert api.get(f"{path}/{registration}", {"paymentTypes": "RF"} | linked).status == 200
    for name in ("paymentTypes", "paymentMethods"):
        assert list(api.get(f"{path}/{held}", {name: "XX"}).errors) == [name]


# --- pages ------------------------------------------------------------------------------------------------------------


def test_a_page_after_the_last_one_is_empty_and_nothing_at_all_is_not_found(api: Api) -> None:
    """Ruling D6; part B, Query."""
    made = [api.pay(merchantTransactionId="order-4711").id for _ in range(3)]
    day = {"date.from": "2020-01-01 00:00:00", "date.to": "2049-01-01 00:00:00"}
    for fields in ({}, day, {"paymentTypes": "DB"}, {"merchantTransactionId": "order-4711"}, {"paymentMethods": "CC"}):
        first = api.get(RECORDS, fields | {"pageNo": "1"})
        assert (sorted(ids(first, "records")), first.body["pages"]) == (sorted(made), 1)
        for page in ("2", "3", "500", "501", "999999999"):
            later = api.get(RECORDS, fields | {"pageNo": page})
            assert (later.status, later.code, later.body["records"], later.body["pages"]) == (200, first.code, [], 1)
    for page in ("1", "2"):
        assert nothing(api.get(RECORDS, {"paymentTypes": "RF", "pageNo": page}))
        assert nothing(api.get(RECORDS, {"merchantTransactionId": "order-4712", "pageNo": page}))
        assert nothing(api.get(RECORDS, {"shortId": "1234.5678.9012", "pageNo": page}))


# --- by an id -------------------------------------------------------------------------------------------------------


def test_a_payment_is_found_by_its_id_as_it_was_answered(api: Api) -> None:
    """Ruling D6."""
    paid = api.pay(merchantTransactionId="order-4711")
    found = api.get(f"{LIST}/{paid.id}")
    assert found.status == 200
    of_the_answer = {"ndc", "timestamp", "buildNumber"}
    same = {name: value for name, value in paid.body.items() if name not in of_the_answer}
    assert {name: found.body[name] for name in same} == same
    assert found.body["ndc"] != paid.body["ndc"]
    assert {"shortId", "paymentMethod", "requestTimestamp"} <= found.body.keys()
    assert ids(api.get(f"{RECORDS}/{paid.id}"), "records") == [paid.id]


def test_a_declined_payment_is_found_with_200(api: Api) -> None:
    """Ruling D12."""
    declined = api.pay(card__number="4000015500000005")
    assert declined.status == 400
    found = api.get(f"{LIST}/{declined.id}")
    assert (found.status, found.code) == (200, declined.code)


def test_registrations_are_found_however_they_were_made(api: Api) -> None:
    """Ruling D6: a registration id is found there, too."""
    card = {"card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034"}
    direct = api.post("/v1/registrations", card).id
    beside = api.pay(createRegistration="true").body["registrationId"]
    assert api.get(f"{LIST}/{direct}").body["paymentType"] == "RG"
    found = api.get(f"{LIST}/{beside}")
    assert (found.status, found.id, found.body["card"]["last4Digits"]) == (200, beside, "0000")
    assert "paymentType" not in found.body
    assert api.delete(f"/v1/registrations/{beside}").status == 200
    assert (api.get(f"{LIST}/{beside}").status, api.get(f"{LIST}/{beside}").code) == (200, "100.150.202")


@pytest.mark.parametrize("path", [LIST, RECORDS])
@pytest.mark.parametrize("target", ["0" * 32, "nothing", "8AC7A4A19AD9A7A3019ADA4B7C6D5E4F"])
def test_an_id_that_names_nothing_is_404(api: Api, path: str, target: str) -> None:
    """Ruling D6."""
    found = api.get(f"{path}/{target}")
    assert (found.status, found.code) == (404, "700.400.580")
    assert "cannot find transaction" in found.description


def test_what_is_anothers_is_unknown(api: Api, stranger: Shop, shop: Shop) -> None:
    """Ruling D11; goals, R11."""
    paid = stranger.api.pay(merchantTransactionId="order-4711", createRegistration="true")
    short = stranger.api.get(f"{LIST}/{paid.id}").body["shortId"]
    other = shop.open_channel()
    beside = shop.api_of(other).pay(merchantTransactionId="order-4711")
    for target in (paid.id, paid.body["registrationId"], beside.id):
        assert api.get(f"{LIST}/{target}").status == 404
        assert api.get(f"{RECORDS}/{target}").status == 404
    for fields in ({"merchantTransactionId": "order-4711"}, {"shortId": short}, {}, {"paymentTypes": "DB"}):
        assert nothing(api.get(LIST, fields)), fields


def test_a_merchant_that_dispatches_sees_all_its_channels(shop: Shop) -> None:
    """Part A, Authentication, 4."""
    made = [shop.api.pay().id, shop.api_of(shop.open_channel()).pay().id]
    refunded = shop.api.follow(made[0], "RF", "1.00").id
    shop.merchant.dispatching = True
    shop.merchant.save()
    whole = shop.api.as_entity(shop.merchant.entity_id)
    assert ids(whole.get(LIST)) == [refunded, *reversed(made)]
    assert ids(whole.get(LIST, {"paymentTypes": "RF"})) == [refunded]
    assert whole.get(f"{LIST}/{made[1]}").status == 200


# --- lists ----------------------------------------------------------------------------------------------------------


def test_a_list_has_the_newest_first_and_says_when_each_was_made(api: Api) -> None:
    """A27.14; Ruling D6."""
    made = [api.pay().id for _ in range(3)]
    answer = api.get(LIST)
    assert ids(answer) == made[::-1]
    one = answer.body["payments"][0]
    assert one["result"]["code"] == "000.100.110"
    assert one["timestamp"] == clock.format_timestamp(Payment.objects.get(pk=one["id"]).created_at)
    assert one["card"]["last4Digits"] == "0000"
    assert ids(api.get(RECORDS), "records") == made[::-1]
    assert "pages" not in api.get(RECORDS).body


def test_nothing_found_is_400(api: Api) -> None:
    """Ruling D6."""
    for path in (LIST, RECORDS):
        assert nothing(api.get(path))
        assert nothing(api.get(path, {"merchantTransactionId": "order-4711"}))


def test_a_merchants_own_number_finds_its_payments(api: Api) -> None:
    """A1.5, A7.17, B22.1."""
    first, second = (api.pay(merchantTransactionId="order-4711").id for _ in range(2))
    api.pay(merchantTransactionId="order-4712")
    api.pay()
    assert ids(api.get(LIST, {"merchantTransactionId": "order-4711"})) == [second, first]
    assert nothing(api.get(LIST, {"merchantTransactionId": "order-471"}))


def test_linked_transactions_come_along_when_asked_for(api: Api, chain: list[str]) -> None:
    """B22.6: a reservation with a capture and a refund: 3 rows, else 1."""
    other = api.pay().id
    own = {"merchantTransactionId": "order-4711"}
    assert ids(api.get(LIST, own)) == chain[:1]
    assert ids(api.get(LIST, own | {"includeLinkedTransactions": "false"})) == chain[:1]
    assert ids(api.get(LIST, own | {"includeLinkedTransactions": "true"})) == chain[::-1]
    assert ids(api.get(LIST, {"paymentTypes": "RF", "includeLinkedTransactions": "true"})) == chain[::-1]
    assert ids(api.get(LIST, {"includeLinkedTransactions": "true"})) == [other, *chain[::-1]]
    found = api.get(f"{LIST}/{chain[1]}", {"includeLinkedTransactions": "true"})
    assert (found.id, [one["id"] for one in found.body["payments"]]) == (chain[1], chain[::-1])
    assert ids(api.get(f"{RECORDS}/{chain[1]}", {"includeLinkedTransactions": "true"}), "records") == chain[::-1]


def test_payment_types_filter_by_the_codes_that_are_listed(api: Api, chain: list[str]) -> None:
    """B22.4."""
    paid = api.pay().id
    risk = api.pay(paymentType="RI").id
    for wanted, found in {
        "DB": [paid],
        "RF": [chain[2]],
        "DB,RF": [paid, chain[2]],
        "PA,CP": [chain[1], chain[0]],
        "RF,RI,CB": [risk, chain[2]],
        "RG": [],
    }.items():
        answer = api.get(LIST, {"paymentTypes": wanted})
        assert nothing(answer) if not found else ids(answer) == found, wanted
    assert "paymentTypes" in api.get(LIST, {"paymentTypes": "DB,QQ"}).errors


def test_payment_methods_filter_by_the_codes_that_are_listed(api: Api) -> None:
    """B22.5."""
    account = {"bankAccount__holder": "Jane Jones", "bankAccount__iban": "DE23100000001234567890"}
    no_card = dict.fromkeys(("card__number", "card__expiryMonth", "card__expiryYear", "card__cvv", "card__holder"))
    card = api.pay().id
    debit = api.pay(paymentBrand="DIRECTDEBIT_SEPA", **no_card, **account, bankAccount__bic="MARKDEF1100").id
    for wanted, found in {"CC": [card], "DD": [debit], "DD,CC": [debit, card], "DD,PP": [debit], "PP": []}.items():
        answer = api.get(LIST, {"paymentMethods": wanted})
        assert nothing(answer) if not found else ids(answer) == found, wanted
    assert ids(api.get(LIST, {"paymentMethods": "DD", "paymentTypes": "DB"})) == [debit]
    assert nothing(api.get(LIST, {"paymentMethods": "DD", "paymentTypes": "RF"}))
    assert "paymentMethods" in api.get(LIST, {"paymentMethods": "XX"}).errors


def test_a_short_id_finds_the_one_transaction(api: Api) -> None:
    """B22.7."""
    paid = api.pay(merchantTransactionId="order-4711").id
    api.pay()
    short = api.get(f"{LIST}/{paid}").body["shortId"]
    assert len(short) == 14
    assert ids(api.get(LIST, {"shortId": short})) == [paid]
    assert ids(api.get(LIST, {"shortId": short, "merchantTransactionId": "order-4711"})) == [paid]
    assert nothing(api.get(LIST, {"shortId": short, "merchantTransactionId": "order-4712"}))
    assert nothing(api.get(LIST, {"shortId": short, "paymentTypes": "RF"}))
    assert nothing(api.get(LIST, {"shortId": "9999.9999.9999"}))


def test_dates_are_utc_by_the_merchants_clock_and_both_ends_count(api: Api) -> None:
    """B22.3."""
    moments = ("2026-05-14 11:59:59.999", "2026-05-14 12:00:00", "2026-05-14 13:00:00.7", "2026-05-14 13:00:01")
    made = [api.pay().id for _ in moments]
    for payment, moment in zip(made, moments, strict=True):
        Payment.objects.filter(pk=payment).update(created_at=f"{moment}+00:00")
    wanted = {"date.from": "2026-05-14 12:00:00", "date.to": "2026-05-14 13:00:00"}
    assert ids(api.get(LIST, wanted)) == [made[2], made[1]]
    assert nothing(api.get(LIST, wanted | {"paymentTypes": "RF"}))
    moved = api.post("/v1/test/clock", {"advance": "86400"})
    assert moved.status == 200
    later = api.pay().id
    after = clock.real_now() + timedelta(hours=23)
    wanted = {"date.from": f"{after:%Y-%m-%d %H:%M:%S}", "date.to": "2099-12-31 23:59:59"}
    assert ids(api.get(LIST, wanted)) == [later]


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"limit": "99"}, {"limit"}),
        ({"limit": "501"}, {"limit"}),
        ({"limit": "0100"}, {"limit"}),
        ({"date.from": "2026-05-14 12:00:00"}, {"date.to"}),
        ({"date.to": "2026-05-14 12:00:00"}, {"date.from"}),
        ({"date.from": "2026-05-14", "date.to": "2026-05-15"}, {"date.from", "date.to"}),
        ({"date.from": "2026-05-15 12:00:00", "date.to": "2026-05-14 12:00:00"}, {"date.to"}),
        ({"merchantTransactionId": "o" * 256}, {"merchantTransactionId"}),
        ({"shortId": "1" * 15}, {"shortId"}),
        ({"shortId": "12345678901234"}, {"shortId"}),
        ({"shortId": "x"}, {"shortId"}),
        ({"includeLinkedTransactions": "yes"}, {"includeLinkedTransactions"}),
        ({"paymentTypes": "DB,,RF"}, {"paymentTypes"}),
        ({"pageNo": "2"}, {"pageNo"}),
        ({"payment_Types": "DB"}, {"payment_Types"}),
    ],
)
def test_what_is_not_allowed_is_named(api: Api, fields: dict[str, str], names: set[str]) -> None:
    """A27.14, B22.1–B22.6, A31.6; rulings D10, D16."""
    answer = api.get(LIST, fields)
    assert (answer.status, answer.code, answer.errors.keys()) == (400, "200.300.404", names)


def test_a_number_of_the_merchants_is_not_combined_with_dates(api: Api) -> None:
    """B22.1: combined → 400 naming them."""
    dates = {"date.from": "2026-05-14 12:00:00", "date.to": "2026-05-14 13:00:00"}
    for path in (LIST, RECORDS):
        answer = api.get(path, dates | {"merchantTransactionId": "order-4711"})
        assert answer.status == 400
        assert answer.errors.keys() >= {"date.from", "date.to"} or "merchantTransactionId" in answer.errors


def test_an_unknown_name_is_reported(api: Api) -> None:
    """Ruling D16."""
    paid = api.pay().id
    for path in (LIST, RECORDS, f"{LIST}/{paid}", f"{RECORDS}/{paid}"):
        assert api.get(path, {"colour": "red"}).body["ignoredParameters"] == ["colour"], path


def test_the_bare_path_leads_to_the_versioned_one(api: Api) -> None:
    """Ruling D1."""
    answer = api.call("GET", "/query", {"limit": "100"})
    assert (answer.status, answer.headers["Location"]) == (307, "/v1/query?limit=100")
    for path in ("/v2/query", "/v3/payments"):
        assert api.call("GET", path).status == 404
    assert api.call("POST", RECORDS).status == 405


def test_a_memo_never_shows(api: Api) -> None:
    """Ruling D17: merchantMemo appears in reporting only."""
    paid = api.pay(merchantMemo="for the books only").id
    for path in (LIST, RECORDS, f"{LIST}/{paid}"):
        assert "for the books" not in api.get(path).text


@pytest.mark.django_db(transaction=True)
def test_a_query_costs_two_statements(committed: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goals: cheap. Once a minute a process also looks whether anything was archived."""
    monkeypatch.setattr(payment_archive._EARLIER, "holds_payments", lambda: False)
    api = committed.api
    paid = api.pay(merchantTransactionId="order-4711", createRegistration="true")
    api.follow(paid.id, "RF", "1.00")
    linked = {"includeLinkedTransactions": "true"}
    for path, fields, most in (
        (LIST, {}, 2),
        (LIST, {"merchantTransactionId": "order-4711", **linked}, 2),
        (RECORDS, {"pageNo": "1", "paymentTypes": "RF", **linked}, 2),
        (f"{LIST}/{paid.id}", {}, 1),
        (f"{LIST}/{paid.id}", linked, 2),
        (f"{LIST}/{paid.body['registrationId']}", {}, 2),
    ):
        with statements() as seen:
            assert api.get(path, fields).status == 200
        assert len(seen) == most, (path, fields, list(seen))


# --- long lists -----------------------------------------------------------------------------------------------------

ITEMS = 200
LINKED = {"includeLinkedTransactions": "true"}


@pytest.fixture
def large(api: Api) -> list[str]:
    """Ninety payments of one chain with carts of 200 items, the newest first."""
    items = {f"cart.items[{number}].name": f"Shirt {number}, {number * 7919 % 1009}" for number in range(ITEMS)}
    prices = {f"cart.items[{number}].price": f"{number}.{number * 31 % 100:02}" for number in range(ITEMS)}
    paid = Payment.objects.get(pk=api.pay(**items, **prices).id)
    same = {field.attname: getattr(paid, field.attname) for field in Payment._meta.concrete_fields}
    del same["number"]
    copies = [
        Payment(**same | {"id": identifiers.row_id(), "created_at": paid.created_at + timedelta(seconds=second)})
        for second in range(1, 90)
    ]
    made = [paid, *Payment.objects.bulk_create(copies)]
    return [one.pk.hex for one in reversed(made)]


def archive_payments(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.GATEWAY_PAYMENT_HOT_DAYS = payment_archive.MIN_PAYMENT_HOT_DAYS
    at = clock.real_now() + timedelta(days=payment_archive.MIN_PAYMENT_HOT_DAYS + 1)
    AcquirerExchange.objects.all().delete()
    with monkeypatch.context() as patch:
        patch.setattr(payment_archiving.clock, "real_now", lambda: at)
        assert payment_archiving.archive_old_payments()
    assert not Payment.objects.exists()


@pytest.mark.parametrize("kept", [False, True])
def test_a_long_list_takes_little_more_memory_than_its_text(
    api: Api, large: list[str], settings: Any, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Goals, P18: 500 such payments took 84 MB for 9 MB of text. Linked ones and archived ones are read likewise."""
    if kept:
        archive_payments(settings, monkeypatch)
    period = {"date.from": "2020-01-01 00:00:00", "date.to": "2049-01-01 00:00:00"}
    for path, fields, listed in (
        (LIST, {}, "payments"),
        (RECORDS, {"pageNo": "1", **period}, "records"),
        (LIST, {"paymentTypes": "DB", **LINKED}, "payments"),
        (f"{LIST}/{large[0]}", LINKED, "payments"),
        (f"{RECORDS}/{large[0]}", LINKED, "records"),
    ):
        api.get(path, fields)
        with meter.traced(True):
            answer, cost = meter.measured(lambda path=path, fields=fields: api.get(path, fields))
        order = reversed(large) if "pageNo" in fields else large
        assert [one["id"] for one in answer.body[listed]] == list(order)
        for one in answer.body[listed]:
            payment = Payment.objects.filter(pk=one["id"]).first()
            assert payment is None if kept else transaction_query.render_transaction(payment) == one
            assert len(one["cart"]["items"]) == ITEMS
        assert answer.text.encode() == encode_json(answer.body)
        assert cost.memory < 4 * len(answer.text), (path, fields, cost.memory, len(answer.text))


def test_a_list_that_is_too_long_is_refused(api: Api, large: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Goals, P18."""
    length = len(api.get(LIST).text)
    monkeypatch.setattr(query, "MAX_LIST_BYTES", length)
    assert ids(api.get(LIST)) == large
    monkeypatch.setattr(query, "MAX_LIST_BYTES", length - 1_000)
    for path, fields, name in (
        (LIST, {}, "limit"),
        (RECORDS, {"limit": "200", "date.from": "2020-01-01 00:00:00", "date.to": "2049-01-01 00:00:00"}, "limit"),
        (LIST, LINKED, "includeLinkedTransactions"),
        (f"{LIST}/{large[0]}", LINKED, "includeLinkedTransactions"),
        (f"{RECORDS}/{large[0]}", LINKED, "includeLinkedTransactions"),
    ):
        answer = api.get(path, fields)
        assert (answer.status, answer.errors.keys()) == (400, {name}), path
    monkeypatch.setattr(query, "MAX_LIST_BYTES", 1)
    assert api.get(f"{RECORDS}/{large[0]}").status == 200


def test_a_payment_that_is_deleted_while_a_list_is_written_is_left_out(
    api: Api, large: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    find = transaction_query.find_transactions

    def find_and_delete(asked: transaction_query.TransactionQuery) -> TransactionPage:
        page = find(asked)
        assert page.payments[-2].pk not in page.read
        Payment.objects.filter(pk=page.payments[-2].pk).delete()
        Payment.objects.filter(pk=page.payments[-1].pk).update(request={}, answer={})
        return page

    monkeypatch.setattr(transaction_query, "find_transactions", find_and_delete)
    answer = api.get(LIST)
    assert ids(answer) == [*large[:-2], large[-1]]
    assert answer.body["payments"][-1]["descriptor"]


# --- answers of a standby -------------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a standby answers: ``page``, None: what the primary would, and as of when. ``asked``: how often."""
    said: dict[str, Any] = {"page": None, "as_of": None, "asked": 0}

    def read(ask: Any) -> Any:
        said["asked"] += 1
        with monkeypatch.context() as there:
            if said["page"] is not None:
                there.setattr(transaction_query, "find_transactions", lambda query: said["page"])
            return ask(), said["as_of"]

    monkeypatch.setattr(standby, "read_elsewhere", read)
    return said


AS_OF = datetime(2026, 5, 14, 10, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("page", "as_of", "found", "tells"),
    [
        # None: the page that there is.
        (None, None, True, False),
        (None, AS_OF, True, True),
        # What a standby does not have yet, the primary is asked for, whose answer has no other time.
        (TransactionPage(payments=[], pages=None), AS_OF, True, False),
        (TransactionPage(payments=[], pages=0), AS_OF, True, False),
        (TransactionPage(payments=[], pages=None), None, False, False),
        # A page after the last one is found, and empty.
        (TransactionPage(payments=[], pages=3), AS_OF, False, True),
    ],
)
def test_a_list_may_be_a_standbys_and_nothing_found_never_is(
    api: Api, elsewhere: dict[str, Any], page: TransactionPage | None, as_of: datetime | None, found: bool, tells: bool
) -> None:
    paid = api.pay().id
    elsewhere.update(page=page, as_of=as_of)
    answer = api.get(RECORDS)
    if found:
        assert ids(answer, "records") == [paid]
    elif page is not None and page.pages:
        assert (answer.status, answer.body["records"], answer.body["pages"]) == (200, [], 3)
    else:
        assert nothing(answer)
    assert elsewhere["asked"] == 1
    assert answer.headers.get(AS_OF_HEADER) == (clock.format_timestamp(AS_OF) if tells else None)


def test_one_transaction_is_never_read_of_a_standby(api: Api, elsewhere: dict[str, Any]) -> None:
    """It may be of this moment."""
    paid = api.pay(merchantTransactionId="order-4711").id
    short = api.get(f"{LIST}/{paid}").body["shortId"]
    for fields in ({"shortId": short}, {"merchantTransactionId": "order-4711"}):
        answer = api.get(LIST, fields)
        assert (ids(answer), AS_OF_HEADER in answer.headers) == ([paid], False)
    assert elsewhere["asked"] == 0


def test_every_answer_to_a_query_says_how_often_may_still_be_asked(shop: Shop) -> None:
    api = shop.api_of(shop.open_channel(limits={"*": {"limit": 50, "window_s": 1_000_000}}))
    paid = api.pay(createRegistration="true")
    for path in (LIST, RECORDS):
        for target in ("", f"/{paid.id}", f"/{paid.body['registrationId']}"):
            answer = api.get(f"{path}{target}")
            assert (answer.status, answer.headers["RateLimit-Limit"]) == (200, "50")
            assert {"buildNumber", "timestamp", "ndc"} <= answer.body.keys()

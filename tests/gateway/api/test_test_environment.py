"""The test environment's own endpoints: the merchant's movable clock, and what was sent on to the acquirer.

Source: Part A, What the service does, 5; Basic payment (descriptor, merchantInvoiceId, merchantMemo).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gateway.core import clock
from gateway.models import Merchant, Payment
from gateway.models.entities import MAX_CLOCK_OFFSET
from tests.support.client import Answer, Api
from tests.support.database import leaves
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
CLOCK, MESSAGES = "/v1/test/clock", "/v1/test/acquirer/messages"
DAY = 86_400


def told(answer: Answer) -> datetime:
    return datetime.strptime(answer.body["now"], "%Y-%m-%d %H:%M:%S%z")


# --- the clock -----------------------------------------------------------------------------------------------------


def test_the_clock_starts_at_the_present(api: Api) -> None:
    """Issue: GET reads the clock."""
    answer = api.get(CLOCK)
    assert (answer.status, answer.code, answer.body["offsetSeconds"]) == (200, "000.000.100", 0)
    assert abs(told(answer) - clock.real_now()) < timedelta(seconds=10)


def test_the_clock_is_advanced_by_seconds(api: Api) -> None:
    """Issue: POST moves the clock on."""
    assert api.post(CLOCK, {"advance": str(DAY)}).body["offsetSeconds"] == DAY
    answer = api.post(CLOCK, {"advance": "1"})
    assert answer.body["offsetSeconds"] == DAY + 1
    assert told(answer) - clock.real_now() > timedelta(seconds=DAY - 10)


@pytest.mark.parametrize("zone", ["Z", "+00:00", "+0000"])
def test_the_clock_is_set_to_a_moment(api: Api, zone: str) -> None:
    """Issue: POST moves the clock on."""
    answer = api.post(CLOCK, {"now": f"2045-01-01T00:00:00{zone}"})
    assert answer.status == 200, answer
    assert abs(told(answer) - datetime(2045, 1, 1, tzinfo=UTC)) < timedelta(seconds=10)


def test_the_clock_moves_on_by_fifty_years_and_no_second_more(api: Api) -> None:
    """The bound holds for where the clock comes to, not for each move alone."""
    most = int(MAX_CLOCK_OFFSET.total_seconds())
    beyond = api.post(CLOCK, {"advance": str(most + 1)})
    assert (beyond.status, beyond.errors) == (400, {"advance": "moves the clock on by more than 50 years"})
    assert api.post(CLOCK, {"advance": str(most)}).body["offsetSeconds"] == most
    assert list(api.post(CLOCK, {"advance": "1"}).errors) == ["advance"]
    later = (clock.real_now() + MAX_CLOCK_OFFSET + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert list(api.post(CLOCK, {"now": later}).errors) == ["now"]


def test_the_clock_goes_back_to_the_present_only_as_a_whole(api: Api) -> None:
    """Issue: DELETE resets the clock."""
    api.post(CLOCK, {"advance": str(DAY)})
    back = (clock.real_now() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    answer = api.post(CLOCK, {"now": back})
    assert (answer.status, list(answer.errors)) == (400, ["now"])
    assert "DELETE" in answer.errors["now"]
    assert api.delete(CLOCK).body["offsetSeconds"] == 0
    assert api.get(CLOCK).body["offsetSeconds"] == 0


@pytest.mark.parametrize(
    "fields, named",
    [
        ({}, {"advance", "now"}),
        ({"advance": "1", "now": "2045-01-01T00:00:00Z"}, {"advance", "now"}),
        ({"advance": "0"}, {"advance"}),
        ({"advance": "-1"}, {"advance"}),
        ({"advance": "1.5"}, {"advance"}),
        ({"advance": "9" * 30}, {"advance"}),
        ({"advance": "1600000000"}, {"advance"}),
        ({"now": "tomorrow"}, {"now"}),
        ({"now": "2045-01-01T00:00:00"}, {"now"}),
        ({"now": "2045-02-30T00:00:00Z"}, {"now"}),
        ({"now": "2045-01-01T25:00:00Z"}, {"now"}),
        ({"now": "2045-01-01T00:00:00+99:99"}, {"now"}),
        ({"now": "2099-12-31T00:00:00Z"}, {"now"}),
        ({"now": "1999-01-01T00:00:00Z"}, {"now"}),
    ],
)
def test_a_clock_that_cannot_be_moved_so_stays(api: Api, fields: dict[str, str], named: set[str]) -> None:
    """Errors: the parameter is named, and what is allowed."""
    answer = api.post(CLOCK, fields)
    assert (answer.status, answer.code) == (400, "200.300.404"), answer
    assert set(answer.errors) == named
    assert api.get(CLOCK).body["offsetSeconds"] == 0


def test_a_clock_is_one_merchants(shop: Shop, stranger: Shop) -> None:
    """Goals: one merchant's tests do not move another's time."""
    shop.api.post(CLOCK, {"advance": str(DAY)})
    assert stranger.api.get(CLOCK).body["offsetSeconds"] == 0
    assert shop.api_of(shop.open_channel()).get(CLOCK).body["offsetSeconds"] == DAY


def test_business_time_follows_the_clock_and_the_envelopes_time_does_not(shop: Shop) -> None:
    """D13; house: every business timer asks the merchant's clock."""
    shop.api.post(CLOCK, {"advance": str(400 * DAY)})
    answer = shop.api.pay()
    payment = Payment.objects.get(pk=answer.id)
    assert payment.created_at - clock.real_now() > timedelta(days=399)
    real = datetime.strptime(answer.body["timestamp"], "%Y-%m-%d %H:%M:%S%z")
    assert abs(real - clock.real_now()) < timedelta(seconds=10)


def test_a_card_expires_by_the_merchants_clock(api: Api) -> None:
    """D10; house: every business timer asks the merchant's clock."""
    year = clock.real_now().year + 3
    assert api.pay(card__expiryYear=str(year)).status == 200
    api.post(CLOCK, {"advance": str(5 * 366 * DAY)})
    assert api.pay(card__expiryYear=str(year)).code == "100.100.303"


def test_the_clock_of_a_dispatching_merchant_is_moved_by_its_own_id(shop: Shop) -> None:
    """Part A, Authentication, 4."""
    Merchant.objects.filter(pk=shop.merchant.pk).update(dispatching=True)
    merchant = shop.api.as_entity(shop.merchant.entity_id)
    assert merchant.post(CLOCK, {"advance": "60"}).body["offsetSeconds"] == 60


# --- the acquirer's messages ---------------------------------------------------------------------------------------


def test_what_was_sent_on_is_read_masked(api: Api) -> None:
    """A5.3, D17."""
    paid = api.pay(card__number="5454545454545454", card__cvv="731", paymentBrand="MASTER")
    answer = api.get(MESSAGES, {"id": paid.id})
    assert (answer.status, answer.id) == (200, paid.id)
    (message,) = answer.body["messages"]
    assert (message["connector"], message["kind"]) == ("simulator", "submit")
    assert message["sent"]["card"]["number"] == "545454******5454"
    assert message["sent"]["card"]["cvvPresent"] is True
    assert (message["sent"]["operation"], message["sent"]["amount"], message["sent"]["currency"]) == (
        "DB",
        "92.00",
        "EUR",
    )
    assert message["received"]["responseCode"] == "00"
    assert "5454545454545454" not in answer.text
    # Leaf by leaf: three digits may well stand inside an id.
    assert "731" not in leaves(message["sent"])


def test_the_descriptor_is_sent_on_and_the_merchants_name_overrides_it(api: Api) -> None:
    """B4.2, B4.3, A13.10."""
    assert _sent(api, api.pay(descriptor="Shop 1"))["descriptor"] == "Shop 1"
    other = api.pay(descriptor="Shop 1", merchant__name="The Name")
    if other.status == 200:
        assert _sent(api, other)["descriptor"] == "The Name"
    else:
        pytest.fail(str(other))


@pytest.mark.parametrize("card", [{}, {"paymentBrand": "MASTER", "card__number": "5454545454545454"}])
def test_what_a_facilitator_says_of_its_merchant_goes_on_and_hinders_no_brand(api: Api, card: dict[str, str]) -> None:
    """B4.2, B4.4, B4.7: the spec gives submerchantId to one network; elsewhere it does no harm."""
    said = {"name": "Trade name*goods", "city": "help@shop.example", "submerchantId": "SUB-1", "payFacId": "PF-1"}
    paid = api.pay(**card, **{f"merchant__{name}": value for name, value in said.items()})
    assert (paid.status, paid.body["merchant"]) == (200, said)
    assert _sent(api, paid)["merchant"] == said


def test_invoice_id_and_memo_are_not_sent_on(api: Api) -> None:
    """A13.12, A13.13; D17."""
    paid = api.pay(
        merchantInvoiceId="invoice-4711", merchantMemo="for the report only", merchantTransactionId="order-4711"
    )
    sent = str(_sent(api, paid))
    assert "invoice-4711" not in sent
    assert "for the report only" not in sent
    assert "order-4711" in sent
    assert paid.body["merchantInvoiceId"] == "invoice-4711"
    assert "for the report only" not in paid.text
    row = Payment.objects.get(pk=paid.id)
    assert (row.merchant_invoice_id, row.merchant_memo) == ("invoice-4711", "for the report only")


def test_a_refused_payment_was_never_sent_on(api: Api) -> None:
    """A5.3: the connector is asked only about payments that may be tried."""
    assert api.get(MESSAGES, {"id": api.pay(card__number="4444444444444444").id}).body["messages"] == []


def test_a_follow_up_names_the_acquirers_own_reference(api: Api) -> None:
    """Part A, Endpoints: follow-ups refer to an earlier payment."""
    paid = api.pay()
    sent = _sent(api, api.follow(paid.id, "RF", "1.00"))
    first = api.get(MESSAGES, {"id": paid.id}).body["messages"][0]["received"]["transactionId"]
    assert sent["reference"] == first


@pytest.mark.parametrize("ident, status", [("0" * 32, 404), ("A" * 32, 404), ("42", 400), ("", 400), ("x\0", 400)])
def test_messages_of_nothing_are_not_found(api: Api, ident: str, status: int) -> None:
    """D11."""
    answer = api.get(MESSAGES, {"id": ident})
    assert answer.status == status
    if status == 400:
        assert list(answer.errors) == ["id"]


def _sent(api: Api, paid: Answer) -> dict[str, object]:
    assert paid.status == 200, paid
    messages = api.get(MESSAGES, {"id": paid.id}).body["messages"]
    return dict(messages[0]["sent"])

"""Transfers, payment facilitators, level 3 and flights over ISO 8583: what the host's books hold, and what is refused.

docs/decisions/0070; Part A, Basic payment; Part B, Sender, Recipient, Merchant, Cart items, Airline.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.models import AcquirerAccount, AcquirerExchange, Payment, Suspension
from tests.support.client import Answer
from tests.support.fixtures import Shop
from tests.support.iso_host import IsoHost, account_at_host
from tests.support.recovery import recover_after
from tests.support.threeds import PASS, Shopper, buy

OK = "000.100.112"
NOT_OFFERED = "600.200.400"
VISA, MASTER = "4200000000000000", "5400000000000005"
ACCOUNT = "DE23100000001234567890"
FUNDING = {
    "transactionProcessingCode": "FUNDING", "transactionBai": "AA", "transactionTti": "F07",
    "sender.name": "Jane Jones", "sender.accountNumber": ACCOUNT, "sender.country": "DEU", "sender.sourceOfFunds": "02",
    "recipient.givenName": "Ravi", "recipient.surname": "Mehta", "recipient.country": "DEU",
    "recipient.accountNumber": "0011223344",
}  # fmt: skip
PAYOUT = FUNDING | {"transactionProcessingCode": "PAYMENT", "transactionTti": "C07"}
NOBODY: dict[str, Any] = {"recipient.givenName": None, "recipient.surname": None}
FACILITATOR = {"merchant.payFacId": "12345678", "merchant.isoId": "87654321", "merchant.submerchantId": "SUB-1"}
CART = {
    "cart.items[0].name": "Blue mug", "cart.items[0].commodityCode": "50202306", "cart.items[0].quantity": "2",
    "cart.items[0].price": "9.52", "cart.items[0].totalAmount": "19.04", "cart.items[0].tax": "19.00",
    "cart.items[0].taxCategory": "S", "cart.items[1].name": "Tea", "taxAmount": "3.04",
}  # fmt: skip
FLIGHT = {
    "airline.bookingRefNum": "X7KQ2P", "airline.passengers[0].name": "Jane Jones",
    "airline.passengers[0].ticketNumber": "2201234567890", "airline.passengers[0].legs[0].departureAirport": "MUC",
    "airline.passengers[0].legs[0].arrivalAirport": "MAD", "airline.passengers[0].legs[0].departureDate": "2026-05-01",
}  # fmt: skip


@pytest.fixture
def host(iso_host: IsoHost, shop: Shop) -> IsoHost:
    account_at_host(shop.channel, iso_host)
    return iso_host


def pay(shop: Shop, number: str = VISA, **fields: Any) -> Answer:
    brand = "VISA" if number == VISA else "MASTER"
    return shop.api.pay(testMode="EXTERNAL", paymentBrand=brand, card__number=number, **fields)


def refused_names(answer: Answer) -> list[str]:
    return [error["name"] for error in answer.body["result"]["parameterErrors"]]


@pytest.mark.parametrize(
    "number, kind, sent, processing, transfer",
    [
        (VISA, "DB", FUNDING, "100000", {"01": "AA"}),
        (MASTER, "DB", FUNDING, "000000", {"02": "F07"}),
        (VISA, "CD", PAYOUT, "260000", {"01": "AA"}),
        (MASTER, "CD", PAYOUT, "280000", {"02": "C07"}),
    ],
)
def test_a_transfer_is_in_the_hosts_books_as_what_it_is(
    shop: Shop, host: IsoHost, number: str, kind: str, sent: dict[str, str], processing: str, transfer: dict[str, str]
) -> None:
    """Account funding and push to card, by network."""
    answer = pay(shop, number, paymentType=kind, **sent)
    assert (answer.code, answer.body.get("ignoredParameters", [])) == (
        OK,
        ["transactionTti"] if number == VISA else ["transactionBai"],
    )
    booked = host.of(answer.id)
    assert booked.processing == processing
    assert booked.parties == transfer | {
        "10": "Jane Jones", "15": ACCOUNT, "19": "DEU", "22": "02", "40": "Ravi", "42": "Mehta", "44": "0011223344",
        "48": "DEU",
    }  # fmt: skip


def test_account_numbers_of_the_parties_are_sent_in_clear_and_kept_nowhere(shop: Shop, host: IsoHost) -> None:
    """PCI and privacy: an exchange keeps only that they were there."""
    answer = pay(shop, **FUNDING)
    kept = AcquirerExchange.objects.get(payment=answer.id).sent
    assert (kept["104"]["sender.accountNumber"], kept["104"]["sender.name"]) == ("***", "Jane Jones")
    assert ACCOUNT not in json.dumps([kept, Payment.objects.get().request, answer.body])


def test_account_numbers_survive_the_shoppers_authentication_and_are_deleted_with_it(
    shop: Shop, iso_host: IsoHost
) -> None:
    """They are sealed beside the security code while the shopper is at the bank."""
    channel = shop.open_channel("authenticating", three_d_secure=True)
    account_at_host(channel, iso_host)
    api = shop.api_of(channel)
    waiting = buy(api, PASS, testMode="EXTERNAL", **FUNDING)
    assert waiting.code == "000.200.000"
    assert ACCOUNT not in json.dumps(Payment.objects.get().request)
    shopper = Shopper.of(waiting)
    shopper.follow(shopper.enter())
    assert api.read(waiting.id).code == OK
    booked = iso_host.of(waiting.id)
    assert (booked.parties["15"], booked.parties["44"], booked.processing) == (ACCOUNT, "0011223344", "100000")
    assert not Suspension.objects.exists()


def test_an_unreferenced_credit_is_no_payout(shop: Shop, host: IsoHost) -> None:
    """ISO 8583:1987, position 1 and 2 of DE3: 20 for a return."""
    assert host.of(pay(shop, paymentType="CD").id).processing == "200000"
    assert host.of(pay(shop, MASTER, paymentType="CD").id).processing == "200000"


def test_what_follows_a_transfer_is_of_the_same_kind(shop: Shop, host: IsoHost) -> None:
    """The host refuses a capture or reversal of another kind, or for another facilitator's merchant."""
    sent = FUNDING | FACILITATOR | {"lifecycleId": "LIFE-1"}
    held = pay(shop, MASTER, paymentType="PA", amount="100.00", **sent).id
    funds = pay(shop, paymentType="PA", amount="100.00", **sent).id
    for first in (held, funds):
        raised = shop.api.follow(first, "PA", "20.00", **{"standingInstruction.industryPractice": "INCREMENTAL_AUTH"})
        captured = shop.api.follow(first, "CP", "60.00")
        assert [raised.code, captured.code, shop.api.follow(first, "RV").code] == [OK] * 3
        assert shop.api.follow(captured.id, "RF", "11.00").code == OK
        assert "ignoredParameters" not in captured.body
    assert [message["3"] for message in host.seen("0220") + host.seen("0400")] == ["000000", "100000"] * 2
    assert all("3506LIFE-1" in message["48"] for message in host.log if message["t"] in ("0100", "0220", "0400"))
    assert host.of(funds).reason == "17"


def test_a_follow_up_cannot_be_of_another_kind(shop: Shop, host: IsoHost) -> None:
    """The kind is the first payment's; what a follow-up says of it is reported as ignored."""
    held = pay(shop, paymentType="PA", amount="100.00").id
    answer = shop.api.follow(held, "CP", "60.00", transactionProcessingCode="FUNDING")
    assert (answer.code, answer.body["ignoredParameters"]) == (OK, ["transactionProcessingCode"])
    assert host.seen("0220")[0]["3"] == "000000"


def test_a_transfer_without_an_answer_is_taken_back_as_what_it_was(shop: Shop, host: IsoHost) -> None:
    """The reversal has the original's processing code, and says that there was no answer in time."""
    host.next("0200", "lost")
    paid = pay(shop, **FUNDING | FACILITATOR)
    recover_after(120)
    (back,) = host.seen("0420")
    assert (back["3"], back["39"], "104" in back) == ("100000", "68", False)
    booked = next(row for row in host.booked.values() if row.mti == "0200")
    assert (booked.payment, booked.left, booked.reason) == (paid.id, 0, "68")


@pytest.mark.parametrize(
    "changes, code, names",
    [
        ({"transactionBai": None}, "200.300.404", ["transactionBai"]),
        ({"paymentType": "CD"}, NOT_OFFERED, ["transactionProcessingCode"]),
        ({"transactionProcessingCode": "PAYMENT"}, NOT_OFFERED, ["transactionProcessingCode"]),
        ({"merchant.payFacId": "1" * 12}, NOT_OFFERED, ["merchant.payFacId"]),
    ],
)
def test_what_the_host_cannot_be_told_is_refused_before_it_is_asked(
    shop: Shop, host: IsoHost, changes: dict[str, Any], code: str, names: list[str]
) -> None:
    """A transfer needs its network's identifier; FUNDING pulls and PAYMENT pushes; an id is not cut."""
    answer = pay(shop, **FUNDING | changes)
    assert (answer.status, answer.code, refused_names(answer)) == (400, code, names)
    assert (Payment.objects.count(), [one for one in host.log if one["t"] != "0800"]) == (0, [])


@pytest.mark.parametrize(
    ("number", "kind", "changes", "names"),
    [
        (MASTER, "DB", NOBODY, ["recipient.givenName", "recipient.surname"]),
        (VISA, "DB", NOBODY, []),
        (VISA, "DB", {"sender.name": None}, ["sender.givenName", "sender.surname"]),
        (MASTER, "DB", {"sender.name": None}, []),
        (VISA, "DB", {"sender.name": None, "sender.givenName": "Jane", "sender.surname": "Jones"}, []),
        (VISA, "DB", {"recipient.surname": None}, ["recipient.surname"]),
        (VISA, "CD", {"sender.givenName": "Jane"}, ["sender.surname"]),
        (VISA, "CD", {"sender.name": None}, ["sender.givenName", "sender.surname"]),
        (VISA, "CD", {"sender.name": None, "transactionBai": "FD"}, []),
        (MASTER, "CD", {"sender.name": None}, ["sender.givenName", "sender.surname"]),
        (MASTER, "CD", NOBODY, []),
        (MASTER, "CD", {"transactionTti": "C53", **NOBODY}, ["recipient.givenName", "recipient.surname"]),
    ],
)  # fmt: skip
def test_a_transfer_has_the_names_that_its_network_demands(
    shop: Shop, host: IsoHost, number: str, kind: str, changes: dict[str, Any], names: list[str]
) -> None:
    answer = pay(shop, number, paymentType=kind, **(FUNDING if kind == "DB" else PAYOUT) | changes)
    if not names:
        assert answer.code == OK
        return
    assert (answer.status, answer.code, refused_names(answer)) == (400, "200.300.404", names)
    assert not host.seen("0200")


def test_a_brand_whose_network_has_no_transfers_is_refused(shop: Shop, host: IsoHost) -> None:
    """No source says how other networks mark them."""
    amex = {"paymentBrand": "AMEX", "card__number": "377777777777770", "card__cvv": "1234"}
    answer = shop.api.pay(testMode="EXTERNAL", **amex, **FUNDING)
    assert (answer.code, refused_names(answer)) == (NOT_OFFERED, ["transactionProcessingCode"])


def test_a_facilitators_merchant_is_told_where_the_network_has_it(shop: Shop, host: IsoHost) -> None:
    """B4.7: submerchantId elsewhere is no error."""
    by_visa, by_master = pay(shop, **FACILITATOR), pay(shop, MASTER, **FACILITATOR)
    both = {"37": "12345678", "38": "87654321"}
    assert host.of(by_visa.id).facilitator == both
    assert host.of(by_master.id).facilitator == both | {"39": "SUB-1"}
    assert by_visa.body["ignoredParameters"] == ["merchant.submerchantId"]
    assert "ignoredParameters" not in by_master.body


def test_a_cart_is_told_line_by_line_and_what_has_no_room_is_named(shop: Shop, host: IsoHost) -> None:
    """Level 3: nine lines; what means nothing to a bank is not sent."""
    answer = pay(shop, **CART, **{"cart.items[0].imageUrl": "https://shop.example/mug.png"})
    assert (answer.code, answer.body["ignoredParameters"]) == (OK, ["cart.items[n].imageUrl"])
    cart = host.of(answer.id).cart
    assert (cart["91"], cart["02"].split()) == ("3.04", ["Tea", "COUNT"])
    assert cart["01"][:20].split() == ["50202306"]
    assert cart["01"][20:].split() == ["Blue", "mug", "2", "COUNT9.52", "19.04", "19.00", "S"]
    many = {f"cart.items[{at}].name": f"Mug {at}" for at in range(12)}
    told = pay(shop, **many)
    assert told.body["ignoredParameters"] == ["cart.items[n].name"]
    assert list(host.of(told.id).cart) == [f"{at:02}" for at in range(1, 10)]


def test_the_longest_cart_and_flight_fit(shop: Shop, host: IsoHost) -> None:
    """Every part has room for its longest text."""
    cart = {
        f"cart.items[{at}].{name}": value
        for at in range(10)
        for name, value in {
            "name": "x" * 255, "productCode": "p" * 30, "quantity": "123456789012.345", "price": "1234567890.12",
            "totalAmount": "1234567890.12", "tax": "100.00", "taxCategory": "AA", "commodityCode": "12345678",
        }.items()
    }  # fmt: skip
    leg = "airline.passengers[0].legs[{}].{}"
    flight = {
        leg.format(at, name): value
        for at in range(5)
        for name, value in {
            "departureAirport": "x" * 255, "fareBasis": "y" * 255, "fareAmount": "1234567890.12",
            "departureDate": "2026-05-01", "flightNumber": "z" * 255,
        }.items()
    }  # fmt: skip
    parties = {
        f"{who}.{name}": "x" * 48 for who in ("sender", "recipient") for name in ("givenName", "surname", "city")
    }
    answer = pay(shop, **cart, **flight, **FUNDING | parties)
    assert answer.code == OK
    booked = host.of(answer.id)
    assert (len(booked.cart), len(booked.flight)) == (9, 4)
    assert set(answer.body["ignoredParameters"]) >= {"cart.items[n].name", "airline.passengers[n].legs[n].fareBasis"}


def test_a_flight_is_told(shop: Shop, host: IsoHost) -> None:
    """Airline data of the first passenger and four legs."""
    answer = pay(shop, **FLIGHT)
    flight = host.of(answer.id).flight
    assert (flight["01"], flight["02"], flight["04"]) == ("Jane Jones", "2201234567890", "X7KQ2P")
    assert (flight["21"][:10], flight["21"][10:].split()) == ("2026-05-01", ["MUC", "MAD"])
    assert "ignoredParameters" not in answer.body


def test_what_the_card_api_cannot_say_goes_to_the_host(shop: Shop, host: IsoHost) -> None:
    """Routing: an account that cannot carry it is not chosen; if none can, it is refused before anybody is asked."""
    AcquirerAccount.objects.filter(channel=shop.channel).delete()
    AcquirerAccount.objects.create(channel=shop.channel, connector="stripe", acquirer_merchant_id="acct_1", settings={})
    for sent, name in ((FUNDING, "transactionProcessingCode"), (FACILITATOR, "merchant.payFacId")):
        answer = pay(shop, **sent)
        assert (answer.status, answer.code, refused_names(answer)) == (400, NOT_OFFERED, [name])
    assert Payment.objects.count() == 0
    account_at_host(shop.channel, host)
    answer = pay(shop, **FUNDING, **FACILITATOR)
    assert (answer.code, Payment.objects.get().connector) == (OK, "iso8583")


def test_the_simulator_takes_everything(shop: Shop) -> None:
    """INTERNAL: nothing is refused, nothing is reported."""
    for kind, transfer in (("DB", FUNDING), ("CD", PAYOUT)):
        answer = shop.api.pay(paymentType=kind, **transfer, **FACILITATOR, **CART, **FLIGHT)
        assert (answer.code, "ignoredParameters" in answer.body) == ("000.100.110", False)

"""What is charged, what of an address goes onwards, and what each structure cannot do without.

Source: Part A, Basic payment, Card account, Customer, Billing address, Shipping address; rulings D10, D28.
"""

from __future__ import annotations

from typing import Any

import pytest

from gateway.models import Payment
from tests.support.client import Api

pytestmark = pytest.mark.django_db

ADDRESSES = ("billing", "shipping", "merchant.billing", "merchant.shipping")
PROOF = {"threeDSecure__eci": "05", "threeDSecure__verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA="}


def sent_on(api: Api, payment: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get("/v1/test/acquirer/messages", {"id": payment}).body["messages"][0]["sent"]
    return found


def test_the_amount_alone_is_charged(api: Api) -> None:
    """A13.2, A13.3: tax, discount and shipping are inside it; they come back and go on as they were sent."""
    more = {"taxAmount": "1.90", "discountAmount": "3.00"}
    answer = api.pay(amount="10.00", shipping__cost="5.00", **more)
    assert Payment.objects.get(pk=answer.id).amount == 10
    for where in (answer.body, sent_on(api, answer.id)):
        assert where["amount"] == "10.00"
        assert {name: where[name] for name in more} == more
        assert where["shipping"] == {"cost": "5.00"}
    assert api.follow(answer.id, "RF", "10.01").code == "700.400.200"
    assert list(api.pay(amount=None).errors) == ["amount"]


@pytest.mark.parametrize(
    "changes, named",
    [
        ({"amount": None}, {"amount"}),
        ({"currency": None}, {"currency"}),
        ({"paymentType": None}, {"paymentType"}),
        ({"card__number": None}, {"card.number"}),
        ({"card__expiryMonth": None}, {"card.expiryMonth"}),
        ({"card__expiryYear": None}, {"card.expiryYear"}),
        ({"paymentBrand": "WALLET1", **PROOF}, {"wallet1.source"}),
        ({"recurringMigration__amount": "1.00"}, {"recurringMigration.paymentType"}),
        # Nothing else is demanded of an ordinary card payment.
        ({"card__holder": None, "card__cvv": None, "paymentBrand": None}, set()),
    ],
)
def test_what_is_required_is_asked_for_and_nothing_else(api: Api, changes: Any, named: set[str]) -> None:
    """A11.4, A13.2, A15.2, A16.3."""
    answer = api.pay(**changes)
    assert (answer.status, set(answer.errors)) == (400 if named else 200, named), answer


@pytest.mark.parametrize(
    "changes, named",
    [
        ({"card__numberType": "FOO"}, {"card.numberType"}),
        ({"card__numberType": "DPAN"}, {"threeDSecure.verificationId", "threeDSecure.eci"}),
        ({"card__numberType": "DPAN", "threeDSecure__eci": "05"}, {"threeDSecure.verificationId"}),
        ({"card__numberType": "DPAN", **PROOF}, set()),
        ({"card__numberType": "PAN"}, set()),
        ({"wallet1__source": "tv", **PROOF}, {"wallet1.source"}),
        ({"wallet1__source": "web", "wallet2__source": "app", **PROOF}, {"wallet1.source", "wallet2.source"}),
        ({"wallet2__cardNetwork": "Visa"}, {"wallet2.cardNetwork"}),
        ({"wallet3__cardType": "debit"}, {"wallet3.cardType"}),
        ({"wallet4__paymentToken": "x"}, {"wallet4.paymentToken"}),
    ],
)
def test_a_device_s_card_data_are_whole_and_out_of_one_wallet(api: Api, changes: Any, named: set[str]) -> None:
    """A0.1, A15.4, A16.2, A16.3, A16.4."""
    assert set(api.pay(**changes).errors) == named


@pytest.mark.parametrize(
    "name, value, named",
    [
        ("email", "jane@mail.example", {"givenName", "surname"}),
        ("givenName", "Jane", {"surname"}),
        ("surname", "Jones", {"givenName"}),
        ("identificationDocType", "PASSPORT", {"givenName", "surname", "identificationDocId"}),
        ("identificationDocId", "C01X00T47", {"givenName", "surname", "identificationDocType"}),
        ("ip", "192.0.2.1", set()),
        ("app.deviceId", "device-17", set()),
    ],
)
def test_a_customer_has_a_name_unless_only_a_browser_speaks(api: Api, name: str, value: str, named: set[str]) -> None:
    """A20.3, A20.4, D28; a person whom goods are sent to needs none (A21.1)."""
    assert set(api.pay(**{f"customer.{name}": value}).errors) == {f"customer.{one}" for one in named}
    if not name.startswith(("identification", "app")):
        assert api.pay(**{f"shipping.customer.{name}": value}).status == 200


@pytest.mark.parametrize(
    "name", ["browserFingerprint.id", "browserFingerprint.value", "browser.deviceId", "app.deviceId"]
)
def test_four_names_of_a_customer_are_none_of_whom_goods_are_sent_to(api: Api, name: str) -> None:
    """A21.1, D16."""
    full = f"shipping.customer.{name}"
    assert "not an allowed parameter" in api.pay(**{full: "x"}).errors[full]


@pytest.mark.parametrize("address", ADDRESSES)
def test_beside_a_house_number_the_second_line_is_left_out(api: Api, address: str) -> None:
    """A22.4, A22.5, A24.2: kept and answered, not sent on; a second house number wants the first."""
    street = {f"{address}.street1": "Main Street", f"{address}.street2": "Rear"}
    whole = street | {f"{address}.houseNumber1": "12", f"{address}.houseNumber2": "b"}
    plain, numbered = api.pay(**street), api.pay(**whole)

    def lines(body: dict[str, Any]) -> set[str]:
        for step in address.split("."):
            body = body[step]
        return {name for name in body if name.startswith(("street", "house"))}

    assert lines(numbered.body) == {"street1", "street2", "houseNumber1", "houseNumber2"}
    assert lines(sent_on(api, numbered.id)) == {"street1", "houseNumber1", "houseNumber2"}
    assert lines(sent_on(api, plain.id)) == {"street1", "street2"}
    alone = api.pay(**street | {f"{address}.houseNumber2": "b"})
    assert list(alone.errors) == [f"{address}.houseNumber1"]


@pytest.mark.parametrize(
    "first, second, refused",
    [
        ("12", "34", True),
        ("12", None, True),
        (" 12 ", "34", True),
        ("12 Main", None, False),
        ("12", "34 Main", False),
    ],
)
def test_a_billing_street_is_not_digits_only(api: Api, first: str, second: str | None, refused: bool) -> None:
    """A22.3; a shipping street may be."""
    lines = {"street1": first} | ({"street2": second} if second else {})
    answer = api.pay(**{f"billing.{name}": value for name, value in lines.items()})
    assert list(answer.errors) == (["billing.street1"] if refused else [])
    assert api.pay(**{f"shipping.{name}": value for name, value in lines.items()}).status == 200


def test_one_promotion_code_an_order(api: Api) -> None:
    """A13.17; decisions, section 4: one per request."""
    fields = [*_payment(), ("promotionCode", "SUMMER26"), ("promotionCode", "WINTER26")]
    assert list(api.post("/v1/payments", fields).errors) == ["promotionCode"]
    assert api.pay(promotionCode="SUMMER26").body["promotionCode"] == "SUMMER26"


def _payment() -> list[tuple[str, str]]:
    return [
        ("amount", "92.00"),
        ("currency", "EUR"),
        ("paymentType", "DB"),
        ("card.number", "4200000000000000"),
        ("card.expiryMonth", "05"),
        ("card.expiryYear", "2034"),
    ]


def test_the_hash_of_the_script_comes_with_a_payment_that_asks_for_it(api: Api) -> None:
    """A13.7."""
    told = api.with_token(None).call("GET", "/v1/fastcheckout/integrity").body["integrity"]
    assert api.pay(integrity="true").body["integrity"] == told
    assert "integrity" not in api.pay(integrity="false").body
    assert api.pay(integrity="1").body["integrity"] == told
    assert list(api.pay(integrity="yes").errors) == ["integrity"]

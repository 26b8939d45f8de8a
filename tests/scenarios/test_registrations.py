"""A shop that keeps its customers' cards: stored once, paid with by a click, renewed, forgotten.

Source: Part A, Resource identifiers, Endpoints (registration); Part B, Tokenization and registration; ruling D5.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from gateway.core import clock
from gateway.models import Registration
from tests.support.client import Answer, Api, payment
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

CARD = {
    "paymentBrand": "VISA", "card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034",
    "card.holder": "Jane Jones",
}  # fmt: skip
ID = re.compile("[0-9a-f]{32}")


def register(api: Api, **changes: str | None) -> Answer:
    fields: dict[str, Any] = CARD | {name.replace("__", "."): value for name, value in changes.items()}
    return api.post("/v1/registrations", {name: value for name, value in fields.items() if value is not None})


def click(api: Api, registration: str, **more: str) -> Answer:
    fields = {"amount": "92.00", "currency": "EUR", "paymentType": "DB"}
    return api.post(
        f"/v1/registrations/{registration}/payments",
        fields | {name.replace("__", "."): value for name, value in more.items()},
    )


def test_a_card_is_stored_and_paid_with_by_a_click(api: Api) -> None:
    """A1.2, A12.3, A27.9; D5: registration → one-click."""
    stored = register(api)
    assert (stored.status, stored.code) == (200, "000.100.110")
    assert ID.fullmatch(stored.id)
    assert "paymentType" not in stored.body
    assert "amount" not in stored.body
    assert stored.body["paymentBrand"] == "VISA"
    assert {**stored.body["card"]} | {"bin": "420000", "last4Digits": "0000", "holder": "Jane Jones"} == stored.body[
        "card"
    ]
    paid = click(api, stored.id)
    assert (paid.status, paid.code) == (200, "000.100.110"), paid
    body = paid.body
    assert body["registrationId"] == body["registration"]["id"] == stored.id
    assert (body["paymentBrand"], body["amount"], body["currency"], body["paymentType"]) == (
        "VISA",
        "92.00",
        "EUR",
        "DB",
    )
    assert body["card"]["last4Digits"] == "0000"
    assert body["card"]["holder"] == "Jane Jones"
    assert (body["card"]["expiryMonth"], body["card"]["expiryYear"]) == ("05", "2034")
    assert api.follow(paid.id, "RF", "92.00").status == 200


def test_a_card_is_stored_with_the_first_payment(api: Api) -> None:
    """B9.1, A7.6: createRegistration=true; both ids present and equal."""
    first = api.pay(createRegistration="true")
    assert first.status == 200
    ident = first.body["registrationId"]
    assert first.body["registration"] == {"id": ident}
    assert ident != first.id
    assert ID.fullmatch(ident)
    assert click(api, ident, paymentType="PA").status == 200
    assert api.read(first.id).body["registrationId"] == ident
    found = api.get(f"/v1/registrations/{ident}")
    assert (found.status, found.id, found.body["card"]["last4Digits"]) == (200, ident, "0000")


def test_a_card_is_checked_with_nothing_and_stored(api: Api) -> None:
    """D27: PA with amount 0 and createRegistration=true."""
    checked = api.pay(paymentType="PA", amount="0.00", createRegistration="true")
    assert (checked.status, checked.body["amount"]) == (200, "0.00")
    assert click(api, checked.body["registrationId"]).status == 200


def test_a_registration_is_a_payment_type_too(api: Api) -> None:
    """Part A, Basic payment (paymentType, for example RG); D27."""
    stored = api.pay(paymentType="RG", amount="0.00")
    assert (stored.status, stored.body["amount"], stored.body["registrationId"]) == (200, "0.00", stored.id)
    assert click(api, stored.id).status == 200


@pytest.mark.parametrize(
    "what, changes",
    [
        ("a declined payment", {"card__number": "4000015500000005"}),
        ("a refused one", {"card__number": "4444444444444444"}),
    ],
)
def test_a_failed_payment_keeps_no_registration(api: Api, what: str, changes: dict[str, str]) -> None:
    """Decisions, section 4."""
    failed = api.pay(createRegistration="true", **changes)
    assert failed.status == 400
    assert "registrationId" not in failed.body
    assert "registration" not in failed.body
    direct = register(api, **changes)
    assert (direct.status, direct.code) == (400, failed.code)
    assert not Registration.objects.exists()
    assert api.get(f"/v1/registrations/{direct.id}").code == "100.150.203"
    assert click(api, direct.id).code == "100.150.203"


BANK = {
    "paymentBrand": "DIRECTDEBIT_SEPA", "bankAccount.holder": "Jane Jones", "bankAccount.bic": "MARKDEF1100",
    "bankAccount.iban": "DE23100000001234567890", "bankAccount.country": "DE",
}  # fmt: skip


def test_bank_and_virtual_accounts_are_stored_too(api: Api) -> None:
    """B9; Part A, Bank account, Virtual account."""
    bank = api.post("/v1/registrations", BANK)
    assert bank.status == 200, bank
    assert bank.body["bankAccount"] == {
        "holder": "Jane Jones",
        "bic": "MARKDEF1100",
        "country": "DE",
        "iban": "******************7890",
    }
    paid = click(api, bank.id)
    assert paid.status == 200, paid
    assert paid.body["bankAccount"]["iban"] == "******************7890"
    assert paid.body["paymentBrand"] == "DIRECTDEBIT_SEPA"
    assert api.follow(paid.id, "RB", "5.00").status == 200
    virtual = api.post(
        "/v1/registrations", {"paymentBrand": "WEBWALLET", "virtualAccount.accountId": "shopper@mail.example"}
    )
    assert virtual.status == 200, virtual
    assert click(api, virtual.id).status == 200


def test_a_registration_is_read_updated_and_deleted(api: Api) -> None:
    """D5; decisions, section 4: DR, RR, TE by their own endpoints."""
    stored = register(api, customer__givenName="Jane", customer__surname="Jones")
    path = f"/v1/registrations/{stored.id}"
    read = api.get(path)
    assert read.body["customer"] == {"givenName": "Jane", "surname": "Jones"}
    changed = api.post(path, {"card.expiryMonth": "11", "card.expiryYear": "2036", "card.holder": "Jane Miller"})
    assert (changed.status, changed.id) == (200, stored.id), changed
    assert "paymentType" not in changed.body
    after = api.get(path).body["card"]
    assert (after["expiryMonth"], after["expiryYear"], after["holder"]) == ("11", "2036", "Jane Miller")
    assert click(api, stored.id).body["card"]["expiryYear"] == "2036"
    newer = api.post(path, {"card.number": "5454545454545454", "card.expiryMonth": "01", "card.expiryYear": "2037"})
    assert (newer.status, newer.body["paymentBrand"]) == (200, "MASTER")
    assert click(api, stored.id).body["card"]["last4Digits"] == "5454"
    assert api.post(f"{path}/extend").status == 200
    gone = api.delete(path)
    assert (gone.status, gone.id, gone.code) == (200, stored.id, "000.100.110")
    for answer in (api.get(path), click(api, stored.id), api.post(path, {"card.holder": "Jane Jones"})):
        assert (answer.status, answer.code) == (400, "100.150.202")
    assert api.delete(path).code == "100.150.202"
    assert api.post(f"{path}/extend").code == "100.350.316"
    kept = Registration.objects.get()
    assert kept.means_sealed is None


def test_an_expired_card_is_told_as_such(api: Api) -> None:
    """A15: 100.100.303, a declined payment that can be read."""
    year = clock.real_now().year + 1
    stored = register(api, card__expiryMonth="12", card__expiryYear=str(year))
    assert api.post("/v1/test/clock", {"now": f"{year + 1}-01-01T00:00:00Z"}).status == 200
    late = click(api, stored.id)
    assert (late.status, late.code, list(late.errors)) == (400, "100.100.303", ["card.expiryMonth"])
    assert api.read(late.id).code == "100.100.303"
    assert api.post(f"/v1/registrations/{stored.id}", {"card.expiryYear": str(year + 4)}).status == 200
    assert click(api, stored.id).status == 200


def test_what_is_stored_beside_an_expired_card_is_still_updated(api: Api) -> None:
    """Only a change of the card itself has to leave it valid."""
    year = clock.real_now().year + 1
    stored = register(api, card__expiryMonth="12", card__expiryYear=str(year))
    assert api.post("/v1/test/clock", {"now": f"{year + 1}-01-01T00:00:00Z"}).status == 200
    path = f"/v1/registrations/{stored.id}"
    assert api.post(path, {"customer.givenName": "Jane", "customer.surname": "Jones"}).status == 200
    assert api.get(path).body["customer"]["surname"] == "Jones"
    refused = api.post(path, {"card.holder": "Jane Miller"})
    assert (refused.status, refused.code, list(refused.errors)) == (400, "100.100.303", ["card.expiryMonth"])


def test_a_registration_ends_with_its_retention_unless_it_is_extended(shop: Shop) -> None:
    """Decisions, section 4: TE; 100.150.206."""
    api = shop.api_of(shop.open_channel(registration_days=30))
    one, other = register(api), register(api)
    api.post("/v1/test/clock", {"advance": str(20 * 86400)})
    assert api.post(f"/v1/registrations/{other.id}/extend").status == 200
    api.post("/v1/test/clock", {"advance": str(11 * 86400)})
    assert click(api, one.id).code == "100.150.206"
    assert api.get(f"/v1/registrations/{one.id}").code == "100.150.206"
    assert api.post(f"/v1/registrations/{one.id}/extend").code == "100.150.206"
    assert click(api, other.id).status == 200
    assert api.delete(f"/v1/registrations/{one.id}").status == 200


def test_an_id_that_is_no_registration_says_so(api: Api) -> None:
    """D11."""
    paid = api.pay()
    for ident, status, code in (
        (paid.id, 400, "100.150.204"),
        ("0" * 32, 404, "100.150.200"),
        ("x", 404, "100.150.200"),
    ):
        for answer in (
            api.get(f"/v1/registrations/{ident}"),
            api.delete(f"/v1/registrations/{ident}"),
            click(api, ident),
            api.post(f"/v1/registrations/{ident}", {"card.holder": "Jane Jones"}),
            api.post(f"/v1/registrations/{ident}/extend"),
        ):
            assert (answer.status, answer.code) == (status, code)


def test_another_merchants_registration_is_none(api: Api, stranger: Shop) -> None:
    """R11."""
    theirs = register(stranger.api)
    assert click(api, theirs.id).code == "100.150.200"
    assert api.delete(f"/v1/registrations/{theirs.id}").code == "100.150.200"
    assert click(stranger.api, theirs.id).status == 200


def test_a_holder_replaces_an_empty_one_for_one_payment(api: Api) -> None:
    """B9.2: overrideHolder."""
    bare = register(api, card__holder=None)
    once = click(api, bare.id, overrideHolder="true", card__holder="Jane Miller")
    assert once.body["card"]["holder"] == "Jane Miller"
    assert "holder" not in click(api, bare.id).body["card"]
    assert "holder" not in api.get(f"/v1/registrations/{bare.id}").body["card"]


@pytest.mark.parametrize(
    "stored, switch",
    [("Jane Jones", "true"), ("Jane Jones", "false"), ("Jane Jones", None), (None, None), (None, "false")],
)
def test_a_holder_replaces_no_other(api: Api, stored: str | None, switch: str | None) -> None:
    """B9.2: only with the switch, and only an empty one."""
    registration = register(api, card__holder=stored)
    more = {"overrideHolder": switch} if switch is not None else {}
    paid = click(api, registration.id, card__holder="Jane Miller", **more)
    assert paid.status == 200
    assert paid.body["card"].get("holder") == stored
    assert paid.body["ignoredParameters"] == ["card.holder"]


def test_nothing_but_a_code_and_a_holder_stands_beside_a_registration(api: Api) -> None:
    """D29."""
    stored = register(api)
    twice = click(api, stored.id, card__number="4200000000000000")
    assert (twice.status, "card.number" in twice.errors) == (400, True)
    assert click(api, stored.id, card__cvv="123").body["result"]["cvvResponse"] == "M"
    assert click(api, stored.id, card__cvv="1234").code == "100.100.601"
    assert click(api, stored.id, paymentBrand="MASTER").code == "600.200.800"
    assert click(api, stored.id, paymentType="RG").status == 400
    assert click(api, stored.id, paymentType="CP").errors.keys() == {"paymentType"}


def test_what_a_registration_needs_is_asked_for_all_at_once(api: Api) -> None:
    """D10, D29; 100.150."""
    empty = api.post("/v1/registrations", {"paymentBrand": "VISA"})
    assert (empty.status, empty.errors.keys()) == (400, {"card.number", "card.expiryMonth", "card.expiryYear"})
    assert register(api, card__expiryMonth=None).errors.keys() == {"card.expiryMonth"}
    assert register(api, paymentType="DB").errors.keys() == {"paymentType"}
    assert register(api, card__number="4444444444444444").code == "100.100.101"
    token = {"paymentBrand": "VISA", "tokenAccount.number": "4200000000000000", "tokenAccount.type": "EXTERNAL"}
    assert "tokenAccount.number" in api.post("/v1/registrations", token).errors


def test_a_channel_that_wants_the_code_does_not_ask_a_registration_for_it(shop: Shop) -> None:
    """A15.3: a registration never asks."""
    api = shop.api_of(shop.open_channel(cvv_required=True))
    stored = register(api)
    assert stored.status == 200
    assert click(api, stored.id).status == 200
    assert api.post("/v1/payments", payment(card__cvv=None)).errors.keys() == {"card.cvv"}


def test_a_repeated_key_answers_as_the_first_time(api: Api) -> None:
    """D20."""
    key = {"Idempotency-Key": "registration-1"}
    one = api.post("/v1/registrations", CARD, **key)
    two = api.post("/v1/registrations", CARD, **key)
    assert one.id == two.id
    assert Registration.objects.count() == 1
    path, more = f"/v1/registrations/{one.id}", {"card.holder": "Jane Miller"}
    assert api.post(path, more, **key).text == api.post(path, more, **key).text
    assert Registration.objects.get().sequence == 2

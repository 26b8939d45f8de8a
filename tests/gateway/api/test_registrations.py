"""The registration endpoints: which registration an id names, what is asked for beside it, and what is answered.

Source: Part A, Endpoints (registration); Part B, Tokenization and registration; rulings D5, D20, D29.
"""

from __future__ import annotations

import pytest

from gateway.catalogue.parse import UnknownNamePolicy
from gateway.models import Agreement, Channel, Merchant, Payment, Registration
from gateway.payments import account_updates
from tests.support.client import Answer, Api
from tests.support.clock import jump
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
CARD = {
    "paymentBrand": "VISA", "card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2094",
}  # fmt: skip
BANK = {
    "paymentBrand": "DIRECTDEBIT_SEPA", "bankAccount.holder": "Jane Jones", "bankAccount.bic": "MARKDEF1100",
    "bankAccount.iban": "DE23100000001234567890", "bankAccount.country": "DE",
}  # fmt: skip
VIRTUAL = {"paymentBrand": "WEBWALLET", "virtualAccount.accountId": "shopper@mail.example"}
CLICK = {"amount": "92.00", "currency": "EUR", "paymentType": "DB"}
DECLINED = "4000015500000005"
UNKNOWN = "01a1ff6d25f4754d8dc59d8d915307b2"
INITIAL = {"standingInstruction.mode": "INITIAL", "standingInstruction.source": "CIT"}
REPEATED = {"standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT"}


def store(api: Api, fields: dict[str, str] = CARD) -> str:
    stored = api.post("/v1/registrations", fields)
    assert stored.status == 200, stored
    return stored.id


def click(api: Api, ident: str, **more: str) -> Answer:
    return api.post(f"/v1/registrations/{ident}/payments", CLICK | {k.replace("__", "."): v for k, v in more.items()})


def update(api: Api, ident: str, **more: str) -> Answer:
    sent = {"card.holder": "Jane Miller"} | {name.replace("__", "."): value for name, value in more.items()}
    return api.post(f"/v1/registrations/{ident}", sent)


def test_each_door_says_why_an_id_is_no_registration(shop: Shop, stranger: Shop) -> None:
    """A deleted one has a code of its own where it is extended, and no other id has that."""
    api = shop.api
    deleted = store(api)
    assert api.delete(f"/v1/registrations/{deleted}").status == 200
    declined = api.post("/v1/registrations", CARD | {"card.number": DECLINED}).id
    ids = {
        "unknown": (UNKNOWN, 404, "100.150.200"),
        "malformed": ("x", 404, "100.150.200"),
        "of another merchant": (store(stranger.api), 404, "100.150.200"),
        "of another channel": (store(shop.api_of(shop.open_channel())), 404, "100.150.200"),
        "a payment": (api.pay().id, 400, "100.150.204"),
        "declined": (declined, 400, "100.150.203"),
        "deleted": (deleted, 400, "100.150.202"),
    }
    for what, (ident, status, code) in ids.items():
        path = f"/v1/registrations/{ident}"
        for answer in (api.get(path), update(api, ident), api.delete(path), click(api, ident)):
            assert (answer.status, answer.code) == (status, code), what
        extended = api.post(f"{path}/extend")
        assert (extended.status, extended.code) == (status, "100.350.316" if what == "deleted" else code), what


def test_errors_of_the_parameters_come_before_an_unknown_id(api: Api) -> None:
    wrong = click(api, UNKNOWN, amount="9.1", currency="EURO")
    assert (wrong.status, wrong.code, wrong.errors.keys()) == (400, "200.300.404", {"amount", "currency"})


def test_a_read_tells_what_is_stored_its_rate_and_what_was_ignored(shop: Shop) -> None:
    api = shop.api_of(shop.open_channel(limits={"*": {"limit": 50, "window_s": 1_000_000}}, registration_days=30))
    ident = store(api)
    read = api.get(f"/v1/registrations/{ident}", {"colour": "red"})
    assert (read.status, read.id, read.code) == (200, ident, "000.100.110")
    assert read.body["card"]["last4Digits"] == "0000"
    assert read.body["ignoredParameters"] == ["colour"]
    assert read.headers["RateLimit-Limit"] == "50"
    assert {"buildNumber", "timestamp", "ndc"} <= read.body.keys()
    assert read.body["ndc"] != api.get(f"/v1/registrations/{ident}").body["ndc"]
    jump(31 * 86_400)
    late = api.get(f"/v1/registrations/{ident}")
    assert (late.status, late.code) == (400, "100.150.206")


def test_changes_are_shown_without_amount_and_type_with_what_was_ignored(shop: Shop) -> None:
    api = shop.api_of(shop.open_channel(limits={"*": {"limit": 50, "window_s": 1_000_000}}))
    stored = api.post("/v1/registrations", CARD)
    path = f"/v1/registrations/{stored.id}"
    changes = (
        stored,
        update(api, stored.id, colour="red"),
        api.post(f"{path}/extend", {"colour": "red"}),
        api.delete(path, {"colour": "red"}),
    )
    for answer in changes:
        assert (answer.status, answer.id, answer.headers["RateLimit-Limit"]) == (200, stored.id, "50")
        assert not {"paymentType", "amount", "currency"} & answer.body.keys()
        assert answer.body.get("ignoredParameters", []) == ([] if answer is stored else ["colour"])
    kinds = Payment.objects.exclude(pk=stored.id).order_by("pk").values_list("payment_type", "registration")
    assert [(kind, registration.hex) for kind, registration in kinds] == [
        (kind, stored.id) for kind in ("RR", "TE", "DR")
    ]


@pytest.mark.parametrize("door", ["store", "update", "extend", "pay"])
def test_a_repeated_key_changes_nothing_and_answers_as_the_first_time(api: Api, door: str) -> None:
    ident = store(api)
    path = f"/v1/registrations/{ident}"
    doors = {
        "store": ("/v1/registrations", CARD),
        "update": (path, {"card.holder": "Jane Miller"}),
        "extend": (f"{path}/extend", {}),
        "pay": (f"{path}/payments", CLICK),
    }
    first, second = (api.post(*doors[door], Idempotency_Key="key-1") for _ in range(2))
    assert (first.status, first.text) == (200, second.text)
    assert "Idempotent-Replayed" not in first.headers
    assert second.headers["Idempotent-Replayed"] == "true"
    assert Payment.objects.count() == 2, "the registration, and one more"


@pytest.mark.parametrize("entity", ["channel", "merchant"])
def test_a_click_is_asked_what_the_channel_of_the_registration_asks(shop: Shop, entity: str) -> None:
    """Also where the request names the merchant only."""
    Merchant.objects.filter(pk=shop.merchant.pk).update(dispatching=True)
    channel = shop.open_channel(parameters=UnknownNamePolicy.STRICT)
    own = shop.api_of(channel)
    ident = store(own)
    api = own if entity == "channel" else own.as_entity(shop.merchant.entity_id)
    paid = click(api, ident)
    assert paid.status == 200, paid
    assert Payment.objects.get(pk=paid.id).channel_id == channel.pk
    assert click(api, ident, colour="red").errors.keys() == {"colour"}
    # The shop's other channel takes names that nobody knows.
    beside = store(shop.api)
    assert click(shop.api if entity == "channel" else api, beside, colour="red").status == 200


@pytest.mark.parametrize(
    ("stored", "wants"), [(CARD, True), (BANK, False), (VIRTUAL, False)], ids=["card", "bank", "virtual"]
)
def test_only_of_a_stored_card_a_channel_that_authenticates_wants_the_shoppers_browser(
    shop: Shop, stored: dict[str, str], wants: bool
) -> None:
    ident = store(shop.api, stored)
    assert click(shop.api, ident).status == 200
    Channel.objects.filter(pk=shop.channel.pk).update(three_d_secure=True)
    asked = click(shop.api, ident)
    assert asked.status == (400 if wants else 200), asked
    assert any(name.startswith("customer.browser.") for name in asked.errors) is wants


def test_beside_a_registration_no_means_are_asked_for_or_taken(api: Api) -> None:
    ident = store(api)
    assert click(api, ident).body["registrationId"] == ident
    assert click(api, ident, card__number="4200000000000000").errors.keys() == {"card.number"}


def test_a_gift_card_may_be_bought_with_a_stored_card(api: Api) -> None:
    """Part B, Gift card: with another brand it is what is bought."""
    greeting = {"holder": "Tom Jones", "message": "Many happy returns", "type": "BIRTHDAY"}
    bought = {**{f"giftCard.{name}": value for name, value in greeting.items()}, "giftCard.pin": "4711"}
    answer = click(api, store(api), **bought, **{"giftCard.number": "GC-10042"})
    assert (answer.status, answer.body["paymentBrand"]) == (200, "VISA")
    assert answer.body["giftCard"] == greeting | {"number": "****0042"}
    assert click(api, store(api), **{"giftCard.type": "WHIT_SUNDAY"}).errors.keys() == {"giftCard.type"}


def test_only_before_a_payment_of_the_merchants_the_account_updater_is_asked(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it found is what is paid with."""
    ident = store(api, CARD | INITIAL)
    assert Agreement.objects.filter(registration=ident).exists()
    asked: list[str] = []

    def refresh(found: Registration) -> Registration:
        asked.append(found.pk.hex)
        found.details = {"card": {**found.details["card"], "expiryYear": "2095"}}
        return found

    monkeypatch.setattr(account_updates, "refresh_stored_card", refresh)
    by_shopper = click(api, ident)
    assert (by_shopper.status, by_shopper.body["card"]["expiryYear"], asked) == (200, "2094", [])
    by_merchant = click(api, ident, **{name.replace(".", "__"): value for name, value in REPEATED.items()})
    assert (by_merchant.status, by_merchant.body["card"]["expiryYear"], asked) == (200, "2095", [ident])


def test_a_click_is_made_at_the_merchants_time(api: Api) -> None:
    """An expiry that the merchant's clock has passed declines."""
    ident = store(api)
    assert click(api, ident).status == 200
    jump(70 * 365 * 86_400)
    late = click(api, ident)
    assert (late.status, late.code, [*late.errors]) == (400, "100.100.303", ["card.expiryMonth"])
    assert Payment.objects.get(pk=late.id).created_at.year >= 2095


@pytest.mark.parametrize(("mode", "code"), [("INTERNAL", "000.100.110"), ("EXTERNAL", "000.100.112")])
def test_a_read_has_the_code_of_the_mode_it_was_stored_in(api: Api, mode: str, code: str) -> None:
    ident = store(api)
    Registration.objects.filter(pk=ident).update(test_mode=mode)
    assert api.get(f"/v1/registrations/{ident}").code == code

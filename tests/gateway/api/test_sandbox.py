"""What only the test environment has: messages, mails, wallet tokens, network tokens and transfers, each of its owner.

Source: docs/decisions/0052; docs/testing.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from gateway.api import sandbox
from gateway.connectors.simulator import token_service
from gateway.core.money import Money
from gateway.models import AcquirerExchange, Merchant, NetworkToken, Registration
from gateway.wallets.token_factory import PaymentSheet
from tests.support.client import Answer
from tests.support.fixtures import Shop
from tests.support.subscriptions import store_card

pytestmark = pytest.mark.django_db
MESSAGES, MAILS, WALLET = "/v1/test/acquirer/messages", "/v1/test/mails", "/v1/test/wallet-token"
NOBODY = "0" * 32


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"{MESSAGES}?id={NOBODY}"),
        ("GET", f"{MAILS}?id={NOBODY}"),
        ("POST", WALLET),
        ("POST", f"/v1/test/network-tokens/{NOBODY}"),
        ("POST", f"/v1/test/transfers/{NOBODY}"),
    ],
)
def test_in_live_there_is_no_such_path_whoever_asks(shop: Shop, live: None, method: str, path: str) -> None:
    for api in (shop.api, shop.api.with_token(None)):
        assert api.over_tls().call(method, path).status == 404


@pytest.mark.parametrize("path", [MESSAGES, MAILS])
def test_what_belongs_to_a_payment_is_told_to_its_owner_alone(shop: Shop, stranger: Shop, path: str) -> None:
    own, other = shop.api.pay(), stranger.api.pay()
    answer = shop.api.get(path, {"id": own.id, "colour": "red"})
    assert (answer.status, answer.code, answer.id) == (200, "000.000.100", own.id)
    assert "colour" in answer.text
    for ident in (other.id, NOBODY):
        refused = shop.api.get(path, {"id": ident})
        assert (refused.status, refused.code) == (404, "700.400.580")
    assert shop.api.get(path).status in (400, 404)


def test_messages_are_those_of_the_payment_in_their_order(shop: Shop) -> None:
    shop.api.pay()
    authorized = shop.api.pay(paymentType="PA")
    exchange = AcquirerExchange.objects.get(payment=UUID(authorized.id))
    AcquirerExchange.objects.filter(pk=exchange.pk).update(
        connector="stub", kind="inquire", duration_ms=17, received={"holder": "4200000000000000", "word": "Grüße"}
    )
    second = AcquirerExchange.objects.create(
        payment_id=exchange.payment_id, connector="simulator", kind="submit", sent=exchange.sent,
        received={"second": "1"}, duration_ms=23, at=exchange.at,
    )  # fmt: skip
    assert second.id > exchange.id
    messages = shop.api.get(MESSAGES, {"id": authorized.id}).body["messages"]
    assert [(one["connector"], one["kind"], one["durationMs"]) for one in messages] == [
        ("stub", "inquire", 17),
        ("simulator", "submit", 23),
    ]
    assert messages[0]["received"] == {"holder": "420000******0000", "word": "Grüße"}
    assert messages[1]["received"] == {"second": "1"}
    assert messages[0]["sent"]["amount"] == "92.00"
    assert all(one["at"] for one in messages)


# --- wallet tokens ------------------------------------------------------------------------------------------------


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the simulated wallet was asked for."""
    asked: list[Any] = []

    def build(channel: Any, wallet: str, form: str, sheet: PaymentSheet, *, expired: bool) -> str:
        asked.append((channel.pk, wallet, form, sheet, expired))
        return '{"token": 1}'

    monkeypatch.setattr(
        sandbox.wallets, "generate_channel_keys", lambda channel, form: asked.append((channel.pk, form))
    )
    monkeypatch.setattr(sandbox.wallets, "build_channel_token", build)
    monkeypatch.setattr(sandbox, "tamper_token", lambda token: f"tampered {token}")
    return asked


def ask(shop: Shop, **more: str) -> Answer:
    return shop.api.post(WALLET, {"wallet": "wallet1", "amount": "7.00", "currency": "USD", **more})


def test_card_data_that_an_acquirer_answers_as_a_number_is_masked(shop: Shop) -> None:
    """A plug-in may keep such an answer; masked, it was no JSON any more, and the request a 500."""
    paid = shop.api.pay()
    AcquirerExchange.objects.filter(payment_id=paid.id).update(
        received={"pan": 4111111111111111, "cvv": 123, "amount": 12.5, "code": "00"}
    )
    (told,) = shop.api.get(MESSAGES, {"id": paid.id}).body["messages"]
    assert told["received"] == {"pan": "411111******1111", "cvv": "***", "amount": "12.5", "code": "00"}


@pytest.mark.parametrize("wallet", sorted(sandbox.WALLET_FORMATS))
def test_a_wallets_first_form_is_made_for_the_channel_by_default(shop: Shop, made: list[Any], wallet: str) -> None:
    answer = ask(shop, wallet=wallet)
    form = sandbox.WALLET_FORMATS[wallet][0]
    assert answer.status == 200, answer
    assert (answer.code, answer.body["wallet"], answer.body["format"]) == ("000.000.100", wallet, form)
    assert answer.body["paymentToken"] == '{"token": 1}'
    keys, (channel, of, in_form, sheet, expired) = made
    assert keys == (shop.channel.pk, form)
    assert (channel, of, in_form, expired) == (shop.channel.pk, wallet, form, False)
    assert (sheet.money, sheet.number.reveal(), sheet.card_only) == (
        Money.parse("7.00", "USD"), "4200000000000000", False,
    )  # fmt: skip


def test_a_token_is_made_as_it_was_asked_for(shop: Shop, made: list[Any]) -> None:
    wallet, forms = next((wallet, forms) for wallet, forms in sandbox.WALLET_FORMATS.items() if len(forms) > 1)
    answer = ask(shop, wallet=wallet, format=forms[1], number="5454545454545454", colour="red")
    assert answer.body["format"] == forms[1]
    assert "colour" in answer.text
    (_, (_, _, form, sheet, _)) = made
    assert (form, sheet.number.reveal()) == (forms[1], "5454545454545454")


@pytest.mark.parametrize(("defect", "expired", "tampered"), [("expired", True, False), ("tampered", False, True)])
def test_a_defect_is_the_one_that_was_asked_for(
    shop: Shop, made: list[Any], defect: str, expired: bool, tampered: bool
) -> None:
    answer = ask(shop, defect=defect)
    assert answer.status == 200, answer
    assert made[1][4] is expired
    assert answer.body["paymentToken"].startswith("tampered ") is tampered


def test_a_merchants_own_id_has_no_keys(shop: Shop, made: list[Any]) -> None:
    Merchant.objects.filter(pk=shop.merchant.pk).update(dispatching=True)
    answer = shop.api.as_entity(shop.merchant.entity_id).post(
        WALLET, {"wallet": "wallet1", "amount": "7.00", "currency": "EUR"}
    )
    assert answer.status == 400
    assert "must be a channel's" in answer.errors["entityId"]
    assert made == []


def test_each_answer_says_how_often_may_still_be_asked(shop: Shop, made: list[Any]) -> None:
    api = shop.api_of(shop.open_channel(limits={"*": {"limit": 50, "window_s": 1_000_000}}))
    paid = api.pay().id
    nothing = dict.fromkeys(("card__number", "card__expiryMonth", "card__expiryYear", "card__cvv", "card__holder"))
    waiting = api.pay(paymentBrand="PREPAYMENT", **nothing).id
    for answer in (
        api.get(MESSAGES, {"id": paid}),
        api.get(MAILS, {"id": paid}),
        api.post(WALLET, {"wallet": "wallet1", "amount": "7.00", "currency": "USD"}),
        api.post(f"/v1/test/transfers/{waiting}", {"outcome": "arrived"}),
    ):
        assert (answer.status, answer.headers["RateLimit-Limit"]) == (200, "50"), answer


# --- network tokens and transfers ---------------------------------------------------------------------------------


def test_a_card_without_a_network_token_has_none_to_change(shop: Shop, stranger: Shop) -> None:
    stored, other = store_card(shop.api), store_card(stranger.api)
    refused = shop.api.post(f"/v1/test/network-tokens/{stored}", {"event": "SUSPENDED"})
    assert refused.status == 400
    assert "network token" in refused.errors["id"]
    assert shop.api.post(f"/v1/test/network-tokens/{other}", {"event": "SUSPENDED"}).status == 404


def test_a_network_tells_of_the_token_that_the_card_has(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = store_card(shop.api)
    registration = Registration.objects.get(pk=stored)
    token = NetworkToken(reference="ref-7", expiry_month="07", expiry_year="2031")
    told: list[Any] = []
    monkeypatch.setattr(sandbox, "get_network_token", lambda found: token if found == registration else None)
    monkeypatch.setattr(
        sandbox.network_tokens,
        "apply_token_event",
        lambda reference, event, **more: told.append((reference, event, more)),
    )
    monkeypatch.setattr(Registration, "network_token", token, raising=False)
    monkeypatch.setattr(NetworkToken, "refresh_from_db", lambda self: told.append("read anew"))
    shop.channel.limits = {"*": {"limit": 50, "window_s": 1_000_000}}
    shop.channel.save()
    answer = shop.api.post(f"/v1/test/network-tokens/{stored}", {"event": "SUSPENDED", "colour": "red"})
    assert answer.headers["RateLimit-Limit"] == "50"
    assert (answer.status, answer.id) == (200, stored), answer
    assert {"buildNumber", "timestamp", "ndc", "result"} <= answer.body.keys()
    assert "colour" in answer.text
    years = {"expiry_month": "07", "expiry_year": str(2031 + token_service.TOKEN_YEARS)}
    assert told == [("ref-7", "SUSPENDED", years), "read anew"]
    token.reference = ""
    assert shop.api.post(f"/v1/test/network-tokens/{stored}", {"event": "SUSPENDED"}).status == 400


def test_a_card_payment_waits_for_no_transfer(shop: Shop, stranger: Shop) -> None:
    own, other = shop.api.pay(), stranger.api.pay()
    refused = shop.api.post(f"/v1/test/transfers/{own.id}", {"outcome": "arrived"})
    assert refused.status == 400
    assert "waits for a transfer" in refused.errors["id"]
    for ident in (other.id, NOBODY):
        assert shop.api.post(f"/v1/test/transfers/{ident}", {"outcome": "arrived"}).status == 404


@pytest.mark.parametrize(("outcome", "code"), [("arrived", "000.100.110"), ("returned", "")])
def test_a_transfer_arrives_or_is_sent_back(shop: Shop, outcome: str, code: str) -> None:
    waiting = shop.api.pay(
        paymentBrand="PREPAYMENT", card__number=None, card__expiryMonth=None, card__expiryYear=None, card__cvv=None,
        card__holder=None,
    )  # fmt: skip
    assert waiting.code == "800.400.500", waiting
    beside = shop.api.pay(
        paymentBrand="PREPAYMENT", card__number=None, card__expiryMonth=None, card__expiryYear=None, card__cvv=None,
        card__holder=None,
    )  # fmt: skip
    answer = shop.api.post(f"/v1/test/transfers/{waiting.id}", {"outcome": outcome, "colour": "red"})
    assert answer.id == waiting.id
    assert (answer.code == code) if code else not answer.code.startswith("000"), answer
    assert "colour" in answer.text
    assert shop.api.read(waiting.id).code == answer.code
    assert shop.api.read(beside.id).code == beside.code

"""What only the test environment has: messages, mails, wallet tokens, network tokens and transfers, each of its owner.

Source: docs/decisions/0052; docs/testing.
"""

from __future__ import annotations

from typing import Any

import pytest

from gateway.api import sandbox
from gateway.core.money import Money
from gateway.wallets.token_factory import PaymentSheet
from tests.support.client import Answer
from tests.support.fixtures import Shop

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


# --- network tokens and transfers ---------------------------------------------------------------------------------


def test_a_card_payment_waits_for_no_transfer(shop: Shop, stranger: Shop) -> None:
    own, other = shop.api.pay(), stranger.api.pay()
    refused = shop.api.post(f"/v1/test/transfers/{own.id}", {"outcome": "arrived"})
    assert refused.status == 400
    assert "waits for a transfer" in refused.errors["id"]
    for ident in (other.id, NOBODY):
        assert shop.api.post(f"/v1/test/transfers/{ident}", {"outcome": "arrived"}).status == 404

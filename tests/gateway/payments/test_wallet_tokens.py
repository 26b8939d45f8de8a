"""Which parameters a decrypted wallet token becomes, and which refusals.

Source: Part A, Mobile wallets; rulings D10, D29, D32.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.catalogue.endpoints import PAYMENT_ENDPOINT
from gateway.catalogue.parse import Parameters
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import Channel
from gateway.payments import wallet_tokens
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.wallet_tokens import unwrap_wallet_token
from gateway.wallets.token import DecryptedToken, TokenRefusalReason, WalletTokenRefusedError
from tests.support.threeds import BILLING, BROWSER

TOKEN = DecryptedToken(
    number=Secret("4200000000000000"), expiry_month="11", expiry_year="2035", kind="DPAN", token_id="t",
    until=datetime(2036, 1, 1, tzinfo=UTC), holder="Jane Jones", cryptogram=Secret("CAVV"), eci="05",
)  # fmt: skip
SEEN = object()
CHANNEL = Channel()
FACTS = frozenset({"today:2035-11", "threeds"})


def sent(wallet: str = "wallet2", **more: str) -> Parameters:
    fields = {
        "entityId": "0" * 32, "amount": "92.00", "currency": "EUR", "paymentType": "DB", "paymentBrand": wallet.upper(),
        f"{wallet}.paymentToken": f"of {wallet}",
    }  # fmt: skip
    fields |= {name.replace("__", "."): value for name, value in more.items()}
    return PAYMENT_ENDPOINT.catalogue.parse(fields.items())


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """What the token opens to, and what was asked to open it."""
    found = SimpleNamespace(token=TOKEN, asked=[])

    def open_wallet_token(channel: Channel, wallet: str, text: Secret, money: Money) -> Any:
        found.asked.append((channel, wallet, text.reveal(), money))
        if isinstance(found.token, Exception):
            raise found.token
        return SimpleNamespace(token=found.token, seen=SEEN)

    monkeypatch.setattr(wallet_tokens, "open_wallet_token", open_wallet_token)
    return found


def unwrap(parameters: Parameters, facts: frozenset[str] = FACTS) -> Any:
    return unwrap_wallet_token(parameters, CHANNEL, lambda: facts)


def test_without_a_token_nothing_is_opened(opened: SimpleNamespace) -> None:
    parameters = sent()
    del parameters.secrets["wallet2.paymentToken"]
    before = dict(parameters.values)
    assert unwrap_wallet_token(parameters, CHANNEL, lambda: pytest.fail("no facts are wanted")) is None
    assert (parameters.values, opened.asked) == (before, [])


@pytest.mark.parametrize("wallet", ["wallet1", "wallet2", "wallet3"])
def test_a_token_is_opened_for_its_wallet_and_the_amount(opened: SimpleNamespace, wallet: str) -> None:
    parameters = sent(wallet)
    assert unwrap(parameters) is SEEN
    assert opened.asked == [(CHANNEL, wallet, f"of {wallet}", Money.parse("92.00", "EUR"))]


CARD = {"card.expiryMonth": "11", "card.expiryYear": "2035", "card.holder": "Jane Jones", "card.numberType": "DPAN"}


@pytest.mark.parametrize(
    ("token", "more", "values"),
    [
        ({}, {}, {**CARD, "threeDSecure.eci": "05"}),
        ({"holder": ""}, {}, {name: CARD[name] for name in CARD if name != "card.holder"} | {"threeDSecure.eci": "05"}),
        ({}, {"card__holder": "John Jones"}, {**CARD, "card.holder": "John Jones", "threeDSecure.eci": "05"}),
        ({"eci": None}, {}, {**CARD, "threeDSecure.eci": "07"}),
        ({"eci": None, "number": Secret("5454545454545454")}, {}, {**CARD, "threeDSecure.eci": "02"}),
        ({"eci": None, "number": Secret("6759649826438453")}, {}, {**CARD, "threeDSecure.eci": "02"}),
        ({"eci": None, "number": Secret("4000000000000000")}, {}, {**CARD, "threeDSecure.eci": "07"}),
        ({"eci": "06", "number": Secret("5454545454545454")}, {}, {**CARD, "threeDSecure.eci": "06"}),
        ({"kind": "PAN"}, {}, {**CARD, "card.numberType": "PAN", "threeDSecure.eci": "05"}),
    ],
)
def test_its_card_and_proof_are_what_a_merchant_would_have_sent(
    opened: SimpleNamespace, token: dict[str, Any], more: dict[str, str], values: dict[str, str]
) -> None:
    opened.token = replace(TOKEN, **token)
    parameters = sent(**more)
    before = dict(parameters.values)
    unwrap(parameters)
    assert parameters.values == before | values
    assert parameters.secrets["card.number"] is opened.token.number
    assert parameters.secrets["threeDSecure.verificationId"] is opened.token.cryptogram


def test_a_card_without_a_proof_claims_none(opened: SimpleNamespace) -> None:
    opened.token = replace(TOKEN, cryptogram=None, kind="PAN")
    parameters = sent()
    unwrap(parameters, FACTS - {"threeds"})
    assert "threeDSecure.eci" not in parameters
    assert "threeDSecure.verificationId" not in parameters
    assert parameters["card.numberType"] == "PAN"


def test_a_card_without_a_proof_needs_what_an_authentication_needs_on_a_channel_that_authenticates(
    opened: SimpleNamespace,
) -> None:
    opened.token = replace(TOKEN, cryptogram=None, kind="PAN")
    with pytest.raises(RequestRefusedError) as refused:
        unwrap(sent())
    assert refused.value.code == "200.300.404"
    assert set(BROWSER) <= {error.name for error in refused.value.errors}
    given = {"shopperResultUrl": "https://shop.example", **BROWSER, **BILLING}
    assert unwrap(sent(**given)) is SEEN


@pytest.mark.parametrize(
    ("token", "code"),
    [
        ({"expiry_month": "10"}, "100.100.303"),
        ({"expiry_year": "2034"}, "100.100.303"),
        ({"number": Secret("4200000000000001")}, "100.100.101"),
    ],
)
def test_a_card_that_is_refused_declines_like_one_that_was_sent(
    opened: SimpleNamespace, token: dict[str, Any], code: str
) -> None:
    """Beside what was refused before, by the parameter that was sent."""
    parameters = sent()
    parameters.refusals = ("before",)  # type: ignore[assignment]
    opened.token = replace(TOKEN, **token)
    assert unwrap(parameters) is SEEN
    first, found = parameters.refusals
    assert first == "before"
    assert (found.name, found.code, found.known) == ("wallet2.paymentToken", code, True)


def test_a_card_that_is_good_until_the_end_of_its_month_is_not_refused(opened: SimpleNamespace) -> None:
    parameters = sent()
    unwrap(parameters)
    assert parameters.refusals == ()


def test_a_token_that_does_not_open_is_refused_by_its_parameter_and_reason(opened: SimpleNamespace) -> None:
    opened.token = WalletTokenRefusedError(TokenRefusalReason.REPLAYED)
    with pytest.raises(RequestRefusedError) as refused:
        unwrap(sent("wallet3"))
    [error] = refused.value.errors
    assert (refused.value.code, error.code, error.name, error.known) == (
        "200.100.602", "200.100.602", "wallet3.paymentToken", True,
    )  # fmt: skip
    assert "was used already" in error.message
    assert error.value is None

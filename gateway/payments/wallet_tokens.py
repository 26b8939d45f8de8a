"""A wallet's token on its way into the line: opened, and read like the card data that could have been sent instead.

Both ways of a wallet end in the same parameters: card.*, and the proof as threeDSecure.eci and verificationId (D32).
What came out of a token is not echoed as sent data; the answer tells of it what it tells of a stored card.
Source: Part A, Mobile wallets; rulings D10, D29, D32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.catalogue.conditions import CARD_CHECKS
from gateway.catalogue.endpoints import PAYMENT_ENDPOINT
from gateway.catalogue.parse import INVALID_PARAMETER_CODE, ParameterError, Parameters
from gateway.connectors.acquirer_message import CRYPTOGRAM_PARAMETER
from gateway.core.card_number import detect_brand_of_number
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import Channel
from gateway.payments.refusal import RequestRefusedError
from gateway.wallets.channel_tokens import WalletTokenUse, open_wallet_token
from gateway.wallets.keys import WALLET_NAMES
from gateway.wallets.token import DecryptedToken, WalletTokenRefusedError

_DEFAULT_ECI_BY_BRAND: Final[Mapping[str, str]] = {"MASTER": "02", "MASTERDEBIT": "02", "MAESTRO": "02"}
_DEFAULT_ECI: Final = "07"
"""Wallets leave the indicator out for some networks: then the proof is passed on, and no more is claimed."""

_AUTHENTICATION_RULES: Final = tuple(rule for rule in PAYMENT_ENDPOINT.rules if "threeds" in rule.facts)
"""What a channel with 3-D Secure asks for: of a token, that is known only once it is open."""


def unwrap_wallet_token(parameters: Parameters, channel: Channel, facts: frozenset[str]) -> WalletTokenUse | None:
    """Open the wallet token that was sent and put its card data among ``parameters``; None when none was sent.
    ``facts``: what conditions may ask about (gateway.payments.request_builder).

    Raises RequestRefusedError, naming ``walletn.paymentToken``, or what an authentication needs when the token holds a
    card without a proof; a card that is past its expiry or fails its check digit is added to the parameters' refusals,
    like one that was sent.
    """
    name = next((name for wallet in WALLET_NAMES if (name := f"{wallet}.paymentToken") in parameters), None)
    if name is None:
        return None
    wallet = name.partition(".")[0]
    money = Money.parse(parameters["amount"], parameters["currency"])
    try:
        opened = open_wallet_token(channel, wallet, parameters.secrets[name], money)
    except WalletTokenRefusedError as fault:
        raise build_wallet_refusal(wallet, fault) from None
    parameters.values |= _card_data(opened.token, parameters)
    parameters.secrets |= _secrets(opened.token)
    sent = parameters.sent(facts)
    missing = [
        ParameterError(name=field, message=message, known=True)
        for rule in _AUTHENTICATION_RULES
        for field, message in rule.check(sent)
    ]
    if missing:
        raise RequestRefusedError(INVALID_PARAMETER_CODE, missing)
    refusals = tuple(
        ParameterError(name=name, message=f"holds a card that is refused: {message}", code=rule.code, known=True)
        for rule in CARD_CHECKS
        for _, message in rule.check(sent)
    )
    parameters.refusals = (*parameters.refusals, *refusals)
    return opened.seen


def build_wallet_refusal(wallet: str, fault: WalletTokenRefusedError) -> RequestRefusedError:
    """The answer to a token that is not taken: its parameter by name, the reason, nothing of the token."""
    error = ParameterError(name=f"{wallet}.paymentToken", message=str(fault), code=fault.code, known=True)
    return RequestRefusedError(fault.code, [error])


def _card_data(token: DecryptedToken, sent: Parameters) -> dict[str, str]:
    """What a merchant would have sent who decrypts tokens; a holder that was sent beside the token counts."""
    found = {
        "card.expiryMonth": token.expiry_month,
        "card.expiryYear": token.expiry_year,
        "card.holder": sent.get("card.holder") or token.holder,
        "card.numberType": token.kind,
    }
    if token.cryptogram is not None:
        said_nothing = _DEFAULT_ECI_BY_BRAND.get(detect_brand_of_number(token.number) or "", _DEFAULT_ECI)
        found["threeDSecure.eci"] = token.eci or said_nothing
    return {name: value for name, value in found.items() if value}


def _secrets(token: DecryptedToken) -> dict[str, Secret]:
    found = {"card.number": token.number}
    return found | ({CRYPTOGRAM_PARAMETER: token.cryptogram} if token.cryptogram is not None else {})

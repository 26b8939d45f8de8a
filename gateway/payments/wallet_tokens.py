"""Wallet tokens in a payment request: decrypts the token and adds its card data to the parameters.

Encrypted and decrypted wallet data end in the same parameters: card.*, and the proof as threeDSecure.eci and
verificationId (ruling D32). Decrypted data is not echoed; the response shows of it what it shows of a stored card.
Source: Part A, Mobile wallets; rulings D10, D29, D32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from gateway.catalogue.conditions import CARD_CHECKS
from gateway.catalogue.endpoints import PAYMENT_ENDPOINT
from gateway.catalogue.parse import INVALID_PARAMETER_CODE, ParameterError, Parameters
from gateway.connectors.acquirer_message import CRYPTOGRAM_PARAMETER
from gateway.core.card_number import detect_brand_of_number
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import Channel
from gateway.payments.refusal import RequestRefusedError, build_parameter_refusal
from gateway.wallets.channel_tokens import WalletTokenUse, open_wallet_token
from gateway.wallets.keys import WALLET_NAMES
from gateway.wallets.token import DecryptedToken, WalletTokenRefusedError

_DEFAULT_ECI_BY_BRAND: Final[Mapping[str, str]] = {"MASTER": "02", "MASTERDEBIT": "02", "MAESTRO": "02"}
_DEFAULT_ECI: Final = "07"
"""ECI for networks whose wallet tokens have none: the proof is sent on without a claim of full authentication."""

_AUTHENTICATION_RULES: Final = tuple(rule for rule in PAYMENT_ENDPOINT.rules if "threeds" in rule.facts)
"""The catalogue rules of channels with 3-D Secure; for a token they can be checked only once it is decrypted."""


def unwrap_wallet_token(
    parameters: Parameters, channel: Channel, build_facts: Callable[[], frozenset[str]]
) -> WalletTokenUse | None:
    """Decrypt the sent wallet token and add its card data to ``parameters``; None when none was sent. ``build_facts``:
    gateway.payments.request_builder.build_condition_facts, called only for a token.

    Raises RequestRefusedError for ``wallet[1-3].paymentToken``, or for the parameters an authentication needs when the
    token has a card without proof. An expired card or a wrong check digit is added to ``parameters.refusals``, as for a
    card that was sent.
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
    parameters.values |= _build_card_values(opened.token, parameters)
    parameters.secrets |= _build_card_secrets(opened.token)
    sent = parameters.sent(build_facts())
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
    """The refusal of a wallet token: its parameter and the reason, never its content."""
    return build_parameter_refusal(fault.code, f"{wallet}.paymentToken", str(fault), known=True)


def _build_card_values(token: DecryptedToken, sent: Parameters) -> dict[str, str]:
    """The card parameters that a merchant who decrypts tokens would have sent; a sent holder takes precedence."""
    found = {
        "card.expiryMonth": token.expiry_month,
        "card.expiryYear": token.expiry_year,
        "card.holder": sent.get("card.holder") or token.holder,
        "card.numberType": token.kind,
    }
    if token.cryptogram is not None:
        default_eci = _DEFAULT_ECI_BY_BRAND.get(detect_brand_of_number(token.number) or "", _DEFAULT_ECI)
        found["threeDSecure.eci"] = token.eci or default_eci
    return {name: value for name, value in found.items() if value}


def _build_card_secrets(token: DecryptedToken) -> dict[str, Secret]:
    found = {"card.number": token.number}
    return found | ({CRYPTOGRAM_PARAMETER: token.cryptogram} if token.cryptogram is not None else {})

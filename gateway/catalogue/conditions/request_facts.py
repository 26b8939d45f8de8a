"""Questions that several conditions ask of a request: who initiates it, is it authenticated already, will it be.

Source: Part B, Card on file, 3D Secure; rulings D32, D34.
"""

from __future__ import annotations

from gateway.catalogue.rules import RuleInput
from gateway.core import brands

_WALLETS = tuple(f"wallet{n}.{name}" for n in (1, 2, 3) for name in ("source", "paymentToken"))

AUTHENTICATING_FACTS = frozenset({"threeds"})
"""The fact that the channel authenticates cards."""


MAIL_OR_TELEPHONE = frozenset({"MO", "TO"})
"""Values of transactionCategory for a mail or telephone order. The specification shows none: docs/decisions/0067."""

MERCHANT_INITIATED_PRACTICES = frozenset({"RESUBMISSION", "DELAYED_CHARGES", "NO_SHOW"})
"""Industry practices that only a merchant initiates, in a payment of their own. Increments and renewals are made on an
earlier authorization: gateway.connectors.point_of_service."""

STORED_CARD_FACT = "registration: card"
"""The fact that a stored card is used; ``registration`` is set for any stored means, ``registration: VISA`` for its
brand."""


def is_merchant_initiated(sent: RuleInput) -> bool:
    """True by ``source``; if that is not sent, for a repeated payment and for some industry practices."""
    source = sent.get("standingInstruction.source")
    if source is not None:
        return source == "MIT"
    practice = sent.get("standingInstruction.industryPractice")
    return sent.get("standingInstruction.mode") == "REPEATED" or practice in MERCHANT_INITIATED_PRACTICES


def has_authentication_proof(sent: RuleInput) -> bool:
    """True if the request has proof of an authentication, from an external server, a wallet or a device."""
    return "threeDSecure.verificationId" in sent and "threeDSecure.eci" in sent


def will_authenticate(sent: RuleInput) -> bool:
    """True if the channel will authenticate this card: the shopper pays, without proof, and nothing disables it. Mail
    and telephone orders are out of the scope of strong authentication, and have no browser (EU 2015/2366, article 97:
    payments that the payer initiates electronically; https://docs.stripe.com/payments/payment-intents/moto)."""
    return (
        "threeds" in sent.facts
        and ("card.number" in sent or STORED_CARD_FACT in sent.facts)
        and sent.get("threeDSecure.disable") != "true"
        and not has_authentication_proof(sent)
        and not is_merchant_initiated(sent)
        and (sent.get("transactionCategory") not in MAIL_OR_TELEPHONE or "alone" in sent.facts)
    )


def find_card_brand(sent: RuleInput) -> str | None:
    """The card's brand: the one sent if it is a card brand (WALLET1 is not), else that of its number."""
    brand, number = sent.get("paymentBrand"), sent.card()
    if brand is not None and brands.is_card_brand(brand):
        return brand
    return number.brand if number is not None else None


def is_wallet_payment(sent: RuleInput) -> bool:
    """True for either form of a wallet: its token, or card data decrypted from it."""
    return sent.any(*_WALLETS)

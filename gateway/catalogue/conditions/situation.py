"""What several conditions ask about a request: who initiates it, is an authentication proved, will one start.

Source: Part B, Card on file, 3D Secure; rulings D32, D34.
"""

from __future__ import annotations

from gateway import brands
from gateway.catalogue.rules import Sent

_WALLETS = tuple(f"wallet{n}.{name}" for n in (1, 2, 3) for name in ("source", "paymentToken"))

THREEDS = frozenset({"threeds"})
"""The fact that the channel authenticates cards."""


MERCHANTS_PRACTICES = frozenset({"RESUBMISSION", "DELAYED_CHARGES", "NO_SHOW"})
"""Industry practices that only a merchant initiates, in a payment of their own."""

STORED_CARD = "registration: card"
"""The fact that a stored card is paid with; ``registration`` is told of any stored means, and ``registration: VISA`` of
its brand."""


def merchant_initiated(sent: Sent) -> bool:
    """``source`` says so; where it is not sent, a repeated payment is the merchant's, and so are some practices."""
    source = sent.get("standingInstruction.source")
    if source is not None:
        return source == "MIT"
    practice = sent.get("standingInstruction.industryPractice")
    return sent.get("standingInstruction.mode") == "REPEATED" or practice in MERCHANTS_PRACTICES


def authenticated(sent: Sent) -> bool:
    """Proof of an authentication came along, from an external server, a wallet or a device."""
    return "threeDSecure.verificationId" in sent and "threeDSecure.eci" in sent


def authentication_starts(sent: Sent) -> bool:
    """The channel will authenticate this card: the shopper pays, without proof, and nothing disables it."""
    return (
        "threeds" in sent.facts
        and ("card.number" in sent or STORED_CARD in sent.facts)
        and sent.get("threeDSecure.disable") != "true"
        and not authenticated(sent)
        and not merchant_initiated(sent)
    )


def card_brand(sent: Sent) -> str | None:
    """The brand of the card: the one sent when it is a card's (WALLET1 is not), else that of its number."""
    brand, number = sent.get("paymentBrand"), sent.card()
    if brand is not None and brands.is_card(brand):
        return brand
    return number.brand if number is not None else None


def from_a_wallet(sent: Sent) -> bool:
    """Either way of a wallet: its token, or card data decrypted from it."""
    return sent.any(*_WALLETS)

"""What to show for which reason, in plain words: two tables.

The reasons are the result codes 000.100.2nn of the table; a code that the table does not hold is answered as "other".
Source: Part A, Errors, 4; Part B, Chargeback; design journey J6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gateway import results

NO_REASON: Final = "000.100.200"
_GROUP: Final = "chargeback"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """Something a merchant can show. ``key`` is what a piece of evidence is filed under."""

    key: str
    text: str


ITEMS: Final[Mapping[str, Item]] = MappingProxyType(
    {
        item.key: item
        for item in (
            Item(key="order", text="The order confirmation or invoice, with date and amount"),
            Item(key="terms", text="The terms that the shopper accepted, and how"),
            Item(key="authentication", text="Proof of 3-D Secure, or why the liability is the issuer's"),
            Item(key="checks", text="Address and security code checks, the IP address and the device"),
            Item(key="delivery", text="Proof of delivery: carrier, tracking number, signature"),
            Item(key="service", text="Proof that the service was used: log-ins, downloads, attendance"),
            Item(key="messages", text="What was written with the shopper"),
            Item(key="refund", text="Proof of the refund, or why none is due"),
            Item(key="separate", text="Proof that both charges are for different orders"),
            Item(key="mandate", text="The mandate with its date and reference, and the notice before the debit"),
            Item(key="account", text="How the account was given and checked"),
            Item(key="authorization", text="The authorization with its code and date"),
            Item(key="other", text="Anything else that tells what happened"),
        )
    }
)
_NEEDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "fraud": ("authentication", "checks", "order", "delivery", "messages"),
        "delivery": ("order", "delivery", "messages", "terms"),
        "service": ("order", "service", "messages", "terms"),
        "twice": ("order", "separate"),
        "credit": ("order", "refund", "terms", "messages"),
        "bank": ("mandate", "account", "order"),
        "dispute": ("order", "mandate", "delivery", "messages", "terms"),
        "amount": ("order", "authorization", "messages"),
        "authorization": ("authorization", "authentication", "order"),
        "other": ("order", "messages", "other"),
    }
)
_KIND: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("220", "222", "230"), "fraud"),
        **dict.fromkeys(("221", "234"), "delivery"),
        "223": "service", "224": "twice", "225": "credit", "206": "dispute", "210": "amount",
        **dict.fromkeys(("201", "202", "203", "204", "205", "207", "208", "209"), "bank"),
        **dict.fromkeys(("231", "232", "233"), "authorization"),
    }
)  # fmt: skip
"""The last three digits of a reason → what is asked for; any other reason: "other"."""


def is_reason(code: str) -> bool:
    """Whether a chargeback can have this code: 000.100.2 and any two digits (Part A, Errors, 4)."""
    return results.ANY_CHARGEBACK.fullmatch(code) is not None


def is_explained(code: str) -> bool:
    """Whether the table of result codes has words for it as a reason; 000.100.211 and .212 tell of amounts there."""
    known = results.RESULT_CODES.get(code)
    return known is not None and known.group == _GROUP


def words(code: str) -> str:
    """The reason in plain words."""
    text = results.result(code if is_explained(code) else NO_REASON).description
    return text.removeprefix("Chargeback: ")


def wanted(code: str) -> tuple[Item, ...]:
    """What to show for a reason, the most telling first."""
    return tuple(ITEMS[key] for key in _NEEDS[_KIND.get(code[-3:], "other")])


def missing(code: str, shown: frozenset[str]) -> tuple[Item, ...]:
    """What of it is not among ``shown``, the items that there is evidence for."""
    return tuple(item for item in wanted(code) if item.key not in shown)

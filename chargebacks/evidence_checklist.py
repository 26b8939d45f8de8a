"""Which evidence to show for which chargeback reason: two tables with explanations for the merchant.

The reasons are the result codes 000.100.2nn; a code that is not in the table is treated as "other". Source: Part A,
Errors, 4; Part B, Chargeback.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from gateway.core import result_codes

OTHER_CHARGEBACK_REASON: Final = "000.100.200"
RECORDED_ITEM: Final = "recorded"
"""Item of the file that the gateway makes of its own records."""
_GROUP: Final = "chargeback"
_REFUND: Final = "refund"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChecklistItem:
    """A kind of evidence. ``key``: the name under which a file of evidence is stored."""

    key: str
    text: str


CHECKLIST_ITEMS: Final[Mapping[str, ChecklistItem]] = MappingProxyType(
    {
        item.key: item
        for item in (
            ChecklistItem(key="order", text="The order confirmation or invoice, with date and amount"),
            ChecklistItem(key="terms", text="The terms that the shopper accepted, and how"),
            ChecklistItem(key="authentication", text="Proof of 3-D Secure, or why the liability is the issuer's"),
            ChecklistItem(key="checks", text="Address and security code checks, the IP address and the device"),
            ChecklistItem(key="delivery", text="Proof of delivery: carrier, tracking number, signature"),
            ChecklistItem(key="service", text="Proof that the service was used: log-ins, downloads, attendance"),
            ChecklistItem(key="messages", text="What was written with the shopper"),
            ChecklistItem(key="refund", text="Proof of the refund, or why none is due"),
            ChecklistItem(key="separate", text="Proof that both charges are for different orders"),
            ChecklistItem(
                key="mandate", text="The mandate with its date and reference, and the notice before the debit"
            ),
            ChecklistItem(key="account", text="How the account was given and checked"),
            ChecklistItem(key="authorization", text="The authorization with its code and date"),
            ChecklistItem(key="other", text="Anything else that tells what happened"),
            ChecklistItem(key=RECORDED_ITEM, text="What the gateway recorded about the payment"),
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
"""The last three digits of a reason → kind of checklist; any other reason: "other"."""


def find_reason_kind(code: str) -> str:
    """The kind of checklist of a reason code, such as fraud or delivery."""
    return _KIND.get(code[-3:], "other")


def is_chargeback_reason(code: str) -> bool:
    """True for a reason code that a chargeback can have: 000.100.2 and two digits (Part A, Errors, 4)."""
    return result_codes.CHARGEBACK_CODE.fullmatch(code) is not None


def is_explained_reason(code: str) -> bool:
    """True if the table of result codes explains the code as a reason; 000.100.211 and .212 concern amounts."""
    known = result_codes.RESULT_CODES.get(code)
    return known is not None and known.group == _GROUP


def describe_reason(code: str) -> str:
    """The reason in plain words."""
    text = result_codes.find_result_code(code if is_explained_reason(code) else OTHER_CHARGEBACK_REASON).description
    return text.removeprefix("Chargeback: ")


_OF_MEANS: Final[Mapping[str, frozenset[str]]] = MappingProxyType(
    {"card": frozenset({"mandate", "account"}), "bankAccount": frozenset({"authentication", "authorization"})}
)
"""Means of payment → evidence that such a payment does not have."""


def list_wanted_items(code: str, *, refunded: bool = False, means: str = "") -> tuple[ChecklistItem, ...]:
    """Evidence for a reason, the most convincing first. ``refunded``: the proof of the refund comes before all else,
    since "credit already issued" answers any reason. ``means``: card or bankAccount; what such a payment cannot have is
    left out."""
    keys = tuple(key for key in _NEEDS[find_reason_kind(code)] if key not in _OF_MEANS.get(means, ()))
    if refunded:
        keys = (_REFUND, *(key for key in keys if key != _REFUND))
    return tuple(CHECKLIST_ITEMS[key] for key in keys)

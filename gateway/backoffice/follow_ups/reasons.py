"""Why a clerk moves money by hand, and what became of a payout: short lists, kept with the note in the audit log and
with an approval."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from gateway.payments.operation_table import OPERATIONS

FOLLOW_UP_REASONS: Final[Mapping[str, str | Promise]] = MappingProxyType(
    {
        "requested": _("the shopper asked for it"),
        "duplicate": _("paid or ordered twice"),
        "fraud": _("fraud or suspected fraud"),
        "other": _("something else"),
    }
)
"""Code → its words. Codes are at most nine characters (Approval.reason)."""
PAYOUT_TYPE: Final = "CD"
"""``Approval.payment_type`` of the outcome of what was in doubt, which no follow-up made by hand has."""
PAID_OUT, NOT_PAID_OUT = "paid", "not paid"
PAYOUT_OUTCOMES: Final[Mapping[str, str | Promise]] = MappingProxyType(
    {PAID_OUT: _("it was carried out"), NOT_PAID_OUT: _("it was never made, and never will be")}
)
"""What an acquirer can say of what was in doubt; kept in the place of a reason."""
_OUTCOME_TITLES: Final[Mapping[str, str | Promise]] = {
    "CP": _("Outcome of a capture"),
    "RF": _("Outcome of a refund"),
    "RV": _("Outcome of a reversal"),
}
REASONED_TYPES: Final = frozenset({"RF", "RV"})
"""Follow-ups whose form asks for a reason: they give money back."""


def parse_reason(text: str) -> str:
    """A reason's code; '' for none and for what is no reason of a follow-up."""
    return text if text in FOLLOW_UP_REASONS else ""


def name_reason(code: str) -> str:
    """A reason, or the outcome of a payout, in words; '' for none."""
    return str(FOLLOW_UP_REASONS.get(code) or PAYOUT_OUTCOMES.get(code, ""))


def name_request(payment_type: str, target_type: str = "") -> str:
    """What a request for approval is for, in the reader's language. ``target_type``: the type of the payment that it is
    about, where that is known."""
    if payment_type == PAYOUT_TYPE:
        if target_type:
            return str(_OUTCOME_TITLES.get(target_type) or gettext("Outcome of a payout or credit"))
        return gettext("Outcome of a transaction in doubt")
    return gettext(OPERATIONS[payment_type].title)

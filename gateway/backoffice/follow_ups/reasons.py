"""Why a clerk moves money by hand, and what became of a payment in doubt: short lists, kept with the note in the audit
log and with an approval."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop as noop

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
"""``Approval.payment_type`` of the outcome of a payment in doubt, which no follow-up made by hand has."""
PAID_OUT, NOT_PAID_OUT = "paid", "not paid"
_PAYOUT_OUTCOMES: Final[Mapping[str, str | Promise]] = MappingProxyType(
    {PAID_OUT: _("it reached the card"), NOT_PAID_OUT: _("it was never made, and never will be")}
)
_STEP_OUTCOMES: Final[Mapping[str, str | Promise]] = MappingProxyType(
    {PAID_OUT: _("it was carried out"), NOT_PAID_OUT: _("it was not carried out, and never will be")}
)
REASONED_TYPES: Final = frozenset({"RF", "RV"})
"""Follow-ups whose form asks for a reason: they give money back."""


def parse_reason(text: str) -> str:
    """A reason's code; '' for none and for what is no reason of a follow-up."""
    return text if text in FOLLOW_UP_REASONS else ""


def list_doubt_outcomes(target_type: str = "") -> Mapping[str, str | Promise]:
    """What an acquirer can say of a payment in doubt of that type: code → words. It is kept in the place of a
    reason."""
    return _PAYOUT_OUTCOMES if target_type in ("CD", "RF") else _STEP_OUTCOMES


def name_reason(code: str, target_type: str = "") -> str:
    """A reason, or the outcome of a payment of ``target_type``, where that is known, in words; '' for none."""
    return str(FOLLOW_UP_REASONS.get(code) or list_doubt_outcomes(target_type).get(code, ""))


def name_request(payment_type: str, target_type: str = "") -> str:
    """What a request for approval is for, in the reader's language. ``target_type``: the type of the payment that it is
    about, where that is known."""
    if payment_type == PAYOUT_TYPE:
        return gettext(_OUTCOME_REQUESTS.get(target_type, _ANY_OUTCOME))
    return gettext(OPERATIONS[payment_type].title)


_ANY_OUTCOME: Final = noop("Outcome of a payment in doubt")
_OUTCOME_REQUESTS: Final[Mapping[str, str]] = {
    "CD": noop("Outcome of a payout or credit"),
    "CP": noop("Outcome of a capture"),
    "RF": noop("Outcome of a refund"),
    "RV": noop("Outcome of a reversal"),
}
"""The title of the request, by the type of the payment in doubt (PERSON_TYPES)."""

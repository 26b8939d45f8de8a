"""Why a clerk moves money by hand: a short list, kept with the note in the audit log and with an approval."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

FOLLOW_UP_REASONS: Final[Mapping[str, str | Promise]] = MappingProxyType(
    {
        "requested": _("the shopper asked for it"),
        "duplicate": _("paid or ordered twice"),
        "fraud": _("fraud or suspected fraud"),
        "other": _("something else"),
    }
)
"""Code → its words. Codes are at most nine characters (Approval.reason)."""
REASONED_TYPES: Final = frozenset({"RF", "RV"})
"""Follow-ups whose form asks for a reason: they give money back."""


def parse_reason(text: str) -> str:
    """A reason's code; '' for none and for what is no reason."""
    return text if text in FOLLOW_UP_REASONS else ""


def name_reason(code: str) -> str:
    """A reason in words; '' for none."""
    return str(FOLLOW_UP_REASONS.get(code, ""))

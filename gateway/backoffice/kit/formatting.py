"""How values look on pages: states as coloured pills with a text, JSON as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from gateway.core.masking import mask_text
from gateway.models import Approval, BackgroundWork, Status

PillText = str | Promise
_PILLS: Final[Mapping[str, tuple[str, PillText]]] = MappingProxyType(
    {
        Status.APPROVED: ("good", _("Approved")), Status.DECLINED: ("bad", _("Declined")),
        Status.PENDING: ("wait", _("Waiting")), Status.IN_DOUBT: ("wait", _("In doubt")),
        Status.STARTED: ("wait", _("Started")),
        Approval.State.ASKED: ("wait", _("Waits for a decision")), Approval.State.DONE: ("good", _("Carried out")),
        Approval.State.FAILED: ("bad", _("Refused by the gateway")), Approval.State.REJECTED: ("bad", _("Rejected")),
        Approval.State.WITHDRAWN: ("plain", _("Withdrawn")),
        BackgroundWork.State.WAITING: ("wait", _("Waits")), BackgroundWork.State.RUNNING: ("wait", _("Running")),
        BackgroundWork.State.CANCELLED: ("plain", _("Cancelled")),
        "ACTIVE": ("good", _("Active")), "DELETED": ("plain", _("Deleted")),
        "inactive": ("wait", _("Not activated")), "active": ("good", _("Active")),
        "paused": ("bad", _("Paused: it fails")), "held": ("wait", _("Paused")), "off": ("plain", _("Off")),
        "waiting": ("wait", _("Waiting")), "delivered": ("good", _("Delivered")),
        "given_up": ("bad", _("Given up")), "cancelled": ("plain", _("Cancelled")),
        "ENDING": ("wait", _("Notice given")), "SUSPENDED": ("bad", _("Suspended")), "ENDED": ("plain", _("Ended")),
        "PAUSED": ("wait", _("Paused")),
        "OPEN": ("wait", _("Being charged")), "PAID": ("good", _("Paid")), "RETRYING": ("wait", _("To be retried")),
        "SKIPPED": ("plain", _("Skipped")), "MISSED": ("bad", _("Missed")),
    }
)  # fmt: skip
_TONES: Final = frozenset({"good", "bad", "wait", "plain"})


def build_state_pill(state: str) -> dict[str, Any]:
    """A state's colour (good, bad, wait, plain) and text. An approved payment and an approved request look alike."""
    tone, text = _PILLS.get(state, ("plain", state.replace("_", " ").capitalize()))
    return {"tone": tone, "text": text}


def normalize_tone(tone: str) -> str:
    """``tone`` if the style sheet knows it, else "plain"."""
    return tone if tone in _TONES else "plain"


def format_masked_json(value: Any) -> str:
    """Indented JSON; what looks like a secret or a card number is masked, whatever was masked before."""
    return mask_text(json.dumps(value, indent=2, ensure_ascii=False, default=str))

"""How values look on pages: money and times in the reader's language and zone, states as coloured pills, JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from django.utils import formats, timezone
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from gateway.core.masking import mask_text
from gateway.models import Approval, BackgroundWork, Registration, Status

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


MAX_AMOUNT_DECIMALS: Final = 4
"""Decimals of a fee, which is parts of a cent."""
TIME_FORMATS: Final[Mapping[str, str]] = MappingProxyType(
    {"seconds": "%Y-%m-%d %H:%M:%S", "minutes": "%Y-%m-%d %H:%M", "short": "%m-%d %H:%M:%S"}
)


def format_number(value: Decimal | int, decimals: int = 0) -> str:
    """A number in the reader's language, in groups of three: 1,234.50 or 1.234,50."""
    return formats.number_format(value, decimal_pos=decimals, use_l10n=True, force_grouping=True)


def format_money(amount: Decimal | int | None, currency: str = "") -> str:
    """An amount with its currency, for a reader. Forms, files and the API have format_amount."""
    if amount is None:
        return "–"
    places = 2 if Decimal(amount) == round(Decimal(amount), 2) else MAX_AMOUNT_DECIMALS
    return f"{format_number(amount, places)} {currency}".rstrip()


def format_typed_amount(amount: Decimal) -> str:
    """An amount as the reader would type it into a field: with their decimal sign, without groups."""
    return formats.number_format(amount, decimal_pos=2, use_l10n=True)


def read_typed_amount(text: str) -> str:
    """An amount as a person types it, as the API writes it: 1,234.50 in English and 1.234,50 in German is 1234.50, and
    either decimal sign is taken. Groups are read by the reader's own sign alone: 1.000 is a thousand in German, and in
    English an amount with three decimals, which is refused."""
    plain = re.sub(r"\s", "", text)
    group = formats.get_format("THOUSAND_SEPARATOR")
    other = "," if group == "." else "."
    grouped = re.fullmatch(rf"[0-9]{{1,3}}(?:{re.escape(group)}[0-9]{{3}})+(?:{re.escape(other)}[0-9]{{2}})?", plain)
    return (plain.replace(group, "") if grouped else plain).replace(",", ".")


def format_labelled(label: str | Promise, value: str | Promise) -> str:
    """A value behind its label: "Reason: fraud"; French has a space before the colon."""
    return f"{label}{_(':')} {value}"


def format_moment(at: datetime, form: str = "seconds") -> str:
    """A time in the reader's zone, with the zone's name."""
    return f"{format_local(at, form)} {name_zone(at)}"


def format_local(at: datetime, form: str = "seconds") -> str:
    """A time in the reader's zone without the zone's name: for columns that have it in their head."""
    return f"{timezone.localtime(at):{TIME_FORMATS[form]}}"


def name_zone(at: datetime | None = None) -> str:
    """The short name of the reader's zone: UTC, CET, +03."""
    return timezone.localtime(at or timezone.now()).tzname() or "UTC"


def render_moment(at: datetime | None, form: str = "seconds", *, named: bool = True) -> SafeString:
    """A ``<time>`` element in the reader's zone that tells the same in UTC where it is pointed at; a dash for None."""
    if at is None:
        return SafeString("–")
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        at.astimezone(UTC).isoformat(timespec="seconds"),
        f"{at.astimezone(UTC):{TIME_FORMATS['seconds']}}",
        format_moment(at, form) if named else format_local(at, form),
    )


def build_state_pill(state: str) -> dict[str, Any]:
    """A state's colour (good, bad, wait, plain) and text. An approved payment and an approved request look alike."""
    tone, text = _PILLS.get(state, ("plain", state.replace("_", " ").capitalize()))
    return {"tone": tone, "text": text}


def mask_registered_account(row: Registration) -> str:
    """The displayable part of a stored account."""
    card = row.details.get("card", {})
    if last := card.get("last4Digits"):
        return f"{card.get('bin', '')} •••• {last}"
    return row.means


def normalize_tone(tone: str) -> str:
    """``tone`` if the style sheet knows it, else "plain"."""
    return tone if tone in _TONES else "plain"


def mask_texts(value: Any) -> Any:
    """JSON with every text in it masked; a text never becomes something else."""
    if isinstance(value, dict):
        return {name: mask_texts(each) for name, each in value.items()}
    if isinstance(value, list):
        return [mask_texts(each) for each in value]
    return mask_text(value) if isinstance(value, str) else value


def format_masked_json(value: Any) -> str:
    """Indented JSON; what looks like a secret or a card number is masked, whatever was masked before."""
    return mask_text(json.dumps(value, indent=2, ensure_ascii=False, default=str))

"""What a dispute's pages show of a case, in words."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from chargebacks import cases
from chargebacks.checklist import words
from chargebacks.models import Chargeback
from chargebacks.states import Event, State
from gateway import clock

PRESSING_DAYS: Final = 3
"""A dispute with no more days left is red, on its page and in the navigation."""
SOON_DAYS: Final = 7
PILLS: Final[Mapping[str, tuple[str, str | Promise]]] = MappingProxyType(
    {
        State.OPEN: ("wait", lazy("To answer")), State.SUBMITTED: ("wait", lazy("Submitted, the bank decides")),
        State.WON: ("good", lazy("Won")), State.LOST: ("bad", lazy("Lost")),
        State.ACCEPTED: ("plain", lazy("Accepted")),
    }
)  # fmt: skip


HAPPENED: Final[Mapping[str, str | Promise]] = MappingProxyType(
    {
        Event.OPEN: lazy("The chargeback came"), Event.SECOND: lazy("A second chargeback came"),
        Event.SUBMIT: lazy("The evidence was submitted"), Event.ACCEPT: lazy("It was accepted"),
        Event.EXPIRE: lazy("The deadline passed"), Event.LOSE: lazy("It was decided for the shopper"),
        Event.REVERSE: lazy("Money came back"),
    }
)  # fmt: skip


def listed(case: Chargeback) -> dict[str, Any]:
    tone, text = PILLS[case.state]
    zone = ZoneInfo(case.merchant.time_zone)
    return {
        "row": case, "pill": {"tone": tone, "text": str(text)}, "words": _(words(case.reason_code)),
        "left": _left(case), "due": f"{case.due_at.astimezone(zone):%Y-%m-%d %H:%M} ({case.merchant.time_zone})",
        "address": reverse("admin:chargebacks_chargeback_change", args=[case.pk]),
        "payment": reverse("admin:gateway_payment_change", args=[case.disputed]),
    }  # fmt: skip


def happened(case: Chargeback) -> list[dict[str, Any]]:
    return [
        {"at": event.at, "words": HAPPENED[event.event], "state": event.get_state_display(), "by": event.by,
         "note": event.note} for event in case.events.order_by("sequence")
    ]  # fmt: skip


def reminders(case: Chargeback) -> list[tuple[int, str]]:
    """Days before the deadline, and what became of that mail. A case that is not open any more owes none."""
    told = []
    for row in case.reminders.order_by("-days"):
        if row.sent_at is not None and not row.sent_to:
            told.append((row.days, _("nobody to be reminded")))
        elif row.sent_at is not None:
            told.append((row.days, f"{row.sent_at:%Y-%m-%d %H:%M} UTC, {row.sent_to}"))
        elif case.state == State.OPEN:
            told.append((row.days, _("will be sent %s UTC") % f"{row.due_at:%Y-%m-%d %H:%M}"))
    return told


def _left(case: Chargeback) -> dict[str, str] | None:
    """How long is left to answer, and how much that presses; None for a case that is not open."""
    if case.state != State.OPEN:
        return None
    now = clock.now(case.merchant)
    if case.due_at <= now:
        return {"tone": "bad", "text": _("too late")}
    days = cases.days_left(case, now)
    tone = "bad" if days <= PRESSING_DAYS else "wait" if days <= SOON_DAYS else "plain"
    return {"tone": tone, "text": cases.left_words(days)}

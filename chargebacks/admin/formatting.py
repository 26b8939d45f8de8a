"""Formats a case for its pages: rows, events, reminders and the time left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from chargebacks import deadlines
from chargebacks.dispute_strength import (
    FAIR_FROM,
    KIND_TEXTS,
    PROOFS,
    STRENGTH_TABLE,
    STRONG_FROM,
    WEIGHT_TEXTS,
    DisputeStrength,
)
from chargebacks.evidence_checklist import (
    ChecklistItem,
    describe_reason,
    find_reason_kind,
    is_chargeback_reason,
    is_explained_reason,
)
from chargebacks.gathered_evidence import RecordedProof
from chargebacks.models import Chargeback, Evidence
from chargebacks.notes import translate_note
from chargebacks.stages import (
    SCHEME_BY_BRAND,
    SEPA_SCHEME,
    DisputeStage,
    choose_next_stage,
    describe_scheme_reason,
    find_stage_rule,
)
from chargebacks.states import DisputeEvent, DisputeState
from gateway.backoffice.access.audit_sentences import name_actor
from gateway.backoffice.kit.formatting import format_moment
from gateway.core import clock
from gateway.core.result_codes import RESULT_CODES

URGENT_DAYS_LEFT: Final = 3
"""A dispute with no more days left is red, on its page and in the navigation."""
DUE_SOON_DAYS_LEFT: Final = 7
DISPUTE_STATE_PILLS: Final[Mapping[str, tuple[str, str | Promise]]] = MappingProxyType(
    {
        DisputeState.OPEN: ("wait", lazy("To answer")),
        DisputeState.SUBMITTED: ("wait", lazy("Submitted, the bank decides")),
        DisputeState.WON: ("good", lazy("Won")),
        DisputeState.LOST: ("bad", lazy("Lost")),
        DisputeState.ACCEPTED: ("plain", lazy("Accepted")),
        DisputeState.RETURNED: ("plain", lazy("Returned, final")),
    }
)


EVENT_TEXTS: Final[Mapping[str, str | Promise]] = MappingProxyType(
    {
        DisputeEvent.OPEN: lazy("The chargeback came"), DisputeEvent.SECOND: lazy("A second chargeback came"),
        DisputeEvent.SUBMIT: lazy("The evidence was submitted"), DisputeEvent.ACCEPT: lazy("It was accepted"),
        DisputeEvent.EXPIRE: lazy("The deadline passed"), DisputeEvent.LOSE: lazy("It was decided for the shopper"),
        DisputeEvent.REVERSE: lazy("Money came back"),
        DisputeEvent.DECIDED: lazy("The money of a lost stage was taken"),
        DisputeEvent.ESCALATE: lazy("The next stage was opened"),
        DisputeEvent.WIN: lazy("It was decided for the merchant"),
        DisputeEvent.RETURN: lazy("The debtor's bank sent the money back"),
    }
)  # fmt: skip


def format_deadline(due_at: datetime, time_zone: str) -> str:
    """A deadline in its merchant's time zone, and where the reader's clock shows another time, in the reader's."""
    due = due_at.astimezone(ZoneInfo(time_zone))
    words = f"{due:%Y-%m-%d %H:%M} ({time_zone})"
    same = timezone.localtime(due_at).utcoffset() == due.utcoffset()
    return words if same else f"{words} = {format_moment(due_at, 'minutes')}"


def render_case_row(case: Chargeback) -> dict[str, Any]:
    """A case as a row of a list."""
    tone, text = DISPUTE_STATE_PILLS[case.state]
    return {
        "row": case,
        "pill": {"tone": tone, "text": str(text)},
        "words": _(describe_reason(case.reason_code)),
        "note": translate_note(case.note),
        "stage": _(DisputeStage(case.stage).label) if case.stage != DisputeStage.FIRST else "",
        "left": _render_time_left(case),
        "due": format_deadline(case.due_at, case.merchant.time_zone) if case.due_at > case.opened_at else "",
        "address": reverse("admin:chargebacks_chargeback_change", args=[case.pk]),
        "payment": reverse("admin:gateway_payment_change", args=[case.disputed]),
    }


def render_case_events(case: Chargeback) -> list[dict[str, Any]]:
    """The history of a case, as rows."""
    return [
        {
            "at": event.at,
            "words": EVENT_TEXTS[event.event],
            "state": event.get_state_display(),
            "by": name_actor(event.by),
            "note": translate_note(event.note),
        }
        for event in case.events.order_by("sequence")
    ]


def render_reminders(case: Chargeback) -> list[tuple[int, str]]:
    """Days before the deadline, and the state of each reminder mail. No mail is due once the case is not open."""
    reminders = []
    for row in case.reminders.order_by("-days"):
        if row.sent_at is not None and not row.sent_to:
            reminders.append((row.days, _("nobody to be reminded")))
        elif row.sent_at is not None:
            reminders.append((row.days, f"{format_moment(row.sent_at, 'minutes')}, {row.sent_to}"))
        elif case.state == DisputeState.OPEN:
            reminders.append((row.days, _("due %s") % format_moment(row.due_at, "minutes")))
    return reminders


def _render_time_left(case: Chargeback) -> dict[str, str] | None:
    """Time left to answer and its urgency; None for a case that is not open."""
    if case.state != DisputeState.OPEN:
        return None
    now = clock.merchant_now(case.merchant)
    if case.due_at <= now:
        return {"tone": "bad", "text": _("too late")}
    days = deadlines.count_days_left(case, now)
    tone = "bad" if days <= URGENT_DAYS_LEFT else "wait" if days <= DUE_SOON_DAYS_LEFT else "plain"
    return {"tone": tone, "text": deadlines.describe_days_left(days)}


def render_scheme_rows(case: Chargeback) -> list[tuple[str, str]]:
    """Stage, days, fee and the scheme's names of a case, as names and values."""
    if case.state == DisputeState.RETURNED:
        return []
    rule = find_stage_rule(case.brand, case.scheme_reason, case.stage)
    fee = f"{rule.fee} {rule.fee_currency}" if rule.fee else ""
    rows = (
        (_("Stage"), f"{_(DisputeStage(case.stage).label)} ({rule.name})"),
        (_("Your answer is filed as"), rule.answer),
        (_("Scheme's reason"), describe_scheme_reason(case.scheme_reason)),
        (_("Scheme's case id"), case.scheme_case),
        ("ARN", case.arn),
        (_("Scheme's fee for the side that loses"), fee),
    )
    return [(name, value) for name, value in rows if value]


def list_later_stages(case: Chargeback) -> list[tuple[str, str]]:
    """The stages that the issuer can still open; none of a direct debit."""
    if SCHEME_BY_BRAND.get(case.brand) == SEPA_SCHEME or case.state == DisputeState.RETURNED:
        return []
    first = choose_next_stage(case.brand, case.scheme_reason, case.stage)
    order = list(DisputeStage)
    now = order.index(DisputeStage(case.stage))
    return [(stage.value, _(stage.label)) for stage in order[order.index(first) :] if order.index(stage) > now]


STRENGTH_LEVELS: Final[Mapping[str, tuple[str, str | Promise]]] = MappingProxyType(
    {
        "strong": ("good", lazy("strong")),
        "fair": ("wait", lazy("could be stronger")),
        "weak": ("bad", lazy("weak")),
    }
)


def render_checklist(
    items: Iterable[ChecklistItem], files: Sequence[Evidence], findings: Sequence[RecordedProof]
) -> list[dict[str, Any]]:
    """Each item with its files and what the gateway recorded of it."""
    return [
        {
            "item": item,
            "files": [file for file in files if file.item == item.key],
            "recorded": [
                (_(PROOFS[one.proof][1]), one.value)
                for one in findings
                if one.supports and PROOFS[one.proof][0] == item.key
            ],
        }
        for item in items
    ]


def render_strength(strength: DisputeStrength, *, open_: bool) -> dict[str, Any]:
    """The meter of a case: its level in words, what counts, and what would add to it while it is open."""
    tone, words = STRENGTH_LEVELS[strength.level]
    return {
        "points": strength.points,
        "most": STRONG_FROM,
        "fair": FAIR_FROM,
        "tone": tone,
        "words": str(words),
        "there": [(_(row.text), _(WEIGHT_TEXTS[row.weight]), value) for row, value in strength.there],
        "absent": [(_(row.text), _(WEIGHT_TEXTS[row.weight])) for row in strength.absent] if open_ else [],
        "against": [(_(PROOFS[one.proof][1]), one.value) for one in strength.against],
    }


def render_strength_table() -> list[dict[str, Any]]:
    """The table of what counts, by kind of reason, with the reasons' codes."""
    codes: dict[str, list[str]] = {}
    for code in RESULT_CODES:
        if is_chargeback_reason(code) and is_explained_reason(code):
            codes.setdefault(find_reason_kind(code), []).append(code[-3:])
    return [
        {
            "title": _(KIND_TEXTS[kind]),
            "codes": ", ".join(sorted(codes.get(kind, ()))),
            "rows": [
                {
                    "text": _(row.text),
                    "by": _("a file of yours") if row.is_file else _("the gateway's records"),
                    "weight": _(WEIGHT_TEXTS[row.weight]),
                    "points": int(row.weight),
                    "source": row.source,
                    "host": urlsplit(row.source).hostname,
                }
                for row in rows
            ],
        }
        for kind, rows in STRENGTH_TABLE.items()
    ]

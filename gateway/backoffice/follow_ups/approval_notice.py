"""Notices of decided approvals to the clerk who asked: on the dashboard, and by mail if a mail server is set up."""

from __future__ import annotations

from datetime import timedelta
from smtplib import SMTPException
from typing import Any, Final

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.backoffice.kit.formatting import build_state_pill, format_money
from gateway.core import clock
from gateway.models import Approval
from gateway.payments.operations import OPERATIONS

DECISION_NOTICE_RETENTION: Final = timedelta(days=3)
"""How long the dashboard shows a decision."""
MAX_SHOWN_DECISIONS: Final = 5
UNDELIVERED_MAIL_BACKENDS: Final = ("console", "dummy", "filebased")
"""Django's mail backends that deliver to no recipient."""
log = structlog.get_logger(__name__)


def list_recent_decisions(user: Any) -> list[dict[str, Any]]:
    """Decisions about the user's own requests, newest first."""
    rows = Approval.objects.filter(asked_by=user.pk, decided_at__gte=clock.real_now() - DECISION_NOTICE_RETENTION)
    rows = rows.exclude(state=Approval.State.WITHDRAWN).order_by("-decided_at")[:MAX_SHOWN_DECISIONS]
    return [
        {
            "address": reverse("admin:gateway_approval_change", args=[row.pk]),
            "pill": build_state_pill(row.state),
            "row": row,
            "what": describe_approval(row),
        }
        for row in rows
    ]


def describe_approval(row: Approval) -> str:
    """The request in one line: operation, amount and currency."""
    return f"{_(OPERATIONS[row.payment_type].title)} {format_money(row.amount, row.currency)}"


def mail_decision(row: Approval) -> bool:
    """Mail the decision to the clerk who asked; True if a mail was sent. A mail server that fails undoes nothing: the
    dashboard shows the decision too."""
    to = row.asked_by.email
    if not to or any(name in settings.EMAIL_BACKEND for name in UNDELIVERED_MAIL_BACKENDS):
        return False
    state = build_state_pill(row.state)["text"]
    address = settings.GATEWAY_BASE_URL + reverse("admin:gateway_approval_change", args=[row.pk])
    note = f"\n\n{row.decided_by_name}: {row.decision_note}" if row.decision_note else ""
    body = _("Your request: %(what)s\nDecision: %(state)s, by %(who)s") % {
        "what": describe_approval(row),
        "state": state,
        "who": row.decided_by_name,
    }
    try:
        EmailMessage(
            f"{describe_approval(row)}: {state}", f"{body}{note}\n\n{address}\n", settings.GATEWAY_MAIL_FROM, [to]
        ).send()
    except (OSError, SMTPException):
        log.warning("approval_mail_failed", approval=row.pk.hex)
        return False
    return True

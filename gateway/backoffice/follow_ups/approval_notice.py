"""Notices of approvals, by mail if a mail server is set up: to those who may decide a request, and of its decision to
the clerk who asked, who sees it on the dashboard, too."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, timedelta
from itertools import islice
from smtplib import SMTPException, SMTPRecipientsRefused
from typing import Any, Final

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.core.mail import EmailMessage, get_connection
from django.db.models import Q
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.backoffice.kit.formatting import build_state_pill, format_money
from gateway.core import clock
from gateway.models import Approval
from gateway.payments.operations import OPERATIONS

DECISION_NOTICE_RETENTION: Final = timedelta(days=3)
"""How long the dashboard shows a decision."""
MAX_SHOWN_DECISIONS: Final = 5
DECIDE_APPROVAL_PERMISSION: Final = "gateway.approve_payment"
MAX_MAILED_DECIDERS: Final = 20
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


def list_deciders(row: Approval) -> list[User]:
    """Users with an address who may decide the request, but for the one who asked; at most MAX_MAILED_DECIDERS."""
    roles = permissions.ROLES_BY_PERMISSION[DECIDE_APPROVAL_PERMISSION]
    granted = User.objects.filter(Q(grants__role__in=roles) | Q(is_superuser=True), is_active=True, is_staff=True)
    granted = granted.exclude(Q(email="") | Q(pk=row.asked_by_id)).order_by("pk").distinct()
    able = (user for user in granted if permissions.has_permission(user, DECIDE_APPROVAL_PERMISSION, row.payment))
    return list(islice(able, MAX_MAILED_DECIDERS))


def mail_request(row: Approval) -> int:
    """Mail those who may decide the request, each alone, with a link to it; returns how many mails were sent. A mail
    server that fails undoes nothing: the request waits on the page of approvals."""
    if not _are_mails_delivered():
        return 0
    body = _("%(who)s asks for approval: %(what)s, %(merchant)s.\nIt can be decided until %(until)s.") % {
        "who": row.asked_by_name,
        "what": describe_approval(row),
        "merchant": row.merchant.name,
        "until": f"{row.expires_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    }
    note = f"\n\n{row.asked_by_name}: {row.note}" if row.note else ""
    subject = _("To approve: %s") % describe_approval(row)
    text = f"{body}{note}\n\n{_build_address(row)}\n"
    mails = [EmailMessage(subject, text, settings.GATEWAY_MAIL_FROM, [one.email]) for one in list_deciders(row)]
    return _send_mails(mails, row)


def _send_mails(mails: Sequence[EmailMessage], row: Approval) -> int:
    """Send them over one connection; returns how many were sent. A refused address keeps no other one waiting; a server
    that is away is waited for once, since a clerk waits for this."""
    sent, server = 0, get_connection()
    try:
        server.open()
        for mail in mails:
            try:
                sent += server.send_messages([mail]) or 0
            except SMTPRecipientsRefused:
                log.warning("approval_mail_refused", approval=row.pk.hex)
    except (OSError, SMTPException):
        log.warning("approval_mail_failed", approval=row.pk.hex)
    finally:
        server.close()
    return sent


def _are_mails_delivered() -> bool:
    return not any(name in settings.EMAIL_BACKEND for name in UNDELIVERED_MAIL_BACKENDS)


def _build_address(row: Approval) -> str:
    return f"{settings.GATEWAY_BASE_URL}{reverse('admin:gateway_approval_change', args=[row.pk])}"


def mail_decision(row: Approval) -> bool:
    """Mail the decision to the clerk who asked; True if a mail was sent. A mail server that fails undoes nothing: the
    dashboard shows the decision too."""
    to = row.asked_by.email
    if not to or not _are_mails_delivered():
        return False
    state = build_state_pill(row.state)["text"]
    note = f"\n\n{row.decided_by_name}: {row.decision_note}" if row.decision_note else ""
    body = _("Your request: %(what)s\nDecision: %(state)s, by %(who)s") % {
        "what": describe_approval(row),
        "state": state,
        "who": row.decided_by_name,
    }
    mail = EmailMessage(
        f"{describe_approval(row)}: {state}",
        f"{body}{note}\n\n{_build_address(row)}\n",
        settings.GATEWAY_MAIL_FROM,
        [to],
    )
    return bool(_send_mails([mail], row))

"""Notices of approvals, by mail if a mail server is set up: to those who may decide a request, and of its decision to
the clerk who asked, who sees it on the dashboard, too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from django.utils import translation
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.backoffice.follow_ups.reasons import name_request
from gateway.backoffice.kit.formatting import build_state_pill, format_money
from gateway.core import clock
from gateway.core.mail_address import are_mails_delivered
from gateway.models import Approval
from gateway.timers import wakeup
from gateway.timers.registry import Timer

DECISION_NOTICE_RETENTION: Final = timedelta(days=3)
"""How long the dashboard shows a decision."""
MAX_SHOWN_DECISIONS: Final = 5
DECIDE_APPROVAL_PERMISSION: Final = "gateway.approve_payment"
MAX_MAILED_DECIDERS: Final = 20
MAX_NOTICES_PER_TICK: Final = 200
NOTICE_TIMER: Final = "approval mails"
log = structlog.get_logger(__name__)


def list_recent_decisions(user: Any) -> list[dict[str, Any]]:
    """Decisions about the user's own requests, newest first."""
    rows = Approval.objects.filter(asked_by=user.pk, decided_at__gte=clock.real_now() - DECISION_NOTICE_RETENTION)
    rows = (
        rows.exclude(state=Approval.State.WITHDRAWN)
        .order_by("-decided_at")
        .select_related("payment")[:MAX_SHOWN_DECISIONS]
    )
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
    return f"{name_request(row.payment_type, row.payment.payment_type)} {format_money(row.amount, row.currency)}"


def list_deciders(row: Approval, candidates: Iterable[User]) -> list[User]:
    """The candidates who may decide the request, but for the one who asked; at most MAX_MAILED_DECIDERS."""
    others = (user for user in candidates if user.pk != row.asked_by_id)
    able = (user for user in others if permissions.has_permission(user, DECIDE_APPROVAL_PERMISSION, row.payment))
    return list(islice(able, MAX_MAILED_DECIDERS))


def list_candidates() -> list[User]:
    """Users with an address who may decide requests somewhere. Each keeps its grants once they are read."""
    roles = permissions.ROLES_BY_PERMISSION[DECIDE_APPROVAL_PERMISSION]
    granted = User.objects.filter(Q(grants__role__in=roles) | Q(is_superuser=True), is_active=True, is_staff=True)
    return list(granted.exclude(email="").order_by("pk").distinct())


def wake_notices() -> None:
    """Have mails sent that are committed."""
    wakeup.notify_timer(NOTICE_TIMER)


def send_due_notices() -> int:
    """Send the mails that requests and decisions are waiting for; returns how many. Each is claimed before it is sent,
    so that two workers send it once; a mail server that fails undoes nothing: requests wait on the page of approvals,
    and decisions stand on the dashboard."""
    rows = Approval.objects.exclude(notice="").select_related("merchant", "payment", "asked_by")
    due = list(rows.order_by("asked_at")[:MAX_NOTICES_PER_TICK])
    claimed = [row for row in due if Approval.objects.filter(pk=row.pk, notice=row.notice).update(notice="")]
    requests = [row for row in claimed if row.notice == Approval.Notice.REQUEST]
    sent = mail_requests([row for row in requests if row.state == Approval.State.ASKED])
    return sent + sum(mail_decision(row) for row in claimed if row.notice == Approval.Notice.DECISION)


def mail_requests(rows: Sequence[Approval]) -> int:
    """Mail those who may decide these requests, each alone, one mail with a link to each; returns how many were
    sent."""
    if not rows or not are_mails_delivered():
        return 0
    candidates = list_candidates()
    by_decider: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for row in rows:
        try:
            with translation.override(row.language or settings.LANGUAGE_CODE):
                notice = _("To approve: %s") % describe_approval(row), _describe_request(row)
            for one in list_deciders(row, candidates):
                by_decider.setdefault((one.email, row.language), []).append(notice)
        except Exception:  # one request that fails stops no notice of the others
            log.exception("approval_notice_failed", approval=row.pk.hex)
    mails = []
    for (address, language), asked in by_decider.items():
        with translation.override(language or settings.LANGUAGE_CODE):
            subject = asked[0][0] if len(asked) == 1 else _("To approve: %d requests") % len(asked)
        text = "\n".join(one for _subject, one in asked)
        mails.append(EmailMessage(subject, text, settings.GATEWAY_MAIL_FROM, [address]))
    return _send_mails(mails, rows)


def _describe_request(row: Approval) -> str:
    body = _("%(who)s asks for approval: %(what)s, %(merchant)s.\nIt can be decided until %(until)s.") % {
        "who": row.asked_by_name,
        "what": describe_approval(row),
        "merchant": row.merchant.name,
        "until": f"{row.expires_at.astimezone(UTC):%Y-%m-%d %H:%M} UTC",
    }
    note = f"\n\n{row.asked_by_name}: {row.note}" if row.note else ""
    return f"{body}{note}\n\n{_build_address(row)}\n"


def _send_mails(mails: Sequence[EmailMessage], rows: Sequence[Approval]) -> int:
    """Send them over one connection; returns how many were sent. A refused address and a mail that cannot be written
    keep no other one waiting; a server that is away is waited for once."""
    if not mails:
        return 0
    sent, server, about = 0, get_connection(), [row.pk.hex for row in rows]
    try:
        server.open()
        for mail in mails:
            try:
                sent += server.send_messages([mail]) or 0
            except SMTPRecipientsRefused:
                log.warning("approval_mail_refused", approvals=about)
            except (OSError, SMTPException):
                raise
            except Exception:  # one mail that fails stops no other
                log.exception("approval_notice_failed", approvals=about)
    except (OSError, SMTPException):
        log.warning("approval_mail_failed", approvals=about)
    finally:
        server.close()
    return sent


def _build_address(row: Approval) -> str:
    return f"{settings.GATEWAY_BASE_URL}{reverse('admin:gateway_approval_change', args=[row.pk])}"


def mail_decision(row: Approval) -> bool:
    """Mail the decision to the clerk who asked; True if a mail was sent. A mail server that fails undoes nothing: the
    dashboard shows the decision too."""
    to = row.asked_by.email
    if not to or not are_mails_delivered():
        return False
    try:
        with translation.override(row.language or settings.LANGUAGE_CODE):
            return bool(_send_mails([_build_decision_mail(row, to)], [row]))
    except Exception:  # one decision that fails stops no notice of the others
        log.exception("approval_notice_failed", approval=row.pk.hex)
        return False


def _build_decision_mail(row: Approval, to: str) -> EmailMessage:
    state = build_state_pill(row.state)["text"]
    note = f"\n\n{row.decided_by_name}: {row.decision_note}" if row.decision_note else ""
    body = _("Your request: %(what)s\nDecision: %(state)s, by %(who)s") % {
        "what": describe_approval(row),
        "state": state,
        "who": row.decided_by_name,
    }
    return EmailMessage(
        f"{describe_approval(row)}: {state}",
        f"{body}{note}\n\n{_build_address(row)}\n",
        settings.GATEWAY_MAIL_FROM,
        [to],
    )


TIMER: Final = Timer(
    name=NOTICE_TIMER,
    about="Mails about requests for approval and their decisions.",
    run=send_due_notices,
    every_s=60.0,
    earliest_due="SELECT min(asked_at) FROM gateway_approval WHERE notice <> ''",
)

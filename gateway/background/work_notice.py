"""The mail to the owner of long work that has ended: they may have closed its page. Source: decision 0125."""

from __future__ import annotations

from datetime import timedelta
from smtplib import SMTPException
from typing import Final

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from gateway.core.mail_address import are_mails_delivered
from gateway.models import BackgroundWork

MIN_MAILED_DURATION: Final = timedelta(minutes=1)
"""Work that takes less is waited for on its page."""
log = structlog.get_logger(__name__)


def mail_work_ended(row: BackgroundWork) -> bool:
    """Mail the owner that the work is done or has failed, with a link to its page; True if a mail was sent. A mail
    server that fails undoes nothing: the page shows it too."""
    owner = row.owner
    took = row.ended_at - row.asked_at if row.ended_at is not None else timedelta(0)
    if took < MIN_MAILED_DURATION or not owner.is_active or not owner.email or not are_mails_delivered():
        return False
    with translation.override(row.parameters.get("language") or settings.LANGUAGE_CODE):
        mail = _build_mail(row, owner.email)
    try:
        return bool(mail.send())
    except (OSError, SMTPException):
        log.warning("background_work_mail_failed", work=row.pk.hex)
    return False


def _build_mail(row: BackgroundWork, to: str) -> EmailMessage:
    title = " ".join(row.title.split())
    address = f"{settings.GATEWAY_BASE_URL}{reverse('admin:gateway_backgroundwork_change', args=[row.pk])}"
    if row.state == BackgroundWork.State.FAILED:
        subject, said = _("Failed: %s") % title, row.message
    else:
        subject, said = _("Done: %s") % title, _("What you asked for is done. Sign in to see it, or to fetch its file:")
    return EmailMessage(subject, f"{said}\n\n{address}\n", settings.GATEWAY_MAIL_FROM, [to])

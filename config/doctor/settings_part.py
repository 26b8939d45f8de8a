"""Settings, keys and what the process itself says: Django's own checks and those of /health/ready, asked and not
repeated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.core.mail import get_connection

from config.doctor.findings import DoctorQuestion, PartFinding, error, judge, ok, skipped, warning
from gateway.api import health
from gateway.core.mail_address import UNDELIVERED_MAIL_BACKENDS
from gateway.db import environment

_HEALTH_MENDS: Final = {
    "database": {
        "": "Start PostgreSQL, or set DATABASE_URL to one that answers and takes writes.",
        "not migrated": "tollhouse manage migrate",
    },
    "vault": {
        "": "Put the keyset back at GATEWAY_VAULT_KEYSET_FILE (mode 0600, owner the service's user); a new "
        "installation makes one: tollhouse manage vault_key --create",
    },
    "clock": {"": "Synchronise the clock of this machine and the database's: systemctl enable --now chrony"},
}


def examine_settings(_question: DoctorQuestion) -> Iterator[PartFinding]:
    """Every check of `manage.py check`; those that ask the database too, if it answers."""
    answers = health.check_parts()["database"] == "ok"
    found = checks.run_checks(databases=["default"] if answers else None)
    faults = [one for one in found if one.level >= checks.WARNING and not one.is_silenced()]
    for one in faults:
        name = f"{one.msg} ({one.id})"
        mend = one.hint or f"docs/running.md, Before going live, has {one.id}."
        yield error(name, mend) if one.level >= checks.ERROR else warning(name, mend)
    if not faults:
        yield ok(f"All checks of settings pass, for the {settings.GATEWAY_ENVIRONMENT} environment.")


def examine_process(_question: DoctorQuestion) -> Iterator[PartFinding]:
    """What /health/ready of a node with this environment would answer."""
    for part, state in health.check_parts().items():
        mends = _HEALTH_MENDS[part]
        yield judge(state == "ok", f"The {part} is ready.", error(f"The {part}: {state}.", mends.get(state, mends[""])))


def examine_environment(_question: DoctorQuestion) -> Iterator[PartFinding]:
    """Whether the database belongs to this environment."""
    try:
        environment.require_usable_database()
    except ImproperlyConfigured as fault:
        yield error(str(fault), "Set DATABASE_URL to the database of this environment.")
        return
    yield ok(f"The database belongs to the {settings.GATEWAY_ENVIRONMENT} environment.")


MAIL_TIMEOUT_S: Final = 5


def examine_mail(question: DoctorQuestion) -> Iterator[PartFinding]:
    """Whether mails leave, and the mail server takes our name and password. None is sent."""
    if any(name in settings.EMAIL_BACKEND for name in (*UNDELIVERED_MAIL_BACKENDS, "locmem")):
        about = "Mails are not sent: receipts, mandates, approvals and reminders reach nobody."
        mend = "Set EMAIL_URL (smtp://user:password@host:587) and GATEWAY_MAIL_FROM."
        yield warning(about, mend) if settings.IS_LIVE else skipped(about, mend)
        return
    if not question.network:
        yield skipped("The mail server was not asked.", "Leave out --offline.")
        return
    server = get_connection(timeout=MAIL_TIMEOUT_S)
    try:
        server.open()
    except OSError as fault:  # smtplib's faults are of this kind, too
        where = f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}"
        yield error(
            f"The mail server {where} refuses us: {type(fault).__name__}.", "Set EMAIL_URL right: host, port, password."
        )
        return
    finally:
        server.close()
    yield ok(f"The mail server {settings.EMAIL_HOST} takes mails from us.")
    yield judge(
        not settings.GATEWAY_MAIL_FROM.endswith("@localhost"),
        f"Mails come from {settings.GATEWAY_MAIL_FROM}.",
        warning("Mails come from an address at localhost.", "Set GATEWAY_MAIL_FROM to an address of your domain."),
    )

"""The audit log: who changed what, or looked at it, from where, before and after. Append-only in the database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import models

from gateway.access.permissions import find_row_owner
from gateway.core import clock
from gateway.db.statement import WriteStatement
from gateway.models import AuditEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The author of an entry: a back-office user, or a management command (``ip`` None)."""

    name: str
    ip: str | None = None


COMMAND_LINE_ACTOR = Actor(name="command line")


def record_audit_entry(
    by: Actor,
    action: str,
    subject: models.Model,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    merchant: UUID | None = None,
) -> None:
    """Write one entry, in the transaction of the change it records. The entry's merchant is derived from ``subject``,
    unless ``merchant`` is given."""
    record_audit_entry_for(
        by,
        action,
        subject._meta.model_name or "",
        str(subject.pk),
        before=before,
        after=after,
        merchant=merchant or find_row_owner(subject).merchant,
    )


def append_audit_entry(
    write: WriteStatement,
    by: Actor,
    action: str,
    subject: models.Model,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Add one entry to the statement of the change it records: both are written, or nothing is."""
    write.insert(
        AuditEntry,
        at=clock.real_now(),
        actor=by.name[:150],
        ip=by.ip,
        action=action,
        subject=subject._meta.model_name or "",
        subject_id=str(subject.pk),
        before=dict(before) if before else None,
        after=dict(after) if after else None,
        merchant=find_row_owner(subject).merchant,
    )


def record_audit_entry_for(
    by: Actor,
    action: str,
    subject: str,
    subject_id: str,
    *,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    merchant: UUID | None = None,
) -> None:
    """Write one entry about something that is not a row, such as a vault key."""
    AuditEntry.objects.create(
        actor=by.name[:150],
        ip=by.ip,
        action=action,
        subject=subject,
        subject_id=subject_id,
        before=dict(before) if before is not None else None,
        after=dict(after) if after is not None else None,
        merchant=merchant,
    )


AuditedRow = tuple[models.Model, UUID | None, Mapping[str, Any] | None, Mapping[str, Any] | None]
"""A row, its merchant, and what it was before and after."""


def record_audit_entries(by: Actor, action: str, rows: Iterable[AuditedRow]) -> None:
    """Write one entry per row by one statement, in the transaction of the changes they record."""
    AuditEntry.objects.bulk_create(
        AuditEntry(
            actor=by.name[:150],
            ip=by.ip,
            action=action,
            subject=row._meta.model_name or "",
            subject_id=str(row.pk),
            before=dict(before) if before is not None else None,
            after=dict(after) if after is not None else None,
            merchant=merchant,
        )
        for row, merchant, before, after in rows
    )

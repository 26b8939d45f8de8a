"""Finds and creates clearing institutes by their key, for commands and folders."""

from __future__ import annotations

from django.core.exceptions import ValidationError

from gateway.access import audit_log
from gateway.connectors.routing import CONNECTORS
from reporting.settlement.formats import FILE_FORMATS
from reporting.settlement.models import ClearingInstitute


class UnknownInstituteError(Exception):
    """No institute has this key; the text lists those that exist."""


def find_institute(key: str | None) -> ClearingInstitute:
    """The active institute with this key, or the only one there is. Raises UnknownInstituteError."""
    active = list(ClearingInstitute.objects.filter(active=True))
    if key is None and len(active) == 1:
        return active[0]
    for one in active:
        if one.key == key:
            return one
    known = ", ".join(one.key for one in active) or "none yet: make one with manage.py clearing_institute"
    raise UnknownInstituteError(f"{key} is no clearing institute; there are {known}" if key else f"Say which: {known}")


def create_institute(by: audit_log.Actor, **values: object) -> ClearingInstitute:
    """Create an institute. Raises ValidationError."""
    row = ClearingInstitute(**values)
    if unknown := set(row.connectors) - set(CONNECTORS):
        raise ValidationError({"connectors": f"{', '.join(sorted(unknown))}: known are {', '.join(CONNECTORS)}"})
    if row.format and row.format not in FILE_FORMATS:
        raise ValidationError({"format": f"must be one of {', '.join(FILE_FORMATS)}, or empty"})
    if any(not 1 <= day <= 7 for day in row.expects_files_on):
        raise ValidationError({"expects_files_on": "weekdays from 1 (Monday) to 7"})
    row.full_clean()
    row.save(force_insert=True)
    audit_log.record_audit_entry(
        by, "create", row, after={"key": row.key, "name": row.name, "time_zone": row.time_zone}
    )
    return row

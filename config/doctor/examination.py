"""All parts that the doctor looks at, in the order in which a fault of one explains those after it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import structlog

from config.doctor import (
    background_part,
    backup_part,
    database_part,
    machine_part,
    network_part,
    settings_part,
    standby_part,
)
from config.doctor.findings import DoctorFinding, DoctorPart, DoctorQuestion, FindingLevel
from gateway.api import health

PARTS: Final = (
    DoctorPart(name="settings", examine=settings_part.examine_settings),
    DoctorPart(name="this process", examine=settings_part.examine_process),
    DoctorPart(name="environment", examine=settings_part.examine_environment, needs_database=True),
    DoctorPart(name="database", examine=database_part.examine_database, needs_database=True),
    DoctorPart(name="standby", examine=standby_part.examine_standby, needs_database=True),
    DoctorPart(name="broker", examine=background_part.examine_broker),
    DoctorPart(name="beat and worker", examine=background_part.examine_timers, needs_database=True),
    DoctorPart(name="queues", examine=background_part.examine_queues, needs_database=True),
    DoctorPart(name="webhooks", examine=background_part.examine_webhooks, needs_database=True),
    DoctorPart(name="web server", examine=machine_part.examine_web_server),
    DoctorPart(name="units", examine=machine_part.examine_units),
    DoctorPart(name="disk", examine=machine_part.examine_disk),
    DoctorPart(name="folders", examine=machine_part.examine_folders),
    DoctorPart(name="limits", examine=machine_part.examine_limits),
    DoctorPart(name="ways out", examine=network_part.examine_ways_out, needs_database=True),
    DoctorPart(name="public address", examine=network_part.examine_public_address),
    DoctorPart(name="mail", examine=settings_part.examine_mail),
    DoctorPart(name="back-ups", examine=backup_part.examine_backups),
)

log = structlog.get_logger(__name__)


def examine_installation(question: DoctorQuestion) -> Iterator[DoctorFinding]:
    """Look at every part in turn. A part that fails itself is a finding, and the others are looked at all the same."""
    answers = health.check_parts()["database"] == "ok"
    for part in PARTS:
        if part.needs_database and not answers:
            about = "Left out: the database is not ready."
            yield DoctorFinding(part=part.name, level=FindingLevel.SKIPPED, about=about)
            continue
        try:
            for level, about, mend in part.examine(question):
                yield DoctorFinding(part=part.name, level=level, about=about, mend=mend)
        except Exception as fault:  # a part that cannot be examined keeps no other part from being examined
            log.exception("doctor_failed", part=part.name)
            about = f"It could not be looked at: {type(fault).__name__}."
            mend = "The log has the fault; it is one of the doctor's own if all else is well."
            yield DoctorFinding(part=part.name, level=FindingLevel.ERROR, about=about, mend=mend)

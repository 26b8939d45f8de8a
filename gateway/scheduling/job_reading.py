"""Reads what a run of a subscription job needs, in two statements whose plans the server keeps.

Django's compiling of such queries took more than half of a run's time. Every column is read: a run may have to write a
record of the job. Source: docs/decisions/0112.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from gateway.db.statement import execute_sql, list_column_names, model_from_row, name_columns, split_row
from gateway.models import Agreement, Channel, Division, Merchant, Psp, Registration
from gateway.scheduling.models import Job

_JOB, _MERCHANT, _DIVISION, _PSP, _CHANNEL, _REGISTRATION, _AGREEMENT = map(
    list_column_names, (Job, Merchant, Division, Psp, Channel, Registration, Agreement)
)
_READ_JOB: Final = f"""
SELECT {name_columns(_JOB, "j")}, {name_columns(_MERCHANT, "m")}, {name_columns(_DIVISION, "d")},
    {name_columns(_PSP, "s")}, {name_columns(_CHANNEL, "c")}
FROM scheduling_job j
JOIN gateway_merchant m ON m.id = j.merchant_id
JOIN gateway_division d ON d.id = m.division_id
JOIN gateway_psp s ON s.id = d.psp_id
JOIN gateway_channel c ON c.id = j.channel_id
WHERE j.id = %s::uuid
"""  # noqa: S608 - names of columns
_READ_MEANS: Final = f"""
SELECT {name_columns(_REGISTRATION, "r")}, {name_columns(_CHANNEL, "c")}, {name_columns(_AGREEMENT, "a")}
FROM gateway_registration r
JOIN gateway_channel c ON c.id = r.channel_id
LEFT JOIN gateway_agreement a ON a.id = %s::uuid
WHERE r.id = %s::uuid
"""  # noqa: S608 - names of columns


def read_job(ident: UUID) -> Job:
    """A job with its channel, its merchant and what is above it. Raises Job.DoesNotExist."""
    rows = execute_sql(_READ_JOB, [ident])
    if not rows:
        raise Job.DoesNotExist(ident)
    lengths = (len(_JOB), len(_MERCHANT), len(_DIVISION), len(_PSP))
    job_row, merchant_row, division_row, psp_row, channel_row = split_row(rows[0], *lengths)
    job: Job = model_from_row(Job, _JOB, job_row)
    job.merchant = model_from_row(Merchant, _MERCHANT, merchant_row)
    job.merchant.division = model_from_row(Division, _DIVISION, division_row)
    job.merchant.division.psp = model_from_row(Psp, _PSP, psp_row)
    job.channel = model_from_row(Channel, _CHANNEL, channel_row)
    job.channel.merchant = job.merchant
    return job


def read_job_means(job: Job) -> tuple[Registration, Agreement | None]:
    """The job's registration with its channel, and its agreement. Raises Registration.DoesNotExist."""
    rows = execute_sql(_READ_MEANS, [job.agreement, job.registration])
    if not rows:
        raise Registration.DoesNotExist(job.registration)
    registration_row, channel_row, agreement_row = split_row(rows[0], len(_REGISTRATION), len(_CHANNEL))
    registration: Registration = model_from_row(Registration, _REGISTRATION, registration_row)
    registration.merchant = job.merchant
    registration.channel = model_from_row(Channel, _CHANNEL, channel_row)
    registration.channel.merchant = job.merchant
    found = agreement_row[0] is not None
    return registration, model_from_row(Agreement, _AGREEMENT, agreement_row) if found else None

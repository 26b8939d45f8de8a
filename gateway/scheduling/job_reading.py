"""Reads what a run of a subscription job needs, in two statements whose plans the server keeps.

Django's compiling of such queries took more than half of a run's time. Every column is read: a run may have to write a
record of the job. Source: docs/decisions/0112.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.db import models

from gateway.db.statement import execute_sql, list_column_names, model_from_row, name_columns, split_row
from gateway.models import Agreement, Channel, Division, Merchant, Psp, Registration
from gateway.scheduling.models import Job


def _select(**tables: type[models.Model]) -> str:
    """The columns of these tables, alias → model, for a SELECT."""
    return ", ".join(name_columns(list_column_names(model), alias) for alias, model in tables.items())


_READ_JOB: Final = f"""
SELECT {_select(j=Job, m=Merchant, d=Division, s=Psp, c=Channel)}
FROM scheduling_job j
JOIN gateway_merchant m ON m.id = j.merchant_id
JOIN gateway_division d ON d.id = m.division_id
JOIN gateway_psp s ON s.id = d.psp_id
JOIN gateway_channel c ON c.id = j.channel_id
WHERE j.id = %s::uuid
"""  # noqa: S608 - names of columns
_READ_MEANS: Final = f"""
SELECT {_select(r=Registration, c=Channel, a=Agreement)}
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
    job: Job
    job, merchant, division, psp, channel = _build_models(rows[0], Job, Merchant, Division, Psp, Channel)
    division.psp, merchant.division, channel.merchant = psp, division, merchant
    job.merchant, job.channel = merchant, channel
    return job


def read_job_means(job: Job) -> tuple[Registration, Agreement | None]:
    """The job's registration with its channel, and its agreement. Raises Registration.DoesNotExist."""
    rows = execute_sql(_READ_MEANS, [job.agreement, job.registration])
    if not rows:
        raise Registration.DoesNotExist(job.registration)
    registration, channel, agreement = _build_models(rows[0], Registration, Channel, Agreement)
    registration.merchant = channel.merchant = job.merchant
    registration.channel = channel
    return registration, agreement


def _build_models(row: tuple[Any, ...], *found: type[models.Model]) -> list[Any]:
    """The row's models in their order; None for one that was not joined."""
    pieces = split_row(row, *(len(list_column_names(model)) for model in found))
    pairs = zip(found, pieces, strict=False)  # behind the last piece nothing is left
    return [model_from_row(model, list_column_names(model), piece) if piece[0] else None for model, piece in pairs]

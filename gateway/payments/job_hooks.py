"""What a first payment needs of subscription jobs, which are a package above payments.

A payment with job parameters is refused before it exists where they could start no job, and its approval writes the job
in the statement that completes it. A run's payment that is approved after it was declined is the run's own to know.
gateway.scheduling registers the three functions when it is loaded. Source: docs/decisions/0058.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol
from uuid import UUID

from gateway.catalogue.parse import Parameters
from gateway.connectors.port import AcquirerReply
from gateway.core.hook import Hook
from gateway.models import Channel, Payment
from gateway.payments.record_only_payments import InsertRow

JOB_PREFIX: Final = "job."


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedJob:
    """A job that a payment started: the ``rows`` to insert, and what to merge into ``Payment.answer``."""

    rows: Sequence[InsertRow] = ()
    answer: Mapping[str, Any] = field(default_factory=dict)


class JobParametersCheck(Protocol):
    """Raises RequestRefusedError for job parameters that could not start a job. ``storable``: the payment uses a
    registration or creates one."""

    def __call__(self, parameters: Parameters, channel: Channel, now: datetime, *, storable: bool) -> None: ...


class JobStart(Protocol):
    """The job that an approved payment with job parameters starts; empty when its plan has no run any more.
    ``agreement``: the one that this payment makes, if any."""

    def __call__(
        self, payment: Payment, reply: AcquirerReply, registration: UUID, agreement: UUID | None, at: datetime
    ) -> StartedJob: ...


class LateBookingRecord(Protocol):
    """Record on its run, if it has one, that ``payment`` was approved after it had been declined. Must run in the
    transaction that approves it."""

    def __call__(self, payment: Payment, now: datetime) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class JobHooks:
    """The three functions that gateway.scheduling registers."""

    check_parameters: JobParametersCheck
    start: JobStart
    record_late_booking: LateBookingRecord


JOB_HOOKS: Final[Hook[JobHooks]] = Hook("gateway.scheduling")

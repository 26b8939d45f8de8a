"""Validates job parameters before anything is charged or stored. Source: Part B, Scheduling."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from gateway.catalogue.parse import INVALID_PARAMETER_CODE, Parameters
from gateway.models import Channel
from gateway.payments.refusal import TYPE_NOT_OFFERED_CODE, RequestRefusedError, build_parameter_refusal
from gateway.scheduling import job_plans as plans
from gateway.scheduling.job_plans import InvalidJobPlanError, JobPlan
from gateway.scheduling.job_records import JOB_PAYMENT_TYPES, extract_job_parameters, resolve_job_zone

JOB_NEEDS_REGISTRATION_CODE: Final = "100.150.300"


def parse_job_plan(sent: Mapping[str, str], zone: ZoneInfo, now: datetime, *, began: datetime | None = None) -> JobPlan:
    """Parse job parameters (names without ``job.``) into a plan. ``began``: when a changed job began. Raises
    RequestRefusedError with every error and the code of the first."""
    try:
        return plans.plan_from_parameters(sent, zone, now, began=began)
    except InvalidJobPlanError as fault:
        raise RequestRefusedError(fault.errors[0].code, fault.errors) from None


def check_job_parameters(parameters: Parameters, channel: Channel, now: datetime, *, storable: bool) -> None:
    """Raise RequestRefusedError for a payment whose job parameters could not start a job. ``storable``: the payment
    uses a registration or creates one."""
    sent = extract_job_parameters(parameters.values)
    if not sent:
        return
    kind, amount = parameters.get("paymentType"), parameters.get("amount") or "0"
    if kind not in JOB_PAYMENT_TYPES:
        message = "must be DB or PA with job parameters: each run makes such a payment"
        raise build_parameter_refusal(TYPE_NOT_OFFERED_CODE, "paymentType", message, value=kind)
    if not storable:
        message = "must be true with job parameters, or pay with a registration: the job charges what is stored"
        raise build_parameter_refusal(JOB_NEEDS_REGISTRATION_CODE, "createRegistration", message, known=True)
    if not Decimal(amount):
        message = "must be above 0 with job parameters: each run takes it"
        raise build_parameter_refusal(INVALID_PARAMETER_CODE, "amount", message, value=amount, known=True)
    parse_job_plan(sent, resolve_job_zone(channel, channel.merchant), now)

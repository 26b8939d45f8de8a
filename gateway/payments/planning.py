"""Whether job parameters make a plan, before anything is charged or kept. Source: Part B, Scheduling."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

from gateway.catalogue.parse import INVALID, ParameterError, Parameters
from gateway.models import Channel
from gateway.payments.jobs import CHARGES, sent_job, zone_of
from gateway.payments.refusal import NOT_SUPPORTED, Refused
from gateway.scheduling import plan as plans
from gateway.scheduling.plan import Plan, Unplannable

NO_REGISTRATION: Final = "100.150.300"


def planned(sent: Mapping[str, str], zone: ZoneInfo, now: datetime, *, began: datetime | None = None) -> Plan:
    """The plan of job parameters. Raises Refused, with every error and the first one's code."""
    try:
        return plans.plan_of(sent, zone, now, began=began)
    except Unplannable as fault:
        raise Refused(fault.errors[0].code, fault.errors) from None


def refuse_job(parameters: Parameters, channel: Channel, now: datetime, *, storable: bool) -> None:
    """Raise Refused for a payment with job parameters that could start no job. ``storable``: it is made with a
    registration, or makes one."""
    sent = sent_job(parameters.values)
    if not sent:
        return
    kind, amount = parameters.get("paymentType"), parameters.get("amount") or "0"
    if kind not in CHARGES:
        message = "must be DB or PA with job parameters: each run makes such a payment"
        raise Refused(NOT_SUPPORTED, [ParameterError(name="paymentType", value=kind, message=message)])
    if not storable:
        message = "must be true with job parameters, or pay with a registration: the job charges what is stored"
        raise Refused(NO_REGISTRATION, [ParameterError(name="createRegistration", message=message, known=True)])
    if not Decimal(amount):
        message = "must be above 0 with job parameters: each run takes it"
        raise Refused(INVALID, [ParameterError(name="amount", value=amount, message=message, known=True)])
    planned(sent, zone_of(channel, channel.merchant), now)

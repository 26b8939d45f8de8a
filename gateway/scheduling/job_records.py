"""Builds subscription jobs and the record-only payments of their changes: SD (created), RS (changed), DS (ended).

Source: Part B, Scheduling; decisions, section 4; docs/decisions/0022.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

import structlog

from gateway.catalogue.endpoints import CREATE_SCHEDULE_ENDPOINT
from gateway.catalogue.parse import nest_entries
from gateway.connectors.acquirer_message import parse_scheme_reference
from gateway.connectors.port import AcquirerReply
from gateway.core import identifiers
from gateway.core.money import format_amount
from gateway.models import Agreement, Channel, Merchant, Notification, Payment, Registration
from gateway.payments.descriptors import DESCRIPTOR, resolve_default_descriptor, resolve_descriptor
from gateway.payments.job_hooks import JOB_PREFIX, StartedJob
from gateway.payments.network_brands import find_network_brand
from gateway.payments.payment_means import STORABLE_MEANS
from gateway.payments.record_only_payments import InsertRow, build_record_rows, resolve_success_code
from gateway.payments.stored_request import drop_stored_columns, restore_sent_parameters
from gateway.scheduling import job_plans as plans
from gateway.scheduling.job_plans import InvalidJobPlanError, JobPlan
from gateway.scheduling.models import Job

SCHEDULE_PAYMENT_TYPE, RESCHEDULE_PAYMENT_TYPE, DESCHEDULE_PAYMENT_TYPE = "SD", "RS", "DS"
JOB_NOTIFICATION_ACTIONS: Final[Mapping[str, str]] = {
    SCHEDULE_PAYMENT_TYPE: "CREATED",
    RESCHEDULE_PAYMENT_TYPE: "UPDATED",
    DESCHEDULE_PAYMENT_TYPE: "DELETED",
}
"""Payment type of a record → the action of its notification."""
MAX_UPCOMING_RUNS: Final = 5
"""Next runs that a response shows."""
JOB_PAYMENT_TYPES: Final = frozenset({"DB", "PA"})

log = structlog.get_logger(__name__)


def resolve_job_zone(channel: Channel, merchant: Merchant) -> ZoneInfo:
    """The time zone of a channel's jobs: the channel's own, else the merchant's (ruling D39)."""
    return ZoneInfo(channel.time_zone or merchant.time_zone)


def extract_job_parameters(values: Mapping[str, str]) -> dict[str, str]:
    """The job parameters of a request, without their prefix."""
    return {name.removeprefix(JOB_PREFIX): value for name, value in values.items() if name.startswith(JOB_PREFIX)}


def nest_job_parameters(values: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of a schedule as nested JSON for the echo, without registrationId, entityId and private ones."""
    entries = []
    for name, value in values.items():
        found = CREATE_SCHEDULE_ENDPOINT.catalogue.find(name)
        if found is not None and name not in ("registrationId", "entityId") and not found[0].param.private:
            row, indexes, key = found
            entries.append((row.path, indexes, key, value))
    return nest_entries(entries)


def build_job(
    ident: UUID,
    plan: JobPlan,
    request: Mapping[str, Any],
    *,
    registration: UUID,
    agreement: UUID | None,
    merchant: UUID,
    channel: UUID,
    memo: str,
    test_mode: str,
    now: datetime,
) -> Job:
    """Build a job that begins ``now``. ``request``: the echo, with amount, currency and paymentType."""
    next_at, ends_at = plan.following(now)
    return Job(
        **{**plan.columns(), "ends_at": ends_at},
        id=ident,
        merchant_id=merchant,
        channel_id=channel,
        registration=registration,
        agreement=agreement,
        state=Job.State.ACTIVE,
        name=request.get("job", {}).get("name", ""),
        payment_type=request["paymentType"],
        amount=Decimal(request["amount"]),
        currency=request["currency"],
        test_mode=test_mode,
        request=drop_stored_columns(request),
        merchant_memo=memo,
        next_at=next_at,
        created_at=now,
    )


def build_job_columns(job: Job) -> dict[str, Any]:
    """All columns of a job, for its INSERT."""
    return {field.attname: getattr(job, field.attname) for field in Job._meta.concrete_fields}


# --- records ------------------------------------------------------------------------------------------------------


def build_job_record(job: Job, kind: str, means: Mapping[str, Any], *, at: datetime, request_id: UUID) -> Payment:
    """Build the record-only payment of a change to ``job``; the job has its new columns already. No money moves: the
    payment is approved for 0.00 and shows the plan's amount; ``schedule.sequence`` orders the records of one job.
    ``means``: brand, method, means, its public details, and the default descriptor (:func:`render_job_means`)."""
    ident = job.id if kind == SCHEDULE_PAYMENT_TYPE else identifiers.row_id()
    schedule = {"id": job.id.hex, "sequence": job.sequence}
    facts = {"amount": format_amount(job.amount), "plan": render_job_plan(job, at), "schedule": schedule}
    return Payment(
        id=ident,
        merchant_id=job.merchant_id,
        channel_id=job.channel_id,
        chain=job.id,
        referenced=None if kind == SCHEDULE_PAYMENT_TYPE else job.id,
        payment_type=kind,
        brand=means["brand"],
        method=means["method"],
        amount=job.amount,
        approved_amount=Decimal(0),
        currency=job.currency,
        test_mode=job.test_mode,
        merchant_transaction_id=job.request.get("merchantTransactionId", ""),
        merchant_invoice_id=job.request.get("merchantInvoiceId", ""),
        merchant_memo=job.merchant_memo,
        result_code=resolve_success_code(job.test_mode),
        request={"paymentType": job.payment_type, **job.request},
        answer={**means["details"], "facts": facts, DESCRIPTOR: means[DESCRIPTOR]},
        means=means["means"],
        registration=job.registration,
        request_id=request_id,
        created_at=at,
        completed_at=at,
    )


def render_job_means(registration: Registration) -> dict[str, Any]:
    """The public details of the stored means for :func:`build_job_record`."""
    details = {name: registration.details[name] for name in STORABLE_MEANS if name in registration.details}
    return {
        "brand": registration.brand,
        "method": registration.method,
        "means": registration.means,
        "details": details,
        DESCRIPTOR: resolve_default_descriptor(registration.channel, registration.channel.merchant),
    }


def mark_job_ended(job: Job, reason: str, now: datetime) -> None:
    """Set the columns of a job that has ended, in memory."""
    job.state, job.reason = Job.State.ENDED, reason
    job.next_at, job.ended_at = None, now
    job.ends_at = min(job.ends_at or now, now)


def render_job_plan(job: Job, at: datetime) -> dict[str, Any]:
    """``plan`` of a response: state, times and the next runs after ``at``."""
    return dict(plans.render_plan(plans.plan_from_job(job), job, at, MAX_UPCOMING_RUNS))


def build_job_notification(payment: Payment, job: Job) -> dict[str, Any]:
    """The columns of the notification about a record."""
    action = JOB_NOTIFICATION_ACTIONS[payment.payment_type]
    if payment.payment_type == DESCHEDULE_PAYMENT_TYPE and job.state != Job.State.ENDED:
        action = "UPDATED"
    return {
        "merchant_id": job.merchant_id,
        "channel_id": job.channel_id,
        "kind": "SCHEDULE",
        "action": action,
        "payment_id": payment.id,
        "registration": job.registration,
        "sequence": 2,
        "created_at": payment.created_at,
    }


def start_job(
    payment: Payment, reply: AcquirerReply, registration: UUID, agreement: UUID | None, at: datetime
) -> StartedJob:
    """The job that an approved payment with job parameters starts; empty when the plan has no run any more, because the
    approval must be written all the same. ``agreement``: the one that this payment makes, if any."""
    values = {
        name: value
        for name, value in restore_sent_parameters(payment).items()
        if CREATE_SCHEDULE_ENDPOINT.catalogue.find(name) is not None
    }
    sent = extract_job_parameters(values)
    if not sent or payment.payment_type not in JOB_PAYMENT_TYPES:
        return StartedJob()
    try:
        plan = plans.plan_from_parameters(sent, resolve_job_zone(payment.channel, payment.merchant), at)
    except InvalidJobPlanError as fault:
        log.error("job_not_started", payment=payment.id.hex, why=str(fault))
        return StartedJob()
    ident = identifiers.row_id()
    rows: list[InsertRow] = []
    if agreement is None and payment.agreement is None:
        made = build_job_agreement(
            ident,
            payment.merchant_id,
            payment.channel,
            registration,
            values,
            reference=reply.connector_tx_id or payment.id.hex,
            brand=find_network_brand(payment),
            network_reference=parse_scheme_reference(reply.network_reference),
            link=reply.transaction_link,
            at=at,
        )
        rows.append((Agreement, build_agreement_columns(made)))
        agreement = made.id
    job = build_job(
        ident,
        plan,
        nest_job_parameters(values),
        registration=registration,
        agreement=agreement or payment.agreement,
        merchant=payment.merchant_id,
        channel=payment.channel_id,
        memo=payment.merchant_memo,
        test_mode=payment.test_mode,
        now=at,
    )
    means = {
        "brand": payment.brand,
        "method": payment.method,
        "means": payment.means,
        DESCRIPTOR: resolve_descriptor(payment),
        "details": {name: payment.answer[name] for name in STORABLE_MEANS if name in payment.answer},
    }
    scheduled = build_job_record(job, SCHEDULE_PAYMENT_TYPE, means, at=at, request_id=payment.request_id)
    rows += [
        (Job, build_job_columns(job)),
        *build_record_rows(scheduled),
        (Notification, build_job_notification(scheduled, job)),
    ]
    facts = {"schedule": {"id": ident.hex}, "plan": render_job_plan(job, at)}
    return StartedJob(rows=rows, answer={"facts": facts})


def build_agreement_columns(row: Agreement) -> dict[str, Any]:
    """All columns of an agreement, for its INSERT."""
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def build_job_agreement(
    ident: UUID,
    merchant: UUID,
    channel: Channel,
    registration: UUID,
    values: Mapping[str, str],
    *,
    reference: str,
    network_reference: str,
    link: str,
    brand: str,
    at: datetime,
) -> Agreement:
    """Build the agreement of a job on a registration that has none yet. It has the job's id, and the references and the
    brand of the payment that created the registration."""
    instruction = {name.removeprefix("standingInstruction."): value for name, value in values.items()}
    expiry, frequency, most = (instruction.get(name) for name in ("expiry", "frequency", "numberOfInstallments"))
    linked = channel.agreement_ids != Channel.AgreementIds.NONE
    return Agreement(
        id=ident,
        merchant_id=merchant,
        channel_id=channel.id,
        reference=reference,
        network_reference=network_reference,
        agreement_id=values.get("standingInstruction.agreementId")
        or ((link or f"A{ident.hex.upper()}") if linked else ""),
        transaction_link=link,
        registration=registration,
        brand=brand,
        type=values.get("standingInstruction.type") or "RECURRING",
        expiry=datetime.strptime(expiry, "%Y-%m-%d").date() if expiry else None,  # noqa: DTZ007 - a day
        frequency=int(frequency or 0) or None,
        max_payments=int(most or 0) or None,
        first_at=None,
        created_at=at,
    )

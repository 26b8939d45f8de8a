"""Schedules by the API and the back office: create, read, change, pause and end subscription jobs.

Each change is one statement: the job with a version check, the record-only payment (SD, RS, DS) and its notification.
A run raises the job's sequence too, so of a change and a run at the same moment the later one sees the earlier.
Source: Part B, Scheduling; ruling D8; docs/decisions/0022.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from gateway.catalogue.parse import Parameters
from gateway.core import clock, identifiers
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE, PAYMENT_NOT_FOUND_CODE
from gateway.db.statement import WriteStatement
from gateway.models import Agreement, Channel, Merchant, Payment, Registration
from gateway.payments import agreements, registrations, store
from gateway.payments.agreements import AGREEMENT_ID, INITIAL_TRANSACTION_ID
from gateway.payments.network_brands import resolve_network_brand
from gateway.payments.process import resolve_route
from gateway.payments.refusal import RequestRefusedError, build_parameter_refusal
from gateway.payments.registrations import ChangeRequest
from gateway.payments.rendering import render_payment
from gateway.payments.request_builder import resolve_test_mode
from gateway.payments.stored_answer import read_private_facts
from gateway.payments.stored_request import drop_stored_columns
from gateway.scheduling import job_plans as plans
from gateway.scheduling import job_records
from gateway.scheduling.job_records import DESCHEDULE_PAYMENT_TYPE, RESCHEDULE_PAYMENT_TYPE, SCHEDULE_PAYMENT_TYPE
from gateway.scheduling.job_runs import build_run_request
from gateway.scheduling.job_validation import parse_job_plan
from gateway.scheduling.models import Job, JobRun

NOT_RESCHEDULED_CODE, NOT_DESCHEDULED_CODE = "100.360.300", "100.360.303"
MAX_SCHEDULE_TRIES: Final = 20
"""How often a change re-reads its job; each lost try means that a run or another change was first."""
MAX_PAST_RUNS: Final = 12


def find_job(
    target: UUID | None, merchant: Merchant, channel: Channel | None, unknown: str = PAYMENT_NOT_FOUND_CODE
) -> Job:
    """Find a job of this merchant (and channel). Raises RequestRefusedError (404 with code ``unknown``)."""
    own = {"pk": target, "merchant": merchant.pk} | ({"channel": channel.pk} if channel is not None else {})
    found = Job.objects.filter(**own).select_related("channel").first() if target is not None else None
    if found is None:
        raise RequestRefusedError(unknown, status=404)
    found.merchant = merchant
    found.channel.merchant = merchant
    return found


# --- making -------------------------------------------------------------------------------------------------------


def create_job(change: ChangeRequest, channel: Channel | None) -> Payment:
    """Create a job; returns its SD payment. Raises RequestRefusedError for a job whose runs could never be charged."""
    parameters, now = change.parameters, change.now
    registration = find_job_registration(parameters, change.merchant, channel)
    plan = parse_job_plan(
        job_records.extract_job_parameters(parameters.values),
        job_records.resolve_job_zone(registration.channel, change.merchant),
        now,
    )
    ident = identifiers.row_id()
    agreement, made = _resolve_job_agreement(ident, registration, parameters, now)
    job = job_records.build_job(
        ident,
        plan,
        job_records.nest_job_parameters(parameters.values),
        registration=registration.id,
        agreement=agreement.id if agreement is not None else None,
        merchant=change.merchant.id,
        channel=registration.channel.id,
        memo=parameters.get("merchantMemo") or "",
        test_mode=resolve_test_mode(parameters),
        now=now,
    )
    _validate_run(job, registration, agreement, change)
    payment = job_records.build_job_record(
        job, SCHEDULE_PAYMENT_TYPE, job_records.render_job_means(registration), at=now, request_id=change.trace.request
    )

    def changing(write: WriteStatement) -> None:
        write.insert(Job, **job_records.build_job_columns(job))
        if made and agreement is not None:
            write.insert(Agreement, **job_records.build_agreement_columns(agreement))

    store.insert_record_only_payment(
        payment,
        changing,
        job_records.build_job_notification(payment, job),
        trace=change.trace,
        idempotency=change.idempotency,
    )
    return payment


def find_job_registration(parameters: Parameters, merchant: Merchant, channel: Channel | None) -> Registration:
    """The registration that ``registrationId`` names. Raises RequestRefusedError, naming the parameter."""
    text = parameters["registrationId"]
    try:
        return registrations.find_registration(identifiers.parse_id(text), merchant, channel)
    except RequestRefusedError as refused:
        message = "names no registration of this entity that can be charged"
        raise build_parameter_refusal(refused.code, "registrationId", message, value=text, known=True) from None


def _resolve_job_agreement(
    ident: UUID, registration: Registration, parameters: Parameters, now: datetime
) -> tuple[Agreement | None, bool]:
    """Returns (agreement, created): the agreement that the request names, else the latest one of the registration, else
    a new one for this schedule."""
    channel = registration.channel
    if INITIAL_TRANSACTION_ID in parameters or AGREEMENT_ID in parameters:
        run_values = {"standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT"}
        repeated = replace(parameters, values={**parameters.values, **run_values})
        agreement_use = agreements.resolve_agreement(repeated, parameters["paymentType"], channel, registration.id)
        return (agreement_use.agreement if agreement_use is not None else None), False
    found = Agreement.objects.filter(registration=registration.id).order_by("-id").first()
    if found is not None:
        return found, False
    first = Payment.objects.filter(pk=registration.payment).values_list("connector_tx_id", "answer", "brand").first()
    reference, answer, brand = first or ("", {}, "")
    kept = read_private_facts(answer)
    return job_records.build_job_agreement(
        ident,
        registration.merchant_id,
        channel,
        registration.id,
        parameters.values,
        reference=reference or registration.payment.hex,
        network_reference=kept.network_reference,
        link=kept.transaction_link,
        brand=resolve_network_brand(brand, answer),
        at=now,
    ), True


def _validate_run(job: Job, registration: Registration, agreement: Agreement | None, change: ChangeRequest) -> None:
    """Build and route the payment of a run without making it. Raises RequestRefusedError or InvalidParametersError for
    what would refuse the run on its day."""
    request = build_run_request(job, registration, agreement, now=change.now, trace=change.trace, due_at=change.now)
    if request.parameters.refusals:
        raise RequestRefusedError(request.parameters.refusals[0].code, request.parameters.refusals)
    resolve_route(request)


# --- changing -----------------------------------------------------------------------------------------------------


def reschedule_job(target: UUID | None, change: ChangeRequest, channel: Channel | None) -> Payment:
    """Change the sent parameters of a job and leave the others. A given notice is cancelled, and a suspended job goes
    on with its next run. Returns the RS payment. Raises RequestRefusedError."""
    for _ in range(MAX_SCHEDULE_TRIES):
        job = find_job(target, change.merchant, channel, NOT_RESCHEDULED_CODE)
        if job.state == Job.State.ENDED:
            raise RequestRefusedError(NOT_RESCHEDULED_CODE, more="it has ended: start a new one")
        sequence = job.sequence
        registration = _apply_job_change(job, change)
        payment = _write_job_change(job, RESCHEDULE_PAYMENT_TYPE, registration, sequence, change)
        if payment is not None:
            return payment
    raise RequestRefusedError(CONCURRENT_UPDATE_CODE, status=409)


def _apply_job_change(job: Job, change: ChangeRequest) -> Registration:
    """Apply a change to ``job`` in memory and validate its runs; returns its registration."""
    parameters, now = change.parameters, change.now
    if "registrationId" in parameters:
        registration = find_job_registration(parameters, change.merchant, job.channel)
        agreement, made = _resolve_job_agreement(job.id, registration, parameters, now)
        if made:
            # The shopper agreed to the job, not to one card: the new card is charged under the same agreement.
            agreement = _load_job_agreement(job)
        job.registration, job.agreement = registration.id, agreement.id if agreement is not None else None
    else:
        registration = load_job_registration(job)
        agreement = _load_job_agreement(job)
    sent = job_records.nest_job_parameters(
        {name: value for name, value in parameters.values.items() if name != "paymentType"}
    )
    if parameters.get("paymentType") in job_records.JOB_PAYMENT_TYPES:
        sent["paymentType"] = parameters["paymentType"]
    sent_job = sent.pop("job", {})
    before: dict[str, str] = dict(job.request.get("job", {}))
    if any(name in plans.TIMING_PARAMETERS for name in sent_job):
        before = {name: value for name, value in before.items() if name not in plans.TIMING_PARAMETERS}
    whole = {**before, **sent_job}
    plan = parse_job_plan(whole, job_records.resolve_job_zone(job.channel, change.merchant), now, began=job.starts_at)
    next_at, ends_at = plan.following(now)
    changed = {
        **plan.columns(),
        "ends_at": ends_at,
        "request": drop_stored_columns({**job.request, **sent, "job": whole}),
        "amount": Decimal(sent.get("amount", job.amount)),
        "currency": sent.get("currency", job.currency),
        "payment_type": sent.get("paymentType", job.payment_type),
        "name": whole.get("name", ""),
        "next_at": next_at,
        "state": Job.State.ACTIVE,
        "reason": "",
        "declined": 0,
        "late": 0,
        "updated_at": now,
        "sequence": job.sequence + 1,
    }
    for name, value in changed.items():
        setattr(job, name, value)
    _validate_run(job, registration, agreement, change)
    return registration


def _load_job_agreement(job: Job) -> Agreement | None:
    return Agreement.objects.get(pk=job.agreement) if job.agreement is not None else None


def pause_job(target: UUID | None, change: ChangeRequest, channel: Channel | None) -> Payment:
    """Suspend a job until it is rescheduled; runs that fall due meanwhile are not made up for. Raises
    RequestRefusedError unless it is ACTIVE: an ENDING job would lose its notice."""
    for _ in range(MAX_SCHEDULE_TRIES):
        job = find_job(target, change.merchant, channel, NOT_RESCHEDULED_CODE)
        if job.state != Job.State.ACTIVE:
            raise RequestRefusedError(NOT_RESCHEDULED_CODE, more=_PAUSE_REFUSALS[Job.State(job.state)])
        sequence = job.sequence
        job.state, job.reason, job.next_at = Job.State.SUSPENDED, Job.Reason.PAUSED, None
        job.sequence, job.updated_at = sequence + 1, change.now
        payment = _write_job_change(
            job, RESCHEDULE_PAYMENT_TYPE, load_job_registration(job, gone=True), sequence, change
        )
        if payment is not None:
            return payment
    raise RequestRefusedError(CONCURRENT_UPDATE_CODE, status=409)


_PAUSE_REFUSALS: Final[Mapping[Job.State, str]] = {
    Job.State.ENDING: "notice was given: rescheduling it takes the notice back",
    Job.State.SUSPENDED: "it is suspended already",
    Job.State.ENDED: "it has ended",
}


def deschedule_job(target: UUID | None, change: ChangeRequest, channel: Channel | None) -> Payment:
    """Give notice: the job ends after its notice period. A second notice does not change the end. Raises
    RequestRefusedError for a job that has ended or does not exist."""
    for _ in range(MAX_SCHEDULE_TRIES):
        job = find_job(target, change.merchant, channel, NOT_DESCHEDULED_CODE)
        if job.state == Job.State.ENDED:
            raise RequestRefusedError(NOT_DESCHEDULED_CODE, more="it has ended already")
        sequence = job.sequence
        give_job_notice(job, change.now)
        payment = _write_job_change(
            job, DESCHEDULE_PAYMENT_TYPE, load_job_registration(job, gone=True), sequence, change
        )
        if payment is not None:
            return payment
    raise RequestRefusedError(CONCURRENT_UPDATE_CODE, status=409)


def give_job_notice(job: Job, now: datetime) -> None:
    """Set the columns of a job under notice, in memory. A suspended job ends at once."""
    plan = plans.plan_from_job(job)
    end = plan.end_by_notice(now) if job.state != Job.State.SUSPENDED else now
    job.sequence += 1
    job.updated_at = now
    if end <= now:
        job_records.mark_job_ended(job, Job.Reason.NOTICE, now)
        return
    job.state, job.reason = Job.State.ENDING, Job.Reason.NOTICE
    job.next_at, job.ends_at = replace(plan, ends_at=end).following(now)


CHANGEABLE_JOB_COLUMNS: Final = tuple(
    field.attname
    for field in Job._meta.concrete_fields
    if field.attname not in ("id", "merchant_id", "channel_id", "created_at", "lease_until")
)


def _write_job_change(
    job: Job, kind: str, registration: Registration, sequence: int, change: ChangeRequest
) -> Payment | None:
    """Write the changed job and its record; None when the job changed since it was read."""
    payment = job_records.build_job_record(
        job, kind, job_records.render_job_means(registration), at=change.now, request_id=change.trace.request
    )
    changes = {name: getattr(job, name) for name in CHANGEABLE_JOB_COLUMNS}
    recorded = store.insert_record_only_payment(
        payment,
        lambda write: write.update(job, changes, expecting={"sequence": sequence}),
        job_records.build_job_notification(payment, job),
        trace=change.trace,
        idempotency=change.idempotency,
    )
    return payment if recorded else None


def load_job_registration(job: Job, *, gone: bool = False) -> Registration:
    """The registration of a job. Raises RequestRefusedError for a deleted one, unless ``gone`` allows it."""
    found = Registration.objects.select_related("channel").get(pk=job.registration)
    found.merchant = job.merchant
    found.channel.merchant = job.merchant
    if found.status == Registration.Status.DELETED and not gone:
        message = "is required: the registration of this job was deleted"
        raise build_parameter_refusal(registrations.REGISTRATION_DELETED_CODE, "registrationId", message, known=True)
    return found


# --- rendering ----------------------------------------------------------------------------------------------------


def render_schedule(payment: Payment) -> dict[str, Any]:
    """A job's record as the schedule endpoints answer it: with the job's id and the payment type of its runs."""
    body = render_payment(payment)
    body.pop("referencedId", None)
    body.pop("schedule", None)
    request: Mapping[str, str] = payment.request
    return body | {"id": payment.chain.hex, "paymentType": request["paymentType"]}


def render_job(job: Job, now: datetime) -> dict[str, Any]:
    """The present state of a job, with its last MAX_PAST_RUNS runs."""
    means = job_records.render_job_means(load_job_registration(job, gone=True))
    body = render_schedule(job_records.build_job_record(job, SCHEDULE_PAYMENT_TYPE, means, at=now, request_id=job.id))
    runs = JobRun.objects.filter(job=job.pk).order_by("-due_at")[:MAX_PAST_RUNS]
    body["runs"] = [render_job_run(run) for run in runs]
    return body


def render_job_run(run: JobRun) -> dict[str, Any]:
    """One run in a schedule's response."""
    body: dict[str, Any] = {"dueAt": clock.format_timestamp(run.due_at), "state": run.state, "attempt": run.attempt}
    if run.payment is not None:
        body["id"] = run.payment.hex
    if run.code:
        body["code"] = run.code
    if run.next_at is not None and run.state == JobRun.State.RETRYING:
        body["retryAt"] = clock.format_timestamp(run.next_at)
        chance = run.retry_choices[-1].get("chance") if run.retry_choices else None
        if chance is not None:
            body["retryChance"] = f"{chance:.2f}"
    if run.missed_until is not None:
        body["missedUntil"] = clock.format_timestamp(run.missed_until)
    return body

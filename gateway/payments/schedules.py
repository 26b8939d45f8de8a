"""Subscription jobs by the API: made, read, changed, given notice.

Each change is one statement: the job as it was read, the payment that records it (SD, RS, DS) and what is told of it.
A run moves the job's sequence, too, so that of a change and a run at the same moment one comes first, and the other
sees it. Source: Part B, Scheduling; ruling D8; docs/decisions/0022.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from gateway import clock, identifiers
from gateway.catalogue.parse import ParameterError, Parameters
from gateway.models import Agreement, Channel, Merchant, Payment, Registration
from gateway.payments import agreements, jobs, registrations, store
from gateway.payments.agreements import AGREEMENT_ID, REFERENCE
from gateway.payments.answer import payment_object
from gateway.payments.intake import test_mode_of
from gateway.payments.job_runs import request_of
from gateway.payments.jobs import DESCHEDULED, RESCHEDULED, SCHEDULED
from gateway.payments.planning import planned
from gateway.payments.process import way_of
from gateway.payments.refusal import Refused
from gateway.payments.registrations import BUSY, Change
from gateway.payments.values import NETWORK
from gateway.rows import Write
from gateway.scheduling import plan as plans
from gateway.scheduling.models import Job, JobRun

UNKNOWN: Final = "700.400.580"
NOT_RESCHEDULED, NOT_DESCHEDULED = "100.360.300", "100.360.303"
MAX_TRIES: Final = 20
"""How often a change reads its job again; each try lost means that a run or another change won."""
SHOWN_PAST_RUNS: Final = 12


def find(target: UUID | None, merchant: Merchant, channel: Channel | None, unknown: str = UNKNOWN) -> Job:
    """The job of this merchant (and channel). Raises Refused (404, ``unknown``) for one there is not."""
    own = {"pk": target, "merchant": merchant.pk} | ({"channel": channel.pk} if channel is not None else {})
    found = Job.objects.filter(**own).select_related("channel").first() if target is not None else None
    if found is None:
        raise Refused(unknown, status=404)
    found.merchant = merchant
    found.channel.merchant = merchant
    return found


# --- making -------------------------------------------------------------------------------------------------------


def create(change: Change, channel: Channel | None) -> Payment:
    """Start a job; the SD that tells of it. Raises Refused for what could never be charged."""
    parameters, now = change.parameters, change.now
    registration = chosen(parameters, change.merchant, channel)
    plan = planned(
        jobs.sent_job(parameters.values), jobs.zone_of(registration.channel, change.merchant), now
    )  # fmt: skip
    ident = identifiers.row_id()
    agreement, made = _agreement(ident, registration, parameters, now)
    job = jobs.new_job(
        ident, plan, jobs.nested(parameters.values), registration=registration.id,
        agreement=agreement.id if agreement is not None else None, merchant=change.merchant.id,
        channel=registration.channel.id, memo=parameters.get("merchantMemo") or "",
        test_mode=test_mode_of(parameters), now=now,
    )  # fmt: skip
    _try_out(job, registration, agreement, change)
    payment = jobs.record(job, SCHEDULED, jobs.means_told(registration), at=now, request_id=change.trace.request)

    def changing(write: Write) -> None:
        write.insert(Job, **jobs.columns_of(job))
        if made and agreement is not None:
            write.insert(Agreement, **jobs.columns(agreement))

    store.record_change(
        payment, changing, jobs.told(payment, job), trace=change.trace, idempotency=change.idempotency
    )  # fmt: skip
    return payment


def chosen(parameters: Parameters, merchant: Merchant, channel: Channel | None) -> Registration:
    """The registration that ``registrationId`` names. Raises Refused, naming the parameter."""
    text = parameters["registrationId"]
    try:
        return registrations.find(identifiers.parse_id(text), merchant, channel)
    except Refused as refused:
        message = "names no registration of this entity that can be charged"
        error = ParameterError(name="registrationId", value=text, message=message, code=refused.code, known=True)
        raise Refused(refused.code, [error]) from None


def _agreement(
    ident: UUID, registration: Registration, parameters: Parameters, now: datetime
) -> tuple[Agreement | None, bool]:
    """The agreement that the job's charges draw on, and whether it is made now: the one that is named, the last one of
    the registration, else this schedule is what the shopper agreed to."""
    channel = registration.channel
    if REFERENCE in parameters or AGREEMENT_ID in parameters:
        words = {"standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT"}
        repeated = replace(parameters, values={**parameters.values, **words})
        standing = agreements.standing_of(repeated, parameters["paymentType"], channel, registration.id)
        return (standing.agreement if standing is not None else None), False
    found = Agreement.objects.filter(registration=registration.id).order_by("-id").first()
    if found is not None:
        return found, False
    first = Payment.objects.filter(pk=registration.payment).values_list("connector_tx_id", "answer").first()
    reference, answer = first or ("", {})
    return jobs.new_agreement(
        ident, registration.merchant_id, channel, registration.id, parameters.values,
        reference=reference or registration.payment.hex, network_reference=answer.get(NETWORK, ""), at=now,
    ), True  # fmt: skip


def _try_out(job: Job, registration: Registration, agreement: Agreement | None, change: Change) -> None:
    """Build the request of a run, as its day will, and find its way: raises Refused or Invalid for what is wrong."""
    request = request_of(job, registration, agreement, now=change.now, trace=change.trace, due_at=change.now)
    if request.parameters.refusals:
        raise Refused(request.parameters.refusals[0].code, request.parameters.refusals)
    way_of(request)


# --- changing -----------------------------------------------------------------------------------------------------


def reschedule(target: UUID | None, change: Change, channel: Channel | None) -> Payment:
    """Put what was sent in the place of what stands; what was not sent stays. A notice that was given is taken back,
    and a job that waits for the merchant goes on with its next run. Raises Refused."""
    for _ in range(MAX_TRIES):
        job = find(target, change.merchant, channel, NOT_RESCHEDULED)
        if job.state == Job.State.ENDED:
            raise Refused(NOT_RESCHEDULED, more="it has ended: start a new one")
        sequence = job.sequence
        registration = _change(job, change)
        payment = _record(job, RESCHEDULED, registration, sequence, change)
        if payment is not None:
            return payment
    raise Refused(BUSY, status=409)


def _change(job: Job, change: Change) -> Registration:
    """Change ``job`` in memory, and try the new one out; its registration."""
    parameters, now = change.parameters, change.now
    if "registrationId" in parameters:
        registration = chosen(parameters, change.merchant, job.channel)
        agreement, made = _agreement(job.id, registration, parameters, now)
        if made:
            # The shopper agreed to the job, not to one card: the new card goes on under the same agreement.
            agreement = _own_agreement(job)
        job.registration, job.agreement = registration.id, agreement.id if agreement is not None else None
    else:
        registration = registration_of(job)
        agreement = _own_agreement(job)
    sent = jobs.nested({name: value for name, value in parameters.values.items() if name != "paymentType"})
    if parameters.get("paymentType") in jobs.CHARGES:
        sent["paymentType"] = parameters["paymentType"]
    sent_job = sent.pop("job", {})
    before: dict[str, str] = dict(job.request.get("job", {}))
    if any(name in plans.TIMING for name in sent_job):
        before = {name: value for name, value in before.items() if name not in plans.TIMING}
    whole = {**before, **sent_job}
    plan = planned(whole, jobs.zone_of(job.channel, change.merchant), now, began=job.starts_at)
    request = {**job.request, **sent, "job": whole}
    next_at, ends_at = plan.following(now)
    changed = {
        **plan.columns(), "ends_at": ends_at, "request": request, "amount": Decimal(request["amount"]),
        "currency": request["currency"], "payment_type": request["paymentType"], "name": whole.get("name", ""),
        "next_at": next_at, "state": Job.State.ACTIVE, "reason": "", "declined": 0, "late": 0, "updated_at": now,
        "sequence": job.sequence + 1,
    }  # fmt: skip
    for name, value in changed.items():
        setattr(job, name, value)
    _try_out(job, registration, agreement, change)
    return registration


def _own_agreement(job: Job) -> Agreement | None:
    return Agreement.objects.get(pk=job.agreement) if job.agreement is not None else None


def pause(target: UUID | None, change: Change, channel: Channel | None) -> Payment:
    """Charge nobody until the job is rescheduled, with something or nothing; what would have run meanwhile is not made
    up for. Raises Refused: a job that is ending would lose its notice."""
    for _ in range(MAX_TRIES):
        job = find(target, change.merchant, channel, NOT_RESCHEDULED)
        if job.state != Job.State.ACTIVE:
            raise Refused(NOT_RESCHEDULED, more=_NOT_PAUSED[Job.State(job.state)])
        sequence = job.sequence
        job.state, job.reason, job.next_at = Job.State.SUSPENDED, Job.Reason.PAUSED, None
        job.sequence, job.updated_at = sequence + 1, change.now
        payment = _record(job, RESCHEDULED, registration_of(job, gone=True), sequence, change)
        if payment is not None:
            return payment
    raise Refused(BUSY, status=409)


_NOT_PAUSED: Final[Mapping[Job.State, str]] = {
    Job.State.ENDING: "notice was given: rescheduling it takes the notice back",
    Job.State.SUSPENDED: "it is suspended already",
    Job.State.ENDED: "it has ended",
}


def deschedule(target: UUID | None, change: Change, channel: Channel | None) -> Payment:
    """Give notice: the job ends after its notice period. A second notice changes nothing. Raises Refused."""
    for _ in range(MAX_TRIES):
        job = find(target, change.merchant, channel, NOT_DESCHEDULED)
        if job.state == Job.State.ENDED:
            raise Refused(NOT_DESCHEDULED, more="it has ended already")
        sequence = job.sequence
        give_notice(job, change.now)
        payment = _record(job, DESCHEDULED, registration_of(job, gone=True), sequence, change)
        if payment is not None:
            return payment
    raise Refused(BUSY, status=409)


def give_notice(job: Job, now: datetime) -> None:
    """Change ``job`` in memory to one that ends. What waits for the merchant charges nobody, and ends at once."""
    plan = plans.plan_of_row(job)
    end = plan.end_by_notice(now) if job.state != Job.State.SUSPENDED else now
    job.sequence += 1
    job.updated_at = now
    if end <= now:
        jobs.end_now(job, Job.Reason.NOTICE, now)
        return
    job.state, job.reason = Job.State.ENDING, Job.Reason.NOTICE
    job.next_at, job.ends_at = replace(plan, ends_at=end).following(now)


CHANGING: Final = tuple(
    field.attname
    for field in Job._meta.concrete_fields
    if field.attname not in ("id", "merchant_id", "channel_id", "created_at", "lease_until")
)


def _record(job: Job, kind: str, registration: Registration, sequence: int, change: Change) -> Payment | None:
    """Write the job as it is in memory, if it still is as it was read; None when it is not."""
    payment = jobs.record(job, kind, jobs.means_told(registration), at=change.now, request_id=change.trace.request)
    changes = {name: getattr(job, name) for name in CHANGING}
    recorded = store.record_change(
        payment, lambda write: write.update(job, changes, expecting={"sequence": sequence}),
        jobs.told(payment, job), trace=change.trace, idempotency=change.idempotency,
    )  # fmt: skip
    return payment if recorded else None


def registration_of(job: Job, *, gone: bool = False) -> Registration:
    """The registration of a job. Raises Refused for one that was deleted, unless ``gone`` does not matter."""
    found = Registration.objects.select_related("channel").get(pk=job.registration)
    found.merchant = job.merchant
    found.channel.merchant = job.merchant
    if found.status == Registration.Status.DELETED and not gone:
        message = "is required: the registration of this job was deleted"
        error = ParameterError(name="registrationId", message=message, code=registrations.REMOVED, known=True)
        raise Refused(registrations.REMOVED, [error])
    return found


# --- telling ------------------------------------------------------------------------------------------------------


def schedule_object(payment: Payment) -> dict[str, Any]:
    """What the schedules' endpoints answer of a record: the job's id, and what it charges."""
    body = payment_object(payment)
    body.pop("referencedId", None)
    body.pop("schedule", None)
    request: Mapping[str, str] = payment.request
    return body | {"id": payment.chain.hex, "paymentType": request["paymentType"]}


def job_object(job: Job, now: datetime) -> dict[str, Any]:
    """A job as it stands, with its last runs."""
    means = jobs.means_told(registration_of(job, gone=True))
    body = schedule_object(jobs.record(job, SCHEDULED, means, at=now, request_id=job.id))
    runs = JobRun.objects.filter(job=job.pk).order_by("-due_at")[:SHOWN_PAST_RUNS]
    body["runs"] = [run_object(run) for run in runs]
    return body


def run_object(run: JobRun) -> dict[str, Any]:
    """One run, as a schedule's answer tells of it."""
    told: dict[str, Any] = {"dueAt": clock.wire(run.due_at), "state": run.state, "attempt": run.attempt}
    if run.payment is not None:
        told["id"] = run.payment.hex
    if run.code:
        told["code"] = run.code
    if run.next_at is not None and run.state == JobRun.State.RETRYING:
        told["retryAt"] = clock.wire(run.next_at)
    if run.missed_until is not None:
        told["missedUntil"] = clock.wire(run.missed_until)
    return told

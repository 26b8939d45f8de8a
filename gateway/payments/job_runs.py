"""A run of a job: one due time, one payment, down the same line as every other.

A run begins under the job's lock: the statement that begins the payment also writes the run, which there can be only
once for a job and due time, and moves the job on to its next. Whoever dies after that leaves a payment that recovery
looks after, and a run that is looked at again until its payment has an answer; nothing is charged twice, and what is
in doubt is not repeated. No lock is held while an acquirer thinks. Source: Part B, Scheduling; docs/decisions/0022.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction

from gateway import clock, identifiers
from gateway.catalogue.conditions.situation import STORED_CARD
from gateway.catalogue.endpoints import ONE_CLICK
from gateway.catalogue.parse import Invalid, Parameters
from gateway.connectors.message import flat
from gateway.models import Agreement, Payment, Registration, Status
from gateway.payments import jobs, registrations, screening, store
from gateway.payments.agreements import refusal_of
from gateway.payments.intake import facts_of, first_payment
from gateway.payments.process import advance, begin, way_of
from gateway.payments.refusal import Refused
from gateway.payments.registrations import BUSY, VAULT_FAILED
from gateway.payments.request import PaymentRequest, Trace
from gateway.rows import Write
from gateway.scheduling import dunning
from gateway.scheduling.models import Job, JobRun
from gateway.scheduling.plan import Plan, plan_of_row

LIVE: Final = (Job.State.ACTIVE, Job.State.ENDING)
MADE_UP_FOR: Final = timedelta(days=7)
"""A run that is later than that is not made any more."""
MOST_LATE: Final = 3
"""Missed runs of one job that are made up for, one after the other; what was missed beyond is left out."""
FIRST_LOOK, LAST_LOOK = timedelta(minutes=1), timedelta(days=1)
"""A run whose payment has no answer is looked at after a minute, then ever more seldom."""
_INSTRUCTION: Final = "standingInstruction."
_NOT_SENT: Final = ("job.", f"{_INSTRUCTION}mode", f"{_INSTRUCTION}source", f"{_INSTRUCTION}industryPractice")
PASSING: Final = frozenset({VAULT_FAILED, BUSY})
"""Refusals that are nobody's fault."""
_NOW_OVER: Final = (f"{_INSTRUCTION}expiry", f"{_INSTRUCTION}numberOfInstallments")

log = structlog.get_logger(__name__)


# --- the request --------------------------------------------------------------------------------------------------


def request_of(
    job: Job, registration: Registration, agreement: Agreement | None, *, now: datetime, trace: Trace,
    due_at: datetime, attempt: int = 1,
) -> PaymentRequest:  # fmt: skip
    """The payment of one run, merchant-initiated, under the job's agreement. Raises Refused and Invalid."""
    parameters = _parameters(job, registration, now, again=attempt > 1)
    request = first_payment(
        parameters, merchant=job.merchant, channel=registration.channel, now=now, trace=trace,
        stored=registrations.stored_means(registration, parameters, now), agreement=agreement,
    )  # fmt: skip
    facts = {"facts": {"schedule": {"id": job.id.hex, "dueAt": clock.wire(due_at)}}}
    return replace(request, stored={**request.stored, **facts}, held=True, repeats=True)


def _parameters(job: Job, registration: Registration, now: datetime, *, again: bool) -> Parameters:
    """What the schedule was sent with, as a merchant would send it for this run."""
    channel = registration.channel
    sent = {name: value for name, value in flat(job.request).items() if not name.startswith(_NOT_SENT)}
    kind = sent.setdefault(f"{_INSTRUCTION}type", "RECURRING")
    if kind == "RECURRING":
        sent.setdefault(f"{_INSTRUCTION}recurringType", "SUBSCRIPTION")
    own = {
        "entityId": channel.entity_id,
        "merchantMemo": job.merchant_memo,
        "testMode": job.test_mode,
        f"{_INSTRUCTION}mode": "REPEATED",
        f"{_INSTRUCTION}source": "MIT",
        f"{_INSTRUCTION}industryPractice": "RESUBMISSION" if again else "",
    }
    facts = facts_of(channel, now) | {"registration"}
    if registration.means == "card":
        facts |= {STORED_CARD}
    pairs = [(name, value) for name, value in {**sent, **own}.items() if value]
    return ONE_CLICK.catalogue.parse(pairs, facts=facts, masks=channel.mask_card_data)


def trace_of(job: Job) -> Trace:
    """Nobody asked: the request log names the job."""
    return Trace(
        request=identifiers.row_id(), method="JOB", path=f"/v1/schedules/{job.id.hex}", at=clock.real(),
        entity=job.channel_id,
    )  # fmt: skip


# --- a run --------------------------------------------------------------------------------------------------------


def run(ident: UUID, sequence: int) -> bool:
    """Do what is due for a job as it was claimed: charge, leave out what is too late, or end. False when somebody else
    has done it."""
    job = Job.objects.select_related("merchant__division__psp", "channel").get(pk=ident)
    now, due_at = clock.now(job.merchant), job.next_at
    if job.sequence != sequence or job.state not in LIVE or due_at is None or due_at > now:
        return False
    job.channel.merchant = job.merchant
    if job.ends_at is not None and due_at >= job.ends_at:
        return end(job, Job.Reason.NOTICE if job.state == Job.State.ENDING else Job.Reason.COMPLETED, now)
    plan = plan_of_row(job)
    if now - due_at > MADE_UP_FOR:
        until = now - MADE_UP_FOR
        log.warning("runs_missed", job=job.id.hex, since=due_at.isoformat(), until=until.isoformat())
        missed = _row(job, due_at, JobRun.State.MISSED, now, missed_until=until)
        return _move_on(job, _next(plan, until), [missed])
    if not (job.merchant.works and job.channel.active):
        return _move_on(job, _next(plan, due_at), [_row(job, due_at, JobRun.State.SKIPPED, now)])
    try:
        return _charge(job, plan, due_at, now)
    except Refused as refused:
        return _refused(job, due_at, refused.code, now)
    except Invalid as invalid:
        return _refused(job, due_at, invalid.errors[0].code, now)


def _charge(job: Job, plan: Plan, due_at: datetime, now: datetime) -> bool:
    """Make the run's payment. Raises Refused and Invalid when there can be none."""
    registration, agreement = _means_of(job)
    request = request_of(job, registration, agreement, now=now, trace=trace_of(job), due_at=due_at)
    error = refusal_of(request.standing, job.merchant, now)
    if error is not None and error.name in _NOW_OVER:
        return end(job, Job.Reason.AGREEMENT_ENDED, now)
    row = _row(job, due_at, JobRun.State.OPEN, now, payment=request.payment, next_at=now + FIRST_LOOK)
    changes, rows = _moved_on(job, plan, due_at, now)

    def alongside(write: Write) -> None:
        write.follow(Job, changes, {"id": job.id})
        for one in (row, *rows):
            write.insert(JobRun, **one)

    payment = _pay(job, replace(request, alongside=alongside), lambda: _still(job))
    if payment is None:
        return False
    settle(row["id"], payment)
    return True


def _pay(job: Job, request: PaymentRequest, holds: Callable[[], bool]) -> Payment | None:
    """Begin the payment under the job's lock and, without any, take it down the line; None when ``holds``, asked under
    the lock, says that somebody else was faster."""
    way, looked_at = way_of(request), screening.plan(request)
    with transaction.atomic(durable=True):
        if not holds():
            return None
        payment = begin(request, way, looked_at)
    if payment.status == Status.STARTED:
        advance(payment, way.connector, request, looked_at)
    return payment


def _still(job: Job) -> bool:
    """Lock the job; whether it is as it was read."""
    locked = Job.objects.select_for_update().filter(pk=job.pk, sequence=job.sequence)
    return bool(locked.values_list("pk", flat=True))


def _means_of(job: Job) -> tuple[Registration, Agreement | None]:
    """Raises Refused for a registration that was deleted."""
    registration = Registration.objects.select_related("channel").get(pk=job.registration)
    registration.merchant = job.merchant
    registration.channel.merchant = job.merchant
    if registration.status == Registration.Status.DELETED:
        raise Refused(registrations.REMOVED)
    agreement = Agreement.objects.get(pk=job.agreement) if job.agreement is not None else None
    return registration, agreement


def _next(plan: Plan, after: datetime) -> dict[str, Any]:
    next_at, ends_at = plan.following(after)
    return {"next_at": next_at, "ends_at": ends_at}


def _moved_on(job: Job, plan: Plan, due_at: datetime, now: datetime) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The job's columns once this run has begun, and the rows of runs that are left out: when several were missed in a
    row, only the first are made up for."""
    changes = {**_next(plan, due_at), "sequence": job.sequence + 1, "lease_until": None, "late": 0}
    if changes["next_at"] > now or (changes["ends_at"] is not None and changes["next_at"] >= changes["ends_at"]):
        return changes, []
    if job.late + 1 < MOST_LATE:
        return changes | {"late": job.late + 1}, []
    missed = _row(job, changes["next_at"], JobRun.State.MISSED, now, missed_until=now)
    log.warning("runs_missed", job=job.id.hex, since=changes["next_at"].isoformat(), until=now.isoformat())
    return changes | _next(plan, now), [missed]


def _row(job: Job, due_at: datetime, state: str, now: datetime, **more: Any) -> dict[str, Any]:
    """The columns of a new JobRun."""
    columns = {"payment": None, "code": "", "next_at": None, "missed_until": None} | more
    return {
        "id": identifiers.row_id(), "job_id": job.id, "merchant_id": job.merchant_id, "due_at": due_at,
        "state": state, "attempt": 1, "earlier": [], "at": now, **columns,
    }  # fmt: skip


def _move_on(job: Job, changes: Mapping[str, Any], rows: list[dict[str, Any]]) -> bool:
    """Write the job's next time, if it still is as it was read, and the rows of runs that charge nobody."""
    write = Write()
    raised = {**changes, "sequence": job.sequence + 1, "lease_until": None}
    write.update(job, raised, expecting={"sequence": job.sequence})
    for row in rows:
        write.insert(JobRun, **row)
    return write.run()


def _refused(job: Job, due_at: datetime, code: str, now: datetime) -> bool:
    """There can be no payment: the run failed, and the job waits for the merchant. Raises Refused for what passes by
    itself: the job is due again when its lease ends."""
    if code in PASSING:
        raise Refused(code)
    course = dunning.course_of(code, "")
    reason = course.reason if isinstance(course, dunning.Stop) else Job.Reason.NOT_SET_UP
    return suspend(job, reason, now, _row(job, due_at, JobRun.State.FAILED, now, code=code))


# --- what came of it ----------------------------------------------------------------------------------------------


def look(ident: UUID) -> bool:
    """Look at the payment of a run that is OPEN, and do what follows from its answer; True."""
    row = JobRun.objects.get(pk=ident)
    if row.state == JobRun.State.OPEN and row.payment is not None:
        settle(ident, Payment.objects.get(pk=row.payment))
    return True


def settle(ident: UUID, payment: Payment) -> None:
    """Write down what came of a run's payment: paid, tried again later, failed; or when to look again."""
    with transaction.atomic(durable=True):
        # The job first, as everywhere: two locks in one order.
        job = Job.objects.select_for_update(of=("self",)).select_related("merchant", "channel").get(runs=ident)
        row = JobRun.objects.select_for_update().get(pk=ident)
        if row.state != JobRun.State.OPEN or row.payment != payment.id:
            return
        job.channel.merchant = job.merchant
        now = clock.now(job.merchant)
        row.lease_until, row.code = None, payment.result_code
        if payment.status == Status.APPROVED:
            row.state, row.next_at = JobRun.State.PAID, None
            if job.declined:
                Job.objects.filter(pk=job.pk).update(declined=0)
        elif payment.status == Status.DECLINED:
            _declined(job, row, payment, now)
        else:
            row.next_at = now + min(max(now - row.at, FIRST_LOOK), LAST_LOOK)
        row.save(update_fields=["state", "next_at", "code", "lease_until"])


def _declined(job: Job, row: JobRun, payment: Payment, now: datetime) -> None:
    """Decide on a declined run, under the job's lock: ``row`` is changed in memory, the job in the database."""
    declined = job.declined + 1
    details: Mapping[str, str] = payment.answer.get("resultDetails", {})
    course = dunning.course_of(payment.result_code, details.get("MerchantAdviceCode", ""))
    row.state, row.next_at = JobRun.State.FAILED, None
    Job.objects.filter(pk=job.pk).update(declined=declined)
    if job.state not in LIVE or job.next_at is None:
        return
    if isinstance(course, dunning.Stop) or declined >= dunning.MOST_DECLINED:
        job.declined = declined
        suspend(job, course.reason if isinstance(course, dunning.Stop) else Job.Reason.DECLINED, now)
        return
    after = dunning.wait(course, row.attempt)
    # The next run is a try, too, also one that came while this answer was waited for: nobody is charged for two
    # periods at once.
    later = JobRun.objects.filter(job=job.pk, due_at__gt=row.due_at, payment__isnull=False)
    if after is not None and now + after < job.next_at and not later.exists():
        row.state, row.next_at = JobRun.State.RETRYING, now + after


def retry(ident: UUID) -> bool:
    """Charge a declined run once more. False when somebody else has done so."""
    row = JobRun.objects.select_related("job", "job__merchant__division__psp", "job__channel").get(pk=ident)
    job = row.job
    job.channel.merchant = job.merchant
    now = clock.now(job.merchant)
    if row.state != JobRun.State.RETRYING or row.next_at is None or row.next_at > now:
        return False
    if job.state not in LIVE or not (job.merchant.works and job.channel.active):
        return _give_up(row)
    try:
        registration, agreement = _means_of(job)
        request = request_of(
            job, registration, agreement, now=now, trace=trace_of(job), due_at=row.due_at, attempt=row.attempt + 1
        )  # fmt: skip
    except (Refused, Invalid) as fault:
        code = fault.code if isinstance(fault, Refused) else fault.errors[0].code
        if code in PASSING:
            raise
        _give_up(row)
        course = dunning.course_of(code, "")
        return suspend(job, course.reason if isinstance(course, dunning.Stop) else Job.Reason.NOT_SET_UP, now)
    changes = {
        "state": JobRun.State.OPEN, "attempt": row.attempt + 1, "payment": request.payment, "at": now,
        "earlier": [*row.earlier, row.payment], "next_at": now + FIRST_LOOK, "lease_until": None, "code": "",
    }  # fmt: skip

    def holds() -> bool:
        mine = JobRun.objects.select_for_update().filter(pk=row.pk, state=row.state, attempt=row.attempt)
        return _still(job) and bool(mine.values_list("pk", flat=True))

    alongside = replace(request, alongside=lambda write: write.follow(JobRun, changes, {"id": row.id}))
    payment = _pay(job, alongside, holds)
    if payment is None:
        return False
    settle(ident, payment)
    return True


def _give_up(row: JobRun) -> bool:
    mine = JobRun.objects.filter(pk=row.pk, state=row.state, attempt=row.attempt)
    return bool(mine.update(state=JobRun.State.FAILED, next_at=None, lease_until=None))


# --- the job's own ends -------------------------------------------------------------------------------------------


def suspend(job: Job, reason: str, now: datetime, failed: Mapping[str, Any] | None = None) -> bool:
    """The job waits for its merchant, who is told; False when it was changed meanwhile. ``failed``: the row of the run
    that could not be made."""
    job.state, job.reason, job.next_at = Job.State.SUSPENDED, reason, None
    return _told(job, jobs.RESCHEDULED, now, failed)


def end(job: Job, reason: str, now: datetime) -> bool:
    """The job's time is over; the merchant is told. False when it was changed meanwhile."""
    jobs.end_now(job, reason, now)
    return _told(job, jobs.DESCHEDULED, now)


def _told(job: Job, kind: str, now: datetime, run: Mapping[str, Any] | None = None) -> bool:
    sequence, job.sequence, job.updated_at = job.sequence, job.sequence + 1, now
    registration = Registration.objects.get(pk=job.registration)
    payment = jobs.record(job, kind, jobs.means_told(registration), at=now, request_id=identifiers.row_id())
    names = ("state", "reason", "next_at", "ends_at", "ended_at", "declined", "sequence", "updated_at")
    changes = {name: getattr(job, name) for name in names} | {"lease_until": None}

    def changing(write: Write) -> None:
        write.update(job, changes, expecting={"sequence": sequence})
        if run is not None:
            write.insert(JobRun, **run)

    return store.record_change(payment, changing, jobs.told(payment, job), trace=None)

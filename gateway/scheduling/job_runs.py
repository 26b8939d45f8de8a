"""Runs of subscription jobs: charge one due time by one payment, retry declines, and record the outcome.

The statement that begins a run's payment also inserts the run, unique per job and due time, and moves the job to its
next time, if the job is as it was read. If the worker dies after that, recovery completes the payment, and the run
is rechecked until its payment has a result: nothing is charged twice, and an unknown outcome is not retried. No lock is
held during the acquirer call. Source: Part B, Scheduling; docs/decisions/0022, 0112.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q

from gateway.catalogue.conditions.request_facts import STORED_CARD_FACT
from gateway.catalogue.endpoints import ONE_CLICK_ENDPOINT
from gateway.catalogue.parse import InvalidParametersError, Parameters
from gateway.connectors.acquirer_message import flatten_body
from gateway.connectors.sepa.order_records import LAST_COLLECTION_PARAMETER
from gateway.core import clock, identifiers
from gateway.core.brands import DIRECT_DEBIT_METHOD
from gateway.core.money import format_amount
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE, VAULT_ERROR_CODE
from gateway.db.statement import WriteStatement, execute_sql
from gateway.models import Agreement, Payment, Registration, Status
from gateway.payments import account_updates, registrations, risk_screening, store
from gateway.payments.agreements import find_agreement_violation, has_agreement_limits
from gateway.payments.payment_request import PaymentRequest, RequestTrace
from gateway.payments.process import (
    ConcurrentPaymentUpdateError,
    advance_payment,
    begin_payment,
    process_payment,
    resolve_route,
)
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.request_builder import build_condition_facts, build_payment_request
from gateway.scheduling import dunning, job_records, retry_choice
from gateway.scheduling.job_plans import JobPlan, plan_from_job
from gateway.scheduling.job_reading import read_job, read_job_means
from gateway.scheduling.models import Job, JobRun

LIVE_JOB_STATES: Final = (Job.State.ACTIVE, Job.State.ENDING)
MAX_RUN_DELAY: Final = timedelta(days=7)
"""A run that is later than this is recorded as MISSED."""
MAX_LATE_RUNS: Final = 3
"""Late runs of one job that are made up for one after the other; further ones are recorded as MISSED."""
FIRST_RECHECK_DELAY, MAX_RECHECK_DELAY = timedelta(minutes=1), timedelta(days=1)
"""A run whose payment has no result is rechecked after a minute, then at growing intervals."""
_INSTRUCTION: Final = "standingInstruction."
_RUN_PARAMETERS: Final = ("job.", f"{_INSTRUCTION}mode", f"{_INSTRUCTION}source", f"{_INSTRUCTION}industryPractice")
TRANSIENT_REFUSAL_CODES: Final = frozenset({VAULT_ERROR_CODE, CONCURRENT_UPDATE_CODE})
"""Refusals that pass by themselves: the run is tried again when the job's lease ends."""
_AGREEMENT_END_PARAMETERS: Final = (f"{_INSTRUCTION}expiry", f"{_INSTRUCTION}numberOfInstallments")

log = structlog.get_logger(__name__)


# --- the request --------------------------------------------------------------------------------------------------


def build_run_request(
    job: Job,
    registration: Registration,
    agreement: Agreement | None,
    *,
    now: datetime,
    trace: RequestTrace,
    due_at: datetime,
    declined_code: str = "",
) -> PaymentRequest:
    """Build the merchant-initiated payment of one run, under the job's agreement. ``declined_code``: of a retry, the
    result code of the try before. Raises RequestRefusedError and
    InvalidParametersError."""
    next_at, ends_at = plan_from_job(job).following(due_at)
    last = ends_at is not None and next_at >= ends_at
    parameters = _build_run_parameters(job, registration, now, declined_code=declined_code, last=last)
    request = build_payment_request(
        parameters,
        merchant=job.merchant,
        channel=registration.channel,
        now=now,
        trace=trace,
        stored=registrations.load_stored_means(registration, parameters, now),
        agreement=agreement,
    )
    facts = {"facts": {"schedule": {"id": job.id.hex, "dueAt": clock.format_timestamp(due_at)}}}
    return replace(request, stored={**request.stored, **facts}, allow_duplicate=True)


def _build_run_parameters(
    job: Job, registration: Registration, now: datetime, *, declined_code: str, last: bool
) -> Parameters:
    """The schedule's parameters as a merchant would send them for this run. ``declined_code``: of a retry, the result
    code of the try before; ``last``: no run follows, so that the LAST_COLLECTION_PARAMETER of the
    schedule holds for it."""
    channel = registration.channel
    sent = {"amount": format_amount(job.amount), "currency": job.currency, "paymentType": job.payment_type}
    stored = flatten_body(job.request)
    sent |= {name: value for name, value in stored.items() if not name.startswith(_RUN_PARAMETERS)}
    if not last:
        sent.pop(LAST_COLLECTION_PARAMETER, None)
    kind = sent.setdefault(f"{_INSTRUCTION}type", "RECURRING")
    if kind == "RECURRING":
        sent.setdefault(f"{_INSTRUCTION}recurringType", "SUBSCRIPTION")
    own = {
        "entityId": channel.entity_id,
        "merchantMemo": job.merchant_memo,
        "testMode": job.test_mode,
        f"{_INSTRUCTION}mode": "REPEATED",
        f"{_INSTRUCTION}source": "MIT",
        f"{_INSTRUCTION}industryPractice": "RESUBMISSION" if declined_code in dunning.RESUBMITTED_CODES else "",
    }
    facts = build_condition_facts(channel, now) | {"registration"}
    if registration.means == "card":
        facts |= {STORED_CARD_FACT}
    pairs = [(name, value) for name, value in {**sent, **own}.items() if value]
    return ONE_CLICK_ENDPOINT.catalogue.parse(pairs, facts=facts, masks=channel.mask_card_data)


def build_job_trace(job: Job) -> RequestTrace:
    """The trace of a run, which has no HTTP request: the request log shows method JOB and the job's path."""
    return RequestTrace(method="JOB", path=f"/v1/schedules/{job.id.hex}", entity=job.channel_id)


# --- a run --------------------------------------------------------------------------------------------------------


def run_job(ident: UUID, sequence: int) -> bool:
    """Do what is due for a claimed job: charge, record missed runs, or end it. ``sequence``: of the claimed row. False
    when another worker was first."""
    job = read_job(ident)
    now, due_at = clock.merchant_now(job.merchant), job.next_at
    if job.sequence != sequence or job.state not in LIVE_JOB_STATES or due_at is None or due_at > now:
        return False
    if job.ends_at is not None and due_at >= job.ends_at:
        return end_job(job, Job.Reason.NOTICE if job.state == Job.State.ENDING else Job.Reason.COMPLETED, now)
    plan = plan_from_job(job)
    if now - due_at > MAX_RUN_DELAY:
        until = now - MAX_RUN_DELAY
        log.warning("job_runs_missed", job=job.id.hex, since=due_at.isoformat(), until=until.isoformat())
        missed = _build_run_row(job, due_at, JobRun.State.MISSED, now, missed_until=until)
        return _write_next_run(job, _build_next_columns(plan, until), [missed])
    if not (job.merchant.works and job.channel.active):
        return _write_next_run(
            job, _build_next_columns(plan, due_at), [_build_run_row(job, due_at, JobRun.State.SKIPPED, now)]
        )
    try:
        return _charge_run(job, plan, due_at, now)
    except RequestRefusedError as refused:
        return _record_refused_run(job, due_at, refused.code, now)
    except InvalidParametersError as invalid:
        return _record_refused_run(job, due_at, invalid.errors[0].code, now)


def _charge_run(job: Job, plan: JobPlan, due_at: datetime, now: datetime) -> bool:
    """Make the payment of a run; False when the job changed since it was read. Raises RequestRefusedError and
    InvalidParametersError when none is possible."""
    registration, agreement = _load_job_means(job)
    registration = account_updates.refresh_stored_card(registration)
    request = build_run_request(job, registration, agreement, now=now, trace=build_job_trace(job), due_at=due_at)
    error = find_agreement_violation(request.agreement_use, job.merchant, now)
    if error is not None and error.name in _AGREEMENT_END_PARAMETERS:
        return end_job(job, Job.Reason.AGREEMENT_ENDED, now)
    row = _build_run_row(
        job, due_at, JobRun.State.OPEN, now, payment=request.payment, next_at=now + FIRST_RECHECK_DELAY
    )
    changes, rows = _advance_job_columns(job, plan, due_at, now)

    def extra_writes(write: WriteStatement) -> None:
        write.update(job, changes, expecting={"sequence": job.sequence})
        for columns in (row, *rows):
            write.insert(JobRun, **columns)

    request = replace(request, extra_writes=extra_writes)
    use = request.agreement_use
    if use is not None and use.agreement is not None and has_agreement_limits(use.agreement):
        # Its count is another row that may change meanwhile. Whoever locks both locks the job first.
        payment = _process_locked(request, lambda: _lock_unchanged_job(job))
    else:
        payment = _process_unless_changed(request)
    if payment is None:
        return False
    if payment.status != Status.APPROVED or not _mark_run_paid(row["id"], payment):
        record_run_outcome(row["id"], payment)
    return True


def _process_unless_changed(request: PaymentRequest) -> Payment | None:
    """Process a payment; None when the row that its ``extra_writes`` change was changed by another worker."""
    try:
        return process_payment(request)
    except ConcurrentPaymentUpdateError:
        return None


def _process_locked(request: PaymentRequest, lock: Callable[[], bool]) -> Payment | None:
    """Begin the payment under the job's row lock and process it after the lock is released. ``lock``: takes the lock,
    and returns False if the row changed since it was read; then the result is None."""
    request = replace(request, row_locked=True)
    chosen_route, screening_plan = resolve_route(request), risk_screening.plan_payment_screening(request)
    with transaction.atomic(durable=True):
        if not lock():
            return None
        payment = begin_payment(request, chosen_route, screening_plan)
    if payment.status == Status.STARTED:
        advance_payment(payment, chosen_route.connector, request, screening_plan)
    return payment


def _lock_unchanged_job(job: Job) -> bool:
    """Lock the job's row; False when it changed since it was read."""
    locked = Job.objects.select_for_update().filter(pk=job.pk, sequence=job.sequence)
    return bool(locked.values_list("pk", flat=True))


def _load_job_means(job: Job) -> tuple[Registration, Agreement | None]:
    """The job's registration and agreement. Raises RequestRefusedError for a deleted registration."""
    registration, agreement = read_job_means(job)
    if registration.status == Registration.Status.DELETED:
        raise RequestRefusedError(registrations.REGISTRATION_DELETED_CODE)
    return registration, agreement


def _build_next_columns(plan: JobPlan, after: datetime) -> dict[str, Any]:
    next_at, ends_at = plan.following(after)
    return {"next_at": next_at, "ends_at": ends_at}


def _advance_job_columns(
    job: Job, plan: JobPlan, due_at: datetime, now: datetime
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The job's columns once this run has begun, and the rows of runs recorded as MISSED: of several late runs in a
    row, only MAX_LATE_RUNS are made up for."""
    changes = {**_build_next_columns(plan, due_at), "sequence": job.sequence + 1, "lease_until": None, "late": 0}
    if changes["next_at"] > now or (changes["ends_at"] is not None and changes["next_at"] >= changes["ends_at"]):
        return changes, []
    if job.late + 1 < MAX_LATE_RUNS:
        return changes | {"late": job.late + 1}, []
    missed = _build_run_row(job, changes["next_at"], JobRun.State.MISSED, now, missed_until=now)
    log.warning("job_runs_missed", job=job.id.hex, since=changes["next_at"].isoformat(), until=now.isoformat())
    return changes | _build_next_columns(plan, now), [missed]


def _build_run_row(job: Job, due_at: datetime, state: str, now: datetime, **changed: Any) -> dict[str, Any]:
    """The columns of a new JobRun; ``changed``: columns with other values than the defaults."""
    columns = {"payment": None, "code": "", "next_at": None, "missed_until": None} | changed
    return {
        "id": identifiers.row_id(),
        "job_id": job.id,
        "merchant_id": job.merchant_id,
        "due_at": due_at,
        "state": state,
        "attempt": 1,
        "earlier": [],
        "at": now,
        **columns,
    }


def _write_next_run(job: Job, changes: Mapping[str, Any], rows: list[dict[str, Any]]) -> bool:
    """Write the job's next time and the rows of runs without a payment; False if the job changed since it was read."""
    write = WriteStatement()
    raised = {**changes, "sequence": job.sequence + 1, "lease_until": None}
    write.update(job, raised, expecting={"sequence": job.sequence})
    for row in rows:
        write.insert(JobRun, **row)
    return write.run()


def _record_refused_run(job: Job, due_at: datetime, code: str, now: datetime) -> bool:
    """Record a run without a possible payment as FAILED and suspend the job. Raises RequestRefusedError for
    TRANSIENT_REFUSAL_CODES: the job is due again when its lease ends."""
    if code in TRANSIENT_REFUSAL_CODES:
        raise RequestRefusedError(code)
    decision = dunning.decide_dunning(code, "")
    reason = decision.reason if isinstance(decision, dunning.DunningStop) else Job.Reason.NOT_SET_UP
    return suspend_job(job, reason, now, _build_run_row(job, due_at, JobRun.State.FAILED, now, code=code))


# --- outcomes -----------------------------------------------------------------------------------------------------


def recheck_run(ident: UUID) -> bool:
    """Record the outcome of an OPEN run if its payment has a result by now; always True."""
    row = JobRun.objects.get(pk=ident)
    if row.state == JobRun.State.OPEN and row.payment is not None:
        record_run_outcome(ident, Payment.objects.get(pk=row.payment))
    return True


# The job is locked before the run, in the same order everywhere.
_MARK_PAID: Final = """
WITH job AS MATERIALIZED (
    SELECT id FROM scheduling_job WHERE id = (SELECT job_id FROM scheduling_jobrun WHERE id = %(run)s::uuid) FOR UPDATE
), paid AS (
    UPDATE scheduling_jobrun r SET state = 'PAID', next_at = NULL, lease_until = NULL, code = %(code)s::text FROM job
    WHERE r.id = %(run)s::uuid AND r.job_id = job.id AND r.state = 'OPEN' AND r.payment = %(payment)s::uuid
    RETURNING r.job_id
), forgotten AS (
    UPDATE scheduling_job j SET declined = 0 FROM paid WHERE j.id = paid.job_id AND j.declined > 0
)
SELECT count(*) FROM paid
"""


def _mark_run_paid(ident: UUID, payment: Payment) -> bool:
    """Set an OPEN run whose payment is approved to PAID, in one statement. False when the run has another state."""
    values = {"run": ident, "payment": payment.id, "code": payment.result_code}
    return bool(execute_sql(_MARK_PAID, values)[0][0])


def record_run_outcome(ident: UUID, payment: Payment) -> None:
    """Record the outcome of a run's payment: PAID, RETRYING or FAILED, or the time of the next recheck."""
    with transaction.atomic(durable=True):
        # Lock the job before the run, in the same order everywhere.
        job = Job.objects.select_for_update(of=("self",)).select_related("merchant", "channel").get(runs=ident)
        row = JobRun.objects.select_for_update().get(pk=ident)
        if row.state != JobRun.State.OPEN or row.payment != payment.id:
            return
        job.channel.merchant = job.merchant
        now = clock.merchant_now(job.merchant)
        row.lease_until, row.code = None, payment.result_code
        if payment.status == Status.APPROVED:
            row.state, row.next_at = JobRun.State.PAID, None
            if job.declined:
                Job.objects.filter(pk=job.pk).update(declined=0)
        elif payment.status == Status.DECLINED:
            _decide_declined_run(job, row, payment, now)
        else:
            row.next_at = now + min(max(now - row.at, FIRST_RECHECK_DELAY), MAX_RECHECK_DELAY)
        row.save(update_fields=["state", "next_at", "code", "lease_until", "retry_choices"])


def _decide_declined_run(job: Job, row: JobRun, payment: Payment, now: datetime) -> None:
    """Apply dunning to a declined run, under the job's lock: changes ``row`` in memory and the job in the database."""
    declined = job.declined + 1
    details: Mapping[str, str] = payment.answer.get("resultDetails", {})
    if payment.method == DIRECT_DEBIT_METHOD:
        decision = dunning.decide_debit_dunning(payment.result_code, details.get("AcquirerResponse", ""))
    else:
        decision = dunning.decide_dunning(payment.result_code, details.get("MerchantAdviceCode", ""))
    row.state, row.next_at = JobRun.State.FAILED, None
    Job.objects.filter(pk=job.pk).update(declined=declined)
    if job.state not in LIVE_JOB_STATES or job.next_at is None:
        return
    if isinstance(decision, dunning.DunningStop) or declined >= dunning.MAX_CONSECUTIVE_DECLINES:
        job.declined = declined
        suspend_job(job, decision.reason if isinstance(decision, dunning.DunningStop) else Job.Reason.DECLINED, now)
        return
    # No retry once the next run is due or was made while this result was pending.
    choice = retry_choice.choose_retry(job.channel, payment, decision, row.attempt, now, job.next_at)
    if choice is not None and not _has_later_charge(row):
        row.state, row.next_at = JobRun.State.RETRYING, choice.at
        row.retry_choices = [*row.retry_choices, dict(choice.figures)]


def _has_later_charge(row: JobRun) -> bool:
    """Whether a later run of the job was charged or tried: a shopper is not charged for two periods at once."""
    return JobRun.objects.filter(job=row.job_id, due_at__gt=row.due_at, payment__isnull=False).exists()


def retry_run(ident: UUID) -> bool:
    """Charge a declined run once more. False when another worker was first, or the job has something due, which comes
    first."""
    row = JobRun.objects.select_related("job", "job__merchant__division__psp", "job__channel").get(pk=ident)
    job = row.job
    job.channel.merchant = job.merchant
    now = clock.merchant_now(job.merchant)
    if row.state != JobRun.State.RETRYING or row.next_at is None or row.next_at > now:
        return False
    if job.next_at is not None and job.next_at <= now:
        return False
    if job.state not in LIVE_JOB_STATES or not (job.merchant.works and job.channel.active) or _has_later_charge(row):
        return _end_run(row)
    try:
        registration, agreement = _load_job_means(job)
        registration = account_updates.refresh_stored_card(registration)
        request = build_run_request(
            job,
            registration,
            agreement,
            now=now,
            trace=build_job_trace(job),
            due_at=row.due_at,
            declined_code=row.code,
        )
    except (RequestRefusedError, InvalidParametersError) as fault:
        code = fault.code if isinstance(fault, RequestRefusedError) else fault.errors[0].code
        if code in TRANSIENT_REFUSAL_CODES:
            raise
        _end_run(row)
        decision = dunning.decide_dunning(code, "")
        return suspend_job(
            job, decision.reason if isinstance(decision, dunning.DunningStop) else Job.Reason.NOT_SET_UP, now
        )
    changes = {
        "state": JobRun.State.OPEN,
        "attempt": row.attempt + 1,
        "payment": request.payment,
        "at": now,
        "earlier": [*row.earlier, row.payment],
        "next_at": now + FIRST_RECHECK_DELAY,
        "lease_until": None,
        "code": "",
    }

    def lock() -> bool:
        mine = JobRun.objects.select_for_update().filter(pk=row.pk, state=row.state, attempt=row.attempt)
        return _lock_unchanged_job(job) and bool(mine.values_list("pk", flat=True))

    request = replace(request, extra_writes=lambda write: write.update_related(JobRun, changes, {"id": row.id}))
    payment = _process_locked(request, lock)
    if payment is None:
        return False
    record_run_outcome(ident, payment)
    return True


def _end_run(row: JobRun) -> bool:
    """Set a run to FAILED without a further try; False when it changed since it was read."""
    mine = JobRun.objects.filter(pk=row.pk, state=row.state, attempt=row.attempt)
    return bool(mine.update(state=JobRun.State.FAILED, next_at=None, lease_until=None))


def record_late_booking(payment: Payment, now: datetime) -> None:
    """Set the run whose declined ``payment`` its bank booked after all to PAID: it is not tried again. If it is the
    job's last run, the declines in a row end with it, and a job that they suspended goes on with its next run. A run
    whose next try is under way takes that try's outcome. Must run in the transaction that approves the payment."""
    ident = identifiers.parse_id(payment.answer.get("facts", {}).get("schedule", {}).get("id", ""))
    # Lock the job before the run, in the same order everywhere.
    jobs = Job.objects.select_for_update(of=("self",)).select_related("merchant", "channel")
    job = jobs.filter(pk=ident, merchant=payment.merchant_id).first() if ident is not None else None
    if job is None:
        return
    tried = Q(payment=payment.id) | Q(earlier__contains=[payment.id])
    declined = JobRun.objects.select_for_update().filter(tried, job=job.pk, state__in=_DECLINED_RUN_STATES)
    row = declined.first()
    if row is None:
        return
    row.state, row.next_at, row.lease_until, row.code = JobRun.State.PAID, None, None, payment.result_code
    row.save(update_fields=["state", "next_at", "lease_until", "code"])
    if JobRun.objects.filter(job=job.pk, due_at__gt=row.due_at, payment__isnull=False).exists():
        return
    if job.state == Job.State.SUSPENDED and job.reason in _DECLINE_REASONS:
        resume_job(job, now)
    elif job.declined:
        Job.objects.filter(pk=job.pk).update(declined=0)


_DECLINED_RUN_STATES: Final = (JobRun.State.RETRYING, JobRun.State.FAILED)
_DECLINE_REASONS: Final = frozenset(
    {Job.Reason.DECLINED, Job.Reason.DO_NOT_RETRY, Job.Reason.AUTHENTICATION_NEEDED, Job.Reason.CARD_EXPIRED}
)
"""Why a declined run suspends its job, where nothing else has to be set right."""


# --- the job's own ends -------------------------------------------------------------------------------------------


def suspend_job(job: Job, reason: str, now: datetime, failed: Mapping[str, Any] | None = None) -> bool:
    """Suspend a job until its merchant reschedules, and notify the merchant. ``failed``: the row of a run without a
    payment. False when the job changed since it was read."""
    job.state, job.reason, job.next_at = Job.State.SUSPENDED, reason, None
    return _record_job_state(job, job_records.RESCHEDULE_PAYMENT_TYPE, now, failed)


def resume_job(job: Job, now: datetime) -> bool:
    """Take up a suspended job with its next run, and notify the merchant. False when the job changed since it was
    read."""
    job.channel.merchant = job.merchant
    job.state, job.reason, job.declined = Job.State.ACTIVE, Job.Reason.NONE, 0
    job.next_at, job.ends_at = plan_from_job(job).following(now)
    return _record_job_state(job, job_records.RESCHEDULE_PAYMENT_TYPE, now)


def end_job(job: Job, reason: str, now: datetime) -> bool:
    """End a job and notify the merchant. False when the job changed since it was read."""
    job_records.mark_job_ended(job, reason, now)
    return _record_job_state(job, job_records.DESCHEDULE_PAYMENT_TYPE, now)


def _record_job_state(job: Job, kind: str, now: datetime, run: Mapping[str, Any] | None = None) -> bool:
    sequence, job.sequence, job.updated_at = job.sequence, job.sequence + 1, now
    registration = Registration.objects.get(pk=job.registration)
    payment = job_records.build_job_record(
        job, kind, job_records.render_job_means(registration), at=now, request_id=identifiers.row_id()
    )
    names = ("state", "reason", "next_at", "ends_at", "ended_at", "declined", "sequence", "updated_at")
    changes = {name: getattr(job, name) for name in names} | {"lease_until": None}

    def changing(write: WriteStatement) -> None:
        write.update(job, changes, expecting={"sequence": sequence})
        if run is not None:
            write.insert(JobRun, **run)

    return store.insert_record_only_payment(
        payment, changing, job_records.build_job_notification(payment, job), trace=None
    )

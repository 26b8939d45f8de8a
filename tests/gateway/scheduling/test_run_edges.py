"""Runs of jobs: each condition of a run, a retry and a recheck by itself, and which rows a claim takes.

Source: Part B, Scheduling; docs/decisions/0022.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import pytest

from gateway.connectors.sepa.order_records import LAST_COLLECTION_PARAMETER
from gateway.core import clock, identifiers
from gateway.models import Channel, Division, Merchant, Payment, Registration
from gateway.scheduling import job_plans, job_runs, job_timer
from gateway.scheduling.models import Job, JobRun
from tests.gateway.scheduling.test_runs import NO_MONEY, SILENT, charges, make_due, subscribe
from tests.support.fixtures import Shop
from tests.support.subscriptions import lease_out, started, step, store_card

pytestmark = pytest.mark.django_db
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def start(shop: Shop) -> Job:
    return Job.objects.get(pk=started(shop.api, store_card(shop.api)).id)


# --- a run --------------------------------------------------------------------------------------------------------


def test_a_job_that_is_not_due_yet_is_not_run(shop: Shop) -> None:
    """Whoever claimed it: the time is compared again."""
    job = start(shop)
    assert not job_runs.run_job(job.pk, job.sequence)
    assert (charges(), JobRun.objects.count()) == (0, 0)


@pytest.mark.parametrize("state", [Job.State.SUSPENDED, Job.State.ENDED])
def test_a_job_that_does_not_run_is_not_run(shop: Shop, state: str) -> None:
    job = start(shop)
    make_due(shop.merchant)
    Job.objects.filter(pk=job.pk).update(state=state, next_at=None)
    assert not job_runs.run_job(job.pk, job.sequence)
    assert charges() == 0


def test_a_run_in_time_ends_the_count_of_late_ones(shop: Shop) -> None:
    job = start(shop)
    Job.objects.filter(pk=job.pk).update(late=job_runs.MAX_LATE_RUNS - 1)
    step(shop.merchant)
    assert (charges(), Job.objects.get(pk=job.pk).late) == (1, 0)


@pytest.mark.parametrize("ending", [False, True])
def test_at_its_very_end_a_job_ends_and_charges_nothing(shop: Shop, ending: bool) -> None:
    job = start(shop)
    state = Job.State.ENDING if ending else Job.State.ACTIVE
    Job.objects.filter(pk=job.pk).update(ends_at=job.next_at, state=state)
    step(shop.merchant)
    job.refresh_from_db()
    reason = Job.Reason.NOTICE if ending else Job.Reason.COMPLETED
    assert (job.state, job.reason, job.next_at, charges()) == (Job.State.ENDED, reason, None, 0)


@pytest.mark.parametrize(
    ("end", "last"), [("2031-04-01 05:59:59", 2), ("2031-04-01 06:00:00", 3), ("2031-04-15 00:00:00", 3), ("", None)]
)
def test_only_the_run_that_none_follows_is_the_last_collection(shop: Shop, end: str, last: int | None) -> None:
    """A collection whose end date is its own moment is made. Source: EPC130-08, sequence type FNAL."""
    bounds = {"job__month": "*", "job__dayOfMonth": "1", "job__hour": "6", "job__startDate": "2031-01-15 00:00:00"}
    bounds |= {"job__endDate": end} if end else {}
    job = Job.objects.get(pk=started(shop.api, store_card(shop.api), **bounds).id)
    job.request = {**job.request, "customParameters": {"SEPA_lastCollection": "true"}}
    registration = Registration.objects.select_related("channel").get(pk=job.registration)
    now, plan = clock.merchant_now(shop.merchant), job_plans.plan_from_job(job)
    told = [
        job_runs.build_run_request(
            job, registration, None, now=now, trace=job_runs.build_job_trace(job), due_at=due
        ).parameters.get(LAST_COLLECTION_PARAMETER)
        for due in plan.runs(now, 3)
    ]
    assert [at for at, word in enumerate(told, 1) if word == "true"] == ([last] if last is not None else [])


# --- outcomes -----------------------------------------------------------------------------------------------------


def test_the_outcome_of_another_payment_says_nothing_about_a_run(shop: Shop) -> None:
    start(shop)
    step(shop.merchant)
    paid = JobRun.objects.get()
    JobRun.objects.update(state="OPEN", payment=identifiers.row_id(), next_at=clock.real_now())
    assert paid.payment is not None
    job_runs.record_run_outcome(paid.pk, Payment.objects.get(pk=paid.payment))
    assert JobRun.objects.get().state == "OPEN"


@pytest.mark.parametrize(
    ("age", "wait"),
    [
        (timedelta(0), job_runs.FIRST_RECHECK_DELAY),
        (HOUR, HOUR),
        (23 * HOUR, 23 * HOUR),
        (30 * DAY, job_runs.MAX_RECHECK_DELAY),
    ],
)
def test_a_run_in_doubt_is_rechecked_ever_more_seldom_but_daily(
    shop: Shop, age: timedelta, wait: timedelta, settings: object
) -> None:
    settings.GATEWAY_ACQUIRER_TIMEOUT_S = 0.2  # type: ignore[attr-defined]
    subscribe(shop.api, SILENT)
    step(shop.merchant)
    now = clock.merchant_now(Merchant.objects.get(pk=shop.merchant.pk))
    JobRun.objects.update(at=now - age)
    job_runs.recheck_run(JobRun.objects.get().pk)
    again = JobRun.objects.get().next_at
    assert again is not None
    assert wait <= again - now < wait + timedelta(minutes=1)


@pytest.mark.parametrize(("later", "state"), [("SKIPPED", "RETRYING"), ("MISSED", "RETRYING"), ("PAID", "FAILED")])
def test_only_a_later_run_that_made_a_payment_ends_the_retries(shop: Shop, later: str, state: str) -> None:
    """A shopper is not charged for two periods at once; a period that was left out charged nothing."""
    job = subscribe(shop.api, NO_MONEY)
    step(shop.merchant)
    run = JobRun.objects.get()
    JobRun.objects.create(
        job=job,
        merchant=shop.merchant,
        due_at=run.due_at + DAY,
        state=later,
        at=run.at,
        payment=identifiers.row_id() if later == "PAID" else None,
    )
    JobRun.objects.filter(pk=run.pk).update(state="OPEN")
    Job.objects.update(declined=0)
    job_runs.recheck_run(run.pk)
    run.refresh_from_db()
    assert run.state == state
    assert (run.next_at is not None) == (state == "RETRYING")


# --- retries ------------------------------------------------------------------------------------------------------


def switch_off(shop: Shop, what: str, job: Job) -> None:
    if what == "channel":
        Channel.objects.filter(pk=shop.channel.pk).update(active=False)
    elif what == "merchant":
        Merchant.objects.filter(pk=shop.merchant.pk).update(active=False)
    elif what == "division":
        Division.objects.filter(pk=shop.merchant.division_id).update(active=False)
    else:
        Job.objects.filter(pk=job.pk).update(state=what, next_at=None)


@pytest.mark.parametrize("what", ["channel", "merchant", "division", "SUSPENDED", "ENDED"])
def test_a_retry_is_given_up_where_no_payment_is_made_any_more(shop: Shop, what: str) -> None:
    job = subscribe(shop.api, NO_MONEY)
    step(shop.merchant)
    run = JobRun.objects.get()
    assert (run.state, charges()) == ("RETRYING", 1)
    switch_off(shop, what, job)
    make_due(shop.merchant)
    assert job_runs.retry_run(run.pk)
    run.refresh_from_db()
    assert (run.state, run.next_at, run.attempt, charges()) == ("FAILED", None, 1, 1)


def test_a_retry_is_not_made_before_its_time_nor_of_what_is_not_waiting(shop: Shop) -> None:
    subscribe(shop.api, NO_MONEY)
    step(shop.merchant)
    run = JobRun.objects.get()
    assert not job_runs.retry_run(run.pk), "its time has not come"
    make_due(shop.merchant)
    for state in ("OPEN", "PAID", "FAILED"):
        JobRun.objects.update(state=state)
        assert not job_runs.retry_run(run.pk)
    assert charges() == 1


def test_every_try_of_a_run_is_remembered_in_order(shop: Shop) -> None:
    subscribe(shop.api, NO_MONEY)
    tries: list[UUID] = []
    for _ in range(3):
        step(shop.merchant)
        run = JobRun.objects.get()
        assert run.payment is not None
        tries.append(run.payment)
        assert run.earlier == tries[:-1]
    assert list(Payment.objects.filter(payment_type="DB").order_by("id").values_list("pk", flat=True)) == tries


# --- claims -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("place", [0, 1])
def test_a_job_that_fails_stops_no_other_and_is_due_again_after_its_lease(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, place: int, alone: bool
) -> None:
    jobs = [start(shop), start(shop)]
    failing, run = jobs[place], job_runs.run_job
    make_due(shop.merchant)
    merchant = shop.merchant if alone else None

    def fail_for_one(ident: UUID, sequence: int) -> bool:
        if ident == failing.pk:
            raise RuntimeError
        return run(ident, sequence)

    with monkeypatch.context() as fault:
        fault.setattr(job_runs, "run_job", fail_for_one)
        assert job_timer.run_due_jobs(merchant) == 1
    assert [row.job_id for row in JobRun.objects.all()] == [jobs[1 - place].pk]
    assert job_timer.run_due_jobs(merchant) == 0, "it is leased"
    lease_out()
    assert job_timer.run_due_jobs(merchant) == 1
    assert (charges(), JobRun.objects.filter(job=failing).count()) == (2, 1)


def test_a_tick_takes_up_no_more_rows_than_its_most_and_the_next_one_goes_on(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        start(shop)
    make_due(shop.merchant)
    monkeypatch.setattr(job_timer, "JOB_CLAIM_SIZE", 1)
    monkeypatch.setattr(job_timer, "MAX_JOBS_PER_TICK", 2)
    assert job_timer.run_due_jobs(shop.merchant) == 2
    assert charges() == 2
    assert job_timer.run_due_jobs(shop.merchant) == 1
    assert charges() == 3


def set_due(shop: Shop, ahead: timedelta, back: list[int]) -> dict[int, UUID]:
    """Jobs of the merchant, due so many hours ago by its clock, which is ``ahead``."""
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
    shop.merchant.clock_offset = ahead
    found = {}
    for hours in back:
        job = start(shop)
        Job.objects.filter(pk=job.pk).update(next_at=clock.real_now() + ahead - HOUR * hours)
        found[hours] = job.pk
    return found


def claim(limit: int, merchant: Merchant | None = None, now: datetime | None = None) -> list[UUID]:
    return [row[0] for row in job_timer.claim_due_jobs(Job, limit, now or clock.real_now(), merchant)]


@pytest.mark.parametrize("ahead", [timedelta(0), 5 * DAY, -5 * DAY])
@pytest.mark.parametrize("alone", [False, True])
def test_the_earliest_due_jobs_are_claimed_first_and_once(shop: Shop, ahead: timedelta, alone: bool) -> None:
    jobs = set_due(shop, ahead, [1, 4, 2, 5, 3, -1])
    merchant = shop.merchant if alone else None
    assert claim(2, merchant) == [jobs[5], jobs[4]]
    assert claim(2, merchant) == [jobs[3], jobs[2]]
    assert claim(9, merchant) == [jobs[1]]
    assert claim(9, merchant) == []


@pytest.mark.parametrize("ahead", [timedelta(0), 5 * DAY, -5 * DAY])
def test_a_clock_that_is_ahead_makes_no_other_merchants_job_due(shop: Shop, stranger: Shop, ahead: timedelta) -> None:
    mine, theirs = set_due(shop, ahead, [1]), set_due(stranger, timedelta(0), [1, -2])
    assert set(claim(9)) == {mine[1], theirs[1]}
    assert claim(9, stranger.merchant) == claim(9, shop.merchant) == []


def test_the_next_time_of_a_merchant_is_its_own_of_jobs_and_of_runs(shop: Shop, stranger: Shop) -> None:
    job, other = start(shop), start(stranger)
    now = clock.real_now()
    Job.objects.filter(pk=job.pk).update(next_at=now + 5 * HOUR)
    Job.objects.filter(pk=other.pk).update(next_at=now + HOUR)
    assert job_timer.find_next_job_time(shop.merchant) == now + 5 * HOUR
    for hours, state in ((3, "RETRYING"), (None, "PAID")):
        JobRun.objects.create(
            job=job,
            merchant=shop.merchant,
            due_at=now - (HOUR if hours else DAY),
            state=state,
            at=now,
            next_at=now + HOUR * hours if hours else None,
        )
    assert job_timer.find_next_job_time(shop.merchant) == now + 3 * HOUR
    assert job_timer.find_next_job_time(stranger.merchant) == now + HOUR

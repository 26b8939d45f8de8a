"""Runs of jobs: once and only once, whichever process dies; what follows a decline; what is missed, skipped or cannot
be charged.

Source: Part B, Scheduling; docs/decisions/0022; goals R1.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import override_settings

from gateway.connectors.port import AcquirerReply
from gateway.core import clock
from gateway.core.money import Money
from gateway.core.result_codes import ResultFamily, find_result_family
from gateway.core.secret import Secret
from gateway.models import Channel, Merchant, Notification, Payment, PaymentEvent, Registration, RequestLog, Status
from gateway.payments import store
from gateway.payments.job_hooks import JOB_HOOKS
from gateway.payments.outcomes import Booked
from gateway.scheduling import dunning, job_runs, job_timer
from gateway.scheduling.models import Job, JobRun
from gateway.vault.sealing import current_vault
from tests.support.client import Api
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.recovery import recover_after
from tests.support.stub import StubProcess, account_at_stub
from tests.support.subscriptions import lease_out, schedule, started, step, store_card
from tests.support.threads import at_once

NO_MONEY, STOLEN, SOFT, LATER, SILENT = (
    "4000015500000005", "4000015900000001", "4000030001000008", "4000017600000000", "4000090003000000",
)  # fmt: skip
STOPPED = {
    "4000060103000002": "DO_NOT_RETRY",
    STOLEN: "DO_NOT_RETRY",
    SOFT: "AUTHENTICATION_NEEDED",
    "4000015700000003": "CARD_EXPIRED",
    "4000060101000004": "CARD_EXPIRED",
}
CLOSED = "DE14100000000800100202"
PATIENCE_S = 30.0


def charges() -> int:
    return Payment.objects.filter(payment_type="DB").count()


def subscribe(api: Api, number: str, **more: str) -> Job:
    """A job on a card that declines: it was good when it was stored."""
    registration = store_card(api)
    job = started(api, registration, **more)
    other = store_card_as(api, number)
    Job.objects.filter(pk=job.id).update(registration=other)
    return Job.objects.get(pk=job.id)


def store_card_as(api: Api, number: str) -> str:
    """A registration of a card that the simulator would not have stored."""
    ident = store_card(api)
    row = Registration.objects.get(pk=ident)
    row.means_sealed = current_vault().seal(Secret(number), row.id)
    row.save(update_fields=["means_sealed"])
    return ident


def plan_of(api: Api, job: Job) -> dict[str, str]:
    found: dict[str, str] = api.get(f"/v1/schedules/{job.id.hex}").body["plan"]
    return found


# --- once ---------------------------------------------------------------------------------------------------------


def make_due(merchant: Merchant) -> None:
    """The merchant's clock stands where the next thing is due."""
    at = job_timer.find_next_job_time(merchant)
    assert at is not None
    merchant.clock_offset = at - clock.real_now() + timedelta(milliseconds=1)
    Merchant.objects.filter(pk=merchant.pk).update(clock_offset=merchant.clock_offset)


@pytest.mark.django_db(transaction=True)
def test_four_tickers_make_one_payment_per_job(committed: Shop) -> None:
    """R1: two beats."""
    card = store_card(committed.api)
    for _ in range(6):
        started(committed.api, card)
    make_due(committed.merchant)
    done = at_once(*[lambda: job_timer.run_due_jobs(None)] * 4)
    assert sum(done) == 6
    assert (charges(), JobRun.objects.count()) == (6, 6)
    assert set(JobRun.objects.values_list("state", flat=True)) == {"PAID"}


@pytest.mark.django_db(transaction=True)
def test_a_silent_acquirer_keeps_no_other_run_waiting(committed: Shop, acquirer: StubProcess) -> None:
    """The others are paid while the first is still waited for."""
    account_at_stub(committed.channel)
    card = store_card(committed.api)
    slow = started(committed.api, card, testMode="EXTERNAL").id
    quick = [started(committed.api, card).id for _ in range(5)]
    make_due(committed.merchant)
    acquirer.control.steer(silent_before=1)
    with override_settings(GATEWAY_JOB_LANES=2, GATEWAY_ACQUIRER_TIMEOUT_S=PATIENCE_S / 10):
        assert job_timer.run_due_jobs(None) == 6
    runs = {row.job_id.hex: row for row in JobRun.objects.all()}
    assert {ident: runs[ident].state for ident in (slow, *quick)} == {slow: "OPEN", **dict.fromkeys(quick, "PAID")}
    ends = dict(PaymentEvent.objects.exclude(event="BEGIN").values_list("payment", "at"))
    assert all(ends[runs[ident].payment] < ends[runs[slow].payment] for ident in quick)


@pytest.mark.django_db(transaction=True)
def test_a_tick_takes_up_further_runs_until_its_time_is_over(committed: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had claimed is done; the rest is left to the next tick, and no lease is on it."""
    card = store_card(committed.api)
    for _ in range(5):
        started(committed.api, card)
    make_due(committed.merchant)
    monkeypatch.setattr(job_timer, "MAX_TICK_S", -1.0)
    with override_settings(GATEWAY_JOB_LANES=2):
        assert job_timer.run_due_jobs(None) == 2
        assert Job.objects.filter(lease_until__isnull=False).count() == 0
        monkeypatch.setattr(job_timer, "MAX_TICK_S", PATIENCE_S)
        assert job_timer.run_due_jobs(None) == 3
    assert (charges(), set(JobRun.objects.values_list("state", flat=True))) == (5, {"PAID"})


@pytest.mark.django_db(transaction=True)
def test_an_approved_run_is_five_statements(committed: Shop) -> None:
    """The job and what is above it, its card and agreement; the beginning, the end, and the run that is paid."""
    job = Job.objects.get(pk=started(committed.api, store_card(committed.api)).id)
    make_due(committed.merchant)
    with statements() as seen:
        assert job_runs.run_job(job.pk, job.sequence)
    assert (len(seen), seen.commits) == (5, 3), seen
    assert JobRun.objects.get().state == "PAID"


def test_declines_in_a_row_end_with_an_approved_run(shop: Shop) -> None:
    job = Job.objects.get(pk=started(shop.api, store_card(shop.api)).id)
    Job.objects.update(declined=2)
    step(shop.merchant)
    assert (Job.objects.get(pk=job.pk).declined, JobRun.objects.get().state) == (0, "PAID")


@pytest.mark.django_db(transaction=True)
def test_of_a_run_and_a_cancellation_one_comes_first(committed: Shop) -> None:
    """Either the run was first, or there is none: never a charge after the job had ended."""
    api, card = committed.api, store_card(committed.api)
    for _ in range(6):
        job = started(api, card)
        make_due(committed.merchant)
        answers = at_once(
            lambda job=job: api.delete(f"/v1/schedules/{job.id}").status, lambda: job_timer.run_due_jobs(None)
        )
        assert answers[0] == 200
        lease_out()
        job_timer.run_due_jobs(None)
        row = Job.objects.get(pk=job.id)
        assert (row.state, row.next_at) == ("ENDED", None)
        # Ids follow the time: the end was written after the run, or there is no run.
        ended = Payment.objects.get(payment_type="DS", chain=row.id)
        assert all(run.payment < ended.id for run in JobRun.objects.filter(job=row))  # type: ignore[operator]
        assert JobRun.objects.filter(job=row).count() <= 1
    assert charges() == JobRun.objects.count()


@pytest.mark.django_db(transaction=True)
def test_a_claim_that_nobody_worked_on_is_free_again_when_its_lease_ends(committed: Shop) -> None:
    """R1: kill -9 between claim and payment."""
    started(committed.api, store_card(committed.api))
    make_due(committed.merchant)
    now = clock.real_now()
    assert len(job_timer.claim_due_jobs(Job, 20, now)) == 1
    assert (job_timer.claim_due_jobs(Job, 20, now), job_timer.run_due_jobs(None)) == ([], 0)
    assert job_timer.claim_due_jobs(Job, 20, now + timedelta(minutes=5)) == []
    lease_out()
    assert (job_timer.run_due_jobs(None), charges()) == (1, 1)


CHILD = """
import django
django.setup()
from gateway.scheduling import job_timer
job_timer.run_due_jobs(None)
"""


@pytest.mark.django_db(transaction=True)
def test_a_worker_killed_while_the_acquirer_thinks_charges_once(committed: Shop, acquirer: StubProcess) -> None:
    """R1: kill -9 between the payment and its run's outcome; recovery knows the payment, the next look the run."""
    account_at_stub(committed.channel)
    started(committed.api, store_card(committed.api, testMode="EXTERNAL"), testMode="EXTERNAL")
    make_due(committed.merchant)
    acquirer.control.steer(delay_ms=60_000)
    at = connection.settings_dict
    address = f"postgres://{at['USER']}:{at['PASSWORD']}@{at['HOST'] or ''}:{at['PORT'] or ''}/{at['NAME']}"
    environment = {
        **os.environ,
        "DATABASE_URL": address,
        "GATEWAY_STUB_ACQUIRER": acquirer.address,
        "GATEWAY_ACQUIRER_TIMEOUT_S": "30",
    }
    child = subprocess.Popen([sys.executable, "-c", CHILD], env=environment)
    try:
        deadline = time.monotonic() + PATIENCE_S
        while len(acquirer.control.transactions()) < 2:  # the first one stored the card
            assert time.monotonic() < deadline
            assert child.poll() is None
            time.sleep(0.02)
    finally:
        child.kill()
        child.wait()
    run, payment = JobRun.objects.get(), Payment.objects.get(payment_type="DB")
    assert (run.state, run.payment, payment.status) == ("OPEN", payment.id, Status.STARTED)
    acquirer.control.steer(delay_ms=0)
    lease_out()
    assert job_timer.run_due_jobs(None) == 0
    recover_after(60)
    payment.refresh_from_db()
    assert payment.status == Status.APPROVED
    assert step(committed.merchant) == 1
    run.refresh_from_db()
    assert (run.state, run.attempt, charges()) == ("PAID", 1, 1)
    assert [row["operation"] for row in acquirer.control.transactions().values()].count("DB") == 1


@pytest.mark.django_db
def test_what_is_in_doubt_is_not_repeated(shop: Shop, settings: Any) -> None:
    """It is looked at again, ever more seldom, and the next month's run is made."""
    settings.GATEWAY_ACQUIRER_TIMEOUT_S = 0.2
    job = subscribe(shop.api, SILENT)
    step(shop.merchant)
    run = JobRun.objects.get()
    assert Payment.objects.get(pk=run.payment).status == Status.IN_DOUBT
    waits = []
    for _ in range(6):
        before = job_timer.find_next_job_time(shop.merchant)
        assert step(shop.merchant) == 1
        waits.append(job_timer.find_next_job_time(shop.merchant) - before)  # type: ignore[operator]
    assert waits == sorted(waits)
    assert waits[-1] > 10 * waits[0]
    assert (charges(), JobRun.objects.get().state) == (1, "OPEN")
    assert Job.objects.get(pk=job.pk).state == "ACTIVE"


# --- declined -----------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_only_a_lack_of_money_makes_the_next_try_a_resubmission(shop: Shop) -> None:
    """Part B, Card on file: RESUBMISSION; after another decline the retry stays the subscription's payment."""
    subscribe(shop.api, "4000015200000008")
    step(shop.merchant)
    assert step(shop.merchant) == 1
    first, again = Payment.objects.filter(payment_type="DB").order_by("id")
    assert [one.result_code for one in (first, again)] == ["800.100.152"] * 2
    assert "industryPractice" not in again.request["standingInstruction"]


@pytest.mark.django_db
def test_a_soft_decline_is_tried_again_by_the_plan_and_then_the_job_waits(shop: Shop) -> None:
    """Advice code 02 asks for 72 hours at least; after four declines the merchant has to act, and is told."""
    job = subscribe(shop.api, NO_MONEY)
    step(shop.merchant)
    run = JobRun.objects.get()
    assert (run.state, run.code, run.attempt) == ("RETRYING", "800.100.155", 1)
    assert run.next_at is not None
    assert timedelta(0) <= run.next_at - run.at - timedelta(hours=72) < timedelta(minutes=1)
    for attempt in (2, 3, 4):
        assert step(shop.merchant) == 1
        run.refresh_from_db()
        assert run.attempt == attempt
    assert (run.state, len(run.earlier), charges()) == ("FAILED", 3, 4)
    told = plan_of(shop.api, job)
    assert (told["active"], told["state"], told["reason"]) == (False, "SUSPENDED", "DECLINED")
    assert job_timer.find_next_job_time(shop.merchant) is None
    again = Payment.objects.filter(payment_type="DB").order_by("-id")[0]
    assert again.request["standingInstruction"]["industryPractice"] == "RESUBMISSION"
    assert list(Notification.objects.filter(kind="SCHEDULE").values_list("action", flat=True)) == ["CREATED", "UPDATED"]
    back = shop.api.post(f"/v1/schedules/{job.id.hex}/reschedule", {"registrationId": store_card(shop.api)})
    assert back.body["plan"]["active"] is True
    step(shop.merchant)
    assert set(JobRun.objects.values_list("state", flat=True)) == {"FAILED", "PAID"}


@pytest.mark.django_db
@pytest.mark.parametrize(("iban", "tries"), [("DE68100000000800100200", 3), ("DE84100000000800100203", 3), (CLOSED, 1)])
def test_a_direct_debit_is_presented_again_twice_for_a_lack_of_money(shop: Shop, iban: str, tries: int) -> None:
    """MS03 (reason not specified) is presented again as AM04 is; AC04 (closed account) never."""
    account = {"holder": "Jane Jones", "iban": "DE23100000001234567890", "bic": "MARKDEF1100", "country": "DE"}
    sent = {"paymentBrand": "DIRECTDEBIT_SEPA", **{f"bankAccount.{name}": text for name, text in account.items()}}
    stored = shop.api.post("/v1/registrations", sent)
    assert stored.status == 200, stored
    started(shop.api, stored.id)
    row = Registration.objects.get(pk=stored.id)
    row.means_sealed = current_vault().seal(Secret(iban), row.id)
    row.save(update_fields=["means_sealed"])
    days = [step(shop.merchant) and JobRun.objects.get().attempt for _ in range(tries)]
    assert (days, charges()) == (list(range(1, tries + 1)), tries)
    run = JobRun.objects.get()
    assert (run.state, run.attempt) == ("FAILED", tries)


def book_late(declined: str) -> None:
    """The bank books a collection after it was declined. Docs/decisions/0097: a rejection that is followed by the
    booking is none."""
    payment = Payment.objects.select_related("merchant").get(pk=declined)
    assert payment.status == "DECLINED"
    reply = AcquirerReply(
        code="000.100.112", approved=Money(payment.amount, payment.currency), connector_tx_id=payment.id.hex
    )
    now = clock.merchant_now(payment.merchant)
    with transaction.atomic():
        store.complete_payment(payment, Booked(reply=reply, at=now), kind="bank")
        JOB_HOOKS.get().record_late_booking(payment, now)


@pytest.mark.django_db
@pytest.mark.parametrize("tries", [1, 2])
def test_a_run_that_the_bank_booked_after_all_is_not_presented_again(shop: Shop, tries: int) -> None:
    """Also where it booked the first try and the second was declined."""
    job = subscribe(shop.api, NO_MONEY)
    first = ""
    for _ in range(tries):
        step(shop.merchant)
        first = first or str(JobRun.objects.get().payment)
    assert (JobRun.objects.get().state, Job.objects.get(pk=job.pk).declined) == ("RETRYING", tries)
    book_late(first)
    run = JobRun.objects.get()
    assert (run.state, run.attempt, run.next_at, run.code) == ("PAID", tries, None, "000.100.112")
    assert (Job.objects.get(pk=job.pk).declined, charges()) == (0, tries)


@pytest.mark.django_db
def test_a_job_goes_on_when_the_run_that_suspended_it_is_booked_after_all(shop: Shop) -> None:
    job = subscribe(shop.api, STOLEN)
    step(shop.merchant)
    run = JobRun.objects.get()
    assert (run.state, plan_of(shop.api, job)["state"]) == ("FAILED", "SUSPENDED")
    book_late(str(run.payment))
    run.refresh_from_db()
    told = plan_of(shop.api, job)
    assert (run.state, told["state"], told["active"]) == ("PAID", "ACTIVE", True)
    job.refresh_from_db()
    assert (job.declined, job.reason) == (0, "")
    assert job.next_at is not None
    assert job.next_at > run.due_at
    sent = Notification.objects.filter(kind="SCHEDULE").order_by("id")
    assert list(sent.values_list("action", flat=True)) == ["CREATED", "UPDATED", "UPDATED"]


@pytest.mark.django_db
def test_a_late_booking_takes_up_no_job_that_was_paused(shop: Shop) -> None:
    job = subscribe(shop.api, NO_MONEY)
    step(shop.merchant)
    Job.objects.filter(pk=job.pk).update(state="SUSPENDED", reason="PAUSED", next_at=None)
    book_late(str(JobRun.objects.get().payment))
    assert JobRun.objects.get().state == "PAID"
    assert (plan_of(shop.api, job)["state"], Job.objects.get(pk=job.pk).declined) == ("SUSPENDED", 0)


@pytest.mark.django_db
def test_the_booking_of_an_earlier_run_leaves_the_declines_after_it(shop: Shop) -> None:
    job = subscribe(shop.api, NO_MONEY, job__expression="0 0 6 * * ?")
    for _ in range(2):
        step(shop.merchant)
    book_late(str(JobRun.objects.order_by("due_at")[0].payment))
    assert list(JobRun.objects.order_by("due_at").values_list("state", flat=True)) == ["PAID", "FAILED"]
    assert Job.objects.get(pk=job.pk).declined == 2


@pytest.mark.django_db
def test_a_retry_that_is_paid_ends_the_dunning(shop: Shop) -> None:
    job = subscribe(shop.api, LATER)
    step(shop.merchant)
    Job.objects.filter(pk=job.pk).update(registration=store_card(shop.api))
    step(shop.merchant)
    run = JobRun.objects.get()
    assert (run.state, run.attempt, Job.objects.get(pk=job.pk).declined) == ("PAID", 2, 0)


@pytest.mark.django_db
@pytest.mark.parametrize(("number", "reason"), STOPPED.items())
def test_a_hard_decline_stops_the_job_at_once(shop: Shop, number: str, reason: str) -> None:
    job = subscribe(shop.api, number)
    step(shop.merchant)
    told = plan_of(shop.api, job)
    assert (told["state"], told["reason"], charges()) == ("SUSPENDED", reason, 1)
    assert (JobRun.objects.get().state, job_timer.find_next_job_time(shop.merchant)) == ("FAILED", None)


@pytest.mark.django_db
def test_nobody_is_tried_twice_when_the_next_run_comes_first(shop: Shop) -> None:
    """A daily job's next run is the retry; four declines in a row are enough."""
    job = subscribe(shop.api, NO_MONEY, job__expression="0 0 6 * * ?")
    for _ in range(4):
        step(shop.merchant)
    assert list(JobRun.objects.values_list("state", "attempt")) == [("FAILED", 1)] * 4
    assert plan_of(shop.api, job)["state"] == "SUSPENDED"


@pytest.mark.django_db
def test_a_run_that_is_declined_after_the_next_one_came_is_not_tried_again(shop: Shop) -> None:
    """A bank may take weeks to say no; by then the next run has charged the shopper."""
    job = subscribe(shop.api, NO_MONEY)
    step(shop.merchant)
    first = JobRun.objects.get()
    JobRun.objects.update(state="OPEN", next_at=None)
    Job.objects.update(declined=0, registration=store_card(shop.api))
    step(shop.merchant)
    assert JobRun.objects.filter(job=job, state="PAID").count() == 1
    assert job_runs.recheck_run(first.pk)
    first.refresh_from_db()
    assert (first.state, first.next_at, first.attempt) == ("FAILED", None, 1)
    assert plan_of(shop.api, job)["state"] == "ACTIVE"


@pytest.mark.django_db
@pytest.mark.parametrize("why", ["outage", "reschedule"])
def test_a_retry_that_the_next_run_came_before_is_not_made(shop: Shop, why: str) -> None:
    """Its time was before the next run as it was decided; then no timer ran for some days, or the plan was changed."""
    job = subscribe(shop.api, NO_MONEY)
    step(shop.merchant)
    retry = JobRun.objects.get(state="RETRYING")
    Job.objects.update(declined=0, registration=store_card(shop.api))
    assert retry.next_at is not None
    if why == "outage":
        Job.objects.update(next_at=retry.next_at + timedelta(days=1))
        ahead = retry.next_at + timedelta(days=2) - clock.real_now()
        Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=ahead)
        job_timer.run_due_jobs(Merchant.objects.get(pk=shop.merchant.pk))
    else:
        daily = shop.api.post(f"/v1/schedules/{job.pk.hex}/reschedule", {"job.expression": "0 0 6 * * ?"})
        assert daily.status == 200, daily
        for _ in range(4):
            step(shop.merchant)
    retry.refresh_from_db()
    assert (retry.state, retry.next_at, retry.attempt) == ("FAILED", None, 1)
    assert JobRun.objects.exclude(pk=retry.pk).filter(state="PAID").exists()
    assert plan_of(shop.api, job)["state"] == "ACTIVE"


def test_every_advice_and_family_has_a_course() -> None:
    """The tables name known codes, and every family of declines says something."""
    for code in dunning.DUNNING_BY_RESULT_CODE:
        assert find_result_family(code)
    assert isinstance(dunning.decide_dunning("800.100.152", ""), dunning.DunningRetry)
    never = ("700.601.001", "700.601.003", "800.100.500", "800.100.501")
    # Direct debits: account wrong, closed, no mandate, wanted back, not possible, dead (SEPA rulebook, 4.3).
    debits = tuple(f"800.100.{number}" for number in (201, 202, 204, 205, 206, 207, 208, 213))
    for code in (*never, *debits):
        assert isinstance(dunning.decide_dunning(code, ""), dunning.DunningStop), code
    assert isinstance(dunning.decide_dunning("800.100.203", ""), dunning.DunningRetry)
    assert dunning.decide_dunning("800.100.155", "03") == dunning.DunningStop(reason=Job.Reason.DO_NOT_RETRY)
    assert dunning.get_retry_delay(dunning.DunningRetry(), 1) == timedelta(days=3)
    assert dunning.get_retry_delay(dunning.DunningRetry(), 4) is None
    assert ResultFamily.REJECTED_BANK not in dunning.DUNNING_BY_FAMILY


# --- what cannot be charged ---------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_an_expired_card_declines_the_run_and_the_job_waits_for_a_new_one(shop: Shop) -> None:
    year = clock.merchant_now(shop.merchant).year + 1
    after = {"job__hour": "6", "job__startDate": f"{year + 1}-02-01 00:00:00"}
    job = started(shop.api, store_card(shop.api, year=str(year)), **after)
    step(shop.merchant)
    told = shop.api.get(f"/v1/schedules/{job.id}").body
    assert (told["plan"]["state"], told["plan"]["reason"]) == ("SUSPENDED", "CARD_EXPIRED")
    assert (told["runs"][0]["state"], told["runs"][0]["code"]) == ("FAILED", "100.100.303")
    shop.api.post(f"/v1/registrations/{job.body['registrationId']}", {"card.expiryYear": "2094"})
    assert shop.api.post(f"/v1/schedules/{job.id}/reschedule").body["plan"]["active"] is True
    step(shop.merchant)
    assert shop.api.get(f"/v1/schedules/{job.id}").body["runs"][0]["state"] == "PAID"


@pytest.mark.django_db
def test_a_deleted_registration_suspends_its_jobs_at_their_next_run(shop: Shop) -> None:
    card = store_card(shop.api)
    job = started(shop.api, card)
    shop.api.delete(f"/v1/registrations/{card}")
    step(shop.merchant)
    told = shop.api.get(f"/v1/schedules/{job.id}").body
    assert (told["plan"]["state"], told["plan"]["reason"]) == ("SUSPENDED", "REGISTRATION_GONE")
    assert [(run["state"], run["code"]) for run in told["runs"]] == [("FAILED", "100.150.202")]
    path = f"/v1/schedules/{job.id}/reschedule"
    assert list(shop.api.post(path).errors) == ["registrationId"]
    assert shop.api.post(path, {"registrationId": store_card(shop.api)}).body["plan"]["active"] is True
    assert charges() == 0


@pytest.mark.django_db
def test_an_inactive_channel_or_division_skips_its_runs_and_a_brand_not_taken_any_more_suspends(shop: Shop) -> None:
    job = started(shop.api, store_card(shop.api))
    for row in (shop.channel, shop.merchant.division):
        type(row).objects.filter(pk=row.pk).update(active=False)
        step(shop.merchant)
        type(row).objects.filter(pk=row.pk).update(active=True)
    assert [(run.state, charges()) for run in JobRun.objects.all()] == [("SKIPPED", 0)] * 2
    Channel.objects.filter(pk=shop.channel.pk).update(currencies=["USD"])
    step(shop.merchant)
    told = plan_of(shop.api, Job.objects.get(pk=job.id))
    assert (told["state"], told["reason"], charges()) == ("SUSPENDED", "NOT_SET_UP", 0)


# --- late ---------------------------------------------------------------------------------------------------------


def wake_up_after(merchant: Merchant, **late: int) -> None:
    """An outage: the merchant's clock is so much after the next due time."""
    make_due(merchant)
    merchant.clock_offset += timedelta(**late)
    Merchant.objects.filter(pk=merchant.pk).update(clock_offset=merchant.clock_offset)


@pytest.mark.django_db
def test_a_run_that_is_some_days_late_is_made_up_for(shop: Shop) -> None:
    job = started(shop.api, store_card(shop.api))
    due = Job.objects.get(pk=job.id).next_at
    wake_up_after(shop.merchant, days=6)
    assert (job_timer.run_due_jobs(None), charges()) == (1, 1)
    assert (JobRun.objects.get().due_at, JobRun.objects.get().state) == (due, "PAID")


@pytest.mark.django_db
def test_of_many_missed_runs_three_are_made_up_for(shop: Shop) -> None:
    """Nobody is charged for every minute of an outage."""
    started(shop.api, store_card(shop.api), job__expression="0 * * * * ?")
    wake_up_after(shop.merchant, hours=5)
    while job_timer.run_due_jobs(None):
        pass
    states = list(JobRun.objects.order_by("due_at").values_list("state", flat=True))
    assert (states, charges()) == (["PAID", "PAID", "PAID", "MISSED"], 3)
    missed = JobRun.objects.get(state="MISSED")
    assert missed.missed_until is not None
    assert missed.missed_until - missed.due_at > timedelta(hours=4)
    assert Job.objects.get().next_at > clock.merchant_now(shop.merchant)  # type: ignore[operator]


@pytest.mark.django_db
def test_what_is_older_than_a_week_is_left_out(shop: Shop) -> None:
    started(shop.api, store_card(shop.api))
    wake_up_after(shop.merchant, days=20)
    while job_timer.run_due_jobs(None):
        pass
    assert (JobRun.objects.get().state, charges()) == ("MISSED", 0)
    assert Job.objects.get().next_at > clock.merchant_now(shop.merchant)  # type: ignore[operator]


# --- limits and traces ----------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_run_is_the_merchants_own_payment_and_leaves_its_trace(shop: Shop) -> None:
    """The same line as the API: no code of the card, no authentication, the request log names the job."""
    channel = shop.open_channel(three_d_secure=True, cvv_required=True, refuse_duplicates=True)
    api = shop.api_of(channel)
    stored = store_card(api, **{"threeDSecure.disable": "true"})
    (told,) = api.get("/v1/test/acquirer/messages", {"id": stored}).body["messages"]
    job = started(api, stored, merchantTransactionId="reader-1", descriptor="Reader")
    for _ in range(2):
        step(shop.merchant)
    assert list(JobRun.objects.values_list("state", flat=True)) == ["PAID", "PAID"]
    first = Payment.objects.filter(payment_type="DB").order_by("id")[0]
    sent = api.get("/v1/test/acquirer/messages", {"id": first.id.hex}).body["messages"][0]["sent"]
    assert (sent["card"]["cvvPresent"], sent["descriptor"]) == (False, "Reader")
    assert sent["standingInstruction"]["mode"] == "REPEATED"
    assert sent["standingInstruction"]["initialTransactionId"] == told["received"]["networkReference"]
    logged = RequestLog.objects.get(payment=first.id)
    assert (logged.method, logged.path) == ("JOB", f"/v1/schedules/{job.id}")


@pytest.mark.django_db
def test_an_agreement_past_its_expiry_ends_the_job(shop: Shop) -> None:
    """Part B, Card on file (expiry)."""
    end = f"{clock.merchant_now(shop.merchant) + timedelta(days=200):%Y-%m-%d}"
    words = {"standingInstruction__expiry": end, "job__month": "*", "job__dayOfMonth": "31"}
    job = schedule(shop.api, store_card(shop.api), **words)
    assert job.status == 200, job
    while job_timer.find_next_job_time(shop.merchant) is not None:
        step(shop.merchant)
    told = shop.api.get(f"/v1/schedules/{job.id}").body
    assert (told["plan"]["state"], told["plan"]["reason"]) == ("ENDED", "AGREEMENT_ENDED")
    assert told["runs"]
    assert all(run["dueAt"][:10] <= end for run in told["runs"])

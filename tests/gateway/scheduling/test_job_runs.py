"""Runs of jobs, condition by condition: what a run sends, when it is made, what its outcome changes, and of whom.

Source: Part B, Scheduling; docs/decisions/0022.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.catalogue.errors import ParameterError
from gateway.catalogue.parse import InvalidParametersError
from gateway.connectors.sepa.order_records import LAST_COLLECTION_PARAMETER
from gateway.core import clock, identifiers
from gateway.models import Channel, Division, Merchant, Notification, Payment, Registration
from gateway.payments.refusal import RequestRefusedError
from gateway.scheduling import dunning, job_runs, retry_choice
from gateway.scheduling.job_runs import FIRST_RECHECK_DELAY, MAX_LATE_RUNS, MAX_RUN_DELAY, TRANSIENT_REFUSAL_CODES
from gateway.scheduling.models import Job, JobRun
from tests.gateway.scheduling.test_runs import NO_MONEY, charges, subscribe
from tests.support.client import Api
from tests.support.fixtures import Shop
from tests.support.subscriptions import started, store_card

NOW = datetime(2031, 3, 5, 12, tzinfo=UTC)
HOUR, DAY, TICK = timedelta(hours=1), timedelta(days=1), timedelta(microseconds=1)
FIRST_OF_APRIL = datetime(2031, 4, 1, 6, tzinfo=UTC)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> datetime:
    monkeypatch.setattr(clock, "real_now", lambda: NOW)
    return NOW


def start(api: Api, due_at: datetime | None = None, **values: Any) -> Job:
    """A job on the first of each month at six o'clock UTC, whose next run is at ``due_at``."""
    job = Job.objects.get(pk=started(api, store_card(api)).id)
    changed = values | ({"next_at": due_at} if due_at is not None else {})
    Job.objects.filter(pk=job.pk).update(zone="UTC", **changed)
    return Job.objects.select_related("merchant__division__psp", "channel").get(pk=job.pk)


def add_run(job: Job, state: str, due_at: datetime, **values: Any) -> JobRun:
    at = {"at": NOW - DAY, **values}
    return JobRun.objects.create(job=job, merchant_id=job.merchant_id, state=state, due_at=due_at, **at)


def columns(row: Job | JobRun, *names: str) -> tuple[Any, ...]:
    row.refresh_from_db()
    return tuple(getattr(row, name) for name in names)


# --- what is sent ---------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("request_", "declined", "last", "sent"),
    [
        ({}, "", False, {"type": "RECURRING", "recurringType": "SUBSCRIPTION", "industryPractice": None}),
        ({}, "800.100.155", False, {"industryPractice": "RESUBMISSION"}),
        ({}, "800.100.203", False, {"industryPractice": "RESUBMISSION"}),
        ({}, "800.100.152", False, {"industryPractice": None}),
        ({"type": "UNSCHEDULED"}, "", False, {"type": "UNSCHEDULED", "recurringType": None}),
        ({"recurringType": "STANDING_ORDER"}, "", False, {"type": "RECURRING", "recurringType": "STANDING_ORDER"}),
        ({"mode": "INITIAL", "source": "CIT"}, "", False, {"mode": "REPEATED", "source": "MIT"}),
        ({"industryPractice": "NO_SHOW"}, "", False, {"industryPractice": None}),
    ],
    ids=str,
)
def test_a_run_sends_its_schedules_parameters_as_the_merchants_own(
    shop: Shop, request_: dict[str, str], declined: str, last: bool, sent: dict[str, str | None]
) -> None:
    job = start(shop.api, merchant_memo="for the books", test_mode="INTERNAL")
    job.request = {"standingInstruction": request_, "descriptor": "Reader", "job": {"name": "monthly"}}
    registration = Registration.objects.select_related("channel").get(pk=job.registration)
    made = job_runs._build_run_parameters(job, registration, clock.real_now(), declined_code=declined, last=last)
    expected = {
        "entityId": shop.channel.entity_id, "amount": "9.90", "currency": "EUR", "paymentType": "DB",
        "merchantMemo": "for the books", "testMode": "INTERNAL", "descriptor": "Reader", "job.name": None,
        "standingInstruction.mode": "REPEATED", "standingInstruction.source": "MIT",
        **{f"standingInstruction.{name}": value for name, value in sent.items()},
    }  # fmt: skip
    assert {name: made.get(name) for name in expected} == expected


@pytest.mark.django_db
@pytest.mark.parametrize(("last", "word"), [(True, "true"), (False, None)])
def test_the_word_of_the_last_collection_is_sent_with_the_last(shop: Shop, last: bool, word: str | None) -> None:
    job = start(shop.api)
    job.request = {"customParameters": {"SEPA_lastCollection": "true"}}
    registration = Registration.objects.select_related("channel").get(pk=job.registration)
    made = job_runs._build_run_parameters(job, registration, clock.real_now(), declined_code="", last=last)
    assert made.get(LAST_COLLECTION_PARAMETER) == word


@pytest.mark.django_db
def test_a_run_names_its_schedule_and_leaves_a_trace_of_its_own(shop: Shop, now: datetime) -> None:
    job = start(shop.api)
    registration = Registration.objects.select_related("channel").get(pk=job.registration)
    trace = job_runs.build_job_trace(job)
    assert (trace.method, trace.path, trace.at, trace.entity) == (
        "JOB", f"/v1/schedules/{job.id.hex}", now, job.channel_id,
    )  # fmt: skip
    made = job_runs.build_run_request(job, registration, None, now=now, trace=trace, due_at=FIRST_OF_APRIL)
    assert made.stored["facts"] == {"schedule": {"id": job.id.hex, "dueAt": "2031-04-01 06:00:00+0000"}}
    assert made.allow_duplicate
    assert (made.trace, made.merchant, made.channel) == (trace, job.merchant, registration.channel)


# --- when it is made ------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("values", "off", "made"),
    [
        ({}, 0, True),
        ({"state": "ENDING", "ends_at": NOW + DAY}, 0, True),
        ({"next_at": NOW}, 0, True),
        ({"next_at": NOW + TICK}, 0, False),
        ({}, 1, False),
        ({}, -1, False),
        ({"state": "SUSPENDED", "next_at": None}, 0, False),
        ({"state": "ENDED", "next_at": None}, 0, False),
        ({"next_at": NOW - MAX_RUN_DELAY}, 0, True),
        ({"ends_at": NOW - HOUR + TICK}, 0, True),
    ],
    ids=str,
)
def test_a_run_is_made_of_what_is_due_as_it_was_claimed(
    shop: Shop, now: datetime, values: dict[str, Any], off: int, made: bool
) -> None:
    job = start(shop.api, now - HOUR, **values) if "next_at" not in values else start(shop.api, **values)
    other = start(shop.api, now - HOUR)
    due_at = job.next_at
    assert job_runs.run_job(job.pk, job.sequence + off) is made
    assert charges() == JobRun.objects.count() == int(made)
    if made:
        run = JobRun.objects.get()
        assert (run.job_id, run.due_at, run.state, run.attempt, run.at, run.merchant_id) == (
            job.pk, due_at, "PAID", 1, now, job.merchant_id,
        )  # fmt: skip
        following = min(FIRST_OF_APRIL, values.get("ends_at", FIRST_OF_APRIL))
        assert columns(job, "next_at", "sequence", "lease_until", "late") == (following, job.sequence, None, 0)
    assert columns(other, "next_at", "sequence") == (now - HOUR, other.sequence)


@pytest.mark.django_db
@pytest.mark.parametrize(("state", "reason"), [("ACTIVE", "COMPLETED"), ("ENDING", "NOTICE")])
@pytest.mark.parametrize("since", [timedelta(0), HOUR])
def test_at_its_end_or_behind_it_a_job_ends(
    shop: Shop, now: datetime, state: str, reason: str, since: timedelta
) -> None:
    job = start(shop.api, now - HOUR, ends_at=now - HOUR - since, state=state)
    before = job.sequence
    assert job_runs.run_job(job.pk, job.sequence)
    found = columns(job, "state", "reason", "next_at", "ended_at", "sequence", "updated_at", "lease_until")
    assert found == ("ENDED", reason, None, now, before + 1, now, None)
    assert (charges(), JobRun.objects.count()) == (0, 0)
    told = Notification.objects.filter(kind="SCHEDULE", action="DELETED")
    assert [row.payment.chain for row in told.select_related("payment")] == [job.pk]


@pytest.mark.django_db
def test_what_is_older_than_a_week_is_recorded_as_missed(shop: Shop, now: datetime) -> None:
    due_at = now - MAX_RUN_DELAY - TICK
    job = start(shop.api, due_at, lease_until=now, starts_at=now - 90 * DAY)
    before = job.sequence
    assert job_runs.run_job(job.pk, job.sequence)
    run = JobRun.objects.get()
    assert (run.state, run.due_at, run.missed_until, run.at, run.payment, run.next_at) == (
        "MISSED", due_at, now - MAX_RUN_DELAY, now, None, None,
    )  # fmt: skip
    # The first of March was within the week: it is due now.
    assert columns(job, "next_at", "sequence", "lease_until") == (
        datetime(2031, 3, 1, 6, tzinfo=UTC), before + 1, None,
    )  # fmt: skip
    assert charges() == 0


@pytest.mark.django_db
@pytest.mark.parametrize(
    "off",
    [
        lambda shop: Channel.objects.filter(pk=shop.channel.pk).update(active=False),
        lambda shop: Merchant.objects.filter(pk=shop.merchant.pk).update(active=False),
        lambda shop: Division.objects.update(active=False),
    ],
    ids=["channel", "merchant", "division"],
)
def test_a_run_of_who_is_switched_off_is_left_out(shop: Shop, now: datetime, off: Any) -> None:
    job = start(shop.api, now - HOUR)
    before = job.sequence
    off(shop)
    assert job_runs.run_job(job.pk, job.sequence)
    run = JobRun.objects.get()
    assert (run.state, run.due_at, run.at, run.payment) == ("SKIPPED", now - HOUR, now, None)
    assert columns(job, "state", "next_at", "sequence") == ("ACTIVE", FIRST_OF_APRIL, before + 1)
    assert charges() == 0


def refuse(monkeypatch: pytest.MonkeyPatch, fault: Exception) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise fault

    monkeypatch.setattr(job_runs, "build_run_request", fail)


def invalid(code: str) -> InvalidParametersError:
    codes = {"first": code, "second": "1.2.3"}
    return InvalidParametersError([ParameterError(name=n, message="is wrong", code=of) for n, of in codes.items()])


REFUSALS = pytest.mark.parametrize(
    ("fault", "code", "reason"),
    [
        (RequestRefusedError("100.150.203"), "100.150.203", "REGISTRATION_GONE"),
        (RequestRefusedError("800.100.159"), "800.100.159", "DO_NOT_RETRY"),
        (RequestRefusedError("800.100.155"), "800.100.155", "NOT_SET_UP"),
        (invalid("600.200.500"), "600.200.500", "NOT_SET_UP"),
        (invalid("100.100.303"), "100.100.303", None),
    ],
    ids=str,
)


def expected_reason(code: str, reason: str | None) -> str:
    if reason is not None:
        return reason
    decision = dunning.decide_dunning(code, "")
    return str(decision.reason) if isinstance(decision, dunning.DunningStop) else "NOT_SET_UP"


@pytest.mark.django_db
@REFUSALS
def test_a_run_that_cannot_be_sent_fails_and_its_job_waits(
    shop: Shop, now: datetime, monkeypatch: pytest.MonkeyPatch, fault: Exception, code: str, reason: str | None
) -> None:
    job, other = start(shop.api, now - HOUR), start(shop.api, now - HOUR)
    refuse(monkeypatch, fault)
    assert job_runs.run_job(job.pk, job.sequence)
    run = JobRun.objects.get()
    assert (run.job_id, run.state, run.code, run.due_at, run.payment) == (job.pk, "FAILED", code, now - HOUR, None)
    assert columns(job, "state", "reason", "next_at") == ("SUSPENDED", expected_reason(code, reason), None)
    assert Notification.objects.filter(kind="SCHEDULE", action="UPDATED").count() == 1
    assert columns(other, "state") == ("ACTIVE",)


@pytest.mark.django_db
@pytest.mark.parametrize("code", sorted(TRANSIENT_REFUSAL_CODES))
def test_a_refusal_that_passes_leaves_the_run_due(
    shop: Shop, now: datetime, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    job = start(shop.api, now - HOUR)
    refuse(monkeypatch, RequestRefusedError(code))
    with pytest.raises(RequestRefusedError):
        job_runs.run_job(job.pk, job.sequence)
    assert columns(job, "state", "next_at", "sequence") == ("ACTIVE", now - HOUR, job.sequence)
    assert JobRun.objects.count() == 0


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["expiry", "numberOfInstallments", "maxAmount"])
def test_an_agreement_that_is_over_ends_its_job(
    shop: Shop, now: datetime, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Another of its limits declines this run alone."""
    violation = SimpleNamespace(name=f"standingInstruction.{name}")
    monkeypatch.setattr(job_runs, "find_agreement_violation", lambda *_: violation)
    job = start(shop.api, now - HOUR)
    assert job_runs.run_job(job.pk, job.sequence)
    over = name != "maxAmount"
    assert columns(job, "state", "reason") == (("ENDED", "AGREEMENT_ENDED") if over else ("ACTIVE", ""))
    assert charges() == int(not over)


@pytest.mark.django_db
@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("overtaken", [False, True])
def test_a_job_that_changes_while_its_run_begins_is_not_charged(
    shop: Shop, now: datetime, monkeypatch: pytest.MonkeyPatch, limited: bool, overtaken: bool
) -> None:
    """With an agreement that counts, and without."""
    job, other = start(shop.api, now - HOUR), start(shop.api, now - HOUR)

    def meanwhile(registration: Registration) -> Registration:
        changed = job if overtaken else other
        Job.objects.filter(pk=changed.pk).update(sequence=changed.sequence + 1)
        return registration

    monkeypatch.setattr(job_runs, "has_agreement_limits", lambda _: limited)
    monkeypatch.setattr(job_runs.account_updates, "refresh_stored_card", meanwhile)
    assert job_runs.run_job(job.pk, job.sequence) is not overtaken
    assert charges() == JobRun.objects.count() == int(not overtaken)


@pytest.mark.parametrize(
    ("late", "next_at", "ends_at", "expected"),
    [
        (2, NOW + TICK, None, 0),
        (0, NOW, None, 1),
        (0, NOW - HOUR, None, 1),
        (MAX_LATE_RUNS - 2, NOW, None, MAX_LATE_RUNS - 1),
        (MAX_LATE_RUNS - 1, NOW, None, None),
        (MAX_LATE_RUNS, NOW, None, None),
        (0, NOW - HOUR, NOW, 1),
        (2, NOW - HOUR, NOW - HOUR, 0),
        (2, NOW, NOW - HOUR, 0),
    ],
)
def test_late_runs_are_made_up_for_one_after_the_other_up_to_a_most(
    late: int, next_at: datetime, ends_at: datetime | None, expected: int | None
) -> None:
    """``expected``: the count of late ones; None: the others are recorded as missed."""
    asked: list[datetime] = []

    def following(after: datetime) -> tuple[datetime, datetime | None]:
        asked.append(after)
        return (next_at, ends_at) if after == NOW - DAY else (NOW + DAY, ends_at)

    job = Job(id=UUID(int=1), merchant_id=UUID(int=2), late=late, sequence=7)
    plan: Any = SimpleNamespace(following=following)
    changes, rows = job_runs._advance_job_columns(job, plan, NOW - DAY, NOW)
    common = {"ends_at": ends_at, "sequence": 8, "lease_until": None}
    if expected is not None:
        assert (changes, rows) == ({**common, "next_at": next_at, "late": expected}, [])
        return
    assert changes == {**common, "next_at": NOW + DAY, "late": 0}
    [missed] = rows
    assert (missed["state"], missed["due_at"], missed["missed_until"], missed["at"]) == ("MISSED", next_at, NOW, NOW)
    assert asked == [NOW - DAY, NOW]


def test_a_new_run_has_the_columns_of_its_job() -> None:
    job = Job(id=UUID(int=1), merchant_id=UUID(int=2))
    row = job_runs._build_run_row(job, NOW - DAY, JobRun.State.OPEN, NOW, payment=UUID(int=3), code="1.2.3")
    assert row.pop("id") != job_runs._build_run_row(job, NOW, JobRun.State.OPEN, NOW)["id"]
    assert row == {
        "job_id": job.id, "merchant_id": UUID(int=2), "due_at": NOW - DAY, "state": "OPEN", "attempt": 1, "earlier": [],
        "at": NOW, "payment": UUID(int=3), "code": "1.2.3", "next_at": None, "missed_until": None,
    }  # fmt: skip


@pytest.mark.django_db
def test_a_job_that_moved_on_keeps_its_next_time(shop: Shop, now: datetime) -> None:
    job = start(shop.api, now - HOUR)
    Job.objects.update(sequence=job.sequence + 1)
    row = job_runs._build_run_row(job, now, JobRun.State.SKIPPED, now)
    assert not job_runs._write_next_run(job, {"next_at": now + DAY}, [row])
    assert (columns(job, "next_at"), JobRun.objects.count()) == ((now - HOUR,), 0)


# --- outcomes -------------------------------------------------------------------------------------------------------


def paid(shop: Shop, **values: Any) -> Payment:
    payment = Payment.objects.get(pk=shop.api.pay().id)
    Payment.objects.filter(pk=payment.pk).update(**values)
    return Payment.objects.get(pk=payment.pk)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("state", "has_payment", "recorded"), [("OPEN", True, True), ("RETRYING", True, False), ("OPEN", False, False)]
)
def test_an_open_run_with_a_payment_is_looked_at(
    shop: Shop, now: datetime, state: str, has_payment: bool, recorded: bool
) -> None:
    payment = paid(shop)
    run = add_run(start(shop.api), state, NOW - DAY, payment=payment.pk if has_payment else None, next_at=NOW)
    assert job_runs.recheck_run(run.pk)
    assert columns(run, "state") == ("PAID" if recorded else state,)


@pytest.mark.django_db
@pytest.mark.parametrize("at_once", [True, False], ids=["in one statement", "under its lock"])
@pytest.mark.parametrize(
    ("changed", "is_paid"),
    [({}, True), ({"state": "RETRYING"}, False), ({"state": "FAILED"}, False), ({"payment": UUID(int=9)}, False)],
    ids=str,
)
def test_an_approval_is_of_an_open_run_and_its_payment(
    shop: Shop, now: datetime, at_once: bool, changed: dict[str, Any], is_paid: bool
) -> None:
    """It ends its own job's declines in a row."""
    payment = paid(shop, result_code="000.100.112")
    job, other = start(shop.api, declined=2), start(shop.api, declined=3)
    due = {"payment": payment.pk, "next_at": now, "lease_until": now, **changed}
    run = add_run(job, due.pop("state", "OPEN"), NOW - DAY, **due)
    others = add_run(other, "OPEN", NOW - DAY, payment=payment.pk, next_at=now, lease_until=now)
    if at_once:
        assert job_runs._mark_run_paid(run.pk, payment) is is_paid
    else:
        job_runs.record_run_outcome(run.pk, payment)
    found = columns(run, "state", "next_at", "lease_until", "code")
    assert found == (("PAID", None, None, "000.100.112") if is_paid else (changed.get("state", "OPEN"), now, now, ""))
    assert columns(job, "declined") == (0 if is_paid else 2,)
    assert columns(others, "state", "next_at", "lease_until") == ("OPEN", now, now)
    assert columns(other, "declined") == (3,)


@pytest.mark.django_db
@pytest.mark.parametrize("status", ["PENDING", "IN_DOUBT", "STARTED"])
@pytest.mark.parametrize(("age", "wait"), [(HOUR, HOUR), (timedelta(0), FIRST_RECHECK_DELAY), (9 * DAY, DAY)])
def test_a_run_without_a_result_is_looked_at_again(
    shop: Shop, now: datetime, status: str, age: timedelta, wait: timedelta
) -> None:
    payment = paid(shop)
    payment.status, payment.result_code = status, "000.200.000"
    job = start(shop.api, declined=2)
    run = add_run(job, "OPEN", NOW - 9 * DAY, payment=payment.pk, at=now - age, lease_until=now, next_at=now)
    job_runs.record_run_outcome(run.pk, payment)
    assert columns(run, "state", "next_at", "lease_until", "code") == ("OPEN", now + wait, None, "000.200.000")
    assert columns(job, "declined", "state") == (2, "ACTIVE")


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """How a retry was chosen; it is in two days."""
    asked: list[tuple[Any, ...]] = []

    def choose(*given: Any) -> retry_choice.RetryChoice:
        asked.append(given)
        return retry_choice.RetryChoice(at=NOW + 2 * DAY, figures={"by": "table"})

    monkeypatch.setattr(job_runs.retry_choice, "choose_retry", choose)
    return asked


RETRIED = {"run": ("RETRYING", NOW + 2 * DAY), "job": ("ACTIVE", "", FIRST_OF_APRIL)}


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("of_payment", "details", "of_job", "state", "reason"),
    [
        ({}, {}, {}, "RETRYING", ""),
        ({}, {"AcquirerResponse": "AC04"}, {}, "RETRYING", ""),
        ({}, {"MerchantAdviceCode": "03"}, {}, "FAILED", "DO_NOT_RETRY"),
        ({"result_code": "800.100.159"}, {}, {}, "FAILED", "DO_NOT_RETRY"),
        ({"result_code": "800.100.159"}, {"AcquirerResponse": "AM04"}, {}, "FAILED", "DO_NOT_RETRY"),
        ({"method": "DD", "result_code": "800.100.159"}, {"AcquirerResponse": "AM04"}, {}, "RETRYING", ""),
        ({"method": "DD", "result_code": "800.100.159"}, {"AcquirerResponse": "AC04"}, {}, "FAILED", "DO_NOT_RETRY"),
        ({"method": "DD"}, {"AcquirerResponse": "AM04", "MerchantAdviceCode": "03"}, {}, "RETRYING", ""),
        ({}, {}, {"declined": dunning.MAX_CONSECUTIVE_DECLINES - 2}, "RETRYING", ""),
        ({}, {}, {"declined": dunning.MAX_CONSECUTIVE_DECLINES - 1}, "FAILED", "DECLINED"),
        ({}, {}, {"state": "ENDING", "ends_at": NOW + 90 * DAY}, "RETRYING", ""),
    ],
    ids=str,
)
def test_a_declined_run_is_tried_again_or_its_job_waits(
    shop: Shop,
    now: datetime,
    chosen: list[tuple[Any, ...]],
    of_payment: dict[str, Any],
    details: dict[str, str],
    of_job: dict[str, Any],
    state: str,
    reason: str,
) -> None:
    payment = paid(shop)
    for name, value in {"status": "DECLINED", "result_code": "800.100.155", **of_payment}.items():
        setattr(payment, name, value)
    payment.answer = {**payment.answer, "resultDetails": details}
    job, other = start(shop.api, FIRST_OF_APRIL, **of_job), start(shop.api, FIRST_OF_APRIL, declined=1)
    add_run(other, "PAID", NOW, payment=identifiers.row_id())
    run = add_run(job, "OPEN", NOW - DAY, payment=payment.pk, attempt=2, retry_choices=[{"by": "first"}])
    job_runs.record_run_outcome(run.pk, payment)
    retried = state == "RETRYING"
    assert columns(run, "state", "next_at", "code", "attempt") == (
        state, now + 2 * DAY if retried else None, payment.result_code, 2,
    )  # fmt: skip
    assert run.retry_choices == [{"by": "first"}, *([{"by": "table"}] if retried else [])]
    waiting = "SUSPENDED" if reason else of_job.get("state", "ACTIVE")
    assert columns(job, "state", "reason", "next_at") == (waiting, reason, None if reason else FIRST_OF_APRIL)
    assert job.declined == of_job.get("declined", 0) + 1
    assert columns(other, "state", "declined") == ("ACTIVE", 1)
    if retried:
        [(channel, of, _, attempt, at, until)] = chosen
        assert (channel.pk, of, attempt, at, until) == (job.channel_id, payment, 2, now, FIRST_OF_APRIL)


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["SUSPENDED", "ENDED"])
def test_a_declined_run_of_a_job_that_does_not_run_is_not_tried_again(
    shop: Shop, now: datetime, chosen: list[tuple[Any, ...]], state: str
) -> None:
    payment = paid(shop)
    payment.status, payment.result_code = "DECLINED", "800.100.159"
    job = start(shop.api)
    Job.objects.filter(pk=job.pk).update(state=state, reason="PAUSED", next_at=None)
    run = add_run(job, "OPEN", NOW - DAY, payment=payment.pk)
    job_runs.record_run_outcome(run.pk, payment)
    assert columns(run, "state", "next_at") == ("FAILED", None)
    assert columns(job, "state", "reason", "declined") == (state, "PAUSED", 1)
    assert chosen == []


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("due_at", "has_payment", "of_other", "retried"),
    [
        (NOW, True, False, False),
        (NOW, False, False, True),
        (NOW, True, True, True),
        (NOW - 2 * DAY, True, False, True),
    ],
)
def test_no_run_is_tried_again_after_a_later_one_was_charged(
    shop: Shop, now: datetime, chosen: list[Any], due_at: datetime, has_payment: bool, of_other: bool, retried: bool
) -> None:
    payment = paid(shop)
    payment.status, payment.result_code = "DECLINED", "800.100.155"
    job, other = start(shop.api, FIRST_OF_APRIL), start(shop.api, FIRST_OF_APRIL)
    run = add_run(job, "OPEN", NOW - DAY, payment=payment.pk)
    add_run(other if of_other else job, "PAID", due_at, payment=identifiers.row_id() if has_payment else None)
    job_runs.record_run_outcome(run.pk, payment)
    assert columns(run, "state") == ("RETRYING" if retried else "FAILED",)


# --- retries --------------------------------------------------------------------------------------------------------


def declined(shop: Shop, next_at: datetime = NOW, **values: Any) -> tuple[Job, JobRun]:
    job = subscribe(shop.api, NO_MONEY)
    Job.objects.filter(pk=job.pk).update(next_at=FIRST_OF_APRIL, zone="UTC")
    fields = {"payment": UUID(int=5), "next_at": next_at, "code": "800.100.155", "lease_until": NOW, **values}
    return job, add_run(job, fields.pop("state", "RETRYING"), NOW - DAY, **fields)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("values", "made"),
    [({}, True), ({"next_at": NOW + TICK}, False), ({"state": "OPEN"}, False), ({"state": "FAILED"}, False)],
    ids=str,
)
def test_a_retry_is_made_when_its_time_has_come(
    shop: Shop, now: datetime, chosen: list[Any], values: dict[str, Any], made: bool
) -> None:
    _, run = declined(shop, earlier=[UUID(int=4)], attempt=2, **values)
    other = add_run(Job.objects.get(), "RETRYING", NOW - 9 * DAY, next_at=NOW, payment=UUID(int=6))
    assert job_runs.retry_run(run.pk) is made
    assert charges() == int(made)
    if made:
        payment = Payment.objects.get(payment_type="DB")
        assert columns(run, "attempt", "earlier", "payment", "at", "lease_until", "code", "state") == (
            3, [UUID(int=4), UUID(int=5)], payment.pk, now, None, "800.100.155", "RETRYING",
        )  # fmt: skip
        assert payment.request["standingInstruction"]["industryPractice"] == "RESUBMISSION"
        assert payment.answer["facts"]["schedule"]["dueAt"] == clock.format_timestamp(NOW - DAY)
    assert columns(other, "attempt", "payment") == (1, UUID(int=6))


@pytest.mark.django_db
def test_a_retry_whose_worker_dies_is_looked_at_after_a_minute(
    shop: Shop, now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, run = declined(shop)
    monkeypatch.setattr(job_runs, "record_run_outcome", lambda *_: None)
    assert job_runs.retry_run(run.pk)
    assert columns(run, "state", "next_at", "code") == ("OPEN", now + FIRST_RECHECK_DELAY, "")


@pytest.mark.django_db
@pytest.mark.parametrize("changed", ["the job", "the run's state", "the run's attempt", "another"])
def test_a_retry_of_what_changed_meanwhile_is_not_made(
    shop: Shop, now: datetime, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    job, run = declined(shop)
    other = start(shop.api)
    others = add_run(other, "RETRYING", NOW - DAY, next_at=NOW)

    def meanwhile(registration: Registration) -> Registration:
        if changed == "the job":
            Job.objects.filter(pk=job.pk).update(sequence=job.sequence + 1)
        elif changed == "another":
            Job.objects.filter(pk=other.pk).update(sequence=9)
            JobRun.objects.filter(pk=others.pk).update(state="FAILED", attempt=4)
        else:
            values = {"attempt": 2} if changed == "the run's attempt" else {"state": "FAILED"}
            JobRun.objects.filter(pk=run.pk).update(**values)
        return registration

    monkeypatch.setattr(job_runs.account_updates, "refresh_stored_card", meanwhile)
    assert job_runs.retry_run(run.pk) is (changed == "another")
    assert charges() == int(changed == "another")


@pytest.mark.django_db
@REFUSALS
def test_a_retry_that_cannot_be_sent_ends_the_run_and_its_job_waits(
    shop: Shop, now: datetime, monkeypatch: pytest.MonkeyPatch, fault: Exception, code: str, reason: str | None
) -> None:
    job, run = declined(shop)
    refuse(monkeypatch, fault)
    assert job_runs.retry_run(run.pk)
    assert columns(run, "state", "next_at", "lease_until", "attempt") == ("FAILED", None, None, 1)
    assert columns(job, "state", "reason", "next_at") == ("SUSPENDED", expected_reason(code, reason), None)
    assert charges() == 0


@pytest.mark.django_db
@pytest.mark.parametrize("code", sorted(TRANSIENT_REFUSAL_CODES))
@pytest.mark.parametrize("fault", [RequestRefusedError, invalid])
def test_a_retry_whose_refusal_passes_stays_due(
    shop: Shop, now: datetime, monkeypatch: pytest.MonkeyPatch, code: str, fault: Any
) -> None:
    job, run = declined(shop)
    refuse(monkeypatch, fault(code))
    with pytest.raises((RequestRefusedError, InvalidParametersError)):
        job_runs.retry_run(run.pk)
    assert columns(run, "state", "next_at") == ("RETRYING", now)
    assert columns(job, "state") == ("ACTIVE",)


@pytest.mark.django_db
def test_a_deleted_registration_is_refused_by_its_code(shop: Shop) -> None:
    job = start(shop.api)
    registration, _ = job_runs._load_job_means(job)
    assert registration.pk == job.registration
    Registration.objects.filter(pk=job.registration).update(status="DELETED", means_sealed=None)
    with pytest.raises(RequestRefusedError) as refused:
        job_runs._load_job_means(job)
    assert refused.value.code == job_runs.registrations.REGISTRATION_DELETED_CODE


# --- a bank that books after all ------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("of_run", "of_job", "job_state", "run_state"),
    [
        ({}, {}, ("ACTIVE", "", 0), "PAID"),
        ({"state": "RETRYING", "next_at": NOW}, {}, ("ACTIVE", "", 0), "PAID"),
        ({"state": "OPEN"}, {}, ("ACTIVE", "", 2), "OPEN"),
        ({"state": "SKIPPED"}, {}, ("ACTIVE", "", 2), "SKIPPED"),
        ({"earlier": True}, {}, ("ACTIVE", "", 0), "PAID"),
        ({"payment": UUID(int=9)}, {}, ("ACTIVE", "", 2), "FAILED"),
        ({}, {"reason": "DECLINED"}, ("ACTIVE", "", 0), "PAID"),
        ({}, {"reason": "DO_NOT_RETRY"}, ("ACTIVE", "", 0), "PAID"),
        ({}, {"reason": "CARD_EXPIRED"}, ("ACTIVE", "", 0), "PAID"),
        ({}, {"reason": "AUTHENTICATION_NEEDED"}, ("ACTIVE", "", 0), "PAID"),
        ({}, {"reason": "PAUSED"}, ("SUSPENDED", "PAUSED", 0), "PAID"),
        ({}, {"reason": "NOT_SET_UP"}, ("SUSPENDED", "NOT_SET_UP", 0), "PAID"),
    ],
    ids=str,
)
def test_a_booking_pays_the_declined_run_and_takes_up_what_it_suspended(
    shop: Shop,
    now: datetime,
    of_run: dict[str, Any],
    of_job: dict[str, Any],
    job_state: tuple[Any, ...],
    run_state: str,
) -> None:
    job, other = start(shop.api, declined=2), start(shop.api, declined=3)
    if of_job:
        Job.objects.filter(pk=job.pk).update(state="SUSPENDED", next_at=None, **of_job)
    payment = paid(shop, result_code="000.100.112")
    payment.answer = {"facts": {"schedule": {"id": job.id.hex}}}
    values = {"state": "FAILED", "payment": payment.pk, "code": "800.100.155", "lease_until": now, **of_run}
    if values.pop("earlier", False):
        values |= {"earlier": [UUID(int=8), payment.pk], "payment": UUID(int=9)}
    run = add_run(job, values.pop("state"), NOW - DAY, **values)
    others = add_run(other, "FAILED", NOW - DAY, payment=payment.pk)
    job_runs.record_late_booking(payment, now)
    assert columns(run, "state") == (run_state,)
    if run_state == "PAID":
        assert columns(run, "next_at", "lease_until", "code") == (None, None, "000.100.112")
    assert columns(job, "state", "reason", "declined") == job_state
    assert columns(others, "state") == ("FAILED",)
    assert columns(other, "declined") == (3,)
    if of_job and job_state[0] == "ACTIVE":
        assert columns(job, "next_at", "sequence", "updated_at") == (FIRST_OF_APRIL, 2, now)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("due_at", "has_payment", "declined"), [(NOW, True, 2), (NOW, False, 0), (NOW - 2 * DAY, True, 0)]
)
def test_a_booking_of_a_run_before_the_last_leaves_the_declines_after_it(
    shop: Shop, now: datetime, due_at: datetime, has_payment: bool, declined: int
) -> None:
    job, other = start(shop.api, declined=2), start(shop.api)
    payment = paid(shop)
    payment.answer = {"facts": {"schedule": {"id": job.id.hex}}}
    run = add_run(job, "FAILED", NOW - DAY, payment=payment.pk)
    add_run(job, "FAILED", due_at, payment=UUID(int=7) if has_payment else None)
    add_run(other, "FAILED", NOW, payment=UUID(int=7))
    job_runs.record_late_booking(payment, now)
    assert columns(run, "state") == ("PAID",)
    assert columns(job, "declined") == (declined,)


@pytest.mark.django_db
@pytest.mark.parametrize("what", ["no schedule", "no id", "another merchant"])
def test_a_booking_of_no_schedule_of_its_merchant_changes_none(
    shop: Shop, stranger: Shop, now: datetime, what: str
) -> None:
    job = start(shop.api, declined=2)
    payment = paid(stranger if what == "another merchant" else shop)
    facts = {"no schedule": {}, "no id": {"schedule": {"id": "x"}}}
    payment.answer = {"facts": facts.get(what, {"schedule": {"id": job.id.hex}})}
    run = add_run(job, "FAILED", NOW - DAY, payment=payment.pk)
    job_runs.record_late_booking(payment, now)
    assert (columns(run, "state"), columns(job, "declined")) == (("FAILED",), (2,))


# --- the job's own ends ---------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("overtaken", [False, True])
@pytest.mark.parametrize("how", ["suspend", "resume", "end"])
def test_a_job_that_stops_or_goes_on_is_told_unless_it_changed_meanwhile(
    shop: Shop, now: datetime, how: str, overtaken: bool
) -> None:
    job, other = start(shop.api, FIRST_OF_APRIL, lease_until=now, declined=2), start(shop.api)
    if how == "resume":
        Job.objects.filter(pk=job.pk).update(state="SUSPENDED", reason="DECLINED", next_at=None)
    before = Notification.objects.count()
    own = Job.objects.select_related("merchant", "channel").get(pk=job.pk)
    if overtaken:
        Job.objects.filter(pk=job.pk).update(sequence=own.sequence + 1)
    failed = job_runs._build_run_row(own, NOW - DAY, JobRun.State.FAILED, now, code="1.2.3")
    done = {
        "suspend": lambda: job_runs.suspend_job(own, "PAUSED", now, failed),
        "resume": lambda: job_runs.resume_job(own, now),
        "end": lambda: job_runs.end_job(own, "COMPLETED", now),
    }[how]()
    assert done is not overtaken
    assert Notification.objects.count() == before + int(not overtaken)
    assert JobRun.objects.count() == int(how == "suspend" and not overtaken)
    assert columns(other, "state", "sequence", "updated_at") == ("ACTIVE", 1, None)
    if overtaken:
        return
    names = ("state", "reason", "next_at", "ended_at", "declined", "sequence", "updated_at", "lease_until")
    assert (
        columns(job, *names)
        == {
            "suspend": ("SUSPENDED", "PAUSED", None, None, 2, 2, now, None),
            "resume": ("ACTIVE", "", FIRST_OF_APRIL, None, 0, 2, now, None),
            "end": ("ENDED", "COMPLETED", None, now, 2, 2, now, None),
        }[how]
    )
    record = Payment.objects.filter(chain=job.pk).latest("id")
    assert (record.payment_type, record.created_at) == ("DS" if how == "end" else "RS", now)

"""Declined runs are tried again when outcomes promise most, within the schemes' rules. Source: docs/decisions/0128."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import OperationalError

from gateway.background import queue
from gateway.backoffice.schedules import retry_trial
from gateway.core import clock
from gateway.core.secret import Secret
from gateway.models import BackgroundWork, CardDecline, Channel, Merchant, Payment, Registration, Role
from gateway.risk.risk_store import find_earliest_retry
from gateway.scheduling import dunning, retry_choice, retry_statistics
from gateway.scheduling.models import Job, JobRun, RetryRate
from gateway.scheduling.retry_statistics import PastAttempts, PastCharges, PastRetry
from gateway.vault.sealing import current_vault
from reporting.simulator import market_rows
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.subscriptions import started, step, store_card

pytestmark = pytest.mark.django_db
NO_MONEY, STOLEN, GOOD = "4000015500000005", "4000015900000001", "4200000000000000"
CODE, BANK = "800.100.155", "Tollhouse Test Bank"
START = datetime(2030, 1, 1, tzinfo=UTC)


@pytest.fixture
def learning(shop: Shop) -> Shop:
    """A shop whose retries are timed by outcomes: those of its bank were paid on every third day alone."""
    Channel.objects.filter(pk=shop.channel.pk).update(retry_timing="outcomes")
    shop.channel.refresh_from_db()
    count_rate("rate", tries=300, approved=100, expected=300)
    for day in range(1, 32):
        count_rate("day", value=day, tries=30, approved=30 if day % 3 == 0 else 0, expected=10)
    return shop


def count_rate(cell: str, *, code: str = CODE, issuer: str = BANK, **counts: Any) -> None:
    for one in {issuer, ""}:
        RetryRate.objects.create(cell=cell, code=code, issuer=one, counted_at=clock.real_now(), **counts)


def declined(shop: Shop, number: str = NO_MONEY, **more: str) -> JobRun:
    """The run of a monthly plan, after its first try with ``number``."""
    answer = started(shop.api, store_card(shop.api), **more)
    Registration.objects.filter(pk=Job.objects.get(pk=answer.id).registration).update(
        means_sealed=seal(number, Job.objects.get(pk=answer.id).registration)
    )
    step(shop.merchant)
    return JobRun.objects.get(job=UUID(answer.id))


def seal(number: str, row: Any) -> bytes:
    return current_vault().seal(Secret(number), row)


def test_by_default_the_table_says_when(shop: Shop) -> None:
    count_rate("rate", tries=300, approved=100, expected=300)
    run = declined(shop)
    assert run.next_at is not None
    assert run.next_at - run.at < timedelta(days=3, minutes=1)
    assert run.retry_choices == [{}]
    body = shop.api.get(f"/v1/schedules/{run.job_id.hex}").body
    assert "retryChance" not in body["runs"][0]


def test_a_retry_is_made_when_outcomes_promise_most_and_says_why(learning: Shop) -> None:
    run = declined(learning)
    assert run.state == "RETRYING"
    assert run.next_at is not None
    assert run.next_at.day % 3 == 0
    assert timedelta(days=1) <= run.next_at - run.at <= timedelta(days=10)
    (choice,) = run.retry_choices
    assert (choice["by"], choice["code"], choice["issuer"]) == ("outcomes", CODE, BANK)
    assert [one["cell"] for one in choice["factors"]] == ["rate", "day", "weekday", "hour"]
    assert choice["factors"][1] | {"figure": 0} == {
        "cell": "day", "value": run.next_at.day, "tries": 30, "approved": 30, "figure": 0,
    }  # fmt: skip
    assert choice["chance"] > choice["table"]["chance"] - 0.01
    body = learning.api.get(f"/v1/schedules/{run.job_id.hex}").body
    assert body["runs"][0]["retryChance"] == f"{choice['chance']:.2f}"


def test_the_page_of_a_schedule_tells_the_figures_of_a_retry(learning: Shop) -> None:
    run = declined(learning)
    page = signed_in(person("clara", Role.CLERK, learning.merchant)).get(f"/admin/scheduling/job/{run.job_id}/change/")
    text = page.content.decode()
    assert run.next_at is not None
    for words in ("Likely approved in", f"on day {run.next_at.day} of the month", "30 of 30 approved", BANK):
        assert words in text


def test_what_is_never_to_be_tried_again_is_not(learning: Shop) -> None:
    count_rate("rate", code="800.100.159", tries=300, approved=290, expected=300)
    run = declined(learning, STOLEN)
    assert (run.state, run.next_at, run.retry_choices) == ("FAILED", None, [])
    assert Job.objects.get(pk=run.job_id).reason == "DO_NOT_RETRY"


def test_too_few_outcomes_leave_the_choice_to_the_table(learning: Shop) -> None:
    RetryRate.objects.filter(cell="rate").update(tries=49)
    run = declined(learning)
    assert run.retry_choices == [{"by": "too few outcomes"}]
    assert run.next_at is not None
    assert run.next_at - run.at < timedelta(days=3, minutes=1)


def test_no_retry_comes_after_the_next_run(learning: Shop) -> None:
    """A plan of every second day leaves one day to choose in; a daily one none."""
    run = declined(learning, job__expression="0 0 6 */2 * ? *")
    job = Job.objects.get(pk=run.job_id)
    assert job.next_at is not None
    assert run.next_at is None or run.next_at < job.next_at
    daily = declined(learning, job__expression="0 0 6 * * ? *")
    assert (daily.state, daily.next_at) == ("FAILED", None)


def choose(shop: Shop, decision: dunning.DunningRetry, **values: Any) -> retry_choice.RetryChoice | None:
    details = {"MerchantAdviceCode": values.pop("advice", "")}
    payment = Payment(
        merchant=shop.merchant, channel=shop.channel, result_code=CODE, brand="VISA", method="CC", means="card",
        answer={"card": {"bin": "420000"}, "resultDetails": details},
    )  # fmt: skip
    for name, value in values.items():
        setattr(payment, name, value)
    now = datetime(2035, 1, 1, 9, tzinfo=UTC)
    return retry_choice.choose_retry(shop.channel, payment, decision, 1, now, now + timedelta(days=30))


def test_the_wait_that_an_issuer_asks_for_is_kept(learning: Shop) -> None:
    for advice, wait in (("02", timedelta(hours=72)), ("28", timedelta(days=6))):
        decision = dunning.decide_dunning(CODE, advice)
        assert isinstance(decision, dunning.DunningRetry)
        found = choose(learning, decision, advice=advice)
        assert found is not None
        assert found.at >= datetime(2035, 1, 1, 9, tzinfo=UTC) + wait
        assert found.at.day % 3 == 0


def test_a_wait_that_is_longer_than_the_choice_reaches_is_kept_too(learning: Shop) -> None:
    decision = dunning.decide_dunning(CODE, "30")
    assert isinstance(decision, dunning.DunningRetry)
    found = choose(learning, decision, advice="30")
    assert found is not None
    assert found.at == datetime(2035, 1, 11, 9, tzinfo=UTC)


def test_a_direct_debit_goes_by_the_table(learning: Shop) -> None:
    decision = dunning.decide_debit_dunning("800.100.203", "MS03")
    assert isinstance(decision, dunning.DunningRetry)
    found = choose(learning, decision, means="bankAccount", method="DD", result_code="800.100.203")
    assert found is not None
    assert (found.at, found.figures) == (datetime(2035, 1, 4, 9, tzinfo=UTC), {})


def test_a_card_at_a_schemes_limit_is_left_alone_until_it_is_below(learning: Shop) -> None:
    now, key = datetime(2035, 1, 1, 9, tzinfo=UTC), b"k" * 16
    for place in range(15):
        at = now - timedelta(days=25) + timedelta(days=place)
        CardDecline.objects.create(merchant=learning.merchant, key=key, at=at, payment=learning.channel.pk)
    assert find_earliest_retry(learning.merchant.pk, key, "Visa", now) == now + timedelta(days=5)
    assert find_earliest_retry(learning.merchant.pk, key, "Mastercard", now) == now
    decision = dunning.decide_dunning(CODE, "")
    assert isinstance(decision, dunning.DunningRetry)
    found = choose(learning, decision, means_fingerprint=key)
    assert found is not None
    assert found.at >= now + timedelta(days=5)


# --- counting -----------------------------------------------------------------------------------------------------


@pytest.fixture
def market(db: None) -> Merchant:
    call_command("simulate_market", payments=4_000, months=2, start=START.date())
    return Merchant.objects.get(name=market_rows.MARKET_MERCHANT)


def test_outcomes_are_counted_once_a_day_while_a_channel_wants_them(market: Merchant) -> None:
    run = retry_statistics.TIMER.run
    assert (run(), RetryRate.objects.count()) == (0, 0)
    Channel.objects.filter(merchant=market).update(retry_timing="outcomes")
    made = run()
    assert made == RetryRate.objects.count() > 100
    assert run() == 0
    whole = RetryRate.objects.get(cell="rate", code="", issuer="")
    charges: dict[str, list[Payment]] = {}
    rows = Payment.objects.filter(merchant=market, merchant_transaction_id__startswith="charge-")
    for one in rows.order_by("created_at"):
        charges.setdefault(one.merchant_transaction_id, []).append(one)
    retries = [one for tries in charges.values() for one in tries[1:]]
    assert (whole.tries, whole.approved) == (len(retries), sum(one.status == "APPROVED" for one in retries))
    assert 0 < whole.approved < whole.tries
    RetryRate.objects.update(counted_at=clock.real_now() - retry_statistics.COUNT_INTERVAL)
    assert run() == made


def test_where_nothing_is_counted_it_is_not_counted_again_at_once(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    Channel.objects.filter(pk=shop.channel.pk).update(retry_timing="outcomes")
    assert retry_statistics.TIMER.run() == 1
    monkeypatch.setattr(retry_statistics, "count_outcomes", lambda _now: pytest.fail("counted again"))
    assert retry_statistics.TIMER.run() == 0


def test_a_count_that_takes_too_long_is_tried_again_a_day_later(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    Channel.objects.filter(pk=shop.channel.pk).update(retry_timing="outcomes")
    tries: list[datetime] = []

    def too_long(now: datetime) -> int:
        tries.append(now)
        raise OperationalError("canceling statement due to statement timeout")

    monkeypatch.setattr(retry_statistics, "count_outcomes", too_long)
    for _ in range(2):
        assert retry_statistics.TIMER.run() == 0
    assert len(tries) == 1
    RetryRate.objects.update(counted_at=clock.real_now() - retry_statistics.COUNT_INTERVAL)
    retry_statistics.TIMER.run()
    assert len(tries) == 2


def test_hours_are_counted_without_declines_that_speak_of_the_card(market: Merchant) -> None:
    retry_statistics.count_outcomes(clock.real_now())
    hours = RetryRate.objects.filter(cell="hour", issuer="")
    asked = Payment.objects.filter(merchant=market, chain__isnull=False, payment_type__in=("DB", "PA"), referenced=None)
    judged = asked.exclude(connector="").exclude(
        result_code__in=("800.100.155", "800.100.157", "800.100.159", "300.100.100")
    )
    assert sum(one.tries for one in hours) == judged.count()
    bad, good = (RetryRate.objects.filter(cell="hour", issuer="Alpine Test Savings", value=hour) for hour in (3, 9))
    assert bad.get().approved / bad.get().expected < 0.7 < good.get().approved / good.get().expected


# --- the trial ----------------------------------------------------------------------------------------------------


def past(paid_days: frozenset[int], count: int = 400) -> PastCharges:
    """Retries of a bank that pays on some days, each three days after its decline, spread over all days."""
    retries, attempts = [], []
    for place in range(count):
        at = START + timedelta(days=place * 0.4)
        retries.append(
            PastRetry(
                payment=charge_id(place), issuer=BANK, code=CODE, advice="", declined_at=at - timedelta(days=3), at=at,
                approved=at.day in paid_days,
            )
        )  # fmt: skip
        attempts.append(PastAttempts(day=at.date(), issuer=BANK, hour=at.hour, tries=10, approved=9))
    return PastCharges(retries=retries, attempts=attempts)


def charge_id(place: int) -> Any:
    return UUID(int=place * 7919)


def test_a_trial_finds_the_uplift_of_paydays_and_none_where_days_are_alike() -> None:
    found = retry_trial.compute_uplift(past(frozenset({1, 2, 3, 10, 11, 12, 20, 21, 22})))
    assert found["timed"] == 200
    assert found["low"] > 15
    assert found["low"] < found["uplift"] < found["high"]
    assert sum(one["retries"] for one in found["bands"]) == 200
    alike = retry_trial.compute_uplift(past(frozenset(range(1, 32))))
    assert alike["low"] <= 0.5
    assert alike["uplift"] == pytest.approx(0, abs=3)


def test_a_trial_of_too_few_retries_says_so() -> None:
    assert retry_trial.compute_uplift(past(frozenset({1}), count=199)) == {"retries": 199, "timed": 0}


def test_a_channels_past_is_tried_from_its_page(market: Merchant, shop: Shop) -> None:
    boss = signed_in(person("boss", Role.MANAGER, market))
    channel = Channel.objects.get(merchant=market)
    page = boss.get(f"/admin/gateway/channel/{channel.pk}/change/").content.decode()
    address = f"/admin/scheduling/job/retries/?channel={channel.pk.hex}"
    assert address in page
    assert boss.get(address).status_code == 200
    form = {"channel": channel.pk, "since": "2030-01-01", "until": "2030-03-01", "all": "on"}
    answer = boss.post("/admin/scheduling/job/retries/", form)
    assert answer.status_code == 302, answer.content.decode()
    queue.run_background_work()
    work = BackgroundWork.objects.get()
    assert (work.state, work.done) == ("DONE", work.cursor["retries"])
    assert work.cursor["retries"] > 100
    shown = boss.get(work.parameters["list"])
    assert shown.status_code == 200
    stranger = signed_in(person("else", Role.MANAGER, shop.merchant))
    assert stranger.get(work.parameters["list"]).status_code in (403, 404)

"""The schedule endpoints: what is admitted, and what is answered besides the job.

Source: Part B, Scheduling; ruling D8; docs/decisions/0053.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

from gateway.access.tokens import TokenLimits
from gateway.models import Payment
from gateway.scheduling.models import Job
from tests.support.client import Api
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.subscriptions import MONTHLY, PLAN, schedule, started, store_card

pytestmark = pytest.mark.django_db
RATE = {"*": {"limit": 50, "window_s": 1_000_000}}


def test_a_token_with_limits_neither_starts_nor_changes_a_schedule_and_may_end_it(shop: Shop) -> None:
    """Whatever is wrong with the request besides."""
    card = store_card(shop.api)
    job = started(shop.api, card).id
    limited = shop.api.with_token(shop.issue(limits=TokenLimits(amount=Decimal("50.00")))[1])
    path = f"/v1/schedules/{job}"
    before = Payment.objects.count()
    for answer in (
        schedule(limited, card),
        schedule(limited, card, amount="x"),
        limited.post(f"{path}/reschedule", {"amount": "5.00", "currency": "EUR"}),
        limited.post(f"{path}/reschedule", {"amount": "x"}),
    ):
        assert (answer.status, answer.code) == (403, "800.900.300")
        assert "neither starts nor changes subscriptions" in answer.description
    assert (Job.objects.count(), Payment.objects.count()) == (1, before)
    assert limited.get(path).status == 200
    assert limited.post(f"{path}/deschedule").status == 200


def test_a_read_tells_the_job_its_rate_and_what_was_ignored(shop: Shop) -> None:
    api = shop.api_of(shop.open_channel(limits=RATE))
    job = started(api, store_card(api)).id
    read = api.get(f"/v1/schedules/{job}", {"colour": "red"})
    assert (read.status, read.id, read.body["amount"]) == (200, job, "9.90")
    assert read.body["ignoredParameters"] == ["colour"]
    assert read.headers["RateLimit-Limit"] == "50"
    assert {"buildNumber", "timestamp", "ndc"} <= read.body.keys()
    assert read.body["ndc"] != api.get(f"/v1/schedules/{job}").body["ndc"]


def test_a_read_counts_the_next_runs_from_the_merchants_time(api: Api) -> None:
    job = started(api, store_card(api)).id
    first = api.get(f"/v1/schedules/{job}").body["plan"]["nextRuns"][0]
    jump(31 * 86_400)
    assert api.get(f"/v1/schedules/{job}").body["plan"]["nextRuns"][0] > first


def test_changes_are_shown_as_the_job_with_what_was_ignored(shop: Shop) -> None:
    api = shop.api_of(shop.open_channel(limits=RATE))
    card = store_card(api)
    job = started(api, card)
    path = f"/v1/schedules/{job.id}"
    changes = (
        api.post("/v1/schedules", {"registrationId": card, "colour": "red", **PLAN, **MONTHLY}),
        api.post(f"{path}/reschedule", {"amount": "5.00", "currency": "EUR", "colour": "red"}),
        api.post(f"{path}/deschedule", {"colour": "red"}),
        api.delete(f"/v1/schedules/{started(api, card).id}", {"colour": "red"}),
    )
    for answer in (job, *changes):
        assert (answer.status, answer.body["paymentType"]) == (200, "DB"), answer
        assert "plan" in answer.body
        assert answer.headers["RateLimit-Limit"] == "50"
        assert answer.body.get("ignoredParameters", []) == ([] if answer is job else ["colour"])


@pytest.mark.parametrize("door", ["create", "reschedule", "deschedule"])
def test_a_repeated_key_changes_nothing_and_answers_as_the_first_time(api: Api, door: str) -> None:
    card = store_card(api)
    path = f"/v1/schedules/{started(api, card).id}"
    doors = {
        "create": ("/v1/schedules", {"registrationId": card, **PLAN, **MONTHLY}),
        "reschedule": (f"{path}/reschedule", {"amount": "5.00", "currency": "EUR"}),
        "deschedule": (f"{path}/deschedule", {}),
    }
    before = Payment.objects.count()
    first, second = (api.post(*doors[door], Idempotency_Key="key-1") for _ in range(2))
    assert (first.status, first.text) == (200, second.text)
    assert second.headers["Idempotent-Replayed"] == "true"
    assert Payment.objects.count() == before + 1

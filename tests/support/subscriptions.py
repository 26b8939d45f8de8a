"""A merchant's subscriptions for tests: a stored card, a schedule on it, and time that passes from one due thing to
the next."""

from __future__ import annotations

from datetime import timedelta

from django.db import connection

from gateway.core import clock
from gateway.models import Merchant
from gateway.scheduling import job_timer
from tests.support.client import Answer, Api

GOOD = "4200000000000000"
MONTHLY = {"job.month": "*", "job.dayOfMonth": "1", "job.hour": "6"}
PLAN = {"amount": "9.90", "currency": "EUR", "paymentType": "DB"}
FOR_GOOD = "2094"


def store_card(api: Api, number: str = GOOD, year: str = FOR_GOOD, **more: str) -> str:
    fields = {"paymentBrand": "VISA", "card.number": number, "card.expiryMonth": "05", "card.expiryYear": year}
    stored = api.post("/v1/registrations", fields | more)
    assert stored.status == 200, stored
    return stored.id


def schedule(api: Api, registration: str, **more: str) -> Answer:
    """A monthly debit of 9.90, or as ``more`` says (``job__hour``); the answer."""
    sent = {name.replace("__", "."): value for name, value in more.items()}
    plan = {} if any(name.startswith("job.") for name in sent) else MONTHLY
    return api.post("/v1/schedules", {"registrationId": registration, **PLAN, **plan, **sent})


def started(api: Api, registration: str, **more: str) -> Answer:
    answer = schedule(api, registration, **more)
    assert answer.status == 200, answer
    return answer


def step(merchant: Merchant) -> int:
    """Move the merchant's clock to the next thing that is due, and do it; how many things that were."""
    at = job_timer.find_next_job_time(merchant)
    assert at is not None
    ahead = max(at - clock.real_now(), merchant.clock_offset) + timedelta(milliseconds=1)
    Merchant.objects.filter(pk=merchant.pk).update(clock_offset=ahead)
    merchant.clock_offset = ahead
    return job_timer.run_due_jobs(merchant)


def lease_out() -> None:
    """What a dead worker had claimed is free again."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE scheduling_job SET lease_until = NULL")
        cursor.execute("UPDATE scheduling_jobrun SET lease_until = NULL")

"""A year of a monthly subscription in seconds: twelve payments, each at its time with its webhook; then it is
cancelled.

Source: Part B, Scheduling; checks A7.14, B17.8; decisions, section 6.
"""

from __future__ import annotations

import pytest

from gateway.core import clock
from gateway.models import Notification, Payment
from gateway.scheduling import job_timer
from tests.support.client import Api
from tests.support.fixtures import Shop
from tests.support.subscriptions import GOOD, PLAN, started, step, store_card

pytestmark = pytest.mark.django_db
YEAR_S = 365 * 24 * 3600


def test_twelve_months_make_twelve_payments(shop: Shop) -> None:
    """B17.8: from one due time to the next, by the timer alone."""
    api = shop.api
    job = started(api, store_card(api), merchantTransactionId="reader-17")
    expected = job.body["plan"]["nextRuns"]
    for _ in range(12):
        assert step(shop.merchant) == 1
        assert job_timer.run_due_jobs(shop.merchant) == 0
    body = api.get(f"/v1/schedules/{job.id}").body
    assert [run["state"] for run in body["runs"]] == ["PAID"] * 12
    assert [run["dueAt"] for run in reversed(body["runs"])][:5] == expected
    for run in body["runs"]:
        paid = api.read(run["id"])
        assert (paid.status, paid.code, paid.body["amount"]) == (200, "000.100.110", "9.90")
        assert paid.body["schedule"] == {"id": job.id, "dueAt": run["dueAt"]}
        assert paid.body["merchantTransactionId"] == "reader-17"
        assert paid.body["standingInstruction"]["source"] == "MIT"
    payments = Payment.objects.filter(payment_type="DB")
    assert payments.count() == 12
    told = Notification.objects.filter(kind="PAYMENT", payment__in=payments)
    assert told.count() == 12
    for payment in payments:
        assert clock.format_timestamp(payment.created_at) in {run["dueAt"] for run in body["runs"]}


def test_the_clock_of_the_test_environment_runs_a_year_in_one_request(api: Api) -> None:
    """B17.8: POST /v1/test/clock answers when everything that fell due has run."""
    job = started(api, store_card(api))
    moved = api.post("/v1/test/clock", {"advance": str(YEAR_S)}).body
    assert (moved["complete"], moved["ran"]["jobs"]) == (True, 12)
    assert [run["state"] for run in api.get(f"/v1/schedules/{job.id}").body["runs"]] == ["PAID"] * 12


def test_the_first_payment_starts_the_subscription_and_notice_ends_it(shop: Shop) -> None:
    """B17.5: paid and agreed on once; then three months; then notice of a month, in which one more is due."""
    api = shop.api
    notice = {"job.noticeUnit": "MONTH", "job.noticeNumber": "1", "job.noticeCallable": "ANYTIME"}
    first = api.pay(
        createRegistration="true",
        amount="9.90",
        job__month="*",
        job__dayOfMonth="1",
        standingInstruction__mode="INITIAL",
        standingInstruction__source="CIT",
        standingInstruction__type="RECURRING",
        **{name.replace(".", "__"): value for name, value in notice.items()},
        card__expiryYear="2094",
    )
    assert first.status == 200, first
    job = api.get(f"/v1/schedules/{first.body['schedule']['id']}")
    assert (job.status, job.body["registrationId"]) == (200, first.body["registrationId"])
    for _ in range(3):
        step(shop.merchant)
    given = api.post(f"/v1/schedules/{job.id}/deschedule", {"paymentType": "DS"})
    assert given.body["plan"] | {"active": True, "state": "ENDING", "reason": "NOTICE"} == given.body["plan"]
    assert len(given.body["plan"]["nextRuns"]) == 1
    done = 0
    while job_timer.find_next_job_time(shop.merchant) is not None:
        done += step(shop.merchant)  # its end lies so little behind its last payment that one step may do both
    assert done == 2
    body = api.get(f"/v1/schedules/{job.id}").body
    assert (body["plan"]["active"], body["plan"]["state"], len(body["runs"])) == (False, "ENDED", 4)
    told = Notification.objects.filter(kind="SCHEDULE").order_by("id").values_list("action", flat=True)
    assert list(told) == ["CREATED", "UPDATED", "DELETED"]
    told = api.get("/v1/test/acquirer/messages", {"id": first.id}).body["messages"][0]["received"]
    sent = api.get("/v1/test/acquirer/messages", {"id": body["runs"][0]["id"]}).body["messages"][0]["sent"]
    assert sent["standingInstruction"]["initialTransactionId"] == told["networkReference"]


def test_instalments_end_when_all_are_paid(shop: Shop) -> None:
    """Part B, Card on file (numberOfInstallments): three, and no fourth try."""
    api = shop.api
    words = {"standingInstruction.type": "INSTALLMENT", "standingInstruction.numberOfInstallments": "3"}
    job = api.post("/v1/schedules", {"registrationId": store_card(api, GOOD), **PLAN, "job.month": "*", **words})
    assert job.status == 200, job
    for _ in range(4):
        assert step(shop.merchant) == 1
    body = api.get(f"/v1/schedules/{job.id}").body
    assert (body["plan"]["state"], body["plan"]["reason"]) == ("ENDED", "AGREEMENT_ENDED")
    assert [run["state"] for run in body["runs"]] == ["PAID"] * 3
    assert Payment.objects.filter(payment_type="DB").count() == 3

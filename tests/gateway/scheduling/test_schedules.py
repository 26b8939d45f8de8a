"""Schedules over HTTP: what is taken, what is refused, what comes back.

Source: Part B, Scheduling; rulings D8, D11, D20, D39; checks B17.1 to B17.7.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models import F

from gateway.catalogue.endpoints import FOLLOW_UP_ENDPOINT
from gateway.core import clock
from gateway.core.identifiers import row_id
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE
from gateway.models import Agreement, Notification, Payment, Registration
from gateway.payments.payment_request import RequestTrace
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.registrations import ChangeRequest
from gateway.scheduling import schedules
from gateway.scheduling.models import Job, JobRun
from tests.support.client import Answer, Api
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.subscriptions import MONTHLY, PLAN, schedule, started, store_card

pytestmark = pytest.mark.django_db
UNKNOWN = "01a1ff6d25f4754d8dc59d8d915307b2"


@pytest.fixture
def card(api: Api) -> str:
    return store_card(api)


def expression(answer: Answer) -> str:
    assert answer.status == 200, answer
    return str(answer.body["plan"]["expression"])


def test_a_schedule_tells_its_job_and_its_next_runs(api: Api, card: str) -> None:
    """D8."""
    made = started(api, card, job__name="Monthly plan", **{name.replace(".", "__"): v for name, v in MONTHLY.items()})
    body = made.body
    assert (made.code, body["paymentType"], body["amount"], body["currency"]) == ("000.100.110", "DB", "9.90", "EUR")
    assert (body["registrationId"], body["registration"]["id"]) == (card, card)
    assert body["job"] == {"name": "Monthly plan", "month": "*", "dayOfMonth": "1", "hour": "6"}
    assert body["plan"]["active"] is True
    assert len(body["plan"]["nextRuns"]) == 5
    assert all(at[8:] == "01 06:00:00+0000" for at in body["plan"]["nextRuns"])
    for path in ("/v1/schedules/", "/scheduling/v1/schedules/"):
        read = api.get(path + made.id)
        assert read.status == 200
        assert {name: read.body[name] for name in ("id", "job", "plan")} == {
            name: body[name] for name in ("id", "job", "plan")
        }
    row = Payment.objects.get(pk=made.id)
    assert (row.payment_type, row.approved_amount, Notification.objects.get(payment=row).kind) == ("SD", 0, "SCHEDULE")


def test_the_payment_of_a_schedule_is_found_by_the_merchants_own_references(api: Api, card: str) -> None:
    own = {"merchantTransactionId": "order-4711", "merchantInvoiceId": "invoice-1", "merchantMemo": "for a birthday"}
    row = Payment.objects.get(pk=started(api, card, **own).id)
    kept = (row.merchant_transaction_id, row.merchant_invoice_id, row.merchant_memo)
    assert kept == ("order-4711", "invoice-1", "for a birthday")


def test_amount_currency_and_payment_type_are_stored_once(api: Api, card: str) -> None:
    """Also after a reschedule; docs/decisions/0058."""
    made = started(api, card, job__name="Monthly plan")
    changed = api.post(
        f"/v1/schedules/{made.id}/reschedule", {"amount": "12.00", "currency": "EUR", "job.name": "Dearer"}
    )
    job = Job.objects.get(pk=made.id)
    assert (job.name, job.amount, job.currency, job.payment_type) == ("Dearer", 12, "EUR", "DB")
    assert not {"amount", "currency", "paymentType"} & job.request.keys()
    told = [(answer.body["amount"], answer.body["currency"], answer.body["paymentType"]) for answer in (made, changed)]
    assert told == [("9.90", "EUR", "DB"), ("12.00", "EUR", "DB")]


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({"hour": "7"}, "0 0 7 1 1 ? *"),
        ({"name": "Plan"}, "0 0 0 1 1 ? *"),
        ({"dayOfWeek": "MON", "month": "*"}, "0 0 0 ? * MON *"),
        ({"dayOfMonth": "?", "month": "*"}, "0 0 0 ? * 1 *"),
        (
            {"dayOfMonth": "L", "month": "*/3", "second": "10,40", "minute": "59", "hour": "22-2"},
            "10,40 59 22-2 L */3 ? *",
        ),
        ({"dayOfMonth": "*", "dayOfWeek": "?", "month": "2-4"}, "0 0 0 * 2-4 ? *"),
        ({"year": "", "hour": "5"}, "0 0 5 1 1 ? *"),
        ({"year": "2030-2099", "dayOfWeek": "6#3"}, "0 0 0 ? 1 6#3 2030-2099"),
        ({"expression": "0 0 12 15W * ?", "hour": "5", "dayOfMonth": "3"}, "0 0 12 15W * ?"),
        ({"expression": "0 0/30 8 ? jan-mar fril *"}, "0 0/30 8 ? JAN-MAR FRIL *"),
    ],
)
def test_the_times_have_their_defaults_and_the_expression_wins(
    api: Api, card: str, sent: dict[str, str], expected: str
) -> None:
    """B17.1 to B17.3, B17.7; D39."""
    assert expression(schedule(api, card, **{f"job__{name}": value for name, value in sent.items()})) == expected


def test_job_hour_alone_runs_on_the_first_of_january(api: Api, card: str) -> None:
    """B17.1."""
    now = clock.real_now()
    first = started(api, card, job__hour="7").body["plan"]["nextRuns"][0]
    at = datetime.strptime(first, "%Y-%m-%d %H:%M:%S%z")
    assert (at.month, at.day, at.hour, at.minute, at.second, at.tzinfo) == (1, 1, 7, 0, 0, UTC)
    assert now < at < now + timedelta(days=367)


@pytest.mark.parametrize(
    ("sent", "name", "code"),
    [
        ({"job__hour": "24"}, "job.hour", "200.300.404"),
        ({"job__minute": "*/5"}, "job.minute", "200.300.404"),
        ({"job__second": "60"}, "job.second", "200.300.404"),
        ({"job__dayOfMonth": "32"}, "job.dayOfMonth", "200.300.404"),
        ({"job__dayOfWeek": "8"}, "job.dayOfWeek", "200.300.404"),
        ({"job__dayOfWeek": "MON-FRI/2"}, "job.dayOfWeek", "200.300.404"),
        ({"job__month": "JAN"}, "job.month", "200.300.404"),
        ({"job__year": "1969"}, "job.year", "200.300.404"),
        ({"job__expression": "0 0 12 1 *"}, "job.expression", "200.300.404"),
        ({"job__expression": "0 0 12 1 * MON"}, "job.expression", "200.300.404"),
        ({"job__dayOfMonth": "1", "job__dayOfWeek": "MON"}, "job.dayOfWeek", "200.300.404"),
        ({"job__name": "x" * 65}, "job.name", "200.300.404"),
        ({"job__startDate": "2030-02-30 00:00:00"}, "job.startDate", "200.300.404"),
        ({"job__endDate": "tomorrow"}, "job.endDate", "200.300.404"),
        ({"job__noticeUnit": "FORTNIGHT"}, "job.noticeUnit", "200.300.404"),
        ({"job__noticeNumber": "1" * 17}, "job.noticeNumber", "200.300.404"),
        ({"job__noticeCallable": "NEVER"}, "job.noticeCallable", "200.300.404"),
        ({"job__durationUnit": "ERA"}, "job.durationUnit", "200.300.404"),
        ({"job__durationNumber": "-1"}, "job.durationNumber", "200.300.404"),
        ({"job__durationUnit": "YEAR"}, "job.durationNumber", "100.250.106"),
        ({"job__durationNumber": "2"}, "job.durationUnit", "100.250.106"),
        ({"job__durationUnit": "YEAR", "job__durationNumber": "0"}, "job.durationNumber", "100.250.106"),
        ({"job__noticeUnit": "MONTH"}, "job.noticeNumber", "100.250.107"),
        ({"job__noticeNumber": "2"}, "job.noticeUnit", "100.250.107"),
        ({"job__noticeCallable": "DURATION_END"}, "job.noticeCallable", "100.250.107"),
        ({"job__expression": "0 0 0 31 2 ?"}, "job.expression", "100.250.120"),
        ({"job__year": "2001"}, "job.year", "100.250.120"),
        ({"job__endDate": "2001-01-01 00:00:00"}, "job.endDate", "100.250.120"),
        ({"job__durationUnit": "SECOND", "job__durationNumber": "1"}, "job.durationNumber", "100.250.120"),
        ({"amount": "0.00", "job__hour": "1"}, "amount", "200.300.404"),
        ({"amount": "9.9", "job__hour": "1"}, "amount", "200.300.404"),
        ({"currency": "JPY", "amount": "9.90", "job__hour": "1"}, "amount", "200.300.404"),
        ({"paymentType": "CD", "job__hour": "1"}, "paymentType", "200.300.404"),
        ({"paymentType": "SD", "job__hour": "1"}, "paymentType", "200.300.404"),
        ({"job__hours": "1"}, "job.hours", "200.300.404"),
        ({"card__number": "4200000000000000", "job__hour": "1"}, "card.number", "200.300.404"),
    ],
)
def test_what_makes_no_plan_is_refused_and_named(
    api: Api, card: str, sent: dict[str, str], name: str, code: str
) -> None:
    """B17; D10: nothing is left behind."""
    answer = schedule(api, card, **sent)
    assert (answer.status, answer.code) == (400, code), answer
    assert name in answer.errors
    assert "id" not in answer.body
    assert not Job.objects.exists()


def test_without_any_job_parameter_there_is_no_job(api: Api, card: str) -> None:
    answer = api.post("/v1/schedules", {"registrationId": card, **PLAN})
    assert (answer.status, answer.code) == (400, "100.250.250")


def test_all_sixteen_parameters_are_taken_together(api: Api, card: str) -> None:
    """B17.1."""
    sent = {
        "name": "All",
        "year": "*",
        "month": "*",
        "dayOfMonth": "1",
        "dayOfWeek": "?",
        "hour": "6",
        "minute": "30",
        "second": "15",
        "startDate": "2030-06-01 00:00:00",
        "endDate": "2033-06-01 00:00:00",
        "noticeUnit": "WEEK",
        "noticeNumber": "2",
        "noticeCallable": "ANYTIME",
        "durationUnit": "YEAR",
        "durationNumber": "2",
        "expression": "15 30 6 1 * ? *",
    }
    made = started(api, card, **{f"job__{name}": value for name, value in sent.items()})
    assert made.body["job"] == sent
    assert made.body["plan"]["nextRuns"][0] == "2030-06-01 06:30:15+0000"
    assert made.body["plan"]["endsAt"] == "2032-06-01 00:00:00+0000"


def test_start_and_end_bound_the_runs(api: Api, card: str) -> None:
    """B17.4: the end still counts."""
    bounds = {"job__startDate": "2031-03-01 00:00:00", "job__endDate": "2031-05-01 00:00:00"}
    plan = started(api, card, job__month="*", **bounds).body["plan"]
    assert plan["nextRuns"] == [f"2031-0{month}-01 00:00:00+0000" for month in (3, 4, 5)]


def test_a_job_runs_in_its_channels_zone(shop: Shop) -> None:
    """D39: 02:30 in Berlin, also on the day whose clocks skip it."""
    api = shop.api_of(shop.open_channel("Berlin", time_zone="Europe/Berlin"))
    made = started(api, store_card(api), job__expression="0 30 2 * * ?", job__startDate="2031-03-29 00:00:00")
    assert made.body["plan"]["timeZone"] == "Europe/Berlin"
    assert made.body["plan"]["nextRuns"][:3] == [
        "2031-03-29 01:30:00+0000",
        "2031-03-30 01:00:00+0000",
        "2031-03-31 00:30:00+0000",
    ]


def test_foreign_and_unknown_ids_look_the_same(shop: Shop, stranger: Shop, card: str) -> None:
    """D11."""
    theirs = started(stranger.api, store_card(stranger.api)).id
    other = shop.api_of(shop.open_channel())
    own = started(shop.api, card).id
    for api, ident in ((shop.api, UNKNOWN), (shop.api, theirs), (shop.api, "x"), (other, own)):
        path = f"/v1/schedules/{ident}"
        assert codes(api.get(path)) == (404, "700.400.580")
        assert codes(api.post(f"{path}/reschedule", {"amount": "5.00", "currency": "EUR"})) == (404, "100.360.300")
        assert codes(api.post(f"{path}/deschedule")) == (404, "100.360.303")
        assert codes(api.delete(path)) == (404, "100.360.303")
    for ident in (UNKNOWN, store_card(stranger.api), own):
        answer = schedule(shop.api, ident)
        assert (answer.status, list(answer.errors)) == (400, ["registrationId"])
    assert codes(schedule(shop.api, UNKNOWN)) == (400, "100.150.200")


def codes(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.code


def test_what_could_never_be_charged_is_refused_at_once(shop: Shop, card: str) -> None:
    api = shop.api
    gone = store_card(api)
    api.delete(f"/v1/registrations/{gone}")
    assert codes(schedule(api, gone)) == (400, "100.150.202")
    account = api.post(
        "/v1/registrations",
        {
            "paymentBrand": "DIRECTDEBIT_SEPA",
            "bankAccount.holder": "Jane Jones",
            "bankAccount.country": "DE",
            "bankAccount.iban": "DE23100000001234567890",
            "bankAccount.bic": "MARKDEF1100",
        },
    )
    assert account.status == 200, account
    assert schedule(api, account.id).status == 200
    narrow = shop.open_channel(currencies=["USD"])
    only_dollars = shop.api_of(narrow)
    assert "currency" in schedule(only_dollars, store_card(only_dollars)).errors


def test_a_key_makes_one_schedule_and_one_change(api: Api, card: str) -> None:
    """D20."""
    fields = {"registrationId": card, **PLAN, **MONTHLY}
    first, second = (api.post("/v1/schedules", fields, Idempotency_Key="plan-1") for _ in range(2))
    assert first.text == second.text
    assert second.headers["Idempotent-Replayed"] == "true"
    assert Job.objects.count() == 1
    path = f"/v1/schedules/{first.id}"
    for verb, sent in (("reschedule", {"amount": "5.00", "currency": "EUR"}), ("deschedule", {})):
        answers = [api.post(f"{path}/{verb}", sent, Idempotency_Key=verb) for _ in range(2)]
        assert answers[0].text == answers[1].text
    assert Payment.objects.filter(payment_type__in=("RS", "DS")).count() == 2
    other = api.post("/v1/schedules", fields | {"amount": "1.00"}, Idempotency_Key="plan-1")
    assert other.status == 400


def test_reschedule_changes_what_is_sent_and_keeps_the_rest(api: Api, card: str) -> None:
    job = started(api, card, job__month="*", job__dayOfMonth="15", job__hour="8", descriptor="Reader")
    path = f"/v1/schedules/{job.id}/reschedule"
    changed = api.post(path, {"amount": "12.50", "currency": "EUR", "paymentType": "RS"})
    assert (changed.status, changed.id, changed.body["amount"]) == (200, job.id, "12.50")
    assert (changed.body["paymentType"], changed.body["descriptor"]) == ("DB", "Reader")
    assert expression(changed) == "0 0 8 15 * ? *"
    changed = api.post(path, {"job.dayOfMonth": "20", "job.month": "*"})
    assert expression(changed) == "0 0 0 20 * ? *"
    assert changed.body["amount"] == "12.50"
    assert codes(api.post(path, {"job.year": "2001"})) == (400, "100.250.120")
    assert list(api.post(path, {"currency": "EUR"}).errors) == ["amount"]
    assert expression(api.get(f"/v1/schedules/{job.id}")) == "0 0 0 20 * ? *"
    told = [row.answer["facts"]["schedule"] for row in Payment.objects.filter(registration=card).order_by("pk")[1:]]
    assert told == [{"id": job.id, "sequence": number} for number in (1, 2, 3)], "what is told of a job has an order"


@pytest.mark.parametrize(
    ("sent", "months"),
    [
        ({}, 0),
        ({"noticeUnit": "MONTH", "noticeNumber": "3"}, 3),
        ({"noticeUnit": "MONTH", "noticeNumber": "3", "noticeCallable": "ANYTIME"}, 3),
        ({"durationUnit": "MONTH", "durationNumber": "2"}, 0),
        ({"durationUnit": "MONTH", "durationNumber": "2", "noticeCallable": "DURATION_END"}, 2),
        (
            {
                "durationUnit": "MONTH",
                "durationNumber": "2",
                "noticeCallable": "DURATION_END",
                "noticeUnit": "MONTH",
                "noticeNumber": "1",
            },
            2,
        ),
        (
            {
                "durationUnit": "MONTH",
                "durationNumber": "2",
                "noticeCallable": "DURATION_END",
                "noticeUnit": "MONTH",
                "noticeNumber": "3",
            },
            4,
        ),
        (
            {
                "durationUnit": "MONTH",
                "durationNumber": "2",
                "noticeCallable": "ANYTIME",
                "noticeUnit": "MONTH",
                "noticeNumber": "5",
            },
            2,
        ),
    ],
)
def test_notice_ends_a_job_at_the_computed_date(api: Api, card: str, sent: dict[str, str], months: int) -> None:
    """B17.5, B17.6: ANYTIME after the notice; DURATION_END with the term in which it is given in time."""
    words = {f"job__{name}": value for name, value in sent.items()}
    job = started(api, card, job__expression="0 0 0 * * ?", **words)
    plan = api.delete(f"/v1/schedules/{job.id}").body["plan"]
    assert plan["state"] == ("ENDING" if months else "ENDED")
    row = Job.objects.get(pk=job.id)
    begun = row.created_at
    month = begun.month - 1 + months
    expected = (begun.year + month // 12, month % 12 + 1)
    assert row.ends_at is not None
    assert (row.ends_at.year, row.ends_at.month) == expected
    assert abs((row.ends_at - begun).days - months * 30) <= 4
    if months:
        again = api.post(f"/v1/schedules/{job.id}/deschedule").body["plan"]
        assert again["state"] == "ENDING"
        assert Job.objects.get(pk=job.id).ends_at >= row.ends_at - timedelta(seconds=1)  # type: ignore[operator]
    else:
        assert codes(api.post(f"/v1/schedules/{job.id}/deschedule")) == (400, "100.360.303")
        assert codes(api.post(f"/v1/schedules/{job.id}/reschedule", {"job.hour": "1"})) == (400, "100.360.300")


def test_a_notice_is_taken_back_by_reschedule(api: Api, card: str) -> None:
    job = started(api, card, job__month="*", job__noticeUnit="MONTH", job__noticeNumber="2")
    api.delete(f"/v1/schedules/{job.id}")
    back = api.post(f"/v1/schedules/{job.id}/reschedule").body["plan"]
    assert (back["state"], "endsAt" in back, "reason" in back) == ("ACTIVE", False, False)


def test_another_card_is_charged_under_the_agreement_of_the_job_or_under_its_own(api: Api, card: str) -> None:
    """The shopper agreed to the job: a card without an agreement takes the job's; one that has its own keeps it."""
    job = started(api, card, **{name.replace(".", "__"): value for name, value in MONTHLY.items()})
    before = Job.objects.get(pk=job.id)
    assert before.agreement is not None
    plain, agreed = store_card(api), store_card(api)
    other = Job.objects.get(pk=started(api, agreed, job__month="*").id).agreement
    assert other not in (None, before.agreement)
    for registration, agreement in ((plain, before.agreement), (agreed, other)):
        changed = api.post(f"/v1/schedules/{job.id}/reschedule", {"registrationId": registration})
        assert (changed.status, changed.body["registrationId"]) == (200, registration)
        row = Job.objects.get(pk=job.id)
        assert (row.registration.hex, row.agreement) == (registration, agreement)


def test_another_card_keeps_the_agreement_of_a_job_that_began_under_an_older_one(api: Api) -> None:
    """The agreement is not named like the job: it was made by the card's first job."""
    card = store_card(api)
    older = Job.objects.get(pk=started(api, card).id)
    job = started(api, card)
    assert Job.objects.get(pk=job.id).agreement == older.agreement
    assert api.post(f"/v1/schedules/{job.id}/reschedule", {"registrationId": store_card(api)}).status == 200
    assert Job.objects.get(pk=job.id).agreement == older.agreement
    assert Agreement.objects.filter(pk=older.agreement).exists()


def test_a_new_job_of_a_card_goes_under_its_latest_agreement(api: Api, card: str) -> None:
    first = Job.objects.get(pk=started(api, card).id)
    made = Agreement.objects.get(pk=first.agreement)
    made.pk = row_id()
    made.save(force_insert=True)
    assert Job.objects.get(pk=started(api, card).id).agreement == made.pk


WALLET = {
    "paymentBrand": "WALLET1", "wallet1.source": "web", "card.cvv": None, "threeDSecure.eci": "02",
    "threeDSecure.verificationId": "AAACAgSRBklmQCFgMpEGAAAAAAA=",
}  # fmt: skip


@pytest.mark.parametrize("at_once", [True, False])
def test_an_agreement_of_a_wallets_card_has_the_network_of_the_card(api: Api, at_once: bool) -> None:
    """docs/decisions/0147: the reference of the first payment is that network's."""
    job = MONTHLY if at_once else {}
    stored = api.pay(createRegistration="true", **WALLET, **job)
    assert stored.status == 200, stored
    if not at_once:
        started(api, stored.body["registrationId"])
    assert Agreement.objects.get().brand == "VISA"


def test_a_job_of_a_card_without_a_reference_of_its_own_refers_to_the_payment_that_stored_it(api: Api) -> None:
    """An acquirer that stored the card has a number for that; else it is told ours."""
    known, unknown = store_card(api), store_card(api)
    stored = {one: Registration.objects.get(pk=one).payment for one in (known, unknown)}
    Payment.objects.filter(pk=stored[known]).update(connector_tx_id="ACQUIRER-1")
    Payment.objects.filter(pk=stored[unknown]).update(connector_tx_id="")
    found = []
    for one in (known, unknown):
        job = Job.objects.get(pk=started(api, one).id)
        found.append(Agreement.objects.get(pk=job.agreement).reference)
    assert found == ["ACQUIRER-1", stored[unknown].hex]


@pytest.mark.parametrize("verb", ["reschedule", "deschedule"])
def test_a_change_that_met_another_is_made_on_what_that_one_left(
    api: Api, card: str, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run, or a clerk, changed the job between reading and writing: nothing of it is written over."""
    load, left = schedules.load_job_registration, [1]
    path = started(api, card, job__noticeUnit="MONTH", job__noticeNumber="1", job__month="*").id
    sent = {"job.name": "ours"} if verb == "reschedule" else {}

    def meets_another(row: Job, *, gone: bool = False) -> Registration:
        if left[0]:
            left[0] -= 1
            Job.objects.filter(pk=row.pk).update(sequence=F("sequence") + 1, merchant_memo="a memo of theirs")
        return load(row, gone=gone)

    before = Job.objects.get(pk=path).sequence
    with monkeypatch.context() as patch:
        patch.setattr(schedules, "load_job_registration", meets_another)
        assert api.post(f"/v1/schedules/{path}/{verb}", sent).status == 200
    row = Job.objects.get(pk=path)
    assert (row.sequence, row.merchant_memo) == (before + 2, "a memo of theirs")
    left[0] = 1_000
    with monkeypatch.context() as patch:
        patch.setattr(schedules, "load_job_registration", meets_another)
        assert codes(api.post(f"/v1/schedules/{path}/{verb}", sent)) == (409, CONCURRENT_UPDATE_CODE)
    assert Job.objects.get(pk=path).updated_at == row.updated_at


def test_a_reschedule_takes_a_job_up_with_its_counts_at_nothing(api: Api, card: str) -> None:
    job = started(api, card)
    Job.objects.update(state="SUSPENDED", reason="DECLINED", declined=3, late=2, next_at=None)
    plan = api.post(f"/v1/schedules/{job.id}/reschedule").body["plan"]
    row = Job.objects.get(pk=job.id)
    assert (row.state, row.reason, row.declined, row.late, row.next_at is not None) == ("ACTIVE", "", 0, 0, True)
    assert (plan["state"], plan["active"], "reason" in plan) == ("ACTIVE", True, False)


@pytest.mark.parametrize(("kind", "expected"), [("PA", "PA"), ("DB", "DB"), ("RS", "DB")])
def test_a_reschedule_may_change_the_type_of_the_runs(api: Api, card: str, kind: str, expected: str) -> None:
    """RS is the type of the change itself."""
    job = started(api, card)
    changed = api.post(f"/v1/schedules/{job.id}/reschedule", {"paymentType": kind})
    assert (changed.body["paymentType"], Job.objects.get(pk=job.id).payment_type) == (expected, expected)


def test_new_times_leave_the_name_the_bounds_and_the_notice(api: Api, card: str) -> None:
    kept = {
        "name": "Plan", "startDate": "2031-01-15 00:00:00", "durationUnit": "YEAR", "durationNumber": "2",
        "noticeUnit": "WEEK", "noticeNumber": "3",
    }  # fmt: skip
    job = started(api, card, **{f"job__{name}": value for name, value in kept.items()}, job__month="*", job__hour="5")
    changed = api.post(f"/v1/schedules/{job.id}/reschedule", {"job.dayOfMonth": "7", "job.month": "*"})
    assert changed.body["job"] == {**kept, "dayOfMonth": "7", "month": "*"}
    row = Job.objects.get(pk=job.id)
    assert (row.name, row.notice_unit, row.notice_number) == ("Plan", "WEEK", 3)
    assert changed.body["plan"]["nextRuns"][0] == "2031-02-07 00:00:00+0000"
    assert changed.body["plan"]["endsAt"] == "2033-01-15 00:00:00+0000"
    named = api.post(f"/v1/schedules/{job.id}/reschedule", {"amount": "5.00", "currency": "EUR"})
    assert (named.body["job"]["name"], Job.objects.get(pk=job.id).name) == ("Plan", "Plan")


def test_the_duration_of_a_job_counts_from_its_start_and_not_from_a_change(api: Api, card: str) -> None:
    job = started(api, card, job__month="*", job__durationUnit="MONTH", job__durationNumber="12")
    end = Job.objects.get(pk=job.id).ends_at
    pass_time(api, days=40)
    changed = api.post(f"/v1/schedules/{job.id}/reschedule", {"amount": "5.00", "currency": "EUR"})
    assert (changed.status, Job.objects.get(pk=job.id).ends_at) == (200, end)


def test_a_job_whose_card_was_deleted_is_read_paused_and_cancelled_and_goes_on_with_another(
    api: Api, card: str
) -> None:
    jobs = [started(api, card).id for _ in range(2)]
    api.delete(f"/v1/registrations/{card}")
    assert api.get(f"/v1/schedules/{jobs[0]}").status == 200
    path = f"/v1/schedules/{jobs[0]}/reschedule"
    refused = api.post(path, {"amount": "5.00", "currency": "EUR"})
    assert (codes(refused), list(refused.errors)) == ((400, "100.150.202"), ["registrationId"])
    assert refused.body["result"]["parameterErrors"][0]["link"].endswith("#registrationId"), "the reference explains it"
    assert api.post(path, {"registrationId": store_card(api)}).status == 200
    assert api.delete(f"/v1/schedules/{jobs[1]}").body["plan"]["state"] == "ENDED"


def test_a_change_that_no_run_could_be_made_with_is_refused(shop: Shop) -> None:
    narrow = shop.open_channel(currencies=["EUR"])
    api = shop.api_of(narrow)
    job = started(api, store_card(api))
    answer = api.post(f"/v1/schedules/{job.id}/reschedule", {"amount": "5.00", "currency": "USD"})
    assert (answer.status, list(answer.errors)) == (400, ["currency"])
    assert Job.objects.get(pk=job.id).currency == "EUR"


def test_a_job_that_charges_nobody_ends_at_once_with_its_notice(api: Api, card: str) -> None:
    """While it is suspended nothing is charged until the notice would end."""
    job = started(api, card, job__month="*", job__noticeUnit="MONTH", job__noticeNumber="2")
    Job.objects.update(state="SUSPENDED", next_at=None)
    assert api.delete(f"/v1/schedules/{job.id}").body["plan"]["state"] == "ENDED"


def test_webhooks_tell_of_a_schedule_as_made_changed_under_notice_and_ended(api: Api, card: str) -> None:
    """A notice that was given changes a job; it has not ended."""
    job = started(api, card, job__noticeUnit="MONTH", job__noticeNumber="2")
    told = Notification.objects.filter(kind="SCHEDULE").order_by("pk").values_list("action", flat=True)
    assert list(told) == ["CREATED"]
    assert api.post(f"/v1/schedules/{job.id}/reschedule", {"amount": "5.00", "currency": "EUR"}).status == 200
    assert api.delete(f"/v1/schedules/{job.id}").body["plan"]["state"] == "ENDING"
    assert list(told.all()) == ["CREATED", "UPDATED", "UPDATED"]
    ended = started(api, card)
    assert api.delete(f"/v1/schedules/{ended.id}").body["plan"]["state"] == "ENDED"
    assert list(told.all())[3:] == ["CREATED", "DELETED"]


def test_what_would_run_after_the_notice_ends_the_job_instead(api: Api, card: str) -> None:
    job = started(api, card, job__year="2090", job__noticeUnit="MONTH", job__noticeNumber="2")
    plan = api.delete(f"/v1/schedules/{job.id}").body["plan"]
    row = Job.objects.get(pk=job.id)
    assert (plan["state"], plan.get("nextRuns", [])) == ("ENDING", [])
    assert row.ends_at is not None
    assert (row.next_at, row.ends_at.year < 2090) == (row.ends_at, True)


def test_a_schedule_tells_its_last_runs_the_newest_first(api: Api, card: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a run is tried again is told only while it will be."""
    monkeypatch.setattr(schedules, "MAX_PAST_RUNS", 2)
    job = Job.objects.get(pk=started(api, card).id)
    day, again = datetime(2026, 5, 14, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    for number, state in enumerate((JobRun.State.FAILED, JobRun.State.PAID, JobRun.State.RETRYING)):
        JobRun.objects.create(
            job=job, merchant=job.merchant, due_at=day + timedelta(days=number), state=state, next_at=again, at=day,
        )  # fmt: skip
    runs = api.get(f"/v1/schedules/{job.pk.hex}").body["runs"]
    assert [(run["dueAt"], run["state"], run.get("retryAt")) for run in runs] == [
        ("2026-05-16 00:00:00+0000", "RETRYING", "2026-06-01 00:00:00+0000"),
        ("2026-05-15 00:00:00+0000", "PAID", None),
    ]


def test_a_payment_by_a_registration_starts_a_job(api: Api, card: str) -> None:
    """Part B, Scheduling: job.* on a payment with a registration."""
    click = f"/v1/registrations/{card}/payments"
    paid = api.post(click, {**PLAN, **MONTHLY})
    assert paid.status == 200, paid
    job = api.get(f"/v1/schedules/{paid.body['schedule']['id']}")
    assert (job.body["registrationId"], job.body["amount"], job.body["plan"]["active"]) == (card, "9.90", True)
    assert paid.body["plan"]["active"] is True


def test_a_declined_payment_starts_none(api: Api) -> None:
    declined = api.pay(card__number="4000015500000005", createRegistration="true", job__month="*")
    assert declined.code == "800.100.155"
    assert not Job.objects.exists()


@pytest.mark.parametrize(
    ("fields", "code", "name"),
    [
        ({"job__month": "*"}, "100.150.300", "createRegistration"),
        ({"job__month": "*", "createRegistration": "true", "paymentType": "CD"}, "600.200.400", "paymentType"),
        ({"job__year": "2001", "createRegistration": "true"}, "100.250.120", "job.year"),
        (
            {"job__month": "*", "createRegistration": "true", "paymentType": "PA", "amount": "0.00"},
            "200.300.404",
            "amount",
        ),
    ],
)
def test_a_payment_that_could_start_no_job_is_not_made(api: Api, fields: dict[str, str], code: str, name: str) -> None:
    answer = api.pay(**fields)
    assert (answer.status, answer.code) == (400, code), answer
    assert name in answer.errors
    assert not Payment.objects.exists()


# --- a pause --------------------------------------------------------------------------------------------------------


def change_of(shop: Shop) -> ChangeRequest:
    now = clock.real_now() + timedelta(days=9)
    trace = RequestTrace(request=row_id(), method="POST", path="/pause", at=clock.real_now())
    parameters = FOLLOW_UP_ENDPOINT.catalogue.parse([("entityId", shop.channel.entity_id), ("paymentType", "RV")])
    return ChangeRequest(merchant=shop.merchant, now=now, trace=trace, parameters=parameters)


def test_a_job_that_is_paused_waits_and_its_merchant_is_told(shop: Shop, card: str) -> None:
    job, other = (Job.objects.get(pk=started(shop.api, card).id) for _ in range(2))
    change = change_of(shop)
    payment = schedules.pause_job(job.pk, change, shop.channel)
    assert (payment.payment_type, payment.chain) == ("RS", job.pk)
    job.refresh_from_db()
    assert (job.state, job.reason, job.next_at, job.sequence, job.updated_at) == (
        "SUSPENDED", "PAUSED", None, 2, change.now,
    )  # fmt: skip
    assert Notification.objects.filter(payment=payment.pk, action="UPDATED").count() == 1
    other.refresh_from_db()
    assert (other.state, other.sequence) == ("ACTIVE", 1)


@pytest.mark.parametrize(
    ("state", "why"), [("ENDING", "notice was given"), ("SUSPENDED", "suspended already"), ("ENDED", "it has ended")]
)
def test_only_an_active_job_is_paused(shop: Shop, card: str, state: str, why: str) -> None:
    job = Job.objects.get(pk=started(shop.api, card).id)
    Job.objects.update(state=state, next_at=job.next_at if state == "ENDING" else None)
    with pytest.raises(RequestRefusedError) as refused:
        schedules.pause_job(job.pk, change_of(shop), shop.channel)
    assert refused.value.code == schedules.NOT_RESCHEDULED_CODE
    assert why in refused.value.more


def test_a_pause_that_meets_a_run_is_tried_again_and_refused_at_last(
    shop: Shop, card: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = Job.objects.get(pk=started(shop.api, card).id)
    load, met = schedules.load_job_registration, []

    def meets_another(row: Job, *, gone: bool = False) -> Registration:
        if len(met) != 1 or endless:
            Job.objects.filter(pk=row.pk).update(sequence=F("sequence") + 1)
        met.append(gone)
        return load(row, gone=gone)

    endless = True
    monkeypatch.setattr(schedules, "load_job_registration", meets_another)
    with pytest.raises(RequestRefusedError) as refused:
        schedules.pause_job(job.pk, change_of(shop), shop.channel)
    assert (refused.value.code, refused.value.status) == (CONCURRENT_UPDATE_CODE, 409)
    assert met == [True] * schedules.MAX_SCHEDULE_TRIES
    met.clear()
    endless = False
    schedules.pause_job(job.pk, change_of(shop), shop.channel)
    assert len(met) == 2
    assert Job.objects.get(pk=job.pk).state == "SUSPENDED"

"""Jobs, their records and notifications as rows: each column has the value that belongs there. Without a database.

Source: Part B, Scheduling; docs/decisions/0022.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.port import AcquirerReply
from gateway.models import Agreement, Channel, Merchant, Notification, Payment, PaymentEvent, Registration
from gateway.scheduling import job_records
from gateway.scheduling.job_plans import plan_from_parameters
from gateway.scheduling.job_records import StartedJob
from gateway.scheduling.models import Job

AT = datetime(2026, 1, 15, 12, tzinfo=UTC)
MERCHANT, CHANNEL, REGISTRATION, AGREEMENT, REQUEST = (UUID(int=number) for number in range(1, 6))
IDENT = UUID(int=77)
SENT = {"job.name": "weekly", "job.dayOfWeek": "MON", "job.hour": "6", "job.month": "*"}
FIRST_RUN = datetime(2026, 1, 19, 6, tzinfo=UTC)


def a_channel(**more: Any) -> Channel:
    fields = {
        "id": CHANNEL,
        "name": "c",
        "time_zone": "",
        "merchant": Merchant(id=MERCHANT, name="Shop", time_zone="UTC"),
    }
    return Channel(**fields | more)


def a_job(**more: Any) -> Job:
    plan = plan_from_parameters(
        {"dayOfWeek": "MON", "hour": "6", "month": "*"},
        job_records.resolve_job_zone(a_channel(), a_channel().merchant),
        AT,
    )
    fields = {
        **plan.columns(), "id": IDENT, "merchant_id": MERCHANT, "channel_id": CHANNEL, "registration": REGISTRATION,
        "state": Job.State.ACTIVE, "payment_type": "PA", "amount": Decimal("9.90"), "currency": "EUR",
        "test_mode": "EXTERNAL", "request": {"merchantTransactionId": "t-1", "merchantInvoiceId": "i-1"},
        "merchant_memo": "memo", "sequence": 4, "next_at": FIRST_RUN,
    }  # fmt: skip
    return Job(**fields | more)


MEANS = {
    "brand": "VISA", "method": "CC", "means": "card", "details": {"card": {"last4Digits": "0000"}},
    "descriptor": "Shop*Coffee",
}  # fmt: skip


# --- parameters ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "merchants", "zone"),
    [("", "Europe/Berlin", "Europe/Berlin"), ("Asia/Tokyo", "Europe/Berlin", "Asia/Tokyo")],
)
def test_the_zone_of_a_job_is_its_channels_else_its_merchants(own: str, merchants: str, zone: str) -> None:
    assert job_records.resolve_job_zone(a_channel(time_zone=own), Merchant(time_zone=merchants)).key == zone


def test_job_parameters_are_those_with_the_prefix() -> None:
    sent = {"job.hour": "6", "jobs": "x", "customer.job.hour": "7", "job.name": "job.name", "amount": "1.00"}
    assert job_records.extract_job_parameters(sent) == {"hour": "6", "name": "job.name"}


def test_the_echo_of_a_schedule_leaves_out_who_and_what_is_charged_and_what_is_private() -> None:
    sent = {
        "registrationId": "r", "entityId": "e", "amount": "9.90", "currency": "EUR", "paymentType": "DB",
        "job.hour": "6", "customer.givenName": "Jane", "customParameters[shelf]": "7", "merchantMemo": "ours",
        "nobody.knows": "x",
    }  # fmt: skip
    assert job_records.nest_job_parameters(sent) == {
        "amount": "9.90", "currency": "EUR", "paymentType": "DB", "job": {"hour": "6"},
        "customer": {"givenName": "Jane"}, "customParameters": {"shelf": "7"},
    }  # fmt: skip


# --- a job --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agreement", [AGREEMENT, None])
def test_a_new_job_has_what_was_asked_for_and_its_first_run(agreement: UUID | None) -> None:
    zone = job_records.resolve_job_zone(a_channel(), a_channel().merchant)
    end = {"endDate": "2026-03-01 00:00:00"}
    plan = plan_from_parameters({"dayOfWeek": "MON", "hour": "6", "month": "*", **end}, zone, AT)
    request = {
        "amount": "9.90", "currency": "EUR", "paymentType": "PA", "job": {"name": "weekly", "hour": "6"},
        "customer": {"givenName": "Jane"},
    }  # fmt: skip
    job = job_records.build_job(
        IDENT, plan, request, registration=REGISTRATION, agreement=agreement, merchant=MERCHANT, channel=CHANNEL,
        memo="ours", test_mode="EXTERNAL", now=AT,
    )  # fmt: skip
    assert (job.id, job.merchant_id, job.channel_id, job.registration, job.agreement) == (
        IDENT, MERCHANT, CHANNEL, REGISTRATION, agreement,
    )  # fmt: skip
    assert (job.state, job.name, job.payment_type, job.amount, job.currency, job.test_mode, job.merchant_memo) == (
        "ACTIVE", "weekly", "PA", Decimal("9.90"), "EUR", "EXTERNAL", "ours",
    )  # fmt: skip
    assert job.request == {"job": {"name": "weekly", "hour": "6"}, "customer": {"givenName": "Jane"}}
    assert (job.starts_at, job.next_at, job.ends_at) == (AT, FIRST_RUN, datetime(2026, 3, 1, 0, 0, 1, tzinfo=UTC))
    assert (job.created_at, job.sequence, job.declined, job.late) == (AT, 1, 0, 0)
    assert (job.expression, job.zone) == ("0 0 6 ? * MON *", "UTC")
    columns = job_records.build_job_columns(job)
    assert columns.keys() == {field.attname for field in Job._meta.concrete_fields}
    assert (columns["merchant_id"], columns["next_at"]) == (MERCHANT, FIRST_RUN)


def test_a_job_without_a_name_has_none() -> None:
    plan = plan_from_parameters({"hour": "6"}, job_records.resolve_job_zone(a_channel(), a_channel().merchant), AT)
    request = {"amount": "9.90", "currency": "EUR", "paymentType": "DB"}
    values: dict[str, Any] = {"registration": REGISTRATION, "agreement": None, "merchant": MERCHANT, "channel": CHANNEL}
    job = job_records.build_job(IDENT, plan, request, **values, memo="", test_mode="", now=AT)
    assert (job.name, job.request) == ("", {})


@pytest.mark.parametrize(
    ("ends_at", "kept"),
    [
        (None, AT),
        (AT + timedelta(seconds=1), AT),
        (AT, AT),
        (AT - timedelta(seconds=1), AT - timedelta(seconds=1)),
    ],
)
def test_a_job_ends_now_or_has_ended_before(ends_at: datetime | None, kept: datetime) -> None:
    job = a_job(ends_at=ends_at)
    job_records.mark_job_ended(job, Job.Reason.NOTICE, AT)
    assert (job.state, job.reason, job.next_at, job.ended_at, job.ends_at) == ("ENDED", "NOTICE", None, AT, kept)


# --- its records --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["SD", "RS", "DS"])
def test_a_record_is_an_approved_payment_of_nothing_that_shows_the_job(kind: str) -> None:
    job = a_job()
    record = job_records.build_job_record(job, kind, MEANS, at=AT, request_id=REQUEST)
    made = kind == "SD"
    assert (record.id == IDENT) is made
    assert record.referenced == (None if made else IDENT)
    assert (record.chain, record.payment_type, record.merchant_id, record.channel_id) == (
        IDENT,
        kind,
        MERCHANT,
        CHANNEL,
    )
    assert (record.brand, record.method, record.means, record.registration) == ("VISA", "CC", "card", REGISTRATION)
    assert (record.amount, record.approved_amount, record.currency) == (Decimal("9.90"), Decimal(0), "EUR")
    assert (record.test_mode, record.result_code, record.merchant_memo) == ("EXTERNAL", "000.100.112", "memo")
    assert (record.merchant_transaction_id, record.merchant_invoice_id) == ("t-1", "i-1")
    assert record.request == {"paymentType": "PA", "merchantTransactionId": "t-1", "merchantInvoiceId": "i-1"}
    assert (record.request_id, record.created_at, record.completed_at) == (REQUEST, AT, AT)
    assert record.answer["card"] == {"last4Digits": "0000"}
    assert record.answer["descriptor"] == "Shop*Coffee"
    facts = record.answer["facts"]
    assert (facts["amount"], facts["schedule"]) == ("9.90", {"id": IDENT.hex, "sequence": 4})
    assert facts["plan"] == job_records.render_job_plan(job, AT)


def test_a_record_without_the_merchants_numbers_has_none() -> None:
    record = job_records.build_job_record(a_job(request={}), "SD", MEANS, at=AT, request_id=REQUEST)
    assert (record.merchant_transaction_id, record.merchant_invoice_id) == ("", "")


def test_a_plan_shows_the_next_five_runs_after_a_moment() -> None:
    runs = job_records.render_job_plan(a_job(), AT)["nextRuns"]
    assert [text[:19] for text in runs] == [
        (FIRST_RUN + timedelta(weeks=week)).strftime("%Y-%m-%d %H:%M:%S") for week in range(5)
    ]
    later = job_records.render_job_plan(a_job(), FIRST_RUN)["nextRuns"]
    assert later[0] == runs[1]


@pytest.mark.parametrize(
    ("details", "shown"),
    [
        ({"card": {"bin": "420000"}, "customer": {"givenName": "Jane"}}, {"card": {"bin": "420000"}}),
        ({"bankAccount": {"holder": "Jane"}}, {"bankAccount": {"holder": "Jane"}}),
        ({"virtualAccount": {"accountId": "a"}, "private": 1}, {"virtualAccount": {"accountId": "a"}}),
        ({}, {}),
    ],
)
def test_a_record_shows_the_stored_means_and_nothing_else_of_its_registration(
    details: dict[str, Any], shown: dict[str, Any]
) -> None:
    stored = Registration(
        brand="VISA", method="CC", means="card", details=details, channel=a_channel(descriptor="Own*Words")
    )
    assert job_records.render_job_means(stored) == {
        "brand": "VISA", "method": "CC", "means": "card", "details": shown, "descriptor": "Own*Words",
    }  # fmt: skip
    stored.channel = a_channel(descriptor="")
    assert job_records.render_job_means(stored)["descriptor"] == "Shop"


@pytest.mark.parametrize(
    ("kind", "state", "action"),
    [
        ("SD", "ACTIVE", "CREATED"),
        ("RS", "ACTIVE", "UPDATED"),
        ("RS", "SUSPENDED", "UPDATED"),
        ("RS", "ENDED", "UPDATED"),
        ("DS", "ENDED", "DELETED"),
        ("DS", "ENDING", "UPDATED"),
    ],
)
def test_a_notification_says_what_became_of_the_job(kind: str, state: str, action: str) -> None:
    """A job under notice still runs: it is deleted when it has ended."""
    record = Payment(id=UUID(int=9), payment_type=kind, created_at=AT)
    assert job_records.build_job_notification(record, a_job(state=state)) == {
        "merchant_id": MERCHANT, "channel_id": CHANNEL, "kind": "SCHEDULE", "action": action,
        "payment_id": UUID(int=9), "registration": REGISTRATION, "sequence": 2, "created_at": AT,
    }  # fmt: skip


# --- its agreement ------------------------------------------------------------------------------------------------


def an_agreement(values: dict[str, str] | None = None, **more: Any) -> Agreement:
    names = {"reference": "ref", "network_reference": "net", "link": "link", "brand": "MASTER", "at": AT}
    channel = more.pop("channel", a_channel(agreement_ids=Channel.AgreementIds.NONE))
    return job_records.build_job_agreement(IDENT, MERCHANT, channel, REGISTRATION, values or {}, **names | more)


def test_a_jobs_agreement_has_its_id_and_the_references_of_the_payment_that_made_it() -> None:
    made = an_agreement()
    assert (made.id, made.merchant_id, made.channel_id, made.registration) == (IDENT, MERCHANT, CHANNEL, REGISTRATION)
    assert (made.reference, made.network_reference, made.transaction_link, made.brand) == (
        "ref",
        "net",
        "link",
        "MASTER",
    )
    assert (made.type, made.expiry, made.frequency, made.max_payments) == ("RECURRING", None, None, None)
    assert (made.first_at, made.created_at) == (None, AT)
    columns = job_records.build_agreement_columns(made)
    assert columns.keys() == {field.attname for field in Agreement._meta.concrete_fields}
    assert columns["reference"] == "ref"


def test_a_jobs_agreement_has_the_limits_that_were_agreed() -> None:
    instruction = {"type": "INSTALLMENT", "expiry": "2030-12-31", "frequency": "28", "numberOfInstallments": "12"}
    made = an_agreement({f"standingInstruction.{name}": value for name, value in instruction.items()})
    assert (made.type, made.expiry, made.frequency, made.max_payments) == ("INSTALLMENT", date(2030, 12, 31), 28, 12)


@pytest.mark.parametrize("value", ["0", "0000"])
def test_a_limit_of_nothing_is_none(value: str) -> None:
    names = ("frequency", "numberOfInstallments")
    made = an_agreement({f"standingInstruction.{name}": value for name in names})
    assert (made.frequency, made.max_payments) == (None, None)


@pytest.mark.parametrize(
    ("sent", "linked", "link", "name"),
    [
        ("M-1", False, "link", "M-1"),
        ("M-1", True, "link", "M-1"),
        ("", False, "link", ""),
        ("", True, "link", "link"),
        ("", True, "", f"A{IDENT.hex.upper()}"),
        ("", False, "", ""),
    ],
)
def test_the_id_of_an_agreement_is_the_merchants_the_networks_or_ours_where_the_channel_wants_one(
    sent: str, linked: bool, link: str, name: str
) -> None:
    wanted = next(one for one in Channel.AgreementIds if one != Channel.AgreementIds.NONE)
    channel = a_channel(agreement_ids=wanted if linked else Channel.AgreementIds.NONE)
    values = {"standingInstruction.agreementId": sent} if sent else {}
    assert an_agreement(values, link=link, channel=channel).agreement_id == name


# --- the job of a payment -----------------------------------------------------------------------------------------


def a_payment(**more: Any) -> Payment:
    fields: dict[str, Any] = {
        "id": UUID(int=50), "merchant": a_channel().merchant, "channel": a_channel(), "payment_type": "DB",
        "brand": "VISA", "method": "CC", "means": "card", "amount": Decimal("9.90"), "currency": "EUR",
        "test_mode": "EXTERNAL", "merchant_memo": "ours", "request_id": REQUEST, "agreement": None, "referenced": None,
        "request": {
            "job": {"name": "weekly", "dayOfWeek": "MON", "hour": "6", "month": "*"}, "descriptor": "Sent*Words",
        },
        "answer": {"card": {"bin": "420000"}, "descriptor": "Shown", "customer": {"givenName": "Jane"}},
    }  # fmt: skip
    return Payment(**fields | more)


def start(payment: Payment, agreement: UUID | None = None, **reply: Any) -> StartedJob:
    return job_records.start_job(payment, AcquirerReply(code="000.100.110", **reply), REGISTRATION, agreement, AT)


def test_an_approved_payment_starts_its_job_with_a_record_and_a_notification() -> None:
    found = start(a_payment(), AGREEMENT)
    assert [model for model, _ in found.rows] == [Job, Payment, PaymentEvent, PaymentEvent, Notification]
    job, record, *_, notification = (columns for _, columns in found.rows)
    ident = job["id"]
    assert (job["agreement"], job["registration"], job["merchant_id"], job["channel_id"]) == (
        AGREEMENT, REGISTRATION, MERCHANT, CHANNEL,
    )  # fmt: skip
    assert (job["name"], job["amount"], job["currency"], job["payment_type"]) == (
        "weekly",
        Decimal("9.90"),
        "EUR",
        "DB",
    )
    assert (job["merchant_memo"], job["test_mode"], job["next_at"], job["created_at"]) == (
        "ours", "EXTERNAL", FIRST_RUN, AT,
    )  # fmt: skip
    assert job["request"]["job"]["hour"] == "6"
    assert (record["id"], record["payment_type"], record["status"], record["request_id"]) == (
        ident, "SD", "APPROVED", REQUEST,
    )  # fmt: skip
    assert (record["brand"], record["method"], record["means"], record["created_at"]) == ("VISA", "CC", "card", AT)
    assert {"card": {"bin": "420000"}, "descriptor": "Sent*Words"}.items() <= record["answer"].items()
    assert "customer" not in record["answer"]
    assert (notification["payment_id"], notification["action"]) == (ident, "CREATED")
    told = found.answer["facts"]
    assert told["schedule"] == {"id": ident.hex}
    assert told["plan"]["nextRuns"][0].startswith("2026-01-19 06:00:00")


@pytest.mark.parametrize(
    "changed", [{"payment_type": "CD"}, {"payment_type": "RB"}, {"request": {}}, {"request": {"job": {"year": "2025"}}}]
)
def test_what_starts_no_job_starts_nothing(changed: dict[str, Any]) -> None:
    """A plan that is over by its approval, too: the money has moved, and that is written."""
    found = start(a_payment(**changed))
    assert (found.rows, found.answer) == ((), {})


def test_an_authorization_starts_a_job_of_authorizations() -> None:
    assert start(a_payment(payment_type="PA"), AGREEMENT).rows[0][1]["payment_type"] == "PA"


def test_a_job_is_under_the_agreement_that_its_payment_makes_or_has_or_one_of_its_own() -> None:
    assert start(a_payment(agreement=UUID(int=8)), AGREEMENT).rows[0][1]["agreement"] == AGREEMENT
    assert start(a_payment(agreement=UUID(int=8))).rows[0][1]["agreement"] == UUID(int=8)
    sent = {"job": {"hour": "6"}, "standingInstruction": {"type": "UNSCHEDULED"}}
    (first, agreement), (second, job), *_ = start(
        a_payment(request=sent), connector_tx_id="tx", network_reference="MCC 123456789", transaction_link="a-link"
    ).rows
    assert (first, second) == (Agreement, Job)
    assert agreement["id"] == job["agreement"] == job["id"]
    assert (agreement["reference"], agreement["network_reference"], agreement["transaction_link"]) == (
        "tx", "MCC123456789", "a-link",
    )  # fmt: skip
    assert (agreement["brand"], agreement["type"], agreement["created_at"]) == ("VISA", "UNSCHEDULED", AT)
    assert (agreement["merchant_id"], agreement["channel_id"], agreement["registration"]) == (
        MERCHANT, CHANNEL, REGISTRATION,
    )  # fmt: skip


def test_an_agreement_refers_to_the_payment_where_the_acquirer_has_no_number_of_its_own() -> None:
    agreement = start(a_payment(), network_reference="no scheme's").rows[0][1]
    assert (agreement["reference"], agreement["network_reference"]) == (UUID(int=50).hex, "")

"""Job parameters of a payment before it is charged: each that could start no job is refused by its name. Pure.

Source: Part B, Scheduling.
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from gateway.catalogue.parse import Parameters
from gateway.models import Channel, Merchant
from gateway.payments.refusal import RequestRefusedError
from gateway.scheduling.job_validation import check_job_parameters, parse_job_plan
from tests.support.subscriptions import MONTHLY, PLAN

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
UTC_ZONE, TOKYO = ZoneInfo("UTC"), ZoneInfo("Asia/Tokyo")


def a_channel(zone: str = "", merchants: str = "UTC") -> Channel:
    return Channel(name="c", time_zone=zone, merchant=Merchant(name="m", time_zone=merchants))


def check(sent: dict[str, str], channel: Channel | None = None, *, storable: bool = True) -> None:
    check_job_parameters(Parameters(sent), channel or a_channel(), NOW, storable=storable)


@pytest.mark.parametrize("kind", ["DB", "PA"])
@pytest.mark.parametrize("amount", ["0.01", "9.90"])
def test_a_debit_or_an_authorization_of_something_may_start_a_job(kind: str, amount: str) -> None:
    check({**PLAN, **MONTHLY, "paymentType": kind, "amount": amount})


@pytest.mark.parametrize("kind", ["RF", "CD", "CP", None])
@pytest.mark.parametrize("amount", ["0.00", None])
def test_without_job_parameters_nothing_of_a_job_is_asked(kind: str | None, amount: str | None) -> None:
    sent = {"paymentType": kind, "amount": amount, "jobs": "x", "customer.job.second": "1"}
    check({name: value for name, value in sent.items() if value is not None}, storable=False)


@pytest.mark.parametrize(
    ("changed", "storable", "code", "name", "value"),
    [
        ({"paymentType": "CD"}, True, "600.200.400", "paymentType", "CD"),
        ({"paymentType": "RF"}, True, "600.200.400", "paymentType", "RF"),
        ({"paymentType": ""}, True, "600.200.400", "paymentType", None),
        ({}, False, "100.150.300", "createRegistration", None),
        ({"amount": "0.00"}, True, "200.300.404", "amount", "0.00"),
        ({"amount": ""}, True, "200.300.404", "amount", "0"),
        ({"job.year": "2025"}, True, "100.250.120", "job.year", "2025"),
        ({"job.durationUnit": "DAY"}, True, "100.250.106", "job.durationNumber", None),
        # Of several the first is told: what kind of payment, whether it can be charged again, and what.
        ({"paymentType": "CD", "amount": "0.00"}, False, "600.200.400", "paymentType", "CD"),
        ({"amount": "0.00"}, False, "100.150.300", "createRegistration", None),
        ({"amount": "0.00", "job.year": "2025"}, True, "200.300.404", "amount", "0.00"),
    ],
)
def test_what_could_start_no_job_is_refused_by_its_name(
    changed: dict[str, str], storable: bool, code: str, name: str, value: str | None
) -> None:
    sent = {name: value for name, value in {**PLAN, **MONTHLY, **changed}.items() if value}
    with pytest.raises(RequestRefusedError) as caught:
        check(sent, storable=storable)
    (error,) = caught.value.errors
    assert (caught.value.code, error.name, error.value) == (code, name, value)
    assert error.message


@pytest.mark.parametrize(
    ("zone", "merchants", "has_run"),
    [("", "UTC", True), ("", "Asia/Tokyo", False), ("UTC", "Asia/Tokyo", True), ("Asia/Tokyo", "UTC", False)],
)
def test_a_plan_is_of_the_channels_zone_else_of_its_merchants(zone: str, merchants: str, has_run: bool) -> None:
    """13 o'clock of this day is to come in UTC and over in Tokyo."""
    once = {"job.hour": "13", "job.dayOfMonth": "1", "job.month": "1", "job.year": "2026"}
    if has_run:
        check({**PLAN, **once}, a_channel(zone, merchants))
        return
    with pytest.raises(RequestRefusedError) as caught:
        check({**PLAN, **once}, a_channel(zone, merchants))
    assert caught.value.code == "100.250.120"


def test_a_plan_is_of_its_zone_and_of_when_its_job_began() -> None:
    began = datetime(2025, 6, 1, tzinfo=UTC)
    sent = {"hour": "9", "dayOfMonth": "*", "month": "*"}
    fresh = parse_job_plan(sent, TOKYO, NOW)
    assert (fresh.zone, fresh.starts_at) == (TOKYO, NOW)
    assert parse_job_plan(sent, UTC_ZONE, NOW, began=began).starts_at == began


def test_every_fault_of_a_plan_is_told_and_the_first_ones_code() -> None:
    sent = {"hour": "9", "durationUnit": "DAY", "noticeNumber": "2"}
    with pytest.raises(RequestRefusedError) as caught:
        parse_job_plan(sent, UTC_ZONE, NOW)
    assert [error.name for error in caught.value.errors] == ["job.durationNumber", "job.noticeUnit"]
    assert caught.value.code == "100.250.106"

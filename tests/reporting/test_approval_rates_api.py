"""GET /v1/reports/approvals: figures of the entity's own payments, and faults that name their parameter."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from checkout.models import Checkout
from gateway.backoffice.kit.time_limit import SearchTooBroadError
from gateway.catalogue.structures.reporting import APPROVAL_GROUPS, MAX_APPROVAL_DAYS
from gateway.core import identifiers
from gateway.core.compact_json import encode_json
from gateway.models import Channel, Merchant
from gateway.payments.stored_answer import PrivateFacts, TokenUse
from reporting.approvals import api as approvals_api
from reporting.approvals import figures, gains
from reporting.approvals.figures import BREAKDOWNS
from reporting.approvals.waterfall import LEFT_STEPS, LOST_REASONS
from tests.fuzz import meter
from tests.reporting.test_approval_rates import START, write_payments
from tests.support.fixtures import Shop

JANUARY = {"date.from": "2030-01-01", "date.to": "2030-01-31"}
PATH = "/v1/reports/approvals"
PATHS = (PATH, f"{PATH}/waterfall", f"{PATH}/gains")


def test_the_catalogue_offers_every_breakdown() -> None:
    assert set(APPROVAL_GROUPS) == set(BREAKDOWNS)


def test_rates_of_a_period_with_intervals_and_money(shop: Shop) -> None:
    write_payments(
        shop.channel,
        [{"merchant_transaction_id": "a", "code": "800.100.152"}, {"merchant_transaction_id": "a"}, {"amount": "5.00"}],
    )
    answer = shop.api.get(PATH, JANUARY)
    assert (answer.status, answer.code) == (200, "000.000.100")
    assert answer.body["groupBy"] == "all"
    assert answer.body["complete"] is True
    assert answer.body["approvals"] == [
        {
            "segment": "all",
            "attempts": 3,
            "approvedAttempts": 2,
            "purchases": 2,
            "approvedPurchases": 2,
            "attemptRate": {"rate": "66.67", "low": "20.77", "high": "93.85"},
            "purchaseRate": {"rate": "100.00", "low": "34.24", "high": "100.00"},
            "amounts": [{"currency": "EUR", "asked": "15.00", "approved": "15.00"}],
        }
    ]


def test_a_channel_sees_its_own_a_merchant_all_of_its_channels_and_a_stranger_nothing(
    shop: Shop, stranger: Shop
) -> None:
    Merchant.objects.filter(pk=shop.merchant.pk).update(dispatching=True)
    other = shop.open_channel()
    write_payments(shop.channel, [{}])
    write_payments(other, [{}, {}])
    asked = {
        shop.api: [1],
        shop.api_of(other): [2],
        shop.api.as_entity(shop.merchant.entity_id): [3],
        stranger.api: [],
    }
    for api, attempts in asked.items():
        assert [one["attempts"] for one in api.get(PATH, JANUARY).body["approvals"]] == attempts


def test_a_report_of_many_card_ranges_takes_little_more_memory_than_its_text(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Goals, P18: 20,000 took 50 MB for a text of 6; they are rendered as they are written."""

    def read(sql: str, values: Any) -> list[tuple[Any, ...]]:
        money = [(Decimal(number), Decimal(number) / 2) for number in range(2_000)]
        return [(f"{400_000 + number}", "EUR", 9, 8, 7, 6, *money[number]) for number in range(2_000)]

    monkeypatch.setattr(figures, "read_chosen", read)
    monkeypatch.setattr(approvals_api, "count_chosen", lambda period: 18_000)
    asked = JANUARY | {"groupBy": "bin"}
    shop.api.get(PATH, asked)
    with meter.traced(True):
        answer, cost = meter.measured(lambda: shop.api.get(PATH, asked))
    assert [one["segment"] for one in answer.body["approvals"]] == [f"{400_000 + number}" for number in range(2_000)]
    assert answer.text.encode() == encode_json(answer.body)
    assert cost.memory < 6 * len(answer.text), (cost.memory, len(answer.text))
    assert answer.headers["Content-Type"] == "application/json; charset=utf-8"


@pytest.mark.parametrize("by", APPROVAL_GROUPS)
def test_every_group_is_answered(shop: Shop, by: str) -> None:
    write_payments(shop.channel, [{}, {"currency": "USD"}])
    answer = shop.api.get(PATH, JANUARY | {"groupBy": by, "currency": "USD"})
    (one,) = answer.body["approvals"]
    assert (one["attempts"], [each["currency"] for each in one["amounts"]]) == (1, ["USD"])


def lose_softly(channel: Channel, amount: str = "40.00", **more: Any) -> None:
    write_payments(channel, [{"amount": amount, "code": "300.100.100", **more}, {"amount": amount}])


def test_the_waterfall_says_what_was_left_at_each_step_and_why_the_rest_was_lost(shop: Shop) -> None:
    lose_softly(shop.channel)
    answer = shop.api.get(PATHS[1], JANUARY)
    assert (answer.status, answer.code, answer.body["complete"]) == (200, "000.000.100", True)
    (one,) = answer.body["waterfalls"]
    assert (one["currency"], one["checkouts"]) == ("EUR", 0)
    assert [tuple(step.values()) for step in one["steps"]] == [
        ("wanted", "Wanted to pay", False, 2, "80.00", "100.00"),
        ("sent", "Sent to an acquirer", False, 2, "80.00", "100.00"),
        ("soft", "declined: the issuer wanted a challenge", True, 1, "40.00", "50.00"),
        ("approved", "Approved", False, 1, "40.00", "50.00"),
        ("unsettled", "not settled yet", True, 1, "40.00", "50.00"),
        ("settled", "Settled", False, 0, "0.00", "0.00"),
    ]
    assert list(one["steps"][0]) == ["step", "description", "lost", "purchases", "amount", "share"]


def test_what_would_bring_most_is_told_with_its_evidence_and_the_switch(shop: Shop) -> None:
    lose_softly(shop.channel)
    answer = shop.api.get(PATHS[2], JANUARY, Accept_Language="de")
    assert (answer.status, answer.code, answer.body["complete"]) == (200, "000.000.100", True)
    (one,) = answer.body["gains"]
    assert one == {
        "way": "soft",
        "title": "Ask for a challenge after a soft decline",
        "currency": "EUR",
        "lost": "40.00",
        "evidence": "1 purchase: declined: the issuer wanted a challenge.",
        "switch": {
            "name": "3-D Secure",
            "page": f"{settings.GATEWAY_BASE_URL}/admin/gateway/threedsecureconfiguration/",
        },
    }


def test_what_a_switch_may_bring_is_told_where_enough_was_counted(shop: Shop) -> None:
    stored = {"means": "card", "registration": identifiers.row_id()}
    with_token = {"answer": PrivateFacts(network_token=TokenUse.USED).as_json()}
    write_payments(
        shop.channel,
        [
            {**stored, **more, **({} if n % 100 < share else {"code": "800.100.152"})}
            for more, share in ((with_token, 95), ({}, 75))
            for n in range(100)
        ],
    )
    (one,) = (one for one in shop.api.get(PATHS[2], JANUARY).body["gains"] if one["way"] == "tokens")
    assert one["lost"] == "250.00"
    assert 0 < float(one["mayBring"]["low"]) < 200 < float(one["mayBring"]["high"]) <= 250


def test_every_way_of_a_gain_and_every_step_is_in_the_guide() -> None:
    guide = (settings.BASE_DIR / "docs" / "approval.md").read_text()
    source = Path(gains.__file__).read_text()
    ways = set(re.findall(r"THEN '([a-z]+)'", source)) | set(re.findall(r'_build\(\s*"(\w+)"', source))
    ways |= {"authentication", "left", "refused", "uncaptured"}
    assert len(ways) == 13
    for name in (*ways, *LEFT_STEPS, *LOST_REASONS):
        assert f"`{name}`" in guide, name


@pytest.mark.parametrize("path", PATHS[1:])
def test_other_reports_are_of_the_entitys_own_payments_too(shop: Shop, stranger: Shop, path: str) -> None:
    Merchant.objects.filter(pk=shop.merchant.pk).update(dispatching=True)
    other = shop.open_channel()
    lose_softly(shop.channel)
    lose_softly(other, "7.00")
    asked = {
        shop.api: "40.00",
        shop.api_of(other): "7.00",
        shop.api.as_entity(shop.merchant.entity_id): "47.00",
        stranger.api: "",
    }
    for api, lost in asked.items():
        body = api.get(path, JANUARY).body
        found = body.get("gains", [step for one in body.get("waterfalls", []) for step in one["steps"]])
        assert [one.get("lost" if "gains" in body else "amount") for one in found if "soft" in one.values()] == (
            [lost] if lost else []
        )


@pytest.mark.parametrize("path", PATHS[1:])
def test_other_reports_are_of_one_currency_where_it_is_named(shop: Shop, path: str) -> None:
    lose_softly(shop.channel)
    lose_softly(shop.channel, currency="USD")
    Checkout.objects.create(
        merchant=shop.merchant, channel=shop.channel, kind="payment", request={"currency": "EUR", "amount": "5.00"},
        created_at=START, expires_at=START + timedelta(minutes=30),
    )  # fmt: skip
    body = shop.api.get(path, JANUARY | {"currency": "USD"}).body
    assert {one["currency"] for one in body.get("gains", body.get("waterfalls"))} == {"USD"}


@pytest.mark.parametrize("path", PATHS)
def test_a_report_that_takes_too_long_asks_for_a_shorter_period(
    shop: Shop, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def give_up(*_: Any) -> None:
        raise SearchTooBroadError

    monkeypatch.setattr("reporting.approvals.api.count_chosen", give_up)
    answer = shop.api.get(path, JANUARY)
    assert (answer.status, list(answer.errors)) == (400, ["date.to"])


@pytest.mark.parametrize("path", PATHS[1:])
def test_only_rates_are_divided(shop: Shop, path: str) -> None:
    answer = shop.api.get(path, JANUARY | {"groupBy": "brand"})
    assert answer.status == 200
    assert answer.body["ignoredParameters"] == ["groupBy"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("values", "name", "message"),
    [
        ({"date.from": None}, "date.from", "is required"),
        ({"date.to": "31.01.2030"}, "date.to", "yyyy-MM-dd"),
        ({"date.to": "2029-12-31"}, "date.to", "must not be before date.from"),
        ({"date.to": "2030-04-03"}, "date.to", f"must be less than {MAX_APPROVAL_DAYS} days after date.from"),
        ({"currency": "eur"}, "currency", "must be a currency"),
        ({"curency": "EUR"}, "curency", "did you mean currency"),
    ],
)
def test_a_fault_names_its_parameter(shop: Shop, path: str, values: dict[str, Any], name: str, message: str) -> None:
    check_fault(shop, path, values, name, message)


@pytest.mark.parametrize(
    ("values", "name", "message"),
    [
        ({"groupBy": "shoe"}, "groupBy", "must be one of"),
        ({"gruopBy": "brand"}, "gruopBy", "did you mean groupBy"),
    ],
)
def test_a_fault_of_a_division_names_its_parameter(shop: Shop, values: dict[str, Any], name: str, message: str) -> None:
    check_fault(shop, PATH, values, name, message)


def check_fault(shop: Shop, path: str, values: dict[str, Any], name: str, message: str) -> None:
    sent = {key: value for key, value in (JANUARY | values).items() if value is not None}
    answer = shop.api.get(path, sent)
    assert answer.status == 400
    (error,) = answer.body["result"]["parameterErrors"]
    assert error["name"] == name
    assert message in error["message"]

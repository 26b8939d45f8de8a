"""GET /v1/reports/approvals: figures of the entity's own payments, and faults that name their parameter."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.catalogue.structures.reporting import APPROVAL_GROUPS, MAX_APPROVAL_DAYS
from gateway.models import Merchant
from reporting.approvals.figures import BREAKDOWNS
from tests.reporting.test_approval_rates import write_payments
from tests.support.fixtures import Shop

JANUARY = {"date.from": "2030-01-01", "date.to": "2030-01-31"}
PATH = "/v1/reports/approvals"


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


@pytest.mark.parametrize("by", APPROVAL_GROUPS)
def test_every_group_is_answered(shop: Shop, by: str) -> None:
    write_payments(shop.channel, [{}, {"currency": "USD"}])
    answer = shop.api.get(PATH, JANUARY | {"groupBy": by, "currency": "USD"})
    (one,) = answer.body["approvals"]
    assert (one["attempts"], [each["currency"] for each in one["amounts"]]) == (1, ["USD"])


@pytest.mark.parametrize(
    ("values", "name", "message"),
    [
        ({"date.from": None}, "date.from", "is required"),
        ({"date.to": "31.01.2030"}, "date.to", "yyyy-MM-dd"),
        ({"date.to": "2029-12-31"}, "date.to", "must not be before date.from"),
        ({"date.to": "2030-04-03"}, "date.to", f"must be less than {MAX_APPROVAL_DAYS} days after date.from"),
        ({"groupBy": "shoe"}, "groupBy", "must be one of"),
        ({"currency": "eur"}, "currency", "must be a currency"),
        ({"gruopBy": "brand"}, "gruopBy", "did you mean groupBy"),
    ],
)
def test_a_fault_names_its_parameter(shop: Shop, values: dict[str, Any], name: str, message: str) -> None:
    sent = {key: value for key, value in (JANUARY | values).items() if value is not None}
    answer = shop.api.get(PATH, sent)
    assert answer.status == 400
    (error,) = answer.body["result"]["parameterErrors"]
    assert error["name"] == name
    assert message in error["message"]

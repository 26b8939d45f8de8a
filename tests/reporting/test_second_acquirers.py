"""What second acquirers saved and could save, and what the schemes count of retries: figures, gain, page."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.urls import reverse

from gateway.access.permissions import FULL_ACCESS, AccessScope
from gateway.core import clock
from gateway.models import CardDecline, Merchant, Payment, Role
from gateway.risk.retry_rules import RETRY_LIMITS
from reporting.approvals import gains, second_acquirers, waterfall
from reporting.approvals.figures import compute_figures
from reporting.approvals.second_acquirers import compute_cascades, compute_chances, count_retries
from tests.reporting.test_approval_rates import START, period, write_payments
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db

ASKED = {"connector": "iso8583", "acquirer_merchant_id": "B"}
CASCADED = ASKED | {"route": {"name": "B", "maxCascades": 1, "cascades": 1, "tried": []}}


def not_honoured(response: str = "05", advice: str = "", code: str = "800.100.152") -> dict[str, Any]:
    details = {"AcquirerResponse": response, "MerchantAdviceCode": advice}
    answer = {"card": {"bin": "420000"}, "resultDetails": {name: one for name, one in details.items() if one}}
    return ASKED | {"code": code, "answer": answer}


FURTHER = {"route": {"name": "A", "next": [["iso8583", "B", "B"]]}}


def declines(merchant: Merchant, number: int, *, key: bytes = b"k", brand: str = "VISA", **values: Any) -> None:
    """Declines of one card, an hour apart, the last at START."""
    payments = list(Payment.objects.filter(merchant=merchant, brand=brand).values_list("pk", flat=True))
    for place in range(number):
        CardDecline.objects.create(
            merchant=merchant, key=key, payment=payments[place % len(payments)],
            **{"at": START - timedelta(hours=number - 1 - place)} | values,
        )  # fmt: skip


# --- cascades ---


def test_a_saved_payment_counts_once_and_its_money_is_shown_as_saved(shop: Shop) -> None:
    write_payments(
        shop.channel,
        [
            dict(CASCADED),
            dict(CASCADED),
            CASCADED | {"code": "800.100.155"},
            CASCADED | {"currency": "USD"},
            # No further account was reached: the payment went back to the one that declined it.
            not_honoured() | {"route": {"name": "A", "maxCascades": 1, "cascades": 0, "tried": []}},
            dict(ASKED),
            {},
        ],
    )
    assert [(one.currency, one.payments, one.attempts, one.saved, one.money) for one in compute_cascades(period())] == [
        ("EUR", 3, 3, 2, Decimal("20.00")),
        ("USD", 1, 1, 1, Decimal("10.00")),
    ]
    [whole] = compute_figures(period(), "all")
    assert (whole.attempts, whole.approved) == (7, 5)


def test_an_attempt_that_was_taken_back_counts_as_made_and_saved_nothing(shop: Shop) -> None:
    """The payment is the first account's again; while a late approval is voided, it is the second one's for a while."""
    declined = {"name": "A", "connector": "iso8583", "account": "A", "sent": True, "declined": True}
    voided = {"name": "B", "connector": "stripe", "account": "B", "sent": True, "voided": True}
    route = {"name": "A", "maxCascades": 2, "cascades": 0, "tried": [declined, voided]}
    twice = {"name": "B", "maxCascades": 2, "cascades": 1, "tried": [declined, declined | {"account": "C"}, voided]}
    returned = not_honoured() | {"acquirer_merchant_id": "A", "route": route}
    write_payments(
        shop.channel,
        [
            returned,
            returned | {"connector": "stripe", "acquirer_merchant_id": "B", "route": {**route, "cascades": 1}},
            returned | {"acquirer_merchant_id": "C", "route": twice},
            dict(CASCADED),
        ],
    )
    [found] = compute_cascades(period())
    assert (found.payments, found.attempts, found.saved, found.money) == (4, 5, 1, Decimal("10.00"))


def test_what_was_given_back_later_was_saved_all_the_same(shop: Shop) -> None:
    """As in all figures of approvals: an issuer's answer does not change by a refund or a reversal."""
    paid = {kind: shop.api.pay(paymentType=kind).id for kind in ("DB", "PA")}
    assert {shop.api.follow(paid["DB"], "RF", "92.00").status, shop.api.follow(paid["PA"], "RV").status} == {200}
    Payment.objects.filter(pk__in=paid.values()).update(route=CASCADED["route"], created_at=START)
    [found] = compute_cascades(period())
    assert (found.payments, found.saved, found.money) == (2, 2, Decimal("184.00"))


def test_a_chance_is_a_decline_that_leads_on_where_another_account_was_left(shop: Shop) -> None:
    of_token = not_honoured() | FURTHER
    write_payments(
        shop.channel,
        [
            not_honoured() | FURTHER,
            not_honoured(advice="00") | FURTHER,
            not_honoured(),  # no other account
            not_honoured(advice="02") | FURTHER,
            not_honoured("17") | FURTHER,
            not_honoured("51", code="800.100.155") | FURTHER,
            not_honoured() | {"route": {**CASCADED["route"], "next": [["iso8583", "C", "C"]]}},
            not_honoured() | {"route": {**FURTHER["route"], "maxCascades": 1}},  # its rule allows it already
            not_honoured() | FURTHER | {"request": {"card": {"numberType": "DPAN"}}},
            not_honoured() | FURTHER | {"request": {"wallet1": {"source": "web"}}},
            of_token | {"answer": {**of_token["answer"], "card": {"bin": "420000", "numberType": "PAN"}}},
        ],
    )
    [chance] = compute_chances(period())
    assert (chance.currency, chance.payments, chance.money) == ("EUR", 2, Decimal("20.00"))
    [fall] = waterfall.compute_waterfalls(period())
    [gain] = [one for one in gains.list_gains(period(), [fall], []) if "second acquirer" in one.title]
    assert (gain.money, gain.low, gain.link) == (
        Decimal("20.00"), None, reverse("admin:gateway_routingrule_changelist"),
    )  # fmt: skip


def test_a_purchase_that_was_paid_at_last_is_no_chance_and_one_declined_twice_is_one(shop: Shop) -> None:
    first, second = ({"merchant_transaction_id": name} for name in "ab")
    lost = not_honoured() | FURTHER
    write_payments(shop.channel, [lost | first, lost | first, lost | second, ASKED | second])
    [chance] = compute_chances(period())
    assert (chance.payments, chance.money) == (1, Decimal("10.00"))


def test_a_gain_is_expected_from_what_was_sent_on_in_the_same_time(shop: Shop) -> None:
    write_payments(shop.channel, [not_honoured() | FURTHER for _ in range(10)])
    write_payments(shop.channel, [dict(CASCADED) for _ in range(30)])
    write_payments(shop.channel, [CASCADED | {"code": "800.100.155"} for _ in range(30)])
    [fall] = waterfall.compute_waterfalls(period())
    [gain] = [
        one
        for one in gains.list_gains(period(), [fall], [], compute_cascades(period()))
        if "second acquirer" in one.title
    ]
    assert gain.money == Decimal("100.00")
    assert gain.low is not None
    assert gain.high is not None
    assert Decimal("30.00") < gain.low < Decimal("50.00") < gain.high < Decimal("70.00")
    assert "10 payments were declined" in gain.evidence


# --- what the schemes count ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("brand", "number", "spread", "excessive"),
    [
        ("VISA", 15, 1, 0),
        ("VISA", 17, 1, 2),
        ("VISA", 17, 49, 0),  # never 16 in 30 days
        ("MASTER", 10, 1, 0),
        ("MASTER", 12, 1, 2),
        ("MASTER", 12, 3, 0),
        ("AMEX", 60, 1, 0),
    ],
)
def test_attempts_over_a_schemes_limit_are_counted(
    shop: Shop, brand: str, number: int, spread: int, excessive: int
) -> None:
    write_payments(shop.channel, [{"brand": brand} for _ in range(number)])
    declines(shop.merchant, number, brand=brand)
    for row in CardDecline.objects.all():
        row.at = START - (START - row.at) * spread
        row.save()
    [found] = count_retries(_long_period())
    assert (found.declines, found.excessive, found.forbidden) == (number, excessive, 0)
    assert found.fees == (Decimal("0.10") * excessive if brand != "AMEX" else None)


def _long_period() -> Any:
    one = period()
    return type(one)(scope=one.scope, since=START - timedelta(days=60), until=START + timedelta(days=1))


def test_attempts_of_one_moment_are_told_apart_at_the_limit(shop: Shop) -> None:
    """A payment's attempts have one time; only the one beyond the limit costs a fee."""
    write_payments(shop.channel, [{} for _ in range(15)])
    declines(shop.merchant, 15)
    last = CardDecline.objects.order_by("at").last()
    assert last is not None
    last.pk = None
    last.save()
    [found] = count_retries(period())
    assert (found.network, found.declines, found.further, found.excessive) == ("Visa", 16, 1, 1)


def test_an_attempt_after_never_again_is_counted_as_one(shop: Shop) -> None:
    write_payments(shop.channel, [{}, {}])
    declines(shop.merchant, 2, stops="card")
    [found] = count_retries(period())
    assert (found.forbidden, found.charged) == (1, 1)


def test_declines_of_other_merchants_and_cards_are_not_mixed(shop: Shop, stranger: Shop) -> None:
    for own in (shop, stranger):
        write_payments(own.channel, [{} for _ in range(10)])
        declines(own.merchant, 10, key=b"same")
    declines(shop.merchant, 10, key=b"other")
    [found] = count_retries(period())
    assert (found.declines, found.excessive) == (30, 0)
    [mine] = count_retries(period(AccessScope(merchants=frozenset({stranger.merchant.pk}))))
    assert mine.declines == 10
    [channel] = count_retries(period(AccessScope(channels=frozenset({stranger.channel.pk}))))
    assert channel.declines == 10


def test_each_limit_of_the_schemes_has_a_network_with_a_fee() -> None:
    assert {limit.network for limit in RETRY_LIMITS} == second_acquirers.RETRY_FEES.keys()
    assert all("https://" in fee.source for fee in second_acquirers.RETRY_FEES.values())


# --- the page ---


def test_the_page_shows_what_was_saved_and_counted(shop: Shop) -> None:
    now = clock.real_now()
    write_payments(shop.channel, [CASCADED | {"created_at": now}, ASKED | {"created_at": now}])
    declines(shop.merchant, 1, at=now)
    office = signed_in(person("boss", Role.MANAGER, shop.merchant))
    page = office.get("/admin/approval-rates/").content.decode()
    for words in ("Second acquirer after a decline", "Money saved", "Retries that the schemes count", "Visa"):
        assert words in page, words


def test_without_any_there_is_no_section(shop: Shop) -> None:
    write_payments(shop.channel, [ASKED | {"created_at": clock.real_now()}])
    page = signed_in(person("boss", Role.MANAGER, shop.merchant)).get("/admin/approval-rates/").content.decode()
    assert "Second acquirer after a decline" not in page
    assert "Retries that the schemes count" not in page
    assert compute_cascades(period(FULL_ACCESS)) == []

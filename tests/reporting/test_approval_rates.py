"""Approval rates: what is counted once, intervals, the waterfall, gains and alarms; the page, and who sees what."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import translation

from gateway import metrics
from gateway.access.permissions import FULL_ACCESS, AccessScope
from gateway.core import clock, identifiers, intervals
from gateway.db.copied_rows import build_copy_line, copy_lines
from gateway.models import (
    AccountUpdate,
    Authentication,
    Channel,
    Merchant,
    Payment,
    Registration,
    Role,
    ThreeDSecureConfiguration,
)
from gateway.payments.stored_answer import PrivateFacts, TokenUse
from reporting.approvals import alarms, figures, gains, waterfall
from reporting.approvals.alarms import SegmentDays, compute_chance, is_fall
from reporting.approvals.figures import BREAKDOWNS, ApprovalPeriod, SegmentFigures, compute_figures
from reporting.approvals.models import RateAlarm
from reporting.simulator import market_rows
from tests.support import threeds
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

START = datetime(2030, 1, 1, tzinfo=UTC)


def write_payments(channel: Channel, rows: list[dict[str, Any]]) -> None:
    """First payments of 10.00 EUR, approved unless ``code`` says otherwise."""
    lines = []
    for row in rows:
        key = identifiers.row_id()
        code = row.pop("code", "000.100.110")
        approved = code.startswith("000.")
        values = {
            "payment_type": "DB", "brand": "VISA", "method": "CC", "currency": "EUR", "amount": "10.00",
            "connector": "simulator", "answer": {"card": {"bin": "400011", "last4Digits": "0000"}},
            "status": "APPROVED" if approved else "DECLINED", "created_at": START,
        } | row  # fmt: skip
        values["answer"] = {"resultDetails": {"AcquirerResponse": "00" if approved else "05"}} | values["answer"]
        granted = values["amount"] if values["status"] == "APPROVED" else None
        lines.append(
            build_copy_line(
                Payment,
                id=key,
                chain=key,
                merchant_id=channel.merchant_id,
                channel_id=channel.pk,
                result_code=code,
                approved_amount=granted,
                request_id=key,
                **values,
            )
        )
    with connection.cursor() as cursor:
        copy_lines(cursor, Payment, lines)


def period(scope: AccessScope = FULL_ACCESS, days: int = 31) -> ApprovalPeriod:
    return ApprovalPeriod(
        scope=scope, since=START - timedelta(days=1), until=START + timedelta(days=days), zone="Europe/Berlin"
    )


def one_of(found: list[SegmentFigures], name: str) -> SegmentFigures:
    return next(one for one in found if one.name == name)


# --- intervals ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    # Newcombe 1998, table I (method 3), as printed there.
    [(81, 263, 25.53, 36.62), (15, 148, 6.24, 16.05), (0, 20, 0.0, 16.11), (1, 29, 0.61, 17.18)],
)
def test_wilsons_interval_is_that_of_the_literature(part: int, whole: int, low: float, high: float) -> None:
    found = intervals.compute_share(part, whole)
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(low, abs=0.006), pytest.approx(high, abs=0.006))
    assert found.low <= found.rate <= found.high


def test_nothing_has_no_rate_and_all_reaches_a_hundred() -> None:
    assert intervals.compute_share(0, 0) is None
    whole = intervals.compute_share(50, 50)
    assert whole is not None
    assert whole.high == 100.0


def test_newcombes_interval_of_a_difference_is_that_of_the_literature() -> None:
    """Newcombe 1998, table II: 56/70 and 48/80, method 10."""
    found = intervals.compute_difference((56, 70), (48, 80))
    assert found is not None
    assert (found.low, found.high) == (pytest.approx(5.24, abs=0.01), pytest.approx(33.39, abs=0.01))


# --- figures ------------------------------------------------------------------------------------------------------


def test_a_shopper_who_tried_three_times_is_three_attempts_and_one_purchase(shop: Shop) -> None:
    """Counted in the segment of the attempt that was approved."""
    tries = [("VISA", "800.100.152"), ("VISA", "800.100.155"), ("MASTER", "000.100.110")]
    write_payments(
        shop.channel,
        [
            {
                "brand": brand,
                "code": code,
                "merchant_transaction_id": "order-1",
                "created_at": START + timedelta(minutes=n),
            }
            for n, (brand, code) in enumerate(tries)
        ],
    )
    found = compute_figures(period(), "brand")
    visa, master = one_of(found, "VISA"), one_of(found, "MASTER")
    assert (visa.attempts, visa.approved, visa.purchases) == (2, 0, 0)
    assert (master.attempts, master.approved, master.purchases, master.approved_purchases) == (1, 1, 1, 1)
    assert master.money["EUR"].asked == master.money["EUR"].approved == Decimal("10.00")
    assert visa.money["EUR"].asked == 0


def test_what_is_refused_here_or_ends_in_the_authentication_is_no_attempt_at_an_issuer(shop: Shop) -> None:
    """Such payments have the account of their route, and no answer of it: an expired card, a risk rule, a bank that
    rejects the authentication."""
    assert shop.api.pay().code == "000.100.110"
    assert shop.api.pay(card__number="4000015500000005").code == "800.100.155"
    assert shop.api.pay(card__expiryYear="2020").code == "100.100.303"
    write_payments(shop.channel, [{"code": "100.400.000", "answer": {"resultDetails": {"RiskReason": "a list"}}}])
    Channel.objects.filter(pk=shop.channel.pk).update(three_d_secure=True)
    assert threeds.buy(shop.api, threeds.REJECTED).code.startswith(("100.380.", "100.390."))
    refused = Payment.objects.filter(status="DECLINED").exclude(result_code="800.100.155")
    assert set(refused.values_list("connector", flat=True)) == {"simulator"}
    Payment.objects.update(created_at=START)
    (found,) = compute_figures(period(), "all")
    assert (found.attempts, found.approved, found.purchases) == (2, 1, 2)
    (fall,) = waterfall.compute_waterfalls(period())
    lost = {row.step: row.count for row in fall.rows if row.lost}
    assert lost == {"funds": 1, "card": 1, "refused": 1, "authentication": 1, "unsettled": 1}


def test_attempts_of_one_checkout_are_one_purchase_and_without_a_name_each_is_its_own(shop: Shop) -> None:
    checkout = {"resource_path": "/v1/checkouts/ABC/payment", "code": "800.100.152"}
    write_payments(shop.channel, [dict(checkout), dict(checkout), {}, {}])
    (found,) = compute_figures(period(), "all")
    assert (found.attempts, found.purchases, found.approved_purchases) == (4, 3, 2)


def test_each_run_of_a_schedule_is_a_purchase_with_its_retries(shop: Shop) -> None:
    """All runs send the schedule's merchantTransactionId."""

    def run(due: str, code: str) -> dict[str, Any]:
        answer = {"card": {"bin": "400011"}, "facts": {"schedule": {"id": "ab" * 16, "dueAt": due}}}
        return {"merchant_transaction_id": "plan-1", "answer": answer, "code": code}

    january, february = "2030-01-01 06:00:00+0000", "2030-02-01 06:00:00+0000"
    tries = [(january, "800.100.155"), (january, "000.100.110"), (february, "800.100.155"), (february, "800.100.155")]
    write_payments(shop.channel, [run(due, code) for due, code in tries])
    (found,) = compute_figures(period(), "all")
    assert (found.attempts, found.purchases, found.approved_purchases) == (4, 2, 1)


def test_the_same_order_number_of_two_merchants_is_two_purchases(shop: Shop, stranger: Shop) -> None:
    for one in (shop, stranger):
        write_payments(one.channel, [{"merchant_transaction_id": "order-1"}])
    (found,) = compute_figures(period(), "all")
    assert found.purchases == 2


def test_what_no_acquirer_answered_is_not_in_the_rate(shop: Shop) -> None:
    write_payments(
        shop.channel,
        [
            {"connector": "", "code": "100.380.401"},
            {"connector": "nobody", "code": "600.200.700"},
            {"status": "PENDING", "code": "000.200.000"},
            {"amount": "0.00"},
            {"payment_type": "CD"},
            {},
        ],
    )
    (found,) = compute_figures(period(), "all")
    assert (found.attempts, found.approved) == (1, 1)


def test_each_breakdown_names_its_segments(shop: Shop) -> None:
    key = {"email_key": 7}
    write_payments(
        shop.channel,
        [
            {**key, "created_at": START, "acquirer_merchant_id": "NORTH"},
            {**key, "created_at": START + timedelta(hours=1), "request": {"threeDSecure": {"exemptionFlag": "01"}}},
            {"created_at": START + timedelta(hours=2), "request": {"standingInstruction": {"mode": "REPEATED"}}},
            {"created_at": START + timedelta(hours=3), "request": {"threeDSecure": {"eci": "05"}}},
            {"created_at": START + timedelta(hours=4),
             "request": {"standingInstruction": {"mode": "REPEATED", "source": "CIT"}}},
        ],
    )  # fmt: skip
    names = {by: {one.name for one in compute_figures(period(), by)} for by in BREAKDOWNS}
    assert names["country"] == {"GB"}
    assert names["issuer"] == {"Meridian Test Bank"}
    assert names["cardType"] == {"DEBIT"}
    assert names["cardLevel"] == {"CLASSIC"}
    assert names["bin"] == {"400011"}
    assert names["acquirer"] == {"simulator", "simulator NORTH"}
    assert names["hour"] == {"01", "02", "03", "04", "05"}, "of the zone asked for"
    assert names["day"] == {"2030-01-01"}
    assert names["means"] == {"CC"}
    assert names["threeDSecure"] == {"none", "exemption", "merchant", "own proof"}
    assert names["shopper"] == {"new", "returning", "unknown"}
    assert set(names) == {"all", "brand"} | {
        "country", "issuer", "cardType", "cardLevel", "bin", "acquirer", "hour", "day", "means",
        "threeDSecure", "shopper",
    }  # fmt: skip


def authenticate(payment: Payment, flow: str, trans_status: str, attempt: int = 1) -> None:
    Authentication.objects.create(
        payment=payment.pk, attempt=attempt, merchant=payment.merchant, channel=payment.channel, brand="VISA",
        network="VISA", amount=payment.amount, currency="EUR", flow=flow, trans_status=trans_status,
        request_id=payment.request_id, created_at=payment.created_at,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("authentications", "segment"),
    [
        ([("frictionless", "Y")], "frictionless"),
        ([("frictionless", "A")], "frictionless"),
        ([("frictionless", "U")], "none"),
        ([("challenge", "Y")], "challenge"),
        ([("decoupled", "Y")], "challenge"),
        ([("challenge", "U")], "none"),
        ([("3ri", "Y")], "merchant"),
        ([("3ri", "U")], "merchant"),
        ([("", "")], "none"),
        ([("method", "")], "none"),
        ([("frictionless", "Y"), ("challenge", "Y")], "challenge"),
        ([("frictionless", "Y"), ("challenge", "N")], "frictionless"),
        ([("", ""), ("challenge", "Y")], "challenge"),
        ([("frictionless", "U"), ("challenge", "N")], "none"),
    ],
)
def test_a_payment_is_counted_once_with_the_proof_that_the_acquirer_had(
    shop: Shop, authentications: list[tuple[str, str]], segment: str
) -> None:
    """A soft decline that was challenged has two authentications; 3-D Secure without a proof is none."""
    write_payments(shop.channel, [{}])
    payment = Payment.objects.get()
    for attempt, (flow, trans_status) in enumerate(authentications, start=1):
        authenticate(payment, flow, trans_status, attempt)
    (found,) = compute_figures(period(), "threeDSecure")
    assert (found.name, found.attempts, found.purchases) == (segment, 1, 1)
    assert found.money["EUR"].asked == Decimal("10.00")


@pytest.mark.parametrize("by", BREAKDOWNS)
def test_a_user_is_told_of_his_own_payments_only(shop: Shop, stranger: Shop, by: str) -> None:
    other = shop.open_channel()
    write_payments(shop.channel, [{}])
    write_payments(other, [{}, {}])
    write_payments(stranger.channel, [{}, {}, {}])
    scopes = {
        AccessScope(merchants=frozenset({shop.merchant.pk})): 3,
        AccessScope(channels=frozenset({other.pk})): 2,
        AccessScope(): 0,
        FULL_ACCESS: 6,
    }
    for scope, count in scopes.items():
        assert sum(one.attempts for one in compute_figures(period(scope), by)) == count


@pytest.mark.parametrize("by", BREAKDOWNS)
def test_a_statement_reads_the_index_of_the_merchants_time(shop: Shop, stranger: Shop, by: str) -> None:
    """EXPLAIN: the period bounds what is read; the table is not scanned."""
    write_payments(shop.channel, [{"created_at": START - timedelta(days=n)} for n in range(3_000)])
    breakdown = BREAKDOWNS[by]
    sql = figures._FIGURES.format(segment=breakdown.segment, joins=breakdown.joins)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE gateway_payment, gateway_merchant")
        # What no index serves is scanned all the same; small tables are then not scanned for being small.
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN {sql}", period(AccessScope(merchants=frozenset({shop.merchant.pk})), 1).values())
        plan = "\n".join(row[0] for row in cursor.fetchall())
    assert re.search(r"payment_merchant_made|payment_channel_time", plan), plan
    assert "Seq Scan on gateway_payment " not in plan, plan
    assert "Seq Scan on gateway_authentication " not in plan, plan


def test_no_more_than_the_newest_payments_are_read(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    write_payments(shop.channel, [{"code": "800.100.152"}, {"created_at": START + timedelta(hours=1)}])
    limited = figures._FIGURES.replace(f"LIMIT {figures.MAX_APPROVAL_PAYMENTS}", "LIMIT 1")
    monkeypatch.setattr(figures, "_FIGURES", limited)
    (found,) = compute_figures(period(), "all")
    assert (found.attempts, found.approved) == (1, 1)


# --- waterfall and gains ------------------------------------------------------------------------------------------


def test_the_waterfall_adds_up_and_says_where_each_purchase_was_lost(shop: Shop) -> None:
    codes = {
        "soft": "300.100.100", "funds": "800.100.155", "card": "800.100.159", "unreached": "900.100.300",
        "declined": "800.100.152", "authentication": "100.380.401",
    }  # fmt: skip
    rows: list[dict[str, Any]] = [{"code": code} for code in codes.values()]
    rows += [{"connector": "", "code": "100.400.000"}, {"status": "IN_DOUBT", "code": "000.200.001"}, {}]
    rows += [{"payment_type": "PA", "follow_ups": 0}]
    write_payments(shop.channel, rows)
    paid = shop.api.pay(amount="30.00")
    assert shop.api.follow(paid.id, "RF", "30.00").code == "000.100.110"
    Payment.objects.filter(chain=paid.id).update(created_at=START)
    (found,) = waterfall.compute_waterfalls(period())
    lost = {row.step: (row.count, row.money) for row in found.rows if row.lost}
    ten = (1, Decimal("10.00"))
    assert lost == dict.fromkeys([*codes, "refused", "open", "uncaptured", "unsettled"], ten) | {
        "returned": (1, Decimal("30.00"))
    }
    steps = [(row.count, row.money) for row in found.rows if not row.lost]
    assert steps == [(11, Decimal("130.00")), (9, Decimal("110.00")), (3, Decimal("50.00")), (0, Decimal("0.00"))]
    assert found.rows[0].share == 100.0


def test_a_gain_is_told_with_what_is_comparable_and_never_above_what_was_lost(db: None) -> None:
    """On a simulated market: the account that loses MASTER, the hour of subscriptions, soft declines."""
    call_command("simulate_market", payments=4_000, months=1, start=START.date())
    whole = period()
    (fall,) = waterfall.compute_waterfalls(whole)
    found = gains.list_gains(whole, [fall], compute_figures(whole, "threeDSecure"))
    for one in found:
        assert one.money > 0
        assert one.link.startswith("/admin/")
        assert one.evidence
        assert (one.low is None) == (one.high is None)
        if one.low is not None and one.high is not None:
            assert 0 <= one.low <= one.high <= one.money
    titles = " ".join(one.title for one in found)
    assert "Ask for a challenge after a soft decline" in titles
    assert "Charge stored cards at" in titles


def test_accounts_are_compared_by_brand_and_only_where_it_is_no_chance(shop: Shop) -> None:
    shares = {("MASTER", "NORTH"): 95, ("MASTER", "SOUTH"): 85, ("VISA", "NORTH"): 90, ("VISA", "SOUTH"): 89}
    rows = [
        {"brand": brand, "acquirer_merchant_id": account, **({} if n % 100 < share else {"code": "800.100.152"})}
        for (brand, account), share in shares.items()
        for n in range(400)
    ]
    write_payments(shop.channel, rows)
    (fall,) = waterfall.compute_waterfalls(period())
    found = {one.title: one for one in gains.list_gains(period(), [fall], [])}
    assert set(found) == {"Route MASTER from simulator SOUTH to simulator NORTH"}
    (one,) = found.values()
    assert one.money == Decimal("600.00"), "what was declined of 4000.00"
    assert one.low is not None
    assert one.high is not None
    assert Decimal("200.00") < one.low < Decimal("400.00") < one.high < Decimal("600.00")
    assert one.link == "/admin/gateway/routingrule/"


def list_titles(found: list[gains.Gain]) -> dict[str, gains.Gain]:
    return {one.title: one for one in found}


OWN_CHARGE = {"request": {"standingInstruction": {"source": "MIT"}}, "means": "card"}
SCHEDULED = {"answer": {"card": {"bin": "400011"}, "facts": {"schedule": {"id": "ab" * 16, "dueAt": "2030"}}}}


@pytest.mark.parametrize(
    ("payment", "switched_on", "title"),
    [
        ({"code": "300.100.100"}, {}, "Ask for a challenge after a soft decline"),
        (
            {**OWN_CHARGE, "code": "800.100.157", "registration": identifiers.row_id()},
            {"account_updater": True},
            "Ask the account updater before stored cards are charged",
        ),
        (
            {**OWN_CHARGE, **SCHEDULED, "code": "800.100.155"},
            {"retry_timing": "outcomes"},
            "Time the retries of subscriptions by outcomes",
        ),
        (
            {"code": "800.100.155", "means": "card"},
            {"partial_approvals": "collect"},
            "Take a part of the amount, and the rest with another card",
        ),
        (
            {"code": "800.100.152", "means": "card", "registration": identifiers.row_id()},
            {"network_tokens": True},
            "Pay with network tokens of stored cards",
        ),
    ],
)
def test_a_switch_is_told_where_it_is_off_and_not_where_it_is_on(
    shop: Shop, payment: dict[str, Any], switched_on: dict[str, Any], title: str
) -> None:
    write_payments(shop.channel, [{"amount": "40.00", **payment}])
    falls = waterfall.compute_waterfalls(period())
    one = list_titles(gains.list_gains(period(), falls, []))[title]
    assert (one.money, one.currency) == (Decimal("40.00"), "EUR")
    assert one.link.startswith("/admin/")
    if switched_on:
        Channel.objects.filter(pk=shop.channel.pk).update(**switched_on)
    else:
        ThreeDSecureConfiguration.objects.create(channel=shop.channel, on_soft_decline="challenge")
    assert title not in list_titles(gains.list_gains(period(), falls, []))


def test_what_no_shopper_takes_part_in_is_not_told_to_be_challenged_or_paid_in_parts(shop: Shop) -> None:
    own = [{**OWN_CHARGE, "code": "300.100.100"}, {**OWN_CHARGE, "code": "800.100.155"}]
    own += [{"code": "300.100.100", "request": {"standingInstruction": {"mode": "REPEATED"}}}]
    own += [
        {"code": code, "request": {"transactionCategory": kind}}
        for kind in ("MO", "TO")
        for code in ("300.100.100", "800.100.155")
    ]
    write_payments(shop.channel, own)
    assert gains.list_gains(period(), waterfall.compute_waterfalls(period()), []) == []


def test_an_acquirer_that_was_not_reached_is_told_only_where_there_was_no_other(shop: Shop) -> None:
    own = {"connector": "simulator", "account": ""}
    alone: dict[str, Any] = {"name": "NORTH", "tried": [own]}
    other = {"tried": [{"connector": "stub", "account": "SOUTH"}, own]}
    rows = [alone, alone | {"next": [["stub", "SOUTH", "SOUTH"]]}, other, {"name": "NORTH"}, None]
    write_payments(shop.channel, [{"code": "900.100.600", "route": route} for route in rows])
    (one,) = gains.list_gains(period(), waterfall.compute_waterfalls(period()), [])
    assert one.title == "Give payments a second account for when the first is not reached"
    assert one.money == Decimal("10.00")


def test_what_tokens_bring_is_measured_against_card_numbers(shop: Shop) -> None:
    """Of 400 each: 95 and 85 of 100 approved; the payments that stored their card are not among them."""
    stored = {"means": "card", "registration": identifiers.row_id()}
    with_token = {"answer": PrivateFacts(network_token=TokenUse.USED).as_json()}
    rows = [
        {**stored, **more, **({} if n % 100 < share else {"code": "800.100.152"})}
        for more, share in ((with_token, 95), ({}, 85))
        for n in range(400)
    ]
    rows += [{**stored, "request": {"createRegistration": "true"}, "code": "800.100.152"} for _ in range(300)]
    write_payments(shop.channel, rows)
    one = list_titles(gains.list_gains(period(), waterfall.compute_waterfalls(period()), []))[
        "Pay with network tokens of stored cards"
    ]
    assert one.money == Decimal("600.00"), "what was declined without a token"
    assert one.low is not None
    assert one.high is not None
    assert Decimal("200.00") < one.low < Decimal("400.00") < one.high < Decimal("600.00")
    assert one.link == f"/admin/gateway/channel/{shop.channel.pk}/change/"
    assert shop.channel.name in one.switch


@pytest.mark.parametrize(
    ("comparison", "title"),
    [
        ({}, "Pay with network tokens of stored cards"),
        ({"acquirer_merchant_id": "NORTH"}, "Route VISA from simulator SOUTH to simulator NORTH"),
        ({"created_at": START + timedelta(hours=5)}, "Charge stored cards at 06 instead of 01 o'clock"),
    ],
)
def test_what_was_tried_again_and_paid_is_no_loss_and_what_failed_twice_is_one(
    shop: Shop, comparison: dict[str, Any], title: str
) -> None:
    """Of 60 purchases 20 are paid at the second try, 10 at none: 40 declined attempts, 10 purchases lost."""
    stored = OWN_CHARGE | {"brand": "VISA", "registration": identifiers.row_id(), "acquirer_merchant_id": "SOUTH"}
    declined = stored | {"code": "800.100.152"}
    rows = [stored] * 30
    for n in range(30):
        order = {"merchant_transaction_id": f"order-{n}"}
        rows += [declined | order, (stored if n < 20 else declined) | order]
    rows += [stored | comparison] * 100
    write_payments(shop.channel, rows)
    one = list_titles(gains.list_gains(period(), waterfall.compute_waterfalls(period()), []))[title]
    assert one.money == Decimal("100.00")
    assert one.high is None or one.high <= one.money
    if "tokens" in title:
        assert one.evidence == "10 payments with a stored card were declined where no token is used."


def test_what_the_updater_brings_is_measured_by_its_answers(shop: Shop) -> None:
    """60 of 80 cards that the networks changed or closed were renewed."""

    def store_card() -> Registration:
        return Registration.objects.create(
            merchant=shop.merchant,
            channel=shop.channel,
            means="card",
            brand="VISA",
            payment=identifiers.row_id(),
            created_at=START,
        )

    answers = ["NEW_EXPIRY"] * 40 + ["NEW_NUMBER"] * 20 + ["CLOSED"] * 20 + ["NO_CHANGE"] * 100
    for status in answers:
        AccountUpdate.objects.create(registration=store_card(), sequence=0, status=status, asked_at=START)
    card = store_card()
    write_payments(shop.channel, [{**OWN_CHARGE, "registration": card.pk, "code": "800.100.157", "amount": "100.00"}])
    one = list_titles(gains.list_gains(period(), waterfall.compute_waterfalls(period()), []))[
        "Ask the account updater before stored cards are charged"
    ]
    assert one.low is not None
    assert one.high is not None
    assert Decimal("60.00") < one.low < Decimal("75.00") < one.high < Decimal("85.00")


def test_each_currency_has_its_own_gains(shop: Shop) -> None:
    soft = {"code": "300.100.100"}
    write_payments(shop.channel, [{**soft}, {**soft}, {"currency": "GBP", "amount": "20.00", **soft}])
    found = gains.list_gains(period(), waterfall.compute_waterfalls(period()), [])
    assert [(one.currency, one.money) for one in found] == [("EUR", Decimal("20.00")), ("GBP", Decimal("20.00"))]


# --- alarms -------------------------------------------------------------------------------------------------------


def make_days(draws: random.Random, rate: float, now: float, *, size: int = 120, spread: float = 0.0) -> SegmentDays:
    """Four weeks at a rate that varies by ``spread`` from day to day, and a window at another."""

    def count(share: float) -> tuple[int, int]:
        own = min(0.99, max(0.01, draws.gauss(share, spread)))
        return sum(draws.random() < own for _ in range(size)), size

    return SegmentDays(kind="all", segment="", now=count(now), before=tuple(count(rate) for _ in range(28)))


def test_noise_raises_no_alarm() -> None:
    """Also where days differ by more than chance: one window in 1,200 at most. The draws are seeded."""
    draws = random.Random(22)
    raised = 0
    for spread in (0.0, 0.02, 0.05):
        for _ in range(400):
            days = make_days(draws, 0.88, 0.88, spread=spread)
            chance = compute_chance(days)
            assert chance is not None
            raised += is_fall(days, chance, 1)
    assert raised <= 1


@pytest.mark.parametrize(("rate", "now", "spread"), [(0.9, 0.6, 0.0), (0.9, 0.6, 0.02), (0.8, 0.35, 0.04)])
def test_a_planted_fall_is_found(rate: float, now: float, spread: float) -> None:
    draws = random.Random(22)
    found = 0
    for _ in range(50):
        days = make_days(draws, rate, now, spread=spread)
        chance = compute_chance(days)
        found += chance is not None and is_fall(days, chance, 10)
    assert found >= 47


def test_too_few_payments_say_nothing() -> None:
    draws = random.Random(22)
    assert compute_chance(make_days(draws, 0.9, 0.1, size=29)) is None
    few = make_days(draws, 0.9, 0.1)
    assert compute_chance(SegmentDays(kind="all", segment="", now=few.now, before=few.before[:3])) is None


def plant(shop: Shop, *, now_approved: int, of: int = 60) -> None:
    """Three weeks in which 9 of 10 are approved at this hour and the hour twelve hours before is bad, and today."""
    at = clock.merchant_now(shop.merchant) - timedelta(hours=1)
    rows: list[dict[str, Any]] = []
    for back in range(1, 21):
        rows += [
            {"created_at": at - timedelta(days=back), **({"code": "800.100.152"} if n % 10 == 0 else {})}
            for n in range(40)
        ]
        rows += [{"created_at": at - timedelta(days=back, hours=12), "code": "800.100.152"} for n in range(10)]
    rows += [
        {"created_at": at, **({"code": "800.100.152"} if n >= now_approved else {}), "brand": "VISA"} for n in range(of)
    ]
    write_payments(shop.channel, rows)


def test_falls_that_last_are_counted_for_who_watches(shop: Shop) -> None:
    def told() -> set[str]:
        return {
            line for line in metrics.render_metrics().decode().splitlines() if line.startswith("tollhouse_approval")
        }

    kinds = ("all", "brand", "acquirer", "bin")
    assert told() == {f'tollhouse_approval_falls{{kind="{kind}"}} 0.0' for kind in kinds}
    plant(shop, now_approved=20)
    alarms.watch_approval_rates()
    assert told() == {f'tollhouse_approval_falls{{kind="{kind}"}} 1.0' for kind in kinds}
    RateAlarm.objects.update(ended_at=clock.real_now())
    assert told() == {f'tollhouse_approval_falls{{kind="{kind}"}} 0.0' for kind in kinds}


def test_a_fall_raises_one_alarm_for_each_segment_that_lasts_until_it_is_over(shop: Shop) -> None:
    plant(shop, now_approved=20)
    assert alarms.watch_approval_rates() == 4
    found = {one.kind: one for one in RateAlarm.objects.all()}
    assert set(found) == {"all", "brand", "acquirer", "bin"}
    assert (found["brand"].segment, found["bin"].segment) == ("VISA", "400011")
    whole = found["all"]
    assert (whole.attempts, whole.approved, whole.before_attempts, whole.before_approved) == (60, 20, 800, 720)
    assert whole.chance < 1e-6
    assert alarms.watch_approval_rates() == 0, "told once"
    at = clock.merchant_now(shop.merchant) - timedelta(minutes=5)
    write_payments(shop.channel, [{"created_at": at} for _ in range(600)])
    assert alarms.watch_approval_rates() == 4
    assert not RateAlarm.objects.filter(ended_at=None).exists()
    assert len(alarms.list_alarms(FULL_ACCESS, since=clock.real_now() - timedelta(days=1), most=10)) == 4


def test_an_usual_day_raises_none(shop: Shop) -> None:
    plant(shop, now_approved=53)
    assert alarms.watch_approval_rates() == 0
    assert not RateAlarm.objects.exists()


def test_a_fall_that_lasts_becomes_the_new_rate(shop: Shop) -> None:
    plant(shop, now_approved=20)
    alarms.watch_approval_rates()
    RateAlarm.objects.update(found_at=clock.real_now() - timedelta(days=8))
    assert alarms.watch_approval_rates() == 4
    assert not RateAlarm.objects.filter(ended_at=None).exists()


# --- the page -----------------------------------------------------------------------------------------------------


@pytest.fixture
def market(db: None) -> Merchant:
    call_command("simulate_market", payments=1_500, months=1, start=START.date())
    return Merchant.objects.get(name=market_rows.MARKET_MERCHANT)


def test_the_page_shows_every_breakdown(market: Merchant) -> None:
    client = signed_in(person("clara", Role.CLERK, market))
    asked = Payment.objects.filter(merchant=market, payment_type__in=["DB", "PA"]).exclude(connector="").count()
    for by in (name for name in BREAKDOWNS if name != "all"):
        answer = client.get("/admin/approval-rates/", {"by": by, "from": "2030-01-01", "to": "2030-01-30"})
        text = answer.content.decode()
        assert answer.status_code == 200, by
        segments = answer.context["segments"]
        assert sum(one["figures"].attempts for one in segments) == asked, by
        assert segments[0]["name"] in text, by
        assert "What would bring most" in text, by
        assert answer.context["waterfalls"][0].rows[0].count > 1_000, by


def test_a_users_page_has_no_payment_of_another_merchant(market: Merchant, shop: Shop) -> None:
    client = signed_in(person("clara", Role.CLERK, shop.merchant))
    answer = client.get("/admin/approval-rates/", {"from": "2030-01-01", "to": "2030-01-30"})
    assert answer.context["segments"] == []
    assert "Simulated market" not in answer.content.decode()
    stolen = client.get("/admin/approval-rates/", {"merchant": market.entity_id})
    assert "names none of yours" in stolen.content.decode()
    assert signed_in(person("nobody", Role.CLERK)).get("/admin/approval-rates/").status_code in (302, 403)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"from": "yesterday"}, "from: give a date as yyyy-MM-dd"),
        ({"to": "2026-13-01"}, "to: give a date as yyyy-MM-dd"),
        ({"to": "9999-12-31"}, "to: give a date as yyyy-MM-dd"),
        ({"from": "2030-02-01", "to": "2030-01-01"}, "from, to: 1 to 92 days"),
        ({"from": "2030-01-01", "to": "2030-04-03"}, "from, to: 1 to 92 days"),
        ({"by": "shoe size"}, "by: one of day, brand"),
        ({"merchant": "x"}, "merchant: “x” names none of yours."),
    ],
)
def test_what_is_not_valid_is_named_and_the_default_stands_in(shop: Shop, query: dict[str, str], message: str) -> None:
    client = signed_in(person("clara", Role.CLERK, shop.merchant))
    answer = client.get("/admin/approval-rates/", query)
    assert answer.status_code == 200
    assert message in answer.content.decode()


def test_a_segment_without_a_name_has_no_link(shop: Shop) -> None:
    """The list of payments drops an empty filter: it would show those of every brand."""
    write_payments(shop.channel, [{"brand": ""}, {"brand": "VISA"}])
    client = signed_in(person("clara", Role.CLERK, shop.merchant))
    answer = client.get("/admin/approval-rates/", {"by": "brand", "from": "2030-01-01", "to": "2030-01-30"})
    links = {one["name"]: one["link"] for one in answer.context["segments"]}
    assert links["–"] == ""
    assert "brand=VISA" in links["VISA"]


def test_a_merchant_is_chosen_by_typing_and_stays_chosen(shop: Shop, stranger: Shop) -> None:
    """Also one of a name that others have, which only its entityId tells."""
    Merchant.objects.filter(pk=shop.merchant.pk).update(name="Northwind")
    Merchant.objects.filter(pk=stranger.merchant.pk).update(name="Southwind")
    client = signed_in(person("clara", Role.CLERK, shop.merchant, stranger.merchant))

    def look(merchant: str) -> tuple[Any, str]:
        answer = client.get("/admin/approval-rates/", {"merchant": merchant})
        (field,) = re.findall(r'<input name="merchant" value="([^"]*)"', answer.content.decode())
        return answer.context["chosen"].merchant, field

    assert look("") == (None, "")
    assert look("northw") == look(shop.merchant.entity_id) == look("Northwind") == (shop.merchant, "Northwind")
    Merchant.objects.update(name="Northwind")
    assert look("Northwind") == (None, "")
    assert look(shop.merchant.entity_id) == (shop.merchant, shop.merchant.entity_id)


def test_figures_in_sentences_are_written_as_in_the_tables(shop: Shop) -> None:
    """With the reader's decimal sign, rounded alike; one purchase is written in the singular."""
    rows: list[dict[str, Any]] = [{"code": "300.100.100"}, *({} for _ in range(60))]
    write_payments(shop.channel, rows)
    for payment in Payment.objects.filter(status="APPROVED"):
        authenticate(payment, "frictionless", "Y")
    told = {
        "en": "1 purchase: declined: the issuer wanted a challenge. With a proof of 3-D Secure 94.0 to 100.0 %",
        "de": "1 Kauf: ",
        "fr": "1 achat : ",
    }
    for language, words in told.items():
        with translation.override(language):
            (fall,) = waterfall.compute_waterfalls(period())
            paths = compute_figures(period(), "threeDSecure")
            (soft,) = (one for one in gains.list_gains(period(), [fall], paths) if one.low is not None)
        assert soft.evidence.startswith(words)
        assert ("94.0" in soft.evidence, "94,0" in soft.evidence) == (language == "en", language != "en")


def test_an_alarm_stands_on_the_page_and_on_the_home_page_of_who_may_see_it(shop: Shop, stranger: Shop) -> None:
    plant(shop, now_approved=20)
    alarms.watch_approval_rates()
    mine, theirs = (
        signed_in(person(name, Role.CLERK, one.merchant)) for name, one in (("clara", shop), ("otto", stranger))
    )
    for page in ("/admin/", "/admin/approval-rates/"):
        assert "Falls that are no chance" in mine.get(page).content.decode()
        assert "Falls that are no chance" not in theirs.get(page).content.decode()


def test_what_asked_no_issuer_is_no_attempt(shop: Shop) -> None:
    """An acquirer's id alone is an answer; what ended in the authentication, or failed our own rule, is none."""
    write_payments(
        shop.channel,
        [
            {"code": "800.100.100", "connector": "sepa", "connector_tx_id": "x", "answer": {"resultDetails": {}}},
            {"code": "100.396.101"},
            {"code": "100.400.000", "answer": {"resultDetails": {"AcquirerResponse": "00", "RiskReason": "x"}}},
            {"code": "100.100.303", "answer": {"resultDetails": {}}},
        ],
    )
    (all_of_them,) = compute_figures(period(), "all")
    assert all_of_them.attempts == 1


def test_a_decline_decides_before_what_was_refused_here(shop: Shop) -> None:
    """Without any details of a result, as of a fault in the request."""
    order, wrong = {"merchant_transaction_id": "o-1"}, {"code": "100.100.101"}
    write_payments(shop.channel, [order | {"code": "800.100.155"}, order | wrong, dict(wrong)])
    Payment.objects.filter(result_code="100.100.101").update(answer={})
    (fall,) = waterfall.compute_waterfalls(period())
    assert {row.step: row.count for row in fall.rows if row.lost} == {"funds": 1, "refused": 1}


def test_refusals_of_a_new_rule_are_no_fall(shop: Shop) -> None:
    """An alarm counts what rates count."""
    plant(shop, now_approved=53)
    refused = {"answer": {"card": {"bin": "400011"}, "resultDetails": {"RiskReason": "x"}}, "code": "100.400.000"}
    at = clock.merchant_now(shop.merchant) - timedelta(hours=1)
    write_payments(shop.channel, [{"created_at": at, "brand": "VISA"} | refused for _ in range(60)])
    assert alarms.watch_approval_rates() == 0

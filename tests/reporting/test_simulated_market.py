"""manage.py simulate_market: months of trade, the same for the same seed, with books that are whole."""

from __future__ import annotations

import shlex
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import override_settings

from checkout.models import Checkout
from gateway.access import audit_log, tokens
from gateway.background import queue
from gateway.backoffice.entities import exemption_trial
from gateway.backoffice.routing import dry_run
from gateway.core import clock
from gateway.models import (
    AcquirerAccount,
    AcquirerCost,
    AcquirerExchange,
    Authentication,
    BackgroundWork,
    ChainState,
    Channel,
    Merchant,
    Notification,
    Payment,
    PaymentEvent,
    RequestLog,
    Role,
    RoutingRule,
    RoutingTarget,
    Status,
)
from reporting.simulator import market_rows
from reporting.simulator.market import MARKET_PRICES, MarketAttempt, MarketFollowUp, MarketPlan
from tests.support.client import Api
from tests.support.doc_blocks import read_block
from tests.support.office import person, signed_in

START = datetime(2030, 1, 1, tzinfo=UTC)
COUNT = 600


def plan(seed: int = 22, count: int = COUNT, months: int = 1) -> list[Any]:
    return list(MarketPlan(seed=seed, count=count, months=months, start=START).events())


def test_a_seed_makes_one_market_and_another_seed_another() -> None:
    assert plan() == plan()
    assert plan() != plan(seed=23)


def test_a_market_has_exactly_the_attempts_asked_for_spread_over_all_days() -> None:
    attempts = [event for event in plan(count=1_000, months=2) if isinstance(event, MarketAttempt)]
    assert len(attempts) == 1_000
    days = Counter((event.at - START).days for event in attempts)
    assert set(range(60)) <= set(days)
    assert max(days.values()) < 2 * 1_000 / 60
    assert {event.path for event in attempts} == {"none", "frictionless", "challenge", "left"}
    assert {event.merchant_initiated for event in attempts} == {True, False}
    assert all(START <= event.at < START + timedelta(days=61) for event in attempts)


def test_a_follow_up_comes_after_its_approved_attempt_which_counts_it() -> None:
    events = plan(count=2_000)
    attempts = {(event.order, event.place): event for event in events if isinstance(event, MarketAttempt)}
    found = Counter((event.order, event.place) for event in events if isinstance(event, MarketFollowUp))
    assert found
    assert {key: event.follow_ups for key, event in attempts.items() if event.follow_ups} == dict(found)
    for event in events:
        if isinstance(event, MarketFollowUp):
            first = attempts[event.order, event.place]
            assert first.approved
            assert first.at < event.at


def test_a_card_that_is_not_to_be_tried_again_is_not_charged_again() -> None:
    """The subscriptions' fixed ladder keeps to the advice codes."""
    charges = [event for event in plan(count=4_000) if isinstance(event, MarketAttempt) and event.merchant_initiated]
    stopped = {event.order for event in charges if event.answer.advice in ("01", "03")}
    tries = Counter(event.order for event in charges)
    assert stopped
    assert max(tries.values()) > 1
    for order in stopped:
        assert [event for event in charges if event.order == order][-1].answer.advice in ("01", "03")


@pytest.fixture
def market(db: None) -> Merchant:
    call_command("simulate_market", payments=COUNT, months=1, start=START.date())
    return Merchant.objects.get(name=market_rows.MARKET_MERCHANT)


def test_every_payment_has_the_rows_of_its_two_transactions(market: Merchant) -> None:
    payments = Payment.objects.filter(merchant=market)
    first = [one for one in payments if one.chain == one.id]
    assert len(first) == COUNT
    assert PaymentEvent.objects.count() == 2 * payments.count()
    assert Notification.objects.count() == RequestLog.objects.count() == payments.count()
    assert AcquirerExchange.objects.count() == payments.exclude(connector="").count()
    asked = {one.id for one in first if one.connector == ""}
    assert asked <= set(Authentication.objects.filter(trans_status="N").values_list("payment", flat=True))
    connection.check_constraints()


def test_books_are_whole(market: Merchant) -> None:
    """Chains add up, the database's own triggers have derived their states, and checkouts name their payments."""
    payments = {one.id: one for one in Payment.objects.filter(merchant=market)}
    follow_ups = [one for one in payments.values() if one.chain != one.id]
    assert {one.payment_type for one in follow_ups} == {"CP", "RF"}
    for one in follow_ups:
        first = payments[one.chain]
        assert (one.referenced, one.amount, first.status) == (first.id, first.amount, Status.APPROVED)
        assert first.created_at < one.created_at
    assert Counter(one.chain for one in follow_ups) == Counter(
        {one.id: one.follow_ups for one in payments.values() if one.follow_ups}
    )
    states = dict(ChainState.objects.values_list("chain", "state"))
    assert {states[one.chain] for one in follow_ups} == {"captured", "refunded"}
    for checkout in Checkout.objects.exclude(payment=None):
        last = payments[checkout.payment_id]
        assert checkout.public_id in last.resource_path
        assert Payment.objects.filter(resource_path=last.resource_path).count() == checkout.attempts
    assert Checkout.objects.filter(payment=None, attempts=0).exists()


def test_the_clock_stands_at_the_end_and_the_next_market_goes_on_there(market: Merchant) -> None:
    assert abs(clock.merchant_now(market) - (START + timedelta(days=30))) < timedelta(minutes=5)
    with pytest.raises(CommandError, match="clocks are not set back"):
        call_command("simulate_market", payments=10, months=1, start=START.date())
    call_command("simulate_market", payments=50, months=1)
    later = Payment.objects.filter(merchant=market, created_at__gte=START + timedelta(days=31), chain__isnull=False)
    assert later.count() >= 45
    assert clock.merchant_now(Merchant.objects.get(pk=market.pk)) > START + timedelta(days=60)


def test_the_command_of_the_guide_is_taken_as_it_stands(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    """But with fewer payments."""
    words = shlex.split(read_block("market.md", "Months of trade", "bash"))
    name, *options = shlex.split(words[2].removeprefix("ARGS="))
    assert (words[:2], name) == (["make", "manage"], "simulate_market")
    options[options.index("--payments") + 1] = "60"
    call_command(name, *options)
    assert "Simulated market: 60 attempts" in capsys.readouterr().out


def test_routing_rules_and_exemptions_are_tried_on_the_market(db: None, tmp_path: Path) -> None:
    """The account that loses nothing is found by its rate, the other one by its price; exemptions save challenges."""
    call_command("simulate_market", payments=4_000, months=1, start=START.date())
    market = Merchant.objects.get(name=market_rows.MARKET_MERCHANT)
    channel = Channel.objects.get(merchant=market)
    boss = signed_in(person("boss", Role.MANAGER, market))
    north, south = (AcquirerAccount.objects.get(acquirer_merchant_id=name) for name in MARKET_PRICES)
    rule = RoutingRule.objects.create(channel=channel, name="Cards", position=1, choose_by="rate")
    for account in (north, south):
        RoutingTarget.objects.create(rule=rule, account=account, position=1, weight=1)
    days = {"channel": str(channel.pk), "since": "2030-01-01", "until": "2030-01-30", "all": "on"}

    def work(address: str, **more: str) -> BackgroundWork:
        assert boss.post(address, days | more).status_code == 302
        queue.run_background_work()
        return BackgroundWork.objects.order_by("-asked_at")[0]

    def move() -> tuple[dict[str, Any], set[tuple[str, str]]]:
        found = work("/admin/gateway/routingrule/try/").cursor
        moves = {(one["then"], one["now"]) for one in dry_run.summarize_route_changes(found) if one["changed"]}
        return dry_run.summarize_values(found)[0], moves

    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        by_rate, moves = move()
        assert ("stub MARKET-SOUTH", "stub MARKET-NORTH") in moves
        assert not any(then.startswith("simulator ") for then, _now in moves)
        assert by_rate["likely"] > 0
        not_sent = Payment.objects.filter(connector="", created_at__lt=START + timedelta(days=30)).count()
        assert by_rate["unpriced"] == by_rate["unrated"] == not_sent, "all others have a price and a rate"
        AcquirerCost.objects.filter(account=south).update(fixed="0.0100")
        RoutingRule.objects.update(choose_by="cheapest", max_rate_loss="20.00")
        by_cost, moves = move()
        assert by_cost["saved"] > 0
        assert ("stub MARKET-NORTH", "stub MARKET-SOUTH") in moves
        tried = work("/admin/gateway/channel/exemptions/", **{"exemptions.lowValue": "true"})
    (row,) = exemption_trial.summarize_exemptions(tried.cursor)
    assert row["count"] > row["challenges"] > 0


def test_a_payment_of_the_market_is_read_and_refunded_like_any_other(market: Merchant) -> None:
    debit = Payment.objects.filter(merchant=market, payment_type="DB", status="APPROVED", follow_ups=0).latest("id")
    secret = tokens.issue_token(market, name="tests", by=audit_log.Actor(name="tests"))[1]
    api = Api(token=secret.reveal(), entity=debit.channel.entity_id)
    assert api.read(debit.id.hex).body["card"]["last4Digits"] == debit.answer["card"]["last4Digits"]
    assert api.follow(debit.id.hex, "RF", f"{debit.amount}").code == "000.100.110"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"payments": 0}, "payments must be 1 to 2000000, not 0"),
        ({"payments": 2_000_001}, "payments must be 1 to 2000000"),
        ({"months": 0}, "months must be 1 to 24, not 0"),
        ({"months": 25}, "months must be 1 to 24"),
        ({"start": datetime(2020, 1, 1, tzinfo=UTC).date()}, "clocks are not set back"),
    ],
)
def test_bad_input_is_refused_by_name_and_nothing_is_written(db: None, values: dict[str, Any], message: str) -> None:
    with pytest.raises(CommandError, match=message):
        call_command("simulate_market", **({"payments": 10, "months": 1} | values))
    assert not Payment.objects.exists()


def test_the_live_environment_is_refused(db: None, live: None) -> None:
    with pytest.raises(CommandError, match="refuses the live environment"):
        call_command("simulate_market", payments=10, months=1)
    assert not Merchant.objects.filter(name=market_rows.MARKET_MERCHANT).exists()

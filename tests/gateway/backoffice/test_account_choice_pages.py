"""Costs of acquirer accounts, rules that choose by cost and approval rate, and what they say of themselves.

Source: docs/routing.md, "By cost and approval rate".
"""

from __future__ import annotations

import contextlib
import html
import logging
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.core.cache import cache
from django.db import IntegrityError, connection, transaction
from django.test import Client, override_settings

from gateway.access import audit_log
from gateway.api import token_admission
from gateway.backoffice.routing import dry_run
from gateway.configuration.apply import apply_configuration, find_configuration_target
from gateway.connectors import account_figures, routing_rules
from gateway.connectors.account_choice import AccountFigures
from gateway.connectors.account_figures import load_account_figures
from gateway.core import clock
from gateway.core.document import InvalidDocumentError
from gateway.models import AcquirerAccount, AcquirerCost, AuditEntry, Payment, Role, RoutingRule, RoutingTarget
from tests.gateway.backoffice.test_routing_pages import RULES, rule_form, trial
from tests.support.acquirers import Acquirer, account, known
from tests.support.database import statements
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
COSTS = "/admin/gateway/acquirercost/"
NOON = datetime(2026, 5, 14, 12, 0, tzinfo=UTC)


@pytest.fixture
def boss(shop: Shop) -> Client:
    return signed_in(person("boss", Role.MANAGER, shop.merchant))


@pytest.fixture
def pair(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> tuple[AcquirerAccount, AcquirerAccount]:
    """Two accounts, of which a draw takes the first, and no figures of before."""
    cache.clear()
    known(monkeypatch, Acquirer("first"), Acquirer("second"))
    monkeypatch.setattr(routing_rules, "_draw", lambda _payment, _step: 0.0)
    return account(shop.channel, "first", name="The first"), account(shop.channel, "second", name="The second")


def choose(shop: Shop, pair: tuple[AcquirerAccount, ...], **values: Any) -> RoutingRule:
    rule = RoutingRule.objects.create(channel=shop.channel, name="Chosen", **values)
    for position, row in enumerate(pair):
        RoutingTarget.objects.create(rule=rule, account=row, position=position)
    return rule


def price(row: AcquirerAccount, percent: str, fixed: str = "0", since: str = "2020-01-01", **values: Any) -> None:
    currency = "EUR" if Decimal(fixed) else ""
    AcquirerCost.objects.create(
        account=row, percent=percent, fixed=fixed, valid_from=since, currency=values.pop("currency", currency), **values
    )


def judge(shop: Shop, row: AcquirerAccount, approved: int, asked: int, **values: Any) -> None:
    """Payments of an account, copies of one that was made."""
    made = Payment.objects.get(pk=shop.api.pay(testMode="EXTERNAL", amount="100.00").id)
    Payment.objects.filter(pk=made.pk).update(test_mode="INTERNAL")
    made.refresh_from_db()
    copies = []
    for number in range(asked):
        columns = (field.attname for field in Payment._meta.concrete_fields if field.attname != "number")
        copy = Payment(**{name: getattr(made, name) for name in columns})
        copy.id = copy.chain = copy.request_id = type(made.id)(int=made.id.int + 1 + number)
        copy.test_mode, copy.connector, copy.acquirer_merchant_id = (
            "EXTERNAL",
            row.connector,
            row.acquirer_merchant_id,
        )
        copy.status, copy.result_code = (
            ("APPROVED", made.result_code) if number < approved else ("DECLINED", "800.100.152")
        )
        copy.approved_amount = made.amount if number < approved else None
        copy.route = {"name": str(row)} | values
        copies.append(copy)
    Payment.objects.bulk_create(copies)
    cache.clear()


def pay(shop: Shop) -> Payment:
    return Payment.objects.get(pk=shop.api.pay(testMode="EXTERNAL", amount="100.00").id)


# --- costs --------------------------------------------------------------------------------------------------------


def cost_form(row: AcquirerAccount, **changes: str) -> dict[str, str]:
    return {
        "account": str(row.pk),
        "valid_from": "2026-01-01",
        "pricing": "BLENDED",
        "brand": "visa",
        "region": "eea",
        "level": "",
        "currency": "EUR",
        "percent": "1.2000",
        "fixed": "0.0850",
        "interchange_percent": "0",
        "interchange_fixed": "0",
        "scheme_percent": "0",
        "scheme_fixed": "0",
    } | changes


def test_a_price_is_entered_and_told(boss: Client, pair: tuple[AcquirerAccount, AcquirerAccount]) -> None:
    answer = boss.post(f"{COSTS}add/", cost_form(pair[0]))
    assert answer.status_code == 302, answer.content.decode()
    row = AcquirerCost.objects.get()
    assert (row.brand, row.region, row.fixed) == ("VISA", "EEA", Decimal("0.0850"))
    assert AuditEntry.objects.filter(subject="acquirercost", action="create").exists()
    page = boss.get(COSTS).content.decode()
    for words in ("VISA · EEA · EUR", "0.0850 EUR", "The first"):
        assert words in page


@pytest.mark.parametrize(
    "changes, field",
    [
        ({"brand": "VISO"}, "brand"),
        ({"brand": "WALLET1"}, "brand"),
        ({"region": "EUROPE"}, "region"),
        ({"level": "12"}, "level"),
        ({"currency": "EUX"}, "currency"),
        ({"currency": ""}, "currency"),
        ({"percent": "30.0001"}, "percent"),
        ({"percent": "-1"}, "percent"),
        ({"fixed": "1000.01"}, "fixed"),
        ({"fixed": "x"}, "fixed"),
        ({"valid_from": "soon"}, "valid_from"),
        ({"scheme_percent": "0.1"}, "pricing"),
        ({"pricing": "PLUS"}, "pricing"),
    ],
)
def test_a_wrong_price_is_told_beside_its_field(
    boss: Client, pair: tuple[AcquirerAccount, AcquirerAccount], changes: dict[str, str], field: str
) -> None:
    answer = boss.post(f"{COSTS}add/", cost_form(pair[0], **changes))
    assert answer.status_code == 200
    assert list(answer.context["adminform"].form.errors) == [field]
    assert not AcquirerCost.objects.exists()


def test_a_price_of_a_day_that_is_over_stays_and_one_to_come_can_be_changed(
    boss: Client, pair: tuple[AcquirerAccount, AcquirerAccount]
) -> None:
    today = clock.real_now().date()
    for since in (today - timedelta(days=9), today - timedelta(days=1), today + timedelta(days=9)):
        price(pair[0], "1", since=since.isoformat())
    old, now, later = AcquirerCost.objects.order_by("valid_from")
    for row, status in ((old, 403), (now, 403), (later, 302)):
        given = cost_form(pair[0], percent="2", valid_from=row.valid_from.isoformat(), brand="", region="")
        assert boss.post(f"{COSTS}{row.pk}/change/", given).status_code == status
    page = boss.get(COSTS).content.decode()
    assert [words in page for words in ("replaced", "not yet")] == [True, True]
    assert [row.percent for row in AcquirerCost.objects.order_by("valid_from")] == [1, 1, 2]


def test_days_that_are_over_keep_their_price(
    boss: Client, pair: tuple[AcquirerAccount, AcquirerAccount], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "real_now", lambda: NOON)

    def give(where: str, since: str, **changes: str) -> str:
        answer = boss.post(f"{COSTS}{where}/", cost_form(pair[0], valid_from=since, **changes))
        return "" if answer.status_code == 302 else str(answer.context["adminform"].form.errors["valid_from"])

    assert not give("add", "2026-02-01")
    assert "There is a price for these conditions already" in give("add", "2026-01-01")
    assert "There is a price for these conditions already" in give("add", "2026-05-13")
    assert not give("add", "2026-05-13", brand="MASTER")
    assert not give("add", "2026-05-14")
    assert not give("add", "2026-06-01")
    later = AcquirerCost.objects.get(valid_from="2026-06-01")
    assert "A price cannot be moved to a day that is over" in give(f"{later.pk}/change", "2026-05-13")
    assert not give(f"{later.pk}/change", "2026-05-15")


def test_the_same_price_twice_on_one_day_and_another_merchants_account_are_refused(
    boss: Client, pair: tuple[AcquirerAccount, AcquirerAccount], stranger: Shop
) -> None:
    assert boss.post(f"{COSTS}add/", cost_form(pair[0])).status_code == 302
    assert boss.post(f"{COSTS}add/", cost_form(pair[0])).status_code == 200
    foreign = account(stranger.channel, "first")
    assert boss.post(f"{COSTS}add/", cost_form(foreign)).status_code == 200
    assert AcquirerCost.objects.count() == 1


def test_a_fixed_part_without_a_currency_is_refused_by_the_database(
    pair: tuple[AcquirerAccount, AcquirerAccount],
) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        price(pair[0], "1", "0.10", currency="")


# --- figures ------------------------------------------------------------------------------------------------------


def test_figures_hold_todays_prices_and_what_was_judged_first(
    shop: Shop, pair: tuple[AcquirerAccount, AcquirerAccount], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "real_now", lambda: NOON)
    today = NOON.date()
    for percent, since in (("3", date(2020, 1, 1)), ("2", today), ("1", today + timedelta(days=1))):
        price(pair[0], percent, since=since.isoformat())
    AcquirerCost.objects.create(
        account=pair[1], pricing="PLUS", percent="0.1", interchange_percent="0.2", scheme_percent="0.05",
        fixed="0.01", interchange_fixed="0.02", scheme_fixed="0.03", currency="EUR", valid_from=today,
    )  # fmt: skip
    judge(shop, pair[0], 2, 3)
    tried = [{"connector": "first", "account": "at first", "name": "x", "code": "1", "why": "05", "declined": True}]
    judge(shop, pair[1], 1, 1, tried=tried)
    judge(shop, pair[1], 1, 1, tried=[tried[0] | {"declined": False}])
    found = load_account_figures(shop.channel.pk)
    assert {one.account: (one.percent, one.fixed) for one in found.prices} == {
        "first at first": (Decimal(2), Decimal(0)),
        "second at second": (Decimal("0.35"), Decimal("0.06")),
    }
    assert dict(found.outcomes) == {
        ("first at first", "VISA", "GB"): (2, 4),
        ("second at second", "VISA", "GB"): (1, 1),
    }


def test_a_choice_costs_one_statement_a_minute_and_a_rule_without_it_none(
    shop: Shop, pair: tuple[AcquirerAccount, AcquirerAccount], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account_figures, "FIGURES_CACHE_S", 3600)
    monkeypatch.setattr(token_admission, "LAST_USE_RESOLUTION", timedelta(hours=1))
    rule = choose(shop, pair)
    pay(shop)
    found = []
    for choose_by in ("", "rate", "rate"):
        RoutingRule.objects.filter(pk=rule.pk).update(choose_by=choose_by)
        with statements() as seen:
            assert shop.api.pay(testMode="EXTERNAL").status == 200
        # The test's own transaction needs a savepoint, which a payment's statement of its own does not.
        sent = [one for one in seen if "SAVEPOINT" not in one]
        found.append((len(sent), sum("gateway_acquirercost" in one for one in sent)))
    plain = found[0][0]
    assert found == [(plain, 0), (plain + 1, 1), (plain, 0)]


def test_figures_that_cannot_be_read_fail_no_payment(
    shop: Shop,
    pair: tuple[AcquirerAccount, AcquirerAccount],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    judge(shop, pair[0], 45, 60)
    judge(shop, pair[1], 57, 60)
    choose(shop, pair, choose_by="rate")
    kept: list[float] = []
    right, cache_set = account_figures._FIGURES, cache.set
    monkeypatch.setattr(cache, "set", lambda key, value, kept_s: (kept.append(kept_s), cache_set(key, value, kept_s)))
    monkeypatch.setattr(account_figures, "_FIGURES", "SELECT 1 / 0, %(channel)s::uuid, %(today)s::date, %(most)s::int")
    with caplog.at_level(logging.ERROR, logger=account_figures.__name__):
        paid = pay(shop)
    assert (paid.connector, paid.route["choice"]["why"], paid.status) == ("first", "measured", "APPROVED")
    assert not connection.needs_rollback
    assert kept == [account_figures.MISSING_FIGURES_CACHE_S]
    assert "the weights decide" in caplog.text
    monkeypatch.setattr(account_figures, "_FIGURES", right)
    cache.clear()
    assert pay(shop).route["choice"]["why"] == "best"


@pytest.mark.django_db(transaction=True)
def test_figures_that_cannot_be_read_leave_no_broken_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()
    monkeypatch.setattr(account_figures, "_FIGURES", "SELECT 1 / 0, %(channel)s::uuid, %(today)s::date, %(most)s::int")
    for number in (1, 2):
        with transaction.atomic() if number == 2 else contextlib.nullcontext():
            assert account_figures.read_account_figures(UUID(int=number)) == AccountFigures()
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
                assert cursor.fetchone() == (1,)
    cache.clear()


# --- rules --------------------------------------------------------------------------------------------------------


def test_a_payment_goes_to_the_best_rate_and_its_page_tells_why(
    boss: Client, shop: Shop, pair: tuple[AcquirerAccount, AcquirerAccount]
) -> None:
    judge(shop, pair[0], 45, 60)
    judge(shop, pair[1], 57, 60)
    price(pair[1], "1.5", "0.10")
    rule = choose(shop, pair, choose_by="rate")
    paid = pay(shop)
    assert (paid.connector, paid.route["choice"]["why"]) == ("second", "best")
    page = boss.get(f"/admin/gateway/payment/{paid.id.hex}/change/").content.decode()
    for words in (
        "Chosen for the best approval rate (VISA GB)",
        "second at second: costs 1.6000 EUR, approved 57 / 60, 95.0 % (86.3 – 98.3)",
        "first at first: costs no price, approved 45 / 60",
    ):
        assert words in page, words
    assert "Drawn by the payment's id" not in html.unescape(page)
    clerk = signed_in(person("clara", Role.CLERK, shop.merchant))
    page = clerk.get(f"/admin/gateway/payment/{paid.id.hex}/change/").content.decode()
    assert "second at second: approved 57 / 60, 95.0 % (86.3 – 98.3)" in page
    assert "1.6000" not in page
    assert "costs" not in page
    RoutingRule.objects.filter(pk=rule.pk).update(explored_percent=1)
    explored = pay(shop)
    assert (explored.connector, explored.route["choice"]["why"]) == ("first", "explored")
    page = boss.get(f"/admin/gateway/payment/{explored.id.hex}/change/").content.decode()
    assert "Chosen to keep its rate known, as 1 of 100 payments are" in page


@pytest.mark.parametrize(
    "loss, connector, words",
    [
        ("20.00", "second", "Chosen as the cheapest whose approval rate is at most 20.00 points below"),
        ("1.00", "first", "Chosen as the cheapest whose approval rate is at most 1.00 points below"),
    ],
)
def test_the_cheapest_is_taken_where_its_rate_allows(
    boss: Client, shop: Shop, pair: tuple[AcquirerAccount, AcquirerAccount], loss: str, connector: str, words: str
) -> None:
    judge(shop, pair[0], 59, 60)
    judge(shop, pair[1], 58, 60)
    price(pair[0], "2")
    price(pair[1], "1")
    choose(shop, pair, choose_by="cheapest", max_rate_loss=loss)
    paid = pay(shop)
    assert paid.connector == connector
    assert words in boss.get(f"/admin/gateway/payment/{paid.id.hex}/change/").content.decode()


def test_what_does_not_decide_yet_is_told(
    boss: Client, shop: Shop, pair: tuple[AcquirerAccount, AcquirerAccount]
) -> None:
    rule = choose(shop, pair, choose_by="rate")
    found = []
    for choose_by in ("rate", "cheapest"):
        RoutingRule.objects.filter(pk=rule.pk).update(choose_by=choose_by)
        found.append(boss.get(f"/admin/gateway/payment/{pay(shop).id.hex}/change/").content.decode())
    assert all("Drawn by the payment's id" in html.unescape(page) for page in found)
    assert "Costs and rates do not decide yet: an account has fewer than 50 judged payments" in found[0]
    assert "Costs do not decide: an account has no price for this payment" in found[1]


def test_a_rule_is_told_how_to_choose_on_its_page(
    boss: Client, shop: Shop, pair: tuple[AcquirerAccount, AcquirerAccount]
) -> None:
    targets = [(row, 1) for row in pair]
    given = {"choose_by": "cheapest", "max_rate_loss": "1.50", "explored_percent": "5"}
    for name, wrong in (
        ("max_rate_loss", "20.01"),
        ("max_rate_loss", "-1"),
        ("max_rate_loss", "0"),
        ("max_rate_loss", ""),
        ("explored_percent", "21"),
    ):
        answer = boss.post(f"{RULES}add/", rule_form(shop, *targets, **(given | {name: wrong})))
        assert list(answer.context["adminform"].form.errors) == [name]
    assert boss.post(f"{RULES}add/", rule_form(shop, *targets, **given)).status_code == 302
    row = RoutingRule.objects.get()
    assert (row.choose_by, row.max_rate_loss, row.explored_percent) == ("cheapest", Decimal("1.50"), 5)
    assert "the cheapest whose approval rate is not worse" in boss.get(RULES).content.decode()
    row.delete()
    assert boss.post(f"{RULES}add/", rule_form(shop, *targets)).status_code == 302
    row = RoutingRule.objects.get()
    assert (row.choose_by, row.max_rate_loss, row.explored_percent) == ("", 0, 0)


def test_a_configuration_says_how_a_rule_chooses(shop: Shop, pair: tuple[AcquirerAccount, AcquirerAccount]) -> None:
    to = [{"connector": row.connector, "merchant": row.acquirer_merchant_id} for row in pair]
    rule = {"name": "x", "to": to, "chooseBy": "cheapest", "maxRateLoss": "1.50", "exploredPercent": 5}

    def apply(**changes: Any) -> None:
        target = find_configuration_target(shop.channel.id)
        assert target is not None
        document = {"routing": {"rules": [rule | changes]}}
        apply_configuration(target, document, by=audit_log.COMMAND_LINE_ACTOR)

    apply()
    row = RoutingRule.objects.get()
    assert (row.choose_by, row.max_rate_loss, row.explored_percent) == ("cheapest", Decimal("1.50"), 5)
    for name, wrong in (
        ("chooseBy", "price"),
        ("maxRateLoss", "20.01"),
        ("maxRateLoss", "0.00"),
        ("exploredPercent", 21),
    ):
        with pytest.raises(InvalidDocumentError, match=name):
            apply(**{name: wrong})


# --- the trial ----------------------------------------------------------------------------------------------------


def test_a_trial_tells_money_gained_and_at_risk(
    boss: Client, shop: Shop, pair: tuple[AcquirerAccount, AcquirerAccount], tmp_path: Any
) -> None:
    judge(shop, pair[0], 50, 50)
    judge(shop, pair[1], 50, 50)
    price(pair[0], "2", "0.10")
    price(pair[1], "1")
    rule = choose(shop, pair, active=False, choose_by="cheapest", max_rate_loss="8")
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        row = trial(boss, shop, drafts="on")
        assert (row.cursor["seen"], row.cursor["changed"]) == (100, 50)
        (value,) = dry_run.summarize_values(row.cursor)
        # 50 payments of 100.00, each 1.10 cheaper; two rates of 50 of 50 differ by at most 7.14 points.
        assert (value["count"], value["saved"], value["likely"]) == (50, Decimal("55.00"), Decimal("0.00"))
        assert (value["low"], value["high"], value["at_risk"]) == (
            Decimal("-356.50"),
            Decimal("356.50"),
            Decimal("356.50"),
        )
        assert (value["unpriced"], value["unrated"]) == (0, 0)
        page = boss.get(row.parameters["list"]).content.decode()
        assert "What moving them brings and risks" in page
        assert "55.00 EUR" in page
        RoutingRule.objects.filter(pk=rule.pk).update(choose_by="")
        RoutingTarget.objects.filter(rule=rule, account=pair[0]).delete()
        AcquirerCost.objects.filter(account=pair[0]).delete()
        (value,) = dry_run.summarize_values(trial(boss, shop, drafts="on").cursor)
    assert (value["count"], value["saved"], value["unpriced"]) == (50, Decimal("0.00"), 50)


def test_a_trial_leaves_out_the_cost_of_what_another_account_approved(
    boss: Client, shop: Shop, pair: tuple[AcquirerAccount, AcquirerAccount], tmp_path: Any
) -> None:
    tried = {"connector": "first", "account": "at first", "name": "x", "code": "1", "why": "down"}
    judge(shop, pair[0], 1, 1)
    judge(shop, pair[1], 1, 1, tried=[tried])
    price(pair[0], "2")
    price(pair[1], "1")
    rule = RoutingRule.objects.create(channel=shop.channel, name="Second", active=False)
    RoutingTarget.objects.create(rule=rule, account=pair[1], position=0)
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        (value,) = dry_run.summarize_values(trial(boss, shop, drafts="on").cursor)
    # Both were sent to the first account; the second one approved one of them at its own price.
    assert (value["count"], value["saved"], value["unpriced"]) == (2, Decimal("1.00"), 1)

"""A trial judges past payments as real ones are judged, counts what it would have changed, and changes nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from gateway.background import queue
from gateway.background.files import AttemptFolder
from gateway.backoffice.risk import rule_trials
from gateway.backoffice.risk.replay_subject import ACCOUNT_NOT_STORED, ACQUIRER_NOT_ASKED
from gateway.backoffice.risk.rule_trials import TrialRequest, TrialTooLongError
from gateway.backoffice.risk.threshold_figures import MAX_THRESHOLDS, render_thresholds
from gateway.backoffice.risk.trial_figures import AVS_CVV_CHECK_PLACE
from gateway.core import clock
from gateway.models import (
    BackgroundWork,
    Channel,
    Payment,
    RiskDecision,
    RiskObservation,
    RiskSet,
    RiskTrial,
    RiskTrialObservation,
    Role,
)
from tests.support.fixtures import BY, Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
AMOUNT = {
    "name": "large",
    "when": {"kind": "amount", "currency": "EUR", "over": "100.00"},
    "then": {"verdict": "decline"},
}
OFTEN = {
    "name": "often",
    "when": {"kind": "velocity", "per": "customer.ip", "count": "payments", "over": 2, "within": "1h"},
    "then": {"verdict": "review"},
}


def document(*rules: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"key": "EVERYDAY", "rules": list(rules), **more}


@pytest.fixture
def boss(shop: Shop) -> User:
    return person("boss", Role.MANAGER, shop.merchant)


def wanted(shop: Shop, tried: dict[str, Any], **more: Any) -> TrialRequest:
    now = clock.merchant_now(shop.merchant)
    return TrialRequest(
        **{
            "merchant": shop.merchant,
            "document": tried,
            "since": now - timedelta(days=1),
            "until": now + timedelta(days=1),
            "whole": True,
            **more,
        }
    )


def run(shop: Shop, boss: User, tried: dict[str, Any], **more: Any) -> RiskTrial:
    trial = rule_trials.start_risk_trial(wanted(shop, tried, **more), "Trial", owner=boss.pk, by=BY)
    while BackgroundWork.objects.filter(state__in=queue.OPEN_WORK_STATES).exists():
        assert queue.run_background_work() > 0
    trial.refresh_from_db()
    assert trial.work is not None
    assert trial.work.state == BackgroundWork.State.DONE, trial.work.message
    return trial


def rule(trial: RiskTrial, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in trial.figures["rules"] if one["name"] == name)
    return found


def test_what_would_have_been_declined_is_counted_with_its_money(shop: Shop, boss: User) -> None:
    small = [shop.api.pay(amount="92.00").id for _ in range(2)]
    large = [shop.api.pay(amount="150.00").id, shop.api.pay(amount="250.00").id]
    before = list(Payment.objects.order_by("pk").values())
    trial = run(shop, boss, document(AMOUNT))
    assert trial.figures["changes"] == [
        {
            "was": "accept",
            "would": "decline",
            "payments": 2,
            "approved": 2,
            "sums": {"EUR": "400.00"},
            "approvedSums": {"EUR": "400.00"},
        },
    ]
    assert {one.payment.hex for one in trial.payments.all()} == set(large)
    assert trial.figures["judged"] == len(small + large)
    assert rule(trial, "large")["payments"] == 2
    assert list(Payment.objects.order_by("pk").values()) == before
    assert not RiskSet.objects.exists()
    assert not RiskDecision.objects.exists()
    assert not RiskTrialObservation.objects.exists()


def test_a_trial_of_the_kept_rules_finds_no_difference(shop: Shop, boss: User) -> None:
    """The same function judges: what was decided then is decided again, velocities included."""
    tried = document(
        AMOUNT,
        OFTEN,
        {
            "name": "mail",
            "when": {"kind": "list", "field": "customer.email", "values": ["bad@mail.example"]},
            "then": {"verdict": "decline"},
        },
    )
    RiskSet.objects.create(merchant=shop.merchant, key="EVERYDAY", document=tried)
    Channel.objects.filter(pk=shop.channel.pk).update(risk_set="EVERYDAY")
    who = {"customer__givenName": "Jane", "customer__surname": "Jones"}
    for _ in range(4):
        shop.api.pay(customer__ip="192.0.2.7", **who)
    shop.api.pay(amount="150.00")
    shop.api.pay(customer__email="bad@mail.example", **who)
    outcomes = list(RiskDecision.objects.order_by("at").values_list("outcome", flat=True))
    assert outcomes.count("review") == 2, "the velocity holds for the third and the fourth"
    assert outcomes.count("decline") == 2
    trial = run(shop, boss, tried, whole=False)
    assert trial.figures["judged"] == 6
    assert trial.figures["changes"] == []
    assert rule(trial, "often")["payments"] == 2
    assert RiskObservation.objects.count() == 4, "nothing is observed by a trial"


def test_rules_that_are_loosened_let_payments_through(shop: Shop, boss: User) -> None:
    RiskSet.objects.create(merchant=shop.merchant, key="EVERYDAY", document=document(AMOUNT))
    Channel.objects.filter(pk=shop.channel.pk).update(risk_set="EVERYDAY")
    assert shop.api.pay(amount="150.00").status == 400
    trial = run(shop, boss, document(), whole=False)
    (change,) = trial.figures["changes"]
    assert (change["was"], change["would"], change["payments"], change["approved"]) == ("decline", "accept", 1, 0)


def test_only_payments_of_the_set_are_tried_unless_all_are_asked_for(shop: Shop, boss: User) -> None:
    RiskSet.objects.create(merchant=shop.merchant, key="EVERYDAY", document=document())
    screened = shop.open_channel("screened", risk_set="EVERYDAY")
    shop.api.pay(amount="150.00")
    shop.api_of(screened).pay(amount="151.00")
    shop.api.pay(amount="152.00", risk__channelId="EVERYDAY")
    assert run(shop, boss, document(AMOUNT), whole=False).figures["changes"][0]["sums"] == {"EUR": "303.00"}
    assert run(shop, boss, document(AMOUNT), whole=True).figures["changes"][0]["sums"] == {"EUR": "453.00"}


def test_a_changed_list_is_tried_without_being_kept(shop: Shop, boss: User) -> None:
    who = {"customer__givenName": "Jane", "customer__surname": "Jones"}
    shop.api.pay(customer__ip="192.0.2.7", **who)
    shop.api.pay(customer__ip="198.51.100.7", **who)
    listed = {
        "name": "there",
        "when": {"kind": "list", "field": "customer.ip", "list": "denied"},
        "then": {"verdict": "decline"},
    }
    trial = run(shop, boss, document(listed), lists={"denied": {"field": "customer.ip", "entries": ["192.0.2.0/24"]}})
    assert trial.figures["changes"][0]["payments"] == 1
    card = run(
        shop,
        boss,
        document({**listed, "when": {"kind": "list", "field": "account", "list": "denied"}}),
        lists={"denied": {"field": "account", "entries": [shop.api.pay().id]}},
    )
    assert card.figures["changes"][0]["payments"] == 3, "all were made with that card"


def test_what_is_not_kept_is_said_of_each_rule(shop: Shop, boss: User) -> None:
    shop.api.pay()
    Payment.objects.update(means_fingerprint=None)
    shop.api.pay(card__number="4000015500000005")
    listed = {
        "name": "card",
        "when": {"kind": "list", "field": "account", "list": "denied"},
        "then": {"verdict": "decline"},
    }
    other = {"name": "card and amount", "when": [listed["when"], AMOUNT["when"]], "then": {"verdict": "decline"}}
    trial = run(shop, boss, document(listed, other, AMOUNT, cvv={"N": "decline"}))
    assert rule(trial, "card")["undecided_rules"] == [[ACCOUNT_NOT_STORED, 1]]
    assert rule(trial, "card and amount")["undecided_rules"] == [], "its other condition does not hold: it is judged"
    assert rule(trial, "large")["undecided_rules"] == []
    assert trial.figures["rules"][-1]["place"] == AVS_CVV_CHECK_PLACE
    assert trial.figures["rules"][-1]["undecided_rules"] == [[ACQUIRER_NOT_ASKED, 1]]


def test_the_check_of_the_acquirers_answer_is_tried_too(shop: Shop, boss: User) -> None:
    """Of what was approved: its answer is kept. The stricter of rules and check counts."""
    shop.api.pay(amount="92.00")
    trial = run(shop, boss, document({**AMOUNT, "then": {"verdict": "review"}}, cvv={"M": "decline"}))
    (change,) = trial.figures["changes"]
    assert (change["was"], change["would"], change["sums"]) == ("accept", "decline", {"EUR": "92.00"})
    assert (trial.figures["rules"][-1]["place"], trial.figures["rules"][-1]["payments"]) == (AVS_CVV_CHECK_PLACE, 1)
    shop.api.pay(amount="150.00")
    trial = run(shop, boss, document(AMOUNT, cvv={"M": "review"}))
    assert {(one["would"], tuple(one["sums"].items())) for one in trial.figures["changes"]} == {
        ("review", (("EUR", "92.00"),)),
        ("decline", (("EUR", "150.00"),)),
    }


def test_a_refused_request_was_never_put_to_risk(shop: Shop, boss: User) -> None:
    assert shop.api.pay(card__number="4444444444444444", amount="150.00").status == 400
    trial = run(shop, boss, document(AMOUNT))
    assert (trial.figures["judged"], trial.figures["fault"], trial.figures["changes"]) == (0, 1, [])


def test_a_slice_that_is_done_twice_counts_once(shop: Shop, boss: User, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies costs its slice; the next one does it again."""
    monkeypatch.setattr(rule_trials, "TRIAL_SLICE_PAYMENTS", 2)
    who = {"customer__givenName": "Jane", "customer__surname": "Jones"}
    for _ in range(5):
        shop.api.pay(amount="150.00", customer__ip="192.0.2.7", **who)
    trial = rule_trials.start_risk_trial(wanted(shop, document(AMOUNT, OFTEN)), "Trial", owner=boss.pk, by=BY)
    assert trial.work is not None
    rule_trials.try_rules_slice(
        trial.work, AttemptFolder(path=queue.work_folder(trial.work.pk), attempt=1), lambda: None
    )
    while BackgroundWork.objects.filter(state__in=queue.OPEN_WORK_STATES).exists():
        assert queue.run_background_work() > 0
    trial.refresh_from_db()
    assert trial.figures["changes"][0]["payments"] == 5
    assert rule(trial, "often")["payments"] == 3


def test_a_period_with_too_many_payments_is_refused(shop: Shop, boss: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_trials, "MAX_TRIAL_PAYMENTS", 1)
    shop.api.pay()
    shop.api.pay()
    with pytest.raises(TrialTooLongError):
        rule_trials.start_risk_trial(wanted(shop, document()), "Trial", owner=boss.pk, by=BY)
    assert not RiskTrial.objects.exists()


def test_old_trials_make_room(shop: Shop, boss: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_trials, "MAX_TRIALS_PER_MERCHANT", 2)
    trials = [run(shop, boss, document(AMOUNT)) for _ in range(3)]
    assert {row.pk for row in RiskTrial.objects.all()} == {row.pk for row in trials[1:]}


def charge_back(shop: Shop, ident: str, amount: str, reason: str) -> None:
    assert shop.api.follow(ident, "CB", amount, chargebackResultCode=reason).status == 200


def test_each_threshold_tells_blocked_fraud_and_lost_sales(shop: Shop, boss: User) -> None:
    ten = {"name": "ten", "when": {"kind": "amount", "currency": "EUR", "over": "1.00"}, "then": {"score": 10}}
    fifty = {"name": "fifty", "when": {"kind": "amount", "currency": "EUR", "over": "100.00"}, "then": {"score": 50}}
    shop.api.pay(amount="92.00")
    shop.api.pay(amount="150.00")
    charge_back(shop, shop.api.pay(amount="250.00").id, "250.00", "000.100.220")
    charge_back(shop, shop.api.pay(amount="50.00").id, "50.00", "000.100.221")
    shop.api.pay(card__number="4000015500000005", amount="400.00")
    trial = run(shop, boss, document(ten, fifty, declineFrom=60))
    found = render_thresholds(trial)
    assert found is not None
    assert [(one["score"], one["blocked"], one["lost"]) for one in found["columns"]] == [
        (10, "1 · 250.00 EUR", "3 · 292.00 EUR"),
        (60, "1 · 250.00 EUR", "1 · 150.00 EUR"),
    ]
    assert found["columns"][found["start"]]["score"] == 60
    page = signed_in(boss).get(f"/admin/gateway/risktrial/{trial.pk}/change/").content.decode()
    assert page.count("data-threshold>") == 2
    assert "If the amount is over 100.00 EUR, then 50 points are added." in page


def test_many_scores_share_columns(shop: Shop) -> None:
    scores = [[score, "EUR", score % 7 == 0, 1, "1.00"] for score in range(-50, 500)]
    found = render_thresholds(RiskTrial(figures={"scores": scores}, document={}))
    assert found is not None
    assert len(found["columns"]) <= MAX_THRESHOLDS
    assert sum(one["payments"] for one in found["columns"]) == 550
    assert render_thresholds(RiskTrial(figures={}, document={})) is None

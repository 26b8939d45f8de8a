"""What trials over past payments add up: by currency, by outcome, by card. Pure where nothing has to be looked up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from gateway.backoffice.entities import exemption_trial
from gateway.backoffice.payments.payment_replay import read_payment_page
from gateway.backoffice.risk import replay_subject, rule_trials
from gateway.backoffice.risk.threshold_figures import compute_score_figures, render_thresholds
from gateway.backoffice.risk.trial_figures import AVS_CVV_CHECK_PLACE, compute_trial_figures
from gateway.backoffice.routing import dry_run
from gateway.connectors.routing_rules import RouteChoice
from gateway.models import Authentication, Payment, RiskDecision, RiskList, RiskListEntry, RiskTrial, RiskTrialPayment
from gateway.risk.card_testing import CARD_TESTING_CODES
from gateway.risk.evaluation import AVS_DECLINED_CODE, AVS_REVIEW_CODE, CVV_DECLINED_CODE, CVV_REVIEW_CODE
from gateway.risk.rule_sets import rule_set_from_document
from gateway.threeds.exemption_rules import Exemption, ExemptionDecision, ExemptionRules
from tests.support.fixtures import Shop

NOON = datetime(2026, 5, 14, 12, 0, tzinfo=UTC)
CARD, OTHER_CARD = b"one", b"other"


def paid(amount: str = "20.00", currency: str = "EUR", status: str = "APPROVED", **values: Any) -> Payment:
    """A debit by a card whose shopper was authenticated."""
    sent = {"threeDSecure": {"eci": values.pop("eci", "05"), "verificationId": "A" * 28}}
    standard = {"request": sent, "answer": {}, "means": "card", "brand": "VISA", "payment_type": "DB"}
    columns = {"id": uuid4(), "created_at": NOON, "means_fingerprint": CARD, "approved_amount": None}
    return Payment(
        **{**columns, **standard, "amount": Decimal(amount), "currency": currency, "status": status, **values}
    )


# --- exemptions ---------------------------------------------------------------------------------------------------


def new_cursor() -> dict[str, Any]:
    return {"seen": 0, "asked": 0, "undecided": 0, "sums": {}, "cards": {}}


def test_exempted_payments_are_added_up_by_exemption_and_currency() -> None:
    """The issuer answers for what it approved of an authenticated payment, and for nothing else."""
    cursor = new_cursor()
    low, corporate = (ExemptionDecision(exemption=one) for one in (Exemption.LOW_VALUE, Exemption.SECURE_CORPORATE))
    for payment, decision, challenged in (
        (paid("20.00"), low, True),
        (paid("10.00", approved_amount=Decimal("4.00")), low, False),
        (paid("7.00", eci="07"), low, True),
        (paid("5.00", status="DECLINED"), low, True),
        (paid("3.00", "USD"), low, False),
        (paid("2.00"), corporate, False),
        (paid("1.00"), None, True),
    ):
        line = exemption_trial._add_to_sums(cursor, payment, decision, challenged=challenged)
        assert bool(line) == (decision is not None)
    assert (cursor["seen"], cursor["asked"]) == (7, 6)
    rows = [
        (row["exemption"], row["currency"], row["count"], str(row["amount"]), row["challenges"], str(row["carried"]))
        for row in exemption_trial.summarize_exemptions(cursor)
    ]
    assert rows == [
        (Exemption.SECURE_CORPORATE, "EUR", 1, "2.00", 0, "2.00"),
        (Exemption.LOW_VALUE, "EUR", 4, "42.00", 3, "24.00"),
        (Exemption.LOW_VALUE, "USD", 1, "3.00", 0, "3.00"),
    ]


def unauthenticated(amount: str = "20.00", **values: Any) -> Payment:
    """A past payment that an exemption may be asked for: it brought no proof of its own."""
    return paid(amount, **{"request": {}, **values})


def replay(cursor: dict[str, Any], payment: Payment, **rules: Any) -> ExemptionDecision | None:
    challenges = {payment.id: True} if rules.pop("passed", False) else {}
    return exemption_trial._replay_payment(payment, ExemptionRules(low_value=True, **rules), cursor, challenges)


def test_a_card_uses_up_its_own_limits_by_what_was_approved() -> None:
    cursor = new_cursor()
    for payment in (unauthenticated("20.00"), unauthenticated("20.00", status="DECLINED"), unauthenticated("15.00")):
        assert replay(cursor, payment)
    assert replay(cursor, unauthenticated("5.00", means_fingerprint=OTHER_CARD))
    assert replay(cursor, unauthenticated("4.00"), corporate_bins=("",)), "a corporate card's uses up nothing"
    assert cursor["cards"] == {CARD.hex(): [2, "35.00", 0], OTHER_CARD.hex(): [1, "5.00", 0]}


def test_a_challenge_that_was_passed_begins_the_cards_limits_anew() -> None:
    cursor = new_cursor()
    replay(cursor, unauthenticated("20.00"))
    large = unauthenticated("200.00")
    assert replay(cursor, large, passed=True) is None
    assert replay(cursor, unauthenticated("201.00"), passed=True) is None
    assert cursor["cards"] == {CARD.hex(): [0, "0", 2]}
    assert replay(cursor, unauthenticated("300.00")) is None, "nobody was challenged"
    assert cursor["cards"] == {CARD.hex(): [0, "0", 2]}


@pytest.mark.parametrize(
    ("values", "asked"),
    [
        ({}, True),
        ({"answer": {"card": {"numberType": "DPAN"}}}, False),
        ({"request": {"card": {"numberType": "DPAN"}}}, False),
        ({"request": {"threeDSecure": {"eci": "05", "verificationId": "A" * 28}}}, False),
        ({"request": {"threeDSecure": {"disable": "true"}}}, False),
        ({"brand": "BANCOMAT"}, False),
    ],
)
def test_only_what_would_be_authenticated_is_exempted(values: dict[str, Any], asked: bool) -> None:
    assert (replay(new_cursor(), unauthenticated(**values)) is not None) == asked


def copied(made: Payment, **values: Any) -> UUID:
    """Another first payment like ``made``, with ``values``."""
    columns = (field.attname for field in Payment._meta.concrete_fields if field.attname != "number")
    row = Payment(**{name: getattr(made, name) for name in columns})
    row.id = row.chain = row.request_id = uuid4()
    for name, value in values.items():
        setattr(row, name, value)
    Payment.objects.bulk_create([row])
    return row.id


@pytest.mark.django_db
def test_a_trial_takes_the_decided_card_payments_of_its_channel_and_its_period(shop: Shop, stranger: Shop) -> None:
    """From the first moment to before the last; those of the simulator inside only where they are asked for."""
    made = Payment.objects.get(pk=shop.api.pay().id)
    until, moment = NOON + timedelta(hours=1), timedelta(microseconds=1)
    standard: dict[str, Any] = {"created_at": NOON, "test_mode": "EXTERNAL"}
    own = {
        copied(made, **{**standard, **values})
        for values in (
            {},
            {"created_at": until - moment},
            {"payment_type": "PA"},
            {"status": "DECLINED", "approved_amount": None},
        )
    }
    inside = copied(made, **{**standard, "test_mode": "INTERNAL"})
    for values in (
        {"created_at": NOON - moment},
        {"created_at": until},
        {"payment_type": "CD"},
        {"chain": made.id},
        {"status": "PENDING", "approved_amount": None},
        {"channel_id": shop.open_channel().pk},
        {"channel_id": stranger.channel.pk, "merchant_id": stranger.merchant.pk},
        {"means": "bankAccount"},
        {"means_fingerprint": None},
    ):
        copied(made, **{**standard, **values})
    asked = {"channel": str(shop.channel.pk), "from": NOON.isoformat(), "to": until.isoformat()}
    assert set(exemption_trial._select_trial_payments(asked).values_list("pk", flat=True)) == own
    both = exemption_trial._select_trial_payments(asked | {"all": True})
    assert set(both.values_list("pk", flat=True)) == {*own, inside}


@pytest.mark.django_db
def test_pages_of_payments_of_one_moment_leave_none_out_and_repeat_none(shop: Shop) -> None:
    made = Payment.objects.get(pk=shop.api.pay().id)
    wanted = {copied(made, created_at=NOON) for _ in range(5)}
    rows = Payment.objects.filter(pk__in=wanted)
    cursor: dict[str, Any] = {"at": "", "after": ""}
    pages = [[one.id for one in read_payment_page(rows, cursor, ("id", "created_at"), 2)[1]] for _ in range(4)]
    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert {one for page in pages for one in page} == wanted


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("attempts", "passed"),
    [
        ([("challenge", "Y")], True),
        ([("decoupled", "Y")], True),
        ([("challenge", "N")], False),
        ([("challenge", "Y"), ("challenge", "N")], True),
        ([("challenge", "N"), ("challenge", "Y")], True),
        ([("frictionless", "Y")], None),
        ([("frictionless", "Y"), ("challenge", "U")], False),
    ],
)
def test_a_payment_was_challenged_by_any_of_its_authentications(
    shop: Shop, attempts: list[tuple[str, str]], passed: bool | None
) -> None:
    payment, other = paid(), paid()
    for number, (flow, status) in enumerate(attempts, 1):
        Authentication.objects.create(
            payment=payment.id, attempt=number, merchant=shop.merchant, channel=shop.channel, brand="VISA",
            network="visa", amount=20, currency="EUR", flow=flow, trans_status=status, request_id=uuid4(),
            created_at=NOON,
        )  # fmt: skip
    found = exemption_trial._find_challenges([payment, other])
    assert dict(found) == ({} if passed is None else {payment.id: passed})


# --- routes -------------------------------------------------------------------------------------------------------


def test_moves_are_added_up_by_rule_accounts_and_currency() -> None:
    cursor: dict[str, Any] = {"seen": 0, "changed": 0, "moves": {}}
    for amount, currency, rule, then, now in (
        ("10.00", "EUR", "Small", "a x", "b y"),
        ("5.00", "EUR", "Small", "a x", "b y"),
        ("3.00", "USD", "Small", "a x", "b y"),
        ("2.00", "EUR", "", "a x", "a x"),
    ):
        dry_run._add_to_sums(cursor, paid(amount, currency), RouteChoice(candidates=(), rule=rule), then, now)
    assert (cursor["seen"], cursor["changed"]) == (4, 3)
    rows = dry_run.summarize_route_changes(cursor)
    assert [(row["rule"], row["currency"], row["count"], str(row["amount"]), row["changed"]) for row in rows] == [
        ("Small", "EUR", 2, "15.00", True),
        ("Small", "USD", 1, "3.00", True),
        ("", "EUR", 1, "2.00", False),
    ]


@pytest.mark.parametrize(
    ("route", "account"),
    [
        (None, "cards shop"),
        ({"tried": []}, "cards shop"),
        ({"tried": [{"connector": "a", "account": "x"}, {"connector": "b", "account": "y"}]}, "a x"),
    ],
)
def test_a_payment_went_to_the_account_that_was_tried_first(route: dict[str, Any] | None, account: str) -> None:
    payment = paid(route=route, connector="cards", acquirer_merchant_id="shop")
    assert dry_run.find_original_account(payment, {}) == account


def test_a_move_is_valued_by_what_was_approved_and_by_both_accounts_prices_and_rates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is likely to be approved more, at least and at most; only what is known of both accounts counts."""
    costs = {"a x": Decimal("2.00"), "b y": Decimal("0.50")}
    rates: dict[str, Any] = {"known": {"a x": 50.0, "b y": 30.0}}
    monkeypatch.setattr(dry_run, "compute_cost", lambda _figures, account, _known: costs.get(account))
    monkeypatch.setattr(dry_run, "find_rates", lambda *_: (None, rates["known"]) if rates["known"] else None)
    monkeypatch.setattr(
        dry_run, "compare_rates",
        lambda new, old: SimpleNamespace(low=new - old - 5, rate=new - old, high=new - old + 5),
    )  # fmt: skip
    cursor: dict[str, Any] = {}

    def add(payment: Payment) -> None:
        dry_run._add_value(cursor, payment, dry_run.routing_facts_from_payment(payment), None, "a x", "b y", {})  # type: ignore[arg-type]

    at_first = {"connector": "a", "acquirer_merchant_id": "x"}
    add(paid("100.00", **at_first))
    add(paid("100.00", status="DECLINED", **at_first))
    add(paid("100.00", connector="c", acquirer_merchant_id="z"))
    for nothing in ({"status": "PENDING"}, {"payment_type": "CD"}, {"amount": Decimal(0)}):
        add(paid(**{**at_first, **nothing}))
    rates["known"] = None
    add(paid("7.00", "USD", **at_first))
    euros, dollars = dry_run.summarize_values(cursor)
    assert euros == {
        "currency": "EUR", "count": 3, "saved": Decimal("1.50"), "low": Decimal("-75.00"), "likely": Decimal("-60.00"),
        "high": Decimal("-45.00"), "at_risk": Decimal("75.00"), "unpriced": 1, "unrated": 0,
    }  # fmt: skip
    assert (dollars["currency"], dollars["count"], dollars["saved"], dollars["unrated"]) == (
        "USD",
        1,
        Decimal("1.50"),
        1,
    )
    rates["known"], gained = {"a x": 30.0, "b y": 50.0}, {}
    cursor = gained
    add(paid("100.00", **at_first))
    assert dry_run.summarize_values(gained)[0]["at_risk"] == 0


# --- risk ---------------------------------------------------------------------------------------------------------


def tried(shop: Shop, *rules: str, **more: Any) -> RiskTrial:
    when = {"kind": "amount", "currency": "EUR", "over": "1.00"}
    listed = [{"name": name, "when": when, "then": {"verdict": "decline"}} for name in rules]
    return RiskTrial.objects.create(
        merchant=shop.merchant, set_key="S", document={"key": "S", "rules": listed, **more},
        since=NOON, until=NOON + timedelta(days=1), asked_at=NOON,
    )  # fmt: skip


OFTEN = {
    "name": "often",
    "when": {"kind": "velocity", "per": "customer.ip", "count": "payments", "over": 2, "within": "1h"},
    "then": {"verdict": "review"},
}
SELDOM = {**OFTEN, "name": "seldom", "when": {**OFTEN["when"], "over": 9, "within": "5m"}}  # type: ignore[dict-item]


@pytest.mark.django_db
@pytest.mark.parametrize("whole", [True, False])
def test_a_risk_trial_walks_its_merchants_first_payments_from_as_early_as_a_velocity_looks_back(
    shop: Shop, stranger: Shop, whole: bool
) -> None:
    """Of its set: payments of its channels that name no other set, and those that name it."""
    document = {"key": "S", "rules": [OFTEN, SELDOM]}
    trial = RiskTrial.objects.create(
        merchant=shop.merchant, set_key="S", document=document, whole=whole, since=NOON, until=NOON + timedelta(days=1),
        asked_at=NOON,
    )  # fmt: skip
    screened = shop.open_channel("screened", risk_set="S")
    stranger.channel.risk_set = "S"
    stranger.channel.save()
    made = Payment.objects.get(pk=shop.api.pay().id)
    Payment.objects.filter(pk=made.pk).update(created_at=NOON - timedelta(days=9))
    moment = timedelta(microseconds=1)
    standard: dict[str, Any] = {"created_at": NOON, "channel_id": screened.pk, "request": {}}
    own = {
        copied(made, **{**standard, **values})
        for values in (
            {},
            {"created_at": NOON - timedelta(hours=1)},
            {"created_at": trial.until - moment},
            {"request": {"risk": {"channelId": "S"}}},
            {"request": {"risk": {"channelId": "S"}}, "channel_id": shop.channel.pk},
            {"payment_type": "RI"},
        )
    }
    others = {
        copied(made, **{**standard, **values})
        for values in ({"channel_id": shop.channel.pk}, {"request": {"risk": {"channelId": "OTHER"}}})
    }
    for values in (
        {"created_at": NOON - timedelta(hours=1) - moment},
        {"created_at": trial.until},
        {"chain": made.id},
        {"payment_type": "RG"},
        {"merchant_id": stranger.merchant.pk, "channel_id": stranger.channel.pk},
    ):
        copied(made, **{**standard, **values})
    found = rule_trials._select_trial_payments(trial, rule_set_from_document(document))
    assert set(found.values_list("pk", flat=True)) == (own | others if whole else own)


@pytest.mark.django_db
def test_payments_before_the_period_are_counted_and_not_judged_and_a_check_counts_for_none(shop: Shop) -> None:
    """As live ones are: a refused request was never put to risk."""
    document = {"key": "S", "rules": [OFTEN]}
    trial = RiskTrial.objects.create(
        merchant=shop.merchant, set_key="S", document=document, whole=True, since=NOON, until=NOON + timedelta(days=1),
        asked_at=NOON,
    )  # fmt: skip
    who = {"customer__givenName": "Jane", "customer__surname": "Jones"}
    made = Payment.objects.get(pk=shop.api.pay(customer__ip="192.0.2.7", **who).id)
    minute = timedelta(minutes=1)
    early = {"created_at": NOON - 30 * minute}
    check = {"created_at": NOON - minute, "payment_type": "RI"}
    refused = {"created_at": NOON - minute, "status": "DECLINED", "approved_amount": None, "means_sealed": None}
    for values in (early, check, refused):
        copied(made, **values)
    first, second = (copied(made, created_at=NOON + number * minute) for number in range(2))
    rows = list(Payment.objects.exclude(pk=made.pk).select_related("channel").order_by("created_at", "pk"))
    counted = rule_trials._process_payments(trial, rule_set_from_document(document), rows)
    assert (counted["walked"], counted["judged"]) == (5, 2)
    assert [row.payment for row in trial.payments.order_by("at")] == [second]
    assert first not in {row.payment for row in trial.payments.all()}


@pytest.mark.django_db
def test_a_payment_that_the_guard_stopped_is_counted_by_velocities_and_not_judged(shop: Shop) -> None:
    """As a live one is, which was put to risk when it began."""
    document = {"key": "S", "rules": [OFTEN]}
    trial = RiskTrial.objects.create(
        merchant=shop.merchant, set_key="S", document=document, whole=True, since=NOON, until=NOON + timedelta(days=1),
        asked_at=NOON,
    )  # fmt: skip
    who = {"customer__givenName": "Jane", "customer__surname": "Jones"}
    made = Payment.objects.get(pk=shop.api.pay(customer__ip="192.0.2.7", **who).id)
    stopped, first, second = (copied(made, created_at=NOON + timedelta(minutes=number)) for number in range(3))
    code = next(iter(CARD_TESTING_CODES.values()))
    RiskDecision.objects.create(payment_id=stopped, outcome="DECLINE", code=code, at=NOON)
    rows = list(
        Payment.objects.exclude(pk=made.pk).select_related("channel", "risk_decision").order_by("created_at", "pk")
    )
    counted = rule_trials._process_payments(trial, rule_set_from_document(document), rows)
    assert (counted["judged"], counted["guard"], counted["fault"]) == (2, 1, 0)
    assert [row.payment for row in trial.payments.order_by("at")] == [second], "the third of them"
    assert first not in {row.payment for row in trial.payments.all()}


def judged(trial: RiskTrial, amount: str, currency: str = "EUR", **values: Any) -> UUID:
    standard = {"status": "APPROVED", "original_outcome": "accept", "trial_outcome": "decline", "payment": uuid4()}
    row = RiskTrialPayment.objects.create(
        trial=trial, at=NOON, amount=amount, currency=currency, **{**standard, **values}
    )
    return row.payment


@pytest.mark.parametrize(
    ("decided", "status", "code", "original", "approved"),
    [
        (None, "APPROVED", "000.000.000", "accept", True),
        (None, "DECLINED", "800.100.155", "accept", False),
        ("review", "APPROVED", "000.000.000", "review", True),
        ("decline", "DECLINED", "800.110.100", "decline", False),
        ("accept", "DECLINED", AVS_DECLINED_CODE, "decline", True),
        ("review", "DECLINED", CVV_DECLINED_CODE, "decline", True),
        ("accept", "APPROVED", AVS_REVIEW_CODE, "review", True),
        ("decline", "APPROVED", CVV_REVIEW_CODE, "decline", True),
    ],
)
def test_what_risk_decided_then_is_the_stricter_of_its_rules_and_its_check_of_the_answer(
    decided: str | None, status: str, code: str, original: str, approved: bool
) -> None:
    """An approval that a check took back was one: the check of another set can judge it."""
    decision = SimpleNamespace(outcome=decided) if decided else None
    payment: Any = SimpleNamespace(status=status, result_code=code, risk_decision=decision)
    assert replay_subject.find_original_outcome(payment) == original
    assert replay_subject.was_acquirer_approved(payment) == approved


def test_what_a_payment_does_not_show_any_more_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A card whose digits were not kept, and a number whose fingerprint is of a key that was retired."""
    whole = {"answer": {"card": {"bin": "420000"}}, "means_sealed": b"sealed"}
    monkeypatch.setattr(replay_subject, "current_vault", lambda: SimpleNamespace(primary=2))
    monkeypatch.setattr(replay_subject, "parse_key_id", lambda _sealed: 2)
    assert replay_subject.rebuild_risk_subject(paid(**whole)).lost == {}
    without = replay_subject.rebuild_risk_subject(paid(**{**whole, "answer": {}})).lost
    assert without == dict.fromkeys(replay_subject.REPLAY_BIN_FIELDS, replay_subject.BIN_NOT_STORED)
    monkeypatch.setattr(replay_subject, "parse_key_id", lambda _sealed: 1)
    lost = replay_subject.rebuild_risk_subject(paid(**whole)).lost
    assert lost == {"account": replay_subject.FINGERPRINT_KEY_RETIRED}


@pytest.mark.django_db
def test_a_list_of_a_trial_takes_the_place_of_the_kept_one_and_knows_cards_of_its_merchant_only(
    shop: Shop, stranger: Shop
) -> None:
    theirs = stranger.api.pay(card__number="5454545454545454").id
    mine = Payment.objects.get(pk=shop.api.pay(card__number="5454545454545454").id)
    kept = RiskList.objects.create(merchant=shop.merchant, name="denied", field="customer.email")
    RiskListEntry.objects.create(list=kept, value="jane@shop.example")
    mine.request = {**mine.request, "customer": {"email": "jane@shop.example"}}
    subject = replay_subject.rebuild_risk_subject(mine).subject
    assert rule_trials.TrialLists(RiskTrial(merchant=shop.merchant)).named(subject) == {"denied"}
    for entries, on in (([theirs], False), ([mine.id.hex], True), (["nothing"], False)):
        trial = RiskTrial(merchant=shop.merchant, lists={"denied": {"field": "account", "entries": entries}})
        assert rule_trials.TrialLists(trial).named(subject) == ({"denied"} if on else set())


@pytest.mark.django_db
def test_a_risk_trial_adds_up_each_change_by_currency_and_what_was_approved_apart(shop: Shop) -> None:
    trial = tried(shop, "one", "two", cvv={"N": "decline"})
    judged(trial, "10.00", matching_rules=[0])
    judged(trial, "20.00", matching_rules=[0, 1], undecided_rules=[[1, "account"]])
    judged(trial, "5.00", "USD", matching_rules=[1])
    judged(
        trial, "4.00", "USD", status="DECLINED", matching_rules=[1], undecided_rules=[[1, "account"], [-1, "answer"]]
    )
    judged(trial, "3.00", trial_outcome="review", matching_rules=[AVS_CVV_CHECK_PLACE])
    judged(trial, "2.00", original_outcome="decline", matching_rules=[0])
    judged(tried(shop, "one"), "90.00", matching_rules=[0])
    found = compute_trial_figures(trial, rule_set_from_document(trial.document))
    assert found["changes"] == [
        {
            "was": "accept", "would": "decline", "payments": 4, "approved": 3,
            "sums": {"EUR": "30.00", "USD": "9.00"}, "approvedSums": {"EUR": "30.00", "USD": "5.00"},
        },
        {
            "was": "accept", "would": "review", "payments": 1, "approved": 1,
            "sums": {"EUR": "3.00"}, "approvedSums": {"EUR": "3.00"},
        },
    ]  # fmt: skip
    assert [(one["place"], one["payments"], one["changed"], one["sums"]) for one in found["rules"]] == [
        (0, 3, 2, {"EUR": "32.00"}),
        (1, 3, 3, {"EUR": "20.00", "USD": "9.00"}),
        (AVS_CVV_CHECK_PLACE, 1, 1, {"EUR": "3.00"}),
    ]
    assert [one["undecided_rules"] for one in found["rules"]] == [[], [["account", 2]], [["answer", 1]]]


@pytest.mark.django_db
def test_fraud_is_what_was_charged_back_as_fraud_and_stands(shop: Shop) -> None:
    trial = tried(shop, "one")
    first = shop.api.pay()
    made = Payment.objects.get(pk=first.id)
    for number, values in enumerate(
        (
            {"payment_type": "CB", "result_code": "000.100.220"},
            {"payment_type": "CB", "result_code": "000.100.221"},
            {"payment_type": "CB", "result_code": "000.100.220", "status": "DECLINED"},
            {"payment_type": "RF", "result_code": "000.100.220"},
        )
    ):
        chain = judged(trial, "10.00", score=10 * (number + 1))
        copied(made, chain=chain, **values)
    judged(trial, "11.00", score=50, status="DECLINED")
    judged(trial, "12.00")
    judged(trial, "13.00", "USD", score=10)
    assert sorted(compute_score_figures(trial)) == [
        [10, "EUR", True, 1, "10.00"],
        [10, "USD", False, 1, "13.00"],
        [20, "EUR", False, 1, "10.00"],
        [30, "EUR", False, 1, "10.00"],
        [40, "EUR", False, 1, "10.00"],
    ]


@pytest.mark.parametrize(("set_at", "start"), [(None, 2), (10, 0), (11, 1), (20, 1), (21, 2), (99, 2)])
def test_the_threshold_of_the_set_is_the_first_score_that_reaches_it(set_at: int | None, start: int) -> None:
    scores = [[10, "EUR", False, 2, "5.00"], [20, "EUR", True, 3, "6.00"], [20, "EUR", True, 1, "1.00"]]
    scores += [[20, "USD", False, 4, "7.00"], [30, "EUR", True, 1, "8.00"]]
    found = render_thresholds(RiskTrial(figures={"scores": scores}, document={"declineFrom": set_at}))
    assert found is not None
    assert found["start"] == start
    assert [(one["score"], one["payments"], one["frauds"]) for one in found["columns"]] == [
        (10, 2, 0), (20, 8, 4), (30, 1, 1),
    ]  # fmt: skip
    assert (found["columns"][0]["blocked"], found["columns"][0]["lost"]) == ("5 · 15.00 EUR", "6 · 5.00 EUR, 7.00 USD")
    assert (found["columns"][1]["blocked"], found["columns"][1]["lost"]) == ("5 · 15.00 EUR", "4 · 7.00 USD")

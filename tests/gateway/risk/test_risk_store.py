"""What the store of risk rules reads: whose sets, lists and payments, of which field, and from when to when."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
import structlog

from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.db.statement import WriteStatement
from gateway.models import (
    CardDecline,
    CardTestingCount,
    ExemptionCount,
    Notification,
    Payment,
    RiskDecision,
    RiskList,
    RiskListEntry,
    RiskObservation,
    RiskSet,
    RiskTrial,
    RiskTrialObservation,
    Status,
)
from gateway.risk import risk_store
from gateway.risk.card_testing import build_card_testing_watch
from gateway.risk.conditions import Velocity, VelocityCounts
from gateway.risk.evaluation import RiskOutcome, RiskReason, RiskVerdict
from gateway.risk.fields import RiskSubject, build_risk_subject
from gateway.risk.retry_rules import RetryWatch
from gateway.risk.risk_store import (
    EXEMPTION_COUNT_RETENTION,
    MAX_MACHINE_CLOCK_SKEW,
    LoadedRuleSet,
    UnknownRuleSetError,
    _delete_old_observations,
    find_earliest_retry,
    find_matching_lists,
    list_observation_keys,
    load_past_signals,
    load_rule_set,
    load_signals,
    record_decision,
    record_observations,
)
from gateway.risk.rule_sets import RuleSet, rule_set_from_document
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db

MAIL, OTHER_MAIL, CARD = "jane@mail.example", "joe@mail.example", "ab" * 16
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


def subject(
    mail: str = MAIL, amount: str = "10.00", currency: str = "EUR", accounts: tuple[str, ...] = (), **more: str
) -> RiskSubject:
    sent = {"customer.email": mail} | {name.replace("__", "."): value for name, value in more.items()}
    return build_risk_subject(
        sent,
        money=Money(Decimal(amount), currency),
        brand="VISA",
        payment_type="DB",
        now=clock.real_now(),
        accounts=accounts,
    )


# --- lists and sets -----------------------------------------------------------------------------------------------


def make_list(shop: Shop, name: str, field: str, value: str, fingerprint: bytes | None = None) -> None:
    made = RiskList.objects.create(merchant=shop.merchant, name=name, field=field)
    RiskListEntry.objects.create(list=made, value=value, fingerprint=fingerprint)


def test_a_subject_is_on_its_own_merchants_lists_of_the_fields_it_has(shop: Shop, stranger: Shop) -> None:
    own, theirs = shop.merchant.pk, stranger.merchant.pk
    for each, name in ((shop, "ours"), (stranger, "theirs")):
        make_list(each, f"{name} by mail", "customer.email", MAIL)
        make_list(each, f"{name} by card", "account", "x", bytes.fromhex(CARD))
        make_list(each, f"{name} by the same text in another field", "customer.merchantCustomerId", MAIL)
        make_list(each, f"{name} with another mail", "customer.email", OTHER_MAIL)
    found = find_matching_lists(own, subject(accounts=(CARD,)))
    assert found == {"ours by mail", "ours by card"}
    assert find_matching_lists(theirs, subject(accounts=(CARD,))) == {"theirs by mail", "theirs by card"}
    assert find_matching_lists(own, subject(accounts=("cd" * 16,))) == {"ours by mail"}
    assert find_matching_lists(own, subject(OTHER_MAIL)) == {"ours with another mail"}
    assert find_matching_lists(own, subject("", customer__merchantCustomerId=MAIL)) == {
        "ours by the same text in another field"
    }


def make_set(shop: Shop, key: str, *, active: bool = True) -> None:
    RiskSet.objects.create(merchant=shop.merchant, key=key, document={"key": key, "rules": []}, active=active)


def test_a_set_that_is_switched_off_or_anothers_is_none_and_is_not_named(shop: Shop, stranger: Shop) -> None:
    make_set(shop, "B")
    make_set(shop, "A")
    make_set(shop, "OFF", active=False)
    make_set(stranger, "THEIRS")
    assert load_rule_set(shop.merchant.pk, "A", subject()).rules.key == "A"
    for key in ("OFF", "THEIRS", "a"):
        with pytest.raises(UnknownRuleSetError) as fault:
            load_rule_set(shop.merchant.pk, key, subject())
        assert fault.value.known == ["A", "B"]


# --- velocities ---------------------------------------------------------------------------------------------------


def counting(*velocities: Mapping[str, Any]) -> RuleSet:
    rules = [
        {"name": str(at), "when": {"kind": "velocity", **one}, "then": {"score": 1}}
        for at, one in enumerate(velocities)
    ]
    return rule_set_from_document({"key": "A", "rules": rules})


PER_MAIL = {"per": "customer.email", "count": "payments", "over": 1, "within": "1h"}
IN_EUROS = {"per": "customer.email", "count": "volume", "over": "1.00", "within": "1h", "currency": "EUR"}
PER_PHONE = {"per": "customer.phone", "count": "declines", "over": 1, "within": "1h"}
PAYMENTS = Velocity(per="customer.email", within=HOUR, currency="")
EUROS = Velocity(per="customer.email", within=HOUR, currency="EUR")
PHONES = Velocity(per="customer.phone", within=HOUR, currency="")


def observe(shop: Shop, rules: RuleSet, seen: RiskSubject, at: datetime, payment: UUID | None = None) -> None:
    write = WriteStatement()
    record_observations(write, rules, seen, merchant=shop.merchant.pk, payment=payment or identifiers.row_id(), at=at)
    assert write.run()


def counts(
    shop: Shop, rules: RuleSet, seen: RiskSubject, at: datetime, *, observed: bool = True
) -> Mapping[Velocity, VelocityCounts]:
    return load_signals(LoadedRuleSet(rules=rules), seen, merchant=shop.merchant, at=at, observed=observed).counts


def test_a_window_begins_after_its_first_moment_and_ends_with_now(shop: Shop) -> None:
    rules, now = counting(PER_MAIL), clock.merchant_now(shop.merchant)
    for at in (now - HOUR - SECOND, now - HOUR, now - HOUR + SECOND, now):
        observe(shop, rules, subject(), at)
    assert counts(shop, rules, subject(), now)[PAYMENTS].payments == 2
    assert counts(shop, rules, subject(), now - SECOND)[PAYMENTS].payments == 3
    assert counts(shop, rules, subject(), now + HOUR - SECOND / 2)[PAYMENTS].payments == 1
    assert counts(shop, rules, subject(), now + HOUR)[PAYMENTS].payments == 0


def test_a_payment_that_began_while_this_one_waited_is_counted(shop: Shop) -> None:
    """Its window reaches the moment of counting, not only its own beginning."""
    rules, now = counting(PER_MAIL), clock.merchant_now(shop.merchant)
    observe(shop, rules, subject(), now - SECOND)
    assert counts(shop, rules, subject(), now - HOUR / 2)[PAYMENTS].payments == 1
    observe(shop, rules, subject(), now + MAX_MACHINE_CLOCK_SKEW + HOUR)
    assert counts(shop, rules, subject(), now - HOUR / 2)[PAYMENTS].payments == 1


def test_volume_is_of_its_currency_and_of_payments_that_were_not_declined(shop: Shop) -> None:
    """A payment whose row is not there yet counts: it may be approved."""
    rules, now = counting(IN_EUROS), clock.merchant_now(shop.merchant)
    paid, declined = shop.api.pay(), shop.api.pay(card__number="4000015500000005")
    for amount, currency, payment in (
        ("1.00", "EUR", UUID(paid.id)),
        ("2.00", "EUR", UUID(declined.id)),
        ("4.00", "USD", UUID(paid.id)),
        ("8.00", "EUR", None),
        ("16.00", "USD", None),
    ):
        observe(shop, rules, subject(amount=amount, currency=currency), now, payment)
    found = counts(shop, rules, subject(), now)[EUROS]
    assert (found.payments, found.declines, found.volume) == (5, 1, Decimal("9.00"))


@pytest.mark.parametrize(("currency", "volume"), [("EUR", "10.00"), ("USD", "0")])
def test_a_check_alone_adds_itself_and_its_amount_in_its_own_currency(shop: Shop, currency: str, volume: str) -> None:
    rules, now = counting(IN_EUROS), clock.merchant_now(shop.merchant)
    found = counts(shop, rules, subject(currency=currency), now, observed=False)[EUROS]
    assert (found.payments, found.declines, found.volume) == (1, 0, Decimal(volume))


@pytest.mark.parametrize("more_declines_by", ["customer__phone", "customer__mobile", "customer__workPhone"])
def test_of_several_numbers_the_highest_count_of_each_measure_applies(shop: Shop, more_declines_by: str) -> None:
    """In whatever order they are looked up."""
    numbers = {"customer__phone": "+49 89 1", "customer__mobile": "+49 89 2", "customer__workPhone": "+49 89 3"}
    rules, now = counting(PER_PHONE), clock.merchant_now(shop.merchant)
    declined = UUID(shop.api.pay(card__number="4000015500000005").id)
    for _ in range(2):
        observe(shop, rules, subject(customer__phone=numbers[more_declines_by]), now, declined)
    for name, number in numbers.items():
        if name != more_declines_by:
            for _ in range(3):
                observe(shop, rules, subject(customer__phone=number), now)
    found = counts(shop, rules, subject(**numbers), now)[PHONES]
    assert (found.payments, found.declines) == (3, 2)


def test_each_key_is_counted_for_its_own_merchant(shop: Shop, stranger: Shop) -> None:
    rules, now = counting(PER_MAIL), clock.merchant_now(shop.merchant)
    observe(shop, rules, subject(), now)
    observe(stranger, rules, subject(), now)
    observe(shop, rules, subject(OTHER_MAIL), now)
    assert counts(shop, rules, subject(), now)[PAYMENTS].payments == 1
    assert len(set(list_observation_keys(rules, subject()) + list_observation_keys(rules, subject(OTHER_MAIL)))) == 2


def test_in_a_trial_a_decline_counts_from_its_moment_on_and_its_volume_until_then(shop: Shop) -> None:
    """A payment that was declined later was open when the tried one was made."""
    rules, now = counting(IN_EUROS), clock.merchant_now(shop.merchant)
    declined = Payment.objects.get(pk=shop.api.pay(card__number="4000015500000005").id)
    began, ended = now - HOUR / 2, now - HOUR / 4
    Payment.objects.filter(pk=declined.pk).update(completed_at=ended)
    trials = [
        RiskTrial.objects.create(merchant=shop.merchant, set_key="A", document={}, since=now, until=now, asked_at=now)
        for _ in range(2)
    ]
    for trial in trials:
        RiskTrialObservation.objects.create(
            trial=trial,
            key=list_observation_keys(rules, subject())[0],
            at=began,
            payment=declined.pk,
            amount="10.00",
            currency="EUR",
        )

    def past(at: datetime) -> VelocityCounts:
        loaded = LoadedRuleSet(rules=rules)
        return load_past_signals(loaded, subject(), trial=trials[0].pk, at=at, observed=True).counts[EUROS]

    assert past(began - SECOND).payments == 0
    open_ = past(ended - SECOND)
    assert (open_.payments, open_.declines, open_.volume) == (1, 0, Decimal("10.00"))
    over = past(ended)
    assert (over.payments, over.declines, over.volume) == (1, 1, Decimal(0))


# --- decisions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", [{"status": Status.APPROVED}, {"sequence": 7}])
def test_a_decision_on_a_payment_that_changed_meanwhile_writes_nothing(shop: Shop, changed: dict[str, Any]) -> None:
    read = Payment.objects.get(pk=shop.api.pay(paymentType="PA").id)
    verdict = RiskVerdict(outcome=RiskOutcome.ACCEPT, score=0)
    before = Notification.objects.count()
    for name, value in changed.items():
        setattr(read, name, "OTHER" if getattr(read, name) == value else value)
    assert not record_decision(read, verdict, None, answer={"risk": {"score": "+00000"}}, at=clock.real_now())
    assert not RiskDecision.objects.exists()
    assert Notification.objects.count() == before
    assert "risk" not in Payment.objects.get(pk=read.pk).answer


@pytest.mark.parametrize(("kind", "told"), [("PA", 1), ("DB", 1), ("RI", 0)])
def test_a_decision_is_kept_and_told_at_its_moment_but_for_a_check_alone(shop: Shop, kind: str, told: int) -> None:
    read = Payment.objects.get(pk=shop.api.pay(paymentType="PA").id)
    read.payment_type = kind
    at = clock.real_now() - HOUR
    verdict = RiskVerdict(outcome=RiskOutcome.ACCEPT, score=7)
    assert record_decision(read, verdict, None, answer={"risk": {"score": "+00007"}}, at=at)
    decision = RiskDecision.objects.get()
    assert (decision.payment_id, decision.at, decision.score, decision.version) == (read.pk, at, 7, 0)
    rows = Notification.objects.filter(kind="RISK").values_list("payment", "sequence", "created_at", "action")
    assert list(rows) == [(read.pk, read.sequence, at, "CREATED")] * told
    assert Payment.objects.get(pk=read.pk).answer["risk"] == read.answer["risk"] == {"score": "+00007"}


# --- what is forgotten --------------------------------------------------------------------------------------------


def test_what_a_rule_still_counts_is_not_forgotten(shop: Shop) -> None:
    now, ours = clock.real_now(), {"merchant_id": shop.merchant.pk, "key": b"k" * 16}
    for days in (29, 31):
        CardDecline.objects.create(**ours, at=now - timedelta(days=days), payment=identifiers.row_id())
    for days in (6, 365):
        RiskObservation.objects.create(
            **ours, at=now - timedelta(days=days), payment=identifiers.row_id(), amount=1, currency="EUR"
        )
    assert _delete_old_observations() == 2
    assert [(now - row.at).days for row in CardDecline.objects.all()] == [29]
    assert [(now - row.at).days for row in RiskObservation.objects.all()] == [6]


def test_a_cards_count_of_exemptions_is_forgotten_years_after_its_last_use(shop: Shop) -> None:
    now = clock.real_now()
    for number, age in enumerate((EXEMPTION_COUNT_RETENTION + timedelta(hours=1), EXEMPTION_COUNT_RETENTION * 0.99)):
        ExemptionCount.objects.create(
            merchant=shop.merchant, key=bytes([number]) * 16, payments=5, amount=90, authentications=1,
            used_at=now - age,
        )  # fmt: skip
    assert _delete_old_observations() == 1
    assert [bytes(row.key)[0] for row in ExemptionCount.objects.all()] == [1]


# --- the guards' own counts ---------------------------------------------------------------------------------------


def read_retries(shop: Shop, now: datetime) -> RetryWatch:
    watch = RetryWatch(
        merchant=shop.merchant.pk,
        payment=identifiers.row_id(),
        key=b"k" * 16,
        network="Visa",
        merchant_initiated=True,
        now=now,
    )
    write = WriteStatement()
    watch.add_count_query(write)
    write.insert(CardDecline, merchant_id=shop.merchant.pk, key=b"o" * 16, at=now, payment=watch.payment, stops="")
    assert write.run()
    watch.read_counts(write)
    return watch


def test_the_days_and_waits_of_declines_end_at_their_moment(shop: Shop, stranger: Shop) -> None:
    now, day = clock.real_now().replace(microsecond=0), timedelta(days=1)

    def decline(at: datetime, stops: str = "", retry_after: datetime | None = None) -> None:
        """Each of this card at this merchant, of another card there, and of this card at another merchant."""
        for merchant, key in (
            (shop.merchant, b"k" * 16),
            (shop.merchant, b"x" * 16),
            (stranger.merchant, b"k" * 16),
        ):
            CardDecline.objects.create(
                merchant=merchant,
                key=key,
                at=at,
                payment=identifiers.row_id(),
                stops=stops,
                retry_after=retry_after,
            )

    for at in (now - day - SECOND, now - day, now - day + SECOND, now, now + SECOND):
        decline(at)
    found = read_retries(shop, now)
    assert (found.day, found.month) == (2, 4), "what lies ahead of the merchant's clock is not counted"
    for stops in ("card", "merchant"):
        for until in (now - SECOND, now, now + SECOND):
            decline(now - 3 * HOUR, stops, until)
    found = read_retries(shop, now)
    assert (found.waits, found.waits_of_merchant, found.never, found.not_by_merchant) == (1, 1, 0, 0)
    decline(now - 3 * HOUR, "card")
    decline(now - 3 * HOUR, "merchant")
    found = read_retries(shop, now)
    assert (found.waits, found.waits_of_merchant, found.never, found.not_by_merchant) == (1, 1, 1, 1)


@pytest.mark.parametrize(("day", "month", "stopped"), [(8, 33, False), (9, 33, True), (8, 34, True), (9, 34, True)])
def test_one_more_attempt_of_a_payment_counts_by_the_day_and_by_the_month(
    shop: Shop, day: int, month: int, stopped: bool
) -> None:
    watch = RetryWatch(
        merchant=shop.merchant.pk,
        payment=identifiers.row_id(),
        key=b"k" * 16,
        network="Mastercard",
        merchant_initiated=False,
        now=clock.real_now(),
        day=day,
        month=month,
    )
    assert watch.verdict() is None
    assert (watch.verdict_after_decline() is not None) is stopped


def test_a_window_of_card_testing_has_five_slices_and_counts_of_its_kind(shop: Shop) -> None:
    now = datetime.fromtimestamp(1_800_000_000, clock.real_now().tzinfo)
    watch = build_card_testing_watch(
        {"customer.ip": "192.0.2.1"},
        merchant=shop.merchant.pk,
        payment=identifiers.row_id(),
        card_bin="",
        own={},
        now=now,
    )
    assert watch is not None
    (kind, key) = next(iter(watch.keys.items()))
    for back, failed, of_kind in ((0, 1, kind), (4, 10, kind), (5, 100, kind), (-1, 1000, kind), (0, 10_000, "bin")):
        CardTestingCount.objects.create(
            merchant_id=shop.merchant.pk,
            kind=of_kind,
            key=key,
            bucket=watch.bucket - back,
            shard=0,
            failed=failed,
            passed=0,
            at=clock.real_now(),
        )
    write = WriteStatement()
    watch.add_count_query(write)
    write.insert(
        CardDecline,
        merchant_id=shop.merchant.pk,
        key=b"o" * 16,
        at=now,
        payment=identifiers.row_id(),
        stops="",
    )
    assert write.run()
    watch.read_counts(write)
    assert watch.net == {kind: 11}


# --- a decision, a set and a retry, part by part ----------------------------------------------------------------------


def test_a_decision_keeps_the_set_its_version_and_what_each_reason_says(shop: Shop) -> None:
    """What a reason does not say is left out."""
    read = Payment.objects.get(pk=shop.api.pay(paymentType="PA").id)
    rules = counting(PER_MAIL).numbered("WEB", 7)
    reasons = (
        RiskReason(rule="first", why="because", score=5),
        RiskReason(rule="second", why="", verdict="decline"),
    )
    verdict = RiskVerdict(outcome=RiskOutcome.DECLINE, code="100.400.319", score=5, reasons=reasons)
    assert record_decision(read, verdict, rules, answer={"risk": 1}, at=clock.real_now())
    row = RiskDecision.objects.get()
    assert (row.set_key, row.version, row.outcome, row.code, row.score) == ("WEB", 7, "decline", "100.400.319", 5)
    assert row.reasons == [
        {"rule": "first", "why": "because", "score": 5},
        {"rule": "second", "verdict": "decline"},
    ]
    told = Notification.objects.get(kind="RISK")
    assert (told.merchant_id, told.channel_id) == (shop.merchant.pk, shop.channel.pk)


def test_a_decision_wakes_the_webhooks_once_it_is_written(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[str] = []
    monkeypatch.setattr(risk_store.wakeup, "notify_timer", woken.append)
    verdict = RiskVerdict(outcome=RiskOutcome.ACCEPT, score=0)
    for kind, changed, expected in (("PA", 0, 1), ("RI", 0, 0), ("PA", 7, 0)):
        read = Payment.objects.get(pk=shop.api.pay(paymentType="PA").id)
        woken.clear()
        read.payment_type = kind
        read.sequence += changed
        assert record_decision(read, verdict, None, answer={}, at=clock.real_now()) is (not changed)
        assert woken == [risk_store.wakeup.WEBHOOK_TIMER] * expected


def test_a_set_that_this_program_cannot_read_screens_nothing_and_says_so(shop: Shop) -> None:
    RiskSet.objects.create(
        merchant=shop.merchant, key="NEWER", document={"key": "NEWER", "rules": "none" * 400}, active=True, version=3
    )
    make_list(shop, "ours", "customer.email", MAIL)
    with structlog.testing.capture_logs() as logged:
        found = load_rule_set(shop.merchant.pk, "NEWER", subject())
    assert (found.rules.rules, found.rules.key, found.rules.version) == ((), "NEWER", 3)
    assert found.lists == {"ours"}
    (entry,) = logged
    assert (entry["event"], entry["log_level"], entry["merchant"], entry["set"]) == (
        "risk_set_unreadable", "error", shop.merchant.pk.hex, "NEWER",
    )  # fmt: skip
    assert 0 < len(entry["why"]) <= 500


def test_a_set_is_loaded_with_its_version_and_the_lists_of_its_subject(shop: Shop, stranger: Shop) -> None:
    make_set(shop, "A")
    RiskSet.objects.update(version=4)
    make_list(shop, "ours", "customer.email", MAIL)
    make_list(shop, "other", "customer.email", OTHER_MAIL)
    make_list(stranger, "theirs", "customer.email", MAIL)
    found = load_rule_set(shop.merchant.pk, "A", subject())
    assert (found.rules.key, found.rules.version, found.lists) == ("A", 4, {"ours"})


DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("network", "declines", "earliest"),
    [
        # (number, days ago, days that it asks to wait from now, whose) → days from now
        ("Visa", [], 0),
        ("Visa", [(14, 2, None)], 0),
        ("Visa", [(15, 2, None)], 28),
        ("Visa", [(15, 29, None)], 1),
        ("Visa", [(15, 30, None)], 0),
        ("Visa", [(15, -1, None)], 0),
        ("Visa", [(15, 0, None)], 30),
        ("Visa", [(1, 2, 3)], 3),
        ("Visa", [(1, 2, -1)], 0),
        ("Visa", [(1, 30, 3)], 0),
        ("Visa", [(1, 2, 3), (15, 10, None)], 20),
        ("Visa", [(1, 2, 25), (15, 10, None)], 25),
        ("Mastercard", [(9, 0, None)], 0),
        ("Mastercard", [(10, 0, None)], 1),
        ("Mastercard", [(35, 3, None)], 27),
        ("Mastercard", [(34, 3, None)], 0),
        ("Mastercard", [(10, 0, None), (25, 3, None)], 27),
        ("", [(35, 0, None)], 0),
        ("Amex", [(35, 0, None)], 0),
        ("", [(1, 2, 3)], 3),
    ],
)
def test_a_retry_is_allowed_when_the_last_rule_allows_it(
    shop: Shop, stranger: Shop, network: str, declines: list[tuple[int, int, int | None]], earliest: int
) -> None:
    now = clock.real_now()
    same = {"at": now, "payment": identifiers.row_id(), "retry_after": now + 99 * DAY}
    CardDecline.objects.create(merchant=stranger.merchant, key=b"K", **same)
    CardDecline.objects.create(merchant=shop.merchant, key=b"L", **same)
    for number, days, wait in declines:
        CardDecline.objects.bulk_create(
            CardDecline(
                merchant=shop.merchant, key=b"K", payment=identifiers.row_id(), at=now - days * DAY,
                retry_after=now + wait * DAY if wait is not None else None,
            )
            for _ in range(number)
        )  # fmt: skip
    assert find_earliest_retry(shop.merchant.pk, b"K", network, now) == now + earliest * DAY

"""Each condition of risk screening by itself: what is planned for whom, what counts, what an approval has to meet."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.means import BankAccount, Card, TokenAccount
from gateway.connectors.port import AcquirerReply
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import Channel, Payment
from gateway.payments import risk_screening
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.risk_screening import (
    ScreeningPlan,
    _find_card_key,
    _plan_resumed_retries,
    apply_review_code,
    asks_for_partial_approval,
    evaluate_approval,
    plan_follow_up_screening,
    plan_payment_screening,
    plan_screening,
    refuses_partial_approvals,
)
from gateway.payments.stored_answer import ApprovalPolicy, PrivateFacts
from gateway.risk.evaluation import RiskOutcome
from gateway.vault.sealing import current_vault

NOW = datetime(2035, 11, 15, tzinfo=UTC)
MERCHANT, PAYMENT = UUID(int=1), UUID(int=2)
REAL, PUBLISHED = "4111119999990008", "4200000000000000"
NEW = {"expiry_month": "11", "expiry_year": "2036"}


def card(number: str = REAL, **values: str) -> Card:
    return Card(number=Secret(number), **NEW, **values)


TOKEN = TokenAccount(account=Secret("5454545454545454"), type="NETWORK")
BANK = BankAccount(account=Secret("DE1"), is_iban=True)


def key_of(number: str) -> bytes:
    return current_vault().fingerprint(Secret(number))


class Watch:
    """Remembers what a guard was asked to do."""

    def __init__(self) -> None:
        self.done: list[Any] = []

    def add_count_query(self, write: Any) -> None:
        self.done.append(("query", write))

    def read_counts(self, write: Any) -> None:
        self.done.append(("read", write))

    def count(self, write: Any, *what: str, **of: bool) -> None:
        self.done.append((write, *what, *of.values()))


# --- what is written ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loaded", "subject", "payment_type", "observed"),
    [
        (True, True, "DB", True),
        (True, True, "PA", True),
        (True, True, "RI", False),
        (True, False, "DB", False),
        (False, True, "DB", False),
    ],
)
def test_a_payment_that_rules_screen_is_observed_as_it_begins(
    monkeypatch: pytest.MonkeyPatch, loaded: bool, subject: bool, payment_type: str, observed: bool
) -> None:
    found: list[Any] = []
    monkeypatch.setattr(risk_screening.risk_store, "record_observations", lambda *a, **k: found.append((a, k)))
    rules, of = SimpleNamespace(rules="rules"), SimpleNamespace()
    plan: Any = ScreeningPlan(loaded=rules if loaded else None, subject=of if subject else None)  # type: ignore[arg-type]
    row = Payment(id=PAYMENT, merchant_id=MERCHANT, payment_type=payment_type, created_at=NOW)
    plan.add_begin_writes("write", row)
    expected = (("write", "rules", of), {"merchant": MERCHANT, "payment": PAYMENT, "at": NOW})
    assert found == ([expected] if observed else [])


def test_each_guard_counts_in_the_statements_of_the_payment() -> None:
    watch, retries = Watch(), Watch()
    plan: Any = ScreeningPlan(watch=watch, retries=retries)  # type: ignore[arg-type]
    plan.add_begin_writes("write", Payment())
    plan.read_begin_results("write")
    assert watch.done == retries.done == [("query", "write"), ("read", "write")]
    nothing: Any = ScreeningPlan()
    nothing.add_begin_writes("write", Payment())
    nothing.read_begin_results("write")
    nothing.add_end_writes("write", AcquirerReply(code="800.100.153"))


@pytest.mark.parametrize(
    ("values", "of_issuer"),
    [
        ({}, True),
        ({"sent": {}}, None),
        ({"retryable_elsewhere": True}, False),
        ({"received": {"takenBack": {}}}, None),
        ({"received": {"other": {}}}, True),
    ],
    ids=str,
)
def test_only_an_issuers_own_decline_counts_for_the_schemes_rules(
    values: dict[str, Any], of_issuer: bool | None
) -> None:
    """Of a network's code with its advice and the acquirer's own. The guard against card testing counts all of them."""
    watch, retries = Watch(), Watch()
    plan: Any = ScreeningPlan(watch=watch, retries=retries)  # type: ignore[arg-type]
    given = {"sent": {"a": 1}, "details": {"MerchantAdviceCode": "03", "AcquirerResponse": "51"}, **values}
    plan.add_end_writes("write", AcquirerReply(code="800.100.153", **given))
    assert watch.done == [("write", "800.100.153")]
    assert retries.done == ([("write", "800.100.153", "03", "51", of_issuer)] if of_issuer is not None else [])


def test_a_decline_without_advice_is_counted_without() -> None:
    retries = Watch()
    plan: Any = ScreeningPlan(retries=retries)  # type: ignore[arg-type]
    plan.add_end_writes("write", AcquirerReply(code="800.100.153", sent={"a": 1}))
    assert retries.done == [("write", "800.100.153", "", "", True)]


# --- what is planned ------------------------------------------------------------------------------------------------


def request(**values: Any) -> Any:
    sent, refusals = values.pop("sent", {}), values.pop("refusals", ())
    return SimpleNamespace(**{
        "merchant": SimpleNamespace(id=MERCHANT), "payment": PAYMENT, "payment_type": "DB", "test_mode": "EXTERNAL",
        "means": card(), "brand": "VISA", "money": Money(Decimal(92), "EUR"), "now": NOW, "registration": None,
        "channel": Channel(risk_set=""), "parameters": SimpleNamespace(values=sent, refusals=refusals), **values,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("values", "planned"),
    [
        ({}, True),
        ({"test_mode": ""}, True),
        ({"test_mode": "INTERNAL"}, False),
        ({"payment_type": "PA"}, True),
        ({"payment_type": "RG"}, True),
        ({"payment_type": "CD"}, False),
        ({"payment_type": "RI"}, False),
        ({"means": TOKEN}, True),
        ({"means": BANK}, False),
        ({"means": None}, False),
        ({"means": card(PUBLISHED)}, False),
    ],
    ids=str,
)
def test_an_attempt_with_a_card_is_held_to_the_schemes_rules(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], planned: bool
) -> None:
    other = ScreeningPlan(watch=Watch())  # type: ignore[arg-type]
    monkeypatch.setattr(risk_screening, "plan_screening", lambda _: other)
    plan = plan_payment_screening(request(**values))
    assert (plan.retries is not None, plan.watch) == (planned, other.watch)


@pytest.mark.parametrize(
    ("values", "number", "network"),
    [
        ({}, REAL, "VISA"),
        ({"means": TOKEN, "brand": "MASTER"}, TOKEN.account.reveal(), "MASTER"),
        ({"means": card("5454540000000008", wallet="wallet1"), "brand": "WALLET1"}, "5454540000000008", "MASTER"),
    ],
)
@pytest.mark.parametrize("source", ["MIT", "CIT"])
def test_attempts_are_counted_by_card_for_the_network_of_it(
    monkeypatch: pytest.MonkeyPatch, values: dict[str, Any], number: str, network: str, source: str
) -> None:
    monkeypatch.setattr(risk_screening, "plan_screening", lambda _: ScreeningPlan())
    found = plan_payment_screening(request(sent={"standingInstruction.source": source}, **values)).retries
    assert found is not None
    assert (found.merchant, found.payment, found.now) == (MERCHANT, PAYMENT, NOW)
    assert found.key == key_of(number)
    assert found.network == risk_screening.resolve_network(network) != ""
    assert found.merchant_initiated is (source == "MIT")


def follow_up(**values: Any) -> Payment:
    given = {"test_mode": "EXTERNAL", "brand": "VISA", "created_at": NOW, "answer": {}, **values}
    return Payment(id=PAYMENT, merchant_id=MERCHANT, chain=PAYMENT, **given)


@pytest.mark.parametrize(
    ("means", "values", "planned"),
    [
        (card(), {}, True),
        (card(), {"test_mode": ""}, True),
        (card(), {"test_mode": "INTERNAL"}, False),
        (card(PUBLISHED), {}, False),
        (BANK, {}, False),
        (None, {}, False),
    ],
)
@pytest.mark.parametrize("by_merchant", [False, True])
def test_a_follow_up_that_authorizes_anew_is_held_to_them_too(
    means: Any, values: dict[str, str], planned: bool, by_merchant: bool
) -> None:
    plan = plan_follow_up_screening(follow_up(**values), means, merchant_initiated=by_merchant)
    assert (plan is not None) is planned
    if plan is not None:
        found = plan.retries
        assert found is not None
        assert (found.merchant, found.payment, found.now, found.key) == (MERCHANT, PAYMENT, NOW, key_of(REAL))
        assert (found.network, found.merchant_initiated) == (risk_screening.resolve_network("VISA"), by_merchant)


@pytest.mark.django_db
@pytest.mark.parametrize("known", [True, False])
def test_a_token_is_counted_with_its_card(api: Any, known: bool) -> None:
    first = Payment.objects.get(pk=api.pay().id)
    api.pay(card__number="4200000000000042")
    row = Payment(chain=first.pk if known else PAYMENT)
    expected = bytes(first.means_fingerprint or b"") if known else key_of(TOKEN.account.reveal())
    assert _find_card_key(row, TOKEN) == expected
    assert _find_card_key(row, card()) == key_of(REAL)


@pytest.mark.parametrize(
    ("values", "planned"),
    [
        ({}, True),
        ({"test_mode": ""}, True),
        ({"test_mode": "INTERNAL"}, False),
        ({"means_fingerprint": None}, False),
        ({"means": "tokenAccount"}, True),
        ({"means": "bankAccount"}, False),
        ({"answer": {"card": {"bin": "420000", "last4Digits": "0000"}}}, False),
        ({"answer": {"card": {"bin": "420000", "last4Digits": "9999"}}}, True),
        ({"answer": {"card": {}}}, True),
        ({"answer": {}}, True),
    ],
    ids=str,
)
def test_a_payment_whose_shopper_comes_back_is_counted(values: dict[str, Any], planned: bool) -> None:
    kept = {"bin": "411111", "last4Digits": "0008"}
    row = follow_up(**{"means": "card", "means_fingerprint": b"key", "answer": {"card": kept}, **values})
    found = _plan_resumed_retries(row)
    assert (found is not None) is planned
    if found is not None:
        assert (found.merchant, found.payment, found.key, found.now) == (MERCHANT, PAYMENT, b"key", NOW)
        assert (found.network, found.merchant_initiated) == (risk_screening.resolve_network("VISA"), False)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The merchant's rule sets, and what was asked of them and of the guard."""
    found = SimpleNamespace(asked=[], watched=[], sets={"set", "own"})

    def load(merchant: UUID, key: str, subject: Any) -> Any:
        found.asked.append((merchant, key, subject))
        if key not in found.sets:
            raise risk_screening.UnknownRuleSetError(sorted(found.sets))
        return f"loaded {key}"

    def watch(sent: Any, **values: Any) -> str:
        found.watched.append((sent, values))
        return "watch"

    monkeypatch.setattr(risk_screening.risk_store, "load_rule_set", load)
    monkeypatch.setattr(risk_screening.card_testing, "build_card_testing_watch", watch)
    return found


@pytest.mark.parametrize(
    ("values", "watched"),
    [
        ({}, True),
        ({"payment_type": "RG"}, True),
        ({"payment_type": "RI"}, False),
        ({"means": BANK}, False),
        ({"means": TOKEN}, False),
        ({"means": card(PUBLISHED)}, False),
        ({"registration": UUID(int=9)}, False),
        ({"sent": {"standingInstruction.source": "MIT"}}, False),
    ],
    ids=str,
)
def test_a_card_that_a_shopper_entered_is_watched(
    store: SimpleNamespace, values: dict[str, Any], watched: bool
) -> None:
    asked = request(channel=Channel(card_testing={"own": 1}), **values)
    assert plan_screening(asked).watch == ("watch" if watched else None)
    if watched:
        [(sent, given)] = store.watched
        assert sent is asked.parameters.values
        assert given == {
            "merchant": MERCHANT, "payment": PAYMENT, "card_bin": "411111", "own": {"own": 1}, "now": NOW,
        }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "loaded", "key"),
    [
        ({}, None, None),
        ({"channel": Channel(risk_set="set")}, "loaded set", "set"),
        ({"sent": {"risk.channelId": "own"}}, "loaded own", "own"),
        ({"sent": {"risk.channelId": "own"}, "channel": Channel(risk_set="set")}, "loaded own", "own"),
        ({"channel": Channel(risk_set="set"), "payment_type": "RG"}, None, None),
        ({"channel": Channel(risk_set="set"), "refusals": ("one",)}, None, None),
        ({"sent": {"risk.channelId": "elsewhere"}}, None, "elsewhere"),
        ({"sent": {"risk.channelId": "own"}, "payment_type": "RI"}, "loaded own", "own"),
        ({"payment_type": "RI", "refusals": ("one",)}, None, None),
    ],
    ids=str,
)
def test_the_rule_set_is_the_one_that_was_sent_or_the_channels(
    store: SimpleNamespace, values: dict[str, Any], loaded: Any, key: str | None
) -> None:
    """On a channel without one an unknown name may be that of another system."""
    plan = plan_screening(request(**values))
    assert plan.loaded == loaded
    assert [asked[:2] for asked in store.asked] == ([(MERCHANT, key)] if key else [])
    assert (plan.subject is not None) is (loaded is not None)
    assert plan.watch == (None if values.get("payment_type") == "RI" else "watch")


def test_a_check_alone_without_a_rule_set_accepts(store: SimpleNamespace) -> None:
    plan = plan_screening(request(payment_type="RI"))
    assert plan.loaded is not None
    assert plan.loaded.rules is risk_screening.EMPTY_RULE_SET
    assert plan.subject is not None


def test_rules_see_the_payment_as_it_is(store: SimpleNamespace) -> None:
    sent = {"customer.ip": "203.0.113.9"}
    plan = plan_screening(request(channel=Channel(risk_set="set"), sent=sent))
    subject: Any = plan.subject
    assert store.asked[0][2] is subject
    assert subject == risk_screening.build_risk_subject(
        sent, money=Money(Decimal(92), "EUR"), brand="VISA", payment_type="DB", now=NOW, card_bin="411111",
        accounts=(key_of(REAL).hex(),),
    )  # fmt: skip
    assert plan_screening(request(channel=Channel(risk_set="set"), means=None)).subject != subject


@pytest.mark.parametrize(
    ("values", "code", "name", "value"),
    [
        ({"sent": {"risk.channelId": "x"}, "channel": Channel(risk_set="set")}, "200.300.404", "risk.channelId", "x"),
        ({"sent": {"risk.channelId": "x"}, "payment_type": "RI"}, "200.300.404", "risk.channelId", "x"),
        ({"channel": Channel(risk_set="x")}, "600.200.500", "entityId", None),
    ],
    ids=str,
)
@pytest.mark.parametrize(("sets", "words"), [({"set", "own"}, "there are own, set"), (set(), "there is none yet")])
def test_an_unknown_rule_set_is_refused_by_what_named_it(
    store: SimpleNamespace, values: dict[str, Any], code: str, name: str, value: str | None, sets: set[str], words: str
) -> None:
    store.sets = sets
    with pytest.raises(RequestRefusedError) as refused:
        plan_screening(request(**values))
    [error] = refused.value.errors
    assert (refused.value.code, error.name, error.value) == (code, name, value)
    assert error.message.endswith(words)


# --- approvals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", Channel.PartialApprovals.values)
def test_a_channel_may_take_no_approval_in_part(policy: str) -> None:
    assert refuses_partial_approvals(Channel(partial_approvals=policy)) is (policy == "decline")


COLLECTING = PrivateFacts(collect_until=NOW.isoformat())


@pytest.mark.parametrize(
    ("payment_type", "policy", "facts", "asks"),
    [
        ("DB", "request", PrivateFacts(), True),
        ("PA", "request", PrivateFacts(), True),
        ("RG", "request", PrivateFacts(), False),
        ("CD", "request", COLLECTING, False),
        ("DB", "accept", PrivateFacts(), False),
        ("DB", "collect", PrivateFacts(), False),
        ("DB", "collect", COLLECTING, True),
        ("PA", "decline", COLLECTING, True),
        ("DB", "request", PrivateFacts(whole_amount_only=True), False),
        ("DB", "collect", PrivateFacts(collect_until=NOW.isoformat(), whole_amount_only=True), False),
    ],
)
def test_an_issuer_is_asked_for_a_part_where_the_channel_or_the_form_takes_one(
    payment_type: str, policy: str, facts: PrivateFacts, asks: bool
) -> None:
    row = Payment(payment_type=payment_type, channel=Channel(partial_approvals=policy), answer=facts.as_json())
    assert asks_for_partial_approval(row) is asks


AVS = ApprovalPolicy(avs={"N": "decline", "W": "review"}, cvv={"N": "decline"}, review="000.400.010")
ACCEPT, REVIEW, DECLINE = RiskOutcome.ACCEPT, RiskOutcome.REVIEW, RiskOutcome.DECLINE


@pytest.mark.parametrize(
    ("facts", "reply", "outcome"),
    [
        (PrivateFacts(), {"avs": "N"}, ACCEPT),
        (PrivateFacts(approval_policy=AVS), {"avs": "N"}, DECLINE),
        (PrivateFacts(approval_policy=AVS), {"cvv": "N"}, DECLINE),
        (PrivateFacts(approval_policy=AVS), {"avs": "W"}, REVIEW),
        (PrivateFacts(approval_policy=AVS), {}, REVIEW),
        (PrivateFacts(approval_policy=ApprovalPolicy(avs={"N": "decline"})), {}, ACCEPT),
        (PrivateFacts(approval_policy=AVS), {"avs": "N", "approved": None}, ACCEPT),
        (PrivateFacts(approval_policy=AVS), {"avs": "N", "code": "800.100.153"}, ACCEPT),
        (PrivateFacts(whole_amount_only=True), {}, ACCEPT),
        (PrivateFacts(whole_amount_only=True), {"approved": Money(Decimal("91.99"), "EUR")}, DECLINE),
        (PrivateFacts(whole_amount_only=True), {"approved": Money(Decimal("92.01"), "EUR")}, ACCEPT),
        (PrivateFacts(), {"approved": Money(Decimal("1"), "EUR")}, ACCEPT),
        (PrivateFacts(approval_policy=AVS), {"approved": Money(Decimal("1"), "EUR")}, REVIEW),
        (PrivateFacts(approval_policy=AVS, whole_amount_only=True), {"approved": Money(Decimal(1), "EUR")}, DECLINE),
        (PrivateFacts(approval_policy=AVS, whole_amount_only=True), {}, REVIEW),
        (PrivateFacts(whole_amount_only=True), {"approved": Money(Decimal(1), "EUR"), "code": "800.100.153"}, ACCEPT),
    ],
)
def test_an_approval_meets_the_rules_of_its_payment(
    facts: PrivateFacts, reply: dict[str, Any], outcome: RiskOutcome
) -> None:
    row = Payment(payment_type="DB", amount=Decimal(92), currency="EUR", answer=facts.as_json())
    given = {"code": "000.100.112", "approved": Money(Decimal(92), "EUR"), **reply}
    assert evaluate_approval(row, AcquirerReply(**given)).outcome is outcome


def test_what_declines_goes_before_the_amount_and_both_say_why() -> None:
    facts = PrivateFacts(approval_policy=AVS, whole_amount_only=True)
    row = Payment(payment_type="DB", amount=Decimal(92), currency="EUR", answer=facts.as_json())
    part = {"code": "000.100.112", "approved": Money(Decimal(1), "EUR")}
    both = evaluate_approval(row, AcquirerReply(avs="N", **part))  # type: ignore[arg-type]
    assert (both.reasons[0].rule, both.reasons[0].verdict) == ("avs", "decline")
    found = evaluate_approval(row, AcquirerReply(**part))  # type: ignore[arg-type]
    assert (found.code, found.reasons[0].why) == ("800.100.155", "approved for 1.00 of 92.00 EUR")


@pytest.mark.parametrize(
    ("code", "policy", "expected"),
    [
        ("000.100.112", AVS, "000.400.010"),
        ("000.400.090", AVS, "000.400.090"),
        ("800.100.153", AVS, "800.100.153"),
        ("000.100.112", ApprovalPolicy(avs={"N": "decline"}), "000.100.112"),
        ("000.100.112", None, "000.100.112"),
    ],
)
def test_an_approval_has_the_code_of_its_review_but_an_acquirers_own_stays(
    code: str, policy: ApprovalPolicy | None, expected: str
) -> None:
    answer = PrivateFacts(approval_policy=policy).as_json()
    row = Payment(payment_type="DB", amount=Decimal(92), currency="EUR", answer=answer)
    reply = AcquirerReply(code=code, approved=Money(Decimal(92), "EUR"), details={"a": "b"})
    found = apply_review_code(row, reply)
    assert (found.code, found.details, found.approved) == (expected, {"a": "b"}, reply.approved)

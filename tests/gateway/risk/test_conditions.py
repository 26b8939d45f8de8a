"""Rules as a table: each kind holds and does not hold, declines with its code, and refuses what it cannot read.

Source: Part B, Risk; Part A, Customer, Bank account; decisions, section 3.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.core import document as d
from gateway.core import result_codes
from gateway.core.money import Money
from gateway.risk import fields
from gateway.risk.conditions import CONDITION_KINDS, RiskSignals, Velocity, VelocityCounts
from gateway.risk.evaluation import (
    AVS_DECLINED_CODE,
    AVS_REVIEW_CODE,
    CVV_DECLINED_CODE,
    CVV_REVIEW_CODE,
    RiskOutcome,
    clamp_score,
    evaluate_acquirer_checks,
    evaluate_rules,
    format_score,
)
from gateway.risk.fields import RiskSubject, build_risk_subject
from gateway.risk.rule_sets import RuleSet, parse_rule_set, rule_set_from_document

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SENT = {
    "customer.email": "Jane@Mail.Example",
    "customer.ip": "192.0.2.7",
    "customer.phone": "+49 (0) 89 123",
    "customer.mobile": "0049 170 1",
    "customer.status": "NEW",
    "billing.country": "DE",
    "shipping.country": "FR",
    "risk.parameters[loyalty]": "gold",
    "risk.parameters[basket.items]": "12",
}


def subject(sent: dict[str, str] | None = None, amount: str = "92.00", **more: Any) -> RiskSubject:
    values = {"money": Money.parse(amount, "EUR"), "brand": "VISA", "payment_type": "DB", "now": NOON, **more}
    return build_risk_subject(SENT if sent is None else sent, **values)


def a_set(*rules: dict[str, Any], **more: Any) -> RuleSet:
    return rule_set_from_document({"key": "TEST", "rules": list(rules), **more})


def rule(then: dict[str, Any] | None = None, name: str = "rule", **when: Any) -> dict[str, Any]:
    return {"name": name, "when": when, "then": then or {"verdict": "decline"}}


IP_10M = Velocity(per="customer.ip", within=timedelta(minutes=10))
EUR_1D = Velocity(per="customer.email", within=timedelta(days=1), currency="EUR")
USD_1D = Velocity(per="customer.email", within=timedelta(days=1), currency="USD")
COUNTED = RiskSignals(
    lists=frozenset({"bad-emails"}),
    counts={
        IP_10M: VelocityCounts(payments=6, declines=3, volume=Decimal("10")),
        EUR_1D: VelocityCounts(payments=2, volume=Decimal("1000.01")),
        USD_1D: VelocityCounts(payments=2, volume=Decimal("1000.01")),
    },
)

# (what is written, what its code is when it holds; "" when it does not)
CASES: list[tuple[dict[str, Any], str]] = [
    ({"kind": "list", "field": "customer.email", "list": "bad-emails"}, "800.300.200"),
    ({"kind": "list", "field": "customer.email", "list": "others"}, ""),
    ({"kind": "list", "field": "customer.email", "list": "bad-emails", "outside": True}, ""),
    ({"kind": "list", "field": "customer.email", "list": "others", "outside": True}, "800.300.200"),
    ({"kind": "list", "field": "customer.email", "values": ["JANE@mail.example"]}, "800.300.200"),
    ({"kind": "list", "field": "customer.emailDomain", "values": ["mail.example"]}, "800.300.200"),
    ({"kind": "list", "field": "customer.ip", "values": ["192.0.2.0/24"]}, "800.300.301"),
    ({"kind": "list", "field": "customer.ip", "values": ["192.0.2.7/32"]}, "800.300.301"),
    ({"kind": "list", "field": "customer.ip", "values": ["::ffff:192.0.2.7"]}, "800.300.301"),
    ({"kind": "list", "field": "customer.ip", "values": ["198.51.100.0/24", "2001:db8::/32"]}, ""),
    ({"kind": "list", "field": "customer.phone", "values": ["+49 170-1"]}, "800.300.101"),
    ({"kind": "list", "field": "customer.phone", "values": ["170"]}, ""),
    ({"kind": "list", "field": "billing.country", "values": ["DE", "AT"]}, "800.300.102"),
    ({"kind": "list", "field": "customer.deviceId", "values": ["x"], "outside": True}, ""),
    ({"kind": "list", "field": "risk.parameters[loyalty]", "values": ["gold"]}, "800.300.101"),
    ({"kind": "velocity", "per": "customer.ip", "count": "payments", "over": 5, "within": "10m"}, "800.120.102"),
    ({"kind": "velocity", "per": "customer.ip", "count": "payments", "over": 6, "within": "10m"}, ""),
    ({"kind": "velocity", "per": "customer.ip", "count": "declines", "over": 2, "within": "600s"}, "800.120.102"),
    ({"kind": "velocity", "per": "customer.ip", "count": "payments", "over": 5, "within": "11m"}, ""),
    (
        {"kind": "velocity", "per": "customer.email", "count": "volume", "over": "1000.00", "within": "1d",
         "currency": "EUR"},
        "800.120.203",
    ),
    (
        {"kind": "velocity", "per": "customer.email", "count": "volume", "over": "1000.01", "within": "1d",
         "currency": "EUR"},
        "",
    ),
    (
        {"kind": "velocity", "per": "customer.email", "count": "volume", "over": "1000.00", "within": "1d",
         "currency": "USD"},
        "",
    ),
    ({"kind": "amount", "currency": "EUR", "over": "91.99"}, "800.120.200"),
    ({"kind": "amount", "currency": "EUR", "over": "92.00"}, ""),
    ({"kind": "amount", "currency": "EUR", "under": "92.01"}, "800.120.200"),
    ({"kind": "amount", "currency": "USD", "over": "1.00"}, ""),
    ({"kind": "countries", "differ": ["billing.country", "shipping.country"]}, "100.400.021"),
    ({"kind": "countries", "differ": ["billing.country", "bankAccount.country"]}, ""),
    ({"kind": "disposable-email"}, ""),
    ({"kind": "disposable-email", "also": ["mail.example"]}, "800.300.200"),
    ({"kind": "disposable-email", "also": ["example"]}, "800.300.200"),
    ({"kind": "time", "from": "11:00", "to": "13:00"}, "100.400.319"),
    ({"kind": "time", "from": "12:01", "to": "13:00"}, ""),
    ({"kind": "time", "from": "22:00", "to": "13:00"}, "100.400.319"),
    ({"kind": "time", "from": "22:00", "to": "06:00"}, ""),
    ({"kind": "time", "from": "12:00", "to": "13:00"}, "100.400.319"),
    ({"kind": "time", "from": "10:00", "to": "12:00"}, ""),
    ({"kind": "time", "from": "12:00", "to": "06:00"}, "100.400.319"),
    ({"kind": "time", "from": "12:01", "to": "06:00"}, ""),
    ({"kind": "time", "from": "22:00", "to": "12:00"}, ""),
    ({"kind": "time", "from": "22:00", "to": "12:01"}, "100.400.319"),
    ({"kind": "time", "from": "23:00", "to": "00:00", "zone": "Pacific/Auckland"}, ""),
    ({"kind": "time", "from": "01:00", "to": "02:00", "zone": "Pacific/Auckland"}, "100.400.319"),
    ({"kind": "time", "from": "01:00", "to": "02:00", "zone": "Pacific/Auckland", "days": ["SAT"]}, ""),
    ({"kind": "time", "from": "01:00", "to": "02:00", "zone": "Pacific/Auckland", "days": ["SUN"]}, "100.400.319"),
    ({"kind": "field", "field": "customer.status", "is": ["NEW"]}, "100.400.319"),
    ({"kind": "field", "field": "customer.status", "not": ["NEW"]}, ""),
    ({"kind": "field", "field": "customer.category", "missing": True}, "100.400.319"),
    ({"kind": "field", "field": "customer.status", "missing": True}, ""),
    ({"kind": "field", "field": "risk.parameters[loyalty]", "is": ["gold", "silver"]}, "100.400.319"),
    ({"kind": "field", "field": "risk.parameters[basket.items]", "over": 11}, "100.400.319"),
    ({"kind": "field", "field": "risk.parameters[basket.items]", "over": "12.5"}, ""),
    ({"kind": "field", "field": "risk.parameters[basket.items]", "under": 13}, "100.400.319"),
    ({"kind": "field", "field": "risk.parameters[loyalty]", "over": 1}, ""),
    ({"kind": "field", "field": "brand", "is": ["VISA"]}, "100.400.319"),
]  # fmt: skip


@pytest.mark.parametrize(("when", "code"), CASES, ids=str)
def test_a_rule_holds_when_its_condition_does_and_declines_with_its_code(when: dict[str, Any], code: str) -> None:
    """Part B, Risk; the codes are docs/risk.md's table."""
    verdict = evaluate_rules(a_set(rule(**when)), subject(), COUNTED)
    assert (verdict.outcome, verdict.code) == ((RiskOutcome.DECLINE, code) if code else (RiskOutcome.ACCEPT, ""))


def test_every_kind_is_tried_holding_and_not() -> None:
    """Completeness."""
    assert {when["kind"] for when, code in CASES if code} == set(CONDITION_KINDS)
    assert {when["kind"] for when, code in CASES if not code} == set(CONDITION_KINDS)


@pytest.mark.parametrize("kind", CONDITION_KINDS)
def test_the_example_of_a_kind_is_right(kind: str) -> None:
    """The docs show it."""
    assert a_set(rule(kind=kind, **CONDITION_KINDS[kind].example)).rules[0].then.code in result_codes.RESULT_CODES


def test_reasons_never_repeat_what_the_shopper_sent() -> None:
    """Privacy: reasons are kept and shown."""
    rules = [rule(then={"score": 1}, name=f"r{n}", **when) for n, (when, code) in enumerate(CASES)]
    verdict = evaluate_rules(a_set(*rules), subject(), COUNTED)
    assert len(verdict.reasons) == sum(bool(code) for _, code in CASES)
    told = " ".join(reason.why for reason in verdict.reasons).lower()
    for value in ("jane@", "192.0.2.7", "490891", "gold", "mail.example"):
        assert value not in told


def test_conditions_of_one_rule_must_all_hold() -> None:
    """A list of conditions."""
    new, dear = {"kind": "field", "field": "customer.status", "is": ["NEW"]}, {"kind": "amount", "currency": "EUR"}
    for over, outcome in (("50.00", RiskOutcome.DECLINE), ("500.00", RiskOutcome.ACCEPT)):
        both = {"name": "both", "when": [new, dear | {"over": over}], "then": {"verdict": "decline"}}
        assert evaluate_rules(a_set(both), subject(), RiskSignals()).outcome is outcome


ALWAYS = {"kind": "field", "field": "brand", "is": ["VISA"]}


@pytest.mark.parametrize(
    ("thens", "more", "expected"),
    [
        ([{"verdict": "decline"}, {"verdict": "allow"}], {}, (RiskOutcome.ACCEPT, "")),
        (
            [{"verdict": "review"}, {"verdict": "decline", "code": "100.400.100"}],
            {},
            (RiskOutcome.DECLINE, "100.400.100"),
        ),
        ([{"verdict": "review"}], {}, (RiskOutcome.REVIEW, "000.400.000")),
        ([{"verdict": "review", "code": "000.400.090"}], {}, (RiskOutcome.REVIEW, "000.400.090")),
        ([{"score": 49}], {"reviewFrom": 50, "declineFrom": 80}, (RiskOutcome.ACCEPT, "")),
        ([{"score": 49}, {"score": 1}], {"reviewFrom": 50, "declineFrom": 80}, (RiskOutcome.REVIEW, "000.400.000")),
        ([{"score": 80}], {"reviewFrom": 50, "declineFrom": 80}, (RiskOutcome.DECLINE, "100.400.319")),
        ([{"score": -10}], {"start": 60, "reviewFrom": 50}, (RiskOutcome.REVIEW, "000.400.000")),
        ([{"score": 80}, {"verdict": "allow"}], {"declineFrom": 80}, (RiskOutcome.ACCEPT, "")),
    ],
)
def test_allowing_goes_before_declining_and_declining_before_review(
    thens: list[dict[str, Any]], more: dict[str, Any], expected: tuple[RiskOutcome, str]
) -> None:
    """The order of precedence."""
    rules = [rule(then=then, name=f"r{n}", **ALWAYS) for n, then in enumerate(thens)]
    verdict = evaluate_rules(a_set(*rules, **more), subject(), RiskSignals())
    assert (verdict.outcome, verdict.code) == expected


@settings(deadline=None)
@given(st.lists(st.integers(-99_999, 99_999), max_size=30), st.integers(-99_999, 99_999))
def test_a_score_stays_in_its_range_and_is_the_same_every_time(points: list[int], start: int) -> None:
    """Part B, Payment response: risk.score, -99999 to +99999."""
    rules = a_set(*(rule(then={"score": n}, name=f"r{i}", **ALWAYS) for i, n in enumerate(points)), start=start)
    verdicts = {evaluate_rules(rules, subject(), RiskSignals()) for _ in range(2)}
    assert len(verdicts) == 1
    score = verdicts.pop().score
    assert score == max(-99_999, min(99_999, start + sum(points)))
    assert score is not None
    text = format_score(score)
    assert (len(text), text[0] in "+-", text[1:].isdecimal(), int(text)) == (6, True, True, score)


@pytest.mark.parametrize(("score", "text"), [(12, "+00012"), (-300, "-00300"), (0, "+00000"), (99_999, "+99999")])
def test_a_score_is_written_with_its_sign_and_five_digits(score: int, text: str) -> None:
    """Part B, Payment response: risk.score."""
    assert format_score(score) == text
    assert clamp_score(10**9) == 99_999


WHEN = {"kind": "list", "field": "customer.email", "list": "bad"}
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"rules": []}, "key"),
    ({"key": "K", "rule": []}, "rule"),
    ({"key": "K", "start": 100_000}, "start"),
    ({"key": "K", "reviewFrom": 5, "declineFrom": 5}, "reviewFrom"),
    ({"key": "K", "rules": [{"when": WHEN, "then": {"score": 1}}]}, "rules[0].name"),
    ({"key": "K", "rules": [{"name": "a", "when": {"kind": "lisst"}, "then": {"score": 1}}]}, "rules[0].when.kind"),
    ({"key": "K", "rules": [{"name": "a", "when": [], "then": {"score": 1}}]}, "rules[0].when"),
    ({"key": "K", "rules": [{"name": "a", "when": WHEN, "then": {}}]}, "rules[0].then"),
    ({"key": "K", "rules": [{"name": "a", "when": WHEN, "then": {"score": 1, "verdict": "review"}}]}, "rules[0].then"),
    ({"key": "K", "rules": [{"name": "a", "when": WHEN, "then": {"score": "1"}}]}, "rules[0].then.score"),
    ({"key": "K", "rules": [{"name": "a", "when": WHEN, "then": {"verdict": "decline", "code": "000.100.110"}}]},
     "rules[0].then.code"),
    ({"key": "K", "rules": [{"name": "a", "when": WHEN, "then": {"verdict": "review", "code": "800.300.200"}}]},
     "rules[0].then.code"),
    ({"key": "K", "rules": [{"name": "a", "when": WHEN, "then": {"score": 1, "code": "800.300.200"}}]},
     "rules[0].then.code"),
    ({"key": "K", "rules": [{"name": "a", "when": WHEN, "then": {"verdict": "decline", "code": "800.300.20"}}]},
     "rules[0].then.code"),
    ({"key": "K", "rules": [{"name": "a", "when": WHEN, "then": {"verdict": "decline", "code": 800}}]},
     "rules[0].then.code"),
    ({"key": "K", "rules": [{"name": "a", "when": WHEN, "then": {"score": 1}}] * 2}, "rules[1].name"),
    ({"key": "K", "avs": {"X": "decline"}}, "avs.X"),
    ({"key": "K", "avs": {"N": "refuse"}}, "avs.N"),
    ({"key": "K", "cvv": {"NN": "decline"}}, "cvv.NN"),
]  # fmt: skip


@pytest.mark.parametrize(("document", "path"), FAULTS, ids=str)
def test_a_set_that_is_wrong_is_refused_with_the_path(document: dict[str, Any], path: str) -> None:
    """Validated before it is kept."""
    assert path in {fault.path for fault in d.parse_document(parse_rule_set, document)[1]}


def test_a_code_that_is_none_is_told_with_the_one_that_was_meant() -> None:
    effect = {"verdict": "decline", "code": "800.300.20"}
    document = {"key": "K", "rules": [{"name": "a", "when": WHEN, "then": effect}]}
    (fault,) = d.parse_document(parse_rule_set, document)[1]
    assert "result code" in fault.message
    assert "800.300.200" in fault.message


WRONG_CONDITIONS: list[tuple[dict[str, Any], str]] = [
    ({"kind": "list", "field": "customer.email"}, "when"),
    ({"kind": "list", "field": "customer.email", "list": "a", "values": ["b@c"]}, "when"),
    ({"kind": "list", "field": "customer.ip", "values": ["300.0.0.1"]}, "when.values[0]"),
    ({"kind": "list", "field": "card.bin", "values": ["42000000"]}, "when.values[0]"),
    ({"kind": "list", "field": "account", "values": ["4200000000000000"]}, "when.values"),
    ({"kind": "list", "field": "billing.country", "values": ["Germany"]}, "when.values[0]"),
    ({"kind": "velocity", "per": "billing.country", "count": "payments", "over": 1, "within": "1h"}, "when.per"),
    ({"kind": "velocity", "per": "customer.ip", "count": "payments", "over": "1", "within": "1h"}, "when.over"),
    ({"kind": "velocity", "per": "customer.ip", "count": "volume", "over": "1.00", "within": "1h"}, "when.currency"),
    ({"kind": "velocity", "per": "customer.ip", "count": "payments", "over": 1, "within": "31d"}, "when.within"),
    (
        {
            "kind": "velocity",
            "per": "customer.ip",
            "count": "payments",
            "over": 1,
            "within": "1h",
            "currency": "EUR",
        },
        "when.currency",
    ),
    ({"kind": "amount", "currency": "EUR"}, "when"),
    ({"kind": "amount", "currency": "EUR", "over": 5}, "when.over"),
    ({"kind": "countries", "differ": ["billing.country"]}, "when.differ"),
    ({"kind": "countries", "differ": ["billing.country", "billing.country"]}, "when.differ[1]"),
    ({"kind": "time", "from": "24:00", "to": "1:00"}, "when.from"),
    ({"kind": "time", "from": "10:00", "to": "11:00", "zone": "Mars/Olympus"}, "when.zone"),
    ({"kind": "field", "field": "brand"}, "when"),
    ({"kind": "field", "field": "brand", "is": ["VISA"], "over": 5}, "when"),
    ({"kind": "field", "field": "brand", "over": "NaN"}, "when.over"),
    ({"kind": "field", "field": "brand", "over": True}, "when.over"),
    ({"kind": "field", "field": "brand", "over": 1.5}, "when.over"),
    ({"kind": "field", "field": "customer.mail", "is": ["x"]}, "when.field"),
]


@pytest.mark.parametrize(("when", "path"), WRONG_CONDITIONS, ids=str)
def test_a_condition_that_is_wrong_is_refused_with_the_path(when: dict[str, Any], path: str) -> None:
    """Validated before it is kept."""
    document = {"key": "K", "rules": [{"name": "a", "when": when, "then": {"score": 1}}]}
    assert f"rules[0].{path}" in {fault.path for fault in d.parse_document(parse_rule_set, document)[1]}


@pytest.mark.parametrize(("count", "refused"), [(1, False), (1000, False), (1001, True)])
@pytest.mark.parametrize("member", ["values", "is", "not"])
def test_a_condition_names_at_most_a_thousand_values(member: str, count: int, refused: bool) -> None:
    """The bound of a rule set's size, on both sides."""
    kind = {"kind": "list"} if member == "values" else {"kind": "field"}
    when = kind | {"field": "customer.email", member: [f"{number}@mail.example" for number in range(count)]}
    document = {"key": "K", "rules": [{"name": "a", "when": when, "then": {"score": 1}}]}
    paths = {fault.path for fault in d.parse_document(parse_rule_set, document)[1]}
    assert paths == ({f"rules[0].when.{member}"} if refused else set())


@pytest.mark.parametrize("name", fields.EXCLUDED_FIELDS)
@pytest.mark.parametrize("kind", [{"kind": "field", "missing": False}, {"kind": "list", "values": ["x"]}])
def test_no_rule_can_look_at_the_mandate_or_the_due_date(name: str, kind: dict[str, Any]) -> None:
    """Part A, Bank account: they are excluded from risk checks (A18.6)."""
    document = {"key": "K", "rules": [{"name": "a", "when": kind | {"field": name}, "then": {"score": 1}}]}
    told = [fault.message for fault in d.parse_document(parse_rule_set, document)[1]]
    assert any("left out of risk checks" in message for message in told)
    velocity = {"kind": "velocity", "per": name, "count": "payments", "over": 1, "within": "1h"}
    assert d.parse_document(
        parse_rule_set, {"key": "K", "rules": [{"name": "a", "when": velocity, "then": {"score": 1}}]}
    )[1]


def test_the_mandate_and_the_due_date_are_not_even_in_the_subject() -> None:
    """Part A, Bank account (A18.6)."""
    bank = {"bankAccount.holder": "Jane Jones", "bankAccount.country": "DE"}
    hidden = dict.fromkeys(fields.EXCLUDED_FIELDS, "hidden")
    assert subject(bank | hidden) == subject(bank)
    assert not set(fields.EXCLUDED_FIELDS) & {name for row in fields.RISK_FIELDS.values() for name in row.sources}


def test_risk_amount_brand_and_order_time_go_before_the_payments_own() -> None:
    """B16.5, B16.6; Part B, Risk."""
    found = subject(
        {"risk.amount": "500.00", "risk.brand": "MASTER", "risk.orderTimestamp": "2026-01-02 03:04:05"},
    )
    assert (found.money, found.of("brand"), found.at) == (
        Money.parse("500.00", "EUR"),
        ("MASTER",),
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    )
    own = subject({})
    assert (own.money, own.of("brand"), own.at) == (Money.parse("92.00", "EUR"), ("VISA",), NOON)


@pytest.mark.parametrize(
    ("avs", "cvv", "expected"),
    [
        ("F", "M", (RiskOutcome.ACCEPT, "")),
        ("", "", (RiskOutcome.ACCEPT, "")),
        ("Z", "M", (RiskOutcome.REVIEW, AVS_REVIEW_CODE)),
        ("F", "P", (RiskOutcome.REVIEW, CVV_REVIEW_CODE)),
        ("Z", "P", (RiskOutcome.REVIEW, AVS_REVIEW_CODE)),
        ("N", "P", (RiskOutcome.DECLINE, AVS_DECLINED_CODE)),
        ("Z", "N", (RiskOutcome.DECLINE, CVV_DECLINED_CODE)),
        ("N", "N", (RiskOutcome.DECLINE, AVS_DECLINED_CODE)),
    ],
)
def test_avs_and_cvv_answers_lead_where_the_policy_says(avs: str, cvv: str, expected: tuple[RiskOutcome, str]) -> None:
    """Part B, Payment response: avsResponse, cvvResponse."""
    policy = a_set(avs={"N": "decline", "Z": "review"}, cvv={"N": "decline", "P": "review", "M": "accept"})
    verdict = evaluate_acquirer_checks(policy, avs, cvv)
    assert (verdict.outcome, verdict.code) == expected


@pytest.mark.parametrize("code", [AVS_REVIEW_CODE, CVV_REVIEW_CODE, AVS_DECLINED_CODE, CVV_DECLINED_CODE])
def test_the_codes_are_in_the_table_and_mean_what_happens(code: str) -> None:
    """Decisions, section 3."""
    assert result_codes.is_review(code) == (code in (AVS_REVIEW_CODE, CVV_REVIEW_CODE))
    assert result_codes.is_approved(code) == result_codes.is_review(code)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_odd_values_are_compared_and_never_break_a_rule(value: str) -> None:
    """Accepted values are of any kind."""
    sent = {"customer.email": value, "customer.ip": value, "customer.phone": value, "risk.parameters[loyalty]": value}
    rules = [rule(then={"score": 1}, name=f"r{n}", **when) for n, (when, _) in enumerate(CASES)]
    found = subject({name: text for name, text in sent.items() if text})
    evaluate_rules(a_set(*rules), found, COUNTED)
    for one in found.of("customer.ip"):
        assert one in fields.list_entry_candidates("customer.ip", one)

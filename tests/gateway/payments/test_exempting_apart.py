"""Each condition of exemptions by rule by itself: what may be exempted, what is decided about, what counts as applied.

Source: docs/decisions/0105; EU 2018/389, articles 13 and 16.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.connectors.means import Card
from gateway.connectors.routing import CONNECTORS
from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import Channel, Payment
from gateway.payments import exempting
from gateway.payments.exempting import (
    build_exemption_facts,
    is_exemption_possible,
    list_asked_parameters,
    loses_soft_declines,
)
from gateway.payments.exemption_counts import _is_applied, _was_challenged, add_completion_writes
from gateway.payments.stored_answer import ApprovalPolicy, PrivateFacts
from gateway.threeds.exemption_rules import (
    CardCount,
    Exemption,
    ExemptionDecision,
    ExemptionStage,
    StageChoice,
    parse_exemption_rules,
)


def payment(**values: Any) -> Payment:
    return Payment(**{
        "id": UUID(int=1), "payment_type": "DB", "amount": Decimal(12), "currency": "EUR", "answer": {}, **values,
    })  # fmt: skip


@pytest.mark.parametrize(
    ("of_payment", "values", "possible"),
    [
        ({}, {}, True),
        ({"payment_type": "PA"}, {}, True),
        ({"payment_type": "RG"}, {}, False),
        ({"payment_type": "CD"}, {}, False),
        ({"amount": Decimal("0.01")}, {}, True),
        ({"amount": Decimal(0)}, {}, False),
        ({}, {"threeDSecure.challengeIndicator": "01"}, False),
        ({}, {"threeDSecure.exemptionFlag": "01"}, False),
        ({}, {"threeDSecure.challengeMandatedIndicator": "N"}, False),
        ({}, {"createRegistration": "true"}, False),
        ({}, {"createRegistration": "false"}, True),
        ({}, {"standingInstruction.mode": "INITIAL"}, False),
        ({}, {"standingInstruction.mode": "REPEATED"}, True),
        ({}, {"threeDSecure.channel": "03"}, False),
        ({}, {"threeDSecure.deviceInfo": "app"}, True),
        ({}, {"threeDSecure.npa": "true"}, False),
        ({}, {"threeDSecure.npa": "false"}, True),
    ],
)
def test_what_the_shopper_pays_now_may_be_exempted(
    of_payment: dict[str, Any], values: dict[str, str], possible: bool
) -> None:
    assert is_exemption_possible(payment(**of_payment), values) is possible


@pytest.mark.parametrize(
    ("values", "money"),
    [
        ({}, Money(Decimal(12), "EUR")),
        ({"threeDSecure.amount": "20.00"}, Money(Decimal(20), "EUR")),
        ({"threeDSecure.amount": "5.00"}, Money(Decimal(12), "EUR")),
        ({"threeDSecure.currency": "USD"}, None),
        ({"threeDSecure.currency": "EUR", "risk.amount": "13.00"}, Money(Decimal(13), "EUR")),
    ],
)
def test_limits_are_compared_with_the_larger_of_what_is_paid_and_authenticated(
    values: dict[str, str], money: Money | None
) -> None:
    count = CardCount(payments=3)
    found = build_exemption_facts(payment(), values, "42000000", count)
    assert (found.money, found.digits, found.card, found.stored, found.score) == (money, "42000000", count, False, None)
    assert build_exemption_facts(payment(registration=UUID(int=2)), values, "4", count).stored


@pytest.mark.parametrize(
    ("shown", "policy", "score"),
    [
        ({}, None, None),
        ({"risk": {}}, None, None),
        ({"risk": {"score": "0"}}, None, 0),
        ({"risk": {"score": "70"}}, None, 70),
        ({"risk": {"score": "70"}}, ApprovalPolicy(avs={"N": "review"}), 70),
        ({"risk": {"score": "70"}}, ApprovalPolicy(review="000.400.010"), None),
    ],
)
def test_a_score_is_of_rules_that_accepted_the_payment(
    shown: dict[str, Any], policy: ApprovalPolicy | None, score: int | None
) -> None:
    row = payment(answer={"facts": shown, **PrivateFacts(approval_policy=policy).as_json()})
    assert build_exemption_facts(row, {}, "4", CardCount()).score == score


@pytest.mark.parametrize(
    ("asked", "shown", "parameters"),
    [
        ("", {"exemptionFlag": "01"}, {}),
        ("LOW_VALUE", {}, {}),
        ("LOW_VALUE", {"exemptionFlag": "01"}, {"threeDSecure.exemptionFlag": "01"}),
        (
            "LOW_VALUE",
            {"exemptionFlag": "01", "challengeIndicator": "02", "eci": "07"},
            {"threeDSecure.exemptionFlag": "01", "threeDSecure.challengeIndicator": "02"},
        ),
        ("TRUSTED_MERCHANT", {"challengeIndicator": "08"}, {"threeDSecure.challengeIndicator": "08"}),
        ("TRUSTED_MERCHANT", {}, {}),
    ],
)
def test_the_acquirer_is_asked_for_what_was_asked_for_and_is_shown(
    asked: str, shown: dict[str, str], parameters: dict[str, str]
) -> None:
    row = payment(answer={"facts": {"threeDSecure": shown}, **PrivateFacts(exemption=asked).as_json()})
    assert list_asked_parameters(row) == parameters


@pytest.mark.parametrize("policy", ["decline", "challenge"])
@pytest.mark.parametrize(
    ("three_d_secure", "rules", "loses"),
    [
        (True, {"lowValue": True, "askedAt": "authorization"}, True),
        (True, {"lowValue": True, "askedAt": "authentication"}, False),
        (True, {"lowValue": True, "askedAt": "better"}, False),
        (True, {"askedAt": "authorization"}, False),
        (False, {"lowValue": True, "askedAt": "authorization"}, False),
    ],
)
def test_a_channel_that_asks_at_the_authorization_and_challenges_nobody_loses_soft_declines(
    monkeypatch: pytest.MonkeyPatch, policy: str, three_d_secure: bool, rules: dict[str, Any], loses: bool
) -> None:
    monkeypatch.setattr(
        exempting.server, "load_threeds_configuration", lambda channel: SimpleNamespace(on_soft_decline=policy)
    )
    channel = Channel(three_d_secure=three_d_secure, exemptions=rules)
    assert loses_soft_declines(channel) is (loses and policy != "challenge")


# --- counts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shown", "means", "challenged"),
    [
        ({"flow": "challenge", "authenticationStatus": "Y"}, "card", True),
        ({"flow": "decoupled", "authenticationStatus": "Y"}, "card", True),
        ({"flow": "frictionless", "authenticationStatus": "Y"}, "card", False),
        ({"flow": "challenge", "authenticationStatus": "A"}, "card", False),
        ({"flow": "challenge", "authenticationStatus": "N"}, "card", False),
        ({"flow": "challenge"}, "card", False),
        ({"authenticationStatus": "Y"}, "card", False),
        ({"flow": "challenge", "authenticationStatus": "Y"}, "tokenAccount", False),
        ({}, "card", False),
    ],
)
def test_a_passed_challenge_of_a_card_is_a_strong_authentication(
    shown: dict[str, str], means: str, challenged: bool
) -> None:
    assert _was_challenged(payment(means=means, answer={"facts": {"threeDSecure": shown}})) is challenged


@pytest.mark.parametrize(
    ("status", "shown", "applied"),
    [
        ("APPROVED", {"exemptionFlag": "01"}, True),
        ("APPROVED", {"exemptionFlag": "01", "authenticationStatus": "I"}, True),
        ("APPROVED", {"exemptionFlag": "01", "authenticationStatus": "Y"}, False),
        ("APPROVED", {"exemptionFlag": "01", "authenticationStatus": "A"}, False),
        ("APPROVED", {}, False),
        ("DECLINED", {"exemptionFlag": "01"}, False),
    ],
)
def test_an_exemption_is_applied_where_the_issuer_did_not_authenticate_instead(
    status: str, shown: dict[str, str], applied: bool
) -> None:
    assert _is_applied(payment(status=status, answer={"facts": {"threeDSecure": shown}})) is applied


CHALLENGED = {"flow": "challenge", "authenticationStatus": "Y"}
LOW, TRUSTED = {"lowValue": True}, {"trusted": True}


@pytest.mark.parametrize(
    ("status", "rules", "asked", "shown", "statement"),
    [
        ("APPROVED", TRUSTED, "", CHALLENGED, "_RESET"),
        ("DECLINED", TRUSTED, "", CHALLENGED, "_RESET"),
        ("APPROVED", LOW, "", CHALLENGED, "_RESET_COUNTED"),
        ("APPROVED", TRUSTED | LOW, "", CHALLENGED, "_RESET"),
        ("APPROVED", {"corporateBins": ["4"]}, "", CHALLENGED, None),
        ("APPROVED", {}, "", CHALLENGED, None),
        ("PENDING", TRUSTED, "", CHALLENGED, None),
        ("IN_DOUBT", LOW, "LOW_VALUE", {}, None),
        ("DECLINED", LOW, "LOW_VALUE", {"exemptionFlag": "01"}, "_GIVE_BACK"),
        ("APPROVED", LOW, "LOW_VALUE", {}, "_GIVE_BACK"),
        ("APPROVED", LOW, "LOW_VALUE", {"exemptionFlag": "01"}, None),
        ("DECLINED", LOW, "LOW_RISK", {}, None),
        ("DECLINED", LOW, "", {}, None),
    ],
)
def test_a_completion_sets_back_or_gives_back_what_its_card_has_used(
    status: str, rules: dict[str, Any], asked: str, shown: dict[str, str], statement: str | None
) -> None:
    row = payment(
        status=status, means="card", means_fingerprint=b"key", merchant_id=UUID(int=2),
        channel=Channel(exemptions=rules),
        answer={"facts": {"threeDSecure": shown}, **PrivateFacts(exemption=asked).as_json()},
    )  # fmt: skip
    parts: list[Any] = []
    add_completion_writes(SimpleNamespace(add_part=lambda *part: parts.append(part)), row)  # type: ignore[arg-type]
    columns = (UUID(int=2), b"key")
    values = (row.id, *columns) if statement == "_GIVE_BACK" else columns
    expected = getattr(exempting.exemption_counts, statement) if statement else None
    assert parts == ([(expected, values)] if statement else [])


# --- asking -----------------------------------------------------------------------------------------------------------

CARD = Card(number=Secret("4200001234567890"), expiry_month="05", expiry_year="2034")
AT = datetime(2033, 5, 6, 7, tzinfo=UTC)
AUTHORIZATION = StageChoice(stage=ExemptionStage.AUTHORIZATION, why="set")
AUTHENTICATION = StageChoice(stage=ExemptionStage.AUTHENTICATION, why="measured")
CHANNEL, MERCHANT = UUID(int=11), UUID(int=12)


class Asked:
    """What a payment's exemption read and recorded. ``records``: whether each attempt is recorded, in order."""

    def __init__(self, patch: pytest.MonkeyPatch, *records: bool, choice: StageChoice = AUTHORIZATION) -> None:
        self.calls: list[Any] = []
        self.records = list(records)
        self.count = CardCount(payments=2, amount=Decimal(20), authentications=1)
        patch.setattr(exempting.exemption_counts, "read_card_count", self.taking("count", lambda: self.count))
        for name in ("record_counted_request", "record_request"):
            patch.setattr(exempting.exemption_counts, name, self.taking(name, lambda: self.records.pop(0)))
        patch.setattr(exempting, "_choose_stage", self.taking("choose", lambda: choice))

    def taking(self, name: str, answer: Any) -> Any:
        def take(*call: Any, **names: Any) -> Any:
            self.calls.append((name, call, names))
            return answer()

        return take

    def of(self, name: str) -> list[Any]:
        return [(call, names) for one, call, names in self.calls if one == name]


def asking(rules: dict[str, Any], **values: Any) -> Payment:
    return payment(
        channel=Channel(id=CHANNEL, exemptions=rules), merchant_id=MERCHANT, means_fingerprint=memoryview(b"key"),
        brand="VISA", connector="simulator", created_at=AT,
        answer={"kept": 1, "facts": {"risk": {"score": "7"}}}, **values,
    )  # fmt: skip


def ask(row: Payment, values: dict[str, str] | None = None, card: Card = CARD) -> exempting.AskedExemption:
    return exempting.ask_exemption(row, card, values or {})


@pytest.mark.parametrize(
    ("rules", "values"), [({}, {}), ({"lowValue": True}, {"threeDSecure.exemptionFlag": "01"})], ids=["none", "not now"]
)
def test_without_rules_or_for_what_is_never_exempted_nothing_is_read(
    monkeypatch: pytest.MonkeyPatch, rules: dict[str, Any], values: dict[str, str]
) -> None:
    asked = Asked(monkeypatch)
    assert ask(asking(rules), values) == exempting.NOT_EXEMPTED
    assert (asked.calls, exempting.NOT_EXEMPTED.skips, dict(exempting.NOT_EXEMPTED.parameters)) == ([], False, {})


@pytest.mark.parametrize(
    ("rules", "is_read"),
    [
        ({"lowValue": True}, True),
        ({"trusted": True}, True),
        ({"lowValue": True, "trusted": True}, True),
        ({"corporateBins": ["5"]}, False),
    ],
)
def test_a_cards_count_is_read_for_the_rules_that_compare_it(
    monkeypatch: pytest.MonkeyPatch, rules: dict[str, Any], is_read: bool
) -> None:
    asked = Asked(monkeypatch, True)
    ask(asking(rules))
    assert asked.of("count") == [((MERCHANT, b"key"), {})] * is_read


@pytest.mark.parametrize(
    ("digits", "fits"), [("42000012345", True), ("420000123456", False), ("4200001234", True), ("43", False)]
)
def test_cards_are_told_by_their_first_eleven_digits(monkeypatch: pytest.MonkeyPatch, digits: str, fits: bool) -> None:
    Asked(monkeypatch, True)
    found = ask(asking({"corporateBins": [digits]}))
    flags = {"threeDSecure.challengeIndicator": "02", "threeDSecure.exemptionFlag": "04"}
    assert (dict(found.parameters), found.skips) == ((flags, True) if fits else ({}, False))


@pytest.mark.parametrize(("choice", "skips"), [(AUTHORIZATION, True), (AUTHENTICATION, False)])
def test_what_is_asked_at_the_authorization_skips_the_authentication(
    monkeypatch: pytest.MonkeyPatch, choice: StageChoice, skips: bool
) -> None:
    asked = Asked(monkeypatch, True, choice=choice)
    row = asking({"lowValue": True})
    found = ask(row)
    assert found.skips is skips
    assert dict(found.parameters) == {"threeDSecure.challengeIndicator": "02", "threeDSecure.exemptionFlag": "01"}
    [((one, rules, exemption, brand), _)] = asked.of("choose")
    assert (one, rules.low_value, exemption, brand) == (row, True, "LOW_VALUE", "VISA")


def test_the_stage_is_chosen_by_the_network_of_the_card_in_a_wallet(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, True)
    row = asking({"lowValue": True})
    row.brand = "WALLET1"
    ask(row, card=replace(CARD, number=Secret("5454545454545454")))
    assert asked.of("choose")[0][0][3] == "MASTER"


def test_what_is_counted_is_recorded_with_what_answers_show_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Asked(monkeypatch, True)
    row = asking({"lowValue": True})
    ask(row)
    decision = ExemptionDecision(exemption=Exemption.LOW_VALUE, euros=Decimal("12.00"), limit=Decimal(30))
    answer = {
        "kept": 1,
        "facts": {"risk": {"score": "7"}, "threeDSecure": {"challengeIndicator": "02", "exemptionFlag": "01"}},
        **PrivateFacts(exemption="LOW_VALUE").as_json(),
    }
    [(call, names)] = asked.of("record_counted_request")
    assert call == (row, decision, AUTHORIZATION)
    assert names == {"answer": answer, "key": b"key", "at": AT}
    assert (row.answer, asked.of("record_request")) == (answer, [])


@pytest.mark.parametrize(
    ("rules", "exemption", "score", "shown"),
    [
        (
            {"fraudRate": "0.13", "maxScore": 50}, "LOW_RISK", 7,
            {"challengeIndicator": "05", "exemptionFlag": "02"},
        ),
        (
            {"corporateBins": ["4"], "fraudRate": "0.13", "maxScore": 50}, "SECURE_CORPORATE", None,
            {"challengeIndicator": "02", "exemptionFlag": "04"},
        ),
        ({"trusted": True}, "TRUSTED_MERCHANT", None, None),
    ],
    ids=["low risk", "corporate", "trusted"],
)  # fmt: skip
def test_what_is_not_counted_is_recorded_with_the_score_that_it_rests_on(
    monkeypatch: pytest.MonkeyPatch,
    rules: dict[str, Any],
    exemption: str,
    score: int | None,
    shown: dict[str, str] | None,
) -> None:
    """A trusted merchant is shown with the issuer's answer."""
    asked = Asked(monkeypatch, True)
    row = asking(rules)
    ask(row)
    [((one, decision, choice), names)] = asked.of("record_request")
    assert (one, decision.exemption, choice) == (row, exemption, AUTHORIZATION)
    facts = {"risk": {"score": "7"}} | ({"threeDSecure": shown} if shown else {})
    assert names == {
        "answer": {"kept": 1, "facts": facts, **PrivateFacts(exemption=exemption).as_json()}, "score": score, "at": AT,
    }  # fmt: skip
    assert row.answer == names["answer"]
    assert asked.of("record_counted_request") == []


def test_what_could_not_be_recorded_is_not_asked_for_and_the_next_one_is(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Another payment with the card took what was left."""
    asked = Asked(monkeypatch, False, True)
    row = asking({"lowValue": True, "trusted": True})
    found = ask(row)
    assert dict(found.parameters) == {"threeDSecure.challengeIndicator": "08"}
    assert [one for one, *_ in asked.calls] == [
        "count", "choose", "record_counted_request", "choose", "record_request",
    ]  # fmt: skip
    assert "LOW_VALUE" not in str(row.answer)
    assert caplog.text.count("exemption_not_recorded") == 1


def test_where_none_could_be_recorded_the_payment_is_not_exempted(monkeypatch: pytest.MonkeyPatch) -> None:
    Asked(monkeypatch, False, False)
    row = asking({"lowValue": True, "trusted": True})
    before = dict(row.answer)
    assert ask(row) == exempting.NOT_EXEMPTED
    assert row.answer == before


@pytest.mark.parametrize("policy", ["decline", "challenge"])
@pytest.mark.parametrize("is_claimed", [True, False])
@pytest.mark.parametrize("exemption", [Exemption.LOW_VALUE, Exemption.TRUSTED_MERCHANT])
@pytest.mark.parametrize("stage", ["better", "authorization", "authentication"])
def test_outcomes_are_looked_at_only_where_they_decide_the_stage(
    monkeypatch: pytest.MonkeyPatch, policy: str, is_claimed: bool, exemption: Exemption, stage: str
) -> None:
    calls: list[Any] = []

    def claims(*call: Any) -> bool:
        calls.append(call)
        return is_claimed

    def configuration(channel: Channel) -> SimpleNamespace:
        calls.append(channel.pk)
        return SimpleNamespace(on_soft_decline=policy)

    monkeypatch.setattr(exempting, "claims_exemption", claims)
    monkeypatch.setattr(exempting.server, "load_threeds_configuration", configuration)
    monkeypatch.setattr(exempting, "_read_outcomes", lambda *call: calls.append(call) or {"some": call})
    monkeypatch.setattr(exempting, "choose_stage", lambda *call, **names: calls.append((call, names)) or AUTHORIZATION)
    row = asking({"lowValue": True, "askedAt": stage})
    rules = parse_exemption_rules(row.channel.exemptions)
    assert rules is not None
    assert exempting._choose_stage(row, rules, exemption, "MASTER") is AUTHORIZATION
    looks = stage == "better" and is_claimed and exemption is Exemption.LOW_VALUE
    reads = looks and policy == "challenge"
    asked = (CHANNEL, exemption)
    chosen = (rules, exemption, row.id, {"some": asked} if reads else {})
    assert calls == [
        (CONNECTORS["simulator"], exemption, "MASTER"), *[CHANNEL] * looks, *[asked] * reads,
        (chosen, {"steps_up": reads, "is_claimed": is_claimed}),
    ]  # fmt: skip


def test_an_account_of_a_connector_that_is_gone_can_claim_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(exempting, "claims_exemption", lambda *call: seen.append(call) or True)
    row = asking({"lowValue": True})
    row.connector = "gone"
    rules = parse_exemption_rules(row.channel.exemptions)
    assert rules is not None
    assert exempting._choose_stage(row, rules, Exemption.LOW_VALUE, "VISA").why == "set"
    assert seen == [(None, "LOW_VALUE", "VISA")]


def test_outcomes_are_remembered_for_a_channel_and_an_exemption(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, Any] = {}

    def get_or_set(key: str, read: Any, seconds: int) -> Any:
        assert seconds == 60
        return kept[key] if key in kept else kept.setdefault(key, read())

    monkeypatch.setattr(exempting, "cache", SimpleNamespace(get_or_set=get_or_set))
    read: list[Any] = []
    monkeypatch.setattr(
        exempting.exemption_counts, "read_stage_outcomes", lambda *call: read.append(call) or {"of": call}
    )
    asked = [(CHANNEL, Exemption.LOW_VALUE), (CHANNEL, Exemption.LOW_RISK), (MERCHANT, Exemption.LOW_VALUE)]
    for each in asked * 2:
        assert exempting._read_outcomes(*each) == {"of": each}
    assert read == asked


@pytest.mark.parametrize("found", [None, "a request"])
@pytest.mark.parametrize("asked", ["", "LOW_VALUE"])
def test_only_what_asked_for_an_exemption_is_looked_up(
    monkeypatch: pytest.MonkeyPatch, asked: str, found: str | None
) -> None:
    seen: list[Any] = []
    monkeypatch.setattr(exempting.exemption_counts, "find_request", lambda *call: seen.append(call) or found)
    row = payment(answer=PrivateFacts(exemption=asked).as_json())
    assert exempting.asked_at_authorization(row) is bool(asked and found)
    assert seen == [(row.id, ExemptionStage.AUTHORIZATION)] * bool(asked)

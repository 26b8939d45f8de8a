"""Each condition of exemptions by rule by itself: what may be exempted, what is decided about, what counts as applied.

Source: docs/decisions/0105; EU 2018/389, articles 13 and 16.
"""

from __future__ import annotations

from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from gateway.core.money import Money
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
from gateway.threeds.exemption_rules import CardCount


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

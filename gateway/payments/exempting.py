"""Exemptions by rule: asks for an exemption from strong customer authentication where a channel's rules allow it.

Only for a payment that would be authenticated here and for which the merchant says nothing itself: its own challenge
indicator, exemption flag, proof or ``disable`` goes first. What the shopper does not pay now is never exempted:
payments that the merchant initiates, orders by mail and telephone, cards that are stored, 3RI. Source: docs/decisions/
0105.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import structlog
from django.core.cache import cache

from gateway.connectors.accounts import claims_exemption
from gateway.connectors.means import Card, resolve_means_brand
from gateway.connectors.routing import CONNECTORS
from gateway.connectors.routing_rules import ROUTING_BIN_DIGITS
from gateway.core.money import Money
from gateway.models import Channel, Payment, ThreeDSecureConfiguration
from gateway.payments import exemption_counts
from gateway.payments.stored_answer import (
    PrivateFacts,
    get_shown_facts,
    merge_shown_facts,
    read_private_facts,
)
from gateway.threeds import server
from gateway.threeds.exemption_rules import (
    BETTER_STAGE,
    EXEMPTION_PARAMETERS,
    CardCount,
    Exemption,
    ExemptionDecision,
    ExemptionFacts,
    ExemptionRules,
    ExemptionStage,
    StageChoice,
    choose_stage,
    decide_exemption,
    parse_exemption_rules,
)
from gateway.threeds_protocol import messages

OUTCOMES_CACHE_S: Final = 60
_OWN_WISHES: Final = (
    "threeDSecure.challengeIndicator", "threeDSecure.exemptionFlag", "threeDSecure.challengeMandatedIndicator",
)  # fmt: skip
_EXEMPTED_TYPES: Final = ("PA", "DB")

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedExemption:
    """What a payment asks for. ``parameters``: threeDSecure.* by full name, empty for none; ``skips``: it is asked for
    at the authorization, so the payment is not authenticated before."""

    parameters: Mapping[str, str] = field(default_factory=dict)
    skips: bool = False


NOT_EXEMPTED: Final = AskedExemption()


def ask_exemption(payment: Payment, card: Card, values: Mapping[str, str]) -> AskedExemption:
    """Decide on an exemption for a payment that is about to be authenticated, and record it before anybody is asked.

    ``values``: the plain parameters by full name. A channel without rules costs no statement.
    """
    rules = parse_exemption_rules(payment.channel.exemptions)
    if rules is None or not is_exemption_possible(payment, values):
        return NOT_EXEMPTED
    assert payment.means_fingerprint is not None  # a payment that is not refused has its card's
    key = bytes(payment.means_fingerprint)
    needs_count = rules.low_value or rules.trusted
    count = exemption_counts.read_card_count(payment.merchant_id, key) if needs_count else CardCount()
    facts = build_exemption_facts(payment, values, card.number.reveal()[:ROUTING_BIN_DIGITS], count)
    without: tuple[Exemption, ...] = ()
    while (decision := decide_exemption(rules, facts, without=without)) is not None:
        choice = _choose_stage(payment, rules, decision.exemption, resolve_means_brand(payment.brand, card))
        if _record(payment, facts, decision, choice, key):
            return AskedExemption(
                parameters=_name_parameters(decision.exemption), skips=choice.stage is ExemptionStage.AUTHORIZATION
            )
        # Another payment with the card took what was left, or recovery took this one: what follows does not count.
        without = (*without, decision.exemption)
    return NOT_EXEMPTED


def is_exemption_possible(payment: Payment, values: Mapping[str, str]) -> bool:
    """Whether rules may ask for an exemption of a payment that would be authenticated here."""
    return (
        payment.payment_type in _EXEMPTED_TYPES
        and payment.amount > 0
        and not any(name in values for name in _OWN_WISHES)
        # Storing a card, or agreeing to later charges, wants a strong authentication (article 97 of PSD2).
        and values.get("createRegistration") != "true"
        and values.get("standingInstruction.mode") != "INITIAL"
        and messages.resolve_device_channel(values) != messages.REQUESTOR_CHANNEL
        and messages.resolve_message_category(values) == messages.PAYMENT_CATEGORY
    )


def build_exemption_facts(payment: Payment, values: Mapping[str, str], digits: str, count: CardCount) -> ExemptionFacts:
    """What is decided about a payment, screened or past. ``digits``: leading ones of its card."""
    paid, authenticated = payment.money, messages.resolve_authenticated_amount(values, payment.money)
    one_currency = paid.currency == authenticated.currency
    return ExemptionFacts(
        money=Money(max(paid.amount, authenticated.amount), paid.currency) if one_currency else None,
        digits=digits,
        stored=payment.registration is not None,
        score=_read_score(payment),
        card=count,
    )


def list_asked_parameters(payment: Payment) -> dict[str, str]:
    """The parameters of the exemption that rules asked for, as long as the acquirer is asked for it: not by a second
    authorization attempt, and for a trusted merchant only if the issuer has accepted it."""
    if not (asked := read_private_facts(payment.answer).exemption):
        return {}
    shown = get_shown_facts(payment).get("threeDSecure", {})
    parameters = _name_parameters(Exemption(asked))
    return {name: value for name, value in parameters.items() if name.removeprefix("threeDSecure.") in shown}


def _name_parameters(exemption: Exemption) -> dict[str, str]:
    return {f"threeDSecure.{name}": value for name, value in EXEMPTION_PARAMETERS[exemption].items()}


def asked_at_authorization(payment: Payment) -> bool:
    """Whether rules had the payment submitted without an authentication."""
    if not read_private_facts(payment.answer).exemption:
        return False
    return exemption_counts.find_request(payment.id, ExemptionStage.AUTHORIZATION) is not None


def loses_soft_declines(channel: Channel) -> bool:
    """Whether the channel asks at the authorization and ends a payment that the issuer then declines softly."""
    rules = parse_exemption_rules(channel.exemptions) if channel.three_d_secure else None
    return rules is not None and rules.stage == ExemptionStage.AUTHORIZATION and not _steps_up(channel)


def _read_score(payment: Payment) -> int | None:
    """The score of the risk rules that accepted the payment; None if none screened it or they want it reviewed."""
    score = get_shown_facts(payment).get("risk", {}).get("score")
    policy = read_private_facts(payment.answer).approval_policy
    return int(score) if score is not None and not (policy is not None and policy.review) else None


def _choose_stage(payment: Payment, rules: ExemptionRules, exemption: Exemption, brand: str) -> StageChoice:
    """Where to ask. ``brand``: of the card's network."""
    is_claimed = claims_exemption(CONNECTORS.get(payment.connector), exemption, brand)
    looks = rules.stage == BETTER_STAGE and exemption is not Exemption.TRUSTED_MERCHANT and is_claimed
    steps_up = looks and _steps_up(payment.channel)
    outcomes = _read_outcomes(payment.channel_id, exemption) if steps_up else {}
    return choose_stage(rules, exemption, payment.id, outcomes, steps_up=steps_up, is_claimed=is_claimed)


def _steps_up(channel: Channel) -> bool:
    policy = server.load_threeds_configuration(channel).on_soft_decline
    return policy == ThreeDSecureConfiguration.SoftDeclinePolicy.CHALLENGE


def _read_outcomes(channel: UUID, exemption: Exemption) -> Any:
    return cache.get_or_set(
        f"exemption-outcomes-{channel.hex}-{exemption}",
        lambda: exemption_counts.read_stage_outcomes(channel, exemption),
        OUTCOMES_CACHE_S,
    )


def _record(
    payment: Payment, facts: ExemptionFacts, decision: ExemptionDecision, choice: StageChoice, key: bytes
) -> bool:
    """Record the request with the parameters that answers show; count it where the card's limits do. Those of a trusted
    merchant come with the issuer's answer."""
    answer = {**payment.answer, **PrivateFacts(exemption=decision.exemption).as_json()}
    if decision.exemption is not Exemption.TRUSTED_MERCHANT:
        answer = merge_shown_facts(answer, {"threeDSecure": dict(EXEMPTION_PARAMETERS[decision.exemption])})
    at = payment.created_at
    if decision.is_counted:
        recorded = exemption_counts.record_counted_request(payment, decision, choice, answer=answer, key=key, at=at)
    else:
        score = facts.score if decision.exemption is Exemption.LOW_RISK else None
        recorded = exemption_counts.record_request(payment, decision, choice, answer=answer, score=score, at=at)
    if recorded:
        payment.answer = answer
    else:
        log.info("exemption_not_recorded", payment=payment.id.hex, exemption=decision.exemption)
    return recorded

"""Risk screening of a payment: planned before it begins, decided before the acquirer call, checked on the approval.

A channel without a rule set costs no extra statement: the card-testing guard reads and counts within the two statements
of the payment itself. A rule set costs one statement to load it with its lists, one for its velocities if it has any,
and one to record the decision before the acquirer is called.
Source: Part B, Risk, Payment response; Part A, Customer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from gateway.catalogue.conditions.request_facts import is_merchant_initiated
from gateway.catalogue.parse import INVALID_PARAMETER_CODE, ParameterError
from gateway.catalogue.rules import RuleInput
from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerReply, AcquirerRequest, Connector
from gateway.connectors.simulator.cards import is_published_test_card
from gateway.core import result_codes
from gateway.db.statement import WriteStatement
from gateway.models import Payment
from gateway.payments.payment_request import PaymentRequest
from gateway.payments.refusal import CHANNEL_NOT_CONFIGURED_CODE, RequestRefusedError
from gateway.payments.shopper_authentication import PaymentStop
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE
from gateway.risk import card_testing, risk_store
from gateway.risk import evaluation as risk
from gateway.risk.card_testing import CardTestingWatch
from gateway.risk.evaluation import RiskOutcome, RiskVerdict
from gateway.risk.fields import RiskSubject, build_risk_subject
from gateway.risk.risk_store import LoadedRuleSet, UnknownRuleSetError
from gateway.risk.rule_sets import EMPTY_RULE_SET, RuleSet
from gateway.vault.sealing import current_vault

STANDALONE_RISK_CHECK_TYPE: Final = "RI"
_APPROVAL_POLICY_KEY: Final = "riskAfter"
"""Internal key in ``Payment.answer``: the rule set's review code and AVS/CVV policy, applied to the approval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningPlan:
    """Risk inputs gathered before the payment starts. ``loaded`` is None if no rule set screens it, ``watch`` is None
    if the card-testing guard does not."""

    loaded: LoadedRuleSet | None = None
    subject: RiskSubject | None = None
    watch: CardTestingWatch | None = None

    def add_begin_writes(self, write: WriteStatement, payment: Payment) -> None:
        """Add the guard's query and the velocity observations to the statement that begins the payment."""
        if self.watch is not None:
            self.watch.add_count_query(write)
        if self.loaded is not None and self.subject is not None and payment.payment_type != STANDALONE_RISK_CHECK_TYPE:
            risk_store.record_observations(
                write,
                self.loaded.rules,
                self.subject,
                merchant=payment.merchant_id,
                payment=payment.id,
                at=payment.created_at,
            )

    def read_begin_results(self, write: WriteStatement) -> None:
        """Read the guard's counts that the begin statement returned."""
        if self.watch is not None:
            self.watch.read_counts(write)

    def add_end_writes(self, write: WriteStatement, code: str) -> None:
        """Count the outcome for the guard in the statement that completes the payment with ``code``."""
        if self.watch is not None:
            self.watch.count(write, code)


def plan_screening(request: PaymentRequest) -> ScreeningPlan:
    """Gather the risk inputs of a payment. Raises RequestRefusedError for a risk.channelId that names no rule set of
    this merchant, if the channel has a rule set or the payment is a standalone risk check."""
    sent, means = request.parameters.values, request.means
    card = means if isinstance(means, Card) else None
    card_bin = card.facts.bin6 if card is not None else ""
    watch = None
    if (
        card is not None
        and request.payment_type != STANDALONE_RISK_CHECK_TYPE
        and _is_fresh_card(request.registration, sent)
        and not _is_test_data(card_bin, card.number.reveal()[-4:])
    ):
        watch = card_testing.build_card_testing_watch(
            sent,
            merchant=request.merchant.id,
            payment=request.payment,
            card_bin=card_bin,
            own=request.channel.card_testing or {},
            now=request.now,
        )
    if request.payment_type == REGISTRATION_PAYMENT_TYPE:
        # A registration asks an acquirer about the card, so the guard counts it; rule sets screen its payments.
        return ScreeningPlan(watch=watch)
    key = sent.get("risk.channelId") or request.channel.risk_set
    standalone = request.payment_type == STANDALONE_RISK_CHECK_TYPE
    if (not key and not standalone) or request.parameters.refusals:
        return ScreeningPlan(watch=watch)
    accounts = current_vault().fingerprints(means.account) if means is not None else ()
    subject = build_risk_subject(
        sent,
        money=request.money,
        brand=request.brand,
        payment_type=request.payment_type,
        now=request.now,
        card_bin=card_bin,
        accounts=tuple(fingerprint.hex() for fingerprint in accounts),
    )
    if not key:
        return ScreeningPlan(loaded=LoadedRuleSet(rules=EMPTY_RULE_SET), subject=subject)
    try:
        loaded = risk_store.load_rule_set(request.merchant.id, key, subject)
    except UnknownRuleSetError as fault:
        if not standalone and not request.channel.risk_set:
            # The channel has no rule set: the value may name another system's channel. It is stored and echoed.
            return ScreeningPlan(watch=watch)
        raise _build_unknown_set_refusal(key, fault, named="risk.channelId" in sent) from None
    return ScreeningPlan(loaded=loaded, subject=subject, watch=watch)


def plan_resumed_screening(payment: Payment, sent: Mapping[str, str]) -> ScreeningPlan:
    """The card-testing watch of a payment that is resumed after a redirect. ``sent``: its request by full name."""
    if payment.means != Card.kind or not _is_fresh_card(payment.registration, sent):
        return ScreeningPlan()
    card = payment.answer.get("card", {})
    card_bin = card.get("bin", "")
    if _is_test_data(card_bin, card.get("last4Digits", "")):
        return ScreeningPlan()
    own = payment.channel.card_testing or {}
    return ScreeningPlan(
        watch=card_testing.build_card_testing_watch(
            sent, merchant=payment.merchant_id, payment=payment.id, card_bin=card_bin, own=own, now=payment.created_at
        )
    )


def _is_fresh_card(registration: UUID | None, sent: Mapping[str, str]) -> bool:
    """Whether a shopper entered the card for this payment. Stored cards and merchant-initiated payments are not
    watched: a batch of renewals may well fail in a row."""
    return registration is None and not is_merchant_initiated(RuleInput(sent))


def _is_test_data(card_bin: str, last4: str) -> bool:
    """Whether this is a published test card, which the guard neither counts nor stops: it must always give its
    published code. In live there are none. Source: decision 0049."""
    return not settings.IS_LIVE and is_published_test_card(card_bin, last4)


def _build_unknown_set_refusal(key: str, fault: UnknownRuleSetError, *, named: bool) -> RequestRefusedError:
    there = f"there are {', '.join(fault.known)}" if fault.known else "there is none yet"
    if named:
        error = ParameterError(name="risk.channelId", value=key, message=f"names no rule set of this merchant; {there}")
        return RequestRefusedError(INVALID_PARAMETER_CODE, [error])
    error = ParameterError(name="entityId", message=f"is a channel whose rule set is missing or not active; {there}")
    return RequestRefusedError(CHANNEL_NOT_CONFIGURED_CODE, [error])


def screen_payment(payment: Payment, request: PaymentRequest, planned: ScreeningPlan) -> PaymentStop | None:
    """Screen a payment by the guard and the rule set; None lets it go on. The decision is recorded first."""
    stopped = planned.watch.verdict() if planned.watch is not None else None
    if stopped is not None:
        risk_store.record_decision(payment, stopped, None, answer={}, at=request.now)
        return PaymentStop(code=stopped.code, facts={"resultDetails": {"RiskReason": stopped.reasons[0].why}})
    if planned.loaded is None or planned.subject is None:
        return None
    rules, standalone = planned.loaded.rules, payment.payment_type == STANDALONE_RISK_CHECK_TYPE
    found = risk_store.load_signals(
        planned.loaded, planned.subject, merchant=request.merchant, at=request.now, observed=not standalone
    )
    verdict = risk.evaluate_rules(rules, planned.subject, found)
    for _ in range(2):
        if risk_store.record_decision(
            payment, verdict, rules, answer=_build_risk_answer(payment, verdict, rules), at=request.now
        ):
            break
        # Recovery took the payment over already: its approval has to meet the policy too, so record it once more.
        payment.refresh_from_db()
    return PaymentStop(code=verdict.code) if verdict.outcome is RiskOutcome.DECLINE else None


def _build_risk_answer(payment: Payment, verdict: RiskVerdict, rules: RuleSet) -> dict[str, Any]:
    """What the decision adds to ``Payment.answer``: the score shown, and the policy for the approval."""
    score = risk.format_score(verdict.score or 0)
    answer: dict[str, Any] = {"facts": {**payment.answer.get("facts", {}), "risk": {"score": score}}}
    wanted = {
        "review": verdict.code if verdict.outcome is RiskOutcome.REVIEW else "",
        "avs": dict(rules.avs),
        "cvv": dict(rules.cvv),
    }
    if after := {name: value for name, value in wanted.items() if value}:
        answer[_APPROVAL_POLICY_KEY] = after
    return answer


# --- after the acquirer -------------------------------------------------------------------------------------------


def evaluate_approval(payment: Payment, reply: AcquirerReply) -> RiskVerdict:
    """The verdict on an acquirer's approval by the AVS/CVV policy and review code of the payment's rule set."""
    wanted = payment.answer.get(_APPROVAL_POLICY_KEY)
    if not wanted or reply.approved is None or not result_codes.is_approved(reply.code):
        return risk.UNCHECKED_VERDICT
    policy = RuleSet(avs=wanted.get("avs", {}), cvv=wanted.get("cvv", {}))
    verdict = risk.evaluate_acquirer_checks(policy, reply.avs, reply.cvv)
    if verdict.outcome is RiskOutcome.ACCEPT and (code := wanted.get("review")):
        return RiskVerdict(outcome=RiskOutcome.REVIEW, code=code)
    return verdict


def apply_review_code(payment: Payment, reply: AcquirerReply) -> AcquirerReply:
    """The reply with the review code of the rule set, if it asks for a review; an acquirer's own review code stays."""
    verdict = evaluate_approval(payment, reply)
    if verdict.outcome is RiskOutcome.REVIEW and result_codes.is_success(reply.code):
        return replace(reply, code=verdict.code)
    return reply


def void_refused_approval(
    connector: Connector, asked: AcquirerRequest, reply: AcquirerReply, verdict: RiskVerdict
) -> AcquirerReply:
    """Void an approval that fails the AVS/CVV policy and return the decline. Raises OutcomeUnknownError if the void is
    not confirmed: the payment is then IN_DOUBT, and recovery voids it."""
    voided = connector.void(asked)
    return replace(
        reply,
        code=verdict.code,
        approved=None,
        received={**reply.received, "takenBack": dict(voided.received)},
        details={**reply.details, "RiskReason": f"{verdict.reasons[0].why}; the approval was reversed"},
    )

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
from gateway.catalogue.parse import INVALID_PARAMETER_CODE
from gateway.catalogue.rules import RuleInput
from gateway.connectors.means import Card, Means, TokenAccount, resolve_means_brand
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ApprovalNotVoidedError,
    Connector,
    OutcomeUnknownError,
    ReversalReason,
    VoidRefusedError,
)
from gateway.connectors.simulator.cards import is_published_test_card
from gateway.core import clock, result_codes
from gateway.db.statement import WriteStatement
from gateway.models import Channel, Payment
from gateway.payments.network_brands import find_network_brand
from gateway.payments.outcomes import Declined
from gateway.payments.payment_request import PaymentRequest, RequestOrigin
from gateway.payments.refusal import CHANNEL_NOT_CONFIGURED_CODE, RequestRefusedError, build_parameter_refusal
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE
from gateway.payments.stored_answer import (
    ApprovalPolicy,
    PrivateFacts,
    get_shown_facts,
    read_collection_end,
    read_private_facts,
)
from gateway.risk import card_testing, risk_store
from gateway.risk import evaluation as risk
from gateway.risk.card_testing import CardTestingWatch
from gateway.risk.evaluation import RiskOutcome, RiskReason, RiskVerdict
from gateway.risk.fields import RiskSubject, build_risk_subject
from gateway.risk.retry_rules import RetryWatch, resolve_network
from gateway.risk.risk_store import LoadedRuleSet, UnknownRuleSetError
from gateway.risk.rule_sets import EMPTY_RULE_SET, RuleSet
from gateway.vault.sealing import current_vault

STANDALONE_RISK_CHECK_TYPE: Final = "RI"
_SCHEME_MODES: Final = frozenset({"", result_codes.EXTERNAL_TEST_MODE})
"""Live, and tests with a processor. The simulator has no scheme: its cards and amounts always give their code."""
_ASKING_TYPES: Final = frozenset({REGISTRATION_PAYMENT_TYPE, "PA", "DB"})
"""First payments that ask the issuer for an authorization."""
PARTIAL_APPROVAL_REFUSED_CODE: Final = "800.100.155"
"""Too little credit: why an issuer approves less than it was asked for."""
PARTIAL_APPROVAL_DETAIL: Final = "PartialApproval"
"""Member of resultDetails of a payment that was declined so: what was granted of what."""
_VOID_MEMBER: Final = "takenBack"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningPlan:
    """Risk inputs gathered before the payment starts. ``loaded`` is None if no rule set screens it, ``watch`` is None
    if the card-testing guard does not, ``retries`` is None for what is no attempt with a card."""

    loaded: LoadedRuleSet | None = None
    subject: RiskSubject | None = None
    watch: CardTestingWatch | None = None
    retries: RetryWatch | None = None

    def add_begin_writes(self, write: WriteStatement, payment: Payment) -> None:
        """Add the guard's query and the velocity observations to the statement that begins the payment."""
        if self.watch is not None:
            self.watch.add_count_query(write)
        if self.retries is not None:
            self.retries.add_count_query(write)
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
        if self.retries is not None:
            self.retries.read_counts(write)

    def add_attempt_writes(self, write: WriteStatement, reply: AcquirerReply) -> bool:
        """Count an acquirer's answer for the schemes' retry rules, in the statement that goes on from it; False for one
        that does not count."""
        # A reply that another acquirer may be asked after is no issuer's, even where it stands for an earlier decline.
        # Nor is an approval that we took back a decline of the issuer.
        if self.retries is None or not reply.sent or _VOID_MEMBER in reply.received:
            return False
        return self.retries.count(
            write,
            reply.code,
            reply.details.get("MerchantAdviceCode", ""),
            reply.details.get("AcquirerResponse", ""),
            of_issuer=not reply.retryable_elsewhere,
        )

    def forbids_failover(self, refusal: AcquirerReply) -> bool:
        """Whether an acquirer's refusal is the decline after which the schemes' retry rules allow no further attempt
        with the card, though no issuer gave it."""
        if self.retries is None or not refusal.sent:
            return False
        counted = self.retries.is_counted(refusal.code, refusal.details.get("AcquirerResponse", ""), of_issuer=False)
        return counted and self.retries.verdict_after_decline() is not None

    def add_end_writes(self, write: WriteStatement, reply: AcquirerReply) -> None:
        """Count the outcome for the guards in the statement that completes the payment."""
        if self.watch is not None:
            self.watch.count(write, reply.code)
        self.add_attempt_writes(write, reply)


def plan_payment_screening(request: PaymentRequest) -> ScreeningPlan:
    """The plan of a payment: :func:`plan_screening`, and the schemes' retry rules, which hold for registrations too."""
    means = request.means
    retries = None
    if (
        isinstance(means, Card | TokenAccount)
        and request.payment_type in _ASKING_TYPES
        and request.test_mode in _SCHEME_MODES
        and not (isinstance(means, Card) and _is_test_data(means.facts.bin6, means.facts.last4))
    ):
        retries = RetryWatch(
            merchant=request.merchant.id,
            payment=request.payment,
            key=current_vault().fingerprint(means.account),
            network=resolve_network(resolve_means_brand(request.brand, means)),
            merchant_initiated=is_merchant_initiated(RuleInput(request.parameters.values)),
            now=request.now,
        )
    return replace(plan_screening(request), retries=retries)


def plan_follow_up_screening(
    payment: Payment, means: Means | None, *, merchant_initiated: bool
) -> ScreeningPlan | None:
    """The schemes' retry rules for a follow-up that authorizes anew (a rebill, an increment, a renewal); None for one
    that they do not concern. ``means``: of its chain."""
    if not isinstance(means, Card | TokenAccount) or payment.test_mode not in _SCHEME_MODES:
        return None
    if isinstance(means, Card) and _is_test_data(means.facts.bin6, means.facts.last4):
        return None
    return ScreeningPlan(
        retries=RetryWatch(
            merchant=payment.merchant_id,
            payment=payment.id,
            key=_find_card_key(payment, means),
            network=resolve_network(resolve_means_brand(payment.brand, means)),
            merchant_initiated=merchant_initiated,
            now=payment.created_at,
        )
    )


def _find_card_key(payment: Payment, means: Card | TokenAccount) -> bytes:
    """The key of the card that a follow-up is made with. Its network token is another number of the same card, whose
    declines are counted together."""
    own = None
    if isinstance(means, TokenAccount):
        own = Payment.objects.filter(pk=payment.chain).values_list("means_fingerprint", flat=True).first()
    return bytes(own) if own is not None else current_vault().fingerprint(means.account)


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
        and not _is_test_data(card_bin, card.facts.last4)
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
    """The guards of a payment that is resumed after a redirect. ``sent``: its request by full name."""
    return replace(_plan_resumed_watch(payment, sent), retries=_plan_resumed_retries(payment))


def _plan_resumed_retries(payment: Payment) -> RetryWatch | None:
    """Counts the outcome; the rules themselves were asked when the payment began. Only cardholders are redirected."""
    card = payment.answer.get("card", {})
    if payment.test_mode not in _SCHEME_MODES or payment.means_fingerprint is None:
        return None
    if _is_test_data(card.get("bin", ""), card.get("last4Digits", "")):
        return None
    if payment.means not in (Card.kind, TokenAccount.kind):
        return None
    return RetryWatch(
        merchant=payment.merchant_id,
        payment=payment.id,
        key=bytes(payment.means_fingerprint),
        network=resolve_network(find_network_brand(payment)),
        merchant_initiated=False,
        now=payment.created_at,
    )


def _plan_resumed_watch(payment: Payment, sent: Mapping[str, str]) -> ScreeningPlan:
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
        return build_parameter_refusal(
            INVALID_PARAMETER_CODE, "risk.channelId", f"names no rule set of this merchant; {there}", value=key
        )
    return build_parameter_refusal(
        CHANNEL_NOT_CONFIGURED_CODE, "entityId", f"is a channel whose rule set is missing or not active; {there}"
    )


def screen_payment(payment: Payment, request: PaymentRequest, plan: ScreeningPlan) -> Declined | None:
    """Screen a payment by the guards and the rule set; None lets it go on. The decision is recorded first."""
    stopped = plan.retries.verdict() if plan.retries is not None else None
    if stopped is None and plan.watch is not None:
        stopped = plan.watch.verdict()
    if stopped is not None:
        risk_store.record_decision(payment, stopped, None, answer={}, at=request.now)
        return _decline(request, stopped.code, {"resultDetails": {"RiskReason": stopped.reasons[0].why}})
    if plan.loaded is None or plan.subject is None:
        return None
    rules, standalone = plan.loaded.rules, payment.payment_type == STANDALONE_RISK_CHECK_TYPE
    signals = risk_store.load_signals(
        plan.loaded, plan.subject, merchant=request.merchant, at=request.now, observed=not standalone
    )
    verdict = risk.evaluate_rules(rules, plan.subject, signals)
    for _ in range(2):
        if risk_store.record_decision(
            payment, verdict, rules, answer=_build_risk_answer(payment, verdict, rules), at=request.now
        ):
            break
        # Recovery took the payment over already: its approval has to meet the policy too, so record it once more.
        payment.refresh_from_db()
    return _decline(request, verdict.code) if verdict.outcome is RiskOutcome.DECLINE else None


def screen_follow_up(payment: Payment, plan: ScreeningPlan | None, origin: RequestOrigin) -> Declined | None:
    """Screen a follow-up by the schemes' retry rules; None lets it go on. The decision is recorded first."""
    stopped = plan.retries.verdict() if plan is not None and plan.retries is not None else None
    if stopped is None:
        return None
    risk_store.record_decision(payment, stopped, None, answer={}, at=payment.created_at)
    return _decline(origin, stopped.code, {"resultDetails": {"RiskReason": stopped.reasons[0].why}})


def _decline(origin: RequestOrigin, code: str, facts: Mapping[str, Any] | None = None) -> Declined:
    return Declined(reply=AcquirerReply(code=code, facts=facts or {}), at=clock.merchant_now(origin.merchant))


def _build_risk_answer(payment: Payment, verdict: RiskVerdict, rules: RuleSet) -> dict[str, Any]:
    """What the decision adds to ``Payment.answer``: the score shown, and the policy for the approval."""
    policy = ApprovalPolicy(
        review=verdict.code if verdict.outcome is RiskOutcome.REVIEW else "", avs=rules.avs, cvv=rules.cvv
    )
    score = risk.format_score(verdict.score or 0)
    shown = {"facts": {**get_shown_facts(payment), "risk": {"score": score}}}
    return shown | PrivateFacts(approval_policy=policy).as_json()


# --- after the acquirer -------------------------------------------------------------------------------------------


def refuses_partial_approvals(channel: Channel) -> bool:
    """Whether a debit, a preauthorization or a rebill of this channel is declined where less than its amount is
    approved. Increments and renewals are not concerned: they raise by what is granted."""
    return channel.partial_approvals == Channel.PartialApprovals.DECLINE


def asks_for_partial_approval(payment: Payment) -> bool:
    """Whether the issuer of a debit or preauthorization may approve a part of the amount."""
    asks = payment.channel.partial_approvals == Channel.PartialApprovals.REQUEST
    return (
        payment.payment_type in ("DB", "PA")
        and (asks or bool(read_collection_end(payment.answer)))
        and not read_private_facts(payment.answer).whole_amount_only
    )


def evaluate_approval(payment: Payment, reply: AcquirerReply) -> RiskVerdict:
    """The verdict on an acquirer's approval by the AVS/CVV policy and review code of the payment's rule set, and by
    whether its channel takes less than the whole amount."""
    kept = read_private_facts(payment.answer)
    policy, whole_only = kept.approval_policy, kept.whole_amount_only
    if (policy is None and not whole_only) or reply.approved is None or not result_codes.is_approved(reply.code):
        return risk.UNCHECKED_VERDICT
    verdict = risk.UNCHECKED_VERDICT
    is_payout = payment.payment_type == "CD"  # it is not taken back (docs/decisions/0147, 0152)
    if policy is not None and not is_payout:
        verdict = risk.evaluate_acquirer_checks(RuleSet(avs=policy.avs, cvv=policy.cvv), reply.avs, reply.cvv)
    if verdict.outcome is RiskOutcome.DECLINE:
        return verdict
    if whole_only and not is_payout and reply.approved < payment.money:
        why = f"approved for {reply.approved.text()} of {payment.money.text()} {payment.currency}"
        reason = RiskReason(rule="partial approvals", why=why, verdict="decline")
        return RiskVerdict(outcome=RiskOutcome.DECLINE, code=PARTIAL_APPROVAL_REFUSED_CODE, reasons=(reason,))
    if policy is None:
        return verdict
    if verdict.outcome is RiskOutcome.ACCEPT and policy.review:
        return RiskVerdict(outcome=RiskOutcome.REVIEW, code=policy.review)
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
    """Void an approval that :func:`evaluate_approval` refuses and return the decline. Raises ApprovalNotVoidedError if
    the void is not confirmed: the payment is then IN_DOUBT, and recovery voids it with the same reason and code."""
    # What identifies the approval, and the amount that it granted, come from its answer.
    asked = replace(
        asked,
        known_transaction_id=reply.connector_tx_id or asked.known_transaction_id,
        original=replace(asked.point_of_service, link=reply.transaction_link or asked.point_of_service.link),
        take_late_answer=None,  # the void's answer is not the payment's
    )
    details = describe_refusal(reply, verdict)
    try:
        voided = connector.void(replace(asked, reversal_reason=get_reversal_reason(verdict.code)))
    except VoidRefusedError:
        raise
    except OutcomeUnknownError as unknown:
        raise ApprovalNotVoidedError(unknown, verdict.code, details, reply) from unknown
    return replace(
        reply,
        code=verdict.code,
        approved=None,
        received={**reply.received, _VOID_MEMBER: dict(voided.received)},
        details=details,
    )


def describe_refusal(reply: AcquirerReply, verdict: RiskVerdict) -> dict[str, str]:
    """The resultDetails of an approval that is refused by ``verdict``, and reversed."""
    name = PARTIAL_APPROVAL_DETAIL if verdict.code == PARTIAL_APPROVAL_REFUSED_CODE else "RiskReason"
    return {**reply.details, name: f"{verdict.reasons[0].why}; the approval was reversed"}


def get_reversal_reason(refused_code: str) -> ReversalReason:
    """Why an approval is voided. ``refused_code``: of the decline that it becomes; '' where its answer did not come."""
    if not refused_code:
        return ReversalReason.TIMEOUT
    refused_part = refused_code == PARTIAL_APPROVAL_REFUSED_CODE
    return ReversalReason.CUSTOMER if refused_part else ReversalReason.SUSPECTED_FRAUD

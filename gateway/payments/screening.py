"""Risk on the straight line: what is planned before a payment begins, decided after, and judged when it is approved.

A channel without a rule set costs no statement: the card-testing guard's look and counts ride in the two statements
that the payment makes anyway. A rule set costs one statement to read it with its lists, one for its velocities if it
has any, one to keep the decision before anybody is asked for money.
Source: Part B, Risk, Payment response; Part A, Customer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from gateway import results
from gateway.catalogue.conditions.situation import merchant_initiated
from gateway.catalogue.parse import INVALID, ParameterError
from gateway.catalogue.rules import Sent
from gateway.connectors.means import Card
from gateway.connectors.port import AcquirerReply, AcquirerRequest, Connector
from gateway.connectors.simulator.cards import is_published
from gateway.models import Payment
from gateway.payments.endings import REGISTER
from gateway.payments.phases import Halt
from gateway.payments.refusal import Refused
from gateway.payments.request import PaymentRequest
from gateway.risk import guard, records
from gateway.risk import screening as risk
from gateway.risk.fields import Subject, subject_of
from gateway.risk.guard import Watch
from gateway.risk.records import Loaded, UnknownSet
from gateway.risk.screening import Outcome, Verdict
from gateway.risk.sets import NO_RULES, RuleSet
from gateway.rows import Write
from gateway.vault import vault

RISK_CHECK: Final = "RI"
_AFTER: Final = "riskAfter"
"""In a payment's answer, for ourselves: what its rule set wants of an approval that is still to come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What risk will look at. ``loaded`` is None where no rule set screens; ``watch`` where the guard does not."""

    loaded: Loaded | None = None
    subject: Subject | None = None
    watch: Watch | None = None

    def begin(self, write: Write, payment: Payment) -> None:
        """What rides in the statement that begins the payment."""
        if self.watch is not None:
            self.watch.look(write)
        if self.loaded is not None and self.subject is not None and payment.payment_type != RISK_CHECK:
            records.observe(
                write, self.loaded.rules, self.subject, merchant=payment.merchant_id, payment=payment.id,
                at=payment.created_at,
            )  # fmt: skip

    def begun(self, write: Write) -> None:
        if self.watch is not None:
            self.watch.looked(write)

    def end(self, write: Write, code: str) -> None:
        """What rides in the statement that completes the payment with ``code``."""
        if self.watch is not None:
            self.watch.count(write, code)


def plan(request: PaymentRequest) -> Plan:
    """What risk will look at. Raises Refused for a risk.channelId that names no rule set of this merchant, where the
    channel checks risk or nothing but a check was asked for."""
    if request.payment_type == REGISTER:
        # No money moves; what is stored is looked at when it pays.
        return Plan()
    sent, means = request.parameters.values, request.means
    card = means if isinstance(means, Card) else None
    card_bin = card.facts.bin6 if card is not None else ""
    watch = None
    if (
        card is not None and request.payment_type != RISK_CHECK and _is_fresh(request.registration, sent)
        and not _is_test_data(card_bin, card.number.reveal()[-4:])
    ):  # fmt: skip
        watch = guard.watch(
            sent, merchant=request.merchant.id, payment=request.payment, card_bin=card_bin,
            own=request.channel.card_testing or {}, now=request.now,
        )  # fmt: skip
    key = sent.get("risk.channelId") or request.channel.risk_set
    standalone = request.payment_type == RISK_CHECK
    if (not key and not standalone) or request.parameters.refusals:
        return Plan(watch=watch)
    accounts = vault().fingerprints(means.account) if means is not None else ()
    subject = subject_of(
        sent, money=request.money, brand=request.brand, payment_type=request.payment_type, now=request.now,
        card_bin=card_bin, accounts=tuple(one.hex() for one in accounts),
    )  # fmt: skip
    if not key:
        return Plan(loaded=Loaded(rules=NO_RULES), subject=subject)
    try:
        loaded = records.load(request.merchant.id, key, subject)
    except UnknownSet as fault:
        if not standalone and not request.channel.risk_set:
            # A channel that checks no risk: the value may name another system's channel. It is kept and echoed.
            return Plan(watch=watch)
        raise _unknown(key, fault, named="risk.channelId" in sent) from None
    return Plan(loaded=loaded, subject=subject, watch=watch)


def plan_of_waiting(payment: Payment, sent: Mapping[str, str]) -> Plan:
    """What the guard counts when a payment ends whose shopper was away. ``sent``: its request by full name."""
    if payment.means != Card.kind or not _is_fresh(payment.registration, sent):
        return Plan()
    told = payment.answer.get("card", {})
    card_bin = told.get("bin", "")
    if _is_test_data(card_bin, told.get("last4Digits", "")):
        return Plan()
    own = payment.channel.card_testing or {}
    return Plan(
        watch=guard.watch(
            sent, merchant=payment.merchant_id, payment=payment.id, card_bin=card_bin, own=own, now=payment.created_at
        )
    )


def _is_fresh(registration: UUID | None, sent: Mapping[str, str]) -> bool:
    """A card that a shopper has just sent to pay with. Stored cards were good once, and a merchant's batch of renewals
    may well fail in a row."""
    return registration is None and not merchant_initiated(Sent(sent))


def _is_test_data(card_bin: str, last4: str) -> bool:
    """A published test card always gives its published code, however often it is used, so the guard neither counts nor
    stops it. In live there are no test cards. Source: decision 0049."""
    return not settings.IS_LIVE and is_published(card_bin, last4)


def _unknown(key: str, fault: UnknownSet, *, named: bool) -> Refused:
    there = f"there are {', '.join(fault.known)}" if fault.known else "there is none yet"
    if named:
        error = ParameterError(name="risk.channelId", value=key, message=f"names no rule set of this merchant; {there}")
        return Refused(INVALID, [error])
    error = ParameterError(name="entityId", message=f"is a channel whose rule set is missing or not active; {there}")
    return Refused(NOT_CONFIGURED, [error])


NOT_CONFIGURED: Final = "600.200.500"


def screen(payment: Payment, request: PaymentRequest, planned: Plan) -> Halt | None:
    """The verdict of the guard and of the rule set; None lets the payment go on. The decision is kept first."""
    stopped = planned.watch.verdict() if planned.watch is not None else None
    if stopped is not None:
        records.keep(payment, stopped, None, answer={}, at=request.now)
        return Halt(code=stopped.code, facts={"resultDetails": {"RiskReason": stopped.reasons[0].why}})
    if planned.loaded is None or planned.subject is None:
        return None
    rules, standalone = planned.loaded.rules, payment.payment_type == RISK_CHECK
    found = records.signals(
        planned.loaded, planned.subject, merchant=request.merchant, at=request.now, observed=not standalone
    )
    verdict = risk.screen(rules, planned.subject, found)
    for _ in range(2):
        if records.keep(payment, verdict, rules, answer=_answer(payment, verdict, rules), at=request.now):
            break
        # Recovery thought the worker dead and asks already: what risk wants of the answer has to be there too.
        payment.refresh_from_db()
    return Halt(code=verdict.code) if verdict.outcome is Outcome.DECLINE else None


def _answer(payment: Payment, verdict: Verdict, rules: RuleSet) -> dict[str, Any]:
    """What the payment's answer gains: the score to be told, and what is to be done with an approval."""
    score = risk.score_text(verdict.score or 0)
    answer: dict[str, Any] = {"facts": {**payment.answer.get("facts", {}), "risk": {"score": score}}}
    wanted = {
        "review": verdict.code if verdict.outcome is Outcome.REVIEW else "",
        "avs": dict(rules.avs), "cvv": dict(rules.cvv),
    }  # fmt: skip
    if after := {name: value for name, value in wanted.items() if value}:
        answer[_AFTER] = after
    return answer


# --- after the acquirer -------------------------------------------------------------------------------------------


def judged(payment: Payment, reply: AcquirerReply) -> Verdict:
    """What an acquirer's approval leads to, by the policy of the payment's rule set."""
    wanted = payment.answer.get(_AFTER)
    if not wanted or reply.approved is None or not results.is_approved(reply.code):
        return risk.UNCHECKED
    policy = RuleSet(avs=wanted.get("avs", {}), cvv=wanted.get("cvv", {}))
    verdict = risk.after(policy, reply.avs, reply.cvv)
    if verdict.outcome is Outcome.ACCEPT and (code := wanted.get("review")):
        return Verdict(outcome=Outcome.REVIEW, code=code)
    return verdict


def under_review(payment: Payment, reply: AcquirerReply) -> AcquirerReply:
    """The reply with the code of a review, where risk wants one; an acquirer's own review code stands."""
    verdict = judged(payment, reply)
    if verdict.outcome is Outcome.REVIEW and results.is_success(reply.code):
        return replace(reply, code=verdict.code)
    return reply


def take_back(connector: Connector, asked: AcquirerRequest, reply: AcquirerReply, verdict: Verdict) -> AcquirerReply:
    """Reverse an approval that the policy refuses, and decline. Raises Silence while nobody confirms the reversal: the
    payment is then in doubt, and recovery takes it back."""
    word = connector.void(asked)
    return replace(
        reply, code=verdict.code, approved=None,
        received={**reply.received, "takenBack": dict(word.received)},
        details={**reply.details, "RiskReason": f"{verdict.reasons[0].why}; the approval was reversed"},
    )  # fmt: skip

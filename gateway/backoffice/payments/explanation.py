"""Explanations of payments in plain words: what happened, who decided, what to do, what the shopper may be told.

A table by result-code family. What is stored about the single payment (a risk decision, an authentication, that no
acquirer was called) is more exact than its family and goes first.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from django.utils.translation import gettext as _

from gateway.backoffice.kit.formatting import format_labelled
from gateway.backoffice.kit.result_words import describe_result
from gateway.backoffice.payments import route_explanation
from gateway.backoffice.payments.chain_words import describe_chain, describe_open_money
from gateway.connectors.circuit import ACQUIRER_UNREACHABLE
from gateway.core import result_codes
from gateway.core.advice import get_developer_advice, get_shopper_message
from gateway.core.result_codes import ResultFamily
from gateway.models import Authentication, Payment, RiskDecision, Status
from gateway.models.payments import GIVING_TYPES
from gateway.payments.chain_amounts import Chain
from gateway.payments.chain_states import ChainStatus
from gateway.payments.fraud_liability import FraudLiability, resolve_fraud_liability
from gateway.payments.held_parts import PARTS_DETAIL, is_held
from gateway.payments.late_outcomes import DENIED_EXCHANGE
from gateway.payments.payout_decisions import is_entered_as_not_paid
from gateway.payments.recovery import UNPROVEN_EXCHANGE
from gateway.payments.refused_reversals import is_for_person
from gateway.payments.rendering import resolve_result_code
from gateway.payments.reversal_border import is_card_payout
from gateway.payments.risk_screening import PARTIAL_APPROVAL_DETAIL
from gateway.payments.stored_answer import TokenUse, read_token_use
from gateway.risk.evaluation import RiskOutcome


class DecisionMaker(enum.Enum):
    """Who decided about a payment."""

    SHOPPER = "the shopper"
    ISSUER = "the shopper's bank"
    ACQUIRER = "the acquirer"
    RISK = "your risk rules"
    GUARD = "the guard against card testing"
    AUTHENTICATION = "3-D Secure"
    SETUP = "your set-up here"
    REQUEST = "the gateway, from what was sent"
    GATEWAY = "the gateway"
    NO_ONE_DECIDED = "nobody yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentExplanation:
    """The explanation of one payment. ``shopper``: what the shopper may be told, None if only the merchant can act;
    ``more``: stored details, one a line; ``money``: what became of the money of its whole chain; ``step``: of a
    follow-up, what it did to the money itself."""

    decided_by: DecisionMaker
    happened: str
    todo: str
    shopper: str | None
    money: str
    code: str
    description: str
    more: tuple[str, ...] = ()
    step: str = ""


FAMILY_EXPLANATIONS: Final[Mapping[ResultFamily, tuple[DecisionMaker, str]]] = MappingProxyType(
    {
        ResultFamily.SUCCESS: (DecisionMaker.ACQUIRER, "It was accepted."),
        ResultFamily.REVIEW: (
            DecisionMaker.RISK,
            "It was accepted, but something about it should be looked at before you deliver.",
        ),
        ResultFamily.PENDING: (
            DecisionMaker.NO_ONE_DECIDED,
            "It is open: the shopper is on the way, or the acquirer has not answered yet.",
        ),
        ResultFamily.PENDING_LONG: (
            DecisionMaker.NO_ONE_DECIDED,
            "It is open: the bank confirms or refuses it within some days.",
        ),
        ResultFamily.REJECTED_3DS: (DecisionMaker.AUTHENTICATION, "The shopper could not be authenticated."),
        ResultFamily.REJECTED_BANK: (DecisionMaker.ISSUER, "The bank that issued the card or account said no."),
        ResultFamily.REJECTED_COMMUNICATION: (
            DecisionMaker.ACQUIRER,
            "The acquirer could not be reached or did not answer in time.",
        ),
        ResultFamily.REJECTED_SYSTEM: (DecisionMaker.ACQUIRER, "A system on the way did not work."),
        ResultFamily.REJECTED_ASYNC: (
            DecisionMaker.SHOPPER,
            "The shopper left, cancelled, or ran out of time at the bank or wallet.",
        ),
        ResultFamily.SOFT_DECLINE: (DecisionMaker.ISSUER, "The bank wants the shopper to be authenticated first."),
        ResultFamily.REJECTED_EXTERNAL_RISK: (DecisionMaker.RISK, "A risk check refused it."),
        ResultFamily.REJECTED_ADDRESS_RISK: (
            DecisionMaker.RISK,
            "The billing address did not match what the bank knows.",
        ),
        ResultFamily.REJECTED_3DS_RISK: (
            DecisionMaker.AUTHENTICATION,
            "Authentication was refused or not available for this card.",
        ),
        ResultFamily.REJECTED_BLACKLIST: (DecisionMaker.RISK, "The card, account or shopper stands on a block list."),
        ResultFamily.REJECTED_RISK_VALIDATION: (DecisionMaker.RISK, "A limit was reached, or the same was sent twice."),
        ResultFamily.CONFIGURATION: (DecisionMaker.SETUP, "This channel is not set up for what was asked."),
        ResultFamily.REGISTRATION: (DecisionMaker.REQUEST, "The stored means of payment could not be used."),
        ResultFamily.JOB: (DecisionMaker.REQUEST, "The schedule is not one that can be carried out."),
        ResultFamily.REFERENCE: (
            DecisionMaker.REQUEST,
            "The earlier payment does not allow it: its type, its state, or what remains.",
        ),
        ResultFamily.FORMAT: (DecisionMaker.REQUEST, "The request was not well formed."),
        ResultFamily.ADDRESS: (DecisionMaker.REQUEST, "The address was not well formed."),
        ResultFamily.CONTACT: (DecisionMaker.REQUEST, "The contact fields were not well formed."),
        ResultFamily.ACCOUNT: (DecisionMaker.REQUEST, "The card or account fields cannot be right."),
        ResultFamily.AMOUNT: (DecisionMaker.REQUEST, "Amount or currency cannot be right."),
        ResultFamily.RISK_MANAGEMENT: (DecisionMaker.RISK, "The risk check lacked fields that it needs."),
        ResultFamily.CHARGEBACK: (DecisionMaker.ISSUER, "The shopper's bank took the money back."),
        ResultFamily.RATING: (DecisionMaker.ACQUIRER, "It was accepted."),
        ResultFamily.ACCOUNT_UPDATER: (DecisionMaker.ACQUIRER, "The update of the account was refused."),
        ResultFamily.ADVICE_BLOCK: (DecisionMaker.ISSUER, "The bank said that this card must not be sent again."),
    }
)
"""Family → who usually decides, and what happened. A test asks for every family."""

_BY_CODE: Final[Mapping[str, tuple[DecisionMaker, str]]] = MappingProxyType(
    {
        "000.200.001": (
            DecisionMaker.NO_ONE_DECIDED,
            "The acquirer has not answered yet; it is being asked until it knows.",
        ),
        "800.110.100": (
            DecisionMaker.GATEWAY,
            "The same merchantTransactionId came before, and this channel refuses a second.",
        ),
        "800.100.153": (DecisionMaker.ISSUER, "The security code was wrong."),
        "800.120.402": (DecisionMaker.GATEWAY, "Another request about the same was being made at this moment."),
    }
)

MONEY_EFFECT_TEXTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DB": "The money was taken.", "PA": "The money is reserved, and not taken yet.", "CP": "The money was taken.",
        "CD": "The money was paid out.", "RF": "The money goes back to the shopper.",
        "RV": "The reservation or the charge was undone.", "RB": "The money was taken once more.",
        "RC": "The money has come in.", "CB": "The money was taken back by the shopper's bank.",
        "CR": "The money came back to you.",
    }
)  # fmt: skip
"""Payment type → what it did with money when approved; other types move none."""


def explain_payment(
    payment: Payment,
    *,
    decision: RiskDecision | None = None,
    authentication: Authentication | None = None,
    was_asked: bool = True,
    contradiction: str = "",
    chain: Chain | None = None,
    status: ChainStatus | None = None,
) -> PaymentExplanation:
    """The explanation of a payment. ``was_asked``: whether an acquirer was called for it; ``contradiction``: the kind
    of an exchange in which the acquirer contradicts the outcome; ``chain``, ``status``: its chain and that chain's
    state, of which money and the words to the shopper speak."""
    code = resolve_result_code(payment)
    who, happened = _BY_CODE.get(code) or FAMILY_EXPLANATIONS[result_codes.find_result_family(code)]
    more: list[str] = []
    todo = get_developer_advice(code)
    asked = _explain_what_a_person_asks(payment, contradiction)
    if decision is not None and decision.code and decision.code == payment.result_code:
        who = DecisionMaker.RISK if decision.set_key else DecisionMaker.GUARD
        happened = _RISK[decision.outcome]
        more += [_describe_rule(reason) for reason in decision.reasons]
    elif authentication is not None and authentication.code and authentication.code == payment.result_code:
        who = DecisionMaker.AUTHENTICATION
        more.append(_describe_authentication(authentication))
    elif asked:
        happened, todo = asked
    elif is_held(payment):
        who, happened = DecisionMaker.ISSUER, _PART_IS_HELD
    elif payment.status == Status.DECLINED and PARTIAL_APPROVAL_DETAIL in payment.answer.get("resultDetails", {}):
        who, happened = DecisionMaker.SETUP, _PART_NOT_TAKEN
    elif payment.status == Status.DECLINED and not was_asked and code == ACQUIRER_UNREACHABLE:
        happened = _LEFT_ALONE
    elif payment.status == Status.DECLINED and not was_asked and who in (DecisionMaker.ISSUER, DecisionMaker.ACQUIRER):
        who = DecisionMaker.GATEWAY
        happened = "It was refused before the acquirer was asked."
    if payment.route:
        more += [
            *route_explanation.explain_failover(payment.route),
            _("Acquirer account: %s") % payment.route.get("name", payment.acquirer_merchant_id),
        ]
    more += list_acquirer_messages(payment)
    if (liability := resolve_fraud_liability(payment)) is not None:
        more.append(_(FRAUD_LIABILITY_TEXTS[liability]))
    effect = _MONEY_MAY_HAVE_MOVED if contradiction else _describe_money_effect(payment)
    own = str(describe_open_money(payment) or _(effect))
    money, shopper = describe_chain(status, chain) if chain is not None and status is not None else (own, None)
    money = own if contradiction and payment.pk == payment.chain else money
    if asked or (payment.payment_type in GIVING_TYPES and payment.status == Status.DECLINED):
        shopper = None  # the codes' words are of a payment that a shopper makes
    elif not shopper or payment.status != Status.APPROVED:
        shopper = _translate(get_shopper_message(code))
    return PaymentExplanation(
        decided_by=who,
        happened=_(happened),
        todo=_(todo),
        shopper=shopper,
        money=money,
        step=own if payment.pk != payment.chain else "",
        code=code,
        description=describe_result(code),
        more=tuple(more),
    )


def _explain_what_a_person_asks(payment: Payment, contradiction: str) -> tuple[str, str] | None:
    """Returns (what happened, what to do) of a payment about which a person asks the acquirer, or has asked; None of
    any other."""
    if contradiction == UNPROVEN_EXCHANGE:
        return _MAY_STAND, _ASK_WHETHER_IT_STANDS
    if contradiction == DENIED_EXCHANGE:
        return _DENIED, _ASK_WHAT_IS_TRUE
    if is_entered_as_not_paid(payment):
        return _ENTERED_AS_NOT_MADE, _MAKE_IT_AGAIN
    if payment.status != Status.IN_DOUBT or not is_for_person(payment):
        return None
    if payment.payment_type in ("CP", "RV"):
        return _REPEATS_WITHOUT_VERDICT, _ASK_ABOUT_REVERSAL if payment.payment_type == "RV" else _ASK_ABOUT_CAPTURE
    happened = _PAYOUT_WITHOUT_ANSWER if is_card_payout(payment) else _NOT_TAKEN_BACK
    return happened, _ASK_ABOUT_REFUND if payment.payment_type == "RF" else _ASK_ABOUT_PAYOUT


FRAUD_LIABILITY_TEXTS: Final[Mapping[FraudLiability, str]] = MappingProxyType(
    {
        FraudLiability.ISSUER: "Liability for fraud: the issuer, the shopper was authenticated.",
        FraudLiability.MERCHANT_EXEMPTED: "Liability for fraud: you, the payment was exempted from authentication.",
        FraudLiability.MERCHANT_INITIATED: "Liability for fraud: you, the payment was initiated by you.",
        FraudLiability.MERCHANT_ORDER: "Liability for fraud: you, it was a mail or telephone order.",
        FraudLiability.MERCHANT_UNAUTHENTICATED: "Liability for fraud: you, the shopper was not authenticated.",
    }
)
"""Liability → its sentence. A test asks for every one."""

_PAYOUT_WITHOUT_ANSWER: Final = (
    "The acquirer gave no answer that decides. It cannot be asked by message, and a payout to a card is not taken "
    "back: it stays in doubt until a person has asked."
)
_NOT_TAKEN_BACK: Final = (
    "The acquirer gave no answer that decides, and does not take it back: it stays in doubt until a person has asked. "
    "The acquirer is still asked to take it back, but seldom."
)
_REPEATS_WITHOUT_VERDICT: Final = (
    "The first answer was lost, and those to its repeats do not say whether it was carried out: it stays in "
    "doubt until a person has asked. It is still repeated, but seldom."
)
_ASK_ABOUT_CAPTURE: Final = (
    "Do not capture it again: it may have been captured. Ask the acquirer, and have its answer entered on the "
    "capture's page."
)
_ASK_ABOUT_REVERSAL: Final = (
    "Do not refund it: it may have been reversed. Ask the acquirer, and have its answer entered on the reversal's page."
)
_ASK_ABOUT_REFUND: Final = (
    "Do not refund again: the money may have arrived. Ask the acquirer, and have its answer entered on the refund's "
    "page."
)
_ENTERED_AS_NOT_MADE: Final = "A person has asked the acquirer, which says that it was never made."
_MAKE_IT_AGAIN: Final = "It can be made again."
_MAY_STAND: Final = (
    "It was declined here and taken back, but the acquirer had approved it, and says only that nothing is left to take "
    "back: its approval may still stand."
)
_ASK_WHETHER_IT_STANDS: Final = "Ask the acquirer whether its approval still stands. If so, have it taken back there."
_MONEY_MAY_HAVE_MOVED: Final = "Whether money moved is not known: a person has to ask the acquirer."
_DENIED: Final = "It was entered as made, but the acquirer declined it or took it back after all."
_ASK_WHAT_IS_TRUE: Final = "Ask the acquirer which of the two is true before it is made again."
_ASK_ABOUT_PAYOUT: Final = (
    "Do not pay out again: the money may have arrived. Ask the acquirer, and have its answer entered on the payment's "
    "page."
)
_PART_NOT_TAKEN: Final = (
    "The bank approved only a part of the amount, and the rest was not paid, or this channel takes no parts: the "
    "approval was reversed."
)
_PART_IS_HELD: Final = (
    "The bank approved only a part of the amount. It is held until the shopper has paid the rest with other means, and "
    "given back if they do not."
)
_LEFT_ALONE: Final = (
    "Nothing was sent: the account at the acquirer was left alone after failures, or too many payments waited for it "
    "already, and no other account could take it. The acquirers' health tells which."
)


def _translate(text: str | None) -> str | None:
    return _(text) if text else None


_RISK: Final[Mapping[str, str]] = MappingProxyType(
    {
        RiskOutcome.DECLINE: "A risk rule refused it before money moved, or had it taken back.",
        RiskOutcome.REVIEW: "It was accepted, but a risk rule wants a person to look at it.",
        RiskOutcome.ACCEPT: "The risk check had nothing against it.",
    }
)


def _describe_rule(reason: Mapping[str, object]) -> str:
    values = {"rule": reason.get("rule", ""), "why": reason.get("why", "")}
    if isinstance(score := reason.get("score"), int):
        return _("Rule “%(rule)s”: %(why)s (%(score)s points)") % {**values, "score": f"{score:+d}"}
    return _("Rule “%(rule)s”: %(why)s") % values


def _describe_authentication(row: Authentication) -> str:
    return _("3-D Secure %(version)s ended with status %(status)s%(reason)s (%(how)s).") % {
        "version": row.version,
        "status": row.trans_status or "-",
        "how": row.flow or row.step,
        "reason": _(", reason %s") % row.trans_status_reason if row.trans_status_reason else "",
    }


def list_acquirer_messages(payment: Payment) -> list[str]:
    """The acquirer's own message beside the result code."""
    details = payment.answer.get("resultDetails", {})
    named = (
        ("The acquirer's own code", details.get("AcquirerResponse")),
        ("Merchant advice code", details.get("MerchantAdviceCode")),
        ("Approved in part", details.get(PARTIAL_APPROVAL_DETAIL)),
        ("Paid together with", details.get(PARTS_DETAIL)),
        ("Network token", TOKEN_USE_TEXTS.get(read_token_use(payment.answer))),
        ("Address check (AVS)", AVS_RESULT_TEXTS.get(payment.answer.get("avs", ""))),
        ("Security code (CVV)", CVV_RESULT_TEXTS.get(payment.answer.get("cvv", ""), payment.answer.get("cvv"))),
    )
    return [format_labelled(_(name), _(str(value))) for name, value in named if value]


TOKEN_USE_TEXTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        TokenUse.USED: "sent instead of the card number",
        TokenUse.UNAVAILABLE: "no cryptogram came, the card number was sent",
        TokenUse.DECLINED: "declined, the card number was sent after it",
    }
)


AVS_RESULT_TEXTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "A": "the address matches, the postcode does not", "Z": "the postcode matches, the address does not",
        "N": "neither address nor postcode matches", "U": "could not be checked", "F": "address and postcode match",
    }
)  # fmt: skip
"""Source: Part B, Payment response (result.avsResponse)."""
CVV_RESULT_TEXTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "M": "matches", "N": "does not match", "P": "was not checked", "S": "should be on the card, but was not sent",
        "U": "the bank does not check it",
    }
)  # fmt: skip


def _describe_money_effect(payment: Payment) -> str:
    match payment.status:
        case Status.APPROVED:
            return MONEY_EFFECT_TEXTS.get(payment.payment_type, "No money is moved by this.")
        case Status.DECLINED:
            return "No money moved."
        case Status.PENDING:
            return "No money moved yet."
    return "Whether money moved is not known yet; the acquirer is being asked."

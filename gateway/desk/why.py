"""Why a payment is as it is, in plain words: what happened, who decided, what to do, what the shopper may be told.

A table by result-code family; what was kept about the single payment (a risk decision, an authentication, that nobody
was asked) is more exact than its family and goes first. Source: design, J4, step 4.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from django.utils.translation import gettext as _

from gateway import results
from gateway.advice import advice, shopper_text
from gateway.connectors.guarded import OUT_OF_REACH
from gateway.desk import routed
from gateway.models import Authentication, Payment, RiskDecision, Status
from gateway.payments.answer import code_of
from gateway.results import Family
from gateway.risk.screening import Outcome


class Who(enum.Enum):
    """Who decided, as a clerk reads it."""

    SHOPPER = "the shopper"
    ISSUER = "the shopper's bank"
    ACQUIRER = "the acquirer"
    RISK = "your risk rules"
    GUARD = "the guard against card testing"
    AUTHENTICATION = "3-D Secure"
    SETUP = "your set-up here"
    REQUEST = "the gateway, from what was sent"
    GATEWAY = "the gateway"
    NOBODY = "nobody yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """``shopper``: what they may be told, None where only the merchant can act. ``more``: the details that were kept,
    one a line. ``money``: whether any moved."""

    who: Who
    happened: str
    todo: str
    shopper: str | None
    money: str
    code: str
    description: str
    more: tuple[str, ...] = ()


BY_FAMILY: Final[Mapping[Family, tuple[Who, str]]] = MappingProxyType(
    {
        Family.SUCCESS: (Who.ACQUIRER, "It was accepted."),
        Family.REVIEW: (Who.RISK, "It was accepted, but something about it should be looked at before you deliver."),
        Family.PENDING: (Who.NOBODY, "It is open: the shopper is on the way, or the acquirer has not answered yet."),
        Family.PENDING_LONG: (Who.NOBODY, "It is open: the bank confirms or refuses it within some days."),
        Family.REJECTED_3DS: (Who.AUTHENTICATION, "The shopper could not be authenticated."),
        Family.REJECTED_BANK: (Who.ISSUER, "The bank that issued the card or account said no."),
        Family.REJECTED_COMMUNICATION: (Who.ACQUIRER, "The acquirer could not be reached or did not answer in time."),
        Family.REJECTED_SYSTEM: (Who.ACQUIRER, "A system on the way did not work."),
        Family.REJECTED_ASYNC: (Who.SHOPPER, "The shopper left, cancelled, or ran out of time at the bank or wallet."),
        Family.SOFT_DECLINE: (Who.ISSUER, "The bank wants the shopper to be authenticated first."),
        Family.REJECTED_EXTERNAL_RISK: (Who.RISK, "A risk check refused it."),
        Family.REJECTED_ADDRESS_RISK: (Who.RISK, "The billing address did not match what the bank knows."),
        Family.REJECTED_3DS_RISK: (Who.AUTHENTICATION, "Authentication was refused or not available for this card."),
        Family.REJECTED_BLACKLIST: (Who.RISK, "The card, account or shopper stands on a block list."),
        Family.REJECTED_RISK_VALIDATION: (Who.RISK, "A limit was reached, or the same was sent twice."),
        Family.CONFIGURATION: (Who.SETUP, "This channel is not set up for what was asked."),
        Family.REGISTRATION: (Who.REQUEST, "The stored means of payment could not be used."),
        Family.JOB: (Who.REQUEST, "The schedule is not one that can be carried out."),
        Family.REFERENCE: (Who.REQUEST, "The earlier payment does not allow it: its type, its state, or what remains."),
        Family.FORMAT: (Who.REQUEST, "The request was not well formed."),
        Family.ADDRESS: (Who.REQUEST, "The address was not well formed."),
        Family.CONTACT: (Who.REQUEST, "The contact fields were not well formed."),
        Family.ACCOUNT: (Who.REQUEST, "The card or account fields cannot be right."),
        Family.AMOUNT: (Who.REQUEST, "Amount or currency cannot be right."),
        Family.RISK_MANAGEMENT: (Who.RISK, "The risk check lacked fields that it needs."),
        Family.CHARGEBACK: (Who.ISSUER, "The shopper's bank took the money back."),
        Family.RATING: (Who.ACQUIRER, "It was accepted."),
        Family.ACCOUNT_UPDATER: (Who.ACQUIRER, "The update of the account was refused."),
        Family.ADVICE_BLOCK: (Who.ISSUER, "The bank said that this card must not be sent again."),
    }
)  # fmt: skip
"""Family → who decided as a rule, and what happened. A test asks for every family."""

_BY_CODE: Final[Mapping[str, tuple[Who, str]]] = MappingProxyType(
    {
        "000.200.001": (Who.NOBODY, "The acquirer has not answered yet; it is being asked until it knows."),
        "800.110.100": (Who.GATEWAY, "The same merchantTransactionId came before, and this channel refuses a second."),
        "800.100.153": (Who.ISSUER, "The security code was wrong."),
        "800.120.402": (Who.GATEWAY, "Another request about the same was being made at this moment."),
    }
)  # fmt: skip

TAKES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "DB": "The money was taken.", "PA": "The money is reserved, and not taken yet.", "CP": "The money was taken.",
        "CD": "The money was paid out.", "RF": "The money goes back to the shopper.",
        "RV": "The reservation or the charge was undone.", "RB": "The money was taken once more.",
        "RC": "The money has come in.", "CB": "The money was taken back by the shopper's bank.",
        "CR": "The money came back to you.",
    }
)  # fmt: skip
"""What an approved payment of this type did with money; other types move none."""


def why(
    payment: Payment,
    *,
    decision: RiskDecision | None = None,
    authentication: Authentication | None = None,
    was_asked: bool = True,
) -> Why:
    """``was_asked``: whether an acquirer was ever asked about it."""
    code = code_of(payment)
    who, happened = _BY_CODE.get(code) or BY_FAMILY[results.family(code)]
    more: list[str] = []
    if decision is not None and decision.code and decision.code == payment.result_code:
        who = Who.RISK if decision.set_key else Who.GUARD
        happened = _RISK[decision.outcome]
        more += [_rule(reason) for reason in decision.reasons]
    elif authentication is not None and authentication.code and authentication.code == payment.result_code:
        who = Who.AUTHENTICATION
        more.append(_authenticated(authentication))
    elif payment.status == Status.DECLINED and not was_asked and code == OUT_OF_REACH:
        happened = _LEFT_ALONE
    elif payment.status == Status.DECLINED and not was_asked and who in (Who.ISSUER, Who.ACQUIRER):
        who = Who.GATEWAY
        happened = "It was refused before the acquirer was asked."
    if payment.route:
        more += [*routed.tried(payment.route), _("Acquirer account: %s") % payment.route.get("name", payment.account)]
    more += _said(payment)
    return Why(
        who=who, happened=_(happened), todo=_(advice(code)), shopper=_spoken(shopper_text(code)),
        money=_(_money(payment)),
        code=code, description=results.result(code).description, more=tuple(more),
    )  # fmt: skip


_LEFT_ALONE: Final = (
    "Nothing was sent: the account at the acquirer was left alone after failures, or too many payments waited for it "
    "already, and no other account could take it. The acquirers' health tells which."
)


def _spoken(text: str | None) -> str | None:
    return _(text) if text else None


_RISK: Final[Mapping[str, str]] = MappingProxyType(
    {
        Outcome.DECLINE: "A risk rule refused it before money moved, or had it taken back.",
        Outcome.REVIEW: "It was accepted, but a risk rule wants a person to look at it.",
        Outcome.ACCEPT: "The risk check had nothing against it.",
    }
)


def _rule(reason: Mapping[str, object]) -> str:
    told = {"rule": reason.get("rule", ""), "why": reason.get("why", "")}
    if isinstance(score := reason.get("score"), int):
        return _("Rule “%(rule)s”: %(why)s (%(score)s points)") % {**told, "score": f"{score:+d}"}
    return _("Rule “%(rule)s”: %(why)s") % told


def _authenticated(row: Authentication) -> str:
    return _("3-D Secure %(version)s ended with status %(status)s%(reason)s (%(how)s).") % {
        "version": row.version, "status": row.trans_status or "-", "how": row.flow or row.step,
        "reason": _(", reason %s") % row.trans_status_reason if row.trans_status_reason else "",
    }  # fmt: skip


def _said(payment: Payment) -> list[str]:
    """What the acquirer's answer says beside the code."""
    details = payment.answer.get("resultDetails", {})
    named = (
        ("The acquirer's own code", details.get("AcquirerResponse")),
        ("Merchant advice code", details.get("MerchantAdviceCode")),
        ("Address check (AVS)", AVS.get(payment.answer.get("avs", ""))),
        ("Security code (CVV)", CVV.get(payment.answer.get("cvv", ""), payment.answer.get("cvv"))),
    )
    return [f"{_(name)}: {_(str(value))}" for name, value in named if value]


AVS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "A": "the address matches, the postcode does not", "Z": "the postcode matches, the address does not",
        "N": "neither address nor postcode matches", "U": "could not be checked", "F": "address and postcode match",
    }
)  # fmt: skip
"""Source: Part B, Payment response (result.avsResponse)."""
CVV: Final[Mapping[str, str]] = MappingProxyType(
    {
        "M": "matches", "N": "does not match", "P": "was not checked", "S": "should be on the card, but was not sent",
        "U": "the bank does not check it",
    }
)  # fmt: skip


def _money(payment: Payment) -> str:
    match payment.status:
        case Status.APPROVED:
            return TAKES.get(payment.payment_type, "No money is moved by this.")
        case Status.DECLINED:
            return "No money moved."
        case Status.PENDING:
            return "No money moved yet."
    return "Whether money moved is not known yet; the acquirer is being asked."

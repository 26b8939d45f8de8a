"""Replay subject: what risk can see of a stored payment, and which fields were not stored.

Rules never see a card number or a security code, so most of a payment can be judged again. Fields that were not stored
are named with the reason; a trial (gateway.backoffice.risk.rule_trials) shows it beside each rule. Source:
docs/decisions/0039.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from gateway.catalogue.endpoints import PAYMENT_ENDPOINT
from gateway.catalogue.structure import Echo
from gateway.connectors.acquirer_message import flatten_body
from gateway.connectors.means import Card
from gateway.models import Payment, Status
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE
from gateway.risk.card_testing import CARD_TESTING_CODES as GUARD_CODES
from gateway.risk.evaluation import AVS_DECLINED_CODE, AVS_REVIEW_CODE, CVV_DECLINED_CODE, CVV_REVIEW_CODE, RiskOutcome
from gateway.risk.fields import RISK_FIELDS, RiskSubject, build_risk_subject
from gateway.vault.sealing import current_vault, parse_key_id

REPLAY_BIN_FIELDS: Final = ("card.bin", "card.issuerCountry", "card.type", "card.level")
ACCOUNT_NOT_STORED: Final = "account"
FINGERPRINT_KEY_RETIRED: Final = "key"
BIN_NOT_STORED: Final = "bin"
VALUE_NOT_STORED: Final = "value"
ACQUIRER_NOT_ASKED: Final = "answer"
_AFTER: Final[Mapping[str, RiskOutcome]] = MappingProxyType(
    {
        AVS_DECLINED_CODE: RiskOutcome.DECLINE, CVV_DECLINED_CODE: RiskOutcome.DECLINE,
        AVS_REVIEW_CODE: RiskOutcome.REVIEW, CVV_REVIEW_CODE: RiskOutcome.REVIEW,
    }
)  # fmt: skip
_VOIDED_CODES: Final = (AVS_DECLINED_CODE, CVV_DECLINED_CODE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySubject:
    """A stored payment as risk sees it. ``lost``: field → key of UNJUDGED_REASON_TITLES. ``approved``: whether there
    was an acquirer's approval to judge."""

    subject: RiskSubject
    lost: Mapping[str, str]
    approved: bool


def rebuild_risk_subject(payment: Payment) -> ReplaySubject:
    """The risk subject of a stored first payment."""
    sent = flatten_body(payment.request)
    card = payment.answer.get("card") if payment.means == Card.kind else None
    card_bin = str(card.get("bin", "")) if isinstance(card, Mapping) else ""
    lost = {
        name: VALUE_NOT_STORED
        for name, sources in _list_unstored_parameters().items()
        if any(source in sent for source in sources)
    }
    accounts: tuple[str, ...] = ()
    if payment.means and payment.means_fingerprint is None:
        lost["account"] = ACCOUNT_NOT_STORED
    elif payment.means_fingerprint is not None:
        accounts = (bytes(payment.means_fingerprint).hex(),)
        if payment.means_sealed is not None and parse_key_id(payment.means_sealed) != current_vault().primary:
            lost["account"] = FINGERPRINT_KEY_RETIRED
    if payment.means == Card.kind and not card_bin:
        lost |= dict.fromkeys(REPLAY_BIN_FIELDS, BIN_NOT_STORED)
    subject = build_risk_subject(
        sent,
        money=payment.money,
        brand=payment.brand,
        payment_type=payment.payment_type,
        now=payment.created_at,
        card_bin=card_bin,
        accounts=accounts,
    )
    return ReplaySubject(subject=subject, lost=lost, approved=was_acquirer_approved(payment))


@lru_cache(maxsize=1)
def _list_unstored_parameters() -> Mapping[str, tuple[str, ...]]:
    """Field → its parameters that are not stored as they were sent."""
    found = {
        row.name: tuple(
            name
            for name in row.sources
            if (known := PAYMENT_ENDPOINT.catalogue.find(name)) is None or known[0].param.echo is not Echo.YES
        )
        for row in RISK_FIELDS.values()
    }
    return MappingProxyType({name: sources for name, sources in found.items() if sources})


def was_acquirer_approved(payment: Payment) -> bool:
    """Whether the acquirer approved, even if a rule set then voided the approval."""
    return payment.status == Status.APPROVED or payment.result_code in _VOIDED_CODES


def find_original_outcome(payment: Payment) -> RiskOutcome:
    """The risk decision when the payment was made; ACCEPT if nothing screened it."""
    decision = getattr(payment, "risk_decision", None)
    said = RiskOutcome(decision.outcome) if decision is not None else RiskOutcome.ACCEPT
    return choose_stricter_outcome(said, _AFTER.get(payment.result_code, RiskOutcome.ACCEPT))


def choose_stricter_outcome(one: RiskOutcome, other: RiskOutcome) -> RiskOutcome:
    """The stricter of two outcomes."""
    order = list(RiskOutcome)
    return max(one, other, key=order.index)


def explain_unscreened(payment: Payment) -> str:
    """Why no rule was asked; '' if rules were. ``fault``: the request was invalid, such as a wrong number; ``guard``:
    the card-testing guard stopped it."""
    if payment.payment_type == REGISTRATION_PAYMENT_TYPE:
        return "fault"
    if payment.means and payment.means_sealed is None:
        return "fault"
    decision = getattr(payment, "risk_decision", None)
    if decision is not None and not decision.set_key and decision.code in GUARD_CODES.values():
        return "guard"
    return ""

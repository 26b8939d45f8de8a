"""What risk can still see of a kept payment: its subject, and what of it was not kept.

Rules never see a card number or a security code, so most of a payment can be judged again. What cannot is named field
by field, with the reason in words: a trial (gateway.desk.risk_trials) says it beside each rule.
Source: issue "back office", risk lists and rules with a trial run over past payments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

from gateway.catalogue.endpoints import PAYMENTS
from gateway.catalogue.structure import Echo
from gateway.connectors.means import Card
from gateway.connectors.message import flat
from gateway.models import Payment, Status
from gateway.payments.endings import REGISTER
from gateway.risk.fields import FIELDS, Subject, subject_of
from gateway.risk.guard import CODES as GUARD_CODES
from gateway.risk.screening import (
    AVS_DECLINED,
    AVS_REVIEW,
    CVV_DECLINED,
    CVV_REVIEW,
    Outcome,
)
from gateway.vault import key_of, vault

BIN_FIELDS: Final = ("card.bin", "card.issuerCountry", "card.type", "card.level")
NO_ACCOUNT: Final = "account"
OLD_KEY: Final = "key"
NO_BIN: Final = "bin"
NOT_ECHOED: Final = "value"
NOT_ASKED: Final = "answer"
REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        NO_ACCOUNT: "the card or account is not kept with them, not even its fingerprint",
        OLD_KEY: "their cards are fingerprinted under an older key of the vault; seal them anew with vault_key first",
        NO_BIN: "the card's first digits are not kept with them",
        NOT_ECHOED: "the field is kept masked, or not at all",
        NOT_ASKED: "the acquirer did not approve them, so it gave no answer about address and security code that "
        "counts; the security code itself is never kept",
    }
)
"""Why a rule cannot be judged on some payments."""
_AFTER: Final[Mapping[str, Outcome]] = MappingProxyType(
    {
        AVS_DECLINED: Outcome.DECLINE, CVV_DECLINED: Outcome.DECLINE,
        AVS_REVIEW: Outcome.REVIEW, CVV_REVIEW: Outcome.REVIEW,
    }
)  # fmt: skip
_TAKEN_BACK: Final = (AVS_DECLINED, CVV_DECLINED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """``lost``: field → key of REASONS. ``approved``: the acquirer's approval was there to be judged."""

    subject: Subject
    lost: Mapping[str, str]
    approved: bool


def seen(payment: Payment) -> Seen:
    """What risk sees of a kept first payment today."""
    sent = flat(payment.request)
    card = payment.answer.get("card") if payment.means == Card.kind else None
    card_bin = str(card.get("bin", "")) if isinstance(card, Mapping) else ""
    lost = {name: NOT_ECHOED for name, sources in _hidden().items() if any(source in sent for source in sources)}
    accounts: tuple[str, ...] = ()
    if payment.means and payment.means_fingerprint is None:
        lost["account"] = NO_ACCOUNT
    elif payment.means_fingerprint is not None:
        accounts = (bytes(payment.means_fingerprint).hex(),)
        if payment.means_sealed is not None and key_of(payment.means_sealed) != vault().primary:
            lost["account"] = OLD_KEY
    if payment.means == Card.kind and not card_bin:
        lost |= dict.fromkeys(BIN_FIELDS, NO_BIN)
    subject = subject_of(
        sent, money=payment.money, brand=payment.brand, payment_type=payment.payment_type, now=payment.created_at,
        card_bin=card_bin, accounts=accounts,
    )  # fmt: skip
    return Seen(subject=subject, lost=lost, approved=acquirer_approved(payment))


@lru_cache(maxsize=1)
def _hidden() -> Mapping[str, tuple[str, ...]]:
    """Field → those of its parameters that a payment does not keep as they were sent."""
    found = {
        row.name: tuple(name for name in row.sources if (known := PAYMENTS.catalogue.find(name)) is None
                        or known[0].param.echo is not Echo.YES)
        for row in FIELDS.values()
    }  # fmt: skip
    return MappingProxyType({name: sources for name, sources in found.items() if sources})


def acquirer_approved(payment: Payment) -> bool:
    """Whether the acquirer said yes, also where a rule set then took the approval back."""
    return payment.status == Status.APPROVED or payment.result_code in _TAKEN_BACK


def outcome_then(payment: Payment) -> Outcome:
    """What risk decided about a payment when it was made; ACCEPT where nothing screened it."""
    decision = getattr(payment, "risk_decision", None)
    said = Outcome(decision.outcome) if decision is not None else Outcome.ACCEPT
    return worse(said, _AFTER.get(payment.result_code, Outcome.ACCEPT))


def worse(one: Outcome, other: Outcome) -> Outcome:
    order = list(Outcome)
    return max(one, other, key=order.index)


def never_screened(payment: Payment) -> str:
    """Why the rules never had a say, '' where they had: ``fault`` of the request itself, such as an invalid number;
    stopped by the ``guard`` against card testing."""
    if payment.payment_type == REGISTER:
        return "fault"
    if payment.means and payment.means_sealed is None:
        return "fault"
    decision = getattr(payment, "risk_decision", None)
    if decision is not None and not decision.set_key and decision.code in GUARD_CODES.values():
        return "guard"
    return ""

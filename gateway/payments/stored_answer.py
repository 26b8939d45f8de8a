"""The JSON column ``Payment.answer``: what responses show of a payment, and what the payment keeps for itself.

This module alone names the private members, so that no two modules can mean different things by one key, and none of
them reaches a response. The shown ones are read by gateway.payments.rendering. Source: docs/decisions/0058.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

from django.db.models import DecimalField
from django.db.models.fields.json import KeyTextTransform, KeyTransform
from django.db.models.functions import Cast

from gateway.models import Payment
from gateway.payments.nested_values import deep_merge

_FACTS: Final = "facts"
_RETURN_REASON: Final = "returnReason"
_TRANSACTION_LINK: Final = "transactionLink"
_NETWORK_TOKEN: Final = "networkToken"  # noqa: S105 - a member's name
_COLLECT_UNTIL: Final = "collectUntil"
_EARLIER_PARTS: Final = "earlierParts"
_HELD_PART: Final = "heldPart"
_AUTHENTICATION_FACTS: Final = "threeDSecure"


class TokenUse(enum.StrEnum):
    """What was sent of a stored card that has a network token: the token; the card number, since the token service gave
    no cryptogram; the card number after the issuer had declined the token."""

    USED = "USED"
    UNAVAILABLE = "UNAVAILABLE"
    DECLINED = "DECLINED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPolicy:
    """What the payment's rule set says about an approval. ``review``: the code of a review, '' for none; ``avs`` and
    ``cvv``: what to do about an address or security code answer."""

    review: str = ""
    avs: Mapping[str, str] = field(default_factory=dict)
    cvv: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierDecline:
    """The issuer's decline of the authorization attempt before the present one. ``details``: as ``resultDetails``."""

    code: str
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldPart:
    """An approval in part that waits for the rest. ``amount``: what was granted, ``granted_at``: when, in ISO format;
    ``code``, ``network_reference``, ``valid_for_s``: as the acquirer answered; ``trace_number``: of the payment's
    message, which a reversal names."""

    amount: str
    granted_at: str
    code: str
    network_reference: str = ""
    valid_for_s: float | None = None
    trace_number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedDispute:
    """What a processor said of the dispute behind a chargeback. ``answer_by``: ISO time until which it takes evidence;
    ``scheme_reason``: the card network's reason code; '' for what it did not say."""

    answer_by: str = ""
    scheme_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateFacts:
    """What a payment keeps for itself between its phases.

    - ``agreement_references``: parameters of the agreement for the acquirer, sent once the shopper is back and repeated
      when the payment is reversed.
    - ``approval_policy``: what its approval has to meet; None if no rule set screened it.
    - ``network_reference``: the card scheme's reference of a payment that created a registration, for agreements that
      are made with the registration later.
    - ``transaction_link``: the id by which Mastercard links what follows the payment.
    - ``refused_code``, ``refused_details``: code and resultDetails of the decline, of an approval that failed the
      policy and whose void is not confirmed yet.
    - ``whole_amount_only``: an approval for less than the amount is refused like one that fails the policy
      (``Channel.partial_approvals`` as the payment began).
    - ``attempt``: which authentication it is at, 2 after a soft decline (gateway.payments.step_up); attempts at
      acquirers are counted by :func:`get_attempt_number`.
    - ``exemption``: the one that its channel's rules asked for (gateway.payments.exempting).
    - ``earlier_decline``: of the attempt before, the payment's result if the present one was not made; None for the
      first attempt.
    - ``renews_card``: it is paid with a new expiry date of its stored card, which its approval writes into the
      registration.
    - ``network_token``: a TokenUse, '' where its card has no token (gateway.payments.network_tokens).
    - ``collect_until``: ISO time by the merchant's clock, until when an approval in part is held for the rest; '' where
      it is not.
    - ``earlier_parts``: ids of the payments that hold the other parts of the amount, of a payment of the rest.
    - ``held_part``: its own approval in part, from when it is held until the whole amount is there; a payment whose
      part is given back keeps it (gateway.payments.held_parts).
    - ``dispute``: of a chargeback that its processor reported, for its case.
    """

    agreement_references: Mapping[str, str] = field(default_factory=dict)
    approval_policy: ApprovalPolicy | None = None
    network_reference: str = ""
    transaction_link: str = ""
    refused_code: str = ""
    refused_details: Mapping[str, str] = field(default_factory=dict)
    whole_amount_only: bool = False
    renews_card: bool = False
    attempt: int = 1
    exemption: str = ""
    earlier_decline: EarlierDecline | None = None
    network_token: str = ""
    collect_until: str = ""
    earlier_parts: tuple[str, ...] = ()
    held_part: HeldPart | None = None
    dispute: ReportedDispute | None = None

    def as_json(self) -> dict[str, Any]:
        """The members of ``Payment.answer``; none for what is empty."""
        members: dict[str, Any] = {}
        for member, name in _FIELDS.items():
            value = getattr(self, name)
            if value and (name, value) != ("attempt", 1) and (json := _to_json(value)):
                members[member] = json
        return members


_OTHER_NAMES: Final = {
    "agreement_references": "agreed",
    "approval_policy": "riskAfter",
    "refused_code": "refusedApproval",
}
_FIELDS: Final = {
    _OTHER_NAMES.get(one.name) or re.sub("_(.)", lambda letter: letter[1].upper(), one.name): one.name
    for one in fields(PrivateFacts)
}
"""Member of ``Payment.answer`` → field of PrivateFacts: called alike, but for the other names."""

_OBJECTS: Final = {
    "approval_policy": ApprovalPolicy,
    "earlier_decline": EarlierDecline,
    "held_part": HeldPart,
    "dispute": ReportedDispute,
}
"""Field of PrivateFacts → what it is, if its member is an object."""


def _to_json(value: Any) -> Any:
    match value:
        case ApprovalPolicy():
            return {name: _to_json(rule) for name in value.__slots__ if (rule := getattr(value, name))}
        case EarlierDecline() | HeldPart() | ReportedDispute():
            return {name: _to_json(getattr(value, name)) for name in value.__slots__}
        case str():
            return str(value)
        case Mapping():
            return dict(value)
        case tuple():
            return list(value)
    return value


def read_private_facts(answer: Mapping[str, Any]) -> PrivateFacts:
    """The private facts of a payment, from its ``answer``."""
    kept: dict[str, Any] = {}
    for member in answer.keys() & _FIELDS.keys():
        name, value = _FIELDS[member], answer[member]
        if name in _OBJECTS:
            value = _OBJECTS[name](**value)
        kept[name] = tuple(value) if isinstance(value, list) else value
    return PrivateFacts(**kept)


def read_held_part(answer: Mapping[str, Any]) -> HeldPart | None:
    """``held_part`` of :class:`PrivateFacts` alone."""
    kept = answer.get(_HELD_PART)
    return HeldPart(**kept) if kept else None


def read_earlier_parts(answer: Mapping[str, Any]) -> tuple[str, ...]:
    """``earlier_parts`` of :class:`PrivateFacts` alone: it is read of every payment that is completed."""
    return tuple(answer.get(_EARLIER_PARTS, ()))


def read_collection_end(answer: Mapping[str, Any]) -> str:
    """``collect_until`` of :class:`PrivateFacts` alone."""
    return str(answer.get(_COLLECT_UNTIL, ""))


def drop_held_part(answer: Mapping[str, Any]) -> dict[str, Any]:
    """``answer`` of a payment whose part is held no longer, since the whole amount is there."""
    return {name: value for name, value in answer.items() if name not in (_HELD_PART, _COLLECT_UNTIL)}


def end_collection(answer: Mapping[str, Any]) -> dict[str, Any]:
    """``answer`` of a payment that holds no approval in part any more. What it held is kept."""
    return {name: value for name, value in answer.items() if name != _COLLECT_UNTIL}


def build_held_amount_column() -> Cast:
    """The amount of ``held_part`` in a query of payments; NULL for a payment without one."""
    text = KeyTextTransform("amount", KeyTransform(_HELD_PART, "answer"))
    return Cast(text, DecimalField(max_digits=18, decimal_places=2))


def get_attempt_number(payment: Payment) -> int:
    """Which authorization attempt a payment is at: one more after a step-up, a network token's decline, and each
    cascade."""
    cascades: int = (payment.route or {}).get("cascades", 0)
    kept = read_private_facts(payment.answer)
    return kept.attempt + cascades + (kept.network_token == TokenUse.DECLINED)


def read_token_use(answer: Mapping[str, Any]) -> str:
    """``network_token`` of :class:`PrivateFacts` alone: it is read of every payment."""
    return str(answer.get(_NETWORK_TOKEN, ""))


def read_transaction_link(answer: Mapping[str, Any]) -> str:
    """``transaction_link`` of :class:`PrivateFacts` alone."""
    return str(answer.get(_TRANSACTION_LINK, ""))


def was_sent_with_token(answer: Mapping[str, Any]) -> bool:
    """Whether a payment was sent with the network token of its stored card."""
    return read_token_use(answer) == TokenUse.USED


def set_token_use(answer: Mapping[str, Any], use: TokenUse | None) -> dict[str, Any]:
    """``answer`` of a payment that is sent with its card's network token, or without (None: it is not said why)."""
    rest = {name: value for name, value in answer.items() if name != _NETWORK_TOKEN}
    return rest if use is None else rest | PrivateFacts(network_token=use).as_json()


def merge_shown_facts(answer: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """``answer`` with nested ``facts`` merged into what responses show."""
    return {**answer, _FACTS: deep_merge(answer.get(_FACTS, {}), facts)}


def begin_next_attempt(answer: Mapping[str, Any]) -> dict[str, Any]:
    """``answer`` of a payment that is authorized once more: without what the authentication before it showed."""
    shown = {name: value for name, value in answer.get(_FACTS, {}).items() if name != _AUTHENTICATION_FACTS}
    again = PrivateFacts(attempt=read_private_facts(answer).attempt + 1).as_json()
    return {**answer, **({_FACTS: shown} if _FACTS in answer else {}), **again}


def add_return_reason(answer: Mapping[str, Any], reason: str) -> dict[str, Any]:
    """``answer`` with the bank's reason for returning a transfer to the shopper, which may be empty."""
    return {**answer, _RETURN_REASON: reason} if reason else dict(answer)


def read_return_reason(answer: Mapping[str, Any]) -> str:
    """The bank's reason for returning the transfer; empty where it gave none."""
    return str(answer.get(_RETURN_REASON, ""))


def get_shown_facts(payment: Payment) -> Mapping[str, Any]:
    """The nested facts that responses show of a payment, besides the members of their own."""
    facts: Mapping[str, Any] = payment.answer.get(_FACTS, {})
    return facts

"""The JSON column ``Payment.answer``: what responses show of a payment, and what the payment keeps for itself.

This module alone names the private members, so that no two modules can mean different things by one key, and none of
them reaches a response. The shown ones are read by gateway.payments.rendering. Source: docs/decisions/0058.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.models import Payment
from gateway.payments.nested_values import deep_merge

_FACTS: Final = "facts"
_AGREEMENT_REFERENCES: Final = "agreed"
_APPROVAL_POLICY: Final = "riskAfter"
_NETWORK_REFERENCE: Final = "networkReference"
_REFUSED_CODE: Final = "refusedApproval"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalPolicy:
    """What the payment's rule set says about an approval. ``review``: the code of a review, '' for none; ``avs`` and
    ``cvv``: what to do about an address or security code answer."""

    review: str = ""
    avs: Mapping[str, str] = field(default_factory=dict)
    cvv: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateFacts:
    """What a payment keeps for itself between its phases.

    ``agreement_references``: parameters of the agreement for the acquirer, sent once the shopper is back and repeated
    when the payment is reversed. ``approval_policy``: what its approval has to meet; None if no rule set screened it.
    ``network_reference``: the card scheme's reference of a payment that created a registration, for agreements that are
    made with the registration later. ``refused_code``: the code of the decline, of an approval that failed the policy
    and whose void is not confirmed yet.
    """

    agreement_references: Mapping[str, str] = field(default_factory=dict)
    approval_policy: ApprovalPolicy | None = None
    network_reference: str = ""
    refused_code: str = ""

    def as_json(self) -> dict[str, Any]:
        """The members of ``Payment.answer``; none for what is empty."""
        members: dict[str, Any] = {
            _AGREEMENT_REFERENCES: dict(self.agreement_references),
            _NETWORK_REFERENCE: self.network_reference,
            _REFUSED_CODE: self.refused_code,
        }
        if (policy := self.approval_policy) is not None:
            rules: dict[str, Any] = {"review": policy.review, "avs": dict(policy.avs), "cvv": dict(policy.cvv)}
            members[_APPROVAL_POLICY] = {name: value for name, value in rules.items() if value}
        return {name: value for name, value in members.items() if value}


def read_private_facts(answer: Mapping[str, Any]) -> PrivateFacts:
    """The private facts of a payment, from its ``answer``."""
    policy = answer.get(_APPROVAL_POLICY)
    return PrivateFacts(
        agreement_references=answer.get(_AGREEMENT_REFERENCES, {}),
        approval_policy=ApprovalPolicy(**policy) if policy else None,
        network_reference=answer.get(_NETWORK_REFERENCE, ""),
        refused_code=answer.get(_REFUSED_CODE, ""),
    )


def merge_shown_facts(answer: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """``answer`` with nested ``facts`` merged into what responses show."""
    return {**answer, _FACTS: deep_merge(answer.get(_FACTS, {}), facts)}


def get_shown_facts(payment: Payment) -> Mapping[str, Any]:
    """The nested facts that responses show of a payment, besides the members of their own."""
    facts: Mapping[str, Any] = payment.answer.get(_FACTS, {})
    return facts

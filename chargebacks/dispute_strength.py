"""How strong the answer to a dispute is: a table of what counts for which kind of reason, and its sum for a case.

The schemes and processors say which evidence a reason asks for, not how much it weighs: the weights are this product's,
in three steps. DECISIVE proof answers the claim alone; STRONG proof does with another one; HELPFUL proof supports.
Sources: of each row. Decision: docs/decisions/0090.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from django.utils.translation import gettext_noop as noop

from chargebacks.compelling_evidence import EarlierPayment
from chargebacks.evidence_checklist import CHECKLIST_ITEMS, find_reason_kind
from chargebacks.gathered_evidence import RecordedProof, gather_evidence
from chargebacks.models import Chargeback

STRONG_FROM: Final = 10
FAIR_FROM: Final = 5
MAX_HELPFUL_POINTS: Final = 4
"""Points of all HELPFUL proof together, at most: however much of it there is, it does not answer a claim."""


class ProofWeight(IntEnum):
    """Points of a proof: it answers the claim alone, with another one, or supports it."""

    DECISIVE = 10
    STRONG = 4
    HELPFUL = 2


WEIGHT_TEXTS: Final[Mapping[int, str]] = MappingProxyType(
    {
        ProofWeight.DECISIVE: noop("decisive"),
        ProofWeight.STRONG: noop("strong"),
        ProofWeight.HELPFUL: noop("helps"),
    }
)
PROOFS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "authenticated": ("authentication", noop("The cardholder was authenticated by 3-D Secure")),
        "attempted": ("authentication", noop("3-D Secure was attempted, and the issuer did not take part")),
        "cvv": ("checks", noop("The security code (CVV)")),
        "avs": ("checks", noop("The billing address (AVS)")),
        "avs_part": ("checks", noop("Part of the billing address (AVS)")),
        "shopper": ("checks", noop("What identifies the shopper")),
        "same_address": ("delivery", noop("Billing and delivery address")),
        "order": ("order", noop("The order as it was sent with the payment")),
        "receipt": ("order", noop("The receipt of the payment page")),
        "tracking": ("delivery", noop("Carrier and tracking number")),
        "authorization": ("authorization", noop("The issuer authorized the payment")),
        "mandate": ("mandate", noop("The mandate, its reference and date")),
        "mandate_mail": ("mandate", noop("The mandate or notice that was mailed to the shopper")),
        "refund": ("refund", noop("All of it had been refunded before")),
        "refund_part": ("refund", noop("Part of it had been refunded before")),
        "earlier_window": ("checks", noop("Two or more earlier undisputed payments as Visa asks for them")),
        "earlier": ("checks", noop("Earlier undisputed payments of the same card")),
        "separate": ("separate", noop("Whether there is a second payment of the same amount")),
    }
)
"""What the gateway can find → item of the checklist, and what it is."""
_STRIPE = "https://docs.stripe.com/disputes/categories"
_STRIPE_CE3 = "https://docs.stripe.com/disputes/api/visa-ce3"
_STRIPE_EVIDENCE = "https://docs.stripe.com/api/disputes/evidence_object"
_ECI = "https://www.checkout.com/docs/developer-resources/codes/eci-values"
_BRAINTREE = "https://developer.paypal.com/braintree/docs/guides/disputes/evidence-requirements/"
_BLUESNAP = "https://support.bluesnap.com/docs/visa-chargeback-reason-codes"
_SEPA = "https://docs.connect.worldline-solutions.com/payment-product/sepa-direct-debit/faqs"
_D, _S, _H = ProofWeight.DECISIVE, ProofWeight.STRONG, ProofWeight.HELPFUL
FILE_PREFIX: Final = "file:"
"""A row of this prefix and an item's key is a file that shows the item."""
_REFUNDED: Final = (("refund", _D, _STRIPE), ("refund_part", _H, _STRIPE))


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthRow:
    """A proof and its weight. ``proof``: of PROOFS, or FILE_PREFIX and an item of the checklist."""

    proof: str
    weight: ProofWeight
    source: str

    @property
    def text(self) -> str:
        item = CHECKLIST_ITEMS.get(self.proof.removeprefix(FILE_PREFIX))
        return item.text if item is not None and self.is_file else PROOFS[self.proof][1]

    @property
    def is_file(self) -> bool:
        return self.proof.startswith(FILE_PREFIX)


def _rows(*several: tuple[str, ProofWeight, str]) -> tuple[StrengthRow, ...]:
    return tuple(StrengthRow(proof=proof, weight=weight, source=source) for proof, weight, source in several)


STRENGTH_TABLE: Final[Mapping[str, Sequence[StrengthRow]]] = MappingProxyType(
    {
        "fraud": _rows(
            *_REFUNDED,
            ("authenticated", _D, _ECI),
            ("earlier_window", _D, _STRIPE_CE3),
            ("attempted", _S, _ECI),
            ("avs", _S, _BLUESNAP),
            ("file:authentication", _S, _BRAINTREE),
            ("file:delivery", _S, _BRAINTREE),
            ("file:messages", _S, _BRAINTREE),
            ("cvv", _H, _BLUESNAP),
            ("avs_part", _H, _BLUESNAP),
            ("earlier", _H, _BLUESNAP),
            ("same_address", _H, _BLUESNAP),
            ("shopper", _H, _BLUESNAP),
            ("tracking", _H, _BLUESNAP),
            ("order", _H, _BLUESNAP),
            ("receipt", _H, _STRIPE_EVIDENCE),
            ("file:checks", _H, _BLUESNAP),
            ("file:order", _H, _BLUESNAP),
        ),
        "delivery": _rows(
            *_REFUNDED,
            ("file:delivery", _D, _BRAINTREE),
            ("tracking", _S, _BRAINTREE),
            ("file:messages", _S, _STRIPE),
            ("same_address", _H, _BLUESNAP),
            ("order", _H, _STRIPE),
            ("receipt", _H, _STRIPE_EVIDENCE),
            ("file:order", _H, _STRIPE),
            ("file:terms", _H, _STRIPE),
        ),
        "service": _rows(
            *_REFUNDED,
            ("file:service", _S, _STRIPE),
            ("file:messages", _S, _STRIPE),
            ("file:terms", _S, _STRIPE),
            ("order", _H, _STRIPE),
            ("receipt", _H, _STRIPE_EVIDENCE),
            ("file:order", _H, _STRIPE),
        ),
        "twice": _rows(
            *_REFUNDED,
            ("separate", _S, _STRIPE),
            ("file:separate", _S, _STRIPE),
            ("file:order", _S, _STRIPE),
            ("order", _H, _STRIPE),
            ("receipt", _H, _STRIPE_EVIDENCE),
        ),
        "credit": _rows(
            *_REFUNDED,
            ("file:refund", _D, _STRIPE),
            ("file:terms", _S, _STRIPE),
            ("file:messages", _S, _STRIPE),
            ("order", _H, _STRIPE),
            ("receipt", _H, _STRIPE_EVIDENCE),
            ("file:order", _H, _STRIPE),
        ),
        "bank": _rows(
            *_REFUNDED,
            ("file:mandate", _D, _SEPA),
            ("mandate", _S, _SEPA),
            ("mandate_mail", _S, _SEPA),
            ("authorization", _S, _STRIPE),
            ("file:account", _H, _SEPA),
            ("order", _H, _STRIPE),
            ("receipt", _H, _STRIPE_EVIDENCE),
            ("file:order", _H, _STRIPE),
        ),
        "dispute": _rows(
            *_REFUNDED,
            ("file:mandate", _S, _SEPA),
            ("file:delivery", _S, _STRIPE),
            ("file:messages", _S, _STRIPE),
            ("file:terms", _S, _STRIPE),
            ("mandate", _H, _SEPA),
            ("mandate_mail", _H, _SEPA),
            ("tracking", _H, _BLUESNAP),
            ("order", _H, _STRIPE),
            ("receipt", _H, _STRIPE_EVIDENCE),
            ("file:order", _H, _STRIPE),
        ),
        "amount": _rows(
            *_REFUNDED,
            ("file:order", _S, _STRIPE),
            ("file:authorization", _S, _STRIPE),
            ("authorization", _S, _STRIPE),
            ("file:messages", _H, _STRIPE),
            ("order", _H, _STRIPE),
            ("receipt", _H, _STRIPE_EVIDENCE),
        ),
        "authorization": _rows(
            *_REFUNDED,
            ("file:authorization", _D, _STRIPE),
            ("authorization", _S, _STRIPE),
            ("authenticated", _H, _ECI),
            ("file:authentication", _H, _ECI),
            ("order", _H, _STRIPE),
            ("receipt", _H, _STRIPE_EVIDENCE),
            ("file:order", _H, _STRIPE),
        ),
        "other": _rows(
            *_REFUNDED,
            ("file:messages", _S, _STRIPE),
            ("file:order", _S, _STRIPE),
            ("file:other", _H, _STRIPE),
            ("order", _H, _STRIPE),
            ("receipt", _H, _STRIPE_EVIDENCE),
        ),
    }
)
"""Kind of reason (chargebacks.evidence_checklist) → what counts, the most first."""
KIND_TEXTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "fraud": noop("Fraud, or not recognised"), "delivery": noop("Not received"),
        "service": noop("Not as described"), "twice": noop("Charged twice"),
        "credit": noop("Refund not received, or cancelled"), "bank": noop("Returned by the bank"),
        "dispute": noop("Disputed by the cardholder"), "amount": noop("Wrong amount or currency"),
        "authorization": noop("Authorization"), "other": noop("Any other reason"),
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputeStrength:
    """``points``: the sum of the weights, at most STRONG_FROM; ``there``: rows that count, with what was found (''
    for a file); ``absent``: rows that would add to it; ``against``: findings for the shopper."""

    points: int
    there: tuple[tuple[StrengthRow, str], ...]
    absent: tuple[StrengthRow, ...]
    against: tuple[RecordedProof, ...]

    @property
    def level(self) -> str:
        return "strong" if self.points >= STRONG_FROM else "fair" if self.points >= FAIR_FROM else "weak"


def measure_strength(
    case: Chargeback, *, possible_items: Iterable[str], findings: Sequence[RecordedProof]
) -> DisputeStrength:
    """The strength of the case as it is now. ``possible_items``: of its checklist; no other files are asked for."""
    files = frozenset(case.evidence.values_list("item", flat=True))
    found = {one.proof: one.value for one in findings if one.supports}
    found |= {f"{FILE_PREFIX}{item}": "" for item in files}
    possible, rows = frozenset(possible_items), STRENGTH_TABLE[find_reason_kind(case.reason_code)]
    there = tuple((row, found[row.proof]) for row in rows if row.proof in found)
    absent = tuple(
        row
        for row in rows
        if row.proof not in found and row.is_file and row.proof.removeprefix(FILE_PREFIX) in possible
    )
    counted = {row.proof for row in rows}
    return DisputeStrength(
        points=_sum_points(row.weight for row, _value in there),
        there=there,
        absent=absent,
        against=tuple(one for one in findings if not one.supports and one.proof in counted),
    )


def _sum_points(weights: Iterable[ProofWeight]) -> int:
    listed = list(weights)
    helpful = sum(weight for weight in listed if weight == ProofWeight.HELPFUL)
    others = sum(weight for weight in listed if weight != ProofWeight.HELPFUL)
    return min(STRONG_FROM, others + min(helpful, MAX_HELPFUL_POINTS))


def gather_counted(case: Chargeback, earlier: Sequence[EarlierPayment] | None = None) -> list[RecordedProof]:
    """What the gateway can show of what counts for the case's reason. ``earlier``: by find_earlier_payments, which is
    asked where it is None."""
    counted = {row.proof for row in STRENGTH_TABLE[find_reason_kind(case.reason_code)]}
    return [one for one in gather_evidence(case, earlier) if one.proof in counted]

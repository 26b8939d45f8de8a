"""Sums above a payment chain (authorized, captured, refunded, still possible), and the facts of its authorization."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from django.utils.translation import gettext as _

from gateway.backoffice.kit.formatting import format_moment, format_money
from gateway.core.authorization_validity import (
    ESTIMATED_AUTHORIZATION,
    FINAL_AUTHORIZATION,
    INCREMENTED_AUTHORIZATION,
)
from gateway.models import Status
from gateway.payments import chain_amounts as sums
from gateway.payments.chain_amounts import ZERO_AMOUNT, Chain

CHAIN_SUM_KEYS: Final = frozenset(
    {
        "Authorised", "Captured", "Still to capture", "Charged", "Paid out", "Rebilled", "Refunded", "Reversed",
        "Charged back", "Still to refund", "Returned above what was paid",
    }
)  # fmt: skip
"""English names of sums, by which the audit trail keeps them in whatever language a clerk reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSum:
    """One amount above a chain. ``key``: one of CHAIN_SUM_KEYS; ``tone``: done, open or none (zero)."""

    key: str
    amount: Decimal
    tone: str

    @property
    def name(self) -> str:
        return _(self.key)


def describe_authorization(chain: Chain, at: datetime) -> list[tuple[str, str]]:
    """Name → text of an approved authorization: its kind, what was asked, granted, raised, renewed, captured and
    released, and until when it may be captured. ``at``: the merchant's clock."""
    first, held = chain.first, chain.authorization
    if first.payment_type != "PA" or first.status != Status.APPROVED:
        return []
    kinds = {
        ESTIMATED_AUTHORIZATION: _("estimated"),
        FINAL_AUTHORIZATION: _("final"),
        INCREMENTED_AUTHORIZATION: _("estimated, raised since"),
    }
    amounts = {
        _("Asked for"): first.amount,
        _("Granted"): held.granted,
        _("Raised by"): held.raised,
        _("Captured"): held.captured,
        _("Released"): held.released,
    }
    facts = [(_("Kind"), kinds.get(held.kind, "–"))]
    facts += [(name, format_money(amount, first.currency)) for name, amount in amounts.items()]
    facts.append((_("Renewed"), str(held.renewals)))
    end = held.expires_at
    until = format_moment(end) if end is not None else _("no end")
    facts.append((_("May be captured until"), f"{until} ({_('expired')})" if held.is_expired(at) else until))
    return facts


def summarize_chain(chain: Chain, at: datetime | None = None) -> list[ChainSum]:
    """Sums of a chain: authorized, captured, refunded, voided, charged back, and what is still possible at ``at``. What
    came back from the shopper's bank is in none. None at all while the first payment is in doubt."""
    done = [member for member in chain.members if member.status == Status.APPROVED and member.returned_at is None]

    def of(*types: str) -> Decimal:
        return sums.sum_payment_amounts(member for member in done if member.payment_type in types)

    first = chain.first
    if first.status == Status.IN_DOUBT:
        return []  # zeros would say that no money moved
    granted = first.status == Status.APPROVED
    found: list[ChainSum] = []
    if first.payment_type == "PA":
        authorised = chain.authorization.authorized if granted else ZERO_AMOUNT
        found.append(_build_sum("Authorised", authorised))
        found.append(_build_sum("Captured", of("CP")))
        held = chain.authorization
        open_ = granted and not (at is not None and held.is_expired(at))
        found.append(_build_sum("Still to capture", held.capturable if open_ else ZERO_AMOUNT, "open"))
    elif first.payment_type in ("DB", "CD"):
        found.append(_build_sum("Charged" if first.payment_type == "DB" else "Paid out", of("DB", "CD")))
    else:
        return []
    if of("RB"):
        found.append(_build_sum("Rebilled", of("RB")))
    found.append(_build_sum("Refunded", of("RF")))
    found.append(_build_sum("Reversed", of("RV")))
    if disputed := of("CB") - of("CR"):
        found.append(_build_sum("Charged back", disputed))
    paid = [member for member in done if member.payment_type in ("DB", "CP", "RB")]
    found.append(
        _build_sum(
            "Still to refund",
            sum((max(sums.compute_refundable_amount(chain, member), ZERO_AMOUNT) for member in paid), ZERO_AMOUNT),
            "open",
        )
    )
    if overdrawn := sums.compute_overdrawn_amount(chain):
        found.append(_build_sum("Returned above what was paid", overdrawn))
    return found


def _build_sum(key: str, amount: Decimal, tone: str = "done") -> ChainSum:
    return ChainSum(key=key, amount=amount, tone=tone if amount > 0 else "none")

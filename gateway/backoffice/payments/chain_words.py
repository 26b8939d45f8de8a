"""Texts for the state of a payment chain: its name, what became of the money, what the shopper may be told.

One table for every page, list, filter and export. Sentences are filled with the chain's own sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from gateway.backoffice.kit.formatting import build_state_pill, format_money
from gateway.models import Payment, Status
from gateway.payments import chain_amounts as sums
from gateway.payments.chain_amounts import ZERO_AMOUNT, Chain
from gateway.payments.chain_states import ChainStatus, resolve_chain_status
from gateway.payments.operation_table import is_locally_queued
from gateway.payments.refused_reversals import is_for_person

ChainText = str | Promise


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainWords:
    """A state's pill (``tone``, ``name``), its sentence about the ``money``, and what to tell the ``shopper`` (None:
    the result code's own advice)."""

    tone: str
    name: ChainText
    money: ChainText
    shopper: ChainText | None = None


CHAIN_WORDS: Final[Mapping[ChainStatus, ChainWords]] = MappingProxyType({
    ChainStatus.STARTED: ChainWords(tone="wait", name=_("Started"), money=_("No money moved yet.")),
    ChainStatus.WAITING: ChainWords(tone="wait", name=_("Waiting"), money=_("No money moved yet.")),
    ChainStatus.IN_DOUBT: ChainWords(
        tone="wait", name=_("In doubt"),
        money=_("Whether money moved is not known yet; the acquirer is being asked."),
    ),
    ChainStatus.DECLINED: ChainWords(tone="bad", name=_("Declined"), money=_("No money moved.")),
    ChainStatus.RECORDED: ChainWords(tone="good", name=_("Approved"), money=_("No money is moved by this.")),
    ChainStatus.VERIFIED: ChainWords(
        tone="good", name=_("Verified"), money=_("The card was checked with its bank. No money is held."),
        shopper=_("Your card was checked with your bank. Nothing was reserved or taken."),
    ),
    ChainStatus.AUTHORIZED: ChainWords(
        tone="good", name=_("Authorized"), money=_("%(authorized)s is reserved, and nothing was taken yet."),
        shopper=_("Thank you, your payment was accepted. %(authorized)s is reserved and was not taken yet."),
    ),
    ChainStatus.PARTLY_CAPTURED: ChainWords(
        tone="good", name=_("Partly captured"),
        money=_("%(captured)s of %(authorized)s was taken; %(capturable)s is still reserved."),
        shopper=_("%(captured)s of the %(authorized)s that was reserved was taken; the rest is still reserved."),
    ),
    ChainStatus.CAPTURED: ChainWords(
        tone="good", name=_("Captured"), money=_("%(captured)s was taken."),
        shopper=_("Thank you, your payment of %(captured)s was accepted."),
    ),
    ChainStatus.PARTLY_REFUNDED: ChainWords(
        tone="plain", name=_("Partly refunded"),
        money=_("%(captured)s was taken. %(returned)s of it went back to the shopper, %(kept)s is kept."),
        shopper=_("Of your payment of %(captured)s, %(returned)s was sent back to you. Your bank may need some days."),
    ),
    ChainStatus.REFUNDED: ChainWords(
        tone="plain", name=_("Refunded"),
        money=_("%(captured)s was taken, and all of it went back to the shopper."),
        shopper=_("Your payment of %(captured)s was sent back to you in full. Your bank may need some days."),
    ),
    ChainStatus.VOIDED: ChainWords(
        tone="plain", name=_("Voided"), money=_("The reservation or the charge was undone: nothing is kept."),
        shopper=_("Your payment was cancelled. You pay nothing; your bank may show it for some days."),
    ),
    ChainStatus.EXPIRED: ChainWords(
        tone="plain", name=_("Expired"),
        money=_("The reservation of %(authorized)s has expired: nothing was taken, and nothing is reserved."),
        shopper=_("The reservation of %(authorized)s has ended. Nothing was taken."),
    ),
    ChainStatus.DISPUTED: ChainWords(
        tone="bad", name=_("Disputed"),
        money=_("The shopper's bank took %(charged_back)s back of %(captured)s; the dispute is not decided."),
        shopper=_("Your bank took back %(charged_back)s for you, and decides about it."),
    ),
    ChainStatus.CHARGED_BACK: ChainWords(
        tone="bad", name=_("Charged back"),
        money=_("The shopper's bank took %(charged_back)s back of %(captured)s."),
        shopper=_("Your bank took back %(charged_back)s for you."),
    ),
    ChainStatus.WON_BACK: ChainWords(
        tone="good", name=_("Won back"),
        money=_("%(contested)s was charged back and came back to you; %(kept)s of %(captured)s is kept."),
        shopper=_("Your bank has decided that the payment of %(captured)s stands."),
    ),
    ChainStatus.PAID_OUT: ChainWords(
        tone="good", name=_("Paid out"), money=_("%(paid_out)s was paid out to the shopper."),
        shopper=_("%(paid_out)s was sent to you. Your bank may need some days."),
    ),
})  # fmt: skip
"""Every state. A test asks for all of them."""


def build_chain_pill(status: ChainStatus) -> dict[str, Any]:
    """A state's pill: its tone and its name."""
    words = CHAIN_WORDS[status]
    return {"tone": words.tone, "text": words.name}


def build_payment_pill(row: Payment) -> dict[str, Any]:
    """The pill of a payment in a list: a first payment has its chain's state, a follow-up its own. ``row`` is loaded
    with ``select_related("standing")``."""
    return build_chain_pill(resolve_chain_status(row)) if row.chain == row.pk else build_state_pill(row.status)


def sum_chain(chain: Chain) -> dict[str, Decimal]:
    """The sums that sentences are filled with; approved payments only, without what came back, as in the state."""
    done = [member for member in chain.members if member.status == Status.APPROVED and member.returned_at is None]

    def total(*types: str) -> Decimal:
        return sums.sum_payment_amounts(member for member in done if member.payment_type in types)

    first = chain.first
    held = first.payment_type == "PA" and first.status == Status.APPROVED
    authorizations = {member.id for member in chain.authorization.members}
    undone = sums.sum_payment_amounts(
        each for each in done if each.payment_type == "RV" and each.referenced not in authorizations
    )
    received = sums.sum_payment_amounts(
        each for each in done if each.payment_type == "RC" and each.referenced in authorizations
    )
    captured, returned = total("DB", "CP", "RB") + received, total("RF") + undone
    charged_back = total("CB") - total("CR")
    return {
        "authorized": chain.authorization.authorized if held else ZERO_AMOUNT,
        "capturable": max(sums.compute_capturable_amount(chain, first), ZERO_AMOUNT) if held else ZERO_AMOUNT,
        "captured": captured,
        "returned": returned,
        "contested": total("CB"),
        "charged_back": charged_back,
        "kept": max(captured - returned - charged_back, ZERO_AMOUNT),
        "paid_out": total("CD") - undone,
    }


_PAYOUT_IN_DOUBT: Final = _("Whether the money was paid out is not known: a person has to ask the acquirer.")
_REFUND_IN_DOUBT: Final = _("Whether the money was given back is not known: a person has to ask the acquirer.")
_CAPTURE_IN_DOUBT: Final = _("Whether it was captured is not known: a person has to ask the acquirer.")
_IN_DOUBT_BY_TYPE: Final[Mapping[str, ChainText]] = {
    "CD": _PAYOUT_IN_DOUBT, "CP": _CAPTURE_IN_DOUBT, "RF": _REFUND_IN_DOUBT, "RV": _REFUND_IN_DOUBT,
}  # fmt: skip
"""Of each of PERSON_TYPES."""
_WITH_THE_BANK: Final = _("Whether money moved is not known yet: the bank or acquirer has not confirmed it.")


def describe_open_money(payment: Payment) -> ChainText | None:
    """What is known of the money of a payment that no shopper is waited for; None: what its state says."""
    if payment.status == Status.IN_DOUBT and is_for_person(payment):
        # No message finds it out (docs/decisions/0138, 0152).
        return _IN_DOUBT_BY_TYPE[payment.payment_type]
    if payment.status == Status.PENDING and is_locally_queued(payment):
        return _WITH_THE_BANK
    return None


def describe_chain(status: ChainStatus, chain: Chain) -> tuple[str, str | None]:
    """Returns (what became of the money, what the shopper may be told or None) of a chain in this state."""
    words, currency = CHAIN_WORDS[status], chain.first.currency
    amounts = {name: format_money(amount, currency) for name, amount in sum_chain(chain).items()}
    return str(describe_open_money(chain.first) or words.money) % amounts, str(
        words.shopper
    ) % amounts if words.shopper is not None else None

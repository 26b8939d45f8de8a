"""The state of a whole payment as people speak of it, such as authorized, partly refunded or charged back.

Answers of the API have the status of one transaction. People ask about the chain: this module is the one place that
says it, for pages, lists, filters, search and exports. Of a chain that moved on, the database keeps the state
(:class:`gateway.models.ChainState`); of any other, the first payment's own type and status say it.
Source: docs/decisions/0076.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from django.db import models
from django.db.models import Q

from gateway.db.statement import WriteStatement
from gateway.models import ChainState, Payment, Status


class ChainStatus(models.TextChoices):
    """The states of a chain: what the database keeps, and the states of a first payment that moved nothing."""

    STARTED = "started"
    WAITING = "waiting"
    IN_DOUBT = "in_doubt"
    DECLINED = "declined"
    RECORDED = "recorded"
    VERIFIED = "verified"
    AUTHORIZED = "authorized"
    PARTLY_CAPTURED = "partly_captured"
    CAPTURED = "captured"
    PARTLY_REFUNDED = "partly_refunded"
    REFUNDED = "refunded"
    VOIDED = "voided"
    EXPIRED = "expired"
    DISPUTED = "disputed"
    CHARGED_BACK = "charged_back"
    WON_BACK = "won_back"
    PAID_OUT = "paid_out"


_NOT_APPROVED: Final[Mapping[str, ChainStatus]] = MappingProxyType(
    {
        Status.STARTED: ChainStatus.STARTED,
        Status.PENDING: ChainStatus.WAITING,
        Status.IN_DOUBT: ChainStatus.IN_DOUBT,
        Status.DECLINED: ChainStatus.DECLINED,
    }
)
_APPROVED_ALONE: Final[Mapping[str, ChainStatus]] = MappingProxyType(
    {"PA": ChainStatus.VERIFIED, "DB": ChainStatus.CAPTURED, "CD": ChainStatus.PAID_OUT}
)
"""Type of an approved first payment without a row of its own -> state. An authorization without one is of 0.00: it
verified the card and holds nothing. Other types move no money: RECORDED."""
STORED_CHAIN_STATES: Final = frozenset(ChainState.State.values)
"""States that the database keeps."""


def resolve_chain_status(first: Payment) -> ChainStatus:
    """The state of the chain that ``first`` began. Reads its row of ChainState, which a list selects with it
    (``select_related("standing")``)."""
    if first.status != Status.APPROVED:
        return _NOT_APPROVED[first.status]
    kept = getattr(first, "standing", None)
    return (
        ChainStatus(kept.state) if kept is not None else _APPROVED_ALONE.get(first.payment_type, ChainStatus.RECORDED)
    )


def build_chain_status_condition(status: str) -> Q:
    """The condition on first payments whose chains are in this state."""
    is_first = Q(chain=models.F("id"))
    before = next((own for own, state in _NOT_APPROVED.items() if state == status), None)
    if before is not None:
        return is_first & Q(status=before)
    kept = Q(standing__state=status, status=Status.APPROVED) if status in STORED_CHAIN_STATES else Q(pk__in=[])
    types = [own for own, state in _APPROVED_ALONE.items() if state == status]
    alone = Q(status=Status.APPROVED, standing__isnull=True) & is_first
    if status == ChainStatus.RECORDED:
        return alone & ~Q(payment_type__in=_APPROVED_ALONE)
    if not types:
        return kept  # every approved authorization of an amount has a row, so that an index finds the few that are open
    return kept | alone & Q(payment_type__in=types)


def has_stored_state(status: str) -> bool:
    """Whether every chain in this state has a row of ChainState, along whose indexes a list can be read."""
    return status in STORED_CHAIN_STATES and status not in (ChainStatus.CAPTURED, ChainStatus.PAID_OUT)


def mark_authorization_expired(write: WriteStatement, authorization: Payment) -> None:
    """Add to ``write`` that what was left of an authorization has expired: its chain's state follows from it."""
    write.update_related(ChainState, {"expired": True}, {"chain_id": authorization.chain})

"""Moves chains of payments that are older than GATEWAY_PAYMENT_HOT_DAYS into the archive, without their shoppers' data.

A chain moves as a whole, in one transaction with what stands for it alone, and only when nothing hangs on it any more.
What is archived is what would be left if its person had been forgotten. Payments' ids rise with time, so one position
tells how far a pass has come; what stayed is looked at again by the next pass. Source: docs/decisions/0130 and 0145.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import structlog
from django.apps import apps
from django.conf import settings
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from gateway.connectors.sepa.mandates import list_usable_mandates
from gateway.core import clock
from gateway.core.identifiers import first_id_at
from gateway.db.statement import execute_sql
from gateway.models import (
    Agreement,
    ArchivePosition,
    BankOrder,
    Payment,
    Registration,
    SepaMandate,
    Status,
)
from gateway.payments.mandate_mails import SEPA_DEBIT_BRAND
from gateway.personal_data.erasure import erase_table, find_open_payments, select_free
from gateway.personal_data.parameters import remove_personal_values
from gateway.personal_data.people import find_mandates
from gateway.personal_data.table import MANDATE_PROOF_RETENTION, MANDATES, PERSONAL_DATA, PersonalTable
from gateway.timers.registry import SWEEP_INTERVAL_S, Timer

ARCHIVE_BATCH_ROWS: Final = 500
"""Payments looked at by one transaction."""
MAX_ARCHIVE_ROUNDS: Final = 20
"""Batches of one run: 10,000 payments a minute; the next run continues."""
ARCHIVE_REST: Final = timedelta(days=1)
"""The time from the end of one pass over the old payments to the next."""

KEEPS_CHAIN: Final = (
    ("gateway.Suspension", "payment", Q()),
    ("gateway.Approval", "payment", Q()),
    ("gateway.BankOrderEvent", "order", Q(applied=False)),
    ("gateway.BankOrder", "original_payment", Q(state__in=(BankOrder.State.WAITING, BankOrder.State.FILED))),
    ("gateway.AcquirerExchange", "payment", Q()),
    ("scheduling.JobRun", "payment", ~Q(job__state="ENDED")),
    ("chargebacks.Chargeback", "chain", Q()),
    ("chargebacks.DisputeAlert", "disputed", Q()),
    ("reporting.Finding", "payment", Q(closed_at=None)),
    # It is paid as often as it may be because its checkouts have these payments: without them it would open again.
    (
        "checkout.Checkout",
        "payment",
        Q(link__max_payments__isnull=False, link__deactivated_at=None)
        & (Q(link__expires_at=None) | Q(link__expires_at__gt=Now())),
    ),
)
"""Rows that keep a chain where it is while they name one of its payments: (model, its column, which of them); the
column or the choice has an index. Besides what erasing a person waits for (gateway.personal_data.erasure). Payments
name their registration themselves, also the one that they stored."""
GOES_WITH_CHAIN: Final = (
    ("gateway.ChainState", "chain_id"),
    ("gateway.AuthorizationRelease", "authorization"),
    ("gateway.RiskDecision", "payment_id"),
    ("gateway.ExemptionRequest", "payment_id"),
    ("gateway.PaymentToken", "payment_id"),
    ("gateway.MandateMail", "payment_id"),
    ("gateway.Authentication", "payment"),
    ("gateway.Notification", "payment_id"),
    ("checkout.CallAttempt", "payment_id"),
    ("checkout.ResultCall", "payment_id"),
    ("checkout.Checkout", "payment_id"),
)
"""Rows that are deleted when their payment is archived: (model, the column that names it, which has an index)."""
_BANK_TABLES: Final[Mapping[str, PersonalTable]] = {
    table.model: table for table in PERSONAL_DATA if table.model in ("gateway.BankOrder", MANDATES)
}
"""What is personal of the bank's orders and mandates, which stay as books when their payments are archived."""
_ERASED: Final[Mapping[str, Any]] = {
    "merchant_memo": "", "means_sealed": None, "email_key": None, "name_keys": None, "duplicate_guard": None,
}  # fmt: skip

# If a row has changed since it was read, or another transaction has locked it, none of its batch is moved.
_MOVE: Final = """
WITH free AS (
    SELECT id FROM gateway_payment WHERE id = ANY(%(ids)s::uuid[]) ORDER BY id FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM gateway_payment p
    USING free, unnest(%(ids)s::uuid[], %(sequences)s::int[], %(follow_ups)s::int[], %(changes)s::text[])
        AS f(id, sequence, follow_ups, changes)
    WHERE p.id = free.id AND p.id = f.id AND p.sequence = f.sequence AND p.follow_ups = f.follow_ups
    RETURNING p.id, p.chain, p.merchant_id, p.channel_id, p.number, p.payment_type, p.method, p.merchant_transaction_id,
        p.merchant_invoice_id, p.created_at, to_jsonb(p) || f.changes::jsonb AS row
)
INSERT INTO gateway_archivedpayment
    (id, chain, merchant_id, channel_id, number, payment_type, method, merchant_transaction_id, merchant_invoice_id,
    created_at, row, events, chain_expired, archived_at)
SELECT gone.id, gone.chain, gone.merchant_id, gone.channel_id, gone.number, gone.payment_type, gone.method,
    gone.merchant_transaction_id, gone.merchant_invoice_id, gone.created_at, gone.row,
    (SELECT coalesce(jsonb_agg(to_jsonb(e) ORDER BY e.sequence), '[]') FROM gateway_paymentevent e
        WHERE e.payment_id = gone.id),
    EXISTS (SELECT 1 FROM gateway_chainstate s WHERE s.chain_id = gone.id AND s.expired),
    %(now)s
FROM gone RETURNING 1
"""
_FORGET_EVENTS: Final = "DELETE FROM gateway_paymentevent WHERE payment_id = ANY(%(ids)s::uuid[])"
# Locked in one order, whatever the plan: another transaction that takes several of these rows takes them so, too.
_FORGET: Final = """
DELETE FROM {table} WHERE "{key}" IN (
    SELECT "{key}" FROM {table} WHERE "{column}" = ANY(%(ids)s::uuid[]) ORDER BY "{key}" FOR UPDATE
)
"""
_FORGET_RECEIPTS: Final = """
DELETE FROM checkout_receiptmail m USING checkout_checkout c
WHERE m.checkout_id = c.id AND c.payment_id = ANY(%(ids)s::uuid[])
"""
_LEFT: Final = "SELECT 1 FROM gateway_payment WHERE chain = ANY(%(chains)s::uuid[]) LIMIT 1"

log = structlog.get_logger(__name__)


class ArchiveConflictError(Exception):
    """A chain changed while it was archived; nothing of its batch was."""


def archive_old_payments() -> int:
    """Archive the payments past GATEWAY_PAYMENT_HOT_DAYS, a bounded number of batches; returns how many."""
    days: int = settings.GATEWAY_PAYMENT_HOT_DAYS
    if not days:
        return 0
    now = clock.real_now()
    limit = first_id_at(now - timedelta(days=days))
    place, _ = ArchivePosition.objects.get_or_create(pk=1, defaults={"position": UUID(int=0)})
    if place.rest_until is not None and now < place.rest_until:
        return 0
    archived = 0
    for _ in range(MAX_ARCHIVE_ROUNDS):
        rows = Payment.objects.filter(pk__gt=place.position, pk__lt=limit).order_by("pk")
        seen = list(rows.values_list("pk", "chain")[:ARCHIVE_BATCH_ROWS])
        archived += _archive_chains([key for key, chain in seen if key == chain], limit)
        if len(seen) < ARCHIVE_BATCH_ROWS:
            place.position, place.rest_until = UUID(int=0), now + ARCHIVE_REST
            place.save()
            break
        place.position, place.rest_until = seen[-1][0], None
        place.save()
    if archived:
        log.info("payments_archived", payments=archived)
    return archived


_CHAIN_COLUMNS: Final = (
    "chain", "merchant", "brand", "status", "registration", "agreement", "sequence", "follow_ups", "request", "answer",
)  # fmt: skip
"""Columns of payments that say whether their chain may be archived."""


def find_movable_chains(firsts: Collection[UUID], limit: UUID) -> dict[UUID, list[Payment]]:
    """The chains that may be archived: first payment → members, oldest first. ``limit``: all of a chain's ids
    are below it."""
    chains: dict[UUID, list[Payment]] = defaultdict(list)
    for one in Payment.objects.filter(chain__in=firsts).only(*_CHAIN_COLUMNS).order_by("pk"):
        chains[one.chain].append(one)
    members = [one for chain in chains.values() for one in chain]
    held = _find_held_payments(members)
    final = (Status.APPROVED, Status.DECLINED)
    return {
        first: chain
        for first, chain in chains.items()
        if all(one.pk < limit and one.status in final and one.pk not in held for one in chain)
    }


def _find_held_payments(members: Sequence[Payment]) -> set[UUID]:
    """The payments on which something hangs that has not ended, or that needs their rows."""
    ids = [one.pk for one in members]
    if not ids:
        return set()
    held = find_open_payments(ids)
    for label, column, only in KEEPS_CHAIN:
        rows = apps.get_model(label)._default_manager.filter(only, **{f"{column}__in": ids})
        held.update(rows.values_list(column, flat=True))
    usable = list_usable_mandates(clock.real_now().date())
    held.update(BankOrder.objects.filter(pk__in=ids, mandate__in=usable).values_list("pk", flat=True))
    registrations = set(
        Registration.objects.filter(pk__in=[one.registration for one in members if one.registration is not None])
        .exclude(status=Registration.Status.DELETED)
        .values_list("pk", flat=True)
    )
    agreements = _find_usable_agreements([*ids, *(one.agreement for one in members if one.agreement is not None)])
    for one in members:
        if one.registration in registrations or one.agreement in agreements or one.pk in agreements:
            held.add(one.pk)
    return held


def _find_usable_agreements(keys: Collection[UUID]) -> set[UUID]:
    """Agreements under which a payment may still be made: their limits count the payments made before. One with limits
    holds without its registration, too: a card that comes with the payment can name it."""
    found = Agreement.objects.filter(pk__in=keys).exclude(expiry__lt=clock.real_now().date() - timedelta(days=1))
    deleted = Registration.objects.filter(status=Registration.Status.DELETED)
    unlimited = Q(max_payments=None, frequency=None)
    return set(found.exclude(unlimited, registration__in=deleted.values("pk")).values_list("pk", flat=True))


def _archive_chains(firsts: Sequence[UUID], limit: UUID) -> int:
    """Archive what may be archived of a batch; returns how many payments. A chain that changes meanwhile keeps its
    batch from it: then each half is tried alone."""
    try:
        with transaction.atomic():
            movable = find_movable_chains(firsts, limit)
            return _move(movable, clock.real_now()) if movable else 0
    except ArchiveConflictError:
        if len(firsts) == 1:
            return 0
    half = len(firsts) // 2
    return _archive_chains(firsts[:half], limit) + _archive_chains(firsts[half:], limit)


def _move(chains: Mapping[UUID, Sequence[Payment]], now: datetime) -> int:
    members = [one for chain in chains.values() for one in chain]
    ids = [one.pk for one in members]
    orders = BankOrder.objects.filter(pk__in=ids)
    mandates = _find_ended_mandates(members, orders)
    values = {
        "ids": ids,
        "sequences": [one.sequence for one in members],
        "follow_ups": [one.follow_ups for one in members],
        "changes": [_render_changes(one) for one in members],
        "now": now,
    }
    if len(execute_sql(_MOVE, values)) != len(ids):
        raise ArchiveConflictError
    _erase_bank_rows(orders)
    _erase_bank_rows(mandates)
    execute_sql(_FORGET_EVENTS, {"ids": ids})
    execute_sql(_FORGET_RECEIPTS, {"ids": ids})
    for label, column in GOES_WITH_CHAIN:
        about = apps.get_model(label)._meta
        assert about.pk is not None
        execute_sql(_FORGET.format(table=about.db_table, key=about.pk.column, column=column), {"ids": ids})
    # A follow-up that began before the first payment was deleted has been committed by now, or never will be. So has a
    # dispute or alert that named a payment since it was looked at.
    if execute_sql(_LEFT, {"chains": list(chains)}) or _find_held_payments(members):
        raise ArchiveConflictError
    return len(ids)


def _find_ended_mandates(members: Sequence[Payment], orders: QuerySet[BankOrder]) -> QuerySet[SepaMandate]:
    """The mandates of the payments that nothing can be collected under any more, and whose time of proof is over."""
    debits: dict[UUID, list[Payment]] = defaultdict(list)
    for one in members:
        if one.brand == SEPA_DEBIT_BRAND:
            debits[one.merchant_id].append(one)
    found = {key for key in orders.values_list("mandate", flat=True) if key is not None}
    for merchant, own in debits.items():
        stored = {one.registration for one in own if one.registration is not None}
        found |= find_mandates(merchant, {one.pk for one in own}, stored)
    now = clock.real_now()
    ended = SepaMandate.objects.filter(pk__in=found).exclude(pk__in=list_usable_mandates(now.date()).values("pk"))
    free = select_free(ended, _BANK_TABLES[MANDATES], now - MANDATE_PROOF_RETENTION)
    return SepaMandate.objects.filter(pk__in=list(free.values_list("pk", flat=True)) if found else [])


def _erase_bank_rows(rows: QuerySet[Any]) -> None:
    """Erase whom these orders or mandates are of. Raises ArchiveConflictError where another transaction has locked one:
    a message of the bank is being taken in, or a file planned."""
    free = rows.select_for_update(skip_locked=True).order_by("pk").values_list("pk", flat=True)
    if set(free) != set(rows.values_list("pk", flat=True)):
        raise ArchiveConflictError
    erase_table(_BANK_TABLES[rows.model._meta.label], rows)


def _render_changes(payment: Payment) -> str:
    """What of the row is not archived as it stands, as JSON."""
    filtered = {name: remove_personal_values(getattr(payment, name)) for name in ("request", "answer")}
    return json.dumps({**filtered, **_ERASED})


TIMER: Final = Timer(
    name="payment archive",
    run=archive_old_payments,
    every_s=SWEEP_INTERVAL_S,
    about="Move payments past GATEWAY_PAYMENT_HOT_DAYS into the archive, without shoppers' data.",
    is_off=lambda: not settings.GATEWAY_PAYMENT_HOT_DAYS,
)

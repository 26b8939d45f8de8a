"""Which orders go into which file: decided in the database first, in one transaction, and never again.

A run makes one file for each creditor account with orders that are due, and takes each order out of WAITING by
compare-and-set: whoever takes an order back at the same moment is before or after it, never both. What was decided is
rendered (pain.py) and delivered (delivery.py) afterwards, as often as it takes.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

import structlog
from django.db import transaction

from gateway.connectors.accounts import load_connector_account
from gateway.connectors.port import Connector
from gateway.connectors.sepa import target_calendar
from gateway.connectors.sepa.creditor import TRANSFER_SCHEMAS, Creditor, CreditorNotConfiguredError, parse_creditor
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import BankFile, BankOrder, Merchant, SepaMandate
from gateway.vault.sealing import VaultError

MAX_FILE_ORDERS: Final = 5_000
"""Orders of one file; what is more goes into the next one of the same run."""
MAX_FILES_PER_ROUND: Final = 50
"""Files that one round of the timer decides."""

log = structlog.get_logger(__name__)

# In no order: accounts that cannot be filed for stay due, and must not stand before all others at every tick.
_DUE: Final = """
SELECT o.channel_id, o.account, o.kind FROM gateway_bankorder o JOIN gateway_merchant m ON m.id = o.merchant_id
WHERE o.state = 'WAITING' AND o.file_at <= %(now)s + m.clock_offset
    AND (%(merchant)s::uuid IS NULL OR m.id = %(merchant)s::uuid)
GROUP BY 1, 2, 3 ORDER BY random() LIMIT %(limit)s
"""


def plan_due_bank_files(connector: Connector, merchant: Merchant | None = None) -> int:
    """Decide the files that are due, of one merchant or all; how many orders went into them."""
    values = {
        "now": clock.real_now(),
        "merchant": merchant.pk if merchant is not None else None,
        "limit": MAX_FILES_PER_ROUND,
    }
    filed = 0
    for channel, account, kind in execute_sql(_DUE, values):
        try:
            creditor = parse_creditor(load_connector_account(connector, channel, account))
        except (CreditorNotConfiguredError, VaultError) as fault:
            # The orders wait for somebody to set the account up again, or for the vault's key; the log says so at
            # every tick, and the other accounts' files are made.
            log.error("bank_file_not_made", channel=channel.hex, account=account, why=str(fault))
            continue
        try:
            filed += plan_bank_file(channel, account, BankFile.Kind(kind), creditor)
        except Exception:  # one account must not keep the others waiting; its orders are due again
            log.exception("bank_file_not_decided", channel=channel.hex, account=account)
    return filed


@transaction.atomic
def plan_bank_file(channel: UUID, account: str, kind: BankFile.Kind, creditor: Creditor) -> int:
    """One file of the due orders of one account; how many stand in it."""
    waiting = BankOrder.objects.filter(channel=channel, account=account, kind=kind, state=BankOrder.State.WAITING)
    first = waiting.select_related("merchant").first()
    if first is None:
        return 0
    now = clock.merchant_now(first.merchant)
    due = waiting.filter(file_at__lte=now).order_by("due_on", "payment")
    orders = list(due.select_for_update(skip_locked=True, of=("self",))[:MAX_FILE_ORDERS])
    if not orders:
        return 0
    file = BankFile(
        merchant_id=first.merchant_id,
        channel_id=channel,
        account=account,
        kind=kind,
        creditor=_in_file(creditor, kind),
        orders_count=len(orders),
        total=sum((order.amount for order in orders), Decimal(0)),
        stamped_at=now,
        due_at=clock.real_now(),
    )
    file.message_id = _message_id(file.id)
    file.save(force_insert=True)
    sequences = _sequences(orders)
    batches: dict[tuple[str, object], str] = {}
    earliest = _earliest(creditor, kind, now)
    for order in orders:
        order.file, order.state = file, BankOrder.State.FILED
        order.due_on = max(order.due_on or earliest, earliest)
        order.sequence = sequences.get(order.pk, "")
        batch = batches.setdefault((order.sequence, order.due_on), f"{file.message_id}-{len(batches) + 1}")
        order.batch = batch
        order.final_at = creditor.final_at(order.due_on) if kind == BankFile.Kind.COLLECT else None
    fields = ["file", "state", "due_on", "sequence", "batch", "final_at"]
    BankOrder.objects.bulk_update(orders, fields, batch_size=500)
    return len(orders)


def next_bank_file_run(merchant: Merchant) -> datetime | None:
    """When this merchant's next file is due, by the merchant's clock."""
    rows = BankOrder.objects.filter(merchant=merchant, state=BankOrder.State.WAITING, file_at__isnull=False)
    found: datetime | None = rows.order_by("file_at").values_list("file_at", flat=True).first()
    return found


def _earliest(creditor: Creditor, kind: BankFile.Kind, now: datetime) -> date:
    """The first day that a file of this moment can ask for: a run may come late."""
    today = target_calendar.roll_to_target_day(now.astimezone(creditor.zone).date())
    return target_calendar.target_day_after(today, creditor.lead_days) if kind == BankFile.Kind.COLLECT else today


def _in_file(creditor: Creditor, kind: BankFile.Kind) -> dict[str, str]:
    held = creditor.as_file_json()
    return held | ({"schema": TRANSFER_SCHEMAS[creditor.schema]} if kind == BankFile.Kind.PAY else {})


def _message_id(file: UUID) -> str:
    """TH and the file's id in 26 characters: letters and digits that every bank takes, 28 of 35."""
    return f"TH{base64.b32encode(file.bytes).decode().rstrip('=')}"


def _sequences(orders: Iterable[BankOrder]) -> dict[UUID, str]:
    """FRST for the first collection of a mandate that is used again, RCUR for later ones, OOFF where it is used once.

    The mandates are locked, in one order, so that two runs do not both make a first one.
    """
    named = {order.mandate_id for order in orders if order.mandate_id is not None}
    held = SepaMandate.objects.filter(pk__in=named).order_by("pk").select_for_update()
    mandates = {row.pk: row for row in held}
    found = {}
    for order in orders:
        if order.mandate_id is None:
            continue
        mandate = mandates[order.mandate_id]
        if not mandate.recurring:
            found[order.pk] = "OOFF"
        elif mandate.first is None:
            found[order.pk] = "FRST"
            mandate.first = order.pk
            mandate.save(update_fields=["first"])
        else:
            found[order.pk] = "RCUR"
    return found

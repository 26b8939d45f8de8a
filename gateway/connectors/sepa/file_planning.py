"""Assigns due orders to files, in one transaction, before anything is delivered.

A run makes one file for each creditor account with due orders, and moves each order out of WAITING by compare-and-set,
so a concurrent reversal either wins or loses. A planned file is then rendered (payment_files.py) and delivered
(file_delivery.py) as often as it takes.
"""

from __future__ import annotations

import base64
from collections.abc import Container, Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

import structlog
from django.db import transaction

from gateway.connectors.account_settings import AccountSettingError
from gateway.connectors.accounts import load_connector_account
from gateway.connectors.port import Connector
from gateway.connectors.sepa import cancellations, order_records, reversals, target_calendar
from gateway.connectors.sepa.creditor import TRANSFER_SCHEMAS, Creditor, parse_creditor
from gateway.connectors.sepa.mandates import amend_to_creditor, is_of_instrument, take_amendment
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import BankFile, BankOrder, Merchant, SepaMandate
from gateway.timers.merchant_clocks import bind_run, due_sql, find_earliest
from gateway.vault.sealing import VaultError

MAX_FILE_ORDERS: Final = 5_000
"""Orders of one file; the rest go into the next file of the same run."""
NO_MANDATE: Final = "MD01"
"""Reason of an order whose mandate has ended, or is of the other scheme or another creditor: what the debtor's bank
would say."""
GIVEN_BACK_BEFORE: Final = "AM05"
"""Reason of a refund whose collection the debtor's bank has returned: it would give the money back twice."""
MAX_FILES_PER_ROUND: Final = 50
"""Files that one round of the timer plans."""

log = structlog.get_logger(__name__)

# In random order: accounts that cannot be filed stay due, and must not come first at every tick.
_DUE: Final = f"""
SELECT o.channel_id, o.acquirer_merchant_id, o.kind FROM gateway_bankorder o
JOIN gateway_merchant m ON m.id = o.merchant_id
WHERE o.state = 'WAITING' AND {due_sql("o.file_at")}
GROUP BY 1, 2, 3 ORDER BY random() LIMIT %(limit)s
"""  # noqa: S608 - a constant


def plan_due_bank_files(connector: Connector, merchant: Merchant | None = None) -> int:
    """Plan the due files of one merchant or all. Returns the number of orders in them."""
    filed = 0
    for channel, account, kind in execute_sql(_DUE, bind_run(merchant, limit=MAX_FILES_PER_ROUND)):
        try:
            creditor = parse_creditor(load_connector_account(connector, channel, account))
        except (AccountSettingError, VaultError) as fault:
            # The orders wait until the account is configured again, or the vault's key is back; that is logged at
            # every tick, and the other accounts' files are made.
            log.error("bank_file_not_created", channel=channel.hex, account=account, why=str(fault))
            continue
        try:
            filed += plan_bank_file(channel, account, BankFile.Kind(kind), creditor)
        except Exception:  # one account must not block the others; its orders stay due
            log.exception("bank_file_planning_failed", channel=channel.hex, account=account)
    return filed


@transaction.atomic
def plan_bank_file(channel: UUID, account: str, kind: BankFile.Kind, creditor: Creditor) -> int:
    """Plan one file from an account's due orders. Returns how many orders it took, including those that it rejected."""
    waiting = BankOrder.objects.filter(
        channel=channel, acquirer_merchant_id=account, kind=kind, state=BankOrder.State.WAITING
    )
    first = waiting.select_related("merchant").first()
    if first is None:
        return 0
    now = clock.merchant_now(first.merchant)
    if kind != BankFile.Kind.COLLECT:
        order_records.lock_collections()  # before their rows: bank messages lock those in an order of their own
    due = waiting.filter(file_at__lte=now).order_by("due_on", "payment")
    found = list(due.select_for_update(skip_locked=True, of=("self",))[:MAX_FILE_ORDERS])
    originals: dict[UUID, BankOrder] = {}
    if kind in _ABOUT_ORDERS:
        found, originals = _choose_of_one_file(found, now.astimezone(creditor.zone).date())
    mandates = _lock_mandates(found)
    today = now.astimezone(creditor.zone).date()
    returned = _list_returned_collections(found) if kind == BankFile.Kind.PAY else frozenset()
    orders = [order for order in found if not _is_refused(order, mandates, originals, returned, today, creditor)]
    if not orders:
        return len(found)
    file = BankFile(
        merchant_id=first.merchant_id,
        channel_id=channel,
        acquirer_merchant_id=account,
        kind=kind,
        creditor=_creditor_snapshot(creditor, kind, originals),
        orders_count=len(orders),
        total=sum((order.amount for order in orders), Decimal(0)),
        stamped_at=now,
        due_at=clock.real_now(),
    )
    file.message_id = _message_id(file.id)
    file.save(force_insert=True)
    batches: dict[tuple[object, ...], str] = {}
    earliest = _earliest_collection(creditor, kind, now)
    # A mandate's last collection comes after its others.
    for order in sorted(orders, key=lambda one: one.last):
        order.file, order.state = file, BankOrder.State.FILED
        order.due_on = max(order.due_on or earliest, earliest)
        if order.mandate_id is not None:
            _use_mandate(order, mandates[order.mandate_id])
        original = originals[order.original_payment].batch if order.original_payment in originals else ""
        batch = batches.setdefault((order.sequence, order.due_on, original), f"{file.message_id}-{len(batches) + 1}")
        order.batch = batch
        order.final_at = creditor.final_at(order.due_on) if kind == BankFile.Kind.COLLECT else None
    fields = ["file", "state", "due_on", "sequence", "batch", "final_at", "mandate_reference", "amendment"]
    BankOrder.objects.bulk_update(orders, fields, batch_size=500)
    changed = ["first_payment", "used_on", "amendment", "state", "state_reason", "state_at"]
    SepaMandate.objects.bulk_update(mandates.values(), changed, batch_size=500)
    return len(found)


def next_bank_file_run(merchant: Merchant) -> datetime | None:
    """When this merchant's next file is due, by the merchant's clock."""
    return find_earliest(BankOrder.objects.filter(merchant=merchant, state=BankOrder.State.WAITING), "file_at")


def _earliest_collection(creditor: Creditor, kind: BankFile.Kind, now: datetime) -> date:
    """The first day that a file made now can request: a run may be late."""
    today = target_calendar.roll_to_target_day(now.astimezone(creditor.zone).date())
    return target_calendar.target_day_after(today, creditor.lead_days) if kind == BankFile.Kind.COLLECT else today


_ABOUT_ORDERS: Final = frozenset({BankFile.Kind.REVERSE, *cancellations.REQUEST_KINDS})
"""Kinds whose message names the orders of one original file."""


def _choose_of_one_file(found: list[BankOrder], today: date) -> tuple[list[BankOrder], dict[UUID, BankOrder]]:
    """The reversals or cancellation requests of one original file, which a message names, and their original orders.
    The next run of this round or of the next one takes the others. A request waits until its original file is
    delivered."""
    originals = reversals.find_original_orders(found)
    wait = {one for one, behind in originals.items() if not cancellations.can_be_sent(behind, today)}
    found = [
        order for order in found if order.kind not in cancellations.REQUEST_KINDS or order.original_payment not in wait
    ]
    first = next(
        (originals[order.original_payment].file_id for order in found if order.original_payment in originals), None
    )
    mine = {one: behind for one, behind in originals.items() if behind.file_id == first}
    return [order for order in found if order.original_payment in mine or order.original_payment not in originals], mine


def _creditor_snapshot(creditor: Creditor, kind: BankFile.Kind, originals: Mapping[UUID, BankOrder]) -> dict[str, str]:
    held = creditor.as_file_json()
    if kind == BankFile.Kind.PAY:
        return held | {"schema": TRANSFER_SCHEMAS[creditor.schema]}
    if kind not in _ABOUT_ORDERS:
        return held
    original = next(iter(originals.values())).file
    assert original is not None
    schema = original.creditor["schema"]
    if kind == BankFile.Kind.REVERSE:
        own = reversals.REVERSAL_SCHEMAS[schema]
    else:
        own = creditor.cancel_schema or cancellations.CANCELLATION_SCHEMAS[schema]
    named = {"originalMessage": original.message_id, "originalSchema": schema, "iban": original.creditor["iban"]}
    return held | {"schema": own} | named


def _message_id(file: UUID) -> str:
    """TH and the file's id in 26 characters: letters and digits that every bank accepts, 28 of 35."""
    return f"TH{base64.b32encode(file.bytes).decode().rstrip('=')}"


def _lock_mandates(orders: Iterable[BankOrder]) -> dict[UUID, SepaMandate]:
    """The mandates of the orders, locked in a fixed order, so that two concurrent runs do not both send a first
    collection."""
    named = {order.mandate_id for order in orders if order.mandate_id is not None}
    held = SepaMandate.objects.filter(pk__in=named).order_by("pk").select_for_update()
    return {row.pk: row for row in held}


def _list_returned_collections(transfers: Iterable[BankOrder]) -> frozenset[UUID]:
    """The collections that ``transfers`` refund and that their debtors' banks have returned. None is returned while the
    lock on collections is held."""
    refunded = [order.original_payment for order in transfers if order.original_payment is not None]
    returned = BankOrder.objects.filter(pk__in=refunded, state=BankOrder.State.RETURNED)
    return frozenset(returned.values_list("pk", flat=True))


def _is_refused(
    order: BankOrder,
    mandates: Mapping[UUID, SepaMandate],
    originals: Mapping[UUID, BankOrder],
    returned: Container[UUID | None],
    today: date,
    creditor: Creditor,
) -> bool:
    """Reject an order whose mandate has been ended or blocked since it was made, or is not of the instrument or the
    creditor that the account has by now, unless it is amended to that one; a refund, by transfer or reversal, of what
    the debtor's bank has given back meanwhile; and a cancellation request that is decided or too late. No bank is
    asked."""
    if order.original_payment in returned:
        order_records.move_bank_order(order, BankOrder.State.REJECTED, reason=GIVEN_BACK_BEFORE)
        return True
    if order.kind in cancellations.REQUEST_KINDS:
        assert order.original_payment is not None
        found = cancellations.find_state_without_bank(order_records.lock_bank_order(order.original_payment), today)
        if found is not None:
            order_records.move_bank_order(order, found[0], reason=found[1])
        return found is not None
    if order.kind == BankFile.Kind.REVERSE:
        assert order.original_payment is not None
        behind = order_records.lock_bank_order(order.original_payment)
        if order.original_payment in originals and behind is not None and behind.state == BankOrder.State.BOOKED:
            return False
        order_records.move_bank_order(order, BankOrder.State.REJECTED, reason=GIVEN_BACK_BEFORE)
        return True
    if order.mandate_id is None:
        return False
    mandate = mandates[order.mandate_id]
    is_given = mandate.state == SepaMandate.State.ACTIVE or mandate.state_reason == SepaMandate.StateReason.DELETED
    if is_given and is_of_instrument(mandate, creditor.instrument) and amend_to_creditor(mandate, creditor):
        return False
    order_records.move_bank_order(order, BankOrder.State.REJECTED, reason=NO_MANDATE)
    return True


def _use_mandate(order: BankOrder, mandate: SepaMandate) -> None:
    """The order's sequence type and mandate as they go into the file: FRST for a recurring mandate's first collection,
    RCUR for later ones, FNAL for the last one, which ends the mandate; OOFF for a one-off mandate."""
    order.mandate_reference = mandate.mandate
    take_amendment(mandate, order)
    assert order.due_on is not None
    mandate.used_on = max(mandate.used_on or order.due_on, order.due_on)
    if not mandate.recurring:
        order.sequence = "OOFF"
        return
    order.sequence = "FNAL" if order.last else "RCUR" if mandate.first_payment is not None else "FRST"
    mandate.first_payment = mandate.first_payment or order.pk
    if order.last:
        mandate.state, mandate.state_reason = SepaMandate.State.ENDED, SepaMandate.StateReason.FINAL
        mandate.state_at = order.file.stamped_at if order.file is not None else None

"""Imports bank messages: each once and completely, in one transaction; orders are moved by a table of transitions.

The table defines what each kind of entry does to an order in each state, so a duplicate message, a notification and a
statement about the same booking, or entries out of order move an order once. The state is read under the order's lock.
Messages are imported one at a time: each names its orders in an order of its own, so two of them could wait for each
other. Payments follow by gateway.payments.bank_order_outcomes. Source: docs/connectors/sepa.md; decision 0035.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import BinaryIO, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet, Sum

from gateway.connectors.sepa import (
    bank_message_parser,
    cancellations,
    mandates,
    order_records,
    reversals,
    statement_entries,
)
from gateway.connectors.sepa.bank_message_parser import UnreadableBankMessageError
from gateway.connectors.sepa.order_transitions import ORDER_REPEATS, ORDER_TRANSITIONS
from gateway.connectors.sepa.statement_entries import EntryType, StatementEntry
from gateway.core import clock
from gateway.core.watched_folder import is_complete_file, move_watched_file, open_watched_file
from gateway.core.xml import XML_CHUNK_BYTES
from gateway.db.availability import is_database_away
from gateway.models import BankFile, BankMessage, BankOrder, BankOrderEvent
from gateway.timers import wakeup

MAX_BANK_MESSAGE_FINDINGS: Final = 100
"""Findings stored per message; further ones are only counted."""
MAX_FILES_PER_SCAN: Final = 50
"""Files of the watched folder that one scan imports."""
FILE_UNCHANGED_S: Final = 5.0
"""Seconds that a file must be unchanged before it is imported. A file that is renamed into the folder is complete
anyway."""
_NOT_PAID: Final = frozenset({BankOrder.State.REJECTED, BankOrder.State.RETURNED, BankOrder.State.WITHDRAWN})
_TAKEN_OUT: Final = (BankOrder.State.REJECTED, BankOrder.State.WITHDRAWN)
"""States of orders that their bank took out of their batch before it was booked."""
_SENT_TWICE: Final = frozenset({"DUPL", "AM05"})
_CANCELLABLE: Final = frozenset({BankFile.Kind.COLLECT, BankFile.Kind.PAY})

STATUS_REPORT: Final = "pain.002"

log = structlog.get_logger(__name__)


class DuplicateBankMessageError(Exception):
    """The same bytes were imported before."""


@dataclass(slots=True, kw_only=True)
class _IntakeResult:
    """The effects of one message."""

    row: BankMessage
    moved: int = 0
    findings: list[str] = field(default_factory=list)
    found: int = 0
    refused_by_mandate: dict[UUID, list[BankOrder]] = field(default_factory=dict)
    """Mandate → its collections that the bank rejected, returned or cancelled, or booked after it had rejected them."""

    def find(self, text: str) -> None:
        self.found += 1
        if len(self.findings) < MAX_BANK_MESSAGE_FINDINGS:
            self.findings.append(text)


def import_bank_message(stream: BinaryIO, name: str, source: BankMessage.Source) -> BankMessage:
    """Import a message: move the orders that it names, all or none. Raises UnreadableBankMessageError and
    DuplicateBankMessageError."""
    digest, size = _measure_message(stream)
    try:
        with transaction.atomic():
            order_records.lock_collections()
            row = BankMessage.objects.create(
                name=printable_file_name(name)[:255],
                kind="",
                source=source,
                sha256=digest,
                size=size,
                received_at=clock.real_now(),
            )
            taken = _IntakeResult(row=row)
            message = bank_message_parser.parse_bank_message(stream)
            row.kind = message.kind
            for one in _orders_first(
                statement_entries.parse_statement_entries(
                    bank_message_parser.BankXmlMessage(message.kind, _note_message_head(message.records, row))
                )
            ):
                _apply_entry(one, taken)
            mandates.update_rejected_mandates(taken.refused_by_mandate)
            row.orders_changed = taken.moved
            row.findings = taken.findings + (
                [f"and {taken.found - MAX_BANK_MESSAGE_FINDINGS:,} more"]
                if taken.found > MAX_BANK_MESSAGE_FINDINGS
                else []
            )
            row.save(update_fields=["kind", "message_id", "orders_changed", "findings"])
    except IntegrityError:
        if BankMessage.objects.filter(sha256=digest).exists():
            raise DuplicateBankMessageError("the same file was taken in before") from None
        raise
    if taken.moved:
        wakeup.notify_timer(order_records.BANK_ANSWER_TIMER)
    if taken.found:
        log.warning("bank_message_findings", message=row.message_id, kind=row.kind, findings=taken.found)
    return row


def import_watched_folder() -> int:
    """Import the files of the watched folder. Returns how many were moved away."""
    if not settings.GATEWAY_SEPA_INBOX:
        return 0
    folder = Path(settings.GATEWAY_SEPA_INBOX)
    if not folder.is_dir():
        return 0
    whole = [path for path in folder.iterdir() if is_complete_file(path, FILE_UNCHANGED_S)]
    whole.sort(key=_arrival_key)
    moved = 0
    for path in whole:
        try:
            moved += _import_watched_file(path)
        except Exception:  # one file must not block the others, whatever is wrong with it
            log.exception("bank_message_not_moved", file=printable_file_name(path.name))
        if moved >= MAX_FILES_PER_SCAN:
            break
    return moved


def printable_file_name(name: str) -> str:
    """A file's name as text: on disk it may be any bytes."""
    return os.fsencode(name).decode("utf-8", "replace")


def _measure_message(stream: BinaryIO) -> tuple[str, int]:
    """(sha256, size in bytes) of a message; rewinds the stream. Raises UnreadableBankMessageError."""
    digest, size = hashlib.sha256(), 0
    stream.seek(0)
    while chunk := stream.read(XML_CHUNK_BYTES):
        size += len(chunk)
        if size > settings.GATEWAY_SEPA_MAX_BYTES:
            raise UnreadableBankMessageError(f"the file is larger than {settings.GATEWAY_SEPA_MAX_BYTES:,} bytes")
        digest.update(chunk)
    stream.seek(0)
    return digest.hexdigest(), size


def _note_message_head(
    records: Iterator[bank_message_parser.MessageRecord], row: BankMessage
) -> Iterator[bank_message_parser.MessageRecord]:
    for record in records:
        row.message_id = row.message_id or statement_entries.read_message_id(record)
        yield record


def _orders_first(words: Iterator[StatementEntry]) -> Iterator[StatementEntry]:
    """Move the entry of a whole file behind those of its orders: an order's own entry takes precedence."""
    whole: StatementEntry | None = None
    for one in words:
        if not one.file or one.entry_type is EntryType.ACCEPTED:
            yield one
            continue
        if whole is not None:
            yield whole
        whole = one
    if whole is not None:
        yield whole


def _apply_entry(one: StatementEntry, taken: _IntakeResult) -> None:
    if one.entry_type in (EntryType.CANCELLED, EntryType.NOT_CANCELLED):
        _apply_answer(one, taken)
    elif one.file:
        _apply_to_file(one, taken)
    elif one.batch:
        _apply_to_batch(one, taken)
    elif one.order is not None:
        order = order_records.lock_bank_order(_resolve_reversal(one) or one.order)
        if order is None:
            taken.find(f"{one.where}: not one of ours")
        elif one.is_return and order.kind == BankFile.Kind.PAY:
            # The return of a transfer brings its money back.
            _move_order(order, replace(one, entry_type=EntryType.BACK_IN), taken)
        else:
            _move_order(order, one, taken)
    else:
        taken.find(f"{one.where or 'a statement'}: names no order of ours")


def _apply_answer(one: StatementEntry, taken: _IntakeResult) -> None:
    """Apply the answer to cancellation requests: the order that is cancelled first, then the request."""
    named = one.order is not None or one.batch or one.file or one.case
    requests = (
        cancellations.list_requests(order=one.order, batch=one.batch, file=one.file, case=one.case) if named else []
    )
    if not requests:
        taken.find(f"{one.where}: answers no cancellation request of ours")
    for original, request in sorted(requests):
        behind, order = order_records.lock_bank_order(original), order_records.lock_bank_order(request)
        if behind is None or order is None:
            continue
        refused = one.order is None and order.state == BankOrder.State.REJECTED
        if one.entry_type is EntryType.CANCELLED and not refused:
            _move_order(behind, replace(one, reason=""), taken)
        _move_order(order, one, taken)


def _resolve_reversal(one: StatementEntry) -> UUID | None:
    """The creditor's reversal or cancellation request that an entry is about, although it names the collection: a
    status of its file, or a booking out with no reason of the debtor's bank. None for any other entry."""
    assert one.order is not None
    if one.original:
        kinds = (BankFile.Kind.REVERSE, *cancellations.REQUEST_KINDS)
        file = BankFile.objects.filter(message_id=one.original, kind__in=kinds).first()
        return reversals.find_reversal(one.order, file) if file is not None else None
    if one.entry_type not in (EntryType.OUT, EntryType.BACK_OUT) or one.reason not in ("", reversals.NO_REASON_GIVEN):
        return None
    known = reversals.find_reversal(one.order)
    # Money out that is no return can only be the creditor's own: also of a reversal that the bank had rejected.
    return known or (reversals.find_rejected_reversal(one.order) if one.entry_type is EntryType.OUT else None)


def _apply_to_file(one: StatementEntry, taken: _IntakeResult) -> None:
    file = BankFile.objects.filter(message_id=one.file).first()
    if file is None:
        taken.find(f"file {one.file[:35]}: not one of ours")
        return
    if _rejects_the_copy(one, file):
        taken.find(f"file {file.message_id}: the bank has had it before, which counts for nothing")
        return
    BankFile.objects.filter(pk=file.pk).update(bank_status=one.status)
    if one.entry_type is EntryType.REJECTED:
        _move_orders(file.orders.all(), one, taken)


def _rejects_the_copy(one: StatementEntry, file: BankFile | None) -> bool:
    """True if the bank, of whichever level it speaks, rejects the second copy of a file that was sent again because the
    first had no answer: the first one counts."""
    return one.entry_type is EntryType.REJECTED and one.reason in _SENT_TWICE and file is not None and file.tries > 1


def _apply_to_batch(one: StatementEntry, taken: _IntakeResult) -> None:
    batch = BankOrder.objects.filter(batch=one.batch)
    orders = batch.exclude(state__in=_TAKEN_OUT)
    if one.rest:
        # The message has entries of their own for those that it names, and cannot mean what was booked meanwhile.
        _move_orders(orders.filter(state=BankOrder.State.FILED), one, taken)
        return
    if not batch.exists():
        taken.find(f"{one.where}: not one of ours")
        return
    if one.amount is not None:
        # One entry for the whole batch: unless it is for all of it, the orders concerned are unknown.
        if fault := _find_sum_fault(batch, one):
            taken.find(f"{one.where}: {fault}")
            return
        one = replace(one, amount=None, currency="")
    _move_orders(orders, one, taken)


def _find_sum_fault(batch: QuerySet[BankOrder], one: StatementEntry) -> str:
    """Why the sum of a booking cannot be that of a whole batch; '' if it is.

    What the bank has rejected or cancelled is not in the sum of banks that book net. Others book gross: all of the
    batch in one sum, and what was taken out of it once more, each order for itself. Source: docs/decisions/0158.
    """
    by_state = dict(batch.order_by().values_list("state").annotate(Sum("amount")))
    taken_out = [by_state.pop(state, Decimal(0)) for state in _TAKEN_OUT]
    booked = f"{one.amount} was booked in one sum"
    if not by_state:
        return f"{booked}, and all of its orders were rejected or withdrawn"
    net, apart = sum(by_state.values(), Decimal(0)), sum(taken_out, Decimal(0))
    is_return = one.entry_type in (EntryType.BACK_IN, EntryType.BACK_OUT)
    if is_return and apart == one.amount:
        return f"{booked}, which may be the return of what was rejected or withdrawn"
    if one.amount in (net, net + apart, *(net + part for part in taken_out)):
        return ""
    return f"{booked}, its orders come to {net}" + (f", or {net + apart} with what was taken out" if apart else "")


def _move_orders(orders: QuerySet[BankOrder], one: StatementEntry, taken: _IntakeResult) -> None:
    """Move each order by the state in which its lock finds it, but those that the entry spares: a status of a reversal
    or a request names the order behind it. One that is reported as pending then waits for a status of its own."""
    for payment, behind in list(orders.order_by("payment").values_list("pk", "original_payment")):
        if payment in one.spared or behind in one.spared:
            if not one.spared.get(payment, True):
                order_records.mark_undecided(payment, one.made_at)
            continue
        if (order := order_records.lock_bank_order(payment)) is not None:
            _move_order(order, one, taken)


def _move_order(order: BankOrder, one: StatementEntry, taken: _IntakeResult) -> None:
    where = f"order {order.pk.hex}"
    if one.account and order.file is not None and one.account != order.file.creditor["iban"]:
        taken.find(f"{where}: booked on another account than the file's")
        return
    if one.amount is not None and (one.amount, one.currency or "EUR") != (order.amount, order.currency):
        taken.find(f"{where}: {one.amount} {one.currency}, the order was {order.amount} {order.currency}")
        return
    if one.entry_type is EntryType.ACCEPTED:
        order_records.clear_undecided(order, one.made_at)
        return
    if _rejects_the_copy(one, order.file):
        taken.find(f"{where}: the bank has had its file before, which counts for nothing")
        return
    target = ORDER_TRANSITIONS.get((BankFile.Kind(order.kind), one.entry_type, BankOrder.State(order.state)))
    if target is None:
        if order.state not in ORDER_REPEATS[BankFile.Kind(order.kind), one.entry_type]:
            taken.find(
                f"{where}: the bank says {one.entry_type.value!r}, our books say {BankOrder.State(order.state).label!r}"
            )
        return
    if target is BankOrder.State.BOOKED and order.file is None:
        taken.find(f"{where}: the bank has booked it, and it was in no file")
        return
    if _is_outranked(order, target, one) or _is_outdated(order, target, one.on):
        if why := _explain_outdated(order, target, one):
            taken.find(f"{where}: {why}")
        return
    booked_after_all = order.state == BankOrder.State.REJECTED and target is BankOrder.State.BOOKED
    order_records.move_bank_order(order, target, reason=one.reason, on=one.on, charges=one.charges, message=taken.row)
    taken.moved += 1
    if order.kind in _CANCELLABLE and one.entry_type is not EntryType.CANCELLED:
        taken.moved += order_records.settle_cancellation(order, taken.row)
    if order.mandate_id is not None and (target in _NOT_PAID or booked_after_all):
        taken.refused_by_mandate.setdefault(order.mandate_id, []).append(order)


def _explain_outdated(order: BankOrder, target: BankOrder.State, one: StatementEntry) -> str:
    """Why a person should look at an entry that counts less than another; '' for a mere repeat."""
    if order.state in (BankOrder.State.BOOKED, BankOrder.State.REJECTED):
        note = f"the bank says {one.entry_type.value!r}, and what it booked or returned on that day or since counts"
        return note if target is not BankOrder.State.REJECTED else ""
    if one.on is None and target is BankOrder.State.RETURNED:
        return "returned on a day that is not named, after a return that was won back"
    return ""


def _is_outranked(order: BankOrder, target: BankOrder.State, one: StatementEntry) -> bool:
    """True if a booking or a return that is known counts more than this entry about a rejected or booked order.

    The later day wins, and on one day what was booked wins over what a status report says, in whatever order the
    messages come. A return by the books is kept where the order was rejected: a booking of the same day or before has
    been undone by it.
    """
    events = BankOrderEvent.objects.filter(order=order, message__isnull=False)
    if order.state == BankOrder.State.BOOKED and one.entry_type is EntryType.REJECTED:
        return one.on is not None and events.filter(state=BankOrder.State.BOOKED, on__gte=one.on).exists()
    if order.state != BankOrder.State.REJECTED:
        return False
    rejections = events.filter(state=BankOrder.State.REJECTED)
    returned = rejections.exclude(message__kind=STATUS_REPORT)
    if target is BankOrder.State.REJECTED:
        return (returned.filter(on__gte=one.on) if one.on is not None else returned).exists()
    if one.on is None:
        return returned.exists()
    later_rejections = rejections.filter(message__kind=STATUS_REPORT, on__gt=one.on)
    return later_rejections.exists() or returned.filter(Q(on__gte=one.on) | Q(on=None)).exists()


def _is_outdated(order: BankOrder, target: BankOrder.State, on: date | None) -> bool:
    """True if the entry is about an earlier return of an order that has been returned before.

    Two messages report each return, and each returned collection may be won back and returned again.
    """
    if order.state not in (BankOrder.State.RETURNED, BankOrder.State.WON_BACK):
        return False
    if on is None:
        return True
    events = BankOrderEvent.objects.filter(order=order)
    other = BankOrder.State.WON_BACK if target is BankOrder.State.RETURNED else BankOrder.State.RETURNED
    return events.filter(state=target, on__gte=on).exists() or events.filter(state=other, on__gt=on).exists()


def _arrival_key(path: Path) -> tuple[float, str]:
    """Sort key: banks number their files in many ways, so older files come first."""
    try:
        return path.lstat().st_mtime, path.name
    except OSError:
        return 0.0, path.name


def _import_watched_file(path: Path) -> bool:
    """Import a file and move it away. Of two concurrent scans, the second finds a duplicate, or no file."""
    try:
        with open_watched_file(path) as stream:
            try:
                import_bank_message(stream, path.name, BankMessage.Source.FOLDER)
            except (DuplicateBankMessageError, UnreadableBankMessageError) as fault:
                return _move_file(path, "failed", str(fault))
            except Exception as fault:
                if is_database_away(fault):
                    raise  # not the file's fault: it stays for the next scan
                log.exception("bank_message_failed", file=printable_file_name(path.name))
                return _move_file(
                    path, "failed", "a fault of the gateway's own: its log says which; nothing was taken in"
                )
    except OSError as fault:
        log.warning("bank_message_unreadable", file=printable_file_name(path.name), why=fault.strerror)
        return False
    return _move_file(path, "done")


def _move_file(path: Path, where: str, why: str = "") -> bool:
    moved = move_watched_file(path, where, why, folder_mode=0o700)
    if moved and why:
        log.warning("bank_message_refused", file=printable_file_name(path.name), why=why)
    return moved

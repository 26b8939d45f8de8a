"""The exception queue: records without exactly one payment, open findings, and a clerk's actions on them.

Every action is a compare-and-set with its audit entry; the last one can be undone. Source: Part B, Reconciliation file
(matching).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import transaction
from django.db.models import Case, Count, DecimalField, F, Q, QuerySet, When
from django.db.models.functions import Cast
from django.utils.translation import gettext as _

from gateway.access import audit_log
from gateway.core.masking import mask_note
from gateway.db.database_clock import read_database_time
from gateway.db.statement import execute_sql
from gateway.models import Payment, Status
from gateway.payments.operation_table import REVERSED_BY_REFUND
from reporting.month_end.closed_months import hold_month, is_day_closed, list_closed_days
from reporting.reconciliation.models import ReconciliationFile
from reporting.settlement import chargeback_booking, findings
from reporting.settlement.layout import CHARGEBACK_TYPE_VALUES
from reporting.settlement.matching import DISPUTABLE_TYPES, INBOUND_TYPES, OUTBOUND_TYPES
from reporting.settlement.models import IS_ACTIVE_MATCH, Finding, Match, MatchState, RecordType, SettlementRecord

MAX_SUGGESTED_PAYMENTS: Final = 20
CANDIDATE_WINDOW: Final = timedelta(days=4)
"""Candidates are searched within this time before and after the record's own."""
UNMATCHED_STATES: Final = (MatchState.NOT_MATCHED, MatchState.MULTIPLE_MATCHES)
MAX_NOTE_CHARS: Final = 500
MAX_ACCEPTED_FINDINGS: Final = 1_000
"""Findings closed at once; the rest waits for another click."""


class ExceptionActionError(Exception):
    """The action does not apply; the text says why and may be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePayment:
    """A payment that a record may be about. ``same``: what the two have in common, in words; ``settled``: another
    record has settled it already."""

    payment: Payment
    same: tuple[str, ...]
    settled: bool


# --- reading ----------------------------------------------------------------------------------------------------


def list_unmatched_records() -> QuerySet[SettlementRecord]:
    """Records without exactly one payment, oldest first, also those whose merchant is unknown."""
    return SettlementRecord.objects.filter(state__in=UNMATCHED_STATES, without_payment=False).order_by("id")


def list_open_findings() -> QuerySet[Finding]:
    """Findings that are not closed, oldest first."""
    return Finding.objects.filter(closed_at=None).select_related("record").order_by("id")


def list_candidate_payments(record: SettlementRecord) -> list[CandidatePayment]:
    """Payments that the record may be about, the most likely first: those that matching found, else payments of the
    merchant around its time with its amount, its reference or its last four digits."""
    named = set(Match.objects.filter(IS_ACTIVE_MATCH, record=record).values_list("payment", flat=True))
    if named:
        found = list(Payment.objects.filter(pk__in=named))
    elif record.merchant_id is not None:
        around = (record.presented_at - CANDIDATE_WINDOW, record.presented_at + CANDIDATE_WINDOW)
        kinds = (
            DISPUTABLE_TYPES
            if record.record_type in CHARGEBACK_TYPE_VALUES
            else (INBOUND_TYPES if record.transaction_type == "DEBIT" else (*OUTBOUND_TYPES, "RV"))
        )
        found = list(
            Payment.objects.filter(
                merchant=record.merchant_id,
                created_at__range=around,
                payment_type__in=kinds,
                status=Status.APPROVED,
                amount=record.amount,
            ).exclude(~Q(connector__in=REVERSED_BY_REFUND), payment_type="RV")[: MAX_SUGGESTED_PAYMENTS * 5]
        )
    else:
        return []
    settled = set(
        Match.objects.filter(
            IS_ACTIVE_MATCH, payment__in=[one.id for one in found], chosen=True, record_type=RecordType.SETTLED
        )
        .exclude(record=record)
        .values_list("payment", flat=True)
    )
    weighed = [
        CandidatePayment(payment=one, same=_list_similarities(record, one), settled=one.id in settled) for one in found
    ]
    return sorted(weighed, key=lambda one: (one.settled, -len(one.same), one.payment.id))[:MAX_SUGGESTED_PAYMENTS]


def _list_similarities(record: SettlementRecord, payment: Payment) -> tuple[str, ...]:
    """What a record and a payment have in common."""
    zone = record.file.institute.zone
    held_at = payment.acquirer_merchant_id or payment.channel_id.hex
    last4 = payment.answer.get("card", {}).get("last4Digits", "")
    return tuple(
        word
        for word, same in (
            ("id", payment.connector_tx_id in {record.tx_id1, record.tx_id2, record.tx_id3} - {""}),
            ("reference", payment.merchant_transaction_id == record.merchant_transaction_id != ""),
            ("amount", payment.amount == record.amount),
            ("currency", payment.currency == record.currency),
            ("account", held_at == record.institute_merchant_id),
            ("day", payment.created_at.astimezone(zone).date() == record.presented_at.astimezone(zone).date()),
            ("card", last4 == record.last4 != ""),
        )
        if same
    )


# --- actions -----------------------------------------------------------------------------------------------------


def link_payment(record: SettlementRecord, payment: Payment, by: audit_log.Actor, note: str = "") -> None:
    """Match the record with this payment. Findings are detected anew, and a chargeback is booked.

    Raises ExceptionActionError: the payment is another merchant's, the record is matched already, or it was changed
    meanwhile.
    """
    if record.state not in UNMATCHED_STATES:
        raise ExceptionActionError(
            f"the line is {record.state or 'a fee, which no payment is behind'}; undo that first"
        )
    if record.merchant_id not in (None, payment.merchant_id):
        raise ExceptionActionError("the payment is another merchant's")
    if record.record_type in CHARGEBACK_TYPE_VALUES and payment.payment_type not in DISPUTABLE_TYPES:
        raise ExceptionActionError(
            f"a chargeback is about a {', '.join(DISPUTABLE_TYPES)}, not a {payment.payment_type}"
        )
    with _hold_open_month(record, payment.merchant_id):
        _link_payment(record, payment, by, mask_note(note, MAX_NOTE_CHARS))
        if record.record_type in CHARGEBACK_TYPE_VALUES:
            chargeback_booking.book_record(record, by)


def _link_payment(record: SettlementRecord, payment: Payment, by: audit_log.Actor, note: str) -> None:
    now = read_database_time()
    with transaction.atomic():
        # If two clerks link a record each to the same payment, the second sees the first one's link.
        execute_sql("SELECT pg_advisory_xact_lock(hashtextextended(%(payment)s::text, 0))", {"payment": payment.id.hex})
        changes: dict[str, Any] = {"merchant_id": payment.merchant_id}
        if record.merchant_id is None:
            # Reconciliation files of past days never change: the record appears in today's.
            changes["assigned_at"] = now
        _update_record(record, state=MatchState.MATCHED, without_payment=False, **changes)
        Match.objects.create(
            record=record,
            payment=payment.id,
            record_type=record.record_type,
            chosen=True,
            rule="clerk",
            by=by.name[:150],
            note=note,
            made_at=now,
        )
        findings.detect_record_findings([record.id], record.institute_id, now)
        _update_file_counts(record)
        audit_log.record_audit_entry(
            by, "link", record, before={"state": "open"}, after={"payment": payment.id.hex, "note": note}
        )


def book_linked_record(record: SettlementRecord, by: audit_log.Actor) -> None:
    """Book a matched chargeback or reversal again, even if another line was about the same: a clerk has checked. Raises
    ExceptionActionError: it is booked already, or cannot be."""
    if record.record_type not in CHARGEBACK_TYPE_VALUES or record.state != MatchState.MATCHED:
        raise ExceptionActionError("only a chargeback or a reversal with its payment can be entered")
    if record.chargeback is not None:
        raise ExceptionActionError("it is in the ledger already")
    with _hold_open_month(record, record.merchant_id):
        if chargeback_booking.book_record(record, by, allow_duplicate=True) is None:
            finding = Finding.objects.filter(record=record, kind="NOT_BOOKED", closed_at=None).first()
            raise ExceptionActionError(finding.found if finding is not None else "it cannot be entered")
        audit_log.record_audit_entry(by, "book", record)


def mark_without_payment(record: SettlementRecord, by: audit_log.Actor, note: str) -> None:
    """Mark the record as having no payment; ``note`` says why. Raises ExceptionActionError."""
    if record.state not in UNMATCHED_STATES or record.without_payment:
        raise ExceptionActionError("only a line that waits can be marked")
    note = mask_note(note, MAX_NOTE_CHARS)
    if not note:
        raise ExceptionActionError("note: say why no payment is to be looked for")
    with transaction.atomic():
        _require_open_month(record, record.merchant_id)
        _update_record(record, without_payment=True)
        audit_log.record_audit_entry(by, "mark", record, after={"note": note})


@transaction.atomic
def undo_resolution(record: SettlementRecord, by: audit_log.Actor) -> None:
    """Undo a mark or a match, made by a clerk or automatically; the record is open again.

    Raises ExceptionActionError: there is nothing to undo, or the chargeback is in the ledger, where only a reversal
    returns it.
    """
    _require_open_month(record, record.merchant_id)
    if record.without_payment:
        _update_record(record, without_payment=False)
        audit_log.record_audit_entry(by, "undo", record, before={"without_payment": True})
        return
    linked = Match.objects.filter(IS_ACTIVE_MATCH, record=record, chosen=True).first()
    if linked is None:
        raise ExceptionActionError("there is nothing to undo")
    chargeback_booking.hold_record(record)
    if record.chargeback is not None:
        raise ExceptionActionError("its chargeback is in the ledger; a reversal takes it back")
    _require_open_siblings(record, linked.payment)
    _require_open_due_month(record, linked.payment)
    now = read_database_time()
    left = Match.objects.filter(IS_ACTIVE_MATCH, record=record, chosen=False).exists()
    _update_record(
        record,
        state=MatchState.MULTIPLE_MATCHES if left else MatchState.NOT_MATCHED,
        **_clear_derived_merchant(record, linked),
    )
    Match.objects.filter(pk=linked.pk, undone_at=None).update(undone_at=now, undone_by=by.name[:150])
    of_payment = [kind.name for kind in findings.FINDING_KINDS if not kind.alone]
    Finding.objects.filter(record=record, kind__in=of_payment, closed_at=None).update(
        closed_at=now, closed_by=by.name[:150], note="the link was undone"
    )
    _clear_double_settlement(linked, by, now)
    _update_file_counts(record)
    audit_log.record_audit_entry(
        by, "undo", record, before={"payment": linked.payment.hex}, after={"state": record.state}
    )


def _clear_double_settlement(undone: Match, by: audit_log.Actor, now: datetime) -> None:
    """Close the finding of a double settlement if only one record of the payment is left."""
    left = Match.objects.filter(IS_ACTIVE_MATCH, payment=undone.payment, chosen=True, record_type=RecordType.SETTLED)
    if undone.record_type == RecordType.SETTLED and left.count() == 1:
        Finding.objects.filter(record__in=left.values("record"), kind="TWICE", closed_at=None).update(
            closed_at=now, closed_by=by.name[:150], note="the other line is not linked any more"
        )


def _clear_derived_merchant(record: SettlementRecord, linked: Match) -> dict[str, Any]:
    """Clear the record's merchant if it was derived only from the link being undone, unless a reconciliation file
    has reported it since."""
    if record.assigned_at is None or record.assigned_at != linked.made_at:
        return {}
    reported = ReconciliationFile.objects.filter(merchant=record.merchant_id, ends_at__gt=record.assigned_at)
    return {} if reported.exists() else {"merchant_id": None, "assigned_at": None}


def close_finding(finding: Finding, by: audit_log.Actor, note: str) -> None:
    """Close a finding; ``note`` says how it was dealt with. Raises ExceptionActionError."""
    note = mask_note(note, MAX_NOTE_CHARS)
    if not note:
        raise ExceptionActionError("note: say how this was dealt with")
    with transaction.atomic():
        _require_open_month(finding.record, finding.record.merchant_id)
        done = Finding.objects.filter(pk=finding.pk, closed_at=None).update(
            closed_at=read_database_time(), closed_by=by.name[:150], note=note
        )
        if not done:
            raise ExceptionActionError("somebody else has closed it already")
        audit_log.record_audit_entry(by, "close", finding, after={"kind": finding.kind, "note": note})


# --- equal differences ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class EqualDifference:
    """``count`` open findings of lines whose amount differs from their payment's by the same ``amount``."""

    currency: str
    amount: Decimal
    count: int


_DECIMAL: Final = DecimalField(max_digits=19, decimal_places=3)
# Other kinds have no numbers in these columns, and a database may convert them before it looks at the kind.
_DIFFERENCE: Final = Case(When(kind="AMOUNT", then=Cast("found", _DECIMAL) - Cast("expected", _DECIMAL)))


def _list_differences(records: QuerySet[SettlementRecord]) -> QuerySet[Any]:
    """Open findings of other amounts, with the ``difference``."""
    found = Finding.objects.filter(closed_at=None, kind="AMOUNT", record__in=records, record__state=MatchState.MATCHED)
    return found.annotate(difference=_DIFFERENCE)


def list_equal_differences(records: QuerySet[SettlementRecord], most: int) -> list[EqualDifference]:
    """Differences of amounts that several of ``records`` have in common, the most frequent first."""
    groups = _list_differences(records).order_by().values("record__currency", "difference").annotate(count=Count("pk"))
    return [
        EqualDifference(currency=row["record__currency"], amount=row["difference"], count=row["count"])
        for row in groups.filter(count__gt=1).order_by("-count", "record__currency", "difference")[:most]
    ]


def accept_equal_differences(
    records: QuerySet[SettlementRecord], currency: str, amount: Decimal, by: audit_log.Actor, note: str
) -> tuple[datetime, int]:
    """Close the findings of lines that differ by the same amount, at most MAX_ACCEPTED_FINDINGS, with one note; as
    :func:`accept_findings`."""
    found = _list_differences(records).filter(record__currency=currency, difference=amount)
    return accept_findings(found, by, note)


def accept_findings(found: QuerySet[Finding], by: audit_log.Actor, note: str) -> tuple[datetime, int]:
    """Close open findings with one note, at most MAX_ACCEPTED_FINDINGS, by a fixed number of statements. Lines of
    closed months are left out. Returns when, which names this acceptance for :func:`reopen_accepted_differences`, and
    how many. Raises ExceptionActionError."""
    note = mask_note(note, MAX_NOTE_CHARS)
    if not note:
        raise ExceptionActionError(_("note: say why this is accepted"))
    with transaction.atomic():
        at = read_database_time()
        rows = found.filter(closed_at=None).select_related("record").order_by("pk")[:MAX_ACCEPTED_FINDINGS]
        open_ = _skip_closed_months(list(rows))
        own = Finding.objects.filter(pk__in=[finding.pk for finding in open_], closed_at=None)
        own.update(closed_at=at, closed_by=by.name[:150], note=note)
        done = _find_changed(open_, closed_at=at, closed_by=by.name[:150])
        _record_findings(by, "close", done, after=lambda finding: {"kind": finding.kind, "note": note})
    if not done:
        raise ExceptionActionError(_("nothing of this is open any more, or its month is closed"))
    return at, len(done)


def _skip_closed_months(found: list[Finding]) -> list[Finding]:
    closed = list_closed_days((one.record.merchant_id, one.record.settlement_date) for one in found)
    return [one for one in found if (one.record.merchant_id, one.record.settlement_date) not in closed]


def _find_changed(found: list[Finding], **now: Any) -> list[Finding]:
    """The records that this transaction changed: another user may have been first with the others."""
    keys = set(Finding.objects.filter(pk__in=[one.pk for one in found], **now).values_list("pk", flat=True))
    return [one for one in found if one.pk in keys]


def _record_findings(
    by: audit_log.Actor,
    action: str,
    found: list[Finding],
    *,
    before: Callable[[Finding], dict[str, Any]] | None = None,
    after: Callable[[Finding], dict[str, Any]] | None = None,
) -> None:
    """An audit entry for each, by one statement."""
    audit_log.record_audit_entries(
        by,
        action,
        [
            (one, one.record.merchant_id, before(one) if before else None, after(one) if after else None)
            for one in found
        ],
    )


def list_accepted_differences(records: QuerySet[SettlementRecord], at: datetime, by: str) -> QuerySet[Finding]:
    """What ``by`` accepted together at this moment, as far as it can be undone: the lines are still matched, or the
    finding is about the line alone."""
    alone = [kind.name for kind in findings.FINDING_KINDS if kind.alone]
    return Finding.objects.filter(
        Q(record__state=MatchState.MATCHED) | Q(kind__in=alone),
        closed_at=at,
        closed_by=by[:150],
        record__in=records,
    )


def reopen_accepted_differences(records: QuerySet[SettlementRecord], at: datetime, by: audit_log.Actor) -> int:
    """Undo an acceptance, but for lines of closed months. Returns how many findings are open again."""
    with transaction.atomic():
        found = _skip_closed_months(list(list_accepted_differences(records, at, by.name).select_related("record")))
        own = Finding.objects.filter(pk__in=[one.pk for one in found], closed_at=at)
        own.update(closed_at=None, closed_by="", note="")
        done = _find_changed(found, closed_at=None)
        _record_findings(by, "undo", done, before=lambda one: {"kind": one.kind, "note": one.note})
    return len(done)


def mark_many_without_payment(records: QuerySet[SettlementRecord], by: audit_log.Actor, note: str) -> tuple[int, int]:
    """Mark the lines that wait as having no payment, with one note; returns how many were, and how many were not: they
    wait no longer, or their month is closed. Raises ExceptionActionError."""
    return _mark_many(records.filter(state__in=UNMATCHED_STATES, without_payment=False), by, note, mark=True)


def unmark_many(records: QuerySet[SettlementRecord], by: audit_log.Actor) -> tuple[int, int]:
    """Take marks back; as :func:`mark_many_without_payment`."""
    return _mark_many(records.filter(without_payment=True), by, "-", mark=False)


def _mark_many(records: QuerySet[SettlementRecord], by: audit_log.Actor, note: str, *, mark: bool) -> tuple[int, int]:
    note = mask_note(note, MAX_NOTE_CHARS)
    if not note:
        raise ExceptionActionError(_("note: say why no payment is to be looked for"))
    with transaction.atomic():
        found = list(records.order_by("pk")[:MAX_ACCEPTED_FINDINGS])
        closed = list_closed_days((row.merchant_id, row.settlement_date) for row in found)
        open_ = [row for row in found if (row.merchant_id, row.settlement_date) not in closed]
        versions = {row.pk: row.version for row in open_}
        same = Q(pk__in=[])
        for version in set(versions.values()):
            same |= Q(pk__in=[pk for pk, own in versions.items() if own == version], version=version)
        SettlementRecord.objects.filter(same, without_payment=not mark).update(
            without_payment=mark, version=F("version") + 1
        )
        now = SettlementRecord.objects.filter(pk__in=versions, without_payment=mark).values_list("pk", "version")
        done = [row for row in open_ if (row.pk, row.version + 1) in set(now)]
        action, before, after = ("mark", None, {"note": note}) if mark else ("undo", {"without_payment": True}, None)
        audit_log.record_audit_entries(by, action, [(row, row.merchant_id, before, after) for row in done])
    return len(done), len(found) - len(done)


def _require_open_siblings(record: SettlementRecord, payment: UUID) -> None:
    """Raise ExceptionActionError if another line of the payment lies in a closed month: whether it is settled once or
    twice is part of what was signed."""
    others = Match.objects.filter(IS_ACTIVE_MATCH, payment=payment, chosen=True).exclude(record=record.pk)
    for merchant, day in others.values_list("record__merchant_id", "record__settlement_date"):
        if is_day_closed(merchant, day):
            words = _(
                "it would change the month %s, which is closed: the same payment has a line there; reopen it first"
            )
            raise ExceptionActionError(words % f"{day:%Y-%m}")


def _require_open_month(record: SettlementRecord, merchant: UUID | None) -> None:
    """Raise ExceptionActionError if the record's month is closed: its figures are signed. Else it stays open until the
    transaction ends."""
    if is_day_closed(merchant, record.settlement_date):
        raise _closed_month(record)


@contextmanager
def _hold_open_month(record: SettlementRecord, merchant: UUID | None) -> Iterator[None]:
    """As :func:`_require_open_month`, for what takes several transactions: the month stays open within the block."""
    with hold_month(merchant, record.settlement_date) as closed:
        if closed:
            raise _closed_month(record)
        yield


def _closed_month(record: SettlementRecord) -> ExceptionActionError:
    return ExceptionActionError(_("the month %s is closed; reopen it first") % f"{record.settlement_date:%Y-%m}")


def _require_open_due_month(record: SettlementRecord, payment: UUID) -> None:
    """Raise ExceptionActionError if the payment without its line would be missing in a closed month: the one in which
    its institute should have settled it."""
    found = Payment.objects.filter(pk=payment).only("merchant_id", "created_at").first()
    if found is None:
        return
    made = found.created_at.astimezone(ZoneInfo(record.institute.time_zone)).date()
    due = made + timedelta(days=record.institute.settles_within_days)
    if is_day_closed(found.merchant_id, due):
        words = _("the payment would be missing in the month %s, which is closed; reopen it first")
        raise ExceptionActionError(words % f"{due:%Y-%m}")


def _update_record(record: SettlementRecord, **changes: Any) -> None:
    """Change the record if it is still as it was read. Raises ExceptionActionError."""
    # Entering a chargeback leaves the version as it is.
    same = SettlementRecord.objects.filter(pk=record.pk, version=record.version, chargeback=record.chargeback)
    if not same.update(version=record.version + 1, **changes):
        raise ExceptionActionError("somebody else has changed this line; look at it again")
    record.version += 1
    for name, value in changes.items():
        setattr(record, name, value)


def _update_file_counts(record: SettlementRecord) -> None:
    """Update the file's counts by matching status."""
    from reporting.settlement.intake import count_by_match_state

    file = record.file
    type(file).objects.filter(pk=file.pk).update(**count_by_match_state(file))

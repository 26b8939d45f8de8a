"""The exceptions of settlement: what somebody has to look at, and what they can do about it.

The queue is the records without one payment, and the findings that nobody has closed. Every verb is a compare-and-set
with its audit entry; the last one can be undone. Source: Part B, Reconciliation file (matching); design journey J5.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet

from gateway import audit, clock
from gateway.masking import kept_note
from gateway.models import Merchant, Payment, Status
from gateway.rows import execute
from reporting import booking, findings
from reporting.layout import CHARGEBACKS
from reporting.matching import DISPUTABLE, INWARD, OUTWARD
from reporting.models import ACTIVE, Finding, Match, Matching, RecordType, SettlementRecord
from reporting.outgoing import ReconciliationFile

MOST_CANDIDATES: Final = 20
NEAR: Final = timedelta(days=4)
"""Around a line's own time, in which candidates are looked for."""
OPEN_STATES: Final = (Matching.NOT_MATCHED, Matching.MULTIPLE_MATCHES)
NOTE_CHARS: Final = 500


class NotPossible(Exception):
    """The verb does not apply; the text says why and may be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A payment that a line may be about. ``same``: what speaks for it, in words; ``settled``: another line has
    settled it already."""

    payment: Payment
    same: tuple[str, ...]
    settled: bool


# --- reading ----------------------------------------------------------------------------------------------------


def unmatched(merchants: QuerySet[Merchant] | None = None) -> QuerySet[SettlementRecord]:
    """Records that wait for somebody to say which payment they are about, oldest first. ``merchants``: whose; without
    it also those of nobody."""
    found = SettlementRecord.objects.filter(state__in=OPEN_STATES, marked=False)
    return (found if merchants is None else found.filter(merchant__in=merchants)).order_by("id")


def open_findings(merchants: QuerySet[Merchant] | None = None) -> QuerySet[Finding]:
    """Findings that nobody has closed, oldest first."""
    found = Finding.objects.filter(closed_at=None).select_related("record")
    return (found if merchants is None else found.filter(merchant__in=merchants)).order_by("id")


def candidates(record: SettlementRecord) -> list[Candidate]:
    """Payments that the line may be about, the likeliest first: those that matching found, else payments of the
    merchant around its time with its amount, its reference or its last four digits."""
    named = set(Match.objects.filter(ACTIVE, record=record).values_list("payment", flat=True))
    if named:
        found = list(Payment.objects.filter(pk__in=named))
    elif record.merchant_id is not None:
        around = (record.presented_at - NEAR, record.presented_at + NEAR)
        kinds = DISPUTABLE if record.record_type in CHARGEBACKS else (
            INWARD if record.transaction_type == "DEBIT" else OUTWARD
        )  # fmt: skip
        found = list(
            Payment.objects.filter(
                merchant=record.merchant_id, created_at__range=around, payment_type__in=kinds, status=Status.APPROVED,
                amount=record.amount,
            )[: MOST_CANDIDATES * 5]
        )  # fmt: skip
    else:
        return []
    settled = set(
        Match.objects.filter(ACTIVE, payment__in=[one.id for one in found], chosen=True, record_type=RecordType.SETTLED)
        .exclude(record=record).values_list("payment", flat=True)
    )  # fmt: skip
    weighed = [Candidate(payment=one, same=_same(record, one), settled=one.id in settled) for one in found]
    return sorted(weighed, key=lambda one: (one.settled, -len(one.same), one.payment.id))[:MOST_CANDIDATES]


def _same(record: SettlementRecord, payment: Payment) -> tuple[str, ...]:
    """What a line and a payment have in common."""
    zone = record.file.institute.zone
    held_at = payment.account or payment.channel_id.hex
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


# --- verbs ------------------------------------------------------------------------------------------------------


def link(record: SettlementRecord, payment: Payment, by: audit.Actor, note: str = "") -> None:
    """This is the payment. Findings are looked for anew, and a chargeback is entered into the ledger.

    Raises NotPossible: another merchant's, matched already, or changed by somebody else.
    """
    if record.state not in OPEN_STATES:
        raise NotPossible(f"the line is {record.state or 'a fee, which no payment is behind'}; undo that first")
    if record.merchant_id not in (None, payment.merchant_id):
        raise NotPossible("the payment is another merchant's")
    if record.record_type in CHARGEBACKS and payment.payment_type not in DISPUTABLE:
        raise NotPossible(f"a chargeback is about a {', '.join(DISPUTABLE)}, not a {payment.payment_type}")
    note = kept_note(note, NOTE_CHARS)
    now = clock.real()
    with transaction.atomic():
        # Of two who link a line each to the same payment, the second one sees the first one's.
        execute("SELECT pg_advisory_xact_lock(hashtextextended(%(payment)s::text, 0))", {"payment": payment.id.hex})
        told: dict[str, Any] = {"merchant_id": payment.merchant_id}
        if record.merchant_id is None:
            # The files of days that are over stay what they were: the line stands in that of today.
            told["assigned_at"] = now
        _change(record, state=Matching.MATCHED, marked=False, **told)
        Match.objects.create(
            record=record, payment=payment.id, record_type=record.record_type, chosen=True, rule="clerk",
            by=by.name[:150], note=note, made_at=now,
        )  # fmt: skip
        findings.of_records([record.id], record.institute_id, now)
        _count(record)
        audit.record(by, "link", record, before={"state": "open"}, after={"payment": payment.id.hex, "note": note})
    if record.record_type in CHARGEBACKS:
        booking.enter(record, by)


def book(record: SettlementRecord, by: audit.Actor) -> None:
    """Try again to enter a matched chargeback or reversal; also one that tells of what another line told of, since
    somebody has looked now. Raises NotPossible: it is entered already, or cannot be."""
    if record.record_type not in CHARGEBACKS or record.state != Matching.MATCHED:
        raise NotPossible("only a chargeback or a reversal with its payment can be entered")
    if record.chargeback is not None:
        raise NotPossible("it is in the ledger already")
    if booking.enter(record, by, anyway=True) is None:
        finding = Finding.objects.filter(record=record, kind="NOT_BOOKED", closed_at=None).first()
        raise NotPossible(finding.found if finding is not None else "it cannot be entered")
    audit.record(by, "book", record)


def mark(record: SettlementRecord, by: audit.Actor, note: str) -> None:
    """No payment is to be looked for; ``note`` says why. Raises NotPossible."""
    if record.state not in OPEN_STATES or record.marked:
        raise NotPossible("only a line that waits can be marked")
    note = kept_note(note, NOTE_CHARS)
    if not note:
        raise NotPossible("note: say why no payment is to be looked for")
    with transaction.atomic():
        _change(record, marked=True)
        audit.record(by, "mark", record, after={"note": note})


def undo(record: SettlementRecord, by: audit.Actor) -> None:
    """Take back a mark, or what the line was matched with, by a clerk or by itself; then it waits again. Raises
    NotPossible: nothing to undo, or the chargeback is in the ledger, where only a reversal takes it back."""
    if record.marked:
        with transaction.atomic():
            _change(record, marked=False)
            audit.record(by, "undo", record, before={"marked": True})
        return
    linked = Match.objects.filter(ACTIVE, record=record, chosen=True).first()
    if linked is None:
        raise NotPossible("there is nothing to undo")
    if record.chargeback is not None:
        raise NotPossible("its chargeback is in the ledger; a reversal takes it back")
    now = clock.real()
    with transaction.atomic():
        left = Match.objects.filter(ACTIVE, record=record, chosen=False).exists()
        _change(
            record, state=Matching.MULTIPLE_MATCHES if left else Matching.NOT_MATCHED, **_nobodys_again(record, linked)
        )
        Match.objects.filter(pk=linked.pk, undone_at=None).update(undone_at=now, undone_by=by.name[:150])
        of_payment = [kind.name for kind in findings.KINDS if not kind.alone]
        Finding.objects.filter(record=record, kind__in=of_payment, closed_at=None).update(
            closed_at=now, closed_by=by.name[:150], note="the link was undone"
        )
        _alone_again(linked, by, now)
        _count(record)
        audit.record(by, "undo", record, before={"payment": linked.payment.hex}, after={"state": record.state})


def _alone_again(undone: Match, by: audit.Actor, now: datetime) -> None:
    """The one line that is left of those that settled a payment settles it once."""
    left = Match.objects.filter(ACTIVE, payment=undone.payment, chosen=True, record_type=RecordType.SETTLED)
    if undone.record_type == RecordType.SETTLED and left.count() == 1:
        Finding.objects.filter(record__in=left.values("record"), kind="TWICE", closed_at=None).update(
            closed_at=now, closed_by=by.name[:150], note="the other line is not linked any more"
        )


def _nobodys_again(record: SettlementRecord, linked: Match) -> dict[str, Any]:
    """Whose the line is was told by this link alone: it is nobody's again, unless a file has told of it already."""
    if record.assigned_at is None or record.assigned_at != linked.made_at:
        return {}
    told = ReconciliationFile.objects.filter(merchant=record.merchant_id, ends_at__gt=record.assigned_at)
    return {} if told.exists() else {"merchant_id": None, "assigned_at": None}


def close(finding: Finding, by: audit.Actor, note: str) -> None:
    """A finding is dealt with; ``note`` says how. Raises NotPossible."""
    note = kept_note(note, NOTE_CHARS)
    if not note:
        raise NotPossible("note: say how this was dealt with")
    with transaction.atomic():
        done = Finding.objects.filter(pk=finding.pk, closed_at=None).update(
            closed_at=clock.real(), closed_by=by.name[:150], note=note
        )
        if not done:
            raise NotPossible("somebody else has closed it already")
        audit.record(by, "close", finding, after={"kind": finding.kind, "note": note})


def _change(record: SettlementRecord, **changes: Any) -> None:
    """Change the record if it still is as it was read. Raises NotPossible."""
    same = SettlementRecord.objects.filter(pk=record.pk, version=record.version)
    if not same.update(version=record.version + 1, **changes):
        raise NotPossible("somebody else has changed this line; look at it again")
    record.version += 1
    for name, value in changes.items():
        setattr(record, name, value)


def _count(record: SettlementRecord) -> None:
    """The file's own numbers follow."""
    from reporting.intake import counts

    file = record.file
    type(file).objects.filter(pk=file.pk).update(**counts(file))

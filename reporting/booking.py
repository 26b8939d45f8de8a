"""Chargebacks of a settlement file go into the ledger: a CB payment for a chargeback, a CR payment for its reversal.

Line by line, in their order, each once: what a line was entered as stands beside the payment, in its statement. A line
whose chargeback is known already (a person or the API was faster) is joined to it. What cannot be entered is a finding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID

from django.db.models import Exists, OuterRef

from chargebacks import ledger
from chargebacks.models import Chargeback, Told
from gateway import audit, clock, results
from gateway.models import Payment
from gateway.payments.refusal import Refused
from gateway.rows import Write
from reporting.layout import CHARGEBACKS
from reporting.models import Finding, Match, Matching, RecordType, SettlementFile, SettlementRecord

RENEW_EVERY: Final = 20
"""Lines between two renewals of the file's lease."""


_told: Final = Exists(Told.objects.filter(payment=OuterRef("pk")))


def book(file: SettlementFile, renew: Callable[[], None]) -> None:
    """Enter every chargeback and reversal of ``file`` that is matched and not entered yet."""
    waiting = SettlementRecord.objects.filter(
        file=file, record_type__in=CHARGEBACKS, state=Matching.MATCHED, chargeback=None, line__gt=file.book_line
    )
    by = audit.Actor(name=f"settlement file {file.name}"[:150])
    for number, record in enumerate(waiting.order_by("line").iterator(chunk_size=500), 1):
        enter(record, by)
        if number % RENEW_EVERY == 0:
            renew()
            SettlementFile.objects.filter(pk=file.pk).update(book_line=record.line)


def enter(record: SettlementRecord, by: audit.Actor) -> UUID | None:
    """Enter one matched record; the payment it became, or None with a finding that says why not."""
    match = Match.objects.get(record=record, chosen=True, undone_at=None)
    disputed = Payment.objects.select_related("merchant").get(pk=match.payment)
    made: UUID | None
    try:
        if record.record_type == RecordType.CHARGEBACK:
            made = _charge_back(record, disputed, by)
        else:
            made = _reverse(record, disputed, by)
    except ledger.ToldBefore as known:
        _join(record, known.payment)
        return known.payment
    except Refused as refused:
        _explain(record, match, f"{refused.code} {results.result(refused.code).description}")
        return None
    if made is None:
        _explain(record, match, "there is no chargeback to reverse")
    return made


def _charge_back(record: SettlementRecord, disputed: Payment, by: audit.Actor) -> UUID:
    known = _known_case(record, disputed)
    if known is not None:
        _join(record, known.pk)
        return known.pk
    case = ledger.charge_back(
        disputed, record.amount, reason=record.reason_code, source=Chargeback.Source.FILE, by=by,
        respond_by=record.respond_by, reference=record.settlement_tx_id, line=record.id, alongside=_joining(record),
    )  # fmt: skip
    return case.pk


def _known_case(record: SettlementRecord, disputed: Payment) -> Chargeback | None:
    """A case of this payment and amount that no line has told of yet, and whose money is still away."""
    found = Chargeback.objects.filter(chain=disputed.chain, disputed=disputed.id, amount=record.amount, recovered=0)
    return found.filter(~_told).order_by("id").first()


def _reverse(record: SettlementRecord, disputed: Payment, by: audit.Actor) -> UUID | None:
    known = _known_reversal(record, disputed)
    if known is not None:
        _join(record, known.pk)
        return known.pk
    case = ledger.standing_case(disputed, record.amount)
    if case is None:
        return None
    return ledger.reverse(
        case, record.amount, source=Chargeback.Source.FILE, by=by, line=record.id, alongside=_joining(record)
    ).pk


def _known_reversal(record: SettlementRecord, disputed: Payment) -> Payment | None:
    """A reversal of this amount that no line has told of yet."""
    cases = Chargeback.objects.filter(chain=disputed.chain, disputed=disputed.id).values("pk")
    found = Payment.objects.filter(
        chain=disputed.chain, payment_type="CR", status="APPROVED", referenced__in=cases, approved=record.amount
    )
    return found.filter(~_told).order_by("id").first()


def _joining(record: SettlementRecord) -> ledger.Alongside:
    """The record names the payment it became, in that payment's statement."""

    def write(write: Write, payment: Payment) -> None:
        write.follow(
            SettlementRecord, {"chargeback": payment.id, "chargeback_at": clock.real()}, {"id": record.id}
        )  # fmt: skip

    return write


def _join(record: SettlementRecord, payment: UUID) -> None:
    """The record tells of a payment that is there already."""
    write = Write()
    write.update(
        record, {"chargeback": payment, "chargeback_at": clock.real()}, expecting={"version": record.version}
    )  # fmt: skip
    if not Told.objects.filter(pk=record.id).exists():
        write.insert(Told, reference=record.id, payment=payment)
    write.run()


def _explain(record: SettlementRecord, match: Match, why: str) -> None:
    Finding.objects.get_or_create(
        record=record, kind="NOT_BOOKED", closed_at=None,
        defaults={"merchant": record.merchant, "payment": match.payment, "found": why[:128], "made_at": clock.real()},
    )  # fmt: skip

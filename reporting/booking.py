"""Chargebacks of a settlement file go into the ledger: a CB payment for a chargeback, a CR payment for its reversal.

Line by line, in their order, each once: what a line was entered as stands beside the payment, in its statement. A line
whose chargeback is known already (a person or the API was faster) is joined to it; one that tells of what another line
told of is a finding, and so is whatever cannot be entered. Decision 0038.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID, uuid5

import structlog
from django.db import DatabaseError

from chargebacks import cases, ledger
from chargebacks.checklist import is_reason
from chargebacks.models import Chargeback
from gateway import audit, clock, results
from gateway.catalogue.errors import Invalid
from gateway.models import Merchant, Payment
from gateway.payments.follow_up import read_chain
from gateway.payments.refusal import Refused
from gateway.rows import Write, execute
from reporting.layout import CHARGEBACKS, usual_cashflow
from reporting.models import ACTIVE, Finding, Match, Matching, RecordType, SettlementFile, SettlementRecord

RENEW_EVERY: Final = 20
"""Lines between two renewals of the file's lease."""
MOST_TRIES: Final = 20
"""How often a line looks again, when others were joined to what it had found."""
AT_ONCE: Final = 200
"""Lines that one tick tries again."""
LATER: Final = "entered later"
ON_ITS_WAY: Final = "one of the same amount has no answer yet"
NOTHING_TO_REVERSE: Final = "there is no chargeback to reverse"
_SAME: Final = UUID("5d0c2f6e-8f0b-4b63-9a6e-3b7f7f0c8a11")

log = structlog.get_logger(__name__)


class NotBooked(Exception):
    """The line cannot be entered; the text says why and is shown."""


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


def enter(record: SettlementRecord, by: audit.Actor, *, anyway: bool = False) -> UUID | None:
    """Enter one matched record; the payment it became, or None with a finding that says why not.

    ``anyway``: also one that tells of what another line told of: somebody has looked.
    """
    match = Match.objects.get(record=record, chosen=True, undone_at=None)
    disputed = Payment.objects.select_related("merchant").get(pk=match.payment)
    try:
        made = _entered(record, disputed, by, None if anyway else _same(record, disputed))
    except ledger.ToldTwice:
        _find(record, match, "TWICE", "another line", "one line")
        return None
    except NotBooked as fault:
        _find(record, match, "NOT_BOOKED", str(fault))
        return None
    kinds = ("NOT_BOOKED", "TWICE")
    Finding.objects.filter(record=record, kind__in=kinds, closed_at=None).update(
        closed_at=clock.real(), closed_by=by.name[:150], note=LATER
    )
    _enter_waiting(match, by)
    return made


def _entered(record: SettlementRecord, disputed: Payment, by: audit.Actor, same: UUID | None) -> UUID:
    """Raises NotBooked and ToldTwice."""
    _refuse(record, disputed)
    try:
        cases.adopt_chain(disputed.chain)
        for _ in range(MOST_TRIES):
            try:
                ledger.not_told((record.id, same))
                if record.record_type == RecordType.CHARGEBACK:
                    return _charge_back(record, disputed, by, same)
                return _reverse(record, disputed, by, same)
            except ledger.Known as known:
                if _join(record, known.payment, same):
                    return known.payment
    except ledger.ToldTwice:
        raise
    except ledger.ToldBefore as told:
        _name(record, told.payment)
        return told.payment
    except ledger.OnItsWay:
        raise NotBooked(ON_ITS_WAY) from None
    except Refused as refused:
        raise NotBooked(f"{refused.code} {results.result(refused.code).description}") from None
    except Invalid as invalid:
        raise NotBooked("; ".join(f"{one.name} {one.message}" for one in invalid.errors)) from None
    except (NotBooked, DatabaseError):
        raise
    except Exception:  # a fault of ours with one line must not keep the others of its file waiting
        log.exception("settlement_line_not_booked", record=record.id.hex)
        raise NotBooked("an internal error; the log has it") from None
    raise NotBooked("the line was changed meanwhile")


def _refuse(record: SettlementRecord, disputed: Payment) -> None:
    """Raise NotBooked for what the line says that no chargeback can be made of."""
    usual = usual_cashflow(record.record_type, record.transaction_type)
    if record.settlement_status == "FAILED":
        raise NotBooked("the institute says that it failed")
    if record.cashflow != usual:
        raise NotBooked(f"it flows {record.cashflow}, such a line flows {usual}")
    if record.currency != disputed.currency:
        raise NotBooked(f"it is in {record.currency}, the payment in {disputed.currency}")
    if record.reason_code and not is_reason(record.reason_code):
        raise NotBooked(f"{record.reason_code} is no reason of a chargeback")


def _same(record: SettlementRecord, disputed: Payment) -> UUID:
    """What any two lines have in common that tell of the same, whoever sent them and in whichever file: the institute's
    id of it, else its day and reason."""
    own = record.settlement_tx_id or f"{record.settlement_date} {record.reason_code}"
    named = (record.record_type, disputed.id.hex, f"{record.amount:.2f}", record.currency, own)
    return uuid5(_SAME, "\n".join(named))


def _charge_back(record: SettlementRecord, disputed: Payment, by: audit.Actor, same: UUID | None) -> UUID:
    return ledger.charge_back(
        disputed, record.amount, reason=record.reason_code, source=Chargeback.Source.FILE, by=by,
        respond_by=record.respond_by, reference=record.settlement_tx_id, line=record.id, same=same,
        alongside=_joining(record),
    ).pk  # fmt: skip


def _reverse(record: SettlementRecord, disputed: Payment, by: audit.Actor, same: UUID | None) -> UUID:
    case = ledger.standing_case(disputed, record.amount)
    if case is None:
        chain = read_chain(disputed.id, disputed.merchant, None)
        if chain is not None:
            ledger.look_for_known("CR", disputed.id, record.amount, chain)
        raise NotBooked(NOTHING_TO_REVERSE)
    return ledger.reverse(
        case, record.amount, source=Chargeback.Source.FILE, by=by, line=record.id, same=same, alongside=_joining(record)
    ).pk


def _joining(record: SettlementRecord) -> ledger.Alongside:
    """The record names the payment it became, in that payment's statement."""

    def write(write: Write, payment: Payment) -> None:
        write.follow(
            SettlementRecord, {"chargeback": payment.id, "chargeback_at": clock.real()}, {"id": record.id}
        )  # fmt: skip

    return write


def _join(record: SettlementRecord, payment: UUID, same: UUID | None) -> bool:
    """The record tells of a payment that is there already; False when it has changed, or another line was faster."""
    write = Write()
    write.update(
        record, {"chargeback": payment, "chargeback_at": clock.real()}, expecting={"version": record.version}
    )  # fmt: skip
    return ledger.join(write, payment, record.id, same)


def _name(record: SettlementRecord, payment: UUID) -> None:
    """The record was entered before, by a worker that did not live to see it."""
    SettlementRecord.objects.filter(pk=record.pk, chargeback=None).update(
        chargeback=payment, chargeback_at=clock.real()
    )


def _find(record: SettlementRecord, match: Match, kind: str, found: str, expected: str = "") -> None:
    finding, made = Finding.objects.get_or_create(
        record=record, kind=kind, closed_at=None,
        defaults={"merchant_id": record.merchant_id, "payment": match.payment, "expected": expected,
                  "found": found[:128], "made_at": clock.real()},
    )  # fmt: skip
    if not made:
        # As of this try: the next one waits until something else has happened.
        Finding.objects.filter(pk=finding.pk, closed_at=None).update(found=found[:128], made_at=clock.real())


# --- what could not be entered when it came ---------------------------------------------------------------------


def _enter_waiting(match: Match, by: audit.Actor) -> None:
    """What was just entered may be what other lines of the payment waited for, as a reversal for its chargeback."""
    about = Match.objects.filter(ACTIVE, payment=match.payment, chosen=True, record_type__in=CHARGEBACKS)
    waiting = SettlementRecord.objects.filter(
        pk__in=about.values("record"), chargeback=None, findings__kind="NOT_BOOKED", findings__closed_at=None
    )
    for record in waiting.order_by("id")[:MOST_TRIES]:
        enter(record, by)


# Something happened in the chain since the line could not be entered, or what was on its way has its answer.
_WAITING: Final = """
SELECT f.record_id FROM reporting_finding f
JOIN reporting_settlementrecord r ON r.id = f.record_id AND r.chargeback IS NULL AND r.state = 'MATCHED'
JOIN gateway_payment p ON p.id = f.payment
WHERE f.kind = 'NOT_BOOKED' AND f.closed_at IS NULL AND (f.found = %(on_its_way)s OR EXISTS (
    SELECT 1 FROM gateway_payment c WHERE c.chain = p.chain AND c.id >=
        (lpad(to_hex((extract(epoch FROM f.made_at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid))
ORDER BY f.id LIMIT %(most)s"""


def try_again(merchant: Merchant | None = None) -> int:
    """Lines that could not be entered, and may be now; how many were. They follow real time, as files do."""
    if merchant is not None:
        return 0
    found = execute(_WAITING, {"on_its_way": ON_ITS_WAY, "most": AT_ONCE})
    by = audit.Actor(name="settlement lines")
    return sum(enter(SettlementRecord.objects.get(pk=ident), by) is not None for (ident,) in found)

"""Records the chargebacks of a settlement file in the ledger: a CB payment for a chargeback, a CR payment for its
reversal.

Line by line in file order, each once: a line and its payment are linked in the statement that writes the payment. A
line whose chargeback is in the ledger already (a person or the API was faster) is linked to it. A second line about the
same chargeback becomes a finding, and so does one that cannot be booked. Decision 0038.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from uuid import UUID, uuid5

import structlog
from django.db import DatabaseError

from chargebacks import cases, ledger
from chargebacks.evidence_checklist import is_chargeback_reason
from chargebacks.models import Chargeback
from chargebacks.stages import DisputeStage
from gateway.access import audit_log
from gateway.catalogue.errors import InvalidParametersError
from gateway.core import result_codes
from gateway.db.database_clock import read_database_time
from gateway.db.sessions import keep_session
from gateway.db.statement import WriteStatement, execute_sql
from gateway.models import Payment
from gateway.payments.follow_ups import load_chain
from gateway.payments.refusal import RequestRefusedError
from reporting.settlement.layout import CHARGEBACK_TYPE_VALUES, infer_cashflow
from reporting.settlement.models import (
    IS_ACTIVE_MATCH,
    Finding,
    Match,
    MatchState,
    RecordType,
    SettlementFile,
    SettlementRecord,
)

LINES_PER_LEASE_RENEWAL: Final = 20
"""Lines between two renewals of the file's lease."""
MAX_BOOKING_TRIES: Final = 20
"""How often booking a line is retried when concurrent lines were linked to the payment it had found."""
MAX_REBOOKINGS_PER_RUN: Final = 200
"""Lines that one run retries."""
BOOKED_LATER_NOTE: Final = "entered later"
SAME_AMOUNT_PENDING: Final = "one of the same amount has no answer yet"
NO_CHARGEBACK_TO_REVERSE: Final = "there is no chargeback to reverse"
# Entering takes several transactions: the lock is the session's.
_RECORD_KEY: Final = "hashtextextended('line ' || %(record)s::uuid, 0)"
_SAME: Final = UUID("5d0c2f6e-8f0b-4b63-9a6e-3b7f7f0c8a11")

log = structlog.get_logger(__name__)


class NotBookableError(Exception):
    """The line cannot be booked; the text says why and is shown."""


def book_chargebacks(file: SettlementFile, renew: Callable[[], None]) -> None:
    """Book every chargeback and reversal of ``file`` that is matched and not booked yet."""
    waiting = SettlementRecord.objects.filter(
        file=file,
        record_type__in=CHARGEBACK_TYPE_VALUES,
        state=MatchState.MATCHED,
        chargeback=None,
        line__gt=file.book_line,
    )
    by = audit_log.Actor(name=f"settlement file {file.name}"[:150])
    for number, record in enumerate(waiting.select_related("file").order_by("line").iterator(chunk_size=500), 1):
        book_record(record, by)
        if number % LINES_PER_LEASE_RENEWAL == 0:
            renew()
            SettlementFile.objects.filter(pk=file.pk).update(book_line=record.line)


def book_record(record: SettlementRecord, by: audit_log.Actor, *, allow_duplicate: bool = False) -> UUID | None:
    """Book one matched record. Returns its payment, or None after recording a finding that says why not.

    ``allow_duplicate``: book it even if another line was about the same chargeback: a clerk has checked. Also None for
    one whose link a clerk has undone meanwhile; none is undone while its chargeback is entered.
    """
    with keep_session():
        execute_sql(f"SELECT pg_advisory_lock({_RECORD_KEY})", {"record": record.id})
        try:
            match = Match.objects.filter(record=record, chosen=True, undone_at=None).first()
            made = _book_matched_record(record, match, by, allow_duplicate) if match is not None else None
        finally:
            execute_sql(f"SELECT pg_advisory_unlock({_RECORD_KEY})", {"record": record.id})
    if match is not None and made is not None:
        _retry_waiting_records(match, by)
    return made


def hold_record(record: SettlementRecord) -> None:
    """Lock the record until the transaction ends, so that its chargeback is entered once."""
    execute_sql(f"SELECT pg_advisory_xact_lock({_RECORD_KEY})", {"record": record.id})


def _book_matched_record(
    record: SettlementRecord, match: Match, by: audit_log.Actor, allow_duplicate: bool
) -> UUID | None:
    disputed = Payment.objects.select_related("merchant").get(pk=match.payment)
    try:
        made = _record_in_ledger(record, disputed, by, None if allow_duplicate else _duplicate_key(record, disputed))
    except ledger.DuplicateNoticeError:
        _record_finding(record, match, "TWICE", "another line", "one line")
        return None
    except NotBookableError as fault:
        _record_finding(record, match, "NOT_BOOKED", str(fault))
        return None
    kinds = ("NOT_BOOKED", "TWICE")
    Finding.objects.filter(record=record, kind__in=kinds, closed_at=None).update(
        closed_at=read_database_time(), closed_by=by.name[:150], note=BOOKED_LATER_NOTE
    )
    return made


def _record_in_ledger(
    record: SettlementRecord, disputed: Payment, by: audit_log.Actor, duplicate_key: UUID | None
) -> UUID:
    """Record the CB or CR payment. Raises NotBookableError and DuplicateNoticeError."""
    _check_bookable(record, disputed)
    try:
        cases.adopt_chain_payments(disputed.chain)
        for _ in range(MAX_BOOKING_TRIES):
            try:
                ledger.check_not_recorded((record.id, duplicate_key))
                if record.record_type == RecordType.CHARGEBACK:
                    return _charge_back(record, disputed, by, duplicate_key)
                return _reverse(record, disputed, by, duplicate_key)
            except ledger.AlreadyInLedgerError as known:
                if _join_record(record, disputed.chain, known.payment, duplicate_key):
                    return known.payment
    except ledger.DuplicateNoticeError:
        raise
    except ledger.AlreadyRecordedError as told:
        _link_record(record, told.payment)
        return told.payment
    except ledger.ChargebackPendingError:
        raise NotBookableError(SAME_AMOUNT_PENDING) from None
    except RequestRefusedError as refused:
        raise NotBookableError(f"{refused.code} {result_codes.find_result_code(refused.code).description}") from None
    except InvalidParametersError as invalid:
        raise NotBookableError("; ".join(f"{one.name} {one.message}" for one in invalid.errors)) from None
    except (NotBookableError, DatabaseError):
        raise
    except Exception:  # our own error with one line must not block the other lines of its file
        log.exception("settlement_line_not_booked", record=record.id.hex)
        raise NotBookableError("an internal error; the log has it") from None
    raise NotBookableError("the line was changed meanwhile")


def _check_bookable(record: SettlementRecord, disputed: Payment) -> None:
    """Raise NotBookableError if the line cannot become a chargeback."""
    usual = infer_cashflow(record.record_type, record.transaction_type)
    if record.settlement_status == "FAILED":
        raise NotBookableError("the institute says that it failed")
    if record.cashflow != usual:
        raise NotBookableError(f"it flows {record.cashflow}, such a line flows {usual}")
    if record.currency != disputed.currency:
        raise NotBookableError(f"it is in {record.currency}, the payment in {disputed.currency}")
    if record.reason_code and not is_chargeback_reason(record.reason_code):
        raise NotBookableError(f"{record.reason_code} is no reason of a chargeback")


def _duplicate_key(record: SettlementRecord, disputed: Payment) -> UUID:
    """The key shared by all lines about the same chargeback, from any sender and file: the institute's id of it, else
    its day and reason."""
    own = record.settlement_tx_id or f"{record.settlement_date} {record.reason_code}"
    named = (record.record_type, disputed.id.hex, f"{record.amount:.2f}", record.currency, own)
    return uuid5(_SAME, "\n".join(named))


def _charge_back(record: SettlementRecord, disputed: Payment, by: audit_log.Actor, duplicate_key: UUID | None) -> UUID:
    return ledger.record_chargeback(
        disputed,
        record.amount,
        reason=record.reason_code,
        source=Chargeback.Source.FILE,
        by=by,
        respond_by=record.respond_by,
        reference=record.settlement_tx_id,
        line=record.id,
        duplicate_key=duplicate_key,
        extra_writes=_link_record_write(record),
        scheme=cases.SchemeFacts(
            reason=record.scheme_reason,
            case=record.scheme_case,
            arn=record.arn,
            stage=DisputeStage(record.dispute_stage) if record.dispute_stage else None,
            day=record.settlement_date,
            zone=record.file.time_zone,
        ),
    ).pk


def _reverse(record: SettlementRecord, disputed: Payment, by: audit_log.Actor, duplicate_key: UUID | None) -> UUID:
    case = ledger.find_open_case(disputed, record.amount)
    if case is None:
        chain = load_chain(disputed.id, disputed.merchant, None)
        if chain is not None:
            ledger.check_not_in_ledger("CR", disputed.id, record.amount, chain)
        raise NotBookableError(NO_CHARGEBACK_TO_REVERSE)
    return ledger.record_chargeback_reversal(
        case,
        record.amount,
        source=Chargeback.Source.FILE,
        by=by,
        line=record.id,
        duplicate_key=duplicate_key,
        extra_writes=_link_record_write(record),
    ).pk


def _link_record_write(record: SettlementRecord) -> ledger.ExtraChargebackWrites:
    """The update that links the record to its payment, run in that payment's statement."""

    def write(write: WriteStatement, payment: Payment) -> None:
        write.update_related(
            SettlementRecord, {"chargeback": payment.id, "chargeback_at": read_database_time()}, {"id": record.id}
        )

    return write


def _join_record(record: SettlementRecord, chain: UUID, payment: UUID, duplicate_key: UUID | None) -> bool:
    """Link the record to a payment that is in the ledger already. False if it has changed, or another line was
    faster."""
    write = WriteStatement()
    write.update(
        record, {"chargeback": payment, "chargeback_at": read_database_time()}, expecting={"version": record.version}
    )
    return ledger.join_notice_to_payment(write, chain, payment, record.id, duplicate_key)


def _link_record(record: SettlementRecord, payment: UUID) -> None:
    """Link a record whose payment was written by a worker that died before it could link it."""
    SettlementRecord.objects.filter(pk=record.pk, chargeback=None).update(
        chargeback=payment, chargeback_at=read_database_time()
    )


def _record_finding(record: SettlementRecord, match: Match, kind: str, found: str, expected: str = "") -> None:
    finding, made = Finding.objects.get_or_create(
        record=record,
        kind=kind,
        closed_at=None,
        defaults={
            "merchant_id": record.merchant_id,
            "payment": match.payment,
            "expected": expected,
            "found": found[:128],
            "made_at": read_database_time(),
        },
    )
    if not made:
        # Dated now: the next attempt waits until something else happens in the chain.
        Finding.objects.filter(pk=finding.pk, closed_at=None).update(found=found[:128], made_at=read_database_time())


# --- retries -----------------------------------------------------------------------------------------------------


def _retry_waiting_records(match: Match, by: audit_log.Actor) -> None:
    """Retry other lines of the payment that may have waited for this one, as a reversal waits for its chargeback."""
    about = Match.objects.filter(
        IS_ACTIVE_MATCH, payment=match.payment, chosen=True, record_type__in=CHARGEBACK_TYPE_VALUES
    )
    waiting = SettlementRecord.objects.filter(
        pk__in=about.values("record"), chargeback=None, findings__kind="NOT_BOOKED", findings__closed_at=None
    )
    for record in waiting.order_by("id")[:MAX_BOOKING_TRIES]:
        book_record(record, by)


# Retried only if the chain changed since the last attempt, or a pending chargeback got its answer.
_WAITING: Final = """
SELECT f.record_id FROM reporting_finding f
JOIN reporting_settlementrecord r ON r.id = f.record_id AND r.chargeback IS NULL AND r.state = 'MATCHED'
JOIN gateway_payment p ON p.id = f.payment
WHERE f.kind = 'NOT_BOOKED' AND f.closed_at IS NULL AND (f.found = %(on_its_way)s OR EXISTS (
    SELECT 1 FROM gateway_payment c WHERE c.chain = p.chain AND c.id >=
        (lpad(to_hex((extract(epoch FROM f.made_at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid))
ORDER BY f.id LIMIT %(most)s"""


def retry_unbooked_records() -> int:
    """Book lines that could not be booked earlier. Returns how many were."""
    found = execute_sql(_WAITING, {"on_its_way": SAME_AMOUNT_PENDING, "most": MAX_REBOOKINGS_PER_RUN})
    by = audit_log.Actor(name="settlement lines")
    return sum(book_record(SettlementRecord.objects.get(pk=ident), by) is not None for (ident,) in found)

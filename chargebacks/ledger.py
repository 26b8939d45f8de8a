"""Records chargebacks and their reversals in the ledger: CB and CR payments of the disputed payment's chain.

For chargebacks reported by the acquirer: in a settlement file, or in a letter that a clerk enters. The table of
operations decides as it does for the API, in live too; but a chargeback has no ceiling: issuers charge back what was
refunded. Source: docs/decisions/0065.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Sum

from chargebacks import cases
from chargebacks.evidence_checklist import OTHER_CHARGEBACK_REASON, describe_reason, is_chargeback_reason
from chargebacks.models import AcquirerNotice, Chargeback
from chargebacks.states import DisputeState, DisputeTransitionError
from gateway.access import audit_log
from gateway.connectors.port import AcquirerReply
from gateway.core import clock
from gateway.core.money import Money
from gateway.db.statement import WriteStatement
from gateway.models import AuditEntry, Payment, Status
from gateway.payments.acquirer_reported import ChainInspector, record_acquirer_reported_follow_up
from gateway.payments.chain_amounts import COUNTED_STATUSES, Chain, find_charged_back_payment, resolve_payment_amount
from gateway.payments.record_only_payments import resolve_success_code
from gateway.payments.refusal import RequestRefusedError
from gateway.timers import wakeup

LEDGER_RECORDS_TIMER: Final = "chargebacks entered"
"""The timer that writes settlement records for chargebacks without a settlement file."""

ExtraChargebackWrites = Callable[[WriteStatement, Payment], None]
NoticeMarks = tuple[UUID | None, UUID | None]
"""The id of a line, and the key shared by all lines about the same chargeback."""


class AlreadyRecordedError(Exception):
    """The chargeback was recorded before, for the same line. ``payment``: the payment recorded then."""

    def __init__(self, payment: UUID) -> None:
        super().__init__(f"entered before as {payment.hex}")
        self.payment = payment


class DuplicateNoticeError(AlreadyRecordedError):
    """Another line about the same chargeback was recorded before."""


class AlreadyInLedgerError(AlreadyRecordedError):
    """The chargeback is in the ledger, entered by hand or by API, and no line has been linked to it yet."""


class ChainChangedError(Exception):
    """Another follow-up of the chain began after the caller read it; nothing was written."""


class ChargebackPendingError(Exception):
    """What may be the same chargeback was sent by API and has no result yet."""


def record_chargeback(
    disputed: Payment,
    amount: Decimal,
    *,
    reason: str = "",
    source: Chargeback.Source = Chargeback.Source.HAND,
    by: audit_log.Actor,
    respond_by: date | None = None,
    reference: str = "",
    line: UUID | None = None,
    duplicate_key: UUID | None = None,
    seen: int | None = None,
    extra_writes: ExtraChargebackWrites | None = None,
    scheme: cases.SchemeFacts = cases.NO_SCHEME_FACTS,
) -> Chargeback:
    """Record a chargeback of ``disputed`` and return its case. If a representment won the money back, that is charged
    back.

    ``line``: id of the acquirer's line, recorded once; ``duplicate_key``: the key shared by all lines about the same
    chargeback. ``seen``: the chain's count of follow-ups when the caller read it, compared and incremented in one
    statement: of two callers that read the same count the second gets ChainChangedError. ``extra_writes``: rows of the
    caller, written in the same statement. ``scheme``: the scheme's reason code, case id, ARN and stage, if they were
    sent.

    Raises RequestRefusedError (a code of the table of operations), InvalidParametersError (an impossible amount),
    ValueError for a code that is no chargeback reason, and with a line AlreadyRecordedError, DuplicateNoticeError,
    AlreadyInLedgerError and ChargebackPendingError.
    """
    reason = reason or OTHER_CHARGEBACK_REASON
    if not is_chargeback_reason(reason):
        raise ValueError(f"{reason} is no reason of a chargeback: 000.100.2 and two digits")
    target, previous = _resolve_target(disputed, amount)
    seen_chain: list[Chain] = []
    money = Money(amount, disputed.currency)
    reply = AcquirerReply(
        code=reason, approved=money, details={"AcquirerResponse": reference[:64]} if reference else {}
    )

    def write_more(write: WriteStatement, row: Payment) -> None:
        cases.insert_case(
            write,
            row,
            disputed,
            disputed.merchant,
            source=source,
            by=by.name,
            previous=previous,
            respond_by=respond_by,
            reference=reference[:64],
            scheme=scheme,
            refunded_before=cases.compute_refunded_before(seen_chain[-1], disputed),
        )
        after = {"amount": str(amount), "currency": row.currency, "reason": f"{reason} {describe_reason(reason)}"}
        _add_extra_writes(write, row, row.id, "chargeback", after, by, (line, duplicate_key), extra_writes)

    payment = _record_payment(
        "CB",
        target,
        disputed,
        amount,
        reply,
        source,
        (line, duplicate_key),
        reason=reason,
        seen=seen,
        look=seen_chain.append,
        write=write_more,
    )
    case = Chargeback.objects.select_related("merchant").get(pk=payment.id)
    cases.apply_revocation(case)
    return case


def record_chargeback_reversal(
    case: Chargeback,
    amount: Decimal | None = None,
    *,
    source: Chargeback.Source = Chargeback.Source.HAND,
    by: audit_log.Actor,
    line: UUID | None = None,
    duplicate_key: UUID | None = None,
    extra_writes: ExtraChargebackWrites | None = None,
) -> Payment:
    """Record the return of ``case``'s money, all of it or ``amount``: a CR payment, and the case is won.

    ``line``, ``duplicate_key``, ``extra_writes``, and what is raised: as of record_chargeback.
    """
    dispute = Payment.objects.select_related("merchant").get(pk=case.pk)
    came = amount if amount is not None else case.amount - case.recovered
    reply = AcquirerReply(code=resolve_success_code(dispute.test_mode), approved=Money(came, dispute.currency))

    def write_more(write: WriteStatement, row: Payment) -> None:
        after = {"amount": str(came), "currency": row.currency}
        _add_extra_writes(write, row, case.pk, "reversal", after, by, (line, duplicate_key), extra_writes)

    payment = _record_payment("CR", dispute, dispute, came, reply, source, (line, duplicate_key), write=write_more)
    payment.merchant = dispute.merchant
    cases.adopt_payment(payment, by.name)
    case.refresh_from_db()
    return payment


def simulate_dispute_outcome(case: Chargeback, by: audit_log.Actor, *, won: bool) -> None:
    """Decide the dispute as the simulated bank (test environment). Raises DisputeTransitionError unless evidence was
    submitted."""
    if settings.IS_LIVE or case.test_mode != "INTERNAL":
        raise DisputeTransitionError("only the simulator's disputes are decided here; others are by their acquirer")
    if case.state != DisputeState.SUBMITTED:
        raise DisputeTransitionError(f"the dispute is {case.state}; evidence is submitted first")
    if won and case.recovered == case.amount:
        cases.win_dispute(case, by, "The simulated bank decided for the merchant.")
    elif won:
        record_chargeback_reversal(case, by=by)
    else:
        cases.lose_dispute(case, by, "The simulated bank decided for the shopper.")


def find_open_case(disputed: Payment, amount: Decimal | None) -> Chargeback | None:
    """The case of ``disputed`` that a reversal is about: the newest that is not fully returned, one of the same amount
    first."""
    waiting = [
        case
        for case in Chargeback.objects.select_related("merchant")
        .filter(chain=disputed.chain, disputed=disputed.id)
        .order_by("-id")
        if case.recovered < case.amount
    ]
    return next((case for case in waiting if case.amount - case.recovered == amount), waiting[0] if waiting else None)


def check_not_in_ledger(kind: str, disputed: UUID, amount: Decimal, chain: Chain) -> None:
    """Raise AlreadyInLedgerError if the chain has a CB or CR (``kind``) of this amount about ``disputed`` that no line
    is linked to (the oldest), and ChargebackPendingError if that has no result yet."""
    alike = [
        one
        for one in chain.members
        if one.payment_type == kind
        and find_charged_back_payment(chain, one).id == disputed
        and one.status in COUNTED_STATUSES
        and resolve_payment_amount(one) == amount
    ]
    noticed = set(
        AcquirerNotice.objects.filter(payment__in=[one.id for one in alike]).values_list("payment", flat=True)
    )
    for one in alike:
        if one.id in noticed:
            continue
        if one.status != Status.APPROVED:
            raise ChargebackPendingError(f"a {kind} of the same amount has no answer yet")
        raise AlreadyInLedgerError(one.id)


def join_notice_to_payment(
    write: WriteStatement, chain: UUID, payment: UUID, line: UUID, duplicate_key: UUID | None
) -> bool:
    """Run ``write``, which links ``line`` to a ``payment`` of ``chain`` in the ledger. False if the line has changed,
    or another one was linked to the payment meanwhile. Raises AlreadyRecordedError and DuplicateNoticeError.

    Rows are locked as record_chargeback locks them: the chain's first payment before notices and line, so that two
    workers at one line wait for each other instead of deadlocking.
    """
    check_not_recorded((line, duplicate_key))
    _insert_notices(write, payment, (line, duplicate_key))
    try:
        with transaction.atomic():
            Payment.objects.select_for_update(no_key=True).values_list("pk").get(pk=chain)
            return write.run()
    except IntegrityError:
        check_not_recorded((line, duplicate_key))
        return False


def check_not_recorded(marks: NoticeMarks) -> None:
    """Raise AlreadyRecordedError or DuplicateNoticeError if one of the marks is recorded already."""
    line, duplicate_key = marks
    notices = AcquirerNotice.objects.filter(pk__in=[one for one in marks if one])
    recorded = dict(notices.values_list("reference", "payment"))
    if line in recorded:
        raise AlreadyRecordedError(recorded[line])
    if duplicate_key in recorded:
        raise DuplicateNoticeError(recorded[duplicate_key])


def _insert_notices(write: WriteStatement, payment: UUID, marks: NoticeMarks) -> None:
    """Insert the marks of a line, its duplicate key and its payment. All three are unique, so none is recorded
    twice."""
    line, duplicate_key = marks
    for reference in (line, duplicate_key, payment):
        if line is not None and reference is not None:
            write.insert(AcquirerNotice, reference=reference, payment=payment)


def _record_payment(
    kind: str,
    target: Payment,
    disputed: Payment,
    amount: Decimal,
    reply: AcquirerReply,
    source: Chargeback.Source,
    marks: NoticeMarks,
    *,
    reason: str = "",
    seen: int | None = None,
    look: ChainInspector | None = None,
    write: ExtraChargebackWrites,
) -> Payment:
    check_not_recorded(marks)
    checks = [look] if look is not None else []
    if marks[0] is not None:
        about = disputed.id if kind == "CB" else Chargeback.objects.values_list("disputed", flat=True).get(pk=target.id)
        checks.append(partial(check_not_in_ledger, kind, about, amount))
    elif seen is not None:
        checks.append(partial(_check_chain_unchanged, seen))

    def inspect(chain: Chain) -> None:
        for check in checks:
            check(chain)

    try:
        entered = record_acquirer_reported_follow_up(
            kind,
            target.id,
            disputed.merchant,
            amount,
            disputed.currency,
            reply,
            origin=f"chargeback by {source}",
            reason=reason,
            look=inspect,
            extra_writes=write,
        )
    except IntegrityError:
        check_not_recorded(marks)
        raise
    if marks[0] is None:
        wakeup.notify_timer(LEDGER_RECORDS_TIMER)
    return entered


def _check_chain_unchanged(seen: int, chain: Chain) -> None:
    if chain.first.follow_ups != seen:
        raise ChainChangedError


def _add_extra_writes(
    write: WriteStatement,
    row: Payment,
    case: UUID,
    action: str,
    after: Mapping[str, str],
    by: audit_log.Actor,
    marks: NoticeMarks,
    extra_writes: ExtraChargebackWrites | None,
) -> None:
    """Add what is written with the payment: audit entry, marks, and the caller's own rows."""
    write.insert(
        AuditEntry,
        at=clock.real_now(),
        actor=by.name[:150],
        ip=by.ip,
        action=action,
        subject="chargeback",
        subject_id=str(case),
        after=dict(after),
    )
    _insert_notices(write, row.id, marks)
    if extra_writes is not None:
        extra_writes(write, row)


def _resolve_target(disputed: Payment, amount: Decimal) -> tuple[Payment, Chargeback | None]:
    """The payment that the CB payment follows: ``disputed`` itself, or the representment that won its money back."""
    won = list(Payment.objects.filter(chain=disputed.chain, payment_type="CR", status=Status.APPROVED).order_by("-id"))
    taken = set(
        Payment.objects.filter(chain=disputed.chain, payment_type="CB", status=Status.APPROVED).values_list(
            "referenced", flat=True
        )
    )
    free = [representment for representment in won if representment.id not in taken]
    # One that covers the amount first; above all of them (the scheme's exchange rates) the newest that can be taken.
    for representment in sorted(free, key=lambda one: (one.approved_amount or 0) < amount):
        if (representment.approved_amount or 0) < amount and not _is_wholly_disputed(disputed):
            continue
        previous = Chargeback.objects.filter(pk=representment.referenced or disputed.id, disputed=disputed.id).first()
        if previous is not None:
            representment.merchant = disputed.merchant
            return representment, previous
    return disputed, None


def _is_wholly_disputed(disputed: Payment) -> bool:
    """Whether cases of ``disputed`` cover all of it, won ones too: a further chargeback follows a representment."""
    charged = Chargeback.objects.filter(disputed=disputed.id, previous=None).aggregate(total=Sum("amount"))["total"]
    return (charged or 0) >= (disputed.approved_amount or disputed.amount)


__all__ = [
    "AlreadyInLedgerError",
    "AlreadyRecordedError",
    "ChainChangedError",
    "ChargebackPendingError",
    "DuplicateNoticeError",
    "RequestRefusedError",
    "check_not_in_ledger",
    "check_not_recorded",
    "find_open_case",
    "join_notice_to_payment",
    "record_chargeback",
    "record_chargeback_reversal",
    "simulate_dispute_outcome",
]

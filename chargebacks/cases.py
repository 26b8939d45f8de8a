"""Opens, moves and closes dispute cases. Every move is a compare-and-set with its event and, by hand, its audit entry.

chargebacks.ledger opens a case in the statement that writes its CB payment. A chargeback sent by API in the test
environment is a CB payment first: the next timer run finds it and opens the case. The same timer moves a case whose CR
payment was written by a process that died before moving it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _

from chargebacks.deadlines import compute_response_deadline, find_day_end, find_last_answer_day
from chargebacks.merchant_countries import find_merchant_country
from chargebacks.models import CaseEvent, Chargeback, DisputeAlert, Reminder
from chargebacks.notes import CAME_BACK_NOTE, DECIDED_STAGE_NOTE, NOT_ANSWERED_NOTE, RETURN_NOTE
from chargebacks.revocations import stop_stored_credentials, stops_stored_credentials
from chargebacks.stages import DisputeStage, choose_next_stage, find_stage_rule, is_final_return
from chargebacks.states import (
    BEFORE_DISPUTE,
    CLOSED_DISPUTE_STATES,
    DisputeEvent,
    DisputeState,
    DisputeTransitionError,
    apply_dispute_event,
)
from gateway.access import audit_log
from gateway.core import clock
from gateway.db.statement import DatabaseTime, WriteStatement, execute_sql
from gateway.models import Merchant, Payment, Status
from gateway.payments.chain_amounts import Chain, compute_refunded_amount
from gateway.payments.follow_ups import load_chain
from gateway.payments.network_brands import find_network_brand
from gateway.payments.stored_answer import ReportedDispute, read_private_facts
from gateway.timers.due_times import lowest_id_since_sql
from gateway.timers.merchant_clocks import bind_run, due_sql, find_earliest

REMINDER_DAYS: Final = (7, 3, 1)
MAX_CASE_UPDATE_TRIES: Final = 20
_OPENING_NOTES: Final[Mapping[DisputeEvent, str]] = MappingProxyType(
    {DisputeEvent.DECIDED: DECIDED_STAGE_NOTE, DisputeEvent.RETURN: RETURN_NOTE}
)
ADOPTION_LOOKBACK: Final = timedelta(days=3)
"""How far back a run looks for payments without a case; once an hour a run covers all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemeFacts:
    """What the acquirer said of the scheme's side of a chargeback: reason code, case id, acquirer reference number, the
    stage if it named one, and the day of its line, from which the scheme's days count. ``zone``: the time zone of its
    days; '' for the merchant's."""

    reason: str = ""
    case: str = ""
    arn: str = ""
    stage: DisputeStage | None = None
    day: date | None = None
    zone: str = ""

    def fill_from(self, previous: Chargeback) -> SchemeFacts:
        """These facts, filled up with what is known of the case before where nothing was said."""
        return replace(
            self,
            reason=self.reason or previous.scheme_reason,
            case=self.case or previous.scheme_case,
            arn=self.arn or previous.arn,
        )


NO_SCHEME_FACTS: Final = SchemeFacts()


def insert_case(
    write: WriteStatement,
    dispute: Payment,
    behind: Payment,
    merchant: Merchant,
    *,
    source: Chargeback.Source,
    by: str,
    previous: Chargeback | None,
    respond_by: date | None,
    answer_by: datetime | None = None,
    reference: str = "",
    refunded_before: Decimal,
    scheme: SchemeFacts,
) -> None:
    """Insert a new case in the statement that writes its CB payment ``dispute``. ``behind``: the disputed payment.
    ``respond_by``: the acquirer's day, in the zone of ``scheme``. ``answer_by``: the moment, if it is after
    ``respond_by``'s, until which an answer is taken; by default the end of the acquirer's day there."""
    if previous is not None:
        scheme = scheme.fill_from(previous)
    event, stage = _choose_opening(dispute, scheme, previous, answered=respond_by is not None)
    state, opened_at = apply_dispute_event(BEFORE_DISPUTE, event), dispute.created_at
    brand = find_network_brand(dispute)
    rule = find_stage_rule(brand, scheme.reason, stage, find_merchant_country(behind))
    due_at = opened_at
    if event != DisputeEvent.RETURN:
        due_at = _choose_deadline(merchant, opened_at, respond_by, answer_by, scheme, rule.answer_days)
    note = _OPENING_NOTES.get(event, "")
    write.insert(
        Chargeback,
        id=dispute.id,
        merchant_id=dispute.merchant_id,
        channel_id=dispute.channel_id,
        disputed=behind.id,
        chain=dispute.chain,
        previous_id=previous.id if previous is not None else None,
        state=state,
        source=source,
        reason_code=dispute.result_code,
        amount=dispute.approved_amount,
        currency=dispute.currency,
        recovered=Decimal(0),
        refunded_before=refunded_before,
        stage=stage,
        scheme_reason=scheme.reason,
        scheme_case=scheme.case,
        arn=scheme.arn,
        stops_pending=stops_stored_credentials(dispute.result_code, dispute.chain, scheme.reason),
        brand=brand,
        test_mode=dispute.test_mode,
        reference=reference,
        opened_at=opened_at,
        due_at=due_at,
        note=note,
        closed_at=opened_at if state in CLOSED_DISPUTE_STATES else None,
        version=1,
    )
    write.insert(
        CaseEvent,
        case_id=dispute.id,
        sequence=1,
        event=event,
        state=state,
        payment=dispute.id,
        by=by[:150],
        note=note,
        at=opened_at,
    )
    _close_alerts(write, behind.id, dispute.id, opened_at)
    if state == DisputeState.OPEN:
        _insert_reminders(write, dispute.id, opened_at, due_at)


def _choose_deadline(
    merchant: Merchant,
    opened_at: datetime,
    respond_by: date | None,
    answer_by: datetime | None,
    scheme: SchemeFacts,
    answer_days: int,
) -> datetime:
    """The last moment to answer a new case: as its acquirer says (``respond_by`` a day in the zone of ``scheme``,
    ``answer_by`` a moment), else ``answer_days`` from the scheme's day."""
    today = clock.real_now().astimezone(ZoneInfo(scheme.zone or merchant.time_zone)).date()
    days_gone = max((today - scheme.day).days, 0) if scheme.day is not None else 0
    if respond_by is not None and scheme.zone:
        day_end = find_day_end(respond_by, scheme.zone)
        answer_by = answer_by or day_end + merchant.clock_offset
        respond_by = min(respond_by, find_last_answer_day(merchant, day_end))
    due_at = compute_response_deadline(merchant, opened_at, respond_by, answer_days, days_gone)
    return max(answer_by, opened_at) if answer_by is not None and due_at <= opened_at else due_at


def _close_alerts(write: WriteStatement, disputed: UUID, case: UUID, at: datetime) -> None:
    """Close alerts in the statement that opens a case: an open alert of the payment is over, and every one names the
    case."""
    closing = {
        "state": DisputeAlert.State.DISPUTED,
        "chargeback": case,
        "closed_at": at,
        "moved_at": DatabaseTime(timedelta(0)),
    }
    write.update_related(DisputeAlert, closing, {"disputed": disputed, "state": DisputeAlert.State.OPEN})
    for state in DisputeAlert.State:
        if state not in (DisputeAlert.State.OPEN, DisputeAlert.State.DISPUTED):
            write.update_related(DisputeAlert, {"chargeback": case}, {"disputed": disputed, "state": state})


def _insert_reminders(write: WriteStatement, case: UUID, since: datetime, due_at: datetime) -> None:
    for days in REMINDER_DAYS:
        at = due_at - timedelta(days=days)
        if at > since:
            write.insert(Reminder, case_id=case, days=days, due_at=at, tries=0, sent_to="")


def _choose_opening(
    dispute: Payment, scheme: SchemeFacts, previous: Chargeback | None, *, answered: bool
) -> tuple[DisputeEvent, DisputeStage]:
    """How a case begins: its event and its stage. ``answered``: the acquirer named a day for the answer, so there is
    one."""
    if not answered and is_final_return(dispute.method, dispute.result_code):
        return DisputeEvent.RETURN, scheme.stage or DisputeStage.FIRST
    if previous is None:
        return DisputeEvent.OPEN, scheme.stage or DisputeStage.FIRST
    if not previous.events.filter(event=DisputeEvent.ESCALATE).exists():
        return DisputeEvent.SECOND, scheme.stage or choose_next_stage(previous.brand, scheme.reason, previous.stage)
    # The stage was opened without money before, on the case itself: this is its money.
    decided = previous.state in (DisputeState.LOST, DisputeState.ACCEPTED)
    return DisputeEvent.DECIDED if decided else DisputeEvent.SECOND, scheme.stage or DisputeStage(previous.stage)


def move_case(
    case: Chargeback,
    event: DisputeEvent,
    *,
    at: datetime,
    by: str = "",
    note: str = "",
    payment: UUID | None = None,
    **changes: Any,
) -> bool:
    """Apply ``event`` to ``case`` if it is still as it was read. False, with nothing written, if it has changed.

    Raises DisputeTransitionError, and IntegrityError for a ``payment`` that has moved a case already.
    """
    state = apply_dispute_event(DisputeState(case.state), event)
    changes |= {"state": state, "version": case.version + 1}
    if note:
        changes["note"] = note[:500]
    if state in CLOSED_DISPUTE_STATES and case.closed_at is None:
        changes["closed_at"] = at
    write = WriteStatement()
    write.update(case, changes, expecting={"version": case.version, "state": case.state})
    write.insert(
        CaseEvent,
        case_id=case.id,
        sequence=case.version + 1,
        event=event,
        state=state,
        payment=payment,
        by=by[:150],
        note=note[:500],
        at=at,
    )
    if not write.run():
        return False
    for name, value in changes.items():
        setattr(case, name, value)
    return True


def _move_by_hand(
    case: Chargeback, event: DisputeEvent, by: audit_log.Actor, note: str, at: datetime, **changes: Any
) -> None:
    """Apply an event for a user, with the audit entry. Raises DisputeTransitionError."""
    before = {"state": case.state}
    with transaction.atomic():
        if not move_case(case, event, at=at, by=by.name, note=note, **changes):
            raise DisputeTransitionError(_("The dispute was changed by somebody else. Look at it again."))
        audit_log.record_audit_entry(by, event.value, case, before=before, after={"state": case.state, "note": note})


def submit_evidence(case: Chargeback, by: audit_log.Actor, note: str = "") -> None:
    """Submit the evidence, which is final. Raises DisputeTransitionError: closed, too late, submitted before, or no
    evidence."""
    at = clock.merchant_now(case.merchant)
    apply_dispute_event(DisputeState(case.state), DisputeEvent.SUBMIT)
    if at >= case.due_at:
        raise DisputeTransitionError(_("The deadline was %s UTC.") % f"{case.due_at:%Y-%m-%d %H:%M}")
    if not case.evidence.exists():
        raise DisputeTransitionError(_("There is no evidence yet: add at least one file."))
    _move_by_hand(case, DisputeEvent.SUBMIT, by, note, at, submitted_at=at)


def accept_dispute(case: Chargeback, by: audit_log.Actor, note: str) -> None:
    """Accept the loss: the shopper keeps the money. Raises DisputeTransitionError."""
    _move_by_hand(case, DisputeEvent.ACCEPT, by, note, clock.merchant_now(case.merchant))


def escalate_dispute(
    case: Chargeback, by: audit_log.Actor, *, stage: DisputeStage, respond_by: date | None = None, scheme_case: str = ""
) -> None:
    """Record that the issuer opened ``stage`` without taking money yet: the case can be answered again, until a new
    deadline. Raises DisputeTransitionError, also for a stage that does not come after the case's own."""
    order = list(DisputeStage)
    if order.index(stage) <= order.index(DisputeStage(case.stage)):
        raise DisputeTransitionError(_("The dispute is at this stage, or at a later one."))
    at, disputed = clock.merchant_now(case.merchant), Payment.objects.select_related("channel").get(pk=case.disputed)
    rule = find_stage_rule(case.brand, case.scheme_reason, stage, find_merchant_country(disputed))
    due_at = compute_response_deadline(case.merchant, at, respond_by, rule.answer_days)
    with transaction.atomic():
        changes = {
            "stage": stage,
            "due_at": due_at,
            "submitted_at": None,
            "scheme_case": scheme_case or case.scheme_case,
        }
        _move_by_hand(case, DisputeEvent.ESCALATE, by, rule.name, at, **changes)
        Chargeback.objects.filter(pk=case.pk).update(closed_at=None)
        case.closed_at = None
        Reminder.objects.filter(case=case).delete()
        write = WriteStatement()
        _insert_reminders(write, case.id, at, due_at)
        write.run()


def win_dispute(case: Chargeback, by: audit_log.Actor, note: str) -> None:
    """Record that a stage was decided for the merchant whose money was with them all the time. Raises
    DisputeTransitionError, also while money is out: then its return (CR) wins the case."""
    if case.recovered < case.amount:
        raise DisputeTransitionError(_("The money has not come back yet: its return wins the dispute."))
    _move_by_hand(case, DisputeEvent.WIN, by, note, clock.merchant_now(case.merchant))


def lose_dispute(case: Chargeback, by: audit_log.Actor, note: str) -> None:
    """Record the acquirer's decision for the shopper. Raises DisputeTransitionError."""
    _move_by_hand(case, DisputeEvent.LOSE, by, note, clock.merchant_now(case.merchant))


# --- deadlines ---------------------------------------------------------------------------------------------------

_OVERDUE: Final = f"""
SELECT c.id FROM chargebacks_chargeback c JOIN gateway_merchant m ON m.id = c.merchant_id
WHERE c.state = 'OPEN' AND {due_sql("c.due_at")} ORDER BY c.due_at LIMIT %(limit)s"""  # noqa: S608 - a constant
MAX_CASES_PER_RUN: Final = 200


def expire_overdue_cases(merchant: Merchant | None = None) -> int:
    """Close cases past their deadline as lost. Returns how many."""
    closed = 0
    for (ident,) in execute_sql(_OVERDUE, bind_run(merchant, limit=MAX_CASES_PER_RUN)):
        case = Chargeback.objects.select_related("merchant").get(pk=ident)
        if case.state != DisputeState.OPEN:
            continue
        zone = ZoneInfo(case.merchant.time_zone)
        due = f"{case.due_at.astimezone(zone):%Y-%m-%d %H:%M} ({case.merchant.time_zone})"
        note = NOT_ANSWERED_NOTE % {"due": due}
        closed += move_case(case, DisputeEvent.EXPIRE, at=clock.merchant_now(case.merchant), note=note)
    return closed


def next_response_deadline(merchant: Merchant) -> datetime | None:
    """The earliest deadline of this merchant's open cases, by the merchant's clock."""
    return find_earliest(Chargeback.objects.filter(merchant=merchant, state=DisputeState.OPEN), "due_at")


# --- payments without a case -------------------------------------------------------------------------------------

_WITHOUT_A_CASE: Final = """
SELECT p.id FROM gateway_payment p
WHERE p.payment_type IN ('CB', 'CR') AND p.id >= %(floor)s AND p.status = 'APPROVED'
    AND NOT EXISTS (SELECT 1 FROM chargebacks_caseevent e WHERE e.payment = p.id)
    AND (%(merchant)s::uuid IS NULL OR p.merchant_id = %(merchant)s::uuid)
ORDER BY p.id LIMIT %(limit)s"""


EARLIEST_PAYMENT_WITHOUT_CASE: Final = f"""
SELECT statement_timestamp() FROM gateway_payment p
WHERE p.payment_type IN ('CB', 'CR') AND p.id >= {lowest_id_since_sql(ADOPTION_LOOKBACK)} AND p.status = 'APPROVED'
    AND NOT EXISTS (SELECT 1 FROM chargebacks_caseevent e WHERE e.payment = p.id) LIMIT 1"""  # noqa: S608 - constants of this module


def adopt_recent_payments(merchant: Merchant | None = None) -> int:
    """Open cases for recent CB payments, and move cases for CR payments, that came by API. Returns how many."""
    return _adopt_payments(merchant, clock.real_now() - ADOPTION_LOOKBACK)


def adopt_all_payments() -> int:
    """Open and move the cases of payments of any age: one may have been in doubt for long."""
    return _adopt_payments(None, None)


def next_payment_without_case(merchant: Merchant) -> datetime | None:
    """When the merchant's first recent CB or CR payment without a case was made, by the merchant's clock, so that
    moving the clock past a deadline first opens the case."""
    found = _list_payments_without_case(merchant, clock.real_now() - ADOPTION_LOOKBACK, 1)
    return Payment.objects.values_list("created_at", flat=True).get(pk=found[0]) if found else None


def _adopt_payments(merchant: Merchant | None, since: datetime | None) -> int:
    return sum(
        adopt_payment(Payment.objects.select_related("merchant").get(pk=ident))
        for ident in _list_payments_without_case(merchant, since, MAX_CASES_PER_RUN)
    )


def _list_payments_without_case(merchant: Merchant | None, since: datetime | None, limit: int) -> list[UUID]:
    """CB and CR payments without a case, the oldest first."""
    floor = UUID(int=int(since.timestamp() * 1000) << 80) if since is not None else UUID(int=0)
    values = {"floor": floor, "limit": limit, "merchant": merchant.pk if merchant is not None else None}
    return [ident for (ident,) in execute_sql(_WITHOUT_A_CASE, values)]


def adopt_chain_payments(chain: UUID) -> None:
    """Open and move the cases of one chain that the timer has not reached yet."""
    events = CaseEvent.objects.filter(payment=OuterRef("pk"))
    found = Payment.objects.filter(chain=chain, payment_type__in=("CB", "CR"), status=Status.APPROVED)
    for payment in found.filter(~Exists(events)).select_related("merchant").order_by("id"):
        adopt_payment(payment)


def adopt_payment(payment: Payment, by: str = "") -> bool:
    """Open the case of a CB payment, or move that of a CR payment. False if that is done already."""
    if payment.status != Status.APPROVED:
        return False
    try:
        return _close_reversed_case(payment, by) if payment.payment_type == "CR" else _open_case(payment, by)
    except IntegrityError:
        return False


def _open_case(dispute: Payment, by: str) -> bool:
    """Open the case of a CB payment that came without one: by API, or from a processor, whose time to answer holds."""
    behind, previous = resolve_disputed_payment(dispute)
    chain = load_chain(dispute.id, dispute.merchant, None)
    assert chain is not None
    write = WriteStatement()
    told = read_private_facts(dispute.answer).dispute or ReportedDispute()
    until = datetime.fromisoformat(told.answer_by) + dispute.merchant.clock_offset if told.answer_by else None
    insert_case(
        write,
        dispute,
        behind,
        dispute.merchant,
        source=Chargeback.Source.API,
        by=by,
        previous=previous,
        respond_by=find_last_answer_day(dispute.merchant, until) if until is not None else None,
        answer_by=until,
        scheme=SchemeFacts(reason=told.scheme_reason),
        refunded_before=compute_refunded_before(chain, behind, dispute),
    )
    opened = write.run()
    if opened:
        apply_revocation(Chargeback.objects.select_related("merchant").get(pk=dispute.id))
    return opened


def apply_revocation(case: Chargeback) -> None:
    """Stop stored credentials now, if the reason of a case that was just opened ends their use."""
    if case.stops_pending:
        stop_stored_credentials(case)
        case.stops_pending = False


def compute_refunded_before(chain: Chain, behind: Payment, dispute: Payment | None = None) -> Decimal:
    """What had been refunded and reversed of ``behind`` when ``dispute`` began, or until now."""
    earlier = [one for one in chain.members if dispute is None or one.id < dispute.id]
    return compute_refunded_amount(Chain(earlier), behind)


def _load_referenced_payment(payment: Payment) -> Payment:
    """The payment that a follow-up refers to."""
    assert payment.referenced is not None
    return Payment.objects.select_related("merchant").get(pk=payment.referenced)


def resolve_disputed_payment(dispute: Payment) -> tuple[Payment, Chargeback | None]:
    """The payment that a CB payment disputes, and the previous case if it follows a representment."""
    behind = _load_referenced_payment(dispute)
    if behind.payment_type != "CR":
        return behind, None
    first = _load_referenced_payment(behind)
    previous = Chargeback.objects.filter(pk=first.pk).first()
    if previous is None:
        adopt_payment(first)
        previous = Chargeback.objects.get(pk=first.pk)
    return Payment.objects.get(pk=previous.disputed), previous


def _close_reversed_case(representment: Payment, by: str) -> bool:
    """Move the case whose money was returned, wholly or in part."""
    for _try in range(MAX_CASE_UPDATE_TRIES):
        dispute = _load_referenced_payment(representment)
        case = Chargeback.objects.filter(pk=dispute.pk).first()
        if case is None:
            if not adopt_payment(dispute, by):
                return False
            continue
        came = representment.approved_amount or Decimal(0)
        recovered = case.recovered + came
        note = CAME_BACK_NOTE % {"recovered": f"{recovered} {case.currency}", "amount": case.amount}
        if move_case(
            case,
            DisputeEvent.REVERSE,
            at=representment.created_at,
            by=by,
            note=note,
            payment=representment.id,
            recovered=recovered,
        ):
            return True
    return False

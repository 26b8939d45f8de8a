"""Cases: how one comes about, moves and ends. Every move is a compare-and-set with its event and, by hand, its audit.

A chargeback that is entered (chargebacks.ledger) makes its case in the statement of its CB payment. One that comes by
API in the test environment is a CB payment first: its case is made when the next tick finds it, and so is the move of
a case whose CR payment was written by somebody who did not live to write more.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chargebacks.models import CaseEvent, Chargeback, Reminder
from chargebacks.states import CLOSED, START, Event, ImpossibleMove, State, after
from gateway import audit, clock
from gateway.models import Merchant, Payment, Status
from gateway.rows import Write, execute

ANSWER_AT: Final = time(17, 0)
"""The hour of a deadline, in the merchant's time zone: a day alone would end in the middle of the night."""
REMIND_DAYS: Final = (7, 3, 1)
MOST_TRIES: Final = 20
SECOND_IS_FINAL: Final = "A second chargeback, after the representment: it is final."
NOT_ANSWERED: Final = "No evidence was submitted by {due}: the dispute is lost."
ADOPT_WITHIN: Final = timedelta(days=3)
"""How far back a tick looks for payments without a case; once an hour it looks at all of them."""


def deadline(merchant: Merchant, opened_at: datetime, respond_by: date | None = None) -> datetime:
    """Until when evidence may be submitted: the acquirer's day, else so many days after the chargeback as the
    settings say; 17:00 in the merchant's time zone."""
    zone = ZoneInfo(merchant.time_zone)
    day = respond_by or opened_at.astimezone(zone).date() + timedelta(days=settings.GATEWAY_CHARGEBACK_ANSWER_DAYS)
    return datetime.combine(day, ANSWER_AT, zone).astimezone(UTC)


def days_left(case: Chargeback, at: datetime) -> int:
    """Days of the merchant's calendar until the one on which the answer is due: 0 on that day, whatever the hour."""
    return days_between(at, case.due_at, case.merchant.time_zone)


def days_between(at: datetime, due_at: datetime, time_zone: str) -> int:
    """Midnights of that time zone from one moment to the other."""
    zone = ZoneInfo(time_zone)
    return (due_at.astimezone(zone).date() - at.astimezone(zone).date()).days


def left_words(days: int) -> str:
    """The same for a reader who is at it."""
    return ngettext("%d day left", "%d days left", days) % days if days > 0 else _("due today")


def write_case(
    write: Write,
    dispute: Payment,
    behind: Payment,
    merchant: Merchant,
    *,
    source: Chargeback.Source,
    by: str,
    previous: Chargeback | None,
    respond_by: date | None = None,
    reference: str = "",
) -> None:
    """The rows of a new case, in the statement that writes its CB payment ``dispute``. ``behind``: what is disputed."""
    event = Event.SECOND if previous is not None else Event.OPEN
    state, opened_at = after(START, event), dispute.created_at
    due_at, note = deadline(merchant, opened_at, respond_by), SECOND_IS_FINAL if previous is not None else ""
    write.insert(
        Chargeback, id=dispute.id, merchant_id=dispute.merchant_id, channel_id=dispute.channel_id,
        disputed=behind.id, chain=dispute.chain, previous_id=previous.id if previous is not None else None,
        state=state, source=source, reason_code=dispute.result_code, amount=dispute.approved, currency=dispute.currency,
        recovered=Decimal(0), brand=dispute.brand, test_mode=dispute.test_mode, reference=reference,
        opened_at=opened_at, due_at=due_at, note=note, closed_at=opened_at if state in CLOSED else None, version=1,
    )  # fmt: skip
    write.insert(
        CaseEvent, case_id=dispute.id, sequence=1, event=event, state=state, payment=dispute.id, by=by[:150], note=note,
        at=opened_at,
    )  # fmt: skip
    for days in REMIND_DAYS:
        at = due_at - timedelta(days=days)
        if state == State.OPEN and at > opened_at:
            write.insert(Reminder, case_id=dispute.id, days=days, due_at=at, tries=0, sent_to="")


def move(
    case: Chargeback, event: Event, *, at: datetime, by: str = "", note: str = "", payment: UUID | None = None,
    **changes: Any,
) -> bool:  # fmt: skip
    """Move ``case`` if it still is as it was read; False when somebody else was faster: nothing was written.

    Raises ImpossibleMove, and IntegrityError for a ``payment`` that has moved a case already.
    """
    state = after(State(case.state), event)
    changes |= {"state": state, "version": case.version + 1}
    if note:
        changes["note"] = note[:500]
    if state in CLOSED and case.closed_at is None:
        changes["closed_at"] = at
    write = Write()
    write.update(case, changes, expecting={"version": case.version, "state": case.state})
    write.insert(
        CaseEvent, case_id=case.id, sequence=case.version + 1, event=event, state=state, payment=payment, by=by[:150],
        note=note[:500], at=at,
    )  # fmt: skip
    if not write.run():
        return False
    for name, value in changes.items():
        setattr(case, name, value)
    return True


def _moved(case: Chargeback, event: Event, by: audit.Actor, note: str, at: datetime, **changes: Any) -> None:
    """Move by somebody's hand, with the audit entry. Raises ImpossibleMove."""
    before = {"state": case.state}
    with transaction.atomic():
        if not move(case, event, at=at, by=by.name, note=note, **changes):
            raise ImpossibleMove(_("The dispute was changed by somebody else. Look at it again."))
        audit.record(by, event.value, case, before=before, after={"state": case.state, "note": note})


def submit(case: Chargeback, by: audit.Actor, note: str = "") -> None:
    """Submit the evidence, once and for good. Raises ImpossibleMove: closed, late, submitted before, or no evidence."""
    at = clock.now(case.merchant)
    after(State(case.state), Event.SUBMIT)
    if at >= case.due_at:
        raise ImpossibleMove(_("The deadline was %s UTC.") % f"{case.due_at:%Y-%m-%d %H:%M}")
    if not case.evidence.exists():
        raise ImpossibleMove(_("There is no evidence yet: add at least one file."))
    _moved(case, Event.SUBMIT, by, note, at, submitted_at=at)


def accept(case: Chargeback, by: audit.Actor, note: str) -> None:
    """Leave the money to the shopper. Raises ImpossibleMove."""
    _moved(case, Event.ACCEPT, by, note, clock.now(case.merchant))


def lose(case: Chargeback, by: audit.Actor, note: str) -> None:
    """The acquirer has decided for the shopper. Raises ImpossibleMove."""
    _moved(case, Event.LOSE, by, note, clock.now(case.merchant))


# --- what falls due ---------------------------------------------------------------------------------------------

_OVERDUE: Final = """
SELECT c.id FROM chargebacks_chargeback c JOIN gateway_merchant m ON m.id = c.merchant_id
WHERE c.state = 'OPEN'
    AND c.due_at <= %(now)s + (SELECT greatest(max(clock_offset), interval '0') FROM gateway_merchant)
    AND c.due_at <= %(now)s + m.clock_offset AND (%(merchant)s::uuid IS NULL OR m.id = %(merchant)s::uuid)
ORDER BY c.due_at LIMIT %(limit)s"""
AT_ONCE: Final = 200


def expire_due(merchant: Merchant | None = None) -> int:
    """Close as lost what was not answered in time; how many."""
    values = {"now": clock.real(), "merchant": merchant.pk if merchant is not None else None, "limit": AT_ONCE}
    closed = 0
    for (ident,) in execute(_OVERDUE, values):
        case = Chargeback.objects.select_related("merchant").get(pk=ident)
        if case.state != State.OPEN:
            continue
        zone = ZoneInfo(case.merchant.time_zone)
        note = NOT_ANSWERED.format(due=f"{case.due_at.astimezone(zone):%Y-%m-%d %H:%M} ({case.merchant.time_zone})")
        closed += move(case, Event.EXPIRE, at=clock.now(case.merchant), note=note)
    return closed


def next_deadline(merchant: Merchant) -> datetime | None:
    """When this merchant's next open case is over, by the merchant's clock."""
    found = Chargeback.objects.filter(merchant=merchant, state=State.OPEN).order_by("due_at")
    return found.values_list("due_at", flat=True).first()


# --- what the ledger knows and no case does ---------------------------------------------------------------------

_WITHOUT_A_CASE: Final = """
SELECT p.id FROM gateway_payment p
WHERE p.payment_type IN ('CB', 'CR') AND p.id >= %(floor)s AND p.status = 'APPROVED'
    AND NOT EXISTS (SELECT 1 FROM chargebacks_caseevent e WHERE e.payment = p.id)
    AND (%(merchant)s::uuid IS NULL OR p.merchant_id = %(merchant)s::uuid)
ORDER BY p.id LIMIT %(limit)s"""


def adopt_recent(merchant: Merchant | None = None) -> int:
    """Cases for the chargebacks, and moves for the reversals, that came by API; how many."""
    return _adopt(merchant, clock.real() - ADOPT_WITHIN)


def adopt_all(merchant: Merchant | None = None) -> int:
    """The same, however old: a payment may have been in doubt for long."""
    return _adopt(merchant, None)


def next_without_a_case(merchant: Merchant) -> datetime | None:
    """When the merchant's first recent chargeback or reversal without a case was made, by the merchant's clock: a clock
    that is moved past a deadline must not leave a case behind that nobody has made yet."""
    found = _without_a_case(merchant, clock.real() - ADOPT_WITHIN, 1)
    return Payment.objects.values_list("created_at", flat=True).get(pk=found[0]) if found else None


def _adopt(merchant: Merchant | None, since: datetime | None) -> int:
    return sum(
        adopt(Payment.objects.select_related("merchant").get(pk=ident))
        for ident in _without_a_case(merchant, since, AT_ONCE)
    )


def _without_a_case(merchant: Merchant | None, since: datetime | None, limit: int) -> list[UUID]:
    """The oldest first."""
    floor = UUID(int=int(since.timestamp() * 1000) << 80) if since is not None else UUID(int=0)
    values = {"floor": floor, "limit": limit, "merchant": merchant.pk if merchant is not None else None}
    return [ident for (ident,) in execute(_WITHOUT_A_CASE, values)]


def adopt_chain(chain: UUID) -> None:
    """Cases and moves of one chain that the tick has not come to yet."""
    told = CaseEvent.objects.filter(payment=OuterRef("pk"))
    found = Payment.objects.filter(chain=chain, payment_type__in=("CB", "CR"), status=Status.APPROVED)
    for payment in found.filter(~Exists(told)).select_related("merchant").order_by("id"):
        adopt(payment)


def adopt(payment: Payment, by: str = "") -> bool:
    """Make the case of a CB payment, or move that of a CR payment; False when it is done already."""
    if payment.status != Status.APPROVED:
        return False
    try:
        return _reversed(payment, by) if payment.payment_type == "CR" else _opened(payment, by)
    except IntegrityError:
        return False


def _opened(dispute: Payment, by: str) -> bool:
    """The case of a CB payment that came without one."""
    behind, previous = disputed_by(dispute)
    write = Write()
    write_case(
        write, dispute, behind, dispute.merchant, source=Chargeback.Source.API, by=by, previous=previous
    )  # fmt: skip
    return write.run()


def _behind(payment: Payment) -> Payment:
    """The payment that a follow-up speaks of."""
    assert payment.referenced is not None
    return Payment.objects.select_related("merchant").get(pk=payment.referenced)


def disputed_by(dispute: Payment) -> tuple[Payment, Chargeback | None]:
    """What a CB payment is about, and the case before it, when it follows a representment."""
    behind = _behind(dispute)
    if behind.payment_type != "CR":
        return behind, None
    first = _behind(behind)
    previous = Chargeback.objects.filter(pk=first.pk).first()
    if previous is None:
        adopt(first)
        previous = Chargeback.objects.get(pk=first.pk)
    return Payment.objects.get(pk=previous.disputed), previous


def _reversed(representment: Payment, by: str) -> bool:
    """The move of the case whose money came back, wholly or in part."""
    for _try in range(MOST_TRIES):
        dispute = _behind(representment)
        case = Chargeback.objects.filter(pk=dispute.pk).first()
        if case is None:
            if not adopt(dispute, by):
                return False
            continue
        came = representment.approved or Decimal(0)
        recovered = case.recovered + came
        note = f"{recovered} {case.currency} of {case.amount} came back."
        if move(
            case, Event.REVERSE, at=representment.created_at, by=by, note=note, payment=representment.id,
            recovered=recovered,
        ):  # fmt: skip
            return True
    return False

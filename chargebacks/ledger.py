"""Chargebacks and their reversals go into the ledger of their chain: CB and CR payments, by the one corridor.

Who enters one here has it from the acquirer: a settlement file, or a person who read a letter. The table of operations
decides as it does for the API, in live too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError

from chargebacks import cases
from chargebacks.checklist import NO_REASON, is_reason, words
from chargebacks.models import Chargeback, Told
from chargebacks.states import ImpossibleMove, State
from gateway import audit, clock, wake
from gateway.connectors.port import AcquirerReply
from gateway.models import AuditEntry, Payment, Status
from gateway.money import Money
from gateway.payments.chain import COUNTED, Chain, worth
from gateway.payments.refusal import Refused
from gateway.payments.told import Look, enter
from gateway.rows import Write

SUCCESS_TEST: Final = "000.100.110"
SUCCESS_EXTERNAL: Final = "000.100.112"
SUCCESS_LIVE: Final = "000.000.000"
BOOKS: Final = "chargebacks entered"
"""The timer that writes what no file has told of into the books."""
NOTHING_TO_REVERSE: Final = "700.400.420"

Alongside = Callable[[Write, Payment], None]
Marks = tuple[UUID | None, UUID | None]
"""A line, and what it has in common with others that tell of the same."""


class ToldBefore(Exception):
    """What is to be entered was entered before, for the same line. ``payment``: the one that was entered for it."""

    def __init__(self, payment: UUID) -> None:
        super().__init__(f"entered before as {payment.hex}")
        self.payment = payment


class ToldTwice(ToldBefore):
    """Another line told of the very same before."""


class Known(ToldBefore):
    """It is in the ledger already, by hand or by API, and no line has told of it yet: the line is joined to it."""


class Overtaken(Exception):
    """Another follow-up of the chain began since the asker looked at it; nothing was written."""


class OnItsWay(Exception):
    """What may be the same has begun by API and has no answer yet."""


def charge_back(
    disputed: Payment,
    amount: Decimal,
    *,
    reason: str = "",
    source: Chargeback.Source = Chargeback.Source.HAND,
    by: audit.Actor,
    respond_by: date | None = None,
    reference: str = "",
    line: UUID | None = None,
    same: UUID | None = None,
    seen: int | None = None,
    alongside: Alongside | None = None,
) -> Chargeback:
    """Enter a chargeback of ``disputed`` and return its case. What a representment won is charged back a second time.

    ``line``: what the acquirer told, once; ``same``: what two lines have in common that tell of the same. ``seen``: the
    chain's count of follow-ups when the asker looked at it, compared and raised in one statement: of two who looked at
    the same the second is Overtaken.
    ``alongside``: what the asker writes in the same statement. Raises Refused (a code of the table of operations),
    Invalid (an amount that no payment has), ValueError for a reason that is none, and for a line ToldBefore, ToldTwice,
    Known and OnItsWay.
    """
    reason = reason or NO_REASON
    if not is_reason(reason):
        raise ValueError(f"{reason} is no reason of a chargeback: 000.100.2 and two digits")
    target, previous = _target(disputed, amount)
    money = Money(amount, disputed.currency)
    reply = AcquirerReply(code=reason, approved=money, details={"AcquirerResponse": reference[:64]}
                          if reference else {})  # fmt: skip

    def write_more(write: Write, row: Payment) -> None:
        cases.write_case(
            write, row, disputed, disputed.merchant, source=source, by=by.name, previous=previous,
            respond_by=respond_by, reference=reference[:64],
        )  # fmt: skip
        after = {"amount": str(amount), "currency": row.currency, "reason": f"{reason} {words(reason)}"}
        _with(write, row, row.id, "chargeback", after, by, (line, same), alongside)

    payment = _entered(
        "CB", target, disputed, amount, reply, source, (line, same), reason=reason, seen=seen, write=write_more
    )
    return Chargeback.objects.select_related("merchant").get(pk=payment.id)


def reverse(
    case: Chargeback,
    amount: Decimal | None = None,
    *,
    source: Chargeback.Source = Chargeback.Source.HAND,
    by: audit.Actor,
    line: UUID | None = None,
    same: UUID | None = None,
    alongside: Alongside | None = None,
) -> Payment:
    """The money of ``case`` came back, all of it or ``amount``: a CR payment, and the case is won.

    ``line``, ``same``, ``alongside``, and what is raised: as of charge_back.
    """
    dispute = Payment.objects.select_related("merchant").get(pk=case.pk)
    came = amount if amount is not None else case.amount - case.recovered
    reply = AcquirerReply(code=_success(dispute), approved=Money(came, dispute.currency))

    def write_more(write: Write, row: Payment) -> None:
        after = {"amount": str(came), "currency": row.currency}
        _with(write, row, case.pk, "reversal", after, by, (line, same), alongside)

    payment = _entered("CR", dispute, dispute, came, reply, source, (line, same), write=write_more)
    payment.merchant = dispute.merchant
    cases.adopt(payment, by.name)
    case.refresh_from_db()
    return payment


def simulate_outcome(case: Chargeback, by: audit.Actor, *, won: bool) -> None:
    """The simulated bank decides (test environment). Raises ImpossibleMove unless evidence was submitted."""
    if settings.IS_LIVE or case.test_mode != "INTERNAL":
        raise ImpossibleMove("only the simulator's disputes are decided here; others are by their acquirer")
    if case.state != State.SUBMITTED:
        raise ImpossibleMove(f"the dispute is {case.state}; evidence is submitted first")
    if won:
        reverse(case, by=by)
    else:
        cases.lose(case, by, "The simulated bank decided for the shopper.")


def standing_case(disputed: Payment, amount: Decimal | None = None) -> Chargeback | None:
    """The case of ``disputed`` that a reversal is about: the newest of which something has not come back, one of the
    same amount first."""
    waiting = [
        case
        for case in Chargeback.objects.select_related("merchant").filter(chain=disputed.chain, disputed=disputed.id)
        .order_by("-id")
        if case.recovered < case.amount
    ]  # fmt: skip
    return next((case for case in waiting if case.amount - case.recovered == amount), waiting[0] if waiting else None)


def look_for_known(kind: str, disputed: UUID, amount: Decimal, chain: Chain) -> None:
    """Raise Known for the oldest CB or CR (``kind``) of this amount that no line has told of, about what is
    ``disputed``; OnItsWay for one that is not answered yet."""
    alike = [one for one in chain.members if one.payment_type == kind and _about(chain, one) == disputed
             and one.status in COUNTED and worth(one) == amount]  # fmt: skip
    told = set(Told.objects.filter(payment__in=[one.id for one in alike]).values_list("payment", flat=True))
    for one in alike:
        if one.id in told:
            continue
        if one.status != Status.APPROVED:
            raise OnItsWay(f"a {kind} of the same amount has no answer yet")
        raise Known(one.id)


def _about(chain: Chain, payment: Payment) -> UUID | None:
    """What a CB or CR is about in the end: representments and second chargebacks follow each other."""
    behind: Payment | None = payment
    while behind is not None and behind.payment_type in ("CB", "CR") and behind.referenced is not None:
        behind = chain.find(behind.referenced)
    return behind.id if behind is not None else None


def join(write: Write, payment: UUID, line: UUID, same: UUID | None) -> bool:
    """Run ``write``, which joins ``line`` to a ``payment`` that is in the ledger; False when the line has changed, or
    another one was joined to it meanwhile. Raises ToldBefore and ToldTwice."""
    not_told((line, same))
    _mark(write, payment, (line, same))
    try:
        return write.run()
    except IntegrityError:
        not_told((line, same))
        return False


def not_told(marks: Marks) -> None:
    """Raises ToldBefore and ToldTwice."""
    line, same = marks
    told = dict(Told.objects.filter(pk__in=[one for one in marks if one]).values_list("reference", "payment"))
    if line in told:
        raise ToldBefore(told[line])
    if same in told:
        raise ToldTwice(told[same])


def _mark(write: Write, payment: UUID, marks: Marks) -> None:
    """A line, what it has in common with others, and the payment itself are told of once: unique, all three."""
    line, same = marks
    for reference in (line, same, payment):
        if line is not None and reference is not None:
            write.insert(Told, reference=reference, payment=payment)


def _entered(
    kind: str, target: Payment, disputed: Payment, amount: Decimal, reply: AcquirerReply, source: Chargeback.Source,
    marks: Marks, *, reason: str = "", seen: int | None = None, write: Alongside,
) -> Payment:  # fmt: skip
    not_told(marks)
    look: Look | None = None
    if marks[0] is not None:
        about = disputed.id if kind == "CB" else Chargeback.objects.values_list("disputed", flat=True).get(pk=target.id)
        look = partial(look_for_known, kind, about, amount)
    elif seen is not None:
        look = partial(_not_overtaken, seen)
    try:
        entered = enter(
            kind, target.id, disputed.merchant, amount, disputed.currency, reply, origin=f"chargeback by {source}",
            reason=reason, look=look, alongside=write,
        )  # fmt: skip
    except IntegrityError:
        not_told(marks)
        raise
    if marks[0] is None:
        wake.wake(BOOKS)
    return entered


def _not_overtaken(seen: int, chain: Chain) -> None:
    if chain.first.follow_ups != seen:
        raise Overtaken


def _with(
    write: Write, row: Payment, case: UUID, action: str, after: Mapping[str, str], by: audit.Actor, marks: Marks,
    alongside: Alongside | None,
) -> None:  # fmt: skip
    """What goes with the payment: the audit entry, the marks that this was told, what the asker writes."""
    write.insert(
        AuditEntry, at=clock.real(), actor=by.name[:150], ip=by.ip, action=action, subject="chargeback",
        subject_id=str(case), after=dict(after),
    )  # fmt: skip
    _mark(write, row.id, marks)
    if alongside is not None:
        alongside(write, row)


def _target(disputed: Payment, amount: Decimal) -> tuple[Payment, Chargeback | None]:
    """What the CB payment follows: the payment itself, or the representment that won its money back."""
    won = list(Payment.objects.filter(chain=disputed.chain, payment_type="CR", status=Status.APPROVED).order_by("-id"))
    taken = set(
        Payment.objects.filter(chain=disputed.chain, payment_type="CB", status=Status.APPROVED)
        .values_list("referenced", flat=True)
    )  # fmt: skip
    for representment in won:
        if representment.id in taken or (representment.approved or 0) < amount:
            continue
        previous = Chargeback.objects.filter(pk=representment.referenced or disputed.id, disputed=disputed.id).first()
        if previous is not None:
            representment.merchant = disputed.merchant
            return representment, previous
    return disputed, None


def _success(payment: Payment) -> str:
    if settings.IS_LIVE:
        return SUCCESS_LIVE
    return SUCCESS_EXTERNAL if payment.test_mode == "EXTERNAL" else SUCCESS_TEST


__all__ = [
    "NOTHING_TO_REVERSE", "Known", "OnItsWay", "Overtaken", "Refused", "ToldBefore", "ToldTwice", "charge_back", "join",
    "look_for_known", "not_told", "reverse", "simulate_outcome", "standing_case",
]  # fmt: skip

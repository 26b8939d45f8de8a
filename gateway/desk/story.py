"""Everything about one payment, as values for a page: its chain with amounts, what happened when, and why.

Reading only, in a fixed number of statements however long the chain is (its parts are bounded by PARTS_AT_MOST).
Source: design, J4; Part B, Payment response.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _

from gateway import results
from gateway.desk import routed
from gateway.desk.why import Why, why
from gateway.masking import mask_text
from gateway.models import (
    AcquirerExchange,
    Approval,
    Authentication,
    Notification,
    Payment,
    PaymentEvent,
    RiskDecision,
    Status,
    Suspension,
    WebhookAttempt,
)
from gateway.payments import chain as sums
from gateway.payments.chain import ZERO, Chain
from gateway.payments.exchanges import message
from gateway.payments.operations import AUTHORIZE_AGAIN, FOLLOW_UPS, OPERATIONS, decide, is_taken_out
from gateway.payments.states import Event

PARTS_AT_MOST: Final = 200
"""Rows of one kind that a page shows of a chain."""
OFFERED: Final = ("CP", "RF", "RV", "RB")
"""Follow-ups that a clerk makes by hand."""


# --- values -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One thing that happened. ``tone``: good, bad, wait or plain. ``lines``: more about it, one a line. ``sent`` and
    ``received``: an exchange's messages, masked. ``delivery``: the webhook that was tried."""

    at: datetime
    kind: str
    title: str
    tone: str = "plain"
    lines: tuple[str, ...] = ()
    payment: Payment | None = None
    sent: Mapping[str, Any] | None = None
    received: Mapping[str, Any] | None = None
    delivery: UUID | None = None
    order: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A payment in the picture of its chain. ``depth``: 0 for the first; ``row``: from the top; ``parent``: the row it
    hangs on, None for the first."""

    payment: Payment
    title: str
    amount: Decimal
    depth: int
    row: int
    parent: int | None
    here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """One amount of the strip above a chain. ``tone``: done, open or none (nothing of it)."""

    name: str
    amount: Decimal
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A follow-up that is possible. ``most``: the most it may move, None: no bound."""

    code: str
    title: str
    most: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    payment: Payment
    chain: Chain
    sums: Sequence[Sum]
    nodes: Sequence[Node]
    moments: Sequence[Moment]
    why: Why
    offers: Sequence[Offer]
    decision: RiskDecision | None
    authentication: Authentication | None
    approvals: Sequence[Approval]

    @property
    def is_first(self) -> bool:
        return self.payment.id == self.payment.chain


Told = Callable[[Sequence[Payment]], Sequence[Moment]]
MORE_MOMENTS: Final[list[Told]] = []
"""What apps above this one add to a timeline (chargeback cases, say): given the chain's payments."""


# --- reading ------------------------------------------------------------------------------------------------------


def story_of(payment: Payment) -> Story:
    """The story of ``payment``, which was read with its merchant and channel."""
    members = list(
        Payment.objects.filter(chain=payment.chain)
        .defer("merchant_memo", "means_sealed", "means_fingerprint").order_by("id")[:PARTS_AT_MOST]
    )  # fmt: skip
    members = [payment if member.id == payment.id else member for member in members]
    chain = Chain(members)
    keys = [member.id for member in members]
    decisions = {row.payment_id: row for row in RiskDecision.objects.filter(payment__in=keys)}
    authentications = {row.payment: row for row in Authentication.objects.filter(payment__in=keys)}
    exchanges = list(AcquirerExchange.objects.filter(payment__in=keys).order_by("id")[:PARTS_AT_MOST])
    approvals = list(Approval.objects.filter(payment__in=keys).order_by("asked_at")[:PARTS_AT_MOST])
    by_key = {member.id: member for member in members}
    moments = [
        *_events(keys, by_key), *(_exchange(row, by_key) for row in exchanges),
        *(_routed(member) for member in members if member.route),
        *(_decided(row, by_key) for row in decisions.values()),
        *(moment for row in authentications.values() for moment in _authenticated(row, by_key)),
        *_told(keys, by_key), *_delivered(keys, by_key),
        *(moment for row in approvals for moment in _approval(row, by_key)),
        *(moment for told in MORE_MOMENTS for moment in told(members)),
    ]  # fmt: skip
    return Story(
        payment=payment,
        chain=chain,
        sums=sums_of(chain),
        nodes=nodes_of(chain, payment.id),
        moments=sorted(moments, key=lambda moment: (moment.at, moment.order)),
        why=why(
            payment, decision=decisions.get(payment.id), authentication=authentications.get(payment.id),
            was_asked=any(row.payment_id == payment.id for row in exchanges),
        ),
        offers=offers_of(chain, payment),
        decision=decisions.get(payment.id),
        authentication=authentications.get(payment.id),
        approvals=approvals,
    )  # fmt: skip


# --- the chain ----------------------------------------------------------------------------------------------------


def title_of(payment: Payment) -> str:
    """What a payment is, in words: "Preauthorization", "Incremental authorization", "Refund"."""
    if payment.practice in AUTHORIZE_AGAIN:
        return _(AUTHORIZE_AGAIN[payment.practice].title)
    operation = OPERATIONS.get(payment.payment_type)
    return _(operation.title if operation is not None else TITLES.get(payment.payment_type, payment.payment_type))


TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "RG": "Registration", "RR": "Registration updated", "TE": "Registration extended", "DR": "Registration deleted",
        "RI": "Risk check", "3D": "Authentication", "SD": "Schedule", "RS": "Reschedule", "DS": "Deschedule",
    }
)  # fmt: skip
"""Types that no operation of money names."""


def sums_of(chain: Chain) -> list[Sum]:
    """Authorised, captured, refunded, reversed, charged back: what was granted, and what is still possible."""
    done = [member for member in chain.members if member.status == Status.APPROVED]

    def of(*types: str) -> Decimal:
        return sums.total(member for member in done if member.payment_type in types)

    first = chain.first
    granted = first.status == Status.APPROVED
    found: list[Sum] = []
    if first.payment_type == "PA":
        authorised = sums.authorised(chain) if granted else ZERO
        found.append(_sum("Authorised", authorised))
        found.append(_sum("Captured", of("CP")))
        found.append(_sum("Still to capture", sums.capturable(chain, first) if granted else ZERO, "open"))
    elif first.payment_type in ("DB", "CD"):
        found.append(_sum("Charged" if first.payment_type == "DB" else "Paid out", of("DB", "CD")))
    else:
        return []
    if of("RB"):
        found.append(_sum("Rebilled", of("RB")))
    found.append(_sum("Refunded", of("RF")))
    found.append(_sum("Reversed", of("RV")))
    if disputed := of("CB") - of("CR"):
        found.append(_sum("Charged back", disputed))
    paid = [member for member in done if member.payment_type in ("DB", "CP", "RB")]
    found.append(_sum("Still to refund", sum((sums.refundable(chain, member) for member in paid), ZERO), "open"))
    return found


def _sum(name: str, amount: Decimal, tone: str = "done") -> Sum:
    return Sum(name=_(name), amount=amount, tone=tone if amount > 0 else "none")


def nodes_of(chain: Chain, here: UUID) -> list[Node]:
    """The chain as a tree, in the order in which it is drawn: each payment below what it follows."""
    children: dict[UUID | None, list[Payment]] = {}
    for member in chain.members:
        above = None if member.id == member.chain else member.referenced
        children.setdefault(above, []).append(member)
    found: list[Node] = []
    # (payment, depth, row of what it hangs on): a stack, so that no chain is too deep.
    waiting: list[tuple[Payment, int, int | None]] = [(member, 0, None) for member in reversed(children.get(None, []))]
    while waiting:
        member, depth, parent = waiting.pop()
        row = len(found)
        found.append(
            Node(
                payment=member, title=title_of(member), amount=sums.worth(member), depth=depth, row=row, parent=parent,
                here=member.id == here,
            )
        )  # fmt: skip
        waiting += [(child, depth + 1, row) for child in reversed(children.get(member.id, []))]
    return found


def offers_of(chain: Chain, payment: Payment) -> list[Offer]:
    """The follow-ups that a clerk may make now, by the same table that answers the API."""
    found = []
    for code in OFFERED:
        operation = OPERATIONS[code]
        if payment.payment_type not in operation.follows:
            continue
        most = operation.ceiling(chain, payment) if operation.ceiling is not None else None
        asked = most if most is not None else payment.amount
        if asked > 0 and not decide(operation, chain, payment, asked, payment.currency).code:
            found.append(Offer(code=code, title=_(operation.title), most=most))
    return found


# --- the timeline -------------------------------------------------------------------------------------------------

_EVENTS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        Event.BEGIN: ("begun", "plain"),
        Event.REFUSE: ("refused before anybody was asked", "bad"),
        Event.APPROVE: ("approved", "good"),
        Event.DECLINE: ("declined", "bad"),
        Event.SUSPEND: ("waits for the shopper", "wait"),
        Event.LOSE: ("no answer: in doubt, the acquirer is asked again", "wait"),
        Event.RESUME: ("the shopper is back", "plain"),
        Event.REROUTE: ("goes on to another acquirer: the one before did not accept it", "wait"),
    }
)
"""Event → how it reads, and its tone. A test asks for every event."""

_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "submit": "asked",
        "inquire": "asked what became of it",
        "void": "asked to take it back",
        "batch": "told what became of it with its batch",
    }
)


def _events(keys: Sequence[UUID], by_key: Mapping[UUID, Payment]) -> list[Moment]:
    rows = PaymentEvent.objects.filter(payment__in=keys).order_by("id")[:PARTS_AT_MOST]
    deadlines = dict(Suspension.objects.filter(payment__in=keys).values_list("payment_id", "deadline"))
    found = []
    for row in rows:
        payment = by_key[row.payment_id]
        words, tone = _EVENTS[row.event]
        if row.event == Event.SUSPEND and is_taken_out(payment):
            words = "waits for its bank or acquirer"
        lines = [f"{row.result_code} {results.result(row.result_code).description}"] if row.result_code else []
        if row.event == Event.SUSPEND and (deadline := deadlines.get(row.payment_id)) is not None:
            lines.append(_("Until %s UTC at the latest") % f"{deadline:%Y-%m-%d %H:%M:%S}")
        amount = f" {sums.worth(payment)} {payment.currency}" if payment.amount else ""
        found.append(
            Moment(
                at=row.at, kind="event", title=f"{title_of(payment)}{amount} {_(words)}", tone=tone, lines=tuple(lines),
                payment=payment, order=row.sequence * 10,
            )
        )  # fmt: skip
    return found


def _routed(payment: Payment) -> Moment:
    route = payment.route or {}
    return Moment(
        at=payment.created_at, kind="route", title=_("Goes to %s") % routed.sent_to(route), payment=payment, order=11,
        lines=tuple(routed.reasons(route)),
    )  # fmt: skip


def _exchange(row: AcquirerExchange, by_key: Mapping[UUID, Payment]) -> Moment:
    silent = row.received is None or "silence" in row.received
    words = _KINDS.get(row.kind, row.kind)
    return Moment(
        at=row.at, kind="exchange", payment=by_key[row.payment_id], order=5,
        title=(_("%(who)s %(what)s, no answer") if silent else _("%(who)s %(what)s"))
        % {"who": row.connector, "what": _(words)},
        tone="wait" if silent else "plain", lines=(_("Took %s ms") % row.duration_ms,),
        sent=message(row, by_key[row.payment_id]), received=row.received,
    )  # fmt: skip


_OUTCOMES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {"accept": ("nothing against it", "good"), "review": ("to be looked at", "wait"), "decline": ("refused", "bad")}
)


def _decided(row: RiskDecision, by_key: Mapping[UUID, Payment]) -> Moment:
    words, tone = _OUTCOMES.get(row.outcome, (row.outcome, "plain"))
    named = {"key": row.set_key, "version": row.version}
    who = _("Risk check “%(key)s”, version %(version)s") % named if row.set_key else _("Guard against card testing")
    lines = [_("Score %s") % f"{row.score:+d}"] if row.score is not None else []
    lines += [f"“{reason.get('rule', '')}”: {reason.get('why', '')}" for reason in row.reasons]
    return Moment(
        at=row.at, kind="risk", title=f"{who}: {_(words)}", tone=tone, lines=tuple(lines),
        payment=by_key[row.payment_id],
        order=2,
    )  # fmt: skip


def _authenticated(row: Authentication, by_key: Mapping[UUID, Payment]) -> list[Moment]:
    payment = by_key[row.payment] if row.payment is not None else None
    begun = Moment(
        at=row.created_at, kind="3ds",
        title=_("3-D Secure %(version)s begun at %(network)s") % {"version": row.version, "network": row.network},
        lines=(_("Card %s") % row.card,) if row.card else (), payment=payment, order=3,
    )  # fmt: skip
    if row.completed_at is None:
        return [begun]
    good = row.trans_status in ("Y", "A", "I")
    lines = [line for line in (f"ECI {row.eci}" if row.eci else "", _("Reason %s") % row.trans_status_reason
             if row.trans_status_reason else "") if line]  # fmt: skip
    ended = Moment(
        at=row.completed_at, kind="3ds", tone="good" if good else "bad", payment=payment, order=4, lines=tuple(lines),
        title=_("3-D Secure ended: status %(status)s (%(how)s)")
        % {"status": row.trans_status or "-", "how": row.flow or row.step},
    )  # fmt: skip
    return [begun, ended]


def _told(keys: Sequence[UUID], by_key: Mapping[UUID, Payment]) -> list[Moment]:
    rows = Notification.objects.filter(payment__in=keys).order_by("id")[:PARTS_AT_MOST]
    return [
        Moment(
            at=row.created_at, kind="webhook", title=_("Notification %(kind)s %(action)s written to the outbox")
            % {"kind": row.kind, "action": row.action},
            payment=by_key.get(row.payment_id) if row.payment_id is not None else None, order=99,
        )
        for row in rows
    ]  # fmt: skip


def _delivered(keys: Sequence[UUID], by_key: Mapping[UUID, Payment]) -> list[Moment]:
    """Every attempt to tell the merchant's webhook endpoints."""
    rows = WebhookAttempt.objects.filter(delivery__payment__in=keys).select_related("delivery__endpoint")
    found = []
    for row in rows.order_by("id")[:PARTS_AT_MOST]:
        good = row.status is not None and 200 <= row.status < 300
        delivery = row.delivery
        what = f"{delivery.kind} {delivery.action}"
        found.append(
            Moment(
                at=row.at, kind="webhook", tone="good" if good else "bad", order=100, delivery=delivery.pk,
                title=_("Webhook %(what)s, attempt %(number)s: %(answer)s")
                % {"what": what, "number": row.number, "answer": row.status or row.failure},
                lines=(mask_text(delivery.url or delivery.endpoint.url), _("Took %s ms") % row.duration_ms),
                payment=by_key.get(delivery.payment) if delivery.payment is not None else None,
            )
        )  # fmt: skip
    return found


def _approval(row: Approval, by_key: Mapping[UUID, Payment]) -> list[Moment]:
    """Real time, as people see it; in the live environment it is the merchant's, too."""
    payment = by_key[row.payment_id]
    what = _("%(operation)s of %(amount)s %(currency)s") % {
        "operation": _(OPERATIONS[row.payment_type].title), "amount": row.amount, "currency": row.currency,
    }  # fmt: skip
    found = [
        Moment(
            at=row.asked_at, kind="approval",
            title=_("%(who)s asked for approval: %(what)s") % {"who": row.asked_by_name, "what": what}, tone="wait",
            lines=(row.note,) if row.note else (), payment=payment,
        )
    ]  # fmt: skip
    if row.decided_at is not None:
        good = row.state not in ("REJECTED", "WITHDRAWN")
        words = {
            "REJECTED": _("%(who)s rejected: %(what)s"), "WITHDRAWN": _("%(who)s withdrew: %(what)s"),
        }.get(row.state, _("%(who)s approved: %(what)s"))  # fmt: skip
        found.append(
            Moment(
                at=row.decided_at, kind="approval",
                title=words % {"who": row.decided_by_name or row.asked_by_name, "what": what},
                tone="good" if good else "bad", lines=(row.decision_note,) if row.decision_note else (),
                payment=payment,
            )
        )  # fmt: skip
    return found


__all__ = ["FOLLOW_UPS", "MORE_MOMENTS", "Moment", "Node", "Offer", "Story", "Sum", "nodes_of", "offers_of", "story_of"]

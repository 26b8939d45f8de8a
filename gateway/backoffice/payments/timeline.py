"""Timeline, chain and explanation of a payment, as values for its page.

Read-only, in a fixed number of statements however long the chain is; its parts are bounded by MAX_SHOWN_PARTS. Source:
Part B, Payment response.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.utils.translation import gettext as _

from gateway.backoffice.kit.formatting import format_moment, format_money
from gateway.backoffice.payments import route_explanation
from gateway.backoffice.payments.explanation import PaymentExplanation, explain_payment
from gateway.core import clock, result_codes
from gateway.core.authorization_validity import (
    ESTIMATED_AUTHORIZATION,
    FINAL_AUTHORIZATION,
    INCREMENTED_AUTHORIZATION,
)
from gateway.core.masking import mask_text
from gateway.models import (
    AcquirerExchange,
    Approval,
    Authentication,
    Channel,
    Notification,
    Payment,
    PaymentEvent,
    RiskDecision,
    Status,
    Suspension,
    WebhookAttempt,
)
from gateway.payments import chain_amounts as sums
from gateway.payments.acquirer_message_store import restore_message
from gateway.payments.chain_amounts import ZERO_AMOUNT, Chain
from gateway.payments.chain_states import ChainStatus, resolve_chain_status
from gateway.payments.operations import (
    CHAIN_FOLLOW_UP_TYPES,
    INDUSTRY_PRACTICE_OPERATIONS,
    OPERATIONS,
    evaluate_operation,
    is_locally_queued,
)
from gateway.payments.reversal_border import find_beyond_reversal
from gateway.payments.states import LifecycleEvent

MAX_SHOWN_PARTS: Final = 200
"""Rows of one kind that a page shows of a chain."""
MANUAL_FOLLOW_UPS: Final = ("CP", "RF", "RV", "RB")
"""Payment types of manual follow-ups."""
CHAIN_FOLLOW_UPS: Final = ("CP", "RF", "RV")
"""Those that are offered on every page of a chain."""


# --- values -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEvent:
    """One event. ``tone``: good, bad, wait or plain; ``lines``: details, one a line; ``sent`` and ``received``: masked
    acquirer messages; ``delivery``: the webhook delivery."""

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
class ChainNode:
    """A payment in the diagram of its chain. ``depth``: 0 for the first; ``row``: from the top; ``parent``: row of its
    parent, None for the first."""

    payment: Payment
    title: str
    amount: Decimal
    depth: int
    row: int
    parent: int | None
    here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainSum:
    """One amount above a chain. ``tone``: done, open or none (zero)."""

    name: str
    amount: Decimal
    tone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUpOffer:
    """A follow-up that is possible now. ``most``: the largest amount, None: no limit; ``target``: the payment of the
    chain that it follows."""

    code: str
    title: str
    most: Decimal | None
    target: Payment


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentStory:
    """Everything the page of a payment shows: chain, sums, events, explanation, possible follow-ups."""

    payment: Payment
    chain: Chain
    status: ChainStatus
    sums: Sequence[ChainSum]
    authorization: Sequence[tuple[str, str]]
    nodes: Sequence[ChainNode]
    moments: Sequence[TimelineEvent]
    why: PaymentExplanation
    offers: Sequence[FollowUpOffer]
    decision: RiskDecision | None
    authentication: Authentication | None
    approvals: Sequence[Approval]

    @property
    def is_first(self) -> bool:
        return self.payment.id == self.payment.chain


TimelineSource = Callable[[Sequence[Payment]], Sequence[TimelineEvent]]
TIMELINE_SOURCES: Final[list[TimelineSource]] = []
"""Functions of other apps that add events, such as disputes; they get the chain's payments."""


# --- reading ------------------------------------------------------------------------------------------------------


def build_payment_story(payment: Payment) -> PaymentStory:
    """The page's values for ``payment``, which is loaded with its merchant and channel."""
    members = list(
        Payment.objects.filter(chain=payment.chain)
        .defer("merchant_memo", "means_sealed", "means_fingerprint")
        .select_related("standing")
        .order_by("id")[:MAX_SHOWN_PARTS]
    )
    status = resolve_chain_status(Chain(members).first)
    members = [payment if member.id == payment.id else member for member in members]
    for member in members:  # a chain is one channel's
        member.merchant, member.channel = payment.merchant, payment.channel
    chain = Chain(members)
    at = clock.merchant_now(payment.merchant)
    keys = [member.id for member in members]
    decisions = {row.payment_id: row for row in RiskDecision.objects.filter(payment__in=keys)}
    authentications = {row.payment: row for row in Authentication.objects.filter(payment__in=keys)}
    exchanges = list(AcquirerExchange.objects.filter(payment__in=keys).order_by("id")[:MAX_SHOWN_PARTS])
    approvals = list(Approval.objects.filter(payment__in=keys).order_by("asked_at")[:MAX_SHOWN_PARTS])
    by_key = {member.id: member for member in members}
    moments = [
        *_list_state_events(keys, by_key),
        *(_build_exchange_event(row, by_key) for row in exchanges),
        *(_build_route_event(member) for member in members if member.route),
        *(_build_risk_event(row, by_key) for row in decisions.values()),
        *(moment for row in authentications.values() for moment in _build_threeds_events(row, by_key)),
        *_list_notification_events(keys, by_key),
        *_list_delivery_events(keys, by_key),
        *(moment for row in approvals for moment in _build_approval_events(row, by_key)),
        *(moment for told in TIMELINE_SOURCES for moment in told(members)),
    ]
    return PaymentStory(
        payment=payment,
        chain=chain,
        status=status,
        sums=summarize_chain(chain, at),
        authorization=describe_authorization(chain, at),
        nodes=build_chain_nodes(chain, payment.id),
        moments=sorted(moments, key=lambda moment: (moment.at, moment.order)),
        why=explain_payment(
            payment,
            decision=decisions.get(payment.id),
            authentication=authentications.get(payment.id),
            was_asked=any(row.payment_id == payment.id for row in exchanges),
            chain=chain,
            status=status,
        ),
        offers=list_chain_offers(chain, payment),
        decision=decisions.get(payment.id),
        authentication=authentications.get(payment.id),
        approvals=approvals,
    )


# --- the chain ----------------------------------------------------------------------------------------------------


def format_payment_title(payment: Payment) -> str:
    """The name of a payment's type: "Preauthorization", "Incremental authorization", "Refund"."""
    if payment.practice in INDUSTRY_PRACTICE_OPERATIONS:
        return _(INDUSTRY_PRACTICE_OPERATIONS[payment.practice].title)
    operation = OPERATIONS.get(payment.payment_type)
    return _(
        operation.title
        if operation is not None
        else PAYMENT_TYPE_TITLES.get(payment.payment_type, payment.payment_type)
    )


PAYMENT_TYPE_TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "RG": "Registration", "RR": "Registration updated", "TE": "Registration extended", "DR": "Registration deleted",
        "RI": "Risk check", "3D": "Authentication", "SD": "Schedule", "RS": "Reschedule", "DS": "Deschedule",
    }
)  # fmt: skip
"""Names of types that are no operation on money."""


def describe_authorization(chain: Chain, at: datetime) -> list[tuple[str, str]]:
    """Name → text of an approved authorization: its kind, what was asked, granted, raised, renewed, captured and
    released, and until when it may be captured. ``at``: the merchant's clock."""
    first, held = chain.first, chain.authorization
    if first.payment_type != "PA" or first.status != Status.APPROVED:
        return []
    kinds = {
        ESTIMATED_AUTHORIZATION: _("estimated"),
        FINAL_AUTHORIZATION: _("final"),
        INCREMENTED_AUTHORIZATION: _("estimated, raised since"),
    }
    amounts = {
        _("Asked for"): first.amount,
        _("Granted"): held.granted,
        _("Raised by"): held.raised,
        _("Captured"): held.captured,
        _("Released"): held.released,
    }
    facts = [(_("Kind"), kinds.get(held.kind, "–"))]
    facts += [(name, format_money(amount, first.currency)) for name, amount in amounts.items()]
    facts.append((_("Renewed"), str(held.renewals)))
    end = held.expires_at
    until = format_moment(end) if end is not None else _("no end")
    facts.append((_("May be captured until"), f"{until} ({_('expired')})" if held.is_expired(at) else until))
    return facts


def summarize_chain(chain: Chain, at: datetime | None = None) -> list[ChainSum]:
    """Sums of a chain: authorized, captured, refunded, voided, charged back, and what is still possible at ``at``."""
    done = [member for member in chain.members if member.status == Status.APPROVED]

    def of(*types: str) -> Decimal:
        return sums.sum_payment_amounts(member for member in done if member.payment_type in types)

    first = chain.first
    granted = first.status == Status.APPROVED
    found: list[ChainSum] = []
    if first.payment_type == "PA":
        authorised = chain.authorization.authorized if granted else ZERO_AMOUNT
        found.append(_build_sum("Authorised", authorised))
        found.append(_build_sum("Captured", of("CP")))
        held = chain.authorization
        open_ = granted and not (at is not None and held.is_expired(at))
        found.append(_build_sum("Still to capture", held.capturable if open_ else ZERO_AMOUNT, "open"))
    elif first.payment_type in ("DB", "CD"):
        found.append(_build_sum("Charged" if first.payment_type == "DB" else "Paid out", of("DB", "CD")))
    else:
        return []
    if of("RB"):
        found.append(_build_sum("Rebilled", of("RB")))
    found.append(_build_sum("Refunded", of("RF")))
    found.append(_build_sum("Reversed", of("RV")))
    if disputed := of("CB") - of("CR"):
        found.append(_build_sum("Charged back", disputed))
    paid = [member for member in done if member.payment_type in ("DB", "CP", "RB")]
    found.append(
        _build_sum(
            "Still to refund",
            sum((max(sums.compute_refundable_amount(chain, member), ZERO_AMOUNT) for member in paid), ZERO_AMOUNT),
            "open",
        )
    )
    if overdrawn := sums.compute_overdrawn_amount(chain):
        found.append(_build_sum("Returned above what was paid", overdrawn))
    return found


def _build_sum(name: str, amount: Decimal, tone: str = "done") -> ChainSum:
    return ChainSum(name=_(name), amount=amount, tone=tone if amount > 0 else "none")


def build_chain_nodes(chain: Chain, here: UUID) -> list[ChainNode]:
    """The chain as a tree in display order, each payment below the one it follows."""
    children: dict[UUID | None, list[Payment]] = {}
    for member in chain.members:
        above = None if member.id == member.chain else member.referenced
        children.setdefault(above, []).append(member)
    found: list[ChainNode] = []
    # (payment, depth, row of its parent): a stack, so that no chain is too deep.
    waiting: list[tuple[Payment, int, int | None]] = [(member, 0, None) for member in reversed(children.get(None, []))]
    while waiting:
        member, depth, parent = waiting.pop()
        row = len(found)
        found.append(
            ChainNode(
                payment=member,
                title=format_payment_title(member),
                amount=sums.resolve_payment_amount(member),
                depth=depth,
                row=row,
                parent=parent,
                here=member.id == here,
            )
        )
        waiting += [(child, depth + 1, row) for child in reversed(children.get(member.id, []))]
    return found


def list_follow_up_offers(
    chain: Chain, payment: Payment, beyond: Collection[UUID] | None = None
) -> list[FollowUpOffer]:
    """Follow-ups that a clerk may make now, by the operations table that also answers the API. ``beyond``: the members
    that can no longer be reversed, where they are known."""
    found = []
    at = clock.merchant_now(payment.merchant)
    if beyond is None:
        beyond = find_beyond_reversal([payment], at)
    renews = payment.channel.expired_captures == Channel.ExpiredCaptures.RENEW
    for code in MANUAL_FOLLOW_UPS:
        operation = OPERATIONS[code]
        if payment.payment_type not in operation.follows:
            continue
        most = operation.ceiling(chain, payment) if operation.ceiling is not None else None
        asked = most if most is not None else payment.amount
        decision = evaluate_operation(
            operation,
            chain,
            payment,
            asked,
            payment.currency,
            at=None if renews else at,
            settled=bool(operation.settled) and payment.id in beyond,
        )
        if asked > 0 and not decision.code:
            found.append(FollowUpOffer(code=code, title=_(operation.title), most=most, target=payment))
    return found


def list_chain_offers(chain: Chain, payment: Payment) -> list[FollowUpOffer]:
    """What a clerk may do from the page of ``payment``: one offer for each kind, to the payment itself where that is
    possible, else to another one of its chain (:func:`list_member_offers`). A rebill is for the payment alone."""
    beyond = find_beyond_reversal(chain.members, clock.merchant_now(payment.merchant))
    best = {
        code: offers[0] for code in CHAIN_FOLLOW_UPS if (offers := list_member_offers(chain, payment, code, beyond))
    }
    own = {offer.code: offer for offer in list_follow_up_offers(chain, payment, beyond)}
    return [found for code in MANUAL_FOLLOW_UPS if (found := own.get(code) or best.get(code)) is not None]


def list_member_offers(
    chain: Chain, payment: Payment, code: str, beyond: Collection[UUID] | None = None
) -> list[FollowUpOffer]:
    """All offers of one kind in the chain, the best first: the payment itself, then the payment that it follows, then
    the one with most left, the newest of equal ones. ``beyond``: as of :func:`list_follow_up_offers`."""
    newest = [*chain.members][::-1]
    if beyond is None:
        beyond = find_beyond_reversal(newest, clock.merchant_now(payment.merchant))
    found = [offer for member in newest for offer in list_follow_up_offers(chain, member, beyond) if offer.code == code]
    here, above = payment.pk, payment.referenced
    return sorted(
        found,
        key=lambda offer: (offer.target.pk != here, offer.target.pk != above, -(offer.most or ZERO_AMOUNT)),
    )


# --- the timeline -------------------------------------------------------------------------------------------------

_EVENTS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        LifecycleEvent.BEGIN: ("begun", "plain"),
        LifecycleEvent.REFUSE: ("refused before anybody was asked", "bad"),
        LifecycleEvent.APPROVE: ("approved", "good"),
        LifecycleEvent.DECLINE: ("declined", "bad"),
        LifecycleEvent.SUSPEND: ("waits for the shopper", "wait"),
        LifecycleEvent.LOSE: ("no answer: in doubt, the acquirer is asked again", "wait"),
        LifecycleEvent.RESUME: ("the shopper is back", "plain"),
        LifecycleEvent.EXPIRE: ("expired: it may not be captured any more", "wait"),
        LifecycleEvent.REROUTE: ("goes on to another acquirer: the one before did not accept it", "wait"),
    }
)
"""Event → its text and tone. A test asks for every event."""

_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "submit": "asked",
        "inquire": "asked what became of it",
        "void": "asked to take it back",
        "batch": "told what became of it with its batch",
    }
)


def _list_state_events(keys: Sequence[UUID], by_key: Mapping[UUID, Payment]) -> list[TimelineEvent]:
    rows = PaymentEvent.objects.filter(payment__in=keys).order_by("id")[:MAX_SHOWN_PARTS]
    deadlines = dict(Suspension.objects.filter(payment__in=keys).values_list("payment_id", "deadline"))
    found = []
    for row in rows:
        payment = by_key[row.payment_id]
        words, tone = _EVENTS[row.event]
        if row.event == LifecycleEvent.SUSPEND and is_locally_queued(payment):
            words = "waits for its bank or acquirer"
        lines = (
            [f"{row.result_code} {result_codes.find_result_code(row.result_code).description}"]
            if row.result_code
            else []
        )
        if row.event == LifecycleEvent.SUSPEND and (deadline := deadlines.get(row.payment_id)) is not None:
            lines.append(_("Until %s at the latest") % format_moment(deadline))
        moved = sums.resolve_payment_amount(payment)
        amount = f" {format_money(moved, payment.currency)}" if payment.amount else ""
        found.append(
            TimelineEvent(
                at=row.at,
                kind="event",
                title=f"{format_payment_title(payment)}{amount} {_(words)}",
                tone=tone,
                lines=tuple(lines),
                payment=payment,
                order=row.sequence * 10,
            )
        )
    return found


def _build_route_event(payment: Payment) -> TimelineEvent:
    route = payment.route or {}
    return TimelineEvent(
        at=payment.created_at,
        kind="route",
        title=_("Goes to %s") % route_explanation.find_first_account(route),
        payment=payment,
        order=11,
        lines=tuple(route_explanation.explain_route(route)),
    )


def _build_exchange_event(row: AcquirerExchange, by_key: Mapping[UUID, Payment]) -> TimelineEvent:
    silent = row.received is None or "silence" in row.received
    words = _KINDS.get(row.kind, row.kind)
    return TimelineEvent(
        at=row.at,
        kind="exchange",
        payment=by_key[row.payment_id],
        order=5,
        title=(_("%(who)s %(what)s, no answer") if silent else _("%(who)s %(what)s"))
        % {"who": row.connector, "what": _(words)},
        tone="wait" if silent else "plain",
        lines=(_("Took %s ms") % row.duration_ms,),
        sent=restore_message(row, by_key[row.payment_id]),
        received=row.received,
    )


_OUTCOMES: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {"accept": ("nothing against it", "good"), "review": ("to be looked at", "wait"), "decline": ("refused", "bad")}
)


def _build_risk_event(row: RiskDecision, by_key: Mapping[UUID, Payment]) -> TimelineEvent:
    words, tone = _OUTCOMES.get(row.outcome, (row.outcome, "plain"))
    named = {"key": row.set_key, "version": row.version}
    who = _("Risk check “%(key)s”, version %(version)s") % named if row.set_key else _("Guard against card testing")
    lines = [_("Score %s") % f"{row.score:+d}"] if row.score is not None else []
    lines += [f"“{reason.get('rule', '')}”: {reason.get('why', '')}" for reason in row.reasons]
    return TimelineEvent(
        at=row.at,
        kind="risk",
        title=f"{who}: {_(words)}",
        tone=tone,
        lines=tuple(lines),
        payment=by_key[row.payment_id],
        order=2,
    )


def _build_threeds_events(row: Authentication, by_key: Mapping[UUID, Payment]) -> list[TimelineEvent]:
    payment = by_key[row.payment] if row.payment is not None else None
    begun = TimelineEvent(
        at=row.created_at,
        kind="3ds",
        title=_("3-D Secure %(version)s begun at %(network)s") % {"version": row.version, "network": row.network},
        lines=(_("Card %s") % row.card,) if row.card else (),
        payment=payment,
        order=3,
    )
    if row.completed_at is None:
        return [begun]
    good = row.trans_status in ("Y", "A", "I")
    lines = [
        line
        for line in (
            f"ECI {row.eci}" if row.eci else "",
            _("Reason %s") % row.trans_status_reason if row.trans_status_reason else "",
        )
        if line
    ]
    ended = TimelineEvent(
        at=row.completed_at,
        kind="3ds",
        tone="good" if good else "bad",
        payment=payment,
        order=4,
        lines=tuple(lines),
        title=_("3-D Secure ended: status %(status)s (%(how)s)")
        % {"status": row.trans_status or "-", "how": row.flow or row.step},
    )
    return [begun, ended]


def _list_notification_events(keys: Sequence[UUID], by_key: Mapping[UUID, Payment]) -> list[TimelineEvent]:
    rows = Notification.objects.filter(payment__in=keys).order_by("id")[:MAX_SHOWN_PARTS]
    return [
        TimelineEvent(
            at=row.created_at,
            kind="webhook",
            title=_("Notification %(kind)s %(action)s written to the outbox")
            % {"kind": row.kind, "action": row.action},
            payment=by_key.get(row.payment_id) if row.payment_id is not None else None,
            order=99,
        )
        for row in rows
    ]


def _list_delivery_events(keys: Sequence[UUID], by_key: Mapping[UUID, Payment]) -> list[TimelineEvent]:
    """Every delivery attempt to the merchant's webhook endpoints."""
    rows = WebhookAttempt.objects.filter(delivery__payment__in=keys).select_related("delivery__endpoint")
    found = []
    for row in rows.order_by("id")[:MAX_SHOWN_PARTS]:
        good = row.status is not None and 200 <= row.status < 300
        delivery = row.delivery
        what = f"{delivery.kind} {delivery.action}"
        found.append(
            TimelineEvent(
                at=row.at,
                kind="webhook",
                tone="good" if good else "bad",
                order=100,
                delivery=delivery.pk,
                title=_("Webhook %(what)s, attempt %(number)s: %(answer)s")
                % {"what": what, "number": row.number, "answer": row.status or row.failure},
                lines=(mask_text(delivery.url or delivery.endpoint.url), _("Took %s ms") % row.duration_ms),
                payment=by_key.get(delivery.payment) if delivery.payment is not None else None,
            )
        )
    return found


def _build_approval_events(row: Approval, by_key: Mapping[UUID, Payment]) -> list[TimelineEvent]:
    """Request and decision of an approval, in real time; in the live environment the merchant's clock is the same."""
    payment = by_key[row.payment_id]
    what = _("%(operation)s of %(amount)s %(currency)s") % {
        "operation": _(OPERATIONS[row.payment_type].title),
        "amount": format_money(row.amount),
        "currency": row.currency,
    }
    found = [
        TimelineEvent(
            at=row.asked_at,
            kind="approval",
            title=_("%(who)s asked for approval: %(what)s") % {"who": row.asked_by_name, "what": what},
            tone="wait",
            lines=(row.note,) if row.note else (),
            payment=payment,
        )
    ]
    if row.decided_at is not None:
        good = row.state not in ("REJECTED", "WITHDRAWN")
        words = {
            "REJECTED": _("%(who)s rejected: %(what)s"),
            "WITHDRAWN": _("%(who)s withdrew: %(what)s"),
        }.get(row.state, _("%(who)s approved: %(what)s"))
        found.append(
            TimelineEvent(
                at=row.decided_at,
                kind="approval",
                title=words % {"who": row.decided_by_name or row.asked_by_name, "what": what},
                tone="good" if good else "bad",
                lines=(row.decision_note,) if row.decision_note else (),
                payment=payment,
            )
        )
    return found


__all__ = [
    "CHAIN_FOLLOW_UP_TYPES",
    "TIMELINE_SOURCES",
    "ChainNode",
    "ChainSum",
    "FollowUpOffer",
    "PaymentStory",
    "TimelineEvent",
    "build_chain_nodes",
    "build_payment_story",
    "list_chain_offers",
    "list_follow_up_offers",
    "list_member_offers",
]

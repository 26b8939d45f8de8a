"""The page of a payment as values: its timeline, with chain, sums, explanation and possible follow-ups.

Read-only, in a fixed number of statements however long the chain is; its parts are bounded by MAX_SHOWN_PARTS. Source:
Part B, Payment response.
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

from gateway.backoffice.follow_ups.reasons import name_reason, name_request
from gateway.backoffice.kit.formatting import format_labelled, format_moment, format_money
from gateway.backoffice.kit.result_words import describe_result
from gateway.backoffice.payments import exemption_words, route_explanation
from gateway.backoffice.payments.chain_diagram import ChainNode, build_chain_nodes
from gateway.backoffice.payments.chain_sums import ChainSum, describe_authorization, summarize_chain
from gateway.backoffice.payments.explanation import PaymentExplanation, explain_payment
from gateway.backoffice.payments.follow_up_offers import MANUAL_FOLLOW_UPS, FollowUpOffer, list_chain_offers
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.core import clock
from gateway.core.masking import mask_text
from gateway.models import (
    AcquirerExchange,
    Approval,
    AuditEntry,
    Authentication,
    ExemptionRequest,
    Notification,
    Payment,
    PaymentEvent,
    RiskDecision,
    Suspension,
    WebhookAttempt,
)
from gateway.models.payments import UNDECIDED
from gateway.payments import chain_amounts as sums
from gateway.payments.acquirer_message_store import restore_message
from gateway.payments.chain_amounts import Chain
from gateway.payments.chain_states import ChainStatus, resolve_chain_status
from gateway.payments.late_outcomes import DENIED_EXCHANGE, LATE_EXCHANGE
from gateway.payments.operation_table import (
    OPERATIONS,
    is_locally_queued,
)
from gateway.payments.recovery import UNPROVEN_EXCHANGE, WAITING_EXCHANGE
from gateway.payments.reversal_border import is_card_payout
from gateway.payments.states import LifecycleEvent
from gateway.payments.stored_answer import read_private_facts

CONTRADICTIONS: Final = (DENIED_EXCHANGE, UNPROVEN_EXCHANGE)
"""Kinds of exchanges in which an acquirer contradicts the outcome that its payment has here."""
MAX_SHOWN_PARTS: Final = 200
"""Rows of one kind that a page shows of a chain."""

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


def build_payment_story(payment: Payment, *, with_prices: bool = False) -> PaymentStory:
    """The page's values for ``payment``, which is loaded with its merchant and channel. ``with_prices``: whether the
    reader may see what acquirers cost."""
    # All of them: sums, states and offers are of the whole chain, however much of it is drawn.
    members = list(
        Payment.objects.filter(chain=payment.chain)
        .defer("merchant_memo", "means_sealed", "means_fingerprint")
        .select_related("standing")
        .order_by("id")
    )
    status = resolve_chain_status(Chain(members).first)
    members = [payment if member.id == payment.id else member for member in members]
    for member in members:  # a chain is one channel's
        member.merchant, member.channel = payment.merchant, payment.channel
    chain = Chain(members)
    at = clock.merchant_now(payment.merchant)
    keys = _choose_shown(members, payment)
    decisions = {row.payment_id: row for row in RiskDecision.objects.filter(payment__in=keys)}
    authentications = list(Authentication.objects.filter(payment__in=keys).order_by("attempt"))
    newest = {row.payment: row for row in authentications}
    exchanges = list(AcquirerExchange.objects.filter(payment__in=keys).order_by("id")[:MAX_SHOWN_PARTS])
    approvals = list(Approval.objects.filter(payment__in=keys).order_by("asked_at")[:MAX_SHOWN_PARTS])
    by_key = {member.id: member for member in members}
    moments = [
        *_list_state_events(keys, by_key),
        *(_build_exchange_event(row, by_key) for row in exchanges),
        *(_build_route_event(member, with_prices=with_prices) for member in members if member.route),
        *(_build_risk_event(row, by_key) for row in decisions.values()),
        *_list_exemption_events(keys, by_key),
        *(moment for row in authentications for moment in _build_threeds_events(row, by_key)),
        *_list_notification_events(keys, by_key),
        *_list_delivery_events(keys, by_key),
        *(moment for row in approvals for moment in _build_approval_events(row, by_key)),
        *_list_manual_events(keys, by_key),
        *(moment for list_moments in TIMELINE_SOURCES for moment in list_moments(members)),
    ]
    return PaymentStory(
        payment=payment,
        chain=chain,
        status=status,
        sums=summarize_chain(chain, at),
        authorization=describe_authorization(chain, at),
        nodes=build_chain_nodes(Chain([member for member in members if member.id in set(keys)]), payment.id),
        moments=sorted(moments, key=lambda moment: (moment.at, moment.order)),
        why=explain_payment(
            payment,
            decision=decisions.get(payment.id),
            authentication=newest.get(payment.id),
            was_asked=any(row.payment_id == payment.id for row in exchanges),
            contradiction=next(
                (row.kind for row in exchanges if row.payment_id == payment.id and row.kind in CONTRADICTIONS), ""
            ),
            chain=chain,
            status=status,
        ),
        offers=list_chain_offers(chain, payment),
        decision=decisions.get(payment.id),
        authentication=newest.get(payment.id),
        approvals=approvals,
    )


def _choose_shown(members: Sequence[Payment], payment: Payment) -> list[UUID]:
    """The members that the diagram and the events show: the first MAX_SHOWN_PARTS, and ``payment`` with what it
    follows."""
    keys = [member.id for member in members]
    if len(keys) <= MAX_SHOWN_PARTS:
        return keys
    own = {payment.id, payment.referenced}
    return keys[:MAX_SHOWN_PARTS] + [key for key in keys[MAX_SHOWN_PARTS:] if key in own]


# --- the timeline -------------------------------------------------------------------------------------------------

_EVENTS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        LifecycleEvent.BEGIN: ("begun", "plain"),
        LifecycleEvent.REFUSE: ("refused before anybody was asked", "bad"),
        LifecycleEvent.APPROVE: ("was approved", "good"),
        LifecycleEvent.DECLINE: ("was declined", "bad"),
        LifecycleEvent.SUSPEND: ("waits for the shopper", "wait"),
        LifecycleEvent.LOSE: ("no answer that decides: in doubt, the acquirer is asked again", "wait"),
        LifecycleEvent.RESUME: ("the shopper is back", "plain"),
        LifecycleEvent.EXPIRE: ("expired: it may not be captured any more", "wait"),
        LifecycleEvent.RETURN: ("did not reach the shopper, or came back: it can be refunded again", "bad"),
        LifecycleEvent.STEP_UP: ("declined until the shopper authenticates: goes on with a challenge", "wait"),
        LifecycleEvent.CASCADE: ("declined: goes on to another acquirer, which may be approved", "wait"),
        LifecycleEvent.TOKEN_FALLBACK: ("network token declined: goes on with the card number", "wait"),
        LifecycleEvent.BOOK: ("booked by the bank after it was rejected", "good"),
        LifecycleEvent.REROUTE: ("goes on to another acquirer: the one before did not accept it", "wait"),
    }
)
"""Event → its text and tone. A test asks for every event."""

_KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "submit": "was asked",
        "inquire": "asked what became of it",
        "void": "asked to take it back",
        "batch": "told what became of it with its batch",
        "bank": "told what became of it in a message of the bank",
        "person": "%(who)s entered what %(acquirer)s says: %(outcome)s",
        UNPROVEN_EXCHANGE: "says that nothing is left to take back, which proves nothing: ask the acquirer",
        WAITING_EXCHANGE: "is asked by a person: nothing was sent",
        LATE_EXCHANGE: "answered after it had been given up",
        DENIED_EXCHANGE: "declined it after all, though it was entered as paid: ask the acquirer",
    }
)
"""Kind of an exchange → what the connector did, or was asked. A test asks for every kind that is kept."""


def _list_state_events(keys: Sequence[UUID], by_key: Mapping[UUID, Payment]) -> list[TimelineEvent]:
    rows = PaymentEvent.objects.filter(payment__in=keys).order_by("at", "payment_id", "sequence")[:MAX_SHOWN_PARTS]
    deadlines = dict(Suspension.objects.filter(payment__in=keys).values_list("payment_id", "deadline"))
    found = []
    for row in rows:
        payment = by_key[row.payment_id]
        words, tone = _EVENTS[row.event]
        if row.event == LifecycleEvent.LOSE and is_card_payout(payment):
            words = "no answer that decides: in doubt until a person has asked the acquirer"
        if row.event == LifecycleEvent.SUSPEND and is_locally_queued(payment):
            words = "waits for its bank or acquirer"
        lines = [f"{row.result_code} {describe_result(row.result_code)}"] if row.result_code else []
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


def _build_route_event(payment: Payment, *, with_prices: bool) -> TimelineEvent:
    route = payment.route or {}
    return TimelineEvent(
        at=payment.created_at,
        kind="route",
        title=_("Goes to %s") % route_explanation.find_first_account(route),
        payment=payment,
        order=11,
        lines=tuple(route_explanation.explain_route(route, with_prices=with_prices)),
    )


def _build_exchange_event(row: AcquirerExchange, by_key: Mapping[UUID, Payment]) -> TimelineEvent:
    if row.kind == "person":
        return _build_entry_event(row, by_key[row.payment_id])
    waits = row.kind == WAITING_EXCHANGE
    silent = not waits and (row.received is None or "silence" in row.received)
    words = _KINDS.get(row.kind, row.kind)
    title = _("%(who)s %(what)s, no answer") if silent else _("%(who)s %(what)s")
    if row.received is not None and UNDECIDED in row.received:
        title = _("%(who)s %(what)s: the answer decides nothing")
    return TimelineEvent(
        at=row.at,
        kind="exchange",
        payment=by_key[row.payment_id],
        order=5,
        title=title % {"who": row.connector, "what": _(words)},
        tone="bad" if row.kind in CONTRADICTIONS else "wait" if silent or waits else "plain",
        lines=() if waits else (_("Took %s ms") % row.duration_ms,),
        sent=restore_message(row, by_key[row.payment_id]),
        received=row.received,
    )


def _build_entry_event(row: AcquirerExchange, payment: Payment) -> TimelineEvent:
    """Who entered what the acquirer says of a payment in doubt."""
    said = row.received or {}
    return TimelineEvent(
        at=row.at,
        kind="exchange",
        payment=payment,
        order=5,
        title=_(_KINDS[row.kind])
        % {
            "who": said.get("by", "?"),
            "acquirer": row.connector,
            "outcome": name_reason(str(said.get("outcome", "")), payment.payment_type),
        },
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
        title=format_labelled(who, _(words)),
        tone=tone,
        lines=tuple(lines),
        payment=by_key[row.payment_id],
        order=2,
    )


def _list_exemption_events(keys: Sequence[UUID], by_key: Mapping[UUID, Payment]) -> list[TimelineEvent]:
    asked = [key for key in keys if read_private_facts(by_key[key].answer).exemption]
    rows = ExemptionRequest.objects.filter(payment__in=asked) if asked else ()
    return [_build_exemption_event(row, by_key) for row in rows]


def _build_exemption_event(row: ExemptionRequest, by_key: Mapping[UUID, Payment]) -> TimelineEvent:
    return TimelineEvent(
        at=row.at,
        kind="3ds",
        title=exemption_words.describe_exemption(row),
        lines=tuple(exemption_words.explain_exemption(row)),
        payment=by_key[row.payment_id],
        order=12,
    )


def _build_threeds_events(row: Authentication, by_key: Mapping[UUID, Payment]) -> list[TimelineEvent]:
    payment = by_key[row.payment] if row.payment is not None else None
    later = 20 * (row.attempt - 1)  # the second begins after the event of the soft decline
    begun = TimelineEvent(
        at=row.created_at,
        kind="3ds",
        title=_("3-D Secure %(version)s begun at %(network)s") % {"version": row.version, "network": row.network},
        lines=(_("Card %s") % row.card,) if row.card else (),
        payment=payment,
        order=3 + later,
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
        order=4 + later,
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


def _list_manual_events(keys: Sequence[UUID], by_key: Mapping[UUID, Payment]) -> list[TimelineEvent]:
    """Who moved money by hand, and why, from the audit trail, which has the reason and the note."""
    subjects = [str(key) for key in keys]
    rows = AuditEntry.objects.filter(subject="payment", subject_id__in=subjects, action__in=list(_SENT_ACTIONS))
    found = []
    for row in rows.order_by("id")[:MAX_SHOWN_PARTS]:
        said = row.after or {}
        what = _("%(operation)s of %(amount)s %(currency)s") % {
            "operation": _(_SENT_ACTIONS[row.action]),
            "amount": format_money(Decimal(said.get("amount", "0"))),
            "currency": said.get("currency", ""),
        }
        lines = (name_reason(str(said.get("reason", ""))), mask_text(str(said.get("note", ""))))
        found.append(
            TimelineEvent(
                at=row.at,
                kind="approval",
                title=_("%(who)s sent by hand: %(what)s") % {"who": row.actor, "what": what},
                lines=tuple(text for text in lines if text),
                payment=by_key[UUID(row.subject_id)],
                order=1,
            )
        )
    return found


_SENT_ACTIONS: Final[Mapping[str, str]] = {
    f"{OPERATIONS[code].title.lower()} sent": OPERATIONS[code].title for code in MANUAL_FOLLOW_UPS
}
"""Action of the audit trail -> title of the operation."""


def _build_approval_events(row: Approval, by_key: Mapping[UUID, Payment]) -> list[TimelineEvent]:
    """Request and decision of an approval, in real time; in the live environment the merchant's clock is the same."""
    payment = by_key[row.payment_id]
    what = _("%(operation)s of %(amount)s %(currency)s") % {
        "operation": name_request(row.payment_type, payment.payment_type),
        "amount": format_money(row.amount),
        "currency": row.currency,
    }
    found = [
        TimelineEvent(
            at=row.asked_at,
            kind="approval",
            title=_("%(who)s asked for approval: %(what)s") % {"who": row.asked_by_name, "what": what},
            tone="wait",
            lines=tuple(filter(None, (name_reason(row.reason, payment.payment_type), row.note))),
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

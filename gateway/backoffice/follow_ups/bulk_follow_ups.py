"""Follow-ups for many payments: a capture, refund or reversal of each one that a clerk chose in a list.

First a dry run: background work looks at every chosen payment and writes an item that says what would be done, or why
not; nothing is sent. The clerk then confirms, and background work carries the items out one by one, by the code of the
single form: the same operations table, clerk limits and four eyes for each payment, and never more than the dry run
showed. An item's follow-up has its id from the dry run, so that it is made once, however often a slice is run. What is
over a limit becomes a request for approval. Source: docs/decisions/0086.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet
from django.utils import translation
from django.utils.translation import gettext as _

from gateway.access import audit_log, permissions
from gateway.background import queue
from gateway.background.files import AttemptFolder
from gateway.backoffice.follow_ups import approval_notice, approvals, clerk_limits, manual_follow_up
from gateway.backoffice.follow_ups.clerk_limits import Clerk, ClerkLimitExceededError, LimitScope
from gateway.backoffice.follow_ups.manual_follow_up import FollowUpNotPossibleError
from gateway.backoffice.kit.formatting import format_money
from gateway.backoffice.payments import payment_search, search_terms
from gateway.backoffice.payments.chain_words import CHAIN_WORDS
from gateway.backoffice.payments.follow_up_offers import FollowUpOffer, list_follow_up_offers, list_member_offers
from gateway.backoffice.payments.payment_filters import parse_payment_filters
from gateway.core import clock, identifiers, money
from gateway.core.masking import mask_note
from gateway.models import Approval, BackgroundWork, BulkAction, BulkItem, Payment, Status
from gateway.payments.chain_amounts import Chain
from gateway.payments.chain_states import resolve_chain_status
from gateway.payments.operation_table import OPERATIONS

BULK_TYPES: Final = ("RF", "CP", "RV")
"""Payment types of follow-ups that are made for many payments."""
UNDOING_TYPES: Final[Mapping[str, str]] = {"CP": "RV"}
"""What takes a follow-up back where the books allow it. A refund or a reversal cannot be taken back."""
MAX_BULK_PAYMENTS: Final = 2_000
"""Payments of one bulk action."""
CHECK_SLICE_PAYMENTS: Final = 25
SEND_SLICE_ITEMS: Final = 5
MAX_DRY_RUN_AGE: Final = timedelta(hours=12)
"""How long a dry run can be confirmed: as long as an opened form."""
OPERATE_RIGHT: Final = "gateway.operate_payment"

BulkActionState, BulkItemState = BulkAction.State, BulkItem.State
SENDABLE_STATES: Final = (BulkItemState.READY, BulkItemState.OVER_LIMIT)
"""Items that are still to be carried out."""


class BulkActionError(Exception):
    """The action cannot be begun or confirmed; the text is for its owner."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRequest:
    """What a clerk asks for. ``ids``: chosen payments; empty: all that the search ``term`` and ``filters`` find."""

    code: str
    reason: str = ""
    note: str = ""
    ids: tuple[UUID, ...] = ()
    filters: Mapping[str, str] | None = None
    term: Mapping[str, str] | None = None


# --- asking -------------------------------------------------------------------------------------------------------


def begin_bulk_action(
    asked: BulkRequest, *, owner: int, by: audit_log.Actor, undo_of: BulkAction | None = None
) -> BulkAction:
    """Store the action and queue its dry run. Raises BulkActionError and queue.TooMuchOpenWorkError."""
    if asked.code not in BULK_TYPES:
        raise BulkActionError(_("Choose what to do: a refund, a capture or a reversal."))
    if len(asked.ids) > MAX_BULK_PAYMENTS:
        raise BulkActionError(_("At most %d payments can be done together.") % MAX_BULK_PAYMENTS)
    if not asked.ids and asked.filters is None:
        raise BulkActionError(_("Select payments first."))
    with transaction.atomic():
        action = BulkAction.objects.create(
            owner_id=owner,
            code=asked.code,
            reason=asked.reason,
            note=mask_note(asked.note, manual_follow_up.MAX_FOLLOW_UP_NOTE_CHARS),
            selection={
                "ids": [ident.hex for ident in asked.ids],
                "filters": dict(asked.filters or {}),
                "asked": dict(asked.term or {}),
                "language": translation.get_language() or "en",
                "ip": by.ip or "",
                "until": identifiers.row_id().hex,
            },
            asked_at=clock.real_now(),
            undo_of=undo_of,
        )
        _queue_step(action, BULK_CHECK, _("Dry run: %s of many payments") % _(OPERATIONS[asked.code].title), by)
    return action


def confirm_bulk_action(action: BulkAction, *, by: audit_log.Actor) -> None:
    """Queue the sending of what the dry run showed: once, or once more where its work was cancelled or failed. Raises
    BulkActionError and queue.TooMuchOpenWorkError."""
    with transaction.atomic():
        row = BulkAction.objects.select_for_update(no_key=True).get(pk=action.pk)
        if row.state == BulkActionState.RUNNING and not is_stopped(row):
            raise BulkActionError(_("This is being carried out already."))
        if row.state not in (BulkActionState.CHECKED, BulkActionState.RUNNING):
            raise BulkActionError(_("There is nothing to confirm: the dry run has not ended, or all was done."))
        if is_too_old(row):
            raise BulkActionError(explain_too_old(row))
        if not row.items.filter(state__in=SENDABLE_STATES).exists():
            raise BulkActionError(_("Nothing of this can be done."))
        row.state = BulkActionState.RUNNING
        row.save(update_fields=["state"])
        _queue_step(row, BULK_SEND, _("%s of many payments") % _(OPERATIONS[row.code].title), by)


def _queue_step(action: BulkAction, kind: queue.WorkKind, title: str, by: audit_log.Actor) -> None:
    action.work = queue.enqueue_work(kind, title, {"action": action.pk.hex}, owner=action.owner_id, by=by)
    action.save(update_fields=["work"])


def is_too_old(action: BulkAction) -> bool:
    """Whether what the dry run showed may no longer be sent."""
    return action.checked_at is None or clock.real_now() - action.checked_at > MAX_DRY_RUN_AGE


def explain_too_old(action: BulkAction) -> str:
    """Why an action whose dry run is too old is not sent, as text for its owner."""
    if action.state == BulkActionState.RUNNING:
        return _("The dry run is too old. Begin again from the list; part of this may have been sent.")
    return _("The dry run is too old. Begin again from the list; nothing was sent.")


def is_stopped(action: BulkAction) -> bool:
    """Whether the work of the present step was cancelled or failed."""
    return action.work is not None and action.work.state in (
        BackgroundWork.State.CANCELLED,
        BackgroundWork.State.FAILED,
    )


def list_undoable_items(action: BulkAction) -> QuerySet[BulkItem]:
    """Items whose follow-ups another bulk action may take back."""
    rows = action.items.filter(state__in=(BulkItemState.DONE, BulkItemState.OPEN))
    return rows if action.code in UNDOING_TYPES else rows.none()


def begin_undo(action: BulkAction, *, by: audit_log.Actor) -> BulkAction:
    """Begin the dry run of an action that takes back what ``action`` made. Raises BulkActionError."""
    made = tuple(list_undoable_items(action).values_list("follow_up", flat=True)[:MAX_BULK_PAYMENTS])
    if not made:
        raise BulkActionError(_("Nothing of this can be taken back."))
    asked = BulkRequest(code=UNDOING_TYPES[action.code], reason="other", note=action.note, ids=made)
    return begin_bulk_action(asked, owner=action.owner_id, by=by, undo_of=action)


def withdraw_bulk_requests(action: BulkAction, *, by: Clerk) -> int:
    """Withdraw the requests for approval of an action that nobody has decided yet; returns how many."""
    asked = action.items.filter(state=BulkItemState.ASKED).values_list("pk", flat=True)
    waiting = Approval.objects.filter(pk__in=asked, state=Approval.State.ASKED, asked_by=by.user)
    count = 0
    for ident in waiting.values_list("pk", flat=True):
        try:
            approvals.withdraw_approval(ident, by=by)
        except FollowUpNotPossibleError:
            continue  # decided at this moment
        count += 1
    return count


# --- the dry run --------------------------------------------------------------------------------------------------


def check_bulk_slice(row: BackgroundWork, _folder: AttemptFolder, alive: Callable[[], None]) -> queue.SliceResult:
    """Look at the next CHECK_SLICE_PAYMENTS chosen payments and write their items. The cursor's ``after`` is the last
    one looked at, in the order of ids."""
    action, owner = _load_action(row)
    with translation.override(action.selection["language"]):
        payments = _select_chosen(action, owner)
        cursor: dict[str, Any] = dict(row.cursor) or {"after": "", "done": 0}
        total = None if row.cursor else _count_chosen(payments)
        if cursor["after"]:
            payments = payments.filter(pk__gt=UUID(cursor["after"]))
        found = list(payments.order_by("pk")[:CHECK_SLICE_PAYMENTS])
        alive()
        _write_items(action, owner, found)
        done = cursor["done"] + len(found)
        last = len(found) < CHECK_SLICE_PAYMENTS
        if found:
            cursor = {"after": found[-1].pk.hex, "done": done}
        if last:
            BulkAction.objects.filter(pk=action.pk, state=BulkActionState.CHECKING).update(
                state=BulkActionState.CHECKED, checked_at=clock.real_now()
            )
    return queue.SliceResult(done=done, cursor=cursor, total=done if last else total, finished=last)


def _load_action(row: BackgroundWork) -> tuple[BulkAction, Any]:
    action = BulkAction.objects.get(pk=UUID(row.parameters["action"]))
    owner = get_user_model().objects.get(pk=action.owner_id)
    if not permissions.find_access_scope(owner, OPERATE_RIGHT):
        raise queue.WorkFailedError("Your right to move money was taken away.")
    return action, owner


def _select_chosen(action: BulkAction, owner: Any) -> QuerySet[Payment]:
    """The chosen payments as far as the owner may move money of them, in any order."""
    scope = permissions.find_access_scope(owner, OPERATE_RIGHT)
    chosen = action.selection
    rows = Payment.objects.select_related("merchant", "channel")
    if chosen["ids"]:
        return rows.filter(scope.where(), pk__in=[UUID(ident) for ident in chosen["ids"]])
    filters, _wrong = parse_payment_filters(chosen["filters"])
    term = search_terms.SearchTerm(**chosen["asked"])
    where = payment_search.build_search_condition(scope, term, filters)
    return rows.filter(where, pk__lte=UUID(chosen["until"]))


def _count_chosen(rows: QuerySet[Payment]) -> int:
    """How many were chosen. Raises WorkFailedError above MAX_BULK_PAYMENTS: a list is narrowed first."""
    number = rows.order_by()[: MAX_BULK_PAYMENTS + 1].count()
    if number > MAX_BULK_PAYMENTS:
        words = _("The list has more than %d payments. Narrow it down first; nothing was sent.")
        raise queue.WorkFailedError(words % MAX_BULK_PAYMENTS)
    return number


def _write_items(action: BulkAction, owner: Any, payments: Sequence[Payment]) -> None:
    """The items of some payments. Money of a chain that has an item already gets no second one."""
    chains = _load_chains(payments)
    planned = _sum_planned(action)
    for payment in payments:
        chain = chains[payment.chain]
        known = dict(
            action.items.filter(target__in=[member.pk for member in chain.members]).values_list("target", "state")
        )
        offers = list_bulk_offers(chain, payment, action.code)
        if not offers and payment.pk not in known:
            why = explain_impossible(chain, payment)
            items = [_build_item(action, payment, payment, Decimal(0), BulkItemState.IMPOSSIBLE, why)]
        else:
            taken = {
                _find_money(chain, chain.find(target))
                for target, state in known.items()
                if state != BulkItemState.IMPOSSIBLE
            }
            free = [
                offer
                for offer in offers
                if offer.target.pk not in known and _find_money(chain, offer.target) not in taken
            ]
            items = _plan_items(action, chain, payment, free, owner, planned)
        BulkItem.objects.bulk_create(items, ignore_conflicts=True)


def _load_chains(payments: Iterable[Payment]) -> dict[UUID, Chain]:
    """Chain id → chain, each member with its merchant and channel."""
    by_chain = {payment.chain: payment for payment in payments}
    members: defaultdict[UUID, list[Payment]] = defaultdict(list)
    rows = Payment.objects.filter(chain__in=by_chain).select_related("standing")
    for member in rows.defer("request", "means_sealed", "means_fingerprint").order_by("id"):
        member.merchant, member.channel = by_chain[member.chain].merchant, by_chain[member.chain].channel
        members[member.chain].append(member)
    return {chain: Chain(found) for chain, found in members.items()}


def _sum_planned(action: BulkAction) -> dict[tuple[UUID, str], Decimal]:
    """Merchant and currency → what the items so far would move alone, for the limit of 24 hours."""
    planned: dict[tuple[UUID, str], Decimal] = defaultdict(Decimal)
    for merchant, currency, amount in action.items.filter(state=BulkItemState.READY).values_list(
        "merchant_id", "currency", "amount"
    ):
        planned[merchant, currency] += amount
    return planned


def _plan_items(
    action: BulkAction,
    chain: Chain,
    payment: Payment,
    offers: Sequence[FollowUpOffer],
    owner: Any,
    planned: dict[tuple[UUID, str], Decimal],
) -> list[BulkItem]:
    clerk = build_clerk(owner, payment, action.selection["ip"])
    uses = clerk_limits.list_limit_uses(clerk, chain)
    found, here = [], Decimal(0)
    for offer in offers:
        amount = offer.most if offer.most is not None else offer.target.amount
        key = (payment.merchant_id, payment.currency)
        before = {LimitScope.PAYMENT: here, LimitScope.DAY: planned[key]}
        over = next((use for use in uses if amount + before[use.over] > use.left), None)
        if over is not None:
            why = _("over %(limit)s of %(amount)s") % {
                "limit": over.over.label,
                "amount": format_money(over.limit, payment.currency),
            }
            found.append(_build_item(action, payment, offer.target, amount, BulkItemState.OVER_LIMIT, why))
            continue
        planned[key] += amount
        here += amount
        found.append(_build_item(action, payment, offer.target, amount, BulkItemState.READY, ""))
    return found


def list_bulk_offers(chain: Chain, payment: Payment, code: str) -> list[FollowUpOffer]:
    """The follow-ups of one type that a chosen payment stands for, one for each sum of money: a first payment for all
    of its chain but the rebills, which are payments of their own; any other one for itself alone."""
    if payment.chain == payment.pk:
        found: dict[UUID, FollowUpOffer] = {}
        for offer in list_member_offers(chain, payment, code):
            money_of = chain.find(_find_money(chain, offer.target))
            if money_of is None or money_of.pk == payment.pk or money_of.payment_type != "RB":
                found.setdefault(_find_money(chain, offer.target), offer)
        return list(found.values())
    own = chain.find(payment.pk) or payment
    return [offer for offer in list_follow_up_offers(chain, own) if offer.code == code]


def _find_money(chain: Chain, payment: Payment | None) -> UUID:
    """The member of a chain whose money a follow-up of ``payment`` moves: the first one for a preauthorization with its
    increments and renewals, and what a receipt records (gateway.payments.chain_amounts)."""
    if payment is None or payment.payment_type == "PA":
        return chain.first.pk
    behind = chain.find(payment.referenced) if payment.payment_type == "RC" and payment.referenced else None
    return payment.pk if behind is None or behind.payment_type == "PA" else behind.pk


def explain_impossible(chain: Chain, payment: Payment) -> str:
    """Why nothing can be done with a chosen payment."""
    if payment.pk != payment.chain and payment.status == Status.APPROVED:
        return _("this is not possible for this step; choose the first payment")
    return _("the payment is: %s") % CHAIN_WORDS[resolve_chain_status(chain.first)].name


def _build_item(
    action: BulkAction, payment: Payment, target: Payment, amount: Decimal, state: BulkItem.State, why: str
) -> BulkItem:
    return BulkItem(
        id=identifiers.row_id(),
        action=action,
        payment=payment.pk,
        target=target.pk,
        merchant_id=payment.merchant_id,
        amount=amount,
        currency=payment.currency,
        state=state,
        why=why[:500],
        follow_up=identifiers.row_id(),
    )


def build_clerk(owner: Any, target: Payment, ip: str) -> Clerk:
    """The owner as a clerk on ``target``, with the limits they have now."""
    try:
        limit, day = permissions.find_four_eyes_limits(owner, OPERATE_RIGHT, target)
    except LookupError:
        limit = day = Decimal(0)
    return Clerk(user=owner.pk, name=owner.get_username(), ip=ip or None, limit=limit, day=day)


# --- carrying out -------------------------------------------------------------------------------------------------


def send_bulk_slice(row: BackgroundWork, _folder: AttemptFolder, alive: Callable[[], None]) -> queue.SliceResult:
    """Carry out the next SEND_SLICE_ITEMS items. What an item has become is read from the follow-up or the request
    with its id, which a slice that died may have made."""
    action, owner = _load_action(row)
    with translation.override(action.selection["language"]):
        if is_too_old(action):
            raise queue.WorkFailedError(explain_too_old(action))
        for item in action.items.filter(state__in=SENDABLE_STATES).order_by("id")[:SEND_SLICE_ITEMS]:
            alive()
            _carry_out(action, item, owner)
        left = action.items.filter(state__in=SENDABLE_STATES).count()
        total = action.items.exclude(state=BulkItemState.IMPOSSIBLE).count()
        if not left:
            BulkAction.objects.filter(pk=action.pk, state=BulkActionState.RUNNING).update(state=BulkActionState.DONE)
    return queue.SliceResult(done=total - left, cursor={"left": left}, total=total, finished=not left)


def _carry_out(action: BulkAction, item: BulkItem, owner: Any) -> None:
    try:
        state, why = _find_sent(item) or _send_item(action, item, owner)
    except FollowUpNotPossibleError as refused:
        # Another worker may have sent the item at this moment, so that nothing is left for this one.
        state, why = _find_sent(item) or (BulkItemState.REFUSED, str(refused))
    before: tuple[BulkItem.State, ...] = SENDABLE_STATES
    if state in (BulkItemState.DONE, BulkItemState.DECLINED):
        before = (*before, BulkItemState.OPEN, BulkItemState.REFUSED)
    BulkItem.objects.filter(pk=item.pk, state__in=before).update(state=state, why=why[:500])


def _find_sent(item: BulkItem) -> tuple[BulkItem.State, str] | None:
    """What an item has become by the follow-up or the request with its id; None: neither is there."""
    made = Payment.objects.filter(pk=item.follow_up).first()
    if made is not None:
        return _describe_result(made)
    return (BulkItemState.ASKED, "") if Approval.objects.filter(pk=item.pk).exists() else None


def _send_item(action: BulkAction, item: BulkItem, owner: Any) -> tuple[BulkItem.State, str]:
    target = Payment.objects.select_related("merchant", "channel").get(pk=item.target)
    if not permissions.has_permission(owner, OPERATE_RIGHT, target):
        raise FollowUpNotPossibleError(_("You may no longer move money of this payment."))
    clerk = build_clerk(owner, target, action.selection["ip"])
    chain = _load_chains([target])[target.chain]
    order = manual_follow_up.parse_follow_up_order(
        chain, target, action.code, money.format_amount(item.amount), reason=action.reason, note=action.note
    )
    try:
        made = manual_follow_up.execute_follow_up(order, clerk.actor, follow_up=item.follow_up, alone=clerk)
    except ClerkLimitExceededError as over:
        if (sent := _find_sent(item)) is not None:
            return sent
        asked, _new = approvals.request_approval(order, order.note, by=clerk, key=item.pk, met=over.used)
        approval_notice.wake_notices()
        return BulkItemState.ASKED, str(asked.get_over_display())
    return _describe_result(made)


def _describe_result(made: Payment) -> tuple[BulkItem.State, str]:
    if made.status == Status.APPROVED:
        return BulkItemState.DONE, ""
    if made.status == Status.DECLINED:
        return BulkItemState.DECLINED, made.result_code
    return BulkItemState.OPEN, ""


BULK_CHECK: Final = queue.WorkKind(
    name="bulk dry run", about="a dry run for many payments", right=OPERATE_RIGHT, step=check_bulk_slice
)
BULK_SEND: Final = queue.WorkKind(
    name="bulk follow-ups", about="captures, refunds or reversals of many payments", right=OPERATE_RIGHT,
    step=send_bulk_slice,
)  # fmt: skip

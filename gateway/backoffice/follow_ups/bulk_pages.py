"""Pages of bulk actions: what the dry run found, confirming it, progress, and taking it back.

Only the user who began an action sees it. Functions: gateway.backoffice.follow_ups.bulk_follow_ups.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.db.models import Count, QuerySet, Sum
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from gateway.access import permissions
from gateway.background import queue
from gateway.backoffice.follow_ups import bulk_follow_ups
from gateway.backoffice.follow_ups.bulk_follow_ups import BulkActionError, BulkRequest
from gateway.backoffice.follow_ups.follow_up_form import clerk_from_request
from gateway.backoffice.follow_ups.reasons import REASONED_TYPES, name_reason, parse_reason
from gateway.backoffice.kit import keyset
from gateway.backoffice.kit.base import actor_from_request
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.result_words import describe_result
from gateway.backoffice.kit.work_start import report_too_much_work
from gateway.backoffice.payments.payment_filters import PAYMENT_FILTER_NAMES, fix_filter_times, parse_payment_filters
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.backoffice.payments.search_terms import FullCardNumberError, parse_search_term
from gateway.backoffice.sign_in import session
from gateway.core import identifiers
from gateway.models import BulkAction, BulkItem, Payment
from gateway.payments.operation_table import OPERATIONS

ITEM_ORDER: Final = keyset.KeysetOrder(columns=(("pk", UUID),))
ITEM_TONES: Final = {
    BulkItem.State.READY: "plain", BulkItem.State.OVER_LIMIT: "wait", BulkItem.State.IMPOSSIBLE: "bad",
    BulkItem.State.DONE: "good", BulkItem.State.OPEN: "wait", BulkItem.State.DECLINED: "bad",
    BulkItem.State.ASKED: "wait", BulkItem.State.REFUSED: "bad",
}  # fmt: skip


def read_picked(request: HttpRequest) -> tuple[UUID, ...]:
    """The payments that a list's form has picked; none: the whole list is meant, if the form says so."""
    if request.POST.get("which") == "all":
        return ()
    found = (identifiers.parse_id(text.replace("-", "")) for text in request.POST.getlist("pick"))
    return tuple(dict.fromkeys(ident for ident in found if ident is not None))


def begin_bulk(request: HttpRequest) -> HttpResponse:
    """Begin the dry run that a list's form asks for, and lead to its page."""
    back = redirect(reverse("admin:gateway_payment_changelist"))
    if request.method != "POST":
        return back
    code, reason = request.POST.get("do", ""), parse_reason(request.POST.get("reason", ""))
    ids = read_picked(request)
    values = {name: request.POST[name] for name in PAYMENT_FILTER_NAMES if request.POST.get(name)}
    _filters, wrong = parse_payment_filters(values)
    try:
        term = parse_search_term(request.POST.get("q", ""))
    except FullCardNumberError:
        return back
    fault = ""
    if not ids and request.POST.get("which") != "all":
        fault = _("Select payments first.")
    elif code in REASONED_TYPES and not reason:
        fault = _("Choose a reason: a refund or a reversal is kept with one.")
    elif wrong or term.wrong:
        fault = _("A filter cannot be read; nothing was looked at.")
    asked = BulkRequest(
        code=code,
        reason=reason if code in REASONED_TYPES else "",
        note=request.POST.get("note", ""),
        ids=ids,
        filters=None if ids else fix_filter_times(values),
        term=None if ids else {"shape": term.shape, "value": term.value},
    )
    if fault:
        messages.error(request, fault)
        return back
    return _lead_to(request, back, lambda by: bulk_follow_ups.begin_bulk_action(asked, owner=_owner(request), by=by))


def _owner(request: HttpRequest) -> int:
    return int(request.user.pk or 0)


def _lead_to(request: HttpRequest, back: HttpResponse, begin: Any) -> HttpResponse:
    """Do what ``begin`` does and lead to the action's page; an error is shown at ``back``."""
    try:
        action = begin(actor_from_request(request))
    except BulkActionError as refused:
        messages.error(request, str(refused))
        return back
    except queue.TooMuchOpenWorkError:
        report_too_much_work(request)
        return back
    return redirect(build_bulk_address(action))


def build_bulk_address(action: BulkAction) -> str:
    """Address of an action's page."""
    return reverse("admin:gateway_payment_bulk", args=[action.pk])


def find_own_action(request: HttpRequest, ident: UUID) -> BulkAction:
    """The user's own action; 404 for any other."""
    row = BulkAction.objects.select_related("work").filter(pk=ident, owner=_owner(request)).first()
    if row is None:
        raise Http404
    return row


def change_bulk(request: HttpRequest, ident: UUID, verb: str) -> HttpResponse:
    """Confirm an action, take it back, or withdraw its requests for approval."""
    action = find_own_action(request, ident)
    back = redirect(build_bulk_address(action))
    if request.method != "POST":
        return back
    if (ask := session.require_reauthentication(request, build_bulk_address(action))) is not None:
        return ask
    if verb == "confirm":

        def confirm(by: Any) -> BulkAction:
            bulk_follow_ups.confirm_bulk_action(action, by=by)
            return action

        return _lead_to(request, back, confirm)
    if verb == "undo":
        return _lead_to(request, back, lambda by: bulk_follow_ups.begin_undo(action, by=by))
    if verb != "withdraw":
        raise Http404
    first = Payment.objects.filter(pk__in=_list_shown_items(request, action).values("target")[:1]).first()
    if first is None:
        raise PermissionDenied
    count = bulk_follow_ups.withdraw_bulk_requests(action, by=clerk_from_request(request, first))
    messages.success(
        request,
        ngettext("%d request for approval is withdrawn.", "%d requests for approval are withdrawn.", count) % count,
    )
    return back


def show_bulk(page: ModelAdmin[Payment], request: HttpRequest, ident: UUID) -> HttpResponse:
    """What the dry run found or the action did: sums by state and currency, and each item."""
    action = find_own_action(request, ident)
    shown = _list_shown_items(request, action)
    sums = _sum_items(shown)
    chosen = request.GET.get("state", "")
    items = shown.filter(state=chosen) if chosen in BulkItem.State.values else shown
    listed = keyset.read_keyset_page(items, ITEM_ORDER, request.GET, [("state", chosen)] if chosen else ())
    title = _("%s of many payments") % _(OPERATIONS[action.code].title)
    stopped = bulk_follow_ups.is_stopped(action)
    too_old = action.checked_at is not None and bulk_follow_ups.is_too_old(action)
    confirmable = action.state == BulkAction.State.CHECKED or (action.state == BulkAction.State.RUNNING and stopped)
    context = {
        **page.admin_site.each_context(request),
        "title": title,
        "opts": page.opts,
        "action": action,
        "reason": name_reason(action.reason),
        "sums": sums,
        "listed": listed,
        "rows": _render_items(listed.rows),
        "chosen": chosen,
        "sendable": [each for each in sums if each["state"] in bulk_follow_ups.SENDABLE_STATES],
        "may_confirm": confirmable and not too_old,
        "too_old": bulk_follow_ups.explain_too_old(action) if confirmable and too_old else "",
        "stopped": stopped,
        "working": action.state in (BulkAction.State.CHECKING, BulkAction.State.RUNNING) and not stopped,
        "work": action.work,
        "share": queue.compute_percent_done(action.work) if action.work is not None else None,
        "undoable": action.state == BulkAction.State.DONE and bulk_follow_ups.list_undoable_items(action).exists(),
        "final": action.code not in bulk_follow_ups.UNDOING_TYPES,
        "asked": any(each["state"] == BulkItem.State.ASKED for each in sums),
        "undo_of": build_bulk_address(action.undo_of) if action.undo_of is not None else "",
    }
    return TemplateResponse(request, "admin/clerk/bulk.html", context)


def _list_shown_items(request: HttpRequest, action: BulkAction) -> QuerySet[BulkItem]:
    """The items of payments that the user may operate today: rights may have changed since the dry run."""
    scope = permissions.find_access_scope(request.user, bulk_follow_ups.OPERATE_RIGHT)
    reached = Payment.objects.filter(scope.where(), pk__in=action.items.values("payment"))
    return action.items.filter(payment__in=reached.values("pk"))


def _sum_items(items: QuerySet[BulkItem]) -> list[dict[str, Any]]:
    """Number and amount of items by state and currency."""
    found = items.values("state", "currency").annotate(number=Count("pk"), amount=Sum("amount"))
    return [
        {
            **row,
            "label": BulkItem.State(row["state"]).label,
            "tone": ITEM_TONES[BulkItem.State(row["state"])],
            "address": f"?state={row['state']}",
        }
        for row in found.order_by("state", "currency")
    ]


def _render_items(items: list[BulkItem]) -> list[dict[str, Any]]:
    keys = {item.target for item in items} | {item.payment for item in items}
    rows = Payment.objects.filter(pk__in=keys).select_related("merchant").defer("request", "answer")
    payments = {row.pk: row for row in rows}
    firsts = Payment.objects.filter(pk__in={row.chain for row in payments.values()})
    orders = dict(firsts.values_list("pk", "merchant_transaction_id"))
    return [
        {
            "item": item,
            "target": payments[item.target],
            "title": format_payment_title(payments[item.target]),
            "order": payments[item.target].merchant_transaction_id or orders.get(payments[item.target].chain, ""),
            "address": build_payment_page_url(item.target),
            "tone": ITEM_TONES[BulkItem.State(item.state)],
            "label": item.get_state_display(),
            "why": describe_result(item.why) if item.state == "DECLINED" else item.why,
            "made": build_payment_page_url(item.follow_up) if item.state in ("DONE", "OPEN", "DECLINED") else "",
            "request": reverse("admin:gateway_approval_change", args=[item.pk]) if item.state == "ASKED" else "",
        }
        for item in items
    ]

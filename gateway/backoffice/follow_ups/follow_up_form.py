"""The form of a manual follow-up (capture, refund, void, rebill): what is possible, and one follow-up per form.

An amount above a clerk limit becomes a request for approval.
"""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.backoffice.follow_ups import approvals, clerk_limits, manual_follow_up
from gateway.backoffice.follow_ups.clerk_limits import Clerk, ClerkLimitExceededError, LimitUse
from gateway.backoffice.follow_ups.manual_follow_up import FollowUpNotPossibleError, FollowUpOrder
from gateway.backoffice.kit.base import actor_from_request
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.payments.timeline import build_chain_nodes, format_payment_title, summarize_chain
from gateway.backoffice.sign_in import session
from gateway.core import result_codes
from gateway.core.advice import get_developer_advice
from gateway.core.money import format_amount
from gateway.models import Approval, Payment, Status
from gateway.payments.chain import Chain
from gateway.payments.operations import OPERATIONS
from gateway.payments.rendering import resolve_result_code

OPERATE_PAYMENT_PERMISSION: Final = "gateway.operate_payment"
MAX_FOLLOW_UP_NOTE_CHARS: Final = 500
_EFFECTS: Final = {
    "CP": "takes this amount from the shopper's account. Money that is captured can be refunded later.",
    "RF": "gives this amount back to the shopper. A refund cannot be undone.",
    "RV": "undoes the payment or what remains of the reservation. A reversal cannot be undone.",
    "RB": "takes this amount from the shopper's account once more.",
}
"""Payment type → what the follow-up does to money; the form shows it before it is sent."""


def clerk_from_request(request: HttpRequest, target: Payment, right: str = OPERATE_PAYMENT_PERMISSION) -> Clerk:
    """The request's user as a clerk on ``target``, with the limits above which an approval is needed."""
    by = actor_from_request(request)
    try:
        limit, day = permissions.find_four_eyes_limits(request.user, right, target)
    except LookupError:
        limit = day = None
    return Clerk(user=int(request.user.pk or 0), name=by.name, ip=by.ip, limit=limit, day=day)


def handle_follow_up_form(page: ModelAdmin[Payment], request: HttpRequest, target: Payment, code: str) -> HttpResponse:
    """The follow-up's page. ``target`` comes with its merchant and channel, and the caller has checked the permission.
    It needs a recent authentication."""
    if (ask := session.require_reauthentication(request)) is not None:
        return ask
    clerk = clerk_from_request(request, target)
    fault = ""
    if request.method == "POST":
        try:
            return _submit_form(request, target, code, clerk)
        except FollowUpNotPossibleError as refused:
            fault = str(refused)
    chain = _load_chain(target)
    offer = manual_follow_up.find_follow_up_offer(chain, target, code)
    asked = request.POST.get("amount", "") if request.method == "POST" else ""
    most = offer.most if offer is not None else None
    used = clerk_limits.list_limit_uses(clerk, chain)
    context = {
        **page.admin_site.each_context(request),
        "title": _(OPERATIONS[code].title),
        "opts": page.opts,
        "payment": target,
        "original": target,
        "offer": offer,
        "fault": fault,
        "code": code,
        "sums": summarize_chain(chain),
        "nodes": build_chain_nodes(chain, target.id),
        "used": used[0] if used else None,
        "moved": format_amount(used[0].moved) if used else "",
        "named": f"{format_payment_title(target)} {target.amount} {target.currency}",
        "most": format_amount(most) if most is not None else "",
        "note": request.POST.get("note", ""),
        "amount": asked or format_amount(most if most is not None else target.amount),
        "key": manual_follow_up.sign_form_key(clerk, target, code),
        "effect": _(_EFFECTS[code]) if code in _EFFECTS else "",
        "above": asked,
        "back": build_payment_page_url(target.pk),
        "note_max": MAX_FOLLOW_UP_NOTE_CHARS,
    }
    return TemplateResponse(request, "admin/clerk/follow_up.html", context, status=400 if fault else 200)


def _submit_form(request: HttpRequest, target: Payment, code: str, clerk: Clerk) -> HttpResponse:
    """Send the follow-up or request an approval, then redirect to the payment. Raises FollowUpNotPossibleError."""
    key = manual_follow_up.read_form_key(request.POST.get("key", ""), clerk, target, code)
    back = redirect(build_payment_page_url(target.pk))
    made = manual_follow_up.find_sent_follow_up(clerk, key)
    if made is not None:
        # Sent before (a double click, a reload, the back button): its outcome is shown again.
        _show_outcome(request, made, again=True)
        return back
    if (before := Approval.objects.filter(pk=key).first()) is not None:
        _show_earlier_request(request, before)
        return back
    order = manual_follow_up.parse_follow_up_order(_load_chain(target), target, code, request.POST.get("amount", ""))
    if code == "RB" and order.amount > target.amount and request.POST.get("above") != request.POST.get("amount"):
        values = {"amount": order.text, "was": f"{format_amount(target.amount)} {target.currency}"}
        words = _("%(amount)s is more than the payment itself, of %(was)s. Send it once more if that is meant.")
        raise FollowUpNotPossibleError(words % values)
    try:
        payment, fresh = manual_follow_up.send_follow_up(order, clerk, key)
    except ClerkLimitExceededError as over:
        _request_approval(request, order, clerk, key, over.used)
        return back
    _show_outcome(request, payment, again=not fresh)
    return back


def _request_approval(request: HttpRequest, order: FollowUpOrder, clerk: Clerk, key: Any, met: LimitUse) -> None:
    row, made = approvals.request_approval(order, request.POST.get("note", ""), by=clerk, key=key, met=met)
    if made:
        values = {"what": _(order.title), "amount": order.text, "limit": met.over.label}
        words = _("%(what)s of %(amount)s is over %(limit)s. A manager has been asked; nothing was sent yet.")
        messages.success(request, words % values)
    else:
        _show_earlier_request(request, row)


def _show_earlier_request(request: HttpRequest, row: Approval) -> None:
    messages.info(request, _("This form asked for approval before: %(state)s.") % {"state": row.get_state_display()})


def _show_outcome(request: HttpRequest, made: Payment, *, again: bool) -> None:
    code = resolve_result_code(made)
    what = f"{_(OPERATIONS[made.payment_type].title)} {format_amount(made.amount)} {made.currency}"
    if again:
        messages.info(request, _("%s was sent by this form before. Nothing was sent twice.") % what)
    elif made.status == Status.APPROVED:
        messages.success(request, _("%s was accepted.") % what)
    elif made.status == Status.DECLINED:
        text = result_codes.find_result_code(code).description
        messages.error(
            request,
            _("%(what)s was declined: %(why)s (%(code)s). %(todo)s")
            % {"what": what, "why": text, "code": code, "todo": get_developer_advice(code)},
        )
    else:
        messages.warning(request, _("%s was sent; the answer is not there yet. It is looked after by itself.") % what)


def _load_chain(target: Payment) -> Chain:
    members = Payment.objects.filter(chain=target.chain).defer("request", "means_sealed", "means_fingerprint")
    return Chain([target if row.pk == target.pk else row for row in members.order_by("id")])

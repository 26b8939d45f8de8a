"""The form of a manual follow-up (capture, refund, void, rebill): what is possible, and one follow-up per form.

An amount above a clerk limit becomes a request for approval.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.backoffice.follow_ups import approval_notice, approvals, clerk_limits, manual_follow_up
from gateway.backoffice.follow_ups.clerk_limits import Clerk, ClerkLimitExceededError, LimitUse
from gateway.backoffice.follow_ups.manual_follow_up import FollowUpNotPossibleError, FollowUpOrder
from gateway.backoffice.follow_ups.open_approvals import build_open_condition
from gateway.backoffice.follow_ups.reasons import FOLLOW_UP_REASONS, REASONED_TYPES, parse_reason
from gateway.backoffice.kit.base import actor_from_request
from gateway.backoffice.kit.formatting import format_money, format_typed_amount
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.result_words import describe_result
from gateway.backoffice.payments.chain_diagram import build_chain_nodes
from gateway.backoffice.payments.chain_sums import summarize_chain
from gateway.backoffice.payments.follow_up_offers import CHAIN_FOLLOW_UPS, list_member_offers
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.backoffice.sign_in import session
from gateway.core import identifiers
from gateway.core.advice import get_developer_advice
from gateway.core.money import format_amount
from gateway.models import Approval, Payment, Status
from gateway.payments.chain_amounts import Chain
from gateway.payments.operation_table import OPERATIONS
from gateway.payments.rendering import resolve_result_code

OPERATE_PAYMENT_PERMISSION: Final = "gateway.operate_payment"
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


def handle_follow_up_form(page: ModelAdmin[Payment], request: HttpRequest, origin: Payment, code: str) -> HttpResponse:
    """The follow-up's page. ``origin``, the payment whose page it was opened from, comes with its merchant and channel,
    and the caller has checked the permission. The follow-up goes to the member of its chain that the form names, or
    that fits best. It needs a recent authentication."""
    if (ask := session.require_reauthentication(request)) is not None:
        return ask
    chain = _load_chain(origin)
    target = _choose_target(request, chain, origin, code)
    clerk = clerk_from_request(request, target)
    fault = ""
    if request.method == "POST":
        try:
            return _submit_form(request, origin, target, code, clerk)
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
        "original": origin,
        "origin": origin,
        "others": _list_other_targets(chain, origin, target, code),
        "waiting": Approval.objects.filter(build_open_condition(), payment__chain=origin.chain).order_by("asked_at"),
        "reasons": list(FOLLOW_UP_REASONS.items()) if code in REASONED_TYPES else [],
        "reason": request.POST.get("reason", ""),
        "offer": offer,
        "fault": fault,
        "code": code,
        "sums": summarize_chain(chain),
        "nodes": build_chain_nodes(chain, target.id),
        "used": used[0] if used else None,
        "moved": used[0].moved if used else None,
        "bar": _build_bar(used, most if most is not None else target.amount, target.currency),
        "named": f"{format_payment_title(target)} {format_money(target.amount, target.currency)}",
        "most": format_amount(most) if most is not None else "",
        "most_text": format_money(most, target.currency) if most is not None else "",
        "note": request.POST.get("note", ""),
        "amount": asked or format_typed_amount(most if most is not None else target.amount),
        "key": manual_follow_up.renew_form_key(request.POST.get("key", ""), clerk, target, code),
        "effect": _(_EFFECTS[code]) if code in _EFFECTS else "",
        "above": asked,
        "back": build_payment_page_url(origin.pk),
        "note_max": manual_follow_up.MAX_FOLLOW_UP_NOTE_CHARS,
    }
    return TemplateResponse(request, "admin/clerk/follow_up.html", context, status=400 if fault else 200)


def _build_bar(used: list[LimitUse], amount: Decimal, currency: str) -> dict[str, Any] | None:
    """The bar of the limit with the least left, for what the form offers first."""
    return clerk_limits.build_limit_bar(used[0].limit, used[0].moved, amount, currency) if used else None


def _choose_target(request: HttpRequest, chain: Chain, origin: Payment, code: str) -> Payment:
    """The member of the chain that the form names; without one, the best that the follow-up is possible for."""
    asked = identifiers.parse_id((request.POST.get("member") or request.GET.get("member", "")).replace("-", ""))
    named = chain.find(asked) if asked is not None else None
    offers = list_member_offers(chain, origin, code) if named is None and code in CHAIN_FOLLOW_UPS else []
    found = named or (offers[0].target if offers else origin)
    found.merchant, found.channel = origin.merchant, origin.channel
    return found


def _list_other_targets(chain: Chain, origin: Payment, target: Payment, code: str) -> list[dict[str, str]]:
    """Other payments of the chain that this follow-up is possible for, each with the address of its form."""
    return [
        {
            "title": f"{format_payment_title(offer.target)} {format_money(offer.target.amount, offer.target.currency)}",
            "left": format_money(offer.most, offer.target.currency) if offer.most is not None else "",
            "address": f"?member={offer.target.pk.hex}",
        }
        for offer in (list_member_offers(chain, origin, code) if code in CHAIN_FOLLOW_UPS else [])
        if offer.target.pk != target.pk
    ]


def _submit_form(request: HttpRequest, origin: Payment, target: Payment, code: str, clerk: Clerk) -> HttpResponse:
    """Send the follow-up or request an approval, then redirect to ``origin``. Raises FollowUpNotPossibleError."""
    key = manual_follow_up.read_form_key(request.POST.get("key", ""), clerk, target, code)
    back = redirect(build_payment_page_url(origin.pk))
    made = manual_follow_up.find_sent_follow_up(clerk, key)
    if made is not None:
        # Sent before (a double click, a reload, the back button): its outcome is shown again.
        _show_outcome(request, made, again=True)
        return back
    if (before := Approval.objects.filter(pk=key).first()) is not None:
        _show_earlier_request(request, before)
        return back
    order = manual_follow_up.parse_follow_up_order(
        _load_chain(target),
        target,
        code,
        request.POST.get("amount", ""),
        reason=parse_reason(request.POST.get("reason", "")),
        note=request.POST.get("note", ""),
    )
    if code == "RB" and order.amount > target.amount and request.POST.get("above") != request.POST.get("amount"):
        values = {"amount": order.text, "was": format_money(target.amount, target.currency)}
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
    row, made = approvals.request_approval(order, order.note, by=clerk, key=key, met=met)
    if made:
        approval_notice.wake_notices()
        values = {"what": _(order.title), "amount": order.text, "limit": met.over.label}
        words = _("%(what)s of %(amount)s is over %(limit)s. A manager has been asked; nothing was sent yet.")
        messages.success(request, words % values)
    else:
        _show_earlier_request(request, row)


def _show_earlier_request(request: HttpRequest, row: Approval) -> None:
    messages.info(request, _("This form asked for approval before: %(state)s.") % {"state": row.get_state_display()})


def _show_outcome(request: HttpRequest, made: Payment, *, again: bool) -> None:
    code = resolve_result_code(made)
    what = f"{_(OPERATIONS[made.payment_type].title)} {format_money(made.amount, made.currency)}"
    if again:
        messages.info(request, _("%s was sent by this form before. Nothing was sent twice.") % what)
    elif made.status == Status.APPROVED:
        messages.success(request, _("%s was accepted.") % what)
    elif made.status == Status.DECLINED:
        text = describe_result(code)
        messages.error(
            request,
            _("%(what)s was declined: %(why)s (%(code)s). %(todo)s")
            % {"what": what, "why": text, "code": code, "todo": _(get_developer_advice(code))},
        )
    else:
        messages.warning(request, _("%s was sent; the answer is not there yet. It is looked after by itself.") % what)


def _load_chain(target: Payment) -> Chain:
    members = Payment.objects.filter(chain=target.chain).defer("request", "means_sealed", "means_fingerprint")
    return Chain([target if row.pk == target.pk else row for row in members.order_by("id")])

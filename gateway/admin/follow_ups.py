"""The form that captures, refunds, reverses or rebills: what is still possible, and one sending per form.

What is over the user's limit becomes a request for approval. Source: design, J4, steps 5 to 9.
"""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway import results, rights
from gateway.admin import session
from gateway.admin.kit import actor
from gateway.advice import advice
from gateway.desk import approvals, by_hand, limits
from gateway.desk.by_hand import NotPossible, Order
from gateway.desk.limits import Clerk, OverLimit, Used
from gateway.desk.story import nodes_of, sums_of, title_of
from gateway.models import Approval, Payment, Status
from gateway.money import amount_text
from gateway.payments.answer import code_of
from gateway.payments.chain import Chain
from gateway.payments.operations import OPERATIONS

RIGHT: Final = "gateway.operate_payment"
NOTE_MAX_CHARS: Final = 500
_EFFECTS: Final = {
    "CP": "takes this amount from the shopper's account. Money that is captured can be refunded later.",
    "RF": "gives this amount back to the shopper. A refund cannot be undone.",
    "RV": "undoes the payment or what remains of the reservation. A reversal cannot be undone.",
    "RB": "takes this amount from the shopper's account once more.",
}
"""What a follow-up does to money, as the form says before it is sent."""


def clerk_of(request: HttpRequest, target: Payment, right: str = RIGHT) -> Clerk:
    """Who acts on ``target``, and above which amounts a second person (with higher limits) is needed."""
    by = actor(request)
    try:
        limit, day = rights.limits(request.user, right, target)
    except LookupError:
        limit = day = None
    return Clerk(user=int(request.user.pk or 0), name=by.name, ip=by.ip, limit=limit, day=day)


def view(page: ModelAdmin[Payment], request: HttpRequest, target: Payment, code: str) -> HttpResponse:
    """``target`` with its merchant and channel; the right was asked for. Who moves money shows first who they are."""
    if (ask := session.ask_again(request)) is not None:
        return ask
    clerk = clerk_of(request, target)
    fault = ""
    if request.method == "POST":
        try:
            return _sent(request, target, code, clerk)
        except NotPossible as refused:
            fault = str(refused)
    chain = _chain(target)
    offer = by_hand.offer_of(chain, target, code)
    asked = request.POST.get("amount", "") if request.method == "POST" else ""
    most = offer.most if offer is not None else None
    used = limits.used(clerk, chain)
    context = {
        **page.admin_site.each_context(request), "title": _(OPERATIONS[code].title), "opts": page.opts,
        "payment": target, "original": target, "offer": offer, "fault": fault, "code": code,
        "sums": sums_of(chain), "nodes": nodes_of(chain, target.id), "used": used[0] if used else None,
        "moved": amount_text(used[0].moved) if used else "",
        "named": f"{title_of(target)} {target.amount} {target.currency}",
        "most": amount_text(most) if most is not None else "", "note": request.POST.get("note", ""),
        "amount": asked or amount_text(most if most is not None else target.amount),
        "key": by_hand.new_key(clerk, target, code), "effect": _(_EFFECTS[code]) if code in _EFFECTS else "",
        "above": asked,
        "back": reverse("admin:gateway_payment_change", args=[target.pk]), "note_max": NOTE_MAX_CHARS,
    }  # fmt: skip
    return TemplateResponse(request, "admin/clerk/follow_up.html", context, status=400 if fault else 200)


def _sent(request: HttpRequest, target: Payment, code: str, clerk: Clerk) -> HttpResponse:
    """Send it or ask for approval, and go back to the payment. Raises NotPossible."""
    key = by_hand.read_key(request.POST.get("key", ""), clerk, target, code)
    back = redirect(reverse("admin:gateway_payment_change", args=[target.pk]))
    made = by_hand.made_by(clerk, key)
    if made is not None:
        # Sent before: a double click, a reload, or the back button. What it made is told once more.
        _tell(request, made, again=True)
        return back
    if (before := Approval.objects.filter(pk=key).first()) is not None:
        _asked(request, before)
        return back
    order = by_hand.read_order(_chain(target), target, code, request.POST.get("amount", ""))
    if code == "RB" and order.amount > target.amount and request.POST.get("above") != request.POST.get("amount"):
        told = {"amount": order.text, "was": f"{amount_text(target.amount)} {target.currency}"}
        words = _("%(amount)s is more than the payment itself, of %(was)s. Send it once more if that is meant.")
        raise NotPossible(words % told)
    try:
        payment, fresh = by_hand.send(order, clerk, key)
    except OverLimit as over:
        _ask(request, order, clerk, key, over.used)
        return back
    _tell(request, payment, again=not fresh)
    return back


def _ask(request: HttpRequest, order: Order, clerk: Clerk, key: Any, met: Used) -> None:
    row, made = approvals.ask(order, request.POST.get("note", ""), by=clerk, key=key, met=met)
    if made:
        told = {"what": _(order.title), "amount": order.text, "limit": met.over.label}
        words = _("%(what)s of %(amount)s is over %(limit)s. A manager has been asked; nothing was sent yet.")
        messages.success(request, words % told)
    else:
        _asked(request, row)


def _asked(request: HttpRequest, row: Approval) -> None:
    messages.info(request, _("This form asked for approval before: %(state)s.") % {"state": row.get_state_display()})


def _tell(request: HttpRequest, made: Payment, *, again: bool) -> None:
    code = code_of(made)
    what = f"{_(OPERATIONS[made.payment_type].title)} {amount_text(made.amount)} {made.currency}"
    if again:
        messages.info(request, _("%s was sent by this form before. Nothing was sent twice.") % what)
    elif made.status == Status.APPROVED:
        messages.success(request, _("%s was accepted.") % what)
    elif made.status == Status.DECLINED:
        text = results.result(code).description
        messages.error(request, _("%(what)s was declined: %(why)s (%(code)s). %(todo)s")
                       % {"what": what, "why": text, "code": code, "todo": advice(code)})  # fmt: skip
    else:
        messages.warning(request, _("%s was sent; the answer is not there yet. It is looked after by itself.") % what)


def _chain(target: Payment) -> Chain:
    members = Payment.objects.filter(chain=target.chain).defer("request", "means_sealed", "means_fingerprint")
    return Chain([target if row.pk == target.pk else row for row in members.order_by("id")])

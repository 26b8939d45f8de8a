"""The form in which a clerk enters what the acquirer says of a payment in doubt."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from gateway.backoffice.follow_ups import approval_notice, approvals, clerk_limits, manual_follow_up, payout_decisions
from gateway.backoffice.follow_ups.clerk_limits import Clerk, ClerkLimitExceededError
from gateway.backoffice.follow_ups.follow_up_form import clerk_from_request
from gateway.backoffice.follow_ups.manual_follow_up import MAX_FOLLOW_UP_NOTE_CHARS, FollowUpNotPossibleError
from gateway.backoffice.follow_ups.reasons import PAYOUT_TYPE, list_doubt_outcomes, name_reason
from gateway.backoffice.kit.formatting import format_money
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.backoffice.sign_in import session
from gateway.core.masking import mask_note
from gateway.models import Approval, Payment
from gateway.payments.chain_amounts import Chain
from gateway.payments.follow_ups import load_chain_members


def handle_payout_form(page: ModelAdmin[Payment], request: HttpRequest, payment: Payment) -> HttpResponse:
    """The page of ``payment``'s outcome. It comes with its merchant and channel, and the caller has checked the
    permission; it needs a recent authentication."""
    if (ask := session.require_reauthentication(request)) is not None:
        return ask
    clerk = clerk_from_request(request, payment)
    fault = ""
    if request.method == "POST":
        try:
            return _submit_form(request, payment, clerk)
        except FollowUpNotPossibleError as refused:
            fault = str(refused)
            payment.refresh_from_db(fields=["status"])
            outcome = request.POST.get("outcome", "")
            if outcome and outcome == payout_decisions.find_outcome(payment):
                # Sent before (a double click, the back button), or somebody else was faster.
                messages.info(request, _("Recorded before: %s.") % name_reason(outcome, payment.payment_type))
                return redirect(build_payment_page_url(payment.pk))
    is_decidable, asked = payout_decisions.is_decidable(payment), payout_decisions.find_open_request(payment)
    used = clerk_limits.list_limit_uses(clerk, Chain(load_chain_members(payment.chain)))
    context = {
        **page.admin_site.each_context(request),
        "title": _("What the acquirer says"),
        "opts": page.opts,
        "original": payment,
        "payment": payment,
        "named": f"{format_payment_title(payment)} {format_money(payment.amount, payment.currency)}",
        "back": build_payment_page_url(payment.pk),
        "kind": payment.payment_type,
        "is_decidable": is_decidable and asked is None,
        "asked": asked,
        "why_not": "" if is_decidable else payout_decisions.explain_not_decidable(payment),
        "needs_approval": bool(used) and payment.amount > used[0].left,
        "outcomes": list(list_doubt_outcomes(payment.payment_type).items()),
        "outcome": request.POST.get("outcome", ""),
        "note": request.POST.get("note", ""),
        "note_max": MAX_FOLLOW_UP_NOTE_CHARS,
        "key": manual_follow_up.renew_form_key(request.POST.get("key", ""), clerk, payment, PAYOUT_TYPE),
        "fault": fault,
    }
    return TemplateResponse(request, "admin/clerk/payout.html", context, status=400 if fault else 200)


def _submit_form(request: HttpRequest, payment: Payment, clerk: Clerk) -> HttpResponse:
    """Record the outcome or ask for approval, then redirect to the payment. Raises FollowUpNotPossibleError."""
    key = manual_follow_up.read_form_key(request.POST.get("key", ""), clerk, payment, PAYOUT_TYPE)
    outcome = request.POST.get("outcome", "")
    note = mask_note(request.POST.get("note", ""), MAX_FOLLOW_UP_NOTE_CHARS)
    back = redirect(build_payment_page_url(payment.pk))
    if Approval.objects.filter(pk=key).exists():
        messages.info(request, _("This form asked for approval before."))
        return back
    payout_decisions.check_decidable(payment, outcome)
    try:
        payout_decisions.decide_alone(payment, outcome, note, clerk)
    except ClerkLimitExceededError as over:
        order = manual_follow_up.FollowUpOrder(
            target=payment, code=PAYOUT_TYPE, amount=payment.amount, reason=outcome, note=note
        )
        approvals.request_approval(order, note, by=clerk, key=key, met=over.used)
        approval_notice.wake_notices()
        words = _("%s is over your limit. A manager has been asked; nothing was recorded yet.")
        messages.success(request, words % format_money(payment.amount, payment.currency))
        return back
    messages.success(request, _("Recorded: %s.") % name_reason(outcome, payment.payment_type))
    return back

"""Pages of approvals (four eyes): waiting requests, decisions and their outcome.

The verbs are in gateway.backoffice.follow_ups.approvals.
"""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.backoffice.follow_ups import approval_notice, approvals, clerk_limits, payout_decisions, second_person
from gateway.backoffice.follow_ups.approval_notice import DECIDE_APPROVAL_PERMISSION
from gateway.backoffice.follow_ups.follow_up_form import clerk_from_request
from gateway.backoffice.follow_ups.manual_follow_up import FollowUpNotPossibleError
from gateway.backoffice.follow_ups.open_approvals import build_open_condition
from gateway.backoffice.follow_ups.reasons import PAYOUT_TYPE, name_reason, name_request
from gateway.backoffice.kit import keyset
from gateway.backoffice.kit.base import ReadOnlyPage
from gateway.backoffice.kit.formatting import build_state_pill, format_labelled, format_money
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.result_words import describe_result
from gateway.backoffice.payments.follow_up_offers import list_follow_up_offers
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.backoffice.payments.timeline import build_payment_story
from gateway.backoffice.sign_in import session
from gateway.core import clock
from gateway.core.advice import get_developer_advice
from gateway.models import Approval, Payment
from gateway.payments.chain_amounts import Chain

MAX_COUNTED_APPROVALS = 200
"""Waiting requests that the badge counts."""
APPROVAL_ORDER: Final = keyset.KeysetOrder(columns=(("asked_at", datetime), ("id", UUID)), newest_first=True)
MAX_APPROVAL_EVENTS = 8
"""Events of the payment beside a request, the newest ones."""


@admin.register(Approval)
class ApprovalAdmin(ReadOnlyPage):
    """Approvals: the list of requests, and the page that decides one."""

    has_views = False
    channel_path = "payment__channel"

    def get_urls(self) -> list[URLPattern]:
        own = [
            path(
                "<uuid:approval>/decide/", self.admin_site.admin_view(self.decide_view), name="gateway_approval_decide"
            )
        ]
        return own + super().get_urls()

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        rows = self.get_queryset(request).select_related("merchant", "payment")
        mine = Q(asked_by=request.user.pk)
        waiting = rows.filter(build_open_condition())
        lists = {
            "waiting": (
                _("To decide"),
                waiting.exclude(mine) if self.may(request, DECIDE_APPROVAL_PERMISSION) else waiting,
            ),
            "mine": (_("Asked by me"), rows.filter(mine)),
            "all": (_("All requests"), rows),
        }
        chosen = request.GET.get("list", "waiting" if self.may(request, DECIDE_APPROVAL_PERMISSION) else "mine")
        chosen = chosen if chosen in lists else "waiting"
        pages = keyset.read_keyset_page(lists[chosen][1], APPROVAL_ORDER, request.GET, [("list", chosen)])
        context = {
            **self.admin_site.each_context(request),
            "title": _("Approvals"),
            "opts": self.opts,
            "lists": [(name, title, name == chosen) for name, (title, _rows) in lists.items()],
            "chosen": chosen,
            "others": second_person.list_waiting_requests(request.user) if chosen == "waiting" else [],
            "rows": [_render_approval(row) for row in pages.rows],
            "pages": pages,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/approvals.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method != "GET":
            raise PermissionDenied
        row: Approval = self.find_row(request, object_id)
        target = Payment.objects.select_related("merchant", "channel").get(pk=row.payment_id)
        row.payment = target
        story = build_payment_story(target)
        made = Payment.objects.filter(pk=row.follow_up).first() if row.follow_up else None
        open_ = row.state == Approval.State.ASKED and row.expires_at > clock.real_now()
        own = row.asked_by_id == request.user.pk
        may_decide = open_ and not own and self.may(request, DECIDE_APPROVAL_PERMISSION, row)
        by = clerk_from_request(request, target, DECIDE_APPROVAL_PERMISSION) if may_decide else None
        is_payout = row.payment_type == PAYOUT_TYPE
        operation = name_request(row.payment_type, target.payment_type)
        context = {
            **self.admin_site.each_context(request),
            "title": f"{operation} {format_money(row.amount, row.currency)}",
            "reason": name_reason(row.reason, target.payment_type),
            "is_payout": is_payout,
            "opts": self.opts,
            "original": row,
            "approval": row,
            "target": target,
            "made": made,
            "pill": build_state_pill(row.state),
            "operation": operation,
            "sums": story.sums,
            "story": story,
            "moments": story.moments[-MAX_APPROVAL_EVENTS:],
            "told_before": max(0, len(story.moments) - MAX_APPROVAL_EVENTS),
            "bar": clerk_limits.build_limit_bar(row.over_limit, row.moved or Decimal(0), row.amount, row.currency)
            if row.over_limit is not None
            else None,
            "beside": self._list_neighbours(request, row),
            "named": format_payment_title(target),
            "target_address": build_payment_page_url(target.pk),
            "made_address": build_payment_page_url(made.pk) if made else "",
            "result": describe_result(row.result_code),
            "advice": _(get_developer_advice(row.result_code)) if row.result_code and not is_payout else "",
            "may_decide": may_decide,
            "why_not": (approvals.explain_approver_refusal(row, by) or _explain_impossible(row, target, story.chain))
            if by
            else "",
            "may_withdraw": row.state == Approval.State.ASKED and own,
            "own": own,
            "expired": row.state == Approval.State.ASKED and not open_,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/approval.html", context)

    def _waiting(self, request: HttpRequest) -> Any:
        """Requests that the user may decide, the oldest first: the queue."""
        rows = self.own(request, Approval.objects.all(), DECIDE_APPROVAL_PERMISSION)
        waiting = rows.filter(build_open_condition())
        return waiting.exclude(asked_by=request.user.pk).order_by("asked_at", "pk")

    def _list_neighbours(self, request: HttpRequest, row: Approval) -> dict[str, str]:
        """Addresses of the requests before and after this one in the queue; '' if there is none."""
        queue = self._waiting(request)
        before = queue.filter(asked_at__lt=row.asked_at).last()
        after = queue.filter(asked_at__gt=row.asked_at).first()
        return {name: _page_of(one) for name, one in (("before", before), ("after", after))}

    def decide_view(self, request: HttpRequest, approval: Any) -> HttpResponse:
        row: Approval = self.find_row(request, approval)
        back = redirect(reverse("admin:gateway_approval_change", args=[row.pk]))
        if request.method != "POST":
            return back
        target = Payment.objects.select_related("merchant", "channel").get(pk=row.payment_id)
        by, note, verb = (
            clerk_from_request(request, target, DECIDE_APPROVAL_PERMISSION),
            request.POST.get("note", ""),
            request.POST.get("verb", ""),
        )
        if verb != "withdraw" and not self.may(request, DECIDE_APPROVAL_PERMISSION, row):
            raise PermissionDenied
        if verb == "approve" and (ask := session.require_reauthentication(request, back.url)) is not None:
            return ask
        try:
            if verb == "withdraw":
                decided = approvals.withdraw_approval(row.pk, by=by)
            elif verb in ("approve", "reject"):
                decided = approvals.decide_approval(row.pk, approve=verb == "approve", note=note, by=by)
            else:
                return back
        except FollowUpNotPossibleError as fault:
            messages.error(request, str(fault))
            return back
        approval_notice.wake_notices()
        good = decided.state != Approval.State.FAILED
        tell = messages.success if good else messages.error
        said = str(build_state_pill(decided.state)["text"])
        result = f"{describe_result(decided.result_code)} ({decided.result_code})" if decided.result_code else ""
        if decided.payment_type == PAYOUT_TYPE and decided.state == Approval.State.DONE:
            result = f"{name_reason(decided.reason, decided.payment.payment_type)}."
        tell(request, format_labelled(said, result) if result else f"{said}.")
        following = self._waiting(request).filter(asked_at__gt=row.asked_at).first() if good else None
        return redirect(_page_of(following)) if following is not None and verb != "withdraw" else back


def _explain_impossible(row: Approval, target: Payment, chain: Chain) -> str:
    """Why the gateway would refuse the request as the payment stands now; "" if it would not."""
    if row.payment_type == PAYOUT_TYPE:
        return "" if payout_decisions.is_decidable(target) else _(payout_decisions.NOT_DECIDABLE)
    offers = list_follow_up_offers(chain, target)
    offer = next((each for each in offers if each.code == row.payment_type), None)
    if offer is None:
        return _("The payment no longer allows this, and the gateway would refuse it.")
    if offer.most is not None and row.amount > offer.most:
        left = format_money(offer.most, row.currency)
        return _("Only %s remains, and the gateway would refuse it. A smaller amount has to be asked for anew.") % left
    return ""


def _page_of(row: Approval | None) -> str:
    return reverse("admin:gateway_approval_change", args=[row.pk]) if row is not None else ""


def count_waiting_approvals(user: Any) -> int:
    """Number of requests of others that ``user`` may decide, up to MAX_COUNTED_APPROVALS."""
    scope = permissions.find_access_scope(user, DECIDE_APPROVAL_PERMISSION)
    if not scope:
        return 0
    rows = Approval.objects.filter(build_open_condition()).exclude(asked_by=user.pk)
    if not scope.everything:
        rows = rows.filter(scope.where("merchant", ApprovalAdmin.channel_path))
    return int(rows.order_by()[:MAX_COUNTED_APPROVALS].count())


def _render_approval(row: Approval) -> dict[str, Any]:
    return {
        "row": row,
        "pill": build_state_pill(row.state),
        "operation": name_request(row.payment_type, row.payment.payment_type),
        "address": reverse("admin:gateway_approval_change", args=[row.pk]),
    }

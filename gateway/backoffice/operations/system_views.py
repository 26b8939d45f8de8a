"""Pages about the installation: vault keys, rate limits in use, and the clock of the test environment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import OperationalError, connection, models, transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminSelectWidget

from gateway.access import audit_log, permissions
from gateway.access.rate_limits import SHOPPER_OPERATION, resolve_rate_limit
from gateway.backoffice.kit.base import actor_from_request
from gateway.backoffice.operations.live_board import describe_age
from gateway.backoffice.sign_in import session
from gateway.core import clock
from gateway.models import Channel, Merchant, ThrottleWindow
from gateway.models.entities import MAX_CLOCK_OFFSET
from gateway.timers import time_travel
from gateway.vault import keysets, rewrap
from gateway.vault.sealing import VaultError, configured_keyset

KEY_COUNT_TIMEOUT_MS: Final = 8_000
"""Statement timeout of counting sealed values by key; above it, use the command line."""
MAX_THROTTLE_ROWS: Final = 100
MAX_SHOWN_CLOCKS: Final = 200
CLOCK_UNIT_SECONDS: Final = {"minutes": 60, "hours": 3_600, "days": 86_400}


def _require_permission(request: HttpRequest, right: str) -> None:
    if not permissions.has_permission(request.user, right):
        raise PermissionDenied


# --- the vault ------------------------------------------------------------


def show_vault_keys(site: Any, request: HttpRequest) -> HttpResponse:
    """Ids, ages and states of vault keys, never a key. ``manage.py vault_key`` changes them."""
    _require_permission(request, "gateway.view_vault")
    if (ask := session.require_reauthentication(request)) is not None:
        return ask
    fault, keys, where = "", [], configured_keyset()
    try:
        keys = keysets.list_key_pairs(where.read())
    except VaultError as wrong:
        fault = str(wrong)
    held = _count_sealed_values() if "count" in request.GET else None
    now = clock.real_now()
    rows = [
        {
            "id": key.id,
            "primary": key.primary,
            "since": key.since,
            "days": (now - key.since).days if key.since else None,
            "held": held.get(key.id, 0) if held is not None else None,
        }
        for key in keys
    ]
    audit_log.record_audit_entry_for(actor_from_request(request), "view", "vaultkey", "all")
    context = session.build_page_context(
        site,
        request,
        title=_("Vault keys"),
        rows=rows,
        fault=fault,
        counted=held is not None,
        late="count" in request.GET and held is None,
        changeable=where.is_changeable,
    )
    return TemplateResponse(request, "admin/vault_keys.html", context)


def _count_sealed_values() -> dict[int | None, int] | None:
    """Number of sealed values by key; None after KEY_COUNT_TIMEOUT_MS."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {KEY_COUNT_TIMEOUT_MS}")
            return dict(rewrap.count_sealed_by_key())
    except OperationalError:
        return None


# --- the throttle ------------------------------------------------------------


def show_throttle(site: Any, request: HttpRequest) -> HttpResponse:
    """Rate limit use: the fullest windows of the last minutes."""
    _require_permission(request, "gateway.view_throttlewindow")
    scope = permissions.find_access_scope(request.user, "gateway.view_throttlewindow")
    rows = ThrottleWindow.objects.exclude(operation=SHOPPER_OPERATION)
    if not scope.everything:
        channels = Channel.objects.filter(scope.where("merchant", "pk")).values_list("pk", flat=True)
        rows = rows.filter(entity_id__in=[*scope.merchants, *channels])
    fullest = list(rows.order_by("-count")[:MAX_THROTTLE_ROWS])
    ids = {row.entity_id for row in fullest}
    known: dict[Any, Channel | Merchant] = dict(Channel.objects.select_related("merchant").in_bulk(ids))
    known |= Merchant.objects.in_bulk(ids)
    lines = [_render_window(row, known.get(row.entity_id)) for row in fullest]
    context = session.build_page_context(
        site,
        request,
        title=_("Throttle"),
        lines=lines,
        limit=settings.GATEWAY_THROTTLE_LIMIT,
        window_s=settings.GATEWAY_THROTTLE_WINDOW_S,
    )
    return TemplateResponse(request, "admin/throttle.html", context)


def _render_window(row: ThrottleWindow, entity: Channel | Merchant | None) -> dict[str, Any]:
    limit = resolve_rate_limit(entity if isinstance(entity, Channel) else None, row.operation)
    most = limit[0] if limit is not None and limit[1] == row.window_s else None
    share = min(100, round(100 * row.count / most)) if most else None
    at = datetime.fromtimestamp(row.window * row.window_s, tz=clock.real_now().tzinfo)
    return {
        "entity": entity or row.entity_id.hex,
        "operation": row.operation,
        "at": at,
        "window_s": row.window_s,
        "count": row.count,
        "most": most,
        "share": share,
        "kind": "bad" if most and row.count > most else "warn" if share is not None and share >= 80 else "good",
    }


# --- the test environment's clock ------------------------------------------------------------


class TestClockForm(forms.Form):
    """Moves a merchant's clock by a span."""

    merchant = forms.ModelChoiceField(
        label=gettext_lazy("Merchant"),
        queryset=Merchant.objects.none(),
        empty_label=gettext_lazy("choose"),
        widget=UnfoldAdminSelectWidget(),
    )
    number = forms.IntegerField(
        label=gettext_lazy("Move on by"),
        min_value=1,
        max_value=100_000,
        initial=1,
        widget=UnfoldAdminIntegerFieldWidget(),
    )
    unit = forms.ChoiceField(
        label=gettext_lazy("Unit"),
        initial="days",
        widget=UnfoldAdminSelectWidget(),
        choices=[
            ("minutes", gettext_lazy("minutes")),
            ("hours", gettext_lazy("hours")),
            ("days", gettext_lazy("days")),
        ],
    )


def handle_test_clock(site: Any, request: HttpRequest) -> HttpResponse:
    """Advance or reset merchants' clocks as ``/v1/test/clock`` does; work that falls due on the way is run."""
    if settings.IS_LIVE:
        raise Http404
    _require_permission(request, "gateway.move_clock")
    mine = permissions.list_permitted_merchants(request.user, "gateway.move_clock").order_by("name")
    form = TestClockForm(request.POST if request.POST.get("act") == "move" else None)
    form.fields["merchant"].queryset = mine  # type: ignore[attr-defined]
    if request.method == "POST":
        if request.POST.get("act") == "reset":
            return _reset_clock(request, mine)
        if form.is_valid() and _advance_clock(request, form):
            return HttpResponseRedirect(reverse("admin:test_clock"))
    # A clock that was moved can be reset here, wherever its merchant stands among the others.
    moved_first = mine.order_by(models.Case(models.When(clock_offset=timedelta(0), then=1), default=0), "name")
    listed = list(moved_first[: MAX_SHOWN_CLOCKS + 1])
    rows = [
        {
            "merchant": each,
            "now": clock.merchant_now(each),
            "ahead": describe_age(each.clock_offset) if each.clock_offset else "",
        }
        for each in listed[:MAX_SHOWN_CLOCKS]
    ]
    context = session.build_page_context(
        site, request, title=_("Test clock"), form=form, rows=rows, cut=len(listed) > len(rows), most=MAX_SHOWN_CLOCKS
    )
    return TemplateResponse(request, "admin/test_clock.html", context)


def _advance_clock(request: HttpRequest, form: TestClockForm) -> bool:
    """Advance the clock; False, with form errors, if it cannot be advanced."""
    found = form.cleaned_data
    merchant, span = found["merchant"], timedelta(seconds=found["number"] * CLOCK_UNIT_SECONDS[found["unit"]])
    before = merchant.clock_offset
    try:
        with time_travel.lock_clock(merchant):
            before, target = merchant.clock_offset, merchant.clock_offset + span
            if target > MAX_CLOCK_OFFSET:
                form.add_error("number", _("This would be more than 50 years from now."))
                return False
            moved = time_travel.advance_clock(merchant, target)
    except time_travel.ConcurrentAdvanceError:
        form.add_error(None, _("Somebody else is moving this clock at this moment."))
        return False
    _record_clock_change(request, merchant, before)
    done = ", ".join(f"{name} {count}" for name, count in sorted(moved.ran.items())) or _("nothing was due")
    now = f"{clock.merchant_now(merchant):%Y-%m-%d %H:%M}"
    messages.success(request, _("Moved to %(now)s UTC; %(done)s.") % {"now": now, "done": done})
    if not moved.complete:
        left = _("The clock has %s to go: move it on again.") % moved.remaining
        messages.warning(request, left)
    if moved.waiting:
        messages.warning(request, _("Not done yet: %s.") % ", ".join(sorted(moved.waiting)))
    return True


def _reset_clock(request: HttpRequest, mine: Any) -> HttpResponse:
    back = HttpResponseRedirect(reverse("admin:test_clock"))
    try:
        merchant = mine.filter(pk=request.POST.get("merchant") or None).first()
    except (ValueError, forms.ValidationError):
        merchant = None
    if merchant is None:
        raise Http404
    before = merchant.clock_offset
    try:
        with time_travel.lock_clock(merchant):
            time_travel.reset_clock(merchant)
    except time_travel.ConcurrentAdvanceError:
        messages.error(request, _("Somebody else is moving this clock at this moment."))
        return back
    _record_clock_change(request, merchant, before)
    messages.success(request, _("The clock of %s shows real time again.") % merchant)
    return back


def _record_clock_change(request: HttpRequest, merchant: Merchant, before: timedelta) -> None:
    old, new = {"offset": str(before)}, {"offset": str(merchant.clock_offset)}
    audit_log.record_audit_entry(actor_from_request(request), "move clock", merchant, before=old, after=new)


def build_system_urls(site: Any) -> list[URLPattern]:
    """URL patterns of these pages, for the admin site."""

    def view(page: Callable[[Any, HttpRequest], HttpResponse]) -> Any:
        return site.admin_view(lambda request: page(site, request))

    return [
        path("vault-keys/", view(show_vault_keys), name="vault_keys"),
        path("throttle/", view(show_throttle), name="throttle"),
        path("test-clock/", view(handle_test_clock), name="test_clock"),
    ]

"""Back-office page "Payment page security": scripts, headers, unreviewed changes, reported violations, and an export
for the assessor.

Source: PCI DSS 6.4.3 and 11.6.1; docs/decisions/0054.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from checkout import csp_reports, page_inventory, page_snapshots
from checkout.models import PageSnapshot, PolicyViolation, WalletProvider
from gateway import widget_hash
from gateway.access import audit_log, permissions
from gateway.access.permissions import AccessScope
from gateway.backoffice.kit.base import actor_from_request
from gateway.backoffice.sign_in import session
from gateway.core import clock
from gateway.core.spreadsheet_cells import escape_csv_formula

VIEW_SNAPSHOT_PERMISSION: Final = "checkout.view_pagesnapshot"
EXPORT_SNAPSHOT_PERMISSION: Final = "checkout.export_pagesnapshot"
MAX_SHOWN_CHANGES: Final = 100
"""Snapshots, violations and wallet scripts shown on the page; the export has more."""
MAX_EXPORTED_ROWS: Final = 10_000


def count_unreviewed_changes(user: Any) -> int:
    """Count of changes that ``user`` has not reviewed, for the navigation; up to MAX_SHOWN_CHANGES."""
    return page_snapshots.list_unreviewed_snapshots(permissions.find_access_scope(user, VIEW_SNAPSHOT_PERMISSION))[
        :MAX_SHOWN_CHANGES
    ].count()


def page_security_view(site: Any, request: HttpRequest) -> HttpResponse:
    """The page: scripts, headers, changes and violations."""
    scope = _find_scope(request, VIEW_SNAPSHOT_PERMISSION)
    page_snapshots.store_changed_snapshots()
    shown = list(_list_shown_snapshots(scope)[:MAX_SHOWN_CHANGES])
    open_ones = set(page_snapshots.list_unreviewed_snapshots(scope).values_list("pk", flat=True))
    context = session.build_page_context(
        site,
        request,
        title=_("Payment page security"),
        # Not `scripts`: the theme's frame reads that name for the files that every page loads.
        own_scripts=_list_scripts(),
        wallets=_list_wallets(scope)[:MAX_SHOWN_CHANGES],
        headers=_list_headers(),
        changes=[_render_change(row, row.pk in open_ones) for row in shown],
        unseen=len(open_ones),
        last=max((row.pk for row in shown), default=0),
        may_mark=_may_review(scope),
        violations=_list_violations(scope)[:MAX_SHOWN_CHANGES],
        most=MAX_SHOWN_CHANGES,
        all_sites=scope.everything,
        may_export=permissions.has_permission(request.user, EXPORT_SNAPSHOT_PERMISSION),
        endpoint=settings.GATEWAY_BASE_URL + settings.POLICY_REPORTS_PATH,
    )
    return TemplateResponse(request, "admin/payment_page_security.html", context)


def mark_reviewed_view(_site: Any, request: HttpRequest) -> HttpResponse:
    """Record that this user reviewed the changes that their page showed."""
    scope = _find_scope(request, VIEW_SNAPSHOT_PERMISSION)
    if not _may_review(scope):
        raise PermissionDenied
    last = request.POST.get("last", "")
    if last.isascii() and last.isdigit() and len(last) < 19:
        found = page_snapshots.record_review(scope, int(last), by=request.user.get_username())
        if found:
            whose = next(iter(scope.merchants)) if len(scope.merchants) == 1 else None
            audit_log.record_audit_entry_for(
                actor_from_request(request), "seen", "pagesnapshot", last, after={"changes": len(found)}, merchant=whose
            )
            messages.success(request, _("Marked as seen: your name and the time stand beside each change."))
    return HttpResponseRedirect(reverse("admin:payment_page_security"))


def export_view(_site: Any, request: HttpRequest) -> HttpResponse:
    """Everything in one file for the assessor: CSV, or JSON with ``?format=json``."""
    scope = _find_scope(request, EXPORT_SNAPSHOT_PERMISSION)
    rows = list(_list_export_rows(scope))
    audit_log.record_audit_entry_for(
        actor_from_request(request), "export", "pagesnapshot", "all", after={"rows": len(rows)}
    )
    as_json = request.GET.get("format") == "json"
    text = json.dumps(rows, indent=1, ensure_ascii=False) if as_json else _render_csv(rows)
    kind = "application/json" if as_json else "text/csv"
    answer = HttpResponse(text, content_type=f"{kind}; charset=utf-8")
    name = f"payment-page-security-{clock.real_now():%Y%m%d-%H%M}.{'json' if as_json else 'csv'}"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    answer["Cache-Control"] = "no-store"
    return answer


def _find_scope(request: HttpRequest, right: str) -> AccessScope:
    scope = permissions.find_access_scope(request.user, right)
    if not scope:
        raise PermissionDenied
    return scope


def _may_review(scope: AccessScope) -> bool:
    """A review counts for a merchant or for the installation, so a user restricted to channels cannot make one."""
    return scope.everything or bool(scope.merchants)


def _list_scripts() -> list[dict[str, str]]:
    """Our own scripts, each with its hash and why the page needs it."""
    facts = page_inventory.inventory_installation()
    base, frame = settings.GATEWAY_BASE_URL, page_inventory.FRAME_PATH
    return [
        {
            "address": base + page_inventory.SCRIPT_PATH,
            "hash": facts[f"script {page_inventory.SCRIPT_PATH}"],
            "why": _("Draws the form in the merchant's page and opens the hosted fields. It never sees a card number."),
            "authorised": _("The page's integrity attribute; every build stays under its own hash."),
        },
        {
            "address": f"{base}{page_inventory.SECOND_SCRIPT_LABEL}",
            "hash": facts[f"script {page_inventory.SECOND_SCRIPT_LABEL}"],
            "why": _("What the form needs beyond a card: other ways to pay, stored cards, the bank's sheet."),
            "authorised": _(
                "Its hash is part of the first script, which loads it; every build stays under its own hash."
            ),
        },
        {
            "address": f"{base}{frame} · script",
            "hash": facts[f"script {frame}"],
            "why": _("Takes card number and security code inside the hosted field and sends them to this gateway."),
            "authorised": _("The hash in the frame's policy: no other script runs there."),
        },
        {
            "address": f"{base}{frame} · style",
            "hash": facts[f"style {frame}"],
            "why": _("How the hosted field looks."),
            "authorised": _("The hash in the frame's policy: no other style is applied there."),
        },
    ]


def _list_wallets(scope: AccessScope) -> list[dict[str, Any]]:
    """Wallet providers' scripts of the channels within reach."""
    rows = WalletProvider.objects.filter(scope.where("channel__merchant", "channel")).defer("identity_sealed")
    rows = rows.select_related("channel__merchant").order_by("channel__merchant__name", "channel__name", "wallet")
    return [
        {"address": one.address, "wallet": one.row.wallet, "channel": one.row.channel}
        for one in page_inventory.list_wallet_scripts(list(rows[:MAX_EXPORTED_ROWS]))
    ]


def _list_headers() -> list[dict[str, Any]]:
    words = {
        page_inventory.FRAME_PATH: _("The hosted field, as shop.example frames it"),
        page_inventory.SCRIPT_PATH: _("The script"),
        page_inventory.SHOPPER_PAGE_PATH: _(
            "Pages a shopper is sent to (3-D Secure, banks, wallets), before what one payment adds"
        ),
        page_inventory.HOSTED_PAGE_PATH: _("The hosted payment page, without a merchant's colours"),
    }
    return [
        {"path": path, "words": words[path], "rows": page_inventory.fetch_page_headers(path, query).items()}
        for path, query in page_inventory.INVENTORIED_PAGES.items()
    ]


def _list_shown_snapshots(scope: AccessScope) -> Any:
    found = page_snapshots.list_snapshots(scope).select_related("channel__merchant").order_by("-id")
    return found.prefetch_related(page_snapshots.prefetch_reviews(scope))


def _render_change(row: PageSnapshot, is_unseen: bool) -> dict[str, Any]:
    return {"row": row, "unseen": is_unseen, "looks": row.reviews.all(), "first": _is_first_snapshot(row)}


def _is_first_snapshot(row: PageSnapshot) -> bool:
    return all(change["before"] is None for change in row.changes) and len(row.changes) == len(row.facts)


def _list_violations(scope: AccessScope) -> Any:
    """Reported violations: of every site for users with access to everything; of this gateway's pages for others."""
    found = PolicyViolation.objects.order_by("-last_at")
    if scope.everything:
        return found
    base = urlsplit(settings.GATEWAY_BASE_URL)
    return found.filter(page__startswith=f"{base.scheme}://{base.netloc}/")


def _list_export_rows(scope: AccessScope) -> Iterator[dict[str, Any]]:
    """Rows for the export: kind, name, value, and further details."""

    def row(
        kind: str, name: str, value: str, note: str = "", at: Any = None, count: int | None = None
    ) -> dict[str, Any]:
        return {
            "kind": kind,
            "name": name,
            "value": value,
            "note": note,
            "at": at.isoformat() if at else "",
            "count": count,
        }

    yield row("build", "widget", widget_hash.widget_integrity(), settings.GATEWAY_BUILD_NUMBER, clock.real_now())
    for one in _list_scripts():
        yield row("script", one["address"], one["hash"], f"{one['why']} {one['authorised']}")
    for found in _list_wallets(scope):
        whose = f"{found['channel'].merchant} / {found['channel']}"
        yield row("wallet script", f"{found['wallet']}, {whose}", found["address"])
    for shown in _list_headers():
        for name, value in shown["rows"]:
            yield row("header", f"{shown['path']} {name}", value, str(shown["words"]))
    for snapshot in _list_shown_snapshots(scope)[:MAX_EXPORTED_ROWS]:
        looks = "; ".join(f"seen by {look.by} at {look.at.isoformat()}" for look in snapshot.reviews.all())
        where = f"{snapshot.channel.merchant} / {snapshot.channel}" if snapshot.channel else ""
        for change in snapshot.changes:
            name = f"{change['name']} {where}".strip()
            yield row("change", name, f"{change['before'] or ''} → {change['after'] or ''}", looks, snapshot.at)
    for each in _list_violations(scope)[: csp_reports.MAX_STORED_VIOLATIONS]:
        name = f"{each.page} {each.directive}"
        yield row("violation", name, each.blocked, f"since {each.first_at.isoformat()}", each.last_at, each.count)


def _render_csv(rows: list[dict[str, Any]]) -> str:
    """CSV text. Cells that a spreadsheet would run as a formula begin with an apostrophe."""
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=("kind", "name", "value", "note", "at", "count"))
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {name: escape_csv_formula(cell) if isinstance(cell, str) else cell for name, cell in row.items()}
        )
    return file.getvalue()


def build_page_security_urls(site: Any) -> list[URLPattern]:
    """The routes of the page, its form and its export."""

    def view(shown: Callable[[Any, HttpRequest], HttpResponse], decorate: Callable[[Any], Any]) -> Any:
        return decorate(site.admin_view(lambda request: shown(site, request)))

    return [
        path("payment-page-security/", view(page_security_view, require_safe), name="payment_page_security"),
        path("payment-page-security/seen/", view(mark_reviewed_view, require_POST), name="payment_page_security_seen"),
        path("payment-page-security/export/", view(export_view, require_safe), name="payment_page_security_export"),
    ]

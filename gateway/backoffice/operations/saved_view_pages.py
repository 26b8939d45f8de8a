"""Addresses of saved views and of own columns: keeping, opening and deleting them.

Functions: gateway.backoffice.kit.saved_views and list_columns.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

from django.apps import apps
from django.contrib import admin as django_admin
from django.contrib import messages
from django.contrib.admin.views.main import ORDER_VAR
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from gateway.access import audit_log, permissions
from gateway.backoffice.kit import list_columns, saved_views
from gateway.backoffice.kit.base import actor_from_request
from gateway.backoffice.kit.saved_views import SavedViewError
from gateway.models import SavedView

MAX_QUERY_FIELDS: Final = 100


def build_saved_view_urls(site: Any) -> list[URLPattern]:
    """The addresses for the site."""
    return [
        path("views/save/", site.admin_view(save_posted_view), name="saved_view_save"),
        path("views/columns/", site.admin_view(save_posted_columns), name="list_columns"),
        path("views/<uuid:view>/", site.admin_view(open_view), name="saved_view_open"),
        path("views/<uuid:view>/delete/", site.admin_view(delete_view), name="saved_view_delete"),
    ]


def save_posted_view(request: HttpRequest) -> HttpResponse:
    """Save the list that the form was sent from as a view."""
    page = request.POST.get("page", "")
    _check_list(request, page)
    query = _read_query_string(request.POST.get("query", ""))
    back = redirect(_build_list_address(page, query))
    try:
        row = saved_views.save_view(
            request.user, page, request.POST.get("name", ""), query, shared="shared" in request.POST
        )
    except SavedViewError as refused:
        messages.error(request, str(refused))
        return back
    _record(request, "view saved", row)
    messages.success(request, _("The view “%s” is kept.") % row.name)
    return back


def save_posted_columns(request: HttpRequest) -> HttpResponse:
    """Save the columns that the user wants to see in a list, and lead back to it."""
    page = request.POST.get("page", "")
    _check_list(request, page)
    # The order of a list may name a column by its place.
    query = {
        name: text
        for name, text in _read_query_string(request.POST.get("query", "")).items()
        if name not in (list_columns.COLUMNS_PARAMETER, ORDER_VAR)
    }
    titles = django_admin.site.get_model_admin(apps.get_model(page)).list_column_titles(request)  # type: ignore[attr-defined]  # every page is a BackofficePage
    first = next(iter(titles), "")
    columns = list_columns.parse_columns(",".join(request.POST.getlist("column")), list(titles), first)
    # The first column's box is disabled, so browsers do not send it: without any other, it is the only one.
    list_columns.save_columns(request.user, page, [] if "usual" in request.POST else columns or [first])
    return redirect(_build_list_address(page, query))


def open_view(request: HttpRequest, view: UUID) -> HttpResponse:
    """Lead to the list as it was kept; the reader's own rights decide what it shows."""
    row = _find_view(request, view)
    return redirect(_build_list_address(row.page, row.query))


def delete_view(request: HttpRequest, view: UUID) -> HttpResponse:
    """Delete one's own view."""
    row = _find_view(request, view)
    if row.owner_id != request.user.pk:
        raise PermissionDenied
    back = redirect(_build_list_address(row.page, {}))
    if request.method == "POST":
        _record(request, "view deleted", row)
        row.delete()
        messages.success(request, _("The view “%s” is deleted.") % row.name)
    return back


def _check_list(request: HttpRequest, page: str) -> None:
    """Raises Http404 for a list that is none, PermissionDenied for one that the user may not see."""
    viewed = saved_views.find_viewed_list(page)
    if viewed is None:
        raise Http404
    if not permissions.has_permission(request.user, viewed.right):
        raise PermissionDenied


def _find_view(request: HttpRequest, ident: UUID) -> SavedView:
    row = saved_views.find_view(request.user, ident)
    if row is None:
        raise Http404
    return row


def _read_query_string(text: str) -> dict[str, str]:
    try:
        return dict(parse_qsl(text.removeprefix("?"), max_num_fields=MAX_QUERY_FIELDS))
    except ValueError:
        return {}


def _build_list_address(page: str, query: dict[str, str]) -> str:
    address = reverse(f"admin:{saved_views.require_viewed_list(page).address}")
    return f"{address}?{urlencode(query)}" if query else address


def _record(request: HttpRequest, action: str, row: SavedView) -> None:
    about = {"page": row.page, "name": row.name, "shared": row.shared}
    audit_log.record_audit_entry_for(actor_from_request(request), action, "savedview", str(row.pk), after=about)

"""Saved views of lists: search, filters, columns and order under a name, one's own or shared.

A list is named by the label of its model. The parameters of its address are all that is kept, so that the link
of a view opens the list with the reader's own rights. A shared view is seen by users whose rights on the list reach at
least as far as those of who shared it, since its name and its search may speak of a merchant. Source:
docs/decisions/0086.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.apps import apps
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.core import clock
from gateway.core.masking import contains_card_number
from gateway.models import SavedView

MAX_SAVED_VIEWS: Final = 50
"""Views that one user may keep of one list."""
MAX_SHARED_VIEWS: Final = 50
"""Shared views of others that a list offers."""
MAX_VIEW_QUERY_CHARS: Final = 2_000
MAX_VIEW_NAME_CHARS: Final = 60


PASSING_PARAMETERS: Final = frozenset(
    {"after", "before", "p", "all", "last", "accepted", "sums", "e", "_changelist_filters"}
)
"""Parameters of an address that a view does not keep: the place in the list, and what was just done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewedList:
    """A list of the back office: the name of its address, and the right to see it."""

    address: str
    right: str


def find_viewed_list(page: str) -> ViewedList | None:
    """The list of a model, by the model's label; None if it has no page, or no views."""
    try:
        model = apps.get_model(page)
    except (LookupError, ValueError):
        return None
    options = model._meta
    page_of_model = admin.site._registry.get(model)
    if page != options.label_lower or not getattr(page_of_model, "has_views", False):
        return None
    return ViewedList(
        address=f"{options.app_label}_{options.model_name}_changelist",
        right=f"{options.app_label}.view_{options.model_name}",
    )


def require_viewed_list(page: str) -> ViewedList:
    """The list of a model. Raises LookupError if it has no page."""
    found = find_viewed_list(page)
    if found is None:
        raise LookupError(page)
    return found


class SavedViewError(Exception):
    """The view cannot be kept; the text is for its owner."""


def read_query(values: Mapping[str, str]) -> dict[str, str]:
    """The parameters of a list's address that a view keeps."""
    return {name: text for name, text in values.items() if text and name not in PASSING_PARAMETERS}


def save_view(user: Any, page: str, name: str, query: Mapping[str, str], *, shared: bool) -> SavedView:
    """Save a view; one of the same name is replaced. Raises SavedViewError."""
    name = name.strip()
    if not name or len(name) > MAX_VIEW_NAME_CHARS or "\0" in name:
        raise SavedViewError(_("Give the view a name of at most %d characters.") % MAX_VIEW_NAME_CHARS)
    kept = read_query(query)
    if sum(len(key) + len(text) for key, text in kept.items()) > MAX_VIEW_QUERY_CHARS:
        raise SavedViewError(_("The search and filters of this view are too long."))
    typed = [*kept, *kept.values()]
    if any("\0" in text for text in typed):
        raise SavedViewError(_("The search and filters have a character that cannot be kept."))
    if any(contains_card_number(text) for text in (name, *typed)):
        raise SavedViewError(_("A whole card number is not kept, in no name and no search."))
    scope = permissions.serialize_access_scope(permissions.find_access_scope(user, require_viewed_list(page).right))
    with transaction.atomic():
        # Two at once count one after the other.
        get_user_model().objects.select_for_update(no_key=True).get(pk=user.pk)
        own = SavedView.objects.filter(owner=user.pk, page=page)
        if own.exclude(name=name).count() >= MAX_SAVED_VIEWS:
            raise SavedViewError(_("You have %d views of this list. Delete one first.") % MAX_SAVED_VIEWS)
        row, _new = SavedView.objects.update_or_create(
            owner=user,
            page=page,
            name=name,
            defaults={"query": kept, "shared": shared, "scope": scope, "saved_at": clock.real_now()},
        )
    return row


def find_view(user: Any, ident: UUID) -> SavedView | None:
    """A view that the user may open: their own, or a shared one."""
    row = SavedView.objects.filter(pk=ident).select_related("owner").first()
    return row if row is not None and may_open(user, row) else None


def may_open(user: Any, row: SavedView) -> bool:
    """Whether the user may open a view."""
    viewed = find_viewed_list(row.page)
    if viewed is None:
        return False
    right = viewed.right
    if not permissions.has_permission(user, right):
        return False
    return row.owner_id == user.pk or (row.shared and permissions.still_has_permission(user, right, row.scope))


def list_views(user: Any, page: str) -> list[SavedView]:
    """The views of a list that the user may open: their own first, then the shared ones of others, by name."""
    own = SavedView.objects.filter(owner=user.pk, page=page).select_related("owner").order_by("name")
    others = _select_within_reach(user, page).exclude(owner=user.pk).select_related("owner").order_by("name")
    return [*own[:MAX_SAVED_VIEWS], *(row for row in others[:MAX_SHARED_VIEWS] if may_open(user, row))]


def _select_within_reach(user: Any, page: str) -> QuerySet[SavedView]:
    """The shared views of a list that :func:`may_open` lets the user open, picked by the database, so that however many
    views of others hide none of them."""
    rows, right = SavedView.objects.filter(page=page, shared=True), require_viewed_list(page).right
    scope = permissions.find_access_scope(user, right)
    if scope.everything:
        return rows
    channels = permissions.list_permitted_channels(user, right).values_list("pk", flat=True)
    return rows.filter(
        scope__everything=False,
        scope__merchants__contained_by=[ident.hex for ident in scope.merchants],
        scope__channels__contained_by=[ident.hex for ident in channels],
    )


def build_view_panel(user: Any, page: str, values: Mapping[str, str]) -> dict[str, Any]:
    """The panel of views of a list for its template; ``values``: the parameters of its present address."""
    query = read_query(values)
    return {
        "page": page,
        "query": urlencode(query),
        "rows": [
            {
                "row": row,
                "address": reverse("admin:saved_view_open", args=[row.pk]),
                "own": row.owner_id == user.pk,
                "here": row.query == query,
            }
            for row in list_views(user, page)
        ],
        "name_max": MAX_VIEW_NAME_CHARS,
    }

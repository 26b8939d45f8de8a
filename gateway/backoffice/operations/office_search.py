"""One search for the whole back office: payments by whatever is at hand, merchants, channels, pages, and what other
apps add. It stands in the header of every page, and opens with / and Ctrl-K.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.admin import site
from django.db.models import Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.access.permissions import AccessScope
from gateway.backoffice.kit.entity_names import label_channel
from gateway.backoffice.kit.formatting import format_local, format_money
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.time_limit import SearchTooBroadError
from gateway.backoffice.payments import payment_search, search_terms
from gateway.backoffice.payments.chain_words import build_payment_pill
from gateway.backoffice.payments.payment_filters import PaymentFilters
from gateway.backoffice.payments.payment_titles import format_payment_title
from gateway.backoffice.payments.search_terms import FullCardNumberError, SearchTerm
from gateway.core import identifiers
from gateway.core.masking import mask_text
from gateway.models import Channel, Merchant, Payment, RequestLog

MAX_ROWS_PER_KIND: Final = 5
MIN_NAME_CHARS: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficeHit:
    """One result: its title, what it is, and the address of its page. ``icon``: a name of the theme's symbols."""

    title: str
    description: str
    link: str
    icon: str = "payments"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSource:
    """Rows of another app that a text may name, for users with ``right``, within their scope."""

    right: str
    find: Callable[[AccessScope, str], Iterable[OfficeHit]]


_SOURCES: Final[list[SearchSource]] = []


def register_search_source(source: SearchSource) -> SearchSource:
    """Add a source to the search; other apps call it when their pages are loaded."""
    _SOURCES.append(source)
    return source


def search_office(request: HttpRequest, text: str, pages: Iterable[OfficeHit]) -> list[OfficeHit]:
    """Everything that ``text`` may name and this user may see. ``pages``: of the navigation, narrowed by the text here.
    Raises FullCardNumberError."""
    text = text.strip()[: search_terms.MAX_SEARCH_CHARS].replace("\0", "")
    if not text:
        return []
    found = [*_find_payments(request, text), *_find_requests(request, text)]
    for source in _SOURCES:
        if scope := permissions.find_access_scope(request.user, source.right):
            found += source.find(scope, text)
    found += _find_entities(request, text)
    return found + [page for page in pages if text.casefold() in page.title.casefold()][:MAX_ROWS_PER_KIND]


def _find_payments(request: HttpRequest, text: str) -> Iterable[OfficeHit]:
    scope = permissions.find_access_scope(request.user, "gateway.view_payment")
    if not scope:
        return
    exact, costly = False, []
    for term in search_terms.list_search_readings(text):
        if term.shape == "orderStart" and exact:
            continue
        if search_terms.is_costly(term):
            costly.append(term)
            continue
        hits = _find_by_term(scope, term)
        exact = exact or bool(hits)
        yield from hits
    for term in costly if not exact else ():
        hits = _find_by_term(scope, term)
        yield from hits
        if hits:
            return


def _find_by_term(scope: AccessScope, term: SearchTerm) -> list[OfficeHit]:
    """The newest payments of one reading of a text, and a link to all of them where there are more."""
    try:
        page = payment_search.find_payments_page(scope, term, PaymentFilters(), size=MAX_ROWS_PER_KIND)
    except SearchTooBroadError:
        return []
    hits = [_build_payment_hit(row, term) for row in page.rows]
    if page.after:
        title = _("All payments: %(what)s %(value)s") % {"what": term.about, "value": mask_text(term.value)}
        address = f"{reverse('admin:gateway_payment_changelist')}?{urlencode({'q': term.typed})}"
        hits.append(OfficeHit(title=title, description=_("list"), link=address, icon="list"))
    return hits


def _find_requests(request: HttpRequest, text: str) -> Iterable[OfficeHit]:
    """The request of an ndc, also where it made no payment."""
    ndc = identifiers.parse_ndc(text)
    scope = permissions.find_access_scope(request.user, "gateway.view_requestlog")
    if ndc is None or not scope:
        return
    for row in RequestLog.objects.filter(pk=ndc):
        page: Any = site.get_model_admin(RequestLog)
        if page.get_queryset(request).filter(pk=row.pk).exists():
            address = reverse("admin:gateway_requestlog_change", args=[row.pk])
            yield OfficeHit(title=f"{row.method} {row.path}", description=_("Request"), link=address, icon="list")


def _build_payment_hit(row: Payment, term: SearchTerm) -> OfficeHit:
    order = mask_text(row.merchant_transaction_id)
    parts = (
        str(build_payment_pill(row)["text"]),
        format_local(row.created_at, "minutes"),
        order,
        row.merchant.name,
        term.about,
    )
    return OfficeHit(
        title=f"{format_payment_title(row)} {format_money(row.amount, row.currency)}",
        description=" · ".join(part for part in parts if part),
        link=build_payment_page_url(row.pk),
    )


def _find_entities(request: HttpRequest, text: str) -> Iterable[OfficeHit]:
    """Merchants and channels by a part of their name, or by entityId."""
    if len(text) < MIN_NAME_CHARS:
        return
    ident = identifiers.parse_id(text.replace("-", "").lower())
    named = Q(pk=ident) if ident is not None else Q(name__icontains=text)
    merchants: Any = permissions.list_permitted_merchants(request.user, "gateway.view_merchant")
    for row in merchants.filter(named).order_by("name")[:MAX_ROWS_PER_KIND]:
        yield _build_entity_hit(row, str(row), _("Merchant"), "storefront")
    channels: Any = permissions.list_permitted_channels(request.user, "gateway.view_channel").select_related("merchant")
    for row in channels.filter(named).order_by("name")[:MAX_ROWS_PER_KIND]:
        yield _build_entity_hit(row, label_channel(row), _("Channel"), "hub")


def _build_entity_hit(row: Merchant | Channel, title: str, what: str, icon: str) -> OfficeHit:
    address = reverse(f"admin:gateway_{row._meta.model_name}_change", args=[row.pk])
    return OfficeHit(title=title, description=what, link=address, icon=icon)


__all__ = ["FullCardNumberError", "OfficeHit", "SearchSource", "register_search_source", "search_office"]

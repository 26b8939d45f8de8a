"""3-D Secure authentications, read-only. A channel's 3-D Secure settings are on the channel's pages."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy

from gateway.backoffice.kit.base import ReadOnlyPage
from gateway.backoffice.kit.formatting import mask_texts
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.backoffice.kit.list_filters import build_period_filter
from gateway.core import identifiers
from gateway.models import Authentication


@admin.register(Authentication)
class AuthenticationAdmin(ReadOnlyPage):
    lists_from_standby = True
    nothing = gettext_lazy("An authentication begins with a payment on a channel that has 3-D Secure on.")
    list_display = ("created_at", "network", "flow", "trans_status", "code", "merchant", "payment_link")
    list_select_related = ("merchant",)
    list_filter = (build_period_filter("created_at"), "step", "flow", "trans_status", "network")
    linked_lookups = ("id",)
    search_fields = ("id",)
    search_help_text = gettext_lazy("Payment id, or the authentication's own")
    ordering = ("-id",)
    readonly_fields = ("payment_link",)
    exclude = ("number_sealed", "proof_sealed", "scenario", "return_url")

    @admin.display(description=gettext_lazy("payment"))
    def payment_link(self, row: Authentication) -> str:
        if row.payment is None:
            return "–"
        return format_html('<a class="th-link" href="{}">{}</a>', build_payment_page_url(row.payment), row.payment.hex)

    def get_fields(self, request: HttpRequest, obj: Authentication | None = None) -> Any:
        """The columns, with the payment as a link to its page."""
        names = super().get_fields(request, obj)
        return list(dict.fromkeys("payment_link" if name == "payment" else name for name in names))

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Authentication | None:
        """The row as its page shows it: what a merchant sent is masked, ids too (decision 0052)."""
        row: Authentication | None = super().get_object(request, object_id, from_field)
        for name in ("ask", "messages", "request", "answer") if row is not None else ():
            setattr(row, name, mask_texts(getattr(row, name)))
        return row

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Authentication], search_term: str
    ) -> tuple[QuerySet[Authentication], bool]:
        """Search by exact keys only: each of them has an index."""
        term = search_term.strip()
        if not term:
            return queryset, False
        ident = identifiers.parse_id(term.replace("-", ""))
        return (queryset.filter(Q(pk=ident) | Q(payment=ident)) if ident else queryset.none()), False

"""Releases of authorizations at their acquirers after a FINAL follow-up or an expiry, read-only.

Source: docs/follow-ups.md, The end of an authorization.
"""

from __future__ import annotations

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as lazy

from gateway.backoffice.kit.base import ReadOnlyPage
from gateway.backoffice.kit.formatting import format_money
from gateway.backoffice.kit.links import build_payment_page_url
from gateway.core import identifiers
from gateway.models import AuthorizationRelease


@admin.register(AuthorizationRelease)
class AuthorizationReleaseAdmin(ReadOnlyPage):
    """Releases of authorizations: their state, tries and failures."""

    nothing = lazy(
        "A release stands here once a follow-up with sequence=FINAL, an expiry or a renewal left some of a hold."
    )
    list_display = ("created_at", "merchant", "cause", "released_amount", "state", "tries", "result_code")
    list_display_links = ("created_at",)
    list_select_related = ("merchant",)
    list_filter = ("state", "cause")
    search_fields = ("authorization",)
    search_help_text = lazy("The id of the authorization, which is the first payment of its chain")
    ordering = ("-id",)
    fields = (
        "authorization_link", "merchant", "channel", "cause", "state", "released_amount", "tries", "result_code",
        "reversal_link", "created_at", "due_at", "ended_at",
    )  # fmt: skip
    readonly_fields = fields
    actions = None

    @admin.display(description=lazy("released"))
    def released_amount(self, row: AuthorizationRelease) -> str:
        return format_money(row.amount, row.currency)

    @admin.display(description=lazy("authorization"))
    def authorization_link(self, row: AuthorizationRelease) -> SafeString:
        address = build_payment_page_url(row.authorization)
        return format_html('<a class="th-link break-all" href="{}">{}</a>', address, row.authorization.hex)

    @admin.display(description=lazy("last reversal, or the renewal"))
    def reversal_link(self, row: AuthorizationRelease) -> SafeString | str:
        if row.payment is None:
            return "–"
        address = build_payment_page_url(row.payment)
        return format_html('<a class="th-link break-all" href="{}">{}</a>', address, row.payment.hex)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuthorizationRelease], search_term: str
    ) -> tuple[QuerySet[AuthorizationRelease], bool]:
        """Search by the authorization's exact id."""
        term = search_term.strip()
        if not term:
            return queryset, False
        ident = identifiers.parse_id(term.replace("-", "").lower())
        return (queryset.filter(authorization=ident) if ident else queryset.none()), False

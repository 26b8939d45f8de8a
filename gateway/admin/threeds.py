"""3-D Secure in the back office: how each channel authenticates, and the authentications to look at."""

from __future__ import annotations

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from gateway import identifiers
from gateway.admin.kit import OfMerchant, ReadOnly
from gateway.models import Authentication, ThreeDSecureConfiguration


@admin.register(ThreeDSecureConfiguration)
class ThreeDSecureConfigurationAdmin(OfMerchant):
    merchant_path, channel_path = "channel__merchant", "channel"
    list_display = ("channel", "networks", "on_unavailable", "on_attempt", "challenge_minutes", "method")
    list_select_related = ("channel",)
    autocomplete_fields = ("channel",)


@admin.register(Authentication)
class AuthenticationAdmin(ReadOnly):
    list_display = ("created_at", "network", "flow", "trans_status", "code", "merchant", "payment")
    list_select_related = ("merchant",)
    list_filter = ("step", "flow", "trans_status", "network")
    search_fields = ("id",)
    search_help_text = "Payment id, or the authentication's own"
    ordering = ("-id",)
    exclude = ("number_sealed", "proof_sealed", "scenario", "return_url")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Authentication], search_term: str
    ) -> tuple[QuerySet[Authentication], bool]:
        """By exact keys only: each of them has an index."""
        term = search_term.strip()
        if not term:
            return queryset, False
        ident = identifiers.parse_id(term.replace("-", ""))
        return (queryset.filter(Q(pk=ident) | Q(payment=ident)) if ident else queryset.none()), False

"""Access tokens in the back office: issued here, shown once, rotated and revoked.

Only users with the right "Can issue, rotate and revoke access tokens" see the buttons; the addresses refuse others.
Source: Part A, Authentication, 2.
"""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from gateway import tokens
from gateway.admin.kit import OfMerchant, actor
from gateway.models import SCOPES, AccessToken

RIGHT = "gateway.issue_accesstoken"
CONFIRM = "revoke"
"""What has to be typed before tokens are revoked."""


class TokenForm(forms.ModelForm):
    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in SCOPES], initial=list(SCOPES), widget=forms.CheckboxSelectMultiple
    )

    class Meta:
        model = AccessToken
        fields = ("name", "merchant", "channel", "scopes", "ends_at")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        channel, merchant = data.get("channel"), data.get("merchant")
        if channel is not None and merchant is not None and channel.merchant_id != merchant.pk:
            raise forms.ValidationError({"channel": f"{channel} is not a channel of {merchant}."})
        return data


@admin.register(AccessToken)
class AccessTokenAdmin(OfMerchant):
    form = TokenForm
    writes = (RIGHT,)
    list_display = (
        "name",
        "hint",
        "merchant",
        "channel",
        "scopes",
        "created_at",
        "ends_at",
        "revoked_at",
        "last_used_at",
    )
    list_select_related = ("merchant", "channel")
    list_filter = ("merchant",)
    search_fields = ("name", "hint")
    actions = ("rotate", "revoke")
    readonly_fields = ("hint", "created_at", "created_by", "revoked_at", "replaces", "last_used_at", "last_used_ip")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may(request, RIGHT)

    def has_change_permission(self, request: HttpRequest, obj: AccessToken | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: AccessToken | None = None) -> bool:
        return False

    def has_issue_permission(self, request: HttpRequest) -> bool:
        return self.may(request, RIGHT)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """The form, and after it the one page that shows the token."""
        if request.method != "POST" or not self.has_add_permission(request):
            return super().add_view(request, form_url, extra_context)
        form = self.get_form(request)(request.POST)
        if not form.is_valid():
            return super().add_view(request, form_url, extra_context)
        chosen = form.cleaned_data
        token, secret = tokens.issue(
            chosen["merchant"], name=chosen["name"], by=actor(request), channel=chosen["channel"],
            scopes=chosen["scopes"], ends_at=chosen["ends_at"],
        )  # fmt: skip
        return self._show_once(request, [(token, secret.reveal())])

    @admin.action(description="Rotate: issue a successor, the old one ends in 7 days", permissions=["issue"])
    def rotate(self, request: HttpRequest, queryset: QuerySet[AccessToken]) -> HttpResponse:
        made = []
        for token in queryset.filter(revoked_at__isnull=True):
            successor, secret = tokens.rotate(token, by=actor(request))
            made.append((successor, secret.reveal()))
        if not made:
            messages.warning(request, "Revoked tokens cannot be rotated; nothing was changed.")
            return HttpResponseRedirect(reverse("admin:gateway_accesstoken_changelist"))
        return self._show_once(request, made)

    @admin.action(description="Revoke…", permissions=["issue"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[AccessToken]) -> HttpResponse | None:
        """Ask first, and have the word typed: what is revoked stops working at once and for good."""
        chosen = queryset.filter(revoked_at__isnull=True)
        if request.POST.get("confirm", "").strip().lower() != CONFIRM:
            context = {
                **self.admin_site.each_context(request), "title": "Revoke access tokens", "opts": self.model._meta,
                "chosen": chosen, "word": CONFIRM, "wrong": "confirm" in request.POST,
            }  # fmt: skip
            return render(request, "admin/gateway/accesstoken/revoke.html", context)
        count = 0
        for token in chosen:
            tokens.revoke(token, by=actor(request))
            count += 1
        messages.success(request, f"{count} token{'' if count == 1 else 's'} revoked.")
        return None

    def _show_once(self, request: HttpRequest, made: list[tuple[AccessToken, str]]) -> HttpResponse:
        entity = [(token, text, (token.channel or token.merchant.channels.first() or token.merchant).entity_id)
                  for token, text in made]  # fmt: skip
        context = {
            **self.admin_site.each_context(request),
            "title": "Access token",
            "opts": self.model._meta,
            "made": entity,
            "base_url": settings.GATEWAY_BASE_URL,
        }
        answer = render(request, "admin/gateway/accesstoken/shown_once.html", context)
        answer["Cache-Control"] = "no-store"
        return answer

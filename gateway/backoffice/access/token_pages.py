"""Access tokens in the back office: issued, shown once, rotated and revoked.

Only users who may issue tokens see the buttons; for others the addresses answer 403 and name who can grant the right.
Issuing and revoking need a recent authentication. Source: Part A, Authentication, 2.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.decorators import display

from gateway.access import permissions, tokens
from gateway.access.permissions import RowOwner
from gateway.backoffice.access import token_approvals
from gateway.backoffice.access.independence import NotIndependentError
from gateway.backoffice.access.token_approvals import TOKEN_ISSUE_PERMISSION
from gateway.backoffice.kit import charts
from gateway.backoffice.kit.base import MerchantPage, actor_from_request
from gateway.backoffice.sign_in import session
from gateway.core import clock
from gateway.core.identifiers import first_id_at
from gateway.db.statement import execute_sql
from gateway.models import TOKEN_SCOPES, AccessToken
from gateway.payments.operation_table import OPERATIONS

REVOKE_CONFIRMATION: Final = "revoke"
"""The word to type before tokens are revoked."""
CALL_CHART_DAYS: Final = 14
TOKEN_ORIGIN_FIELDS: Final = ("created_at", "created_by", "approved_at", "approved_by")
TOKEN_LIMIT_FIELDS: Final = ("max_amount", "max_day_amount", "operations")
MAX_COUNTED_TOKEN_CALLS: Final = 10_000
"""A day's calls of a token are counted up to this number."""

_CALLS: Final = """
SELECT day, (
    SELECT count(*) FROM (
        SELECT 1 FROM gateway_requestlog
        WHERE entity_id = ANY(%(entities)s::uuid[]) AND id >= low AND id < high AND token = %(token)s::uuid
        LIMIT %(most)s
    ) AS counted
) FROM unnest(%(days)s::date[], %(lows)s::uuid[], %(highs)s::uuid[]) AS days(day, low, high) ORDER BY day
"""


class AccessTokenForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """Issues a token: name, scopes, channel, limits and end."""

    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in TOKEN_SCOPES],
        initial=list(TOKEN_SCOPES),
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("payments: make them; read: look at them; test: endpoints of the test environment"),
    )

    operations = forms.MultipleChoiceField(
        label=gettext_lazy("operations"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        choices=[
            (code, format_lazy("{}: {}", code, gettext_lazy(OPERATIONS[code].title)))
            for code in tokens.TOKEN_OPERATIONS
        ],
        help_text=gettext_lazy("Payment types that the token may make. None chosen: all."),
    )

    class Meta:
        model = AccessToken
        fields = ("name", "merchant", "channel", "scopes", "ends_at", *TOKEN_LIMIT_FIELDS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "merchant" in self.fields:
            self.fields["merchant"].required = False
            self.fields["merchant"].help_text = _("A token of the merchant speaks for all of its channels.")
            self.fields["channel"].help_text = _("Choose one to bind the token to it.")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        channel, merchant = data.get("channel"), data.get("merchant")
        if channel is not None and merchant is None and "merchant" not in self.errors:
            data["merchant"] = channel.merchant
        elif channel is not None and merchant is not None and channel.merchant_id != merchant.pk:
            raise forms.ValidationError(
                {
                    "channel": _("%(channel)s is not a channel of %(merchant)s.")
                    % {"channel": channel, "merchant": merchant}
                }
            )
        elif merchant is None and channel is None and not {"merchant", "channel"} & set(self.errors):
            raise forms.ValidationError({"merchant": _("Choose a merchant or a channel.")})
        for name in ("max_amount", "max_day_amount"):
            if data.get(name) is not None and data[name] <= 0:
                self.add_error(name, _("Give an amount above 0, or none for no limit."))
        if data.get("ends_at") is not None and data["ends_at"] <= clock.real_now():
            raise forms.ValidationError({"ends_at": _("This moment has passed already.")})
        return data

    def _post_clean(self) -> None:
        """Nothing: gateway.access.tokens makes the row, not this form."""


@admin.register(AccessToken)
class AccessTokenAdmin(MerchantPage):
    form = AccessTokenForm
    write_verbs = (TOKEN_ISSUE_PERMISSION,)
    nothing = gettext_lazy("A token is what a server calls the API with. It is shown once, when it is issued.")
    list_display = ("name", "hint", "merchant", "channel", "rights_of", "state", "last_used_at", "last_used_ip")
    list_select_related = ("merchant", "channel")
    sensitive = True
    list_filter = ("merchant",)
    search_fields = ("name", "hint")
    search_help_text = gettext_lazy("Name, or the last four characters")
    actions = ("rotate", "revoke")
    readonly_fields = (
        "hint", "state", "created_at", "created_by", "approved_at", "approved_by",
        "revoked_at", "replaces", "last_used_at", "last_used_ip", "call_chart",
    )  # fmt: skip
    fieldsets = (
        (None, {"fields": ("name", "merchant", "channel", "scopes", "ends_at")}),
        (gettext_lazy("Limits of its own"), {"fields": TOKEN_LIMIT_FIELDS}),
        (gettext_lazy("Use"), {"fields": ("state", "hint", "last_used_at", "last_used_ip", "call_chart")}),
        (gettext_lazy("Where it comes from"), {"fields": (*TOKEN_ORIGIN_FIELDS, "replaces", "revoked_at")}),
    )
    add_fieldsets = (
        (None, {"fields": ("name", "merchant", "channel", "scopes", "ends_at")}),
        (gettext_lazy("Limits of its own"), {"fields": TOKEN_LIMIT_FIELDS}),
    )
    change_form_outer_after_template = "admin/gateway/accesstoken/acts.html"

    # --- who may ------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.may(request, TOKEN_ISSUE_PERMISSION)

    def has_change_permission(self, request: HttpRequest, obj: AccessToken | None = None) -> bool:
        return False

    def has_issue_permission(self, request: HttpRequest) -> bool:
        return self.may(request, TOKEN_ISSUE_PERMISSION)

    # --- what is shown ------------------------------------------------------------

    @display(description=gettext_lazy("scopes"))
    def rights_of(self, token: AccessToken) -> str:
        return ", ".join(token.scopes)

    @admin.display(description=gettext_lazy("state"))
    def state(self, token: AccessToken) -> SafeString:
        kind, words = describe_token_state(token)
        return format_html('<span class="th-pill {}">{}</span>', kind, words)

    @admin.display(description=gettext_lazy("calls per day"))
    def call_chart(self, token: AccessToken) -> SafeString:
        today = clock.real_now().replace(hour=0, minute=0, second=0, microsecond=0)
        days = [today - timedelta(days=back) for back in reversed(range(CALL_CHART_DAYS))]
        values = {
            "entities": [token.merchant_id, *token.merchant.channels.values_list("pk", flat=True)],
            "token": token.pk,
            "most": MAX_COUNTED_TOKEN_CALLS,
            "days": days,
            "lows": [first_id_at(day) for day in days],
            "highs": [first_id_at(day + timedelta(days=1)) for day in days],
        }
        bars = [(f"{day:%m-%d}", int(count)) for day, count in execute_sql(_CALLS, values)]
        return charts.draw_bars(bars, title=_("Calls per day, the last %d days") % CALL_CHART_DAYS)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        token = self.get_object(request, object_id) if object_id is not None else None
        issues = token is not None and token.revoked_at is None and self.may(request, TOKEN_ISSUE_PERMISSION, token)
        context: dict[str, Any] = {"issues": issues}
        if token is not None and token_approvals.is_awaiting_approval(token):
            context |= {
                "waits": True,
                "why_not": token_approvals.explain_approval_refusal(token, _require_user(request)),
            }
        return super().changeform_view(request, object_id, form_url, {**context, **(extra_context or {})})

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        return (
            super().changelist_view(request, extra_context)
            if self.may(request, "view")
            else self._render_refusal(request)
        )

    # --- issuing ------------------------------------------------------------

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """The form, and after it the one page that shows the token."""
        if not self.has_add_permission(request):
            return self._render_refusal(request)
        if (ask := session.require_reauthentication(request)) is not None:
            return ask
        form = self.get_form(request)(request.POST) if request.method == "POST" else None
        if form is None or not form.is_valid():
            only_save = {"show_save_and_add_another": False, "show_save_and_continue": False}
            return super().add_view(request, form_url, {**only_save, **(extra_context or {})})
        chosen = form.cleaned_data
        channel = chosen["channel"]
        place = RowOwner(merchant=chosen["merchant"].pk, channel=channel and channel.pk)
        if not self.scope(request, TOKEN_ISSUE_PERMISSION).covers(place):
            raise PermissionDenied
        user = _require_user(request)
        token, secret = tokens.issue_token(
            chosen["merchant"],
            name=chosen["name"],
            by=actor_from_request(request),
            channel=channel,
            scopes=chosen["scopes"],
            ends_at=chosen["ends_at"],
            requested_by=user.pk,
            limits=tokens.TokenLimits(
                amount=chosen["max_amount"], day_amount=chosen["max_day_amount"], operations=chosen["operations"]
            ),
            approved=not token_approvals.needs_token_approval(user, place, chosen["scopes"]),
        )
        return self._show_once(request, [(token, secret.reveal())])

    def _render_refusal(self, request: HttpRequest) -> HttpResponse:
        """Answer 403, with the names of users who can grant the right."""
        context = session.build_page_context(
            self.admin_site,
            request,
            title=_("You may not issue access tokens"),
            opts=self.opts,
            givers=list_token_granters(request.user),
        )
        return render(request, "admin/gateway/accesstoken/refused.html", context, status=403)

    # --- rotating and revoking ------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        own = [
            path(f"<path:object_id>/{verb}/", self.admin_site.admin_view(view), name=f"gateway_accesstoken_{verb}")
            for verb, view in (("rotate", self.rotate_one), ("revoke", self.revoke_one), ("approve", self.approve_one))
        ]
        return [*own, *super().get_urls()]

    def rotate_one(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._run_single_action(request, object_id, self.rotate)

    def revoke_one(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._run_single_action(request, object_id, self.revoke)

    def approve_one(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Approve a waiting token."""

        def approve(request: HttpRequest, chosen: QuerySet[AccessToken]) -> None:
            try:
                done = token_approvals.approve_waiting_token(
                    chosen.get(), by=_require_user(request), actor=actor_from_request(request)
                )
            except NotIndependentError as fault:
                messages.error(request, str(fault))
                return
            if done:
                messages.success(request, _("The token works from now on."))
            else:
                messages.warning(request, _("This token does not wait for a decision any more."))

        return self._run_single_action(request, object_id, approve)

    def _run_single_action(self, request: HttpRequest, object_id: str, act: Any) -> HttpResponse:
        """The button of a single token; it calls the list's action."""
        if self._row(request, object_id) is None or not self.may(
            request, TOKEN_ISSUE_PERMISSION, self._row(request, object_id)
        ):
            raise PermissionDenied
        back = reverse("admin:gateway_accesstoken_change", args=(object_id,))
        if request.method != "POST":
            return HttpResponseRedirect(back)
        if (ask := session.require_reauthentication(request, back)) is not None:
            return ask
        return act(request, self.get_queryset(request).filter(pk=object_id)) or HttpResponseRedirect(back)

    @admin.action(
        description=gettext_lazy("Rotate: issue a successor, the old one ends in 7 days"), permissions=["issue"]
    )
    def rotate(self, request: HttpRequest, queryset: QuerySet[AccessToken]) -> HttpResponse:
        back = reverse("admin:gateway_accesstoken_changelist")
        if (ask := session.require_reauthentication(request, back)) is not None:
            return ask
        made, user = [], _require_user(request)
        for token in self.own(request, queryset, TOKEN_ISSUE_PERMISSION).filter(revoked_at__isnull=True):
            waits = token_approvals.needs_token_approval(user, token_approvals.place_from_token(token), token.scopes)
            successor, secret = tokens.rotate_token(
                token, by=actor_from_request(request), requested_by=user.pk, approved=not waits
            )
            made.append((successor, secret.reveal()))
        if not made:
            messages.warning(request, _("Revoked tokens cannot be rotated; nothing was changed."))
            return HttpResponseRedirect(back)
        return self._show_once(request, made)

    @admin.action(description=gettext_lazy("Revoke…"), permissions=["issue"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[AccessToken]) -> HttpResponse | None:
        """Revoke tokens after the confirmation word was typed; they stop working at once and for good."""
        back = reverse("admin:gateway_accesstoken_changelist")
        if (ask := session.require_reauthentication(request, back)) is not None:
            return ask
        chosen = self.own(request, queryset, TOKEN_ISSUE_PERMISSION).filter(revoked_at__isnull=True)
        if request.POST.get("confirm", "").strip().lower() != REVOKE_CONFIRMATION:
            context = session.build_page_context(
                self.admin_site,
                request,
                title=_("Revoke access tokens"),
                opts=self.opts,
                chosen=chosen,
                word=REVOKE_CONFIRMATION,
                wrong="confirm" in request.POST,
                action_url=back,
            )
            return render(request, "admin/gateway/accesstoken/revoke.html", context)
        count = 0
        for token in chosen:
            tokens.revoke_token(token, by=actor_from_request(request))
            count += 1
        messages.success(request, ngettext("%d token was revoked.", "%d tokens were revoked.", count) % count)
        return None

    def _show_once(self, request: HttpRequest, made: list[tuple[AccessToken, str]]) -> HttpResponse:
        entity = [
            (token, text, (token.channel or token.merchant.channels.first() or token.merchant).entity_id)
            for token, text in made
        ]
        context = session.build_page_context(
            self.admin_site,
            request,
            title=_("Access token"),
            opts=self.opts,
            made=entity,
            base_url=settings.GATEWAY_BASE_URL,
        )
        answer = render(request, "admin/gateway/accesstoken/shown_once.html", context)
        answer["Cache-Control"] = "no-store"
        return answer


def describe_token_state(token: AccessToken) -> tuple[str, str]:
    """A token's state: class and text of its pill."""
    now = clock.real_now()
    if token.revoked_at is not None:
        return "bad", _("revoked")
    if token.approved_at is None:
        return "warn", _("waits for a second person")
    if token.ends_at is None:
        return "good", _("valid")
    if token.ends_at <= now:
        return "bad", _("ended")
    days = (token.ends_at - now).days + 1
    return "warn", _("ends in 1 day") if days == 1 else _("ends in %d days") % days


def _require_user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # the back office requires a sign-in
    return request.user


def list_token_granters(user: Any) -> list[str]:
    """Users who can give ``user`` the right to issue tokens: managers and PSP staff of the merchants they see."""
    merchants = set(permissions.list_permitted_merchants(user).values_list("pk", flat=True)[:20])
    merchants |= set(permissions.list_permitted_channels(user).values_list("merchant", flat=True)[:20])
    staff = User.objects.filter(is_active=True, grants__role__in=("psp", "manager")).distinct()[:200]
    return sorted(
        each.get_full_name() or each.get_username()
        for each in staff
        if any(
            permissions.has_permission(each, "gateway.add_grant", RowOwner(merchant=merchant)) for merchant in merchants
        )
    )[:10]

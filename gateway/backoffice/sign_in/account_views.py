"""The user's own account: second factors, sessions, single sign-on; and setting the first password by a link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from allauth.socialaccount.models import SocialAccount
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_decode, urlsafe_base64_encode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from unfold.forms import AdminPasswordChangeForm

from gateway.access import audit_log, signin
from gateway.backoffice.kit.base import actor_from_request
from gateway.backoffice.sign_in import session, sign_in_views, time_zones
from gateway.backoffice.sign_in.user_agent import describe_browser
from gateway.core.client_address import resolve_client_ip
from gateway.models import SignIn


def show_account(site: Any, request: HttpRequest) -> HttpResponse:
    """The page of the user's own account, with its actions."""
    if request.method == "POST":
        return _handle_action(site, request)
    here, factors = session.find_current_sign_in(request), signin.list_second_factors(request.user)
    context = session.build_page_context(
        site,
        request,
        title=_("Your account"),
        here=here,
        running=[(one, describe_browser(one.agent)) for one in signin.list_open_sessions(request.user)],
        before=signin.find_previous_sign_in(here) if here is not None else None,
        required=signin.is_second_factor_required(),
        app=any(one.type == signin.TOTP_FACTOR for one in factors),
        codes_left=signin.count_recovery_codes(request.user),
        passkeys=[one for one in factors if one.type == signin.PASSKEY_FACTOR],
        linked=_has_single_sign_on(request),
        zone=time_zones.read_zone(request.user),
        zones=time_zones.ZONES,
        page_keys=time_zones.has_page_keys(request.user),
        grants=request.user.grants.select_related("psp", "division", "merchant", "channel"),  # type: ignore[union-attr]
    )
    return TemplateResponse(request, "admin/account.html", context)


def _end_one_session(_site: Any, request: HttpRequest) -> HttpResponse | None:
    key = _parse_uuid(request.POST.get("session", ""))
    if key is None:
        _end_sessions(request, SignIn.objects.none())
    else:
        _end_sessions(request, SignIn.objects.filter(user=request.user.pk, pk=key))
    return None


def _end_other_sessions(_site: Any, request: HttpRequest) -> HttpResponse | None:
    _end_sessions(request, session.list_other_sign_ins(request))
    return None


def _end_sessions(request: HttpRequest, rows: QuerySet[SignIn]) -> None:
    assert request.user.is_authenticated
    count = signin.end_sessions(rows, by=request.user.get_username())
    if count:
        audit_log.record_audit_entry(
            actor_from_request(request), "end sessions", request.user, after={"sessions": count}
        )
    messages.success(request, ngettext("%d session was ended.", "%d sessions were ended.", count) % count)


def _has_single_sign_on(request: HttpRequest) -> bool:
    return bool(SocialAccount.objects.filter(user=request.user.pk).exists())


def _unlink_single_sign_on(_site: Any, request: HttpRequest) -> HttpResponse | None:
    assert request.user.is_authenticated
    if SocialAccount.objects.filter(user=request.user.pk).delete()[0]:
        audit_log.record_audit_entry(
            actor_from_request(request), "single sign-on", request.user, after={"subject": None}
        )
        messages.success(request, _("Single sign-on does not lead to this account any more."))
    return None


def _choose_zone(_site: Any, request: HttpRequest) -> HttpResponse | None:
    chosen = request.POST.get("zone", "").strip()
    if time_zones.store_zone(request.user, chosen):
        messages.success(request, _("Times are shown in %s from now on.") % (chosen or "UTC"))
    else:
        messages.error(request, _("%s is no time zone. Choose one of the list, such as Europe/Berlin.") % chosen[:64])
    return None


def _choose_page_keys(_site: Any, request: HttpRequest) -> HttpResponse | None:
    on = request.POST.get("keys") == "on"
    time_zones.store_page_keys(request.user, on)
    messages.success(request, _("Single keys are on.") if on else _("Single keys are off."))
    return None


_ACTS: Final[dict[str, tuple[bool, Callable[[Any, HttpRequest], HttpResponse | None]]]] = {
    "end": (False, _end_one_session),
    "end others": (False, _end_other_sessions),
    "unlink": (True, _unlink_single_sign_on),
    "zone": (False, _choose_zone),
    "keys": (False, _choose_page_keys),
}
"""The page's actions: whether one needs a recent authentication, and its function."""


def _handle_action(site: Any, request: HttpRequest) -> HttpResponse:
    here = HttpResponseRedirect(reverse("admin:account"))
    guarded, verb = _ACTS.get(request.POST.get("act", ""), (False, None))
    if verb is None:
        return here
    if guarded and (ask := session.require_reauthentication(request)) is not None:
        return ask
    return verb(site, request) or here


def _parse_uuid(text: str) -> str | None:
    """``text`` if it is a hyphenated UUID."""
    return text if len(text) == 36 and all(letter in "0123456789abcdef-" for letter in text) else None


# --- the first password ---------------------------------------------------------------------------------------------


def build_invitation_link(user: User) -> str:
    """A link that sets the user's password once, until settings.PASSWORD_RESET_TIMEOUT has passed."""
    ident = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("admin:welcome", args=(ident, default_token_generator.make_token(user)))


def accept_invitation(site: Any, request: HttpRequest, ident: str, token: str) -> HttpResponse:
    """The page that an invitation link opens: it sets the password."""
    user = _find_invited_user(ident)
    if user is None or not default_token_generator.check_token(user, token):
        return render(request, "admin/invitation-ended.html", status=404)
    form = AdminPasswordChangeForm(user, request.POST or None)
    form.fields.pop("usable_password", None)
    if request.method == "POST" and form.is_valid():
        form.save()
        signin.end_sessions(SignIn.objects.filter(user=user.pk), by=user.get_username())
        by = audit_log.Actor(name=user.get_username(), ip=resolve_client_ip(request))
        audit_log.record_audit_entry(by, "set password", user)
        messages.success(request, _("Your password is set. Sign in with it."))
        return HttpResponseRedirect(reverse("admin:login"))
    context = session.build_page_context(
        site, request, title=_("Choose your password"), form=form, name=user.get_username()
    )
    # Not "no-referrer", which makes browsers send "Origin: null" with the form, and that is taken for a forgery; the
    # site's own policy tells the address to nobody else either.
    return TemplateResponse(request, "admin/welcome.html", context)


def _find_invited_user(ident: str) -> User | None:
    try:
        key = int(urlsafe_base64_decode(ident).decode())
    except (ValueError, UnicodeDecodeError, OverflowError):
        return None
    users = get_user_model()._default_manager
    return users.filter(pk=key, is_active=True, is_staff=True).first() if 0 < key < 2**31 else None


def build_account_urls(site: Any) -> list[URLPattern]:
    """URL patterns of the account pages, for the admin site."""

    def open_to_all(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        return never_cache(lambda request, **rest: view(site, request, **rest))

    def signed_in(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        page: Callable[..., HttpResponse] = site.admin_view(lambda request, **rest: view(site, request, **rest))
        return page

    return [
        path("set-up/", signed_in(lambda _site, request: sign_in_views.choose_factor_setup(request)), name="set_up"),
        path("account/", signed_in(show_account), name="account"),
        path("welcome/<str:ident>/<str:token>/", open_to_all(accept_invitation), name="welcome"),
    ]

"""Signing in: password, then a code of an authenticator app; setting that app up; showing again who one is.

Between password and code nobody is signed in: the session holds who is on their way, for ten minutes.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

import qrcode
import qrcode.image.svg
from django import forms
from django.contrib import messages
from django.contrib.auth import authenticate, get_user_model, login
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from unfold.forms import AuthenticationForm
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from gateway import audit, clock, signin, totp
from gateway.admin import session
from gateway.api.door import client_ip
from gateway.secret import Secret

PENDING: Final = "signing_in"
OFFERED: Final = "offered_factor"
PENDING_FOR: Final = timedelta(minutes=10)
BACKEND: Final = "gateway.rights.ByGrant"
ISSUER: Final = "Tollhouse"


class PasswordForm(AuthenticationForm):
    """Name and password. Tries are counted before they are made."""

    def clean(self) -> dict[str, Any]:
        name, ip = str(self.cleaned_data.get("username") or ""), client_ip(self.request)
        try:
            signin.count_try(name, ip)
        except signin.LockedOut as locked:
            raise _locked(locked) from None
        try:
            return super().clean()
        except forms.ValidationError:
            # A name that nobody has is not told of: strangers would fill the trail.
            if known := get_user_model()._default_manager.filter(username=name).first():
                audit.record(audit.Actor(name=name, ip=ip), "refused", known)
            raise


class CodeForm(forms.Form):
    code = forms.CharField(
        label=gettext_lazy("Code"), max_length=40, strip=True,
        widget=UnfoldAdminTextInputWidget(
            attrs={"autocomplete": "one-time-code", "inputmode": "text", "autofocus": "", "spellcheck": "false"}
        ),
    )  # fmt: skip


class AgainForm(forms.Form):
    proof = forms.CharField(
        label=gettext_lazy("Password, or a code of your app"), max_length=256, strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "current-password", "autofocus": ""}),
    )  # fmt: skip


def _locked(locked: signin.LockedOut) -> forms.ValidationError:
    at = f"{locked.until:%H:%M} UTC"
    return forms.ValidationError(_("Too many tries. The next may be made at %s.") % at, code="locked")


def safe_next(request: HttpRequest) -> str:
    """Where to go on: an address of ours, or home."""
    wanted = request.POST.get("next") or request.GET.get("next") or ""
    ours = url_has_allowed_host_and_scheme(wanted, allowed_hosts={request.get_host()}, require_https=False)
    return wanted if ours else reverse("admin:index")


# --- password -------------------------------------------------------------------------------------------------------


def password(site: Any, request: HttpRequest, extra: dict[str, Any]) -> HttpResponse:
    """The sign-in page. A right password goes on to the code, or home where none is asked for."""
    if request.method == "GET" and site.has_permission(request):
        return HttpResponseRedirect(safe_next(request))

    class Page(LoginView):
        template_name = "admin/login.html"
        authentication_form = PasswordForm
        extra_context = {
            **site.each_context(request), "title": _("Sign in"), "subtitle": None, "app_path": request.get_full_path(),
            "username": request.user.get_username(), **extra,
        }  # fmt: skip

        def form_valid(self, form: AuthenticationForm) -> HttpResponse:
            return _password_was_right(request, form.get_user())

    request.current_app = site.name
    answer: HttpResponse = never_cache(Page.as_view())(request)
    return answer


def _password_was_right(request: HttpRequest, user: User) -> HttpResponse:
    if not user.is_staff:
        messages.error(request, _("This account does not work in the back office."))
        return HttpResponseRedirect(reverse("admin:login"))
    onward = safe_next(request)
    if not signin.needs_factor(user):
        signin.forgive(user.get_username(), client_ip(request))
        return _sign_in(request, user, onward, factor=None)
    request.session.cycle_key()
    request.session[PENDING] = {"user": user.pk, "at": clock.real().timestamp(), "next": onward}
    return HttpResponseRedirect(reverse("admin:code" if signin.has_factor(user) else "admin:set_up_factor"))


def _sign_in(request: HttpRequest, user: User, onward: str, *, factor: str | None) -> HttpResponse:
    request.session.pop(PENDING, None)
    login(request, user, backend=BACKEND)
    row = session.remember(request, second_factor=factor is not None)
    session.refresh(request)
    by = audit.Actor(name=user.get_username(), ip=client_ip(request))
    audit.record(by, "sign in", user, after={"with": factor or "password"})
    before = signin.last_before(row)
    if before is None:
        messages.info(request, _("This is your first sign-in."))
    else:
        told = {"when": f"{before.at:%Y-%m-%d %H:%M} UTC", "where": before.ip or "–"}
        messages.info(request, _("Your last sign-in: %(when)s from %(where)s.") % told)
    if factor == "recovery code":
        left = signin.recovery_codes_left(user)
        messages.warning(request, _("You used a recovery code; %d are left.") % left)
    return HttpResponseRedirect(onward)


# --- the second factor ----------------------------------------------------------------------------------------------


def _pending(request: HttpRequest) -> tuple[User, str] | None:
    """Who has shown their password and not yet a code, and where they are going."""
    found = request.session.get(PENDING)
    if not found or clock.real() - datetime.fromtimestamp(found["at"], tz=UTC) > PENDING_FOR:
        return None
    user = get_user_model()._default_manager.filter(pk=found["user"], is_active=True, is_staff=True).first()
    return (user, found["next"]) if user is not None else None


def _back_to_password(request: HttpRequest) -> HttpResponse:
    return HttpResponseRedirect(f"{reverse('admin:login')}?{urlencode({'next': safe_next(request)})}")


def code(site: Any, request: HttpRequest) -> HttpResponse:
    """The page that asks for a code of the app, or a recovery code."""
    if (pending := _pending(request)) is None:
        return _back_to_password(request)
    user, onward = pending
    if not signin.has_factor(user):
        return HttpResponseRedirect(reverse("admin:set_up_factor"))
    form = CodeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        factor = _checked(request, user, form, "code")
        if factor is not None:
            return _sign_in(request, user, onward, factor=factor)
    return _asking(site, request, form, title=_("Second step"), text=_(
        "Type the six digits that your authenticator app shows. Without the app, type one of your recovery codes."
    ))  # fmt: skip


def _checked(request: HttpRequest, user: User, form: forms.Form, field: str) -> str | None:
    """The second factor that was typed; None, with the form's errors, when it was none."""
    ip = client_ip(request)
    try:
        signin.count_try(user.get_username(), ip)
    except signin.LockedOut as locked:
        form.add_error(field, _locked(locked))
        return None
    factor = signin.check_factor(user, form.cleaned_data[field])
    if factor is None:
        audit.record(audit.Actor(name=user.get_username(), ip=ip), "refused", user)
        form.add_error(field, _("This code is wrong or was used already. A new one comes every 30 seconds."))
        return None
    signin.forgive(user.get_username(), ip)
    return factor


def set_up_factor(site: Any, request: HttpRequest) -> HttpResponse:
    """Set up the app: for whoever is on their way in and has none, and for whoever is signed in and wants one."""
    pending = _pending(request)
    signed_in = site.has_permission(request)
    if pending is None and not signed_in:
        return _back_to_password(request)
    user, onward = (request.user, reverse("admin:account")) if signed_in else pending  # type: ignore[misc]
    if signin.has_factor(user):
        return HttpResponseRedirect(reverse("admin:account" if signed_in else "admin:code"))
    if signed_in and (ask := session.ask_again(request)) is not None:
        return ask
    form = CodeForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and (codes := _confirmed(request, user, form)) is not None:
        signin.forgive(user.get_username(), client_ip(request))
        request.session.pop(OFFERED, None)
        if not signed_in:
            _sign_in(request, user, onward, factor="code")
        session.factor_set_up(request)
        return show_codes(site, request, codes, onward)
    secret = _offered(request, user).secret
    answer = _asking(
        site, request, form, title=_("Set up your authenticator app"),
        text=_("Scan the picture with an authenticator app, or type the key into it. Then type the code it shows."),
        picture=_picture(secret, user), key=_grouped(secret),
    )  # fmt: skip
    answer["Cache-Control"] = "no-store"
    return answer


def _offered(request: HttpRequest, user: User) -> signin.Offer:
    """The factor that this session sets up: the one that was shown here a moment ago, or a new one."""
    kept = request.session.get(OFFERED)
    if kept and kept["user"] == user.pk:
        sealed, at = b64decode(kept["sealed"]), datetime.fromtimestamp(kept["at"], tz=UTC)
        found = signin.Offer(row=UUID(kept["row"]), sealed=sealed, at=at)
        if found.holds:
            return found
    made = signin.offer_factor(user)
    request.session[OFFERED] = {
        "user": user.pk, "row": made.row.hex, "sealed": b64encode(made.sealed).decode(), "at": made.at.timestamp(),
    }  # fmt: skip
    return made


def _confirmed(request: HttpRequest, user: User, form: forms.Form) -> list[str] | None:
    ip = client_ip(request)
    try:
        signin.count_try(user.get_username(), ip)
    except signin.LockedOut as locked:
        form.add_error("code", _locked(locked))
        return None
    codes = signin.confirm_factor(
        user, _offered(request, user), form.cleaned_data["code"], by=audit.Actor(name=user.get_username(), ip=ip)
    )
    if codes is None:
        form.add_error("code", _("This is not the code that the app shows now. Is the clock of your phone right?"))
    return codes


def show_codes(site: Any, request: HttpRequest, codes: list[str], onward: str) -> HttpResponse:
    """The one page that shows recovery codes."""
    context = session.context_of(site, request, title=_("Your recovery codes"), codes=codes, onward=onward)
    answer = TemplateResponse(request, "admin/recovery_codes.html", context)
    answer["Cache-Control"] = "no-store"
    return answer


def _picture(secret: Secret, user: User) -> SafeString:
    """The QR code that apps read, as SVG."""
    text = totp.address(secret, user.get_username(), ISSUER)
    image = qrcode.make(text, image_factory=qrcode.image.svg.SvgPathImage, box_size=8, border=2)
    kept = BytesIO()
    image.save(kept)
    svg = kept.getvalue().decode()
    return SafeString(svg[svg.index("<svg") :])


def _grouped(secret: Secret) -> str:
    text = secret.reveal()
    return " ".join(text[place : place + 4] for place in range(0, len(text), 4))


# --- showing again who one is ---------------------------------------------------------------------------------------


def again(site: Any, request: HttpRequest) -> HttpResponse:
    """Password or code once more, before tokens, keys and secrets."""
    onward = safe_next(request)
    form = AgainForm(request.POST or None)
    if request.method == "POST" and form.is_valid() and _proved(request, form):
        session.refresh(request)
        return HttpResponseRedirect(onward)
    context = session.context_of(
        site, request, title=_("Is it you?"), form=form, next=onward,
        text=_("This page deals with tokens, keys or rights. Show once more who you are; it is good for ten minutes."),
    )  # fmt: skip
    return TemplateResponse(request, "admin/again.html", context)


def _proved(request: HttpRequest, form: AgainForm) -> bool:
    user, ip, proof = request.user, client_ip(request), form.cleaned_data["proof"]
    try:
        signin.count_try(user.get_username(), ip)
    except signin.LockedOut as locked:
        form.add_error("proof", _locked(locked))
        return False
    right = signin.check_factor(user, proof) or authenticate(request, username=user.get_username(), password=proof)
    if not right:
        audit.record(audit.Actor(name=user.get_username(), ip=ip), "refused", user)
        form.add_error("proof", _("This is neither your password nor a code that is good now."))
        return False
    signin.forgive(user.get_username(), ip)
    return True


def _asking(site: Any, request: HttpRequest, form: forms.Form, **context: Any) -> TemplateResponse:
    status = 200 if not form.errors else 422
    return TemplateResponse(
        request, "admin/second_step.html", session.context_of(site, request, form=form, **context), status=status
    )

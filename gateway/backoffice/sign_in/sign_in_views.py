"""Signing in, second factors and reauthentication: django-allauth's views in the back office's look.

allauth checks passwords, codes and passkeys; gateway.backoffice.sign_in.lockout counts wrong attempts, and
gateway.access.signin seals secrets. Source: docs/decisions/0051.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import requests
import structlog
from allauth.account.adapter import get_adapter
from allauth.account.forms import LoginForm, ReauthenticateForm
from allauth.account.internal.stagekit import clear_login
from allauth.account.views import LoginView, ReauthenticateView
from allauth.core import context
from allauth.mfa.adapter import get_adapter as factors_adapter
from allauth.mfa.base import forms as factor_forms
from allauth.mfa.base import views as factor_views
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes import views as recovery_views
from allauth.mfa.totp import views as app_views
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.internal.auth import SECRET_SESSION_KEY, generate_totp_secret
from allauth.mfa.webauthn import views as passkey_views
from allauth.mfa.webauthn.forms import (
    AddWebAuthnForm,
    AuthenticateWebAuthnForm,
    EditWebAuthnForm,
    LoginWebAuthnForm,
    ReauthenticateWebAuthnForm,
)
from allauth.mfa.webauthn.internal.auth import STATE_SESSION_KEY
from allauth.socialaccount.providers.openid_connect import views as oidc_views
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import DataError
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST
from fido2.utils import websafe_decode
from fido2.webauthn import CollectedClientData
from unfold.widgets import (
    UnfoldAdminPasswordWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanWidget,
)

from gateway.access import signin
from gateway.backoffice.sign_in import lockout, session
from gateway.backoffice.sign_in.allauth_adapters import build_lockout_error, record_refused_proof

log = structlog.get_logger(__name__)
TOTP_SETUP_TIMEOUT_S: Final = 600
"""How long a new TOTP key can be confirmed, in seconds."""
SSO: Final = "sso"
"""The provider's id in URLs."""
ASKED_AT: Final = "passkey_asked_at"
"""Session key: when a passkey challenge was made."""
RECOVERY_CODE_DIGITS: Final = settings.MFA_RECOVERY_CODE_DIGITS


def _build_text_field(label: Any, **attrs: str) -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=150,
        widget=UnfoldAdminTextInputWidget(attrs={"spellcheck": "false", "autocapitalize": "none", **attrs}),
    )


def _build_password_field(**attrs: str) -> forms.CharField:
    return forms.CharField(
        label=gettext_lazy("Password"),
        max_length=256,
        strip=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "current-password", **attrs}),
    )


# --- passwords ------------------------------------------------------------------------------------------------------


class PasswordForm(LoginForm):  # type: ignore[misc]
    """Sign-in by name and password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"] = _build_text_field(gettext_lazy("Username"), autocomplete="username", autofocus="")
        self.fields["password"] = _build_password_field()

    def add_prefix(self, field_name: str) -> str:
        """Names the input "username", which password managers recognise."""
        return str(super().add_prefix("username" if field_name == "login" else field_name))


class PasswordReauthenticationForm(ReauthenticateForm):  # type: ignore[misc]
    """Reauthentication by password."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"] = _build_password_field(autofocus="")


def change_password(request: HttpRequest, change: Callable[..., HttpResponse], extra: Any) -> HttpResponse:
    """Change the user's own password. Wrong old passwords count towards the lockout; the user's other sessions end."""
    if request.method != "POST":
        return change(request, extra)
    name = request.user.get_username()
    try:
        with lockout.guard_attempt(request, name):
            answer = change(request, extra)
            wrong = answer.status_code != 302 and "old_password" in getattr(answer, "context_data", {})["form"].errors
            if wrong:
                lockout.record_failed_attempt(request, name)
                record_refused_proof(request, request.user, "password")
    except lockout.SignInLockedError as locked:
        messages.error(request, build_lockout_error(locked).message)
        return HttpResponseRedirect(request.path)
    if answer.status_code == 302:
        session.apply_password_change(request)
    return answer


# --- codes ----------------------------------------------------------------------------------------------------------


class CountedCodeMixin:
    """A form with a TOTP or recovery code. Wrong codes are counted; a right one is used up."""

    user: Any
    fields: dict[str, forms.Field]
    cleaned_data: dict[str, Any]
    authenticator: Any

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"] = _build_text_field(
            gettext_lazy("Code"), autocomplete="one-time-code", autofocus="", inputmode="text"
        )

    def clean_code(self) -> str:
        request, name = context.request, self.user.get_username()
        try:
            with lockout.guard_attempt(request, name):
                return self._check_code(request, name)
        except lockout.SignInLockedError as locked:
            raise build_lockout_error(locked) from None

    def _check_code(self, request: HttpRequest, name: str) -> str:
        digits = "".join(filter(str.isalnum, self.cleaned_data["code"]))
        if len(digits) != RECOVERY_CODE_DIGITS and signin.count_wrong_codes(self.user) >= signin.MAX_WRONG_CODES:
            raise forms.ValidationError(
                _(
                    "There were too many wrong codes since the last right one. Use a passkey or a recovery code, or "
                    "ask your manager to remove the second factor."
                ),
                code="locked",
            )
        try:
            code = str(super().clean_code())  # type: ignore[misc]
            if self.authenticator.type == signin.TOTP_FACTOR and not signin.consume_totp_step(self.authenticator, code):
                raise factors_adapter().validation_error("incorrect_code")
        except forms.ValidationError:
            lockout.record_failed_attempt(request, name)
            record_refused_proof(request, self.user, "code")
            if lockout.is_sign_in_locked(request, name):
                raise build_lockout_error(lockout.SignInLockedError(until=lockout.next_sign_in_at())) from None
            raise
        return code


class CodeForm(CountedCodeMixin, factor_forms.AuthenticateForm):  # type: ignore[misc]
    """Second step of a sign-in: a code."""


class CodeReauthenticationForm(CountedCodeMixin, factor_forms.ReauthenticateForm):  # type: ignore[misc]
    """Reauthentication by a code."""

    def save(self) -> None:
        super().save()
        lockout.forgive_failed_attempts(context.request, self.user.get_username())


class TotpSetupForm(ActivateTOTPForm):  # type: ignore[misc]
    """Confirms a new TOTP key by its first code. The key waits in the session, sealed, for ten minutes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.user = kwargs.pop("user")
        # allauth's own form would store the key in the session in clear.
        forms.Form.__init__(self, *args, **kwargs)
        self.fields["code"] = _build_text_field(
            gettext_lazy("Code"), autocomplete="one-time-code", inputmode="numeric", autofocus=""
        )
        self.secret = _find_offered_key(context.request)

    def clean_code(self) -> str:
        request, name = context.request, self.user.get_username()
        try:
            with lockout.guard_attempt(request, name):
                try:
                    return str(super().clean_code())
                except forms.ValidationError:
                    lockout.record_failed_attempt(request, name)
                    raise forms.ValidationError(
                        _("This is not the code that the app shows now. Is the clock of your phone right?")
                    ) from None
        except lockout.SignInLockedError as locked:
            raise build_lockout_error(locked) from None


def _find_offered_key(request: HttpRequest) -> str:
    """The TOTP key that this session sets up: the one shown within TOTP_SETUP_TIMEOUT_S, or a new one."""
    kept = request.session.get(SECRET_SESSION_KEY)
    if kept and 0 <= time.time() - kept["at"] < TOTP_SETUP_TIMEOUT_S:
        return signin.open_pending_factor(kept["sealed"])
    secret = generate_totp_secret()
    request.session[SECRET_SESSION_KEY] = {"sealed": signin.seal_pending_factor(secret), "at": time.time()}
    return str(secret)


# --- passkeys -------------------------------------------------------------------------------------------------------


class _Answer(forms.JSONField):
    """A passkey's answer as JSON, made on a page of this very host and port: the library takes subdomains, too, and in
    the test environment any page. Numbers of thousands of digits and deep nesting are refused; the value is never
    shown again, as Django would parse it once more for that."""

    def to_python(self, value: Any) -> Any:
        try:
            return super().to_python(value)
        except (ValueError, RecursionError):
            raise factors_adapter().validation_error("incorrect_code") from None

    def validate(self, value: Any) -> None:
        super().validate(value)
        client = CollectedClientData(websafe_decode(value["response"]["clientDataJSON"]))
        own = f"{context.request.scheme}://{context.request.get_host()}"
        if client.origin != own or client.cross_origin is not False:
            raise factors_adapter().validation_error("incorrect_code")

    def bound_data(self, data: Any, initial: Any) -> Any:
        return initial


class _Readable(forms.Form):
    """A form with a passkey's answer, refused if the libraries cannot read it: they do not check whether it is
    complete."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["credential"] = _Answer(widget=forms.HiddenInput)

    def full_clean(self) -> None:
        try:
            super().full_clean()
        except (KeyError, ValueError, TypeError, AttributeError):
            self.cleaned_data: dict[str, Any] = {}
            self.add_error("credential", factors_adapter().validation_error("incorrect_code"))


class PasskeySignInForm(_Readable, LoginWebAuthnForm):  # type: ignore[misc]
    """Sign-in by a passkey alone."""

    def clean_credential(self) -> Authenticator:
        asked_at = context.request.session.pop(ASKED_AT, None)
        found = super().clean_credential()
        # The visitor's browser stores the challenge, so it could send the same answer twice.
        if not isinstance(asked_at, float) or not signin.take_answer(found, asked_at):
            raise factors_adapter().validation_error("incorrect_code")
        return found


class PasskeyReauthenticationForm(_Readable, ReauthenticateWebAuthnForm):  # type: ignore[misc]
    """Reauthentication by a passkey."""


class PasskeyFactorForm(_Readable, AuthenticateWebAuthnForm):  # type: ignore[misc]
    """Second step of a sign-in: a passkey."""


class AddPasskeyForm(_Readable, AddWebAuthnForm):  # type: ignore[misc]
    """Adds a passkey, or a security key that is only a second factor."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"] = _build_text_field(gettext_lazy("Name"))
        self.fields["name"].required = False
        self.fields["passwordless"] = forms.BooleanField(
            label=gettext_lazy("Sign in with it, without a password"),
            required=False,
            initial=True,
            widget=UnfoldBooleanWidget(),
            help_text=gettext_lazy("The device then asks for a PIN, finger or face. Otherwise it is a second factor."),
        )


class RenamePasskeyForm(EditWebAuthnForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"] = _build_text_field(gettext_lazy("Name"), autofocus="")


# --- pages ----------------------------------------------------------------------------------------------------------


def _build_page_view(view: Any, title: Any, *, proof: bool = False) -> Callable[..., HttpResponse]:
    """One of allauth's views as a page of the back office. ``proof``: it needs a recent authentication; allauth asks
    for one too, but not of users with neither a password nor a factor."""

    class Shown(view):  # type: ignore[misc]
        def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            if (
                proof
                and request.user.is_authenticated
                and (ask := session.require_reauthentication(request)) is not None
            ):
                return ask
            return super().dispatch(request, *args, **kwargs)

        def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
            found = {**admin.site.each_context(self.request), "title": title}
            return {**found, **super().get_context_data(**kwargs)}

    Shown.__name__ = view.__name__
    shown: Callable[..., HttpResponse] = never_cache(Shown.as_view())
    return shown


class _AppSetUp(app_views.ActivateTOTPView):  # type: ignore[misc]
    def form_valid(self, form: Any) -> HttpResponse:
        """The code that confirms the app is used up: it signs in nowhere else."""
        answer: HttpResponse = super().form_valid(form)
        app = Authenticator.objects.get(user=self.request.user.pk, type=signin.TOTP_FACTOR)
        signin.consume_totp_step(app, form.cleaned_data["code"])
        return answer

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        svg, secret = context["totp_svg"], context["form"].secret
        context["picture"] = SafeString(svg[svg.index("<svg") :])
        context["key"] = " ".join(secret[place : place + 4] for place in range(0, len(secret), 4))
        return context


class _Codes(recovery_views.ViewRecoveryCodesView):  # type: ignore[misc]
    """The one page that shows recovery codes; it then leads to the account."""

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context: dict[str, Any] = super().get_context_data(**kwargs)
        digits = [str(code) for code in context["unused_codes"]]
        context["codes"] = [" ".join(code[place : place + 4] for place in range(0, len(code), 4)) for code in digits]
        context["onward"] = reverse("admin:account")
        return context


class _SignIn(LoginView):  # type: ignore[misc]
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        sso = settings.GATEWAY_OIDC_NAME if settings.GATEWAY_OIDC_ISSUER else ""
        return {"sso": sso, **super().get_context_data(**kwargs)}


class _PasskeySignIn(passkey_views.LoginWebAuthnView):  # type: ignore[misc]
    """Sign-in by a passkey alone: makes the challenge and checks the answer."""

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        answer: HttpResponse = super().get(request, *args, **kwargs)
        if STATE_SESSION_KEY in request.session:
            request.session[ASKED_AT] = time.time()
        return answer


show_sign_in = _build_page_view(_SignIn, gettext_lazy("Sign in"))
_AGAIN: Final = gettext_lazy("Is it you?")


@never_cache
def choose_factor_setup(request: HttpRequest) -> HttpResponse:
    """The page of a user who needs a second factor and has none: which one to set up."""
    if signin.has_second_factor(request.user):
        return HttpResponseRedirect(reverse("admin:account"))
    found = session.build_page_context(admin.site, request, title=_("Set up a second factor"))
    return TemplateResponse(request, "admin/set_up.html", found)


def start_reauthentication(request: HttpRequest) -> HttpResponse:
    """Redirect to the user's first way of reauthentication. A user with neither a password nor a factor signed in by
    single sign-on, and does so again."""
    if not request.user.is_authenticated:
        return HttpResponseRedirect(reverse("account_login"))
    methods = get_adapter(request).get_reauthentication_methods(request.user)
    if not methods and not settings.GATEWAY_OIDC_ISSUER:
        raise PermissionDenied
    address = methods[0]["url"] if methods else reverse("openid_connect_login", args=(SSO,))
    return HttpResponseRedirect(f"{address}?{urlencode({'next': request.GET.get('next', '')})}")


@require_POST
def cancel_second_step(request: HttpRequest) -> HttpResponse:
    """Leave the second step; the sign-in begins again with the password."""
    clear_login(request)
    return HttpResponseRedirect(reverse("account_login"))


def show_sign_in_refused(request: HttpRequest) -> HttpResponse:
    """allauth's page for a sign-in that was refused or not finished."""
    messages.error(request, _("Single sign-on did not work. Try again, or sign in with your password."))
    return HttpResponseRedirect(reverse("account_login"))


@never_cache
def to_provider(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Begin single sign-on by a form of ours; a link from another site only shows a button. Only ``next`` is taken from
    the request: allauth would pass other parameters on to the provider."""
    if provider_id != SSO or not settings.GATEWAY_OIDC_ISSUER:
        raise Http404
    onward = str((request.POST if request.method == "POST" else request.GET).get("next", ""))
    found = {"name": settings.GATEWAY_OIDC_NAME, "onward": onward, "title": _("Sign in")}
    if request.method != "POST":
        return TemplateResponse(
            request, "admin/to_provider.html", session.build_page_context(admin.site, request, **found)
        )
    request.GET, request.POST = QueryDict(urlencode({"next": onward})), QueryDict()
    away = _wrap_provider_view(oidc_views.login)(request, provider_id=provider_id)
    address = away.get("Location", "")
    if "://" not in address:
        return away
    # The content security policy stops forms that redirect to another site, so this page refreshes to it.
    found["address"] = address
    answer = TemplateResponse(
        request, "admin/to_provider.html", session.build_page_context(admin.site, request, **found)
    )
    answer["Refresh"] = f"0; url={address}"
    return answer


_UNREADABLE: Final = (LookupError, TypeError, ValueError, AttributeError, OverflowError, DataError)
"""What allauth and the database raise for answers of a provider that are not as OpenID Connect has them."""


def _wrap_provider_view(view: Any) -> Callable[..., HttpResponse]:
    """One of allauth's steps of single sign-on, with a message if the provider is down or its answer unreadable."""

    def shown(request: HttpRequest, **rest: Any) -> HttpResponse:
        try:
            answer: HttpResponse = view(request, **rest)
        except (requests.RequestException, *_UNREADABLE) as fault:
            log.warning("single_sign_on_failed", **_describe_provider_fault(fault))
            return show_sign_in_refused(request)
        return answer

    return never_cache(shown)


def _describe_provider_fault(fault: Exception) -> dict[str, Any]:
    """What the log has of a fault: its class, the three innermost places of the code, and the address that was asked
    with the provider's status. Its message may hold what the provider sent, such as a token."""
    places = traceback.extract_tb(fault.__traceback__)[-3:]
    found: dict[str, Any] = {
        "why": type(fault).__name__,
        "at": [f"{Path(place.filename).name}:{place.lineno} {place.name}" for place in places],
    }
    request, response = getattr(fault, "request", None), getattr(fault, "response", None)
    if request is not None and request.url:
        found["asked"] = request.url.partition("?")[0]
    if response is not None:
        found["status"] = response.status_code
    return found


def redirect_to_account(_request: HttpRequest) -> HttpResponse:
    """A redirect to the page of one's own account."""
    return HttpResponseRedirect(reverse("admin:account"))


def build_sign_in_urls() -> list[URLPattern]:
    """URL patterns of allauth, under the names it expects. Sign-up and password reset by mail are left out and so do
    not exist."""
    secured = partial(_build_page_view, proof=True)
    found = [
        ("login/", show_sign_in, "account_login"),
        ("login/passkey/", _PasskeySignIn.as_view(), "mfa_login_webauthn"),
        ("login/<str:provider_id>/", to_provider, "openid_connect_login"),
        ("login/<str:provider_id>/callback/", _wrap_provider_view(oidc_views.callback), "openid_connect_callback"),
        ("login/sso/failed/", show_sign_in_refused, "socialaccount_login_error"),
        ("login/sso/cancelled/", show_sign_in_refused, "socialaccount_login_cancelled"),
        ("login/sso/nobody/", show_sign_in_refused, "socialaccount_signup"),
        ("login/inactive/", show_sign_in_refused, "account_inactive"),
        ("code/", _build_page_view(factor_views.AuthenticateView, gettext_lazy("Second step")), "mfa_authenticate"),
        ("code/cancel/", cancel_second_step, "account_cancel"),
        ("again/", start_reauthentication, "account_reauthenticate"),
        ("again/password/", _build_page_view(ReauthenticateView, _AGAIN), "password_again"),
        ("again/code/", _build_page_view(factor_views.ReauthenticateView, _AGAIN), "mfa_reauthenticate"),
        (
            "again/passkey/",
            _build_page_view(passkey_views.ReauthenticateWebAuthnView, _AGAIN),
            "mfa_reauthenticate_webauthn",
        ),
        ("code/set-up/", secured(_AppSetUp, gettext_lazy("Set up your authenticator app")), "mfa_activate_totp"),
        ("code/remove/", secured(app_views.DeactivateTOTPView, gettext_lazy("Remove the app")), "mfa_deactivate_totp"),
        ("passkeys/", redirect_to_account, "mfa_list_webauthn"),
        ("passkeys/add/", secured(passkey_views.AddWebAuthnView, gettext_lazy("Add a passkey")), "mfa_add_webauthn"),
        (
            "passkeys/<int:pk>/remove/",
            secured(passkey_views.RemoveWebAuthnView, gettext_lazy("Remove a passkey")),
            "mfa_remove_webauthn",
        ),
        (
            "passkeys/<int:pk>/edit/",
            secured(passkey_views.EditWebAuthnView, gettext_lazy("Rename a passkey")),
            "mfa_edit_webauthn",
        ),
        ("recovery-codes/", secured(_Codes, gettext_lazy("Your recovery codes")), "mfa_view_recovery_codes"),
        (
            "recovery-codes/new/",
            secured(recovery_views.GenerateRecoveryCodesView, gettext_lazy("New recovery codes")),
            "mfa_generate_recovery_codes",
        ),
        ("factors/", redirect_to_account, "mfa_index"),
    ]
    return [path(where, view, name=name) for where, view, name in found]

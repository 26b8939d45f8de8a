"""Adapters of django-allauth: accounts, second factors and single sign-on.

There is no sign-up: managers make users, and single sign-on only lets existing users in. Source: docs/decisions/0051.
"""

from __future__ import annotations

import hashlib
import hmac
import math
import time
from typing import Any, Final

import requests
from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.stagekit import clear_login
from allauth.core import context
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa import signals
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.mfa.models import Authenticator
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialAccount, SocialLogin
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from gateway.access import audit_log, signin
from gateway.backoffice.sign_in import lockout, session
from gateway.backoffice.sign_in.password_budget import PasswordBudgetSpentError, spend_password_check
from gateway.backoffice.sign_in.provider_session import ProviderSession
from gateway.core.client_address import resolve_client_ip

WRONG_CODE_TEXT: Final = gettext_lazy("This code is wrong or was used already. A new one comes every 30 seconds.")
BUSY_TEXT: Final = gettext_lazy(
    "Too many sign-ins are being tried at the moment. Try again in a few seconds, or use a passkey."
)
SSO_FAILED_TEXT: Final = gettext_lazy("Single sign-on did not work. Try again, or sign in with your password.")
ACCOUNT_REFUSED_TEXT: Final = gettext_lazy("This account does not work in the back office.")


def build_lockout_error(locked: lockout.SignInLockedError) -> forms.ValidationError:
    """The form error of an attempt during a lockout."""
    if locked.until is None:
        return forms.ValidationError(_("Another try of this name is being made. Try again."), code="locked")
    at = f"{locked.until:%H:%M} UTC"
    return forms.ValidationError(_("Too many tries. The next may be made at %s.") % at, code="locked")


def record_refused_proof(request: HttpRequest, user: Any, proof: str) -> None:
    """Write an audit entry about a wrong password or code. Unknown names get none: strangers would fill the log."""
    by = audit_log.Actor(name=user.get_username(), ip=resolve_client_ip(request))
    audit_log.record_audit_entry(by, "refused", user, after={"with": proof})


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Password checks and what follows a sign-in."""

    error_messages = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": gettext_lazy("Name or password is wrong."),
        "incorrect_password": gettext_lazy("This is not your password."),
        "account_inactive": ACCOUNT_REFUSED_TEXT,
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False

    def get_client_ip(self, request: HttpRequest) -> str:
        return resolve_client_ip(request) or "0.0.0.0"  # noqa: S104 - no address to listen on

    def is_safe_url(self, url: str | None) -> bool:
        """Whether ``next`` may lead to this address: only pages of this installation."""
        return url_has_allowed_host_and_scheme(url, allowed_hosts={context.request.get_host()}, require_https=False)

    def add_message(
        self, request: HttpRequest, level: int, *args: Any, message: str | None = None, **more: Any
    ) -> None:
        """Show messages given as text; allauth's message templates are left out, as the pages have their own."""
        if message:
            super().add_message(request, level, message=message)

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Nothing: django-axes counts attempts instead."""

    def authenticate(self, request: HttpRequest, **credentials: Any) -> Any:
        name = str(credentials.get("username") or "")
        try:
            with lockout.guard_attempt(request, name):
                if not request.user.is_authenticated and not lockout.is_known_place(request, name):
                    spend_password_check()
                user = super().authenticate(request, **credentials)
        except lockout.SignInLockedError as locked:
            raise build_lockout_error(locked) from None
        except PasswordBudgetSpentError:
            raise forms.ValidationError(BUSY_TEXT, code="busy") from None
        if user is None:
            if known := get_user_model()._default_manager.filter(username=name).first():
                record_refused_proof(request, known, "password")
            if lockout.is_sign_in_locked(request, name):
                raise build_lockout_error(lockout.SignInLockedError(until=lockout.next_sign_in_at()))
        return user

    def reauthenticate(self, user: Any, password: str) -> bool:
        right = bool(super().reauthenticate(user, password))
        if right:
            lockout.forgive_failed_attempts(context.request, user.get_username())
        return right

    def is_reauthentication_required(self, *, app: str, **kwargs: Any) -> bool:
        """A recent sign-in counts as a recent authentication."""
        return not session.is_recently_authenticated(context.request)

    def get_reauthentication_methods(self, user: Any) -> list[dict[str, Any]]:
        """Ways to authenticate again, a passkey first: it takes one touch."""
        found: list[dict[str, Any]] = super().get_reauthentication_methods(user)
        words = {
            "reauthenticate": _("Use your password"),
            "mfa_reauthenticate": _("Use a code"),
            "mfa_reauthenticate:webauthn": _("Use a passkey"),
        }
        for one in found:
            one["description"] = words.get(one["id"], one["description"])
            if one["id"] == "reauthenticate":
                one["url"] = reverse("password_again")
        return sorted(found, key=lambda one: one["id"] != "mfa_reauthenticate:webauthn")

    def pre_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse | None:
        if user.is_active and user.is_staff:
            return None
        clear_login(request)
        messages.error(request, ACCOUNT_REFUSED_TEXT)
        return HttpResponseRedirect(reverse("account_login"))

    def logout(self, request: HttpRequest) -> None:
        """Ends the sign-in record too: allauth signs a user out who signs in again by single sign-on."""
        session.end_current_session(request)
        super().logout(request)

    def post_login(self, request: HttpRequest, user: Any, **kwargs: Any) -> HttpResponse:
        answer: HttpResponse = super().post_login(request, user, **kwargs)
        session.complete_sign_in(request, user)
        return answer


class FactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Second factors, with secrets sealed by the vault."""

    error_messages = {
        **DefaultMFAAdapter.error_messages,
        "incorrect_code": WRONG_CODE_TEXT,
        "cannot_generate_recovery_codes": gettext_lazy("Set up a second factor first."),
    }

    def encrypt(self, text: str) -> str:
        return signin.seal_factor_secret(text)

    def decrypt(self, encrypted_text: str) -> str:
        return signin.open_factor_secret(encrypted_text)

    def _get_user_identifier(self, user: Any) -> str:
        return str(user.get_username())

    def _get_site_name(self) -> str:
        return settings.MFA_TOTP_ISSUER

    def generate_authenticator_name(self, user: Any, type: Any) -> str:
        count = Authenticator.objects.filter(user_id=user.pk, type=type).count()
        return str(_("Passkey %d") % (count + 1))


# --- single sign-on -------------------------------------------------------------------------------------------------


MAX_CLOCK_SKEW_S: Final = 60
"""How far the clock of the provider may be ahead of ours, in seconds."""
ISSUER_CHARS: Final = 16
MAX_SUBJECT_CHARS: Final = 160
"""A longer ``sub`` is stored as a digest: allauth's column has 191 characters."""


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def issuer_prefix(issuer: str) -> str:
    """The prefix of the ids of all users of one issuer."""
    return f"{_digest(issuer)[:ISSUER_CHARS]}:"


def identity_of(issuer: str, subject: str) -> str:
    """The id under which a user of this issuer is linked: the same ``sub`` of another issuer is another person."""
    return issuer_prefix(issuer) + (subject if len(subject) <= MAX_SUBJECT_CHARS else _digest(subject))


def build_nonce(verifier: str) -> str:
    """The nonce of one request to the provider, made of its secret (PKCE), which stays in the visitor's session."""
    return _digest(f"nonce\n{verifier}")


class BoundToIssuer(OpenIDConnectProvider):  # type: ignore[misc]
    """allauth's OpenID Connect provider, with each user's link bound to the issuer that made it, and a nonce: a code of
    another request is refused also where the provider ignores PKCE."""

    def get_pkce_params(self) -> dict[str, str]:
        found: dict[str, str] = super().get_pkce_params()
        return {**found, "nonce": build_nonce(found["code_verifier"])}

    def extract_uid(self, data: Any) -> str:
        return identity_of(self.app.settings["server_url"], super().extract_uid(data))


class SingleSignOnAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """OpenID Connect. It creates no user and grants nothing: it signs existing users in.

    The first time, the user is found by an e-mail address that the provider has verified and that exactly one user has;
    from then on by the provider's id of the person (``sub``).
    """

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        return False

    def get_provider(self, request: HttpRequest, provider: str, client_id: str | None = None) -> Any:
        return BoundToIssuer(request, app=super().get_provider(request, provider, client_id).app)

    def get_requests_session(self) -> requests.Session:
        found = ProviderSession()
        if settings.GATEWAY_OUTBOUND_CA_FILE:
            found.verify = settings.GATEWAY_OUTBOUND_CA_FILE
        return found

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        # allauth has other processes, chosen by the URL; "connect" would link an identity without signing in.
        sociallogin.state["process"] = "login"
        if not _is_id_token_for_us(sociallogin):
            _refuse_sign_in(request, SSO_FAILED_TEXT)
        authenticated_at = _read_auth_time(sociallogin)
        if settings.GATEWAY_OIDC_REQUIRE_AUTH_TIME:
            _check_auth_time(request, authenticated_at)
        request.session[session.PROVIDER_AUTHENTICATED_AT_KEY] = authenticated_at
        if sociallogin.is_existing:
            return
        user = _find_user_by_email(sociallogin)
        if user is None:
            _refuse_sign_in(request, _("No user here has this identity. Ask your manager for a user with your e-mail."))
            return
        sociallogin.connect(request, user)
        by = audit_log.Actor(name=user.get_username(), ip=resolve_client_ip(request))
        subject = str(_read_claims(sociallogin).get("sub", ""))
        audit_log.record_audit_entry(
            by, "single sign-on", user, after={"subject": subject[:150], "issuer": settings.GATEWAY_OIDC_ISSUER[:150]}
        )

    def on_authentication_error(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        _refuse_sign_in(request, SSO_FAILED_TEXT)


def _read_claims(sociallogin: SocialLogin) -> dict[str, Any]:
    """The provider's claims about the person."""
    return sociallogin.account.get_provider_account().get_user_data() or {}


def _read_auth_time(sociallogin: SocialLogin) -> float:
    """When the provider last asked the person who they are (``auth_time`` of the ID token); 0.0 if it does not say, or
    says a time that has not come: that would count as fresh until it is over."""
    said = (sociallogin.account.extra_data.get("id_token") or {}).get("auth_time")
    if isinstance(said, bool) or not isinstance(said, int | float) or not math.isfinite(said):
        return 0.0
    return float(said) if said <= time.time() + MAX_CLOCK_SKEW_S else 0.0


def _is_id_token_for_us(sociallogin: SocialLogin) -> bool:
    """Whether the ID token is of the provider of the settings, made for us and for this request, and about the person
    whose data came with it; allauth has checked ``aud``. Source: OpenID Connect Core 1.0, 3.1.3.7 and 5.3.2."""
    said = sociallogin.account.extra_data
    claims, userinfo = said.get("id_token") or {}, said.get("userinfo")
    nonce = build_nonce(str(sociallogin.state.get("pkce_code_verifier")))
    return (
        hmac.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode())
        and str(claims.get("iss")).rstrip("/") == settings.GATEWAY_OIDC_ISSUER
        and claims.get("azp", settings.GATEWAY_OIDC_CLIENT_ID) == settings.GATEWAY_OIDC_CLIENT_ID
        and "exp" in claims
        and bool(claims.get("sub"))
        and isinstance(claims["sub"], str)
        and (not userinfo or userinfo.get("sub") == claims["sub"])
    )


def _check_auth_time(request: HttpRequest, authenticated_at: float) -> None:
    """Refuse an answer that does not show that the provider asked the person anew, which ``max_age=0`` demands of it.
    Source: OpenID Connect Core 1.0, 3.1.2.1 and 3.1.3.7."""
    if not authenticated_at:
        why = _("The provider does not say when it asked who you are (auth_time). Tell your administrator.")
        _refuse_sign_in(request, why)
    if time.time() - authenticated_at >= settings.ACCOUNT_REAUTHENTICATION_TIMEOUT:
        _refuse_sign_in(request, _("The provider did not ask anew who you are (auth_time is too old). Try again."))


def _find_user_by_email(sociallogin: SocialLogin) -> User | None:
    """The one user with an e-mail address that the provider has verified. Superusers are never found by it: whoever can
    change an e-mail address, here or at the provider, would become one."""
    said = _read_claims(sociallogin)
    email = str(said.get("email") or "").strip()
    if not email or said.get("email_verified") is not True:
        return None
    found = User.objects.filter(email__iexact=email, is_active=True)[:2]
    # The database compares upper case, where letters of other scripts become ASCII, such as the dotless i.
    if len(found) != 1 or found[0].email.casefold() != email.casefold():
        return None
    # A user linked by an id is not found by e-mail again: addresses are reassigned.
    known = issuer_prefix(settings.GATEWAY_OIDC_ISSUER)
    if SocialAccount.objects.filter(user=found[0], uid__startswith=known).exists():
        return None
    return found[0] if found[0].is_staff and not found[0].is_superuser else None


def _refuse_sign_in(request: HttpRequest, why: Any) -> None:
    messages.error(request, why)
    raise ImmediateHttpResponse(HttpResponseRedirect(reverse("account_login")))


# --- what the trail has of second factors ---------------------------------------------------------------------------

_WHAT: Final = {signin.TOTP_FACTOR: "app", signin.PASSKEY_FACTOR: "passkey", signin.RECOVERY_FACTOR: "recovery codes"}


def _record_factor_change(request: HttpRequest, authenticator: Authenticator, what: str) -> None:
    user = authenticator.user
    by = audit_log.Actor(name=user.get_username(), ip=resolve_client_ip(request))
    named = {"name": authenticator.wrap().name[:100]} if authenticator.type == signin.PASSKEY_FACTOR else {}
    after = {_WHAT[authenticator.type]: what, **named}
    audit_log.record_audit_entry(
        by, "recovery codes" if authenticator.type == signin.RECOVERY_FACTOR else "second factor", user, after=after
    )


@receiver(signals.authenticator_added)
def _record_added_factor(sender: Any, request: HttpRequest, authenticator: Authenticator, **kwargs: Any) -> None:
    _record_factor_change(request, authenticator, "set up")
    if authenticator.type != signin.RECOVERY_FACTOR:
        session.apply_new_factor(request)


@receiver(signals.authenticator_removed)
def _record_removed_factor(sender: Any, request: HttpRequest, authenticator: Authenticator, **kwargs: Any) -> None:
    _record_factor_change(request, authenticator, "removed")
    if authenticator.type != signin.RECOVERY_FACTOR:
        messages.success(request, _("The second factor was removed."))


@receiver(signals.authenticator_reset)
def _record_new_codes(sender: Any, request: HttpRequest, authenticator: Authenticator, **kwargs: Any) -> None:
    _record_factor_change(request, authenticator, "made anew")


@receiver(signals.authenticator_used)
def _warn_of_few_codes(
    sender: Any, request: HttpRequest, user: Any, authenticator: Authenticator, **kwargs: Any
) -> None:
    if authenticator.type == signin.RECOVERY_FACTOR:
        left = signin.count_recovery_codes(user)
        messages.warning(
            request,
            ngettext("You used a recovery code; %d is left.", "You used a recovery code; %d are left.", left) % left,
        )

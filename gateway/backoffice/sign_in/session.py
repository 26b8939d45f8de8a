"""The session behind a page of the back office: whether it still holds, and whether its user was seen a moment ago.

Django's session only names the row (gateway.models.SignIn); the row says how old the session is and whether it was
ended from another browser.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import urlencode

from allauth.account.authentication import get_authentication_records
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway.access import audit_log, signin
from gateway.backoffice.sign_in import lockout
from gateway.core.client_address import resolve_client_ip
from gateway.core.masking import looks_like_pan
from gateway.models import SignIn

FULL_NUMBER_WARNING: Final = gettext_lazy(
    "That is a whole card number, which is neither looked for nor kept. Search for its last four digits instead."
)
SIGN_IN_SESSION_KEY: Final = "sign_in"
BACKOFFICE_PATH: Final = "/admin/"
RULES: Final = "rules"
"""What ended a session whose user has to show more than they did, or may not come in any more."""
SETUP_URL_NAMES: Final = (
    "admin:set_up", "mfa_activate_totp", "mfa_add_webauthn", "mfa_view_recovery_codes", "account_reauthenticate",
    "password_again", "admin:logout", "set_language",
)  # fmt: skip
"""Pages for who signed in with a password alone where a second factor is required: they set one up and see no more."""


class BackofficeSessionMiddleware:
    """Every page of the back office: a session that has ended, or has had its time, is signed out."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(BACKOFFICE_PATH) and request.user.is_authenticated and not self._holds(request):
            # A row that the limits of age let go on, but what is asked of its user now does not.
            signin.end_sessions(SignIn.objects.filter(pk=request.session.get(SIGN_IN_SESSION_KEY)), by=RULES)
            logout(request)
            messages.info(request, _("You were signed out. Sign in again to go on."))
        if _has_to_set_up(request):
            return HttpResponseRedirect(reverse("admin:set_up"))
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        """What no page can be asked, is asked of none: NUL, which no column holds, and whole card numbers."""
        if not request.path.startswith(BACKOFFICE_PATH):
            return None
        asked = list(request.GET.lists())
        nul = [name for name, values in asked if any("\0" in text for text in (name, *values))]
        typed = (text for name, values in request.POST.lists() for text in (name, *values))
        if "\0" in request.path or any("\0" in text for text in typed):
            raise BadRequest("a NUL character was sent")
        numbers = [name for name, values in asked if any(map(_is_card_number, values))]
        if not (nul and request.user.is_authenticated) and not numbers:
            return None
        # Nothing may repeat the number: not the page, and not its address.
        messages.warning(
            request, FULL_NUMBER_WARNING if numbers else _("No field holds what was asked for: it was left out.")
        )
        left_out = {*nul, *numbers}
        rest = [(name, value) for name, values in asked if name not in left_out for value in values]
        return HttpResponseRedirect(f"{request.path}?{urlencode(rest)}" if rest else request.path)

    def _holds(self, request: HttpRequest) -> bool:
        if not request.user.is_staff:
            return False
        row = SignIn.objects.filter(pk=request.session.get(SIGN_IN_SESSION_KEY), user=request.user.pk).first()
        if row is None:
            # A session that another way of signing in began: good where no second factor is asked for.
            if signin.is_second_factor_required() or signin.has_second_factor(request.user):
                return False
            row = start_session_record(request, second_factor=False)
        if signin.is_second_factor_required() and not row.second_factor:
            if signin.has_second_factor(request.user):
                return False
            request.has_to_set_up = True  # type: ignore[attr-defined]
        # A page that asks by itself whether there is news is no sign of a person in front of it.
        return signin.touch_session(row, used=request.headers.get("Sec-Fetch-Dest") != "empty")


def _has_to_set_up(request: HttpRequest) -> bool:
    if not getattr(request, "has_to_set_up", False):
        return False
    return not request.path.startswith(reverse("account_login")) and request.path not in map(reverse, SETUP_URL_NAMES)


def _is_card_number(text: str) -> bool:
    return looks_like_pan("".join(text.split()).replace("-", ""))


def start_session_record(request: HttpRequest, *, second_factor: bool) -> SignIn:
    """Tie the session to a row of its own; one that it had before ends."""
    signin.end_sessions(
        SignIn.objects.filter(pk=request.session.get(SIGN_IN_SESSION_KEY)), by=request.user.get_username()
    )
    agent = request.headers.get("User-Agent", "")
    row = signin.begin_session(request.user, ip=resolve_client_ip(request), agent=agent, second_factor=second_factor)
    request.session[SIGN_IN_SESSION_KEY] = str(row.pk)
    return row


def complete_sign_in(request: HttpRequest, user: Any) -> None:
    """Somebody has signed in: the session's row, the trail, and what they are told."""
    proofs = [_proof(record) for record in get_authentication_records(request, user)]
    row = start_session_record(request, second_factor=any(proof in SECOND_FACTOR_PROOFS for proof in proofs))
    by = audit_log.Actor(name=user.get_username(), ip=resolve_client_ip(request))
    audit_log.record_audit_entry(by, "sign in", user, after={"with": ", ".join(dict.fromkeys(proofs))})
    before = signin.find_previous_sign_in(row)
    if before is None:
        messages.info(request, _("This is your first sign-in."))
    else:
        told = {"when": f"{before.at:%Y-%m-%d %H:%M} UTC", "where": before.ip or "–"}
        messages.info(request, _("Your last sign-in: %(when)s from %(where)s.") % told)


SECOND_FACTOR_PROOFS: Final = frozenset({"code", "recovery code", "passkey"})
_PROOFS: Final = {signin.TOTP_FACTOR: "code", signin.RECOVERY_FACTOR: "recovery code", signin.PASSKEY_FACTOR: "passkey"}


def _proof(record: dict[str, Any]) -> str:
    """What somebody showed, as the trail names it."""
    if record["method"] == "mfa":
        return _PROOFS[record["type"]]
    return "single sign-on" if record["method"] == "socialaccount" else str(record["method"])


def apply_new_factor(request: HttpRequest) -> None:
    """The session's user has a new second factor. Sessions that none was shown in end."""
    SignIn.objects.filter(pk=request.session.get(SIGN_IN_SESSION_KEY)).update(second_factor=True)
    others = SignIn.objects.filter(user=request.user.pk, second_factor=False)
    signin.end_sessions(others.exclude(pk=request.session.get(SIGN_IN_SESSION_KEY)), by=request.user.get_username())


def find_current_sign_in(request: HttpRequest) -> SignIn | None:
    return SignIn.objects.filter(pk=request.session.get(SIGN_IN_SESSION_KEY)).first()


def end_current_session(request: HttpRequest) -> None:
    """The session ends by its user's own wish."""
    if request.user.is_authenticated and (row := find_current_sign_in(request)) is not None:
        signin.end_sessions(SignIn.objects.filter(pk=row.pk), by=request.user.get_username())


def apply_password_change(request: HttpRequest) -> None:
    """The password was changed: sessions elsewhere end, and the trail has it."""
    others = SignIn.objects.filter(user=request.user.pk).exclude(pk=request.session.get(SIGN_IN_SESSION_KEY))
    signin.end_sessions(others, by=request.user.get_username())
    lockout.forgive_failed_attempts(request, request.user.get_username())
    by = audit_log.Actor(name=request.user.get_username(), ip=resolve_client_ip(request))
    audit_log.record_audit_entry(by, "set password", request.user)


def is_recently_authenticated(request: HttpRequest) -> bool:
    """Whether the user has shown a moment ago who they are: by signing in, or again inside the session."""
    records = get_authentication_records(request, request.user)
    at = max((float(record["at"]) for record in records), default=0.0)
    return 0 <= time.time() - at < settings.ACCOUNT_REAUTHENTICATION_TIMEOUT


def require_reauthentication(request: HttpRequest, back: str | None = None) -> HttpResponse | None:
    """None where the user was seen a moment ago; else the way to the page that asks who they are.

    Views that move money or show tokens, keys and secrets begin with it. A form that was sent is not kept: the message
    says so.
    """
    if is_recently_authenticated(request):
        return None
    if request.method == "POST":
        messages.warning(request, _("Nothing was done yet: confirm that it is you, then send the form again."))
    address = reverse("account_reauthenticate")
    return HttpResponseRedirect(f"{address}?{urlencode({'next': back or request.get_full_path()})}")


def build_page_context(site: Any, request: HttpRequest, **more: Any) -> dict[str, Any]:
    """What every page's template needs."""
    return {**site.each_context(request), **more}

"""Sessions of the back office: whether one is still valid, and whether its user authenticated recently.

Django's session only names its sign-in record (gateway.models.SignIn). The record has the session's age, and whether it
was ended from another browser.
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
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.cache import add_never_cache_headers
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway.access import audit_log, signin
from gateway.backoffice.kit.formatting import format_moment
from gateway.backoffice.kit.standby_pages import note_written
from gateway.backoffice.sign_in import lockout, time_zones
from gateway.core.client_address import resolve_client_ip
from gateway.core.masking import contains_card_number
from gateway.models import SignIn

FULL_NUMBER_WARNING: Final = gettext_lazy(
    "That is a whole card number, which is neither looked for nor kept. Search for its last four digits instead."
)
SIGN_IN_SESSION_KEY: Final = "sign_in"
PROVIDER_AUTHENTICATED_AT_KEY: Final = "provider_authenticated_at"
"""Session key: when the provider of single sign-on last asked the user who they are, seconds."""
BACKOFFICE_PATH: Final = "/admin/"
PROVIDER_CALLBACK: Final = "openid_connect_callback"
"""The page to which the provider of single sign-on sends a user back."""
MAX_SEARCHED_QUERY: Final = 500
"""Characters of a stranger's query that are searched for card data; of a longer one every parameter with as many
digits as the shortest card data has, a security code, is left out."""
FEWEST_CARD_DIGITS: Final = 3
MAX_STRANGERS_PARAMETERS: Final = 50
"""Parameters of a stranger's query that are read: 800 took half of what the request may cost (decision 0050)."""
RULES: Final = "rules"
"""``ended_by`` of a session that the rules ended: its user needs a stronger sign-in, or may not sign in any more."""
SETUP_URL_NAMES: Final = (
    "admin:set_up", "mfa_activate_totp", "mfa_add_webauthn", "mfa_view_recovery_codes", "account_reauthenticate",
    "password_again", "admin:logout", "set_language",
)  # fmt: skip
"""Pages open to a user without a second factor where one is required: they set one up and see no more."""


class BackofficeSessionMiddleware:
    """Signs out sessions that were ended or are too old, on every page of the back office, and shows and reads times in
    the user's own zone."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith(BACKOFFICE_PATH):
            return self.get_response(request)
        if request.user.is_authenticated and not self._is_valid(request):
            # Not too old, but its user now needs a second factor, or may not sign in any more.
            signin.end_sessions(_select_current_sign_in(request), by=RULES)
            logout(request)
            messages.info(request, _("You were signed out. Sign in again to go on."))
        if _has_to_set_up(request):
            return HttpResponseRedirect(reverse("admin:set_up"))
        with time_zones.use_zone(getattr(request, "time_zone", "")):
            response = self.get_response(request)
        note_written(request)
        if "text/html" in response.get("Content-Type", "") and not response.has_header("Cache-Control"):
            add_never_cache_headers(response)
        return response

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        """Drop query parameters with a NUL, which no column holds, with a full card number, or a stranger's too many,
        by a redirect without them. In paths and forms a NUL is refused before (gateway.api)."""
        if not request.path.startswith(BACKOFFICE_PATH):
            return None
        if request.resolver_match is not None and request.resolver_match.url_name == PROVIDER_CALLBACK:
            return None  # its code and state are the provider's, may be long, and are shown on no page
        if _has_strangers_many_parameters(request):
            return HttpResponseRedirect(request.path)
        asked = list(request.GET.lists())
        nul = [name for name, values in asked if any("\0" in text for text in (name, *values))]
        holds_card_data = contains_card_number if _is_searched(request) else _may_hold_card_data
        numbers = [name for name, values in asked if any(map(holds_card_data, (name, *values)))]
        if not (nul and request.user.is_authenticated) and not numbers:
            return None
        # Neither the page nor its address may repeat the number.
        messages.warning(
            request, FULL_NUMBER_WARNING if numbers else _("No field holds what was asked for: it was left out.")
        )
        left_out = {*nul, *numbers}
        rest = [(name, value) for name, values in asked if name not in left_out for value in values]
        return HttpResponseRedirect(f"{request.path}?{urlencode(rest)}" if rest else request.path)

    def _is_valid(self, request: HttpRequest) -> bool:
        """Whether the session is still valid; sets ``request.has_to_set_up`` if its user has to set up a second
        factor."""
        if not request.user.is_staff:
            return False
        row = _select_current_sign_in(request).filter(user=request.user.pk).select_related("user__preference").first()
        if row is not None:
            request.time_zone = time_zones.read_zone(row.user)  # type: ignore[attr-defined]
            request.page_keys = time_zones.has_page_keys(row.user)  # type: ignore[attr-defined]
        else:
            # Begun by another way of signing in, which is enough if no second factor is required.
            if signin.is_second_factor_required() or signin.has_second_factor(request.user):
                return False
            row = start_session_record(request, second_factor=False)
        if signin.is_second_factor_required() and not row.second_factor:
            if signin.has_second_factor(request.user):
                return False
            request.has_to_set_up = True  # type: ignore[attr-defined]
        # Polling by an open page does not count as use.
        return signin.touch_session(row, used=request.headers.get("Sec-Fetch-Dest") != "empty")


def _has_strangers_many_parameters(request: HttpRequest) -> bool:
    """Whether a stranger's query has more parameters than any page of ours: the page is asked for without them."""
    many = request.META.get("QUERY_STRING", "").count("&") >= MAX_STRANGERS_PARAMETERS
    return many and not request.user.is_authenticated


def _is_searched(request: HttpRequest) -> bool:
    """Whether the query is searched for card data in every writing. A stranger's long one is not: the search would cost
    more than a stranger's request may (decision 0050)."""
    return request.user.is_authenticated or len(request.META.get("QUERY_STRING", "")) <= MAX_SEARCHED_QUERY


def _may_hold_card_data(text: str) -> bool:
    """True if there are enough digits for it, wherever they stand."""
    return sum(map(str.isdigit, text)) >= FEWEST_CARD_DIGITS


def _has_to_set_up(request: HttpRequest) -> bool:
    if not getattr(request, "has_to_set_up", False):
        return False
    return not request.path.startswith(reverse("account_login")) and request.path not in map(reverse, SETUP_URL_NAMES)


def start_session_record(request: HttpRequest, *, second_factor: bool) -> SignIn:
    """Create the session's sign-in record; the one that it had before ends."""
    signin.end_sessions(_select_current_sign_in(request), by=request.user.get_username())
    agent = request.headers.get("User-Agent", "")
    row = signin.begin_session(request.user, ip=resolve_client_ip(request), agent=agent, second_factor=second_factor)
    request.session[SIGN_IN_SESSION_KEY] = str(row.pk)
    return row


def complete_sign_in(request: HttpRequest, user: Any) -> None:
    """After a sign-in: create the session's record and an audit entry, and show the user their last sign-in."""
    proofs = [_name_proof(record) for record in get_authentication_records(request, user)]
    row = start_session_record(request, second_factor=any(proof in SECOND_FACTOR_PROOFS for proof in proofs))
    by = audit_log.Actor(name=user.get_username(), ip=resolve_client_ip(request))
    audit_log.record_audit_entry(by, "sign in", user, after={"with": ", ".join(dict.fromkeys(proofs))})
    before = signin.find_previous_sign_in(row)
    if before is None:
        messages.info(request, _("This is your first sign-in."))
    else:
        with time_zones.use_zone(time_zones.read_zone(user)):
            values = {"when": format_moment(before.at, "minutes"), "where": before.ip or "–"}
        messages.info(request, _("Your last sign-in: %(when)s from %(where)s.") % values)


SECOND_FACTOR_PROOFS: Final = frozenset({"code", "recovery code", "passkey"})
_PROOFS: Final = {signin.TOTP_FACTOR: "code", signin.RECOVERY_FACTOR: "recovery code", signin.PASSKEY_FACTOR: "passkey"}


def _name_proof(record: dict[str, Any]) -> str:
    """The name of an authentication method in audit entries."""
    if record["method"] == "mfa":
        return _PROOFS[record["type"]]
    return "single sign-on" if record["method"] == "socialaccount" else str(record["method"])


def apply_new_factor(request: HttpRequest) -> None:
    """After a second factor was added: the user's sessions without one end, but for this one."""
    _select_current_sign_in(request).update(second_factor=True)
    without_factor = list_other_sign_ins(request).filter(second_factor=False)
    signin.end_sessions(without_factor, by=request.user.get_username())


def _select_current_sign_in(request: HttpRequest) -> QuerySet[SignIn]:
    """The session's own row as a query; empty if the session has none."""
    key = request.session.get(SIGN_IN_SESSION_KEY)
    return SignIn.objects.filter(pk=key) if key is not None else SignIn.objects.none()


def find_current_sign_in(request: HttpRequest) -> SignIn | None:
    """The row of the session that the request belongs to."""
    return _select_current_sign_in(request).first()


def list_other_sign_ins(request: HttpRequest) -> QuerySet[SignIn]:
    """The user's sign-in records of other browsers than this one, ended ones too."""
    key, own = request.session.get(SIGN_IN_SESSION_KEY), SignIn.objects.filter(user=request.user.pk)
    return own.exclude(pk=key) if key is not None else own


def end_current_session(request: HttpRequest) -> None:
    """End the session on its user's own request."""
    if request.user.is_authenticated and (row := find_current_sign_in(request)) is not None:
        signin.end_sessions(SignIn.objects.filter(pk=row.pk), by=request.user.get_username())


def apply_password_change(request: HttpRequest) -> None:
    """After a password change: end the user's other sessions and write an audit entry."""
    assert request.user.is_authenticated
    signin.end_sessions(list_other_sign_ins(request), by=request.user.get_username())
    lockout.forgive_failed_attempts(request, request.user.get_username())
    by = audit_log.Actor(name=request.user.get_username(), ip=resolve_client_ip(request))
    audit_log.record_audit_entry(by, "set password", request.user)


def is_recently_authenticated(request: HttpRequest) -> bool:
    """Whether the user signed in or reauthenticated within ACCOUNT_REAUTHENTICATION_TIMEOUT. Single sign-on counts from
    the moment at which the provider asked the user: it may let somebody through whom it asked hours ago. Where it
    does not say, our own record counts."""
    asked_at = float(request.session.get(PROVIDER_AUTHENTICATED_AT_KEY) or "inf")
    times = [
        min(float(record["at"]), asked_at) if record["method"] == "socialaccount" else float(record["at"])
        for record in get_authentication_records(request, request.user)
    ]
    return 0 <= time.time() - max(times, default=0.0) < settings.ACCOUNT_REAUTHENTICATION_TIMEOUT


def require_reauthentication(request: HttpRequest, back: str | None = None) -> HttpResponse | None:
    """None if the user authenticated recently, else a redirect to the reauthentication page.

    Views that move money or show tokens, keys and secrets begin with it. A submitted form is lost then, and a message
    says so.
    """
    if is_recently_authenticated(request):
        return None
    if request.method == "POST":
        messages.warning(request, _("Nothing was done yet: confirm that it is you, then send the form again."))
    address = reverse("account_reauthenticate")
    return HttpResponseRedirect(f"{address}?{urlencode({'next': back or request.get_full_path()})}")


def build_page_context(site: Any, request: HttpRequest, **more: Any) -> dict[str, Any]:
    """The context that every page's template needs."""
    return {**site.each_context(request), **more}

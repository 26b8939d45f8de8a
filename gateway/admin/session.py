"""The session behind a page of the back office: whether it still holds, and whether its user was seen a moment ago.

Django's session only names the row (gateway.models.SignIn); the row says how old the session is and whether it was
ended from another browser.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway import audit, clock, signin
from gateway.api.door import client_ip
from gateway.models import SignIn

FRESH: Final = timedelta(minutes=10)
"""How long a proof of identity is good for tokens, keys and secrets."""
SIGN_IN: Final = "sign_in"
FRESH_AT: Final = "fresh_at"
HERE: Final = "/admin/"


class OfficeSession:
    """Every page of the back office: a session that has ended, or has had its time, is signed out."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if request.path.startswith(HERE) and request.user.is_authenticated and not self._holds(request):
            logout(request)
            messages.info(request, _("You were signed out. Sign in again to go on."))
        return self.get_response(request)

    def _holds(self, request: HttpRequest) -> bool:
        row = SignIn.objects.filter(pk=request.session.get(SIGN_IN), user=request.user.pk).first()
        if row is None:
            # A session that another way of signing in began: good where no second factor is asked for.
            if signin.needs_factor(request.user):
                return False
            row = remember(request, second_factor=False)
        if settings.GATEWAY_TOTP == "required" and not row.second_factor:
            return False
        return signin.seen(row)


def remember(request: HttpRequest, *, second_factor: bool) -> SignIn:
    """Tie the session to a row of its own."""
    agent = request.headers.get("User-Agent", "")
    row = signin.begin(request.user, ip=client_ip(request), agent=agent, second_factor=second_factor)
    request.session[SIGN_IN] = str(row.pk)
    return row


def factor_set_up(request: HttpRequest) -> None:
    """The session's user has typed a first code of an app."""
    SignIn.objects.filter(pk=request.session.get(SIGN_IN)).update(second_factor=True)


def current(request: HttpRequest) -> SignIn | None:
    return SignIn.objects.filter(pk=request.session.get(SIGN_IN)).first()


def sign_out(request: HttpRequest) -> None:
    """The session ends by its user's own wish."""
    if request.user.is_authenticated and (row := current(request)) is not None:
        signin.end(SignIn.objects.filter(pk=row.pk), by=request.user.get_username())


def password_changed(request: HttpRequest) -> None:
    """The password was changed: sessions elsewhere end, and the trail has it."""
    others = SignIn.objects.filter(user=request.user.pk).exclude(pk=request.session.get(SIGN_IN))
    signin.end(others, by=request.user.get_username())
    by = audit.Actor(name=request.user.get_username(), ip=client_ip(request))
    audit.record(by, "set password", request.user)


def refresh(request: HttpRequest) -> None:
    """The user has just shown who they are."""
    request.session[FRESH_AT] = clock.real().timestamp()


def is_fresh(request: HttpRequest) -> bool:
    at = request.session.get(FRESH_AT, 0.0)
    return clock.real() - datetime.fromtimestamp(at, tz=UTC) < FRESH


def ask_again(request: HttpRequest, back: str | None = None) -> HttpResponse | None:
    """None where the user was seen a moment ago; else the way to the page that asks who they are.

    Views of tokens, keys and secrets begin with it. A form that was sent is not kept: the message says so.
    """
    if is_fresh(request):
        return None
    if request.method == "POST":
        messages.warning(request, _("Nothing was done yet: confirm that it is you, then send the form again."))
    address = reverse("admin:again")
    return HttpResponseRedirect(f"{address}?{urlencode({'next': back or request.get_full_path()})}")


def context_of(site: Any, request: HttpRequest, **more: Any) -> dict[str, Any]:
    """What every page's template needs."""
    return {**site.each_context(request), **more}

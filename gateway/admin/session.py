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
from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway import audit, clock, signin
from gateway.api.door import client_ip
from gateway.masking import looks_like_pan
from gateway.models import SignIn

FRESH: Final = timedelta(minutes=10)
"""How long a proof of identity is good for tokens, keys and secrets."""
FULL_NUMBER: Final = gettext_lazy(
    "That is a whole card number, which is neither looked for nor kept. Search for its last four digits instead."
)
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

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        """What no page can be asked, is asked of none: NUL, which no column holds, and whole card numbers."""
        if not request.path.startswith(HERE):
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
        messages.warning(request, FULL_NUMBER if numbers else _("No field holds what was asked for: it was left out."))
        left_out = {*nul, *numbers}
        rest = [(name, value) for name, values in asked if name not in left_out for value in values]
        return HttpResponseRedirect(f"{request.path}?{urlencode(rest)}" if rest else request.path)

    def _holds(self, request: HttpRequest) -> bool:
        row = SignIn.objects.filter(pk=request.session.get(SIGN_IN), user=request.user.pk).first()
        if row is None:
            # A session that another way of signing in began: good where no second factor is asked for.
            if signin.needs_factor(request.user):
                return False
            row = remember(request, second_factor=False)
        if settings.GATEWAY_TOTP == "required" and not row.second_factor:
            return False
        # A page that asks by itself whether there is news is no sign of a person in front of it.
        return signin.seen(row, used=request.headers.get("Sec-Fetch-Dest") != "empty")


def _is_card_number(text: str) -> bool:
    return looks_like_pan("".join(text.split()).replace("-", ""))


def remember(request: HttpRequest, *, second_factor: bool) -> SignIn:
    """Tie the session to a row of its own."""
    agent = request.headers.get("User-Agent", "")
    row = signin.begin(request.user, ip=client_ip(request), agent=agent, second_factor=second_factor)
    request.session[SIGN_IN] = str(row.pk)
    return row


def factor_set_up(request: HttpRequest) -> None:
    """The session's user has typed a first code of an app. Sessions that a password alone began end."""
    SignIn.objects.filter(pk=request.session.get(SIGN_IN)).update(second_factor=True)
    others = SignIn.objects.filter(user=request.user.pk, second_factor=False)
    signin.end(others.exclude(pk=request.session.get(SIGN_IN)), by=request.user.get_username())


def current(request: HttpRequest) -> SignIn | None:
    return SignIn.objects.filter(pk=request.session.get(SIGN_IN)).first()


def sign_out(request: HttpRequest) -> None:
    """The session ends by its user's own wish."""
    if request.user.is_authenticated and (row := current(request)) is not None:
        signin.end(SignIn.objects.filter(pk=row.pk), by=request.user.get_username())


def locked(request: HttpRequest) -> HttpResponse | None:
    """Count a try to show who one is; the same page with the time of the next try when there were too many."""
    try:
        signin.count_try(request.user.get_username(), client_ip(request))
    except signin.LockedOut as found:
        messages.error(request, _("Too many tries. The next may be made at %s.") % f"{found.until:%H:%M} UTC")
        return HttpResponseRedirect(request.path)
    return None


def refused(request: HttpRequest) -> None:
    """A password that was none, for the trail."""
    audit.record(audit.Actor(name=request.user.get_username(), ip=client_ip(request)), "refused", request.user)


def password_changed(request: HttpRequest) -> None:
    """The password was changed: sessions elsewhere end, and the trail has it."""
    others = SignIn.objects.filter(user=request.user.pk).exclude(pk=request.session.get(SIGN_IN))
    signin.end(others, by=request.user.get_username())
    signin.forgive(request.user.get_username(), client_ip(request))
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

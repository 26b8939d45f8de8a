"""Lockout after wrong sign-in attempts, counted by django-axes: ten, then half an hour from the last one (PCI DSS
8.3.4).

Passwords, TOTP codes and reauthentication inside a session count together. Passkeys cannot be guessed: they are neither
counted nor locked, so a user can sign in past a lockout that strangers caused. Source: docs/decisions/0051.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Final

from axes.attempts import get_cool_off_threshold
from axes.handlers.database import AxesDatabaseHandler
from axes.handlers.proxy import AxesProxyHandler
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.signals import user_login_failed
from django.db.models import Sum
from django.http import HttpRequest

from gateway.core import clock
from gateway.core.client_address import network_of, resolve_client_ip
from gateway.db.sessions import keep_session
from gateway.db.statement import execute_sql
from gateway.models import SignIn

KNOWN_ADDRESS_RETENTION: Final = timedelta(days=30)
"""How long an address counts as known for a user after a sign-in from there."""
MAX_KNOWN_SIGN_INS: Final = 100
"""Sign-ins that known addresses are read from, newest first."""
ADDRESS_LOCKOUT_FACTOR: Final = 10
"""An address is locked for all names after this many times the attempts that lock a name."""


class SignInLockedError(Exception):
    """No attempt is allowed now. ``until``: when the next one is; None: another attempt of this name is running."""

    def __init__(self, until: datetime | None) -> None:
        super().__init__("too many tries")
        self.until = until


# --- what axes asks -------------------------------------------------------------------------------------------------


def resolve_attempt_address(request: HttpRequest) -> str | None:
    """The network that the request's attempts are counted by."""
    return network_of(resolve_client_ip(request))


def digest_attempt_name(_request: HttpRequest, credentials: Mapping[str, Any] | None) -> str:
    """A digest of the name. People type passwords and card numbers into the name's field, and counters are stored in
    clear."""
    return _digest(_normalize_name(credentials))


def _normalize_name(credentials: Mapping[str, Any] | None) -> str:
    """The name in the form that is compared: without case, which a guesser would not mind."""
    return str((credentials or {}).get("username") or "").lower()


def _digest(text: str) -> str:
    return hashlib.sha256(f"sign-in\n{text}".encode()).hexdigest()[:40]


def choose_lockout_parameters(request: HttpRequest, credentials: Mapping[str, Any] | None) -> list[Any]:
    """What attempts are counted by: the name, wherever from; for an address its owner signed in from lately, the name
    and that address, so that strangers elsewhere lock nobody out."""
    known = _is_known_address(_normalize_name(credentials), resolve_attempt_address(request))
    return [["username", "ip_address"]] if known else ["username"]


def _is_known_address(name: str, near: str | None) -> bool:
    since = clock.real_now() - KNOWN_ADDRESS_RETENTION
    lately = SignIn.objects.filter(user__username__iexact=name, at__gt=since, ip__isnull=False).order_by("-at")
    return near is not None and near in {
        network_of(ip) for ip in lately.values_list("ip", flat=True)[:MAX_KNOWN_SIGN_INS]
    }


class LockoutHandler(AxesDatabaseHandler):  # type: ignore[misc]
    """django-axes' database handler that stores no form values, and also locks an address that tries many names."""

    def user_login_failed(self, sender: Any, credentials: Any, request: Any = None, **kwargs: Any) -> None:
        bare = _strip_request(request)
        super().user_login_failed(sender, credentials, bare, **kwargs)
        # axes appends a line to both columns at each attempt, so a row attacked for days would grow without end.
        mine = AccessAttempt.objects.filter(
            username=digest_attempt_name(bare, credentials), ip_address=bare.axes_ip_address
        )
        mine.exclude(get_data="", post_data="").update(get_data="", post_data="")

    def get_failures(self, request: Any, credentials: Any = None) -> int:
        address = AccessAttempt.objects.filter(
            ip_address=request.axes_ip_address, attempt_time__gte=get_cool_off_threshold(request)
        )
        all_names = address.aggregate(found=Sum("failures_since_start"))["found"] or 0
        return max(int(super().get_failures(request, credentials)), int(all_names) // ADDRESS_LOCKOUT_FACTOR)


def _strip_request(request: Any) -> Any:
    """A copy of the request for axes, without form values, which it would store, and without the user agent, of which
    each would get a row."""
    bare = HttpRequest()
    bare.META = {name: request.META[name] for name in ("REMOTE_ADDR", "HTTP_X_FORWARDED_FOR") if name in request.META}
    vars(bare).update({name: value for name, value in vars(request).items() if name.startswith("axes_")})
    vars(bare).update(axes_user_agent="", axes_http_accept="")
    return bare


# --- what forms ask -------------------------------------------------------------------------------------------------


@contextmanager
def guard_attempt(request: HttpRequest, name: str) -> Iterator[None]:
    """Context of one attempt: raises SignInLockedError if the name is locked here, or if another attempt of it is
    running, so that parallel attempts are all counted. An attempt during a lockout prolongs it."""
    credentials = {"username": name}
    with _hold_attempt_lock(request, credentials):
        if not AxesProxyHandler.is_allowed(request, credentials):
            record_failed_attempt(request, name)
            raise SignInLockedError(until=next_sign_in_at())
        yield


def record_failed_attempt(request: HttpRequest, name: str) -> None:
    """Count a wrong attempt that did not go through Django's ``authenticate``."""
    user_login_failed.send(sender=__name__, credentials={"username": name}, request=request)


def forgive_failed_attempts(request: HttpRequest, name: str) -> None:
    """Reset the counter after a correct reauthentication; signing in resets it by itself."""
    AxesProxyHandler.update_request(request)
    AxesProxyHandler.get_implementation().reset_user_attempts(request, {"username": name})


def unlock_sign_in(name: str) -> bool:
    """End the lockout of a user whose identity a manager has checked."""
    return bool(AxesProxyHandler.reset_attempts(username=_digest(name.lower())))


def is_known_place(request: HttpRequest, name: str) -> bool:
    """Whether the name's owner signed in lately from where the request comes from."""
    return _is_known_address(_normalize_name({"username": name}), resolve_attempt_address(request))


def is_sign_in_locked(request: HttpRequest, name: str) -> bool:
    """Whether the name is locked."""
    return not AxesProxyHandler.is_allowed(request, {"username": name})


def next_sign_in_at() -> datetime:
    """When the next attempt is allowed, if the last one was made now."""
    return clock.real_now() + settings.AXES_COOLOFF_TIME


@contextmanager
def _hold_attempt_lock(request: HttpRequest, credentials: Mapping[str, Any]) -> Iterator[None]:
    name, near = _normalize_name(credentials), resolve_attempt_address(request)
    counted = f"{name}\n{near}" if _is_known_address(name, near) else name
    lock = int.from_bytes(bytes.fromhex(_digest(counted))[:8], signed=True)
    with keep_session():
        if not execute_sql("SELECT pg_try_advisory_lock(%(lock)s)", {"lock": lock})[0][0]:
            raise SignInLockedError(until=None)
        try:
            yield
        finally:
            execute_sql("SELECT pg_advisory_unlock(%(lock)s)", {"lock": lock})

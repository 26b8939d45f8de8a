"""Signing in to the back office: tries that are counted, second factors, and the sessions that follow.

Passwords are Django's. Everything here uses real time. Source: docs/decisions/0024.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from gateway import audit, clock, totp
from gateway.audit import Actor
from gateway.identifiers import row_id
from gateway.models import RecoveryCode, SecondFactor, SignIn, ThrottleWindow
from gateway.rows import execute
from gateway.secret import Secret
from gateway.vault import vault

WINDOW_S: Final = 900
"""Tries are counted in windows of this length, and a lock lasts until the window ends."""
MOST_TRIES: Final = {"name and address": 6, "name": 30, "address": 100}
"""What is counted together → tries in one window. A name alone has more, and a try that its address is locked for does
not count towards it, so that nobody locks others out easily; where its owner signed in lately, it is not counted."""
KNOWN_FOR: Final = timedelta(days=30)
"""How long an address counts as one of a user after a sign-in from there."""
MOST_PLACES: Final = 100
"""Sign-ins whose addresses are looked at, newest first."""
RECOVERY_CODES: Final = 10
OFFERED_FOR: Final = timedelta(minutes=10)
"""How long a factor can be set up with the secret that was shown."""
AGENT_CHARS: Final = 200
SEEN_EVERY: Final = timedelta(minutes=1)
"""How exact ``last_seen_at`` is; each page would otherwise write a row."""

_COUNT: Final = """
INSERT INTO gateway_throttlewindow (entity_id, operation, window_s, "window", count)
SELECT key, 'sign-in', %(window_s)s, %(window)s, 1 FROM unnest(%(keys)s::uuid[]) AS key
ON CONFLICT (entity_id, operation, window_s, "window") DO UPDATE SET count = gateway_throttlewindow.count + 1
RETURNING entity_id, count
"""


@dataclass(frozen=True, slots=True)
class LockedOut(Exception):
    """Too many tries; the next may be made at ``until``."""

    until: datetime


# --- tries ----------------------------------------------------------------------------------------------------------


def _near(ip: str | None) -> str:
    """An address as tries are counted: of IPv6 the network, since one line has all addresses of it."""
    address = ip_address(ip) if ip else None
    return str(ip_network((address, 64), strict=False)) if isinstance(address, IPv6Address) else str(address)


def _keys(name: str, ip: str | None) -> dict[str, UUID]:
    """What a try counts towards. Names are compared without case, as a guesser would not mind it."""
    near = _near(ip)
    parts = {"name and address": f"{name.lower()}\n{near}", "name": name.lower(), "address": near}
    return {
        what: UUID(bytes=hashlib.sha256(f"sign-in\n{what}\n{part}".encode()).digest()[:16])
        for what, part in parts.items()
    }


def count_try(name: str, ip: str | None) -> None:
    """Count a try before it is made, so that many at once are all counted. Raises LockedOut above the limits."""
    now = clock.real()
    window = int(now.timestamp()) // WINDOW_S
    keys = _keys(name, ip)

    def is_over(*counted: str) -> bool:
        values = {"keys": sorted(keys[what] for what in counted), "window_s": WINDOW_S, "window": window}
        counts = {UUID(str(key)): count for key, count in execute(_COUNT, values)}
        return any(counts[keys[what]] > MOST_TRIES[what] for what in counted)

    # One address that goes on after it was locked would lock the name for everybody.
    if is_over("name and address", "address") or (is_over("name") and not _knows(name, ip, now)):
        raise LockedOut(until=datetime.fromtimestamp((window + 1) * WINDOW_S, tz=now.tzinfo))


def _knows(name: str, ip: str | None, now: datetime) -> bool:
    """Whether that user signed in from there lately: others' tries elsewhere then keep nobody out."""
    lately = SignIn.objects.filter(user__username=name, at__gt=now - KNOWN_FOR, ip__isnull=False).order_by("-at")
    return ip is not None and _near(ip) in {_near(one) for one in lately.values_list("ip", flat=True)[:MOST_PLACES]}


def forgive(name: str, ip: str | None) -> None:
    """A try that was right: what was counted for this name from this address is forgotten."""
    key = _keys(name, ip)["name and address"]
    ThrottleWindow.objects.filter(entity_id=key, operation="sign-in").delete()


# --- the second factor ----------------------------------------------------------------------------------------------


def needs_factor(user: Any) -> bool:
    """Whether ``user`` signs in with a second factor: those who have one, and everybody where the settings say so."""
    return settings.GATEWAY_TOTP == "required" or has_factor(user)


def has_factor(user: Any) -> bool:
    return SecondFactor.objects.filter(user=user.pk, confirmed_at__isnull=False).exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A factor that is being set up in one session. ``sealed``: its secret, sealed for ``row``."""

    row: UUID
    sealed: bytes
    at: datetime

    @property
    def secret(self) -> Secret:
        return vault().open(self.sealed, self.row)

    @property
    def holds(self) -> bool:
        return timedelta(0) <= clock.real() - self.at < OFFERED_FOR


def offer_factor(user: Any) -> Offer:
    """A new secret for each set-up: who reads one and waits, has nothing once the owner sets up an app themself."""
    if has_factor(user):
        raise ValueError("the user has a second factor; remove it first")
    row = row_id()
    return Offer(row=row, sealed=vault().seal(totp.new_secret(), row), at=clock.real())


@transaction.atomic
def confirm_factor(user: Any, offer: Offer, text: str, *, by: Actor) -> list[str] | None:
    """Take the first code of a factor. Returns the recovery codes, which are shown once; None: the code was wrong, or
    the offer too old, or there is a factor by now."""
    step = totp.match(offer.secret, text, clock.real(), after=0) if offer.holds else None
    if step is None:
        return None
    SecondFactor.objects.filter(user=user.pk, confirmed_at__isnull=True).delete()
    values = {"id": offer.row, "secret_sealed": offer.sealed, "last_step": step, "confirmed_at": clock.real()}
    _row, made = SecondFactor.objects.get_or_create(user_id=user.pk, defaults=values)
    if not made:
        return None
    audit.record(by, "second factor", user, after={"second factor": "set up"})
    return new_recovery_codes(user, by=by)


@transaction.atomic
def remove_factor(user: Any, *, by: Actor) -> bool:
    """Take the second factor and its recovery codes away; where one is required, the next sign-in sets up another."""
    removed = SecondFactor.objects.filter(user=user.pk).delete()[0]
    RecoveryCode.objects.filter(user=user.pk).delete()
    if removed:
        audit.record(by, "second factor", user, after={"second factor": "removed"})
    return bool(removed)


def check_factor(user: Any, text: str) -> str | None:
    """Which second factor ``text`` is: "code", "recovery code", or None. Each is taken once."""
    row = SecondFactor.objects.filter(user=user.pk, confirmed_at__isnull=False).first()
    if row is None:
        return None
    step = totp.match(vault().open(row.secret_sealed, row.pk), text, clock.real(), after=row.last_step)
    if step is not None:
        # Of two that send the same code at once, one raises the step.
        taken = SecondFactor.objects.filter(pk=row.pk, last_step__lt=step).update(last_step=step)
        return "code" if taken else None
    digest = _digest(text)
    used = RecoveryCode.objects.filter(user=user.pk, digest=digest, used_at__isnull=True).update(used_at=clock.real())
    return "recovery code" if used else None


@transaction.atomic
def new_recovery_codes(user: Any, *, by: Actor) -> list[str]:
    """Ten codes in place of the ones before."""
    codes = [_group(base64.b32encode(secrets.token_bytes(10)).decode().lower()) for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.filter(user=user.pk).delete()
    RecoveryCode.objects.bulk_create([RecoveryCode(user_id=user.pk, digest=_digest(code)) for code in codes])
    audit.record(by, "recovery codes", user, after={"recovery codes": RECOVERY_CODES})
    return codes


def recovery_codes_left(user: Any) -> int:
    return RecoveryCode.objects.filter(user=user.pk, used_at__isnull=True).count()


def _group(text: str) -> str:
    return "-".join(text[place : place + 4] for place in range(0, len(text), 4))


def _digest(code: str) -> bytes:
    return hashlib.sha256("".join(code.lower().replace("-", "").split()).encode()).digest()


# --- sessions -------------------------------------------------------------------------------------------------------


def begin(user: Any, *, ip: str | None, agent: str, second_factor: bool) -> SignIn:
    """The row of a session that begins now."""
    now = clock.real()
    return SignIn.objects.create(
        user_id=user.pk, at=now, last_seen_at=now, ip=ip, agent=agent[:AGENT_CHARS], second_factor=second_factor
    )


def last_before(sign_in: SignIn) -> SignIn | None:
    """The sign-in before this one."""
    return SignIn.objects.filter(user=sign_in.user_id, at__lt=sign_in.at).order_by("-at").first()


def running(user: Any) -> Sequence[SignIn]:
    """The sessions of ``user`` that have not ended, newest first."""
    return SignIn.objects.filter(still_open(clock.real()), user=user.pk).order_by("-at")[:100]


def still_open(now: datetime) -> Q:
    """The condition on sessions that the limits of age let go on."""
    return Q(
        ended_at__isnull=True,
        at__gt=now - timedelta(hours=settings.GATEWAY_SESSION_HOURS),
        last_seen_at__gt=now - timedelta(minutes=settings.GATEWAY_SESSION_IDLE_MINUTES),
    )


def seen(sign_in: SignIn, *, used: bool = True) -> bool:
    """Note that the session is in use, where somebody uses it; False when it has ended, or has had its time."""
    now = clock.real()
    old = now - sign_in.at > timedelta(hours=settings.GATEWAY_SESSION_HOURS)
    idle = now - sign_in.last_seen_at > timedelta(minutes=settings.GATEWAY_SESSION_IDLE_MINUTES)
    if sign_in.ended_at is not None:
        return False
    if old or idle:
        end(SignIn.objects.filter(pk=sign_in.pk), by="age")
        return False
    if used and now - sign_in.last_seen_at > SEEN_EVERY:
        SignIn.objects.filter(pk=sign_in.pk).update(last_seen_at=now)
    return True


def end(sign_ins: Any, *, by: str) -> int:
    """End these sessions: their next page asks to sign in."""
    return int(sign_ins.filter(ended_at__isnull=True).update(ended_at=clock.real(), ended_by=by[:150]))

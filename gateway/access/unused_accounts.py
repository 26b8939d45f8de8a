"""Disables back-office accounts that are not used any more (PCI DSS 8.2.6).

An account was last used when its user last signed in or was in a session, when it was created, or when an administrator
enabled it again. Real time. Source: docs/decisions/0051.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Max

from gateway.access import audit_log, signin
from gateway.core import clock
from gateway.models import AuditEntry, SignIn
from gateway.timers.registry import Timer

DISABLE: Final = "disable"
"""Action in the audit log."""
BY: Final = audit_log.Actor(name="unused accounts")


def last_used(user: User) -> datetime:
    """When the account was last used, created or enabled."""
    seen = SignIn.objects.filter(user=user.pk).aggregate(at=Max("last_seen_at"))["at"]
    switched_on = AuditEntry.objects.filter(
        subject="user", subject_id=str(user.pk), action="change", before__is_active=False, after__is_active=True
    ).aggregate(at=Max("at"))["at"]
    return max(at for at in (user.date_joined, user.last_login, seen, switched_on) if at is not None)


def ends_at(user: User) -> datetime | None:
    """When an active account is disabled unless it is used; None: never."""
    days = settings.GATEWAY_UNUSED_ACCOUNT_DAYS
    if not days or not user.is_active or user.pk == _last_superuser():
        return None
    return last_used(user) + timedelta(days=days)


def disabled_at(user: User) -> datetime | None:
    """When the account was disabled for not being used; None if it is active or was enabled again."""
    if user.is_active:
        return None
    entries = AuditEntry.objects.filter(subject="user", subject_id=str(user.pk), after__is_active=False)
    last = entries.order_by("-id").first()
    return last.at if last is not None and last.action == DISABLE else None


def disable_unused() -> int:
    """Disable accounts that were not used for the configured number of days; returns how many."""
    if not (days := settings.GATEWAY_UNUSED_ACCOUNT_DAYS):
        return 0
    limit = clock.real_now() - timedelta(days=days)
    # The column alone rules out nearly all; the other kinds of use are looked up for the rest.
    stale = User.objects.filter(is_active=True, date_joined__lt=limit).exclude(last_login__gte=limit)
    if (needed := _last_superuser()) is not None:
        stale = stale.exclude(pk=needed)
    unused = [user for user in stale.order_by("pk") if last_used(user) < limit]
    return sum(_disable(user, days) for user in unused if not _record_enabling(user))


def _record_enabling(user: User) -> bool:
    """Write the missing audit entry if the account was enabled past the back office, such as by ``manage.py shell``:
    from then on it counts as used."""
    entries = AuditEntry.objects.filter(subject="user", subject_id=str(user.pk), after__has_key="is_active")
    last = entries.order_by("-id").first()
    if last is None or last.after is None or last.after["is_active"]:
        return False
    after = {"is_active": True, "where": "not in the back office"}
    audit_log.record_audit_entry(BY, "change", user, before={"is_active": False}, after=after)
    return True


@transaction.atomic
def _disable(user: User, days: int) -> bool:
    """Disable one account; False if its user signs in at this moment."""
    if not User.objects.filter(pk=user.pk, is_active=True, last_login=user.last_login).update(is_active=False):
        return False
    signin.end_sessions(SignIn.objects.filter(user=user.pk), by=BY.name)
    after = {"is_active": False, "not used for": f"{days} days"}
    audit_log.record_audit_entry(BY, DISABLE, user, before={"is_active": True}, after=after)
    return True


def _last_superuser() -> int | None:
    """The superuser who can sign in and whose account was used last: it stays active, since otherwise nobody
    could enable the others again."""
    candidates = [
        user for user in User.objects.filter(is_active=True, is_staff=True, is_superuser=True) if _can_enter(user)
    ]
    return max(candidates, key=last_used).pk if candidates else None


def _can_enter(user: User) -> bool:
    """True if the user can sign in: by a password, a passkey or single sign-on."""
    return (
        bool(user.password and user.has_usable_password())
        or Authenticator.objects.filter(user=user.pk, type=signin.PASSKEY_FACTOR).exists()
        or SocialAccount.objects.filter(user=user.pk).exists()
    )


TIMER: Final = Timer(
    name="unused accounts",
    about="Switch off users of the back office after GATEWAY_UNUSED_ACCOUNT_DAYS without use.",
    run=disable_unused,
    every_s=3600.0,
)

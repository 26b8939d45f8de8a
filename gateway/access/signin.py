"""Second factors and sessions of the back office: the storage that django-allauth is given.

allauth checks passwords, codes and passkeys; here its secrets are sealed, a code is accepted once across all processes,
wrong codes are counted without a time limit, and each session is a row. Real time throughout. Source:
docs/decisions/0051.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal import auth as totp
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import Max, Q
from django.db.models.signals import post_delete
from django.dispatch import receiver

from gateway.access import audit_log
from gateway.access.audit_log import Actor
from gateway.core import clock
from gateway.core.identifiers import row_id
from gateway.core.secret import Secret
from gateway.db.statement import execute_sql
from gateway.models import AuditEntry, FactorSecret, SignIn
from gateway.timers.registry import Timer
from gateway.vault.sealing import current_vault

TOTP_FACTOR, PASSKEY_FACTOR, RECOVERY_FACTOR = (
    Authenticator.Type.TOTP,
    Authenticator.Type.WEBAUTHN,
    Authenticator.Type.RECOVERY_CODES,
)
MAX_WRONG_CODES: Final = 50
"""Wrong app codes since any factor was last used, over any period. Of a million codes three are valid at any moment,
so this many tries open one account in about 7,000."""
MAX_USER_AGENT_CHARS: Final = 200
LAST_SEEN_INTERVAL: Final = timedelta(minutes=1)
"""Resolution of ``last_seen_at``; without it each page would write a row."""


# --- secrets of authenticators --------------------------------------------------------------------------------------


def seal_factor_secret(text: str) -> str:
    """Seal an authenticator's secret in a row of its own; returns the row's id, which the authenticator stores."""
    row = row_id()
    FactorSecret.objects.create(pk=row, sealed=current_vault().seal(Secret(text), row))
    return str(row)


def seal_pending_factor(text: str) -> str:
    """Seal the key of an authenticator app during setup, for the session that holds it."""
    row = row_id()
    return f"{row.hex}.{b64encode(current_vault().seal(Secret(text), row)).decode()}"


def open_pending_factor(kept: str) -> str:
    """The key that :func:`seal_pending_factor` sealed. Raises VaultError."""
    row, sealed = kept.split(".")
    return current_vault().open(b64decode(sealed), UUID(row)).reveal()


def open_factor_secret(reference: str) -> str:
    """The secret that :func:`seal_factor_secret` stored. Raises VaultError, and FactorSecret.DoesNotExist."""
    row = FactorSecret.objects.get(pk=UUID(reference))
    return current_vault().open(row.sealed, row.pk).reveal()


@receiver(post_delete, sender=Authenticator)
def _delete_factor_secrets(sender: Any, instance: Authenticator, **kwargs: Any) -> None:
    references = [instance.data[name] for name in ("secret", "seed") if name in instance.data]
    FactorSecret.objects.filter(pk__in=[UUID(text) for text in references]).delete()


# --- the second factor ----------------------------------------------------------------------------------------------


def is_second_factor_required() -> bool:
    """True if all users must sign in with a second factor, not only those who set one up."""
    return bool(settings.GATEWAY_TOTP == "required")


def list_second_factors(user: Any) -> list[Authenticator]:
    """The second factors of ``user``: an app, passkeys. Recovery codes only replace one."""
    return list(Authenticator.objects.filter(user=user.pk, type__in=(TOTP_FACTOR, PASSKEY_FACTOR)).order_by("id"))


def has_second_factor(user: Any) -> bool:
    """True if ``user`` has an app or a passkey."""
    return bool(Authenticator.objects.filter(user=user.pk, type__in=(TOTP_FACTOR, PASSKEY_FACTOR)).exists())


@transaction.atomic
def remove_second_factors(user: Any, *, by: Actor) -> bool:
    """Remove the second factors and recovery codes of ``user``; where a factor is required, the next sign-in sets up
    another."""
    removed = False
    for authenticator in Authenticator.objects.filter(user=user.pk):
        removed = bool(authenticator.delete()[0]) or removed
    if removed:
        audit_log.record_audit_entry(by, "second factor", user, after={"second factor": "removed"})
    return removed


def count_recovery_codes(user: Any) -> int:
    """Unused recovery codes of ``user``."""
    row = Authenticator.objects.filter(user=user.pk, type=RECOVERY_FACTOR).first()
    return len(row.wrap().get_unused_codes()) if row is not None else 0


def consume_totp_step(authenticator: Authenticator, code: str) -> bool:
    """Use up the 30-second step of a valid app code, and all earlier steps; False when it was used before.

    RFC 6238, 5.2. allauth keeps this in a cache, of which each process has its own.
    """
    secret = open_factor_secret(authenticator.data["secret"])
    steps = [
        step
        for step in totp.yield_hotp_counters_from_time()
        if totp.compare_user_code(actual=code, expected=totp.format_hotp_value(totp.hotp_value(secret, step)))
    ]
    taken = """
        UPDATE mfa_authenticator SET data = data || jsonb_build_object('step', %(step)s::bigint)
        WHERE id = %(id)s AND coalesce((data->>'step')::bigint, 0) < %(step)s RETURNING id
    """
    return bool(steps) and bool(execute_sql(taken, {"id": authenticator.pk, "step": max(steps)}))


def take_answer(authenticator: Authenticator, asked_at: float) -> bool:
    """Use up a passkey's answer to the challenge of that moment (seconds); False when an answer to this or a later
    challenge was used before."""
    taken = """
        UPDATE mfa_authenticator SET data = data || jsonb_build_object('asked_at', %(at)s::float8)
        WHERE id = %(id)s AND coalesce((data->>'asked_at')::float8, 0) < %(at)s RETURNING id
    """
    return bool(execute_sql(taken, {"id": authenticator.pk, "at": asked_at}))


def count_wrong_codes(user: Any) -> int:
    """Wrong app codes since any factor of ``user`` was last used or set up, over any period."""
    rows = Authenticator.objects.filter(user=user.pk)
    counts = rows.aggregate(
        used=Max("last_used_at"), made=Max("created_at", filter=Q(type__in=(TOTP_FACTOR, PASSKEY_FACTOR)))
    )
    since = max((at for at in counts.values() if at is not None), default=None)
    if since is None:
        return 0
    tries = AuditEntry.objects.filter(subject="user", subject_id=str(user.pk), action="refused", after__with="code")
    return tries.filter(at__gt=since)[: MAX_WRONG_CODES + 1].count()


# --- sessions -------------------------------------------------------------------------------------------------------


def begin_session(user: Any, *, ip: str | None, agent: str, second_factor: bool) -> SignIn:
    """Create the row of a session that begins now."""
    now = clock.real_now()
    return SignIn.objects.create(
        user_id=user.pk,
        at=now,
        last_seen_at=now,
        ip=ip,
        agent=agent[:MAX_USER_AGENT_CHARS],
        second_factor=second_factor,
    )


def find_previous_sign_in(sign_in: SignIn) -> SignIn | None:
    """The user's sign-in before this one."""
    return SignIn.objects.filter(user=sign_in.user_id, at__lt=sign_in.at).order_by("-at").first()


def list_open_sessions(user: Any) -> list[SignIn]:
    """The sessions of ``user`` that have not ended, newest first."""
    return list(SignIn.objects.filter(open_session_condition(clock.real_now()), user=user.pk).order_by("-at")[:100])


def open_session_condition(now: datetime) -> Q:
    """The filter on sessions that have not passed the age limits."""
    return Q(
        ended_at__isnull=True,
        at__gt=now - timedelta(hours=settings.GATEWAY_SESSION_HOURS),
        last_seen_at__gt=now - timedelta(minutes=settings.GATEWAY_SESSION_IDLE_MINUTES),
    )


def touch_session(sign_in: SignIn, *, used: bool = True) -> bool:
    """Record that the session is in use (``used``); False when it has ended or expired."""
    now = clock.real_now()
    old = now - sign_in.at > timedelta(hours=settings.GATEWAY_SESSION_HOURS)
    idle = now - sign_in.last_seen_at > timedelta(minutes=settings.GATEWAY_SESSION_IDLE_MINUTES)
    if sign_in.ended_at is not None:
        return False
    if old or idle:
        end_sessions(SignIn.objects.filter(pk=sign_in.pk), by="age")
        return False
    if used and now - sign_in.last_seen_at > LAST_SEEN_INTERVAL:
        SignIn.objects.filter(pk=sign_in.pk).update(last_seen_at=now)
    return True


def end_sessions(sign_ins: Any, *, by: str) -> int:
    """End these sessions: their next request asks to sign in."""
    return int(sign_ins.filter(ended_at__isnull=True).update(ended_at=clock.real_now(), ended_by=by[:150]))


def delete_expired_sessions() -> int:
    """Delete expired rows of browser sessions; visitors of the sign-in page leave some."""
    return int(Session.objects.filter(expire_date__lt=clock.real_now()).delete()[0])


TIMER: Final = Timer(
    name="browser sessions",
    about="Delete browsers' sessions of the back office that have had their time.",
    run=delete_expired_sessions,
    every_s=3600.0,
)

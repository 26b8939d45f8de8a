"""Access tokens: issue, approve, rotate with an overlap, revoke. Used by the back office and by commands.

A token that was issued with ``approved=False`` waits for a second person: the API refuses it until then. When that is
needed is decided in gateway.backoffice.access.token_approvals. Requests are checked in gateway.api.token_admission.

A token is shown once, when it is created; only its hash is stored. Source: Part A, Authentication, 2 and 7.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.db import transaction

from gateway.access import audit_log
from gateway.core import clock, identifiers
from gateway.core.secret import Secret
from gateway.models import TOKEN_SCOPES, AccessToken, Channel, Merchant
from gateway.timers.registry import SWEEP_INTERVAL_S, Timer

TOKEN_OPERATIONS: Final = ("PA", "DB", "CP", "RF", "RV", "RB", "RC", "CD", "CB", "CR")
"""Payment types that a token can be restricted to. Operations without money (RG, RI) are always allowed."""
TOKEN_ROTATION_OVERLAP: Final = timedelta(days=7)
"""How long the old token of a rotation goes on working."""
MAX_LENT_TOKEN_AGE: Final = timedelta(minutes=1)
"""How long a token of :func:`lend_token` works at most, should the process die within the block. Its row is deleted by
:data:`TIMER` then."""


def hash_token(token: str) -> bytes:
    """The stored hash of a token. It has 256 random bits, so a plain hash cannot be reversed."""
    return hashlib.sha256(token.encode()).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLimits:
    """What a token may move: ``amount`` in one payment, ``day_amount`` in one currency within 24 hours, ``operations``:
    payment types. None and empty: no limit."""

    amount: Decimal | None = None
    day_amount: Decimal | None = None
    operations: Sequence[str] = ()


NO_TOKEN_LIMITS: Final = TokenLimits()


@transaction.atomic
def issue_token(
    merchant: Merchant,
    *,
    name: str,
    by: audit_log.Actor,
    channel: Channel | None = None,
    scopes: Sequence[str] = TOKEN_SCOPES,
    ends_at: datetime | None = None,
    limits: TokenLimits = NO_TOKEN_LIMITS,
    replaces: AccessToken | None = None,
    requested_by: int | None = None,
    approved: bool = True,
) -> tuple[AccessToken, Secret]:
    """Create a token and return it with its text, which cannot be read again. ``requested_by``: the key of the user who
    creates it; ``approved``: it works at once. ValueError for a foreign channel, an unknown scope or operation."""
    if channel is not None and channel.merchant_id != merchant.pk:
        raise ValueError(f"{channel} is not a channel of {merchant}")
    if unknown := set(scopes) - set(TOKEN_SCOPES):
        raise ValueError(f"unknown scope {', '.join(sorted(unknown))}: allowed are {', '.join(TOKEN_SCOPES)}")
    if unknown := set(limits.operations) - set(TOKEN_OPERATIONS):
        allowed = ", ".join(TOKEN_OPERATIONS)
        raise ValueError(f"unknown operation {', '.join(sorted(unknown))}: allowed are {allowed}")
    text = identifiers.generate_access_token()
    token = AccessToken.objects.create(
        digest=hash_token(text),
        hint=text[-4:],
        name=name,
        merchant=merchant,
        channel=channel,
        scopes=list(scopes),
        ends_at=ends_at,
        created_by=by.name,
        replaces=replaces,
        requested_by_id=requested_by,
        approved_at=clock.real_now() if approved else None,
        max_amount=limits.amount,
        max_day_amount=limits.day_amount,
        operations=[code for code in TOKEN_OPERATIONS if code in limits.operations],
    )
    audit_log.record_audit_entry(by, "issue", token, after=_audit_facts(token))
    return token, Secret(text)


@contextmanager
def lend_token(channel: Channel, *, name: str, by: audit_log.Actor, scopes: Sequence[str]) -> Iterator[Secret]:
    """A token of one channel for calls that this process makes itself. It is shown to no one, and its row is deleted
    when the block ends; the caller writes the audit entry."""
    text = identifiers.generate_access_token()
    now = clock.real_now()
    token = AccessToken.objects.create(
        digest=hash_token(text),
        hint=text[-4:],
        name=name,
        merchant=channel.merchant,
        channel=channel,
        scopes=list(scopes),
        ends_at=now + MAX_LENT_TOKEN_AGE,
        created_by=by.name,
        approved_at=now,
        lent=True,
    )
    try:
        yield Secret(text)
    finally:
        token.delete()


def _delete_left_tokens() -> int:
    """Delete lent tokens whose process died."""
    return AccessToken.objects.filter(lent=True, ends_at__lt=clock.real_now()).delete()[0]


TIMER: Final = Timer(
    name="lent tokens",
    run=_delete_left_tokens,
    every_s=SWEEP_INTERVAL_S,
    earliest_due="SELECT min(ends_at) FROM gateway_accesstoken WHERE lent",
    about="Delete tokens of the docs' Run button that were left by a process that died.",
)


@transaction.atomic
def rotate_token(
    token: AccessToken,
    *,
    by: audit_log.Actor,
    overlap: timedelta = TOKEN_ROTATION_OVERLAP,
    requested_by: int | None = None,
    approved: bool = True,
) -> tuple[AccessToken, Secret]:
    """Issue a successor with the same rights and limits; the old token ends ``overlap`` after the successor works, or
    at its own end if sooner."""
    if approved:
        _end_after(token, overlap, by)
    return issue_token(
        token.merchant,
        name=token.name,
        by=by,
        channel=token.channel,
        scopes=token.scopes,
        replaces=token,
        limits=TokenLimits(amount=token.max_amount, day_amount=token.max_day_amount, operations=token.operations),
        requested_by=requested_by,
        approved=approved,
    )


def _end_after(token: AccessToken, overlap: timedelta, by: audit_log.Actor) -> None:
    """End the predecessor of a rotation after ``overlap``."""
    before = _audit_facts(token)
    end = clock.real_now() + overlap
    token.ends_at = min(token.ends_at, end) if token.ends_at else end
    token.save(update_fields=["ends_at"])
    audit_log.record_audit_entry(by, "rotate", token, before=before, after=_audit_facts(token))


@transaction.atomic
def approve_token(token: AccessToken, *, by: audit_log.Actor) -> bool:
    """Approve a token that waits for a second person; False if it was not waiting."""
    before = _audit_facts(token)
    waits = AccessToken.objects.filter(pk=token.pk, approved_at__isnull=True, revoked_at__isnull=True)
    if not waits.update(approved_at=clock.real_now(), approved_by=by.name):
        return False
    token.refresh_from_db()
    if token.replaces is not None and token.replaces.revoked_at is None:
        _end_after(token.replaces, TOKEN_ROTATION_OVERLAP, by)
    audit_log.record_audit_entry(by, "approve", token, before=before, after=_audit_facts(token))
    return True


@transaction.atomic
def revoke_token(token: AccessToken, *, by: audit_log.Actor) -> None:
    """End a token at once: the next call with it gets 403."""
    if token.revoked_at is not None:
        return
    before = _audit_facts(token)
    token.revoked_at = clock.real_now()
    token.save(update_fields=["revoked_at"])
    audit_log.record_audit_entry(by, "revoke", token, before=before, after=_audit_facts(token))


def _audit_facts(token: AccessToken) -> dict[str, object]:
    return {
        "name": token.name,
        "hint": token.hint,
        "merchant": token.merchant_id.hex,
        "channel": token.channel_id.hex if token.channel_id else None,
        "scopes": token.scopes,
        "at most": str(token.max_amount) if token.max_amount is not None else None,
        "at most in 24 hours": str(token.max_day_amount) if token.max_day_amount is not None else None,
        "operations": token.operations,
        "approved_at": token.approved_at.isoformat() if token.approved_at else None,
        "ends_at": token.ends_at.isoformat() if token.ends_at else None,
        "revoked_at": token.revoked_at.isoformat() if token.revoked_at else None,
    }

"""Access tokens: issued, rotated with an overlap, revoked. The same verbs serve the back office and the commands.

A token is shown once, when it is made; only its hash is kept. Source: Part A, Authentication, 2 and 7.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction

from gateway import audit, clock, identifiers
from gateway.models import SCOPES, AccessToken, Channel, Merchant
from gateway.secret import Secret

OVERLAP: Final = timedelta(days=7)
"""How long the old token of a rotation goes on working."""


def digest(token: str) -> bytes:
    """What is kept of a token. It has 256 random bits: a plain hash cannot be guessed back."""
    return hashlib.sha256(token.encode()).digest()


@transaction.atomic
def issue(
    merchant: Merchant,
    *,
    name: str,
    by: audit.Actor,
    channel: Channel | None = None,
    scopes: Sequence[str] = SCOPES,
    ends_at: datetime | None = None,
    replaces: AccessToken | None = None,
) -> tuple[AccessToken, Secret]:
    """Make a token and return it with its text, which nobody can read again. Raises ValueError for a foreign channel
    or an unknown scope."""
    if channel is not None and channel.merchant_id != merchant.pk:
        raise ValueError(f"{channel} is not a channel of {merchant}")
    if unknown := set(scopes) - set(SCOPES):
        raise ValueError(f"unknown scope {', '.join(sorted(unknown))}: allowed are {', '.join(SCOPES)}")
    text = identifiers.access_token()
    token = AccessToken.objects.create(
        digest=digest(text), hint=text[-4:], name=name, merchant=merchant, channel=channel, scopes=list(scopes),
        ends_at=ends_at, created_by=by.name, replaces=replaces,
    )  # fmt: skip
    audit.record(by, "issue", token, after=_shown(token))
    return token, Secret(text)


@transaction.atomic
def rotate(token: AccessToken, *, by: audit.Actor, overlap: timedelta = OVERLAP) -> tuple[AccessToken, Secret]:
    """Issue a successor with the same rights; the old token ends after ``overlap``, or at its own end if sooner."""
    before = _shown(token)
    end = clock.real() + overlap
    token.ends_at = min(token.ends_at, end) if token.ends_at else end
    token.save(update_fields=["ends_at"])
    audit.record(by, "rotate", token, before=before, after=_shown(token))
    return issue(token.merchant, name=token.name, by=by, channel=token.channel, scopes=token.scopes, replaces=token)


@transaction.atomic
def revoke(token: AccessToken, *, by: audit.Actor) -> None:
    """End a token at once: the next call with it gets 403."""
    if token.revoked_at is not None:
        return
    before = _shown(token)
    token.revoked_at = clock.real()
    token.save(update_fields=["revoked_at"])
    audit.record(by, "revoke", token, before=before, after=_shown(token))


def _shown(token: AccessToken) -> dict[str, object]:
    return {
        "name": token.name,
        "hint": token.hint,
        "merchant": token.merchant_id.hex,
        "channel": token.channel_id.hex if token.channel_id else None,
        "scopes": token.scopes,
        "ends_at": token.ends_at.isoformat() if token.ends_at else None,
        "revoked_at": token.revoked_at.isoformat() if token.revoked_at else None,
    }

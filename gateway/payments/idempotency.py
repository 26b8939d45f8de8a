"""Idempotency keys: the same key with the same body is made once and answered once (D20).

The key is claimed by the statement that begins the payment, so there is no payment without its key and no key that
hangs without a payment. Keys use real time and are forgotten after KEPT.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from gateway import clock
from gateway.catalogue.parse import ParameterError
from gateway.catalogue.sent import text_of
from gateway.masking import mask_text
from gateway.models import IdempotencyKey, Payment, Status
from gateway.payments.refusal import Refused
from gateway.rows import Write, execute
from gateway.secret import Secret
from gateway.vault import vault

KEPT: Final = timedelta(hours=24)
HEADER: Final = "Idempotency-Key"
_SHAPE: Final = re.compile("[!-~]{1,255}")
_LONGEST_PATH: Final = 64
_LEFT_OUT: Final = frozenset({"card.cvv", "tokenAccount.dtvc"})
IN_PROGRESS: Final = "800.120.402"
INVALID: Final = "200.300.404"
KEPT_COLUMNS: Final = ("fingerprint", "payment", "status", "answer", "created_at")
Kept = tuple[Any, ...]
"""KEPT_COLUMNS of one key."""
# By hand: it is asked with the access token (``t``) of every payment with a key, and its plan is kept.
JOIN_KEPT: Final = (
    "LEFT JOIN gateway_idempotencykey k ON k.token = t.id AND k.method = %(method)s AND k.path = %(path)s"
    " AND k.key = %(key)s"
)
_FIND: Final = """
SELECT fingerprint, payment, status, answer, created_at FROM gateway_idempotencykey
WHERE token = %(token)s AND method = %(method)s AND path = %(path)s AND key = %(key)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAnswer:
    """What a key was answered with. ``body`` is what gateway.payments.kept kept of it; None when the worker that made
    ``payment`` died before it could store the answer."""

    status: int
    body: str | None
    payment: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One key of one request. ``body`` is the request's canonical text, without the CVV; it is never stored."""

    token: UUID
    method: str
    path: str
    key: str
    body: Secret

    @property
    def _where(self) -> dict[str, Any]:
        return {"token": self.token, "method": self.method, "path": self.path, "key": self.key}

    def find(self, kept: Kept | None) -> StoredAnswer | None:
        """The answer this key has already, as ``kept`` with the admission. None: the key is free. Raises Refused:
        another body (400), or still being made (409)."""
        found = self._stored(kept)
        if found is None or found.body is not None:
            return found
        if Payment.objects.filter(pk=found.payment, status=Status.STARTED).exists():
            raise in_progress(self.key)
        # Answered between the two looks, or by recovery, which knows no answers: the second look tells.
        rows = execute(_FIND, self._where)
        return self._stored(rows[0] if rows else None)

    def _stored(self, kept: Kept | None) -> StoredAnswer | None:
        if kept is None:
            return None
        fingerprint, payment, status, answer, created_at = kept
        if clock.real() - created_at > KEPT:
            IdempotencyKey.objects.filter(**self._where, created_at=created_at).delete()
            return None
        if not vault().matches(self.body, fingerprint):
            raise Refused(INVALID, [ParameterError(name=HEADER, value=self.key, message="was used with another body")])
        return StoredAnswer(status=status or 200, body=answer, payment=payment)

    def insert(self, write: Write, payment: UUID, answer: tuple[int, str] | None) -> None:
        """Claim the key in the statement that begins ``payment``; ``answer`` when that ends it, too."""
        status, body = answer or (None, None)
        write.insert(
            IdempotencyKey,
            **self._where,
            fingerprint=vault().fingerprint(self.body),
            payment=payment,
            status=status,
            answer=body,
            created_at=clock.real(),
        )

    def answer(self, write: Write, status: int, body: str) -> None:
        """Store the answer in the statement that completes the payment."""
        write.follow(IdempotencyKey, {"status": status, "answer": body}, self._where)


def looked_up(header: str | None, *, method: str, path: str) -> dict[str, str] | None:
    """What finds a key that a request sent (JOIN_KEPT); None for no key, or one of the wrong form."""
    if header is None or not _SHAPE.fullmatch(header):
        return None
    return {"method": method, "path": path[:_LONGEST_PATH], "key": header}


def claim_of(
    header: str | None, pairs: Iterable[tuple[str, str | Secret]], *, token: UUID, method: str, path: str
) -> Claim | None:
    """The claim a request makes; None without the header. Raises Refused for a key of the wrong form."""
    if header is None:
        return None
    if not _SHAPE.fullmatch(header) or mask_text(header) != header:
        message = "must be 1 to 255 printable ASCII characters without spaces, and no card number"
        raise Refused(INVALID, [ParameterError(name=HEADER, message=message)])
    return Claim(token=token, method=method, path=path[:_LONGEST_PATH], key=header, body=_canonical(pairs))


def _canonical(pairs: Iterable[tuple[str, str | Secret]]) -> Secret:
    """What was sent as one text, length-prefixed, so that no two different bodies have the same."""
    sent = sorted((name, text_of(value)) for name, value in pairs if name not in _LEFT_OUT)
    return Secret("".join(f"{len(name)}:{name}{len(value)}:{value}" for name, value in sent))


def in_progress(key: str) -> Refused:
    """409: the first request with this key has not been answered yet."""
    error = ParameterError(name=HEADER, value=key, message="belongs to a request still being made")
    return Refused(IN_PROGRESS, [error], status=409)


def forget(now: datetime, *, limit: int) -> int:
    """Throw away at most ``limit`` keys that are older than KEPT at ``now``, real time; how many there were."""
    rows = execute(
        "WITH old AS (SELECT token, method, path, key FROM gateway_idempotencykey WHERE created_at < %(limit)s"
        " ORDER BY created_at LIMIT %(most)s), gone AS (DELETE FROM gateway_idempotencykey k USING old WHERE"
        " (k.token, k.method, k.path, k.key) = (old.token, old.method, old.path, old.key) RETURNING 1)"
        " SELECT count(*) FROM gone",
        {"limit": now - KEPT, "most": limit},
    )
    return int(rows[0][0])

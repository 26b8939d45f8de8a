"""Idempotency keys: the same key with the same body is made once and answered once (D20).

The key is claimed by the statement that begins the payment, so there is no payment without its key and no key that
hangs without a payment. Keys use real time and are forgotten after IDEMPOTENCY_RETENTION.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from gateway.catalogue.parse import ParameterError
from gateway.catalogue.typed_pairs import reveal_text
from gateway.core import clock
from gateway.core.masking import mask_text
from gateway.core.secret import Secret
from gateway.db.statement import WriteStatement, execute_sql
from gateway.models import IdempotencyKey, Payment, Status
from gateway.payments.refusal import RequestRefusedError
from gateway.vault.sealing import current_vault

IDEMPOTENCY_RETENTION: Final = timedelta(hours=24)
IDEMPOTENCY_HEADER: Final = "Idempotency-Key"
_SHAPE: Final = re.compile("[!-~]{1,255}")
_MAX_PATH_CHARS: Final = 64
_UNSIGNED_PARAMETERS: Final = frozenset({"card.cvv", "tokenAccount.dtvc"})
IDEMPOTENCY_CONFLICT_CODE: Final = "800.120.402"
INVALID_IDEMPOTENCY_KEY_CODE: Final = "200.300.404"
IDEMPOTENCY_COLUMNS: Final = ("fingerprint", "payment", "status", "answer", "created_at")
IdempotencyRow = tuple[Any, ...]
"""KEPT_COLUMNS of one key."""
# By hand: it is asked with the access token (``t``) of every payment with a key, and its plan is kept.
JOIN_IDEMPOTENCY_KEY: Final = (
    "LEFT JOIN gateway_idempotencykey k ON k.token = t.id AND k.method = %(method)s AND k.path = %(path)s"
    " AND k.key = %(key)s"
)
_FIND: Final = """
SELECT fingerprint, payment, status, answer, created_at FROM gateway_idempotencykey
WHERE token = %(token)s AND method = %(method)s AND path = %(path)s AND key = %(key)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """What a key was answered with. ``body`` is what gateway.payments.idempotent_responses kept of it; None when the
    worker that made ``payment`` died before it could store the answer."""

    status: int
    body: str | None
    payment: UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyClaim:
    """One key of one request. ``body`` is the request's canonical text, without the CVV; it is never stored."""

    token: UUID
    method: str
    path: str
    key: str
    body: Secret

    @property
    def _where(self) -> dict[str, Any]:
        return {"token": self.token, "method": self.method, "path": self.path, "key": self.key}

    def find(self, kept: IdempotencyRow | None) -> StoredResponse | None:
        """The answer this key has already, as ``kept`` with the admission. None: the key is free. Raises
        RequestRefusedError: another body (400), or still being made (409)."""
        found = self._stored(kept)
        if found is None or found.body is not None:
            return found
        if Payment.objects.filter(pk=found.payment, status=Status.STARTED).exists():
            raise build_in_progress_refusal(self.key)
        # Answered between the two looks, or by recovery, which knows no answers: the second look tells.
        rows = execute_sql(_FIND, self._where)
        return self._stored(rows[0] if rows else None)

    def _stored(self, kept: IdempotencyRow | None) -> StoredResponse | None:
        if kept is None:
            return None
        fingerprint, payment, status, answer, created_at = kept
        if clock.real_now() - created_at > IDEMPOTENCY_RETENTION:
            IdempotencyKey.objects.filter(**self._where, created_at=created_at).delete()
            return None
        if not current_vault().matches(self.body, fingerprint):
            raise RequestRefusedError(
                INVALID_IDEMPOTENCY_KEY_CODE,
                [ParameterError(name=IDEMPOTENCY_HEADER, value=self.key, message="was used with another body")],
            )
        return StoredResponse(status=status or 200, body=answer, payment=payment)

    def insert(self, write: WriteStatement, payment: UUID, answer: tuple[int, str] | None) -> None:
        """Claim the key in the statement that begins ``payment``; ``answer`` when that ends it, too."""
        status, body = answer or (None, None)
        write.insert(
            IdempotencyKey,
            **self._where,
            fingerprint=current_vault().fingerprint(self.body),
            payment=payment,
            status=status,
            answer=body,
            created_at=clock.real_now(),
        )

    def answer(self, write: WriteStatement, status: int, body: str) -> None:
        """Store the answer in the statement that completes the payment."""
        write.update_related(IdempotencyKey, {"status": status, "answer": body}, self._where)


def build_idempotency_lookup(header: str | None, *, method: str, path: str) -> dict[str, str] | None:
    """What finds a key that a request sent (JOIN_IDEMPOTENCY_KEY); None for no key, or one of the wrong form."""
    if header is None or not _SHAPE.fullmatch(header):
        return None
    return {"method": method, "path": path[:_MAX_PATH_CHARS], "key": header}


def parse_idempotency_claim(
    header: str | None, pairs: Iterable[tuple[str, str | Secret]], *, token: UUID, method: str, path: str
) -> IdempotencyClaim | None:
    """The claim a request makes; None without the header. Raises RequestRefusedError for a key of the wrong form."""
    if header is None:
        return None
    if not _SHAPE.fullmatch(header) or mask_text(header) != header:
        message = "must be 1 to 255 printable ASCII characters without spaces, and no card number"
        raise RequestRefusedError(
            INVALID_IDEMPOTENCY_KEY_CODE, [ParameterError(name=IDEMPOTENCY_HEADER, message=message)]
        )
    return IdempotencyClaim(
        token=token, method=method, path=path[:_MAX_PATH_CHARS], key=header, body=_build_canonical_body(pairs)
    )


def _build_canonical_body(pairs: Iterable[tuple[str, str | Secret]]) -> Secret:
    """What was sent as one text, length-prefixed, so that no two different bodies have the same."""
    sent = sorted((name, reveal_text(value)) for name, value in pairs if name not in _UNSIGNED_PARAMETERS)
    return Secret("".join(f"{len(name)}:{name}{len(value)}:{value}" for name, value in sent))


def build_in_progress_refusal(key: str) -> RequestRefusedError:
    """409: the first request with this key has not been answered yet."""
    error = ParameterError(name=IDEMPOTENCY_HEADER, value=key, message="belongs to a request still being made")
    return RequestRefusedError(IDEMPOTENCY_CONFLICT_CODE, [error], status=409)


def delete_expired_idempotency_keys(now: datetime, *, limit: int) -> int:
    """Throw away at most ``limit`` keys that are older than IDEMPOTENCY_RETENTION at ``now``, real time; how many there
    were."""
    rows = execute_sql(
        "WITH old AS (SELECT token, method, path, key FROM gateway_idempotencykey WHERE created_at < %(limit)s"
        " ORDER BY created_at LIMIT %(most)s), gone AS (DELETE FROM gateway_idempotencykey k USING old WHERE"
        " (k.token, k.method, k.path, k.key) = (old.token, old.method, old.path, old.key) RETURNING 1)"
        " SELECT count(*) FROM gone",
        {"limit": now - IDEMPOTENCY_RETENTION, "most": limit},
    )
    return int(rows[0][0])

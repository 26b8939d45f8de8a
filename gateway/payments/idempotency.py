"""Idempotency keys: a request with the same key and body makes one payment and gets the same response (ruling D20).

The key is claimed in the statement that begins the payment, so there is never a payment without its key or a key
without a payment. Keys are dated by the database's clock and deleted after IDEMPOTENCY_RETENTION.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from gateway.catalogue.parse import INVALID_PARAMETER_CODE
from gateway.core.masking import mask_text
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE
from gateway.core.secret import Secret, reveal_text
from gateway.db.statement import DatabaseTime, WriteStatement, execute_sql
from gateway.models import IdempotencyKey, Payment, Status
from gateway.payments.refusal import RequestRefusedError, build_parameter_refusal
from gateway.payments.responses import RenderedResponse
from gateway.timers.registry import MAX_SWEPT_ROWS, SWEEP_INTERVAL_S, Timer, interval_sql
from gateway.vault.sealing import current_vault

IDEMPOTENCY_RETENTION: Final = timedelta(hours=24)
IDEMPOTENCY_HEADER: Final = "Idempotency-Key"
_SHAPE: Final = re.compile("[!-~]{1,255}")
_MAX_PATH_CHARS: Final = 64
_UNSIGNED_PARAMETERS: Final = frozenset({"card.cvv", "tokenAccount.dtvc"})
SELECT_IDEMPOTENCY_KEY: Final = (
    "k.fingerprint, k.payment, k.status, k.answer, k.created_at, clock_timestamp() - k.created_at AS age"
)
IdempotencyRow = tuple[Any, ...]
"""SELECT_IDEMPOTENCY_KEY of one key. Its age is by the clock of the database, which also dated it."""
# Written by hand: it is joined to the access token (``t``) of every request with a key, and its plan is cached. LIMIT
# keeps the planner from joining in other ways: without it a plan made for a small table reads all of the keys, and one
# for few tokens tries the keys of all tokens.
JOIN_IDEMPOTENCY_KEY: Final = (
    "LEFT JOIN LATERAL (SELECT * FROM gateway_idempotencykey WHERE token = t.id AND method = %(method)s"
    " AND path = %(path)s AND key = %(key)s LIMIT 1) k ON true"
)
_FIND: Final = (
    f"SELECT {SELECT_IDEMPOTENCY_KEY} FROM gateway_idempotencykey k"  # noqa: S608 - columns of this module
    " WHERE token = %(token)s AND method = %(method)s AND path = %(path)s AND key = %(key)s"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResponse:
    """The stored response of a key. ``status``: HTTP. ``body``: in the form of gateway.payments.responses;
    None when the worker that made ``payment`` died before it stored the response."""

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

    def find_stored_response(self, row: IdempotencyRow | None) -> StoredResponse | None:
        """The response already stored for this key, None if the key is free. ``row``: of the key, read with
        the admission. Raises RequestRefusedError: used with another body (400), or still in progress (409)."""
        found = self._read_stored_response(row)
        if found is None or found.body is not None:
            return found
        if Payment.objects.filter(pk=found.payment, status=Status.STARTED).exists():
            raise build_in_progress_refusal(self.key)
        # Completed between the two reads, or by recovery, which stores no response: read the row again.
        rows = execute_sql(_FIND, self._where)
        return self._read_stored_response(rows[0] if rows else None)

    def _read_stored_response(self, row: IdempotencyRow | None) -> StoredResponse | None:
        if row is None:
            return None
        fingerprint, payment, status, answer, created_at, age = row
        if age > IDEMPOTENCY_RETENTION:
            IdempotencyKey.objects.filter(**self._where, created_at=created_at).delete()
            return None
        if not current_vault().matches(self.body, fingerprint):
            raise build_parameter_refusal(
                INVALID_PARAMETER_CODE, IDEMPOTENCY_HEADER, "was used with another body", value=self.key
            )
        return StoredResponse(status=status or 200, body=answer, payment=payment)

    def insert(self, write: WriteStatement, payment: UUID, response: RenderedResponse | None) -> None:
        """Claim the key in the statement that begins ``payment``. ``response``: if that statement completes it too."""
        write.insert(
            IdempotencyKey,
            **self._where,
            fingerprint=current_vault().fingerprint(self.body),
            payment=payment,
            status=response.status if response is not None else None,
            answer=response.stored_text if response is not None else None,
            created_at=DatabaseTime(timedelta(0)),
        )

    def store_response(self, write: WriteStatement, payment: UUID, response: RenderedResponse) -> None:
        """Store the response in the statement that completes ``payment``; a key that has expired meanwhile and belongs
        to a newer payment stays as it is."""
        answer = {"status": response.status, "answer": response.stored_text}
        write.update_related(IdempotencyKey, answer, {**self._where, "payment": payment})


def build_idempotency_lookup(header: str | None, *, method: str, path: str) -> dict[str, str] | None:
    """The values of JOIN_IDEMPOTENCY_KEY for a request's header; None without a key or for a malformed one."""
    if header is None or not _SHAPE.fullmatch(header):
        return None
    return {"method": method, "path": path[:_MAX_PATH_CHARS], "key": header}


def parse_idempotency_claim(
    header: str | None, pairs: Iterable[tuple[str, str | Secret]], *, token: UUID, method: str, path: str
) -> IdempotencyClaim | None:
    """The claim of a request; None without the header. Raises RequestRefusedError for a malformed key."""
    if header is None:
        return None
    if not _SHAPE.fullmatch(header) or mask_text(header) != header:
        message = "must be 1 to 255 printable ASCII characters without spaces, and no card number"
        raise build_parameter_refusal(INVALID_PARAMETER_CODE, IDEMPOTENCY_HEADER, message)
    return IdempotencyClaim(
        token=token, method=method, path=path[:_MAX_PATH_CHARS], key=header, body=_build_canonical_body(pairs)
    )


def _build_canonical_body(pairs: Iterable[tuple[str, str | Secret]]) -> Secret:
    """The sent parameters as one text, length-prefixed so that no two different bodies give the same text."""
    sent = sorted([(name, reveal_text(value)) for name, value in pairs if name not in _UNSIGNED_PARAMETERS])
    return Secret("".join([f"{len(name)}:{name}{len(value)}:{value}" for name, value in sent]))


def build_in_progress_refusal(key: str) -> RequestRefusedError:
    """The refusal (409) of a key whose first request is still in progress."""
    return build_parameter_refusal(
        CONCURRENT_UPDATE_CODE, IDEMPOTENCY_HEADER, "belongs to a request still being made", value=key, status=409
    )


def delete_expired_idempotency_keys(*, limit: int) -> int:
    """Delete at most ``limit`` keys that are older than IDEMPOTENCY_RETENTION; returns the number deleted."""
    rows = execute_sql(
        "WITH old AS MATERIALIZED (SELECT token, method, path, key FROM gateway_idempotencykey WHERE"
        " created_at < statement_timestamp() - %(age)s::interval"
        " ORDER BY created_at LIMIT %(most)s), gone AS (DELETE FROM gateway_idempotencykey k USING old WHERE"
        " (k.token, k.method, k.path, k.key) = (old.token, old.method, old.path, old.key) RETURNING 1)"
        " SELECT count(*) FROM gone",
        {"age": IDEMPOTENCY_RETENTION, "most": limit},
    )
    return int(rows[0][0])


TIMER: Final = Timer(
    name="idempotency keys",
    run=lambda: delete_expired_idempotency_keys(limit=MAX_SWEPT_ROWS),
    every_s=SWEEP_INTERVAL_S,
    about="Forget keys after 24 hours.",
    earliest_due=f"SELECT min(created_at) + {interval_sql(IDEMPOTENCY_RETENTION)} FROM gateway_idempotencykey",  # noqa: S608 - a constant
)

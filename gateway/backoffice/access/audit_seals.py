"""The hash chain over the audit trail: each entry is sealed with the seal before it, so that nothing is changed, taken
out or put in between unseen.

A timer seals what was committed, one sealer at a time and outside the transactions that write entries, which would
otherwise hold up one another. Who can write to the database could make the whole chain anew; a digest that was noted
elsewhere (each run logs the last one, each signed export has it) shows that. Source: decision 0092.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import structlog
from django.db import transaction
from django.db.models import Exists, OuterRef

from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import AuditEntry, AuditSeal
from gateway.timers.registry import Timer

SEAL_BATCH: Final = 2_000
"""Entries that one run seals; the next run continues."""
LATE_COMMIT_WINDOW: Final = 10_000
"""Keys before the highest sealed one in which entries are looked for that were committed after it."""
MAX_KEY: Final = 2**62
CHAIN_START: Final = "0" * 64
"""The digest before the first seal."""
_SEAL_LOCK: Final = 0x61756469745345
"""PostgreSQL advisory lock of the sealer: two at once would give two seals one number."""
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainFault:
    """The first thing in the chain that is not as it was sealed. ``number``: the seal's place."""

    number: int
    why: str


def compute_digest(before: str, entry: AuditEntry) -> str:
    """SHA-256 of the digest before and the entry as canonical JSON."""
    content = [
        entry.pk,
        entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        entry.actor,
        entry.ip,
        entry.action,
        entry.subject,
        entry.subject_id,
        entry.before,
        entry.after,
        entry.merchant.hex if entry.merchant is not None else None,
    ]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(f"{before}{text}".encode()).hexdigest()


def seal_new_entries() -> int:
    """Seal committed entries that have no seal yet; returns how many."""
    return _seal_entries(LATE_COMMIT_WINDOW)


def seal_late_entries() -> int:
    """Seal entries without a seal wherever they are: of transactions that were open while thousands of others wrote.
    All keys are read, so that it is done seldom."""
    return _seal_entries(None)


def _seal_entries(window: int | None) -> int:
    with transaction.atomic():
        execute_sql("SELECT pg_advisory_xact_lock(%(lock)s)", {"lock": _SEAL_LOCK})
        last = AuditSeal.objects.order_by("-number").first()
        number, digest = (last.number, last.digest) if last is not None else (0, CHAIN_START)
        now, seals = clock.real_now(), []
        for entry in _list_unsealed(SEAL_BATCH, window):
            number, digest = number + 1, compute_digest(digest, entry)
            seals.append(AuditSeal(number=number, entry=entry.pk, digest=digest, sealed_at=now))
        AuditSeal.objects.bulk_create(seals)
    if seals:
        log.info("audit_sealed", number=number, digest=digest)
    return len(seals)


def _list_unsealed(most: int, window: int | None) -> list[AuditEntry]:
    """Entries without a seal, at most ``window`` keys before the highest sealed one (None: all)."""
    found = AuditEntry.objects.raw(
        """SELECT e.* FROM gateway_auditentry e
        WHERE e.id > (SELECT coalesce(max(entry), 0) - %(window)s FROM gateway_auditseal)
            AND NOT EXISTS (SELECT 1 FROM gateway_auditseal s WHERE s.entry = e.id)
        ORDER BY e.id LIMIT %(most)s""",
        {"window": window if window is not None else MAX_KEY, "most": most},
    )
    return list(found)


def count_seals() -> int:
    """How many entries are sealed: the number of the last seal."""
    last = AuditSeal.objects.order_by("-number").first()
    return last.number if last is not None else 0


def check_seals(after: int, before: str, most: int) -> tuple[list[AuditSeal], ChainFault | None]:
    """Check up to ``most`` seals after the number ``after``, whose digest is ``before``. Returns them, and the first
    fault."""
    seals = list(AuditSeal.objects.filter(number__gt=after).order_by("number")[:most])
    entries = AuditEntry.objects.in_bulk([seal.entry for seal in seals])
    for seal in seals:
        after += 1
        entry = entries.get(seal.entry)
        if seal.number != after:
            return seals, ChainFault(number=after, why=f"seal {after} is missing")
        if entry is None:
            return seals, ChainFault(number=after, why=f"entry {seal.entry} is missing")
        if compute_digest(before, entry) != seal.digest:
            return seals, ChainFault(number=after, why=f"entry {seal.entry} is not as it was sealed")
        before = seal.digest
    return seals, None


def check_chain(noted: str) -> tuple[int, str, ChainFault | None]:
    """Check the whole chain; returns how many seals are right, the last right digest, and the first fault. ``noted``: a
    digest from elsewhere that has to occur."""
    number, digest, seen = 0, CHAIN_START, not noted
    while True:
        seals, fault = check_seals(number, digest, SEAL_BATCH)
        if fault is not None:
            return fault.number - 1, digest, fault
        if not seals:
            break
        seen = seen or any(seal.digest == noted for seal in seals)
        number, digest = seals[-1].number, seals[-1].digest
    if not seen:
        return number, digest, ChainFault(number=number, why="the noted digest does not occur")
    return number, digest, None


def count_unsealed_entries(*, until: datetime | None = None) -> int:
    """Entries without a seal, wherever they are; ``until``: those written before it. All are read: only for a check."""
    seals = AuditSeal.objects.filter(entry=OuterRef("pk"))
    found = AuditEntry.objects.filter(~Exists(seals))
    return (found if until is None else found.filter(at__lt=until)).count()


def list_sealed_entries(entries: Sequence[AuditEntry]) -> Iterator[tuple[AuditEntry, AuditSeal | None, str]]:
    """Each entry with its seal, and the digest of the seal before it."""
    seals = {seal.entry: seal for seal in AuditSeal.objects.filter(entry__in=[entry.pk for entry in entries])}
    digests = _load_digests(seal.number - 1 for seal in seals.values())
    for entry in entries:
        seal = seals.get(entry.pk)
        yield entry, seal, digests.get(seal.number - 1, CHAIN_START) if seal is not None else ""


def _load_digests(numbers: Iterable[int]) -> dict[int, str]:
    return dict(AuditSeal.objects.filter(number__in=list(numbers)).values_list("number", "digest"))


TIMER: Final = Timer(
    name="audit seals",
    about="Seal new entries of the audit trail into its hash chain.",
    run=seal_new_entries,
    # Bounded like the search: entries are few, and most often the last one is sealed.
    earliest_due="""
        SELECT min(e.at) FROM gateway_auditentry e
        WHERE e.id > (SELECT coalesce(max(entry), 0) - 1000 FROM gateway_auditseal)
            AND NOT EXISTS (SELECT 1 FROM gateway_auditseal s WHERE s.entry = e.id)""",
    every_s=5.0,
)
LATE_SEAL_TIMER: Final = Timer(
    name="late audit seals",
    about="Seal entries of the audit trail that were committed very late.",
    run=seal_late_entries,
    every_s=3600.0,
)

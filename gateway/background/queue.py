"""Background work of the back office: long tasks that a user starts and finds again (exports, bulk replays, imports).

A kind of work is one function that does one slice: it reads where the last one ended (``cursor``), does a bounded part
and returns where it ended. A worker holds a lease for a slice, and a slice counts by compare-and-set, so a worker that
dies loses one slice, and two at once do nothing twice. Taking work over invalidates what the previous worker still
does: claiming raises ``slices``, too. Files belong to an attempt (gateway.background.files); the statement that ends
the work names the result file. Source: docs/background-work.md.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

import structlog
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Case, Q, When
from django.db.models.functions import Now
from django.utils import translation

from gateway.access import audit_log
from gateway.background.files import AttemptFolder
from gateway.background.work_notice import mail_work_ended
from gateway.core import clock
from gateway.models import BackgroundWork
from gateway.timers import wakeup
from gateway.timers.registry import Timer

BACKGROUND_TIMER_NAME: Final = "background work"
MAX_TURN_S: Final = 2.0
"""Seconds one piece of work runs before the next one has its turn."""
MAX_BACKGROUND_RUN_S: Final = 10.0
"""Longest run of the timer while there is work, seconds."""
BACKGROUND_WORK_LEASE: Final = timedelta(seconds=60)
"""A worker without a sign of life for so long counts as dead."""
SLICE_RETRY_DELAY: Final = timedelta(seconds=15)
MAX_SLICE_FAILURES: Final = 5
RESULT_FILE_RETENTION: Final = timedelta(days=7)
"""Retention of a result file after its work ended."""
MAX_OPEN_WORK_PER_OWNER: Final = 5
"""Most pieces of work that one user may have waiting or running."""
FILE_CLEANUP_BATCH: Final = 50

BackgroundWorkState = BackgroundWork.State
OPEN_WORK_STATES: Final = (BackgroundWorkState.WAITING, BackgroundWorkState.RUNNING)
log = structlog.get_logger(__name__)


class WorkFailedError(Exception):
    """The work cannot be done, and a retry will not help; the text is shown to its owner."""


class WorkLeaseLostError(Exception):
    """Another worker has this work now, or it was cancelled: results of this worker are discarded."""


class TooMuchOpenWorkError(Exception):
    """The user has as much open work as one user may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceResult:
    """Result of one slice. ``done``: things done so far, in all; ``total``: of how many, None while not known.
    ``file``: the name of the finished file in the work's folder."""

    done: int
    cursor: Mapping[str, Any]
    finished: bool = False
    total: int | None = None
    file: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkKind:
    """A kind of work. ``step``: does one slice of about half a second; arguments: the work, the folder for its files,
    and a function that renews the lease, which raises WorkLeaseLostError; called in a transaction it keeps others off
    until the transaction ends. May raise WorkFailedError. ``right``: the permission to request it and to fetch its
    file; ``file_right``: the one to fetch its file, where that is another."""

    name: str
    about: str
    right: str
    step: Callable[[BackgroundWork, AttemptFolder, Callable[[], None]], SliceResult] = field(repr=False)
    file_right: str = ""


_KINDS: Final[dict[str, WorkKind]] = {}
WORK_KINDS: Final[Mapping[str, WorkKind]] = MappingProxyType(_KINDS)


def register_work_kind(kind: WorkKind) -> None:
    """Register ``kind``. config.timers does so for all kinds."""
    _KINDS[kind.name] = kind


# --- requests -----------------------------------------------------------------------------------------------------


def enqueue_work(
    kind: WorkKind, title: str, parameters: Mapping[str, Any], *, owner: int, by: audit_log.Actor
) -> BackgroundWork:
    """Queue work; a worker takes it within a second. ``title``: in the owner's language, and therefore not in the
    audit log. Raises TooMuchOpenWorkError."""
    with transaction.atomic():
        get_user_model().objects.select_for_update(no_key=True).get(pk=owner)  # two at once count one after the other
        if BackgroundWork.objects.filter(owner=owner, state__in=OPEN_WORK_STATES).count() >= MAX_OPEN_WORK_PER_OWNER:
            raise TooMuchOpenWorkError
        row = BackgroundWork.objects.create(
            kind=kind.name,
            title=title[:200],
            owner_id=owner,
            parameters={**parameters, "language": translation.get_language() or ""},
            asked_at=clock.real_now(),
        )
        audit_log.record_audit_entry(by, f"{kind.name} asked", row, after=dict(parameters))
    wakeup.notify_timer(BACKGROUND_TIMER_NAME)
    return row


def cancel_work(row: BackgroundWork, *, by: audit_log.Actor) -> bool:
    """Cancel work that is not finished; slices already done stay. False when it had ended."""
    with transaction.atomic():
        moved = BackgroundWork.objects.filter(pk=row.pk, state__in=OPEN_WORK_STATES).update(
            state=BackgroundWorkState.CANCELLED, ended_at=clock.real_now(), lease_until=None
        )
        if moved:
            audit_log.record_audit_entry(by, f"{row.kind} cancelled", row, before={"done": row.done})
    return bool(moved)


def work_folder(work: UUID) -> Path:
    """The folder of a piece of work's files. Web servers and workers share GATEWAY_WORK_DIR."""
    return Path(settings.GATEWAY_WORK_DIR) / work.hex


def find_result_file(row: BackgroundWork) -> Path | None:
    """The finished file; None when there is none, or no longer."""
    if row.state != BackgroundWorkState.DONE or not row.file:
        return None
    path = work_folder(row.pk) / row.file
    return path if path.is_file() else None


# --- execution ----------------------------------------------------------------------------------------------------


def run_background_work() -> int:
    """Run pieces of work in turn for MAX_BACKGROUND_RUN_S, one of each owner before the second of any; returns how many
    slices were done."""
    ends, count = time.monotonic() + MAX_BACKGROUND_RUN_S, 0
    while True:
        did, had, turns = 0, set[UUID](), Counter[int]()
        while (row := _claim_work(had, turns)) is not None:
            had.add(row.pk)
            turns[row.owner_id] += 1
            did += _run_turn(row)
        count += did
        if not did or time.monotonic() >= ends:
            break
    _delete_expired_files()
    return count


def _claim_work(had: set[UUID], turns: Mapping[int, int]) -> BackgroundWork | None:
    """The next piece that had no turn yet: of the owner with the fewest ``turns``, the oldest."""
    numbers = [When(owner=owner, then=number) for owner, number in turns.items()]
    fewest = [Case(*numbers, default=0)] if numbers else []
    with transaction.atomic():
        free = Q(lease_until__isnull=True) | Q(lease_until__lt=Now())
        row = (
            BackgroundWork.objects.select_for_update(skip_locked=True)
            .filter(free, state__in=OPEN_WORK_STATES)
            .exclude(pk__in=had)
            .order_by(*fewest, "asked_at")
            .first()
        )
        if row is None:
            return None
        row.state, row.slices = BackgroundWorkState.RUNNING, row.slices + 1
        BackgroundWork.objects.filter(pk=row.pk).update(
            state=row.state, slices=row.slices, lease_until=Now() + BACKGROUND_WORK_LEASE
        )
    return row


def _run_turn(row: BackgroundWork) -> int:
    """Run slices of ``row`` until its turn is over; returns how many."""
    kind = WORK_KINDS.get(row.kind)
    place = AttemptFolder(path=work_folder(row.pk), attempt=row.slices)
    ends = time.monotonic() + MAX_TURN_S
    count = 0
    while row.state == BackgroundWorkState.RUNNING:
        try:
            if kind is None:
                raise WorkFailedError(f"This installation does not know the work {row.kind}.")
            place.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            did = kind.step(row, place, lambda: _renew_lease(row))
        except WorkLeaseLostError:
            break
        except WorkFailedError as fault:
            _mark_failed(row, str(fault))
            break
        except Exception:
            log.exception("background_work_failed", work=row.pk.hex, kind=row.kind)
            _schedule_retry(row)
            break
        count += 1
        over = did.finished or time.monotonic() >= ends
        if not _store_slice(row, did, release=over):
            break
        if over:
            break
    return count


def _renew_lease(row: BackgroundWork) -> None:
    same = BackgroundWork.objects.filter(pk=row.pk, slices=row.slices, state=BackgroundWorkState.RUNNING)
    if not same.update(lease_until=Now() + BACKGROUND_WORK_LEASE):
        raise WorkLeaseLostError


def _store_slice(row: BackgroundWork, did: SliceResult, *, release: bool) -> bool:
    """Store a slice's result if the work is unchanged since it was read; False when it was cancelled or taken over."""
    now = clock.real_now()
    changes: dict[str, Any] = {
        "done": did.done,
        "cursor": dict(did.cursor),
        "slices": row.slices + 1,
        "failures": 0,
        "lease_until": None if release else Now() + BACKGROUND_WORK_LEASE,
        "message": did.message[:500],
    }
    if did.total is not None:
        changes["total"] = did.total
    if did.finished:
        changes |= {"state": BackgroundWorkState.DONE, "file": did.file, "ended_at": now}
    moved = BackgroundWork.objects.filter(pk=row.pk, slices=row.slices, state=BackgroundWorkState.RUNNING).update(
        **changes
    )
    for name, value in changes.items():
        setattr(row, name, value)
    if moved and did.finished:
        _delete_parts(row)
        mail_work_ended(row)
    return bool(moved)


def _delete_parts(row: BackgroundWork) -> None:
    """Delete the intermediate files of a finished result."""
    for path in work_folder(row.pk).glob("*"):
        if path.name != row.file:
            path.unlink(missing_ok=True)


def _mark_failed(row: BackgroundWork, why: str) -> None:
    same = BackgroundWork.objects.filter(pk=row.pk, slices=row.slices, state=BackgroundWorkState.RUNNING)
    row.state, row.message, row.ended_at = BackgroundWorkState.FAILED, why[:500], clock.real_now()
    if same.update(state=row.state, message=row.message, ended_at=row.ended_at, lease_until=None):
        mail_work_ended(row)


def _schedule_retry(row: BackgroundWork) -> None:
    """Schedule a retry of a slice that raised, a few times."""
    if row.failures + 1 >= MAX_SLICE_FAILURES:
        _mark_failed(row, "It failed several times; the log of the worker says why.")
        return
    BackgroundWork.objects.filter(pk=row.pk, slices=row.slices, state=BackgroundWorkState.RUNNING).update(
        failures=row.failures + 1,
        lease_until=Now() + SLICE_RETRY_DELAY,
        message="A part failed and is tried again.",
    )


def _delete_expired_files() -> None:
    """Delete files past their retention, and files of unfinished work."""
    old = Q(state=BackgroundWorkState.DONE, ended_at__lt=clock.real_now() - RESULT_FILE_RETENTION) & ~Q(file="")
    left = Q(state__in=(BackgroundWorkState.CANCELLED, BackgroundWorkState.FAILED), slices__gt=0)
    for row in BackgroundWork.objects.filter(old | left).order_by("ended_at")[:FILE_CLEANUP_BATCH]:
        shutil.rmtree(work_folder(row.pk), ignore_errors=True)
        BackgroundWork.objects.filter(pk=row.pk).update(file="", slices=0)


TIMER: Final = Timer(
    name=BACKGROUND_TIMER_NAME,
    about="Exports, bulk replays and imports, slice by slice.",
    run=run_background_work,
    earliest_due="SELECT min(coalesce(lease_until, asked_at)) FROM gateway_backgroundwork "
    "WHERE state IN ('WAITING', 'RUNNING')",
)


def compute_percent_done(row: BackgroundWork) -> int | None:
    """Percent done; None while the total is not known."""
    if row.state == BackgroundWorkState.DONE:
        return 100
    return None if not row.total else min(99, int(100 * row.done / row.total))

"""Reading from a standby: lists, searches, reports and exports, never what decides.

    page, as_of = read_elsewhere(lambda: find_payments_page(…))      # as_of None: the primary answered

Within the call, rows of STANDBY_MODELS and statements of :func:`gateway.db.statement.read_sql` are read from
GATEWAY_STANDBY_URL; everything else, such as sessions, permissions and locks, from the primary. The standby is used
only if it has replayed what the primary had written at most GATEWAY_STANDBY_MAX_LAG_S ago; else, or if it fails on the
way, the whole is read from the primary. Nothing can be written meanwhile, and a row that came from the standby can
never be saved. Source: docs/decisions/0115.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

import structlog
from django.conf import settings
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, OperationalError, connections, models
from django.http.response import HttpResponseBase
from psycopg.errors import SerializationFailure

from gateway.core import clock

_Found = TypeVar("_Found")

STANDBY_ALIAS: Final = "standby"
STANDBY_MODELS: Final = frozenset({
    "gateway.payment", "gateway.chainstate", "gateway.paymentevent", "gateway.acquirerexchange",
    "gateway.requestlog", "gateway.registration", "gateway.notification", "gateway.webhookdelivery",
    "gateway.webhookattempt", "gateway.riskobservation", "gateway.authentication", "reporting.settlement",
    "reporting.settlementrecord", "reporting.match", "chargebacks.chargeback",
})  # fmt: skip
"""Rows that may be read from the standby, where :func:`read_elsewhere` asks for it: the books. Users, permissions,
tokens, settings and claims of work are not among them."""
AS_OF_HEADER: Final = "X-As-Of"
SAMPLE_INTERVAL_S: Final = 0.5
"""How often a process asks the primary how far it has written, at most."""
STANDBY_PATIENCE_S: Final = 0.1
"""How long a reader waits for the standby to come as far as the primary was a moment ago."""
STANDBY_PAUSE_S: Final = 5.0
"""For how long a process asks the primary alone, after the standby was away or too far behind."""
_POLL_S: Final = 0.005

_PRIMARY: Final = """
SELECT pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint, current_database()::text,
    (SELECT system_identifier FROM pg_control_system())
"""
_STANDBY: Final = """
SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint, current_database()::text,
    (SELECT system_identifier FROM pg_control_system())
WHERE pg_is_in_recovery()
"""

log = structlog.get_logger(__name__)


class StandbyWriteError(Exception):
    """A write within :func:`read_elsewhere`, or of a row that came from the standby: a fault of the program."""


class _StandbyUnusableError(Exception):
    """The standby is too far behind, or it is no standby of this database. The message tells which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sample:
    """How far the primary had written. ``at``: this machine's time before it was asked; ``since``: its monotonic
    clock."""

    position: int
    database: str
    system: int
    at: datetime
    since: float


@dataclass(slots=True)
class _Known:
    """What this process knows: recent samples of the primary, oldest first, and until when the standby is not
    asked."""

    samples: deque[_Sample] = field(default_factory=deque)
    paused_until: float = 0.0


_known: Final = _Known()
_lock = threading.Lock()
_as_of: Final[ContextVar[datetime | None]] = ContextVar("standby_as_of", default=None)
"""Set while :func:`read_elsewhere` reads from the standby: the time as of which it does."""


def _renew_after_fork() -> None:
    """A forked process asks for itself, with a lock of its own: one that another thread held is never released."""
    global _lock
    _lock = threading.Lock()
    _known.samples = deque()
    _known.paused_until = 0.0


os.register_at_fork(after_in_child=_renew_after_fork)


def has_standby() -> bool:
    """Whether a standby is set up for reading."""
    return bool(settings.GATEWAY_STANDBY_URL)


def read_elsewhere(find: Callable[[], _Found], *, written: int = 0) -> tuple[_Found, datetime | None]:
    """``find()`` read from the standby, and the time as of which; or from the primary, and None.

    ``find`` only reads, and may run twice. ``written``: a position (:func:`find_written_position`) that the standby
    must have reached, so that a user sees what they have just done.
    """
    if (outer := _as_of.get()) is not None:
        return find(), outer
    if not has_standby() or time.monotonic() < _known.paused_until or connections[DEFAULT_DB_ALIAS].in_atomic_block:
        # A transaction reads where it writes.
        return find(), None
    try:
        as_of = _reach_standby(written)
        if as_of is not None:
            token = _as_of.set(as_of)
            try:
                return find(), as_of
            finally:
                _as_of.reset(token)
    except _StandbyUnusableError as fault:
        _pause(str(fault))
    except (DatabaseError, InterfaceError) as fault:
        # Whatever it was, the primary decides: a fault of the statement is raised there again.
        if isinstance(fault, OperationalError | InterfaceError) and not isinstance(
            fault.__cause__, SerializationFailure
        ):
            _pause(type(fault.__cause__ or fault).__name__)
        connections[STANDBY_ALIAS].close()
    return find(), None


def find_elsewhere(find: Callable[[], _Found | None]) -> tuple[_Found | None, datetime | None]:
    """As :func:`read_elsewhere`, for what may be missing: a standby never answers so, as it may lack what was written
    at this moment."""
    found, as_of = read_elsewhere(find)
    return (find(), None) if found is None and as_of is not None else (found, as_of)


def get_as_of() -> datetime | None:
    """The time as of which this call reads; None: it reads from the primary."""
    return _as_of.get()


def build_as_of_header(as_of: datetime | None) -> dict[str, str]:
    """The answer's header that tells the time as of which it was read; none for an answer of the primary."""
    return {} if as_of is None else {AS_OF_HEADER: clock.format_timestamp(as_of)}


def add_as_of_header(response: HttpResponseBase, as_of: datetime | None) -> None:
    """Add :func:`build_as_of_header` to a page."""
    for name, value in build_as_of_header(as_of).items():
        response.headers[name] = value


def choose_read_alias() -> str:
    """The connection to read from."""
    if _as_of.get() is None or connections[DEFAULT_DB_ALIAS].in_atomic_block:
        return DEFAULT_DB_ALIAS
    return STANDBY_ALIAS


def refuse_write() -> None:
    """Raises StandbyWriteError within :func:`read_elsewhere`: what is written must not follow from a standby's rows."""
    if _as_of.get() is not None:
        raise StandbyWriteError("nothing is written while reading from the standby")


def find_written_position() -> int:
    """How far the primary has written: a standby that has replayed it has everything committed until now."""
    return _sample_primary().position


class StandbyRouter:
    """Django's database router: the primary, unless :func:`read_elsewhere` reads rows of STANDBY_MODELS."""

    def db_for_read(self, model: type[models.Model], **hints: Any) -> str:
        if _as_of.get() is not None and model._meta.label_lower in STANDBY_MODELS:
            return choose_read_alias()
        return DEFAULT_DB_ALIAS

    def db_for_write(self, model: type[models.Model], **hints: Any) -> str:
        """The primary. Django asks this for reads that lock, too."""
        refuse_write()
        row = hints.get("instance")
        if row is not None and row._state.db == STANDBY_ALIAS and isinstance(row, model):
            raise StandbyWriteError(f"a {model._meta.label} that was read from the standby is not written")
        return DEFAULT_DB_ALIAS

    def allow_relation(self, one: models.Model, other: models.Model, **hints: Any) -> bool:
        return True

    def allow_migrate(self, db: str, app_label: str, **hints: Any) -> bool | None:
        return False if db == STANDBY_ALIAS else None


# --- how far the standby is ---------------------------------------------------------------------------------------


def _reach_standby(written: int) -> datetime | None:
    """The time as of which the standby answers, waiting for it a little; None if it lacks what ``written`` names, or if
    it is not known yet how far it is behind. Raises _StandbyUnusableError if it is too far, and Django's errors."""
    _take_sample()
    until = time.monotonic() + STANDBY_PATIENCE_S
    while True:
        position = _ask_standby()
        sample, is_certain = _find_reached(position)
        if sample is not None and position >= written:
            return sample.at
        if time.monotonic() >= until:
            if sample is None and is_certain:
                raise _StandbyUnusableError(f"more than {settings.GATEWAY_STANDBY_MAX_LAG_S:g} s behind")
            return None
        time.sleep(_POLL_S)


def _take_sample() -> None:
    """Ask the primary how far it has written, unless that was done a moment ago."""
    with _lock:
        samples = _known.samples
        recent = samples and time.monotonic() - samples[-1].since < SAMPLE_INTERVAL_S
    if not recent:
        sample = _sample_primary()
        with _lock:
            if samples and sample.since < samples[-1].since:
                return  # another thread asked later and was answered first
            if samples and sample.position < samples[-1].position:
                samples.clear()  # another primary, which never had the rest
            samples.append(sample)


def _sample_primary() -> _Sample:
    at, since = clock.real_now(), time.monotonic()
    position, database, system = _ask(DEFAULT_DB_ALIAS, _PRIMARY)[0]
    return _Sample(position=position, database=database, system=system, at=at, since=since)


def _ask_standby() -> int:
    """How far the standby has replayed. Raises _StandbyUnusableError if it is none of this database."""
    found = _ask(STANDBY_ALIAS, _STANDBY)
    with _lock:  # without it, there is a moment in which another thread has cleared them
        newest = _known.samples[-1]
    if not found or found[0][0] is None:
        raise _StandbyUnusableError("it is no standby: it takes writes")
    if found[0][1:] != (newest.database, newest.system):
        raise _StandbyUnusableError("it is no standby of this database")
    position: int = found[0][0]
    return position


def _find_reached(position: int) -> tuple[_Sample | None, bool]:
    """Returns (the newest sample that the standby has reached, if it is young enough, whether the standby is certainly
    too far behind otherwise: it has not reached one that is too old)."""
    oldest = time.monotonic() - settings.GATEWAY_STANDBY_MAX_LAG_S
    with _lock:
        samples = _known.samples
        while len(samples) > 1 and samples[1].since < oldest:
            samples.popleft()
        young = (one for one in reversed(samples) if one.since >= oldest)
        return next((one for one in young if one.position <= position), None), samples[0].since < oldest


def _ask(alias: str, sql: str) -> list[tuple[Any, ...]]:
    with connections[alias].cursor() as cursor:
        cursor.execute(sql)
        rows: list[tuple[Any, ...]] = cursor.fetchall()
    return rows


def _pause(why: str) -> None:
    _known.paused_until = time.monotonic() + STANDBY_PAUSE_S
    log.warning("standby_not_read", why=why, seconds=STANDBY_PAUSE_S)

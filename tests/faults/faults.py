"""What is done to the running product: one table of faults, each of which says what it saw.

A fault fires when its mark is seen: the killed process is gone, the stopped one is held, the log of the acquirer names
the misbehaviour. It is over when the part does its work again, which is timed.
"""

from __future__ import annotations

import contextlib
import os
import random
import secrets
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import psycopg

from config.launcher.programs import build_beat_command
from tests.faults.client import Answer, Client, payment
from tests.faults.processes import Process, eventually, is_alive
from tests.faults.races import Shop
from tests.faults.stack import Stack, stopped

GONE_WITHIN_S: Final = 5.0
BACK_WITHIN_S: Final = 60.0
HELD_S: Final = 3.0
TWO_BEATS_S: Final = 5.0
BEHAVIOUR_S: Final = 3.0
BEHAVIOUR_AT_MOST_S: Final = 12.0
BEHAVIOUR_ODDS: Final = 0.3
BASE_ODDS: Final = 0.01
SLOW_MS: Final = 300
DELAY_MS: Final = 30
"""Before every answer of the acquirer, so that most requests under way are at the acquirer when something dies."""
BEHAVIOURS: Final = (
    "silent_before", "silent_after", "held", "late", "disconnect_before", "disconnect_after", "duplicate", "nonsense",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """One fault that was tried. ``at``: when, seconds since 1970. ``fired``: its mark was seen. ``back``: when the part
    worked again; None when it did not within BACK_WITHIN_S."""

    fault: str
    at: float
    fired: bool
    back: float | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a fault saw: whether its mark showed, whether the part worked again within BACK_WITHIN_S, and when it
    struck to the millisecond, where that matters."""

    fired: bool
    back: bool
    note: str = ""
    moment: float = 0.0


@dataclass(slots=True, kw_only=True)
class Stage:
    """What the faults act on. ``late_ms`` is longer than the gateway waits for an answer. ``peers``: those of
    tests.faults.peers, where they are paid through."""

    stack: Stack
    shop: Shop
    late_ms: int
    dice: random.Random = field(default_factory=random.Random)
    peers: object = None

    def steer(self, **odds: float) -> None:
        """A little of every misbehaviour all the time, on submissions; ``odds`` instead, on every kind of message."""
        base = dict.fromkeys(BEHAVIOURS, BASE_ODDS)
        kinds = ["submit", "inquire", "void"] if odds else ["submit"]
        control: dict[str, Any] = {"delay_ms": DELAY_MS, "late_ms": self.late_ms, "kinds": kinds, **(odds or base)}
        self.stack.acquirer.steer(**control)

    def slow_down(self, delay_ms: int) -> None:
        """No misbehaviour, but every answer takes so long."""
        self.stack.acquirer.steer(delay_ms=delay_ms)

    def quiet(self) -> None:
        """The acquirer behaves from now on."""
        self.stack.acquirer.steer()

    def steers_again(self) -> bool:
        with contextlib.suppress(OSError, ValueError, KeyError):
            self.steer()
            return True
        return False

    def recovers(self) -> bool:
        """Whether a payment in doubt is asked about again: a real one, whose answer the acquirer keeps to itself. One
        that is answered at once, as while a breaker is still open, says nothing: another is tried."""
        end = time.monotonic() + BACK_WITHIN_S
        client = self.shop.client()
        try:
            while time.monotonic() < end:
                if ident := self._lose_answer(client):
                    return eventually(lambda: is_settled(client.read(ident)), end - time.monotonic(), 0.2)
                time.sleep(0.5)
            return False
        finally:
            client.close()

    def _lose_answer(self, client: Client) -> str:
        """A payment whose answer the acquirer keeps to itself: its id, '' where it did not come to be in doubt."""
        fields = payment("DB", "10.00", mode="EXTERNAL", order=f"probe-{secrets.token_hex(6)}")
        fields["customParameters[STUB_behaviour]"] = "disconnect_after"
        told = client.pay(fields["merchantTransactionId"], fields)
        return told.id if told is not None and told.is_open else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """``group`` is what --only names. ``stops_ticks``: while it lasts nobody can ask an acquirer; ``stops_acquirer``:
    while it lasts the acquirer gives no answer to who asks."""

    name: str
    group: str
    strike: Callable[[Stage], Seen]
    stops_ticks: bool = False
    stops_acquirer: bool = False

    def fire(self, stage: Stage) -> Strike:
        """Do it, and wait until the part works again."""
        at = time.time()
        seen = self.strike(stage)
        back = time.time() if seen.back else None
        return Strike(fault=self.name, at=seen.moment or at, fired=seen.fired, back=back, note=seen.note)


def kill(one: Process) -> bool:
    """kill -9; whether it is gone."""
    with contextlib.suppress(OSError):
        os.kill(one.pid, signal.SIGKILL)
    return eventually(lambda: not is_alive(one), GONE_WITHIN_S)


def _another(stage: Stage, role: str, old: Process) -> bool:
    """Whether another process has taken the place of ``old``."""

    def replaced() -> bool:
        now = stage.stack.find(role)
        return now is not None and (now.pid, now.started) != (old.pid, old.started)

    return eventually(replaced, BACK_WITHIN_S, 0.1)


def kill_role(stage: Stage, role: str, works: Callable[[Stage], bool]) -> Seen:
    old = stage.stack.must_find(role)
    moment = time.time()
    fired = kill(old)
    return Seen(fired, _another(stage, role, old) and works(stage), f"pid {old.pid}", moment)


def kill_child(stage: Stage, role: str, works: Callable[[Stage], bool]) -> Seen:
    """Kill one child of a role; its parent replaces it."""
    parent = stage.stack.must_find(role)
    eventually(lambda: len(stage.stack.below(role)) >= 2, BACK_WITHIN_S, 0.1)
    old = stage.dice.choice(stage.stack.below(role))
    moment = time.time()
    fired = kill(old)
    whole = eventually(lambda: len(stage.stack.below(role)) >= 2, BACK_WITHIN_S, 0.1)
    return Seen(fired and is_alive(parent), whole and works(stage), f"pid {old.pid}", moment)


def _kill_slowly(stage: Stage, strike: Callable[[Stage], Seen]) -> Seen:
    """With a slow acquirer, so that what is killed has questions under way."""
    stage.slow_down(SLOW_MS)
    time.sleep(2 * SLOW_MS / 1000)
    try:
        return strike(stage)
    finally:
        _accepts(stage)


def serves(stage: Stage) -> bool:
    return eventually(lambda: len(stage.stack.below("web")) >= 2 and stage.stack.is_ready(), BACK_WITHIN_S, 0.1)


def keeps(stage: Stage) -> bool:
    """The database answers, the web server too, and payments in doubt are asked about."""
    return eventually(stage.stack.answers, BACK_WITHIN_S, 0.1) and serves(stage) and stage.recovers()


def _kill_backend(stage: Stage) -> Seen:
    """kill -9 of one session's process: PostgreSQL then ends all of them and recovers. Seen by one of our own."""
    probe = stage.stack.connect()
    sessions = [one for one in stage.stack.sessions() if one.pid != probe.info.backend_pid]
    if not sessions:
        return Seen(False, True, "nobody was connected")
    old = stage.dice.choice(sessions)
    gone = kill(old)

    def ended() -> bool:
        try:
            probe.execute("SELECT 1")
        except psycopg.Error:
            return True
        return False

    fired = gone and eventually(ended, GONE_WITHIN_S, 0.1)
    probe.close()
    return Seen(fired, keeps(stage), f"pid {old.pid} of {len(sessions)} sessions")


def _terminate(stage: Stage) -> Seen:
    """pg_terminate_backend of every session but our own."""
    statement = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    with stage.stack.connect() as connection:
        ended = sum(bool(row[0]) for row in connection.execute(statement))
    return Seen(ended > 0, keeps(stage), f"{ended} sessions")


def _hold(stage: Stage, family: Callable[[], list[Process]], works: Callable[[Stage], bool]) -> Seen:
    """SIGSTOP for HELD_S, then SIGCONT whatever happens."""
    held = family()
    try:
        for one in held:
            with contextlib.suppress(OSError):
                os.kill(one.pid, signal.SIGSTOP)
        fired = eventually(lambda: stopped([one for one in held if is_alive(one)]), GONE_WITHIN_S)
        time.sleep(HELD_S)
    finally:
        for one in held:
            with contextlib.suppress(OSError):
                os.kill(one.pid, signal.SIGCONT)
    return Seen(fired, works(stage), f"{len(held)} processes for {HELD_S:g} s")


def _hold_postgres(stage: Stage) -> Seen:
    return _hold(stage, lambda: [stage.stack.must_find("postgres"), *stage.stack.below("postgres")], keeps)


def _hold_acquirer(stage: Stage) -> Seen:
    return _hold(stage, lambda: [stage.stack.must_find("acquirer")], _accepts)


def _hold_broker(stage: Stage) -> Seen:
    return _hold(stage, lambda: [stage.stack.must_find("broker")], _ticks)


def _forget(stage: Stage) -> Seen:
    """Every queue, what workers hold unacknowledged, and the bindings: all of it gone while they work."""
    before = stage.stack.flush_broker()
    return Seen(before > 0, _ticks(stage), f"{before} keys")


def _second_beat(stage: Stage) -> Seen:
    """Two beats tick for a while; then the second dies by kill -9."""
    beat = stage.stack.run_beside("second-beat.log", build_beat_command())
    began = eventually(lambda: stage.stack.log_has("second-beat.log", "maxinterval"), BACK_WITHIN_S, 0.2)
    time.sleep(TWO_BEATS_S)
    lived = beat.poll() is None
    beat.kill()
    beat.wait()
    return Seen(began and lived, _ticks(stage), f"for {TWO_BEATS_S:g} s")


def _accepts(stage: Stage) -> bool:
    return eventually(stage.steers_again, BACK_WITHIN_S, 0.1)


def _behave(stage: Stage, name: str) -> Seen:
    """The acquirer misbehaves in this one way for a while, to whoever asks whatever. Counted in its own log."""

    def seen() -> int:
        return sum(entry.get("fault") == name for entry in stage.stack.acquirer_log())

    before = seen()
    stage.steer(**{name: BEHAVIOUR_ODDS})
    time.sleep(BEHAVIOUR_S)
    eventually(lambda: seen() - before >= 3, BEHAVIOUR_AT_MOST_S - BEHAVIOUR_S, 0.3)
    back = _accepts(stage)
    count = seen() - before
    return Seen(count > 0, back, f"{count} messages")


def _kill_launcher(stage: Stage) -> Seen:
    """Everything dies at once and is started again on what it left. The secrets it made must still be the same."""
    stack = stage.stack
    known = stack.facts("demo.json").get("access_token")
    fired = stack.kill()
    stack.start()
    same = stack.facts("demo.json").get("access_token") == known
    return Seen(fired, same and _accepts(stage) and keeps(stage), "" if same else "the access token is another one")


def is_settled(told: Answer | None) -> bool:
    return told is not None and told.status < 500 and bool(told.id) and not told.is_open


def _ticks(stage: Stage) -> bool:
    return stage.recovers()


POOL_CHILD_KILLED: Final = "Celery pool child: kill -9"
"""Of a worker with processes; one with threads has no children."""
FAULTS: Final = (
    Fault(name="web worker: kill -9", group="web", strike=partial(kill_child, role="web", works=serves)),
    Fault(name="web worker, acquirer slow: kill -9", group="web",
          strike=partial(_kill_slowly, strike=partial(kill_child, role="web", works=serves))),
    Fault(name="web server, acquirer slow: kill -9", group="web",
          strike=partial(_kill_slowly, strike=partial(kill_role, role="web", works=serves))),
    Fault(name=POOL_CHILD_KILLED, group="worker", stops_ticks=True,
          strike=partial(kill_child, role="worker", works=_ticks)),
    Fault(name="Celery worker: kill -9", group="worker", stops_ticks=True,
          strike=partial(kill_role, role="worker", works=_ticks)),
    Fault(name="Celery beat: kill -9", group="beat", stops_ticks=True,
          strike=partial(kill_role, role="beat", works=_ticks)),
    Fault(name="broker: kill -9", group="broker", stops_ticks=True,
          strike=partial(kill_role, role="broker", works=_ticks)),
    Fault(name="broker: SIGSTOP 3 s", group="broker", stops_ticks=True, strike=_hold_broker),
    Fault(name="broker: forgets everything", group="broker", strike=_forget),
    Fault(name="a second beat, then kill -9", group="beat", strike=_second_beat),
    Fault(name="PostgreSQL session: kill -9", group="postgres", stops_ticks=True, strike=_kill_backend),
    Fault(name="PostgreSQL server: kill -9", group="postgres", stops_ticks=True,
          strike=partial(kill_role, role="postgres", works=keeps)),
    Fault(name="PostgreSQL: SIGSTOP 3 s", group="postgres", stops_ticks=True, strike=_hold_postgres),
    Fault(name="PostgreSQL: all sessions ended", group="postgres", stops_ticks=True, strike=_terminate),
    Fault(name="acquirer: kill -9", group="acquirer", stops_acquirer=True,
          strike=partial(kill_role, role="acquirer", works=_accepts)),
    Fault(name="acquirer: SIGSTOP 3 s", group="acquirer", stops_acquirer=True, strike=_hold_acquirer),
    *(
        Fault(name=f"acquirer: {name}", group="behaviour", stops_acquirer=True, strike=partial(_behave, name=name))
        for name in BEHAVIOURS
    ),
    Fault(name="everything: kill -9 of the launcher", group="launcher", stops_ticks=True, stops_acquirer=True,
          strike=_kill_launcher),
)  # fmt: skip
VALKEY_ONLY: Final = frozenset({"broker: forgets everything"})
"""Faults that only our own broker knows how to suffer."""

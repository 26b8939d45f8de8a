"""What is tried. Each trial does one thing of docs/running.md with real processes and returns the rows of the table."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg

from tests.running.books import UNLOGGED, compare
from tests.running.clients import Load
from tests.running.servers import DATABASE, Cluster, Server, eventually
from tests.running.site import Process, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the result: what was done, what was seen, whether it is as it must be."""

    trial: str
    done: str
    seen: str
    fine: bool


@dataclass(slots=True, kw_only=True)
class Stage:
    """What the trials share: three PostgreSQL servers, two nodes behind a proxy, the demo merchant."""

    cluster: Cluster
    site: Site
    demo: dict[str, Any]
    seconds: float
    primary: Server
    acknowledged: list[Any] = field(default_factory=list)

    def load(self, channel: str = "plain") -> Load:
        entity = self.demo["channels"][channel]
        return Load(speaker=self.site.speaker(self.demo["access_token"], entity))

    @property
    def acquirer(self) -> str:
        return self.site.environment["GATEWAY_STUB_ACQUIRER"]


class HealthWatch:
    """Asks each node's /health/ready ten times a second and remembers what it said."""

    def __init__(self, site: Site) -> None:
        self.seen: Counter[int] = Counter()
        self.last: dict[int, int] = {}
        self._site = site
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> HealthWatch:
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            for port in self._site.ports:
                status = self.last[port] = self._site.health(port)
                self.seen[status] += 1


def a_killed_node(stage: Stage) -> Iterator[Row]:
    """Two nodes behind the proxy; one is killed under load, comes back, and the other is killed."""
    load = stage.load()
    load.start()
    for node in stage.site.nodes:
        time.sleep(stage.seconds)
        node.kill()
        time.sleep(stage.seconds)
        node.start()
        eventually("the node is back", lambda: all(stage.site.health(port) == 200 for port in stage.site.ports))
    time.sleep(stage.seconds)
    load.finish()
    stage.acknowledged += load.acknowledged
    books = compare(stage.primary, stage.acknowledged, stage.acquirer)
    alive = all(process.lives for process in (stage.site.worker, stage.site.beat))
    yield Row(
        trial="a web node is killed",
        done="two nodes behind the proxy, six clients paying; kill -9 of one node, then of the other",
        seen=f"{told(load)}; {books}",
        fine=books.fine and not load.unanswered and load.retried > 0 and alive,
    )


def a_failed_primary(stage: Stage) -> Iterator[Row]:
    """The primary is killed under load, the standby that is furthest is promoted."""
    old = stage.primary
    limited = stage.site.speaker(stage.demo["access_token"], stage.demo["channels"]["limited"])
    limited.pay(uuid.uuid4().hex)
    counters = int(old.ask("SELECT count(*) FROM gateway_throttlewindow", database=DATABASE)[0][0])
    load = stage.load()
    load.start()
    time.sleep(stage.seconds)
    old.kill()
    killed = time.monotonic()
    time.sleep(1)
    new = stage.cluster.fail_over()
    stage.primary = new
    promoted = time.monotonic()
    left = int(new.ask("SELECT count(*) FROM gateway_throttlewindow", database=DATABASE)[0][0])
    with HealthWatch(stage.site) as health:
        eventually("the other standby follows", lambda: stage.cluster.in_step(new) == 1)
        eventually("payments again", lambda: any(row.at > promoted for row in load.acknowledged))
        time.sleep(2 * stage.seconds)
    load.finish()
    again = min(row.at for row in load.acknowledged if row.at > promoted) - promoted
    stage.acknowledged += load.acknowledged
    books = compare(new, stage.acknowledged, stage.acquirer)
    processes: dict[str, Process] = {"worker": stage.site.worker, "beat": stage.site.beat}
    dead = [name for name, process in processes.items() if not process.lives]
    yield Row(
        trial="the primary fails",
        done="three servers, commits wait for one of two standbys; kill -9 of the primary under load, the standby that "
        "had received most promoted; nodes, worker and beat have all three in DATABASE_URL",
        seen=f"{told(load)}; promoted {promoted - killed:.1f} s after the kill, paying again {again:.1f} s later; "
        f"{books}; died meanwhile: {', '.join(dead) or 'nothing'}",
        fine=books.fine and not load.unanswered and bool(load.faults) and not dead,
    )
    refused = health.seen.total() - health.seen[200]
    yield Row(
        trial="health after that",
        done="each node's /health/ready asked ten times a second from the promotion on",
        seen=", ".join(f"{count} x {status or 'no answer'}" for status, count in health.seen.most_common()),
        # A thread that had not noticed yet may say once that its connection is gone.
        fine=health.seen[200] > 2 * refused and set(health.last.values()) == {200},
    )
    unlogged = [name for (name,) in new.ask(UNLOGGED, database=DATABASE)]
    yield Row(
        trial="what is not replicated",
        done="tables that are UNLOGGED, and the throttle counters on the promoted standby",
        seen=f"UNLOGGED: {', '.join(unlogged)}; {counters} counters before, {left} after",
        fine=unlogged == ["gateway_cardtestingcount", "gateway_throttlewindow"] and counters > 0 and left == 0,
    )


def the_old_primary_returns(stage: Stage) -> Iterator[Row]:
    """Started as it was it acknowledges nothing; rewound it is a standby."""
    old = next(server for server in stage.cluster.servers if server is not stage.primary and not server.answers())
    old.start()
    written = "acknowledged a commit" if _commits(old) else "acknowledged nothing"
    old.stop()
    stage.cluster.rewind(old)
    eventually("the old primary follows", lambda: stage.cluster.in_step(stage.primary) == 2)
    yield Row(
        trial="the failed primary returns",
        done="started as it was, without a standby, a commit tried for 3 s; then pg_rewind and start as a standby",
        seen=f"{written}; after pg_rewind two standbys in step",
        fine=written == "acknowledged nothing",
    )


def _commits(server: Server) -> bool:
    """Whether a server acknowledges a commit within 3 s. The session is ended from outside, not cancelled:
    cancelling the wait would acknowledge."""
    done = threading.Event()

    def write() -> None:
        try:
            server.ask("CREATE TABLE IF NOT EXISTS alone ()")
        except psycopg.Error:
            return
        done.set()

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    acknowledged = done.wait(3)
    server.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
    thread.join(5)
    return acknowledged


def a_restore(stage: Stage) -> Iterator[Row]:
    """A base backup, payments, a moment, more payments; the archive is restored to the moment."""
    cluster, primary = stage.cluster, stage.primary
    speaker = stage.site.speaker(stage.demo["access_token"], stage.demo["entity_id"])
    backup = cluster.run("base-backup.sh", cluster.folder / "backup", cluster.conninfo("replicator", "backup"))
    before = [speaker.pay(uuid.uuid4().hex).json["id"] for _ in range(5)]
    time.sleep(0.2)
    moment = str(primary.ask("SELECT clock_timestamp()::text")[0][0])
    time.sleep(0.2)
    after = [speaker.pay(uuid.uuid4().hex).json["id"] for _ in range(5)]
    segment = str(primary.ask("SELECT pg_walfile_name(pg_switch_wal())")[0][0])
    eventually("the segment archived", (cluster.archive / segment).exists)
    restored = Server("restored", cluster)
    cluster.extra.append(restored)
    cluster.run("restore.sh", backup, cluster.archive, restored.data, moment)
    # A base backup carries its server's configuration; this one runs beside the others: its port is another.
    restored.configure()
    restored.start()
    eventually("the replay stops", lambda: restored.ask("SELECT pg_get_wal_replay_pause_state()")[0][0] == "paused")
    ids = "SELECT replace(id::text, '-', '') FROM gateway_payment"
    there = {row[0] for row in restored.ask(ids, database=DATABASE)}
    earlier = {row.payment for row in stage.acknowledged}
    live = {row[0] for row in primary.ask(ids, database=DATABASE)}
    restored.ask("SELECT pg_wal_replay_resume()")
    eventually("it takes writes", lambda: restored.ask("SELECT pg_is_in_recovery()")[0][0] is False)
    keyset = stage.site.manage("vault_key", "--show", DATABASE_URL=_url(stage, restored))
    restored.stop()
    yield Row(
        trial="restore to a moment",
        done="base-backup.sh from the promoted server, 5 payments, a moment, 5 more; restore.sh to the moment",
        seen=f"{sum(row in there for row in before)} of the 5 before it, {sum(row in there for row in after)} of the 5 "
        f"after it, {len(earlier & there)} of {len(earlier)} earlier ones, {len(there - live)} that never were; "
        f"the vault's keyset, kept apart, opens: {'yes' if 'MISSING' not in keyset.stdout else 'no'}",
        fine=set(before) <= there
        and not set(after) & there
        and earlier <= there
        and there == live - set(after)
        and "MISSING" not in keyset.stdout,
    )


def _url(stage: Stage, server: Server) -> str:
    return f"postgresql://tollhouse:{stage.cluster.passwords['tollhouse']}@127.0.0.1:{server.port}/{DATABASE}"


def told(load: Load) -> str:
    faults = ", ".join(f"{count} x {what}" for what, count in load.faults.most_common()) or "none"
    return (
        f"{len(load.acknowledged)} payments acknowledged, {load.retried} of them sent more than once, "
        f"{len(load.unanswered)} never answered; refusals seen by clients: {faults}; "
        f"longest silence {load.longest_silence_s:.1f} s"
    )


Trial = Callable[[Stage], Iterator[Row]]
TRIALS: tuple[Trial, ...] = (
    a_killed_node,
    a_failed_primary,
    the_old_primary_returns,
    a_restore,
)

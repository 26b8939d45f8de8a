"""What is tried on a Patroni cluster under load: every part is lost once, and the books are compared each time."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tests.running.books import compare
from tests.running.clients import Acknowledged, Load
from tests.running.cluster_site import ClusterSite
from tests.running.machines import make_bridge
from tests.running.patroni import START_S, DatabaseMachine, PatroniCluster
from tests.running.pgbackrest import BACKUPS, try_backups
from tests.running.servers import DATABASE, eventually
from tests.running.trials import Row, told

LONGEST_SILENCE_S: Final = 15.0
"""docs/spec/goals.md, R5."""
CLIENTS: Final = 4
PAUSE_S: Final = 0.12
"""So the clients together pay about twenty times a second, where the machine lets them."""
TIMERS: Final = "SELECT count(*) FROM gateway_timerrun WHERE last_at > clock_timestamp() - interval '10 seconds'"


@dataclass(slots=True, kw_only=True)
class ClusterStage:
    cluster: PatroniCluster
    site: ClusterSite
    demo: dict[str, Any]
    seconds: float
    acknowledged: list[Acknowledged] = field(default_factory=list)

    def load(self) -> Load:
        speaker = self.site.speaker(self.demo["access_token"], self.demo["channels"]["plain"])
        return Load(speaker=speaker, clients=CLIENTS, pause_s=PAUSE_S)

    def primary(self) -> DatabaseMachine:
        found = self.cluster.primary()
        assert found is not None, "there is no primary"
        return found

    def synchronous(self) -> DatabaseMachine:
        found = self.cluster.synchronous()
        assert found is not None, "there is no synchronous standby"
        return found


Fault = Callable[[ClusterStage], Iterator[str]]
"""What is done, with waits: each word that it yields is told. The load runs meanwhile and for a while after it."""


def a_switch_over(stage: ClusterStage) -> Iterator[str]:
    old = stage.primary()
    stage.cluster.control("switchover", "--force", "tollhouse")
    yield from _another_primary(stage, old)


def a_dead_postgres(stage: ClusterStage) -> Iterator[str]:
    old = stage.primary()
    old.kill_postgres()
    yield from _another_primary(stage, old)


def a_dead_machine(stage: ClusterStage) -> Iterator[str]:
    old = stage.primary()
    old.lose_power()
    yield from _another_primary(stage, old)
    time.sleep(stage.seconds)
    old.get_power()


def an_unplugged_primary(stage: ClusterStage) -> Iterator[str]:
    old = stage.primary()
    old.machine.pull_link()
    yield from _another_primary(stage, old)
    yield f"the old one, asked on its own machine: {_try_commit(stage, old)}"
    old.machine.plug_in()


def a_dead_patroni(stage: ClusterStage) -> Iterator[str]:
    old = stage.primary()
    old.patroni.kill()
    yield from _another_primary(stage, old)
    yield f"the old one, which nobody stopped: {_try_commit(stage, old)}"
    old.patroni.start()


def a_pair_that_does_not_hear(stage: ClusterStage) -> Iterator[str]:
    primary, standby = stage.primary(), stage.synchronous()
    primary.machine.deafen(standby.machine)
    eventually("another synchronous standby", lambda: stage.cluster.synchronous() not in (None, standby))
    yield f"{primary.name} stays primary: {'yes' if primary.status('/primary') == 200 else 'no'}"
    time.sleep(stage.seconds)
    primary.machine.undeafen(standby.machine)


def a_dead_standby(stage: ClusterStage) -> Iterator[str]:
    standby = stage.synchronous()
    standby.lose_power()
    eventually("another synchronous standby", lambda: stage.cluster.synchronous() not in (None, standby))
    time.sleep(stage.seconds)
    standby.get_power()
    yield f"{standby.name} came back"


def dead_etcd(stage: ClusterStage) -> Iterator[str]:
    primary = stage.primary()
    for machine in stage.cluster.machines:
        machine.etcd.kill()
        time.sleep(2 * stage.seconds)
    time.sleep(2 * stage.seconds)
    yield f"{primary.name} stays primary: {'yes' if primary.status('/primary') == 200 else 'no'}"
    for machine in stage.cluster.machines:
        machine.etcd.start()


def dead_processes(stage: ClusterStage) -> Iterator[str]:
    for application in stage.site.applications:
        for process in application.processes.values():
            process.kill()
            time.sleep(stage.seconds / 2)
            process.start()
            stage.site.wait_ready(application)
    pid = stage.site.broker.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    time.sleep(stage.seconds / 2)
    stage.site.broker.stop()
    stage.site.broker.start()
    yield ""


def a_dead_application(stage: ClusterStage) -> Iterator[str]:
    application = stage.site.applications[0]
    application.lose_power()
    time.sleep(3 * stage.seconds)
    application.get_power()
    stage.site.wait_ready(application)
    yield ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTrial:
    name: str
    done: str
    fault: Fault


TRIALS: Final = (
    ClusterTrial(
        name="a switch-over",
        done="`patronictl switchover`",
        fault=a_switch_over,
    ),
    ClusterTrial(
        name="PostgreSQL of the primary dies",
        done="kill -9 of all of its processes; Patroni lives",
        fault=a_dead_postgres,
    ),
    ClusterTrial(
        name="the primary's machine loses its power",
        done="its link pulled, then kill -9 of PostgreSQL, Patroni and etcd; later it comes back",
        fault=a_dead_machine,
    ),
    ClusterTrial(
        name="the primary's machine loses its network",
        done="its link pulled, all of its processes live; later plugged in",
        fault=an_unplugged_primary,
    ),
    ClusterTrial(
        name="Patroni of the primary dies",
        done="kill -9 of Patroni alone; its PostgreSQL runs on; later Patroni is started",
        fault=a_dead_patroni,
    ),
    ClusterTrial(
        name="primary and synchronous standby do not hear each other",
        done="what either sends to the other is dropped; etcd, proxies and the third server hear both",
        fault=a_pair_that_does_not_hear,
    ),
    ClusterTrial(
        name="the synchronous standby's machine loses its power",
        done="as the primary's",
        fault=a_dead_standby,
    ),
    ClusterTrial(
        name="etcd dies",
        done="kill -9 of one, of two, of all three; later started",
        fault=dead_etcd,
    ),
    ClusterTrial(
        name="each process of the nodes dies",
        done="kill -9 of database proxy, web node, worker and beat, on one machine, then on the other; of Valkey",
        fault=dead_processes,
    ),
    ClusterTrial(
        name="a node's machine loses its power",
        done="its link pulled, kill -9 of all that runs on it; later it comes back",
        fault=a_dead_application,
    ),
)


READING: Final = "the port for reading"
CLUSTER_TRIALS: Final = (*(trial.name for trial in TRIALS), READING, BACKUPS)
"""The names of the trials, in their order."""


def try_cluster(folder: Path, seconds: float, ttl_s: int, only: str, patroni: Path) -> Iterator[Row]:
    """All trials in turn, each on a whole cluster. ``patroni``: the folder of its programs."""
    make_bridge()
    cluster = PatroniCluster(folder, ttl_s, patroni)
    site = ClusterSite(folder, cluster)
    try:
        cluster.start()
        site.start_away()
        site.migrate()
        demo = site.seed()
        site.start_web()
        eventually("timers run", lambda: cluster.ask(TIMERS, database=DATABASE)[0][0] > 0, START_S)
        stage = ClusterStage(cluster=cluster, site=site, demo=demo, seconds=seconds)
        for trial in TRIALS:
            if only in trial.name:
                yield _try(stage, trial)
        if only in READING:
            yield _reading(stage)
        if only in BACKUPS:
            yield try_backups(cluster, site.speaker(demo["access_token"], demo["channels"]["plain"]))
    finally:
        site.stop()
        cluster.stop()


def _try(stage: ClusterStage, trial: ClusterTrial) -> Row:
    load = stage.load()
    load.start()
    time.sleep(stage.seconds)
    words = [word for word in trial.fault(stage) if word]
    whole = stage.cluster.wait_whole()
    time.sleep(stage.seconds)
    load.finish()
    stage.acknowledged += load.acknowledged
    books = compare(stage.cluster, stage.acknowledged, stage.site.environment["GATEWAY_STUB_ACQUIRER"])
    dead = [
        f"{application.name}'s {name}"
        for application in stage.site.applications
        for name, process in application.processes.items()
        if not process.lives
    ]
    seen = [told(load), *words, f"all three in step {whole:.0f} s later", str(books)]
    if dead:
        seen.append(f"died: {', '.join(dead)}")
    acknowledged_alone = any("acknowledged a commit" in word or word.endswith(": no") for word in words)
    return Row(
        trial=trial.name,
        done=trial.done,
        seen="; ".join(seen),
        fine=books.fine
        and not load.unanswered
        and not dead
        and not acknowledged_alone
        and load.longest_silence_s <= LONGEST_SILENCE_S,
    )


def _reading(stage: ClusterStage) -> Row:
    """The read port: lists come from a standby, and from the primary while there is none."""
    speaker = stage.site.speaker(stage.demo["access_token"], stage.demo["entity_id"])
    today = datetime.now(UTC)
    period = (
        f"date.from={today - timedelta(days=1):%Y-%m-%d}+00:00:00&date.to={today + timedelta(days=1):%Y-%m-%d}+00:00:00"
    )
    # The first answer knows no older position of the primary, and so may come from it.
    answers = [speaker.ask("GET", f"/v1/query?entityId={speaker.entity}&{period}") for _ in range(10)]
    read = sum("x-as-of" in {name.lower() for name in answer.headers} for answer in answers)
    return Row(
        trial=READING,
        done="a list of transactions asked ten times, after all that",
        seen=f"{sum(answer.status == 200 for answer in answers)} answered, {read} from a standby",
        fine=all(answer.status == 200 for answer in answers) and read >= 5,
    )


def _another_primary(stage: ClusterStage, old: DatabaseMachine) -> Iterator[str]:
    started = time.monotonic()
    eventually(
        "another primary",
        lambda: any(one.status("/primary") == 200 for one in stage.cluster.machines if one is not old),
    )
    yield f"another primary after {time.monotonic() - started:.1f} s"
    eventually("a synchronous standby", lambda: stage.cluster.synchronous() not in (None, old))
    yield f"one in step with it after {time.monotonic() - started:.1f} s"


def _try_commit(stage: ClusterStage, server: DatabaseMachine) -> str:
    """Whether a server that is cut off acknowledges a commit within 5 s that its successor does not have, asked on its
    own machine. The client is killed, which ends its session: a cancelled wait would acknowledge."""
    table = f"alone_{uuid.uuid4().hex}"
    address = f"host={server.address} user=postgres dbname=postgres connect_timeout=2"
    command = server.machine.on(f"{stage.cluster.bin}/psql", address, "-qXc", f"CREATE TABLE {table} ()")
    environment = stage.cluster.environment | {"PGPASSWORD": stage.cluster.passwords["postgres"]}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=5, check=False)
    except subprocess.TimeoutExpired:
        return "acknowledged nothing within 5 s"
    if done.returncode != 0:
        return "took no commit"
    # A standby that is promoted may have confirmed it a moment before.
    there = stage.cluster.ask("SELECT to_regclass(%s) IS NOT NULL", [table])[0][0]
    return "acknowledged what its successor has" if there else "acknowledged a commit"

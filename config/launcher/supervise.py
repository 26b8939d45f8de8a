"""The foreground process of `make run`: brings everything up, keeps it up, takes it down in good order."""

from __future__ import annotations

import http.client
import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Protocol
from urllib.parse import urlsplit

from config.launcher.errors import LaunchError, reason_in
from config.launcher.ground import Ground
from config.launcher.prepared import is_prepared, mark_prepared
from config.launcher.programs import Program, Web, acquirer_command, beat_command, worker_command
from config.launcher.terminal import say, show_demo, tick
from config.launcher.var import try_port
from config.launcher.waiting import Part, Waiting, how_it_ended

ASK_WHAT_ANSWERS_EVERY_S = 1.0
WATCH_EVERY_S = 0.2
QUICK_FAILURE_S = 10.0
MOST_QUICK_FAILURES = 5
LONGEST_PAUSE_S = 8.0


class StopRequested(BaseException):
    """Ctrl-C, SIGTERM or a closed terminal. Not an Exception: nothing on the way may swallow it."""


class Service(Part, Protocol):
    """What is supervised: PostgreSQL, the broker, a Program."""

    def start(self) -> object:
        """Start it, or LaunchError."""

    def stop(self) -> None:
        """End it in good order."""


@dataclass(slots=True, kw_only=True)
class Watched:
    """A service with its recent history: how often it failed soon after a start, and when to try again."""

    name: str
    service: Service
    started_at: float = field(default_factory=time.monotonic)
    quick_failures: int = 0
    due_at: float | None = None


class Run:
    """`make run`: the ground, Django's preparations, web server, worker and beat."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self.web = Web.from_environment()
        self.ground = Ground(var)
        self.watched: list[Watched] = []
        self.programs: dict[str, Program] = {}

    def up(self) -> None:
        """Everything up and answering, or LaunchError."""
        began = time.monotonic()
        self.ground.claim()
        check_port(self.web)
        environment = os.environ.get("GATEWAY_ENVIRONMENT") or "test"
        say(f"Tollhouse, {environment} environment\n")
        self.ground.start(self.web)
        self._watch_ground()
        demo = self.var / "demo.json" if environment == "test" else None
        if demo is not None and not os.environ.get("GATEWAY_STUB_ACQUIRER"):
            address = self.ground.environment["GATEWAY_STUB_ACQUIRER"]
            self._launch("The stub acquirer", "acquirer", acquirer_command(self.var, address))
        # Nothing to migrate (all but first starts): the web server need not wait to read its sources. In the
        # live environment it always waits, as the start-up checks have the first word there.
        url = self.ground.environment["DATABASE_URL"]
        early = demo is not None and is_prepared(self.var, url)
        if early:
            self._launch("The web server", "web", self.web.command())
        self._prepare(demo)
        mark_prepared(self.var, url)
        # Worker and beat come last: on a small machine they would only keep the web server waiting.
        if not early:
            self._launch("The web server", "web", self.web.command())
        self._wait_ready()
        started = time.monotonic()
        self._launch("The Celery worker", "worker", worker_command())
        self._launch("Celery beat", "beat", beat_command())
        tick("Celery worker, beat", started, "starting")
        took = f"{time.monotonic() - began:.1f} s"
        # Payments are taken from here on; the first tick comes when worker and beat are up, seconds later.
        say(f"\nReady for payments after {took}. Logs are in {self.var / 'log'}; Ctrl-C stops it.\n")
        if demo is not None:
            show_demo(demo)
        else:
            say(f"  Base address   {self.ground.environment['GATEWAY_BASE_URL']}")

    def _prepare(self, demo: Path | None) -> None:
        """Checks, migrations and demo merchant, in one Django process."""
        base_url = self.ground.environment["GATEWAY_BASE_URL"]
        command = ["config.launcher.prepare", "--base-url", base_url]
        if demo is not None:
            command += ["--demo-file", str(demo)]
        environment = self.ground.environment
        program = Program("prepare", command, var=self.var, environment=environment, stdout=subprocess.PIPE)
        program.start()
        try:
            faults = self._follow(program)
            code = program.exit_code()
        finally:
            program.stop()
        if faults:
            raise LaunchError("Start-up checks refuse these settings: " + " · ".join(faults))
        if code != 0:
            raise LaunchError(f"Preparing the database failed: {reason_in(program.log, program.log_start)}")

    def _follow(self, program: Program) -> list[str]:
        """Show the steps of the preparations until they are over; the faults of the start-up checks."""
        faults: list[str] = []
        doing = ""
        started = time.monotonic()

        def is_over() -> bool:
            nonlocal doing, started
            # Asked before the lines are read: what it wrote last is read then.
            ended = program.exit_code() is not None
            for line in program.lines.read() if program.lines else ():
                step, _, what = line.strip().partition("\t")
                if step == "doing":
                    doing = what
                elif step == "fault":
                    faults.append(what)
                else:
                    tick(step, started, what)
                    started = time.monotonic()
            return ended

        def work() -> float | None:
            own, server = program.work(), self.ground.postgres.work()
            return None if own is None or server is None else own + server

        waiting = Waiting("Preparing the database", self._parts(), work, slow=program)
        waiting.until(is_over, lambda: doing)
        return faults

    def _parts(self) -> dict[str, Part]:
        return {watched.name: watched.service for watched in self.watched}

    def _launch(self, name: str, file: str, command: list[str]) -> None:
        program = Program(file, command, var=self.var, environment=self.ground.environment)
        program.start()
        self.programs[file] = program
        self.watched.append(Watched(name=name, service=program))

    def _watch_ground(self) -> None:
        self.watched.append(Watched(name="PostgreSQL", service=self.ground.postgres))
        self.watched.append(Watched(name="The broker", service=self.ground.broker))

    def _wait_ready(self) -> None:
        answer = ""
        program = self.programs["web"]

        def is_ready() -> bool:
            nonlocal answer
            if answer.isdecimal():
                time.sleep(ASK_WHAT_ANSWERS_EVERY_S)
            answer = ask(self.web, self.ground.environment["GATEWAY_BASE_URL"], "/health/ready")
            return answer == "200"

        def work() -> float | None:
            # Once it answers, what it does is to answer us.
            return 0.0 if answer.isdecimal() else program.work()

        waiting = Waiting("Web server", self._parts(), work, slow=program)
        waiting.until(is_ready, lambda: f"/health/ready says {answer}" if answer.isdecimal() else "no answer so far")
        tick("Web server", waiting.started_at, self.web.address)

    def keep(self) -> None:
        """Watch for ever; what ends is started again, or LaunchError when that does not help."""
        while True:
            for watched in self.watched:
                look_after(watched)
            time.sleep(WATCH_EVERY_S)

    def down(self) -> None:
        """Web server first (no new work), then worker and beat, broker, PostgreSQL."""
        order = [self.programs[name] for name in ("web", "beat", "worker", "acquirer") if name in self.programs]
        for program in order[:1]:
            program.stop()
        for program in order[1:]:
            program.ask_to_stop()
        for program in order[1:]:
            program.stop()
        self.ground.stop()


def look_after(watched: Watched, now: Callable[[], float] = time.monotonic) -> None:
    """One look at a service: if it ended, plan its next start; if that is due, start it."""
    code = watched.service.exit_code()
    if watched.due_at is None:
        if code is None:
            return
        _plan_restart(watched, f"stopped ({how_it_ended(code)})", now())
    if watched.due_at is not None and now() >= watched.due_at:
        watched.due_at = None
        watched.started_at = now()
        try:
            watched.service.start()
        except LaunchError as error:
            _plan_restart(watched, f"did not start: {error}", now())


def _plan_restart(watched: Watched, what: str, now: float) -> None:
    quick = now - watched.started_at < QUICK_FAILURE_S
    watched.quick_failures = watched.quick_failures + 1 if quick else 1
    if watched.quick_failures > MOST_QUICK_FAILURES:
        why = reason_in(watched.service.log, watched.service.log_start)
        raise LaunchError(f"{watched.name} stopped {watched.quick_failures} times in a row; giving up: {why}")
    pause_s = min(LONGEST_PAUSE_S, 0.25 * 2 ** (watched.quick_failures - 1))
    watched.due_at = now + pause_s
    say(f"  ! {watched.name} {what}; starting it again in {pause_s:g} s")


def on_signals() -> None:
    """The first of Ctrl-C, SIGTERM and SIGHUP raises StopRequested; later ones change nothing."""
    requested = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal requested
        if not requested:
            requested = True
            raise StopRequested

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handle)


def check_port(web: Web) -> None:
    """LaunchError when nobody could listen there."""
    try:
        try_port(web.host, web.port)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LaunchError(f"Cannot listen on {web.address} ({reason}). Set another PORT or HOST.") from error


def ask(web: Web, base_url: str, path: str) -> str:
    """The status of a GET, as text, or why there is none. Asked by the public name: others may be refused."""
    parts = urlsplit(base_url)
    connection = http.client.HTTPConnection(web.reachable_host, web.port, timeout=5)
    try:
        connection.request("GET", path, headers={"Host": parts.netloc, "X-Forwarded-Proto": parts.scheme})
        return str(connection.getresponse().status)
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    finally:
        connection.close()

"""The foreground process of `make run`: starts everything, restarts what ends, and stops everything in order."""

from __future__ import annotations

import http.client
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Protocol
from urllib.parse import urlsplit

from config.launcher.backing_services import BackingServices
from config.launcher.code_host import collect_orphans
from config.launcher.errors import LaunchError, find_failure_reason
from config.launcher.preparation_stamp import is_prepared, mark_prepared
from config.launcher.programs import (
    PythonProgram,
    WebServer,
    build_acquirer_command,
    build_beat_command,
    build_worker_command,
)
from config.launcher.start_wait import AwaitedProcess, StartWait, describe_exit_code
from config.launcher.terminal import print_demo, print_line, print_step_done
from config.launcher.var_folder import try_port

READINESS_POLL_S = 1.0
SUPERVISION_INTERVAL_S = 0.2
QUICK_FAILURE_WITHIN_S = 10.0
MAX_QUICK_FAILURES = 5
MAX_RESTART_PAUSE_S = 8.0


class StopRequested(BaseException):
    """Ctrl-C, SIGTERM or a closed terminal. Not an Exception, so that no handler swallows it."""


class StartableService(AwaitedProcess, Protocol):
    """A supervised service: PostgreSQL, the broker, a PythonProgram."""

    @property
    def pid(self) -> int | None:
        """Its process id; None while it is not started."""

    def start(self) -> object:
        """Start it; raises LaunchError."""

    def stop(self) -> None:
        """Stop it in order."""


@dataclass(slots=True, kw_only=True)
class SupervisedService:
    """A service with its recent history: how often it failed soon after a start, and when to try again."""

    name: str
    service: StartableService
    started_at: float = field(default_factory=time.monotonic)
    quick_failures: int = 0
    due_at: float | None = None


class Supervisor:
    """`make run`: backing services, Django's preparations, web server, worker and beat."""

    def __init__(self, var: Path) -> None:
        self.var = var
        self.web = WebServer.from_environment()
        self.ground = BackingServices(var)
        self.watched: list[SupervisedService] = []
        self.programs: dict[str, PythonProgram] = {}

    def up(self) -> None:
        """Start everything and wait until it answers; raises LaunchError."""
        began = time.monotonic()
        self.ground.claim()
        check_web_port(self.web)
        environment = os.environ.get("GATEWAY_ENVIRONMENT") or "test"
        print_line(f"Tollhouse, {environment} environment\n")
        self.ground.start(self.web, load_code=True)
        self._watch_ground()
        demo = self.var / "demo.json" if environment == "test" else None
        if demo is not None and not os.environ.get("GATEWAY_STUB_ACQUIRER"):
            address = self.ground.environment["GATEWAY_STUB_ACQUIRER"]
            self._launch("The stub acquirer", "acquirer", build_acquirer_command(self.var, address), forked=False)
        # Nothing to migrate (all but first starts): the web server need not wait to load its sources. In the
        # live environment it always waits, as the start-up checks must pass first. Looked at while the code is loaded.
        url = self.ground.environment["DATABASE_URL"]
        early = demo is not None and is_prepared(self.var, url)
        code = StartWait("The code", {}, self.ground.code.work, slow=self.ground.code)
        code.until(self.ground.code.is_loaded, lambda: "reading the sources")
        if early:
            self._launch("The web server", "web", self.web.command())
        self._prepare(demo, migrated=early)
        if not early:
            mark_prepared(self.var, url)
        # Worker and beat come last: on a small machine they would only slow the web server down.
        if not early:
            self._launch("The web server", "web", self.web.command())
        self._wait_ready()
        started = time.monotonic()
        self._launch("The Celery worker", "worker", build_worker_command())
        self._launch("Celery beat", "beat", build_beat_command())
        print_step_done("Celery worker, beat", started, "starting")
        took = f"{time.monotonic() - began:.1f} s"
        # Payments are accepted from here on; the first tick comes when worker and beat are up, seconds later.
        print_line(f"\nReady for payments after {took}. Logs are in {self.var / 'log'}; Ctrl-C stops it.\n")
        if demo is not None:
            print_demo(demo)
        else:
            print_line(f"  Base address   {self.ground.environment['GATEWAY_BASE_URL']}")

    def _prepare(self, demo: Path | None, *, migrated: bool) -> None:
        """Checks, migrations (unless they are known to be applied) and demo merchant, in one Django process."""
        base_url = self.ground.environment["GATEWAY_BASE_URL"]
        command = ["config.launcher.prepare", "--base-url", base_url]
        if migrated:
            command += ["--migrated"]
        if demo is not None:
            command += ["--demo-file", str(demo)]
        environment = self.ground.environment
        program = PythonProgram(
            "prepare", command, var=self.var, environment=environment, host=self.ground.code, piped=True
        )
        program.start()
        try:
            faults = self._follow(program)
            code = program.exit_code()
        finally:
            program.stop()
        if faults:
            raise LaunchError("Start-up checks refuse these settings: " + " · ".join(faults))
        if code != 0:
            raise LaunchError(f"Preparing the database failed: {find_failure_reason(program.log, program.log_start)}")

    def _follow(self, program: PythonProgram) -> list[str]:
        """Show the steps of the preparations until they end; returns the faults of the start-up checks."""
        faults: list[str] = []
        doing = ""
        started = time.monotonic()

        def is_over() -> bool:
            nonlocal doing, started
            # Asked before the lines are read, so that its last lines are read, too.
            ended = program.exit_code() is not None
            for line in program.lines.read() if program.lines else ():
                step, _, what = line.strip().partition("\t")
                if step == "doing":
                    doing = what
                elif step == "fault":
                    faults.append(what)
                else:
                    print_step_done(step, started, what)
                    started = time.monotonic()
            return ended

        def work() -> float | None:
            own, server = program.work(), self.ground.postgres.work()
            return None if own is None or server is None else own + server

        waiting = StartWait("Preparing the database", self._parts(), work, slow=program)
        waiting.until(is_over, lambda: doing)
        return faults

    def _parts(self) -> dict[str, AwaitedProcess]:
        return {watched.name: watched.service for watched in self.watched}

    def _launch(self, name: str, file: str, command: list[str], *, forked: bool = True) -> None:
        program = PythonProgram(
            file, command, var=self.var, environment=self.ground.environment, host=self.ground.code if forked else None
        )
        program.start()
        self.programs[file] = program
        self.watched.append(SupervisedService(name=name, service=program))

    def _watch_ground(self) -> None:
        self.watched.append(SupervisedService(name="PostgreSQL", service=self.ground.postgres))
        self.watched.append(SupervisedService(name="The broker", service=self.ground.broker))

    def _wait_ready(self) -> None:
        answer = ""
        program = self.programs["web"]

        def is_ready() -> bool:
            nonlocal answer
            if answer.isdecimal():
                time.sleep(READINESS_POLL_S)
            answer = probe_readiness(self.web, self.ground.environment["GATEWAY_BASE_URL"])
            return answer == "200"

        def work() -> float | None:
            # Once it answers, its work is answering us.
            return 0.0 if answer.isdecimal() else program.work()

        waiting = StartWait("Web server", self._parts(), work, slow=program)
        waiting.until(is_ready, lambda: f"/health/ready says {answer}" if answer.isdecimal() else "no answer so far")
        print_step_done("Web server", waiting.started_at, self.web.address)

    def keep(self) -> None:
        """Supervise for ever: restart what ends; raises LaunchError when that does not help."""
        while True:
            for watched in self.watched:
                restart_if_ended(watched)
            pids = {self.ground.code.pid} | {watched.service.pid for watched in self.watched}
            collect_orphans({pid for pid in pids if pid is not None})
            time.sleep(SUPERVISION_INTERVAL_S)

    def down(self) -> None:
        """Stop the web server first (no new work), then worker and beat, broker, PostgreSQL."""
        order = [self.programs[name] for name in ("web", "beat", "worker", "acquirer") if name in self.programs]
        for program in order[:1]:
            program.stop()
        for program in order[1:]:
            program.ask_to_stop()
        for program in order[1:]:
            program.stop()
        self.ground.stop()


def restart_if_ended(watched: SupervisedService, now: Callable[[], float] = time.monotonic) -> None:
    """Check a service once: if it ended, plan its next start; if that is due, start it."""
    code = watched.service.exit_code()
    if watched.due_at is None:
        if code is None:
            return
        _plan_restart(watched, f"stopped ({describe_exit_code(code)})", now())
    if watched.due_at is not None and now() >= watched.due_at:
        watched.due_at = None
        watched.started_at = now()
        try:
            watched.service.start()
        except LaunchError as error:
            _plan_restart(watched, f"did not start: {error}", now())


def _plan_restart(watched: SupervisedService, what: str, now: float) -> None:
    quick = now - watched.started_at < QUICK_FAILURE_WITHIN_S
    watched.quick_failures = watched.quick_failures + 1 if quick else 1
    if watched.quick_failures > MAX_QUICK_FAILURES:
        why = find_failure_reason(watched.service.log, watched.service.log_start)
        raise LaunchError(f"{watched.name} stopped {watched.quick_failures} times in a row; giving up: {why}")
    pause_s = min(MAX_RESTART_PAUSE_S, 0.25 * 2 ** (watched.quick_failures - 1))
    watched.due_at = now + pause_s
    print_line(f"  ! {watched.name} {what}; starting it again in {pause_s:g} s")


def install_signal_handlers() -> None:
    """The first of Ctrl-C, SIGTERM and SIGHUP raises StopRequested; later ones change nothing."""
    requested = False

    def handle(_number: int, _frame: FrameType | None) -> None:
        nonlocal requested
        if not requested:
            requested = True
            raise StopRequested

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handle)


def check_web_port(web: WebServer) -> None:
    """LaunchError unless the port can be listened on."""
    try:
        try_port(web.host, web.port)
    except OSError as error:
        reason = error.strerror or str(error)
        raise LaunchError(f"Cannot listen on {web.address} ({reason}). Set another PORT or HOST.") from error


def probe_readiness(web: WebServer, base_url: str) -> str:
    """The status of GET /health/ready as text, or why there is none. Other host names may be refused."""
    parts = urlsplit(base_url)
    connection = http.client.HTTPConnection(web.reachable_host, web.port, timeout=5)
    try:
        connection.request("GET", "/health/ready", headers={"Host": parts.netloc, "X-Forwarded-Proto": parts.scheme})
        return str(connection.getresponse().status)
    except (OSError, http.client.HTTPException) as error:
        return str(error) or type(error).__name__
    finally:
        connection.close()

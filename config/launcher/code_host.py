"""The launcher's side of the code host: a process that loads the product's code once and forks the programs from it.

Five programs run the same code. Loaded by each of them it is five times the work at every start and five times the
memory; forked from one process it is loaded once, and its pages are shared (config.launcher.preloaded is that process).
What is forked becomes a child of the launcher, so that it is supervised like any other program and outlives the host.
Linux only (PR_SET_CHILD_SUBREAPER): elsewhere, and while there is no host, programs are started on their own.
docs/decisions/0074.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from config.launcher.process import log_size_bytes, measure_process_work, open_log, spawn_process, stop_process
from config.launcher.var_folder import PROJECT_ROOT

PR_SET_CHILD_SUBREAPER: Final = 36
FORK_TIMEOUT_S: Final = 60.0
LOADED: Final = b"loaded"
MAX_MESSAGE_BYTES: Final = 65_536
TITLE_ROOM: Final = " " * 160
"""An argument of the host that makes room for the command lines of its children (config.launcher.preloaded)."""


class AdoptedProcess:
    """A child that another process forked for us; what `subprocess.Popen` offers of it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self.returncode = -signal.SIGKILL  # collected by others: how it ended is not known
            else:
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, if it has not ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class CodeHost:
    """The code host: `launch()` starts it, `is_loaded()` tells when it can fork, `fork()` starts a program."""

    def __init__(self, var: Path) -> None:
        self.log = var / "log" / "code.log"
        self.log_start = 0
        self.environment: Mapping[str, str] = {}
        self._child: subprocess.Popen[bytes] | None = None
        self._line: socket.socket | None = None
        self._loaded = False

    def launch(self, environment: Mapping[str, str]) -> None:
        """Start loading the code with these variables; nothing where children cannot be adopted."""
        if not _become_subreaper():
            return
        self.stop()
        self.environment, self._loaded = dict(environment), False
        self.log_start = log_size_bytes(self.log)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [sys.executable, "-m", "config.launcher.preloaded", TITLE_ROOM]
            self._child = spawn_process(
                command, log=self.log, env=environment, directory=PROJECT_ROOT, stdin=theirs.fileno()
            )
        self._line = ours

    @property
    def pid(self) -> int | None:
        """Its process id; None while there is none."""
        return self._child.pid if self._child else None

    def is_loaded(self) -> bool:
        """True once the code is loaded, or when there is no host to wait for."""
        if self._line is None or self._child is None or self._loaded or self._child.poll() is not None:
            return True
        self._line.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            self._loaded = self._line.recv(MAX_MESSAGE_BYTES) == LOADED
            return True
        return False

    def work(self) -> float | None:
        """Its `measure_process_work` so far."""
        return measure_process_work(self.pid)

    def exit_code(self) -> int | None:
        """Its exit code; None while it runs, or was never started."""
        return self._child.poll() if self._child else None

    def fork(
        self, module: Sequence[str], environment: Mapping[str, str], *, log: Path, stdout: int | None = None
    ) -> AdoptedProcess | None:
        """Start `module` with its arguments in a fork; None when there is no host with these variables."""
        if not self._loaded or self._line is None or self.exit_code() is not None or environment != self.environment:
            return None
        request = json.dumps({"module": list(module), "launcher": os.getpid()}).encode()
        self._line.settimeout(FORK_TIMEOUT_S)
        with open_log(log) as output:
            descriptors = [stdout if stdout is not None else output.fileno(), output.fileno()]
            try:
                socket.send_fds(self._line, [request], descriptors)
                answer = self._line.recv(MAX_MESSAGE_BYTES)
            except OSError:
                answer = b""
        if not answer.isdigit():
            self.stop()
            return None
        return AdoptedProcess(int(answer))

    def stop(self) -> None:
        """End the host; what it forked goes on."""
        if self._line is not None:
            self._line.close()
            self._line = None
        if self._child is not None:
            stop_process(self._child, (signal.SIGTERM, 5.0))
            self._child = None
        self._loaded = False


def _become_subreaper() -> bool:
    """Whether orphans below this process become its children."""
    if sys.platform != "linux":
        return False
    return bool(ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)


def collect_orphans(known: set[int]) -> None:
    """Collect ended processes that became our children when their parents ended; `known` ones are left to others."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in known:
            return
        with contextlib.suppress(ChildProcessError):
            os.waitpid(ended.si_pid, 0)

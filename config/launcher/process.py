"""Child processes that die with their parent, run as another user where asked, and log to a file.

Dying with the parent is Linux only (PR_SET_PDEATHSIG); elsewhere a killed launcher leaves its children.
The signal goes out when the *thread* that started the child ends: start children from the main thread.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol

from config.launcher.errors import LaunchError

PR_SET_PDEATHSIG = 1
MAX_LOG_FILE_BYTES = 10_000_000
PROCESS_POLL_S = 0.01

_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemUser:
    """An operating system user to run a child as."""

    name: str
    uid: int
    gid: int


def find_unprivileged_user() -> SystemUser | None:
    """The user PostgreSQL runs as when we are root (it refuses root); None when we are not root."""
    if os.geteuid() != 0:
        return None
    for name in ("nobody", "postgres", "daemon"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return SystemUser(name=name, uid=entry.pw_uid, gid=entry.pw_gid)
    raise LaunchError("PostgreSQL refuses root and there is no user `nobody`: set DATABASE_URL.")


def set_parent_death_signal(parent: int, death_signal: int) -> None:
    """Ask the kernel to send `death_signal` to this process when `parent` is gone.

    The parent may have died before we asked: then no signal will come, and we exit at once.
    """
    if _libc is None:
        return
    _libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def spawn_process(
    command: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    death_signal: int = signal.SIGKILL,
    account: SystemUser | None = None,
    directory: Path | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: int | None = None,
) -> subprocess.Popen[bytes]:
    """Start a child in a session of its own, as Ctrl-C must reach only us: we stop in order. Output to `log`.

    The user is changed before `preexec_fn` runs: a change of user clears the death signal.
    """
    parent = os.getpid()
    with open_log(log) as output:
        return subprocess.Popen(
            [str(part) for part in command],
            env=None if env is None else dict(env),
            stdin=stdin,
            stdout=output if stdout is None else stdout,
            stderr=output,
            cwd=directory,
            start_new_session=True,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            umask=0o077,
            preexec_fn=lambda: set_parent_death_signal(parent, death_signal),
        )


def open_log(log: Path) -> IO[bytes]:
    """A log to append to, readable by its owner only; a large one is put aside as `.1` first."""
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > MAX_LOG_FILE_BYTES:
        log.replace(log.with_name(log.name + ".1"))
    return os.fdopen(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")


def log_size_bytes(log: Path) -> int:
    """The byte of a log at which the next started program will begin to write."""
    with open_log(log) as output:
        return output.tell()


def measure_process_work(pid: int | None) -> float | None:
    """How much a process and its descendants have done so far: processor seconds, and mebibytes read from and written
    to disks. Only its growth is meaningful. None if it cannot be read: no process, or no Linux."""
    if pid is None or not Path("/proc/self/stat").exists():
        return None
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "stat").read_text().rpartition(") ")[2].split()
        except OSError:
            continue
        parents[int(entry.name)] = int(words[1])
        ticks[int(entry.name)] = sum(int(word) for word in words[11:15])  # its own, and those of children that ended
    family = {pid}
    while grown := {child for child, parent in parents.items() if parent in family} - family:
        family |= grown
    seconds = sum(ticks.get(one, 0) for one in family) / os.sysconf("SC_CLK_TCK")
    return seconds + sum(map(_disk_bytes, family)) / 2**20


def _disk_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/io").read_text()
    except OSError:  # it ended, or we may not read it
        return 0
    figures = dict(line.split(": ") for line in text.splitlines())
    return int(figures.get("read_bytes", 0)) + int(figures.get("write_bytes", 0))


class OutputLines:
    """The lines that a child has written to its standard output so far, read without waiting for more."""

    def __init__(self, descriptor: int) -> None:
        """``descriptor``: the reading end of a pipe, which is closed here once all was read."""
        self._descriptor = descriptor
        os.set_blocking(self._descriptor, False)
        self._rest = b""
        self.ended = False
        """True if the other end is closed and all lines were read."""

    def read(self) -> list[str]:
        """The lines that came since the last call."""
        while not self.ended:
            try:
                came = os.read(self._descriptor, 65_536)
            except BlockingIOError:
                break
            self._rest += came
            self.ended = not came
        if self.ended and self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        *lines, self._rest = self._rest.split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]


def wait_until(ready: Callable[[], bool], timeout_s: float, poll_s: float = PROCESS_POLL_S) -> bool:
    """Poll until `ready()` or the timeout; returns whether it became ready."""
    deadline = time.monotonic() + timeout_s
    while not ready():
        if time.monotonic() > deadline:
            return False
        time.sleep(poll_s)
    return True


class StoppableProcess(Protocol):
    """What stopping needs of a child: a `subprocess.Popen`, or one that a host forked."""

    def poll(self) -> int | None:
        """Its exit code; None while it runs."""

    def send_signal(self, number: int, /) -> None:
        """Send it a signal."""


def stop_process(child: StoppableProcess, *steps: tuple[int, float]) -> None:
    """Stop a child: each step is a signal and the seconds to wait after it; SIGKILL at the end."""
    for number, timeout_s in (*steps, (signal.SIGKILL, 10.0)):
        if child.poll() is not None:
            return
        child.send_signal(number)
        if wait_until(lambda: child.poll() is not None, timeout_s):
            return

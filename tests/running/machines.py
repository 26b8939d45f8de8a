"""Machines of a trial: network namespaces of Linux, joined by a bridge that leads nowhere else.

Each has an address of its own, so that the examples of docs/running are run with the addresses that stand in them, and
its link can be pulled: nothing is refused then, there is silence, as when a switch or a machine loses its power. All
lies in a namespace of processes, too: whatever a trial started ends with it.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

from config.launcher.process import spawn_process, wait_until

INSIDE: Final = "TOLLHOUSE_TRIAL_NETWORK"
BRIDGE: Final = "trial"
OWN_ADDRESS: Final = "10.0.0.1"
CLONE_NEWNET: Final = 0x40000000
Made = TypeVar("Made")
TOOLS: Final = ("unshare", "nsenter", "ip", "setpriv")


def missing_tools(programs: Sequence[str] = ()) -> str:
    """Why there can be no such machines here, in words; empty when there can."""
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    absent = [name for name in (*TOOLS, *programs) if shutil.which(name, path=path) is None]
    if absent:
        return f"not installed: {', '.join(absent)}"
    if os.geteuid() != 0:
        return "only root may make a network of its own"
    if subprocess.run(["unshare", "--net", "--pid", "--fork", "true"], capture_output=True, check=False).returncode:
        return "this kernel, or this container, allows no network of its own (CAP_SYS_ADMIN, CAP_NET_ADMIN)"
    return ""


def is_inside() -> bool:
    """Whether this program runs within the network of :func:`run_inside`."""
    return bool(os.environ.get(INSIDE))


def run_inside(module: str, arguments: Sequence[str]) -> int | None:
    """Run this program again within a network of its own and return its exit code; None: we are inside already."""
    if is_inside():
        return None
    # The shell stays and collects orphans: a killed PostgreSQL would else look alive, as a zombie, to its Patroni.
    shell = ["sh", "-c", '"$@"; exit $?', "sh", sys.executable, "-m", module, *arguments]
    unshare = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    return subprocess.run([*unshare, *shell], env=os.environ | {INSIDE: "1"}, check=False).returncode


def make_bridge() -> None:
    """What all machines are plugged into; we are on it with OWN_ADDRESS."""
    _ip("link", "set", "lo", "up")
    _ip("link", "add", BRIDGE, "type", "bridge")
    _ip("addr", "add", f"{OWN_ADDRESS}/24", "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")


class Machine:
    """One machine: what is started by the command that :meth:`on` gives runs on it."""

    def __init__(self, name: str, address: str, log: Path) -> None:
        self.name = name
        self.address = address
        self._plug = f"to-{name}"
        self._holder = spawn_process(["unshare", "--net", "sleep", "infinity"], log=log)
        pid = self._holder.pid
        wait_until(lambda: _network(pid) not in ("", _network(os.getpid())), 10)
        _ip("link", "add", self._plug, "type", "veth", "peer", "name", "eth0", "netns", str(pid))
        _ip("link", "set", self._plug, "master", BRIDGE, "up")
        for words in ("link set lo up", f"addr add {address}/24 dev eth0", "link set eth0 up"):
            _run(self.on("ip", *words.split()))
        self._network = _network(pid)

    def on(self, *command: str) -> list[str]:
        """The command line that runs ``command`` on this machine."""
        return ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "--", *command]

    def open_there(self, make: Callable[[], Made]) -> Made:
        """What ``make`` returns, called on this machine: a socket stays on the machine where it was opened."""
        libc = ctypes.CDLL(None, use_errno=True)

        def enter_and_make() -> Made:
            with open(f"/proc/{self._holder.pid}/ns/net", "rb") as network:
                if libc.setns(network.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            return make()

        # Only the calling thread changes its network.
        with ThreadPoolExecutor(max_workers=1) as pool:
            return pool.submit(enter_and_make).result()

    def pull_link(self) -> None:
        """Nothing comes to it any more, and nothing leaves it."""
        _ip("link", "set", self._plug, "down")

    def plug_in(self) -> None:
        _ip("link", "set", self._plug, "up")

    def deafen(self, other: Machine) -> None:
        """Drop what this machine sends to ``other``: the two do not hear each other, all others hear both."""
        _run(self.on("ip", "route", "add", "blackhole", f"{other.address}/32"))

    def undeafen(self, other: Machine) -> None:
        _run(self.on("ip", "route", "del", "blackhole", f"{other.address}/32"))

    def processes(self, word: str = "") -> list[int]:
        """The processes that run on it, or those in whose command line ``word`` stands."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) != self._holder.pid and _network(entry.name) == self._network:
                try:
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                except OSError:
                    continue
                if word in command:
                    found.append(int(entry.name))
        return found

    def kill(self, word: str = "") -> None:
        """kill -9 of those processes, at once, until none is left."""
        end = time.monotonic() + 10
        while (found := self.processes(word)) and time.monotonic() < end:
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
            time.sleep(0.01)


def _network(pid: int | str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return ""


def _ip(*words: str) -> None:
    _run(["ip", *words])


def _run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stderr.strip()}")

"""Debian's units of etcd and Patroni with the files of docs/running, started by systemd; run by tests.running.units.

One machine, so etcd's cluster has one member; what three of them do: `python -m tests.running --cluster`.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.running.files import EXAMPLES, rendered
from tests.running.patroni import DEBIAN_BINARIES, PATRONI, newest_binaries
from tests.running.servers import eventually
from tests.running.trials import Row

INSTALLED_PATRONI: Final = Path("/opt/patroni")
CONFIGURATION: Final = Path("/etc/patroni/config.yml")
DEBIAN_UNITS: Final = tuple(Path("/lib/systemd/system") / f"{name}.service" for name in ("etcd", "patroni"))
REST: Final = "http://10.0.0.21:8008"
PATIENCE_S: Final = 120.0


def missing_for_patroni() -> str:
    """Why Debian's units cannot be started here; empty when they can."""
    absent = [path.stem for path in DEBIAN_UNITS if not path.exists()]
    if newest_binaries() is None:
        absent.append("postgresql")
    return f"not installed: {', '.join(absent)} (Debian: postgresql, etcd-server, patroni)" if absent else ""


def install_relocatable(uv: str, python: Path, folder: Path) -> None:
    """The Patroni of docs/running/patroni.txt, so that it runs wherever the folder is mounted."""
    for command in (
        [uv, "venv", "--quiet", "--relocatable", "--python", str(python), str(folder)],
        [uv, "pip", "install", "--quiet", "--python", str(folder / "bin" / "python"), "-r", str(PATRONI)],
    ):
        subprocess.run(command, check=True)


def patroni_starts(drop_in: str) -> Iterator[Row]:
    """Inside the container. ``drop_in``: the page's command that puts Tollhouse's drop-in beside Debian's unit."""
    if why := missing_for_patroni():
        yield Row(trial="Debian's units of etcd and Patroni", done="nothing", seen=f"not tested: {why}", fine=True)
        return
    _run("ip", "address", "add", "10.0.0.21/24", "dev", "lo")
    _write_configuration()
    _run("bash", "-ec", f"cd {EXAMPLES.parents[1]}; {drop_in}")
    _run("systemctl", "daemon-reload")
    _run("systemctl", "enable", "--now", "etcd", "patroni")
    begun = eventually("Patroni's PostgreSQL is the primary", _is_primary, PATIENCE_S)
    first = _ask()
    program = Path(f"/proc/{_show('MainPID')}/cmdline").read_bytes().split(b"\0")
    listed = _run(f"{INSTALLED_PATRONI}/bin/patronictl", "-c", str(CONFIGURATION), "list")
    before = _show("MainPID")
    _run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", "patroni")
    eventually("Patroni is back", lambda: _show("MainPID") not in ("0", before), PATIENCE_S)
    eventually("it knows its PostgreSQL again", _is_primary, PATIENCE_S)
    again = _ask()
    _run("systemctl", "stop", "patroni")
    ended, left = _show("Result"), subprocess.run(["pgrep", "-x", "postgres", "-u", "postgres"], check=False).returncode
    version = first["patroni"]["version"]
    yield Row(
        trial="Debian's units of etcd and Patroni",
        done="etcd.env, patroni.yml and the drop-in as Fail-over by Patroni says (one machine), started; kill -9 of"
        " Patroni; `systemctl stop patroni`",
        seen=f"{program[1].decode()} {version}, a primary after {begun:.0f} s; killed, it is back and its PostgreSQL"
        f" {'never ended' if again['postmaster_start_time'] == first['postmaster_start_time'] else 'was started anew'};"
        f" stopped: {ended}, PostgreSQL {'ended with it' if left else 'runs on'}",
        fine=program[1].decode() == f"{INSTALLED_PATRONI}/bin/patroni"
        and f"patroni[etcd3]=={version}" in PATRONI.read_text()
        and "Leader" in listed
        and again["postmaster_start_time"] == first["postmaster_start_time"]
        and ended == "success"
        and left == 1,
    )


def _write_configuration() -> None:
    binaries = newest_binaries()
    assert binaries is not None
    data = Path("/var/lib/postgresql/18/tollhouse")
    for folder in (data.parent, Path("/var/lib/tollhouse-archive"), Path("/var/run/postgresql")):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.chown(folder, "postgres", "postgres")
    library = Path("/usr/local/lib/tollhouse")
    library.mkdir(parents=True, exist_ok=True)
    shutil.copy(EXAMPLES / "archive-wal.sh", library)
    (library / "archive-wal.sh").chmod(0o755)
    etcd = rendered("etcd.env", {",pg2=http://10.0.0.22:2380,pg3=http://10.0.0.23:2380": ""})
    Path("/etc/default/etcd").write_text(etcd)
    text = rendered(
        "patroni.yml",
        {
            f"{DEBIAN_BINARIES}/18/bin": str(binaries),
            "shared_buffers: 1GB": "shared_buffers: 64MB",
            "10.0.0.21:2379, 10.0.0.22:2379, 10.0.0.23:2379": "10.0.0.21:2379",
            **{f"{name}-PASSWORD": secrets.token_hex(16) for name in ("POSTGRES", "REPLICATOR", "PATRONI")},
        },
    )
    CONFIGURATION.parent.mkdir(exist_ok=True)
    CONFIGURATION.touch(mode=0o600)
    CONFIGURATION.write_text(text)
    shutil.chown(CONFIGURATION, "postgres", "postgres")


def _is_primary() -> bool:
    return _ask().get("role") in ("master", "primary")


def _ask() -> dict[str, Any]:
    """What Patroni says of itself; empty while it says nothing."""
    try:
        with urllib.request.urlopen(f"{REST}/patroni", timeout=2) as answer:
            found = json.loads(answer.read())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _show(what: str) -> str:
    return _run("systemctl", "show", "--value", f"--property={what}", "patroni").strip()


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LC_ALL": "C.UTF-8"})
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stdout}{done.stderr}"[-3_000:])
    return done.stdout

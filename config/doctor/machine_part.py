"""This machine: disks, folders, limits of processes, the web server and systemd's units on it."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from django.conf import settings

from config.doctor.findings import DoctorQuestion, PartFinding, error, judge, ok, skipped, warning
from config.launcher.errors import LaunchError
from config.launcher.programs import WebServer
from config.launcher.supervise import probe_readiness

MIN_FREE_DISK_BYTES: Final = 1024**3
WARNING_FREE_DISK_BYTES: Final = 5 * 1024**3
MIN_OPEN_FILES: Final = 4_096
UNIT_TIMEOUT_S: Final = 5
UNITS: Final = ("tollhouse-web.service", "tollhouse-worker.service", "tollhouse-beat.service", "tollhouse-tick.service")
_CLEAR_CARD_DATA: Final = "PCI DSS 3.5: what is in it is not for other users."


def examine_disk(_question: DoctorQuestion) -> Iterator[PartFinding]:
    """Free room where files are written."""
    places: dict[int, tuple[str, Path]] = {}
    for name, folder in _list_folders():
        place = next(one for one in (folder, *folder.parents) if one.exists())
        places.setdefault(place.stat().st_dev, (name, place))
    for name, folder in places.values():
        free = shutil.disk_usage(folder).free
        about = f"{name} {folder}: {free / 1024**3:.1f} GiB are free."
        mend = "Make room, or put the folder on a larger disk."
        level = error if free < MIN_FREE_DISK_BYTES else warning
        yield judge(free >= WARNING_FREE_DISK_BYTES, about, level(about, mend))


def examine_folders(_question: DoctorQuestion) -> Iterator[PartFinding]:
    """Rights of the folders and of the keyset."""
    for name, folder in _list_folders():
        if not folder.exists():
            yield skipped(f"{name} {folder} is not there yet.")
            continue
        writable = os.access(folder, os.W_OK | os.X_OK)
        fault = error(f"{name} {folder} cannot be written.", f"chown tollhouse {folder}; chmod u+rwx {folder}")
        yield judge(writable, f"{name} {folder} can be written.", fault)
        if name != "TOLLHOUSE_VAR":
            yield _judge_rights(name, folder, f"chmod 700 {folder}")
    keyset = Path(settings.GATEWAY_VAULT_KEYSET_FILE)
    if not settings.GATEWAY_VAULT_KEYSET and keyset.exists():
        yield _judge_rights("GATEWAY_VAULT_KEYSET_FILE", keyset, f"chmod 600 {keyset}")


def _judge_rights(name: str, path: Path, mend: str) -> PartFinding:
    mode = stat.S_IMODE(path.stat().st_mode)
    fault = error(f"{name} {path} is open to other users ({mode:o}).", f"{mend}   # {_CLEAR_CARD_DATA}")
    return judge(not mode & 0o077, f"{name} {path} is closed to other users.", fault)


def _list_folders() -> list[tuple[str, Path]]:
    named = [
        ("TOLLHOUSE_VAR", settings.VAR_DIR),
        ("GATEWAY_WORK_DIR", Path(settings.GATEWAY_WORK_DIR)),
        ("GATEWAY_SEPA_OUTBOX", Path(settings.GATEWAY_SEPA_OUTBOX)),
    ]
    return named + [
        (name, Path(text))
        for name in ("GATEWAY_SEPA_INBOX", "GATEWAY_SETTLEMENT_FOLDER")
        if (text := getattr(settings, name))
    ]


def examine_limits(_question: DoctorQuestion) -> Iterator[PartFinding]:
    """Limits of a process that this user starts, and the setting that stands for the proxy."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    few = warning(f"A process may open {files} files.", f"LimitNOFILE={MIN_OPEN_FILES} in the units; ulimit -n.")
    yield judge(files >= MIN_OPEN_FILES or files == resource.RLIM_INFINITY, f"A process may open {files} files.", few)
    core = resource.getrlimit(resource.RLIMIT_CORE)[0]
    dump = warning("A process that crashes writes its memory, with card data, to disk.", "LimitCORE=0; ulimit -c 0.")
    yield judge(core == 0, "No memory is written to disk by a crash.", dump)
    if settings.IS_LIVE:
        bare = warning(
            "GATEWAY_BEHIND_PROXY is off: TLS ends nowhere.", "GATEWAY_BEHIND_PROXY=true behind HAProxy or nginx."
        )
        yield judge(settings.GATEWAY_BEHIND_PROXY, "A proxy stands before the nodes.", bare)


def examine_web_server(question: DoctorQuestion) -> Iterator[PartFinding]:
    """The web server of this machine, at HOST and PORT."""
    if not question.web:
        yield skipped("No web server is looked for on this machine.")
        return
    try:
        web = WebServer.from_environment()
    except LaunchError as fault:
        yield error(str(fault), "Correct the variable (docs/settings.md).")
        return
    answer = probe_readiness(web, settings.GATEWAY_BASE_URL)
    if answer == "200":
        yield ok(f"The web server at {web.url} is ready.")
        return
    about = f"The web server at {web.url} is not ready: {answer}."
    yield error(
        about, "systemctl restart tollhouse-web, or PORT=… where it listens; on a machine without one: --no-web."
    )


def examine_units(_question: DoctorQuestion) -> Iterator[PartFinding]:
    """systemd's units of docs/running/systemd, where they are installed."""
    if shutil.which("systemctl") is None:
        yield skipped("systemd is not on this machine.")
        return
    shown = [_read_unit(name) for name in UNITS]
    loaded = [unit for unit in shown if unit.get("LoadState") == "loaded"]
    if not loaded:
        yield skipped("No unit of docs/running/systemd is installed.")
    for unit in loaded:
        yield from _examine_unit(unit)


def _examine_unit(unit: dict[str, str]) -> Iterator[PartFinding]:
    name, state = unit["Id"], unit.get("ActiveState", "")
    yield judge(state == "active", f"{name} is active.", error(f"{name} is {state}.", f"systemctl restart {name}"))
    for field, wanted in (("Restart", "always"), ("LimitCORE", "0")):
        if unit.get(field) != wanted:
            mend = f"systemctl edit {name}, section Service: {field}={wanted}"
            yield warning(f"{name} has {field}={unit.get(field)}.", mend)


def _read_unit(name: str) -> dict[str, str]:
    fields = "Id,LoadState,ActiveState,Restart,LimitCORE"
    command = ["systemctl", "show", name, f"--property={fields}"]
    try:
        done = subprocess.run(  # noqa: S603 - our own words
            command, capture_output=True, text=True, timeout=UNIT_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return {}
    return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)

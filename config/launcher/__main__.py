"""`python -m config.launcher`: run everything in the foreground.

`python -m config.launcher exec -- CMD …`: run one command with the same database, broker and environment.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from config.launcher.backing_services import BackingServices
from config.launcher.errors import LaunchError
from config.launcher.process import measure_process_work, set_parent_death_signal
from config.launcher.programs import WebServer
from config.launcher.start_wait import StartWait
from config.launcher.supervise import StopRequested, Supervisor, install_signal_handlers
from config.launcher.terminal import mute_output, print_line
from config.launcher.var_folder import PROJECT_ROOT, acquire_file_lock, find_var_folder

LAUNCHER_USAGE = "usage: python -m config.launcher [--with-parent] | python -m config.launcher exec -- COMMAND …"


def main(arguments: list[str]) -> int:
    """Exit code 0 after an orderly stop, 1 after an error (reported in one line), 2 for wrong usage."""
    if arguments in ([], ["--with-parent"]):
        if arguments:
            # Started by make: if make dies, even by kill -9, stop.
            set_parent_death_signal(os.getppid(), signal.SIGTERM)
        return run_stack()
    if len(arguments) > 2 and arguments[:2] == ["exec", "--"]:
        return run_in_environment(arguments[2:])
    print(LAUNCHER_USAGE, file=sys.stderr)
    return 2


def run_stack() -> int:
    """Bring everything up and keep it up until asked to stop."""
    install_signal_handlers()
    running: Supervisor | None = None
    code = 0
    try:
        running = Supervisor(find_var_folder())
        running.up()
        running.keep()
    except StopRequested:
        print_line("\nStopping.")
    except LaunchError as error:
        print(f"\nTollhouse cannot run: {error}", file=sys.stderr, flush=True)
        code = 1
    except OSError as error:  # a full disk, a missing permission
        where = f"{error.filename}: " if error.filename else ""
        print(f"\nTollhouse cannot run: {where}{error.strerror or error}", file=sys.stderr, flush=True)
        code = 1
    finally:
        # From here on a signal must not interrupt the stopping.
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if running is not None:
            running.down()
    return code


def run_in_environment(command: list[str]) -> int:
    """Run one command in the environment of the current run, or with backing services started just for it."""
    ground: BackingServices | None = None
    try:
        var = find_var_folder()
        environment = _environment_of_run(var)
        if environment is None:
            mute_output()
            ground = BackingServices(var)
            ground.claim()
            ground.start(WebServer.from_environment())
            environment = ground.environment
        child = subprocess.Popen(command, env=environment, cwd=PROJECT_ROOT)
        # The terminal sends Ctrl-C to the command, too, which handles it.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda number, _frame: child.send_signal(number))
        code = child.wait()
        return code if code >= 0 else 128 - code
    except LaunchError as error:
        print(f"Tollhouse cannot run: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"Cannot run {command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    finally:
        if ground is not None:
            ground.stop()


def _environment_of_run(var: Path) -> dict[str, str] | None:
    """The environment of the run on this `var/`; None without one. Waits for one that is starting."""
    own: dict[str, str] = {}

    def is_known() -> bool:
        with contextlib.suppress(OSError, ValueError, KeyError):
            own.update(json.loads((var / "run.json").read_text(encoding="utf-8"))["environment"])
        return bool(own) or not _is_locked(var)

    if not _is_locked(var):
        return None
    StartWait(f"The run on {var}", {}, lambda: measure_process_work(_read_lock_holder(var))).until(is_known, poll_s=0.1)
    return {**os.environ, **own} if own else None


def _is_locked(var: Path) -> bool:
    lock = acquire_file_lock(var / "run.lock")
    if lock is not None:
        os.close(lock)
    return lock is None


def _read_lock_holder(var: Path) -> int | None:
    """The process id that holds the lock of `var/`, if recorded."""
    text = (var / "run.lock").read_text(encoding="ascii").strip()
    return int(text) if text.isdecimal() else None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

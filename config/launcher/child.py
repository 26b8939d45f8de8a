"""`python -m config.launcher.child MODULE …`: run a module as `python -m` does; what it forks dies with it.

The launcher's own children get their death signal from the launcher. The web server and the Celery worker
fork processes of their own; those get theirs here, so that kill -9 of any of them leaves none behind.
"""

from __future__ import annotations

import os
import runpy
import signal
import sys
from collections.abc import Sequence

from config.launcher.process import set_parent_death_signal

_forker = 0


def _remember_forker() -> None:
    global _forker
    _forker = os.getpid()


def _follow_forker() -> None:
    set_parent_death_signal(_forker, signal.SIGKILL)


def run_module(command: Sequence[str]) -> None:
    """Run the module named first with the others as its arguments, as `python -m` does."""
    os.register_at_fork(before=_remember_forker, after_in_child=_follow_forker)
    sys.argv = list(command)
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


def main() -> None:
    """Run the module that the arguments name."""
    run_module(sys.argv[1:])


if __name__ == "__main__":
    main()

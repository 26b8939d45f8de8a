"""The Tollhouse payment gateway as pip installed it: the sources lie below this folder, as in a checkout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parent


def main(arguments: list[str] | None = None) -> int:
    """The command ``tollhouse`` with ``arguments``, by default the process's own; see config.installed.command."""
    sys.path.insert(0, str(_ROOT))
    # Programs that are started in turn (gunicorn, celery) find the sources the same way.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH", ""))))
    # The folder of the installed files stays as it is.
    os.environ.setdefault("TOLLHOUSE_VAR", str(Path.cwd() / "var"))
    from config.installed.command import run_command

    return run_command(sys.argv[1:] if arguments is None else arguments)

"""`python -m config.launcher.clean`: remove `var/` and what it links to. Needs the standard library only."""

from __future__ import annotations

import os
import shutil
import sys

from config.launcher.errors import LaunchError
from config.launcher.var_folder import acquire_file_lock, find_var_folder


def main() -> int:
    """Exit code 0, or 1 while a run uses the folder."""
    try:
        var = find_var_folder()
        lock = acquire_file_lock(var / "run.lock")
        if lock is None:
            raise LaunchError(f"Tollhouse runs on {var}. Stop it first.")
        data = var / "postgres"
        if data.is_symlink():
            shutil.rmtree(data.resolve(), ignore_errors=True)
        shutil.rmtree(var)
        os.close(lock)
    except LaunchError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

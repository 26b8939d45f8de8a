"""`python -m tests.running.hardened MODULE …`: run a module under two of the promises that the systemd units make.

NoNewPrivileges and MemoryDenyWriteExecute, asked of the kernel itself; both stay over exec and fork. Where the kernel
knows no MemoryDenyWriteExecute (Linux before 6.3), that one is left out.
"""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Final

PR_SET_NO_NEW_PRIVS: Final = 38
PR_SET_MDWE: Final = 65
REFUSE_EXEC_GAIN: Final = 1


def deny_writable_code() -> bool:
    """Whether the kernel from now on refuses this process memory that is both writable and executable."""
    return bool(ctypes.CDLL(None).prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0) == 0)


def main() -> None:
    libc = ctypes.CDLL(None)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError("NoNewPrivileges was refused")
    deny_writable_code()
    os.execv(sys.executable, [sys.executable, "-m", "config.launcher.child", *sys.argv[1:]])


if __name__ == "__main__":
    main()

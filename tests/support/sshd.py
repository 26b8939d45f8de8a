"""A real OpenSSH server for tests, run as the user who runs the tests, on a free port, with keys of its own.

Where there is none the tests that need it are skipped, never in CI, which installs it (.ci/run).
"""

from __future__ import annotations

import getpass
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.ports import free_port

SSHD: Final = Path("/usr/sbin/sshd")
READY_S: Final = 60.0
_CONFIG: Final = """
ListenAddress 127.0.0.1
Port {port}
HostKey {folder}/host
PidFile none
AuthorizedKeysFile {folder}/authorized
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin prohibit-password
Subsystem sftp internal-sftp
LogLevel ERROR
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    port: int
    host_key: str
    user: str
    private_key: str
    inbox: Path


def needed() -> None:
    """Skip the test where there is no sshd, and say why."""
    if not SSHD.exists() and not os.environ.get("CI"):
        pytest.skip("there is no /usr/sbin/sshd: install Debian's openssh-server")


def new_key() -> tuple[str, str]:
    """A private key as OpenSSH writes it, and the public one in one line."""
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )
    public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return private.decode(), public.decode()


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Serve until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    host_private, host_public = new_key()
    private, public = new_key()
    port = free_port()
    (folder / "host").write_text(host_private)
    (folder / "host").chmod(0o600)
    (folder / "authorized").write_text(public + "\n")
    (folder / "config").write_text(_CONFIG.format(port=port, folder=folder))
    inbox = folder / "inbox"
    inbox.mkdir(exist_ok=True)
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # Debian's privilege separation
    process = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "config"], stderr=subprocess.PIPE, text=True)
    try:
        _wait(process, port)
        yield Server(port=port, host_key=host_public, user=getpass.getuser(), private_key=private, inbox=inbox)
    finally:
        process.terminate()
        process.wait(READY_S)


def _wait(process: subprocess.Popen[str], port: int) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"sshd ended: {process.stderr.read() if process.stderr else ''}")
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("sshd does not answer")

"""The folder `var/`, which persists between runs (passwords, ports, data, logs), and its lock."""

from __future__ import annotations

import fcntl
import os
import secrets
import socket
from pathlib import Path

from config.launcher.errors import LaunchError

PROJECT_ROOT = Path(__file__).resolve().parents[2]


def find_var_folder() -> Path:
    """`var/` of this checkout, or the folder named by TOLLHOUSE_VAR; created if missing.

    Other users may pass through it (so that PostgreSQL's own user reaches its data) but not list it.
    """
    folder = Path(os.environ.get("TOLLHOUSE_VAR") or PROJECT_ROOT / "var").absolute()
    try:
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        (folder / "log").mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise LaunchError(f"Cannot make {folder}: {error.strerror}.") from error
    return folder


def write_private(file: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as output:
            output.write(text)
            output.flush()
            os.fsync(output.fileno())
        draft.replace(file)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise LaunchError(f"Cannot write {file}: {error.strerror}.") from error


def load_or_create_secret(file: Path, length_bytes: int = 32) -> str:
    """The random secret in `file` (mode 0600); created on first use."""
    try:
        text = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise LaunchError(f"Cannot read {file}: {error.strerror}.") from error
    if not text:
        text = secrets.token_urlsafe(length_bytes)
        write_private(file, text)
    return text


def try_port(host: str, port: int) -> None:
    """OSError unless the port can be listened on. SO_REUSEPORT stays off: a second server would seem possible."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))


def is_port_free(host: str, port: int) -> bool:
    """True if the port can be listened on now."""
    try:
        try_port(host, port)
    except OSError:
        return False
    return True


def load_or_choose_port(file: Path) -> int:
    """A free TCP port of 127.0.0.1: the one recorded in `file` while it is free, else a new one."""
    try:
        port = int(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        port = 0
    if not 1024 <= port <= 65_535 or not is_port_free("127.0.0.1", port):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        write_private(file, str(port))
    return port


def acquire_file_lock(file: Path) -> int | None:
    """Lock `file` for the lifetime of this process: its descriptor, or None when another process holds it."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise LaunchError(f"Cannot open {file}: {error.strerror}.") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor

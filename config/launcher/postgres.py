"""Launches PostgreSQL: a server under `var/`, or checks the one that DATABASE_URL names.

The server is a direct child and dies with us. A crash loses no committed row: `fsync` is on (but for tests),
and leftovers of a kill (a stale `postmaster.pid`, a server without its launcher) are cleaned up at the next start.
Settings are given on the command line, so they are here and in no file that could go stale. psycopg is imported by the
functions that use it: it takes longer than all else of the launcher, which first starts what others wait for.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

from config.launcher.errors import LaunchError, find_fault_line, first_line_of_error, read_lines_since
from config.launcher.postgres_files import (
    find_postgres_binaries,
    prepare_data_folder,
    prepare_readable_binaries,
    stop_orphaned_server,
)
from config.launcher.process import (
    find_unprivileged_user,
    log_size_bytes,
    measure_process_work,
    spawn_process,
    stop_process,
)
from config.launcher.start_wait import StartWait
from config.launcher.var_folder import acquire_file_lock, is_port_free, load_or_choose_port, load_or_create_secret

MIN_POSTGRES_VERSION = 15
POSTGRES_CONNECT_TIMEOUT_S = 5
MAX_SOCKET_PATH_BYTES = 80
DATABASE_NAME = "tollhouse"
POSTGRES_STEP = "PostgreSQL"

POSTGRES_SETTINGS = (
    # name                           value           why
    ("listen_addresses", "127.0.0.1"),  # not reachable from outside
    ("work_mem", "8MB"),
    ("wal_level", "minimal"),  # one box, no standby
    ("max_wal_senders", "0"),
    ("max_wal_size", "512MB"),
    ("checkpoint_timeout", "10min"),
    ("jit", "off"),  # short statements: compiling them only costs
    ("password_encryption", "scram-sha-256"),
    ("timezone", "UTC"),
    ("log_timezone", "UTC"),
    ("log_line_prefix", "%m [%p] "),
    ("log_min_messages", "warning"),
    ("log_min_error_statement", "panic"),  # a failing statement may carry personal data
    ("log_parameter_max_length", "0"),
    ("log_error_verbosity", "terse"),  # nor does it repeat the row that it could not write
    ("unix_socket_permissions", "0700"),
)
# A killed server keeps its committed rows even so; only a crash of the whole machine loses them.
MIN_CONNECTIONS = 100
SHARED_BUFFERS_SHARE = 16
"""One part in so many of the machine's memory: what is not there the system's own cache has, too."""
MIN_SHARED_BUFFERS_MIB, MAX_SHARED_BUFFERS_MIB = 32, 128
NO_DURABILITY_SETTINGS = (("fsync", "off"), ("full_page_writes", "off"))


def size_settings(memory_bytes: int, connections: int) -> tuple[tuple[str, str], ...]:
    """The settings that depend on the machine: its memory, and how many connections our programs may open."""
    buffers = min(max(memory_bytes // SHARED_BUFFERS_SHARE // 2**20, MIN_SHARED_BUFFERS_MIB), MAX_SHARED_BUFFERS_MIB)
    return (("shared_buffers", f"{buffers}MB"), ("max_connections", str(max(connections, MIN_CONNECTIONS))))


def machine_memory_bytes() -> int:
    """The memory of this machine, or of its control group if that has less."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return found


class Postgres:
    """A PostgreSQL server: `start()` returns its URL, `stop()` ends it.

    With `url` given no server is started; the one behind it is only checked. `durable=False` is for tests:
    a crash of the machine may lose rows then. `connections`: how many our programs may open at a time.
    """

    def __init__(
        self, var: Path, *, url: str | None = None, durable: bool = True, connections: int = MIN_CONNECTIONS
    ) -> None:
        self.var = var
        self.url = url
        self.durable = durable
        self._sized = size_settings(machine_memory_bytes(), connections)
        self.log = var / "log" / "postgres.log"
        self.log_start = 0
        self._given = url is not None
        self._child: subprocess.Popen[bytes] | None = None
        self._lock: int | None = None
        self._port: int | None = None
        self._socket_folder: Path | None = None

    @property
    def pid(self) -> int | None:
        """The process id of the server that we started; None when we started none."""
        return self._child.pid if self._child else None

    def exit_code(self) -> int | None:
        """Exit code of the server that we started; None while it runs, and for a server that is not ours."""
        return self._child.poll() if self._child else None

    def work(self) -> float | None:
        """The server's `measure_process_work` so far; None for a server that is not ours."""
        return measure_process_work(self.pid)

    def start(self) -> str:
        """Bring the server up, with an empty database on first use. Returns its URL, or LaunchError."""
        if self.url is not None and self._given:
            self.url = check_database_url(self.url)
            return self.url
        account = find_unprivileged_user()
        folder = prepare_data_folder(self.var, account)
        if self._lock is None:
            self._lock = acquire_file_lock(folder / "lock")
            if self._lock is None:
                raise LaunchError(f"PostgreSQL's data in {folder} is in use by another run.")
        binaries = prepare_readable_binaries(find_postgres_binaries(), folder, account)
        password = self._prepare(folder, binaries)
        stop_orphaned_server(folder / "data")
        if self._child is not None:
            self._child.wait()
            self._child = None
        self._run(folder, binaries)
        self.url = self._address(password, self._port)
        StartWait(POSTGRES_STEP, {POSTGRES_STEP: self}, self.work).until(lambda: _has_database(str(self.url)))
        return self.url

    def predict_url(self) -> str | None:
        """The URL that `start()` will return, unless the port is lost until then; None if it cannot be known."""
        if self.url is not None and self._given:
            return f"postgresql://{self.url.partition('://')[2]}"
        kept = self.var / "postgres.password"
        if not kept.exists() and (self.var / "postgres").exists():
            return None  # a lost password is replaced by `start()`
        return self._address(load_or_create_secret(kept), load_or_choose_port(self.var / "postgres.port"))

    def local_url(self, url: str) -> str:
        """``url`` of a database of ours by the unix socket, which takes 3 % less CPU for a payment than TCP. Unchanged
        for a server that is not ours, and where the socket is in a folder that is made anew with each start."""
        folder = str((self.var / "postgres").resolve())
        if self._given or len(folder) > MAX_SOCKET_PATH_BYTES:
            return url
        parts = urlsplit(url)
        user = parts.netloc.rpartition("@")[0]
        return f"postgresql://{user}@{parts.path}?host={quote(folder, safe='/')}&port={parts.port}"

    @staticmethod
    def _address(password: str, port: int | None) -> str:
        return f"postgresql://{DATABASE_NAME}:{quote(password, safe='')}@127.0.0.1:{port}/{DATABASE_NAME}"

    def stop(self) -> None:
        """Fast shutdown: sessions end, committed rows are kept; then harder if it does not end."""
        if self._child is not None:
            stop_process(self._child, (signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0))
            self._child = None
        if self._socket_folder is not None:
            shutil.rmtree(self._socket_folder, ignore_errors=True)
            self._socket_folder = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _prepare(self, folder: Path, binaries: Path) -> str:
        """Create the data folder on first use (whole or not at all); returns the password of its owner."""
        account = find_unprivileged_user()
        kept = self.var / "postgres.password"
        is_new = not (folder / "data").exists()
        had_password = kept.exists()
        password = load_or_create_secret(kept)
        if not is_new and had_password:
            return password
        if not is_new:
            # The password was lost, the data was not: set the new one without a server.
            statement = f"ALTER ROLE {DATABASE_NAME} PASSWORD '{password}'\n"
            command: list[str | Path] = [binaries / "postgres", "--single", "-D", folder / "data", "postgres"]
            self._call(command, "setting PostgreSQL's password", given=statement)
            return password
        draft = folder / "data.new"
        shutil.rmtree(draft, ignore_errors=True)
        secret = folder / f"password-{secrets.token_hex(4)}"
        secret.touch(mode=0o600)
        try:
            if account is not None:
                os.chown(secret, account.uid, account.gid)
            secret.write_text(password, encoding="utf-8")
            self._call(
                [
                    *(binaries / "initdb", "-D", draft, "-U", DATABASE_NAME, f"--pwfile={secret}", "--no-sync"),
                    *("--auth=scram-sha-256", "--encoding=UTF8", *_locale(binaries), "--no-instructions"),
                ],
                "making the database (initdb)",
            )
            if self.durable:
                self._call([binaries / "initdb", "--sync-only", "-D", draft], "writing the database to disk")
            draft.rename(folder / "data")
        except OSError as error:
            raise LaunchError(f"Cannot make the database in {folder}: {error.strerror}.") from error
        finally:
            secret.unlink(missing_ok=True)
            shutil.rmtree(draft, ignore_errors=True)
        return password

    def _call(self, command: list[str | Path], what: str, given: str = "") -> None:
        """Run one of PostgreSQL's programs to its end, as PostgreSQL's user."""
        # Its own log, deleted on success or once reported: it may contain the statement, and with it the password.
        log = self.log.with_name("postgres-setup.log")
        log.unlink(missing_ok=True)
        try:
            child = spawn_process(
                command,
                log=log,
                env=_environment(),
                account=find_unprivileged_user(),
                directory=Path("/"),
                stdin=subprocess.PIPE,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise LaunchError(f"Cannot run {command[0]}: {error}.") from error
        try:
            if child.stdin is not None:
                with contextlib.suppress(BrokenPipeError), child.stdin:
                    child.stdin.write(given.encode())
            StartWait(POSTGRES_STEP, {}, lambda: measure_process_work(child.pid)).until(
                lambda: child.poll() is not None, lambda: what
            )
            if child.returncode != 0:
                raise LaunchError(f"PostgreSQL failed {what}: {find_fault_line(read_lines_since(log, 0))}")
        finally:
            stop_process(child, (signal.SIGTERM, 5.0))
            log.unlink(missing_ok=True)

    def _run(self, folder: Path, binaries: Path) -> None:
        """Start the server and wait until it takes connections; a port lost to another process is replaced."""
        data = folder / "data"
        settings = [*self._sized, *POSTGRES_SETTINGS, *(() if self.durable else NO_DURABILITY_SETTINGS)]
        settings.append(("unix_socket_directories", str(self._sockets(folder))))
        waiting = StartWait(POSTGRES_STEP, {}, self.work, slow=self)
        reason = ""
        while True:
            port = self._port or load_or_choose_port(self.var / "postgres.port")
            options = [part for name, value in settings for part in ("-c", f"{name}={value}")]
            self.log_start = log_size_bytes(self.log)
            # SIGQUIT is PostgreSQL's immediate shutdown: certain and quick, and the next start recovers.
            child = spawn_process(
                [binaries / "postgres", "-D", data, "-p", str(port), *options],
                log=self.log,
                env=_environment(),
                death_signal=signal.SIGQUIT,
                account=find_unprivileged_user(),
                directory=Path("/"),
            )
            self._child = child
            try:
                waiting.until(partial(_is_up_or_over, data, child), partial(str, reason))
            except LaunchError:
                stop_process(child, (signal.SIGINT, 5.0))
                raise
            if child.poll() is None:
                self._port = port
                return
            reason = find_fault_line(read_lines_since(self.log, self.log_start))
            # The last run's sessions may hold its shared memory for a moment; a port may be lost meanwhile.
            lost_port = self._port is None and not is_port_free("127.0.0.1", port)
            if not ("shared memory block" in reason or lost_port):
                raise LaunchError(f"PostgreSQL did not start: {reason} (more in {self.log})")
            waiting.look(reason)
            time.sleep(0.2)

    def _sockets(self, folder: Path) -> Path:
        """Folder of the unix socket: with the data, or a short private folder, since the path length is limited."""
        if len(str(folder)) <= MAX_SOCKET_PATH_BYTES:
            return folder
        if self._socket_folder is None:
            self._socket_folder = Path(tempfile.mkdtemp(prefix="tollhouse-", dir="/tmp"))
            account = find_unprivileged_user()
            if account is not None:
                os.chown(self._socket_folder, account.uid, account.gid)
        return self._socket_folder


def _environment() -> dict[str, str]:
    """The environment for PostgreSQL's programs; PG* variables would change their behaviour."""
    return {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LC_ALL": "C", "TZ": "UTC"}


def _locale(binaries: Path) -> tuple[str, ...]:
    """A collation that needs nothing of the system and sorts the same everywhere."""
    command = [str(binaries / "initdb"), "--version"]
    words = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
    # initdb (PostgreSQL) 18.6
    major = words[2].split(".")[0] if len(words) > 2 else ""
    if major.isdecimal() and int(major) >= 17:
        return ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
    return ("--locale=C",)


def _is_up_or_over(data: Path, child: subprocess.Popen[bytes]) -> bool:
    """True if the server takes connections, or has ended."""
    return _reports_ready(data, child) or child.poll() is not None


def _reports_ready(data: Path, child: subprocess.Popen[bytes]) -> bool:
    """The server writes its state into line 8 of `postmaster.pid`, with its process id in line 1."""
    try:
        lines = (data / "postmaster.pid").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[0].strip() == str(child.pid) and lines[7].strip() == "ready"


def check_database_url(url: str) -> str:
    """A DATABASE_URL that answers and is new enough, in the scheme the driver knows; else LaunchError."""
    import psycopg

    scheme, _, rest = url.partition("://")
    if scheme not in ("postgres", "postgresql", "psql", "pgsql") or not rest:
        raise LaunchError("DATABASE_URL must name a PostgreSQL database: postgresql://user:password@host:5432/name.")
    url = f"postgresql://{rest}"
    version = 0
    try:
        with psycopg.connect(url, connect_timeout=POSTGRES_CONNECT_TIMEOUT_S) as connection:
            version = connection.info.server_version // 10_000
    except (psycopg.Error, UnicodeError) as error:
        raise LaunchError(f"The database of DATABASE_URL does not answer: {first_line_of_error(error)}") from error
    if version < MIN_POSTGRES_VERSION:
        raise LaunchError(f"DATABASE_URL is PostgreSQL {version}; Tollhouse needs {MIN_POSTGRES_VERSION} or newer.")
    return url


def _has_database(url: str) -> bool:
    """True if the database of `url` exists; False when the server took too long to answer."""
    import psycopg

    try:
        create_database(url)
    except psycopg.errors.ConnectionTimeout:
        return False
    return True


def create_database(url: str) -> None:
    """Create the database of `url` if the server has none of that name."""
    import psycopg

    name = urlsplit(url).path.lstrip("/")
    try:
        psycopg.connect(url, connect_timeout=POSTGRES_CONNECT_TIMEOUT_S).close()
    except psycopg.errors.ConnectionTimeout:
        raise
    except psycopg.OperationalError as error:
        if f'database "{name}" does not exist' not in str(error):
            raise LaunchError(f"PostgreSQL does not let us in: {first_line_of_error(error)}") from error
        with psycopg.connect(url.removesuffix(name) + "postgres", autocommit=True) as connection:
            connection.execute(psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name)))

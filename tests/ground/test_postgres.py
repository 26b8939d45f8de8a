"""The embedded PostgreSQL: a crash loses no committed row, faults are one line. Source: the ground."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from config.launcher.errors import LaunchError
from config.launcher.postgres import Postgres, size_settings


@pytest.fixture
def server(var: Path) -> Iterator[Postgres]:
    postgres = Postgres(var, durable=False)
    yield postgres
    postgres.stop()


def write_row(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS row_kept (number int)")
        connection.execute("INSERT INTO row_kept VALUES (42)")


def rows(url: str) -> list[tuple[int]]:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT number FROM row_kept").fetchall()


def test_a_server_killed_with_kill_9_comes_back_at_the_same_address_with_its_rows(server: Postgres) -> None:
    """A crash loses no committed row."""
    url = server.start()
    write_row(url)
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    assert server.start() == url
    assert rows(url) == [(42,)]


def test_programs_reach_the_server_by_its_unix_socket(var: Path, server: Postgres) -> None:
    """Less CPU than TCP; a server of others, and a folder too long for a socket's name, keep their address."""
    url = server.start()
    with psycopg.connect(server.local_url(url)) as connection:
        assert connection.execute("SELECT inet_server_addr(), current_database()").fetchone() == (None, "tollhouse")
    assert Postgres(var, url=url).local_url(url) == url
    assert Postgres(var / ("long" * 20)).local_url(url) == url


def test_a_later_run_finds_the_rows_of_an_earlier_one(var: Path, server: Postgres) -> None:
    """Data is kept in var/ between runs, with its password and port."""
    write_row(server.start())
    server.stop()
    later = Postgres(var, durable=False)
    try:
        assert rows(later.start()) == [(42,)]
    finally:
        later.stop()


def test_a_server_left_without_its_launcher_gives_way_to_the_next_run(var: Path, server: Postgres) -> None:
    """A server that still runs on the same data is ended in good order, and its rows are there."""
    write_row(server.start())
    orphan, lock = server.pid, server._lock
    assert orphan is not None
    assert lock is not None
    os.close(lock)  # what the kernel does with the lock of a launcher that died
    server._lock = None
    later = Postgres(var, durable=False)
    try:
        assert rows(later.start()) == [(42,)]
        assert server.exit_code() is not None
        assert later.pid != orphan
    finally:
        later.stop()


def test_a_stale_lock_file_with_the_number_of_another_process_does_not_stop_the_start(
    var: Path, server: Postgres
) -> None:
    """After a crash of the machine the number in postmaster.pid may belong to any process."""
    server.start()
    server.stop()
    (var / "postgres" / "data" / "postmaster.pid").write_text(f"{os.getpid()}\n")
    assert server.start()


def test_two_runs_never_share_one_data_folder(var: Path, server: Postgres) -> None:
    """The second says so and leaves the first alone."""
    url = server.start()
    with pytest.raises(LaunchError, match="in use by another run"):
        Postgres(var, durable=False).start()
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_lost_password_is_set_anew_and_the_rows_are_kept(var: Path, server: Postgres) -> None:
    """Only the owner of the folder can do that."""
    write_row(server.start())
    server.stop()
    (var / "postgres.password").unlink()
    assert rows(server.start()) == [(42,)]


def test_a_damaged_data_folder_says_so_in_one_line(var: Path, server: Postgres) -> None:
    """A broken database says so in one clear line."""
    server.start()
    server.stop()
    shutil.rmtree(var / "postgres" / "data" / "global")
    with pytest.raises(LaunchError) as fault:
        server.start()
    assert "PostgreSQL did not start" in str(fault.value)
    assert "pg_control" in str(fault.value)
    assert "\n" not in str(fault.value)


def test_the_password_is_asked_for_and_readable_by_its_owner_only(var: Path, server: Postgres) -> None:
    """scram-sha-256, also on the loopback; mode 0600."""
    url = server.start()
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(url, password="wrong")
    assert (var / "postgres.password").stat().st_mode & 0o777 == 0o600
    assert (var / "postgres").stat().st_mode & 0o777 == 0o700


def test_a_committed_row_is_on_disk_before_the_answer(var: Path) -> None:
    """`make run` has fsync and synchronous_commit on; only tests go without."""
    postgres = Postgres(var)
    try:
        with psycopg.connect(postgres.start()) as connection:
            for setting in ("fsync", "synchronous_commit", "full_page_writes"):
                assert connection.execute(f"SHOW {setting}").fetchone() == ("on",)
    finally:
        postgres.stop()


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://user:topsecret@127.0.0.1:1/name", "Connection refused"),
        ("postgresql://user:topsecret@127.0.0.1:99999/name", "99999"),
        ("mysql://user:topsecret@127.0.0.1/name", "must name a PostgreSQL database"),
        ("nonsense", "must name a PostgreSQL database"),
    ],
)
def test_a_database_url_that_does_not_work_says_so_in_one_line_without_the_password(
    var: Path, url: str, said: str
) -> None:
    """A broken database says so in one clear line."""
    with pytest.raises(LaunchError) as fault:
        Postgres(var, url=url).start()
    assert said in str(fault.value)
    assert "\n" not in str(fault.value)
    assert "topsecret" not in str(fault.value)


@pytest.mark.parametrize(
    "memory,connections,expected",
    [
        (2**29, 10, ("32MB", "100")),
        (2**30, 150, ("64MB", "150")),
        (24 * 2**30, 100, ("128MB", "100")),
    ],
)
def test_the_server_fits_the_machine(memory: int, connections: int, expected: tuple[str, str]) -> None:
    """`make run` on a machine with 1 GB; connections for every thread of ours."""
    assert tuple(value for _, value in size_settings(memory, connections)) == expected

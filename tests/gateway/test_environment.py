"""Test and live are two databases, and neither starts on the other's. Source: A2.1; D21; docs/decisions/0045."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import connection

from gateway.db import environment
from gateway.models import Payment

pytestmark = pytest.mark.django_db(transaction=True)


def address() -> str:
    """DATABASE_URL of the test's own database."""
    given = connection.settings_dict
    host = str(given["HOST"]).replace("/", "%2F")
    return f"postgres://{given['USER']}:{given['PASSWORD']}@{host}:{given['PORT']}/{given['NAME']}"


def test_a_database_is_of_the_environment_that_it_was_made_in() -> None:
    assert environment.read_database_environment() == "test"
    environment.require_own_environment()


def test_the_other_environment_is_refused_and_does_nothing(live: None) -> None:
    with pytest.raises(ImproperlyConfigured, match="belongs to the test environment"):
        environment.require_own_environment()
    with pytest.raises(CommandError, match="give DATABASE_URL the other one's"):
        call_command("tick", stdout=StringIO())
    assert not Payment.objects.exists()


STARTS = pytest.mark.parametrize(
    "start",
    ["import config.wsgi", "from config import worker; worker.install_watchdog(None)"],
    ids=["a web server", "a worker"],
)


def run_process(start: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A process of its own that begins so."""
    own = {"DATABASE_URL": address(), "DJANGO_SECRET_KEY": "x" * 50, "DJANGO_SETTINGS_MODULE": "config.settings"}
    return subprocess.run(
        [sys.executable, "-c", f"import django; django.setup(); {start}"],
        env=os.environ | own | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@STARTS
def test_a_process_of_live_does_not_come_up_on_a_database_of_test(start: str) -> None:
    """What a wrong DATABASE_URL comes to."""
    ended = run_process(start, GATEWAY_ENVIRONMENT="live")
    assert ended.returncode != 0
    assert "The database belongs to the test environment" in ended.stderr


@STARTS
def test_a_process_reads_the_table_of_bins_as_it_starts_and_not_in_a_payment(start: str, tmp_path: Path) -> None:
    """A table that became unreadable since the checks were made stops a process that is started again; read within a
    payment, it would cost each of them."""
    (tmp_path / "bins.tsv").write_text("bin\n42\n", encoding="utf-8")
    ended = run_process(start, GATEWAY_BIN_FILE=str(tmp_path / "bins.tsv"))
    assert ended.returncode != 0
    assert "line 2: bin must be 6 to 8 digits" in ended.stderr


@pytest.fixture
def older() -> Iterator[None]:
    """The history of a database that was made before the migrations became one initial one for each app."""
    rename = "UPDATE django_migrations SET name = %s WHERE app = 'reporting' AND name = %s"
    with connection.cursor() as cursor:
        cursor.execute(rename, ["0001_settlement", "0001_initial"])
    yield
    with connection.cursor() as cursor:
        cursor.execute(rename, ["0001_initial", "0001_settlement"])


def test_a_database_of_an_unknown_history_is_refused_in_one_sentence(older: None) -> None:
    with pytest.raises(ImproperlyConfigured, match="the tables of reporting come from migrations that are not here"):
        environment.require_usable_database()
    with pytest.raises(CommandError, match="move var/ away and start again"):
        call_command("migrate", skip_checks=False, stdout=StringIO())
    with pytest.raises(CommandError, match="give DATABASE_URL an empty one"):
        call_command("tick", stdout=StringIO())


@pytest.mark.parametrize(
    "rename",
    [
        ("TABLE gateway_tracesequence RENAME TO {}", "earlier", "TABLE earlier RENAME TO {}", "gateway_tracesequence"),
        (
            "TABLE gateway_payment RENAME COLUMN returned_at TO {}",
            "earlier",
            "TABLE gateway_payment RENAME COLUMN earlier TO {}",
            "returned_at",
        ),
    ],
)
def test_a_database_of_earlier_sources_of_the_first_migration_is_refused(rename: tuple[str, str, str, str]) -> None:
    """Before the first release that migration is edited in place: it has run, and never runs again."""
    there, earlier, back, now = rename
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER {there.format(earlier)}")
    try:
        with pytest.raises(ImproperlyConfigured, match="the tables of gateway come from migrations that are not here"):
            environment.require_usable_database()
    finally:
        with connection.cursor() as cursor:
            cursor.execute(f"ALTER {back.format(now)}")
    environment.require_usable_database()


def test_a_database_of_a_newer_version_is_none_of_an_unknown_history() -> None:
    """The sources of the release before run on it: docs/running.md, Deploy and upgrade."""
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO django_migrations (app, name, applied) VALUES ('reporting', '0999_later', now())")
    try:
        assert environment.find_history_fault() is None
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DELETE FROM django_migrations WHERE name = '0999_later'")


def test_no_model_differs_from_its_migrations() -> None:
    call_command("makemigrations", check=True, dry_run=True, stdout=StringIO())

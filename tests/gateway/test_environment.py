"""Test and live are two databases, and neither starts on the other's. Source: A2.1; D21; docs/decisions/0045."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO

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


@pytest.mark.parametrize(
    "start",
    ["import config.wsgi", "from config import worker; worker.install_watchdog(None)"],
    ids=["a web server", "a worker"],
)
def test_a_process_of_live_does_not_come_up_on_a_database_of_test(start: str) -> None:
    """What a wrong DATABASE_URL comes to, in a process of its own."""
    variables = {
        **os.environ,
        "DATABASE_URL": address(),
        "DJANGO_SECRET_KEY": "x" * 50,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "GATEWAY_ENVIRONMENT": "live",
    }
    ended = subprocess.run(
        [sys.executable, "-c", f"import django; django.setup(); {start}"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode != 0
    assert "The database belongs to the test environment" in ended.stderr

"""Sessions of PostgreSQL are named after their process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.db import connection

from gateway.db.postgresql import base

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["/opt/.venv/bin/gunicorn", "config.wsgi"], "tollhouse web"),
        (["/opt/.venv/lib/python3.13/site-packages/gunicorn/__main__.py", "--workers", "2"], "tollhouse web"),
        (["/opt/.venv/bin/celery", "-A", "config.celery", "worker", "--pool", "threads"], "tollhouse worker"),
        (["/opt/site-packages/celery/__main__.py", "-A", "config.celery", "beat"], "tollhouse beat"),
        (["/opt/.venv/bin/celery", "-A", "config.celery", "worker", "--beat"], "tollhouse worker"),
        (["manage.py", "migrate", "--noinput"], "tollhouse migrate"),
        (["/opt/.venv/bin/tollhouse", "manage", "migrate"], "tollhouse migrate"),
        (["/opt/.venv/bin/tollhouse", "check"], "tollhouse check"),
        (["tollhouse manage"], "tollhouse"),
        (["manage.py"], "tollhouse"),
        (["/usr/bin/python3", "-m", "celery"], "tollhouse"),
        ([], "tollhouse"),
    ],
)
def test_a_process_is_named_by_its_command(command: list[str], name: str) -> None:
    assert base._name_command(command) == name


@pytest.mark.django_db
def test_a_session_has_the_name_of_its_process() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT application_name FROM pg_stat_activity WHERE pid = pg_backend_pid()")
        assert cursor.fetchone() == (base.name_process(),)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("more", "name"), [({}, "tollhouse shell"), ({"PGAPPNAME": "of the operator"}, "of the operator")]
)
def test_the_operators_name_wins(more: dict[str, str], name: str) -> None:
    told = connection.settings_dict
    address = f"postgresql://{told['USER']}:{told['PASSWORD']}@/{told['NAME']}?host={told['HOST']}&port={told['PORT']}"
    say = (
        "from django.db import connection; c = connection.cursor(); c.execute('SHOW application_name'); "
        "print(*c.fetchone())"
    )
    done = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", say],
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": address} | more,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == name, done.stderr

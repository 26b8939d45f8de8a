"""An old client moves here: the script that docs/migrating.md names, step by step, against a gateway that runs."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from django.conf import settings
from pytest_django.live_server_helper import LiveServer

from gateway.models import Payment
from tests.support.fixtures import Shop

SCRIPT = settings.BASE_DIR / "docs" / "examples" / "moving" / "move.sh"
pytestmark = [pytest.mark.processes, pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")]


def move(base: str, token: str, entity: str) -> subprocess.CompletedProcess[str]:
    where = {"PATH": os.environ["PATH"], "BASE": base, "TOKEN": token, "ENTITY_ID": entity}
    return subprocess.run(["sh", str(SCRIPT)], env=where, capture_output=True, text=True, check=False, timeout=120)


def test_an_old_client_moves_here_by_three_lines(live_server: LiveServer, committed: Shop) -> None:
    """Checked, changed, paid, captured, refunded, declined, found again, and its form stands."""
    assert committed.api.token is not None
    done = move(live_server.url, committed.api.token, committed.channel.entity_id)
    assert (done.returncode, done.stderr) == (0, "")
    steps = [line.removeprefix("ok ")[:22].strip() for line in done.stdout.splitlines()]
    assert steps == [
        "check", "reserve", "capture", "refund", "a declined card", "find by order number", "checkout", "form",
    ]  # fmt: skip
    made = Payment.objects.filter(merchant=committed.merchant).order_by("created_at")
    assert list(made.values_list("payment_type", flat=True)) == ["PA", "CP", "RF", "DB"]


def test_with_a_wrong_token_the_script_says_where_it_stopped(live_server: LiveServer, committed: Shop) -> None:
    done = move(live_server.url, "tollhouse_wrong", committed.channel.entity_id)
    assert done.returncode == 1
    assert done.stderr.startswith("FAILED reserve: ")

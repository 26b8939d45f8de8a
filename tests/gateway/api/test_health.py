"""What /health/ready says, and to whom: strangers learn whether, the operator why. Source: docs/decisions/0062."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from pytest_django.fixtures import Settings

from gateway.api import health

pytestmark = pytest.mark.django_db

TOKEN = "figures"
STRANGERS: dict[str, dict[str, Any]] = {
    "another machine": {"REMOTE_ADDR": "203.0.113.9"},
    "by a proxy on this machine": {"headers": {"X-Forwarded-For": "203.0.113.9"}},
    "who says to be this machine": {"headers": {"X-Forwarded-For": "127.0.0.1"}},
    "with a wrong token": {"REMOTE_ADDR": "203.0.113.9", "headers": {"Authorization": "Bearer other"}},
}


@pytest.fixture(params=["", TOKEN], ids=["no token", "token"])
def token(request: pytest.FixtureRequest, settings: Settings) -> str:
    settings.GATEWAY_METRICS_TOKEN = request.param
    return str(request.param)


@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize("sent", STRANGERS.values(), ids=STRANGERS)
def test_a_stranger_learns_whether_and_not_why(
    sent: dict[str, Any], ready: bool, token: str, settings: Settings, tmp_path: Path
) -> None:
    if not ready:
        settings.IS_LIVE, settings.GATEWAY_VAULT_KEYSET_FILE = True, str(tmp_path / "none.json")
    answer = Client().get("/health/ready", **sent)
    assert (answer.status_code, answer.json()) == (
        (200, {"status": "ok"}) if ready else (503, {"status": "unavailable"})
    )


@pytest.mark.parametrize("check", ["_check_database_once", "require_right_clock"])
def test_a_database_that_does_not_answer_is_said_and_is_no_500(
    monkeypatch: pytest.MonkeyPatch, token: str, check: str
) -> None:
    def fail(*_: object) -> str:
        raise OperationalError("gone")

    if check == "_check_database_once":
        monkeypatch.setattr(health.connection, "cursor", fail)
        assert health._check_database_once() == health.DATABASE_UNREACHABLE
        return
    monkeypatch.setattr(health, check, fail)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    answer = Client().get("/health/ready", headers=headers)
    assert (answer.status_code, answer.json()["checks"]["clock"]) == (503, health.DATABASE_UNREACHABLE)


def test_who_may_read_the_figures_learns_why(token: str) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    found = Client().get("/health/ready", headers=headers).json()
    assert found == {
        "status": "ok",
        "environment": "test",
        "checks": {"database": "ok", "vault": "ok", "clock": "ok"},
    }

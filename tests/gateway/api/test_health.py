"""What /health/ready says, and to whom: strangers learn whether, the operator why. Source: docs/decisions/0062."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from pytest_django.fixtures import Settings

from gateway.api import health
from gateway.db.database_clock import WrongClockError
from gateway.vault.sealing import VaultError

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


# --- part by part ---------------------------------------------------------------------------------------------------


def test_a_process_lives_whatever_is_wrong_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "check_parts", lambda: {"database": "no answer"})
    answer = Client().get("/health/live")
    assert (answer.status_code, answer.json(), answer["Cache-Control"]) == (200, {"status": "ok"}, "no-store")


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (["ok"], "ok"),
        (["not migrated"], "not migrated"),
        # An old connection may be to a server that is stopped, or a standby now.
        (["no answer", "ok"], "ok"),
        (["takes no writes", "ok"], "ok"),
        (["no answer", "takes no writes"], "takes no writes"),
        (["takes no writes", "not migrated"], "not migrated"),
    ],
)
def test_a_database_that_was_away_is_asked_once_more(
    monkeypatch: pytest.MonkeyPatch, answers: list[str], said: str
) -> None:
    asked = iter(answers)
    monkeypatch.setattr(health, "_check_database_once", lambda: next(asked))
    assert health._check_database() == said
    assert list(asked) == []


@pytest.mark.parametrize(
    ("database", "vault", "clock", "parts"),
    [
        ("ok", "ok", "ok", {"database", "vault", "clock"}),
        ("ok", "ok", "two minutes slow", {"database", "vault", "clock"}),
        ("ok", "does not open", "ok", {"database", "vault", "clock"}),
        # The clock is compared with the database's.
        ("no answer", "ok", "ok", {"database", "vault"}),
        ("zz", "ok", "ok", {"database", "vault"}),
    ],
)
def test_one_part_that_is_not_in_order_makes_the_process_not_ready(
    monkeypatch: pytest.MonkeyPatch, database: str, vault: str, clock: str, parts: set[str]
) -> None:
    said = {"database": database, "vault": vault, "clock": clock}
    for part, words in said.items():
        monkeypatch.setattr(health, f"_check_{part}", lambda words=words: words)
    answer = Client().get("/health/ready")
    found = answer.json()
    assert found["checks"] == {part: said[part] for part in parts}
    fine = set(found["checks"].values()) == {"ok"}
    assert (answer.status_code, found["status"]) == ((200, "ok") if fine else (503, "unavailable"))
    assert answer["Cache-Control"] == "no-store"


def raises(fault: Exception) -> Any:
    def fail(*_: object) -> None:
        raise fault

    return fail


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (None, "ok"),
        (WrongClockError("two minutes slow"), "two minutes slow"),
        (OperationalError("gone"), "no answer"),
    ],
)
def test_the_clock_is_right_or_says_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, fault: Exception | None, said: str
) -> None:
    monkeypatch.setattr(health, "require_right_clock", raises(fault) if fault else lambda: None)
    closed: list[str] = []
    monkeypatch.setattr(health.connection, "close", lambda: closed.append("closed"))
    assert health._check_clock() == said
    assert closed == (["closed"] if said == "no answer" else [])


@pytest.mark.parametrize(("fault", "said"), [(None, "ok"), (VaultError("x"), "does not open")])
def test_the_vault_opens_or_does_not(monkeypatch: pytest.MonkeyPatch, fault: Exception | None, said: str) -> None:
    monkeypatch.setattr(health, "current_vault", raises(fault) if fault else lambda: None)
    assert health._check_vault() == said


def test_what_is_not_migrated_is_said_by_a_new_process_until_it_is() -> None:
    """And it is not looked for again."""
    plans: list[list[str]] = [["0001"], []]

    class Executor:
        loader = SimpleNamespace(graph=SimpleNamespace(leaf_nodes=list))

        def __init__(self, _: object) -> None: ...

        def migration_plan(self, _: object) -> list[str]:
            return plans.pop(0)

    spec = importlib.util.find_spec(health.__name__)
    assert spec is not None
    assert spec.loader is not None
    fresh = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    vars(fresh)["MigrationExecutor"] = Executor
    assert [fresh._check_database_once() for _ in range(3)] == ["not migrated", "ok", "ok"]
    assert plans == []


@pytest.mark.parametrize(("answer", "said"), [("off", "ok"), ("on", "takes no writes")])
def test_a_server_that_takes_no_writes_is_left(monkeypatch: pytest.MonkeyPatch, answer: str, said: str) -> None:
    closed: list[str] = []
    asked: list[str] = []

    class Cursor:
        def __enter__(self) -> Cursor:
            return self

        def __exit__(self, *_: object) -> None: ...

        def execute(self, sql: str) -> None:
            asked.append(sql)

        def fetchone(self) -> tuple[str]:
            return (answer,)

    monkeypatch.setattr(health, "_migrated", True)
    monkeypatch.setattr(health.connection, "cursor", Cursor)
    monkeypatch.setattr(health.connection, "ensure_connection", lambda: asked.append("connected"))
    monkeypatch.setattr(health.connection, "close", lambda: closed.append("closed"))
    assert health._check_database_once() == said
    assert closed == ([] if said == "ok" else ["closed"])
    assert asked == ["connected", "SELECT current_setting('transaction_read_only')"]

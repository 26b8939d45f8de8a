"""Health: is the process alive, and can it take payments. Public, no secrets, no envelope (D13)."""

from __future__ import annotations

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse

from gateway.vault.sealing import VaultError, current_vault

_migrated = False
DATABASE_UNREACHABLE = "no answer"


def check_liveness(request: HttpRequest) -> JsonResponse:
    """200 while the process answers at all."""
    return _answer({"status": "ok"}, 200)


def check_readiness(request: HttpRequest) -> JsonResponse:
    """200 when the database answers, is migrated, and the vault opens; else 503 with what is missing."""
    checks = {"database": _database(), "vault": _vault()}
    fine = all(state == "ok" for state in checks.values())
    body = {"status": "ok" if fine else "unavailable", "environment": settings.GATEWAY_ENVIRONMENT, "checks": checks}
    return _answer(body, 200 if fine else 503)


def _answer(body: dict[str, object], status: int) -> JsonResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})


def _database() -> str:
    """Asked twice at most: the connection this thread keeps may be one to a server that is gone."""
    return "ok" if (first := _asked()) == "ok" else _asked() if first == DATABASE_UNREACHABLE else first


def _asked() -> str:
    global _migrated
    try:
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if not _migrated:
            executor = MigrationExecutor(connection)
            if executor.migration_plan(executor.loader.graph.leaf_nodes()):
                return "not migrated"
            _migrated = True
    except DatabaseError:
        connection.close()
        return DATABASE_UNREACHABLE
    return "ok"


def _vault() -> str:
    try:
        current_vault()
    except VaultError:
        return "does not open"
    return "ok"

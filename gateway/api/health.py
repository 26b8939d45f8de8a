"""Health checks: liveness and readiness of the process. Public, without secrets and envelope (ruling D13).

Which check failed is shown to those who may read the metrics. Source: docs/decisions/0062."""

from __future__ import annotations

from collections.abc import Mapping

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse

from gateway.api.metrics_view import may_read_figures
from gateway.db.availability import close_broken_connection
from gateway.db.database_clock import WrongClockError, require_right_clock
from gateway.vault.sealing import VaultError, current_vault

_migrated = False
DATABASE_UNREACHABLE = "no answer"
DATABASE_READ_ONLY = "takes no writes"


def check_liveness(_request: HttpRequest) -> JsonResponse:
    """200 as long as the process answers."""
    return _answer({"status": "ok"}, 200)


def check_readiness(request: HttpRequest) -> JsonResponse:
    """200 when the database takes writes and is migrated, the vault opens and this machine's clock is the database's;
    else 503. The checks and the environment for those who may read the figures; for others the status alone."""
    checks = check_parts()
    fine = all(state == "ok" for state in checks.values())
    body: dict[str, object] = {"status": "ok" if fine else "unavailable"}
    if may_read_figures(request):
        body |= {"environment": settings.GATEWAY_ENVIRONMENT, "checks": checks}
    return _answer(body, 200 if fine else 503)


def check_parts() -> dict[str, str]:
    """Part of this process → "ok", or what is wrong with it."""
    database = _check_database()
    checks = {"database": database, "vault": _check_vault()}
    return {**checks, "clock": _check_clock()} if database == "ok" else checks


def _answer(body: Mapping[str, object], status: int) -> JsonResponse:
    return JsonResponse(body, status=status, headers={"Cache-Control": "no-store"})


def _check_database() -> str:
    """Check the database, once more if it was away: an old connection may be to a server that is stopped, or is a
    standby now."""
    first = _check_database_once()
    return _check_database_once() if first in (DATABASE_UNREACHABLE, DATABASE_READ_ONLY) else first


def _check_database_once() -> str:
    global _migrated
    try:
        connection.ensure_connection()
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('transaction_read_only')")
            if cursor.fetchone() != ("off",):
                close_broken_connection()
                return DATABASE_READ_ONLY
        if not _migrated:
            executor = MigrationExecutor(connection)
            if executor.migration_plan(executor.loader.graph.leaf_nodes()):
                return "not migrated"
            _migrated = True
    except DatabaseError:
        connection.close()
        return DATABASE_UNREACHABLE
    return "ok"


def _check_clock() -> str:
    try:
        require_right_clock()
    except WrongClockError as fault:
        return str(fault)
    except DatabaseError:
        connection.close()
        return DATABASE_UNREACHABLE
    return "ok"


def _check_vault() -> str:
    try:
        current_vault()
    except VaultError:
        return "does not open"
    return "ok"

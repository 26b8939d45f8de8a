"""Start-up checks of the database: it is of this environment, and of a history of migrations that this version knows.

A database belongs to one environment for good, and the other refuses to start on it.

Tokens, ids and cards of one environment mean nothing to the other because they lie in different databases. One wrong
DATABASE_URL would put them into the same: test cards paid in live, or a moved clock under real money. So the database
stores the environment that it was first migrated in, and web servers, workers and ``manage.py tick`` check it before
they do anything. Source: Part A, What the service does, 2; ruling D21; docs/decisions/0045.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg
import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

ENVIRONMENT_CONNECT_TIMEOUT_S: Final = 5
"""Connection timeout of the checks, seconds; a database that cannot be reached is left to the first payment."""
# An app that was migrated, and not by this version's first migration: it has another name, or an earlier state of it
# ran, which made no such column (before the first release the first migrations are edited in place). Migrations after
# the last that this version knows are no fault: the sources of the release before run on the newer database.
_FOREIGN_APPS: Final = """
SELECT array_agg(DISTINCT app::text ORDER BY app::text) FROM (
    SELECT app FROM django_migrations
    WHERE app IN ('gateway', 'scheduling', 'checkout', 'reporting', 'chargebacks')
      AND app NOT IN (SELECT app FROM django_migrations WHERE name = '0001_initial')
    UNION
    SELECT m.app FROM django_migrations m JOIN (VALUES
        ('gateway', 'gateway_payment', 'returned_at'),
        ('gateway', 'gateway_tracesequence', 'last')
    ) AS made (app, relation, attribute) ON made.app = m.app AND m.name = '0001_initial'
    WHERE NOT EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = to_regclass(made.relation) AND attname = made.attribute
    )
) AS foreign_apps
"""

log = structlog.get_logger(__name__)


def read_database_environment() -> str | None:
    """The environment that the database belongs to; None when it cannot be reached or is not migrated yet."""
    found = _read_value("SELECT gateway_environment()")
    return str(found) if found is not None else None


def require_own_environment() -> None:
    """Raises ImproperlyConfigured if the database belongs to the other environment."""
    environment = read_database_environment()
    if environment is None or environment == settings.GATEWAY_ENVIRONMENT:
        return
    raise ImproperlyConfigured(
        f"The database belongs to the {environment} environment, and GATEWAY_ENVIRONMENT is"
        f" {settings.GATEWAY_ENVIRONMENT}. Two environments are two databases: give DATABASE_URL the other one's."
    )


def find_history_fault() -> str | None:
    """Why this version cannot use the database's tables: they were made by migrations that it does not have."""
    apps = _read_value(_FOREIGN_APPS)
    if not apps:
        return None
    return (
        "The database was made by a version of Tollhouse before the first release: the tables of"
        f" {', '.join(apps)} come from migrations that are not here any more, and there is no way from them to this"
        " version. With `make run`, move var/ away and start again; with a database of your own, give DATABASE_URL an"
        " empty one. What you want to keep of the old one, save with pg_dump first."
    )


def require_usable_database() -> None:
    """Raises ImproperlyConfigured if the database is of the other environment or of an unknown history."""
    require_own_environment()
    if fault := find_history_fault():
        raise ImproperlyConfigured(fault)


def _read_value(query: str) -> Any:
    """The value of a query of one value; None if the database cannot be reached or has not what is asked for.

    Uses a connection of its own: the caller may be about to fork.
    """
    parameters: dict[str, Any] = {
        "connect_timeout": ENVIRONMENT_CONNECT_TIMEOUT_S,
        **connection.get_connection_params(),
    }
    try:
        with psycopg.connect(**parameters) as line:
            row = line.execute(query).fetchone()
    except (psycopg.errors.UndefinedFunction, psycopg.errors.UndefinedTable):
        return None
    except psycopg.Error as fault:
        log.warning("database_not_checked", why=type(fault).__name__)
        return None
    return row[0] if row is not None else None

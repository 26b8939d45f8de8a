"""Keeps test and live apart: a database belongs to one environment for good, and the other refuses to start on it.

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
"""Connection timeout of the check, seconds; a database that cannot be reached is left to the first payment."""

log = structlog.get_logger(__name__)


def read_database_environment() -> str | None:
    """The environment that the database belongs to; None when it cannot be reached or is not migrated yet.

    Uses a connection of its own: the caller may be about to fork.
    """
    parameters: dict[str, Any] = {
        "connect_timeout": ENVIRONMENT_CONNECT_TIMEOUT_S,
        **connection.get_connection_params(),
    }
    try:
        with psycopg.connect(**parameters) as line:
            row = line.execute("SELECT gateway_environment()").fetchone()
    except psycopg.errors.UndefinedFunction:
        return None
    except psycopg.Error as fault:
        log.warning("environment_not_asked", why=type(fault).__name__)
        return None
    return str(row[0]) if row is not None else None


def require_own_environment() -> None:
    """Raises ImproperlyConfigured if the database belongs to the other environment."""
    environment = read_database_environment()
    if environment is None or environment == settings.GATEWAY_ENVIRONMENT:
        return
    raise ImproperlyConfigured(
        f"The database belongs to the {environment} environment, and GATEWAY_ENVIRONMENT is"
        f" {settings.GATEWAY_ENVIRONMENT}. Two environments are two databases: give DATABASE_URL the other one's."
    )

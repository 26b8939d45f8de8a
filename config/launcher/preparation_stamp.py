"""Records which sources and database were last prepared, to skip migrations when both are unchanged."""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path

from config.launcher.build_number import hash_sources
from config.launcher.var_folder import PROJECT_ROOT, write_private

APPLIED_MIGRATIONS_SQL = (
    "SELECT coalesce(string_agg(app || '.' || name, ' ' ORDER BY app, name), '') FROM django_migrations"
)


def mark_prepared(var: Path, database_url: str) -> None:
    """Record what was prepared, and for which sources."""
    import psycopg

    with contextlib.suppress(psycopg.Error):  # it only saves time
        write_private(var / "prepared", _fingerprint(database_url))


def is_prepared(var: Path, database_url: str) -> bool:
    """True if sources, database and its applied migrations are those of the last start."""
    import psycopg

    try:
        return (var / "prepared").read_text(encoding="utf-8") == _fingerprint(database_url)
    except (OSError, psycopg.Error):
        return False


def _fingerprint(database_url: str) -> str:
    import psycopg

    with psycopg.connect(database_url) as connection:
        applied = connection.execute(APPLIED_MIGRATIONS_SQL).fetchone()
    text = "\n".join((database_url, str(applied), hash_sources(PROJECT_ROOT)[0]))
    return hashlib.sha256(text.encode()).hexdigest()

"""A pytest plugin for the trial of one mutant: its database was copied from a template, so nothing is migrated."""

from __future__ import annotations

import os
from typing import Any

from django.db.backends.base.creation import BaseDatabaseCreation

DATABASE = "TOLLHOUSE_MUTANT_DATABASE"
"""Names the copy; without it the database is made as always."""


def _take_copy(self: BaseDatabaseCreation, *_: Any, **__: Any) -> str:
    name = os.environ[DATABASE]
    self.connection.close()
    self.connection.settings_dict["NAME"] = name
    self.connection.ensure_connection()
    return name


def pytest_configure() -> None:
    if DATABASE in os.environ:
        BaseDatabaseCreation.create_test_db = _take_copy  # type: ignore[method-assign, assignment]
        BaseDatabaseCreation.destroy_test_db = lambda *_, **__: None  # type: ignore[method-assign]

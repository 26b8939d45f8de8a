"""A bank's file is not given up because the database was away while it was read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.db import InternalError, OperationalError
from psycopg.errors import ReadOnlySqlTransaction

from gateway.connectors.sepa import bank_message_intake


def standby_fault() -> InternalError:
    fault = InternalError("cannot execute INSERT in a read-only transaction")
    fault.__cause__ = ReadOnlySqlTransaction()
    return fault


@pytest.mark.parametrize("fault", [standby_fault(), OperationalError("server closed the connection")])
def test_it_stays_for_the_next_scan(fault: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any) -> None:
        raise fault

    monkeypatch.setattr(bank_message_intake, "import_bank_message", away)
    file = tmp_path / "statement.xml"
    file.write_text("<Document/>")
    with pytest.raises(type(fault)):
        bank_message_intake._import_watched_file(file)
    assert file.exists()
    assert not (tmp_path / "failed").exists()

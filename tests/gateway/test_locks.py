"""Every lock on rows stands in a table here. A lock that is missing shows in no test that has one connection, and
seldom in one that has several: so whoever adds or takes away one says so here, and shows by a test what it is for.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = ("gateway", "reporting", "chargebacks", "checkout", "config")

CLAIMS = {
    "checkout/calls.py": 1, "checkout/due.py": 1, "chargebacks/reminders.py": 1,
    "gateway/connectors/iso8583/batches.py": 1, "gateway/connectors/iso8583/sending.py": 1,
    "gateway/connectors/sepa/delivery.py": 1, "gateway/connectors/sepa/files.py": 1,
    "gateway/notifications/claims.py": 1, "gateway/notifications/fan_out.py": 1, "gateway/payments/mandates.py": 1,
    "gateway/payments/recovery.py": 1, "gateway/payments/resume.py": 1, "gateway/payments/retention.py": 1,
    "gateway/processor_events/work.py": 1, "gateway/scheduling/tasks.py": 2, "gateway/work.py": 1,
    "reporting/deliveries.py": 1, "reporting/fetching.py": 1, "reporting/owed.py": 1,
}  # fmt: skip
"""What is due is taken by whoever comes first: with SKIP LOCKED, so that no worker waits behind another."""

HELD = {
    "chargebacks/admin/by_hand.py": 1, "chargebacks/evidence.py": 2, "gateway/admin/acquirers.py": 1,
    "gateway/admin/stale.py": 1, "gateway/configuration/apply.py": 1, "gateway/configuration/risk.py": 2,
    "gateway/connectors/iso8583/books.py": 2, "gateway/connectors/iso8583/closing.py": 1,
    "gateway/connectors/sepa/books.py": 2, "gateway/connectors/sepa/files.py": 1, "gateway/desk/approvals.py": 1,
    "gateway/desk/independence.py": 1, "gateway/payments/token_limits.py": 1,
    "gateway/management/commands/wallet_key.py": 1, "gateway/notifications/endpoints.py": 6,
    "gateway/payments/collections.py": 1, "gateway/payments/job_runs.py": 4, "gateway/payments/process.py": 2,
    "gateway/threeds/server.py": 1,
}  # fmt: skip
"""A row is read and held until the transaction ends, because what is written rests on what was read."""

ADVISORY = {
    "checkout/page_snapshots.py": ["xact"], "config/beat.py": ["xact"], "gateway/admin/tries.py": ["try", "unlock"],
    "gateway/clock_moves.py": ["try", "unlock"], "gateway/due.py": ["try", "unlock"],
    "gateway/connectors/iso8583/batches.py": ["xact"], "gateway/vault_rows.py": ["try", "unlock"],
    "reporting/exceptions.py": ["xact"],
}  # fmt: skip
"""Locks on what has no row."""

_CALL = re.compile(r"select_for_update\(([^()]*(?:\([^()]*\))?[^()]*)\)")
_SQL = re.compile(r"\bFOR (?:NO KEY )?UPDATE\b(?: OF \w+)?( SKIP LOCKED)?")
_ADVISORY = re.compile(r"pg_(try_)?advisory_(xact_|un)?lock")


def sources() -> dict[str, str]:
    files = [path for name in PROJECT for path in sorted((ROOT / name).rglob("*.py")) if "migrations" not in path.parts]
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in files}


def counted(skips: bool) -> dict[str, int]:
    found = {}
    for name, text in sources().items():
        calls = sum(("skip_locked=True" in call) is skips for call in _CALL.findall(text))
        statements = sum(bool(skipped) is skips for skipped in _SQL.findall(text))
        if calls + statements:
            found[name] = calls + statements
    return found


@pytest.mark.parametrize(("skips", "table"), [(True, CLAIMS), (False, HELD)], ids=["claims", "held"])
def test_every_lock_on_a_row_is_in_the_table(skips: bool, table: dict[str, int]) -> None:
    assert counted(skips) == table


def test_every_lock_on_what_has_no_row_is_in_the_table() -> None:
    found = {}
    for name, text in sources().items():
        if kinds := [(before or after or "").rstrip("_") for before, after in _ADVISORY.findall(text)]:
            found[name] = sorted("unlock" if kind == "un" else kind for kind in kinds)
    assert found == ADVISORY

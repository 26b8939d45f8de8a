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
    "checkout/result_calls.py": 1,
    "checkout/expiry.py": 2,
    "checkout/receipts.py": 1,
    "chargebacks/alert_reminders.py": 1,
    "chargebacks/reminders.py": 1,
    "gateway/connectors/iso8583/batch_planning.py": 1,
    "gateway/connectors/iso8583/batch_run.py": 1,
    "gateway/connectors/sepa/file_delivery.py": 1,
    "gateway/connectors/sepa/file_planning.py": 1,
    "gateway/notifications/claims.py": 1,
    "gateway/notifications/fan_out.py": 1,
    "gateway/notifications/retention.py": 1,
    "gateway/payments/account_update_batch.py": 1,
    "gateway/payments/authorization_releases.py": 1,
    "gateway/payments/mandate_mails.py": 1,
    "gateway/payments/recovery.py": 1,
    "gateway/payments/shopper_return.py": 1,
    "gateway/payments/registration_retention.py": 1,
    "gateway/personal_data/payment_archiving.py": 2,
    "gateway/risk/risk_store.py": 1,
    "gateway/processor_events/event_processing.py": 1,
    "gateway/scheduling/job_timer.py": 2,
    "gateway/background/queue.py": 1,
    "reporting/reconciliation/deliveries.py": 1,
    "reporting/settlement/sftp_fetch.py": 1,
    "reporting/settlement/unsettled_reminders.py": 1,
}
"""What is due is taken by whoever comes first: with SKIP LOCKED, so that no worker waits behind another."""

HELD = {
    "gateway/background/queue.py": 1,
    "checkout/receipts.py": 1,
    "chargebacks/admin/manual_entry.py": 1,
    "chargebacks/evidence.py": 2,
    "chargebacks/ledger.py": 1,
    "gateway/backoffice/acquirers/account_pages.py": 1,
    "gateway/backoffice/kit/edit_conflict.py": 1,
    "gateway/configuration/apply.py": 1,
    "gateway/configuration/risk.py": 2,
    "gateway/db/statement.py": 2,
    "gateway/connectors/iso8583/capture_records.py": 2,
    "gateway/connectors/iso8583/batch_close.py": 1,
    "gateway/connectors/sepa/mandates.py": 3,
    "gateway/connectors/sepa/order_records.py": 4,
    "gateway/connectors/sepa/file_planning.py": 1,
    "gateway/backoffice/follow_ups/approvals.py": 2,
    "gateway/backoffice/follow_ups/bulk_follow_ups.py": 1,
    "gateway/backoffice/follow_ups/payout_decisions.py": 1,
    "gateway/backoffice/kit/saved_views.py": 1,
    "gateway/backoffice/access/independence.py": 1,
    "gateway/payments/exemption_counts.py": 1,
    "gateway/payments/token_limits.py": 1,
    "gateway/personal_data/payment_archiving.py": 1,
    "gateway/management/commands/wallet_key.py": 1,
    "gateway/notifications/endpoints.py": 7,
    "gateway/payments/bank_order_outcomes.py": 1,
    "gateway/scheduling/job_runs.py": 7,
    "gateway/payments/late_outcomes.py": 2,
    "gateway/payments/store.py": 1,
    "gateway/threeds/server.py": 1,
}
"""A row is read and held until the transaction ends, because what is written rests on what was read."""

ADVISORY = {
    "checkout/page_snapshots.py": ["xact"],
    "gateway/connectors/sepa/order_records.py": ["xact"],
    "config/beat.py": ["xact"],
    "gateway/backoffice/access/audit_seals.py": ["xact"],
    "gateway/backoffice/sign_in/lockout.py": ["try", "unlock"],
    "gateway/timers/time_travel.py": ["try", "unlock"],
    "gateway/timers/registry.py": ["try", "unlock"],
    "gateway/connectors/iso8583/batch_planning.py": ["xact"],
    "gateway/vault/rewrap.py": ["try", "unlock"],
    "reporting/month_end/closed_months.py": ["", "unlock", "xact", "xact"],
    "reporting/settlement/chargeback_booking.py": ["", "unlock", "xact"],
    "reporting/settlement/exception_queue.py": ["xact"],
}
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

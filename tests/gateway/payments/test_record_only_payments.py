"""Payments that record a change: their rows, and the code of success of each environment. No database."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.test import override_settings

from gateway.models import Payment, PaymentEvent, Status
from gateway.payments.record_only_payments import build_record_rows, list_inserted_columns, resolve_success_code

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def test_a_record_is_approved_as_it_begins_with_both_its_events() -> None:
    payment = Payment(id=UUID(int=1), payment_type="RG", result_code="000.100.110", created_at=NOW, number=9)
    [(model, columns), *events] = build_record_rows(payment)
    assert model is Payment
    assert (columns["status"], columns["sequence"], columns["id"]) == (Status.APPROVED, 2, UUID(int=1))
    assert columns == list_inserted_columns(payment)
    assert "number" not in columns
    assert set(columns) == {field.attname for field in Payment._meta.concrete_fields} - {"number"}
    assert [model for model, _ in events] == [PaymentEvent] * 2
    first, last = (row for _, row in events)
    assert first == {
        "payment_id": UUID(int=1), "sequence": 1, "event": "begin", "status": "STARTED", "result_code": "", "at": NOW,
    }  # fmt: skip
    assert last == {
        "payment_id": UUID(int=1), "sequence": 2, "event": "approve", "status": "APPROVED",
        "result_code": "000.100.110", "at": NOW,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("is_live", "mode", "code"),
    [
        (False, "INTERNAL", "000.100.110"),
        (False, "EXTERNAL", "000.100.112"),
        (False, "", "000.100.110"),
        (True, "", "000.000.000"),
        (True, "EXTERNAL", "000.000.000"),
    ],
)
def test_success_has_the_code_of_its_environment_and_test_mode(is_live: bool, mode: str, code: str) -> None:
    """Ruling D18."""
    with override_settings(IS_LIVE=is_live):
        assert resolve_success_code(mode) == code

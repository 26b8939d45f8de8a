"""Record-only payments (RR, TE, DR, SD, RS, DS): document a change, call no acquirer, are approved as they begin."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, Final

from django.conf import settings
from django.db import models

from gateway.core.result_codes import EXTERNAL_TEST_MODE, INTERNAL_TEST_MODE, SUCCESS_CODES
from gateway.models import Payment, PaymentEvent, Status
from gateway.payments.states import NOT_CREATED, LifecycleEvent, resolve_next_status

INSERTED_COLUMNS: Final = tuple(field.attname for field in Payment._meta.concrete_fields if field.attname != "number")
"""The columns of a payment's INSERT: all but ``number``, which the database assigns."""
_read_columns: Final = attrgetter(*INSERTED_COLUMNS)
_APPROVED_SEQUENCE: Final = 2

InsertRow = tuple[type[models.Model], Mapping[str, Any]]


def list_inserted_columns(payment: Payment) -> dict[str, Any]:
    """The columns of ``payment`` for its INSERT, by attribute name."""
    return dict(zip(INSERTED_COLUMNS, _read_columns(payment), strict=True))


def build_record_rows(payment: Payment) -> list[InsertRow]:
    """Set ``payment`` to APPROVED and return its rows to insert: the payment and its two events."""
    payment.status = resolve_next_status(resolve_next_status(NOT_CREATED, LifecycleEvent.BEGIN), LifecycleEvent.APPROVE)
    payment.sequence = _APPROVED_SEQUENCE
    rows: list[InsertRow] = [(Payment, list_inserted_columns(payment))]
    for sequence, event, status, code in (
        (1, LifecycleEvent.BEGIN, Status.STARTED, ""),
        (_APPROVED_SEQUENCE, LifecycleEvent.APPROVE, payment.status, payment.result_code),
    ):
        rows.append(
            (
                PaymentEvent,
                {
                    "payment_id": payment.id,
                    "sequence": sequence,
                    "event": event,
                    "status": status,
                    "result_code": code,
                    "at": payment.created_at,
                },
            )
        )
    return rows


def resolve_success_code(test_mode: str) -> str:
    """The success code of an operation without an acquirer, by environment and test mode (ruling D18)."""
    return SUCCESS_CODES[
        "" if settings.IS_LIVE else EXTERNAL_TEST_MODE if test_mode == EXTERNAL_TEST_MODE else INTERNAL_TEST_MODE
    ]

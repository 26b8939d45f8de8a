"""Payments that record something and ask nobody (TE, DR, RR, SD, RS, DS): approved as they begin, with their events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.db import models

from gateway.core.result_codes import EXTERNAL_TEST_MODE, INTERNAL_TEST_MODE, SUCCESS_CODES
from gateway.models import Payment, PaymentEvent, Status
from gateway.payments.states import NOT_CREATED, LifecycleEvent, resolve_next_status

INSERTED_COLUMNS: Final = tuple(field.attname for field in Payment._meta.concrete_fields if field.attname != "number")
"""Columns of a payment that are inserted; the database numbers it."""
_APPROVED_SEQUENCE: Final = 2

InsertRow = tuple[type[models.Model], Mapping[str, Any]]


def build_record_rows(payment: Payment) -> list[InsertRow]:
    """The rows of ``payment``, which becomes APPROVED: itself and its events."""
    payment.status = resolve_next_status(resolve_next_status(NOT_CREATED, LifecycleEvent.BEGIN), LifecycleEvent.APPROVE)
    payment.sequence = _APPROVED_SEQUENCE
    rows: list[InsertRow] = [(Payment, {name: getattr(payment, name) for name in INSERTED_COLUMNS})]
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
    """The code of what succeeded without anybody being asked (D18)."""
    return SUCCESS_CODES[
        "" if settings.IS_LIVE else EXTERNAL_TEST_MODE if test_mode == EXTERNAL_TEST_MODE else INTERNAL_TEST_MODE
    ]

"""Payments that record something and ask nobody (TE, DR, RR, SD, RS, DS): approved as they begin, with their events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.db import models

from gateway.models import Payment, PaymentEvent, Status
from gateway.payments.states import START, Event, after
from gateway.results import EXTERNAL, INTERNAL, SUCCESS

WRITTEN: Final = tuple(field.attname for field in Payment._meta.concrete_fields if field.attname != "number")
"""Columns of a payment that are inserted; the database numbers it."""
_LAST: Final = 2

Row = tuple[type[models.Model], Mapping[str, Any]]


def rows_of(payment: Payment) -> list[Row]:
    """The rows of ``payment``, which becomes APPROVED: itself and its events."""
    payment.status = after(after(START, Event.BEGIN), Event.APPROVE)
    payment.sequence = _LAST
    rows: list[Row] = [(Payment, {name: getattr(payment, name) for name in WRITTEN})]
    for sequence, event, status, code in (
        (1, Event.BEGIN, Status.STARTED, ""),
        (_LAST, Event.APPROVE, payment.status, payment.result_code),
    ):
        rows.append(
            (
                PaymentEvent,
                {
                    "payment_id": payment.id, "sequence": sequence, "event": event, "status": status,
                    "result_code": code, "at": payment.created_at,
                },
            )
        )  # fmt: skip
    return rows


def success_code(test_mode: str) -> str:
    """The code of what succeeded without anybody being asked (D18)."""
    return SUCCESS["" if settings.IS_LIVE else EXTERNAL if test_mode == EXTERNAL else INTERNAL]

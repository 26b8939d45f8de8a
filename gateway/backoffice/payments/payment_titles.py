"""Names of payments by their type: "Preauthorization", "Incremental authorization", "Refund"."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from django.utils.translation import gettext as _

from gateway.models import Payment
from gateway.payments.operation_table import INDUSTRY_PRACTICE_OPERATIONS, OPERATIONS

PAYMENT_TYPE_TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "RG": "Registration", "RR": "Registration updated", "TE": "Registration extended", "DR": "Registration deleted",
        "RI": "Risk check", "3D": "Authentication", "SD": "Schedule", "RS": "Reschedule", "DS": "Deschedule",
    }
)  # fmt: skip
"""Names of types that are no operation on money."""


def format_payment_title(payment: Payment) -> str:
    """The name of a payment's type: "Preauthorization", "Incremental authorization", "Refund"."""
    if payment.practice in INDUSTRY_PRACTICE_OPERATIONS:
        return _(INDUSTRY_PRACTICE_OPERATIONS[payment.practice].title)
    return _(name_payment_type(payment.payment_type))


def name_payment_type(code: str) -> str:
    """The English name of a payment type; one that has none, as it is."""
    operation = OPERATIONS.get(code)
    return operation.title if operation is not None else PAYMENT_TYPE_TITLES.get(code, code)

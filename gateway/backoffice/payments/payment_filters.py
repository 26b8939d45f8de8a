"""Filters of the list of payments, parsed from a form or a query string."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db.models import Q

from gateway.core import identifiers, money
from gateway.core.brands import PAYMENT_BRANDS
from gateway.core.result_codes import FAMILY_PATTERNS, RESULT_CODES, ResultFamily
from gateway.models import Status


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentFilters:
    """Filters of a list; empty means all. ``since`` and ``until`` are times of the merchants' clocks; ``until`` is
    exclusive."""

    status: str = ""
    payment_type: str = ""
    brand: str = ""
    method: str = ""
    currency: str = ""
    test_mode: str = ""
    family: ResultFamily | None = None
    code: str = ""
    channel: UUID | None = None
    merchant: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    least: Decimal | None = None
    most: Decimal | None = None

    def where(self) -> Q:
        """The filters as a condition."""
        found = Q()
        plain = ("status", "payment_type", "brand", "method", "currency", "test_mode", "channel", "merchant")
        for name in plain:
            if value := getattr(self, name):
                found &= Q(**{name: value})
        if self.code:
            found &= Q(result_code=self.code)
        if self.family is not None:
            found &= build_family_condition(self.family)
        for lookup, value in (
            ("created_at__gte", self.since),
            ("created_at__lt", self.until),
            ("amount__gte", self.least),
            ("amount__lte", self.most),
        ):
            if value is not None:
                found &= Q(**{lookup: value})
        return found


def build_family_condition(family: ResultFamily) -> Q:
    """The condition on result codes of a family: its own prefixes without those an earlier family takes, then its
    group's codes."""
    found, before = Q(), Q()
    for name, pattern in FAMILY_PATTERNS:
        if name is family:
            found = Q(result_code__regex=pattern.pattern) & ~before if before else Q(result_code__regex=pattern.pattern)
            break
        before |= Q(result_code__regex=pattern.pattern)
    loose = [code for code in RESULT_CODES if not any(p.match(code) for _, p in FAMILY_PATTERNS)]
    return found | Q(result_code__in=[code for code in loose if RESULT_CODES[code].group == family.value])


# --- reading ------------------------------------------------------------------------------------------------------


FILTER_TIME_FORMAT: Final = "%Y-%m-%dT%H:%M"
"""Format of times in filters, UTC."""


class FilterValueError(ValueError):
    """An invalid filter value; the message says what is allowed."""


def _parse_choice(allowed: Callable[[], Any], what: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed():
            raise FilterValueError(f"{what} is not known here")
        return text

    return read


def _parse_moment(text: str) -> datetime:
    try:
        if "T" in text:
            return datetime.strptime(text, FILTER_TIME_FORMAT).replace(tzinfo=UTC)
        return datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        raise FilterValueError("give a date as yyyy-MM-dd, e.g. 2026-05-14, or with a time, 2026-05-14T10:00") from None


def _parse_end(text: str) -> datetime:
    """The exclusive end of a time: the next midnight for a date, the time itself otherwise."""
    try:
        return _parse_moment(text) if "T" in text else _parse_moment(text) + timedelta(days=1)
    except OverflowError:
        raise FilterValueError("give a date before the year 9999") from None


def _parse_filter_amount(text: str) -> Decimal:
    try:
        return money.parse_amount(text.replace(",", "."))
    except ValueError:
        raise FilterValueError("give an amount with none or two decimals, e.g. 92.00") from None


def _parse_filter_id(text: str) -> UUID:
    found = identifiers.parse_id(text.replace("-", ""))
    if found is None:
        raise FilterValueError("is no id of an entity")
    return found


def _parse_family(text: str) -> ResultFamily:
    try:
        return ResultFamily(text)
    except ValueError:
        raise FilterValueError("is no family of result codes") from None


def _parse_filter_currency(text: str) -> str:
    if not money.is_known_currency(text.upper()):
        raise FilterValueError("give a currency of ISO 4217, e.g. EUR")
    return text.upper()


FILTER_PAYMENT_TYPES: Final = (
    "PA", "DB", "CP", "RF", "RV", "RB", "RC", "CD", "CB", "CR", "RG", "RR", "TE", "DR", "RI", "3D", "SD", "RS", "DS",
)  # fmt: skip
FILTER_TEST_MODES: Final = ("INTERNAL", "EXTERNAL")
_READ: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "status": ("status", _parse_choice(lambda: Status.values, "this status")),
    "type": ("payment_type", _parse_choice(lambda: FILTER_PAYMENT_TYPES, "this type")),
    "brand": ("brand", _parse_choice(lambda: PAYMENT_BRANDS, "this brand")),
    "method": ("method", _parse_choice(lambda: {brand.method for brand in PAYMENT_BRANDS.values()}, "this method")),
    "currency": ("currency", _parse_filter_currency),
    "mode": ("test_mode", _parse_choice(lambda: FILTER_TEST_MODES, "this test mode")),
    "family": ("family", _parse_family),
    "code": ("code", _parse_choice(lambda: RESULT_CODES, "this result code")),
    "channel": ("channel", _parse_filter_id),
    "merchant": ("merchant", _parse_filter_id),
    "from": ("since", _parse_moment),
    "to": ("until", _parse_end),
    "least": ("least", _parse_filter_amount),
    "most": ("most", _parse_filter_amount),
}
PAYMENT_FILTER_NAMES: Final = tuple(_READ)
"""Names of the filters in forms and query strings."""


def parse_payment_filters(values: Mapping[str, str]) -> tuple[PaymentFilters, dict[str, str]]:
    """Parse ``values``; returns the filters and, by name, errors of invalid values, which are left out."""
    found, wrong = PaymentFilters(), {}
    for name, (attribute, read) in _READ.items():
        text = (values.get(name) or "").strip()
        if not text:
            continue
        try:
            found = replace(found, **{attribute: read(text)})
        except FilterValueError as fault:
            wrong[name] = str(fault)
    if found.since and found.until and found.since >= found.until:
        wrong["to"] = "lies before the first day"
    if found.least is not None and found.most is not None and found.least > found.most:
        wrong["most"] = "is less than the least amount"
    return found, wrong

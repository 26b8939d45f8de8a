"""Filters of the list of payments, parsed from a form or a query string."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Q
from django.utils import timezone

from gateway.core import clock, identifiers, money
from gateway.core.brands import PAYMENT_BRANDS
from gateway.core.identifiers import first_id_at
from gateway.core.masking import contains_card_number
from gateway.core.result_codes import FAMILY_PATTERNS, RESULT_CODES, ResultFamily
from gateway.models import Status
from gateway.payments.chain_states import ChainStatus, build_chain_status_condition

_PLAIN_FILTERS: Final = (
    "status", "payment_type", "brand", "method", "currency", "test_mode", "channel", "merchant", "connector",
    "acquirer_merchant_id",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentFilters:
    """Filters of a list; empty means all. ``since`` and ``until`` are times of the merchants' clocks, ``real_since``
    and ``real_until`` real ones, which figures by hour are counted in; the ends are exclusive. ``state``: of the chain
    (ChainStatus); ``status``: of the single payment; ``part``: one of CHAIN_PARTS."""

    status: str = ""
    state: str = ""
    part: str = ""
    payment_type: str = ""
    brand: str = ""
    method: str = ""
    currency: str = ""
    test_mode: str = ""
    family: ResultFamily | None = None
    code: str = ""
    channel: UUID | None = None
    merchant: UUID | None = None
    connector: str = ""
    acquirer_merchant_id: str = ""
    since: datetime | None = None
    until: datetime | None = None
    least: Decimal | None = None
    most: Decimal | None = None
    real_since: datetime | None = None
    real_until: datetime | None = None

    def where(self) -> Q:
        """The filters as a condition."""
        found = Q()
        for name in _PLAIN_FILTERS:
            if value := getattr(self, name):
                found &= Q(**{name: value})
        if self.code:
            found &= Q(result_code=self.code)
        if self.family is not None:
            found &= build_family_condition(self.family)
        if self.state:
            found &= build_chain_status_condition(self.state)
        if self.part:
            first = Q(chain=F("id"))
            found &= first if self.part == "first" else ~first
        if self.real_since is not None:
            # Clocks are moved forwards only: the second condition is for the index of times.
            found &= Q(pk__gte=first_id_at(self.real_since), created_at__gte=self.real_since - CLOCK_TOLERANCE)
        if self.real_until is not None:
            found &= Q(pk__lt=first_id_at(self.real_until))
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


CLOCK_TOLERANCE: Final = timedelta(minutes=5)
"""How much earlier than its id a payment's own time may be: clocks of several machines."""


# --- reading ------------------------------------------------------------------------------------------------------


FILTER_TIME_FORMAT: Final = "%Y-%m-%dT%H:%M"
"""Format of times in filters, in the reader's zone; with a Z at the end, in UTC."""
CHAIN_PARTS: Final[Mapping[str, str]] = MappingProxyType({"first": "first payments", "follow_up": "follow-ups"})
MAX_FILTER_NAME_CHARS: Final = 64
"""Of a connector's name and a merchant's id at it, as their columns are long."""
_NAME: Final = re.compile(rf"[A-Za-z0-9._:/ -]{{1,{MAX_FILTER_NAME_CHARS}}}")
PERIODS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "hour": "the last hour", "day": "the last 24 hours", "today": "today", "yesterday": "yesterday",
        "week": "the last 7 days", "month": "this month", "last_month": "last month",
    }
)  # fmt: skip
"""Periods that end now or lie behind, in days of the reader's zone."""


class FilterValueError(ValueError):
    """An invalid filter value; the message says what is allowed."""


def _parse_choice(allowed: Callable[[], Any], what: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed():
            raise FilterValueError(f"{what} is not known here")
        return text

    return read


def format_filter_time(at: datetime) -> str:
    """A time as a filter in an address: whoever opens it reads the same."""
    return f"{at.astimezone(UTC):{FILTER_TIME_FORMAT}}Z"


def _parse_moment(text: str) -> datetime:
    zone = timezone.get_current_timezone()
    try:
        if "T" in text:
            own = UTC if text.endswith("Z") else zone
            return datetime.strptime(text.removesuffix("Z"), FILTER_TIME_FORMAT).replace(tzinfo=own).astimezone(UTC)
        return datetime.combine(date.fromisoformat(text), time(), zone).astimezone(UTC)
    except (ValueError, OverflowError):
        raise FilterValueError("give a date as yyyy-MM-dd, e.g. 2026-05-14, or with a time, 2026-05-14T10:00") from None


def _parse_end(text: str) -> datetime:
    """The exclusive end of a time: the next midnight for a date, the time itself otherwise."""
    if "T" in text:
        return _parse_moment(text)
    try:
        after = date.fromisoformat(text) + timedelta(days=1)
    except OverflowError:
        raise FilterValueError("give a date before the year 9999") from None
    except ValueError:
        return _parse_moment(text)
    return _parse_moment(after.isoformat())


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


def _parse_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise FilterValueError(f"has letters, digits and . _ : / - only, {MAX_FILTER_NAME_CHARS} at most")
    if contains_card_number(text):  # it would be kept with the work that a list begins
        raise FilterValueError("is a whole card number, which is neither looked for nor kept")
    return text


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
    "state": ("state", _parse_choice(lambda: ChainStatus.values, "this state")),
    "part": ("part", _parse_choice(lambda: CHAIN_PARTS, "this part")),
    "period": ("period", _parse_choice(lambda: PERIODS, "this period")),
    "real_from": ("real_since", _parse_moment),
    "real_to": ("real_until", _parse_end),
    "type": ("payment_type", _parse_choice(lambda: FILTER_PAYMENT_TYPES, "this type")),
    "brand": ("brand", _parse_choice(lambda: PAYMENT_BRANDS, "this brand")),
    "method": ("method", _parse_choice(lambda: {brand.method for brand in PAYMENT_BRANDS.values()}, "this method")),
    "currency": ("currency", _parse_filter_currency),
    "mode": ("test_mode", _parse_choice(lambda: FILTER_TEST_MODES, "this test mode")),
    "family": ("family", _parse_family),
    "code": ("code", _parse_choice(lambda: RESULT_CODES, "this result code")),
    "channel": ("channel", _parse_filter_id),
    "merchant": ("merchant", _parse_filter_id),
    "connector": ("connector", _parse_name),
    "account": ("acquirer_merchant_id", _parse_name),
    "from": ("since", _parse_moment),
    "to": ("until", _parse_end),
    "least": ("least", _parse_filter_amount),
    "most": ("most", _parse_filter_amount),
}
PAYMENT_FILTER_NAMES: Final = tuple(_READ)
"""Names of the filters in forms and query strings."""


def find_period(name: str) -> tuple[datetime, datetime | None]:
    """The beginning and the exclusive end of a period of PERIODS; None: it goes on. For the merchant's clock: in the
    test environment one may be ahead, so what goes on has no end."""
    now = timezone.localtime(clock.real_now())
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)

    def day(back: int) -> datetime:
        return datetime.combine(midnight.date() - timedelta(days=back), time(), midnight.tzinfo)

    first = midnight.date().replace(day=1)
    month = datetime.combine(first, time(), midnight.tzinfo)
    before = datetime.combine((first - timedelta(days=1)).replace(day=1), time(), midnight.tzinfo)
    return {
        "hour": (now - timedelta(hours=1), None),
        "day": (now - timedelta(days=1), None),
        "today": (midnight, None),
        "yesterday": (day(1), midnight),
        "week": (day(6), None),
        "month": (month, None),
        "last_month": (before, month),
    }[name]


_TIME_FILTERS: Final = ("period", "from", "to", "real_from", "real_to")


def fix_filter_times(values: Mapping[str, str]) -> dict[str, str]:
    """The same filters with times in UTC, for work that runs later and in no reader's zone."""
    found, _wrong = parse_payment_filters(values)
    kept = {name: text for name, text in values.items() if name not in _TIME_FILTERS}
    ends = (
        ("from", found.since), ("to", found.until), ("real_from", found.real_since), ("real_to", found.real_until),
    )  # fmt: skip
    return kept | {name: format_filter_time(at) for name, at in ends if at is not None}


def parse_payment_filters(values: Mapping[str, str]) -> tuple[PaymentFilters, dict[str, str]]:
    """Parse ``values``; returns the filters and, by name, errors of invalid values, which are left out."""
    found, wrong = PaymentFilters(), {}
    for name, (attribute, read) in _READ.items():
        text = (values.get(name) or "").strip()
        if not text:
            continue
        try:
            if name == "period":
                since, until = find_period(read(text))
                found = replace(found, since=since, until=until)
            else:
                found = replace(found, **{attribute: read(text)})
        except FilterValueError as fault:
            wrong[name] = str(fault)
    if found.since and found.until and found.since >= found.until:
        wrong["to"] = "lies before the first day"
    if found.least is not None and found.most is not None and found.least > found.most:
        wrong["most"] = "is less than the least amount"
    return found, wrong

"""Filters of the list of payments, parsed from a form or a query string."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Q
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway.backoffice.kit.periods import (
    CLOCK_TOLERANCE,
    PERIODS,
    FilterValueError,
    find_period,
    format_filter_time,
    parse_filter_end,
    parse_filter_time,
)
from gateway.core import identifiers, money
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
NO_MERCHANT_ID: Final = "(none)"
"""The filter by a merchant's id at the acquirer that finds payments without one; no id looks like it."""


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
                found &= Q(**{name: "" if value == NO_MERCHANT_ID else value})
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


# --- reading ------------------------------------------------------------------------------------------------------


CHAIN_PARTS: Final[Mapping[str, str]] = MappingProxyType({"first": "first payments", "follow_up": "follow-ups"})
MAX_FILTER_NAME_CHARS: Final = 64
"""Characters of a connector's name and of a merchant's id at it, as their columns are long."""
_NAME: Final = re.compile(rf"[A-Za-z0-9._:/ -]{{1,{MAX_FILTER_NAME_CHARS}}}")


def _parse_choice(allowed: Callable[[], Any], what: str | Promise) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed():
            raise FilterValueError(_("%s is not known here") % what)
        return text

    return read


def _list_methods() -> set[str]:
    return {brand.method for brand in PAYMENT_BRANDS.values()}


def _parse_filter_amount(text: str) -> Decimal:
    try:
        return money.parse_amount(text.replace(",", "."))
    except ValueError:
        raise FilterValueError(_("give an amount with none or two decimals, e.g. 92.00")) from None


def _parse_filter_id(text: str) -> UUID:
    found = identifiers.parse_id(text.replace("-", ""))
    if found is None:
        raise FilterValueError(_("is no id of an entity"))
    return found


def _parse_name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise FilterValueError(_("has letters, digits and . _ : / - only, %d at most") % MAX_FILTER_NAME_CHARS)
    if contains_card_number(text):  # it would be kept with the work that a list begins
        raise FilterValueError(_("is a whole card number, which is neither looked for nor kept"))
    return text


def _parse_merchant_id(text: str) -> str:
    return text if text == NO_MERCHANT_ID else _parse_name(text)


def _parse_family(text: str) -> ResultFamily:
    try:
        return ResultFamily(text)
    except ValueError:
        raise FilterValueError(_("is no family of result codes")) from None


def _parse_filter_currency(text: str) -> str:
    if not money.is_known_currency(text.upper()):
        raise FilterValueError(_("give a currency of ISO 4217, e.g. EUR"))
    return text.upper()


FILTER_PAYMENT_TYPES: Final = (
    "PA", "DB", "CP", "RF", "RV", "RB", "RC", "CD", "CB", "CR", "RG", "RR", "TE", "DR", "RI", "3D", "SD", "RS", "DS",
)  # fmt: skip
FILTER_TEST_MODES: Final = ("INTERNAL", "EXTERNAL")
_READ: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "status": ("status", _parse_choice(lambda: Status.values, gettext_lazy("this status"))),
    "state": ("state", _parse_choice(lambda: ChainStatus.values, gettext_lazy("this state"))),
    "part": ("part", _parse_choice(lambda: CHAIN_PARTS, gettext_lazy("this part"))),
    "period": ("period", _parse_choice(lambda: PERIODS, gettext_lazy("this period"))),
    "real_from": ("real_since", parse_filter_time),
    "real_to": ("real_until", parse_filter_end),
    "type": ("payment_type", _parse_choice(lambda: FILTER_PAYMENT_TYPES, gettext_lazy("this type"))),
    "brand": ("brand", _parse_choice(lambda: PAYMENT_BRANDS, gettext_lazy("this brand"))),
    "method": (
        "method",
        _parse_choice(_list_methods, gettext_lazy("this method")),
    ),
    "currency": ("currency", _parse_filter_currency),
    "mode": ("test_mode", _parse_choice(lambda: FILTER_TEST_MODES, gettext_lazy("this test mode"))),
    "family": ("family", _parse_family),
    "code": ("code", _parse_choice(lambda: RESULT_CODES, gettext_lazy("this result code"))),
    "channel": ("channel", _parse_filter_id),
    "merchant": ("merchant", _parse_filter_id),
    "connector": ("connector", _parse_name),
    "account": ("acquirer_merchant_id", _parse_merchant_id),
    "from": ("since", parse_filter_time),
    "to": ("until", parse_filter_end),
    "least": ("least", _parse_filter_amount),
    "most": ("most", _parse_filter_amount),
}
PAYMENT_FILTER_NAMES: Final = tuple(_READ)
"""Names of the filters in forms and query strings."""


_TIME_FILTERS: Final = ("period", "from", "to", "real_from", "real_to")


def fix_filter_times(values: Mapping[str, str]) -> dict[str, str]:
    """The filters ``values`` with times in UTC, for work that runs later and in no reader's zone."""
    found, _wrong = parse_payment_filters(values)
    kept = {name: text for name, text in values.items() if name not in _TIME_FILTERS}
    ends = (
        ("from", found.since),
        ("to", found.until),
        ("real_from", found.real_since),
        ("real_to", found.real_until),
    )
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
        wrong["to"] = _("lies before the beginning")
    if found.least is not None and found.most is not None and found.least > found.most:
        wrong["most"] = _("is less than the least amount")
    return found, wrong

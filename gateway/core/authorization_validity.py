"""How long an authorization may be captured, by brand: one table with sources.

The schemes' rule books are sold or given to members and were not at hand: rows cite what quotes them. A row without
such a source says so; its days are a careful reading, and a channel may set others (``authorizationDays``).
Source: docs/decisions/0069.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from gateway.core.brands import MASTERCARD_BRANDS

ESTIMATED_AUTHORIZATION: Final = "ESTIMATED"
"""The amount may still change: a preauthorization."""
FINAL_AUTHORIZATION: Final = "FINAL"
"""The amount is the amount of the capture."""
INCREMENTED_AUTHORIZATION: Final = "INCREMENTAL"
"""An estimated one that was raised at least once."""
MERCHANT_INITIATED: Final = "MIT"
EVERY_OTHER_BRAND: Final = "*"
"""In a channel's ``authorizationDays``: every brand that it does not name."""
MAX_AUTHORIZATION_DAYS: Final = 365

_VISA: Final = ("VISA", "VISADEBIT", "VISAELECTRON", "VPAY")
_TRAVEL_MCCS: Final = ((3351, 3500), (3501, 3999), (4411, 4411), (7011, 7011), (7512, 7513))
"""Vehicle rental, lodging, cruise lines."""
_STRIPE: Final = "https://docs.stripe.com/payments/place-a-hold-on-a-payment-method"
_AIRWALLEX: Final = "https://www.airwallex.com/docs/issuing/transactions/authorization-expiration"
_REVOLUT: Final = (
    "https://developer.revolut.com/docs/guides/merchant/operations/capture-and-settlement/advanced-authorisation/"
    "clearing-windows"
)
_CARD_METHODS: Final = frozenset({"CC", "DC", "WA"})


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationValidity:
    """One row. ``brands``: empty for every other one. ``kind``, ``initiator``: '' for any. ``country``: of the
    merchant (``merchant.country``), '' for any. ``mccs``: ranges of merchant category codes, empty for any."""

    brands: tuple[str, ...]
    days: int
    source: str
    kind: str = ""
    initiator: str = ""
    country: str = ""
    mccs: tuple[tuple[int, int], ...] = ()


AUTHORIZATION_VALIDITIES: Final = (
    AuthorizationValidity(
        brands=_VISA,
        kind=ESTIMATED_AUTHORIZATION,
        mccs=_TRAVEL_MCCS,
        days=30,
        source="Visa Core Rules, approval response validity periods, of lodging, vehicle rental and cruise lines; "
        "not read in the original, quoted by https://docs.stripe.com/payments/extended-authorization",
    ),
    AuthorizationValidity(
        brands=_VISA,
        initiator=MERCHANT_INITIATED,
        days=5,
        source="Visa Core Rules since April 2024, merchant-initiated; not read in the original, quoted by "
        f"{_STRIPE} and {_AIRWALLEX}",
    ),
    AuthorizationValidity(
        brands=_VISA,
        days=10,
        source="Visa Core Rules since April 2024, cardholder-initiated without the card present; not read in the "
        f"original, quoted by {_AIRWALLEX}; other processors tell their merchants 7 or 8 days",
    ),
    AuthorizationValidity(
        brands=MASTERCARD_BRANDS,
        kind=FINAL_AUTHORIZATION,
        country="IN",
        days=4,
        source="Mastercard Transaction Processing Rules, domestic in India; not read in the original",
    ),
    AuthorizationValidity(
        brands=("MAESTRO",),
        days=7,
        source="Mastercard Transaction Processing Rules, Maestro in Europe; not read in the original",
    ),
    AuthorizationValidity(
        brands=MASTERCARD_BRANDS,
        kind=FINAL_AUTHORIZATION,
        days=7,
        source=f"Mastercard Transaction Processing Rules, final authorizations; not read in the original, quoted by "
        f"{_STRIPE} and {_REVOLUT}",
    ),
    AuthorizationValidity(
        brands=MASTERCARD_BRANDS,
        days=30,
        source="Mastercard Transaction Processing Rules, preauthorizations; not read in the original, quoted by "
        "https://docs.stripe.com/payments/extended-authorization",
    ),
    AuthorizationValidity(brands=("AMEX", "DISCOVER"), days=7, source=f"quoted by {_STRIPE}"),
    AuthorizationValidity(
        brands=("DINERS",), days=7, source="no source of its own: as Discover, whose network carries it"
    ),
    AuthorizationValidity(
        brands=("CARTEBANCAIRE",),
        days=12,
        source="no rule of the scheme found: what a processor keeps, https://www.adyen.help/hc/en-us/articles/115001179684",
    ),
    AuthorizationValidity(
        brands=("UNIONPAY",), kind=ESTIMATED_AUTHORIZATION, days=30, source="not verified: from practice"
    ),
    AuthorizationValidity(brands=(), days=7, source="not verified: no source found; the shortest of the large schemes"),
)
"""The first row that fits holds. Cards and wallets of cards only: other means have no rule that we know."""


def find_authorization_validity(
    brand: str, *, kind: str, merchant_initiated: bool, country: str, mcc: str
) -> AuthorizationValidity:
    """The row for a card authorization."""
    code = int(mcc) if mcc.isascii() and mcc.isdecimal() else 0
    return next(
        row
        for row in AUTHORIZATION_VALIDITIES
        if (not row.brands or brand in row.brands)
        and row.kind in ("", kind)
        and (not row.initiator or merchant_initiated)
        and row.country in ("", country)
        and (not row.mccs or any(low <= code <= high for low, high in row.mccs))
    )


def resolve_authorization_validity(
    brand: str,
    method: str,
    days_by_brand: Mapping[str, int | None],
    *,
    kind: str,
    merchant_initiated: bool = False,
    country: str = "",
    mcc: str = "",
) -> timedelta | None:
    """How long an authorization is valid: what the channel sets for the brand, or for every other one, else by the
    table. None: without an end, by the channel's setting or because the means has no rule."""
    for name in (brand, EVERY_OTHER_BRAND):
        if name in days_by_brand:
            days = days_by_brand[name]
            return timedelta(days=days) if days is not None else None
    if method not in _CARD_METHODS:
        return None
    row = find_authorization_validity(brand, kind=kind, merchant_initiated=merchant_initiated, country=country, mcc=mcc)
    return timedelta(days=row.days)


def compute_authorization_end(at: datetime, validity: timedelta, zone: str) -> datetime:
    """When an authorization approved at ``at`` ends. ``zone``: of an acquirer that counts days by the calendar: the end
    of the last of them there, the day of the approval not counted. Source: docs/decisions/0155."""
    if not zone:
        return at + validity
    day = at.astimezone(ZoneInfo(zone)).date() + validity
    return datetime.combine(day + timedelta(days=1), time(), ZoneInfo(zone)).astimezone(UTC)

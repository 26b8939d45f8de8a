"""Which connector takes a payment. INTERNAL goes to the simulator; EXTERNAL and live need an acquirer account.

Source: Part A, What the service does, 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from uuid import UUID

from gateway.brands import BRANDS
from gateway.connectors.nobody import NOBODY
from gateway.connectors.port import Connector
from gateway.connectors.simulator.connector import SIMULATOR
from gateway.connectors.stub.connector import STUB
from gateway.models import AcquirerAccount

INTERNAL: Final = "INTERNAL"

_ALL: Final[tuple[Connector, ...]] = (SIMULATOR, STUB, NOBODY)
CONNECTORS: Final[Mapping[str, Connector]] = MappingProxyType({connector.name: connector for connector in _ALL})


class NoRoute(Exception):
    """No connector is configured for this mode, brand and currency."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A merchant's account at an acquirer, as routing sees it. ``brands`` and ``currencies``: empty means all."""

    connector: str
    merchant: str = ""
    brands: frozenset[str] = frozenset()
    currencies: frozenset[str] = frozenset()

    def takes(self, brand: str, currency: str) -> bool:
        """Whether it takes the brand and the currency; '' stands for a request without money."""
        fits = not currency or not self.currencies or currency in self.currencies
        return fits and (not self.brands or brand in self.brands)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """``account``: the merchant's id at the acquirer; empty at the simulator."""

    connector: Connector
    account: str = ""


def route(test_mode: str, channel: UUID, *, brand: str, currency: str) -> Route:
    """The way of a first payment in ``test_mode`` ('' in the live environment). Raises NoRoute.

    One statement, and none for INTERNAL.
    """
    if test_mode == INTERNAL:
        return Route(connector=SIMULATOR)
    return choose(accounts_of(channel), brand=brand, currency=currency)


def choose(accounts: Iterable[Candidate], *, brand: str, currency: str) -> Route:
    """The first account that takes the brand and the currency and whose connector there is. Raises NoRoute.

    An account at the simulator, or at nobody, counts for nothing: only INTERNAL and risk checks go there.
    """
    for account in accounts:
        connector = CONNECTORS.get(account.connector)
        if connector in (None, SIMULATOR, NOBODY) or not account.takes(brand, currency):
            continue
        if connector.redirects or not _waits(brand):
            return Route(connector=connector, account=account.merchant)
    raise NoRoute(f"no acquirer account takes {brand} in {currency}")


def _waits(brand: str) -> bool:
    """Whether the first answer of a brand is pending: a shopper decides elsewhere, or money is waited for."""
    known = BRANDS.get(brand)
    return known is not None and (known.redirect or known.method == "PP")


def accounts_of(channel: UUID) -> list[Candidate]:
    """The channel's active acquirer accounts, in their order."""
    rows = AcquirerAccount.objects.filter(channel=channel, active=True).order_by("id")
    return [
        Candidate(connector=connector, merchant=merchant, brands=frozenset(brands), currencies=frozenset(currencies))
        for connector, merchant, brands, currencies in rows.values_list(
            "connector", "acquirer_merchant_id", "brands", "currencies"
        )
    ]

"""Routing: picks the connector and account of a payment.

INTERNAL goes to the simulator. EXTERNAL and live follow the channel's rules and accounts
(gateway.connectors.routing_rules), read in one statement. Source: Part A, What the service does, 5; docs/routing.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from gateway.connectors import routing_rules
from gateway.connectors.account_choice import AccountFigures, ChoicePolicy
from gateway.connectors.account_figures import read_account_figures
from gateway.connectors.card_api.connector import CARD_API
from gateway.connectors.circuit import guard_connector
from gateway.connectors.iso8583.connector import ISO8583
from gateway.connectors.null_connector import NO_ACQUIRER
from gateway.connectors.port import Connector
from gateway.connectors.routing_rules import (
    RouteChoice,
    RouteRule,
    RoutingCandidate,
    RoutingFacts,
    RoutingTable,
    RuleTarget,
)
from gateway.connectors.sepa.connector import SEPA
from gateway.connectors.simulator.connector import SIMULATOR
from gateway.connectors.stub.connector import STUB
from gateway.db.statement import execute_sql

INTERNAL: Final = "INTERNAL"

_ALL: Final[tuple[Connector, ...]] = (
    SIMULATOR,
    STUB,
    NO_ACQUIRER,
    ISO8583,
    CARD_API,
    SEPA,
)
_OUR_OWN: Final[tuple[Connector, ...]] = (SIMULATOR, NO_ACQUIRER)
"""Connectors that answer in this process. They need no guard, and no acquirer account can name them."""
CONNECTORS: Final[Mapping[str, Connector]] = MappingProxyType(
    {connector.name: connector if connector in _OUR_OWN else guard_connector(connector) for connector in _ALL}
)

_TABLE: Final = """
SELECT
  (SELECT coalesce(json_agg(json_build_array(
      a.id, a.connector, a.acquirer_merchant_id, a.name, a.brands, a.currencies,
      ARRAY(SELECT jsonb_object_keys(a.settings)), a.active) ORDER BY a.id), '[]')::text
    FROM gateway_acquireraccount a WHERE a.channel_id = %(channel)s::uuid),
  (SELECT coalesce(json_agg(json_build_array(
      r.name, r.brands, r.bins, r.currencies, r.amount_from::text, r.amount_to::text, r.amount_currency, r.countries,
      r.payment_types, r.issuer_countries, r.card_types, r.card_levels, r.max_cascades, r.choose_by,
      r.max_rate_loss::text, r.explored_percent,
      (SELECT json_agg(json_build_array(t.account_id, t.weight) ORDER BY t.position, t.id)
        FROM gateway_routingtarget t WHERE t.rule_id = r.id)) ORDER BY r.position, r.id), '[]')::text
    FROM gateway_routingrule r WHERE r.channel_id = %(channel)s::uuid AND (r.active OR %(drafts)s::boolean))
"""


def list_acquirers() -> dict[str, Connector]:
    """Connectors that acquirer accounts may name, by name. The stub acquirer is not among them in live."""
    left_out = {one.name for one in (*_OUR_OWN, *((STUB,) if settings.IS_LIVE else ()))}
    return {name: connector for name, connector in CONNECTORS.items() if name not in left_out}


class NoRouteError(Exception):
    """No account can take the payment. ``missing``: parameters with which one could; ``unsendable``: parameters without
    which one could."""

    def __init__(self, why: str, missing: tuple[str, ...] = (), unsendable: tuple[str, ...] = ()) -> None:
        super().__init__(why)
        self.missing, self.unsendable = missing, unsendable


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """The chosen connector. ``account``: the merchant's id at the acquirer, '' at the simulator. ``audit``: why this
    route, and which are next, to be stored with the payment; None where there was no choice."""

    connector: Connector
    account: str = ""
    audit: Mapping[str, Any] | None = None


def route_payment(test_mode: str, channel: UUID, facts: RoutingFacts) -> Route:
    """Choose the route of a first payment in ``test_mode`` ('' in the live environment). Raises NoRouteError.

    One statement, and at most one a minute more where a rule chooses by costs or rates; none for INTERNAL.
    """
    if test_mode == INTERNAL:
        return Route(connector=SIMULATOR)
    return first_route(choose_accounts(load_routing_table(channel), facts, lambda: read_account_figures(channel)))


def choose_accounts(
    table: RoutingTable, facts: RoutingFacts, read_figures: Callable[[], AccountFigures]
) -> RouteChoice:
    """Rank the accounts that may take a payment, by the channel's rules."""
    return routing_rules.rank_accounts(table, facts, list_acquirers(), read_figures)


def first_route(choice: RouteChoice) -> Route:
    """The best route of a choice. Raises NoRouteError with the reason of each rejected account."""
    if not choice.candidates:
        by = f"rule {choice.rule}: " if choice.rule else ""
        reasons = "; ".join(f"{name}: {why}" for name, why in choice.rejected)
        raise NoRouteError(f"{by}{reasons or 'there is no acquirer account'}", choice.missing, choice.unsendable)
    first = choice.candidates[0]
    return Route(connector=CONNECTORS[first.connector], account=first.merchant, audit=choice.build_audit())


def can_route_payment(table: RoutingTable, facts: RoutingFacts) -> bool:
    """True if a brand can be offered, before all facts of the payment are known."""
    return routing_rules.can_any_account_take(table, facts, list_acquirers())


def load_routing_table(channel: UUID, *, drafts: bool = False) -> RoutingTable:
    """Read the channel's accounts and active rules in one statement; with ``drafts``, inactive rules too."""
    accounts, found = execute_sql(_TABLE, {"channel": channel, "drafts": drafts})[0]
    return RoutingTable(
        accounts=tuple(_candidate(*one) for one in json.loads(accounts)),
        rules=tuple(_rule(*one) for one in json.loads(found)),
    )


def _candidate(
    ident: str,
    connector: str,
    merchant: str,
    name: str,
    brands: list[str],
    currencies: list[str],
    settings: list[str],
    active: bool,
) -> RoutingCandidate:
    return RoutingCandidate(
        id=ident,
        connector=connector,
        merchant=merchant,
        name=name,
        brands=frozenset(brands),
        currencies=frozenset(currencies),
        settings=frozenset(settings),
        active=active,
    )


def _rule(
    name: str,
    brands: list[str],
    bins: list[str],
    currencies: list[str],
    amount_from: str | None,
    amount_to: str | None,
    amount_currency: str,
    countries: list[str],
    types: list[str],
    issuer_countries: list[str],
    card_types: list[str],
    card_levels: list[str],
    max_cascades: int,
    choose_by: str,
    max_rate_loss: str,
    explored_percent: int,
    targets: list[Any] | None,
) -> RouteRule:
    return RouteRule(
        name=name,
        brands=frozenset(brands),
        currencies=frozenset(currencies),
        amount_currency=amount_currency,
        bins=tuple((low, high or low) for low, _, high in (one.partition("-") for one in bins)),
        amount_from=Decimal(amount_from) if amount_from is not None else None,
        amount_to=Decimal(amount_to) if amount_to is not None else None,
        countries=frozenset(countries),
        payment_types=frozenset(types),
        issuer_countries=frozenset(issuer_countries),
        card_types=frozenset(card_types),
        card_levels=frozenset(card_levels),
        max_cascades=max_cascades,
        policy=ChoicePolicy(by=choose_by, max_rate_loss=Decimal(max_rate_loss), explored_percent=explored_percent)
        if choose_by
        else None,
        targets=tuple(RuleTarget(account=account, weight=weight) for account, weight in targets or ()),
    )

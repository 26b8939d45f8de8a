"""Prices of a channel's acquirer accounts and their outcomes: one statement, kept for a minute.

Outcomes are counted of the newest payments of the channel that an acquirer judged. A payment counts once, for the
account that judged it first: the second account after a decline sees only payments that the first one declined.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.core.cache import cache
from django.db import DatabaseError, connection, transaction

from gateway.connectors.account_choice import AccountFigures, AccountPrice
from gateway.core import clock
from gateway.core.brands import find_issuer
from gateway.db.statement import execute_sql

_LOG = logging.getLogger(__name__)
FIGURES_CACHE_S: Final = 60
MISSING_FIGURES_CACHE_S: Final = 5
"""How long the figures are empty after their statement failed."""
MAX_JUDGED_PAYMENTS: Final = 10_000
"""The channel's newest payments, of which outcomes are counted."""

_FIGURES: Final = """
SELECT
  (SELECT coalesce(json_agg(json_build_array(
      account, brand, region, level, currency, percent::text, fixed::text)), '[]')::text
    FROM (
      SELECT DISTINCT ON (c.account_id, c.brand, c.region, c.level, c.currency)
        concat_ws(' ', a.connector, nullif(a.acquirer_merchant_id, '')) AS account,
        c.brand, c.region, c.level, c.currency,
        c.percent + c.interchange_percent + c.scheme_percent AS percent,
        c.fixed + c.interchange_fixed + c.scheme_fixed AS fixed
      FROM gateway_acquirercost c JOIN gateway_acquireraccount a ON a.id = c.account_id
      WHERE a.channel_id = %(channel)s::uuid AND c.valid_from <= %(today)s::date
      ORDER BY c.account_id, c.brand, c.region, c.level, c.currency, c.valid_from DESC
    ) AS price),
  (SELECT coalesce(json_agg(json_build_array(account, brand, bin, approved, asked)), '[]')::text
    FROM (
      SELECT account, brand, bin, count(*) FILTER (WHERE approved) AS approved, count(*) AS asked
      FROM (
        SELECT p.brand, coalesce(p.answer -> 'card' ->> 'bin', '') AS bin,
          p.status = 'APPROVED' AND refused.by IS NULL AS approved,
          CASE WHEN refused.by IS NULL THEN concat_ws(' ', p.connector, nullif(p.acquirer_merchant_id, ''))
            ELSE concat_ws(' ', refused.by ->> 'connector', nullif(refused.by ->> 'account', '')) END AS account
        FROM (
          SELECT * FROM gateway_payment WHERE channel_id = %(channel)s::uuid ORDER BY created_at DESC LIMIT %(most)s
        ) AS p
        CROSS JOIN LATERAL (
          SELECT jsonb_path_query_first(p.route, '$.tried[*] ? (@.declined == true)') AS by
        ) AS refused
        WHERE p.chain = p.id AND p.payment_type IN ('DB', 'PA') AND p.amount > 0
          AND (%(internal)s OR p.test_mode <> 'INTERNAL')
          AND p.status IN ('APPROVED', 'DECLINED') AND p.connector NOT IN ('', 'nobody')
      ) AS judged GROUP BY 1, 2, 3
    ) AS counted)
"""


def read_account_figures(channel: UUID) -> AccountFigures:
    """The channel's figures, at most FIGURES_CACHE_S old; empty, so that the weights decide, if they cannot be read."""
    key = f"account-figures-{channel.hex}"
    found: Any = cache.get(key)
    if found is None:
        found, kept_s = _try_to_load(channel)
        cache.set(key, found, kept_s)
    assert isinstance(found, AccountFigures)
    return found


def _try_to_load(channel: UUID) -> tuple[AccountFigures, int]:
    """The figures and for how many seconds they are kept. A fault of the statement costs no payment: within an open
    transaction a savepoint keeps the rest of it."""
    try:
        if not connection.in_atomic_block:
            return load_account_figures(channel), FIGURES_CACHE_S
        with transaction.atomic():
            return load_account_figures(channel), FIGURES_CACHE_S
    except DatabaseError:
        _LOG.exception("figures of the accounts of channel %s cannot be read: the weights decide", channel)
        return AccountFigures(), MISSING_FIGURES_CACHE_S


def load_account_figures(channel: UUID, *, with_internal: bool = False) -> AccountFigures:
    """Read the channel's figures in one statement. ``with_internal``: count payments of testMode INTERNAL, too."""
    values = {
        "channel": channel,
        "today": clock.real_now().date(),
        "most": MAX_JUDGED_PAYMENTS,
        "internal": with_internal,
    }
    return _parse_figures(*execute_sql(_FIGURES, values)[0])


def _parse_figures(prices: str, counted: str) -> AccountFigures:
    outcomes: dict[tuple[str, str, str], tuple[int, int]] = {}
    for account, brand, card_bin, approved, asked in json.loads(counted):
        issuer = find_issuer(card_bin) if card_bin else None
        key = (account, brand, issuer.country if issuer is not None else "")
        before = outcomes.get(key, (0, 0))
        outcomes[key] = (before[0] + approved, before[1] + asked)
    return AccountFigures(
        prices=tuple(_price(*one) for one in json.loads(prices)),
        outcomes=outcomes,
    )


def rename_accounts(figures: AccountFigures, names: Mapping[str, str]) -> AccountFigures:
    """The figures with the outcomes of these accounts counted at those that they stand for."""
    outcomes: dict[tuple[str, str, str], tuple[int, int]] = {}
    for (account, brand, country), (approved, asked) in figures.outcomes.items():
        key = (names.get(account, account), brand, country)
        before = outcomes.get(key, (0, 0))
        outcomes[key] = (before[0] + approved, before[1] + asked)
    return AccountFigures(prices=figures.prices, outcomes=outcomes)


def pack_figures(figures: AccountFigures) -> dict[str, Any]:
    """Figures as JSON, for background work that goes on with the same ones."""
    return {
        "prices": [
            [one.account, one.brand, one.region, one.level, one.currency, str(one.percent), str(one.fixed)]
            for one in figures.prices
        ],
        "outcomes": [[*key, *outcome] for key, outcome in figures.outcomes.items()],
    }


def unpack_figures(packed: Mapping[str, Any]) -> AccountFigures:
    """The figures that were packed."""
    return AccountFigures(
        prices=tuple(_price(*one) for one in packed["prices"]),
        outcomes={
            (account, brand, country): (approved, asked)
            for account, brand, country, approved, asked in packed["outcomes"]
        },
    )


def _price(account: str, brand: str, region: str, level: str, currency: str, percent: str, fixed: str) -> AccountPrice:
    return AccountPrice(
        account=account,
        brand=brand,
        region=region,
        level=level,
        currency=currency,
        percent=Decimal(percent),
        fixed=Decimal(fixed),
    )

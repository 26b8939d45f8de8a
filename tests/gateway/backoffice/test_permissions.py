"""Which rows a scope reaches, and which scopes lie in another. Pure."""

from __future__ import annotations

from uuid import UUID

import pytest

from gateway.access.permissions import FULL_ACCESS, NO_ACCESS, AccessScope, RowOwner

SHOP, OTHER, CHANNEL, SECOND = (UUID(int=number) for number in range(1, 5))
OF_SHOP = AccessScope(merchants=frozenset({SHOP}))
OF_CHANNEL = AccessScope(channels=frozenset({CHANNEL}))
OF_BOTH = AccessScope(merchants=frozenset({SHOP}), channels=frozenset({CHANNEL}))


@pytest.mark.parametrize(
    ("scope", "reached"),
    [
        (NO_ACCESS, []),
        (FULL_ACCESS, ["installation", "shop", "channel", "second", "other", "other's channel"]),
        (OF_SHOP, ["shop", "channel", "second"]),
        (OF_CHANNEL, ["channel"]),
        (
            AccessScope(merchants=frozenset({OTHER}), channels=frozenset({SECOND})),
            ["second", "other", "other's channel"],
        ),
    ],
)
def test_a_scope_reaches_rows_of_its_merchants_and_of_its_single_channels(
    scope: AccessScope, reached: list[str]
) -> None:
    rows = {
        "installation": RowOwner(),
        "shop": RowOwner(merchant=SHOP),
        "channel": RowOwner(merchant=SHOP, channel=CHANNEL),
        "second": RowOwner(merchant=SHOP, channel=SECOND),
        "other": RowOwner(merchant=OTHER),
        "other's channel": RowOwner(merchant=OTHER, channel=UUID(int=9)),
    }
    assert [name for name, place in rows.items() if scope.covers(place)] == reached
    assert bool(scope) is bool(reached)


@pytest.mark.parametrize(
    ("scope", "within"),
    [
        (FULL_ACCESS, [FULL_ACCESS, OF_BOTH, OF_SHOP, OF_CHANNEL, NO_ACCESS]),
        (OF_BOTH, [OF_BOTH, OF_SHOP, OF_CHANNEL, NO_ACCESS]),
        (OF_SHOP, [OF_SHOP, NO_ACCESS]),
        (OF_CHANNEL, [OF_CHANNEL, NO_ACCESS]),
        (NO_ACCESS, [NO_ACCESS]),
    ],
)
def test_a_scope_contains_what_reaches_no_more_rows(scope: AccessScope, within: list[AccessScope]) -> None:
    every = [FULL_ACCESS, OF_BOTH, OF_SHOP, OF_CHANNEL, NO_ACCESS]
    assert [one for one in every if scope.contains(one)] == within

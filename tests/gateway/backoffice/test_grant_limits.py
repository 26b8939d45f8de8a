"""Limits of grants: which of several applies, and the highest limit a user may grant to others."""

from __future__ import annotations

from decimal import Decimal

import pytest

from gateway.access import permissions
from gateway.models import Grant, Role
from tests.support.fixtures import Shop
from tests.support.office import person

pytestmark = pytest.mark.django_db
OPERATE = "gateway.operate_payment"
Limits = tuple[str | None, str | None]


def amounts(limits: Limits) -> dict[str, Decimal | None]:
    found = (Decimal(limit) if limit is not None else None for limit in limits)
    return dict(zip(permissions.FOUR_EYES_LIMITS, found, strict=True))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("10.00", "90.00"), ("20.00", "80.00"), ("20.00", "90.00")),
        (("20.00", "80.00"), ("10.00", "90.00"), ("20.00", "90.00")),
        ((None, "80.00"), ("10.00", "90.00"), (None, "90.00")),
        (("10.00", "90.00"), (None, None), (None, None)),
        (("0.00", "0.00"), ("0.00", "0.00"), ("0.00", "0.00")),
    ],
)
def test_of_several_grants_that_reach_a_row_the_highest_limit_counts(
    shop: Shop, first: Limits, second: Limits, expected: Limits
) -> None:
    """Each limit apart; one on another channel, or of a role that moves no money, counts for nothing."""
    user = person("clara", Role.CLERK, shop.merchant, **amounts(first))
    Grant.objects.create(user=user, role=Role.MANAGER, channel=shop.channel, **amounts(second))
    Grant.objects.create(user=user, role=Role.CLERK, channel=shop.open_channel(), **amounts((None, None)))
    Grant.objects.create(user=user, role=Role.AUDITOR, merchant=shop.merchant, **amounts((None, None)))
    found = permissions.find_four_eyes_limits(user, OPERATE, shop.channel)
    assert found == tuple(amounts(expected).values())


def test_who_may_not_move_money_there_has_no_limit_to_tell(shop: Shop, stranger: Shop) -> None:
    user = person("clara", Role.CLERK, shop.merchant, **amounts(("10.00", "10.00")))
    with pytest.raises(LookupError):
        permissions.find_four_eyes_limits(user, OPERATE, stranger.channel)
    with pytest.raises(LookupError):
        permissions.find_four_eyes_limits(user, "gateway.approve_payment", shop.channel)


@pytest.mark.parametrize(
    ("own", "given", "excessive"),
    [
        (("100.00", "150.00"), ("100.00", "150.00"), {}),
        (("100.00", "150.00"), ("100.01", "150.00"), {"four_eyes_above": "100.00"}),
        (("100.00", "150.00"), ("100.00", "150.01"), {"four_eyes_day": "150.00"}),
        (("100.00", "150.00"), (None, "10.00"), {"four_eyes_above": "100.00"}),
        (("100.00", None), ("10.00", None), {}),
        ((None, None), (None, None), {}),
        (("0.00", "0.00"), ("0.01", "0.00"), {"four_eyes_above": "0.00"}),
    ],
)
@pytest.mark.parametrize("role", [Role.CLERK, Role.MANAGER])
def test_nobody_gives_on_a_higher_limit_than_their_own(
    shop: Shop, own: Limits, given: Limits, excessive: dict[str, str], role: Role
) -> None:
    giver = person("mia", Role.MANAGER, shop.merchant, **amounts(own))
    grant = Grant(user=person("carl", Role.CLERK), role=role, merchant=shop.merchant, **amounts(given))
    found = permissions.find_excessive_limits(giver, grant)
    assert found == {name: Decimal(most) for name, most in excessive.items()}
    assert permissions.can_grant_with_limits(giver, grant) is (not excessive)


def test_a_role_without_money_has_no_limit_to_give_on(shop: Shop) -> None:
    giver = person("mia", Role.MANAGER, shop.merchant, **amounts(("10.00", "10.00")))
    grant = Grant(user=person("carl", Role.CLERK), role=Role.AUDITOR, merchant=shop.merchant, **amounts((None, None)))
    assert permissions.find_excessive_limits(giver, grant) == {}

"""Where a right is had: each kind of node and each role alone, and whether it is still had on what was seen before.

Source: docs/back-office.md; docs/decisions/0024.
"""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from gateway.access import permissions
from gateway.access.permissions import AccessScope, RowOwner
from gateway.core import identifiers
from gateway.models import Channel, Division, Merchant, Psp, RiskList, RiskListEntry, Role
from tests.support.fixtures import Shop
from tests.support.office import Node, person

pytestmark = pytest.mark.django_db
RIGHT = "gateway.view_payment"


@pytest.fixture
def others(shop: Shop, stranger: Shop) -> dict[str, Node]:
    """Nodes of both merchants, and a PSP beside theirs, so that no PSP is all there is."""
    Psp.objects.create(name="Other PSP")
    division = shop.merchant.division
    return {
        "channel": shop.channel,
        "merchant": shop.merchant,
        "division": division,
        "psp": division.psp,
        "strange channel": stranger.channel,
        "strange merchant": stranger.merchant,
    }


def fresh(user: User) -> User:
    """What was read of the grants is forgotten."""
    return User.objects.get(pk=user.pk)


@pytest.mark.parametrize("node", ["channel", "merchant", "division", "psp"])
@pytest.mark.parametrize("before", ["channel", "merchant", "division", "psp"])
def test_a_right_is_still_had_on_what_is_reached_as_before_or_from_further_up(
    others: dict[str, Node], node: str, before: str
) -> None:
    order = ["channel", "merchant", "division", "psp"]
    kept = permissions.serialize_access_scope(
        permissions.find_access_scope(person("before", Role.CLERK, others[before]), RIGHT)
    )
    now = person("now", Role.CLERK, others[node])
    # The division and the PSP have both merchants below them.
    reach = {"channel": 0, "merchant": 1, "division": 2, "psp": 2}
    assert permissions.still_has_permission(now, RIGHT, kept) is (reach[node] >= reach[before]), order


@pytest.mark.parametrize("wrong", ["strange channel", "strange merchant"])
def test_what_another_node_reaches_is_not_reached(others: dict[str, Node], wrong: str) -> None:
    for before in ("channel", "merchant", "division"):
        kept = permissions.serialize_access_scope(
            permissions.find_access_scope(person(f"of {before}", Role.CLERK, others[before]), RIGHT)
        )
        assert not permissions.still_has_permission(
            person(f"{wrong}, {before}", Role.CLERK, others[wrong]), RIGHT, kept
        )


def test_each_half_of_what_was_kept_has_to_be_reached(others: dict[str, Node]) -> None:
    """A merchant and a channel of another one: with one of the two the right is not had on both."""
    both = person("both", Role.CLERK, others["merchant"], others["strange channel"])
    kept = permissions.serialize_access_scope(permissions.find_access_scope(both, RIGHT))
    assert permissions.still_has_permission(both, RIGHT, kept)
    for half in ("merchant", "strange channel"):
        assert not permissions.still_has_permission(person(half, Role.CLERK, others[half]), RIGHT, kept)
    whole = person("whole", Role.CLERK, others["merchant"], others["strange merchant"])
    assert permissions.still_has_permission(whole, RIGHT, kept), "the merchant reaches the channel"


def test_everything_is_still_had_by_whoever_has_everything(shop: Shop, others: dict[str, Node]) -> None:
    root = User.objects.create_superuser("root")
    kept = permissions.serialize_access_scope(permissions.find_access_scope(root, RIGHT))
    assert permissions.still_has_permission(root, RIGHT, kept)
    assert not permissions.still_has_permission(person("clerk", Role.CLERK, others["psp"]), RIGHT, kept)
    root.is_active = False
    root.save()
    assert not permissions.still_has_permission(fresh(root), RIGHT, kept)


@pytest.mark.parametrize("role", Role)
def test_psps_are_those_of_a_role_that_has_the_right(others: dict[str, Node], role: Role) -> None:
    user = person("user", role, others["psp"])
    for right in ("gateway.add_grant", "gateway.view_psp", RIGHT):
        expected = [others["psp"]] if role in permissions.ROLES_BY_PERMISSION.get(right, ()) else []
        assert list(permissions.list_permitted_psps(user, right)) == expected, right


@pytest.mark.parametrize("node", ["channel", "merchant", "division"])
def test_who_has_a_node_below_a_psp_has_no_psp(others: dict[str, Node], node: str) -> None:
    assert list(permissions.list_permitted_psps(person("user", Role.MANAGER, others[node]), RIGHT)) == []


@pytest.mark.parametrize(
    ("node", "merchants", "channels"), [("channel", 0, 1), ("merchant", 1, 1), ("division", 2, 2), ("psp", 2, 2)]
)
def test_the_merchants_and_channels_of_a_user(
    others: dict[str, Node], node: str, merchants: int, channels: int
) -> None:
    user = person("user", Role.MANAGER, others[node])
    assert permissions.list_permitted_merchants(user, RIGHT).count() == merchants
    assert permissions.list_permitted_channels(user, RIGHT).count() == channels
    user.is_active = False
    user.save()
    assert not permissions.list_permitted_merchants(fresh(user), RIGHT).exists()
    assert not permissions.list_permitted_channels(fresh(user), RIGHT).exists()
    assert (Merchant.objects.count(), Channel.objects.count(), Division.objects.count()) == (2, 2, 1)


@pytest.mark.django_db
def test_an_entry_of_a_list_belongs_to_the_merchant_of_its_list(shop: Shop) -> None:
    """A row without a merchant of its own is found by what it hangs on."""
    entries = RiskList.objects.create(merchant=shop.merchant, name="bad", field="customer.email")
    entry = RiskListEntry.objects.create(list=entries, value="jane@mail.example")
    assert permissions.find_row_owner(entry) == permissions.RowOwner(merchant=shop.merchant.pk)


ONE, OTHER, CHANNEL = (identifiers.row_id() for _ in range(3))


@pytest.mark.parametrize(
    ("scope", "place", "covered"),
    [
        (AccessScope(merchants=frozenset({ONE})), RowOwner(merchant=ONE), True),
        (AccessScope(merchants=frozenset({ONE})), RowOwner(merchant=ONE, channel=CHANNEL), True),
        (AccessScope(merchants=frozenset({ONE})), RowOwner(merchant=OTHER), False),
        (AccessScope(merchants=frozenset({ONE})), RowOwner(), False),
        (AccessScope(channels=frozenset({CHANNEL})), RowOwner(merchant=ONE, channel=CHANNEL), True),
        (AccessScope(channels=frozenset({CHANNEL})), RowOwner(merchant=ONE), False),
        (AccessScope(channels=frozenset({CHANNEL})), RowOwner(merchant=ONE, channel=OTHER), False),
        (AccessScope(everything=True), RowOwner(), True),
        (AccessScope(), RowOwner(), False),
        (AccessScope(), RowOwner(merchant=ONE, channel=CHANNEL), False),
    ],
)
def test_a_scope_covers_its_merchants_rows_and_of_a_channel_only_its_own(
    scope: AccessScope, place: RowOwner, covered: bool
) -> None:
    """What belongs to the installation, or to a merchant as a whole, is reached from above alone."""
    assert scope.covers(place) is covered

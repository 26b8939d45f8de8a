"""Which rows a scope reaches, whose a row is, what grants add up to, and who may give which.

Source: Part A, Authentication, 2; docs/decisions/0024.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import AnonymousUser, User

from gateway.access import permissions
from gateway.access.permissions import FULL_ACCESS, NO_ACCESS, AccessScope, GrantBackend, RowOwner
from gateway.models import (
    AcquirerAccount,
    Channel,
    Division,
    Grant,
    Merchant,
    Notification,
    Payment,
    PaymentEvent,
    Psp,
    RiskList,
    RiskListEntry,
    Role,
    RoutingRule,
)

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


@pytest.mark.parametrize("scope", [FULL_ACCESS, OF_BOTH, NO_ACCESS])
def test_a_scope_is_written_down_in_one_way(scope: AccessScope) -> None:
    assert permissions.serialize_access_scope(scope) == {
        "everything": scope is FULL_ACCESS,
        "merchants": [SHOP.hex] if scope is OF_BOTH else [],
        "channels": [CHANNEL.hex] if scope is OF_BOTH else [],
    }


# --- the tree -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Tree:
    """Two PSPs. One has two divisions, of which one has two merchants; the first of them has two channels."""

    psp: Psp
    division: Division
    shop: Merchant
    till: Channel
    web: Channel
    beside: Merchant
    other_division: Division
    cousin: Merchant
    other_psp: Psp
    foreign: Merchant


@pytest.fixture(scope="module")
def tree(module_db: None) -> Tree:
    psp, other_psp = (Psp.objects.create(name=name) for name in ("one", "two"))
    division, other_division = (Division.objects.create(name=name, psp=psp) for name in ("d1", "d2"))
    far = Division.objects.create(name="d3", psp=other_psp)
    shop, beside = (Merchant.objects.create(name=name, division=division) for name in ("shop", "beside"))
    till, web = (Channel.objects.create(name=name, merchant=shop) for name in ("till", "web"))
    return Tree(
        psp=psp, division=division, shop=shop, till=till, web=web, beside=beside, other_division=other_division,
        cousin=Merchant.objects.create(name="cousin", division=other_division), other_psp=other_psp,
        foreign=Merchant.objects.create(name="foreign", division=far),
    )  # fmt: skip


def user_with(tree: Tree, *given: tuple[Role, str], **limits: Any) -> User:
    """A user with these roles on these nodes of the tree."""
    user = User.objects.create_user(f"user {User.objects.count()}")
    for role, name in given:
        node = getattr(tree, name)
        Grant.objects.create(user=user, role=role, **{type(node).__name__.lower(): node}, **limits)
    return user


def names(tree: Tree, merchants: Any) -> set[str]:
    found = {getattr(one, "pk", one) for one in merchants}
    return {name for name in ("shop", "beside", "cousin", "foreign", "till", "web") if getattr(tree, name).pk in found}


@pytest.mark.django_db
def test_a_row_belongs_to_the_merchant_and_channel_of_its_own_or_of_what_it_hangs_on(tree: Tree) -> None:
    shop, till = tree.shop, tree.till
    of_shop, of_till = RowOwner(merchant=shop.pk), RowOwner(merchant=shop.pk, channel=till.pk)
    payment = Payment(merchant=shop, channel=till)
    rows: list[tuple[Any, RowOwner]] = [
        (shop, of_shop),
        (till, of_till),
        (payment, of_till),
        (Notification(merchant=shop, channel=None), of_shop),
        (RiskList(merchant=shop), of_shop),
        (RiskListEntry(list=RiskList(merchant=shop)), of_shop),
        (PaymentEvent(payment=payment), of_till),
        (AcquirerAccount(channel=till), of_till),
        (RoutingRule(channel=till), of_till),
        (Grant(channel=till), of_till),
        (Grant(merchant=shop), of_shop),
        (Grant(division=tree.division), RowOwner()),
        (Grant(psp=tree.psp), RowOwner()),
        (tree.psp, RowOwner()),
        (tree.division, RowOwner()),
    ]
    for row, owner in rows:
        assert permissions.find_row_owner(row) == owner, row


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "owner"),
    [
        ([], None),
        (["shop"], "shop"),
        (["till"], "shop"),
        (["shop", "till", "web"], "shop"),
        (["shop", "beside"], None),
        (["till", "beside"], None),
        (["division"], None),
        (["shop", "division"], None),
    ],
)
def test_a_user_with_grants_on_one_merchant_alone_is_that_merchants(
    tree: Tree, given: list[str], owner: str | None
) -> None:
    user = user_with(tree, *((Role.CLERK, name) for name in given))
    user_with(tree, (Role.CLERK, "cousin"))
    merchant = getattr(tree, owner).pk if owner is not None else None
    assert permissions.find_row_owner(user) == RowOwner(merchant=merchant)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "reached"),
    [
        ([], set()),
        (["shop"], {"shop"}),
        (["till"], {"till"}),
        (["till", "beside"], {"till", "beside"}),
        (["division"], {"shop", "beside"}),
        (["other_division", "web"], {"cousin", "web"}),
        (["division", "other_division"], {"shop", "beside", "cousin"}),
        (["psp"], {"shop", "beside", "cousin"}),
        (["other_psp", "shop"], {"foreign", "shop"}),
    ],
)
def test_grants_reach_what_is_below_their_nodes_taken_together(tree: Tree, given: list[str], reached: set[str]) -> None:
    user = user_with(tree, *((Role.MANAGER, name) for name in given))
    scope = permissions.find_access_scope(user, "gateway.view_payment")
    assert names(tree, scope.merchants | scope.channels) == reached
    assert not scope.everything
    assert permissions.has_permission(user, "gateway.view_payment") is bool(reached)


@pytest.mark.django_db
def test_who_has_every_psp_has_everything(tree: Tree) -> None:
    user = user_with(tree, (Role.PSP, "psp"), (Role.PSP, "other_psp"))
    assert permissions.find_access_scope(user, "gateway.view_payment") == FULL_ACCESS


@pytest.mark.django_db
def test_each_right_reaches_where_a_role_that_has_it_was_given(tree: Tree) -> None:
    """A clerk of one merchant who is a developer at another one is no clerk there."""
    user = user_with(tree, (Role.CLERK, "shop"), (Role.DEVELOPER, "beside"))
    for right, reached in [
        ("gateway.operate_payment", {"shop"}),
        ("gateway.issue_accesstoken", {"beside"}),
        ("gateway.view_payment", {"shop", "beside"}),
        ("gateway.view_vault", set()),
        ("gateway.no_such", set()),
    ]:
        assert names(tree, permissions.find_access_scope(user, right).merchants) == reached, right
        assert names(tree, permissions.list_permitted_merchants(user, right)) == reached, right
        assert permissions.has_permission(user, right, tree.shop) is ("shop" in reached)
        assert permissions.has_permission(user, right, RowOwner(merchant=tree.beside.pk)) is ("beside" in reached)
        assert user.has_perm(right) is bool(reached)
        assert user.has_perm(right, tree.till) is ("shop" in reached)


@pytest.mark.django_db
def test_the_installation_is_for_whoever_has_everything(tree: Tree) -> None:
    some, every = user_with(tree, (Role.PSP, "psp")), user_with(tree, (Role.PSP, "psp"), (Role.PSP, "other_psp"))
    for right in permissions.INSTALLATION_PERMISSIONS:
        assert permissions.find_access_scope(some, right) == NO_ACCESS
        assert permissions.find_access_scope(every, right) == FULL_ACCESS


@pytest.mark.django_db
@pytest.mark.parametrize("superuser", [False, True])
def test_who_is_switched_off_has_no_right_at_all(tree: Tree, superuser: bool) -> None:
    user = user_with(tree, (Role.PSP, "psp"), (Role.PSP, "other_psp"))
    user.is_active, user.is_superuser = False, superuser
    backend = GrantBackend()
    assert permissions.find_access_scope(user, "gateway.view_payment") == NO_ACCESS
    assert not permissions.has_psp_permission(user, "gateway.view_psp")
    assert not permissions.list_permitted_psps(user, "gateway.view_psp")
    assert backend.get_all_permissions(user) == set()
    assert not backend.has_perm(user, "gateway.view_payment")
    assert not backend.has_module_perms(user, "gateway")


@pytest.mark.django_db
def test_a_superuser_has_every_right_everywhere_and_a_visitor_none(tree: Tree) -> None:
    root = User.objects.create_user("root", is_superuser=True)
    assert permissions.find_access_scope(root, "gateway.view_vault") == FULL_ACCESS
    assert set(permissions.list_permitted_psps(root, "gateway.view_psp")) == {tree.psp, tree.other_psp}
    assert permissions.find_four_eyes_limits(root, "gateway.operate_payment", tree.shop) == (None, None)
    assert permissions.can_grant_role(root, Grant(role=Role.PSP, psp=tree.psp))
    assert permissions.max_grantable_limit(root, Grant(role=Role.CLERK, merchant=tree.shop), "four_eyes_day") is None
    backend, visitor = GrantBackend(), AnonymousUser()
    assert not backend.has_perm(visitor, "gateway.view_payment")
    assert backend.get_all_permissions(visitor) == set()


@pytest.mark.django_db
def test_the_rights_of_a_user_are_those_of_the_roles_and_of_one_row_those_that_reach_it(tree: Tree) -> None:
    user = user_with(tree, (Role.CLERK, "shop"), (Role.AUDITOR, "beside"))
    backend = GrantBackend()
    clerk, auditor = (permissions.PERMISSIONS_BY_ROLE[role] for role in (Role.CLERK, Role.AUDITOR))
    assert backend.get_all_permissions(user) == clerk | auditor
    assert backend.get_all_permissions(user, tree.shop) == clerk
    assert backend.get_all_permissions(user, tree.cousin) == set()
    assert backend.has_module_perms(user, "gateway")
    assert not backend.has_module_perms(user, "gate")
    assert not backend.has_module_perms(user, "django_celery_beat")


@pytest.mark.django_db
def test_channels_and_psps_that_a_user_has(tree: Tree) -> None:
    user = user_with(tree, (Role.MANAGER, "till"), (Role.PSP, "other_psp"), (Role.CLERK, "psp"))
    assert names(tree, permissions.list_permitted_channels(user, "gateway.change_channel")) == {"till"}
    assert names(tree, permissions.list_permitted_channels(user)) == {"till", "web"}
    assert list(permissions.list_permitted_psps(user, "gateway.change_psp")) == [tree.other_psp]
    assert permissions.has_psp_permission(user, "gateway.change_psp")
    assert not permissions.has_psp_permission(user_with(tree, (Role.MANAGER, "division")), "gateway.view_payment")


@pytest.mark.django_db
def test_grants_are_read_once_and_anew_when_the_tree_has_changed(tree: Tree) -> None:
    user = user_with(tree, (Role.CLERK, "shop"))
    assert permissions.has_permission(user, "gateway.view_payment", tree.shop)
    Grant.objects.create(user=user, role=Role.CLERK, merchant=tree.beside)
    assert not permissions.has_permission(user, "gateway.view_payment", tree.beside)
    permissions.clear_grant_cache(user)
    assert permissions.has_permission(user, "gateway.view_payment", tree.beside)


# --- limits and grants --------------------------------------------------------------------------------------------

RIGHT = "gateway.operate_payment"


def give(tree: Tree, user: User, role: Role, name: str, single: str | None, day: str | None) -> None:
    node = getattr(tree, name)
    limits = dict(zip(permissions.FOUR_EYES_LIMITS, (money(single), money(day)), strict=True))
    Grant.objects.create(user=user, role=role, **{type(node).__name__.lower(): node}, **limits)


def money(text: str | None) -> Decimal | None:
    return Decimal(text) if text is not None else None


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "limits"),
    [
        ([(Role.CLERK, "shop", "10", "30")], ("10", "30")),
        ([(Role.CLERK, "shop", None, "30")], (None, "30")),
        ([(Role.CLERK, "shop", "10", None)], ("10", None)),
        ([(Role.CLERK, "shop", "0", "0")], ("0", "0")),
        # The highest of those that reach the row, each by itself.
        ([(Role.CLERK, "shop", "10", "30"), (Role.MANAGER, "division", "20", "25")], ("20", "30")),
        ([(Role.CLERK, "shop", "10", "30"), (Role.MANAGER, "shop", None, "20")], (None, "30")),
        ([(Role.CLERK, "shop", "10", "30"), (Role.CLERK, "till", "40", None)], ("40", None)),
        # Not of another row, nor of a role that has not this right.
        ([(Role.CLERK, "shop", "10", "30"), (Role.CLERK, "beside", "99", None)], ("10", "30")),
        ([(Role.CLERK, "shop", "10", "30"), (Role.CLERK, "web", "99", None)], ("10", "30")),
        ([(Role.CLERK, "shop", "10", "30"), (Role.AUDITOR, "shop", None, None)], ("10", "30")),
    ],
)
def test_a_second_person_is_needed_above_the_highest_limit_that_reaches_the_row(
    tree: Tree, given: list[tuple[Role, str, str | None, str | None]], limits: tuple[str | None, str | None]
) -> None:
    user = User.objects.create_user("limited")
    for one in given:
        give(tree, user, *one)
    assert permissions.find_four_eyes_limits(user, RIGHT, tree.till) == tuple(money(limit) for limit in limits)
    owner = RowOwner(merchant=tree.shop.pk, channel=tree.till.pk)
    assert permissions.find_four_eyes_limits(user, RIGHT, owner) == tuple(money(limit) for limit in limits)


@pytest.mark.django_db
@pytest.mark.parametrize(("role", "name"), [(Role.CLERK, "beside"), (Role.AUDITOR, "shop"), (Role.CLERK, "web")])
def test_who_has_no_right_on_a_row_has_no_limits_there_either(tree: Tree, role: Role, name: str) -> None:
    with pytest.raises(LookupError):
        permissions.find_four_eyes_limits(user_with(tree, (role, name)), RIGHT, tree.till)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("givers", "role", "node", "may"),
    [
        ((Role.MANAGER, "shop"), Role.CLERK, "shop", True),
        ((Role.MANAGER, "shop"), Role.MANAGER, "shop", True),
        ((Role.MANAGER, "shop"), Role.CLERK, "till", True),
        ((Role.MANAGER, "division"), Role.CLERK, "till", True),
        ((Role.PSP, "psp"), Role.PSP, "psp", True),
        ((Role.PSP, "psp"), Role.MANAGER, "cousin", True),
        ((Role.MANAGER, "shop"), Role.CLERK, "beside", False),
        ((Role.MANAGER, "shop"), Role.CLERK, "division", False),
        ((Role.MANAGER, "till"), Role.CLERK, "web", False),
        ((Role.MANAGER, "till"), Role.CLERK, "shop", False),
        ((Role.CLERK, "shop"), Role.MANAGER, "shop", False),
        ((Role.MANAGER, "psp"), Role.PSP, "psp", False),
        ((Role.PSP, "psp"), Role.CLERK, "foreign", False),
    ],
)
def test_a_role_is_given_by_whoever_has_all_of_it_on_all_of_the_node(
    tree: Tree, givers: tuple[Role, str], role: Role, node: str, may: bool
) -> None:
    giver, place = user_with(tree, givers), getattr(tree, node)
    grant = Grant(role=role, **{type(place).__name__.lower(): place})
    assert permissions.can_grant_role(giver, grant) is may
    assert permissions.can_grant_with_limits(giver, grant) is may
    giver.is_active = False
    assert not permissions.can_grant_role(giver, grant)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("own", "asked", "excessive"),
    [
        (("10", "30"), ("10", "30"), {}),
        (("10", "30"), ("9.99", "29.99"), {}),
        (("10", "30"), ("10.01", "30"), {"four_eyes_above": "10"}),
        (("10", "30"), ("10", "30.01"), {"four_eyes_day": "30"}),
        (("10", "30"), (None, None), {"four_eyes_above": "10", "four_eyes_day": "30"}),
        ((None, "30"), (None, "30"), {}),
        ((None, None), (None, None), {}),
        ((None, None), ("99", "99"), {}),
    ],
)
def test_nobody_gives_a_higher_limit_than_their_own(
    tree: Tree, own: tuple[str | None, str | None], asked: tuple[str | None, str | None], excessive: dict[str, str]
) -> None:
    giver = User.objects.create_user("giver")
    give(tree, giver, Role.MANAGER, "shop", *own)
    give(tree, giver, Role.MANAGER, "beside", None, None)
    limits = dict(zip(permissions.FOUR_EYES_LIMITS, map(money, asked), strict=True))
    grant = Grant(role=Role.CLERK, channel=tree.till, **limits)
    assert permissions.find_excessive_limits(giver, grant) == {name: Decimal(most) for name, most in excessive.items()}
    assert permissions.can_grant_with_limits(giver, grant) is (not excessive)
    # A role that moves no money has no limits.
    assert permissions.find_excessive_limits(giver, Grant(role=Role.AUDITOR, channel=tree.till)) == {}


@pytest.mark.django_db
def test_of_two_rights_that_move_money_the_lower_limit_bounds(tree: Tree) -> None:
    """A clerk's own limit says nothing of approving, which a manager's does."""
    giver = User.objects.create_user("giver")
    give(tree, giver, Role.MANAGER, "shop", "10", None)
    give(tree, giver, Role.CLERK, "shop", "50", "60")
    manager, clerk = (Grant(role=role, merchant=tree.shop) for role in (Role.MANAGER, Role.CLERK))
    assert permissions.max_grantable_limit(giver, manager, "four_eyes_above") == Decimal(10)
    assert permissions.max_grantable_limit(giver, clerk, "four_eyes_above") == Decimal(50)
    assert permissions.max_grantable_limit(giver, manager, "four_eyes_day") is None


# --- a right that was had before ----------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("given", "earlier", "still"),
    [
        ([], [], True),
        ([], ["till"], False),
        ([], ["shop"], False),
        (["shop"], ["shop"], True),
        (["shop"], ["till"], True),
        (["shop"], ["till", "web", "shop"], True),
        (["shop"], ["shop", "beside"], False),
        (["beside"], ["till"], False),
        (["till"], ["till"], True),
        (["till"], ["web"], False),
        (["till"], ["till", "web"], False),
        (["till"], ["shop"], False),
        (["till", "beside"], ["till", "beside"], True),
        (["division"], ["shop", "beside", "web"], True),
        (["division"], ["cousin"], False),
        (["psp"], ["everything"], False),
    ],
)
def test_a_right_is_still_there_on_all_of_a_scope_or_it_is_not(
    tree: Tree, given: list[str], earlier: list[str], still: bool
) -> None:
    """Channels of merchants that the user has as a whole are theirs, too."""
    user = user_with(tree, *((Role.CLERK, name) for name in given))
    merchants, channels = (
        frozenset(getattr(tree, name).pk for name in earlier if name in of)
        for of in (("shop", "beside", "cousin"), ("till", "web"))
    )
    kept = permissions.serialize_access_scope(
        AccessScope(everything="everything" in earlier, merchants=merchants, channels=channels)
    )
    assert kept == {
        "everything": "everything" in earlier,
        "merchants": sorted(pk.hex for pk in merchants),
        "channels": sorted(pk.hex for pk in channels),
    }
    assert permissions.still_has_permission(user, "gateway.view_payment", kept) is still
    assert not permissions.still_has_permission(user, "gateway.view_vault", kept) or not earlier


@pytest.mark.django_db
def test_whoever_has_everything_still_has_any_scope(tree: Tree) -> None:
    root = User.objects.create_user("root", is_superuser=True)
    for scope in (FULL_ACCESS, NO_ACCESS, AccessScope(merchants=frozenset({tree.foreign.pk}))):
        kept = permissions.serialize_access_scope(scope)
        assert permissions.still_has_permission(root, "gateway.view_payment", kept)

"""Users and what they may: a manager looks after the users of their own merchants and grants no more than they have.

Source: issue 7; docs/decisions/0024.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from gateway.models import AuditEntry, Grant, Role
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
LIST, ADD = "/admin/auth/user/", "/admin/auth/user/add/"


def fields(name: str = "newcomer", *grants: dict[str, str], there: int = 0) -> dict[str, str]:
    form = {
        "username": name, "is_active": "on", "grants-TOTAL_FORMS": str(len(grants)),
        "grants-INITIAL_FORMS": str(there), "grants-MIN_NUM_FORMS": "0", "grants-MAX_NUM_FORMS": "1000",
    }  # fmt: skip
    for place, grant in enumerate(grants):
        form |= {f"grants-{place}-{key}": value for key, value in grant.items()}
    return form


def clerk_of(shop: Shop, **more: str) -> dict[str, str]:
    return {"role": "clerk", "merchant": str(shop.merchant.pk), **more}


def test_a_manager_makes_a_user_of_their_merchant(shop: Shop) -> None:
    """Issue 7: the new user chooses the password by a link that is shown once."""
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant))
    page = boss.post(ADD, fields("newcomer", clerk_of(shop, four_eyes_above="100.00")))
    assert page.status_code == 200, page
    assert "/admin/welcome/" in page.content.decode()
    user = User.objects.get(username="newcomer")
    assert (user.is_staff, user.is_superuser, user.has_usable_password()) == (True, False, False)
    grant = Grant.objects.get(user=user)
    assert (grant.role, grant.merchant, str(grant.four_eyes_above)) == ("clerk", shop.merchant, "100.00")
    assert {"create"} == set(AuditEntry.objects.filter(actor="boss").values_list("action", flat=True))


@pytest.mark.parametrize("who", ["psp", "stranger", "nowhere"])
def test_nobody_grants_more_than_they_have(shop: Shop, stranger: Shop, who: str) -> None:
    """Issue 7: a manager can grant no more than they have."""
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant))
    grant = {
        "psp": {"role": "psp", "psp": str(shop.merchant.division.psp.pk)},
        "stranger": clerk_of(stranger),
        "nowhere": {"role": "clerk"},
    }[who]
    boss.post(ADD, fields("newcomer", grant))
    assert not User.objects.filter(username="newcomer").exists()


def test_a_clerk_sees_no_users(shop: Shop) -> None:
    """Issue 7."""
    client = signed_in(person("clerk", Role.CLERK, shop.merchant))
    assert client.get(LIST).status_code == 403
    assert client.get(ADD).status_code == 403
    assert client.post(ADD, fields("newcomer", clerk_of(shop))).status_code == 403


def test_a_manager_sees_and_changes_users_of_their_merchants_only(shop: Shop, stranger: Shop) -> None:
    """Issue 7: a manager manages users of their own merchants only."""
    own, theirs = person("own", Role.CLERK, shop.merchant), person("theirs", Role.CLERK, stranger.merchant)
    both = person("both", Role.CLERK, shop.merchant, stranger.merchant)
    root = User.objects.create_superuser("root")
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant))
    page = boss.get(LIST).content.decode()
    assert [f"{LIST}{user.pk}/change/" in page for user in (own, both, theirs, root)] == [True, True, False, False]
    for user, seen, changed in ((own, 200, 302), (both, 200, 403), (theirs, 404, 404), (root, 404, 404)):
        path = f"{LIST}{user.pk}/change/"
        assert boss.get(path).status_code == seen, user
        assert boss.post(path, fields(f"{user}x")).status_code == changed, user
        assert boss.post(f"{LIST}{user.pk}/act/", {"act": "link"}).status_code in (
            (200,) if user == own else (403, 404)
        )


def test_nobody_raises_their_own_rights(shop: Shop) -> None:
    """Issue 7."""
    user = person("boss", Role.MANAGER, shop.merchant)
    boss = signed_in(user)
    boss.post(f"{LIST}{user.pk}/change/", fields("boss", {"role": "auditor", "merchant": str(shop.merchant.pk)}))
    assert [grant.role for grant in Grant.objects.filter(user=user)] == ["manager"]


@pytest.mark.parametrize("extra", [{"is_superuser": "on"}, {"is_staff": "on", "password": "x"}])
def test_a_form_makes_no_superuser(shop: Shop, extra: dict[str, str]) -> None:
    """Issue 7: superusers are made by command."""
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant))
    boss.post(ADD, fields("newcomer", clerk_of(shop)) | extra)
    user = User.objects.get(username="newcomer")
    assert (user.is_superuser, user.has_usable_password()) == (False, False)


@pytest.mark.parametrize("method", ["post"])
def test_rights_are_changed_by_whoever_was_seen_a_moment_ago(shop: Shop, method: str) -> None:
    """Issue 7: sudo-style re-authentication."""
    boss: Any = signed_in(person("boss", Role.MANAGER, shop.merchant), fresh=False)
    answer = getattr(boss, method)(ADD, fields("newcomer", clerk_of(shop)))
    assert answer["Location"].startswith("/admin/again/")
    assert not User.objects.filter(username="newcomer").exists()

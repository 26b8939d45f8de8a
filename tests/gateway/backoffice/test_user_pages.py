"""Users and what they may: a manager looks after the users of their own merchants and grants no more than they have.

Source: docs/decisions/0024.
"""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User

from gateway.models import AuditEntry, Grant, Role, UserHandling
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in

pytestmark = pytest.mark.django_db
LIST, ADD = "/admin/auth/user/", "/admin/auth/user/add/"


def fields(name: str = "newcomer", *grants: dict[str, str], there: int = 0) -> dict[str, str]:
    form = {
        "username": name,
        "is_active": "on",
        "grants-TOTAL_FORMS": str(len(grants)),
        "grants-INITIAL_FORMS": str(there),
        "grants-MIN_NUM_FORMS": "0",
        "grants-MAX_NUM_FORMS": "1000",
    }
    for place, grant in enumerate(grants):
        form |= {f"grants-{place}-{key}": value for key, value in grant.items()}
    return form


def clerk_of(shop: Shop, **more: str) -> dict[str, str]:
    return {"role": "clerk", "merchant": str(shop.merchant.pk), **more}


def test_a_manager_makes_a_user_of_their_merchant(shop: Shop) -> None:
    """The new user chooses the password by a link that is shown once."""
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
    """A manager can grant no more than they have."""
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant))
    grant = {
        "psp": {"role": "psp", "psp": str(shop.merchant.division.psp.pk)},
        "stranger": clerk_of(stranger),
        "nowhere": {"role": "clerk"},
    }[who]
    boss.post(ADD, fields("newcomer", grant))
    assert not User.objects.filter(username="newcomer").exists()


def test_a_clerk_sees_no_users(shop: Shop) -> None:
    client = signed_in(person("clerk", Role.CLERK, shop.merchant))
    assert client.get(LIST).status_code == 403
    assert client.get(ADD).status_code == 403
    assert client.post(ADD, fields("newcomer", clerk_of(shop))).status_code == 403


def test_a_manager_sees_and_changes_users_of_their_merchants_only(shop: Shop, stranger: Shop) -> None:
    """A manager manages users of their own merchants only."""
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
    user = person("boss", Role.MANAGER, shop.merchant)
    boss = signed_in(user)
    boss.post(f"{LIST}{user.pk}/change/", fields("boss", {"role": "auditor", "merchant": str(shop.merchant.pk)}))
    assert [grant.role for grant in Grant.objects.filter(user=user)] == ["manager"]


@pytest.mark.parametrize("extra", [{"is_superuser": "on"}, {"is_staff": "on", "password": "x"}])
def test_a_form_makes_no_superuser(shop: Shop, extra: dict[str, str]) -> None:
    """Superusers are made by command."""
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant))
    boss.post(ADD, fields("newcomer", clerk_of(shop)) | extra)
    user = User.objects.get(username="newcomer")
    assert (user.is_superuser, user.has_usable_password()) == (False, False)


@pytest.mark.parametrize("method", ["post"])
def test_rights_are_changed_by_whoever_was_seen_a_moment_ago(shop: Shop, method: str) -> None:
    """Sudo-style re-authentication."""
    boss: Any = signed_in(person("boss", Role.MANAGER, shop.merchant), fresh=False)
    answer = getattr(boss, method)(ADD, fields("newcomer", clerk_of(shop)))
    assert answer["Location"].startswith("/admin/again/")
    assert not User.objects.filter(username="newcomer").exists()


# --- nobody gets more than they have, limits included -----------------------------------------------------------------


@pytest.mark.parametrize(("limit", "made"), [("", False), ("50.01", False), ("50.00", True), ("0.00", True)])
def test_nobody_grants_a_limit_above_their_own(shop: Shop, limit: str, made: bool) -> None:
    """Found in use: a manager with a limit made a manager without one, who approved the manager's requests."""
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant, four_eyes_above="50.00"))
    grant = {"role": "manager", "merchant": str(shop.merchant.pk), "four_eyes_above": limit}
    page = boss.post(ADD, fields("sock", grant)).content.decode()
    assert User.objects.filter(username="sock").exists() is made
    assert ("at most 50.00" in page) is not made


@pytest.mark.parametrize(("limit", "made"), [("", False), ("500.01", False), ("500.00", True)])
def test_nobody_grants_a_limit_of_a_day_above_their_own(shop: Shop, limit: str, made: bool) -> None:
    """As with the limit of one payment: a second user would be a second day."""
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant, four_eyes_day="500.00"))
    grant = {"role": "clerk", "merchant": str(shop.merchant.pk), "four_eyes_above": "", "four_eyes_day": limit}
    page = boss.post(ADD, fields("sock", grant)).content.decode()
    assert User.objects.filter(username="sock").exists() is made
    assert ("at most 500.00" in page) is not made


def test_a_limit_counts_for_the_place_it_stands_at(shop: Shop, stranger: Shop) -> None:
    """No limit at one merchant gives none away at another; roles that move no money need none."""
    user = person("boss", Role.MANAGER, shop.merchant, four_eyes_above="50.00")
    Grant.objects.create(user=user, role=Role.MANAGER, merchant=stranger.merchant)
    boss = signed_in(user)
    boss.post(ADD, fields("one", clerk_of(shop)))
    boss.post(ADD, fields("two", clerk_of(stranger)))
    boss.post(ADD, fields("three", {"role": "auditor", "merchant": str(shop.merchant.pk)}))
    assert set(User.objects.exclude(username="boss").values_list("username", flat=True)) == {"two", "three"}


def test_a_peer_with_a_higher_limit_is_ruled_by_nobody_below(shop: Shop) -> None:
    """Found in use: the page gave a link that sets the password of a manager without a limit."""
    peer = person("peer", Role.MANAGER, shop.merchant)
    clerk = person("clerk", Role.CLERK, shop.merchant, four_eyes_above="20.00")
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant, four_eyes_above="50.00"))
    for act in ("link", "remove factor", "end sessions"):
        assert boss.post(f"{LIST}{peer.pk}/act/", {"act": act}).status_code == 403
    assert boss.post(f"{LIST}{peer.pk}/change/", fields("peer")).status_code == 403
    grant = Grant.objects.get(user=clerk)
    form = fields("clerk", {**clerk_of(shop), "id": str(grant.pk), "user": str(clerk.pk)}, there=1)
    for limit, kept in (("", "20.00"), ("50.01", "20.00"), ("50.00", "50.00")):
        boss.post(f"{LIST}{clerk.pk}/change/", form | {"grants-0-four_eyes_above": limit})
        grant.refresh_from_db()
        assert str(grant.four_eyes_above) == kept


def test_a_user_is_shown_with_the_roles_in_ones_own_part_of_the_tree(shop: Shop, stranger: Shop) -> None:
    """Found in use: another merchant's name stood beside a user whom both know."""
    both = person("both", Role.CLERK, shop.merchant, stranger.merchant)
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant))
    for page in (LIST, f"{LIST}{both.pk}/change/"):
        text = boss.get(page).content.decode()
        assert "clerk: Shop, and elsewhere" in text, page
        assert stranger.merchant.name not in text, page
        assert str(stranger.merchant.pk) not in text, page


def test_a_merchants_auditor_sees_who_was_made_and_helped_in(shop: Shop, stranger: Shop) -> None:
    """Found in use: users, password links and sign-ins had no merchant in the trail, and so no auditor of one."""
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant))
    boss.post(ADD, fields("newcomer", clerk_of(shop)))
    user = User.objects.get(username="newcomer")
    boss.post(f"{LIST}{user.pk}/act/", {"act": "link"})
    entries = AuditEntry.objects.filter(subject="user", subject_id=str(user.pk), actor="boss")
    assert list(entries.order_by("id").values_list("action", flat=True)) == ["create", "password link"]
    own, theirs = (
        signed_in(person(name, Role.AUDITOR, each.merchant)) for name, each in (("own", shop), ("theirs", stranger))
    )
    for entry in entries:
        path = f"/admin/gateway/auditentry/{entry.pk}/change/"
        assert (own.get(path).status_code, theirs.get(path).status_code) == (200, 404)


def test_somebody_keeps_their_name_and_nobody_gets_one_like_it(shop: Shop) -> None:
    """Found in use: a manager renamed themself to Clerk1, and the trail knew only that name."""
    user, clerk = person("boss", Role.MANAGER, shop.merchant), person("clerk1", Role.CLERK, shop.merchant)
    boss = signed_in(user)
    for each in (user, clerk):
        boss.post(f"{LIST}{each.pk}/change/", fields("Clerk2") | {"email": "new@shop.example"})
        name = each.username
        each.refresh_from_db()
        assert (each.username, each.email) == (name, "new@shop.example")
    page = boss.post(ADD, fields("CLERK1", clerk_of(shop)))
    assert "is there already" in page.content.decode()
    assert not User.objects.filter(username="CLERK1").exists()


def test_a_user_without_a_role_is_a_word_beside_the_form(shop: Shop) -> None:
    """Found in use: a bare 403, and all that was typed was lost."""
    boss = signed_in(person("boss", Role.MANAGER, shop.merchant))
    page = boss.post(ADD, fields("newcomer"))
    assert page.status_code == 200
    assert "Give the new user a role" in page.content.decode()
    assert 'value="newcomer"' in page.content.decode()
    assert not User.objects.filter(username="newcomer").exists()
    root = signed_in(User.objects.create_superuser("root"))
    root.post(ADD, fields("free"))
    assert User.objects.filter(username="free").exists()


def test_who_makes_or_resets_a_user_is_kept_and_a_third_person_confirms(shop: Shop) -> None:
    """docs/decisions/0053: limits count people."""
    boss_user = person("boss", Role.MANAGER, shop.merchant)
    boss = signed_in(boss_user)
    boss.post(ADD, fields("newcomer", clerk_of(shop)))
    user = User.objects.get(username="newcomer")
    tie = UserHandling.objects.get()
    assert (tie.by, tie.user, tie.action) == (boss_user, user, "create")
    page, act = f"{LIST}{user.pk}/change/", f"{LIST}{user.pk}/act/"
    assert "One person or two?" in boss.get(page).content.decode()
    boss.post(act, {"act": "confirm", "handling": str(tie.pk)})
    assert UserHandling.objects.get().confirmed_by is None
    third = person("third", Role.MANAGER, shop.merchant)
    assert str(tie.pk) in signed_in(third).get(page).content.decode()
    signed_in(third).post(act, {"act": "confirm", "handling": str(tie.pk)})
    assert UserHandling.objects.get().confirmed_by == third
    assert AuditEntry.objects.filter(action="confirm person", actor="third").exists()
    for verb in ("link", "remove factor"):
        boss.post(act, {"act": verb})
        assert UserHandling.objects.get().confirmed_by is None, verb
        UserHandling.objects.update(confirmed_by=third)
    boss.post(act, {"act": "end sessions"})
    assert UserHandling.objects.get().confirmed_by == third, "ended sessions let nobody in"
    changed = fields("newcomer") | {"email": "new@shop.example"}
    assert boss.post(page, changed).status_code == 302
    assert UserHandling.objects.get().confirmed_by is None

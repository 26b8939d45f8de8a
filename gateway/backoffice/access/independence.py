"""Independence: which users of the back office may be one person. Limits and approvals count people, not users.

Whoever makes a user, gives it a password link, resets its second factor or changes its rights may sign in as that user
later. Each such handling is a tie (gateway.models.UserHandling). It holds, over any number of users between, until an
independent third person confirms that the two are different people. A person without any limit gains nothing by a
second user, so ties through such a person do not count. Source: docs/decisions/0053.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from gateway.access import audit_log, permissions
from gateway.access.permissions import RowOwner
from gateway.core import clock, identifiers
from gateway.models import UserHandling

MOVE_MONEY_PERMISSION: Final = "gateway.operate_payment"


class NotIndependentError(Exception):
    """The person does not count as a second one; the message says why."""


@dataclass(frozen=True, slots=True)
class HandlingTies:
    """Ties that hold: user → users that handled it, and the reverse."""

    above: Mapping[int, frozenset[int]]
    below: Mapping[int, frozenset[int]]

    def handlers(self, user: int) -> frozenset[int]:
        """The user, and every user that may be acting as it."""
        return _collect_reachable(self.above, user)

    def handled_users(self, user: int) -> frozenset[int]:
        """The user, and every user that it may be acting as."""
        return _collect_reachable(self.below, user)

    def group(self, user: int) -> frozenset[int]:
        """All users tied to this one in either direction, over any number of users between."""
        both = {
            each: self.above.get(each, frozenset()) | self.below.get(each, frozenset())
            for each in {*self.above, *self.below}
        }
        return _collect_reachable(both, user)


def _collect_reachable(edges: Mapping[int, frozenset[int]], start: int) -> frozenset[int]:
    found, new = {start}, [start]
    while new:
        new = [each for user in new for each in edges.get(user, ()) if each not in found]
        found.update(new)
    return frozenset(found)


def load_handling_ties(place: RowOwner) -> HandlingTies:
    """Load the ties that hold at ``place``; there are about as many as users.

    A confirmed tie does not hold, unless whoever confirmed it is today not independent of whoever handled the user: the
    two may have been one person all along, who had no limit then or has none elsewhere. Whether they are independent is
    asked of the ties without those confirmations that are sound so far, so that two confirmations never rest on each
    other alone.
    """
    rows = list(UserHandling.objects.values_list("by", "user", "confirmed_by"))
    while True:
        ties = _build_ties((by, user) for by, user, _third in rows)
        doubtful = [row for row in rows if row[2] is None or _list_limited_actors(ties, row[2], row[0], place)]
        if len(doubtful) == len(rows):
            return ties
        rows = doubtful


def _build_ties(pairs: Iterable[tuple[int, int]]) -> HandlingTies:
    """The ties of pairs of users: the one who handled, and the one who was handled."""
    above: dict[int, set[int]] = {}
    below: dict[int, set[int]] = {}
    for by, user in pairs:
        above.setdefault(user, set()).add(by)
        below.setdefault(by, set()).add(user)
    return HandlingTies(
        above={user: frozenset(found) for user, found in above.items()},
        below={user: frozenset(found) for user, found in below.items()},
    )


# --- what ties mean -------------------------------------------------------------------------------------------------


def find_user_limits(user: User, place: RowOwner) -> tuple[Decimal | None, Decimal | None] | None:
    """The user's own limits there, per payment and per 24 hours. None: the user may move no money there."""
    if not user.is_active:
        return None
    try:
        return permissions.find_four_eyes_limits(user, MOVE_MONEY_PERMISSION, place)
    except LookupError:
        return None


def is_unlimited_user(user: User, place: RowOwner) -> bool:
    """Whether the user's own limits there allow any amount without an approval."""
    return find_user_limits(user, place) == (None, None)


def is_unlimited_person(user: User, place: RowOwner) -> bool:
    """Whether the user, and every user that may be acting as it, may move any amount there without an approval."""
    return is_unlimited_user(user, place) and not list_acting_people(user.pk, user.get_username(), place, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActingPerson:
    """A person who may be acting as a user. With all their users together they move no more than ``limit`` on one
    payment and ``day`` within 24 hours. None: no limit."""

    user: int
    name: str
    limit: Decimal | None
    day: Decimal | None
    users: frozenset[int]
    names: tuple[str, ...]


def list_acting_people(
    user: int, name: str, place: RowOwner, limit: Decimal | None, day: Decimal | None
) -> list[ActingPerson]:
    """Everybody who may be acting as ``user`` and has a limit, the user itself first. ``limit`` and ``day``: the user's
    own limits, which also bind people behind it who may (no longer) move money of their own."""
    ties = load_handling_ties(place)
    handlers = ties.handlers(user)
    if len(handlers) == 1 and len(ties.handled_users(user)) == 1:
        own = ActingPerson(user=user, name=name, limit=limit, day=day, users=frozenset({user}), names=(name,))
        return [own] if (limit, day) != (None, None) else []
    handled_users = {each: ties.handled_users(each) for each in handlers}
    found = {each.pk: each for each in User.objects.filter(pk__in=frozenset().union(*handled_users.values()))}
    people = []
    for each in sorted(handlers, key=lambda one: (one != user, one)):
        own_limits = (limit, day) if each == user else find_user_limits(found[each], place) or (limit, day)
        if own_limits != (None, None):
            names = tuple(sorted(found[one].get_username() for one in handled_users[each]))
            people.append(
                ActingPerson(
                    user=each,
                    name=found[each].get_username(),
                    limit=own_limits[0],
                    day=own_limits[1],
                    users=handled_users[each],
                    names=names,
                )
            )
    return people


def list_common_actors(one: int, other: int, place: RowOwner) -> list[str]:
    """Names of the people who may be acting as both users, without those who have no limit there. Empty: two people."""
    return _list_limited_actors(load_handling_ties(place), one, other, place)


def _list_limited_actors(ties: HandlingTies, one: int, other: int, place: RowOwner) -> list[str]:
    both = ties.handlers(one) & ties.handlers(other)
    users = User.objects.filter(pk__in=both).order_by("username") if both else ()
    return [user.get_username() for user in users if not is_unlimited_user(user, place)]


def list_acting_names(user: int, place: RowOwner) -> set[str]:
    """Names of all users that a person behind ``user`` may be acting as, including its own."""
    ties = load_handling_ties(place)
    found = {each.pk: each for each in User.objects.filter(pk__in=ties.group(user))}
    behind = [each for each in ties.handlers(user) if each == user or not is_unlimited_user(found[each], place)]
    return {found[one].get_username() for each in behind for one in ties.handled_users(each)}


def find_counter_user(user: int) -> int:
    """The user whose counter is raised for all users of this one's group, so that parallel follow-ups of the group
    cannot pass its limits. Confirmed ties count, too: at some places they may hold."""
    return min(_build_ties(UserHandling.objects.values_list("by", "user")).group(user))


# --- ties -----------------------------------------------------------------------------------------------------------


def record_handling(by: Any, user: Any, action: str) -> None:
    """Record that ``by`` made, reset or changed ``user``, in the transaction of the change. It ends an earlier
    confirmation of the pair, which was about what was known then."""
    if by.pk is None or by.pk == user.pk:
        return
    now = clock.real_now()
    UserHandling.objects.bulk_create(
        [UserHandling(id=identifiers.row_id(), by_id=by.pk, user_id=user.pk, action=action[:32], at=now)],
        update_conflicts=True,
        unique_fields=["user", "by"],
        update_fields=["action", "at", "confirmed_by", "confirmed_at"],
    )


def list_open_handlings(user: User) -> list[UserHandling]:
    """Handlings of a user that no independent person has confirmed: who made, reset or changed it."""
    holding = load_handling_ties(permissions.find_row_owner(user)).above.get(user.pk, frozenset())
    rows = UserHandling.objects.filter(user=user, by__in=holding)
    return list(rows.select_related("by", "user").order_by("by__username"))


def explain_confirmation_refusal(row: UserHandling, by: User) -> str:
    """Why ``by`` cannot confirm that a tie's two users are two people; "" if they can."""
    if by.pk in (row.by_id, row.user_id):
        return _("Somebody else has to confirm this: you are one of the two.")
    if names := list_common_actors(by.pk, row.by_id, permissions.find_row_owner(row.user)):
        return _("Somebody else has to confirm this: you are not independent of %s.") % ", ".join(names)
    return ""


@transaction.atomic
def confirm_independence(row: UserHandling, *, by: User, actor: audit_log.Actor) -> None:
    """Record that an independent third person confirms a tie's two users as two people. Raises NotIndependentError."""
    row = UserHandling.objects.select_for_update(of=("self",)).select_related("by", "user").get(pk=row.pk)
    if row.by_id not in load_handling_ties(permissions.find_row_owner(row.user)).above.get(row.user_id, frozenset()):
        return
    if why := explain_confirmation_refusal(row, by):
        raise NotIndependentError(why)
    row.confirmed_by, row.confirmed_at = by, clock.real_now()
    row.save(update_fields=["confirmed_by", "confirmed_at"])
    audit_log.record_audit_entry(actor, "confirm person", row.user, after={"made or changed by": row.by.get_username()})

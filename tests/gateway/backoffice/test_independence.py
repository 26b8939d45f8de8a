"""Limits and approvals count people, not users: who makes, resets or changes a user does not act as two.

Source: docs/decisions/0053.
"""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from gateway.access import audit_log, permissions, tokens
from gateway.backoffice.access import independence, token_approvals
from gateway.backoffice.access.independence import NotIndependentError
from gateway.backoffice.follow_ups import approvals, clerk_limits, manual_follow_up
from gateway.backoffice.follow_ups.clerk_limits import Clerk, ClerkLimitExceededError
from gateway.backoffice.follow_ups.manual_follow_up import FollowUpNotPossibleError, FollowUpOrder
from gateway.backoffice.personal_data import erasure_requests
from gateway.core import clock, identifiers
from gateway.models import Approval, ErasureRequest, Grant, Payment, Role, UserHandling
from gateway.payments.chain_amounts import Chain
from reporting.models import MonthClosing
from reporting.month_end import closing
from tests.support.fixtures import Shop
from tests.support.office import person

ACTOR = audit_log.Actor(name="tests")
LIMITS = {"four_eyes_above": Decimal("100.00"), "four_eyes_day": Decimal("150.00")}


def worker(shop: Shop, name: str, **more: Decimal | None) -> User:
    """A manager of the shop: 100.00 on one payment and 150.00 in 24 hours, or as ``more`` says."""
    return person(name, Role.MANAGER, shop.merchant, **{**LIMITS, **more})


def boss_of(shop: Shop) -> User:
    return person("boss", Role.PSP, shop.merchant.division.psp)


def clerk(user: User, shop: Shop) -> Clerk:
    """As a page builds it, of the user's grants as they are now."""
    permissions.clear_grant_cache(user)
    limit, day = permissions.find_four_eyes_limits(user, "gateway.operate_payment", shop.channel)
    return Clerk(user=user.pk, name=user.get_username(), ip=None, limit=limit, day=day)


def paid(shop: Shop, amount: str = "92.00") -> Payment:
    made = shop.api.pay(amount=amount)
    return Payment.objects.select_related("merchant", "channel").get(pk=made.id)


def refund(shop: Shop, user: User, amount: str, target: Payment | None = None) -> Payment:
    order = FollowUpOrder(target=target or paid(shop), code="RF", amount=Decimal(amount))
    return manual_follow_up.send_follow_up(order, clerk(user, shop), identifiers.row_id())[0]


def request(shop: Shop, user: User, amount: str = "60.00", target: Payment | None = None) -> Approval:
    order = FollowUpOrder(target=target or paid(shop), code="RF", amount=Decimal(amount))
    by = clerk(user, shop)
    met = manual_follow_up.check_clerk_limit(by, order, Chain([order.target]))
    assert met is not None
    return approvals.request_approval(order, "", by=by, key=identifiers.row_id(), met=met)[0]


def approve(shop: Shop, row: Approval, user: User) -> str:
    return str(approvals.decide_approval(row.pk, approve=True, note="", by=clerk(user, shop)).state)


def test_a_user_made_beforehand_neither_approves_nor_has_a_day_of_its_own(shop: Shop) -> None:
    """A manager with limits makes a second user and acts as two."""
    mia, puppet = worker(shop, "mia"), worker(shop, "puppet")
    independence.record_handling(mia, puppet, "create")
    refund(shop, mia, "60.00")
    refund(shop, puppet, "60.00")
    for user in (mia, puppet):
        with pytest.raises(ClerkLimitExceededError):
            refund(shop, user, "60.00")
    asked = request(shop, mia)
    with pytest.raises(FollowUpNotPossibleError, match="mia made or changed"):
        approve(shop, asked, puppet)
    with pytest.raises(FollowUpNotPossibleError, match="mia made or changed"):
        approve(shop, request(shop, puppet), mia)
    assert approve(shop, asked, boss_of(shop)) == "DONE"


def test_limits_of_one_payment_are_one_for_all_users_of_a_person(shop: Shop) -> None:
    mia, puppet = worker(shop, "mia", four_eyes_day=None), worker(shop, "puppet", four_eyes_day=None)
    independence.record_handling(mia, puppet, "password link")
    target = paid(shop, "500.00")
    refund(shop, mia, "60.00", target)
    with pytest.raises(ClerkLimitExceededError):
        refund(shop, puppet, "60.00", target)
    refund(shop, puppet, "40.00", target)


def test_a_chain_of_makers_counts_and_so_do_two_users_of_one_maker(shop: Shop) -> None:
    a, b, c, d = (worker(shop, name) for name in "abcd")
    independence.record_handling(a, b, "create")
    independence.record_handling(b, c, "create")
    independence.record_handling(a, d, "remove factor")
    others = worker(shop, "other")
    for one, another in ((a, c), (c, a), (b, d), (c, d)):
        row = request(shop, one, "100.01", paid(shop, "200.00"))
        with pytest.raises(FollowUpNotPossibleError, match="made or changed"):
            approve(shop, row, another)
    assert independence.list_common_actors(c.pk, others.pk, permissions.find_row_owner(shop.channel)) == []


def test_who_may_move_any_amount_alone_ties_no_users_together(shop: Shop) -> None:
    """PSP staff makes the users of a merchant, who are different people."""
    boss, clara, max_ = (
        boss_of(shop),
        worker(shop, "clara"),
        worker(shop, "max", four_eyes_above=None, four_eyes_day=None),
    )
    for user in (clara, max_):
        independence.record_handling(boss, user, "create")
    assert approve(shop, request(shop, clara, "100.01", paid(shop, "200.00")), max_) == "DONE"
    boss.is_active = False
    boss.save()
    with pytest.raises(FollowUpNotPossibleError, match="boss made or changed"):
        approve(shop, request(shop, clara, "100.01", paid(shop, "200.00")), max_)


def test_a_maker_whose_own_limit_was_lowered_later_binds_the_users_they_made(shop: Shop) -> None:
    mia, puppet = worker(shop, "mia", four_eyes_above=Decimal("10.00")), worker(shop, "puppet")
    independence.record_handling(mia, puppet, "create")
    with pytest.raises(ClerkLimitExceededError):
        refund(shop, puppet, "10.01")
    mia.is_active = False
    mia.save()
    refund(shop, puppet, "10.01")


def test_an_independent_third_person_confirms_that_two_users_are_two_people(shop: Shop) -> None:
    mia = worker(shop, "mia", four_eyes_above=Decimal("500.00"), four_eyes_day=Decimal("500.00"))
    carl, third, puppet = (worker(shop, name) for name in ("carl", "third", "puppet"))
    independence.record_handling(mia, carl, "create")
    independence.record_handling(mia, puppet, "create")
    (tie,) = independence.list_open_handlings(carl)
    for user in (mia, carl, puppet):
        with pytest.raises(NotIndependentError):
            independence.confirm_independence(tie, by=user, actor=ACTOR)
    independence.confirm_independence(tie, by=third, actor=ACTOR)
    assert independence.list_open_handlings(carl) == []
    big = worker(shop, "big", four_eyes_above=None, four_eyes_day=None)
    independence.record_handling(mia, big, "change")
    row = request(shop, carl, "100.01", paid(shop, "200.00"))
    assert approve(shop, row, big) == "DONE"
    independence.record_handling(mia, carl, "password link")
    with pytest.raises(FollowUpNotPossibleError, match="mia made or changed"):
        approve(shop, request(shop, carl, "100.01", paid(shop, "200.00")), big)


def test_who_had_no_limit_then_has_prepared_no_second_person_for_today(shop: Shop) -> None:
    """Before there are limits somebody makes two users and has one of them confirm the other."""
    mia, puppet, prop = (
        worker(shop, name, four_eyes_above=None, four_eyes_day=None) for name in ("mia", "puppet", "prop")
    )
    for user in (puppet, prop):
        independence.record_handling(mia, user, "create")
    (tie,) = independence.list_open_handlings(puppet)
    independence.confirm_independence(tie, by=prop, actor=ACTOR)
    assert independence.list_open_handlings(puppet) == []
    Grant.objects.filter(user=mia).update(**LIMITS)
    with pytest.raises(FollowUpNotPossibleError, match="mia made or changed"):
        approve(shop, request(shop, mia, "150.00", paid(shop, "200.00")), puppet)
    assert erasure_tie(shop, mia, puppet)
    assert month_tie(shop, mia, puppet)
    with pytest.raises(ClerkLimitExceededError):
        refund(shop, puppet, "150.00", paid(shop, "200.00"))
    assert independence.list_open_handlings(puppet) == [tie]
    with pytest.raises(NotIndependentError, match="mia"):
        independence.confirm_independence(tie, by=prop, actor=ACTOR)
    independence.confirm_independence(tie, by=worker(shop, "third"), actor=ACTOR)
    assert independence.list_open_handlings(puppet) == []
    assert approve(shop, request(shop, mia, "150.00", paid(shop, "200.00")), puppet) == "DONE"


def erasure_tie(shop: Shop, asker: User, other: User) -> str:
    row = ErasureRequest(merchant=shop.merchant, asked_by=asker, asked_by_name=asker.get_username())
    return erasure_requests.explain_decision_refusal(row, other.pk)


def month_tie(shop: Shop, first: User, second: User) -> str:
    row = MonthClosing(merchant=shop.merchant, prepared_by=first, prepared_by_name=first.get_username())
    return closing.explain_signature_refusal(row, second.pk)


def test_a_confirmation_of_a_confirmed_user_falls_with_the_first(shop: Shop) -> None:
    """mia made all of them; the last one was confirmed by one who was confirmed by a user of hers."""
    mia, prop, second, puppet = (
        worker(shop, name, four_eyes_above=None, four_eyes_day=None) for name in ("mia", "prop", "second", "puppet")
    )
    for user in (prop, second, puppet):
        independence.record_handling(mia, user, "create")
    for user, third in ((second, prop), (puppet, second)):
        (tie,) = independence.list_open_handlings(user)
        independence.confirm_independence(tie, by=third, actor=ACTOR)
    place = permissions.find_row_owner(shop.channel)
    assert independence.list_common_actors(mia.pk, puppet.pk, place) == []
    Grant.objects.filter(user=mia).update(**LIMITS)
    assert independence.list_common_actors(mia.pk, puppet.pk, place) == ["mia"]


@pytest.mark.parametrize("number", [2, 3])
def test_confirmations_that_rest_on_each_other_count_for_nothing(shop: Shop, number: int) -> None:
    """Before there are limits mia makes two or three users, each of whom has the next one confirmed."""
    mia = worker(shop, "mia", four_eyes_above=None, four_eyes_day=None)
    puppets = [worker(shop, f"puppet{one}", four_eyes_above=None, four_eyes_day=None) for one in range(number)]
    for user in puppets:
        independence.record_handling(mia, user, "create")
    for user, third in zip(puppets, [*puppets[1:], puppets[0]], strict=True):
        (tie,) = independence.list_open_handlings(user)
        independence.confirm_independence(tie, by=third, actor=ACTOR)
    Grant.objects.filter(user=mia).update(**LIMITS)
    for user in puppets:
        with pytest.raises(FollowUpNotPossibleError, match="mia made or changed"):
            approve(shop, request(shop, mia, "150.00", paid(shop, "200.00")), user)
        assert len(independence.list_open_handlings(user)) == 1
    (tie,) = independence.list_open_handlings(puppets[0])
    independence.confirm_independence(tie, by=worker(shop, "third"), actor=ACTOR)
    assert approve(shop, request(shop, mia, "150.00", paid(shop, "200.00")), puppets[0]) == "DONE"


def test_a_confirmation_among_those_without_limits_holds_where_they_have_none(shop: Shop, stranger: Shop) -> None:
    """mia has no limit in one merchant and one in the other, where an honest manager takes her user on."""
    mia, puppet, prop = (
        worker(shop, name, four_eyes_above=None, four_eyes_day=None) for name in ("mia", "puppet", "prop")
    )
    for user in (puppet, prop):
        independence.record_handling(mia, user, "create")
    (tie,) = independence.list_open_handlings(puppet)
    independence.confirm_independence(tie, by=prop, actor=ACTOR)
    Grant.objects.create(user=mia, role=Role.MANAGER, merchant=stranger.merchant, **LIMITS)
    Grant.objects.create(user=puppet, role=Role.MANAGER, merchant=stranger.merchant)
    here, there = (permissions.find_row_owner(one.channel) for one in (shop, stranger))
    assert independence.list_common_actors(mia.pk, puppet.pk, here) == []
    assert independence.list_common_actors(mia.pk, puppet.pk, there) == ["mia"]


def test_a_confirmation_that_rests_on_itself_counts_for_nothing(shop: Shop) -> None:
    """mia made carl, and carl made who confirms that mia and carl are two: independent of mia only if they are."""
    mia, carl, prop = (worker(shop, name, four_eyes_above=None, four_eyes_day=None) for name in ("mia", "carl", "prop"))
    independence.record_handling(mia, carl, "create")
    independence.record_handling(carl, prop, "create")
    (tie,) = independence.list_open_handlings(carl)
    independence.confirm_independence(tie, by=prop, actor=ACTOR)
    place = permissions.find_row_owner(shop.channel)
    assert independence.list_common_actors(mia.pk, carl.pk, place) == []
    Grant.objects.filter(user=mia).update(**LIMITS)
    assert independence.list_common_actors(mia.pk, carl.pk, place) == ["mia"]
    assert independence.list_open_handlings(carl) == [tie]


def test_a_confirmation_by_one_who_was_confirmed_before_counts(shop: Shop) -> None:
    """mia made both; a third one confirms the first, who then confirms the second."""
    mia, carl, dora, third = (worker(shop, name) for name in ("mia", "carl", "dora", "third"))
    for user, by in ((carl, third), (dora, carl)):
        independence.record_handling(mia, user, "create")
        (tie,) = independence.list_open_handlings(user)
        independence.confirm_independence(tie, by=by, actor=ACTOR)
    place = permissions.find_row_owner(shop.channel)
    assert independence.list_common_actors(mia.pk, dora.pk, place) == []


def test_people_of_many_confirmations_are_looked_at_once(shop: Shop) -> None:
    """Of a confirmation the limits of whoever is behind both are asked; who made everybody is behind each."""
    mia, third = (worker(shop, name, four_eyes_above=None, four_eyes_day=None) for name in ("mia", "third"))
    independence.record_handling(mia, third, "create")
    place, asked = permissions.find_row_owner(shop.channel), []
    for number in range(3):
        user = worker(shop, f"carl{number}")
        independence.record_handling(mia, user, "create")
        (tie,) = independence.list_open_handlings(user)
        independence.confirm_independence(tie, by=third, actor=ACTOR)
        with CaptureQueriesContext(connection) as captured:
            independence.load_handling_ties(place)
        asked.append(len(captured))
    assert len(set(asked)) == 1


def test_the_database_refuses_a_confirmation_by_one_of_the_two(shop: Shop) -> None:
    mia, carl = worker(shop, "mia"), worker(shop, "carl")
    independence.record_handling(mia, carl, "create")
    for user in (mia, carl):
        with pytest.raises(IntegrityError), transaction.atomic():
            UserHandling.objects.update(confirmed_by=user, confirmed_at=clock.real_now())
    with pytest.raises(IntegrityError), transaction.atomic():
        UserHandling.objects.create(by=mia, user=mia, action="change", at=clock.real_now())


def test_users_of_one_group_raise_one_counter(shop: Shop) -> None:
    """Else two of them, at the same moment, would each read a sum without the other's move."""
    a, b, c = (worker(shop, name) for name in "abc")
    independence.record_handling(c, a, "change")
    independence.record_handling(c, b, "change")
    assert {clerk_limits.load_manual_counter(user.pk, shop.merchant.pk).pk for user in (a, b, c)} == {
        clerk_limits.load_manual_counter(min(a.pk, b.pk, c.pk), shop.merchant.pk).pk
    }


# --- the state machine ----------------------------------------------------------------------------------------------


class Company:
    """Four people who may each sign in as several users, and an honest boss. It keeps who really did what."""

    def __init__(self, shop: Shop, seed: int) -> None:
        self.shop, self.random = shop, random.Random(seed)
        self.people = ["ann", "ben", "cid", "dan"]
        self.boss = boss_of(shop)
        self.users = {name: worker(shop, name) for name in self.people}
        self.controls = {name: {name} for name in self.people}
        self.requests: list[tuple[Approval, str]] = []
        self.done: list[tuple[Decimal, frozenset[str]]] = []

    def step(self) -> None:
        who = self.random.choice(self.people)
        often = [self.pay_back, self.decide, self.pay_back, self.decide]
        self.random.choice([self.make, self.reset, self.ask, self.confirm, *often])(who)

    def _as(self, who: str) -> User:
        return self.users[self.random.choice(sorted(self.controls[who]))]

    def _amount(self) -> Decimal:
        return Decimal(self.random.choice(["10.00", "60.00", "99.00", "120.00"]))

    def make(self, who: str) -> None:
        if len(self.users) >= 10:
            return
        maker, name = self._as(who), f"user{len(self.users)}"
        self.users[name] = worker(self.shop, name)
        self.controls[who].add(name)
        independence.record_handling(maker, self.users[name], "create")

    def reset(self, who: str) -> None:
        by = self._as(who)
        name = self.random.choice(sorted(self.users))
        if self.users[name].pk != by.pk:
            self.controls[who].add(name)
            independence.record_handling(by, self.users[name], "password link")

    def pay_back(self, who: str) -> None:
        amount, target = self._amount(), paid(self.shop, "200.00")
        try:
            refund(self.shop, self._as(who), str(amount), target)
        except ClerkLimitExceededError:
            return
        self.done.append((amount, frozenset({who})))

    def ask(self, who: str) -> None:
        amount, target = self._amount(), paid(self.shop, "200.00")
        by = clerk(self._as(who), self.shop)
        order = FollowUpOrder(target=target, code="RF", amount=amount)
        met = manual_follow_up.check_clerk_limit(by, order, Chain([target]))
        if met is not None:
            self.requests.append(
                (approvals.request_approval(order, "", by=by, key=identifiers.row_id(), met=met)[0], who)
            )

    def decide(self, who: str) -> None:
        if not self.requests:
            return
        row, asker = self.requests.pop(self.random.randrange(len(self.requests)))
        try:
            state = approvals.decide_approval(row.pk, approve=True, note="", by=clerk(self._as(who), self.shop)).state
        except FollowUpNotPossibleError:
            return
        assert state == "DONE"
        self.done.append((row.amount, frozenset({who, asker})))

    def confirm(self, who: str) -> None:
        """A person tries to part two users that are both theirs; the boss confirms what is true."""
        tie = self.random.choice([*UserHandling.objects.filter(confirmed_by=None).select_related("by", "user"), None])
        if tie is None:
            return
        ends = {tie.by.get_username(), tie.user.get_username()}
        if ends <= self.controls[who]:
            with pytest.raises(NotIndependentError):
                independence.confirm_independence(tie, by=self._as(who), actor=ACTOR)
        if not any(ends <= users for users in self.controls.values()):
            independence.confirm_independence(tie, by=self.boss, actor=ACTOR)


@pytest.mark.parametrize("seed", range(4))
def test_no_payout_is_ever_above_what_two_independent_people_allowed(shop: Shop, seed: int) -> None:
    """Random acts of four people, each with limits of 100.00 on one payment and 150.00 in 24 hours."""
    company = Company(shop, seed)
    for _ in range(45):
        company.step()
    assert company.done, "something was paid out"
    for name in company.people:
        alone = [amount for amount, who in company.done if who == {name}]
        assert sum(alone, Decimal(0)) <= 150, (name, alone)
        assert all(amount <= 100 for amount in alone)


def test_a_user_without_limits_made_by_somebody_with_one_is_no_unlimited_person(shop: Shop) -> None:
    """Tokens and schedules ask for the people behind a user, too."""
    anna = worker(shop, "anna", four_eyes_above=None, four_eyes_day=None)
    berta = worker(shop, "berta", four_eyes_above=None, four_eyes_day=None)
    place = permissions.find_row_owner(shop.channel)
    independence.record_handling(anna, berta, "create")
    assert independence.is_unlimited_person(berta, place)
    assert not token_approvals.needs_token_approval(berta, place, ["payments"])
    Grant.objects.filter(user=anna).update(**LIMITS)
    for user in (anna, berta):
        permissions.clear_grant_cache(user)
    assert not independence.is_unlimited_person(berta, place)
    assert token_approvals.needs_token_approval(berta, place, ["payments", "read"])
    assert not token_approvals.needs_token_approval(berta, place, ["read"])
    waiting, _ = tokens.issue_token(shop.merchant, name="waits", by=ACTOR, approved=False)
    assert "without a limit" in token_approvals.explain_approval_refusal(waiting, berta)

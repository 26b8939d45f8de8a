"""A clerk's follow-up goes down the API's corridor, is refused before it is sent, and is sent once."""

from __future__ import annotations

from decimal import Decimal
from functools import partial

import pytest
from django.core import signing

from gateway.backoffice.follow_ups import clerk_limits, manual_follow_up
from gateway.backoffice.follow_ups.clerk_limits import Clerk, ClerkLimitExceededError
from gateway.backoffice.follow_ups.manual_follow_up import FollowUpNotPossibleError, FollowUpOrder
from gateway.backoffice.payments.follow_up_offers import list_follow_up_offers
from gateway.core import clock
from gateway.models import AuditEntry, ClerkLimitCounter, ClerkLimitUsage, Payment, Status
from gateway.payments.follow_ups import load_chain
from tests.support.fixtures import Shop
from tests.support.threads import at_once

CLERK = Clerk(user=7, name="clara", ip="192.0.2.7")


def read(ident: str) -> Payment:
    return Payment.objects.select_related("merchant", "channel").get(pk=ident)


def order(target: Payment, code: str, amount: str) -> FollowUpOrder:
    chain = load_chain(target.pk, target.merchant, None)
    assert chain is not None
    return manual_follow_up.parse_follow_up_order(chain, target, code, amount)


def key_of(target: Payment, code: str = "RF") -> object:
    return manual_follow_up.read_form_key(manual_follow_up.sign_form_key(CLERK, target, code), CLERK, target, code)


@pytest.mark.parametrize(("kind", "code"), [("DB", "RF"), ("PA", "CP"), ("PA", "RV"), ("DB", "RV"), ("DB", "RB")])
def test_what_a_clerk_does_is_what_the_api_does(shop: Shop, kind: str, code: str) -> None:
    """The same code path and limits as the API."""
    target = read(shop.api.pay(paymentType=kind).id)
    made, fresh = manual_follow_up.send_follow_up(order(target, code, "92.00"), CLERK, key_of(target, code))  # type: ignore[arg-type]
    twin = read(shop.api.pay(paymentType=kind).id)
    by_api = shop.api.follow(twin.id.hex, code, "92.00")
    assert fresh
    assert (made.payment_type, made.status, made.result_code) == (code, Status.APPROVED, by_api.code)
    other = Payment.objects.get(pk=by_api.id)
    assert (made.amount, made.referenced, made.chain) == (other.amount, target.pk, target.pk)
    assert {event.event for event in made.events.all()} == {event.event for event in other.events.all()}


@pytest.mark.parametrize("amount", ["92.01", "0", "-1", "1.5", "1e3", "NaN", "", "٣", "99999999999"])
def test_an_amount_that_is_not_possible_is_refused_before_anything_is_sent(shop: Shop, amount: str) -> None:
    """Over-limit amounts are refused before sending."""
    target = read(shop.api.pay().id)
    with pytest.raises(FollowUpNotPossibleError):
        order(target, "RF", amount)
    assert Payment.objects.count() == 1


def test_a_whole_amount_is_asked_for_where_the_currency_has_no_decimals(shop: Shop) -> None:
    """D26."""
    target = read(shop.api.pay(amount="92", currency="JPY").id)
    with pytest.raises(FollowUpNotPossibleError, match="no decimals"):
        order(target, "RF", "1.50")
    assert order(target, "RF", "1").amount == 1


def test_what_is_offered_is_what_the_table_allows(shop: Shop) -> None:
    """Still possible is shown."""

    def offered(ident: str) -> dict[str, str]:
        target = read(ident)
        chain = load_chain(target.pk, target.merchant, None)
        assert chain is not None
        return {offer.code: str(offer.most) for offer in list_follow_up_offers(chain, target)}

    held = shop.api.pay(paymentType="PA").id
    assert offered(held) == {"CP": "92.00", "RV": "92.00"}
    captured = shop.api.follow(held, "CP", "60.00").id
    assert offered(held) == {"CP": "32.00", "RV": "32.00"}
    assert offered(captured) == {"RF": "60.00", "RV": "60.00", "RB": "None"}
    shop.api.follow(captured, "RF", "60.00")
    assert offered(captured) == {"RB": "None"}
    assert offered(shop.api.pay(card__number="4000015500000005").id) == {}


def test_one_form_sent_twice_makes_one_refund(shop: Shop) -> None:
    """Double click makes one refund; the back button with another amount makes none."""
    target = read(shop.api.pay().id)
    key = key_of(target)
    first, fresh = manual_follow_up.send_follow_up(order(target, "RF", "1.00"), CLERK, key)  # type: ignore[arg-type]
    again, once_more = manual_follow_up.send_follow_up(order(target, "RF", "1.00"), CLERK, key)  # type: ignore[arg-type]
    assert (fresh, once_more, again.pk) == (True, False, first.pk)
    with pytest.raises(FollowUpNotPossibleError, match="another amount"):
        manual_follow_up.send_follow_up(order(target, "RF", "2.00"), CLERK, key)  # type: ignore[arg-type]
    assert Payment.objects.filter(payment_type="RF").count() == 1


def test_a_double_click_at_the_same_moment_makes_one_refund(committed: Shop) -> None:
    """As a race with connections of their own."""
    target = read(committed.api.pay().id)
    key = key_of(target)
    made = at_once(*[lambda: manual_follow_up.send_follow_up(order(target, "RF", "5.00"), CLERK, key)[0].pk] * 4)  # type: ignore[arg-type]
    assert len(set(made)) == 1
    assert Payment.objects.filter(payment_type="RF").count() == 1


LIMITED = Clerk(user=7, name="clara", ip="192.0.2.7", limit=Decimal("20.00"))


def test_a_limit_is_one_of_the_payment_and_not_of_the_form(shop: Shop) -> None:
    """Found in use: five forms of 20.00 gave 100.00 back, and nobody was asked."""
    target = read(shop.api.pay().id)
    manual_follow_up.send_follow_up(order(target, "RF", "15.00"), LIMITED, key_of(target))  # type: ignore[arg-type]
    with pytest.raises(ClerkLimitExceededError):
        manual_follow_up.send_follow_up(order(target, "RF", "5.01"), LIMITED, key_of(target))  # type: ignore[arg-type]
    manual_follow_up.send_follow_up(order(target, "RF", "5.00"), LIMITED, key_of(target))  # type: ignore[arg-type]
    somebody = Clerk(user=8, name="carl", ip=None, limit=Decimal("20.00"))
    manual_follow_up.send_follow_up(order(target, "RF", "20.00"), somebody, key_of(target))  # type: ignore[arg-type]
    other = read(shop.api.pay().id)
    manual_follow_up.send_follow_up(order(other, "RF", "20.00"), LIMITED, key_of(other))  # type: ignore[arg-type]
    assert AuditEntry.objects.filter(action="refund sent").count() == 4


def test_what_was_declined_moved_nothing_and_does_not_count(shop: Shop) -> None:
    """A limit is about money that moved."""
    target = read(shop.api.pay().id)
    made, _fresh = manual_follow_up.send_follow_up(order(target, "RF", "20.00"), LIMITED, key_of(target))  # type: ignore[arg-type]
    Payment.objects.filter(pk=made.pk).update(status=Status.DECLINED)
    manual_follow_up.send_follow_up(order(target, "RF", "20.00"), LIMITED, key_of(target))  # type: ignore[arg-type]


def test_of_many_forms_at_the_same_moment_the_limit_lets_one_through(committed: Shop) -> None:
    """The limit is counted in the statement that begins: five tabs are not five limits."""
    target = read(committed.api.pay().id)
    forms = [key_of(target) for _ in range(5)]

    def send(key: object) -> str:
        try:
            return manual_follow_up.send_follow_up(order(target, "RF", "15.00"), LIMITED, key)[0].pk.hex  # type: ignore[arg-type]
        except ClerkLimitExceededError:
            return ""

    made = [each for each in at_once(*[partial(send, key) for key in forms]) if each]
    assert [row.pk.hex for row in Payment.objects.filter(payment_type="RF")] == made
    assert len(made) == 1


DAILY = Clerk(user=7, name="clara", ip="192.0.2.7", limit=Decimal("60.00"), day=Decimal("100.00"))


def refund(ident: str, amount: str, by: Clerk = DAILY) -> Payment:
    target = read(ident)
    key = manual_follow_up.read_form_key(manual_follow_up.sign_form_key(by, target, "RF"), by, target, "RF")
    return manual_follow_up.send_follow_up(order(target, "RF", amount), by, key)[0]


def test_ten_payments_just_below_the_limit_are_over_the_limit_of_a_day(shop: Shop, stranger: Shop) -> None:
    """Found in review: the limit was one of each payment, and there are many payments."""
    for _ in range(2):
        refund(shop.api.pay().id, "45.00")
    with pytest.raises(ClerkLimitExceededError) as over:
        refund(shop.api.pay().id, "10.01")
    assert (over.value.used.over, over.value.used.moved, over.value.used.left) == ("day", 90, 10)
    refund(shop.api.pay().id, "10.00")
    # Another currency, another merchant and another person have sums of their own.
    refund(shop.api.pay(currency="GBP").id, "60.00")
    refund(stranger.api.pay().id, "60.00")
    refund(shop.api.pay().id, "60.00", Clerk(user=8, name="carl", ip=None, day=Decimal("100.00")))
    ClerkLimitUsage.objects.update(at=clock.real_now() - clerk_limits.CLERK_LIMIT_WINDOW)
    refund(shop.api.pay().id, "60.00")
    assert clerk_limits.delete_expired_moves() == 6
    assert ClerkLimitUsage.objects.get().amount == 60


def test_of_both_limits_the_nearer_one_is_met(shop: Shop) -> None:
    """The page tells which."""
    paid = shop.api.pay().id
    with pytest.raises(ClerkLimitExceededError) as over:
        refund(paid, "60.01")
    assert over.value.used.over == "payment"
    refund(paid, "60.00")
    with pytest.raises(ClerkLimitExceededError) as over:
        refund(shop.api.pay().id, "50.00")
    assert over.value.used.over == "day"


def test_what_was_declined_does_not_count_for_the_day(shop: Shop) -> None:
    """A limit is about money that moved."""
    made = refund(shop.api.pay().id, "60.00")
    Payment.objects.filter(pk=made.pk).update(status=Status.DECLINED)
    refund(shop.api.pay().id, "60.00")


def test_of_many_payments_at_the_same_moment_the_day_lets_two_through(committed: Shop) -> None:
    """The sum is counted in the statement that begins: five tabs of five payments are one day."""
    paid = [committed.api.pay().id for _ in range(5)]

    def send(ident: str) -> str:
        try:
            return refund(ident, "45.00").pk.hex
        except ClerkLimitExceededError:
            return ""

    made = [each for each in at_once(*[partial(send, ident) for ident in paid]) if each]
    assert len(made) == 2
    assert {row.pk.hex for row in Payment.objects.filter(payment_type="RF")} == set(made)
    assert {row.payment.hex for row in ClerkLimitUsage.objects.all()} == set(made)
    assert ClerkLimitCounter.objects.get().moves == 2


def test_a_double_click_at_the_limit_is_one_refund_and_asks_nobody(committed: Shop) -> None:
    """The same form at the same moment: what it made itself is not counted against it, and the trail has it once."""
    target = read(committed.api.pay().id)
    key = key_of(target)
    made = at_once(*[lambda: manual_follow_up.send_follow_up(order(target, "RF", "20.00"), LIMITED, key)[0].pk] * 4)  # type: ignore[arg-type]
    assert len(set(made)) == 1
    assert sorted(AuditEntry.objects.filter(subject="payment").values_list("action", flat=True)) == [
        "refund made",
        "refund sent",
    ]


def test_a_form_is_good_for_its_user_payment_and_operation_alone(shop: Shop) -> None:
    """Safe: a form cannot be bent to another payment."""
    one, two = read(shop.api.pay().id), read(shop.api.pay().id)
    text = manual_follow_up.sign_form_key(CLERK, one, "RF")
    somebody = Clerk(user=8, name="carl", ip=None)
    for clerk, target, code in ((somebody, one, "RF"), (CLERK, two, "RF"), (CLERK, one, "RV")):
        with pytest.raises(FollowUpNotPossibleError):
            manual_follow_up.read_form_key(text, clerk, target, code)
    with pytest.raises(FollowUpNotPossibleError):
        manual_follow_up.read_form_key(signing.dumps(["00", 7, one.id.hex, "RF"], salt="another"), CLERK, one, "RF")
    with pytest.raises(FollowUpNotPossibleError):
        manual_follow_up.read_form_key("", CLERK, one, "RF")


def test_every_act_leaves_who_did_what_from_where_with_amounts_before_and_after(shop: Shop) -> None:
    target = read(shop.api.pay().id)
    manual_follow_up.send_follow_up(order(target, "RF", "30.00"), CLERK, key_of(target))  # type: ignore[arg-type]
    sent, made = AuditEntry.objects.filter(subject="payment").order_by("id")
    assert (sent.action, made.action) == ("refund sent", "refund made")
    assert {(entry.actor, entry.ip, entry.subject_id) for entry in (sent, made)} == {
        ("clara", "192.0.2.7", str(target.pk))
    }
    assert (sent.before or {})["Still to refund"] == "92.00"
    assert ((made.after or {})["Refunded"], (made.after or {})["Still to refund"]) == ("30.00", "62.00")

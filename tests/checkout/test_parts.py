"""An amount that is paid in parts: what one card grants is held, the rest is paid with another one, or nothing is.

Cards 4000050000000007 and 5… (approved for half) at the stub acquirer, a process with its own books. Source:
docs/decisions/0129; goals R1, R3.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

import pytest

from checkout import payment_attempts, payment_links
from checkout.models import Checkout
from checkout.parts import expire_part
from gateway.access.tokens import TokenLimits
from gateway.connectors.port import AcquirerReply
from gateway.core import clock
from gateway.core.money import Money
from gateway.models import (
    Channel,
    Notification,
    OpenPayment,
    Payment,
    Registration,
    Status,
    Suspension,
    ThreeDSecureConfiguration,
)
from gateway.payments import held_parts, store, token_limits
from gateway.payments.outcomes import Approved
from gateway.payments.process import complete_unless_recovered
from gateway.payments.shopper_return import ShopperReturnOrigin, expire_due_suspensions, withdraw_payment
from gateway.payments.states import PaymentTransitionError
from gateway.payments.stored_answer import PrivateFacts, read_transaction_link
from gateway.scheduling.models import Job
from tests.support.client import Answer, Api
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.recovery import recover_after
from tests.support.shopper import CARD, DECLINED, Browser, open_checkout, result_of
from tests.support.stub import StubProcess, account_at_stub
from tests.support.subscriptions import MONTHLY
from tests.support.threads import at_once
from tests.support.threeds import FRICTIONLESS, Shopper

pytestmark = pytest.mark.django_db(transaction=True)

HALF = "4000050000000007"
CHALLENGED = {"card__number": "4200000000000042", "customer__browser__language": "en",
              "customer__browser__screenHeight": "900", "customer__browser__screenWidth": "1440",
              "customer__browser__timezone": "-60", "customer__browser__javaEnabled": "false",
              "billing__street1": "Main street 1", "billing__city": "Munich", "billing__postcode": "80331",
              "billing__country": "DE"}  # fmt: skip
"""A card whose bank asks its holder, with what a browser adds."""
WEB_WALLET = {"paymentBrand": "WEBWALLET", "shopperResultUrl": "https://shop.example/result"}
TOO_LITTLE = "800.100.155"
HELD = "000.200.000"
TOTAL = Decimal(92)


@pytest.fixture
def shop(committed: Shop) -> Shop:
    account_at_stub(committed.channel)
    Channel.objects.filter(pk=committed.channel.pk).update(partial_approvals=Channel.PartialApprovals.COLLECT)
    committed.channel.refresh_from_db()
    return committed


def opened(shop: Shop, **more: str) -> Browser:
    return open_checkout(shop.api, testMode="EXTERNAL", **more)


def row_of(browser: Browser) -> Checkout:
    return Checkout.objects.select_related("payment", "merchant", "channel").get(pk=browser.checkout[:32].lower())


def payments() -> list[Payment]:
    return list(Payment.objects.order_by("created_at", "id"))


def standing(acquirer: StubProcess) -> Decimal:
    """What the acquirer has booked, or holds, and did not take back."""
    there = acquirer.control.transactions().values()
    return sum((Decimal(one["approved"]) for one in there if one["outcome"] == "approved"), Decimal(0))


def release(browser: Browser) -> Answer:
    return browser.release()


def pass_minutes(minutes: int) -> None:
    """Later, and no timer has come by yet."""
    jump(60 * minutes)


# --- the rest is paid ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("payment_type", ["DB", "PA"])
def test_a_part_is_held_and_the_rest_is_paid_with_another_card(
    shop: Shop, acquirer: StubProcess, payment_type: str
) -> None:
    browser = opened(shop, paymentType=payment_type, merchantTransactionId="order-77")
    told = browser.pay(card__number=HALF)
    assert (told.status, told.code, told.body["state"], told.body["returnTo"]) == (200, HELD, "open", None)
    part = {"brand": "VISA", "label": "Visa", "last4": "0007", "amount": "46.00"}
    assert told.body["held"] == {"currency": "EUR", "rest": "46.00", "parts": [part]}
    assert browser.state().body["held"] == told.body["held"]
    assert result_of(shop.api, browser).code == HELD
    assert standing(acquirer) == 46

    paid = browser.pay()
    assert (paid.status, paid.code, paid.body["state"]) == (200, "000.100.112", "done")
    first, second = payments()
    assert (first.status, first.amount, first.approved_amount) == (Status.APPROVED, TOTAL, Decimal(46))
    assert (second.status, second.amount, second.approved_amount) == (Status.APPROVED, Decimal(46), Decimal(46))
    assert {first.merchant_transaction_id, second.merchant_transaction_id} == {"order-77"}
    assert standing(acquirer) == TOTAL
    assert not Suspension.objects.exists()
    assert not OpenPayment.objects.exists()


def test_nobody_is_told_success_before_the_whole_amount_is_there_and_then_of_both(
    shop: Shop, acquirer: StubProcess
) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    first = payments()[0]
    details = shop.api.read(first.id.hex).body["resultDetails"]
    assert details["PartialApproval"] == "approved for 46.00 of 92.00 EUR; held until the rest is paid"
    browser.pay()
    second = payments()[1]
    whole = result_of(shop.api, browser)
    assert (whole.code, whole.id, whole.body["amount"]) == ("000.100.112", second.id.hex, "46.00")
    assert whole.body["resultDetails"]["Parts"] == f"{first.id.hex} VISA 46.00"
    other = shop.api.read(first.id.hex)
    assert (other.code, other.body["amount"]) == ("000.100.112", "46.00")
    assert other.body["resultDetails"]["Parts"] == f"{second.id.hex} VISA 46.00"
    assert other.body["resultDetails"]["PartialApproval"] == "approved for 46.00 of 92.00 EUR; the rest was paid"
    told = list(Notification.objects.filter(kind="PAYMENT").order_by("id").values_list("payment_id", "action"))
    assert told == [(first.id, "CREATED"), (first.id, "UPDATED"), (second.id, "CREATED")]
    refunds = [shop.api.follow(one.id.hex, "RF", "46.00").code for one in (first, second)]
    assert refunds == ["000.100.112", "000.100.112"]
    assert shop.api.follow(first.id.hex, "RF", "0.01").status == 400


def test_the_form_shows_what_is_held_and_asks_for_the_rest_with_a_card(shop: Shop, acquirer: StubProcess) -> None:
    brands = "VISA MASTER ONLINETRANSFER DIRECTDEBIT_SEPA WALLET1"
    browser = opened(shop)
    before = browser.config(brands).body
    assert ("held" in before, before["checkout"]["amount"], "heldRest" in before["texts"]) == (False, "92.00", False)
    browser.pay(card__number=HALF)
    config = browser.config(brands).body
    assert (config["checkout"]["amount"], config["held"]["rest"]) == ("46.00", "46.00")
    assert {one["kind"] for one in config["brands"]} == {"card"}
    assert {"heldPart", "heldRest", "giveBack", "givenBack"} <= config["texts"].keys()


def test_means_that_are_no_card_cannot_pay_the_rest(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    account = {"paymentBrand": "VIRTUALACCOUNT", "virtualAccount.accountId": "jane@shop.example"}
    refused = browser.submit(account)
    assert (refused.status, list(refused.errors)) == (400, ["paymentBrand"])
    assert Payment.objects.count() == 1


def test_a_payout_of_another_brand_cannot_pay_the_rest(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop, **{"overridePaymentType[MASTER]": "CD"})
    browser.pay(card__number=HALF)
    refused = browser.pay(paymentBrand="MASTER", card__number="5200050000000002")
    assert (refused.status, list(refused.errors), Payment.objects.count()) == (400, ["paymentBrand"], 1)


def test_several_parts_never_come_to_more_than_the_amount_and_the_last_has_to_be_whole(
    shop: Shop, acquirer: StubProcess
) -> None:
    browser = opened(shop)
    rests = []
    for _ in range(3):
        # One published card is approved in part: it counts as another one where its fingerprint is not known.
        Payment.objects.update(means_fingerprint=None)
        rests.append(browser.pay(card__number=HALF).body["held"]["rest"])
    assert rests == ["46.00", "23.00", "11.50"]
    assert standing(acquirer) == Decimal("80.50")
    Payment.objects.update(means_fingerprint=None)
    refused = browser.pay(card__number=HALF)
    assert (refused.code, refused.body["state"], refused.body["held"]["rest"]) == (TOO_LITTLE, "open", "11.50")
    assert standing(acquirer) == Decimal("80.50")
    assert browser.pay().body["state"] == "done"
    assert standing(acquirer) == TOTAL
    approved = [one.approved_amount for one in payments() if one.status == Status.APPROVED]
    assert approved == [Decimal(46), Decimal(23), Decimal("11.50"), Decimal("11.50")]


def test_the_same_card_again_is_told_what_it_holds(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    first, second = browser.pay(card__number=HALF), browser.pay(card__number=HALF)
    assert (first.code, second.code) == (HELD, HELD)
    assert first.body["held"] == second.body["held"]
    assert Payment.objects.count() == 1


def test_after_a_declined_card_another_one_pays_the_rest(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    refused = browser.pay(card__number=DECLINED)
    assert (refused.body["state"], refused.body["held"]["rest"]) == ("open", "46.00")
    assert browser.pay().body["state"] == "done"
    assert standing(acquirer) == TOTAL
    assert [one.status for one in payments()] == [Status.APPROVED, Status.DECLINED, Status.APPROVED]


def test_a_checkout_that_was_paid_in_parts_still_answers_its_page(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    browser.pay()
    config = browser.config()
    assert (config.status, config.body["checkout"]["amount"], "held" in config.body) == (200, "92.00", False)
    assert (browser.state().body["state"], release(browser).body["state"], browser.pay().body["state"]) == ("done",) * 3
    assert (Payment.objects.count(), standing(acquirer)) == (2, TOTAL)


def test_a_stored_card_pays_the_rest(shop: Shop, acquirer: StubProcess) -> None:
    first = opened(shop, **{"customer.merchantCustomerId": "jane"})
    first.pay(createRegistration="true")
    stored = result_of(shop.api, first).body["registrationId"]
    browser = opened(shop, **{"customer.merchantCustomerId": "jane", "registrations[0].id": stored})
    browser.pay(card__number=HALF)
    assert [one["id"] for one in browser.config().body["registrations"]] == [stored]
    assert browser.submit({"registrationId": stored}).body["state"] == "done"
    assert standing(acquirer) == 2 * TOTAL


def test_parts_of_a_preauthorization_are_captured_each_up_to_its_own_amount(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop, paymentType="PA")
    browser.pay(card__number=HALF)
    first = payments()[0]
    assert shop.api.follow(first.id.hex, "CP", "1.00").status == 400
    browser.pay()
    for one in Payment.objects.filter(payment_type="PA"):
        assert shop.api.follow(one.id.hex, "CP", "46.01").status == 400
        assert shop.api.follow(one.id.hex, "CP", "46.00").code == "000.100.112"


def test_a_shop_that_sends_the_same_key_again_gets_the_same_answer_and_no_second_part(
    shop: Shop, acquirer: StubProcess
) -> None:
    browser = opened(shop)
    path = f"/v1/checkouts/{browser.checkout}/payment"
    answers = [shop.api.post(path, CARD | {"card.number": HALF}, Idempotency_Key="part-1") for _ in range(2)]
    assert {(one.code, one.id) for one in answers} == {(HELD, payments()[0].id.hex)}
    rest = [shop.api.post(path, CARD, Idempotency_Key="part-2") for _ in range(2)]
    assert {(one.code, one.id) for one in rest} == {("000.100.112", payments()[1].id.hex)}
    assert [one.headers.get("Idempotent-Replayed") for one in (*answers, *rest)] == [None, "true"] * 2
    assert (Payment.objects.count(), standing(acquirer)) == (2, TOTAL)


def test_a_channel_that_takes_each_order_number_once_takes_the_parts_of_one(shop: Shop, acquirer: StubProcess) -> None:
    Channel.objects.update(refuse_duplicates=True)
    browser = opened(shop, merchantTransactionId="order-77")
    browser.pay(card__number=HALF)
    assert browser.pay().body["state"] == "done"
    assert opened(shop, merchantTransactionId="order-77").pay().code == "800.110.100"


def test_a_card_that_is_to_be_stored_is_stored_when_the_whole_is_paid(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop, createRegistration="true")
    browser.pay(card__number=HALF)
    assert not Registration.objects.exists()
    browser.pay()
    assert sorted(one.details["card"]["last4Digits"] for one in Registration.objects.all()) == ["0000", "0007"]


def test_a_payment_outside_of_a_form_and_another_channel_are_approved_with_the_part(
    shop: Shop, acquirer: StubProcess
) -> None:
    direct = shop.api.pay(testMode="EXTERNAL", card__number=HALF)
    assert (direct.code, direct.body["amount"]) == ("000.100.112", "46.00")
    Channel.objects.update(partial_approvals=Channel.PartialApprovals.ACCEPT)
    assert opened(shop).pay(card__number=HALF).body["state"] == "done"


def test_the_amount_of_a_checkout_that_holds_a_part_is_not_changed(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    path = f"/v1/checkouts/{browser.checkout}"
    assert shop.api.post(path, {"amount": "10.00"}).code == "800.120.402"
    browser.pay(card__number=DECLINED)
    refused = shop.api.post(path, {"amount": "10.00"})
    assert (refused.code, row_of(browser).request["amount"]) == ("800.120.402", "92.00")


# --- a bank asks the holder of the card that pays the rest ---------------------------------------------------------


@pytest.fixture
def asking(shop: Shop) -> Shop:
    Channel.objects.filter(pk=shop.channel.pk).update(three_d_secure=True)
    ThreeDSecureConfiguration.objects.create(channel=shop.channel, on_soft_decline="challenge")
    return shop


def test_both_cards_may_be_challenged_and_both_are_approved_at_the_end(asking: Shop, acquirer: StubProcess) -> None:
    ThreeDSecureConfiguration.objects.update(challenge_indicator="04")
    browser = opened(asking)
    first = Shopper.of(browser.pay(**(CHALLENGED | {"card__number": HALF})))
    first.enter()
    for _ in range(2):
        assert (browser.state().body["state"], browser.state().body["held"]["rest"]) == ("open", "46.00")
        first.enter()  # the bank's page sent once more moves nothing
    shopper = Shopper.of(browser.pay(**CHALLENGED))
    assert release(browser).body["state"] == "action"
    assert browser.config().body["held"]["rest"] == "46.00"
    shopper.enter()
    assert browser.state().body["state"] == "done"
    # Whoever sends a bank's page once more pays nothing once more.
    shopper.enter()
    assert [one.status for one in payments()] == [Status.APPROVED, Status.APPROVED]
    assert standing(acquirer) == TOTAL


def test_who_leaves_the_challenge_of_the_rest_pays_it_with_a_third_card(asking: Shop, acquirer: StubProcess) -> None:
    browser = opened(asking)
    browser.pay(**(CHALLENGED | {"card__number": HALF}))
    shown = {"held__rest": "46.00"}
    browser.pay(**(CHALLENGED | shown))
    assert browser.pay(**(CHALLENGED | shown | {"card__number": FRICTIONLESS})).body["state"] == "done"
    assert [one.status for one in payments()] == [Status.APPROVED, Status.DECLINED, Status.APPROVED]
    assert standing(acquirer) == TOTAL


def test_a_part_is_given_back_after_a_challenge_that_nobody_answered(asking: Shop, acquirer: StubProcess) -> None:
    browser = opened(asking)
    browser.pay(**(CHALLENGED | {"card__number": HALF}))
    browser.pay(**CHALLENGED)
    for _ in range(2):
        pass_minutes(31)
        expire_due_suspensions()
    recover_after(2.0)
    assert [one.status for one in payments()] == [Status.DECLINED, Status.DECLINED]
    assert standing(acquirer) == 0
    assert not Suspension.objects.exists()


# --- it is given back ---------------------------------------------------------------------------------------------


def test_a_form_that_shows_a_rest_is_never_charged_more_than_it(shop: Shop, acquirer: StubProcess) -> None:
    """The part was given back, by the timer or in another tab; the form of before still says what the rest was."""
    browser = opened(shop)
    browser.pay(card__number=HALF)
    pass_minutes(16)
    expire_due_suspensions()
    recover_after(60)
    refused = browser.pay(held__rest="46.00")
    assert (refused.code, refused.body["state"], Payment.objects.count()) == ("800.120.402", "processing", 1)
    state = browser.state().body
    assert (state["state"], "held" in state, standing(acquirer)) == ("open", False, 0)
    assert browser.pay().body["state"] == "done"


def test_a_form_that_shows_the_rest_pays_it_and_one_that_shows_more_is_charged_less(
    shop: Shop, acquirer: StubProcess
) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    Payment.objects.update(means_fingerprint=None)
    assert browser.pay(card__number=HALF, held__rest="46.00").body["held"]["rest"] == "23.00"
    Payment.objects.update(means_fingerprint=None)
    assert browser.pay(held__rest="46.00").body["state"] == "done"
    assert standing(acquirer) == TOTAL


@pytest.mark.parametrize("rest", ["", "46", "-46.00", "NaN", "46.00\x00", "9" * 40 + ".00", "\u0664\u0666.00"])
def test_a_rest_that_is_no_amount_is_told_by_its_name(shop: Shop, acquirer: StubProcess, rest: str) -> None:
    refused = opened(shop).pay(held__rest=rest)
    assert (refused.status, refused.body["state"]) == (400, "open")
    assert Payment.objects.count() == 0


def test_what_is_held_is_given_back_when_the_shopper_says_so_and_the_whole_is_paid_otherwise(
    shop: Shop, acquirer: StubProcess
) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    given = release(browser)
    assert (given.status, given.body["state"]) == (200, "processing")
    assert browser.pay().body["state"] == "processing"
    assert Payment.objects.count() == 1
    assert recover_after(2.0).settled == 1
    state = browser.state().body
    assert (state["state"], state["result"]["code"], "held" in state) == ("open", HELD, False)
    first = payments()[0]
    assert (first.status, first.approved_amount, standing(acquirer)) == (Status.DECLINED, None, 0)
    told = shop.api.read(first.id.hex).body["resultDetails"]["PartialApproval"]
    assert told == "approved for 46.00 of 92.00 EUR; the approval was reversed"
    assert browser.pay().body["state"] == "done"
    assert [one.approved_amount for one in payments()] == [None, TOTAL]


def test_a_card_that_is_tried_while_a_part_is_given_back_is_not_told_that_it_has_too_little(
    shop: Shop, acquirer: StubProcess
) -> None:
    """Of a form that was loaded before the part was held: its card meets the payment of the other one."""
    browser = opened(shop)
    browser.pay(card__number=HALF)
    release(browser)
    assert browser.pay().body["state"] == "processing"
    recover_after(2.0)
    told = browser.state().body
    assert (told["state"], told["result"]["code"], Payment.objects.count()) == ("open", HELD, 1)
    refused = browser.pay(card__number=DECLINED)
    assert (refused.code, browser.state().body["result"]["code"]) == (TOO_LITTLE, TOO_LITTLE)


@pytest.mark.parametrize("parts", [1, 2])
def test_a_form_that_is_loaded_while_parts_are_given_back_waits_for_it(
    shop: Shop, acquirer: StubProcess, parts: int
) -> None:
    browser = opened(shop)
    for _ in range(parts):
        browser.pay(card__number=HALF)
        Payment.objects.update(means_fingerprint=None)
    release(browser)
    config = browser.config().body
    assert config["held"] == {"currency": "EUR", "rest": "92.00", "parts": []}
    assert {"givenBack", "processing", "slow"} <= config["texts"].keys()
    recover_after(2.0)
    assert "held" not in browser.config().body
    browser.pay()
    assert (browser.config().body["checkout"]["paid"], "held" in browser.config().body) == (True, False)


def test_the_order_number_is_free_again_when_several_parts_were_given_back(shop: Shop, acquirer: StubProcess) -> None:
    Channel.objects.update(refuse_duplicates=True)
    browser = opened(shop, merchantTransactionId="order-77")
    browser.pay(card__number=HALF)
    Payment.objects.update(means_fingerprint=None)
    browser.pay(card__number=HALF)
    release(browser)
    recover_after(2.0)
    assert (browser.pay().body["state"], standing(acquirer)) == ("done", TOTAL)


def test_giving_back_twice_or_where_nothing_is_held_changes_nothing(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    assert release(browser).body["state"] == "open"
    browser.pay(card__number=HALF)
    assert [release(browser).body["state"] for _ in range(2)] == ["processing", "processing"]
    recover_after(2.0)
    assert release(browser).body["state"] == "open"
    browser.pay()
    assert (release(browser).body["state"], standing(acquirer)) == ("done", TOTAL)
    assert release(Browser("0" * 32 + "-node01")).status == 404


def test_a_declined_rest_is_not_in_the_way_of_giving_back(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    browser.pay(card__number=DECLINED)
    assert release(browser).body["state"] == "processing"
    recover_after(2.0)
    assert (browser.state().body["state"], standing(acquirer)) == ("open", 0)
    assert result_of(shop.api, browser).code == TOO_LITTLE
    assert browser.pay().body["state"] == "done"
    assert standing(acquirer) == TOTAL


def test_several_parts_are_given_back_and_none_is_forgotten_while_one_is_open(
    shop: Shop, acquirer: StubProcess
) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    Payment.objects.update(means_fingerprint=None)
    browser.pay(card__number=HALF)
    assert standing(acquirer) == 69
    acquirer.control.steer(kinds=["void"], silent_before=1)
    release(browser)
    assert recover_after(2.0).settled == 0
    # The last one ends first: the other still holds the shopper's money.
    Payment.objects.filter(pk=payments()[1].pk).update(status=Status.DECLINED)
    state = browser.state().body
    assert (state["state"], "held" in state, release(browser).body["state"]) == ("processing", False, "processing")
    assert browser.pay().code == "800.120.402"
    pass_minutes(31)
    assert browser.state().body["state"] == "processing", "nobody is told that the form ended and nothing was charged"
    jump(-31 * 60)
    Payment.objects.filter(pk=payments()[1].pk).update(status=Status.IN_DOUBT)
    acquirer.control.steer(kinds=["void"], silent_before=0)
    assert recover_after(60).settled == 2
    assert (standing(acquirer), browser.pay().body["state"]) == (0, "done")


@pytest.mark.parametrize("rest_declined", [False, True])
def test_a_part_whose_rest_nobody_pays_is_given_back_after_a_quarter_of_an_hour(
    shop: Shop, acquirer: StubProcess, rest_declined: bool
) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    if rest_declined:
        pass_minutes(10)
        browser.pay(card__number=DECLINED)
    pass_minutes(14)
    assert expire_due_suspensions() == 0
    pass_minutes(2)
    expire_due_suspensions()
    recover_after(2.0)
    assert payments()[0].status == Status.DECLINED
    assert standing(acquirer) == 0
    assert not Suspension.objects.exists()


def test_an_acquirer_that_does_not_answer_is_asked_until_it_does(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    acquirer.control.steer(kinds=["void", "inquire"], silent_before=1)
    pass_minutes(31)
    expire_due_suspensions()
    first = payments()[0]
    assert recover_after(2.0).settled == 0
    first.refresh_from_db()
    assert (first.status, standing(acquirer)) == (Status.IN_DOUBT, 46)
    acquirer.control.steer(kinds=["void", "inquire"], silent_before=0)
    assert recover_after(60).settled == 1
    first.refresh_from_db()
    assert (first.status, first.result_code, standing(acquirer)) == (Status.DECLINED, TOO_LITTLE, 0)


def test_a_part_ends_with_its_checkout(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    pass_minutes(25)
    browser.pay(card__number=HALF)
    pass_minutes(6)
    assert browser.pay().status == 404
    expire_due_suspensions()
    recover_after(2.0)
    assert standing(acquirer) == 0


def test_no_page_says_that_nothing_was_charged_while_a_part_is_held(shop: Shop, acquirer: StubProcess) -> None:
    """Between the checkout's end and the timer that gives the part back."""
    browser = opened(shop)
    browser.pay(card__number=HALF)
    pass_minutes(31)
    state = browser.state().body
    assert (state["state"], "held" in state, standing(acquirer)) == ("processing", False, 46)
    expire_due_suspensions()
    recover_after(60)
    assert (browser.state().body["state"], standing(acquirer)) == ("expired", 0)


def test_a_part_waits_for_the_answer_to_the_rest_beyond_its_time(shop: Shop, acquirer: StubProcess) -> None:
    """The rest's answer got lost: as long as it may be approved nothing is given back."""
    browser = opened(shop)
    browser.pay(card__number=HALF)
    acquirer.control.steer(kinds=["submit"], silent_after=1)
    assert browser.pay().body["state"] == "processing"
    acquirer.control.steer()
    assert release(browser).body["state"] == "processing"
    pass_minutes(31)
    assert expire_due_suspensions() == 0
    assert payments()[0].status == Status.PENDING
    assert recover_after(60).settled == 1
    assert [one.status for one in payments()] == [Status.APPROVED, Status.APPROVED]
    assert standing(acquirer) == TOTAL


def test_a_part_whose_own_answer_got_lost_is_held_when_it_is_found(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    acquirer.control.steer(kinds=["submit"], silent_after=1)
    assert browser.pay(card__number=HALF).body["state"] == "processing"
    acquirer.control.steer()
    assert recover_after(60).settled == 1
    assert (payments()[0].status, browser.state().body["held"]["rest"]) == (Status.PENDING, "46.00")
    assert browser.pay().body["state"] == "done"
    assert standing(acquirer) == TOTAL


def test_a_part_that_recovery_found_is_reversed_by_the_number_of_its_message(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    acquirer.control.steer(kinds=["submit"], silent_after=1)
    browser.pay(card__number=HALF)
    acquirer.control.steer()
    OpenPayment.objects.update(trace_number=4711)
    recover_after(60)
    release(browser)
    assert OpenPayment.objects.get().trace_number == 4711


def test_a_rest_that_the_acquirer_never_got_leaves_the_part_held(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    acquirer.control.steer(kinds=["submit"], silent_before=1)
    browser.pay()
    acquirer.control.steer()
    assert recover_after(60).settled == 1
    assert (browser.state().body["state"], standing(acquirer)) == ("open", 46)
    assert browser.pay().body["state"] == "done"
    assert standing(acquirer) == TOTAL


def test_nothing_else_ends_a_payment_that_holds_a_part(shop: Shop, acquirer: StubProcess) -> None:
    """What ends payments that wait for their shopper would end it without a void."""
    opened(shop).pay(card__number=HALF)
    first = Payment.objects.select_related("merchant", "channel").get()
    assert withdraw_payment(first, None).status == Status.PENDING
    assert held_parts.is_held(first)
    assert shop.api.follow(first.id.hex, "RV", None).status == 400
    assert shop.api.follow(first.id.hex, "RF", "1.00").status == 400


def test_a_held_part_without_its_checkout_is_left_to_people(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    Checkout.objects.update(payment=None)
    assert expire_part(payments()[0]) is False
    assert payments()[0].status == Status.PENDING
    assert row_of(browser).parts == []


@pytest.mark.parametrize(
    "whole_only",
    [
        {"createRegistration": "true", **MONTHLY},
        {
            "marketPlace.sellers[0].id": "S-1", "marketPlace.sellers[0].amount": "46.00",
            "marketPlace.sellers[1].id": "S-2", "marketPlace.sellers[1].amount": "46.00",
        },
    ],
    ids=["a subscription", "sellers"],
)  # fmt: skip
def test_what_belongs_to_one_payment_of_the_whole_is_not_paid_in_parts(
    shop: Shop, acquirer: StubProcess, whole_only: dict[str, str]
) -> None:
    browser = opened(shop, **whole_only)
    told = browser.pay(card__number=HALF)
    assert (told.code, told.body["state"], "held" in told.body) == (TOO_LITTLE, "open", False)
    assert browser.pay().body["state"] == "done"
    assert standing(acquirer) == TOTAL
    jobs = [one.amount for one in Job.objects.all()]
    assert jobs == ([TOTAL] if "job.month" in whole_only else [])


@pytest.mark.parametrize("read_as", [Status.STARTED, Status.IN_DOUBT])
def test_a_late_answer_to_a_part_that_recovery_holds_moves_nothing(
    shop: Shop, acquirer: StubProcess, read_as: Status
) -> None:
    browser = opened(shop)
    acquirer.control.steer(kinds=["submit"], silent_after=1)
    browser.pay(card__number=HALF)
    acquirer.control.steer()
    late = Payment.objects.select_related("merchant", "channel").get()
    if read_as == Status.STARTED:
        late.status, late.sequence = Status.STARTED, 1
    assert recover_after(60).settled == 1
    origin = ShopperReturnOrigin(merchant=late.merchant, trace=None)
    complete_unless_recovered(late, approve(Money(Decimal(46), "EUR")), origin)
    assert (payments()[0].status, browser.state().body["held"]["rest"]) == (Status.PENDING, "46.00")
    assert browser.pay().body["state"] == "done"
    assert standing(acquirer) == TOTAL


def test_a_late_answer_to_a_part_that_is_given_back_is_no_success(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    late = Payment.objects.select_related("merchant", "channel").get()
    late.status, late.sequence = Status.STARTED, 1
    release(browser)
    origin = ShopperReturnOrigin(merchant=late.merchant, trace=None)
    complete_unless_recovered(late, approve(Money(Decimal(46), "EUR")), origin)
    assert payments()[0].status == Status.IN_DOUBT
    recover_after(60)
    assert (payments()[0].status, standing(acquirer)) == (Status.DECLINED, 0)


def test_a_part_that_ended_otherwise_keeps_no_other(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    Payment.objects.update(means_fingerprint=None)
    browser.pay(card__number=HALF)
    first, second = payments()
    Payment.objects.filter(pk=first.pk).update(status=Status.DECLINED)
    pass_minutes(16)
    expire_due_suspensions()
    recover_after(60)
    second.refresh_from_db()
    assert second.status == Status.DECLINED


def test_what_the_acquirer_said_of_a_part_is_known_when_it_is_approved() -> None:
    """The link that Mastercard's follow-ups name, the checks that go to review, and how long it holds."""
    payment = Payment(status=Status.STARTED, amount=TOTAL, currency="EUR", answer={})
    payment.trace_number = 1
    until = clock.real_now() + timedelta(hours=1)
    payment.answer = PrivateFacts(collect_until=until.isoformat()).as_json()
    at, half = clock.real_now(), Money(Decimal(46), "EUR")
    reply = AcquirerReply(
        code="000.100.110", approved=half, transaction_link="L" * 22, avs="N", cvv="M", valid_for=timedelta(hours=1)
    )
    held = held_parts.hold_part(payment, Approved(reply=reply, at=at))
    payment.status = Status.PENDING
    payment.answer = payment.answer | {"avs": held.reply.avs, "cvv": held.reply.cvv}
    assert read_transaction_link(payment.answer) == "L" * 22
    found = held_parts.build_part_approval(payment, [], at + timedelta(minutes=10)).reply
    assert (found.transaction_link, found.avs, found.cvv) == ("L" * 22, "N", "M")
    assert found.valid_for == timedelta(minutes=50)


def test_the_whole_is_not_asked_for_beside_a_part_that_is_held(shop: Shop, acquirer: StubProcess) -> None:
    """One of two parts has ended otherwise: the other still holds the shopper's money."""
    browser = opened(shop)
    browser.pay(card__number=HALF)
    Payment.objects.update(means_fingerprint=None)
    browser.pay(card__number=HALF)
    Payment.objects.filter(pk=payments()[0].pk).update(status=Status.DECLINED)
    assert (browser.state().body["state"], browser.pay().code) == ("processing", "800.120.402")
    assert Payment.objects.count() == 2


def test_a_late_answer_to_the_rest_moves_nothing_once_recovery_has_found_it(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    browser.pay(card__number=HALF)
    acquirer.control.steer(kinds=["submit"], silent_after=1)
    browser.pay()
    acquirer.control.steer()
    rest = Payment.objects.select_related("merchant", "channel").get(status=Status.IN_DOUBT)
    assert recover_after(60).settled == 1
    with pytest.raises(PaymentTransitionError):
        store.complete_payment(rest, approve(rest.money))
    assert [one.status for one in payments()] == [Status.APPROVED, Status.APPROVED]
    assert standing(acquirer) == TOTAL


def test_a_part_of_the_rest_that_a_page_elsewhere_granted_is_reversed_and_is_no_success(
    asking: Shop, acquirer: StubProcess
) -> None:
    browser = opened(asking)
    browser.pay(**(CHALLENGED | {"card__number": HALF}))
    browser.pay(**CHALLENGED)
    rest = Payment.objects.select_related("merchant", "channel").get(pk=row_of(browser).payment_id)
    store.complete_payment(rest, approve(Money(Decimal(20), "EUR")))
    assert [one.status for one in payments()] == [Status.PENDING, Status.IN_DOUBT]
    assert recover_after(60).settled == 1
    state = browser.state().body
    assert (state["state"], state["result"]["code"], state["held"]["rest"]) == ("open", TOO_LITTLE, "46.00")
    assert browser.pay(**(CHALLENGED | {"card__number": FRICTIONLESS})).body["state"] == "done"
    assert standing(acquirer) == TOTAL


def opened_elsewhere(shop: Shop) -> tuple[Browser, Payment]:
    """A shopper who was sent to a wallet's own page, at a processor that grants parts: the one of the cards here, which
    sends nobody elsewhere itself."""
    browser = open_checkout(shop.api)
    assert browser.submit(WEB_WALLET).body["state"] == "action"
    Payment.objects.update(connector="stub", acquirer_merchant_id="M-1")
    return browser, Payment.objects.select_related("merchant", "channel").get()


@pytest.mark.parametrize("taken", [Channel.PartialApprovals.COLLECT, Channel.PartialApprovals.DECLINE])
@pytest.mark.parametrize("minutes", [0, 31], ids=["in time", "after the checkout's end"])
def test_a_part_that_a_wallets_own_page_granted_is_reversed_whenever_its_shopper_comes_back(
    shop: Shop, acquirer: StubProcess, minutes: int, taken: str
) -> None:
    Channel.objects.update(partial_approvals=taken)
    browser, order = opened_elsewhere(shop)
    pass_minutes(minutes)
    store.complete_payment(order, approve(Money(Decimal(20), "EUR")))
    assert (payments()[0].status, browser.state().body["state"]) == (Status.IN_DOUBT, "processing")
    assert recover_after(60).settled == 1
    [order] = payments()
    assert (order.status, order.result_code, order.approved_amount) == (Status.DECLINED, TOO_LITTLE, None)
    told = order.answer["resultDetails"]["PartialApproval"]
    assert told == "approved for 20.00 of 92.00 EUR; the approval was reversed"
    assert browser.state().body["state"] == ("expired" if minutes else "open")


def test_a_wallets_own_page_that_granted_all_is_approved(shop: Shop, acquirer: StubProcess) -> None:
    browser, order = opened_elsewhere(shop)
    store.complete_payment(order, approve(Money(TOTAL, "EUR")))
    assert (payments()[0].status, browser.state().body["state"]) == (Status.APPROVED, "done")


def test_a_part_that_is_granted_after_the_checkouts_end_is_given_back(asking: Shop, acquirer: StubProcess) -> None:
    ThreeDSecureConfiguration.objects.update(challenge_indicator="04")
    browser = opened(asking)
    pass_minutes(28)
    shopper = Shopper.of(browser.pay(**(CHALLENGED | {"card__number": HALF})))
    pass_minutes(3)
    shopper.enter()
    assert (payments()[0].status, standing(acquirer)) == (Status.PENDING, 46)
    expire_due_suspensions()
    recover_after(60)
    assert (payments()[0].status, payments()[0].result_code, standing(acquirer)) == (Status.DECLINED, TOO_LITTLE, 0)
    assert not Suspension.objects.exists()


def approve(amount: Money) -> Approved:
    reply = AcquirerReply(code="000.100.110", approved=amount, connector_tx_id="elsewhere")
    return Approved(reply=reply, at=clock.real_now())


def limited(shop: Shop, **limits: Decimal) -> tuple[Api, Callable[[], Decimal]]:
    """A client whose token has limits, and what it has moved."""
    token, secret = shop.issue(limits=TokenLimits(**limits))
    return Api(token=secret, entity=shop.channel.entity_id), lambda: token_limits.sum_recent_moves(token.pk, "EUR")


def test_a_tokens_limit_counts_what_each_part_was_granted(shop: Shop, acquirer: StubProcess) -> None:
    api, moved = limited(shop, day_amount=TOTAL)
    browser = opened(shop)
    path = f"/v1/checkouts/{browser.checkout}/payment"
    assert api.post(path, CARD | {"card.number": HALF}).code == HELD
    assert moved() == 46
    assert api.post(path, CARD | {"card.number": HALF}).code == HELD
    assert moved() == 46, "the same card is told what it holds, and counted once"
    assert api.post(path, CARD).code == "000.100.112"
    assert moved() == TOTAL
    assert opened(shop, amount="0.01").checkout
    small = opened(shop, amount="0.01")
    assert api.post(f"/v1/checkouts/{small.checkout}/payment", CARD).status == 403


def test_a_tokens_limit_counts_what_may_still_be_taken(shop: Shop, acquirer: StubProcess) -> None:
    api, moved = limited(shop, day_amount=TOTAL)
    browser = opened(shop)
    path = f"/v1/checkouts/{browser.checkout}/payment"
    acquirer.control.steer(kinds=["submit"], silent_after=1)
    api.post(path, CARD | {"card.number": HALF})
    assert moved() == TOTAL, "nobody knows yet what was granted"
    acquirer.control.steer()
    recover_after(60)
    assert moved() == 46
    acquirer.control.steer(kinds=["void"], silent_before=1)
    release(browser)
    recover_after(2.0)
    assert moved() == 46, "it is given back, and may be held still"
    acquirer.control.steer()
    recover_after(60)
    assert moved() == 0
    assert api.post(path, CARD).code == "000.100.112"
    assert moved() == TOTAL


def test_a_tokens_limit_of_one_payment_is_that_of_the_rest(shop: Shop, acquirer: StubProcess) -> None:
    api, _moved = limited(shop, amount=Decimal(50), day_amount=Decimal(50))
    browser = opened(shop)
    path = f"/v1/checkouts/{browser.checkout}/payment"
    assert api.post(path, CARD).status == 403
    browser.pay(card__number=HALF)
    assert api.post(path, CARD).code == "000.100.112"
    assert standing(acquirer) == TOTAL


def test_no_more_than_the_rest_that_a_limit_was_checked_for_is_asked_for(
    shop: Shop, acquirer: StubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part is given back between the look at the limit and the payment."""
    api, moved = limited(shop, day_amount=Decimal(50))
    browser = opened(shop)
    browser.pay(card__number=HALF)
    pay = payment_attempts.pay_checkout

    def given_back_meanwhile(row: Checkout, submission: payment_attempts.CheckoutSubmission) -> Payment:
        release(browser)
        recover_after(2.0)
        return pay(row_of(browser), submission)

    monkeypatch.setattr(payment_attempts, "pay_checkout", given_back_meanwhile)
    refused = api.post(f"/v1/checkouts/{browser.checkout}/payment", CARD)
    assert (refused.code, Payment.objects.count(), moved()) == ("800.120.402", 1, 0)
    assert standing(acquirer) == 0


def test_an_amount_that_is_raised_after_a_limit_was_checked_is_not_asked_for(
    shop: Shop, acquirer: StubProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, moved = limited(shop, day_amount=Decimal(100))
    browser = opened(shop)
    pay = payment_attempts.pay_checkout

    def raised_meanwhile(row: Checkout, submission: payment_attempts.CheckoutSubmission) -> Payment:
        assert shop.api.post(f"/v1/checkouts/{browser.checkout}", {"amount": "4000.00"}).status == 200
        return pay(row, submission)

    monkeypatch.setattr(payment_attempts, "pay_checkout", raised_meanwhile)
    refused = api.post(f"/v1/checkouts/{browser.checkout}/payment", CARD)
    assert (refused.code, Payment.objects.count(), moved()) == ("800.120.402", 0, 0)


@pytest.mark.parametrize("card", ["the same", "another"])
def test_a_form_that_shows_a_rest_leaves_the_challenge_of_the_whole_alone(
    asking: Shop, acquirer: StubProcess, card: str
) -> None:
    """A part was given back, and another tab began to pay the whole amount."""
    browser = opened(asking)
    waiting = browser.pay(**CHALLENGED)
    assert waiting.body["state"] == "action"
    sent = CHALLENGED if card == "the same" else {}
    refused = browser.pay(**(sent | {"held__rest": "46.00"}))
    assert refused.code == "800.120.402"
    assert payments()[-1].status == Status.PENDING
    assert payments()[-1].amount == TOTAL


def test_giving_back_has_the_limit_of_the_forms_other_requests(shop: Shop, acquirer: StubProcess) -> None:
    browser = opened(shop)
    Channel.objects.update(limits={"widget": {"limit": 2, "window_s": 60}})
    assert [release(browser).status for _ in range(3)] == [200, 200, 429]


# --- at once ------------------------------------------------------------------------------------------------------


def tab(browser: Browser, **changes: str) -> Callable[[], Answer]:
    return lambda: Browser(browser.checkout).pay(**changes)


def settle() -> None:
    """Everybody goes away, and every timer has had its time."""
    pass_minutes(31)
    expire_due_suspensions(now=clock.real_now() + timedelta(seconds=1))
    recover_after(60)


def test_of_two_tabs_that_pay_the_rest_one_does(shop: Shop, acquirer: StubProcess) -> None:
    for _ in range(3):
        before = standing(acquirer)
        browser = opened(shop)
        browser.pay(card__number=HALF)
        made = Payment.objects.count()
        answers = at_once(*[tab(browser)] * 4)
        assert {answer.status for answer in answers} <= {200, 400, 409}
        assert Payment.objects.count() == made + 1
        assert browser.state().body["state"] == "done"
        assert standing(acquirer) - before == TOTAL


def test_the_rest_is_paid_while_the_part_is_given_back_and_it_is_all_or_nothing(
    shop: Shop, acquirer: StubProcess
) -> None:
    ends = set()
    for turn in range(6):
        before = standing(acquirer)
        browser = opened(shop)
        browser.pay(card__number=HALF)
        pay, give = tab(browser), lambda: release(Browser(browser.checkout))  # noqa: B023 - called in this turn
        at_once(*((pay, give) if turn % 2 else (give, pay)))
        settle()
        came = standing(acquirer) - before
        assert came in (0, TOTAL)
        row = row_of(browser)
        assert row.payment is not None
        assert row.payment.status == (Status.APPROVED if came else Status.DECLINED)
        ends.add(came)
    assert not Suspension.objects.exists()
    assert not OpenPayment.objects.exists()


def test_the_timer_and_the_rest_at_once_are_all_or_nothing(shop: Shop, acquirer: StubProcess) -> None:
    for _ in range(4):
        before = standing(acquirer)
        browser = opened(shop)
        browser.pay(card__number=HALF)
        pass_minutes(16)
        at_once(tab(browser), expire_due_suspensions)
        settle()
        assert standing(acquirer) - before in (0, TOTAL)


def test_whatever_happens_in_whatever_order_all_of_the_amount_is_there_at_the_end_or_nothing(
    shop: Shop, acquirer: StubProcess
) -> None:
    """Lost requests and answers, declines, parts, releases, time and timers; each sequence from its own seed."""
    ends = set()
    for seed in range(int(os.environ.get("PARTS_SEQUENCES", "12"))):
        chance, before = random.Random(seed), standing(acquirer)
        browser = opened(shop)
        mine: set[str] = set()
        for at in range(chance.randint(3, 9)):
            silent = chance.choice(({}, {}, {}, {"silent_before": 1}, {"silent_after": 1}))
            acquirer.control.steer(kinds=[chance.choice(("submit", "void", "inquire"))], **silent)
            step = (
                chance.choice(("part", "pay", "pay", "decline", "release", "recover", "time", "timer"))
                if at
                else "part"
            )
            mine.add(step)
            match step:
                case "part":
                    Payment.objects.update(means_fingerprint=None)
                    browser.pay(card__number=HALF)
                case "pay":
                    browser.pay()
                case "decline":
                    browser.pay(card__number=DECLINED)
                case "release":
                    assert release(browser).status in (200, 404)
                case "recover":
                    recover_after(60)
                case "time":
                    pass_minutes(chance.randint(1, 16))
                case "timer":
                    expire_due_suspensions()
            assert browser.state().status == 200
            came = standing(acquirer) - before
            assert 0 <= came <= TOTAL, (seed, mine)
            if Payment.objects.filter(resource_path__contains=browser.checkout, status=Status.APPROVED).exists():
                assert came == TOTAL, (seed, mine)
        acquirer.control.steer()
        for _ in range(3):
            settle()
        came = standing(acquirer) - before
        row = row_of(browser)
        is_paid = row.payment is not None and row.payment.status == Status.APPROVED
        assert came == (TOTAL if is_paid else 0), (seed, mine)
        ends.add((is_paid, bool(row.parts)))
        assert not Suspension.objects.exists(), (seed, mine)
        assert not OpenPayment.objects.exists(), (seed, mine)
    assert ends >= {(True, True), (False, False)}


# --- where else it shows ------------------------------------------------------------------------------------------


def test_a_payment_link_counts_the_whole_amount(shop: Shop, acquirer: StubProcess) -> None:
    fields = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "testMode": "EXTERNAL"}
    made = shop.api.post("/v1/paymentLinks", fields)
    assert made.status == 200, made
    link = payment_links.find_payment_link(made.id)
    assert link is not None
    row = payment_links.open_link_checkout(link)
    browser = Browser(row.public_id)
    browser.pay(card__number=HALF)
    assert payment_links.count_link_use(link).count == 0
    browser.pay()
    use = payment_links.count_link_use(link)
    assert (use.count, use.amount) == (1, TOTAL)
    [annotated] = payment_links.annotate_link_use(type(link).objects.filter(pk=link.pk))
    assert (annotated.paid_count, annotated.paid_amount) == (1, TOTAL)
    page = browser.http.get(f"/pay/{row.public_id}").content.decode()
    assert "Visa •••• 0007: €46.00" in page
    assert "Visa •••• 0000: €46.00" in page
    assert "€92.00" in page


def test_a_link_that_is_paid_once_is_not_paid_by_another_shopper_while_a_part_is_held(
    shop: Shop, acquirer: StubProcess
) -> None:
    fields = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "testMode": "EXTERNAL", "maxPayments": "1"}
    made = shop.api.post("/v1/paymentLinks", fields)
    assert made.status == 200, made
    link = payment_links.find_payment_link(made.id)
    assert link is not None
    mine, theirs = (Browser(payment_links.open_link_checkout(link).public_id) for _ in range(2))
    mine.pay(card__number=HALF)
    assert theirs.pay().code == "800.120.402"
    mine.pay(card__number=DECLINED)
    assert theirs.pay().code == "800.120.402", "the part is held beside the declined rest"
    Payment.objects.update(means_fingerprint=None)
    mine.pay(card__number=HALF)
    release(mine)
    Payment.objects.filter(pk=payments()[-1].pk).update(status=Status.DECLINED)
    assert theirs.pay().code == "800.120.402", "the earlier part may be held still"
    Payment.objects.filter(pk=payments()[-1].pk).update(status=Status.IN_DOUBT)
    recover_after(2.0)
    assert mine.pay().body["state"] == "done"
    settle()
    assert standing(acquirer) == TOTAL
    assert payment_links.count_link_use(link).count == 1


def test_cards_are_the_published_ones() -> None:
    assert CARD["card.number"] != HALF

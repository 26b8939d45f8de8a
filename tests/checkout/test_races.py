"""However often and from however many tabs: one payment. Real threads, real connections."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from checkout import receipts
from checkout.models import Checkout, ReceiptMail, ResultCall
from gateway.models import Payment, Status, Suspension, ThreeDSecureConfiguration
from tests.support.client import Answer
from tests.support.fixtures import Shop
from tests.support.shopper import CARD, DECLINED, Browser, open_checkout, result_of
from tests.support.threads import at_once
from tests.support.threeds import Shopper

CHALLENGED = {"card__number": "4200000000000042", "customer__browser__language": "en",
              "customer__browser__screenHeight": "900", "customer__browser__screenWidth": "1440",
              "customer__browser__timezone": "-60", "customer__browser__javaEnabled": "false",
              "billing__street1": "Main street 1", "billing__city": "Munich", "billing__postcode": "80331",
              "billing__country": "DE"}  # fmt: skip
"""A card whose bank asks its holder, with what a browser adds."""
SOFTLY_DECLINED = {**CHALLENGED, "card__number": "4000030002000007"}
"""A card whose bank asks its holder after it has declined."""


def tab(browser: Browser, **changes: str) -> Callable[[], Answer]:
    """The same checkout in another tab: a client of its own."""
    return lambda: Browser(browser.checkout).pay(**changes)


def approved() -> int:
    return Payment.objects.filter(status=Status.APPROVED).count()


@pytest.mark.parametrize("tabs", [2, 6])
def test_a_form_sent_from_several_tabs_at_once_pays_once(committed: Shop, tabs: int) -> None:
    """Part A, What the service does, 8."""
    for _ in range(3):
        before = Payment.objects.count()
        browser = open_checkout(committed.api)
        answers = at_once(*[tab(browser)] * tabs)
        assert {answer.status for answer in answers} == {200}
        assert Payment.objects.count() == before + 1
        assert "done" in {answer.body["state"] for answer in answers}
        assert {answer.body["state"] for answer in answers} <= {"done", "processing"}
        assert result_of(committed.api, browser).code == "000.100.110"


def test_of_a_good_card_and_bad_ones_at_once_one_payment_is_approved(committed: Shop) -> None:
    """A declined attempt frees the checkout; whatever the order, money moves once."""
    for _ in range(3):
        before = approved()
        browser = open_checkout(committed.api)
        at_once(tab(browser, card__number=DECLINED), tab(browser), tab(browser, card__number=DECLINED), tab(browser))
        if approved() == before:
            assert browser.pay().status == 200
        assert approved() == before + 1
        assert browser.state().body["state"] == "done"
        assert ResultCall.objects.filter(checkout=Checkout.objects.order_by("-created_at").first()).count() == 1


def test_an_update_and_a_payment_at_once_agree_on_the_amount(committed: Shop) -> None:
    """The payment has the amount that the checkout has, whichever came first."""
    for _ in range(3):
        browser = open_checkout(committed.api)
        update = partial(committed.api.post, f"/v1/checkouts/{browser.checkout}", {"amount": "50.00"})
        at_once(tab(browser), update)
        row = Checkout.objects.select_related("payment").get(pk=browser.checkout[:32].lower())
        assert row.payment is not None
        assert f"{row.payment.amount:.2f}" == row.request["amount"]


# --- a card whose bank asks ----------------------------------------------------------------------------------------


@pytest.fixture
def asking(committed: Shop) -> Shop:
    """A shop whose channel authenticates cards, after a soft decline, too."""
    type(committed.channel).objects.filter(pk=committed.channel.pk).update(three_d_secure=True)
    ThreeDSecureConfiguration.objects.create(channel=committed.channel, on_soft_decline="challenge")
    return committed


@pytest.mark.parametrize("card", [CHALLENGED, SOFTLY_DECLINED], ids=["challenged", "softly declined"])
def test_the_shopper_is_sent_to_the_bank_and_a_double_click_sends_to_the_same(
    asking: Shop, card: dict[str, str]
) -> None:
    """A8.6; the second tap changes nothing."""
    browser = open_checkout(asking.api)
    first, second = browser.pay(**card), browser.pay(**card)
    assert (first.status, first.code, first.body["state"]) == (200, "000.200.000", "action")
    assert first.body["redirect"]["url"].startswith("http://testserver/shopper/")
    assert second.body["redirect"] == first.body["redirect"]
    assert (first.body["attempts"], second.body["attempts"]) == (1, 1)
    assert browser.state().body["redirect"] == first.body["redirect"]
    assert Payment.objects.count() == 1
    told = result_of(asking.api, browser)
    assert (told.status, told.code) == (200, "000.200.000")


@pytest.mark.parametrize("card", [CHALLENGED, SOFTLY_DECLINED], ids=["challenged", "softly declined"])
def test_who_closes_the_challenge_and_takes_another_card_pays_once(asking: Shop, card: dict[str, str]) -> None:
    """A8.5: the earlier attempt is ended before the next begins."""
    browser = open_checkout(asking.api)
    browser.pay(**card)
    paid = browser.pay(**{**CHALLENGED, "card__number": "4200000000000091"})
    assert (paid.status, paid.body["state"]) == (200, "done")
    first, second = Payment.objects.order_by("id")
    assert (first.status, first.result_code, second.status) == (Status.DECLINED, "100.396.101", Status.APPROVED)
    assert not Suspension.objects.exists()


def test_a_card_whose_date_was_corrected_is_another_attempt(asking: Shop) -> None:
    """The shopper closes the challenge and sees that the date was wrong: the payment with the wrong one is ended."""
    browser = open_checkout(asking.api)
    first, second = browser.pay(**CHALLENGED, card__expiryMonth="04"), browser.pay(**CHALLENGED)
    check_that_the_second_goes_on(first, second)


def test_a_stored_card_whose_new_date_was_corrected_is_another_attempt(asking: Shop) -> None:
    names = {"customer.merchantCustomerId": "17", "customer.givenName": "Jane", "customer.surname": "Jones"}
    card = {name: value for name, value in CARD.items() if name != "card.cvv"}
    card |= {"card.number": "4200000000000042", "threeDSecure.disable": "true"}
    stored = asking.api.post("/v1/registrations", card | names).id
    browser = open_checkout(asking.api, **{"registrations[0].id": stored})
    sent = {name.replace("__", "."): value for name, value in CHALLENGED.items() if not name.startswith("card")}
    sent |= {"registrationId": stored, "card.cvv": "123", "card.expiryMonth": "11"}
    first, second = (browser.submit(sent | {"card.expiryYear": year}) for year in ("2041", "2042"))
    check_that_the_second_goes_on(first, second)
    again = browser.submit(sent | {"card.expiryYear": "2042"})
    assert again.body["redirect"] == second.body["redirect"]
    assert Payment.objects.filter(status=Status.PENDING).count() == 1


def check_that_the_second_goes_on(first: Answer, second: Answer) -> None:
    assert [(one.body["state"], one.body["attempts"]) for one in (first, second)] == [("action", 1), ("action", 2)]
    assert second.body["redirect"] != first.body["redirect"]
    ended, waiting = Payment.objects.filter(payment_type="DB").order_by("id")
    assert (ended.status, waiting.status) == (Status.DECLINED, Status.PENDING)


def test_a_soft_decline_from_several_tabs_is_one_payment_with_one_challenge(asking: Shop) -> None:
    """The tabs that come while the bank is asked wait; those that come later are sent to the same challenge."""
    browser = open_checkout(asking.api)
    answers = at_once(*[tab(browser, **SOFTLY_DECLINED)] * 4)
    assert {answer.body["state"] for answer in answers} <= {"action", "processing"}
    payment = Payment.objects.get()
    assert (payment.status, payment.events.filter(event="step_up").count()) == (Status.PENDING, 1)
    Shopper(browser.state().body["redirect"]).enter()
    assert browser.state().body["state"] == "done"
    assert result_of(asking.api, browser).code == "000.100.110"
    assert approved() == 1


def test_a_tab_in_a_challenge_and_others_with_cards_pay_once(asking: Shop) -> None:
    """A8.5 from several tabs."""
    for _ in range(3):
        before = approved()
        browser = open_checkout(asking.api)
        browser.pay(**CHALLENGED)
        other = {**CHALLENGED, "card__number": "4200000000000091"}
        at_once(tab(browser, **other), tab(browser, **other), tab(browser, **other))
        assert approved() == before + 1
        assert browser.state().body["state"] == "done"
        assert Payment.objects.filter(status=Status.PENDING).count() == 0


# --- a wallet in another window ------------------------------------------------------------------------------------

ELSEWHERE = {"paymentBrand": "WEBWALLET", "shopperResultUrl": "https://shop.example/result"}


def test_who_closes_a_wallets_window_and_takes_a_card_pays_once(committed: Shop) -> None:
    """A8.5: open brand A's popup, close it, pay by VISA with the same checkout: one captured payment only."""
    browser = open_checkout(committed.api)
    away = browser.submit(ELSEWHERE)
    assert (away.status, away.body["state"]) == (200, "action"), away
    again = browser.submit(ELSEWHERE)
    assert again.body["redirect"] == away.body["redirect"]
    assert Payment.objects.count() == 1
    assert browser.pay().body["state"] == "done"
    first, second = Payment.objects.order_by("id")
    assert (first.status, first.result_code, second.status) == (Status.DECLINED, "100.396.101", Status.APPROVED)
    assert result_of(committed.api, browser).body["paymentBrand"] == "VISA"


def test_a_wallet_in_one_tab_and_cards_in_others_pay_once(committed: Shop) -> None:
    """A8.5 from several tabs."""
    for _ in range(3):
        before = approved()
        browser = open_checkout(committed.api)
        browser.submit(ELSEWHERE)
        at_once(tab(browser), lambda here=browser: Browser(here.checkout).submit(ELSEWHERE), tab(browser))
        if approved() == before:  # the wallet's tab came last
            assert browser.pay().status == 200
        assert approved() == before + 1


def test_receipts_asked_for_from_several_tabs_at_once_are_mailed_three_times(committed: Shop) -> None:
    """Docs/decisions/0083: the page is of no use for sending mails to others."""
    browser = open_checkout(committed.api)
    browser.pay()
    row = Checkout.objects.get(pk=browser.checkout.partition("-")[0])
    ask = partial(receipts.request_receipt_mail, row, "jane@mail.example", "en")
    assert sorted(at_once(*[ask] * 8)) == [False] * 5 + [True] * 3
    assert ReceiptMail.objects.filter(checkout=row).count() == receipts.MAX_RECEIPT_MAILS
    ReceiptMail.objects.filter(checkout=row).delete()

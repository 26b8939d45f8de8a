"""Stored cards: stored by a checkout, with a payment or without, and offered in the next."""

from __future__ import annotations

from datetime import timedelta

import pytest

from gateway.core import clock
from gateway.models import Notification, Payment, Registration
from gateway.payments import side_effects
from gateway.payments.stored_answer import PrivateFacts
from tests.support.client import Api
from tests.support.fixtures import Shop
from tests.support.shopper import CARD, DECLINED, Browser, create, open_checkout, result_of

pytestmark = pytest.mark.django_db
NAMES = {"customer.givenName": "Jane", "customer.surname": "Jones"}
KNOWN = {"customer__merchantCustomerId": "17", "customer__givenName": "Jane", "customer__surname": "Jones"}


def stored_card(api: Api, **more: str) -> str:
    """A registration, by a checkout that only stores."""
    made = create(api, amount=None, currency=None, paymentType=None, createRegistration="true", **more)
    browser = Browser(made.id, kind="registration")
    answer = browser.pay()
    assert (answer.status, answer.body["state"]) == (200, "done"), answer
    assert answer.body["returnTo"].endswith("%2Fregistration")
    return result_of(api, browser).id


def test_a_checkout_stores_a_card_and_moves_no_money(api: Api) -> None:
    """A27.7, A29.3; D5: the answer has no paymentType."""
    made = create(api, amount=None, currency=None, paymentType=None, createRegistration="true")
    browser = Browser(made.id, kind="registration")
    before = result_of(api, browser)
    assert (before.status, before.code) == (200, "000.200.000")
    assert browser.config("VISA WALLET1").body["checkout"]["kind"] == "registration"
    assert [brand["code"] for brand in browser.config("VISA WALLET1").body["brands"]] == ["VISA"]
    assert browser.pay().status == 200
    told = result_of(api, browser)
    assert (told.status, told.code) == (200, "000.100.110")
    assert "paymentType" not in told.body
    assert told.body["card"]["last4Digits"] == "0000"
    assert api.get(f"/v1/registrations/{told.id}").status == 200


def test_the_other_path_says_which_is_right(api: Api) -> None:
    paid = open_checkout(api)
    wrong = Browser(paid.checkout, kind="registration").pay()
    assert wrong.status == 400
    assert "/payment" in wrong.description
    assert api.get(f"/v1/checkouts/{paid.checkout}/registration").status == 400


def test_a_shopper_may_keep_the_card_and_pays_with_it_next_time(api: Api) -> None:
    first = open_checkout(api, **KNOWN)
    assert first.pay(createRegistration="true").status == 200
    registration = result_of(api, first).body["registrationId"]
    second = open_checkout(api, **KNOWN, **{"registrations[0].id": registration})
    [shown] = second.config().body["registrations"]
    assert shown["id"] == registration
    assert (shown["brand"], shown["last4"], shown["expiryMonth"], shown["expired"]) == ("VISA", "0000", "05", False)
    assert "4200000000000000" not in second.config().text
    assert second.submit({"registrationId": registration}).body["state"] == "done"
    paid = result_of(api, second)
    assert paid.body["registrationId"] == registration
    assert paid.body["card"]["last4Digits"] == "0000"


def test_only_what_can_be_paid_with_here_is_offered_in_the_merchants_order(shop: Shop, stranger: Shop) -> None:
    api = shop.api
    names = ("late", "second", "deleted", "ended", "first", "elsewhere", "theirs")
    apis = {"elsewhere": shop.api_of(shop.open_channel()), "theirs": stranger.api}
    ids = {name: stored_card(apis.get(name, api)) for name in names}
    now = clock.real_now()
    for name, end in (("ended", now - timedelta(minutes=1)), ("late", now + timedelta(minutes=1))):
        Registration.objects.filter(pk=ids[name]).update(retain_until=end)
    assert api.delete(f"/v1/registrations/{ids['deleted']}").status == 200
    offered = ["first", "theirs", "ended", "second", "elsewhere", "deleted", "late", "first"]
    sent = {f"registrations[{at}].id": ids[name] for at, name in enumerate(offered)}
    shown = [one["id"] for one in open_checkout(api, **sent).config().body["registrations"]]
    assert shown == [ids[name] for name in ("first", "second", "late")]
    type(shop.merchant).objects.filter(pk=shop.merchant.pk).update(clock_offset=timedelta(minutes=5))
    shown = [one["id"] for one in open_checkout(api, **sent).config().body["registrations"]]
    assert shown == [ids[name] for name in ("first", "second")], "by the merchant's clock"


def test_a_holder_named_by_the_shop_replaces_an_empty_one_for_one_payment(api: Api) -> None:
    """B9.3: overrideHolder when the checkout is prepared and when it is updated; the stored card stays as it was."""
    card = {name: value for name, value in CARD.items() if name not in ("card.cvv", "card.holder")}
    bare = api.post("/v1/registrations", card | {"customer.merchantCustomerId": "17", **NAMES}).id
    offered = {**KNOWN, "registrations[0].id": bare}
    said = {"overrideHolder": "true", "card.holder": "Jane Miller"}
    prepared, updated, without = (open_checkout(api, **offered, **more) for more in (said, {}, {"card.holder": "Joe"}))
    assert api.post(f"/v1/checkouts/{updated.checkout}", said).code == "000.200.101"
    holders = []
    for browser in (prepared, updated, without):
        assert browser.submit({"registrationId": bare}).body["state"] == "done"
        holders.append(result_of(api, browser).body["card"].get("holder"))
    assert holders == ["Jane Miller", "Jane Miller", None]
    assert "holder" not in api.get(f"/v1/registrations/{bare}").body["card"]


def test_createregistration_of_the_merchant_stores_without_asking(api: Api) -> None:
    browser = open_checkout(api, createRegistration="true")
    assert browser.config().body["createRegistration"] is False
    browser.pay()
    assert result_of(api, browser).body["registrationId"]


def test_a_declined_card_is_not_kept(api: Api) -> None:
    browser = open_checkout(api, **KNOWN)
    browser.pay(createRegistration="true", card__number=DECLINED)
    assert "registrationId" not in result_of(api, browser).body


def test_a_card_that_is_not_offered_is_refused_and_another_merchants_is_not_shown(shop: Shop, stranger: Shop) -> None:
    """R11."""
    theirs, own = stored_card(stranger.api), stored_card(shop.api)
    browser = open_checkout(shop.api, **{"registrations[0].id": theirs})
    assert browser.config().body["registrations"] == []
    assert browser.submit({"registrationId": theirs}).status in (400, 404)
    assert "registrationId" in browser.submit({"registrationId": own}).errors
    assert Payment.objects.filter(merchant=shop.merchant, payment_type="DB").count() == 0


def test_an_expired_card_is_shown_as_such(shop: Shop) -> None:
    registration = stored_card(shop.api)
    shop.api.post("/v1/test/clock", {"advance": str(9 * 366 * 86_400)})
    browser = open_checkout(shop.api, **{"registrations[0].id": registration})
    [shown] = browser.config().body["registrations"]
    assert shown["expired"] is True
    assert browser.submit({"registrationId": registration}).code == "100.100.303"


RENEWED = {"card.expiryMonth": "11", "card.expiryYear": "2042", "card.cvv": "123"}


def offer_expired_card(shop: Shop, **more: str) -> tuple[str, Browser]:
    """A stored card, nine years later."""
    registration = stored_card(shop.api)
    shop.api.post("/v1/test/clock", {"advance": str(9 * 366 * 86_400)})
    return registration, open_checkout(shop.api, **{"registrations[0].id": registration}, **more)


def test_an_expired_card_is_renewed_by_the_payment_with_its_new_date(shop: Shop) -> None:
    """The number stays in the vault; the date that the bank approved is the registration's from then on."""
    registration, browser = offer_expired_card(shop)
    assert browser.submit({"registrationId": registration, **RENEWED}).code == "000.100.110"
    paid = result_of(shop.api, browser)
    assert paid.body["registrationId"] == registration
    assert (paid.body["card"]["expiryMonth"], paid.body["card"]["expiryYear"]) == ("11", "2042")
    assert "renewsCard" not in paid.text
    stored = Registration.objects.get(pk=registration)
    assert (stored.details["card"]["expiryMonth"], stored.details["card"]["expiryYear"]) == ("11", "2042")
    assert (stored.details["card"]["last4Digits"], stored.sequence) == ("0000", 2)
    told = Notification.objects.filter(registration=stored.id, kind="REGISTRATION").order_by("pk")
    assert [(one.action, str(one.payment_id.hex)) for one in told][1:] == [("UPDATED", paid.id)]
    again = open_checkout(shop.api, **{"registrations[0].id": registration})
    assert again.config().body["registrations"][0]["expired"] is False
    assert again.submit({"registrationId": registration}).body["state"] == "done"
    assert Notification.objects.filter(registration=stored.id, kind="REGISTRATION").count() == len(told)


def test_a_declined_renewal_leaves_the_registration_as_it_was(shop: Shop) -> None:
    registration, browser = offer_expired_card(shop)
    before = Registration.objects.get(pk=registration).details
    assert browser.submit({"registrationId": registration, **RENEWED, "card.cvv": "12"}).status == 400
    past = browser.submit({"registrationId": registration, **RENEWED, "card.expiryYear": "2030"})
    assert (past.code, past.body["state"]) == ("100.100.303", "open")
    after = Registration.objects.get(pk=registration)
    assert (after.details, after.sequence) == (before, 1)


def test_only_a_payment_that_says_so_renews_and_only_a_registration_that_is_left(shop: Shop) -> None:
    """An approval may come hours after the payment began, by recovery or from the challenge."""
    row = Registration.objects.get(pk=stored_card(shop.api))
    payment = Payment(
        registration=row.id, merchant=row.merchant, channel=row.channel, answer={"card": dict(row.details["card"])}
    )
    assert side_effects._build_renewal(payment, row.created_at) is None
    payment.answer = {"card": {"expiryMonth": "11", "expiryYear": "2042"}, **PrivateFacts(renews_card=True).as_json()}
    found = side_effects._build_renewal(payment, row.created_at)
    assert found is not None
    assert found[1]["details"]["card"] == row.details["card"] | {"expiryMonth": "11", "expiryYear": "2042"}
    Registration.objects.filter(pk=row.id).update(status="DELETED", means_sealed=None)
    assert side_effects._build_renewal(payment, row.created_at) is None


@pytest.mark.parametrize(
    ("sent", "wrong"),
    [
        ({"card.expiryMonth": "11"}, "card.expiryYear"),
        ({"card.expiryYear": "2042"}, "card.expiryMonth"),
        ({"card.expiryMonth": "13", "card.expiryYear": "2042"}, "card.expiryMonth"),
        ({"card.expiryMonth": "11", "card.expiryYear": "42x"}, "card.expiryYear"),
        ({**RENEWED, "card.number": "4200000000000000"}, "card.number"),
    ],
)
def test_half_a_date_or_a_wrong_one_is_refused_by_name(api: Api, sent: dict[str, str], wrong: str) -> None:
    registration = stored_card(api)
    browser = open_checkout(api, **{"registrations[0].id": registration})
    answer = browser.submit({"registrationId": registration, **sent})
    assert (answer.status, list(answer.errors)) == (400, [wrong])
    assert browser.state().body["attempts"] == 0


def test_an_account_that_is_no_card_has_no_date_to_renew(api: Api) -> None:
    account = {"bankAccount.iban": "DE23100000001234567890", "bankAccount.holder": "Jane Jones"}
    account |= {"bankAccount.country": "DE", "bankAccount.bankCode": "10000000"}
    registration = api.post("/v1/registrations", account | {"paymentBrand": "DIRECTDEBIT_SEPA"} | NAMES).id
    browser = open_checkout(api, **{"registrations[0].id": registration})
    answer = browser.submit({"registrationId": registration, **RENEWED})
    assert "it holds no card" in answer.errors["card.expiryMonth"]

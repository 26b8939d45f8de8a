"""Other ways to pay: direct debit, virtual account, a bank's own page in a window, wallets, fast checkout.

Source: Part A, What the service does, 8 and 9; decisions, section 7.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from playwright.sync_api import expect

from gateway.connectors.simulator import orders
from gateway.models import Division, Payment, Psp, Registration, Status
from tests.browser.conftest import picture
from tests.browser.patience import press_in, until
from tests.browser.widget import GOOD, Widget, checkout, result
from tests.support.client import Api
from tests.support.fixtures import open_shop
from tests.support.shopfront import Shopfront

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

Open = Callable[..., Widget]
APPROVE, DECLINE, CANCEL = (tuple(orders.ORDER_OUTCOMES).index(name) for name in ("approve", "decline", "cancel"))
ALL = "WALLET2 VISA MASTER DIRECTDEBIT_SEPA VIRTUALACCOUNT ONLINETRANSFER WEBWALLET SHOPWALLET"


@pytest.fixture
def api(transactional_db: None) -> Api:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop").api


def answers(widget: Widget, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Stand in for the gateway's answer to a submission; what was sent is kept."""
    sent: list[dict[str, Any]] = []

    def answer(route: Any) -> None:
        sent.append(
            {name: values[0] for name, values in route.request.post_data_json.items()}
            if isinstance(next(iter(route.request.post_data_json.values()), ""), list)
            else dict(route.request.post_data_json)
        )
        route.fulfill(json=body, headers={"Access-Control-Allow-Origin": "*"})

    widget.page.route(re.compile("/v1/checkouts/[^/]+/payment$"), answer)
    return sent


def stands_as(widget: Widget, state: str) -> dict[str, str]:
    """Stand in for the gateway's state."""
    now = {"state": state}
    widget.page.route(
        re.compile("/state$"),
        lambda route: route.fulfill(json={**now, "secondsLeft": 900}, headers={"Access-Control-Allow-Origin": "*"}),
    )
    return now


def test_ways_to_pay_stand_in_the_page_s_order(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """A8.4, A8.14: one row for each; the cards where the first of them stands."""
    widget = open_widget(390, 900).open(shop_site.widget(site, checkout(api), brands=ALL))
    rows = widget.page.locator(".wpwl-method-words > span:first-child")
    names = [
        "Mobile wallet 2",
        "Card",
        "Direct debit (SEPA)",
        "Virtual account",
        "Online transfer",
        "Web wallet",
        "Online shop wallet",
    ]
    expect(rows).to_have_text(names)
    picture(widget.page, "methods")


def test_direct_debit_by_iban(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """The IBAN is checked and grouped; the mandate's words name the amount; holder and IBAN are enough to pay."""
    checkout_id = checkout(api)
    widget = open_widget(390, 844).open(shop_site.widget(site, checkout_id, brands="DIRECTDEBIT_SEPA"))
    page = widget.page
    expect(page.locator(".wpwl-mandate")).to_contain_text("€92.00")
    page.get_by_label("Account holder").fill("Jane Jones")
    page.get_by_label("IBAN").press_sequentially("DE89370400440532013001")
    page.locator(".wpwl-button-pay").click()
    expect(page.locator(".wpwl-hint-ibanError")).to_have_text("Check the IBAN.")
    picture(page, "direct-debit")
    page.get_by_label("IBAN").fill("de89 3704 0044 0532 0130 00")
    with page.expect_request(re.compile("/payment$")) as sent:
        page.locator(".wpwl-button-pay").click()
    widget.lands()
    assert "bankAccount.bankCode=37040044&" in (sent.value.post_data or "") + "&"
    told = result(api, checkout_id)
    assert told.code == "000.100.110"
    assert told.body["bankAccount"]["country"] == "DE"


def test_a_window_that_is_closed_leads_back_and_a_card_pays(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A8.5: open brand A's window, close it, pay by VISA with the same checkout: one payment."""
    checkout_id = checkout(api)
    options = {"inlineFlow": ["ONLINETRANSFER"]}
    url = shop_site.widget(site, checkout_id, brands="ONLINETRANSFER VISA", options=options)
    widget = open_widget(500, 900).open(url)
    page = widget.page
    with page.expect_popup() as opened:
        page.locator(".wpwl-form-ONLINETRANSFER .wpwl-button-pay").click()
    expect(opened.value.get_by_role("button").first).to_be_visible()
    expect(page.locator(".wpwl-sheet-window")).to_contain_text("Finish paying in the other window")
    picture(page, "window")
    opened.value.close()
    expect(page.locator(".wpwl-note")).to_contain_text("We do not know yet how it went there.")
    page.get_by_role("radio", name="Card", exact=True).check()
    widget.fill()
    widget.press()
    widget.lands()
    assert paid() == ["VISA"]
    assert result(api, checkout_id).body["paymentBrand"] == "VISA"


def paid() -> list[str]:
    """Brands of the payments that moved money."""
    return list(Payment.objects.filter(status=Status.APPROVED).values_list("brand", flat=True))


def test_a_window_that_ends_leads_to_the_shop(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """A8.19: the state says it, never the window; the page goes on by itself. Taken back at the bank: the form."""
    checkout_id = checkout(api)
    options = {"inlineFlow": ["ONLINETRANSFER"]}
    widget = open_widget().open(shop_site.widget(site, checkout_id, brands="ONLINETRANSFER", options=options))
    pay = widget.page.locator(".wpwl-button-pay")
    for outcome in (CANCEL, DECLINE, APPROVE):
        with widget.page.expect_popup() as opened:
            pay.click()
        press_in(opened.value, outcome)
        if outcome == CANCEL:
            expect(widget.page.locator(".wpwl-note-info")).to_contain_text("The payment was not finished.")
        elif outcome == DECLINE:
            expect(widget.page.locator(".wpwl-note-error")).to_contain_text("You were not charged.")
    widget.lands()
    assert until(widget.page, opened.value.is_closed)
    assert paid() == ["ONLINETRANSFER"]


def test_an_online_transfer_takes_the_whole_page(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """Not in inlineFlow: the shopper goes to the bank, and from there to the shop."""
    checkout_id = checkout(api)
    widget = open_widget().open(shop_site.widget(site, checkout_id, brands="ONLINETRANSFER"))
    expect(widget.page.locator(".wpwl-button-pay")).to_have_text(re.compile("Continue to Online transfer"))
    widget.page.locator(".wpwl-button-pay").click()
    expect(widget.page.get_by_text("Test page")).to_be_visible()
    widget.page.get_by_role("button").nth(APPROVE).click()
    assert checkout_id in widget.lands()
    assert result(api, checkout_id).code == "000.100.110"


def fast(site: str, shop_site: Shopfront, brands: str, code: str, options: dict[str, Any] | None = None) -> str:
    return shop_site.widget(site, "", brands=brands, code=code, options=options)


CREATE = "window.asked = []; widgetOptions.createCheckout = (what) => { asked.push(what); return %s };"


def test_buttons_stand_before_there_is_a_checkout(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """A29.8, A9.1-5, A9.11, A8.20, A9.1, A9.2, A9.3, A9.4, A9.5:
    createCheckout gets the brand, once; items and total."""
    options = {
        "wallet2": {
            "merchantName": "The Corner Bookshop",
            "currencyCode": "EUR",
            "prefetchPriceStatus": "FINAL",
            "displayItems": [
                {"label": "A book", "type": "LINE_ITEM", "price": "90.00"},
                {"label": "Shipping", "type": "LINE_ITEM", "price": "2.00"},
            ],
        },
    }
    checkout_id = checkout(api)
    widget = open_widget(390, 844)
    page = widget.page
    page.goto(fast(site, shop_site, "WALLET2 SHOPWALLET", CREATE % f"'{checkout_id}'", options))
    button = page.get_by_role("button", name="Pay with Mobile wallet 2")
    picture(page, "fast-buttons")
    # Both at once: the sheet that the first opens may lie under the second.
    button.evaluate("(one) => { one.click(); one.click() }")
    sheet = page.locator(".wpwl-sheet-wallet")
    expect(sheet).to_contain_text("A book")
    expect(sheet.locator(".wpwl-total")).to_contain_text("€92.00")
    picture(page, "wallet-sheet")
    assert page.evaluate("asked") == [{"brand": "WALLET2"}]
    sheet.get_by_role("button", name=re.compile("Pay .*92")).click()
    widget.lands()
    assert Payment.objects.count() == 1
    assert result(api, checkout_id).body["paymentBrand"] == "WALLET2"


@pytest.mark.parametrize("kind", ["{ then(done) { setTimeout(() => done('%s'), 1) } }", "Promise.resolve('%s')"])
def test_any_thenable_will_do(api: Api, site: str, shop_site: Shopfront, open_widget: Open, kind: str) -> None:
    """A9.6: the native promise and anything with a then; paid."""
    widget = open_widget()
    widget.page.goto(fast(site, shop_site, "WALLET1", CREATE % (kind % checkout(api))))
    widget.page.get_by_role("button", name="Pay with Mobile wallet 1").click()
    widget.page.locator(".wpwl-sheet-wallet .wpwl-button-pay").click()
    widget.lands()
    assert paid() == ["WALLET1"]


@pytest.mark.parametrize("kind", ["Promise.reject(new Error('out of stock'))", "42"])
def test_a_rejection_is_readable_and_the_button_works_again(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, kind: str
) -> None:
    """A9.6."""
    widget = open_widget()
    widget.page.goto(fast(site, shop_site, "WALLET1", CREATE % kind))
    button = widget.page.get_by_role("button", name="Pay with Mobile wallet 1")
    for times in (1, 2):
        button.click()
        expect(widget.page.locator(".wpwl-note-error")).to_contain_text("The shop could not start the payment.")
        expect(button).to_have_attribute("aria-disabled", "false")
        assert len(widget.page.evaluate("asked")) == times


SHEET = """
  widgetOptions.wallet2 = {
    currencyCode: "EUR", billingAddressRequired: true,
    billingAddressParameters: { format: "FULL", phoneNumberRequired: true },
    onPaymentDataChanged: (data) => Promise.resolve({ newTransactionInfo: {
      totalPrice: data.callbackTrigger === "INITIALIZE" ? "92.00" : "95.00" } }),
    onPaymentAuthorized: (data) => { window.authorized = data; return Promise.resolve({
      transactionState: window.accept ? "SUCCESS" : "ERROR", error: { message: "We do not ship there." } }) },
  };
"""


def test_the_second_wallet_asks_the_page(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """A29.9, A9.12-14, A8.21, A9.12, A9.13, A9.14:
    total, billing address; ERROR shows an error and nothing is paid, SUCCESS closes."""
    widget = open_widget(390, 844)
    page = widget.page
    checkout_id = checkout(api)
    page.goto(fast(site, shop_site, "WALLET2", CREATE % f"'{checkout_id}'" + SHEET))
    page.get_by_role("button", name="Pay with Mobile wallet 2").click()
    sheet = page.locator(".wpwl-sheet-wallet")
    for label, value in {
        "Full name": "Jane",
        "Street": "Main 1",
        "City": "Rome",
        "Postcode": "00100",
        "Phone": "123",
    }.items():
        sheet.get_by_label(re.compile(label)).fill(value)
    sheet.get_by_label("Country").select_option("IT")
    expect(sheet.locator(".wpwl-total")).to_contain_text("€95.00")
    picture(page, "wallet-address")
    sheet.locator(".wpwl-button-pay").click()
    expect(sheet.get_by_role("alert")).to_contain_text("We do not ship there.")
    assert not Payment.objects.exists()
    assert page.evaluate("authorized.paymentMethodData.info.billingAddress.countryCode") == "IT"
    page.evaluate("window.accept = true; 0")
    assert api.post(f"/v1/checkouts/{checkout_id}", {"amount": "95.00"}).code == "000.200.101"
    sheet.locator(".wpwl-button-pay").click()
    widget.lands()
    assert paid() == ["WALLET2"]
    assert result(api, checkout_id).body["amount"] == "95.00"


TOTAL_AT = """
  widgetOptions.%s = {
    billingAddressRequired: true, billingAddressParameters: { format: "MIN" },
    onPaymentDataChanged: ({ callbackTrigger }) => callbackTrigger === "%s" ? updateCheckout().then(() => (
      { newTransactionInfo: { totalPrice: "95.00" } })) : {},
  };
"""


@pytest.mark.parametrize("when", ["INITIALIZE", "SHIPPING_ADDRESS"])
@pytest.mark.parametrize("wallet", ["1", "2", "3"])
def test_a_new_total_is_paid_where_the_page_names_its_checkout(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, wallet: str, when: str
) -> None:
    """A9.12, decision 0028: the id stands in the script's address; the shop updates the checkout while the sheet is
    open, and the total that the sheet shows is paid."""
    checkout_id = checkout(api)
    widget = open_widget(390, 844)
    page = widget.page
    page.expose_function("updateCheckout", lambda: api.post(f"/v1/checkouts/{checkout_id}", {"amount": "95.00"}).code)
    code = TOTAL_AT % (f"wallet{wallet}", when)
    widget.open(shop_site.widget(site, checkout_id, brands=f"WALLET{wallet}", code=code))
    page.get_by_role("button", name=f"Pay with Mobile wallet {wallet}").click()
    sheet = page.locator(".wpwl-sheet-wallet")
    sheet.get_by_label("Full name").fill("Jane")
    sheet.get_by_label("Postcode").fill("00100")
    sheet.get_by_label("Country").select_option("IT")
    expect(sheet.locator(".wpwl-total")).to_contain_text("€95.00")
    sheet.get_by_role("button", name=re.compile("Pay .*95")).click()
    widget.lands()
    assert paid() == [f"WALLET{wallet}"]
    assert result(api, checkout_id).body["amount"] == "95.00"


def test_leaving_a_field_by_pressing_pay_pays_the_total_of_the_button(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A9.12: the press is a change of the field that it leaves, so the page is asked while "Pay" is pressed. The same
    total is paid with that one press; another total is shown, and wants a press of its own."""
    checkout_id = checkout(api)
    code = """
      window.total = "92.00"; window.answers = [];
      widgetOptions.wallet2 = {
        billingAddressRequired: true, billingAddressParameters: { format: "MIN" },
        onPaymentDataChanged: ({ callbackTrigger }) => callbackTrigger === "INITIALIZE" ? {} : new Promise((done) => {
          const answer = () => done({ newTransactionInfo: { totalPrice: window.total } });
          window.hold ? answers.push(answer) : answer(); }),
      };
    """
    widget = open_widget(390, 844)
    page = widget.page
    widget.open(shop_site.widget(site, checkout_id, brands="WALLET2", code=code))
    page.get_by_role("button", name="Pay with Mobile wallet 2").click()
    sheet = page.locator(".wpwl-sheet-wallet")
    pay = sheet.locator(".wpwl-button-pay")
    sheet.get_by_label("Country").select_option("IT")
    sheet.get_by_label("Full name").fill("Jane")
    for total, postcode in (("95.00", "00100"), ("95.00", "00200")):
        sheet.get_by_label("Postcode").focus()  # what was left before has its answer
        expect(pay).to_have_attribute("aria-disabled", "false")
        page.evaluate("(total) => { window.total = total; window.hold = true }", total)
        sheet.get_by_label("Postcode").fill(postcode)
        pay.click()
        assert until(page, lambda: page.evaluate("answers.length") == 1)
        assert paid() == []
        if postcode == "00200":
            assert api.post(f"/v1/checkouts/{checkout_id}", {"amount": total}).code == "000.200.101"
        page.evaluate("window.hold = false; answers.splice(0).forEach((answer) => answer())")
        if postcode == "00100":
            expect(pay).to_have_text(re.compile("Pay .*95"))
            expect(pay).to_have_attribute("aria-disabled", "false")
            assert paid() == []
    widget.lands()
    assert paid() == ["WALLET2"]
    assert result(api, checkout_id).body["amount"] == "95.00"


def test_a_new_total_that_the_checkout_does_not_have_is_not_paid(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Decision 0028: the page shows another total and its server never sent it. The shopper is told, the page's
    developer is, and the next press pays once the checkout has it."""
    checkout_id = checkout(api)
    code = "window.updateCheckout = () => Promise.resolve();" + TOTAL_AT % ("wallet2", "INITIALIZE")
    widget = open_widget(390, 844)
    page = widget.page
    widget.open(shop_site.widget(site, checkout_id, brands="WALLET2", code=code))

    def press() -> None:
        page.get_by_role("button", name="Pay with Mobile wallet 2").click()
        sheet = page.locator(".wpwl-sheet-wallet")
        sheet.get_by_label("Full name").fill("Jane")
        sheet.get_by_label("Postcode").fill("00100")
        sheet.get_by_label("Country").select_option("IT")
        sheet.get_by_role("button", name=re.compile("Pay .*95")).click()

    press()
    expect(page.locator(".wpwl-note-error")).to_contain_text("The amount has changed")
    assert widget.says("The sheet showed 95.00", "92.00", "update the checkout")
    assert paid() == []
    assert api.post(f"/v1/checkouts/{checkout_id}", {"amount": "95.00"}).code == "000.200.101"
    press()
    widget.lands()
    assert paid() == ["WALLET2"]


def test_a_new_total_that_the_sheet_was_not_told_of_is_not_paid(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Decision 0028: the page updates the checkout while the sheet is open and answers nothing."""
    checkout_id = checkout(api)
    widget = open_widget(390, 844)
    page = widget.page
    page.expose_function("updateCheckout", lambda: api.post(f"/v1/checkouts/{checkout_id}", {"amount": "95.00"}).code)
    code = "widgetOptions.wallet2 = { onPaymentDataChanged: () => updateCheckout().then(() => {}) };"
    widget.open(shop_site.widget(site, checkout_id, brands="WALLET2", code=code))
    page.get_by_role("button", name="Pay with Mobile wallet 2").click()
    page.locator(".wpwl-sheet-wallet").get_by_role("button", name=re.compile("Pay .*92")).click()
    expect(page.locator(".wpwl-note-error")).to_contain_text("The amount has changed")
    assert widget.says("The sheet showed 92.00", "95.00")
    assert paid() == []


def test_a_wallet_s_sheet_that_is_closed_leaves_the_other_ways(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Close, choose card instead, pay: one charge only."""
    widget = open_widget(500, 900).open(shop_site.widget(site, checkout(api), brands="WALLET3 VISA"))
    widget.page.get_by_role("button", name="Pay with Mobile wallet 3").click()
    expect(widget.page.locator(".wpwl-sheet-wallet")).to_be_visible()
    widget.page.keyboard.press("Escape")
    expect(widget.page.locator(".wpwl-sheet-wallet")).to_have_count(0)
    widget.page.get_by_role("radio", name="Card", exact=True).check()
    widget.fill(GOOD)
    widget.press()
    widget.lands()
    assert Payment.objects.count() == 1


def test_the_online_shop_s_wallet_reads_its_options(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A9.15: colour and placement on the button; PayAndShip asks where to; then its own window."""
    options = {
        "shopWallet": {
            "merchantId": "m",
            "ledgerCurrency": "EUR",
            "sandbox": "true",
            "checkoutLanguage": "en_GB",
            "productType": "PayAndShip",
            "placement": "Cart",
            "buttonColor": "Gold",
        },
    }
    widget = open_widget(390, 844)
    page = widget.page
    page.goto(fast(site, shop_site, "SHOPWALLET", CREATE % f"'{checkout(api)}'", options))
    button = page.get_by_role("button", name="Pay with Online shop wallet")
    expect(button).to_have_css("background-color", "rgb(255, 196, 57)")
    expect(button).to_have_attribute("data-placement", "Cart")
    button.click()
    sheet = page.locator(".wpwl-sheet-wallet")
    expect(sheet.get_by_label("City")).to_be_visible()
    expect(sheet).to_have_attribute("data-language", "en_GB")
    for label, value in {"Full name": "Jane", "Street": "Main 1", "City": "Rome", "Postcode": "00100"}.items():
        sheet.get_by_label(re.compile(label)).fill(value)
    sheet.get_by_label("Country").select_option("IT")
    with page.expect_popup() as opened:
        sheet.locator(".wpwl-button-pay").click()
    press_in(opened.value, APPROVE)
    widget.lands()
    assert paid() == ["SHOPWALLET"]
    assert not [line for line in widget.said if "warning" in line]


@pytest.mark.parametrize("card,words", [("approved", ""), ("declined", "Your bank refused the payment.")])
@pytest.mark.parametrize("wallet", ["1", "2", "3"])
def test_the_simulated_wallets_pay_for_real(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, wallet: str, card: str, words: str
) -> None:
    """A9.9: a token of the channel's test key goes the ordinary way; the declined card leads back to the buttons."""
    widget = open_widget(500, 900).open(shop_site.widget(site, checkout(api), brands=f"WALLET{wallet}"))
    page = widget.page
    page.locator(".wpwl-button-pay").click()
    sheet = page.locator(".wpwl-sheet-wallet")
    sheet.get_by_label(card).check()
    sheet.locator(".wpwl-button-pay").click()
    if words:
        expect(page.locator(".wpwl-note-error")).to_contain_text(words)
    else:
        widget.lands()
    assert Payment.objects.get().brand == f"WALLET{wallet}"


def store(api: Api, **more: str) -> str:
    """The id of a card stored by the merchant's server."""
    fields = {
        "paymentBrand": "VISA",
        "card.number": GOOD,
        "card.expiryMonth": "12",
        "card.expiryYear": "2034",
        "card.holder": "Jane Jones",
        "card.cvv": "123",
        **more,
    }
    answer = api.post("/v1/registrations", fields)
    assert answer.status == 200, answer
    return answer.id


def test_saved_cards_stand_first(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """Ending and expiry; the code is asked and posted by its own frame; expired is marked and stands back."""
    good, old = store(api), store(api, **{"paymentBrand": "MASTER", "card.number": "5454545454545454"})
    expired = Registration.objects.get(pk=old)
    expired.details["card"] |= {"expiryMonth": "01", "expiryYear": "2024"}
    expired.save(update_fields=["details"])
    checkout_id = checkout(api, **{"registrations[0].id": good, "registrations[1].id": old})
    url = shop_site.widget(site, checkout_id, options={"registrations": {"requireCvv": True}})
    widget = open_widget(390, 900).open(url)
    page = widget.page
    rows = page.get_by_role("radio")
    expect(rows).to_have_count(3)
    expect(rows.first).to_be_checked()
    expect(page.locator(".wpwl-method").nth(1)).to_contain_text("Expired")
    picture(page, "saved")
    saved = page.locator(f"#wpwl-container-registration-{good}")
    saved.locator(".wpwl-button-pay").click()
    expect(saved.locator(".wpwl-hint-cvvError")).to_have_text("Enter the 3-digit security code.")
    saved.frame_locator("iframe").locator("#field").fill("123")
    widget.heard()
    saved.locator(".wpwl-button-pay").click()
    widget.lands()
    told = result(api, checkout_id)
    assert (told.code, told.body["registrationId"]) == ("000.100.110", good)


def test_a_card_is_saved_beside_a_payment_and_offered_in_the_next(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A29.4: nothing is ticked for the shopper; what was kept stands first the next time and pays."""
    shopper = {"customer.merchantCustomerId": "17"}
    first = checkout(api, **shopper)
    widget = open_widget(390, 900).open(shop_site.widget(site, first)).fill()
    keep = widget.page.get_by_label("Save this card for next time")
    expect(keep).not_to_be_checked()
    keep.check()
    widget.press()
    widget.lands()
    stored = result(api, first).body["registrationId"]
    second = checkout(api, **shopper, **{"registrations[0].id": stored})
    widget.open(shop_site.widget(site, second))
    widget.page.locator(f"#wpwl-container-registration-{stored} .wpwl-button-pay").click()
    widget.lands()
    assert result(api, second).body["registrationId"] == stored
    assert paid() == ["VISA", "VISA"]


def test_a_real_window_of_a_wallet_pays(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """A9.9, the web wallet's own page: the shopper agrees there, the shop's page goes on by itself."""
    checkout_id = checkout(api)
    widget = open_widget().open(shop_site.widget(site, checkout_id, brands="WEBWALLET VISA"))
    with widget.page.expect_popup() as opened:
        widget.page.locator(".wpwl-form-WEBWALLET .wpwl-button-pay").click()
    press_in(opened.value, APPROVE)
    widget.lands()
    assert api.get(f"/v1/checkouts/{checkout_id}/payment").code == "000.100.110"


def test_a_window_that_lost_its_tie_is_followed_by_the_state(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A bank's page may cut itself off: it looks closed, but has the focus. Cancel still leads back."""
    widget = open_widget().open(shop_site.widget(site, checkout(api), brands="WEBWALLET VISA"))
    page = widget.page
    redirect = {"url": f"{shop_site.url}/bank", "method": "GET", "parameters": []}
    answers(widget, {"result": {"code": "000.200.000"}, "state": "action", "redirect": redirect})
    stands_as(widget, "action")
    page.evaluate("document.hasFocus = () => false; 0")
    # Only a window that closes in its first moments was cut off: the page's time stands still.
    page.clock.set_fixed_time(datetime.now(UTC))
    with page.expect_popup() as opened:
        page.locator(".wpwl-form-WEBWALLET .wpwl-button-pay").click()
    sheet = page.locator(".wpwl-sheet-window")
    expect(sheet).to_be_visible()
    opened.value.close()
    expect(sheet.get_by_role("button", name="Show the window")).to_be_hidden()
    sheet.get_by_role("button", name="Cancel").click()
    expect(page.locator(".wpwl-note")).to_contain_text("you will not pay twice")

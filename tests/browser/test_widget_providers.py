"""Real wallets by configuration: a provider's own sheet in the merchant's page, its token opened by the gateway.

The providers stand on an origin of their own and behave as their public guides say (tests.support.wallet_providers).
Source: Part A, What the service does, 8 and 9; docs/decisions/0028.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import override_settings
from playwright.sync_api import expect

from gateway.core.money import Money
from gateway.core.secret import Secret
from gateway.models import Division, Payment, Psp, Status
from gateway.wallets import sandbox_tokens
from gateway.wallets.formats import WALLET_FORMATS
from gateway.wallets.token_factory import SAMPLE_GATEWAY_MERCHANT_ID, PaymentSheet
from tests.browser.conftest import picture
from tests.browser.patience import in_no_hurry
from tests.browser.widget import DECLINED_AT_THE_BANK, GOOD, Widget, checkout, result
from tests.support.fixtures import Shop, open_shop
from tests.support.shopfront import Shopfront, policy
from tests.support.wallet_providers import Providers, wallet_providers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

Open = Callable[..., Widget]
NINETY_TWO = Money(amount=Decimal("92.00"), currency="EUR")


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop")


@pytest.fixture
def provider(shop: Shop, tmp_path: Path) -> Iterator[Providers]:
    """Wallets 1 and 2 of the shop's channel have a provider."""
    with wallet_providers() as found:
        origins = {"WALLET1": [found.url], "WALLET2": [found.url], "WALLET3": ["https://wallet3.example"]}
        document = {
            "wallet1": {
                "name": "ProviderSession",
                "script": f"{found.url}/session.js",
                "merchantId": "merchant.shop.example",
                "displayName": "The Corner Bookshop",
                "domains": ["127.0.0.1"],
                "countryCode": "DE",
                "networks": ["visa", "masterCard"],
                "validationHosts": [found.url],
            },
            "wallet2": {
                "name": "provider.Client",
                "script": f"{found.url}/client.js",
                "networks": ["VISA", "MASTERCARD"],
                "tokenization": {
                    "type": "PAYMENT_GATEWAY",
                    "parameters": {"gateway": "tollhouse", "gatewayMerchantId": SAMPLE_GATEWAY_MERCHANT_ID},
                },
                "merchantId": "M-1",
                "merchantName": "The Corner Bookshop",
                "countryCode": "DE",
            },
            "wallet3": {"method": "https://wallet3.example/pay", "data": {"serviceId": "s"}, "token": "payment.data"},
        }
        file = tmp_path / "providers.json"
        file.write_text(json.dumps({"walletProviders": document}))
        with override_settings(GATEWAY_WALLET_ORIGINS=origins):
            call_command("configure", "--entity", shop.channel.entity_id, str(file))
            yield found


def token_of(shop: Shop, wallet: str, number: str = GOOD) -> str:
    """A token that the channel's key opens."""
    form = WALLET_FORMATS[wallet][0]
    sandbox_tokens.generate_channel_keys(shop.channel, form)
    return sandbox_tokens.build_channel_token(
        shop.channel, wallet, form, PaymentSheet(number=Secret(number), money=NINETY_TWO)
    )


def page_of(site: str, shop_site: Shopfront, provider: Providers, checkout_id: str, brands: str, **more: Any) -> str:
    """A page whose policy names the provider's origin where the spec says so."""
    csp = policy(site)
    for name in ("frame-src", "script-src", "connect-src", "img-src"):
        csp = csp.replace(f"{name} 'self'", f"{name} 'self' {provider.url}")
    return shop_site.widget(site, checkout_id, brands=brands, csp=csp, **more)


def agree(widget: Widget) -> None:
    widget.page.locator("#provider-sheet").get_by_role("button", name="Agree").click()


def brands_paid() -> list[str]:
    return list(Payment.objects.filter(status=Status.APPROVED).values_list("brand", flat=True))


def test_wallet_2_opens_the_provider_s_sheet_and_its_token_pays(
    shop: Shop, provider: Providers, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Ready first, then the button; closed: back to the form; agreed: paid, and the provider was asked rightly."""
    provider.token = token_of(shop, "wallet2")
    checkout_id = checkout(shop.api)
    widget = open_widget(390, 844).open(page_of(site, shop_site, provider, checkout_id, "WALLET2 VISA"))
    page = widget.page
    row = page.get_by_role("radio", name="Mobile wallet 2")
    row.check()
    pay = page.locator(".wpwl-wallet-WALLET2")
    pay.click()
    page.locator("#provider-sheet").get_by_role("button", name="Away").click()
    expect(page.locator(".wpwl-note")).to_contain_text("The payment was not finished. You were not charged.")
    pay.click()
    expect(page.locator("#provider-sheet")).to_contain_text("The Corner Bookshop 92.00")
    picture(page, "provider-sheet")
    asked = page.evaluate("({ ready: provider.asked[0], request: provider.request, options: provider.options })")
    agree(widget)
    widget.lands()
    assert result(shop.api, checkout_id).body["paymentBrand"] == "WALLET2"
    assert brands_paid() == ["WALLET2"]
    assert "tokenizationSpecification" not in asked["ready"]["allowedPaymentMethods"][0]
    method = asked["request"]["allowedPaymentMethods"][0]
    assert method["tokenizationSpecification"] == {
        "type": "PAYMENT_GATEWAY",
        "parameters": {"gateway": "tollhouse", "gatewayMerchantId": SAMPLE_GATEWAY_MERCHANT_ID},
    }
    assert method["parameters"]["allowedCardNetworks"] == ["VISA", "MASTERCARD"]
    assert asked["request"]["transactionInfo"] == {
        "totalPriceStatus": "FINAL",
        "totalPrice": "92.00",
        "currencyCode": "EUR",
        "countryCode": "DE",
    }
    assert asked["options"]["environment"] == "TEST"
    assert not widget.faults


CALLBACKS = """
  widgetOptions.wallet2 = {
    billingAddressRequired: true, displayItems: [{ label: "A book", type: "LINE_ITEM", price: "92.00" }],
    onPaymentDataChanged: () => Promise.resolve({
      newTransactionInfo: { totalPrice: "95.00", totalPriceStatus: "FINAL", currencyCode: "EUR" } }),
    onPaymentAuthorized: (data) => {
      window.authorized = data;
      return Promise.resolve({ transactionState: window.accept ? "SUCCESS" : "ERROR" });
    },
  };
"""


def test_the_page_s_callbacks_answer_the_provider_and_the_agreed_total_is_the_charged_one(
    shop: Shop, provider: Providers, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A9.12, A9.14: ERROR ends without a payment; a total that the checkout does not have is not charged."""
    provider.token = token_of(shop, "wallet2")
    checkout_id = checkout(shop.api)
    widget = open_widget().open(page_of(site, shop_site, provider, checkout_id, "WALLET2", code=CALLBACKS))
    page, pay = widget.page, widget.page.locator(".wpwl-wallet-WALLET2")
    pay.click()
    agree(widget)
    expect(page.locator(".wpwl-note")).to_contain_text("You were not charged.")
    assert page.evaluate("provider.request.callbackIntents") == ["PAYMENT_METHOD", "PAYMENT_AUTHORIZATION"]
    assert page.evaluate("authorized.paymentMethodData.info.billingAddress.locality") == "Rome"
    page.evaluate("window.accept = true; 0")
    pay.click()
    agree(widget)
    expect(page.locator(".wpwl-note")).to_contain_text("The amount has changed.")
    assert not Payment.objects.exists()
    assert shop.api.post(f"/v1/checkouts/{checkout_id}", {"amount": "95.00"}).code == "000.200.101"
    pay.click()
    agree(widget)
    widget.lands()
    assert result(shop.api, checkout_id).body["amount"] == "95.00"


def test_fast_checkout_with_a_provider(
    shop: Shop, provider: Providers, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Part A, 9: the button stands before the checkout; pressed, the provider's sheet opens."""
    provider.token = token_of(shop, "wallet2")
    code = f"widgetOptions.createCheckout = () => Promise.resolve('{checkout(shop.api)}');"
    widget = open_widget()
    widget.page.goto(page_of(site, shop_site, provider, "", "WALLET2", code=code))
    widget.page.get_by_role("button", name="Pay with Mobile wallet 2").click()
    agree(widget)
    widget.lands()
    assert brands_paid() == ["WALLET2"]


@pytest.mark.parametrize("number,status", [(GOOD, 0), (DECLINED_AT_THE_BANK, 1)])
def test_wallet_1_is_vouched_for_by_our_server_and_told_how_it_went(
    shop: Shop, provider: Providers, site: str, shop_site: Shopfront, open_widget: Open, number: str, status: int
) -> None:
    """The provider's session comes through the gateway; completePayment says success, or failure and the form stays."""
    provider.token = token_of(shop, "wallet1", number)
    checkout_id = checkout(shop.api)
    widget = open_widget().open(page_of(site, shop_site, provider, checkout_id, "WALLET1"))
    page = widget.page
    page.locator(".wpwl-wallet-WALLET1").click()
    expect(page.locator("#provider-sheet")).to_contain_text("The Corner Bookshop 92.00")
    assert page.evaluate("ProviderSession.last.session") == {"merchantSessionIdentifier": "M1"}
    assert provider.asked == [
        {
            "merchantIdentifier": "merchant.shop.example",
            "displayName": "The Corner Bookshop",
            "initiative": "web",
            "initiativeContext": "127.0.0.1",
        }
    ]
    assert page.evaluate("ProviderSession.last.request") == {
        "countryCode": "DE",
        "currencyCode": "EUR",
        "supportedNetworks": ["visa", "masterCard"],
        "merchantCapabilities": ["supports3DS"],
        "total": {"label": "The Corner Bookshop", "amount": "92.00", "type": "final"},
    }
    if status:
        agree(widget)
        expect(page.locator(".wpwl-note-error")).to_contain_text("Your bank refused the payment.")
        assert page.evaluate("ProviderSession.completed") == {"status": 1}
    else:
        page.evaluate(
            "addEventListener('pagehide', () => sessionStorage.setItem('s', JSON.stringify(ProviderSession.completed)))"
        )
        agree(widget)
        widget.lands()
        assert json.loads(page.evaluate("sessionStorage.getItem('s')")) == {"status": 0}
    assert Payment.objects.get().brand == "WALLET1"


def test_a_provider_that_is_not_configured_is_not_asked(
    shop: Shop, provider: Providers, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A page that was tampered with cannot make the gateway ask hosts of its choice; the shopper reads clear words."""
    provider.validation = f"{site}/health/live"
    widget = open_widget().open(page_of(site, shop_site, provider, checkout(shop.api), "WALLET1"))
    widget.page.locator(".wpwl-wallet-WALLET1").click()
    expect(widget.page.locator(".wpwl-note-error")).to_contain_text("You were not charged.")
    assert widget.page.evaluate("ProviderSession.aborted") is True
    assert widget.says("validationUrl must lie at one of")
    assert not provider.asked


def test_a_wallet_that_this_shopper_does_not_have_is_left_out(
    shop: Shop, provider: Providers, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """isReadyToPay false, a session that cannot pay: cards stay; where nothing else is offered, the form says so."""
    provider.away = {"client", "session"}
    widget = open_widget().open(page_of(site, shop_site, provider, checkout(shop.api), "WALLET1 WALLET2 VISA"))
    expect(widget.page.locator(".wpwl-wallet")).to_have_count(0)
    expect(widget.page.get_by_role("radio", name="Card")).to_be_checked()
    widget.open(page_of(site, shop_site, provider, checkout(shop.api), "WALLET2"))
    expect(widget.page.locator(".wpwl-end")).to_contain_text("No way to pay is available here")


PAYMENT_REQUEST = """
  window.PaymentRequest = class {
    constructor(methods, details) { sessionStorage.setItem("asked", JSON.stringify({ methods, details })); }
    canMakePayment() { return Promise.resolve(true); }
    async show() {
      const complete = async (how) => sessionStorage.setItem("how", how);
      return { details: { payment: { data: window.walletToken } }, complete };
    }
  };
"""


def test_wallet_3_goes_by_the_browser_s_payment_request(
    shop: Shop, provider: Providers, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """The method, its data and where the token stands are the configuration's."""
    code = f"window.walletToken = {json.dumps(token_of(shop, 'wallet3'))};{PAYMENT_REQUEST}"
    checkout_id = checkout(shop.api)
    widget = open_widget().open(page_of(site, shop_site, provider, checkout_id, "WALLET3", code=code))
    widget.page.locator(".wpwl-wallet-WALLET3").click()
    widget.lands()
    asked = json.loads(widget.page.evaluate("sessionStorage.getItem('asked')"))
    assert result(shop.api, checkout_id).body["paymentBrand"] == "WALLET3"
    assert asked["methods"] == [{"supportedMethods": "https://wallet3.example/pay", "data": {"serviceId": "s"}}]
    assert asked["details"]["total"]["amount"] == {"currency": "EUR", "value": "92.00"}
    assert widget.page.evaluate("sessionStorage.getItem('how')") == "success"


def test_a_policy_without_the_provider_is_told_by_name(
    shop: Shop, provider: Providers, site: str, shop_site: Shopfront, chromium: Any
) -> None:
    """A8.28: missing one gives a named console error; the other ways to pay stay."""
    context = in_no_hurry(chromium.new_context())
    page = context.new_page()
    words = f"does the page's Content-Security-Policy name {provider.url}?"
    with page.expect_console_message(lambda line: words in line.text):
        page.goto(shop_site.widget(site, checkout(shop.api), brands="WALLET2 VISA"))
    expect(page.get_by_role("radio", name="Mobile wallet 2")).to_have_count(0)
    context.close()

"""What a merchant's page decides: options, hooks, several forms, loading late and twice, the outer-form trap.

Source: Part A, What the service does, 8; decisions, section 7.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Route, expect

from gateway.models import Division, Payment, Psp, Status
from tests.browser.conftest import picture
from tests.browser.patience import PATIENCE_MS
from tests.browser.test_widget_means import store
from tests.browser.widget import DECLINED_AT_THE_BANK, GOOD, Widget, checkout, held, let_go, result
from tests.support.client import Api
from tests.support.doc_blocks import read_block
from tests.support.fixtures import open_shop
from tests.support.later_version import with_news
from tests.support.shopfront import NONCE, WIDGET, Shopfront

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

Open = Callable[..., Widget]


@pytest.fixture
def api(transactional_db: None) -> Api:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop").api


def test_labels_and_messages_of_the_page_win(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """A8.9."""
    options = {
        "labels": {"cardNumber": "Your number", "submit": "Book {amount}"},
        "errorMessages": {"cardNumberMissing": "The number, please."},
    }
    widget = open_widget().open(shop_site.widget(site, checkout(api), options=options))
    expect(widget.page.locator(".wpwl-label-cardNumber")).to_have_text("Your number")
    expect(widget.pay).to_have_text("Book \u2068€92.00\u2069")
    widget.press()
    expect(widget.hint("cardNumber")).to_have_text("The number, please.")


def test_a_form_that_is_older_than_the_gateway_pays(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A4.2: new fields in whatever the gateway answers the form are passed over."""
    widget, told = open_widget(), list[str]()

    def later(route: Route) -> None:
        answer = route.fetch(timeout=PATIENCE_MS)
        told.append(urlsplit(route.request.url).path.rpartition("/")[2])
        route.fulfill(response=answer, json=with_news(answer.json()))

    widget.page.route(re.compile("/v1/checkouts/"), later)
    widget.open(shop_site.widget(site, checkout(api))).fill()
    widget.press()
    widget.lands()
    assert {"config", "payment"} <= set(told)
    assert not widget.faults
    assert Payment.objects.get().status == Status.APPROVED


@pytest.mark.parametrize("zone, minutes", [("America/Bogota", "300"), ("Africa/Maputo", "-120"), ("UTC", "0")])
def test_the_browser_s_time_zone_is_told_from_utc(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, zone: str, minutes: str
) -> None:
    """A20.9: minutes from local time to UTC: positive behind it (UTC-5), negative ahead of it (UTC+2)."""
    widget = open_widget(timezone_id=zone).open(shop_site.widget(site, checkout(api))).fill()
    with widget.page.expect_request(re.compile("/v1/checkouts/[^/]+/payment$")) as sent:
        widget.press()
    widget.lands()
    fields = dict(parse_qsl(sent.value.post_data or ""))
    assert fields["customer.browser.timezone"] == minutes


def test_a_page_may_ask_for_the_billing_address(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """The option billingAddress, where the channel needs none: empty, filled in, and what the shop's server sent."""
    options = {"billingAddress": {"city": "Rome", "country": "IT"}}
    sent = checkout(api, **{"billing.postcode": "00100"})
    widget = open_widget().open(shop_site.widget(site, sent, options=options))
    labels = widget.page.locator(".wpwl-billing .wpwl-label")
    expect(labels).to_have_text(["Street and house number", "City", "Country"])
    widget.fill()
    widget.page.locator(".wpwl-control-street1").fill("Via Appia 1")
    widget.press()
    widget.lands()
    answer = api.get(f"/v1/checkouts/{sent}/payment")
    assert answer.body["billing"] == {"street1": "Via Appia 1", "city": "Rome", "country": "IT", "postcode": "00100"}


def test_fields_that_do_not_load_are_told_and_tried_again(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Behind a network or a policy that keeps the frames away nobody can type: the form says so, the console why."""
    widget = open_widget()
    widget.page.route(re.compile(r"/frame\.html"), lambda route: route.abort())
    widget.page.goto(shop_site.widget(site, checkout(api)))
    note = widget.page.locator(".wpwl-note-error")
    expect(note).to_contain_text("could not be loaded")
    assert widget.says("hosted fields did not load", "frame-src")
    picture(widget.page, "no-frames")
    widget.page.unroute(re.compile(r"/frame\.html"))
    note.get_by_role("button").click()
    widget.ready().fill()
    expect(note).to_have_count(0)
    widget.press()
    widget.lands()


def test_unknown_options_and_wrong_types_are_warned_about(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A8.18, A9.10, A9.15: with a suggestion; the form is drawn all the same."""
    options = {
        "stlye": "card",
        "style": "crad",
        "maskCvv": "yes",
        "wallet2": {"merchantNmae": "Shop", "displayItems": "two"},
        "shopWallet": {"sandbox": True},
    }
    widget = open_widget().open(shop_site.widget(site, checkout(api), options=options))
    assert widget.says("widgetOptions.stlye is not an option. Did you mean style?")
    assert widget.says('style "crad" is none of', "Did you mean card?")
    assert widget.says("widgetOptions.maskCvv must be of type boolean")
    assert widget.says("widgetOptions.wallet2.merchantNmae", "Did you mean merchantName?")
    assert widget.says("widgetOptions.wallet2.displayItems must be of type array")
    assert widget.says("widgetOptions.shopWallet.sandbox", 'text "true" or "false"')
    expect(widget.root).to_have_class(re.compile("wpwl-style-card"))


EVIL = "https://evil.example"
LIKE_OURS = f"{EVIL}/v1/paymentWidgets.js"


@pytest.mark.parametrize(
    "planted",
    [
        f'<img name="currentScript" src="{LIKE_OURS}">',
        f'<img name="currentScript"><form name="scripts"><input type="image" src="{LIKE_OURS}"></form>',
        f'<a id="widgetOptions"></a><a id="widgetOptions" name="baseUrl" href="{EVIL}/"></a>',
        f'<a id="wpwlOptions"></a><a id="wpwlOptions" name="baseUrl" href="{EVIL}/"></a>',
        f'<iframe name="widgetOptions" src="{EVIL}"></iframe>',
    ],
    ids=["script", "scripts", "options", "other name", "frame"],
)
def test_an_element_that_a_stranger_writes_into_the_page_decides_nothing(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, planted: str
) -> None:
    """A comment with HTML and without scripts, in a shop that lets it through: browsers make names of elements
    properties of window and document, and the card would be typed into a frame of the stranger's."""
    widget, asked = open_widget(), list[str]()

    def answer(route: Route) -> None:
        asked.append(f"{route.request.resource_type} {route.request.url}")
        route.abort()

    widget.page.route(re.compile(EVIL), answer)
    unset = "delete window.widgetOptions;"
    page = shop_site.widget(site, checkout(api), code=unset, body=planted + WIDGET, csp="")
    widget.open(page).fill()
    assert urlsplit(str(widget.page.locator(".wpwl-frame").first.get_attribute("src"))).netloc == urlsplit(site).netloc
    assert not [one for one in asked if not one.startswith("image") and one != f"document {EVIL}/"]
    widget.press()
    widget.lands()


def test_a_script_that_does_not_run_decides_nothing(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A page's policy stops a stranger's script; its element stays, after the real one in the head."""
    ours = f'<script defer src="{site}/v1/paymentWidgets.js?checkoutId={checkout(api)}"></script>'
    planted = f'<img name="currentScript"><script type="text/plain" src="{LIKE_OURS}"></script>'
    body = f"<main>{WIDGET.format(brands='VISA')}</main>{planted}"
    widget = open_widget()
    widget.page.route(re.compile(EVIL), lambda route: route.abort())
    widget.open(shop_site.show("/pay", f"<!doctype html><title>Shop</title>{ours}{body}", ""))
    assert urlsplit(str(widget.page.locator(".wpwl-frame").first.get_attribute("src"))).netloc == urlsplit(site).netloc


@pytest.mark.parametrize("style", ["card", "logos", "plain", "none"])
def test_every_style_draws_a_form_that_pays(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, style: str
) -> None:
    """A8.18."""
    widget = open_widget(500, 700).open(shop_site.widget(site, checkout(api), options={"style": style}))
    picture(widget.page, f"style-{style}")
    widget.fill()
    widget.press()
    widget.lands()


def test_a_base_address_without_its_slash_is_refused_by_name(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A8.29."""
    widget = open_widget()
    widget.page.goto(shop_site.widget(site, checkout(api), options={"baseUrl": site}))
    assert widget.says("error", "widgetOptions.baseUrl must be", "ends with a slash")
    expect(widget.page.locator(".wpwl-widget")).to_have_count(0)
    widget.open(shop_site.widget(site, checkout(api), options={"baseUrl": f"{site}/"}))
    expect(widget.pay).to_be_visible()


@pytest.mark.parametrize(
    "hook",
    [
        "() => false",
        "() => Promise.resolve(false)",
        "() => Promise.reject(new Error('no'))",
        "() => { throw new Error('no') }",
    ],
)
def test_a_hook_stops_the_submission(api: Api, site: str, shop_site: Shopfront, open_widget: Open, hook: str) -> None:
    """A8.16: false, or a promise of it, or a check that failed: no network call."""
    widget = open_widget()
    code = f"widgetOptions.onBeforeSubmitCard = () => {{ console.log('asked'); return ({hook})() }}"
    widget.open(shop_site.widget(site, checkout(api), code=code)).fill()
    posts: list[str] = []
    widget.page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    with widget.page.expect_console_message(lambda said: said.text == "asked"):
        widget.press()
    expect(widget.pay).to_have_attribute("aria-disabled", "false")
    assert not posts
    assert not Payment.objects.exists()


def test_hooks_are_called_in_their_time(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """onReady with the containers, onChangeBrand, onBeforeSubmitCard, onAfterSubmit; true lets it pass."""
    code = """window.calls = [];
      for (const name of ["onReady", "onChangeBrand", "onAfterSubmit"])
        widgetOptions[name] = (value) => { sessionStorage.calls = (sessionStorage.calls || "") + name + " " };
      widgetOptions.onBeforeSubmitCard = () => { sessionStorage.calls += "before "; return true };"""
    widget = open_widget().open(shop_site.widget(site, checkout(api), code=code)).fill()
    widget.heard().page.evaluate("wpwl.executePayment('wpwl-container-card')")
    widget.lands()
    assert widget.page.evaluate("sessionStorage.calls") == "onReady onChangeBrand before onAfterSubmit "


def test_the_page_is_told_once_that_all_its_forms_stand(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """What it puts into them then is there once."""
    forms = "".join(WIDGET.format(brands=brands) for brands in ("VISA", "MASTER", "XXX"))
    code = """widgetOptions.onReady = (containers) => {
      window.told = containers.map(({ id }) => id);
      for (const one of document.querySelectorAll(".wpwl-container"))
        one.insertAdjacentHTML("beforeend", "<i>secure</i>");
    }"""
    page = open_widget().open(shop_site.widget(site, checkout(api), body=forms, code=code)).page
    expect(page.locator(".wpwl-form-card")).to_have_count(2)
    expect(page.locator(".wpwl-container i")).to_have_count(2)
    assert page.evaluate("told") == ["wpwl-container-card", "wpwl-container-card-2"]


def test_hooks_are_methods_of_the_options(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    code = """widgetOptions.agreed = false;
      widgetOptions.onReady = function () { window.ready = this === widgetOptions };
      widgetOptions.onBeforeSubmitCard = function () { console.log("asked"); return this.agreed };"""
    widget = open_widget().open(shop_site.widget(site, checkout(api), code=code)).fill()
    assert widget.page.evaluate("ready")
    with widget.page.expect_console_message(lambda said: said.text == "asked"):
        widget.press()
    expect(widget.pay).to_have_attribute("aria-disabled", "false")
    widget.page.evaluate("widgetOptions.agreed = true")
    widget.press()
    widget.lands()


def test_fields_that_the_page_puts_into_the_form_are_sent(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Part A, What the service does, 8; A28.6: what a browser may set, and nothing else of the page's."""
    code = """widgetOptions.onReady = () => {
        const place = document.querySelector("form.wpwl-form-card .wpwl-wrapper-submit");
        place.insertAdjacentHTML("beforebegin", `
          <input type="hidden" name="customParameters[SHOPPER_gift]" value="yes">
          <select name="customParameters[SHOPPER_term]"><option>3</option><option selected>6</option></select>
          <input type="hidden" name="amount" value="1.00">
          <input type="hidden" name="customParameters[gift]" value="yes">
          <label><input type="checkbox" name="createRegistration"> Remember me</label>`);
      }"""
    known, unknown = checkout(api, **{"customer.merchantCustomerId": "17"}), checkout(api)
    for checkout_id, kept in ((known, True), (unknown, False)):
        widget = open_widget().open(shop_site.widget(site, checkout_id, code=code)).fill()
        expect(widget.page.get_by_role("checkbox")).to_have_count(1)
        widget.page.get_by_label("Remember me").check()
        widget.press()
        widget.lands()
        told = result(api, checkout_id).body
        assert told["customParameters"] == {"SHOPPER_gift": "yes", "SHOPPER_term": "6"}
        assert (told["amount"], "registrationId" in told) == ("92.00", kept)
        assert widget.says("warning", "amount is left out")
        assert widget.says("warning", "customParameters[gift] is left out")
        assert not widget.faults
    # Where the checkout does not offer to save, the page is told.
    assert widget.says("warning", "createRegistration is left out")


def test_a_box_of_the_page_that_is_not_ticked_stores_nothing(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    code = f"""{read_block("widget.md", "Fields of your own in the form", "js")}
      const documented = widgetOptions.onReady;
      widgetOptions.onReady = () => {{
        documented();
        const place = document.querySelector("form.wpwl-form-card .wpwl-button");
        place.insertAdjacentHTML("beforebegin", `
          <input type="checkbox" name="createRegistration" value="true">
          <input type="hidden" name="createRegistration" value="false">`);
      }};"""
    checkout_id = checkout(api, **{"customer.merchantCustomerId": "17"})
    widget = open_widget().open(shop_site.widget(site, checkout_id, code=code)).fill()
    widget.press()
    widget.lands()
    told = result(api, checkout_id).body
    assert told["customParameters"] == {"SHOPPER_gift": "yes"}
    assert "registrationId" not in told


def test_fields_that_the_gateway_would_refuse_stop_no_payment(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """The shopper could not correct them: a name is left out, lines of text become one."""
    code = """widgetOptions.onReady = () => {
        document.querySelector("form.wpwl-form-card .wpwl-wrapper-submit").insertAdjacentHTML("beforebegin", `
          <textarea name="customParameters[SHOPPER_note]"></textarea>
          <input type="file" name="customParameters[SHOPPER_file]">
          <input name="customParameters[SHOPPER_gift wrap]" value="yes">
          <input name="customParameters[SHOPPER_tags][]" value="yes">`);
      }"""
    checkout_id = checkout(api)
    widget = open_widget().open(shop_site.widget(site, checkout_id, code=code)).fill()
    widget.page.locator("textarea").fill("Ring  twice.\nThank you.")
    widget.press()
    widget.lands()
    assert result(api, checkout_id).body["customParameters"] == {"SHOPPER_note": "Ring  twice. Thank you."}
    for name in ("file]", "gift wrap]", "tags][]"):
        assert widget.says("warning", f"customParameters[SHOPPER_{name} is left out")


def test_fields_of_the_page_go_with_a_wallet_and_a_stored_card(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """All forms of a page get them; a stored card is stored already."""
    code = """widgetOptions.onReady = () => document.querySelectorAll("form.wpwl-form").forEach((form) =>
        form.insertAdjacentHTML("afterbegin", `<input name="customParameters[SHOPPER_gift]" value="yes">
          <input type="hidden" name="createRegistration" value="true">`));"""
    wallet = checkout(api, **{"customer.merchantCustomerId": "17"})
    widget = open_widget().open(shop_site.widget(site, wallet, brands="WALLET2 VISA", code=code))
    # Enter presses the form's button, and does not send the page's form anywhere.
    widget.page.locator(".wpwl-form-WALLET2 input").first.press("Enter")
    widget.page.locator(".wpwl-sheet-wallet .wpwl-button-pay").click()
    widget.lands()
    stored = checkout(api, **{"registrations[0].id": store(api)})
    widget.open(shop_site.widget(site, stored, code=code))
    widget.page.locator(".wpwl-form-registrations .wpwl-button-pay").click()
    widget.lands()
    for paid in (wallet, stored):
        assert result(api, paid).body["customParameters"] == {"SHOPPER_gift": "yes"}
    assert not widget.faults


@pytest.mark.parametrize("style", ["card", "none"])
def test_the_pages_own_box_stands_in_place_of_the_forms(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, style: str
) -> None:
    code = """widgetOptions.onReady = () => document.querySelector(".wpwl-wrapper-submit").insertAdjacentHTML(
        "beforebegin", '<label><input type="checkbox" name="createRegistration"> Remember me</label>');"""
    checkout_id = checkout(api, **{"customer.merchantCustomerId": "17"})
    widget = open_widget().open(shop_site.widget(site, checkout_id, options={"style": style}, code=code))
    expect(widget.page.get_by_role("checkbox", name="Remember me")).to_be_visible()
    expect(widget.page.get_by_role("checkbox")).to_have_count(1)


def test_a_field_that_is_moved_while_it_pays_does_not_hold_the_form(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A page that lays something over the form after it was sent: the document that was to tell the answer is gone."""
    widget = open_widget().open(shop_site.widget(site, checkout(api))).fill()
    held(widget, "/payment$")
    with widget.page.expect_request(re.compile("/payment$")):
        widget.press()
    widget.page.evaluate(
        """() => { const form = document.querySelector(".wpwl-form-card"), box = document.createElement("div");
          form.before(box); box.append(form) }"""
    )
    expect(widget.hint("cardNumber")).to_be_visible()
    expect(widget.pay).to_have_attribute("aria-disabled", "false")
    expect(widget.number).to_have_value("")


def test_groups_that_the_page_moves_stay_what_they_were(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A browser loads a frame anew that is put elsewhere in the page."""
    code = """widgetOptions.maskCvv = true; widgetOptions.onChangeBrand = (code) => { window.brand = code };
      widgetOptions.onReady = () => {
        const box = document.createElement("div");
        const [expiry, cvv] = document.querySelectorAll(".wpwl-group-expiry, .wpwl-group-cvv");
        expiry.before(box);
        box.append(expiry, cvv);
        document.querySelector(".wpwl-group-cardHolder").after(document.querySelector(".wpwl-group-cardNumber"));
      }"""
    widget = open_widget().open(shop_site.widget(site, checkout(api), code=code))
    expect(widget.number).to_have_attribute("aria-label", "Card number")
    expect(widget.cvv).to_have_attribute("placeholder", "•••")
    expect(widget.cvv).to_have_css("-webkit-text-security", "disc")
    widget.fill("378282246310005", cvv="1234")
    assert widget.heard().page.evaluate("brand") == "AMEX"
    widget.press()
    widget.lands()
    assert not widget.faults


def test_a_container_pays_wherever_the_page_has_put_it(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    code = "widgetOptions.onReady = ([container]) => document.querySelector('h1').before(container);"
    widget = open_widget().open(shop_site.widget(site, checkout(api), code=code)).fill()
    widget.heard().page.evaluate("wpwl.executePayment('wpwl-container-card')")
    widget.lands()
    assert not widget.faults


def test_a_container_elsewhere_is_drawn_as_in_its_place(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """What is hidden stays hidden, the button is seen to be busy, and at the end nothing is left to fill in."""
    code = "widgetOptions.onReady = ([container]) => document.querySelector('h1').before(container);"
    stored = store(api)
    page = shop_site.widget(site, checkout(api, **{"registrations[0].id": stored}), code=code, lang="de")
    widget = open_widget().open(page)
    moved = widget.page.locator(f"#wpwl-container-registration-{stored}")
    expect(moved.locator(".wpwl-button-pay")).to_have_css("background-color", "rgb(15, 118, 110)")
    expect(moved.get_by_role("button")).to_have_count(1)
    expect(moved).to_have_attribute("lang", "de")
    widget.page.evaluate("wpwl.unload()")
    expect(widget.page.locator(".wpwl-container")).to_have_count(0)

    widget = open_widget().open(shop_site.widget(site, checkout(api), code=code)).fill(DECLINED_AT_THE_BANK)
    held_back = held(widget, "/payment$")
    widget.press()
    expect(widget.pay).to_have_attribute("aria-disabled", "true")
    let_go(widget, held_back)
    expect(widget.pay).to_have_attribute("aria-disabled", "false")


@pytest.mark.parametrize("value", ["null", "5", "true", "{}"])
def test_options_of_a_wrong_type_take_no_form_away(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, value: str
) -> None:
    """A8.18: the default, and a word in the console."""
    code = "".join(
        f"widgetOptions.{name} = {value};"
        for name in ("style", "locale", "labels", "errorMessages", "inlineFlow", "registrations", "customParameters")
    )
    widget = open_widget().open(shop_site.widget(site, checkout(api), brands="VISA ONLINETRANSFER", code=code))
    expect(widget.page.locator(".wpwl-widget.wpwl-style-card")).to_have_count(1)
    expect(widget.page.get_by_role("radio")).to_have_count(2)
    assert widget.says("warning", "widgetOptions.style")
    assert not widget.faults


def test_what_the_page_writes_on_the_pay_button_in_on_ready_stays(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Words that a page writes into the button when the form is ready stay there."""
    code = "widgetOptions.onReady = () => { document.querySelector('.wpwl-button-text').textContent = 'Order now' };"
    widget = open_widget().open(shop_site.widget(site, checkout(api), code=code))
    for _picture in range(2):
        widget.page.evaluate("new Promise((end) => requestAnimationFrame(() => setTimeout(end)))")
    expect(widget.pay).to_have_text("Order now")


def test_an_amount_that_differs_from_the_checkout_s_is_told(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A8.22."""
    widget = open_widget().open(shop_site.widget(site, checkout(api), options={"checkout": {"amount": "29.00"}}))
    expect(widget.page.locator(".wpwl-note-error")).to_contain_text("The amount has changed.")
    assert widget.says("error", "29.00", "92.00")


def test_the_older_name_of_the_options_is_read(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """window.wpwlOptions; the label is replaced, the class names are the known ones."""
    code = "delete window.widgetOptions; window.wpwlOptions = { labels: { cvv: 'CVC' } };"
    widget = open_widget().open(shop_site.widget(site, checkout(api), code=code))
    expect(widget.page.locator(".wpwl-label-cvv")).to_have_text("CVC")
    for name in ("form-card", "group-cardNumber", "control-cvv", "button-pay", "control-cardHolder"):
        expect(widget.page.locator(f".wpwl-{name}")).to_have_count(1)


@pytest.mark.parametrize("declared", ["const wpwlOptions", "let widgetOptions", "var wpwlOptions"])
def test_options_that_a_script_declares_are_read(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, declared: str
) -> None:
    """`const` and `let` make no property of the window; functions are their methods all the same."""
    own = f"""<script nonce="{NONCE}">{declared} = {{
        labels: {{ cvv: "CVC" }}, maskCvv: true, onReady() {{ window.ready = this.maskCvv }} }}</script>"""
    url = shop_site.widget(
        site, checkout(api), code="delete window.widgetOptions", body=own.replace("{", "{{").replace("}", "}}") + WIDGET
    )
    widget = open_widget().open(url)
    expect(widget.page.locator(".wpwl-label-cvv")).to_have_text("CVC")
    expect(widget.cvv).to_have_css("-webkit-text-security", "disc")
    assert widget.page.evaluate("ready")


def test_of_two_sets_of_options_the_first_is_read(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """The second is told, unless it is the same one; one whose script fails has no value."""
    options = {"labels": {"cvv": "CVC"}}
    for code, told in (
        ("const wpwlOptions = { labels: { cvv: 'Code' } };", True),
        ("const wpwlOptions = widgetOptions;", False),
        ("const wpwlOptions = missing();", False),
    ):
        widget = open_widget().open(shop_site.widget(site, checkout(api), options=options, code=code))
        expect(widget.page.locator(".wpwl-label-cvv")).to_have_text("CVC")
        widget.page.evaluate("console.warn('last')")
        assert widget.says("last")
        assert any("the first is read" in line for line in widget.said) is told


def test_a_merchant_restyles_without_important(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """look.md: five lines of a stylesheet, custom properties or class names."""
    head = (
        f'<style nonce="{NONCE}">.wpwl-widget {{ --wpwl-accent: rgb(80, 0, 160) }} '
        ".wpwl-button-pay { border-radius: 26px }</style>"
    )
    csp = f"default-src 'self' {site} 'nonce-{NONCE}'"
    widget = open_widget().open(shop_site.widget(site, checkout(api), head=head, csp=csp))
    expect(widget.pay).to_have_css("background-color", "rgb(80, 0, 160)")
    expect(widget.pay).to_have_css("border-radius", "26px")
    widget.page.evaluate("wpwl.unload(); 0")
    expect(widget.page.locator(".wpwl-widget")).to_have_count(0)


RESET = """*,::before,::after{box-sizing:border-box;border-width:0;margin:0;padding:0}
button,input,optgroup,select,textarea{font-family:inherit;font-size:100%;font-weight:inherit;line-height:inherit;color:inherit;margin:0;padding:0}
button,[type='button'],[type='reset'],[type='submit']{-webkit-appearance:button;background-color:transparent;background-image:none}
button{color:inherit;font:inherit} body{color:#777;background:#fff;font:300 13px serif} label,legend{font-weight:300;color:#aaa}
h1,p,small,strong{font:inherit;color:inherit} a{color:inherit}"""  # noqa: E501
CONTRAST = """(node) => {
  const light = (text) => text.match(/[\\d.]+/g).slice(0, 3).map((one) => one / 255)
    .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
    .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
  const ground = (at) => (/rgba\\(.*, 0\\)/.test(getComputedStyle(at).backgroundColor) && at.parentElement ? ground(at.parentElement) : getComputedStyle(at).backgroundColor);
  const [one, other] = [light(getComputedStyle(node).color), light(ground(node))].sort((a, b) => b - a);
  return (one + 0.05) / (other + 0.05);
}"""  # noqa: E501


def test_the_form_is_readable_in_a_page_with_a_common_reset(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Resets of CSS frameworks name elements and types of buttons; they lose against the form's own rules."""
    head = f'<style nonce="{NONCE}">{RESET}</style>'
    csp = f"default-src 'self' {site} 'nonce-{NONCE}'"
    widget = open_widget().open(shop_site.widget(site, checkout(api), head=head, csp=csp))
    expect(widget.pay).to_have_css("background-color", "rgb(15, 118, 110)")
    expect(widget.pay).to_have_css("color", "rgb(255, 255, 255)")
    expect(widget.pay).to_have_css("font-weight", "600")
    expect(widget.pay).to_have_css("font-size", "17px")
    expect(widget.page.locator(".wpwl-label-cvv")).to_have_css("font-weight", "550")
    for each in (widget.pay, widget.expiry, widget.page.locator(".wpwl-label-cvv")):
        assert each.evaluate(CONTRAST) >= 4.5
    expect(widget.expiry).to_have_css("font-size", "16px")
    expect(widget.expiry).to_have_css("border-top-width", "1px")
    expect(widget.number).to_have_css("font-size", "16px")
    expect(widget.number).to_have_css("color", "rgb(16, 24, 40)")
    picture(widget.page, "reset")


def test_the_number_s_frame_wears_the_page_s_look(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """Colour and size of the page's own fields; nothing but plain values is taken."""
    head = f'<style nonce="{NONCE}">.wpwl-control {{ color: rgb(1, 2, 3); font-size: 20px }}</style>'
    csp = f"default-src 'self' {site} 'nonce-{NONCE}'"
    widget = open_widget().open(shop_site.widget(site, checkout(api), head=head, csp=csp))
    expect(widget.number).to_have_css("color", "rgb(1, 2, 3)")
    expect(widget.number).to_have_css("font-size", "20px")


def test_a_form_around_the_widget_is_named(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """A8.15: the parser drops the inner form; a console error and, in the test environment, a banner."""
    widget = open_widget()
    body = f'<form action="/order"><p>Order</p>{WIDGET}</form>'
    widget.page.goto(shop_site.widget(site, checkout(api), body=body))
    expect(widget.page.locator(".wpwl-banner")).to_contain_text("Move the widget out of the outer form")
    assert widget.says("error", "A <form> stands around")


def test_several_forms_on_a_page_work_apart(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """Each with its own brands and containers; each can be paid with."""
    body = WIDGET.replace("{brands}", "VISA") + WIDGET.replace("{brands}", "MASTER")
    widget = open_widget(1000, 1200).open(shop_site.widget(site, checkout(api), body=body))
    expect(widget.page.locator(".wpwl-form-card")).to_have_count(2)
    second = widget.page.locator("#wpwl-container-card-2")
    second.frame_locator(".wpwl-control-cardNumber iframe").locator("#field").fill("5454545454545454")
    second.locator(".wpwl-control-expiry").press_sequentially("0534")
    second.frame_locator(".wpwl-control-cvv iframe").locator("#field").fill("123")
    widget.heard()
    second.locator(".wpwl-button-pay").click()
    widget.lands()
    assert Payment.objects.get().brand == "MASTER"


def test_unloaded_and_loaded_again_late_and_twice(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """wpwl.unload() leaves the page as it was; the script put in later draws once, however often it comes."""
    checkout_id = checkout(api)
    widget = open_widget().open(shop_site.widget(site, checkout_id))
    load = """(source) => new Promise((done) => {
      const script = document.createElement("script");
      Object.assign(script, { src: source, onload: () => done(wpwl.checkout.id) });
      document.body.append(script);
    })"""
    source = f"{site}/v1/paymentWidgets.js?checkoutId={checkout_id}"
    widget.page.evaluate("wpwl.unload(); 0")
    expect(widget.page.locator(".wpwl-widget")).to_have_count(0)
    assert widget.page.evaluate("typeof window.wpwl") == "undefined"
    for _ in range(2):
        assert widget.page.evaluate(load, source) == checkout_id
    expect(widget.page.locator(".wpwl-widget")).to_have_count(1)
    widget.ready().fill()
    widget.press()
    widget.lands()
    assert not widget.faults


def test_brand_detection_can_be_left_to_the_shopper(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """brandDetection: false shows a list; a number of another brand is refused."""
    options = {"brandDetection": False, "maskCvv": True}
    widget = open_widget(390, 844).open(shop_site.widget(site, checkout(api), options=options))
    brand = widget.page.get_by_label("Card type")
    brand.select_option("MASTER")
    widget.fill(GOOD)
    widget.press()
    expect(widget.hint("cardNumber")).to_have_text("This type of card is not accepted here.")
    brand.select_option("VISA")
    expect(widget.cvv).to_have_css("-webkit-text-security", "disc")
    widget.press()
    widget.lands()


def test_parameters_of_the_page_must_be_the_shopper_s(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A28.6: SHOPPER_ names are sent along, others are left out with a warning."""
    options = {"customParameters": {"SHOPPER_gift": "yes", "price": "1"}}
    widget = open_widget().open(shop_site.widget(site, checkout(api), options=options)).fill()
    with widget.page.expect_request(re.compile("/payment$")) as sent:
        widget.press()
    assert "customParameters%5BSHOPPER_gift%5D=yes" in (sent.value.post_data or "")
    assert "price" not in (sent.value.post_data or "")
    assert widget.says("customParameters[price]", "SHOPPER_")
    widget.lands()


def test_a_page_opened_from_disk_may_try_the_test_environment(
    api: Api, site: str, open_widget: Open, tmp_path: object
) -> None:
    """A static HTML file and the script tag are enough."""
    file = tmp_path / "pay.html"  # type: ignore[operator]
    file.write_text(
        f'<!doctype html><form action="https://shop.example/" class="paymentWidgets" data-brands="VISA"></form>'
        f'<script src="{site}/v1/paymentWidgets.js?checkoutId={checkout(api)}"></script>'
    )
    widget = open_widget().open(file.as_uri())
    widget.number.fill(GOOD)
    expect(widget.page.locator(".wpwl-badge .wpwl-brand-VISA")).to_be_visible()

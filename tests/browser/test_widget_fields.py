"""Typing into the hosted fields: groups, caret, brands, errors, the keyboard, what a page may want otherwise.

Source: Part A, What the service does, 8; decisions, section 7.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from gateway.models import Channel, Division, Payment, Psp, Status
from tests.browser.conftest import picture
from tests.browser.patience import PATIENCE_MS
from tests.browser.widget import GOOD, Widget, checkout, held, let_go
from tests.support.bin_files import write_bin_file
from tests.support.client import Api
from tests.support.fixtures import open_shop
from tests.support.shopfront import Shopfront

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]

Open = Callable[..., Widget]
TWO_BRANDS = "420000\t\t\t\t\t\t\tVISA CARTEBANCAIRE"
"""A row of the table of BINs."""


@pytest.fixture
def api(transactional_db: None) -> Api:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop").api


@pytest.fixture
def form(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> Widget:
    return open_widget(390, 844).open(shop_site.widget(site, checkout(api), brands="VISA MASTER AMEX CARTEBANCAIRE"))


def test_digits_are_grouped_and_the_caret_stays_where_it_was(form: Widget) -> None:
    """Typed in the middle, deleted across a gap."""
    form.number.press_sequentially("42424242")
    expect(form.number).to_have_value("4242 4242")
    for _ in range(5):
        form.number.press("ArrowLeft")
    form.number.press("9")
    expect(form.number).to_have_value("4242 9424 2")
    form.number.press("Backspace")
    form.number.press("Backspace")
    expect(form.number).to_have_value("4244 242")
    assert form.number.evaluate("(field) => field.selectionStart") == 3


def test_pasted_and_foreign_digits_are_understood(form: Widget) -> None:
    """Spaces, hyphens, full-width and Arabic digits of an input method."""
    for typed in ("4200-0000 0000  0000", "４２００００００００００００００", "٤٢٠٠٠٠٠٠٠٠٠٠٠٠٠٠"):
        form.number.fill(typed)
        expect(form.number).to_have_value("4200 0000 0000 0000")


def test_the_brand_shows_after_four_digits_and_amex_has_its_own_groups(form: Widget) -> None:
    badge = form.page.locator(".wpwl-badge")
    form.number.press_sequentially("377")
    form.heard()
    expect(badge.locator("svg")).to_have_count(0)
    form.number.press_sequentially("777777777770")
    expect(badge.locator(".wpwl-brand-AMEX")).to_be_visible()
    expect(form.number).to_have_value("3777 777777 77770")
    expect(form.cvv).to_have_attribute("placeholder", "••••")


@pytest.mark.parametrize("lang", ["en", "ar"])
def test_all_digits_stand_beside_the_brand_on_the_smallest_phone(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open, lang: str
) -> None:
    """The brand's mark hid the last one, which the shopper could not check."""
    url = shop_site.widget(site, checkout(api), brands="VISA DIRECTDEBIT_SEPA", lang=lang)
    widget = open_widget(304, 640).open(url)
    widget.number.fill(GOOD)
    expect(widget.page.locator(".wpwl-badge svg")).to_have_count(1)
    assert widget.number.evaluate("(field) => field.scrollWidth - field.clientWidth") == 0


def test_a_co_badged_card_offers_a_choice(form: Widget) -> None:
    """A French card of two networks; the first is chosen."""
    form.number.fill("4970100000000154")
    choice = form.page.get_by_role("group", name="Your card works with two networks")
    expect(choice.get_by_label("Visa")).to_be_checked()
    choice.get_by_text("Carte Bancaire").click()
    expect(form.page.locator(".wpwl-badge .wpwl-brand-CARTEBANCAIRE")).to_be_visible()
    picture(form.page, "co-badged")


def test_the_merchants_brand_is_chosen_until_the_shopper_chooses(form: Widget) -> None:
    """The channel's order first, and both brands in sight."""
    Channel.objects.update(brand_order=["CARTEBANCAIRE", "VISA"])
    form.page.reload()
    form.ready().fill("4970100000000154")
    choice = form.page.get_by_role("group", name="Your card works with two networks")
    expect(choice.get_by_label("Carte Bancaire")).to_be_checked()
    expect(choice.get_by_role("radio")).to_have_count(2)
    choice.get_by_text("Visa").click()
    form.press()
    form.lands()
    assert Payment.objects.get().brand == "VISA"


def test_a_card_that_comes_after_a_choice_is_judged_by_its_own_brand(form: Widget) -> None:
    """Of the other card the form said that its brand is not accepted."""
    form.number.fill("4970100000000154")
    form.page.get_by_text("Carte Bancaire").last.click()
    expect(form.page.locator(".wpwl-badge .wpwl-brand-CARTEBANCAIRE")).to_be_visible()
    form.fill("378282246310005", cvv="1234").press()
    form.lands()
    assert Payment.objects.get().brand == "AMEX"


def test_the_table_of_bins_says_which_brands_are_offered(form: Widget, tmp_path: Path) -> None:
    """By six digits, which go to the gateway; a card that is not in it goes by the built-in ranges."""
    asked: list[str] = []
    form.page.on("request", lambda one: asked.append(one.url) if "card-brands" in one.url else None)
    with write_bin_file(tmp_path, TWO_BRANDS):
        Channel.objects.update(brand_order=["CARTEBANCAIRE", "VISA"])
        form.page.reload()
        form.ready().number.fill(GOOD)
        choice = form.page.get_by_role("group", name="Your card works with two networks")
        expect(choice.get_by_label("Carte Bancaire")).to_be_checked()
        choice.get_by_text("Visa").click()
        form.number.fill("4970100000000154")
        expect(choice.get_by_role("radio")).to_have_count(2)
        form.number.fill("4242424242424242")
        expect(choice).to_be_hidden()
        assert [one.partition("?")[2] for one in asked] == [f"card.bin={six}" for six in ("420000", "497010", "424242")]
        form.fill(GOOD).press()
        form.lands()
    assert Payment.objects.get().brand == "CARTEBANCAIRE"


def test_a_question_for_brands_that_got_lost_is_asked_again(form: Widget, tmp_path: Path) -> None:
    with write_bin_file(tmp_path, TWO_BRANDS):
        form.page.reload()
        form.page.route(re.compile("card-brands"), lambda route: route.abort(), times=1)
        form.ready().number.fill(GOOD)
        choice = form.page.get_by_role("group", name="Your card works with two networks")
        expect(choice.get_by_role("radio")).to_have_count(2, timeout=PATIENCE_MS)


def test_a_late_answer_about_brands_moves_no_button_that_is_pressed(form: Widget, tmp_path: Path) -> None:
    """The choice pushed Pay away from under the finger, and the press was lost."""
    with write_bin_file(tmp_path, TWO_BRANDS):
        form.page.reload()
        waiting = held(form, "card-brands")
        form.ready().fill(GOOD).heard()
        before = form.pay.bounding_box()
        assert before is not None
        form.page.mouse.move(before["x"] + before["width"] / 2, before["y"] + before["height"] / 2)
        form.page.mouse.down()
        with form.page.expect_response(re.compile("card-brands")):
            let_go(form, waiting)
        assert form.heard().pay.bounding_box() == before
        form.page.mouse.up()
        form.lands()
    assert Payment.objects.get().status == Status.APPROVED


def test_without_a_choice_the_merchants_brand_is_paid_with(form: Widget) -> None:
    Channel.objects.update(brand_order=["CARTEBANCAIRE", "VISA"])
    form.page.reload()
    form.ready().fill("4970100000000154").press()
    form.lands()
    assert Payment.objects.get().brand == "CARTEBANCAIRE"


def test_a_card_too_long_for_the_merchants_brand_is_right_with_the_other(form: Widget) -> None:
    """Nineteen digits can be typed: only the scheme has such cards."""
    Channel.objects.update(brand_order=["CARTEBANCAIRE", "VISA"])
    form.page.reload()
    form.ready().fill("4970100000000000017")
    form.press()
    expect(form.hint("cardNumber")).to_have_text("Check the card number.")
    form.page.get_by_role("group", name="Your card works with two networks").get_by_text("Visa").click()
    form.press()
    form.lands()
    assert Payment.objects.get().brand == "VISA"


def test_errors_are_told_linked_and_focused(form: Widget) -> None:
    """Under the field, in words, tied to it, input kept, focus on the first."""
    form.number.fill("4200000000000001")
    form.expiry.press_sequentially("0120")
    form.press()
    expect(form.hint("cardNumber")).to_have_text("Check the card number.")
    expect(form.number).to_be_focused()
    expect(form.number).to_have_attribute("aria-invalid", "true")
    expect(form.frame("cardNumber").locator("#error")).to_have_text("Check the card number.")
    expect(form.hint("expiry")).to_have_text("This card has expired.")
    expect(form.expiry).to_have_attribute("aria-invalid", "true")
    assert form.expiry.get_attribute("aria-describedby") == form.hint("expiry").get_attribute("id")
    expect(form.hint("cvv")).to_have_text("Enter the 3-digit security code.")
    expect(form.page.get_by_role("alert").first).to_contain_text("Check the card number.")
    expect(form.number).to_have_value("4200 0000 0000 0001")
    picture(form.page, "errors")
    form.number.fill(GOOD)
    expect(form.hint("cardNumber")).to_be_hidden()


def test_a_brand_that_is_not_taken_is_told(form: Widget) -> None:
    """A card of another network than those offered."""
    form.number.fill("6011111111111117")
    form.number.blur()
    expect(form.hint("cardNumber")).to_have_text("This type of card is not accepted here.")


ASK_BY_RANGES = """(text) => {
  const frame = document.querySelector(".wpwl-control-cardNumber iframe");
  const { origin, hash } = new URL(frame.src);
  const tollhouse = hash.split(".")[1];
  const ranges = [[text, text]];
  addEventListener("message", ({ data, source }) => {
    if (source === frame.contentWindow && data.t === "change") window.found = data.codes;
  });
  const brands = ["FOUND", "VISA"].map((code) => ({ code, ranges, detect: ranges, lengths: [16], luhn: false }));
  const init = { t: "init", label: "", placeholder: "", lang: "en", style: {}, brands };
  const only = { t: "only", code: "" };
  for (const one of [init, only]) frame.contentWindow.postMessage({ tollhouse, ...one }, origin);
}"""


def test_a_hostile_page_cannot_spell_out_the_number_by_brand_ranges(form: Widget) -> None:
    """It may send ranges of its own: the frame knows brands by itself, and tells which of those offered it is."""
    form.number.fill(GOOD)
    for text in ("5", GOOD[:6], GOOD[:7], GOOD):
        form.page.evaluate(ASK_BY_RANGES, text)
        form.heard()
        assert form.page.evaluate("found") == ["VISA"]


LISTEN = """() => {
  window.told = [];
  const frame = (name) => document.querySelector(`.wpwl-control-${name} iframe`);
  addEventListener("message", ({ data, source }) => {
    for (const name of ["cardNumber", "cvv"]) {
      if (source === frame(name).contentWindow && data.tollhouse) told.push({ name, ...data });
    }
  });
}"""


def test_no_verdict_on_the_digits_is_told_before_the_field_is_left(form: Widget) -> None:
    """The check digit and the length of each prefix would tell of the number; and no message has more than a brand."""
    form.page.evaluate(LISTEN)
    for field, digits in ((form.number, GOOD), (form.cvv, "123")):
        field.press_sequentially(digits)
        form.heard()
    told = form.page.evaluate("told.filter((one) => one.t === 'change')")
    typing = [one for one in told if one["reason"] == "typing"]
    assert len(typing) >= len(GOOD) + 3
    assert {one["valid"] for one in typing} == {False}
    # The number was left for the code, which was not left.
    assert [one["valid"] for one in told if one["name"] == "cardNumber"][-1] is True
    assert not any(one["valid"] for one in told if one["name"] == "cvv")
    assert not [one for one in form.page.evaluate("told") if GOOD[:7] in str(one)]
    form.cvv.blur()
    form.heard()
    assert form.page.evaluate("told.filter((one) => one.name === 'cvv').at(-1).valid") is True


SEND = """(fields) => {
  window.answers ||= [];
  const frame = document.querySelector(".wpwl-control-cardNumber iframe");
  const { origin, hash, searchParams } = new URL(frame.src);
  const say = (message) => frame.contentWindow.postMessage({ tollhouse: hash.split(".")[1], ...message }, origin);
  addEventListener("message", ({ data, source }) => source === frame.contentWindow && data.t === "answer" && answers.push(data));
  say({ t: "leave", n: 98 });
  say({ t: "post", n: 99, path: `v1/checkouts/${searchParams.get("checkout")}/payment`, fields });
  say({ t: "focus" });
}"""  # noqa: E501


def test_a_hostile_page_cannot_send_the_beginnings_of_a_number(form: Widget) -> None:
    """The gateway's answer to each would say more of it than the brand."""
    sent: list[str] = []
    form.page.on("request", lambda request: sent.append(request.url) if request.method == "POST" else None)
    for digit in "4135119718147811":  # which is mistyped
        form.number.press("End")
        form.number.press_sequentially(digit)
        form.page.evaluate(SEND, {"paymentBrand": "VISA", "card.expiryMonth": "05", "card.holder": "?"})
        form.heard()
    answers = form.page.evaluate("answers")
    assert len(answers) >= 16
    assert {one["status"] for one in answers} == {400}
    assert not [one for one in answers if re.search("[0-9]{4}", str(one["body"]))]
    assert not [url for url in sent if "/payment" in url]


def test_whoever_asks_for_the_verdict_takes_the_shopper_out_of_the_field(form: Widget) -> None:
    form.page.evaluate(LISTEN)
    form.number.press_sequentially(GOOD[:9])
    expect(form.number).to_be_focused()
    form.page.evaluate("""() => {
      const frame = document.querySelector(".wpwl-control-cardNumber iframe");
      const { origin, hash } = new URL(frame.src);
      frame.contentWindow.postMessage({ tollhouse: hash.split(".")[1], t: "leave", n: 99 }, origin);
    }""")
    expect(form.number).not_to_be_focused()


@pytest.mark.parametrize(
    "typed,shown",
    [("530", "05 / 30"), ("1230", "12 / 30"), ("12/2030", "12 / 30"), ("1/3", "01 / 3"), ("122030", "12 / 30")],
)
def test_expiry_dates_are_put_right(form: Widget, typed: str, shown: str) -> None:
    """One digit of a month, a slash, four digits of a year."""
    form.expiry.press_sequentially(typed)
    expect(form.expiry).to_have_value(shown)


def test_an_expiry_date_can_be_deleted_to_nothing(form: Widget) -> None:
    """The gap never stands in the way."""
    form.expiry.press_sequentially("1230")
    for _ in range(5):
        form.expiry.press("Backspace")
    expect(form.expiry).to_have_value("")


def test_the_keyboard_alone_pays(form: Widget) -> None:
    """Tab goes through the frames in the order that is seen; Enter submits."""
    page = form.page
    holder = page.locator(".wpwl-control-cardHolder")
    form.number.focus()
    expect(form.number).to_be_focused()
    # The focus goes from frame to frame through the browser's processes: keys wait until it has come.
    for text, arrived in ((GOOD, form.expiry), ("0534", form.cvv), ("123", holder), ("Jane Jones", form.pay)):
        page.keyboard.type(text)
        page.keyboard.press("Tab")
        expect(arrived).to_be_focused()
    page.keyboard.press("Shift+Tab")
    expect(holder).to_be_focused()
    form.heard()
    page.keyboard.press("Enter")
    form.lands()


def test_the_fields_invite_autofill_and_the_numeric_keypad(form: Widget) -> None:
    expect(form.number).to_have_attribute("autocomplete", "cc-number")
    expect(form.number).to_have_attribute("inputmode", "numeric")
    expect(form.cvv).to_have_attribute("autocomplete", "cc-csc")
    expect(form.expiry).to_have_attribute("autocomplete", "cc-exp")
    expect(form.page.locator(".wpwl-control-cardHolder")).to_have_attribute("autocomplete", "cc-name")


def test_a_browser_that_fills_the_number_s_document_fills_the_others(form: Widget) -> None:
    """Autofill reaches one document: expiry and name go to the page, the code to its own frame."""
    frame = form.frame("cardNumber")
    for name, value in {"cc-exp": "05/34", "cc-name": "Jane Jones", "cc-csc": "123"}.items():
        frame.locator(f'[name="{name}"]').evaluate(
            "(field, value) => { field.value = value; field.dispatchEvent(new Event('input')) }", value
        )
    expect(form.expiry).to_have_value("05 / 34")
    expect(form.page.locator(".wpwl-control-cardHolder")).to_have_value("Jane Jones")
    expect(form.cvv).to_have_value("123")


def test_nothing_jumps_while_the_form_loads(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> None:
    """The skeleton has the exact size of the form."""
    widget = open_widget(390, 844)
    waiting = held(widget, "/config")
    widget.page.goto(shop_site.widget(site, checkout(api)))
    expect(widget.root).to_have_class(re.compile("wpwl-waiting"))
    widget.number.wait_for(state="attached")
    before = widget.root.bounding_box()
    picture(widget.page, "skeleton")
    let_go(widget, waiting)
    widget.ready()
    assert widget.root.bounding_box() == before

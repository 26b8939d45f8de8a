"""The challenge in a real browser: passed, failed, cancelled, with two tabs and the back button, in every window size.

Source: Part B, 3D Secure; decisions, section 5; look and feel, simulator pages.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from gateway.models import Division, Payment, Psp
from tests.browser.conftest import picture
from tests.browser.patience import resize
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop, open_shop
from tests.support.threeds import CODE, FAIL, METHOD_CHALLENGE, PASS, Shopper
from tests.support.threeds import buy as bought

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser-2")]

Open = Callable[..., Page]
PHONE = (320, 640)
BACK = "**/result?order=7&id=*"
WINDOWS = {"1": (250, 400), "2": (390, 400), "3": (500, 600), "4": (600, 400), "5": (1280, 800)}


@pytest.fixture
def shop(transactional_db: None) -> Shop:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "The Corner Bookshop")


@pytest.fixture
def api(shop: Shop, site: str) -> Api:
    return shop.api_of(shop.open_channel("authenticating", three_d_secure=True))


def address(answer: Answer, **more: str) -> str:
    shopper = Shopper.of(answer)
    return f"{shopper.redirect['url']}?{urlencode({'token': shopper.token, **more})}"


def buy(api: Api, card: str = PASS, **changes: str | None) -> Answer:
    return bought(api, card, shopperResultUrl="http://shop.example/result?order=7", **changes)


def code_of(api: Api, answer: Answer) -> str:
    return api.read(answer.id).code


def confirm(page: Page, code: str = CODE) -> None:
    page.get_by_label("Code", exact=True).fill(code)
    page.get_by_role("button", name="Confirm").click()


def test_a_shopper_passes_a_challenge_and_lands_at_the_shop(api: Api, open_page: Open) -> None:
    """A6.3: headless browser follows redirect.url and lands on shopperResultUrl."""
    answer = buy(api)
    page = open_page()
    page.goto(address(answer))
    expect(page.get_by_label("Code", exact=True)).to_be_focused()
    expect(page.get_by_text("Test page")).to_be_visible()
    expect(page.get_by_text("92.00 EUR")).to_be_visible()
    picture(page, "challenge-desktop")
    confirm(page)
    page.wait_for_url(BACK)
    assert "resourcePath=%2Fv1%2Fpayments%2F" in page.url
    assert code_of(api, answer) == "000.100.110"


def test_three_wrong_codes_end_it(api: Api, open_page: Open) -> None:
    """Wrong code: what happened is told beside the field, and the third is the last."""
    answer = buy(api)
    page = open_page(*PHONE)
    page.goto(address(answer))
    confirm(page, "000000")
    expect(page.get_by_role("alert")).to_contain_text("Tries left: 2")
    picture(page, "challenge-phone-wrong")
    confirm(page, "000000")
    expect(page.get_by_role("alert")).to_contain_text("Tries left: 1")
    confirm(page, "000000")
    page.wait_for_url(BACK)
    assert code_of(api, answer) == "100.380.401"


def test_a_card_whose_challenge_fails_comes_back_declined(api: Api, open_page: Open) -> None:
    """Decisions, section 5."""
    answer = buy(api, FAIL)
    page = open_page()
    page.goto(address(answer))
    confirm(page)
    page.wait_for_url(BACK)
    assert code_of(api, answer) == "100.380.401"


def test_a_new_code_and_a_change_of_mind(api: Api, open_page: Open) -> None:
    """Resend, cancel."""
    answer = buy(api)
    page = open_page()
    page.goto(address(answer))
    page.get_by_role("button", name="Send a new code").click()
    expect(page.get_by_text("A new code is on its way.")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    page.wait_for_url(BACK)
    assert code_of(api, answer) == "100.390.124"


def test_the_back_button_leads_to_the_shop_again_and_pays_once(api: Api, open_page: Open) -> None:
    """Issue: the back button makes one payment."""
    answer = buy(api)
    page = open_page()
    page.goto(address(answer))
    confirm(page)
    page.wait_for_url(BACK)
    page.go_back()
    page.wait_for_url(BACK)
    assert code_of(api, answer) == "000.100.110"
    assert Payment.objects.get().events.filter(event="approve").count() == 1


def test_two_tabs_make_one_payment(api: Api, open_page: Open) -> None:
    """Issue: two tabs."""
    answer = buy(api)
    first = open_page()
    second = first.context.new_page()
    for page in (first, second):
        page.goto(address(answer))
    confirm(first)
    first.wait_for_url(BACK)
    second.get_by_role("button", name="Cancel").click()
    second.wait_for_url(BACK)
    assert code_of(api, answer) == "000.100.110"
    assert Payment.objects.get().events.filter(event="approve").count() == 1


def test_a_double_click_is_one_click(api: Api, open_page: Open) -> None:
    """Issue: double submit."""
    answer = buy(api)
    page = open_page()
    page.goto(address(answer))
    page.get_by_label("Code", exact=True).fill(CODE)
    page.get_by_role("button", name="Confirm").dblclick(no_wait_after=True)
    page.wait_for_url(BACK)
    assert code_of(api, answer) == "000.100.110"
    assert Payment.objects.get().events.filter(event="approve").count() == 1


@pytest.mark.parametrize("script", [True, False], ids=["with a script", "without scripts"])
def test_the_method_page_is_passed_by_itself_or_with_one_tap(api: Api, open_page: Open, script: bool) -> None:
    """Works without JavaScript."""
    answer = buy(api, METHOD_CHALLENGE)
    page = open_page(*PHONE, java_script_enabled=script)
    page.goto(address(answer))
    if not script:
        picture(page, "method-phone")
        page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Confirm your payment")).to_be_visible()
    confirm(page)
    page.wait_for_url(BACK)
    assert code_of(api, answer) == "000.100.110"


@pytest.mark.parametrize("code", WINDOWS)
def test_every_challenge_window_fits_on_its_own_size_on_a_phone_and_on_a_desktop(
    api: Api, open_page: Open, code: str
) -> None:
    """A20.10: 250×400, 390×400, 500×600, 600×400, full; nothing is cut off sideways."""
    answer = buy(api, **{"customer.browser.challengeWindow": code})
    width, height = WINDOWS[code]
    page = open_page()
    page.goto(address(answer))
    for name, (wide, high) in {"own": (width, height), "phone": PHONE, "desktop": (1280, 800)}.items():
        resize(page, wide, high)
        expect(page.get_by_role("button", name="Confirm")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= wide, name
        box = page.locator(".window").bounding_box()
        assert box is not None
        assert box["width"] <= min(wide, width), name
        if name == "desktop" and code != "5":
            assert box["width"] == width
            assert box["height"] >= height
        field = page.get_by_label("Code", exact=True).bounding_box()
        assert field is not None
        assert field["height"] >= 44
        if name == "own":
            assert field["y"] + field["height"] <= high, "the field stands inside the window without scrolling"
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # no colour in transition
            picture(page, f"window-{code}-{name}-{scheme}")


def test_the_bank_speaks_the_shopper_s_language(api: Api, open_page: Open) -> None:
    """A8.8: as the form does that shows its page, also after a wrong code; Arabic from right to left."""
    page = open_page(*PHONE)
    answer = buy(api)
    page.goto(address(answer, locale="ar"))
    assert page.evaluate("document.documentElement.dir") == "rtl"
    page.goto(address(answer, locale="de"))
    expect(page.get_by_role("heading", level=1)).to_have_text("Zahlung bestätigen")
    page.locator("#code").fill("000000")
    page.locator("button.first").click()
    wrong = "Dieser Code ist falsch. Versuchen Sie es noch einmal. Verbleibende Versuche: 2"
    expect(page.get_by_role("alert")).to_have_text(wrong)
    picture(page, "challenge-de")
    page.locator("#code").fill(CODE)
    page.locator("button.first").click()
    page.wait_for_url(BACK)


def test_a_framing_page_hears_the_end(api: Api, open_page: Open) -> None:
    """The widget shows the challenge in a sheet, from another origin, and goes on when it hears that it is over."""
    answer = buy(api)
    page = open_page()
    page.goto("http://merchant.example/?" + urlencode({"frame": address(answer, embedded="true")}))
    frame = page.frame_locator("iframe")
    frame.get_by_label("Code", exact=True).fill(CODE)
    frame.get_by_role("button", name="Confirm").click()
    expect(page).to_have_title(f'{{"source":"tollhouse","event":"ended","id":"{answer.id}"}}')
    assert code_of(api, answer) == "000.100.110"


def test_a_banking_app_page_for_decoupled_authentication(api: Api, open_page: Open) -> None:
    """Part B, decoupled."""
    answer = buy(api, PASS, **{"threeDSecure.decoupled": "true"})
    page = open_page(*PHONE)
    page.goto(address(answer))
    picture(page, "decoupled-phone")
    page.get_by_role("button", name="Confirm").click()
    page.wait_for_url(BACK)
    assert code_of(api, answer) == "000.100.110"

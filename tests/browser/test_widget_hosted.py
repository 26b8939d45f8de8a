"""What a hosted field takes for a card number, digit by digit, and from whom it hears messages.

Source: Part A, What the service does, 8; decisions, section 7.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random

import pytest

from gateway.models import Division, Psp
from tests.browser.patience import until
from tests.browser.widget import GOOD, Widget, checkout
from tests.support.client import Api
from tests.support.fixtures import open_shop
from tests.support.shopfront import Shopfront

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.xdist_group("browser")]
Open = Callable[..., Widget]

DOUBLED = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
"""A digit → what it counts in every second place: twice the digit, less nine above nine."""


@pytest.fixture
def api(transactional_db: None) -> Api:
    return open_shop(Division.objects.create(name="D", psp=Psp.objects.create(name="P")), "Shop").api


@pytest.fixture
def form(api: Api, site: str, shop_site: Shopfront, open_widget: Open) -> Widget:
    return open_widget(390, 844).open(shop_site.widget(site, checkout(api), brands="VISA MASTER AMEX"))


def check_digit(digits: str) -> str:
    """What makes ``digits`` a card number when it is put behind them."""
    summed = sum(DOUBLED[int(one)] if at % 2 == 0 else int(one) for at, one in enumerate(reversed(digits)))
    return str(-summed % 10)


def numbers() -> list[tuple[str, bool]]:
    """Card numbers of two lengths and those beside them: every digit stands in a place that is doubled and in one that
    is not, alone and among others."""
    dice = Random(69)
    bodies = [f"4{'0' * at}{digit}{'0' * (13 - at)}" for digit in range(10) for at in (6, 7)]
    bodies += [f"4{''.join(dice.choices('0123456789', k=14))}" for _ in range(20)]
    bodies += [f"37{''.join(dice.choices('0123456789', k=12))}" for _ in range(20)]
    found = [("4000000000000069", True), (GOOD, True), (GOOD[:-1] + "1", False)]
    for body in bodies:
        right = check_digit(body)
        found += [(body + right, True), (body + str((int(right) + dice.randint(1, 9)) % 10), False)]
    return found


HEAR = """() => {
  window.judged = [];
  const frame = document.querySelector(".wpwl-control-cardNumber iframe");
  addEventListener("message", ({ data, source }) => {
    if (source === frame.contentWindow && data.t === "change") window.judged.push(data.valid);
  });
}"""
TYPE = """(numbers) => {
  const input = document.getElementById("field");
  for (const number of numbers) {
    input.value = number;
    input.dispatchEvent(new Event("input"));
  }
}"""


def test_a_number_is_right_by_its_check_digit_whichever_digits_it_has(form: Widget) -> None:
    cases = numbers()
    form.page.evaluate(HEAR)
    form.frame("cardNumber").locator("body").evaluate(
        TYPE.replace("(numbers)", "(_, numbers)"), [each for each, _ in cases]
    )
    until(form.page, lambda: form.page.evaluate("judged.length") >= len(cases))
    judged = form.page.evaluate("judged")
    assert [(number, found) for (number, _), found in zip(cases, judged, strict=True)] == cases


CLEAR = """([name, selector]) => {
  const frame = document.querySelector(selector);
  const { origin, hash } = new URL(frame.src);
  frame.contentWindow.postMessage({ tollhouse: hash.split(".")[1], t: name }, origin);
}"""
FROM_A_FRAME_OF_THE_PAGE = """([name, selector]) => {
  const target = document.querySelector(selector);
  const { origin, hash } = new URL(target.src);
  const other = document.createElement("iframe");
  document.body.append(other);
  const message = { tollhouse: hash.split(".")[1], t: name };
  other.contentWindow.eval(`parent.document.querySelector(${JSON.stringify(selector)}).contentWindow
    .postMessage(${JSON.stringify(message)}, ${JSON.stringify(origin)})`);
}"""
NUMBER_FRAME = ".wpwl-control-cardNumber iframe"


def said(form: Widget, how: str) -> str:
    """The number's value after the message "clear" was sent that way."""
    form.page.evaluate(how, ["clear", NUMBER_FRAME])
    form.heard()
    return form.number.input_value()


def test_a_field_hears_its_page_and_no_frame_beside_it(
    api: Api, site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """A frame of the page has the page's origin, and is not the page."""
    address = shop_site.widget(site, checkout(api), csp="")
    form = open_widget(390, 844, bypass_csp=True).open(address)
    form.number.fill(GOOD)
    assert said(form, FROM_A_FRAME_OF_THE_PAGE).replace(" ", "") == GOOD
    assert said(form, CLEAR) == ""


def test_a_field_hears_no_page_of_another_origin_than_it_was_opened_for(
    site: str, shop_site: Shopfront, open_widget: Open
) -> None:
    """Its policy would not even let that page frame it: here the policy is away, and the field holds alone."""
    for parent, hears in (("https://elsewhere.example", False), (shop_site.url, True)):
        address = f"{site}/v1/widget/frame.html?parent={parent}#number.g1"
        page = shop_site.show("/frames", f"<!doctype html><iframe src={json.dumps(address)}></iframe>", "")
        form = open_widget(390, 844, bypass_csp=True)

        def without_policy(route: object) -> None:
            answer = route.fetch()  # type: ignore[attr-defined]
            kept = {name: one for name, one in answer.headers.items() if name != "content-security-policy"}
            route.fulfill(response=answer, headers=kept)  # type: ignore[attr-defined]

        form.page.route(re.compile("/v1/widget/frame.html"), without_policy)
        form.page.goto(page)
        field = form.page.frame_locator("iframe").locator("#field")
        field.fill(GOOD)
        form.page.evaluate(CLEAR, ["clear", "iframe"])
        # The message and this look go through one queue of the frame.
        field.evaluate("() => new Promise((done) => setTimeout(done))")
        assert field.input_value().replace(" ", "") == ("" if hears else GOOD)

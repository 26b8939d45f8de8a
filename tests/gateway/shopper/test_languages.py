"""The bank's pages and the simulator's say in 25 languages what they say in English. Source: A8.8, A13.18."""

from __future__ import annotations

import re
from functools import cache
from html import unescape
from typing import Any

import pytest
from django.shortcuts import render
from django.test import Client, RequestFactory

from gateway.core import languages
from gateway.core.languages import LANGUAGE_CODES
from gateway.models import Authentication, AuthenticationStep, Payment, SimulatedOrder, Status
from gateway.shopper.page_language import build_language_context
from gateway.shopper.views import redirect_to_merchant
from tests.checkout.test_widget_files import SAME_WORDS
from tests.gateway.connectors.simulator.test_redirects import REDIRECTS, browse, page_of, pay
from tests.support.fixtures import Shop
from tests.support.threeds import METHOD_CHALLENGE, Shopper, buy, words

pytestmark = pytest.mark.django_db

SHORT = 12
PLACEHOLDER = re.compile(r"\\\{\w+\\\}")


PAYMENT_PAGE_TITLE = "page.payTitle"
"""Stands on none of these pages, and "Pay {merchant}" fits every English text that begins with "Pay"."""


@cache
def english(locale: str) -> dict[str, re.Pattern[str]]:
    """Every text of these pages that a page in ``locale`` may not show, as a pattern."""
    found = {}
    for key, text in languages.load_texts("en").items():
        if (
            key.startswith(("page.", "bank."))
            and key != PAYMENT_PAGE_TITLE
            and locale not in SAME_WORDS.get(key, ())
            and len(text) > 4
        ):
            words = PLACEHOLDER.sub(".+", re.escape(text))
            found[key] = re.compile(rf"(?<!\w){words}(?!\w)")
    return found


def told(page: Any, locale: str) -> set[str]:
    """The keys whose words a page shows, in its own language; English ones must not be among them."""
    assert page.status_code == 200, page
    assert (
        f'<html lang="{languages.iso_language_code(locale)}" dir="{languages.text_direction(locale)}"'
        in page.content.decode()
    )
    text = unescape(words(page))
    if locale != "en":
        left = [key for key, pattern in english(locale).items() if pattern.search(text)]
        assert not left, (locale, left)
    pieces = [unescape(piece).strip() for piece in re.split(r"<[^>]+>", page.content.decode())]
    english_texts, found = languages.load_texts("en"), set()
    for key, value in languages.load_texts(locale).items():
        if key.startswith(("page.", "bank.")) and key != PAYMENT_PAGE_TITLE:
            pattern = re.compile(PLACEHOLDER.sub(".+", re.escape(value)))
            # A short word may be part of another text.
            look = pattern.search if len(english_texts[key]) > SHORT else pattern.fullmatch
            if any(look(piece) for piece in pieces):
                found.add(key)
    return found


def told_in_all(pages: dict[str, list[Any]]) -> None:
    """Locale → the same pages, in the same order: each shows what the English one shows."""
    for place, page in enumerate(pages["en"]):
        wanted = told(page, "en") - {"page.code"}
        for locale in LANGUAGE_CODES:
            assert told(pages[locale][place], locale) >= wanted, (locale, place)


def test_every_page_of_the_bank_speaks(shop: Shop) -> None:
    """The check of the browser, a challenge in every state, an app's confirmation, the end of a framed page."""
    channel = shop.open_channel("authenticating", three_d_secure=True)
    api = shop.api_of(channel)
    shopper, app = Shopper.of(buy(api, METHOD_CHALLENGE)), Shopper.of(buy(api, **{"threeDSecure.decoupled": "true"}))
    pages = {locale: [shopper.open(locale=locale), app.open(locale=locale)] for locale in LANGUAGE_CODES}
    shopper.post(completed="Y")
    Authentication.objects.filter(channel=channel, step=AuthenticationStep.DECOUPLED).update(
        step=AuthenticationStep.DONE, trans_status="Y"
    )
    for locale, found in pages.items():
        found += [shopper.open(locale=locale, info=info) for info in ("", "wrong", "empty", "resent", "resends")]
        found.append(app.open(locale=locale, embedded="true"))
    told_in_all(pages)


def test_every_page_of_the_simulator_speaks(shop: Shop) -> None:
    """Bank, wallets and invoice house; left, and decided one way or the other."""
    paths = [page_of(pay(shop.api, brand)) for brand in REDIRECTS]
    clients = {
        locale: Client(headers={"Accept-Language": languages.iso_language_code(locale)}) for locale in LANGUAGE_CODES
    }
    pages = {locale: [browse(path, http=client) for path in paths] for locale, client in clients.items()}
    for locale, client in clients.items():
        pages[locale].append(browse(paths[0], "leave", http=client))
    for state in (state for state in SimulatedOrder.State if state != SimulatedOrder.State.OPEN):
        SimulatedOrder.objects.update(state=state)
        for locale, client in clients.items():
            pages[locale].append(browse(paths[0], http=client))
    told_in_all(pages)
    shown = {key for page in pages["en"] for key in told(page, "en")}
    assert shown >= {key for key in languages.load_texts("en") if key.startswith("bank.")}


def test_an_end_without_an_address_speaks(shop: Shop) -> None:
    """Paid, not paid, still open; an authentication alone that was confirmed or not."""
    payment = Payment.objects.get(pk=pay(shop.api, "WEBWALLET").id)
    del payment.request["shopperResultUrl"]
    pages: dict[str, list[Any]] = {locale: [] for locale in LANGUAGE_CODES}
    for locale, found in pages.items():
        request = RequestFactory().get("/", headers={"Accept-Language": languages.iso_language_code(locale)})
        for status in (Status.APPROVED, Status.DECLINED, Status.IN_DOUBT):
            payment.status = status
            found.append(redirect_to_merchant(request, payment))
        for outcome in ("Y", "N"):
            context = {"row": Authentication(trans_status=outcome), **build_language_context(request)}
            found.append(render(request, "shopper/authenticated.html", context))
    told_in_all(pages)


def test_the_form_s_language_comes_before_the_merchant_s_and_that_before_the_browser_s() -> None:
    """A13.18: locale is the merchant's word; the form tells the one it was drawn in."""
    asked = RequestFactory().get("/?locale=fi", headers={"Accept-Language": "de"})
    silent = RequestFactory().get("/", headers={"Accept-Language": "de"})
    assert build_language_context(asked, "fr_FR")["locale"] == "fi"
    assert build_language_context(silent, "fr_FR")["locale"] == "fr"
    assert build_language_context(silent)["locale"] == "de"

"""Views of the demo shop: its pages, and its server's two tasks: prepare a checkout, read a result. Not in live."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Any, Final

from csp.constants import SELF
from csp.decorators import csp_update
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from checkout.brand_selection import resolve_form_kind
from checkout.demo import merchant_server, products
from checkout.demo.page_source import LANGUAGE_NAMES, render_page_source
from gateway import widget_hash
from gateway.core import brands, languages
from gateway.portal.page_frame import build_page_frame

STORED_CARDS_COOKIE: Final = "demo_cards"
"""The returning shopper's registrations, signed: the demo shop has no accounts."""
STORED_CARDS_COOKIE_AGE_S: Final = 30 * 24 * 3600
MAX_REMEMBERED_CARDS: Final = 6
DEMO_SHOPPER: Final = {
    "customer.merchantCustomerId": "demo-shopper",
    "customer.givenName": "Jane",
    "customer.surname": "Jones",
    "customer.email": "jane@mail.example",
    "customer.status": "EXISTING",
}
DEMO_BRANDS: Final = (
    "VISA", "MASTER", "AMEX", "DIRECTDEBIT_SEPA", "ONLINETRANSFER", "WEBWALLET", "SHOPWALLET", "VIRTUALACCOUNT",
    "WALLET1", "WALLET2", "WALLET3",
)  # fmt: skip
EXPRESS_BRANDS: Final = ("WALLET1", "WALLET2", "SHOPWALLET", "WEBWALLET")
_CHECKOUT: Final = re.compile(r"/v1/checkouts/[0-9A-F]{32}-[0-9A-Za-z]{1,15}/(?:payment|registration)")
_REGISTRATION: Final = re.compile("[0-9a-f]{32}")


def _require_shop() -> merchant_server.DemoShop:
    found = merchant_server.load_demo_shop()
    if found is None:
        raise Http404("the demo shop is for a seeded test environment")
    return found


@require_safe
@csp_update({"frame-src": [SELF]})
def demo_shop_view(request: HttpRequest) -> HttpResponse:
    """GET /demo/: the shop."""
    _require_shop()
    return _render_page(
        request,
        "demo/shop.html",
        settings_of_page={
            "base": f"{settings.GATEWAY_BASE_URL}/",
            "brands": list(DEMO_BRANDS),
            "fast": list(EXPRESS_BRANDS),
            "products": {product.sku: [product.name, product.cents] for product in products.DEMO_PRODUCTS},
            "currency": products.DEMO_CURRENCY,
            "source": render_page_source(settings.GATEWAY_BASE_URL),
        },
        products=products.DEMO_PRODUCTS,
        languages=[
            (code, languages.iso_language_code(code), LANGUAGE_NAMES[code]) for code in languages.LANGUAGE_CODES
        ],
        brands=[
            (code, brands.PAYMENT_BRANDS[code].label, resolve_form_kind(brands.PAYMENT_BRANDS[code]))
            for code in DEMO_BRANDS
        ],
    )


@csrf_exempt
@require_POST
def prepare_checkout_view(request: HttpRequest) -> HttpResponse:
    """POST /demo/checkout: what a merchant's server does when the shopper proceeds to payment. Harmless for strangers
    to call: a checkout costs nothing until it is paid."""
    shop = _require_shop()
    sent = request.POST
    channel = "3ds" if sent.get("secure") == "1" else "plain"
    fields = {"entityId": shop.channels[channel], "paymentType": "DB", "integrity": "true"}
    fields |= products.build_checkout_fields(
        products.parse_cart({name: sent.get(name, "") for name in products.PRODUCT_BY_SKU})
    )
    fields["shopperResultUrl"] = f"{settings.GATEWAY_BASE_URL}/demo/result?channel={channel}"
    if sent.get("returning") == "1":
        fields |= DEMO_SHOPPER
        for at, card in enumerate(_read_stored_cards(request)):
            fields[f"registrations[{at}].id"] = card
    exchange = merchant_server.call_api(shop, "POST", "/v1/checkouts", fields)
    return _render_message(
        {"exchange": exchange.as_json(), "id": exchange.body.get("id"), "integrity": exchange.body.get("integrity")}
    )


@require_safe
def checkout_result_view(request: HttpRequest) -> HttpResponse:
    """GET /demo/result: the shopper's return. The shop's server fetches the result."""
    shop = _require_shop()
    path = request.GET.get("resourcePath", "")
    if not _CHECKOUT.fullmatch(path):
        raise Http404("no such checkout")
    channel = request.GET.get("channel", "plain")
    entity = shop.channels.get(channel) or shop.channels["plain"]
    exchange = merchant_server.call_api(shop, "GET", path, {"entityId": entity})
    body = exchange.body
    code = body["result"]["code"]
    outcome = (
        "paid"
        if exchange.status == 200 and "id" in body and not code.startswith("000.200")
        else ("pending" if exchange.status == 200 else "failed")
    )
    answer = _render_page(
        request, "demo/result.html", settings_of_page={"exchange": exchange.as_json()}, outcome=outcome, body=body
    )
    stored = body.get("registrationId", "")
    if outcome == "paid" and _REGISTRATION.fullmatch(str(stored)):
        cards = list(dict.fromkeys([str(stored), *_read_stored_cards(request)]))[:MAX_REMEMBERED_CARDS]
        _remember_cards(answer, cards)
    return answer


@csrf_exempt
@require_POST
def forget_cards_view(request: HttpRequest) -> HttpResponse:
    """POST /demo/forget: stop offering the shopper's stored cards. With ``id`` only that one, which is also deleted at
    the gateway: what a form's ``registrations.onDelete`` expects of a merchant's server."""
    shop, cards, wanted = _require_shop(), _read_stored_cards(request), request.POST.get("id")
    if wanted is None:
        answer = _render_message({"forgotten": len(cards)})
        answer.delete_cookie(STORED_CARDS_COOKIE, path="/demo")
        return answer
    if wanted not in cards:
        raise Http404("not a card of this shopper")
    # The shop does not record on which of its two channels a card was stored.
    path = f"/v1/registrations/{wanted}"
    tries = (merchant_server.call_api(shop, "DELETE", path, {"entityId": entity}) for entity in shop.channels.values())
    exchange = next((one for one in tries if one.status == HTTPStatus.OK), None)
    if exchange is None:
        return _render_message({"forgotten": 0})
    answer = _render_message({"forgotten": 1, "exchange": exchange.as_json()})
    _remember_cards(answer, [one for one in cards if one != wanted])
    return answer


def _read_stored_cards(request: HttpRequest) -> list[str]:
    text = request.get_signed_cookie(STORED_CARDS_COOKIE, default="") or ""
    return [one for one in text.split(".") if _REGISTRATION.fullmatch(one)][:MAX_REMEMBERED_CARDS]


def _remember_cards(answer: HttpResponse, cards: list[str]) -> None:
    answer.set_signed_cookie(
        STORED_CARDS_COOKIE,
        ".".join(cards),
        max_age=STORED_CARDS_COOKIE_AGE_S,
        httponly=True,
        samesite="Lax",
        path="/demo",
    )


def _render_message(body: dict[str, Any]) -> HttpResponse:
    answer = JsonResponse(body)
    answer["Cache-Control"] = "no-store"
    return answer


def _render_page(request: HttpRequest, template: str, **context: Any) -> HttpResponse:
    own = {"section": "demo", "integrity": widget_hash.widget_integrity()}
    response = render(request, template, {**build_page_frame(_ASSETS), **own, **context})
    response["Cache-Control"] = "no-store"
    return response


_ASSETS: Final = {
    "tollhouse_css": "tollhouse.css", "docs_js": "docs.js", "demo_css": "demo/demo.css", "demo_js": "demo/demo.js",
}  # fmt: skip

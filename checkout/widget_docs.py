"""Docs page about the widget, with a generator of the content security policy for the page around it."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from checkout import csp
from checkout.brand_selection import resolve_form_kind
from checkout.demo.page_source import LANGUAGE_NAMES, render_page_source
from gateway import widget_hash
from gateway.core import brands, languages
from gateway.portal import navigation
from gateway.portal.samples import API_SAMPLES
from gateway.portal.views import render_docs_page, render_sample

WIDGET_OPTIONS: Final = (
    ("style", "text", "card, logos, none or plain: how the form looks."),
    ("locale", "text", "The language: one of the 25 codes, or its ISO name. The page's lang attribute counts else."),
    ("labels", "object", "Your own words: key → text."),
    ("errorMessages", "object", "Your own words for errors: key → text."),
    ("inlineFlow", "list", "Brands that run without leaving the page."),
    (
        "registrations",
        "object",
        "requireCvv: ask for the code of a stored card; hideInitialPaymentForms: only stored cards; onDelete: your "
        "function that has one deleted, called with {id, brand, last4}: with it the form offers that, and asks once.",
    ),
    ("brandDetection", "true/false", "Find the brand by the first digits."),
    ("maskCvv", "true/false", "Show dots for the security code."),
    ("requireCvv", "true/false", "Demand the security code."),
    ("billingAddress", "object", "Ask for the address; values fill it in."),
    ("onReady", "function", "The form stands."),
    ("onBeforeSubmitCard", "function", "Your own checks: false, or a promise of false, stops the submission."),
    ("onAfterSubmit", "function", "The form was sent."),
    ("onError", "function", "Something failed: {name, message}."),
    ("onChangeBrand", "function", "Another brand was chosen or found."),
    ("createCheckout", "function", "Fast checkout: called once per click with {brand}; returns an id or a promise."),
    ("checkout.amount", "text", "The amount your page shows. Where the checkout has another, the form says so."),
    ("customParameters", "object", "Sent along; names start with SHOPPER_, others are left out."),
    ("wallet1, wallet2, wallet3", "object", "What a wallet's sheet shows and asks; see fast checkout."),
    ("shopWallet, webWallet", "object", "The same for wallets with a page of their own."),
    ("baseUrl", "text", "Where the gateway is, when the script came from elsewhere. It ends with a slash."),
)
WIDGET_TROUBLESHOOTING: Final = (
    ("Failed to find a valid digest in the 'integrity' attribute",
     "The script is not the one the hash belongs to. Read the hash anew, or load the build that has it: "
     "/v1/paymentWidgets/{sha384 in hex}.js is served for ever."),
    ("Refused to frame … because it violates … frame-src",
     "The page's policy lacks this gateway's host: take the header from the generator above."),
    ("No payment session found", "The checkout has ended (30 minutes) or there is none of that id: create another."),
    ("A <form> stands around <form class=\"paymentWidgets\">",
     "A form inside a form is no HTML; browsers drop the inner one. Take the outer form away."),
    ("widgetOptions.baseUrl must be an http(s) address that ends with a slash",
     "https://pay.example/, not https://pay.example."),
)  # fmt: skip


@require_safe
def widget_guide_view(request: HttpRequest) -> HttpResponse:
    """GET /docs/widget: how to put the form into a page. ``?brand=…`` chooses brands for the policy."""
    offered = [brand for brand in brands.PAYMENT_BRANDS.values() if resolve_form_kind(brand)]
    codes = [brand.code for brand in offered]
    chosen = [code for code in request.GET.getlist("brand") if code in codes] or ["VISA", "MASTER"]
    base = urlsplit(settings.GATEWAY_BASE_URL)
    directives = csp.build_widget_csp(f"{base.scheme}://{base.netloc}", chosen, settings.GATEWAY_WALLET_ORIGINS)
    return render_docs_page(
        request,
        "docs/widget.html",
        "widget",
        page=navigation.DOCS_PAGES["widget"],
        source=render_page_source(settings.GATEWAY_BASE_URL),
        csp=csp.format_csp(directives),
        chosen=chosen,
        offered=offered,
        options=WIDGET_OPTIONS,
        faults=WIDGET_TROUBLESHOOTING,
        integrity=widget_hash.widget_integrity(),
        languages=[
            (code, languages.iso_language_code(code), LANGUAGE_NAMES[code]) for code in languages.LANGUAGE_CODES
        ],
        samples={
            name.replace("-", "_"): render_sample(API_SAMPLES[name])
            for name in ("checkout", "update-checkout", "checkout-status", "register-checkout")
        },
    )

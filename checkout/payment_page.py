"""The hosted payment page, below /pay/: a checkout's form and receipt, and the way there from a payment link.

The address of a link opens a checkout of its own and leads to that checkout's page; the page is rendered from the
checkout's row, so reloading, going back and returning from a bank show where it stands. Ids are capabilities: the page
is never stored, sends no Referer, and its requests are counted like those of the form. No page needs a cookie; only the
form needs a script, our own. Source: docs/decisions/0083; Part A, What the service does, 8.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from functools import wraps
from typing import Any, Final, cast
from uuid import UUID

from csp.constants import NONCE, SELF
from csp.decorators import csp_update
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods, require_POST

from checkout import payment_links, receipts, session, widget_responses
from checkout.brand_selection import resolve_form_kind
from checkout.demo.page_source import LANGUAGE_NAMES
from checkout.models import Checkout, PaymentLink
from checkout.page_style import load_page_look
from checkout.wallet_providers import map_wallet_providers
from gateway import widget_hash
from gateway.api import token_admission
from gateway.api.errors import ApiError
from gateway.catalogue.parse import InvalidParametersError
from gateway.core import brands, clock, languages
from gateway.core.client_address import resolve_client_ip
from gateway.core.local_amounts import format_local_amount
from gateway.core.mail_address import parse_mail_address
from gateway.core.masking import mask_text
from gateway.core.money import currency_exponent
from gateway.models import Channel, Status
from gateway.payments import shopper_return
from gateway.payments.refusal import RequestRefusedError, check_brand_takes_type
from gateway.shopper.page_language import build_language_context

DEFAULT_PAGE_BRANDS: Final = (
    "VISA", "MASTER", "AMEX", "MAESTRO", "DINERS", "DISCOVER", "JCB", "UNIONPAY", "DIRECTDEBIT_SEPA", "ONLINETRANSFER",
)  # fmt: skip
"""Offered where the channel names no brands, those without an account left out."""
PAGE_OPERATION: Final = token_admission.WIDGET_OPERATION
OPEN_LINK_OPERATION: Final = "checkout"
PageView = Callable[[HttpRequest, str], HttpResponse]
_AMOUNT: Final = re.compile(r"([0-9]{1,10})(?:[.,]([0-9]{1,2}))?")


def hosted_page(view: PageView) -> PageView:
    """Decorator of the page's views: their policy and headers, and a page instead of an error."""

    @wraps(view)
    def wrapped(request: HttpRequest, target: str) -> HttpResponse:
        try:
            answer = view(request, target)
        except ApiError as fault:  # too many requests
            answer = _render(request, "pay/ended.html", status=fault.status, title="declinedTechnical")
            for name, value in fault.headers.items():
                answer.headers[name] = value
        answer["Cache-Control"] = "no-store"
        answer["Referrer-Policy"] = "no-referrer"
        answer["X-Robots-Tag"] = "noindex"
        answer["Permissions-Policy"] = "camera=(), microphone=(), geolocation=()"
        return answer

    policy: Any = csp_update({"frame-src": [SELF, "https:"], "form-action": ["https:"], "style-src": [NONCE]})
    return cast("PageView", csrf_exempt(policy(wrapped)))


@hosted_page
@require_http_methods(["GET", "HEAD", "POST"])
def payment_page_view(request: HttpRequest, target: str) -> HttpResponse:
    """GET /pay/{checkout}: the form, or how the payment stands. GET and POST /pay/{link}: open a checkout of a link."""
    link = payment_links.find_payment_link(target)
    if link is not None:
        return _open_link(request, link)
    row = session.find_checkout(target)
    if row is None or not session.has_payment_page(row):
        return _render(request, "pay/ended.html", status=404, title="linkEnded", text="linkEndedText")
    _throttle(request, row.id, row.channel, PAGE_OPERATION)
    return _show_checkout(request, row)


@hosted_page
@require_POST
def receipt_mail_view(request: HttpRequest, target: str) -> HttpResponse:
    """POST /pay/{checkout}/receipt: mail the receipt to ``email``."""
    row = session.find_checkout(target)
    if row is None or not session.has_payment_page(row):
        return _render(request, "pay/ended.html", status=404, title="linkEnded", text="linkEndedText")
    _throttle(request, row.id, row.channel, PAGE_OPERATION)
    words = build_language_context(request, row.request.get("locale", ""))
    sent = "paid" if not _has_receipt(row) else _request_mail(row, request, words["locale"])
    location = f"{session.build_hosted_page_url(row)}?locale={words['locale']}&mail={sent}"
    return HttpResponse(status=303, headers={"Location": location})


def _request_mail(row: Checkout, request: HttpRequest, language: str) -> str:
    """``sent``, or ``refused``: no address, or one mail too many."""
    to = parse_mail_address(request.POST.get("email", ""))
    return "sent" if to and receipts.request_receipt_mail(row, to, language) else "refused"


# --- links -----------------------------------------------------------------------------------------------------------


def _open_link(request: HttpRequest, link: PaymentLink) -> HttpResponse:
    _throttle(request, link.id, link.channel, PAGE_OPERATION)
    state = payment_links.find_link_state(link)
    if state != payment_links.ACTIVE_STATE:
        return _render_closed_link(request, link, state)
    if link.amount is not None:
        return _redirect_to_checkout(request, link, link.amount)
    shown = request.POST.get("amount", "")
    amount = parse_open_amount(shown, link) if request.method == "POST" else None
    if amount is not None:
        return _redirect_to_checkout(request, link, amount)
    language = _resolve_page_language(request, link)
    context = {
        "amount": shown,
        "wrong": request.method == "POST",
        "inputmode": "decimal" if currency_exponent(link.currency) else "numeric",
        "bounds": {
            "min": format_local_amount(link.min_amount or Decimal(0), link.currency, language),
            "max": format_local_amount(link.max_amount or Decimal(0), link.currency, language),
        },
        **_describe_order(link.request, link.currency, link.description, language),
    }
    return _render(request, "pay/amount.html", link=link, **context)


def _redirect_to_checkout(request: HttpRequest, link: PaymentLink, amount: Decimal) -> HttpResponse:
    """Open a checkout and lead to its page. HEAD, which programs send that look at links, opens none."""
    if request.method == "HEAD":
        return HttpResponse()
    _throttle(request, link.id, link.channel, OPEN_LINK_OPERATION)
    token_admission.throttle_link_opening(link.id, resolve_client_ip(request), clock.real_now())
    try:
        row = payment_links.open_link_checkout(link, amount)
    except InvalidParametersError:  # the channel does not take any more what it took when the link was made
        return _render_closed_link(request, link, payment_links.DEACTIVATED_STATE)
    locale = languages.resolve_language(request.POST.get("locale") or request.GET.get("locale") or "")
    location = session.build_hosted_page_url(row) + (f"?locale={locale}" if locale else "")
    return HttpResponse(status=303, headers={"Location": location})


def parse_open_amount(text: str, link: PaymentLink) -> Decimal | None:
    """What a shopper typed as an amount of an open link: digits of any script, a comma or a point before the decimals.
    None if it is no amount, finer than the currency, or out of the link's bounds."""
    plain = "".join(
        str(unicodedata.digit(one)) if one.isdecimal() else one for one in text[:40] if not one.isspace()
    ).replace("٫", ".")
    found = _AMOUNT.fullmatch(plain)
    if found is None or link.min_amount is None or link.max_amount is None:
        return None
    amount = Decimal(f"{found[1]}.{found[2] or '0'}")
    if currency_exponent(link.currency) == 0 and amount != amount.to_integral_value():
        return None
    return amount if link.min_amount <= amount <= link.max_amount else None


def _render_closed_link(request: HttpRequest, link: PaymentLink, state: str) -> HttpResponse:
    paid = state == payment_links.PAID_STATE and link.max_payments == 1
    title, text = ("paidAlready", "") if paid else ("linkEnded", "linkEndedText")
    return _render(request, "pay/ended.html", link=link, status=410, title=title, text=text)


# --- checkouts -------------------------------------------------------------------------------------------------------


def _show_checkout(request: HttpRequest, row: Checkout) -> HttpResponse:
    state = widget_responses.resolve_checkout_state(row)
    came_back = "resourcePath" in request.GET
    if state == "done":
        return _render_paid(request, row)
    if state == "processing" or (state == "action" and came_back):
        return _render(request, "pay/waiting.html", row=row, **_describe_checkout(request, row))
    if state == "expired" or (row.link is not None and not _is_link_payable(row, row.link)):
        return _render_ended_checkout(request, row)
    words = build_language_context(request, row.request.get("locale", ""))
    suffix = "" if row.kind == Checkout.Kind.PAYMENT else f"/{row.kind}"
    context = {
        "script": f"{settings.GATEWAY_BASE_URL}/v1/paymentWidgets.js?checkoutId={row.public_id}{suffix}",
        "integrity": widget_hash.widget_integrity(),
        "action": f"{session.build_hosted_page_url(row)}?locale={words['locale']}",
        "brands": " ".join(choose_page_brands(row)),
        "declined": came_back and row.payment is not None and row.payment.status == Status.DECLINED,
        **_describe_checkout(request, row),
    }
    return _render(request, "pay/form.html", row=row, **context)


def _is_link_payable(row: Checkout, link: PaymentLink) -> bool:
    """Whether the checkout's link is neither closed nor paid by others as often as it may be."""
    link.merchant = row.merchant
    return payment_links.find_link_state(link) == payment_links.ACTIVE_STATE


def _render_ended_checkout(request: HttpRequest, row: Checkout) -> HttpResponse:
    """The end of a checkout without a payment: its link opens another, if it is still open."""
    if row.link is None:
        return _render(request, "pay/ended.html", row=row, status=410, title="expiredTitle", text="expiredText")
    row.link.merchant, row.link.channel = row.merchant, row.channel
    state = payment_links.find_link_state(row.link)
    if state != payment_links.ACTIVE_STATE:
        return _render_closed_link(request, row.link, state)
    again = payment_links.build_payment_link_url(row.link)
    return _render(request, "pay/ended.html", row=row, status=410, title="expiredTitle", again=again)


def _render_paid(request: HttpRequest, row: Checkout) -> HttpResponse:
    payment = row.payment
    if payment is None or not _has_receipt(row):
        stored = payment is not None and row.kind == Checkout.Kind.REGISTRATION
        return _render(request, "pay/ended.html", row=row, title="saved" if stored else "paidAlready")
    words = build_language_context(request, row.request.get("locale", ""))
    url = shopper_return.build_result_url(payment)
    context = {
        "receipt": receipts.build_receipt(row, payment, words["t"], words["locale"]),
        "mail": request.GET.get("mail", ""),
        "email": row.request.get("customer.email", ""),
        "mail_action": f"{session.PAYMENT_PAGE_PATH}{row.public_id}/receipt",
        "back": url if url and not session.is_payment_page_url(url) else "",
        "description": mask_text(row.link.description) if row.link is not None else "",
    }
    return _render(request, "pay/receipt.html", row=row, **context)


def _has_receipt(row: Checkout) -> bool:
    return (
        row.kind == Checkout.Kind.PAYMENT
        and row.payment is not None
        and row.payment.status == Status.APPROVED
        and receipts.is_receipt_shown(row.payment, clock.merchant_now(row.merchant))
    )


def choose_page_brands(row: Checkout) -> list[str]:
    """The brands of a checkout's page, in the channel's order, without those that this payment cannot be made with and
    without wallets whose sheet is a provider's: the page loads nothing of others."""
    provided = map_wallet_providers(row.channel)
    return [code for code in row.channel.brands or DEFAULT_PAGE_BRANDS if _fits_page(row, code, set(provided))]


def _fits_page(row: Checkout, code: str, provided: set[str]) -> bool:
    brand = brands.find_brand(code)
    currency, payment_type = row.request.get("currency", ""), row.request.get("paymentType", "")
    if brand is None or not (kind := resolve_form_kind(brand)) or kind in provided:
        return False
    if code.endswith("_SEPA") and currency not in ("", "EUR"):
        return False
    try:
        if payment_type:
            check_brand_takes_type(payment_type, code)
    except RequestRefusedError:
        return False
    return True


# --- shared ----------------------------------------------------------------------------------------------------------


def _describe_checkout(request: HttpRequest, row: Checkout) -> dict[str, Any]:
    description = row.link.description if row.link is not None else ""
    language = _resolve_page_language(request, row)
    return _describe_order(row.request, row.request.get("currency", ""), description, language)


def _resolve_page_language(request: HttpRequest, owner: Checkout | PaymentLink) -> str:
    language: str = build_language_context(request, owner.request.get("locale", ""))["locale"]
    return language


def _describe_order(request: dict[str, str], currency: str, description: str, language: str) -> dict[str, Any]:
    amount = request.get("amount")
    return {
        "total": format_local_amount(Decimal(amount), currency, language) if amount else "",
        "description": mask_text(description),
        "lines": receipts.list_order_lines(request, currency, language),
        # Ids are stored as they were sent; people see a card number in one masked (decision 0052).
        "reference": mask_text(request.get("merchantTransactionId", "")),
    }


def _format_bounds(words: dict[str, Any], bounds: dict[str, str]) -> str:
    """The sentence with the least and the greatest amount; in a language from right to left each is kept in order."""
    if words["dir"] == "rtl":
        bounds = {name: f"\u2068{amount}\u2069" for name, amount in bounds.items()}
    found: str = words["t"]["amountBetween"].format(**bounds)
    return found


def _throttle(request: HttpRequest, ident: UUID, channel: Channel, operation: str) -> None:
    """Count the request for this link or checkout and the client's network. Raises ApiError above the limit."""
    token_admission.throttle_shopper_request(ident, channel, resolve_client_ip(request), operation, clock.real_now())


def _render(
    request: HttpRequest,
    template: str,
    *,
    row: Checkout | None = None,
    link: PaymentLink | None = None,
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """A page in the shopper's language with the merchant's name, logo and colours, where a merchant is known."""
    owner = row or link
    words = build_language_context(request, owner.request.get("locale", "") if owner is not None else None)
    merchant = owner.merchant.name if owner is not None else ""
    context |= words | {
        "merchant": merchant,
        "look": load_page_look(owner.channel) if owner is not None else None,
        "live": settings.IS_LIVE,
        "languages": [
            (code, languages.iso_language_code(code), LANGUAGE_NAMES[code]) for code in languages.LANGUAGE_CODES
        ],
        "language": LANGUAGE_NAMES[words["locale"]],
        "link_row": link,
        "page_title": words["t"]["payTitle"].format(merchant=merchant) if merchant else "",
        "sentence": words["t"].get(context.get("text", ""), "").format(merchant=merchant),
        "heading": words["t"].get(context.get("title", ""), ""),
        "between": _format_bounds(words, context["bounds"]) if "bounds" in context else "",
    }
    return render(request, template, context, status=status)

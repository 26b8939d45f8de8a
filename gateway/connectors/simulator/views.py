"""Pages of the simulated bank, wallets and invoice provider, on which the shopper picks the outcome with one click.

The gateway learns the decision as from a real bank: the shopper returns, and it asks. Nothing here changes a payment.
Source: Part A, What the service does, 6, Events, 1; docs/decisions/0014.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods

from gateway.connectors.simulator import orders
from gateway.core import identifiers, languages, result_codes
from gateway.core.money import format_amount
from gateway.core.result_codes import SHOPPER_CANCELLED_CODE, SHOPPER_TIMEOUT_CODE
from gateway.models import Merchant, Payment, SimulatedOrder

CSP_SELF: Final = "'self'"
LEAVE_OUTCOME: Final = "leave"


# Access is by the secret address, not by a cookie, so cross-site requests gain nothing (no CSRF).
@csrf_exempt
@require_http_methods(["GET", "HEAD", "POST"])
def simulated_order_view(request: HttpRequest, handle: str) -> HttpResponse:
    """GET or POST /simulator/{handle}: the order's page. POST with ``outcome``: the decision, then back to the shop."""
    found = _find_order(handle)
    outcome = request.POST.get("outcome", "")
    if outcome == LEAVE_OUTCOME:
        return _render_order(request, found, "simulator/left.html")
    if outcome in orders.ORDER_OUTCOMES:
        # The first decision counts; every later visitor is redirected too, and the shop shows the result.
        orders.decide_simulated_order(found, orders.ORDER_OUTCOMES[outcome])
        return HttpResponse(status=303, headers={"Location": found.return_url, "Cache-Control": "no-store"})
    if found.state != SimulatedOrder.State.OPEN:
        return _render_order(request, found, "simulator/decided.html")
    return _render_order(request, found, f"simulator/{found.kind}.html")


def _find_order(handle: str) -> SimulatedOrder:
    ident = identifiers.parse_id(handle)
    if settings.IS_LIVE or ident is None:
        raise Http404
    found = SimulatedOrder.objects.filter(handle=ident).first()
    if found is None or not orders.SIMULATED_ORDER_KINDS[found.kind].has_page:
        raise Http404
    return found


def _render_order(request: HttpRequest, found: SimulatedOrder, template: str) -> HttpResponse:
    kind = orders.SIMULATED_ORDER_KINDS[found.kind]
    # A real bank knows the merchant's name from its contract.
    payment = Payment.objects.select_related("merchant").only("merchant__name", "request").get(pk=found.payment)
    merchant: Merchant = payment.merchant
    context: dict[str, Any] = {
        "order": found,
        "kind": kind,
        "amount": format_amount(found.amount),
        "shop": found.descriptor or merchant.name,
        "declined": result_codes.find_result_code(kind.declined),
        "cancelled": result_codes.find_result_code(SHOPPER_CANCELLED_CODE),
        "ran_out": result_codes.find_result_code(SHOPPER_TIMEOUT_CODE),
        "approved": result_codes.find_result_code(kind.code(SimulatedOrder.State.APPROVED)),
    }
    # The merchant's locale, else the browser's.
    code = languages.resolve_language(str(payment.request.get("locale", "")))
    code = code or languages.negotiate_language(request.headers.get("Accept-Language", ""))
    words, texts = languages.load_bank_texts(code), languages.load_page_texts(code)
    context |= {
        "lang": languages.iso_language_code(code),
        "dir": languages.text_direction(code),
        "words": words,
        "t": texts,
        "signed_in": words["signedIn"].format(name="jane@mail.example"),
        "stored": texts["savedCard"].format(brand=texts["card"], last4="0042"),
        "decided": words.get(found.state, ""),
        "silent": words["silent"].format(minutes=settings.GATEWAY_SHOPPER_DEADLINE_S // 60),
    }
    response = render(request, template, context)
    response["Cache-Control"] = "no-store"
    response["Referrer-Policy"] = "no-referrer"
    # Browsers apply form-action to every redirect of a form: our return page, then the merchant's.
    away = _policy_source(str(payment.request.get("shopperResultUrl", "")))
    response._csp_replace = {"form-action": [CSP_SELF, *([away] if away else [])]}  # type: ignore[attr-defined]
    return response


def _policy_source(url: str) -> str:
    """The origin of a web address, or the scheme of an app's, as a policy source; '' for anything else."""
    parts = urlsplit(url)
    if parts.scheme in ("http", "https") and parts.hostname:
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname.encode("idna").decode()
        return f"{parts.scheme}://{host}" + (f":{parts.port}" if parts.port else "")
    return f"{parts.scheme}:" if parts.scheme.replace("+", "").replace("-", "").replace(".", "").isalnum() else ""

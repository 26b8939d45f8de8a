"""The shopper's return from a bank or wallet. The result is asked of the connector, never read from the address.

Source: Part A, Events, 1; decisions, section 5.
"""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from gateway.catalogue.formats import is_openable_address
from gateway.core import identifiers
from gateway.core.client_address import resolve_client_ip
from gateway.core.local_amounts import format_local_amount
from gateway.core.masking import mask_text
from gateway.models import Payment
from gateway.payments import shopper_return
from gateway.payments.payment_request import RequestTrace
from gateway.shopper.page_language import build_language_context


def find_shopper_payment(request: HttpRequest, target: str) -> Payment:
    """The payment in the address, if the request has its token. Raises Http404 otherwise."""
    found = shopper_return.find_payment_by_token(
        identifiers.parse_id(target), request.GET.get("token") or request.POST.get("token") or ""
    )
    if found is None:
        raise Http404
    return found


def build_shopper_trace(request: HttpRequest, payment: Payment) -> RequestTrace:
    """A shopper's request for the request log, without its token."""
    return RequestTrace(
        method=request.method or "",
        path=mask_text(request.path),
        ip=resolve_client_ip(request),
        entity=payment.channel_id,
    )


def redirect_to_merchant(request: HttpRequest, payment: Payment) -> HttpResponse:
    """Redirect the shopper to shopperResultUrl; without one, show the result."""
    url = shopper_return.build_result_url(payment)
    if url is None or not is_openable_address(url):
        words = build_language_context(request, str(payment.request.get("locale", "")))
        amount = format_local_amount(payment.amount, payment.currency, words["locale"])
        paid = words["t"]["paidText"].format(amount=amount)
        return render(request, "shopper/ended.html", {"payment": payment, "paid": paid} | words)
    # Apps have their own URL schemes, which Django's redirect refuses.
    return HttpResponse(status=303, headers={"Location": url, "Cache-Control": "no-store"})


@require_GET
def return_view(request: HttpRequest, target: str) -> HttpResponse:
    """GET /shopper/{payment}/return: the return from a bank or wallet; may be repeated."""
    payment = find_shopper_payment(request, target)
    return redirect_to_merchant(
        request, shopper_return.complete_shopper_return(payment, build_shopper_trace(request, payment))
    )

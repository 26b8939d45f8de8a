"""A shopper comes back from a bank or wallet: how it went is asked of the connector, never read from the address.

Source: Part A, Events, 1; decisions, section 5.
"""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from gateway import clock, identifiers
from gateway.api.door import client_ip
from gateway.catalogue.formats import may_be_opened
from gateway.masking import mask_text
from gateway.models import Payment
from gateway.payments import resume
from gateway.payments.request import Trace
from gateway.shopper.words import spoken


def payment_of(request: HttpRequest, target: str) -> Payment:
    """The payment in the address, for whoever shows its token. Raises Http404 for anybody else."""
    found = resume.find(identifiers.parse_id(target), request.GET.get("token") or request.POST.get("token") or "")
    if found is None:
        raise Http404
    return found


def trace_of(request: HttpRequest, payment: Payment) -> Trace:
    """A shopper's request as the request log keeps it: without its token."""
    return Trace(
        request=identifiers.row_id(), method=request.method or "", path=mask_text(request.path), at=clock.real(),
        ip=client_ip(request), entity=payment.channel_id,
    )  # fmt: skip


def to_the_merchant(request: HttpRequest, payment: Payment) -> HttpResponse:
    """Send the shopper to shopperResultUrl; without one, say how it went."""
    url = resume.result_url(payment)
    if url is None or not may_be_opened(url):
        words = spoken(request, str(payment.request.get("locale", "")))
        paid = words["t"]["paidText"].format(amount=f"{payment.amount} {payment.currency}")
        return render(request, "shopper/ended.html", {"payment": payment, "paid": paid} | words)
    # Apps have schemes of their own, which Django's redirect refuses.
    return HttpResponse(status=303, headers={"Location": url, "Cache-Control": "no-store"})


@require_GET
def comes_back(request: HttpRequest, target: str) -> HttpResponse:
    """GET /shopper/{payment}/return: from a bank or wallet, once or again."""
    payment = payment_of(request, target)
    return to_the_merchant(request, resume.returned(payment, trace_of(request, payment)))

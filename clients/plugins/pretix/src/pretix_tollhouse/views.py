"""The shopper's return, and webhooks."""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe
from pretix.base.models import Order, OrderPayment
from pretix.base.payment import PaymentException
from pretix.helpers.http import redirect_to_url
from pretix.multidomain.urlreverse import eventreverse
from tollhouse import ApiError, AuthenticationError, NotFoundError, WebhookVerificationError, webhooks
from tollhouse.models import Listed

from pretix_tollhouse.payment import RETURN_TAG, TollhouseProvider
from pretix_tollhouse.results import NOTHING_FOUND, errors_as_payment_exceptions, read_result


@require_safe
def return_view(request: HttpRequest, order: str, hash: str, payment: int, **_names: str) -> HttpResponse:
    """The shopper is back: read the result, and show the order."""
    try:
        found = request.event.orders.get_with_secret_check(code=order, received_secret=hash.lower(), tag=RETURN_TAG)
    except Order.DoesNotExist:
        raise Http404("unknown order") from None
    row = get_object_or_404(found.payments, pk=payment, provider=TollhouseProvider.identifier)
    try:
        read_result(row, returned=True)
    except PaymentException:
        messages.warning(request, _("We could not read the result of your payment yet. Please do not pay again."))
    row.refresh_from_db()
    found.refresh_from_db()
    if row.state == OrderPayment.PAYMENT_STATE_FAILED:
        messages.error(request, _("Your payment was not successful. You can try it again."))
    address = eventreverse(request.event, "presale:event.order", kwargs={"order": found.code, "secret": found.secret})
    return redirect_to_url(address + ("?paid=yes" if found.status == Order.STATUS_PAID else ""))


@csrf_exempt
@require_POST
def webhook_view(request: HttpRequest, **_names: str) -> HttpResponse:
    """A webhook: verified, then the payment that it names is read from the gateway. 200 for one with which there is
    nothing to do: it would come again for 30 days."""
    provider = TollhouseProvider(request.event)
    secret = provider.settings.get("webhook_secret")
    try:
        event = webhooks.verify(request.body, request.headers, secret) if secret else None
    except (WebhookVerificationError, ValueError):
        event = None
    if event is None:
        return JsonResponse({"error": "not verified"}, status=400)
    if event.type == "PAYMENT":
        try:
            for row in _find_payments(provider, event):
                read_result(row)
        except PaymentException:
            return JsonResponse({"error": "try again"}, status=503)
    return JsonResponse({"status": "ok"})


def _read_chain(provider: TollhouseProvider, follow_up: str) -> Iterable[Listed]:
    """The records around a refund; none if it is of another channel, whose webhooks come here as well if the endpoint
    has no channel. Raises PaymentException."""
    gateway = provider.build_client()
    with errors_as_payment_exceptions():
        try:
            return gateway.transactions.get(follow_up, includeLinkedTransactions=True).records
        except ApiError as error:
            refused = isinstance(error, AuthenticationError) and error.status == 403
            if refused or isinstance(error, NotFoundError) or error.code == NOTHING_FOUND:
                return ()
            raise


def _find_payments(provider: TollhouseProvider, event: webhooks.Event) -> list[OrderPayment]:
    """The payments of this event that a webhook is about: of its own reference, or of the payment that it follows."""
    references = {str(event.payload.get("merchantTransactionId"))}
    if event.payload.get("referencedId"):
        chain = _read_chain(provider, str(event.payload["id"]))
        references |= {str(one["merchantTransactionId"]) for one in chain if "merchantTransactionId" in one}
    codes = {text.rpartition("-P-")[0].rpartition("-")[2] for text in references}
    rows = OrderPayment.objects.filter(
        order__event=provider.event, order__code__in=codes, provider=TollhouseProvider.identifier
    )
    return [row for row in rows if row.global_id in references]

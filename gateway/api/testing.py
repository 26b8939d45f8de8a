"""Endpoints of the test environment: what was said to acquirers, mails, wallet tokens to try with,
transfers. In live they do
not exist. The clock is in gateway.api.clock."""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final

from django.conf import settings
from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from gateway import clock
from gateway.api.door import Door
from gateway.api.envelope import envelope
from gateway.api.payments import NOT_FOUND, answer_of, ignored
from gateway.catalogue.endpoints import MAILS, MAKE_TOKEN, MESSAGES, TRANSFER, Endpoint
from gateway.catalogue.parse import Invalid, ParameterError
from gateway.connectors.simulator import orders
from gateway.masking import mask_text
from gateway.models import AcquirerExchange, MandateMail
from gateway.money import Money
from gateway.payments import exchanges, mandates, resume
from gateway.payments.refusal import Refused
from gateway.secret import Secret
from gateway.wallets import testing as wallets
from gateway.wallets.formats import FORMATS
from gateway.wallets.making import Sheet, tampered


class TestDoor(Door):
    """Endpoints of the test environment: in live they do not exist."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if settings.IS_LIVE:
            raise Http404
        super().initial(request, *args, **kwargs)


def _masked(message: Any) -> Any:
    """A card number in a free text of the merchant's is masked here too (docs/decisions/0052)."""
    return json.loads(mask_text(json.dumps(message, ensure_ascii=False)))


class MessagesView(TestDoor):
    """GET /v1/test/acquirer/messages: what was sent on for a payment, masked, and what came back."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": MESSAGES}

    def get(self, request: Request) -> Response:
        visit = self.enter(request, request._request.GET.get("id"), reads=True)
        passed_over = ignored(self.parse(visit, visit.admission.channel))
        payment = visit.admission.payment
        if payment is None:
            raise Refused(NOT_FOUND, status=404)
        messages = [
            {
                "connector": exchange.connector,
                "kind": exchange.kind,
                "sent": _masked(exchanges.message(exchange, payment)),
                "received": _masked(exchange.received),
                "durationMs": exchange.duration_ms,
                "at": clock.wire(exchange.at),
            }
            for exchange in AcquirerExchange.objects.filter(payment=payment.pk).order_by("id")
        ]
        body = envelope("000.000.100", visit.trace.ndc, id=payment.id.hex, messages=messages, **passed_over)
        return Response(body, headers=visit.headers)


class MailsView(TestDoor):
    """GET /v1/test/mails: the mails about a payment, with their text."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": MAILS}

    def get(self, request: Request) -> Response:
        visit = self.enter(request, request._request.GET.get("id"), reads=True)
        passed_over = ignored(self.parse(visit, visit.admission.channel))
        payment = visit.admission.payment
        if payment is None:
            raise Refused(NOT_FOUND, status=404)
        rows = MandateMail.objects.select_related("payment__merchant").filter(pk=payment.pk)
        mails = [mandates.shown(row) for row in rows]
        body = envelope("000.000.100", visit.trace.ndc, id=payment.id.hex, mails=mails, **passed_over)
        return Response(body, headers=visit.headers)


class WalletTokenView(TestDoor):
    """POST /v1/test/wallet-token: a wallet's token to try with. A channel without test keys gets its own first."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": MAKE_TOKEN}

    def post(self, request: Request) -> Response:
        visit = self.enter(request)
        parameters = self.parse(visit, visit.admission.channel)
        channel = visit.admission.channel
        if channel is None:
            message = "must be a channel's: keys belong to a channel, and this one is a merchant's"
            raise Invalid([ParameterError(name="entityId", message=message)])
        wallet = parameters["wallet"]
        form = parameters.get("format") or FORMATS[wallet][0]
        sheet = Sheet(
            number=parameters.secret("number") or Secret("4200000000000000"),
            money=Money.parse(parameters["amount"], parameters["currency"]),
            card_only=parameters.get("proof") == "none",
        )
        wallets.make_keys(channel, form)
        token = wallets.make_token(channel, wallet, form, sheet, expired=parameters.get("defect") == "expired")
        if parameters.get("defect") == "tampered":
            token = tampered(token)
        body = envelope("000.000.100", visit.trace.ndc, wallet=wallet, format=form, paymentToken=token)
        return Response(body | ignored(parameters), headers=visit.headers)


class TransferView(TestDoor):
    """POST /v1/test/transfers/{id}: the simulated bank reports that money arrived, or was sent back."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": TRANSFER}

    def post(self, request: Request, target: str) -> Response:
        visit = self.enter(request, target, reads=True)
        parameters = self.parse(visit, visit.admission.channel)
        payment = visit.admission.payment
        if payment is None:
            raise Refused(NOT_FOUND, status=404)
        order = orders.find(payment.id)
        if order is None or orders.KINDS[order.kind].has_page:
            message = "is no payment that waits for a transfer: PREPAYMENT is, and a debit that is confirmed later"
            raise Invalid([ParameterError(name="id", value=target, message=message)])
        orders.decide(order, _TRANSFERS[parameters["outcome"]])
        status, body = answer_of(resume.returned(payment, visit.trace), visit)
        return Response(body | ignored(parameters), status=status, headers=visit.headers)


_TRANSFERS: Final = {"arrived": orders.OUTCOMES["approve"], "returned": orders.OUTCOMES["decline"]}

"""Endpoints of the test environment: acquirer messages, mails, test wallet tokens, simulated transfers.

In live they do not exist (404). The test clock is in gateway.api.clock.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar, Final

from django.conf import settings
from django.http import Http404
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.api.base_view import ApiView, RequestContext
from gateway.api.envelope import build_envelope
from gateway.api.payments import build_payment_response
from gateway.api.registrations import build_registration_response
from gateway.catalogue.endpoints import (
    ACQUIRER_MESSAGES_ENDPOINT,
    CHANGE_NETWORK_TOKEN_ENDPOINT,
    DECIDE_TRANSFER_ENDPOINT,
    MAKE_WALLET_TOKEN_ENDPOINT,
    TEST_MAILS_ENDPOINT,
    Endpoint,
)
from gateway.catalogue.parse import InvalidParametersError, ParameterError
from gateway.connectors.simulator import orders
from gateway.connectors.simulator.token_service import TOKEN_YEARS
from gateway.connectors.token_service import TokenEvent
from gateway.core import clock, identifiers
from gateway.core.masking import mask_text
from gateway.core.money import Money
from gateway.core.result_codes import PAYMENT_NOT_FOUND_CODE
from gateway.core.secret import Secret
from gateway.models import AcquirerExchange, MandateMail, Payment
from gateway.payments import acquirer_message_store, mandate_mails, network_tokens, registrations, shopper_return
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.responses import render_ignored_parameters
from gateway.payments.stored_tokens import get_network_token
from gateway.wallets import sandbox_tokens as wallets
from gateway.wallets.formats import WALLET_FORMATS
from gateway.wallets.token_factory import PaymentSheet, tamper_token


class SandboxView(ApiView):
    """Base of test environment endpoints: 404 in live."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        if settings.IS_LIVE:
            raise Http404
        super().initial(request, *args, **kwargs)


def _mask_message(message: Any) -> Any:
    """The message with card numbers in the merchant's free texts masked too (docs/decisions/0052)."""
    text = json.dumps(message, ensure_ascii=False)
    try:
        return json.loads(mask_text(text))
    except ValueError:  # what is masked was a number without quotes: all numbers become text
        as_text = json.loads(text, parse_int=str, parse_float=str)
        return json.loads(mask_text(json.dumps(as_text, ensure_ascii=False)))


class SandboxPaymentView(SandboxView):
    """Base of the views that read what belongs to the payment ``id``."""

    def read_payment(self, request: Request) -> tuple[RequestContext, Payment, dict[str, Any]]:
        """The admitted request, its payment, and the names of ignored parameters for the answer. Raises
        RequestRefusedError (404)."""
        context = self.admit_request(request, request._request.GET.get("id"), reads=True)
        ignored_names = render_ignored_parameters(self.parse(context, context.admission.channel))
        payment = context.admission.payment
        if payment is None:
            raise RequestRefusedError(PAYMENT_NOT_FOUND_CODE, status=404)
        return context, payment, ignored_names


class AcquirerMessagesView(SandboxPaymentView):
    """GET /v1/test/acquirer/messages: the messages sent to the acquirer for a payment, masked, and its answers."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": ACQUIRER_MESSAGES_ENDPOINT}

    def get(self, request: Request) -> Response:
        context, payment, ignored_names = self.read_payment(request)
        messages = [
            {
                "connector": exchange.connector,
                "kind": exchange.kind,
                "sent": _mask_message(acquirer_message_store.restore_message(exchange, payment)),
                "received": _mask_message(exchange.received),
                "durationMs": exchange.duration_ms,
                "at": clock.format_timestamp(exchange.at),
            }
            for exchange in AcquirerExchange.objects.filter(payment=payment.pk).order_by("id")
        ]
        body = build_envelope("000.000.100", context.trace.ndc, id=payment.id.hex, messages=messages, **ignored_names)
        return Response(body, headers=context.headers)


class MailsView(SandboxPaymentView):
    """GET /v1/test/mails: the mandate mails of a payment, with their text."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": TEST_MAILS_ENDPOINT}

    def get(self, request: Request) -> Response:
        context, payment, ignored_names = self.read_payment(request)
        rows = MandateMail.objects.select_related("payment__merchant").filter(pk=payment.pk)
        mails = [mandate_mails.render_mandate_mail(row) for row in rows]
        body = build_envelope("000.000.100", context.trace.ndc, id=payment.id.hex, mails=mails, **ignored_names)
        return Response(body, headers=context.headers)


class WalletTokenView(SandboxView):
    """POST /v1/test/wallet-token: build a test wallet token. Generates the channel's test keys first if needed."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": MAKE_WALLET_TOKEN_ENDPOINT}

    def post(self, request: Request) -> Response:
        context = self.admit_request(request)
        parameters = self.parse(context, context.admission.channel)
        channel = context.admission.channel
        if channel is None:
            message = "must be a channel's: keys belong to a channel, and this one is a merchant's"
            raise InvalidParametersError([ParameterError(name="entityId", message=message)])
        wallet = parameters["wallet"]
        form = parameters.get("format") or WALLET_FORMATS[wallet][0]
        sheet = PaymentSheet(
            number=parameters.secret("number") or Secret("4200000000000000"),
            money=Money.parse(parameters["amount"], parameters["currency"]),
            card_only=parameters.get("proof") == "none",
        )
        wallets.generate_channel_keys(channel, form)
        token = wallets.build_channel_token(channel, wallet, form, sheet, expired=parameters.get("defect") == "expired")
        if parameters.get("defect") == "tampered":
            token = tamper_token(token)
        body = build_envelope("000.000.100", context.trace.ndc, wallet=wallet, format=form, paymentToken=token)
        return Response(body | render_ignored_parameters(parameters), headers=context.headers)


class NetworkTokenView(SandboxView):
    """POST /v1/test/network-tokens/{id}: the simulated card network tells what became of a stored card's token."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": CHANGE_NETWORK_TOKEN_ENDPOINT}

    def post(self, request: Request, target: str) -> Response:
        context = self.admit_request(request, target)
        parameters = self.parse(context, context.admission.channel)
        admission = context.admission
        found = registrations.find_registration(identifiers.parse_id(target), admission.merchant, admission.channel)
        token = get_network_token(found)
        if token is None or not token.reference:
            message = "is no registration whose card has a network token"
            raise InvalidParametersError([ParameterError(name="id", value=target, message=message)])
        network_tokens.apply_token_event(
            token.reference,
            TokenEvent(parameters["event"]),
            expiry_month=token.expiry_month,
            expiry_year=str(int(token.expiry_year) + TOKEN_YEARS),
        )
        found.network_token.refresh_from_db()
        return build_registration_response(found, context, parameters)


class TransferView(SandboxView):
    """POST /v1/test/transfers/{id}: the simulated bank reports that money arrived, or was sent back."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": DECIDE_TRANSFER_ENDPOINT}

    def post(self, request: Request, target: str) -> Response:
        context = self.admit_request(request, target, reads=True)
        parameters = self.parse(context, context.admission.channel)
        payment = context.admission.payment
        if payment is None:
            raise RequestRefusedError(PAYMENT_NOT_FOUND_CODE, status=404)
        order = orders.find_simulated_order(payment.id)
        if order is None or orders.SIMULATED_ORDER_KINDS[order.kind].has_page:
            message = "is no payment that waits for a transfer: PREPAYMENT is, and a debit that is confirmed later"
            raise InvalidParametersError([ParameterError(name="id", value=target, message=message)])
        orders.decide_simulated_order(order, _TRANSFERS[parameters["outcome"]])
        status, body = build_payment_response(shopper_return.complete_shopper_return(payment, context.trace), context)
        return Response(body | render_ignored_parameters(parameters), status=status, headers=context.headers)


_TRANSFERS: Final = {"arrived": orders.ORDER_OUTCOMES["approve"], "returned": orders.ORDER_OUTCOMES["decline"]}

"""HTTP API of payment links: create, read, list, deactivate. Source: docs/decisions/0083; rulings D11, D12, D20."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final
from uuid import UUID

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from checkout import payment_links
from checkout.api import CheckoutApiView, write_with_idempotency
from checkout.models import PaymentLink
from checkout.payment_links import LinkUse, annotate_link_use
from gateway.api.base_view import RequestContext, log_request
from gateway.api.envelope import build_envelope
from gateway.api.payments import resolve_request_channel
from gateway.catalogue.endpoints import (
    CREATE_PAYMENT_LINK_ENDPOINT,
    DEACTIVATE_PAYMENT_LINK_ENDPOINT,
    DELETE_PAYMENT_LINK_ENDPOINT,
    LIST_PAYMENT_LINKS_ENDPOINT,
    READ_PAYMENT_LINK_ENDPOINT,
    Endpoint,
)
from gateway.catalogue.nesting import nest_entries
from gateway.catalogue.parse import INVALID_PARAMETER_CODE, InvalidParametersError, ParameterError, Parameters
from gateway.core import clock
from gateway.core.money import format_amount
from gateway.payments import token_limits
from gateway.payments.idempotency import IdempotencyClaim
from gateway.payments.refusal import CHANNEL_NOT_CONFIGURED_CODE, RequestRefusedError
from gateway.payments.request_builder import build_condition_facts
from gateway.payments.responses import render_ignored_parameters

LINK_OK_CODE: Final = "000.000.100"
DEFAULT_LISTED_LINKS: Final = 50
NO_LINK_TEXT: Final = "no such payment link"


class PaymentLinkApiView(CheckoutApiView):
    """Shared by all routes of payment links: logs have a hash of the link's id."""

    def find_own_link(self, context: RequestContext, target: str) -> PaymentLink:
        """The caller's link of that id. Raises RequestRefusedError (404)."""
        row = payment_links.find_payment_link(target, **self.own(context))
        if row is None:
            raise RequestRefusedError(INVALID_PARAMETER_CODE, status=404, more=NO_LINK_TEXT)
        return row

    def own(self, context: RequestContext) -> dict[str, UUID]:
        """The filter on the links of the request's entity."""
        admission = context.admission
        if admission.entity is None:
            raise InvalidParametersError([ParameterError(name="entityId", message="is required", known=True)])
        where: dict[str, UUID] = {"merchant": admission.merchant.pk}
        if admission.channel is not None:
            where["channel"] = admission.channel.pk
        return where


class PaymentLinksView(PaymentLinkApiView):
    """POST and GET /v1/paymentLinks."""

    endpoints: ClassVar[dict[str, Endpoint]] = {
        "POST": CREATE_PAYMENT_LINK_ENDPOINT,
        "GET": LIST_PAYMENT_LINKS_ENDPOINT,
    }

    def pay(self, context: RequestContext, target: str, claim: IdempotencyClaim | None) -> HttpResponse:
        admission = context.admission
        channel = resolve_request_channel(context)
        now = clock.merchant_now(admission.merchant)
        parameters = self.parse(context, channel, build_condition_facts(channel, now))
        if (most := parameters.get("link.maxAmount")) is not None:
            token_limits.check_token_limits(admission.limits, {"amount": most}, pays_later=True)
        if channel is None:
            raise RequestRefusedError(CHANNEL_NOT_CONFIGURED_CODE)
        row, write = payment_links.build_payment_link(parameters, merchant=admission.merchant, channel=channel, now=now)
        ignored = render_ignored_parameters(parameters)
        body = build_envelope(LINK_OK_CODE, context.trace.ndc, **render_payment_link(row), **ignored)
        write_with_idempotency(write, row.id, body, claim)
        response: HttpResponse = Response(body, headers=context.headers)
        log_request(context, response, CREATE_PAYMENT_LINK_ENDPOINT)
        return response

    def get(self, request: Request) -> Response:
        context = self.admit_request(request)
        parameters = self.parse(context, context.admission.channel)
        limit = int(parameters.get("limit") or DEFAULT_LISTED_LINKS)
        page = int(parameters.get("pageNo") or 1)
        rows = PaymentLink.objects.filter(**self.own(context)).select_related("merchant")
        total = rows.count()
        shown: Any = annotate_link_use(rows).order_by("-created_at", "id")[(page - 1) * limit : page * limit]
        listed = [render_payment_link(row, LinkUse(count=row.paid_count, amount=row.paid_amount)) for row in shown]
        body = build_envelope(
            LINK_OK_CODE,
            context.trace.ndc,
            paymentLinks=listed,
            pages=-(-total // limit),
            **render_ignored_parameters(parameters),
        )
        return Response(body, headers=context.headers)


class PaymentLinkView(PaymentLinkApiView):
    """GET and DELETE /v1/paymentLinks/{id}."""

    endpoints: ClassVar[dict[str, Endpoint]] = {
        "GET": READ_PAYMENT_LINK_ENDPOINT,
        "DELETE": DELETE_PAYMENT_LINK_ENDPOINT,
    }

    def get(self, request: Request, target: str) -> Response:
        context = self.admit_request(request)
        parameters = self.parse(context, context.admission.channel)
        return build_link_response(self.find_own_link(context, target), context, parameters)

    def delete(self, request: Request, target: str) -> Response:
        context = self.admit_request(request)
        parameters = self.parse(context, context.admission.channel)
        row = self.find_own_link(context, target)
        payment_links.deactivate_payment_link(row)
        return build_link_response(row, context, parameters)


class DeactivatePaymentLinkView(PaymentLinkApiView):
    """POST /v1/paymentLinks/{id}/deactivate."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": DEACTIVATE_PAYMENT_LINK_ENDPOINT}

    def post(self, request: Request, target: str = "") -> Response:
        context = self.admit_request(request)
        parameters = self.parse(context, context.admission.channel)
        row = self.find_own_link(context, target)
        payment_links.deactivate_payment_link(row)
        response = build_link_response(row, context, parameters)
        log_request(context, response, DEACTIVATE_PAYMENT_LINK_ENDPOINT)
        return response


def build_link_response(row: PaymentLink, context: RequestContext, parameters: Parameters) -> Response:
    """The link as it stands."""
    ignored = render_ignored_parameters(parameters)
    shown = render_payment_link(row, payment_links.count_link_use(row))
    return Response(build_envelope(LINK_OK_CODE, context.trace.ndc, **shown, **ignored), headers=context.headers)


def render_payment_link(row: PaymentLink, use: LinkUse | None = None) -> dict[str, Any]:
    """A link as the API shows it. ``use``: None for a new one."""
    count, amount = (use.count, format_amount(use.amount)) if use is not None else (0, "0.00")
    link: dict[str, Any] = {"reusable": "false" if row.max_payments == 1 else "true"}
    if row.max_payments is not None and row.max_payments != 1:
        link["maxPayments"] = str(row.max_payments)
    if row.min_amount is not None and row.max_amount is not None:
        link |= {
            "openAmount": "true",
            "minAmount": format_amount(row.min_amount),
            "maxAmount": format_amount(row.max_amount),
        }
    if row.description:
        link["description"] = row.description
    if row.expires_at is not None:
        link["expiresAt"] = f"{row.expires_at:%Y-%m-%d %H:%M:%S}"
    return {
        "id": row.public_id,
        "url": payment_links.build_payment_link_url(row),
        "state": payment_links.resolve_link_state(row, count),
        **nest_link_parameters(row.request),
        "link": link,
        "paidCount": count,
        "paidAmount": amount,
        "createdAt": clock.format_timestamp(row.created_at),
    }


def nest_link_parameters(values: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of a link's payments as nested JSON for the echo, without private ones."""
    entries = []
    for name, value in values.items():
        found = CREATE_PAYMENT_LINK_ENDPOINT.catalogue.find(name)
        if found is not None and not found[0].param.private:
            row, indexes, key = found
            entries.append((row.path, indexes, key, value))
    return nest_entries(entries)

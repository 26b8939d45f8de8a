"""Endpoints of the test environment for a developer's machine: webhooks to be fetched, and the request log.

The command line reads them (`tollhouse listen`, `tollhouse logs tail`): the gateway cannot call a laptop. In live they
do not exist (404). Source: docs/decisions/0081.
"""

from __future__ import annotations

from typing import ClassVar, Final

from rest_framework.request import Request
from rest_framework.response import Response

from gateway.access.audit_log import Actor
from gateway.api.envelope import build_envelope
from gateway.api.sandbox import SandboxView
from gateway.catalogue.endpoints import (
    OPEN_INSPECTOR_ENDPOINT,
    READ_REQUESTS_ENDPOINT,
    READ_WEBHOOKS_ENDPOINT,
    Endpoint,
)
from gateway.catalogue.parse import InvalidParametersError, ParameterError
from gateway.core import clock
from gateway.models import InspectedWebhook, RequestLog, WebhookEndpoint
from gateway.models.webhooks import INSPECTOR_URL_PREFIX
from gateway.notifications import claims
from gateway.notifications.endpoints import InvalidEndpointError, open_inspector
from gateway.payments.responses import render_ignored_parameters

MAX_KEPT_WEBHOOKS: Final = 50
"""Messages in one answer."""
MAX_LISTED_REQUESTS: Final = 100
"""Requests in one answer."""
_POLLED_PATHS: Final = ("/v1/test/webhooks", "/v1/test/requests")


class WebhooksView(SandboxView):
    """POST /v1/test/webhooks opens the inspector; GET reads what it has kept."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"POST": OPEN_INSPECTOR_ENDPOINT, "GET": READ_WEBHOOKS_ENDPOINT}

    def post(self, request: Request) -> Response:
        context = self.admit_request(request)
        admission = context.admission
        parameters = self.parse(context, admission.channel)
        mode = parameters.get("mode") or WebhookEndpoint.Mode.SIGNED
        actor = Actor(name=f"access token {admission.token.hex}", ip=context.trace.ip)
        try:
            row = open_inspector(admission.merchant, admission.channel, mode, by=actor)
        except InvalidEndpointError as fault:
            raise InvalidParametersError([ParameterError(name="entityId", message=str(fault))]) from None
        keys = claims.unseal_signing_keys(row.pk, row.secret_sealed, None)
        if keys is None:
            raise InvalidParametersError(
                [ParameterError(name="mode", message="the inspector's secret cannot be opened")]
            )
        newest = InspectedWebhook.objects.filter(endpoint=row).order_by("-id").values_list("pk", flat=True).first()
        body = build_envelope(
            "000.000.100",
            context.trace.ndc,
            mode=mode,
            state=row.state,
            secret=keys.current.reveal().hex(),
            newest=newest or 0,
            **render_ignored_parameters(parameters),
        )
        return Response(body, headers=context.headers)

    def get(self, request: Request) -> Response:
        context = self.admit_request(request)
        admission = context.admission
        parameters = self.parse(context, admission.channel)
        mine = InspectedWebhook.objects.filter(
            endpoint__merchant=admission.merchant,
            endpoint__channel=admission.channel,
            endpoint__mode=parameters.get("mode") or WebhookEndpoint.Mode.SIGNED,
            endpoint__url=INSPECTOR_URL_PREFIX,
        )
        if (after := parameters.get("after")) is not None:
            rows = list(mine.filter(pk__gt=int(after)).order_by("id")[:MAX_KEPT_WEBHOOKS])
        else:
            rows = list(mine.order_by("-id")[:MAX_KEPT_WEBHOOKS])[::-1]
        webhooks = [
            {"number": one.pk, "at": clock.format_timestamp(one.at), "headers": one.headers, "body": one.body}
            for one in rows
        ]
        ignored_names = render_ignored_parameters(parameters)
        body = build_envelope("000.000.100", context.trace.ndc, webhooks=webhooks, **ignored_names)
        return Response(body, headers=context.headers)


class RequestsView(SandboxView):
    """GET /v1/test/requests: the newest requests of an entity."""

    endpoints: ClassVar[dict[str, Endpoint]] = {"GET": READ_REQUESTS_ENDPOINT}

    def get(self, request: Request) -> Response:
        context = self.admit_request(request)
        ignored_names = render_ignored_parameters(self.parse(context, context.admission.channel))
        rows = RequestLog.objects.filter(entity_id=context.admission.entity).exclude(path__in=_POLLED_PATHS)
        requests = [
            {
                "ndc": one.ndc,
                "at": clock.format_timestamp(one.at),
                "method": one.method,
                "path": one.path,
                "status": one.status,
                "resultCode": one.result_code,
                "durationMs": one.duration_ms,
                **({"payment": one.payment.hex} if one.payment else {}),
            }
            for one in rows.order_by("-id")[:MAX_LISTED_REQUESTS]
        ]
        body = build_envelope("000.000.100", context.trace.ndc, requests=requests, **ignored_names)
        return Response(body, headers=context.headers)

"""POST /connectors/alerts/<provider>: an alert or inquiry, signed by its provider (docs/chargebacks.md)."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from chargebacks.alert_intake import (
    ALERT_SIGNATURE_HEADER,
    MAX_ALERT_BYTES,
    AlertFieldError,
    AlertSignatureError,
    receive_alert,
)
from chargebacks.alerts import AlertNotPossibleError
from gateway.core import clock

_TOO_LARGE: Final = f"the body is larger than {MAX_ALERT_BYTES:,} bytes"


@csrf_exempt
def receive_provider_alert(request: HttpRequest, provider: str) -> JsonResponse:
    """201 for a new alert, 200 for one that is there, with its present state; 400 for a wrong field, 401 for a wrong
    signature, 404 for an unknown provider, 409 for a payment that can have no alert."""
    if request.method != "POST":
        return _answer(405, {"error": "send alerts by POST"}, Allow="POST")
    try:
        body = request.read(MAX_ALERT_BYTES + 1)
    except Exception:
        # The web server raises many kinds of exceptions for a closed connection.
        return _answer(400, {"error": "the body could not be read"})
    if len(body) > MAX_ALERT_BYTES:
        return _answer(413, {"error": _TOO_LARGE})
    try:
        alert, made = receive_alert(provider, request.headers.get(ALERT_SIGNATURE_HEADER, ""), body)
    except KeyError:
        return _answer(404, {"error": "there is no such provider"})
    except AlertSignatureError as fault:
        return _answer(401, {"error": str(fault)})
    except AlertFieldError as fault:
        return _answer(400, {"error": fault.why, "field": f"{fault.field[:1].lower()}{fault.field[1:]}"})
    except AlertNotPossibleError as fault:
        return _answer(409, {"error": str(fault)})
    found: dict[str, Any] = {
        "id": alert.pk.hex,
        "kind": alert.kind,
        "state": alert.state,
        "answerBy": clock.format_timestamp(alert.due_at),
    }
    if alert.refund is not None:
        found["refundId"] = alert.refund.hex
    return _answer(201 if made else 200, found)


def _answer(status: int, content: dict[str, Any], **headers: str) -> JsonResponse:
    answer = JsonResponse(content, status=status, headers=headers)
    answer["Cache-Control"] = "no-store"
    return answer

"""POST /connectors/stripe/<account>: a processor's webhook. It is acknowledged once the event is stored; processing
follows by a timer."""

from __future__ import annotations

from typing import Final
from uuid import UUID

import structlog
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from gateway.connectors.card_api.connector import CARD_API
from gateway.connectors.card_api.webhook_signature import SIGNATURE_HEADER
from gateway.models import AcquirerAccount
from gateway.processor_events.intake import MAX_EVENT_BYTES, UnacceptableEventError, receive_event
from gateway.vault.sealing import VaultError

log = structlog.get_logger(__name__)
_TOO_LARGE: Final = f"the body is larger than {MAX_EVENT_BYTES:,} bytes"


@csrf_exempt
def receive_card_api_event(request: HttpRequest, account: UUID) -> JsonResponse:
    """200 for an event that is stored, was stored before, or is not handled; 400 for an invalid signature or body; 503
    while the account's secrets do not open, so that the processor retries."""
    if request.method != "POST":
        return _answer(405, "send events by POST", Allow="POST")
    row = AcquirerAccount.objects.filter(pk=account, connector=CARD_API.name).first()
    if row is None:
        return _answer(404, "there is no such account")
    announced = request.META.get("CONTENT_LENGTH") or "0"
    if announced.isdecimal() and int(announced) > MAX_EVENT_BYTES:
        return _answer(413, _TOO_LARGE)
    try:
        body = request.read(MAX_EVENT_BYTES + 1)
    except Exception:
        # The web server raises many kinds of exceptions for a closed connection.
        return _answer(400, "the body could not be read")
    if len(body) > MAX_EVENT_BYTES:
        return _answer(413, _TOO_LARGE)
    try:
        receive_event(row, request.headers.get(SIGNATURE_HEADER, ""), body)
    except UnacceptableEventError as fault:
        return _answer(400, str(fault))
    except VaultError as fault:
        log.error("acquirer_secrets_unreadable", account=row.id.hex, why=str(fault))
        return _answer(503, "try again later")
    return _answer(200)


def _answer(status: int, error: str = "", **headers: str) -> JsonResponse:
    answer = JsonResponse({"error": error} if error else {"received": True}, status=status, headers=headers)
    answer["Cache-Control"] = "no-store"
    return answer

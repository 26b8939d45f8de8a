"""POST /connectors/threeds/results: the result of a challenge (RReq) from an external 3DS server.

Signed with the channel's shared secret (docs/connectors/threeds-server.md). It is applied before it is answered, and a
repeated one changes nothing.
"""

from __future__ import annotations

import re
import time
from typing import Any, Final

import structlog
from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from gateway.core import identifiers
from gateway.core.peer_json import parse_peer_json
from gateway.models import Authentication, Payment
from gateway.payments import shopper_return
from gateway.threeds import server
from gateway.threeds.external_server import THREEDS_SIGNATURE_HEADER, is_signed_by_server
from gateway.threeds.server_setup import open_threeds_server

MAX_RESULT_BYTES: Final = 65_536
_TRANS_ID: Final = re.compile(rb'"threeDSServerTransID"[ \t\r\n]{0,20}:[ \t\r\n]{0,20}"([0-9A-Fa-f-]{32,36})"')

log = structlog.get_logger(__name__)


@csrf_exempt
def receive_threeds_result(request: HttpRequest) -> JsonResponse:
    """200 with the RRes; 400 with Erro for what is no valid RReq; 401 for an unknown authentication or a wrong
    signature, which look the same. The body is decoded once its signature fits: before that it is only searched for
    the authentication whose server signs."""
    if request.method != "POST":
        return JsonResponse({"error": "send results by POST"}, status=405, headers={"Allow": "POST"})
    try:
        body = request.read(MAX_RESULT_BYTES + 1)
    except Exception:
        # The web server raises many kinds of exceptions for a closed connection.
        return _build_result_error("101", "the body could not be read")
    row = _find_authentication(body) if len(body) <= MAX_RESULT_BYTES else None
    access = open_threeds_server(server.load_threeds_configuration(row.channel)) if row is not None else None
    header = request.headers.get(THREEDS_SIGNATURE_HEADER, "")
    if row is None or access is None or not is_signed_by_server(access.secret, body, header, time.time()):
        return JsonResponse({"error": "the signature does not fit"}, status=401)
    rreq = _parse_rreq(body)
    if rreq is None or identifiers.parse_id(str(rreq.get("threeDSServerTransID")).replace("-", "")) != row.id:
        return _build_result_error("101", "no message of the type RReq")
    outcome = server.apply_server_result(row.id, rreq)
    if outcome is None:
        return _build_result_error("203", "transStatus, acsTransID, authenticationValue or a length")
    if row.payment is not None:
        payment = Payment.objects.select_related("merchant", "channel").get(pk=row.payment)
        shopper_return.apply_authentication_outcome(payment, outcome, None)
    names = ("messageVersion", "threeDSServerTransID", "acsTransID", "dsTransID")
    kept = {name: rreq[name] for name in names if isinstance(rreq.get(name), str)}
    return JsonResponse({"messageType": "RRes", "resultsStatus": "01"} | kept, headers={"Cache-Control": "no-store"})


def _parse_rreq(body: bytes) -> dict[str, Any] | None:
    try:
        found = parse_peer_json(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) and found.get("messageType") == "RReq" else None


def _find_authentication(body: bytes) -> Authentication | None:
    """The authentication that the body names first."""
    named = _TRANS_ID.search(body)
    known = identifiers.parse_id(named[1].decode().replace("-", "")) if named else None
    if known is None:
        return None
    rows = Authentication.objects.exclude(server_url="").select_related("merchant", "channel")
    return rows.filter(pk=known).first()


def _build_result_error(code: str, detail: str) -> JsonResponse:
    erro = {"messageType": "Erro", "errorCode": code, "errorComponent": "S", "errorDetail": detail}
    return JsonResponse(erro, status=400, headers={"Cache-Control": "no-store"})

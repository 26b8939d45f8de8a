"""Client of an external 3DS server: JSON over HTTPS, signed, under the outbound guard.

Three calls: versioning (is the card enrolled, which protocol versions, method page), authenticate (AReq → ARes) and
result (RReq of a challenge, if its callback was lost). The contract is docs/connectors/threeds-server.md.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from django.conf import settings

from gateway.core.peer_json import parse_peer_json
from gateway.core.secret import RedactedDict, Secret, SecretBytes, reveal_text
from gateway.outbound import call_url
from gateway.threeds.server_setup import ThreeDSServerAccess
from gateway.threeds_protocol.messages import (
    BROWSER_CHANNEL,
    REQUESTOR_CHANNEL,
    CardRange,
    ThreeDSMessage,
    needs_authentication_value,
)
from gateway.threeds_protocol.required_fields import find_areq_faults

THREEDS_SIGNATURE_HEADER: Final = "Tollhouse-Signature"
THREEDS_SIGNATURE_TOLERANCE_S: Final = 300
"""Maximum age of a signature, and clock difference: a recorded message is useless after that."""
MAX_THREEDS_ANSWER_BYTES: Final = 262_144
MAX_THREEDS_TRIES: Final = 2
"""Tries of a call within its deadline; the server knows a repeated one by its Idempotency-Key."""
SUPPORTED_VERSIONS: Final = ("2.2.0", "2.1.0")
"""Protocol versions that this gateway writes, newest first."""
ARES_STATUSES: Final = frozenset("YANURCDI")
_SIGNATURE: Final = re.compile("t=([0-9]{1,12}),v1=([0-9a-f]{64})")
_SERVER_FIELDS: Final = ("threeDSServerRefNumber", "threeDSServerOperatorID", "threeDSServerURL")


class DirectoryUnreachableError(Exception):
    """The directory server did not answer in time, or not in its protocol."""


class MalformedDirectoryAnswerError(DirectoryUnreachableError):
    """The directory server answered, and not by its protocol, or with an error message (Erro)."""


class IncompleteAReqError(Exception):
    """Required data elements are missing or wrong: the request was not sent. ``faults``: (errorCode, element)."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        super().__init__(", ".join(f"{code} {name}" for code, name in faults))
        self.faults = tuple(faults)


def sign_threeds_message(secret: Secret, body: bytes | SecretBytes, at: int) -> str:
    """The signature header: HMAC-SHA256 of ``<seconds>.<body>`` under the shared secret."""
    mac = hmac.new(secret.reveal().encode(), str(at).encode() + b".", hashlib.sha256)
    mac.update(body.reveal() if isinstance(body, SecretBytes) else body)
    return f"t={at},v1={mac.hexdigest()}"


def is_signed_by_server(secret: Secret, body: bytes, header: str, now: float) -> bool:
    """Whether the server signed this body within the tolerance. Constant time."""
    found = _SIGNATURE.fullmatch(header)
    if found is None or abs(now - int(found[1])) > THREEDS_SIGNATURE_TOLERANCE_S:
        return False
    return hmac.compare_digest(sign_threeds_message(secret, body, int(found[1])), header)


class ExternalThreeDSServer:
    """One external 3DS server. Every call has one deadline and is tried again once if no answer came."""

    name = "external"

    def __init__(self, access: ThreeDSServerAccess) -> None:
        self._access = access
        self.url = access.url

    def look_up(self, number: Secret, steering: Mapping[str, str], ident: UUID) -> tuple[str, CardRange | None]:
        """The versioning call. ``steering`` is for the simulator only."""
        sent = {"threeDSServerTransID": str(ident), "acctNumber": number}
        found = self._call("/v1/versioning", sent, f"{ident}-versioning")
        if found.get("enrolled") is False:
            return "", None
        lowest, highest = found.get("acsStartProtocolVersion"), found.get("acsEndProtocolVersion")
        server = {name: found[name] for name in _SERVER_FIELDS if found.get(name) is not None}
        method = found.get("threeDSMethodURL") or ""
        if (
            found.get("enrolled") is not True
            or not isinstance(lowest, str)
            or not isinstance(highest, str)
            or not all(isinstance(text, str) for text in server.values())
            or (method and not _is_page(method))
        ):
            raise MalformedDirectoryAnswerError("the versioning answer is not as agreed")
        version = next((one for one in SUPPORTED_VERSIONS if lowest <= one <= highest), None)
        if version is None:
            return "", None
        return "", CardRange(version=version, method=bool(method), method_url=method, server=server)

    def authenticate(self, areq: ThreeDSMessage, scenario: str, network: str) -> ThreeDSMessage:
        """Send an AReq that is complete. ``scenario`` is for the simulator only."""
        if faults := find_areq_faults(areq):
            raise IncompleteAReqError(faults)
        ident = str(areq["threeDSServerTransID"])
        found = self._call("/v1/authentications", areq, f"{ident}-authentication")
        if (
            found.get("messageType") != "ARes"
            or found.get("threeDSServerTransID") != ident
            or found.get("transStatus") not in ARES_STATUSES
            or not _is_text(found, "dsTransID", "acsTransID", most=36)
            or not _is_text(found, "transStatusReason", "eci", most=2)
            or not _is_text(found, "authenticationValue", most=64)
            or (
                needs_authentication_value(areq["messageCategory"], found["transStatus"])
                and not found.get("authenticationValue")
            )
            or (found["transStatus"] == "C" and not _is_challenge(found, areq["deviceChannel"]))
            or (found["transStatus"] == "D" and areq.get("threeDSRequestorDecReqInd") != "Y")
        ):
            raise MalformedDirectoryAnswerError("the ARes is not as agreed")
        return found

    def fetch_result(self, ident: UUID) -> ThreeDSMessage | None:
        """The RReq of a challenge; None while there is none."""
        found = self._call("/v1/results", {"threeDSServerTransID": str(ident)}, f"{ident}-result-{time.time_ns()}")
        return found if found.get("messageType") == "RReq" else None

    def _call(self, path: str, message: Mapping[str, Any], key: str) -> dict[str, Any]:
        body = SecretBytes(json.dumps(_reveal_message(message), separators=(",", ":")).encode())
        deadline = time.monotonic() + settings.GATEWAY_ACQUIRER_TIMEOUT_S
        why = "no time was left"
        for _ in range(MAX_THREEDS_TRIES):
            left = deadline - time.monotonic()
            if left <= 0:
                break
            outcome = call_url(
                "POST",
                f"{self.url}{path}",
                headers={
                    "Content-Type": "application/json",
                    "Accept": "application/json",
                    "Idempotency-Key": key,
                    THREEDS_SIGNATURE_HEADER: sign_threeds_message(self._access.secret, body, int(time.time())),
                },
                body=body,
                timeout_s=left,
                max_bytes=MAX_THREEDS_ANSWER_BYTES,
            )
            if outcome.is_success and not outcome.truncated:
                return _parse_answer(outcome.body)
            why = f"HTTP {outcome.status}" if outcome.status is not None else f"{outcome.failure}: {outcome.reason}"
            if outcome.status is not None and outcome.status < 500:
                raise MalformedDirectoryAnswerError(why)
        raise DirectoryUnreachableError(why)


def _reveal_message(message: Mapping[str, Any]) -> RedactedDict:
    """The message with its secrets in clear, of which a traceback shows the names alone."""
    return RedactedDict({name: reveal_text(value) for name, value in message.items()})


def _parse_answer(body: bytes) -> dict[str, Any]:
    try:
        found = parse_peer_json(body)
    except ValueError:
        raise MalformedDirectoryAnswerError("the answer is no JSON") from None
    if not isinstance(found, dict):
        raise MalformedDirectoryAnswerError("the answer is no object")
    if found.get("messageType") == "Erro":
        raise MalformedDirectoryAnswerError(f"Erro {str(found.get('errorCode', ''))[:3]}")
    return found


def _is_challenge(ares: Mapping[str, Any], device_channel: str) -> bool:
    """Whether an ARes has what the challenge of this device channel takes. There is none in 3RI. Source: EMV 3-D Secure
    v2.2.0, table A.1, Transaction Status; not read in the original."""
    if device_channel == REQUESTOR_CHANNEL or not ares.get("acsTransID"):
        return False
    return device_channel != BROWSER_CHANNEL or _is_page(ares.get("acsURL"))


def _is_page(url: Any) -> bool:
    """An address that a shopper's browser may be sent to."""
    return isinstance(url, str) and re.fullmatch(r"https?://[!-~]{1,2040}", url) is not None and '"' not in url


def _is_text(message: Mapping[str, Any], *names: str, most: int) -> bool:
    return all(isinstance(message.get(name, ""), str) and len(message.get(name, "")) <= most for name in names)

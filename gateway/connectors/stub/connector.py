"""Connector to the stub acquirer: messages mapped in pure functions, sent over pooled connections.

Source: Part A, What the service does, 5 (testMode=EXTERNAL); rulings D18, D28.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from django.conf import settings

from gateway.connectors.acquirer_message import (
    ONE_TIME_SECRETS,
    external_success_code,
    mask_means_account,
    mask_request,
    parse_scheme_reference,
)
from gateway.connectors.capabilities import SENDS_EVERYTHING
from gateway.connectors.circuit import ACQUIRER_UNREACHABLE
from gateway.connectors.means import ANY_MEANS
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ConnectorSetting,
    NotFoundAtAcquirer,
    OutcomeUnknownError,
)
from gateway.connectors.simulator.cards import SIMULATED_SUCCESS
from gateway.connectors.stub.connections import StubConnectionPool, StubUnansweredError, StubUnreachableError
from gateway.core import result_codes
from gateway.core.money import Money
from gateway.core.secret import RedactedDict

_TOLD: Final = (
    "outcome", "code", "response", "transactionId", "networkReference", "approvedAmount", "avs", "cvv", "advice",
)  # fmt: skip
_LONGEST: Final = 64


class StubConnector:
    """Calls the process at GATEWAY_STUB_ACQUIRER."""

    name = "stub"
    operations = frozenset({"RG", "PA", "DB", "CD", "CP", "RF", "RV", "RB", "RC", "CB", "CR"})
    takes = ANY_MEANS
    required: frozenset[str] = frozenset()
    sends = SENDS_EVERYTHING
    redirects = False
    settings: tuple[ConnectorSetting, ...] = ()
    asks_with_means = False

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        """Send a payment. Without a connection it is declined as retryable elsewhere; any other failure is
        OutcomeUnknownError."""
        sent = mask_submission(request)
        try:
            answer = get_stub_connections().ask(build_submission(request, sent))
        except StubUnreachableError as fault:
            return AcquirerReply(
                code=ACQUIRER_UNREACHABLE, sent=sent, received={"unreachable": str(fault)}, retryable_elsewhere=True
            )
        except StubUnansweredError as fault:
            raise OutcomeUnknownError(str(fault), sent) from None
        return reply_from_stub_answer(request, answer, sent)

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        """Ask for a payment's outcome."""
        sent, answer = _ask("inquire", request)
        if answer.get("outcome") == "unknown":
            return NotFoundAtAcquirer(sent=sent, received=_known_fields(answer))
        return reply_from_stub_answer(request, answer, sent)

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        """Void a payment."""
        sent, answer = _ask("void", request)
        if answer.get("outcome") != "voided":
            raise OutcomeUnknownError("the acquirer does not take it back", sent)
        return reply_from_stub_answer(request, answer, sent)


STUB: Final = StubConnector()


def build_submission(request: AcquirerRequest, masked: Mapping[str, Any]) -> RedactedDict:
    """The message: the masked one with the account, its one-time secrets and the cryptogram in clear."""
    means, message = request.means, RedactedDict(masked)
    if request.cryptogram is not None:
        message["threeDSecure"] = RedactedDict(masked["threeDSecure"], verificationId=request.cryptogram.reveal())
    if means is not None:
        secrets = dict.fromkeys(mask_means_account(means), means.account)
        secrets |= {name: secret for name in ONE_TIME_SECRETS if (secret := getattr(means, name, None)) is not None}
        message[means.kind] = RedactedDict(masked[means.kind])
        for name, secret in secrets.items():
            message[means.kind][name] = secret.reveal()
    return message


def mask_submission(request: AcquirerRequest) -> dict[str, Any]:
    """The message for the stored exchange."""
    body = mask_request(request)
    del body["transaction"]
    message = {"kind": "submit", "key": request.attempt_key, **body}
    return message | ({"merchant": request.account.merchant} if request.account.merchant else {})


def reply_from_stub_answer(
    request: AcquirerRequest, answer: Mapping[str, Any], sent: Mapping[str, Any]
) -> AcquirerReply:
    """Map an answer to a reply. Raises OutcomeUnknownError if it is invalid, or grants more than was requested."""
    fields = _known_fields(answer)
    outcome, code = fields.get("outcome"), fields.get("code", "")
    if outcome not in ("approved", "declined", "voided") or code not in result_codes.RESULT_CODES:
        raise OutcomeUnknownError("the acquirer's answer makes no sense", sent)
    granted = _approved_amount(request, fields, sent) if outcome == "approved" else None
    works = result_codes.is_approved(code) or (result_codes.is_chargeback(code) and request.operation == "CB")
    if works is not (granted is not None):
        raise OutcomeUnknownError("the acquirer's answer contradicts itself", sent)
    details = {"AcquirerResponse": fields.get("response", ""), "MerchantAdviceCode": fields.get("advice", "")}
    return AcquirerReply(
        code=external_success_code() if code == SIMULATED_SUCCESS else code,
        approved=granted,
        connector_tx_id=fields.get("transactionId", ""),
        network_reference=parse_scheme_reference(fields.get("networkReference", "")),
        details={name: value for name, value in details.items() if value},
        avs=fields.get("avs", ""),
        cvv=fields.get("cvv", ""),
        sent=sent,
        received=fields,
    )


def get_stub_connections() -> StubConnectionPool:
    """This process's pool for the configured acquirer."""
    return _connection_pool(
        settings.GATEWAY_STUB_ACQUIRER, settings.GATEWAY_ACQUIRER_MAX_ON_LINE, settings.GATEWAY_ACQUIRER_TIMEOUT_S
    )


@lru_cache(maxsize=4)
def _connection_pool(address: str, most: int, timeout_s: float) -> StubConnectionPool:
    return StubConnectionPool(address, most=most, timeout_s=timeout_s)


# A forked process must not use its parent's connections.
os.register_at_fork(after_in_child=_connection_pool.cache_clear)


def _ask(kind: str, request: AcquirerRequest) -> tuple[dict[str, Any], dict[str, Any]]:
    sent = {"kind": kind, "key": request.attempt_key}
    try:
        return sent, get_stub_connections().ask(sent)
    except (StubUnreachableError, StubUnansweredError) as fault:
        raise OutcomeUnknownError(str(fault), sent) from None


def _known_fields(answer: Mapping[str, Any]) -> dict[str, str]:
    """The known fields of an answer that are short texts; others are dropped."""
    return {name: value for name in _TOLD if isinstance(value := answer.get(name), str) and 0 < len(value) <= _LONGEST}


def _approved_amount(request: AcquirerRequest, fields: Mapping[str, str], sent: Mapping[str, Any]) -> Money:
    try:
        granted = Money.parse(fields.get("approvedAmount", ""), request.money.currency)
    except ValueError:
        raise OutcomeUnknownError("the acquirer approved no amount", sent) from None
    if granted > request.money:
        raise OutcomeUnknownError("the acquirer approved more than was asked for", sent)
    return granted

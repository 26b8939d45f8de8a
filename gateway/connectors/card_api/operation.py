"""What the steps of one question share: request, account and calls; and how a call's outcome becomes a reply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.connectors.card_api import mapping, result_mapping
from gateway.connectors.card_api.account import CardApiSetup
from gateway.connectors.card_api.transport import CallVerdict, CardApiResponse, CardApiSession, FormFields
from gateway.connectors.circuit import ACQUIRER_UNREACHABLE
from gateway.connectors.port import AcquirerReply, AcquirerRequest, OutcomeUnknownError

INTENT_PAYMENT_TYPES: Final = frozenset({"RG", "PA", "DB", "RB"})
"""Payment types that make an intent of their own."""
INTENTS_PATH: Final = "/v1/payment_intents"
SETUPS_PATH: Final = "/v1/setup_intents"
REFUNDS_PATH: Final = "/v1/refunds"
HTTP_TOO_MANY_REQUESTS: Final = 429


@dataclass(frozen=True, slots=True, kw_only=True)
class CardApiOperation:
    """One request to the processor. ``talk`` ends all its calls at one deadline."""

    request: AcquirerRequest
    setup: CardApiSetup
    session: CardApiSession

    @property
    def makes_intent(self) -> bool:
        return self.request.operation in INTENT_PAYMENT_TYPES

    @property
    def collection_path(self) -> str:
        """Where its own object lies."""
        return SETUPS_PATH if mapping.is_verification(self.request) else INTENTS_PATH

    def key(self, step: str = "") -> str:
        """The idempotency key: our payment's id and its type, and the step where there are several."""
        return "-".join(filter(None, (self.request.payment.hex, self.request.operation, step)))

    def post(self, path: str, fields: FormFields, step: str = "") -> tuple[CardApiResponse, dict[str, Any]]:
        """What came back, and what was sent as exchanges keep it."""
        key = self.key(step)
        sent: dict[str, Any] = {"post": path, "form": mapping.mask_form(fields)}
        if self.setup.full:
            sent["idempotencyKey"] = key
        return self.session.post(path, fields, key), sent


def summarize_response(heard: CardApiResponse) -> dict[str, Any]:
    """What is kept of an answer."""
    kept: dict[str, Any] = {"http": heard.status} if heard.status else {}
    if heard.error:
        return kept | mapping.summarize_error(heard.error)
    return kept | (mapping.summarize_object(heard.body) if heard.body else {"fault": heard.why})


def reply_from_failure(
    question: CardApiOperation, heard: CardApiResponse, sent: Mapping[str, Any], *, moves_money: bool = True
) -> AcquirerReply:
    """The reply to anything but DONE. Raises OutcomeUnknownError for what may have been accepted; what ``moves`` no
    money cannot.

    Another acquirer may be asked where nobody judged a first payment.
    """
    operation, error = question.request.operation, heard.error
    kept = summarize_response(heard)
    if heard.kind in (CallVerdict.DECLINED, CallVerdict.REFUSED):
        made = error.get("payment_intent") or error.get("setup_intent")
        ident = mapping.parse_object_id(made.get("id")) if isinstance(made, dict) else ""
        word = kept.get("decline_code") or kept.get("code") or kept.get("type", "")
        advice = error.get("network_advice_code")
        details = {"AcquirerResponse": str(word)}
        if isinstance(advice, str) and len(advice) == 2 and advice.isdecimal():
            details["MerchantAdviceCode"] = advice
        charge = mapping.parse_charge(made) if isinstance(made, dict) else mapping.ChargeDetails()
        return AcquirerReply(
            code=mapping.result_code_from_error(error, operation),
            connector_tx_id=ident,
            avs=charge.avs,
            cvv=charge.cvv,
            details={name: value for name, value in details.items() if value},
            sent=sent,
            received=kept,
        )
    if moves_money and heard.kind in (CallVerdict.UNCLEAR, CallVerdict.TAKEN):
        raise OutcomeUnknownError(f"the processor's answer is not clear: {heard.why}", sent)
    shut = heard.kind is CallVerdict.SHUT and heard.status != HTTP_TOO_MANY_REQUESTS
    return AcquirerReply(
        code=result_mapping.UNLISTED_ERROR if shut else ACQUIRER_UNREACHABLE,
        sent=sent,
        received=kept,
        retryable_elsewhere=question.makes_intent,
    )

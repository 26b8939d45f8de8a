"""The context of one operation (request, account, session), and the mapping of failed calls to replies."""

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
    """One request to the processor. All calls of its ``session`` share one deadline."""

    request: AcquirerRequest
    setup: CardApiSetup
    session: CardApiSession

    @property
    def makes_intent(self) -> bool:
        """True if the payment type makes an intent of its own."""
        return self.request.operation in INTENT_PAYMENT_TYPES

    @property
    def collection_path(self) -> str:
        """Path of its own object's collection."""
        return SETUPS_PATH if mapping.is_verification(self.request) else INTENTS_PATH

    def key(self, step: str = "") -> str:
        """The idempotency key: payment id, attempt and type, and the step where there are several."""
        return "-".join(filter(None, (self.request.attempt_key, self.request.operation, step)))

    def post(self, path: str, fields: FormFields, step: str = "") -> tuple[CardApiResponse, dict[str, Any]]:
        """POST a form. Returns the response, and the masked form for the stored exchange."""
        key = self.key(step)
        sent: dict[str, Any] = {"post": path, "form": mapping.mask_form(fields)}
        if self.setup.full:
            sent["idempotencyKey"] = key
        return self.session.post(path, fields, key), sent


def summarize_response(response: CardApiResponse) -> dict[str, Any]:
    """A response for storage."""
    kept: dict[str, Any] = {"http": response.status} if response.status else {}
    if response.error:
        return kept | mapping.summarize_error(response.error)
    return kept | (mapping.summarize_object(response.body) if response.body else {"fault": response.why})


def reply_from_failure(
    question: CardApiOperation, response: CardApiResponse, sent: Mapping[str, Any], *, moves_money: bool = True
) -> AcquirerReply:
    """Map anything but DONE to a reply. Raises OutcomeUnknownError if it may have been accepted, unless it
    ``moves_money`` False.

    A first payment that was not judged is retryable elsewhere.
    """
    operation, error = question.request.operation, response.error
    kept = summarize_response(response)
    if response.kind in (CallVerdict.DECLINED, CallVerdict.REFUSED):
        made = error.get("payment_intent") or error.get("setup_intent")
        ident = mapping.parse_object_id(made.get("id")) if isinstance(made, dict) else ""
        word = kept.get("decline_code") or kept.get("code") or kept.get("type", "")
        details = {"AcquirerResponse": str(word), "MerchantAdviceCode": mapping.parse_advice_code(error)}
        charge = mapping.parse_charge(made) if isinstance(made, dict) else mapping.ChargeDetails()
        return AcquirerReply(
            code=mapping.result_code_from_error(error, operation),
            connector_tx_id=ident,
            avs=charge.avs,
            cvv=charge.cvv,
            details={name: value for name, value in details.items() if value},
            sent=sent,
            received=kept,
            has_own_advice=mapping.has_own_advice(error),
        )
    if moves_money and response.kind in (CallVerdict.UNCLEAR, CallVerdict.TAKEN):
        raise OutcomeUnknownError(f"the processor's answer is not clear: {response.why}", sent)
    shut = response.kind is CallVerdict.SHUT and response.status != HTTP_TOO_MANY_REQUESTS
    return AcquirerReply(
        code=result_mapping.UNLISTED_ERROR if shut else ACQUIRER_UNREACHABLE,
        sent=sent,
        received=kept,
        retryable_elsewhere=question.makes_intent,
    )

"""The card API connector: dispatches payment types to their calls.

Source: Part A, What the service does, 5 (testMode=EXTERNAL); docs/connectors/card-api.md; decision 0034.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from gateway.catalogue.conditions.request_facts import MAIL_OR_TELEPHONE
from gateway.connectors.account_settings import AccountSettingError
from gateway.connectors.capabilities import SentParameter
from gateway.connectors.card_api import authorize, client, follow_up, inquiry, result_mapping
from gateway.connectors.card_api.account import (
    CARD_API_SETTINGS,
    check_card_api_settings,
    parse_card_api_setup,
)
from gateway.connectors.card_api.mapping import UnsupportedRequestError, parse_object_id
from gateway.connectors.card_api.operation import INTENT_PAYMENT_TYPES, CardApiOperation
from gateway.connectors.card_api.transport import CardApiSession
from gateway.connectors.means import Card
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ConnectorAccount,
    ConnectorSetting,
    NotFoundAtAcquirer,
    OutcomeUnknownError,
)

CHARGEBACKS_NOT_OFFERED: Final = "700.400.402"
REFERENCE_NOT_AT_PROCESSOR: Final = "600.200.500"
CARD_API_PARAMETERS: Final[tuple[SentParameter, ...]] = (
    SentParameter(
        name="transactionCategory",
        values=MAIL_OR_TELEPHONE,
        operations=INTENT_PAYMENT_TYPES,
        place="payment_method_options[card][moto]",
    ),
)
_VERBS: Final[Mapping[str, Callable[[CardApiOperation], AcquirerReply]]] = {
    **dict.fromkeys(INTENT_PAYMENT_TYPES, authorize.authorize_payment),
    "CP": follow_up.capture_intent,
    "RF": follow_up.refund_charge,
    "RV": follow_up.reverse_intent,
}
_NOT_OFFERED: Final[Mapping[str, str]] = {"CB": CHARGEBACKS_NOT_OFFERED, "CR": CHARGEBACKS_NOT_OFFERED}
"""Disputes come from the processor by webhook; they cannot be created here."""


class CardApiConnector:
    """Calls the processor that the account names."""

    name = "stripe"
    operations = frozenset(_VERBS)
    takes = frozenset({"", Card.kind})
    required: frozenset[str] = frozenset()
    sends = CARD_API_PARAMETERS
    redirects = False
    settings: tuple[ConnectorSetting, ...] = CARD_API_SETTINGS
    asks_with_means = False

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        """Send a payment. What the account or processor does not allow is declined unsent; a first payment may then be
        retryable elsewhere."""
        verb = _VERBS.get(request.operation)
        if verb is None:
            return AcquirerReply(code=_NOT_OFFERED.get(request.operation, result_mapping.PAYMENT_TYPE_NOT_OFFERED))
        if request.operation == "PA" and request.reference:
            # Not every account may increase or renew an authorization.
            return AcquirerReply(code=result_mapping.PAYMENT_TYPE_NOT_OFFERED)
        if request.operation not in INTENT_PAYMENT_TYPES and not parse_object_id(request.reference):
            return AcquirerReply(code=REFERENCE_NOT_AT_PROCESSOR)
        sent = {"operation": request.operation, "account": request.account.merchant}
        try:
            return verb(_build_operation(request))
        except AccountSettingError as fault:
            return _decline_unsent(request, result_mapping.UNLISTED_ERROR, sent, {"unusable": str(fault)})
        except UnsupportedRequestError as fault:
            return _decline_unsent(request, fault.code, sent, {"unfit": str(fault)})

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        """Find the payment by our mark on the processor's objects; nothing is sent again."""
        try:
            return inquiry.inquire_payment(_build_operation(request))
        except (AccountSettingError, UnsupportedRequestError) as fault:
            raise OutcomeUnknownError(str(fault), {"lookFor": request.payment.hex}) from None

    def faults_of(self, settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """Errors in an account's settings taken together: (setting, reason)."""
        return check_card_api_settings(settings)

    def owns_transaction(self, account: ConnectorAccount, connector_tx_id: str) -> bool | None:
        """Only the account that made an object can read it, with any of its keys of the same mode."""
        return client.owns_object(account, connector_tx_id)

    def claims_exemption(self, exemption: str, brand: str) -> bool:
        """None: the vendor takes an exemption beside a cryptogram only."""
        return False

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        """Cancel, or refund what was captured; repeatable."""
        try:
            return inquiry.void_payment(_build_operation(request))
        except (AccountSettingError, UnsupportedRequestError) as fault:
            raise OutcomeUnknownError(str(fault), {"takeBack": request.payment.hex}) from None


CARD_API: Final = CardApiConnector()


def _decline_unsent(
    request: AcquirerRequest, code: str, sent: Mapping[str, str], received: Mapping[str, str]
) -> AcquirerReply:
    return AcquirerReply(
        code=code,
        sent=sent,
        received=received,
        retryable_elsewhere=request.operation in INTENT_PAYMENT_TYPES,
        not_sent=True,
    )


def _build_operation(request: AcquirerRequest) -> CardApiOperation:
    setup = parse_card_api_setup(request.account)
    return CardApiOperation(request=request, setup=setup, session=CardApiSession(setup))

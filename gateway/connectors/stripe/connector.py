"""The connector of the card API: which verb answers which payment type.

Source: Part A, What the service does, 5 (testMode=EXTERNAL); docs/connectors/card-api.md; decision 0034.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from gateway.connectors.means import Card
from gateway.connectors.port import Account, AcquirerReply, AcquirerRequest, NeverArrived, Setting, Silence
from gateway.connectors.stripe import asking, first, following, looking, table
from gateway.connectors.stripe.account import SETTINGS, Unusable, faults_of, setup_of
from gateway.connectors.stripe.mapping import Unfit, text_of
from gateway.connectors.stripe.question import FIRST, Question
from gateway.connectors.stripe.wire import Talk

NO_CHARGEBACKS: Final = "700.400.402"
NOWHERE: Final = "600.200.500"
_VERBS: Final[Mapping[str, Callable[[Question], AcquirerReply]]] = {
    **dict.fromkeys(FIRST, first.pay),
    "CP": following.capture,
    "RF": following.refund,
    "RV": following.reverse,
}
_NOT_OFFERED: Final[Mapping[str, str]] = {"CB": NO_CHARGEBACKS, "CR": NO_CHARGEBACKS}
"""Disputes come from the processor, by its webhooks; nobody makes one here."""


class CardApi:
    """Asks the processor that the account names."""

    name = "stripe"
    operations = frozenset(_VERBS)
    takes = frozenset({"", Card.kind})
    required: frozenset[str] = frozenset()
    redirects = False
    settings: tuple[Setting, ...] = SETTINGS
    asks_with_means = False

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        """What the account or the processor does not allow is declined before anything is sent; another acquirer may be
        able to take a first payment."""
        verb = _VERBS.get(request.operation)
        if verb is None:
            return AcquirerReply(code=_NOT_OFFERED.get(request.operation, table.NOT_OFFERED))
        if request.operation == "PA" and request.reference:
            # Raising or renewing an authorization is not what every account may do.
            return AcquirerReply(code=table.NOT_OFFERED)
        if request.operation not in FIRST and not text_of(request.reference):
            return AcquirerReply(code=NOWHERE)
        sent = {"operation": request.operation, "account": request.account.merchant}
        try:
            return verb(_question(request))
        except Unusable as fault:
            return _unsent(request, table.ERROR, sent, {"unusable": str(fault)})
        except Unfit as fault:
            return _unsent(request, fault.code, sent, {"unfit": str(fault)})

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NeverArrived:
        """By the payment's own mark on the processor's objects; nothing is sent a second time."""
        try:
            return looking.inquire(_question(request))
        except (Unusable, Unfit) as fault:
            raise Silence(str(fault), {"lookFor": request.payment.hex}) from None

    def faults_of(self, settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """What is wrong with an account's settings taken together: (setting, why)."""
        return faults_of(settings)

    def sees(self, account: Account, connector_tx_id: str) -> bool | None:
        """An object is known to the account that made it alone, and to its other keys of the same mode."""
        return asking.sees(account, connector_tx_id)

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        """Cancel, or give back what was taken; repeatable."""
        try:
            return looking.take_back(_question(request))
        except (Unusable, Unfit) as fault:
            raise Silence(str(fault), {"takeBack": request.payment.hex}) from None


CARD_API: Final = CardApi()


def _unsent(request: AcquirerRequest, code: str, sent: Mapping[str, str], received: Mapping[str, str]) -> AcquirerReply:
    return AcquirerReply(
        code=code, sent=sent, received=received, elsewhere=request.operation in FIRST, unsent=True
    )  # fmt: skip


def _question(request: AcquirerRequest) -> Question:
    setup = setup_of(request.account)
    return Question(request=request, setup=setup, talk=Talk(setup))

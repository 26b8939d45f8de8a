"""The simulator behind the connector port: INTERNAL payments end here, with no network at all.

What it answers is data (cards.py). It takes the same three phases as any acquirer.
Source: Part A, What the service does, 5; rulings D18 and section 5.
"""

from __future__ import annotations

from typing import Any, Final

from gateway import results
from gateway.connectors.message import masked_message
from gateway.connectors.port import AcquirerReply, AcquirerRequest, NeverArrived, Silence
from gateway.connectors.simulator.cards import APPROVED, SimulatedAnswer, answer_for
from gateway.money import Money

UNKNOWN_OUTCOME: Final = "silence"
NO_REASON: Final = "000.100.200"
REVERSED: Final = "900.100.301"


class Simulator:
    """Answers at once and keeps nothing: the same question always gets the same answer."""

    name = "simulator"
    operations = frozenset({"PA", "DB", "CD", "CP", "RF", "RV", "RB", "RC", "CB", "CR"})
    required: frozenset[str] = frozenset()

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        sent = masked_message(request)
        if request.operation == "CB":
            reason = request.parameters.get("chargebackResultCode", NO_REASON)
            return _reply(request, sent, code=reason, approved=request.money, response="00")
        if request.card is None:
            return _reply(request, sent, code=APPROVED, approved=request.money, response="00")
        answer = _answer(request)
        if answer.behaviour == UNKNOWN_OUTCOME:
            raise Silence("the simulated acquirer gave no answer", sent)
        return _reply(
            request, sent, code=answer.code, approved=answer.approved, response=answer.acquirer_response,
            advice=answer.merchant_advice_code or "", avs=answer.avs or "", cvv=answer.cvv or "",
        )  # fmt: skip

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NeverArrived:
        """It keeps nothing, so it knows of nothing."""
        return NeverArrived(sent={"inquiry": request.payment.hex}, received={"outcome": "unknown"})

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        return AcquirerReply(code=REVERSED, sent={"void": request.payment.hex}, received={"outcome": "voided"})


SIMULATOR: Final = Simulator()


def _answer(request: AcquirerRequest) -> SimulatedAnswer:
    assert request.card is not None
    cvv = request.card.cvv
    return answer_for(
        request.card.number.reveal(),
        cvv=cvv.reveal() if cvv is not None else None,
        postcode=request.parameters.get("billing.postcode"),
        amount=request.money,
        authenticated="threeDSecure.verificationId" in request.parameters,
    )


def _reply(
    request: AcquirerRequest, sent: dict[str, Any], *, code: str, approved: Money | None, response: str,
    advice: str = "", avs: str = "", cvv: str = "",
) -> AcquirerReply:  # fmt: skip
    details = {"AcquirerResponse": response}
    if advice:
        details["MerchantAdviceCode"] = advice
    # The scheme's reference of the cardholder's transaction; a later merchant-initiated payment names it (D38).
    transaction = f"SIM{request.payment.hex[-20:].upper()}"
    granted = approved if results.is_approved(code) or results.is_chargeback(code) else None
    received: dict[str, Any] = {"responseCode": response, "transactionId": transaction}
    if granted is not None:
        received["approvedAmount"] = granted.text()
    received |= {name: value for name, value in (("avs", avs), ("cvv", cvv), ("advice", advice)) if value}
    return AcquirerReply(
        code=code, approved=granted, connector_tx_id=transaction, details=details, avs=avs, cvv=cvv, sent=sent,
        received=received,
    )  # fmt: skip

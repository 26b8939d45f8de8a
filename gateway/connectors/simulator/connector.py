"""The simulator's connector: answers INTERNAL payments in this process, without a network.

The answers are data (cards.py, issuers.py, accounts.py); where a shopper or a bank has to decide first, orders.py
stores an order. Payments go through the same three phases as at any acquirer. Source: Part A, What the service does, 5
and 6; ruling D18.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from gateway.connectors.acquirer_message import mask_request
from gateway.connectors.capabilities import SENDS_EVERYTHING
from gateway.connectors.means import ANY_MEANS, Card, TokenAccount
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ConnectorSetting,
    NotFoundAtAcquirer,
    OutcomeUnknownError,
)
from gateway.connectors.simulator import orders
from gateway.connectors.simulator.accounts import CONFIRMED_LATER, clear_account_from_means, simulate_account_answer
from gateway.connectors.simulator.cards import (
    SIMULATED_SUCCESS,
    SimulatedAnswer,
    build_network_reference,
    simulate_card_answer,
)
from gateway.connectors.simulator.issuers import (
    IssuerAnswer,
    IssuerQuestion,
    find_simulated_issuer,
    simulate_issuer_answer,
)
from gateway.connectors.simulator.token_service import find_token_decline, find_tokenized_card
from gateway.core import result_codes
from gateway.core.money import Money
from gateway.core.result_codes import CHARGEBACK_WITHOUT_REASON, TIMEOUT_REVERSED_CODE
from gateway.core.secret import Secret
from gateway.models import SimulatedOrder

UNKNOWN_OUTCOME: Final = "silence"
ISSUER_OPERATIONS: Final = frozenset({"RG", "PA", "DB", "RB"})
"""Payment types that ask a simulated issuer."""


class SimulatorConnector:
    """Answers at once and, apart from orders, without state: the same request always gets the same answer."""

    name = "simulator"
    operations = frozenset({"RG", "PA", "DB", "CD", "CP", "RF", "RV", "RB", "RC", "CB", "CR"})
    takes = ANY_MEANS
    required: frozenset[str] = frozenset()
    sends = SENDS_EVERYTHING
    redirects = True
    settings: tuple[ConnectorSetting, ...] = ()
    asks_with_means = False
    answers_at_once = True

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        """Answer by the tables, or open an order."""
        sent = mask_request(request)
        if request.operation == "CB":
            reason = request.parameters.get("chargebackResultCode", CHARGEBACK_WITHOUT_REASON)
            return _reply(request, sent, code=reason, approved=request.money, response="00")
        if request.operation == "RG" and request.card is None:
            return _stored(request, sent)
        if not request.reference and request.brand in orders.ORDER_KIND_BY_BRAND:
            return _order(
                request, orders.open_simulated_order(request, orders.ORDER_KIND_BY_BRAND[request.brand]), sent
            )
        if isinstance(request.means, TokenAccount):
            return _from_token(request, request.means, sent)
        if request.means is not None and request.card is None:
            return _from_account(request, sent)
        if request.card is None:
            return _reply(request, sent, code=SIMULATED_SUCCESS, approved=request.money, response="00")
        return _from_card(request, sent)

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        """Outcome of an order; NotFoundAtAcquirer for anything else."""
        sent = {"inquiry": request.payment.hex}
        order = orders.find_simulated_order(request.payment) if orders.may_have_order(request) else None
        if order is None:
            return NotFoundAtAcquirer(sent=sent, received={"outcome": "unknown"})
        return _order(request, order, sent)

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        """Void an order, which can no longer be approved then. Raises OutcomeUnknownError if it was approved before."""
        sent = {"void": request.payment.hex}
        if not orders.may_have_order(request):
            return AcquirerReply(code=TIMEOUT_REVERSED_CODE, sent=sent, received={"outcome": "voided"})
        order = orders.void_simulated_order(request)
        if order.state == SimulatedOrder.State.APPROVED:
            raise OutcomeUnknownError("the order was approved and is not taken back", sent)
        return _order(request, order, sent)


SIMULATOR: Final = SimulatorConnector()


def _from_card(request: AcquirerRequest, sent: dict[str, Any], *, token: bool = False) -> AcquirerReply:
    """The answer for a card. ``token``: its network token was sent instead of its number."""
    answer = _answer(request, token=token)
    if answer.behaviour == UNKNOWN_OUTCOME:
        raise OutcomeUnknownError("the simulated acquirer gave no answer", sent)
    return _reply(
        request,
        sent,
        code=answer.code,
        approved=answer.approved,
        response=answer.acquirer_response,
        advice=answer.merchant_advice_code or "",
        avs=answer.avs or "",
        cvv=answer.cvv or "",
    )


def _from_token(request: AcquirerRequest, token: TokenAccount, sent: dict[str, Any]) -> AcquirerReply:
    """The answer for a network token: its card's, where it is one of the simulated token service."""
    account = clear_account_from_means(token)
    found = find_tokenized_card(account.account)
    if found is None:
        return _from_account(request, sent)
    refused = find_token_decline(found, account, request.payment.hex, f"{request.at:%Y-%m}")
    if refused is not None and not request.reference:
        return _reply(request, sent, code=refused[0], approved=None, response=refused[1])
    if not found.number:
        return _reply(request, sent, code=SIMULATED_SUCCESS, approved=request.money, response="00")
    card = Card(
        number=Secret(found.number), expiry_month=token.expiry_month, expiry_year=token.expiry_year, cvv=token.dtvc
    )
    # The point of service stays that of the token.
    return _from_card(replace(request, means=card, original=request.point_of_service), sent, token=True)


def _from_account(request: AcquirerRequest, sent: dict[str, Any]) -> AcquirerReply:
    """The answer for a means other than a card."""
    assert request.means is not None
    answer = simulate_account_answer(
        clear_account_from_means(request.means), request.money, month=f"{request.at:%Y-%m}"
    )
    if answer.behaviour == UNKNOWN_OUTCOME:
        raise OutcomeUnknownError("the simulated acquirer gave no answer", sent)
    if answer.code == CONFIRMED_LATER and not request.reference:
        return _order(request, orders.open_simulated_order(request, orders.DEBIT_ORDER), sent)
    approved = answer.approved or (request.money if answer.code == CONFIRMED_LATER else None)
    code = SIMULATED_SUCCESS if answer.code == CONFIRMED_LATER else answer.code
    return _reply(request, sent, code=code, approved=approved, response=answer.response)


def _stored(request: AcquirerRequest, sent: dict[str, Any]) -> AcquirerReply:
    """The answer for storing an account: a later confirmation, or the shopper's decision, applies when it pays."""
    code, response = SIMULATED_SUCCESS, "00"
    if request.means is not None:
        answer = simulate_account_answer(
            clear_account_from_means(request.means), request.money, month=f"{request.at:%Y-%m}"
        )
        if not result_codes.is_approved(answer.code) and answer.code != CONFIRMED_LATER:
            code, response = answer.code, answer.response
    return _reply(request, sent, code=code, approved=request.money, response=response)


def _order(request: AcquirerRequest, order: SimulatedOrder, sent: dict[str, Any]) -> AcquirerReply:
    """The present reply of an order: pending with a redirect, or decided."""
    code = orders.SIMULATED_ORDER_KINDS[order.kind].code(order.state)
    reply = _reply(request, sent, code=code, approved=Money(order.amount, order.currency), response=order.state)
    received = {**reply.received, **orders.describe_simulated_order(order)}
    open_ = order.state == SimulatedOrder.State.OPEN
    redirect = orders.build_order_redirect(order) if open_ else None
    return replace(reply, facts=orders.build_order_facts(order), redirect=redirect, received=received)


def _ask_issuer(request: AcquirerRequest, *, token: bool) -> IssuerAnswer | None:
    """What the simulated issuer of the card answers; None for any other card, and for what asks no issuer."""
    number = request.card.number.reveal() if request.card is not None else ""
    issuer = find_simulated_issuer(number)
    if issuer is None or request.operation not in ISSUER_OPERATIONS:
        return None
    service = request.point_of_service
    question = IssuerQuestion(
        number=number,
        amount=request.money.amount,
        at=request.at,
        authenticated=request.cryptogram is not None,
        merchant_initiated=service.merchant_initiated or bool(service.order),
        exemption=service.exemption,
        token=token,
    )
    return simulate_issuer_answer(issuer, question)


def _answer(request: AcquirerRequest, *, token: bool) -> SimulatedAnswer:
    assert request.card is not None
    return simulate_card_answer(
        request.card.number,
        cvv=request.card.cvv,
        postcode=request.parameters.get("billing.postcode"),
        amount=request.money,
        authenticated=request.cryptogram is not None,
        issuer=_ask_issuer(request, token=token),
    )


def _reply(
    request: AcquirerRequest,
    sent: dict[str, Any],
    *,
    code: str,
    approved: Money | None,
    response: str,
    advice: str = "",
    avs: str = "",
    cvv: str = "",
) -> AcquirerReply:
    details = {"AcquirerResponse": response}
    if advice:
        details["MerchantAdviceCode"] = advice
    transaction = f"SIM{request.payment.hex[-20:].upper()}"
    granted = approved if result_codes.is_approved(code) or result_codes.is_chargeback(code) else None
    received: dict[str, Any] = {"responseCode": response, "transactionId": transaction}
    if granted is not None:
        received["approvedAmount"] = granted.text()
        received["networkReference"] = build_network_reference(request.payment.hex)
    received |= {name: value for name, value in (("avs", avs), ("cvv", cvv), ("advice", advice)) if value}
    return AcquirerReply(
        code=code,
        approved=granted,
        connector_tx_id=transaction,
        network_reference=received.get("networkReference", ""),
        details=details,
        avs=avs,
        cvv=cvv,
        sent=sent,
        received=received,
    )

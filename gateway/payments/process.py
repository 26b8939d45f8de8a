"""The straight line of a payment: begin → screen → authenticate → submit → complete.

Every door (the API, and later checkouts, jobs, the back office) builds a request and calls ``process``.
"""

from __future__ import annotations

import time
from typing import Final

from gateway import brands, clock, metrics, results
from gateway.connectors.message import onwards
from gateway.connectors.port import AcquirerReply, AcquirerRequest, Connector, Silence
from gateway.connectors.routing import NoRoute, route
from gateway.masking import mask_text
from gateway.models import Payment, Status
from gateway.payments import refusal, store
from gateway.payments.request import Asker, PaymentRequest
from gateway.payments.states import Event, ImpossibleMove
from gateway.vault import vault

IN_DOUBT_CODE: Final = "000.200.001"
SENT_TWICE: Final = "800.110.100"


def process(request: PaymentRequest) -> Payment:
    """Make one first payment and return it as it then stands.

    Raises Refused when none is made: a means or mode that is not set up.
    """
    try:
        way = route(request.test_mode, request.channel.id, brand=request.brand, currency=request.money.currency)
    except NoRoute:
        raise refusal.Refused(refusal.MODE_NOT_SET_UP) from None
    payment = new_payment(request, way.connector)
    refused = request.parameters.refusals
    code = refused[0].code if refused else ""
    try:
        store.begin(payment, trace=request.trace, refusal=code, idempotency=request.idempotency)
    except store.Duplicate:
        payment.duplicate_guard = None
        store.begin(payment, trace=request.trace, refusal=SENT_TWICE, idempotency=request.idempotency)
    if payment.status == Status.STARTED:
        submit(payment, way.connector, acquirer_request(request, way.account), request)
    return payment


def new_payment(request: PaymentRequest, connector: Connector) -> Payment:
    """The row of a first payment. The card is sealed only when it will be used: a refused one keeps no number."""
    parameters, card = request.parameters, request.card
    sealed = fingerprint = None
    answer: dict[str, object] = {}
    if card is not None:
        number = card.number.reveal()
        answer["card"] = {"bin": number[:6], "last4Digits": number[-4:]}
        fingerprint = vault().fingerprint(number)
        if not parameters.refusals:
            sealed = vault().seal(card.number, request.payment)
    if request.detected:
        answer["brandResult"] = request.brand
    return Payment(
        id=request.payment,
        merchant_id=request.merchant.id,
        channel_id=request.channel.id,
        chain=request.payment,
        referenced=None,
        payment_type=request.payment_type,
        brand=request.brand,
        method=brands.BRANDS[request.brand].method,
        amount=request.money.amount,
        currency=request.money.currency,
        test_mode=request.test_mode,
        merchant_transaction_id=parameters.get("merchantTransactionId") or "",
        duplicate_guard=parameters.get("merchantTransactionId") if request.channel.refuse_duplicates else None,
        merchant_invoice_id=parameters.get("merchantInvoiceId") or "",
        merchant_memo=parameters.get("merchantMemo") or "",
        request=parameters.echo(),
        answer=answer,
        card_sealed=sealed,
        card_fingerprint=fingerprint,
        connector=connector.name,
        max_captures=int(captures) if (captures := parameters.get("numberOfCaptures")) else None,
        final=parameters.get("sequence") == "FINAL",
        request_id=request.trace.request,
        created_at=request.now,
    )


def acquirer_request(request: PaymentRequest, account: str = "") -> AcquirerRequest:
    return AcquirerRequest(
        payment=request.payment,
        operation=request.payment_type,
        money=request.money,
        brand=request.brand,
        at=request.now,
        card=request.card,
        parameters=onwards(request.parameters.values),
        account=account,
    )


def submit(payment: Payment, connector: Connector, question: AcquirerRequest, asker: Asker) -> None:
    """Ask the connector, with no transaction open, and complete the payment by its answer or its silence."""
    started = time.perf_counter()
    try:
        reply = connector.submit(question)
    except Silence as silence:
        reply = AcquirerReply(code=IN_DOUBT_CODE, sent=silence.sent, received={"silence": mask_text(str(silence))})
        event = Event.LOSE
    else:
        event = event_of(reply)
    took = time.perf_counter() - started
    metrics.asked(connector.name, event, took)
    _finish(payment, event, reply, asker, duration_ms=int(took * 1000))


def _finish(payment: Payment, event: Event, reply: AcquirerReply, asker: Asker, *, duration_ms: int) -> None:
    """Complete the payment. If recovery was faster, what it found out is the truth; while it still asks, this is."""
    now = clock.now(asker.merchant)
    for _ in range(2):
        try:
            store.complete(
                payment, event, reply, at=now, duration_ms=duration_ms, trace=asker.trace, idempotency=asker.idempotency
            )
        except ImpossibleMove:
            payment.refresh_from_db()
        else:
            return
    store.keep(payment, "submit", reply.sent, reply.received, at=now, duration_ms=duration_ms, trace=asker.trace)


def event_of(reply: AcquirerReply) -> Event:
    """What an acquirer's answer does to a payment, by the family of its code."""
    if results.is_approved(reply.code) or (results.is_chargeback(reply.code) and reply.approved is not None):
        return Event.APPROVE
    return Event.SUSPEND if results.is_pending(reply.code) else Event.DECLINE

"""Records follow-ups that happened at the acquirer: chargebacks, their reversals, refunds and captures made there.

They come from settlement files, bank statements, processor webhooks and clerks. The money has moved already, so no
acquirer is called, and types that the live API refuses (CB, CR) are allowed. The operation table is the same as for the
API, but for the ceiling of a chargeback: issuers charge back what was refunded, and at their own exchange rates.
Begin and complete are one statement. Source: decisions, sections 4 and 8; docs/decisions/0065.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from uuid import UUID

from gateway.connectors.port import AcquirerReply
from gateway.core import clock, identifiers
from gateway.core.money import format_amount
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE
from gateway.db.statement import WriteStatement
from gateway.models import Merchant, Payment
from gateway.payments import store
from gateway.payments.chain_amounts import Chain
from gateway.payments.follow_ups import (
    GATEWAY_FOLLOW_UP_PARAMETERS,
    MAX_FOLLOW_UP_TRIES,
    FollowUpRequest,
    build_follow_up,
    decide_follow_up,
    load_chain,
)
from gateway.payments.operation_table import OPERATIONS
from gateway.payments.payment_request import RequestTrace
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.stored_answer import PrivateFacts, ReportedDispute

ExtraWrites = Callable[[WriteStatement, Payment], None]
ChainInspector = Callable[[Chain], None]


def record_acquirer_reported_follow_up(
    kind: str,
    target: UUID,
    merchant: Merchant,
    amount: Decimal,
    currency: str,
    reply: AcquirerReply,
    *,
    origin: str,
    reason: str = "",
    dispute: ReportedDispute | None = None,
    look: ChainInspector | None = None,
    extra_writes: ExtraWrites | None = None,
) -> Payment:
    """Record a follow-up of type ``kind`` (CB, CR, RF, RV, CP) on ``target`` and return its payment, APPROVED by
    ``reply``.

    ``origin``: where it comes from, for the request log. ``reason``: the chargeback's result code. ``dispute``:
    what a processor said of it, for the chargeback's case. ``look``: called with the chain before each decision, and
    may raise; a chain that changed is read and passed again. ``extra_writes``: adds rows of the caller to the same
    statement. Raises RequestRefusedError with the code of the operation table, and
    InvalidParametersError; then nothing was written.
    """
    now = clock.merchant_now(merchant)
    pairs = [("paymentType", kind), ("amount", format_amount(amount)), ("currency", currency)]
    if reason:
        pairs.append(("chargebackResultCode", reason))
    parameters = GATEWAY_FOLLOW_UP_PARAMETERS.parse(pairs)
    request = FollowUpRequest(
        payment=identifiers.row_id(),
        target=target,
        merchant=merchant,
        channel=None,
        parameters=parameters,
        now=now,
        trace=RequestTrace(method="ENTER", path=origin),
    )
    operation = OPERATIONS[kind]
    for _ in range(MAX_FOLLOW_UP_TRIES):
        chain = load_chain(target, merchant, None)
        followed = chain.find(target) if chain is not None else None
        if chain is None or followed is None:
            raise RequestRefusedError(operation.unknown, status=404)
        if look is not None:
            look(chain)
        decision = decide_follow_up(operation, chain, followed, parameters, at=now, reported=True)
        if decision.code:
            raise RequestRefusedError(decision.code)
        row = build_follow_up(operation, followed, decision, request)
        row.answer = row.answer | PrivateFacts(dispute=dispute).as_json()
        trace = replace(request.trace, entity=row.channel_id)
        if store.insert_acquirer_reported_payment(
            row, reply, parent=chain.first, trace=trace, extra_writes=extra_writes
        ):
            return row
    raise RequestRefusedError(CONCURRENT_UPDATE_CODE)

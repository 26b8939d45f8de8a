"""Follow-ups that an acquirer has told of: chargebacks and their reversals, out of settlement files and by hand.

The money has moved already, so nobody is asked, and the door that the API finds closed in live is open: the decision is
the same table, the ceilings are the same, and beginning and end are one statement. Source: decisions, section 4, 8.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from gateway import clock, identifiers
from gateway.catalogue import structures
from gateway.catalogue.endpoints import FOLLOW_UP
from gateway.catalogue.parse import Catalogue
from gateway.connectors.port import AcquirerReply
from gateway.models import Merchant, Payment
from gateway.money import amount_text
from gateway.payments import store
from gateway.payments.chain import Chain
from gateway.payments.follow_up import BUSY, MAX_TRIES, FollowUpRequest, decided, new_follow_up, read_chain
from gateway.payments.operations import OPERATIONS
from gateway.payments.refusal import Refused
from gateway.payments.request import Trace
from gateway.rows import Write

Alongside = Callable[[Write, Payment], None]
Look = Callable[[Chain], None]

_ENTERED: Final = Catalogue(FOLLOW_UP.structures[1:], FOLLOW_UP.rules, elsewhere=structures.KNOWN_STRUCTURES)
"""What a follow-up by API takes, without the entity: whoever enters one has found the payment already."""


def enter(
    kind: str,
    target: UUID,
    merchant: Merchant,
    amount: Decimal,
    currency: str,
    reply: AcquirerReply,
    *,
    origin: str,
    reason: str = "",
    at: datetime | None = None,
    look: Look | None = None,
    alongside: Alongside | None = None,
) -> Payment:
    """Enter a ``kind`` (CB, CR) that follows ``target`` and return its payment, approved by ``reply``.

    ``origin``: where it comes from, for the request log. ``look``: is shown the chain that the decision is made on, and
    may raise; whatever begins in that chain afterwards makes it be read, and shown, again. ``alongside``: what the door
    writes in the same statement. ``at``: the merchant's clock. Raises Refused with the code of the table, and Invalid;
    then nothing was written.
    """
    now = at or clock.now(merchant)
    pairs = [("paymentType", kind), ("amount", amount_text(amount)), ("currency", currency)]
    if reason:
        pairs.append(("chargebackResultCode", reason))
    parameters = _ENTERED.parse(pairs)
    request = FollowUpRequest(
        payment=identifiers.row_id(), target=target, merchant=merchant, channel=None, parameters=parameters, now=now,
        trace=Trace(request=identifiers.row_id(), method="ENTER", path=origin, at=clock.real()),
    )  # fmt: skip
    operation = OPERATIONS[kind]
    for _ in range(MAX_TRIES):
        chain = read_chain(target, merchant, None)
        found = chain.find(target) if chain is not None else None
        if chain is None or found is None:
            raise Refused(operation.unknown, status=404)
        if look is not None:
            look(chain)
        decision = decided(operation, chain, found, parameters)
        if decision.code:
            raise Refused(decision.code)
        row = new_follow_up(operation, found, decision, request)
        trace = replace(request.trace, entity=row.channel_id)
        if store.record_told(row, reply, raising=chain.first, trace=trace, alongside=alongside):
            return row
    raise Refused(BUSY)

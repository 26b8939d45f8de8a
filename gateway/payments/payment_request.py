"""A request on its way down the corridor: what every door builds before it calls ``process``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from gateway.catalogue.parse import Parameters
from gateway.connectors.means import Means
from gateway.core import identifiers
from gateway.core.money import Money
from gateway.db.statement import WriteStatement
from gateway.models import Channel, Merchant, Payment
from gateway.payments.agreements import AgreementUse
from gateway.payments.idempotency import IdempotencyClaim
from gateway.wallets.channel_tokens import WalletTokenUse


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTrace:
    """Where a request came from: one row of the request log. ``started`` is a monotonic clock's reading, seconds."""

    request: UUID
    method: str
    path: str
    at: datetime
    ip: str | None = None
    entity: UUID | None = None
    token: UUID | None = None
    started: float = field(default_factory=time.perf_counter)

    @property
    def ndc(self) -> str:
        return identifiers.format_ndc(self.request, self.entity.hex if self.entity else "")

    def log_row(self, status: int, code: str, *, payment: UUID | None = None, parameters: Any = None) -> dict[str, Any]:
        """The columns of this request's RequestLog row."""
        return {
            "id": self.request,
            "at": self.at,
            "method": self.method[:8],
            "path": self.path[:200].replace("\0", "�"),
            "status": status,
            "result_code": code,
            "entity_id": self.entity,
            "token": self.token,
            "ip": self.ip,
            "duration_ms": int((time.perf_counter() - self.started) * 1000),
            "payment": payment,
            "parameters": parameters,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyContext:
    """A claimed key, and how the door answers a payment: (HTTP status, JSON text), stored with the key."""

    claim: IdempotencyClaim
    respond: Callable[[Payment], tuple[int, str]]


class RequestOrigin(Protocol):
    """Any request: its merchant, whose clock counts, where it came from (None: a tick), and the idempotency key it
    claims."""

    @property
    def merchant(self) -> Merchant: ...
    @property
    def trace(self) -> RequestTrace | None: ...
    @property
    def idempotency(self) -> IdempotencyContext | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentRequest:
    """A first payment: who, what, how much, with which means. Follow-ups are built in gateway.payments.follow_ups.

    ``registration``: the stored means that is used, ``stored`` what is no secret of it. ``wallet_token``: the wallet's
    token that the means came out of. ``standing``: the agreement it is made under. ``resource_path``: where the
    merchant fetches the result, when not under /v1/payments. ``alongside``: what the door writes in the statement that
    begins the payment; with a guard in it that no longer holds, there is no payment (Overtaken). ``held``: the door
    holds its row's lock for the beginning, so that what it writes needs no guard. ``repeats``: the same
    merchantTransactionId comes again on purpose.
    """

    payment: UUID
    merchant: Merchant
    channel: Channel
    payment_type: str
    money: Money
    brand: str
    detected: bool
    means: Means | None
    parameters: Parameters
    test_mode: str
    now: datetime
    trace: RequestTrace
    idempotency: IdempotencyContext | None = None
    registration: UUID | None = None
    wallet_token: WalletTokenUse | None = None
    stored: Mapping[str, Any] = field(default_factory=dict)
    agreement_use: AgreementUse | None = None
    resource_path: str = ""
    extra_writes: Callable[[WriteStatement], None] | None = None
    row_locked: bool = False
    allow_duplicate: bool = False

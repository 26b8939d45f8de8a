"""The request types of the payment line: what each caller builds before gateway.payments.process.process_payment."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from gateway.catalogue.parse import Parameters
from gateway.connectors.means import Means
from gateway.core import clock, identifiers
from gateway.core.money import Money
from gateway.db.statement import WriteStatement
from gateway.models import Channel, Merchant, Payment
from gateway.payments.agreements import AgreementUse
from gateway.payments.idempotency import IdempotencyClaim
from gateway.payments.responses import RenderedResponse, ResponseFormat, render_stored_response
from gateway.wallets.channel_tokens import WalletTokenUse


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTrace:
    """The origin of a request, for one RequestLog row. ``at``: real time. ``started``: time.perf_counter()."""

    method: str
    path: str
    request: UUID = field(default_factory=identifiers.row_id)
    at: datetime = field(default_factory=lambda: clock.real_now())
    ip: str | None = None
    entity: UUID | None = None
    token: UUID | None = None
    started: float = field(default_factory=time.perf_counter)

    @property
    def ndc(self) -> str:
        """The id of the request in responses and logs (ruling D13)."""
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


@dataclass(slots=True, kw_only=True)
class IdempotencyContext:
    """The idempotency key of a request. ``format``: what its response is rendered from; None for a clerk's form, whose
    page is rendered anew each time. ``stored``: the response, once the statement that stores it is written."""

    claim: IdempotencyClaim
    format: ResponseFormat | None = None
    stored: RenderedResponse | None = None

    def render_response(self, payment: Payment) -> RenderedResponse:
        """The response of ``payment``, to be stored with it."""
        if self.format is None:
            return RenderedResponse(status=200, text="")
        return render_stored_response(payment, self.format)


class RequestOrigin(Protocol):
    """What completing a payment needs from its request. ``merchant``: whose clock counts. ``trace`` is None when a
    timer, not an HTTP call, is the caller."""

    @property
    def merchant(self) -> Merchant: ...
    @property
    def trace(self) -> RequestTrace | None: ...
    @property
    def idempotency(self) -> IdempotencyContext | None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PartCollection:
    """That an approval in part of the payment is held until the rest is paid with other means. ``until``: the end of
    its checkout; ``earlier``: ids of the payments that hold parts already. ``takes_part``: False for the last that may
    be tried, which has to be approved in full."""

    until: datetime
    earlier: tuple[UUID, ...] = ()
    takes_part: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentRequest:
    """A first payment as process_payment takes it. Follow-ups have gateway.payments.follow_ups.FollowUpRequest.

    - ``payment``: the id it will have.
    - ``detected``: the brand was detected from the card number.
    - ``registration``: the stored means used.
    - ``stored``: its public details.
    - ``wallet_token``: the wallet token the means was decrypted from.
    - ``renews_card``: the card's expiry date is not the stored one; an approval stores it.
    - ``agreement_use``: the agreement it is made under.
    - ``resource_path``: where the merchant fetches the result, if not under /v1/payments.
    - ``extra_writes``: adds the caller's rows to the statement that begins the payment; a version check in them that
      fails means no payment (ConcurrentPaymentUpdateError).
    - ``row_locked``: the caller has locked its own row, so ``extra_writes`` need no version check.
    - ``allow_duplicate``: do not refuse a repeated merchantTransactionId.
    - ``collection``: what becomes of an approval in part; None: as the channel has it for payments outside of forms.
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
    renews_card: bool = False
    agreement_use: AgreementUse | None = None
    resource_path: str = ""
    extra_writes: Callable[[WriteStatement], None] | None = None
    row_locked: bool = False
    allow_duplicate: bool = False
    collection: PartCollection | None = None

"""Bulkhead and circuit breaker per acquirer account and process, wrapped around every acquirer connector.

A payment that finds the account full or its breaker open is not sent; the reply is ``retryable_elsewhere``. If an
account answers fast, a payment waits a moment for room, so that a burst declines nothing. It does not wait for a slow
one, which would hold the threads that other accounts need. Inquiries and voids are never blocked, since a payment in
doubt has to be settled; their results are counted. Breaker transitions are written to BreakerChange rows. Source:
docs/routing.md.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

import structlog
from django.conf import settings

from gateway import metrics
from gateway.connectors.circuit_breaker import (
    BREAKER_STATE_LEVEL,
    BreakerLimits,
    BreakerState,
    BreakerTransition,
    CircuitBreaker,
)
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    Connector,
    ConnectorAccount,
    NotFoundAtAcquirer,
    NotFoundYetError,
    OutcomeUnknownError,
    RequestTooLateError,
    VoidRefusedError,
)
from gateway.core import clock
from gateway.core.masking import mask_text
from gateway.db.sessions import pause_work
from gateway.models import BreakerChange

ACQUIRER_UNREACHABLE: Final = "900.100.600"
"""The request could not be delivered to the acquirer."""
FAST_ANSWER_S: Final = 0.25
"""An account whose average answer is at most this fast is waited for when it is full, for this long at most."""
_NEWEST_ANSWER_WEIGHT: Final = 0.2
"""Weight of the newest answer in the moving average."""
BREAKER_CHANGE_RETENTION: Final = timedelta(days=7)
"""How long BreakerChange rows are kept."""
MAX_UNKNOWN_PAYMENTS: Final = 1_000
"""Payments of one account with a failed inquiry that are remembered; the newest of them."""
MAX_ACCOUNT_CIRCUITS: Final = 10_000
"""Accounts that one process keeps a circuit for; those in use are never dropped."""

_Key = tuple[str, UUID | None, str]
_Found = TypeVar("_Found")
log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class AccountCircuit:
    """Bulkhead and breaker of one account in this process.

    ``waiting``: payments in flight; ``average_answer_s``: moving average of its answer time; ``unknown_payments``:
    payments whose last inquiry or void failed.
    """

    breaker: CircuitBreaker
    waiting: int = 0
    average_answer_s: float = 0.0
    room: threading.Condition = field(default_factory=threading.Condition)
    unknown_payments: OrderedDict[UUID, None] = field(default_factory=OrderedDict)

    def mark_unknown(self, payment: UUID) -> bool:
        """Record a failed inquiry or void of a payment. Returns whether one had failed before."""
        with self.room:
            before = payment in self.unknown_payments
            self.unknown_payments[payment] = None
            while len(self.unknown_payments) > MAX_UNKNOWN_PAYMENTS:
                self.unknown_payments.popitem(last=False)
        return before

    def clear_unknown(self, payment: UUID) -> None:
        """Forget a payment's failed inquiry: the acquirer has answered."""
        with self.room:
            self.unknown_payments.pop(payment, None)


_circuits: dict[_Key, AccountCircuit] = {}
_lock = threading.Lock()


def _reset_after_fork() -> None:
    """A forked process counts for itself."""
    global _lock
    _lock = threading.Lock()
    _circuits.clear()


os.register_at_fork(after_in_child=_reset_after_fork)


def get_account_circuit(connector: str, account: ConnectorAccount) -> AccountCircuit:
    """This process's circuit of an account."""
    key = (connector, account.channel, account.merchant)
    found = _circuits.get(key)
    if found is None:
        with _lock:
            if len(_circuits) >= MAX_ACCOUNT_CIRCUITS:
                for idle in [one for one, each in _circuits.items() if not each.waiting]:
                    del _circuits[idle]
            found = _circuits.setdefault(key, AccountCircuit(breaker=CircuitBreaker(_limits, time.monotonic)))
    return found


def _limits() -> BreakerLimits:
    return BreakerLimits(
        share=settings.GATEWAY_BREAKER_SHARE,
        least=settings.GATEWAY_BREAKER_LEAST,
        window_s=settings.GATEWAY_BREAKER_WINDOW_S,
        pause_s=settings.GATEWAY_BREAKER_PAUSE_S,
    )


class GuardedConnector:
    """A connector with a bulkhead and a breaker per account; otherwise it behaves like ``inner``."""

    def __init__(self, inner: Connector) -> None:
        self.inner = inner
        self.name, self.operations, self.takes = inner.name, inner.operations, inner.takes
        self.required, self.redirects, self.settings = inner.required, inner.redirects, inner.settings
        self.asks_with_means, self.sends = inner.asks_with_means, inner.sends
        self._answers_at_once: bool = getattr(inner, "answers_at_once", False)

    def __getattr__(self, name: str) -> Any:
        """Optional methods of the connector that are not part of the port."""
        return getattr(self.inner, name)

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        """Submit if the account has room and its breaker lets the payment through."""
        request.check_in_time()
        if self._answers_locally(request):
            return self.inner.submit(request)
        circuit = get_account_circuit(self.name, request.account)
        permit = self._acquire_permit(circuit, request.account)
        if isinstance(permit, AcquirerReply):
            return permit
        gauge = metrics.in_flight_gauge(self.name, request.account.merchant)
        gauge.inc()
        judged = False
        began = time.monotonic()
        try:
            request.check_in_time()
            if not self._answers_at_once:
                pause_work()
            reply = self.inner.submit(request)
            judged = not reply.not_sent
            moved = None
            if judged:
                moved = (
                    circuit.breaker.record_failure(describe_unreachable(reply), permit)
                    if reply.retryable_elsewhere
                    else circuit.breaker.record_success(permit)
                )
        except RequestTooLateError:
            raise
        except OutcomeUnknownError as error:
            judged = True
            self._record_transition(circuit.breaker.record_failure(str(error), permit), request.account)
            raise
        finally:
            if not judged:
                # An error of ours, or a request that was not sent, says nothing about the acquirer.
                circuit.breaker.release(permit)
            circuit.average_answer_s += _NEWEST_ANSWER_WEIGHT * (time.monotonic() - began - circuit.average_answer_s)
            _leave_bulkhead(circuit)
            gauge.dec()
        self._record_transition(moved, request.account)
        return reply

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        """Inquire, whatever the breaker's state; the result is counted."""
        return self._call_unblocked(self.inner.inquire, request)

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        """Void, whatever the breaker's state; the result is counted."""
        return self._call_unblocked(self.inner.void, request)

    def _call_unblocked(self, call: Callable[[AcquirerRequest], _Found], request: AcquirerRequest) -> _Found:
        """Make a call that is never blocked, and count its result."""
        circuit = get_account_circuit(self.name, request.account)
        if not self._answers_at_once:
            pause_work()
        try:
            result = call(request)
        except VoidRefusedError as refused:
            circuit.clear_unknown(request.payment)
            if refused.ask_again_after is None:
                # Else nothing was sent, which says nothing of the acquirer.
                circuit.breaker.record_success()
            raise
        except NotFoundYetError:
            circuit.clear_unknown(request.payment)
            circuit.breaker.record_success()
            raise
        except OutcomeUnknownError as error:
            moved = circuit.breaker.record_failure(str(error), repeat=circuit.mark_unknown(request.payment))
            self._record_transition(moved, request.account)
            raise
        if not isinstance(result, NotFoundAtAcquirer):
            # NotFoundAtAcquirer is not final: the void that follows decides.
            circuit.clear_unknown(request.payment)
        circuit.breaker.record_success()
        return result

    def _answers_locally(self, request: AcquirerRequest) -> bool:
        """True for a request the connector answers from our own database: it needs no acquirer, and says nothing about
        one."""
        keeps = getattr(self.inner, "answers_locally", None)
        return keeps is not None and bool(keeps(request))

    def _acquire_permit(self, circuit: AccountCircuit, account: ConnectorAccount) -> int | AcquirerReply:
        """The breaker's permit for a payment, or the reply to one that is not sent."""
        if not _enter_bulkhead(circuit):
            metrics.count_refusal(self.name, "bulkhead")
            return _unreachable_reply(
                {"full": f"{circuit.waiting} payments of this process wait for this account already"}
            )
        permit, moved = circuit.breaker.acquire()
        self._record_transition(moved, account)
        if permit is not None:
            return permit
        _leave_bulkhead(circuit)
        metrics.count_refusal(self.name, "breaker")
        return _unreachable_reply(
            {"breaker": f"{circuit.breaker.state}: the account is left alone until it answers again"}
        )

    def _record_transition(self, moved: BreakerTransition | None, account: ConnectorAccount) -> None:
        """Log and store a breaker transition. A database failure must not fail the payment."""
        if moved is None:
            return
        metrics.record_breaker_state(self.name, account.merchant, BREAKER_STATE_LEVEL[moved.state])
        words = log.info if moved.state is BreakerState.CLOSED else log.warning
        words("breaker", connector=self.name, account=account.merchant, state=str(moved.state), why=moved.why)
        now = clock.real_now()
        try:
            BreakerChange.objects.create(
                process=f"{socket.gethostname()[:80]}:{os.getpid()}",
                connector=self.name,
                channel=account.channel,
                acquirer_merchant_id=account.merchant[:64],
                state=moved.state,
                since=now,
                why=mask_text(moved.why)[:200],
            )
            BreakerChange.objects.filter(since__lt=now - BREAKER_CHANGE_RETENTION).delete()
        except Exception:
            log.exception("breaker_change_not_recorded", connector=self.name, account=account.merchant)


def _enter_bulkhead(circuit: AccountCircuit) -> bool:
    """Count a payment in if there is room, or soon is."""
    until = time.monotonic() + FAST_ANSWER_S
    with circuit.room:
        while circuit.waiting >= settings.GATEWAY_ACQUIRER_MAX_IN_FLIGHT:
            left = until - time.monotonic()
            if circuit.average_answer_s > FAST_ANSWER_S or left <= 0:
                return False
            pause_work()
            circuit.room.wait(left)
        circuit.waiting += 1
        return True


def _leave_bulkhead(circuit: AccountCircuit) -> None:
    with circuit.room:
        circuit.waiting -= 1
        circuit.room.notify()


def guard_connector(inner: Connector) -> Connector:
    """Wrap ``inner`` in its bulkheads and breakers."""
    return GuardedConnector(inner)


def describe_unreachable(reply: AcquirerReply) -> str:
    """One line on why the acquirer was not reached: the first entry of the reply."""
    return mask_text(next((f"{name}: {value}" for name, value in reply.received.items()), reply.code))[:200]


def _unreachable_reply(received: Mapping[str, Any]) -> AcquirerReply:
    return AcquirerReply(code=ACQUIRER_UNREACHABLE, received=received, retryable_elsewhere=True)

"""What stands between payments and every acquirer: a bulkhead and a circuit breaker for each account, in each process.

A payment that finds the account full or its breaker open is not sent: the answer says so, and that another acquirer may
be asked. An account that answers fast is waited for, for a moment: a burst of payments is no reason to decline any. One
that is slow is not, or it would hold the threads that others need. Inquiries and voids always go through, since a
payment in doubt has to be settled; how they go is counted. Changes of a breaker's state are written to BreakerChange
rows. Source: goals, P5; docs/routing.md.
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
    OutcomeUnknownError,
    VoidRefusedError,
)
from gateway.core import clock
from gateway.core.masking import mask_text
from gateway.models import BreakerChange

ACQUIRER_UNREACHABLE: Final = "900.100.600"
FAST_ANSWER_S: Final = 0.25
"""An account that usually answers within this is waited for when it is full, and for as long at most."""
_NEWEST: Final = 0.2
"""The share of the newest answer in what is usual."""
BREAKER_CHANGE_RETENTION: Final = timedelta(days=7)
"""How long changes of breakers are kept."""
MAX_UNKNOWN_PAYMENTS: Final = 1_000
"""Payments of one account about which an inquiry failed that are remembered; of more, the newest."""
MAX_ACCOUNT_CIRCUITS: Final = 10_000
"""Accounts that one process keeps count of; those in use are never forgotten."""

_Key = tuple[str, UUID | None, str]
_Found = TypeVar("_Found")
log = structlog.get_logger(__name__)


@dataclass(slots=True, kw_only=True)
class AccountCircuit:
    """One account in this process: how many payments wait for it, and its breaker.

    ``usual_s``: how long it takes to answer, of late; ``lost``: payments whose last inquiry or void found nobody."""

    breaker: CircuitBreaker
    waiting: int = 0
    average_answer_s: float = 0.0
    room: threading.Condition = field(default_factory=threading.Condition)
    unknown_payments: OrderedDict[UUID, None] = field(default_factory=OrderedDict)

    def mark_unknown(self, payment: UUID) -> bool:
        """Remember that nobody gave a word about a payment; whether that was so before."""
        with self.room:
            before = payment in self.unknown_payments
            self.unknown_payments[payment] = None
            while len(self.unknown_payments) > MAX_UNKNOWN_PAYMENTS:
                self.unknown_payments.popitem(last=False)
        return before

    def clear_unknown(self, payment: UUID) -> None:
        """There was a word about it."""
        with self.room:
            self.unknown_payments.pop(payment, None)


_gates: dict[_Key, AccountCircuit] = {}
_lock = threading.Lock()


def _forget() -> None:
    """A forked process counts for itself."""
    global _lock
    _lock = threading.Lock()
    _gates.clear()


os.register_at_fork(after_in_child=_forget)


def get_account_circuit(connector: str, account: ConnectorAccount) -> AccountCircuit:
    """The gate of an account in this process."""
    key = (connector, account.channel, account.merchant)
    found = _gates.get(key)
    if found is None:
        with _lock:
            if len(_gates) >= MAX_ACCOUNT_CIRCUITS:
                for idle in [one for one, each in _gates.items() if not each.waiting]:
                    del _gates[idle]
            found = _gates.setdefault(key, AccountCircuit(breaker=CircuitBreaker(_limits, time.monotonic)))
    return found


def _limits() -> BreakerLimits:
    return BreakerLimits(
        share=settings.GATEWAY_BREAKER_SHARE,
        least=settings.GATEWAY_BREAKER_LEAST,
        window_s=settings.GATEWAY_BREAKER_WINDOW_S,
        pause_s=settings.GATEWAY_BREAKER_PAUSE_S,
    )


class GuardedConnector:
    """A connector with a bulkhead and a breaker for each of its accounts; in all else it is that connector."""

    def __init__(self, inner: Connector) -> None:
        self.inner = inner
        self.name, self.operations, self.takes = inner.name, inner.operations, inner.takes
        self.required, self.redirects, self.settings = inner.required, inner.redirects, inner.settings
        self.asks_with_means = inner.asks_with_means

    def __getattr__(self, name: str) -> Any:
        """What a connector has beyond the port."""
        return getattr(self.inner, name)

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        if self._asks_nobody(request):
            return self.inner.submit(request)
        own = get_account_circuit(self.name, request.account)
        permit = self._turn(own, request.account)
        if isinstance(permit, AcquirerReply):
            return permit
        figure = metrics.in_flight_gauge(self.name, request.account.merchant)
        figure.inc()
        judged = False
        began = time.monotonic()
        try:
            reply = self.inner.submit(request)
            judged = not reply.not_sent
            moved = None
            if judged:
                moved = (
                    own.breaker.failed(describe_unreachable(reply), permit)
                    if reply.retryable_elsewhere
                    else own.breaker.record_success(permit)
                )
        except OutcomeUnknownError as silence:
            judged = True
            self._moved(own.breaker.failed(str(silence), permit), request.account)
            raise
        finally:
            if not judged:
                # A fault of ours, and what was not sent, say nothing about the acquirer.
                own.breaker.release(permit)
            own.average_answer_s += _NEWEST * (time.monotonic() - began - own.average_answer_s)
            _leave(own)
            figure.dec()
        self._moved(moved, request.account)
        return reply

    def inquire(self, request: AcquirerRequest) -> AcquirerReply | NotFoundAtAcquirer:
        return self._ask(self.inner.inquire, request)

    def void(self, request: AcquirerRequest) -> AcquirerReply:
        return self._ask(self.inner.void, request)

    def _ask(self, ask: Callable[[AcquirerRequest], _Found], request: AcquirerRequest) -> _Found:
        """Never refused, and counted."""
        own = get_account_circuit(self.name, request.account)
        try:
            found = ask(request)
        except VoidRefusedError:
            own.clear_unknown(request.payment)
            own.breaker.record_success()
            raise
        except OutcomeUnknownError as silence:
            moved = own.breaker.failed(str(silence), repeat=own.mark_unknown(request.payment))
            self._moved(moved, request.account)
            raise
        if not isinstance(found, NotFoundAtAcquirer):
            # Of one that never arrived the void still has to tell.
            own.clear_unknown(request.payment)
        own.breaker.record_success()
        return found

    def _asks_nobody(self, request: AcquirerRequest) -> bool:
        """What goes into our own books says nothing of the acquirer, and needs no acquirer that is well."""
        keeps = getattr(self.inner, "asks_nobody", None)
        return keeps is not None and bool(keeps(request))

    def _turn(self, own: AccountCircuit, account: ConnectorAccount) -> int | AcquirerReply:
        """The turn of a payment that is counted in, or the answer to one that is not sent."""
        if not _enter(own):
            metrics.count_refusal(self.name, "bulkhead")
            return _elsewhere({"full": f"{own.waiting} payments of this process wait for this account already"})
        permit, moved = own.breaker.acquire()
        self._moved(moved, account)
        if permit is not None:
            return permit
        _leave(own)
        metrics.count_refusal(self.name, "breaker")
        return _elsewhere({"breaker": f"{own.breaker.state}: the account is left alone until it answers again"})

    def _moved(self, moved: BreakerTransition | None, account: ConnectorAccount) -> None:
        """Tell of a breaker's change; a database that is away must not fail a payment for it."""
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
                account=account.merchant[:64],
                state=moved.state,
                since=now,
                why=mask_text(moved.why)[:200],
            )
            BreakerChange.objects.filter(since__lt=now - BREAKER_CHANGE_RETENTION).delete()
        except Exception:
            log.exception("breaker_not_written", connector=self.name, account=account.merchant)


def _enter(own: AccountCircuit) -> bool:
    """Count a payment in, if there is room, or soon is."""
    until = time.monotonic() + FAST_ANSWER_S
    with own.room:
        while own.waiting >= settings.GATEWAY_ACQUIRER_MAX_IN_FLIGHT:
            left = until - time.monotonic()
            if own.average_answer_s > FAST_ANSWER_S or left <= 0:
                return False
            own.room.wait(left)
        own.waiting += 1
        return True


def _leave(own: AccountCircuit) -> None:
    with own.room:
        own.waiting -= 1
        own.room.notify()


def guard_connector(inner: Connector) -> Connector:
    """``inner`` behind its bulkheads and breakers."""
    return GuardedConnector(inner)


def describe_unreachable(reply: AcquirerReply) -> str:
    """Why nobody was reached, in one line: the first thing that the reply says."""
    return mask_text(next((f"{name}: {value}" for name, value in reply.received.items()), reply.code))[:200]


def _elsewhere(received: Mapping[str, Any]) -> AcquirerReply:
    return AcquirerReply(code=ACQUIRER_UNREACHABLE, received=received, retryable_elsewhere=True)

"""Sends webhooks: a lane of threads for each endpoint, so that a slow receiver delays only itself, and half of what is
free for each merchant, so that one with many slow receivers delays no other merchant.

A run fans the outbox out, claims what is due, sends it and records the results, until nothing is left. Each lane has a
few threads while it has work; they hold no database connection. A hanging call is left to its thread: the run does not
wait for it, and the next run, or the thread itself, records it. Source: decisions, section 6.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final
from uuid import UUID

import structlog
from django.db import connection

from gateway import tracing
from gateway.core import clock
from gateway.db.transactions import is_in_transaction
from gateway.models import Merchant, WebhookDelivery, WebhookEndpoint
from gateway.models.webhooks import INSPECTOR_URL_PREFIX
from gateway.notifications import claims, inspector, signing
from gateway.notifications.claims import DueWebhook, MerchantShares, WebhookAttemptResult
from gateway.notifications.fan_out import fan_out_notifications, has_pending_notifications
from gateway.notifications.payload_format import PayloadBuilder
from gateway.outbound import CallFailure, CallOutcome, ConnectionPool, call_url

WEBHOOK_TIMEOUT_S: Final = 30.0
MAX_WEBHOOK_ANSWER_BYTES: Final = 1_024
"""Bytes read of an answer; the rest is ignored."""
THREADS_PER_ENDPOINT: Final = 8
"""Attempts of one process at one endpoint at the same time."""
MAX_HELD_PER_ENDPOINT: Final = 128
"""Deliveries of one endpoint that one process holds, waiting ones included."""
MAX_SENDER_THREADS: Final = 256
MAX_HELD_WEBHOOKS: Final = 512
SLOW_ATTEMPT_S: Final = 1.0
"""A run for all merchants does not wait for attempts that take longer."""
MAX_DELIVERY_RUN_S: Final = 20.0
RESULT_BATCH_SIZE: Final = 200
_SPARE_S: Final = WEBHOOK_TIMEOUT_S + 5

log = structlog.get_logger(__name__)


_NDC: Final = re.compile(r'"ndc": ?"([0-9a-f-]{1,69})"')
"""The ndc of the payment's request in a webhook's text."""


def attempt_webhook(due: DueWebhook, lines: ConnectionPool | None = None) -> WebhookAttemptResult:
    """Make one attempt, including the network call. Never raises."""
    with tracing.trace_span(
        "webhook", ndc=partial(_find_ndc, due.body), delivery=due.id.hex, attempt=due.attempt
    ) as span:
        result = _attempt(due, lines)
        if result.outcome is not None:
            span.set(status=result.outcome.status or 0, failure=result.outcome.failure or "")
        return result


def _find_ndc(body: str) -> str:
    found = _NDC.search(body)
    return found[1] if found else ""


def _attempt(due: DueWebhook, lines: ConnectionPool | None) -> WebhookAttemptResult:
    at = clock.real_now()
    if due.lease_ends.is_within(_SPARE_S):
        # It waited too long for its turn: the lease could end before the attempt does.
        return WebhookAttemptResult(due=due, at=at, outcome=None)
    if due.mode == WebhookEndpoint.Mode.RETURN:
        outcome = call_url("GET", due.url, timeout_s=WEBHOOK_TIMEOUT_S, max_bytes=MAX_WEBHOOK_ANSWER_BYTES, lines=lines)
    elif due.keys is None:
        outcome = CallOutcome(failure=CallFailure.BROKEN, reason="the endpoint's secret cannot be opened")
    else:
        headers, body = signing.sign_or_encrypt(due.mode, due.wrapper, due.keys, due.id, due.body, at)
        if due.url == INSPECTOR_URL_PREFIX:
            return WebhookAttemptResult(
                due=due, at=at, outcome=inspector.build_inspector_answer(), inspected=(headers, body)
            )
        outcome = call_url(
            "POST",
            due.url,
            headers=headers,
            body=body,
            timeout_s=WEBHOOK_TIMEOUT_S,
            max_bytes=MAX_WEBHOOK_ANSWER_BYTES,
            lines=lines,
        )
    return WebhookAttemptResult(due=due, at=at, outcome=outcome)


class _Lane:
    """Deliveries that this process holds for one endpoint of ``merchant``, and its number of threads."""

    __slots__ = ("merchant", "queue", "threads")

    def __init__(self, merchant: UUID) -> None:
        self.merchant = merchant
        self.queue: deque[DueWebhook] = deque()
        self.threads = 0


class WebhookSender:
    """The lanes of one process, shared by its threads."""

    def __init__(self) -> None:
        self._lanes: dict[UUID, _Lane] = {}
        self._held: dict[UUID, tuple[DueWebhook, float]] = {}
        self._threads = 0
        self._threads_by_merchant: Counter[UUID] = Counter()
        self._runs = 0
        self._lock = threading.Lock()
        self._settling = threading.Lock()
        self._done: SimpleQueue[WebhookAttemptResult] = SimpleQueue()
        self._lines = ConnectionPool(most=THREADS_PER_ENDPOINT)

    def enter(self) -> None:
        """Begin a run, which records what its lanes return."""
        with self._lock:
            self._runs += 1

    def leave(self) -> None:
        """A run ends."""
        with self._lock:
            self._runs -= 1

    def busy(self) -> dict[UUID, int]:
        """Endpoint → how much of its room is taken by held deliveries."""
        found: dict[UUID, int] = {}
        with self._lock:
            for due, _ in self._held.values():
                found[due.endpoint] = found.get(due.endpoint, 0) + 1
        # An endpoint is refilled when half of its room is free: many at once cost little more than one.
        return {
            one: MAX_HELD_PER_ENDPOINT if number > MAX_HELD_PER_ENDPOINT // 2 else number
            for one, number in found.items()
        }

    def room(self) -> int:
        with self._lock:
            return min(MAX_HELD_WEBHOOKS - len(self._held), MAX_SENDER_THREADS - self._threads)

    def shares(self) -> MerchantShares:
        """What each merchant may be given now: half of what is free, less what it has beyond that."""
        with self._lock:
            held = Counter(due.merchant for due, _ in self._held.values())
            rooms, threads = MAX_HELD_WEBHOOKS - len(self._held), MAX_SENDER_THREADS - self._threads

            def share(merchant: UUID | None) -> int:
                own = (held[merchant], self._threads_by_merchant[merchant]) if merchant is not None else (0, 0)
                return max(0, (min(rooms - own[0], threads - own[1]) + 1) // 2)

            return MerchantShares(other=share(None), known={one: share(one) for one in held})

    def is_awaiting(self, merchant: Merchant | None) -> bool:
        """Whether a run has to wait for something: of one merchant everything, else all that is not hanging."""
        now = time.monotonic()
        with self._lock:
            return any(
                due.merchant == merchant.pk if merchant is not None else now - started < SLOW_ATTEMPT_S
                for due, started in self._held.values()
            )

    def send(self, several: Sequence[DueWebhook]) -> None:
        """Start sending; results are returned by :meth:`collect`."""
        begun: list[_Lane] = []
        with self._lock:
            for due in several:
                self._held[due.id] = due, time.monotonic()
                lane = self._lanes.setdefault(due.endpoint, _Lane(due.merchant))
                lane.queue.append(due)
                if lane.threads < min(THREADS_PER_ENDPOINT, len(lane.queue)):
                    lane.threads += 1
                    self._count_thread(lane, 1)
                    begun.append(lane)
        for lane in begun:
            try:
                threading.Thread(target=self._run_lane, args=(lane,), name="webhooks", daemon=True).start()
            except RuntimeError:  # the system has no more threads, or the process ends
                self._take_off(lane)

    def _take_off(self, lane: _Lane) -> None:
        """A thread of the lane did not start: without another one, what it was to send is tried later."""
        with self._lock:
            lane.threads -= 1
            self._count_thread(lane, -1)
            left = lane.threads
        if not left:
            self._hand_back(lane)

    def _run_lane(self, lane: _Lane) -> None:
        while True:
            with self._lock:
                if not lane.queue:
                    lane.threads -= 1
                    self._count_thread(lane, -1)
                    alone = not self._runs
                    break
                due = lane.queue.popleft()
                self._held[due.id] = due, time.monotonic()
            done = attempt_webhook(due, self._lines)
            self._done.put(done)
            if done.outcome is not None and done.outcome.failure is not None:
                self._hand_back(lane)
        if alone:
            self._settle_without_run()

    def _count_thread(self, lane: _Lane, number: int) -> None:
        self._threads += number
        self._threads_by_merchant[lane.merchant] += number
        if not self._threads_by_merchant[lane.merchant]:
            del self._threads_by_merchant[lane.merchant]

    def _hand_back(self, lane: _Lane) -> None:
        """Return what waits in the lane, to be tried later: its endpoint does not answer, or no thread started."""
        with self._lock:
            back = list(lane.queue)
            lane.queue.clear()
        for due in back:
            self._done.put(WebhookAttemptResult(due=due, at=clock.real_now(), outcome=None))

    def _settle_without_run(self) -> None:
        """Record what is done, one thread after the other: calls that hang end together, and a session of PostgreSQL
        for each of their threads was more than there are."""
        try:
            with self._settling:
                while self.settle(self.collect(0)):
                    pass
        except Exception:  # its lease ends, and it is sent again
            log.exception("webhook_results_not_recorded")
        finally:
            connection.close()

    def collect(self, wait_s: float) -> list[WebhookAttemptResult]:
        """Finished attempts, at most RESULT_BATCH_SIZE; waits for the first of them."""
        found: list[WebhookAttemptResult] = []
        try:
            found.append(self._done.get(timeout=wait_s) if wait_s else self._done.get_nowait())
            while len(found) < RESULT_BATCH_SIZE:
                found.append(self._done.get_nowait())
        except Empty:
            pass
        return found

    def settle(self, several: Sequence[WebhookAttemptResult]) -> int:
        """Record results. Returns how many attempts there were."""
        if not several:
            return 0
        try:
            claims.record_webhook_attempts(several)
        finally:
            with self._lock:
                for one in several:
                    self._held.pop(one.due.id, None)
        return sum(one.outcome is not None for one in several)


_sender: Final = WebhookSender()


def deliver_due_webhooks(build_payloads: PayloadBuilder, merchant: Merchant | None = None) -> int:
    """Deliver notifications until nothing is due, at most MAX_DELIVERY_RUN_S. Returns how many attempts were made.

    For one ``merchant``: waits for all of their deliveries. For all: does not wait for hanging receivers.
    Within a transaction nothing is delivered.
    """
    if is_in_transaction():
        # An event that may be rolled back is not sent. A run also records the results of other threads of this process:
        # a rollback would undo those records, and their webhooks would be sent again.
        return 0
    made = 0
    until = time.monotonic() + MAX_DELIVERY_RUN_S
    _sender.enter()
    try:
        while True:
            handed = fan_out_notifications(build_payloads)
            claimed = claims.claim_due_webhooks(
                _sender.busy(),
                room=MAX_HELD_PER_ENDPOINT,
                limit=_sender.room(),
                merchant=merchant,
                shares=_sender.shares(),
            )
            _sender.send(claimed)
            back = _sender.collect(0.02 if _sender.is_awaiting(merchant) else 0)
            made += _sender.settle(back)
            if not (handed or claimed or back or _sender.is_awaiting(merchant)):
                return made
            if time.monotonic() > until and (merchant is None or not _sender.is_awaiting(merchant)):
                return made
    finally:
        _sender.leave()
        made += _sender.settle(_sender.collect(0))


def next_webhook_at(merchant: Merchant) -> datetime | None:
    """When this merchant's next delivery is due, by their clock; for a paused endpoint not before its probe. None
    within a transaction, where nothing is delivered."""
    if is_in_transaction():
        return None
    if has_pending_notifications(merchant):
        return clock.merchant_now(merchant)
    moments: list[datetime] = []
    for endpoint in WebhookEndpoint.objects.filter(merchant=merchant, state__in=("active", "paused")):
        first = (
            WebhookDelivery.objects.filter(endpoint=endpoint, state=WebhookDelivery.State.WAITING)
            .order_by("due_at")
            .values_list("due_at", flat=True)
            .first()
        )
        if first is not None and not endpoint.is_held:
            moments.append(max(first, endpoint.probe_at) if endpoint.probe_at is not None else first)
    return min(moments, default=None)

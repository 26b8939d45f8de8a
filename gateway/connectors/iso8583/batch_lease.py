"""The lease on a capture batch, held by the sender that works on it.

Each claim raises the batch's ``tries``. Once another sender has claimed the batch, the earlier one can write nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import QuerySet
from django.db.models.functions import Now

from gateway.connectors.iso8583.codec import BadMessageError
from gateway.connectors.iso8583.link_registry import LinkUnansweredError, LinkUnreachableError, get_link
from gateway.connectors.iso8583.terminal import Terminal
from gateway.models import BatchedCapture, CaptureBatch

MAX_BATCH_FINDINGS: Final = 100


class BatchDeferredError(Exception):
    """The batch cannot go on now and is retried later. The message has no secrets. ``wait``: pause before the retry."""

    def __init__(self, why: str, *, wait: bool = True) -> None:
        super().__init__(why)
        self.wait = wait


class BatchLeaseLostError(Exception):
    """Another sender has claimed the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer:
    """Outcome of one message: the host's answer, or ``why`` there is none that counts. ``not_sent``: there was no link;
    ``timed_out``: no answer came in time."""

    answer: Mapping[str, str] | None = None
    why: str = ""
    not_sent: bool = False
    timed_out: bool = False


def ask_host(terminal: Terminal, message: dict[str, str]) -> HostAnswer:
    """Send a message and wait for its answer. Runs in worker threads, so it touches no rows."""
    try:
        return HostAnswer(
            answer=get_link(terminal).exchange(message, time.monotonic() + settings.GATEWAY_ACQUIRER_TIMEOUT_S)
        )
    except (LinkUnreachableError, BadMessageError) as fault:
        return HostAnswer(why=str(fault), not_sent=isinstance(fault, LinkUnreachableError))
    except LinkUnansweredError as fault:
        return HostAnswer(why=str(fault), timed_out=True)


def select_leased_batch(batch: CaptureBatch) -> QuerySet[CaptureBatch]:
    """The batch's row, if this sender still holds the lease."""
    return CaptureBatch.objects.filter(pk=batch.pk, state=batch.state, tries=batch.tries)


def extend_batch_lease(batch: CaptureBatch, **changes: Any) -> None:
    """Renew the lease for another step and write ``changes``. Raises BatchLeaseLostError."""
    if not select_leased_batch(batch).update(lease_until=Now() + get_batch_lease(), **changes):
        raise BatchLeaseLostError
    for name, value in changes.items():
        setattr(batch, name, value)


def move_batch_state(batch: CaptureBatch, state: CaptureBatch.State, **changes: Any) -> None:
    """Move the batch by compare-and-set and write ``changes``. Raises BatchLeaseLostError."""
    if not select_leased_batch(batch).update(state=state, **changes):
        raise BatchLeaseLostError
    for name, value in {"state": state, **changes}.items():
        setattr(batch, name, value)


def record_batch_finding(batch: CaptureBatch, finding: str) -> None:
    """Add a finding for the operator. Raises BatchLeaseLostError."""
    extend_batch_lease(batch, findings=[*batch.findings, finding][:MAX_BATCH_FINDINGS])


def list_granted_captures(batch: CaptureBatch) -> QuerySet[BatchedCapture]:
    """The captures of the batch that the host has granted one by one."""
    return BatchedCapture.objects.filter(batch=batch, state=BatchedCapture.State.IN_BATCH).exclude(code="")


def get_batch_lease() -> timedelta:
    """How long a lease is: longer than one step can take."""
    return timedelta(seconds=2 * settings.GATEWAY_ACQUIRER_TIMEOUT_S + 30)

"""A batch in the hands of one sender: what it may write, and how it asks.

Each sender has a number (``tries``); as soon as another one takes the batch on, the first writes nothing more.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.db.models import QuerySet

from gateway.connectors.iso8583.codec import BadMessageError
from gateway.connectors.iso8583.link_registry import LinkUnansweredError, LinkUnreachableError, get_link
from gateway.connectors.iso8583.terminal import Terminal
from gateway.core import clock
from gateway.models import BatchedCapture, CaptureBatch

MAX_BATCH_FINDINGS: Final = 100


class BatchDeferredError(Exception):
    """The batch goes on later; why, in words without secrets. ``wait``: not at once."""

    def __init__(self, why: str, *, wait: bool = True) -> None:
        super().__init__(why)
        self.wait = wait


class BatchLeaseLostError(Exception):
    """Somebody else has the batch by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAnswer:
    """What became of one message: the host's answer, or ``why`` there is none, or none that counts. ``unsent``: there
    is no link; ``silent``: it was waited for."""

    answer: Mapping[str, str] | None = None
    why: str = ""
    not_sent: bool = False
    timed_out: bool = False


def ask_host(terminal: Terminal, message: dict[str, str]) -> HostAnswer:
    """In a thread of its own: no rows are touched."""
    try:
        return HostAnswer(
            answer=get_link(terminal).ask(message, time.monotonic() + settings.GATEWAY_ACQUIRER_TIMEOUT_S)
        )
    except (LinkUnreachableError, BadMessageError) as fault:
        return HostAnswer(why=str(fault), not_sent=isinstance(fault, LinkUnreachableError))
    except LinkUnansweredError as fault:
        return HostAnswer(why=str(fault), timed_out=True)


def select_leased_batch(batch: CaptureBatch) -> QuerySet[CaptureBatch]:
    """The batch as long as nobody else took it on since."""
    return CaptureBatch.objects.filter(pk=batch.pk, state=batch.state, tries=batch.tries)


def extend_batch_lease(batch: CaptureBatch, **changes: Any) -> None:
    """Keep the lease for another step. Raises BatchLeaseLostError."""
    if not select_leased_batch(batch).update(lease_until=batch_lease_until(clock.real_now()), **changes):
        raise BatchLeaseLostError
    for name, value in changes.items():
        setattr(batch, name, value)


def move_batch_state(batch: CaptureBatch, state: CaptureBatch.State, **changes: Any) -> None:
    """By compare-and-set. Raises BatchLeaseLostError."""
    if not select_leased_batch(batch).update(state=state, **changes):
        raise BatchLeaseLostError
    for name, value in {"state": state, **changes}.items():
        setattr(batch, name, value)


def record_batch_finding(batch: CaptureBatch, finding: str) -> None:
    """Note what somebody has to know. Raises BatchLeaseLostError."""
    extend_batch_lease(batch, findings=[*batch.findings, finding][:MAX_BATCH_FINDINGS])


def list_granted_captures(batch: CaptureBatch) -> QuerySet[BatchedCapture]:
    """The captures that the host has granted, each by itself."""
    return BatchedCapture.objects.filter(batch=batch, state=BatchedCapture.State.IN_BATCH).exclude(code="")


def batch_lease_until(now: datetime) -> datetime:
    """Until when a batch is its sender's: longer than one step can take."""
    return now + timedelta(seconds=2 * settings.GATEWAY_ACQUIRER_TIMEOUT_S + 30)

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

from gateway import clock
from gateway.connectors.iso8583.link import Unanswered, Unreachable, link_to
from gateway.connectors.iso8583.terminal import Terminal
from gateway.connectors.iso8583.wire import BadMessage
from gateway.models import BatchedCapture, CaptureBatch

MOST_FINDINGS: Final = 100


class NotNow(Exception):
    """The batch goes on later; why, in words without secrets. ``wait``: not at once."""

    def __init__(self, why: str, *, wait: bool = True) -> None:
        super().__init__(why)
        self.wait = wait


class Overtaken(Exception):
    """Somebody else has the batch by now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What became of one message: the host's answer, or ``why`` there is none, or none that counts. ``unsent``: there
    is no link; ``silent``: it was waited for."""

    answer: Mapping[str, str] | None = None
    why: str = ""
    unsent: bool = False
    silent: bool = False


def ask(terminal: Terminal, message: dict[str, str]) -> Said:
    """In a thread of its own: no rows are touched."""
    try:
        return Said(answer=link_to(terminal).ask(message, time.monotonic() + settings.GATEWAY_ACQUIRER_TIMEOUT_S))
    except (Unreachable, BadMessage) as fault:
        return Said(why=str(fault), unsent=isinstance(fault, Unreachable))
    except Unanswered as fault:
        return Said(why=str(fault), silent=True)


def mine(batch: CaptureBatch) -> QuerySet[CaptureBatch]:
    """The batch as long as nobody else took it on since."""
    return CaptureBatch.objects.filter(pk=batch.pk, state=batch.state, tries=batch.tries)


def hold(batch: CaptureBatch, **changes: Any) -> None:
    """Keep the lease for another step. Raises Overtaken."""
    if not mine(batch).update(lease_until=lease(clock.real()), **changes):
        raise Overtaken
    for name, value in changes.items():
        setattr(batch, name, value)


def move(batch: CaptureBatch, state: CaptureBatch.State, **changes: Any) -> None:
    """By compare-and-set. Raises Overtaken."""
    if not mine(batch).update(state=state, **changes):
        raise Overtaken
    for name, value in {"state": state, **changes}.items():
        setattr(batch, name, value)


def find(batch: CaptureBatch, finding: str) -> None:
    """Note what somebody has to know. Raises Overtaken."""
    hold(batch, findings=[*batch.findings, finding][:MOST_FINDINGS])


def granted(batch: CaptureBatch) -> QuerySet[BatchedCapture]:
    """The captures that the host has granted, each by itself."""
    return BatchedCapture.objects.filter(batch=batch, state=BatchedCapture.State.IN_BATCH).exclude(code="")


def lease(now: datetime) -> datetime:
    """Until when a batch is its sender's: longer than one step can take."""
    return now + timedelta(seconds=2 * settings.GATEWAY_ACQUIRER_TIMEOUT_S + 30)

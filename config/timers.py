"""Every timer of the product, in one place. Source: Part A, Events; Part B, Scheduling."""

from __future__ import annotations

from typing import Final

from chargebacks import packets
from chargebacks import timers as chargebacks
from checkout import timers as checkout
from gateway import due, signin, unused_accounts, work
from gateway import timers as gateway
from gateway.desk import approvals, export
from gateway.notifications import bulk
from gateway.pages import self_test
from gateway.payments import captures, collections, mandates, retention, telling
from gateway.processor_events import work as processor_events
from gateway.scheduling import tasks as scheduling
from reporting import timers as reporting

TIMERS: Final[tuple[due.Timer, ...]] = (
    *gateway.TIMERS,
    *checkout.TIMERS,
    telling.TIMER,
    telling.SWEEP,
    mandates.TIMER,
    *processor_events.TIMERS,
    collections.TIMER,
    captures.TIMER,
    retention.TIMER,
    *scheduling.TIMERS,
    *chargebacks.TIMERS,
    *reporting.TIMERS,
    approvals.TIMER,
    signin.TIMER,
    unused_accounts.TIMER,
    work.TIMER,
    self_test.TIMER,
)
WORK: Final = (export.KIND, bulk.KIND, packets.KIND)
"""Kinds of background work: loading their modules made them known to gateway.work."""


def register() -> None:
    """Make them known to the ticks and to the clock of the test environment."""
    for timer in TIMERS:
        due.add(timer)

"""Beat's schedule: one periodic task per timer, stored in the database, where the back office shows and edits it."""

from __future__ import annotations

import json
import time
from typing import Any, Final

import structlog
from celery import current_app, schedules
from django.db import DatabaseError, InterfaceError, connection, transaction
from django_celery_beat.models import IntervalSchedule, PeriodicTask
from django_celery_beat.schedulers import DatabaseScheduler, ModelEntry

from gateway.db.statement import execute_sql
from gateway.timers import due_times, registry, wakeup

RETIRED_TASKS: Final = ("gateway.tasks.tick", "gateway.tasks.sweep", "checkout.tasks.sweep", "celery.backend_cleanup")
"""Periodic tasks of earlier releases, which ran several timers in one task."""
TICK_EXPIRY_S: Final = 5
"""Expiry of a tick: seconds, and intervals of a longer one; after that it is of no use."""
SCHEDULE_CHECK_INTERVAL_S: Final = 1.0
_SYNC_LOCK: Final = 0x7011B3A7

log = structlog.get_logger(__name__)


def sync_periodic_tasks() -> None:
    """Make the periodic tasks match gateway.timers.registry.TIMERS: new ones are added, obsolete ones deleted. Interval
    and on/off are set once, when a row is created: from then on the back office owns them.

    If two beats start at once, one waits for the other.
    """
    with transaction.atomic():
        execute_sql("SELECT 1 FROM (SELECT pg_advisory_xact_lock(%s::bigint)) AS locked", [_SYNC_LOCK])
        _sync()


def _sync() -> None:
    ours = PeriodicTask.objects.filter(task__in=(wakeup.RUN_TIMER_TASK, *RETIRED_TASKS))
    for row in ours.exclude(task=wakeup.RUN_TIMER_TASK, name__in=list(registry.TIMERS)):
        row.delete()
    for timer in registry.TIMERS.values():
        row, made = PeriodicTask.objects.get_or_create(
            name=timer.name,
            defaults={
                "task": wakeup.RUN_TIMER_TASK,
                "args": json.dumps([timer.name]),
                "interval": _find_interval(timer.every_s),
                "description": timer.about,
                "expire_seconds": max(TICK_EXPIRY_S, int(timer.every_s)),
            },
        )
        wanted = {"task": wakeup.RUN_TIMER_TASK, "args": json.dumps([timer.name]), "description": timer.about}
        if not made and any(getattr(row, name) != value for name, value in wanted.items()):
            for name, value in wanted.items():
                setattr(row, name, value)
            row.save()


def _find_interval(every_s: float) -> IntervalSchedule:
    if every_s == int(every_s):
        every, period = int(every_s), IntervalSchedule.SECONDS
    else:
        every, period = round(every_s * 1_000_000), IntervalSchedule.MICROSECONDS
    found = IntervalSchedule.objects.filter(every=every, period=period).first()
    return found or IntervalSchedule.objects.create(every=every, period=period)


class TimerEntry(ModelEntry):  # type: ignore[misc]
    """A periodic task. Those of timers are never due by themselves: the scheduler sends them when a row is due."""

    def is_due(self) -> schedules.schedstate:
        if is_timer_tick(self):
            return schedules.schedstate(is_due=False, next=due_times.SAFETY_TICK_INTERVAL_S)
        return super().is_due()


def is_timer_tick(entry: ModelEntry) -> bool:
    """Whether ``entry`` is the tick of a timer at an interval; the back office may have given it another schedule."""
    by_interval = entry.model.interval_id is not None and not entry.model.one_off
    return by_interval and entry.name in registry.TIMERS and entry.task == wakeup.RUN_TIMER_TASK


class TimerScheduler(DatabaseScheduler):  # type: ignore[misc]
    """The DatabaseScheduler with our own ticks: once a second it sends those of timers that have something due, and in
    turn those that cannot tell or were not sent for ten minutes. It looks for changes as often, and sends none while
    the broker holds so many that no worker can be taking them."""

    Entry = TimerEntry

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._looked = float("-inf")
        self._waiting = wakeup.BrokerBacklog()
        self._due_looks = due_times.DueLooks()
        self._looked_for_due = float("-inf")
        self._is_synced = False
        self._is_read = False
        super().__init__(*args, **kwargs)

    def setup_schedule(self) -> None:
        self._schedule = self.all_as_schedule()

    def all_as_schedule(self) -> dict[str, TimerEntry]:
        """The rows of the database. While it is away, what was read before, which is nothing at a start: beat waits for
        the database as it does later."""
        if not self._is_synced:
            try:
                sync_periodic_tasks()
                self._is_synced = True
            except (DatabaseError, InterfaceError):
                log.exception("ticks_not_synced")  # those in the database are sent all the same
        try:
            found: dict[str, TimerEntry] = super().all_as_schedule()
        except (DatabaseError, InterfaceError) as fault:
            log.warning("schedule_not_read", fault=type(fault).__qualname__)
            connection.close()
            self._is_read = False
            return self._schedule or {}
        self._is_read = True
        return found

    def schedule_changed(self) -> bool:
        if time.monotonic() - self._looked < SCHEDULE_CHECK_INTERVAL_S:
            return False
        self._looked = time.monotonic()
        return bool(super().schedule_changed()) or not self._is_read

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Send what is due; returns after how many seconds to do so again."""
        left = self._looked_for_due + due_times.DUE_LOOK_INTERVAL_S - time.monotonic()
        if left <= 0:
            self._looked_for_due = time.monotonic()
            left = due_times.DUE_LOOK_INTERVAL_S
            self._send_due_timers()
        return min(left, float(super().tick(*args, **kwargs)))

    def _send_due_timers(self) -> None:
        entries = {name: entry for name, entry in self.schedule.items() if is_timer_tick(entry)}
        intervals = {name: entry.schedule.run_every.total_seconds() for name, entry in entries.items()}
        try:
            chosen = self._due_looks.choose_timers(intervals)
        except (DatabaseError, InterfaceError) as fault:  # without a database a timer could do nothing either
            log.warning("due_timers_not_read", fault=type(fault).__qualname__)
            connection.close()
            return
        for name in chosen:
            self.apply_entry(entries[name], producer=self.producer)

    def apply_async(self, entry: ModelEntry, producer: Any = None, advance: bool = True, **kwargs: Any) -> Any:
        """Send one tick, unless the broker's queue is full. Raises the broker's errors; beat goes on."""
        if self._is_full(producer):
            if advance:
                self.reserve(entry)
            return None
        return super().apply_async(entry, producer=producer, advance=advance, **kwargs)

    def _is_full(self, producer: Any) -> bool:
        line = getattr(producer, "connection", None)
        if line is None:
            with current_app.connection_for_write() as own:
                return self._waiting.is_full(own)
        return self._waiting.is_full(line)

"""What runs by itself: broker, beat, workers, timers, queues, webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from django_celery_beat.models import PeriodicTask
from kombu.connection import Connection
from kombu.exceptions import OperationalError

from config.doctor.findings import DoctorQuestion, PartFinding, error, judge, ok, skipped, warning
from gateway import metrics
from gateway.backoffice.personal_data.erasure_requests import find_late_erasures
from gateway.core import clock
from gateway.models import TimerRun, WebhookEndpoint
from gateway.portal.guides import MAX_TIMER_LAG_S, read_status
from gateway.timers import due_times, registry, wakeup

MAX_IN_DOUBT_S: Final = 300
MAX_QUEUE_AGE: Final = timedelta(minutes=5)
RECENT_FAILURE: Final = timedelta(hours=1)
MAX_NAMED: Final = 5
_RESTART: Final = "systemctl restart {0} (or start it: tollhouse {1}), and read its log."
_BEAT: Final = _RESTART.format("tollhouse-beat", "beat")
_WORKER: Final = _RESTART.format("tollhouse-worker", "worker")


def examine_broker(_question: DoctorQuestion) -> Iterator[PartFinding]:
    """Whether the broker answers, holds no backlog, and forgets nothing."""
    mend = "Start the broker, or set CELERY_BROKER_URL right; without one run `tollhouse manage tick --forever`."
    try:
        with wakeup.open_broker_connection() as line:
            line.ensure_connection(max_retries=1, timeout=wakeup.BROKER_CONNECT_TIMEOUT_S)
            waiting = wakeup.count_queued_tasks(line)
            yield ok(f"The broker answers; {waiting} tasks wait.")
            full = error(f"{waiting} tasks wait: no worker takes them.", _WORKER)
            if waiting >= wakeup.MAX_QUEUED_WAKE_UPS:
                yield full
            yield from _examine_memory(line)
    except (OSError, OperationalError) as fault:
        yield error(f"The broker does not answer: {type(fault).__name__}.", mend)


def _examine_memory(line: Connection) -> Iterator[PartFinding]:
    """Whether Valkey or Redis may throw tasks away when memory is short."""
    if not line.as_uri().startswith("redis"):
        return
    held: Any = line.default_channel
    policy = held.client.info("memory").get("maxmemory_policy", "noeviction")
    evicts = warning(f"The broker throws keys away when its memory is short ({policy}).", "maxmemory-policy noeviction")
    yield judge(policy == "noeviction", "It throws nothing away.", evicts)


def examine_timers(_question: DoctorQuestion) -> Iterator[PartFinding]:
    """Whether beat and a worker are alive: some timer runs each minute. And whether all run in time."""
    rows = list(TimerRun.objects.filter(name__in=list(registry.TIMERS)))
    now = clock.real_now()
    late = sorted(row.name for row in rows if metrics.measure_timer_lag(row, now) > MAX_TIMER_LAG_S)
    if not rows:
        yield error("No timer has run yet: beat or worker is missing.", "Start both: tollhouse beat, tollhouse worker.")
    elif now - max(row.last_at for row in rows) > timedelta(seconds=MAX_TIMER_LAG_S):
        yield error("No timer runs: beat, worker or broker is dead.", _name_the_dead())
    elif late:
        yield warning(f"Timers that are late: {_name(late)}.", "Raise GATEWAY_WORKER_THREADS, or add a worker.")
    else:
        yield ok(f"Beat and worker are alive: {len(rows)} timers run in time.")
    yield from _examine_failures(rows)
    off = PeriodicTask.objects.filter(name__in=list(registry.TIMERS), enabled=False).values_list("name", flat=True)
    mend = "Switch them on in the back office, Periodic tasks."
    if off:
        yield warning(f"Timers that are switched off: {_name(sorted(off))}.", mend)


def _name_the_dead() -> str:
    """Tasks wait where the worker is dead, and none come where beat is."""
    try:
        with wakeup.open_broker_connection() as line:
            waiting = wakeup.count_queued_tasks(line)
    except (OSError, OperationalError):
        return "Start the broker."
    return _WORKER if waiting else _BEAT


def _examine_failures(rows: list[TimerRun]) -> Iterator[PartFinding]:
    since = clock.real_now() - RECENT_FAILURE
    for row in rows:
        if row.failed_at is not None and row.failed_at > since:
            about = f"The timer {row.name} failed within the hour: {row.last_failure}."
            yield warning(about, f"Look for timer_failed with timer={row.name} in the workers' logs.")


def examine_queues(_question: DoctorQuestion) -> Iterator[PartFinding]:
    """Whether what is due is done, and payments in doubt are settled."""
    ages = due_times.measure_queue_ages()
    old = {name: age for name, age in ages.items() if age is not None and age > MAX_QUEUE_AGE}
    for name, age in sorted(old.items(), key=lambda one: one[1], reverse=True)[:MAX_NAMED]:
        about = f"{name}: something has been due for {int(age.total_seconds() // 60)} minutes."
        yield warning(about, "See the timer above; the back office, Live board, shows its queue.")
    if not old:
        yield ok("Nothing that is due waits.")
    yield _examine_erasures()
    in_doubt = metrics.count_open_payments().oldest_in_doubt_s
    about = f"A payment has been in doubt for {int(in_doubt // 60)} minutes: the acquirer gives no answer."
    mend = "Back office, Acquirers' health: see its faults; then ask the acquirer (docs/running/alarms.md)."
    yield judge(in_doubt <= MAX_IN_DOUBT_S, "No payment is in doubt for long.", error(about, mend))


def _examine_erasures() -> PartFinding:
    """Whether a shopper's request to be forgotten waits too long for a second person or for the command."""
    late = find_late_erasures()
    if not late:
        return ok("No request to erase a shopper's data waits for long.")
    days = (clock.real_now() - late[0].asked_at).days
    about = f"{len(late)} requests to erase a shopper's data wait, the oldest for {days} days."
    approved = [row for row in late if row.state == row.State.APPROVED]
    if approved:
        return warning(about, f"tollhouse manage forget_shopper --request {approved[0].pk.hex}")
    return warning(about, "Back office, Approvals: a second person approves or rejects it.")


def examine_webhooks(_question: DoctorQuestion) -> Iterator[PartFinding]:
    """Whether webhooks leave in time (as the status page says), and which receivers are down."""
    _at, parts = read_status()
    part = next((one for one in parts if one.name == "webhooks"), None)
    if part is None:
        yield skipped("Webhooks are not known without the database.")
        return
    late = error(part.words, _WORKER)
    yield judge(part.state == "ok", part.words, late)
    paused = WebhookEndpoint.objects.filter(state=WebhookEndpoint.State.PAUSED).count()
    about = f"{paused} webhook endpoints are paused: their receivers fail, or a user paused them."
    mend = "Back office, Webhook endpoints, state paused: tell the merchants."
    yield judge(not paused, "No webhook endpoint is paused.", warning(about, mend))


def _name(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more

"""P9: a million active subscription jobs: how fast what is due is claimed, and what a tick costs that finds nothing.

The figures are taken in a process of the product (`python -m tests.benchmarks.jobs COUNT`), which prints them as JSON.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any, Final

from tests.benchmarks.ground import Ground
from tests.benchmarks.options import QUICK, Options
from tests.benchmarks.report import say
from tests.benchmarks.saturation import figure
from tests.benchmarks.targets import Figure, Gap

COUNT: Final = 1_000_000
QUICK_COUNT: Final = 100_000
DUE: Final = 20_000
CHARGED: Final = 200
IDLE_TICKS: Final = 200
CHUNK: Final = 50_000
_COLUMNS: Final = (
    "id", "merchant_id", "channel_id", "registration", "agreement", "state", "reason", "name", "payment_type", "amount",
    "currency", "test_mode", "request", "merchant_memo", "expression", "zone", "starts_at", "duration_unit",
    "duration_number", "notice_unit", "notice_number", "notice_callable", "next_at", "declined", "late", "sequence",
    "created_at",
)  # fmt: skip


def measure(ground: Ground, options: Options) -> tuple[list[Figure | Gap], dict[str, Any]]:
    """The figures of P9."""
    ground.prepare_product("jobs")
    count = QUICK_COUNT if options == QUICK else COUNT
    rounds = json.loads(ground.run("jobs", "-m", "tests.benchmarks.jobs", str(count), str(options.rounds)))
    say(f"  {count} jobs loaded in {rounds['load_s']:.0f} s")
    found: list[Figure | Gap] = [
        figure("P9.claim", rounds["claimed"], f"{DUE} due of {count}"),
        figure("P9.idle", rounds["idle_ms"], f"of {count} jobs, none due; median of {IDLE_TICKS}"),
        figure("P9.runs", rounds["runs"], f"{CHARGED} runs with their payments, one worker"),
    ]
    return found, {"jobs": rounds}


def main(count: int, rounds: int) -> dict[str, Any]:
    import django

    django.setup()
    from django.db import connection

    from gateway.models import Channel
    from gateway.scheduling import job_timer
    from gateway.scheduling.models import Job

    began = time.monotonic()
    channel = Channel.objects.select_related("merchant").earliest("created_at")
    registration = _registration(channel)
    _load(channel, registration, count)
    found: dict[str, Any] = {"load_s": time.monotonic() - began, "claimed": [], "idle_ms": [], "runs": []}
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE scheduling_job")
    for _ in range(rounds):
        ticks = []
        for _ in range(IDLE_TICKS):
            before = time.perf_counter()
            assert job_timer.run_due_jobs(None) == 0
            ticks.append((time.perf_counter() - before) * 1000)
        found["idle_ms"].append(statistics.median(ticks))
        _make_due(DUE)
        before, claimed = time.perf_counter(), 0
        while number := len(job_timer.claim_due_jobs(Job, job_timer.JOB_CLAIM_SIZE, _now())):
            claimed += number
        assert claimed == DUE
        found["claimed"].append(claimed / (time.perf_counter() - before))
        _all_later()
        _make_due(CHARGED)
        before, made = time.perf_counter(), 0
        while number := job_timer.run_due_jobs(None):
            made += number
        assert made == CHARGED
        found["runs"].append(made / (time.perf_counter() - before))
        _all_later()
    return found


def _now() -> Any:
    from gateway.core import clock

    return clock.real_now()


def _registration(channel: Any) -> Any:
    from gateway.core import identifiers
    from gateway.core.secret import Secret
    from gateway.models import Registration
    from gateway.vault.sealing import current_vault

    number, ident = "4200000000000000", identifiers.row_id()
    card = {"bin": number[:6], "last4Digits": number[-4:], "expiryMonth": "05", "expiryYear": "2094"}
    return Registration.objects.create(
        id=ident,
        merchant=channel.merchant,
        channel=channel,
        brand="VISA",
        method="CC",
        means="card",
        means_sealed=current_vault().seal(Secret(number), ident),
        details={"card": card},
        payment=ident,
        test_mode="INTERNAL",
        created_at=_now(),
    )


def _load(channel: Any, registration: Any, count: int) -> None:
    """COPY jobs in chunks: their next runs are spread over the coming year."""
    from datetime import timedelta

    from django.db import connection

    from gateway.core import identifiers
    from gateway.scheduling.job_records import build_job_agreement

    now = _now()
    agreement = build_job_agreement(
        identifiers.row_id(),
        channel.merchant_id,
        channel,
        registration.id,
        {},
        reference="bench",
        network_reference="",
        link="",
        brand="VISA",
        at=now,
    )
    agreement.save(force_insert=True)
    request = json.dumps({"amount": "9.90", "currency": "EUR", "paymentType": "DB", "job": {"month": "*"}})
    shared = (
        channel.merchant_id,
        channel.id,
        registration.id,
        agreement.id,
        "ACTIVE",
        "",
        "",
        "DB",
        "9.90",
        "EUR",
        "INTERNAL",
        request,
        "",
        "0 0 0 1 * ? *",
        "UTC",
        now,
        "",
        0,
        "",
        0,
        "",
    )
    connection.ensure_connection()
    names = ", ".join(_COLUMNS)
    for start in range(0, count, CHUNK):
        with connection.connection.cursor() as cursor, cursor.copy(f"COPY scheduling_job ({names}) FROM STDIN") as copy:
            for number in range(start, min(start + CHUNK, count)):
                next_at = now + timedelta(days=1, seconds=number * 31)
                copy.write_row((identifiers.row_id(), *shared, next_at, 0, 0, 1, now))


def _make_due(number: int) -> None:
    _sql(
        "UPDATE scheduling_job SET next_at = now() - interval '1 second', lease_until = NULL WHERE id IN"
        f" (SELECT id FROM scheduling_job WHERE next_at > now() ORDER BY next_at LIMIT {number:d})"
    )


def _all_later() -> None:
    _sql("UPDATE scheduling_job SET next_at = now() + interval '400 days' WHERE next_at <= now()")
    _sql("UPDATE scheduling_job SET lease_until = NULL WHERE lease_until IS NOT NULL")
    _sql("UPDATE scheduling_jobrun SET next_at = NULL")


def _sql(text: str) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(text)


if __name__ == "__main__":
    import os

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    sys.stdout.write(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))

"""A payment's rows with 36 monthly partitions against one, and how long an insert waits while a month is dropped.

`python -m tests.benchmarks.partitions [--pairs 10000]` prints both; docs/benchmarks.md has them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
import uuid
from typing import Any

import psycopg

from tests.benchmarks import report
from tests.benchmarks.ground import Ground

MONTHS = 36
WARM_UP = 100
BLOCK = 250
DROPPED = 20
_MONTHS_MADE = f"""
import django; django.setup()
from datetime import timedelta
from gateway.core import clock
from gateway.db import partitions
for table in partitions.PARTITIONED_TABLES:
    for back in range({MONTHS}, -1, -1):
        partitions.make_partitions(table, clock.real_now() - timedelta(days=30 * back))
    print(len(partitions.list_partitions(table)))
"""
_DROPPED = f"""
import django; django.setup()
import json, time
from datetime import timedelta
from django.test import override_settings
from gateway.db import partitions
table, found = partitions.PARTITIONED_TABLES[0], []
for _ in range({DROPPED}):
    time.sleep(1)
    oldest = partitions.list_partitions(table)[1]
    began = time.time()
    with override_settings(GATEWAY_REQUEST_LOG_DAYS=1):
        assert partitions.drop_partitions(table, oldest.high + timedelta(days=1)) == 1
    found.append((began, time.time()))
print(json.dumps(found))
"""
_FILLED = """
INSERT INTO gateway_requestlog (id, at, method, path, status, result_code, duration_ms)
SELECT (substr(to_hex((extract(epoch FROM month + number * interval '1 second') * 1000)::bigint + (1::bigint << 60)), 5)
    || '7000' || '8000' || lpad(to_hex(number), 12, '0'))::uuid,
    month, 'POST', '/v1/payments', 200, '000.100.110', 20
FROM generate_series(now() - interval '36 months', now() - interval '2 months', interval '1 month') AS month,
    generate_series(1, 20000) AS number
"""
_WRITTEN = """
WITH event AS (
    INSERT INTO gateway_paymentevent (payment_id, sequence, event, status, result_code, at)
    VALUES (%(payment)s, 2, 'approve', 'APPROVED', '000.100.110', now())
), exchange AS (
    INSERT INTO gateway_acquirerexchange (payment_id, connector, kind, sent, received, duration_ms, at)
    VALUES (%(payment)s, 'simulator', 'submit', '{"amount": "92.00"}', '{"code": "000.100.110"}', 20, now())
), notification AS (
    INSERT INTO gateway_notification (merchant_id, channel_id, kind, action, payment_id, sequence, created_at)
    VALUES (%(payment)s, %(payment)s, 'PAYMENT', 'CREATED', %(payment)s, 2, now())
)
INSERT INTO gateway_requestlog (id, at, method, path, status, result_code, entity_id, duration_ms, payment)
VALUES (%(request)s, now(), 'POST', '/v1/payments', 200, '000.100.110', %(payment)s, 20, %(payment)s)
"""
_INSERTED = """
INSERT INTO gateway_requestlog (id, at, method, path, status, result_code, duration_ms)
VALUES (%s, now(), 'POST', '/v1/payments', 200, '000.100.110', 20)
"""


def compare(ground: Ground, pairs: int) -> list[tuple[float, float]]:
    """Seconds in which the rows of a payment's second statement are inserted with one partition and with 36: the two in
    turn, one right after the other, with the plan kept and without waiting for the disk."""
    for name in ("one", "many"):
        ground.prepare_product(name)
    made = ground.run("many", "-c", _MONTHS_MADE, DJANGO_SETTINGS_MODULE="config.settings")
    report.say(f"partitions: {made.split()}")
    found = []
    with ground.connect("one") as one, ground.connect("many") as many:
        for line in (one, many):
            line.execute("SET synchronous_commit = off")
        for number in range(pairs + WARM_UP):
            pair = (one, many) if number % 2 else (many, one)
            took = {line: _write_payment(line) for line in pair}
            found.append((took[one], took[many]))
    return found[WARM_UP:]


def _write_payment(line: psycopg.Connection[Any]) -> float:
    values = {"payment": fresh_id(), "request": fresh_id()}
    began = time.perf_counter()
    line.execute(_WRITTEN, values, prepare=True)
    return time.perf_counter() - began


def drop_while_inserting(ground: Ground) -> tuple[list[float], list[float], list[float]]:
    """Seconds of each insert of one thread while no month was dropped and while one was, and of each drop; months have
    20,000 rows."""
    ended = threading.Event()
    taken: list[tuple[float, float]] = []

    def insert() -> None:
        with ground.connect("many") as line:
            line.execute("SET synchronous_commit = off")
            while not ended.is_set():
                began = time.time()
                line.execute(_INSERTED, [fresh_id()], prepare=True)
                taken.append((began, time.time()))

    with ground.connect("many") as line:
        line.execute(_FILLED)
    thread = threading.Thread(target=insert)
    thread.start()
    drops = json.loads(ground.run("many", "-c", _DROPPED, DJANGO_SETTINGS_MODULE="config.settings").splitlines()[-1])
    ended.set()
    thread.join()
    during = [b - a for a, b in taken if any(a < end and b > begin for begin, end in drops)]
    alone = [b - a for a, b in taken if drops[0][0] < a < drops[-1][1] and not any(a < e and b > d for d, e in drops)]
    return alone, during, [end - begin for begin, end in drops]


def fresh_id() -> uuid.UUID:
    """A UUID that begins with the milliseconds of now."""
    return uuid.UUID(int=(int(time.time() * 1000) << 80) | (uuid.uuid4().int & ((1 << 80) - 1)))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.partitions", description=__doc__)
    parser.add_argument("--pairs", type=int, default=10_000)
    options = parser.parse_args(arguments)
    with Ground() as ground:
        found = compare(ground, options.pairs)
        one, many = (1e6 * statistics.median(pair[side] for pair in found) for side in (0, 1))
        report.say(f"a payment's rows: {one:.0f} µs with one partition, {many:.0f} µs with {MONTHS}: {many / one:.3f}")
        blocks = [found[start : start + BLOCK] for start in range(0, len(found) - BLOCK + 1, BLOCK)]
        ratios = [statistics.median(b for _, b in block) / statistics.median(a for a, _ in block) for block in blocks]
        low, middle, high = statistics.quantiles(ratios, n=4)
        report.say(f"of {len(ratios)} blocks of {BLOCK} pairs: {middle:.3f} ({low:.3f} … {high:.3f})")
        alone, during, drops = drop_while_inserting(ground)
        names = ("inserts while nothing was dropped", "inserts while a month was dropped", "drops")
        for name, taken in zip(names, (alone, during, drops), strict=True):
            longest = ", ".join(f"{1000 * one:.1f}" for one in sorted(taken)[-3:])
            report.say(f"{name}: {len(taken)}, median {1000 * statistics.median(taken):.2f}, longest {longest} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

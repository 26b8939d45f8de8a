"""P6: few payments and many, side by side, and the plans of every statement that the endpoints send."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import psycopg

from gateway.core.identifiers import format_short_id
from tests.benchmarks import load, meter, traffic
from tests.benchmarks.ground import PRODUCT, Ground, Site
from tests.benchmarks.options import Options
from tests.benchmarks.report import say
from tests.benchmarks.saturation import Numbers, figure
from tests.benchmarks.targets import Figure, Gap

SHARE: Final = 0.3
READ: Final = 5_000
ASKED: Final = 500
"""Payments that queries look for."""
WARM: Final = 20
ASKED_OF_A_SHAPE: Final = 300
MADE: Final = ("post", "get", "query")
SMALL_ROWS: Final = 1_000
"""A table of fewer rows may be read whole: that is the quickest way."""
PLANNED: Final = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")


@dataclass(slots=True, kw_only=True)
class Scale:
    """One database with so many payments, its site, and what was measured: name → rounds."""

    count: int
    site: Site
    post: traffic.Make
    get: traffic.Make
    query: traffic.Make
    shapes: Mapping[str, traffic.Make]
    rounds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def database(self) -> str:
        return name_of(self.count)


def name_of(count: int) -> str:
    return f"scale_{count}"


def measure(ground: Ground, options: Options, counts: Sequence[int]) -> tuple[list[Figure | Gap], dict[str, Any]]:
    """The figures of P6: ratios of the most rows to the fewest, in alternating rounds."""
    counts = sorted(set(counts))
    shops = {count: _fill(ground, count) for count in counts}
    scales = [_open(ground, count, shops[count]) for count in counts]
    numbers = Numbers()
    # Twice: the first one starts threads and connections, the second one tells what half load is.
    for one in (*scales, *scales):
        for name in MADE:
            _closed(ground, one, name, "warm", numbers, seconds=2.0, options=options)
    rates = {name: scales[0].rounds[f"{name}.warm.rate"][-1] / 2 for name in MADE}
    for number in range(options.rounds):
        for one in scales if number % 2 == 0 else reversed(scales):
            for name in MADE:
                _closed(ground, one, name, "closed", numbers, seconds=options.seconds, options=options)
                result = load.opened(
                    one.site.port, getattr(one, name), seconds=options.seconds, first=numbers.take(), rate=rates[name]
                ).result()
                one.rounds.setdefault(f"{name}.p99", []).append(result.percentile_ms(0.99))
                one.rounds.setdefault(f"{name}.p50", []).append(result.percentile_ms(0.5))
    for one in scales:
        told = {name: round(statistics.median(values), 3) for name, values in one.rounds.items() if "warm" not in name}
        say(f"  {one.count}: {told}")
    found = list(_ratios(scales, rates))
    shapes = {one.count: _shapes(ground, one) for one in scales}
    found += _slowest(shapes[counts[-1]], counts[-1])
    raw = {"scale": {str(one.count): one.rounds for one in scales}, "query shapes in ms": shapes}
    scans, plans = _scans(ground, counts[-1], shops[counts[-1]])
    found.append(Figure(target="P6.scans", measured=len(scans), remark="; ".join(scans)[:200] or f"{plans} plans"))
    return found, raw


def _fill(ground: Ground, count: int) -> traffic.Shop:
    shop = ground.prepare_product(name_of(count))
    started = time.monotonic()
    ground.run(
        name_of(count),
        "-m",
        "tests.benchmarks.load_payments",
        "--count",
        str(count),
        "--share",
        str(SHARE),
        "--channel",
        shop.entity,
    )
    say(f"  {count} payments loaded in {time.monotonic() - started:.1f} s")
    return shop


def _open(ground: Ground, count: int, shop: traffic.Shop) -> Scale:
    with ground.connect(name_of(count)) as connection:
        connection.execute("CHECKPOINT")
        rows = connection.execute(
            "SELECT id FROM gateway_payment WHERE channel_id = %s AND status = 'APPROVED' AND random() < %s LIMIT %s",
            (shop.entity, min(1.0, 2 * READ / (count * SHARE)), READ),
        ).fetchall()
        site = ground.open_site(name_of(count), PRODUCT, name_of(count))
        ids = [row[0].hex for row in rows]
        known = connection.execute(
            "SELECT id, merchant_transaction_id, number FROM gateway_payment WHERE channel_id = %s"
            " AND merchant_transaction_id <> '' AND random() < %s LIMIT %s",
            (shop.entity, min(1.0, 2 * ASKED / (count * SHARE)), ASKED),
        ).fetchall()
    shapes = traffic.query_shapes(
        shop,
        [traffic.Known(id=one.hex, order=order, short_id=format_short_id(number)) for one, order, number in known],
        datetime.now(UTC),
    )
    return Scale(
        count=count,
        site=site,
        post=traffic.payments(shop),
        get=traffic.reads(shop, ids),
        query=traffic.queries(shapes),
        shapes=shapes,
    )


def _closed(
    ground: Ground, one: Scale, name: str, kind: str, numbers: Numbers, *, seconds: float, options: Options
) -> None:
    make: traffic.Make = getattr(one, name)
    before = meter.cpu_seconds(one.site.pid, ground.postgres_pid)
    result = load.closed(
        one.site.port, make, seconds=seconds, first=numbers.take(), connections=options.connections
    ).result()
    used = meter.cpu_seconds(one.site.pid, ground.postgres_pid) - before
    if result.answered == 0 or result.failed:
        raise RuntimeError(f"{one.database}: {result.answered} answers, failed {result.errors}")
    one.rounds.setdefault(f"{name}.{kind}.cpu_ms", []).append(used * 1000 / result.answered)
    one.rounds.setdefault(f"{name}.{kind}.rate", []).append(result.rate)


def _ratios(scales: Sequence[Scale], rates: dict[str, float]) -> Iterator[Figure | Gap]:
    few, many = scales[0], scales[-1]
    for name in MADE:
        for what, key in (("cpu", f"{name}.closed.cpu_ms"), ("p99", f"{name}.p99")):
            ratios = [most / least for most, least in zip(many.rounds[key], few.rounds[key], strict=True)]
            medians = [statistics.median(one.rounds[key]) for one in (few, many)]
            remark = f"{medians[0]:.2f} → {medians[1]:.2f} ms, {few.count} → {many.count}"
            if what == "p99":
                remark += f", at {rates[name]:.0f}/s"
            yield figure(f"P6.{name}.{what}", ratios, remark)
    remark = f"{many.count} payments, at {rates['query']:.0f}/s"
    yield figure("P6.query.ms", many.rounds["query.p99"], remark)


# --- shapes of queries ------------------------------------------------------------------------------------------


def _shapes(ground: Ground, one: Scale) -> dict[str, dict[str, float]]:
    """Shape → median, 99th percentile and CPU in ms, one query after the other on one connection."""
    found = {}
    for name, make in one.shapes.items():
        load.closed(one.site.port, make, seconds=5, first=0, connections=1, most=WARM).result()
        before = meter.cpu_seconds(one.site.pid, ground.postgres_pid)
        result = load.closed(one.site.port, make, seconds=20, first=WARM, connections=1, most=ASKED_OF_A_SHAPE).result()
        used = meter.cpu_seconds(one.site.pid, ground.postgres_pid) - before
        if not result.answered:
            say(f"  {one.count}: {name}: finds nothing, {result.errors}")  # answered 400, of which no time is kept
            continue
        found[name] = {
            "p50": round(result.percentile_ms(0.5), 2),
            "p99": round(result.percentile_ms(0.99), 2),
            "cpu": round(used * 1000 / result.answered, 2),
        }
        say(f"  {one.count}: {name}: {found[name]}")
    return found


def _slowest(shapes: Mapping[str, Mapping[str, float]], count: int) -> Iterator[Figure]:
    for key, target in (("p99", "P6.shape.ms"), ("cpu", "P6.shape.cpu")):
        name = max(shapes, key=lambda each: shapes[each][key])
        yield Figure(target=target, measured=shapes[name][key], remark=f"{name}, {count} payments")


# --- plans ----------------------------------------------------------------------------------------------------


def _scans(ground: Ground, count: int, shop: traffic.Shop) -> tuple[list[str], int]:
    """The sequential scans of large tables in the plans of every statement that the endpoints send, and the number of
    plans looked at."""
    ground.restart(shared_preload_libraries="pg_stat_statements")
    database = name_of(count)
    with ground.connect("postgres") as watch:
        watch.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        meter.forget_statements(watch)
    site = ground.open_site("plans", PRODUCT, database)
    _walk_endpoints(site, shop)
    found, plans = [], 0
    with ground.connect("postgres") as watch, ground.connect(database) as connection:
        large = {
            row[0]
            for row in connection.execute("SELECT relname FROM pg_class WHERE reltuples > %s", (SMALL_ROWS,)).fetchall()
        }
        for text, _ in meter.statements(watch, database):
            if text.lstrip().upper().startswith(PLANNED) and not meter.is_key_check(text):
                plans += 1
                whole = [table for table in _scanned(connection, text) if table in large]
                found += [f"{table}: {' '.join(text.split())[:80]}" for table in whole]
    ground.restart()
    return found, plans


def _walk_endpoints(site: Site, shop: traffic.Shop) -> None:
    """Every way into the payments' tables: with key, without, again with the same key, read, captured, refunded."""

    def one(make: traffic.Make, first: int) -> str:
        result = load.closed(site.port, make, seconds=10, first=first, connections=1, most=1).result()
        if not result.answered:
            raise RuntimeError(f"failed {result.errors}")
        return str(json.loads(result.sample.partition(b"\r\n\r\n")[2])["id"])

    start = 999_900_000_000
    paid = one(traffic.payments(shop), start)
    one(traffic.payments(shop), start)
    held = one(traffic.payments(shop, with_key=False, more=(("paymentType", "PA"),)), start + 1)
    one(traffic.follow_ups(shop, held, kind="CP", amount="10.00"), 0)
    one(traffic.follow_ups(shop, held, kind="RV", amount="20.00"), 0)
    one(traffic.follow_ups(shop, paid, kind="RF", amount="5.00"), 0)
    one(traffic.reads(shop, [paid]), 0)
    known = traffic.Known(id=paid, order=traffic.order_of(start), short_id="0000.0000.0000")
    for shape in traffic.query_shapes(shop, [known], datetime.now(UTC)).values():
        load.closed(site.port, shape, seconds=10, first=0, connections=1, most=1).result()


def _scanned(connection: psycopg.Connection[Any], text: str) -> list[str]:
    """Tables that the statement's generic plan reads from end to end; 'no plan' when there is none."""
    try:
        # The driver must not take the statement's own %s or $1 for its parameters.
        rows = connection.execute(b"EXPLAIN (GENERIC_PLAN, FORMAT JSON) " + text.encode()).fetchall()
    except psycopg.Error as fault:
        say(f"  no plan for {' '.join(text.split())[:80]}: {str(fault).splitlines()[0]}")
        return []
    return list(_sequential(rows[0][0][0]["Plan"]))


def _sequential(plan: dict[str, Any]) -> Iterator[str]:
    if plan["Node Type"] == "Seq Scan":
        yield plan["Relation Name"]
    for part in plan.get("Plans", ()):
        yield from _sequential(part)

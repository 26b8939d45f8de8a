"""P4: counted, not timed. Round trips by pg_stat_statements, commits by transaction numbers, bytes by table sizes."""

from __future__ import annotations

from typing import Any

from tests.benchmarks import load, meter, traffic
from tests.benchmarks.ground import PRODUCT, Ground
from tests.benchmarks.options import Options
from tests.benchmarks.report import say
from tests.benchmarks.targets import Figure, Gap

WARM_UP = 60
"""Payments before counting: connections are open, and plans are kept."""
EARLIER_BATCHES = 2
COUNTED_BATCHES = 4
"""Of bytes. With one of each a payment of one build took 2,440 to 2,540, by the room that the earlier one had left."""


def measure(ground: Ground, options: Options) -> tuple[list[Figure | Gap], dict[str, Any]]:
    """The figures of P4. PostgreSQL is started anew with pg_stat_statements, and again without."""
    try:
        ground.restart(shared_preload_libraries="pg_stat_statements")
    except Exception as fault:
        ground.restart()
        return [Gap(target="P4.trips", why=f"no pg_stat_statements: {fault}"[:80])], {}
    shop = ground.prepare_product("counted")
    site = ground.open_site("counted", PRODUCT, "counted")
    with ground.connect("postgres") as watch:
        watch.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    plain, keyed = traffic.payments(shop, with_key=False), traffic.payments(shop)
    for first, make in ((1, plain), (10_001, keyed)):
        load.closed(site.port, make, seconds=30, first=first, connections=4, most=WARM_UP).result()
    counts = {}
    bytes_plain = _grown(ground, site.port, plain, 20_001, options.counted)
    bytes_keyed = _grown(ground, site.port, keyed, 40_001, options.counted)
    for name, make, first in (("payment", plain, 60_001), ("keyed", keyed, 70_001)):
        counts[name] = _counted(ground, site.port, make, first, min(200, options.counted))
    with ground.connect("counted") as connection:
        rows = {
            name: meter.row_bytes(connection, name) for name in meter.filled_tables(connection) if name in bytes_plain
        }
        ids = [row[0].hex for row in connection.execute("SELECT id FROM gateway_payment LIMIT 100").fetchall()]
    load.closed(site.port, traffic.reads(shop, ids), seconds=30, first=0, connections=4, most=WARM_UP).result()
    counts["get"] = _counted(ground, site.port, traffic.reads(shop, ids), 0, 200)
    for name, one in counts.items():
        say(f"  {name}: {one['trips']:.2f} round trips, {one['commits']:.2f} commits")
    ground.restart()
    return [
        Figure(
            target="P4.commits",
            measured=round(counts["payment"]["commits"], 2),
            remark=f"with key {counts['keyed']['commits']:.2f}",
        ),
        Figure(
            target="P4.trips",
            measured=round(counts["payment"]["trips"], 2),
            remark=f"{counts['payment']['key_checks']:.0f} foreign-key checks inside the commits",
        ),
        Figure(target="P4.key", measured=round(counts["keyed"]["trips"], 2)),
        Figure(target="P4.get", measured=round(counts["get"]["trips"], 2)),
        Figure(target="P4.bytes", measured=round(sum(bytes_plain.values()))),
        Figure(target="P4.keybytes", measured=round(sum(bytes_keyed.values()))),
    ], {"counted": counts, "bytes": {"payment": bytes_plain, "keyed": bytes_keyed}, "rows": rows}


def _counted(ground: Ground, port: int, make: traffic.Make, first: int, number: int) -> dict[str, Any]:
    with ground.connect("postgres") as watch:
        meter.forget_statements(watch)
        before = meter.writing_transactions(watch)
        result = load.closed(port, make, seconds=60, first=first, connections=1, most=number).result()
        commits = meter.writing_transactions(watch) - before
        sent = [(text, calls) for text, calls in meter.statements(watch, "counted") if calls > number // 10]
    if result.answered != number:
        raise RuntimeError(f"{result.answered} of {number} answers, failed {result.errors}")
    return {
        "commits": commits / number,
        "trips": sum(calls for text, calls in sent if not meter.is_key_check(text)) / number,
        "key_checks": sum(calls for text, calls in sent if meter.is_key_check(text)) / number,
        "statements": [[calls / number, " ".join(text.split())[:200]] for text, calls in sent],
    }


def _grown(ground: Ground, port: int, make: traffic.Make, first: int, number: int) -> dict[str, float]:
    """Bytes that a payment adds for good, by table and index.

    Earlier batches leave the room that later ones use again, as a VACUUM frees it.
    """
    sizes = []
    for batch in range(EARLIER_BATCHES + COUNTED_BATCHES):
        load.closed(port, make, seconds=120, first=first + batch * number, connections=8, most=number).result()
        with ground.connect("counted") as connection:
            connection.execute("VACUUM")
            sizes.append(meter.stored_bytes(connection))
    before, after = sizes[EARLIER_BATCHES - 1], sizes[-1]
    grown = {name: (size - before.get(name, 0)) / (COUNTED_BATCHES * number) for name, size in after.items()}
    return {name: round(size, 1) for name, size in sorted(grown.items(), key=lambda one: -one[1]) if size}

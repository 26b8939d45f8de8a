"""P5, and the last of P4: a slow acquirer holds up no other payment, and no transaction is open meanwhile."""

from __future__ import annotations

import statistics
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from gateway.core import identifiers
from tests.benchmarks import load, traffic
from tests.benchmarks.ground import Ground
from tests.benchmarks.options import Options
from tests.benchmarks.report import say
from tests.benchmarks.saturation import Numbers, figure
from tests.benchmarks.targets import Figure, Gap
from tests.support.ports import free_port

IN_FLIGHT: Final = 600
THINKS_S: Final = 2.0
LONG_S: Final = 4.0
"""Long enough that all that came before the thinking is over for sure, also on a busy machine."""
THREADS: Final = 512
"""Of each of two web workers. They share the sessions of the database that the default has."""
WAITING: Final = 448
"""Of these, how many may wait for one account (docs/routing.md): connections spread over the workers by chance, so each
gets room for more than half of the crowd; the others are left to whoever is not slow."""
OTHERS_RATE: Final = 50.0
BUSY: Final = 0.7
"""Of what goes through at most; above it requests queue whatever they wait for, and latencies tell of the queue."""
EXTERNAL: Final = (("testMode", "EXTERNAL"),)
AT_SECOND: Final = (*EXTERNAL, ("currency", "USD"))
"""The slow acquirer's account takes EUR, the second one's USD."""
SITE: Final = "tests.benchmarks.second:application"


def measure(ground: Ground, options: Options) -> tuple[list[Figure | Gap], dict[str, Any]]:
    """The figures of P5 and P4.thinks; gaps while there is no slow acquirer to ask."""
    try:
        from config.launcher.programs import PythonProgram
        from tests.support.stub_control import StubControl
    except ImportError as missing:
        why = f"no stub acquirer yet ({missing.name})"
        return [Gap(target=name, why=why) for name in ("P4.thinks", "P5.flight", "P5.harm", "P5.acquirer")], {}
    shop = ground.prepare_product("waiting")
    _open_accounts(ground, shop)
    ports = {name: free_port() for name in ("slow", "second")}
    for name, port in ports.items():
        log = ground.var / f"{name}.jsonl"
        arguments = ["gateway.connectors.stub.acquirer", "--port", str(port), "--log", str(log)]
        acquirer = PythonProgram(name, arguments, var=ground.var, environment=ground.environment("waiting"))
        ground.keep(acquirer)
        acquirer.start()
    site = ground.open_site(
        "waiting",
        SITE,
        "waiting",
        threads=THREADS,
        GATEWAY_STUB_ACQUIRER=f"127.0.0.1:{ports['slow']}",
        GATEWAY_ACQUIRER_MAX_IN_FLIGHT=str(WAITING),
        SECOND_ACQUIRER=f"127.0.0.1:{ports['second']}",
    )
    control = StubControl(f"127.0.0.1:{ports['slow']}")
    fast, slow, second = (traffic.payments(shop, more=more) for more in ((), EXTERNAL, AT_SECOND))
    numbers = Numbers()
    # Every connection of the pool is opened once, at a time that nobody measures.
    for make in (fast, slow, second):
        load.closed(site.port, make, seconds=2, first=numbers.take(), connections=IN_FLIGHT).result()
    _expect_both(ground)
    control.steer(delay_ms=int(LONG_S * 1000))
    thinks = _open_while_thinking(ground, site.port, slow, numbers)
    control.steer(delay_ms=0)
    sessions = _sessions(ground)
    most = load.closed(site.port, slow, seconds=2, first=numbers.take(), connections=16).result().rate
    seconds = max(options.seconds, 3 * THINKS_S)
    # One tenth more than the goal, since they come at random; alone, as many come to the same acquirer, which answers
    # at once: the same work, and nobody who waits.
    rate = 1.1 * IN_FLIGHT / THINKS_S
    wanted = rate + OTHERS_RATE
    rounds: list[dict[str, float]] = []
    totals: defaultdict[str, load.Result] = defaultdict(load.Result)
    for _ in range(max(2, options.rounds // 2)):
        found: dict[str, float] = {}
        for name, make, thinks_s in (
            ("alone", fast, 0.0),
            ("beside", fast, THINKS_S),
            ("second_beside", second, THINKS_S),
            ("second_alone", second, 0.0),
        ):
            control.steer(delay_ms=int(thinks_s * 1000))
            crowd = load.opened(
                site.port,
                slow,
                seconds=seconds,
                first=numbers.take(),
                rate=rate,
                connections=IN_FLIGHT + IN_FLIGHT // 4,
            )
            time.sleep(THINKS_S)  # from now on as many answers come as payments go out
            measured = load.opened(
                site.port, make, seconds=seconds - THINKS_S, first=numbers.take(), rate=OTHERS_RATE, connections=32
            )
            if name == "beside":
                found["in_flight"], most_sessions = _in_flight(ground, seconds - THINKS_S)
                sessions = max(sessions, most_sessions)
            result, others = measured.result(), crowd.result()
            totals[name].latencies.extend(result.latencies)
            found |= {
                f"{name}_p50_ms": result.percentile_ms(0.5),
                f"{name}_p99_ms": result.percentile_ms(0.99),
                f"{name}_failed": float(result.failed + others.failed),
            }
        rounds.append(found)
        say(f"  { {name: round(value, 2) for name, value in found.items()} }")
    alone, beside, second_alone, second_beside = (
        round(statistics.median(one[f"{name}_p50_ms"] for one in rounds), 2)
        for name in ("alone", "beside", "second_alone", "second_beside")
    )
    refused = _refused(ground)
    flight = figure(
        "P5.flight",
        [one["in_flight"] for one in rounds],
        f"{WAITING} of {THREADS} threads in each of 2 workers; {refused} refused; at most {sessions:.0f} sessions",
    )
    raw = {"waiting": rounds, "waiting_most": most, "waiting_refused": refused}
    if wanted > BUSY * most:
        why = f"too busy to tell: the machine carries {most:.0f} payments a second just now, these were {wanted:.0f}"
        unseen: list[Figure | Gap] = [Gap(target=name, why=why) for name in ("P5.flight", "P5.harm", "P5.acquirer")]
        return [Figure(target="P4.thinks", measured=thinks), *unseen], raw
    return [
        Figure(target="P4.thinks", measured=thinks),
        flight,
        _harm("P5.harm", rounds, totals, "", f"median {alone} ms alone, {beside} ms beside them"),
        _harm(
            "P5.acquirer", rounds, totals, "second_", f"median {second_alone} ms alone, {second_beside} ms beside them"
        ),
    ], raw


def _harm(
    target: str, rounds: list[dict[str, float]], totals: Mapping[str, load.Result], which: str, remark: str
) -> Figure:
    """The p99 beside the slow acquirer divided by the p99 without it, over the payments of all rounds: one round has
    200, of which the p99 is the third slowest. Least and most are of single rounds."""
    found = figure(target, [one[f"{which}beside_p99_ms"] / one[f"{which}alone_p99_ms"] for one in rounds], remark)
    beside, alone = (totals[f"{which}{name}"].percentile_ms(0.99) for name in ("beside", "alone"))
    return replace(found, measured=beside / alone)


def _open_accounts(ground: Ground, shop: traffic.Shop) -> None:
    with ground.connect("waiting") as connection:
        # The seeded one takes every currency, and was there first.
        connection.execute("UPDATE gateway_acquireraccount SET active = false WHERE channel_id = %s", (shop.entity,))
        for connector, currency in (("stub", "EUR"), ("second", "USD")):
            connection.execute(
                "INSERT INTO gateway_acquireraccount"
                " (id, channel_id, connector, name, acquirer_merchant_id, brands, currencies, settings, active)"
                " VALUES (%s, %s, %s, %s, 'M1', '{}', ARRAY[%s], '{}', true)",
                (identifiers.row_id(), shop.entity, connector, connector, currency),
            )


def _refused(ground: Ground) -> int:
    """Payments that were not approved: by the bulkhead or the breaker, which are fast and would look like health."""
    with ground.connect("waiting") as watch:
        row = watch.execute("SELECT count(*) FROM gateway_payment WHERE status <> 'APPROVED'").fetchone()
    assert row is not None
    return int(row[0])


def _expect_both(ground: Ground) -> None:
    """Raise unless either acquirer was asked: what is measured beside a slow one must not have gone to it."""
    with ground.connect("waiting") as watch:
        rows = watch.execute("SELECT DISTINCT connector FROM gateway_payment").fetchall()
    if not {"stub", "second", "simulator"} <= {name for (name,) in rows}:
        raise RuntimeError(f"payments went to {rows} alone")


def _open_while_thinking(ground: Ground, port: int, slow: traffic.Make, numbers: Numbers) -> float:
    """Sessions that are in a transaction, or have done anything, while twenty payments wait for their acquirer."""
    running = load.closed(port, slow, seconds=60, first=numbers.take(), connections=20, most=20)
    time.sleep(LONG_S - 0.6)
    with ground.connect("postgres") as watch:
        row = watch.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = 'waiting' AND backend_type = 'client backend'"
            " AND (state <> 'idle' OR state_change > clock_timestamp() - interval '1 second')"
        ).fetchone()
    result = running.result()
    if result.answered != 20 or result.percentile_ms(0) < LONG_S * 1000:
        raise RuntimeError(f"the acquirer did not take its time: {result.answered} answers, {result.errors}")
    assert row is not None
    return float(row[0])


def _sessions(ground: Ground) -> float:
    """How many sessions the benchmark's database has: the web server's and the watching one."""
    with ground.connect("postgres") as watch:
        row = watch.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = 'waiting' AND backend_type = 'client backend'"
        ).fetchone()
    assert row is not None
    return float(row[0])


def _in_flight(ground: Ground, seconds: float) -> tuple[float, float]:
    """Payments that were begun and wait for the acquirer: the median of looks, once it is as full as it gets; and the
    most sessions of the database that were seen."""
    looks, sessions = [], 0.0
    end = time.monotonic() + seconds
    time.sleep(THINKS_S)
    with ground.connect("waiting") as watch:
        while time.monotonic() < end - 0.3:
            row = watch.execute("SELECT count(*) FROM gateway_payment WHERE status = 'STARTED'").fetchone()
            assert row is not None
            looks.append(float(row[0]))
            sessions = max(sessions, _sessions(ground))
            time.sleep(0.3)
    return statistics.median(looks), sessions

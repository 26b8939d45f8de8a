"""P5, and the last of P4: an acquirer that takes its time ties up nobody else, and no transaction."""

from __future__ import annotations

import statistics
import time
from typing import Any, Final

from gateway import identifiers
from tests.benchmarks import load, traffic
from tests.benchmarks.ground import Ground, free_port
from tests.benchmarks.options import Options
from tests.benchmarks.report import say
from tests.benchmarks.saturation import Numbers, figure
from tests.benchmarks.targets import Figure, Gap

IN_FLIGHT: Final = 200
THINKS_S: Final = 2.0
LONG_S: Final = 4.0
"""Long enough that all that came before the thinking is over for sure, also on a busy machine."""
THREADS: Final = 192
"""Of each of two web workers: connections spread over them by chance, so each gets room for more than half."""
OTHERS_RATE: Final = 50.0
EXTERNAL: Final = (("testMode", "EXTERNAL"),)
AT_SECOND: Final = (*EXTERNAL, ("currency", "USD"))
"""The slow acquirer's account takes EUR, the second one's USD."""
SITE: Final = "tests.benchmarks.second:application"


def measure(ground: Ground, options: Options) -> tuple[list[Figure | Gap], dict[str, Any]]:
    """The figures of P5 and P4.thinks; gaps while there is no slow acquirer to ask."""
    try:
        from config.launcher.programs import Program
        from gateway.connectors.stub.control import StubControl
    except ImportError as missing:
        why = f"no stub acquirer yet ({missing.name})"
        return [Gap(target=name, why=why) for name in ("P4.thinks", "P5.flight", "P5.harm", "P5.acquirer")], {}
    # Every thread keeps a database connection.
    ground.restart(max_connections=2 * THREADS + 50)
    shop = ground.prepare_product("waiting")
    _open_accounts(ground, shop)
    ports = {name: free_port() for name in ("slow", "second")}
    for name, port in ports.items():
        log = ground.var / f"{name}.jsonl"
        arguments = ["gateway.connectors.stub.acquirer", "--port", str(port), "--log", str(log)]
        acquirer = Program(name, arguments, var=ground.var, environment=ground.environment("waiting"))
        ground.keep(acquirer)
        acquirer.start()
    site = ground.open_site(
        "waiting", SITE, "waiting", threads=THREADS, GATEWAY_STUB_ACQUIRER=f"127.0.0.1:{ports['slow']}",
        GATEWAY_ACQUIRER_MAX_IN_FLIGHT=str(THREADS), SECOND_ACQUIRER=f"127.0.0.1:{ports['second']}",
    )  # fmt: skip
    control = StubControl(f"127.0.0.1:{ports['slow']}")
    fast, slow, second = (traffic.payments(shop, more=more) for more in ((), EXTERNAL, AT_SECOND))
    numbers = Numbers()
    # Every connection of the pool is opened once, at a time that nobody measures.
    for make in (fast, slow, second):
        load.closed(site.port, make, seconds=2, first=numbers.take(), connections=IN_FLIGHT).result()
    control.steer(delay_ms=int(LONG_S * 1000))
    thinks = _open_while_thinking(ground, site.port, slow, numbers)
    control.steer(delay_ms=int(THINKS_S * 1000))
    seconds = max(options.seconds, 3 * THINKS_S)
    # One fifth more than the goal, since they come at random; alone, as many payments come, but none has to wait.
    rate = 1.2 * IN_FLIGHT / THINKS_S
    rounds: list[dict[str, float]] = []
    for _ in range(max(2, options.rounds // 2)):
        found: dict[str, float] = {}
        # Who is measured, beside which crowd: the same payments at the same rate, of which one crowd has to wait.
        for name, make, crowds in (("alone", fast, fast), ("beside", fast, slow), ("second_alone", second, second),
                                   ("second_beside", second, slow)):  # fmt: skip
            crowd = load.opened(
                site.port, crowds, seconds=seconds, first=numbers.take(), rate=rate, connections=THREADS * 2 - 60
            )
            time.sleep(THINKS_S / 4)
            measured = load.opened(
                site.port, make, seconds=seconds - THINKS_S, first=numbers.take(), rate=OTHERS_RATE, connections=32
            )
            if name == "beside":
                found["in_flight"] = _in_flight(ground, seconds - THINKS_S)
            result, others = measured.result(), crowd.result()
            found |= {
                f"{name}_p50_ms": result.percentile_ms(0.5), f"{name}_p99_ms": result.percentile_ms(0.99),
                f"{name}_failed": float(result.failed + others.failed),
            }  # fmt: skip
        rounds.append(found)
        say(f"  { {name: round(value, 2) for name, value in found.items()} }")
    alone, beside, second_alone, second_beside = (
        round(statistics.median(one[f"{name}_p50_ms"] for one in rounds), 2)
        for name in ("alone", "beside", "second_alone", "second_beside")
    )
    return [
        Figure(target="P4.thinks", measured=thinks),
        figure("P5.flight", [one["in_flight"] for one in rounds], f"{THREADS} threads in each of 2 workers"),
        figure(
            "P5.harm", [one["beside_p99_ms"] / one["alone_p99_ms"] for one in rounds],
            f"median {alone} ms alone, {beside} ms beside them",
        ),
        figure(
            "P5.acquirer", [one["second_beside_p99_ms"] / one["second_alone_p99_ms"] for one in rounds],
            f"median {second_alone} ms alone, {second_beside} ms beside them",
        ),
    ], {"waiting": rounds}  # fmt: skip


def _open_accounts(ground: Ground, shop: traffic.Shop) -> None:
    with ground.connect("waiting") as connection:
        for connector, currency in (("stub", "EUR"), ("second", "USD")):
            connection.execute(
                "INSERT INTO gateway_acquireraccount"
                " (id, channel_id, connector, name, acquirer_merchant_id, brands, currencies, settings, active)"
                " VALUES (%s, %s, %s, %s, 'M1', '{}', ARRAY[%s], '{}', true)",
                (identifiers.row_id(), shop.entity, connector, connector, currency),
            )


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


def _in_flight(ground: Ground, seconds: float) -> float:
    """Payments that were begun and wait for the acquirer: the median of looks, once it is as full as it gets."""
    looks = []
    end = time.monotonic() + seconds
    time.sleep(THINKS_S)
    with ground.connect("waiting") as watch:
        while time.monotonic() < end - 0.3:
            row = watch.execute("SELECT count(*) FROM gateway_payment WHERE status = 'STARTED'").fetchone()
            assert row is not None
            looks.append(float(row[0]))
            time.sleep(0.3)
    return statistics.median(looks)

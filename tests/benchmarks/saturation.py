"""P1, P2, P3: the product and its baselines in alternating rounds of one run."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.benchmarks import load, pgbench, traffic
from tests.benchmarks.ground import BASELINE, PRODUCT, Ground, Site
from tests.benchmarks.meter import cpu_seconds
from tests.benchmarks.options import Options
from tests.benchmarks.report import say
from tests.benchmarks.targets import Figure, Gap

WARM_UP_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One round of one contestant. CPU in milliseconds a request; ``failed`` answers count for nothing."""

    rate: float
    app_ms: float
    postgres_ms: float
    client_ms: float
    p50_ms: float
    p99_ms: float
    failed: int

    @property
    def cpu_ms(self) -> float:
        return self.app_ms + self.postgres_ms


@dataclass(slots=True, kw_only=True)
class Contestant:
    name: str
    site: Site
    make: traffic.Make
    rounds: list[Round] = field(default_factory=list)


class Numbers:
    """Request numbers, each given once in a run."""

    def __init__(self) -> None:
        self._next = 1

    def take(self) -> int:
        first, self._next = self._next, self._next + 10_000_000
        return first


def measure(ground: Ground, options: Options) -> tuple[list[Figure | Gap], dict[str, Any]]:
    """The figures of P1 to P3, and all rounds."""
    shop = ground.prepare_product("product")
    ground.prepare_baseline("baseline")
    product = ground.open_site("product", PRODUCT, "product")
    other = ground.open_site("baseline", BASELINE, "baseline")
    contestants = [
        Contestant(name="product", site=product, make=traffic.payments(shop)),
        Contestant(name="drf", site=other, make=traffic.baseline("/serializer", shop)),
        Contestant(name="nokey", site=product, make=traffic.payments(shop, with_key=False)),
        Contestant(name="insert", site=other, make=traffic.baseline("/insert", shop)),
    ]
    bench = pgbench.Bench.find(ground, "product")
    numbers = Numbers()
    for contestant in contestants:
        _round(ground, contestant, options, numbers.take(), seconds=WARM_UP_S)
    direct: list[float] = []
    for number in range(options.rounds):
        # Every other round the other way round: who comes after whom matters to nobody twice.
        for contestant in contestants if number % 2 == 0 else reversed(contestants):
            contestant.rounds.append(_round(ground, contestant, options, numbers.take(), seconds=options.seconds))
        if bench is not None:
            direct.append(bench.rate(options.seconds, options.connections))
        done = {one.name: f"{one.rounds[-1].rate:.0f}/s {one.rounds[-1].cpu_ms:.2f} ms" for one in contestants}
        say(f"  round {number + 1}: {done} {f'pgbench {direct[-1]:.0f}/s' if direct else ''}")
    by_name = {one.name: one.rounds for one in contestants}
    found = _figures(by_name, direct, bench)
    latencies = _overhead(product, contestants[0].make, options, numbers, _median(by_name["product"], "rate") / 2)
    found += latencies[0]
    rounds: dict[str, Any] = {name: [asdict(one) for one in rounds] for name, rounds in by_name.items()}
    return found, {**rounds, "pgbench": direct, "open_loop": latencies[1]}


def _round(ground: Ground, one: Contestant, options: Options, first: int, *, seconds: float) -> Round:
    app, postgres = cpu_seconds(one.site.pid), cpu_seconds(ground.postgres_pid)
    running = load.closed(
        one.site.port,
        one.make,
        seconds=seconds,
        first=first,
        connections=options.connections,
        processes=options.processes,
    )
    result = running.result()
    app, postgres = cpu_seconds(one.site.pid) - app, cpu_seconds(ground.postgres_pid) - postgres
    if result.answered == 0 or result.failed > result.answered / 100:
        raise RuntimeError(f"{one.name}: {result.answered} answers, failed {result.errors}")
    a_request = 1000 / result.answered
    return Round(
        rate=result.rate,
        app_ms=app * a_request,
        postgres_ms=postgres * a_request,
        client_ms=result.client_s * a_request,
        p50_ms=result.percentile_ms(0.5),
        p99_ms=result.percentile_ms(0.99),
        failed=result.failed,
    )


def _figures(by_name: dict[str, list[Round]], direct: list[float], bench: object) -> list[Figure | Gap]:
    product = by_name["product"]
    client = _median(product, "client_ms")
    found: list[Figure | Gap] = [
        figure("P1", _ratios(product, by_name["drf"]), f"{_median(product, 'rate'):.0f}/s"),
        figure("P1.nokey", _ratios(by_name["nokey"], by_name["drf"]), f"{_median(by_name['nokey'], 'rate'):.0f}/s"),
        figure("P1.insert", _ratios(product, by_name["insert"]), f"(c) {_median(by_name['insert'], 'rate'):.0f}/s"),
        figure("P2", _cpu_ratios(product, by_name["drf"])),
        figure("P2.ms", [one.cpu_ms for one in product], f"the client's own {client:.2f} ms not counted"),
        figure("P2.nokey", [one.cpu_ms for one in by_name["nokey"]]),
        figure("P2.app", [one.app_ms for one in product]),
        figure("P2.drf", [one.cpu_ms for one in by_name["drf"]], f"(b) {_median(by_name['drf'], 'rate'):.0f}/s"),
        figure("P2.insert", [one.cpu_ms for one in by_name["insert"]]),
    ]
    if bench is None:
        found.append(Gap(target="P1.pgbench", why="no pgbench here"))
    else:
        ratios = [one.rate / rate for one, rate in zip(product, direct, strict=True)]
        found.append(figure("P1.pgbench", ratios, f"(a) {statistics.median(direct):.0f}/s"))
    return found


def _overhead(
    site: Site, make: traffic.Make, options: Options, numbers: Numbers, rate: float
) -> tuple[list[Figure | Gap], list[dict[str, float]]]:
    """P3: the simulator answers at once, so the whole latency is our own."""
    rounds = []
    for _ in range(options.rounds):
        running = load.opened(site.port, make, seconds=options.seconds, first=numbers.take(), rate=rate)
        result = running.result()
        rounds.append(
            {
                "rate": rate,
                "p50_ms": result.percentile_ms(0.5),
                "p99_ms": result.percentile_ms(0.99),
                "p999_ms": result.percentile_ms(0.999),
                "failed": float(result.failed),
            }
        )
    remark = f"at {rate:.0f}/s"
    return [
        figure("P3.p50", [one["p50_ms"] for one in rounds], remark),
        figure("P3.p99", [one["p99_ms"] for one in rounds], remark),
    ], rounds


def figure(target: str, values: list[float], remark: str = "") -> Figure:
    """Median, minimum and maximum of the rounds."""
    return Figure(
        target=target,
        measured=statistics.median(values),
        low=min(values),
        high=max(values),
        remark=remark,
        rounds=[round(value, 4) for value in values],
    )


def _ratios(ours: list[Round], theirs: list[Round]) -> list[float]:
    """Round by round, so that what slowed the machine in one round slowed both."""
    return [one.rate / other.rate for one, other in zip(ours, theirs, strict=True)]


def _cpu_ratios(ours: list[Round], theirs: list[Round]) -> list[float]:
    return [one.cpu_ms / other.cpu_ms for one, other in zip(ours, theirs, strict=True)]


def _median(rounds: list[Round], name: str) -> float:
    read: Callable[[Round], float] = lambda one: float(getattr(one, name))  # noqa: E731
    return statistics.median(map(read, rounds))

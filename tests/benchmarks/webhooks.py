"""P8: how many webhooks a second are signed, leased, sent, answered and logged; how late they are; and what a receiver
that hangs does to the others.

Everything runs on this machine: two workers, PostgreSQL, and the sink. Events are notifications as payments write
them, without the payments, whose own cost is P2.
"""

from __future__ import annotations

import http.client
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from config.launcher.programs import PythonProgram
from tests.benchmarks import meter
from tests.benchmarks.ground import Ground
from tests.benchmarks.options import Options
from tests.benchmarks.report import say
from tests.benchmarks.saturation import figure
from tests.benchmarks.targets import Figure, Gap
from tests.support.ports import free_port

DATABASE: Final = "webhooks"
WORKERS: Final = 2
PAYMENTS: Final = 2_000
BURST: Final = 10_000
RATE: Final = 300.0
LAG_BATCH_S: Final = 0.01
OTHERS: Final = 9
HARM_RATE: Final = 30.0
Seen = tuple[str, tuple[str, int], float]
"""Path, (payment, sequence), when."""
_ENDPOINT: Final = """
import json, sys, django
django.setup()
from gateway.access import audit_log
from gateway.models import Channel, WebhookEndpoint
from gateway.notifications import endpoints
channel = Channel.objects.select_related("merchant").get(pk=sys.argv[1])
WebhookEndpoint.objects.update(state="off")
for url in sys.argv[2:]:
    # A merchant has only so many: receivers that answer are taken again. One that hangs is new, without what is due.
    if not url.endswith("/hang") and WebhookEndpoint.objects.filter(channel=channel, url=url).update(state="active"):
        continue
    made, _ = endpoints.create_endpoint(
        channel.merchant, url, by=audit_log.COMMAND_LINE_ACTOR, channel=channel, mode="signed", kinds=["PAYMENT"]
    )
    WebhookEndpoint.objects.filter(pk=made.pk).update(state="active")
"""


def measure(ground: Ground, options: Options) -> tuple[list[Figure | Gap], dict[str, Any]]:
    """The figures of P8."""
    shop = ground.prepare_product(DATABASE)
    ground.run(
        DATABASE,
        "-m",
        "tests.benchmarks.load_payments",
        "--count",
        str(PAYMENTS),
        "--share",
        "1",
        "--channel",
        shop.entity,
    )
    port = free_port()
    sink = PythonProgram(
        "sink", ["tests.benchmarks.sink", "--port", str(port)], var=ground.var, environment=ground.environment(DATABASE)
    )
    ground.keep(sink)
    sink.start()
    feed = Feed(ground, shop.entity)
    rounds: dict[str, list[dict[str, float]]] = {"burst": [], "lag": [], "harm": []}
    for _ in range(max(2, options.rounds // 2)):
        rounds["burst"].append(_burst(ground, feed, port))
        rounds["lag"].append(_lag(ground, feed, port, max(3.0, options.seconds)))
        rounds["harm"].append(_harm(ground, feed, port, max(3.0, options.seconds)))
        say(f"  { {name: {k: round(v, 2) for k, v in several[-1].items()} for name, several in rounds.items()} }")
    burst, lag, harm = rounds["burst"], rounds["lag"], rounds["harm"]
    p50 = statistics.median(one["p50_ms"] for one in lag)
    beside = round(statistics.median(one["beside_ms"] for one in harm), 1)
    return [
        figure("P8.rate", [one["rate"] for one in burst], f"{WORKERS} workers, from the outbox to the logged answer"),
        figure("P8.cpu", [one["cpu_ms"] for one in burst], "without the sink"),
        figure("P8.lag", [one["p99_ms"] for one in lag], f"from commit to receipt; median {p50:.1f} ms"),
        figure("P8.harm", [one["harm"] for one in harm], f"p99 {beside} ms beside it"),
    ], rounds


class Feed:
    """Writes notifications as payments do: one statement, one commit, for payments that are there."""

    def __init__(self, ground: Ground, entity: str) -> None:
        self.line = ground.connect(DATABASE)
        row = self.line.execute("SELECT merchant_id FROM gateway_channel WHERE id = %s", (entity,)).fetchone()
        assert row is not None
        self.merchant, self.channel = row[0], entity
        self.payments = [
            found[0]
            for found in self.line.execute("SELECT id FROM gateway_payment WHERE channel_id = %s", (entity,)).fetchall()
        ]
        self.sequence, self.at = 1_000, 0

    def write(self, number: int) -> dict[tuple[str, int], float]:
        """``number`` events in one commit; (payment, sequence) → when it was committed."""
        keys = []
        for _ in range(number):
            if self.at == len(self.payments):
                self.sequence, self.at = self.sequence + 1, 0
            keys.append((self.payments[self.at], self.sequence))
            self.at += 1
        self.line.execute(
            "INSERT INTO gateway_notification (merchant_id, channel_id, kind, action, payment_id, sequence, created_at)"
            " SELECT %s, %s, 'PAYMENT', 'UPDATED', p, s, now()"
            " FROM unnest(%s::uuid[], %s::int[]) AS t(p, s)",
            (self.merchant, self.channel, [key[0] for key in keys], [key[1] for key in keys]),
        )
        now = time.monotonic()
        return {(ident.hex, sequence): now for ident, sequence in keys}


@contextmanager
def _telling(ground: Ground) -> Iterator[list[int]]:
    """Workers at work; their process ids."""
    workers = [
        PythonProgram(
            f"teller{number}",
            ["tests.benchmarks.teller"],
            var=ground.var,
            environment=ground.environment(DATABASE, DJANGO_SETTINGS_MODULE="config.settings"),
        )
        for number in range(WORKERS)
    ]
    for worker in workers:
        worker.start()
    try:
        yield [worker.pid for worker in workers if worker.pid is not None]
    finally:
        for worker in workers:
            worker.stop()


def _endpoints(ground: Ground, entity: str, urls: Sequence[str]) -> None:
    ground.run(DATABASE, "-c", _ENDPOINT, entity, *urls, DJANGO_SETTINGS_MODULE="config.settings")


def _seen(port: int) -> list[Seen]:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    line.request("GET", "/seen")
    rows = [row.split() for row in line.getresponse().read().decode().splitlines()]
    line.close()
    return [(path, (ident, int(sequence)), float(at)) for path, ident, sequence, at in rows]


def _received(
    port: int, written: Mapping[tuple[str, int], float], times: int = 1, patience_s: float = 120
) -> list[Seen]:
    """The receipts of what was written, until each event came ``times`` times, or nobody believes in it any more."""
    found: list[Seen] = []
    end = time.monotonic() + patience_s
    while len(found) < times * len(written):
        if time.monotonic() > end:
            raise RuntimeError(f"{len(found)} of {times * len(written)} webhooks came")
        time.sleep(0.1)
        found += [one for one in _seen(port) if one[1] in written and one[0].startswith("/ok")]
    return found


def _burst(ground: Ground, feed: Feed, port: int) -> dict[str, float]:
    """A full outbox, as after an outage: how fast it empties."""
    _endpoints(ground, feed.channel, [f"http://127.0.0.1:{port}/ok"])
    with _telling(ground) as pids:
        _received(port, feed.write(100))
        before = meter.cpu_seconds(*pids, ground.postgres_pid)
        started = time.monotonic()
        found = _received(port, feed.write(BURST))
        last = max(at for _, _, at in found)
        _logged(feed, 30)
        cpu = meter.cpu_seconds(*pids, ground.postgres_pid) - before
    return {"rate": BURST / (last - started), "cpu_ms": 1000 * cpu / BURST, "sent": float(len(found))}


def _logged(feed: Feed, patience_s: float) -> None:
    """Until nothing waits any more: every answer is written down."""
    end = time.monotonic() + patience_s
    asked = "SELECT count(*) FROM gateway_webhookdelivery d JOIN gateway_webhookendpoint e ON e.id = d.endpoint_id"
    while time.monotonic() < end:
        row = feed.line.execute(f"{asked} WHERE d.state = 'waiting' AND e.state = 'active'").fetchone()
        assert row is not None
        if not row[0]:
            return
        time.sleep(0.02)
    raise RuntimeError("not every answer was written down")


def _steady(feed: Feed, rate: float, seconds: float) -> dict[tuple[str, int], float]:
    """Events at a rate, in small commits; when each was committed."""
    written: dict[tuple[str, int], float] = {}
    started = time.monotonic()
    while (now := time.monotonic() - started) < seconds:
        due = int(now * rate) - len(written)
        if due:
            written |= feed.write(due)
        time.sleep(LAG_BATCH_S)
    return written


def _lags_ms(found: Sequence[Seen], written: dict[tuple[str, int], float]) -> list[float]:
    return sorted(1000 * (at - written[key]) for _, key, at in found)


def _lag(ground: Ground, feed: Feed, port: int, seconds: float) -> dict[str, float]:
    _endpoints(ground, feed.channel, [f"http://127.0.0.1:{port}/ok"])
    with _telling(ground):
        _received(port, feed.write(100))
        written = _steady(feed, RATE, seconds)
        lags = _lags_ms(_received(port, written), written)
    return {"p50_ms": lags[len(lags) // 2], "p99_ms": lags[int(len(lags) * 0.99)], "events": float(len(lags))}


def _harm(ground: Ground, feed: Feed, port: int, seconds: float) -> dict[str, float]:
    """Ten receivers are told of each event; then one of them never answers."""
    found = {}
    good = [f"http://127.0.0.1:{port}/ok{number}" for number in range(OTHERS)]
    for name, tenth in (("alone", "/ok9"), ("beside", "/hang")):
        _endpoints(ground, feed.channel, [*good, f"http://127.0.0.1:{port}{tenth}"])
        with _telling(ground):
            _received(port, feed.write(10), OTHERS)
            written = _steady(feed, HARM_RATE, seconds)
            lags = _lags_ms(_received(port, written, OTHERS + (name == "alone")), written)
        found[f"{name}_ms"] = lags[int(len(lags) * 0.99)]
    return {**found, "harm": found["beside_ms"] / found["alone_ms"]}

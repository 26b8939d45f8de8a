"""How fast old payments move into the archive, and what those who pay meanwhile notice of it.

`python -m tests.benchmarks.archive [--count 40000]` prints it; docs/benchmarks.md has it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import threading
import time
import urllib.request
import uuid
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from tests.benchmarks import report
from tests.benchmarks.ground import PRODUCT, Ground
from tests.benchmarks.traffic import FIELDS, Shop

PAUSE_S = 0.05
QUIET_S = 20.0
_LOADED = """
from tests.benchmarks.load_payments import load_payments
load_payments({count}, days=200)
"""
# Half of what was loaded is old enough so much later.
_ARCHIVED = """
import json
from dataclasses import asdict
from datetime import timedelta
from tests.benchmarks.archive_runs import time_archiving
print(json.dumps(asdict(time_archiving(timedelta(days=1_095 - 100)))))
"""
_WAITING = """
SELECT coalesce(max(extract(epoch FROM clock_timestamp() - waitstart)), 0), count(*) FROM pg_locks WHERE NOT granted
"""
_SIZES = """
SELECT (SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest(%s::text[]) AS name)::float8,
    (SELECT sum(pg_total_relation_size(inhrelid)) FROM pg_inherits
        WHERE inhparent = 'gateway_archivedpayment'::regclass)::float8, pg_current_wal_lsn() - '0/0'::pg_lsn
"""
HOT_TABLES = ["gateway_payment", "gateway_paymentevent", "gateway_chainstate", "gateway_notification"]


class Payers:
    """One client that pays over HTTP, one payment after another with a pause, and remembers how long each took."""

    def __init__(self, shop: Shop, port: int) -> None:
        self.taken: list[float] = []
        self.refused = 0
        fields = dict((("entityId", shop.entity), *FIELDS))
        self._fields = fields
        self._address = f"http://127.0.0.1:{port}/v1/payments"
        self._headers = {"Authorization": f"Bearer {shop.token}"}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._pay, daemon=True)

    def __enter__(self) -> Payers:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(30)

    def _pay(self) -> None:
        while not self._ended.wait(PAUSE_S):
            body = urlencode({**self._fields, "merchantTransactionId": uuid.uuid4().hex}).encode()
            began = time.perf_counter()
            try:
                with urllib.request.urlopen(urllib.request.Request(self._address, body, self._headers), timeout=30):
                    self.taken.append(time.perf_counter() - began)
            except OSError:
                self.refused += 1


class LockWatch:
    """Looks a hundred times a second at who waits for a lock, and since when."""

    def __init__(self, ground: Ground) -> None:
        self.longest_s = 0.0
        self.seen = 0
        self._ground = ground
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> LockWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(30)

    def _look(self) -> None:
        with self._ground.connect("archive") as line:
            while not self._ended.wait(0.01):
                longest, waiting = line.execute(_WAITING).fetchone() or (0, 0)
                self.longest_s = max(self.longest_s, float(longest))
                self.seen += bool(waiting)


def measure(ground: Ground, count: int) -> None:
    """Fill, pay for a while, archive while paying, and say what was seen."""
    shop = ground.prepare_product("archive")
    django = {"DJANGO_SETTINGS_MODULE": "config.settings"}
    ground.run("archive", "-c", f"import django; django.setup()\n{_LOADED.format(count=count)}", **django)
    with ground.connect("archive") as line:
        line.execute("TRUNCATE gateway_acquirerexchange")  # they would have gone by then
        line.execute("VACUUM (ANALYZE)")
    site = ground.open_site("web", PRODUCT, "archive")
    with Payers(shop, site.port):
        time.sleep(3)
    with Payers(shop, site.port) as alone:
        time.sleep(QUIET_S)
    with ground.connect("archive") as line:
        before = line.execute(_SIZES, [HOT_TABLES]).fetchone() or (0, 0, 0)
        rows = (line.execute("SELECT count(*) FROM gateway_payment").fetchone() or (1,))[0]
        with Payers(shop, site.port) as during, LockWatch(ground) as locks:
            said = ground.run(
                "archive",
                "-c",
                f"import django; django.setup()\n{_ARCHIVED}",
                GATEWAY_PAYMENT_HOT_DAYS="1095",
                **django,
            )
        after = line.execute(_SIZES, [HOT_TABLES]).fetchone() or (0, 0, 0)
    found = json.loads(said.splitlines()[-1])
    assert found["moved"], "nothing was archived"
    moved, seconds = found["moved"], found["seconds"]
    wal, kept, hot = float(after[2]) - float(before[2]), float(after[1]), float(before[0])
    report.say(
        f"moved {moved} of {rows} payments in {seconds:.1f} s: {moved / seconds:.0f} a second,"
        f" {1000 * found['cpu'] / moved:.2f} ms of the worker's CPU each"
    )
    report.say(f"bytes a payment: {hot / rows:.0f} before, {kept / moved:.0f} in the archive, {wal / moved:.0f} of WAL")
    _say("its transactions", found["transactions"])
    _say("its statements", found["statements"])
    _say("payments alone", alone.taken)
    _say("payments meanwhile", during.taken)
    report.say(f"refused: {alone.refused} alone, {during.refused} meanwhile")
    report.say(f"waits for a lock: seen {locks.seen} times, the longest {1000 * locks.longest_s:.1f} ms")


def _say(name: str, taken: Sequence[float]) -> None:
    ordered: list[Any] = sorted(1000 * one for one in taken)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    report.say(
        f"{name}: {len(ordered)}, median {statistics.median(ordered):.1f}, p99 {p99:.1f}, longest {ordered[-1]:.1f} ms"
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.archive", description=__doc__)
    parser.add_argument("--count", type=int, default=40_000, help="payments to fill with; half of them are archived")
    options = parser.parse_args(arguments)
    with Ground() as ground:
        report.say(f"{report.machine(ground.postgres_version)}")
        measure(ground, options.count)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

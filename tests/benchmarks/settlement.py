"""P10: a settlement file of a million lines, taken in by the product's own command, matched with as many payments.

The payments are written by one statement: only what matching reads. With --quick it is a tenth of each.
"""

from __future__ import annotations

import os
import re
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from config.launcher.var_folder import PROJECT_ROOT
from tests.benchmarks import meter
from tests.benchmarks.ground import Ground
from tests.benchmarks.options import QUICK, Options
from tests.benchmarks.report import say
from tests.benchmarks.targets import Figure, Gap

DATABASE: Final = "settlement"
LINES: Final = 1_000_000
LINES_QUICK: Final = 100_000
_PAYMENTS: Final = """
INSERT INTO gateway_payment (id, number, merchant_id, channel_id, chain, payment_type, brand, method, status, amount,
    currency, approved_amount, result_code, test_mode, merchant_transaction_id, merchant_invoice_id, merchant_memo,
    request, answer, means, connector, connector_tx_id, acquirer_merchant_id, resource_path, final, practice, sequence,
    follow_ups, request_id, created_at)
SELECT g.id, nextval('gateway_payment_number'), c.merchant_id, c.id, g.id, 'DB', 'VISA', 'CC', 'APPROVED',
    (n %% 500 + 1)::numeric, 'EUR', (n %% 500 + 1)::numeric, '000.100.110', 'INTERNAL', 'order-' || n, '', '',
    '{}', '{}',
    'card', 'simulator', 'SIM' || upper(right(replace(g.id::text, '-', ''), 20)), '', '', false, '', 2, 0, g.id,
    at
FROM (SELECT n, at, (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7'
        || substr(md5(n::text), 1, 3) || '8' || substr(md5('x' || n), 1, 15))::uuid AS id
    FROM (SELECT n, now() - interval '20 days' + n * interval '1 second' AS at FROM generate_series(1, %s) n) s) g
CROSS JOIN (SELECT id, merchant_id FROM gateway_channel WHERE id = %s::uuid) c
"""
_CHOSEN: Final = " WHERE connector = 'simulator' AND payment_type = 'DB' AND status = 'APPROVED' AND created_at > %s"
_HEADER: Final = (
    "ReconciliationType;PaymentType;Cashflow;ClearingInstituteMerchantId;SettlementReference;SettlementTxId;"
    "ConnectorTxId1;TransactionId;Amount;Currency;Brand;TxRequestTime;SettlementAmount;SettlementCurrency;"
    "SettlementFee;SettlementFxRate;SettlementDate;SettlementStatus;Descriptor;AccountNumberLast4"
)


_WRITE: Final = """
import sys
from datetime import timedelta
from pathlib import Path
import django
django.setup()
from gateway.core import clock
from reporting.reconciliation import daily_files, file_columns
from reporting.settlement import record_queries
from reporting.models import SettlementRecord
merchant = SettlementRecord.objects.select_related("merchant__division")[0].merchant
names, now = record_queries.load_display_names(merchant), clock.real_now()
lines = record_queries.stream_recorded_lines(merchant, now - timedelta(days=1), now, names)
daily_files.write_atomically(Path(sys.argv[1]), file_columns.render_csv_blocks(lines))
"""
"""A day's file of one merchant, as reporting.reconciliation.daily_files writes it."""


def measure(ground: Ground, options: Options) -> tuple[list[Figure | Gap], dict[str, Any]]:
    """The figures of P10, of one file: it is too large for rounds."""
    lines = LINES_QUICK if options is QUICK or options.rounds <= QUICK.rounds else LINES
    shop = ground.prepare_product(DATABASE)
    settings = {"DJANGO_SETTINGS_MODULE": "config.settings"}
    with ground.connect(DATABASE) as database:
        database.execute(_PAYMENTS, (lines, shop.entity))
        database.execute("VACUUM ANALYZE gateway_payment")
        path = write_file(ground.var / "settlement.csv", database, shop.entity)
    ground.run(DATABASE, "manage.py", "clearing_institute", "--key", "sim", "--connector", "simulator", **settings)
    say(f"  {lines:,} lines, {path.stat().st_size / 1e6:.0f} MB")
    came = _ran(ground, str(PROJECT_ROOT / "manage.py"), "settlement_file", str(path))
    if came is None:
        return [Gap(target="P10", why="the command failed")], {}
    took, own, server, memory = came
    with ground.connect(DATABASE) as database:
        row = database.execute("SELECT records, matched, faults FROM reporting_settlementfile").fetchone()
        odd = database.execute("SELECT count(*) FROM reporting_finding").fetchone()
    assert row == (lines, lines, 0), row
    assert odd == (0,), odd
    remark = f"{lines:,} lines; CPU {own:.0f} s of the reader, {server:.0f} s of PostgreSQL"
    found: list[Figure | Gap] = [
        Figure(
            target="P10",
            measured=round(took * LINES / lines, 1),
            remark=remark if lines == LINES else f"extrapolated from {remark}",
        ),
        Figure(target="P10.memory", measured=round(memory)),
    ]
    written = ground.var / "reconciliation.csv"
    went = _ran(ground, "-c", _WRITE, str(written))
    if went is None or written.read_bytes().count(b"\r\n") != lines + 1:
        return [*found, Gap(target="P10.out", why="the file was not written, or not whole")], {}
    about = (
        f"{lines:,} lines, {written.stat().st_size / 1e6:.0f} MB; CPU {went[1]:.0f} s of the writer, {went[2]:.0f} s of"
    )
    about += " PostgreSQL"
    found += [
        Figure(
            target="P10.out",
            measured=round(went[0] * LINES / lines, 1),
            remark=about if lines == LINES else f"extrapolated from {about}",
        ),
        Figure(target="P10.out.memory", measured=round(went[3])),
    ]
    raw = {
        "out": went,
        "lines": lines,
        "seconds": took,
        "cpu_reader_s": own,
        "cpu_postgres_s": server,
        "max_rss_mb": memory,
    }
    return found, {"settlement": raw}


def _ran(ground: Ground, *arguments: str) -> tuple[float, float, float, float] | None:
    """Run Python with ``arguments``: seconds, CPU seconds of its own and of PostgreSQL, most memory in MB; None when it
    failed."""
    cpu, began = meter.cpu_seconds(ground.postgres_pid), time.perf_counter()
    environment = ground.environment(DATABASE, PYTHONPATH=str(PROJECT_ROOT), DJANGO_SETTINGS_MODULE="config.settings")
    pid = os.posix_spawn(sys.executable, [sys.executable, *arguments], environment)
    _, status, used = os.wait4(pid, 0)
    took = time.perf_counter() - began
    if status:
        return None
    return took, used.ru_utime + used.ru_stime, meter.cpu_seconds(ground.postgres_pid) - cpu, used.ru_maxrss / 1024


def write_file(path: Path, database: Any, channel: str, since: datetime | None = None, first: int = 1) -> Path:
    """A line for every payment; ``since``: for each debit of the simulator that was made after it and approved.
    ``first``: the number of the first line, which no other file may have; each file is a payout of its own."""
    assert re.fullmatch("[0-9a-f]{32}", channel)
    chosen, values = ("", ()) if since is None else (_CHOSEN, (since,))
    with path.open("w", encoding="utf-8", newline="") as out, database.transaction(), database.cursor("lines") as rows:
        out.write(f"{_HEADER}\r\n")
        rows.execute(
            "SELECT connector_tx_id, merchant_transaction_id, amount, created_at FROM gateway_payment"
            f"{chosen} ORDER BY id",
            values,
        )
        for number, (tx_id, order, amount, at) in enumerate(rows, first):
            out.write(
                f"SETTLED;DEBIT;POS;{channel};PAYOUT-{at:%Y%m%d}-{first};L{number};{tx_id};{order};{amount};EUR;VISA;"
                f"{at:%Y-%m-%d %H:%M:%S};{amount};EUR;0.00;1;{at:%Y-%m-%d};SUCCESS;SHOP*ORDER {number};0000\r\n"
            )
    return path

"""What each score threshold would have done to a trial's approved payments: blocked fraud, and lost sales.

Fraud is what was charged back with a reason of fraud. The figures are read once, when the trial ends.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import groupby
from typing import Any, Final

from gateway.backoffice.kit.charts import CHART_FOOT, CHART_HEAD, CHART_HEIGHT
from gateway.backoffice.kit.formatting import format_money, format_number
from gateway.db.statement import execute_sql
from gateway.models import RiskTrial

FRAUD_CHARGEBACK_CODES: Final = ("000.100.220", "000.100.222", "000.100.230")
"""Reasons of chargebacks that claim fraud. Source: Part A, Errors, 4."""
MAX_THRESHOLDS: Final = 40
"""Columns of the histogram; scores next to each other share one where there are more."""
_SCORES: Final = """
SELECT t.score, t.currency, f.fraud, count(*), sum(t.amount)
FROM gateway_risktrialpayment t CROSS JOIN LATERAL (SELECT EXISTS (
    SELECT 1 FROM gateway_payment c
    WHERE c.chain = t.payment AND c.payment_type = 'CB' AND c.status = 'APPROVED' AND c.result_code = ANY(%(codes)s)
) AS fraud) f
WHERE t.trial_id = %(trial)s AND t.score IS NOT NULL AND t.status = 'APPROVED' GROUP BY 1, 2, 3 ORDER BY 1
"""


def compute_score_figures(trial: RiskTrial) -> list[list[Any]]:
    """Rows of [score, currency, whether it was fraud, payments, sum as text], the lowest score first."""
    found = execute_sql(_SCORES, {"trial": trial.pk, "codes": list(FRAUD_CHARGEBACK_CODES)})
    return [[score, currency, fraud, count, f"{total:.2f}"] for score, currency, fraud, count, total in found]


def render_thresholds(trial: RiskTrial) -> dict[str, Any] | None:
    """The histogram and, for each threshold, what lies at it or above; None for a trial without scores. ``start``: the
    place of the threshold of the set as it was tried."""
    rows = trial.figures.get("scores") or []
    if not rows:
        return None
    columns = _group_scores(rows)
    tallest = max(column["payments"] for column in columns)
    room = CHART_HEIGHT - CHART_FOOT - CHART_HEAD
    for place, column in enumerate(columns):
        above = columns[place:]
        column["blocked"] = _describe(above, fraud=True)
        column["lost"] = _describe(above, fraud=False)
        column["x"] = round(100 * (place + 0.1) / len(columns), 3)
        column["width"] = round(80 / len(columns), 3)
        column["middle"] = round(100 * (place + 0.5) / len(columns), 3)
        column["shown"] = place % max(1, len(columns) // 8) == 0
        column["fraud_height"] = round(room * column["frauds"] / tallest, 2)
        column["good_height"] = round(room * (column["payments"] - column["frauds"]) / tallest, 2)
        column["good_y"] = round(CHART_HEIGHT - CHART_FOOT - column["good_height"], 2)
        column["fraud_y"] = round(column["good_y"] - column["fraud_height"], 2)
    set_at = trial.document.get("declineFrom")
    start = next((at for at, one in enumerate(columns) if set_at is not None and one["score"] >= int(set_at)), None)
    return {
        "columns": columns,
        "last": len(columns) - 1,
        "start": start if start is not None else len(columns) - 1,
        "set_at": set_at,
        "height": CHART_HEIGHT,
        "floor": CHART_HEIGHT - CHART_FOOT,
        "label_at": CHART_HEIGHT - 4,
        "most": format_number(tallest),
    }


def _group_scores(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Columns of the histogram: score (the lowest of it), payments, frauds, and sums by currency of both."""
    listed = sorted(rows, key=lambda row: int(row[0]))
    low, high = int(listed[0][0]), int(listed[-1][0])
    width = max(1, -(-(high - low + 1) // MAX_THRESHOLDS))
    columns = []
    for number, several in groupby(listed, key=lambda row: (int(row[0]) - low) // width):
        column: dict[str, Any] = {"score": low + number * width, "payments": 0, "frauds": 0}
        sums: Mapping[bool, dict[str, Decimal]] = {True: defaultdict(Decimal), False: defaultdict(Decimal)}
        for _score, currency, fraud, count, total in several:
            column["payments"] += count
            column["frauds"] += count if fraud else 0
            sums[bool(fraud)][currency] += Decimal(total)
        columns.append(column | {"sums": sums})
    return columns


def _describe(columns: Iterable[Mapping[str, Any]], *, fraud: bool) -> str:
    """How many payments, and their sums: "3 · 120.00 EUR"."""
    count, sums = 0, defaultdict[str, Decimal](Decimal)
    for column in columns:
        count += column["frauds"] if fraud else column["payments"] - column["frauds"]
        for currency, total in column["sums"][fraud].items():
            sums[currency] += total
    money = ", ".join(format_money(total, currency) for currency, total in sorted(sums.items()))
    return " · ".join(filter(None, (format_number(count), money)))

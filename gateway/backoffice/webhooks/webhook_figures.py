"""Figures of webhook pages: attempts by hour, each endpoint's last attempt, waiting deliveries. All are bounded."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from gateway.backoffice.kit import charts
from gateway.backoffice.kit.formatting import format_local, name_zone
from gateway.backoffice.kit.real_time import ROW_TIME_SQL
from gateway.core import clock
from gateway.db.statement import execute_sql
from gateway.models import WebhookEndpoint

MAX_ATTEMPTS_READ: Final = 20_000
"""The newest attempts of all merchants that figures are computed from."""
MAX_WAITING_COUNTED: Final = 10_000
MAX_MEASURED_ENDPOINTS: Final = 500
"""The newest endpoints of a reader that the first page counts."""
ATTEMPT_CHART_HOURS: Final = 24

# The chart's hours are real ones; the merchant's clock may have been moved since.
_HOURS: Final = """
SELECT date_trunc('hour', a.tried_at, 'UTC') AS hour,
    count(*) FILTER (WHERE a.status BETWEEN 200 AND 299), count(*) FILTER (WHERE a.status NOT BETWEEN 200 AND 299
        OR a.status IS NULL)
FROM (SELECT * FROM gateway_webhookattempt ORDER BY id DESC LIMIT %(newest)s) a
JOIN gateway_webhookdelivery d ON d.id = a.delivery_id
WHERE d.endpoint_id = ANY(%(endpoints)s::uuid[]) AND a.tried_at >= %(since)s::timestamptz
GROUP BY hour
"""
# Deliveries made in an hour that still wait.
_WAITING_HOURS: Final = f"""
SELECT date_trunc('hour', at, 'UTC') AS hour, count(*) FROM (
    SELECT {ROW_TIME_SQL.format(id="id")} AS at FROM gateway_webhookdelivery
    WHERE endpoint_id = ANY(%(endpoints)s::uuid[]) AND state = 'waiting' LIMIT %(most)s
) AS waiting
WHERE at >= %(since)s::timestamptz GROUP BY hour
"""  # noqa: S608 - put together out of the constant above
_LAST: Final = """
SELECT DISTINCT ON (d.endpoint_id) d.endpoint_id, a.at, a.status, a.failure
FROM (SELECT * FROM gateway_webhookattempt ORDER BY id DESC LIMIT %(newest)s) a
JOIN gateway_webhookdelivery d ON d.id = a.delivery_id
WHERE d.endpoint_id = ANY(%(endpoints)s::uuid[]) ORDER BY d.endpoint_id, a.id DESC
"""
_WAITING: Final = """
SELECT e.id, (SELECT count(*) FROM (SELECT 1 FROM gateway_webhookdelivery d
    WHERE d.endpoint_id = e.id AND d.state = 'waiting' LIMIT %(most)s) AS counted)
FROM unnest(%(endpoints)s::uuid[]) AS e(id)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastAttempt:
    """An endpoint's last attempt: ``at`` by the merchant's clock, the answer's ``status`` or the ``failure``."""

    at: datetime
    status: int | None
    failure: str

    @property
    def is_good(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def load_last_attempts(endpoints: Collection[UUID]) -> Mapping[UUID, LastAttempt]:
    """Endpoint → its last attempt, if among the installation's newest MAX_ATTEMPTS_READ."""
    rows = execute_sql(_LAST, {"endpoints": list(endpoints), "newest": MAX_ATTEMPTS_READ}) if endpoints else []
    return {row[0]: LastAttempt(at=row[1], status=row[2], failure=row[3]) for row in rows}


def load_failed_attempts(endpoints: Collection[UUID]) -> Mapping[UUID, LastAttempt]:
    """Endpoint → its last attempt, of those whose last attempt failed."""
    return {key: last for key, last in load_last_attempts(endpoints).items() if not last.is_good}


def count_waiting_deliveries(endpoints: Collection[UUID]) -> Mapping[UUID, int]:
    """Endpoint → waiting deliveries, counted up to MAX_WAITING_COUNTED."""
    rows = execute_sql(_WAITING, {"endpoints": list(endpoints), "most": MAX_WAITING_COUNTED}) if endpoints else []
    return {row[0]: int(row[1]) for row in rows}


def chart_attempts_by_hour(endpoints: Collection[UUID], chosen: WebhookEndpoint | None = None) -> SafeString:
    """Chart of successful and failed attempts of the last day by hour (UTC), with its table."""
    hour = clock.real_now().replace(minute=0, second=0, microsecond=0)
    since = hour - timedelta(hours=ATTEMPT_CHART_HOURS - 1)
    rows: list[tuple[Any, ...]] = (
        execute_sql(_HOURS, {"endpoints": list(endpoints), "since": since, "newest": MAX_ATTEMPTS_READ})
        if endpoints
        else []
    )
    asked = {"endpoints": list(endpoints), "since": since, "most": MAX_WAITING_COUNTED}
    late = {row[0]: int(row[1]) for row in execute_sql(_WAITING_HOURS, asked)} if endpoints else {}
    counted = {row[0]: (int(row[1]), int(row[2])) for row in rows}
    link = reverse("admin:gateway_webhookdelivery_changelist")
    link += f"?endpoint={chosen.pk.hex}" if chosen is not None else ""
    hours = [since + timedelta(hours=number) for number in range(ATTEMPT_CHART_HOURS)]
    return charts.draw_stacked_bars(
        [
            (
                f"{format_local(at)[11:16]}",
                (*counted.get(at, (0, 0)), late.get(at, 0)),
                link if at in counted or at in late else "",
            )
            for at in hours
        ],
        (("good", _("answered 2xx")), ("bad", _("failed")), ("note", _("made then, waits still"))),
        title=_("Attempts by hour (%s), the last 24 hours") % name_zone(),
    )

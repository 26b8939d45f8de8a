"""The live board: what an operator on call looks at first, on one page that renews itself.

Approval rates by acquirer account against the same hour a week before, answer times, circuit breakers, webhook lag,
ages of the queues, the database, and who changed what. Payments are read in windows of ids, each bounded in rows; every
statement is cancelled after the time of a search. Users see their own merchants; queues and database those who see
everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.access.permissions import AccessScope
from gateway.backoffice.access.audit_sentences import LOOK_ACTIONS, describe_entries
from gateway.backoffice.kit import charts
from gateway.backoffice.kit.formatting import format_labelled, format_number, name_zone
from gateway.backoffice.kit.periods import format_filter_time
from gateway.backoffice.kit.real_time import ROW_TIME_SQL
from gateway.backoffice.kit.time_limit import SearchTooBroadError, limit_search_time
from gateway.backoffice.operations.dashboard import SCOPE_CONDITION, build_payments_url, cache_for_scope
from gateway.backoffice.payments.payment_filters import NO_MERCHANT_ID
from gateway.backoffice.sign_in import session
from gateway.core import clock
from gateway.core.identifiers import first_id_at
from gateway.db.statement import execute_sql
from gateway.models import AuditEntry, BreakerChange, Channel, Status, TimerRun, WebhookEndpoint
from gateway.timers import due_times
from gateway.timers.registry import TIMERS

VIEW_BOARD_PERMISSION: Final = "gateway.view_acquireraccount"
VIEW_CHANGES_PERMISSION: Final = "gateway.view_auditentry"
BOARD_CACHE_S: Final = 5
BOARD_REFRESH_S: Final = 10
RATE_WINDOW: Final = timedelta(hours=1)
CHART_WINDOW: Final = timedelta(hours=3)
CHART_STEP: Final = timedelta(minutes=5)
WEEK: Final = timedelta(days=7)
MAX_WINDOW_PAYMENTS: Final = 20_000
"""Newest payments of a window that rates are computed from."""
MAX_CHART_PAYMENTS: Final = 50_000
MAX_BOARD_ENDPOINTS: Final = 1_000
MAX_OPEN_COUNTED: Final = 10_000
"""Payments without an answer that are counted of each status, the oldest first."""
MAX_CHANGES_READ: Final = 5_000
"""Newest audit entries among which changes are looked for."""
MAX_CHANGES_SHOWN: Final = 20
MIN_COMPARED_PAYMENTS: Final = 20
"""Decided payments of a window that a rate is compared from; fewer move by chance."""
WARNING_DROP_POINTS: Final = 5.0
ALARM_DROP_POINTS: Final = 15.0
WARNING_LAG: Final = timedelta(minutes=1)
ALARM_LAG: Final = timedelta(minutes=5)
CHANGE_SUBJECTS: Final = frozenset({
    "accesstoken", "acquireraccount", "channel", "division", "merchant", "offerrule", "periodictask", "psp", "risklist",
    "riskset", "routingrule", "threedsecureconfiguration", "vaultkey", "walletkey", "webhookendpoint",
})  # fmt: skip
"""What audit entries of a change of the configuration are about."""

_WINDOWS: Final = f"""
SELECT w.span, {{columns}} FROM (VALUES
    ('now', %(now_from)s::uuid, %(now_to)s::uuid), ('before', %(before_from)s::uuid, %(before_to)s::uuid)
) AS w (span, low, high) CROSS JOIN LATERAL (
    SELECT p.id, p.connector, p.acquirer_merchant_id AS account, p.status FROM gateway_payment p
    WHERE p.id >= w.low AND p.id < w.high AND p.chain = p.id AND p.connector NOT IN ('nobody', '')
      AND {SCOPE_CONDITION.format(table="p")}
    ORDER BY p.id DESC LIMIT {{most}}
) AS picked
"""  # noqa: S608 - put together out of the constants above
_LAST_SUBMIT: Final = """
LEFT JOIN LATERAL (
    SELECT e.duration_ms FROM gateway_acquirerexchange e
    WHERE e.payment_id = picked.id AND e.kind = 'submit' ORDER BY e.id DESC LIMIT 1
) AS took ON TRUE GROUP BY 1, 2, 3
"""
_RATE_COLUMNS: Final = """
connector, account, count(*) FILTER (WHERE status = 'APPROVED'), count(*) FILTER (WHERE status = 'DECLINED'),
count(*) FILTER (WHERE status NOT IN ('APPROVED', 'DECLINED')),
percentile_disc(0.95) WITHIN GROUP (ORDER BY took.duration_ms)
"""
_RATES: Final = _WINDOWS.format(columns=_RATE_COLUMNS, most=MAX_WINDOW_PAYMENTS) + _LAST_SUBMIT
_STEPS: Final = (
    _WINDOWS.format(
        columns=f"""floor(extract(epoch FROM {ROW_TIME_SQL.format(id="picked.id")})
    / {int(CHART_STEP.total_seconds())})::bigint, status, count(*)""",
        most=MAX_CHART_PAYMENTS,
    )
    + "GROUP BY 1, 2, 3"
)
_OPEN: Final = f"""
SELECT s.status, count(*), min(open.at) FROM unnest(%(statuses)s::text[]) AS s (status) CROSS JOIN LATERAL (
    SELECT {ROW_TIME_SQL.format(id="p.id")} AS at FROM gateway_openpayment o
    JOIN gateway_payment p ON p.id = o.payment_id
    WHERE p.status = s.status AND {SCOPE_CONDITION.format(table="p")} ORDER BY o.payment_id LIMIT %(most)s
) AS open GROUP BY 1
"""  # noqa: S608 - put together out of the constants above
_WEBHOOK_LAG: Final = """
SELECT e.id, m.name, statement_timestamp() + m.clock_offset - d.due_at
FROM gateway_webhookendpoint e JOIN gateway_merchant m ON m.id = e.merchant_id
CROSS JOIN LATERAL (
    SELECT due_at FROM gateway_webhookdelivery WHERE endpoint_id = e.id AND state = 'waiting' ORDER BY due_at LIMIT 1
) AS d WHERE e.id = ANY(%(endpoints)s::uuid[]) ORDER BY 3 DESC LIMIT 5
"""
_DATABASE: Final = """
SELECT count(*), count(*) FILTER (WHERE state = 'active' AND pid <> pg_backend_pid()),
    count(*) FILTER (WHERE state LIKE 'idle in transaction%%'), count(*) FILTER (WHERE wait_event_type = 'Lock'),
    max(statement_timestamp() - xact_start) FILTER (WHERE pid <> pg_backend_pid()),
    current_setting('max_connections')::int,
    (SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()),
    (SELECT blks_hit * 100.0 / nullif(blks_hit + blks_read, 0) FROM pg_stat_database
     WHERE datname = current_database()),
    (SELECT count(*) FROM pg_stat_replication), (SELECT max(replay_lag) FROM pg_stat_replication)
FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFigures:
    """First payments of one account in one window; ``p95``: milliseconds to the answer, None if none was measured."""

    approved: int = 0
    declined: int = 0
    undecided: int = 0
    p95: int | None = None

    @property
    def decided(self) -> int:
        return self.approved + self.declined

    @property
    def rate(self) -> float | None:
        return round(100 * self.approved / self.decided, 1) if self.decided else None


def build_board_urls(site: Any) -> list[URLPattern]:
    """The page's address, below the back office's."""
    view = site.admin_view(lambda request: show_live_board(site, request))
    return [path("live-board/", view, name="live_board")]


def show_live_board(site: Any, request: HttpRequest) -> HttpResponse:
    """The live board; with ``?part=board`` only the part that renews itself."""
    scope = permissions.find_access_scope(request.user, VIEW_BOARD_PERMISSION)
    if not scope:
        raise PermissionDenied
    board = build_board(scope, permissions.find_access_scope(request.user, VIEW_CHANGES_PERMISSION))
    if request.GET.get("part") == "board":
        return TemplateResponse(request, "admin/office/board.html", board)
    context = session.build_page_context(site, request, title=_("Live board"), **board, refresh_s=BOARD_REFRESH_S)
    return TemplateResponse(request, "admin/office/live_board.html", context)


def build_board(scope: AccessScope, audited: AccessScope) -> dict[str, Any]:
    """Everything on the board, at most BOARD_CACHE_S old. What takes too long is left out, and named in ``slow``.
    ``audited``: where the user may read the audit trail; changes of other entities are left out."""
    found: dict[str, Any] = cache_for_scope(
        "board", scope, lambda: _build_board(scope, audited), seconds=BOARD_CACHE_S, also=audited
    )
    return found


def _build_board(scope: AccessScope, audited: AccessScope) -> dict[str, Any]:
    now = clock.real_now()
    sources: Mapping[str, Any] = {
        "accounts": lambda: compare_accounts(scope, now),
        "chart": lambda: _draw_steps(scope, audited, now),
        "open": lambda: _list_open(scope, now),
        "webhooks": lambda: _list_webhook_lag(scope),
        "breakers": lambda: _list_breakers(scope, now),
        **({"changes": lambda: list_changes(audited, now)} if audited else {}),
        **({"queues": lambda: list_queues(now), "database": _list_database} if scope.everything else {}),
    }
    board: dict[str, Any] = {"at": now, "everything": scope.everything, "slow": []}
    for name, ask in sources.items():
        try:
            with limit_search_time():
                board[name] = ask()
        except SearchTooBroadError:
            board["slow"].append(name)
    return board


def _query_windows(sql: str, scope: AccessScope, since: datetime, until: datetime) -> list[tuple[Any, ...]]:
    values = {
        "now_from": first_id_at(since),
        "now_to": first_id_at(until),
        "before_from": first_id_at(since - WEEK),
        "before_to": first_id_at(until - WEEK),
        "all": scope.everything,
        "merchants": sorted(scope.merchants),
        "channels": sorted(scope.channels),
    }
    return execute_sql(sql, values)


def compare_accounts(scope: AccessScope, now: datetime) -> list[dict[str, Any]]:
    """Each account's last hour beside the same hour a week before; those with the largest drop first."""
    found: dict[tuple[str, str], dict[str, WindowFigures]] = {}
    for span, connector, account, approved, declined, undecided, p95 in _query_windows(
        _RATES, scope, now - RATE_WINDOW, now
    ):
        figures = WindowFigures(
            approved=approved, declined=declined, undecided=undecided, p95=int(p95) if p95 is not None else None
        )
        found.setdefault((connector, account), {})[span] = figures
    rows = [_render_account(key, spans, now) for key, spans in found.items()]
    return sorted(rows, key=lambda row: (row["drop"] is None, -(row["drop"] or 0.0), -row["now"].decided))


def _render_account(key: tuple[str, str], spans: Mapping[str, WindowFigures], now: datetime) -> dict[str, Any]:
    present, before = spans.get("now", WindowFigures()), spans.get("before", WindowFigures())
    drop = round(before.rate - present.rate, 1) if present.rate is not None and before.rate is not None else None
    compared = min(present.decided, before.decided) >= MIN_COMPARED_PAYMENTS
    alarm = compared and drop is not None and drop >= ALARM_DROP_POINTS
    warning = compared and drop is not None and drop >= WARNING_DROP_POINTS
    connector, account = key
    named = {"connector": connector, "part": "first", "account": account or NO_MERCHANT_ID}

    def link(since: datetime, until: datetime, **more: str) -> str:
        ends = {"real_from": format_filter_time(since), "real_to": format_filter_time(until)}
        return build_payments_url(**named, **ends, **more)

    # Filters have minutes: the minute that runs is counted in full.
    until = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    return {
        "name": account or connector,
        "connector": connector,
        "now": present,
        "before": before,
        "drop": drop,
        "change": None if drop is None else f"{-drop:+.1f}",
        "tone": "bad" if alarm else "warn" if warning else "",
        "link": link(now - RATE_WINDOW, until),
        "declined_link": link(now - RATE_WINDOW, until, status="DECLINED"),
        "before_link": link(now - RATE_WINDOW - WEEK, until - WEEK),
    }


def _draw_steps(scope: AccessScope, audited: AccessScope, now: datetime) -> SafeString:
    """Chart of the last hours in steps of minutes, the week before as a mark on each, changes below."""
    size = int(CHART_STEP.total_seconds())
    last = int(now.timestamp()) // size
    steps = range(last - int(CHART_WINDOW / CHART_STEP) + 1, last + 1)
    since, until = (datetime.fromtimestamp(at * size, UTC) for at in (steps[0], steps[-1] + 1))
    counted = {step: [0, 0, 0] for step in steps}
    before = dict.fromkeys(steps, 0)
    for span, step, status, count in _query_windows(_STEPS, scope, since, until):
        if span == "before":
            before[step + int(WEEK.total_seconds()) // size] += count
        else:
            counted[step][{"APPROVED": 0, "DECLINED": 1}.get(status, 2)] += count
    rows = [(_label_step(step, size), tuple(figures), _build_step_url(step, size)) for step, figures in counted.items()]
    marks = [
        (
            int(entry.at.timestamp()) // size - steps[0],
            format_labelled(_label_step(int(entry.at.timestamp()) // size, size), words),
        )
        for entry, words in _describe_changes(_select_changes(audited, since))
    ]
    return charts.draw_stacked_bars(
        rows,
        (("good", _("approved")), ("bad", _("declined")), ("note", _("open"))),
        title=_("Payments in steps of %(minutes)d minutes (%(zone)s)") % {"minutes": size // 60, "zone": name_zone()},
        before=[before[step] for step in steps],
        marks=marks,
    )


def _label_step(step: int, size: int) -> str:
    return f"{timezone.localtime(datetime.fromtimestamp(step * size, UTC)):%H:%M}"


def _build_step_url(step: int, size: int) -> str:
    since, until = (format_filter_time(datetime.fromtimestamp(at * size, UTC)) for at in (step, step + 1))
    return build_payments_url(real_from=since, real_to=until, part="first")


def _list_open(scope: AccessScope, now: datetime) -> list[dict[str, Any]]:
    """Payments without an answer by status, and how long the oldest waits."""
    values = {
        "all": scope.everything,
        "merchants": sorted(scope.merchants),
        "channels": sorted(scope.channels),
        "statuses": Status.values,
        "most": MAX_OPEN_COUNTED,
    }
    names = {"STARTED": _("being sent"), "PENDING": _("waiting for shoppers"), "IN_DOUBT": _("in doubt")}
    return [
        {
            "name": names.get(status, status),
            "count": count,
            "more": count == MAX_OPEN_COUNTED,
            "age": describe_age(now - since),
            "tone": _choose_tone(now - since) if status == "IN_DOUBT" else "",
            "link": build_payments_url(status=status),
        }
        for status, count, since in sorted(execute_sql(_OPEN, values))
    ]


def _list_webhook_lag(scope: AccessScope) -> list[dict[str, Any]]:
    """The endpoints whose oldest waiting delivery is the latest, with how late it is."""
    seen = WebhookEndpoint.objects.filter(scope.where("merchant", None))[:MAX_BOARD_ENDPOINTS] if scope else []
    endpoints = [row.pk for row in seen]
    rows = execute_sql(_WEBHOOK_LAG, {"endpoints": endpoints}) if endpoints else []
    page = reverse("admin:gateway_webhookdelivery_changelist")
    return [
        {
            "name": merchant,
            "age": describe_age(late),
            "tone": _choose_tone(late),
            "link": f"{page}?endpoint={endpoint.hex}",
        }
        for endpoint, merchant, late in rows
        if late > timedelta(0)
    ]


def _list_breakers(scope: AccessScope, now: datetime) -> list[dict[str, Any]]:
    """Circuit breakers that are not closed, as each process reported last within a day."""
    rows = BreakerChange.objects.filter(since__gte=now - timedelta(days=1))
    if not scope.everything:
        rows = rows.filter(channel__in=Channel.objects.filter(scope.where("merchant", "pk")).values("pk"))
    seen: set[tuple[Any, ...]] = set()
    found = []
    for row in rows.order_by("-id")[: MAX_CHANGES_SHOWN * 25]:
        key = (row.process, row.connector, row.channel, row.acquirer_merchant_id)
        if key not in seen and row.state != "closed":
            half = row.state == "half-open"
            found.append(
                {
                    "name": row.acquirer_merchant_id or row.connector,
                    "words": _("half open: single payments try it") if half else _("open: left alone"),
                    "tone": "warn" if half else "bad",
                    "row": row,
                }
            )
        seen.add(key)
    return found[:MAX_CHANGES_SHOWN]


def _select_changes(audited: AccessScope, since: datetime) -> QuerySet[AuditEntry]:
    newest = AuditEntry.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    rows = AuditEntry.objects.filter(pk__gt=newest - MAX_CHANGES_READ, at__gte=since, subject__in=CHANGE_SUBJECTS)
    rows = rows.filter(audited.where("merchant", None))
    return rows.exclude(action__in=LOOK_ACTIONS).order_by("-pk")[:MAX_CHANGES_SHOWN]


def _describe_changes(rows: Iterable[AuditEntry]) -> list[tuple[AuditEntry, str]]:
    found = list(rows)
    words = describe_entries(found)
    return [(row, words[row.pk]) for row in found]


def list_changes(audited: AccessScope, now: datetime) -> list[dict[str, Any]]:
    """Who changed what of the configuration within a day, the newest first."""
    return [
        {"at": row.at, "words": words, "link": reverse("admin:gateway_auditentry_change", args=[row.pk])}
        for row, words in _describe_changes(_select_changes(audited, now - timedelta(days=1)))
    ]


def list_queues(now: datetime) -> list[dict[str, Any]]:
    """Each kind of timed work with the age of its oldest due thing and its last run; the latest first."""
    runs = {row.name: row for row in TimerRun.objects.all()}
    rows = []
    for name, age in due_times.measure_queue_ages().items():
        run = runs.get(name)
        failed = run is not None and run.failed_at is not None and run.failed_at > now - timedelta(hours=1)
        rows.append(
            {
                "name": name,
                "about": _(TIMERS[name].about),
                "seconds": age.total_seconds() if age is not None else 0.0,
                "age": describe_age(age) if age is not None else "–",
                "run": run,
                "ago": describe_age(now - run.last_at) if run is not None else "",
                "failed": failed,
                "tone": "bad" if failed else _choose_tone(age) if age is not None else "",
            }
        )
    return sorted(rows, key=lambda row: (not row["tone"], -row["seconds"], row["name"]))


def _list_database() -> list[dict[str, str]]:
    """What the database says of itself."""
    total, active, idle, locked, oldest, most, deadlocks, hits, replicas, lag = execute_sql(_DATABASE, {})[0]
    crowded = "bad" if total > 0.9 * most else "warn" if total > 0.7 * most else ""
    rows: Sequence[tuple[str, str, str]] = (
        (_("connections"), _("%(count)s of %(most)s") % {"count": total, "most": most}, crowded),
        (_("working now"), format_number(active), ""),
        (_("idle in a transaction"), format_number(idle), "warn" if idle > 5 else ""),
        (_("waiting for a lock"), format_number(locked), "warn" if locked > 5 else ""),
        (_("oldest transaction"), describe_age(oldest) if oldest else "–", _choose_tone(oldest) if oldest else ""),
        (_("read from memory"), f"{format_number(hits, 1)} %" if hits is not None else "–", ""),
        (_("deadlocks since its start"), format_number(deadlocks or 0), ""),
        (_("replicas"), format_number(replicas), ""),
        (_("behind the first replica"), describe_age(lag) if lag else "–", _choose_tone(lag) if lag else ""),
    )
    return [{"name": name, "value": value, "tone": tone} for name, value, tone in rows]


def _choose_tone(late: timedelta) -> str:
    return "bad" if late >= ALARM_LAG else "warn" if late >= WARNING_LAG else ""


def describe_age(age: timedelta) -> str:
    """An age in its two largest units: 3 d 4 h, 5 min, 12 s."""
    seconds = max(0, int(age.total_seconds()))
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    if days:
        return _("%(days)d d %(hours)d h") % {"days": days, "hours": hours}
    if hours:
        return _("%(hours)d h %(minutes)d min") % {"hours": hours, "minutes": minutes}
    return _("%d min") % minutes if minutes else _("%d s") % seconds

"""The dashboard: charts of the last 24 hours, each with a table and a link to the list behind it.

All figures cover the user's own merchants. The page makes three aggregate queries over a bounded window that an index
on ids serves, and counts what is in doubt at any age; answers are cached for half a minute.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from django.core.cache import cache
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.access.permissions import AccessScope
from gateway.backoffice.follow_ups import approval_notice
from gateway.backoffice.kit import charts
from gateway.backoffice.kit.formatting import format_number, name_zone
from gateway.backoffice.kit.periods import format_filter_time
from gateway.backoffice.kit.result_words import describe_result
from gateway.core import clock
from gateway.core.identifiers import first_id_at
from gateway.db.statement import execute_sql
from gateway.models import Status

DASHBOARD_HOURS: Final = 24
DASHBOARD_COMPARED: Final = timedelta(days=7)
"""The day that the last one is compared with lies so far back."""
MAX_DASHBOARD_ROWS: Final = 200_000
"""Figures cover at most so many of the newest rows; the page says so if there are more."""
DASHBOARD_CACHE_S: Final = 30
MAX_SHOWN_BRANDS: Final = 8
MAX_SHOWN_REASONS: Final = 5

SCOPE_CONDITION: Final = (
    "(%(all)s OR {table}.merchant_id = ANY(%(merchants)s::uuid[]) OR {table}.channel_id = ANY(%(channels)s::uuid[]))"
)
# The hour that a payment's id falls into, by comparing ids: taking the time out of each id costs twice as much.
_HOUR: Final = "(%({hours})s::timestamptz[])[width_bucket(id, %({hours}_ids)s::uuid[])]"
_PAYMENTS: Final = f"""
SELECT {_HOUR.format(hours="hours")}, status, brand, result_code, count(*) FROM (
    SELECT p.id, p.status, p.brand, p.result_code FROM gateway_payment p
    WHERE p.id >= %(since)s::uuid AND p.chain = p.id AND {SCOPE_CONDITION.format(table="p")}
    ORDER BY p.id DESC LIMIT {MAX_DASHBOARD_ROWS}
) AS recent GROUP BY 1, 2, 3, 4
"""  # noqa: S608 - put together out of the constants above
# The last hour is counted whole for its column, and up to the same minute for the figures.
_HOURS_BEFORE: Final = f"""
SELECT {_HOUR.format(hours="hours_before")}, status, count(*),
    count(*) FILTER (WHERE id < %(before_now)s::uuid) FROM (
    SELECT p.id, p.status FROM gateway_payment p
    WHERE p.id >= %(before)s::uuid AND p.id < %(before_end)s::uuid AND p.chain = p.id
      AND {SCOPE_CONDITION.format(table="p")}
    ORDER BY p.id DESC LIMIT {MAX_DASHBOARD_ROWS}
) AS earlier GROUP BY 1, 2
"""  # noqa: S608 - put together out of the constants above
# Not only first payments of the last 24 hours: a refund in doubt, or an older payment, has to be looked at as well.
IN_DOUBT_SQL: Final = f"""
SELECT p.connector, p.acquirer_merchant_id, p.channel_id, count(*) FROM (
    SELECT p.connector, p.acquirer_merchant_id, p.channel_id
    FROM gateway_openpayment o JOIN gateway_payment p ON p.id = o.payment_id
    WHERE p.status = '{Status.IN_DOUBT}' AND {SCOPE_CONDITION.format(table="p")} LIMIT {MAX_DASHBOARD_ROWS}
) AS p GROUP BY 1, 2, 3
"""  # noqa: S608 - put together out of the constants above
"""All payments in doubt, follow-ups among them, by connector, merchant id at the acquirer and channel."""
_AUTHENTICATIONS: Final = f"""
SELECT flow, trans_status, step, count(*) FROM (
    SELECT a.flow, a.trans_status, a.step FROM gateway_authentication a
    WHERE a.id >= %(since)s::uuid AND {SCOPE_CONDITION.format(table="a")} ORDER BY a.id DESC LIMIT {MAX_DASHBOARD_ROWS}
) AS recent GROUP BY 1, 2, 3
"""  # noqa: S608 - put together out of the constants above


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One large number of a panel. ``tone``: good, bad, warn or ''; ``link``: the list behind it; ``before``: what it
    was a week before."""

    name: str
    value: str
    link: str = ""
    tone: str = ""
    before: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One chart of the dashboard. ``link``: the list behind it; ``chart`` includes its table; ``words`` are shown
    below."""

    title: str
    link: str
    link_words: str
    figures: Sequence[Figure] = ()
    chart: SafeString | str = ""
    words: str = ""
    facts: Sequence[tuple[str, str, str]] = ()
    """(name, text, address), such as each endpoint that fails."""


PanelBuilder = Callable[[AccessScope], Panel | None]
"""Builds a panel of a scope; None if there is nothing to show."""

_PANELS: Final[dict[str, tuple[str, PanelBuilder, bool]]] = {}


def register_panel(name: str, right: str, build: PanelBuilder, *, cached: bool = True) -> None:
    """Add a panel to the dashboard of users with ``right``; other apps call it when their pages are loaded."""
    _PANELS[name] = (right, build, cached)


def draw_panels(request: HttpRequest) -> list[Panel]:
    """Panels of other apps that this user may see."""
    drawn: list[Panel | None] = []
    for name, (right, build, cached) in _PANELS.items():
        if scope := permissions.find_access_scope(request.user, right):
            drawn.append(cache_for_scope(name, scope, partial(build, scope)) if cached else build(scope))
    return [one for one in drawn if one is not None]


def build_dashboard_context(request: HttpRequest) -> dict[str, Any]:
    """The dashboard's template context for this user."""
    scope = permissions.find_access_scope(request.user, "gateway.view_payment")
    if not scope:
        return {
            "sees_payments": False,
            "panels": draw_panels(request),
            "decided": approval_notice.list_recent_decisions(request.user),
        }
    rows = query_dashboard("payments", scope, _PAYMENTS)
    first = Counter[str]()
    for _hour, status, _brand, _code, count in rows:
        first[status] += count
    hours_before = query_dashboard("payments-before", scope, _HOURS_BEFORE)
    before = Counter[str]()
    for _hour, status, _whole, count in hours_before:
        before[status] += count
    rate_before = _compute_rate(before)
    return {
        "sees_payments": True,
        "panels": draw_panels(request),
        "decided": approval_notice.list_recent_decisions(request.user),
        "hours": chart_payments_by_hour(rows, hours_before),
        "brands": summarize_brands(rows),
        "reasons": summarize_declines(rows),
        "funnel": build_threeds_funnel(query_dashboard("authentications", scope, _AUTHENTICATIONS)),
        "figures": _build_figures(
            first, before, sum(row[-1] for row in query_dashboard("in-doubt", scope, IN_DOUBT_SQL))
        ),
        "rate": _compute_rate(first),
        "rate_before": f"{format_number(Decimal(str(rate_before)), 1)} %" if rate_before is not None else "",
        "cut": sum(first.values()) >= MAX_DASHBOARD_ROWS,
        "most": MAX_DASHBOARD_ROWS,
    }


def _compute_rate(first: Counter[str]) -> float | None:
    """Approved payments in 100 decided ones; None without any."""
    decided = first[Status.APPROVED] + first[Status.DECLINED]
    return round(100 * first[Status.APPROVED] / decided, 1) if decided else None


def _build_figures(first: Counter[str], before: Counter[str], in_doubt: int) -> list[Figure]:
    """Number of first payments by status, each with a link to its list; those that were decided, and nothing that is
    still open, beside the ``before`` of a week ago. Then all that are ``in_doubt``."""
    shown = (
        (_("approved"), Status.APPROVED),
        (_("declined"), Status.DECLINED),
        (_("waiting for shoppers"), Status.PENDING),
        (_("being sent"), Status.STARTED),
    )
    return [
        *(
            Figure(
                name=name,
                value=format_number(first[status]),
                link=build_first_payments_url(status=status),
                before=format_number(before[status]) if status in (Status.APPROVED, Status.DECLINED) and before else "",
            )
            for name, status in shown
            if first[status] or status != Status.STARTED
        ),
        Figure(
            name=_("in doubt, all days"),
            value=format_number(in_doubt),
            tone="warn" if in_doubt else "",
            link=build_payments_url(status=Status.IN_DOUBT),
        ),
    ]


def query_dashboard(name: str, scope: AccessScope, sql: str) -> list[tuple[Any, ...]]:
    """The figures of a scope, cached for half a minute."""
    since = _find_first_hour()
    hours = [since + timedelta(hours=number) for number in range(DASHBOARD_HOURS)]
    hours_before = [hour - DASHBOARD_COMPARED for hour in hours]
    values = {
        "hours": hours,
        "hours_ids": [first_id_at(hour) for hour in hours],
        "hours_before": hours_before,
        "hours_before_ids": [first_id_at(hour) for hour in hours_before],
        "since": first_id_at(since),
        "before": first_id_at(since - DASHBOARD_COMPARED),
        "before_end": first_id_at(since - DASHBOARD_COMPARED + timedelta(hours=DASHBOARD_HOURS)),
        "before_now": first_id_at(clock.real_now() - DASHBOARD_COMPARED),
        "all": scope.everything,
        "merchants": sorted(scope.merchants),
        "channels": sorted(scope.channels),
    }
    found: list[tuple[Any, ...]] = cache_for_scope(name, scope, lambda: execute_sql(sql, values))
    return found


def cache_for_scope(
    name: str,
    scope: AccessScope,
    ask: Callable[[], Any],
    *,
    seconds: int = DASHBOARD_CACHE_S,
    also: AccessScope = permissions.NO_ACCESS,
) -> Any:
    """The result of ``ask``, cached by scope and language. ``also``: a second scope that it depends on."""
    reach = (
        *((one.everything, sorted(one.merchants), sorted(one.channels)) for one in (scope, also)),
        get_language(),
        timezone.get_current_timezone_name(),
    )
    key = f"home-{name}-{hashlib.sha256(repr(reach).encode()).hexdigest()}"
    found = cache.get(key)
    if found is None:
        found = ask()
        cache.set(key, found, seconds)
    return found


def build_first_payments_url(**filters: str) -> str:
    """Address of the list behind a figure of the dashboard: the first payments that it counts, by real time."""
    return build_payments_url(**filters, real_from=format_filter_time(_find_first_hour()), part="first")


def build_payments_url(**filters: str) -> str:
    """Address of the list of payments with these filters."""
    return f"{reverse('admin:gateway_payment_changelist')}?{urlencode(filters)}"


def chart_payments_by_hour(rows: Iterable[tuple[Any, ...]], before: Iterable[tuple[Any, ...]]) -> SafeString:
    """Chart of approved, declined and open payments by hour, and how many there were in the same hour a week before."""
    earlier = Counter[datetime]()
    for hour, _status, whole, _count in before:
        earlier[hour.astimezone(UTC) + DASHBOARD_COMPARED] += whole
    now = clock.real_now().replace(minute=0, second=0, microsecond=0)
    hours = [now - timedelta(hours=back) for back in range(DASHBOARD_HOURS - 1, -1, -1)]
    figures = {hour: [0, 0, 0] for hour in hours}
    for hour, status, _brand, _code, count in rows:
        place = {Status.APPROVED: 0, Status.DECLINED: 1}.get(status, 2)
        at = hour.astimezone(UTC) if hour is not None else None
        if at in figures:
            figures[at][place] += count
    shown = [(f"{timezone.localtime(hour):%H}", tuple(figures[hour]), build_hour_url(hour)) for hour in hours]
    return charts.draw_stacked_bars(
        shown,
        (("good", _("approved")), ("bad", _("declined")), ("note", _("open"))),
        title=_("Payments by hour (%s), the last 24 hours") % name_zone(),
        before=[earlier[hour] for hour in hours],
    )


def build_hour_url(hour: datetime, **filters: str) -> str:
    """Address of the list behind an hour's column: the first payments of this hour, by real time."""
    until = format_filter_time(hour + timedelta(hours=1))
    return build_payments_url(**filters, real_from=format_filter_time(hour), real_to=until, part="first")


def _find_first_hour() -> datetime:
    """The first hour of the charts."""
    return clock.real_now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=DASHBOARD_HOURS - 1)


def summarize_brands(rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Approval rate by brand, the largest brand first."""
    found: dict[str, list[int]] = {}
    for _hour, status, brand, _code, count in rows:
        if status in (Status.APPROVED, Status.DECLINED):
            figures = found.setdefault(brand, [0, 0])
            figures[status == Status.DECLINED] += count
    largest = sorted(found.items(), key=lambda each: -sum(each[1]))[:MAX_SHOWN_BRANDS]
    return [
        {
            "brand": brand or "–",
            "approved": good,
            "declined": bad,
            "rate": round(100 * good / (good + bad), 1),
            "link": build_first_payments_url(**({"brand": brand} if brand else {})),
            "approved_link": build_first_payments_url(**({"brand": brand} if brand else {}), status=Status.APPROVED),
            "declined_link": build_first_payments_url(**({"brand": brand} if brand else {}), status=Status.DECLINED),
        }
        for brand, (good, bad) in largest
    ]


def summarize_declines(rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Declines by result code, the most frequent first."""
    codes = Counter[str]()
    for _hour, status, _brand, code, count in rows:
        if status == Status.DECLINED:
            codes[code] += count
    total = sum(codes.values())
    return [
        {
            "code": code,
            "words": describe_result(code),
            "count": count,
            "share": round(100 * count / total),
            "link": build_first_payments_url(code=code, status=Status.DECLINED),
        }
        for code, count in codes.most_common(MAX_SHOWN_REASONS)
    ]


def build_threeds_funnel(rows: Iterable[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """3-D Secure funnel: requested, frictionless, challenged, authenticated."""
    asked = frictionless = challenged = passed = 0
    for flow, status, _step, count in rows:
        asked += count
        frictionless += count if flow == "frictionless" else 0
        challenged += count if flow in ("challenge", "decoupled") else 0
        passed += count if status in ("Y", "A") else 0

    def link(**filters: str) -> str:
        # By the ids, which are of real time: a merchant's clock may have been moved since.
        recent = {"id__gte": str(first_id_at(_find_first_hour())), **filters}
        return f"{reverse('admin:gateway_authentication_changelist')}?{urlencode(recent)}"

    steps = (
        (_("asked"), asked, link()),
        (_("frictionless"), frictionless, link(flow__exact="frictionless")),
        (_("challenged"), challenged, link(flow__in="challenge,decoupled")),
        (_("passed"), passed, link(trans_status__in="Y,A")),
    )
    return [
        {"name": name, "count": count, "share": round(100 * count / asked) if asked else 0, "link": address}
        for name, count, address in steps
    ]

"""The page "Approval rate": rates by segment, where money is lost, what would bring most, and alarms.

Figures cover the payments that the user sees, by the merchants' clocks; every statement is bounded
(reporting.approvals) and cancelled after the time of a search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from django.core.exceptions import PermissionDenied
from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.template.defaultfilters import floatformat
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, gettext_noop

from gateway.access import permissions
from gateway.access.permissions import AccessScope
from gateway.backoffice.kit import charts, entity_names
from gateway.backoffice.kit.periods import format_filter_time
from gateway.backoffice.kit.time_limit import SearchTooBroadError, limit_search_time
from gateway.backoffice.operations.dashboard import Panel, cache_for_scope, register_panel
from gateway.backoffice.sign_in import session
from gateway.catalogue.structures import MAX_APPROVAL_DAYS
from gateway.core import clock
from gateway.core.intervals import compute_share
from gateway.db.standby import read_elsewhere
from gateway.models import Merchant
from gateway.risk.retry_rules import MAX_RULE_DAYS
from reporting.approvals import alarms, figures, gains, waterfall
from reporting.approvals.figures import MAX_APPROVAL_PAYMENTS, ApprovalPeriod, SegmentFigures
from reporting.approvals.models import RateAlarm
from reporting.approvals.second_acquirers import compute_cascades, count_retries

VIEW_RATES_PERMISSION: Final = "gateway.view_payment"
DEFAULT_RATE_DAYS: Final = 30
RATES_CACHE_S: Final = 60
MAX_SHOWN_SEGMENTS: Final = 50
MAX_CHART_SEGMENTS: Final = 31
SHOWN_ALARM_AGE: Final = timedelta(days=30)
MAX_SHOWN_ALARMS: Final = 20
MAX_PANEL_ALARMS: Final = 5
BREAKDOWN_TITLES: Final = {
    "day": gettext_lazy("Day"),
    "brand": gettext_lazy("Brand"),
    "country": gettext_lazy("Issuer's country"),
    "issuer": gettext_lazy("Issuer"),
    "cardType": gettext_lazy("Kind of card"),
    "cardLevel": gettext_lazy("Card level"),
    "bin": gettext_lazy("BIN"),
    "acquirer": gettext_lazy("Acquirer"),
    "hour": gettext_lazy("Hour"),
    "means": gettext_lazy("Means"),
    "threeDSecure": gettext_lazy("3-D Secure"),
    "shopper": gettext_lazy("Shoppers"),
}
SEGMENT_WORDS: Final = {
    "unknown": gettext_noop("unknown"),
    "frictionless": gettext_noop("3-D Secure, frictionless"),
    "challenge": gettext_noop("3-D Secure, with a challenge"),
    "merchant": gettext_noop("merchant-initiated"),
    "own proof": gettext_noop("proof of an external server"),
    "exemption": gettext_noop("exemption asked for"),
    "none": gettext_noop("without a proof of 3-D Secure"),
    "new": gettext_noop("new shoppers"),
    "returning": gettext_noop("returning shoppers"),
}
_WORDED: Final = frozenset({"country", "issuer", "cardType", "cardLevel", "bin", "threeDSecure", "shopper"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenRates:
    """What the form asks for. ``faults``: what of it was not taken, in words. Both days are included."""

    first: date
    last: date
    by: str
    merchant: Merchant | None
    faults: tuple[str, ...] = ()

    def query(self, **changes: str) -> str:
        """The query string of this page with changes."""
        merchant = {"merchant": self.merchant.entity_id} if self.merchant is not None else {}
        return urlencode({"from": f"{self.first}", "to": f"{self.last}", "by": self.by, **merchant, **changes})


def build_rate_urls(site: Any) -> list[URLPattern]:
    """The page's address, below the back office's."""
    view = site.admin_view(lambda request: show_approval_rates(site, request))
    return [path("approval-rates/", view, name="approval_rates")]


def build_alarm_panel(scope: AccessScope) -> Panel | None:
    """The home page's panel of falls that last; None without any."""
    page = reverse("admin:approval_rates")
    rows = RateAlarm.objects.filter(scope.where("merchant", None), ended_at=None).select_related("merchant")
    open_ = [_render_alarm(one) for one in rows.order_by("-found_at")[:MAX_PANEL_ALARMS]]
    if not open_:
        return None
    facts = [
        (
            one["row"].merchant.name,
            _("%(what)s: %(now)s %%, before %(before)s %%")
            % {
                "what": f"{one['kind']} {one['row'].segment}".strip(),
                "now": floatformat(one["now"].rate, 1),
                "before": floatformat(one["before"].rate, 1),
            },
            page + one["link"],
        )
        for one in open_
    ]
    return Panel(
        title=_("Falls that are no chance"),
        link=page,
        link_words=_("Approval rate"),
        facts=facts,
        words=_("The last hours beside the same hours of the four weeks before."),
    )


register_panel("approval-rates", VIEW_RATES_PERMISSION, build_alarm_panel, cached=False)


def show_approval_rates(site: Any, request: HttpRequest) -> HttpResponse:
    """The page. A period or breakdown that is not valid is named, and the default stands in."""
    scope = permissions.find_access_scope(request.user, VIEW_RATES_PERMISSION)
    if not scope:
        raise PermissionDenied
    merchants = entity_names.list_permitted_entities(request.user, "merchant", VIEW_RATES_PERMISSION)
    chosen = _read_form(request, merchants)
    mine = _narrow(scope, chosen.merchant)
    shown, slow = _load_parts(_build_period(mine, chosen), mine, chosen)
    context = session.build_page_context(
        site,
        request,
        title=_("Approval rate"),
        chosen=chosen,
        typed_merchant=_name_chosen(merchants, chosen.merchant),
        merchant_names=entity_names.build_suggestion_address("merchant"),
        breakdowns=[(name, title, chosen.query(by=name)) for name, title in BREAKDOWN_TITLES.items()],
        by_title=BREAKDOWN_TITLES[chosen.by],
        alarms=[_render_alarm(one) for one in _list_alarms(mine)],
        slow=slow,
        most=MAX_APPROVAL_PAYMENTS,
        most_days=MAX_APPROVAL_DAYS,
        retry_days=MAX_RULE_DAYS,
        **shown,
    )
    return TemplateResponse(request, "admin/books/approval_rates.html", context)


def _read_form(request: HttpRequest, merchants: Any) -> ChosenRates:
    faults: list[str] = []

    def read_day(name: str, default: date) -> date:
        text = request.GET.get(name, "")
        try:
            found = date.fromisoformat(text) if text else default
        except ValueError:
            found = None
        if found is None or not 2000 <= found.year < 2100:
            faults.append(_("%(name)s: give a date as yyyy-MM-dd, e.g. 2026-05-14.") % {"name": name})
            return default
        return found

    merchant = None
    if text := request.GET.get("merchant", "").strip():
        try:
            merchant = entity_names.find_typed_entity(merchants, text)
        except entity_names.EntityNameError as wrong:
            faults.append(_("merchant: %(fault)s.") % {"fault": wrong})
    last = read_day("to", _find_today(merchants, merchant))
    first = read_day("from", last - timedelta(days=DEFAULT_RATE_DAYS - 1))
    if first > last or (last - first).days >= MAX_APPROVAL_DAYS:
        faults.append(_("from, to: 1 to %(days)s days, the first one first.") % {"days": MAX_APPROVAL_DAYS})
        first = last - timedelta(days=DEFAULT_RATE_DAYS - 1)
    by = request.GET.get("by", "day")
    if by not in BREAKDOWN_TITLES:
        faults.append(_("by: one of %(names)s.") % {"names": ", ".join(BREAKDOWN_TITLES)})
        by = "day"
    return ChosenRates(first=first, last=last, by=by, merchant=merchant, faults=tuple(faults))


def _name_chosen(merchants: Any, merchant: Merchant | None) -> str:
    """What the form's field has for a merchant: the name, or the entityId where the name does not find it again."""
    if merchant is None:
        return ""
    try:
        same = entity_names.find_typed_entity(merchants, merchant.name) == merchant
    except entity_names.EntityNameError:
        same = False
    return merchant.name if same else merchant.entity_id


def _find_today(merchants: Any, merchant: Merchant | None) -> date:
    """Today by the clock of the merchant, or of that of the user's merchants that is furthest ahead."""
    if merchant is not None:
        ahead = merchant.clock_offset
    else:
        ahead = merchants.aggregate(ahead=Max("clock_offset"))["ahead"] or timedelta()
    return timezone.localtime(clock.real_now() + ahead).date()


def _narrow(scope: AccessScope, merchant: Merchant | None) -> AccessScope:
    return scope if merchant is None else AccessScope(merchants=frozenset({merchant.pk}))


def _build_period(scope: AccessScope, chosen: ChosenRates) -> ApprovalPeriod:
    begins, ends = clock.bound_days(chosen.first, chosen.last, timezone.get_current_timezone())
    return ApprovalPeriod(
        scope=scope,
        since=begins.astimezone(UTC),
        until=ends.astimezone(UTC),
        zone=timezone.get_current_timezone_name(),
    )


def _ask_in_time(ask: Callable[[], Any]) -> Any:
    with limit_search_time():
        return ask()


def _load_parts(period: ApprovalPeriod, scope: AccessScope, chosen: ChosenRates) -> tuple[dict[str, Any], list[str]]:
    """The parts of the page, cached, and the titles of those that took too long."""
    slow: list[str] = []
    times: list[datetime] = []
    whose = f"{chosen.first}-{chosen.last}"

    def load(name: str, title: str, ask: Callable[[], Any]) -> Any:
        def find() -> tuple[Any, datetime | None]:
            return read_elsewhere(lambda: _ask_in_time(ask))

        try:
            found, as_of = cache_for_scope(f"rates-{name}-{whose}", scope, find, seconds=RATES_CACHE_S)
        except SearchTooBroadError:
            slow.append(title)
            return None
        if as_of is not None:
            times.append(as_of)
        return found

    counted = load("count", _("Payments"), lambda: figures.count_chosen(period))
    segments = load(chosen.by, str(BREAKDOWN_TITLES[chosen.by]), lambda: figures.compute_figures(period, chosen.by))
    falls = load("waterfall", _("Where money is lost"), lambda: waterfall.compute_waterfalls(period)) or []
    cascades = load("cascades", _("Second acquirer after a decline"), lambda: compute_cascades(period)) or []
    retries = load("retries", _("Retries that the schemes count"), lambda: count_retries(period))
    found: list[gains.Gain] = []
    if falls:
        paths = load("threeDSecure", _("3-D Secure"), lambda: figures.compute_figures(period, "threeDSecure")) or []
        found = (
            load("gains", _("What would bring most"), lambda: gains.list_gains(period, falls, paths, cascades)) or []
        )
    return {
        "as_of": min(times, default=None),
        "cut": counted is not None and counted >= MAX_APPROVAL_PAYMENTS,
        "whole": _sum_segments(segments or []),
        "segments": [_render_segment(one, chosen, period) for one in (segments or [])[:MAX_SHOWN_SEGMENTS]],
        "more_segments": max(0, len(segments or []) - MAX_SHOWN_SEGMENTS),
        "chart": _draw_segments(segments or [], chosen),
        "waterfalls": falls,
        "cascades": cascades,
        "retries": retries or [],
        "gains": found,
    }, slow


def _sum_segments(segments: list[SegmentFigures]) -> SegmentFigures:
    """All segments as one."""
    whole = SegmentFigures(name="all")
    for one in segments:
        whole.attempts += one.attempts
        whole.approved += one.approved
        whole.purchases += one.purchases
        whole.approved_purchases += one.approved_purchases
        for currency, money in one.money.items():
            own = whole.money.setdefault(currency, figures.SegmentMoney())
            own.asked += money.asked
            own.approved += money.approved
    return whole


def _name_segment(one: SegmentFigures, by: str) -> str:
    words = SEGMENT_WORDS.get(one.name) if by in _WORDED else None
    if words is not None:
        return _(words)
    return f"{one.name}:00" if by == "hour" else one.name or "–"


def _render_segment(one: SegmentFigures, chosen: ChosenRates, period: ApprovalPeriod) -> dict[str, Any]:
    filters = {"from": format_filter_time(period.since), "to": format_filter_time(period.until), "part": "first"}
    if chosen.merchant is not None:
        filters["merchant"] = chosen.merchant.entity_id
    if chosen.by == "brand":
        filters["brand"] = one.name
    elif chosen.by == "acquirer":
        filters |= dict(zip(("connector", "account"), one.name.split(" ", 1), strict=False))
    # The list drops an empty filter: the link would lead to the payments of every segment.
    linked = chosen.by in ("brand", "acquirer") and one.name
    page = reverse("admin:gateway_payment_changelist")
    return {
        "name": _name_segment(one, chosen.by),
        "figures": one,
        "money": sorted(one.money.items()),
        "link": f"{page}?{urlencode(filters)}" if linked else "",
    }


def _draw_segments(segments: list[SegmentFigures], chosen: ChosenRates) -> SafeString | str:
    shown = segments[:MAX_CHART_SEGMENTS] if chosen.by != "day" else segments[-MAX_CHART_SEGMENTS:]
    if not shown:
        return ""
    rows = [
        (
            one.name[5:] if chosen.by == "day" else _name_segment(one, chosen.by),
            (one.approved, one.attempts - one.approved),
            "",
        )
        for one in shown
    ]
    return charts.draw_stacked_bars(
        rows,
        (("good", _("approved")), ("bad", _("declined"))),
        title=_("Attempts: %(by)s") % {"by": BREAKDOWN_TITLES[chosen.by]},
    )


def _list_alarms(scope: AccessScope) -> list[RateAlarm]:
    since = clock.real_now() - SHOWN_ALARM_AGE
    return list(alarms.list_alarms(scope, since=since, most=MAX_SHOWN_ALARMS))


def _render_alarm(one: RateAlarm) -> dict[str, Any]:
    return {
        "row": one,
        "kind": _(alarms.ALARM_KINDS[one.kind]),
        "now": compute_share(one.approved, one.attempts),
        "before": compute_share(one.before_approved, one.before_attempts),
        "link": "?" + urlencode({"merchant": one.merchant.entity_id, "by": one.kind if one.kind != "all" else "hour"}),
    }

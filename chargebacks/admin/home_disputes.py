"""Home page panel of disputes: open cases by time left, and the most urgent one."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final

from django.urls import reverse
from django.utils.translation import gettext as _

from chargebacks.admin.dispute_filters import build_days_left
from chargebacks.admin.formatting import URGENT_DAYS_LEFT, format_deadline
from chargebacks.deadlines import count_days_between, describe_days_left
from chargebacks.models import Chargeback
from chargebacks.states import DisputeState
from gateway.access.permissions import AccessScope
from gateway.backoffice.kit import charts
from gateway.backoffice.kit.formatting import format_money, format_number
from gateway.backoffice.operations import dashboard
from gateway.backoffice.operations.dashboard import Figure, Panel
from gateway.core import clock

MAX_PANEL_DISPUTES: Final = 10_000
MAX_PANEL_CURRENCIES: Final = 3
DEADLINE_BUCKET_DAYS: Final = (1, 3, 7, 14)
"""Upper bounds of the chart's columns, in days of the merchant's calendar, as on the dispute's page; the last column is
open."""


def build_dispute_panel(scope: AccessScope) -> Panel:
    """The panel of open disputes."""
    disputes = reverse("admin:chargebacks_chargeback_changelist")
    rows = Chargeback.objects.filter(scope.where(), state=DisputeState.OPEN).order_by("due_at", "id")
    now = clock.real_now()
    open_ = [
        # By the merchants' clocks: in the test environment they are moved.
        (due - now - offset, count_days_between(now + offset, due, zone), due, zone, amount, currency, ident)
        for due, offset, zone, amount, currency, ident in rows.values_list(
            "due_at", "merchant__clock_offset", "merchant__time_zone", "amount", "currency", "id"
        )[:MAX_PANEL_DISPUTES]
    ]
    sums = dict[str, Decimal]()
    for _left, _days, _due, _zone, amount, currency, _ident in open_:
        sums[currency] = sums.get(currency, Decimal(0)) + amount
    names = [
        _("1 day"),
        _("2–3 days"),
        _("4–7 days"),
        _("8–14 days"),
        _("later"),
    ]
    columns = [0] * len(names)
    for _left, days, *_rest in open_:
        columns[next((at for at, until in enumerate(DEADLINE_BUCKET_DAYS) if days <= until), len(names) - 1)] += 1
    urgent = sum(1 for _left, days, *_rest in open_ if days <= URGENT_DAYS_LEFT)
    money = ", ".join(format_money(total, currency) for currency, total in sorted(sums.items())[:MAX_PANEL_CURRENCIES])
    link = f"{disputes}?list=open"
    return Panel(
        title=_("Disputes"),
        link=link,
        link_words=_("Disputes to answer"),
        figures=[
            Figure(name=_("to answer"), value=format_number(len(open_)), link=link),
            Figure(
                name=_("within 3 days"),
                value=format_number(urgent),
                link=f"{link}&left={build_days_left(None, URGENT_DAYS_LEFT)}",
                tone="bad" if urgent else "",
            ),
            *([Figure(name=_("at stake"), value=money, link=link)] if money else []),
        ],
        chart=charts.draw_stacked_bars(
            [
                (name, (number,), f"{link}&left={span}" if number else "")
                for name, number, span in zip(names, columns, _list_spans(), strict=True)
            ],
            (("bad", _("disputes")),),
            title=_("Disputes by the time that is left to answer"),
        ),
        facts=[_describe_most_urgent(min(open_), len(open_))] if open_ else [],
    )


def _list_spans() -> list[str]:
    """The chart's columns as the list's filter of days left."""
    ends: list[int | None] = [*DEADLINE_BUCKET_DAYS, None]
    begins: list[int | None] = [None, *(days + 1 for days in DEADLINE_BUCKET_DAYS)]
    return [build_days_left(least, most) for least, most in zip(begins, ends, strict=True)]


def _describe_most_urgent(first: tuple[Any, ...], many: int) -> tuple[str, str, str]:
    """The deadline of the most urgent case, and a link to it."""
    _left, days, due, zone, amount, currency, ident = first
    until = format_deadline(due, zone)
    one = _("1 dispute, answer by %(until)s") % {"until": until}
    several = _("%(many)s disputes, the first to answer by %(until)s") % {"many": many, "until": until}
    address = reverse("admin:chargebacks_chargeback_change", args=[ident])
    return one if many == 1 else several, f"{format_money(amount, currency)}, {describe_days_left(days)}", address


dashboard.register_panel("disputes", "chargebacks.view_chargeback", build_dispute_panel)

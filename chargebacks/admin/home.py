"""Open disputes on the first page, by how long there is to answer, and the one that presses most. Source: J6."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.urls import reverse
from django.utils.translation import gettext as _

from chargebacks.cases import days_between, left_words
from chargebacks.models import Chargeback
from chargebacks.states import State
from gateway import clock
from gateway.admin import home, plots
from gateway.admin.home import Figure, Panel, Source
from gateway.money import amount_text
from gateway.rights import Scope

MOST: Final = 10_000
CURRENCIES: Final = 3
UNTIL_DAYS: Final = (1, 3, 7, 14)
"""Ends of the picture's columns, days of the merchant's calendar, as on the dispute's page; the last one is open."""
URGENT_DAYS: Final = 3


def draw(scope: Scope) -> Panel | None:
    panel: Panel | None = home.kept("disputes", scope, lambda: _drawn(scope))
    return panel


def _drawn(scope: Scope) -> Panel:
    disputes = reverse("admin:chargebacks_chargeback_changelist")
    rows = Chargeback.objects.filter(scope.where(), state=State.OPEN).order_by("due_at", "id")
    now = clock.real()
    open_ = [
        # By their merchants' clocks: in the test environment they are moved.
        (due - now - offset, days_between(now + offset, due, zone), due, zone, amount, currency, ident)
        for due, offset, zone, amount, currency, ident in rows.values_list(
            "due_at", "merchant__clock_offset", "merchant__time_zone", "amount", "currency", "id"
        )[:MOST]
    ]
    sums = dict[str, Decimal]()
    for _left, _days, _due, _zone, amount, currency, _ident in open_:
        sums[currency] = sums.get(currency, Decimal(0)) + amount
    names = [
        _("1 day"), _("2–3 days"), _("4–7 days"), _("8–14 days"), _("later"),
    ]  # fmt: skip
    columns = [0] * len(names)
    for _left, days, *_rest in open_:
        columns[next((at for at, until in enumerate(UNTIL_DAYS) if days <= until), len(names) - 1)] += 1
    urgent = sum(1 for _left, days, *_rest in open_ if days <= URGENT_DAYS)
    money = ", ".join(f"{amount_text(total)} {currency}" for currency, total in sorted(sums.items())[:CURRENCIES])
    link = f"{disputes}?list=open"
    return Panel(
        title=_("Disputes"), link=link, link_words=_("Disputes to answer"),
        figures=[
            Figure(name=_("to answer"), value=str(len(open_)), link=link),
            Figure(name=_("within 3 days"), value=str(urgent), link=link, tone="bad" if urgent else ""),
            *([Figure(name=_("at stake"), value=money)] if money else []),
        ],
        chart=plots.stacked(
            [(name, (number,), link if number else "") for name, number in zip(names, columns, strict=True)],
            (("bad", _("disputes")),), title=_("Disputes by the time that is left to answer"),
        ),
        facts=[_next(min(open_), len(open_))] if open_ else [],
    )  # fmt: skip


def _next(first: tuple[Any, ...], many: int) -> tuple[str, str, str]:
    """Until when the first one has to be answered, in its merchant's time zone, and the way to it."""
    _left, days, due, zone, amount, currency, ident = first
    until = f"{due.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} ({zone})"
    one = _("1 dispute, answer by %(until)s") % {"until": until}
    several = _("%(many)s disputes, the first to answer by %(until)s") % {"many": many, "until": until}
    address = reverse("admin:chargebacks_chargeback_change", args=[ident])
    return one if many == 1 else several, f"{amount_text(amount)} {currency}, {left_words(days)}", address


SOURCE: Final = home.add(Source(name="disputes", right="chargebacks.view_chargeback", draw=draw))

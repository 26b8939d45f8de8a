"""Open disputes on the first page, by how long there is to answer."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _

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
"""Ends of the picture's columns, days; the last one is open."""
URGENT: Final = timedelta(days=3)


def draw(scope: Scope) -> Panel | None:
    panel: Panel | None = home.kept("disputes", scope, lambda: _drawn(scope))
    return panel


def _drawn(scope: Scope) -> Panel:
    disputes = reverse("admin:chargebacks_chargeback_changelist")
    rows = Chargeback.objects.filter(scope.where(), state=State.OPEN).order_by("due_at")
    now = clock.real()
    left, sums = list[timedelta](), dict[str, Decimal]()
    for due, offset, amount, currency in rows.values_list("due_at", "merchant__clock_offset", "amount", "currency")[
        :MOST
    ]:
        left.append(due - offset - now)
        sums[currency] = sums.get(currency, Decimal(0)) + amount
    names = [
        _("1 day"), _("2–3 days"), _("4–7 days"), _("8–14 days"), _("later"),
    ]  # fmt: skip
    columns = [0] * len(names)
    for span in left:
        columns[next((at for at, days in enumerate(UNTIL_DAYS) if span <= timedelta(days=days)), len(names) - 1)] += 1
    urgent = sum(1 for span in left if span <= URGENT)
    money = ", ".join(f"{amount_text(total)} {currency}" for currency, total in sorted(sums.items())[:CURRENCIES])
    link = f"{disputes}?list=open"
    return Panel(
        title=_("Disputes"), link=link, link_words=_("Disputes to answer"),
        figures=[
            Figure(name=_("to answer"), value=str(len(left)), link=link),
            Figure(name=_("within 3 days"), value=str(urgent), link=link, tone="bad" if urgent else ""),
            *([Figure(name=_("at stake"), value=money)] if money else []),
        ],
        chart=plots.stacked(
            [(name, (number,), link if number else "") for name, number in zip(names, columns, strict=True)],
            (("bad", _("disputes")),), title=_("Disputes by the time that is left to answer"),
        ),
    )  # fmt: skip


SOURCE: Final = home.add(Source(name="disputes", right="chargebacks.view_chargeback", draw=draw))

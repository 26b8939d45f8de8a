"""Due settlements on the first page: files that came and that are missed, and what of the books waits for somebody."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _

from gateway import clock
from gateway.admin import home, plots
from gateway.admin.home import Figure, Panel, Source
from gateway.rights import Scope
from reporting import missing, owed
from reporting.models import ClearingInstitute, Finding, Matching, Settlement, SettlementFile, SettlementRecord

DAYS: Final = 14
MOST_COUNTED: Final = 10_000
INSTITUTES_AT_MOST: Final = 50
MISSING_AT_MOST: Final = 5


def draw(scope: Scope) -> Panel | None:
    panel: Panel | None = home.kept("settlements", scope, lambda: _drawn(scope))
    return panel


def _drawn(scope: Scope) -> Panel | None:
    institutes = _institutes(scope)
    if not institutes:
        return None
    files = reverse("admin:reporting_settlementfile_changelist")
    queue = reverse("admin:reporting_settlementrecord_changelist")
    # Each institute has a day of its own; the picture ends with the latest of them.
    today = max(clock.real().astimezone(one.zone).date() for one in institutes)
    days = [today - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]
    came, missed = _came(institutes, days[0]), _missed(institutes, days[0])
    shown = [(f"{day:%d.%m.}", (came.get(day, 0), sum(1 for one, _by in missed if one == day)), files) for day in days]
    late = owed.now_owed(scope)
    records = SettlementRecord.objects.filter(scope.where("merchant", None))
    counted = [
        (_("several candidates"), records.filter(state=Matching.MULTIPLE_MATCHES, marked=False), "multiple"),
        (_("not matched"), records.filter(state=Matching.NOT_MATCHED, marked=False), "unmatched"),
        (_("findings"), Finding.objects.filter(scope.where("merchant", None), closed_at=None), "findings"),
    ]
    figures = [
        Figure(name=name, value=_figure(number), link=f"{queue}?list={chosen}", tone="warn" if number else "")
        for name, rows, chosen in counted if (number := rows.order_by()[: MOST_COUNTED + 1].count()) is not None
    ]  # fmt: skip
    return Panel(
        title=_("Due settlements"), link=queue, link_words=_("Exceptions"),
        figures=[
            Figure(name=_("files missing"), value=str(len(missed)), link=files, tone="bad" if missed else ""),
            Figure(name=_("payments not settled"), value=_figure(late), link=f"{queue}?list=missing",
                   tone="bad" if late else ""),
            *figures,
        ],
        chart=plots.stacked(
            shown, (("good", _("files that came")), ("bad", _("expected, did not come"))),
            title=_("Settlement files by day, the last 14 days"),
        ),
        facts=[(f"{day:%Y-%m-%d}", _("no file of %s") % by, files) for day, by in missed[-MISSING_AT_MOST:]],
        words=_("Expected files are missed from the day after."),
    )  # fmt: skip


def _figure(number: int) -> str:
    return f"{number:,}" if number <= MOST_COUNTED else f"> {MOST_COUNTED:,}"


def _institutes(scope: Scope) -> list[ClearingInstitute]:
    """Those that settle for somebody the user reaches; of the whole installation, all."""
    rows = ClearingInstitute.objects.filter(active=True)
    if not scope.everything:
        of = Settlement.objects.filter(scope.where("merchant", None)).order_by().values("institute").distinct()
        rows = rows.filter(pk__in=of)
    return list(rows[:INSTITUTES_AT_MOST])


def _came(institutes: Sequence[ClearingInstitute], first: date) -> dict[date, int]:
    counted: dict[date, int] = {}
    zones = {one.pk: one.zone for one in institutes}
    rows = SettlementFile.objects.filter(institute__in=zones, received_at__date__gte=first - timedelta(days=1))
    for institute, at in rows.exclude(state=SettlementFile.State.FAILED).values_list("institute", "received_at"):
        day = at.astimezone(zones[institute]).date()
        counted[day] = counted.get(day, 0) + 1
    return counted


def _missed(institutes: Sequence[ClearingInstitute], first: date) -> list[tuple[date, str]]:
    """(day, institute) of files that were expected and did not come, oldest first: days that are over where the
    institute is, none before it was set up."""
    found = [
        (day, one.name) for one in institutes if one.expects_files_on
        for day in missing.lately(one) if day >= first
    ]  # fmt: skip
    return sorted(found)


SOURCE: Final = home.add(Source(name="settlements", right="reporting.view_settlementrecord", draw=draw))

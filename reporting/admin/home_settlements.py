"""Home page panel of settlement: files received and missing, and how many exceptions and findings are open."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.access.permissions import AccessScope
from gateway.backoffice.kit import charts
from gateway.backoffice.kit.formatting import format_number
from gateway.backoffice.operations import dashboard
from gateway.backoffice.operations.dashboard import Figure, Panel
from gateway.core import clock
from reporting.admin import settlement_files
from reporting.models import ClearingInstitute, Finding, MatchState, Settlement, SettlementFile, SettlementRecord
from reporting.settlement import missing_settlements, unsettled_reminders

SETTLEMENT_PANEL_DAYS: Final = 14
MAX_COUNTED_PAYMENTS: Final = 10_000
MAX_PANEL_INSTITUTES: Final = 50
MAX_PANEL_MISSING: Final = 5


def build_settlement_panel(scope: AccessScope) -> Panel | None:
    """The panel of settlement; None where no institute settles for a merchant in reach."""
    institutes = _list_institutes(scope)
    if not institutes:
        return None
    # Files are of the whole installation: who sees some of its merchants has no list of them.
    files = (
        reverse("admin:reporting_settlementfile_changelist") if settlement_files.reaches_every_merchant(scope) else ""
    )
    missing = f"{files}#missing" if files else ""
    queue = reverse("admin:reporting_settlementrecord_changelist")
    # Each institute has its own time zone and so its own today; the chart ends with the latest of them.
    today = max(clock.real_now().astimezone(one.zone).date() for one in institutes)
    days = [today - timedelta(days=back) for back in range(SETTLEMENT_PANEL_DAYS - 1, -1, -1)]
    came, missed = _count_received(institutes, days[0]), _list_missing_days(institutes, days[0])
    shown = [
        (
            f"{day:%m-%d}",
            (came.get(day, 0), sum(1 for one, _by in missed if one == day)),
            f"{files}?day={day:%Y-%m-%d}" if files else "",
        )
        for day in days
    ]
    late = unsettled_reminders.count_unsettled_payments(scope)
    records = SettlementRecord.objects.filter(scope.where("merchant", None))
    counted = [
        (_("several candidates"), records.filter(state=MatchState.MULTIPLE_MATCHES, without_payment=False), "multiple"),
        (_("not matched"), records.filter(state=MatchState.NOT_MATCHED, without_payment=False), "unmatched"),
        (_("findings"), Finding.objects.filter(scope.where("merchant", None), closed_at=None), "findings"),
    ]
    figures = [
        Figure(name=name, value=_build_figure(number), link=f"{queue}?list={chosen}", tone="warn" if number else "")
        for name, rows, chosen in counted
        if (number := rows.order_by()[: MAX_COUNTED_PAYMENTS + 1].count()) is not None
    ]
    return Panel(
        title=_("Due settlements"),
        link=queue,
        link_words=_("Exceptions"),
        figures=[
            Figure(
                name=_("files missing"),
                value=format_number(len(missed)),
                link=missing,
                tone="bad" if missed else "",
            ),
            Figure(
                name=_("payments not settled"),
                value=_build_figure(late),
                link=f"{queue}?list=missing",
                tone="bad" if late else "",
            ),
            *figures,
        ],
        chart=charts.draw_stacked_bars(
            shown,
            (("good", _("files that came")), ("bad", _("expected, did not come"))),
            title=_("Settlement files by day, the last 14 days"),
        ),
        facts=[(f"{day:%Y-%m-%d}", _("no file of %s") % by, missing) for day, by in missed[-MAX_PANEL_MISSING:]],
        words=_("Expected files are missed from the day after."),
    )


def _build_figure(number: int) -> str:
    return format_number(number) if number <= MAX_COUNTED_PAYMENTS else f"> {format_number(MAX_COUNTED_PAYMENTS)}"


def _list_institutes(scope: AccessScope) -> list[ClearingInstitute]:
    """The institutes that settle for a merchant within reach; for the whole installation, all of them."""
    rows = ClearingInstitute.objects.filter(active=True)
    if not scope.everything:
        of = Settlement.objects.filter(scope.where("merchant", None)).order_by().values("institute").distinct()
        rows = rows.filter(pk__in=of)
    return list(rows[:MAX_PANEL_INSTITUTES])


def _count_received(institutes: Sequence[ClearingInstitute], first: date) -> dict[date, int]:
    counted: dict[date, int] = {}
    zones = {one.pk: one.zone for one in institutes}
    rows = SettlementFile.objects.filter(institute__in=zones, received_at__date__gte=first - timedelta(days=1))
    for institute, at in rows.exclude(state=SettlementFile.State.FAILED).values_list("institute", "received_at"):
        day = at.astimezone(zones[institute]).date()
        counted[day] = counted.get(day, 0) + 1
    return counted


def _list_missing_days(institutes: Sequence[ClearingInstitute], first: date) -> list[tuple[date, str]]:
    """(day, institute) of expected files that did not come, oldest first: only days that are over in the institute's
    time zone, and none before it was set up."""
    found = [
        (day, one.name)
        for one in institutes
        if one.expects_files_on
        for day in missing_settlements.list_recent_days_without_file(one)
        if day >= first
    ]
    return sorted(found)


dashboard.register_panel("settlements", "reporting.view_settlementrecord", build_settlement_panel)

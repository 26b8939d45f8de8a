"""Home page panel of reconciliation files: how many reached the merchants' SFTP servers, and which did not."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from django.db.models import QuerySet
from django.urls import reverse
from django.utils.translation import gettext as _

from gateway.access.permissions import AccessScope
from gateway.backoffice.kit import charts
from gateway.backoffice.kit.formatting import format_number
from gateway.backoffice.operations import dashboard
from gateway.backoffice.operations.dashboard import Figure, Panel
from gateway.core import clock
from reporting.models import Delivery, DeliveryAttempt, SftpTarget

DELIVERY_PANEL_DAYS: Final = 14
MAX_COUNTED_ATTEMPTS: Final = 20_000
"""Attempts counted by the chart, the newest."""
MAX_PANEL_FAILURES: Final = 5


def build_delivery_panel(scope: AccessScope) -> Panel | None:
    """The panel of reconciliation file deliveries; None where no merchant in reach has an SFTP target."""
    if not SftpTarget.objects.filter(scope.where("merchant", None)).exists():
        return None
    files = reverse("admin:reporting_reconciliationfile_changelist")
    rows = Delivery.objects.filter(scope.where("file__merchant", None))
    waiting = rows.filter(state=Delivery.State.WAITING, attempts__gt=0)
    lost = rows.filter(state=Delivery.State.FAILED)
    again, given_up = waiting.count(), lost.count()
    today = clock.real_now().date()
    days = [today - timedelta(days=back) for back in range(DELIVERY_PANEL_DAYS - 1, -1, -1)]
    tried = _count_attempts(scope, days[0])
    return Panel(
        title=_("Files sent by SFTP"),
        link=files,
        link_words=_("Reconciliation files"),
        figures=[
            Figure(
                name=_("tried again"),
                value=format_number(again),
                link=f"{files}?sent=again",
                tone="warn" if again else "",
            ),
            Figure(
                name=_("given up"),
                value=format_number(given_up),
                link=f"{files}?sent=lost",
                tone="bad" if given_up else "",
            ),
        ],
        chart=charts.draw_stacked_bars(
            [(f"{day:%m-%d}", tried.get(day, (0, 0)), f"{files}?tried={day:%Y-%m-%d}") for day in days],
            (("good", _("sent")), ("bad", _("failed"))),
            title=_("Tries by day (UTC), the last 14 days"),
        ),
        facts=_list_failures(waiting | lost),
    )


def _count_attempts(scope: AccessScope, first: date) -> dict[date, tuple[int, int]]:
    """Deliveries by day: how many attempts succeeded, and how many failed."""
    rows = DeliveryAttempt.objects.filter(scope.where("delivery__file__merchant", None), at__date__gte=first)
    found: dict[date, tuple[int, int]] = {}
    for at, why in rows.order_by("-id").values_list("at", "why")[:MAX_COUNTED_ATTEMPTS]:
        good, bad = found.get(at.date(), (0, 0))
        found[at.date()] = (good, bad + 1) if why else (good + 1, bad)
    return found


def _list_failures(rows: QuerySet[Delivery]) -> list[tuple[str, str, str]]:
    """The newest files that did not arrive: merchant and day, the failure, and a link to their page."""
    return [
        (
            f"{one.file.merchant.name} {one.file.day:%Y-%m-%d}",
            last.why if (last := one.tries.last()) else "–",
            reverse("admin:reporting_reconciliationfile_change", args=(one.file_id,)),
        )
        for one in rows.select_related("file__merchant").order_by("-id")[:MAX_PANEL_FAILURES]
    ]


dashboard.register_panel("sending", "reporting.view_reconciliationfile", build_delivery_panel)

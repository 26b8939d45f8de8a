"""Filters of the list of disputes that figures link to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.db.models import DateField, DateTimeField, F, Func, QuerySet, Value
from django.db.models.functions import Cast
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chargebacks.models import Chargeback
from gateway.core import clock

_DAYS_LEFT: Final = re.compile("([0-9]{0,4})-([0-9]{0,4})")
_OPENED_DAYS: Final = re.compile("[1-9][0-9]{0,3}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputePeriod:
    """Days left to answer, as the merchant's calendar counts them (``least`` to ``most``, None for no end), and how
    many days ago a dispute was opened at most. What cannot be read narrows nothing."""

    least: int | None = None
    most: int | None = None
    opened: int | None = None

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The filter as parameters of an address."""
        left = [("left", build_days_left(self.least, self.most))] if (self.least, self.most) != (None, None) else []
        return [*left, *([("opened", str(self.opened))] if self.opened is not None else [])]

    def narrow(self, rows: QuerySet[Chargeback]) -> QuerySet[Chargeback]:
        now = clock.real_now()
        if self.opened is not None:
            rows = rows.filter(opened_at__gte=now - timedelta(days=self.opened))
        if (self.least, self.most) == (None, None):
            return rows
        due, today = _date_at_merchant(F("due_at")), _date_at_merchant(Value(now) + F("merchant__clock_offset"))
        rows = rows.annotate(days_left=due - today)
        if self.least is not None:
            rows = rows.filter(days_left__gte=timedelta(days=self.least))
        return rows if self.most is None else rows.filter(days_left__lte=timedelta(days=self.most))

    def describe(self) -> str:
        """The filter in words; empty for none."""
        if self.opened is not None:
            return ngettext("opened within %d day", "opened within %d days", self.opened) % self.opened
        if (self.least, self.most) == (None, None):
            return ""
        if self.least is None or self.most is None:
            return _("days left: %s") % (f"≥ {self.least}" if self.most is None else f"≤ {self.most}")
        return _("days left: %s") % f"{self.least}–{self.most}"


def _date_at_merchant(at: Any) -> Any:
    """The day of a moment in the merchant's time zone."""
    local = Func(F("merchant__time_zone"), at, function="timezone", output_field=DateTimeField())
    return Cast(local, DateField())


def build_days_left(least: int | None, most: int | None) -> str:
    """A range of days left as the parameter ``left`` has it: 4-7, -3 (at most), 15- (at least)."""
    return f"{'' if least is None else least}-{'' if most is None else most}"


def read_period(sent: QueryDict) -> DisputePeriod:
    """The filter of a query string."""
    left, opened = _DAYS_LEFT.fullmatch(sent.get("left", "")), _OPENED_DAYS.fullmatch(sent.get("opened", ""))
    least, most = (int(text) if text else None for text in left.groups()) if left else (None, None)
    return DisputePeriod(least=least, most=most, opened=int(opened[0]) if opened else None)

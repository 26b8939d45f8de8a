"""Filters of lists: by a related row, chosen from a few or by typing its name, and by a period."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, ClassVar, Final

from django.conf import settings
from django.contrib import admin, messages
from django.db import models
from django.http import HttpRequest
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from gateway.backoffice.kit.entity_names import (
    MAX_TYPED_NAME_CHARS,
    EntityNameError,
    build_suggestion_address,
    find_typed_entity,
    label_entity,
)
from gateway.backoffice.kit.formatting import format_labelled, name_zone
from gateway.backoffice.kit.periods import (
    CLOCK_TOLERANCE,
    PERIOD_FILTER_NAMES,
    PERIODS,
    parse_filter_period,
    render_filter_end,
)
from gateway.core.identifiers import first_id_at
from gateway.models import Channel, Merchant

MAX_FILTER_LINKS: Final = 10
"""Related rows that a filter lists as links. Merchants and channels beyond that are chosen by typing."""
MAX_UNTYPED_LINKS: Final = 100
"""Related rows that a filter lists as links where none can be typed."""
PLACE_PARAMETERS: Final = frozenset({"p", "e", "all"})
"""Parameters of a list's address that end with another filter: the place in it, and an error."""
_TYPED_KINDS: Final[dict[type[models.Model], str]] = {Channel: "channel", Merchant: "merchant"}


def show_fault(request: HttpRequest, title: str, fault: str) -> None:
    """Say above the list why a filter found nothing: its field may be folded away. Once, however often it is asked."""
    said = request.__dict__.setdefault("_filter_faults", set())
    if (title, fault) not in said:
        said.add((title, fault))
        messages.warning(request, format_labelled(capfirst(title), fault))


def _drop_blanks(params: dict[str, list[str]], name: str) -> None:
    """Leave out values that say nothing: a field that was emptied asks for no row rather than for one without an id."""
    if name in params:
        given = [text for text in params.pop(name) if text.strip()]
        if given:
            params[name] = given


class RelatedRowFilter(admin.RelatedFieldListFilter):
    """A filter by a related row that knows only rows which the user may see. A few are links; merchants and channels
    are typed where there are more, with suggestions: a name, a part of one that only one row has, or an entityId."""

    typed = False
    """Whether the filter is a field instead of links."""
    fault = ""
    """Why what was typed names no row, for the filter's field."""

    def __init__(
        self, field: Any, request: HttpRequest, params: Any, model: Any, model_admin: Any, field_path: str
    ) -> None:
        related = model_admin.admin_site._registry.get(field.remote_field.model)
        self.related = field.remote_field.model
        rows = related.get_queryset(request) if related is not None else self.related.objects.none()
        if self.related is Channel:
            rows = rows.select_related("merchant").order_by("merchant__name", "name")
        elif self.related is Merchant:
            rows = rows.order_by("name")
        self.rows = rows if rows.ordered else rows.order_by("pk")
        self.kept = [
            (name, text) for name in request.GET for text in request.GET.getlist(name) if name not in PLACE_PARAMETERS
        ]
        _drop_blanks(params, f"{field_path}__{field.target_field.name}__exact")
        super().__init__(field, request, params, model, model_admin, field_path)
        self.kept = [(name, text) for name, text in self.kept if name not in self.expected_parameters()]

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        """The rows as links; none where there are too many and one can be typed."""
        if self.related not in _TYPED_KINDS:
            links = [(row.pk, label_entity(row)) for row in self.rows[:MAX_UNTYPED_LINKS]]
            return sorted(links, key=lambda link: link[1].casefold())
        found = list(self.rows[: MAX_FILTER_LINKS + 1])
        self.typed = len(found) > MAX_FILTER_LINKS
        return [] if self.typed else [(row.pk, label_entity(row)) for row in found]

    @property
    def template(self) -> str:  # type: ignore[override]  # Django reads it of each filter
        """Django's links, or a field."""
        return "admin/clerk/filter_by_name.html" if self.typed or self.fault else "admin/filter.html"

    def has_output(self) -> bool:
        """Whether the page shows the filter: a single choice is none."""
        return self.typed or bool(self.fault) or super().has_output()

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """The rows of what was chosen; none where a text names none, or several."""
        given: Any = self.used_parameters.get(self.lookup_kwarg) if self.related in _TYPED_KINDS else None
        asked = str(given[-1]) if given else ""
        if not asked:
            found = super().queryset(request, queryset)
            return queryset if found is None else found
        try:
            row = find_typed_entity(self.rows, asked)
        except EntityNameError as fault:
            self.fault, self.shown = str(fault), asked
            show_fault(request, str(self.title), self.fault)
            return queryset.none()
        self.shown = label_entity(row)
        return queryset.filter(**{self.field_path: row.pk})

    shown = ""
    """What the field has: the name of the chosen row, or what was typed."""

    def choices(self, changelist: Any) -> Iterator[Any]:
        """The links, or what the field's template needs."""
        if self.template == "admin/filter.html":
            yield from super().choices(changelist)
            return
        yield {
            "name": self.lookup_kwarg,
            "value": self.shown,
            "fault": self.fault,
            "names": build_suggestion_address(_TYPED_KINDS[self.related]),
            "most": MAX_TYPED_NAME_CHARS,
            "kept": self.kept,
            "clear": changelist.get_query_string(remove=self.expected_parameters()) if self.shown else "",
        }


class PeriodFilter(admin.ListFilter):
    """A filter by a period of PERIODS, or from one day or time to another, in the reader's zone.

    ``column``: the time that is compared. ``real``: it is real time, not a merchant's clock. ``by_id``: ids are made in
    the order of real time, so that a period is found along the primary key in a table of any size.
    """

    title = gettext_lazy("Period")
    template = "admin/clerk/filter_by_period.html"
    parameters: ClassVar[tuple[str, ...]] = PERIOD_FILTER_NAMES
    column: ClassVar[str] = "created_at"
    real: ClassVar[bool] = False
    by_id: ClassVar[bool] = True

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        super().__init__(request, params, model, model_admin)
        self.asked: dict[str, str] = {}
        for name in self.parameters:
            if name in params:
                self.asked[name] = str(params.pop(name)[-1]).strip()
        self.faults: dict[str, str] = {}
        self.kept = [
            (name, text)
            for name in request.GET
            for text in request.GET.getlist(name)
            if name not in PLACE_PARAMETERS and name not in self.parameters
        ]

    def has_output(self) -> bool:
        """Always: every list has times."""
        return True

    def expected_parameters(self) -> list[str | None]:
        """The parameters of an address that this filter reads."""
        return list(self.parameters)

    def queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> models.QuerySet[Any]:
        """The rows of the period; none where a value cannot be read, which the field says."""
        since, until, self.faults = parse_filter_period(self.asked)
        for name, fault in self.faults.items():
            show_fault(request, {"period": _("Period"), "from": _("From"), "to": _("To")}[name], fault)
        if self.faults:
            return queryset.none()
        found = models.Q()
        if since is not None:
            found &= models.Q(**{f"{self.column}__gte": since})
            # A moved clock shows later times than the ids have.
            if self.by_id and (self.real or settings.IS_LIVE):
                found &= models.Q(pk__gte=self.find_first_id(since - CLOCK_TOLERANCE))
        if until is not None:
            found &= models.Q(**{f"{self.column}__lt": until})
            if self.by_id:
                found &= models.Q(pk__lt=self.find_first_id(until + CLOCK_TOLERANCE))
        return queryset.filter(found)

    @staticmethod
    def find_first_id(at: datetime) -> Any:
        """The first id that a row of this time may have; of another kind of ids in a subclass."""
        return first_id_at(at)

    def choices(self, changelist: Any) -> Iterator[dict[str, Any]]:
        """What the template needs."""
        chosen = self.asked.get("period", "")
        yield {
            "periods": [(value, _(words), value == chosen) for value, words in PERIODS.items()],
            "ends": [
                {
                    "name": name,
                    "label": label,
                    "value": render_filter_end(name, self.asked.get(name, "")),
                    "fault": self.faults.get(name, ""),
                }
                for name, label in (("from", _("From (%s)") % name_zone()), ("to", _("To")))
            ],
            "fault": self.faults.get("period", ""),
            "kept": self.kept,
            "clear": changelist.get_query_string(remove=self.expected_parameters()) if self.asked else "",
        }


def build_period_filter(column: str, *, real: bool = False, by_id: bool = True) -> type[PeriodFilter]:
    """The filter by a period of one list's time."""
    return type("PeriodFilter", (PeriodFilter,), {"column": column, "real": real, "by_id": by_id})

"""Base classes of the back office's pages: which rows a user sees, who acts, and audit entries of changes and views.

A page of rows that belong to merchants is a :class:`MerchantPage`. It names the lookups from its rows to their merchant
and channel; lists, search, filters, autocomplete, popups, export, actions and the addresses of single rows then all
follow the user's grants (gateway.access.permissions). A row outside them answers 404, as if it did not exist.

    @admin.register(WalletKey)
    class WalletKeyAdmin(MerchantPage):
        merchant_path, channel_path = "channel__merchant", "channel"
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import label_for_field, unquote
from django.contrib.admin.views.main import ORDER_VAR
from django.contrib.admin.widgets import AutocompleteSelect, RelatedFieldWidgetWrapper
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.db import IntegrityError, models, transaction
from django.forms import BaseModelFormSet, ModelChoiceField, ModelForm, SplitDateTimeField
from django.forms.models import model_to_dict
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils import timezone
from django.utils.functional import Promise, cached_property
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from psycopg.errors import UniqueViolation
from unfold.admin import ModelAdmin, TabularInline
from unfold.views import ChangeList

from gateway.access import audit_log, permissions
from gateway.access.permissions import AccessScope, RowOwner
from gateway.backoffice.access.audit_sentences import describe_entries
from gateway.backoffice.kit import edit_conflict, list_columns, saved_views
from gateway.backoffice.kit.entity_names import label_channel
from gateway.backoffice.kit.list_filters import PeriodFilter, RelatedRowFilter
from gateway.backoffice.kit.standby_pages import serve_from_standby
from gateway.backoffice.sign_in import session
from gateway.core.client_address import resolve_client_ip
from gateway.core.masking import contains_card_number
from gateway.models import AuditEntry, Channel

MAX_COUNTED_LIST_ROWS: Final = 10_000
"""Rows that a list counts. Users reach rows behind them by narrowing the list."""
MAX_HISTORY_ROWS: Final = 200


def actor_from_request(request: HttpRequest) -> audit_log.Actor:
    """The request's user and address, for an audit entry."""
    return audit_log.Actor(name=request.user.get_username(), ip=resolve_client_ip(request))


def collect_audit_values(row: models.Model) -> dict[str, Any]:
    """A row's columns as an audit entry stores them, without sealed and binary ones."""
    hidden = {field.name for field in row._meta.concrete_fields if isinstance(field, models.BinaryField)}
    return {
        name: value if isinstance(value, bool | int | list | dict | None) else str(value)
        for name, value in model_to_dict(row).items()
        if name not in hidden | UNAUDITED_COLUMNS
    }


_COMPARED: Final = frozenset({"exact", "in", "isnull", "gte", "lte", "gt", "lt"})
"""Comparisons that a list's query string may use on a column that has a filter."""
UNAUDITED_COLUMNS: Final = frozenset({"password", "user_permissions", "groups"})
"""Columns that audit entries leave out."""


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # not generic at run time
    """A paginator that counts up to MAX_COUNTED_LIST_ROWS rows: counting a million costs more than showing fifty."""

    most_counted = MAX_COUNTED_LIST_ROWS

    @cached_property
    def count(self) -> int:
        rows = self.object_list
        if isinstance(rows, models.QuerySet):
            return int(rows.order_by()[:MAX_COUNTED_LIST_ROWS].count())
        return len(rows)


def remove_popups(field: Any) -> Any:
    """Remove the add, change, delete and view links beside a foreign key's field. Each of those rows has a page of its
    own."""
    widget = getattr(field, "widget", None)
    if isinstance(widget, RelatedFieldWidgetWrapper):
        widget.can_add_related = widget.can_change_related = False
        widget.can_delete_related = widget.can_view_related = False
    return field


def _name_field_zone(field: Any) -> Any:
    """Name the time zone in which a typed time is read: the reader's, which may be another one than the browser's."""
    if isinstance(field, SplitDateTimeField):
        zone = _("Time zone: %s.") % timezone.get_current_timezone_name()
        field.help_text = f"{field.help_text} {zone}".strip()
    return field


_TYPED_NAMES: Final = frozenset({"name", "description", "username", "first_name", "last_name"})
"""Columns that hold what a person typed to name a row: lists, searches, exports and the audit log show them."""


def _refuse_card_numbers(kind: type[ModelForm[Any]]) -> type[ModelForm[Any]]:
    """A subclass of ``kind`` in which no name may hold a card number."""

    def clean(self: ModelForm[Any]) -> dict[str, Any] | None:
        for name in _TYPED_NAMES.intersection(self.cleaned_data):
            if contains_card_number(str(self.cleaned_data[name] or "")):
                self.add_error(name, _("A whole card number is not kept, in no name and no search."))
        return kind.clean(self)

    return type(kind.__name__, (kind,), {"clean": clean})


def _capitalize_labels(kind: type[ModelForm[Any]]) -> None:
    """Begin the labels that a form declares with a capital letter, as Django does for those of a model's columns. A
    label that is not translated is a name, such as that of a connector's setting: it stays as it is."""
    for name, each in kind.base_fields.items():
        if isinstance(each.label, Promise):
            # A declared field is one object of all requests: its label would be wrapped by each of them.
            own = copy.deepcopy(each)
            own.label = capfirst(each.label)
            kind.base_fields[name] = own
            if name in kind.declared_fields:
                kind.declared_fields[name] = own


def name_channel_choices(field: ModelChoiceField[Any]) -> None:
    """Make a form's channel field use :func:`label_channel`."""
    if field.queryset is not None:
        field.queryset = field.queryset.select_related("merchant")
    field.label_from_instance = label_channel  # type: ignore[method-assign,assignment]  # Django's own way to name a choice


class SingleAutocomplete(AutocompleteSelect):
    """A foreign key's field that is filled by typing. A value that is no key of a row selects none."""

    def optgroups(self, name: str, value: Sequence[str], attr: Any = None) -> Any:
        return super().optgroups(name, [key for key in value if self._is_key(key)], attr)

    def _is_key(self, text: str) -> bool:
        try:
            self.field.remote_field.model._meta.pk.to_python(text)
        except ValidationError:
            return False
        return True


class ColumnedChangeList(ChangeList):  # type: ignore[misc]  # the theme has no types
    """A list whose address may name its columns."""

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        found: dict[str, Any] = super().get_filters_params(params)
        found.pop(list_columns.COLUMNS_PARAMETER, None)
        return found


class BackofficePage(ModelAdmin):
    """A page of the back office: audited, with bounded counts, and without Django's own log of actions.

    ``sensitive``: viewing a single row writes an audit entry too.
    """

    sensitive: ClassVar[bool] = False
    lists_from_standby: ClassVar[bool] = False
    """Whether the list may be read from a standby (gateway.db.standby): what is done with its rows is decided anew."""
    is_named_in_trail: ClassVar[bool] = False
    """Whether sentences of the audit trail name a row by :meth:`name_row`."""
    requires_reauthentication: ClassVar[bool] = False
    """Whether a change needs a recent authentication."""
    nothing: ClassVar[str | Promise] = ""
    """Text of an empty list: what fills it, or what to do first."""
    linked_lookups: ClassVar[tuple[str, ...]] = ()
    """Columns without a filter that other pages' links narrow this list by."""
    more_columns: ClassVar[tuple[str, ...]] = ()
    """Columns that a user may add to those of ``list_display``."""
    columns: ClassVar[Mapping[str, list_columns.ListColumn]] = {}
    """Columns of a list that the page draws itself, the first one always shown."""
    usual_columns: ClassVar[tuple[str, ...]] = ()
    """Those among ``columns`` of a user who chose none."""
    has_views: ClassVar[bool] = True
    """Whether the list offers saved views; False for lists that have nothing to choose."""
    list_before_template = "admin/clerk/list_tools.html"
    show_full_result_count = False
    paginator = BoundedPaginator
    list_per_page = 50
    list_max_show_all = 200
    compressed_fields = True
    change_form_before_template = "admin/seen.html"
    warn_unsaved_form = True

    class Media:
        css: ClassVar[dict[str, list[str]]] = {"all": ["clerk.css"]}

    def right(self, verb: str) -> str:
        """The permission for ``verb`` on this page's model, such as ``view_channel`` of the app ``gateway``. A full
        permission name is returned as is."""
        return verb if "." in verb else f"{self.opts.app_label}.{verb}_{self.opts.model_name}"

    # --- rows -------------------------------------------------------------------------------------------------------

    def name_row(self, row: Any) -> str:
        """A row's name for headings."""
        return str(row)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        kind = _refuse_card_numbers(super().get_form(request, obj, change, **kwargs))
        _capitalize_labels(kind)
        return edit_conflict.guard_form_class(kind, request)

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest | None = None) -> bool:
        """Allow only what the list's own filters ask. Django allows every column of the row, so a query string could
        read a password's hash or a sealed value character by character."""
        for each in self.get_list_filter(request) if request is not None else self.list_filter:
            if isinstance(each, type):
                if lookup == getattr(each, "parameter_name", None):
                    return True
                if issubclass(each, PeriodFilter) and lookup in PeriodFilter.parameters:
                    return True
                continue
            name = str(each[0] if isinstance(each, tuple | list) else each)
            if isinstance(each, tuple | list) and lookup in (f"{name}_from", f"{name}_to"):
                return True  # the theme's filters by range
            asked, compared = lookup.rpartition("__")[::2] if "__" in lookup else (lookup, "exact")
            asked = lookup if lookup == name else asked
            if compared in _COMPARED and asked in (name, f"{name}__id", f"{name}__pk"):
                return True
        asked, _, compared = lookup.rpartition("__")
        return asked in self.linked_lookups and compared in _COMPARED

    def _get_obj_does_not_exist_redirect(self, request: HttpRequest, opts: Any, object_id: str) -> HttpResponse:
        raise Http404

    @admin.display(description=gettext_lazy("channel"), ordering="channel__name")
    def named_channel(self, row: Any) -> str:
        return label_channel(row.channel) if row.channel_id is not None else "–"

    def get_list_display(self, request: HttpRequest) -> list[Any]:
        """The columns that the address names, else the user's own, else the page's."""
        kept = request.__dict__.setdefault("_list_columns", {})  # asked several times for one page
        if self.opts.label_lower not in kept:
            usual, known = self._known_columns(super().get_list_display(request))
            asked = request.GET.get(list_columns.COLUMNS_PARAMETER, "")
            names = list_columns.choose_columns(request.user, self.opts.label_lower, asked, list(known), usual)
            kept[self.opts.label_lower] = [known[name] for name in names]
        return list(kept[self.opts.label_lower])

    def list_column_titles(self, request: HttpRequest) -> dict[str, Any]:
        """Name and title of every column that the list can have; the first one is always shown."""
        if self.columns:
            return {name: column.title for name, column in self.columns.items()}
        _usual, known = self._known_columns(super().get_list_display(request))
        return {name: capfirst(str(label_for_field(item, self.model, self))) for name, item in known.items()}

    def choose_columns(self, request: HttpRequest) -> list[str]:
        """The columns among ``columns`` that this request shows."""
        asked = request.GET.get(list_columns.COLUMNS_PARAMETER, "")
        known, usual = list(self.columns), self.usual_columns
        return list_columns.choose_columns(request.user, self.opts.label_lower, asked, known, usual)

    def build_own_list(
        self,
        request: HttpRequest,
        rows: Sequence[Any],
        *,
        pick: Callable[[Any], list_columns.PickedRow] | None = None,
        is_ordered: bool = False,
    ) -> dict[str, Any]:
        """What the templates of a list that the page draws itself need: its table, the form of its columns and its
        saved views. ``pick``: what a row is where rows can be selected. ``is_ordered``: whether a click on a head
        orders the list."""
        names = self.choose_columns(request)
        titles = self.list_column_titles(request)
        values = list_columns.list_view_values(request.GET, names, self.usual_columns)
        asked = saved_views.read_query(request.GET.dict()) if is_ordered else None
        return {
            "table": list_columns.render_list_table(
                rows, self.columns, names, self.usual_columns, pick=pick, asked=asked
            ),
            "columns": list_columns.list_column_choices(names, titles, next(iter(titles))),
            "views": saved_views.build_view_panel(request.user, self.opts.label_lower, values),
        }

    def _known_columns(self, usual: Sequence[Any]) -> tuple[list[str], dict[str, Any]]:
        """The names of the page's own columns, and every column by its name: some are functions. A list without a
        column of merchants names its channels with them."""
        named = ["named_channel" if each == "channel" and "merchant" not in usual else each for each in usual]
        known = {_name_column(each): each for each in (*named, *self.more_columns)}
        return [_name_column(each) for each in named], known

    def get_urls(self) -> list[Any]:
        found: list[Any] = super().get_urls()
        for each in found if self.lists_from_standby else ():
            if each.name == f"{self.opts.app_label}_{self.opts.model_name}_changelist":
                each.callback = serve_from_standby(each.callback)
        return found

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ColumnedChangeList]:
        return ColumnedChangeList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """The list with its saved views and the form of its columns."""
        if request.method == "GET" and self.has_view_or_change_permission(request):
            extra_context = {**self._build_list_tools(request), **(extra_context or {})}
        answer: HttpResponse = super().changelist_view(request, extra_context)
        return answer

    def response_action(
        self, request: HttpRequest, queryset: models.QuerySet[Any], *more: Any, **named: Any
    ) -> HttpResponse | None:
        """The list's action. A key that no row can have chooses none: the query would fail at it."""
        chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)
        kept = [key for key in chosen if self._is_possible_key(key)]
        if kept != chosen:
            sent = request.POST.copy()
            sent.setlist(ACTION_CHECKBOX_NAME, kept)
            request.POST = sent  # type: ignore[assignment]  # a copy, which may be changed
        answer: HttpResponse | None = super().response_action(request, queryset, *more, **named)
        return answer

    def _is_possible_key(self, text: str) -> bool:
        try:
            self.opts.pk.clean(text, None)
        except ValidationError:
            return False
        return True

    def _build_list_tools(self, request: HttpRequest) -> dict[str, Any]:
        columns = [_name_column(each) for each in self.get_list_display(request)]
        titles = self.list_column_titles(request)
        usual, _known = self._known_columns(super().get_list_display(request))
        values = list_columns.list_view_values(request.GET, columns, usual)
        if ORDER_VAR in values:
            # The order names columns by their place, so that a view has to keep which they are.
            values.setdefault(list_columns.COLUMNS_PARAMETER, ",".join(columns))
        return {
            "views": saved_views.build_view_panel(request.user, self.opts.label_lower, values),
            "columns": list_columns.list_column_choices(columns, titles, next(iter(titles))),
        }

    def get_list_select_related(self, request: HttpRequest) -> Any:
        own = super().get_list_select_related(request)
        if "named_channel" not in self.get_list_display(request) or own is True:
            return own
        return [*(own or ()), "channel__merchant"]

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        return [self._own_filter(each) for each in super().get_list_filter(request)]

    def _own_filter(self, each: Any) -> Any:
        """Replace a filter by a relation with one that knows only rows in the user's scope."""
        if not isinstance(each, str) or "__" in each:
            return each
        return (each, RelatedRowFilter) if self.opts.get_field(each).is_relation else each

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        return _name_field_zone(remove_popups(super().formfield_for_dbfield(db_field, request, **kwargs)))

    write_verbs: ClassVar[tuple[str, ...]] = ("change", "add")
    """Verbs of which one is enough to fill in this page's form. The form offers rows on which the user has one of
    them."""

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offer and accept only rows that the user may use here. Rows whose page does not know their owner are offered
        only to users with access to everything."""
        related = self.admin_site._registry.get(db_field.remote_field.model)
        if "queryset" not in kwargs:
            wanted = [self.right(verb) for verb in self.write_verbs]
            scopes = [permissions.find_access_scope(request.user, right) for right in wanted]
            rows = db_field.remote_field.model._default_manager.all()
            if isinstance(related, MerchantPage):
                rows = rows.filter(_combine_scopes(related, rows, scopes))
            elif isinstance(related, PspPage):
                rows = related.offered(request, rows, wanted)
            elif not any(scope.everything for scope in scopes):
                rows = rows.none()
            kwargs["queryset"] = rows
            if not db_field.null and "initial" not in kwargs and len(only := rows[:2]) == 1:
                # With a single row to choose from, it is preselected.
                kwargs["initial"] = only[0].pk
        if "widget" not in kwargs and db_field.name in self.get_autocomplete_fields(request):
            kwargs["widget"] = SingleAutocomplete(db_field, self.admin_site)
        field = super().formfield_for_foreignkey(db_field, request, **kwargs)
        if field is not None and issubclass(db_field.remote_field.model, Channel):
            name_channel_choices(field)
        return field

    # --- what is kept of changes and views --------------------------------------------------------------------------

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]  # Django drops the result
        """Nothing: the audit log has the change."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]  # Django drops the result
        """Nothing: the audit log has the change."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> None:  # type: ignore[override]  # Django drops the result
        """Nothing: the audit log has the deletions."""

    def record(
        self,
        request: HttpRequest,
        action: str,
        row: models.Model,
        *,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Write an audit entry about ``row``, in the transaction of the change."""
        audit_log.record_audit_entry(actor_from_request(request), action, row, before=before, after=after)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        before = collect_audit_values(type(obj)._default_manager.get(pk=obj.pk)) if change else None
        super().save_model(request, obj, form, change)
        after = collect_audit_values(obj)
        if before != after:
            self.record(request, "change" if change else "create", obj, before=before, after=after)

    def save_formset(
        self, request: HttpRequest, form: ModelForm[Any], formset: BaseModelFormSet[Any, Any], change: bool
    ) -> None:
        kept = {
            each.instance.pk: collect_audit_values(type(each.instance)._default_manager.get(pk=each.instance.pk))
            for each in formset.initial_forms
        }
        super().save_formset(request, form, formset, change)
        for row, _changed in formset.changed_objects:
            self.record(request, "change", row, before=kept.get(row.pk), after=collect_audit_values(row))
        for row in formset.new_objects:
            self.record(request, "create", row, after=collect_audit_values(row))
        gone = {each.instance.pk for each in formset.initial_forms if each in formset.deleted_forms}
        for row in formset.deleted_objects:
            before = next((kept[pk] for pk in gone if pk == row.pk), collect_audit_values(row))
            self.record(request, "delete", row, before=before)

    def delete_model(self, request: HttpRequest, obj: models.Model) -> None:
        self.record(request, "delete", obj, before=collect_audit_values(obj))
        super().delete_model(request, obj)

    def delete_queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> None:
        for row in queryset:
            self.record(request, "delete", row, before=collect_audit_values(row))
        super().delete_queryset(request, queryset)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if request.method == "POST" and "_saveasnew" in request.POST:
            # No page offers it; Django takes a change for an addition then, past what the page's form to add checks.
            raise PermissionDenied
        if (
            self.requires_reauthentication
            and request.method == "POST"
            and (ask := session.require_reauthentication(request)) is not None
        ):
            return ask
        try:
            answer = self._save_form(request, object_id, form_url, extra_context)
        except IntegrityError as fault:
            if not isinstance(fault.__cause__, UniqueViolation):
                raise
            edit_conflict.refuse_taken_form(request)
            answer = self._save_form(request, object_id, form_url, extra_context)
        looked = self.sensitive and object_id is not None and request.method == "GET" and answer.status_code == 200
        if looked and (row := self.get_object(request, unquote(str(object_id)))) is not None:
            self.record(request, "view", row)
        return answer

    def _save_form(
        self, request: HttpRequest, object_id: str | None, form_url: str, extra_context: Any
    ) -> HttpResponse:
        with transaction.atomic():
            seen = edit_conflict.fingerprint_form(self, request, object_id)
            if request.method == "POST" and request.POST.get("seen", seen) != seen:
                edit_conflict.refuse_stale_form(self, request, object_id)
            context = {"seen": seen, **(extra_context or {})}
            return super().changeform_view(request, object_id, form_url, context)

    def find_row(self, request: HttpRequest, object_id: object, *related: str) -> Any:
        """The row of a page of our own, with its ``related`` rows. Raises PermissionDenied, and Http404 for a row
        outside the user's scope."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, unquote(str(object_id)))
        if row is None:
            raise Http404
        return self.model._default_manager.select_related(*related).get(pk=row.pk) if related else row

    def find_viewed_row(self, request: HttpRequest, object_id: str) -> Any:
        """The row of a page that is only read, as :meth:`find_row` does."""
        if request.method != "GET":
            raise PermissionDenied
        return self.find_row(request, object_id)

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> HttpResponse:
        """The audit entries of one row. A row that the user may not see answers 404."""
        if not self.has_view_or_change_permission(request):
            raise PermissionDenied
        row = self.get_object(request, unquote(object_id))
        if row is None or not self.has_view_or_change_permission(request, row):
            raise Http404
        own = AuditEntry.objects.filter(subject=self.opts.model_name, subject_id=str(row.pk)).order_by("-id")
        entries = list(own[: MAX_HISTORY_ROWS + 1])
        sentences = describe_entries(entries)
        context = {
            **self.admin_site.each_context(request),
            "title": _("History of %s") % self.name_row(row),
            "opts": self.opts,
            "original": row,
            "entries": [{"row": entry, "sentence": sentences[entry.pk]} for entry in entries[:MAX_HISTORY_ROWS]],
            "most": MAX_HISTORY_ROWS if len(entries) > MAX_HISTORY_ROWS else 0,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/audit_history.html", context)


class OwnedPage(BackofficePage):
    """Rows whose owner decides who sees and changes them. Rows are switched off, not deleted, unless the page sets
    ``deletable``."""

    changeable: ClassVar[bool] = True
    deletable: ClassVar[bool] = False

    def own(self, request: HttpRequest, rows: models.QuerySet[Any], verb: str = "view") -> models.QuerySet[Any]:
        """The rows among ``rows`` that the user may ``verb``. Actions filter the selected rows with it."""
        raise NotImplementedError

    def may(self, request: HttpRequest, verb: str, row: models.Model | None = None) -> bool:
        """Whether the user may ``verb`` this row, or any row if ``row`` is None."""
        raise NotImplementedError

    # --- what Django's admin asks -----------------------------------------------------------------------------------

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        return self.own(request, super().get_queryset(request))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.may(request, "view", self._row(request, obj))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self.changeable and self.may(request, "add")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.changeable and self.may(request, "change", self._row(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.deletable and self.may(request, "delete", self._row(request, obj))

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.may(request, "view")

    def _row(self, request: HttpRequest, obj: Any) -> models.Model | None:
        """``obj`` as a row: the theme passes a row's id at times. Raises Http404 for an id outside the user's scope."""
        if obj is None or isinstance(obj, models.Model):
            return obj
        row: models.Model | None = self.get_object(request, unquote(str(obj)))
        if row is None:
            raise Http404
        return row

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        if not self.may(request, "change" if change else "add", obj):
            raise PermissionDenied
        super().save_model(request, obj, form, change)

    def delete_queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> None:
        super().delete_queryset(request, self.own(request, queryset, "delete"))


class MerchantPage(OwnedPage):
    """Rows that belong to merchants; each user sees those that their grants reach.

    ``merchant_path``, ``channel_path``: lookups from a row to its merchant and its channel, "pk" for the row itself.
    Without ``channel_path`` the rows belong to the merchant as a whole, and grants on one channel do not reach them.
    """

    merchant_path: ClassVar[str] = "merchant"
    channel_path: ClassVar[str | None] = "channel"

    def scope(self, request: HttpRequest, verb: str = "view") -> AccessScope:
        """The access scope in which the user may ``verb`` these rows."""
        return permissions.find_access_scope(request.user, self.right(verb))

    def own(self, request: HttpRequest, rows: models.QuerySet[Any], verb: str = "view") -> models.QuerySet[Any]:
        return self.reached(rows, self.scope(request, verb))

    def reached(self, rows: models.QuerySet[Any], scope: AccessScope) -> models.QuerySet[Any]:
        """The rows among ``rows`` in ``scope``. A page whose rows lead to their merchant in another way overrides this
        and :meth:`place`."""
        if not scope:
            return rows.none()
        return rows if scope.everything else rows.filter(scope.where(self.merchant_path, self.channel_path))

    def place(self, row: Any) -> RowOwner:
        """The merchant and channel that ``row``, one of this page's model, belongs to."""
        return RowOwner(
            merchant=_resolve_lookup_id(row, self.merchant_path),
            channel=_resolve_lookup_id(row, self.channel_path) if self.channel_path else None,
        )

    def may(self, request: HttpRequest, verb: str, row: models.Model | None = None) -> bool:
        found = self.scope(request, verb)
        return bool(found) if row is None else found.covers(self.place(row))

    def record(
        self,
        request: HttpRequest,
        action: str,
        row: models.Model,
        *,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        merchant = self.place(self._find_page_row(row)).merchant
        actor = actor_from_request(request)
        audit_log.record_audit_entry(actor, action, row, merchant=merchant, before=before, after=after)

    def _find_page_row(self, row: models.Model) -> models.Model:
        """The row of this page that an inline's row belongs to; any other row is its own."""
        above = None
        if not isinstance(row, self.model):
            above = next((field.name for field in row._meta.fields if field.related_model is self.model), None)
        page_row: models.Model = row if above is None else getattr(row, above)
        return page_row


def _name_column(column: Any) -> str:
    return column if isinstance(column, str) else str(column.__name__)


def _combine_scopes(related: MerchantPage, rows: models.QuerySet[Any], scopes: list[AccessScope]) -> models.Q:
    """The condition on rows that at least one of these scopes reaches."""
    if any(scope.everything for scope in scopes):
        return models.Q()
    found = models.Q(pk__in=[])
    for scope in scopes:
        if scope:
            found |= models.Q(pk__in=related.reached(rows, scope).values("pk"))
    return found


def _resolve_lookup_id(row: models.Model, path: str) -> UUID | None:
    """The id at the end of a lookup, without loading the last row."""
    *above, last = path.split("__")
    found: Any = row
    for name in above:
        found = getattr(found, name, None)
        if found is None:
            return None
    if last == "pk":
        return found.pk  # type: ignore[no-any-return]
    return getattr(found, found._meta.get_field(last).attname)  # type: ignore[no-any-return]


class ReadOnlyPage(MerchantPage):
    """Rows of merchants that can be viewed but not changed."""

    changeable = False


class PspPage(OwnedPage):
    """Rows that belong to a PSP. Its own staff sees and changes them; rows of other PSPs answer 404.

    ``psp_path``: the lookup from a row to its PSP, "pk" for the row itself.
    """

    psp_path: ClassVar[str] = "psp"

    def own(self, request: HttpRequest, rows: models.QuerySet[Any], verb: str = "view") -> models.QuerySet[Any]:
        return rows.filter(**{f"{self.psp_path}__in": permissions.list_permitted_psps(request.user, self.right(verb))})

    def may(self, request: HttpRequest, verb: str, row: models.Model | None = None) -> bool:
        if row is None:
            return permissions.has_psp_permission(request.user, self.right(verb))
        # The row as it is stored, whatever a form has just put into it.
        stored = row if row._state.adding else self.get_object(request, str(row.pk))
        psp = _resolve_lookup_id(stored, self.psp_path) if stored is not None else None
        return (
            psp is not None and permissions.list_permitted_psps(request.user, self.right(verb)).filter(pk=psp).exists()
        )

    def offered(self, request: HttpRequest, rows: models.QuerySet[Any], wanted: Sequence[str]) -> models.QuerySet[Any]:
        """The rows among ``rows`` below the PSPs on which the user has one of these permissions, for another page's
        form."""
        found = models.Q(pk__in=[])
        for right in wanted:
            found |= models.Q(**{f"{self.psp_path}__in": permissions.list_permitted_psps(request.user, right)})
        return rows.filter(found)

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        super().save_model(request, obj, form, change)
        permissions.clear_grant_cache(request.user)


class InstallationPage(OwnedPage):
    """Rows that belong to no merchant and no PSP. Users with the page's permission on everything see and change
    them."""

    def own(self, request: HttpRequest, rows: models.QuerySet[Any], verb: str = "view") -> models.QuerySet[Any]:
        return rows

    def may(self, request: HttpRequest, verb: str, row: models.Model | None = None) -> bool:
        return permissions.find_access_scope(request.user, self.right(verb)).everything


class ReadOnlyInline(TabularInline):
    """Rows shown, read-only, inside another row's page."""

    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

from django.contrib import admin

# A function of the row may stand where a name stands: django-stubs know it of list_display alone.
_Column: TypeAlias = str | Callable[..., Any]

class ModelAdmin(admin.ModelAdmin[Any]):
    fields: ClassVar[Sequence[_Column | Sequence[_Column]] | None]  # type: ignore[assignment]
    readonly_fields: ClassVar[Sequence[_Column]]  # type: ignore[assignment]
    compressed_fields: ClassVar[bool]
    warn_unsaved_form: ClassVar[bool]
    list_filter_submit: ClassVar[bool]
    list_filter_sheet: ClassVar[bool]
    list_fullwidth: ClassVar[bool]
    change_form_before_template: ClassVar[str | None]
    change_form_after_template: ClassVar[str | None]
    list_before_template: ClassVar[str | None]
    list_after_template: ClassVar[str | None]

class TabularInline(admin.TabularInline[Any, Any]):
    tab: ClassVar[bool]

class StackedInline(admin.StackedInline[Any, Any]):
    tab: ClassVar[bool]

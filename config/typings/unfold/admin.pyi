from typing import Any, ClassVar

from django.contrib import admin

class ModelAdmin(admin.ModelAdmin[Any]):
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

"""What the back office's pages share: who acts, pages that only show, changes that leave an audit entry."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db import models
from django.forms import ModelForm
from django.forms.models import model_to_dict
from django.http import HttpRequest

from gateway import audit
from gateway.api.door import client_ip


def actor(request: HttpRequest) -> audit.Actor:
    return audit.Actor(name=request.user.get_username(), ip=client_ip(request))


class ReadOnly(admin.ModelAdmin):
    """Rows that are looked at and never changed by hand."""

    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class Audited(admin.ModelAdmin):
    """Rows that may be changed; each change leaves an audit entry. Nothing is deleted: it is switched off."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: models.Model, form: ModelForm, change: bool) -> None:
        before = _shown(type(obj)._default_manager.get(pk=obj.pk)) if change else None
        super().save_model(request, obj, form, change)
        audit.record(actor(request), "change" if change else "create", obj, before=before, after=_shown(obj))


def _shown(row: models.Model) -> dict[str, Any]:
    return {name: value if isinstance(value, bool | int | list | dict | None) else str(value)
            for name, value in model_to_dict(row).items()}  # fmt: skip

"""Autocomplete answers for the back office's foreign-key fields."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.views.autocomplete import AutocompleteJsonView
from django.db.models import Model, QuerySet

from gateway.backoffice.kit.entity_names import label_channel
from gateway.models import Channel


class NamedAutocomplete(AutocompleteJsonView):
    """Django's autocomplete view, with channels named with their merchant."""

    def get_queryset(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset()
        return rows.select_related("merchant") if issubclass(rows.model, Channel) else rows

    def serialize_result(self, obj: Model, to_field_name: str) -> dict[str, str]:
        named = {"text": label_channel(obj)} if isinstance(obj, Channel) else {}
        found: dict[str, str] = super().serialize_result(obj, to_field_name)
        return found | named

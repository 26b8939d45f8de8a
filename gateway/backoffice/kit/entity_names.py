"""Merchants and channels chosen by typing: a field that suggests while one types, for any number of them.

A channel is always named with its merchant, "Shop: main". What is typed may also be the entityId. Suggestions come from
``names/<kind>/``, within the user's rights; without JavaScript the whole name or the entityId is typed.
"""

from __future__ import annotations

from typing import Any, Final

from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest, JsonResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _

from gateway.access import permissions
from gateway.core import identifiers
from gateway.models import Channel, Merchant

MAX_SUGGESTED_NAMES: Final = 20
MAX_TYPED_NAME_CHARS: Final = 300
ENTITY_KINDS: Final = ("channel", "merchant")


class EntityNameError(ValueError):
    """No row, or more than one, has the name that was typed; the message says so."""


def label_channel(channel: Channel) -> str:
    """A channel's name with its merchant's: twenty merchants have a channel "main"."""
    return f"{channel.merchant.name}: {channel.name}"


def label_entity(row: Model) -> str:
    """A merchant's name; a channel's with its merchant's."""
    return label_channel(row) if isinstance(row, Channel) else str(row)


def list_permitted_entities(user: Any, kind: str, right: str) -> QuerySet[Any]:
    """The channels or merchants on which the user has ``right``, by name."""
    if kind == "channel":
        channels = permissions.list_permitted_channels(user, right).select_related("merchant")
        return channels.order_by("merchant__name", "name", "pk")
    return permissions.list_permitted_merchants(user, right).order_by("name", "pk")


def filter_by_typed_name(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    """The rows whose name has what was typed in it; "sho: ma" is a merchant's and a channel's."""
    if rows.model is Merchant:
        return rows.filter(name__icontains=text)
    merchant, colon, channel = text.partition(": ")
    if colon:
        return rows.filter(merchant__name__icontains=merchant, name__icontains=channel)
    return rows.filter(Q(merchant__name__icontains=text) | Q(name__icontains=text))


def find_typed_entity(rows: QuerySet[Any], text: str) -> Any:
    """The row that was typed: by entityId, else by its whole name, else by the only one with this in its name. Raises
    EntityNameError."""
    text = text.replace("\0", "").strip()[:MAX_TYPED_NAME_CHARS]
    ident = identifiers.parse_id(text.replace("-", "").lower())
    if ident is not None and (row := rows.filter(pk=ident).first()) is not None:
        return row
    found = list(filter_by_typed_name(rows, text)[: MAX_SUGGESTED_NAMES + 1]) if text else []
    same = [row for row in found if label_entity(row).casefold() == text.casefold()] or found
    if len(same) == 1:
        return same[0]
    words = _("“%s” names several; go on typing, or give the entityId") if same else _("“%s” names none of yours")
    raise EntityNameError(words % text)


def build_entity_name_urls(site: Any) -> list[URLPattern]:
    """The address of the suggestions."""
    return [path("names/<slug:kind>/", site.admin_view(suggest_names), name="entity_names")]


def build_suggestion_address(kind: str) -> str:
    """The address of the suggestions of one kind."""
    return reverse("admin:entity_names", args=[kind])


def suggest_names(request: HttpRequest, kind: str) -> JsonResponse:
    """Names of the user's channels or merchants with this in them."""
    if kind not in ENTITY_KINDS:
        raise Http404
    rows = list_permitted_entities(request.user, kind, f"gateway.view_{kind}")
    text = request.GET.get("q", "").replace("\0", "").strip()[:MAX_TYPED_NAME_CHARS]
    found = filter_by_typed_name(rows, text)[:MAX_SUGGESTED_NAMES]
    return JsonResponse({"names": [label_entity(row) for row in found]})


class TypedChannelField(forms.ModelChoiceField):  # type: ignore[type-arg]  # not generic at run time
    """A form's field for a channel, chosen by typing. Its rows are those of ``queryset``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        names = {"data-names": "", "autocomplete": "off", "spellcheck": "false", "maxlength": MAX_TYPED_NAME_CHARS}
        super().__init__(*args, widget=forms.TextInput(attrs=names), **kwargs)

    def get_bound_field(self, form: Any, field_name: str) -> Any:
        self.widget.attrs |= {"data-names": build_suggestion_address("channel"), "list": f"{field_name}-names"}
        return super().get_bound_field(form, field_name)

    def prepare_value(self, value: Any) -> Any:
        ident = identifiers.parse_id(str(value or "").replace("-", "").lower())
        row = self.queryset.filter(pk=ident).first() if ident is not None and self.queryset is not None else None
        return label_entity(row) if row is not None else value

    def to_python(self, value: Any) -> Any:
        if value in self.empty_values:
            return None
        assert self.queryset is not None
        try:
            return find_typed_entity(self.queryset, str(value))
        except EntityNameError as wrong:
            raise ValidationError(str(wrong)) from None

    def validate(self, value: Any) -> None:
        forms.Field.validate(self, value)

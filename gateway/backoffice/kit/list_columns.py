"""Columns of a list: which of them a user sees, in their order, where that is kept, and the table that they make.

A list that the theme draws has the columns of its page; a list that a page draws itself describes them by
:class:`ListColumn`. An address or a saved view names its columns in ``cols`` and wins over the user's own, which are
kept with their preferences. A list is named by the label of its model. Source: docs/decisions/0098, 0150.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString

from gateway.backoffice.kit.formatting import name_zone, normalize_tone
from gateway.backoffice.kit.keyset import KeysetOrder
from gateway.models import UserPreference

COLUMNS_PARAMETER: Final = "cols"
ORDER_PARAMETER: Final = "order"
"""The column that a list is ordered by; with ``-`` before it, descending."""
Cell = str | SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class ListColumn:
    """A column of a list that a page draws itself.

    ``render``: the cell of a row, as the page has it. ``style``: the class of its cells in clerk.css, such as "num".
    ``timed``: the head names the reader's zone. ``order``: the field that a keyset orders the list by, which is never
    null, and its type; None: the list is not ordered by this column.
    """

    title: str | Promise
    render: Callable[[Any], Cell] = str
    style: str = ""
    timed: bool = False
    order: tuple[str, type] | None = None

    @property
    def head(self) -> str:
        return f"{self.title} ({name_zone()})" if self.timed else str(self.title)

    @property
    def is_orderable(self) -> bool:
        return self.order is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class PickedRow:
    """A row that can be selected: the value that a form gets, and the name that is read out."""

    value: str
    name: str


def render_pill(pill: Mapping[str, Any]) -> SafeString:
    """A state as a coloured pill."""
    return format_html('<span class="ck-pill {}">{}</span>', normalize_tone(str(pill["tone"])), pill["text"])


def render_link(address: str, text: str | SafeString) -> SafeString:
    """The link to a row's page."""
    return format_html('<a href="{}">{}</a>', address, text)


def choose_list_order(asked: Mapping[str, str], columns: Mapping[str, ListColumn], usual: KeysetOrder) -> KeysetOrder:
    """The order that an address names, else the usual one."""
    text = asked.get(ORDER_PARAMETER, "")
    column = columns.get(text.removeprefix("-"))
    if column is None or column.order is None:
        return usual
    by_time = column.order[1] in (datetime, date)
    return KeysetOrder(columns=(column.order, ("id", UUID)), newest_first=text.startswith("-"), by_time=by_time)


def link_list_order(name: str, column: ListColumn, asked: Mapping[str, str]) -> dict[str, str]:
    """How a list is ordered by a column (``sorted``: as of aria-sort), and the address that orders by it, or the other
    way round. Largest amounts come first."""
    if not column.is_orderable:
        return {}
    order = asked.get(ORDER_PARAMETER, "")
    up, down = order == name, order == f"-{name}"
    turned = f"-{name}" if up or (not down and column.style == "num") else name
    kept = [(key, text) for key, text in asked.items() if key != ORDER_PARAMETER]
    return {
        "sorted": "ascending" if up else "descending" if down else "",
        "address": f"?{urlencode([*kept, (ORDER_PARAMETER, turned)])}",
    }


def render_list_table(
    rows: Sequence[Any],
    columns: Mapping[str, ListColumn],
    names: Sequence[str],
    usual: Sequence[str],
    *,
    pick: Callable[[Any], PickedRow] | None = None,
    asked: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Head and rows of a list for ``admin/clerk/table.html``. A column that is not a usual one says what it is on a
    phone, too, where the table has no head. ``pick``: what a row is where rows can be selected. ``asked``: the
    parameters of the list's address, if it can be ordered."""
    shown = [(columns[name], name in usual) for name in names]
    orders = [link_list_order(name, columns[name], asked) if asked is not None else {} for name in names]
    return {
        "head": [
            {"title": each.head, "style": each.style, **order}
            for (each, _usual), order in zip(shown, orders, strict=True)
        ],
        "rows": [
            {
                "pick": pick(row) if pick is not None else None,
                "cells": [
                    {"shown": each.render(row), "style": each.style, "label": "" if known else each.head}
                    for each, known in shown
                ],
            }
            for row in rows
        ],
    }


def parse_columns(text: str, known: Sequence[str], first: str) -> list[str]:
    """The known columns of a text, each once and in their order there; ``first``, which links to the row's page, is
    always one. Empty: the text names none."""
    found = list(dict.fromkeys(name for name in text.split(",") if name in known))
    return found if not found or first in found else [first, *found]


def choose_columns(user: Any, page: str, asked: str, known: Sequence[str], usual: Sequence[str]) -> list[str]:
    """The columns of a list: those of its address, else the user's own, else the usual ones."""
    if found := parse_columns(asked, known, usual[0]):
        return found
    kept = UserPreference.objects.filter(user=user.pk).values_list("columns", flat=True).first() or {}
    own = kept.get(page)
    return (parse_columns(",".join(map(str, own)), known, usual[0]) if isinstance(own, list) else []) or list(usual)


def save_columns(user: Any, page: str, names: Sequence[str]) -> None:
    """Save the user's own columns of a list; none: the usual ones again."""
    row, _new = UserPreference.objects.get_or_create(user=user)
    others = {name: kept for name, kept in row.columns.items() if name != page}
    row.columns = others | ({page: list(names)} if names else {})
    row.save(update_fields=["columns"])


def read_list_look(asked: Mapping[str, str]) -> list[tuple[str, str]]:
    """Columns and order that an address names, as its parameters: what leads on from a list keeps them."""
    return [(name, asked[name]) for name in (COLUMNS_PARAMETER, ORDER_PARAMETER) if asked.get(name)]


def list_view_values(asked: Mapping[str, str], names: Sequence[str], usual: Sequence[str]) -> dict[str, str]:
    """The parameters that a view of a list is kept by: those of its address, with the columns that are shown where they
    are not the usual ones."""
    own = {} if list(names) == list(usual) else {COLUMNS_PARAMETER: ",".join(names)}
    return dict(asked.items()) | own


def list_column_choices(chosen: Sequence[str], titles: Mapping[str, Any], first: str) -> list[dict[str, Any]]:
    """Every column for the form that chooses them, the chosen ones first, in their order."""
    names = [*chosen, *(name for name in titles if name not in chosen)]
    return [{"name": name, "title": titles[name], "chosen": name in chosen, "fixed": name == first} for name in names]

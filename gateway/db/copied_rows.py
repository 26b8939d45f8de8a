"""Rows of models as lines of COPY's text format, for test data in bulk: a hundred times faster than one INSERT each.

A line has the columns that are given and the model's defaults for all others; the database itself numbers rows whose
column has a default there.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

from django.db import connection, models

_JSON: Final = json.JSONEncoder(separators=(",", ":")).encode
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def build_copy_line(model: type[models.Model], **values: Any) -> str:
    """One row; ``values`` by column attribute (``merchant_id``). Bytes are given by :func:`format_copied_bytes`.
    Raises TypeError for a column that the model does not have, or that the database numbers."""
    cells = {name: _format_cell(value) for name, value in values.items()}
    return _build_template(model, tuple(cells)).format_map(cells)


def copy_lines(cursor: Any, model: type[models.Model], lines: Sequence[str]) -> None:
    """Write lines of :func:`build_copy_line` in the cursor's transaction. Triggers and constraints hold as for any
    INSERT."""
    columns = ", ".join(connection.ops.quote_name(str(field.column)) for field in _list_copied_fields(model))
    with cursor.copy(f"COPY {connection.ops.quote_name(model._meta.db_table)} ({columns}) FROM STDIN") as copy:
        copy.write("".join(lines))


def format_copied_bytes(value: bytes) -> str:
    """A bytea in its text form."""
    return "\\x" + value.hex()


@cache
def _list_copied_fields(model: type[models.Model]) -> list[models.Field[Any, Any]]:
    return [
        field
        for field in model._meta.concrete_fields
        if not isinstance(field, models.AutoField | models.BigAutoField) and not field.has_db_default()
    ]


@cache
def _build_template(model: type[models.Model], names: tuple[str, ...]) -> str:
    """A line with a place for each of ``names``; every other column has its default already."""
    if unknown := set(names) - {field.attname for field in _list_copied_fields(model)}:
        raise TypeError(f"{model.__name__} has no {', '.join(sorted(unknown))}")
    cells = []
    for field in _list_copied_fields(model):
        default = _format_cell(field.get_default()).replace("{", "{{").replace("}", "}}")
        cells.append(f"{{{field.attname}}}" if field.attname in names else default)
    return "\t".join(cells) + "\n"


def _format_cell(value: Any) -> str:
    if value is None:
        return r"\N"
    kind = type(value)
    if kind is str:
        return str(value).translate(_ESCAPES)
    if kind is dict:
        return _JSON(value).replace("\\", "\\\\")
    return str(value)

"""One person's data as JSON, out of the same table by which it is erased.

Account numbers are never in it: sealed values are named as such, so that the file is no card data. Values of rows that
others share (risk lists, settlement files, the audit trail) are not in it either. Source: docs/decisions/0102.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from gateway.core import clock
from gateway.personal_data.parameters import select_personal_values
from gateway.personal_data.people import FoundPerson, PersonSelector, find_person, load_rows
from gateway.personal_data.table import OTHER_PLACES, PERSONAL_DATA, Erasing, PersonalColumn, PersonalTable

SEALED_MARK: Final = "stored, sealed"
_TIMES: Final = ("created_at", "at", "due_at", "asked_at")
"""Columns that say when a row was made; the first that a model has."""


def export_person(selector: PersonSelector) -> dict[str, Any]:
    """The document. Raises PersonNotFoundError."""
    person = find_person(selector)
    return {
        "merchant": selector.merchant.pk.hex,
        "merchantName": selector.merchant.name,
        "foundBy": {selector.kind: selector.value},
        "madeAt": clock.format_timestamp(clock.real_now()),
        "data": [part for table in PERSONAL_DATA if table.links and (part := _export_table(person, table))],
        "otherPlaces": [{"place": one.name, "about": one.about, "kept": one.kept} for one in OTHER_PLACES],
    }


def dump_export(document: dict[str, Any]) -> str:
    """The document as text: two spaces, in the order in which it was made."""
    return json.dumps(document, indent=2, ensure_ascii=False, default=_encode)


def _export_table(person: FoundPerson, table: PersonalTable) -> dict[str, Any]:
    rows = [
        {**_name_row(row), **values}
        for row in load_rows(person, table).order_by("pk")
        if (values := {one.name: value for one in table.columns if (value := _export_value(one, row))})
    ]
    if not rows:
        return {}
    about = {one.name: one.about for one in table.columns}
    return {"table": table.model, "why": table.why, "kept": table.kept, "columns": about, "rows": rows}


def _name_row(row: Any) -> dict[str, Any]:
    made = next((getattr(row, name) for name in _TIMES if hasattr(row, name)), None)
    return {"id": _encode(row.pk)} | ({"time": _encode(made)} if made is not None else {})


def _export_value(column: PersonalColumn, row: Any) -> Any:
    value = getattr(row, column.name)
    if isinstance(value, bytes | memoryview) or column.name.endswith(("_key", "_keys")):
        return SEALED_MARK if value else None
    if column.erasing is not Erasing.FILTER:
        return value
    if not isinstance(value, str):
        return select_personal_values(value)
    try:
        event = json.loads(value)
    except ValueError:
        return value
    return select_personal_values(event.get("payload", event) if isinstance(event, dict) else event)


def _encode(value: Any) -> Any:
    if isinstance(value, UUID):
        return value.hex
    if isinstance(value, datetime):
        return clock.format_timestamp(value)
    if isinstance(value, tuple):
        return [_encode(one) for one in value]
    return value if isinstance(value, int | str) else str(value)

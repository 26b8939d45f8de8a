"""Limits, times and codes of the product, each with its value: one that changes shows in a file, and is meant."""

from __future__ import annotations

import ast
import importlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SNAPSHOT = Path(__file__).parent / "constants.txt"
PACKAGES = ("gateway", "checkout", "reporting", "chargebacks", "config")
NOT_IMPORTED = (
    "config/settings",
    "config/wsgi",
    "config/gunicorn",
    "config/launcher/child",
    "/migrations/",
    "__main__",
)
"""Depends on the environment, starts something, or is no code of today."""
HELD_ELSEWHERE = ("gateway/catalogue/", "gateway/portal/", "config/timers", "gateway/timers/registry")
"""By the snapshots of the OpenAPI document and of the pages, and by docs/time.md."""
LINE = 100
MAX_ROWS, MAX_ROW = 500, 400
"""Larger ones are data that is compared with its source, or time zones of the machine."""
MAX_TEXT = 60
"""Longer texts are SQL, messages and patterns: what they do is tested."""


def _modules() -> Iterator[str]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = path.relative_to(ROOT).with_suffix("").as_posix()
            if not any(part in name for part in (*NOT_IMPORTED, *HELD_ELSEWHERE)):
                yield name.removesuffix("/__init__").replace("/", ".")


def _constants(module: str) -> Iterator[str]:
    """Names that the module itself assigns, in capitals."""
    source = importlib.import_module(module).__file__
    assert source is not None
    for node in ast.parse(Path(source).read_text()).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(name, ast.Name) and name.id.strip("_").isupper():
                    yield name.id


def _written(value: Any) -> str | None:
    """The value in a line; None for what is no plain value."""
    if isinstance(value, Enum):
        return str(value)
    if value is None or isinstance(value, bool | int | float | Decimal | date | timedelta):
        return str(value)
    if isinstance(value, str):
        return repr(value) if len(value) <= MAX_TEXT and "\n" not in value else None
    if isinstance(value, tuple | list | set | frozenset | Mapping) or (
        is_dataclass(value) and not isinstance(value, type)
    ):
        items = [f"{key}{_written(each)}" for key, each in _items(value) if _written(each) is not None]
        return f"({', '.join(sorted(items) if isinstance(value, set | frozenset) else items)})" if items else None
    return None


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """What a table or an object of plain values is made of, with its key or name."""
    if isinstance(value, Mapping):
        yield from ((f"{_written(key)}: ", each) for key, each in value.items())
    elif is_dataclass(value):
        named = ((each.name, getattr(value, each.name, None)) for each in fields(value))
        yield from ((f"{name}=", each) for name, each in named if not is_dataclass(each))
    else:
        yield from (("", each) for each in value)


def _lines(name: str, value: Any, seen: set[int]) -> Iterator[str]:
    """One; a table that is long has one for each row. ``seen``: objects that another table has already."""
    text = _written(value)
    if text is None or text == "None" or is_dataclass(value):
        return
    if len(text) > LINE and not isinstance(value, set | frozenset | str):
        rows = [(f"{name}: {key}{_written(each)}", each) for key, each in _items(value)]
        if len(rows) <= MAX_ROWS:
            yield from (
                row for row, each in rows if len(row) <= MAX_ROW and not (is_dataclass(each) and id(each) in seen)
            )
            seen |= {id(each) for _, each in rows}
    else:
        yield f"{name} = {text}"


def _list_constants() -> list[str]:
    found: list[str] = []
    seen: set[int] = set()
    # All are imported before any is read: some enter themselves into another's table.
    imported = {module: importlib.import_module(module) for module in _modules()}
    for module, loaded in imported.items():
        for name in dict.fromkeys(_constants(module)):
            found += _lines(f"{module}.{name}", getattr(loaded, name, None), seen)
    return found


def test_limits_times_and_codes_are_as_they_were() -> None:
    """UPDATE_SNAPSHOTS=1 writes the file anew."""
    now = _list_constants()
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text("".join(f"{line}\n" for line in now))
    changed = set(now) ^ set(SNAPSHOT.read_text().splitlines())
    assert not changed, "\n".join(sorted(changed))

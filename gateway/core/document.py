"""Validation of hand-written JSON documents: shapes as values, and all faults of a document at once.

A shape converts a JSON value and reports what is wrong with it, with its path and what is allowed:

    SHAPE = object_shape(name=required_member(text_shape(1, 64)), rules=optional_member(list_shape(RULE, most=200), ()))
    value, faults = parse_document(SHAPE, document, "risk")

Used by rule sets (gateway.risk) and by ``manage.py configure``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

from gateway.core.money import CURRENCY_CODES, parse_amount
from gateway.core.spelling import find_closest_name

MAX_SHOWN_CHARS: Final = 40
MAX_DOCUMENT_FAULTS: Final = 200
"""Most faults reported for one document."""
_PLAIN: Final = re.compile("[A-Za-z_][A-Za-z0-9_-]*")
_DURATION: Final = re.compile("([1-9][0-9]{0,6})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFault:
    """One fault. ``path`` as in ``risk.sets[0].rules[2].then``; ``message`` says what is allowed."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or 'document'}: {self.message}"


class DocumentFaults(list[DocumentFault]):
    """The faults found so far."""

    def add(self, path: str, message: str) -> None:
        if len(self) < MAX_DOCUMENT_FAULTS:
            self.append(DocumentFault(path=path, message=message))


DocumentShape = Callable[[Any, str, DocumentFaults], Any]
"""(value, its path, fault list) → the converted value; for a faulty value the result is not used."""


class InvalidDocumentError(ValueError):
    """A document with faults; ``faults`` are all of them."""

    def __init__(self, faults: Iterable[DocumentFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(str(fault) for fault in self.faults))


def parse_document(shape: DocumentShape, document: Any, path: str = "") -> tuple[Any, DocumentFaults]:
    """Convert a document and collect its faults; the value must not be used if there are any."""
    faults = DocumentFaults()
    return shape(document, path, faults), faults


def member_path(path: str, name: str) -> str:
    """The path of an object's member."""
    if not _PLAIN.fullmatch(name):
        return f'{path}["{name[:MAX_SHOWN_CHARS]}"]'
    return f"{path}.{name}" if path else name


def abbreviate_value(value: Any) -> str:
    """A value shortened for an error message."""
    said = str(value) if not isinstance(value, str) else f'"{value}"'
    return said if len(said) <= MAX_SHOWN_CHARS else f"{said[: MAX_SHOWN_CHARS - 1]}…"


def suggest_name(name: str, known: Iterable[str]) -> str:
    """`` - did you mean X?``, or an empty string."""
    near = find_closest_name(name, list(known))
    return f" - did you mean {near}?" if near else ""


# --- single values ----------------------------------------------------------------------------------------------


def text_shape(least: int, most: int, pattern: str = "", *, says: str = "") -> DocumentShape:
    """A text of limited length, optionally matching a pattern (the whole text) that ``says`` describes."""
    compiled = re.compile(pattern) if pattern else None
    allowed = says or f"a text of {least} to {most} characters"

    def shape(value: Any, path: str, faults: DocumentFaults) -> Any:
        if not isinstance(value, str):
            faults.add(path, f"must be {allowed}, not {_json_type(value)}")
        elif not least <= len(value) <= most or not value.isprintable() or (compiled and not compiled.fullmatch(value)):
            faults.add(path, f"must be {allowed}, not {abbreviate_value(value)}")
        return value

    return shape


def choice_shape(*allowed: str) -> DocumentShape:
    """One of several words; a near miss gets a suggestion."""

    def shape(value: Any, path: str, faults: DocumentFaults) -> Any:
        if not isinstance(value, str) or value not in allowed:
            hint = suggest_name(value, allowed) if isinstance(value, str) else ""
            faults.add(path, f"must be one of {', '.join(allowed)}, not {abbreviate_value(value)}{hint}")
        return value

    return shape


def integer_shape(least: int, most: int) -> DocumentShape:
    """An integer in a range."""

    def shape(value: Any, path: str, faults: DocumentFaults) -> Any:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            faults.add(path, f"must be a whole number from {least} to {most}, not {abbreviate_value(value)}")
        return value

    return shape


def boolean_shape(value: Any, path: str, faults: DocumentFaults) -> Any:
    """A boolean."""
    if not isinstance(value, bool):
        faults.add(path, f"must be true or false, not {abbreviate_value(value)}")
    return value


def amount_shape(value: Any, path: str, faults: DocumentFaults) -> Any:
    """An amount in API notation, as text: "500" or "500.00"."""
    try:
        return parse_amount(value if isinstance(value, str) else "")
    except ValueError:
        faults.add(path, f'must be an amount as text, e.g. "500.00", not {abbreviate_value(value)}')
        return Decimal(0)


def currency_shape(value: Any, path: str, faults: DocumentFaults) -> Any:
    """An ISO 4217 currency code."""
    if not isinstance(value, str) or value not in CURRENCY_CODES:
        faults.add(path, f"must be a currency of ISO 4217, e.g. EUR, not {abbreviate_value(value)}")
    return value


def duration_shape(most: timedelta) -> DocumentShape:
    """A time span such as "90s", "10m", "24h" or "7d", at most ``most``."""

    def shape(value: Any, path: str, faults: DocumentFaults) -> Any:
        found = _DURATION.fullmatch(value) if isinstance(value, str) else None
        span = timedelta(seconds=int(found[1]) * _SECONDS[found[2]]) if found else None
        if span is None or span > most:
            faults.add(
                path, f'must be a time span such as "10m", "24h" or "7d", at most {most}, not {abbreviate_value(value)}'
            )
            return timedelta(0)
        return span

    return shape


def list_shape(item: DocumentShape, *, least: int = 0, most: int, distinct: bool = False) -> DocumentShape:
    """A list whose items all have one shape; converted to a tuple."""

    def shape(value: Any, path: str, faults: DocumentFaults) -> Any:
        if not isinstance(value, list):
            faults.add(path, f"must be a list, not {_json_type(value)}")
            return ()
        if not least <= len(value) <= most:
            faults.add(path, f"must have {least} to {most:,} items, not {len(value):,}")
        found = tuple(item(one, f"{path}[{place}]", faults) for place, one in enumerate(value[:most]))
        if distinct:
            seen: set[str] = set()
            for place, one in enumerate(value[:most]):
                if isinstance(one, str) and one in seen:
                    faults.add(f"{path}[{place}]", f"is there twice: {abbreviate_value(one)}")
                seen.add(str(one))
        return found

    return shape


# --- objects ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectMember:
    """One member of an object. ``missing``: the value when it is absent."""

    shape: DocumentShape
    required: bool
    missing: Any = None


def required_member(shape: DocumentShape) -> ObjectMember:
    """A member that must be present."""
    return ObjectMember(shape=shape, required=True)


def optional_member(shape: DocumentShape, missing: Any = None) -> ObjectMember:
    """A member that may be absent; ``missing`` is its value then."""
    return ObjectMember(shape=shape, required=False, missing=missing)


def object_shape(**members: ObjectMember) -> DocumentShape:
    """An object with these members and no others, converted to a mapping that has all of them.

    A trailing underscore is dropped from a member's name (``in_``).
    """
    known = {name.removesuffix("_"): member for name, member in members.items()}

    def shape(value: Any, path: str, faults: DocumentFaults) -> Any:
        if not isinstance(value, Mapping):
            faults.add(path, f"must be an object with {', '.join(known)}, not {_json_type(value)}")
            return {name: member.missing for name, member in known.items()}
        refuse_unknown_members(value, known, path, faults)
        return read_members(value, known, path, faults)

    return shape


def read_members(
    value: Mapping[str, Any], known: Mapping[str, ObjectMember], path: str, faults: DocumentFaults
) -> dict[str, Any]:
    """The ``known`` members of an object, each converted by its shape."""
    members = {}
    for name, member in known.items():
        if name in value:
            members[name] = member.shape(value[name], member_path(path, name), faults)
        else:
            members[name] = member.missing
            if member.required:
                faults.add(member_path(path, name), "is required")
    return members


def refuse_unknown_members(value: Mapping[str, Any], known: Iterable[str], path: str, faults: DocumentFaults) -> None:
    """Add a fault for every unknown member of an object."""
    allowed = list(known)
    for name in value:
        if name not in allowed:
            words = f"is not known here{suggest_name(str(name), allowed)}; known are {', '.join(allowed)}"
            faults.add(member_path(path, str(name)), words)


def _json_type(value: Any) -> str:
    """The JSON type of a value, for an error message."""
    if value is None:
        return "null"
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list"}
    return kinds.get(type(value), "an object")

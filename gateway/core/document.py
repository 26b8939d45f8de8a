"""JSON documents that people write: what they may hold, as values, and every fault of one at once.

A shape turns a JSON value into a value of ours and says what is wrong with it, with its path and what is allowed:

    SHAPE = record(name=need(text(1, 64)), rules=may(list_shape(RULE, most=200), ()))
    value, faults = read(SHAPE, document, "risk")

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
"""More faults of one document help nobody."""
_PLAIN: Final = re.compile("[A-Za-z_][A-Za-z0-9_-]*")
_DURATION: Final = re.compile("([1-9][0-9]{0,6})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFault:
    """One thing that is wrong. ``path`` as in ``risk.sets[0].rules[2].then``; ``message`` says what is allowed."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or 'document'}: {self.message}"


class DocumentFaults(list[DocumentFault]):
    """What was found so far."""

    def add(self, path: str, message: str) -> None:
        if len(self) < MAX_DOCUMENT_FAULTS:
            self.append(DocumentFault(path=path, message=message))


DocumentShape = Callable[[Any, str, DocumentFaults], Any]
"""(value, its path, where faults go) → the value read; what it answers for a faulty value is not used."""


class InvalidDocumentError(ValueError):
    """A document with faults; ``faults`` are all of them."""

    def __init__(self, faults: Iterable[DocumentFault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(str(fault) for fault in self.faults))


def parse_document(shape: DocumentShape, document: Any, path: str = "") -> tuple[Any, DocumentFaults]:
    """The document's value and all its faults; with any fault the value is not to be used."""
    faults = DocumentFaults()
    return shape(document, path, faults), faults


def member_path(path: str, name: str) -> str:
    """The path of a member of an object."""
    if not _PLAIN.fullmatch(name):
        return f'{path}["{name[:MAX_SHOWN_CHARS]}"]'
    return f"{path}.{name}" if path else name


def abbreviate_value(value: Any) -> str:
    """A value as an error may repeat it: short."""
    said = str(value) if not isinstance(value, str) else f'"{value}"'
    return said if len(said) <= MAX_SHOWN_CHARS else f"{said[: MAX_SHOWN_CHARS - 1]}…"


def suggest_name(name: str, known: Iterable[str]) -> str:
    """`` - did you mean X?``, or nothing."""
    near = find_closest_name(name, list(known))
    return f" - did you mean {near}?" if near else ""


# --- single values ----------------------------------------------------------------------------------------------


def text_shape(least: int = 1, most: int = 255, pattern: str = "", *, says: str = "") -> DocumentShape:
    """Text of a length, and of a pattern (the whole text) that ``says`` explains."""
    compiled = re.compile(pattern) if pattern else None
    allowed = says or f"a text of {least} to {most} characters"

    def shape(value: Any, path: str, faults: DocumentFaults) -> Any:
        if not isinstance(value, str):
            faults.add(path, f"must be {allowed}, not {_kind(value)}")
        elif not least <= len(value) <= most or not value.isprintable() or (compiled and not compiled.fullmatch(value)):
            faults.add(path, f"must be {allowed}, not {abbreviate_value(value)}")
        return value

    return shape


def choice_shape(*allowed: str) -> DocumentShape:
    """One of some words; a near miss is suggested."""

    def shape(value: Any, path: str, faults: DocumentFaults) -> Any:
        if not isinstance(value, str) or value not in allowed:
            hint = suggest_name(value, allowed) if isinstance(value, str) else ""
            faults.add(path, f"must be one of {', '.join(allowed)}, not {abbreviate_value(value)}{hint}")
        return value

    return shape


def integer_shape(least: int, most: int) -> DocumentShape:
    """A whole number in a range."""

    def shape(value: Any, path: str, faults: DocumentFaults) -> Any:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            faults.add(path, f"must be a whole number from {least} to {most}, not {abbreviate_value(value)}")
        return value

    return shape


def boolean_shape(value: Any, path: str, faults: DocumentFaults) -> Any:
    """true or false."""
    if not isinstance(value, bool):
        faults.add(path, f"must be true or false, not {abbreviate_value(value)}")
    return value


def amount_shape(value: Any, path: str, faults: DocumentFaults) -> Any:
    """An amount as the wire writes it, as text: "500" or "500.00"."""
    try:
        return parse_amount(value if isinstance(value, str) else "")
    except ValueError:
        faults.add(path, f'must be an amount as text, e.g. "500.00", not {abbreviate_value(value)}')
        return Decimal(0)


def currency_shape(value: Any, path: str, faults: DocumentFaults) -> Any:
    """A currency of ISO 4217."""
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


def list_shape(item: DocumentShape, *, least: int = 0, most: int = 1000, distinct: bool = False) -> DocumentShape:
    """A list, each of whose items has a shape; read as a tuple."""

    def shape(value: Any, path: str, faults: DocumentFaults) -> Any:
        if not isinstance(value, list):
            faults.add(path, f"must be a list, not {_kind(value)}")
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
    """One name of an object. ``missing``: the value when it is not there."""

    shape: DocumentShape
    required: bool
    missing: Any = None


def required_member(shape: DocumentShape) -> ObjectMember:
    return ObjectMember(shape=shape, required=True)


def optional_member(shape: DocumentShape, missing: Any = None) -> ObjectMember:
    return ObjectMember(shape=shape, required=False, missing=missing)


def object_shape(**members: ObjectMember) -> DocumentShape:
    """An object with these names and no others, read as a mapping that has all of them.

    A name with a trailing underscore stands for the one without (``in_``).
    """
    known = {name.removesuffix("_"): member for name, member in members.items()}

    def shape(value: Any, path: str, faults: DocumentFaults) -> Any:
        if not isinstance(value, Mapping):
            faults.add(path, f"must be an object with {', '.join(known)}, not {_kind(value)}")
            return {name: member.missing for name, member in known.items()}
        refuse_unknown_members(value, known, path, faults)
        return read_members(value, known, path, faults)

    return shape


def read_members(
    value: Mapping[str, Any], known: Mapping[str, ObjectMember], path: str, faults: DocumentFaults
) -> dict[str, Any]:
    """The members ``known`` of an object, each read by its shape."""
    found = {}
    for name, member in known.items():
        if name in value:
            found[name] = member.shape(value[name], member_path(path, name), faults)
        else:
            found[name] = member.missing
            if member.required:
                faults.add(member_path(path, name), "is required")
    return found


def refuse_unknown_members(value: Mapping[str, Any], known: Iterable[str], path: str, faults: DocumentFaults) -> None:
    """A fault for every name of an object that is not known."""
    allowed = list(known)
    for name in value:
        if name not in allowed:
            words = f"is not known here{suggest_name(str(name), allowed)}; known are {', '.join(allowed)}"
            faults.add(member_path(path, str(name)), words)


def _kind(value: Any) -> str:
    """What a JSON value is, for an error."""
    if value is None:
        return "null"
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list"}
    return kinds.get(type(value), "an object")

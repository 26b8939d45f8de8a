"""Decodes application/x-www-form-urlencoded bodies and query strings into (name, value) pairs.

Order and repetition are preserved, for the parser to report. Source: Part A, What the service does, 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote, unquote_to_bytes

from gateway.catalogue.errors import MAX_REPORTED_NAME_CHARS

MAX_FORM_FIELDS: Final = 50_000
"""Most fields of a body: a 1,000-item cart with all of its 45 parameters per item passes."""
MAX_FORM_NAME_CHARS: Final = 3 * MAX_REPORTED_NAME_CHARS
"""Most characters of a name as sent. A longer one is not decoded: no parameter is so long, even fully escaped."""
MAX_FORM_VALUE_BYTES: Final = 64 * 1024
"""Most UTF-8 bytes of a value; the longest of the catalogue has as many characters, all of them ASCII."""
_WINDOW_CHARS: Final = 16 * 1024
"""Characters decoded at a time: the decoder takes some 80 bytes of memory for each byte it is given."""


class UnreadableFormError(Exception):
    """The body is not a form: ``name`` is the parameter at fault ('' for the whole), ``message`` says why."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}" if name else message)
        self.name = name
        self.message = message


def parse_form(body: bytes) -> list[tuple[str, str]]:
    """Decode ``body`` (UTF-8, percent-encoded or raw). Empty parts are skipped; a part without ``=`` has value ''.

    Raises UnreadableFormError for bytes that are not UTF-8, for more than MAX_FORM_FIELDS fields, and, before they are
    decoded, for names and values longer than any parameter's.
    """
    if body.count(b"&") >= MAX_FORM_FIELDS:
        raise UnreadableFormError("", f"The body has more than {MAX_FORM_FIELDS:,} fields")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise UnreadableFormError(_find_name_at(body, fault.start), "is not valid UTF-8") from None
    found: list[tuple[str, str]] = []
    for part in text.split("&"):
        if not part:
            continue
        name, _, value = part.partition("=")
        if len(part) > MAX_REPORTED_NAME_CHARS:
            _refuse_long(name, value)
        try:
            if "%" in name or "+" in name:
                name = _decode(name)
            if "%" in value or "+" in value:
                value = _decode(value)
        except UnicodeDecodeError:
            raise UnreadableFormError(_shorten_name(name), "is not valid UTF-8") from None
        found.append((name, value))
    return found


def _refuse_long(name: str, value: str) -> None:
    if len(name) > MAX_FORM_NAME_CHARS:
        raise UnreadableFormError(
            _shorten_name(name), f"is longer than any name: none has more than {MAX_REPORTED_NAME_CHARS} characters"
        )
    # Each escape is three characters of the form and one byte of the value.
    if len(value) > MAX_FORM_VALUE_BYTES and len(value) - 2 * value.count("%") > MAX_FORM_VALUE_BYTES:
        raise UnreadableFormError(
            _shorten_name(name), f"is longer than any parameter: at most {MAX_FORM_VALUE_BYTES:,} bytes"
        )


def _decode(text: str) -> str:
    """``text`` percent-decoded. Raises UnicodeDecodeError."""
    text = text.replace("+", " ")
    if len(text) <= _WINDOW_CHARS:
        return unquote(text, errors="strict")
    return b"".join(_unquote_windows(text)).decode("utf-8")


def _unquote_windows(text: str) -> Iterator[bytes]:
    """``text`` unquoted in windows; none ends within an escape."""
    start = 0
    while start < len(text):
        end = start + _WINDOW_CHARS
        escape = text.rfind("%", end - 2, end)
        end = end if escape < 0 else escape
        yield unquote_to_bytes(text[start:end])
        start = end


def _shorten_name(name: str) -> str:
    """The beginning of a name, for an error message."""
    return unquote(name[:MAX_REPORTED_NAME_CHARS].replace("+", " "))


def _find_name_at(body: bytes, position: int) -> str:
    start = body.rfind(b"&", 0, position) + 1
    end = body.find(b"=", start)
    return body[start : min(end, start + MAX_REPORTED_NAME_CHARS)].decode("utf-8", "replace") if end >= 0 else ""

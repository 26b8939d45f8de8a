"""Compact JSON, as all responses and stored responses have it, and reading parsed JSON of any shape."""

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class TextTooLongError(Exception):
    """A long list whose text is longer than it may be."""


def encode_json(body: Any) -> bytes:
    """Compact JSON in UTF-8."""
    return _encode(body).encode()


def encode_object(fields: Mapping[str, Any], *, max_bytes: int | None = None) -> bytes:
    """An object as :func:`encode_json` has it, with long lists: a value that is an iterator is written as a list, of
    which one item is in memory at a time, and its text once. Raises TextTooLongError for a list of several items that
    passes ``max_bytes``."""
    written = io.BytesIO()
    written.write(b"{")
    for number, (name, value) in enumerate(fields.items()):
        written.write((b"," if number else b"") + encode_json(name) + b":")
        if isinstance(value, Iterator):
            _write_list(written, value, max_bytes)
        else:
            written.write(encode_json(value))
    written.write(b"}")
    return written.getvalue()


def get_json_object(parsed: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The object under ``name``; an empty one where there is none, or something else."""
    found = parsed.get(name)
    return found if isinstance(found, Mapping) else {}


def _write_list(written: io.BytesIO, items: Iterator[Any], max_bytes: int | None) -> None:
    written.write(b"[")
    for number, item in enumerate(items):
        if number:
            written.write(b",")
        written.write(encode_json(item))
        if number and max_bytes is not None and written.tell() > max_bytes:
            raise TextTooLongError
    written.write(b"]")

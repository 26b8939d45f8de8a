"""Compact JSON, as all responses and stored responses have it."""

import io
import json
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

ENCODED_BLOCK_ITEMS: Final = 100
"""Items of a long list that are encoded at a time."""
_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode_json(body: Any) -> bytes:
    """Compact JSON in UTF-8."""
    return _encode(body).encode()


def encode_object(fields: Mapping[str, Any]) -> bytes:
    """An object as :func:`encode_json` has it, with long lists: a value that is an iterator is written as a list, of
    which ENCODED_BLOCK_ITEMS are in memory at a time, and its text once."""
    written = io.BytesIO()
    written.write(b"{")
    for number, (name, value) in enumerate(fields.items()):
        written.write((b"," if number else b"") + encode_json(name) + b":")
        if isinstance(value, Iterator):
            _write_list(written, value)
        else:
            written.write(encode_json(value))
    written.write(b"}")
    return written.getvalue()


def _write_list(written: io.BytesIO, items: Iterator[Any]) -> None:
    written.write(b"[")
    comma = b""
    while block := list(islice(items, ENCODED_BLOCK_ITEMS)):
        written.write(comma + encode_json(block)[1:-1])
        comma = b","
    written.write(b"]")

"""Compact JSON, as all responses and stored responses have it."""

import json
from typing import Any, Final

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def encode_json(body: Any) -> bytes:
    """Compact JSON in UTF-8."""
    return _encode(body).encode()

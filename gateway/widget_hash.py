"""The hashes of the current widget scripts, for the ``integrity`` attribute of the page's script tag.

The scripts belong to the checkout app; only its built files are read here. Source: Part A, What the service does, 10.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from django.conf import settings

INTEGRITY_ALGORITHM: Final = "sha384"
FIRST_SCRIPT_NAME: Final = "paymentWidgets.js"
SECOND_SCRIPT_NAME: Final = "paymentWidgetsMore.js"
"""Loaded by the first script, by its hash, when a page needs more than a card form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WidgetBuild:
    """One built script. ``digest`` is SHA-384: the name a build is kept under when the next one is served."""

    script: bytes
    digest: bytes

    @property
    def integrity(self) -> str:
        """The value of the ``integrity`` attribute: ``sha384-`` and base64."""
        return f"{INTEGRITY_ALGORITHM}-{base64.b64encode(self.digest).decode()}"


def current_widget_build(name: str = FIRST_SCRIPT_NAME) -> WidgetBuild:
    """The script ``name`` as it is served now; an empty one if none is built."""
    path = Path(settings.GATEWAY_WIDGET_DIST) / name
    try:
        found = path.stat()
    except OSError:
        return _read_build(str(path), 0, 0)
    return _read_build(str(path), found.st_mtime_ns, found.st_size)


def widget_integrity() -> str:
    """The hash of the script that is served now."""
    return current_widget_build().integrity


@lru_cache(maxsize=4)
def _read_build(path: str, modified_ns: int, _size: int) -> WidgetBuild:
    script = Path(path).read_bytes() if modified_ns else b""
    return WidgetBuild(script=script, digest=hashlib.new(INTEGRITY_ALGORITHM, script).digest())


def sha384_hex(content: bytes) -> str:
    """SHA-384 of some bytes, hexadecimal: an ETag."""
    return hashlib.new(INTEGRITY_ALGORITHM, content).hexdigest()

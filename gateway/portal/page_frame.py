"""What every page of the docs and the demo shop is rendered with: facts of the installation, and its assets."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.templatetags.static import static

_STATIC: Final = Path(__file__).resolve().parents[2] / "static"


def build_page_frame(assets: Mapping[str, str]) -> dict[str, Any]:
    """The context of a page. ``assets``: name in the template → static file."""
    build = settings.GATEWAY_BUILD_NUMBER
    return {
        "base_url": settings.GATEWAY_BASE_URL,
        "environment": settings.GATEWAY_ENVIRONMENT,
        "live": settings.IS_LIVE,
        "build": build,
        "commit": build[:7],
        "assets": {name: _build_asset_url(path) for name, path in assets.items()},
    }


@cache
def _build_asset_url(name: str) -> str:
    """A static file's address with a hash of its content, so that a new version is fetched at once."""
    mark = hashlib.sha256((_STATIC / name).read_bytes()).hexdigest()[:8]
    return f"{static(name)}?v={mark}"

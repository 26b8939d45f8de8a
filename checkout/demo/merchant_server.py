"""Server side of the demo shop: calls the API as any merchant's server does, and records the exchange for display.

It calls the API's views within this process, so it needs no network access to itself; requests and responses are the
same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from gateway.api.in_process import call_own_api
from gateway.core.masking import mask_text
from gateway.core.secret import Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoShop:
    """The seeded demo merchant. ``channels``: name → entityId."""

    token: Secret
    channels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiExchange:
    """One API request and its response, as the shop's panel shows them: without the token."""

    method: str
    path: str
    fields: Mapping[str, str]
    status: int
    body: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        sent = [[name, mask_text(value)] for name, value in self.fields.items()]
        return {"method": self.method, "path": self.path, "sent": sent, "status": self.status, "answer": self.body}


def load_demo_shop() -> DemoShop | None:
    """The demo merchant; None in live, and if nothing was seeded."""
    return (
        None
        if settings.IS_LIVE
        else _read_demo_shop(settings.GATEWAY_DEMO_FILE, _data_stamp(settings.GATEWAY_DEMO_FILE))
    )


def _data_stamp(path: str) -> int:
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=2)
def _read_demo_shop(path: str, stamp: int) -> DemoShop | None:
    if not stamp:
        return None
    try:
        facts = json.loads(Path(path).read_text())
        return DemoShop(token=Secret(facts["access_token"]), channels=dict(facts["channels"]))
    except (OSError, ValueError, KeyError):
        return None


def call_api(shop: DemoShop, method: str, path: str, fields: Mapping[str, str]) -> ApiExchange:
    """Call the API. ``fields``: including entityId; sent in the body, or in the query of a GET."""
    answer = call_own_api(method, path, fields, token=shop.token)
    return ApiExchange(method=method, path=path, fields=fields, status=answer.status, body=answer.body)

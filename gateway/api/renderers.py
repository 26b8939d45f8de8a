"""DRF renderer and content negotiation: always JSON, whatever the Accept header says (ruling D19)."""

from __future__ import annotations

from typing import Any

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from gateway.core.compact_json import encode_json


class EnvelopeRenderer(BaseRenderer):  # type: ignore[misc]  # DRF has no type hints
    """Renders response data as compact JSON. The context is DRF's, and names the response that keeps it."""

    media_type = "application/json"
    format = "json"
    charset = "utf-8"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: dict[str, Any] | None = None
    ) -> bytes:
        if renderer_context is not None:
            renderer_context.clear()  # what names itself would wait for the garbage collector
        return b"" if data is None else encode_json(data)


class JsonOnlyNegotiation(BaseContentNegotiation):  # type: ignore[misc]  # DRF has no type hints
    """No content negotiation: every Accept header gets JSON."""

    def select_parser(self, request: Request, parsers: Any) -> None:
        return None

    def select_renderer(self, request: Request, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type

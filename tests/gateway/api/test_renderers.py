"""Every answer of the API is JSON, whatever was asked for. Source: ruling D19."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gateway.api.renderers import EnvelopeRenderer, JsonOnlyNegotiation


@pytest.mark.parametrize(
    ("data", "text"), [(None, b""), ({}, b"{}"), ({"a": ["ü", 1]}, '{"a":["ü",1]}'.encode()), ("", b'""'), (0, b"0")]
)
def test_data_is_compact_json_and_nothing_is_no_body(data: Any, text: bytes) -> None:
    assert EnvelopeRenderer().render(data) == text


@pytest.mark.parametrize("accept", ["text/html", "application/xml", "", "nonsense"])
def test_the_first_renderer_answers_whatever_is_accepted(accept: str) -> None:
    request: Any = SimpleNamespace(META={"HTTP_ACCEPT": accept})
    first, second = EnvelopeRenderer(), SimpleNamespace(media_type="text/html")
    assert JsonOnlyNegotiation().select_renderer(request, [first, second]) == (first, "application/json")
    assert JsonOnlyNegotiation().select_parser(request, [first]) is None

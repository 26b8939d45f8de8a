"""JSON of other systems, as the database can keep it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.db import connection

from gateway.core.peer_json import parse_peer_json

TEXTS: list[tuple[str | bytes, Any]] = [
    ('{"a": "b", "c": [1, 2.5, true, null]}', {"a": "b", "c": [1, 2.5, True, None]}),
    (b'{"a": "\xc3\xa9 \\ud83d\\ude00"}', {"a": "é 😀"}),
    ('{"a\\u0000": "\\u0000b"}', {"a�": "�b"}),
    ('{"a": ["\\ud800", {"b": "x\\udfffy"}]}', {"a": ["�", {"b": "x�y"}]}),
    ('{"a": "\\\\u0000 \\\\ud800"}', {"a": "\\u0000 \\ud800"}),
    ('{"a": "\ud800"}', {"a": "�"}),
    (b"\xef\xbb\xbf1", 1),
    ("[[], []" + ", {}" * 100 + "]", [[], []] + [{}] * 100),
    ("[" * 32 + "]" * 32, json.loads("[" * 32 + "]" * 32)),
]


@pytest.mark.parametrize(("text", "found"), TEXTS)
def test_what_the_database_cannot_keep_is_replaced(text: str | bytes, found: Any) -> None:
    assert parse_peer_json(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        b"\xff",
        b'"\xed\xa0\x80"',
        '{"a": NaN}',
        "[-Infinity]",
        "1e999",
        "[" * 100_000,
        "[" * 33 + "]" * 33,
        '{"a": ' * 33 + "1" + "}" * 33,
        '{"a": 1' + "0" * 5_000,
    ],
    ids=lambda text: ascii(text)[:12],
)
def test_what_is_no_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_peer_json(text)


@pytest.mark.django_db
@pytest.mark.parametrize("text", [text for text, _ in TEXTS])
def test_the_database_keeps_it(text: str | bytes) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::jsonb", [json.dumps(parse_peer_json(text))])
        assert cursor.fetchone() is not None

"""Version 1 only grows: what a client may send and what it may read is in contract_v1.txt, and nothing of it goes away.

A line says what an endpoint takes of one structure, which statuses it answers, or which fields an answer has; ``!``
marks what is demanded, or is always there. Words are added to lines by
`UPDATE_SNAPSHOTS=1 python -m pytest tests/gateway/catalogue/test_contract.py`, and taken out by nobody: what would
break a client comes under another version. Source: Part A, Versioning.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.catalogue.openapi import FORM_MEDIA_TYPE, build_openapi
from tests.support.client import Api

CONTRACT: Final = Path(__file__).parent / "contract_v1.txt"
Promise = tuple[str, str]
"""What a line is about, and one of its words."""


def kind_of(schema: dict[str, Any]) -> str:
    """The type of a field in one word; what a reference leads to has lines of its own."""
    named = schema.get("type") or schema.get("$ref", "").rpartition("/")[2] or "one-of"
    return named if isinstance(named, str) else "|".join(named)


def promises(whole: dict[str, Any]) -> Iterator[Promise]:
    for path, operations in whole["paths"].items():
        for method, operation in operations.items():
            where = f"{method.upper()} {path}"
            sent = {one["name"]: one["required"] for one in operation.get("parameters", []) if one["in"] == "query"}
            form = operation.get("requestBody", {}).get("content", {}).get(FORM_MEDIA_TYPE, {}).get("schema", {})
            sent |= {name: name in form.get("required", []) for name in form.get("properties", {})}
            for name, required in sent.items():
                structure, dot, rest = name.rpartition(".")
                yield f"{where} takes {structure}{dot}", f"{rest}{'!' if required else ''}"
            yield from ((f"{where} answers", status) for status in operation["responses"])
    for name, schema in whole["components"]["schemas"].items():
        for field, kind in schema.get("properties", {}).items():
            yield f"{name} has", f"{field}{'!' if field in schema.get('required', []) else ''}:{kind_of(kind)}"


def written(found: Iterable[Promise]) -> str:
    lines = defaultdict(list)
    for about, word in sorted(found):
        lines[about].append(word)
    return "".join(f"{about}: {' '.join(words)}\n" for about, words in lines.items())


def read() -> set[Promise]:
    lines = CONTRACT.read_text(encoding="utf-8").splitlines() if CONTRACT.exists() else []
    return {(about, word) for about, _, words in (line.partition(": ") for line in lines) for word in words.split()}


@pytest.fixture(scope="module")
def now() -> set[Promise]:
    return set(promises(build_openapi("https://pay.example", "test")))


def test_nothing_that_was_promised_is_taken_back(now: set[Promise]) -> None:
    """A32.2: no parameter, status or field is removed or retyped; what was optional is not demanded."""
    if os.environ.get("UPDATE_SNAPSHOTS"):
        CONTRACT.write_text(written(read() | now), encoding="utf-8")
    # What is demanded no longer, or comes always now, breaks nobody.
    softer = {(about, word.replace("!", "")) for about, word in now}
    kept = now | {(about, word) for about, word in softer if " has" in about}
    kept |= {(about, f"{word}!") for about, word in softer if " takes" in about}
    assert sorted(read() - kept) == []


def test_a_new_parameter_is_never_demanded(now: set[Promise]) -> None:
    """A32.2: a request that is complete today is complete tomorrow."""
    before = read()
    endpoints = {about.partition(" takes")[0] for about, _ in before}
    new = now - before
    assert [one for one in new if one[1].endswith("!") and one[0].partition(" takes")[0] in endpoints] == []


def closed(node: Any, at: str = "") -> Iterator[str]:
    """Where a schema says that there are no other fields."""
    if isinstance(node, dict):
        if node.get("additionalProperties") is False:
            yield at
        for name, inner in node.items():
            yield from closed(inner, f"{at}/{name}")


@pytest.mark.django_db
def test_answers_may_gain_fields_and_clients_are_told_so() -> None:
    """A32.3: no schema of an answer is closed; the page says what may come, and that more needs another version."""
    assert list(closed(build_openapi("https://pay.example", "test")["components"]["schemas"])) == []
    page = Api(token=None, entity=None).call("GET", "/docs/versioning").text
    for said in ("new fields in an answer", "Ignore fields that it does not know", "comes under a new version"):
        assert said in page

"""What generators of clients need of the OpenAPI document, so that none needs a special setting.

Tried with openapi-python-client, datamodel-code-generator, openapi-typescript, openapi-ts, orval, and the python, java,
typescript-fetch, go, php and csharp generators of OpenAPI Generator; see
docs/decisions/0048-readings-of-names-booleans-and-pages.md. Source: Part A, Endpoints.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from gateway.catalogue.endpoints import REPORTS
from gateway.catalogue.openapi import build_openapi

METHODS = ("get", "post", "delete")


@pytest.fixture(scope="module", params=["test", "live"])
def whole(request: pytest.FixtureRequest) -> dict[str, Any]:
    return build_openapi("https://pay.example", request.param)


def nodes(node: Any, at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object of the document with its place; examples are no part of the schemas."""
    if isinstance(node, dict):
        yield at, node
        for name, inner in node.items():
            if name not in ("example", "examples"):
                yield from nodes(inner, f"{at}/{name}")
    elif isinstance(node, list):
        for place, inner in enumerate(node):
            yield from nodes(inner, f"{at}/{place}")


def operations(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for item in whole["paths"].values():
        yield from (item[method] for method in METHODS if method in item)


def same_names(words: Iterable[str]) -> list[str]:
    """The words that are one name once a language has made its own of them: letters and digits, joined, in any case."""
    counted = Counter(re.sub(r"[^a-z0-9]+", "_", word.casefold()).strip("_") for word in words)
    return [word for word, count in counted.items() if count > 1 or not word]


def test_no_enumeration_names_one_value_twice(whole: dict[str, Any]) -> None:
    found = {at: same for at, node in nodes(whole) if "enum" in node and (same := same_names(node["enum"]))}
    assert found == {}


def test_no_two_parameters_of_an_operation_are_one_name(whole: dict[str, Any]) -> None:
    for operation in operations(whole):
        forms = operation.get("requestBody", {}).get("content", {}).values()
        names = [name for form in forms for name in form["schema"]["properties"]]
        assert same_names(names) == []
        assert same_names(one["name"] for one in operation.get("parameters", ())) == []


def test_every_operation_and_schema_has_a_name_of_its_own(whole: dict[str, Any]) -> None:
    names = [operation["operationId"] for operation in operations(whole)]
    assert same_names(names) == []
    assert [name for name in names if not re.fullmatch("[a-z][A-Za-z0-9-]*", name)] == []
    assert same_names(whole["components"]["schemas"]) == []


def test_no_schema_has_a_default(whole: dict[str, Any]) -> None:
    """Generated clients send what a schema calls its default: a job's times would be in every payment."""
    assert [at for at, node in nodes(whole["paths"]) if isinstance(node.get("default"), str)] == []


def test_forms_leave_open_what_else_there_may_be_without_saying_so(whole: dict[str, Any]) -> None:
    """JSON Schema is open by itself; said aloud, OpenAPI Generator takes it for a map, and forms for unsupported."""
    for operation in operations(whole):
        for form in operation.get("requestBody", {}).get("content", {}).values():
            assert "additionalProperties" not in form["schema"]


def test_what_is_published_once_is_taken_in_either_form() -> None:
    """Part B, Reporting parameters: ASC, DESC, asc, desc; 3D Secure: _DELAYED_SHIPMENT."""
    whole = build_openapi("https://pay.example", "test")
    detail = next(one for one in REPORTS if one.name == "settlement")
    for value in ("ASC", "DESC", "asc", "desc"):
        sent = [("entityId", "0" * 32), ("sortOrder", value)]
        assert detail.catalogue.parse(sent, policy="strict")["sortOrder"] == value
    told = next(one for one in whole["paths"][detail.path]["get"]["parameters"] if one["name"] == "sortOrder")
    assert told["schema"]["enum"] == ["ASC", "DESC"]
    assert "asc and desc are taken, too." in told["description"]

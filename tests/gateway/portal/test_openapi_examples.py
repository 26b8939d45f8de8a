"""Examples of answers in the OpenAPI document: each is an answer of this gateway and fits its schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from django.test import Client

from gateway.catalogue.openapi import build_openapi
from gateway.core.result_codes import ResultFamily, find_result_family

# Tools of the test environment, what only the form calls, health: their pages show no sample.
WITHOUT_SAMPLE = {
    "/health/live", "/health/ready", "/v1/openapi.json", "/v1/resultcodes", "/v1/fastcheckout/integrity",
    "/v1/checkouts/{id}/config", "/v1/checkouts/{id}/state", "/v1/checkouts/{id}/wallet-session",
    "/v1/checkouts/{id}/release",
    "/v1/test/requests", "/v1/test/webhooks", "/v1/test/wallet-token", "/v1/test/network-tokens/{id}",
}  # fmt: skip


@pytest.fixture
def document() -> dict[str, Any]:
    found: dict[str, Any] = Client().get("/v1/openapi.json").json()
    return found


def list_contents(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every answer: operation, status, content."""
    shared = document["components"]["responses"]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            for status, response in operation.get("responses", {}).items() if isinstance(operation, dict) else ():
                found = shared[response["$ref"].rpartition("/")[2]] if "$ref" in response else response
                for content in found.get("content", {}).values():
                    yield f"{method} {path}", status, content


def list_values(content: dict[str, Any]) -> list[dict[str, Any]]:
    return (
        [content["example"]] if "example" in content else [one["value"] for one in content.get("examples", {}).values()]
    )


def test_every_answer_of_every_operation_with_a_sample_has_an_example(document: dict[str, Any]) -> None:
    without = {
        (operation, status) for operation, status, content in list_contents(document) if not list_values(content)
    }
    assert {operation.partition(" ")[2] for operation, _ in without} == WITHOUT_SAMPLE
    assert {status for _, status in without} == {"200", "503"}


def test_every_example_fits_its_schema(document: dict[str, Any]) -> None:
    wrong = [
        (operation, status, fault.message)
        for operation, status, content in list_contents(document)
        for value in list_values(content)
        for fault in jsonschema_rs.Draft202012Validator(
            {**content["schema"], "components": document["components"]}
        ).iter_errors(value)
    ]
    assert wrong == []


def test_success_waiting_decline_and_every_kind_of_refusal_are_among_them(document: dict[str, Any]) -> None:
    codes = {
        value["result"]["code"]
        for _, _, content in list_contents(document)
        for value in list_values(content)
        if "result" in value
    }
    families = {find_result_family(code) for code in codes}
    wanted = {ResultFamily.SUCCESS, ResultFamily.PENDING, ResultFamily.REJECTED_BANK, ResultFamily.FORMAT}
    assert wanted <= families


def test_the_catalogues_own_document_stays_without_examples() -> None:
    """Its parts are constants: what is added to a document must not stand in the next one."""
    before = json.dumps(build_openapi("https://pay.example", "test"), sort_keys=True)
    assert Client().get("/v1/openapi.json", headers={"host": "localhost:8443"}).status_code == 200
    assert json.dumps(build_openapi("https://pay.example", "test"), sort_keys=True) == before

"""The OpenAPI document: valid, complete, true to the parser, and changed on purpose only.

`UPDATE_SNAPSHOTS=1 python -m pytest tests/gateway/catalogue/test_openapi.py` writes the snapshot anew.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis

from gateway.catalogue.endpoints import ENDPOINTS, Endpoint
from gateway.catalogue.openapi import FORM_MEDIA_TYPE, REQUEST_EXAMPLES, build_openapi, example_name, name_pattern
from gateway.models.webhooks import WEBHOOK_KINDS
from tests.support.client import Api
from tests.support.fixtures import Shop
from tests.support.webhook_delivery import deliver

SNAPSHOT = Path(__file__).parent / "openapi.json"
MOST_BYTES = 1_250_000
BASE = "https://pay.example"
POSTS = [endpoint for endpoint in ENDPOINTS if endpoint.method == "POST"]


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return build_openapi(BASE, "test")


def _operation(whole: dict[str, Any], endpoint: Endpoint) -> dict[str, Any]:
    found = whole["paths"][endpoint.path][endpoint.method.lower()]
    assert isinstance(found, dict)
    return found


def _validator(whole: dict[str, Any], schema: dict[str, Any]) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator({**schema, "components": whole["components"]})


def _body(whole: dict[str, Any], endpoint: Endpoint) -> dict[str, Any]:
    found = _operation(whole, endpoint)["requestBody"]["content"][FORM_MEDIA_TYPE]
    assert isinstance(found, dict)
    return found


def test_the_document_is_the_one_that_was_reviewed(whole: dict[str, Any]) -> None:
    """A32.2; Part A, Versioning: what clients build on changes only on purpose."""
    text = json.dumps(whole, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert json.loads(text) == json.loads(SNAPSHOT.read_text(encoding="utf-8"))


def test_the_document_is_valid_openapi_and_small(whole: dict[str, Any]) -> None:
    """Part A, Endpoints."""
    schema = schemathesis.openapi.from_dict(whole)
    schema.validate()
    assert sum(1 for _ in schema.get_all_operations()) == len(ENDPOINTS) + 9
    assert len(json.dumps(whole).encode()) < MOST_BYTES


def test_no_typed_rest_stands_beside_an_optional_property(whole: dict[str, Any]) -> None:
    """TypeScript refuses what generators make of it: an optional property beside an index of another type."""
    waiting: list[Any] = [whole["components"]["schemas"]]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.values() if isinstance(node, dict) else node if isinstance(node, list) else ())
        if isinstance(node, dict) and isinstance(node.get("additionalProperties"), dict):
            assert not set(node.get("properties", {})) - set(node.get("required", ())), node


def test_every_reference_leads_somewhere(whole: dict[str, Any]) -> None:
    """Part A, Endpoints."""
    for target in set(re.findall(r'"\$ref": "#/([^"]+)"', json.dumps(whole))):
        node: Any = whole
        for step in target.split("/"):
            node = node[step]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_every_parameter_of_an_endpoint_is_documented(whole: dict[str, Any], endpoint: Endpoint) -> None:
    """Part A and B, the tables of request parameters."""
    operation = _operation(whole, endpoint)
    if endpoint.method == "POST":
        documented = set(_body(whole, endpoint)["schema"]["properties"])
    else:
        documented = {one["name"] for one in operation["parameters"] if one["in"] == "query"}
    assert documented == {example_name(s, row) for s in endpoint.structures for row in s.rows}


@pytest.mark.parametrize("endpoint", POSTS, ids=lambda endpoint: endpoint.name)
def test_every_documented_name_and_example_is_one_that_the_parser_takes(
    whole: dict[str, Any], endpoint: Endpoint
) -> None:
    """Part A, What the service does, 3: dotted, indexed and bracket names."""
    for name, schema in _body(whole, endpoint)["schema"]["properties"].items():
        found = endpoint.catalogue.find(name)
        assert found is not None, name
        row = found[0]
        example = schema["examples"][0]
        assert row.param.format.problem(example) is None, name
        assert _validator(whole, schema).is_valid(example), name


@pytest.mark.parametrize("endpoint", POSTS, ids=lambda endpoint: endpoint.name)
def test_every_index_and_key_is_documented_by_a_pattern(whole: dict[str, Any], endpoint: Endpoint) -> None:
    """Part A, Limits: cart.items from 0 to 999; ruling D31."""
    patterns = _body(whole, endpoint)["schema"].get("patternProperties", {})
    for structure in endpoint.structures:
        for row in structure.rows:
            if row.key is None and "[n]" not in structure.full(row.name):
                continue
            pattern = re.compile(name_pattern(structure, row))
            name = example_name(structure, row)
            assert name_pattern(structure, row) in patterns
            assert pattern.search(name), name
            assert pattern.search(name.replace("[0]", "[999]")), name
            if "[0]" in name:
                assert not pattern.search(name.replace("[0]", "[1000]"))
                assert not pattern.search(name.replace("[0]", "[01]"))


@pytest.mark.parametrize("endpoint", POSTS, ids=lambda endpoint: endpoint.name)
def test_the_documented_example_of_a_request_is_valid(whole: dict[str, Any], endpoint: Endpoint) -> None:
    """Part A, Endpoints."""
    body = _body(whole, endpoint)
    validator = _validator(whole, body["schema"])
    assert validator.is_valid(body["example"])
    missing = {name: value for name, value in body["example"].items() if name != "entityId"}
    assert not validator.is_valid(missing)
    endpoint.catalogue.parse(body["example"].items())


def test_a_wrong_value_breaks_the_schema_at_any_index(whole: dict[str, Any]) -> None:
    """Part B, Cart items."""
    body = _body(whole, POSTS[0])
    validator = _validator(whole, body["schema"])
    assert validator.is_valid({**body["example"], "cart.items[17].currency": "EUR"})
    assert not validator.is_valid({**body["example"], "cart.items[17].currency": "euro"})


def test_live_has_no_test_endpoints() -> None:
    """Part A, What the service does, 2: two environments."""
    live = build_openapi(BASE, "live")
    assert not [path for path in live["paths"] if path.startswith("/v1/test/")]
    assert "/v1/payments" in live["paths"]
    assert live["servers"][0]["url"] == BASE


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda endpoint: endpoint.name)
def test_every_status_of_an_endpoint_is_documented(whole: dict[str, Any], endpoint: Endpoint) -> None:
    """Part A, Errors."""
    documented = {int(status) for status in _operation(whole, endpoint)["responses"]}
    assert documented >= {*endpoint.answers, 405}


def _answers_as_documented(whole: dict[str, Any], endpoint: str, path: str, answer: Any) -> None:
    operation = whole["paths"][path][endpoint]
    response = operation["responses"][str(answer.status)]
    if "$ref" in response:
        response = whole["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    schema = response["content"]["application/json"]["schema"]
    faults = [f"{error.instance_path}: {error.message}" for error in _validator(whole, schema).iter_errors(answer.body)]
    assert not faults, faults


def test_answers_have_the_documented_shape(whole: dict[str, Any], shop: Shop, api: Api) -> None:
    """Part B, Payment response; ruling D13."""
    paid = api.pay(**{"customParameters[orderRef]": "7"})
    assert paid.status == 200
    for answer in (paid, api.pay(card__number="4000015500000005"), api.pay(amount="92.1"), api.with_token(None).pay()):
        _answers_as_documented(whole, "post", "/v1/payments", answer)
    _answers_as_documented(whole, "post", "/v1/payments/{id}", api.follow(paid.id, "RF", "1.00"))
    _answers_as_documented(whole, "get", "/v1/payments/{id}", api.read(paid.id))
    _answers_as_documented(whole, "get", "/v1/payments/{id}", api.read("0" * 32))
    _answers_as_documented(whole, "post", "/v1/payments", api.call("PUT", "/v1/payments"))
    stored = api.post("/v1/registrations", REQUEST_EXAMPLES["registration"])
    path = "/v1/registrations/{id}"
    _answers_as_documented(whole, "post", "/v1/registrations", stored)
    clicked = api.post(f"/v1/registrations/{stored.id}/payments", REQUEST_EXAMPLES["one-click"])
    _answers_as_documented(whole, "post", f"{path}/payments", clicked)
    _answers_as_documented(whole, "post", f"{path}/extend", api.post(f"/v1/registrations/{stored.id}/extend"))
    for method, call in (("get", api.get), ("post", api.post), ("delete", api.delete), ("get", api.get)):
        _answers_as_documented(whole, method, path, call(f"/v1/registrations/{stored.id}"))
    plan = {**REQUEST_EXAMPLES["schedule"], "registrationId": api.pay(createRegistration="true").body["registrationId"]}
    job = api.post("/v1/schedules", plan)
    _answers_as_documented(whole, "post", "/v1/schedules", job)
    path = "/v1/schedules/{id}"
    _answers_as_documented(whole, "get", path, api.get(f"/v1/schedules/{job.id}"))
    for verb in ("reschedule", "deschedule"):
        changed = api.post(f"/v1/schedules/{job.id}/{verb}", REQUEST_EXAMPLES[verb])
        assert changed.status == 200, changed
        _answers_as_documented(whole, "post", f"{path}/{verb}", changed)
    _answers_as_documented(whole, "delete", path, api.delete(f"/v1/schedules/{job.id}"))
    _answers_as_documented(whole, "get", path, api.get(f"/v1/schedules/{'0' * 32}"))
    _answers_as_documented(whole, "get", "/v1/test/clock", api.get("/v1/test/clock"))
    messages = api.get("/v1/test/acquirer/messages", {"id": paid.id})
    _answers_as_documented(whole, "get", "/v1/test/acquirer/messages", messages)
    for method, call, path in (
        ("post", api.post, "webhooks"),
        ("get", api.get, "webhooks"),
        ("get", api.get, "requests"),
    ):
        _answers_as_documented(whole, method, f"/v1/test/{path}", call(f"/v1/test/{path}"))
    _answers_as_documented(whole, "get", "/v1/resultcodes", api.get("/v1/resultcodes"))
    _answers_as_documented(whole, "get", "/health/live", api.get("/health/live"))
    _answers_as_documented(whole, "get", "/health/ready", api.get("/health/ready"))
    narrow = shop.api_of(shop.open_channel(limits={"*": {"limit": 1, "window_s": 86_400}}))
    narrow.read(paid.id)
    throttled = narrow.read(paid.id)
    assert throttled.status == 429
    _answers_as_documented(whole, "get", "/v1/payments/{id}", throttled)


def test_every_kind_of_event_is_a_webhook_of_the_document(whole: dict[str, Any]) -> None:
    assert set(whole["webhooks"]) == set(WEBHOOK_KINDS)


def test_events_have_the_documented_shape(whole: dict[str, Any], shop: Shop) -> None:
    opened = shop.api.post("/v1/test/webhooks", {})
    stored = shop.api.pay(createRegistration="true").body["registrationId"]
    shop.api.post("/v1/schedules", {**REQUEST_EXAMPLES["schedule"], "registrationId": stored})
    shop.api.follow(shop.api.pay().id, "RF", "1.00")
    deliver()
    kept = shop.api.get("/v1/test/webhooks", {"after": str(opened.body["newest"])}).body["webhooks"]
    events = [json.loads(one["body"]) for one in kept]
    assert {event["type"] for event in events} == {"PAYMENT", "REGISTRATION", "SCHEDULE"}
    for event in events:
        schema = whole["webhooks"][event["type"]]["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert [error.message for error in _validator(whole, schema).iter_errors(event)] == []

"""The catalogue as an OpenAPI 3.1 document: one form body, query or path per endpoint, and all of its responses.

Generated from the rows that the parser reads: names, formats, needs and notes. Responses are in
:mod:`gateway.catalogue.openapi_responses`. Source: Part A, Endpoints; rulings D1, D11, D13, D15, D16.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from gateway.catalogue import iso
from gateway.catalogue import openapi_responses as answers
from gateway.catalogue.endpoints import ENDPOINTS, Endpoint
from gateway.catalogue.openapi_webhooks import WEBHOOK_SCHEMAS, build_webhooks
from gateway.catalogue.rules import ParameterRule
from gateway.catalogue.structure import Demand, Need, Param, Structure
from gateway.core import money

JsonObject = dict[str, Any]

FORM_MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
API_VERSION: Final = "1"
ID_SCHEMA: Final = {"type": "string", "pattern": "^[0-9a-zA-Z]{32}$"}
PRINTABLE_TEXT_PATTERN: Final = "^[^\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069]*$"

_NEEDS: Final = {Need.REQUIRED: "Required", Need.CONDITIONAL: "Conditional", Need.OPTIONAL: "Optional"}
_TAGS: Final = (
    ("Payments", "Pay, authorise, credit; capture, refund and reverse."),
    (answers.CHECKOUTS_TAG, "Payments that the shopper makes in the hosted widget."),
    (answers.PAYMENT_LINKS_TAG, "Addresses at which shoppers pay, for merchants without a page of their own."),
    (answers.QUERIES_TAG, "Find transactions again; what was settled."),
    ("Test environment", "Tools that exist in the test environment only."),
    ("Service", "The tables of this gateway, and its health."),
)
_TEST: Final = "Test environment"
_ABOUT: Final = (
    "Parameters are sent as form fields in UTF-8: dotted names (`customer.givenName`), indexes from 0 "
    "(`cart.items[0].name`), bracket keys for maps (`customParameters[name]`). An empty value counts as not sent. "
    "Answers are JSON and may gain fields at any time: ignore what you do not know."
)

_FORM: Final = {
    "paymentBrand": "VISA",
    "card.number": "4200000000000000",
    "card.holder": "Jane Jones",
    "card.expiryMonth": "05",
    "card.expiryYear": "2034",
    "card.cvv": "123",
}
REQUEST_EXAMPLES: Final[Mapping[str, Mapping[str, str]]] = {
    "payment": {
        "amount": "92.00",
        "currency": "EUR",
        "paymentBrand": "VISA",
        "paymentType": "DB",
        "card.number": "4200000000000000",
        "card.holder": "Jane Jones",
        "card.expiryMonth": "05",
        "card.expiryYear": "2034",
        "card.cvv": "123",
    },
    "checkout": {
        "amount": "92.00",
        "currency": "EUR",
        "paymentType": "DB",
        "merchantTransactionId": "order-4711",
        "shopperResultUrl": "https://shop.example/result",
        "integrity": "true",
    },
    "payment-link": {
        "amount": "92.00",
        "currency": "EUR",
        "paymentType": "DB",
        "merchantTransactionId": "order-4711",
        "link.description": "Deposit for your stay",
    },
    "deactivate-payment-link": {},
    "update-checkout": {"amount": "80.00"},
    "pay-checkout": _FORM,
    "store-checkout": _FORM,
    "follow-up": {"paymentType": "RF", "amount": "10.00", "currency": "EUR"},
    "three-d-secure": {
        "amount": "92.00",
        "currency": "EUR",
        "paymentBrand": "VISA",
        "card.number": "4200000000000091",
        "card.holder": "Jane Jones",
        "card.expiryMonth": "05",
        "card.expiryYear": "2034",
        "billing.street1": "12 Main Street",
        "billing.city": "Berlin",
        "billing.postcode": "10115",
        "billing.country": "DE",
        "customer.browser.acceptHeader": "text/html",
        "customer.browser.language": "en-GB",
        "customer.browser.screenHeight": "1080",
        "customer.browser.screenWidth": "1920",
        "customer.browser.timezone": "-60",
        "customer.browser.userAgent": "Mozilla/5.0",
        "customer.browser.javaEnabled": "false",
        "shopperResultUrl": "https://shop.example/result",
    },
    "registration": {
        "paymentBrand": "VISA",
        "card.number": "4200000000000000",
        "card.holder": "Jane Jones",
        "card.expiryMonth": "05",
        "card.expiryYear": "2034",
    },
    "update-registration": {"card.expiryMonth": "11", "card.expiryYear": "2036"},
    "extend-registration": {},
    "one-click": {"amount": "92.00", "currency": "EUR", "paymentType": "DB"},
    "schedule": {
        "registrationId": "8a829449515d198b01517d5601df5584",
        "amount": "9.90",
        "currency": "EUR",
        "paymentType": "DB",
        "job.name": "Monthly plan",
        "job.month": "*",
        "job.dayOfMonth": "1",
        "job.hour": "6",
        "job.startDate": "2035-01-01 00:00:00",
        "job.noticeUnit": "MONTH",
        "job.noticeNumber": "1",
        "job.noticeCallable": "ANYTIME",
    },
    "reschedule": {"amount": "12.90", "currency": "EUR"},
    "deschedule": {},
    "move-clock": {"advance": "86400"},
    "make-wallet-token": {"wallet": "wallet1", "amount": "92.00", "currency": "EUR"},
    "change-network-token": {"event": "SUSPENDED"},
    "decide-transfer": {"outcome": "arrived"},
    "open-inspector": {"mode": "signed"},
}
"""A working request for each POST, without entityId; the docs pages show the same."""


def build_openapi(base_url: str, environment: str) -> JsonObject:
    """The whole document. ``environment``: ``test`` or ``live``; live leaves the test endpoints out."""
    live = environment == "live"
    paths: dict[str, JsonObject] = {}
    for endpoint in ENDPOINTS:
        if not (live and endpoint.test_only):
            paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    for path, item in answers.PUBLIC_PATHS.items():
        paths[path] = dict(item)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tollhouse payment gateway",
            "version": API_VERSION,
            "summary": "Payments by card: pay, capture, refund, reverse, read.",
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_url, "description": f"The {environment} environment"}],
        "externalDocs": {"url": f"{base_url}/docs/", "description": "Guides and the parameter reference"},
        "tags": [{"name": name, "description": about} for name, about in _TAGS if not (live and name == _TEST)],
        "security": [{"bearer": []}],
        "paths": paths,
        "webhooks": build_webhooks(),
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The access token of the back office: Authorization: Bearer <token>.",
                }
            },
            "schemas": {
                "Currency": {"type": "string", "description": "ISO 4217.", "enum": sorted(money.CURRENCY_CODES)},
                "Country": {"type": "string", "description": "ISO 3166-1 alpha-2.", "enum": sorted(iso.COUNTRIES_2)},
                "Country3": {"type": "string", "description": "ISO 3166-1 alpha-3.", "enum": sorted(iso.COUNTRIES_3)},
                **answers.RESPONSE_SCHEMAS,
                **WEBHOOK_SCHEMAS,
            },
            "responses": dict(answers.ERROR_RESPONSES),
            "headers": dict(answers.RESPONSE_HEADERS),
        },
    }


def _operation(endpoint: Endpoint) -> JsonObject:
    posts = endpoint.method == "POST"
    payments = endpoint.scope != "test"
    operation: JsonObject = {
        "operationId": endpoint.name,
        "summary": endpoint.title,
        "description": _with_conditions(endpoint.about, list_endpoint_rules(endpoint)),
        "tags": [_tag(endpoint)],
    }
    parameters = [_path_id(endpoint)] if "{id}" in endpoint.path else []
    if posts:
        if payments and endpoint.keyed:
            parameters.append(_IDEMPOTENCY_KEY)
        operation["requestBody"] = {"required": True, "content": {FORM_MEDIA_TYPE: _form(endpoint)}}
    else:
        parameters += [_query(structure, row) for structure in endpoint.structures for row in structure.rows]
    if parameters:
        operation["parameters"] = parameters
    operation["responses"] = answers.build_responses(endpoint)
    return operation


_IDEMPOTENCY_KEY: Final[JsonObject] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "The same key with the same body is made once and answered once, for 24 hours.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}


def _tag(endpoint: Endpoint) -> str:
    if endpoint.scope == "test":
        return _TEST
    if endpoint.path.startswith("/v1/paymentLinks"):
        return answers.PAYMENT_LINKS_TAG
    if endpoint.operation in ("query", "report"):
        return answers.QUERIES_TAG
    return answers.CHECKOUTS_TAG if endpoint.path.startswith("/v1/checkouts") else _TAGS[0][0]


def _path_id(endpoint: Endpoint) -> JsonObject:
    if _tag(endpoint) == answers.CHECKOUTS_TAG:
        return answers.CHECKOUT_ID_PARAMETER
    if _tag(endpoint) == answers.PAYMENT_LINKS_TAG:
        return answers.LINK_ID_PARAMETER
    what = "settlement" if endpoint.operation == "report" else "payment"
    return {
        "name": "id",
        "in": "path",
        "required": True,
        "schema": ID_SCHEMA,
        "description": f"The {what}'s id, 32 letters and digits.",
    }


def _query(structure: Structure, row: Param) -> JsonObject:
    return {
        "name": structure.full(row.name),
        "in": "query",
        "required": is_always_required(structure, row),
        "description": describe_parameter(row),
        "schema": _value(row),
        "example": row.format.example,
    }


def _form(endpoint: Endpoint) -> JsonObject:
    properties: JsonObject = {}
    patterns: JsonObject = {}
    for structure in endpoint.structures:
        for row in structure.rows:
            name = structure.full(row.name)
            schema = _property(structure, row)
            properties[example_name(structure, row)] = schema
            if row.key or "[n]" in name:
                patterns[name_pattern(structure, row)] = _value(row)
    body: JsonObject = {
        "type": "object",
        "properties": properties,
        "required": [
            structure.full(row.name)
            for structure in endpoint.structures
            for row in structure.rows
            if is_always_required(structure, row)
        ],
    }
    if patterns:
        body["patternProperties"] = patterns
    content: JsonObject = {"schema": body}
    if (fields := REQUEST_EXAMPLES.get(endpoint.name)) is not None:
        entity = next(row.format.example for row in endpoint.structures[0].rows)
        content["example"] = {"entityId": entity, **fields}
    return content


def _property(structure: Structure, row: Param) -> JsonObject:
    schema: JsonObject = {**_value(row), "description": describe_parameter(row), "examples": [row.format.example]}
    if is_deprecated(structure, row):
        schema["deprecated"] = True
    if row.secret:
        schema["writeOnly"] = True
    schema["x-structure"] = structure.title
    return schema


def _value(row: Param) -> JsonObject:
    """The schema of one value. Free text includes what every format refuses: control characters (D22)."""
    schema = dict(row.format.schema)
    if schema.get("type") == "string" and not {"pattern", "enum", "format"} & schema.keys():
        schema["pattern"] = PRINTABLE_TEXT_PATTERN
    return schema


def example_name(structure: Structure, row: Param) -> str:
    """The name as it may be sent: with the first index, and the key's example."""
    name = structure.full(row.base if row.key else row.name).replace("[n]", "[0]")
    return f"{name}[{row.key.example}]" if row.key else name


def name_pattern(structure: Structure, row: Param) -> str:
    """A regular expression for all indexes and keys of one row."""
    more_digits = len(str(structure.max_items - 1)) - 1
    index = rf"\[(?:0|[1-9][0-9]{{0,{more_digits}}})\]"
    name = re.escape(structure.full(row.base if row.key else row.name)).replace(re.escape("[n]"), index)
    return f"^{name}\\[{row.key.pattern}\\]$" if row.key else f"^{name}$"


def is_always_required(structure: Structure, row: Param) -> bool:
    """True if the row is required whatever else is sent."""
    return structure.demand is Demand.ALWAYS and row.need is Need.REQUIRED


def is_deprecated(structure: Structure, row: Param) -> bool:
    """Whether the specification marks the parameter, or its whole structure, as deprecated."""
    return row.deprecated or "(deprecated)" in structure.title


def describe_parameter(row: Param) -> str:
    """Need, the spec's format, what is accepted besides, the default and the note, on one line.

    A default is given in words only: generated clients send a schema's ``default``, and then one row of each
    structure would be in every payment, a job's times for example.
    """
    words = f"{_NEEDS[row.need]}. Format: {row.format.words}."
    default = f"Default: {row.default}." if row.default else ""
    return " ".join(filter(None, (words, row.format.taken_too, default, row.note)))


def list_endpoint_rules(endpoint: Endpoint) -> Iterator[str]:
    """Every condition of an endpoint as a sentence, with full parameter names."""
    for structure in endpoint.structures:
        for rule in structure.rules:
            yield render_rule(structure, rule)
    for rule in endpoint.rules:
        yield _sentence(rule.text)


def render_rule(structure: Structure, rule: ParameterRule) -> str:
    """A structure's rule with full names: `houseNumber2 requires houseNumber1` → `billing.houseNumber2 requires …`."""
    text = rule.text
    if structure.prefix:
        names = "|".join(re.escape(name) for name in sorted(rule.names, key=len, reverse=True))
        text = re.sub(rf"(?<![\w.])(?:{names})(?![\w.])", lambda found: structure.full(found[0]), text)
    return _sentence(text)


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _with_conditions(about: str, rules: Iterable[str]) -> str:
    lines: Sequence[str] = [f"- {rule}" for rule in rules]
    return "\n".join([about, "", "Conditions:", "", *lines]) if lines else about

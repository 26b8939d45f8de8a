"""Reads the OpenAPI document into types: what requests take, and what answers hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.core.result_codes import FAMILY_PATTERNS, ResultFamily

_METHODS: Final = ("get", "post", "delete")
_FORM: Final = "application/x-www-form-urlencoded"
_REFERENCE: Final = "#/components/schemas/"
_MAX_ENUM_VALUES: Final = 40
"""Longer lists of values (currencies, countries) are texts."""
_NOT_FOR_SERVERS: Final = frozenset({"pay-checkout", "store-checkout", "release-parts", "wallet-session"})
"""Operations that the payment form calls, not a merchant's server."""
_NOT_MODELLED: Final = frozenset(
    {"Submitted", "CheckoutState", "WalletSession", "WidgetConfig", "Integrity", "Health", "Throttled", "Error"}
    | {"WebhookPayload", "PaymentEvent", "RegistrationEvent", "ScheduleEvent", "RiskEvent", "AlertEvent"}
)
"""Answers to the payment form, errors, and events, which the packages have in their own words."""
_AMOUNT: Final = re.compile(r"\\\.\[0-9\]\{2(?:,10)?\}\)?\??\)?\$$")
_WHOLE_NUMBER: Final = re.compile(r"\^\[0-9\]\{1,[0-9]+\}\$")
_OUTCOMES: Final[Mapping[ResultFamily, str]] = {
    ResultFamily.SUCCESS: "approved",
    ResultFamily.REVIEW: "review",
    ResultFamily.PENDING: "pending",
    ResultFamily.PENDING_LONG: "pending",
    ResultFamily.CHARGEBACK: "chargeback",
}


@dataclass(frozen=True, slots=True)
class FieldType:
    """The type of a field. ``kind``: text, amount, whole, bool, enum (of ``values``), model (``name``), map of texts,
    json (anything), or any of these in a list (``listed``)."""

    kind: str
    name: str = ""
    values: tuple[str, ...] = ()
    listed: bool = False


@dataclass(frozen=True, slots=True)
class ModelField:
    """A field of a model; ``about``: a sentence of the document."""

    name: str
    type: FieldType
    required: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True)
class ApiModel:
    """An object: parameters of a request, or an answer. ``answer``: it has a result of its own."""

    name: str
    about: str
    fields: tuple[ModelField, ...]
    answer: bool = False


def list_outcomes() -> list[tuple[str, str]]:
    """(outcome, pattern of result codes) in matching order; all other families are declines."""
    return [(_OUTCOMES.get(family, "declined"), pattern.pattern) for family, pattern in FAMILY_PATTERNS]


def list_answer_models(document: Mapping[str, Any]) -> list[ApiModel]:
    """The objects of answers, inner ones before those that hold them."""
    models: dict[str, ApiModel] = {}
    schemas = document["components"]["schemas"]
    for name, schema in schemas.items():
        if name not in _NOT_MODELLED and schema.get("properties"):
            _add_answer_model(name, schema, models)
    order: dict[str, ApiModel] = {}
    for name in models:
        _order(name, models, order)
    return list(order.values())


def _order(name: str, models: Mapping[str, ApiModel], order: dict[str, ApiModel]) -> None:
    """Add a model behind those it holds."""
    for one in models[name].fields:
        if one.type.kind == "model" and one.type.name not in order:
            _order(one.type.name, models, order)
    order[name] = models[name]


def _add_answer_model(name: str, schema: Mapping[str, Any], models: dict[str, ApiModel]) -> None:
    required = schema.get("required", ())
    fields = tuple(
        ModelField(key, _answer_type(name, key, one, models), key in required, one.get("description", ""))
        for key, one in schema["properties"].items()
    )
    models[name] = ApiModel(name, schema.get("description", ""), fields, answer="result" in schema["properties"])


def _answer_type(owner: str, key: str, schema: Mapping[str, Any], models: dict[str, ApiModel]) -> FieldType:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REFERENCE)
        return FieldType("text") if name in ("Currency", "Country", "Country3") else FieldType("model", name)
    declared = schema.get("type")
    kind = next(one for one in declared if one != "null") if isinstance(declared, list) else declared
    if kind == "array":
        inner = _answer_type(owner, key, schema["items"], models)
        return FieldType(inner.kind, inner.name, inner.values, listed=True)
    if kind == "object" and schema.get("properties"):
        name = owner + key[:1].upper() + key[1:]
        _add_answer_model(name, schema, models)
        return FieldType("model", name)
    if kind in ("integer", "boolean"):
        return FieldType({"integer": "whole", "boolean": "bool"}[kind])
    return FieldType("amount" if _is_amount(schema) else "text") if kind == "string" else FieldType("json")


def _is_amount(schema: Mapping[str, Any]) -> bool:
    return bool(_AMOUNT.search(schema.get("pattern", "")))


@dataclass(slots=True)
class _Node:
    """A parameter, or a structure of parameters. ``listed``: it has indexes; ``mapped``: its keys are the caller's."""

    children: dict[str, _Node] = field(default_factory=dict)
    schema: Mapping[str, Any] = field(default_factory=dict)
    required: bool = False
    listed: bool = False
    mapped: bool = False


def list_operations(document: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """operationId, form schema and query parameters by name, of what a merchant's server may call."""
    for methods in document["paths"].values():
        for method in _METHODS:
            found = methods.get(method)
            if not found or "entityId" not in str(found) or found["operationId"] in _NOT_FOR_SERVERS:
                continue
            form = found.get("requestBody", {}).get("content", {}).get(_FORM, {}).get("schema", {})
            queried = {row["name"]: row for row in found.get("parameters", ()) if row.get("in") == "query"}
            yield found["operationId"], form, queried


def list_parameter_models(document: Mapping[str, Any]) -> list[ApiModel]:
    """The parameters of each operation as nested objects; structures that are the same have one name."""
    models: dict[str, ApiModel] = {}
    for operation, form, queried in list_operations(document):
        root = _Node()
        required = set(form.get("required", ())) | {name for name, row in queried.items() if row["required"]}
        rows = {**form.get("properties", {}), **{name: row["schema"] | row for name, row in queried.items()}}
        if rows.keys() == {"entityId"}:
            continue
        for name, schema in rows.items():
            _plant(root, name, schema, required=name in required and name != "entityId")
        words = "".join(word.capitalize() for word in operation.split("-"))
        _name_parameters(root, [words], models)
    return list(models.values())


def list_map_parameters(document: Mapping[str, Any]) -> list[str]:
    """Parameters whose keys the merchant chooses: customParameters[…]."""
    names = {name for _operation, form, _queried in list_operations(document) for name in form.get("properties", {})}
    return sorted({found[1] for name in names if (found := re.fullmatch(r"([A-Za-z0-9.]+)\[[^0-9].*\]", name))})


def _plant(root: _Node, name: str, schema: Mapping[str, Any], *, required: bool) -> None:
    node = root
    for part in re.findall(r"[^.\[\]]+(?:\[[^\]]*\])?", name.partition("[")[0] + _rest(name)):
        word, _, index = part.partition("[")
        node = node.children.setdefault(word, _Node())
        node.listed |= index == "0]"
        node.mapped |= bool(index) and index != "0]"
    node.schema, node.required = schema, required


def _rest(name: str) -> str:
    """The rest of a name from the first bracket on; a map's key may have dots."""
    head, bracket, tail = name.partition("[")
    return f"{bracket}{tail}" if head != name else ""


def _name_parameters(node: _Node, path: list[str], models: dict[str, ApiModel]) -> str:
    fields = []
    for key, child in node.children.items():
        if child.mapped:
            found = FieldType("map")
        elif child.children:
            inner = _name_parameters(child, [*path, key[:1].upper() + key[1:]], models)
            found = FieldType("model", inner, listed=child.listed)
        else:
            found = _parameter_type(child.schema)
        about = "" if child.children or child.mapped else child.schema.get("description", "")
        fields.append(ModelField(key, found, child.required, about))
    made = tuple(fields)
    names = [f"{path[0]}Request"]
    if len(path) > 1:
        names = ["".join(path[first:]) + "Parameters" for first in range(len(path) - 1, 0, -1)]
        names.append(f"{path[0]}Request{names[-1]}")
    for name in names:
        known = models.setdefault(name, ApiModel(name, "", made))
        if _shape(known.fields) == _shape(made):
            return name
    raise ValueError(f"no name is free for the parameters of {'.'.join(path)}")


def _shape(fields: tuple[ModelField, ...]) -> list[tuple[str, FieldType, bool]]:
    """What makes two structures the same: all but their descriptions."""
    return [(one.name, one.type, one.required) for one in fields]


def _parameter_type(schema: Mapping[str, Any]) -> FieldType:
    values = tuple(schema.get("enum", ()))
    pattern = schema.get("pattern", "")
    if values == ("true", "false"):
        return FieldType("bool")
    if values and len(values) <= _MAX_ENUM_VALUES:
        return FieldType("enum", values=values)
    if _is_amount(schema):
        return FieldType("amount")
    return FieldType("whole" if _WHOLE_NUMBER.fullmatch(pattern) else "text")

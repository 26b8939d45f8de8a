"""The sample requests as code: Python, JavaScript and PHP with this gateway's client packages, and plain HTTP.

Made of the samples' data (:mod:`gateway.portal.samples`). Parameters are nested as the packages take them; the reader's
variables are those of the environment, ``os.environ["TOKEN"]``, as a curl command has ``$TOKEN``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote, urlsplit

from gateway.catalogue.endpoints import ENDPOINTS, Endpoint
from gateway.core.curl import ENTITY_VARIABLE
from gateway.portal.samples import ApiSample

SAMPLE_LANGUAGES: Final[Mapping[str, str]] = MappingProxyType(
    {"curl": "curl", "python": "Python", "javascript": "JavaScript", "php": "PHP", "http": "HTTP"}
)
"""The languages of a sample and their names on its tabs."""
MAX_LINE_CHARS: Final = 72
"""Longer calls and maps of the samples are broken into lines."""
ID_CHARS: Final = 32
"""Length of every id; a body's Content-Length counts the variables with it."""

_FIELD_PART: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_UNQUOTED: Final = "-._~/:,$"
"""What stays as it is in the query or the body of a plain request; $ begins a variable."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable of the reader's environment, without its ``$``."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Idiom:
    """How a language names a variable of the environment (``before`` and ``after`` it) and quotes a text."""

    before: str
    after: str = ""
    quote: str = ""


IDIOMS: Final[Mapping[str, Idiom]] = MappingProxyType(
    {
        "curl": Idiom(before="$"),
        "python": Idiom(before='os.environ["', after='"]', quote='"'),
        "javascript": Idiom(before="process.env.", quote='"'),
        "php": Idiom(before="getenv('", after="')", quote="'"),
        "http": Idiom(before="$"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Method:
    """A method of the packages, by its name in Python. ``result``: the variable for its answer. ``positional``: fields
    that it takes by position; ``sends``: fields that it sends by itself; ``prints``: it walks over pages of rows, and
    the sample prints these fields of each (none: the row)."""

    subject: str
    name: str
    result: str
    positional: tuple[str, ...] = ()
    sends: frozenset[str] = frozenset()
    prints: tuple[str, ...] | None = None
    is_sum: bool = False
    """The amount and the currency are positions in PHP."""


def _build_methods(subject: str, result: str, **names: str) -> dict[str, _Method]:
    return {
        endpoint.replace("_", "-"): _Method(subject=subject, name=name, result=result)
        for endpoint, name in names.items()
    }


_PAGE: Final = frozenset({"pageNo"})
_METHODS: Final[Mapping[str, _Method]] = MappingProxyType(
    {
        **_build_methods("payments", "payment", payment="create", follow_up="follow_up", status="get"),
        **_build_methods("checkouts", "checkout", checkout="create", update_checkout="update"),
        **_build_methods("checkouts", "payment", checkout_status="get_payment"),
        **_build_methods("checkouts", "registration", checkout_registration="get_registration"),
        **_build_methods("payment_links", "link", payment_link="create", read_payment_link="get"),
        **_build_methods("payment_links", "link", delete_payment_link="deactivate"),
        **_build_methods("payment_links", "links", payment_links="list"),
        **_build_methods(
            "registrations",
            "registration",
            registration="create",
            read_registration="get",
            update_registration="update",
            extend_registration="extend",
            delete_registration="delete",
        ),
        **_build_methods("registrations", "payment", one_click="pay"),
        **_build_methods(
            "schedules",
            "schedule",
            schedule="create",
            read_schedule="get",
            reschedule="reschedule",
            deschedule="deschedule",
        ),
        **_build_methods("authentications", "authentication", three_d_secure="create", read_three_d_secure="get"),
        **_build_methods("transactions", "found", query_record="get"),
        "query-records": _Method(
            subject="transactions",
            name="iterate",
            result="record",
            sends=_PAGE,
            prints=("id", "amount", "currency"),
        ),
        "aggregations-page": _Method(
            subject="reports", name="settlements", result="settlement", sends=_PAGE, prints=("id", "amount", "currency")
        ),
        "aggregation-page": _Method(
            subject="reports", name="settlement_records", result="record", sends=_PAGE, prints=()
        ),
        **_build_methods("test", "clock", read_clock="read_clock", reset_clock="reset_clock"),
        "move-clock": _Method(subject="test", name="advance_clock", result="clock", positional=("advance",)),
        "acquirer-messages": _Method(
            subject="test", name="list_acquirer_messages", result="messages", positional=("id",)
        ),
        "mails": _Method(subject="test", name="list_mails", result="mails", positional=("id",)),
        "decide-transfer": _Method(subject="test", name="decide_transfer", result="payment", positional=("outcome",)),
    }
)
"""The packages' method for an endpoint. Every other endpoint is asked by ``request``."""
_FOLLOW_UPS: Final[Mapping[str, _Method]] = MappingProxyType(
    {
        code: _Method(
            subject="payments", name=name, result=result, sends=frozenset({"paymentType"}), is_sum=name != "reverse"
        )
        for code, name, result in (
            ("CP", "capture", "capture"),
            ("RF", "refund", "refund"),
            ("RV", "reverse", "reversal"),
        )
    }
)
_MODELS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "pay-checkout": "Payment",
        "store-checkout": "Registration",
        "deactivate-payment-link": "PaymentLink",
        "delete-schedule": "Schedule",
        "query": "PaymentList",
        "query-one": "Payment",
        "settlements": "Settlements",
        "approvals": "ApprovalRates",
        "approvals-waterfall": "ApprovalWaterfalls",
        "approvals-gains": "ApprovalGains",
        "card-facts": "CardFactsAnswer",
        "settlement": "SettlementRecords",
        "aggregations": "Settlements",
        "aggregation": "SettlementRecords",
    }
)
"""The model of the answer, for endpoints that have no method."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """A sample as a call. ``method`` None: of ``request``, with ``http``, ``path`` and ``model``."""

    method: _Method | None
    result: str
    fields: Mapping[str, Any]
    positions: tuple[Any, ...] = ()
    key: str = ""
    http: str = ""
    path: str = ""
    model: str = ""
    fails: bool = False
    """The package raises an error: the request is refused."""
    has_id: bool = False


def list_sample_languages(sample: ApiSample) -> tuple[str, ...]:
    """The languages that ``sample`` is shown in. A package refuses an empty token before anything is sent, so a request
    without one is shown as curl and HTTP only."""
    return tuple(SAMPLE_LANGUAGES) if sample.token is not None else ("curl", "http")


def format_sample(sample: ApiSample, language: str, base_url: str) -> str:
    """``sample`` in one of its languages, sent to the gateway at ``base_url``."""
    return _WRITERS[language](sample, base_url)


def nest_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted names as nested maps and lists, as the packages take them: ``cart.items[0].name``,
    ``customParameters[order.kind]``. List items stand in their order, without gaps."""
    nested: dict[str, Any] = {}
    for name, value in fields.items():
        keys = [found[1] if found[1] is not None else found[2] for found in _FIELD_PART.finditer(name)]
        node = nested
        for key in keys[:-1]:
            node = node.setdefault(key, {})
        node[keys[-1]] = value
    found: dict[str, Any] = _list_items(nested)
    return found


def _list_items(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    children = {key: _list_items(child) for key, child in node.items()}
    return list(children.values()) if children and all(key.isdigit() for key in children) else children


# --- the call ---------------------------------------------------------------------------------------------------------


def _build_call(sample: ApiSample) -> _Call:
    endpoint = find_sample_endpoint(sample).name
    method = _find_method(endpoint, sample)
    fields = {name: _read_value(value) for name, value in sample.fields.items()}
    answered = sample.status < 400 or (sample.status == 400 and "id" in sample.answer)
    common: dict[str, Any] = {
        "fails": not answered,
        "has_id": "id" in sample.answer,
        "key": sample.headers.get("Idempotency-Key", ""),
    }
    if method is None:
        return _Call(
            method=None,
            result="answer",
            fields=nest_fields(fields),
            http=sample.method,
            path=sample.path,
            model=_MODELS[endpoint],
            **common,
        )
    ids = [_read_value(part) for part in sample.path.split("/") if part.startswith("$") or len(part) == ID_CHARS]
    rest = {name: value for name, value in fields.items() if name not in {*method.positional, *method.sends}}
    return _Call(
        method=method,
        result=method.result,
        positions=(*ids, *(_read_number(fields[name]) for name in method.positional)),
        fields=nest_fields(rest),
        **common,
    )


def find_sample_endpoint(sample: ApiSample) -> Endpoint:
    """The endpoint of the catalogue that ``sample`` calls."""
    for endpoint in ENDPOINTS:
        pattern = re.escape(endpoint.path).replace(r"\{id\}", r"(?:\$[A-Z_]+|[0-9a-f]{32})")
        if endpoint.method == sample.method and re.fullmatch(pattern, sample.path):
            return endpoint
    raise LookupError(f"no endpoint for the sample {sample.name}: {sample.method} {sample.path}")


def _find_method(endpoint: str, sample: ApiSample) -> _Method | None:
    method = _FOLLOW_UPS.get(sample.fields.get("paymentType", "")) if endpoint == "follow-up" else None
    if method is not None:
        taken = {"paymentType", "amount", "currency"} if method.is_sum else {"paymentType"}
        if set(sample.fields) == taken:
            return method
    return _METHODS.get(endpoint)


def _read_value(text: str) -> Any:
    if text.startswith("$"):
        return Variable(text[1:])
    return text == "true" if text in ("true", "false") else text


def _read_number(value: Any) -> Any:
    return int(value) if isinstance(value, str) and value.isdigit() else value


# --- values in a language ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Style:
    """How a language writes values. ``pair``: a key and its value in a map."""

    idiom: Idiom
    step: str
    map_brackets: tuple[str, str]
    booleans: tuple[str, str] = ("false", "true")
    pair: Callable[[str, str], str]


def _quote_double(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _quote_single(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _write_text(text: str, style: _Style) -> str:
    return _quote_single(text) if style.idiom.quote == "'" else _quote_double(text)


def _pair_javascript(key: str, value: str) -> str:
    return f"{key if key.isidentifier() else _quote_double(key)}: {value}"


_PYTHON: Final = _Style(
    idiom=IDIOMS["python"],
    step="    ",
    map_brackets=("{", "}"),
    booleans=("False", "True"),
    pair=lambda key, value: f"{_quote_double(key)}: {value}",
)
_JAVASCRIPT: Final = _Style(idiom=IDIOMS["javascript"], step="  ", map_brackets=("{ ", " }"), pair=_pair_javascript)
_PHP: Final = _Style(
    idiom=IDIOMS["php"],
    step="    ",
    map_brackets=("[", "]"),
    pair=lambda key, value: f"{_quote_single(key)} => {value}",
)


def _write_value(value: Any, style: _Style, indent: str = "", room: int = MAX_LINE_CHARS) -> str:
    if isinstance(value, Variable):
        return f"{style.idiom.before}{value.name}{style.idiom.after}"
    if isinstance(value, bool):
        return style.booleans[value]
    if isinstance(value, Mapping):
        inner = indent + style.step
        parts = [style.pair(key, _write_value(child, style, inner)) for key, child in value.items()]
        return _join_parts(parts, style.map_brackets, style, indent, room=room)
    if isinstance(value, list):
        parts = [_write_value(child, style, indent + style.step) for child in value]
        return _join_parts(parts, ("[", "]"), style, indent)
    return _write_text(value, style) if isinstance(value, str) else str(value)


def _join_parts(
    parts: list[str],
    brackets: tuple[str, str],
    style: _Style,
    indent: str,
    head: str = "",
    room: int = MAX_LINE_CHARS,
) -> str:
    """``head`` and the parts in brackets: on one line if they fit into ``room`` characters, else each on its own."""
    opening, closing = brackets
    line = ", ".join(parts)
    if not parts:
        return f"{head}{opening.strip()}{closing.strip()}"
    if "\n" not in line and len(indent + head + line) <= room:
        return f"{head}{opening}{line}{closing}"
    lines = "".join(f"\n{indent}{style.step}{part}," for part in parts)
    return f"{head}{opening.strip()}{lines}\n{indent}{closing.strip()}"


def _write_call(
    head: str,
    before: list[str],
    last: Mapping[str, Any],
    after: list[str],
    style: _Style,
    indent: str,
    *,
    keep: bool = False,
) -> str:
    """A call with a map among its arguments, left out when empty, unless ``keep``. If it does not fit on a line, the
    map is broken."""

    def write(room: int) -> str:
        middle = [_write_value(last, style, indent, room)] if last or keep else []
        return f"{head}({', '.join([*before, *middle, *after])})"

    line = write(MAX_LINE_CHARS)
    return line if "\n" in line or len(indent + line) <= MAX_LINE_CHARS else write(0)


def _write_path(path: str, style: _Style, joint: str) -> str:
    """A path as an expression: ``"/v1/query/" + os.environ["PAYMENT_ID"]``."""
    parts = [_write_value(_read_value(part), style) for part in re.split(r"(\$[A-Z_]+)", path) if part]
    return joint.join(parts)


def _to_camel_case(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


# --- Python -----------------------------------------------------------------------------------------------------------


def _write_python(sample: ApiSample, base_url: str) -> str:
    call = _build_call(sample)
    names = ["ApiError"] * call.fails + ["Tollhouse"] + ["models"] * (call.method is None)
    token = _read_value(sample.token or "")
    opened = [_quote_double(base_url), f"token={_write_value(token, _PYTHON)}"]
    opened.append(f"entity_id={_write_value(_read_value(ENTITY_VARIABLE), _PYTHON)}")
    gateway = _join_parts(opened, ("(", ")"), _PYTHON, "", "gateway = Tollhouse")
    return f"import os\n\nfrom tollhouse import {', '.join(names)}\n\n{gateway}\n{_write_python_call(call)}"


def _write_python_call(call: _Call) -> str:
    indent = _PYTHON.step if call.fails else ""
    parts, target = _list_python_arguments(call, indent + _PYTHON.step)
    if call.method is not None and call.method.prints is not None:
        called = _join_parts(parts, ("(", ")"), _PYTHON, "", f"for {call.result} in {target}")
        printed = ", ".join(f"{call.result}.{name}" for name in call.method.prints) or call.result
        return f"{called}:\n{_PYTHON.step}print({printed})"
    if call.fails:
        called = _join_parts(parts, ("(", ")"), _PYTHON, indent, f"{indent}{target}")
        return f"try:\n{called}\nexcept ApiError as error:\n{indent}print(error)"
    called = _join_parts(parts, ("(", ")"), _PYTHON, "", f"{call.result} = {target}")
    return f"{called}\nprint({f'{call.result}.id, ' if call.has_id else ''}{call.result}.code)"


def _list_python_arguments(call: _Call, indent: str) -> tuple[list[str], str]:
    key = [f"idempotency_key={_quote_double(call.key)}"] if call.key else []
    if call.method is None:
        parts = [_quote_double(call.http), _write_path(call.path, _PYTHON, " + ")]
        parts += [_write_value(call.fields, _PYTHON, indent)] if call.fields else []
        return [*parts, f"answer=models.{call.model}"], "gateway.request"
    parts = [_write_value(one, _PYTHON) for one in call.positions]
    parts += [f"{name}={_write_value(value, _PYTHON, indent)}" for name, value in call.fields.items()]
    return parts + key, f"gateway.{call.method.subject}.{call.method.name}"


# --- JavaScript -------------------------------------------------------------------------------------------------------


def _write_javascript(sample: ApiSample, base_url: str) -> str:
    call = _build_call(sample)
    names = "ApiError, Tollhouse" if call.fails else "Tollhouse"
    opened = {"token": _read_value(sample.token or ""), "entityId": _read_value(ENTITY_VARIABLE)}
    gateway = _write_call("new Tollhouse", [_quote_double(base_url)], opened, [], _JAVASCRIPT, "")
    return (
        f'import {{ {names} }} from "@tollhouse/client";\n\nconst gateway = {gateway};\n{_write_javascript_call(call)}'
    )


def _write_javascript_call(call: _Call) -> str:
    indent = _JAVASCRIPT.step if call.fails else ""
    called = _build_javascript_call(call, indent)
    if call.method is not None and call.method.prints is not None:
        printed = ", ".join(f"{call.result}.{name}" for name in call.method.prints) or call.result
        return f"for await (const {call.result} of {called}) {{\n  console.log({printed});\n}}"
    if call.fails:
        caught = "  if (!(error instanceof ApiError)) throw error;\n  console.log(error.message);"
        return f"try {{\n  await {called};\n}} catch (error) {{\n{caught}\n}}"
    printed = f"{call.result}.id, " if call.has_id else ""
    return f"const {call.result} = await {called};\nconsole.log({printed}{call.result}.result.code);"


def _build_javascript_call(call: _Call, indent: str) -> str:
    parts = [_write_value(one, _JAVASCRIPT) for one in call.positions]
    head = "gateway.request"
    if call.method is None:
        parts = [_quote_double(call.http), _write_path(call.path, _JAVASCRIPT, " + ")]
    else:
        head = f"gateway.{_to_camel_case(call.method.subject)}.{_to_camel_case(call.method.name)}"
    key = [_write_value({"idempotencyKey": call.key}, _JAVASCRIPT)] if call.key else []
    return _write_call(head, parts, call.fields, key, _JAVASCRIPT, indent)


# --- PHP --------------------------------------------------------------------------------------------------------------


def _write_php(sample: ApiSample, base_url: str) -> str:
    call = _build_call(sample)
    uses = ["Client"] + ["Exception\\ApiException"] * call.fails
    uses += [f"Model\\{call.model}"] if call.method is None else []
    used = "".join(f"use Tollhouse\\{name};\n" for name in uses)
    opened = [_quote_single(base_url), f"token: {_write_value(_read_value(sample.token or ''), _PHP)}"]
    opened.append(f"entityId: {_write_value(_read_value(ENTITY_VARIABLE), _PHP)}")
    gateway = _join_parts(opened, ("(", ")"), _PHP, "", "$gateway = new Client")
    return f"<?php\n\nrequire 'vendor/autoload.php';\n\n{used}\n{gateway};\n{_write_php_call(call)}"


def _write_php_call(call: _Call) -> str:
    indent = _PHP.step if call.fails else ""
    called = _build_php_call(call, indent)
    result = f"${call.result}"
    if call.method is not None and call.method.prints is not None:
        fields = [f"{result}->{name}" for name in call.method.prints]
        printed = f"echo {', '.join(_space_out(fields))}, PHP_EOL;" if fields else f"print_r({result});"
        return f"foreach ({called} as {result}) {{\n{_PHP.step}{printed}\n}}"
    if call.fails:
        caught = f"{indent}echo $error->getMessage(), PHP_EOL;"
        return f"try {{\n{indent}{called};\n}} catch (ApiException $error) {{\n{caught}\n}}"
    printed = ", ".join(_space_out([f"{result}->id"] * call.has_id + [f"{result}->code()"]))
    return f"{result} = {called};\necho {printed}, PHP_EOL;"


def _space_out(parts: list[str]) -> list[str]:
    return [one for part in parts for one in (part, "' '")][:-1]


def _build_php_call(call: _Call, indent: str) -> str:
    key = [f"idempotencyKey: {_quote_single(call.key)}"] if call.key else []
    if call.method is None:
        parts = [_quote_single(call.http), _write_path(call.path, _PHP, " . ")]
        return _write_call("$gateway->request", parts, call.fields, [f"{call.model}::class"], _PHP, indent, keep=True)
    parts = [_write_value(one, _PHP) for one in call.positions]
    fields = call.fields
    if call.method.is_sum:
        parts += [_write_value(value, _PHP) for value in call.fields.values()]
        fields = {}
    head = f"$gateway->{_to_camel_case(call.method.subject)}->{_to_camel_case(call.method.name)}"
    return _write_call(head, parts, fields, key, _PHP, indent)


# --- HTTP -------------------------------------------------------------------------------------------------------------


def _write_http(sample: ApiSample, base_url: str) -> str:
    at = urlsplit(base_url)
    pairs = {"entityId": ENTITY_VARIABLE, **sample.fields}
    encoded = "&".join(f"{name}={quote(value, safe=_UNQUOTED)}" for name, value in pairs.items())
    target = at.path.rstrip("/") + sample.path
    headers = {"Host": at.netloc}
    if sample.token is not None:
        headers["Authorization"] = f"Bearer {sample.token}"
    headers |= sample.headers
    body = ""
    if sample.method == "POST":
        counted = re.sub(r"\$[A-Z_]+", "x" * ID_CHARS, encoded)
        headers |= {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": str(len(counted))}
        body = f"\n\n{encoded}"
    else:
        target += f"?{encoded}"
    lines = [f"{name}: {value}" for name, value in headers.items()]
    return "\n".join([f"{sample.method} {target} HTTP/1.1", *lines]) + body


_WRITERS: Final[Mapping[str, Callable[[ApiSample, str], str]]] = MappingProxyType(
    {
        "curl": ApiSample.curl,
        "python": _write_python,
        "javascript": _write_javascript,
        "php": _write_php,
        "http": _write_http,
    }
)

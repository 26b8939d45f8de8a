"""Renders the client packages' models as Python, TypeScript and PHP."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from config.clients.document import (
    ApiModel,
    FieldType,
    list_answer_models,
    list_map_parameters,
    list_outcomes,
    list_parameter_models,
)
from gateway.catalogue.openapi import build_openapi
from gateway.portal import pasted_request

GENERATED_NOTICE: Final = "Generated from the OpenAPI document by `make clients`. Do not edit."
_BASE_URL: Final = "https://gateway.example"
_PYTHON: Final = "python/src/tollhouse"
_PASTED_REQUEST: Final = Path(pasted_request.__file__)
_COPY_NOTICE: Final = "# A copy of gateway/portal/pasted_request.py, by `make clients`. Do not edit.\n"


def render_generated_files(root: Path) -> dict[str, str]:
    """Path below clients/ → content. ``root``: the folder clients/, for what is derived from handwritten files."""
    document = build_openapi(_BASE_URL, "test")
    answers, parameters = list_answer_models(document), list_parameter_models(document)
    maps = list_map_parameters(document)
    return {
        f"{_PYTHON}/models.py": _render_python_answers(answers),
        f"{_PYTHON}/parameters.py": _render_python_parameters(parameters),
        f"{_PYTHON}/_constants.py": _render_python_constants(maps),
        **_render_synchronous(root),
        f"{_PYTHON}/cli/_pasted_request.py": _COPY_NOTICE + _PASTED_REQUEST.read_text(encoding="utf-8"),
        "javascript/models.d.cts": _render_typescript(answers, parameters),
        "javascript/constants.cjs": _render_javascript_constants(maps),
        **{f"php/src/Model/{model.name}.php": _render_php_answer(model) for model in answers},
        "php/src/Constants.php": _render_php_constants(maps),
    }


# --- Python -------------------------------------------------------------------------------------------------------

_PYTHON_ANSWER: Final = {"text": "str", "amount": "Decimal", "whole": "int", "bool": "bool", "json": "Any"}
_PYTHON_PARAMETER: Final = {
    "text": "str",
    "amount": "Amount",
    "whole": "str | int",
    "bool": "bool",
    "map": "Mapping[str, str]",
}


def _render_python_answers(models: Sequence[ApiModel]) -> str:
    parts = [
        f'"""What the API answers. {GENERATED_NOTICE}"""\n\nfrom __future__ import annotations\n\n'
        "from collections.abc import Mapping\nfrom decimal import Decimal\nfrom typing import Any, ClassVar\n\n"
        "from tollhouse._model import Answer, Model\n"
    ]
    for model in models:
        parts.append(f"\n\nclass {model.name}({'Answer' if model.answer else 'Model'}):\n")
        parts.append(f'    """{model.about or model.name + "."}"""\n\n')
        for one in model.fields:
            parts.append(f"    {one.name}: {_python_answer_type(one.type, required=one.required)}\n")
        known = {one.name: one.type for one in model.fields if one.type.kind in ("amount", "model")}
        rows = [f'"{name}": {"Decimal" if found.kind == "amount" else found.name}' for name, found in known.items()]
        if rows:
            parts.append(f"\n    _TYPES: ClassVar[Mapping[str, Any]] = {{{', '.join(rows)}}}\n")
    return "".join(parts)


def _join(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _python_answer_type(found: FieldType, *, required: bool) -> str:
    written = _PYTHON_ANSWER.get(found.kind, found.name)
    if found.listed:
        written = f"list[{written}]"
    return written if required or written == "Any" else f"{written} | None"


def _render_python_parameters(models: Sequence[ApiModel]) -> str:
    parts = [
        f'"""What requests take: nested, under the names of the API. {GENERATED_NOTICE}"""\n\n'
        "from __future__ import annotations\n\nfrom collections.abc import Mapping, Sequence\n"
        "from decimal import Decimal\nfrom typing import Literal, Required, TypedDict\n\n"
        'Amount = Decimal | str\n"""A sum of money: Decimal("92.00") or "92.00". A float is refused."""\n'
    ]
    for model in models:
        rows = [(one.name, _python_parameter_type(one.type, required=one.required)) for one in model.fields]
        if any(keyword.iskeyword(name) for name, _ in rows):
            inner = "".join(f'    "{name}": {written},\n' for name, written in rows)
            parts.append(f'\n\n{model.name} = TypedDict("{model.name}", {{\n{inner}}}, total=False)\n')
        else:
            parts.append(f"\n\nclass {model.name}(TypedDict, total=False):\n")
            parts += [f"    {name}: {written}\n" for name, written in rows]
    return "".join(parts)


def _python_parameter_type(found: FieldType, *, required: bool) -> str:
    if found.kind == "enum":
        written = f"Literal[{', '.join(json.dumps(value) for value in found.values)}]"
    else:
        written = _PYTHON_PARAMETER.get(found.kind, found.name)
    if found.listed:
        written = f"Sequence[{written}]"
    return f"Required[{written}]" if required else written


def _render_python_constants(maps: Sequence[str]) -> str:
    outcomes = "".join(f'    ("{name}", re.compile(r"{pattern}")),\n' for name, pattern in list_outcomes())
    return (
        f'"""Tables of the API. {GENERATED_NOTICE}"""\n\nimport re\n\n'
        f"MAP_PARAMETERS = frozenset({{{_join(maps)}}})\n"
        f"OUTCOME_PATTERNS = (\n{outcomes})\n"
    )


# The synchronous client is the asynchronous one without waiting.
_UNASYNC: Final = (
    (r'"""The asynchronous', '"""The synchronous'),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\bAsyncTollhouse\b", "Tollhouse"),
    (r"\bAsyncClient\b", "Client"),
    (r"\bAsyncBaseTransport\b", "BaseTransport"),
    (r"\b__aenter__\b", "__enter__"),
    (r"\b__aexit__\b", "__exit__"),
    (r"\baclose\b", "close"),
    (r"\baiter_bytes\b", "iter_bytes"),
    (r"\basyncio\.sleep\b", "time.sleep"),
    (r"^import asyncio$", "import time"),
    (r"\btollhouse\._async\b", "tollhouse._sync"),
)


def _render_synchronous(root: Path) -> dict[str, str]:
    found = {}
    for path in sorted((root / _PYTHON / "_async").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for pattern, replacement in _UNASYNC:
            text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
        notice = f"# Derived from _async/{path.name} by `make clients`. Do not edit.\n"
        found[f"{_PYTHON}/_sync/{path.name}"] = notice + text
    return found


# --- JavaScript ---------------------------------------------------------------------------------------------------

_TYPESCRIPT_ANSWER: Final = {
    "text": "string",
    "amount": "string",
    "whole": "number",
    "bool": "boolean",
    "json": "any",
}
_TYPESCRIPT_PARAMETER: Final = {
    "text": "string",
    "amount": "string",
    "whole": "string | number",
    "bool": "boolean",
    "map": "Record<string, string>",
}


def _render_typescript(answers: Sequence[ApiModel], parameters: Sequence[ApiModel]) -> str:
    parts = [f"// {GENERATED_NOTICE}\n"]
    for model in answers:
        parts.append(f"\n/** {model.about or model.name + '.'} */\nexport interface {model.name} {{\n")
        for one in model.fields:
            written = _TYPESCRIPT_ANSWER.get(one.type.kind, one.type.name) + ("[]" if one.type.listed else "")
            about = f"  /** {one.about} */\n" if one.about else ""
            parts.append(f"{about}  readonly {one.name}{'' if one.required else '?'}: {written};\n")
        parts.append("  /** What the API has besides. */\n  readonly [name: string]: any;\n}\n")
    for model in parameters:
        parts.append(f"\nexport interface {model.name} {{\n")
        for one in model.fields:
            about = f"  /** {one.about} */\n" if one.about else ""
            parts.append(f"{about}  {one.name}{'' if one.required else '?'}: {_typescript_parameter(one.type)};\n")
        parts.append("}\n")
    return "".join(parts)


def _typescript_parameter(found: FieldType) -> str:
    if found.kind == "enum":
        return " | ".join(json.dumps(value) for value in found.values)
    written = _TYPESCRIPT_PARAMETER.get(found.kind, found.name)
    return f"{written}[]" if found.listed else written


def _render_javascript_constants(maps: Sequence[str]) -> str:
    outcomes = "".join(f'  ["{name}", /{pattern}/],\n' for name, pattern in list_outcomes())
    return (
        f'"use strict";\n// {GENERATED_NOTICE}\n\n'
        f"exports.MAP_PARAMETERS = new Set([{_join(maps)}]);\nexports.OUTCOME_PATTERNS = [\n{outcomes}];\n"
    )


# --- PHP ----------------------------------------------------------------------------------------------------------

_PHP_ANSWER: Final = {"text": "string", "amount": "string", "whole": "int", "bool": "bool", "json": "mixed"}


def _render_php_answer(model: ApiModel) -> str:
    rows = []
    for one in model.fields:
        written = _PHP_ANSWER.get(one.type.kind, one.type.name)
        if one.type.listed:
            written = f"list<{written}>"
        rows.append(f" * @property-read {written}{'' if one.required or written == 'mixed' else '|null'} ${one.name}")
    known = [f"'{one.name}' => {one.type.name}::class" for one in model.fields if one.type.kind == "model"]
    types = f"\n    protected const TYPES = [{', '.join(known)}];\n" if known else ""
    return (
        "<?php\n\ndeclare(strict_types=1);\n\nnamespace Tollhouse\\Model;\n\n"
        f"use Tollhouse\\{'Answer' if model.answer else 'Model'};\n\n/**\n * {model.about or model.name + '.'}\n *\n"
        f" * {GENERATED_NOTICE}\n *\n" + "\n".join(rows) + "\n */\n"
        f"final class {model.name} extends {'Answer' if model.answer else 'Model'}\n{{{types}}}\n"
    )


def _render_php_constants(maps: Sequence[str]) -> str:
    outcomes = "".join(f"        ['{name}', '/{pattern}/'],\n" for name, pattern in list_outcomes())
    listed = ", ".join(f"'{name}'" for name in maps)
    return (
        "<?php\n\ndeclare(strict_types=1);\n\nnamespace Tollhouse;\n\n"
        f"/** Tables of the API. {GENERATED_NOTICE} */\nfinal class Constants\n{{\n"
        f"    public const MAP_PARAMETERS = [{listed}];\n    public const OUTCOME_PATTERNS = [\n{outcomes}    ];\n}}\n"
    )

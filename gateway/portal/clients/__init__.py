"""Generates ready clients in Python, PHP and JavaScript from the OpenAPI document: one file each, no dependencies.

Code that does not depend on the document (sending, retries, flattening, errors) is in the templates beside this module;
operations, result code families and names of maps are inserted here.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from gateway.core.result_codes import FAMILY_PATTERNS, ResultFamily

_HERE: Final = Path(__file__).parent
_LINE: Final = 112
_NAMED: Final[Mapping[ResultFamily, str]] = {
    ResultFamily.SUCCESS: "approved",
    ResultFamily.REVIEW: "review",
    ResultFamily.PENDING: "pending",
    ResultFamily.PENDING_LONG: "pending",
    ResultFamily.CHARGEBACK: "chargeback",
}
_METHODS: Final = ("get", "post", "delete")
_NOT_ASKED: Final = frozenset(
    {"checkout-config", "checkout-state", "wallet-session", "integrity", "health-live", "health-ready", "openapi"}
)
"""Operations for the payment form or for tools, not for a merchant's server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOperation:
    """One method of a client. ``ids``: names of the path's parameters; ``entity``: it takes an entityId; ``keyed``: it
    takes an idempotency key; ``required``: its mandatory parameters."""

    name: str
    method: str
    path: str
    about: str
    ids: tuple[str, ...]
    entity: bool
    keyed: bool
    required: tuple[str, ...]
    takes_parameters: bool


def list_client_operations(document: Mapping[str, Any]) -> Iterator[ClientOperation]:
    """The operations for a merchant's server, in the document's order."""
    for path, methods in document["paths"].items():
        for method in _METHODS:
            if method not in methods or methods[method].get("operationId", "") in _NOT_ASKED:
                continue
            found = methods[method]
            rows = found.get("parameters", [])
            form = _find_form(found)
            queried = {row["name"]: row["required"] for row in rows if row["in"] == "query"}
            required = [name for name, is_required in queried.items() if is_required] + list(form.get("required", ()))
            yield ClientOperation(
                name=found["operationId"],
                method=method.upper(),
                path=path,
                about=f"{found['summary']}. {_first_paragraph(found.get('description', ''))}".strip(),
                takes_parameters=bool(queried or form),
                ids=tuple(row["name"] for row in rows if row["in"] == "path"),
                entity="entityId" in queried or "entityId" in form.get("properties", {}),
                keyed=any(row["name"] == "Idempotency-Key" for row in rows),
                required=tuple(name for name in required if name != "entityId"),
            )


def list_map_parameters(document: Mapping[str, Any]) -> list[str]:
    """Parameters whose keys the merchant chooses: customParameters[…]."""
    found: set[str] = set()
    for methods in document["paths"].values():
        for method in _METHODS:
            form = _find_form(methods.get(method, {}))
            for pattern in form.get("patternProperties", {}):
                if named := re.fullmatch(r"\^([A-Za-z0-9.\\]+)\\\[(?!\(\?:0\|).*", pattern):
                    found.add(named[1].replace("\\", ""))
            for name in form.get("properties", {}):
                if named := re.fullmatch(r"([A-Za-z0-9.]+)\[[^0-9].*\]", name):
                    found.add(named[1])
    return sorted(found)


def _find_form(operation: Mapping[str, Any]) -> Mapping[str, Any]:
    content = operation.get("requestBody", {}).get("content", {})
    form: Mapping[str, Any] = content.get("application/x-www-form-urlencoded", {}).get("schema", {})
    return form


def _first_paragraph(description: str) -> str:
    """The first paragraph, on one line."""
    return " ".join(description.partition("\n\n")[0].split())


def _list_family_patterns() -> list[tuple[str, str]]:
    """(outcome, pattern) in matching order; all other families are declines."""
    return [(_NAMED.get(family, "declined"), pattern.pattern) for family, pattern in FAMILY_PATTERNS]


def _split_words(name: str) -> str:
    return name.replace("-", "_")


def _to_camel_case(name: str) -> str:
    first, *rest = name.split("-")
    return first + "".join(word.capitalize() for word in rest)


def _describe_operation(one: ClientOperation) -> str:
    needs = f" Needs: {', '.join(one.required)}." if one.required else ""
    return f"{one.about}{needs} ({one.method} {one.path})"


def _render_python(one: ClientOperation) -> str:
    ids = [_split_words(name) for name in one.ids]
    arguments = ["self", *(f"{name}: str" for name in ids)]
    if one.takes_parameters:
        arguments.append("parameters: Mapping[str, Any]" + ("" if one.required else " | None = None"))
    arguments += ["*", 'key: str = ""'] if one.keyed else []
    path = re.sub(r"\{([^}]+)\}", lambda found: f"{{quote({_split_words(found[1])}, safe='')}}", one.path)
    address = f'f"{path}"' if ids else f'"{path}"'
    passed = "parameters" if one.takes_parameters else "None"
    last = ", key=key" if one.keyed else ""
    about = textwrap.indent("\n".join(textwrap.wrap(_describe_operation(one), _LINE - 4)), "        ").strip()
    return (
        f"\n    def {_split_words(one.name)}({', '.join(arguments)}) -> Answer:\n"
        f'        """{about}"""\n'
        f'        return self._ask("{one.method}", {address}, {passed}, entity={one.entity}, keyed={one.keyed}{last})'
    )


def _render_javascript(one: ClientOperation) -> str:
    ids = [_to_camel_case(name) for name in one.ids]
    arguments = [*ids, *(["parameters = {}"] if one.takes_parameters else [])]
    arguments += ["{ key } = {}"] if one.keyed else []
    path = re.sub(r"\{([^}]+)\}", lambda found: f"${{encodeURIComponent({_to_camel_case(found[1])})}}", one.path)
    passed = "parameters" if one.takes_parameters else "{}"
    how = f"entity: {_render_bool(one.entity)}, keyed: {_render_bool(one.keyed)}" + (", key" if one.keyed else "")
    about = (
        textwrap.indent("\n".join(textwrap.wrap(_describe_operation(one), _LINE - 4)), "   *  ")
        .strip()
        .removeprefix("*  ")
    )
    return (
        f"\n  /** {about} */\n  {_to_camel_case(one.name)}({', '.join(arguments)}) {{\n"
        f'    return this.#ask("{one.method}", `{path}`, {passed}, {{ {how} }});\n  }}'
    )


def _render_php(one: ClientOperation) -> str:
    ids = [_to_camel_case(name) for name in one.ids]
    arguments = [f"string ${name}" for name in ids]
    if one.takes_parameters:
        arguments.append("array $parameters" + ("" if one.required else " = []"))
    arguments += ["string $key = ''"] if one.keyed else []
    path = re.sub(r"\{([^}]+)\}", lambda found: f"' . rawurlencode(${_to_camel_case(found[1])}) . '", one.path)
    address = f"'{path}'".removesuffix(" . ''")
    passed = "$parameters" if one.takes_parameters else "[]"
    last = ", key: $key" if one.keyed else ""
    about = (
        textwrap.indent("\n".join(textwrap.wrap(_describe_operation(one), _LINE - 4)), "     *  ")
        .strip()
        .removeprefix("*  ")
    )
    return (
        f"\n    /** {about} */\n    public function {_to_camel_case(one.name)}({', '.join(arguments)}): Answer\n"
        "    {\n"
        f"        return $this->ask('{one.method}', {address}, {passed}, "
        f"entity: {_render_bool(one.entity)}, keyed: {_render_bool(one.keyed)}{last});\n    }}"
    )


def _render_bool(value: bool) -> str:
    return "true" if value else "false"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLanguage:
    """A client language: its name, its file, and how it writes a method and a family."""

    name: str
    file: str
    media_type: str
    needs: str
    method: Callable[[ClientOperation], str]
    family: Callable[[str, str], str]
    quote: str


CLIENT_LANGUAGES: Final[Mapping[str, ClientLanguage]] = {
    language.file: language
    for language in (
        ClientLanguage(
            name="Python",
            file="tollhouse.py",
            media_type="text/x-python",
            needs="Python 3.11 or newer",
            method=_render_python,
            family=lambda name, pattern: f'    ("{name}", r"{pattern}"),',
            quote='"',
        ),
        ClientLanguage(
            name="JavaScript",
            file="tollhouse.mjs",
            media_type="text/javascript",
            needs="Node.js 18 or newer",
            method=_render_javascript,
            family=lambda name, pattern: f'  ["{name}", /{pattern}/],',
            quote='"',
        ),
        ClientLanguage(
            name="PHP",
            file="tollhouse.php",
            media_type="application/x-httpd-php-source",
            needs="PHP 8.1 or newer",
            method=_render_php,
            family=lambda name, pattern: f"    ['{name}', '/{pattern}/'],",
            quote="'",
        ),
    )
}
"""File → language."""


def render_client(language: ClientLanguage, document: Mapping[str, Any]) -> str:
    """The client file for the API that ``document`` describes."""
    quote = language.quote
    parts = {
        "version": str(document["info"]["version"]),
        "maps": ", ".join(f"{quote}{name}{quote}" for name in list_map_parameters(document)),
        "families": "\n".join(language.family(name, pattern) for name, pattern in _list_family_patterns()),
        "operations": "\n".join(language.method(one) for one in list_client_operations(document)),
    }
    return re.sub("«([a-z]+)»", lambda found: parts[found[1]], _load_template(language.file))


@cache
def _load_template(file: str) -> str:
    return (_HERE / f"{file}.txt").read_text(encoding="utf-8")

"""Names: no public name at the top of a module stands for two things in the whole product."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
APPS: Final = ("gateway", "checkout", "reporting", "chargebacks", "config")
NOT_ALONE: Final = re.compile(
    r"(?:Of|Until|Those|As if|By what|The inverse)\b|The same(?:[,.:;]| (?:as|for|with|each|if)\b)"
)
"""First words of a docstring that can only be read with another one."""
NO_NAMES: Final = frozenset({"again", "beside", "found", "how", "kept", "told", "tried", "what", "who", "whose"})
"""Words that do not say what a method returns or does: a page's column is `reason_text`, an action `ask_again`."""
SHARED: Final = {
    "Command": "Django finds a management command by this name",
    "TIMER": "a module's one timer; config/timers.py lists them",
    "TIMERS": "the same for a module with several",
    "log": "structlog's logger of the module",
    "main": "a program's entry point",
    "register": "Django's library of template tags",
    "urlpatterns": "Django's URL tables",
}
"""Conventions: each stands for the same kind of thing wherever it is."""


def _names(body: list[ast.stmt]) -> set[str]:
    found: set[str] = set()
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return {name for name in found if not name.startswith("_")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A function or a class, wherever in a module it is."""

    where: str
    name: str
    docstring: str
    methods: frozenset[str]
    """Of a class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """What is looked at of a module of the product."""

    path: Path
    names: set[str]
    definitions: list[Definition]


@cache
def modules() -> list[Module]:
    """All of the product, parsed once for the tests of this file."""
    found = []
    for path in sorted(path for app in APPS for path in (ROOT / app).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        definitions = [
            Definition(
                where=f"{path.relative_to(ROOT)}:{node.lineno}",
                name=node.name,
                docstring=ast.get_docstring(node) or "",
                methods=frozenset(
                    each.name
                    for each in (node.body if isinstance(node, ast.ClassDef) else [])
                    if isinstance(each, ast.FunctionDef)
                ),
            )
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef | ast.ClassDef)
        ]
        found.append(Module(path=path, names=_names(tree.body), definitions=definitions))
    return found


def test_a_public_name_stands_for_one_thing() -> None:
    """docs/glossary.md. Import what is the same thing; give another thing its own noun."""
    homes: dict[str, list[str]] = defaultdict(list)
    for module in modules():
        if "migrations" not in module.path.parts:
            for name in module.names:
                homes[name].append(str(module.path.relative_to(ROOT)))
    assert len(homes) > 3_000
    assert {name: paths for name, paths in homes.items() if len(paths) > 1 and name not in SHARED} == {}


def test_the_list_of_shared_names_is_as_short_as_it_can_be() -> None:
    assert [name for name in SHARED if sum(name in module.names for module in modules()) < 2] == []


def test_a_docstring_is_read_without_the_one_before() -> None:
    """Editors and search show it alone: it begins with the noun or the verb, and not with "The same" or "Those of"."""
    definitions = [one for module in modules() for one in module.definitions]
    assert len(definitions) > 4_000
    assert [f"{one.where} {one.name}" for one in definitions if NOT_ALONE.match(one.docstring)] == []


def test_a_method_has_a_noun_or_a_verb() -> None:
    vague = [
        f"{one.where} {name}"
        for module in modules()
        for one in module.definitions
        for name in sorted(one.methods & NO_NAMES)
    ]
    assert vague == []

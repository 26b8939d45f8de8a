"""Sources open: rulings, goals, checks, headings of the specification, documents and modules that are cited exist."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
APPS: Final = ("gateway", "checkout", "reporting", "chargebacks", "config")
SPEC: Final = ROOT / "docs" / "spec"
FILES: Final = sorted(
    path for app in (*APPS, "tests") for path in (ROOT / app).rglob("*.py") if path.name != "test_citations.py"
)

NOWHERE: Final = re.compile(r"\b(?:[Ii]ssue (?:\d+|\"[^\"]+\")|[Jj]ourneys? J?\d|J\d+, steps?|review of issue)")
"""Documents that are not in the repository."""
RULING: Final = re.compile(r"(?<![\w#.-])D([1-9]\d?)\b(?![-\w(])")
CHECK: Final = re.compile(r"(?<![\w#.-])([AB]\d{1,2}\.\d{1,2})\b")
GOAL: Final = re.compile(r"\b[Gg]oals?,? ([PR]\d{1,2})\b")
HEADING: Final = re.compile(r"\bPart ([AB]), ([A-Z][\w ()-]*\w)")
DECISION: Final = re.compile(r"\b(?:docs/decisions/|[Dd]ecisions? )(0\d{3})\b")
DOCUMENT: Final = re.compile(
    r"(?<![\w/.])(?:docs|tests|gateway|checkout|reporting|chargebacks|config|templates|static)/[\w./-]+\.\w+"
)
MEMBERS: Final = re.compile(r"((?:``[a-z]\w*``(?:, | and )?)+):")
"""The members that a class's docstring describes."""
MODULE: Final = re.compile(rf"(?<![\w/.@-])(?:{'|'.join(APPS)}|tests)(?:\.[a-z_]\w*)+(?:\.[A-Za-z_]\w*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What is looked at of a file. A file is parsed once, for all tests of this module."""

    prose: list[tuple[int, str]]
    """Docstrings and comments, each with its line."""
    strange_members: list[str]
    """Members that a class's docstring describes and that are nowhere in the class."""


@cache
def read(path: Path) -> Source:
    """What a file has."""
    text = path.read_text(encoding="utf-8")
    found = Source(prose=[], strange_members=[])
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            found.prose.append((token.start[0], token.string))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.prose.append((node.lineno, node.value.value))
        elif isinstance(node, ast.ClassDef):
            where = f"{path.relative_to(ROOT)}:{node.lineno}"
            found.strange_members.extend(f"{where}: {name}" for name in _strange_members(node, text))
    return found


def _strange_members(node: ast.ClassDef, text: str) -> list[str]:
    about = ast.get_docstring(node) or ""
    described = {name for row in MEMBERS.findall(about) for name in re.findall(r"``(\w+)``", row)}
    if not described:
        return []
    code = ast.get_source_segment(text, node) or ""
    return sorted(described - set(re.findall(r"(?<!`)\b\w+\b(?!`)", code)))


def cited(pattern: re.Pattern[str]) -> Iterator[tuple[str, re.Match[str]]]:
    for path in FILES:
        for line, text in read(path).prose:
            for found in pattern.finditer(text):
                yield f"{path.relative_to(ROOT)}:{line}: {found[0]}", found


def anchors(page: str) -> set[str]:
    return set(re.findall(r'<a id="([^"]+)"></a>', (SPEC / page).read_text(encoding="utf-8")))


def headings(part: str) -> list[str]:
    rows = re.findall(r"^\| ([^|]*) \| ([^|]*) \|$", (SPEC / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    return [row["AB".index(part)].strip() for row in rows]


def test_no_document_is_cited_that_is_not_here() -> None:
    assert [where for where, _ in cited(NOWHERE)] == []


@pytest.mark.parametrize(
    ("pattern", "page", "least"),
    [(RULING, "rulings.md", 100), (CHECK, "checklist.md", 400), (GOAL, "goals.md", 30)],
    ids=["rulings", "checks", "goals"],
)
def test_a_number_is_the_anchor_of_a_row(pattern: re.Pattern[str], page: str, least: int) -> None:
    there = anchors(page)
    found = list(cited(pattern))
    prefix = "d" if page == "rulings.md" else ""
    assert [where for where, match in found if f"{prefix}{match[1].lower()}" not in there] == []
    assert len(found) > least


def test_a_heading_of_the_specification_is_one() -> None:
    """The words may go on or be cut short: "Part A, Card account 3", "Part B, Scheduling"."""
    known = {part: headings(part) for part in "AB"}
    wrong = [
        where
        for where, match in cited(HEADING)
        if not any(
            match[2].startswith(heading.split(" (")[0]) or heading.startswith(match[2])
            for heading in known[match[1]]
            if heading
        )
    ]
    assert wrong == []


def test_a_decision_is_one() -> None:
    there = {path.name[:4] for path in (ROOT / "docs" / "decisions").glob("0*.md")}
    assert [where for where, match in cited(DECISION) if match[1] not in there] == []


def test_a_decision_that_another_changes_says_so() -> None:
    """Who opens the older page learns from its second line where it no longer holds."""
    pages = {path.name[:4]: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "decisions").glob("0*.md")}
    status = {
        number: " ".join(text.partition("\n\n")[2].partition("\n\n")[0].split()) for number, text in pages.items()
    }
    changes = [
        (number, changed)
        for number, text in status.items()
        for part in text.split("; ")
        if part.startswith(("amends", "replaces"))
        for changed in re.findall(r"(?<!\d)0\d{3}(?!-)", part)
    ]
    assert len(changes) > 5
    assert [pair for pair in changes if pair[0] not in status[pair[1]]] == []


def test_a_file_that_is_named_is_there() -> None:
    wrong = [where for where, match in cited(DOCUMENT) if not (ROOT / match[0].rstrip(".")).exists()]
    assert wrong == []


def test_a_module_that_is_named_can_be_imported() -> None:
    wrong = []
    for where, match in cited(MODULE):
        parts = match[0].split(".")
        if not any(
            _is_module(".".join(parts[:end])) for end in (len(parts), len(parts) - 1, len(parts) - 2) if end > 1
        ):
            wrong.append(where)
    assert wrong == []


@cache
def _is_module(name: str) -> bool:
    base = ROOT.joinpath(*name.split("."))
    return base.with_suffix(".py").exists() or (base / "__init__.py").exists() or (base.is_dir() and "." in name)


def test_a_member_that_a_class_describes_is_one() -> None:
    """``name``: what it is. Whoever renames a column or a field renames it in the docstring."""
    described = [name for path in FILES for name in read(path).strange_members]
    assert described == []

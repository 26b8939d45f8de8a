"""Layout: the formatter lays the code out, and what is packed by hand is a table (docs/decisions/0061)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
APPS: Final = ("gateway", "checkout", "reporting", "chargebacks", "config")
TABLES_IN_FUNCTIONS: Final = {
    "gateway/backoffice/payments/route_explanation.py:_explain_choice": "sentence by way of choosing",
    "gateway/catalogue/conditions/authentication.py:_build_browser_rules": "rows of rules",
    "gateway/catalogue/conditions/authentication.py:_build_return_rules": "rows of rules",
}
MARK: Final = "# fmt: skip"


def _packed_in_functions(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    if MARK not in text:
        return
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and MARK in "\n".join(lines[node.lineno - 1 : node.end_lineno]):
            yield f"{path.relative_to(ROOT)}:{node.name}"


def test_only_tables_are_packed_by_hand() -> None:
    found = {each for app in APPS for path in (ROOT / app).rglob("*.py") for each in _packed_in_functions(path)}
    assert found == set(TABLES_IN_FUNCTIONS)

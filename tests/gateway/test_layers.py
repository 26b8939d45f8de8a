"""Imports point down, never up (README, Layers)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# From the bottom up; a module belongs to the longest prefix that fits, and may import its own layer and those below.
LAYERS: tuple[tuple[str, ...], ...] = (
    (
        "gateway.catalogue", "gateway.results", "gateway.money", "gateway.secret", "gateway.clock",
        "gateway.identifiers", "gateway.masking", "gateway.luhn", "gateway.advice", "gateway.brands", "gateway.logs",
        "gateway.card_data", "gateway.card_number", "gateway.document", "gateway.languages",
        "gateway.direct", "gateway.xml_stream",
    ),
    ("gateway.models", "gateway.migrations"),
    (
        "gateway.vault", "gateway.vault_keys", "gateway.vault_rows", "gateway.rows", "gateway.audit", "gateway.tokens",
        "gateway.rights", "gateway.signin", "gateway.sessions", "gateway.unused_accounts", "gateway.passwords",
        "gateway.outbound", "gateway.due", "gateway.wake", "gateway.metrics", "gateway.apps", "gateway.widget_hash",
        "gateway.clock_moves", "gateway.environment",
        "gateway.work", "gateway.work_files",
    ),
    (
        "gateway.connectors", "gateway.risk", "gateway.threeds", "gateway.wallets", "gateway.notifications",
        "gateway.scheduling",
    ),
    ("gateway.payments", "gateway.configuration"),
    ("gateway.desk",),
    (
        "gateway.api", "gateway.admin", "gateway.pages", "gateway.shopper", "gateway.simulator", "gateway.tasks",
        "gateway.templatetags", "gateway.timers",
        "gateway.management", "gateway.scheduling.tasks",
        "gateway.processor_events",
    ),
    ("chargebacks",),
    ("checkout", "reporting"),
    ("config",),
)  # fmt: skip
PROJECT = ("gateway", "checkout", "reporting", "chargebacks", "config")


def layer_of(module: str) -> int:
    fitting = [
        (len(prefix), number)
        for number, prefixes in enumerate(LAYERS)
        for prefix in prefixes
        if module == prefix or module.startswith(f"{prefix}.")
    ]
    assert fitting, f"{module} stands in no layer"
    return max(fitting)[1]


def modules() -> list[Path]:
    return [path for name in PROJECT for path in sorted((ROOT / name).rglob("*.py")) if path.stat().st_size]


def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # `from gateway import clock` imports gateway.clock.
            found |= (
                {f"{node.module}.{alias.name}" for alias in node.names} if node.module == "gateway" else {node.module}
            )
    return {name for name in found if name.split(".")[0] in PROJECT}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_its_own_layer_and_below(path: Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    if module == "gateway":
        return
    own = layer_of(module)
    wrong = sorted(name for name in imports_of(path) if name != "gateway" and layer_of(name) > own)
    assert not wrong, f"{module} imports upwards: {', '.join(wrong)}"

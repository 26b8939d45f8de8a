"""Imports point down, never up (README, Layers)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# From the bottom up; a module belongs to the longest prefix that fits, and may import its own layer and those below.
LAYERS: tuple[tuple[str, ...], ...] = (
    (
        "gateway.catalogue",
        "gateway.core.result_codes",
        "gateway.core.money",
        "gateway.core.secret",
        "gateway.core.clock",
        "gateway.core.identifiers",
        "gateway.core.masking",
        "gateway.core.luhn",
        "gateway.core.advice",
        "gateway.core.brands",
        "gateway.logs",
        "gateway.core.card_data",
        "gateway.core.card_number",
        "gateway.core.client_address",
        "gateway.core.curl",
        "gateway.core.document",
        "gateway.core.languages",
        "gateway.db.libpq",
        "gateway.core.xml",
    ),
    ("gateway.models", "gateway.migrations"),
    (
        "gateway.vault.sealing",
        "gateway.vault.keysets",
        "gateway.vault.rewrap",
        "gateway.db.statement",
        "gateway.access.audit_log",
        "gateway.access.tokens",
        "gateway.access.permissions",
        "gateway.access.rate_limits",
        "gateway.access.signin",
        "gateway.access.sessions",
        "gateway.access.unused_accounts",
        "gateway.access.passwords",
        "gateway.outbound",
        "gateway.timers.registry",
        "gateway.timers.wakeup",
        "gateway.metrics",
        "gateway.apps",
        "gateway.widget_hash",
        "gateway.timers.time_travel",
        "gateway.db.environment",
        "gateway.background.queue",
        "gateway.background.files",
    ),
    (
        "gateway.connectors",
        "gateway.risk",
        "gateway.threeds",
        "gateway.wallets",
        "gateway.notifications",
        "gateway.scheduling",
    ),
    ("gateway.payments", "gateway.configuration"),
    ("gateway.backoffice",),
    (
        "gateway.api",
        "gateway.admin",
        "gateway.portal",
        "gateway.shopper",
        "gateway.simulator",
        "gateway.tasks",
        "gateway.templatetags",
        "gateway.timer_table",
        "gateway.management",
        "gateway.scheduling.job_timer",
        "gateway.processor_events",
    ),
    ("chargebacks",),
    ("checkout", "reporting"),
    ("config",),
)
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
            # `from gateway import clock` imports gateway.core.clock.
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

"""docs/adding-a-connector.md, followed to the letter: its files are written, its changes made, and the connector that
comes of it passes every test of the kit, and its own."""

from __future__ import annotations

import importlib
import re
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from tests.connectors import guide, test_conformance
from tests.connectors.guide import CHANGED
from tests.connectors.rig import Rig

_BLOCKS: Final = guide.blocks()
_FOLDER: Final = tempfile.TemporaryDirectory(prefix="guide-")
"""Gone when the interpreter is."""


def _followed() -> Mapping[str, ModuleType]:
    folder = Path(_FOLDER.name)
    guide.write(folder, _BLOCKS)
    with guide.importable(folder):
        return {name: importlib.import_module(name) for name in map(guide.module_of, _BLOCKS)}


MODULES: Final = _followed()
ROUTING: Final = MODULES[f"gateway.connectors.routing{CHANGED}"]
RIGS: Final[tuple[Rig, ...]] = MODULES[f"tests.connectors.conftest{CHANGED}"].RIGS
_RIG: Final = next(one for one in RIGS if one.connector.name == "acme")
EXTERNAL: Final = MODULES["tests.external.test_acme"]


def _tests_of(module: ModuleType) -> dict[str, Callable[..., None]]:
    return {name: test for name, test in vars(module).items() if name.startswith("test_")}


# Every sentence of the kit, and of the guide's own tests, is collected here once more.
OF_THE_KIT: Final = _tests_of(test_conformance)
OF_THE_GUIDE: Final = _tests_of(MODULES["tests.gateway.connectors.acme.test_mapping"])
globals().update(OF_THE_KIT | OF_THE_GUIDE)


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    """The guide's rig; registered as the guide says."""
    monkeypatch.setattr(test_conformance, "CONNECTORS", ROUTING.CONNECTORS)
    return _RIG


def test_the_guide_was_followed_whole() -> None:
    assert OF_THE_KIT
    assert OF_THE_GUIDE
    assert _tests_of(EXTERNAL)
    assert not set(OF_THE_KIT) & set(OF_THE_GUIDE)
    assert _RIG.connector.name == "acme"
    assert ROUTING.list_acquirers()["acme"].inner is _RIG.connector


def test_our_own_modules_know_nothing_of_it() -> None:
    assert not any("acme" in name for name in sys.modules)


def test_it_imports_downwards_only() -> None:
    seen = 0
    for block in _BLOCKS:
        if block.path.parts[0] == "gateway":
            own = _layer_of(guide.module_of(block))
            text = (Path(_FOLDER.name) / _written(block)).read_text()
            imported = re.findall(
                r"^(?:from|import) ((?:gateway|reporting|checkout|chargebacks|config)[.\w]*)", text, re.MULTILINE
            )
            assert [name for name in imported if _layer_of(name) < own] == []
            seen += len(imported)
    assert seen > 5


def _layer_of(module: str) -> int:
    """Its place in the contract of pyproject.toml, from the top; below all where none is named."""
    layers = tomllib.loads((guide.ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"][0][
        "layers"
    ]
    return next(
        (
            place
            for place, layer in enumerate(layers)
            if any(module == name or module.startswith(f"{name}.") for name in layer.split(" | "))
        ),
        len(layers),
    )


def test_a_change_that_fits_nowhere_or_twice_is_refused() -> None:
    """So that the page is changed when routing is."""
    assert guide.changed("a\nb\n", " a\n+c\n@@\n-b\n+d\n") == "a\nc\nd\n"
    for text in ("b\n", "a\na\n"):
        with pytest.raises(AssertionError):
            guide.changed(text, "-a\n+c\n")


def test_a_change_that_was_made_is_made_once_and_fits_beside_connectors_of_others() -> None:
    assert guide.changed("a\nc\nd\n", " a\n+c\n@@\n-b\n+d\n") == "a\nc\nd\n"
    for block in (one for one in _BLOCKS if one.is_change):
        ours = (guide.ROOT / block.path).read_text()
        followed = guide.changed(ours, block.text)
        assert guide.changed(followed, block.text) == followed
        others = ours.replace("    SEPA,\n", "    SEPA,\n    MYBANK,\n").replace(
            "    SEPA_RIG,\n", "    SEPA_RIG,\n    MYBANK_RIG,\n"
        )
        assert others != ours
        assert "MYBANK" in guide.changed(others, block.text)


def _written(block: guide.Block) -> Any:
    return block.path.with_stem(block.path.stem + CHANGED) if block.is_change else block.path

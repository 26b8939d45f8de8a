"""docs/risk.md and docs/configuration.md say what the tables say. Source: style (completeness of docs is a test)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.configuration.sections import SECTIONS
from gateway.risk.fields import FIELDS
from gateway.risk.guard import CODES
from gateway.risk.rules import KINDS, RISK_REFUSED

DOCS = Path(__file__).parents[3] / "docs"
RISK = (DOCS / "risk.md").read_text(encoding="utf-8")


def first_cells(text: str, header: str) -> list[str]:
    """The first cell of each row of the table that begins with ``header``."""
    table = text[text.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [re.split(r" *\| *", row.strip("| "))[0].strip("`") for row in table]


def test_every_kind_of_condition_and_every_field_is_in_the_docs() -> None:
    """In the table's order."""
    assert first_cells(RISK, "| `kind` | holds when") == list(KINDS)
    assert first_cells(RISK, "| field | what it is") == list(FIELDS)


def test_every_section_of_a_configuration_is_in_the_docs() -> None:
    """In the table's order."""
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert first_cells(text, "| section | what it holds") == list(SECTIONS)


@pytest.mark.parametrize("code", sorted({*CODES.values(), RISK_REFUSED, "800.300.200", "800.120.203", "100.400.021"}))
def test_the_codes_are_in_the_docs(code: str) -> None:
    """Which code means what."""
    assert f"`{code}`" in RISK

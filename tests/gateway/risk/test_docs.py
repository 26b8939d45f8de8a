"""docs/risk.md and docs/configuration.md say what the tables say. Source: style (completeness of docs is a test)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.configuration.sections import CONFIGURATION_SECTIONS
from gateway.risk.card_testing import CARD_TESTING_CODES
from gateway.risk.conditions import CONDITION_KINDS, RISK_REFUSED_CODE
from gateway.risk.fields import RISK_FIELDS

DOCS = Path(__file__).parents[3] / "docs"
RISK = (DOCS / "risk.md").read_text(encoding="utf-8")


def first_cells(text: str, header: str) -> list[str]:
    """The first cell of each row of the table that begins with ``header``."""
    table = text[text.index(header) :].split("\n\n")[0].splitlines()[2:]
    return [re.split(r" *\| *", row.strip("| "))[0].strip("`") for row in table]


def test_every_kind_of_condition_and_every_field_is_in_the_docs() -> None:
    """In the table's order."""
    assert first_cells(RISK, "| `kind` | holds when") == list(CONDITION_KINDS)
    assert first_cells(RISK, "| field | what it is") == list(RISK_FIELDS)


def test_every_section_of_a_configuration_is_in_the_docs() -> None:
    """In the table's order."""
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    assert first_cells(text, "| section | what it holds") == list(CONFIGURATION_SECTIONS)


@pytest.mark.parametrize(
    "code", sorted({*CARD_TESTING_CODES.values(), RISK_REFUSED_CODE, "800.300.200", "800.120.203", "100.400.021"})
)
def test_the_codes_are_in_the_docs(code: str) -> None:
    """Which code means what."""
    assert f"`{code}`" in RISK

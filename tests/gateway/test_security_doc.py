"""docs/security.md cites tests, modules, settings and decisions: each of them exists.

Whether a test still shows what a row says is for people to read.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "security.md"
TEXT = DOCUMENT.read_text(encoding="utf-8")
CITED = sorted(set(re.findall(r"`([^`]+)`", TEXT)))
PATHS = [one for one in CITED if re.fullmatch(r"[\w.-]+(/[\w.-]+)*\.(py|lock|cfg|conf|md|sh)|Makefile", one)]
SETTINGS = [one for one in CITED if re.fullmatch(r"[A-Z][A-Z_]+", one)]
LINKS = sorted(set(re.findall(r"\]\(([^)#]+)", TEXT)))
PLAIN = ("the operator's", "not met", "not applicable")


def tables() -> dict[str, list[list[str]]]:
    """Heading → rows of cells, of the two tables of requirements."""
    found: dict[str, list[list[str]]] = {}
    for part in TEXT.split("\n## ")[1:]:
        heading, _, rest = part.partition("\n")
        if heading.startswith(("ASVS", "PCI DSS")):
            lines = [line for line in rest.splitlines() if line.startswith("|")]
            rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
            found[heading.split()[0]] = rows[2:]
    return found


@pytest.mark.parametrize("path", PATHS)
def test_every_cited_file_exists(path: str) -> None:
    assert (ROOT / path).is_file()


@pytest.mark.parametrize("name", SETTINGS)
def test_every_cited_setting_exists(name: str) -> None:
    assert hasattr(settings, name)


@pytest.mark.parametrize("link", LINKS)
def test_every_link_leads_to_a_page(link: str) -> None:
    assert (DOCUMENT.parent / link).is_file()


def test_every_word_in_code_is_a_file_a_setting_or_a_command() -> None:
    """So that a mistyped path is not overlooked."""
    other = set(CITED) - set(PATHS) - set(SETTINGS)
    assert {one for one in other if "/" in one} == set()


@pytest.mark.parametrize("table", ["ASVS", "PCI"])
def test_every_row_names_what_shows_it_or_says_that_nothing_does(table: str) -> None:
    rows = tables()[table]
    assert len(rows) > 50
    for row in rows:
        assert len(row) >= 2, row
        assert "`" in row[-1] or row[-1] in PLAIN, row


@pytest.mark.parametrize(
    ("table", "numbers"),
    [("ASVS", [f"V{n}." for n in range(1, 15)]), ("PCI", ["3.", "4.", "6.", "7.", "8.", "10.", "11.6"])],
)
def test_every_chapter_is_there(table: str, numbers: list[str]) -> None:
    firsts = [row[0] for row in tables()[table]]
    for number in numbers:
        assert any(first.startswith(number) for first in firsts), number

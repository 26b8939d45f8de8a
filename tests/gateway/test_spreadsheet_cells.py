"""Cells of exports that no spreadsheet runs as a formula. Source: OWASP, CSV Injection."""

from __future__ import annotations

import pytest

from gateway.core.spreadsheet_cells import escape_csv_formula


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=1+1", "'=1+1"),
        ("a;=1", "a;'=1"),
        ('a; "\t =1', "a; \"\t '=1"),
        ("a\n-1;+2", "a\n'-1;'+2"),
        (";\n;@a", ";\n;'@a"),
        ("1 - 2", "1 - 2"),
        ('say "-"', 'say "-"'),
        ("a;b", "a;b"),
    ],
)
def test_a_formula_is_escaped_at_the_start_and_after_what_a_spreadsheet_splits_at(cell: str, written: str) -> None:
    assert escape_csv_formula(cell) == written


@pytest.mark.timeout(60)
@pytest.mark.parametrize("run", ["\t", ";", "\n ", '"', "; "])
def test_a_long_run_of_separators_is_read_once(run: str) -> None:
    """A pattern that began anew at each separator took the square of the cell's length."""
    cell = f"a{run * 500_000}b"
    assert escape_csv_formula(cell) == cell

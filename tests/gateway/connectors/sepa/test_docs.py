"""docs/connectors/sepa.md says what the table of reasons and the settings are."""

from __future__ import annotations

import os
import re
from pathlib import Path

from gateway.connectors.sepa.bank_reasons import BANK_REASONS, UNLISTED_REASON
from gateway.connectors.sepa.creditor import SEPA_SETTINGS

PAGE = Path(__file__).parents[4] / "docs" / "connectors" / "sepa.md"


def test_the_page_lists_every_reason_as_it_is() -> None:
    head = "| bank | declined (before it was booked) | chargeback (after) | mandate | presented again |"
    rows = [head, "|---|---|---|---|---|"]
    for row in (*BANK_REASONS.values(), UNLISTED_REASON):
        name = f"`{row.code}` {row.meaning}" if row.code else "any other"
        again = "yes" if row.may_be_presented_again else ""
        rows.append(f"| {name} | `{row.declined}` | `{row.returned}` | {row.mandate} | {again} |")
    before, told, after = re.split("(?<=writes them -->\n)|(?=<!-- end of the reasons)", PAGE.read_text())
    if os.environ.get("UPDATE_SNAPSHOTS"):
        PAGE.write_text(before + "\n".join(rows) + "\n" + after)
        told = "\n".join(rows)
    assert told.splitlines() == rows


def test_the_page_names_every_setting() -> None:
    page = PAGE.read_text()
    assert [one.name for one in SEPA_SETTINGS if f"`{one.name}`" not in page] == []

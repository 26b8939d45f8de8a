"""The tables of docs/connectors/iso8583.md are those of the code (`UPDATE_SNAPSHOTS=1` writes them)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from gateway.connectors.iso8583 import response_codes
from gateway.connectors.iso8583.addenda import ADDENDUM_LINES
from gateway.connectors.iso8583.batch_totals import TOTALS_ELEMENTS as SUMS
from gateway.connectors.iso8583.data_elements import DATA_ELEMENTS
from gateway.connectors.iso8583.field_formats import FIELD_MAP
from gateway.connectors.iso8583.iso_request import MESSAGE_KINDS
from gateway.connectors.iso8583.private_field import PRIVATE_FIELD_PARTS
from gateway.connectors.iso8583.processing_codes import PROCESSING_CODES
from gateway.connectors.iso8583.terminal import ISO8583_SETTINGS
from gateway.core.result_codes import RESULT_CODES

PAGE = Path(__file__).parents[4] / "docs" / "connectors" / "iso8583.md"


def table(*rows: Iterable[str]) -> str:
    head, *rest = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [head, ["---"] * len(head), *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def tables() -> dict[str, str]:
    return {
        "settings": table(
            ("setting", "default", "allowed", "what it says"),
            *(
                (f"`{one.name}`" + (" (required)" if one.required else ""), one.default, one.allowed, one.about)
                for one in ISO8583_SETTINGS
            ),
        ),
        "messages": table(
            ("payment type", "message", "repeated", "answer", "DE3"),
            *(
                (
                    "taken back" if name == "V" else name,
                    kind.mti,
                    kind.mti[:3] + "1" if kind.advice else "never",
                    f"{kind.mti[:2]}{int(kind.mti[2]) + 1}0",
                    kind.code or "the original's",
                )
                for name, kind in MESSAGE_KINDS.items()
            ),
        ),
        "elements": table(
            ("DE", "format", "name", "filled with", "in"),
            *(
                (
                    row.number,
                    *FIELD_MAP[row.number],
                    row.about,
                    "all"
                    if set(row.kinds.split()) == set(MESSAGE_KINDS)
                    else re.sub(r"\bV\b", "taken back", row.kinds),
                )
                for row in DATA_ELEMENTS
            ),
        ),
        "sums": table(
            ("DE", "format", "name", "filled with", "compared"),
            *((row.number, *FIELD_MAP[row.number], row.about, "yes" if row.compared else "") for row in SUMS),
        ),
        "parts": table(
            ("part", "what it is", "sent", "answered"),
            *(
                (part.number, part.about, "yes" if ">" in part.way else "", "yes" if "<" in part.way else "")
                for part in PRIVATE_FIELD_PARTS
            ),
        ),
        "lines": table(
            ("parts", "item", "columns (width)"),
            *(
                (
                    f"DE{line.element}, {line.number:02} to {line.number + line.max_items - 1:02}",
                    f"`{line.prefix}[n]`",
                    ", ".join(f"{name} ({width})" for name, width in line.columns),
                )
                for line in ADDENDUM_LINES
            ),
        ),
        "transfers": table(
            ("network", "transfer", "DE3", "source"),
            *(
                (row.network, row.transfer, row.code, row.source + ("" if row.checked else " (not checked)"))
                for row in PROCESSING_CODES
            ),
        ),
        "brand codes": table(
            ("brands", "DE39", "result code", "what it says", "source"),
            *(
                (
                    ", ".join(row.brands),
                    row.code,
                    row.result,
                    row.about,
                    row.source + (" (uncertain)" if row.uncertain else ""),
                )
                for row in response_codes.BRAND_RESPONSE_CODES
            ),
        ),
        "codes": table(
            ("DE39", "result code", "what it says", "another acquirer may be asked", "to RF and CD"),
            *(
                (
                    code,
                    found,
                    RESULT_CODES[found].description,
                    "yes" if code in response_codes.RETRYABLE_CODES else "",
                    "no verdict" if code in response_codes.UNDECIDED_CREDIT_CODES else "",
                )
                for code, found in response_codes.RESULT_BY_DE39.items()
            ),
        ),
    }


def test_the_page_holds_the_tables_of_the_code() -> None:
    text = PAGE.read_text()
    for name, made in tables().items():
        block = re.compile(rf"(<!-- {name} -->\n).*?(\n?<!-- end -->)", re.DOTALL)
        found = block.search(text)
        assert found is not None, name
        if os.environ.get("UPDATE_SNAPSHOTS"):
            text = text.replace(found[0], f"{found[1]}{made}\n<!-- end -->")
            PAGE.write_text(text)
        assert f"<!-- {name} -->\n{made}\n<!-- end -->" in text

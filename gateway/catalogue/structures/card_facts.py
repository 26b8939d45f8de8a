"""Which cards' facts are read. Source: docs/card-facts.md; decision 0127."""

from __future__ import annotations

from gateway.catalogue.formats import literal
from gateway.catalogue.structure import ALWAYS, R, structure
from gateway.core.bin_table import MIN_TABLE_DIGITS, TABLE_DIGITS

CARD_FACTS = structure(
    "Card facts", "docs/card-facts.md", "card",
    ("bin", literal(
        f"N{MIN_TABLE_DIGITS}-{TABLE_DIGITS}", f"[0-9]{{{MIN_TABLE_DIGITS},{TABLE_DIGITS}}}",
        expects=f"must be the first {MIN_TABLE_DIGITS} to {TABLE_DIGITS} digits of a card number, never more",
        example="420000", bad="4200000000000000",
    ), R, "The first digits of the number. The whole number is refused."),
    demand=ALWAYS,
)  # fmt: skip

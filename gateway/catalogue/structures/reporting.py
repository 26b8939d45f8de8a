"""Which settlements a report covers, and in which order.

Source: Part B, Reporting parameters.
"""

from __future__ import annotations

from gateway.catalogue.formats import CURRENCY, DATE, number_between, one_of, publish_values, value_list, with_words
from gateway.catalogue.structure import ALWAYS, NEVER, O, R, structure
from gateway.catalogue.structures.periods import build_period_rule

_ORDER = publish_values(
    value_list("ASC", "DESC", "asc", "desc"), "ASC", "DESC", taken_too="asc and desc are taken, too."
)

REPORTING = structure(
    "Reporting parameters", "Part B", "",
    ("date.from", DATE.eg("2026-05-01"), R),
    ("date.to", DATE.eg("2026-05-31"), R),
    ("sortValue", one_of("SettlementTxDate"), O),
    ("sortOrder", _ORDER, O),
    rules=[build_period_rule("2026-05-01", "2026-05-31")],
    demand=ALWAYS,
)  # fmt: skip

SETTLEMENT_FILTER = structure(
    "Settlements", "ruling D7", "",
    ("currency", with_words("A3 ISO 4217", CURRENCY), O, "Only settlements in this currency."),
    demand=NEVER,
)  # fmt: skip

MAX_SETTLEMENT_PAGES = 100_000

SETTLEMENT_PAGES = structure(
    "Pages", "ruling D7", "",
    ("reconciliationType", one_of("SETTLED", "CHARGEBACK", "CHARGEBACK REVERSAL", "FEE"), O, "Only such records."),
    ("pageNo", number_between(1, MAX_SETTLEMENT_PAGES, words=f"integer 1 to {MAX_SETTLEMENT_PAGES}"), O,
     "Pages hold 100.", {"default": "1"}),
    demand=NEVER,
)  # fmt: skip

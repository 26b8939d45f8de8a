"""Which settlements a report covers, and in which order.

Source: Part B, Reporting parameters.
"""

from __future__ import annotations

from gateway.catalogue.formats import CURRENCY, DATE, number_between, one_of, published, value_list, worded
from gateway.catalogue.structure import ALWAYS, NEVER, O, R, structure
from gateway.catalogue.structures.periods import period

_ORDER = published(
    value_list("ASC", "DESC", "asc", "desc"), "ASC", "DESC", taken_too="asc and desc are taken, too."
)  # fmt: skip

REPORTING = structure(
    "Reporting parameters", "Part B", "",
    ("date.from", DATE.eg("2026-05-01"), R),
    ("date.to", DATE.eg("2026-05-31"), R),
    ("sortValue", one_of("SettlementTxDate"), O),
    ("sortOrder", _ORDER, O),
    rules=[period("2026-05-01", "2026-05-31")],
    demand=ALWAYS,
)  # fmt: skip

SETTLEMENT_FILTER = structure(
    "Settlements", "ruling D7", "",
    ("currency", worded("A3 ISO 4217", CURRENCY), O, "Only settlements in this currency."),
    demand=NEVER,
)  # fmt: skip

MOST_PAGES_OF_SETTLEMENTS = 100_000

SETTLEMENT_PAGES = structure(
    "Pages", "ruling D7", "",
    ("reconciliationType", one_of("SETTLED", "CHARGEBACK", "CHARGEBACK REVERSAL", "FEE"), O, "Only such records."),
    ("pageNo", number_between(1, MOST_PAGES_OF_SETTLEMENTS, words=f"integer 1 to {MOST_PAGES_OF_SETTLEMENTS}"), O,
     "Pages hold 100.", {"default": "1"}),
    demand=NEVER,
)  # fmt: skip

"""Which settlements a report covers, and in which order.

Source: Part B, Reporting parameters.
"""

from __future__ import annotations

from gateway.catalogue.formats import DATE, one_of, value_list
from gateway.catalogue.structure import ALWAYS, O, R, structure
from gateway.catalogue.structures.periods import period

REPORTING = structure(
    "Reporting parameters", "Part B", "",
    ("date.from", DATE.eg("2026-05-01"), R),
    ("date.to", DATE.eg("2026-05-31"), R),
    ("sortValue", one_of("SettlementTxDate"), O),
    ("sortOrder", value_list("ASC", "DESC", "asc", "desc"), O),
    rules=[period("2026-05-01", "2026-05-31")],
    demand=ALWAYS,
)  # fmt: skip

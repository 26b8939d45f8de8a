"""Which settlements a report covers, and in which order.

Source: Part B, Reporting parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Final

from gateway.catalogue.formats import CURRENCY, DATE, number_between, one_of, publish_values, value_list, with_words
from gateway.catalogue.rules import RuleBreach, RuleInput, build_rule
from gateway.catalogue.structure import ALWAYS, NEVER, O, R, structure
from gateway.catalogue.structures.periods import build_period_rule
from gateway.catalogue.structures.query import MAX_PAGE_NUMBER

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

MAX_APPROVAL_DAYS: Final = 92
"""Days of one report of approval rates, both ends included."""
APPROVAL_GROUPS: Final = (
    "all", "day", "hour", "brand", "country", "issuer", "cardType", "cardLevel", "bin", "acquirer", "means",
    "threeDSecure", "shopper",
)  # fmt: skip
"""What a report of approval rates may be divided by (reporting.approvals.figures)."""


def _check_days(sent: RuleInput) -> Iterator[RuleBreach]:
    start, end = sent.get("date.from"), sent.get("date.to")
    if start is None or end is None:
        return
    if (date.fromisoformat(end) - date.fromisoformat(start)).days >= MAX_APPROVAL_DAYS:
        yield "date.to", f"must be less than {MAX_APPROVAL_DAYS} days after date.from"


APPROVALS = structure(
    "Approval rates", "docs/approval.md", "",
    ("date.from", DATE.eg("2026-05-01"), R, "The first day, UTC by your clock."),
    ("date.to", DATE.eg("2026-05-31"), R, "The last day, included."),
    ("groupBy", one_of(*APPROVAL_GROUPS), O, "What the figures are divided by.", {"default": "all"}),
    ("currency", with_words("A3 ISO 4217", CURRENCY), O, "Only payments in this currency."),
    rules=[
        build_period_rule("2026-05-01", "2026-05-31"),
        build_rule(
            f"a period of approval rates has {MAX_APPROVAL_DAYS} days at most",
            ("date.from", "date.to"),
            _check_days,
            keeps={"date.from": "2026-05-01", "date.to": "2026-07-31"},
            breaks={"date.from": "2026-05-01", "date.to": "2026-08-01"},
        ),
    ],
    demand=ALWAYS,
)  # fmt: skip

SETTLEMENT_PAGES = structure(
    "Pages", "ruling D7", "",
    ("reconciliationType", one_of("SETTLED", "CHARGEBACK", "CHARGEBACK REVERSAL", "FEE"), O, "Only such records."),
    ("pageNo", number_between(1, MAX_PAGE_NUMBER, words=f"integer 1 to {MAX_PAGE_NUMBER}"), O,
     "Pages hold 100.", {"default": "1"}),
    demand=NEVER,
)  # fmt: skip

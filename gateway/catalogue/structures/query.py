"""Which transactions a query lists.

Source: Part B, Query.
"""

from __future__ import annotations

from gateway.catalogue.formats import (
    AN_UP_TO,
    BOOLEAN,
    DATE_TIME,
    comma_list,
    literal,
    number_between,
)
from gateway.catalogue.rules import excludes, required_together
from gateway.catalogue.structure import NEVER, O, structure
from gateway.catalogue.structures.basic import PAYMENT_TYPE_CODES
from gateway.catalogue.structures.periods import build_period_rule

PAYMENT_METHOD_CODES = ("DD", "CT", "CC", "WA", "VA", "UA", "OT", "DC", "ET", "NT", "IV", "PP", "OD", "RM")

QUERY = structure(
    "Query", "Part B", "",
    ("merchantTransactionId", AN_UP_TO(255).eg("order-4711"), O, "Not with date.from and date.to."),
    ("limit", number_between(100, 500, words="integer 100 to 500"), O,
     "How many are listed.", {"default": "100", "filled": True}),
    ("date.from", DATE_TIME.eg("2026-05-14 00:00:00"), O, "Together with date.to."),
    ("date.to", DATE_TIME.eg("2026-05-14 23:59:59"), O, "Together with date.from."),
    ("paymentTypes", comma_list("comma-separated list", *PAYMENT_TYPE_CODES).eg("DB,RF"), O),
    ("paymentMethods", comma_list("comma-separated list", *PAYMENT_METHOD_CODES).eg("CC,DD"), O),
    ("includeLinkedTransactions", BOOLEAN, O, "Also lists what is linked to the transactions found."),
    ("shortId", literal(
        "AN 14", r"[0-9]{4}\.[0-9]{4}\.[0-9]{4}",
        expects="must be three groups of four digits, joined by dots",
        example="1234.5678.9012", bad="123456789012",
    ), O),
    rules=[
        excludes("merchantTransactionId", "date.from", "date.to"),
        required_together("date.from", "date.to"),
        build_period_rule("2026-05-14 00:00:00", "2026-05-14 23:59:59"),
    ],
    demand=NEVER,
)  # fmt: skip

MAX_PAGE_NUMBER = 999_999_999
"""The largest page that may be asked for, by queries and reports. Those after the last one are empty (ruling D46)."""

PAGING = structure(
    "Paging", "ruling D6", "",
    ("pageNo", number_between(1, MAX_PAGE_NUMBER, words=f"integer 1 to {MAX_PAGE_NUMBER}"), O,
     "Which page of limit transactions, the oldest first: what arrives meanwhile moves no page that is full."),
    demand=NEVER,
)  # fmt: skip

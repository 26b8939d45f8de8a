"""Recurring agreements migrated from another processor.

Source: Part B, Recurring migration (deprecated).
"""

from __future__ import annotations

from gateway.catalogue.formats import AN, DATE_TIME, literal, one_of, with_words
from gateway.catalogue.structure import C, O, R, structure

DEPRECATED_ROW = {"deprecated": True}
_AMOUNT = literal(
    "up to 8 integer digits, optional dot and 2 decimals", r"[0-9]{1,8}(?:\.[0-9]{2})?",
    expects="must be up to 8 digits, optionally a dot and two decimals", example="92.00", bad="123456789",
)  # fmt: skip
_CONNECTOR_ID = AN(1, 128, words="AN 1-128, initial response details from the acquirer").eg("380912345678901")

MIGRATION = structure(
    "Recurring migration (deprecated)", "Part B", "recurringMigration",
    ("paymentType", one_of("DB", "CD", "PA", words="A2, one of DB, CD, PA"), R, "", DEPRECATED_ROW),
    ("amount", _AMOUNT, O, "", DEPRECATED_ROW),
    ("requestTimestamp", with_words("yyyy-MM-dd HH:mm:ss of the initial request", DATE_TIME), C, "", DEPRECATED_ROW),
    ("connectorTxId1", _CONNECTOR_ID, C, "", DEPRECATED_ROW),
    ("connectorTxId2", _CONNECTOR_ID, C, "", DEPRECATED_ROW),
    ("connectorTxId3", _CONNECTOR_ID, C, "", DEPRECATED_ROW),
    note="With a registration (RG) that carries data of the INITIAL transaction.",
)  # fmt: skip

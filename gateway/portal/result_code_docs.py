"""Docs page of result codes: by family, with advice for the merchant and a text for the shopper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from gateway.core import advice, result_codes
from gateway.core.result_codes import ResultFamily

FAMILY_TITLES: Final[Mapping[ResultFamily, str]] = MappingProxyType(
    {
        ResultFamily.SUCCESS: "Success",
        ResultFamily.REVIEW: "Success, to be looked at",
        ResultFamily.PENDING: "Pending, for minutes",
        ResultFamily.PENDING_LONG: "Pending, for days",
        ResultFamily.REJECTED_BANK: "Declined by the bank",
        ResultFamily.SOFT_DECLINE: "Soft decline",
        ResultFamily.ADVICE_BLOCK: "Do not try this card again",
        ResultFamily.REJECTED_3DS: "3-D Secure failed",
        ResultFamily.REJECTED_3DS_RISK: "3-D Secure refused",
        ResultFamily.REJECTED_COMMUNICATION: "No word from the acquirer",
        ResultFamily.REJECTED_SYSTEM: "System faults",
        ResultFamily.REJECTED_ASYNC: "Ended by the shopper or the method",
        ResultFamily.REJECTED_EXTERNAL_RISK: "Refused by a risk check",
        ResultFamily.REJECTED_ADDRESS_RISK: "Refused by the address check",
        ResultFamily.REJECTED_BLACKLIST: "Refused by a block list",
        ResultFamily.REJECTED_RISK_VALIDATION: "Refused by a limit",
        ResultFamily.FORMAT: "Invalid requests",
        ResultFamily.CONFIGURATION: "Not set up",
        ResultFamily.REFERENCE: "Follow-ups that do not fit",
        ResultFamily.ACCOUNT: "Card and account data",
        ResultFamily.AMOUNT: "Amounts and currencies",
        ResultFamily.ADDRESS: "Addresses",
        ResultFamily.CONTACT: "Contact data",
        ResultFamily.RISK_MANAGEMENT: "Data for risk checks",
        ResultFamily.REGISTRATION: "Registrations",
        ResultFamily.JOB: "Schedules",
        ResultFamily.ACCOUNT_UPDATER: "Account updates",
        ResultFamily.CHARGEBACK: "Chargebacks",
        ResultFamily.RATING: "Old rating codes",
    }
)
"""Families in the order of the page: the most common first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeDoc:
    """One result code. ``advice``: '' if the family's advice covers it; ``shopper``: None if only the merchant can
    act."""

    code: str
    meaning: str
    status: int
    advice: str
    shopper: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyDoc:
    """A family of result codes with its advice."""

    anchor: str
    title: str
    status: int
    advice: str
    shopper: str | None
    codes: tuple[CodeDoc, ...]


@cache
def list_families() -> tuple[FamilyDoc, ...]:
    """Every family that has a code."""
    rows: dict[ResultFamily, list[CodeDoc]] = {family: [] for family in FAMILY_TITLES}
    for row in result_codes.RESULT_CODES.values():
        family = result_codes.find_result_family(row.code)
        own, shopper_text = advice.get_developer_advice(row.code), advice.get_shopper_message(row.code)
        rows[family].append(
            CodeDoc(
                code=row.code,
                meaning=row.description,
                status=result_codes.http_status(row.code),
                advice="" if own == advice.DEVELOPER_ADVICE[family] else own,
                shopper=shopper_text,
            )
        )
    return tuple(
        FamilyDoc(
            anchor=family.value,
            title=title,
            status=rows[family][0].status,
            advice=advice.DEVELOPER_ADVICE[family],
            shopper=advice.SHOPPER_MESSAGES.get(family),
            codes=tuple(rows[family]),
        )
        for family, title in FAMILY_TITLES.items()
        if rows[family]
    )


def filter_families(word: str) -> Iterator[FamilyDoc]:
    """The families with only the codes that mention ``word``, for readers without JavaScript."""
    needle = word.strip().lower()
    for family in list_families():
        found = tuple(row for row in family.codes if needle in f"{row.code} {row.meaning}".lower())
        if found:
            yield FamilyDoc(
                anchor=family.anchor,
                title=family.title,
                status=family.status,
                advice=family.advice,
                shopper=family.shopper,
                codes=found,
            )

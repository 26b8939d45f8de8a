"""The result codes as a page: by family, with what to do next and what the shopper may be told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from gateway import advice, results
from gateway.results import Family

TITLES: Final[Mapping[Family, str]] = MappingProxyType(
    {
        Family.SUCCESS: "Success",
        Family.REVIEW: "Success, to be looked at",
        Family.PENDING: "Pending, for minutes",
        Family.PENDING_LONG: "Pending, for days",
        Family.REJECTED_BANK: "Declined by the bank",
        Family.SOFT_DECLINE: "Soft decline",
        Family.ADVICE_BLOCK: "Do not try this card again",
        Family.REJECTED_3DS: "3-D Secure failed",
        Family.REJECTED_3DS_RISK: "3-D Secure refused",
        Family.REJECTED_COMMUNICATION: "No word from the acquirer",
        Family.REJECTED_SYSTEM: "System faults",
        Family.REJECTED_ASYNC: "Ended by the shopper or the method",
        Family.REJECTED_EXTERNAL_RISK: "Refused by a risk check",
        Family.REJECTED_ADDRESS_RISK: "Refused by the address check",
        Family.REJECTED_BLACKLIST: "Refused by a block list",
        Family.REJECTED_RISK_VALIDATION: "Refused by a limit",
        Family.FORMAT: "Invalid requests",
        Family.CONFIGURATION: "Not set up",
        Family.REFERENCE: "Follow-ups that do not fit",
        Family.ACCOUNT: "Card and account data",
        Family.AMOUNT: "Amounts and currencies",
        Family.ADDRESS: "Addresses",
        Family.CONTACT: "Contact data",
        Family.RISK_MANAGEMENT: "Data for risk checks",
        Family.REGISTRATION: "Registrations",
        Family.JOB: "Schedules",
        Family.ACCOUNT_UPDATER: "Account updates",
        Family.CHARGEBACK: "Chargebacks",
        Family.RATING: "Old rating codes",
    }
)
"""Families in the order of the page: what a newcomer meets first stands first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeDoc:
    """``advice`` is empty where the family's says it already; ``shopper`` is None where only the merchant can act."""

    code: str
    meaning: str
    status: int
    advice: str
    shopper: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyDoc:
    anchor: str
    title: str
    status: int
    advice: str
    shopper: str | None
    codes: tuple[CodeDoc, ...]


@cache
def families() -> tuple[FamilyDoc, ...]:
    """Every family that has a code."""
    rows: dict[Family, list[CodeDoc]] = {family: [] for family in TITLES}
    for row in results.RESULT_CODES.values():
        family = results.family(row.code)
        own, told = advice.advice(row.code), advice.shopper_text(row.code)
        rows[family].append(
            CodeDoc(
                code=row.code, meaning=row.description, status=results.http_status(row.code),
                advice="" if own == advice.ADVICE[family] else own, shopper=told,
            )
        )  # fmt: skip
    return tuple(
        FamilyDoc(
            anchor=family.value, title=title, status=rows[family][0].status, advice=advice.ADVICE[family],
            shopper=advice.SHOPPER.get(family), codes=tuple(rows[family]),
        )
        for family, title in TITLES.items()
        if rows[family]
    )  # fmt: skip


def matching(word: str) -> Iterator[FamilyDoc]:
    """The families with only the codes that speak of ``word``, for readers without JavaScript."""
    needle = word.strip().lower()
    for family in families():
        found = tuple(row for row in family.codes if needle in f"{row.code} {row.meaning}".lower())
        if found:
            yield FamilyDoc(
                anchor=family.anchor, title=family.title, status=family.status, advice=family.advice,
                shopper=family.shopper, codes=found,
            )  # fmt: skip

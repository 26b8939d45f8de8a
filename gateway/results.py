"""Result codes: the table, the families clients match by prefix, and the HTTP status that goes with a code.

The texts live in `data/result-codes.tsv` (code, group, meaning), one row per code. Nothing here makes a code
up: `result()` raises KeyError for a code that the table does not hold.
Source: Part B, Response parameters (result.code AN 2-11, result.description AN 0-255).
"""

import csv
import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

DESCRIPTION_MAX_CHARS: Final = 255
INTERNAL: Final = "INTERNAL"
EXTERNAL: Final = "EXTERNAL"
SUCCESS: Final[Mapping[str, str]] = {INTERNAL: "000.100.110", EXTERNAL: "000.100.112", "": "000.000.000"}
"""Test mode → the code of success; '' is the live environment (D18)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCode:
    """One row of the table. `group` is the table's own sorting, used when no family takes the code."""

    code: str
    group: str
    description: str


class Family(enum.Enum):
    """The families of section 3 of the decisions; a value is the name the table's group column uses."""

    SUCCESS = "success"
    REVIEW = "success-review"
    PENDING = "pending"
    PENDING_LONG = "pending-long"
    REJECTED_3DS = "rejected-3ds"
    REJECTED_BANK = "rejected-bank"
    REJECTED_COMMUNICATION = "rejected-communication"
    REJECTED_SYSTEM = "rejected-system"
    REJECTED_ASYNC = "rejected-async"
    SOFT_DECLINE = "soft-decline"
    REJECTED_EXTERNAL_RISK = "rejected-external-risk"
    REJECTED_ADDRESS_RISK = "rejected-address-risk"
    REJECTED_3DS_RISK = "rejected-3ds-risk"
    REJECTED_BLACKLIST = "rejected-blacklist"
    REJECTED_RISK_VALIDATION = "rejected-risk-validation"
    CONFIGURATION = "validation-config"
    REGISTRATION = "validation-registration"
    JOB = "validation-job"
    REFERENCE = "validation-reference"
    FORMAT = "validation-format"
    ADDRESS = "validation-address"
    CONTACT = "validation-contact"
    ACCOUNT = "validation-account"
    AMOUNT = "validation-amount"
    RISK_MANAGEMENT = "validation-risk"
    CHARGEBACK = "chargeback"
    # No prefix of the wire reaches these; only the group column leads here.
    RATING = "legacy-rating-success"
    ACCOUNT_UPDATER = "account-updater"
    ADVICE_BLOCK = "rejected-mac"


# First match wins, in this order. Clients of this wire carry these patterns in their code: do not tidy them.
FAMILY_PATTERNS: Final[tuple[tuple[Family, re.Pattern[str]], ...]] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (Family.SUCCESS, r"^(000\.000\.|000\.100\.1|000\.[36]|000\.400\.[1][12]0)"),
        (Family.REVIEW, r"^(000\.400\.0[^3]|000\.400\.100)"),
        (Family.PENDING, r"^(000\.200)"),
        (Family.PENDING_LONG, r"^(800\.400\.5|100\.400\.500)"),
        (Family.REJECTED_3DS, r"^(000\.400\.[1][0-9][1-9]|000\.400\.2)"),
        (Family.REJECTED_BANK, r"^(800\.[17]00|800\.800\.[123])"),
        (Family.REJECTED_COMMUNICATION, r"^(900\.[1234]00|000\.400\.030)"),
        (Family.REJECTED_SYSTEM, r"^(800\.[56]|999\.|600\.1|800\.800\.[84])"),
        (Family.REJECTED_ASYNC, r"^(100\.39[765])"),
        (Family.SOFT_DECLINE, r"^(300\.100\.100)"),
        (
            Family.REJECTED_EXTERNAL_RISK,
            r"^(100\.400\.[0-3]|100\.380\.100|100\.380\.11|100\.380\.4|100\.380\.5)",
        ),
        (Family.REJECTED_ADDRESS_RISK, r"^(800\.400\.1)"),
        (Family.REJECTED_3DS_RISK, r"^(800\.400\.2|100\.390)"),
        (Family.REJECTED_BLACKLIST, r"^(800\.[32])"),
        (Family.REJECTED_RISK_VALIDATION, r"^(800\.1[123456]0)"),
        (Family.CONFIGURATION, r"^(600\.[23]|500\.[12]|800\.121)"),
        (Family.REGISTRATION, r"^(100\.[13]50)"),
        (Family.JOB, r"^(100\.250|100\.360)"),
        (Family.REFERENCE, r"^(700\.[1345][05]0)"),
        (Family.FORMAT, r"^(200\.[123]|100\.[53][07]|800\.900|100\.[69]00\.500)"),
        (Family.ADDRESS, r"^(100\.800)"),
        (Family.CONTACT, r"^(100\.[97]00)"),
        (Family.ACCOUNT, r"^(100\.100|100\.2[01])"),
        (Family.AMOUNT, r"^(100\.55)"),
        (Family.RISK_MANAGEMENT, r"^(100\.380\.[23]|100\.380\.101)"),
        (Family.CHARGEBACK, r"^(000\.100\.2)"),
    )
)

# Families that answer HTTP 200 (D11). A chargeback's code tells its reason; recording it has worked.
_OK_FAMILIES: Final = frozenset(
    {
        Family.SUCCESS,
        Family.REVIEW,
        Family.PENDING,
        Family.PENDING_LONG,
        Family.CHARGEBACK,
        Family.RATING,
    }
)


def _load(path: Path) -> Mapping[str, ResultCode]:
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return MappingProxyType(
            {r["code"]: ResultCode(code=r["code"], group=r["group"], description=r["meaning"]) for r in rows}
        )


RESULT_CODES: Final[Mapping[str, ResultCode]] = _load(Path(__file__).parent / "data" / "result-codes.tsv")


ANY_CHARGEBACK: Final = re.compile(r"000\.100\.2[0-9]{2}")
NO_REASON: Final = "000.100.200"


def result(code: str) -> ResultCode:
    """The table's row for `code`. KeyError when there is none: our own code never makes one up.

    A chargeback's reason may have any two digits at its end (Part A, Errors, 4): one that the table does not explain
    has the words of a chargeback without a reason.
    """
    if code not in RESULT_CODES and ANY_CHARGEBACK.fullmatch(code):
        return replace(RESULT_CODES[NO_REASON], code=code)
    return RESULT_CODES[code]


def family(code: str) -> Family:
    """The first family whose prefix takes `code`, else its group's family. KeyError when neither knows it."""
    for name, pattern in FAMILY_PATTERNS:
        if pattern.match(code):
            return name
    return Family(RESULT_CODES[code].group)


def is_success(code: str) -> bool:
    return family(code) is Family.SUCCESS


def is_review(code: str) -> bool:
    """Accepted, but a person should look at it."""
    return family(code) is Family.REVIEW


def is_pending(code: str) -> bool:
    """Open, for minutes (shopper) or for days (bank)."""
    return family(code) in (Family.PENDING, Family.PENDING_LONG)


def is_approved(code: str) -> bool:
    """Success or review: the money is authorised or moved."""
    return family(code) in (Family.SUCCESS, Family.REVIEW)


def is_chargeback(code: str) -> bool:
    return family(code) is Family.CHARGEBACK


def http_status(code: str) -> int:
    """200 or 400 by family (D11). 401, 403, 404 and 429 come from the place that knows why."""
    return 200 if family(code) in _OK_FAMILIES else 400

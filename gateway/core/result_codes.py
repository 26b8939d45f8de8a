"""Result codes: the table, the families that clients match by prefix, and the HTTP status of a code.

The descriptions are in `data/result-codes.tsv` (code, group, meaning), one row per code. Only codes of the table are
used: `find_result_code()` raises KeyError for any other.
Source: Part B, Payment response (result.code AN 2-11, result.description AN 0-255).
"""

import csv
import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final

INTERNAL_TEST_MODE: Final = "INTERNAL"
EXTERNAL_TEST_MODE: Final = "EXTERNAL"
SUCCESS_CODES: Final[Mapping[str, str]] = {
    INTERNAL_TEST_MODE: "000.100.110",
    EXTERNAL_TEST_MODE: "000.100.112",
    "": "000.000.000",
}
"""Test mode → the code of success; '' is the live environment (D18)."""

# Codes that more than one package gives.
AWAITING_SHOPPER_CODE: Final = "000.200.000"
OUTCOME_UNKNOWN_CODE: Final = "000.200.001"
NOT_AUTHENTICATED_CODE: Final = "100.380.501"
SHOPPER_CANCELLED_CODE: Final = "100.396.101"
SHOPPER_TIMEOUT_CODE: Final = "100.396.103"
PAYMENT_NOT_FOUND_CODE: Final = "700.400.580"
CONCURRENT_UPDATE_CODE: Final = "800.120.402"
VAULT_ERROR_CODE: Final = "900.100.205"
TIMEOUT_REVERSED_CODE: Final = "900.100.301"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultCode:
    """One row of the table. `group` is the table's own grouping, used when no family matches the code."""

    code: str
    group: str
    description: str


class ResultFamily(enum.Enum):
    """Result families (rulings, section 3); the values are the names of the table's group column."""

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
    # No prefix leads to these, only the group column.
    RATING = "legacy-rating-success"
    ACCOUNT_UPDATER = "account-updater"
    ADVICE_BLOCK = "rejected-mac"


# First match wins, in this order. Clients of this API carry these patterns in their code: do not tidy them.
FAMILY_PATTERNS: Final[tuple[tuple[ResultFamily, re.Pattern[str]], ...]] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (ResultFamily.SUCCESS, r"^(000\.000\.|000\.100\.1|000\.[36]|000\.400\.[1][12]0)"),
        (ResultFamily.REVIEW, r"^(000\.400\.0[^3]|000\.400\.100)"),
        (ResultFamily.PENDING, r"^(000\.200)"),
        (ResultFamily.PENDING_LONG, r"^(800\.400\.5|100\.400\.500)"),
        (ResultFamily.REJECTED_3DS, r"^(000\.400\.[1][0-9][1-9]|000\.400\.2)"),
        (ResultFamily.REJECTED_BANK, r"^(800\.[17]00|800\.800\.[123])"),
        (ResultFamily.REJECTED_COMMUNICATION, r"^(900\.[1234]00|000\.400\.030)"),
        (ResultFamily.REJECTED_SYSTEM, r"^(800\.[56]|999\.|600\.1|800\.800\.[84])"),
        (ResultFamily.REJECTED_ASYNC, r"^(100\.39[765])"),
        (ResultFamily.SOFT_DECLINE, r"^(300\.100\.100)"),
        (
            ResultFamily.REJECTED_EXTERNAL_RISK,
            r"^(100\.400\.[0-3]|100\.380\.100|100\.380\.11|100\.380\.4|100\.380\.5)",
        ),
        (ResultFamily.REJECTED_ADDRESS_RISK, r"^(800\.400\.1)"),
        (ResultFamily.REJECTED_3DS_RISK, r"^(800\.400\.2|100\.390)"),
        (ResultFamily.REJECTED_BLACKLIST, r"^(800\.[32])"),
        (ResultFamily.REJECTED_RISK_VALIDATION, r"^(800\.1[123456]0)"),
        (ResultFamily.CONFIGURATION, r"^(600\.[23]|500\.[12]|800\.121)"),
        (ResultFamily.REGISTRATION, r"^(100\.[13]50)"),
        (ResultFamily.JOB, r"^(100\.250|100\.360)"),
        (ResultFamily.REFERENCE, r"^(700\.[1345][05]0)"),
        (ResultFamily.FORMAT, r"^(200\.[123]|100\.[53][07]|800\.900|100\.[69]00\.500)"),
        (ResultFamily.ADDRESS, r"^(100\.800)"),
        (ResultFamily.CONTACT, r"^(100\.[97]00)"),
        (ResultFamily.ACCOUNT, r"^(100\.100|100\.2[01])"),
        (ResultFamily.AMOUNT, r"^(100\.55)"),
        (ResultFamily.RISK_MANAGEMENT, r"^(100\.380\.[23]|100\.380\.101)"),
        (ResultFamily.CHARGEBACK, r"^(000\.100\.2)"),
    )
)

# Families that answer HTTP 200 (D11). A chargeback's code states its reason; recording it has worked.
_OK_FAMILIES: Final = frozenset(
    {
        ResultFamily.SUCCESS,
        ResultFamily.REVIEW,
        ResultFamily.PENDING,
        ResultFamily.PENDING_LONG,
        ResultFamily.CHARGEBACK,
        ResultFamily.RATING,
    }
)


def _load(path: Path) -> Mapping[str, ResultCode]:
    with path.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return MappingProxyType(
            {r["code"]: ResultCode(code=r["code"], group=r["group"], description=r["meaning"]) for r in rows}
        )


RESULT_CODES: Final[Mapping[str, ResultCode]] = _load(Path(__file__).parents[1] / "data" / "result-codes.tsv")


CHARGEBACK_CODE: Final = re.compile(r"000\.100\.2[0-9]{2}")
CHARGEBACK_WITHOUT_REASON: Final = "000.100.200"


def find_result_code(code: str) -> ResultCode:
    """The table's row for `code`. KeyError when there is none.

    A chargeback's reason may have any two digits at its end (Part A, Errors, 4): one that the table does not list
    gets the description of a chargeback without a reason.
    """
    if code not in RESULT_CODES and CHARGEBACK_CODE.fullmatch(code):
        return replace(RESULT_CODES[CHARGEBACK_WITHOUT_REASON], code=code)
    return RESULT_CODES[code]


def find_result_family(code: str) -> ResultFamily:
    """The first family whose prefix matches `code`, else its group's family. KeyError when neither applies."""
    for name, pattern in FAMILY_PATTERNS:
        if pattern.match(code):
            return name
    return ResultFamily(RESULT_CODES[code].group)


def is_success(code: str) -> bool:
    """Accepted, and nothing is left to review."""
    return find_result_family(code) is ResultFamily.SUCCESS


def is_review(code: str) -> bool:
    """Accepted, but a person should review it."""
    return find_result_family(code) is ResultFamily.REVIEW


def is_pending(code: str) -> bool:
    """Not final yet, for minutes (shopper) or for days (bank)."""
    return find_result_family(code) in (ResultFamily.PENDING, ResultFamily.PENDING_LONG)


def is_approved(code: str) -> bool:
    """Success or review: the money is authorised or moved."""
    return find_result_family(code) in (ResultFamily.SUCCESS, ResultFamily.REVIEW)


def is_chargeback(code: str) -> bool:
    """Codes of a chargeback or its reversal."""
    return find_result_family(code) is ResultFamily.CHARGEBACK


def http_status(code: str) -> int:
    """200 or 400 by family (D11). 401, 403, 404 and 429 are set where the reason is known."""
    return 200 if find_result_family(code) in _OK_FAMILIES else 400

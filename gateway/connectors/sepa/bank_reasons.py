"""Table of banks' rejection reasons: ISO 20022 external reason → our codes, before and after the money was booked, and
what becomes of the mandate.

UNLISTED_REASON for others: declined, or charged back, without a known reason. Presented again is what a later day may
change: a lack of money, a limit, a fault between banks. Source: EPC 131-17 (R-transactions of
SEPA direct debits); EPC 173-14 (guidance on reason codes, what the creditor does); ISO 20022 external code sets.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from django.utils.translation import gettext_noop as noop


class MandateEffect(enum.StrEnum):
    """What a reason does to the mandate: nothing (the money or the file was the matter); BLOCK: no collection until the
    merchant has amended or released it; END: it is no mandate, or no more."""

    NONE = ""
    BLOCK = "blocked"
    END = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class BankReason:
    """``declined``: code of a payment that was never booked; ``returned``: code of a chargeback.
    ``may_be_presented_again``: by a schedule, after some days (gateway.scheduling.dunning)."""

    code: str
    meaning: str
    declined: str
    returned: str
    mandate: MandateEffect = MandateEffect.NONE
    may_be_presented_again: bool = False


def _row(
    code: str,
    meaning: str,
    declined: str,
    returned: str,
    mandate: MandateEffect = MandateEffect.NONE,
    *,
    may_be_presented_again: bool = False,
) -> BankReason:
    return BankReason(
        code=code,
        meaning=meaning,
        declined=declined,
        returned=returned,
        mandate=mandate,
        may_be_presented_again=may_be_presented_again,
    )


_BLOCK, _END = MandateEffect.BLOCK, MandateEffect.END


UNLISTED_REASON: Final = _row("", noop("no reason known"), "800.100.100", "000.100.200")
BANK_REASONS: Final[Mapping[str, BankReason]] = MappingProxyType(
    {
        row.code: row
        for row in (
            _row("AC01", noop("account number wrong"), "800.100.201", "000.100.201", _BLOCK),
            _row("AC02", noop("debtor's account number wrong"), "800.100.201", "000.100.201", _BLOCK),
            _row("AC03", noop("creditor's account number wrong"), "800.100.190", "000.100.227"),
            _row("AC04", noop("account closed"), "800.100.202", "000.100.202", _BLOCK),
            _row("AC06", noop("account blocked"), "800.100.172", "000.100.208", _BLOCK),
            _row("AC13", noop("a consumer's account where a company's is needed"), "800.100.208", "000.100.201", _END),
            _row("AG01", noop("direct debits are forbidden on this account"), "800.100.208", "000.100.208", _BLOCK),
            _row("AG02", noop("operation or sequence type wrong"), "800.100.156", "000.100.229"),
            _row("AM01", noop("amount is zero"), "800.100.177", "000.100.210"),
            _row(
                "AM02",
                noop("amount is above the most allowed"),
                "800.100.162",
                "000.100.210",
                may_be_presented_again=True,
            ),
            _row("AM03", noop("currency is not taken"), "800.100.173", "000.100.210"),
            _row("AM04", noop("not enough money"), "800.100.203", "000.100.203", may_be_presented_again=True),
            _row("AM05", noop("collected twice"), "800.110.100", "000.100.224"),
            _row("AM09", noop("amount is not as agreed"), "800.100.174", "000.100.210"),
            _row("AM10", noop("sum of the file is wrong"), "800.100.156", "000.100.229"),
            _row("AM18", noop("count of the file is wrong"), "800.100.156", "000.100.229"),
            _row("ARDT", noop("returned already"), "800.100.191", "000.100.207"),
            _row("BE01", noop("holder does not fit the account"), "800.100.198", "000.100.201", _BLOCK),
            _row("BE04", noop("creditor's address is missing"), "800.100.190", "000.100.227"),
            _row("BE05", noop("creditor is not known"), "800.100.190", "000.100.227"),
            _row("CNOR", noop("creditor's bank takes no part"), "800.100.190", "000.100.227"),
            _row("CURR", noop("currency is wrong"), "800.100.173", "000.100.210"),
            _row("CUST", noop("the debtor's own decision"), "800.100.206", "000.100.206", _BLOCK),
            _row("DNOR", noop("debtor's bank takes no part"), "800.100.208", "000.100.201"),
            _row("DT01", noop("date is not valid"), "800.100.156", "000.100.229"),
            _row("DUPL", noop("sent twice"), "800.110.100", "000.100.224"),
            _row("ED05", noop("settlement failed"), "800.100.152", "000.100.226", may_be_presented_again=True),
            _row("FF01", noop("file's format is wrong"), "800.100.156", "000.100.229"),
            _row("FF05", noop("kind of direct debit is wrong"), "800.100.156", "000.100.229"),
            _row("FOCR", noop("returned after a request to cancel"), "100.396.201", "000.100.207"),
            _row("FR01", noop("fraud"), "800.100.158", "000.100.220", _BLOCK),
            _row("FRAD", noop("fraud"), "800.100.158", "000.100.220", _BLOCK),
            _row("LEGL", noop("legal decision"), "800.100.168", "000.100.208", _BLOCK),
            _row("MD01", noop("no mandate"), "800.100.205", "000.100.204", _END),
            _row("MD02", noop("mandate's particulars are missing or wrong"), "800.100.204", "000.100.204", _BLOCK),
            _row("MD06", noop("the debtor wants an authorized collection back"), "800.100.206", "000.100.206", _BLOCK),
            _row("MD07", noop("the debtor has died"), "800.100.213", "000.100.202", _END),
            _row("MS02", noop("the debtor says no, without a reason"), "800.100.206", "000.100.206", _BLOCK),
            # Where banks may not tell that money is short, for data protection, it stands for AM04 (EPC 173-14).
            _row("MS03", noop("no reason told"), "800.100.200", "000.100.200", may_be_presented_again=True),
            _row("NARR", noop("reason in words"), "800.100.200", "000.100.200"),
            _row("RC01", noop("bank identifier wrong"), "100.200.103", "000.100.201"),
            _row("RC04", noop("bank identifier wrong"), "100.200.103", "000.100.201"),
            _row("RF01", noop("reference is not unique"), "800.110.100", "000.100.224"),
            _row("RR01", noop("regulation: debtor's account missing"), "800.100.156", "000.100.229"),
            _row("RR02", noop("regulation: debtor's name or address missing"), "800.100.198", "000.100.229"),
            _row("RR03", noop("regulation: creditor's name or address missing"), "800.100.190", "000.100.227"),
            _row("RR04", noop("regulation"), "800.100.168", "000.100.208", _BLOCK),
            _row("SL01", noop("the debtor's bank offers a block that refused"), "800.100.208", "000.100.205", _BLOCK),
            _row("SVNR", noop("service was not rendered"), "800.100.206", "000.100.223"),
            _row("TECH", noop("technical fault"), "800.100.152", "000.100.299", may_be_presented_again=True),
            _row("TM01", noop("after the bank's cut-off"), "800.100.152", "000.100.229", may_be_presented_again=True),
        )
    }
)


def find_bank_reason(code: str) -> BankReason:
    """The row of a bank's reason; UNLISTED_REASON if it is not listed."""
    return BANK_REASONS.get(code, UNLISTED_REASON)

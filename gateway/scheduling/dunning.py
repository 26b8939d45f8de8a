"""Dunning: decides after a declined run whether and when to retry. Tables by advice code, result code and family.

The merchant advice code comes first: it is the issuer's instruction, and schemes charge for retries that it forbids.
Codes in none of the tables are retried by RETRY_DELAYS.
Source: docs/decisions/0022; Part B, Payment response (MerchantAdviceCode).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from gateway.connectors.sepa.bank_reasons import find_bank_reason
from gateway.core.result_codes import ResultFamily, find_result_family
from gateway.risk.retry_rules import ADVICE_WAITS
from gateway.scheduling.models import Job

RETRY_DELAYS: Final = (timedelta(days=3), timedelta(days=5), timedelta(days=7))
"""Delays after the first, second and third decline of a run."""
MAX_CONSECUTIVE_DECLINES: Final = len(RETRY_DELAYS) + 1
"""Declines in a row, over all runs, after which the job is suspended until the merchant reschedules."""
SOON_RETRY_DELAY: Final = timedelta(hours=1)
RESUBMITTED_CODES: Final = frozenset({"800.100.155", "800.100.203"})
"""Declines for a lack of money: a further try is a resubmission (Mastercard M208, Visa 3901). After any other decline
it stays the subscription's payment. Source: Visa, Stored Credential Transaction Framework, Resubmission; not checked
against the rule book."""
MAX_REPRESENTATIONS: Final = 2
"""How often a direct debit is presented again, by the first of RETRY_DELAYS: the debtor's bank charges for each return.
The SEPA rulebook has no number; two is Adyen's, https://docs.adyen.com/online-payments/auto-rescue/sepa."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DunningRetry:
    """Retry after the delay ``after``; None: by RETRY_DELAYS. ``most``: retries of a run."""

    after: timedelta | None = None
    most: int = len(RETRY_DELAYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class DunningStop:
    """No retry, and no further run until the merchant reschedules."""

    reason: Job.Reason


DunningDecision = DunningRetry | DunningStop
_PLAN: Final = DunningRetry()
_AGAIN: Final = DunningRetry(most=MAX_REPRESENTATIONS)
_NEVER: Final = DunningStop(reason=Job.Reason.DO_NOT_RETRY)
_UPDATE: Final = DunningStop(reason=Job.Reason.CARD_EXPIRED)
_CONFIRM: Final = DunningStop(reason=Job.Reason.AUTHENTICATION_NEEDED)
_SET_UP: Final = DunningStop(reason=Job.Reason.NOT_SET_UP)

DUNNING_BY_ADVICE_CODE: Final[Mapping[str, DunningDecision]] = {
    "01": _UPDATE,  # new account data may be had
    "03": _NEVER,
    "04": _SET_UP,  # the token does not meet what its type requires
    "05": _PLAN,  # the negotiated amount was not approved
    "21": _NEVER,  # the cardholder cancelled the payments
    "22": _SET_UP,  # the merchant does not qualify for the product code
    **{advice: DunningRetry(after=asked.wait) for advice, asked in ADVICE_WAITS.items()},  # 02, 24 to 30
    "40": _NEVER,  # a prepaid card that cannot be charged again
    "41": _NEVER,  # a virtual card for one use
    "42": _NEVER,  # the sanctions score is over the limit
    "43": _PLAN,  # a virtual card for several uses
}
"""Mastercard's DE48 subelement 84, merchant advice codes. The manual was not at hand; quoted by
https://developer.paypal.com/braintree/docs/reference/general/merchant-responses/merchant-advice-codes (01 to 43),
https://docs.rapyd.net/en/merchant-advice-codes.md (05, 22), the 72 hours of 02 by
https://docs.solidgate.com/payments/card-payments/recover-revenue/merchant-advice-codes, 42 by
https://developer.cybersource.com/docs/cybs/en-us/api-fields/reference/all/so/api-fields/cc-auth-reply-merchant-advice-code-raw.html"""
DUNNING_BY_RESULT_CODE: Final[Mapping[str, DunningDecision]] = {
    "100.100.303": _UPDATE,
    "800.100.157": _UPDATE,
    "300.100.100": _CONFIRM,
    # Our own guard of the schemes' retry rules (gateway.risk.retry_rules): what an issuer has stopped would be
    # stopped again.
    "700.600.002": _PLAN,  # later: its wait or its window of days may be over by then
    "700.601.001": _CONFIRM,
    "700.601.003": _NEVER,
    # The cardholder stopped this payment order (Visa R0) or all of the merchant's (R1, R3): never again.
    "800.100.500": _NEVER,
    "800.100.501": _NEVER,
    **dict.fromkeys(
        (
            "800.100.150", "800.100.151", "800.100.154", "800.100.158", "800.100.159", "800.100.160", "800.100.165",
            "800.100.168", "800.100.170", "800.100.171", "800.100.172", "800.100.500", "800.100.501",
        ),
        _NEVER,
    ),
    # Direct debits that came back: only for a lack of funds (800.100.203) is collected again. SEPA rulebook, 4.3.
    **dict.fromkeys(
        (
            "800.100.201", "800.100.202", "800.100.204", "800.100.205", "800.100.206", "800.100.207", "800.100.208",
            "800.100.213",
        ),
        _NEVER,
    ),
    **dict.fromkeys(("800.100.169", "800.100.173", "800.100.175"), _SET_UP),
    # Direct debits: each return costs a fee, and a collection without a mandate is unauthorized. What may be presented
    # again is in the table of the banks' reasons, which is asked first (EPC 173-14, guidance on reason codes).
    **dict.fromkeys(
        (
            "100.396.201", "800.100.191", "800.100.198", "800.100.200", "800.100.201", "800.100.202", "800.100.204",
            "800.100.205", "800.100.206", "800.100.207", "800.100.208", "800.100.213", "800.110.100",
        ),
        _NEVER,
    ),
    **dict.fromkeys(("800.100.156", "800.100.174", "800.100.177", "800.100.190"), _SET_UP),
}  # fmt: skip
DUNNING_BY_FAMILY: Final[Mapping[ResultFamily, DunningDecision]] = {
    ResultFamily.REJECTED_COMMUNICATION: DunningRetry(after=SOON_RETRY_DELAY),
    ResultFamily.REJECTED_SYSTEM: DunningRetry(after=SOON_RETRY_DELAY),
    ResultFamily.REJECTED_3DS: _CONFIRM,
    ResultFamily.SOFT_DECLINE: _CONFIRM,
    ResultFamily.REJECTED_BLACKLIST: _NEVER,
    ResultFamily.ADVICE_BLOCK: _NEVER,
    ResultFamily.CONFIGURATION: _SET_UP,
    ResultFamily.REGISTRATION: DunningStop(reason=Job.Reason.REGISTRATION_GONE),
    ResultFamily.REFERENCE: DunningStop(reason=Job.Reason.AGREEMENT_ENDED),
    ResultFamily.ACCOUNT: _UPDATE,
    ResultFamily.FORMAT: _SET_UP,
    ResultFamily.AMOUNT: _SET_UP,
}


def decide_debit_dunning(code: str, reason: str) -> DunningDecision:
    """The dunning decision on a direct debit that was declined, by the bank's reason (an ISO 20022 external code), else
    by result code. Reasons that may be presented again: gateway.connectors.sepa.bank_reasons; one that is not listed
    may be a rule or a mandate's, and stops."""
    row = find_bank_reason(reason)
    if row.may_be_presented_again:
        return _AGAIN
    if reason and not row.code:
        return _NEVER
    decision = decide_dunning(code, "")
    return _AGAIN if decision == _PLAN else decision


def decide_dunning(code: str, advice: str) -> DunningDecision:
    """The dunning decision on a decline by result code and merchant advice code (empty: the issuer sent none)."""
    found = DUNNING_BY_ADVICE_CODE.get(advice) or DUNNING_BY_RESULT_CODE.get(code)
    return found if found is not None else DUNNING_BY_FAMILY.get(find_result_family(code), _PLAN)


def get_retry_delay(decision: DunningRetry, attempt: int) -> timedelta | None:
    """The delay until the retry after try number ``attempt`` (from 1); None when there are no more retries."""
    if attempt > decision.most:
        return None
    return decision.after if decision.after is not None else RETRY_DELAYS[attempt - 1]

"""What follows a declined run: another try, and when, or none. One table by advice code, one by result code, one by
family; what none of them names follows the plan.

The merchant advice code is the issuer's word, and goes first: schemes charge for tries that it forbids.
Source: docs/decisions/0022; Part B, Response parameters (MerchantAdviceCode).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from gateway.results import Family, family
from gateway.scheduling.models import Job

PLAN: Final = (timedelta(days=3), timedelta(days=5), timedelta(days=7))
"""After the first decline, the second and the third."""
MOST_DECLINED: Final = len(PLAN) + 1
"""Charges declined in a row, over all runs, after which the job waits for the merchant."""
SOON: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Try again, not before ``after`` has passed; None: as the plan says."""

    after: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """No further try, and no further run until the merchant reschedules."""

    reason: Job.Reason


Course = Retry | Stop
_PLAN: Final = Retry()
_NEVER: Final = Stop(reason=Job.Reason.DO_NOT_RETRY)
_UPDATE: Final = Stop(reason=Job.Reason.CARD_EXPIRED)
_CONFIRM: Final = Stop(reason=Job.Reason.AUTHENTICATION_NEEDED)
_SET_UP: Final = Stop(reason=Job.Reason.NOT_SET_UP)

BY_ADVICE: Final[Mapping[str, Course]] = {
    "01": _UPDATE,  # new account data may be had
    "02": Retry(after=timedelta(hours=72)),
    "03": _NEVER,
    "21": _NEVER,  # the cardholder cancelled the payments
    "24": Retry(after=timedelta(hours=1)),
    "25": Retry(after=timedelta(hours=24)),
    "26": Retry(after=timedelta(days=2)),
    "27": Retry(after=timedelta(days=4)),
    "28": Retry(after=timedelta(days=6)),
    "29": Retry(after=timedelta(days=8)),
    "30": Retry(after=timedelta(days=10)),
    "40": _NEVER,  # a prepaid card that cannot be charged again
    "41": _NEVER,  # a virtual card for one use
}
BY_CODE: Final[Mapping[str, Course]] = {
    "100.100.303": _UPDATE,
    "800.100.157": _UPDATE,
    "300.100.100": _CONFIRM,
    "700.600.002": Retry(after=timedelta(hours=72)),
    "700.601.001": _CONFIRM,
    "700.601.003": _NEVER,
    **dict.fromkeys(
        (
            "800.100.150", "800.100.151", "800.100.154", "800.100.158", "800.100.159", "800.100.160", "800.100.165",
            "800.100.168", "800.100.170", "800.100.171", "800.100.172",
        ),
        _NEVER,
    ),
    **dict.fromkeys(("800.100.169", "800.100.173", "800.100.175"), _SET_UP),
}  # fmt: skip
BY_FAMILY: Final[Mapping[Family, Course]] = {
    Family.REJECTED_COMMUNICATION: Retry(after=SOON),
    Family.REJECTED_SYSTEM: Retry(after=SOON),
    Family.REJECTED_3DS: _CONFIRM,
    Family.SOFT_DECLINE: _CONFIRM,
    Family.REJECTED_BLACKLIST: _NEVER,
    Family.ADVICE_BLOCK: _NEVER,
    Family.CONFIGURATION: _SET_UP,
    Family.REGISTRATION: Stop(reason=Job.Reason.REGISTRATION_GONE),
    Family.REFERENCE: Stop(reason=Job.Reason.AGREEMENT_ENDED),
    Family.ACCOUNT: _UPDATE,
    Family.FORMAT: _SET_UP,
    Family.AMOUNT: _SET_UP,
}


def course_of(code: str, advice: str) -> Course:
    """What follows a decline with this result code and merchant advice code (empty: the issuer gave none)."""
    found = BY_ADVICE.get(advice) or BY_CODE.get(code)
    return found if found is not None else BY_FAMILY.get(family(code), _PLAN)


def wait(course: Retry, attempt: int) -> timedelta | None:
    """How long until the try after number ``attempt``; None when the plan has no further one."""
    if attempt > len(PLAN):
        return None
    return course.after if course.after is not None else PLAN[attempt - 1]

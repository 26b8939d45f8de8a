"""The schemes' retry rules: stops an attempt with a card that its issuer or scheme forbids, before the acquirer call.

Declines of a card at a merchant are kept for MAX_RULE_DAYS. They are read in the statement that begins the next payment
with that card and written in the one that completes a declined one, so an approved payment costs no round trip and
writes nothing. Parallel attempts do not see each other. Dunning never retries the codes of the payments it stops.
Source: docs/decisions/0067.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final
from uuid import UUID

from gateway.core.result_codes import ResultFamily, find_result_family
from gateway.db.statement import WriteStatement
from gateway.models import CardDecline
from gateway.risk.evaluation import RiskOutcome, RiskReason, RiskVerdict

RETRY_LATER_CODE: Final = "700.600.002"
CARDHOLDER_NEEDED_CODE: Final = "700.601.001"
NEVER_AGAIN_CODE: Final = "700.601.003"
MAX_RULE_DAYS: Final = 30
NEVER_AGAIN, NOT_BY_MERCHANT = "card", "merchant"
"""Stops: of every attempt, and of those that the merchant initiates."""
STOP_CODES: Final[Mapping[str, str]] = MappingProxyType(
    {NEVER_AGAIN: NEVER_AGAIN_CODE, NOT_BY_MERCHANT: CARDHOLDER_NEEDED_CODE}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerStop:
    """An issuer's answer after which a card is not sent again. ``advice``: the merchant advice code; ``result``: our
    result code of the decline. ``stops``: NEVER_AGAIN or NOT_BY_MERCHANT. ``uncertain``: the rule is the network's, its
    reach is our reading."""

    network: str
    stops: str
    source: str
    advice: str = ""
    result: str = ""
    uncertain: bool = False


_VISA_CATEGORY_1: Final = (
    "Visa Rules, decline category 1, the issuer will never approve: 04, 07, 12, 14, 15, 41, 43, 46, 57, R0, R1, R3; "
    "quoted by https://www.checkout.com/docs/developer-resources/codes/visa-response-codes"
)
_VISA_STOP: Final = (
    "Visa, stop payment service, of recurring payments: R0 one payment, R1 all of the merchant, R3 all merchants; "
    "quoted by https://developers.tabapay.com/docs/visa-response-code-updates"
)
_ADVICE: Final = (
    "Mastercard, merchant advice codes 03 do not try again, 21 stop recurring payment; quoted by "
    "https://developer.paypal.com/braintree/docs/reference/general/merchant-responses/merchant-advice-codes"
)
_EXCESSIVE: Final = "https://developers.tabapay.com/docs/excessive-retry-rules"

ISSUER_STOPS: Final = (
    # Of every network: some processors give these codes for declines of others, too.
    IssuerStop(network="", advice="03", stops=NEVER_AGAIN, source=_ADVICE),
    IssuerStop(network="", advice="21", stops=NOT_BY_MERCHANT, source=_ADVICE),
    IssuerStop(network="Visa", result="800.100.171", stops=NEVER_AGAIN, source=_VISA_CATEGORY_1),  # 04, 07
    IssuerStop(network="Visa", result="800.100.151", stops=NEVER_AGAIN, source=_VISA_CATEGORY_1),  # 14, 15
    IssuerStop(network="Visa", result="800.100.165", stops=NEVER_AGAIN, source=_VISA_CATEGORY_1),  # 41
    IssuerStop(network="Visa", result="800.100.159", stops=NEVER_AGAIN, source=_VISA_CATEGORY_1),  # 43
    IssuerStop(network="Visa", result="800.100.172", stops=NEVER_AGAIN, source=_VISA_CATEGORY_1),  # 46
    # 12 and 57 are of category 1, and speak of this kind of payment: the cardholder may be allowed another kind.
    IssuerStop(network="Visa", result="800.100.170", stops=NOT_BY_MERCHANT, source=_VISA_CATEGORY_1, uncertain=True),
    IssuerStop(network="", result="800.100.500", stops=NOT_BY_MERCHANT, source=_VISA_STOP),
    IssuerStop(network="", result="800.100.501", stops=NOT_BY_MERCHANT, source=_VISA_STOP),
)
"""A row without a network is for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryLimit:
    """The declines of a card at a merchant within ``window`` after which it is not sent again."""

    network: str
    declines: int
    window: timedelta
    source: str


# The networks' manuals were not at hand: each row names what quotes them.
RETRY_LIMITS: Final = (
    RetryLimit(
        network="Visa", declines=15, window=timedelta(days=30),
        source="Visa Rules, excessive reattempts, categories 2 to 4: 15, and 20 since May 2025, which not every "
        "acquirer has taken over; quoted by " + _EXCESSIVE +
        " and https://docs.cielo.com.br/ecommerce-cielo-en/changelog/new-limit-for-visa-retries-starting-may-25-2025",
    ),
    RetryLimit(
        network="Mastercard", declines=10, window=timedelta(hours=24),
        source="Mastercard, Transaction Processing Excellence, excessive attempts; 7 in some countries, Brazil among "
        "them; quoted by " + _EXCESSIVE,
    ),
    RetryLimit(
        network="Mastercard", declines=35, window=timedelta(days=30),
        source="Mastercard, Transaction Processing Excellence, excessive attempts; quoted by https://developer.paypal.com/"
        "braintree/articles/risk-and-security/compliance/network-updates/2023/mastercard-f23",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceWait:
    """How long an issuer's advice asks to wait. ``stops``: NEVER_AGAIN holds until then for every attempt with the
    card, NOT_BY_MERCHANT for those that the merchant initiates."""

    wait: timedelta
    stops: str = NEVER_AGAIN


ADVICE_WAITS: Final[Mapping[str, AdviceWait]] = MappingProxyType(
    {
        "02": AdviceWait(wait=timedelta(hours=72), stops=NOT_BY_MERCHANT),
        "24": AdviceWait(wait=timedelta(hours=1)),
        "25": AdviceWait(wait=timedelta(hours=24)),
        "26": AdviceWait(wait=timedelta(days=2)),
        "27": AdviceWait(wait=timedelta(days=4)),
        "28": AdviceWait(wait=timedelta(days=6)),
        "29": AdviceWait(wait=timedelta(days=8)),
        "30": AdviceWait(wait=timedelta(days=10)),
    }
)
"""Mastercard's merchant advice codes that say when to try again; an earlier try can cost a fee. The manual was not at
hand; quoted by https://docs.everonet.com/en-us/gateway/developer-portal/appendix/mastercard-merchant-advice-code, the
72 hours of 02 by https://docs.solidgate.com/payments/card-payments/recover-revenue/merchant-advice-codes."""

NETWORK_OF_BRAND: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(("VISA", "VISADEBIT", "VISAELECTRON", "VPAY"), "Visa")
    | dict.fromkeys(("MASTER", "MASTERDEBIT", "MAESTRO"), "Mastercard")
)
_JUDGED: Final = frozenset({ResultFamily.REJECTED_BANK, ResultFamily.ACCOUNT, ResultFamily.SOFT_DECLINE})
"""Families of declines that an issuer gave."""
COUNTED_BESIDES: Final[Mapping[str, frozenset[str]]] = MappingProxyType({"Visa": frozenset({"06", "91", "92", "96"})})
"""Network → response codes (DE39) that say nothing of the card and count as declines at the network all the same. Visa:
91 and 96 are of category 2, those that are in no list of category 4, and all but category 1 count.
Source: https://www.checkout.com/docs/developer-resources/codes/visa-response-codes."""

_SELECT_DECLINES: Final = """
SELECT concat_ws(' ', count(*) FILTER (WHERE at > %s::timestamptz), count(*),
    count(*) FILTER (WHERE stops = 'card' AND retry_after IS NULL),
    count(*) FILTER (WHERE stops = 'merchant' AND retry_after IS NULL),
    count(*) FILTER (WHERE stops = 'card' AND retry_after > %s::timestamptz),
    count(*) FILTER (WHERE stops = 'merchant' AND retry_after > %s::timestamptz))
FROM gateway_carddecline WHERE merchant_id = %s::uuid AND key = %s::bytea AND at > %s::timestamptz
    AND at <= %s::timestamptz
"""
_RETURNED: Final = "declines"


@dataclass(slots=True, kw_only=True)
class RetryWatch:
    """One attempt with a card. ``key``: the card's fingerprint; the counts are read when the payment begins."""

    merchant: UUID
    payment: UUID
    key: bytes
    network: str
    merchant_initiated: bool
    now: datetime
    day: int = 0
    month: int = 0
    never: int = 0
    not_by_merchant: int = 0
    waits: int = 0
    waits_of_merchant: int = 0

    def add_count_query(self, write: WriteStatement) -> None:
        """Query the card's declines in the statement that begins the payment."""
        since = self.now - timedelta(days=MAX_RULE_DAYS)
        now = self.now
        values = (now - timedelta(days=1), now, now, self.merchant, self.key, since, now)
        write.returning(_RETURNED, _SELECT_DECLINES, values)

    def read_counts(self, write: WriteStatement) -> None:
        """Read the counts that the begin statement returned."""
        if _RETURNED in write.returned:
            counts = (int(number) for number in write.returned[_RETURNED].split())
            self.day, self.month, self.never, self.not_by_merchant, self.waits, self.waits_of_merchant = counts

    def verdict(self) -> RiskVerdict | None:
        """The decline of an attempt that a rule forbids, or None."""
        if self.never:
            return _decline(STOP_CODES[NEVER_AGAIN], "the issuer said not to try this card again")
        if self.not_by_merchant and self.merchant_initiated:
            return _decline(STOP_CODES[NOT_BY_MERCHANT], "the cardholder or the issuer stopped the merchant's payments")
        if self.waits or (self.waits_of_merchant and self.merchant_initiated):
            return _decline(RETRY_LATER_CODE, "the issuer said to try this card again later")
        for limit in RETRY_LIMITS:
            made = self.day if limit.window == timedelta(days=1) else self.month
            if limit.network == self.network and made >= limit.declines:
                hours = int(limit.window.total_seconds() // 3600)
                return _decline(RETRY_LATER_CODE, f"{made} declines of this card in {hours} hours")
        return None

    def verdict_after_decline(self) -> RiskVerdict | None:
        """The verdict on one more attempt of this payment, once the decline of the one before counts too."""
        return replace(self, day=self.day + 1, month=self.month + 1).verdict()

    def add_decline(self) -> None:
        """Count a decline of this payment that was recorded, for the verdict on one more attempt."""
        self.day, self.month = self.day + 1, self.month + 1

    def count(
        self, write: WriteStatement, code: str, advice: str, response: str = "", *, of_issuer: bool = True
    ) -> bool:
        """Record a decline that the issuer gave, or that its network counts besides, in the statement that completes
        the payment; False for what is neither. As :meth:`is_counted`; ``advice``: the merchant advice code."""
        if not self.is_counted(code, response, of_issuer=of_issuer):
            return False
        stops, until = find_issuer_stop(self.network, code, advice), None
        if not stops and (asked := ADVICE_WAITS.get(advice)) is not None:
            stops, until = asked.stops, self.now + asked.wait
        row = {"payment": self.payment, "merchant_id": self.merchant, "key": self.key, "at": self.now}
        write.insert(CardDecline, **row, stops=stops, retry_after=until)
        return True

    def is_counted(self, code: str, response: str, *, of_issuer: bool) -> bool:
        """Whether a result is a decline that the issuer gave, or that its network counts besides. ``response``: the
        acquirer's own code; ``of_issuer``: False where the result may stand for an earlier decline."""
        family = find_result_family(code)
        if family is ResultFamily.REJECTED_COMMUNICATION and response in COUNTED_BESIDES.get(self.network, ()):
            return True
        return of_issuer and family in _JUDGED


def find_issuer_stop(network: str, code: str, advice: str) -> str:
    """NEVER_AGAIN, NOT_BY_MERCHANT or '' for a decline by result code and merchant advice code."""
    found = {
        row.stops
        for row in ISSUER_STOPS
        if row.network in ("", network)
        and ((row.advice and row.advice == advice) or (row.result and row.result == code))
    }
    return next((stop for stop in (NEVER_AGAIN, NOT_BY_MERCHANT) if stop in found), "")


def is_retry_forbidden(network: str, code: str, advice: str) -> bool:
    """Whether the issuer's decline, by result code and merchant advice code, forbids another attempt by the cardholder,
    for now or for good."""
    waiting = ADVICE_WAITS.get(advice)
    return NEVER_AGAIN in (find_issuer_stop(network, code, advice), waiting.stops if waiting is not None else "")


def resolve_network(brand: str) -> str:
    """The network whose rules a card brand's payments follow; '' where the table has none."""
    return NETWORK_OF_BRAND.get(brand, "")


def _decline(code: str, why: str) -> RiskVerdict:
    reason = RiskReason(rule="schemes' retry rules", why=why, verdict="decline")
    return RiskVerdict(outcome=RiskOutcome.DECLINE, code=code, reasons=(reason,))

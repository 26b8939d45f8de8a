"""A made-up market: shoppers with cards of the simulated issuers, what they buy, and what became of each attempt.

Everything follows from a seed, a number of attempts and a period: the same three make the same market. Answers are the
simulated issuers' (gateway.connectors.simulator.issuers). The tables below are published in docs/market.md. Pure:
reporting.simulator.market_rows writes what is planned here. Source: docs/decisions/0106.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from gateway.connectors.simulator.issuers import (
    EXPIRED_CARD,
    ISSUERS_BY_BIN,
    STOLEN_CARD,
    IssuerAnswer,
    IssuerQuestion,
    SimulatedIssuer,
    build_issuer_card,
    simulate_issuer_answer,
)
from gateway.core.result_codes import is_approved

MARKET_ISSUERS: Final[Mapping[str, int]] = MappingProxyType(
    {"400011": 20, "400012": 18, "400013": 14, "400014": 8, "520011": 12, "520012": 14, "520013": 8, "370011": 6}
)
"""BIN → of 100 shoppers, how many have a card of it."""
MARKET_HOURS: Final = (2, 1, 1, 1, 1, 2, 4, 6, 7, 7, 7, 8, 8, 7, 7, 7, 8, 9, 11, 13, 13, 10, 6, 3)
"""How shoppers' purchases fall on the hours of a day (UTC)."""
MARKET_ACCOUNTS: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(
    {"MARKET-NORTH": MappingProxyType({}), "MARKET-SOUTH": MappingProxyType({"MASTER": 6})}
)
"""Acquirer account → of 100 attempts with a brand, how many are lost there that the issuer would have approved. Each
account takes every second purchase."""
MARKET_PRICES: Final[Mapping[str, tuple[Decimal, Decimal]]] = MappingProxyType(
    {"MARKET-NORTH": (Decimal("1.20"), Decimal("0.10")), "MARKET-SOUTH": (Decimal("0.90"), Decimal("0.08"))}
)
"""Acquirer account → what a payment costs there: percent of its amount, and EUR. An invented price list: whatever the
amount, the account that loses attempts is the cheaper one."""
ACCOUNT_REFUSED: Final = ("800.100.152", "05", "")
"""What an account answers that loses an attempt: no issuer spoke, so there is no merchant advice code, and another
account may be asked (gateway.payments.cascade)."""
SUBSCRIPTION_PERCENT: Final = 15
"""Of 100 purchases, how many are a merchant's own charges of a stored card, all of them at SUBSCRIPTION_HOUR."""
SUBSCRIPTION_HOUR: Final = 3
SUBSCRIPTION_LADDER: Final = (timedelta(days=3), timedelta(days=5), timedelta(days=7))
"""When a declined charge is tried again, unless the issuer said not to."""
AUTHENTICATED_PERCENT: Final = 30
"""Of 100 shopper's attempts, how many go through 3-D Secure."""
EXEMPTED_PERCENT: Final = 20
"""Of 100 others, how many ask for an exemption."""
CHALLENGED_PERCENT: Final = 30
"""Of 100 authentications, how many ask the shopper."""
CHALLENGE_LOST_PERCENT: Final = 12
"""Of 100 challenges, how many shoppers do not pass."""
REPEATED_PERCENT: Final = 45
"""Of 100 shoppers whose attempt was declined, how many try again, at most MAX_MARKET_ATTEMPTS times in all."""
OTHER_CARD_PERCENT: Final = 40
"""Of 100 that try again, how many take another card."""
MAX_MARKET_ATTEMPTS: Final = 3
CHECKOUT_PERCENT: Final = 60
"""Of 100 shopper's purchases, how many are made in a checkout."""
ABANDONED_PERCENT: Final = 25
"""Beside 100 checkouts with an attempt, how many are opened and left without one."""
AUTHORIZED_PERCENT: Final = 10
"""Of 100 shopper's attempts, how many are authorizations that are captured a day later."""
REFUNDED_PERCENT: Final = 2
LOW_VALUE_CENTS: Final = 3_000
PURCHASES_PER_SHOPPER: Final = 5
MARKET_CURRENCY: Final = "EUR"
CHALLENGE_LOST_CODE: Final = "100.380.401"
"""The answer of a challenge that the shopper did not pass."""
DAYS_PER_MONTH: Final = 30
MAX_MARKET_PAYMENTS: Final = 2_000_000
MAX_MARKET_MONTHS: Final = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketAttempt:
    """One attempt to pay. ``order``: the purchase it belongs to; ``place``: 0 for the first attempt of it; ``path``:
    none, frictionless, challenge or left (the shopper did not pass, and no acquirer was asked); ``exemption``: a value
    of threeDSecure.exemptionFlag or ''; ``checkout``: whether the purchase is made in one."""

    order: int
    place: int
    at: datetime
    shopper: int
    card: str = field(repr=False)
    issuer: SimulatedIssuer
    account: str
    cents: int
    authorizes: bool
    merchant_initiated: bool
    checkout: bool
    path: str
    exemption: str
    answer: IssuerAnswer
    follow_ups: int = 0

    @property
    def approved(self) -> bool:
        return is_approved(self.answer.code)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketFollowUp:
    """A capture (CP) or refund (RF) of the whole of an approved attempt, which ``order`` and ``place`` name."""

    order: int
    place: int
    at: datetime
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AbandonedCheckout:
    """A checkout in which no attempt was made."""

    at: datetime
    cents: int


MarketEvent = MarketAttempt | MarketFollowUp | AbandonedCheckout
_EXEMPTIONS: Final[Mapping[str, str]] = MappingProxyType({"01": "LOW_VALUE", "02": "LOW_RISK"})


class MarketPlan:
    """The events of one market, in the order of their times. ``count``: attempts in all; the market has
    DAYS_PER_MONTH days for each month from ``start``. Raises ValueError."""

    def __init__(self, *, seed: int, count: int, months: int, start: datetime) -> None:
        if not 1 <= count <= MAX_MARKET_PAYMENTS:
            raise ValueError(f"payments must be 1 to {MAX_MARKET_PAYMENTS}, not {count}")
        if not 1 <= months <= MAX_MARKET_MONTHS:
            raise ValueError(f"months must be 1 to {MAX_MARKET_MONTHS}, not {months}")
        self.seed = seed
        self.start = start
        self.days = months * DAYS_PER_MONTH
        self.end = start + timedelta(days=self.days)
        self._count = count
        self._draws = random.Random(seed)  # noqa: S311 - made-up trade, the same for the same seed
        self._shoppers = max(10, count // PURCHASES_PER_SHOPPER)
        self._waiting: list[tuple[datetime, int, MarketEvent | _LaterAttempt]] = []
        self._ties = 0
        self._orders = 0

    def events(self) -> Iterator[MarketEvent]:
        """All events. The last attempts of a day's purchases count towards its share of ``count``."""
        made = 0
        for day in range(self.days):
            share = self._count * (day + 1) // self.days
            midnight = self.start + timedelta(days=day)
            found: list[MarketEvent] = []
            made = self._take_due(midnight + timedelta(days=1), found, made, share)
            while made < share:
                made = self._buy(midnight, found, made, share)
            found.sort(key=lambda event: event.at)
            yield from found

    def _take_due(self, until: datetime, found: list[MarketEvent], made: int, share: int) -> int:
        """Follow-ups and repeated charges that fall before ``until``; those beyond the day's share wait for the
        next."""
        later = []
        while self._waiting and self._waiting[0][0] < until:
            at, tie, event = heapq.heappop(self._waiting)
            if not isinstance(event, _LaterAttempt):
                found.append(event)
            elif made < share:
                made += 1
                self._attempt(event, found)
            else:
                later.append((at + timedelta(days=1), tie, replace(event, at=at + timedelta(days=1))))
        for one in later:
            heapq.heappush(self._waiting, one)
        return made

    def _buy(self, midnight: datetime, found: list[MarketEvent], made: int, share: int) -> int:
        """One purchase with the attempts that a shopper makes in a row."""
        draws = self._draws
        self._orders += 1
        charged = self._percent(SUBSCRIPTION_PERCENT)
        hour = SUBSCRIPTION_HOUR if charged else draws.choices(range(24), MARKET_HOURS)[0]
        shopper = draws.randrange(self._shoppers)
        later = _LaterAttempt(
            order=self._orders,
            place=0,
            at=midnight + timedelta(hours=hour, seconds=draws.randrange(3600)),
            shopper=shopper,
            card=self._card(shopper, 0),
            cents=max(199, min(90_000, int(draws.lognormvariate(8.3, 0.9)))),
            merchant_initiated=charged,
            checkout=not charged and self._percent(CHECKOUT_PERCENT),
        )
        if later.checkout and self._percent(ABANDONED_PERCENT):
            found.append(AbandonedCheckout(at=later.at, cents=later.cents))
        while True:
            made += 1
            attempt = self._attempt(later, found)
            again = later.place + 1 < MAX_MARKET_ATTEMPTS and made < share and not charged
            if attempt.approved or not again or not self._percent(REPEATED_PERCENT):
                return made
            other = self._percent(OTHER_CARD_PERCENT)
            later = replace(
                later,
                place=later.place + 1,
                at=later.at + timedelta(seconds=draws.randint(40, 400)),
                card=self._card(shopper, later.place + 1) if other else later.card,
            )

    def _attempt(self, later: _LaterAttempt, found: list[MarketEvent]) -> MarketAttempt:
        """Decide an attempt, and what follows from it."""
        issuer = ISSUERS_BY_BIN[later.card[:6]]
        path, exemption = self._choose_path(later)
        account = tuple(MARKET_ACCOUNTS)[later.order % len(MARKET_ACCOUNTS)]
        answer = self._answer(later, issuer, account, path, exemption)
        attempt = MarketAttempt(
            order=later.order,
            place=later.place,
            at=later.at,
            shopper=later.shopper,
            card=later.card,
            issuer=issuer,
            account="" if path == "left" else account,
            cents=later.cents,
            authorizes=not later.merchant_initiated and self._percent(AUTHORIZED_PERCENT),
            merchant_initiated=later.merchant_initiated,
            checkout=later.checkout,
            path=path,
            exemption=exemption,
            answer=answer,
        )
        if attempt.approved:
            attempt = self._plan_follow_ups(attempt)
        elif later.merchant_initiated:
            self._plan_repeat(later, answer)
        found.append(attempt)
        return attempt

    def _choose_path(self, later: _LaterAttempt) -> tuple[str, str]:
        if later.merchant_initiated:
            return "none", ""
        if self._percent(AUTHENTICATED_PERCENT):
            if not self._percent(CHALLENGED_PERCENT):
                return "frictionless", ""
            return ("left" if self._percent(CHALLENGE_LOST_PERCENT) else "challenge"), ""
        if self._percent(EXEMPTED_PERCENT):
            return "none", "01" if later.cents <= LOW_VALUE_CENTS else "02"
        return "none", ""

    def _answer(
        self, later: _LaterAttempt, issuer: SimulatedIssuer, account: str, path: str, exemption: str
    ) -> IssuerAnswer:
        if path == "left":
            return IssuerAnswer(code=CHALLENGE_LOST_CODE, response="")
        question = IssuerQuestion(
            number=later.card,
            amount=Decimal(later.cents) / 100,
            at=later.at,
            authenticated=path != "none",
            merchant_initiated=later.merchant_initiated,
            exemption=_EXEMPTIONS.get(exemption, ""),
        )
        answer = simulate_issuer_answer(issuer, question, seed=self.seed)
        if is_approved(answer.code) and self._percent(MARKET_ACCOUNTS[account].get(issuer.brand, 0)):
            code, response, advice = ACCOUNT_REFUSED
            return IssuerAnswer(code=code, response=response, advice=advice)
        return answer

    def _plan_follow_ups(self, attempt: MarketAttempt) -> MarketAttempt:
        """The attempt with the number of its follow-ups, which wait for their day. None is made after the market."""
        planned = []
        if attempt.authorizes:
            planned.append(("CP", attempt.at + timedelta(hours=20)))
        elif self._percent(REFUNDED_PERCENT):
            planned.append(("RF", attempt.at + timedelta(days=self._draws.randint(1, 14))))
        planned = [(kind, at) for kind, at in planned if at < self.end]
        for kind, at in planned:
            self._wait(MarketFollowUp(order=attempt.order, place=attempt.place, at=at, kind=kind))
        return replace(attempt, follow_ups=len(planned))

    def _plan_repeat(self, later: _LaterAttempt, answer: IssuerAnswer) -> None:
        never = answer.code in (STOLEN_CARD[0], EXPIRED_CARD[0])
        if not never and later.place < len(SUBSCRIPTION_LADDER):
            at = later.at + SUBSCRIPTION_LADDER[later.place]
            self._wait(replace(later, at=at, place=later.place + 1))

    def _wait(self, event: MarketEvent | _LaterAttempt) -> None:
        self._ties += 1
        heapq.heappush(self._waiting, (event.at, self._ties, event))

    def _card(self, shopper: int, place: int) -> str:
        """A shopper's card: the first, or one of those that are tried after it."""
        own = random.Random(f"{self.seed} {shopper} {place}")  # noqa: S311 - as above
        bin6 = own.choices(list(MARKET_ISSUERS), list(MARKET_ISSUERS.values()))[0]
        return build_issuer_card(ISSUERS_BY_BIN[bin6], shopper * MAX_MARKET_ATTEMPTS + place)

    def _percent(self, percent: int) -> bool:
        return self._draws.random() * 100 < percent


@dataclass(frozen=True, slots=True, kw_only=True)
class _LaterAttempt:
    """An attempt whose time has not come: what is known of it before it is decided."""

    order: int
    place: int
    at: datetime
    shopper: int
    card: str = field(repr=False)
    cents: int
    merchant_initiated: bool
    checkout: bool

"""Simulated issuers: banks whose cards are approved by rate, hour, amount and exemption instead of by a fixed code.

A card number that begins with an issuer's BIN and is not a published test card (cards.py) is answered by the issuer's
row of SIMULATED_ISSUERS. Nothing is drawn by chance: each decision is a hash of the seed, the card and the hour, so the
same question always gets the same answer, and another seed makes another market. The table is published in
docs/market.md. Pure. Source: docs/decisions/0106.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Final

from gateway.connectors.reply_codes import SOFT_DECLINE
from gateway.core.luhn import compute_check_digit, is_luhn_valid

ISSUER_SEED: Final = 22
"""The seed of payments that requests make; `manage.py simulate_market --seed` has one of its own."""
ISSUER_APPROVAL: Final = "000.100.110"
BASIS_POINTS: Final = 10_000

# Reasons of a decline: result code, acquirer's response code, merchant advice code.
EXPIRED_CARD: Final = ("800.100.157", "54", "01")
STOLEN_CARD: Final = ("800.100.159", "43", "03")
SHORT_OF_FUNDS: Final = ("800.100.155", "51", "02")
NO_REASON: Final = ("800.100.152", "05", "02")
ISSUER_AWAY: Final = ("800.100.176", "91", "02")
CHALLENGE_WANTED: Final = (SOFT_DECLINE, "1A", "")
CHALLENGE_WANTED_MASTERCARD: Final = (SOFT_DECLINE, "65", "")

MAX_DAYS_SHORT: Final = 12
"""A card that runs out of money does so at most so many days before its issuer's payday."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedIssuer:
    """One issuer; all shares are in percent.

    - ``hours``: of attempts in each hour of the day (UTC), how many are approved when nothing below declines them
      first.
    - ``away``: hours in which what is not approved answers "not available now" instead of a decline without a reason.
    - ``closed``, ``expired``: cards that are never approved.
    - ``short``: cards that run out of money before a payday.
    - ``payday``: the day of the month on which money is there again.
    - ``challenge_above``: shopper's payments of more than that, in whole units of their currency, without a proof of
      3-D Secure are declined softly in ``challenge`` of 100 cases; None: never.
    - ``exemptions``: of such payments with this exemption, how many are let through instead.
    - ``proof``, ``token``: points that a proof of 3-D Secure, and a network token, add to the hour's rate.
    """

    bin: str
    name: str
    brand: str
    country: str
    hours: tuple[int, ...]
    away: frozenset[int] = frozenset()
    closed: int = 1
    expired: int = 2
    short: int = 10
    payday: int = 1
    challenge_above: Decimal | None = None
    challenge: int = 0
    exemptions: Mapping[str, int] = field(default_factory=dict, hash=False)
    proof: int = 2
    token: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerQuestion:
    """What an issuer decides by. ``amount``: in units of its currency, 0 for a check of the card; ``at``: the
    merchant's clock; ``authenticated``: a proof of 3-D Secure comes along; ``exemption``: as of PointOfService;
    ``token``: the card's network token was sent."""

    number: str
    amount: Decimal
    at: datetime
    authenticated: bool = False
    merchant_initiated: bool = False
    exemption: str = ""
    token: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerAnswer:
    """A result code, the acquirer's two-character response code, and the merchant advice code or ''."""

    code: str
    response: str
    advice: str = ""


def _day(night: int, morning: int, afternoon: int, evening: int, **other: int) -> tuple[int, ...]:
    """24 rates: one per six hours; ``other``: single hours, as h03=55."""
    hours = [rate for rate in (night, morning, afternoon, evening) for _ in range(6)]
    for hour, rate in other.items():
        hours[int(hour.removeprefix("h"))] = rate
    return tuple(hours)


def _exempts(low_value: int, low_risk: int, trusted: int, corporate: int, delegated: int) -> Mapping[str, int]:
    return MappingProxyType(
        {
            "LOW_VALUE": low_value,
            "LOW_RISK": low_risk,
            "TRUSTED_MERCHANT": trusted,
            "SECURE_CORPORATE": corporate,
            "DELEGATED": delegated,
        }
    )


SIMULATED_ISSUERS: Final[tuple[SimulatedIssuer, ...]] = (
    SimulatedIssuer(
        bin="400011", name="Meridian Test Bank", brand="VISA", country="GB", hours=_day(92, 96, 96, 95),
        challenge_above=Decimal(30), challenge=35, exemptions=_exempts(95, 80, 90, 95, 85), payday=28,
    ),
    SimulatedIssuer(
        bin="400012", name="Alpine Test Savings", brand="VISA", country="DE",
        hours=_day(80, 95, 95, 93, h02=40, h03=40), away=frozenset({2, 3}), short=14, payday=1,
        challenge_above=Decimal(30), challenge=70, exemptions=_exempts(90, 55, 85, 90, 60),
    ),
    SimulatedIssuer(
        bin="400013", name="Lakeside Test Bank", brand="VISA", country="FR", hours=_day(88, 94, 94, 92),
        short=12, payday=5, challenge_above=Decimal(0), challenge=60, exemptions=_exempts(85, 40, 80, 90, 50), proof=4,
    ),
    SimulatedIssuer(
        bin="400014", name="Prairie Test Credit Union", brand="VISA", country="US", hours=_day(90, 90, 93, 94),
        closed=2, expired=4, short=18, payday=15, proof=1,
    ),
    SimulatedIssuer(
        bin="520011", name="Northern Test Bank", brand="MASTER", country="DK", hours=_day(94, 97, 97, 96),
        expired=1, short=6, payday=28, challenge_above=Decimal(30), challenge=25,
        exemptions=_exempts(97, 85, 95, 97, 90),
    ),
    SimulatedIssuer(
        bin="520012", name="Southern Test Bank", brand="MASTER", country="ES", hours=_day(85, 91, 88, 86, h00=30),
        away=frozenset({0}), closed=2, expired=3, short=20, payday=1,
        challenge_above=Decimal(30), challenge=65, exemptions=_exempts(80, 50, 75, 85, 55), proof=5,
    ),
    SimulatedIssuer(
        bin="520013", name="Pocket Test Prepaid", brand="MASTER", country="LT", hours=_day(82, 84, 84, 80),
        closed=4, expired=3, short=30, payday=15, challenge_above=Decimal(50), challenge=40,
        exemptions=_exempts(85, 60, 80, 0, 60), proof=3,
    ),
    SimulatedIssuer(
        bin="370011", name="Harbour Test Charge", brand="AMEX", country="US", hours=_day(95, 96, 97, 97),
        expired=2, short=3, payday=20, proof=1,
    ),
)  # fmt: skip
"""Invented banks with BINs of their own: no published test card has one of these."""

ISSUERS_BY_BIN: Final[Mapping[str, SimulatedIssuer]] = MappingProxyType({one.bin: one for one in SIMULATED_ISSUERS})
_NUMBER_DIGITS: Final[Mapping[str, int]] = MappingProxyType({"VISA": 16, "MASTER": 16, "AMEX": 15})


def find_simulated_issuer(number: str) -> SimulatedIssuer | None:
    """The issuer of a card number without spaces; None if it is no issuer's, or its check digit is wrong."""
    issuer = ISSUERS_BY_BIN.get(number[:6])
    return issuer if issuer is not None and is_luhn_valid(number) else None


def build_issuer_card(issuer: SimulatedIssuer, place: int) -> str:
    """The issuer's card with this running number. Raises ValueError if it has not so many digits."""
    digits = _NUMBER_DIGITS[issuer.brand] - len(issuer.bin) - 1
    if not 0 <= place < 10**digits:
        raise ValueError(f"{issuer.name} has cards 0 to {10**digits - 1}")
    body = f"{issuer.bin}{place:0{digits}d}"
    return body + compute_check_digit(body)


def simulate_issuer_answer(issuer: SimulatedIssuer, asked: IssuerQuestion, *, seed: int = ISSUER_SEED) -> IssuerAnswer:
    """The issuer's answer. What is wrong with the card comes first, then its money, then a wanted challenge, then the
    hour's rate. A card in the same hour of the same day always gets the same answer for the same amount."""
    card = asked.number
    if _happens(issuer.closed, seed, "closed", card):
        return _answer(STOLEN_CARD)
    if _happens(issuer.expired, seed, "expired", card):
        return _answer(EXPIRED_CARD)
    if not asked.amount:
        return IssuerAnswer(code=ISSUER_APPROVAL, response="00")
    if is_short_of_funds(issuer, card, asked.at, seed=seed):
        return _answer(SHORT_OF_FUNDS)
    if _wants_challenge(issuer, asked, seed):
        return _answer(CHALLENGE_WANTED_MASTERCARD if issuer.brand == "MASTER" else CHALLENGE_WANTED)
    more = (issuer.proof if asked.authenticated else 0) + (issuer.token if asked.token else 0)
    rate = min(100, issuer.hours[asked.at.hour] + more)
    if _happens(rate, seed, "rate", card, f"{asked.at:%Y%m%d%H}", f"{asked.amount.normalize():f}"):
        return IssuerAnswer(code=ISSUER_APPROVAL, response="00")
    return _answer(ISSUER_AWAY if asked.at.hour in issuer.away else NO_REASON)


def is_short_of_funds(issuer: SimulatedIssuer, card: str, at: datetime, *, seed: int = ISSUER_SEED) -> bool:
    """Whether the card has no money on this day: in a month in which it runs out, that is 1 to MAX_DAYS_SHORT days
    before the issuer's payday."""
    left = (issuer.payday - at.day) % 31
    if not 1 <= left <= MAX_DAYS_SHORT:
        return False
    # The days that lead to one payday may lie in two months: they are counted as the payday's.
    month = at.year * 12 + at.month + (at.day >= issuer.payday)
    days = 1 + _draw(seed, "days", card, str(month)) % MAX_DAYS_SHORT
    return left <= days and _happens(issuer.short, seed, "short", card, str(month))


def _wants_challenge(issuer: SimulatedIssuer, asked: IssuerQuestion, seed: int) -> bool:
    """Whether a payment is declined softly. An issuer keeps to what it decided about a card's amount and exemption."""
    if issuer.challenge_above is None or asked.authenticated or asked.merchant_initiated:
        return False
    if asked.amount <= issuer.challenge_above:
        return False
    about = (asked.number, f"{asked.at:%Y%m%d}", f"{asked.amount.normalize():f}")
    if _happens(issuer.exemptions.get(asked.exemption, 0), seed, "exempt", asked.exemption, *about):
        return False
    return _happens(issuer.challenge, seed, "challenge", *about)


def _answer(reason: tuple[str, str, str]) -> IssuerAnswer:
    code, response, advice = reason
    return IssuerAnswer(code=code, response=response, advice=advice)


def _happens(percent: int, seed: int, *about: str) -> bool:
    return _draw(seed, *about) < percent * BASIS_POINTS // 100


def _draw(seed: int, *about: str) -> int:
    """A number from 0 to BASIS_POINTS - 1, always the same for the same words."""
    digest = hashlib.blake2b("|".join((str(seed), *about)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % BASIS_POINTS

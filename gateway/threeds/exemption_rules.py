"""Exemption rules: which exemption from strong customer authentication a channel asks for a payment, and where. Pure.

The acquirer may ask for an exemption within the limits that the law sets; the issuer decides. The limits are a table
here, each with its article; a channel's settings only choose among what the law allows. Source: EU 2018/389 (RTS on
SCA), articles 13, 16, 17, 18 and its annex; docs/decisions/0105.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_UP, Decimal
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from gateway.core.money import Money

_CENT: Final = Decimal("0.01")
LIMITS_CURRENCY: Final = "EUR"
LOWEST_RATES: Final[Mapping[str, Decimal]] = MappingProxyType({"GBP": Decimal("1.2")})
"""Currency → the least EUR that one unit counts for: the law there has limits in its own currency, 25 and 85 pounds for
30 and 100 euros of low value, and 85, 220 and 440 for 100, 250 and 500 of low risk. At this rate none is
passed. Source: FCA, UK-RTS, quoted by
https://docs.stripe.com/payments/3d-secure/strong-customer-authentication-exemptions.md."""


class Exemption(enum.StrEnum):
    """The exemptions, by the names that a point of service has for them. DELEGATED is none of the RTS: the merchant
    authenticates for the issuer, under an agreement with the network."""

    SECURE_CORPORATE = "SECURE_CORPORATE"
    DELEGATED = "DELEGATED"
    LOW_RISK = "LOW_RISK"
    LOW_VALUE = "LOW_VALUE"
    TRUSTED_MERCHANT = "TRUSTED_MERCHANT"


class ExemptionStage(enum.StrEnum):
    """Where an exemption is asked for. AUTHENTICATION: in the AReq, the issuer's 3-D Secure server answers.
    AUTHORIZATION: in the authorization alone, without 3-D Secure before it."""

    AUTHENTICATION = "authentication"
    AUTHORIZATION = "authorization"


BETTER_STAGE: Final = "better"
"""The setting by which the stage is the one that succeeded more often on this channel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LowValueLimit:
    """Article 16. ``each``, ``together``: EUR; ``payments``: in a row since the card's last strong authentication. The
    issuer watches the sum or the number; both are kept here, since it does not say which."""

    each: Decimal
    together: Decimal
    payments: int
    source: str


LOW_VALUE_LIMIT: Final = LowValueLimit(
    each=Decimal(30),
    together=Decimal(100),
    payments=5,
    source="EU 2018/389, article 16; sum or number, not both: EBA-Op-2018-04, paragraph 43, and "
    "https://www.eba.europa.eu/single-rule-book-qa/qna/view/publicId/2018_4225",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FraudRateBand:
    """Transaction risk analysis: up to ``amount`` EUR where the acquirer's fraud rate for remote card payments is not
    above ``fraud_rate`` (percent)."""

    amount: Decimal
    fraud_rate: Decimal
    source: str


_ANNEX: Final = "EU 2018/389, article 18 and annex, remote electronic card-based payments"
FRAUD_RATE_BANDS: Final = (
    FraudRateBand(amount=Decimal(500), fraud_rate=Decimal("0.01"), source=_ANNEX),
    FraudRateBand(amount=Decimal(250), fraud_rate=Decimal("0.06"), source=_ANNEX),
    FraudRateBand(amount=Decimal(100), fraud_rate=Decimal("0.13"), source=_ANNEX),
)
"""Highest amount first."""

EXEMPTION_PARAMETERS: Final[Mapping[Exemption, Mapping[str, str]]] = MappingProxyType(
    {
        Exemption.SECURE_CORPORATE: {"challengeIndicator": "02", "exemptionFlag": "04"},
        Exemption.DELEGATED: {"challengeIndicator": "07"},
        Exemption.LOW_RISK: {"challengeIndicator": "05", "exemptionFlag": "02"},
        Exemption.LOW_VALUE: {"challengeIndicator": "02", "exemptionFlag": "01"},
        Exemption.TRUSTED_MERCHANT: {"challengeIndicator": "08"},
    }
)
"""Exemption → the threeDSecure.* parameters by which a merchant asks for it. EMV 3-D Secure 2.2 has no indicator for
low value and secure corporate payments: 02 asks for no challenge, the acquirer is sent the flag. The trust list is the
issuer's: it says by its answer to 08 whether the merchant stands on it, and the acquirer is sent that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExemptionRules:
    """A channel's settings. ``fraud_rate``: the acquirer's, in percent; None: low risk is not asked for. ``max_score``:
    the highest risk score of a payment of low risk. ``corporate_bins``, ``delegated_bins``: leading digits of cards.
    ``stage``: an ExemptionStage or BETTER_STAGE. ``rates``: currency → EUR for one unit."""

    low_value: bool = False
    fraud_rate: Decimal | None = None
    max_score: int = 0
    trusted: bool = False
    corporate_bins: tuple[str, ...] = ()
    delegated_bins: tuple[str, ...] = ()
    stage: str = ExemptionStage.AUTHENTICATION
    rates: Mapping[str, Decimal] = field(default_factory=dict)


def parse_exemption_rules(stored: Mapping[str, Any]) -> ExemptionRules | None:
    """The rules in ``Channel.exemptions``, which its section has validated; None where no exemption is on."""
    rules = ExemptionRules(
        low_value=stored.get("lowValue", False),
        fraud_rate=Decimal(rate) if (rate := stored.get("fraudRate")) else None,
        max_score=stored.get("maxScore", 0),
        trusted=stored.get("trusted", False),
        corporate_bins=tuple(stored.get("corporateBins", ())),
        delegated_bins=tuple(stored.get("delegatedBins", ())),
        stage=stored.get("askedAt", ExemptionStage.AUTHENTICATION),
        rates={currency: Decimal(rate) for currency, rate in stored.get("rates", {}).items()},
    )
    some = rules.low_value or rules.fraud_rate is not None or rules.trusted
    return rules if some or rules.corporate_bins or rules.delegated_bins else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardCount:
    """What a card has used of article 16 at a merchant. ``payments``, ``amount`` (EUR): exempted since its last strong
    authentication; ``authentications``: how many of these there were."""

    payments: int = 0
    amount: Decimal = Decimal(0)
    authentications: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExemptionFacts:
    """What is decided about. ``money``: the larger of what is paid and what is authenticated; None where these are of
    two currencies. ``digits``: of the card; ``stored``: it is on file, so the merchant knows its shopper; ``score``:
    of the risk rules that accepted it, None if none screened it or they want it reviewed."""

    money: Money | None
    digits: str
    stored: bool = False
    score: int | None = None
    card: CardCount = CardCount()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExemptionDecision:
    """An exemption to ask for. ``euros``: the amount that the limits are compared with, None for an exemption without
    one; ``limit``: that limit."""

    exemption: Exemption
    euros: Decimal | None = None
    limit: Decimal | None = None

    @property
    def is_counted(self) -> bool:
        """Whether it uses up the card's limits of article 16."""
        return self.exemption is Exemption.LOW_VALUE


def convert_to_euros(money: Money, rates: Mapping[str, Decimal]) -> Decimal | None:
    """The amount in EUR, rounded up to a cent; None for a currency without a rate, to which no limit can be applied."""
    rate = Decimal(1) if money.currency == LIMITS_CURRENCY else rates.get(money.currency)
    if rate is not None:
        rate = max(rate, LOWEST_RATES.get(money.currency, rate))
    return (money.amount * rate).quantize(_CENT, ROUND_UP) if rate is not None else None


def find_fraud_rate_band(fraud_rate: Decimal) -> FraudRateBand | None:
    """The band with the highest amount that a fraud rate in percent allows; None above all of them."""
    return next((band for band in FRAUD_RATE_BANDS if fraud_rate <= band.fraud_rate), None)


def fits_low_value(euros: Decimal, card: CardCount) -> bool:
    """Whether one more payment stays within article 16, itself counted."""
    limit = LOW_VALUE_LIMIT
    return euros <= limit.each and card.payments + 1 <= limit.payments and card.amount + euros <= limit.together


def decide_exemption(
    rules: ExemptionRules, facts: ExemptionFacts, *, without: Sequence[Exemption] = ()
) -> ExemptionDecision | None:
    """The exemption to ask for, None if none is allowed. The first that fits: what no limit counts goes before what
    uses up the card's, and that before what only the issuer knows. ``without``: not these."""
    euros = convert_to_euros(facts.money, rules.rates) if facts.money is not None else None
    band = find_fraud_rate_band(rules.fraud_rate) if rules.fraud_rate is not None else None
    low_value = LOW_VALUE_LIMIT.each
    allowed: dict[Exemption, tuple[bool, Decimal | None]] = {
        Exemption.SECURE_CORPORATE: (facts.digits.startswith(rules.corporate_bins), None),
        Exemption.DELEGATED: (facts.stored and facts.digits.startswith(rules.delegated_bins), None),
        Exemption.LOW_RISK: (
            band is not None
            and euros is not None
            and euros <= band.amount
            and facts.score is not None
            and facts.score <= rules.max_score,
            band.amount if band is not None else None,
        ),
        Exemption.LOW_VALUE: (rules.low_value and euros is not None and fits_low_value(euros, facts.card), low_value),
        # A shopper lists a merchant in an authentication: a card that never had one cannot be on a list.
        Exemption.TRUSTED_MERCHANT: (rules.trusted and facts.card.authentications > 0, None),
    }
    for exemption, (fits, limit) in allowed.items():
        if fits and exemption not in without:
            return ExemptionDecision(exemption=exemption, euros=euros if limit is not None else None, limit=limit)
    return None


# --- where it is asked ------------------------------------------------------------------------------------------------

MIN_STAGE_PAYMENTS: Final = 50
"""Payments of a stage before its share of successes decides."""
EXPLORED_OF_TEN: Final = 1
"""Of ten payments, how many go to the other stage, so that it stays measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOutcome:
    """Finished payments of a channel that asked for an exemption at one stage; ``won``: approved without a
    challenge."""

    asked: int = 0
    won: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StageChoice:
    """The stage, and why: ``set`` by the channel, the issuer's ``list``, ``no claim`` that the acquirer could be sent
    without an authentication, ``no challenge`` possible after a soft
    decline, both ``measured`` alternately, ``better``, or the other one to keep it measured (``explored``)."""

    stage: ExemptionStage
    why: str


def choose_stage(
    rules: ExemptionRules,
    exemption: Exemption,
    payment: UUID,
    outcomes: Mapping[ExemptionStage, StageOutcome],
    *,
    steps_up: bool,
    is_claimed: bool = True,
) -> StageChoice:
    """Where to ask. ``outcomes``: of this exemption on this channel; ``steps_up``: a soft decline leads to a challenge,
    without which it would end the payment; ``is_claimed``: an authorization without a proof can claim the exemption at
    the acquirer. The same payment gets the same stage."""
    authentication, authorization = ExemptionStage.AUTHENTICATION, ExemptionStage.AUTHORIZATION
    if exemption is Exemption.TRUSTED_MERCHANT:
        # Only the issuer knows its cardholder's list: an authorization would claim what is not known.
        return StageChoice(stage=authentication, why="list")
    if not is_claimed:
        return StageChoice(stage=authentication, why="no claim")
    if rules.stage != BETTER_STAGE:
        return StageChoice(stage=ExemptionStage(rules.stage), why="set")
    if not steps_up:
        return StageChoice(stage=authentication, why="no challenge")
    place = payment.int % 10
    at = {stage: outcomes.get(stage, StageOutcome()) for stage in ExemptionStage}
    if min(found.asked for found in at.values()) < MIN_STAGE_PAYMENTS:
        return StageChoice(stage=authorization if place % 2 else authentication, why="measured")
    # On a tie the issuer is asked first: it may take the liability.
    shares = {stage: Decimal(found.won) / found.asked for stage, found in at.items()}
    better = authorization if shares[authorization] > shares[authentication] else authentication
    if place < EXPLORED_OF_TEN:
        return StageChoice(stage=authentication if better is authorization else authorization, why="explored")
    return StageChoice(stage=better, why="better")

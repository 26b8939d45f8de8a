"""Arms of the measure: the same purchases under today's behaviour, and under each way to more approvals.

Decisions are the product's own functions: dunning, the schemes' retry rules, rates of retries, exemptions, accounts by
cost and rate, declines that lead on. Answers are the simulated issuers'. Everything drawn (who shops, what is lost at
an account, who passes a challenge) hangs on the seed and the purchase alone, so all arms meet the same world and differ
by what they do. The rest of a payment (requests, rows, messages) is not in it.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Final
from uuid import UUID

from gateway.connectors.account_choice import (
    BY_COST,
    BY_RATE,
    AccountFigures,
    AccountPrice,
    ChoiceFacts,
    ChoicePolicy,
    choose_account,
    compute_cost,
)
from gateway.connectors.account_updater import UpdaterAnswer
from gateway.connectors.reply_codes import SOFT_DECLINE
from gateway.connectors.simulator.issuers import (
    EXPIRED_CARD,
    ISSUERS_BY_BIN,
    SHORT_OF_FUNDS,
    STOLEN_CARD,
    IssuerAnswer,
    IssuerQuestion,
    SimulatedIssuer,
    build_issuer_card,
    simulate_issuer_answer,
)
from gateway.core import result_codes
from gateway.core.money import Money
from gateway.payments.cascade import NO_ADVICE, is_cascadable
from gateway.payments.registrations import ACCOUNT_BLOCKS
from gateway.risk.retry_rules import (
    ADVICE_WAITS,
    RETRY_LATER_CODE,
    RETRY_LIMITS,
    RetryWatch,
    find_issuer_stop,
    resolve_network,
)
from gateway.scheduling import dunning
from gateway.scheduling.retry_choice import MIN_LEARNED_WAIT
from gateway.scheduling.retry_rates import (
    MAX_LEARNED_WAIT,
    HourOutcome,
    RetryOutcome,
    RetryRates,
    count_rates,
    name_retry_issuer,
)
from gateway.scheduling.retry_statistics import speaks_of_hour
from gateway.threeds.exemption_rules import CardCount, ExemptionFacts, ExemptionRules, decide_exemption
from reporting.simulator.market import (
    ACCOUNT_REFUSED,
    AUTHENTICATED_PERCENT,
    CHALLENGE_LOST_CODE,
    CHALLENGE_LOST_PERCENT,
    CHALLENGED_PERCENT,
    MARKET_ACCOUNTS,
    MARKET_CURRENCY,
    MARKET_HOURS,
    MARKET_ISSUERS,
    MARKET_PRICES,
    PURCHASES_PER_SHOPPER,
    SUBSCRIPTION_HOUR,
    SUBSCRIPTION_PERCENT,
)

START: Final = datetime(2030, 1, 1, tzinfo=UTC)
NEXT_RUN: Final = timedelta(days=30)
COUNT_EVERY_DAYS: Final = 3
"""How often rates of retries are counted anew; the product does it each day."""
JUDGED_PAYMENTS: Final = 10_000
"""The newest payments that accounts are compared by, as gateway.connectors.account_figures has it."""
LOW_RISK_PERCENT: Final = 80
"""Of 100 payments, how many the risk rules accept with a score low enough for the low-risk exemption."""
UPDATED_PERCENT: Final = 70
"""Of 100 stored cards that are expired or closed, of how many the account updater knows it: not every issuer tells."""
RENEWED_FROM: Final = 1_000_000
"""Card numbers of an issuer from here on replace others."""
PART_PERCENT: Final = 25
"""Of 100 declines for want of funds, how many would be an approval of a part where one will do: issuers of prepaid and
of many debit cards grant what is there."""
REST_PERCENT: Final = 40
"""Of 100 shoppers of whose amount a part is held, how many try to pay the rest with another card."""
OTHER_CARDS_FROM: Final = 2_000_000
"""Card numbers of an issuer from here on are second cards of shoppers."""
EXEMPTIONS: Final = ExemptionRules(low_value=True, fraud_rate=Decimal("0.06"), max_score=0, trusted=True)
NORTH, SOUTH = MARKET_ACCOUNTS
PRICES: Final = tuple(
    AccountPrice(account=account, percent=percent, fixed=fixed) for account, (percent, fixed) in MARKET_PRICES.items()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """What an arm does besides today's behaviour. ``choose_by``: of a routing rule, '' for weights alone; ``tokens``,
    ``updates``: stored cards have network tokens, are renewed by the account updater before a charge; ``parts``: what
    one card grants is held until another one has paid the rest."""

    name: str
    challenges: bool = False
    exempts: bool = False
    cascades: bool = False
    learns: bool = False
    choose_by: str = ""
    tokens: bool = False
    updates: bool = False
    parts: bool = False


ARMS: Final = (
    Arm(name="today"),
    Arm(name="soft decline → challenge", challenges=True),
    Arm(name="exemptions by rule", exempts=True),
    Arm(name="second acquirer", cascades=True),
    Arm(name="retries timed by outcomes", learns=True),
    Arm(name="account by rate", choose_by=BY_RATE),
    Arm(name="cheapest, at most 2 points worse", choose_by=BY_COST),
    Arm(name="rest of a part with another card", parts=True),
    Arm(name="network tokens", tokens=True),
    Arm(name="account updater", updates=True),
    Arm(name="network tokens and account updater", tokens=True, updates=True),
    Arm(name="all together", challenges=True, exempts=True, cascades=True, learns=True, choose_by=BY_RATE, tokens=True,
        updates=True, parts=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Purchase:
    """What a shopper wants, or a subscription's charge. ``path``: frictionless, challenge or none where no 3-D Secure
    is asked for; ``lost``: account → it loses this payment; ``passes``: the shopper passes a challenge."""

    order: int
    at: datetime
    card: str
    issuer: SimulatedIssuer
    cents: int
    by_merchant: bool
    path: str
    passes: bool
    low_risk: bool
    lost: frozenset[str]
    draw: float
    amount: Decimal


@dataclass(slots=True)
class Tally:
    """What an arm came to. ``won``: a byte per purchase, 1 for a paid one; ``wrong``: attempts against an issuer's
    word; ``over``: attempts over a scheme's limit."""

    won: bytearray
    attempts: int = 0
    challenges: int = 0
    exempted: int = 0
    retries: int = 0
    wrong: int = 0
    over: int = 0
    cost: int = 0
    """In ten-thousandths of a euro, as prices are."""
    money: int = 0
    """In cents."""


def make_purchases(seed: int, count: int, days: int) -> Iterator[Purchase]:
    """The market's purchases in the order of their times, ``count`` in all."""
    draws, shoppers = random.Random(seed), max(10, count // PURCHASES_PER_SHOPPER)
    bins, weights = list(MARKET_ISSUERS), list(MARKET_ISSUERS.values())
    cards = [build_issuer_card(ISSUERS_BY_BIN[draws.choices(bins, weights)[0]], shopper) for shopper in range(shoppers)]
    order = 0
    for day in range(days):
        midnight, made = START + timedelta(days=day), []
        for _ in range(count * (day + 1) // days - count * day // days):
            order += 1
            by_merchant = draws.random() * 100 < SUBSCRIPTION_PERCENT
            hour = SUBSCRIPTION_HOUR if by_merchant else draws.choices(range(24), MARKET_HOURS)[0]
            card = cards[draws.randrange(shoppers)]
            issuer = ISSUERS_BY_BIN[card[:6]]
            authenticated = not by_merchant and draws.random() * 100 < AUTHENTICATED_PERCENT
            challenged = draws.random() * 100 < CHALLENGED_PERCENT
            cents = max(199, min(90_000, int(draws.lognormvariate(8.3, 0.9))))
            made.append(
                Purchase(
                    order=order,
                    at=midnight + timedelta(hours=hour, seconds=draws.randrange(3600)),
                    card=card,
                    issuer=issuer,
                    cents=cents,
                    amount=Decimal(cents) / 100,
                    by_merchant=by_merchant,
                    path=("challenge" if challenged else "frictionless") if authenticated else "none",
                    passes=draws.random() * 100 >= CHALLENGE_LOST_PERCENT,
                    low_risk=draws.random() * 100 < LOW_RISK_PERCENT,
                    lost=frozenset(
                        account
                        for account, lost in MARKET_ACCOUNTS.items()
                        if draws.random() * 100 < lost.get(issuer.brand, 0)
                    ),
                    draw=draws.random(),
                )
            )
        yield from sorted(made, key=lambda one: (one.at, one.order))


is_approved = lru_cache(result_codes.is_approved)


@lru_cache(maxsize=4_096)
def ask_issuer(
    seed: int,
    card: str,
    amount: Decimal,
    at: datetime,
    authenticated: bool,
    by_merchant: bool,
    exemption: str,
    token: bool = False,
) -> IssuerAnswer:
    """The simulated issuer's answer; arms that ask alike share it."""
    question = IssuerQuestion(
        number=card, amount=amount, at=at, authenticated=authenticated, merchant_initiated=by_merchant,
        exemption=exemption, token=token,
    )  # fmt: skip
    return simulate_issuer_answer(ISSUERS_BY_BIN[card[:6]], question, seed=seed)


def check_card(seed: int, card: str) -> str:
    """The result code of a check of 0.00: whether the card is closed or expired."""
    return ask_issuer(seed, card, Decimal(0), START, False, True, "").code


@dataclass(order=True, slots=True)
class LaterTry:
    """A declined charge that waits for its next try. ``tried``: how often it was; ``answer``: the decline before."""

    at: datetime
    order: int
    purchase: Purchase = field(compare=False)
    tried: int = field(compare=False)
    answer: IssuerAnswer = field(compare=False)
    declined_at: datetime = field(compare=False)
    until: datetime = field(compare=False)


class ArmRun:
    """One arm on its way through the market."""

    def __init__(self, arm: Arm, *, seed: int, count: int) -> None:
        self.arm, self.seed = arm, seed
        self.tally = Tally(won=bytearray(count + 1))
        self.charges: list[int] = []
        self.waiting: list[LaterTry] = []
        self._declines: defaultdict[str, list[tuple[datetime, str, datetime | None]]] = defaultdict(list)
        self._checked: defaultdict[str, list[tuple[datetime, int, str]]] = defaultdict(list)
        self._retries: Counter[tuple[str, str, str, int, int, int, bool]] = Counter()
        self._hours: Counter[tuple[str, int, bool]] = Counter()
        self._rates = RetryRates({})
        self._judged: deque[tuple[str, str, str, bool]] = deque(maxlen=JUDGED_PAYMENTS)
        self._figures = AccountFigures(prices=PRICES)
        self._orders: dict[tuple[str, bool], tuple[str, ...]] = {}
        self._exempt_counts: dict[str, CardCount] = {}
        self._updated: dict[str, str] = {}

    def begin_day(self, day: int) -> None:
        """Count anew what was learned."""
        if self.arm.learns and day % COUNT_EVERY_DAYS == 0:
            self._rates = count_rates(
                [
                    RetryOutcome(code=code, advice=advice, issuer=issuer, day=of_month, weekday=weekday, hour=hour,
                                 tries=number, approved=number if approved else 0)
                    for (code, advice, issuer, of_month, weekday, hour, approved), number in self._retries.items()
                ],
                [
                    HourOutcome(issuer=issuer, hour=hour, tries=number, approved=number if approved else 0)
                    for (issuer, hour, approved), number in self._hours.items()
                ],
            )  # fmt: skip
        if self.arm.choose_by:
            counted: Counter[tuple[str, str, str, bool]] = Counter(self._judged)
            outcomes: dict[tuple[str, str, str], tuple[int, int]] = {}
            for (account, brand, country, approved), number in counted.items():
                good, asked = outcomes.get((account, brand, country), (0, 0))
                outcomes[account, brand, country] = (good + number * approved, asked + number)
            self._figures = AccountFigures(prices=PRICES, outcomes=outcomes)
            self._orders.clear()

    def run_until(self, at: datetime) -> None:
        """Make the tries that are due before ``at``."""
        while self.waiting and self.waiting[0].at < at:
            self._try_again(heapq.heappop(self.waiting))

    def buy(self, one: Purchase) -> None:
        """A purchase, with everything that happens while its shopper waits."""
        if one.by_merchant:
            self.charges.append(one.order)
            one = self._refresh(one)
            if not one.card:
                self._finish_charge(one, _CLOSED, one.at, tried=1, until=one.at)
                return
        if not self._may(one, one.at):
            if one.by_merchant:
                self._finish_charge(one, _GUARDED, one.at, tried=1, until=one.at + NEXT_RUN)
            return
        if one.by_merchant:
            answer = self._authorize(one, one.at, authenticated=False, exemption="")
            self._finish_charge(one, answer, one.at, tried=1, until=one.at + NEXT_RUN)
            return
        answer = self._pay(one)
        if is_approved(answer.code) or (self.arm.parts and self._pay_in_parts(one, answer)):
            self.tally.won[one.order] = 1

    def _pay(self, one: Purchase) -> IssuerAnswer:
        path, exemption = one.path, ""
        if path != "none" and self.arm.exempts:
            exemption = self._exempt(one)
            path = "none" if exemption else path
        if path == "challenge" and not self._challenge(one):
            return IssuerAnswer(code=CHALLENGE_LOST_CODE, response="")
        answer = self._authorize(one, one.at, authenticated=path != "none", exemption=exemption)
        if self.arm.challenges and answer.code == SOFT_DECLINE and path != "challenge" and self._may(one, one.at):
            if not self._challenge(one):
                return IssuerAnswer(code=CHALLENGE_LOST_CODE, response="")
            answer = self._authorize(one, one.at, authenticated=True, exemption="")
        return answer

    def _pay_in_parts(self, one: Purchase, answer: IssuerAnswer) -> bool:
        """Whether a card that lacks the funds pays a part of the amount, and another card of the shopper's the rest. If
        the rest is not paid, nothing is taken."""
        draws = random.Random(f"{self.seed} {one.order} parts")
        if answer.response != SHORT_OF_FUNDS[1] or draws.random() * 100 >= PART_PERCENT:
            return False
        part = int(one.cents * draws.uniform(0.2, 0.8))
        if draws.random() * 100 >= REST_PERCENT:
            return False
        issuer = ISSUERS_BY_BIN[draws.choices(list(MARKET_ISSUERS), list(MARKET_ISSUERS.values()))[0]]
        rest = replace(
            one,
            card=build_issuer_card(issuer, OTHER_CARDS_FROM + one.order),
            issuer=issuer,
            cents=one.cents - part,
            amount=Decimal(one.cents - part) / 100,
            lost=frozenset(
                account for account, lost in MARKET_ACCOUNTS.items() if draws.random() * 100 < lost.get(issuer.brand, 0)
            ),
        )
        if not is_approved(self._pay(rest).code):
            return False
        self.tally.money += part
        self.tally.cost += _price(self._order_accounts(one)[0], part)
        return True

    def _challenge(self, one: Purchase) -> bool:
        self.tally.challenges += 1
        count = self._exempt_counts.get(one.card, CardCount())
        if one.passes:
            self._exempt_counts[one.card] = CardCount(authentications=count.authentications + 1)
        return one.passes

    def _exempt(self, one: Purchase) -> str:
        """The exemption that the rules ask for at the authentication and that the issuer accepts there, else ''."""
        count = self._exempt_counts.get(one.card, CardCount())
        facts = ExemptionFacts(
            money=Money(one.amount, MARKET_CURRENCY), digits=one.card[:6], score=0 if one.low_risk else None, card=count
        )
        decision = decide_exemption(EXEMPTIONS, facts)
        if decision is None:
            return ""
        asked = decision.exemption.value
        # The issuer says at the authentication what it would say to the authorization.
        told = ask_issuer(self.seed, one.card, one.amount, one.at, False, False, asked)
        if told.code == SOFT_DECLINE:
            return ""
        self.tally.exempted += 1
        if decision.is_counted:
            self._exempt_counts[one.card] = CardCount(
                payments=count.payments + 1, amount=count.amount + one.amount, authentications=count.authentications
            )
        return asked

    # --- a stored card ----------------------------------------------------------------------------------------------

    def _refresh(self, one: Purchase) -> Purchase:
        """A subscription's charge with the stored card as the account updater knows it, without one where its account
        is closed. The guard judges the card that is charged."""
        card = self._update_card(one) if self.arm.updates else one.card
        return one if card == one.card else replace(one, card=card)

    def _update_card(self, one: Purchase) -> str:
        """The card that the updater names in place of a stored one, once it was asked; '' for a closed account."""
        found = self._updated.get(one.card)
        if found is None:
            state = check_card(self.seed, one.card)
            known = random.Random(f"{self.seed} updater {one.card}").random() * 100 < UPDATED_PERCENT
            found = one.card
            if known and state == STOLEN_CARD[0]:
                found = ""
            elif known and state == EXPIRED_CARD[0]:
                renewed = (build_issuer_card(one.issuer, RENEWED_FROM + one.order + step) for step in range(100))
                found = next(card for card in renewed if is_approved(check_card(self.seed, card)))
            self._updated[one.card] = found
        return found

    # --- an attempt -----------------------------------------------------------------------------------------------

    def _authorize(self, one: Purchase, at: datetime, *, authenticated: bool, exemption: str) -> IssuerAnswer:
        """Ask the account, and where it may the second one after its decline."""
        accounts = self._order_accounts(one)
        answer = self._ask(one, at, accounts[0], authenticated=authenticated, exemption=exemption)
        if self.arm.choose_by:
            self._judged.append((accounts[0], one.issuer.brand, one.issuer.country, is_approved(answer.code)))
        if (
            self.arm.cascades
            and is_cascadable(answer.code, answer.response)
            and answer.advice in NO_ADVICE
            and self._may(one, at)
        ):
            answer = self._ask(one, at, accounts[1], authenticated=authenticated, exemption=exemption)
        return answer

    def _order_accounts(self, one: Purchase) -> tuple[str, ...]:
        drawn = (NORTH, SOUTH) if one.order % 2 else (SOUTH, NORTH)
        if not self.arm.choose_by:
            return drawn
        policy = ChoicePolicy(by=self.arm.choose_by, max_rate_loss=Decimal(2), explored_percent=5)
        explores = one.draw * 100 < policy.explored_percent
        key = (one.card[:6] + drawn[0], explores)
        if key not in self._orders:
            self._orders[key] = choose_account(
                policy, _route_facts(one), drawn, self._figures, draw=0.0 if explores else 0.99
            ).order
        return self._orders[key]

    def _ask(self, one: Purchase, at: datetime, account: str, *, authenticated: bool, exemption: str) -> IssuerAnswer:
        self.tally.attempts += 1
        self._check(one, at)
        token = self.arm.tokens and one.by_merchant
        answer = ask_issuer(self.seed, one.card, one.amount, at, authenticated, one.by_merchant, exemption, token)
        # A second try of a charge is not lost for having been lost before: it hangs on the try's own draw.
        lost = account in one.lost if at == one.at else _is_lost_later(self.seed, one, at, account)
        if is_approved(answer.code) and lost:
            code, response, advice = ACCOUNT_REFUSED
            answer = IssuerAnswer(code=code, response=response, advice=advice)
        if is_approved(answer.code):
            self.tally.money += one.cents
            self.tally.cost += _price(account, one.cents)
        else:
            self._keep_decline(one, at, answer)
        if self.arm.learns and speaks_of_hour(answer.code, approved=is_approved(answer.code)):
            self._hours[name_retry_issuer(one.card[:6]), at.hour, is_approved(answer.code)] += 1
        return answer

    # --- the schemes' rules, by the product's guard ----------------------------------------------------------------

    def _may(self, one: Purchase, at: datetime) -> bool:
        """Whether the guard of the schemes' retry rules lets one more attempt pass."""
        rows = [row for row in self._declines.get(one.card, ()) if row[0] > at - timedelta(days=30)]
        if not rows:
            return True
        watch = RetryWatch(
            merchant=_ANYBODY,
            payment=_ANYBODY,
            key=b"",
            network=resolve_network(one.issuer.brand),
            merchant_initiated=one.by_merchant,
            now=at,
            day=sum(row[0] > at - timedelta(days=1) for row in rows),
            month=len(rows),
            never=sum(row[1] == "card" and row[2] is None for row in rows),
            not_by_merchant=sum(row[1] == "merchant" and row[2] is None for row in rows),
            waits=sum(row[1] == "card" and row[2] is not None and row[2] > at for row in rows),
            waits_of_merchant=sum(row[1] == "merchant" and row[2] is not None and row[2] > at for row in rows),
        )
        return watch.verdict() is None

    def _keep_decline(self, one: Purchase, at: datetime, answer: IssuerAnswer) -> None:
        stops, until = find_issuer_stop(resolve_network(one.issuer.brand), answer.code, answer.advice), None
        if not stops and (asked := ADVICE_WAITS.get(answer.advice)) is not None:
            stops, until = asked.stops, at + asked.wait
        self._declines[one.card].append((at, stops, until))
        self._checked[one.card].append((at, one.order, answer.advice))

    def _check(self, one: Purchase, at: datetime) -> None:
        """Count attempts that should not have been made, apart from the guard: after an issuer's "never again", before
        its wait is over, of a charge whose card has to be renewed first, and over a scheme's limit."""
        before = self._checked.get(one.card)
        if not before:
            return
        said = any(
            (advice == "03" and at < when + timedelta(days=30))
            or (advice == "01" and order == one.order)
            or (advice == "02" and one.by_merchant and at < when + timedelta(hours=72))
            for when, order, advice in before
        )
        self.tally.wrong += said
        network = resolve_network(one.issuer.brand)
        self.tally.over += len(before) > MIN_LIMIT and any(
            limit.network == network and sum(when > at - limit.window for when, _, _ in before) >= limit.declines
            for limit in RETRY_LIMITS
        )

    # --- subscription charges ----------------------------------------------------------------------------------------

    def _finish_charge(self, one: Purchase, answer: IssuerAnswer, at: datetime, *, tried: int, until: datetime) -> None:
        if is_approved(answer.code):
            self.tally.won[one.order] = 1
            return
        decision = dunning.decide_dunning(answer.code, answer.advice)
        if isinstance(decision, dunning.DunningStop):
            return
        after = dunning.get_retry_delay(decision, tried)
        if after is None:
            return
        again = at + after
        if self.arm.learns and self._rates.knows(answer.code):
            earliest = at + (decision.after or MIN_LEARNED_WAIT)
            chosen = self._rates.choose_moment(
                answer.code, answer.advice, name_retry_issuer(one.card[:6]), earliest, min(until, at + MAX_LEARNED_WAIT)
            )
            again = chosen.at if chosen is not None else again
        if again < until:
            heapq.heappush(
                self.waiting,
                LaterTry(at=again, order=one.order, purchase=one, tried=tried, answer=answer, declined_at=at,
                         until=until),
            )  # fmt: skip

    def _try_again(self, later: LaterTry) -> None:
        one = later.purchase
        if not self._may(one, later.at):
            # The guard declines the payment before anybody is asked; dunning goes on by its own table.
            self._finish_charge(one, _GUARDED, later.at, tried=later.tried + 1, until=later.until)
            return
        self.tally.retries += 1
        answer = self._authorize(one, later.at, authenticated=False, exemption="")
        issuer, when = name_retry_issuer(one.card[:6]), later.at
        if self.arm.learns:
            key = (later.answer.code, later.answer.advice, issuer, when.day, when.isoweekday(), when.hour)
            self._retries[(*key, is_approved(answer.code))] += 1
        self._finish_charge(one, answer, later.at, tried=later.tried + 1, until=later.until)


MIN_LIMIT: Final = min(limit.declines for limit in RETRY_LIMITS) - 1
_ANYBODY: Final = UUID(int=0)
_GUARDED: Final = IssuerAnswer(code=RETRY_LATER_CODE, response="")
_CLOSED: Final = IssuerAnswer(code=ACCOUNT_BLOCKS[UpdaterAnswer.CLOSED][0], response="")


def _route_facts(one: Purchase) -> ChoiceFacts:
    return ChoiceFacts(amount=one.amount, currency=MARKET_CURRENCY, brand=one.issuer.brand, bin=one.card[:6])


@lru_cache(maxsize=65_536)
def _price(account: str, cents: int) -> int:
    facts = ChoiceFacts(amount=Decimal(cents) / 100, currency=MARKET_CURRENCY, brand="")
    return int((compute_cost(AccountFigures(prices=PRICES), account, facts) or 0) * 10_000)


def _is_lost_later(seed: int, one: Purchase, at: datetime, account: str) -> bool:
    lost = MARKET_ACCOUNTS[account].get(one.issuer.brand, 0)
    return bool(lost) and random.Random(f"{seed} {one.order} {at:%Y%m%d%H} {account}").random() * 100 < lost


def run_market(seed: int, count: int, days: int, arms: tuple[Arm, ...] = ARMS) -> list[ArmRun]:
    """All arms through one market, purchase by purchase; then the tries that still wait."""
    runs = [ArmRun(arm, seed=seed, count=count) for arm in arms]
    day = -1
    for one in make_purchases(seed, count, days):
        if (one.at - START).days != day:
            day = (one.at - START).days
            for run in runs:
                run.begin_day(day)
        for run in runs:
            run.run_until(one.at)
            run.buy(one)
    for run in runs:
        run.run_until(START + timedelta(days=days) + 2 * NEXT_RUN)
    return runs

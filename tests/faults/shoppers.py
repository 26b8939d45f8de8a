"""Payments that wait for their shopper, registrations and one-click payments: the load other than plain card payments.

Each behaviour is one row. What a shopper did is in the journal (``kind: shopper``) once it is done, so that the books
can be held against it; a behaviour that no shopper came to is printed as not tested.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from tests.faults.browser import FAIL, PASS, RESULT_URL, Browser, at_once
from tests.faults.client import Answer, Client, payment

SHOPPER_DEADLINE_S: Final = 20
"""At the bank; the product's default is half an hour. A challenge takes at least 5 minutes: its clock is moved."""
CHALLENGE_OVER_S: Final = 601
THINKS_S: Final = (0.05, 2.0)
CHALLENGED: Final = "4200000000000042"
FRICTIONLESS: Final = "4200000000000091"
SOFT_DECLINED: Final = "4000030002000007"
"""The bank wants an authentication: challenged after its decline, where the channel says so."""
UNAVAILABLE: Final = "4012001037461114"
"""The issuer cannot authenticate: an exemption is applied, and no challenge ever sets the card's count back."""
LOW_VALUES: Final = (5, 30)
"""EUR, from and to: what an exemption of low value may be asked for."""
BANKS: Final = ("ONLINETRANSFER", "WEBWALLET", "SHOPWALLET", "INVOICE")
OUTCOMES: Final = ("approve", "approve", "decline", "cancel")
PAGE: Final = {
    "shopperResultUrl": RESULT_URL, "customer.browser.acceptHeader": "text/html", "customer.browser.language": "en-GB",
    "customer.browser.screenHeight": "1080", "customer.browser.screenWidth": "1920",
    "customer.browser.timezone": "-60", "customer.browser.userAgent": "Mozilla/5.0",
    "customer.browser.javaEnabled": "false", "billing.street1": "12 Main Street", "billing.city": "Berlin",
    "billing.postcode": "10115", "billing.country": "DE",
}  # fmt: skip


@dataclass(slots=True, kw_only=True)
class Visit:
    """One shopper. ``client`` is the merchant's server; ``late``: the merchant whose clock is moved on."""

    client: Client
    late: Client
    entity: str
    browser: Browser
    dice: random.Random
    order: str
    later: list[tuple[float, Callable[[], object]]] = field(default_factory=list)

    def challenge(self, *, late: bool = False, card: str = CHALLENGED) -> tuple[Client, Answer | None]:
        """Begin a card payment that the shopper has to authenticate for; half of them register the card."""
        client = self.late if late else self.client
        mode = "EXTERNAL" if self.dice.random() < 0.8 else "INTERNAL"
        kind, amount = self.dice.choice(("DB", "PA")), f"{self.dice.randint(10, 300)}.00"
        fields = payment(kind, amount, mode=mode, order=self.order, card=card) | PAGE
        if self.dice.random() < 0.5:
            fields["createRegistration"] = "true"
        if not late:
            fields["entityId"] = self.entity
        return client, self._sent_away(client.pay(self.order, fields))

    def bank(self) -> Answer | None:
        """Begin a payment that the shopper decides about at a bank or wallet."""
        fields = {
            "amount": f"{self.dice.randint(10, 300)}.00",
            "currency": "EUR",
            "paymentType": "DB",
            "testMode": "INTERNAL",
            "paymentBrand": self.dice.choice(BANKS),
            "merchantTransactionId": self.order,
            "shopperResultUrl": RESULT_URL,
        }
        return self._sent_away(self.client.pay(self.order, fields))

    def _sent_away(self, told: Answer | None) -> Answer | None:
        time.sleep(self.dice.uniform(*THINKS_S))
        return told if told is not None and "redirect" in told.body else None

    def did(self, what: str, told: Answer, *, landed: bool = True, client: Client | None = None) -> None:
        """Write down what the shopper of ``told`` has done, then ask as the merchant's page would."""
        who = client or self.client
        assert who.journal is not None
        who.journal.write(kind="shopper", what=what, id=told.id, landed=landed, at=time.time())
        who.read(told.id, self.entity if who is self.client and "challenge" in what else "")


def _answers(visit: Visit, what: str, move: Mapping[str, str], card: str = CHALLENGED) -> None:
    client, told = visit.challenge(card=card)
    if told is not None:
        landed = visit.browser.answer(told.body["redirect"], move)
        visit.did(what, told, landed=bool(landed), client=client)


def _two_tabs(visit: Visit, what: str, card: str = CHALLENGED) -> None:
    client, told = visit.challenge(card=card)
    if told is not None:
        tabs = [Browser(port=visit.browser.port) for _ in range(3)]
        at_once([partial(tab.answer, told.body["redirect"], PASS) for tab in tabs])
        visit.did(what, told, client=client)


def _returns_twice(visit: Visit, what: str) -> None:
    client, told = visit.challenge()
    if told is not None:
        redirect = told.body["redirect"]
        visit.browser.answer(redirect, PASS)
        token = {one["name"]: one["value"] for one in redirect["parameters"]}
        page = f"{redirect['url']}?token={token['token']}"
        at_once([lambda: visit.browser.follow(visit.browser.load(page)) for _ in range(2)])
        visit.browser.answer(redirect, FAIL)  # too late to think better of it
        visit.did(what, told, client=client)


def _leaves(visit: Visit, what: str) -> None:
    client, told = visit.challenge(late=True)
    if told is not None:
        visit.did(what, told, client=client)


def _races_the_deadline(visit: Visit, what: str, *, first: bool) -> None:
    client, told = visit.challenge(late=True)
    if told is None:
        return
    answer = partial(visit.browser.answer, told.body["redirect"], PASS)
    over = partial(move_clock, client)
    if first:
        over()
        answer()
    else:
        at_once([over, answer])
    visit.did(what, told, client=client)


def _decides(visit: Visit, what: str) -> None:
    told = visit.bank()
    if told is not None:
        landed = visit.browser.follow(visit.browser.decide(told.body["redirect"], visit.dice.choice(OUTCOMES)))
        visit.did(what, told, landed=bool(landed))


def _decides_twice(visit: Visit, what: str) -> None:
    told = visit.bank()
    if told is None:
        return

    def tab(outcome: str) -> None:
        mine = Browser(port=visit.browser.port)
        mine.follow(mine.decide(told.body["redirect"], outcome))

    at_once([partial(tab, outcome) for outcome in ("approve", "decline", "cancel", "approve")])
    visit.did(what, told)


def _stays_away(visit: Visit, what: str) -> None:
    told = visit.bank()
    if told is not None:
        visit.browser.decide(told.body["redirect"], visit.dice.choice(OUTCOMES))
        visit.did(what, told)


def _comes_twice(visit: Visit, what: str) -> None:
    told = visit.bank()
    if told is not None:
        decided = visit.browser.decide(told.body["redirect"], visit.dice.choice(OUTCOMES))
        at_once([partial(visit.browser.follow, decided) for _ in range(3)])
        visit.did(what, told)


def _leaves_the_bank(visit: Visit, what: str) -> None:
    told = visit.bank()
    if told is not None:
        visit.did(what, told)


def _too_late(visit: Visit, what: str, *, after_s: float) -> None:
    told = visit.bank()
    if told is None:
        return
    sent = told

    def come() -> None:
        visit.browser.follow(visit.browser.decide(sent.body["redirect"], "approve"))
        visit.did(what, sent)

    visit.later.append((time.monotonic() + after_s, come))


def _frictionless(visit: Visit, what: str) -> None:
    card = payment("DB", "25.00", mode="EXTERNAL", order=visit.order, card=FRICTIONLESS)
    told = visit.client.pay(visit.order, card | PAGE | {"entityId": visit.entity, "createRegistration": "true"})
    if told is not None and told.id:
        visit.did(what, told)


def _pays_low_value(visit: Visit, what: str) -> None:
    """An exemption is asked for until the card has used up its limits; a shopper who is challenged passes."""
    card = visit.dice.choice((CHALLENGED, CHALLENGED, SOFT_DECLINED, FRICTIONLESS, UNAVAILABLE))
    mode = "EXTERNAL" if visit.dice.random() < 0.8 else "INTERNAL"
    fields = payment("DB", f"{visit.dice.randint(*LOW_VALUES)}.00", mode=mode, order=visit.order, card=card)
    told = visit.client.pay(visit.order, fields | PAGE | {"entityId": visit.entity})
    if told is None or not told.id:
        return
    if "redirect" in told.body:
        visit.browser.answer(told.body["redirect"], PASS)
    visit.did(what, told)


def _registers(visit: Visit, what: str) -> None:
    """A direct registration, which may be in doubt at first; then two payments by it."""
    card = payment("DB", "1.00", mode="EXTERNAL", order=visit.order)
    unwanted = ("amount", "currency", "paymentType", "card.cvv")
    fields = {name: value for name, value in card.items() if name not in unwanted}
    made = visit.client.pay(visit.order, fields, path="/v1/registrations")
    if made is None or not made.id:
        return
    if made.is_approved:
        for turn in range(2):
            order = f"{visit.order}-click{turn}"
            click = {
                "amount": f"{visit.dice.randint(10, 99)}.00",
                "currency": "EUR",
                "paymentType": "DB",
                "testMode": "EXTERNAL",
                "merchantTransactionId": order,
            }
            visit.client.pay(order, click, path=f"/v1/registrations/{made.id}/payments")
    assert visit.client.journal is not None
    visit.client.journal.write(kind="shopper", what=what, id=made.id, landed=True, at=time.time())


def move_clock(late: Client) -> None:
    """The time of a challenge is over, at the merchant whose clock may be moved."""
    for _ in range(100):
        told = late.once("/v1/test/clock", {"advance": str(CHALLENGE_OVER_S)})
        if told is not None and told.status == 200:
            return
        time.sleep(0.5)


Act = Callable[[Visit, str], None]
BEHAVIOURS: Final[Mapping[str, tuple[int, Act]]] = {
    # what the shopper does                      how often
    "challenge: passed": (4, partial(_answers, move=PASS)),
    "challenge: failed": (1, partial(_answers, move=FAIL)),
    "challenge: answered in three tabs at once": (3, _two_tabs),
    "challenge: passed, returned twice, failed": (2, _returns_twice),
    "challenge: left": (2, _leaves),
    "challenge after a soft decline: passed": (2, partial(_answers, move=PASS, card=SOFT_DECLINED)),
    "challenge after a soft decline: failed": (1, partial(_answers, move=FAIL, card=SOFT_DECLINED)),
    "challenge after a soft decline: answered in three tabs at once": (2, partial(_two_tabs, card=SOFT_DECLINED)),
    "challenge: answered as the deadline passes": (2, partial(_races_the_deadline, first=False)),
    "challenge: answered after the deadline": (1, partial(_races_the_deadline, first=True)),
    "no challenge, card registered": (1, _frictionless),
    "no challenge up to the limits of low value": (6, _pays_low_value),
    "bank: decided, returned": (4, _decides),
    "bank: four decisions in four tabs at once": (2, _decides_twice),
    "bank: decided, never returned": (2, _stays_away),
    "bank: decided, returned in three tabs": (2, _comes_twice),
    "bank: left": (1, _leaves_the_bank),
    "bank: decided as the deadline passes": (1, partial(_too_late, after_s=SHOPPER_DEADLINE_S - 2)),
    "bank: decided after the deadline": (1, partial(_too_late, after_s=SHOPPER_DEADLINE_S + 3)),
    "registered, paid by one click twice": (2, _registers),
}
CLOCK_MOVED: Final = frozenset({"challenge: answered as the deadline passes", "challenge: answered after the deadline"})
"""Behaviours that move a merchant's clock on, each by ten minutes."""
NEVER_PASSED: Final = frozenset(
    {
        "challenge: failed", "challenge: left", "challenge: answered after the deadline",
        "challenge after a soft decline: failed",
    }
)  # fmt: skip
"""Behaviours after which no acquirer may have heard of the payment, or not again."""
PASSED: Final = frozenset(
    {
        "challenge: passed", "challenge: answered in three tabs at once", "challenge: passed, returned twice, failed",
        "challenge after a soft decline: passed", "challenge after a soft decline: answered in three tabs at once",
    }
)  # fmt: skip
"""Behaviours after which the acquirer was asked, unless there was no line to it."""


def act(visit: Visit, left_out: Collection[str] = ()) -> None:
    """One behaviour, drawn by how often it is to come; none of those ``left_out``."""
    names = [name for name in BEHAVIOURS if name not in left_out]
    what = visit.dice.choices(names, [BEHAVIOURS[name][0] for name in names])[0]
    BEHAVIOURS[what][1](visit, what)


def done(journal: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Behaviour → how many shoppers came to the end of it."""
    counts = dict.fromkeys(BEHAVIOURS, 0)
    for line in journal:
        if line["kind"] == "shopper" and line["what"] in counts:
            counts[line["what"]] += 1
    return counts

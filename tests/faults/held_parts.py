"""Checkouts that are paid in parts, under fire: all of an amount is there at the end, or nothing, and never more.

A shopper pays with a card that grants half, then pays the rest, is declined, gives it back, does both in two tabs, or
goes away. The comparison is of what the acquirer's log has of each checkout's payments with the checkout's amount, at
every moment and at the end, and with what our books and the client were told.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from typing import Any, Final

import psycopg

from tests.faults.browser import at_once
from tests.faults.client import Client, Journal
from tests.faults.faults import Strike
from tests.faults.finding import LOST, OVER, Finding
from tests.faults.peers.opening import Opened, open_shops
from tests.faults.peers.opening import Shop as OpenedShop
from tests.faults.races import Shop
from tests.faults.stack import Stack

PAUSE_S: Final = (0.02, 0.2)
SETTLED_WITHIN_S: Final = 25.0
ASK_EVERY_S: Final = 0.4
HALVES: Final = (("VISA", "4000050000000007"), ("MASTER", "5200050000000002"))
PLAIN: Final = ("VISA", "4200000000000000")
DECLINED: Final = ("VISA", "4000015500000005")
MOVES: Final = {"pay": 5, "half": 3, "decline": 2, "release": 3, "two tabs": 3, "leave": 1}
"""What a shopper does next → how often."""
HELD_S: Final = 16 * 60
"""A part is held for less."""
MOVE_AGAIN_AFTER_S: Final = 5.0
DOCUMENT: Final = {
    "acquirers": {"accounts": [{"connector": "stub", "merchant": "STUB-parts"}]},
    "channel": {"partialApprovals": "collect"},
}
_NAME: Final = "Parts"
_CHECKOUTS: Final = """
SELECT replace(c.id::text, '-', ''), c.request ->> 'amount', coalesce(replace(c.payment_id::text, '-', ''), '')
FROM checkout_checkout c WHERE c.channel_id = %s::uuid
"""
_HELD: Final = """
SELECT count(*) FROM gateway_suspension s JOIN gateway_payment p ON p.id = s.payment_id
WHERE p.channel_id = %s::uuid AND s.stage = 'part'
"""
_PAYMENTS: Final = """
SELECT replace(p.id::text, '-', ''), lower(left(split_part(p.resource_path, '/', 4), 32)), p.status, p.approved_amount
FROM gateway_payment p WHERE p.channel_id = %s::uuid AND p.resource_path LIKE '/v1/checkouts/%%'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A payment of a checkout in our books."""

    id: str
    checkout: str
    status: str = "APPROVED"
    approved: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaidCheckout:
    """A checkout in our books. ``last``: its last payment, '' for none."""

    id: str
    amount: Decimal
    last: str = ""


@dataclass(slots=True, kw_only=True)
class Facts:
    """Both sides. ``moves``: payment and what the acquirer booked (more than 0) or gave back, in its log's order."""

    checkouts: Sequence[PaidCheckout] = ()
    parts: Sequence[Part] = ()
    moves: Sequence[tuple[str, Decimal]] = field(default_factory=list)


class Shopper:
    """Pays checkouts in parts, and asks until it is known how a press went."""

    def __init__(self, client: Client, other: Client, dice: random.Random, ended: threading.Event) -> None:
        """``other``: of a second tab."""
        self._client, self._other, self._dice, self._ended = client, other, dice, ended

    def use_checkout(self, order: str, moves: Sequence[str] = ()) -> str:
        """One checkout from its first card on; ``moves``: of MOVES, drawn where none are given. Returns its id."""
        amount = f"{self._dice.randint(10, 90)}.{self._dice.randint(0, 99):02d}"
        fields = {"amount": amount, "currency": "EUR", "paymentType": self._dice.choice(("DB", "PA"))}
        made = self._client.pay(order, {**fields, "testMode": "EXTERNAL"}, path="/v1/checkouts")
        if made is None or not made.id:
            return ""
        checkout = made.id
        self._pay(checkout, self._dice.choice(HALVES))
        for move in moves or self._dice.choices(list(MOVES), list(MOVES.values()), k=self._dice.randint(1, 4)):
            if self._ended.is_set() or move == "leave" or not self._is_open(checkout):
                break
            self._move(checkout, move)
            time.sleep(self._dice.uniform(*PAUSE_S))
        self._is_open(checkout)
        self._client.result(checkout)
        return checkout

    def _move(self, checkout: str, move: str) -> None:
        if move == "release":
            self._release(checkout, self._client)
        elif move == "two tabs":
            pay, give = partial(self._pay, checkout, PLAIN), partial(self._release, checkout, self._other)
            at_once((pay, give) if self._dice.random() < 0.5 else (give, pay))
        else:
            cards = {"pay": PLAIN, "decline": DECLINED, "half": self._dice.choice(HALVES)}
            self._pay(checkout, cards[move])

    def _pay(self, checkout: str, card: tuple[str, str]) -> None:
        fields = {
            "paymentBrand": card[0], "card.number": card[1], "card.holder": "Jane Jones", "card.expiryMonth": "05",
            "card.expiryYear": "2034", "card.cvv": "123",
        }  # fmt: skip
        self._client.once(f"/v1/checkouts/{checkout}/payment", fields)

    def _release(self, checkout: str, client: Client) -> None:
        """Until it was heard: giving back twice does no more than once."""
        end = time.monotonic() + SETTLED_WITHIN_S
        while not self._ended.is_set() and time.monotonic() < end:
            told = client.once(f"/v1/checkouts/{checkout}/release", {})
            if told is not None and told.status < 500:
                return
            time.sleep(ASK_EVERY_S)

    def _is_open(self, checkout: str) -> bool:
        """Whether another card may be tried; asked until the gateway knows."""
        end = time.monotonic() + SETTLED_WITHIN_S
        while not self._ended.is_set() and time.monotonic() < end:
            told = self._client.state(checkout)
            if told is not None and told.body.get("state") in ("open", "done", "expired"):
                return bool(told.body["state"] == "open")
            time.sleep(ASK_EVERY_S)
        return False


class HeldParts:
    """See the module."""

    name = "checkouts in parts"

    def __init__(self, stack: Stack, shop: Shop, seed: int) -> None:
        self.broken: list[str] = []
        self.journals = [stack.folder / "journal-parts.jsonl"]
        self._stack, self._port, self._seed = stack, shop.port, seed
        self._opened: Opened | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._facts = Facts()
        self._moved_at = 0.0

    # --- a duty ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._opened = open_shops(self._stack, [OpenedShop(name=_NAME, channels={_NAME: DOCUMENT})], {})[_NAME]
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self) -> bool:
        """Nobody comes any more, and the time of what is held is over."""
        self._ended.set()
        assert self._thread is not None
        self._thread.join(240)
        for _ in range(100):
            if self._move_clock():
                return not self._thread.is_alive()
            time.sleep(0.5)
        return False

    def _move_clock(self) -> bool:
        """The time of what is held now is over."""
        self._moved_at = time.monotonic()
        told = self._client().once("/v1/test/clock", {"advance": str(HELD_S)})
        return told is not None and told.status == 200

    def owed(self) -> int:
        """Parts that are held. A payment that was in doubt as the clock was moved is held from then on, so that the
        clock has to be moved once more."""
        assert self._opened is not None
        with self._stack.connect() as connection:
            (held,) = connection.execute(_HELD, [self._opened.entity]).fetchone() or (0,)
        if held and time.monotonic() > self._moved_at + MOVE_AGAIN_AFTER_S:
            self._move_clock()
        return int(held)

    def findings(self, strikes: Sequence[Strike]) -> list[Finding]:
        assert self._opened is not None
        with self._stack.connect() as connection:
            self._facts = load_facts(connection, self._opened.entity, self._stack.acquirer_log())
        return find_all(self._facts)

    def told(self) -> str:
        parts = group_parts(self._facts)
        paid = [sum(one.status == "APPROVED" for one in parts.get(row.id, ())) for row in self._facts.checkouts]
        taken_back = sum(amount < 0 for _, amount in self._facts.moves)
        return (
            f"{len(paid)}: {sum(count == 1 for count in paid)} paid at once, {sum(count > 1 for count in paid)} in "
            f"parts, {paid.count(0)} not; {taken_back} parts given back"
        )

    def clients(self, journal: Journal) -> list[Client]:
        """One, to ask everything once more with."""
        return [self._client(journal)]

    # --- its load -------------------------------------------------------------------------------------------------

    def _client(self, journal: Journal | None = None) -> Client:
        assert self._opened is not None
        return Client(
            port=self._port, entity=self._opened.entity, token=self._opened.token, name=_NAME, journal=journal
        )

    def _work(self) -> None:
        client, other, count = self._client(Journal(path=self.journals[0])), self._client(), 0
        shopper = Shopper(client, other, random.Random(self._seed), self._ended)
        try:
            while not self._ended.is_set():
                count += 1
                shopper.use_checkout(f"parts-{self._seed}-{count}")
        except Exception as fault:
            self.broken.append(f"{self.name}: {type(fault).__name__}: {fault}")
        finally:
            client.close()
            other.close()


# --- reading ------------------------------------------------------------------------------------------------------


def load_facts(connection: psycopg.Connection[Any], entity: str, log: Iterable[Mapping[str, Any]]) -> Facts:
    """What our books and the acquirer's ``log`` say of the channel ``entity``."""
    checkouts = [
        PaidCheckout(id=row[0], amount=Decimal(row[1]), last=row[2])
        for row in connection.execute(_CHECKOUTS, (entity,)).fetchall()
    ]
    parts = [
        Part(id=row[0], checkout=row[1], status=row[2], approved=row[3])
        for row in connection.execute(_PAYMENTS, (entity,)).fetchall()
    ]
    return Facts(checkouts=checkouts, parts=parts, moves=read_moves(log, {one.id for one in parts}))


def read_moves(log: Iterable[Mapping[str, Any]], wanted: set[str]) -> list[tuple[str, Decimal]]:
    """What the acquirer booked and gave back of the payments ``wanted``, in order."""
    found: list[tuple[str, Decimal]] = []
    standing: dict[str, Decimal] = {}
    for line in log:
        key = str(line.get("key")).partition("-")[0]
        if key not in wanted:
            continue
        if (line["kind"], line.get("outcome")) == ("submit", "approved"):
            standing[key] = Decimal(line["answer"]["approvedAmount"])
            found.append((key, standing[key]))
        elif (line["kind"], line.get("outcome")) == ("void", "reversed"):
            found.append((key, -standing.pop(key)))
    return found


def group_parts(facts: Facts) -> dict[str, list[Part]]:
    """Checkout → its payments."""
    found: dict[str, list[Part]] = {}
    for one in facts.parts:
        found.setdefault(one.checkout, []).append(one)
    return found


# --- comparing: pure ----------------------------------------------------------------------------------------------


def find_all(facts: Facts) -> list[Finding]:
    """Every finding of every check."""
    return [*above_amount(facts), *neither_all_nor_nothing(facts)]


def above_amount(facts: Facts) -> list[Finding]:
    """At no moment does the acquirer hold or book more of a checkout's payments than the checkout's amount."""
    checkout_of = {one.id: one.checkout for one in facts.parts}
    amounts = {one.id: one.amount for one in facts.checkouts}
    standing: dict[str, Decimal] = {}
    found = []
    for payment, amount in facts.moves:
        checkout = checkout_of[payment]
        standing[checkout] = standing.get(checkout, Decimal(0)) + amount
        if amount > 0 and standing[checkout] > amounts[checkout]:
            what = f"the acquirer had {standing[checkout]} of a checkout of {amounts[checkout]}"
            found.append(Finding(kind=OVER, what=what, payment=payment))
    return found


def neither_all_nor_nothing(facts: Facts) -> list[Finding]:
    """At the end both sides have the whole amount of a checkout or nothing, and its last payment says which."""
    at_acquirer: dict[str, Decimal] = {}
    for payment, amount in facts.moves:
        at_acquirer[payment] = at_acquirer.get(payment, Decimal(0)) + amount
    parts = group_parts(facts)
    found = []
    for row in facts.checkouts:
        mine = parts.get(row.id, [])
        there = sum((at_acquirer.get(one.id, Decimal(0)) for one in mine), Decimal(0))
        approved = [one for one in mine if one.status == "APPROVED"]
        here = sum((one.approved or Decimal(0) for one in approved), Decimal(0))
        is_paid = row.last in {one.id for one in approved}
        if not there == here == (row.amount if is_paid else 0):
            what = f"a checkout of {row.amount}, {'paid' if is_paid else 'not paid'}: {there} there, {here} here"
            found.append(Finding(kind=LOST, what=what, payment=row.last))
    return found

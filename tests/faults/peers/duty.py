"""The peers as a duty of the run: they are paid through while everything is killed, and then their books are compared.

``steer`` and the sides are what faults act on (tests.faults.faults_peers).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from tests.faults import books
from tests.faults.client import Answer, Client, Journal, payment
from tests.faults.faults import BASE_ODDS, Strike
from tests.faults.finding import Finding
from tests.faults.peers.bank import WORD, Bank
from tests.faults.peers.cards import CoreCards, KeyedCards
from tests.faults.peers.chains import Chains
from tests.faults.peers.iso import Iso, Pair
from tests.faults.peers.misdeeds import WAYS
from tests.faults.peers.opening import Opened, Shop, open_shops
from tests.faults.peers.sides import Side, all_taps
from tests.faults.processes import eventually
from tests.faults.races import Shop as DemoShop
from tests.faults.stack import Stack
from tests.support.card_host import CARD, KEY

COLUMN: Final = 38
"""Where the figures of a run's table begin."""


class Peers:
    """See the module. ``sides``: those whose programs are there; ``missing``: why the others are not."""

    name = "peers"

    def __init__(self, stack: Stack, shop: DemoShop, seed: int) -> None:
        self.broken: list[str] = []
        self._stack, self._seed, self._port = stack, seed, shop.port
        self.iso = Iso(stack.folder, seed)
        self.core, self.keyed = CoreCards(stack.folder, seed + 1), KeyedCards(stack.folder, seed + 2)
        self.pair, self.bank = Pair(stack.folder, seed + 3), Bank(stack, seed + 4)
        every: list[Side] = [self.iso, self.core, self.keyed, self.pair, self.bank]
        self.sides = [side for side in every if not side.missing]
        self.missing = sorted({side.missing for side in every if side.missing})
        self._opened: dict[str, Opened] = {}
        self._loads: list[Any] = []
        self._spread_s = 0.0
        self._probes = 0
        many = sum(side.clients for side in self.sides)
        self.journals = [stack.folder / f"journal-peers-{number}.jsonl" for number in range(many)]

    def spread(self, seconds: float) -> None:
        """Have payments left until a run of so many seconds ends: the peers' books bound how many there are."""
        self._spread_s = seconds

    # --- a duty ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        for side in self.sides:
            side.up()
        bank_ahead_s = (self.bank.began - datetime.now(UTC)).total_seconds()
        cards = {side.name: side.document() for side in self.sides if side is not self.bank}
        shops = [Shop(name="Peers", channels=cards)]
        if self.bank in self.sides:
            bank = {self.bank.name: self.bank.document()}
            shops.append(Shop(name="Peers, bank", channels=bank, ahead_s=bank_ahead_s))
        self._opened = open_shops(self._stack, shops, {"card-api.key": KEY, "bank.password": WORD})
        self.steer({})
        journals = iter(self.journals)
        for side in self.sides:
            for number in range(side.clients):
                client = self._client(side.name, Journal(path=next(journals)))
                self._loads += side.load(client, number, self._seed)
        for load in self._loads:
            if isinstance(load, Chains):
                load.spread(self._spread_s)
            load.start()

    def stop(self) -> bool:
        for tap in all_taps(self.sides):
            tap.misdeeds.steer({})
        for load in self._loads:
            load.end()
        ended = [load.join() for load in self._loads]
        self.broken += [text for load in self._loads for text in load.broken]
        return all(ended)

    def owed(self) -> int:
        if self.bank not in self.sides:
            return 0
        self.bank.push_on()
        return self.bank.owed()

    def findings(self, strikes: Sequence[Strike]) -> list[Finding]:
        with self._stack.connect() as connection:
            ours = books.ours(connection)
        found = []
        for side in self.sides:
            mine = {ident: one for ident, one in ours.items() if one.entity == self._opened[side.name].entity}
            found += side.compare(mine)
        for side in self.sides:
            side.down()
        return found

    def told(self) -> str:
        lines = [
            *(f"{side.name}: {side.told()}" for side in self.sides),
            *(f"not tested: {one}" for one in self.missing),
        ]
        return ("\n" + COLUMN * " ").join(lines)

    def clients(self, journal: Journal) -> list[Client]:
        """One for each channel, to ask everything once more with."""
        return [self._client(name, journal) for name in self._opened]

    # --- what faults act on ---------------------------------------------------------------------------------------

    def steer(self, odds: Mapping[str, float], *, delay_s: float = 0.0) -> None:
        """Chances of misdeeds on every line; a little of each where none are named."""
        for tap in all_taps(self.sides):
            tap.misdeeds.steer(dict(odds) or dict.fromkeys(WAYS, BASE_ODDS), delay_s=delay_s)

    def seen(self, way: str) -> dict[str, int]:
        """Side → how often it happened there, of those on whose lines it can."""
        return {
            side.name: sum(tap.misdeeds.seen[way] for tap in side.taps)
            for side in self.sides
            if any(way in tap.misdeeds.ways for tap in side.taps)
        }

    def pays(self, side: Side, within_s: float) -> bool:
        """Whether a payment is approved by it, sooner or later. The bank's are decided days later."""
        if side is self.bank or side not in self.sides:
            return True
        number = 0

        def paid() -> bool:
            nonlocal number
            number += 1
            told = self._probe(side, f"probe-{self.sides.index(side)}-{self._seed}-{self._probes}-{number}")
            return told is not None and told.is_approved

        self._probes += 1
        return eventually(paid, within_s, 0.3)

    def _probe(self, side: Side, order: str) -> Answer | None:
        client = self._client(side.name)
        try:
            return client.once("/v1/payments", payment("DB", "5.00", mode="EXTERNAL", order=order, card=CARD), order)
        finally:
            client.close()

    def _client(self, name: str, journal: Journal | None = None) -> Client:
        opened = self._opened[name]
        return Client(port=self._port, entity=opened.entity, token=opened.token, name=name, journal=journal)

"""Bounded load until it is stopped: clients with chains of their own, shops whose shoppers are sent away."""

from __future__ import annotations

import random
import secrets
import threading
import time
from collections.abc import Callable, Collection
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from tests.faults import shoppers
from tests.faults.browser import Browser
from tests.faults.client import Answer, Client, Journal, follow_up, payment
from tests.faults.races import Shop

CLIENTS: Final = 8
SHOPS: Final = 6
"""Clients whose payments wait for shoppers."""
PAUSE_S: Final = (0.01, 0.06)
"""Between two requests of a client, from and to: the load is bounded whatever the machine can do."""
SETTLED_WITHIN_S: Final = 25.0
ASK_EVERY_S: Final = 0.5
EXTERNAL_SHARE: Final = 0.8
CASCADED: Final = (("4000018301000000", 4), ("4000018302000009", 2), ("4000018303000008", 2))
"""Declined by a rule's first account; then approved, declined, approved without an answer (docs/routing.md)."""
# Card → how often: approved, approved for half of the amount, declined, and those that go on to a second account.
CARDS: Final = (("4200000000000000", 80), ("4000050000000007", 5), ("4000015500000005", 7), *CASCADED)
CENT: Final = Decimal("0.01")
PRACTICES: Final = ("INCREMENTAL_AUTH", "REAUTHORIZATION")


class Load:
    """``start()``, ``stop()``; ``hurt`` counts tries without an answer or with a 5xx, as it goes."""

    def __init__(
        self,
        folder: Path,
        *,
        shop: Shop,
        seed: int,
        clients: int = CLIENTS,
        shops: int = SHOPS,
        left_out: Collection[str] = (),
    ) -> None:
        """``left_out``: what no shopper does (shoppers.BEHAVIOURS)."""
        self.run = secrets.token_hex(4)
        self.journals = [folder / f"journal-{number}.jsonl" for number in range(clients + shops)]
        self._left_out = left_out
        self._shop = shop
        self._clients = [shop.client(Journal(path=path)) for path in self.journals]
        self._browsers = {clients + number: Browser(port=shop.port) for number in range(shops)}
        self._ended = threading.Event()
        works = [self._work] * clients + [self._serve] * shops
        self._threads = [
            threading.Thread(target=work, args=(number, random.Random(seed + number)), daemon=True)
            for number, work in enumerate(works)
        ]
        self.broken: list[str] = []

    @property
    def hurt(self) -> int:
        return sum(one.hurt for one in self._clients) + sum(one.hurt for one in self._browsers.values())

    @property
    def server_errors(self) -> int:
        """Answers with a 5xx, pages among them."""
        shops = self._browsers.values()
        return sum(one.server_errors for one in self._clients) + sum(one.server_errors for one in shops)

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> bool:
        """No new requests; those under way get their answers. Whether every client came to its end."""
        self._ended.set()
        for thread in self._threads:
            thread.join(240)
        return not any(thread.is_alive() for thread in self._threads)

    def _work(self, number: int, dice: random.Random) -> None:
        client = self._clients[number]
        count = 0
        try:
            while not self._ended.is_set():
                count += 1
                self._chain(client, dice, f"fault-{self.run}-{number}-{count}")
        except Exception as fault:  # a client that dies would make the load look survived
            self.broken.append(f"client {number}: {type(fault).__name__}: {fault}")
        finally:
            client.close()

    def _serve(self, number: int, dice: random.Random) -> None:
        """Shoppers, one after the other; those who come back later are seen to when their time has come."""
        client, count = self._clients[number], 0
        late = self._shop.late_client(client.journal)
        later: list[tuple[float, Callable[[], object]]] = []
        try:
            while not self._ended.is_set():
                count += 1
                shoppers.act(
                    shoppers.Visit(
                        client=client,
                        late=late,
                        entity=self._shop.authenticating,
                        dice=dice,
                        later=later,
                        browser=self._browsers[number],
                        order=f"shopper-{self.run}-{number}-{count}",
                    ),
                    self._left_out,
                )
                for due in [one for one in later if one[0] <= time.monotonic()]:
                    later.remove(due)
                    due[1]()
            for at, come in later:
                time.sleep(max(0.0, at - time.monotonic()))
                come()
        except Exception as fault:
            self.broken.append(f"shop {number}: {type(fault).__name__}: {fault}")
        finally:
            client.close()
            late.close()

    def _chain(self, client: Client, dice: random.Random, order: str) -> None:
        kind = dice.choice(("DB", "PA"))
        amount = CENT * dice.randint(1_000, 30_000)
        card = dice.choices([row[0] for row in CARDS], [row[1] for row in CARDS])[0]
        mode = "EXTERNAL" if dice.random() < EXTERNAL_SHARE else "INTERNAL"
        fields = payment(kind, str(amount), mode=mode, order=order, card=card)
        granted = self._settled(client, dice, client.pay(order, fields), patient=True)
        if granted is None:
            return
        if kind == "DB":
            self._give_back(client, dice, order, granted)
            return
        left = Decimal(granted.amount)
        if dice.random() < 0.3:
            practice = dice.choice(PRACTICES)
            more = CENT * dice.randint(100, 9_000)
            self._follow(client, dice, f"{order}-more", granted.id, "PA", more, practice=practice)
        for turn in range(dice.randint(1, 3)):
            part = (left * dice.randint(20, 70) / 100).quantize(CENT)
            captured = self._follow(client, dice, f"{order}-cp{turn}", granted.id, "CP", part)
            left -= part
            if captured is not None and dice.random() < 0.5:
                self._give_back(client, dice, f"{order}-cp{turn}", captured)
        # Too much, which must be refused, then whatever remains: reversed, or released by the last capture, or held.
        self._follow(client, dice, f"{order}-much", granted.id, "CP", Decimal(granted.amount) + 100)
        if dice.random() < 0.3:
            self._follow(client, dice, f"{order}-last", granted.id, "CP", CENT, final=True)
        elif dice.random() < 0.8:
            self._follow(client, dice, f"{order}-rest", granted.id, "RV", None)

    def _give_back(self, client: Client, dice: random.Random, order: str, taken: Answer) -> None:
        """Refunds in parts, the last of them too much now and then; or a reversal."""
        if dice.random() < 0.2:
            self._follow(client, dice, f"{order}-rv", taken.id, "RV", None)
            return
        for turn in range(dice.randint(1, 3)):
            part = (Decimal(taken.amount) * dice.randint(20, 60) / 100).quantize(CENT)
            self._follow(client, dice, f"{order}-rf{turn}", taken.id, "RF", max(part, CENT))

    def _follow(
        self,
        client: Client,
        dice: random.Random,
        order: str,
        target: str,
        kind: str,
        amount: Decimal | None,
        **more: Any,
    ) -> Answer | None:
        if self._ended.is_set():
            return None
        time.sleep(dice.uniform(*PAUSE_S))
        fields = follow_up(kind, None if amount is None else str(amount), order=order, **more)
        told = client.pay(order, fields, target)
        return self._settled(client, dice, told, patient=dice.random() < 0.7)

    def _settled(self, client: Client, dice: random.Random, told: Answer | None, *, patient: bool) -> Answer | None:
        """The answer once it is final, if it approves. An impatient client goes on beside an open payment."""
        end = time.monotonic() + SETTLED_WITHIN_S
        while told is not None and told.is_open and told.id and patient and not self._ended.is_set():
            if time.monotonic() > end:
                return None
            time.sleep(ASK_EVERY_S)
            again = client.read(told.id)
            told = again if again is not None and again.id else told
        time.sleep(dice.uniform(*PAUSE_S))
        return told if told is not None and told.is_approved else None

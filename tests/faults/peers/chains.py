"""Bounded load through a processor: chains of payments on one channel, each step waited for until it is final."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from tests.faults.client import Answer, Client, follow_up, payment

PAUSE_S: Final = (0.05, 0.35)
"""Between two requests: the peers are slow programs, and share two cores with the product."""
SETTLED_WITHIN_S: Final = 60.0
ASK_EVERY_S: Final = 0.4
MOST_CHAINS: Final = 400
"""Of one client: a card API is looked through for what was lost, 2,000 objects at most."""
MOST_FIRSTS: Final = 2_000
"""Of a client that follows nothing up."""
CENT: Final = Decimal("0.01")
PRACTICES: Final = ("INCREMENTAL_AUTH", "REAUTHORIZATION")


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """What a client of one processor does. ``declined``: a card that is, '' for none; ``captures``: of one
    authorization, at most; ``raises``: some authorizations, and renews and closes some; ``first_only``: nothing follows
    a payment, so that none is waited for at an acquirer that is gone."""

    approved: str
    declined: str = ""
    captures: int = 1
    raises: bool = False
    first_only: bool = False


class Chains:
    """One client that pays until it is stopped."""

    def __init__(self, client: Client, habits: Habits, *, order: str, seed: int) -> None:
        self._client, self._habits, self._order = client, habits, order
        self._dice = random.Random(seed)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._most = MOST_FIRSTS if habits.first_only else MOST_CHAINS
        self._each_s = 0.0
        self.broken: list[str] = []
        self.client = client

    def spread(self, seconds: float) -> None:
        """Have chains left until a run of so many seconds ends: each begins its share of the time after the last."""
        self._each_s = seconds / self._most

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._ended.set()

    def join(self) -> bool:
        """Whether it came to its end."""
        self._thread.join(240)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            began = time.monotonic()
            for number in range(self._most):
                if self._ended.wait(max(0.0, began + number * self._each_s - time.monotonic())):
                    break
                self._chain(f"{self._order}-{number}")
        except Exception as fault:  # a client that dies would make the load look survived
            self.broken.append(f"{self._order}: {type(fault).__name__}: {fault}")
        finally:
            self._client.close()

    def _chain(self, order: str) -> None:
        dice, habits = self._dice, self._habits
        kind = dice.choice(("DB", "PA"))
        amount = CENT * dice.randint(1_000, 30_000)
        card = habits.declined if habits.declined and dice.random() < 0.1 else habits.approved
        fields = payment(kind, str(amount), mode="EXTERNAL", order=order, card=card)
        first = self._settled(lambda: self._client.pay(order, fields))
        if first is None or habits.first_only:
            return
        if kind == "DB":
            self._give_back(order, first)
            return
        if habits.raises and dice.random() < 0.4:
            practice = dice.choice(PRACTICES)
            self._follow(f"{order}-more", first.id, "PA", CENT * dice.randint(100, 9_000), practice=practice)
        for turn in range(dice.randint(0, habits.captures)):
            part = (amount * dice.randint(20, 45) / 100).quantize(CENT)
            captured = self._follow(f"{order}-cp{turn}", first.id, "CP", part)
            if captured is not None and dice.random() < 0.5:
                self._give_back(f"{order}-cp{turn}", captured, reverse=False)
        self._follow(f"{order}-much", first.id, "CP", 2 * amount + 100)
        if habits.raises and dice.random() < 0.3:
            self._follow(f"{order}-last", first.id, "CP", amount / 10, final=True)
        elif dice.random() < 0.8:
            self._follow(f"{order}-rest", first.id, "RV", None)

    def _give_back(self, order: str, taken: Answer, *, reverse: bool = True) -> None:
        if reverse and self._dice.random() < 0.2:
            self._follow(f"{order}-rv", taken.id, "RV", None)
            return
        for turn in range(self._dice.randint(0, 2)):
            part = (Decimal(taken.amount) * self._dice.randint(20, 60) / 100).quantize(CENT)
            self._follow(f"{order}-rf{turn}", taken.id, "RF", max(part, CENT))

    def _follow(self, order: str, target: str, kind: str, amount: Decimal | None, **more: Any) -> Answer | None:
        if self._ended.is_set():
            return None
        text = None if amount is None else str(amount.quantize(CENT))
        fields = follow_up(kind, text, order=order, **more)
        return self._settled(lambda: self._client.pay(order, fields, target))

    def _settled(self, ask: Callable[[], Answer | None]) -> Answer | None:
        """The final answer, if it approves."""
        time.sleep(self._dice.uniform(*PAUSE_S))
        told = ask()
        end = time.monotonic() + SETTLED_WITHIN_S
        while told is not None and told.is_open and not self._ended.is_set() and time.monotonic() < end:
            time.sleep(ASK_EVERY_S)
            again = self._client.read(told.id)
            told = again if again is not None and again.id else told
        return told if told is not None and told.is_approved else None

"""Clients that share one pace, so that the load is so many payments a second whatever the machine can do."""

from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from tests.faults.client import Answer, Client, Journal
from tests.faults.races import Shop

REMEMBERED: Final = 200
"""Payments of which others read: the newest."""
REPEATED_SHARE: Final = 0.03
"""Of the requests: they are sent once more with their key, as after a broken connection."""


class Traffic:
    """The pace, and what its clients know together. ``odd``: answers that must not be; ``repeats``: requests that were
    sent twice."""

    def __init__(self, rate: float, seed: int) -> None:
        """``rate``: requests a second."""
        self.seed = seed
        self.odd: list[str] = []
        self.repeats = 0
        self._step_s = 1 / rate
        self._dice = random.Random(seed)
        self._lock = threading.Lock()
        self._next = time.monotonic()
        self._lifted = threading.Event()
        self._known: deque[tuple[str, str]] = deque(maxlen=REMEMBERED)

    def wait(self) -> None:
        """Until it is this request's turn. What a slow machine missed is not made up for."""
        with self._lock:
            now = time.monotonic()
            turn = max(self._next, now)
            self._next = turn + self._step_s
        self._lifted.wait(turn - now)

    def lift(self) -> None:
        """Nobody waits any more: the load comes to its end."""
        self._lifted.set()

    def is_repeated(self) -> bool:
        """Whether the next request is to be sent twice."""
        with self._lock:
            return not self._lifted.is_set() and self._dice.random() < REPEATED_SHARE

    def note(self, order: str, told: Answer) -> None:
        """A payment that was made."""
        if order and told.id:
            self._known.append((order, told.id))

    def draw(self) -> tuple[str, str] | None:
        """Order and id of one of the newest payments; None while there is none."""
        with self._lock:
            known = list(self._known)
            return self._dice.choice(known) if known else None


class PacedClient(Client):
    """One connection; each POST of a payment waits for its turn, and some are sent twice."""

    def __init__(self, traffic: Traffic, **facts: Any) -> None:
        super().__init__(**facts)
        self._traffic = traffic

    def pay(self, key: str, fields: Mapping[str, str], target: str = "", path: str = "") -> Answer | None:
        self._traffic.wait()
        told = super().pay(key, fields, target, path)
        if told is None:
            return None
        if self.name == "demo" and not path and not target and "entityId" not in fields:
            self._traffic.note(fields.get("merchantTransactionId", ""), told)
        if self._traffic.is_repeated():
            self._traffic.repeats += 1
            again = super().pay(key, fields, target, path)
            if again is None or again.id != told.id or not again.replayed:
                self._traffic.odd.append(f"key {key}: {told.status} {told.code} {told.id}, repeated: {again}"[:300])
        return told


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedShop(Shop):
    """Where to pay, at a pace."""

    traffic: Traffic

    @classmethod
    def of(cls, shop: Shop, traffic: Traffic) -> Self:
        return cls(**{field.name: getattr(shop, field.name) for field in fields(shop)}, traffic=traffic)

    def client(self, journal: Journal | None = None) -> Client:
        facts = {"port": self.port, "entity": self.entity, "token": self.token, "journal": journal}
        return PacedClient(self.traffic, **facts)

    def late_client(self, journal: Journal | None = None) -> Client:
        facts = {"port": self.port, "entity": self.other_entity, "token": self.other_token, "journal": journal}
        return PacedClient(self.traffic, name="other", **facts)

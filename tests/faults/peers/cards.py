"""Cards through a card API: localstripe, which others wrote, and the one of our own tests, which knows what that does
not."""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.external.peers import Peer, program
from tests.faults.books import Payment
from tests.faults.client import Client
from tests.faults.finding import Finding
from tests.faults.peers import card_books, http_tap
from tests.faults.peers.card_books import CardBooks
from tests.faults.peers.chains import Chains, Habits
from tests.faults.peers.http_tap import HttpTap
from tests.faults.peers.misdeeds import Misdeeds
from tests.faults.peers.opening import card_account
from tests.faults.peers.sides import LATE_S, LAUNCHER, absent
from tests.support.card_host import CARD, KEY, CardApi, card_api
from tests.support.ports import free_port


class CoreCards:
    """Cards through localstripe, which knows no idempotency keys. Its books are a file that it writes before each
    answer; LAUNCHER has it written whole or not at all. It is killed between two requests."""

    name = "localstripe"
    clients = 1

    def __init__(self, folder: Path, seed: int) -> None:
        self.missing = absent("localstripe")
        self.misdeeds = Misdeeds(http_tap.WAYS, late_s=LATE_S, seed=seed)
        self._folder = folder / "localstripe"
        self._folder.mkdir()
        self._port = free_port()
        self.tap = HttpTap(port=free_port(), to=self._port, misdeeds=self.misdeeds, journal=self._folder / "tap.jsonl")
        self.taps = [self.tap]
        kept = f"/tmp/localstripe.pickle={self._folder / 'books.pickle'}"
        command: list[str | Path] = [
            program("python"),
            LAUNCHER,
            "--instead",
            kept,
            "localstripe",
            "--port",
            str(self._port),
        ]
        self.peer = Peer(command, port=self._port, folder=self._folder, environ={})
        self._books = CardBooks(intents=(), refunds=())

    def document(self) -> dict[str, Any]:
        return {"acquirers": {"accounts": [card_account(self.tap.port, keyed=False)]}}

    def up(self) -> None:
        self.peer.start()
        self.tap.open()

    def kill(self) -> bool:
        """kill -9 between two writes of its books; whether it was."""
        quiet = self.tap.hold()
        self.peer.kill()
        self.tap.shut()
        return quiet

    def load(self, client: Client, number: int, seed: int) -> list[Chains]:
        habits = Habits(approved=CARD, declined="4000000000000341")
        return [Chains(client, habits, order=f"peer-core-{seed}", seed=seed)]

    def compare(self, payments: Mapping[str, Payment]) -> list[Finding]:
        self._books = CardBooks(intents=self._list("payment_intents"), refunds=self._list("refunds"))
        return card_books.compare(payments, self._books)

    def _list(self, kind: str) -> list[dict[str, Any]]:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/v1/{kind}?limit=100000", headers={"Authorization": f"Bearer {KEY}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            found: list[dict[str, Any]] = json.loads(answer.read())["data"]
        return found

    def told(self) -> str:
        return f"{len(self._books.intents)} intents, {len(self._books.refunds)} refunds"

    def down(self) -> None:
        self.tap.shut()
        self.peer.stop()


class KeyedCards:
    """Cards through the card API of our own tests, which knows idempotency keys as localstripe does not."""

    name = "own card API"
    clients = 1
    missing = ""

    def __init__(self, folder: Path, seed: int) -> None:
        self.misdeeds = Misdeeds(http_tap.KEYED_WAYS, late_s=LATE_S, seed=seed)
        self._kept = contextlib.ExitStack()
        self.api = self._kept.enter_context(card_api())
        self.tap = HttpTap(
            port=free_port(), to=self.api.port, misdeeds=self.misdeeds, journal=folder / "own-card-api.jsonl"
        )
        self.taps = [self.tap]
        self.up = self.tap.open

    def document(self) -> dict[str, Any]:
        return {"acquirers": {"accounts": [card_account(self.tap.port, keyed=True)]}}

    def load(self, client: Client, number: int, seed: int) -> list[Chains]:
        habits = Habits(approved=CARD, declined="4000000000009995")
        return [Chains(client, habits, order=f"peer-keyed-{seed}", seed=seed)]

    def compare(self, payments: Mapping[str, Payment]) -> list[Finding]:
        return card_books.compare(payments, books_of(self.api))

    def told(self) -> str:
        books = books_of(self.api)
        return f"{len(books.intents)} intents, {len(books.refunds)} refunds, {len(self.api.keys)} keys"

    def down(self) -> None:
        self.tap.shut()
        self._kept.close()


def books_of(api: CardApi) -> CardBooks:
    return CardBooks(intents=api.of("payment_intent"), refunds=api.refunds_made())

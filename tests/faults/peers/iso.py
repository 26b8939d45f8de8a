"""Cards through iso8583sim, alone and as the first of two acquirers."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.external.peers import Peer, program
from tests.faults.books import Payment
from tests.faults.client import Client
from tests.faults.finding import DOUBLED, LOST, NO_EVIDENCE, Finding
from tests.faults.peers import card_books, iso_books, iso_tap
from tests.faults.peers.cards import books_of
from tests.faults.peers.chains import Chains, Habits
from tests.faults.peers.iso_tap import ANSWERED, HANDED, IsoTap
from tests.faults.peers.misdeeds import Misdeeds
from tests.faults.peers.opening import card_account, iso_account
from tests.faults.peers.sides import LATE_S, VISA, absent
from tests.faults.processes import eventually
from tests.support.card_host import CARD, card_api
from tests.support.ports import free_port

READ_WITHIN_S: Final = 10.0
NOWHERE: Final = frozenset({"900.100.600", "800.800.400", "900.100.201"})
"""Declines of a payment that might have gone to another acquirer."""


class IsoHost:
    """iso8583sim, and the tap before it. It keeps no books, but it counts: what it counted is lost when it is killed,
    and compared when it ends in order."""

    def __init__(self, folder: Path, name: str, seed: int) -> None:
        self.misdeeds = Misdeeds(iso_tap.WAYS, late_s=LATE_S, seed=seed)
        self._folder = folder / name
        self._folder.mkdir()
        self._rules = self._folder / "rules.json"
        rule = {"match": {"mti": ["0100", "0200"], "pan_prefix": ["400001"]}, "respond": "05"}
        self._rules.write_text(json.dumps({"rules": [rule, {"match": {}, "respond": "00"}]}))
        self._port = free_port()
        self.tap = IsoTap(port=free_port(), to=self._port, misdeeds=self.misdeeds, journal=self._folder / "tap.jsonl")
        self.peer = self._new()
        self._from = 0
        self.killed = 0

    def _new(self) -> Peer:
        command: list[str | Path] = [program("iso8583sim"), "serve", "--port", str(self._port), "--rules", self._rules]
        return Peer(command, port=self._port, folder=self._folder, environ={})

    def up(self) -> None:
        self.peer.start()
        self.tap.open()

    def kill(self) -> None:
        """kill -9: what it counted is lost, and what the tap wrote down is all there is of it."""
        self.peer.kill()
        self.tap.shut()
        self.killed += 1

    def back(self) -> None:
        self._from = len(self.tap.lines)
        self.peer = self._new()
        self.up()

    def compare(self) -> list[Finding]:
        """End it in order, and hold its own counts against the journal since it was started."""
        self.tap.shut()
        settled = eventually(self._is_read, READ_WITHIN_S, 0.1)
        self.peer.stop()
        theirs = _counts(self.peer.log.read_text())
        lines = self.tap.lines[self._from :]
        ours = Counter(line["what"] for line in lines)
        handed, answered = ours[HANDED], ours[ANSWERED] + ours[iso_tap.LOST]
        wrong = []
        if not settled or (theirs["received"], theirs["errors"]) != (handed, 0):
            wrong.append(f"it counted {dict(theirs)}, the tap handed it {handed}")
        if theirs["answered"] != answered:
            wrong.append(f"it says that it answered {theirs['answered']}, the tap read {answered}")
        return [Finding(kind=LOST, what=f"iso8583sim: {what}") for what in wrong]

    def _is_read(self) -> bool:
        """Nothing moves on its lines any more."""
        before = len(self.tap.lines)
        time.sleep(0.5)
        return len(self.tap.lines) == before

    def stories(self) -> dict[str, iso_books.Story]:
        return iso_books.stories(self.tap.lines)

    def compare_holds(self, payments: Mapping[str, Payment]) -> list[Finding]:
        return iso_books.compare_holds(payments, iso_books.holds(self.tap.lines))

    def down(self) -> None:
        self.tap.shut()
        self.peer.stop()


def _counts(log: str) -> Counter[str]:
    """What iso8583sim prints when it ends: its last run's."""
    told = " ".join(log.split()).rpartition("Received")
    found = re.findall(r"(Received|answered|dropped|errors) ([0-9]+)", told[1] + told[2])
    return Counter({name.lower(): int(number) for name, number in found})


class Iso:
    """Cards through iso8583sim."""

    name = "iso8583sim"
    clients = 1

    def __init__(self, folder: Path, seed: int) -> None:
        self.missing = absent("iso8583sim")
        self.host = IsoHost(folder, "iso8583sim", seed)
        self.taps = [self.host.tap]
        self.up, self.down = self.host.up, self.host.down

    def document(self) -> dict[str, Any]:
        return {"acquirers": {"accounts": [iso_account(self.host.tap.port)]}}

    def load(self, client: Client, number: int, seed: int) -> list[Chains]:
        habits = Habits(approved=VISA, declined="4000015500000005", captures=2, raises=True)
        return [Chains(client, habits, order=f"peer-iso-{seed}", seed=seed)]

    def compare(self, payments: Mapping[str, Payment]) -> list[Finding]:
        return [
            *self.host.compare(),
            *iso_books.compare(payments, self.host.stories()),
            *self.host.compare_holds(payments),
        ]

    def told(self) -> str:
        stories = self.host.stories().values()
        return (
            f"{len(stories)} payments, {sum(one.stands for one in stories)} stand, "
            f"{sum(bool(one.undone) for one in stories)} taken back, {sum(one.repeats for one in stories)} repeats"
        )


class Pair:
    """A channel with two acquirers: iso8583sim first, which is killed; a card API of ours behind it, which is always
    there. So a payment of it is declined for want of an acquirer never. Whoever has a chain there waits while the first
    is dead; the others pay on, and are who goes to the second."""

    name = "two acquirers"
    clients = 4

    def __init__(self, folder: Path, seed: int) -> None:
        self.missing = absent("iso8583sim")
        self.first = IsoHost(folder, "first-of-two", seed)
        self._kept = contextlib.ExitStack()
        self.second = self._kept.enter_context(card_api())
        self.taps = [self.first.tap]
        self.up = self.first.up
        self.went_on = 0

    def document(self) -> dict[str, Any]:
        accounts = [
            iso_account(self.first.tap.port, "PEERFIRST"),
            card_account(self.second.port, keyed=True, merchant="PEERSECOND"),
        ]
        to = [
            {"connector": one["connector"], "merchant": one["merchant"], "weight": 1 - place}
            for place, one in enumerate(accounts)
        ]
        return {
            "acquirers": {"accounts": accounts},
            "routing": {"rules": [{"name": "First, then second", "to": to}]},
        }

    def load(self, client: Client, number: int, seed: int) -> list[Chains]:
        habits = Habits(approved=CARD, first_only=number > 0)
        return [Chains(client, habits, order=f"peer-pair-{number}-{seed}", seed=seed + number)]

    def compare(self, payments: Mapping[str, Payment]) -> list[Finding]:
        stories, books = self.first.stories(), books_of(self.second)
        theirs = {one["metadata"].get(card_books.OURS) for one in books.intents if one["status"] != "canceled"}
        there = {ident for ident in theirs if ident}
        self.went_on = sum(one.connector == "stripe" and not one.referenced for one in payments.values())
        at_second = {ident: one for ident, one in payments.items() if one.connector == "stripe"}
        at_first = {ident: one for ident, one in payments.items() if one.connector == "iso8583"}
        both = [ident for ident, story in stories.items() if story.stands and ident in there]
        lost = [one for one in at_first.values() if not one.referenced and one.code in NOWHERE]
        lost += [one for one in at_second.values() if not one.referenced and one.code in NOWHERE]
        return [
            *self.first.compare(),
            *iso_books.compare(at_first, stories),
            *self.first.compare_holds(at_first),
            *card_books.compare(at_second, books),
            *(Finding(kind=DOUBLED, what="it stands at both acquirers", payment=ident) for ident in both),
            *(
                Finding(kind=NO_EVIDENCE, what=f"{one.code}: it could have gone to the second", payment=one.id)
                for one in lost
            ),
        ]

    def told(self) -> str:
        return f"{self.went_on} payments went on to the second; the first was killed {self.first.killed} times"

    def down(self) -> None:
        self.first.down()
        self._kept.close()

"""Races through real HTTP (R2): many connections, started together, on one payment or one key.

Every loser must get a code that the table of operations gives (decisions, section 4; D20), and the winners together
may not move more than there is. Each racer writes nothing but what it was told; the sums are of the answers.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from tests.faults.client import Answer, Client, Journal, follow_up, payment

RACERS: Final = 8
BUSY: Final = "800.120.402"
"""Another request on this chain, or with this key, was faster: to be repeated."""
OVER_CAPTURE: Final = "700.400.100"
OVER_REFUND: Final = "700.400.200"
OVER_REVERSAL: Final = "700.400.300"
OTHER_BODY: Final = "200.300.404"

Ask = Callable[[Client], "Answer | None"]


@dataclass(slots=True, kw_only=True)
class RaceResult:
    """All rounds of one race. ``over``: rounds whose winners moved too much, or made two payments of one key.
    ``odd``: answers that no table names."""

    name: str
    rounds: int = 0
    won: int = 0
    refused: int = 0
    over: int = 0
    odd: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """Where and as whom to pay. ``authenticating``: the merchant's channel with 3-D Secure; ``other_…``: another
    merchant, whose channel authenticates, too."""

    port: int
    entity: str
    token: str
    authenticating: str = ""
    other_entity: str = ""
    other_token: str = field(default="", repr=False)

    def client(self, journal: Journal | None = None) -> Client:
        return Client(port=self.port, entity=self.entity, token=self.token, journal=journal)

    def late_client(self, journal: Journal | None = None) -> Client:
        """Of the other merchant, whose clock is moved on."""
        return Client(port=self.port, entity=self.other_entity, token=self.other_token, name="other", journal=journal)


def together(shop: Shop, asks: Sequence[Ask]) -> list[Answer | None]:
    """Every ask on a connection of its own, opened before, all let go at once; the answers in the same order."""
    gate = threading.Barrier(len(asks))
    answers: list[Answer | None] = [None] * len(asks)

    def run(place: int) -> None:
        client = shop.client()
        try:
            client.read("0" * 32)  # the connection is there, its worker chosen
            gate.wait(30)
            answers[place] = asks[place](client)
        finally:
            client.close()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(asks))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _open(shop: Shop, kind: str, mode: str) -> str:
    """A first payment of 100.00; its id."""
    client = shop.client()
    order = f"race-{secrets.token_hex(6)}"
    told = client.pay(order, payment(kind, "100.00", mode=mode, order=order))
    client.close()
    assert told is not None, "no answer to the first payment of a race"
    assert told.is_approved, told
    return told.id


def _following(target: str, kind: str, amount: str | None) -> Ask:
    order = f"race-{secrets.token_hex(6)}"
    fields = follow_up(kind, amount, order=order)
    return lambda client: client.once(f"/v1/payments/{target}", fields, key=order)


def race_follow_ups(
    shop: Shop,
    result: RaceResult,
    first: str,
    mode: str,
    asked: Sequence[tuple[str, str | None]],
    losing: Mapping[str, frozenset[str]],
) -> None:
    """One round: all of ``asked`` (type, amount) at once on a fresh payment of 100.00. ``losing``: type → the codes
    a loser may get."""
    target = _open(shop, first, mode)
    answers = together(shop, [_following(target, kind, amount) for kind, amount in asked])
    moved = Decimal(0)
    result.rounds += 1
    for (kind, _), told in zip(asked, answers, strict=True):
        if told is not None and told.is_approved:
            result.won += 1
            moved += Decimal(told.amount)
        elif told is not None and told.code in losing[kind] | {BUSY}:
            result.refused += 1
        else:
            result.odd.append(f"{kind} of {target}: {told}")
    result.over += moved > 100


def race_key(shop: Shop, result: RaceResult, mode: str) -> None:
    """One round: one key and one body from every racer. One payment is made; who does not get its answer is told that
    it is still being made, and hears the same answer when asking again."""
    order = f"race-{secrets.token_hex(6)}"
    fields = payment("DB", "100.00", mode=mode, order=order)

    def ask(client: Client) -> Answer | None:
        told = client.once("/v1/payments", fields, key=order)
        if told is not None and told.code == BUSY and told.status == 409:
            refused.append(1)
            told = client.pay(order, fields)
        return told

    refused: list[int] = []
    answers = together(shop, [ask] * RACERS)
    result.rounds += 1
    result.refused += len(refused)
    approved = [told for told in answers if told is not None and told.is_approved]
    result.odd += [f"key {order}: {told}" for told in answers if told is None or not told.is_approved]
    fresh = [told for told in approved if not told.replayed]
    result.won += len(fresh)
    result.over += len({told.id for told in approved}) != 1 or len(fresh) > 1
    if len({str(told.body) for told in approved}) > 1:
        names = sorted({name for told in approved for name in told.body} - _same(approved))
        result.odd.append(f"key {order}: the replays differ in {', '.join(names)}")


def _same(answers: Sequence[Answer]) -> set[str]:
    """The fields that are alike in all answers."""
    return {name for name, value in answers[0].body.items() if all(one.body.get(name) == value for one in answers)}


def race_bodies(shop: Shop, result: RaceResult, mode: str) -> None:
    """One round: one key with another amount from every racer. One payment is made, all others are refused."""
    order = f"race-{secrets.token_hex(6)}"

    def ask(amount: str) -> Ask:
        fields = payment("DB", amount, mode=mode, order=order)

        def go(client: Client) -> Answer | None:
            told = client.once("/v1/payments", fields, key=order)
            return client.pay(order, fields) if told is not None and told.code == BUSY else told

        return go

    answers = together(shop, [ask(f"{10 + place}.00") for place in range(RACERS)])
    result.rounds += 1
    for told in answers:
        if told is not None and told.is_approved:
            result.won += 1
        elif told is not None and (told.status, told.code) == (400, OTHER_BODY):
            result.refused += 1
        else:
            result.odd.append(f"key {order}: {told}")
    result.over += sum(told is not None and told.is_approved for told in answers) != 1


REFUND: Final = {"RF": frozenset({OVER_REFUND})}
CAPTURE: Final = {"CP": frozenset({OVER_CAPTURE})}
# A reversal that finds nothing left loses by its own code; one that comes first closes nothing but the rest.
CAPTURE_OR_REVERSE: Final = CAPTURE | {"RV": frozenset({OVER_REVERSAL})}
REFUND_OR_REVERSE: Final = REFUND | {"RV": frozenset({OVER_REVERSAL})}


def run(shop: Shop, rounds: int, modes: Sequence[str] = ("INTERNAL", "EXTERNAL")) -> list[RaceResult]:
    """Every race, ``rounds`` rounds in each mode."""
    refunds, captures = [("RF", "30.00")] * RACERS, [("CP", "30.00")] * RACERS
    mixed = [("CP", "60.00"), ("RV", None)] * (RACERS // 2)
    back = [("RF", "60.00"), ("RV", None)] * (RACERS // 2)
    table: tuple[tuple[str, Callable[[RaceResult, str], None]], ...] = (
        ("refund / refund", lambda result, mode: race_follow_ups(shop, result, "DB", mode, refunds, REFUND)),
        ("capture / capture", lambda result, mode: race_follow_ups(shop, result, "PA", mode, captures, CAPTURE)),
        (
            "capture / reversal",
            lambda result, mode: race_follow_ups(shop, result, "PA", mode, mixed, CAPTURE_OR_REVERSE),
        ),
        ("refund / reversal", lambda result, mode: race_follow_ups(shop, result, "DB", mode, back, REFUND_OR_REVERSE)),
        ("one key, one body", lambda result, mode: race_key(shop, result, mode)),
        ("one key, other bodies", lambda result, mode: race_bodies(shop, result, mode)),
    )
    results = []
    for name, race in table:
        result = RaceResult(name=name)
        for mode in modes:
            for _ in range(rounds):
                race(result, mode)
        results.append(result)
    return results

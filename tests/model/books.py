"""The model: what a careful bookkeeper would answer, with pots of cents and no line of the product's code.

A preauthorization and what raised or renewed it share one pot, which captures, receipts and reversals draw from.
Every other payment that moved money is a pot of its own, which refunds, reversals and chargebacks draw from.
Source: decisions, section 4; docs/decisions/0007.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

MAY_FOLLOW: dict[str, tuple[str, ...]] = {
    "CP": ("PA",),
    "RF": ("DB", "CP", "RB", "RC"),
    "RV": ("PA", "DB", "CP", "RB", "CD"),
    "RB": ("DB", "CP"),
    "RC": ("PA", "DB", "CP"),
    "CB": ("DB", "CP", "RB", "CR"),
    "CR": ("CB",),
    "INC": ("PA",),
    "REN": ("PA",),
}
WRONG_TYPE = {"CR": "700.400.420"}
WRONG_TYPE_ELSE = "700.300.100"
OPEN = "700.400.570"
FAILED = {
    "CP": "700.400.510", "RF": "700.400.520", "RV": "700.400.530", "RB": "700.300.200", "RC": "700.400.560",
    "CB": "700.400.550", "CR": "700.400.420", "INC": "700.400.510", "REN": "700.400.510",
}  # fmt: skip
OTHER_CURRENCY = "700.100.500"
CLOSED = {
    "CP": "700.400.100", "RF": "700.400.200", "RV": "700.400.300", "RC": "700.400.560", "INC": "700.400.100",
    "REN": "700.400.100",
}  # fmt: skip
USED_UP = "700.400.510"
DISPUTED = "700.300.600"
STOPPED_BY_A_DISPUTE = ("RF", "RV", "RB")
"""By the disputed part only: what is left can be refunded, reversed and rebilled."""
SECOND = "700.400.411"
OVER = {
    "CP": "700.400.100", "RF": "700.400.200", "RV": "700.400.300", "RC": "700.100.300", "CB": "700.400.400",
    "CR": "700.400.410", "REN": "700.400.100",
}  # fmt: skip
CLOSING = ("CP", "RV", "RF")
WITH_CARD = ("RB", "INC", "REN")
EXPIRED, TOO_LATE = "700.300.400", "700.300.700"
ENDED_BY_TIME = ("CP", "RC", "INC", "REN")
"""What may not follow an authorization whose time has passed (docs/decisions/0069)."""
REVERSIBLE_DAYS = 1
"""A debit is reversed within this time, and refunded after it."""
VALID_DAYS, RENEWED_DAYS = 10, 5
"""Of an authorization of a Visa card, and of its renewal, which the merchant initiates."""
APPROVED, CHARGED_BACK = "000.100.110", "000.100.200"


@dataclass(slots=True)
class Pot:
    """Cents that may still be drawn. ``captures``: how many more; None: any number. ``closed`` by a FINAL. ``drawn``:
    something was. ``ends``: of an authorization, the day from which on it has expired."""

    cents: int
    captures: int | None = None
    closed: bool = False
    drawn: bool = False
    ends: int = 0

    def is_used_up(self) -> bool:
        """Nothing is left of what was drawn from, or captured as often as numberOfCaptures allows."""
        return self.captures == 0 or (self.drawn and self.cents <= 0)


@dataclass(slots=True, eq=False)
class Entry:
    """One payment. ``state``: "done", "failed" or "open". ``moved``: cents that it moved. ``kind`` is INC or REN for
    a PA that follows one. ``pot`` is shared by an authorization and those that follow it."""

    id: str
    kind: str
    state: str
    moved: int
    behind: Entry | None = None
    pot: Pot = field(default_factory=lambda: Pot(0))
    unreceipted: int = 0
    unrepresented: int = 0
    disputed_again: int = 0
    standing: int = 0
    day: int = 0

    @property
    def type(self) -> str:
        return "PA" if self.kind in ("INC", "REN") else self.kind

    def __repr__(self) -> str:
        return f"{self.kind}({self.moved / 100:.2f}, {self.state}, {self.id[-6:]})"


class Books:
    """One chain. ``half``: its card is approved for half of what is asked."""

    receipts_follow = True
    """A refund of a receipt is a refund of the payment behind it (0007): refused when that is closed or disputed."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.half = False
        self.day = 0

    # --- first payments -----------------------------------------------------------------------------------------------

    def open(self, kind: str, cents: int, *, card: str, captures: int | None) -> tuple[str, int]:
        """(state, cents moved) of a first payment; enter it with :meth:`enter_first`."""
        self.half = card == "half"
        if card == "declined":
            return "failed", 0
        return ("open", 0) if card == "silent" else ("done", self.granted(cents))

    def enter_first(self, ident: str, kind: str, state: str, moved: int, captures: int | None) -> Entry:
        entry = Entry(ident, kind, state, moved)
        entry.day = self.day
        entry.pot = Pot(moved, captures if kind == "PA" else None, ends=self.day + VALID_DAYS)
        entry.unreceipted = moved
        self.entries.append(entry)
        return entry

    def granted(self, cents: int) -> int:
        """What a card of this chain is approved for: half, rounded down, and never nothing."""
        return max(1, cents // 2) if self.half else cents

    # --- follow-ups ---------------------------------------------------------------------------------------------------

    def most(self, kind: str, target: Entry) -> int | None:
        """The most cents that ``kind`` could move now; None: any amount."""
        source = money_behind(target)
        if kind in ("RB", "INC"):
            return None
        if kind == "RF":
            own = target.pot.cents
            return own if source is target else min(own, source.pot.cents)
        if kind == "RC" and target.type != "PA":
            return min(target.unreceipted, target.pot.cents)
        if kind == "CB" and target.kind == "CR":
            return min(target.moved - target.disputed_again, source.pot.cents)
        if kind == "CR":
            return target.unrepresented
        return target.pot.cents

    def refusal(self, kind: str, target: Entry, cents: int | None, currency: str | None) -> str:
        """The code that refuses, or ''."""
        if target.type not in MAY_FOLLOW[kind]:
            return WRONG_TYPE.get(kind, WRONG_TYPE_ELSE)
        if target.state != "done":
            return OPEN if target.state == "open" else FAILED[kind]
        if currency not in (None, "EUR"):
            return OTHER_CURRENCY
        source = money_behind(target) if kind == "RF" and self.receipts_follow else target
        if kind in CLOSED and (target.pot.closed or source.pot.closed):
            return CLOSED[kind]
        if code := self._late(kind, target):
            return code
        if kind == "CR" and target.behind is not None and target.behind.kind == "CR":
            return SECOND
        if kind == "CP" and target.pot.captures == 0:
            return OVER[kind]
        if kind in ("INC", "REN") and target.pot.is_used_up():
            return USED_UP if kind == "INC" else OVER[kind]
        standing = source.standing if kind in STOPPED_BY_A_DISPUTE else 0
        if kind == "RB" and standing > 0 and (cents or 0) > source.moved - standing:
            return DISPUTED
        most = self.most(kind, target)
        if most is not None and (most <= 0 or (cents is not None and cents > most)):
            asked = max(most, 0) if cents is None else cents
            return DISPUTED if standing > 0 and asked <= most + standing else OVER[kind]
        return ""

    def _authorize_anew(self, pot: Pot, kind: str, moved: int) -> Pot:
        """An increment adds to the pot and prolongs nothing, a renewal does the reverse."""
        if kind == "INC":
            pot.cents += moved
        else:
            pot.ends = max(pot.ends, self.day + RENEWED_DAYS)
        return pot

    def _late(self, kind: str, target: Entry) -> str:
        """The code that refuses what comes too late, or ''."""
        if target.type == "PA":
            return EXPIRED if kind in ENDED_BY_TIME and self.day >= target.pot.ends else ""
        return TOO_LATE if kind == "RV" and self.day >= target.day + REVERSIBLE_DAYS else ""

    def enter(self, ident: str, kind: str, target: Entry, cents: int | None, *, code: str, final: bool) -> Entry:
        """Book a follow-up that was refused with ``code``, or granted (''): then the pots are drawn from."""
        most = self.most(kind, target)
        asked = cents if cents is not None else max(most or 0, 0)
        entry = Entry(ident, kind, "failed" if code else "done", 0, target, day=self.day)
        self.entries.append(entry)
        if code:
            return entry
        entry.moved = moved = self.granted(asked) if kind in WITH_CARD else asked
        source = money_behind(target)
        entry.pot, entry.unreceipted, entry.unrepresented = Pot(moved), moved, moved
        if kind in ("CP", "RV", "RF"):
            target.pot.cents -= moved
            target.pot.drawn = True
            target.pot.closed = target.pot.closed or final
        if kind == "CP" and target.pot.captures is not None:
            target.pot.captures -= 1
        if kind == "RF" and source is not target:
            source.pot.cents -= moved
        if kind == "RC":
            if target.type == "PA":
                target.pot.cents -= moved
                target.pot.drawn = True
            else:
                target.unreceipted -= moved
        if kind in ("INC", "REN"):
            entry.pot = self._authorize_anew(target.pot, kind, moved)
        if kind == "CB":
            source.pot.cents -= moved
            source.standing += moved
            if target.kind == "CR":
                target.disputed_again += moved
        if kind == "CR":
            target.unrepresented -= moved
            source.pot.cents += moved
            source.standing -= moved
        return entry


def money_behind(entry: Entry) -> Entry:
    """The payment whose money a refund or dispute of ``entry`` gives back: a receipt tells of the DB or CP behind it,
    a chargeback and a representment are about the payment at their root."""
    if entry.kind == "RC" and entry.behind is not None and entry.behind.type != "PA":
        return entry.behind
    while entry.kind in ("CB", "CR") and entry.behind is not None:
        entry = entry.behind
    return entry


def broken_rules(entries: Iterable[Entry]) -> list[str]:
    """What no chain may ever show, summed up from what was answered alone: no pots, no ceilings."""
    done = [entry for entry in entries if entry.state == "done"]

    def total(*kinds: str, of: Iterable[Entry]) -> int:
        wanted = list(of)
        return sum(entry.moved for entry in done if entry.kind in kinds and entry.behind in wanted)

    found = []
    group = [entry for entry in done if entry.type == "PA"]
    authorised = sum(entry.moved for entry in group if entry.kind != "REN")
    if (used := total("CP", "RC", "RV", of=group)) > authorised:
        found.append(f"{used} used of {authorised} authorised")
    for entry in done:
        if entry.kind not in ("DB", "CP", "RB", "CD"):
            continue
        receipts = [other for other in done if other.kind == "RC" and other.behind is entry]
        disputes = [other for other in done if other.kind == "CB" and other.behind is entry]
        won = [other for other in done if other.kind == "CR" and other.behind in disputes]
        back = total("RF", "RV", "CB", of=[entry]) + total("RF", of=receipts)
        back += total("CB", of=won) - total("CR", of=disputes)
        if back > entry.moved:
            found.append(f"{back} given back of {entry}")
        if total("RC", of=[entry]) > entry.moved:
            found.append(f"receipts above {entry}")
    for entry in done:
        if entry.kind == "CB" and total("CR", of=[entry]) > entry.moved:
            found.append(f"more won back than {entry}")
        if entry.kind == "CR" and total("CB", of=[entry]) > entry.moved:
            found.append(f"disputed again more than {entry}")
        if entry.kind == "RC" and total("RF", of=[entry]) > entry.moved:
            found.append(f"refunds above {entry}")
    return found

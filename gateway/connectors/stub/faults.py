"""Faults that the stub acquirer can simulate: one table, and the choice of a fault for a message.

A fault is requested by the message itself (``customParameters[STUB_behaviour]``) or by the control channel, which gives
each a probability. The log names every fault that fired.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final

BEHAVIOR_PARAMETER: Final = "STUB_behaviour"


@dataclass(frozen=True, slots=True, kw_only=True)
class StubFault:
    """What becomes of a message and of its answer.

    - ``arrives``: the message is booked (False: it is lost on the way).
    - ``late_in``: only after late_ms.
    - ``twice``: it is processed and answered twice.
    - ``answers``: an answer is sent.
    - ``late_out``: only after late_ms.
    - ``garbled``: what is sent does not answer the request.
    - ``hangs_up``: the connection is closed.
    """

    arrives: bool = True
    late_in: bool = False
    twice: bool = False
    answers: bool = True
    late_out: bool = False
    garbled: bool = False
    hangs_up: bool = False


NO_FAULT: Final = StubFault()
STUB_FAULTS: Final[Mapping[str, StubFault]] = MappingProxyType(
    {
        "silent_before": StubFault(arrives=False, answers=False),
        "silent_after": StubFault(answers=False),
        "held": StubFault(late_in=True),
        "late": StubFault(late_out=True),
        "disconnect_before": StubFault(arrives=False, answers=False, hangs_up=True),
        "disconnect_after": StubFault(answers=False, hangs_up=True),
        "duplicate": StubFault(twice=True),
        "nonsense": StubFault(garbled=True),
    }
)
# Names on the control channel for one fault, or for two that are equally likely.
_ALIASES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "drop_before": ("silent_before",),
        "drop_after": ("silent_after",),
        "disconnect": ("disconnect_before", "disconnect_after"),
    }
)


@dataclass(slots=True, kw_only=True)
class FaultSteering:
    """The control channel's settings. Probabilities from 0 to 1; ``delay_ms`` before every answer; ``late_ms`` for held
    and late; ``kinds``: messages that faults may hit; ``next``: only so many more messages, None for all; ``seed``:
    makes the draws repeatable."""

    delay_ms: int = 0
    late_ms: int = 15_000
    kinds: tuple[str, ...] = ("submit",)
    next: int | None = None
    odds: dict[str, float] = field(default_factory=dict)
    draws: random.Random = field(default_factory=random.Random)

    @classmethod
    def of(cls, control: Mapping[str, Any]) -> FaultSteering:
        """Parse a control message; settings that it does not name are reset. Raises ValueError."""
        known = {row.name for row in fields(cls)} - {"odds", "draws"}
        wanted: dict[str, Any] = {"odds": {}}
        for name, value in control.items():
            if name == "seed":
                wanted["draws"] = random.Random(value)  # noqa: S311 - a test's dice
            elif name == "kinds":
                wanted["kinds"] = tuple(value)
            elif name in known:
                wanted[name] = value if value is None else int(value)
            elif name in STUB_FAULTS or name in _ALIASES:
                parts = _ALIASES.get(name, (name,))
                for part in parts:
                    wanted["odds"][part] = float(value) / len(parts)
            else:
                raise ValueError(f"unknown steering {name!r}")
        return cls(**wanted)

    def draw(self, message: Mapping[str, Any]) -> str:
        """The fault that hits this message; '' for none."""
        own = message.get("customParameters")
        if isinstance(own, Mapping) and message["kind"] == "submit" and own.get(BEHAVIOR_PARAMETER) in STUB_FAULTS:
            return str(own[BEHAVIOR_PARAMETER])
        if message["kind"] not in self.kinds or self.next == 0:
            return ""
        if self.next is not None:
            self.next -= 1
        at = self.draws.random()
        for name, odds in self.odds.items():
            if at < odds:
                return name
            at -= odds
        return ""

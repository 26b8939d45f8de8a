"""Something that must not be, and the kinds of it that a run's table counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

LOST: Final = "lost"
DOUBLED: Final = "doubled"
TWICE: Final = "submitted or ended twice"
OVER: Final = "over a limit"
NO_EVIDENCE: Final = "declined without evidence"
DECIDED: Final = "not as the shopper decided"
REGISTRATION: Final = "registration missing or too many"
SECRET: Final = "secret kept"
OPEN: Final = "still open"
REPLAY: Final = "replayed differently"
UNANSWERED: Final = "never answered"
SERVER_ERROR: Final = "answered 500"
TOO_EARLY: Final = "before its time"
EXEMPTION: Final = "exemption miscounted"
OTHER_NUMBER: Final = "sent with another number"
KINDS: Final = (
    LOST, DOUBLED, TWICE, OVER, NO_EVIDENCE, DECIDED, REGISTRATION, SECRET, OPEN, REPLAY, UNANSWERED,
    SERVER_ERROR, TOO_EARLY, EXEMPTION, OTHER_NUMBER,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that must not be. ``payment``: the id, where there is one."""

    kind: str
    what: str
    payment: str = ""

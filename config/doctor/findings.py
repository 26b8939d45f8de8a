"""What the doctor finds: one row per thing that was looked at, with the line that mends it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final


class FindingLevel(enum.StrEnum):
    """How bad a finding is. ERROR: payments, money or card data are at risk, and the exit code is 1."""

    OK = "ok"
    SKIPPED = "skipped"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """``about``: what is so, in a sentence. ``mend``: what to do about it; empty where nothing is to be done."""

    part: str
    level: FindingLevel
    about: str
    mend: str = ""

    def as_document(self) -> dict[str, str]:
        """The row of `--json`."""
        return {"part": self.part, "level": self.level.value, "about": self.about, "mend": self.mend}


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorQuestion:
    """What is asked of the doctor. ``backups``: the folder of the back-ups, if it can be seen from here. ``network``:
    whether connections to other machines may be made. ``web``: whether a web server should run on this machine."""

    backups: Path | None = None
    network: bool = True
    web: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorPart:
    """One part of an installation that is looked at. ``needs_database``: it is left out while no database answers."""

    name: str
    examine: Callable[[DoctorQuestion], Iterable[PartFinding]]
    needs_database: bool = False


PartFinding = tuple[FindingLevel, str, str]
"""Level, about, mend: a finding without the name of its part."""


def ok(about: str) -> PartFinding:
    """Something is as it should be."""
    return FindingLevel.OK, about, ""


def skipped(about: str, mend: str = "") -> PartFinding:
    """Something could not be looked at; ``mend`` says how it can."""
    return FindingLevel.SKIPPED, about, mend


def warning(about: str, mend: str) -> PartFinding:
    """Something that payments survive, and should not stay."""
    return FindingLevel.WARNING, about, mend


def error(about: str, mend: str) -> PartFinding:
    """Something that puts payments, money or card data at risk."""
    return FindingLevel.ERROR, about, mend


def judge(is_fine: bool, fine: str, fault: PartFinding) -> PartFinding:
    """``fault`` unless ``is_fine``, else that it is so."""
    return ok(fine) if is_fine else fault


def format_findings(found: Iterable[DoctorFinding], *, quiet: bool) -> Iterator[str]:
    """Lines for a terminal: the parts in their order, faults with what mends them. ``quiet``: faults alone."""
    last = ""
    for one in found:
        if quiet and one.level is FindingLevel.OK:
            continue
        if one.part != last:
            yield f"{one.part}"
            last = one.part
        yield f"  {_MARKS[one.level]}  {one.about}"
        if one.mend:
            yield f"           → {one.mend}"


_MARKS: Final = {
    FindingLevel.OK: "ok     ",
    FindingLevel.SKIPPED: "skipped",
    FindingLevel.WARNING: "WARNING",
    FindingLevel.ERROR: "ERROR  ",
}

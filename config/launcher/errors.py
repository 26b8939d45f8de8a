"""What the launcher says when it cannot go on: one line, no traceback."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

LOG_TAIL_BYTES = 16_384
MARKS = ("No space left on device", "PANIC:", "FATAL:", "ERROR:", "error:", "Error:")


class LaunchError(Exception):
    """The launcher cannot go on. The text is one line, written for the person at the terminal."""


def last_lines(log: Path, count: int, since: int = 0) -> list[str]:
    """The last `count` lines that are not blank, of what the log holds after byte `since`."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(since if since <= size else 0, size - LOG_TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-count:]


def telling_line(lines: Sequence[str]) -> str:
    """The line that names the fault, without its time stamp: the gravest mark's last, else the last."""
    for mark in MARKS:
        for line in reversed(lines):
            if mark in line:
                at = min((line.index(word) for word in MARKS[1:] if word in line), default=0)
                return line[at:].strip()
    return lines[-1].strip() if lines else "it said nothing"


def first_line(error: Exception) -> str:
    """The first line of an error's text, or its kind when it has none."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)

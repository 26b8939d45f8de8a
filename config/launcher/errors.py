"""Launcher errors: one line for the terminal, no traceback."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

MAX_LOG_READ_BYTES = 1_000_000
MAX_REASON_CHARS = 300
TRACEBACK_HEAD = "Traceback (most recent call last):"
FAULT_MARKS = (
    "No space left on device",
    "PANIC:",
    "FATAL:",
    "CRITICAL",
    "ERROR:",
    "[ERROR]",
    "error:",
    "Error:",
    "ERROR",
)


class LaunchError(Exception):
    """The launcher cannot continue. The text is one line for the person at the terminal."""


def find_failure_reason(log: Path, since: int) -> str:
    """The line that names the cause in what a log holds after byte `since`, and where to read more."""
    return f"{find_fault_line(read_lines_since(log, since))} (more in {log})"


def read_lines_since(log: Path, since: int) -> list[str]:
    """The non-blank lines that the log holds after byte `since`; of a long log the first of them."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(since if since <= size else 0)
            text = file.read(MAX_LOG_READ_BYTES).decode("utf-8", "replace")
    except OSError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def find_fault_line(lines: Sequence[str]) -> str:
    """The line that names the fault, without its time stamp: the exception of the first traceback, else the first line
    of the highest severity, else the last line."""
    raised = _find_exception_line(lines)
    for mark in FAULT_MARKS if not raised else FAULT_MARKS[:1]:
        for line in lines:
            if mark in line:
                at = min((line.index(word) for word in FAULT_MARKS[1:] if word in line), default=0)
                return line[at:].strip()[:MAX_REASON_CHARS]
    said = raised or (lines[-1].strip() if lines else "it said nothing")
    return said[:MAX_REASON_CHARS]


def _find_exception_line(lines: Sequence[str]) -> str:
    """The exception of the first traceback (the last one of its chain); "" without one."""
    found, inside = "", False
    for line in lines:
        if line.endswith(TRACEBACK_HEAD):
            inside = True
        elif inside and not line.startswith((" ", "\t")):
            found, inside = line.strip(), False
        elif found and not inside and not line.startswith(("The above exception", "During handling of the above")):
            break
    return found


def first_line_of_error(error: Exception) -> str:
    """The first line of an error's text, or its type if it has none."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)

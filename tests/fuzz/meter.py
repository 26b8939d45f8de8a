"""What one request costs a web process: CPU of its thread, memory, files that were opened for writing.

CPU and the growth of the process are measured at every request, the memory of Python's own objects (exact, but three
times as slow) within :func:`traced`. Decoders written in C take theirs outside of Python: the process shows it.

tracemalloc never gives back the tracebacks it has seen when it stops (40 bytes for each line of code that allocated;
CPython before 3.12.5, https://github.com/python/cpython/issues/121390). Started and stopped for single requests it made
the process grow by gigabytes, so it is switched on for whole rounds.
"""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

_STATUS: Final = Path("/proc/self/status")
_PEAK: Final = Path("/proc/self/clear_refs")
_WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT
NOT_COUNTED: Final = ("/dev/", "/proc/")
Result = TypeVar("Result")
_opened: list[str] = []
_counting = False
_hooked = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """``memory``: bytes above what the process had before, ``exact``: by Python's own count; ``files``: paths that were
    opened for writing."""

    cpu_s: float
    memory: int
    exact: bool
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a process holds after ``number`` requests: Python's blocks of memory (about one for each object), and
    resident bytes, with what the C library had free given back."""

    number: int
    blocks: int
    resident: int


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _counting and event == "open":
        path, mode, flags = arguments
        writes = (isinstance(mode, str) and any(letter in mode for letter in "wax+")) or bool((flags or 0) & _WRITING)
        if writes and not str(path).startswith(NOT_COUNTED):
            _opened.append(str(path))


@contextmanager
def _watching_files() -> Iterator[None]:
    global _counting, _hooked
    if not _hooked:  # a hook stays for the life of the process, and is called for many other events
        sys.addaudithook(_hook)
        _hooked = True
    _opened.clear()
    _counting = True
    try:
        yield
    finally:
        _counting = False


@contextmanager
def traced(wanted: bool) -> Iterator[None]:
    """Within it, :func:`measured` counts memory exactly."""
    if wanted:
        tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()


def kept(number: int) -> Kept:
    """What this process holds after ``number`` requests."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return Kept(number=number, blocks=sys.getallocatedblocks(), resident=_kib("VmRSS") * 1024)


def measured(call: Callable[[], Result]) -> tuple[Result, Cost]:
    """``call`` and its cost. Within :func:`traced` its memory is Python's own count, and its CPU 0: that is not worth
    looking at then."""
    exactly = tracemalloc.is_tracing()
    gc.collect(0)
    _PEAK.write_text("5")
    before = _kib("VmRSS")
    if exactly:
        tracemalloc.reset_peak()
        before_exactly = tracemalloc.get_traced_memory()[0]
    with _watching_files():
        started = time.thread_time()
        result = call()
        cpu_s = time.thread_time() - started
    memory = max(0, _kib("VmHWM") - before) * 1024
    if exactly:
        memory, cpu_s = tracemalloc.get_traced_memory()[1] - before_exactly, 0.0
    return result, Cost(cpu_s=cpu_s, memory=memory, exact=exactly, files=tuple(_opened))


def _kib(name: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1])

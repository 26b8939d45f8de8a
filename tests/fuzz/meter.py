"""What one request costs a web process: CPU of its thread, memory, files that were opened for writing.

CPU and the growth of the process are measured at every request, the memory of Python's own objects (exact, but three
times as slow) at those that ask for it. Decoders written in C take theirs outside of Python: the process shows it.
"""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """``memory``: bytes above what the process had before; ``files``: paths that were opened for writing."""

    cpu_s: float
    memory: int
    files: tuple[str, ...]


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _counting and event == "open":
        path, mode, flags = arguments
        writes = (isinstance(mode, str) and any(letter in mode for letter in "wax+")) or bool((flags or 0) & _WRITING)
        if writes and not str(path).startswith(NOT_COUNTED):
            _opened.append(str(path))


sys.addaudithook(_hook)


@contextmanager
def _watching_files() -> Iterator[None]:
    global _counting
    _opened.clear()
    _counting = True
    try:
        yield
    finally:
        _counting = False


def measured(call: Callable[[], Result], *, exactly: bool) -> tuple[Result, Cost]:
    """``call`` and its cost. ``exactly``: its memory by Python's own count; the CPU is not worth looking at then."""
    gc.collect(0)
    _PEAK.write_text("5")
    before = _kib("VmRSS")
    if exactly:
        tracemalloc.start()
    with _watching_files():
        started = time.thread_time()
        result = call()
        cpu_s = time.thread_time() - started
    memory = max(0, _kib("VmHWM") - before) * 1024
    if exactly:
        memory, cpu_s = tracemalloc.get_traced_memory()[1], 0.0
        tracemalloc.stop()
    return result, Cost(cpu_s=cpu_s, memory=memory, files=tuple(_opened))


def _kib(name: str) -> int:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1])

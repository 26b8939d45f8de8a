"""A light load generator: kept connections, one request at a time on each, several processes.

Closed loop: every connection asks again as soon as it was answered, until the time is over: how much goes through.
Open loop: requests are due at random moments fixed beforehand, and latency counts from the moment a request was due,
not from when a connection was free: a server that stalls is not spared the requests that it kept waiting.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import select
import socket
import time
from array import array
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection as Pipe
from typing import Final

from tests.benchmarks.traffic import Make

READ_BYTES: Final = 65_536
PATIENCE_S: Final = 30.0
NUMBERS_A_PROCESS: Final = 4_000_000
FIRST_WORD: Final = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
_FORK: Final = multiprocessing.get_context("fork")


@dataclass(slots=True, kw_only=True)
class Result:
    """What came back. ``latencies`` in seconds, of answers with status 2xx; ``client_s`` is our own CPU time;
    ``errors``: status or reason → how often; ``seconds``: from the start to the last answer."""

    seconds: float = 0.0
    client_s: float = 0.0
    latencies: array[float] = field(default_factory=lambda: array("d"))
    errors: dict[str, int] = field(default_factory=dict)
    sample: bytes = b""

    @property
    def answered(self) -> int:
        return len(self.latencies)

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    @property
    def rate(self) -> float:
        """Answers a second."""
        return self.answered / self.seconds if self.seconds else 0.0

    def percentile_ms(self, share: float) -> float:
        """The latency that ``share`` of the answers kept, in milliseconds."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] * 1000 if ordered else float("nan")

    def fail(self, why: str) -> None:
        self.errors[why] = self.errors.get(why, 0) + 1


class Line:
    """One kept connection: ``send`` a request, ``feed`` until an answer is whole."""

    __slots__ = ("_address", "_read", "_socket", "asked", "due")

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self.due = 0.0
        self.connect()

    def connect(self) -> None:
        self._socket = socket.create_connection(self._address, timeout=PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._read = b""
        self.asked = False

    def fileno(self) -> int:
        return self._socket.fileno()

    def close(self) -> None:
        self._socket.close()

    def greet(self) -> None:
        """Ask for next to nothing: the server knows the connection then, before anything is measured."""
        self.send(FIRST_WORD, 0.0)
        while self.feed() is None:
            pass

    def send(self, request: bytes, due: float) -> None:
        self.due, self.asked = due, True
        self._socket.sendall(request)

    def feed(self) -> bytes | None:
        """Read what there is; the whole answer once it is there, else None. Raises OSError when hung up."""
        part = self._socket.recv(READ_BYTES)
        if not part:
            raise ConnectionResetError("hung up")
        read = self._read = self._read + part
        end = read.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = read[:end].lower()
        at = head.find(b"content-length:")
        if at >= 0:
            line_end = head.find(b"\r", at)
            length = int(head[at + 15 : line_end if line_end > 0 else end])
            if len(read) < end + 4 + length:
                return None
        elif not read.endswith(b"0\r\n\r\n"):
            return None
        self._read = b""
        self.asked = False
        return read


class Lines:
    """Lines that are read as their answers come; many that wait cost nothing."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._by_handle = {line.fileno(): line for line in lines}
        self._poll = select.epoll()
        for handle in self._by_handle:
            self._poll.register(handle, select.EPOLLIN)

    def __iter__(self) -> Iterator[Line]:
        return iter(list(self._by_handle.values()))

    def read(self, seconds: float, result: Result) -> list[Line] | None:
        """Lines that may be asked again, once any has something to read; their answers are noted in ``result``. None if
        none has for ``seconds``."""
        # By select, whose timeout is in microseconds; epoll's is in milliseconds.
        if not select.select([self._poll], [], [], seconds)[0]:
            return None
        free = []
        for handle, _ in self._poll.poll(0):
            line = self._by_handle[handle]
            asked = line.asked
            try:
                answer = line.feed()
            except OSError as fault:
                self._connect_again(line, handle)
                if not asked:
                    continue
                result.fail(type(fault).__name__)
            else:
                if answer is None:
                    continue
                _note(result, answer, time.perf_counter() - line.due)
            free.append(line)
        return free

    def _connect_again(self, line: Line, handle: int) -> None:
        self._poll.unregister(handle)
        del self._by_handle[handle]
        line.close()
        line.connect()
        self._by_handle[line.fileno()] = line
        self._poll.register(line.fileno(), select.EPOLLIN)


class Load:
    """A load that is running: made by ``closed`` or ``opened``; ``result()`` waits for its end."""

    def __init__(self, processes: Sequence[tuple[multiprocessing.process.BaseProcess, Pipe]]) -> None:
        self._processes = processes
        for _, pipe in processes:
            pipe.recv()  # connected
        for _, pipe in processes:
            pipe.send(True)

    def result(self) -> Result:
        total = Result()
        for process, pipe in self._processes:
            part: Result = pipe.recv()
            process.join()
            total.seconds = max(total.seconds, part.seconds)
            total.client_s += part.client_s
            total.latencies.extend(part.latencies)
            total.sample = total.sample or part.sample
            for why, count in part.errors.items():
                total.errors[why] = total.errors.get(why, 0) + count
        return total


def closed(
    port: int,
    make: Make,
    *,
    seconds: float,
    first: int,
    connections: int = 16,
    processes: int = 1,
    most: int | None = None,
) -> Load:
    """As much as goes through. ``first``: number of the first request; ``most``: requests in all."""
    shares = [connections // processes + (i < connections % processes) for i in range(processes)]
    limit = most // processes if most else None
    return _start(
        [
            (_closed, (port, make, seconds, first + i * NUMBERS_A_PROCESS, share, limit))
            for i, share in enumerate(shares)
        ]
    )


def opened(port: int, make: Make, *, seconds: float, first: int, rate: float, connections: int = 48) -> Load:
    """``rate`` requests a second, due at moments of a Poisson process (the same in every run)."""
    return _start([(_opened, (port, make, seconds, first, rate, connections))])


def _start(jobs: Sequence[tuple[object, tuple[object, ...]]]) -> Load:
    started = []
    for work, arguments in jobs:
        ours, theirs = _FORK.Pipe()
        process = _FORK.Process(target=work, args=(theirs, *arguments), daemon=True)  # type: ignore[arg-type]
        process.start()
        theirs.close()
        started.append((process, ours))
    return Load(started)


def _closed(pipe: Pipe, port: int, make: Make, seconds: float, number: int, connections: int, most: int | None) -> None:
    lines = Lines(Line(("127.0.0.1", port)) for _ in range(connections))
    result = _await_start(pipe)
    now = time.perf_counter
    started = now()
    end, last = started + seconds, number + (most or NUMBERS_A_PROCESS)
    waiting = 0
    for line in lines:
        if number < last:
            line.send(make(number), now())
            number += 1
            waiting += 1
    while waiting:
        free = lines.read(PATIENCE_S, result)
        if free is None:
            result.fail("silence")
            break
        for line in free:
            if now() < end and number < last:
                line.send(make(number), now())
                number += 1
            else:
                waiting -= 1
    _send(pipe, result, now() - started, lines)


def _opened(pipe: Pipe, port: int, make: Make, seconds: float, number: int, rate: float, connections: int) -> None:
    lines = Lines(Line(("127.0.0.1", port)) for _ in range(connections))
    for line in lines:
        line.greet()
    draws = random.Random(number)
    moments, at = [], 0.0
    while (at := at + draws.expovariate(rate)) < seconds:
        moments.append(at)
    result = _await_start(pipe)
    now = time.perf_counter
    started = now()
    # The line that has been idle longest is next: the one used last would leave the load to a few lines, most of which
    # one web process may have in one round and the other in the next.
    idle, position = deque(lines), 0
    while position < len(moments) or len(idle) < connections:
        while position < len(moments) and idle and started + moments[position] <= now():
            idle.popleft().send(make(number + position), started + moments[position])
            position += 1
        wait = PATIENCE_S
        if position < len(moments) and idle:
            wait = max(0.0, started + moments[position] - now())
        free = lines.read(wait, result)
        if free is None and wait == PATIENCE_S:
            result.fail("silence")
            break
        idle.extend(free or ())
    _send(pipe, result, now() - started, lines)


def _await_start(pipe: Pipe) -> Result:
    pipe.send(True)
    pipe.recv()
    return Result(client_s=-sum(os.times()[:2]))


def _note(result: Result, answer: bytes, latency: float) -> None:
    if answer[9:10] == b"2":
        result.latencies.append(latency)
        if not result.sample:
            result.sample = answer
    else:
        result.fail(answer[9:12].decode("latin-1"))


def _send(pipe: Pipe, result: Result, seconds: float, lines: Iterable[Line]) -> None:
    result.client_s += sum(os.times()[:2])
    result.seconds = seconds
    for line in lines:
        line.close()
    pipe.send(result)
    pipe.close()

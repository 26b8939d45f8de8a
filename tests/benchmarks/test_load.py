"""What the load generator sends to whom, and what it counts."""

from __future__ import annotations

import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from tests.benchmarks import load
from tests.benchmarks.load import Line, Lines, Result

PATIENCE_S = 60.0
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


@dataclass(slots=True)
class Server:
    """Answers requests at once, and counts them by connection, of which each gets ``answers`` and is closed."""

    answers: int = 1_000_000
    asked: Counter[int] = field(default_factory=Counter)
    listening: socket.socket = field(default_factory=lambda: socket.create_server(("127.0.0.1", 0)))

    @property
    def address(self) -> tuple[str, int]:
        return ("127.0.0.1", self.listening.getsockname()[1])

    def accept(self) -> None:
        number = 0
        with suppress(OSError):
            while True:
                line, _ = self.listening.accept()
                threading.Thread(target=self.answer, args=(line, number), daemon=True).start()
                number += 1

    def answer(self, line: socket.socket, number: int) -> None:
        left = self.answers
        with suppress(OSError), line:
            while line.recv(65536):
                self.asked[number] += 1
                if left:
                    line.sendall(ANSWER)
                    left -= 1
                if not left:
                    break


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    threading.Thread(target=found.accept, daemon=True).start()
    yield found
    found.listening.close()


def test_an_open_load_takes_all_its_lines_in_turn(server: Server) -> None:
    """Lines belong to web processes by chance: few of them may all belong to one."""
    running = load.opened(
        server.address[1], lambda number: load.FIRST_WORD, seconds=0.5, first=1, rate=200, connections=8
    )
    result = running.result()
    assert result.failed == 0
    assert result.answered > 40
    asked = [count - 1 for count in server.asked.values()]  # without its greeting
    assert sum(asked) == result.answered
    assert (len(asked), max(asked) - min(asked)) == (8, pytest.approx(0, abs=2))


def test_a_closed_load_ends_with_its_last_request(server: Server) -> None:
    running = load.closed(
        server.address[1], lambda number: load.FIRST_WORD, seconds=60, first=1, connections=3, most=20
    )
    result = running.result()
    assert (result.answered, result.failed, sum(server.asked.values())) == (20, 0, 20)


def test_a_line_that_hangs_up_is_connected_again_and_counts_as_a_failure_if_it_was_asked(server: Server) -> None:
    server.answers = 1
    lines, result = Lines([Line(server.address)]), Result()
    (line,) = lines
    line.send(load.FIRST_WORD, 0.0)
    assert lines.read(PATIENCE_S, result) == [line]
    server.answers = 0
    assert lines.read(PATIENCE_S, result) == []
    assert (result.answered, result.failed) == (1, 0)
    line.send(load.FIRST_WORD, 0.0)
    assert lines.read(PATIENCE_S, result) == [line]
    assert (result.answered, result.errors) == (1, {"ConnectionResetError": 1})
    line.close()

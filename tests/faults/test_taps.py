"""What a tap is told to do to a line is what happens on it: to the processor, to who asks, and in its journal."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.connectors.iso8583.codec import MessageCodec
from tests.faults.peers import http_tap, iso_tap
from tests.faults.peers.http_tap import HttpTap
from tests.faults.peers.iso_tap import IsoTap
from tests.faults.peers.misdeeds import Misdeeds
from tests.faults.peers.sides import LAUNCHER
from tests.faults.peers.tap import Tap
from tests.support.iso_host import IsoHost
from tests.support.ports import free_port
from tests.support.receivers import answering, read_request, receiving

PATIENCE_S = 60.0
LATE_S = 0.2
QUESTION = {
    "t": "0200",
    "3": "000000",
    "4": "000000002000",
    "7": "1122010203",
    "11": "000042",
    "37": "632600000042",
    "41": "TERM0001",
    "42": "MERCHANT1      ",
    "49": "978",
    "63": "a" * 32,
}


@contextlib.contextmanager
def through(tap: Tap) -> Iterator[socket.socket]:
    """A connection through an open tap."""
    tap.open()
    try:
        with socket.create_connection(("127.0.0.1", tap.port), timeout=PATIENCE_S) as line:
            yield line
    finally:
        tap.shut()


def told(line: socket.socket) -> bytes:
    """All that comes until the other end hangs up."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while more := line.recv(65_536):
            found += more
    return found


# Way → how often the processor got the question, and whether who asked got an answer.
HTTP = {
    "": (1, True), "silent_before": (0, False), "silent_after": (1, False), "late": (1, True), "twice": (2, True),
    "disconnect_before": (0, False), "disconnect_after": (1, False), "held": (1, True),
}  # fmt: skip


@pytest.mark.parametrize("way", HTTP)
def test_an_http_request_meets_what_was_told(way: str, tmp_path: Path) -> None:
    assert set(HTTP) == {"", *http_tap.KEYED_WAYS}
    misdeeds = Misdeeds(http_tap.KEYED_WAYS, late_s=LATE_S, seed=1)
    misdeeds.steer({way: 1.0})
    with receiving(answering()) as server:
        tap = HttpTap(port=free_port(), to=server.port, misdeeds=misdeeds, journal=tmp_path / "tap.jsonl")
        with through(tap) as line:
            line.sendall(b"POST /v1/things HTTP/1.1\r\nContent-Length: 2\r\n\r\nok")
            answer = read_request(line)
        assert (len(server.requests), bool(answer)) == HTTP[way]
    assert tap.count("handed") == HTTP[way][0]
    assert misdeeds.seen[way] == bool(way)


def test_a_shut_door_refuses_and_an_open_one_is_on_the_same_port(tmp_path: Path) -> None:
    misdeeds = Misdeeds((), late_s=LATE_S, seed=1)
    with receiving(answering()) as server:
        tap = HttpTap(port=free_port(), to=server.port, misdeeds=misdeeds, journal=tmp_path / "tap.jsonl")
        for _ in range(2):
            with through(tap) as line:
                line.sendall(b"GET / HTTP/1.1\r\n\r\n")
                assert read_request(line)
            with pytest.raises(OSError):
                socket.create_connection(("127.0.0.1", tap.port), timeout=PATIENCE_S)


# Way → how often the host got the question, how many answers came, and whether the line was hung up before any.
FRAMES = {
    "": (1, 1),
    "silent_before": (0, 0),
    "silent_after": (1, 0),
    "late": (1, 1),
    "disconnect_before": (0, 0),
    "disconnect_after": (1, 0),
    "twice": (1, 2),
}


@pytest.mark.parametrize("way", FRAMES)
def test_a_frame_meets_what_was_told(way: str, tmp_path: Path) -> None:
    assert set(FRAMES) == {"", *iso_tap.WAYS}
    misdeeds, wire, host = Misdeeds(iso_tap.WAYS, late_s=LATE_S, seed=1), MessageCodec(), IsoHost()
    misdeeds.steer({way: 1.0})
    tap = IsoTap(port=free_port(), to=host.port, misdeeds=misdeeds, journal=tmp_path / "tap.jsonl")
    try:
        with through(tap) as line:
            line.sendall(wire.frame(QUESTION))
            if FRAMES[way][1]:
                octets = b""
                while len(wire.split_frames(octets)[0]) < FRAMES[way][1]:
                    octets += line.recv(65_536)
                assert {wire.message(frame)["39"] for frame in wire.split_frames(octets)[0]} == {"00"}
            elif way.startswith("disconnect"):
                assert told(line) == b""
            else:
                host.wait(lambda: tap.lines, "a line in the journal")
                if FRAMES[way][0]:
                    host.wait(lambda: tap.count(iso_tap.LOST), "the host's answer")
    finally:
        host.stop()
    assert len(host.seen("0200")) == FRAMES[way][0]
    assert {entry["63"] for entry in tap.lines} == {"a" * 32}
    assert "2" not in tap.lines[0]


WRITES = """
import os, signal, sys
with open("/kept", "wb") as file:
    file.write(b"whole")
assert open("/kept", "rb").read() == b"whole"
with open("/kept", "wb") as file:
    file.write(b"half of it")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_peer_that_is_killed_while_it_writes_its_books_keeps_those_before(tmp_path: Path) -> None:
    (tmp_path / "writes_and_dies.py").write_text(WRITES)
    books = tmp_path / "books"
    command = [sys.executable, LAUNCHER, "--instead", f"/kept={books}", "writes_and_dies"]
    ended = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=False)
    assert (ended.returncode, books.read_text()) == (-signal.SIGKILL, "whole")

"""The web server's own answers: what is no HTTP request gets an error in the envelope, and is not logged.

Source: Part A, Errors; ruling D13; goals, R8.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import logging
import os
import random
import select
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from types import SimpleNamespace

import pytest
from gunicorn.config import Config
from gunicorn.workers.gthread import ThreadWorker

from config import web_worker
from config.launcher.programs import WebServer
from config.web_worker import ClientWaits, RequestQueue, RequestThreadPool, TimedSocket
from tests.ground.conftest import ROOT
from tests.support.ports import free_port

PATIENCE_S = 120.0
HEAD = b"POST /v1/nothing HTTP/1.1\r\nHost: pay.example\r\n"
CARD = b"&card.number=4200000000000000&card.cvv=731&card.holder=Jane"
SECRETS = (b"4200000000000000", b"cvv=731", b"Jane")


@dataclass(frozen=True, slots=True)
class Server:
    port: int
    log: Path

    def send(self, sent: bytes) -> bytes:
        """Everything that comes back until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S) as line:
            line.sendall(sent)
            parts = []
            # What it did not read before it closed makes the end of the line a reset.
            with contextlib.suppress(ConnectionResetError):
                while part := line.recv(65536):
                    parts.append(part)
        return b"".join(parts)


@contextlib.contextmanager
def _serving(log: Path, *, threads: int, **settings: str) -> Iterator[Server]:
    """The web server as the launcher starts it; what it is asked here needs no database."""
    port = free_port()
    command = WebServer(host="127.0.0.1", port=port, workers=1, threads=threads, timeout_s=60).command()
    nowhere = {"DATABASE_URL": "postgres://nobody@127.0.0.1:1/none", "DJANGO_SECRET_KEY": "only for this test"}
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", *command], cwd=ROOT, env=os.environ | nowhere | settings, stdout=file, stderr=file
        )
    deadline = time.monotonic() + PATIENCE_S
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
        yield Server(port, log)
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with _serving(tmp_path_factory.mktemp("web") / "web.log", threads=2) as found:
        yield found


@pytest.mark.parametrize(
    "sent, status",
    [
        (CARD + b"\r\n\r\n", 400),
        (b"GET /" + b"7" * 5_000 + b" HTTP/1.1\r\n\r\n", 414),
        (HEAD + b"X: " + b"7" * 9_000 + b"\r\n\r\n", 431),
        (HEAD + b"Transfer-Encoding: " + CARD + b"\r\n\r\n", 501),
        (HEAD + b"Content-Length: -5\r\n\r\n", 400),
        (HEAD + CARD + b"\r\n\r\n", 400),
        (b"GET / HTTP/7.7\r\n\r\n", 400),
    ],
)
def test_what_is_no_request_is_answered_in_the_envelope(server: Server, sent: bytes, status: int) -> None:
    """A30.7: result, buildNumber, timestamp, ndc in every body."""
    head, _, body = server.send(sent).partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"Content-Type: application/json; charset=utf-8" in head
    told = json.loads(body)
    assert told["result"]["code"] == "200.300.404"
    assert {"buildNumber", "timestamp", "ndc"} <= told.keys()


def test_a_header_moves_no_address(server: Server) -> None:
    """A proxy on this machine may pass SCRIPT_NAME on from its clients, and gunicorn takes it from there."""
    asked = b"GET /x/health/live HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    for header in (b"", b"SCRIPT_NAME: /x\r\n", b"Script_Name: /elsewhere\r\n"):
        assert server.send(asked + header + b"\r\n").startswith(b"HTTP/1.1 404 "), header


@pytest.mark.parametrize(
    "head",
    [b"Content-Length: 300000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n493e0\r\n"],
    ids=["of a length", "in chunks"],
)
def test_an_answer_to_a_body_that_is_refused_unread_says_that_the_connection_closes(
    server: Server, head: bytes
) -> None:
    """RFC 9112, 9.6: a client that was told keep-alive sends its next request into a closed line."""
    answered = server.send(HEAD + head + b"7" * 300_000)
    assert answered.startswith(b"HTTP/1.1 404 ")
    assert b"\r\nConnection: close\r\n" in answered
    assert b"keep-alive" not in answered


@pytest.mark.parametrize("chunked", [False, True], ids=["of a length", "in chunks"])
def test_a_client_that_sends_its_whole_body_first_reads_why_it_was_refused(server: Server, *, chunked: bool) -> None:
    """docs/decisions/0050: Python's http.client, and requests with it, reads nothing before all is sent; a connection
    that is closed with bytes unread is a broken pipe to it, and the answer is lost."""
    client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)
    piece = b"7" * 65_536
    client.request(
        "POST",
        "/v1/nothing",
        body=iter([piece] * 128),
        encode_chunked=chunked,
        headers={} if chunked else {"Content-Length": str(128 * len(piece))},
    )
    answer = client.getresponse()
    assert (answer.status, answer.headers["Connection"]) == (404, "close")
    assert json.loads(answer.read())["result"]["code"] == "200.300.404"
    client.close()


def test_a_worker_that_reads_its_sources_for_long_is_not_taken_for_one_that_hangs(tmp_path: Path) -> None:
    """A cold disk: the web server's limit for a request is none for its start."""
    (tmp_path / "slow_application.py").write_text(SLOW)
    port = free_port()
    log = tmp_path / "web.log"
    command = WebServer(host="127.0.0.1", port=port, workers=1, threads=1, timeout_s=1).command()
    command = [word.replace("config.wsgi:", "slow_application:") for word in command]
    path = {"PYTHONPATH": f"{tmp_path}:{ROOT}"}
    with log.open("wb") as file:
        process = subprocess.Popen([sys.executable, "-m", *command], env=os.environ | path, stdout=file, stderr=file)
    try:
        until = time.monotonic() + PATIENCE_S
        while "serving" not in log.read_text() and "TIMEOUT" not in log.read_text():
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        assert "TIMEOUT" not in log.read_text()
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


SLOW = """
import sys, time
time.sleep(5)
print("serving", file=sys.stderr, flush=True)
def application(environ, start_response):
    start_response("204 No Content", [])
    return []
"""


def test_the_rest_of_a_body_is_neither_sent_back_nor_logged(server: Server) -> None:
    """A15.5: a Content-Length too short leaves a piece of the form where the next request should begin."""
    answered = server.send(HEAD + b"Content-Length: 10\r\n\r\n" + b"entityId=1" + CARD + b"\r\n\r\n")
    first, second = answered.count(b"HTTP/1.1 404"), answered.count(b"HTTP/1.1 400")
    assert (first, second) == (1, 1)
    log = server.log.read_bytes()
    assert b"No HTTP request from 127.0.0.1: InvalidRequestLine" in log
    for secret in SECRETS:
        assert secret not in answered
        assert secret not in log


def test_two_requests_and_a_body_in_pieces_are_read(server: Server) -> None:
    """The line is kept between requests, and a body may come in pieces, chunked or not."""
    head = HEAD + b"Content-Type: application/x-www-form-urlencoded\r\n"
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for sent in (
            [head[:20], head[20:], b"Content-Length: 6\r\n\r\n", b"a=", b"1&b="],
            [head, b"Transfer-Encoding: chunked\r\n\r\n", b"3\r\na=", b"1\r\n", b"0\r\n\r\n"],
        ):
            for piece in sent:
                line.sendall(piece)
            got = b""
            while b'"ndc"' not in got:
                part = line.recv(65536)
                assert part, got
                got += part
            assert got.startswith(b"HTTP/1.1 404 ")


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client's end, and the server's."""
    monkeypatch.setattr(web_worker, "MAX_REQUEST_READ_S", 0.2)
    ends = socket.socketpair()
    yield ends
    for end in ends:
        end.close()


@pytest.mark.timeout(60)
def test_a_request_that_does_not_come_is_given_up(line: tuple[socket.socket, socket.socket]) -> None:
    """Found in use: sixteen connections that sent half a request kept all threads for ever."""
    client, server = line
    client.sendall(b"POST /v1/pay")
    sender = TimedSocket(server)
    assert sender.recv(8192) == b"POST /v1/pay"
    with pytest.raises(ConnectionResetError, match="did not come within"):
        sender.recv(8192)
    assert client.recv(1) == b""


@pytest.mark.timeout(60)
def test_a_request_that_comes_byte_by_byte_is_given_up(line: tuple[socket.socket, socket.socket]) -> None:
    """A limit of each pause alone would let a patient sender go on."""
    client, server = line

    def drip() -> None:
        with contextlib.suppress(OSError):
            while True:
                client.sendall(b"x")
                time.sleep(0.01)

    sending = threading.Thread(target=drip, daemon=True)
    sender = TimedSocket(server)
    sending.start()
    with pytest.raises(ConnectionResetError):
        deque(iter(lambda: sender.recv(8192), b""), maxlen=0)
    server.close()
    sending.join(PATIENCE_S)
    assert not sending.is_alive()


@pytest.fixture
def tcp() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client's end, and the server's, of a connection as the web server has them."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client = socket.create_connection(listening.getsockname())
        server, _ = listening.accept()
    yield client, server
    for end in (client, server):
        end.close()


@pytest.mark.timeout(60)
def test_what_a_client_still_sends_is_thrown_away_up_to_a_bound(tcp: tuple[socket.socket, socket.socket]) -> None:
    """docs/decisions/0050: whoever goes on and on is cut off."""
    client, server = tcp
    sent = 0

    def send_on_and_on() -> None:
        nonlocal sent
        with contextlib.suppress(OSError):
            while True:
                sent += client.send(b"7" * 65_536)

    sending = threading.Thread(target=send_on_and_on, daemon=True)
    sending.start()
    thrown = web_worker.throw_away(server, 1_000_000, PATIENCE_S)
    assert 1_000_000 <= thrown < 1_000_000 + web_worker.THROWN_AT_ONCE
    server.close()
    sending.join(PATIENCE_S)
    assert not sending.is_alive()


@pytest.mark.timeout(60)
def test_a_client_that_sends_no_more_is_waited_for_no_longer_than_its_time(
    tcp: tuple[socket.socket, socket.socket],
) -> None:
    client, server = tcp
    client.sendall(b"777")
    assert web_worker.throw_away(server, 1_000_000, 0.2) == 3
    client.sendall(b"777")
    assert web_worker.throw_away(server, 2, PATIENCE_S) >= 2
    client.sendall(b"777")
    client.close()
    assert web_worker.throw_away(server, 1_000_000, PATIENCE_S) <= 4


@pytest.mark.parametrize(
    "framing", [b"Content-Length: 100000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n186a0\r\nx"]
)
def test_an_answer_to_a_body_that_stays_unread_says_that_the_connection_ends(server: Server, framing: bytes) -> None:
    """Decision 0050: the connection is closed then, and whoever was promised another answer sends a request in vain."""
    answer = server.send(HEAD + framing)
    assert answer.startswith(b"HTTP/1.1 404")
    assert b"\r\nConnection: close\r\n" in answer


def test_a_connection_goes_on_after_a_body_that_was_read_away(server: Server) -> None:
    twice = (HEAD + b"Content-Length: 3\r\n\r\na=b") + (HEAD + b"Connection: close\r\nContent-Length: 0\r\n\r\n")
    answer = server.send(twice)
    assert answer.count(b"HTTP/1.1 404") == 2
    assert b"\r\nConnection: keep-alive\r\n" in answer


def test_connections_that_send_nothing_occupy_no_thread(server: Server) -> None:
    """Found in use: a thousand of them from one machine stopped a node for minutes."""
    with contextlib.ExitStack() as held:
        for _ in range(300):
            held.enter_context(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S))
        assert server.send(b"GET /nothing HTTP/7.7\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_the_headers_of_a_request_have_a_bound_together(server: Server) -> None:
    """Decision 0050: a hundred of 8 KB took 70 ms to read."""
    some = b"".join(b"X-%d: " % number + b"a" * 8_000 + b"\r\n" for number in range(7))
    assert server.send(HEAD + some + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 404")
    many = some + b"".join(b"Y-%d: " % number + b"a" * 8_000 + b"\r\n" for number in range(3))
    assert server.send(HEAD + many + b"\r\n").startswith(b"HTTP/1.1 431")


def test_the_thread_that_began_to_wait_last_gets_the_next_item() -> None:
    items, taken = RequestQueue(2), deque[tuple[str, object]]()
    threads = {}
    for number, name in enumerate(("first", "second"), 1):
        threads[name] = threading.Thread(target=lambda name=name: taken.append((name, items.get())), daemon=True)
        threads[name].start()
        _wait_until(lambda number=number: len(items._idle) == number)
    for name in ("second", "first"):
        items.put(f"for the {name}")
        threads[name].join(PATIENCE_S)
    assert list(taken) == [("second", "for the second"), ("first", "for the first")]


def test_items_that_no_thread_waits_for_are_taken_in_their_order() -> None:
    items = RequestQueue(2)
    for item in ("oldest", "newer", None):
        items.put(item)
    assert [items.get(), items.get_nowait(), items.get()] == ["oldest", "newer", None]
    with pytest.raises(Empty):
        items.get_nowait()


def test_one_request_after_the_other_is_answered_by_one_thread() -> None:
    pool = RequestThreadPool(4, 4)
    everybody = threading.Barrier(5)
    busy = [pool.submit(everybody.wait, PATIENCE_S) for _ in range(4)]
    everybody.wait(PATIENCE_S)
    for one in busy:
        one.result(PATIENCE_S)
    queue = _queue_of(pool)
    used = set()
    for _ in range(20):
        _wait_until(lambda: len(queue._idle) == 4)
        used.add(pool.submit(threading.get_ident).result(PATIENCE_S))
    pool.shutdown()
    assert len(used) == 1
    assert not any(thread.is_alive() for thread in pool._threads)


def test_no_more_requests_work_at_a_time_than_are_allowed() -> None:
    pool = RequestThreadPool(8, 2)
    go_on, working, most = threading.Event(), 0, 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal working, most
        with lock:
            working += 1
            most = max(most, working)
        go_on.wait(PATIENCE_S)
        with lock:
            working -= 1

    found = [pool.submit(work) for _ in range(8)]
    _wait_until(lambda: working == 2)
    assert [one.running() for one in found].count(True) == 2
    go_on.set()
    for one in found:
        one.result(PATIENCE_S)
    pool.shutdown()
    assert most == 2
    assert _queue_of(pool)._working == 0


def test_a_request_that_waits_for_others_lets_the_next_ones_work_and_goes_on_before_new_ones() -> None:
    pool = RequestThreadPool(8, 1)
    queue, order = _queue_of(pool), []
    answered, busy = threading.Event(), threading.Event()

    def wait_for_acquirer() -> None:
        order.append("asks")
        queue.leave()
        answered.wait(PATIENCE_S)
        queue.enter()
        order.append("goes on")

    def work(name: str, *, until: threading.Event | None = None) -> None:
        order.append(name)
        if until is not None:
            until.wait(PATIENCE_S)

    first = [pool.submit(wait_for_acquirer) for _ in range(3)]
    _wait_until(lambda: order.count("asks") == 3)
    last = [pool.submit(work, "works", until=busy), pool.submit(work, "new")]
    _wait_until(lambda: "works" in order)
    answered.set()
    _wait_until(lambda: len(queue._returning) == 3)
    busy.set()
    for one in (*first, *last):
        one.result(PATIENCE_S)
    pool.shutdown()
    assert order == ["asks", "asks", "asks", "works", "goes on", "goes on", "goes on", "new"]
    assert (queue._working, len(queue._returning), len(queue._items)) == (0, 0, 1)  # None, which ends threads


def test_who_comes_back_and_finds_all_places_taken_for_long_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What hangs must not stop a process for good; the bound holds again once it has ended."""
    monkeypatch.setattr(web_worker, "RETURN_PATIENCE_S", 0.05)
    pool = RequestThreadPool(4, 1)
    queue, left, hangs = _queue_of(pool), threading.Event(), threading.Event()

    def come_back() -> int:
        queue.leave()
        left.set()
        _wait_until(lambda: queue._working == 1)
        queue.enter()
        return queue._working

    back = pool.submit(come_back)
    assert left.wait(PATIENCE_S)
    other = pool.submit(hangs.wait, PATIENCE_S)
    assert back.result(PATIENCE_S) == 2
    hangs.set()
    other.result(PATIENCE_S)
    _wait_until(lambda: queue._working == 0)
    pool.shutdown()


def test_threads_begin_as_they_are_needed_and_all_of_them_if_they_are() -> None:
    pool = RequestThreadPool(6, 2)
    queue, answered, all_came = _queue_of(pool), threading.Event(), threading.Event()

    def wait_for_acquirer() -> None:
        all_came.wait(PATIENCE_S)
        queue.leave()
        answered.wait(PATIENCE_S)

    pool.submit(int).result(PATIENCE_S)
    _wait_until(lambda: len(queue._idle) == 1)
    pool.submit(int).result(PATIENCE_S)
    assert len(pool._threads) == 1
    waiting = [pool.submit(wait_for_acquirer) for _ in range(6)]
    all_came.set()
    _wait_until(lambda: all(one.running() for one in waiting))
    assert len(pool._threads) == 6
    answered.set()
    pool.shutdown()
    assert not any(thread.is_alive() for thread in pool._threads)


def test_many_threads_that_come_and_go_keep_the_count() -> None:
    pool = RequestThreadPool(12, 3)
    queue = _queue_of(pool)
    most: list[int] = []

    def work(number: int) -> None:
        for _ in range(number % 4):
            queue.leave()
            time.sleep(0.0005)
            queue.enter()
            most.append(queue._working)

    for one in [pool.submit(work, number) for number in range(600)]:
        one.result(PATIENCE_S)
    _wait_until(lambda: queue._working == 0)
    pool.shutdown()
    assert 1 <= min(most) <= max(most) <= 3
    assert not any(thread.is_alive() for thread in pool._threads)


def test_no_item_and_no_place_is_lost_where_threads_come_back_as_their_patience_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever lets a thread in and the thread that gives up waiting may do so at the same moment."""
    monkeypatch.setattr(web_worker, "RETURN_PATIENCE_S", 0.0005)
    pool = RequestThreadPool(24, 2)
    queue = _queue_of(pool)
    most: list[int] = []
    chance = random.Random(1)

    def work(pauses: tuple[float, ...]) -> int:
        for pause in pauses:
            queue.leave()
            queue.leave()  # what waits within a wait
            time.sleep(pause)
            queue.enter()
            queue.enter()
            most.append(queue._working)
            time.sleep(pause / 2)
        return len(pauses)

    asked = [tuple(chance.choice((0.0, 0.0005, 0.001)) for _ in range(chance.randrange(5))) for _ in range(1_500)]
    found = [pool.submit(work, pauses) for pauses in asked]
    assert [one.result(PATIENCE_S) for one in found] == [len(pauses) for pauses in asked]
    _wait_until(lambda: queue._working == 0)
    assert (len(queue._items), len(queue._returning)) == (0, 0)
    assert len(queue._idle) == len(pool._threads)
    pool.shutdown()
    assert 2 < max(most) <= 4  # some went on beyond the bound, none beyond twice of it
    assert not any(thread.is_alive() for thread in pool._threads)


def test_an_answer_that_is_read_slowly_lets_others_work(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = []
    monkeypatch.setattr(web_worker, "_pause_work", lambda: pauses.append(1))
    ours, theirs = socket.socketpair()
    octets, found = bytes(range(256)) * 40_000, bytearray()

    def read() -> None:
        _wait_until(lambda: bool(pauses))
        while len(found) < len(octets) and (part := theirs.recv(65_536)):
            found.extend(part)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    with ours, theirs:
        web_worker.AnswerSocket(ours).sendall(b"")
        assert pauses == []
        web_worker.AnswerSocket(ours).sendall(octets)
        reader.join(PATIENCE_S)
    assert bytes(found) == octets


@pytest.mark.parametrize(("offset", "count", "kept"), [(0, None, slice(None)), (7, 100_000, slice(7, 100_007))])
def test_a_file_is_sent_as_any_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, offset: int, count: int | None, kept: slice
) -> None:
    """gunicorn sends the files of the back office so."""
    pauses = []
    monkeypatch.setattr(web_worker, "_pause_work", lambda: pauses.append(1))
    octets, found = bytes(range(256)) * 4_000, bytearray()
    (tmp_path / "file").write_bytes(octets)
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)

    def read() -> None:
        _wait_until(lambda: bool(pauses))
        while part := theirs.recv(65_536):
            found.extend(part)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    with theirs:
        with ours, (tmp_path / "file").open("rb") as file:
            sent = web_worker.AnswerSocket(ours).sendfile(file, offset, count)
        reader.join(PATIENCE_S)
    assert bytes(found) == octets[kept]
    assert sent == len(found)


def test_an_answer_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_worker, "MAX_WRITE_PAUSE_S", 0.05)
    ours, theirs = socket.socketpair()
    with ours, theirs, pytest.raises(ConnectionResetError, match="read nothing"):
        web_worker.AnswerSocket(ours).sendall(bytes(10_000_000))


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> ClientWaits:
    """Those of the process, of which one at most may wait."""
    found = ClientWaits(most=1)
    monkeypatch.setattr(web_worker, "CLIENT_WAITS", found)
    monkeypatch.setattr(web_worker, "CLIENT_PATIENCE_S", 0.01)
    return found


@pytest.mark.timeout(60)
def test_when_too_many_clients_are_waited_for_the_slowest_are_given_up(waits: ClientWaits) -> None:
    """A hundred and thirty connections that read no answer, or send half a request, held all threads."""
    with contextlib.ExitStack() as held:
        pairs = [socket.socketpair() for _ in range(4)]
        for pair in pairs:
            for end in pair:
                held.enter_context(end)
        given_up: list[int] = []
        until = time.monotonic() + PATIENCE_S

        def wait(number: int) -> None:
            if not waits.wait(pairs[number][0], select.POLLIN, since=float(number), until=until):
                given_up.append(number)

        threads = [threading.Thread(target=wait, args=(number,), daemon=True) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads[:3]:
            thread.join(PATIENCE_S)
        assert sorted(given_up) == [0, 1, 2]
        assert [pair[1].recv(1) for pair in pairs[:3]] == [b"", b"", b""]
        pairs[3][1].sendall(b"7")
        threads[3].join(PATIENCE_S)
        assert not threads[3].is_alive()
        assert sorted(given_up) == [0, 1, 2]


def test_clients_that_are_waited_for_just_now_are_not_given_up(
    waits: ClientWaits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_worker, "CLIENT_PATIENCE_S", PATIENCE_S)
    waits.most = 0
    ours, theirs = socket.socketpair()
    with ours, theirs:
        now = time.monotonic()
        assert not waits.wait(ours, select.POLLIN, since=now, until=now + 0.05)
        theirs.sendall(b"7")
        assert ours.recv(1) == b"7"


@pytest.mark.timeout(60)
def test_all_waits_for_clients_count(waits: ClientWaits, tcp: tuple[socket.socket, socket.socket]) -> None:
    """For the rest of a request, for room for an answer, and for the rest of a refused body."""
    waits.most = 0
    pairs = [socket.socketpair() for _ in range(2)]
    with contextlib.ExitStack() as held:
        for pair in pairs:
            for end in pair:
                held.enter_context(end)
        with pytest.raises(ConnectionResetError):  # the end of the body would be taken for that of a whole form
            TimedSocket(pairs[0][0]).recv(1)
        with pytest.raises(ConnectionResetError):
            web_worker.AnswerSocket(pairs[1][0]).sendall(bytes(10_000_000))
    assert web_worker.throw_away(tcp[1], 1_000_000, PATIENCE_S) == 0


def test_while_threads_are_idle_nobody_is_given_up(waits: ClientWaits) -> None:
    """A long download that is read steadily is waited for longer than a stranger who has just come."""
    waits.most, waits.is_short = 0, lambda: False
    ours, theirs = socket.socketpair()
    with ours, theirs:
        now = time.monotonic()
        assert not waits.wait(ours, select.POLLIN, since=0.0, until=now + 0.1)
        theirs.sendall(b"7")
        assert waits.wait(ours, select.POLLIN, since=0.0, until=now + PATIENCE_S)


def test_the_log_tells_once_a_minute_that_clients_were_given_up(
    waits: ClientWaits, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_worker._log, "propagate", True)
    waits.most = 0
    for _ in range(3):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            assert not waits.wait(ours, select.POLLIN, since=0.0, until=time.monotonic() + PATIENCE_S)
    assert [one.getMessage() for one in caplog.records] == ["requests wait for a thread: slow clients cut off: 1"]


def test_half_of_the_threads_may_wait_for_clients_while_requests_wait_for_one(waits: ClientWaits) -> None:
    worker = web_worker.Worker.__new__(web_worker.Worker)
    for threads, most in ((1, 1), (2, 1), (64, 32)):
        worker.cfg = SimpleNamespace(threads=threads)
        pool = worker.get_thread_pool()
        assert (waits.most, waits.is_short()) == (most, False)
        pool.requests._items.append("a request")
        assert waits.is_short()
        pool.requests._items.clear()
        pool.shutdown()


@pytest.mark.parametrize("threads", [2, 1_000])
def test_as_many_connections_are_kept_with_any_number_of_threads(threads: int) -> None:
    config = Config()
    config.set("threads", threads)
    worker = web_worker.Worker(1, 1, [], None, 60, config, logging.getLogger("gunicorn"))
    worker.tmp.close()
    assert worker.max_keepalived == config.worker_connections == 1_000
    assert worker.worker_connections == 1_000 + threads


def test_the_rest_of_a_refused_request_is_waited_for_beside_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decision 0161: eight such connections would stop a process."""
    steps: list[str] = []
    monkeypatch.setattr(ThreadWorker, "handle", lambda self, conn: False)
    for name in ("_end_request", "_pause_work"):
        monkeypatch.setattr(web_worker, name, lambda name=name: steps.append(name))
    monkeypatch.setattr(web_worker, "_close_after_answer", lambda conn, request: steps.append("closes"))
    worker = web_worker.Worker.__new__(web_worker.Worker)
    worker.cfg = SimpleNamespace(is_ssl=False)
    parser = SimpleNamespace(unreader=SimpleNamespace(sock=None), mesg=None)
    assert worker.handle(SimpleNamespace(parser=parser, is_http2=False)) is False
    assert steps == ["_end_request", "_pause_work", "closes"]


def _queue_of(pool: RequestThreadPool) -> RequestQueue:
    queue = pool._work_queue
    assert isinstance(queue, RequestQueue)
    return queue


def _wait_until(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.001)


def test_a_web_process_lets_its_threads_take_turns_within_a_payment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Source: decision 0160."""
    chosen: list[float] = []
    monkeypatch.setattr(sys, "setswitchinterval", chosen.append)
    monkeypatch.setattr(ThreadWorker, "init_process", lambda worker: None)
    worker = object.__new__(web_worker.Worker)
    worker.booted = True
    worker.init_process()
    assert chosen == [0.0005]

"""Lines to the stub acquirer, and the process itself: correlation, reuse, restart, steering."""

from __future__ import annotations

import os
import resource
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import uuid4

import pytest

from gateway.connectors.stub.connections import StubConnectionPool, StubUnansweredError, StubUnreachableError
from tests.support.stub import StubProcess

DEBIT = {
    "kind": "submit",
    "operation": "DB",
    "amount": "10.00",
    "currency": "EUR",
    "card": {"number": "4200000000000000"},
}


def debit(**more: str) -> dict[str, object]:
    return {"key": uuid4().hex, **DEBIT, **more}


@contextmanager
def peer(*answers: bytes) -> Iterator[str]:
    """An acquirer that reads one line per answer and says exactly that."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            line, _ = server.accept()
            with line, line.makefile("rb") as questions:
                for answer in answers:
                    questions.readline()
                    line.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        thread.join(10)


def test_many_questions_at_once_each_get_their_own_answer(acquirer: StubProcess) -> None:
    """Goals, P5."""
    lines = StubConnectionPool(acquirer.address, most=8, timeout_s=10)
    questions = [debit(amount=f"{number}.00") for number in range(1, 101)]
    with ThreadPoolExecutor(max_workers=16) as pool:
        answers = list(pool.map(lines.ask, questions))
    assert [answer["key"] for answer in answers] == [question["key"] for question in questions]
    assert [answer["approvedAmount"] for answer in answers] == [question["amount"] for question in questions]
    assert len(acquirer.entries(kind="submit", outcome="approved")) == 100


def test_a_line_is_reused_in_a_process_with_more_than_a_thousand_descriptors(acquirer: StubProcess) -> None:
    """A web process with many threads has as many lines and clients; select.select stops at 1,023."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4_096)), hard))
    used = [os.dup(0) for _ in range(1_100)]
    try:
        lines = StubConnectionPool(acquirer.address, most=1, timeout_s=10)
        answers = [lines.ask(debit()) for _ in range(2)]
        (line,) = lines._idle
        assert (len(answers), line._number) == (2, 2)
    finally:
        for one in used:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_repeated_answer_is_not_taken_for_the_next_one(acquirer: StubProcess) -> None:
    """Goals, R1: the acquirer answers twice."""
    lines = StubConnectionPool(acquirer.address, most=1, timeout_s=10)
    acquirer.control.steer(duplicate=1)
    questions = [debit() for _ in range(5)]
    assert [lines.ask(question)["key"] for question in questions] == [question["key"] for question in questions]
    assert len(acquirer.entries(kind="submit", outcome="approved")) == 5
    assert len(acquirer.entries(kind="submit", outcome="duplicate", fault="duplicate")) == 5


@pytest.mark.parametrize(
    "answer",
    [
        b"\x00\xff\n",
        b"[]\n",
        b'{"id":1}\n',
        b'{"id":1,"key":"other"}\n',
        b'{"id":2,"key":"K"}\n',
        b"",
        b'{"id":1,"key":"K"}',
    ],
    ids=["no text", "no object", "no key", "other key", "answer to the future", "hung up", "cut off"],
)
def test_what_is_no_answer_to_the_question_is_none(answer: bytes) -> None:
    """Goals, R1."""
    with peer(answer) as address, pytest.raises(StubUnansweredError):
        StubConnectionPool(address, most=1, timeout_s=10).ask({"kind": "inquire", "key": "K"})


def test_a_line_that_broke_meanwhile_is_replaced_before_anything_is_sent(acquirer: StubProcess) -> None:
    """Goals, R1: reset connections."""
    lines = StubConnectionPool(acquirer.address, most=1, timeout_s=10)
    lines.ask(debit())
    acquirer.kill()
    with pytest.raises(StubUnreachableError):
        lines.ask(debit())
    acquirer.start()
    assert lines.ask(debit())["outcome"] == "approved"


def test_when_all_lines_are_busy_nothing_is_sent(acquirer: StubProcess) -> None:
    """A named limit on everything that can wait."""
    lines = StubConnectionPool(acquirer.address, most=1, timeout_s=2)
    lines._free.acquire()
    question = debit()
    with pytest.raises(StubUnreachableError):
        lines.ask(question)
    lines._free.release()
    assert lines.ask(debit())["outcome"] == "approved"
    assert not acquirer.entries(key=question["key"])


def test_a_killed_acquirer_knows_after_its_restart_what_it_answered(acquirer: StubProcess) -> None:
    """Goals, R1. Its log is on the disk before its answer goes out."""
    lines = StubConnectionPool(acquirer.address, most=1, timeout_s=10)
    question = debit()
    answer = lines.ask(question)
    acquirer.kill()
    with acquirer.log.open("ab") as log:
        log.write(b'{"seq": 99, "kind": "sub')  # a line that a crash cut off
    acquirer.start()
    again = lines.ask(question)
    assert {**again, "id": 0} == {**answer, "id": 0}
    assert acquirer.entries()[-1]["outcome"] == "duplicate"
    assert [entry["seq"] for entry in acquirer.entries()] == list(range(1, len(acquirer.entries()) + 1))
    assert acquirer.stop() == 0


def test_unknown_steering_is_refused_and_the_next_n_messages_are_hit(acquirer: StubProcess) -> None:
    """The control channel of the stub."""
    with pytest.raises(ValueError):
        acquirer.control.steer(explode=1)
    acquirer.control.steer(disconnect_after=1, next=2)
    lines = StubConnectionPool(acquirer.address, most=1, timeout_s=10)
    for _ in range(2):
        with pytest.raises(StubUnansweredError):
            lines.ask(debit())
    assert lines.ask(debit())["outcome"] == "approved"
    assert len(acquirer.entries(kind="submit", outcome="approved")) == 3


def test_a_message_that_cannot_be_read_ends_the_connection_and_is_logged(acquirer: StubProcess) -> None:
    """The log holds every message."""
    with socket.create_connection(("127.0.0.1", acquirer.port), timeout=10) as line:
        line.sendall(b"hello\n")
        assert line.recv(1) == b""
    assert acquirer.entries(kind="unreadable")

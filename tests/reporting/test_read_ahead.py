"""Reading ahead of the database: everything comes, in order, with bounded pieces, and nothing is left running."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cache
from queue import Empty, SimpleQueue
from typing import BinaryIO

import pytest

from reporting.settlement.files import FILE_PIECE_BYTES
from reporting.settlement.formats.port import UnreadableFileError
from reporting.settlement.read_ahead import READ_AHEAD_PIECES, ReadAhead

NUMBERS = 3 * READ_AHEAD_PIECES * FILE_PIECE_BYTES // 8


@cache
def content() -> bytes:
    """A file of several pieces. Made by the first test: it takes a second, which no other run has to spend."""
    return b"".join(b"%07d\n" % number for number in range(NUMBERS)) + b"the end"


class Kept:
    """A file in pieces: who asked for which."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.by: set[int] = set()

    def fetch(self, first: int, end: int) -> dict[int, int]:
        self.asked += range(first, end)
        self.by.add(threading.get_ident())
        return {number: number for number in range(first, end)}

    @staticmethod
    def bytes_of(number: int) -> bytes:
        return content()[number * FILE_PIECE_BYTES : (number + 1) * FILE_PIECE_BYTES]


def lines(stream: BinaryIO) -> Iterator[list[bytes]]:
    stream.readline()
    stream.seek(0)
    batch: list[bytes] = []
    for line in stream:
        batch.append(line)
        if len(batch) == 50_000:
            yield batch
            batch = []
    yield batch


def reading() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "settlement lines"}


def test_every_byte_comes_in_order_and_every_piece_is_fetched_by_the_caller() -> None:
    """The caller's connection sees what its transaction has written; another thread's would not."""
    kept = Kept()
    found = list(ReadAhead(kept.fetch, kept.bytes_of, len(content()), lines))
    assert b"".join(line for batch in found for line in batch) == content()
    assert set(kept.asked) == set(range(-(-len(content()) // FILE_PIECE_BYTES)))
    assert kept.by == {threading.get_ident()}
    assert not reading()


def test_what_cannot_be_read_is_raised_where_it_is_iterated() -> None:
    def read(stream: BinaryIO) -> Iterator[bytes]:
        yield stream.read(8)
        raise UnreadableFileError("broken")

    kept, came = Kept(), []
    with pytest.raises(UnreadableFileError, match="broken"):
        came.extend(ReadAhead(kept.fetch, kept.bytes_of, len(content()), read))
    assert not reading()


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_caller_that_stops_leaves_no_thread_behind(after: int) -> None:
    kept = Kept()
    batches = iter(ReadAhead(kept.fetch, kept.bytes_of, len(content()), lines))
    for _ in range(after):
        next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert not reading()
    assert len(kept.asked) < len(content()) // FILE_PIECE_BYTES


@pytest.mark.parametrize("pieces", [0, 1, 2, READ_AHEAD_PIECES, READ_AHEAD_PIECES + 1])
def test_a_file_of_whole_pieces_ends_with_its_last_one(pieces: int) -> None:
    """No piece is asked for behind the last one: nobody would ever bring it."""
    kept, size = Kept(), pieces * FILE_PIECE_BYTES
    found = list(ReadAhead(kept.fetch, kept.bytes_of, size, lines))
    assert b"".join(line for batch in found for line in batch) == content()[:size]
    assert sorted(kept.asked) == list(range(pieces))


def test_a_piece_that_is_gone_ends_the_file() -> None:
    """The bytes are deleted when another worker has read the file to its end."""
    kept = Kept()
    found = list(
        ReadAhead(lambda _first, _end: {}, lambda piece: b"" if piece is None else b"x", len(content()), lines)
    )
    assert (found, kept.asked) == ([[]], [])


def test_the_pieces_of_the_next_two_batches_are_there_before_a_batch_is_handed_out() -> None:
    """While the database writes one batch, the thread reads another to its end without the caller."""
    kept, size = Kept(), READ_AHEAD_PIECES * FILE_PIECE_BYTES
    read: SimpleQueue[int] = SimpleQueue()

    def halves(stream: BinaryIO) -> Iterator[bytes]:
        for number in range(4):
            octets = stream.read(size // 4)
            read.put(number)
            yield octets

    batches = ReadAhead(kept.fetch, kept.bytes_of, size, halves)
    came = []
    for number, batch in enumerate(batches):
        came.append(batch)
        batches.read_on()
        if number == 0:
            # The caller is here and fetches nothing; the thread hands out the second batch and reads the third one.
            assert [read.get(timeout=60) for _ in range(3)] == [0, 1, 2]
    assert b"".join(came) == content()[:size]
    assert sorted(kept.asked) == list(range(READ_AHEAD_PIECES))


@pytest.mark.parametrize("told", [True, False])
def test_the_thread_rests_until_the_batch_is_sent(told: bool) -> None:
    """One batch waits in its hands while the caller sends another; a caller who does not tell of it lacks nothing."""
    read: SimpleQueue[int] = SimpleQueue()

    def one_by_one(stream: BinaryIO) -> Iterator[int]:
        for number in range(5):
            read.put(number)
            yield number

    batches = ReadAhead(Kept().fetch, Kept.bytes_of, 0, one_by_one)
    came = []
    for number in batches:
        came.append(number)
        if number == 0:
            assert [read.get(timeout=60) for _ in range(2)] == [0, 1]
            with pytest.raises(Empty):
                read.get(timeout=0.05)
        if told:
            batches.read_on()
            batches.read_on()  # told twice, it reads no further for it
            if number == 0:
                assert read.get(timeout=60) == 2
                with pytest.raises(Empty):
                    read.get(timeout=0.05)
    assert came == [0, 1, 2, 3, 4]
    assert not reading()


def test_a_fault_of_a_batch_ahead_is_raised_behind_the_batches_before_it() -> None:
    """What was read well is written first, and the file goes on there."""

    def third_fails(stream: BinaryIO) -> Iterator[int]:
        yield from (1, 2)
        raise UnreadableFileError("broken")

    batches = ReadAhead(Kept().fetch, Kept.bytes_of, 0, third_fails)
    came = iter(batches)
    for number in (1, 2):
        assert next(came) == number
        batches.read_on()
    with pytest.raises(UnreadableFileError, match="broken"):
        next(came)
    assert not reading()

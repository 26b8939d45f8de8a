"""Reading ahead of the database: everything comes, in order, with bounded pieces, and nothing is left running."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from reporting.settlement.files import FILE_PIECE_BYTES
from reporting.settlement.formats.port import UnreadableFileError
from reporting.settlement.read_ahead import READ_AHEAD_PIECES, ReadAhead

NUMBERS = 3 * READ_AHEAD_PIECES * FILE_PIECE_BYTES // 8
CONTENT = b"".join(b"%07d\n" % number for number in range(NUMBERS)) + b"the end"


class Kept:
    """A file in pieces: who asked for which."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.by: set[int] = set()

    def fetch(self, number: int) -> int:
        self.asked.append(number)
        self.by.add(threading.get_ident())
        return number

    @staticmethod
    def bytes_of(number: int) -> bytes:
        return CONTENT[number * FILE_PIECE_BYTES : (number + 1) * FILE_PIECE_BYTES]


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
    found = list(ReadAhead(kept.fetch, kept.bytes_of, len(CONTENT), lines))
    assert b"".join(line for batch in found for line in batch) == CONTENT
    assert set(kept.asked) == set(range(-(-len(CONTENT) // FILE_PIECE_BYTES)))
    assert kept.by == {threading.get_ident()}
    assert not reading()


def test_what_cannot_be_read_is_raised_where_it_is_iterated() -> None:
    def read(stream: BinaryIO) -> Iterator[bytes]:
        yield stream.read(8)
        raise UnreadableFileError("broken")

    kept, came = Kept(), []
    with pytest.raises(UnreadableFileError, match="broken"):
        came.extend(ReadAhead(kept.fetch, kept.bytes_of, len(CONTENT), read))
    assert not reading()


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_caller_that_stops_leaves_no_thread_behind(after: int) -> None:
    kept = Kept()
    batches = iter(ReadAhead(kept.fetch, kept.bytes_of, len(CONTENT), lines))
    for _ in range(after):
        next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert not reading()
    assert len(kept.asked) < len(CONTENT) // FILE_PIECE_BYTES


def test_an_empty_file_has_no_lines() -> None:
    kept = Kept()
    assert list(ReadAhead(kept.fetch, lambda _piece: b"", 0, lines)) == [[]]

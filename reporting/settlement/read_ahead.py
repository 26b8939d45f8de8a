"""Reads lines ahead in a thread while the database works on the batch before.

The thread uses no database: the pieces it needs are fetched by the caller, on the caller's connection, a bounded number
before each batch is handed out. So memory is bounded, and a caller inside a transaction sees its own writes.

The thread must neither lack pieces while the database works, nor hold the interpreter's lock while the caller sends a
batch: each wait for it is 5 ms, and a batch is sent in forty parts.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Mapping
from queue import SimpleQueue
from typing import Any, BinaryIO, Final, Generic, TypeVar, cast

from reporting.settlement.files import FILE_PIECE_BYTES, PieceStream

READ_AHEAD_PIECES: Final = 64
"""Pieces fetched in advance: 16 MB of the file, two batches of long lines. With fewer the thread would wait for the
caller in the middle of a batch."""
RETAINED_PIECES: Final = 2
LineBatch = TypeVar("LineBatch")


class _StoppedError(Exception):
    """The caller stopped iterating."""


class ReadAhead(Generic[LineBatch]):
    """Iterator over the batches that ``read`` makes of the file, one batch ahead of the caller.

    ``fetch(first, end)``: sealed pieces from the database by number, called by the iterating thread; ``open_(piece)``:
    the bytes of one, called by the reading thread, of None where there is none. Exceptions of ``read`` are raised from
    the iteration.
    """

    def __init__(
        self,
        fetch: Callable[[int, int], Mapping[int, Any]],
        open_: Callable[[Any], bytes],
        size: int,
        read: Callable[[BinaryIO], Iterator[LineBatch]],
    ) -> None:
        self._fetch, self._open, self._size, self._read = fetch, open_, size, read
        self._told: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self._held: dict[int, Any] = {}
        self._came = threading.Condition()
        self._room = threading.Semaphore(1)
        self._at = 0
        self._stopped = self._handed_out = False

    def __iter__(self) -> Iterator[LineBatch]:
        thread = threading.Thread(target=self._run, name="settlement lines", daemon=True)
        thread.start()
        try:
            while True:
                kind, what = self._told.get()
                if kind == "piece":
                    self._give(what)
                elif kind == "batch":
                    self._give(self._at + 1)
                    self._handed_out = True
                    yield what
                    self.read_on()
                elif what is not None:
                    raise what
                else:
                    return
        finally:
            with self._came:
                self._stopped = True
                self._came.notify_all()
            self._room.release()
            thread.join()

    # --- the caller's thread ------------------------------------------------------------------------------------------

    def read_on(self) -> None:
        """Let the thread read the batch after the next one. For a caller that has sent its batch and waits for the
        database; otherwise the iteration calls it."""
        if self._handed_out:
            self._handed_out = False
            self._room.release()

    def _give(self, first: int) -> None:
        end = min(first + READ_AHEAD_PIECES, -(-self._size // FILE_PIECE_BYTES))
        lacking = [number for number in range(first, end) if number not in self._held]
        if lacking:
            found = self._fetch(lacking[0], end)
            with self._came:
                self._held.update((number, found.get(number)) for number in lacking)
                self._came.notify_all()

    # --- the reading thread -------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            stream = io.BufferedReader(cast(Any, PieceStream(self._piece, self._size)), FILE_PIECE_BYTES)
            for batch in self._read(cast(BinaryIO, stream)):
                self._room.acquire()
                if self._stopped:
                    return
                self._told.put(("batch", batch))
            self._told.put(("end", None))
        except _StoppedError:
            return
        except BaseException as fault:  # raised again in the caller's thread
            self._told.put(("end", fault))

    def _piece(self, number: int) -> bytes:
        with self._came:
            self._at = number
            if number not in self._held:
                self._told.put(("piece", number))
            self._came.wait_for(lambda: number in self._held or self._stopped)
            if self._stopped:
                raise _StoppedError
            piece = self._held[number]
            for old in [one for one in self._held if one < number - RETAINED_PIECES]:
                del self._held[old]
        return self._open(piece)

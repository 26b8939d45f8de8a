"""Reads lines ahead in a thread while the database works on the batch before.

The thread uses no database: the pieces it needs are fetched by the caller, on the caller's connection, a bounded number
before each batch is handed out. So memory is bounded, and a caller inside a transaction sees its own writes.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, BinaryIO, Final, Generic, TypeVar, cast

from reporting.settlement.files import FILE_PIECE_BYTES, PieceStream

READ_AHEAD_PIECES: Final = 24
"""Pieces fetched in advance: six megabytes, more than a usual batch of lines."""
RETAINED_PIECES: Final = 2
LineBatch = TypeVar("LineBatch")


class _StoppedError(Exception):
    """The caller stopped iterating."""


class ReadAhead(Generic[LineBatch]):
    """Iterator over the batches that ``read`` makes of the file, one batch ahead of the caller.

    ``fetch(number)``: a sealed piece from the database, called by the iterating thread; ``open_(piece)``: its bytes,
    called by the reading thread. Exceptions of ``read`` are raised from the iteration.
    """

    def __init__(
        self,
        fetch: Callable[[int], Any],
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
        self._stopped = False

    def __iter__(self) -> Iterator[LineBatch]:
        thread = threading.Thread(target=self._run, name="settlement lines", daemon=True)
        thread.start()
        try:
            while True:
                kind, what = self._told.get()
                if kind == "piece":
                    self._give(what, what + 1)
                elif kind == "batch":
                    self._give(self._at + 1, min(self._at + 1 + READ_AHEAD_PIECES, -(-self._size // FILE_PIECE_BYTES)))
                    self._room.release()
                    yield what
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

    def _give(self, first: int, end: int) -> None:
        for number in range(first, end):
            if number not in self._held:
                piece = self._fetch(number)
                with self._came:
                    self._held[number] = piece
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

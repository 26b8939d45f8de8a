"""Frames and messages as bytes: length header, optional TPDU, and the message in the account's encoding. Pure.

No error message contains a message's contents.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import iso8583

from gateway.connectors.iso8583.field_formats import build_field_spec

MAX_FRAME_BYTES: Final = 8_192
"""Longer than any message of the 1987 edition with the fields that we send."""
TPDU_BYTES: Final = 5
LENGTH_HEADERS: Final = ("2b", "4b", "2a", "4a")
"""Two or four octets, binary (big-endian) or ASCII digits."""

IsoMessage = dict[str, str]
"""Data element number → text; ``t`` is the message type."""


class BadFrameError(Exception):
    """The stream cannot be split into frames any more; the connection is unusable."""


class BadMessageError(Exception):
    """A frame cannot be decoded, or a message cannot be encoded; the text names the field at fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageCodec:
    """Message encoding of one account. ``counts_itself``: the length includes the header. ``tpdu``: ten hex digits, ''
    for none; an answer's has its addresses swapped."""

    header: str = "2b"
    counts_itself: bool = False
    tpdu: str = ""
    encoding: str = "ascii"
    formats: str = ""

    def frame(self, message: Mapping[str, str]) -> bytes:
        """Encode a message as a frame. Raises BadMessageError if it does not fit its fields."""
        try:
            octets, _ = iso8583.encode(dict(message), build_field_spec(self.encoding, self.formats))
        except Exception as fault:
            # The original traceback would hold the message.
            raise BadMessageError(f"does not fit field {getattr(fault, 'field', '?')}") from None
        return self.framed(bytes.fromhex(self.tpdu) + bytes(octets))

    def framed(self, body: bytes) -> bytes:
        """Put the length header before ``body``. Raises BadMessageError if it is too long."""
        size = self._size
        length = len(body) + (size if self.counts_itself else 0)
        most = 10**size - 1 if self.header.endswith("a") else 256**size - 1
        if length > most or len(body) > MAX_FRAME_BYTES:
            raise BadMessageError("is too long for its header")
        head = f"{length:0{size}}".encode() if self.header.endswith("a") else length.to_bytes(size, "big")
        return head + body

    def split_frames(self, octets: bytes) -> tuple[list[bytes], bytes]:
        """Split a buffer into whole frames and the rest. Raises BadFrameError."""
        frames: list[bytes] = []
        size, place = self._size, 0
        while place + size <= len(octets):
            end = place + size + self._length(octets[place : place + size])
            if end > len(octets):
                break
            frames.append(octets[place + size : end])
            place = end
        return frames, octets[place:]

    def message(self, frame: bytes) -> IsoMessage:
        """Decode a frame. Raises BadMessageError. Some hosts fill a field with zero octets instead of blanks, and the
        database keeps no NUL."""
        body = frame[TPDU_BYTES:] if self.tpdu else frame
        if not body:
            raise BadMessageError("is empty")
        try:
            found, _ = iso8583.decode(body, build_field_spec(self.encoding, self.formats))
        except (ValueError, TypeError, KeyError) as fault:
            raise BadMessageError(f"cannot be read at field {getattr(fault, 'field', '?')}") from None
        return {number: text.replace("\0", " ") for number, text in found.items() if number not in ("p", "1")}

    @property
    def _size(self) -> int:
        return int(self.header[0])

    def _length(self, head: bytes) -> int:
        if self.header.endswith("b"):
            length = int.from_bytes(head, "big")
        elif head.isdigit():
            length = int(head)
        else:
            raise BadFrameError("the length header is no number")
        length -= self._size if self.counts_itself else 0
        if not 0 <= length <= MAX_FRAME_BYTES:
            raise BadFrameError(f"the length header says {length} octets")
        return length

"""Between our connector and an ISO 8583 host: every frame is written down, with what the host made of it.

The host's end is always read to its end, so that what it says it received and answered can be held against the journal.
Of a message only the numbers are kept that name it; no account, no security code.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any, Final

from gateway.connectors.iso8583.codec import MessageCodec
from gateway.connectors.iso8583.private_field import split_parts
from tests.faults.peers.misdeeds import CUT_AFTER, CUT_BEFORE, LATE, SILENT_AFTER, SILENT_BEFORE, TWICE
from tests.faults.peers.tap import Tap, hang_up

WAYS: Final = (SILENT_BEFORE, SILENT_AFTER, LATE, CUT_BEFORE, CUT_AFTER, TWICE)
KEPT: Final = ("t", "4", "7", "11", "37", "39", "63", "90", "95")
KEPT_PARTS: Final = ("33",)
"""Of DE48: why an authorization follows another one."""
HANDED, WITHHELD, ANSWERED, LOST = "handed", "withheld", "answered", "answer lost"
"""What became of a frame: given to the host; not given; the host's answer passed on; and not passed on."""


class IsoTap(Tap):
    """See the module. Frames of the connector's standard settings: two octets of length, ASCII, no TPDU."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.wire = MessageCodec()

    def serve(self, near: socket.socket) -> None:
        with self.far() as far:
            asked: dict[tuple[str, str], tuple[str, str]] = {}
            back = threading.Thread(target=self._back, args=(near, far, asked, threading.Lock()), daemon=True)
            back.start()
            with contextlib.suppress(OSError):
                self._onwards(near, far, asked)
            # The host hears that nothing more comes, and its last answers are still read and counted.
            hang_up(far, socket.SHUT_WR)
            back.join()

    def _onwards(self, near: socket.socket, far: socket.socket, asked: dict[tuple[str, str], tuple[str, str]]) -> None:
        rest = b""
        while octets := near.recv(65_536):
            frames, rest = self.wire.split_frames(rest + octets)
            for frame in frames:
                message = self.wire.message(frame)
                fault = "" if message["t"][1] == "8" else self.misdeeds.draw()
                if fault in (SILENT_BEFORE, CUT_BEFORE):
                    self._write(WITHHELD, message, fault)
                    if fault == CUT_BEFORE:
                        return hang_up(near)
                    continue
                asked[_answer_type(message["t"]), message["11"]] = (message.get("63", ""), fault)
                self._write(HANDED, message, fault)
                far.sendall(self.wire.framed(frame))
        return None

    def _back(
        self,
        near: socket.socket,
        far: socket.socket,
        asked: dict[tuple[str, str], tuple[str, str]],
        lock: threading.Lock,
    ) -> None:
        rest = b""
        with contextlib.suppress(OSError):
            while octets := far.recv(65_536):
                frames, rest = self.wire.split_frames(rest + octets)
                for frame in frames:
                    message = self.wire.message(frame)
                    payment, fault = asked.get((message["t"][:3], message["11"]), ("", ""))
                    self._answer(near, lock, self.wire.framed(frame), message | {"63": payment}, fault)
        hang_up(near)

    def _answer(
        self, near: socket.socket, lock: threading.Lock, octets: bytes, message: dict[str, str], fault: str
    ) -> None:
        def send() -> None:
            with lock, contextlib.suppress(OSError):
                near.sendall(octets * (2 if fault == TWICE else 1))

        self._write(LOST if fault in (SILENT_AFTER, CUT_AFTER) else ANSWERED, message, fault)
        if fault == CUT_AFTER:
            hang_up(near)
        elif fault != SILENT_AFTER:
            after_s = self.misdeeds.late_s if fault == LATE else self.misdeeds.delay_s
            timer = threading.Timer(after_s, send)
            timer.daemon = True
            timer.start()

    def _write(self, what: str, message: dict[str, str], fault: str) -> None:
        parts = dict(split_parts(message.get("48", "")))
        told: dict[str, str] = {name: message[name] for name in KEPT if name in message}
        told |= {f"48.{name}": parts[name] for name in KEPT_PARTS if name in parts}
        self.note(what, **told, **({"fault": fault} if fault else {}))


def _answer_type(question: str) -> str:
    """0200 is answered by 0210, and 0201 by that or by 0211: only the first three digits are looked at."""
    return f"{question[:2]}{int(question[2]) + 1}"

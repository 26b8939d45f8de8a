"""Between our connectors and a processor over HTTP: one request handed on at a time, or held, or its answer lost."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any, Final

from tests.faults.peers.misdeeds import CUT_AFTER, CUT_BEFORE, HELD, LATE, SILENT_AFTER, SILENT_BEFORE, TWICE
from tests.faults.peers.tap import Tap
from tests.support.receivers import read_request

WAYS: Final = (SILENT_BEFORE, SILENT_AFTER, LATE, CUT_BEFORE, CUT_AFTER)
KEYED_WAYS: Final = (*WAYS, TWICE, HELD)
"""A question that comes late, or twice, is harmless only where it carries an idempotency key."""
QUIET_WITHIN_S: Final = 10.0


class HttpTap(Tap):
    """See the module. While it ``is_held`` no request goes on to the processor; those under way end there."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self._under_way = 0
        self._held = False
        self._moved = threading.Condition()

    def hold(self) -> bool:
        """Hand nothing on, and wait until the processor has answered what it has; whether it did."""
        with self._moved:
            self._held = True
            return self._moved.wait_for(lambda: self._under_way == 0, QUIET_WITHIN_S)

    def open(self) -> None:
        self._held = False
        super().open()

    def serve(self, near: socket.socket) -> None:
        while request := read_request(near):
            fault = self.misdeeds.draw()
            first = request.partition(b"\r\n")[0].decode(errors="replace").partition("?")[0]
            if fault in (SILENT_BEFORE, CUT_BEFORE):
                self.note("withheld", request=first, fault=fault)
                return self._keep_quiet(fault)
            if fault == HELD:
                time.sleep(self.misdeeds.late_s)
            answer = b""
            for _ in range(2 if fault == TWICE else 1):
                answer = self._ask(request, first, fault)
            if fault in (SILENT_AFTER, CUT_AFTER) or not answer:
                return self._keep_quiet(fault)
            time.sleep(self.misdeeds.late_s if fault == LATE else self.misdeeds.delay_s)
            near.sendall(answer)
        return None

    def _keep_quiet(self, fault: str) -> None:
        """Send no answer; the connection is closed at once, or when the client has given up."""
        if fault in (SILENT_BEFORE, SILENT_AFTER):
            time.sleep(self.misdeeds.late_s)

    def _ask(self, request: bytes, first: str, fault: str) -> bytes:
        """The processor's answer; nothing when it gave none."""
        with self._moved:
            if self._held:
                self.note("withheld", request=first, fault="gone")
                return b""
            self._under_way += 1
        try:
            self.note("handed", request=first, **({"fault": fault} if fault else {}))
            with self.far() as behind:
                behind.sendall(request)
                answer = read_request(behind)
            self.note("answered" if answer else "broken", request=first, status=answer[9:12].decode(errors="replace"))
            return answer
        except OSError as why:
            self.note("broken", request=first, why=str(why))
            return b""
        finally:
            with self._moved:
                self._under_way -= 1
                self._moved.notify_all()

"""A link: one connection kept open by its own thread, with many requests in flight.

The thread connects, signs on, reads, sends echo tests when idle, and reconnects with growing pauses. A caller writes a
frame and waits for the answer with the same numbers; others are counted, and those that come late are handed on.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import structlog
from django.conf import settings

from gateway.connectors.iso8583 import link_metrics
from gateway.connectors.iso8583.codec import BadFrameError, BadMessageError, IsoMessage
from gateway.connectors.iso8583.connection import HostConnection, NothingSentError
from gateway.connectors.iso8583.late_answers import LateAnswerTaker
from gateway.connectors.iso8583.link_state import LinkState, LinkUnansweredError, LinkUnreachableError
from gateway.connectors.iso8583.mapping import build_message_key
from gateway.connectors.iso8583.pending_requests import LinkFullError, PendingRequestTable
from gateway.connectors.iso8583.terminal import Terminal
from gateway.core import clock
from gateway.core.secret import SecretBytes
from gateway.db.sessions import pause_work

LINK_TICK_S: Final = 0.5
"""How often an idle link checks whether an echo test is due."""
MIN_RECONNECT_PAUSE_S: Final = 0.2
"""Pause between attempts to connect while a caller waits for the link."""
RECONNECT_PAUSES_S: Final = (0.5, 1, 2, 4, 8, 15, 30)
"""Pauses between attempts while no caller waits; each is shortened at random by up to half."""
MAX_UNANSWERED_QUESTIONS: Final = 3
"""Unanswered requests in a row, with nothing else received, after which the link to a host without echo tests is closed
and opened again."""
LINK_IDLE_S: Final = 900.0
"""An unused link signs off after this long."""
SIGN_ON, SIGN_OFF, ECHO = "001", "002", "301"

log = structlog.get_logger(__name__)


class LinkDownError(Exception):
    """The link has to be closed, and why."""


class HostLink:
    """The link to one terminal's host. Thread-safe."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal
        self._changed = threading.Condition()
        self._connection: HostConnection | None = None
        self._left: HostConnection | None = None
        self._pending = PendingRequestTable(terminal.label)
        self._state, self._since, self._why = "idle", clock.real_now(), ""
        self._thread: threading.Thread | None = None
        self._tries = 0
        self._wanted = self._closing = self._signed_off = False
        self._asked_at = time.monotonic()
        self._suspect = False
        self._silences = 0
        self._echo: tuple[str, float] | None = None
        self._numbers = itertools.cycle(range(1, 1_000_000))

    @property
    def state(self) -> LinkState:
        """A snapshot of the link for pages and metrics."""
        with self._changed:
            return LinkState(
                label=self.terminal.label,
                merchant=self.terminal.merchant,
                state=self._state,
                since=self._since,
                why=self._why,
                in_flight=len(self._pending),
                strays=self._pending.strays,
            )

    def exchange(
        self,
        message: IsoMessage,
        deadline: float,
        *,
        before_send: Callable[[], None] | None = None,
        late: Callable[[], LateAnswerTaker] | None = None,
    ) -> IsoMessage:
        """Send ``message`` and return its answer. ``before_send``: called when a connection is there; what it raises is
        passed on, and nothing is sent. ``late``: called if there is no answer in time, for what takes it if it comes
        after all. Raises LinkUnreachableError, LinkUnansweredError, and BadMessageError before
        anything is sent."""
        octets = SecretBytes(self.terminal.wire.frame(message))
        key, connection = build_message_key(message), self._wait_for_connection(deadline)
        try:
            waiting = self._pending.register(key, settings.GATEWAY_ACQUIRER_MAX_ON_LINE, late)
        except LinkFullError as fault:
            raise LinkUnreachableError(str(fault)) from None
        try:
            # A link is marked down before its waiting callers are failed, so a caller sees one of the two.
            if connection is not self._connection:
                raise LinkUnreachableError(self._why or "the link went down")
            if before_send is not None:
                before_send()
            pause_work()
            connection.send(octets, deadline)
            if not waiting.done.wait(max(0.0, deadline - time.monotonic())):
                self._pending.unregister(key)  # an answer is delivered before this, or is late
                if waiting.answer is None:
                    self._suspect = True
                    self._silences += 1
                    raise LinkUnansweredError(waiting.why or "the host gave no answer in time")
        except NothingSentError as fault:
            raise LinkUnreachableError(str(fault)) from None
        except OSError as fault:
            raise LinkUnansweredError(f"the link broke: {fault.strerror or fault}") from None
        finally:
            self._pending.unregister(key)
        if waiting.answer is None:
            raise LinkUnansweredError(waiting.why)
        return waiting.answer

    def close(self) -> None:
        """Sign off and close; waiting callers get an error. A later request connects again."""
        with self._changed:
            connection, keeper = self._connection, self._thread
            self._closing = True
            self._changed.notify_all()
        if connection is not None:
            self._leave(connection)
        if keeper is not None and keeper is not threading.current_thread():
            keeper.join(LINK_TICK_S * 4)

    def abandon(self) -> None:
        """Drop the link in a forked process: connection and locks belong to the parent."""
        if (connection := self._connection) is not None:
            connection.abandon()

    # --- asking -----------------------------------------------------------------------------------------------------

    def _wait_for_connection(self, deadline: float) -> HostConnection:
        """The connection once it is up; waits for half of the remaining time at most. Raises LinkUnreachableError."""
        now = time.monotonic()
        until = now + max(0.0, deadline - now) / 2
        with self._changed:
            self._asked_at = now
            if self._connection is not None and not self._signed_off:
                return self._connection
            if self._signed_off:
                raise LinkUnreachableError("the host signed off")
            tried = self._tries
            self._wanted = True
            if self._thread is None or not self._thread.is_alive():
                self._closing = False
                self._thread = threading.Thread(target=self._run, name=f"link {self.terminal.label}", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            while self._connection is None and self._tries == tried and (left := until - time.monotonic()) > 0:
                pause_work()
                self._changed.wait(left)
            if self._connection is None:
                raise LinkUnreachableError(self._why or "the host cannot be reached")
            return self._connection

    # --- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        """The thread: connect, serve, and connect again, until the link is not needed any more."""
        failures = 0
        while not self._has_ended():
            self._set_state("connecting", self._why)
            connection = None
            try:
                connection = self._connect()
                failures = 0
                self._serve(connection)
            except Exception as fault:
                known = isinstance(fault, OSError | ValueError | BadFrameError | BadMessageError | LinkDownError)
                if not known:  # the thread goes on: callers would be handed its dead connection for ever
                    log.exception("link_fault", link=self.terminal.label)
                self._mark_down(str(fault) if known and str(fault) else type(fault).__name__)
                if connection is not None:
                    connection.abort()
                self._rest(failures)
                failures += connection is None

    def _has_ended(self) -> bool:
        """True if the thread must stop; the next request starts another one."""
        if not self._over():
            return False
        self._pending.fail_all("the link was closed")
        with self._changed:
            if self._wanted and not self._closing:
                return False
            self._thread = self._connection = None
        self._set_state("idle", "")
        return True

    def _over(self) -> bool:
        return self._closing or (not self._pending and time.monotonic() - self._asked_at > LINK_IDLE_S)

    def _connect(self) -> HostConnection:
        deadline = time.monotonic() + settings.GATEWAY_ACQUIRER_TIMEOUT_S
        connection = HostConnection(self.terminal, deadline)
        try:
            self._echo, self._suspect, self._signed_off = None, False, False
            self._silences = 0
            if self.terminal.sign_on:
                self._sign_on(connection, deadline)
        except BaseException:
            connection.close()
            raise
        with self._changed:
            self._connection = connection
            self._tries += 1
            self._wanted = False
        self._set_state("up", "")
        return connection

    def _sign_on(self, connection: HostConnection, deadline: float) -> None:
        number, answered = self._send_network_message(connection, SIGN_ON, deadline), False
        while (left := deadline - time.monotonic()) > 0 and not self._closing:
            for frame in self._frames(connection, min(left, LINK_TICK_S)):
                message = self._handle_frame(frame, connection)
                answered = answered or (message.get("t", "")[:3] == "081" and message.get("11") == number)
                if answered and message.get("39") != "00" and message.get("11") == number:
                    raise LinkDownError(f"the host refused the sign-on: {message.get('39', 'no response code')}")
            if answered:
                return
        raise LinkDownError("the host did not answer the sign-on")

    def _serve(self, connection: HostConnection) -> None:
        last_read = time.monotonic()
        while not self._over():
            for frame in self._frames(connection, LINK_TICK_S):
                last_read, self._silences = time.monotonic(), 0
                self._handle_frame(frame, connection)
            now = time.monotonic()
            if self._signed_off and not self._pending:
                raise LinkDownError("the host signed off")
            if self._echo is not None and now > self._echo[1]:
                raise LinkDownError("the host did not answer the echo")
            if self.terminal.echo_s == 0:
                if self._silences >= MAX_UNANSWERED_QUESTIONS:
                    raise LinkDownError(f"the host left {self._silences} questions without an answer")
                continue
            quiet = now - last_read > self.terminal.echo_s
            if self._echo is None and (quiet or self._suspect):
                self._suspect = False
                within = now + settings.GATEWAY_ACQUIRER_TIMEOUT_S
                self._echo = (self._send_network_message(connection, ECHO, within), within)
        self._leave(connection)

    def _frames(self, connection: HostConnection, timeout_s: float) -> list[bytes]:
        frames = connection.frames(timeout_s)
        if frames is None:
            raise LinkDownError("the host hung up")
        return [frame for frame in frames if frame]  # empty frames only keep the connection alive

    def _handle_frame(self, frame: bytes, connection: HostConnection) -> IsoMessage:
        """Deliver an answer to the caller that waits for it, and answer the host's own requests."""
        try:
            message = self.terminal.wire.message(frame)
        except BadMessageError as fault:
            self._pending.stray("unreadable", str(fault))
            return {}
        if message["t"] == "0800":
            self._answer_host(message, connection)
        elif message["t"][:3] == "081":
            if self._echo is not None and message.get("11") == self._echo[0]:
                self._echo = None
        else:
            self._pending.deliver(build_message_key(message, answer=True, terminal=self.terminal.terminal), message)
        return message

    def _answer_host(self, message: IsoMessage, connection: HostConnection) -> None:
        answer = {"t": "0810", "39": "00"}
        answer |= {number: text for number, text in message.items() if number in ("7", "11", "70")}
        octets = self.terminal.wire.frame(answer)
        try:
            connection.send(octets, time.monotonic() + settings.GATEWAY_ACQUIRER_TIMEOUT_S)
        except NothingSentError as fault:
            raise LinkDownError(str(fault)) from None
        if message.get("70") in (SIGN_ON, SIGN_OFF):
            self._signed_off = message["70"] == SIGN_OFF
            self._set_state("down" if self._signed_off else "up", "the host signed off" if self._signed_off else "")

    def _send_network_message(self, connection: HostConnection, code: str, deadline: float) -> str:
        """Send a network management message; returns its DE11."""
        number = f"{next(self._numbers):06}"
        message = {"t": "0800", "7": f"{datetime.now(UTC):%m%d%H%M%S}", "11": number, "70": code}
        if self.terminal.institution:
            message["32"] = self.terminal.institution
        try:
            connection.send(self.terminal.wire.frame(message), deadline)
        except NothingSentError as fault:
            raise LinkDownError(str(fault)) from None
        return number

    def _leave(self, connection: HostConnection) -> None:
        """Sign off and close. close() and the thread may both call it: the host gets one sign-off."""
        with self._changed:
            if self._left is connection:
                return
            self._left = connection
        if self._pending or self._silences:
            connection.abort()
            return
        self._sign_off(connection)
        connection.close()

    def _sign_off(self, connection: HostConnection) -> None:
        if self.terminal.sign_on:
            try:
                self._send_network_message(connection, SIGN_OFF, time.monotonic() + LINK_TICK_S)
            except (OSError, LinkDownError):
                return  # the connection is closed already

    # --- state ------------------------------------------------------------------------------------------------------

    def _mark_down(self, why: str) -> None:
        with self._changed:
            self._connection = None
            self._tries += 1
        self._set_state("down", why)
        self._pending.fail_all(f"the link went down: {why}")

    def _set_state(self, state: str, why: str) -> None:
        with self._changed:
            changed = state != self._state
            self._since = clock.real_now() if changed else self._since
            self._state, self._why = state, why
            self._changed.notify_all()
        if changed and state != "connecting":
            link_metrics.record_link_state(self.terminal.label, state)
            log.info(f"link_{state}", link=self.terminal.label, why=why)

    def _rest(self, failures: int) -> None:
        """Pause before the next attempt: shorter as soon as a caller waits for the link."""
        longest = RECONNECT_PAUSES_S[min(failures, len(RECONNECT_PAUSES_S) - 1)]
        now = time.monotonic()
        until = now + longest * random.uniform(0.5, 1.0)  # noqa: S311 - so that not all links reconnect at once
        with self._changed:
            self._wanted = False
            while not self._closing and (left := until - time.monotonic()) > 0:
                if self._wanted:
                    until = min(until, now + MIN_RECONNECT_PAUSE_S)
                    left = max(0.0, until - time.monotonic())
                self._changed.wait(left)

"""An ISO 8583 host for tests: real sockets, books of its own, and every way to misbehave."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import override_settings

from gateway.connectors.iso8583 import link_registry
from gateway.connectors.iso8583.codec import MessageCodec
from gateway.connectors.iso8583.private_field import split_parts
from gateway.models import AcquirerAccount, Channel

PATIENCE_S = 60.0
RAISES = "33043900"
"""The private field's part that marks an increment: the amount is added to the authorization with the same DE37."""
TIMEOUT_S = 1.0
TRANSFERS = {"100000": "01", "260000": "01", "280000": "02"}
"""DE3 of a transfer → the part of DE104 that says what kind it is: Visa's, Mastercard's."""
Message = dict[str, str]
ECHOED = ("3", "4", "7", "11", "12", "13", "37", "41", "42", "49", "70")


@dataclass(slots=True, kw_only=True)
class Booked:
    """One message that the host took in. ``left``: what of it stands, in minor units; of an authorization, with its
    increments (``total``: before reversals). ``facilitator``, ``parties``, ``cart``, ``flight``: part → text of DE48
    (37 to 41), DE104, DE120 and DE121; ``reason``: DE39 of what reversed it."""

    mti: str
    amount: int
    left: int
    answer: Message
    payment: str
    processing: str = ""
    facilitator: Message = field(default_factory=dict)
    parties: Message = field(default_factory=dict)
    cart: Message = field(default_factory=dict)
    flight: Message = field(default_factory=dict)
    reversed: bool = False
    reason: str = ""
    captured: int = 0
    total: int = 0
    behind: Booked | None = None
    raises: bool = False


@dataclass(slots=True, kw_only=True)
class Behaviour:
    """What happens to the next message of a type. ``arrives``: it reaches the books. ``how``: what becomes of the
    answer: sent, lost, cut (half of it, then hung up), hung up, twice, split, garbage (then the answer), garbage alone,
    held; stalled: the message itself is read when it is released."""

    mti: str
    how: str = "sent"
    arrives: bool = True
    change: dict[str, str | None] = field(default_factory=dict)


class IsoHost:
    """Listens on a free port from the start. ``declines``: minor units → DE39, of captures ``refuses``; ``batches``:
    DE60 → the payments of its captures → minor units, by which it answers 0500 (``tells_sums``: with its own sums, or
    with DE39 and DE66 alone); ``answers``: fields added to every
    answer; ``network``: DE39 of every 0810, '' for silence; ``duplicate``: DE39 for a request that is known, '' for the
    same answer again; ``renewals_apart``: a renewal is an amount of its own beside what it renews; ``forgets``: an
    unknown message that was reversed is not refused when it comes;
    ``captures_alone``: the reversal of a capture gives back the capture and goes on holding what it captured."""

    def __init__(self, wire: MessageCodec | None = None) -> None:
        self.wire = wire or MessageCodec()
        self.declines: dict[int, str] = {5100: "51", 1000: "10"}
        self.answers: Message = {}
        self.network = "00"
        self.duplicate = "94"
        self.refuses: dict[int, str] = {}
        self.renewals_apart = False
        self.captures_alone = False
        self.forgets = False
        self.batches: dict[str, dict[str, int]] = {}
        self.tells_sums = True
        self.log: list[Message] = []
        self.booked: dict[tuple[str, str], Booked] = {}
        self.gone: set[tuple[str, str]] = set()
        self.connections = 0
        self.tls: ssl.SSLContext | None = None
        self._plans: list[Behaviour] = []
        self._held: list[tuple[Callable[[bytes], None], bytes]] = []
        self._stalled: list[tuple[Message, socket.socket]] = []
        self._lines: list[socket.socket] = []
        self._lock = threading.RLock()
        self._ended = False
        self.port = 0
        self.start()

    # --- steering -------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Listen, again on the same port after a stop."""
        self._ended = False
        self._server = socket.create_server(("127.0.0.1", self.port))
        self.port = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._listen, args=(self._server,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Hang up and stop listening."""
        self._ended = True
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.hang_up()
        self._thread.join(PATIENCE_S)

    def hang_up(self) -> None:
        for line in self._lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
        self._lines.clear()

    def next(self, mti: str, how: str = "sent", *, arrives: bool = True, times: int = 1, **change: str | None) -> None:
        """The next messages of a type go like this. ``de39="05"`` changes a field of the answer, None leaves it out."""
        fields = {name.removeprefix("de"): value for name, value in change.items()}
        with self._lock:
            for _ in range(times):
                self._plans.append(Behaviour(mti=mti, how=how, arrives=arrives, change=fields))

    def release(self, *, backwards: bool = False) -> None:
        """Send what was held, and read what was stalled."""
        with self._lock:
            held, self._held = self._held, []
            stalled, self._stalled = self._stalled, []
        for message, line in stalled:
            self._message(message, line)
        for send, octets in reversed(held) if backwards else held:
            send(octets)

    def push(self, octets: bytes) -> None:
        """Send any octets on every line."""
        for line in self._lines:
            line.sendall(octets)

    def wait(self, condition: Callable[[], Any], what: str = "it") -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"never came: {what}"
            time.sleep(0.005)

    # --- looking --------------------------------------------------------------------------------------------------

    def seen(self, mti: str) -> list[Message]:
        return [message for message in self.log if message["t"] == mti]

    @property
    def held(self) -> int:
        return len(self._held)

    def of(self, payment: str) -> Booked:
        """What is booked for a payment, by the id in DE63."""
        (found,) = [row for row in self.booked.values() if row.payment == payment and row.mti != "0420"]
        return found

    @property
    def holds(self) -> int:
        """All that is authorized and neither captured nor reversed."""
        return sum(row.left - row.captured for row in self.booked.values() if row.mti == "0100" and row.behind is None)

    # --- the line -------------------------------------------------------------------------------------------------

    def _listen(self, server: socket.socket) -> None:
        while not self._ended:
            try:
                line, _ = server.accept()
            except OSError:
                return
            self.connections += 1
            self._lines.append(line)
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        rest = b""
        with line, contextlib.suppress(OSError):
            if self.tls is not None:
                line = self.tls.wrap_socket(line, server_side=True)
            while octets := line.recv(65_536):
                frames, rest = self.wire.split_frames(rest + octets)
                for frame in frames:
                    self._message(self.wire.message(frame), line)

    def _message(self, message: Message, line: socket.socket) -> None:
        with self._lock:
            self.log.append(message)
            plan = next((one for one in self._plans if one.mti == message["t"]), Behaviour(mti=""))
            if plan.mti:
                self._plans.remove(plan)
            if plan.how == "stalled":
                self._stalled.append((message, line))
                return
            answer = self._book(message) if plan.arrives else None
        if plan.how == "hung up":
            line.shutdown(socket.SHUT_RDWR)
        if answer is None:
            return
        answer = {name: text for name, text in (answer | plan.change).items() if text is not None}
        self._out(self.wire.frame(answer), plan.how, line)

    def _out(self, octets: bytes, how: str, line: socket.socket) -> None:
        def send(some: bytes) -> None:
            with contextlib.suppress(OSError):
                line.sendall(some)

        match how:
            case "sent":
                send(octets)
            case "twice":
                send(octets + octets)
            case "split":
                for place in range(len(octets)):
                    send(octets[place : place + 1])
            case "garbage":
                send(self.wire.framed(b"\x00\xffnot a message") + octets)
            case "garbage alone":
                send(self.wire.framed(b"\x00\xffnot a message"))
            case "cut":
                send(octets[: len(octets) // 2])
                line.shutdown(socket.SHUT_RDWR)
            case "held":
                with self._lock:
                    self._held.append((send, octets))

    # --- the books ------------------------------------------------------------------------------------------------

    def _book(self, message: Message) -> Message | None:
        """The answer to a message, once it is booked; None for none."""
        mti = message["t"]
        if mti == "0800":
            return self._answer(message, self.network) if self.network else None
        if mti == "0810":
            return None
        if mti[:3] == "050":
            return self._sums(message)
        key = (message["11"], message["37"])
        first = mti[:3] + "0"
        if first == "0320":
            return self._uploaded(message)
        if (known := self.booked.get(key)) is not None:
            again = mti.endswith("1") or not self.duplicate
            return known.answer if again else self._answer(message, self.duplicate)
        if key in self.gone:
            return self._answer(message, "05")
        amount = int(message["4"])
        original = self._original(message)
        code, left = "00", amount
        behind = self._authorization(message) if first == "0100" else None
        if first in ("0100", "0200"):
            code = _find_fault(message) or self.declines.get(amount, "00")
        elif fault := _find_difference(message, original):
            code = fault
        elif original is None:
            code = "25"
            if first == "0420" and not self.forgets:
                self.gone.add((message["90"][4:10], message["37"]))
        elif first == "0220" and (code := self.refuses.get(amount, "00")) == "00":
            original = original.behind or original
            original.captured += amount
            self._into_batch(message)
        elif first == "0220":
            pass
        elif first == "0420":
            self._taken_back(original, message)
        elif amount != (original := _find_held(original)).total:
            code = "13"  # a reversal has the amount of all that was authorized
        else:
            before = original.left
            _reverse(original, message)
            if self.captures_alone and original.mti == "0220" and original.behind is not None:
                original.behind.captured -= before - original.left
        changes: Message = {}
        if code == "10":
            changes["4"], left = f"{amount // 2:012}", amount // 2
        elif code != "00":
            left = 0
        answer = self._answer(message, code) | changes
        if behind is not None and code in ("00", "10") and RAISES in message.get("48", ""):
            behind.total += left
            behind.left += left
        elif first == "0220" and code == "00":
            behind = original
        self.booked[key] = Booked(
            mti=first,
            amount=amount,
            left=left,
            total=left,
            answer=answer,
            payment=message.get("63", ""),
            behind=behind,
            raises=RAISES in message.get("48", ""),
            processing=message["3"],
            facilitator=_facilitator(message),
            parties=_parts(message, "104"),
            cart=_parts(message, "120"),
            flight=_parts(message, "121"),
        )
        return answer

    def _authorization(self, message: Message) -> Booked | None:
        """The authorization that a further 0100 with its reference number raises or renews."""
        rows = [row for (_, rrn), row in self.booked.items() if rrn == message["37"]]
        held = [row for row in rows if row.mti == "0100" and row.behind is None]
        if not self.renewals_apart:
            return held[0] if held else None
        standing = [row for row in held if row.answer["39"] == "00" and not row.reversed]
        return standing[-1] if standing and RAISES in message.get("48", "") else None

    def _taken_back(self, original: Booked, message: Message) -> None:
        """A request or a capture never happened, or only what DE95 says of it."""
        original.reason = message.get("39", "")
        if "95" in message:
            _reverse(original, message)
            return
        if original.mti == "0220" and original.behind is not None and not original.reversed:
            original.behind.captured -= original.amount
        elif original.mti == "0100" and original.behind is not None and not original.reversed and original.raises:
            original.behind.total -= original.left
            original.behind.left -= original.left
        original.left, original.reversed = 0, True

    def _into_batch(self, message: Message) -> None:
        if "60" in message:
            self.batches.setdefault(message["60"], {})[message["63"]] = int(message["4"])

    def _uploaded(self, message: Message) -> Message:
        """Add the capture to the batch, if it is not in it yet."""
        code = self.refuses.get(int(message["4"]), "00")
        if code == "00":
            self._into_batch(message)
        return self._answer(message, code)

    def _sums(self, message: Message) -> Message:
        amounts = list(self.batches.get(message["60"], {}).values())
        same = (int(message["76"]), int(message["88"])) == (len(amounts), sum(amounts))
        answer = self._answer(message, "00" if same else "95") | {"66": "1" if same else "2"}
        return answer | ({"76": f"{len(amounts):010}", "88": f"{sum(amounts):016}"} if self.tells_sums else {})

    def _original(self, message: Message) -> Booked | None:
        if "90" not in message:
            return None
        stan = message["90"][4:10]
        return next((row for (own, _), row in self.booked.items() if own == stan), None)

    def _answer(self, message: Message, code: str) -> Message:
        answer = {number: message[number] for number in ECHOED if number in message}
        answer |= {"t": f"{message['t'][:2]}{int(message['t'][2]) + 1}0", "39": code}
        if message["t"][1] in "12" and code in ("00", "10"):
            answer["38"] = f"A{message['11'][:5]}"
        return answer | (self.answers if message["t"] != "0800" else {})


def _reverse(original: Booked, message: Message) -> None:
    original.reason = message.get("39", "")
    original.left = int(message["95"][:12]) if "95" in message else 0
    original.reversed = original.left == 0


def _find_held(original: Booked) -> Booked:
    """Of an increment or renewal, the authorization that holds its amount; anything else itself."""
    return original.behind if original.mti == "0100" and original.behind is not None else original


def _find_fault(message: Message) -> str:
    """DE39 for a message that says too little or too much of what it is; '' for a good one."""
    parties = _parts(message, "104")
    if (wanted := TRANSFERS.get(message["3"])) is not None and wanted not in parties:
        return "30"
    # A purchase that says it is a Visa transfer.
    return "12" if message["3"] == "000000" and "01" in parties else ""


def _find_difference(message: Message, original: Booked | None) -> str:
    """DE39 for a capture or reversal of another kind, or for another facilitator, than what it is about; else ''."""
    if original is None:
        return ""
    if message["3"] != original.processing:
        return "12"
    return "" if _facilitator(message) == original.facilitator else "03"


def _parts(message: Message, element: str) -> Message:
    return dict(split_parts(message.get(element, "")))


def _facilitator(message: Message) -> Message:
    return {number: text for number, text in _parts(message, "48").items() if number in ("37", "38", "39", "41")}


@pytest.fixture
def iso_host() -> Iterator[IsoHost]:
    """A host, and little patience with it; links that were opened are closed at the end."""
    host = IsoHost()
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=TIMEOUT_S):
        yield host
        link_registry.close_all_links()
    host.stop()


def settings_for(host: IsoHost, **more: str) -> dict[str, str]:
    return {
        "host": "127.0.0.1",
        "port": str(host.port),
        "terminal": "TERM0001",
        "institution": "12345",
        "mcc": "5942",
        "name": "Example Shop",
        "city": "Munich",
        "country": "DE",
        "echo_s": "0",
        **more,
    }


def account_at_host(channel: Channel, host: IsoHost, **more: str) -> AcquirerAccount:
    return AcquirerAccount.objects.create(
        channel=channel, connector="iso8583", acquirer_merchant_id="MERCHANT-1", settings=settings_for(host, **more)
    )

"""Stub acquirer: a separate process that plays an acquirer, for testMode=EXTERNAL and for tests of network faults.

    python -m gateway.connectors.stub.acquirer --port 9650 --log var/acquirer/acquirer.jsonl

It speaks JSON lines over TCP on the loopback address; a connection may carry any number of messages, one after the
other. Every message has ``kind`` and an ``id``, which its answer repeats.

    submit   key, operation, amount, currency, reference, card, …  → approved or declined, and why
    inquire  key  → the answer of its submission; voided; or unknown
    void     key  → voided: reversed if it was accepted, refused if it arrives later
    control  control: {delay_ms, late_ms, next, kinds, seed, and odds from 0 to 1 for silent_before, silent_after,
             held, late, disconnect_before, disconnect_after, duplicate, nonsense}; {} resets all
    books    → every transaction and the balance of every pool

A key is booked once, however often it arrives. Card numbers decide the outcome as on the test-data page. A single
payment requests a fault by customParameters[STUB_behaviour]=silent_before (or another fault's name).

Every message and decision is logged, one JSON object per line, on disk before the answer is sent. The log is its only
state: restarted on the same log, it continues. It never sees the gateway's database, so the two can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from gateway.connectors.simulator.cards import CARDS_BY_NUMBER
from gateway.connectors.stub.faults import NO_FAULT, STUB_FAULTS, FaultSteering, StubFault
from gateway.connectors.stub.journal import Journal
from gateway.connectors.stub.ledger import StubLedger, read_attempt_number

STUB_HOST: Final = "127.0.0.1"
MAX_LINE_BYTES: Final = 64 * 1024 * 1024


class StubAcquirer:
    """The ledger, its log, and the fault steering."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.books = StubLedger()
        self.steering = FaultSteering()
        for entry in journal.entries():
            self.books.apply(entry)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side closes it."""
        try:
            while line := await reader.readline():
                if not await self._message(line, writer):
                    break
        except (OSError, ValueError):
            pass  # the client is gone, or sent a line too long for a message
        finally:
            writer.close()

    async def _message(self, line: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer one message; False ends the connection."""
        try:
            message = json.loads(line)
            verb = {
                "submit": self._decide,
                "inquire": self._decide,
                "void": self._decide,
                "control": self._control,
                "books": self._tell,
            }[message["kind"]]
        except (ValueError, TypeError, KeyError):
            await self.journal.write({"kind": "unreadable", "bytes": len(line)})
            return False
        return await verb(message, writer)

    async def _decide(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        name = self.steering.draw(message) or _by_card(message)
        fault = STUB_FAULTS.get(name, NO_FAULT)
        late_s, delay_s = self.steering.late_ms / 1000, self.steering.delay_ms / 1000
        if not fault.arrives:
            lost = {"kind": message["kind"], "key": message.get("key"), "outcome": "lost", "fault": name}
            await self.journal.write(lost)
            return not fault.hangs_up
        if fault.late_in:
            await asyncio.sleep(late_s)
        answers = [await self._book(message, name) for _ in range(2 if fault.twice else 1)]
        await asyncio.sleep(delay_s + (late_s if fault.late_out else 0))
        if fault.answers:
            for answer in answers:
                writer.write(_garbled(fault, message, answer, self.journal.seq))
            await writer.drain()
        return not fault.hangs_up

    async def _book(self, message: Mapping[str, Any], fault: str) -> dict[str, Any]:
        """Decide and book without an await in between, then wait until the log is on disk."""
        try:
            entry = getattr(self.books, message["kind"])(message)
            self.books.apply(entry)
        except (KeyError, ValueError, ArithmeticError):
            entry = {"kind": message["kind"], "key": message.get("key"), "outcome": "unreadable"}
            entry["answer"] = {"key": message.get("key"), "outcome": "declined", "code": "900.100.204"}
        await self.journal.write(entry | ({"fault": fault} if fault else {}))
        return {"id": message.get("id"), **entry["answer"]}

    async def _control(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        control = {**message.get("control", {}), **({"next": message["next"]} if "next" in message else {})}
        try:
            self.steering = FaultSteering.of(control)
            answer: dict[str, Any] = {"id": message.get("id"), "outcome": "set"}
        except (ValueError, TypeError) as fault:
            answer = {"id": message.get("id"), "outcome": "refused", "why": str(fault)}
        await self.journal.write({"kind": "control", "control": control, "outcome": answer["outcome"]})
        writer.write(_line(answer))
        await writer.drain()
        return True

    async def _tell(self, message: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        books = {
            "transactions": [asdict(row) for row in self.books.by_key.values()],
            "pools": self.books.pools,
            "tombstones": sorted(self.books.tombstones),
        }
        writer.write(_line({"id": message.get("id"), **books}))
        await writer.drain()
        return True


def _by_card(message: Mapping[str, Any]) -> str:
    """The fault of a test card that gets no answer, from the first or from a second acquirer."""
    number = card.get("number") if isinstance(card := message.get("card"), Mapping) else None
    row = CARDS_BY_NUMBER.get(str(number))
    if message["kind"] != "submit" or row is None:
        return ""
    if row.second_acquirer == "silence" and read_attempt_number(str(message.get("key"))) > 1:
        return "silent_after"
    return "silent_before" if row.behaviour == "silence" else ""


def _garbled(fault: StubFault, message: Mapping[str, Any], answer: Mapping[str, Any], turn: int) -> bytes:
    """The answer's bytes: correct, or in turn invalid JSON, another key, or half of its fields."""
    if not fault.garbled:
        return _line(answer)
    garbage = (
        b"\x00\xff not an answer\n",
        _line({**answer, "key": "0" * 32}),
        _line({"id": message.get("id"), "key": message.get("key"), "outcome": "maybe"}),
    )
    return garbage[turn % len(garbage)]


def _line(answer: Mapping[str, Any]) -> bytes:
    return json.dumps(answer, separators=(",", ":"), default=str).encode() + b"\n"


async def serve_stub_acquirer(port: int, log: Path) -> None:
    """Serve until SIGTERM or SIGINT. The first line printed is the address it listens on."""
    journal = Journal(log)
    acquirer = StubAcquirer(journal)
    writing = asyncio.create_task(journal.run())
    server = await asyncio.start_server(acquirer.serve, STUB_HOST, port, limit=MAX_LINE_BYTES, backlog=1024)
    host, port = server.sockets[0].getsockname()
    await journal.write({"kind": "start", "port": port, "transactions": len(acquirer.books.by_key)})
    sys.stdout.write(f"listening on {host}:{port}\n")
    sys.stdout.flush()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    writers = asyncio.create_task(ended.wait())
    await asyncio.wait({writers, writing}, return_when=asyncio.FIRST_COMPLETED)
    server.close()
    if writing.done():
        writing.result()  # the disk failed: end with its error instead of answering without a log
    writing.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await writing


def main(arguments: list[str] | None = None) -> None:
    """Run the stub acquirer as a program."""
    parser = argparse.ArgumentParser(
        prog="python -m gateway.connectors.stub.acquirer",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, required=True, help="TCP port on 127.0.0.1; 0 takes a free one")
    parser.add_argument("--log", type=Path, required=True, help="the log, made when missing")
    options = parser.parse_args(arguments)
    asyncio.run(serve_stub_acquirer(options.port, options.log))


if __name__ == "__main__":
    main()

"""Direct debits through mock-bank: its days pass within seconds, and the merchant's clock beside them.

A day: the merchant's clock comes to 11:00, the day's file is made and uploaded; the bank's comes to the next day, and
what it says is laid into the gateway's inbox. Its books are a database of its own that outlives kill -9.
"""

from __future__ import annotations

import base64
import json
import os
import random
import threading
import time
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import psycopg

from tests.external.peers import Peer, program
from tests.faults.books import Payment
from tests.faults.client import Answer, Client, follow_up
from tests.faults.finding import LOST, Finding
from tests.faults.peers import bank_books, http_tap
from tests.faults.peers.bank_books import BankBooks
from tests.faults.peers.http_tap import HttpTap
from tests.faults.peers.misdeeds import Misdeeds
from tests.faults.peers.opening import bank_account, monday_at_seven
from tests.faults.peers.sides import LATE_S, absent
from tests.faults.stack import Stack
from tests.support.ports import free_port

USER: Final = "tollhouse"
WORD: Final = "only-for-faults"
ELSEWHERE, POOR, CLOSED = "NL30MOCK0000000005", "NL14MOCK0000000002", "NL84MOCK0000000003"
DAY_LASTS_S: Final = 6.0
PAUSE_S: Final = (0.3, 1.0)
OPENING_BALANCE: Final = 12_500_000
DAY: Final = timedelta(days=1)
# Files wait a minute or more for another try, and five for a worker that died with one: here they wait less.
_SEE_AGAIN: Final = """
UPDATE gateway_bankfile SET due_at = now(), lease_until = NULL WHERE state IN ('DECIDED', 'WRITTEN')
    AND (lease_until IS NULL AND due_at > now() OR lease_until < now() + interval '4 minutes')
"""
_UNDECIDED: Final = "SELECT count(*) FROM gateway_bankorder WHERE state IN ('WAITING', 'FILED')"
_ORDERS: Final = "SELECT replace(payment::text, '-', ''), state FROM gateway_bankorder"


class Bank:
    """See the module. ``client`` is set with the load; the days pass in a thread of their own."""

    name = "mock-bank"
    clients = 1

    def __init__(self, stack: Stack, seed: int) -> None:
        self.missing = absent("mock-bank")
        self.misdeeds = Misdeeds(http_tap.WAYS, late_s=LATE_S, seed=seed)
        self._stack, self._dice = stack, random.Random(seed)
        self._folder = stack.folder / "mock-bank"
        self._folder.mkdir()
        self.inbox = stack.var / "bank-inbox"
        self._port = free_port()
        self.tap = HttpTap(port=free_port(), to=self._port, misdeeds=self.misdeeds, journal=self._folder / "tap.jsonl")
        self.taps = [self.tap]
        self.began = monday_at_seven(datetime.now(UTC))
        self._day = self.began
        self._client: Client | None = None
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._pay, self._live)]
        self._peer: Peer | None = None
        self._laid: set[int] = set()
        self._figures = ""
        self.days = 0
        self.broken: list[str] = []

    # --- the program ----------------------------------------------------------------------------------------------

    def up(self) -> None:
        """Start it, on the books that it has, at the day that it had."""
        command: list[str | Path] = [
            program("mock-bank"),
            "--port",
            str(self._port),
            "--clock",
            f"{self._day:%Y-%m-%dT%H:%M}",
            "--auth",
            f"{USER}:{WORD}",
            "--db",
            str(self._folder / "books.db"),
            "--keep-requests",
            "0",
            "--quiet",
        ]
        self._peer = Peer(command, port=self._port, folder=self._folder, environ={})
        self._peer.start()
        self.tap.open()

    def kill(self) -> None:
        assert self._peer is not None
        self._peer.kill()
        self.tap.shut()

    def down(self) -> None:
        self.tap.shut()
        if self._peer is not None:
            self._peer.stop()

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Past our connector and the tap. Raises OSError."""
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self._port}{path}", data=data, method=method)
        request.add_header("Authorization", f"Basic {base64.b64encode(f'{USER}:{WORD}'.encode()).decode()}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    def document(self) -> dict[str, Any]:
        url = f"http://127.0.0.1:{self.tap.port}/payments"
        return {"acquirers": {"accounts": [bank_account(url, USER)]}}

    # --- the load -------------------------------------------------------------------------------------------------

    def load(self, client: Client, number: int, seed: int) -> list[Any]:
        self._client = client
        return [self]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """No new debits; the days go on until everything is decided."""
        self._ended.set()
        self._threads[0].join(240)

    def join(self) -> bool:
        return not self._threads[0].is_alive()

    def _pay(self) -> None:
        assert self._client is not None
        taken: list[str] = []
        number = 0
        try:
            while not self._ended.is_set():
                number += 1
                time.sleep(self._dice.uniform(*PAUSE_S))
                told = self._debit(f"peer-bank-{number}")
                if told is not None and told.status < 400:
                    taken.append(told.id)
                if taken and self._dice.random() < 0.1:
                    self._follow(f"peer-bank-{number}-rv", self._dice.choice(taken[-3:]), "RV", None)
                if len(taken) > 20 and self._dice.random() < 0.15:
                    self._follow(f"peer-bank-{number}-rf", self._dice.choice(taken[:-15]), "RF", "3.00")
        except Exception as fault:
            self.broken.append(f"bank: {type(fault).__name__}: {fault}")

    def _debit(self, order: str) -> Answer | None:
        assert self._client is not None
        iban = self._dice.choices((ELSEWHERE, POOR, CLOSED), (8, 1, 1))[0]
        fields = {
            "amount": f"{self._dice.randint(5, 90)}.00",
            "currency": "EUR",
            "paymentType": "DB",
            "testMode": "EXTERNAL",
            "paymentBrand": "DIRECTDEBIT_SEPA",
            "merchantTransactionId": order,
            "bankAccount.holder": "Jane Jones",
            "bankAccount.iban": iban,
            "bankAccount.bic": "MOCKNL2A",
            "bankAccount.country": "NL",
            "customer.givenName": "Jane",
            "customer.surname": "Jones",
        }
        return self._client.pay(order, fields)

    def _follow(self, order: str, target: str, kind: str, amount: str | None) -> None:
        assert self._client is not None
        self._client.pay(order, follow_up(kind, amount, order=order), target)

    # --- the days -------------------------------------------------------------------------------------------------

    def _live(self) -> None:
        """Let days pass until every order has its end."""
        assert self._client is not None
        clock = Client(port=self._client.port, entity=self._client.entity, token=self._client.token)
        while not self._ended.is_set() or self.owed():
            try:
                self._pass_a_day(clock)
            except (OSError, ValueError):  # the bank or the product is away
                time.sleep(0.5)
        clock.close()

    def _pass_a_day(self, clock: Client) -> None:
        eleven = self._day.replace(hour=11)
        while True:
            moved = clock.once("/v1/test/clock", {"now": f"{eleven:%Y-%m-%dT%H:%M:%SZ}"})
            if moved is None or moved.status not in (200, 400):
                raise OSError(f"the clock was not moved: {moved}")
            if moved.status == 400 or moved.body["complete"]:
                break
        end = time.monotonic() + DAY_LASTS_S
        while time.monotonic() < end:
            time.sleep(0.5)
            self.push_on()
        self.ask("POST", f"/_mock/advance?to={self._day + DAY:%Y-%m-%d}")
        self._day = (self._day + DAY).replace(hour=0)
        self.days += 1
        self._collect()

    def push_on(self) -> None:
        """What waits for another try is tried now."""
        try:
            with self._stack.connect() as connection:
                connection.execute(_SEE_AGAIN)
        except psycopg.OperationalError as fault:  # the database is one of the things that are killed
            raise OSError(str(fault)) from None

    def _collect(self) -> None:
        """What the bank has said, into the inbox, each message once. It is only looked at: what is taken from a
        mailbox, and not laid out before the fault, would be lost."""
        self.inbox.mkdir(parents=True, exist_ok=True)
        for one in self.ask("GET", "/_mock/mailbox?leave"):
            if one["id"] in self._laid:
                continue
            path = self.inbox / f"{one['id']:06}.xml"
            beside = path.with_suffix(".part")
            beside.write_text(one["body"])
            os.utime(beside, (0, 0))  # it has lain long enough
            beside.rename(path)
            self._laid.add(one["id"])

    def owed(self) -> int:
        """Orders that the bank has not decided, as far as we know."""
        try:
            with self._stack.connect() as connection:
                row = connection.execute(_UNDECIDED).fetchone()
        except psycopg.OperationalError:
            return 1
        return int(row[0]) if row else 1

    # --- the comparison -------------------------------------------------------------------------------------------

    def compare(self, payments: Mapping[str, Payment]) -> list[Finding]:
        self._threads[1].join(30)
        with self._stack.connect() as connection:
            orders = dict(connection.execute(_ORDERS).fetchall())
            files = connection.execute("SELECT state, tries FROM gateway_bankfile").fetchall()
        balance = self.ask("GET", "/_mock/accounts/ACME")["balance"]
        books = BankBooks(
            collections=self.ask("GET", "/_mock/collections"),
            payouts=self.ask("GET", "/_mock/payments"),
            moved=balance - OPENING_BALANCE,
        )
        self._figures = (
            f"{len(books.collections)} collections, {len(books.payouts)} payouts in {len(files)} files of {self.days} "
            f"days, {sum(tries > 1 for _, tries in files)} sent again, {len(self._laid)} messages laid in"
        )
        refused = [path.name for path in self.inbox.glob("failed/*.xml")]
        left = [state for state, _ in files if state != "DELIVERED"]
        return [
            *bank_books.compare(payments, orders, books),
            *(Finding(kind=LOST, what=f"a bank's message was not taken in: {name}") for name in refused),
            *(Finding(kind=LOST, what=f"a file is {state}") for state in left),
        ]

    def told(self) -> str:
        return self._figures

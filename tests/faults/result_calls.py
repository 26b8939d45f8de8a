"""The 29-minute call under fire: merchants who never fetch a result, a page of theirs that counts, and its books.

The calls that are owed are made due within seconds by moving their rows (the product's own clock is not touched), so
that they fall into the faults. The oracle is the merchant's page: it knows who called, when, and what it answered.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import psycopg

from tests.faults.browser import Browser
from tests.faults.client import Client
from tests.faults.faults import Strike
from tests.faults.finding import DOUBLED, LOST, TOO_EARLY, Finding
from tests.faults.races import Shop
from tests.faults.stack import Stack

SHOPS: Final = 2
PAUSE_S: Final = (0.1, 0.5)
DUE_IN_S: Final = (0.5, 6.0)
FETCHED_SHARE: Final = 0.3
FAILS_SHARE: Final = 0.2
"""Of the pages: they answer the first call with 503, and are called again."""
THINKS_S: Final = 0.3
TRY_FOR_S: Final = 120.0
CARD: Final = {
    "paymentBrand": "VISA", "card.number": "4200000000000000", "card.holder": "Jane Jones", "card.expiryMonth": "05",
    "card.expiryYear": "2034", "card.cvv": "123",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """One call as the merchant's page saw it; seconds since 1970."""

    at: float
    status: int


class ResultCalls:
    """See the module. ``due``: checkout → when its call is due; ``fetched``: checkouts whose result was fetched."""

    name = "29-minute calls"

    def __init__(self, stack: Stack, shop: Shop, seed: int) -> None:
        self.broken: list[str] = []
        self.due: dict[str, float] = {}
        self.fetched: set[str] = set()
        self.not_owed: list[str] = []
        self.calls: dict[str, list[Call]] = defaultdict(list)
        self._stack, self._shop = stack, shop
        self._ended = threading.Event()
        self._page = ThreadingHTTPServer(("127.0.0.1", 0), self._page_class(random.Random(seed)))
        self._threads = [
            threading.Thread(target=self._serve, args=(number, random.Random(seed + number)), daemon=True)
            for number in range(SHOPS)
        ]

    def start(self) -> None:
        threading.Thread(target=self._page.serve_forever, daemon=True).start()
        for thread in self._threads:
            thread.start()

    def stop(self) -> bool:
        self._ended.set()
        for thread in self._threads:
            thread.join(2 * TRY_FOR_S)
        return not any(thread.is_alive() for thread in self._threads)

    def owed(self) -> int:
        with self._stack.connect() as connection:
            row = connection.execute("SELECT count(*) FROM checkout_resultcall").fetchone()
        return int(row[0]) if row else -1

    def findings(self, strikes: Sequence[Strike]) -> list[Finding]:
        """Every due call was made; twice only where a worker was killed between the two."""
        self._page.shutdown()
        found = [Finding(kind=LOST, what=f"no call was owed for {one}") for one in self.not_owed]
        for checkout, due in self.due.items():
            calls = self.calls[checkout]
            heard = [call for call in calls if call.status == 200]
            if not heard:
                found.append(Finding(kind=LOST, what=f"nobody called for {checkout} ({len(calls)} tries)"))
            if any(call.at < due for call in calls):
                found.append(Finding(kind=TOO_EARLY, what=f"called for {checkout} before its time"))
            for one, two in pairwise(heard):
                if not _struck(strikes, one.at, two.at):
                    found.append(Finding(kind=DOUBLED, what=f"called for {checkout} {two.at - one.at:.1f} s apart"))
        found += [
            Finding(kind=DOUBLED, what=f"called for {one}, whose result was fetched")
            for one in self.fetched
            if self.calls.get(one)
        ]
        return found

    def told(self) -> str:
        heard = [sum(call.status == 200 for call in self.calls[one]) for one in self.due]
        late = [min(call.at for call in calls) - due for one, due in self.due.items() if (calls := self.calls.get(one))]
        return (
            f"{len(self.due)} owed, {sum(number > 0 for number in heard)} heard, {sum(max(0, n - 1) for n in heard)} "
            f"again after a kill; first call at most {max(late, default=0.0):.1f} s late; {len(self.fetched)} fetched"
        )

    # --- merchants, and their page ----------------------------------------------------------------------------------

    def _serve(self, number: int, dice: random.Random) -> None:
        client = self._shop.client()
        browser = Browser(port=self._shop.port)
        count = 0
        try:
            while not self._ended.is_set():
                count += 1
                self._checkout(client, browser, dice, f"call-{number}-n{count}-d{dice.randrange(10**9)}")
                time.sleep(dice.uniform(*PAUSE_S))
        except Exception as fault:  # a client that dies would make the load look survived
            self.broken.append(f"{self.name} {number}: {type(fault).__name__}: {fault}")
        finally:
            client.close()

    def _checkout(self, client: Client, browser: Browser, dice: random.Random, order: str) -> None:
        fields = {
            "amount": "92.00",
            "currency": "EUR",
            "paymentType": "DB",
            "testMode": "INTERNAL",
            "merchantTransactionId": order,
            "shopperResultUrl": f"http://127.0.0.1:{self._page.server_address[1]}/result?order={order}",
        }
        made = client.pay(order, fields, path="/v1/checkouts")
        if made is None or not made.id:
            return
        paid = browser.load(f"/v1/checkouts/{made.id}/payment", CARD)
        if paid.status != 200:
            return
        if dice.random() < FETCHED_SHARE:
            if self._fetch(client, made.id):
                self.fetched.add(made.id)
            return
        due = time.time() + dice.uniform(*DUE_IN_S)
        moved = self._make_due(made.id, due)
        if moved is None:
            return
        if moved:
            self.due[made.id] = due
        else:
            self.not_owed.append(made.id)

    def _fetch(self, client: Client, checkout: str) -> bool:
        """The merchant's GET, until it is answered."""
        end = time.monotonic() + TRY_FOR_S
        while time.monotonic() < end:
            line = http.client.HTTPConnection("127.0.0.1", client.port, timeout=30)
            try:
                line.request(
                    "GET",
                    f"/v1/checkouts/{checkout}/payment?entityId={client.entity}",
                    headers={"Authorization": f"Bearer {client.token}"},
                )
                got = line.getresponse()
                body: dict[str, Any] = json.loads(got.read())
                if got.status == 200 and "id" in body:
                    return True
            except (OSError, http.client.HTTPException, ValueError):
                pass
            finally:
                line.close()
            time.sleep(0.3)
        return False

    def _make_due(self, checkout: str, due: float) -> bool | None:
        """Whether there was a call to make due; None when the database did not answer in time."""
        end = time.monotonic() + TRY_FOR_S
        while time.monotonic() < end:
            try:
                with self._stack.connect() as connection:
                    done = connection.execute(
                        "UPDATE checkout_resultcall SET due_at = to_timestamp(%s) WHERE checkout_id = %s",
                        (due, checkout[:32].lower()),
                    )
                return done.rowcount == 1
            except (psycopg.Error, KeyError):
                time.sleep(0.3)
        return None

    def _page_class(self, dice: random.Random) -> type[BaseHTTPRequestHandler]:
        books, lock, fails = self.calls, threading.Lock(), dict[str, bool]()

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                checkout = parse_qs(urlsplit(self.path).query)["id"][0]
                at = time.time()
                with lock:
                    first = checkout not in fails
                    fails.setdefault(checkout, dice.random() < FAILS_SHARE)
                    status = 503 if first and fails[checkout] else 200
                    pause = dice.uniform(0.0, THINKS_S)
                    books[checkout].append(Call(at, status))
                time.sleep(pause)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Nothing."""

        return Page


def _struck(strikes: Sequence[Strike], first: float, second: float) -> bool:
    """Whether a worker that may have made the first call was killed before it recorded it."""
    return any(first - 1 <= one.at <= second for one in strikes)

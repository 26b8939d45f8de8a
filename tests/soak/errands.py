"""What is done beside payments, each at its own interval: queries, pages of the widget and of the back office, reports,
files. One thread does all of it, one after the other."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from gateway.connectors.simulator.cards import GUESSED_BIN
from gateway.core.luhn import compute_check_digit
from tests.benchmarks.settlement import write_file
from tests.faults.browser import RESULT_URL, Browser
from tests.faults.client import Client, Journal, payment
from tests.faults.result_calls import CARD
from tests.faults.stack import Stack
from tests.soak.clerk import Clerk
from tests.soak.traffic import PacedShop

INSTITUTE: Final = "soak"
PERIOD: Final = timedelta(minutes=10)
"""What is asked for is of so long, so that no answer and no file grows with the run."""
FRAME: Final = "/v1/widget/frame.html?parent=https%3A%2F%2Fshop.example"
FIRST_WITHIN_S: Final = 60.0
"""Each errand is run for the first time so soon, however seldom it comes later."""
LOOK_EVERY_S: Final = 0.2
PAYMENTS: Final = "/admin/gateway/payment/"
LISTS: Final = (
    "/admin/", "/admin/gateway/requestlog/", "/admin/gateway/webhookdelivery/", "/admin/checkout/checkout/",
    "/admin/gateway/registration/", "/admin/scheduling/job/", "/admin/gateway/authentication/",
    "/admin/reporting/settlementfile/", "/admin/reporting/settlement/", "/admin/reporting/settlementrecord/",
    "/admin/reporting/reconciliationfile/", "/admin/reporting/monthclosing/", "/admin/gateway/merchant/",
    "/admin/gateway/backgroundwork/", "/admin/gateway/auditentry/", "/docs/", "/testdata",
)  # fmt: skip


class Errands:
    """``start()``, ``stop()``. ``counts``: how often each was run; ``broken``: errands that did not come to their end;
    ``odd``: answers that were not as they have to be."""

    def __init__(self, stack: Stack, shop: PacedShop, seed: int, pace: float) -> None:
        """``pace``: 2 for twice as often as ``ERRANDS`` says."""
        demo = stack.facts("demo.json")
        self._errands = [(name, every_s / pace, run) for name, every_s, run in ERRANDS]
        self.journal = stack.folder / "journal-errands.jsonl"
        self.broken: list[str] = []
        self.counts = dict.fromkeys((name for name, _, _ in ERRANDS), 0)
        self._stack, self._shop = stack, shop
        self._dice = random.Random(seed)
        self._clerk = Clerk(port=shop.port, user=demo["admin_user"], password=demo["admin_password"])
        self._browser = Browser(port=shop.port)
        self._client, self._unwritten = shop.client(Journal(path=self.journal)), shop.client()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._lines = 0
        self._settled = datetime.now(UTC)
        self._order = 0
        self._list = 0
        self._odd: list[str] = []

    @property
    def server_errors(self) -> int:
        """Answers with a 5xx."""
        return sum(one.server_errors for one in self._places)

    @property
    def unanswered(self) -> int:
        """Requests without an answer."""
        return sum(one.hurt - one.server_errors for one in (self._client, self._unwritten, self._browser))

    @property
    def odd(self) -> list[str]:
        return [*self._odd, *self._clerk.odd]

    @property
    def _places(self) -> tuple[Client | Browser | Clerk, ...]:
        return (self._client, self._unwritten, self._browser, self._clerk)

    def start(self) -> None:
        self._stack.command("clearing_institute", "--key", INSTITUTE, "--connector", "simulator")
        self._thread.start()

    def stop(self) -> bool:
        """Whether the last errand came to its end."""
        self._ended.set()
        self._thread.join(240)
        return not self._thread.is_alive()

    def _work(self) -> None:
        now = time.monotonic()
        due = {name: now + self._dice.uniform(0, min(every_s, FIRST_WITHIN_S)) for name, every_s, _ in self._errands}
        while not self._ended.wait(LOOK_EVERY_S):
            for name, every_s, run in self._errands:
                if due[name] > time.monotonic() or self._ended.is_set():
                    continue
                due[name] = time.monotonic() + every_s
                try:
                    run(self)
                    self.counts[name] += 1
                except Exception as fault:  # one that fails must not end the others
                    if not self._ended.is_set():
                        self.broken.append(f"{name}: {type(fault).__name__}: {fault}"[-300:])
        self._client.close()
        self._unwritten.close()

    # --- the API --------------------------------------------------------------------------------------------------

    def _next_order(self) -> str:
        self._order += 1
        return f"errand-{self._shop.traffic.seed}-{self._order}"

    def _get(self, path: str, **fields: str) -> dict[str, Any]:
        """The answer's body; what is neither a success nor a payment that was declined is odd."""
        told = self._unwritten.get(path, {name.replace("__", "."): value for name, value in fields.items()})
        if told is None:
            return {}
        if told.status != 200 and not told.id:
            self._odd.append(f"GET {path}: {told.status} {told.code}")
        return told.body

    def read_payment(self) -> None:
        if known := self._shop.traffic.draw():
            self._get(f"/v1/payments/{known[1]}")

    def query_order(self) -> None:
        if known := self._shop.traffic.draw():
            self._get("/v1/query", merchantTransactionId=known[0])

    def query_chain(self) -> None:
        if known := self._shop.traffic.draw():
            self._get(f"/v1/query/{known[1]}", includeLinkedTransactions="true")

    def query_period(self) -> None:
        now = datetime.now(UTC)
        period = {"date__from": f"{now - PERIOD:%Y-%m-%d %H:%M:%S}", "date__to": f"{now:%Y-%m-%d %H:%M:%S}"}
        self._get(self._dice.choice(("/v1/query", "/v3/query")), **period)

    def read_reports(self) -> None:
        """What was settled: the list of payouts, and the records of one."""
        today = datetime.now(UTC).date()
        days = {"date__from": f"{today - timedelta(days=1)}", "date__to": f"{today}"}
        listed = self._get("/v1/reports/reconciliations", **days).get("aggregations", [])
        if listed:
            self._get(f"/v1/reports/reconciliations/{self._dice.choice(listed)['id']}")
        self._get("/reports/v2/reconciliations/aggregations", **days)
        self._get("/v1/resultcodes")

    def pay_with_unknown_card(self) -> None:
        """Declined by the issuer. Another card each time, since one is soon no longer sent to the acquirer."""
        digits = GUESSED_BIN + f"{self._dice.randrange(10**9):09d}"
        order = self._next_order()
        card = digits + compute_check_digit(digits)
        self._client.pay(order, payment("DB", "92.00", mode="EXTERNAL", order=order, card=card))

    def use_widget(self) -> None:
        """What a browser loads and sends for a checkout that is paid by card, and the merchant's look at it."""
        order = self._next_order()
        fields = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "merchantTransactionId": order}
        made = self._unwritten.pay(order, {**fields, "shopperResultUrl": RESULT_URL}, path="/v1/checkouts")
        if made is None or not made.id:
            return
        checkout = f"/v1/checkouts/{made.id}"
        for path in (f"/v1/paymentWidgets.js?checkoutId={made.id}", FRAME, f"{checkout}/config"):
            self._see(path)
        self._see(f"{checkout}/payment", CARD)
        self._see(f"{checkout}/state")
        self._get(f"{checkout}/payment")

    def _see(self, path: str, form: Mapping[str, str] | None = None) -> None:
        page = self._browser.load(path, form)
        if page.status not in (200, 302):
            self._odd.append(f"{path.partition('?')[0]}: {page.status}")

    # --- the back office ------------------------------------------------------------------------------------------

    def list_payments(self) -> None:
        self._clerk.open(self._dice.choice((PAYMENTS, f"{PAYMENTS}?state=captured", f"{PAYMENTS}?least=100&most=200")))

    def search_payments(self) -> None:
        if known := self._shop.traffic.draw():
            for text in (known[0], known[1], "0000"):
                self._clerk.open(f"{PAYMENTS}?q={text}")

    def open_payment(self) -> None:
        if known := self._shop.traffic.draw():
            self._clerk.open(f"{PAYMENTS}{UUID(known[1])}/change/")

    def open_live_board(self) -> None:
        self._clerk.open("/admin/live-board/")

    def open_report(self) -> None:
        self._clerk.open("/admin/approval-rates/")

    def open_lists(self) -> None:
        """The next of all others."""
        self._list += 1
        self._clerk.open(LISTS[self._list % len(LISTS)])

    def export_payments(self) -> None:
        """Those of the last minutes, as a file that the worker writes."""
        self._clerk.open(PAYMENTS)
        since = f"{datetime.now(UTC) - PERIOD:%Y-%m-%dT%H:%MZ}"
        self._clerk.send(f"{PAYMENTS}export/", {"format": "csv", "from": since})

    # --- files ----------------------------------------------------------------------------------------------------

    def take_in_settlement(self) -> None:
        """A file of what the simulator approved since the last one, which the worker reads."""
        since, self._settled = self._settled, datetime.now(UTC)
        path = self._stack.folder / "settlement.csv"
        with self._stack.connect() as connection:
            write_file(path, connection, self._shop.entity, since, self._lines + 1)
        lines = path.read_bytes().count(b"\n") - 1
        if lines:
            self._lines += lines
            self._stack.command("settlement_file", str(path), "--institute", INSTITUTE, "--later")


ERRANDS: Final[tuple[tuple[str, float, Callable[[Any], None]], ...]] = (
    # what                        every so many seconds
    ("payment read", 3, Errands.read_payment),
    ("query: order", 5, Errands.query_order),
    ("query: chain", 10, Errands.query_chain),
    ("query: period", 30, Errands.query_period),
    ("reports", 60, Errands.read_reports),
    ("declined by the issuer", 10, Errands.pay_with_unknown_card),
    ("widget", 20, Errands.use_widget),
    ("page: payments", 30, Errands.list_payments),
    ("page: searches", 60, Errands.search_payments),
    ("page: payment", 30, Errands.open_payment),
    ("page: live board", 60, Errands.open_live_board),
    ("page: approval rates", 300, Errands.open_report),
    ("page: another", 30, Errands.open_lists),
    ("export", 600, Errands.export_payments),
    ("settlement file", 600, Errands.take_in_settlement),
)

"""Webhooks under fire: an endpoint that hears of every payment of the load, and its books.

Everything that the product wrote into its outbox for this channel has to be heard, with a signature that the standard
library for it accepts. Hearing something twice is allowed only where somebody was killed between the two (at least
once). Some first tries are answered 503; what they owe is made due again by moving its rows.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any, Final

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from tests.faults.faults import Strike
from tests.faults.finding import DOUBLED, LOST, Finding
from tests.faults.races import Shop
from tests.faults.stack import Stack

FAILS_SHARE: Final = 0.02
THINKS_S: Final = 0.05
KIND: Final = "PAYMENT"
_EXPECTED: Final = """
SELECT payment_id::text, sequence FROM gateway_notification WHERE kind = %s AND id > %s AND channel_id = %s::uuid
"""
_AGAIN: Final = """
UPDATE gateway_webhookdelivery SET due_at = created_at WHERE state = 'waiting' AND attempts > 0 AND lease_until IS NULL
"""
_OWED: Final = """
SELECT (SELECT count(*) FROM gateway_webhookdelivery WHERE state = 'waiting')
    + (SELECT count(*) FROM gateway_notification n, gateway_fanoutposition f WHERE n.id > f.position)
"""

Event = tuple[str, int]


class _Page(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Senders are killed here; that they hang up is no news."""


class Webhooks:
    """See the module. ``heard``: (payment, sequence) → when it was answered 200, seconds since 1970."""

    name = "webhooks"

    def __init__(self, stack: Stack, shop: Shop, seed: int) -> None:
        self.broken: list[str] = []
        self.heard: dict[Event, list[float]] = defaultdict(list)
        self.refused = 0
        self._stack, self._shop = stack, shop
        self._dice = random.Random(seed)
        self._lock = threading.Lock()
        self._webhook: Webhook | None = None
        self._page = _Page(("127.0.0.1", 0), self._page_class())
        self._from = 0

    def start(self) -> None:
        threading.Thread(target=self._page.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{self._page.server_address[1]}/hook"
        made = self._stack.command("webhook_endpoint", "--entity", self._shop.entity, "--url", url, "--mode", "signed")
        facts = json.loads(made.splitlines()[0])
        self._webhook = Webhook(facts["standard_secret"])
        self._stack.command("webhook_endpoint", "--activate", "--endpoint", facts["id"])
        with self._stack.connect() as connection:
            # What is written from here on is fanned out after the endpoint was there.
            found = connection.execute("SELECT coalesce(max(id), 0) FROM gateway_notification").fetchone()
            assert found is not None
            self._from = int(found[0])

    def stop(self) -> bool:
        return True

    def owed(self) -> int:
        """Make deliveries due that were refused once, so that the run need not wait for their next try."""
        with self._stack.connect() as connection:
            connection.execute(_AGAIN)
            row = connection.execute(_OWED).fetchone()
        return int(row[0]) if row else -1

    def findings(self, strikes: Sequence[Strike]) -> list[Finding]:
        self._page.shutdown()
        with self._stack.connect() as connection:
            rows = connection.execute(_EXPECTED, (KIND, self._from, self._shop.entity)).fetchall()
        expected = {(row[0].replace("-", ""), int(row[1])) for row in rows}
        found = [
            Finding(kind=LOST, what=f"nobody was told of event {sequence}", payment=payment)
            for payment, sequence in sorted(expected - self.heard.keys())
        ]
        for (payment, sequence), times in self.heard.items():
            found += [
                Finding(kind=DOUBLED, what=f"event {sequence} was told {two - one:.1f} s apart", payment=payment)
                for one, two in pairwise(times)
                if not any(one - 1 <= strike.at <= two for strike in strikes)
            ]
        return found

    def told(self) -> str:
        again = sum(count - 1 for count in Counter({event: len(times) for event, times in self.heard.items()}).values())
        return f"{len(self.heard)} events heard, {again} again after a kill, {self.refused} refused at first"

    # --- the merchant's endpoint --------------------------------------------------------------------------------------

    def _take(self, body: bytes, headers: dict[str, str]) -> int:
        """The status of the answer."""
        at = time.time()
        if self._webhook is None:
            return 503
        try:
            told = self._webhook.verify(body, headers)
        except WebhookVerificationError as fault:
            self.broken.append(f"{self.name}: {fault}")
            return 400
        if told["type"] != KIND:
            return 200
        event = (told["payload"]["id"], int(told["payload"]["sequence"]))
        with self._lock:
            if event not in self.heard and self._dice.random() < FAILS_SHARE:
                self.refused += 1
                return 503
            self.heard[event].append(at)
        return 200

    def _page_class(self) -> type[BaseHTTPRequestHandler]:
        take, dice = self._take, self._dice

        class Page(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = take(body, {name.lower(): value for name, value in self.headers.items()})
                time.sleep(dice.uniform(0.0, THINKS_S))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                """Nothing."""

        return Page

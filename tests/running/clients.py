"""Merchants' clients: each payment has an Idempotency-Key and is sent again with it until it is answered."""

from __future__ import annotations

import http.client
import itertools
import json
import ssl
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

ATTEMPT_S: Final = 10.0
GIVE_UP_S: Final = 60.0
PAUSE_S: Final = 0.1
CARD: Final = {
    "paymentType": "DB", "paymentBrand": "VISA", "amount": "92.00", "currency": "EUR",
    "card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034", "card.cvv": "123",
    "card.holder": "Jane Jones",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        found = json.loads(self.body)
        assert isinstance(found, dict)
        return found

    @property
    def code(self) -> str:
        return str(self.json["result"]["code"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Speaker:
    """One client: a new connection for every request, so that the proxy chooses each time."""

    host: str
    port: int
    context: ssl.SSLContext | None
    token: str
    entity: str

    def ask(self, method: str, path: str, fields: dict[str, str] | None = None, **headers: str) -> Answer:
        if self.context is not None:
            line: http.client.HTTPConnection = http.client.HTTPSConnection(
                self.host, self.port, timeout=ATTEMPT_S, context=self.context
            )
        else:
            line = http.client.HTTPConnection(self.host, self.port, timeout=ATTEMPT_S)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.token:
            sent["Authorization"] = f"Bearer {self.token}"
        body = None
        if fields is not None:
            body = urlencode({"entityId": self.entity, **fields})
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            line.request(method, path, body, sent)
            answer = line.getresponse()
            return Answer(status=answer.status, headers=dict(answer.getheaders()), body=answer.read())
        finally:
            line.close()

    def pay(self, key: str, **fields: str) -> Answer:
        return self.ask("POST", "/v1/payments", CARD | {"merchantTransactionId": key} | fields, Idempotency_Key=key)

    def status(self, path: str) -> int:
        """HTTP status of a GET; 0 without an answer."""
        try:
            return self.ask("GET", path).status
        except (OSError, http.client.HTTPException):
            return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged:
    """A payment that a client got an answer about: its key, id and code, how often it was sent, when it was
    answered."""

    key: str
    payment: str
    code: str
    attempts: int
    at: float


@dataclass(slots=True)
class Load:
    """Clients that pay one after another until they are stopped; what they begin they bring to its end."""

    speaker: Speaker
    clients: int = 6
    pause_s: float = 0.02
    give_up_s: float = GIVE_UP_S
    acknowledged: list[Acknowledged] = field(default_factory=list)
    unanswered: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> None:
        self._threads = [threading.Thread(target=self._client, daemon=True) for _ in range(self.clients)]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(self.give_up_s + ATTEMPT_S)

    @property
    def retried(self) -> int:
        return sum(row.attempts > 1 for row in self.acknowledged)

    @property
    def longest_silence_s(self) -> float:
        """The longest time in which no client got an answer."""
        times = sorted(row.at for row in self.acknowledged)
        return max((after - before for before, after in itertools.pairwise(times)), default=0.0)

    def _client(self) -> None:
        while not self._stop.is_set():
            self._pay(uuid.uuid4().hex)
            time.sleep(self.pause_s)

    def _pay(self, key: str) -> None:
        end = time.monotonic() + self.give_up_s
        attempts = 0
        while time.monotonic() < end:
            attempts += 1
            try:
                answer = self.speaker.pay(key, testMode="EXTERNAL")
            except (OSError, http.client.HTTPException) as fault:
                self.faults[type(fault).__name__] += 1
            else:
                if answer.status in (200, 400) and answer.json.get("id"):
                    payment, code = str(answer.json["id"]), answer.code
                    self.acknowledged.append(
                        Acknowledged(key=key, payment=payment, code=code, attempts=attempts, at=time.monotonic())
                    )
                    return
                self.faults[str(answer.status)] += 1
            time.sleep(PAUSE_S)
        self.unanswered.append(key)

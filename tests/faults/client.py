"""A merchant's client that loses nothing: it repeats a request with its key until it has an answer, and writes a
journal of what it asked and heard. It knows HTTP and the spec, and none of the product's code."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

ANSWER_WITHIN_S: Final = 30.0
TRY_FOR_S: Final = 180.0
LONGEST_PAUSE_S: Final = 2.0
IN_PROGRESS: Final = "800.120.402"
_GRANTED: Final = re.compile(r"000\.000\.|000\.100\.1|000\.[36]|000\.400\.[1][12]0|000\.400\.0[^3]|000\.400\.100")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer. ``replayed``: it says that it was given before."""

    status: int
    body: dict[str, Any]
    replayed: bool = False
    retry_after_s: float | None = None

    @property
    def code(self) -> str:
        return str(self.body.get("result", {}).get("code", ""))

    @property
    def id(self) -> str:
        return str(self.body.get("id", ""))

    @property
    def amount(self) -> str:
        return str(self.body.get("amount", ""))

    @property
    def is_approved(self) -> bool:
        return is_approved(self.code)

    @property
    def is_open(self) -> bool:
        return is_pending(self.code)


def is_approved(code: str) -> bool:
    """The families of success and review: money was granted."""
    return _GRANTED.match(code) is not None


def is_pending(code: str) -> bool:
    """The families of "pending": an answer is still to come, of an acquirer in minutes, of a bank in days."""
    return code.startswith(("000.200.", "800.400.5", "100.400.500"))


@dataclass(slots=True, kw_only=True)
class Journal:
    """One file of JSON lines; nothing is forced to the disk, as the client is not what is killed."""

    path: Path

    def write(self, **line: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line, separators=(",", ":")) + "\n")


@dataclass(slots=True, kw_only=True)
class Client:
    """One keep-alive connection. Not thread-safe."""

    port: int
    entity: str
    token: str
    name: str = "demo"
    journal: Journal | None = None
    hurt: int = 0
    """Tries that got no answer or a 5xx."""
    server_errors: int = 0
    """Tries that got a 5xx."""
    _line: http.client.HTTPConnection | None = field(default=None)

    def pay(self, key: str, fields: Mapping[str, str], target: str = "", path: str = "") -> Answer | None:
        """A payment, or a follow-up of ``target``, or a POST to another ``path``, under the idempotency key ``key``,
        repeated until it is answered.

        None when there is no answer after TRY_FOR_S.
        """
        path = path or (f"/v1/payments/{target}" if target else "/v1/payments")
        if self.journal is not None:
            shop = {"shop": self.name, "path": path}
            self.journal.write(kind="asks", key=key, target=target, fields=dict(fields), at=time.time(), **shop)
        end, pause_s = time.monotonic() + TRY_FOR_S, 0.05
        while time.monotonic() < end:
            answer = self._try("POST", path, fields, key=key)
            if answer is not None and answer.status < 500 and answer.code != IN_PROGRESS:
                return answer
            time.sleep(min(answer.retry_after_s if answer and answer.retry_after_s else pause_s, LONGEST_PAUSE_S))
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        return None

    def read(self, payment: str, entity: str = "") -> Answer | None:
        """What became of a payment, asked once; ``entity``: of another channel."""
        return self._try("GET", f"/v1/payments/{payment}", {"entityId": entity} if entity else {}, key="")

    def result(self, checkout: str) -> Answer | None:
        """What became of a checkout's last payment, asked once."""
        return self._try("GET", f"/v1/checkouts/{checkout}/payment", {}, key="")

    def state(self, checkout: str) -> Answer | None:
        """How a checkout stands, as its page asks, once."""
        return self._try("GET", f"/v1/checkouts/{checkout}/state", {}, key="")

    def get(self, path: str, fields: Mapping[str, str]) -> Answer | None:
        """One try of any GET; None without an answer."""
        return self._try("GET", path, fields, key="")

    def once(self, path: str, fields: Mapping[str, str], key: str = "") -> Answer | None:
        """One try of a POST; None without an answer."""
        return self._try("POST", path, fields, key=key)

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
            self._line = None

    def _try(self, method: str, path: str, fields: Mapping[str, str], *, key: str) -> Answer | None:
        started = time.time()
        try:
            answer = self._exchange(method, path, fields, key)
        except (OSError, http.client.HTTPException, ValueError) as fault:
            self.close()
            self.hurt += 1
            self._note(method, key, started, fault=f"{type(fault).__name__}: {fault}"[:120])
            return None
        self.hurt += answer.status >= 500
        self.server_errors += answer.status >= 500
        self._note(method, key, started, answer=answer)
        return answer

    def _exchange(self, method: str, path: str, fields: Mapping[str, str], key: str) -> Answer:
        sent = urlencode({"entityId": self.entity, **fields})
        headers = {"Authorization": f"Bearer {self.token}"}
        if key:
            headers["Idempotency-Key"] = key
        body = None
        if method == "POST":
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            body = sent.encode()
        else:
            path += f"?{sent}"
        if self._line is None:
            self._line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_WITHIN_S)
        self._line.request(method, path, body, headers)
        got = self._line.getresponse()
        told = json.loads(got.read())
        after = got.headers.get("Retry-After", "")
        return Answer(
            status=got.status,
            body=told,
            replayed=got.headers.get("Idempotent-Replayed") == "true",
            retry_after_s=float(after) if after.isdecimal() else None,
        )

    def _note(self, method: str, key: str, started: float, *, answer: Answer | None = None, fault: str = "") -> None:
        if self.journal is None:
            return
        line: dict[str, Any] = {"kind": method, "key": key, "sent": started, "at": time.time()}
        if answer is None:
            self.journal.write(**line, fault=fault)
            return
        self.journal.write(
            **line,
            status=answer.status,
            code=answer.code,
            id=answer.id,
            amount=answer.amount,
            replayed=answer.replayed,
        )


def payment(kind: str, amount: str, *, mode: str, order: str, card: str = "4200000000000000") -> dict[str, str]:
    """The fields of an ordinary card payment."""
    return {
        "amount": amount,
        "currency": "EUR",
        "paymentBrand": "VISA",
        "paymentType": kind,
        "testMode": mode,
        "merchantTransactionId": order,
        "card.number": card,
        "card.holder": "Jane Jones",
        "card.expiryMonth": "05",
        "card.expiryYear": "2034",
        "card.cvv": "123",
    }


def follow_up(kind: str, amount: str | None, *, order: str, practice: str = "", final: bool = False) -> dict[str, str]:
    """The fields of a follow-up; a reversal may go without an amount. ``practice``: of a PA that raises or renews."""
    fields = {"paymentType": kind, "merchantTransactionId": order}
    if amount is not None:
        fields |= {"amount": amount, "currency": "EUR"}
    if practice:
        fields["standingInstruction.industryPractice"] = practice
    return fields | ({"sequence": "FINAL"} if final else {})

"""Prove what the test-data page promises, over HTTP, against a gateway that runs.

    python -m tests.promises http://127.0.0.1:8000 --token … --entity …

Reads /testdata.json and sends one request for every row (and clicks, moves the clock or lets money arrive where the
row says so). Prints each broken promise; exit status 1 when there is one. The merchant's channel must be without
limits, 3-D Secure and risk rules. The merchant's clock is moved on and put back.
Source: Part A, What the service does, 5; check A5.5.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

CARD = {"card.expiryMonth": "05", "card.expiryYear": "2034", "card.holder": "Jane Jones"}
DEADLINE_S = 86_400
PATIENCE_S = 120

Row = Mapping[str, Any]
Json = dict[str, Any]


class Gateway(Protocol):
    """How the promises are asked for: the API with a token, and a shopper's browser without one."""

    def api(self, method: str, path: str, fields: Mapping[str, str]) -> tuple[int, Json]: ...
    def browse(self, path: str, fields: Mapping[str, str] | None) -> tuple[int, str]:
        """One request without following: (status, Location)."""
        ...

    def settle(self) -> None:
        """Let due work be done."""
        ...


def broken(gateway: Gateway) -> Iterator[str]:
    """One line for each promise that is not kept; nothing when all are."""
    status, data = gateway.api("GET", "/testdata.json", {})
    if status != 200:
        yield f"/testdata.json answers {status}"
        return
    face = {"amount": data["amount"], "currency": data["currency"], "paymentType": "DB"}
    for row in data["cards"]:
        sent = {"paymentBrand": row["brand"], "card.number": row["number"], **CARD}
        yield from _direct(gateway, face | sent, row, f"card {row['number']}", row["firstResultCode"])
    for group in ("bankAccounts", "tokenAccounts", "virtualAccounts", "giftCards"):
        for row in data[group]:
            yield from _direct(gateway, face | row["request"], row, f"{group} {row['account']}", row["resultCode"])
    for row in data["cvv"]:
        brand, number = ("AMEX", "377777777777770") if len(row["cvv"]) == 4 else ("VISA", "4200000000000000")
        sent = {"paymentBrand": brand, "card.number": number, "card.cvv": row["cvv"], **CARD}
        yield from _told(gateway, face | sent, "cvvResponse", row["cvvResponse"], f"cvv {row['cvv']}")
    for row in data["postcodes"]:
        sent = {"paymentBrand": "VISA", "card.number": "4200000000000000", "billing.postcode": row["postcode"], **CARD}
        yield from _told(gateway, face | sent, "avsResponse", row["avsResponse"], f"postcode {row['postcode']}")
    for row in data["transfers"]:
        yield from _transfer(gateway, face | row["request"], row)
    left: list[tuple[Row, str]] = []
    for row in data["redirects"]:
        yield from _redirect(gateway, face | row["request"], row, left)
    yield from _deadline(gateway, left)


def promises(data: Mapping[str, Any]) -> int:
    """How many there are."""
    names = ("cards", "bankAccounts", "tokenAccounts", "virtualAccounts", "giftCards", "cvv", "postcodes", "transfers",
             "redirects")  # fmt: skip
    return sum(len(data[name]) for name in names)


def _expect(what: str, promised: object, got: object) -> Iterator[str]:
    if got != promised:
        yield f"{what}: promised {promised}, got {got}"


def _direct(gateway: Gateway, fields: Json, row: Row, what: str, code: str) -> Iterator[str]:
    status, body = gateway.api("POST", "/v1/payments", fields)
    yield from _expect(f"{what} ({row['title']})", code, body["result"]["code"])
    if code == row["resultCode"]:
        yield from _expect(f"{what}: HTTP status", row["httpStatus"], status)
    if row.get("approvedAmount"):
        yield from _expect(f"{what}: amount", row["approvedAmount"], body.get("amount"))


def _told(gateway: Gateway, fields: Json, name: str, promised: str, what: str) -> Iterator[str]:
    _, body = gateway.api("POST", "/v1/payments", fields)
    yield from _expect(what, promised, body["result"].get(name))


def _transfer(gateway: Gateway, fields: Json, row: Row) -> Iterator[str]:
    what = f"{row['brand']} {row['outcome']}"
    _, first = gateway.api("POST", "/v1/payments", fields)
    yield from _expect(f"{what}: first answer", row["firstResultCode"], first["result"]["code"])
    if "id" in first:
        _, after = gateway.api("POST", f"/v1/test/transfers/{first['id']}", {"outcome": row["outcome"]})
        yield from _expect(what, row["resultCode"], after["result"]["code"])


def _redirect(gateway: Gateway, fields: Json, row: Row, left: list[tuple[Row, str]]) -> Iterator[str]:
    what = f"{row['brand']} {row['outcome']}"
    _, first = gateway.api("POST", "/v1/payments", fields)
    yield from _expect(f"{what}: first answer", row["firstResultCode"], first["result"]["code"])
    if "redirect" not in first:
        yield f"{what}: no redirect"
        return
    path = urlsplit(first["redirect"]["url"]).path
    status, back = gateway.browse(path, {"outcome": row["outcome"]})
    if row["outcome"] == "leave":
        left.append((row, first["id"]))
        return
    yield from _expect(f"{what}: sent back", 303, status)
    status, there = gateway.browse(urlsplit(back)._replace(scheme="", netloc="").geturl(), None)
    yield from _expect(
        f"{what}: to the shop", True, there.startswith(f"{fields['shopperResultUrl']}?id={first['id']}&")
    )
    _, after = gateway.api("GET", f"/v1/payments/{first['id']}", {})
    yield from _expect(what, row["resultCode"], after["result"]["code"])


def _deadline(gateway: Gateway, left: list[tuple[Row, str]]) -> Iterator[str]:
    gateway.api("POST", "/v1/test/clock", {"advance": str(DEADLINE_S)})
    try:
        gateway.settle()
        for row, ident in left:
            code, until = "", time.monotonic() + PATIENCE_S
            while code != row["resultCode"] and time.monotonic() < until:
                _, after = gateway.api("GET", f"/v1/payments/{ident}", {})
                code = after["result"]["code"]
                if code != row["resultCode"]:
                    gateway.settle()
            yield from _expect(f"{row['brand']} {row['outcome']}", row["resultCode"], code)
    finally:
        gateway.api("DELETE", "/v1/test/clock", {})


class _NoFollowing(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class OverHttp:
    """A gateway at an address."""

    def __init__(self, base: str, token: str, entity: str) -> None:
        self.base, self.token, self.entity = base.rstrip("/"), token, entity
        self._open = urllib.request.build_opener(_NoFollowing()).open

    def api(self, method: str, path: str, fields: Mapping[str, str]) -> tuple[int, Json]:
        pairs = urlencode({"entityId": self.entity, **fields})
        body = pairs.encode() if method == "POST" else None
        address = f"{self.base}{path}" + ("" if method == "POST" else f"?{pairs}")
        status, _, text = self._send(address, body, method, {"Authorization": f"Bearer {self.token}"})
        found: Json = json.loads(text)
        return status, found

    def browse(self, path: str, fields: Mapping[str, str] | None) -> tuple[int, str]:
        body = urlencode(fields).encode() if fields is not None else None
        status, headers, _ = self._send(f"{self.base}{path}", body, "POST" if body else "GET", {})
        return status, headers.get("Location", "")

    def settle(self) -> None:
        """The ticks of a running gateway do it within a second or two."""
        time.sleep(0.5)

    def _send(
        self, address: str, body: bytes | None, method: str, headers: dict[str, str]
    ) -> tuple[int, Mapping[str, str], str]:
        request = urllib.request.Request(address, body, headers, method=method)
        try:
            with self._open(request, timeout=PATIENCE_S) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.headers, answer.read().decode()


def main(arguments: list[str], say: Callable[[str], object] = print) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.promises", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("base", help="address of the gateway, e.g. http://127.0.0.1:8000")
    parser.add_argument("--token", required=True)
    parser.add_argument("--entity", required=True)
    options = parser.parse_args(arguments)
    gateway = OverHttp(options.base, options.token, options.entity)
    found = list(broken(gateway))
    for line in found:
        say(line)
    _, data = gateway.api("GET", "/testdata.json", {})
    say(f"{promises(data)} promises, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

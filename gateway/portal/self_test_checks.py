"""Checks of the test data page: for each row, the requests of a merchant and a shopper and the promised result.

The caller provides access to the gateway: a script over HTTP (tests/promises.py), or the gateway itself
(gateway.portal.self_test). The merchant's channel must have no limits, 3-D Secure or risk rules; if a row needs it, the
merchant's clock is advanced and reset. Source: Part A, What the service does, 5.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

CHECK_CARD: Final = {"card.expiryMonth": "05", "card.expiryYear": "2034", "card.holder": "Jane Jones"}
CHECK_SHOPPER: Final = {"customer.ip": "192.0.2.77", "customer.browserFingerprint.id": "self-test"}
"""One shopper for all rows: many failures from one address and device must not change a result."""
SHOPPER_DEADLINE_S: Final = 86_400
ACCOUNT_TABLES: Final = ("bankAccounts", "tokenAccounts", "virtualAccounts", "giftCards")

CheckRow = Mapping[str, Any]
JsonBody = dict[str, Any]


class GatewayClient(Protocol):
    """Access to the gateway: the API with a token, and a shopper's browser without one. ``max_wait_s``: how long a row
    waits for background work."""

    @property
    def max_wait_s(self) -> float: ...

    def api(self, method: str, path: str, fields: Mapping[str, str]) -> tuple[int, JsonBody]: ...
    def browse(self, path: str, fields: Mapping[str, str] | None) -> tuple[int, str]:
        """One request without following redirects: (status, Location)."""
        ...

    def settle(self) -> None:
        """Let due background work finish."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfCheck:
    """One row. ``key``: its permanent name. ``fields``: its payment, without entityId. ``check``: returns a line for
    every difference from the promise."""

    key: str
    row: CheckRow
    fields: Mapping[str, str]
    check: Callable[[GatewayClient], Iterator[str]]


def build_check_key(group: str, row: CheckRow) -> str:
    """A row's key, by which the page finds its result."""
    if group in ("redirects", "transfers"):
        return f"{group} {row['brand']} {row['outcome']}"
    if group in ACCOUNT_TABLES:
        return f"{group} {row['brand']} {row['account']} {row['title']}"
    return f"{group} {row.get('number') or row.get('cvv') or row['postcode']}"


def build_checks(data: Mapping[str, Any]) -> tuple[SelfCheck, ...]:
    """All checks. ``data``: the content of /testdata.json."""
    face = {"amount": data["amount"], "currency": data["currency"], "paymentType": "DB", **CHECK_SHOPPER}
    visa = {"paymentBrand": "VISA", "card.number": "4200000000000000", **CHECK_CARD}
    amex = {"paymentBrand": "AMEX", "card.number": "377777777777770", **CHECK_CARD}
    found: list[SelfCheck] = []

    def promised(
        group: str, row: CheckRow, check: Callable[..., Iterator[str]], fields: dict[str, str], **arguments: Any
    ) -> None:
        checked = partial(check, row=row, fields=fields, **arguments)
        found.append(SelfCheck(key=build_check_key(group, row), row=row, fields=fields, check=checked))

    for row in data["cards"]:
        sent = {"paymentBrand": row["brand"], "card.number": row["number"], **CHECK_CARD}
        promised("cards", row, _direct, fields=face | sent, what=f"card {row['number']}", code=row["firstResultCode"])
    for group in ACCOUNT_TABLES:
        for row in data[group]:
            what = f"{group} {row['account']}"
            promised(group, row, _direct, fields=face | row["request"], what=what, code=row["resultCode"])
    for row in data["cvv"]:
        sent = (amex if len(row["cvv"]) == 4 else visa) | {"card.cvv": row["cvv"]}
        promised("cvv", row, _check_result_field, fields=face | sent, name="cvvResponse", what=f"cvv {row['cvv']}")
    for row in data["postcodes"]:
        sent = visa | {"billing.postcode": row["postcode"]}
        promised(
            "postcodes",
            row,
            _check_result_field,
            fields=face | sent,
            name="avsResponse",
            what=f"postcode {row['postcode']}",
        )
    for row in data["transfers"]:
        promised("transfers", row, _transfer, fields=face | row["request"])
    for row in data["redirects"]:
        promised("redirects", row, _redirect, fields=face | row["request"])
    return tuple(found)


def run_checks(gateway: GatewayClient) -> Iterator[str]:
    """One line for each failed check; empty if all pass."""
    status, data = gateway.api("GET", "/testdata.json", {})
    if status != 200:
        yield f"/testdata.json answers {status}"
        return
    for promise in build_checks(data):
        yield from promise.check(gateway)


def _compare(what: str, promised: object, got: object) -> Iterator[str]:
    if got != promised:
        yield f"{what}: promised {promised}, got {got}"


def _direct(gateway: GatewayClient, *, row: CheckRow, fields: JsonBody, what: str, code: str) -> Iterator[str]:
    status, body = gateway.api("POST", "/v1/payments", fields)
    yield from _compare(f"{what} ({row['title']})", code, body["result"]["code"])
    if code == row["resultCode"]:
        yield from _compare(f"{what}: HTTP status", row["httpStatus"], status)
    if row.get("approvedAmount"):
        yield from _compare(f"{what}: amount", row["approvedAmount"], body.get("amount"))


def _check_result_field(
    gateway: GatewayClient, *, row: CheckRow, fields: JsonBody, name: str, what: str
) -> Iterator[str]:
    _, body = gateway.api("POST", "/v1/payments", fields)
    yield from _compare(what, row[name], body["result"].get(name))


def _transfer(gateway: GatewayClient, *, row: CheckRow, fields: JsonBody) -> Iterator[str]:
    what = f"{row['brand']} {row['outcome']}"
    _, first = gateway.api("POST", "/v1/payments", fields)
    yield from _compare(f"{what}: first answer", row["firstResultCode"], first["result"]["code"])
    if "id" in first:
        _, after = gateway.api("POST", f"/v1/test/transfers/{first['id']}", {"outcome": row["outcome"]})
        yield from _compare(what, row["resultCode"], after["result"]["code"])


def _redirect(gateway: GatewayClient, *, row: CheckRow, fields: JsonBody) -> Iterator[str]:
    what = f"{row['brand']} {row['outcome']}"
    _, first = gateway.api("POST", "/v1/payments", fields)
    yield from _compare(f"{what}: first answer", row["firstResultCode"], first["result"]["code"])
    if "redirect" not in first:
        yield f"{what}: no redirect"
        return
    path = urlsplit(first["redirect"]["url"]).path
    status, back = gateway.browse(path, {"outcome": row["outcome"]})
    if row["outcome"] == "leave":
        yield from _compare(what, row["resultCode"], _get_code_after_deadline(gateway, first["id"], row["resultCode"]))
        return
    yield from _compare(f"{what}: sent back", 303, status)
    status, there = gateway.browse(urlsplit(back)._replace(scheme="", netloc="").geturl(), None)
    yield from _compare(
        f"{what}: to the shop", True, there.startswith(f"{fields['shopperResultUrl']}?id={first['id']}&")
    )
    yield from _compare(what, row["resultCode"], _get_code(gateway, first["id"]))


def _get_code(gateway: GatewayClient, ident: str) -> str:
    return str(gateway.api("GET", f"/v1/payments/{ident}", {})[1]["result"]["code"])


def _get_code_after_deadline(gateway: GatewayClient, ident: str, promised: str) -> str:
    """The payment's code after its shopper's deadline; the clock is reset afterwards."""
    gateway.api("POST", "/v1/test/clock", {"advance": str(SHOPPER_DEADLINE_S)})
    until = time.monotonic() + gateway.max_wait_s
    try:
        while True:
            gateway.settle()
            code = _get_code(gateway, ident)
            if code == promised or time.monotonic() > until:
                return code
    finally:
        gateway.api("DELETE", "/v1/test/clock", {})

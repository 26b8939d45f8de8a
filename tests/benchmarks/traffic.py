"""What is sent: the same payment to the product and to the baselines, each in the form it reads.

A request is a fixed text around its number, so that making one costs nothing beside sending it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import quote_plus, urlencode

Make = Callable[[int], bytes]
"""The n-th request of a run, as bytes on the wire."""

NUMBER_MARK: Final = "@THE-NUMBER@"
DIGITS: Final = len(NUMBER_MARK)
# Every field is checked by a format and most by a rule: brand and number fit, the card is not expired.
FIELDS: Final = (
    ("amount", "92.00"),
    ("currency", "EUR"),
    ("paymentBrand", "VISA"),
    ("paymentType", "DB"),
    ("merchantTransactionId", f"order-{NUMBER_MARK}"),
    ("card.number", "4200000000000000"),
    ("card.holder", "Jane Jones"),
    ("card.expiryMonth", "05"),
    ("card.expiryYear", "2034"),
    ("card.cvv", "123"),
    ("customer.givenName", "Jane"),
    ("customer.surname", "Jones"),
    ("customer.email", "jane.jones@shop.example"),
    ("billing.street1", "High Street 12"),
    ("billing.city", "Springfield"),
    ("billing.postcode", "12345"),
    ("billing.country", "DE"),
)
COLUMN_OF: Final = {
    "paymentBrand": "payment_brand", "paymentType": "payment_type", "merchantTransactionId": "merchant_transaction_id",
    "card.number": "card_number", "card.holder": "card_holder", "card.expiryMonth": "card_expiry_month",
    "card.expiryYear": "card_expiry_year", "card.cvv": "card_cvv", "customer.givenName": "customer_given_name",
    "customer.surname": "customer_surname", "customer.email": "customer_email", "billing.street1": "billing_street1",
    "billing.city": "billing_city", "billing.postcode": "billing_postcode", "billing.country": "billing_country",
    "entityId": "entity_id",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """Who pays: the entity and the access token of the seeded merchant."""

    entity: str
    token: str


def payments(shop: Shop, *, with_key: bool = True, more: Sequence[tuple[str, str]] = ()) -> Make:
    """POST /v1/payments; with an idempotency key unless told otherwise; ``more`` fields replace or add."""
    fields = dict((("entityId", shop.entity), *FIELDS, *more))
    headers = [f"Authorization: Bearer {shop.token}"]
    if with_key:
        headers.append(f"Idempotency-Key: key-{NUMBER_MARK}")
    return _numbered(_post("/v1/payments", tuple(fields.items()), headers))


def follow_ups(shop: Shop, target: str, *, kind: str, amount: str) -> Make:
    """POST /v1/payments/{id}, one after the other on one chain."""
    fields = (("entityId", shop.entity), ("paymentType", kind), ("amount", amount), ("currency", "EUR"))
    return _numbered(_post(f"/v1/payments/{target}", fields, [f"Authorization: Bearer {shop.token}"]))


def reads(shop: Shop, ids: Sequence[str]) -> Make:
    """GET /v1/payments/{id} of one id after the other."""
    tail = f"?entityId={shop.entity} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {shop.token}\r\n\r\n".encode()
    heads = [f"GET /v1/payments/{payment}".encode() for payment in ids]
    return lambda number: heads[number % len(heads)] + tail


def order_of(number: int) -> str:
    """The merchantTransactionId of the n-th payment."""
    return f"order-{number:0{DIGITS}d}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a client knows of a payment: its id (32 hex digits), its order's, its short id."""

    id: str
    order: str
    short_id: str


def query_shapes(shop: Shop, known: Sequence[Known], newest: datetime) -> Mapping[str, Make]:
    """Name → GET /v1/query and /v3/query of that shape: every parameter, alone and as merchants put them together.

    Of 10,000 payments in a year, too, the lists are full ones: half a month of the large merchant.
    """
    tail = f" HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {shop.token}\r\n\r\n"

    def get(path: str, **fields: str) -> bytes:
        named = {name.replace("__", "."): value for name, value in fields.items()}
        return f"GET {path}?{urlencode({'entityId': shop.entity, **named})}{tail}".encode()

    def period(number: int, days: int) -> dict[str, str]:
        end = newest - timedelta(days=1 + number % 150)
        return {"date__from": f"{end - timedelta(days=days):%Y-%m-%d %H:%M:%S}", "date__to": f"{end:%Y-%m-%d %H:%M:%S}"}

    def month(**fields: str) -> Callable[[int, Known], bytes]:
        return lambda number, one: get("/v1/query", **fields, **period(number, 15))

    shapes: dict[str, Callable[[int, Known], bytes]] = {
        "id": lambda number, one: get(f"/v1/query/{one.id}"),
        "id, linked": lambda number, one: get(f"/v1/query/{one.id}", includeLinkedTransactions="true"),
        "id, v3": lambda number, one: get(f"/v3/query/{one.id}"),
        "order": lambda number, one: get("/v1/query", merchantTransactionId=one.order),
        "order, linked": lambda number, one: get(
            "/v1/query", merchantTransactionId=one.order, includeLinkedTransactions="true"
        ),
        "short id": lambda number, one: get("/v1/query", shortId=one.short_id),
        "dates": month(),
        "dates, linked": month(includeLinkedTransactions="true"),
        "dates, 500": month(limit="500"),
        "dates, debits": month(paymentTypes="DB"),
        "dates, cards": month(paymentMethods="CC"),
        "dates, debits and refunds by card": month(paymentTypes="DB,RF", paymentMethods="CC"),
        "dates, bank accounts": month(paymentMethods="DD"),
        "refunds of half a year": lambda number, one: get("/v1/query", paymentTypes="RF", **period(number, 180)),
        "dates, first page": lambda number, one: get("/v3/query", pageNo="1", **period(number, 15)),
        "dates, third page": lambda number, one: get("/v3/query", pageNo="3", **period(number, 15)),
        "newest": lambda number, one: get("/v1/query"),
    }
    return {name: _in_turn([shape(number, one) for number, one in enumerate(known)]) for name, shape in shapes.items()}


USUAL: Final = ("order", "order, linked", "dates", "refunds of half a year", "dates, first page")
"""The shapes that a load of queries is made of, turn by turn."""


def queries(shapes: Mapping[str, Make]) -> Make:
    """A load of the usual ones."""
    return lambda number: shapes[USUAL[number % len(USUAL)]](number // len(USUAL))


def _in_turn(made: Sequence[bytes]) -> Make:
    return lambda number: made[number % len(made)]


def baseline(path: str, shop: Shop) -> Make:
    """The same payment for the baselines, which name their fields like columns."""
    fields = tuple((COLUMN_OF.get(name, name), value) for name, value in (("entityId", shop.entity), *FIELDS))
    return _numbered(_post(path, fields, []))


def _post(path: str, fields: Sequence[tuple[str, str]], headers: Sequence[str]) -> bytes:
    body = "&".join(f"{name}={quote_plus(value, safe='@')}" for name, value in fields)
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/x-www-form-urlencoded",
        f"Content-Length: {len(body)}",
        *headers,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


def _numbered(text: bytes) -> Make:
    parts = text.split(NUMBER_MARK.encode())
    return lambda number: (b"%0*d" % (DIGITS, number)).join(parts)

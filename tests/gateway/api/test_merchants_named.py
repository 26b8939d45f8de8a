"""Hot statements name their merchant, or are listed with the reason: how ready the schema is for merchants to be spread
over several databases (docs/capacity.md)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest

from gateway.api import token_admission
from tests.support.database import statements
from tests.support.fixtures import Shop

_PART = re.compile(r"(?=\b(?:\w+) AS (?:MATERIALIZED )?\((?:INSERT|UPDATE|DELETE|SELECT)\b)")
_TARGET = re.compile(r'\b(INSERT INTO|UPDATE|DELETE FROM|FROM)\s+"?([a-z]+_[a-z0-9]+)"?')
_MERCHANT = re.compile(r'\b(merchant_id|entity_id|gateway_merchant)\b|"entity"')

WITHOUT_MERCHANT = {
    ("UPDATE", "gateway_payment"): "a change of state, by the id of a payment that was found with its merchant",
    ("INSERT INTO", "gateway_paymentevent"): "a payment's, by its id",
    ("INSERT INTO", "gateway_acquirerexchange"): "a payment's, by its id",
    ("INSERT INTO", "gateway_openpayment"): "a payment's, by its id",
    ("DELETE FROM", "gateway_openpayment"): "a payment's, by its id",
    ("INSERT INTO", "gateway_idempotencykey"): "an access token's, which is one merchant's",
    ("UPDATE", "gateway_idempotencykey"): "an access token's, which is one merchant's",
}
"""Parts of hot statements that name no merchant, with the reason."""


def list_parts(sql: str) -> Iterator[tuple[str, str, bool]]:
    """(verb, table, whether it names its merchant) of each part of a statement."""
    for part in _PART.split(sql):
        if found := _TARGET.search(part):
            verb = found[1] if found[1] != "FROM" else "SELECT"
            yield verb, found[2], bool(_MERCHANT.search(part))


def test_hot_statements_name_their_merchant_or_are_listed_with_a_reason(
    committed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a payment with and without key, its repeat, a refused one, captures and refunds, and a read."""
    monkeypatch.setattr(token_admission, "LAST_USE_RESOLUTION", timedelta(hours=1))
    api = committed.api
    api.pay()  # the token's first use of the hour is written
    with statements() as seen:
        paid = api.pay().id
        fields = {"amount": "92.00", "currency": "EUR", "paymentBrand": "VISA", "paymentType": "DB"}
        card = {"card.number": "4200000000000000", "card.expiryMonth": "05", "card.expiryYear": "2034"}
        answers = [api.post("/v1/payments", fields | card, **{"Idempotency-Key": "once"}) for _ in range(2)]
        api.pay(amount="92.1")
        held = api.pay(paymentType="PA").id
        followed = [api.follow(held, "CP", "92.00"), api.follow(paid, "RF", "1.00"), api.read(paid)]
    assert [answer.status for answer in (*answers, *followed)] == [200] * 5
    parts = [part for sql in seen for part in list_parts(sql)]
    written = {table for verb, table, _ in parts if verb == "INSERT INTO"}
    assert {"gateway_payment", "gateway_paymentevent", "gateway_requestlog", "gateway_notification"} <= written
    unnamed = {(verb, table) for verb, table, names in parts if not names}
    assert unnamed == set(WITHOUT_MERCHANT)


def test_a_part_without_a_merchant_is_noticed() -> None:
    sql = 'WITH w0 AS (INSERT INTO "gateway_notification" ("merchant_id") SELECT %s), w1 AS (DELETE FROM "gateway_x")'
    assert list(list_parts(sql)) == [
        ("INSERT INTO", "gateway_notification", True),
        ("DELETE FROM", "gateway_x", False),
    ]

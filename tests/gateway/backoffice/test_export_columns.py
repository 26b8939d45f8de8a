"""Each column of an export holds what its heading says, for payments in which no two columns are alike."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
from django.test import override_settings

from gateway.backoffice.payments import payment_export
from gateway.models import Payment
from tests.gateway.backoffice.test_payment_export import cells, exported
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def place(tmp_path: Path) -> Iterator[Path]:
    with override_settings(GATEWAY_WORK_DIR=str(tmp_path)):
        yield tmp_path


@pytest.mark.parametrize("as_", payment_export.EXPORT_FORMATS)
def test_what_was_asked_for_and_what_was_approved_are_told_apart(shop: Shop, as_: str) -> None:
    """A payment that was approved in full, one for a part, one declined."""
    full, part, declined = (
        shop.api.pay(amount="31.00").id,
        shop.api.pay(amount="32.00").id,
        shop.api.pay(amount="33.00", card__number="4000015500000005").id,
    )
    Payment.objects.filter(pk=part).update(approved_amount=Decimal("12.34"))
    rows = {row["id"]: row for row in cells(exported(shop, as_))}
    told = {ident: (Decimal(str(row["amount"])), Decimal(str(row["approved"] or 0))) for ident, row in rows.items()}
    assert told == {full: (31, 31), part: (32, Decimal("12.34")), declined: (33, 0)}
    assert [rows[ident]["status"] for ident in (full, part, declined)] == ["APPROVED", "APPROVED", "DECLINED"]


def test_columns_of_one_kind_are_not_mixed_up(shop: Shop) -> None:
    """Names, ids and references: all different, and each in its place."""
    paid = shop.api.pay(
        merchantTransactionId="order-0001",
        merchantInvoiceId="invoice-0002",
        merchantMemo="memo-0003",
        customer__email="jane@mail.example",
        customer__givenName="Jane",
        customer__surname="Jones",
        createRegistration="true",
    )
    back = shop.api.follow(paid.id, "RF", "10.00")
    row, refund = cells(exported(shop, "csv"))
    kept = Payment.objects.get(pk=paid.id)
    assert kept.completed_at is not None
    expected = {
        "id": paid.id,
        "created (UTC)": f"{kept.created_at:%Y-%m-%d %H:%M:%S}",
        "completed (UTC)": f"{kept.completed_at:%Y-%m-%d %H:%M:%S}",
        "merchant": shop.merchant.name,
        "channel": shop.channel.name,
        "entityId": shop.channel.entity_id,
        "type": "DB",
        "status": "APPROVED",
        "currency": "EUR",
        "brand": "VISA",
        "card": "420000******0000",
        "holder": "Jane Jones",
        "result code": paid.code,
        "result": paid.description,
        "merchantTransactionId": "order-0001",
        "merchantInvoiceId": "invoice-0002",
        "merchantMemo": "memo-0003",
        "e-mail": "jane@mail.example",
        "first payment": paid.id,
        "referencedId": "",
        "registrationId": paid.body["registrationId"],
    }
    assert {name: row[name] for name in expected} == expected
    assert (refund["first payment"], refund["referencedId"], refund["type"]) == (paid.id, paid.id, "RF")
    assert refund["id"] == back.id


def test_columns_of_time_follow_creation_and_completion(shop: Shop) -> None:
    """A payment that is not completed has no second moment."""
    waiting = shop.api.pay(card__number="4000090003000000").id
    Payment.objects.filter(pk=waiting).update(created_at="2026-05-14T23:59:59+02:00", completed_at=None)
    (row,) = cells(exported(shop, "csv"))
    assert (row["created (UTC)"], row["completed (UTC)"]) == ("2026-05-14 21:59:59", "")

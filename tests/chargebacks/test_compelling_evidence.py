"""Earlier undisputed payments of the same card are shown on the case and in the packet of a fraud dispute.

Source: docs/decisions/0065.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest

from chargebacks import ledger
from chargebacks.compelling_evidence import find_earlier_payments
from chargebacks.models import Chargeback
from gateway.models import Payment
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.settlement import BY, payment_of

pytestmark = pytest.mark.django_db
SHOPPER = {"customer.ip": "203.0.113.7", "customer.email": "a@shop.example", "customer.givenName": "A",
           "customer.surname": "B"}  # fmt: skip


def buy(shop: Shop, days_ago: int, **more: str) -> Payment:
    answer = shop.api.post("/v1/payments", {**_fields(shop), **SHOPPER, **more})
    assert answer.status == 200, answer.body
    payment = payment_of(answer.id)
    Payment.objects.filter(pk=payment.pk).update(created_at=payment.created_at - timedelta(days=days_ago))
    return payment


def _fields(shop: Shop) -> dict[str, str]:
    return {"entityId": shop.channel.entity_id, "amount": "92.00", "currency": "EUR", "paymentType": "DB",
            "paymentBrand": "VISA", "card.number": "4200000000000000", "card.expiryMonth": "05",
            "card.expiryYear": "2094", "card.holder": "A B"}  # fmt: skip


def dispute(payment: Payment, reason: str = "000.100.220") -> Chargeback:
    return ledger.record_chargeback(payment, Decimal("92.00"), reason=reason, by=BY)


def test_payments_of_the_window_that_share_two_traits_are_listed(shop: Shop) -> None:
    good = [buy(shop, 200), buy(shop, 121)]
    buy(shop, 119)
    buy(shop, 366)
    buy(shop, 200, **{"customer.ip": "203.0.113.8"})
    buy(shop, 200, **{"card.number": "4111111111111111"})
    dispute(buy(shop, 150), "000.100.221")
    case = dispute(buy(shop, 0))
    found = find_earlier_payments(case)
    assert [one.payment.pk for one in found] == [good[1].pk, good[0].pk]
    assert found[0].shared == ("IP address", "e-mail")
    page = signed_in(person("clara", "clerk", shop.merchant)).get(f"/admin/chargebacks/chargeback/{case.pk}/change/")
    assert "Earlier undisputed payments with the same card" in page.content.decode()


def test_an_authorization_counts_once_it_is_captured(shop: Shop) -> None:
    """Visa compares transactions that were settled."""
    _, taken = (buy(shop, 200, paymentType="PA") for _ in range(2))
    assert shop.api.follow(taken.id.hex, "CP", "92.00").status == 200
    found = find_earlier_payments(dispute(buy(shop, 0)))
    assert [one.payment.pk for one in found] == [taken.pk]


def test_other_reasons_need_no_such_proof(shop: Shop) -> None:
    buy(shop, 200)
    assert find_earlier_payments(dispute(buy(shop, 0), "000.100.221")) == []

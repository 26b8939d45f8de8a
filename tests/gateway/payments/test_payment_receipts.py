"""The payment page's receipt, which the package of checkouts registers."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from gateway.models import Payment
from gateway.payments import payment_receipts
from gateway.payments.payment_receipts import ShownReceipt, find_shown_receipt, register_receipt_source


def test_a_receipt_is_read_from_the_source_that_was_registered_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payment_receipts, "_registered", [])
    payment, receipt = Payment(), ShownReceipt(facts=(("Amount", "92.00 EUR"),), mails=1)
    with pytest.raises(ImproperlyConfigured):
        find_shown_receipt(payment)
    register_receipt_source(lambda _: None)
    assert find_shown_receipt(payment) is None
    register_receipt_source(lambda one: receipt if one is payment else None)
    assert find_shown_receipt(payment) is receipt

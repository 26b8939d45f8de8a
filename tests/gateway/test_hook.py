"""What packages above register: without it nothing is guessed, and nothing is lost in silence."""

from __future__ import annotations

import pytest
from django.core.exceptions import ImproperlyConfigured

from gateway.core.hook import Hook
from gateway.payments.held_parts import PART_EXPIRY
from gateway.payments.job_hooks import JOB_HOOKS
from gateway.payments.payment_receipts import RECEIPT_SOURCE
from gateway.payments.settlement_check import SETTLEMENT_CHECK
from gateway.processor_events.dispute_hooks import DISPUTE_HOOKS


def test_what_was_registered_last_is_found() -> None:
    hook: Hook[int] = Hook("the.app")
    with pytest.raises(ImproperlyConfigured, match=r"^the\.app is not among INSTALLED_APPS$"):
        hook.get()
    hook.register(7)
    assert hook.get() == 7
    hook.register(8)
    assert hook.get() == 8


def test_the_product_registers_what_each_package_needs() -> None:
    for hook in (PART_EXPIRY, JOB_HOOKS, RECEIPT_SOURCE, SETTLEMENT_CHECK, DISPUTE_HOOKS):
        assert hook.get() is not None

"""The benchmark of the archive moves what the timer moves."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from gateway.models import AcquirerExchange, ArchivedPayment, Payment
from tests.benchmarks.archive_runs import time_archiving
from tests.benchmarks.load_payments import load_payments
from tests.support.fixtures import Shop


def test_all_old_payments_are_moved_and_every_transaction_and_statement_is_timed(
    committed: Shop, settings: Any
) -> None:
    settings.GATEWAY_PAYMENT_HOT_DAYS = 1_095
    load_payments(100, channel=committed.channel.entity_id)
    AcquirerExchange.objects.all().delete()
    assert time_archiving(timedelta(0)).moved == 0
    found = time_archiving(timedelta(days=1_500))
    # One whose authorization is still held may be among the last that were made.
    assert 90 < found.moved <= 100
    assert (ArchivedPayment.objects.count(), Payment.objects.count()) == (found.moved, 100 - found.moved)
    assert len(found.transactions) == 1
    assert len(found.statements) > 3
    assert 0 < max(found.statements) < max(found.transactions) < found.seconds

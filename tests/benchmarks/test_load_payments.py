"""What load_payments writes is what requests would have left: the product reads it and goes on from it."""

from __future__ import annotations

from collections import Counter

import pytest
from django.db import connection

from gateway.models import AcquirerExchange, Notification, Payment, PaymentEvent, RequestLog
from tests.benchmarks.load_payments import load_payments
from tests.support.fixtures import Shop

COUNT = 300


@pytest.fixture
def loaded(committed: Shop) -> Shop:
    """300 payments, 30 % of them of the shop."""
    load_payments(COUNT, channel=committed.channel.entity_id)
    return committed


def test_as_many_payments_as_asked_for_each_with_what_its_two_transactions_write(loaded: Shop) -> None:
    """Loader: --count counts payments, follow-ups among them."""
    assert Payment.objects.count() == AcquirerExchange.objects.count() == Notification.objects.count() == COUNT
    assert PaymentEvent.objects.count() == 2 * COUNT
    assert RequestLog.objects.count() == COUNT
    assert 0.2 * COUNT < Payment.objects.filter(channel=loaded.channel).count() < 0.4 * COUNT


def test_chains_are_whole_and_in_order(loaded: Shop) -> None:
    """Loader: a follow-up names a payment before it, of its own channel, which counts it."""
    payments = {payment.id: payment for payment in Payment.objects.all()}
    followers = Counter(payment.chain for payment in payments.values() if payment.referenced is not None)
    assert followers
    for payment in payments.values():
        assert payment.id.version == 7
        assert abs((payment.id.int >> 80) / 1000 - payment.created_at.timestamp()) < 0.002
        if payment.referenced is None:
            assert payment.chain == payment.id
            assert payment.follow_ups == followers[payment.id]
        else:
            first = payments[payment.referenced]
            assert payment.chain == first.id
            assert first.created_at < payment.created_at
            assert first.channel_id == payment.channel_id


def test_every_foreign_key_is_right_though_none_was_checked(loaded: Shop) -> None:
    """Loader: rows go in unchecked; checked afterwards, all point at something."""
    connection.check_constraints()
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass, conname, pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE contype = 'f' AND conrelid::regclass::text LIKE 'gateway_%'"
        )
        for table, name, definition in cursor.fetchall():
            # Made anew, a constraint is checked against every row.
            cursor.execute(f'ALTER TABLE {table} ADD CONSTRAINT "again_{name[:50]}" {definition}')
            cursor.execute(f'ALTER TABLE {table} DROP CONSTRAINT "again_{name[:50]}"')


def test_a_loaded_payment_is_read_and_refunded_like_any_other(loaded: Shop) -> None:
    """Loader: the API cannot tell it from one of its own."""
    debit = Payment.objects.filter(
        channel=loaded.channel, payment_type="DB", status="APPROVED", follow_ups=0, referenced=None
    ).first()
    assert debit is not None
    read = loaded.api.read(debit.id.hex)
    assert read.status == 200
    assert read.body["card"]["last4Digits"] == debit.answer["card"]["last4Digits"]
    assert loaded.api.follow(debit.id.hex, "RF", f"{debit.amount}").code == "000.100.110"
    assert loaded.api.follow(debit.id.hex, "RF", "0.01").code != "000.100.110"


def test_the_live_environment_is_refused(live: None) -> None:
    """Loader: test environment only."""
    with pytest.raises(ValueError, match="refuses the live environment"):
        load_payments(1)

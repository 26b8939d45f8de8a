"""Claim of the next capture batch: each condition of its SQL by itself, with batches of other accounts present."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models.functions import Now

from gateway.connectors.iso8583.batch_run import MAX_BLOCKING_FAILURES, claim_due_batch
from gateway.core import clock
from gateway.models import CaptureBatch, Channel
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


def plan(channel: Channel, number: int, due: timedelta | None = -HOUR, **values: Any) -> CaptureBatch:
    now = clock.real_now()
    return CaptureBatch.objects.create(
        **{
            "merchant": channel.merchant, "channel": channel, "acquirer_merchant_id": "one", "number": number,
            "currency": "EUR", "count": 1, "total": Decimal(1), "opened_at": now,
            "due_at": None if due is None else now + due, **values,
        }
    )  # fmt: skip


def claim_all(shop: Shop | None = None) -> list[CaptureBatch]:
    found = []
    while (batch := claim_due_batch(None if shop is None else shop.merchant)) is not None:
        found.append(batch)
    return found


@pytest.mark.parametrize(
    ("due", "values", "claimed"),
    [
        (-SECOND, {}, True),
        (HOUR, {}, False),
        (None, {}, False),
        (-SECOND, {"state": "CLOSING"}, True),
        (-SECOND, {"state": "UPLOADING"}, True),
        (-SECOND, {"state": "DIFFERS"}, False),
        (-SECOND, {"state": "BALANCED"}, False),
        (-SECOND, {"lease_until": Now() + HOUR}, False),
        (-SECOND, {"lease_until": Now() - SECOND}, True),
    ],
)
def test_a_batch_is_sent_when_it_is_due_and_free(
    shop: Shop, due: timedelta | None, values: dict[str, Any], claimed: bool
) -> None:
    batch = plan(shop.channel, 7, due, **values)
    found = claim_all()
    assert found == ([batch] if claimed else [])
    for one in found:
        assert (one.tries, one.lease_until is not None) == (1, True)


@pytest.mark.parametrize(
    ("before", "waits"),
    [
        ({}, True),
        ({"state": "CLOSING"}, True),
        ({"state": "UPLOADING"}, True),
        ({"due": HOUR}, True),
        ({"failures": MAX_BLOCKING_FAILURES - 1}, True),
        ({"failures": MAX_BLOCKING_FAILURES}, False),
        ({"due": None}, False),
        ({"state": "DIFFERS"}, False),
        ({"state": "BALANCED"}, False),
        ({"number": 8}, False),
        ({"acquirer_merchant_id": "two"}, False),
        ({"other channel": True}, False),
    ],
    ids=str,
)
def test_a_batch_waits_for_the_one_before_it_of_the_same_account(
    shop: Shop, before: dict[str, Any], waits: bool
) -> None:
    """While another worker has that one. One that was left to an operator holds none up."""
    values = {"number": 6, "due": -2 * HOUR, "lease_until": Now() + HOUR, **before}
    elsewhere = values.pop("other channel", False)
    plan(shop.open_channel() if elsewhere else shop.channel, values.pop("number"), values.pop("due"), **values)
    batch = plan(shop.channel, 7)
    assert claim_all() == ([] if waits else [batch])


def test_the_longest_due_is_sent_first_and_one_at_a_time(shop: Shop) -> None:
    batches = {hours: plan(shop.open_channel(f"{hours}"), 1, -hours * HOUR) for hours in (2, 4, 3)}
    first = claim_due_batch()
    assert first == batches[4]
    assert CaptureBatch.objects.filter(tries=1).count() == 1
    assert claim_all() == [batches[3], batches[2]]


def test_a_run_for_one_merchant_sends_no_batch_of_another(shop: Shop, stranger: Shop) -> None:
    plan(shop.channel, 1)
    theirs = plan(stranger.channel, 1)
    assert claim_all(stranger) == [theirs]

"""Batches of captures in the back office: looked at by whoever works with money, sent now by whoever runs a merchant.

Source: docs/connectors/iso8583.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import Client, override_settings

from gateway.connectors import accounts
from gateway.connectors.iso8583 import batch_planning, batch_run
from gateway.connectors.iso8583.connector import ISO8583
from gateway.models import AuditEntry, BatchedCapture, CaptureBatch, Payment, Role
from gateway.payments import batched_captures
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.iso_host import PATIENCE_S, IsoHost, account_at_host, iso_host
from tests.support.office import person, signed_in

__all__ = ["iso_host"]

pytestmark = pytest.mark.django_db
LIST, CAPTURES = "/admin/gateway/capturebatch/", "/admin/gateway/batchedcapture/"


@pytest.fixture
def waiting(shop: Shop, iso_host: IsoHost) -> Iterator[str]:
    """A capture that waits for its batch."""
    account_at_host(shop.channel, iso_host, capture="batch")
    accounts.clear_account_cache()
    with override_settings(GATEWAY_ACQUIRER_TIMEOUT_S=PATIENCE_S):
        yield capture_at(shop)


def capture_at(shop: Shop) -> str:
    pa = shop.api.pay(testMode="EXTERNAL", paymentType="PA", amount="100.00").id
    return shop.api.follow(pa, "CP", "60.00").id


@pytest.fixture
def boss(shop: Shop) -> Client:
    return signed_in(person("boss", Role.MANAGER, shop.merchant))


@pytest.fixture
def clerk(shop: Shop) -> Client:
    return signed_in(person("clerk", Role.CLERK, shop.merchant))


def words(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def test_what_waits_is_shown_and_sent_without_waiting_for_its_hour(
    shop: Shop, waiting: str, boss: Client, clerk: Client
) -> None:
    """Read only, and "send now"."""
    account = shop.channel.acquirer_accounts.get()
    page = words(clerk, LIST)
    assert "Captures that wait for a batch" in page
    assert "60.00 EUR" in page
    assert f"{shop.merchant.name}: {shop.channel.name}" in page
    assert "Send now" not in page
    assert clerk.post(f"{LIST}send/", {"account": str(account.pk)}).status_code == 403
    assert "Send now" in words(boss, LIST)
    assert boss.get(f"{LIST}send/").status_code == 302
    assert boss.post(f"{LIST}send/", {"account": str(shop.channel.pk)}).status_code == 404
    answer = boss.post(f"{LIST}send/", {"account": str(account.pk)}, follow=True)
    assert "Captures that go with the next tick: 1" in answer.content.decode()
    assert batch_planning.plan_due_batches() == 1
    batch_run.send_due_batches(ISO8583)
    batched_captures.apply_capture_outcomes()
    assert Payment.objects.get(pk=waiting).status == "APPROVED"
    page = words(boss, LIST)
    assert "in balance" in page
    assert "Captures that wait" not in page
    (entry,) = AuditEntry.objects.filter(action="send captures now")
    assert (entry.subject_id, entry.after) == (str(account.pk), {"captures": 1})


def test_a_batch_shows_its_captures_the_hosts_sums_and_what_was_found(
    shop: Shop, waiting: str, boss: Client, clerk: Client, iso_host: IsoHost
) -> None:
    """State, count, sum, answer."""
    iso_host.next("0500", de39="95", de66="2", de76="0000000007", times=2)
    jump(24 * 3600.0)
    batch_planning.plan_due_batches()
    batch_run.send_due_batches(ISO8583)
    batch = CaptureBatch.objects.get()
    where = f"{LIST}{batch.pk}/change/"
    page = words(clerk, where)
    for text in ("sums differ", "60.00 EUR", "DE39", "95", "ours 1, theirs 7", "000001", "0000000007"):
        assert text in page, text
    assert "Upload and compare again" not in page
    assert clerk.post(f"{LIST}{batch.pk}/send/").status_code == 403
    assert "Upload and compare again" in words(boss, where)
    assert boss.post(where, {"state": "BALANCED"}).status_code == 403
    answer = boss.post(f"{LIST}{batch.pk}/send/", follow=True)
    assert "It goes on with the next tick" in answer.content.decode()
    batch_run.send_due_batches(ISO8583)
    assert "in balance" in words(boss, where)
    assert "Nothing was done" in boss.post(f"{LIST}{batch.pk}/send/", follow=True).content.decode()
    assert AuditEntry.objects.filter(action="send now", subject_id=str(batch.pk)).count() == 1
    listed = words(clerk, f"{CAPTURES}?batch__id__exact={batch.pk}")
    assert "60.00 EUR" in listed
    assert "60.00 EUR" in words(clerk, f"{CAPTURES}?q={waiting}")
    assert "4200000000" not in words(clerk, f"{CAPTURES}{waiting}/change/")


def test_another_merchants_batches_are_none(shop: Shop, stranger: Shop, waiting: str) -> None:
    """Rights by entity tree; also of what is sent."""
    jump(24 * 3600.0)
    batch_planning.plan_due_batches()
    batch, account = CaptureBatch.objects.get(), shop.channel.acquirer_accounts.get()
    other = signed_in(person("other", Role.MANAGER, stranger.merchant))
    assert "MERCHANT-1" not in words(other, LIST)
    for address in (f"{LIST}{batch.pk}/change/", f"{LIST}{batch.pk}/send/"):
        assert other.get(address).status_code == 404
    assert other.post(f"{LIST}{batch.pk}/send/").status_code == 404
    assert other.post(f"{LIST}send/", {"account": str(account.pk)}).status_code == 404
    assert BatchedCapture.objects.get().state == "IN_BATCH"


def test_the_page_of_health_and_the_payments_story_tell_of_batches(shop: Shop, waiting: str, boss: Client) -> None:
    """Link and batch states are seen where an acquirer is looked at."""
    assert "waits for its bank or acquirer" in words(boss, f"/admin/gateway/payment/{waiting}/change/")
    jump(24 * 3600.0)
    batch_planning.plan_due_batches()
    batch_run.send_due_batches(ISO8583)
    batched_captures.apply_capture_outcomes()
    page = words(boss, "/admin/gateway/acquireraccount/health/")
    assert "Capture batches" in page
    assert "in balance 1 · " in page
    assert "told what became of it with its batch" in words(boss, f"/admin/gateway/payment/{waiting}/change/")

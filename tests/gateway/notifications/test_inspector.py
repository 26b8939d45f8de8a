"""The webhook inspector: what it answers, and how much of what it was sent it keeps. Source: docs/decisions/0029."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from gateway.core import clock
from gateway.models import InspectedWebhook
from gateway.notifications import inspector
from gateway.notifications.inspector import InspectedMessage, build_inspector_answer, store_inspected_messages
from gateway.outbound import CallFailure
from tests.gateway.notifications.test_claims import make_endpoint
from tests.support.database import statements
from tests.support.fixtures import Shop

NOW = clock.real_now().replace(microsecond=0)


def a_message(endpoint: UUID, number: int) -> InspectedMessage:
    return InspectedMessage(
        endpoint=endpoint, delivery=UUID(int=number), attempt=number % 7, at=NOW + timedelta(seconds=number),
        headers={"X-Number": str(number)}, body=f'{{"holder":"Jürgen {number}"}}'.encode(),
    )  # fmt: skip


def test_the_inspector_takes_all_in_test_and_nothing_in_live() -> None:
    answer = build_inspector_answer()
    assert (answer.status, answer.failure) == (200, None)


def test_in_live_there_is_no_inspector(live: None) -> None:
    answer = build_inspector_answer()
    assert (answer.status, answer.failure) == (None, CallFailure.FORBIDDEN)
    assert "test environment" in answer.reason


@pytest.mark.django_db
def test_a_message_is_kept_as_it_was_sent(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    store_inspected_messages([a_message(endpoint.pk, 9)])
    row = InspectedWebhook.objects.get()
    assert (row.endpoint_id, row.delivery, row.attempt, row.at) == (
        endpoint.pk, UUID(int=9), 2, NOW + timedelta(seconds=9),
    )  # fmt: skip
    assert (row.headers, row.body) == ({"X-Number": "9"}, '{"holder":"Jürgen 9"}')
    with statements() as asked:
        store_inspected_messages([])
    assert not asked


@pytest.mark.django_db
def test_of_each_endpoint_the_newest_messages_are_kept(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint with many takes none from another."""
    monkeypatch.setattr(inspector, "MAX_INSPECTED_MESSAGES", 3)
    first, second = make_endpoint(shop), make_endpoint(shop, url="https://hooks.example/other")

    def kept(endpoint: UUID) -> list[int]:
        rows = InspectedWebhook.objects.filter(endpoint=endpoint).order_by("id")
        return [row.delivery.int for row in rows]

    store_inspected_messages([a_message(second.pk, 50)])
    store_inspected_messages([a_message(first.pk, number) for number in (1, 2, 3)])
    assert (kept(first.pk), kept(second.pk)) == ([1, 2, 3], [50])
    store_inspected_messages([a_message(first.pk, 4)])
    assert (kept(first.pk), kept(second.pk)) == ([2, 3, 4], [50])
    store_inspected_messages([a_message(each, number) for each in (first.pk, second.pk) for number in (5, 6)])
    assert (kept(first.pk), kept(second.pk)) == ([4, 5, 6], [50, 5, 6])

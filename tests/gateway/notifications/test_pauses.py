"""When an endpoint that fails is left alone, to the failure and the moment; and one that was paused by hand.

Source: decisions, section 6; docs/webhooks.md.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from gateway.models import WebhookEndpoint
from gateway.notifications import claims, retry_schedule
from tests.support.fixtures import Shop

pytestmark = pytest.mark.django_db
AT = datetime(2026, 5, 14, 10, 2, tzinfo=UTC)
STEP = timedelta(microseconds=1)


def endpoint(shop: Shop, **values: object) -> WebhookEndpoint:
    return WebhookEndpoint.objects.create(
        merchant=shop.merchant,
        url="https://shop.example/hook",
        kinds=["PAYMENT"],
        secret_sealed=b"sealed",
        **{"state": "active", **values},
    )


def fail(row: WebhookEndpoint, number: int, lasting: timedelta) -> WebhookEndpoint:
    claims._record_endpoint_failure(row.pk, number, AT, AT + lasting)
    row.refresh_from_db()
    return row


@pytest.mark.parametrize(
    ("number", "lasting", "state"),
    [
        (retry_schedule.PAUSE_AFTER_FAILURES, retry_schedule.PAUSE_AFTER, "paused"),
        (retry_schedule.PAUSE_AFTER_FAILURES - 1, retry_schedule.PAUSE_AFTER, "active"),
        (retry_schedule.PAUSE_AFTER_FAILURES, retry_schedule.PAUSE_AFTER - STEP, "active"),
        (1, retry_schedule.PAUSE_AFTER * 100, "active"),
    ],
)
def test_so_many_failures_over_so_long_pause_it(shop: Shop, number: int, lasting: timedelta, state: str) -> None:
    row = fail(endpoint(shop), number, lasting)
    assert (row.state, row.failures, row.failing_since) == (state, number, AT)
    assert row.probe_at == (AT + lasting + retry_schedule.PROBE_DELAYS[0] if state == "paused" else None)


def test_a_probe_that_fails_makes_the_next_pause_longer_up_to_the_last(shop: Shop) -> None:
    row = endpoint(shop, state="paused", probes=0, probe_at=AT)
    pauses = []
    for _ in range(len(retry_schedule.PROBE_DELAYS) + 1):
        row = fail(row, 1, timedelta(0))
        assert row.probe_at is not None
        pauses.append(row.probe_at - AT)
    assert pauses == [
        *retry_schedule.PROBE_DELAYS[1:],
        retry_schedule.PROBE_DELAYS[-1],
        retry_schedule.PROBE_DELAYS[-1],
    ]


def test_what_was_paused_by_hand_is_not_probed_after_an_attempt_that_was_under_way(shop: Shop) -> None:
    row = fail(endpoint(shop, state="paused", probe_at=None, reason="by hand"), 1, timedelta(0))
    assert (row.state, row.probe_at, row.probes, row.reason) == ("paused", None, 0, "by hand")


def test_an_endpoint_that_answers_again_goes_on_and_no_other_does(shop: Shop) -> None:
    mine, other = (endpoint(shop, state="paused", probe_at=AT) for _ in range(2))
    claims._record_endpoint_success(mine.pk, AT)
    for row in (mine, other):
        row.refresh_from_db()
    assert (mine.state, other.state) == ("active", "paused")

"""Bulk replay as background work: makes the selected deliveries due again, slice by slice."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction

from gateway.access import permissions
from gateway.background import queue
from gateway.background.files import AttemptFolder
from gateway.models import BackgroundWork, Merchant, WebhookEndpoint
from gateway.notifications import replay
from gateway.notifications.replay import ReplaySelection
from gateway.timers import wakeup

REPLAY_PERMISSION: Final = "gateway.change_webhookendpoint"
REPLAY_SLICE_SIZE: Final = 200


def serialize_selection(selection: ReplaySelection) -> dict[str, Any]:
    """The selection as stored with the work. ``until`` must be set: deliveries made later are not included."""
    assert selection.until is not None
    return {
        "merchant": selection.merchant.pk.hex,
        "among": sorted(one.hex for one in selection.among or ()),
        "endpoint": selection.endpoint.pk.hex if selection.endpoint is not None else "",
        "payment": selection.payment.hex if selection.payment is not None else "",
        "kinds": list(selection.kinds),
        "states": list(selection.states),
        "since": selection.since.isoformat() if selection.since is not None else "",
        "until": selection.until.isoformat(),
    }


def parse_selection(kept: Mapping[str, Any]) -> ReplaySelection:
    """The stored selection. Raises GivenUp if the merchant or endpoint is gone."""
    merchant = Merchant.objects.filter(pk=UUID(kept["merchant"])).first()
    endpoint = WebhookEndpoint.objects.filter(pk=UUID(kept["endpoint"])).first() if kept["endpoint"] else None
    if merchant is None or (kept["endpoint"] and endpoint is None):
        raise queue.WorkFailedError("The endpoint is not there any more.")
    return ReplaySelection(
        merchant=merchant,
        endpoint=endpoint,
        among=[UUID(one) for one in kept["among"]],
        payment=UUID(kept["payment"]) if kept["payment"] else None,
        kinds=kept["kinds"],
        states=kept["states"],
        since=datetime.fromisoformat(kept["since"]) if kept["since"] else None,
        until=datetime.fromisoformat(kept["until"]),
    )


def replay_slice(row: BackgroundWork, _folder: AttemptFolder, alive: Callable[[], None]) -> queue.SliceResult:
    """Make the next REPLAY_SLICE_SIZE of them due. Repeating a slice makes the same deliveries due: each is sent once
    more, or was about to be."""
    selection = parse_selection(row.parameters["selection"])
    scope = permissions.find_access_scope(get_user_model().objects.get(pk=row.owner_id), REPLAY_PERMISSION)
    reached = set(
        WebhookEndpoint.objects.filter(scope.where(), pk__in=selection.among or ()).values_list("pk", flat=True)
    )
    if reached != set(selection.among or ()):
        raise queue.WorkFailedError("Your right to send webhooks once more was taken away.")
    total = row.total if row.total is not None else replay.preview_replay(selection).events
    place = row.cursor.get("after")
    after = (datetime.fromisoformat(place[0]), UUID(place[1])) if place else None
    with transaction.atomic():
        # A worker that has lost its lease must not make anything due.
        alive()
        done, after = replay.replay_next_batch(selection, after, batch=REPLAY_SLICE_SIZE)
    if done:
        wakeup.notify_timer(wakeup.WEBHOOK_TIMER)
    return queue.SliceResult(
        done=row.done + done,
        total=max(total, row.done + done),
        finished=after is None,
        cursor={"after": [after[0].isoformat(), after[1].hex]} if after is not None else dict(row.cursor),
        message="Made due again; the list tells how each went." if after is None else "",
    )


REPLAY_JOB_KIND: Final = queue.WorkKind(
    name="webhook replay", about="webhooks sent once more", right=REPLAY_PERMISSION, step=replay_slice
)

"""Tells refunds that give money back from those by which a processor lets go of what was authorized and not taken.

Older versions of the API make a refund of the rest after a capture, and of an authorization that is cancelled or has
run out. No money was taken, so none is given back. Source: docs/connectors/card-api.md, Webhooks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.connectors.card_api import mapping
from gateway.connectors.card_api.account import makes_refunds_of_releases
from gateway.connectors.card_api.client import list_objects
from gateway.connectors.card_api.inquiry import VOID_MARK
from gateway.connectors.card_api.operation import REFUNDS_PATH
from gateway.processor_events.event_outcomes import EventContext
from gateway.processor_events.recording import find_recorded_payment


def is_release(event: EventContext, intent: Mapping[str, Any], refund: Mapping[str, Any]) -> bool:
    """Whether ``refund`` is what the processor made of the released part of ``intent``'s authorization: without a mark
    of ours, all that is there while nothing was taken; after a capture the oldest of just the released amount, since it
    is made with the capture, but for those that are recorded here as refunds."""
    released = mapping.read_released_units(intent)
    if not released or _is_ours(refund):
        return False
    if not intent["amount_received"]:
        return True
    if refund.get("amount") != released or not makes_refunds_of_releases(event.account):
        return False
    newest_first = list_objects(event.account, REFUNDS_PATH, [("payment_intent", str(intent.get("id")))])
    alike = [one.get("id") for one in newest_first if one.get("amount") == released and not _is_ours(one)]
    # After several captures a refund of the same amount may be older than the release: it is recorded here.
    candidates = [ident for ident in alike if find_recorded_payment(event, str(ident)) is None]
    return bool(candidates) and candidates[-1] == refund.get("id")


def _is_ours(refund: Mapping[str, Any]) -> bool:
    return bool(mapping.read_mark(refund, mapping.PAYMENT_MARK) or mapping.read_mark(refund, VOID_MARK))

"""Filters of the list of webhook deliveries, parsed from a form or a query string."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.http import QueryDict
from django.utils import timezone
from django.utils.translation import gettext as _

from gateway.core import identifiers
from gateway.models import WebhookDelivery
from gateway.models.webhooks import WEBHOOK_KINDS
from gateway.notifications.payload_format import TEST_TYPE

DELIVERY_FILTER_NAMES: Final = ("state", "kind", "endpoint", "payment", "from", "to")
DeliveryState = WebhookDelivery.State


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilters:
    """Filters of a list. ``wrong``: filter → error."""

    state: str = ""
    kind: str = ""
    endpoint: UUID | None = None
    payment: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    wrong: dict[str, str]

    def conditions(self) -> dict[str, Any]:
        found = {
            "state": self.state or None,
            "kind": self.kind or None,
            "endpoint": self.endpoint,
            "payment": self.payment,
            "created_at__gte": self.since,
            "created_at__lte": self.until,
        }
        return {name: value for name, value in found.items() if value is not None}


def parse_delivery_filters(sent: QueryDict) -> DeliveryFilters:
    """Parse a query string or form; invalid values are left out and reported in ``wrong``. Times without a zone are in
    the reader's."""
    wrong: dict[str, str] = {}

    def ident(name: str) -> UUID | None:
        text = sent.get(name, "").strip().replace("-", "").lower()
        found = identifiers.parse_id(text) if text else None
        if text and found is None:
            wrong[name] = _("An id is 32 hex digits.")
        return found

    def moment(name: str) -> datetime | None:
        text = sent.get(name, "").strip()
        try:
            found = datetime.fromisoformat(text) if text else None
            own = timezone.get_current_timezone()
            # In UTC the first and the last day of the calendar may be no time at all.
            return found.replace(tzinfo=found.tzinfo or own).astimezone(UTC) if found is not None else None
        except (ValueError, OverflowError):
            wrong[name] = _("A time is written as 2026-05-14T10:02.")
            return None

    def choice(name: str, among: Sequence[str]) -> str:
        text = sent.get(name, "")
        if text and text not in among:
            wrong[name] = _("One of: %s.") % ", ".join(among)
        return text

    return DeliveryFilters(
        state=choice("state", DeliveryState.values),
        kind=choice("kind", (*WEBHOOK_KINDS, TEST_TYPE)),
        endpoint=ident("endpoint"),
        payment=ident("payment"),
        since=moment("from"),
        until=moment("to"),
        wrong=wrong,
    )

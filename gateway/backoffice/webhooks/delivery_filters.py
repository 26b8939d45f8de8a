"""Filters of the list of webhook deliveries, parsed from a form or a query string."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from django.http import QueryDict
from django.utils.translation import gettext as _

from gateway.backoffice.kit.periods import FILTER_TIME_FORMAT, PERIOD_FILTER_NAMES, parse_filter_period
from gateway.core import identifiers
from gateway.models import WebhookDelivery
from gateway.models.webhooks import WEBHOOK_KINDS
from gateway.notifications.payload_format import TEST_TYPE

DELIVERY_FILTER_NAMES: Final = ("state", "kind", "endpoint", "payment", *PERIOD_FILTER_NAMES)
DeliveryState = WebhookDelivery.State


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilters:
    """Filters of a list. ``until``: exclusive. ``wrong``: filter → error."""

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
            "created_at__lt": self.until,
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

    def choice(name: str, among: Sequence[str]) -> str:
        text = sent.get(name, "")
        if text and text not in among:
            wrong[name] = _("One of: %s.") % ", ".join(among)
        return text

    since, until, faults = parse_filter_period({name: sent.get(name, "") for name in PERIOD_FILTER_NAMES})
    return DeliveryFilters(
        state=choice("state", DeliveryState.values),
        kind=choice("kind", (*WEBHOOK_KINDS, TEST_TYPE)),
        endpoint=ident("endpoint"),
        payment=ident("payment"),
        since=since,
        until=until,
        wrong=wrong | faults,
    )


def fix_delivery_times(sent: QueryDict, found: DeliveryFilters) -> list[tuple[str, str]]:
    """The filters that were sent, with their times in UTC: what is shown before it is done is the same an hour later,
    when "the last hour" is another."""
    names = [name for name in DELIVERY_FILTER_NAMES if name not in PERIOD_FILTER_NAMES]
    kept = [(name, text) for name in names if (text := sent.get(name, ""))]
    ends = (("from", found.since), ("to", found.until))
    return kept + [(name, f"{at.astimezone(UTC):{FILTER_TIME_FORMAT}:%S}Z") for name, at in ends if at is not None]

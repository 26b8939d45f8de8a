"""The back office. Pages stand on gateway.admin.kit; who may see what is told by gateway.rights."""

from gateway.admin import (
    access,
    approvals,
    channels,
    deliveries,
    entities,
    exports,
    lookups,
    payments,
    people,
    risk,
    schedules,
    threeds,
    ticks,
    trail,
    webhooks,
)

__all__ = [
    "access",
    "approvals",
    "channels",
    "deliveries",
    "entities",
    "exports",
    "lookups",
    "payments",
    "people",
    "risk",
    "schedules",
    "threeds",
    "ticks",
    "trail",
    "webhooks",
]

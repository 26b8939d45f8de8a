"""The back office. Pages stand on gateway.admin.kit; who may see what is told by gateway.rights."""

from gateway.admin import (
    access,
    approvals,
    channels,
    entities,
    exports,
    lookups,
    payments,
    people,
    risk,
    threeds,
    ticks,
    trail,
)

__all__ = [
    "access",
    "approvals",
    "channels",
    "entities",
    "exports",
    "lookups",
    "payments",
    "people",
    "risk",
    "threeds",
    "ticks",
    "trail",
]

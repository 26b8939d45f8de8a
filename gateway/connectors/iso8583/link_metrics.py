"""Prometheus metrics of links, summed over the processes' own links."""

from __future__ import annotations

from typing import Final

from prometheus_client import Counter, Gauge

from gateway import metrics

LINK_CHANGES: Final = Counter(
    "tollhouse_link_state_changes",
    "How often links to hosts went up, down or idle",
    ["link", "state"],
    registry=metrics.PROCESS_REGISTRY,
)
LINK_UP: Final = Gauge(
    "tollhouse_link_up",
    "1 when the process whose link changed last has it up",
    ["link"],
    registry=metrics.PROCESS_REGISTRY,
    multiprocess_mode="mostrecent",
)
UNMATCHED_RESPONSES: Final = Counter(
    "tollhouse_link_unmatched_responses",
    "Responses without a request: late, duplicate, unknown, unreadable",
    ["link", "kind"],
    registry=metrics.PROCESS_REGISTRY,
)


def record_link_state(label: str, state: str) -> None:
    """Count a link's change of state."""
    LINK_CHANGES.labels(label, state).inc()
    LINK_UP.labels(label).set(1 if state == "up" else 0)


def count_unmatched_response(label: str, kind: str) -> None:
    """Count an answer that no caller waited for."""
    UNMATCHED_RESPONSES.labels(label, kind).inc()

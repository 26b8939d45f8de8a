"""This process's links: one per terminal, opened at its first use, dropped in a forked child."""

from __future__ import annotations

import atexit
import os
import threading
from typing import Final

from gateway.connectors.iso8583.link import HostLink
from gateway.connectors.iso8583.link_state import LinkState, LinkUnansweredError, LinkUnreachableError
from gateway.connectors.iso8583.terminal import Terminal

__all__ = [
    "LinkState",
    "LinkUnansweredError",
    "LinkUnreachableError",
    "close_all_links",
    "get_link",
    "list_link_states",
]

MAX_LINKS: Final = 256
"""Terminals that one process can serve; further ones are refused."""

_links: dict[Terminal, HostLink] = {}
_lock = threading.Lock()


def get_link(terminal: Terminal) -> HostLink:
    """The link of a terminal. Raises LinkUnreachableError if the process has too many."""
    with _lock:
        link = _links.get(terminal)
        if link is None:
            if len(_links) >= MAX_LINKS:
                _drop_idle_links()
            if len(_links) >= MAX_LINKS:
                raise LinkUnreachableError(f"this process has {MAX_LINKS} links already")
            link = _links[terminal] = HostLink(terminal)
    return link


def list_link_states() -> tuple[LinkState, ...]:
    """States of this process's links, sorted by label."""
    with _lock:
        links = list(_links.values())
    return tuple(sorted((link.state for link in links), key=lambda state: (state.label, state.merchant)))


def close_all_links() -> None:
    """Sign off and close every link."""
    with _lock:
        links = list(_links.values())
        _links.clear()
    for link in links:
        link.close()


def _drop_idle_links() -> None:
    for terminal in [terminal for terminal, link in _links.items() if link.state.state == "idle"]:
        del _links[terminal]


def _drop_links_after_fork() -> None:
    """A child must not use its parent's links; their threads and locks do not exist in it."""
    global _links, _lock
    left, _links, _lock = _links, {}, threading.Lock()
    for link in left.values():
        link.abandon()


os.register_at_fork(after_in_child=_drop_links_after_fork)
atexit.register(close_all_links)

"""This process's links: one for each terminal, made when it is first used, gone in a forked child.

``list_link_states()`` tells how they are, for pages; other processes have their own, and the figures sum them all.
"""

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
"""Terminals one process speaks for; more are refused, not queued."""

_links: dict[Terminal, HostLink] = {}
_lock = threading.Lock()


def get_link(terminal: Terminal) -> HostLink:
    """The link of a terminal. Raises LinkUnreachableError when the process has too many."""
    with _lock:
        link = _links.get(terminal)
        if link is None:
            if len(_links) >= MAX_LINKS:
                _drop_idle()
            if len(_links) >= MAX_LINKS:
                raise LinkUnreachableError(f"this process has {MAX_LINKS} links already")
            link = _links[terminal] = HostLink(terminal)
    return link


def list_link_states() -> tuple[LinkState, ...]:
    """How this process's links are, by their labels."""
    with _lock:
        links = list(_links.values())
    return tuple(sorted((link.state for link in links), key=lambda state: (state.label, state.merchant)))


def close_all_links() -> None:
    """Sign off everywhere."""
    with _lock:
        links = list(_links.values())
        _links.clear()
    for link in links:
        link.close()


def _drop_idle() -> None:
    for terminal in [terminal for terminal, link in _links.items() if link.state.state == "idle"]:
        del _links[terminal]


def _forked() -> None:
    """A child must not talk on its parent's links; its threads and locks did not come along."""
    global _links, _lock
    left, _links, _lock = _links, {}, threading.Lock()
    for link in left.values():
        link.abandon()


os.register_at_fork(after_in_child=_forked)
atexit.register(close_all_links)

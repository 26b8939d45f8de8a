"""Ports for programs that are started a moment later."""

from __future__ import annotations

import secrets

from config.launcher.var_folder import is_port_free

LOWEST, NUMBER = 20_000, 10_000
"""Below those that the system gives to outgoing connections: none of them takes the port meanwhile."""


def free_port() -> int:
    """A free port on loopback."""
    while True:
        port = LOWEST + secrets.randbelow(NUMBER)
        if is_port_free("127.0.0.1", port):
            return port

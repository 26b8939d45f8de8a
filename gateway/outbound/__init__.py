"""Calls to addresses that somebody else chose: merchants' webhooks and result URLs.

One door, :func:`call_url`: no redirects, no cookies, no proxy, certificates verified, no private address, everything
within one deadline and a cap on what is read. What goes wrong is part of the CallOutcome; nothing is raised.
Source: decisions, section 6; design goal R10; docs/decisions/0021-webhooks.md.
"""

from gateway.outbound.address_guard import CallTarget, ForbiddenAddressError, parse_target
from gateway.outbound.connections import ConnectionPool
from gateway.outbound.http_call import CallFailure, CallOutcome, call_url

__all__ = [
    "CallFailure",
    "CallOutcome",
    "CallTarget",
    "ConnectionPool",
    "ForbiddenAddressError",
    "call_url",
    "parse_target",
]

"""HTTP calls to URLs chosen by others: merchants' webhooks and result URLs, processors' hosts.

:func:`call_url` follows no redirects and uses no cookies or proxy; it verifies certificates, refuses private addresses,
and keeps one deadline and a size limit. Failures are part of the CallOutcome, not exceptions. Source:
docs/decisions/0021-webhooks.md.
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

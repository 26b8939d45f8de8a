"""Calls to addresses that somebody else chose: merchants' webhooks and result URLs.

One door, :func:`call`: no redirects, no cookies, no proxy, certificates verified, no private address, everything within
one deadline and a cap on what is read. What goes wrong is part of the Outcome; nothing is raised.
Source: decisions, section 6; design goal R10; docs/decisions/0021-webhooks.md.
"""

from gateway.outbound.call import Failure, Outcome, call
from gateway.outbound.guard import Forbidden, Target, target_of
from gateway.outbound.line import Lines

__all__ = ["Failure", "Forbidden", "Lines", "Outcome", "Target", "call", "target_of"]

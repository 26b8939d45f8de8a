"""Outcomes of an authentication for the payment: passed, rejected, or pending.

``proof``: parameters by full name, the same as an external 3DS server's proof (ruling D32); ``facts``: parts of the
answer. Source: Part B, 3D Secure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from gateway.core.secret import Secret

AuthenticationFacts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationPassed:
    """The payment continues, with a proof, or without one if the channel's policy allows it. ``attempt``: which
    authorization of the payment it is for."""

    proof: Mapping[str, str | Secret] = field(default_factory=dict)
    facts: AuthenticationFacts = field(default_factory=dict)
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationRejected:
    """The payment is declined with ``code``. ``attempt``: as of AuthenticationPassed."""

    code: str
    facts: AuthenticationFacts = field(default_factory=dict)
    attempt: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationPending:
    """The payment waits until ``deadline`` (merchant's clock). ``shopper``: the shopper is redirected to a page, or
    acts in an app; False for a merchant-initiated (3RI) authentication. ``method_url``: the issuer's method page that
    an external 3DS server named, empty for the simulated one."""

    authentication: UUID
    step: str
    deadline: datetime
    shopper: bool
    method_url: str = ""
    facts: AuthenticationFacts = field(default_factory=dict)


AuthenticationOutcome = AuthenticationPassed | AuthenticationRejected | AuthenticationPending

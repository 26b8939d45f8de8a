"""What an authentication came to, as values for whoever asked: go on, stop, or wait for the shopper.

``proof`` are parameters by full name, the same that an external 3DS server's proof takes (D32); ``facts`` are parts of
the answer. Source: Part B, 3D Secure.
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
    """The payment goes on: with a proof, or without one where the channel's policy allows it."""

    proof: Mapping[str, str | Secret] = field(default_factory=dict)
    facts: AuthenticationFacts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationRejected:
    """The payment ends with ``code``."""

    code: str
    facts: AuthenticationFacts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthenticationPending:
    """Somebody has to act until ``deadline`` (merchant's clock). ``shopper``: there is one, who is sent to a
    page (or whose app asks there); none takes part in a requestor-initiated authentication."""

    authentication: UUID
    step: str
    deadline: datetime
    shopper: bool
    facts: AuthenticationFacts = field(default_factory=dict)


AuthenticationOutcome = AuthenticationPassed | AuthenticationRejected | AuthenticationPending

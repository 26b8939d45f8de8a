"""Risk rules that were drafted and are not saved: kept in the session of who drafted them.

An address has a draft's name only: its values may be e-mails and IP addresses of shoppers, and addresses stand in logs
and in the histories of browsers.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any, Final

from django.contrib.sessions.backends.base import SessionBase

DRAFTS_SESSION_KEY: Final = "drafted_rules"
MAX_STORED_DRAFTS: Final = 24
"""Drafts of one session; older ones are forgotten."""


def store_draft(session: SessionBase, rule: Mapping[str, Any]) -> str:
    """Store a drafted rule in the session; returns its name for an address."""
    kept: dict[str, Any] = session.get(DRAFTS_SESSION_KEY, {})
    name = next((name for name, one in kept.items() if one == rule), None) or secrets.token_urlsafe(9)
    session[DRAFTS_SESSION_KEY] = dict(list({**kept, name: rule}.items())[-MAX_STORED_DRAFTS:])
    return name


def find_draft(session: SessionBase, name: str) -> Mapping[str, Any] | None:
    """The rule of this name; None if there is none. It is checked when the form is saved."""
    found: Mapping[str, Any] | None = session.get(DRAFTS_SESSION_KEY, {}).get(name)
    return found

"""How many passwords this process checks for addresses without a recent sign-in.

A check costs some 0.3 s of CPU, by design. django-axes bounds what one name and one address may try, not what many
addresses may: they share one budget, and what is above it is refused before anything is hashed. Passkeys, single
sign-on, and users at addresses they signed in from before are not held up by it. Source: docs/decisions/0062.
"""

from __future__ import annotations

import threading
import time
from typing import Final

from django.conf import settings

_lock: Final = threading.Lock()
_left: float = 0.0
_counted_at: float = float("-inf")


class PasswordBudgetSpentError(Exception):
    """Too many passwords of unknown addresses were checked within the last minute; a next one can be in seconds."""


def spend_password_check() -> None:
    """Count one check. GATEWAY_PASSWORD_CHECKS_PER_MINUTE of them may come at once, and are earned again over a minute;
    0: no bound. Raises PasswordBudgetSpentError."""
    global _left, _counted_at
    most = settings.GATEWAY_PASSWORD_CHECKS_PER_MINUTE
    if most <= 0:
        return
    with _lock:
        now = time.monotonic()
        earned = min(float(most), _left + (now - _counted_at) * most / 60)
        _left, _counted_at = (earned - 1, now) if earned >= 1 else (earned, now)
        if earned < 1:
            raise PasswordBudgetSpentError

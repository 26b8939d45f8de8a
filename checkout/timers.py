"""The checkouts' timers."""

from __future__ import annotations

from typing import Final

from checkout import calls
from checkout.due import SECRETS
from gateway.due import Timer

TIMERS: Final = (
    Timer(name="result calls", run=calls.run, next_at=calls.next_at,
          about="Call the shopperResultUrl of merchants who have not fetched a result after 29 minutes."),
    SECRETS,
)  # fmt: skip

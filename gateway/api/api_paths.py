"""Which paths are the API's. Imports nothing: the WSGI handler asks before Django is set up."""

from __future__ import annotations

import re
from typing import Final

_API: Final = re.compile(r"(?:/reports|/scheduling)?/v[0-9]+(?:/|$)|/health/|/metrics$|/connectors/")


def is_api_path(path: str) -> bool:
    """Whether a path is of the API, processor webhooks, health or metrics: JSON without a session."""
    return bool(_API.match(path))

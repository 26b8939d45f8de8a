"""Calls to the provider of single sign-on: few at a time, and its configuration is read once in five minutes.

Strangers can cause them: the button of the sign-in page, and a wrong code. Without a bound a slow provider would hold
every thread of the web server, payments included, and each press of the button would cost a TLS handshake and make the
provider count us as a flood.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Final

import requests

from gateway.db.sessions import pause_work

PROVIDER_TIMEOUT_S: Final = 5.0
"""The time of each wait for the provider."""
MAX_PROVIDER_CALLS: Final = 2
"""Calls of this process at a time; further ones are refused, and the page says to try again."""
CONFIGURATION_PATH: Final = "/.well-known/openid-configuration"
CONFIGURATION_RETENTION_S: Final = 300.0

_calls: Final = threading.BoundedSemaphore(MAX_PROVIDER_CALLS)
_configurations: Final[dict[tuple[str, str], tuple[float, requests.Response]]] = {}
"""Address and certificates → when it was read, and the answer. One entry for each provider of the settings."""


class ProviderSession(requests.Session):
    """An HTTP client of one sign-in. Raises requests.ConnectionError if too many calls are running."""

    def request(self, method: str, url: str | bytes, *args: Any, **options: Any) -> requests.Response:
        """Send one request, or give the provider's configuration that was read before."""
        key = (str(url), str(self.verify))
        kept = _configurations.get(key)
        if kept is not None and time.monotonic() - kept[0] < CONFIGURATION_RETENTION_S:
            return kept[1]
        if not _calls.acquire(blocking=False):
            raise requests.ConnectionError("too many calls to the provider are running")
        try:
            pause_work()
            answer = super().request(method, url, *args, **{"timeout": PROVIDER_TIMEOUT_S, **options})
        finally:
            _calls.release()
        if method == "GET" and key[0].endswith(CONFIGURATION_PATH) and answer.ok:
            _configurations[key] = (time.monotonic(), answer)
        return answer

"""A clerk's browser: signed in to the back office with the demo's user, one page after the other."""

from __future__ import annotations

import http.client
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode, urlsplit

PAGE_WITHIN_S: Final = 60.0
MOST_HOPS: Final = 4
SIGN_IN: Final = "/admin/login/"
TOKEN_COOKIE: Final = "csrftoken"


@dataclass(slots=True, kw_only=True)
class Clerk:
    """Each page is on a connection of its own. ``server_errors``: pages with a 5xx; ``odd``: what was no page."""

    port: int
    user: str
    password: str = field(repr=False)
    pages: int = 0
    server_errors: int = 0
    odd: list[str] = field(default_factory=list)
    _cookies: dict[str, str] = field(default_factory=dict)

    def open(self, path: str) -> None:
        """A page, and redirects from it; signs in where that is asked for."""
        if self._load(path).startswith(SIGN_IN):
            self._load(SIGN_IN)
            self._load(SIGN_IN, {"username": self.user, "password": self.password})
            if self._load(path).startswith(SIGN_IN):
                self.odd.append(f"{path}: not signed in")

    def send(self, path: str, form: dict[str, str]) -> None:
        """A form of the page that was opened before."""
        self._load(path, form)

    def _load(self, path: str, form: dict[str, str] | None = None) -> str:
        """Where it led to."""
        asked = path
        for _ in range(MOST_HOPS):
            status, location = self._ask(path, form)
            self.pages += 1
            if status >= 500:
                self.server_errors += 1
            if status not in (200, 302):
                self.odd.append(f"{asked}: {status}")
            if status != 302:
                return path
            parts, form = urlsplit(location), None
            path = f"{parts.path}?{parts.query}" if parts.query else parts.path
        return path

    def _ask(self, path: str, form: dict[str, str] | None) -> tuple[int, str]:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PAGE_WITHIN_S)
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in self._cookies.items())}
        try:
            if form is None:
                line.request("GET", path, headers=headers)
            else:
                headers["Content-Type"] = "application/x-www-form-urlencoded"
                sent = {"csrfmiddlewaretoken": self._cookies.get(TOKEN_COOKIE, ""), **form}
                line.request("POST", path, urlencode(sent), headers)
            got = line.getresponse()
            got.read()
            for cookie in got.headers.get_all("Set-Cookie", []):
                name, _, value = cookie.partition(";")[0].partition("=")
                self._cookies[name] = value
            return got.status, got.headers.get("Location", "")
        finally:
            line.close()

"""Prove what the test-data page promises, over HTTP, against a gateway that runs.

    python -m tests.promises http://127.0.0.1:8000 --token … --entity …

Reads /testdata.json and sends one request for every row (and clicks, moves the clock or lets money arrive where the
row says so). Prints each broken promise; exit status 1 when there is one. The merchant's channel must be without
limits, 3-D Secure and risk rules. The merchant's clock is moved on and put back.
Source: Part A, What the service does, 5; check A5.5.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlencode

from gateway.portal.self_test_checks import JsonBody, build_checks, run_checks

PATIENCE_S = 120


class _NoFollowing(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


class OverHttp:
    """A gateway at an address."""

    max_wait_s = PATIENCE_S

    def __init__(self, base: str, token: str, entity: str) -> None:
        self.base, self.token, self.entity = base.rstrip("/"), token, entity
        self._open = urllib.request.build_opener(_NoFollowing()).open

    def api(self, method: str, path: str, fields: Mapping[str, str]) -> tuple[int, JsonBody]:
        pairs = urlencode({"entityId": self.entity, **fields})
        body = pairs.encode() if method == "POST" else None
        address = f"{self.base}{path}" + ("" if method == "POST" else f"?{pairs}")
        status, _, text = self._send(address, body, method, {"Authorization": f"Bearer {self.token}"})
        found: JsonBody = json.loads(text)
        return status, found

    def browse(self, path: str, fields: Mapping[str, str] | None) -> tuple[int, str]:
        body = urlencode(fields).encode() if fields is not None else None
        status, headers, _ = self._send(f"{self.base}{path}", body, "POST" if body else "GET", {})
        return status, headers.get("Location", "")

    def settle(self) -> None:
        """The ticks of a running gateway do it within a second or two."""
        time.sleep(0.5)

    def _send(
        self, address: str, body: bytes | None, method: str, headers: dict[str, str]
    ) -> tuple[int, Mapping[str, str], str]:
        request = urllib.request.Request(address, body, headers, method=method)
        try:
            with self._open(request, timeout=PATIENCE_S) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as answer:
            return answer.code, answer.headers, answer.read().decode()


def main(arguments: list[str], say: Callable[[str], object] = print) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.promises", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("base", help="address of the gateway, e.g. http://127.0.0.1:8000")
    parser.add_argument("--token", required=True)
    parser.add_argument("--entity", required=True)
    options = parser.parse_args(arguments)
    gateway = OverHttp(options.base, options.token, options.entity)
    found = list(run_checks(gateway))
    for line in found:
        say(line)
    _, data = gateway.api("GET", "/testdata.json", {})
    say(f"{len(build_checks(data))} promises, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

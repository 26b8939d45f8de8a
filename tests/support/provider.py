"""An OpenID Connect provider as a process of its own, with people whom a test describes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import build_opener

import requests
from django.conf import settings

from tests.support.ports import free_port

START_S: Final = 60
CLIENT: Final = {"GATEWAY_OIDC_CLIENT_ID": "tollhouse", "GATEWAY_OIDC_CLIENT_SECRET": "a secret of the provider"}


@contextmanager
def provider(people: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Starts it, and ends it. Gives its address."""
    port = free_port()
    claims = [text for one in people for text in ("--user-claims", json.dumps(one))]
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(port), *claims],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(f"http://127.0.0.1:{port}/.well-known/openid-configuration")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()


def _wait(address: str) -> None:
    until = time.monotonic() + START_S
    while True:
        try:
            build_opener().open(address, timeout=5).close()
            return
        except (URLError, OSError):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def apps(issuer: str) -> dict[str, Any]:
    """Settings with that provider, as config.settings makes them of the environment."""
    app = {
        "provider_id": "sso",
        "name": "The bank's sign-in",
        "client_id": CLIENT["GATEWAY_OIDC_CLIENT_ID"],
        "secret": CLIENT["GATEWAY_OIDC_CLIENT_SECRET"],
        "settings": {"server_url": issuer},
    }
    providers = {"openid_connect": {**settings.SOCIALACCOUNT_PROVIDERS["openid_connect"], "APPS": [app]}}
    return {
        "GATEWAY_OIDC_ISSUER": issuer,
        "GATEWAY_OIDC_NAME": "The bank's sign-in",
        "SOCIALACCOUNT_PROVIDERS": providers,
        **CLIENT,
    }


def consent(address: str, who: str, **more: str) -> str:
    """The provider's page: ``who`` signs in there. Gives the way back, with the code."""
    answer = requests.post(
        address,
        data=urlencode({"sub": who, **more}),
        allow_redirects=False,
        timeout=20,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert answer.status_code == 302, answer.text[:500]
    return str(answer.headers["Location"])

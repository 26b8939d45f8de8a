"""The packages' webhook helpers refuse whatever strangers send in the way that they promise, and raise nothing else."""

from __future__ import annotations

import json
import subprocess
import time
from importlib import import_module
from typing import Any, Final

import pytest

from gateway.portal.client_packages import CLIENTS_DIR
from tests.release.test_client_packages import find_program

JAVASCRIPT: Final = CLIENTS_DIR / "javascript" / "webhooks.cjs"
SECRET: Final = "11" * 32
NONCE: Final = {"X-Initialization-Vector": "00" * 12, "X-Authentication-Tag": "00" * 16}


def signed(**more: str) -> dict[str, str]:
    now = str(int(time.time()))
    return {"webhook-id": "msg", "webhook-timestamp": now, "webhook-signature": "v1,x", **more}


HOSTILE: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "nothing": ("{}", {}),
    "a time that is no floating-point number": ("{}", signed(**{"webhook-timestamp": "9" * 400})),
    "a time that is no number to be parsed": ("{}", signed(**{"webhook-timestamp": "9" * 5_000})),
    "a time before 1970": ("{}", signed(**{"webhook-timestamp": "-1"})),
    "no signature": ("{}", signed(**{"webhook-signature": ""})),
    "a signature that is no ASCII": ("{}", signed(**{"webhook-signature": "v1,é"})),
    "a deep body": ('{"encryptedBody":' + "[" * 100_000, NONCE),
    "an object for a body": ('{"encryptedBody":{"toString":1}}', NONCE),
    "a list for a body": ('{"encryptedBody":["00"]}', NONCE),
    "no body": ("", NONCE),
    "a short tag": ("00" * 20, {**NONCE, "X-Authentication-Tag": "00"}),
    "both kinds of headers": ("{}", signed(**NONCE)),
}
each = pytest.mark.parametrize("case", HOSTILE)


@pytest.fixture
def webhooks(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the package, from its sources."""
    monkeypatch.syspath_prepend(str(CLIENTS_DIR / "python" / "src"))
    return import_module("tollhouse.webhooks")


@each
def test_pythons_helper_refuses(case: str, webhooks: Any) -> None:
    body, headers = HOSTILE[case]
    for sent in (body, body.encode()):
        with pytest.raises(webhooks.WebhookVerificationError):
            webhooks.verify(sent, headers, SECRET)


def test_pythons_helper_refuses_what_is_no_unicode(webhooks: Any) -> None:
    """Headers as WSGI servers decode them may hold halves of characters."""
    for name in ("webhook-id", "webhook-signature"):
        with pytest.raises(webhooks.WebhookVerificationError):
            webhooks.verify("{}", signed(**{name: "v1,\udc80"}), SECRET)
    with pytest.raises(webhooks.WebhookVerificationError):
        webhooks.verify("\udc80", signed(), SECRET)


def test_javascripts_helper_refuses() -> None:
    script = (
        f"const {{ verify }} = require({json.dumps(str(JAVASCRIPT))});"
        "const cases = JSON.parse(require('fs').readFileSync(0));"
        "const told = Object.entries(cases).map(([name, [body, headers]]) => {"
        f" try {{ verify(body, headers, {json.dumps(SECRET)}); return [name, 'taken']; }}"
        " catch (error) { return [name, error.constructor.name]; } });"
        "console.log(JSON.stringify(Object.fromEntries(told)));"
    )
    done = subprocess.run(
        [find_program("node"), "-e", script],
        input=json.dumps(HOSTILE),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout) == dict.fromkeys(HOSTILE, "WebhookVerificationError")

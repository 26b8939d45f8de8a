"""An alert provider as a process of its own: signs one alert and posts it to the gateway, as its documentation says.

    python -m tests.support.alert_provider ADDRESS SECRET JSON [SECONDS]

Knows nothing of the product's code. Writes the status and the answer. SECONDS: how old the signature is made.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sys
import time
from urllib.error import HTTPError
from urllib.request import Request, build_opener


def sign(secret: str, body: bytes, at: int) -> str:
    """The value of the signature header."""
    mac = hmac.new(secret.encode(), f"{at}.".encode() + body, hashlib.sha256)
    return f"t={at},v1={mac.hexdigest()}"


def main(address: str, secret: str, content: str, age: str = "0") -> None:
    """Post, and write what came back."""
    body = content.encode()
    headers = {
        "Content-Type": "application/json",
        "Tollhouse-Signature": sign(secret, body, int(time.time()) - int(age)),
    }
    try:
        answer = build_opener().open(Request(address, data=body, headers=headers), timeout=60)
        status, told = answer.status, answer.read()
    except HTTPError as refused:
        status, told = refused.code, refused.read()
    sys.stdout.write(json.dumps({"status": status, "answer": json.loads(told)}))


if __name__ == "__main__":
    main(*sys.argv[1:])

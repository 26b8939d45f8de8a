"""An external 3DS server to test against: a process of its own that refuses what a real directory refuses.

What it answers follows from the card's last four digits (SCENARIOS). It is driven over HTTP: /control/result makes the
signed RReq of a challenge, /control/log lists what came in.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import json
import os
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from gateway.threeds_protocol.required_fields import find_areq_faults

SECRET = "fake-3ds-server-secret-0123456789abcdef"
SCENARIOS = {
    "0091": "frictionless", "0042": "challenge", "0067": "decoupled refusal", "0026": "method", "0075": "unavailable",
    "0083": "silent", "0109": "malformed", "0117": "erro", "0125": "not enrolled", "0133": "proof missing",
    "0141": "fails once", "0158": "old version", "0166": "html", "0174": "exempted", "0182": "exempted by 2.1",
    "0190": "slow second", "0208": "data only", "0216": "decoupled",
}  # fmt: skip
ENDS: dict[str, dict[str, str]] = {
    "decoupled refusal": {"transStatus": "N", "transStatusReason": "25", "eci": "", "authenticationValue": ""},
    "decoupled": {"transStatus": "D", "eci": "", "authenticationValue": ""},
    "exempted": {"transStatus": "I", "eci": ""},
    "exempted by 2.1": {"transStatus": "N", "transStatusReason": "81", "eci": "06"},
    "data only": {"transStatus": "U", "transStatusReason": "80", "eci": ""},
    "unavailable": {"transStatus": "U", "transStatusReason": "22", "eci": "07", "authenticationValue": ""},
    "malformed": {"transStatus": "Q"},
    "proof missing": {"authenticationValue": ""},
}
"""What the answer of a scenario has in place of an authentication."""
SILENCE_S = 30.0
SLOW_S = 1.5
ISSUER_PAGES = ("/method", "/acs", "/acs/answer")


def card_of(scenario: str, start: str = "42") -> str:
    """A Visa number (or one of another ``start``) whose end names the scenario."""
    end = next(end for end, name in SCENARIOS.items() if name == scenario)
    for filling in range(10):
        digits = [int(digit) for digit in reversed(f"{start}000000000{filling}{end}")]
        if (sum(digits[0::2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[1::2])) % 10 == 0:
            return f"{start}000000000{filling}{end}"
    raise AssertionError(scenario)


def sign(body: bytes, at: int | None = None, secret: str = SECRET) -> str:
    at = int(time.time()) if at is None else at
    return f"t={at},v1={hmac.new(secret.encode(), f'{at}.'.encode() + body, hashlib.sha256).hexdigest()}"


def encode(message: dict[str, Any]) -> str:
    """As 3-D Secure sends messages through browsers: base64url without padding."""
    return base64.urlsafe_b64encode(json.dumps(message).encode()).decode().rstrip("=")


def decode(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    return found


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.log: list[dict[str, Any]] = []
        self.numbers: dict[str, str] = {}
        self.results: dict[str, dict[str, Any]] = {}
        self.asked: dict[str, dict[str, Any]] = {}
        self.failed: set[str] = set()
        self.ways_back: dict[str, str] = {}
        self.methods: list[str] = []


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *args: Any) -> None:
        """Nothing on the terminal."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if self.path in ISSUER_PAGES:
            self.show(dict(parse_qsl(body.decode())))
            return
        message = json.loads(body)
        if self.path.startswith("/control/"):
            self.say(200, self.control(message))
            return
        header = self.headers.get("Tollhouse-Signature", "")
        at = header[2:].partition(",")[0]
        if not at.isdecimal() or not hmac.compare_digest(header, sign(body, int(at))):
            self.say(401, {"error": "signature"})
            return
        self.server.log.append({"path": self.path, "key": self.headers["Idempotency-Key"], "message": message})
        ident = message["threeDSServerTransID"]
        self.server.numbers.setdefault(ident, message.get("acctNumber", ""))
        scenario = SCENARIOS.get(self.server.numbers[ident][-4:], "frictionless")
        if self.path == "/v1/versioning":
            self.versioning(scenario)
        elif self.path == "/v1/authentications":
            self.authenticate(scenario, message)
        else:
            self.say(200, self.server.results.get(ident, {"pending": True}))

    def versioning(self, scenario: str) -> None:
        port = self.server.server_address[1]
        answer: dict[str, Any] = {
            "enrolled": scenario != "not enrolled",
            "acsStartProtocolVersion": "2.1.0",
            "acsEndProtocolVersion": "2.1.0" if scenario in ("old version", "exempted by 2.1") else "2.2.0",
            "threeDSServerRefNumber": "3DS_LOA_SER_FAKE_020200_00001",
            "threeDSServerOperatorID": "fake-operator",
            "threeDSServerURL": "https://threeds.example/results",
        }
        if scenario == "method":
            answer["threeDSMethodURL"] = f"http://127.0.0.1:{port}/method"
        self.say(200, answer)

    def authenticate(self, scenario: str, areq: dict[str, Any]) -> None:
        ident = areq["threeDSServerTransID"]
        if faults := find_areq_faults(areq):
            code = faults[0][0]
            self.say(200, {"messageType": "Erro", "errorCode": code, "errorDetail": ",".join(one for _, one in faults)})
            return
        if scenario == "silent":
            time.sleep(SILENCE_S)
        if scenario == "slow second" and areq.get("threeDSRequestorChallengeInd") == "04":
            time.sleep(SLOW_S)
        if scenario == "fails once" and ident not in self.server.failed:
            self.server.failed.add(ident)
            self.say(503, {})
            return
        if scenario == "html":
            self.say(200, None)
            return
        if scenario == "erro":
            self.say(200, {"messageType": "Erro", "errorCode": "305", "errorDetail": "acctNumber"})
            return
        ares = {
            "messageType": "ARes",
            "messageVersion": areq["messageVersion"],
            "threeDSServerTransID": ident,
            "dsTransID": str(uuid.uuid4()),
            "acsTransID": str(uuid.uuid4()),
            "transStatus": "Y",
            "eci": "05",
            "authenticationValue": base64.b64encode(b"x" * 20).decode(),
        }
        if scenario in ("challenge", "method"):
            port = self.server.server_address[1]
            ares |= {"transStatus": "C", "acsURL": f"http://127.0.0.1:{port}/acs", "eci": "", "authenticationValue": ""}
        ares |= ENDS.get(scenario, {})
        self.server.asked[ident] = ares
        self.server.ways_back[ident] = areq.get("notificationURL", "")
        self.say(200, ares)

    def show(self, form: dict[str, str]) -> None:
        """The issuer's pages in the shopper's browser: the 3DS method, and the challenge with the code 4711."""
        if self.path == "/method":
            data = decode(form["threeDSMethodData"])
            data_back = encode({"threeDSServerTransID": data["threeDSServerTransID"]})
            self.server.methods.append(data["threeDSServerTransID"])
            self.page(data["threeDSMethodNotificationURL"], {"threeDSMethodData": data_back}, at_once=True)
        elif self.path == "/acs":
            self.page("/acs/answer", {"id": decode(form["creq"])["threeDSServerTransID"]}, at_once=False)
        else:
            passed = form.get("code") == "4711" and "cancel" not in form
            end = {"transStatus": "Y"} if passed else {"transStatus": "N", "challengeCancel": "01"}
            rreq = self.control({"threeDSServerTransID": form["id"], **end})
            cres = {
                name: rreq[name] for name in ("messageVersion", "threeDSServerTransID", "acsTransID", "transStatus")
            }
            self.page(
                self.server.ways_back[form["id"]], {"cres": encode({"messageType": "CRes", **cres})}, at_once=True
            )

    def page(self, action: str, hidden: dict[str, str], *, at_once: bool) -> None:
        fields = "".join(f'<input type="hidden" name="{name}" value="{escape(text)}">' for name, text in hidden.items())
        asked = '<label>Code <input name="code"></label><button>Confirm</button><button name="cancel">Cancel</button>'
        rest = "<script>document.forms[0].submit()</script>" if at_once else ""
        text = (
            '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Issuer</title>'
            '<link rel="icon" href="data:,">'
            f'</head><body><h1>Your bank</h1><form method="post" action="{escape(action)}">{fields}'
            f"{'' if at_once else asked}</form>{rest}</body></html>"
        )
        with contextlib.suppress(OSError):
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

    def control(self, message: dict[str, Any]) -> dict[str, Any]:
        if self.path == "/control/log":
            return {"log": self.server.log, "methods": self.server.methods}
        ares = self.server.asked[message["threeDSServerTransID"]]
        rreq = {
            "messageType": "RReq",
            **{name: ares[name] for name in ("messageVersion", "threeDSServerTransID", "dsTransID", "acsTransID")},
            "authenticationType": "02",
            "interactionCounter": "01",
            **message,
        }
        if rreq["transStatus"] == "Y":
            rreq = {"eci": "05", "authenticationValue": base64.b64encode(b"y" * 20).decode()} | rreq
        self.server.results[rreq["threeDSServerTransID"]] = rreq
        return rreq

    def say(self, status: int, answer: dict[str, Any] | None) -> None:
        body = b"<html>" if answer is None else json.dumps(answer).encode()
        with contextlib.suppress(OSError):
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)


@dataclass(frozen=True)
class FakeThreeDSServer:
    """The running process, as a test sees it."""

    url: str

    def control(self, what: str, **message: Any) -> Any:
        request = urllib.request.Request(f"{self.url}/control/{what}", json.dumps(message).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def calls(self, path: str) -> list[dict[str, Any]]:
        return [one for one in self.control("log")["log"] if one["path"] == path]


@contextlib.contextmanager
def running_threeds_server() -> Iterator[FakeThreeDSServer]:
    root = Path(__file__).parents[2]
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.support.threeds_server"], cwd=root, env=dict(os.environ), stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        yield FakeThreeDSServer(url=f"http://127.0.0.1:{int(child.stdout.readline())}")
    finally:
        child.terminate()
        child.wait(10)


if __name__ == "__main__":
    running = Server()
    sys.stdout.write(f"{running.server_address[1]}\n")
    sys.stdout.flush()
    running.serve_forever()

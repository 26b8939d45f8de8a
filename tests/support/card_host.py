"""A card API to test against: a server in a thread, with books of its own, that honours idempotency keys, and can be
told to decline, to keep silent, to hang up and to talk nonsense. The server shares no code with the product."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

CARD = "4242424242424242"
KEY = "sk_test_TollhouseTests0123456789"
ROTATED = "sk_test_TollhouseTests9876543210"
"""Another key of the same account."""
OTHERS = "rk_test_AnotherAccounts0123456789"
"""A key of another account at the same processor, which has no objects."""
SIGNING = "whsec_TollhouseTests0123456789"
DECLINES = {
    "4000000000000002": "generic_decline",
    "4000000000009995": "insufficient_funds",
    "4000000000009987": "lost_card",
    "4000000000000069": "expired_card",
    "4000000000000119": "a_word_of_tomorrow",
}
"""Card number → decline code; every other card is approved."""
WRONG_CVC = "999"
AUTHENTICATES = "4000002760003184"
"""Approved with the proof of an authentication only."""
BEFORE = ("silent_before", "hangs_up_before", "429", "500_before", "503", "401", "redirect")
AFTER = ("silent_after", "hangs_up_after", "garbled", "html", "huge", "drip", "500_after", "409")
HANG_S = 30.0
NO_REFUNDS_OF_RELEASES_SINCE = "2025-03-31"
"""Version of the API from which on what is let go of an authorization is no refund."""
_PROOF = "payment_method_options[card][three_d_secure]"
_SETUP_PROOF = {
    f"{_PROOF}[{name}]"
    for name in ("ares_trans_status", "cryptogram", "electronic_commerce_indicator", "transaction_id", "version")
}
"""What the API knows of an authentication made elsewhere when a card is verified: no exemption."""


@dataclass(slots=True)
class Call:
    """One request that came in, as it came."""

    method: str
    path: str
    form: dict[str, str]
    headers: dict[str, str]


@dataclass(slots=True)
class CardApi:
    """The server and its books. ``plain``: it knows neither idempotency keys nor searches nor narrowed lists."""

    port: int = 0
    plain: bool = False
    calls: list[Call] = field(default_factory=list)
    things: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: dict[str, tuple[str, dict[str, str], int, dict[str, Any]]] = field(default_factory=dict)
    faults: list[tuple[str, str]] = field(default_factory=list)
    page: int = 100
    holds_s: int | None = None
    allows_multicapture: bool = True
    transaction_link: str = ""
    advice: dict[str, str] = field(default_factory=dict)
    declines: dict[str, str] = field(default_factory=dict)
    gone: threading.Event = field(default_factory=threading.Event)
    lock: threading.RLock = field(default_factory=threading.RLock)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    releases: set[str] = field(default_factory=set)
    vanish: Callable[[], None] = lambda: None
    """From then on nobody listens any more. ``holds_s``: how long it says that an authorization can be captured;
    ``allows_multicapture``: whether cards can be captured in parts; ``advice``: what it says besides the reason of a
    decline; ``declines``: as DECLINES, of this server alone; ``transaction_link``: Mastercard's, of its charges;
    ``releases``: refunds that it made of what was let go of authorizations, which give nothing back."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def fault(self, name: str, path: str = r"/v1/(payment_intents|setup_intents|refunds)") -> None:
        """The next POST below ``path`` meets a fault."""
        assert name in BEFORE + AFTER, name
        self.faults.append((name, path))

    def of(self, kind: str) -> list[dict[str, Any]]:
        """The objects of a kind, oldest first, but those that only hold a key."""
        with self.lock:
            found = [thing for thing in self.things.values() if thing["object"] == kind]
        return [thing for thing in found if "tollhouse_closed" not in thing["metadata"]]

    def posts(self, path: str) -> list[Call]:
        return [call for call in self.calls if call.method == "POST" and re.fullmatch(path, call.path)]

    def stands(self, payment: str) -> int:
        """What a payment of ours holds or took there, less what was given back, in the smallest unit."""
        total = 0
        for thing in self.of("payment_intent"):
            if thing["metadata"].get("tollhouse_payment", "") == payment and thing["status"] in (
                "requires_capture",
                "succeeded",
            ):
                back = self.refunded(thing)
                total += thing["amount_received"] + thing["amount_capturable"] - back
        return total

    # --- objects --------------------------------------------------------------------------------------------------

    def make(self, kind: str, prefix: str, form: dict[str, str], **values: Any) -> dict[str, Any]:
        metadata = {name[9:-1]: value for name, value in form.items() if name.startswith("metadata[")}
        thing = {
            "id": f"{prefix}_{next(self.numbers):06d}",
            "object": kind,
            "created": int(time.time()),
            "metadata": metadata,
            **values,
        }
        self.things[thing["id"]] = thing
        return thing

    def refunded(self, intent: dict[str, Any]) -> int:
        """What was given back of an intent: a refund that failed, or a release, gives nothing back."""
        refunds = [one for one in self.refunds_made() if one["payment_intent"] == intent["id"]]
        return sum(one["amount"] for one in refunds if one["status"] in ("succeeded", "pending"))

    def refunds_made(self) -> list[dict[str, Any]]:
        """The refunds that give money back, oldest first."""
        return [one for one in self.of("refund") if one["id"] not in self.releases]

    def release(self, intent: dict[str, Any], amount: int) -> None:
        """What versions before NO_REFUNDS_OF_RELEASES_SINCE make of the part of an authorization that is let go."""
        self.releases.add(self.refund(intent, amount)["id"])

    def refund(self, intent: dict[str, Any], amount: int, **more: Any) -> dict[str, Any]:
        """A refund; with ``more`` empty as one is made in the processor's own pages."""
        with self.lock:
            return self.make(
                "refund",
                "re",
                {},
                **{
                    "amount": amount,
                    "currency": intent["currency"],
                    "charge": intent["latest_charge"]["id"],
                    "payment_intent": intent["id"],
                    "status": "succeeded",
                    **more,
                },
            )

    def dispute(self, intent: dict[str, Any], amount: int, reason: str, status: str) -> dict[str, Any]:
        with self.lock:
            of = {"charge": intent["latest_charge"]["id"], "payment_intent": intent["id"]}
            return self.make(
                "dispute", "dp", {}, amount=amount, currency=intent["currency"], reason=reason, status=status, **of
            )

    def _charge(self, intent: dict[str, Any], cvc: str) -> dict[str, Any]:
        checks = {
            "address_line1_check": "pass",
            "address_postal_code_check": "fail",
            "cvc_check": {"": None, WRONG_CVC: "fail"}.get(cvc, "pass"),
        }
        card: dict[str, Any] = {"checks": checks, "network_transaction_id": "016153570198200"}
        if self.transaction_link:
            card["transaction_link_id"] = self.transaction_link
        if self.allows_multicapture and intent["wants_multicapture"]:
            card["multicapture"] = {"status": "available"}
        if self.holds_s is not None and intent["capture_method"] == "manual":
            card["capture_before"] = int(time.time()) + self.holds_s
        return self.make(
            "charge",
            "ch",
            {},
            amount=intent["amount"],
            payment_intent=intent["id"],
            outcome={},
            payment_method_details={"card": card},
        )

    def intents(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        amount, manual = int(form["amount"]), form.get("capture_method") == "manual"
        if not self.plain and form.get("confirm") == "true" and _may_redirect(form):
            return _refused("parameter_missing")
        intent = self.make(
            "payment_intent",
            "pi",
            form,
            amount=amount,
            currency=form["currency"],
            status="requires_payment_method",
            capture_method="manual" if manual else "automatic",
            amount_capturable=0,
            amount_received=0,
            latest_charge=None,
            last_payment_error=None,
            wants_multicapture=form.get("payment_method_options[card][request_multicapture]") == "if_available",
        )
        number, cvc = self._card(form)
        if form.get("confirm") != "true":
            return 200, intent
        if number == AUTHENTICATES and "payment_method_options[card][three_d_secure][cryptogram]" not in form:
            if form.get("error_on_requires_action") == "true":
                return self._declined(intent, "authentication_required", "authentication_required")
            intent["status"] = "requires_action"
            return 200, intent
        if code := self.declines.get(number) or DECLINES.get(number):
            return self._declined(intent, "card_declined", code)
        intent["latest_charge"] = self._charge(intent, cvc)
        intent["status"] = "requires_capture" if manual else "succeeded"
        intent["amount_capturable" if manual else "amount_received"] = amount
        return 200, intent

    def _card(self, form: dict[str, str]) -> tuple[str, str]:
        if method := self.things.get(form.get("payment_method", "")):
            return method["_number"], method["_cvc"]
        return form.get("payment_method_data[card][number]", ""), form.get("payment_method_data[card][cvc]", "")

    def _declined(self, intent: dict[str, Any], code: str, decline: str) -> tuple[int, dict[str, Any]]:
        error = {"type": "card_error", "code": code, "decline_code": decline, "message": "Your card was declined."}
        error |= self.advice
        intent["last_payment_error"] = dict(error)
        return 402, {"error": {**error, intent["object"]: dict(intent)}}

    def setups(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if not self.plain and form.get("confirm") == "true" and _may_redirect(form):
            return _refused("parameter_missing")
        if not _SETUP_PROOF.issuperset(name for name in form if name.startswith(_PROOF)):
            return _refused("parameter_unknown")
        setup = self.make("setup_intent", "seti", form, status="requires_payment_method", latest_attempt=None)
        number, _ = self._card(form)
        if form.get("confirm") == "true" and number in DECLINES:
            setup["last_setup_error"] = None
            return self._declined(setup, "card_declined", DECLINES[number])
        if form.get("confirm") == "true":
            setup["status"] = "succeeded"
        return 200, setup

    def cards(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        number, cvc = form["card[number]"], form["card[cvc]"]
        return 200, self.make("payment_method", "pm", form, type="card", _number=number, _cvc=cvc)

    def refunds(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        intent = self.things.get(form.get("payment_intent", ""))
        if intent is None and (charge := self.things.get(form.get("charge", ""))) is not None:
            intent = self.things[charge["payment_intent"]]
        if intent is None:
            return _refused("resource_missing", 404)
        given = self.refunded(intent)
        amount = int(form["amount"])
        if given + amount > intent["amount_received"]:
            return _refused("charge_already_refunded" if given else "amount_too_large")
        return 200, self.refund(intent, amount, metadata=_metadata(form))

    def act(
        self, ident: str, verb: str, form: dict[str, str], *, refunds_releases: bool = True
    ) -> tuple[int, dict[str, Any]]:
        """Cancel, capture, confirm or mark. ``refunds_releases``: what is let go becomes a refund."""
        thing = self.things.get(ident)
        if thing is None:
            return _refused("resource_missing", 404)
        if verb == "cancel":
            if thing["status"] in ("succeeded", "canceled"):
                return _refused("payment_intent_unexpected_state")
            if refunds_releases and thing.get("latest_charge") and thing["amount_capturable"]:
                self.release(thing, thing["amount_capturable"])
            thing.update(status="canceled", amount_capturable=0)
        elif verb == "capture":
            if thing["status"] != "requires_capture":
                return _refused("payment_intent_unexpected_state")
            amount = int(form["amount_to_capture"])
            card = thing["latest_charge"]["payment_method_details"]["card"]
            if form.get("final_capture") == "false" and "multicapture" not in card:
                return _refused("payment_intent_invalid_parameter")
            if amount > thing["amount_capturable"]:
                return _refused("amount_too_large")
            more = form.get("final_capture") == "false" and amount < thing["amount_capturable"]
            rest = thing["amount_capturable"] - amount
            left = rest if more else 0
            if rest and not more and refunds_releases:
                self.release(thing, rest)
            thing.update(
                status="requires_capture" if more else "succeeded",
                amount_capturable=left,
                amount_received=thing["amount_received"] + amount,
            )
        elif verb == "confirm":
            thing["status"] = "succeeded"
        thing["metadata"] |= _metadata(form)
        return 200, thing

    def look(self, path: str, query: dict[str, str]) -> tuple[int, dict[str, Any]]:
        kind, _, ident = path.removeprefix("/v1/").partition("/")
        if ident == "search" and not self.plain:
            wanted = query["query"].rpartition(":")[2].strip("'")
            found = [one for one in self.things.values() if one["metadata"].get("tollhouse_payment") == wanted]
            return 200, {"object": "search_result", "data": [one for one in found if one["object"] + "s" == kind]}
        if ident:
            thing = self.things.get(ident)
            return (200, thing) if thing is not None else _refused("resource_missing", 404)
        rows = [one for one in self.things.values() if one["object"] + "s" == kind]
        for name in ("payment_intent", "charge"):
            rows = [one for one in rows if name not in query or one[name] == query[name]]
        if not self.plain:
            rows = [one for one in reversed(rows) if one["created"] >= int(query.get("created[gte]", 0))]
        ids = [one["id"] for one in rows]
        begin = ids.index(query["starting_after"]) + 1 if "starting_after" in query else 0
        size = min(int(query.get("limit", 10)), self.page)
        return 200, {"object": "list", "data": rows[begin : begin + size], "has_more": len(rows) > begin + size}

    def answer(self, call: Call) -> tuple[int, dict[str, Any]]:
        """Carry a request out."""
        key = call.headers.get("authorization", "").removeprefix("Bearer ")
        if key == OTHERS and call.method == "GET":
            return _refused("resource_missing", 404)
        if key not in (KEY, ROTATED):
            return 401, {"error": {"type": "invalid_request_error", "message": f"Invalid API Key: {KEY}"}}
        path, _, query = call.path.partition("?")
        if call.method == "GET":
            return self.look(path, dict(parse_qsl(query)))
        key = call.headers.get("idempotency-key", "")
        if key and not self.plain and (known := self.keys.get(key)):
            if known[:2] != (path, call.form):
                return 400, {"error": {"type": "idempotency_error", "message": "Keys for idempotent requests …"}}
            return known[2:]
        makers: dict[str, Callable[[dict[str, str]], tuple[int, dict[str, Any]]]] = {
            "/v1/payment_intents": self.intents,
            "/v1/setup_intents": self.setups,
            "/v1/refunds": self.refunds,
            "/v1/payment_methods": self.cards,
        }
        if maker := makers.get(path):
            status, body = maker(call.form)
        elif found := re.fullmatch(r"/v1/(?:payment_intents|setup_intents|charges)/(\w+)(?:/(\w+))?", path):
            version = call.headers.get("stripe-version", "")
            older = not self.plain and version < NO_REFUNDS_OF_RELEASES_SINCE
            status, body = self.act(found[1], found[2] or "", call.form, refunds_releases=older)
        else:
            return _refused("url_invalid", 404)
        if key and (status in (200, 402)):
            self.keys[key] = (path, dict(call.form), status, json.loads(json.dumps(body)))
        return status, body


def _may_redirect(form: dict[str, str]) -> bool:
    """Whether the intent takes every payment method of the account, of which some redirect: it does since the API's
    version of 16 August 2023 unless the types are named, and is then refused without a return_url."""
    return "payment_method_types[]" not in form and "return_url" not in form


def _metadata(form: dict[str, str]) -> dict[str, str]:
    return {name[9:-1]: value for name, value in form.items() if name.startswith("metadata[")}


def _refused(code: str, status: int = 400) -> tuple[int, dict[str, Any]]:
    return status, {"error": {"type": "invalid_request_error", "code": code, "message": code}}


class _HangsError(Exception):
    """The connection ends here."""


def _handler(api: CardApi, lines: list[socket.socket]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            lines.append(self.request)
            super().setup()

        def log_message(self, *args: Any) -> None:
            pass

        def do_GET(self) -> None:
            self._serve("GET")

        def do_POST(self) -> None:
            self._serve("POST")

        def _serve(self, method: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            form = dict(parse_qsl(body, keep_blank_values=True))
            call = Call(method=method, path=self.path, form=form, headers=headers)
            with api.lock:
                api.calls.append(call)
                fault = self._next_fault(call)
                if fault in AFTER or not fault:
                    status, answer = api.answer(call)
                    text = json.dumps(answer).encode()
            try:
                if fault:
                    self._misbehave(fault)
                else:
                    self._send(status, text)
            except (_HangsError, OSError):
                self.close_connection = True
                with contextlib.suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)

        def _next_fault(self, call: Call) -> str:
            path = urlsplit(call.path).path
            if call.method == "POST" and api.faults and re.match(api.faults[0][1], path):
                return api.faults.pop(0)[0]
            return ""

        def _misbehave(self, fault: str) -> None:
            if fault.startswith("silent"):
                api.gone.wait(HANG_S)
            elif fault == "huge":
                self._send(200, b'{"object": "' + b"x" * (3 * 1024 * 1024) + b'"}')
                return
            elif fault == "drip":
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while not api.gone.wait(0.05):
                    self.wfile.write(b" ")
                    self.wfile.flush()
            elif (simple := _SIMPLE.get(fault)) is not None:
                self._send(*simple)
                return
            raise _HangsError

        def _send(self, status: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if status == 307:
                self.send_header("Location", f"{api.url}/elsewhere")
            self.end_headers()
            self.wfile.write(body)

    return Handler


_BUSY = json.dumps({"error": {"type": "invalid_request_error", "code": "rate_limit"}}).encode()
_BROKEN = json.dumps({"error": {"type": "api_error"}}).encode()
_SIMPLE: dict[str, tuple[int, bytes, str]] = {
    "garbled": (200, b'{"object": "payment_int', "application/json"),
    "html": (200, b"<html>Everything is fine.</html>", "text/html"),
    "429": (429, _BUSY, "application/json"),
    "401": (401, b"who are you", "text/plain"),
    "500_before": (500, _BROKEN, "application/json"),
    "500_after": (500, _BROKEN, "application/json"),
    "503": (503, b"<html>out of order</html>", "text/html"),
    "409": (409, b'{"error": {"type": "invalid_request_error", "code": "lock_timeout"}}', "application/json"),
    "redirect": (307, b"", "text/html"),
}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@contextlib.contextmanager
def card_api(
    *, plain: bool = False, at: tuple[str, int] = ("127.0.0.1", 0), tls: ssl.SSLContext | None = None
) -> Iterator[CardApi]:
    """A running processor, for the length of a block."""
    api, lines = CardApi(plain=plain), list[socket.socket]()
    server = _Server(at, _handler(api, lines))
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    api.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()

    def close() -> None:
        api.gone.set()
        server.shutdown()
        server.server_close()
        for line in lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)

    api.vanish = close
    try:
        yield api
    finally:
        if not api.gone.is_set():
            close()

"""Wallet providers on an origin of their own: scripts that behave as theirs do, and the host that vouches for pages.

The scripts are written from the providers' public guides: a client with isReadyToPay and loadPaymentData, its callbacks
and its refusal CANCELED; a session with its events and what it wants done before it shows anything. Their sheets are
plain buttons. A token is whatever the test puts into ``token``.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SHEET = """
function sheet(words, pay, close) {
  const box = document.createElement("dialog");
  box.id = "provider-sheet";
  box.append(words);
  for (const [text, act] of [["Agree", pay], ["Away", close]]) {
    const button = document.createElement("button");
    button.textContent = text;
    button.onclick = () => { box.close(); box.remove(); act(); };
    box.append(button);
  }
  document.body.append(box);
  box.showModal();
}
const token = () => fetch(TOKEN).then((answer) => answer.text());
"""
CLIENT = """
window.provider = { asked: [] };
provider.Client = class {
  constructor(options) { this.options = options; provider.options = options; }
  async isReadyToPay(request) {
    provider.asked.push(request);
    if (!request.allowedPaymentMethods[0].parameters.allowedCardNetworks.length) throw { statusCode: "DEVELOPER_ERROR" };
    return { result: !READY.has("client") };
  }
  loadPaymentData(request) {
    provider.request = request;
    const calls = this.options.paymentDataCallbacks || {};
    if (Boolean(request.callbackIntents) !== Object.keys(calls).length > 0) return Promise.reject({ statusCode: "DEVELOPER_ERROR", statusMessage: "intents" });
    return new Promise((resolve, reject) => sheet(`${request.merchantInfo.merchantName} ${request.transactionInfo.totalPrice}`, async () => {
      const data = { apiVersion: 2, apiVersionMinor: 0, paymentMethodData: {
        type: "CARD", description: "Visa 0000",
        info: { cardNetwork: "VISA", cardDetails: "0000", billingAddress: { name: "Jane", address1: "Main 1", locality: "Rome", postalCode: "00100", countryCode: "IT" } },
        tokenizationData: { type: request.allowedPaymentMethods[0].tokenizationSpecification.type, token: await token() } } };
      if (calls.onPaymentDataChanged) provider.update = await calls.onPaymentDataChanged({ callbackTrigger: "INITIALIZE" });
      if (calls.onPaymentAuthorized) {
        const verdict = await calls.onPaymentAuthorized(data);
        if (verdict.transactionState !== "SUCCESS") return reject({ statusCode: "CANCELED" });
      }
      resolve(data);
    }, () => reject({ statusCode: "CANCELED" })));
  }
};
"""
SESSION = """
window.ProviderSession = class {
  static STATUS_SUCCESS = 0;
  static STATUS_FAILURE = 1;
  static canMakePayments() { return !READY.has("session"); }
  constructor(version, request) {
    if (!navigator.userActivation.isActive) throw new Error("no gesture");
    Object.assign(this, { version, request });
    ProviderSession.last = this;
  }
  begin() { this.onvalidatemerchant({ validationURL: VALIDATION }); }
  completeMerchantValidation(session) {
    this.session = session;
    sheet(`${this.request.total.label} ${this.request.total.amount}`, async () => this.onpaymentauthorized({ payment: {
      token: { paymentData: JSON.parse(await token()), paymentMethod: {}, transactionIdentifier: "1" },
      billingContact: { addressLines: ["Main 1"], locality: "Rome", postalCode: "00100", countryCode: "IT" } } }), () => this.oncancel({}));
  }
  completePayment(result) { ProviderSession.completed = result; }
  abort() { ProviderSession.aborted = true; }
};
"""


@dataclass(kw_only=True)
class Providers:
    """``token``: what a sheet gives; ``asked``: bodies of the calls that asked to be vouched for; ``session``: what
    they get, with ``status``; ``away``: the ways (client, session) whose shopper has no card there."""

    url: str = ""
    token: str = ""
    session: Any = field(default_factory=lambda: {"merchantSessionIdentifier": "M1"})
    status: int = 200
    asked: list[dict[str, Any]] = field(default_factory=list)
    away: set[str] = field(default_factory=set)
    validation: str = "/vouch?for=us"

    @property
    def session_url(self) -> str:
        return self.validation if "://" in self.validation else self.url + self.validation


@contextmanager
def wallet_providers() -> Iterator[Providers]:
    found = Providers()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            names = {"/client.js": CLIENT, "/session.js": SESSION}
            if self.path == "/token":
                return self._answer(found.token.encode(), "text/plain")
            if self.path not in names:
                return self._answer(b"", "text/plain", 404)
            facts = {"TOKEN": f"{found.url}/token", "VALIDATION": found.session_url}
            head = "".join(f"const {name} = {json.dumps(value)};" for name, value in facts.items())
            head += f"const READY = new Set({json.dumps(sorted(found.away))});"
            self._answer(f"(() => {{{head}{SHEET}{names[self.path]}}})();".encode(), "text/javascript")

        def do_POST(self) -> None:
            found.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self._answer(json.dumps(found.session).encode(), "application/json", found.status)

        def _answer(self, body: bytes, kind: str, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Access-Control-Allow-Origin", "*")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        found.url = f"http://127.0.0.1:{server.server_address[1]}"
        yield found
        server.shutdown()

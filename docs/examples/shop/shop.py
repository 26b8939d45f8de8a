"""A shop with one product: python3 shop.py, then open the address that it prints. Python's own library is enough."""

import html
import json
import os
import re
import secrets
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import Request, urlopen

BASE = "https://gateway.example"
TOKEN = "your access token"
ENTITY_ID = "your entityId"
PORT = int(os.environ.get("PORT", "9100"))
SHOP = f"http://127.0.0.1:{PORT}"
PRICE, CURRENCY = "18.00", "EUR"
PAID = re.compile(r"^(000\.000\.|000\.100\.1|000\.[36]|000\.400\.[1][12]0)")
orders = {}  # In a real shop: your database. The number of an order -> what became of it.


def ask(method, path, **fields):
    """Call the gateway. A declined payment or a fault is an answer, too: its result.code tells."""
    sent = urlencode({"entityId": ENTITY_ID, **fields})
    address = f"{BASE}{path}" if method == "POST" else f"{BASE}{path}?{sent}"
    data = sent.encode() if method == "POST" else None
    try:
        with urlopen(Request(address, data, {"Authorization": f"Bearer {TOKEN}"}, method=method)) as answer:
            return json.load(answer)
    except HTTPError as refused:
        return json.load(refused)


class Shop(BaseHTTPRequestHandler):
    def do_GET(self):
        at = urlsplit(self.path)
        if at.path == "/result":
            return self.show_result(parse_qs(at.query).get("resourcePath", [""])[0])
        if at.path != "/":
            return self.show("<h1>No such page</h1>")
        button = "<form method=post action=/checkout><button>Go to payment</button></form>"
        self.show(f"<h1>Harbour mug</h1><p>{PRICE} {CURRENCY}</p>{button}")

    def do_POST(self):
        order = f"order-{secrets.token_hex(6)}"
        made = ask("POST", "/v1/checkouts", amount=PRICE, currency=CURRENCY, paymentType="DB", integrity="true",
                   merchantTransactionId=order, shopperResultUrl=f"{SHOP}/result")  # fmt: skip
        if "id" not in made:
            return self.show(f"<h1>Not possible now</h1><pre>{html.escape(json.dumps(made['result'], indent=2))}</pre>")
        orders[order] = "open"
        script = f"{BASE}/v1/paymentWidgets.js?checkoutId={made['id']}"
        form = f'<form action="{SHOP}/result" class="paymentWidgets" data-brands="VISA MASTER"></form>'
        head = f'<script src="{script}" integrity="{made["integrity"]}" crossorigin="anonymous"></script>'
        self.show(f"{head}<h1>{PRICE} {CURRENCY}</h1>{form}")

    def show_result(self, path):
        if not re.fullmatch(r"/v1/checkouts/[0-9A-F]{32}-[0-9A-Za-z]{1,15}/payment", path):
            return self.show("<h1>No such order</h1>")  # The address comes from the shopper: ask no other path.
        found = ask("GET", path)
        order, code = found.get("merchantTransactionId", ""), found["result"]["code"]
        paid = PAID.match(code) and order in orders and (found["amount"], found["currency"]) == (PRICE, CURRENCY)
        if paid:
            orders[order] = "paid"  # Ship it once: this page may be opened twice.
        words = "Thank you" if paid else "We wait for your bank" if code.startswith("000.200") else "That did not work"
        self.show(f"<h1>{words}</h1><p>{html.escape(order)} {code}</p><a href=/>Back to the shop</a>")

    def show(self, body):
        page = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Shop</title>{body}</html>'.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)


print(f"The shop: {SHOP}  A card that pays: 4200 0000 0000 0000", flush=True)
ThreadingHTTPServer(("127.0.0.1", PORT), Shop).serve_forever()

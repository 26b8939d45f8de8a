"""The requests: every endpoint, every way to go wrong, each with a card of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from urllib.parse import quote

from gateway.catalogue.endpoints import PAYMENT_ENDPOINT
from gateway.catalogue.openapi import example_name
from tests.canary.cards import BREAKS_AT, SCRIPTS, SILENT_AT, WRITINGS, Aviary, Canary, written
from tests.canary.site import FORM, Site

DECLINED = {"over the limit": "4000015500000005", "stolen": "4000015900000001", "silent": "4000090003000000"}
FREE_TEXT = (
    "card.holder",
    "customer.givenName",
    "customer.surname",
    "customer.companyName",
    "customer.email",
    "customer.phone",
    "customer.merchantCustomerId",
    "descriptor",
    "merchantTransactionId",
    "merchantInvoiceId",
    "merchantMemo",
    "transactionCategory",
    "customParameters[ref]",
    "billing.street1",
    "billing.city",
    "billing.postcode",
    "shipping.comment",
    "shipping.street1",
    "cart.items[0].name",
    "cart.items[0].merchantItemId",
    "cart.items[0].sku",
    "cart.items[0].productUrl",
    "corporate.purchase",
    "recipient.accountNumber",
    "sender.accountNumber",
    "merchant.name",
    "merchant.city",
    "risk.parameters[loyalty]",
    "shopperResultUrl",
    "notificationUrl",
    "lifecycleId",
    "referenceUuid",
    "promotionCode",
    "amount",
    "currency",
    "paymentBrand",
    "paymentType",
    "testMode",
    "entityId",
    "card.expiryMonth",
    "card.expiryYear",
    "card.cvv",
    "numberOfCaptures",
    "sequence",
    "threeDSecure.eci",
    "threeDSecure.verificationId",
    "airline.ticketNumber",
    "standingInstruction.agreementId",
    "standingInstruction.initialTransactionId",
    "unknown",
    "unknown.name",
    "customer.unknown",
    "cart.items[0].unknown",
    "card.nubmer",
    "cardNumber",
    "card[number]",
    "pan",
    "card.number ",
    "CARD.NUMBER",
    "createRegistration",
    "bankAccount.iban",
    "bankAccount.number",
    "tokenAccount.number",
    "virtualAccount.accountId",
    "giftCard.number",
    "wallet1.paymentToken",
    "wallet2.paymentToken",
    "job.expression",
)
"""Parameters, known and unknown, in which a card number stands by mistake."""
CVV_NAMES = (
    "cvv",
    "card.cvc",
    "cvc",
    "card.cvv2",
    "card[cvv]",
    "cardCvv",
    "CVV",
    "tokenAccount.dtvc",
    "card.securityCode",
    "securityCode",
    "csc",
    "cvn",
)
"""Names that CVVs are sent under by mistake."""


_IDS = (
    "merchantTransactionId|merchantInvoiceId|lifecycleId|referenceUuid|[a-zA-Z.]*merchantCustomerId|[a-zA-Z.]*deviceId"
    r"|standingInstruction\.(?:agreementId|initialTransactionId)|recurringMigration\.connectorTxId[123]"
    r"|[a-zA-Z0-9.]*requestorId|threeDSecure\.deviceInfo|customer\.browserFingerprint\.(?:id|value)"
    r"|[a-zA-Z0-9.\[\]]*(?:[uU]rl|merchantWebsite)|virtualAccount\.accountId|marketPlace\.sellers\[0\]\.id"
)
OPEN = {"ids": rf"(?:{_IDS})(?:=.*|, .*)|[A-Z]{{2}} (?:{_IDS}) on (?:True|False)"}
"""What is kept as it was sent (docs/decisions/0052): name → labels of the requests. Each has a test that says so."""


def open_leak(label: str) -> str:
    """The known leak that a label belongs to, or ''."""
    bare = re.sub(r" \(CVV( [0-9]+)?\)$", "", label)
    return next((name for name, labels in OPEN.items() if re.fullmatch(labels, bare)), "")


def payment(card: Canary, **changes: str | None) -> dict[str, str]:
    fields: dict[str, str | None] = {
        "amount": "92.00",
        "currency": "EUR",
        "paymentType": "DB",
        "card.number": card.number,
        "card.cvv": card.cvv,
        "card.expiryMonth": "05",
        "card.expiryYear": "2034",
        "card.holder": "Jane Jones",
    }
    named = {name.replace("__", "."): value for name, value in changes.items()}
    return {name: value for name, value in (fields | named).items() if value is not None}


def follow(kind: str, amount: str = "1.00", **more: str) -> dict[str, str]:
    return {"paymentType": kind, "amount": amount, "currency": "EUR", **more}


def send_everything(site: Site, aviary: Aviary) -> None:
    """Send all requests of this module; the site stores the answers."""
    first_payments(site, aviary)
    wrong_fields(site, aviary)
    free_text(site, aviary)
    wrong_places(site, aviary)
    bodies(site, aviary)
    follow_ups(site, aviary)
    idempotency(site, aviary)
    crashes(site, aviary)
    other_endpoints(site, aviary)


def first_payments(site: Site, aviary: Aviary) -> None:
    def pay(label: str, card: Canary, **changes: str | None) -> None:
        site.post(label, "/v1/payments", payment(card, **changes))

    for brand in ("VISA", "MASTER", "AMEX", "DINERS"):
        pay(f"paid, {brand}", aviary.card(f"paid, {brand}", brand=brand), paymentBrand=brand)
        pay(f"detected, {brand}", aviary.card(f"detected, {brand}", brand=brand))
        pay(f"Luhn, {brand}", aviary.card(f"Luhn, {brand}", brand=brand, valid=False), paymentBrand=brand)
    for kind in ("PA", "CD", "RF", "RG", "XX"):
        pay(kind, aviary.card(kind), paymentType=kind)
    for label, number in DECLINED.items():
        pay(f"declined, {label}", aviary.known(f"declined, {label}", number))
    for label, changes in {
        "expired": {"card__expiryYear": "2020"},
        "no such month": {"card__expiryMonth": "13"},
        "no such year": {"card__expiryYear": "34"},
        "amount": {"amount": "92.1"},
        "no amount": {"amount": None},
        "currency": {"currency": "XXX"},
        "wrong brand": {"paymentBrand": "MASTER"},
        "unknown brand": {"paymentBrand": "NOBRAND"},
        "bank brand": {"paymentBrand": "SOFORT"},
        "registration": {"createRegistration": "true"},
        "external": {"testMode": "EXTERNAL"},
        "foreign entity": {"entityId": "0" * 32},
        "no entity": {"entityId": "x"},
        "short CVV": {"card__cvv": "12"},
        "3DS": {"threeDSecure.exemptionFlag": "01"},
        "strict": {"entityId": site.facts["channels"]["strict"], "unknown": "x"},
        "3DS channel": {"entityId": site.facts["channels"]["3ds"]},
        "another's entity": {"entityId": site.facts["other"]["entity_id"]},
        "dispatching": {"entityId": site.facts["channels"]["merchant"]},
    }.items():
        pay(label, aviary.card(label), **changes)
    for number in range(15):
        card = aviary.card(f"throttled {number}")
        pay(card.label, card, entityId=site.facts["channels"]["limited"])
    for label, shape in {
        "letter": "{0}x",
        "two letters": "x{0}x",
        "spaces": "{1}",
        "dashes": "{2}",
        "long": "{0}0000",
        "twice": "{0}{0}",
        "dots": "{3}",
        "NUL": "{0}\0",
        "arabic": "{0}\u0661",
        "long CVV": "{0}",
    }.items():
        card = aviary.card(f"number: {label}")
        groups = [card.number[at : at + 4] for at in range(0, 16, 4)]
        sent = shape.format(card.number, " ".join(groups), "-".join(groups), ".".join(groups))
        pay(card.label, card, card__number=sent, **({"card__cvv": card.cvv * 2} if "CVV" in label else {}))
        spoilt = aviary.card(f"number and CVV: {label}", valid=False)
        pay(
            spoilt.label,
            spoilt,
            card__number=shape.format(spoilt.number, spoilt.number, spoilt.number, spoilt.number),
            card__cvv=f"{spoilt.cvv}x",
        )


TRIED = "4929123456789015"
"""Tells whether a parameter takes a writing at all; it is never sent."""


def free_text(site: Site, aviary: Aviary) -> None:
    """Another card's number, and a security code after its name, in every notation, through every parameter of the
    catalogue that takes the text: those of one table in one request, each with a card of its own."""
    for writing in (*WRITINGS, *SCRIPTS):
        for table in PAYMENT_ENDPOINT.structures:
            right = aviary.card(f"beside {writing} in {table.title}")
            fields = payment(right, paymentBrand="VISA")
            for row in table.rows:
                name = example_name(table, row)
                text = written(TRIED, writing)
                if row.secret or name in fields or row.format.values or row.format.problem(text) is not None:
                    continue
                card = aviary.card(f"{name}, {writing}")
                sentence = f"{written(card.number, writing)} cvv {card.cvv}"
                fits = row.format.problem(sentence) is None and not open_leak(card.label)
                fields[name] = sentence if fits else written(card.number, writing)
            if len(fields) > len(payment(right)) + 1:
                site.post(right.label, "/v1/payments", fields)
                # Beside a fault: what is refused is logged, and told in the answer.
                site.post(right.label, "/v1/payments", fields | {"amount": "x"})
    for name, (first, second) in {
        "text": ("descriptor", "merchantMemo"),
        "map": ("customParameters[one]", "customParameters[two]"),
    }.items():
        card = aviary.card(f"cut over two, {name}")
        fields = payment(aviary.card(f"beside a cut one, {name}"))
        site.post(card.label, "/v1/payments", fields | {first: f"half {card.number[:8]}", second: card.number[8:]})
        site.post(f"own cut, {name}", "/v1/payments", payment(card) | {first: card.number[:8], second: card.number[8:]})


def wrong_fields(site: Site, aviary: Aviary) -> None:
    """The number where it does not belong: alone, in a sentence, grouped; together with a valid card and instead of
    one."""
    for name in FREE_TEXT:
        for shape in ("{0}", "pay with {1}, please", "https://shop.example/back?card={0}"):
            card, right = aviary.card(f"{name}={shape}"), aviary.card(f"beside {name}={shape}")
            grouped = " ".join(card.number[at : at + 4] for at in range(0, 16, 4))
            fields = payment(right, paymentBrand="VISA") | {name: shape.format(card.number, grouped)}
            site.post(card.label, "/v1/payments", fields)
    for name in ("descriptor", "merchantTransactionId", "customParameters[ref]", "cart.items[0].name"):
        card = aviary.card(f"own number in {name}")
        site.post(card.label, "/v1/payments", payment(card) | {name: f"card {card.number}"})
    for name in ("field{0}", "card.{0}", "{0}", "customParameters[{0}]", "cart.items[{0}].name", "{0}[0]"):
        card = aviary.card(f"name {name}")
        site.post(
            card.label, "/v1/payments", payment(aviary.card(f"beside name {name}")) | {name.format(card.number): "x"}
        )
    for name in CVV_NAMES:
        card = aviary.card(f"CVV as {name}")
        site.post(card.label, "/v1/payments", payment(card, **{"card.cvv": None}) | {name: card.cvv})
        card = aviary.card(f"CVV as {name}, fault")
        site.post(card.label, "/v1/payments", payment(card, **{"card.cvv": None, "amount": "x"}) | {name: card.cvv})
        card = aviary.card(f"CVV as {name}, follow-up")
        site.post(card.label, f"/v1/payments/{'0' * 32}", follow("RF") | {name: card.cvv})


def wrong_places(site: Site, aviary: Aviary) -> None:
    """The number in the path, the query string, the headers, before and behind the log-in."""
    for path in (
        "/v1/payments/{0}",
        "/v1/{0}",
        "/{0}",
        "/v1/payments/{0}/{0}",
        "/v2/{0}",
        "/payments/{0}",
        "/docs/{0}",
        "/admin/{0}",
        "/admin/gateway/payment/{0}/change/",
        "/static/{0}.js",
        "/v1/payments?card.number={0}&card.cvv={1}",
        "/payments?card.number={0}",
        "/health/ready?card.number={0}",
        "/metrics?{0}",
        "/v1/resultcodes?n={0}",
        "/v1/test/clock?entityId={0}",
        "/v1/test/acquirer/messages?id={0}",
        "/v1/openapi.json?{0}",
    ):
        for method in ("GET", "POST", "DELETE", "PUT", "OPTIONS"):
            for trusted in (True, False):
                card = aviary.card(f"{method} {path}{'' if trusted else ' by a stranger'}")
                headers = site.own({}, {}) if trusted else {}
                address = path.format(card.number, card.cvv)
                site.send(card.label, method, address, b"" if method == "POST" else None, headers=headers)
    for accept in ("text/html", "application/json"):
        card = aviary.card(f"page, {accept}")
        site.send(card.label, "GET", f"/nothing/{card.number}", headers={"Accept": accept})
    for name in (
        "X-Card",
        "User-Agent",
        "Referer",
        "Cookie",
        "Accept",
        "Accept-Language",
        "Idempotency-Key",
        "Authorization",
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "Content-Type",
        "Origin",
        "Host",
        "Transfer-Encoding",
        "X-Request-Id",
    ):
        for shape in ("{0}", "Bearer {0}", "a=b; card={0}; cvv={1}"):
            card = aviary.card(f"header {name}: {shape}")
            value = shape.format(card.number, card.cvv)
            headers = site.own({"Content-Type": FORM}, {}) | {name: value}
            site.send(card.label, "POST", "/v1/payments", b"amount=1.00", headers=headers)
            site.send(card.label, "GET", "/admin/", headers={name: value})
    for label, octets in {
        "no HTTP": "{0}\r\n\r\n",
        "bad header": "GET / HTTP/1.1\r\n{0}\r\n\r\n",
        "bad version": "GET /{0} HTTP/9.9\r\n\r\n",
        "bad header name": "GET / HTTP/1.1\r\nHost: x\r\nX {0}: 1\r\n\r\n",
        "bad method": "{0} / HTTP/1.1\r\n\r\n",
        "bad length": "POST /v1/payments HTTP/1.1\r\nHost: localhost\r\nContent-Length: {0}\r\n\r\n",
        "two lengths": "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: {0}\r\n\r\n",
        "bad chunk": "POST /v1/payments HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n{0}\r\n",
    }.items():
        card = aviary.card(f"raw, {label}")
        site.raw(card.label, octets.format(card.number).encode())


def bodies(site: Site, aviary: Aviary) -> None:
    """Bodies that are no form, too long, broken off."""

    def send(label: str, make: str, kind: str, **headers: str) -> None:
        card = aviary.card(label)
        body = make.format(number=card.number, cvv=card.cvv, entity=site.facts["entity_id"]).encode("latin-1")
        site.send(label, "POST", "/v1/payments", body, headers=site.own({"Content-Type": kind}, headers))

    flat = "entityId={entity}&amount=92.00&currency=EUR&paymentType=DB&card.number={number}&card.cvv={cvv}"
    twin = json.dumps({"entityId": "E", "card": {"number": "N", "cvv": "C"}})
    as_json = twin.replace("{", "{{").replace("}", "}}").replace('"E"', '"{entity}"').replace('"N"', '"{number}"')
    as_json = as_json.replace('"C"', '"{cvv}"')
    part = '--b\r\nContent-Disposition: form-data; name="{{0}}"\r\n\r\n{{1}}\r\n'.replace("{{", "{").replace("}}", "}")
    multi = (
        "".join(
            part.format(name, value)
            for name, value in (("entityId", "{entity}"), ("card.number", "{number}"), ("card.cvv", "{cvv}"))
        )
        + "--b--\r\n"
    )
    for label, make, kind in (
        ("JSON", as_json, "application/json"),
        ("JSON as form", as_json, FORM),
        ("JSON as text", as_json, "text/plain"),
        ("no type", flat, ""),
        ("XML", "<card number='{number}' cvv='{cvv}'/>", "text/xml"),
        ("multipart", multi, "multipart/form-data; boundary=b"),
        ("multipart as form", multi, FORM),
        ("bad escape", flat + "&x=%zz", FORM),
        ("bad UTF-8", flat + "&card.holder=%ff%fe", FORM),
        ("raw bytes", flat + "&card.holder=\xff\xfe{number}", FORM),
        ("no equals", "{number}&x", FORM),
        ("twice", flat + "&card.number={number}&card.cvv={cvv}", FORM),
        ("semicolons", flat.replace("&", ";"), FORM),
        ("encoded", flat.replace("card.number", "card%2Enumber"), FORM),
        ("plus", flat.replace("{number}", "+{number}+"), FORM),
        ("many fields", flat + "&a=1" * 50_001, FORM),
        ("NUL", flat + "&a=%00{number}", FORM),
        ("long value", flat + "&descriptor=" + "9" * 90 + " {number}", FORM),
        ("long name", flat + "&" + "x" * 92 + "{number}=1", FORM),
        ("behind the log's limit", flat + "".join(f"&u{n}=1" for n in range(250)) + "&amount=x&z={number}", FORM),
        ("wrong charset", flat, FORM + "; charset={number}"),
    ):
        send(f"body: {label}", make, kind)
    card = aviary.card("body: percent-encoded digits")
    digits = "".join(f"%{ord(digit):02x}" for digit in card.number)
    site.send(
        card.label,
        "POST",
        "/v1/payments",
        f"entityId={site.facts['entity_id']}&amount=x&descriptor={digits}".encode(),
        headers=site.own({"Content-Type": FORM}, {}),
    )
    # A body over the limit: only its beginning is ever sent.
    card = aviary.card("body: oversized")
    head = (
        f"POST /v1/payments HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {site.facts['access_token']}\r\n"
        f"Content-Type: {FORM}\r\nContent-Length: 40000000\r\nConnection: close\r\n\r\n"
        f"card.number={card.number}&card.cvv={card.cvv}&"
    )
    site.raw(card.label, head.encode())
    card = aviary.card("body: broken off")
    site.raw(card.label, head.replace("40000000", "4000").encode())


def follow_ups(site: Site, aviary: Aviary) -> None:
    held = site.post("held", "/v1/payments", payment(aviary.card("held"), paymentType="PA")).id
    paid = site.post("paid", "/v1/payments", payment(aviary.card("paid"))).id
    for kind, behind in (
        ("CP", held),
        ("RV", held),
        ("RF", paid),
        ("RB", paid),
        ("RC", paid),
        ("CB", paid),
        ("RF", held),
        ("XX", paid),
        ("PA", held),
    ):
        site.post(f"{kind} plain", f"/v1/payments/{behind}", follow(kind))
        card = aviary.card(f"{kind} with a card on {behind == held}")
        site.post(
            card.label, f"/v1/payments/{behind}", follow(kind) | {"card.number": card.number, "card.cvv": card.cvv}
        )
        for name in (
            "amount",
            "currency",
            "descriptor",
            "merchantTransactionId",
            "customParameters[x]",
            "unknown",
            "merchantMemo",
            "cart.items[0].name",
            "referenceUuid",
            "paymentBrand",
        ):
            card = aviary.card(f"{kind} {name} on {behind == held}")
            site.post(card.label, f"/v1/payments/{behind}", follow(kind) | {name: card.number})
    for practice in ("INCREMENTAL_AUTH", "REAUTHORIZATION"):
        fields = follow("PA") | {"standingInstruction.industryPractice": practice, "referenceUuid": held}
        site.post(practice, "/v1/payments", fields)
        card = aviary.card(f"{practice} with a card")
        site.post(card.label, "/v1/payments", payment(card) | fields)
    for name in ("id", "card.number", "entityId"):
        card = aviary.card(f"read with {name}")
        site.get(card.label, f"/v1/payments/{paid}", {name: card.number, "card.cvv": card.cvv})
    site.get("read", f"/v1/payments/{paid}")
    site.get("messages", "/v1/test/acquirer/messages", {"id": paid})


def idempotency(site: Site, aviary: Aviary) -> None:
    card = aviary.card("idempotent")
    for _ in range(2):
        site.post("idempotent", "/v1/payments", payment(card), Idempotency_Key="canary-1")
    other = aviary.card("idempotent, other body")
    site.post(other.label, "/v1/payments", payment(other), Idempotency_Key="canary-1")
    for shape in ("{0}", "order-{0}", "cvv={1}", "{2}"):
        card = aviary.card(f"key {shape}")
        key = shape.format(card.number, card.cvv, "-".join(card.number[at : at + 4] for at in range(0, 16, 4)))
        for amount in ("92.00", "92.00", "93.00"):
            site.post(
                card.label,
                "/v1/payments",
                payment(aviary.card(f"with key {shape}"), amount=amount),
                Idempotency_Key=key,
            )


def crashes(site: Site, aviary: Aviary) -> None:
    """The connector breaks with the card in its hands and in its message, or is silent."""
    external = {"testMode": "EXTERNAL"}
    paid = site.post("external", "/v1/payments", payment(aviary.card("external")) | external).id
    for label, amount in (("crash", BREAKS_AT), ("silence", SILENT_AT)):
        for kind in ("DB", "PA", "CD"):
            card = aviary.card(f"{label}, {kind}")
            fields = payment(card, amount=amount, paymentType=kind, descriptor="order 17") | external
            site.post(card.label, "/v1/payments", fields)
            card = aviary.card(f"{label}, {kind}, with a key")
            site.post(
                card.label,
                "/v1/payments",
                payment(card, amount=amount, paymentType=kind) | external,
                Idempotency_Key=f"{label}-{kind}",
            )
        site.post(f"{label}, RB", f"/v1/payments/{paid}", follow("RB", amount))


def other_endpoints(site: Site, aviary: Aviary) -> None:
    for name in ("advance", "now", "entityId", "unknown", "card.number"):
        card = aviary.card(f"clock {name}")
        site.post(card.label, "/v1/test/clock", {"advance": "1"} | {name: card.number, "card.cvv": card.cvv})
    card = aviary.card("log-in")
    fields = f"username={card.number}&password={quote(card.number)}".encode()
    site.send(card.label, "POST", "/admin/login/", fields, headers={"Content-Type": FORM})


def admin_pages(site: Site, log_in: Mapping[str, str]) -> dict[str, str]:
    """Every page of the back office that tells of payments and requests: address → HTML."""
    import requests

    base = f"http://127.0.0.1:{site.port}"
    with requests.Session() as browser:
        browser.get(f"{base}/admin/login/")
        answer = browser.post(
            f"{base}/admin/login/?next=/admin/",
            data={**log_in, "csrfmiddlewaretoken": browser.cookies["csrftoken"]},
            headers={"Referer": f"{base}/admin/login/"},
        )
        assert answer.url == f"{base}/admin/", answer.text[:500]
        pages: dict[str, str] = {}
        for kind in ("payment", "requestlog", "notification", "auditentry", "accesstoken"):
            address: str | None = f"/admin/gateway/{kind}/"
            pages[f"{address}?all="] = browser.get(f"{base}{address}?all=").text
            with site.connect() as database:
                keys = [
                    row[0] for row in database.execute(f"SELECT id FROM gateway_{kind} ORDER BY random() LIMIT 150")
                ]  # type: ignore[arg-type]
            for key in keys:
                address = f"/admin/gateway/{kind}/{getattr(key, 'hex', key)}/change/"
                answer = browser.get(base + address)
                assert answer.status_code == 200, (address, answer.text[:300])
                pages[address] = answer.text
    return pages

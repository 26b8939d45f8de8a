"""`python -m tests.running.live_shop`: one payment's life in the live environment, on a network that leads nowhere.

A node behind HAProxy with TLS, a worker, a beat and PostgreSQL. The processor (the card API's test peer)
and the shop that receives webhooks have public addresses in this network, since live calls no others, and certificates
of an authority that GATEWAY_OUTBOUND_CA_FILE names. A shopper pays a checkout, the webhook comes over https, the
institute's file settles it, the processor reports a dispute. Root only; exit code 1 when something is not as it must
be.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import json
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from base64 import b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from tests.running.clients import Speaker
from tests.running.machines import BRIDGE, Machine, make_bridge, missing_tools, run_inside
from tests.running.servers import Cluster, eventually
from tests.running.site import Site
from tests.running.trials import Row
from tests.support.card_host import CARD, SIGNING, CardApi, card_api
from tests.support.certificates import make_certificate

MODULE: Final = "tests.running.live_shop"
PROGRAMS: Final = ("haproxy",)
GATEWAY, PROCESSOR, SHOP = "5.5.5.1", "5.5.5.5", "5.5.5.6"
"""Public addresses, since live calls no others; in this network the last two are those of another machine."""
DATABASE: Final = "tollhouse_live"
REFUSED: Final = ("https://127.0.0.1/hook", "https://10.0.0.1/hook", f"http://{SHOP}/hook")
"""Endpoints at the machine itself, in a private network and without TLS."""
# One process for all that an operator types: each loads the code anew, which takes longest here.
SET_UP: Final = f"""
import io, json
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from config.launcher.schema_snapshot import apply_snapshot
def run(*words):
    out = io.StringIO()
    call_command(*words, stdout=out)
    return out.getvalue()
run("vault_key", "--create")
apply_snapshot(MigrationExecutor(connection))
run("migrate", "--verbosity", "0")
from gateway.models import Channel, Division, Merchant, Psp
from tests.support.card_api import account_at
division = Division.objects.create(name="Division", psp=Psp.objects.create(name="PSP"))
merchant = Merchant.objects.create(name="Shop", division=division)
channel = Channel.objects.create(name="Main", merchant=merchant)
account = account_at(channel, "https://{PROCESSOR}")
entity = channel.entity_id
run("clearing_institute", "--key", "card", "--name", "Card processor", "--connector", "stripe")
token = json.loads(run("access_token", "--entity", entity))["access_token"]
refused = []
for url in {REFUSED!r}:
    try:
        run("webhook_endpoint", "--entity", entity, "--url", url)
    except CommandError:
        refused.append(url)
made = run("webhook_endpoint", "--entity", entity, "--url", "https://{SHOP}/hook", "--mode", "signed", "--activate")
secret = json.loads(made.splitlines()[0])["secret"]
print(json.dumps(dict(entity=entity, account=str(account.pk), token=token, secret=secret, refused=refused)))
"""
SHOPPER: Final = {
    "paymentBrand": "VISA", "card.number": CARD, "card.holder": "Jane Jones", "card.expiryMonth": "05",
    "card.expiryYear": "2034", "card.cvv": "123",
}  # fmt: skip
WAIT_S: Final = 90.0


@dataclass(frozen=True, slots=True)
class Hook:
    """A webhook as it came."""

    headers: dict[str, str]
    body: bytes


class ShopServer(ThreadingHTTPServer):
    """The merchant's server: takes every webhook."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__((SHOP, 443), _Handler)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.hooks: list[Hook] = []

    def about(self, payment: str, kind: str) -> list[Hook]:
        """Genuine webhooks of payments of this type that have, or refer to, this id."""
        found = []
        for hook in list(self.hooks):
            payload = json.loads(hook.body).get("payload", {})
            if payload.get("paymentType") == kind and payment in (payload.get("id"), payload.get("referencedId")):
                found.append(hook)
        return found


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        assert isinstance(self.server, ShopServer)
        self.server.hooks.append(Hook({name.lower(): value for name, value in self.headers.items()}, body))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()


def main() -> int:
    if why := missing_tools(PROGRAMS):
        sys.stdout.write(f"Skipped, there can be no such network here: {why}\n")
        return 0
    code = run_inside(MODULE, sys.argv[1:])
    if code is not None:
        return code
    make_bridge()
    subprocess.run(["ip", "addr", "add", f"{GATEWAY}/24", "dev", BRIDGE], check=True)
    folder = Path(tempfile.mkdtemp(prefix="tollhouse-live-"))
    folder.chmod(0o711)
    began, rows = time.monotonic(), list[Row]()
    try:
        for row in _try(folder):
            rows.append(row)
            sys.stdout.write(f"| {row.trial} | {row.done} | {row.seen} | {'yes' if row.fine else '**no**'} |\n")
            sys.stdout.flush()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    wrong = [row.trial for row in rows if not row.fine]
    sys.stdout.write(f"\n{len(rows) - len(wrong)} of {len(rows)} as they must be, {time.monotonic() - began:.0f} s\n")
    return 1 if wrong else 0


def _try(folder: Path) -> Iterator[Row]:
    trusted = folder / "authority.pem"
    contexts = {}
    for name in (PROCESSOR, SHOP):
        contexts[name], public = make_certificate(folder, name)
        with trusted.open("ab") as file:
            file.write(public.read_bytes())
    with ExitStack() as stack:
        outside = Machine("outside", PROCESSOR, folder / "outside.log")
        subprocess.run(outside.on("ip", "addr", "add", f"{SHOP}/24", "dev", "eth0"), check=True)
        peer = card_api(at=(PROCESSOR, 443), tls=contexts[PROCESSOR])
        processor = outside.open_there(lambda: stack.enter_context(peer))
        shop = outside.open_there(lambda: ShopServer(contexts[SHOP]))
        stack.callback(shop.shutdown)
        threading.Thread(target=shop.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        cluster = Cluster(folder, ("pg1",))
        stack.callback(cluster.stop)
        cluster.start()
        (server,) = cluster.servers
        # It has no standby that could answer for a commit.
        server.configure(synchronous_standby_names="")
        server.ask("SELECT pg_reload_conf()")
        server.ask(f"CREATE DATABASE {DATABASE} OWNER tollhouse")
        site = Site("live", folder, cluster.url(DATABASE), live=True, proxy="haproxy")
        del site.nodes[1:], site.ports[1:]
        stack.callback(site.stop)
        site.environment["GATEWAY_OUTBOUND_CA_FILE"] = str(trusted)
        made = json.loads(site.manage("shell", "--no-imports", "-c", SET_UP).stdout)
        site.start_background()
        site.start_web()
        speaker = site.speaker(made["token"], made["entity"])
        paid, row = _pay_checkout(site, speaker, processor)
        yield row
        yield _receive_webhook(shop, paid, made["secret"])
        yield _settle(site, speaker, processor, paid, made["entity"], folder)
        yield _dispute(site, speaker, shop, processor, paid, made["account"])
        yield Row(
            trial="live: addresses",
            done="webhook endpoints at this machine, in a private network and without TLS",
            seen=f"refused: {', '.join(made['refused']) or 'none'}",
            fine=tuple(made["refused"]) == REFUSED,
        )


def _pay_checkout(site: Site, speaker: Speaker, processor: CardApi) -> tuple[str, Row]:
    opened = speaker.ask(
        "POST", "/v1/checkouts",
        {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "merchantTransactionId": "order-4711",
         "shopperResultUrl": f"https://{SHOP}/result"},
    )  # fmt: skip
    checkout = str(opened.json.get("id"))
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    sent = _post(speaker, f"/v1/checkouts/{checkout}/payment", urlencode(SHOPPER).encode(), form)
    result = speaker.ask("GET", f"/v1/checkouts/{checkout}/payment?entityId={speaker.entity}")
    paid = str(result.json.get("id", ""))
    stands = processor.stands(paid)
    return paid, Row(
        trial="live: a checkout is paid",
        done="a checkout is made with the token, its form posted by a shopper without one, the result read by the shop",
        seen=f"{opened.status}, {sent}, {result.code}; the processor's books have {stands / 100:.2f} EUR",
        fine=sent == 200 and result.code == "000.000.000" and stands == 9_200,
    )


def _post(speaker: Speaker, path: str, body: bytes, headers: dict[str, str]) -> int:
    """HTTP status of a POST without a token, by a new connection."""
    assert speaker.context is not None
    line = http.client.HTTPSConnection(speaker.host, speaker.port, timeout=30, context=speaker.context)
    try:
        line.request("POST", path, body, headers)
        return line.getresponse().status
    finally:
        line.close()


def _receive_webhook(shop: ShopServer, paid: str, secret: str) -> Row:
    took = eventually("the webhook", lambda: shop.about(paid, "DB"), WAIT_S)
    genuine = all(_is_signed(hook, secret) for hook in shop.about(paid, "DB"))
    return Row(
        trial="live: its webhook",
        done="the merchant's server has a certificate of an authority that GATEWAY_OUTBOUND_CA_FILE names",
        seen=f"came over https after {took:.1f} s, signature {'right' if genuine else 'wrong'}",
        fine=genuine,
    )


def _is_signed(hook: Hook, secret: str) -> bool:
    """Standard Webhooks, https://www.standardwebhooks.com."""
    text = f"{hook.headers['webhook-id']}.{hook.headers['webhook-timestamp']}.".encode() + hook.body
    expected = b64encode(hmac.new(bytes.fromhex(secret), text, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(f"v1,{expected}", one) for one in hook.headers["webhook-signature"].split())


def _settle(site: Site, speaker: Speaker, processor: CardApi, paid: str, entity: str, folder: Path) -> Row:
    (intent,) = [one for one in processor.of("payment_intent") if one["metadata"].get("tollhouse_payment") == paid]
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    values = {
        "ReconciliationType": "SETTLED", "PaymentType": "DEBIT", "ClearingInstituteMerchantId": "acct_1",
        "SettlementReference": "payout-1", "ConnectorTxId1": intent["id"], "Amount": "92.00", "Currency": "EUR",
        "SettlementAmount": "92.00", "SettlementCurrency": "EUR", "SettlementDate": day,
    }  # fmt: skip
    file = folder / "settled.csv"
    file.write_text(";".join(values) + "\r\n" + ";".join(values.values()) + "\r\n")
    told = site.manage("settlement_file", str(file), "--institute", "card").stdout.strip()
    asked = urlencode({"entityId": entity, "date.from": day, "date.to": day})
    report = speaker.ask("GET", f"/v1/reports/reconciliations?{asked}")
    sums = [(one["count"], one["amount"]) for one in report.json.get("aggregations", [])]
    return Row(
        trial="live: settlement",
        done="the institute's file of one line is taken in; the report of the day is read",
        seen=f"{told.split(';')[1].strip() if ';' in told else told}; report {report.status}, {sums}",
        fine="1 matched" in told and sums == [(1, "92.00")],
    )


def _dispute(site: Site, speaker: Speaker, shop: ShopServer, processor: CardApi, paid: str, account: str) -> Row:
    (intent,) = [one for one in processor.of("payment_intent") if one["metadata"].get("tollhouse_payment") == paid]
    dispute = processor.dispute(intent, 9_200, "fraudulent", "needs_response")
    event = {"id": f"evt_{uuid.uuid4().hex}", "object": "event", "type": "charge.dispute.created",
             "data": {"object": {"id": dispute["id"]}}}  # fmt: skip
    body = json.dumps(event).encode()
    now = int(time.time())
    signature = hmac.new(SIGNING.encode(), f"{now}.".encode() + body, hashlib.sha256).hexdigest()
    forged = _tell(speaker, account, body, f"t={now},v1={'0' * 64}")
    told = _tell(speaker, account, body, f"t={now},v1={signature}")
    took = eventually("the chargeback's webhook", lambda: shop.about(paid, "CB"), WAIT_S)
    query = f"/v1/query/{paid}?entityId={speaker.entity}&includeLinkedTransactions=true"
    kinds = [one["paymentType"] for one in speaker.ask("GET", query).json["payments"]]
    return Row(
        trial="live: a dispute",
        done="the processor's event of a dispute comes in through the proxy, forged and genuine",
        seen=f"{forged} and {told}; after {took:.1f} s the shop was told of the CB; chain {', '.join(sorted(kinds))}",
        fine=forged in (400, 401, 403) and told == 200 and sorted(kinds) == ["CB", "DB"],
    )


def _tell(speaker: Speaker, account: str, body: bytes, signature: str) -> int:
    headers = {"Content-Type": "application/json", "Stripe-Signature": signature}
    return _post(speaker, f"/connectors/stripe/{account}", body, headers)


if __name__ == "__main__":
    sys.exit(main())

"""Providers of real wallets: their configuration, and who vouches for a page. Source: docs/decisions/0028."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from io import StringIO
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client, override_settings

from checkout import merchant_validation, session
from checkout.brand_selection import REASON_NO_WALLET_PROVIDER, select_brands
from checkout.models import WalletProvider
from checkout.wallet_providers import parse_origin
from gateway.models import AcquirerAccount
from gateway.vault.rewrap import SEALED_COLUMNS
from tests.support.client import Answer, form
from tests.support.fixtures import Shop
from tests.support.receivers import answering, receiving
from tests.support.shopper import Browser, open_checkout
from tests.support.wallet_providers import Providers, wallet_providers

pytestmark = pytest.mark.django_db

SESSION = {
    "name": "ProviderSession", "merchantId": "merchant.shop.example", "displayName": "Shop", "countryCode": "DE",
    "domains": ["shop.example"], "networks": ["visa"], "validationHosts": ["https://vouch.provider.example"],
}  # fmt: skip
CLIENT = {
    "name": "provider.Client", "script": "https://pay.provider.example/pay.js", "networks": ["VISA"],
    "tokenization": {"type": "DIRECT", "parameters": {"protocolVersion": "ECv2"}},
}  # fmt: skip
ORIGINS = {"WALLET1": ["https://vouch.provider.example"], "WALLET2": ["https://pay.provider.example"]}


@pytest.fixture
def origins() -> Iterator[None]:
    with override_settings(GATEWAY_WALLET_ORIGINS=ORIGINS):
        yield


def configure(shop: Shop, folder: Path, document: Any) -> None:
    file = folder / "configuration.json"
    file.write_text(json.dumps({"walletProviders": document}))
    call_command("configure", "--entity", shop.channel.entity_id, str(file), stdout=StringIO())


def faults(shop: Shop, folder: Path, document: Any) -> str:
    with pytest.raises(CommandError) as raised:
        configure(shop, folder, document)
    return str(raised.value)


def identity(folder: Path, host: str = "shop.example") -> ssl.SSLContext:
    """Certificate and key of a merchant, in files, and what trusts and shows them as a server of 127.0.0.1."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    (folder / "identity.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "identity.pem", folder / "key.pem")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(folder / "identity.pem")
    return context


FILES = {"certificateFile": "identity.pem", "keyFile": "key.pem"}


def test_providers_are_kept_shown_without_secrets_and_taken_away(shop: Shop, tmp_path: Path, origins: None) -> None:
    """What --show prints may be applied again: the identity stays; null takes a provider away."""
    identity(tmp_path)
    configure(shop, tmp_path, {"wallet1": SESSION | FILES, "wallet2": CLIENT})
    kept = WalletProvider.objects.get(wallet="wallet1")
    assert kept.identity_sealed is not None
    assert any(column.model is WalletProvider for column in SEALED_COLUMNS)
    out = StringIO()
    call_command("configure", "--entity", shop.channel.entity_id, "--show", stdout=out)
    shown = json.loads(out.getvalue())["walletProviders"]
    assert "PRIVATE" not in out.getvalue()
    assert shown["wallet3"] is None
    configure(shop, tmp_path, shown)
    again = WalletProvider.objects.get(wallet="wallet1")
    assert (again.pk, bytes(again.identity_sealed or b"")) == (kept.pk, bytes(kept.identity_sealed))
    configure(shop, tmp_path, {"wallet1": None})
    assert [row.wallet for row in WalletProvider.objects.all()] == ["wallet2"]


@pytest.mark.parametrize(
    "document,words",
    [
        ({"wallet2": CLIENT | {"script": "https://evil.example/pay.js"}}, "GATEWAY_WALLET_ORIGINS has for WALLET2"),
        ({"wallet2": CLIENT | {"script": "http://pay.provider.example/pay.js"}}, "must be an https address"),
        ({"wallet2": CLIENT | {"script": "https://a:b@pay.provider.example/"}}, "must be an https address"),
        ({"wallet2": CLIENT | {"name": "a.b; alert(1)"}}, "the name of something in the page"),
        ({"wallet2": CLIENT | {"scrypt": "x"}}, "did you mean script?"),
        ({"wallet2": CLIENT | {"tokenization": {"type": "OTHER", "parameters": {}}}}, "PAYMENT_GATEWAY, DIRECT"),
        ({"wallet1": SESSION | {"validationHosts": ["https://vouch.provider.example/x"]}}, "must be an origin"),
        ({"wallet1": SESSION | {"validationHosts": ["https://else.example"]}}, "validationHosts[0]: is no host"),
        ({"wallet1": SESSION | {"domains": ["https://shop.example"]}}, "must be a host in lower case"),
        ({"wallet1": SESSION | {"certificateFile": "identity.pem"}}, "give both certificateFile and keyFile"),
        ({"wallet1": SESSION | {"certificateFile": "none.pem", "keyFile": "key.pem"}}, "cannot be read as text"),
        ({"wallet1": SESSION | {"certificateFile": "key.pem", "keyFile": "key.pem"}}, "is no certificate in PEM"),
        ({"wallet1": SESSION | {"certificateFile": "identity.pem", "keyFile": "other.pem"}}, "not the key of"),
        ({"wallet3": {"method": "nowhere"}}, "walletProviders.wallet3.method"),
    ],
)
def test_faults_of_a_provider_are_named(shop: Shop, tmp_path: Path, origins: None, document: Any, words: str) -> None:
    identity(tmp_path)
    other = ec.generate_private_key(ec.SECP256R1())
    (tmp_path / "other.pem").write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    assert words in faults(shop, tmp_path, document)
    assert not WalletProvider.objects.exists()


def test_live_wants_the_merchant_s_identity_and_offers_no_wallet_without_a_provider(
    shop: Shop, tmp_path: Path, origins: None
) -> None:
    """There is no sheet of ours in live; and http is for a loopback of the test environment only."""
    AcquirerAccount.objects.create(channel=shop.channel, connector="stripe", name="A")
    browser = open_checkout(shop.api)
    configure(shop, tmp_path, {"wallet2": CLIENT})
    with override_settings(IS_LIVE=True):
        assert "certificateFile: is required" in faults(shop, tmp_path, {"wallet1": SESSION})
        assert parse_origin("http://127.0.0.1:8000/x") == ""
        row = session.find_checkout(browser.checkout)
        assert row is not None
        found = select_brands(row, ["WALLET1", "WALLET2", "VISA"])
    assert found.brands == ("WALLET2", "VISA")
    assert found.hidden == {"WALLET1": REASON_NO_WALLET_PROVIDER}


def test_a_page_learns_of_a_provider_what_it_needs(shop: Shop, tmp_path: Path, origins: None) -> None:
    configure(shop, tmp_path, {"wallet1": SESSION, "wallet2": CLIENT})
    wallets = open_checkout(shop.api).config("WALLET1 WALLET2 WALLET3 VISA").body["wallets"]
    assert {code: one["simulated"] for code, one in wallets.items()} == {
        "WALLET1": False,
        "WALLET2": False,
        "WALLET3": True,
    }
    assert wallets["WALLET1"]["provider"] == {
        "api": "session",
        "name": "ProviderSession",
        "version": 3,
        "merchantId": "merchant.shop.example",
        "displayName": "Shop",
        "countryCode": "DE",
        "networks": ["visa"],
        "capabilities": ["supports3DS"],
    }
    assert wallets["WALLET2"]["provider"]["api"] == "client"
    assert wallets["WALLET3"]["provider"] is None
    assert wallets["WALLET2"]["testTokens"] == []


# --- who vouches for a page -----------------------------------------------------------------------------------------


@pytest.fixture
def provider(shop: Shop, tmp_path: Path) -> Iterator[Providers]:
    with wallet_providers() as found, override_settings(GATEWAY_WALLET_ORIGINS={"WALLET1": [found.url]}):
        configure(shop, tmp_path, {"wallet1": SESSION | {"validationHosts": [found.url]}})
        yield found


def ask(browser: Browser, url: str, *, origin: str = "https://shop.example", brand: str = "WALLET1") -> Answer:
    path = f"/v1/checkouts/{browser.checkout}/wallet-session"
    body = form([("paymentBrand", brand), ("validationUrl", url)])
    headers = {"Origin": origin}
    return Answer(Client().generic("POST", path, body, "application/x-www-form-urlencoded", headers=headers))


def test_the_provider_s_session_goes_to_the_page_as_it_is(shop: Shop, provider: Providers) -> None:
    answer = ask(open_checkout(shop.api), f"{provider.url}/vouch?for=us")
    assert (answer.status, answer.code) == (200, "000.000.100")
    assert answer.body["session"] == {"merchantSessionIdentifier": "M1"}
    assert answer.headers["Access-Control-Allow-Origin"] == "*"
    assert provider.asked[0]["initiativeContext"] == "shop.example"


@pytest.mark.parametrize(
    "change,names",
    [
        ({"url": "http://169.254.169.254/latest"}, {"validationUrl"}),
        ({"url": "file:///etc/passwd"}, {"validationUrl"}),
        ({"url": "{provider}@127.0.0.1:1/"}, {"validationUrl"}),
        ({"url": "{provider}/" + "x" * 3_000}, {"validationUrl"}),
        ({"url": ""}, {"validationUrl"}),
        ({"origin": "https://evil.example"}, {"Origin"}),
        ({"origin": "null"}, {"Origin"}),
        ({"origin": "http://[x"}, {"Origin"}),
        ({"url": "https://[x"}, {"validationUrl"}),
        ({"brand": "WALLET2"}, {"paymentBrand"}),
        ({"origin": "https://evil.example", "url": "https://evil.example"}, {"Origin", "validationUrl"}),
    ],
)
def test_nobody_else_is_asked_for_nobody_else_s_page(
    shop: Shop, provider: Providers, change: dict[str, str], names: set[str]
) -> None:
    """The page says where to ask; only hosts of the configuration count, and only for the merchant's own domains."""
    wanted = {"url": f"{provider.url}/vouch"} | {
        name: value.replace("{provider}", provider.url) for name, value in change.items()
    }
    answer = ask(open_checkout(shop.api), **wanted)
    assert (answer.status, answer.code) == (400, "200.300.404")
    assert {error["name"] for error in answer.body["result"]["parameterErrors"]} == names
    assert not provider.asked


def test_an_operator_s_setting_bounds_what_was_configured_before(shop: Shop, provider: Providers) -> None:
    with override_settings(GATEWAY_WALLET_ORIGINS={}):
        assert ask(open_checkout(shop.api), f"{provider.url}/vouch").code == "200.300.404"
    assert not provider.asked


@pytest.mark.parametrize(
    "status,session,words",
    [
        (503, {}, "HTTP 503"),
        (302, {}, "HTTP 302"),
        (200, ["no"], "no JSON object"),
        (200, {"x": "y" * 70_000}, "no JSON object"),
    ],
)
def test_a_provider_that_gives_no_session_is_told(
    shop: Shop, provider: Providers, status: int, session: Any, words: str
) -> None:
    provider.status, provider.session = status, session
    answer = ask(open_checkout(shop.api), f"{provider.url}/vouch")
    assert (answer.status, answer.code) == (400, "900.100.100")
    assert words in answer.body["result"]["description"]


def test_few_sessions_are_asked_for_at_a_time(shop: Shop, provider: Providers, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/decisions/0168: strangers cause them, and a provider that hangs must not hold every thread."""
    checkout, running = open_checkout(shop.api), threading.BoundedSemaphore(1)
    monkeypatch.setattr(merchant_validation, "_running", running)
    with running:
        refused = ask(checkout, f"{provider.url}/vouch")
    assert (refused.code, provider.asked) == ("900.100.100", [])
    for _ in range(2):
        assert ask(checkout, f"{provider.url}/vouch").status == 200


def test_a_provider_s_name_that_leads_inside_is_not_called(
    shop: Shop, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Design goal R10: the operator names hosts, and whoever answers for their names chooses the addresses."""
    settings.GATEWAY_OUTBOUND_LOOPBACK = False
    real = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *more, **named: real("127.0.0.1" if host == "vouch.provider.example" else host, *more, **named),
    )
    with receiving(answering(200, b"{}")) as receiver:
        origin = f"https://vouch.provider.example:{receiver.port}"
        settings.GATEWAY_WALLET_ORIGINS = {"WALLET1": [origin]}
        configure(shop, tmp_path, {"wallet1": SESSION | {"validationHosts": [origin]}})
        assert ask(open_checkout(shop.api), f"{origin}/vouch").code == "900.100.100"
    assert receiver.connections == 0


def test_a_provider_that_drips_its_answer_is_left_at_the_deadline(
    shop: Shop, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shopper's request holds a thread of the web server for as long."""
    monkeypatch.setattr(merchant_validation, "VALIDATION_TIMEOUT_S", 1.0)
    ended = threading.Event()

    def drip(line: socket.socket, request: bytes) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\n")
        for _ in range(40):
            line.sendall(b"X-More: 1\r\n")
            if ended.wait(0.25):
                return
        line.sendall(b"Content-Length: 2\r\n\r\n{}")

    with receiving(drip) as receiver:
        origin = f"http://127.0.0.1:{receiver.port}"
        settings.GATEWAY_WALLET_ORIGINS = {"WALLET1": [origin]}
        configure(shop, tmp_path, {"wallet1": SESSION | {"validationHosts": [origin]}})
        answer = ask(open_checkout(shop.api), f"{origin}/vouch")
        ended.set()
    assert (answer.code, "timed_out" in answer.body["result"]["description"]) == ("900.100.100", True)


def test_an_unknown_checkout_learns_nothing(provider: Providers) -> None:
    assert ask(Browser("A" * 32 + "-node01"), f"{provider.url}/vouch").status == 404
    assert not provider.asked


def test_the_merchant_shows_its_certificate(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The provider knows the merchant by TLS; without the identity it hangs up."""
    served = identity(tmp_path)
    seen: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen.append(self.connection.getpeercert())  # type: ignore[attr-defined]
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    # Whose certificate is trusted is the machine's affair: here, this one's.
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "identity.pem"))
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = served.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        origin = f"https://127.0.0.1:{server.server_address[1]}"
        with override_settings(GATEWAY_WALLET_ORIGINS={"WALLET1": [origin]}):
            configure(shop, tmp_path, {"wallet1": SESSION | {"validationHosts": [origin]}})
            plain = WalletProvider.objects.get()
            with pytest.raises(merchant_validation.MerchantValidationError):
                merchant_validation.request_merchant_session(plain, f"{origin}/", "shop.example")
            configure(shop, tmp_path, {"wallet1": SESSION | FILES | {"validationHosts": [origin]}})
            known = WalletProvider.objects.get()
            assert merchant_validation.request_merchant_session(known, f"{origin}/", "shop.example") == {}
        server.shutdown()
    assert seen[0]["subject"][0][0] == ("commonName", "shop.example")

"""No address that a merchant or client chose leads into our own network. Source: decisions, section 6; design goal
R10."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from config.launcher.var_folder import PROJECT_ROOT
from gateway.outbound import CallFailure, address_guard, call_url
from tests.support.receivers import answering, receiving

_seen: list[Any] | None = None


def _note(event: str, args: tuple[Any, ...]) -> None:
    if event == "socket.connect" and _seen is not None and args[0].type == socket.SOCK_STREAM:
        _seen.append(args[1])


sys.addaudithook(_note)


@pytest.fixture
def connects() -> Iterator[list[Any]]:
    """Every address that this process tries to connect to by TCP, whatever library asks."""
    global _seen
    _seen = []
    yield _seen
    _seen = None


class Resolver:
    """A name server that is not ours: it answers what it likes, the next time something else."""

    def __init__(self, answers: dict[str, list[list[str]]]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self._real = socket.getaddrinfo

    def __call__(self, host: Any, port: Any, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> Any:
        if host not in self.answers:
            return self._real(host, port, family, type, proto, flags)
        if flags & socket.AI_NUMERICHOST:
            raise socket.gaierror(socket.EAI_NONAME, "no number")
        self.asked.append(host)
        answers = self.answers[host]
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            (
                socket.AF_INET6 if ":" in address else socket.AF_INET,
                socket.SOCK_STREAM,
                6,
                "",
                (address, port, 0, 0) if ":" in address else (address, port),
            )
            for address in addresses
        ]


HOSTILE = (
    "http://127.0.0.1:{port}/",
    "http://127.1:{port}/",
    "http://0x7f000001:{port}/",
    "http://2130706433:{port}/",
    "http://017700000001:{port}/",
    "http://0x7f.0.0x0.1:{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST.:{port}/",
    "http://①②⑦.⓪.⓪.①:{port}/",
    "http://[::1]:{port}/",
    "http://[::]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[64:ff9b::7f00:1]:8000/",
    "http://[64:ff9b::a9fe:a9fe]/latest/meta-data/",
    "http://[2002:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25lo]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/latest/meta-data/",
    "http://[ff02::1]/",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://100.100.100.200/",
    "http://192.0.0.192/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://private.example/",
    "http://both.example/",
    "https://mapped.example/",
    "http://user:password@93.184.215.14/",
    "http://93.184.215.14@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}#@93.184.215.14/",
    "http://127.0.0.1:{port}\\@93.184.215.14/",
    "http://127.0.0.1:{port}\t/",
    "http://%31%32%37.0.0.1:{port}/",
    "http://93.184.215.14:22/",
    "http://93.184.215.14:25/",
    "http://93.184.215.14:6379/",
    "http://93.184.215.14:5432/",
    "http://93.184.215.14:0/",
    "http://93.184.215.14:99999/",
    "ftp://93.184.215.14/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:{port}/_x",
    "javascript:alert(1)",
    "//127.0.0.1:{port}/",
    "http:///path",
    "http://",
    "",
    "http://" + "a" * 2_100 + ".example/",
)
NAMES = {
    "private.example": [["10.1.2.3"]],
    "both.example": [["93.184.215.14", "127.0.0.1"]],
    "mapped.example": [["::ffff:10.0.0.1"]],
}


@pytest.mark.parametrize("url", HOSTILE)
def test_a_hostile_address_is_not_connected_to(
    url: str, connects: list[Any], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.GATEWAY_OUTBOUND_LOOPBACK = False
    monkeypatch.setattr(socket, "getaddrinfo", Resolver({name: list(told) for name, told in NAMES.items()}))
    with receiving(answering()) as receiver:
        outcome = call_url("POST", url.replace("{port}", str(receiver.port)), body=b"x", timeout_s=30)
    assert (outcome.failure, outcome.status) == (CallFailure.FORBIDDEN, None)
    assert outcome.reason
    assert connects == []


def test_a_name_that_answers_differently_the_second_time_is_asked_once(
    connects: list[Any], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DNS rebinding: what was checked is what is connected to."""
    settings.GATEWAY_OUTBOUND_LOOPBACK = False
    with receiving(answering()) as receiver:
        resolver = Resolver({"rebinding.example": [["240.0.0.1"], ["127.0.0.1"]], "late.example": [["127.0.0.1"]]})
        monkeypatch.setattr(socket, "getaddrinfo", resolver)
        # The first answer stands for a public address here: nothing may leave the machine that runs the tests.
        monkeypatch.setattr(address_guard, "is_public_address", lambda address: str(address) == "240.0.0.1")
        monkeypatch.setattr(socket.socket, "connect", _refusing(socket.socket.connect))
        outcome = call_url("GET", "http://rebinding.example:8080/", timeout_s=30)
        assert resolver.asked == ["rebinding.example"]
        assert (outcome.failure, connects) == (CallFailure.UNREACHABLE, [("240.0.0.1", 8080)])
        again = call_url("GET", "http://rebinding.example:8080/", timeout_s=30)
    assert again.failure is CallFailure.FORBIDDEN
    assert len(connects) == 1
    assert receiver.connections == 0


def _refusing(real: Any) -> Any:
    """The network: nobody listens at the address that stands for a public one."""

    def connect(line: socket.socket, address: Any) -> None:
        if line.type == socket.SOCK_STREAM and address[0] == "240.0.0.1":
            sys.audit("socket.connect", line, address)
            raise ConnectionRefusedError(111, "Connection refused")
        real(line, address)

    return connect


def test_in_the_test_environment_a_local_receiver_is_called_but_never_our_own_ports(
    connects: list[Any], settings: Settings
) -> None:
    settings.GATEWAY_OUTBOUND_LOOPBACK = True
    with receiving(answering(204, b"")) as receiver:
        assert call_url("POST", receiver.url, body=b"{}", timeout_s=30).status == 204
        connects.clear()
        settings.GATEWAY_BASE_URL = f"http://127.0.0.1:{receiver.port}"
        own = call_url("POST", receiver.url, body=b"{}", timeout_s=30)
        assert own.failure is CallFailure.FORBIDDEN
        settings.GATEWAY_BASE_URL = "http://testserver"
        settings.CELERY_BROKER_URL = f"redis://:secret@127.0.0.1:{receiver.port}/0"
        assert call_url("POST", f"http://localhost:{receiver.port}/", timeout_s=30).failure is CallFailure.FORBIDDEN
        settings.CELERY_BROKER_URL = "memory://"
        settings.GATEWAY_STUB_ACQUIRER = f"127.0.0.1:{receiver.port}"
        assert call_url("POST", receiver.url, timeout_s=30).failure is CallFailure.FORBIDDEN
        settings.GATEWAY_STUB_ACQUIRER = ""
        settings.GATEWAY_OUTBOUND_NEVER_PORTS = [receiver.port]
        assert call_url("POST", receiver.url, timeout_s=30).failure is CallFailure.FORBIDDEN
    postgres = settings.DATABASES["default"]["PORT"] or 5432
    assert call_url("POST", f"http://127.0.0.1:{postgres}/", timeout_s=30).failure is CallFailure.FORBIDDEN
    assert call_url("POST", "http://127.0.0.1:22/", timeout_s=30).failure is CallFailure.FORBIDDEN
    assert (
        call_url("POST", f"http://[::ffff:127.0.0.1]:{receiver.port}/", timeout_s=30).failure is CallFailure.FORBIDDEN
    )
    assert call_url("POST", "http://169.254.169.254/", timeout_s=30).failure is CallFailure.FORBIDDEN
    assert connects == []


def test_behind_a_proxy_the_web_server_s_own_port_is_not_called(settings: Settings) -> None:
    """Found in use: in a test environment behind a proxy a merchant's webhook could call the node itself, which takes
    callers of its own machine for the operator's (its figures at /metrics)."""
    settings.GATEWAY_BASE_URL = "https://pay.example.com"
    assert int(os.environ.get("PORT", "8000")) in address_guard.list_own_ports()


@pytest.mark.parametrize("text", ["93.184.215.14", "8.8.8.8", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450:4001::1"])
def test_public_addresses_pass(text: str) -> None:
    assert address_guard.is_public_address(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "url, host, port, path, authority",
    [
        ("http://shop.example", "shop.example", 80, "/", "shop.example"),
        ("https://shop.example/hook?a=1#part", "shop.example", 443, "/hook?a=1", "shop.example"),
        ("https://SHOP.example:8443/ä?x=€", "shop.example", 8443, "/%C3%A4?x=%E2%82%AC", "shop.example:8443"),
        ("https://bücher.example//double", "xn--bcher-kva.example", 443, "/double", "xn--bcher-kva.example"),
        ("http://shop.example?q=1", "shop.example", 80, "/?q=1", "shop.example"),
    ],
)
def test_an_address_is_read_as_it_is_sent(url: str, host: str, port: int, path: str, authority: str) -> None:
    target = address_guard.parse_target(url)
    assert (target.host, target.port, target.path, target.authority) == (host, port, path, authority)


@pytest.mark.parametrize("name", ["a" * 200 + "!", "a-" * 100 + "!", "a." * 100 + "!", "_" * 252 + "!"])
@pytest.mark.timeout(60)
def test_a_long_name_with_one_wrong_letter_is_no_host_name(name: str) -> None:
    """A pattern with many ways to read a name took hours over it, and the web server's process with it."""
    with pytest.raises(address_guard.ForbiddenAddressError, match="no host name"):
        address_guard.parse_target(f"https://{name}/hook")


@pytest.mark.parametrize("name", ["a..b", ".a", "-a", "a" * 64, "a" * 64 + ".example", "a.b.."])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(address_guard.ForbiddenAddressError, match="no host name"):
        address_guard.parse_target(f"https://{name}/hook")


@pytest.mark.parametrize("name", ["a", "a.", "a_b.example", "xn--bcher-kva.example", "a" * 63 + ".example", "1and1.de"])
def test_a_name_that_dns_knows_is_read(name: str) -> None:
    assert address_guard.parse_target(f"https://{name}/hook").host == name


# --- every way out of the product -------------------------------------------------------------------------------------

OPENING = re.compile(
    r"\bhttp\.client\b|\burllib\.request\b|\burllib3\b|\bimport requests\b|\bhttpx\b|\baiohttp\b|\bftplib\b"
    r"|\bsmtplib\b|\bEmailMessage\b|\bsend_mail\b|\bcreate_connection\(|\bparamiko\.Transport\(|\bsocket\.socket\("
)
WAYS_OUT = {
    "gateway/outbound/connections.py": "the guarded client itself",
    "gateway/outbound/http_call.py": "the guarded client itself",
    "gateway/outbound/address_guard.py": "the guard: a socket that sends nothing",
    "reporting/sftp.py": "SFTP, to addresses that the guard resolved",
    "gateway/connectors/iso8583/connection.py": "acquirers' hosts, named by PSP staff, mostly in private networks",
    "gateway/connectors/stub/connections.py": "the bundled acquirer of the test environment, a setting",
    "gateway/backoffice/sign_in/provider_session.py": "the provider of single sign-on, a setting",
    "gateway/backoffice/sign_in/allauth_adapters.py": "the type of the same",
    "gateway/backoffice/sign_in/sign_in_views.py": "errors of the same",
    "gateway/payments/mandate_mails.py": "mails, to the operator's own mail server",
    "gateway/backoffice/follow_ups/approval_notice.py": "mails, to the operator's own mail server",
    "gateway/background/work_notice.py": "mails, to the operator's own mail server",
    "chargebacks/reminders.py": "mails, to the operator's own mail server",
    "checkout/receipts.py": "mails, to the operator's own mail server",
    "reporting/settlement/unsettled_reminders.py": "mails, to the operator's own mail server",
    "gateway/logs.py": "the name of a logger",
}
"""Files that open connections outward, or name what does, and why they may."""


def test_no_connection_leaves_the_product_past_the_guard() -> None:
    """Found in use: a wallet's provider was called by a client of its own, with no guard and no deadline of a whole."""
    found = {
        str(path.relative_to(PROJECT_ROOT))
        for folder in ("gateway", "checkout", "reporting", "chargebacks")
        for path in (PROJECT_ROOT / folder).rglob("*.py")
        if OPENING.search(path.read_text())
    }
    assert found == set(WAYS_OUT)

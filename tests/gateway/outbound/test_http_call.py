"""A call ends in time, reads a bounded answer, and goes nowhere else. Source: decisions, section 6."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from gateway.outbound import CallFailure, ConnectionPool, call_url, connections
from tests.support.certificates import make_certificate
from tests.support.receivers import answering, receiving


def test_an_answer_is_told_with_its_status_headers_and_first_bytes() -> None:
    with receiving(answering(202, b"taken", "X-Mine: 7")) as receiver:
        outcome = call_url("POST", f"{receiver.url}?a=b", headers={"X-Ours": "1"}, body=b'{"a":1}', timeout_s=30)
    assert (outcome.status, outcome.body, outcome.truncated, outcome.failure) == (202, b"taken", False, None)
    assert outcome.is_success
    assert outcome.headers["x-mine"] == "7"
    head, _, body = receiver.requests[0].partition(b"\r\n\r\n")
    assert body == b'{"a":1}'
    assert head.startswith(b"POST /hook?a=b HTTP/1.1\r\n")
    assert f"Host: 127.0.0.1:{receiver.port}\r\n".encode() in head
    assert b"X-Ours: 1" in head
    assert b"cookie" not in head.lower()


def test_a_request_without_a_body_says_so() -> None:
    with receiving(answering()) as receiver:
        assert call_url("GET", receiver.url, timeout_s=30).status == 200
        assert call_url("POST", receiver.url, timeout_s=30).status == 200
    got, posted = (request.lower().partition(b"\r\n\r\n") for request in receiver.requests)
    assert b"transfer-encoding" not in got[0] + posted[0]
    assert b"content-length" not in got[0]
    assert b"content-length: 0" in posted[0]
    assert got[2] == posted[2] == b""


def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    with receiving(answering()) as elsewhere, receiving(answering(302, b"", f"Location: {elsewhere.url}")) as receiver:
        outcome = call_url("GET", receiver.url, timeout_s=30)
    assert (outcome.status, elsewhere.connections) == (302, 0)


def test_cookies_and_proxies_of_the_environment_play_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    with receiving(answering()) as proxy, receiving(answering(200, b"", "Set-Cookie: a=b")) as receiver:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        lines = ConnectionPool()
        for _ in range(2):
            assert call_url("GET", receiver.url, timeout_s=30, lines=lines).status == 200
        lines.close()
    assert proxy.connections == 0
    assert b"cookie" not in receiver.requests[1].lower()


def _never(line: socket.socket, request: bytes) -> None:
    """Says nothing until the other side gives up."""
    line.recv(1)


def _drip_head(line: socket.socket, request: bytes) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    _drip(line)


def _drip_body(line: socket.socket, request: bytes) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n")
    _drip(line)


def _drip(line: socket.socket) -> None:
    """A byte every twentieth of a second: each one comes in time, all of them never do."""
    line.settimeout(0.05)
    while True:
        line.sendall(b"a")
        try:
            if not line.recv(1):
                return
        except TimeoutError:
            continue


@pytest.mark.parametrize("behave", [_never, _drip_head, _drip_body])
def test_a_receiver_that_drips_or_is_silent_holds_nobody_longer_than_the_deadline(behave: object) -> None:
    with receiving(behave) as receiver:  # type: ignore[arg-type]
        outcome = call_url("POST", receiver.url, body=b"x", timeout_s=0.4)
    assert (outcome.status, outcome.failure) == (None, CallFailure.TIMED_OUT)


def test_a_name_server_that_hangs_holds_nobody_longer_than_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    real, (hanging, release) = socket.getaddrinfo, socket.socketpair()

    def asked(host: str, *args: object, **named: object) -> object:
        if host != "slow.example":
            return real(host, *args, **named)  # type: ignore[arg-type]
        if named.get("flags", 0) & socket.AI_NUMERICHOST:  # type: ignore[operator]
            raise socket.gaierror(socket.EAI_NONAME, "no number")
        hanging.recv(1)
        raise socket.gaierror(socket.EAI_AGAIN, "at last")

    monkeypatch.setattr(socket, "getaddrinfo", asked)
    outcome = call_url("GET", "http://slow.example/", timeout_s=0.2)
    release.close()
    assert outcome.failure is CallFailure.UNREACHABLE
    hanging.close()


def _endless(line: socket.socket, request: bytes) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        line.sendall(b"1000\r\n" + b"a" * 4096 + b"\r\n")


def _endless_headers(line: socket.socket, request: bytes) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\n")
    while True:
        line.sendall(b"X-More: " + b"a" * 1_000 + b"\r\n")


def test_of_an_endless_body_the_first_bytes_are_read() -> None:
    with receiving(_endless) as receiver:
        outcome = call_url("GET", receiver.url, timeout_s=10, max_bytes=1_000)
    assert (outcome.status, len(outcome.body), outcome.truncated) == (200, 1_000, True)


@pytest.mark.parametrize(
    "behave",
    [
        _endless_headers,
        lambda line, request: line.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"),
        lambda line, request: line.sendall(b"\0" * 70_000),
        lambda line, request: line.close(),
    ],
)
def test_what_speaks_no_http_is_no_answer(behave: object) -> None:
    with receiving(behave) as receiver:  # type: ignore[arg-type]
        outcome = call_url("GET", receiver.url, timeout_s=10)
    assert (outcome.status, outcome.failure) == (None, CallFailure.BROKEN)
    assert outcome.reason


def test_nobody_listening_and_an_unknown_name_are_unreachable() -> None:
    with receiving(answering()) as receiver:
        pass
    assert call_url("GET", receiver.url, timeout_s=30).failure is CallFailure.UNREACHABLE
    assert call_url("GET", "http://nobody.invalid/", timeout_s=20).failure is CallFailure.UNREACHABLE


def test_a_header_cannot_smuggle_another_one() -> None:
    with pytest.raises(ValueError, match="X-A"):
        call_url("GET", "http://127.0.0.1:9999/", headers={"X-A": "1\r\nX-B: 2"})
    with pytest.raises(ValueError):
        call_url("DELETE", "http://127.0.0.1:9999/")


def test_kept_connections_are_used_again_and_a_closed_one_is_replaced() -> None:
    def once(line: socket.socket, request: bytes) -> None:
        line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        if b"last" in request:
            line.shutdown(socket.SHUT_RDWR)

    lines = ConnectionPool()
    with receiving(once) as receiver:
        assert [call_url("POST", receiver.url, body=b"a", timeout_s=30, lines=lines).status for _ in range(5)] == [
            200
        ] * 5
        assert receiver.connections == 1
        assert call_url("POST", receiver.url, body=b"last", timeout_s=30, lines=lines).status == 200
        assert call_url("POST", receiver.url, body=b"b", timeout_s=30, lines=lines).status == 200
        assert receiver.connections == 2
    lines.close()


def test_the_connections_of_receivers_that_are_never_called_again_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A merchant's addresses change as often as they like: each would keep a socket of the worker open."""
    lines = ConnectionPool()
    with receiving(answering()) as first, receiving(answering()) as second:
        assert call_url("GET", first.url, timeout_s=30, lines=lines).status == 200
        assert [len(idle) for idle in lines._idle.values()] == [1]
        old = next(iter(lines._idle.values()))[0]
        monkeypatch.setattr(connections, "MAX_CONNECTION_IDLE_S", 0.0)
        assert call_url("GET", second.url, timeout_s=30, lines=lines).status == 200
        assert old.is_closed
        assert [key[2] for key in lines._idle] == [second.port]
        lines.close()


def test_certificates_and_their_names_are_verified(tmp_path: Path, settings: Settings) -> None:
    right, authority = make_certificate(tmp_path, "127.0.0.1")
    wrong, other = make_certificate(tmp_path, "other.example")
    with receiving(answering(), tls=right) as receiver, receiving(answering(), tls=wrong) as misnamed:
        unknown = call_url("GET", f"https://127.0.0.1:{receiver.port}/", timeout_s=30)
        assert unknown.failure is CallFailure.TLS
        settings.GATEWAY_OUTBOUND_CA_FILE = str(authority)
        assert call_url("GET", f"https://127.0.0.1:{receiver.port}/", timeout_s=30).status == 200
        settings.GATEWAY_OUTBOUND_CA_FILE = str(other)
        assert call_url("GET", f"https://127.0.0.1:{misnamed.port}/", timeout_s=30).failure is CallFailure.TLS
    assert misnamed.requests == []


@pytest.mark.parametrize("behave", [_never, _drip_head, _drip_body])
def test_the_deadline_holds_over_tls(tmp_path: Path, settings: Settings, behave: object) -> None:
    context, authority = make_certificate(tmp_path, "127.0.0.1")
    settings.GATEWAY_OUTBOUND_CA_FILE = str(authority)
    with receiving(behave, tls=context) as receiver:  # type: ignore[arg-type]
        outcome = call_url("POST", f"https://127.0.0.1:{receiver.port}/", body=b"x", timeout_s=1)
    assert (outcome.status, outcome.failure, outcome.sent) == (None, CallFailure.TIMED_OUT, True)


def test_an_outcome_tells_whether_a_part_of_the_request_may_have_left() -> None:
    """What a processor of payments needs to know: before that, nobody can have accepted anything."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # and does not listen
        assert not call_url("POST", f"http://127.0.0.1:{held.getsockname()[1]}/", body=b"x", timeout_s=30).sent
    assert not call_url("POST", "http://10.0.0.1/", body=b"x").sent

    def hang_up(line: socket.socket, request: bytes) -> None:
        raise OSError

    with receiving(hang_up) as receiver:
        outcome = call_url("POST", receiver.url, body=b"x")
        assert (outcome.status, outcome.sent) == (None, True)
        secure = receiver.url.replace("http://", "https://")
        assert not call_url("POST", secure, body=b"x", timeout_s=0.3).sent
    with receiving(answering()) as receiver:
        assert call_url("POST", receiver.url, body=b"x").sent

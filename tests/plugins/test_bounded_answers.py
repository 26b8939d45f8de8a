"""What a server that is no gateway can do to a shop: the packages' requests end in time, with little memory, and
pretix's lead to no private network. The organiser of an event names its gateway."""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import httpx
import pytest

from tests.support.threads import run_coroutine

ROOT = Path(__file__).parents[2] / "clients"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def _load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(ROOT / "python" / "src"))
    import tollhouse

    yield tollhouse
    for name in [one for one in sys.modules if one.partition(".")[0] == "tollhouse"]:
        sys.modules.pop(name)


@pytest.fixture
def transport() -> ModuleType:
    return _load("pretix_transport", ROOT / "plugins" / "pretix" / "src" / "pretix_tollhouse" / "transport.py")


@contextmanager
def serving(pieces: Callable[[], Iterator[bytes]], pause_s: float) -> Iterator[str]:
    """A server that answers each request with ``pieces``, as long as the other side is there: one connection after the
    other, as many requests on each as come."""
    ended = threading.Event()

    def answer(connection: socket.socket) -> None:
        while connection.recv(65_536):
            for piece in pieces():
                connection.sendall(piece)
                if ended.wait(pause_s):
                    return

    def serve() -> None:
        while not ended.is_set():
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    answer(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(timeout=10)


def drip() -> Iterator[bytes]:
    yield HEAD + b"Content-Length: 1202\r\n\r\n"
    yield from itertools.repeat(b" ", 1200)
    yield b"{}"


def drip_head() -> Iterator[bytes]:
    yield HEAD + b"X-Slow: "
    yield from itertools.repeat(b"a", 1200)
    yield b"\r\nContent-Length: 0\r\n\r\n"


def flood() -> Iterator[bytes]:
    yield HEAD + b'\r\n{"a": "'
    yield from itertools.repeat(b"a" * 1_048_576)


@pytest.mark.parametrize(
    ("pieces", "pause_s", "step_s", "words"),
    [(drip, 0.05, 40, "did not end in time"), (flood, 0.0, 0, "longer than")],
)
def test_an_answer_without_end_is_given_up(
    client: Any, monkeypatch: pytest.MonkeyPatch, pieces: Any, pause_s: float, step_s: int, words: str
) -> None:
    # The bound's clock, not the machine's: it goes on by ``step_s`` with each look. httpx's own timeouts are far off.
    looks = itertools.count(0, step_s)
    monkeypatch.setattr(sys.modules["tollhouse._requests"], "time", SimpleNamespace(monotonic=lambda: next(looks)))
    with (
        serving(pieces, pause_s) as address,
        client.Tollhouse(address, token="x", timeout=60.0, max_retries=0) as gateway,
        pytest.raises(client.NoAnswerError, match=words),
    ):
        gateway.transactions.list(limit=1)


def test_no_encoding_is_asked_for_and_the_plain_one_is_read(client: Any) -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers["Accept-Encoding"])
        return httpx.Response(200, headers={"Content-Encoding": "identity"}, content=iter([b'{"records"', b": []}"]))

    with client.Tollhouse("https://gateway.example", token="x", transport=httpx.MockTransport(answer)) as gateway:
        assert gateway.transactions.list(limit=1)["records"] == []
    assert asked == ["identity"]


@pytest.mark.parametrize("encoding", ["gzip", "br", "GZIP", "identity, deflate", "no-such"])
def test_an_encoded_answer_is_refused_before_it_is_unpacked(client: Any, encoding: str) -> None:
    read = []

    def unread() -> Iterator[bytes]:
        read.append(encoding)
        yield b"wrong"

    async def unread_async() -> AsyncIterator[bytes]:
        for piece in unread():
            yield piece

    async def ask() -> None:
        transport = httpx.MockTransport(lambda request: httpx.Response(200, headers=headers, content=unread_async()))
        async with client.AsyncTollhouse(address, token="x", max_retries=0, transport=transport) as gateway:
            await gateway.transactions.list(limit=1)

    address, headers = "https://gateway.example", {"Content-Encoding": encoding}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, headers=headers, content=unread()))
    with (
        client.Tollhouse(address, token="x", max_retries=0, transport=transport) as gateway,
        pytest.raises(client.NoAnswerError, match="the answer is encoded"),
    ):
        gateway.transactions.list(limit=1)
    with pytest.raises(client.NoAnswerError, match="the answer is encoded"):
        run_coroutine(ask())
    assert read == []


def test_a_head_without_end_is_cut_in_pretix(transport: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "TIMEOUT_S", 0.5)
    monkeypatch.setattr(transport, "find_public_address", lambda host, port: host)
    with (
        serving(drip_head, 0.05) as address,
        httpx.Client(transport=transport.GuardedTransport(), timeout=60) as http,
        pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)),
    ):
        http.get(address)


def test_the_head_of_a_second_answer_is_cut_in_pretix_too(
    transport: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter([iter([HEAD + b"Content-Length: 2\r\n\r\n{}"])])
    monkeypatch.setattr(transport, "find_public_address", lambda host, port: host)
    with (
        serving(lambda: next(answers, None) or drip_head(), 0.05) as address,
        httpx.Client(transport=transport.GuardedTransport(), timeout=60) as http,
    ):
        assert http.get(address).json() == {}
        monkeypatch.setattr(transport, "TIMEOUT_S", 0.5)
        with pytest.raises((httpx.RemoteProtocolError, httpx.ReadError)):
            http.get(address)


def test_a_connection_made_after_the_time_is_cut_in_pretix(transport: ModuleType) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(60)
        watch = transport._Watch()
        watch.cut()
        stream = SimpleNamespace(get_extra_info=lambda info: ours)
        watch.follow("connection.connect_tcp.complete", {"return_value": stream})
        assert theirs.recv(1) == b""


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "192.88.99.1", "0.0.0.0", "::1", "::127.0.0.1",
        "::ffff:127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::7f00:1", "2002:7f00:1::1", "2001:0:7f00:1::", "fec0::1",
        "fd00::1", "fe80::1", "ff02::1", "3fff::1", "5f00::1",
    ],
)  # fmt: skip
def test_pretix_connects_to_no_private_address_in_any_writing(transport: ModuleType, host: str) -> None:
    with pytest.raises(httpx.ConnectError, match="private network"):
        transport.find_public_address(host, 443)


@pytest.mark.parametrize("host", ["1.1.1.1", "2606:4700:4700::1111"])
def test_pretix_connects_to_public_addresses(transport: ModuleType, host: str) -> None:
    assert transport.find_public_address(host, 443) == host

"""What a server that is no gateway can do to a shop: the packages' requests end in time, with little memory, and
pretix's lead to no private network. The organiser of an event names its gateway."""

from __future__ import annotations

import importlib.util
import itertools
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest

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
        monkeypatch.delitem(sys.modules, name)


@pytest.fixture
def transport() -> ModuleType:
    return _load("pretix_transport", ROOT / "plugins" / "pretix" / "src" / "pretix_tollhouse" / "transport.py")


@contextmanager
def serving(pieces: Callable[[], Iterator[bytes]], pause_s: float) -> Iterator[str]:
    """A server that answers one request with ``pieces``, as long as the other side is there."""
    ended = threading.Event()

    def answer() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65_536)
            for piece in pieces():
                try:
                    connection.sendall(piece)
                except OSError:
                    return
                if ended.wait(pause_s):
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()


def drip() -> Iterator[bytes]:
    yield HEAD + b"Content-Length: 402\r\n\r\n"
    yield from itertools.repeat(b" ", 400)
    yield b"{}"


def drip_head() -> Iterator[bytes]:
    yield HEAD + b"X-Slow: "
    yield from itertools.repeat(b"a", 400)
    yield b"\r\nContent-Length: 0\r\n\r\n"


def flood() -> Iterator[bytes]:
    yield HEAD + b'\r\n{"a": "'
    yield from itertools.repeat(b"a" * 1_048_576)


@pytest.mark.parametrize(
    ("pieces", "pause_s", "timeout", "words"),
    [(drip, 0.05, 0.5, "did not end in time"), (flood, 0.0, 60.0, "longer than")],
)
def test_an_answer_without_end_is_given_up(
    client: Any, pieces: Any, pause_s: float, timeout: float, words: str
) -> None:
    with (
        serving(pieces, pause_s) as address,
        client.Tollhouse(address, token="x", timeout=timeout, max_retries=0) as gateway,
        pytest.raises(client.NoAnswerError, match=words),
    ):
        gateway.transactions.list(limit=1)


def test_an_answer_that_cannot_be_unpacked_is_none(client: Any) -> None:
    def broken() -> Iterator[bytes]:
        yield HEAD + b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nwrong"

    with (
        serving(broken, 0.0) as address,
        client.Tollhouse(address, token="x", max_retries=0) as gateway,
        pytest.raises(client.NoAnswerError, match="DecodingError"),
    ):
        gateway.transactions.list(limit=1)


def test_a_head_without_end_is_cut_in_pretix(transport: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "TIMEOUT_S", 0.5)
    monkeypatch.setattr(transport, "find_public_address", lambda host, port: host)
    with (
        serving(drip_head, 0.05) as address,
        httpx.Client(transport=transport.GuardedTransport(), timeout=20) as http,
        pytest.raises(httpx.TransportError),
    ):
        http.get(address)


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

"""The peers start, listen on loopback alone and stop."""

from __future__ import annotations

from pathlib import Path

from tests.external.peers import program, running
from tests.support.ports import free_port


def test_an_independent_host_listens_and_stops(tmp_path: Path) -> None:
    port = free_port()
    with running([program("iso8583sim"), "serve", "--port", str(port)], port=port, folder=tmp_path) as peer:
        assert peer.port == port

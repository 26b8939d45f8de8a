"""A stub acquirer for tests: the real process, on a port and a log of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from config.launcher.process import spawn_process
from gateway.models import AcquirerAccount, Channel
from tests.support.stub_control import StubControl, read_log_entries

PATIENCE_S = 60.0
TIMEOUT_S = 1.5
"""What the acquirer may take: little, as every silence is waited for, and enough to answer on a busy machine."""


class StubProcess:
    """One acquirer: started, killed, started again on the same port and log."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "acquirer.jsonl"
        self._output = folder / "acquirer.out"
        self._child: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def control(self) -> StubControl:
        return StubControl(self.address)

    def start(self) -> None:
        module = [sys.executable, "-m", "gateway.connectors.stub.acquirer"]
        before = self._output.stat().st_size if self._output.exists() else 0
        command = [*module, "--port", str(self.port), "--log", str(self.log)]
        self._child = spawn_process(command, log=self._output, env=dict(os.environ))
        said = ""
        deadline = time.monotonic() + PATIENCE_S
        while not said.startswith("listening on") or not said.endswith("\n"):
            assert self._child.poll() is None, self._output.read_text()
            assert time.monotonic() < deadline, said
            time.sleep(0.01)
            said = self._output.read_text()[before:]
        self.port = int(said.rpartition(":")[2])

    def kill(self) -> None:
        """kill -9."""
        assert self._child is not None
        self._child.kill()
        self._child.wait()

    def stop(self) -> int:
        assert self._child is not None
        if self._child.poll() is None:
            self._child.send_signal(signal.SIGTERM)
        return self._child.wait(PATIENCE_S)

    def entries(self, **wanted: Any) -> list[dict[str, Any]]:
        """Lines of the log whose fields are as ``wanted``."""
        return [
            entry
            for entry in read_log_entries(self.log)
            if all(entry.get(name) == value for name, value in wanted.items())
        ]

    def wait_for(self, **wanted: Any) -> dict[str, Any]:
        """The first such line; it may still have to come."""
        deadline = time.monotonic() + PATIENCE_S
        while not (found := self.entries(**wanted)):
            assert time.monotonic() < deadline, f"never logged: {wanted}"
            time.sleep(0.01)
        return found[0]


@pytest.fixture
def acquirer(tmp_path: Path) -> Iterator[StubProcess]:
    """A running stub acquirer that the connector talks to, with TIMEOUT_S of patience."""
    stub = StubProcess(tmp_path)
    stub.start()
    with override_settings(GATEWAY_STUB_ACQUIRER=stub.address, GATEWAY_ACQUIRER_TIMEOUT_S=TIMEOUT_S):
        yield stub
    stub.stop()


def account_at_stub(channel: Channel, **values: Any) -> AcquirerAccount:
    return AcquirerAccount.objects.create(
        channel=channel, **{"connector": "stub", "acquirer_merchant_id": "M-1", **values}
    )

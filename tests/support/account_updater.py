"""An account updater whose answers a test sets, and a shop whose channel has it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.connectors.account_updater import CardInquiry, CardUpdate
from gateway.connectors.simulator.account_updater import SimulatedAccountUpdater
from gateway.models import Channel
from gateway.payments import account_update_batch, account_updates
from tests.support.fixtures import Shop


class Updater(SimulatedAccountUpdater):
    """An account updater whose answers a test sets."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = answers
        self.sent: list[tuple[str, bytes]] = []
        self.asked = 0

    def ask(self, inquiry: CardInquiry, *, deadline_s: float) -> CardUpdate:
        self.asked += 1
        found = self.answers.get("ask")
        if isinstance(found, Exception):
            raise found
        return found if found is not None else super().ask(inquiry, deadline_s=deadline_s)

    def send_file(self, name: str, content: bytes) -> None:
        self.sent.append((name, content))
        if (fault := self.answers.get("send")) is not None:
            raise fault

    def fetch_answer(self, name: str, content: bytes) -> bytes | None:
        if "fetch" in self.answers:
            found: bytes | None = self.answers["fetch"](content)
            return found
        return super().fetch_answer(name, content)


class Places(threading.BoundedSemaphore):
    """Places for questions that nobody waits for: who would is told so."""

    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        assert not blocking or timeout is not None
        return super().acquire(blocking, timeout)


@pytest.fixture
def updating(shop: Shop) -> Iterator[Shop]:
    """A shop whose channel has the account updater; no pause of an earlier test holds."""
    Channel.objects.filter(pk=shop.channel.pk).update(account_updater=True)
    account_updates._pause.end()
    yield shop
    account_updates._pause.end()


@pytest.fixture
def updater(updating: Shop, monkeypatch: pytest.MonkeyPatch) -> Updater:
    found = Updater()
    for module in (account_updates, account_update_batch):
        monkeypatch.setattr(module, "load_account_updater", lambda: found)
    return found

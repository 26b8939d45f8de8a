"""The short form of the duty of checkouts in parts: each move of a shopper through HTTP, without faults, and nothing is
found.

Source: docs/faults.md; docs/decisions/0129.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from gateway.access import audit_log
from gateway.configuration.apply import apply_configuration, find_configuration_target
from gateway.payments.shopper_return import expire_due_suspensions
from tests.faults import audit, books, held_parts
from tests.faults.client import Answer, Client, Journal
from tests.faults.held_parts import HELD_S, Shopper
from tests.faults.test_stored_cards_over_http import connect
from tests.support.clock import jump
from tests.support.fixtures import Shop
from tests.support.recovery import recover_after
from tests.support.stub import StubProcess

pytestmark = pytest.mark.django_db(transaction=True)

STORIES = (
    ("pay",), ("half", "pay"), ("decline", "pay"), ("release", "pay"), ("release",), ("half", "release"),
    ("two tabs",), ("two tabs", "pay"), ("leave",), ("half", "leave"),
)  # fmt: skip


class ClientOfPromptTimers(Client):
    """Recovery has come by before the state is asked for."""

    def state(self, checkout: str) -> Answer | None:
        recover_after(2.0)
        return super().state(checkout)


def test_checkouts_in_parts_are_paid_whole_or_not_at_all_at_the_acquirer_too(
    committed: Shop, acquirer: StubProcess, live_server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target = find_configuration_target(committed.channel.id)
    assert target is not None
    document: Mapping[str, Any] = held_parts.DOCUMENT
    apply_configuration(target, document, by=audit_log.COMMAND_LINE_ACTOR)
    monkeypatch.setattr(held_parts, "PAUSE_S", (0.0, 0.0))
    monkeypatch.setattr(held_parts, "ASK_EVERY_S", 0.02)
    port = urlsplit(live_server.url).port
    assert port is not None
    who: dict[str, Any] = {"port": port, "entity": committed.channel.entity_id, "token": committed.api.token or ""}
    client = ClientOfPromptTimers(**who, journal=Journal(path=tmp_path / "journal.jsonl"))
    other = Client(**who)
    shopper = Shopper(client, other, random.Random(22), threading.Event())
    for turn, moves in enumerate((*STORIES, *STORIES)):
        assert shopper.use_checkout(f"parts-{turn}", moves)
    jump(HELD_S)
    expire_due_suspensions()
    recover_after(60)
    client.close()
    other.close()
    log = acquirer.entries()
    with connect() as line:
        facts = held_parts.load_facts(line, committed.channel.entity_id, log)
        payments, aside, keys = books.ours(line), books.aside(line), books.keys(line)
    assert held_parts.find_all(facts) == []
    journal = books.journal([tmp_path / "journal.jsonl"])
    assert audit.find_all(payments, books.acquirer(log), journal, keys, [], aside) == []
    approved = [
        sum(one.status == "APPROVED" for one in held_parts.group_parts(facts).get(row.id, ()))
        for row in facts.checkouts
    ]
    assert len(approved) == 2 * len(STORIES)
    assert {0, 1, 2, 3} <= set(approved)
    assert any(amount < 0 for _, amount in facts.moves)

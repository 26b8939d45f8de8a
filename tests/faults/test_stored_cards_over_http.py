"""The short form of the duty of stored cards: each kind of card through HTTP, without faults, and nothing is found.

Source: docs/faults.md; docs/decisions/0126, 0135.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from django.db import connection

from gateway.access import audit_log
from gateway.configuration.apply import apply_configuration, find_configuration_target
from gateway.payments import account_update_batch, network_tokens
from tests.faults import audit, books, stored_cards
from tests.faults.client import Answer, Client, Journal
from tests.faults.stored_cards import CARDS, CLOSED, HOLDER, NEW_EXPIRY, NEW_NUMBER, Shopper
from tests.support.fixtures import Shop
from tests.support.stub import StubProcess

pytestmark = pytest.mark.django_db(transaction=True)


def connect() -> psycopg.Connection[Any]:
    """A connection of our own to the test's database: the comparison knows none of the product's code."""
    settings = connection.get_connection_params()
    known = {name: settings[name] for name in ("dbname", "user", "password", "host", "port") if settings.get(name)}
    return psycopg.connect(**known, autocommit=True)


class ClientOfPromptTimers(Client):
    """The timer of network tokens has come by before each request."""

    def pay(self, key: str, fields: Mapping[str, str], target: str = "", path: str = "") -> Answer | None:
        network_tokens.call_token_service_when_due()
        return super().pay(key, fields, target, path)


def test_what_stored_cards_were_charged_with_is_what_the_acquirer_has(
    committed: Shop, acquirer: StubProcess, live_server: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    target = find_configuration_target(committed.channel.id)
    assert target is not None
    document: Mapping[str, Any] = stored_cards.DOCUMENT
    apply_configuration(target, document, by=audit_log.COMMAND_LINE_ACTOR)
    monkeypatch.setattr(stored_cards, "PAUSE_S", (0.0, 0.0))
    port = urlsplit(live_server.url).port
    assert port is not None
    client = ClientOfPromptTimers(
        port=port,
        entity=committed.channel.entity_id,
        token=committed.api.token or "",
        journal=Journal(path=tmp_path / "journal.jsonl"),
    )
    shopper = Shopper(client, random.Random(22), threading.Event())
    for turn, (card, _) in enumerate((*CARDS, *CARDS)):
        # The second of each is charged by its shopper alone, so that a file asks about it first.
        monkeypatch.setattr(stored_cards, "BY_FILE_SHARE", 0.0 if turn < len(CARDS) else 1.0)
        monkeypatch.setattr(stored_cards, "NETWORK_SHARE", 0.0)
        shopper.use_card(f"stored-{turn}", card)
    account_update_batch.ask_about_due_cards()
    account_update_batch.run_account_updater()
    account_update_batch.run_account_updater()
    monkeypatch.setattr(stored_cards, "BY_FILE_SHARE", 0.0)
    for turn in range(4):
        shopper.use_card(f"again-{turn}", stored_cards.PLAIN)
    client.close()
    log = acquirer.entries()
    with connect() as other:
        facts = stored_cards.load_facts(other, committed.channel.entity_id, log)
        payments, aside, keys = books.ours(other), books.aside(other), books.keys(other)
    facts.stored, facts.events = shopper.stored, shopper.events
    assert stored_cards.find_all(facts) == []
    journal = books.journal([tmp_path / "journal.jsonl"])
    assert audit.find_all(payments, books.acquirer(log), journal, keys, [], aside) == []
    said = {(one.status, one.by_file) for one in facts.updates}
    assert {(said_of, by_file) for said_of in stored_cards.SAID.values() for by_file in (True, False)} <= said
    assert {shopper.stored[one.registration] for one in facts.updates if one.status in stored_cards.CHANGING} == {
        NEW_NUMBER, NEW_EXPIRY, CLOSED, HOLDER,
    }  # fmt: skip
    assert {"", "USED", "DECLINED", "UNAVAILABLE"} <= {one.use for one in facts.charges}
    assert len(facts.sent) > 2 * len(CARDS)

"""Every row of /testdata.json keeps what it promises; the same script proves it against a running gateway.

Source: Part A, What the service does, 5; check A5.5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.test import Client

from gateway.connectors.simulator.accounts import ACCOUNTS, BANK_ACCOUNTS
from gateway.connectors.simulator.cards import SIMULATED_CARDS
from gateway.pages import testdata
from gateway.payments import resume
from tests import promises
from tests.support.fixtures import Shop


@dataclass(frozen=True, slots=True)
class InProcess:
    """The same requests through Django's test client."""

    shop: Shop
    browser: Client = field(default_factory=Client)

    def api(self, method: str, path: str, fields: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        ask = {"POST": self.shop.api.post, "GET": self.shop.api.get, "DELETE": self.shop.api.delete}[method]
        answer = ask(path, fields)
        return answer.status, json.loads(answer.text)

    def browse(self, path: str, fields: Mapping[str, str] | None) -> tuple[int, str]:
        answer: Any = self.browser.get(path) if fields is None else self.browser.post(path, dict(fields))
        return answer.status_code, answer.headers.get("Location", "")

    def settle(self) -> None:
        resume.expire_due()


@pytest.mark.django_db
def test_every_promise_of_the_test_data_is_kept(shop: Shop) -> None:
    """A5.5: each row's promised result is reproduced by a script."""
    assert list(promises.broken(InProcess(shop))) == []


def test_every_card_account_and_token_is_on_the_page_and_in_the_data() -> None:
    """Issue: /testdata and /testdata.json list every card, account and token."""
    data = Client().get("/testdata.json").json()
    assert promises.promises(data) > len(SIMULATED_CARDS) + len(ACCOUNTS)
    page = Client().get("/testdata").content.decode()
    for group in testdata.account_groups():
        assert len(data[group.anchor]) == len(group.rows)
        for row in group.rows:
            assert row["account"] in page
            assert row["resultCode"] in page
    for row in (*data["redirects"], *data["transfers"]):
        assert row["resultCode"] in page


@pytest.mark.django_db
def test_a_broken_promise_is_seen(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof can fail."""
    row = testdata.account_row(BANK_ACCOUNTS[0]) | {"resultCode": "800.100.203"}
    rows = {**testdata.rows(), "bankAccounts": [row], "cards": [], "cvv": [], "postcodes": [], "redirects": []}
    monkeypatch.setattr(testdata, "rows", lambda: rows)
    found = list(promises.broken(InProcess(shop)))
    assert found == ["bankAccounts DE23100000001234567890 (Approved): promised 800.100.203, got 000.100.110"]

"""Every row of /testdata.json keeps what it promises; the same script proves it against a running gateway.

Source: Part A, What the service does, 5; check A5.5.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client, override_settings

from gateway.connectors.simulator.accounts import BANK_ACCOUNTS, SIMULATED_ACCOUNTS
from gateway.connectors.simulator.cards import SIMULATED_CARDS
from gateway.core import clock
from gateway.models import AccessToken, Channel, Merchant, Payment, SelfTest
from gateway.payments import shopper_return
from gateway.portal import self_test, testdata
from gateway.portal.self_test_checks import build_check_key, build_checks, run_checks
from tests.support.fixtures import Shop


@dataclass(frozen=True, slots=True)
class InProcess:
    """The same requests through Django's test client."""

    shop: Shop
    browser: Client = field(default_factory=Client)
    max_wait_s: float = 0.0

    def api(self, method: str, path: str, fields: Mapping[str, str]) -> tuple[int, dict[str, Any]]:
        ask = {"POST": self.shop.api.post, "GET": self.shop.api.get, "DELETE": self.shop.api.delete}[method]
        answer = ask(path, fields)
        return answer.status, json.loads(answer.text)

    def browse(self, path: str, fields: Mapping[str, str] | None) -> tuple[int, str]:
        answer: Any = self.browser.get(path) if fields is None else self.browser.post(path, dict(fields))
        return answer.status_code, answer.headers.get("Location", "")

    def settle(self) -> None:
        shopper_return.expire_due_suspensions()


@pytest.mark.django_db
def test_every_promise_of_the_test_data_is_kept(shop: Shop) -> None:
    """A5.5: each row's promised result is reproduced by a script."""
    assert list(run_checks(InProcess(shop))) == []


@pytest.mark.django_db
def test_a_published_row_gives_its_code_however_often_it_is_used(shop: Shop) -> None:
    """Decision 0049: three times within ten minutes of the merchant's clock, from one address and one device."""
    Channel.objects.filter(pk=shop.channel.pk).update(card_testing={"binFailures": 10})
    began = clock.merchant_now(Merchant.objects.get(pk=shop.merchant.pk))
    for number in range(3):
        assert list(run_checks(InProcess(shop))) == [], number
    assert clock.merchant_now(Merchant.objects.get(pk=shop.merchant.pk)) - began < timedelta(minutes=10)


@pytest.mark.django_db
def test_every_card_account_and_token_is_on_the_page_and_in_the_data() -> None:
    """Issue: /testdata and /testdata.json list every card, account and token."""
    data = Client().get("/testdata.json").json()
    assert len(build_checks(data)) > len(SIMULATED_CARDS) + len(SIMULATED_ACCOUNTS)
    page = Client().get("/testdata").content.decode()
    for group in testdata.list_account_groups():
        assert len(data[group.anchor]) == len(group.rows)
        for row in group.rows:
            assert row["account"] in page
            assert row["resultCode"] in page
    for row in (*data["redirects"], *data["transfers"]):
        assert row["resultCode"] in page


@pytest.mark.django_db
def test_a_broken_promise_is_seen(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof can fail."""
    row = testdata.render_account_row(BANK_ACCOUNTS[0]) | {"resultCode": "800.100.203"}
    rows = {
        **testdata.build_test_data(),
        "bankAccounts": [row],
        "cards": [],
        "cvv": [],
        "postcodes": [],
        "redirects": [],
    }
    monkeypatch.setattr(testdata, "build_test_data", lambda: rows)
    found = list(run_checks(InProcess(shop)))
    assert found == ["bankAccounts DE23100000001234567890 (Approved): promised 800.100.203, got 000.100.110"]


# --- the self-test --------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@override_settings(GATEWAY_SELF_TEST=True)
def test_every_row_is_tried_once_a_day_and_nothing_but_its_result_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue: "last self-test" of each row stands on the page."""
    rows = len(build_checks(testdata.build_test_data()))
    done = 0
    while tried := self_test.run_due_self_tests():
        assert tried <= self_test.MAX_SELF_TESTS_PER_RUN
        done += tried
    results = self_test.load_last_results()
    assert done == len(results) == rows
    assert {row: one.fault for row, one in results.items() if one.fault} == {}
    assert not Payment.objects.exists()
    assert not Merchant.objects.exists()
    assert not AccessToken.objects.exists()
    page = Client().get("/testdata").content.decode()
    assert page.count("data-self-test") == rows
    assert "not yet" not in page
    SelfTest.objects.filter(row="cards 4200000000000000").update(at=clock.real_now() - self_test.SELF_TEST_INTERVAL)
    assert self_test.run_due_self_tests() == 1


@pytest.mark.django_db
@override_settings(GATEWAY_SELF_TEST=True)
def test_a_row_that_does_not_keep_its_promise_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the page, by the command, and in the log."""
    row = testdata.build_test_data()["bankAccounts"][0]
    wrong = {
        **testdata.build_test_data(),
        "bankAccounts": [row | {"resultCode": "800.100.203"}],
        "cards": [],
        "redirects": [],
    }
    monkeypatch.setattr(self_test, "_list_checks", lambda: build_checks(wrong))
    with pytest.raises(CommandError, match="1 of"):
        call_command("self_test", stdout=(out := StringIO()))
    assert "promised 800.100.203, got 000.100.110" in out.getvalue()
    page = Client().get("/testdata").content.decode()
    assert "promised 800.100.203, got 000.100.110" in page
    assert "not yet" in page
    monkeypatch.setattr(self_test, "_open_gateway", lambda: None)
    assert {one.fault for one in self_test.run_all_self_tests()} == {"could not be tried: AttributeError"}


@pytest.mark.django_db
def test_nothing_is_tried_in_live_or_when_it_is_switched_off(live: None) -> None:
    assert self_test.run_due_self_tests() == 0
    with override_settings(GATEWAY_SELF_TEST=True):
        assert self_test.run_due_self_tests() == 0
        with pytest.raises(CommandError):
            call_command("self_test")
    assert not SelfTest.objects.exists()


def test_every_row_has_a_key_of_its_own() -> None:
    keys = [one.key for one in build_checks(testdata.build_test_data())]
    assert len(set(keys)) == len(keys)
    assert build_check_key("cards", testdata.build_test_data()["cards"][0]) in keys

"""Accounts at an acquirer over the wire: asked in clear, logged masked, answered by its own table.

Source: Part A, What the service does, 5 and 7; checks A1.7, A18.7; ruling D18.
"""

from __future__ import annotations

import pytest

from gateway.connectors.simulator.accounts import BANK_ACCOUNTS, TOKEN_ACCOUNTS, SimulatedAccount
from gateway.models import Payment
from tests.support.client import Answer, Api
from tests.support.fixtures import Shop
from tests.support.stub import StubProcess, account_at_stub

pytestmark = pytest.mark.django_db

FACE = {"amount": "92.00", "currency": "EUR", "paymentType": "DB", "testMode": "EXTERNAL"}
ROWS = [row for row in (*BANK_ACCOUNTS, *TOKEN_ACCOUNTS) if row.behaviour == "answer" and row.response != "PDNG"]


def pay(api: Api, row: SimulatedAccount, **more: str) -> Answer:
    return api.post("/v1/payments", FACE | dict(row.fields) | {name.replace("__", "."): v for name, v in more.items()})


@pytest.fixture
def external(shop: Shop, acquirer: StubProcess) -> Shop:
    account_at_stub(shop.channel)
    return shop


def test_the_acquirer_answers_accounts_by_the_same_table(external: Shop) -> None:
    """One process for all rows: starting it takes longer than asking it."""
    told = {row.title: pay(external.api, row).code for row in ROWS}
    promised = {row.title: row.code.replace("000.100.110", "000.100.112") for row in ROWS}
    promised["Check digits wrong: nobody is asked"] = "100.100.101"
    assert told == promised


def test_the_acquirers_log_holds_no_account_in_clear(external: Shop, acquirer: StubProcess) -> None:
    """Brief of the stub: the log keeps what was decided, masked."""
    for row in (BANK_ACCOUNTS[0], TOKEN_ACCOUNTS[0]):
        assert pay(external.api, row).status == 200
        log = acquirer.log.read_text()
        assert row.account not in log
        assert row.account[-4:] in log


def test_an_account_is_refunded_over_the_wire(external: Shop) -> None:
    first = pay(external.api, BANK_ACCOUNTS[0])
    assert external.api.follow(first.id, "RF", "92.00").code == "000.100.112"
    assert external.api.follow(first.id, "RF", "0.01").code == "700.400.200"


@pytest.mark.parametrize("brand", ["ONLINETRANSFER", "WEBWALLET", "SHOPWALLET", "INVOICE", "PREPAYMENT"])
def test_no_acquirer_takes_a_brand_that_it_cannot_wait_for(shop: Shop, brand: str) -> None:
    """600.200.700: never answered by the simulator."""
    account_at_stub(shop.channel)
    fields = {"paymentBrand": brand, "shopperResultUrl": "https://shop.example/result"}
    answer = shop.api.post("/v1/payments", FACE | fields)
    assert (answer.status, answer.code) == (400, "600.200.700")
    assert not Payment.objects.exists()

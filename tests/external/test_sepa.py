"""Direct debits and refunds through mock-bank, an independent bank in a process of its own. ``make external`` runs it.

The bank is started on a free port of the loopback interface, with a clock that we move; ours is moved beside it. It
takes pain.008.001.08 and pain.001.001.09 over HTTP and through a folder, and answers with pain.002, camt.054, camt.053
and pacs.004. At the end its own books are compared with ours.
"""

from __future__ import annotations

import base64
import json
import os
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as daytime
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from gateway.connectors import accounts
from gateway.core import clock
from gateway.models import BankFile, BankOrder, Merchant, Payment
from gateway.timers import registry
from tests.external.peers import program, running
from tests.support import sepa
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.ports import free_port

pytestmark = pytest.mark.django_db

ACME = "NL41MOCK0000000001"
POOR = "NL14MOCK0000000002"
CLOSED = "NL84MOCK0000000003"
ELSEWHERE = "NL30MOCK0000000005"
USER, WORD = "tollhouse", "only-for-tests"
SUCCESS, OUTSTANDING = "000.100.112", "800.400.501"
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Bank:
    """The running bank, and the folders it was started with."""

    port: int
    today: date

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data=data, method=method)
        request.add_header("Authorization", f"Basic {base64.b64encode(f'{USER}:{WORD}'.encode()).decode()}")
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    def advance_to(self, day: date) -> None:
        self.ask("POST", f"/_mock/advance?to={day.isoformat()}")

    def answers(self, *kinds: str) -> list[str]:
        """What the bank has released and nobody collected yet, in order; this collects it."""
        found = self.ask("GET", "/_mock/mailbox")
        return [one["xml"] if "xml" in one else one["body"] for one in found if not kinds or one["type"][:8] in kinds]

    def collection(self, payment: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask("GET", f"/_mock/collections/{payment}")
        return found

    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/payments"


@pytest.fixture
def bank(tmp_path: Path, shop: Shop) -> Iterator[Bank]:
    """mock-bank on a Monday at 07:00 UTC, and the merchant's clock at the same moment."""
    today = clock.real_now().date() + DAY
    while today.weekday():
        today += DAY
    began = datetime.combine(today, daytime(7), clock.real_now().tzinfo)
    Merchant.objects.filter(pk=shop.merchant.pk).update(clock_offset=began - clock.real_now())
    port = free_port()
    command = [
        program("mock-bank"),
        "--port",
        str(port),
        "--clock",
        f"{began:%Y-%m-%dT%H:%M}",
        "--auth",
        f"{USER}:{WORD}",
        "--drop-dir",
        str(tmp_path / "drop"),
        "--pickup-dir",
        str(tmp_path / "pickup"),
        "--drop-settle-ms",
        "0",
        "--drop-interval-ms",
        "3600000",
    ]
    accounts.clear_account_cache()
    with (
        running(command, port=port, folder=tmp_path),
        override_settings(GATEWAY_SEPA_OUTBOX=str(tmp_path / "out"), GATEWAY_SEPA_INBOX=""),
    ):
        yield Bank(port, today)
    accounts.clear_account_cache()


def open_account(shop: Shop, bank: Bank, **more: str) -> None:
    """The merchant's account at the bank, files by upload."""
    row = sepa.account_at_bank(
        shop.channel, creditorIban=ACME, creditorBic="", delivery="http", uploadUrl=bank.url(), uploadUser=USER, **more
    )
    row.secrets_sealed = accounts.seal_connector_secrets({"uploadPassword": WORD}, row.id)
    row.save()


def debit(shop: Shop, iban: str, amount: str = "92.00") -> str:
    return sepa.debit(
        shop.api, amount, bankAccount__iban=iban, bankAccount__bic="MOCKNL2A", bankAccount__country="NL"
    ).id


def hear(bank: Bank, *kinds: str) -> int:
    """Take in what the bank has sent; how many orders it moved."""
    moved = sum(sepa.take(xml).told for xml in bank.answers(*kinds))
    registry.run_all_timers()
    return moved


def code(shop: Shop, payment: str) -> str:
    return shop.api.read(payment).code


def file_now(shop: Shop) -> BankFile:
    """The day's run: its file is with the bank."""
    pass_time(shop.api, minutes=240)
    file = BankFile.objects.latest("id")
    assert (file.state, file.failure) == ("DELIVERED", "")
    return file


def test_collections_are_paid_or_refused_as_the_bank_decides(shop: Shop, bank: Bank) -> None:
    """DB: paid, no money, account closed; refused before settlement; and the bank's books agree with ours."""
    open_account(shop, bank)
    fine, poor, closed, refused = (
        debit(shop, iban, amount)
        for iban, amount in ((ELSEWHERE, "92.00"), (POOR, "50.00"), (CLOSED, "7.00"), (ELSEWHERE, "11.00"))
    )
    file = file_now(shop)
    assert (file.orders_count, str(file.total)) == (4, "160.00")
    bank.ask("POST", f"/_mock/collections/{refused}/refuse", {"reason": "MD01"})
    assert hear(bank) == 3
    assert [code(shop, one) for one in (fine, poor, closed, refused)] == [
        OUTSTANDING,
        "800.100.203",
        "800.100.202",
        "800.100.205",
    ]
    bank.advance_to(bank.today + 2 * DAY)
    assert hear(bank) == 1
    assert code(shop, fine) == SUCCESS
    for one in (fine, poor, closed, refused):
        theirs, ours = bank.collection(one), BankOrder.objects.get(pk=one)
        assert (theirs["amount"], theirs["msg_id"]) == (int(ours.amount * 100), file.message_id)
        assert bool(theirs["booked_at"]) == (ours.state == "BOOKED")
        assert theirs["mandate_id"] == ours.mandate.mandate if ours.mandate else False
    assert bank.ask("GET", "/_mock/accounts/ACME")["balance"] == 12_500_000 + 9_200


def test_a_return_is_one_chargeback_though_three_messages_tell_of_it(shop: Shop, bank: Bank) -> None:
    open_account(shop, bank)
    paid = debit(shop, ELSEWHERE)
    file_now(shop)
    bank.advance_to(bank.today + 2 * DAY)
    hear(bank)
    assert code(shop, paid) == SUCCESS
    bank.ask("POST", f"/_mock/collections/{paid}/refuse", {"reason": "MD06"})
    bank.advance_to(bank.today + 4 * DAY)
    assert hear(bank) == 1
    (dispute,) = Payment.objects.filter(chain=paid, payment_type="CB")
    assert dispute.result_code == "000.100.206"
    assert bank.collection(paid)["returned_at"]
    assert bank.ask("GET", "/_mock/accounts/ACME")["balance"] == 12_500_000


def test_a_refund_is_a_transfer_that_the_bank_books(shop: Shop, bank: Bank) -> None:
    open_account(shop, bank)
    paid = debit(shop, ELSEWHERE)
    file_now(shop)
    bank.advance_to(bank.today + 2 * DAY)
    hear(bank)
    refund = shop.api.follow(paid, "RF", "30.00").id
    assert code(shop, refund) == "800.400.502"
    pass_time(shop.api, days=2)
    registry.run_all_timers()
    sent = BankFile.objects.latest("id")
    assert (sent.kind, sent.state, sent.failure) == ("PAY", "DELIVERED", "")
    bank.advance_to(bank.today + 4 * DAY)
    hear(bank)
    assert code(shop, refund) == SUCCESS
    theirs = bank.ask("GET", f"/_mock/payments/{refund}")
    assert (theirs["amount"], bool(theirs["booked_at"])) == (3_000, True)
    assert bank.ask("GET", "/_mock/accounts/ACME")["balance"] == 12_500_000 + 9_200 - 3_000


def test_a_reversal_in_time_never_reaches_the_bank(shop: Shop, bank: Bank) -> None:
    open_account(shop, bank)
    taken, kept = debit(shop, ELSEWHERE), debit(shop, ELSEWHERE, "8.00")
    assert shop.api.follow(taken, "RV").code == SUCCESS
    assert file_now(shop).orders_count == 1
    assert code(shop, taken) == "100.396.201"
    assert [one["end_to_end_id"] for one in bank.ask("GET", "/_mock/collections")] == [kept]
    assert shop.api.follow(kept, "RV").code == "700.300.700"


def test_a_file_that_was_sent_again_after_silence_is_refused_by_the_bank_and_collected_once(
    shop: Shop, bank: Bank
) -> None:
    """The first upload arrived and its answer was lost: the second is DUPL, which declines nothing."""
    open_account(shop, bank)
    paid = debit(shop, ELSEWHERE)
    file = file_now(shop)
    BankFile.objects.filter(pk=file.pk).update(state="DECIDED", due_at=clock.real_now(), lease_until=None)
    registry.run_timer_now("bank files")
    file.refresh_from_db()
    assert (file.state, file.tries) == ("DELIVERED", 2)
    hear(bank)
    assert code(shop, paid) == OUTSTANDING
    bank.advance_to(bank.today + 2 * DAY)
    hear(bank)
    assert code(shop, paid) == SUCCESS
    assert bank.ask("GET", "/_mock/accounts/ACME")["balance"] == 12_500_000 + 9_200


def test_a_silent_bank_leaves_the_payment_open_until_its_statement(shop: Shop, bank: Bank) -> None:
    """No status report, no notification taken: the statement alone books it."""
    open_account(shop, bank)
    bank.ask("PATCH", "/_mock/accounts/ACME", {"behaviour": "silent"})
    paid = debit(shop, ELSEWHERE)
    file_now(shop)
    assert hear(bank) == 0
    assert code(shop, paid) == OUTSTANDING
    bank.advance_to(bank.today + 2 * DAY)
    hear(bank, "camt.053")
    assert code(shop, paid) == SUCCESS


def test_files_travel_through_folders_too(shop: Shop, bank: Bank, tmp_path: Path) -> None:
    """The bank looks into the outbox, we look into where it lays its answers."""
    sepa.account_at_bank(shop.channel, creditorIban=ACME, creditorBic="")
    paid, closed = debit(shop, ELSEWHERE), debit(shop, CLOSED)
    with override_settings(GATEWAY_SEPA_OUTBOX=str(tmp_path / "out"), GATEWAY_SEPA_INBOX=str(tmp_path / "pickup")):
        file_now(shop)
        (laid,) = (tmp_path / "out").rglob("*.xml")
        laid.rename(tmp_path / "drop" / laid.name)
        bank.ask("POST", "/_mock/drop/scan")
        bank.advance_to(bank.today + 2 * DAY)
        for path in (tmp_path / "pickup").glob("*.xml"):
            os.utime(path, (0, 0))  # it has lain long enough
        registry.run_all_timers()
    assert (code(shop, paid), code(shop, closed)) == (SUCCESS, "800.100.202")
    assert not list((tmp_path / "pickup").glob("*.xml"))

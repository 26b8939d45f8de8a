"""Payments with bank orders are archived when the bank has nothing more to say; the orders stay as books, without whom
they were of. docs/decisions/0145."""

from __future__ import annotations

import threading
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from gateway.connectors.sepa import mandates
from gateway.connectors.sepa.mandates import MandateError, check_mandate_usable, list_usable_mandates
from gateway.core import clock
from gateway.models import ArchivedPayment, BankFile, BankOrder, BankOrderEvent, MandateMail, Payment, SepaMandate
from gateway.timers import registry
from tests.gateway.connectors.sepa.test_collections import filed
from tests.gateway.personal_data.test_payment_archiving import HOT_DAYS, archived, hot, later
from tests.support import sepa
from tests.support.fixtures import Shop
from tests.support.sepa import Entry
from tests.support.threads import PATIENCE_S, InThread

pytestmark = pytest.mark.django_db
LAPSED = HOT_DAYS + 40
"""Days after which the mandate of a collection has surely lapsed, too."""


@pytest.fixture(autouse=True)
def archives(settings: Any) -> None:
    settings.GATEWAY_PAYMENT_HOT_DAYS = HOT_DAYS


def booked(banked: Shop, outbox: Path, number: int = 1) -> list[str]:
    """Collections that the bank has booked."""
    ids = [sepa.debit(banked.api).id for _ in range(number)]
    filed(banked, outbox)
    sepa.take(sepa.statement([Entry(order=one) for one in ids]))
    registry.run_timer_now("bank answers")
    assert [one.status for one in Payment.objects.filter(pk__in=ids)] == ["APPROVED"] * number
    return ids


def end_mails() -> None:
    """The mails to the debtor have been sent."""
    MandateMail.objects.update(state="SENT")


def test_a_booked_collection_is_archived_when_its_mandate_has_lapsed(
    banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (paid,) = booked(banked, outbox)
    end_mails()
    order, mandate = BankOrder.objects.get(), SepaMandate.objects.get()
    assert "" not in (order.name, order.iban_shown, order.bic, order.text)
    assert None not in (order.iban_sealed, mandate.iban_sealed)
    assert later(monkeypatch) == 0, "until then it may be collected under the mandate"
    assert later(monkeypatch, LAPSED) == 1
    assert (hot(), archived()) == (set(), {paid})
    order.refresh_from_db()
    mandate.refresh_from_db()
    assert (order.state, str(order.amount), order.mandate_reference) == ("BOOKED", "92.00", mandate.mandate)
    assert (order.name, order.iban_sealed, order.iban_shown, order.bic, order.text) == ("", None, "", "", "")
    assert mandate.iban_sealed is None
    assert banked.api.read(paid).body["resultDetails"]["archivedAt"].startswith("20")


def test_a_collection_under_a_mandate_that_ended_leaves_in_time(
    banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    booked(banked, outbox)
    end_mails()
    mandate = SepaMandate.objects.get()
    assert mandates.end_mandate(mandate)
    assert later(monkeypatch) == 1
    mandate.refresh_from_db()
    assert mandate.iban_sealed is None


def test_the_account_of_a_mandate_that_was_used_of_late_is_kept_as_proof(
    banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    booked(banked, outbox)
    end_mails()
    SepaMandate.objects.update(state="ENDED", used_on=clock.real_now().date() + timedelta(days=HOT_DAYS - 300))
    assert later(monkeypatch) == 1
    assert (BankOrder.objects.get().iban_sealed, SepaMandate.objects.get().iban_sealed is None) == (None, False)


@pytest.mark.parametrize("kind", ["on its way", "not applied", "recalled", "mandate in use"])
def test_what_the_bank_may_still_speak_of_stays(
    banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    booked(banked, outbox)
    end_mails()
    order = BankOrder.objects.get()
    if kind == "on its way":
        BankOrder.objects.update(state="FILED")
    elif kind == "not applied":
        BankOrderEvent.objects.filter(pk=BankOrderEvent.objects.latest("pk").pk).update(applied=False)
    elif kind == "mandate in use":
        SepaMandate.objects.update(used_on=clock.real_now().date() + timedelta(days=300))
    else:
        recall = BankOrder.objects.get()
        recall.pk, recall.kind, recall.original_payment, recall.state = (
            SepaMandate.objects.get().pk, BankFile.Kind.RECALL, order.pk, "FILED",
        )  # fmt: skip
        recall.save(force_insert=True)
    assert later(monkeypatch, LAPSED) == 0
    assert archived() == set()
    BankOrder.objects.exclude(pk=order.pk).update(state="CONFIRMED")
    BankOrder.objects.filter(pk=order.pk).update(state="BOOKED")
    BankOrderEvent.objects.update(applied=True)
    SepaMandate.objects.update(state="ENDED")
    assert later(monkeypatch, LAPSED + 2) == 1


def test_a_late_return_brings_the_chain_back_and_is_a_chargeback(
    banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (paid,) = booked(banked, outbox)
    end_mails()
    assert later(monkeypatch, LAPSED) == 1
    sepa.take(sepa.statement([Entry(order=paid, into=False, reason="MD06", on="2026-01-09")], number=2))
    registry.run_timer_now("bank answers")
    assert archived() == set()
    back = Payment.objects.get(chain=paid, payment_type="CB")
    assert (str(back.amount), back.referenced.hex if back.referenced else "") == ("92.00", paid)
    assert not BankOrderEvent.objects.filter(applied=False).exists()


def test_a_refund_of_what_was_archived_finds_no_account_any_more(
    banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (paid,) = booked(banked, outbox)
    end_mails()
    assert later(monkeypatch, LAPSED) == 1
    refused = banked.api.follow(paid, "RF", "10.00")
    assert (refused.status, refused.code) == (400, "700.100.100")
    assert hot() == {paid, refused.id}


def test_an_account_that_was_only_stored_leaves_with_its_mandates_account(
    banked: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {name.replace("__", "."): value for name, value in sepa.JANE.items() if value}
    stored = banked.api.post("/v1/registrations", fields)
    assert stored.status == 200, stored.text
    end_mails()
    assert later(monkeypatch) == 0, "it is stored"
    assert banked.api.delete(f"/v1/registrations/{stored.id}").status == 200
    assert SepaMandate.objects.get().state == "ENDED"
    assert later(monkeypatch, LAPSED) >= 1
    assert SepaMandate.objects.get().iban_sealed is None


def test_an_order_that_a_message_of_the_bank_holds_keeps_its_chain(
    committed: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bank's message locks orders in an order of its own: nobody waits for it while payments are held."""
    sepa.account_at_bank(committed.channel)
    ids = booked(committed, outbox, 2)
    end_mails()
    locked, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            BankOrder.objects.select_for_update().get(pk=ids[1])
            locked.set()
            assert let_go.wait(PATIENCE_S)

    holder = InThread(hold)
    holder.start()
    try:
        assert locked.wait(PATIENCE_S)
        assert later(monkeypatch, LAPSED) == 1
    finally:
        let_go.set()
        assert holder.end() is None
    assert (archived(), hot()) == ({ids[0]}, {ids[1]})
    assert BankOrder.objects.get(pk=ids[1]).iban_sealed is not None
    assert ArchivedPayment.objects.count() == 1


TODAY = date(2026, 6, 15)


@pytest.mark.parametrize("state", SepaMandate.State.values)
@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("used", [None, 0, 400, 1_090, 1_200])
@pytest.mark.parametrize("signed", [0, 1_090, 1_200])
def test_a_mandate_is_listed_as_usable_wherever_a_collection_may_be_made(
    shop: Shop, state: str, named: bool, used: int | None, signed: int
) -> None:
    mandate = SepaMandate.objects.create(
        merchant=shop.merchant,
        creditor="DE98ZZZ09999999999",
        mandate="M",
        named_by_merchant=named,
        recurring=True,
        signed_on=TODAY - timedelta(days=signed),
        used_on=None if used is None else TODAY - timedelta(days=used),
        state=state,
        iban_fingerprint=b"",
    )
    if state == "BLOCKED":
        mandate.state = "ACTIVE"  # it may be released
    try:
        check_mandate_usable(mandate, TODAY)
    except MandateError:
        usable = False
    else:
        usable = True
    assert list_usable_mandates(TODAY).exists() is usable

"""A refund or payout whose file is with the bank is recalled by a user, where the bank takes requests."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.urls import reverse

from gateway.access.permissions import Role
from gateway.backoffice.acquirers.bank_order_pages import _RECALL_REFUSALS
from gateway.connectors.sepa import file_delivery, recalls
from gateway.connectors.sepa.connector import recall_transfer
from gateway.connectors.sepa.recalls import RECALL_REASONS, RecallRefusal, RecallRefusedError, check_recall
from gateway.core import clock
from gateway.models import AuditEntry, BankFile, BankOrder, BankOrderEvent, Payment
from gateway.timers import registry
from tests.gateway.connectors.sepa.message_forms import CANCELLATION_FORMS, list_form_faults
from tests.support import sepa
from tests.support.database import until_somebody_waits_for_a_lock
from tests.support.fixtures import Shop
from tests.support.office import person, signed_in
from tests.support.sepa import Entry
from tests.support.threads import InThread

pytestmark = pytest.mark.django_db
State = BankOrder.State
SUCCESS = "000.100.112"
OUTSTANDING = "800.400.502"


@pytest.fixture
def recalling(shop: Shop, outbox: Path) -> Shop:
    sepa.account_at_bank(shop.channel, cancelBy="request")
    return shop


def order(ident: str | UUID) -> BankOrder:
    return BankOrder.objects.select_related("file").get(pk=ident)


def file_of(ident: str | UUID) -> BankFile:
    file = order(ident).file
    assert file is not None
    return file


def settle() -> None:
    registry.run_timer_now("bank answers")


def codes(shop: Shop, *idents: str) -> list[str]:
    settle()
    return [shop.api.read(ident).code for ident in idents]


def refunded(shop: Shop, amount: str = "92.00") -> tuple[str, str]:
    """A collection, and its refund, whose file the bank has."""
    paid = sepa.debit(shop.api, amount).id
    sepa.pass_to_file(shop.api)
    sepa.take(sepa.statement([Entry(order=paid, amount=amount)], number=f"IN-{paid[:8]}"))
    settle()
    refund = shop.api.follow(paid, "RF", amount)
    assert refund.code == OUTSTANDING
    sepa.pass_to_file(shop.api)
    assert order(refund.id).state == State.FILED
    return paid, refund.id


def booked(shop: Shop) -> tuple[str, str]:
    """A refund that the bank has executed."""
    paid, refund = refunded(shop)
    sepa.take(sepa.statement([Entry(order=refund, into=False)], number=f"OUT-{refund[:8]}"))
    assert codes(shop, refund) == [SUCCESS]
    return paid, refund


def recall(refund: str, reason: str = "DUPL") -> BankOrder:
    """A recall that is with the bank."""
    asked = recall_transfer(order(refund), reason)
    registry.run_timer_now("bank files")
    found = order(asked.pk)
    assert found.state == State.FILED
    return found


def answer(refund: str, status: str, reason: str = "", at: str = "order") -> Any:
    return sepa.take(sepa.resolution(file_of(refund), order(refund), status=status, reason=reason, at=at))


def come_back(refund: str, reason: str = "FOCR") -> Any:
    return sepa.take(sepa.statement([Entry(order=refund, reason=reason)], number=f"BACK-{refund[:8]}"))


# --- the request --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", RECALL_REASONS)
@pytest.mark.parametrize(
    ("schema", "transfer", "named", "version"),
    [
        ("pain.008.001.08", "pain.001.001.09", "", "camt.055.001.08"),
        ("pain.008.001.08", "pain.001.001.09", "camt.055.001.05", "camt.055.001.05"),
        ("pain.008.001.02", "pain.001.001.03", "", "camt.055.001.01"),
    ],
)
def test_the_recall_names_the_file_the_batch_and_the_transfer(
    shop: Shop, outbox: Path, schema: str, transfer: str, named: str, version: str, reason: str
) -> None:
    sepa.account_at_bank(shop.channel, cancelBy="request", schema=schema, cancelSchema=named)
    _, refund = refunded(shop)
    asked = recall(refund, reason)
    (file,) = [one for one in sepa.files_in(outbox) if b"camt.055" in one.xml]
    assert list_form_faults(file.tree, CANCELLATION_FORMS[version], f"urn:iso:std:iso:20022:tech:xsd:{version}") == []
    original = file_of(refund)
    assert (file.text("OrgnlGrpInf/OrgnlMsgId"), file.text("OrgnlGrpInf/OrgnlMsgNmId")) == (
        original.message_id,
        transfer,
    )
    assert file.text("OrgnlPmtInfId") == order(refund).batch
    assert (file.text("TxInf/CxlId"), file.text("OrgnlEndToEndId")) == (asked.pk.hex, refund)
    executed = order(refund).due_on
    assert executed is not None
    older = version != "camt.055.001.08"
    assert file.text("OrgnlReqdExctnDt" if older else "OrgnlReqdExctnDt/Dt") == executed.isoformat()
    listed = {"camt.055.001.01": {"DUPL", "CUST"}, "camt.055.001.05": {"DUPL", "CUST", "TECH", "FRAD"}}
    own = reason not in listed.get(version, {reason})
    assert file.text(f"CxlRsnInf/Rsn/{'Prtry' if own else 'Cd'}") == reason
    assert asked.file is not None
    assert file_delivery.render_bank_file(asked.file) == file.xml


def test_a_payout_is_recalled_too(recalling: Shop) -> None:
    payout = recalling.api.pay(**{**sepa.JANE, "paymentType": "CD"}).id
    sepa.pass_to_file(recalling.api)
    recall(payout)
    answer(payout, "ACCR")
    assert codes(recalling, payout) == ["100.396.201"]


# --- what the bank answers ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["order", "batch", "file", "message"])
def test_what_is_cancelled_before_its_execution_is_not_paid(recalling: Shop, at: str) -> None:
    paid, refund = refunded(recalling)
    asked = recall(refund)
    taken = answer(refund, "ACCR", at=at)
    assert (taken.orders_changed, taken.findings) == (2, [])
    assert codes(recalling, refund) == ["100.396.201"]
    assert (order(refund).state, order(asked.pk).state) == (State.WITHDRAWN, State.CONFIRMED)
    assert recalling.api.follow(paid, "RF", "92.00").code == OUTSTANDING  # it can be refunded again


def test_what_is_given_back_after_its_execution_is_a_transfer_that_came_back(recalling: Shop) -> None:
    paid, refund = booked(recalling)
    asked = recall(refund)
    taken = answer(refund, "ACCR")
    assert (taken.orders_changed, taken.findings) == (1, [])
    assert codes(recalling, refund) == [SUCCESS]  # an agreement is no money yet
    assert (order(refund).state, order(asked.pk).state) == (State.BOOKED, State.CONFIRMED)
    come_back(refund)
    settle()
    details = recalling.api.read(refund).body["resultDetails"]
    assert (details["transferReturned"], details["transferReturnReason"]) == ("true", "FOCR")
    assert recalling.api.follow(paid, "RF", "92.00").code == OUTSTANDING


@pytest.mark.parametrize("asks", [True, False])
def test_a_return_message_between_banks_brings_a_transfers_money_back(recalling: Shop, asks: bool) -> None:
    """pacs.004 is also the yes to a recall (FOCR); it does not say whether a collection or a transfer comes back."""
    paid, refund = booked(recalling)
    asked = recall(refund) if asks else None
    message = (
        '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.004.001.09"><PmtRtr><GrpHdr><MsgId>R-1</MsgId></GrpHdr>'
        f"<TxInf><OrgnlEndToEndId>{refund}</OrgnlEndToEndId><OrgnlIntrBkSttlmAmt Ccy='EUR'>92.00</OrgnlIntrBkSttlmAmt>"
        "<IntrBkSttlmDt>2026-01-09</IntrBkSttlmDt><RtrRsnInf><Rsn><Cd>FOCR</Cd></Rsn></RtrRsnInf></TxInf></PmtRtr>"
        "</Document>"
    )
    taken = sepa.take(message)
    assert (taken.orders_changed, taken.findings) == (1 + asks, [])
    assert order(refund).state == State.RETURNED
    if asked is not None:
        assert order(asked.pk).state == State.CONFIRMED
    settle()
    assert recalling.api.read(refund).body["resultDetails"]["transferReturned"] == "true"
    assert recalling.api.follow(paid, "RF", "92.00").code == OUTSTANDING


def test_money_that_comes_back_answers_the_recall(recalling: Shop) -> None:
    """Banks that give the money back need not say so besides."""
    _, refund = booked(recalling)
    asked = recall(refund)
    assert come_back(refund).orders_changed == 2
    assert order(asked.pk).state == State.CONFIRMED
    late = answer(refund, "ACCR")
    assert (late.orders_changed, late.findings) == (0, [])


@pytest.mark.parametrize("at", ["order", "batch", "file"])
def test_a_refused_recall_leaves_the_transfer(recalling: Shop, at: str) -> None:
    paid, refund = booked(recalling)
    asked = recall(refund)
    taken = answer(refund, "RJCR", "AC04", at)
    assert (taken.orders_changed, taken.findings) == (1, [])
    assert codes(recalling, refund) == [SUCCESS]
    found = order(asked.pk)
    assert (found.state, found.reason) == (State.REJECTED, "AC04")
    assert recalling.api.follow(paid, "RF", "92.00").code == "700.400.200"  # nothing is left to refund


def test_a_booking_does_not_settle_a_recall(recalling: Shop) -> None:
    """Unlike a collection's: the money may be given back for weeks."""
    _, refund = refunded(recalling)
    asked = recall(refund)
    sepa.take(sepa.statement([Entry(order=refund, into=False)], number="OUT"))
    assert codes(recalling, refund) == [SUCCESS]
    assert order(asked.pk).state == State.FILED


def test_a_transfer_that_is_rejected_before_its_recall_leaves_needs_none(recalling: Shop, outbox: Path) -> None:
    _, refund = refunded(recalling)
    asked = recall_transfer(order(refund), "TECH")
    sepa.take(sepa.status(file_of(refund).message_id, orders={refund: ("RJCT", "AC04")}))
    registry.run_timer_now("bank files")
    assert [one for one in sepa.files_in(outbox) if b"camt.055" in one.xml] == []
    assert order(asked.pk).state == State.CONFIRMED


def test_what_was_cancelled_and_is_booked_all_the_same_is_booked(recalling: Shop) -> None:
    """The bank agrees, its statement shows the execution of the day before, and the money comes back later."""
    paid, refund = refunded(recalling)
    recall(refund)
    answer(refund, "ACCR")
    assert codes(recalling, refund) == ["100.396.201"]
    out = sepa.take(sepa.statement([Entry(order=refund, into=False)], number="OUT"))
    assert out.orders_changed == 1
    assert codes(recalling, refund) == [SUCCESS]
    out.refresh_from_db()
    assert ["it is approved now" in text for text in out.findings] == [True]
    assert recalling.api.follow(paid, "RF", "92.00").code == "700.400.200"
    come_back(refund)
    assert codes(recalling, refund) == [SUCCESS]
    assert recalling.api.follow(paid, "RF", "92.00").code == OUTSTANDING


def test_a_cancelled_transfer_that_the_bank_rejects_as_well_is_no_finding(recalling: Shop) -> None:
    """A status of its file that was on its way when the bank agreed."""
    _, refund = refunded(recalling)
    recall(refund)
    answer(refund, "ACCR")
    taken = sepa.take(sepa.status(file_of(refund).message_id, orders={refund: ("RJCT", "AC04")}))
    assert (taken.orders_changed, taken.findings, order(refund).state) == (0, [], State.WITHDRAWN)


def test_a_cancelled_transfer_whose_money_came_back_before_its_booking_is_read_is_not_paid(recalling: Shop) -> None:
    """Statements list credits and debits in any order."""
    paid, refund = refunded(recalling)
    recall(refund)
    answer(refund, "ACCR")
    both = [Entry(order=refund, reason="FOCR"), Entry(order=refund, into=False)]
    sepa.take(sepa.statement(both, number="BOTH"))
    assert (codes(recalling, refund), order(refund).state) == (["100.396.201"], State.REJECTED)
    assert recalling.api.follow(paid, "RF", "92.00").code == OUTSTANDING


def test_a_booking_of_a_transfer_that_was_never_sent_is_a_finding(recalling: Shop) -> None:
    paid = sepa.debit(recalling.api).id
    sepa.pass_to_file(recalling.api)
    sepa.take(sepa.statement([Entry(order=paid)]))
    settle()
    refund = recalling.api.follow(paid, "RF", "92.00").id
    BankOrder.objects.filter(pk=refund).update(state=State.WITHDRAWN)
    taken = sepa.take(sepa.statement([Entry(order=refund, into=False)], number=2))
    assert (taken.orders_changed, taken.findings) == (
        0,
        [f"order {refund}: the bank has booked it, and it was in no file"],
    )


def test_a_recall_whose_file_is_rejected_may_be_made_again(recalling: Shop, outbox: Path) -> None:
    _, refund = booked(recalling)
    asked = recall(refund)
    sepa.take(sepa.status(file_of(asked.pk).message_id, group="RJCT", reason="FF01"))
    assert (order(asked.pk).state, order(refund).state) == (State.REJECTED, State.BOOKED)
    assert recall(refund).pk != asked.pk


def test_a_status_of_the_recalls_file_that_names_the_transfer_is_the_recalls(recalling: Shop) -> None:
    _, refund = booked(recalling)
    asked = recall(refund)
    sepa.take(sepa.status(file_of(asked.pk).message_id, orders={refund: ("RJCT", "FF01")}))
    assert (order(asked.pk).state, order(refund).state) == (State.REJECTED, State.BOOKED)


def test_the_events_of_a_recall_need_no_payment(recalling: Shop) -> None:
    _, refund = booked(recalling)
    asked = recall(refund)
    answer(refund, "RJCR", "NOAS")
    settle()
    assert not Payment.objects.filter(pk=asked.pk).exists()
    assert not BankOrderEvent.objects.filter(applied=False).exists()


# --- who may, and when --------------------------------------------------------------------------------------------


def test_a_transfer_is_recalled_once(recalling: Shop) -> None:
    _, refund = booked(recalling)
    recall(refund)
    with pytest.raises(RecallRefusedError, match="recalled before"):
        recall_transfer(order(refund), "CUST")
    answer(refund, "RJCR", "NOAS")
    with pytest.raises(RecallRefusedError, match="recalled before"):
        recall_transfer(order(refund), "CUST")


def test_only_a_transfer_that_the_bank_has_is_recalled(recalling: Shop) -> None:
    paid, refund = refunded(recalling)
    with pytest.raises(RecallRefusedError, match="only a credit transfer"):
        recall_transfer(order(paid), "DUPL")
    with pytest.raises(RecallRefusedError, match="the reason is one of DUPL, TECH"):
        recall_transfer(order(refund), "NARR")
    BankFile.objects.filter(pk=file_of(refund).pk).update(state=BankFile.State.FAILED)
    with pytest.raises(RecallRefusedError, match="not with the bank yet"):
        recall_transfer(order(refund), "DUPL")
    BankFile.objects.filter(pk=file_of(refund).pk).update(state=BankFile.State.DELIVERED)
    ended = {State.RETURNED: "came back already", State.REJECTED: "has rejected it", State.WITHDRAWN: "taken back"}
    for state, why in ended.items():
        BankOrder.objects.filter(pk=refund).update(state=state)
        with pytest.raises(RecallRefusedError, match=why):
            recall_transfer(order(refund), "DUPL")
    assert not BankOrder.objects.filter(kind=BankFile.Kind.RECALL).exists()


def test_an_account_without_requests_recalls_nothing(banked: Shop) -> None:
    _, refund = refunded(banked)
    with pytest.raises(RecallRefusedError, match="cancelBy=none"):
        recall_transfer(order(refund), "DUPL")


@pytest.mark.parametrize(
    ("reason", "last"),
    [
        ("DUPL", date(2026, 1, 19)),  # ten TARGET days after Monday, 5 January
        ("TECH", date(2026, 1, 19)),
        ("FRAD", date(2027, 2, 5)),
        ("AC03", date(2027, 2, 5)),
        ("AM09", date(2027, 2, 5)),
        ("CUST", date(2027, 2, 5)),
    ],
)
def test_the_schemes_time_is_kept(recalling: Shop, reason: str, last: date) -> None:
    _, refund = booked(recalling)
    transfer = order(refund)
    transfer.due_on = date(2026, 1, 5)
    account = SimpleNamespace(cancels=True, zone=clock.real_now().tzinfo)
    noon = clock.real_now().replace(year=last.year, month=last.month, day=last.day, hour=12)
    check_recall(transfer, reason, account, noon)  # type: ignore[arg-type]
    with pytest.raises(RecallRefusedError, match="time for this reason has passed"):
        check_recall(transfer, reason, account, noon + timedelta(days=1))  # type: ignore[arg-type]
    assert recalls.RECALL_TARGET_DAYS == 10


def test_a_user_recalls_transfers_of_the_own_merchant(recalling: Shop, stranger: Shop) -> None:
    paid, refund = booked(recalling)
    page = reverse("admin:gateway_bankorder_changelist")
    data = {"action": "recall_ac03", "_selected_action": [refund, paid]}
    for shop, role in ((stranger, Role.MANAGER), (recalling, Role.CLERK)):
        signed_in(person(f"{role}@{shop.merchant.pk}", role, shop.merchant)).post(page, data, follow=True)
        assert not BankOrder.objects.filter(kind=BankFile.Kind.RECALL).exists()
    boss = person("boss@shop", Role.MANAGER, recalling.merchant)
    assert signed_in(boss, fresh=False).post(page, data)["Location"].startswith("/admin/again/")
    assert not BankOrder.objects.filter(kind=BankFile.Kind.RECALL).exists()
    client = signed_in(boss)
    told = client.post(page, data, follow=True).content.decode()
    assert "1 transfer is recalled." in told
    assert f"{paid}: only a credit transfer is recalled." in told
    asked = BankOrder.objects.get(kind=BankFile.Kind.RECALL)
    assert (asked.recall_reason, asked.original_payment) == ("AC03", UUID(refund))
    entry = AuditEntry.objects.get(action="recall transfer")
    assert (UUID(entry.subject_id), entry.after) == (UUID(refund), {"recall": asked.pk.hex, "reason": "AC03"})
    detail = client.get(reverse("admin:gateway_bankorder_change", args=[asked.pk])).content.decode()
    assert "wrong account (AC03)" in detail


def test_users_read_in_their_language_why_a_transfer_is_not_recalled(recalling: Shop) -> None:
    paid, _ = booked(recalling)
    assert set(_RECALL_REFUSALS) == set(RecallRefusal)
    client = signed_in(person("manager", Role.MANAGER, recalling.merchant))
    data = {"action": "recall_dupl", "_selected_action": [paid]}
    page = reverse("admin:gateway_bankorder_changelist")
    told = client.post(page, data, follow=True, headers={"Accept-Language": "de"}).content.decode()
    assert f"{paid}: nur eine Überweisung wird zurückgerufen." in told


@pytest.mark.django_db(transaction=True)
def test_two_users_at_once_recall_a_transfer_once(committed: Shop, outbox: Path) -> None:
    sepa.account_at_bank(committed.channel, cancelBy="request")
    _, refund = booked(committed)
    second = InThread(lambda: recall_transfer(order(refund), "CUST"))
    with transaction.atomic():
        recall_transfer(order(refund), "DUPL")
        second.start()
        until_somebody_waits_for_a_lock()
    assert isinstance(second.end(), RecallRefusedError)
    assert [one.recall_reason for one in BankOrder.objects.filter(kind=BankFile.Kind.RECALL)] == ["DUPL"]


@pytest.mark.django_db(transaction=True)
def test_a_transfer_that_the_bank_rejects_at_that_moment_is_not_recalled(committed: Shop, outbox: Path) -> None:
    sepa.account_at_bank(committed.channel, cancelBy="request")
    _, refund = refunded(committed)
    rejected = sepa.status(file_of(refund).message_id, orders={refund: ("RJCT", "AC04")})
    recalling = InThread(lambda: recall_transfer(order(refund), "DUPL"))
    with transaction.atomic():
        sepa.take(rejected)
        recalling.start()
        until_somebody_waits_for_a_lock()
    assert isinstance(recalling.end(), RecallRefusedError)
    assert not BankOrder.objects.filter(kind=BankFile.Kind.RECALL).exists()

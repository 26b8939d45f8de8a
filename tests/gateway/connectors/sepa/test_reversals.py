"""A booked collection goes back whole by the creditor's reversal, where the account says so and in time."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.connectors.port import ConnectorAccount
from gateway.connectors.sepa import reversals
from gateway.connectors.sepa.creditor import parse_creditor
from gateway.models import BankFile, BankOrder, Payment, SepaMandate
from gateway.payments import bank_order_outcomes
from tests.gateway.connectors.sepa.message_forms import REVERSAL_FORMS, list_form_faults
from tests.support import sepa
from tests.support.fixtures import Shop
from tests.support.sepa import Entry

pytestmark = pytest.mark.django_db
State = BankOrder.State
MONDAY = datetime(2026, 6, 8, 7, 0, tzinfo=UTC)  # an hour before the run of its day


@pytest.fixture
def reversing(shop: Shop) -> Shop:
    sepa.account_at_bank(shop.channel, refundBy="reversal")
    return shop


def collected(shop: Shop, outbox: Path, *amounts: str) -> list[str]:
    """Collections that the bank has booked."""
    paid = [sepa.debit(shop.api, amount).id for amount in amounts]
    sepa.pass_to_file(shop.api)
    sepa.take(sepa.statement([Entry(order=one, amount=amount) for one, amount in zip(paid, amounts, strict=True)]))
    # In time, whatever the days that were passed to get the file.
    due = max(order.due_on for order in BankOrder.objects.filter(pk__in=paid) if order.due_on)
    assert due is not None
    bank_order_outcomes.apply_bank_order_events()
    return paid


def refund(shop: Shop, paid: str, amount: str = "92.00") -> str:
    answer = shop.api.follow(paid, "RF", amount)
    assert answer.code == "800.400.502", answer
    return answer.id


def order(ident: str) -> BankOrder:
    return BankOrder.objects.get(pk=ident)


def settle() -> None:
    bank_order_outcomes.apply_bank_order_events()


def reversal_file(outbox: Path) -> sepa.File:
    (found,) = [file for file in sepa.files_in(outbox) if b"pain.007" in file.xml]
    return found


@pytest.mark.parametrize("reason", ["", "MS02"])
@pytest.mark.parametrize("as_return", [True, False])
def test_a_refund_in_time_is_a_reversal_of_the_very_debit(
    reversing: Shop, outbox: Path, reason: str, as_return: bool
) -> None:
    """Booked under the collection's reference: the collection stays paid, and no chargeback is made of it."""
    (paid,) = collected(reversing, outbox, "92.00")
    back = refund(reversing, paid)
    assert (order(back).kind, order(back).original_payment) == (BankFile.Kind.REVERSE, order(paid).payment)
    sepa.pass_to_file(reversing.api)
    file, original = reversal_file(outbox), order(paid).file
    assert original is not None
    assert b"pain.007.001.09" in file.xml
    assert (file.text("OrgnlGrpInf/OrgnlMsgId"), file.text("OrgnlGrpInf/OrgnlMsgNmId")) == (
        original.message_id,
        "pain.008.001.08",
    )
    assert (file.text("OrgnlPmtInfId"), file.text("OrgnlEndToEndId"), file.text("RvslId")) == (
        order(paid).batch,
        paid,
        back,
    )
    assert (file.text("RvsdInstdAmt"), file.text("CtrlSum"), file.text("RvslRsnInf/Rsn/Cd")) == (
        "92.00",
        "92.00",
        "MS02",
    )
    for number in (1, 2):
        entry = Entry(order=paid, into=False, reason=reason, reversal=as_return or bool(reason))
        taken = sepa.take(sepa.notification([entry], number=number))
        assert (taken.orders_changed, taken.findings) == (2 - number, [])
    settle()
    assert (order(paid).state, order(back).state) == (State.BOOKED, State.BOOKED)
    assert Payment.objects.get(pk=back).status == "APPROVED"
    assert not Payment.objects.filter(payment_type="CB").exists()
    assert SepaMandate.objects.get().state == SepaMandate.State.ACTIVE


def test_a_reversal_that_the_bank_rejects_declines_the_refund_alone(reversing: Shop, outbox: Path) -> None:
    """The report names the collection, and the file that it is about."""
    (paid,) = collected(reversing, outbox, "92.00")
    back = refund(reversing, paid)
    sepa.pass_to_file(reversing.api)
    message = sepa.status(reversal_file(outbox).message, orders={paid: ("RJCT", "AC04")})
    assert sepa.take(message).findings == []
    settle()
    assert (order(paid).state, order(back).state) == (State.BOOKED, State.REJECTED)
    assert (Payment.objects.get(pk=paid).status, Payment.objects.get(pk=back).status) == ("APPROVED", "DECLINED")


@pytest.mark.parametrize("as_return", [False, True])
def test_a_reversal_that_was_rejected_and_booked_all_the_same_is_a_refund(
    reversing: Shop, outbox: Path, as_return: bool
) -> None:
    """The money decides. Booked as a return, it is the debtor's: after the rejection nothing says otherwise."""
    (paid,) = collected(reversing, outbox, "92.00")
    back = refund(reversing, paid)
    sepa.pass_to_file(reversing.api)
    report = sepa.status(reversal_file(outbox).message, orders={paid: ("RJCT", "MS03")}, made_on="2026-01-03")
    sepa.take(report)
    settle()
    assert Payment.objects.get(pk=back).status == "DECLINED"
    for number in (1, 2):
        entry = Entry(order=paid, into=False, reversal=as_return, on="2026-01-05")
        taken = sepa.take(sepa.notification([entry], number=number))
        assert taken.orders_changed == 2 - number, taken.findings
    settle()
    told = (Payment.objects.get(pk=back).status, Payment.objects.filter(payment_type="CB").count())
    assert told == (("DECLINED", 1) if as_return else ("APPROVED", 0))
    assert order(paid).state == (State.RETURNED if as_return else State.BOOKED)


def test_what_was_never_sent_was_not_booked(reversing: Shop, outbox: Path) -> None:
    """A reversal that we gave up before its file: money out under the collection's reference is a finding."""
    (paid,) = collected(reversing, outbox, "92.00")
    back = refund(reversing, paid)
    sepa.take(sepa.notification([Entry(order=paid, into=False, reason="AM04")]))
    sepa.pass_to_file(reversing.api)
    assert order(back).state == State.REJECTED
    taken = sepa.take(sepa.notification([Entry(order=paid, into=False)], number=2))
    assert (taken.orders_changed, len(taken.findings)) == (0, 1)


def test_a_return_of_the_debtors_bank_is_no_reversal(reversing: Shop, outbox: Path) -> None:
    (paid,) = collected(reversing, outbox, "92.00")
    back = refund(reversing, paid)
    sepa.pass_to_file(reversing.api)
    sepa.take(sepa.notification([Entry(order=paid, into=False, reason="MD06")]))
    settle()
    assert (order(paid).state, order(back).state) == (State.RETURNED, State.FILED)
    assert Payment.objects.filter(payment_type="CB").count() == 1


def test_what_came_back_before_the_file_is_not_reversed_too(reversing: Shop, outbox: Path) -> None:
    (paid,) = collected(reversing, outbox, "92.00")
    back = refund(reversing, paid)
    sepa.take(sepa.notification([Entry(order=paid, into=False, reason="AM04")]))
    sepa.pass_to_file(reversing.api)
    settle()
    assert (order(paid).state, order(back).state) == (State.RETURNED, State.REJECTED)
    assert not [file for file in sepa.files_in(outbox) if b"pain.007" in file.xml]


def test_a_part_and_another_account_go_by_transfer(reversing: Shop, outbox: Path) -> None:
    (paid,) = collected(reversing, outbox, "92.00")
    assert order(refund(reversing, paid, "30.00")).kind == BankFile.Kind.PAY


def test_later_than_the_rulebook_allows_it_goes_by_transfer(reversing: Shop, outbox: Path) -> None:
    (paid,) = collected(reversing, outbox, "92.00")
    for _ in range(2):
        sepa.pass_to_file(reversing.api)
    assert order(refund(reversing, paid)).kind == BankFile.Kind.PAY


def test_reversals_of_two_batches_name_each_its_batch(reversing: Shop, outbox: Path) -> None:
    """One file had a one-off and a first collection, so two batches."""
    one = sepa.debit(reversing.api, "1.00").id
    first = sepa.debit(reversing.api, "2.00", createRegistration="true").id
    sepa.pass_to_file(reversing.api)
    sepa.take(sepa.statement([Entry(order=one, amount="1.00"), Entry(order=first, amount="2.00")]))
    settle()
    assert order(one).batch != order(first).batch
    refund(reversing, one, "1.00")
    refund(reversing, first, "2.00")
    sepa.pass_to_file(reversing.api)
    file = reversal_file(outbox)
    parts = file.tree.findall(".//{*}OrgnlPmtInfAndRvsl")
    found = {(part.findtext("{*}OrgnlPmtInfId"), part.findtext("{*}TxInf/{*}OrgnlEndToEndId")) for part in parts}
    assert found == {(order(one).batch, one), (order(first).batch, first)}
    assert len({part.findtext("{*}RvslPmtInfId") for part in parts}) == 2


@pytest.mark.parametrize("schema", ["pain.008.001.08", "pain.008.001.02"])
def test_the_message_has_the_form_of_its_definition(shop: Shop, outbox: Path, schema: str) -> None:
    sepa.account_at_bank(shop.channel, refundBy="reversal", schema=schema)
    (paid,) = collected(shop, outbox, "92.00")
    refund(shop, paid)
    sepa.pass_to_file(shop.api)
    version = {"pain.008.001.08": "pain.007.001.09", "pain.008.001.02": "pain.007.001.02"}[schema]
    root = reversal_file(outbox).tree
    assert list_form_faults(root, REVERSAL_FORMS[version], f"urn:iso:std:iso:20022:tech:xsd:{version}") == []


def test_reversals_of_two_files_go_in_two(reversing: Shop, outbox: Path) -> None:
    (first,) = collected(reversing, outbox, "1.00")
    BankOrder.objects.filter(pk=first).update(batch="OTHER-1")
    second = sepa.debit(reversing.api, "2.00").id
    sepa.pass_to_file(reversing.api)
    sepa.take(sepa.statement([Entry(order=second, amount="2.00")], number=2))
    settle()
    newest = order(second).due_on
    BankOrder.objects.update(due_on=newest)
    backs = [refund(reversing, first, "1.00"), refund(reversing, second, "2.00")]
    for _ in range(2):
        sepa.pass_to_file(reversing.api)
    files = [file for file in sepa.files_in(outbox) if b"pain.007" in file.xml]
    assert sorted(file.text("OrgnlEndToEndId") for file in files) == sorted([first, second])
    assert {order(one).state for one in backs} == {State.FILED}
    originals = {(order(one).file or BankFile()).message_id for one in (first, second)}
    assert {file.text("OrgnlGrpInf/OrgnlMsgId") for file in files} == originals


@pytest.mark.parametrize(
    ("changes", "settings", "now", "reversible"),
    [
        ({}, {}, MONDAY, True),
        ({}, {"refundBy": "transfer"}, MONDAY, False),
        ({}, {}, MONDAY + timedelta(days=4), True),
        ({}, {}, MONDAY + timedelta(days=4, hours=2), False),
        ({"due_on": date(2026, 6, 5)}, {}, MONDAY + timedelta(days=3), True),
        ({"due_on": date(2026, 6, 5)}, {}, MONDAY + timedelta(days=3, hours=2), False),
        ({"due_on": None}, {}, MONDAY, False),
        ({"file": None}, {}, MONDAY, False),
        *(({"state": state}, {}, MONDAY, state == State.BOOKED) for state in State),
    ],
)
def test_what_is_booked_is_reversed_by_a_file_within_four_target_days(
    changes: dict[str, Any], settings: dict[str, str], now: datetime, reversible: bool
) -> None:
    """Due on Monday, 8 June 2026: the run at 10:00 on the Friday is the last one."""
    creditor = parse_creditor(ConnectorAccount(settings=sepa.SETTINGS | {"refundBy": "reversal"} | settings))
    standard = {"state": State.BOOKED, "due_on": date(2026, 6, 8), "file": BankFile()}
    assert reversals.is_reversible(BankOrder(**{**standard, **changes}), creditor, now) == reversible

"""What banks send: taken in once, whole or not at all, and hostile XML is refused with a reason."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings

from gateway.connectors.sepa import bank_message_intake, statement_entries
from gateway.connectors.sepa.bank_message_intake import DuplicateBankMessageError
from gateway.connectors.sepa.bank_message_parser import UnreadableBankMessageError
from gateway.connectors.sepa.order_transitions import ORDER_REPEATS, ORDER_TRANSITIONS
from gateway.connectors.sepa.statement_entries import EntryType
from gateway.models import BankFile, BankMessage, BankOrder, BankOrderEvent, Payment
from gateway.payments import bank_order_outcomes
from gateway.payments.states import PaymentTransitionError
from gateway.timers import registry
from tests.support import sepa
from tests.support.clock import pass_time
from tests.support.fixtures import Shop
from tests.support.sepa import Entry
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db
NAMESPACE = "urn:iso:std:iso:20022:tech:xsd:pain.002.001.10"


def filed(shop: Shop, *amounts: str) -> tuple[list[str], BankFile]:
    """Collections that are with the bank."""
    paid = [sepa.debit(shop.api, amount).id for amount in amounts or ("92.00",)]
    pass_time(shop.api, days=sepa.A_RUN)
    return paid, BankFile.objects.get()


def state(payment: str) -> str:
    return BankOrder.objects.get(pk=payment).state


def test_the_same_file_twice_is_seen_and_the_same_words_in_another_do_nothing(banked: Shop, outbox: Path) -> None:
    (paid,), file = filed(banked)
    told = sepa.status(file.message_id, orders={paid: ("RJCT", "AC01")})
    assert sepa.take(told).orders_changed == 1
    with pytest.raises(DuplicateBankMessageError):
        sepa.take(told)
    assert sepa.take(sepa.status(file.message_id, orders={paid: ("RJCT", "AC01")}, number=2)).orders_changed == 0
    booked = sepa.statement([Entry(order=paid)])
    assert sepa.take(booked).orders_changed == 1
    assert sepa.take(sepa.notification([Entry(order=paid)])).orders_changed == 0
    assert BankOrderEvent.objects.count() == 2


def test_a_statement_twice_books_once(banked: Shop, outbox: Path) -> None:
    (paid,), _ = filed(banked)
    assert sepa.take(sepa.notification([Entry(order=paid)])).orders_changed == 1
    assert sepa.take(sepa.statement([Entry(order=paid)])).orders_changed == 0
    registry.run_timer_now("bank answers")
    assert Payment.objects.get(pk=paid).sequence == 3


def test_a_whole_file_and_a_whole_batch_are_refused(banked: Shop, outbox: Path) -> None:
    paid, file = filed(banked, "1.00", "2.00")
    assert sepa.take(sepa.status(file.message_id, group="RJCT", reason="FF01")).orders_changed == 2
    file.refresh_from_db()
    assert (file.bank_status, {state(one) for one in paid}) == ("RJCT", {"REJECTED"})
    registry.run_timer_now("bank answers")
    assert {banked.api.read(one).code for one in paid} == {"800.100.156"}


def test_an_order_of_a_refused_file_is_declined_for_its_own_reason(banked: Shop, outbox: Path) -> None:
    """A bank that refuses every order of a file refuses the file, too, before it says why."""
    paid, file = filed(banked, "1.00", "2.00")
    told = sepa.status(file.message_id, group="RJCT", orders={paid[0]: ("RJCT", "AM04")})
    assert sepa.take(told).orders_changed == 2
    registry.run_timer_now("bank answers")
    assert [banked.api.read(one).code for one in paid] == ["800.100.203", "800.100.100"]


def test_a_batch_is_refused_by_its_own_word(banked: Shop, outbox: Path) -> None:
    paid, file = filed(banked, "1.00", "2.00")
    batch = BankOrder.objects.get(pk=paid[0]).batch
    assert sepa.take(sepa.status(file.message_id, batches={batch: ("RJCT", "MD01")})).orders_changed == 2
    assert {BankOrder.objects.get(pk=one).reason for one in paid} == {"MD01"}


@pytest.mark.parametrize("named", [1, 2])
def test_a_rejected_batch_is_rejected_with_the_orders_that_the_bank_does_not_name(
    banked: Shop, outbox: Path, named: int
) -> None:
    """Banks name the orders that are wrong; the others go with them."""
    paid, file = filed(banked, "1.00", "2.00")
    batch = BankOrder.objects.get(pk=paid[0]).batch
    said = sepa.status(file.message_id, orders=dict.fromkeys(paid[:named], ("RJCT", "AC04")))
    within = f"<OrgnlPmtInfId>{file.message_id}-1</OrgnlPmtInfId>"
    status = "<PmtInfSts>RJCT</PmtInfSts><StsRsnInf><Rsn><Cd>FF01</Cd></Rsn></StsRsnInf>"
    taken = sepa.take(said.replace(within, f"<OrgnlPmtInfId>{batch}</OrgnlPmtInfId>{status}"))
    assert (taken.orders_changed, taken.findings) == (2, [])
    assert [(state(one), BankOrder.objects.get(pk=one).reason) for one in paid] == [
        ("REJECTED", "AC04"),
        ("REJECTED", "AC04" if named == 2 else "FF01"),
    ]


@pytest.mark.parametrize("of_file", [False, True])
@pytest.mark.parametrize("said", ["PDNG", "ACSP"])
def test_an_order_that_a_report_does_not_reject_is_not_rejected_with_its_batch_or_file(
    banked: Shop, outbox: Path, said: str, of_file: bool
) -> None:
    """An order's own word counts more than its batch's; what is said of the order later, decides."""
    paid, file = filed(banked, "1.00", "2.00", "3.00")
    batch = BankOrder.objects.get(pk=paid[0]).batch
    told = sepa.status(
        file.message_id,
        group="RJCT" if of_file else "PART",
        orders={paid[0]: ("RJCT", "AC04"), paid[1]: (said, "")},
    )
    within = f"<OrgnlPmtInfId>{file.message_id}-1</OrgnlPmtInfId>"
    status = "" if of_file else "<PmtInfSts>RJCT</PmtInfSts>"
    taken = sepa.take(told.replace(within, f"<OrgnlPmtInfId>{batch}</OrgnlPmtInfId>{status}"))
    assert (taken.orders_changed, taken.findings) == (2, [])
    assert [state(one) for one in paid] == ["REJECTED", "FILED", "REJECTED"]
    sepa.take(sepa.statement([Entry(order=paid[1], amount="2.00")]))
    assert state(paid[1]) == "BOOKED"


@pytest.mark.parametrize("of_file", [False, True])
@pytest.mark.parametrize(("said", "paid_by_days"), [("PDNG", False), ("ACSP", True)])
def test_days_do_not_pay_an_order_that_is_pending_in_a_rejected_batch_or_file(
    shop: Shop, outbox: Path, said: str, paid_by_days: bool, of_file: bool
) -> None:
    """The bank has rejected the batch and decides of this one later: its silence says nothing, its acceptance does."""
    sepa.account_at_bank(shop.channel, finalAfter="5")
    paid, file = filed(shop, "1.00", "2.00")
    batch = BankOrder.objects.get(pk=paid[0]).batch
    told = sepa.status(file.message_id, group="RJCT" if of_file else "PART", orders={paid[1]: (said, "")})
    within = f"<OrgnlPmtInfId>{file.message_id}-1</OrgnlPmtInfId>"
    status = "" if of_file else "<PmtInfSts>RJCT</PmtInfSts>"
    sepa.take(told.replace(within, f"<OrgnlPmtInfId>{batch}</OrgnlPmtInfId>{status}"))
    pass_time(shop.api, days=30)
    assert [state(one) for one in paid] == ["REJECTED", "BOOKED" if paid_by_days else "FILED"]
    if not paid_by_days:
        sepa.take(sepa.status(file.message_id, group="PART", orders={paid[1]: ("ACSC", "")}, number=2))
        registry.run_timer_now("bank days")
        assert state(paid[1]) == "BOOKED"


def test_an_acceptance_that_the_bank_sent_before_it_called_an_order_pending_says_nothing(
    shop: Shop, outbox: Path
) -> None:
    """Whatever comes in first: the message that the bank made later counts."""
    sepa.account_at_bank(shop.channel, finalAfter="5")
    paid, file = filed(shop, "1.00")
    told = sepa.status(file.message_id, group="RJCT", orders={paid[0]: ("PDNG", "")}, made_on="2026-01-07")
    sepa.take(told)
    sepa.take(
        sepa.status(file.message_id, group="RJCT", orders={paid[0]: ("PDNG", "")}, made_on="2026-01-05", number=2)
    )
    sepa.take(
        sepa.status(file.message_id, group="PART", orders={paid[0]: ("ACTC", "")}, made_on="2026-01-06", number=3)
    )
    pass_time(shop.api, days=30)
    assert state(paid[0]) == "FILED"
    sepa.take(
        sepa.status(file.message_id, group="PART", orders={paid[0]: ("ACSC", "")}, made_on="2026-01-08", number=4)
    )
    registry.run_timer_now("bank days")
    assert state(paid[0]) == "BOOKED"


def test_a_rejected_batch_with_one_order_named_gives_back_none_that_is_booked(banked: Shop, outbox: Path) -> None:
    """Some banks report a return so, long after the others were paid."""
    paid, file = filed(banked, "1.00", "2.00")
    batch = BankOrder.objects.get(pk=paid[0]).batch
    sepa.take(sepa.statement([Entry(order=paid[0], amount="1.00"), Entry(order=paid[1], amount="2.00")]))
    said = sepa.status(file.message_id, orders={paid[0]: ("RJCT", "MD06")}, made_on="2026-01-09")
    within = f"<OrgnlPmtInfId>{file.message_id}-1</OrgnlPmtInfId>"
    sepa.take(said.replace(within, f"<OrgnlPmtInfId>{batch}</OrgnlPmtInfId><PmtInfSts>RJCT</PmtInfSts>"))
    assert [state(one) for one in paid] == ["RETURNED", "BOOKED"]


def test_a_batch_that_is_booked_in_one_sum_pays_all_of_it_or_is_a_finding(banked: Shop, outbox: Path) -> None:
    paid, _ = filed(banked, "1.00", "2.00")
    batch = BankOrder.objects.get(pk=paid[0]).batch
    short = sepa.take(sepa.statement([Entry(batch=batch, amount="2.99")]))
    assert short.orders_changed == 0
    assert short.findings == [f"batch {batch}: 2.99 was booked in one sum, its orders come to 3.00"]
    assert sepa.take(sepa.statement([Entry(batch=batch, amount="3.00")], number=2)).orders_changed == 2
    assert {state(one) for one in paid} == {"BOOKED"}


def test_a_bank_that_books_gross_books_a_batch_with_what_it_had_rejected(banked: Shop, outbox: Path) -> None:
    """All of the batch in one sum, then the rejected one for itself: its payment stays declined, the other is paid."""
    paid, file = filed(banked, "1.00", "2.00")
    batch = BankOrder.objects.get(pk=paid[0]).batch
    sepa.take(sepa.status(file.message_id, orders={paid[1]: ("RJCT", "AC04")}))
    gross = sepa.take(sepa.statement([Entry(batch=batch, amount="3.00")]))
    assert (gross.orders_changed, gross.findings) == (1, [])
    assert [state(one) for one in paid] == ["BOOKED", "REJECTED"]
    back = sepa.take(sepa.statement([Entry(order=paid[1], amount="2.00", into=False, reason="AC04")], number=2))
    assert back.findings == []
    assert sepa.take(sepa.statement([Entry(batch=batch, amount="3.00")], number=3)).findings == []
    assert [state(one) for one in paid] == ["BOOKED", "REJECTED"]
    registry.run_timer_now("bank answers")
    assert [banked.api.read(one).code for one in paid] == ["000.100.112", "800.100.202"]
    assert Payment.objects.filter(payment_type="CB").count() == 0


def test_a_statement_that_lists_the_return_before_the_gross_sum_books_the_others(banked: Shop, outbox: Path) -> None:
    paid, _ = filed(banked, "1.00", "2.00")
    batch = BankOrder.objects.get(pk=paid[0]).batch
    entries = [Entry(order=paid[1], amount="2.00", into=False, reason="AC04"), Entry(batch=batch, amount="3.00")]
    taken = sepa.take(sepa.statement(entries))
    assert (taken.findings, [state(one) for one in paid]) == ([], ["BOOKED", "REJECTED"])


def test_a_sum_that_is_neither_net_nor_gross_is_a_finding(banked: Shop, outbox: Path) -> None:
    paid, file = filed(banked, "1.00", "2.00", "4.00")
    batch = BankOrder.objects.get(pk=paid[0]).batch
    sepa.take(sepa.status(file.message_id, orders=dict.fromkeys(paid[1:], ("RJCT", "AC04"))))
    taken = sepa.take(sepa.statement([Entry(batch=batch, amount="3.00")]))
    told = f"batch {batch}: 3.00 was booked in one sum, its orders come to 1.00, or 7.00 with what was taken out"
    assert (taken.findings, state(paid[0])) == ([told], "FILED")


def test_the_sum_of_a_batch_of_which_nothing_is_left_is_a_finding(banked: Shop, outbox: Path) -> None:
    """Whether its returns follow, a person has to see."""
    (paid,), file = filed(banked, "1.00")
    batch = BankOrder.objects.get(pk=paid).batch
    sepa.take(sepa.status(file.message_id, orders={paid: ("RJCT", "AC04")}))
    taken = sepa.take(sepa.statement([Entry(batch=batch, amount="1.00")]))
    told = f"batch {batch}: 1.00 was booked in one sum, and all of its orders were rejected or withdrawn"
    assert (taken.findings, state(paid)) == ([told], "REJECTED")


def test_a_return_in_one_sum_that_may_be_of_what_was_rejected_gives_nothing_back(banked: Shop, outbox: Path) -> None:
    paid, file = filed(banked, "1.00", "1.00")
    batch = BankOrder.objects.get(pk=paid[0]).batch
    sepa.take(sepa.status(file.message_id, orders={paid[1]: ("RJCT", "AC04")}))
    sepa.take(sepa.statement([Entry(batch=batch, amount="2.00")]))
    taken = sepa.take(sepa.statement([Entry(batch=batch, amount="1.00", into=False, reversal=True)], number=2))
    told = f"batch {batch}: 1.00 was booked in one sum, which may be the return of what was rejected or withdrawn"
    assert (taken.findings, [state(one) for one in paid]) == ([told], ["BOOKED", "REJECTED"])


def test_what_does_not_fit_is_a_finding_and_moves_nothing(banked: Shop, outbox: Path) -> None:
    """Another amount, currency or account, an order and a file that are not ours, an entry that is only planned."""
    (paid,), _ = filed(banked)
    unknown = "0" * 32
    entries = [
        Entry(order=paid, amount="91.99"),
        Entry(order=paid, currency="USD"),
        Entry(order=unknown),
        Entry(order=paid, booked="PDNG"),
        Entry(order="NOTPROVIDED"),
    ]
    taken = sepa.take(sepa.statement(entries))
    assert taken.orders_changed == 0
    assert taken.findings == [
        f"order {paid}: 91.99 EUR, the order was 92.00 EUR",
        f"order {paid}: 92.00 USD, the order was 92.00 EUR",
        f"order {unknown}: not one of ours",
    ]
    elsewhere = sepa.take(sepa.statement([Entry(order=paid)], account="NL91ABNA0417164300"))
    assert elsewhere.findings == [f"order {paid}: booked on another account than the file's"]
    assert sepa.take(sepa.status("SOMEBODY-ELSE", group="RJCT")).findings == ["file SOMEBODY-ELSE: not one of ours"]
    assert state(paid) == "FILED"


def test_a_second_copy_that_the_bank_refuses_declines_nothing(banked: Shop, outbox: Path) -> None:
    (paid,), file = filed(banked)
    BankFile.objects.update(tries=2)
    taken = sepa.take(sepa.status(file.message_id, group="RJCT", reason="DUPL"))
    assert (taken.orders_changed, len(taken.findings), state(paid)) == (0, 1, "FILED")
    BankFile.objects.update(tries=1)
    assert sepa.take(sepa.status(file.message_id, group="RJCT", reason="DUPL", number=2)).orders_changed == 1


@pytest.mark.parametrize("level", ["batch", "order", "file and orders"])
def test_a_second_copy_that_the_bank_refuses_below_the_file_declines_nothing(
    banked: Shop, outbox: Path, level: str
) -> None:
    """Banks report a duplicate per file, batch or transaction (EPC 130-08, status reports)."""
    paid, file = filed(banked, "92.00", "10.00")
    BankFile.objects.update(tries=2)
    batch = BankOrder.objects.get(pk=paid[0]).batch
    orders = dict.fromkeys(paid, ("RJCT", "AM05"))
    said = {
        "batch": sepa.status(file.message_id, batches={batch: ("RJCT", "AM05")}),
        "order": sepa.status(file.message_id, orders=orders),
        "file and orders": sepa.status(file.message_id, group="RJCT", reason="DUPL", orders=orders),
    }[level]
    taken = sepa.take(said)
    assert (taken.orders_changed, [state(one) for one in paid]) == (0, ["FILED", "FILED"])
    assert all("before" in one for one in taken.findings)
    sepa.take(sepa.statement([Entry(order=paid[0]), Entry(order=paid[1], amount="10.00")]))
    registry.run_timer_now("bank answers")
    assert [banked.api.read(one).code for one in paid] == ["000.100.112", "000.100.112"]


def test_another_refusal_of_a_file_that_was_sent_again_counts(banked: Shop, outbox: Path) -> None:
    (paid,), file = filed(banked)
    BankFile.objects.update(tries=2)
    sepa.take(sepa.status(file.message_id, orders={paid: ("RJCT", "AC04")}))
    assert state(paid) == "REJECTED"


def test_a_second_return_on_a_day_that_is_not_named_is_a_finding(banked: Shop, outbox: Path) -> None:
    """It cannot be told from a repeat of the first, and a clerk has to look."""
    (paid,), _ = filed(banked)
    sepa.take(sepa.statement([Entry(order=paid)]))
    sepa.take(sepa.statement([Entry(order=paid, into=False, reason="MD06")], number="2"))
    sepa.take(sepa.statement([Entry(order=paid, reason="MD06")], number="3"))
    assert state(paid) == "WON_BACK"
    unnamed = sepa.statement([Entry(order=paid, into=False, reason="MD06")], number="4")
    taken = sepa.take(re.sub(r"<(BookgDt|ValDt)>.*?</\1>", "", unnamed, flags=re.DOTALL))
    assert (taken.orders_changed, state(paid)) == (0, "WON_BACK")
    assert taken.findings == [f"order {paid}: returned on a day that is not named, after a return that was won back"]


def test_a_return_before_the_booking_declines_and_the_booking_then_says_nothing(banked: Shop, outbox: Path) -> None:
    (paid,), _ = filed(banked)
    sepa.take(sepa.notification([Entry(order=paid, into=False, reason="AC04")]))
    sepa.take(sepa.statement([Entry(order=paid), Entry(order=paid, into=False, reason="AC04")]))
    registry.run_timer_now("bank answers")
    assert banked.api.read(paid).code == "800.100.202"
    assert Payment.objects.count() == 1


def test_a_return_by_pacs_004_is_a_chargeback(banked: Shop, outbox: Path) -> None:
    (paid,), _ = filed(banked)
    sepa.take(sepa.statement([Entry(order=paid)]))
    returned = (
        '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.004.001.09"><PmtRtr><GrpHdr><MsgId>R-1</MsgId></GrpHdr>'
        f"<TxInf><OrgnlEndToEndId>{paid}</OrgnlEndToEndId><OrgnlIntrBkSttlmAmt Ccy='EUR'>92.00</OrgnlIntrBkSttlmAmt>"
        "<IntrBkSttlmDt>2026-01-09</IntrBkSttlmDt><RtrRsnInf><Rsn><Cd>MS02</Cd></Rsn></RtrRsnInf></TxInf></PmtRtr>"
        "</Document>"
    )
    assert sepa.take(returned).orders_changed == 1
    registry.run_timer_now("bank answers")
    assert Payment.objects.get(payment_type="CB").result_code == "000.100.206"


def test_a_further_return_by_pacs_004_has_the_day_of_its_message(banked: Shop, outbox: Path) -> None:
    """In SEPA all returns of a message are settled on one day, which its head names."""
    (paid,), _ = filed(banked)
    entries = [
        Entry(order=paid),
        Entry(order=paid, into=False, reason="MS02", on="2026-01-09"),
        Entry(order=paid, reversal=True, on="2026-01-12"),
    ]
    sepa.take(sepa.statement(entries))
    assert state(paid) == "WON_BACK"
    returned = (
        '<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pacs.004.001.09"><PmtRtr><GrpHdr><MsgId>R-2</MsgId>'
        "<IntrBkSttlmDt>2026-01-14</IntrBkSttlmDt></GrpHdr>"
        f"<TxInf><OrgnlEndToEndId>{paid}</OrgnlEndToEndId><OrgnlIntrBkSttlmAmt Ccy='EUR'>92.00</OrgnlIntrBkSttlmAmt>"
        "<RtrRsnInf><Rsn><Cd>MD06</Cd></Rsn></RtrRsnInf></TxInf></PmtRtr></Document>"
    )
    taken = sepa.take(returned)
    assert (taken.orders_changed, taken.findings, state(paid)) == (1, [], "RETURNED")
    assert str(BankOrderEvent.objects.latest("id").on) == "2026-01-14"


INSTRUCTED = '<AmtDtls><InstdAmt><Amt Ccy="EUR">92.00</Amt></InstdAmt></AmtDtls>'
CHARGED = '<Chrgs><Rcrd><Amt Ccy="EUR">3.00</Amt><ChrgInclInd>true</ChrgInclInd></Rcrd></Chrgs>'
CHARGED_APART = CHARGED.replace("true", "false")


@pytest.mark.parametrize("message", [sepa.notification, sepa.statement])
@pytest.mark.parametrize(
    ("amount", "more", "alone"),
    [
        ("95.00", INSTRUCTED + CHARGED, False),
        ("95.00", INSTRUCTED + CHARGED, True),
        ("95.00", INSTRUCTED + '<Chrgs><TtlChrgsAndTaxAmt Ccy="EUR">3.00</TtlChrgsAndTaxAmt></Chrgs>', False),
        ("95.00", CHARGED, False),
        ("95.00", INSTRUCTED, True),
        ("92.00", CHARGED_APART, False),
    ],
)
def test_a_return_that_is_booked_with_charges_is_a_chargeback_of_what_was_collected(
    banked: Shop, outbox: Path, message: Callable[..., str], amount: str, more: str, alone: bool
) -> None:
    (paid,), _ = filed(banked)
    sepa.take(sepa.statement([Entry(order=paid)], number=7))
    returned = Entry(order=paid, amount=amount, into=False, reason="AM04", more=more, alone=alone)
    taken = sepa.take(message([returned]))
    assert (taken.orders_changed, taken.findings) == (1, [])
    registry.run_timer_now("bank answers")
    made = Payment.objects.get(payment_type="CB")
    assert (made.amount, made.result_code) == (Decimal("92.00"), "000.100.203")
    charges = None if amount == "92.00" else Decimal("3.00")
    assert BankOrderEvent.objects.get(state="RETURNED").charges == charges


@pytest.mark.parametrize("whole", ["95", "95.0", "95.000"])
def test_an_entry_of_one_return_is_that_return_however_its_amount_is_written(
    banked: Shop, outbox: Path, whole: str
) -> None:
    """The charges stand at the entry: 95 and 95.00 are one amount, so the entry has no other transaction."""
    (paid,), _ = filed(banked)
    sepa.take(sepa.statement([Entry(order=paid)], number=7))
    returned = sepa.statement([Entry(order=paid, amount="95.00", into=False, reason="AM04")], number=8)
    entry = '<Ntry><Amt Ccy="EUR">95.00</Amt>'
    assert entry in returned
    told = returned.replace(entry, entry.replace("95.00", whole)).replace("<NtryDtls>", f"{CHARGED}<NtryDtls>")
    taken = sepa.take(told)
    assert (taken.orders_changed, taken.findings, state(paid)) == (1, [], "RETURNED")
    assert BankOrderEvent.objects.get(state="RETURNED").charges == Decimal("3.00")


def test_charges_of_an_entry_of_several_returns_are_no_part_of_each(banked: Shop, outbox: Path) -> None:
    """Booked in one sum with the bank's charges for both."""
    paid, _ = filed(banked, "92.00", "10.00")
    sepa.take(sepa.statement([Entry(order=paid[0]), Entry(order=paid[1], amount="10.00")], number=7))
    details = "".join(
        f"<TxDtls><Refs><EndToEndId>{one}</EndToEndId></Refs><Amt Ccy='EUR'>{amount}</Amt>"
        "<CdtDbtInd>DBIT</CdtDbtInd><RtrInf><Rsn><Cd>AM04</Cd></Rsn></RtrInf></TxDtls>"
        for one, amount in zip(paid, ("92.00", "10.00"), strict=True)
    )
    charges = "<Chrgs><Rcrd><Amt Ccy='EUR'>6.00</Amt><ChrgInclInd>true</ChrgInclInd></Rcrd></Chrgs>"
    both = sepa.statement([Entry(amount="108.00", into=False, on="2026-01-08")], number=8)
    taken = sepa.take(both.replace("<NtryDtls>", f"{charges}<NtryDtls>{details}"))
    assert (taken.orders_changed, taken.findings) == (2, [])
    assert [state(one) for one in paid] == ["RETURNED", "RETURNED"]


@pytest.mark.parametrize("family", ["RCDD", "UPDD"])
def test_a_return_that_its_transaction_code_alone_tells_is_a_return(banked: Shop, outbox: Path, family: str) -> None:
    (paid,), _ = filed(banked)
    sepa.take(sepa.statement([Entry(order=paid)], number=7))
    code = f"<BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>IDDT</Cd><SubFmlyCd>{family}</SubFmlyCd></Fmly></Domn></BkTxCd>"
    taken = sepa.take(sepa.statement([Entry(order=paid, into=False, more=code, on="2026-01-08")], number=8))
    assert (taken.findings, state(paid)) == ([], "RETURNED")


@pytest.mark.parametrize(
    ("amount", "more", "found"),
    [("60.00", INSTRUCTED, "60.00"), ("95.00", "", "95.00"), ("95.00", CHARGED_APART, "95.00")],
)
def test_a_return_of_another_amount_that_no_charge_explains_is_a_finding(
    banked: Shop, outbox: Path, amount: str, more: str, found: str
) -> None:
    (paid,), _ = filed(banked)
    sepa.take(sepa.statement([Entry(order=paid)], number=7))
    taken = sepa.take(sepa.statement([Entry(order=paid, amount=amount, into=False, reason="AM04", more=more)]))
    assert taken.findings == [f"order {paid}: {found} EUR, the order was 92.00 EUR"]
    assert state(paid) == "BOOKED"


def test_a_chargeback_that_a_settlement_file_entered_first_is_not_entered_twice(banked: Shop, outbox: Path) -> None:
    from chargebacks import ledger
    from tests.support.fixtures import BY

    (paid,), _ = filed(banked)
    sepa.take(sepa.statement([Entry(order=paid)]))
    registry.run_timer_now("bank answers")
    ledger.record_chargeback(Payment.objects.get(pk=paid), Decimal("92.00"), by=BY)
    sepa.take(sepa.notification([Entry(order=paid, into=False, reason="MD06", on="2026-01-09")]))
    registry.run_timer_now("bank answers")
    assert Payment.objects.filter(payment_type="CB").count() == 1
    assert not BankOrderEvent.objects.filter(applied=False).exists()


def test_a_word_before_our_own_answer_waits_for_it(banked: Shop, outbox: Path) -> None:
    """The worker died after the order was accepted: the payment is in doubt, and recovery asks the books."""
    (paid,), file = filed(banked)
    Payment.objects.filter(pk=paid).update(status="IN_DOUBT")
    sepa.take(sepa.statement([Entry(order=paid)]))
    registry.run_timer_now("bank answers")
    assert Payment.objects.get(pk=paid).status == "IN_DOUBT"
    assert BankOrderEvent.objects.filter(applied=False).count() == 1
    assert file.message_id


def test_every_move_leads_on_from_where_banks_may_speak() -> None:
    """Nothing that was taken back is moved, and nothing that waits: no bank has heard of it. But a transfer that the
    bank cancelled may leave all the same. What was rejected is moved by money alone."""
    ended = {BankOrder.State.WITHDRAWN, BankOrder.State.WAITING}
    money = {EntryType.IN, EntryType.OUT, EntryType.BACK_IN, EntryType.BACK_OUT}
    cancelled = {(BankFile.Kind.PAY, word, BankOrder.State.WITHDRAWN) for word in (EntryType.OUT, EntryType.BACK_IN)}
    for (kind, word, before), after in ORDER_TRANSITIONS.items():
        assert before not in ended or (kind, word, before) in cancelled
        assert word in money or before != BankOrder.State.REJECTED
        assert after != before or before == BankOrder.State.REJECTED
        assert word is not EntryType.ACCEPTED


def test_a_word_is_a_move_a_repeat_or_a_finding_and_never_two_of_them() -> None:
    for kind, word in {(kind, word) for kind, word, _ in ORDER_TRANSITIONS}:
        assert not ORDER_REPEATS[kind, word] & {before for *key, before in ORDER_TRANSITIONS if key == [kind, word]}
    assert set(ORDER_REPEATS) == {
        (kind, word) for kind in BankFile.Kind for word in EntryType if word is not EntryType.ACCEPTED
    }


def test_a_booking_that_our_books_do_not_know_of_is_a_finding(banked: Shop, outbox: Path) -> None:
    """Money that moved for an order that was taken back, or has no file, becomes a finding."""
    withdrawn, waiting = sepa.debit(banked.api).id, sepa.debit(banked.api).id
    assert banked.api.follow(withdrawn, "RV").code == "000.100.112"
    taken = sepa.take(sepa.statement([Entry(order=withdrawn), Entry(order=waiting)]))
    assert (taken.orders_changed, taken.findings) == (
        0,
        [
            f"order {withdrawn}: the bank says 'in', our books say 'taken back'",
            f"order {waiting}: the bank says 'in', our books say 'waits for a file'",
        ],
    )
    pass_time(banked.api, days=sepa.A_RUN)
    file = BankFile.objects.get()
    sepa.take(sepa.status(file.message_id, orders={waiting: ("RJCT", "AC01")}))
    taken = sepa.take(sepa.statement([Entry(order=waiting)], number=2))
    assert (taken.orders_changed, taken.findings) == (1, [])
    later = sepa.status(file.message_id, orders={waiting: ("RJCT", "AC01")}, number=3)
    taken = sepa.take(later)
    assert taken.orders_changed == 0
    assert [text[-75:] for text in taken.findings] == [
        "the bank says 'rejected', and what it booked or returned on that day or since counts"[-75:]
    ]


def test_a_booking_of_a_payment_that_was_declined_approves_it_and_is_a_finding(banked: Shop, outbox: Path) -> None:
    (paid,), _ = filed(banked)
    Payment.objects.filter(pk=paid).update(status="DECLINED", result_code="900.100.301")
    taken = sepa.take(sepa.statement([Entry(order=paid)]))
    registry.run_timer_now("bank answers")
    found = BankMessage.objects.get(pk=taken.pk).findings
    assert found == [f"order {paid}: the bank booked it after it was declined (900.100.301): it is approved now"]
    assert Payment.objects.get(pk=paid).status == "APPROVED"
    assert not BankOrderEvent.objects.filter(applied=False).exists()


def test_a_declined_payment_that_moves_while_its_booking_is_read_is_read_again(
    banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (paid,), _ = filed(banked)
    Payment.objects.filter(pk=paid).update(status="DECLINED", result_code="900.100.301")
    sepa.take(sepa.statement([Entry(order=paid)]))

    def move_meanwhile(*_: object, **__: object) -> None:
        raise PaymentTransitionError("another worker was faster")

    with monkeypatch.context() as patched:
        patched.setattr(bank_order_outcomes.store, "complete_payment", move_meanwhile)
        registry.run_timer_now("bank answers")
    assert BankOrderEvent.objects.filter(applied=False).count() == 1
    assert "bank_order_event_not_applied" not in caplog.text, "which is for faults"
    registry.run_timer_now("bank answers")
    assert Payment.objects.get(pk=paid).status == "APPROVED"
    assert not BankOrderEvent.objects.filter(applied=False).exists()


def test_of_too_many_findings_of_a_message_the_oldest_go(
    banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding about money is not lost for those that came before it, and stands there once."""
    monkeypatch.setattr(bank_order_outcomes, "MAX_MESSAGE_FINDINGS", 3)
    (paid,), _ = filed(banked)
    Payment.objects.filter(pk=paid).update(status="DECLINED", result_code="900.100.301")
    taken = sepa.take(sepa.statement([Entry(order=paid)]))
    BankMessage.objects.filter(pk=taken.pk).update(findings=["one", "two", "three"])
    registry.run_timer_now("bank answers")
    first, second, third = BankMessage.objects.get(pk=taken.pk).findings
    assert (first, second) == ("two", "three")
    assert third.startswith(f"order {paid}: the bank booked it")


# --- hostile files --------------------------------------------------------------------------------------------------

BOMB = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10 if n else "ha"}">' for n in range(10))
HOSTILE = {
    "a bomb": f"<!DOCTYPE x [{BOMB}]><Document xmlns='{NAMESPACE}'>&a9;</Document>",
    "a file of ours": "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>"
    f"<Document xmlns='{NAMESPACE}'>&e;</Document>",
    "a document type": f"<!DOCTYPE x><Document xmlns='{NAMESPACE}'/>",
    "an instruction": f"<?x y?><Document xmlns='{NAMESPACE}'><?php x ?></Document>",
    "depth": f"<Document xmlns='{NAMESPACE}'>{'<a>' * 100_000}",
    "another namespace": "<Document xmlns='urn:iso:std:iso:20022:tech:xsd:pain.008.001.08'/>",
    "no namespace": "<Document/>",
    "another root": f"<Envelope xmlns='{NAMESPACE}'/>",
    "broken": f"<Document xmlns='{NAMESPACE}'><a></b></Document>",
    "cut": f"<Document xmlns='{NAMESPACE}'><CstmrPmtStsRpt>",
    "no XML": "hello",
    "nothing": "",
    "zeros": "\0" * 1_000,
    **{
        encoding: f"<?xml version='1.0' encoding='{encoding}'?><Document xmlns='{NAMESPACE}'/>"
        for encoding in ("foo", "utf-7", "utf-32", "big5", "idna", "undefined", "hex")
    },
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_refused_and_leave_nothing(kind: str) -> None:
    with pytest.raises(UnreadableBankMessageError):
        sepa.take(HOSTILE[kind])
    assert not BankMessage.objects.exists()


def test_a_file_that_breaks_in_the_middle_moves_nothing(banked: Shop, outbox: Path) -> None:
    (paid,), file = filed(banked)
    whole = sepa.status(file.message_id, orders={paid: ("RJCT", "AC01")})
    with pytest.raises(UnreadableBankMessageError):
        sepa.take(whole.replace("</CstmrPmtStsRpt>", "</Wrong>"))
    assert (state(paid), BankMessage.objects.count()) == ("FILED", 0)
    assert sepa.take(whole).orders_changed == 1


@override_settings(GATEWAY_SEPA_MAX_BYTES=1_000)
def test_a_file_that_is_too_large_is_refused() -> None:
    with pytest.raises(UnreadableBankMessageError, match="larger than 1,000 bytes"):
        sepa.take(f"<Document xmlns='{NAMESPACE}'>{' ' * 1_000}</Document>")


def test_long_texts_and_many_values_are_cut_and_many_findings_counted() -> None:
    lines = {f"{number:032x}": ("RJCT", "A" * 5_000) for number in range(300)}
    taken = sepa.take(sepa.status("X" * 5_000, orders=lines))
    assert len(taken.findings) == 101
    assert taken.findings[-1] == "and 201 more"
    assert all(len(one) < 200 for one in taken.findings)


# --- the folder and the command -------------------------------------------------------------------------------------


def lay(outbox: Path, name: str, content: str) -> Path:
    path = outbox.parent / "in" / name
    path.write_text(content)
    os.utime(path, (0, 0))
    return path


def test_the_watched_folder_is_taken_in_and_sorted(banked: Shop, outbox: Path) -> None:
    (paid,), file = filed(banked)
    lay(outbox, "status.xml", sepa.status(file.message_id, orders={paid: ("RJCT", "AC01")}))
    lay(outbox, "strange.xml", "hello")
    lay(outbox, "half.part", "hello")
    (outbox.parent / "in" / "link.xml").symlink_to("/etc/passwd")
    assert bank_message_intake.import_watched_folder() == 2
    inbox = outbox.parent / "in"
    assert sorted(str(path.relative_to(inbox)) for path in inbox.rglob("*") if path.is_file() or path.is_symlink()) == [
        "done/status.xml",
        "failed/strange.xml",
        "failed/strange.xml.txt",
        "half.part",
        "link.xml",
    ]
    assert state(paid) == "REJECTED"
    assert bank_message_intake.import_watched_folder() == 0


def test_no_file_keeps_those_behind_it_waiting(banked: Shop, outbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An encoding that nobody reads, a name that is no UTF-8, one that leaves no room for another, a fault of ours."""
    paid, file = filed(banked, "1.00", "2.00")
    monkeypatch.setattr(bank_message_intake, "MAX_FILES_PER_SCAN", 3)
    lay(outbox, "1.xml", "<?xml version='1.0' encoding='foo'?><Document/>")
    lay(outbox, f"2{'x' * 250}.xml", "hello")
    lay(outbox, "3.xml", sepa.statement([Entry(order=paid[0], amount="1.00")]))
    told = sepa.status(file.message_id, orders={paid[1]: ("RJCT", "AC01")})
    lay(outbox, os.fsdecode("K\xe4ufer.xml".encode("latin-1")), told)
    apply = bank_message_intake._apply_entry

    def faulty(one: statement_entries.StatementEntry, taken: bank_message_intake._IntakeResult) -> None:
        if taken.row.name == "3.xml":
            raise KeyError("unforeseen")
        apply(one, taken)

    monkeypatch.setattr(bank_message_intake, "_apply_entry", faulty)
    assert [bank_message_intake.import_watched_folder(), bank_message_intake.import_watched_folder()] == [3, 0]
    inbox = outbox.parent / "in"
    assert (state(paid[0]), state(paid[1])) == ("FILED", "REJECTED")
    assert BankMessage.objects.get().name == "K\ufffdufer.xml"
    assert [path for path in inbox.iterdir() if path.is_file()] == []
    assert "its log says which" in (inbox / "failed" / "3.xml.txt").read_text()


def test_the_command_takes_files_in_and_tells_payments(
    banked: Shop, outbox: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (paid,), file = filed(banked)
    path = lay(outbox, "status.txt", sepa.status(file.message_id, orders={paid: ("RJCT", "AC01")}))
    call_command("sepa_status_file", str(path))
    assert "status.txt: pain.002 STATUS-1, orders moved: 1" in capsys.readouterr().out
    assert banked.api.read(paid).code == "800.100.201"
    with pytest.raises(CommandError, match="1 of 1 files were not taken in"):
        call_command("sepa_status_file", str(path))
    assert "taken in before" in capsys.readouterr().err


@pytest.mark.django_db(transaction=True)
def test_one_file_that_two_take_in_at_once_moves_its_orders_once(banked: Shop, outbox: Path) -> None:
    (paid,), _ = filed(banked)
    content = sepa.statement([Entry(order=paid)]).encode()

    def take() -> str:
        try:
            return str(
                bank_message_intake.import_bank_message(
                    io.BytesIO(content), "x.xml", BankMessage.Source.COMMAND
                ).orders_changed
            )
        except DuplicateBankMessageError:
            return "seen"

    assert sorted(at_once(take, take, take)) == ["1", "seen", "seen"]
    assert at_once(lambda: registry.run_timer_now("bank answers"), lambda: registry.run_timer_now("bank answers"))
    assert Payment.objects.get(pk=paid).status == "APPROVED"
    assert BankOrderEvent.objects.filter(order=UUID(paid)).count() == 1

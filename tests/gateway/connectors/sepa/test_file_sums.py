"""Files of several orders: counts, sums, batches and days, each by its own orders. Source: EPC 130-08, EPC 132-08."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4
from xml.etree import ElementTree
from zoneinfo import ZoneInfo

import pytest

from gateway.connectors import accounts
from gateway.connectors.sepa import file_planning, target_calendar
from gateway.connectors.sepa.connector import SEPA
from gateway.connectors.sepa.creditor import TRANSFER_SCHEMAS
from gateway.connectors.sepa.payment_files import render_payment_file
from gateway.core import clock
from gateway.models import BankFile, BankOrder, Merchant, SepaMandate
from gateway.timers import registry
from tests.support import sepa
from tests.support.clock import jump
from tests.support.fixtures import Shop

FIRST, LATER = date(2026, 5, 14), date(2026, 5, 15)
BERLIN = ZoneInfo("Europe/Berlin")
SCHEMA = "pain.008.001.08"
COLLECT, PAY = BankFile.Kind.COLLECT, BankFile.Kind.PAY


# --- as they are written --------------------------------------------------------------------------------------------


def order(amount: str, **values: Any) -> BankOrder:
    mandate = SepaMandate(mandate="NOW", signed_on=date(2020, 2, 29))
    standard = {"sequence": "RCUR", "due_on": FIRST, "batch": "F-1", "name": "Jane Jones", "mandate": mandate}
    return BankOrder(payment=uuid4(), amount=Decimal(amount), currency="EUR", **{**standard, **values})


def written(kind: BankFile.Kind, orders: Sequence[BankOrder], **creditor: str) -> sepa.File:
    """The file of these orders, with account numbers that are none."""
    schema = SCHEMA if kind == COLLECT else TRANSFER_SCHEMAS[SCHEMA]
    standard = {
        "name": "Shop Ltd", "id": "DE98ZZZ09999999999", "iban": "DE23100000001234567890", "bic": "MARKDEF1100",
        "instrument": "CORE", "schema": schema, "zone": "Europe/Berlin",
    }  # fmt: skip
    stamped = datetime(2026, 5, 11, 22, 30, tzinfo=UTC)
    file = BankFile(kind=kind, message_id="F", stamped_at=stamped, creditor={**standard, **creditor})
    octets = render_payment_file(file, orders, lambda _order: sepa.DEBTOR)
    return sepa.File(octets, ElementTree.fromstring(octets))


@pytest.mark.parametrize("kind", [COLLECT, PAY])
def test_every_amount_is_written_to_the_cent_and_they_add_up(kind: BankFile.Kind) -> None:
    amounts = ["0.01", "0.29", "1.15", "4.35", "8.20", "19.99", "64.10", "1001.00", "999999999.99"]
    file = written(kind, [order(amount) for amount in amounts])
    assert file.texts("InstdAmt") == amounts
    total = f"{sum(map(Decimal, amounts)):.2f}"
    assert (file.text("GrpHdr/NbOfTxs"), file.text("GrpHdr/CtrlSum")) == ("9", total)
    assert (file.text("PmtInf/NbOfTxs"), file.text("PmtInf/CtrlSum")) == ("9", total)


def test_a_batch_has_the_count_the_sum_the_day_and_the_sequence_of_its_own_orders() -> None:
    orders = [
        order("1.00", batch="F-1"),
        order("2.00", batch="F-1"),
        order("4.00", batch="F-2", sequence="FRST"),
        order("8.00", batch="F-3", due_on=LATER),
    ]
    file = written(COLLECT, orders)
    names = ("PmtInfId", "NbOfTxs", "CtrlSum", "PmtTpInf/SeqTp", "ReqdColltnDt")
    found = [[part.findtext("/".join(f"{{*}}{step}" for step in name.split("/"))) for name in names]
             for part in file.tree.iterfind(".//{*}PmtInf")]  # fmt: skip
    assert sorted(found) == [
        ["F-1", "2", "3.00", "RCUR", "2026-05-14"],
        ["F-2", "1", "4.00", "FRST", "2026-05-14"],
        ["F-3", "1", "8.00", "RCUR", "2026-05-15"],
    ]
    assert (file.text("GrpHdr/NbOfTxs"), file.text("GrpHdr/CtrlSum")) == ("4", "15.00")


def test_transfers_of_two_days_are_two_batches() -> None:
    file = written(PAY, [order("1.00"), order("2.00", due_on=LATER, batch="F-2"), order("4.00")])
    days = {part.findtext("{*}PmtInfId"): part.findtext("{*}ReqdExctnDt/{*}Dt") for part in file.tree.iter() if
            part.tag.endswith("}PmtInf")}  # fmt: skip
    assert days == {"F-1": "2026-05-14", "F-2": "2026-05-15"}
    assert sorted(file.texts("PmtInf/CtrlSum")) == ["2.00", "5.00"]


def test_a_file_has_the_moment_of_its_creditors_zone_and_the_mandate_as_it_was_filed() -> None:
    """Filed under the id that the mandate had; a file that is made again says it again."""
    file = written(COLLECT, [order("1.00", mandate_reference="THEN"), order("2.00", mandate_reference="")])
    assert file.text("GrpHdr/CreDtTm") == "2026-05-12T00:30:00"
    assert sorted(file.texts("MndtRltdInf/MndtId")) == ["NOW", "THEN"]
    assert file.texts("MndtRltdInf/DtOfSgntr") == ["2020-02-29"] * 2


@pytest.mark.parametrize(("kind", "agent"), [(COLLECT, "DbtrAgt"), (PAY, "CdtrAgt")])
def test_the_bank_of_the_other_side_is_named_where_it_is_known(kind: BankFile.Kind, agent: str) -> None:
    file = written(kind, [order("1.00", bic="COBADEFFXXX"), order("2.00", bic="")])
    found = {
        one.findtext(".//{*}InstdAmt"): one.findtext(f".//{{*}}{agent}//{{*}}BICFI")
        for one in file.tree.iter()
        if one.tag.endswith(("}DrctDbtTxInf", "}CdtTrfTxInf"))
    }
    assert found == {"1.00": "COBADEFFXXX", "2.00": None}


# --- as they are planned --------------------------------------------------------------------------------------------


def planned(shop: Shop) -> BankFile:
    """What waits is in a file now, however late that is."""
    assert file_planning.plan_due_bank_files(SEPA, shop.merchant)
    return BankFile.objects.latest("id")


def first_day(shop: Shop, lead_days: int) -> date:
    """The first day that a file made now can ask for."""
    merchant = Merchant.objects.get(pk=shop.merchant.pk)
    today = clock.merchant_now(merchant).astimezone(BERLIN).date()
    return target_calendar.target_day_after(target_calendar.roll_to_target_day(today), lead_days)


@pytest.mark.django_db
@pytest.mark.parametrize("lead_days", [1, 3])
def test_a_file_that_is_made_late_asks_for_no_day_that_its_bank_cannot_keep(shop: Shop, lead_days: int) -> None:
    sepa.account_at_bank(shop.channel, leadDays=str(lead_days))
    late, ahead = (UUID(sepa.debit(shop.api, createRegistration="true").id) for _ in range(2))
    jump(20 * 24 * 3600.0)
    far = first_day(shop, 30)
    BankOrder.objects.filter(pk=ahead).update(due_on=far)
    planned(shop)
    orders = BankOrder.objects.in_bulk([late, ahead])
    assert (orders[late].due_on, orders[ahead].due_on) == (first_day(shop, lead_days), far)
    assert orders[late].batch != orders[ahead].batch


@pytest.mark.django_db
def test_a_transfer_that_is_made_late_is_carried_out_on_the_day_of_its_file(banked: Shop) -> None:
    sepa.debit(banked.api, paymentType="CD")
    jump(20 * 24 * 3600.0)
    planned(banked)
    order = BankOrder.objects.get()
    assert (order.due_on, order.final_at, order.sequence) == (first_day(banked, 0), None, "")


@pytest.mark.django_db
def test_each_account_and_each_direction_has_a_file_of_its_own(shop: Shop) -> None:
    made: dict[str, list[str]] = {}
    for name in ("bank-a", "bank-b"):
        account = sepa.account_at_bank(shop.channel, name)
        accounts.clear_account_cache()
        made[f"{name} COLLECT"] = [sepa.debit(shop.api, amount).id for amount in ("1.00", "2.50")]
        made[f"{name} PAY"] = [sepa.debit(shop.api, "4.00", paymentType="CD").id]
        account.active = False
        account.save()
    jump(sepa.A_RUN * 24 * 3600.0)
    file_planning.plan_due_bank_files(SEPA, shop.merchant)
    found = {f"{file.acquirer_merchant_id} {file.kind}": file for file in BankFile.objects.all()}
    assert {name: (file.orders_count, str(file.total)) for name, file in found.items()} == {
        name: (2, "3.50") if "COLLECT" in name else (1, "4.00") for name in made
    }
    for name, idents in made.items():
        assert {one.hex for one in found[name].orders.values_list("pk", flat=True)} == set(idents)


@pytest.mark.django_db
def test_what_was_refused_as_the_file_was_made_counts_in_none(banked: Shop) -> None:
    """Its mandate was ended meanwhile; the last one that fits goes, the next one waits for another file."""
    refused = sepa.debit(banked.api, "7.00", bankAccount__mandate__id="M-A").id
    kept = sepa.debit(banked.api, "1.25", bankAccount__mandate__id="M-B").id
    SepaMandate.objects.filter(mandate="M-A").update(state="ENDED", state_reason="MERCHANT")
    jump(sepa.A_RUN * 24 * 3600.0)
    file = planned(banked)
    assert (file.orders_count, str(file.total)) == (1, "1.25")
    states = {row.pk.hex: (row.state, row.reason) for row in BankOrder.objects.all()}
    assert states == {refused: ("REJECTED", "MD01"), kept: ("FILED", "")}


@pytest.mark.django_db
def test_a_file_takes_so_many_orders_and_the_next_run_the_others(banked: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_planning, "MAX_FILE_ORDERS", 2)
    for _ in range(3):
        sepa.debit(banked.api)
    jump(sepa.A_RUN * 24 * 3600.0)
    assert [file_planning.plan_due_bank_files(SEPA, banked.merchant) for _ in range(3)] == [2, 1, 0]
    assert sorted(BankFile.objects.values_list("orders_count", flat=True)) == [1, 2]


@pytest.mark.django_db
def test_the_last_collection_of_a_mandate_comes_after_its_others_whichever_was_asked_first(banked: Shop) -> None:
    named = {"bankAccount__mandate__id": "M-A"}
    first = sepa.debit(banked.api, **named).id
    last = sepa.debit(banked.api, **named, **{"customParameters[SEPA_lastCollection]": "true"}).id
    other = sepa.debit(banked.api, **named).id
    jump(sepa.A_RUN * 24 * 3600.0)
    planned(banked)
    told = {row.pk.hex: row.sequence for row in BankOrder.objects.all()}
    assert told[last] == "FNAL"
    assert sorted((told[first], told[other])) == ["FRST", "RCUR"]
    mandate = SepaMandate.objects.get()
    assert (mandate.state, mandate.state_reason, mandate.first_payment is not None) == ("ENDED", "FINAL", True)
    assert mandate.first_payment is not None
    assert told[mandate.first_payment.hex] == "FRST"


@pytest.mark.django_db
def test_a_mandate_was_used_on_the_latest_of_its_days(banked: Shop) -> None:
    sepa.debit(banked.api, bankAccount__mandate__id="M-A")
    SepaMandate.objects.update(used_on=date(2099, 1, 1))
    jump(sepa.A_RUN * 24 * 3600.0)
    planned(banked)
    assert SepaMandate.objects.get().used_on == date(2099, 1, 1)


@pytest.mark.django_db
def test_the_next_run_is_that_of_the_first_order_that_waits(banked: Shop, stranger: Shop) -> None:
    assert file_planning.next_bank_file_run(banked.merchant) is None
    idents = [UUID(sepa.debit(banked.api).id) for _ in range(3)]
    at = clock.real_now()
    for number, state in enumerate(("FILED", "WAITING", "WAITING")):
        moment = at + timedelta(days=number)
        BankOrder.objects.filter(pk=idents[number]).update(state=state, file_at=moment)
    assert file_planning.next_bank_file_run(banked.merchant) == at + timedelta(days=1)
    assert file_planning.next_bank_file_run(stranger.merchant) is None


@pytest.mark.django_db
def test_a_reversal_file_counts_and_adds_up_what_it_gives_back(shop: Shop, outbox: Path) -> None:
    sepa.account_at_bank(shop.channel, refundBy="reversal")
    paid = {amount: sepa.debit(shop.api, amount).id for amount in ("1.10", "2.05")}
    sepa.pass_to_file(shop.api)
    sepa.take(sepa.statement([sepa.Entry(order=one, amount=amount) for amount, one in paid.items()]))
    registry.run_timer_now("bank answers")
    for amount, one in paid.items():
        assert shop.api.follow(one, "RF", amount).code == "800.400.502"
    sepa.pass_to_file(shop.api)
    (file,) = [one for one in sepa.files_in(outbox) if b"pain.007" in one.xml]
    assert (file.text("GrpHdr/NbOfTxs"), file.text("GrpHdr/CtrlSum")) == ("2", "3.15")
    each = {
        one.findtext("{*}OrgnlEndToEndId"): (one.findtext("{*}OrgnlInstdAmt"), one.findtext("{*}RvsdInstdAmt"))
        for one in file.tree.iterfind(".//{*}TxInf")
    }
    assert each == {one: (amount, amount) for amount, one in paid.items()}


@pytest.mark.django_db
def test_a_cancellation_counts_and_adds_up_batch_by_batch(shop: Shop, outbox: Path) -> None:
    sepa.account_at_bank(shop.channel, cancelBy="request", leadDays="10")
    once = [sepa.debit(shop.api, amount).id for amount in ("1.10", "2.05")]
    stored = sepa.debit(shop.api, "4.00", createRegistration="true").id
    sepa.pass_to_file(shop.api)
    for one in (*once, stored):
        shop.api.follow(one, "RV")
    registry.run_timer_now("bank files")
    (file,) = [one for one in sepa.files_in(outbox) if b"camt.055" in one.xml]
    parts = {
        part.findtext("{*}OrgnlPmtInfId"): (part.findtext("{*}NbOfTxs"), part.findtext("{*}CtrlSum"))
        for part in file.tree.iterfind(".//{*}OrgnlPmtInfAndCxl")
    }
    batches = dict(BankOrder.objects.filter(kind=COLLECT).values_list("pk", "batch"))
    assert parts == {batches[UUID(once[0])]: ("2", "3.15"), batches[UUID(stored)]: ("1", "4.00")}

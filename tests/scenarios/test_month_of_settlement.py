"""A month of simulated trade is settled; every planted fault is found, and nothing else.

Source: Part B, Reconciliation file, Chargeback; Part A, States.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.db.models import Sum

from chargebacks import cases, ledger
from chargebacks.models import Chargeback
from gateway.core import clock
from gateway.models import Payment
from reporting.models import ClearingInstitute, Finding, SettlementRecord
from reporting.settlement import exception_queue, missing_settlements
from reporting.simulator import settlement_files
from tests.support import fault_seeding
from tests.support.fixtures import Shop
from tests.support.settlement import BY, institute, payment_of, take_in

pytestmark = pytest.mark.django_db
DAYS = 28
WEEK = 7


def on_day(shop: Shop, start: date, day: int) -> None:
    """The merchant's clock stands at ten o'clock of that day."""
    wanted = timedelta(days=(start - clock.real_now().date()).days + day)
    shop.merchant.clock_offset = wanted
    shop.merchant.save(update_fields=["clock_offset"])


def trade(shop: Shop, other: str, start: date) -> dict[str, Payment]:
    """Payments, refunds, partial captures, voids, declines and disputes of four weeks."""
    seen: dict[str, Payment] = {}
    for day in range(0, DAYS, 2):
        on_day(shop, start, day)
        amount = f"{40 + day}.10"
        paid = shop.api.pay(amount=amount, merchantTransactionId=f"order-{day:04d}-a")
        shop.api.pay(amount=f"{10 + day}.50", merchantTransactionId=f"order-{day:04d}-b")
        if day % 4 == 0:
            assert shop.api.follow(paid.id, "RF", "5.00").status == 200
        if day % 6 == 0:
            held = shop.api.pay(paymentType="PA", amount="100.00")
            assert shop.api.follow(held.id, "CP", "60.00").status == 200
            assert shop.api.follow(held.id, "RV").status == 200
        if day % 8 == 0:
            part = shop.api.pay(amount="30.00")
            assert shop.api.follow(part.id, "RV", "30.00").status == 200
        if day % 10 == 0:
            assert shop.api.as_entity(other).pay(amount=f"{70 + day}.00").status == 200
        if day == 10:
            seen["declined"] = payment_of(shop.api.pay(card__number="4000015200000008", amount="33.00").id)
        if day == 20:
            seen["twin 1"], seen["twin 2"] = (payment_of(shop.api.pay(amount="77.77").id) for _ in range(2))
        if day == 12:
            seen["disputed"] = payment_of(shop.api.pay(amount="55.00").id)
            assert (
                shop.api.follow(seen["disputed"].id.hex, "CB", "55.00", chargebackResultCode="000.100.221").status
                == 200
            )
        if day == 14:
            seen["told"] = payment_of(shop.api.pay(amount="66.00").id)
    return seen


def found() -> Counter[tuple[str, str]]:
    """What there is to look at: (kind, the institute's id of the line)."""
    queue = Counter((record.state, record.settlement_tx_id) for record in exception_queue.list_unmatched_records())
    return queue + Counter((one.kind, one.record.settlement_tx_id) for one in exception_queue.list_open_findings())


def weekly(of: ClearingInstitute, start: date) -> list[tuple[settlement_files.SimulatedFile, date]]:
    books = []
    for week in range(DAYS // WEEK):
        first = start + timedelta(days=week * WEEK)
        last = first + timedelta(days=WEEK - 1)
        books.append(
            (
                settlement_files.build_settlement_file(
                    of, settlement_files.list_institute_payments(of, first, last), last
                ),
                last,
            )
        )
    return books


def test_a_month_of_trade_is_settled_and_every_planted_fault_is_found_and_nothing_else(shop: Shop) -> None:
    start = date(clock.real_now().year + 1, 3, 2)
    of = institute(fee_percent=Decimal("1.4"), fee_fixed=Decimal("0.25"), time_zone="Europe/Berlin")
    other = shop.open_channel()
    seen = trade(shop, other.entity_id, start)
    assert cases.adopt_recent_payments() == 1
    books = weekly(of, start)
    planted: list[fault_seeding.SeededFinding] = []
    for number, (book, paid_on) in enumerate(books):
        sowing = fault_seeding.FaultSeeder(book=book, institute=of, paid_on=paid_on)
        if number == 2:
            sowing.hide_ids(seen["twin 1"], seen["twin 2"])
            line = fault_seeding.build_dispute_line(of, seen["told"], Decimal("66.00"), paid_on, reason="000.100.220")
            book.lines.append((line, seen["told"]))
        if number == 1:
            sowing.settle_declined(seen["declined"])
            sowing.charge_back_unknown(seen["told"])
            sowing.reverse_undisputed(next(payment for _, payment in book.lines if payment is not None))
        planted += sowing.planted
    debits = fault_seeding.FaultSeeder(book=books[0][0], institute=of, paid_on=books[0][1])
    for book, _ in books[1:]:
        books[0][0].lines.extend(book.lines)
    debits.spoil(fault_seeding.build_seeded_faults(other))
    planted += debits.planted

    file = take_in(books[0][0].text(), of)

    assert (file.state, file.faults, file.lines) == ("DONE", 0, len(books[0][0].lines))
    expected = Counter((one.finds, one.settlement_tx_id) for one in planted if one.finds != fault_seeding.MISSING_LINE)
    assert found() == expected
    assert len({one.fault for one in planted}) >= 12
    lost = {one.payment.id for one in planted if one.finds == fault_seeding.MISSING_LINE and one.payment is not None}
    assert {
        payment.id for payment in missing_settlements.list_unsettled_payments(of, start, start + timedelta(days=DAYS))
    } == lost
    _sums_are_equal(books[0][0])
    _disputes_follow(shop, of, seen, start)


def _sums_are_equal(book: settlement_files.SimulatedFile) -> None:
    """The file's sums, the records' and the settlements' are one."""
    in_file: Counter[str] = Counter()
    for line, _ in book.lines:
        in_file[line["Cashflow"]] += Decimal(line["SettlementAmount"])  # type: ignore[assignment]
    rows = SettlementRecord.objects.values("cashflow").annotate(sum=Sum("settlement_amount"))
    assert {row["cashflow"]: row["sum"] for row in rows} == dict(in_file)
    parts = SettlementRecord.objects.values("settlement").annotate(sum=Sum("settlement_amount"))
    assert sum(row["sum"] for row in parts) == sum(in_file.values())


def _disputes_follow(shop: Shop, of: ClearingInstitute, seen: dict[str, Payment], start: date) -> None:
    """A chargeback known by API is joined; one the file tells of becomes a CB payment, its reversal a CR payment."""
    known = Chargeback.objects.get(disputed=seen["disputed"].id)
    told = Chargeback.objects.get(disputed=seen["told"].id)
    assert (known.source, told.source, told.reason_code) == ("api", "file", "000.100.220")
    lines = SettlementRecord.objects.filter(record_type="CHARGEBACK", chargeback__isnull=False)
    assert set(lines.values_list("chargeback", flat=True)) == {known.id, told.id}
    assert shop.api.read(told.id.hex).code == "000.100.220"
    paid_on = start + timedelta(days=DAYS)
    line = fault_seeding.build_dispute_line(of, seen["told"], Decimal("66.00"), paid_on, reversal=True)
    take_in(settlement_files.SimulatedFile([(line, None)]).text(), of, "next.csv")
    told.refresh_from_db()
    assert (told.state, told.recovered) == ("WON", Decimal("66.00"))
    back = Payment.objects.get(chain=told.chain, payment_type="CR")
    assert (
        SettlementRecord.objects.get(record_type="CHARGEBACK REVERSAL", chargeback__isnull=False).chargeback == back.id
    )
    again = ledger.record_chargeback(seen["told"], Decimal("66.00"), by=BY)
    assert (again.state, again.stage, again.previous_id) == ("OPEN", "PRE_ARBITRATION", told.id)
    assert not Finding.objects.filter(record__file__name="next.csv").exists()

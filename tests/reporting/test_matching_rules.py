"""Which of several payments a line is about: each condition of the rules by itself. Source: Part B, Reconciliation file
(matching status); docs/settlement.md."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from gateway.core import clock
from gateway.models import AcquirerAccount, Payment
from reporting.models import Finding, Match, SettlementRecord
from reporting.settlement import exception_queue, intake, matching
from reporting.settlement.layout import STAGED_COLUMNS
from reporting.settlement.matching import MatchingRun
from tests.support.fixtures import Shop
from tests.support.settlement import BY, csv, institute, line, payment_of, take_in

pytestmark = pytest.mark.django_db


def pay(shop: Shop, **fields: Any) -> Payment:
    return payment_of(shop.api.pay(**fields).id)


def share_id(*payments: Payment) -> None:
    """An id of the institute that is not unique."""
    Payment.objects.filter(pk__in=[one.pk for one in payments]).update(connector_tx_id="SHARED-1")


def open_account(shop: Shop, name: str, connector: str = "simulator") -> AcquirerAccount:
    return AcquirerAccount.objects.create(channel=shop.channel, connector=connector, acquirer_merchant_id=name)


def chosen() -> list[object]:
    return [match.payment if match.chosen else None for match in Match.objects.order_by("record__line", "payment")]


# --- an id that several payments have -----------------------------------------------------------------------------


@pytest.mark.parametrize("named", [0, 1])
def test_of_two_payments_with_one_id_the_one_at_the_lines_account_is_meant(shop: Shop, named: int) -> None:
    one = pay(shop)
    other = payment_of(shop.api_of(shop.open_channel()).pay().id)
    share_id(one, other)
    wanted = (one, other)[named]
    row = line(wanted, ConnectorTxId1="SHARED-1", ClearingInstituteMerchantId=wanted.channel_id.hex)
    take_in(csv([row]), institute())
    assert (SettlementRecord.objects.get().state, chosen()) == ("MATCHED", [wanted.pk])


@pytest.mark.parametrize(("kind", "named"), [("DEBIT", 0), ("REFUND", 1)])
def test_of_two_payments_with_one_id_the_one_of_the_lines_direction_is_meant(shop: Shop, kind: str, named: int) -> None:
    debit = pay(shop)
    refund = payment_of(shop.api.follow(debit.id.hex, "RF", "92.00").id)
    share_id(debit, refund)
    take_in(csv([line(debit, ConnectorTxId1="SHARED-1", PaymentType=kind)]), institute())
    assert (SettlementRecord.objects.get().state, chosen()) == ("MATCHED", [(debit, refund)[named].pk])


def test_the_account_goes_before_the_direction_and_the_earlier_id_before_both(shop: Shop) -> None:
    debit, later = pay(shop), pay(shop, amount="12.00")
    elsewhere = payment_of(shop.api_of(shop.open_channel()).pay().id)
    refund = payment_of(shop.api.follow(debit.id.hex, "RF", "92.00").id)
    share_id(elsewhere, refund)
    row = line(debit, ConnectorTxId1="SHARED-1", ConnectorTxId2=later.connector_tx_id)
    take_in(csv([row]), institute())
    assert chosen() == [refund.pk]


@pytest.mark.parametrize("by", ["id", "old id"])
def test_of_two_payments_with_one_id_the_one_of_the_lines_sum_is_meant(
    shop: Shop, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captures of one authorization that share their processor's charge."""
    if by == "old id":
        monkeypatch.setattr(matching, "RECENT_PAYMENTS_WINDOW", -timedelta(days=1))
    one, other = pay(shop, amount="12.00"), pay(shop, amount="30.00")
    share_id(one, other)
    rows = [line(payment, ConnectorTxId1="SHARED-1", SettlementTxId=str(at)) for at, payment in enumerate((other, one))]
    take_in(csv(rows), institute())
    assert {record.state for record in SettlementRecord.objects.all()} == {"MATCHED"}
    assert chosen() == [other.pk, one.pk]


@pytest.mark.parametrize("record", ["SETTLED", "CHARGEBACK"])
def test_of_two_payments_with_one_id_no_sum_decides_that_neither_has_or_that_may_be_a_part(
    shop: Shop, record: str
) -> None:
    """A chargeback may be of a part of either."""
    one, other = pay(shop, amount="12.00"), pay(shop, amount="30.00")
    share_id(one, other)
    named = {"ConnectorTxId1": "SHARED-1"}
    if record == "SETTLED":
        named |= {"Amount": "42.00", "SettlementAmount": "42.00"}
    else:
        named |= {"ReconciliationType": record, "Cashflow": "NEG", "ReasonCode": "000.100.220"}
    take_in(csv([line(one, **named)]), institute())
    assert SettlementRecord.objects.get().state == "MULTIPLE_MATCHES"


def test_a_chargeback_is_about_a_payment_that_brought_money(shop: Shop) -> None:
    debit = pay(shop)
    refund = payment_of(shop.api.follow(debit.id.hex, "RF", "92.00").id)
    row = line(debit, ReconciliationType="CHARGEBACK", ConnectorTxId1="", ReasonCode="000.100.220")
    take_in(csv([{**row, "ConnectorTxId2": refund.connector_tx_id}]), institute())
    assert SettlementRecord.objects.get().state == "NOT_MATCHED"
    assert chosen() == []


# --- an account that several merchants have -----------------------------------------------------------------------


def test_an_account_of_two_merchants_names_neither(shop: Shop, stranger: Shop) -> None:
    """Its lines are still told apart by the ids of payments."""
    open_account(shop, "SAME-ACCOUNT")
    open_account(stranger, "SAME-ACCOUNT")
    mine, theirs = pay(shop), pay(stranger)
    rows = [
        line(one, ClearingInstituteMerchantId="SAME-ACCOUNT", SettlementTxId=str(at))
        for at, one in enumerate((mine, theirs))
    ]
    unknown = line(mine, ClearingInstituteMerchantId="SAME-ACCOUNT", ConnectorTxId1="NOBODYS", SettlementTxId="3")
    take_in(csv([*rows, unknown]), institute())
    found = list(SettlementRecord.objects.order_by("line"))
    assert [one.state for one in found] == ["MATCHED", "MATCHED", "NOT_MATCHED"]
    assert [one.merchant_id for one in found] == [shop.merchant.pk, stranger.merchant.pk, None]
    assert [one.account for one in found] == [None] * 3


def test_two_accounts_of_one_merchant_name_the_merchant_alone(shop: Shop) -> None:
    open_account(shop, "SAME-ACCOUNT")
    AcquirerAccount.objects.create(
        channel=shop.open_channel(), connector="simulator", acquirer_merchant_id="SAME-ACCOUNT"
    )
    take_in(csv([line(pay(shop), ClearingInstituteMerchantId="SAME-ACCOUNT", ConnectorTxId1="NOBODYS")]), institute())
    record = SettlementRecord.objects.get()
    assert (record.merchant_id, record.account) == (shop.merchant.pk, None)


def test_an_account_at_another_connector_is_another_account(shop: Shop, stranger: Shop) -> None:
    mine = open_account(shop, "SAME-ACCOUNT")
    open_account(stranger, "SAME-ACCOUNT", "stub")
    take_in(csv([line(pay(shop), ClearingInstituteMerchantId="SAME-ACCOUNT", ConnectorTxId1="NOBODYS")]), institute())
    record = SettlementRecord.objects.get()
    assert (record.merchant_id, record.account) == (shop.merchant.pk, mine.pk)


# --- a line without an id -----------------------------------------------------------------------------------------


def without_id(payment: Payment, **changes: str) -> dict[str, str]:
    return {**line(payment), "ConnectorTxId1": "", **changes}


@pytest.mark.parametrize("by", ["reference", "amount"])
@pytest.mark.parametrize(
    "change",
    [
        {},
        {"Currency": "USD", "SettlementCurrency": "USD"},
        {"Amount": "92.01", "SettlementAmount": "92.01"},
        {"Amount": "91.99", "SettlementAmount": "91.99"},
        {"PaymentType": "REFUND"},
        {"ClearingInstituteMerchantId": "ANOTHER"},
        {"ConnectorTxId3": "NOBODYS"},
    ],
)
def test_without_an_id_all_of_it_has_to_fit(shop: Shop, by: str, change: dict[str, str]) -> None:
    payment = pay(shop, merchantTransactionId="order-0001")
    open_account(shop, "ANOTHER")
    row = without_id(payment, **change)
    take_in(csv([row | ({"TransactionId": "order-0001"} if by == "reference" else {})]), institute())
    assert SettlementRecord.objects.get().state == ("NOT_MATCHED" if change else "MATCHED")
    assert [match.rule for match in Match.objects.all()] == ([] if change else [by])


@pytest.mark.parametrize("by", ["reference", "amount"])
def test_what_was_not_approved_is_no_candidate(shop: Shop, by: str) -> None:
    payment = pay(shop, merchantTransactionId="order-0001", card__number="4000015500000005")
    row = without_id(payment, **({"TransactionId": "order-0001"} if by == "reference" else {}))
    take_in(csv([row]), institute())
    assert SettlementRecord.objects.get().state == "NOT_MATCHED"


@pytest.mark.parametrize(("amount", "state"), [("92.00", "MATCHED"), ("40.00", "MATCHED"), ("92.01", "NOT_MATCHED")])
def test_a_chargeback_by_reference_is_of_the_whole_payment_at_most(shop: Shop, amount: str, state: str) -> None:
    payment = pay(shop, merchantTransactionId="order-0001")
    row = without_id(
        payment,
        ReconciliationType="CHARGEBACK",
        Cashflow="NEG",
        TransactionId="order-0001",
        Amount=amount,
        SettlementAmount=amount,
        ReasonCode="000.100.220",
    )
    take_in(csv([row]), institute())
    assert SettlementRecord.objects.get().state == state


@pytest.mark.parametrize("undone", [False, True])
def test_a_payment_whose_settlement_was_undone_is_a_candidate_again(shop: Shop, undone: bool) -> None:
    payment, of = pay(shop), institute()
    take_in(csv([line(payment)]), of)
    record = SettlementRecord.objects.get()
    if undone:
        exception_queue.undo_resolution(record, BY)
    take_in(csv([without_id(payment, SettlementTxId="2")]), of, "second.csv")
    assert SettlementRecord.objects.get(file__name="second.csv").state == ("MATCHED" if undone else "NOT_MATCHED")


def test_a_chargeback_of_a_payment_leaves_it_to_be_settled(shop: Shop) -> None:
    payment, of = pay(shop), institute()
    charged = line(payment, ReconciliationType="CHARGEBACK", Cashflow="NEG", ReasonCode="000.100.220")
    take_in(csv([charged]), of)
    take_in(csv([without_id(payment, SettlementTxId="2")]), of, "second.csv")
    assert SettlementRecord.objects.get(file__name="second.csv").state == "MATCHED"


def test_lines_that_fit_two_payments_take_neither_and_are_shown_both(shop: Shop) -> None:
    one, other = pay(shop), pay(shop)
    rows = [without_id(one, SettlementTxId=str(at)) for at in range(2)]
    take_in(csv(rows), institute())
    assert [record.state for record in SettlementRecord.objects.order_by("line")] == ["MULTIPLE_MATCHES"] * 2
    assert chosen() == [None] * 4
    assert set(Match.objects.values_list("payment", flat=True)) == {one.pk, other.pk}
    assert not Finding.objects.filter(kind="DUPLICATE").exists()


def test_what_was_approved_in_part_is_settled_in_part(shop: Shop) -> None:
    payment = pay(shop)
    Payment.objects.filter(pk=payment.pk).update(approved_amount="60.00")
    for at, amount in enumerate(("92.00", "60.00")):
        row = without_id(payment, Amount=amount, SettlementAmount=amount, SettlementTxId=str(at))
        take_in(csv([row]), institute(key=f"i-{at}", name=f"I {at}"), f"{amount}.csv")
    assert SettlementRecord.objects.get(file__name="92.00.csv").state == "NOT_MATCHED"
    assert SettlementRecord.objects.get(file__name="60.00.csv").state == "MATCHED"


# --- the second pass, once more -----------------------------------------------------------------------------------


def test_a_line_that_a_clerk_marked_is_not_matched_again(shop: Shop) -> None:
    """A payment that fits may be found later; the clerk said that there is none."""
    file = take_in(csv([without_id(pay(shop, amount="12.00"), Amount="92.00", SettlementAmount="92.00")]), institute())
    record = SettlementRecord.objects.get()
    exception_queue.mark_without_payment(record, BY, "a test of the institute")
    pay(shop)

    def match_again() -> int:
        with MatchingRun(file) as run:
            found = intake.rematch_file(file, run, clock.real_now())
            assert (run.find_slice_end(0, 10) is None) == record.without_payment or found
            return found

    assert match_again() == 0
    exception_queue.undo_resolution(record, BY)
    assert match_again() == 1


def test_a_payment_that_was_only_a_candidate_is_still_to_be_settled(shop: Shop) -> None:
    one, _, of = pay(shop, merchantTransactionId="order-0001"), pay(shop), institute()
    take_in(csv([without_id(one)]), of)
    assert SettlementRecord.objects.get().state == "MULTIPLE_MATCHES"
    take_in(csv([without_id(one, SettlementTxId="2", TransactionId="order-0001")]), of, "second.csv")
    assert SettlementRecord.objects.get(file__name="second.csv").state == "MATCHED"


def test_of_equal_lines_the_first_one_gets_the_only_payment(shop: Shop) -> None:
    payment = pay(shop)
    take_in(csv([without_id(payment, SettlementTxId=str(at)) for at in range(3)]), institute())
    assert [record.state for record in SettlementRecord.objects.order_by("line")] == [
        "MATCHED",
        "NOT_MATCHED",
        "NOT_MATCHED",
    ]
    assert chosen() == [payment.pk]


def test_a_line_that_fits_two_payments_takes_none_from_one_that_fits_a_single_one(shop: Shop) -> None:
    """Whichever comes first in the file."""
    one, other = pay(shop), pay(shop)
    day = timedelta(days=1)
    noon = (one.created_at - 10 * day).replace(hour=12)
    for payment, at in ((one, noon), (other, noon + 2 * day)):
        Payment.objects.filter(pk=payment.pk).update(created_at=at)

    def presented(at: datetime, number: str) -> dict[str, str]:
        named = {"TxRequestTime": f"{at:%Y-%m-%d %H:%M:%S}", "SettlementTxId": number}
        return without_id(one, SettlementDate=f"{noon + 3 * day:%Y-%m-%d}", **named)

    take_in(csv([presented(noon + day, "1"), presented(noon - day, "2")]), institute())
    assert [record.state for record in SettlementRecord.objects.order_by("line")] == ["MULTIPLE_MATCHES", "MATCHED"]
    assert chosen() == [None, None, one.pk]


# --- whose line it is ---------------------------------------------------------------------------------------------


def share_account(*shops: Shop) -> None:
    """Merchants whose payments one account of the institute settles."""
    for one in shops:
        open_account(one, "SAME-ACCOUNT")


def pay_there(shop: Shop, **fields: Any) -> Payment:
    payment = pay(shop, **fields)
    Payment.objects.filter(pk=payment.pk).update(acquirer_merchant_id="SAME-ACCOUNT")
    return payment_of(payment.id.hex)


@pytest.mark.parametrize("by", ["reference", "amount"])
def test_a_line_of_a_shared_account_is_of_its_payments_merchant(shop: Shop, stranger: Shop, by: str) -> None:
    share_account(shop, stranger)
    payment = pay_there(stranger, merchantTransactionId="order-0001")
    take_in(csv([without_id(payment, **({"TransactionId": "order-0001"} if by == "reference" else {}))]), institute())
    record = SettlementRecord.objects.get()
    assert (record.state, record.merchant_id) == ("MATCHED", stranger.merchant.pk)


@pytest.mark.parametrize("by", ["id", "old id", "reference", "amount"])
@pytest.mark.parametrize("two", [False, True])
def test_a_line_that_may_be_of_two_merchants_is_of_neither_until_a_clerk_decides(
    shop: Shop, stranger: Shop, by: str, two: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if by == "old id":
        monkeypatch.setattr(matching, "RECENT_PAYMENTS_WINDOW", -timedelta(days=1))
    share_account(shop, stranger)
    first, last = (pay_there(one, merchantTransactionId="order-0001") for one in (shop, stranger if two else shop))
    share_id(first, last)
    row = without_id(first) if by in ("reference", "amount") else line(first, ConnectorTxId1="SHARED-1")
    take_in(csv([row | ({"TransactionId": "order-0001"} if by == "reference" else {})]), institute())
    record = SettlementRecord.objects.get()
    assert (record.state, Match.objects.count()) == ("MULTIPLE_MATCHES", 2)
    assert record.merchant_id == (None if two else shop.merchant.pk)
    exception_queue.link_payment(record, last, BY)
    assert SettlementRecord.objects.get().merchant_id == last.merchant_id


# --- which settlement a line is of ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("column", "other"),
    [
        ("ClearingInstituteMerchantId", "account-2"),
        ("SettlementReference", "payout-2"),
        ("SettlementDate", "2030-01-03"),
        ("SettlementCurrency", "CHF"),
    ],
)
def test_settlements_that_differ_in_one_thing_have_each_their_own_lines(db: None, column: str, other: str) -> None:
    """Those of another institute with the same names are not theirs."""
    fee = line(ReconciliationType="FEE", PaymentType="MONTHLY", Amount="9.90")
    also = {"Currency": other} if column == "SettlementCurrency" else {}
    fees = [fee, {**fee, **also, column: other}]
    take_in(csv(fees), institute(key="another", name="Another bank"))
    take_in(csv(fees), institute())
    records = SettlementRecord.objects.select_related("settlement").order_by("institute_id", "line")
    assert len({record.settlement_id for record in records}) == 4
    for record in records:
        of = record.settlement
        assert of is not None
        assert (of.institute_id, of.institute_merchant_id, of.reference, of.date, of.currency) == (
            record.institute_id,
            record.institute_merchant_id,
            {"SettlementReference": other}.get(column, "payout-1") if record.line == 2 else "payout-1",
            record.settlement_date,
            record.settlement_currency,
        )


# --- rows that the database refuses -------------------------------------------------------------------------------


def staged(**changes: str) -> str:
    """A line of COPY with the usual value of each type, but for ``changes``."""
    usual = {
        "integer": "1", "uuid": "00000000-0000-0000-0000-000000000001", "text": "", "numeric": "1.00",
        "timestamptz": r"\N", "date": "2030-01-02",
    }  # fmt: skip
    return "\t".join(changes.get(name, usual[kind]) for name, kind in STAGED_COLUMNS)


@pytest.mark.parametrize(
    ("rows", "refused"),
    [
        ([{}], []),
        ([{}, {}, {}], []),
        ([{"amount": "x"}], [(0, "amount")]),
        ([{}, {"settlement_date": "2030-02-30"}], [(1, "settlement_date")]),
        ([{"line": "x"}, {}], [(0, "line")]),
        ([{}, {}, {"our_id": "x"}, {}, {"amount": "x"}], [(2, "our_id"), (4, "amount")]),
        ([{"amount": "x"}] * 3, [(0, "amount"), (1, "amount"), (2, "amount")]),
        # A line too short names no column.
        ([{"short": "x"}, {}], [(0, "")]),
    ],
)
def test_rows_that_the_database_refuses_are_named_with_their_column(
    shop: Shop, rows: list[dict[str, str]], refused: list[tuple[int, str]]
) -> None:
    file = take_in(csv([line(pay(shop))]), institute())
    texts = ["1\tx" if "short" in row else staged(**row) for row in rows]
    with MatchingRun(file) as run:
        found = run.find_rejected_rows(texts)
    assert [at for at, _ in found] == [at for at, _ in refused]
    for (_, column), (_, expected) in zip(found, refused, strict=True):
        assert column == expected or not expected


@pytest.mark.parametrize("by", ["id", "old id", "reference"])
def test_of_many_payments_that_a_line_may_be_about_twenty_are_kept(
    shop: Shop, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest ones; the line says that there are several."""
    if by == "old id":
        monkeypatch.setattr(matching, "RECENT_PAYMENTS_WINDOW", -timedelta(days=1))
    payments = [pay(shop, merchantTransactionId="order-0001") for _ in range(matching.MAX_STORED_CANDIDATES + 1)]
    Payment.objects.filter(pk__in=[one.pk for one in payments]).update(connector_tx_id="SHARED-1")
    if by == "reference":
        row = without_id(payments[0], TransactionId="order-0001")
    else:
        row = line(payments[0], ConnectorTxId1="SHARED-1")
    take_in(csv([row]), institute())
    assert SettlementRecord.objects.get().state == "MULTIPLE_MATCHES"
    kept = list(Match.objects.order_by("payment").values_list("payment", flat=True))
    assert kept == sorted(one.pk for one in payments)[: matching.MAX_STORED_CANDIDATES]


def test_each_batch_of_a_file_is_matched_by_itself(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the batch before has left is no line of the next one."""
    monkeypatch.setattr(intake, "INTAKE_BATCH_LINES", 1)
    payments = [pay(shop) for _ in range(3)]
    file = take_in(csv([line(one, SettlementTxId=str(at)) for at, one in enumerate(payments)]), institute())
    assert (file.state, file.records, file.matched) == ("DONE", 3, 3)
    assert [record.line for record in SettlementRecord.objects.order_by("line")] == [1, 2, 3]
    assert chosen() == [one.pk for one in payments]

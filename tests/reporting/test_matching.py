"""Which payment a line is about. Source: Part B, Reconciliation file (matching status); B19.9."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import override_settings

from chargebacks import ledger
from chargebacks.models import Chargeback
from gateway.core import clock, identifiers
from gateway.models import AuditEntry, Payment
from reporting.models import Finding, Match, MatchState, SettlementRecord
from reporting.settlement import chargeback_booking, exception_queue, matching, missing_settlements
from tests.support.books import file_of
from tests.support.fixtures import Shop
from tests.support.settlement import BY, csv, institute, line, payment_of, take_in
from tests.support.threads import at_once

pytestmark = pytest.mark.django_db


def states() -> list[str]:
    return list(SettlementRecord.objects.order_by("line", "id").values_list("state", flat=True))


def kinds() -> list[str]:
    return sorted(Finding.objects.values_list("kind", flat=True))


def to_do() -> list[str]:
    return [finding.kind for finding in exception_queue.list_open_findings()]


@pytest.mark.parametrize("name", ["ConnectorTxId1", "ConnectorTxId2", "ConnectorTxId3"])
def test_a_line_that_names_an_id_of_the_institute_is_matched_to_its_payment(shop: Shop, name: str) -> None:
    payment = payment_of(shop.api.pay().id)
    ids = {"ConnectorTxId1": "", name: payment.connector_tx_id}
    file = take_in(csv([line(payment, **ids)]), institute())
    record = SettlementRecord.objects.get()
    match = Match.objects.get(record=record)
    assert (record.state, match.payment, match.chosen) == (MatchState.MATCHED, payment.id, True)
    assert (record.merchant_id, record.account) == (shop.merchant.id, shop.channel.id)
    assert (file.state, file.records, file.matched, file.faults) == ("DONE", 1, 1, 0)
    assert kinds() == []


def test_a_connection_that_has_used_temporary_tables_before_takes_a_file_in_all_the_same(shop: Shop) -> None:
    """It has the memory for them that it began with: PostgreSQL gives it no more."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE before AS SELECT 1 AS one")
        cursor.execute("SELECT one FROM before")
    payment = payment_of(shop.api.pay().id)
    assert take_in(csv([line(payment)]), institute()).matched == 1


def test_a_run_on_a_new_connection_has_the_memory_for_its_copies(committed: Shop) -> None:
    """With PostgreSQL's default nearly every lookup of an id reads a page."""
    file = file_of(institute())
    connection.close()
    with matching.MatchingRun(file), connection.cursor() as cursor:
        cursor.execute("SHOW temp_buffers")
        assert cursor.fetchone() == (matching.TEMP_BUFFERS,)


def test_all_that_is_wrong_with_a_line_is_found_at_once(shop: Shop) -> None:
    """Each kind is asked of each line, whichever other ones were found."""
    payment = payment_of(shop.api.pay(amount="92.00").id)
    right = payment_of(shop.api.pay(amount="12.00").id)
    wrong = {"Amount": "93.00", "SettlementAmount": "90.00", "Cashflow": "NEG", "SettlementStatus": "FAILED"}
    take_in(csv([line(payment, **wrong), line(right)]), institute())
    assert kinds() == ["AMOUNT", "ARITHMETIC", "DIRECTION", "FAILED"]
    assert set(Finding.objects.values_list("record__line", "payment", "merchant")) == {
        (1, payment.id, shop.merchant.id)
    }
    amount = Finding.objects.get(kind="AMOUNT")
    assert (amount.expected, amount.found) == ("92.00", "93.00")


def test_our_own_id_goes_before_the_institutes(shop: Shop) -> None:
    right, wrong = payment_of(shop.api.pay().id), payment_of(shop.api.pay().id)
    take_in(csv([line(right, UniqueID=right.id.hex, ConnectorTxId1=wrong.connector_tx_id)]), institute())
    assert Match.objects.get().payment == right.id


@pytest.mark.parametrize("how_many, state", [(0, "NOT_MATCHED"), (1, "MATCHED"), (2, "MULTIPLE_MATCHES")])
def test_without_an_id_amount_currency_day_and_account_decide(shop: Shop, how_many: int, state: str) -> None:
    """A26.7, B19.9: one match, two, none."""
    shop.api.pay(amount="11.00")
    payments = {payment_of(shop.api.pay(amount="92.00").id).id for _ in range(how_many)}
    shop.api_of(shop.open_channel()).pay(amount="92.00")
    row = line(
        ClearingInstituteMerchantId=shop.channel.id.hex, SettlementDate=f"{clock.merchant_now(shop.merchant):%Y-%m-%d}"
    )
    file = take_in(csv([row]), institute())
    assert states() == [state]
    assert set(Match.objects.values_list("payment", flat=True)) == payments
    assert (file.matched, file.multiple, file.unmatched) == (how_many == 1, how_many == 2, how_many == 0)


def test_without_an_id_the_merchants_reference_goes_before_the_amount(shop: Shop) -> None:
    shop.api.pay(merchantTransactionId="order-0001")
    second = payment_of(shop.api.pay(merchantTransactionId="order-0002").id)
    row = {**line(second), "ConnectorTxId1": "", "TransactionId": "order-0002"}
    take_in(csv([row]), institute())
    match = Match.objects.get()
    assert (match.payment, match.rule) == (second.id, "reference")


def test_a_payment_that_is_settled_already_is_no_candidate_for_its_amount(shop: Shop) -> None:
    payment, of = payment_of(shop.api.pay().id), institute()
    take_in(csv([line(payment), {**line(payment), "ConnectorTxId1": ""}]), of)
    assert states() == ["MATCHED", "NOT_MATCHED"]


def test_of_two_lines_that_are_alike_the_first_has_the_one_payment(shop: Shop) -> None:
    row = {**line(payment_of(shop.api.pay().id)), "ConnectorTxId1": ""}
    take_in(csv([row, {**row, "SettlementTxId": "2"}]), institute())
    assert states() == ["MATCHED", "NOT_MATCHED"]


def test_an_id_that_nobody_knows_is_not_made_up_for_by_the_amount(shop: Shop) -> None:
    payment = payment_of(shop.api.pay().id)
    take_in(csv([line(payment, ConnectorTxId1="SOMEBODY-ELSES")]), institute())
    assert states() == ["NOT_MATCHED"]
    best = exception_queue.list_candidate_payments(SettlementRecord.objects.get())
    assert [one.payment.id for one in best] == [payment.id]
    assert {"amount", "currency", "account"} <= set(best[0].same)


def test_a_line_never_meets_another_merchants_payment(shop: Shop, stranger: Shop) -> None:
    theirs = payment_of(stranger.api.pay().id)
    row = line(theirs, UniqueID=theirs.id.hex, ClearingInstituteMerchantId=shop.channel.id.hex)
    take_in(csv([row]), institute())
    record = SettlementRecord.objects.get()
    assert (record.state, record.merchant_id, Match.objects.count()) == ("NOT_MATCHED", shop.merchant.id, 0)
    assert exception_queue.list_candidate_payments(record) == []
    with pytest.raises(exception_queue.ExceptionActionError, match="another merchant"):
        exception_queue.link_payment(record, theirs, BY)


def test_payments_older_than_the_first_pass_looks_are_found_by_id(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    payment = payment_of(shop.api.pay().id)
    monkeypatch.setattr(matching, "RECENT_PAYMENTS_WINDOW", timedelta(0))
    file = take_in(csv([line(payment)]), institute())
    assert (states(), file.matched, file.unmatched) == (["MATCHED"], 1, 0)


def test_payments_of_other_connectors_are_not_this_institutes(shop: Shop) -> None:
    take_in(csv([line(payment_of(shop.api.pay().id))]), institute(connectors=["stub"]))
    assert states() == ["NOT_MATCHED"]


def test_what_was_reversed_before_settlement_is_not_expected_to_be_settled(shop: Shop) -> None:
    of, today = institute(), clock.merchant_now(shop.merchant).date()
    part, whole = shop.api.pay(), shop.api.pay()
    assert shop.api.follow(part.id, "RV", "30.00").status == 200
    assert shop.api.follow(whole.id, "RV").status == 200
    take_in(csv([line(payment_of(part.id), Amount="62.00", SettlementAmount="62.00")]), of)
    assert kinds() == []
    assert missing_settlements.list_unsettled_payments(of, today, today) == []


def test_fees_have_no_payment_and_no_matching_status(shop: Shop) -> None:
    row = line(ReconciliationType="FEE", PaymentType="MONTHLY", ClearingInstituteMerchantId=shop.channel.id.hex)
    file = take_in(csv([row]), institute())
    record = SettlementRecord.objects.get()
    assert (record.state, record.cashflow, record.merchant_id) == ("", "NEG", shop.merchant.id)
    assert (file.matched, file.multiple, file.unmatched) == (0, 0, 0)


def test_days_without_an_expected_file_are_missed(db: None) -> None:
    of = institute(expects_files_on=[1, 2, 3, 4, 5])
    assert missing_settlements.list_days_without_file(of, date(2030, 1, 4), date(2030, 1, 8)) == [
        date(2030, 1, 4),
        date(2030, 1, 7),
        date(2030, 1, 8),
    ]


def test_a_clerk_links_marks_closes_and_undoes(shop: Shop) -> None:
    payment, of = payment_of(shop.api.pay().id), institute()
    take_in(csv([line(payment, ConnectorTxId1="UNKNOWN", Amount="90.00", SettlementAmount="90.00")]), of)
    record = SettlementRecord.objects.select_related("file").get()
    stale = SettlementRecord.objects.get()
    exception_queue.link_payment(record, payment, BY, "told by phone")
    assert (states(), kinds()) == (["MATCHED"], ["AMOUNT"])
    assert not exception_queue.list_unmatched_records().exists()
    with pytest.raises(exception_queue.ExceptionActionError, match="somebody else"):
        exception_queue.mark_without_payment(stale, BY, "a try")
    exception_queue.undo_resolution(record, BY)
    assert (
        states(),
        exception_queue.list_unmatched_records().count(),
        exception_queue.list_open_findings().count(),
    ) == (["NOT_MATCHED"], 1, 0)
    exception_queue.mark_without_payment(record, BY, "of another system")
    assert not exception_queue.list_unmatched_records().exists()
    exception_queue.undo_resolution(record, BY)
    assert exception_queue.list_unmatched_records().count() == 1
    with pytest.raises(exception_queue.ExceptionActionError, match="nothing"):
        exception_queue.undo_resolution(record, BY)
    with pytest.raises(exception_queue.ExceptionActionError, match="note"):
        exception_queue.mark_without_payment(record, BY, " ")
    exception_queue.link_payment(record, payment, BY)
    exception_queue.close_finding(Finding.objects.get(closed_at=None), BY, "agreed")
    assert not exception_queue.list_open_findings().exists()
    closed = Match.objects.exclude(undone_at=None).get()
    assert (closed.by, closed.undone_by) == (BY.name, BY.name)
    actions = AuditEntry.objects.filter(actor=BY.name, subject="settlementrecord").values_list("action", flat=True)
    assert list(actions.order_by("id")) == ["link", "undo", "mark", "undo", "link"]


def test_a_chargeback_that_a_clerk_links_is_in_the_ledger_and_stays_there(shop: Shop) -> None:
    payment, of = payment_of(shop.api.pay().id), institute()
    row = line(payment, ReconciliationType="CHARGEBACK", ConnectorTxId1="UNKNOWN", ReasonCode="000.100.222")
    take_in(csv([row]), of)
    record = SettlementRecord.objects.select_related("file").get()
    exception_queue.link_payment(record, payment, BY)
    record.refresh_from_db()
    case = Chargeback.objects.get()
    assert (record.chargeback, case.reason_code) == (case.id, "000.100.222")
    with pytest.raises(exception_queue.ExceptionActionError, match="ledger"):
        exception_queue.undo_resolution(record, BY)


def test_a_chargeback_line_read_again_enters_nothing_twice(shop: Shop) -> None:
    payment = payment_of(shop.api.pay().id)
    row = line(payment, ReconciliationType="CHARGEBACK", RespondBy="2035-05-14")
    take_in(csv([row]), institute())
    record = SettlementRecord.objects.get()
    SettlementRecord.objects.update(chargeback=None)
    assert chargeback_booking.book_record(record, BY) == Chargeback.objects.get().id
    assert Payment.objects.filter(payment_type="CB").count() == 1
    assert f"{Chargeback.objects.get().due_at:%Y-%m-%d %H:%M}" == "2035-05-14 17:00"


def test_a_chargeback_of_what_is_charged_back_already_is_a_finding_with_the_reason(shop: Shop) -> None:
    payment = payment_of(shop.api.pay().id)
    ledger.record_chargeback(payment, Decimal("93.00"), by=BY)
    take_in(csv([line(payment, ReconciliationType="CHARGEBACK")]), institute())
    found = Finding.objects.get()
    assert (found.kind, found.found[:11]) == ("NOT_BOOKED", "700.400.400")


def test_chargebacks_by_file_work_in_live(shop: Shop) -> None:
    payment = payment_of(shop.api.pay().id)
    with override_settings(IS_LIVE=True):
        take_in(csv([line(payment, ReconciliationType="CHARGEBACK")]), institute())
    assert Payment.objects.get(payment_type="CB").status == "APPROVED"


@pytest.mark.django_db(transaction=True)
def test_two_who_enter_the_same_line_at_once_enter_it_once(committed: Shop) -> None:
    payment = payment_of(committed.api.pay().id)
    line_id = identifiers.row_id()

    def enter() -> str:
        try:
            return ledger.record_chargeback(payment, Decimal("40.00"), by=BY, line=line_id).id.hex
        except ledger.AlreadyRecordedError as told:
            return told.payment.hex

    made = at_once(enter, enter, enter)
    assert len(set(made)) == 1
    assert Payment.objects.filter(payment_type="CB").count() == 1


def test_a_line_that_is_linked_to_a_payment_which_another_line_has_settled_is_found(shop: Shop) -> None:
    """Whichever of the two came first; once one is taken back there is nothing wrong any more."""
    payment, of = payment_of(shop.api.pay().id), institute()
    take_in(csv([line(payment, ConnectorTxId1="UNKNOWN")]), of)
    take_in(csv([line(payment)]), of, "later.csv")
    first, second = SettlementRecord.objects.select_related("file").order_by("id")
    [best] = exception_queue.list_candidate_payments(first)
    assert (best.payment.id, best.settled) == (payment.id, True)
    exception_queue.link_payment(first, payment, BY)
    assert to_do() == ["TWICE"]
    exception_queue.undo_resolution(second, BY)
    assert (to_do(), states()) == ([], ["MATCHED", "NOT_MATCHED"])
    exception_queue.link_payment(second, payment, BY)
    assert to_do() == ["TWICE"]


@pytest.mark.django_db(transaction=True)
def test_two_clerks_who_link_a_line_each_to_one_payment_at_once_are_told(committed: Shop) -> None:
    payment = payment_of(committed.api.pay().id)
    take_in(csv([line(payment, ConnectorTxId1="ONE"), line(payment, ConnectorTxId1="TWO")]), institute())
    one, two = SettlementRecord.objects.select_related("file").order_by("id")
    at_once(
        lambda: exception_queue.link_payment(one, payment, BY), lambda: exception_queue.link_payment(two, payment, BY)
    )
    assert to_do() == ["TWICE"]


def test_notes_keep_no_card_number_and_nothing_that_the_database_refuses(shop: Shop) -> None:
    take_in(csv([line(ClearingInstituteMerchantId=shop.channel.id.hex, ConnectorTxId1="UNKNOWN")]), institute())
    record = SettlementRecord.objects.select_related("file").get()
    exception_queue.mark_without_payment(record, BY, "paid with 4200000000000000\x00 in cash")
    told = AuditEntry.objects.get(action="mark").after["note"]
    assert "4200000000000000" not in told
    assert told.startswith("paid with 420000")
    exception_queue.undo_resolution(record, BY)
    exception_queue.link_payment(record, payment_of(shop.api.pay().id), BY, "card 4200000000000000")
    assert "4200000000000000" not in Match.objects.get().note


@pytest.mark.parametrize("ident", ["FEE-1", ""])
def test_a_fee_that_a_later_file_tells_of_again_is_found(shop: Shop, ident: str) -> None:
    """Fees are no payment's, and count in every sum."""
    of = institute()
    fee = line(
        ReconciliationType="FEE",
        PaymentType="MONTHLY",
        ClearingInstituteMerchantId=shop.channel.id.hex,
        SettlementTxId=ident,
        Amount="9.90",
    )
    other = {**fee, "SettlementTxId": ident and "FEE-2", "SettlementReference": "payout-2"}
    take_in(csv([fee, other]), of)
    assert kinds() == []
    take_in(csv([fee], end="# sent again\r\n"), of)
    assert kinds() == ["TWICE"]
    take_in(csv([{**fee, "SettlementReference": "payout-3", "SettlementTxId": ident and "FEE-3"}]), of)
    assert kinds() == ["TWICE"]


def test_a_line_that_several_payments_fit_takes_none_from_a_line_that_fits_one(shop: Shop) -> None:
    """The second line names the one day that the first one leaves open."""
    first, second = payment_of(shop.api.pay().id), payment_of(shop.api.pay().id)
    Payment.objects.filter(pk=first.pk).update(created_at=first.created_at - timedelta(days=10))
    row = {**line(second), "ConnectorTxId1": ""}
    dated = {**row, "TxRequestTime": f"{second.created_at:%Y-%m-%d %H:%M:%S}"}
    take_in(csv([row, dated]), institute())
    assert states() == ["MULTIPLE_MATCHES", "MATCHED"]

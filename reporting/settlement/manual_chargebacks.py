"""Settlement records for chargebacks that no settlement file has named: entered by hand or by API.

Each gets a record on the day it was entered, by its merchant's clock, so that reconciliation file, reports and pages
show it as the ledger, the query and the webhooks do. Nothing was paid out with it yet, so its settlement amount is
0.00: payout sums stay those of the institute. When the institute's line comes it is a record of its own, with the same
ChargebackId and the real amount. The record has the id of its CB or CR payment: there is one at most.

Source: Part B, Reconciliation file; rulings B19.8, A7.15; decision 0032.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from chargebacks.models import Chargeback
from gateway.core import clock, result_codes
from gateway.core.identifiers import first_id_at
from gateway.db.database_clock import read_database_time
from gateway.models import AcquirerAccount, Merchant, Payment
from gateway.timers.due_times import lowest_id_since_sql
from reporting.reconciliation.daily_files import record_first_days
from reporting.settlement.layout import infer_cashflow
from reporting.settlement.models import (
    Cashflow,
    ClearingInstitute,
    Match,
    MatchState,
    RecordType,
    Settlement,
    SettlementFile,
    SettlementRecord,
    TransactionType,
)

LEDGER_FORMAT: Final = "LEDGER"
"""SettlementFileFormat of these records."""
LEDGER_FILE_NAME: Final = "chargebacks without a file"
LEDGER_MATCH_RULE: Final = "ledger"
RECENT_LOOKBACK: Final = timedelta(days=3)
"""How far back a run looks; once an hour a run covers everything."""
MAX_LEDGER_RECORDS_PER_RUN: Final = 200
# CB and CR payments without a line and without a record. They wait until their institute is created.
_WAITING: Final = """
SELECT e.payment, e.case_id, e.at FROM chargebacks_caseevent e
WHERE e.payment >= %(floor)s AND NOT EXISTS (SELECT 1 FROM chargebacks_acquirernotice t WHERE t.payment = e.payment)
    AND NOT EXISTS (SELECT 1 FROM reporting_settlementrecord r WHERE r.id = e.payment)
    AND EXISTS (SELECT 1 FROM gateway_payment p JOIN reporting_clearinginstitute i
        ON i.active AND p.connector = ANY(i.connectors) WHERE p.id = e.payment
        AND (%(merchant)s::uuid IS NULL OR p.merchant_id = %(merchant)s::uuid))
ORDER BY e.payment LIMIT %(limit)s"""


EARLIEST_UNRECORDED_CHARGEBACK: Final = f"""
SELECT statement_timestamp() FROM chargebacks_caseevent e
WHERE e.payment >= {lowest_id_since_sql(RECENT_LOOKBACK)}
    AND NOT EXISTS (SELECT 1 FROM chargebacks_acquirernotice t WHERE t.payment = e.payment)
    AND NOT EXISTS (SELECT 1 FROM reporting_settlementrecord r WHERE r.id = e.payment)
    AND EXISTS (SELECT 1 FROM gateway_payment p JOIN reporting_clearinginstitute i
        ON i.active AND p.connector = ANY(i.connectors) WHERE p.id = e.payment) LIMIT 1"""  # noqa: S608 - constants of this module


def record_recent_chargebacks(merchant: Merchant | None = None) -> int:
    """Write records for the chargebacks and reversals of the last days, of ``merchant`` or of all. Returns how many."""
    return _record_payments(_list_unrecorded_payments(_lowest_recent_id(), merchant))


def next_unrecorded_chargeback_at(merchant: Merchant) -> datetime | None:
    """When the first waiting chargeback was entered, by the merchant's clock: it is due, and belongs to the file of
    that day."""
    found = _list_unrecorded_payments(_lowest_recent_id(), merchant)
    return min(at for _, _, at in found) if found else None


def record_all_chargebacks() -> int:
    """Record the chargebacks that were entered by hand, of any age: their institute may have been created later."""
    return _record_payments(_list_unrecorded_payments(UUID(int=0), None))


def _lowest_recent_id() -> UUID:
    """The lowest id of recent payments. Ids follow real time, whatever a merchant's clock shows."""
    return first_id_at(clock.real_now() - RECENT_LOOKBACK)


def _list_unrecorded_payments(floor: UUID, merchant: Merchant | None) -> list[tuple[UUID, UUID, datetime]]:
    """The waiting payments, each with its case and the moment of its entry by its merchant's clock."""
    values: dict[str, Any] = {
        "floor": floor,
        "limit": MAX_LEDGER_RECORDS_PER_RUN,
        "merchant": merchant.pk if merchant is not None else None,
    }
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, values)
        found: list[tuple[UUID, UUID, datetime]] = cursor.fetchall()
    return found


def _record_payments(found: list[tuple[UUID, UUID, datetime]]) -> int:
    waiting = {payment: case for payment, case, _ in found}
    if not waiting:
        return 0
    institutes = list(ClearingInstitute.objects.filter(active=True).order_by("created_at", "id"))
    by_institute: dict[UUID, list[Payment]] = defaultdict(list)
    for payment in Payment.objects.filter(pk__in=waiting).select_related("merchant").order_by("id"):
        of = next((one for one in institutes if payment.connector in one.connectors), None)
        if of is not None:
            by_institute[of.pk].append(payment)
    cases = Chargeback.objects.in_bulk(list(waiting.values()))
    known = {one.pk: one for one in institutes}
    return sum(
        _write_ledger_file(known[key], [(payment, cases[waiting[payment.pk]]) for payment in payments])
        for key, payments in by_institute.items()
    )


def _write_ledger_file(institute: ClearingInstitute, entered: list[tuple[Payment, Chargeback]]) -> int:
    """One file with source "ledger", and a line for each payment. A second caller at the same time writes nothing."""
    now = read_database_time()
    days = [clock.merchant_now(payment.merchant).astimezone(institute.zone).date() for payment, _ in entered]
    digest = hashlib.sha256(b"".join(payment.id.bytes for payment, _ in entered)).hexdigest()
    disputed = Payment.objects.in_bulk([case.disputed for _, case in entered])
    with transaction.atomic():
        file, made = SettlementFile.objects.get_or_create(
            institute=institute,
            sha256=digest,
            defaults={
                "name": LEDGER_FILE_NAME,
                "size": 0,
                "format": LEDGER_FORMAT,
                "time_zone": institute.time_zone,
                "source": SettlementFile.Source.LEDGER,
                "received_by": LEDGER_MATCH_RULE,
                "received_at": now,
                "started_at": now,
                "finished_at": now,
                "state": SettlementFile.State.DONE,
                "lines": len(entered),
                "records": len(entered),
                "matched": len(entered),
                "first_settled": min(days),
                "last_settled": max(days),
            },
        )
        if not made:
            return 0
        for number, ((payment, case), day) in enumerate(zip(entered, days, strict=True), 1):
            behind = disputed[case.disputed]
            settlement, _ = Settlement.objects.get_or_create(
                institute=institute,
                institute_merchant_id=behind.acquirer_merchant_id or behind.channel_id.hex,
                reference=LEDGER_MATCH_RULE,
                date=day,
                currency=payment.currency,
                defaults={
                    "merchant_id": behind.merchant_id,
                    "account": _find_merchant_account(behind),
                    "created_at": now,
                },
            )
            record = SettlementRecord.objects.create(
                file=file,
                line=number,
                settlement=settlement,
                recorded_at=now,
                chargeback_at=now,
                **_build_values(payment, case, behind, settlement),
            )
            Match.objects.create(
                record=record,
                payment=behind.id,
                record_type=record.record_type,
                chosen=True,
                rule=LEDGER_MATCH_RULE,
                made_at=now,
            )
        record_first_days()
    return len(entered)


def _build_values(payment: Payment, case: Chargeback, behind: Payment, settlement: Settlement) -> dict[str, Any]:
    """The columns of the line, as an institute would have sent it."""
    away = payment.payment_type == "CB"
    kind = RecordType.CHARGEBACK if away else RecordType.CHARGEBACK_REVERSAL
    flows = infer_cashflow(kind, TransactionType.DEBIT)
    return {
        "id": payment.id,
        "institute_id": settlement.institute_id,
        "merchant_id": behind.merchant_id,
        "account": settlement.account,
        "institute_merchant_id": settlement.institute_merchant_id,
        "record_type": kind,
        "transaction_type": TransactionType.DEBIT,
        "cashflow": Cashflow(flows),
        "settlement_tx_id": case.reference,
        "our_id": behind.id,
        "tx_id1": behind.connector_tx_id,
        "merchant_transaction_id": behind.merchant_transaction_id,
        "merchant_invoice_id": behind.merchant_invoice_id,
        "amount": payment.approved_amount or payment.amount,
        "currency": payment.currency,
        "brand": payment.brand[:16],
        "presented_at": payment.created_at,
        "presented_at_known": True,
        "settlement_amount": Decimal(0),
        "settlement_currency": payment.currency,
        "fx_rate": Decimal(1),
        "settlement_date": settlement.date,
        "settlement_status": "SUCCESS",
        "reason_code": case.reason_code,
        "reason_text": result_codes.find_result_code(case.reason_code).description[:128],
        "respond_by": None,
        "state": MatchState.MATCHED,
        "chargeback": payment.id,
    }


def _find_merchant_account(payment: Payment) -> UUID | None:
    """The merchant account as records name it: the channel itself for the simulator, which has no accounts."""
    if not payment.acquirer_merchant_id:
        return payment.channel_id
    named = AcquirerAccount.objects.filter(
        channel=payment.channel_id, connector=payment.connector, acquirer_merchant_id=payment.acquirer_merchant_id
    )
    found: UUID | None = named.values_list("id", flat=True).first()
    return found

"""Chargebacks that no settlement file has told of: entered by hand or by API, they stand in the books, too.

Each becomes a record of the day on which it was entered, by its merchant's clock, so that the reconciliation file, the
reports and the pages tell of it as the ledger, the query and the webhooks do. Nothing was paid out with it yet, so its
settlement amount is 0.00: sums of what was paid out stay those of the institute. When the institute's line comes it is
a record of its own, with the same ChargebackId and what was really taken. The record has the id of its CB or CR
payment: there is one at most.
Source: Part B, Reconciliation file; B19.8, A7.15; decision 0032.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction

from chargebacks.checklist import words
from chargebacks.models import Chargeback
from gateway import clock
from gateway.models import AcquirerAccount, Merchant, Payment
from reporting.days import keep_first_days
from reporting.layout import usual_cashflow
from reporting.matching import first_id_of
from reporting.models import (
    Cashflow,
    ClearingInstitute,
    Match,
    Matching,
    RecordType,
    Settlement,
    SettlementFile,
    SettlementRecord,
    TransactionType,
)

FORMAT: Final = "LEDGER"
"""SettlementFileFormat of such records."""
NAME: Final = "chargebacks without a file"
RULE: Final = "ledger"
WITHIN: Final = timedelta(days=3)
"""How far back a tick looks; once an hour it looks at all."""
AT_ONCE: Final = 200
# Neither told of by a line nor in the books. An institute that is not there yet leaves them waiting.
_WAITING: Final = """
SELECT e.payment, e.case_id, e.at FROM chargebacks_caseevent e
WHERE e.payment >= %(floor)s AND NOT EXISTS (SELECT 1 FROM chargebacks_told t WHERE t.payment = e.payment)
    AND NOT EXISTS (SELECT 1 FROM reporting_settlementrecord r WHERE r.id = e.payment)
    AND EXISTS (SELECT 1 FROM gateway_payment p JOIN reporting_clearinginstitute i
        ON i.active AND p.connector = ANY(i.connectors) WHERE p.id = e.payment
        AND (%(merchant)s::uuid IS NULL OR p.merchant_id = %(merchant)s::uuid))
ORDER BY e.payment LIMIT %(limit)s"""


def run(merchant: Merchant | None) -> int:
    """Enter the chargebacks and reversals of the last days into the books, of ``merchant`` or of all; how many."""
    return _entered(_waiting(_lately(), merchant))


def next_at(merchant: Merchant) -> datetime | None:
    """When the first that waits was entered, by the merchant's clock: it is due, and stands in the file of that day."""
    found = _waiting(_lately(), merchant)
    return min(at for _, _, at in found) if found else None


def run_all(merchant: Merchant | None) -> int:
    """The same, however old: an institute may have come later than its chargebacks."""
    return _entered(_waiting(UUID(int=0), None)) if merchant is None else 0


def _lately() -> UUID:
    """Ids follow real time, whatever a merchant's clock shows."""
    return first_id_of(clock.real() - WITHIN)


def _waiting(floor: UUID, merchant: Merchant | None) -> list[tuple[UUID, UUID, datetime]]:
    """The payments that wait, each with its case and the moment of its entry, by its merchant's clock."""
    asked: dict[str, Any] = {
        "floor": floor,
        "limit": AT_ONCE,
        "merchant": merchant.pk if merchant is not None else None,
    }
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, asked)
        found: list[tuple[UUID, UUID, datetime]] = cursor.fetchall()
    return found


def _entered(found: list[tuple[UUID, UUID, datetime]]) -> int:
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
        _write(known[key], [(payment, cases[waiting[payment.pk]]) for payment in payments])
        for key, payments in by_institute.items()
    )


def _write(institute: ClearingInstitute, told: list[tuple[Payment, Chargeback]]) -> int:
    """One file of the ledger's own, with a line for each. Who comes second writes nothing."""
    now = clock.real()
    days = [clock.now(payment.merchant).astimezone(institute.zone).date() for payment, _ in told]
    digest = hashlib.sha256(b"".join(payment.id.bytes for payment, _ in told)).hexdigest()
    disputed = Payment.objects.in_bulk([case.disputed for _, case in told])
    with transaction.atomic():
        file, made = SettlementFile.objects.get_or_create(
            institute=institute, sha256=digest,
            defaults={
                "name": NAME, "size": 0, "format": FORMAT, "time_zone": institute.time_zone,
                "source": SettlementFile.Source.LEDGER, "received_by": RULE, "received_at": now, "started_at": now,
                "finished_at": now, "state": SettlementFile.State.DONE, "lines": len(told), "records": len(told),
                "matched": len(told), "first_settled": min(days), "last_settled": max(days),
            },
        )  # fmt: skip
        if not made:
            return 0
        for number, ((payment, case), day) in enumerate(zip(told, days, strict=True), 1):
            behind = disputed[case.disputed]
            settlement, _ = Settlement.objects.get_or_create(
                institute=institute, institute_merchant_id=behind.account or behind.channel_id.hex, reference=RULE,
                date=day, currency=payment.currency,
                defaults={"merchant_id": behind.merchant_id, "account": _account_of(behind), "created_at": now},
            )  # fmt: skip
            record = SettlementRecord.objects.create(
                file=file,
                line=number,
                settlement=settlement,
                recorded_at=now,
                chargeback_at=now,
                **_values(payment, case, behind, settlement),
            )
            Match.objects.create(record=record, payment=behind.id, record_type=record.record_type, chosen=True,
                                 rule=RULE, made_at=now)  # fmt: skip
        keep_first_days()
    return len(told)


def _values(payment: Payment, case: Chargeback, behind: Payment, settlement: Settlement) -> dict[str, Any]:
    """The columns of a line that an institute would have sent."""
    away = payment.payment_type == "CB"
    kind = RecordType.CHARGEBACK if away else RecordType.CHARGEBACK_REVERSAL
    flows = usual_cashflow(kind, TransactionType.DEBIT)
    return {
        "id": payment.id, "institute_id": settlement.institute_id, "merchant_id": behind.merchant_id,
        "account": settlement.account, "institute_merchant_id": settlement.institute_merchant_id,
        "record_type": kind, "transaction_type": TransactionType.DEBIT, "cashflow": Cashflow(flows),
        "settlement_tx_id": case.reference, "our_id": behind.id, "tx_id1": behind.connector_tx_id,
        "merchant_transaction_id": behind.merchant_transaction_id, "merchant_invoice_id": behind.merchant_invoice_id,
        "amount": payment.approved or payment.amount, "currency": payment.currency, "brand": payment.brand[:16],
        "presented_at": payment.created_at, "presented": True, "settlement_amount": Decimal(0),
        "settlement_currency": payment.currency, "fx_rate": Decimal(1), "settlement_date": settlement.date,
        "settlement_status": "SUCCESS", "reason_code": case.reason_code, "reason_text": words(case.reason_code)[:128],
        "respond_by": None, "state": Matching.MATCHED, "chargeback": payment.id,
    }  # fmt: skip


def _account_of(payment: Payment) -> UUID | None:
    """The merchant account as records name it: the channel, for the simulator, which has none."""
    if not payment.account:
        return payment.channel_id
    named = AcquirerAccount.objects.filter(
        channel=payment.channel_id, connector=payment.connector, acquirer_merchant_id=payment.account
    )
    found: UUID | None = named.values_list("id", flat=True).first()
    return found

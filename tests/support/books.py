"""Settlement records for tests, inserted directly, for tests of how they are shown and not of how they came."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import count
from typing import Any
from zoneinfo import ZoneInfo

from gateway.core import clock, identifiers
from gateway.models import Merchant, Payment
from reporting.models import ClearingInstitute, Match, MatchState, Settlement, SettlementFile, SettlementRecord
from reporting.reconciliation import daily_files
from tests.support.fixtures import Shop

_NUMBERS = count(1)
DAY = date(2026, 5, 14)


def institute(**values: Any) -> ClearingInstitute:
    number = next(_NUMBERS)
    plain = {"key": f"clearing-{number}", "name": f"Clearing {number}", "connectors": ["simulator"]}
    return ClearingInstitute.objects.create(**{**plain, **values})


def settlement(shop: Shop, of: ClearingInstitute, **values: Any) -> Settlement:
    plain = {
        "institute": of,
        "institute_merchant_id": shop.channel.entity_id,
        "reference": f"payout-{next(_NUMBERS)}",
        "date": DAY,
        "currency": "EUR",
        "merchant": shop.merchant,
        "account": shop.channel.pk,
        "created_at": clock.real_now(),
    }
    return Settlement.objects.create(**{**plain, **values})


def file_of(of: ClearingInstitute, *, done: datetime | None = None, **values: Any) -> SettlementFile:
    """A file that was read to its end at ``done``, real time; now, if none."""
    # A minute before may be another day; whoever names the moment knows.
    received = done - timedelta(minutes=1) if done is not None else None
    done = done or clock.real_now()
    plain = {
        "institute": of,
        "name": "settled.csv",
        "sha256": f"{next(_NUMBERS):064x}",
        "size": 1,
        "format": "CSV",
        "time_zone": of.time_zone,
        "source": "command",
        "received_by": "tests",
        "state": "DONE",
        "received_at": received or done,
        "finished_at": done,
    }
    return SettlementFile.objects.create(**{**plain, **values})


def record(where: Settlement, file: SettlementFile, payment: Payment | None = None, **values: Any) -> SettlementRecord:
    """A line of ``file``. With ``payment``: matched to it. ``candidates``: payments it may be about."""
    candidates = values.pop("candidates", ())
    fee = values.get("record_type") == "FEE"
    state = MatchState.MATCHED if payment else MatchState.MULTIPLE_MATCHES if candidates else MatchState.NOT_MATCHED
    assert file.finished_at is not None
    at = max(file.received_at, file.finished_at - timedelta(seconds=30))
    plain: dict[str, Any] = {
        "id": identifiers.row_id(),
        "file": file,
        "line": next(_NUMBERS),
        "settlement": where,
        "institute_id": where.institute_id,
        "merchant_id": where.merchant_id,
        "account": where.account,
        "institute_merchant_id": where.institute_merchant_id,
        "record_type": "SETTLED",
        "transaction_type": "DEBIT",
        "cashflow": "POS",
        "amount": Decimal("92.00"),
        "currency": "EUR",
        "settlement_amount": Decimal("90.50"),
        "settlement_currency": where.currency,
        "settlement_fee": Decimal("1.5000"),
        "fx_rate": Decimal(1),
        "settlement_date": where.date,
        "settlement_status": "SUCCESS",
        "presented_at_known": True,
        "presented_at": datetime(2026, 5, 13, 18, tzinfo=UTC),
        "state": "" if fee else state,
        "recorded_at": at,
    }
    made = SettlementRecord.objects.create(**{**plain, **values})
    for one, chosen in [(payment, True)] if payment else [(one, False) for one in candidates]:
        Match.objects.create(
            record=made, payment=one.pk, record_type=made.record_type, chosen=chosen, rule="id 1", made_at=at
        )
    daily_files.record_first_days()
    return made


def payment_of(ident: str) -> Payment:
    return Payment.objects.get(pk=ident)


def merchant_of(shop: Shop) -> Merchant:
    return Merchant.objects.select_related("division").get(pk=shop.merchant.pk)


def overnight(shop: Shop) -> Merchant:
    """Move the merchant's clock to ten minutes past the midnight after the last settlement file, at whatever hour this
    is, and were it midnight between the two."""
    merchant = merchant_of(shop)
    now = clock.merchant_now(merchant)
    done = SettlementFile.objects.exclude(finished_at=None).order_by("-finished_at").first()
    last = done.finished_at + merchant.clock_offset if done is not None and done.finished_at is not None else now
    zone = ZoneInfo(merchant.time_zone)
    midnight = datetime.combine(last.astimezone(zone).date() + timedelta(days=1), time(), zone)
    merchant.clock_offset += midnight - now + timedelta(minutes=10)
    merchant.save(update_fields=["clock_offset"])
    return merchant

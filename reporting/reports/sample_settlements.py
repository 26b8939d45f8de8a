"""Sample settlements for testMode=INTERNAL: generated, the same for each entity and day, and never stored.

They pass through the same tables as real ones, so sums are of their records and names are the contract's. Source: Part
A, What the service does, 5; ruling D7.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from reporting.models import MatchState
from reporting.reports.settlement_reports import (
    REPORT_PAGE_SIZE,
    ReportQuery,
    ReportScope,
    SettlementPart,
    SettlementSummary,
    check_settlement_count,
)
from reporting.settlement.record_queries import DisplayNames, SettlementLine, load_display_names

SAMPLE_INSTITUTE_NAME: Final = "Simulated clearing"
SAMPLE_FORMAT: Final = "MADE-UP"
SAMPLE_FEE_RATE: Final = Decimal("0.0145")
MAX_SAMPLE_SETTLEMENTS: Final = 366
"""Settlements of one answer without pages; the records of each are made to sum them up."""
FIRST_OF_MONTH_RECORDS: Final = 250
"""Records on the first of each month: enough for several pages."""
_CENT: Final = Decimal("0.01")
_KINDS: Final = (
    # share in percent, record type, transaction type, cash flow
    (82, "SETTLED", "DEBIT", "POS"),
    (10, "SETTLED", "REFUND", "NEG"),
    (3, "SETTLED", "CREDIT", "NEG"),
    (3, "CHARGEBACK", "DEBIT", "NEG"),
    (2, "CHARGEBACK REVERSAL", "DEBIT", "POS"),
)
_ANY: Final = date(2026, 1, 1)
_REASON: Final = "000.100.204"


def build_sample_summaries(scope: ReportScope, wanted: ReportQuery) -> tuple[list[SettlementSummary], int]:
    """One settlement for each day of the period, in the shape of
    :func:`reporting.reports.settlement_reports.list_settlement_summaries`."""
    assert wanted.start is not None
    assert wanted.end is not None
    total = (wanted.end - wanted.start).days + 1 if wanted.currency in ("", "EUR") else 0
    check_settlement_count(total, wanted, most=MAX_SAMPLE_SETTLEMENTS)
    shown = range(total)
    if wanted.page is not None:
        shown = shown[(wanted.page - 1) * REPORT_PAGE_SIZE : wanted.page * REPORT_PAGE_SIZE]
    days = [wanted.start + timedelta(days=number) for number in shown]
    names = _names(scope)
    return [_summary(day, _id(scope, day), _lines(scope, day, names), scope) for day in days], total


def build_sample_settlement(
    scope: ReportScope, key: UUID, wanted: ReportQuery
) -> tuple[SettlementSummary, list[SettlementLine], int]:
    """The sample settlement of the day that ``key`` encodes; an id that was never handed out encodes a day, too."""
    is_sample = key.bytes[:12] == _prefix(scope)
    number = int.from_bytes(key.bytes[12:], "big")
    last = date.max.toordinal()
    day = date.fromordinal(number) if is_sample and 3 < number < last else _ANY + timedelta(days=number % 365)
    lines = _lines(scope, day, _names(scope))
    summary = _summary(day, key, lines, scope)
    chosen = [line for line in lines if wanted.record_type in ("", line.record_type)]
    if wanted.order:
        chosen.sort(key=lambda line: line.presented_at, reverse=wanted.order == "DESC")
    total = len(chosen)
    return (
        summary,
        chosen
        if wanted.page is None
        else chosen[(wanted.page - 1) * REPORT_PAGE_SIZE : wanted.page * REPORT_PAGE_SIZE],
        total,
    )


def _entity(scope: ReportScope) -> str:
    return scope.held_at[0] if scope.held_at else scope.merchant.entity_id


def _prefix(scope: ReportScope) -> bytes:
    return hashlib.sha256(f"made up: {_entity(scope)}".encode()).digest()[:12]


def _id(scope: ReportScope, day: date) -> UUID:
    return UUID(bytes=_prefix(scope) + day.toordinal().to_bytes(4, "big"))


def _names(scope: ReportScope) -> DisplayNames:
    real = load_display_names(scope.merchant)
    return DisplayNames(
        psp=real.psp,
        division=real.division,
        accounts={**real.accounts, scope.merchant.pk.hex: scope.merchant.name},
        institutes={_institute().hex: SAMPLE_INSTITUTE_NAME},
    )


def _institute() -> UUID:
    return UUID(int=1)


def _summary(day: date, key: UUID, lines: Sequence[SettlementLine], scope: ReportScope) -> SettlementSummary:
    parts: dict[tuple[str, ...], SettlementPart] = {}
    for line in lines:
        kind = (line.record_type, line.transaction_type, line.cashflow, line.settlement_status, line.matching)
        part = parts.get(kind)
        if part is None:
            part = parts[kind] = SettlementPart(
                record_type=kind[0],
                transaction_type=kind[1],
                cashflow=kind[2],
                status=kind[3],
                matching=kind[4],
                count=0,
                amount=Decimal(0),
                fee=Decimal(0),
            )
        part.count += 1
        part.amount += Decimal(line.settlement_amount)
        part.fee += Decimal(line.settlement_fee or 0)
    return SettlementSummary(
        id=key,
        reference=f"MADE-UP-{day:%Y%m%d}",
        date=day,
        currency="EUR",
        institute=SAMPLE_INSTITUTE_NAME,
        institute_merchant_id=_entity(scope),
        account=UUID(_entity(scope)),
        parts=[parts[kind] for kind in sorted(parts)],
    )


def _lines(scope: ReportScope, day: date, names: DisplayNames) -> list[SettlementLine]:
    draws = random.Random(f"made up: {day}")  # noqa: S311 - made-up data; ids are the entity's, sums the day's
    count = FIRST_OF_MONTH_RECORDS if day.day == 1 else draws.randint(3, 9)
    lines = [_payment(scope, day, names, draws, number) for number in range(1, count + 1)]
    fee = _line(
        scope,
        day,
        names,
        count + 1,
        record_type="FEE",
        transaction_type="BATCH",
        cashflow="NEG",
        amount="2.50",
        settlement_amount="2.50",
    )
    return [*lines, fee]


def _payment(scope: ReportScope, day: date, names: DisplayNames, draws: random.Random, number: int) -> SettlementLine:
    record_type, transaction_type, cashflow = draws.choices(_KINDS, [kind[0] for kind in _KINDS])[0][1:]
    amount = Decimal(draws.randint(500, 25_000)) / 100
    fee = (amount * SAMPLE_FEE_RATE).quantize(_CENT)
    payment = _drawn(draws)
    matching = draws.choices((MatchState.MATCHED, MatchState.MULTIPLE_MATCHES, MatchState.NOT_MATCHED), (94, 3, 3))[0]
    many = [payment, _drawn(draws)]
    disputed = record_type.startswith("CHARGEBACK")
    return _line(
        scope,
        day,
        names,
        number,
        record_type=record_type,
        transaction_type=transaction_type,
        cashflow=cashflow,
        amount=f"{amount:.2f}",
        settlement_amount=f"{amount - fee if cashflow == 'POS' else amount + fee:.2f}",
        settlement_fee=f"{fee:.2f}",
        settlement_tx_id=f"MU{day:%y%m%d}{number:04d}",
        tx_id1=f"SIM{draws.getrandbits(80):020X}",
        merchant_transaction_id=f"made-up-{day:%Y%m%d}-{number:04d}",
        brand=draws.choice(("VISA", "MASTER")),
        presented_at=_midnight(day) - draws.randint(1, 172_800),
        last4=f"{draws.randint(0, 9999):04d}",
        account_holder="Jane Jones",
        reason_code=_REASON if disputed else "",
        candidates=sorted(many) if matching == MatchState.MULTIPLE_MATCHES else None,
        payment=payment if matching == MatchState.MATCHED else None,
        number=draws.randint(1, 10**9) if matching == MatchState.MATCHED else None,
        chargeback=_drawn(draws) if disputed and matching == MatchState.MATCHED else None,
    )


def _drawn(draws: random.Random) -> str:
    """An id made from random draws."""
    return f"{draws.getrandbits(128):032x}"


def _midnight(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def _line(scope: ReportScope, day: date, names: DisplayNames, place: int, **values: Any) -> SettlementLine:
    plain: dict[str, Any] = {
        "id": f"{(_id(scope, day).int + place) % 2**128:032x}",
        "line": place,
        "institute": _institute().hex,
        "institute_merchant_id": _entity(scope),
        "account": _entity(scope),
        "merchant": scope.merchant.pk.hex,
        "currency": "EUR",
        "presented_at": _midnight(day),
        "settlement_currency": "EUR",
        "settlement_fee": None,
        "fx_rate": "1",
        "settlement_date": day.isoformat(),
        "settlement_status": "SUCCESS",
        "chargeback": None,
        "time_zone": "UTC",
        "format": SAMPLE_FORMAT,
        "candidates": None,
        "payment": None,
        "number": None,
        "channel": None,
        "means": "card",
    }
    return SettlementLine(**{**dict.fromkeys(SettlementLine._fields, ""), **plain, **values, "names": names})

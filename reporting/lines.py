"""Settlement records with what the reconciliation says of them: file, payment, matching, names. Reading only.

A line is told as it stood at a moment: matches and chargebacks that came later do not show, so that the file of a past
day can be made again, byte for byte. What has a name that somebody may change is told by :class:`Names`, which a
written file keeps. Source: Part B, Reconciliation file; decision 0026.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db import connection

from gateway.models import AcquirerAccount, Channel, Merchant
from reporting.models import ClearingInstitute, Matching, RecordType, SettlementFile

FETCHED: Final = 2_000
"""Records asked for at a time."""
FOREVER: Final = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What things are called, by id (32 hex digits), and where the merchant stands in the tree."""

    psp: str
    division: str
    accounts: Mapping[str, str]
    institutes: Mapping[str, str]

    def kept(self) -> dict[str, Any]:
        """For a JSON column; ``Names(**kept)`` is this again."""
        return asdict(self)


@dataclass(slots=True, kw_only=True)
class Line:
    """One record. The first fields are columns of the statement below, in its order; ``paid_…``, ``number``,
    ``channel``, ``memo``, ``request`` and ``answer`` are the payment's that it is matched with. ``candidates``: the
    payments it may be about."""

    id: UUID
    line: int
    recorded_at: datetime
    record_type: str
    transaction_type: str
    cashflow: str
    institute: UUID
    institute_merchant_id: str
    account: UUID | None
    merchant: UUID
    settlement_tx_id: str
    tx_id1: str
    tx_id2: str
    tx_id3: str
    merchant_transaction_id: str
    merchant_invoice_id: str
    amount: Decimal
    currency: str
    brand: str
    presented_at: datetime
    settlement_amount: Decimal
    settlement_currency: str
    settlement_fee: Decimal | None
    fx_rate: Decimal
    settlement_date: date
    settlement_status: str
    descriptor: str
    last4: str
    bank_code: str
    account_holder: str
    reason_code: str
    reason_text: str
    chargeback: UUID | None
    time_zone: str
    format: str
    candidates: list[UUID] | None
    payment: UUID | None
    number: int | None
    channel: UUID | None
    paid_transaction_id: str
    paid_invoice_id: str
    paid_brand: str
    means: str
    memo: str
    request: dict[str, Any]
    answer: dict[str, Any]
    names: Names = field(repr=False)

    @property
    def matched(self) -> Sequence[UUID]:
        return [self.payment] if self.payment is not None else self.candidates or []

    @property
    def matching(self) -> str:
        if self.record_type == RecordType.FEE:
            return ""
        if self.payment is not None:
            return Matching.MATCHED
        return Matching.MULTIPLE_MATCHES if self.candidates else Matching.NOT_MATCHED

    @property
    def is_bank_account(self) -> bool:
        return self.means == "bankAccount" or (not self.means and bool(self.bank_code))

    @property
    def account_name(self) -> str:
        known = self.account or self.channel
        return self.names.accounts.get(known.hex, "") if known is not None else ""

    @property
    def institute_name(self) -> str:
        return self.names.institutes[self.institute.hex]

    @property
    def psp(self) -> str:
        return self.names.psp

    @property
    def division(self) -> str:
        return self.names.division


_FIELDS: Final = tuple(one.name for one in fields(Line) if one.name != "names")
_JSON: Final = ("request", "answer")
_SELECT: Final = """
SELECT r.id, r.line, r.recorded_at, r.record_type, r.transaction_type, r.cashflow, r.institute_id,
    r.institute_merchant_id, r.account, r.merchant_id, r.settlement_tx_id, r.tx_id1, r.tx_id2, r.tx_id3,
    r.merchant_transaction_id, r.merchant_invoice_id, r.amount, r.currency, r.brand, r.presented_at,
    r.settlement_amount, r.settlement_currency, r.settlement_fee, r.fx_rate, r.settlement_date, r.settlement_status,
    r.descriptor, r.last4, r.bank_code, r.account_holder, r.reason_code, r.reason_text,
    CASE WHEN r.chargeback_at < %(as_of)s THEN r.chargeback END, f.time_zone, f.format, k.candidates, p.id, p.number,
    p.channel_id, coalesce(p.merchant_transaction_id, ''), coalesce(p.merchant_invoice_id, ''), coalesce(p.brand, ''),
    coalesce(p.means, ''), coalesce(p.merchant_memo, ''), coalesce(p.request, '{}'), coalesce(p.answer, '{}')
FROM (SELECT * FROM reporting_settlementrecord r WHERE {chosen}) r
JOIN reporting_settlementfile f ON f.id = r.file_id
LEFT JOIN LATERAL (
    SELECT array_agg(m.payment ORDER BY m.payment) AS candidates,
        (array_agg(m.payment) FILTER (WHERE m.chosen))[1] AS payment
    FROM reporting_match m
    WHERE m.record_id = r.id AND m.made_at < %(as_of)s AND (m.undone_at IS NULL OR m.undone_at >= %(as_of)s)
) k ON true
LEFT JOIN gateway_payment p ON p.id = k.payment
ORDER BY {order}
"""
_RECORDED: Final = (
    "r.merchant_id = %(merchant)s AND r.recorded_at >= %(earliest)s AND r.recorded_at < %(until)s"
    " AND r.file_id = ANY(%(files)s) AND (r.recorded_at, r.id) > (%(at)s, %(after)s)"
    " AND (r.assigned_at IS NULL OR r.assigned_at < %(until)s)"
    " ORDER BY r.recorded_at, r.id LIMIT %(fetched)s"
)
# Lines of files that were done before, whose merchant nobody knew until a clerk said whose they are.
_ASSIGNED: Final = (
    "r.merchant_id = %(merchant)s AND r.assigned_at >= %(begin)s AND r.assigned_at < %(until)s"
    " AND r.file_id IN (SELECT f.id FROM reporting_settlementfile f WHERE f.state = 'DONE'"
    " AND f.finished_at < %(begin)s)"
    " AND (r.recorded_at, r.id) > (%(at)s, %(after)s) ORDER BY r.recorded_at, r.id LIMIT %(fetched)s"
)
_BEFORE_ALL: Final = datetime(1970, 1, 1, tzinfo=UTC)


def names_of(merchant: Merchant) -> Names:
    """As they are now."""
    channels = dict(Channel.objects.filter(merchant=merchant).values_list("id", "name"))
    accounts = AcquirerAccount.objects.filter(channel__in=channels)
    return Names(
        psp=merchant.division.psp_id.hex,
        division=merchant.division_id.hex,
        accounts={key.hex: name for key, name in channels.items()} | {one.id.hex: str(one) for one in accounts},
        institutes={key.hex: name for key, name in ClearingInstitute.objects.values_list("id", "name")},
    )


def ask(chosen: str, order: str, values: Mapping[str, Any], *, as_of: datetime, names: Names) -> list[Line]:
    """Lines of the records ``r`` that the condition ``chosen`` (SQL, with its own order and limit) picks."""
    with connection.cursor() as cursor:
        # Only the places of the statement are replaced: its JSON has braces of its own.
        text = _SELECT.replace("{chosen}", chosen).replace("{order}", order)
        cursor.execute(text, {**values, "as_of": as_of})
        rows = cursor.fetchall()
    return [_line(row, names) for row in rows]


def recorded(merchant: Merchant, begin: datetime, end: datetime, names: Names) -> Iterator[Line]:
    """The merchant's lines of the files that were done from ``begin`` to before ``end`` (real times), as it was at
    ``end``; and those of older files that became the merchant's in that time. FETCHED are held at a time."""
    done = SettlementFile.objects.filter(
        state=SettlementFile.State.DONE, finished_at__gte=begin, finished_at__lt=end
    ).values_list("id", "received_at")
    values: dict[str, Any] = {"merchant": merchant.pk, "begin": begin, "until": end}
    if done:
        of_files = {"files": [key for key, _ in done], "earliest": min(at for _, at in done)}
        yield from _fetched(_RECORDED, values | of_files, end, names)
    yield from _fetched(_ASSIGNED, values, end, names)


def _fetched(chosen: str, values: dict[str, Any], end: datetime, names: Names) -> Iterator[Line]:
    place: dict[str, Any] = {"fetched": FETCHED, "at": _BEFORE_ALL, "after": UUID(int=0)}
    while True:
        found = ask(chosen, "r.recorded_at, r.id", values | place, as_of=end, names=names)
        yield from found
        if len(found) < FETCHED:
            return
        place |= {"at": found[-1].recorded_at, "after": found[-1].id}


def _line(row: tuple[Any, ...], names: Names) -> Line:
    told = dict(zip(_FIELDS, row, strict=True))
    for name in _JSON:
        if isinstance(text := told[name], str):
            told[name] = json.loads(text)
    return Line(**told, names=names)

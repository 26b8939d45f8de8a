"""Queries for settlement records with their file, payment, matching and display names. Read only.

A record is returned as it stood at a moment: later matches and chargebacks are left out, so that the file of a past day
can be written again, byte for byte. Names that may be changed come from :class:`DisplayNames`, which is stored with a
written file. Source: Part B, Reconciliation file; decision 0026.
"""

# ruff: noqa: S608 - the statement is built from this module's own columns only; values are always bound
from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from gateway.db.statement import read_sql
from gateway.models import AcquirerAccount, Channel, Merchant
from gateway.payments.payment_archive import include_archive
from reporting.settlement.models import (
    IS_ACTIVE_MATCH,
    ClearingInstitute,
    Match,
    MatchState,
    RecordType,
    SettlementFile,
)

FETCH_SIZE: Final = 2_000
"""Records fetched at a time."""
# Looked up once: a member of an enumeration costs as much as ten columns of a line.
_FEE: Final = RecordType.FEE.value
_MATCHED, _MULTIPLE_MATCHES, _NOT_MATCHED = (
    state.value for state in (MatchState.MATCHED, MatchState.MULTIPLE_MATCHES, MatchState.NOT_MATCHED)
)
END_OF_TIME: Final = datetime(9999, 1, 1, tzinfo=UTC)


def find_matched_settlements(payments: Collection[UUID]) -> set[UUID]:
    """The payments among ``payments`` of which a record says that an institute has settled them."""
    active = Match.objects.filter(IS_ACTIVE_MATCH, payment__in=payments, chosen=True)
    return set(active.filter(record_type=RecordType.SETTLED).values_list("payment", flat=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayNames:
    """Names by id (32 hex digits), and the merchant's position in the hierarchy."""

    psp: str
    division: str
    accounts: Mapping[str, str]
    institutes: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        """The names as a JSON column stores them; ``DisplayNames(**stored)`` is the inverse."""
        return asdict(self)


class SettlementLine(NamedTuple):
    """One record as selected by the statement below. A tuple, since a file may have a million of them.

    Ids are 32 hex digits, ``None`` if there is none; decimals are texts as the database writes them. ``presented_at``:
    seconds since 1970. ``paid_…``, ``number``, ``channel`` and ``memo`` are those of the matched payment, '' if
    unknown. ``candidates``: the payments it may be about.
    """

    id: str
    line: int
    recorded_at: str
    record_type: str
    transaction_type: str
    cashflow: str
    institute: str
    institute_merchant_id: str
    account: str | None
    merchant: str
    settlement_tx_id: str
    tx_id1: str
    tx_id2: str
    tx_id3: str
    merchant_transaction_id: str
    merchant_invoice_id: str
    amount: str
    currency: str
    brand: str
    presented_at: int
    settlement_amount: str
    settlement_currency: str
    settlement_fee: str | None
    fx_rate: str
    settlement_date: str
    settlement_status: str
    descriptor: str
    last4: str
    bank_code: str
    account_holder: str
    reason_code: str
    reason_text: str
    chargeback: str | None
    time_zone: str
    format: str
    candidates: Sequence[str] | None
    payment: str | None
    number: int | None
    channel: str | None
    paid_transaction_id: str
    paid_invoice_id: str
    paid_brand: str
    paid_descriptor: str
    paid_card_last4: str
    paid_account_end: str
    paid_bank_code: str
    paid_card_holder: str
    paid_account_holder: str
    means: str
    memo: str
    names: DisplayNames

    @property
    def matched(self) -> Sequence[str]:
        return [self.payment] if self.payment is not None else sorted(self.candidates or ())

    @property
    def matching(self) -> str:
        if self.record_type == _FEE:
            return ""
        if self.payment is not None:
            return _MATCHED
        return _MULTIPLE_MATCHES if self.candidates else _NOT_MATCHED

    @property
    def is_bank_account(self) -> bool:
        return self.means == "bankAccount" or (not self.means and bool(self.bank_code))

    @property
    def account_name(self) -> str:
        known = self.account or self.channel
        return self.names.accounts.get(known, "") if known is not None else ""

    @property
    def institute_name(self) -> str:
        return self.names.institutes[self.institute]

    @property
    def psp(self) -> str:
        return self.names.psp

    @property
    def division(self) -> str:
        return self.names.division


def _hex(column: str) -> str:
    return f"encode(uuid_send({column}), 'hex')"


def _paid(path: str) -> str:
    """The value that the payment shows at ``path``: sent, or from what it was made with; else the chain's first one,
    since a capture or a refund has no means of its own."""
    return ", ".join(f"nullif({row}.{part} #>> '{{{path}}}', '')" for row in "pc" for part in ("request", "answer"))


# Only the payment parameters that the columns use: all of them would be many times as much.
_SELECT: Final = f"""
SELECT {_hex("r.id")}, r.line, r.recorded_at::text, r.record_type, r.transaction_type, r.cashflow,
    {_hex("r.institute_id")}, r.institute_merchant_id, {_hex("r.account")}, {_hex("r.merchant_id")}, r.settlement_tx_id,
    r.tx_id1, r.tx_id2, r.tx_id3, r.merchant_transaction_id, r.merchant_invoice_id, r.amount::text, r.currency, r.brand,
    floor(extract(epoch FROM r.presented_at))::bigint, r.settlement_amount::text, r.settlement_currency,
    r.settlement_fee::text, r.fx_rate::text, r.settlement_date::text, r.settlement_status, r.descriptor, r.last4,
    r.bank_code, r.account_holder, r.reason_code, r.reason_text,
    CASE WHEN r.chargeback_at < %(as_of)s THEN {_hex("r.chargeback")} END, f.time_zone, f.format, k.candidates,
    {_hex("k.payment")}, p.number, {_hex("p.channel_id")}, coalesce(p.merchant_transaction_id, ''),
    coalesce(p.merchant_invoice_id, ''), coalesce(p.brand, ''),
    CASE WHEN r.descriptor = '' THEN coalesce({_paid("descriptor")}, '') ELSE '' END,
    CASE WHEN r.last4 = '' THEN coalesce({_paid("card,last4Digits")}, '') ELSE '' END,
    CASE WHEN r.last4 = '' THEN
        coalesce(right(coalesce({_paid("bankAccount,iban")}, {_paid("bankAccount,number")}), 4), '') ELSE '' END,
    CASE WHEN r.bank_code = '' THEN coalesce({_paid("bankAccount,bankCode")}, '') ELSE '' END,
    CASE WHEN r.account_holder = '' THEN coalesce({_paid("card,holder")}, '') ELSE '' END,
    CASE WHEN r.account_holder = '' THEN coalesce({_paid("bankAccount,holder")}, '') ELSE '' END,
    coalesce(p.means, ''), coalesce(p.merchant_memo, '')
FROM (SELECT * FROM reporting_settlementrecord r WHERE {{chosen}}) r
JOIN reporting_settlementfile f ON f.id = r.file_id
LEFT JOIN LATERAL (
    SELECT (array_agg(m.payment) FILTER (WHERE m.chosen))[1] AS payment,
        CASE WHEN NOT bool_or(m.chosen) THEN array_agg({_hex("m.payment")}) END AS candidates
    FROM reporting_match m
    WHERE m.record_id = r.id AND m.made_at < %(as_of)s AND (m.undone_at IS NULL OR m.undone_at >= %(as_of)s)
) k ON true
LEFT JOIN gateway_payment p ON p.id = k.payment
LEFT JOIN gateway_payment c ON c.id = p.chain AND c.id <> p.id
ORDER BY {{order}}
"""
_RECORDED: Final = (
    "r.merchant_id = %(merchant)s AND r.recorded_at >= %(earliest)s AND r.recorded_at < %(until)s"
    " AND r.file_id = ANY(%(files)s) AND (r.recorded_at, r.id) > (%(at)s::timestamptz, %(after)s::uuid)"
    " AND (r.assigned_at IS NULL OR r.assigned_at < %(until)s)"
    " ORDER BY r.recorded_at, r.id LIMIT %(fetched)s"
)
# Records of earlier files whose merchant was unknown until a clerk linked them.
_ASSIGNED: Final = (
    "r.merchant_id = %(merchant)s AND r.assigned_at >= %(begin)s AND r.assigned_at < %(until)s"
    " AND r.file_id IN (SELECT f.id FROM reporting_settlementfile f WHERE f.state = 'DONE'"
    " AND f.finished_at < %(begin)s)"
    " AND (r.recorded_at, r.id) > (%(at)s::timestamptz, %(after)s::uuid) ORDER BY r.recorded_at, r.id LIMIT %(fetched)s"
)
RECEIVED_EARLIER: Final = timedelta(hours=1)
"""A file is received by its machine's clock, and its lines are recorded by the database's: an index is bounded by the
first, so with room for the difference."""
_BEFORE_ALL: Final = datetime(1970, 1, 1, tzinfo=UTC)


def load_display_names(merchant: Merchant) -> DisplayNames:
    """The merchant's display names as they are now."""
    channels = dict(Channel.objects.filter(merchant=merchant).values_list("id", "name"))
    accounts = AcquirerAccount.objects.filter(channel__in=channels)
    return DisplayNames(
        psp=merchant.division.psp_id.hex,
        division=merchant.division_id.hex,
        accounts={key.hex: name for key, name in channels.items()} | {one.id.hex: str(one) for one in accounts},
        institutes={key.hex: name for key, name in ClearingInstitute.objects.values_list("id", "name")},
    )


def query_lines(
    chosen: str, order: str, values: Mapping[str, Any], *, as_of: datetime, names: DisplayNames
) -> list[SettlementLine]:
    """Lines of the records ``r`` selected by the condition ``chosen`` (SQL, with its own order and limit)."""
    # Only the placeholders are replaced: JSON paths in the statement have braces of their own.
    text = _SELECT.replace("{chosen}", chosen).replace("{order}", order)
    rows = read_sql(include_archive(text), {**values, "as_of": as_of})
    return [SettlementLine._make((*row, names)) for row in rows]


def stream_recorded_lines(
    merchant: Merchant, begin: datetime, end: datetime, names: DisplayNames
) -> Iterator[SettlementLine]:
    """The merchant's lines of the files completed from ``begin`` to before ``end`` (real times), as of ``end``, and
    those of older files that were assigned to the merchant in that time. FETCH_SIZE are in memory at a time."""
    done = SettlementFile.objects.filter(
        state=SettlementFile.State.DONE, finished_at__gte=begin, finished_at__lt=end
    ).values_list("id", "received_at")
    values: dict[str, Any] = {"merchant": merchant.pk, "begin": begin, "until": end}
    if done:
        of_files = {"files": [key for key, _ in done], "earliest": min(at for _, at in done) - RECEIVED_EARLIER}
        yield from _stream_lines(_RECORDED, values | of_files, end, names)
    yield from _stream_lines(_ASSIGNED, values, end, names)


def _stream_lines(chosen: str, values: dict[str, Any], end: datetime, names: DisplayNames) -> Iterator[SettlementLine]:
    place: dict[str, Any] = {"fetched": FETCH_SIZE, "at": _BEFORE_ALL, "after": "0" * 32}
    while True:
        found = query_lines(chosen, "r.recorded_at, r.id", values | place, as_of=end, names=names)
        yield from found
        if len(found) < FETCH_SIZE:
            return
        place |= {"at": found[-1].recorded_at, "after": found[-1].id}

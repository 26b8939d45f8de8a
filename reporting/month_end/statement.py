"""The statement of a month: what institutes paid out, and the balance between their lines and our payments.

Two tables by currency, made of parts: a condition on a line and what it adds. A part's list is selected by the same
condition as its sum, so that a list always sums to its figure. A line belongs to the month of its settlement date; a
payment that no line has settled, to the month in which its institute should have settled it. Lines that failed to
settle move no money and are left out. Source: decision 0091.

- Payouts, in the settlement currency: what was taken, refunds, chargebacks, fees, and what was held back make what was
  paid out.
- The balance, in the payments' currency: the lines, less what is booked here for them, less what a clerk accepted, less
  payments that are due and on no line. It is 0.00 when every line has its payment and every payment its line.
"""

# ruff: noqa: S608 - statements are built from this module's own conditions only; values are always bound
from __future__ import annotations

import calendar
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import connection
from django.db.models import Max
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from gateway.core import clock
from gateway.models import Merchant
from gateway.payments.payment_archive import include_archive
from reporting.settlement.matching import OUTBOUND_TYPES, build_earlier_reversal_sql
from reporting.settlement.missing_settlements import SETTLED_PAYMENT_TYPES, build_unsettled_payment_sql
from reporting.settlement.models import ClearingInstitute

AMOUNT_FINDING_KINDS: Final = ("AMOUNT", "CURRENCY", "TWICE", "STATUS", "TYPE", "NOT_BOOKED")
"""Kinds of findings that a difference of amounts may be accepted by."""
MISSING_PART: Final = "missing"


def last_of_month(month: date) -> date:
    """The last day of the month of ``month``."""
    return month.replace(day=calendar.monthrange(month.year, month.month)[1])


def is_month_over(merchant: Merchant, month: date) -> bool:
    """Whether the month has ended, by the merchant's clock: in its time zone and in those of the institutes, by whose
    days payments are due."""
    zones = {merchant.time_zone, *ClearingInstitute.objects.filter(active=True).values_list("time_zone", flat=True)}
    now = clock.merchant_now(merchant)
    return all(now.astimezone(ZoneInfo(zone)).date() > last_of_month(month) for zone in zones)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthScope:
    """A month of some merchants. ``merchants`` None: all, with lines of which no merchant is known."""

    month: date
    merchants: frozenset[UUID] | None

    def condition(self, column: str) -> str:
        """SQL: whether the merchant in ``column`` is in the scope."""
        return "true" if self.merchants is None else f"{column} = ANY(%(merchants)s)"

    @property
    def values(self) -> dict[str, Any]:
        last = last_of_month(self.month)
        return {
            "first": self.month,
            "last": last,
            "merchants": list(self.merchants or ()),
            "kinds": list(SETTLED_PAYMENT_TYPES),
            "away": list(OUTBOUND_TYPES),
            "amount_kinds": list(AMOUNT_FINDING_KINDS),
            "now": clock.real_now(),
            "made_from": datetime.combine(self.month - _find_longest_settlement() - timedelta(days=2), time(), UTC),
            "made_until": datetime.combine(last + timedelta(days=2), time(), UTC),
        }


def _find_longest_settlement() -> timedelta:
    """The longest time that an institute takes to settle a payment."""
    days = ClearingInstitute.objects.filter(active=True).aggregate(most=Max("settles_within_days"))["most"]
    return timedelta(days=days or 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementPart:
    """One line of the statement. ``adds``: SQL of what a settlement line adds; ``when``: SQL on the lines that do."""

    name: str
    title: str | Promise
    adds: str
    when: str


PAYOUT_PARTS: Final = (
    StatementPart(name="taken", title=_("Taken from shoppers"), adds="l.gross",
        when="l.record_type = 'SETTLED' AND l.cashflow = 'POS'"),
    StatementPart(name="refunds", title=_("Refunds and credits"), adds="l.gross",
        when="l.record_type = 'SETTLED' AND l.cashflow = 'NEG'"),
    StatementPart(name="chargebacks", title=_("Chargebacks"), adds="l.gross", when="l.record_type = 'CHARGEBACK'"),
    StatementPart(name="reversals", title=_("Chargeback reversals"), adds="l.gross",
        when="l.record_type = 'CHARGEBACK REVERSAL'"),
    StatementPart(name="line_fees", title=_("Fees of these lines"), adds="-l.fee",
        when="l.fee <> 0 AND l.record_type <> 'FEE'"),
    StatementPart(name="fees", title=_("Fees charged apart"), adds="l.net", when="l.record_type = 'FEE'"),
    StatementPart(name="held", title=_("Held back (reserve)"), adds="l.held", when="abs(l.held) >= 0.01"),
    StatementPart(name="rounding", title=_("Rounding"), adds="l.held", when="l.held <> 0 AND abs(l.held) < 0.01"),
)  # fmt: skip
PAID_PART: Final = StatementPart(name="paid", title=_("Paid out"), adds="l.net", when="true")
"""What all parts of the payouts make."""
_DIFFERS: Final = "l.state = 'MATCHED' AND l.amount <> l.booked"
_UNMATCHED: Final = "l.state IN ('NOT_MATCHED', 'MULTIPLE_MATCHES') AND NOT l.without_payment"
BALANCE_PARTS: Final = (
    StatementPart(name="settled", title=_("Lines of the institutes' files"), adds="l.amount",
        when="l.record_type <> 'FEE'"),
    StatementPart(name="booked", title=_("Booked here for these lines"), adds="-l.booked", when="l.booked <> 0"),
    StatementPart(
        name="marked", title=_("Accepted: no payment is behind it"), adds="-l.amount", when="l.without_payment"
    ),
    StatementPart(name="accepted", title=_("Accepted: another amount"), adds="l.booked - l.amount",
        when=f"{_DIFFERS} AND l.accepted"),
)  # fmt: skip
MISSING_TITLE: Final = _("Booked here, due, and on no line")
OPEN_PARTS: Final = (
    StatementPart(name="unmatched", title=_("Lines without exactly one payment"), adds="l.amount", when=_UNMATCHED),
    StatementPart(name="differing", title=_("Lines with another amount than their payment"),
        adds="l.amount - l.booked", when=f"{_DIFFERS} AND NOT l.accepted"),
    StatementPart(name="findings", title=_("Other lines with open findings"), adds="0::numeric",
        when=f"l.open AND NOT ({_UNMATCHED}) AND NOT ({_DIFFERS})"),
)  # fmt: skip
"""What keeps the balance from 0.00, and a month from being closed; besides missing payments."""
LINE_PARTS: Final = {part.name: part for part in (*PAYOUT_PARTS, PAID_PART, *BALANCE_PARTS, *OPEN_PARTS)}
PART_CURRENCY: Final = {
    part.name: "l.settlement_currency" if part in PAYOUT_PARTS or part is PAID_PART else "l.currency"
    for part in LINE_PARTS.values()
}


_SAME_CHAIN: Final = "v.archived = {payment}.archived AND v.chain = {payment}.chain"
"""SQL: whether ``v`` is of the payment's chain, which is archived as a whole or not at all (include_archive)."""


def _net_sql(payment: str) -> str:
    """SQL: what of a payment is to be settled: approved, less what was reversed."""
    return f"""CASE WHEN {payment}.status = 'APPROVED' THEN coalesce({payment}.approved_amount, {payment}.amount)
        - coalesce((SELECT sum(v.approved_amount) FROM gateway_payment v WHERE {_SAME_CHAIN.format(payment=payment)}
        AND v.referenced = {payment}.id AND {build_earlier_reversal_sql("v")}), 0) ELSE 0 END"""


_PAID_MATCH: Final = """EXISTS (SELECT 1 FROM reporting_settlementrecord x
    JOIN reporting_settlementfile y ON y.id = x.file_id AND y.state = 'DONE'
    WHERE x.id = {match}.record_id AND x.settlement_status = 'SUCCESS')"""
"""SQL: whether a match is of a line that is in the statement: not of one that the institute refused to settle, nor of a
file that could not be read to its end."""

# Of two lines that settle the same payment, only the first has it as booked: the other one is a difference.
_LINES: Final = f"""
SELECT r.id, r.merchant_id, r.file_id, r.record_type, r.cashflow, r.state, r.without_payment, r.currency,
    r.settlement_currency,
    w.sign * r.amount AS amount, w.sign * r.settlement_amount AS net, coalesce(r.settlement_fee, 0) AS fee,
    g.gross, CASE WHEN r.record_type = 'FEE' THEN 0
        ELSE w.sign * r.settlement_amount - g.gross + coalesce(r.settlement_fee, 0) END AS held,
    w.sign * CASE WHEN r.record_type = 'FEE' OR p.id IS NULL OR p.currency <> r.currency THEN 0
        WHEN r.record_type = 'SETTLED' AND EXISTS (SELECT 1 FROM reporting_match e WHERE e.payment = m.payment
            AND e.chosen AND e.undone_at IS NULL AND e.record_type = 'SETTLED' AND e.id < m.id
            AND {_PAID_MATCH.format(match="e")}) THEN 0
        ELSE {_net_sql("p")} END AS booked,
    coalesce(f.open, false) AS open, coalesce(f.accepted AND NOT f.open, false) AS accepted
FROM reporting_settlement s
JOIN reporting_settlementrecord r ON r.settlement_id = s.id AND r.settlement_status = 'SUCCESS'
JOIN reporting_settlementfile b ON b.id = r.file_id AND b.state = 'DONE'
CROSS JOIN LATERAL (SELECT CASE WHEN r.cashflow = 'POS' THEN 1 ELSE -1 END AS sign) w
CROSS JOIN LATERAL (SELECT CASE WHEN r.record_type = 'FEE' OR b.source = 'ledger' THEN 0
    WHEN r.currency = r.settlement_currency THEN w.sign * r.amount
    ELSE w.sign * r.settlement_amount + coalesce(r.settlement_fee, 0) END AS gross) g
LEFT JOIN reporting_match m ON m.record_id = r.id AND m.chosen AND m.undone_at IS NULL
LEFT JOIN gateway_payment p ON p.id = CASE WHEN r.record_type = 'SETTLED' THEN m.payment ELSE r.chargeback END
LEFT JOIN LATERAL (
    SELECT bool_or(n.closed_at IS NULL) AS open,
        bool_or(n.closed_at IS NOT NULL AND n.kind = ANY(%(amount_kinds)s)) AS accepted
    FROM reporting_finding n WHERE n.record_id = r.id
) f ON true
WHERE s.date >= %(first)s AND s.date <= %(last)s AND {{settlements}} AND {{records}}"""
# The days are the institute's; whether a payment is due already, goes by its merchant's clock.
_MISSING: Final = f"""
SELECT p.id, p.merchant_id, p.currency,
    CASE WHEN p.payment_type = ANY(%(away)s) OR p.payment_type = 'RV' THEN 1 ELSE -1 END * ({_net_sql("p")}) AS amount
FROM gateway_payment p JOIN gateway_merchant o ON o.id = p.merchant_id
WHERE p.created_at >= %(made_from)s AND p.created_at < %(made_until)s AND {{payments}}
AND {build_unsettled_payment_sql(_PAID_MATCH.format(match="m"), _SAME_CHAIN.format(payment="p"))}
AND EXISTS (SELECT 1 FROM reporting_clearinginstitute i WHERE i.active AND p.connector = ANY(i.connectors)
    AND p.created_at >= greatest(%(first)s::date - i.settles_within_days,
        (i.created_at AT TIME ZONE i.time_zone)::date)::timestamp AT TIME ZONE i.time_zone
    AND p.created_at < (least(%(last)s::date + 1, ((%(now)s + o.clock_offset) AT TIME ZONE i.time_zone)::date)
        - i.settles_within_days)::timestamp AT TIME ZONE i.time_zone)"""


def _lines_sql(scope: MonthScope) -> str:
    # A payout's merchant may be unknown while its lines have one by their payments.
    settlements = "true" if scope.merchants is None else "(s.merchant_id = ANY(%(merchants)s) OR s.merchant_id IS NULL)"
    return _LINES.replace("{settlements}", settlements).replace("{records}", scope.condition("r.merchant_id"))


def _missing_sql(scope: MonthScope) -> str:
    return _MISSING.replace("{payments}", scope.condition("p.merchant_id"))


# --- figures ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PartFigure:
    """One part's sum in one currency, and how many lines or payments it has."""

    name: str
    title: str | Promise
    amount: Decimal
    count: int


@dataclass(slots=True, kw_only=True)
class CurrencyFigures:
    """The parts of one currency, in their order, and what they make."""

    currency: str
    parts: list[PartFigure]
    total: Decimal
    open: list[PartFigure] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class MonthStatement:
    """The figures of a month. ``payouts`` by settlement currency, ``balances`` by the payments' currency."""

    payouts: list[CurrencyFigures]
    balances: list[CurrencyFigures]

    @property
    def is_balanced(self) -> bool:
        """Whether every balance is 0.00 and nothing is open; what cancels out is open, too."""
        return not any(one.total or one.open for one in self.balances)

    @property
    def open_count(self) -> int:
        return sum(part.count for one in self.balances for part in one.open)

    def as_json(self) -> dict[str, Any]:
        """The figures as texts: what is signed."""
        return {
            name: [
                {
                    "currency": one.currency,
                    "total": format(one.total, "f"),
                    "parts": {part.name: [format(part.amount, "f"), part.count] for part in (*one.parts, *one.open)},
                }
                for one in found
            ]
            for name, found in (("payouts", self.payouts), ("balances", self.balances))
        }


def digest_figures(figures: Mapping[str, Any]) -> str:
    """SHA-256 of the figures as canonical JSON."""
    return hashlib.sha256(json.dumps(figures, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _sum_columns(parts: Sequence[StatementPart]) -> str:
    return ", ".join(
        f"coalesce(sum({part.adds}) FILTER (WHERE {part.when}), 0), count(*) FILTER (WHERE {part.when})"
        for part in parts
    )


_PAYOUTS: Final = (*PAYOUT_PARTS, PAID_PART)
_BALANCES: Final = (*BALANCE_PARTS, *OPEN_PARTS)
# The lines are read once for both tables. What a fee is about has no payment: fees are in the payouts alone, but for
# their findings.
_FIGURES: Final = f"""
WITH line AS MATERIALIZED (__lines__)
SELECT 'payouts', {{group}}, l.settlement_currency, {_sum_columns(_PAYOUTS)}
FROM line l GROUP BY 2, 3
UNION ALL
SELECT 'balances', {{group}}, l.currency, {_sum_columns(_BALANCES)},
    {", ".join("0::numeric, 0" for _part in range(len(_PAYOUTS) - len(_BALANCES)))}
FROM line l GROUP BY 2, 3
UNION ALL
SELECT 'missing', {{group}}, l.currency, sum(l.amount), count(*),
    {", ".join("0::numeric, 0" for _part in range(len(_PAYOUTS) - 1))}
FROM (__missing__) l GROUP BY 2, 3"""


def _read_figures(scope: MonthScope, group: str) -> list[tuple[Any, ...]]:
    text = _FIGURES.replace("{group}", group).replace("__lines__", _lines_sql(scope))
    with connection.cursor() as cursor:
        cursor.execute(include_archive(text.replace("__missing__", _missing_sql(scope))), scope.values)
        found: list[tuple[Any, ...]] = cursor.fetchall()
    return found


def build_statement(scope: MonthScope) -> MonthStatement:
    """The statement of the scope's merchants together, in one SQL statement."""
    return _assemble_statement(_read_figures(scope, "NULL::uuid"))


def build_merchant_statements(scope: MonthScope) -> dict[UUID | None, MonthStatement]:
    """The statement of each merchant with any lines or missing payments; None: lines of no known merchant."""
    rows: dict[UUID | None, list[tuple[Any, ...]]] = {}
    for row in _read_figures(scope, "l.merchant_id"):
        rows.setdefault(row[1], []).append(row)
    return {merchant: _assemble_statement(found) for merchant, found in rows.items()}


def _assemble_statement(rows: Sequence[tuple[Any, ...]]) -> MonthStatement:
    payouts: list[CurrencyFigures] = []
    balances: dict[str, tuple[list[PartFigure], list[PartFigure]]] = {}
    missing = {row[2]: (row[3], row[4]) for row in rows if row[0] == "missing"}
    for row in sorted(rows, key=lambda each: (each[0], each[2])):
        kind, currency = row[0], row[2]
        if kind == "payouts":
            *parts, paid = _read_parts(_PAYOUTS, row)
            payouts.append(CurrencyFigures(currency=currency, parts=_drop_empty(parts), total=paid.amount))
        elif kind == "balances":
            figures = _read_parts(_BALANCES, row)
            balances[currency] = (figures[: len(BALANCE_PARTS)], figures[len(BALANCE_PARTS) :])
    found = []
    for currency in sorted({*balances, *missing}):
        parts, open_ = balances.get(currency, ([], []))
        amount, count = missing.get(currency, (Decimal(0), 0))
        due = PartFigure(name=MISSING_PART, title=MISSING_TITLE, amount=amount, count=count)
        total = sum((part.amount for part in (*parts, due)), Decimal("0.00"))
        parts, open_ = _drop_empty([*parts, due]), _drop_empty([*open_, due])
        if parts or open_:
            found.append(CurrencyFigures(currency=currency, parts=parts, total=total, open=open_))
    return MonthStatement(payouts=payouts, balances=found)


def _read_parts(parts: Sequence[StatementPart], row: tuple[Any, ...]) -> list[PartFigure]:
    return [
        PartFigure(name=part.name, title=part.title, amount=row[3 + 2 * number], count=row[4 + 2 * number])
        for number, part in enumerate(parts)
    ]


def _drop_empty(parts: Collection[PartFigure]) -> list[PartFigure]:
    return [part for part in parts if part.count]


# --- lists --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PartList:
    """A page of a part's lines or payments: ids with what each adds, and the sum and count of all of them."""

    ids: list[tuple[UUID, Decimal]]
    total: Decimal
    count: int


def list_part(scope: MonthScope, name: str, currency: str, after: UUID | None, most: int) -> PartList:
    """The settlement lines of a part, or the payments of MISSING_PART, by id, ``most`` after ``after``."""
    values = {**scope.values, "currency": currency, "after": after, "most": most}
    if name == MISSING_PART:
        rows = f"SELECT l.id, l.amount AS adds FROM ({_missing_sql(scope)}) l WHERE l.currency = %(currency)s"
    else:
        part = LINE_PARTS[name]
        rows = (
            f"SELECT l.id, {part.adds} AS adds FROM ({_lines_sql(scope)}) l"
            f" WHERE {part.when} AND {PART_CURRENCY[name]} = %(currency)s"
        )
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH found AS MATERIALIZED ({include_archive(rows)})"
            " SELECT NULL::uuid, coalesce(sum(adds), 0), count(*) FROM found"
            " UNION ALL (SELECT id, adds, 0 FROM found WHERE %(after)s::uuid IS NULL OR id > %(after)s::uuid"
            " ORDER BY id LIMIT %(most)s)",
            values,
        )
        found = cursor.fetchall()
    total, count = next((adds, number) for ident, adds, number in found if ident is None)
    return PartList(
        ids=[(ident, adds) for ident, adds, _number in found if ident is not None], total=total, count=count
    )

"""The waterfall: from checkouts opened to money settled, with what was lost at each step and why.

Purchases are counted, not attempts (reporting.approvals.figures). Every purchase is in exactly one row that is lost, or
in the last one, so that the rows add up.
"""

# ruff: noqa: S608 - statements are put together out of this package's own constants; values are always bound

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from gateway.backoffice.operations.dashboard import SCOPE_CONDITION
from gateway.db.statement import read_sql
from reporting.approvals.figures import (
    DECIDING_ORDER_SQL,
    MAX_APPROVAL_PAYMENTS,
    ApprovalPeriod,
    get_chosen_sql,
    read_chosen,
)

LOST_REASONS: Final = {
    "left": gettext_noop("left without a try"),
    "refused": gettext_noop("refused here: faults and risk rules"),
    "authentication": gettext_noop("authentication not passed"),
    "soft": gettext_noop("declined: the issuer wanted a challenge"),
    "funds": gettext_noop("declined: not enough money"),
    "card": gettext_noop("declined: card closed, expired or wrong"),
    "unreached": gettext_noop("acquirer or issuer not reached"),
    "rest": gettext_noop("approved in part, the rest not paid"),
    "declined": gettext_noop("declined: other reasons"),
    "open": gettext_noop("not decided"),
    "uncaptured": gettext_noop("authorized, not captured"),
    "returned": gettext_noop("reversed or refunded"),
    "unsettled": gettext_noop("not settled yet"),
}
"""Reason → words, in the order of the steps at which money is lost."""
LEFT_STEPS: Final = {
    "wanted": gettext_noop("Wanted to pay"),
    "sent": gettext_noop("Sent to an acquirer"),
    "approved": gettext_noop("Approved"),
    "settled": gettext_noop("Settled"),
}
"""Step → words, of what is left at each."""
BEFORE_ACQUIRER: Final = ("left", "refused", "authentication")
NOT_APPROVED: Final = ("soft", "funds", "card", "unreached", "rest", "declined", "open")
NOT_SETTLED: Final = ("uncaptured", "returned", "unsettled")
SOFT_SQL: Final = "result_code = '300.100.100'"
FUNDS_SQL: Final = "result_code IN ('800.100.155', '800.100.203')"
CARD_SQL: Final = """(result_code IN ('100.100.303', '800.100.151', '800.100.154', '800.100.157', '800.100.159',
    '800.100.160', '800.100.165', '800.100.168', '800.100.171', '800.100.172', '800.100.202')
    OR result_code LIKE '700.601%%')"""
"""Declines for want of a challenge, for want of money, and of a card that is closed, expired or wrong."""

# The purchase's deciding attempt. Of an amount that was paid in parts all approved payments: each is a chain with
# captures and refunds of its own.
_PURCHASES: Final = f"""
WITH {get_chosen_sql({"archived": "p.archived", "gave_part_back": "p.status = 'DECLINED' AND p.answer ? 'heldPart'"})},
ranked AS (
    SELECT c.*, row_number() OVER tries AS place, first_value(approved AND pays_rest) OVER tries AS paid_in_parts,
        max(amount) OVER (PARTITION BY merchant_id, purchase) AS whole
    FROM chosen c WINDOW tries AS (
        PARTITION BY merchant_id, purchase ORDER BY {DECIDING_ORDER_SQL}
    )
), placed AS (
    SELECT r.merchant_id, r.purchase, r.currency,
        CASE WHEN approved THEN coalesce(r.approved_amount, r.amount) WHEN pays_rest THEN r.whole
            ELSE r.amount END AS money,
        CASE WHEN approved THEN '' WHEN status <> 'DECLINED' THEN 'open' WHEN pays_rest OR gave_part_back THEN 'rest'
            WHEN {SOFT_SQL} THEN 'soft'
            WHEN result_code LIKE '100.380%%' OR result_code LIKE '100.390%%' OR result_code LIKE '100.396%%'
                THEN 'authentication'
            WHEN connector IN ('', 'nobody') THEN 'refused'
            WHEN {FUNDS_SQL} THEN 'funds'
            WHEN {CARD_SQL} THEN 'card'
            WHEN result_code LIKE '900.%%' OR result_code = '800.100.176' THEN 'unreached'
            WHEN NOT asked THEN 'refused'
            ELSE 'declined' END AS lost,
        coalesce(f.captured, CASE WHEN payment_type = 'DB' THEN coalesce(r.approved_amount, r.amount) ELSE 0 END)
            AS captured,
        coalesce(f.returned, 0) AS returned,
        coalesce(f.settled, false) OR (approved AND EXISTS (
            SELECT 1 FROM reporting_match m WHERE m.payment = r.id AND m.chosen AND m.undone_at IS NULL
                AND m.record_type = 'SETTLED')) AS settled
    FROM ranked r LEFT JOIN LATERAL (
        SELECT CASE WHEN r.payment_type = 'PA' THEN
                coalesce(sum(p.approved_amount) FILTER (WHERE p.payment_type = 'CP'), 0) END AS captured,
            sum(p.approved_amount) FILTER (WHERE p.returned_at IS NULL AND (p.payment_type = 'RF'
                OR (p.payment_type = 'RV' AND r.payment_type = 'DB'))) AS returned,
            bool_or(p.payment_type = 'CP' AND EXISTS (
                SELECT 1 FROM reporting_match m WHERE m.payment = p.id AND m.chosen AND m.undone_at IS NULL
                    AND m.record_type = 'SETTLED')) AS settled
        FROM gateway_payment p
        WHERE p.archived = r.archived AND p.chain = r.id AND p.id <> r.id AND p.status = 'APPROVED'
    ) AS f ON r.approved AND r.follow_ups > 0
    WHERE r.place = 1 OR (r.paid_in_parts AND r.approved)
), purchases AS (
    SELECT currency, max(lost) AS lost, sum(money) AS money, sum(captured) AS captured, sum(returned) AS returned,
        bool_and(settled) FILTER (WHERE captured > returned) AS settled
    FROM placed GROUP BY merchant_id, purchase, currency
)
SELECT currency, CASE WHEN lost <> '' THEN lost WHEN captured = 0 THEN 'uncaptured' WHEN returned >= captured THEN
        'returned' WHEN settled THEN '' ELSE 'unsettled' END AS reason,
    count(*), sum(money)
FROM purchases GROUP BY 1, 2
"""
_CHECKOUTS: Final = f"""
SELECT currency, count(*), coalesce(sum(amount), 0), count(*) FILTER (WHERE empty),
    coalesce(sum(amount) FILTER (WHERE empty), 0)
FROM (
    SELECT c.request ->> 'currency' AS currency, (c.request ->> 'amount')::numeric AS amount,
        c.payment_id IS NULL AND c.expires_at <= statement_timestamp() + reached.clock_offset AS empty
    FROM (
        SELECT m.id, m.clock_offset FROM gateway_merchant m WHERE %(all)s OR m.id = ANY(%(reached)s::uuid[])
    ) AS reached CROSS JOIN LATERAL (
        SELECT * FROM checkout_checkout k WHERE k.merchant_id = reached.id AND k.kind = 'payment'
            AND k.created_at >= %(since)s AND k.created_at < %(until)s AND k.request ?& ARRAY['currency', 'amount']
            AND (%(currency)s = '' OR k.request ->> 'currency' = %(currency)s) AND {SCOPE_CONDITION.format(table="k")}
        ORDER BY k.created_at DESC LIMIT {MAX_APPROVAL_PAYMENTS}
    ) AS c LIMIT {MAX_APPROVAL_PAYMENTS}
) AS opened GROUP BY 1
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaterfallRow:
    """A step: what was left (``lost`` False) or what was lost there. ``step``: one of LOST_REASONS or LEFT_STEPS;
    ``share``: percent of the first row's money."""

    name: str
    step: str
    lost: bool
    count: int
    money: Decimal
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waterfall:
    """The steps of one currency. ``checkouts``: how many of the purchases began with an opened checkout."""

    currency: str
    checkouts: int
    rows: tuple[WaterfallRow, ...]


def compute_waterfalls(period: ApprovalPeriod) -> list[Waterfall]:
    """One for each currency, the largest first."""
    found: dict[str, dict[str, tuple[int, Decimal]]] = defaultdict(dict)
    checkouts: dict[str, int] = {}
    for currency, reason, count, money in read_chosen(_PURCHASES, period.values()):
        found[currency][reason] = (count, money)
    for currency, opened, _money, left, left_money in read_sql(_CHECKOUTS, period.values()):
        checkouts[currency] = opened
        if left:
            found[currency]["left"] = (left, left_money)
    all_ = [_build_waterfall(currency, lost, checkouts.get(currency, 0)) for currency, lost in found.items()]
    return sorted(all_, key=lambda one: (-one.rows[0].money, one.currency))


def _build_waterfall(currency: str, found: dict[str, tuple[int, Decimal]], checkouts: int) -> Waterfall:
    count, money = sum(one for one, _ in found.values()), sum((one for _, one in found.values()), Decimal(0))
    whole = money
    rows: list[WaterfallRow] = []

    def add(step: str, number: int, amount: Decimal, *, lost: bool) -> None:
        name = _((LOST_REASONS if lost else LEFT_STEPS)[step])
        share = float(100 * amount / whole) if whole else 0.0
        rows.append(WaterfallRow(name=name, step=step, lost=lost, count=number, money=amount, share=share))

    add("wanted", count, money, lost=False)
    for reasons, then in ((BEFORE_ACQUIRER, "sent"), (NOT_APPROVED, "approved"), (NOT_SETTLED, "settled")):
        for reason in reasons:
            if reason in found:
                number, amount = found[reason]
                count, money = count - number, money - amount
                add(reason, number, amount, lost=True)
        add(then, count, money, lost=False)
    return Waterfall(currency=currency, checkouts=checkouts, rows=tuple(rows))

"""The dry run of routing: which account each past payment would take now, against the one it took. Nothing changes.

Background work (gateway.work): a slice reads one page of a channel's first payments in the order of time, asks the
rules as they stand, and adds to sums by rule and to a file of those that would go elsewhere. Source: issue 9.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Q, QuerySet

from gateway import work
from gateway.connectors.message import flat
from gateway.connectors.routing import INTERNAL, choose, table_of
from gateway.connectors.rules import BIN_DIGITS, Choice, Facts, Table, fits
from gateway.desk.export import safe_cell
from gateway.models import BackgroundWork, Payment
from gateway.payments.endings import REGISTER
from gateway.payments.means import means_of_payment
from gateway.vault import VaultError
from gateway.work_files import Folder

RIGHT: Final = "gateway.view_routingrule"
PAGE: Final = 500
"""Payments of one slice."""
MOST_MOVES: Final = 500
"""Pairs of accounts by rule that are summed; further ones are in the file alone."""
FILE: Final = "routing.csv"
TYPES: Final = ("PA", "DB", "CD", "RG")
NO_RULE, NOBODY = "", ""
_HEADER: Final = (
    "created", "id", "type", "brand", "amount", "currency", "country", "took", "would take", "rule", "passed over",
)  # fmt: skip
_READ: Final = (
    "id", "created_at", "payment_type", "brand", "amount", "currency", "connector", "account", "request", "answer",
    "means", "means_sealed", "route",
)  # fmt: skip


def step(row: BackgroundWork, folder: Folder, alive: Callable[[], None]) -> work.Slice:
    """One page of payments. Parameters: ``channel``; ``from``, ``to``: the merchant's clock, ISO 8601; ``all``: those
    of INTERNAL too; ``drafts``: as if rules that are switched off were not."""
    asked, cursor = row.parameters, dict(row.cursor)
    rows, total = _meant(asked), None
    if "parts" not in cursor:
        cursor, total = {"at": "", "after": "", "parts": [], "seen": 0, "changed": 0, "moves": {}}, rows.count()
    if cursor["at"]:
        at, after = datetime.fromisoformat(cursor["at"]), UUID(cursor["after"])
        rows = rows.filter(Q(created_at__gt=at) | Q(created_at=at, id__gt=after))
    found = list(rows.order_by("created_at", "id").only(*_READ)[:PAGE])
    table = table_of(UUID(asked["channel"]), drafts=bool(asked.get("drafts")))
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\r\n")
    if not cursor["parts"]:
        lines.write("\ufeff")
        writer.writerow(_HEADER)
    for payment in found:
        choice, then = chosen(payment, table), took(payment)
        now = f"{choice.ways[0].connector} {choice.ways[0].merchant}" if choice.ways else NOBODY
        _count(cursor, payment, choice, then, now)
        if now != then:
            writer.writerow([safe_cell(cell) for cell in _line(payment, choice, then, now)])
    cursor["parts"] = folder.append(cursor["parts"], FILE, lines.getvalue().encode())
    if found:
        cursor |= {"at": found[-1].created_at.isoformat(), "after": found[-1].id.hex}
    done = int(cursor["seen"])
    over = len(found) < PAGE
    message = f"{cursor['changed']} would go elsewhere"
    return work.Slice(done=done, cursor=cursor, total=done if over else total, finished=over, message=message,
                      file=folder.joined(cursor["parts"], FILE, alive) if over else "")  # fmt: skip


KIND: Final = work.add(
    work.Kind(name="routing", about="Past payments as today's routing rules would send them.", right=RIGHT, step=step)
)


def _meant(asked: Mapping[str, Any]) -> QuerySet[Payment]:
    rows = Payment.objects.filter(
        channel=UUID(asked["channel"]), created_at__gte=datetime.fromisoformat(asked["from"]),
        created_at__lt=datetime.fromisoformat(asked["to"]), chain=F("id"), payment_type__in=TYPES,
    )  # fmt: skip
    return rows if asked.get("all") else rows.exclude(test_mode=INTERNAL)


def took(payment: Payment) -> str:
    """Where it was sent first: what became of it afterwards is not the rules' doing."""
    tried = (payment.route or {}).get("tried")
    if tried:
        return f"{tried[0]['connector']} {tried[0]['account']}"
    return f"{payment.connector} {payment.account}".strip()


def chosen(payment: Payment, table: Table) -> Choice:
    """Who would take a past payment now. The sealed number is opened only where the first digits do not tell."""
    facts = facts_of(payment)
    if facts.digits and any(fits(rule, facts) is None for rule in table.rules):
        try:
            means = means_of_payment(payment)
        except VaultError:
            means = None
        if means is not None:
            facts = replace(facts, digits=means.account.reveal()[:BIN_DIGITS])
    return choose(table, facts)


def facts_of(payment: Payment) -> Facts:
    """What routing looks at, as far as it was kept."""
    sent = flat(payment.request)
    return Facts(
        brand=payment.brand, currency="" if payment.payment_type == REGISTER else payment.currency,
        payment=payment.id, amount=payment.amount, country=sent.get("billing.country", ""),
        payment_type=payment.payment_type, means=payment.means,
        digits=payment.answer.get("card", {}).get("bin", ""), sent=frozenset(sent),
    )  # fmt: skip


def _count(cursor: dict[str, Any], payment: Payment, choice: Choice, then: str, now: str) -> None:
    """Sums: by rule, from where to where, in which currency: [payments, amount]."""
    cursor["seen"] += 1
    cursor["changed"] += now != then
    key = "\t".join((choice.rule, then, now, payment.currency))
    moves = cursor["moves"]
    if key in moves or len(moves) < MOST_MOVES:
        count, amount = moves.get(key, (0, "0"))
        moves[key] = [count + 1, str(Decimal(amount) + payment.amount)]


def _line(payment: Payment, choice: Choice, then: str, now: str) -> list[Any]:
    over = "; ".join(f"{name}: {why}" for name, why in choice.over)
    return [
        f"{payment.created_at:%Y-%m-%d %H:%M:%S}", payment.id.hex, payment.payment_type, payment.brand,
        payment.amount, payment.currency, facts_of(payment).country, then, now, choice.rule, over,
    ]  # fmt: skip


def summary(cursor: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the page shows: rule by rule, from where to where; those that would change first."""
    rows = []
    for key, (count, amount) in cursor.get("moves", {}).items():
        rule, then, now, currency = key.split("\t")
        rows.append({"rule": rule, "then": then, "now": now, "currency": currency, "count": count,
                     "amount": Decimal(amount), "changed": then != now})  # fmt: skip
    return sorted(rows, key=lambda row: (not row["changed"], row["rule"], -row["count"]))

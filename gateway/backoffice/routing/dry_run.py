"""Routing dry run: which account each past payment would take by today's rules. Nothing changes.

Background work (gateway.background.queue). A slice reads one page of a channel's first payments in order of time,
routes them by the current rules, and adds to sums per rule and to a file of the payments that would take another
account. Of a card only the six digits are compared that its payment shows: who tries rules may write them too, and
could find the card's number with more digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from gateway.background import queue
from gateway.background.files import AttemptFolder
from gateway.backoffice.payments.payment_export import EXPORT_PAYMENT_PERMISSION, scope_to_channel
from gateway.backoffice.payments.payment_replay import append_csv_lines, read_payment_page, select_first_payments
from gateway.connectors.account_choice import (
    AccountFigures,
    ChoiceFacts,
    compare_rates,
    compute_cost,
    find_rates,
)
from gateway.connectors.account_figures import (
    load_account_figures,
    pack_figures,
    rename_accounts,
    unpack_figures,
)
from gateway.connectors.routing import choose_accounts, load_routing_table
from gateway.connectors.routing_rules import (
    CHOSEN_PAYMENT_TYPES,
    MIN_BIN_DIGITS,
    RouteChoice,
    RoutingFacts,
    RoutingTable,
    match_rule,
    name_for_rules,
)
from gateway.connectors.simulator.connector import SIMULATOR
from gateway.models import BackgroundWork, Payment, Status
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE
from gateway.payments.stored_request import restore_sent_parameters

VIEW_ROUTING_PERMISSION: Final = "gateway.view_routingrule"
DRY_RUN_SLICE_PAYMENTS: Final = 500
"""Payments of one slice."""
MAX_SUMMED_MOVES: Final = 500
"""Summed combinations of rule and accounts; further ones are only in the file."""
DRY_RUN_FILE_NAME: Final = "routing.csv"
ROUTED_PAYMENT_TYPES: Final = ("PA", "DB", "CD", "RG")
_HEADER: Final = (
    "created", "id", "type", "brand", "amount", "currency", "country", "took", "would take", "rule", "passed over",
)  # fmt: skip
_READ: Final = (
    "id", "created_at", "payment_type", "brand", "amount", "currency", "connector", "acquirer_merchant_id", "request",
    "answer", "means", "route", "status",
)  # fmt: skip


def replay_routing_slice(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> queue.SliceResult:
    """Process one page of payments. Parameters: ``channel``; ``from``, ``to``: the merchant's clock, ISO 8601; ``all``:
    include payments of INTERNAL; ``drafts``: include rules that are switched off."""
    asked, cursor = row.parameters, dict(row.cursor)
    rows, total = select_first_payments(asked, ROUTED_PAYMENT_TYPES), None
    if "parts" not in cursor:
        cursor = {"at": "", "after": "", "parts": [], "seen": 0, "changed": 0, "undecided": 0, "moves": {}}
        cursor["scopes"] = [scope_to_channel(UUID(asked["channel"]))]
        total = rows.count()
    _rest, found = read_payment_page(rows, cursor, _READ, DRY_RUN_SLICE_PAYMENTS)
    table = load_routing_table(UUID(asked["channel"]), drafts=bool(asked.get("drafts")))
    names = name_simulated_accounts(table)
    if "figures" not in cursor:
        # One state of the figures for all slices, so that the sums belong together.
        counted = load_account_figures(UUID(asked["channel"]), with_internal=bool(asked.get("all")))
        cursor["figures"] = pack_figures(rename_accounts(counted, names))
    figures = unpack_figures(cursor["figures"])
    lines = []
    for payment in found:
        facts, then = routing_facts_from_payment(payment), find_original_account(payment, names)
        choice = choose_accounts(table, facts, lambda: figures)
        cursor["undecided"] += has_undecided_rule(table, facts)
        now = f"{choice.candidates[0].connector} {choice.candidates[0].merchant}" if choice.candidates else ""
        _add_to_sums(cursor, payment, choice, then, now)
        if now not in (then, ""):
            _add_value(cursor, payment, facts, figures, then, now, names)
        if now != then:
            lines.append(_build_csv_line(payment, choice, then, now))
    append_csv_lines(folder, cursor, DRY_RUN_FILE_NAME, _HEADER, lines)
    done = int(cursor["seen"])
    over = len(found) < DRY_RUN_SLICE_PAYMENTS
    message = f"{cursor['changed']} would go elsewhere"
    return queue.SliceResult(
        done=done,
        cursor=cursor,
        total=done if over else total,
        finished=over,
        message=message,
        file=folder.joined(cursor["parts"], DRY_RUN_FILE_NAME, alive) if over else "",
    )


ROUTING_DRY_RUN: Final = queue.WorkKind(
    name="routing",
    about="Past payments as today's routing rules would send them.",
    right=VIEW_ROUTING_PERMISSION,
    file_right=EXPORT_PAYMENT_PERMISSION,
    step=replay_routing_slice,
)


def name_simulated_accounts(table: RoutingTable) -> dict[str, str]:
    """The simulator's payments under an account's merchant id (the simulated market's) → that account. The simulator
    itself has no accounts."""
    return {f"{SIMULATOR.name} {one.merchant}": f"{one.connector} {one.merchant}" for one in table.accounts}


def find_original_account(payment: Payment, names: Mapping[str, str]) -> str:
    """The account the payment was first sent to; later failover is not the rules' doing. ``names``:
    :func:`name_simulated_accounts`."""
    tried = (payment.route or {}).get("tried")
    if tried:
        return f"{tried[0]['connector']} {tried[0]['account']}"
    return _name_last_account(payment, names)


def _name_last_account(payment: Payment, names: Mapping[str, str]) -> str:
    """The account that the payment ended at."""
    account = f"{payment.connector} {payment.acquirer_merchant_id}".strip()
    return names.get(account, account)


def has_undecided_rule(table: RoutingTable, facts: RoutingFacts) -> bool:
    """Whether a rule was passed over that may fit: it names more digits of the card than are compared."""
    by_rules = name_for_rules(table, facts)
    for rule in table.rules:
        if fits := match_rule(rule, by_rules):
            return False
        if fits is None:
            return True
    return False


def routing_facts_from_payment(payment: Payment) -> RoutingFacts:
    """The routing input of a stored payment, as far as it was stored."""
    sent = restore_sent_parameters(payment)
    return RoutingFacts(
        brand=payment.brand,
        currency="" if payment.payment_type == REGISTRATION_PAYMENT_TYPE else payment.currency,
        payment=payment.id,
        amount=payment.amount,
        country=sent.get("billing.country", ""),
        payment_type=payment.payment_type,
        means=payment.means,
        digits=payment.answer.get("card", {}).get("bin", "")[:MIN_BIN_DIGITS],
        sent=sent,
    )


def _add_to_sums(cursor: dict[str, Any], payment: Payment, choice: RouteChoice, then: str, now: str) -> None:
    """Add to the sums: rule, from, to, currency → [payments, amount]."""
    cursor["seen"] += 1
    cursor["changed"] += now != then
    key = "\t".join((choice.rule, then, now, payment.currency))
    moves = cursor["moves"]
    if key in moves or len(moves) < MAX_SUMMED_MOVES:
        count, amount = moves.get(key, (0, "0"))
        moves[key] = [count + 1, str(Decimal(amount) + payment.amount)]


def _add_value(
    cursor: dict[str, Any],
    payment: Payment,
    facts: RoutingFacts,
    figures: AccountFigures,
    then: str,
    now: str,
    names: Mapping[str, str],
) -> None:
    """Add what moving a judged payment would have cost less, and what may be approved more or less: by currency
    [payments, cost saved, least, likely and most approved money, without a price, without a rate]."""
    judged = payment.status in (Status.APPROVED, Status.DECLINED)
    if payment.payment_type not in CHOSEN_PAYMENT_TYPES or not judged or not payment.amount:
        return
    known = ChoiceFacts(amount=payment.amount, currency=payment.currency, brand=payment.brand, bin=facts.digits or "")
    values = cursor.setdefault("values", {})
    count, saved, low, rate, high, unpriced, unrated = values.get(
        payment.currency, (0, "0.0000", "0.00", "0.00", "0.00", 0, 0)
    )
    # What an approved payment cost is the price of the account that approved it: after failover, not the first one's.
    moved_on = payment.status == Status.APPROVED and then != _name_last_account(payment, names)
    costs = [None if moved_on else compute_cost(figures, account, known) for account in (then, now)]
    priced = costs[0] is not None and costs[1] is not None
    if payment.status == Status.APPROVED and costs[0] is not None and costs[1] is not None:
        saved = str(Decimal(saved) + costs[0] - costs[1])
    rates = find_rates(figures, (then, now), known)
    if rates is not None:
        points = compare_rates(rates[1][now], rates[1][then])
        low, rate, high = (
            str(Decimal(kept) + (payment.amount * Decimal(repr(part)) / 100).quantize(Decimal("0.01")))
            for kept, part in ((low, points.low), (rate, points.rate), (high, points.high))
        )
    values[payment.currency] = [count + 1, saved, low, rate, high, unpriced + (not priced), unrated + (rates is None)]


def summarize_values(cursor: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of the result page: what the moves bring and risk, by currency."""
    return [
        {
            "currency": currency,
            "count": count,
            "saved": Decimal(saved).quantize(Decimal("0.01")),
            "low": Decimal(low),
            "likely": Decimal(rate),
            "high": Decimal(high),
            "at_risk": max(Decimal(0), -Decimal(low)),
            "unpriced": unpriced,
            "unrated": unrated,
        }
        for currency, (count, saved, low, rate, high, unpriced, unrated) in sorted(cursor.get("values", {}).items())
    ]


def _build_csv_line(payment: Payment, choice: RouteChoice, then: str, now: str) -> list[Any]:
    over = "; ".join(f"{name}: {why}" for name, why in choice.rejected)
    return [
        f"{payment.created_at:%Y-%m-%d %H:%M:%S}",
        payment.id.hex,
        payment.payment_type,
        payment.brand,
        payment.amount,
        payment.currency,
        routing_facts_from_payment(payment).country,
        then,
        now,
        choice.rule,
        over,
    ]


def summarize_route_changes(cursor: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of the result page: rule by rule, from account to account, changes first."""
    rows = []
    for key, (count, amount) in cursor.get("moves", {}).items():
        rule, then, now, currency = key.split("\t")
        rows.append(
            {
                "rule": rule,
                "then": then,
                "now": now,
                "currency": currency,
                "count": count,
                "amount": Decimal(amount),
                "changed": then != now,
            }
        )
    return sorted(rows, key=lambda row: (not row["changed"], row["rule"], -row["count"]))

"""Exemption trial: what rules would have asked for the past payments of a channel. Nothing changes.

Background work (gateway.background.queue). A slice reads one page of the channel's card payments in order of time,
decides by the rules as gateway.payments.exempting does, and adds to sums and to a file of the payments that would have
been exempted. The cards' counts of low value payments go along from slice to slice and begin at nothing. Of a card only
the six digits are compared that its payment shows: who tries rules writes them, and could find the card's number with
more digits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from django.db.models import QuerySet

from gateway.background import queue
from gateway.background.files import AttemptFolder
from gateway.backoffice.payments.payment_export import EXPORT_PAYMENT_PERMISSION, scope_to_channel
from gateway.backoffice.payments.payment_replay import append_csv_lines, read_payment_page, select_first_payments
from gateway.connectors.means import Card
from gateway.connectors.routing_rules import MIN_BIN_DIGITS
from gateway.models import Authentication, BackgroundWork, Payment, Status
from gateway.payments import exempting
from gateway.payments.fraud_liability import FraudLiability, resolve_fraud_liability
from gateway.payments.network_brands import find_network_brand
from gateway.payments.stored_request import restore_sent_parameters
from gateway.threeds import server
from gateway.threeds.exemption_rules import (
    CardCount,
    Exemption,
    ExemptionDecision,
    ExemptionRules,
    decide_exemption,
    parse_exemption_rules,
)

VIEW_PAYMENTS_PERMISSION: Final = "gateway.view_payment"
EXEMPTION_TRIAL_SLICE_PAYMENTS: Final = 500
MAX_EXEMPTION_TRIAL_PAYMENTS: Final = 20_000
"""The first payments of the period that are tried: the cards' counts are kept between slices."""
EXEMPTION_TRIAL_FILE_NAME: Final = "exemptions.csv"
_HEADER: Final = (
    "created", "id", "type", "brand", "amount", "currency", "exemption", "was challenged", "liability", "result",
)  # fmt: skip
_READ: Final = (
    "id", "created_at", "payment_type", "brand", "amount", "approved_amount", "currency", "status", "result_code",
    "request", "answer", "means", "means_fingerprint", "registration", "referenced",
)  # fmt: skip


def replay_exemptions_slice(row: BackgroundWork, folder: AttemptFolder, alive: Callable[[], None]) -> queue.SliceResult:
    """Process one page of payments. Parameters: ``channel``; ``from``, ``to``: the merchant's clock, ISO 8601; ``all``:
    include payments of INTERNAL; ``exemptions``: the rules, as ``Channel.exemptions`` has them."""
    asked, cursor = row.parameters, dict(row.cursor)
    rows, total = _select_trial_payments(asked), None
    if "parts" not in cursor:
        cursor = {"at": "", "after": "", "parts": [], "seen": 0, "asked": 0, "undecided": 0}
        cursor |= {"sums": {}, "cards": {}, "scopes": [scope_to_channel(UUID(asked["channel"]))]}
        total = min(rows.count(), MAX_EXEMPTION_TRIAL_PAYMENTS)
    size = min(EXEMPTION_TRIAL_SLICE_PAYMENTS, MAX_EXEMPTION_TRIAL_PAYMENTS - cursor["seen"])
    rows, found = read_payment_page(rows, cursor, _READ, size)
    rules = parse_exemption_rules(asked["exemptions"]) or ExemptionRules()
    challenges = _find_challenges(found)
    lines = []
    for payment in found:
        decision = _replay_payment(payment, rules, cursor, challenges)
        lines.append(_add_to_sums(cursor, payment, decision, challenged=payment.id in challenges))
    append_csv_lines(folder, cursor, EXEMPTION_TRIAL_FILE_NAME, _HEADER, filter(None, lines))
    over = len(found) < size or cursor["seen"] >= MAX_EXEMPTION_TRIAL_PAYMENTS
    if over:
        cursor |= {"cards": {}, "cut": rows.count() > len(found)}
    return queue.SliceResult(
        done=int(cursor["seen"]),
        cursor=cursor,
        total=int(cursor["seen"]) if over else total,
        finished=over,
        message=f"{cursor['asked']} / {cursor['seen']}",
        file=folder.joined(cursor["parts"], EXEMPTION_TRIAL_FILE_NAME, alive) if over else "",
    )


EXEMPTION_TRIAL: Final = queue.WorkKind(
    name="exemptions",
    about="Past payments as exemption rules would treat them.",
    right=VIEW_PAYMENTS_PERMISSION,
    file_right=EXPORT_PAYMENT_PERMISSION,
    step=replay_exemptions_slice,
)


def _select_trial_payments(asked: Mapping[str, Any]) -> QuerySet[Payment]:
    return select_first_payments(asked, ("PA", "DB")).filter(
        means=Card.kind, means_fingerprint__isnull=False, status__in=(Status.APPROVED, Status.DECLINED)
    )


def _find_challenges(payments: list[Payment]) -> Mapping[UUID, bool]:
    """Payment → whether its shopper passed the challenge; payments without one are not in it."""
    rows = Authentication.objects.filter(
        payment__in=[payment.id for payment in payments], flow__in=("challenge", "decoupled")
    )
    found: dict[UUID, bool] = {}
    for row in rows.only("payment", "trans_status"):
        if row.payment is not None:
            found[row.payment] = found.get(row.payment, False) or row.trans_status == "Y"
    return found


def _replay_payment(
    payment: Payment, rules: ExemptionRules, cursor: dict[str, Any], challenges: Mapping[UUID, bool]
) -> ExemptionDecision | None:
    """What the rules would have asked; moves the count of the payment's card."""
    sent, cards = restore_sent_parameters(payment), cursor["cards"]
    key = bytes(payment.means_fingerprint or b"").hex()
    used = cards.get(key, [0, "0", 0])
    count = CardCount(payments=used[0], amount=Decimal(used[1]), authentications=used[2])
    decision = None
    if _would_be_authenticated(payment, sent) and exempting.is_exemption_possible(payment, sent):
        digits = payment.answer.get("card", {}).get("bin", "")[:MIN_BIN_DIGITS]
        cursor["undecided"] += _has_longer_digits(rules, digits)
        decision = decide_exemption(rules, exempting.build_exemption_facts(payment, sent, digits, count))
    if decision is None and challenges.get(payment.id):
        cards[key] = [0, "0", count.authentications + 1]
    elif decision is not None and decision.is_counted and payment.status == Status.APPROVED:
        assert decision.euros is not None  # it is counted by its amount
        cards[key] = [count.payments + 1, str(count.amount + decision.euros), count.authentications]
    return decision


def _would_be_authenticated(payment: Payment, sent: Mapping[str, str]) -> bool:
    card: Mapping[str, Any] = payment.answer.get("card", {})
    token = "DPAN" in (sent.get("card.numberType"), card.get("numberType"))
    return not token and server.is_authentication_wanted(
        sent,
        proved="threeDSecure.eci" in sent,
        brand=find_network_brand(payment),
        operation=payment.payment_type,
    )


def _has_longer_digits(rules: ExemptionRules, digits: str) -> bool:
    """Whether the rules list leading digits that the card may have, but that are more than are compared."""
    listed = (*rules.corporate_bins, *rules.delegated_bins)
    return any(len(one) > len(digits) and one.startswith(digits) for one in listed)


def _add_to_sums(
    cursor: dict[str, Any], payment: Payment, decision: ExemptionDecision | None, *, challenged: bool
) -> list[Any]:
    """Add to the sums: exemption, currency → [payments, amount, challenges, amount that the issuer answers for now].
    Returns the payment's line of the file, empty for one that would not be exempted."""
    cursor["seen"] += 1
    if decision is None:
        return []
    cursor["asked"] += 1
    liability = resolve_fraud_liability(payment)
    approved = payment.approved_amount if payment.approved_amount is not None else payment.amount
    shifted = approved if liability is FraudLiability.ISSUER else Decimal(0)
    key = f"{decision.exemption}\t{payment.currency}"
    count, amount, challenges, carried = cursor["sums"].get(key, (0, "0", 0, "0"))
    cursor["sums"][key] = [
        count + 1,
        str(Decimal(amount) + payment.amount),
        challenges + challenged,
        str(Decimal(carried) + shifted),
    ]
    return [
        f"{payment.created_at:%Y-%m-%d %H:%M:%S}",
        payment.id.hex,
        payment.payment_type,
        payment.brand,
        payment.amount,
        payment.currency,
        decision.exemption,
        "yes" if challenged else "no",
        liability or "",
        payment.result_code,
    ]


def summarize_exemptions(cursor: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows of the result page, in the order in which exemptions are tried."""
    order = list(Exemption)
    rows = []
    for key, (count, amount, challenges, carried) in cursor.get("sums", {}).items():
        exemption, currency = key.split("\t")
        rows.append(
            {
                "exemption": Exemption(exemption),
                "currency": currency,
                "count": count,
                "amount": Decimal(amount),
                "challenges": challenges,
                "carried": Decimal(carried),
            }
        )
    return sorted(rows, key=lambda row: (order.index(row["exemption"]), row["currency"]))

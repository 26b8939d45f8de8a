"""The facts of a dispute's packet, as the bank reads them: the PDF writes them, and the dispute's page shows them.

The text is English: the reader is a bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from django.utils import translation

from chargebacks.compelling_evidence import EarlierPayment
from chargebacks.dispute_strength import PROOFS, gather_counted
from chargebacks.disputed_orders import choose_order_number
from chargebacks.evidence import list_case_items
from chargebacks.evidence_checklist import describe_reason
from chargebacks.gathered_evidence import RecordedProof
from chargebacks.models import Chargeback
from chargebacks.payment_details import describe_disputed_payment
from chargebacks.stages import DisputeStage, describe_scheme_reason, find_stage_rule
from gateway.core import identifiers
from gateway.core.masking import mask_text
from gateway.core.money import format_amount
from gateway.models import Payment, Status
from gateway.payments.payment_receipts import find_shown_receipt

PacketSection = tuple[str, Sequence[tuple[str, str]]]
"""A heading and its rows of name and value."""
PACKET_LANGUAGE: Final = "en"


def gather_packet_proofs(case: Chargeback, earlier: Sequence[EarlierPayment]) -> list[RecordedProof]:
    """What the gateway can show of what counts for the reason, in the packet's language."""
    with translation.override(PACKET_LANGUAGE):
        return gather_counted(case, earlier)


def list_packet_sections(
    case: Chargeback, disputed: Payment, *, earlier: Sequence[EarlierPayment], proofs: Sequence[RecordedProof]
) -> list[PacketSection]:
    """The sections before the files. ``earlier``: by find_earlier_payments; ``proofs``: by gather_packet_proofs."""
    with translation.override(PACKET_LANGUAGE):
        first = disputed if disputed.chain == disputed.id else Payment.objects.get(pk=disputed.chain)
        sections: list[PacketSection] = [
            ("The chargeback", _list_chargeback_rows(case)),
            ("The payment", _list_payment_rows(case, disputed, first)),
            ("What was known when it was made", describe_disputed_payment(disputed)),
        ]
        if receipts := _list_receipt_rows(first):
            sections.append(("Receipts", receipts))
        if earlier:
            sections.append(
                ("Earlier undisputed payments with the same card", [_render_earlier(one) for one in earlier])
            )
        if rows := [(PROOFS[one.proof][1], one.value) for one in proofs if one.supports]:
            sections.append(("What the gateway recorded", rows))
        return sections


def _list_receipt_rows(first: Payment) -> list[tuple[str, str]]:
    """What the receipt of the payment page said, and the receipts of money (RC) of the chain."""
    shown = find_shown_receipt(first)
    rows = [] if shown is None else [(mask_text(name), mask_text(value)) for name, value in shown.facts]
    if shown is not None:
        mailed = f"; mails that the shopper asked for: {shown.mails}" if shown.mails else ""
        rows.append(("Where", f"on the payment page for 24 hours{mailed}"))
    received = Payment.objects.filter(chain=first.chain, payment_type="RC", status=Status.APPROVED)
    for one in received.order_by("created_at"):
        money = f"{format_amount(one.amount)} {one.currency}"
        rows.append(("Money received", f"{one.created_at:%Y-%m-%d %H:%M} UTC, {money}, {one.id.hex}"))
    return rows


def _render_earlier(one: EarlierPayment) -> tuple[str, str]:
    money = f"{format_amount(one.payment.amount)} {one.payment.currency}"
    shared = ", ".join(one.shared)
    return f"{one.payment.created_at:%Y-%m-%d}", f"{money}, {one.payment.id.hex}; the same {shared}"


def list_checklist_rows(case: Chargeback, proofs: Sequence[RecordedProof]) -> list[tuple[str, str]]:
    """Each item of the checklist, and whether a file or the gateway's own records show it."""
    shown = frozenset(case.evidence.values_list("item", flat=True))
    recorded = frozenset(PROOFS[one.proof][0] for one in proofs if one.supports)
    rows = []
    for item in list_case_items(case):
        state = "there" if item.key in shown else "recorded" if item.key in recorded else "missing"
        rows.append((state, item.text))
    return rows


def _list_chargeback_rows(case: Chargeback) -> list[tuple[str, str]]:
    rows = [
        ("Reason", f"{case.reason_code} {describe_reason(case.reason_code)}"),
        ("Reference", case.reference or "none"),
        ("Stage", DisputeStage(case.stage).label),
        ("Filed as", find_stage_rule(case.brand, case.scheme_reason, case.stage).answer),
        ("Scheme's reason", describe_scheme_reason(case.scheme_reason) or "none"),
        ("Scheme's case", case.scheme_case or "none"),
        ("ARN", case.arn or "none"),
        ("Answer by", f"{case.due_at:%Y-%m-%d %H:%M} UTC"),
    ]
    if case.refunded_before:
        rows.append(("Refunded before", f"{format_amount(case.refunded_before)} {case.currency}"))
    return [
        *rows,
        ("Came", f"{case.opened_at:%Y-%m-%d %H:%M} UTC"),
        ("Our id", case.pk.hex),
        ("State", case.get_state_display()),
    ]


def _list_payment_rows(case: Chargeback, disputed: Payment, first: Payment) -> list[tuple[str, str]]:
    card = disputed.answer.get("card", {}) or first.answer.get("card", {})
    return [
        ("Amount", f"{format_amount(disputed.amount)} {disputed.currency}"),
        ("When", f"{disputed.created_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("Brand", case.brand or disputed.brand),  # the network of a wallet's card
        ("Card", f"ending in {card['last4Digits']}" if card.get("last4Digits") else "none"),
        ("Order", choose_order_number(disputed, first) or "none"),
        ("Invoice", first.merchant_invoice_id or "none"),
        ("Our id", disputed.id.hex),
        ("Short id", identifiers.format_short_id(disputed.number)),
        ("Acquirer's id", disputed.connector_tx_id or first.connector_tx_id or "none"),
    ]

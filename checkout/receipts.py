"""Receipts of the hosted payment page: what they say, and the mails that shoppers have sent to themselves.

A mail is a row that a timer sends, with growing delays while the mail server is away. Only a shopper who has just paid
can ask for one, and only a few times, so that the page is of no use for sending mails to others. Source:
docs/decisions/0083.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final
from zoneinfo import ZoneInfo

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Q

from checkout import session
from checkout.models import Checkout, ReceiptMail
from checkout.parts import find_checkout_id
from gateway.catalogue.endpoints import CREATE_CHECKOUT_ENDPOINT
from gateway.catalogue.nesting import nest_entries
from gateway.core import brands, clock, languages
from gateway.core.identifiers import format_short_id
from gateway.core.local_amounts import format_local_amount
from gateway.core.masking import mask_text
from gateway.db.statement import execute_sql
from gateway.models import Payment, Status
from gateway.payments.held_parts import PARTS_DETAIL, load_earlier_parts
from gateway.payments.payment_receipts import ShownReceipt
from gateway.timers.registry import Timer

RECEIPT_RETENTION: Final = timedelta(hours=24)
"""How long the page shows the receipt to those who have its address."""
MAX_RECEIPT_MAILS: Final = 3
"""Mails of one checkout."""
MAX_RECEIPT_MAIL_TRIES: Final = 12
"""Tries of a receipt's mail: after two minutes, then twice as long each time, six hours at most: more than a day in
all."""
RECEIPT_MAIL_BATCH_SIZE: Final = 100

log = structlog.get_logger(__name__)

_CLAIM: Final = """
WITH due AS MATERIALIZED (
    SELECT id FROM checkout_receiptmail
    WHERE state = 'DUE' AND due_at <= %(now)s AND (lease_until IS NULL OR lease_until <= statement_timestamp())
    ORDER BY due_at, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE checkout_receiptmail r SET
    lease_until = clock_timestamp() + least(interval '2 minutes' * power(2, r.tries), interval '6 hours'),
    tries = r.tries + 1
FROM due WHERE r.id = due.id RETURNING r.id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderLine:
    """One line of the order as the page shows it; ``total``: '' if the merchant sent no price."""

    name: str
    quantity: str
    total: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a receipt says, in the shopper's language: ``facts`` are pairs of label and value."""

    merchant: str
    amount: str
    facts: tuple[tuple[str, str], ...]
    lines: tuple[OrderLine, ...]


def list_order_lines(request: Mapping[str, str], currency: str, language: str) -> tuple[OrderLine, ...]:
    """The lines of a prepared cart that have a name. A line without a total has its price times its quantity."""
    entries = []
    for name, value in request.items():
        if name.startswith("cart.items[") and (found := CREATE_CHECKOUT_ENDPOINT.catalogue.find(name)) is not None:
            row, indexes, key = found
            entries.append((row.path, indexes, key, value))
    items = nest_entries(entries).get("cart", {}).get("items", [])
    return tuple(_build_order_line(item, currency, language) for item in items if item.get("name"))


def _build_order_line(item: Mapping[str, str], currency: str, language: str) -> OrderLine:
    quantity, total = item.get("quantity", "1"), item.get("totalAmount", "")
    if not total and "price" in item:
        total = str((Decimal(item["price"]) * Decimal(quantity)).quantize(Decimal("0.01")))
    shown = format_local_amount(Decimal(total), item.get("currency", currency), language) if total else ""
    return OrderLine(name=mask_text(item["name"]), quantity=f"{Decimal(quantity).normalize():f}", total=shown)


def build_receipt(row: Checkout, payment: Payment, t: Mapping[str, str], language: str) -> Receipt:
    """The receipt of a paid checkout in ``language``, whose texts are ``t``. It shows four digits of a card and none of
    an account. ``payment``: the last one, where the amount was paid in parts."""
    paid = [*load_earlier_parts(payment), payment]
    amounts = [one.amount if one.approved_amount is None else one.approved_amount for one in paid]
    means = [_name_means(one) for one in paid]
    if len(paid) > 1:
        each = [format_local_amount(amount, payment.currency, language) for amount in amounts]
        means = [f"{name}: {amount}" for name, amount in zip(means, each, strict=True)]
    paid_at = (payment.completed_at or payment.created_at).astimezone(ZoneInfo(row.merchant.time_zone))
    facts = (
        (t["merchant"], row.merchant.name),
        (t["date"], f"{paid_at:%Y-%m-%d %H:%M %Z}"),
        *((t["paidWith"], one) for one in means),
        (t["bank.reference"], mask_text(row.request.get("merchantTransactionId", ""))),
        *((t["receiptNumber"], format_short_id(one.number)) for one in paid),
    )
    return Receipt(
        merchant=row.merchant.name,
        amount=format_local_amount(sum(amounts, Decimal(0)), payment.currency, language),
        facts=tuple((label, value) for label, value in facts if value),
        lines=list_order_lines(row.request, payment.currency, language),
    )


def _name_means(payment: Payment) -> str:
    brand = brands.find_brand(payment.brand)
    name = brand.label if brand is not None else payment.brand
    digits = payment.answer.get("card", {}).get("last4Digits", "")
    return f"{name} •••• {digits}" if digits else name


def is_receipt_shown(payment: Payment, now: datetime) -> bool:
    """Whether the page still shows the receipt of an approved payment at ``now``, by the merchant's clock."""
    return payment.completed_at is not None and now < payment.completed_at + RECEIPT_RETENTION


def find_receipt_of_payment(payment: Payment) -> ShownReceipt | None:
    """The receipt that the hosted payment page showed of an approved payment, in English; None for any other one."""
    if payment.status != Status.APPROVED:
        return None
    rows = Checkout.objects.select_related("merchant", "payment").filter(kind=Checkout.Kind.PAYMENT)
    found = Q(payment=payment)
    if PARTS_DETAIL in payment.answer.get("resultDetails", {}):
        found |= Q(pk=find_checkout_id(payment), parts__contains=[payment.pk])
    row = rows.filter(found).first()
    if row is None or row.payment is None or not session.has_payment_page(row):
        return None
    t = languages.load_mail_texts("en")
    receipt = build_receipt(row, row.payment, t, "en")
    lines = tuple((f"{line.quantity} × {line.name}", line.total) for line in receipt.lines)
    mails = row.receipt_mails.filter(state=ReceiptMail.State.SENT).count()
    return ShownReceipt(facts=((t["amount"], receipt.amount), *receipt.facts, *lines), mails=mails)


# --- mails -----------------------------------------------------------------------------------------------------------


def request_receipt_mail(row: Checkout, to: str, language: str) -> bool:
    """Have the receipt of a paid checkout mailed. False if it was mailed often enough."""
    with transaction.atomic():
        Checkout.objects.select_for_update(no_key=True).get(pk=row.pk)  # another tab counts after this one has written
        if ReceiptMail.objects.filter(checkout=row).count() >= MAX_RECEIPT_MAILS:
            return False
        ReceiptMail.objects.create(checkout=row, to=to, language=language, due_at=clock.real_now())
    return True


def send_due_receipt_mails() -> int:
    """Send the mails that are due. Returns how many were sent or given up."""
    due = sorted(ident for (ident,) in execute_sql(_CLAIM, {"now": clock.real_now(), "limit": RECEIPT_MAIL_BATCH_SIZE}))
    rows = ReceiptMail.objects.select_related("checkout__merchant", "checkout__payment").in_bulk(due)
    return sum(_send_receipt_mail(rows[ident]) for ident in due)


def _send_receipt_mail(mail: ReceiptMail) -> bool:
    """Send one mail. True when it needs no further try."""
    mine = ReceiptMail.objects.filter(pk=mail.pk, state=ReceiptMail.State.DUE)
    try:
        payment = mail.checkout.payment
        assert payment is not None  # only a paid checkout has a receipt
        subject, body = compose_receipt_mail(mail.checkout, payment, mail.language)
        named = {"Message-ID": f"<receipt-{mail.pk}-{payment.id.hex}@tollhouse>"}
        EmailMessage(subject, body, settings.GATEWAY_MAIL_FROM, [mail.to], headers=named).send()
    except Exception as fault:  # of the mail server or of this receipt alone: the mail is due again when its lease ends
        over = mail.tries >= MAX_RECEIPT_MAIL_TRIES
        log.warning("receipt_mail_not_sent", mail=mail.pk, tries=mail.tries, over=over, why=type(fault).__name__)
        return over and bool(mine.update(state=ReceiptMail.State.GIVEN_UP, to=""))
    return bool(mine.update(state=ReceiptMail.State.SENT, to=""))


def compose_receipt_mail(row: Checkout, payment: Payment, language: str) -> tuple[str, str]:
    """Subject and text of the mail."""
    t = languages.load_mail_texts(language)
    receipt = build_receipt(row, payment, t, language)
    test = "" if settings.IS_LIVE else "[Test] "
    words = {"merchant": " ".join(receipt.merchant.split()), "amount": receipt.amount}
    facts = [f"{label}: {value}" for label, value in ((t["amount"], receipt.amount), *receipt.facts)]
    lines = [f"{line.quantity} × {line.name}  {line.total}".rstrip() for line in receipt.lines]
    parts = [t["receiptText"].format(**words), "\n".join(facts), "\n".join(lines)]
    return test + t["receiptSubject"].format(**words), "\n\n".join(part for part in parts if part) + "\n"


RECEIPT_MAIL_TIMER: Final = Timer(
    name="receipt mails",
    earliest_due="SELECT min(due_at) FROM checkout_receiptmail WHERE state = 'DUE'",
    run=send_due_receipt_mails,
    every_s=5.0,
    about="Mail receipts to shoppers who asked for them on the hosted payment page.",
)

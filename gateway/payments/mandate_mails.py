"""Mandate e-mails: the written notice of a SEPA direct-debit mandate, due with the first payment under it, and the
pre-notification of each later collection where a bank collects days later.

They name the creditor as the bank's file does, the mandate, the account, the amount and the day. A row is written in
the statement that approves or accepts the payment (gateway.payments.side_effects); a timer sends it, in the shopper's
language, and retries with growing delays while the mail server is unreachable. A worker that dies after the server
accepted the mail sends it twice, with the same Message-ID. Source: Part A, Customer (email: "to send direct-debit
mandates"), Bank account; EPC 016-06, 4.3.4 (pre-notification).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import structlog
from django.conf import settings
from django.core.mail import EmailMessage

from gateway.connectors.sepa.creditor import NOTICE_BY_MAIL
from gateway.connectors.sepa.mandates import build_mandate_id
from gateway.core import clock, languages
from gateway.core.local_amounts import format_local_amount
from gateway.core.mail_address import parse_mail_address
from gateway.db.statement import execute_sql
from gateway.models import BankOrder, MandateMail, Merchant, Payment, Registration, SepaMandate, Status
from gateway.timers.merchant_clocks import bind_run, due_sql, find_earliest
from gateway.timers.registry import MerchantTimer

SEPA_DEBIT_BRAND: Final = "DIRECTDEBIT_SEPA"
COLLECTING_CONNECTOR: Final = "sepa"
"""The connector whose orders a bank collects days after they were accepted."""
BUSINESS_INSTRUMENT: Final = "B2B"
MAX_MANDATE_MAIL_TRIES: Final = 20
"""Tries of a mandate's mail: after two minutes, then twice as long each time, six hours at most: nearly three days in
all."""
MANDATE_MAIL_BATCH_SIZE: Final = 100
_NAME_CHARS: Final = 120

log = structlog.get_logger(__name__)

_CLAIM: Final = f"""
WITH due AS MATERIALIZED (
    SELECT r.payment_id FROM gateway_mandatemail r JOIN gateway_merchant m ON m.id = r.merchant_id
    WHERE r.state = 'DUE' AND {due_sql("r.due_at")}
        AND (r.lease_until IS NULL OR r.lease_until <= statement_timestamp())
    ORDER BY r.due_at, r.payment_id LIMIT %(limit)s FOR UPDATE OF r SKIP LOCKED
)
UPDATE gateway_mandatemail r SET
    lease_until = clock_timestamp() + least(interval '2 minutes' * power(2, r.tries), interval '6 hours'),
    tries = r.tries + 1
FROM due WHERE r.payment_id = due.payment_id
RETURNING r.payment_id"""  # noqa: S608 - a constant


@dataclass(frozen=True, slots=True, kw_only=True)
class MailContent:
    """A mail to send. ``language``: a code of languages.LOCALES."""

    to: str
    language: str
    subject: str
    body: str


def is_mandate_used(payment: Payment, status: Status) -> bool:
    """Whether the move of ``payment`` to ``status`` is the one that uses its mandate: the approval, or, where a bank
    collects days later, the acceptance before it, because the payer must be notified before the debit. A collection
    that is booked after its bank rejected it had its mail before."""
    if payment.connector != COLLECTING_CONNECTOR:
        return status == Status.APPROVED
    return status in (Status.APPROVED, Status.PENDING) and payment.status not in (Status.PENDING, Status.DECLINED)


def build_mandate_mail_row(payment: Payment, at: datetime) -> dict[str, Any] | None:
    """The columns of the MandateMail of ``payment``, whose mandate is used at ``at``; None if no mail is due.

    The mandate of a stored account was mailed when it was stored; that of a repeated instruction when it began: where a
    bank collects, their payments are pre-notified.
    """
    if payment.brand != SEPA_DEBIT_BRAND or payment.referenced is not None:
        return None
    repeated = payment.request.get("standingInstruction", {}).get("mode") == "REPEATED"
    later = payment.registration is not None or repeated
    if (later and payment.connector != COLLECTING_CONNECTOR) or not _get_email(payment):
        return None
    return {
        "payment_id": payment.id,
        "merchant_id": payment.merchant_id,
        "kind": MandateMail.Kind.NOTICE if later else MandateMail.Kind.MANDATE,
        "mandate": resolve_mandate_id(payment),
        "due_at": at,
    }


def resolve_mandate_id(payment: Payment) -> str:
    """The mandate's id: the one the merchant sent, else the payment's id."""
    return str(_get_mandate(payment).get("id") or payment.id.hex.upper())


def send_due_mandate_mails(merchant: Merchant | None = None) -> int:
    """Send the mails that are due, for one merchant or all; returns how many were sent or given up."""
    claimed = execute_sql(_CLAIM, bind_run(merchant, limit=MANDATE_MAIL_BATCH_SIZE))
    due = sorted(ident for (ident,) in claimed)
    rows = MandateMail.objects.select_related("payment__merchant", "payment__channel").in_bulk(due)
    return sum(_send_mandate_mail(rows[ident]) for ident in due)


def find_next_mandate_mail(merchant: Merchant) -> datetime | None:
    """When this merchant's next mail is due, by the merchant's clock."""
    return find_earliest(MandateMail.objects.filter(merchant=merchant, state=MandateMail.State.DUE), "due_at")


TIMER: Final = MerchantTimer(
    name="mandate mails",
    earliest_due="SELECT min(due_at) FROM gateway_mandatemail WHERE state = 'DUE'",
    run=send_due_mandate_mails,
    next_at=find_next_mandate_mail,
    every_s=5.0,
    about="Mail direct-debit mandates to the shoppers who gave them, and notify them of later collections.",
)


def _send_mandate_mail(row: MandateMail) -> bool:
    """Send one mail. True when it needs no further try: sent, a duplicate, or given up."""
    mine = MandateMail.objects.filter(pk=row.pk, state=MandateMail.State.DUE)
    order = _find_order(row.payment)
    if row.kind == MandateMail.Kind.MANDATE and _is_mandate_known(row):
        if order is None:
            return bool(mine.update(state=MandateMail.State.KNOWN))
        row.kind = MandateMail.Kind.NOTICE
        mine.update(kind=row.kind)
    if row.kind == MandateMail.Kind.NOTICE and (order is None or order.notice != NOTICE_BY_MAIL):
        return bool(mine.update(state=MandateMail.State.KNOWN))
    mail = compose_mandate_mail(row)
    to = parse_mail_address(mail.to)
    if not to:
        return bool(mine.update(state=MandateMail.State.GIVEN_UP, failure="customer.email is no e-mail address"))
    try:
        named = {"Message-ID": f"<mandate-{row.pk.hex}@tollhouse>"}
        EmailMessage(mail.subject, mail.body, settings.GATEWAY_MAIL_FROM, [to], headers=named).send()
    except Exception as fault:  # any fault of the mail server: the mail is due again when its lease ends
        over = row.tries >= MAX_MANDATE_MAIL_TRIES
        log.warning("mandate_mail_not_sent", payment=row.pk.hex, tries=row.tries, over=over, why=type(fault).__name__)
        mine.update(
            failure=type(fault).__name__[:200], state=MandateMail.State.GIVEN_UP if over else MandateMail.State.DUE
        )
        return over
    return bool(
        mine.update(
            state=MandateMail.State.SENT,
            sent_at=clock.merchant_now(row.payment.merchant),
            sent_to=mail.to,
            failure="",
            language=mail.language,
            subject=mail.subject,
            body=mail.body,
        )
    )


def _is_mandate_known(row: MandateMail) -> bool:
    """Whether the mandate was mailed before, or is about to be."""
    earlier = MandateMail.objects.filter(merchant_id=row.merchant_id, mandate=row.mandate, pk__lt=row.pk)
    mailed = [MandateMail.State.DUE, MandateMail.State.SENT]
    return earlier.filter(kind=MandateMail.Kind.MANDATE, state__in=mailed).exists()


def compose_mandate_mail(row: MandateMail) -> MailContent:
    """Compose a mail. It shows at most the last four digits of the account."""
    payment = row.payment
    language = _resolve_mail_language(payment)
    t = languages.load_mail_texts(language)
    order = _find_order(payment)
    mandate = order.mandate if order is not None else _find_stored_mandate(payment)
    creditor = ((mandate.creditor_name if mandate is not None else "") or payment.merchant.name)[:_NAME_CHARS]
    amount = format_local_amount(payment.amount, payment.currency, language) if payment.amount > 0 else ""
    due = _resolve_collection_day(payment, order)
    lines = [
        (t["creditor"], creditor),
        (t["creditorId"], mandate.creditor if mandate is not None else ""),
        (t["reference"], mandate.mandate if mandate is not None else resolve_mandate_id(payment)),
        (t["signed"], mandate.signed_on.isoformat() if mandate is not None else _get_signature_day(payment)),
        (t["accountHolder"], order.name if order is not None else _get_account(payment).get("holder", "")),
        (t["iban"], _render_masked_account(payment, order)),
        (t["amount"], amount),
        (t["due"], due if amount else ""),
    ]
    shown = "\n".join(f"{label}: {value}" for label, value in lines if value)
    test = "" if settings.IS_LIVE else "[Test] "
    words = {"merchant": creditor, "amount": amount, "due": due}
    if row.kind == MandateMail.Kind.NOTICE:
        subject, text = t["noticeSubject"], t["noticeText"]
    else:
        business = mandate is not None and mandate.instrument == BUSINESS_INSTRUMENT
        subject, text = t["subject"], t["textB2B" if business else "text"]
    return MailContent(
        to=_get_email(payment),
        language=language,
        subject=test + subject.format(**words),
        body=f"{text.format(**words)}\n\n{shown}\n",
    )


def _find_order(payment: Payment) -> BankOrder | None:
    """The collection of a payment at a bank; None where none collects."""
    return BankOrder.objects.select_related("mandate").filter(pk=payment.pk).first()


def _find_stored_mandate(payment: Payment) -> SepaMandate | None:
    """The mandate that a stored account was given with; None where no bank collects."""
    if payment.connector != COLLECTING_CONNECTOR:
        return None
    name = build_mandate_id(resolve_mandate_id(payment))
    return SepaMandate.objects.filter(merchant=payment.merchant_id, mandate=name).order_by("-id").first()


def _resolve_collection_day(payment: Payment, order: BankOrder | None) -> str:
    if order is not None and order.due_on is not None:
        return order.due_on.isoformat()
    return str(payment.request.get("transactionDueDate") or _get_payment_day(payment).isoformat())


def render_mandate_mail(row: MandateMail) -> dict[str, Any]:
    """A mail for GET /v1/test/mails: as it was sent, or, if it was not yet, as it would be."""
    sent = row.state == MandateMail.State.SENT
    mail = compose_mandate_mail(row)
    return {
        "kind": row.kind,
        "state": row.state,
        "mandate": row.mandate,
        "to": row.sent_to if sent else mail.to,
        "language": row.language if sent else mail.language,
        "subject": row.subject if sent else mail.subject,
        "text": row.body if sent else mail.body,
        "tries": row.tries,
        "failure": row.failure or None,
        "at": clock.format_timestamp(row.sent_at) if row.sent_at is not None else None,
    }


def _get_email(payment: Payment) -> str:
    """The shopper's address: as sent, else as stored with the account that the payment is made with."""
    sent = payment.request.get("customer", {}).get("email", "")
    if sent or payment.registration is None or payment.brand != SEPA_DEBIT_BRAND:
        return str(sent)
    stored = Registration.objects.filter(pk=payment.registration).values_list("request", "payment").first()
    if stored is None:
        return ""
    made = Payment.objects.filter(pk=stored[1]).values_list("request", flat=True).first()
    found = (request.get("customer", {}).get("email", "") for request in (stored[0], made or {}))
    return str(next((one for one in found if one), ""))


def _resolve_mail_language(payment: Payment) -> str:
    """The shopper's language (customer.language), else the request's locale, else English."""
    sent = (payment.request.get("customer", {}).get("language", ""), payment.request.get("locale", ""))
    return next((code for text in sent if (code := languages.resolve_language(str(text)))), languages.DEFAULT_LANGUAGE)


def _get_account(payment: Payment) -> Mapping[str, Any]:
    found: Mapping[str, Any] = payment.request.get("bankAccount", {})
    return found


def _get_mandate(payment: Payment) -> Mapping[str, Any]:
    found: Mapping[str, Any] = _get_account(payment).get("mandate", {})
    return found


def _get_signature_day(payment: Payment) -> str:
    return str(_get_mandate(payment).get("dateOfSignature") or _get_payment_day(payment).isoformat())


def _render_masked_account(payment: Payment, order: BankOrder | None) -> str:
    """The country and the last four characters of the account; nothing stores more of it in clear text."""
    account = _get_account(payment)
    shown = order.iban_shown if order is not None else ""
    last = shown[-4:] or str(account.get("iban") or account.get("number") or "")[-4:]
    country = shown[:2] or str(account.get("country", ""))
    return f"{country} •••• {last}".strip() if last else ""


def _get_payment_day(payment: Payment) -> date:
    """The date of the payment in the merchant's time zone."""
    return payment.created_at.astimezone(ZoneInfo(payment.merchant.time_zone)).date()

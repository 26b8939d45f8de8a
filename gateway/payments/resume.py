"""Payments that wait for their shopper: the way back into the line, and the end when nobody comes.

Whoever speaks for a waiting payment moves it by compare-and-set: two tabs, the back button and a double click make one
payment. At the deadline (the merchant's clock) whoever the shopper was sent to is asked for the last time, and only
their word, or our own authentication's, declines the payment. Source: decisions, section 5; Part A, States.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlsplit, urlunsplit
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models import Min
from django.utils.encoding import iri_to_uri

from gateway import clock
from gateway.connectors.accounts import account_at
from gateway.connectors.message import flat
from gateway.connectors.port import AcquirerReply, AcquirerRequest, Connector, NeverArrived, Silence
from gateway.connectors.routing import CONNECTORS
from gateway.masking import mask_text
from gateway.models import Merchant, Payment, Status, Step, Suspension
from gateway.payments import capability, screening, store
from gateway.payments.means import means_of_payment, with_secrets
from gateway.payments.operations import is_taken_out
from gateway.payments.process import AGREED, event_of, question, submit
from gateway.payments.request import Idempotency, Trace
from gateway.payments.states import Event, ImpossibleMove
from gateway.payments.values import merged
from gateway.rows import execute
from gateway.secret import Secret
from gateway.threeds import authentications, server
from gateway.threeds.outcome import Outcome, Proceed, Rejected
from gateway.vault import VaultError, vault

TIMED_OUT: Final = "100.396.103"
"""A bank or wallet that never heard the shopper's yes, and took the order back."""
CANCELLED: Final = "100.396.101"
"""The shopper went another way."""
NOT_AUTHENTICATED: Final = "100.380.501"
AT_ONCE: Final = 100
OVERDUE_AGAIN: Final = timedelta(days=1)
"""Until a payment is looked at again whose bank has not spoken in time, and alone can."""

log = structlog.get_logger(__name__)

# The clock is the merchant's, so the row's deadline is compared with that merchant's time; the first condition uses
# the index, with the offset that is furthest ahead.
_CLAIM: Final = """
WITH due AS MATERIALIZED (
    SELECT s.payment_id FROM gateway_suspension s
    JOIN gateway_payment p ON p.id = s.payment_id JOIN gateway_merchant m ON m.id = p.merchant_id
    WHERE s.deadline <= %(now)s + (SELECT greatest(max(clock_offset), interval '0') FROM gateway_merchant)
      AND s.deadline <= %(now)s + m.clock_offset AND (s.lease_until IS NULL OR s.lease_until <= %(now)s)
      AND (%(merchant)s::uuid IS NULL OR m.id = %(merchant)s::uuid)
    ORDER BY s.deadline LIMIT %(limit)s FOR UPDATE OF s SKIP LOCKED
)
UPDATE gateway_suspension s SET lease_until = %(lease)s FROM due WHERE s.payment_id = due.payment_id
RETURNING s.payment_id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Returning:
    """Who asks on behalf of the payment: its merchant, and the request that the shopper's browser made, if one did."""

    merchant: Merchant
    trace: Trace | None
    idempotency: Idempotency | None = None


def find(payment: UUID | None, token: str) -> Payment | None:
    """The payment whose shopper shows ``token``; None for one that does not exist, or another's token."""
    if payment is None or not capability.opens(payment, token):
        return None
    return Payment.objects.select_related("merchant", "channel").filter(pk=payment).first()


def authenticated(payment: Payment, proof: Mapping[str, str | Secret], trace: Trace | None) -> Payment:
    """The shopper authenticated: ask the acquirer, with ``proof`` as ``threeDSecure.*`` parameters.

    Returns the payment as it then stands; somebody else who was faster has asked already.
    """
    if payment.status != Status.PENDING:
        return payment
    waiting = Suspension.objects.filter(pk=payment.pk, stage=Suspension.Stage.AUTHENTICATE).first()
    if waiting is None:
        return _again(payment)
    held = vault().open(waiting.secrets_sealed, payment.id) if waiting.secrets_sealed is not None else None
    means = with_secrets(means_of_payment(payment), held)
    asker = Returning(merchant=payment.merchant, trace=trace)
    sent = flat(payment.request)
    plan = screening.plan_of_waiting(payment, sent)
    if not store.resume(payment, at=clock.now(payment.merchant), plan=plan):
        return _again(payment)
    connector = CONNECTORS[payment.connector]
    asked = question(payment, means, {**sent, **payment.answer.get(AGREED, {}), **proof})
    submit(payment, connector, asked, asker, plan=plan)
    return payment


def take_on(payment: Payment, outcome: Outcome, trace: Trace | None) -> Payment:
    """Do what an authentication has come to: ask the acquirer, decline, or go on waiting."""
    match outcome:
        case Proceed(proof=proof, facts=facts):
            payment.answer["facts"] = merged(payment.answer.get("facts", {}), facts)
            return authenticated(payment, proof, trace)
        case Rejected(code=code, facts=facts):
            return refused(payment, code, trace, facts)
    return payment


def confirm_due(*, limit: int = AT_ONCE, now: datetime | None = None, merchant: Merchant | None = None) -> int:
    """Decoupled authentications whose cardholder has answered, and authentications alone that ran out of time; how
    many have their result now. ``merchant``: of this one alone."""
    ended = 0
    for row in authentications.due(now or clock.real(), limit, merchant):
        try:
            outcome = server.decoupled_answered(row.id) if row.step == Step.DECOUPLED else server.timed_out(row.id)
            if row.payment is not None:
                take_on(Payment.objects.select_related("merchant", "channel").get(pk=row.payment), outcome, None)
            ended += 1
        except Exception:  # one authentication must not keep the others waiting; it is due again
            log.exception("authentication_failed", authentication=row.id.hex)
    return ended


def refused(payment: Payment, code: str, trace: Trace | None, facts: Mapping[str, Any] | None = None) -> Payment:
    """The shopper did not authenticate: the payment is declined with ``code``; its acquirer was never asked."""
    if payment.status != Status.PENDING:
        return payment
    reply = AcquirerReply(code=code, facts=facts or {})
    plan = screening.plan_of_waiting(payment, flat(payment.request))
    at = clock.now(payment.merchant)
    try:
        store.complete(payment, Event.DECLINE, reply, at=at, duration_ms=0, trace=trace, plan=plan)
    except ImpossibleMove:
        return _again(payment)
    return payment


def returned(payment: Payment, trace: Trace | None) -> Payment:
    """The shopper is back from elsewhere: ask the connector how it went. Still open there, or silent: still PENDING."""
    if payment.status != Status.PENDING:
        return payment
    connector = CONNECTORS[payment.connector]
    started = time.perf_counter()
    try:
        found = connector.inquire(_asking(payment, connector))
    except Silence as silence:
        return _keep(payment, "inquire", silence.sent, {"silence": mask_text(str(silence))}, started)
    if isinstance(found, NeverArrived) or event_of(found) is Event.SUSPEND:
        return _keep(payment, "inquire", found.sent, found.received, started)
    return _answered(payment, found, "inquire", started, trace)


def next_deadline(merchant: Merchant) -> datetime | None:
    """When the next of this merchant's waiting payments ends without its shopper, by the merchant's clock."""
    waiting = Suspension.objects.filter(payment__merchant=merchant)
    found: datetime | None = waiting.aggregate(first=Min("deadline"))["first"]
    return found


def expire_due(*, limit: int = AT_ONCE, now: datetime | None = None, merchant: Merchant | None = None) -> int:
    """End the payments whose deadline has passed, at most ``limit``; how many have their final answer now.
    ``merchant``: of this one alone."""
    ended = 0
    for payment in claim(limit, now or clock.real(), merchant):
        try:
            ended += _expire(payment)
        except Exception:  # one payment must not keep the others waiting; its lease runs out and it is due again
            log.exception("expiry_failed", payment=payment.id.hex)
    return ended


def claim(limit: int, now: datetime, merchant: Merchant | None = None) -> list[Payment]:
    """The waiting payments whose deadline has passed, each for one claimer until its lease runs out."""
    lease = now + timedelta(seconds=2 * settings.GATEWAY_ACQUIRER_TIMEOUT_S) + store.GRACE
    values = {"now": now, "limit": limit, "lease": lease, "merchant": merchant.pk if merchant is not None else None}
    claimed: list[UUID] = [row[0] for row in execute(_CLAIM, values)]
    if not claimed:
        return []
    waiting = Payment.objects.filter(pk__in=claimed, status=Status.PENDING)
    return list(waiting.select_related("merchant", "channel", "suspension").order_by("id"))


def _expire(payment: Payment) -> bool:
    if payment.suspension.stage == Suspension.Stage.AUTHENTICATE:
        # Our own 3DS server is the evidence: it closes what is open, and never reported an authentication.
        row = authentications.of_payment(payment.id)
        if row is None:
            return refused(payment, NOT_AUTHENTICATED, None).status == Status.DECLINED
        return take_on(payment, server.timed_out(row.id), None).status != Status.PENDING
    return _taken_back(payment, TIMED_OUT, None).status != Status.PENDING


def withdraw(payment: Payment, trace: Trace | None) -> Payment:
    """The shopper gave this way up for another one: end the waiting payment, on the word of whoever they were sent to.

    An authentication that did not happen ends it at once. A bank or wallet is asked first: what it accepted meanwhile
    counts, and what it did not is taken back there. Without its word the payment is still PENDING.
    """
    if payment.status != Status.PENDING:
        return payment
    waiting = Suspension.objects.filter(pk=payment.pk).first()
    if waiting is None:
        return _again(payment)
    if waiting.stage == Suspension.Stage.AUTHENTICATE:
        return refused(payment, CANCELLED, trace)
    return _taken_back(payment, CANCELLED, trace)


def _taken_back(payment: Payment, code: str, trace: Trace | None) -> Payment:
    """Ask a bank or wallet for the last time; what is still open there is taken back and declined with ``code``."""
    payment = returned(payment, trace)
    if payment.status != Status.PENDING:
        return payment
    connector: Connector = CONNECTORS[payment.connector]
    started = time.perf_counter()
    try:
        word = connector.void(_asking(payment, connector))
    except Silence as silence:
        if is_taken_out(payment):
            # Its file or batch is with the bank, and its books know no more than they did: another day.
            again = clock.now(payment.merchant) + OVERDUE_AGAIN
            Suspension.objects.filter(pk=payment.pk).update(deadline=again, lease_until=None)
        return _keep(payment, "void", silence.sent, {"silence": mask_text(str(silence))}, started)
    reply = AcquirerReply(
        code=code, connector_tx_id=word.connector_tx_id, details=word.details, sent=word.sent,
        received=word.received,
    )  # fmt: skip
    return _answered(payment, reply, "void", started, trace)


def _asking(payment: Payment, connector: Connector) -> AcquirerRequest:
    """The question about a payment whose shopper is elsewhere. Raises Silence when the account's secrets do not open:
    nobody can be asked."""
    try:
        account = account_at(connector, payment.channel_id, payment.account)
    except VaultError as fault:
        log.error("account_does_not_open", payment=payment.id.hex, why=str(fault))
        raise Silence("the account's secrets do not open", {}) from None
    return replace(question(payment, None, {}), account=account)


def _answered(payment: Payment, reply: AcquirerReply, kind: str, started: float, trace: Trace | None) -> Payment:
    took = int((time.perf_counter() - started) * 1000)
    at = clock.now(payment.merchant)
    try:
        store.complete(payment, event_of(reply), reply, at=at, duration_ms=took, trace=trace, kind=kind)
    except ImpossibleMove:
        return _again(payment)
    return payment


def _keep(payment: Payment, kind: str, sent: Mapping[str, Any], received: Mapping[str, Any], started: float) -> Payment:
    took = int((time.perf_counter() - started) * 1000)
    store.keep(payment, kind, sent, received, at=clock.now(payment.merchant), duration_ms=took)
    return payment


def _again(payment: Payment) -> Payment:
    """The payment as somebody else left it."""
    return Payment.objects.select_related("merchant", "channel").get(pk=payment.pk)


def resource_path(payment: Payment) -> str:
    """Where the merchant fetches the result."""
    return payment.resource_path or f"/v1/payments/{payment.id.hex}"


def result_url(payment: Payment) -> str | None:
    """``shopperResultUrl?id=…&resourcePath=…``, its own query kept; None when the merchant sent none. ``id`` is the one
    in the path: the checkout's where there is one."""
    url: str = payment.request.get("shopperResultUrl", "")
    return back_to(url, resource_path(payment)) if url else None


def back_to(url: str, path: str) -> str:
    """The merchant's address with the id and where the result is fetched, in the characters that a header can carry:
    a name in another script as IDNA, anything else percent-encoded."""
    parts = urlsplit(url)
    told = f"id={path.split('/')[3]}&resourcePath={quote(path, safe='')}"
    netloc = parts.netloc
    if parts.scheme in ("http", "https") and not netloc.isascii():
        user, at, host = netloc.rpartition("@")
        netloc = f"{user}{at}{host.encode('idna').decode()}"
    query = f"{parts.query}&{told}" if parts.query else told
    return iri_to_uri(urlunsplit(parts._replace(netloc=netloc, query=query)))

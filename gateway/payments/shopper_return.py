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

from gateway.connectors.accounts import load_connector_account
from gateway.connectors.acquirer_message import flatten_body
from gateway.connectors.port import AcquirerReply, AcquirerRequest, Connector, NotFoundAtAcquirer, OutcomeUnknownError
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock
from gateway.core.masking import mask_text
from gateway.core.secret import Secret
from gateway.db.statement import execute_sql
from gateway.models import AuthenticationStep, Merchant, Payment, Status, Suspension
from gateway.payments import risk_screening, shopper_tokens, store
from gateway.payments.nested_values import deep_merge
from gateway.payments.operations import is_locally_queued
from gateway.payments.payment_means import load_payment_means, restore_one_time_secrets
from gateway.payments.payment_request import IdempotencyContext, RequestTrace
from gateway.payments.process import AGREEMENT_REFERENCES_KEY, build_acquirer_request, event_from_reply, submit_payment
from gateway.payments.states import LifecycleEvent, PaymentTransitionError
from gateway.threeds import authentications, server
from gateway.threeds.outcome import AuthenticationOutcome, AuthenticationPassed, AuthenticationRejected
from gateway.vault.sealing import VaultError, current_vault

SHOPPER_TIMEOUT_CODE: Final = "100.396.103"
"""A bank or wallet that never heard the shopper's yes, and took the order back."""
SHOPPER_CANCELLED_CODE: Final = "100.396.101"
"""The shopper went another way."""
NOT_AUTHENTICATED_CODE: Final = "100.380.501"
SUSPENSION_BATCH_SIZE: Final = 100
OVERDUE_RETRY_DELAY: Final = timedelta(days=1)
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
class ShopperReturnOrigin:
    """Who asks on behalf of the payment: its merchant, and the request that the shopper's browser made, if one did."""

    merchant: Merchant
    trace: RequestTrace | None
    idempotency: IdempotencyContext | None = None


def find_payment_by_token(payment: UUID | None, token: str) -> Payment | None:
    """The payment whose shopper shows ``token``; None for one that does not exist, or another's token."""
    if payment is None or not shopper_tokens.is_shopper_token(payment, token):
        return None
    return Payment.objects.select_related("merchant", "channel").filter(pk=payment).first()


def resume_authenticated_payment(
    payment: Payment, proof: Mapping[str, str | Secret], trace: RequestTrace | None
) -> Payment:
    """The shopper authenticated: ask the acquirer, with ``proof`` as ``threeDSecure.*`` parameters.

    Returns the payment as it then stands; somebody else who was faster has asked already.
    """
    if payment.status != Status.PENDING:
        return payment
    waiting = Suspension.objects.filter(pk=payment.pk, stage=Suspension.Stage.AUTHENTICATE).first()
    if waiting is None:
        return _reload_payment(payment)
    held = current_vault().open(waiting.secrets_sealed, payment.id) if waiting.secrets_sealed is not None else None
    means = restore_one_time_secrets(load_payment_means(payment), held)
    origin = ShopperReturnOrigin(merchant=payment.merchant, trace=trace)
    sent = flatten_body(payment.request)
    plan = risk_screening.plan_resumed_screening(payment, sent)
    if not store.resume_payment(payment, at=clock.merchant_now(payment.merchant), plan=plan):
        return _reload_payment(payment)
    connector = CONNECTORS[payment.connector]
    asked = build_acquirer_request(
        payment, means, {**sent, **payment.answer.get(AGREEMENT_REFERENCES_KEY, {}), **proof}
    )
    submit_payment(payment, connector, asked, origin, plan=plan)
    return payment


def apply_authentication_outcome(
    payment: Payment, outcome: AuthenticationOutcome, trace: RequestTrace | None
) -> Payment:
    """Do what an authentication has come to: ask the acquirer, decline, or go on waiting."""
    match outcome:
        case AuthenticationPassed(proof=proof, facts=facts):
            payment.answer["facts"] = deep_merge(payment.answer.get("facts", {}), facts)
            return resume_authenticated_payment(payment, proof, trace)
        case AuthenticationRejected(code=code, facts=facts):
            return decline_unauthenticated_payment(payment, code, trace, facts)
    return payment


def complete_due_authentications(
    *, limit: int = SUSPENSION_BATCH_SIZE, now: datetime | None = None, merchant: Merchant | None = None
) -> int:
    """Decoupled authentications whose cardholder has answered, and authentications alone that ran out of time; how
    many have their result now. ``merchant``: of this one alone."""
    ended = 0
    for row in authentications.list_due_authentications(now or clock.real_now(), limit, merchant):
        try:
            outcome = (
                server.complete_decoupled(row.id)
                if row.step == AuthenticationStep.DECOUPLED
                else server.expire_authentication(row.id)
            )
            if row.payment is not None:
                apply_authentication_outcome(
                    Payment.objects.select_related("merchant", "channel").get(pk=row.payment), outcome, None
                )
            ended += 1
        except Exception:  # one authentication must not keep the others waiting; it is due again
            log.exception("authentication_failed", authentication=row.id.hex)
    return ended


def decline_unauthenticated_payment(
    payment: Payment, code: str, trace: RequestTrace | None, facts: Mapping[str, Any] | None = None
) -> Payment:
    """The shopper did not authenticate: the payment is declined with ``code``; its acquirer was never asked."""
    if payment.status != Status.PENDING:
        return payment
    reply = AcquirerReply(code=code, facts=facts or {})
    plan = risk_screening.plan_resumed_screening(payment, flatten_body(payment.request))
    at = clock.merchant_now(payment.merchant)
    try:
        store.complete_payment(payment, LifecycleEvent.DECLINE, reply, at=at, duration_ms=0, trace=trace, plan=plan)
    except PaymentTransitionError:
        return _reload_payment(payment)
    return payment


def complete_shopper_return(payment: Payment, trace: RequestTrace | None) -> Payment:
    """The shopper is back from elsewhere: ask the connector how it went. Still open there, or silent: still PENDING."""
    if payment.status != Status.PENDING:
        return payment
    connector = CONNECTORS[payment.connector]
    started = time.perf_counter()
    try:
        found = connector.inquire(_build_return_inquiry(payment, connector))
    except OutcomeUnknownError as silence:
        return _record_return_exchange(payment, "inquire", silence.sent, {"silence": mask_text(str(silence))}, started)
    if isinstance(found, NotFoundAtAcquirer) or event_from_reply(found) is LifecycleEvent.SUSPEND:
        return _record_return_exchange(payment, "inquire", found.sent, found.received, started)
    return _complete_by_reply(payment, found, "inquire", started, trace)


def find_next_suspension_deadline(merchant: Merchant) -> datetime | None:
    """When the next of this merchant's waiting payments ends without its shopper, by the merchant's clock."""
    waiting = Suspension.objects.filter(payment__merchant=merchant)
    found: datetime | None = waiting.aggregate(first=Min("deadline"))["first"]
    return found


def expire_due_suspensions(
    *, limit: int = SUSPENSION_BATCH_SIZE, now: datetime | None = None, merchant: Merchant | None = None
) -> int:
    """End the payments whose deadline has passed, at most ``limit``; how many have their final answer now.
    ``merchant``: of this one alone."""
    ended = 0
    for payment in claim_due_suspensions(limit, now or clock.real_now(), merchant):
        try:
            ended += _expire_payment(payment)
        except Exception:  # one payment must not keep the others waiting; its lease runs out and it is due again
            log.exception("expiry_failed", payment=payment.id.hex)
    return ended


def claim_due_suspensions(limit: int, now: datetime, merchant: Merchant | None = None) -> list[Payment]:
    """The waiting payments whose deadline has passed, each for one claimer until its lease runs out."""
    lease = now + timedelta(seconds=2 * settings.GATEWAY_ACQUIRER_TIMEOUT_S) + store.ANSWER_GRACE
    values = {"now": now, "limit": limit, "lease": lease, "merchant": merchant.pk if merchant is not None else None}
    claimed: list[UUID] = [row[0] for row in execute_sql(_CLAIM, values)]
    if not claimed:
        return []
    waiting = Payment.objects.filter(pk__in=claimed, status=Status.PENDING)
    return list(waiting.select_related("merchant", "channel", "suspension").order_by("id"))


def _expire_payment(payment: Payment) -> bool:
    if payment.suspension.stage == Suspension.Stage.AUTHENTICATE:
        # Our own 3DS server is the evidence: it closes what is open, and never reported an authentication.
        row = authentications.find_authentication_of_payment(payment.id)
        if row is None:
            return decline_unauthenticated_payment(payment, NOT_AUTHENTICATED_CODE, None).status == Status.DECLINED
        return (
            apply_authentication_outcome(payment, server.expire_authentication(row.id), None).status != Status.PENDING
        )
    return _void_abandoned_order(payment, SHOPPER_TIMEOUT_CODE, None).status != Status.PENDING


def withdraw_payment(payment: Payment, trace: RequestTrace | None) -> Payment:
    """The shopper gave this way up for another one: end the waiting payment, on the word of whoever they were sent to.

    An authentication that did not happen ends it at once. A bank or wallet is asked first: what it accepted meanwhile
    counts, and what it did not is taken back there. Without its word the payment is still PENDING.
    """
    if payment.status != Status.PENDING:
        return payment
    waiting = Suspension.objects.filter(pk=payment.pk).first()
    if waiting is None:
        return _reload_payment(payment)
    if waiting.stage == Suspension.Stage.AUTHENTICATE:
        return decline_unauthenticated_payment(payment, SHOPPER_CANCELLED_CODE, trace)
    return _void_abandoned_order(payment, SHOPPER_CANCELLED_CODE, trace)


def _void_abandoned_order(payment: Payment, code: str, trace: RequestTrace | None) -> Payment:
    """Ask a bank or wallet for the last time; what is still open there is taken back and declined with ``code``."""
    payment = complete_shopper_return(payment, trace)
    if payment.status != Status.PENDING:
        return payment
    connector: Connector = CONNECTORS[payment.connector]
    started = time.perf_counter()
    try:
        word = connector.void(_build_return_inquiry(payment, connector))
    except OutcomeUnknownError as silence:
        if is_locally_queued(payment):
            # Its file or batch is with the bank, and its books know no more than they did: another day.
            again = clock.merchant_now(payment.merchant) + OVERDUE_RETRY_DELAY
            Suspension.objects.filter(pk=payment.pk).update(deadline=again, lease_until=None)
        return _record_return_exchange(payment, "void", silence.sent, {"silence": mask_text(str(silence))}, started)
    reply = AcquirerReply(
        code=code,
        connector_tx_id=word.connector_tx_id,
        details=word.details,
        sent=word.sent,
        received=word.received,
    )
    return _complete_by_reply(payment, reply, "void", started, trace)


def _build_return_inquiry(payment: Payment, connector: Connector) -> AcquirerRequest:
    """The question about a payment whose shopper is elsewhere. Raises OutcomeUnknownError when the account's secrets do
    not open: nobody can be asked."""
    try:
        account = load_connector_account(connector, payment.channel_id, payment.account)
    except VaultError as fault:
        log.error("account_does_not_open", payment=payment.id.hex, why=str(fault))
        raise OutcomeUnknownError("the account's secrets do not open", {}) from None
    return replace(build_acquirer_request(payment, None, {}), account=account)


def _complete_by_reply(
    payment: Payment, reply: AcquirerReply, kind: str, started: float, trace: RequestTrace | None
) -> Payment:
    took = int((time.perf_counter() - started) * 1000)
    at = clock.merchant_now(payment.merchant)
    try:
        store.complete_payment(payment, event_from_reply(reply), reply, at=at, duration_ms=took, trace=trace, kind=kind)
    except PaymentTransitionError:
        return _reload_payment(payment)
    return payment


def _record_return_exchange(
    payment: Payment, kind: str, sent: Mapping[str, Any], received: Mapping[str, Any], started: float
) -> Payment:
    took = int((time.perf_counter() - started) * 1000)
    store.record_exchange(payment, kind, sent, received, at=clock.merchant_now(payment.merchant), duration_ms=took)
    return payment


def _reload_payment(payment: Payment) -> Payment:
    """The payment as somebody else left it."""
    return Payment.objects.select_related("merchant", "channel").get(pk=payment.pk)


def build_resource_path(payment: Payment) -> str:
    """Where the merchant fetches the result."""
    return payment.resource_path or f"/v1/payments/{payment.id.hex}"


def build_result_url(payment: Payment) -> str | None:
    """``shopperResultUrl?id=…&resourcePath=…``, its own query kept; None when the merchant sent none. ``id`` is the one
    in the path: the checkout's where there is one."""
    url: str = payment.request.get("shopperResultUrl", "")
    return build_shopper_return_url(url, build_resource_path(payment)) if url else None


def build_shopper_return_url(url: str, path: str) -> str:
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

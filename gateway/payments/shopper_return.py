"""Suspended payments: resumes them when the shopper returns, and ends them at their deadline.

Every move is a compare-and-set, so two tabs, the back button or a double click make one payment. At the deadline (the
merchant's clock) the bank or wallet is inquired at for the last time; only its answer, or that of our own 3-D Secure
server, declines the payment. Source: decisions, section 5; Part A, States.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final
from urllib.parse import quote, urlsplit, urlunsplit
from uuid import UUID

import structlog
from django.conf import settings
from django.utils.encoding import iri_to_uri

from gateway.connectors.accounts import load_connector_account
from gateway.connectors.acquirer_message import flatten_body
from gateway.connectors.port import AcquirerReply, AcquirerRequest, Connector, NotFoundAtAcquirer, OutcomeUnknownError
from gateway.connectors.reply_codes import SOFT_DECLINE
from gateway.connectors.routing import CONNECTORS
from gateway.core import clock
from gateway.core.result_codes import NOT_AUTHENTICATED_CODE, SHOPPER_CANCELLED_CODE, SHOPPER_TIMEOUT_CODE
from gateway.core.secret import Secret
from gateway.db.statement import execute_sql
from gateway.models import Authentication, AuthenticationStep, Merchant, Payment, Status, Suspension
from gateway.payments import exempting, risk_screening, shopper_tokens, step_up, store
from gateway.payments.held_parts import PART_EXPIRY, is_held
from gateway.payments.operation_table import is_locally_queued
from gateway.payments.outcomes import AuthenticationProof, Declined, describe_silence, outcome_from_reply, resolve_event
from gateway.payments.payment_means import load_payment_means, restore_one_time_secrets, restore_party_accounts
from gateway.payments.payment_request import IdempotencyContext, RequestTrace
from gateway.payments.process import build_acquirer_request, complete_unless_recovered, submit_with_step_up
from gateway.payments.states import LifecycleEvent, PaymentTransitionError
from gateway.payments.stored_answer import merge_shown_facts, read_private_facts
from gateway.threeds import authentications, server
from gateway.threeds.outcome import (
    AuthenticationOutcome,
    AuthenticationPassed,
    AuthenticationPending,
    AuthenticationRejected,
)
from gateway.timers.merchant_clocks import bind_run, due_sql, find_earliest
from gateway.timers.registry import MerchantTimer
from gateway.vault.sealing import VaultError, current_vault

SUSPENSION_BATCH_SIZE: Final = 100
MAX_SERVER_S: Final = 5.0
"""Seconds that one run asks an external 3-D Secure server for results. A server that hangs keeps its other
authentications waiting for the next run, and not those of other servers."""
OVERDUE_RETRY_DELAY: Final = timedelta(days=1)
"""Delay until an overdue payment in a bank file or batch is tried again: only the bank can end it."""

log = structlog.get_logger(__name__)

# Deadlines are in the merchant's clock, so each row is compared with its merchant's time; the first condition uses the
# index, with the merchant clock that is furthest ahead.
_CLAIM: Final = f"""
WITH due AS MATERIALIZED (
    SELECT s.payment_id FROM gateway_suspension s
    JOIN gateway_payment p ON p.id = s.payment_id JOIN gateway_merchant m ON m.id = p.merchant_id
    WHERE {due_sql("s.deadline")} AND (s.lease_until IS NULL OR s.lease_until <= statement_timestamp())
    ORDER BY s.deadline LIMIT %(limit)s FOR UPDATE OF s SKIP LOCKED
)
UPDATE gateway_suspension s SET lease_until = clock_timestamp() + %(lease)s::interval
FROM due WHERE s.payment_id = due.payment_id RETURNING s.payment_id
"""  # noqa: S608 - a constant


@dataclass(frozen=True, slots=True, kw_only=True)
class ShopperReturnOrigin:
    """The RequestOrigin of a resumed payment. ``trace``: the shopper's browser request, None for a timer."""

    merchant: Merchant
    trace: RequestTrace | None
    idempotency: IdempotencyContext | None = None


def find_payment_by_token(payment: UUID | None, token: str) -> Payment | None:
    """The payment that the shopper token belongs to; None for an unknown payment or a wrong token."""
    if payment is None or not shopper_tokens.is_shopper_token(payment, token):
        return None
    return Payment.objects.select_related("merchant", "channel").filter(pk=payment).first()


def resume_authenticated_payment(
    payment: Payment, proof: Mapping[str, str | Secret], trace: RequestTrace | None
) -> Payment:
    """Resume a payment after authentication and submit it, with ``proof`` as ``threeDSecure.*`` parameters.

    Returns the payment with its result; if another request resumed it first, as that one left it.
    """
    if payment.status != Status.PENDING:
        return payment
    waiting = Suspension.objects.filter(pk=payment.pk, stage=Suspension.Stage.AUTHENTICATE).first()
    if waiting is None:
        return _reload_payment(payment)
    vault = current_vault()
    secrets = vault.open(waiting.secrets_sealed, payment.id) if waiting.secrets_sealed is not None else None
    means = restore_one_time_secrets(load_payment_means(payment), secrets)
    origin = ShopperReturnOrigin(merchant=payment.merchant, trace=trace)
    sent = flatten_body(payment.request)
    plan = risk_screening.plan_resumed_screening(payment, sent)
    if not store.resume_payment(payment, at=clock.merchant_now(payment.merchant), plan=plan):
        return _reload_payment(payment)
    references = read_private_facts(payment.answer).agreement_references
    values: Mapping[str, str | Secret] = {
        **sent,
        **exempting.list_asked_parameters(payment),
        **restore_party_accounts(secrets),
        **references,
    }
    connector = CONNECTORS[payment.connector]
    outcome = submit_with_step_up(
        payment, connector, means, values, AuthenticationProof(parameters=proof), origin, plan
    )
    complete_unless_recovered(payment, outcome, origin, plan=plan)
    return payment


def apply_authentication_outcome(
    payment: Payment, outcome: AuthenticationOutcome, trace: RequestTrace | None
) -> Payment:
    """Continue a payment by its authentication outcome: submit it, decline it, or leave it PENDING.

    The outcome of an authentication before a step-up does not continue the payment that waits for the second one.
    """
    if isinstance(outcome, AuthenticationPending):
        if outcome.step == AuthenticationStep.DECOUPLED:  # it may have more time than its method page had
            later = Suspension.objects.filter(pk=payment.pk, stage=Suspension.Stage.AUTHENTICATE)
            later.filter(deadline__lt=outcome.deadline).update(deadline=outcome.deadline)
        return payment
    if outcome.attempt != read_private_facts(payment.answer).attempt:
        payment = _reload_payment(payment)
        if outcome.attempt != read_private_facts(payment.answer).attempt:
            return payment
    match outcome:
        case AuthenticationPassed(proof=proof, facts=facts):
            if outcome.attempt >= step_up.STEP_UP_ATTEMPT and not step_up.is_fully_authenticated(proof):
                # The issuer has said what it does without: it is not asked again.
                return decline_unauthenticated_payment(payment, SOFT_DECLINE, trace, facts)
            payment.answer = merge_shown_facts(payment.answer, facts)
            return resume_authenticated_payment(payment, proof, trace)
        case AuthenticationRejected(code=code, facts=facts):
            return decline_unauthenticated_payment(payment, code, trace, facts)


def complete_due_authentications(
    merchant: Merchant | None = None, *, limit: int = SUSPENSION_BATCH_SIZE, now: datetime | None = None
) -> int:
    """Complete decoupled authentications whose cardholder has answered, standalone ones past their deadline and those
    of ended payments, of one merchant or all; returns how many were completed."""
    ended = 0
    now = now or clock.real_now()
    asking = AskingTime()
    for row in authentications.list_due_authentications(now, limit, merchant):
        try:
            payment = None
            if row.payment is not None:
                payment = Payment.objects.select_related("merchant", "channel").get(pk=row.payment)
            outcome: AuthenticationOutcome | None
            if authentications.has_cardholder_answered(row, now):
                outcome = server.complete_decoupled(row.id)
            elif payment is not None and payment.status in (Status.APPROVED, Status.DECLINED):
                outcome = server.expire_authentication(row.id, is_wanted=False)
            else:
                outcome = asking.expire(row)
            if outcome is None:
                continue
            if payment is not None:
                apply_authentication_outcome(payment, outcome, None)
            ended += 1
        except Exception:  # one authentication must not stop the others; it is due again
            log.exception("authentication_expiry_failed", authentication=row.id.hex)
    return ended


class AskingTime:
    """How long one run has asked each external 3-D Secure server for results (MAX_SERVER_S)."""

    def __init__(self) -> None:
        self._taken: defaultdict[str, float] = defaultdict(float)

    def expire(self, row: Authentication) -> AuthenticationOutcome | None:
        """Expire an authentication; None where its server has had its time: it is due again."""
        if self._taken[row.server_url] >= MAX_SERVER_S:
            return None
        began = time.monotonic()
        try:
            return server.expire_authentication(row.id)
        finally:
            if row.server_url:
                self._taken[row.server_url] += time.monotonic() - began


def decline_unauthenticated_payment(
    payment: Payment, code: str, trace: RequestTrace | None, facts: Mapping[str, Any] | None = None
) -> Payment:
    """Decline a payment whose shopper did not authenticate, with ``code``; its acquirer was never called, or declined
    for want of it."""
    if payment.status != Status.PENDING or is_held(payment):
        return payment
    reply = AcquirerReply(code=code, facts=facts or {})
    plan = risk_screening.plan_resumed_screening(payment, flatten_body(payment.request))
    outcome = Declined(reply=reply, at=clock.merchant_now(payment.merchant))
    try:
        store.complete_payment(payment, outcome, trace=trace, plan=plan)
    except PaymentTransitionError:
        return _reload_payment(payment)
    return payment


def complete_shopper_return(payment: Payment, trace: RequestTrace | None) -> Payment:
    """Inquire at the bank or wallet after the shopper returned, and complete the payment by the answer. If the order is
    still open there, or there is no answer, the payment stays PENDING."""
    if payment.status != Status.PENDING or is_held(payment):
        return payment
    connector = CONNECTORS[payment.connector]
    started = time.perf_counter()
    try:
        found = connector.inquire(_build_return_inquiry(payment, connector))
    except OutcomeUnknownError as unknown:
        return _record_return_exchange(payment, "inquire", unknown.sent, describe_silence(unknown), started)
    if isinstance(found, NotFoundAtAcquirer) or resolve_event(found) is LifecycleEvent.SUSPEND:
        return _record_return_exchange(payment, "inquire", found.sent, found.received, started)
    return _complete_by_reply(payment, found, "inquire", started, trace)


def find_next_suspension_deadline(merchant: Merchant) -> datetime | None:
    """The earliest deadline of this merchant's suspended payments, by the merchant's clock; None without any."""
    return find_earliest(Suspension.objects.filter(payment__merchant=merchant), "deadline")


def expire_due_suspensions(
    merchant: Merchant | None = None, *, limit: int = SUSPENSION_BATCH_SIZE, now: datetime | None = None
) -> int:
    """End at most ``limit`` payments whose deadline has passed, of one merchant or all; returns how many are final."""
    ended = 0
    asking = AskingTime()
    for payment in claim_due_suspensions(limit, now or clock.real_now(), merchant):
        try:
            ended += _expire_payment(payment, asking)
        except Exception:  # one payment must not stop the others; its lease runs out and it is due again
            log.exception("suspension_expiry_failed", payment=payment.id.hex)
    return ended


def claim_due_suspensions(limit: int, now: datetime, merchant: Merchant | None = None) -> list[Payment]:
    """Claim suspended payments whose deadline has passed at ``now`` (real time), by a lease."""
    lease = timedelta(seconds=2 * settings.GATEWAY_ACQUIRER_TIMEOUT_S) + store.ANSWER_GRACE
    claimed = [row[0] for row in execute_sql(_CLAIM, bind_run(merchant, now=now, limit=limit, lease=lease))]
    if not claimed:
        return []
    waiting = Payment.objects.filter(pk__in=claimed, status=Status.PENDING)
    return list(waiting.select_related("merchant", "channel", "suspension").order_by("id"))


def _expire_payment(payment: Payment, asking: AskingTime) -> bool:
    if payment.suspension.stage == Suspension.Stage.PART:
        return PART_EXPIRY.get()(payment)
    if payment.suspension.stage == Suspension.Stage.AUTHENTICATE:
        # Our own 3-D Secure server is the evidence: it closes an open authentication that never succeeded.
        row = authentications.find_authentication_of_payment(payment.id)
        if row is None:
            return decline_unauthenticated_payment(payment, NOT_AUTHENTICATED_CODE, None).status == Status.DECLINED
        now = clock.merchant_now(payment.merchant)
        if row.step == AuthenticationStep.DECOUPLED and row.deadline is not None and row.deadline > now:
            # A worker died between the longer time of the authentication and the payment's.
            Suspension.objects.filter(pk=payment.pk).update(deadline=row.deadline, lease_until=None)
            return False
        outcome = asking.expire(row)
        if outcome is None:
            return False  # due again when its lease runs out, so that others are claimed before it
        return apply_authentication_outcome(payment, outcome, None).status != Status.PENDING
    return _void_abandoned_order(payment, SHOPPER_TIMEOUT_CODE, None).status != Status.PENDING


def withdraw_payment(payment: Payment, trace: RequestTrace | None) -> Payment:
    """End a suspended payment that the shopper gave up for another one.

    One that waits for authentication is declined at once. At a bank or wallet it is inquired about first: an approval
    there counts, an open order is voided there. Without a confirmed void the payment stays PENDING. One that holds a
    part is not given up so.
    """
    if payment.status != Status.PENDING or is_held(payment):
        return payment
    waiting = Suspension.objects.filter(pk=payment.pk).first()
    if waiting is None:
        return _reload_payment(payment)
    if waiting.stage == Suspension.Stage.AUTHENTICATE:
        return decline_unauthenticated_payment(payment, SHOPPER_CANCELLED_CODE, trace)
    return _void_abandoned_order(payment, SHOPPER_CANCELLED_CODE, trace)


def _void_abandoned_order(payment: Payment, code: str, trace: RequestTrace | None) -> Payment:
    """Inquire at a bank or wallet for the last time; void an order still open there and decline with ``code``."""
    payment = complete_shopper_return(payment, trace)
    if payment.status != Status.PENDING:
        return payment
    connector: Connector = CONNECTORS[payment.connector]
    started = time.perf_counter()
    try:
        voided = connector.void(_build_return_inquiry(payment, connector))
    except OutcomeUnknownError as unknown:
        if is_locally_queued(payment):
            # Its file or batch is at the bank and cannot be withdrawn any more: try again later.
            again = clock.merchant_now(payment.merchant) + OVERDUE_RETRY_DELAY
            Suspension.objects.filter(pk=payment.pk).update(deadline=again, lease_until=None)
        return _record_return_exchange(payment, "void", unknown.sent, describe_silence(unknown), started)
    reply = AcquirerReply(
        code=code,
        connector_tx_id=voided.connector_tx_id,
        details=voided.details,
        sent=voided.sent,
        received=voided.received,
    )
    return _complete_by_reply(payment, reply, "void", started, trace)


def _build_return_inquiry(payment: Payment, connector: Connector) -> AcquirerRequest:
    """The acquirer request for an inquiry about a redirected payment. Raises OutcomeUnknownError when the account's
    secrets do not open, because no inquiry is possible then."""
    try:
        account = load_connector_account(connector, payment.channel_id, payment.acquirer_merchant_id)
    except VaultError as fault:
        log.error("acquirer_secrets_unreadable", payment=payment.id.hex, why=str(fault))
        raise OutcomeUnknownError("the account's secrets do not open", {}) from None
    return replace(build_acquirer_request(payment, None, {}), account=account)


def _complete_by_reply(
    payment: Payment, reply: AcquirerReply, kind: str, started: float, trace: RequestTrace | None
) -> Payment:
    duration_ms = int((time.perf_counter() - started) * 1000)
    outcome = outcome_from_reply(reply, at=clock.merchant_now(payment.merchant), duration_ms=duration_ms)
    try:
        store.complete_payment(payment, outcome, trace=trace, kind=kind)
    except PaymentTransitionError:
        return _reload_payment(payment)
    return payment


def _record_return_exchange(
    payment: Payment, kind: str, sent: Mapping[str, Any], received: Mapping[str, Any], started: float
) -> Payment:
    duration_ms = int((time.perf_counter() - started) * 1000)
    at = clock.merchant_now(payment.merchant)
    store.record_exchange(payment, kind, sent, received, at=at, duration_ms=duration_ms)
    return payment


def _reload_payment(payment: Payment) -> Payment:
    """The payment as another worker or request left it."""
    return Payment.objects.select_related("merchant", "channel").get(pk=payment.pk)


def build_resource_path(payment: Payment) -> str:
    """The API path at which the merchant fetches the result."""
    return payment.resource_path or f"/v1/payments/{payment.id.hex}"


def build_result_url(payment: Payment) -> str | None:
    """``shopperResultUrl?id=…&resourcePath=…`` with its own query preserved; None when the merchant sent none. ``id``
    is the one in the resource path: the checkout's id for a payment of a checkout."""
    url: str = payment.request.get("shopperResultUrl", "")
    return build_shopper_return_url(url, build_resource_path(payment)) if url else None


def build_shopper_return_url(url: str, path: str) -> str:
    """The merchant's ``url`` with id and resourcePath added, in ASCII as a Location header needs it: host names as
    IDNA, everything else percent-encoded."""
    parts = urlsplit(url)
    added = f"id={path.split('/')[3]}&resourcePath={quote(path, safe='')}"
    netloc = parts.netloc
    if parts.scheme in ("http", "https") and not netloc.isascii():
        user, at, host = netloc.rpartition("@")
        netloc = f"{user}{at}{host.encode('idna').decode()}"
    query = f"{parts.query}&{added}" if parts.query else added
    return iri_to_uri(urlunsplit(parts._replace(netloc=netloc, query=query)))


TIMERS: Final = (
    MerchantTimer(
        name="shopper deadlines",
        run=expire_due_suspensions,
        next_at=find_next_suspension_deadline,
        about="End payments whose shopper never came back, as the page they were sent to answers.",
        earliest_due="SELECT min(deadline) FROM gateway_suspension",
    ),
    MerchantTimer(
        name="authentications",
        run=complete_due_authentications,
        next_at=authentications.next_authentication_due,
        about="Decoupled 3-D Secure answers, authentications alone that ran out of time, and those of ended payments.",
        earliest_due=authentications.EARLIEST_DUE_AUTHENTICATION,
    ),
)

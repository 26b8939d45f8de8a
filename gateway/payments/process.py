"""The straight line of a payment: begin → screen → authenticate → submit → complete.

Every door (the API, one-click payments, and later checkouts, jobs, the back office) builds a request and calls
``process_payment``. A shopper who has to be sent away leaves the line at ``wait``, and comes back to it in
gateway.payments.shopper_return.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction

from gateway import metrics
from gateway.catalogue.errors import INVALID_PARAMETER_CODE, ParameterError
from gateway.connectors.accounts import load_connector_account
from gateway.connectors.acquirer_message import CRYPTOGRAM_PARAMETER, forwardable_parameters
from gateway.connectors.circuit import ACQUIRER_UNREACHABLE
from gateway.connectors.means import Card, Means
from gateway.connectors.null_connector import NO_ACQUIRER
from gateway.connectors.port import AcquirerReply, AcquirerRequest, Connector, OutcomeUnknownError
from gateway.connectors.routing import NoRouteError, Route, route_payment
from gateway.connectors.routing_rules import ROUTING_BIN_DIGITS, RoutingFacts
from gateway.core import brands, clock, result_codes
from gateway.core.masking import mask_text
from gateway.core.secret import Secret
from gateway.models import OpenPayment, Payment, Status, Suspension
from gateway.payments import (
    failover,
    refusal,
    risk_screening,
    search_keys,
    shopper_authentication,
    shopper_tokens,
    store,
)
from gateway.payments.agreements import find_agreement_violation, has_agreement_limits, reload_agreement_use
from gateway.payments.descriptors import apply_descriptor, build_descriptor_parameter, resolve_default_descriptor
from gateway.payments.nested_values import deep_merge
from gateway.payments.payment_means import pack_one_time_secrets
from gateway.payments.payment_request import PaymentRequest, RequestOrigin
from gateway.payments.risk_screening import STANDALONE_RISK_CHECK_TYPE, ScreeningPlan
from gateway.payments.shopper_authentication import PaymentStop
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE
from gateway.payments.states import LifecycleEvent, PaymentTransitionError
from gateway.risk.evaluation import RiskOutcome
from gateway.vault.sealing import VaultError, current_vault

MAX_AGREEMENT_TRIES: Final = 100
"""How often a payment reads its agreement again; each try lost means that another one won."""
CONCURRENT_UPDATE_CODE: Final = "800.120.402"
OUTCOME_UNKNOWN_CODE: Final = "000.200.001"
AWAITING_SHOPPER_CODE: Final = "000.200.000"
DUPLICATE_PAYMENT_CODE: Final = "800.110.100"
AGREEMENT_REFERENCES_KEY: Final = "agreed"
"""In a payment's answer, for ourselves: references of its agreement that go onwards once its shopper is back."""

log = structlog.get_logger(__name__)


class ConcurrentPaymentUpdateError(Exception):
    """The door's own guard, or an agreement's count beside it, no longer held when the payment was to begin: nothing
    was written."""


def process_payment(request: PaymentRequest) -> Payment:
    """Make one first payment and return it as it then stands.

    Raises Refused when none is made (a means or mode that is not set up), and ConcurrentPaymentUpdateError.
    """
    chosen_route = resolve_route(request)
    plan = risk_screening.plan_screening(request)
    payment = begin_payment(request, chosen_route, plan)
    if payment.status == Status.STARTED:
        advance_payment(payment, chosen_route.connector, request, plan)
    return payment


def resolve_route(request: PaymentRequest) -> Route:
    """The connector and account of a first payment; a standalone risk check asks nobody. Raises Refused."""
    if request.payment_type == STANDALONE_RISK_CHECK_TYPE:
        return Route(connector=NO_ACQUIRER)
    # A registration moves no money: whoever takes the brand takes it.
    currency = "" if request.payment_type == REGISTRATION_PAYMENT_TYPE else request.money.currency
    try:
        return route_payment(request.test_mode, request.channel.id, _build_routing_facts(request, currency))
    except NoRouteError as nobody:
        log.info("no_route", channel=request.channel.id.hex, brand=request.brand, why=str(nobody))
        if nobody.missing:
            wanted = "is required: the acquirer that takes this payment wants it"
            errors = [ParameterError(name=name, message=wanted) for name in nobody.missing]
            raise refusal.RequestRefusedError(INVALID_PARAMETER_CODE, errors) from None
        raise refusal.RequestRefusedError(refusal.MODE_NOT_CONFIGURED_CODE) from None


def _build_routing_facts(request: PaymentRequest, currency: str) -> RoutingFacts:
    """What routing looks at."""
    means, values = request.means, request.parameters.values
    return RoutingFacts(
        brand=request.brand,
        currency=currency,
        payment=request.payment,
        amount=request.money.amount,
        country=values.get("billing.country", ""),
        payment_type=request.payment_type,
        means=means.kind if means is not None else "",
        digits=means.number.reveal()[:ROUTING_BIN_DIGITS] if isinstance(means, Card) else "",
        sent=frozenset(request.parameters.names),
    )


def begin_payment(request: PaymentRequest, chosen_route: Route, plan: ScreeningPlan) -> Payment:
    """The payment, begun or refused. Under an agreement with limits it is decided anew when somebody else drew on the
    agreement meanwhile."""
    agreement_use, refusals = request.agreement_use, request.parameters.refusals
    # A check takes no money: the token may still pay.
    token = request.wallet_token if request.payment_type != STANDALONE_RISK_CHECK_TYPE else None
    starting = partial(
        store.insert_payment,
        trace=request.trace,
        idempotency=request.idempotency,
        wallet_token=token,
        extra_writes=request.extra_writes,
    )
    for _ in range(MAX_AGREEMENT_TRIES):
        if (
            not refusals
            and (error := find_agreement_violation(agreement_use, request.merchant, request.now)) is not None
        ):
            request.parameters.refusals = (error,)
        payment = build_payment(request, chosen_route)
        code = request.parameters.refusals[0].code if request.parameters.refusals else ""
        agreement = agreement_use.agreement if agreement_use is not None and agreement_use.counts and not code else None
        payment.agreement = agreement.id if agreement is not None else None
        parent = agreement if agreement is not None and has_agreement_limits(agreement) else None
        try:
            if starting(payment, refusal=code, parent=parent, plan=plan):
                return payment
        except store.DuplicatePaymentError:
            payment.duplicate_guard, payment.agreement = None, None
            if starting(payment, refusal=DUPLICATE_PAYMENT_CODE):
                return payment
        if request.extra_writes is not None and not request.row_locked:
            raise ConcurrentPaymentUpdateError
        assert agreement_use is not None  # only an agreement can have moved on
        agreement_use = reload_agreement_use(agreement_use)
    raise refusal.RequestRefusedError(CONCURRENT_UPDATE_CODE)


def advance_payment(payment: Payment, connector: Connector, request: PaymentRequest, plan: ScreeningPlan) -> None:
    """Screen, authenticate and submit a payment that has begun; stop where a phase says so."""
    values: dict[str, str | Secret] = {**request.parameters.values, **request.parameters.secrets}
    agreed = request.agreement_use.scheme_references if request.agreement_use is not None else {}
    payment_stop = risk_screening.screen_payment(payment, request, plan)
    if payment_stop is None and payment.payment_type == STANDALONE_RISK_CHECK_TYPE:
        _complete_or_record(payment, LifecycleEvent.APPROVE, build_risk_check_reply(payment), request, duration_ms=0)
        return
    if payment_stop is None:
        outcome = shopper_authentication.authenticate_payment(payment, request)
        if not isinstance(outcome, PaymentStop):
            asked = build_acquirer_request(payment, request.means, {**values, **agreed, **outcome})
            submit_payment(payment, connector, asked, request, plan=plan)
            return
        payment_stop = outcome
    if payment_stop.deadline is not None and agreed:
        payment.answer[AGREEMENT_REFERENCES_KEY] = dict(agreed)
    stop_payment(payment, payment_stop, request, request.means)


def build_risk_check_reply(payment: Payment) -> AcquirerReply:
    """The answer of a standalone risk check that nothing speaks against (D18)."""
    return AcquirerReply(code=result_codes.SUCCESS_CODES[payment.test_mode], approved=payment.money)


def build_payment(request: PaymentRequest, chosen_route: Route) -> Payment:
    """The row of a first payment. The account is sealed only when it will be used: a refused one keeps no number."""
    parameters, means = request.parameters, request.means
    email = parameters.get("customer.email")
    sealed = fingerprint = account_key = None
    answer: dict[str, object] = {}
    if means is not None:
        keys = current_vault()
        fingerprint = keys.fingerprint(means.account)
        account_key = search_keys.build_account_key(request.merchant.id, means.account)
        if not parameters.refusals:
            sealed = keys.seal(means.account, request.payment)
        unsent = request.registration is not None or request.wallet_token is not None
        answer |= deep_merge(render_means_facts(means, stored=unsent), request.stored)
    if request.detected:
        answer["brandResult"] = request.brand
    # A stored means is charged nothing, and what is said of it later is said by the payments.
    chosen = request.channel.descriptor if request.payment_type != REGISTRATION_PAYMENT_TYPE else None
    own = resolve_default_descriptor(request.channel, request.merchant)
    echo, default = apply_descriptor(parameters.echo(), chosen=chosen, otherwise=own)
    return Payment(
        id=request.payment,
        merchant_id=request.merchant.id,
        channel=request.channel,
        chain=request.payment,
        referenced=None,
        payment_type=request.payment_type,
        brand=request.brand,
        method=brands.PAYMENT_BRANDS[request.brand].method,
        amount=request.money.amount,
        currency=request.money.currency,
        test_mode=request.test_mode,
        merchant_transaction_id=parameters.get("merchantTransactionId") or "",
        duplicate_guard=_duplicate_guard(request),
        merchant_invoice_id=parameters.get("merchantInvoiceId") or "",
        merchant_memo=parameters.get("merchantMemo") or "",
        request=echo,
        answer=answer | default,
        means=means.kind if means is not None else "",
        means_sealed=sealed,
        means_fingerprint=fingerprint,
        email_key=search_keys.build_email_key(request.merchant.id, email) if email else None,
        account_key=account_key,
        registration=request.registration,
        connector=chosen_route.connector.name,
        account=chosen_route.account,
        route=dict(chosen_route.told) if chosen_route.told is not None else None,
        resource_path=request.resource_path,
        max_captures=int(captures) if (captures := parameters.get("numberOfCaptures")) else None,
        final=parameters.get("sequence") == "FINAL",
        request_id=request.trace.request,
        created_at=request.now,
    )


def _duplicate_guard(request: PaymentRequest) -> str | None:
    if not request.channel.refuse_duplicates or request.allow_duplicate:
        return None
    return request.parameters.get("merchantTransactionId")


def render_means_facts(means: Means, *, stored: bool) -> dict[str, object]:
    """What the answer tells of a means beyond the echo. ``stored``: it was not sent, so there is no echo of it."""
    if not isinstance(means, Card):
        return {}
    facts = {"bin": means.facts.bin6, "last4Digits": means.facts.last4}
    if stored:
        more = {
            "holder": means.holder,
            "expiryMonth": means.expiry_month,
            "expiryYear": means.expiry_year,
            "numberType": means.number_type,
        }
        facts |= {name: value for name, value in more.items() if value}
    return {"card": facts}


def build_acquirer_request(
    payment: Payment, means: Means | None, values: Mapping[str, str | Secret]
) -> AcquirerRequest:
    """What the acquirer is asked; the account is added by who asks (``submit_payment``), since its secrets may not
    open. ``values``: parameters by full name, with the proof of an authentication."""
    cryptogram = values.get(CRYPTOGRAM_PARAMETER)
    return AcquirerRequest(
        payment=payment.id,
        operation=payment.payment_type,
        money=payment.money,
        brand=payment.brand,
        at=payment.created_at,
        means=means,
        parameters=forwardable_parameters({**values, **build_descriptor_parameter(payment)}),
        return_url=shopper_tokens.build_return_url(payment.id),
        cryptogram=cryptogram if isinstance(cryptogram, Secret) else None,
    )


def submit_payment(
    payment: Payment,
    connector: Connector,
    asked: AcquirerRequest,
    origin: RequestOrigin,
    *,
    plan: ScreeningPlan | None = None,
) -> None:
    """Ask the connector, with no transaction open, and complete the payment by its answer or its silence.

    A first payment that certainly was not accepted is taken to the next acquirer of its route. An approval that the
    payment's rule set refuses for its AVS or CVV answer is taken back at once, by whoever gave it.
    """
    first = time.perf_counter()
    while True:
        started = time.perf_counter()
        reply, event = _submit_to_acquirer(payment, connector, asked)
        took = time.perf_counter() - started
        metrics.observe_acquirer_answer(connector.name, "elsewhere" if reply.retryable_elsewhere else event, took)
        if not reply.retryable_elsewhere:
            break
        at = clock.merchant_now(origin.merchant)
        found = failover.next_route(payment, reply, since=first, at=at, duration_ms=int(took * 1000))
        if found is None:
            break
        connector = found
    _complete_or_record(payment, event, reply, origin, duration_ms=int(took * 1000), plan=plan)


def _submit_to_acquirer(
    payment: Payment, connector: Connector, asked: AcquirerRequest
) -> tuple[AcquirerReply, LifecycleEvent]:
    """One acquirer's answer, or its silence. An account whose secrets do not open is out of reach: nothing was sent."""
    try:
        asked = replace(asked, account=load_connector_account(connector, payment.channel_id, payment.account))
    except VaultError as fault:
        log.error("account_does_not_open", payment=payment.id.hex, why=str(fault))
        reply = AcquirerReply(
            code=ACQUIRER_UNREACHABLE, received={"secrets": "they do not open"}, retryable_elsewhere=True
        )
        return reply, LifecycleEvent.DECLINE
    try:
        reply = connector.submit(asked)
        verdict = risk_screening.evaluate_approval(payment, reply)
        if verdict.outcome is RiskOutcome.DECLINE:
            reply = risk_screening.void_refused_approval(connector, asked, reply, verdict)
    except OutcomeUnknownError as silence:
        reply = AcquirerReply(
            code=OUTCOME_UNKNOWN_CODE,
            sent=silence.sent,
            received={"silence": mask_text(str(silence))},
            connector_tx_id=silence.connector_tx_id,
        )
        return reply, LifecycleEvent.LOSE
    return reply, event_from_reply(reply)


def stop_payment(payment: Payment, payment_stop: PaymentStop, origin: RequestOrigin, means: Means | None) -> None:
    """Leave the line: declined by a phase of our own, or waiting for the shopper to authenticate."""
    if payment_stop.deadline is None:
        _complete_or_record(
            payment,
            LifecycleEvent.DECLINE,
            AcquirerReply(code=payment_stop.code, facts=payment_stop.facts),
            origin,
            duration_ms=0,
        )
        return
    reply = AcquirerReply(code=AWAITING_SHOPPER_CODE, facts=payment_stop.facts, redirect=payment_stop.redirect)
    secrets = pack_one_time_secrets(means)
    waiting = {
        "stage": Suspension.Stage.AUTHENTICATE,
        "deadline": payment_stop.deadline,
        "secrets_sealed": current_vault().seal(secrets, payment.id) if secrets is not None else None,
    }
    _complete_or_record(payment, LifecycleEvent.SUSPEND, reply, origin, duration_ms=0, waiting=waiting)


def _complete_or_record(
    payment: Payment,
    event: LifecycleEvent,
    reply: AcquirerReply,
    origin: RequestOrigin,
    *,
    duration_ms: int,
    waiting: Mapping[str, object] | None = None,
    plan: ScreeningPlan | None = None,
) -> None:
    """Complete the payment. If recovery was faster, what it found out is the truth; while it still asks, this is."""
    now = clock.merchant_now(origin.merchant)
    completing = partial(
        store.complete_payment,
        payment,
        event,
        reply,
        at=now,
        duration_ms=duration_ms,
        trace=origin.trace,
        idempotency=origin.idempotency,
        waiting=waiting or build_suspension(event, reply, now),
        plan=plan,
    )
    try:
        completing()
    except PaymentTransitionError:
        payment.refresh_from_db()
        if _complete_during_recovery(payment, event, completing):
            return
    else:
        return
    store.record_exchange(
        payment, "submit", reply.sent, reply.received, at=now, duration_ms=duration_ms, trace=origin.trace
    )


def _complete_during_recovery(payment: Payment, event: LifecycleEvent, completing: Callable[[], None]) -> bool:
    """Complete a payment that recovery asks about, unless it has begun to take it back: a void that is on its way would
    undo what we say now. Whoever of the two writes first decides: recovery marks the row that is held here."""
    with transaction.atomic():
        # In the order in which a payment's end writes them.
        Payment.objects.select_for_update().only("id").get(pk=payment.pk)
        asked = OpenPayment.objects.select_for_update().filter(pk=payment.pk).first()
        if asked is not None and asked.taken_back and event is not LifecycleEvent.DECLINE:
            return False
        try:
            completing()
        except PaymentTransitionError:
            payment.refresh_from_db()
            return False
    return True


def build_suspension(event: LifecycleEvent, reply: AcquirerReply, now: datetime) -> Mapping[str, object] | None:
    """How long a pending answer is waited for: half an hour for a shopper, weeks for a bank, or as long as the
    connector says. None: nothing waits."""
    if event is not LifecycleEvent.SUSPEND:
        return None
    away = reply.redirect is not None
    within = timedelta(seconds=settings.GATEWAY_SHOPPER_DEADLINE_S if away else settings.GATEWAY_TRANSFER_DEADLINE_S)
    return {"stage": Suspension.Stage.ELSEWHERE, "deadline": max(now + within, reply.pending_until or now)}


def event_from_reply(reply: AcquirerReply) -> LifecycleEvent:
    """What an acquirer's answer does to a payment, by the family of its code."""
    if result_codes.is_approved(reply.code) or (result_codes.is_chargeback(reply.code) and reply.approved is not None):
        return LifecycleEvent.APPROVE
    return LifecycleEvent.SUSPEND if result_codes.is_pending(reply.code) else LifecycleEvent.DECLINE

"""The straight line of a payment: begin → screen → authenticate → submit → complete.

Every door (the API, one-click payments, and later checkouts, jobs, the back office) builds a request and calls
``process``. A shopper who has to be sent away leaves the line at ``wait``, and comes back to it in
gateway.payments.resume.
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

from gateway import brands, clock, metrics, results
from gateway.catalogue.errors import INVALID, ParameterError
from gateway.connectors.accounts import account_at
from gateway.connectors.guarded import OUT_OF_REACH
from gateway.connectors.means import Card, Means
from gateway.connectors.message import CRYPTOGRAM, onwards
from gateway.connectors.nobody import NOBODY
from gateway.connectors.port import AcquirerReply, AcquirerRequest, Connector, Silence
from gateway.connectors.routing import NoRoute, Route, route
from gateway.connectors.rules import BIN_DIGITS, Facts
from gateway.masking import mask_text
from gateway.models import OpenPayment, Payment, Status, Suspension
from gateway.payments import capability, failover, finding, phases, refusal, screening, store
from gateway.payments.agreements import again, is_limited, refusal_of
from gateway.payments.descriptors import described, onwards_of, own_descriptor
from gateway.payments.endings import REGISTER
from gateway.payments.means import one_time_secrets
from gateway.payments.phases import Halt
from gateway.payments.request import Asker, PaymentRequest
from gateway.payments.screening import RISK_CHECK, Plan
from gateway.payments.states import Event, ImpossibleMove
from gateway.payments.values import merged
from gateway.risk.screening import Outcome
from gateway.secret import Secret
from gateway.vault import VaultError, vault

MAX_TRIES: Final = 100
"""How often a payment reads its agreement again; each try lost means that another one won."""
BUSY: Final = "800.120.402"
IN_DOUBT_CODE: Final = "000.200.001"
WAITING_CODE: Final = "000.200.000"
SENT_TWICE: Final = "800.110.100"
AGREED: Final = "agreed"
"""In a payment's answer, for ourselves: references of its agreement that go onwards once its shopper is back."""

log = structlog.get_logger(__name__)


class Overtaken(Exception):
    """The door's own guard, or an agreement's count beside it, no longer held when the payment was to begin: nothing
    was written."""


def process(request: PaymentRequest) -> Payment:
    """Make one first payment and return it as it then stands.

    Raises Refused when none is made (a means or mode that is not set up), and Overtaken.
    """
    way = way_of(request)
    plan = screening.plan(request)
    payment = begin(request, way, plan)
    if payment.status == Status.STARTED:
        advance(payment, way.connector, request, plan)
    return payment


def way_of(request: PaymentRequest) -> Route:
    """The connector and account of a first payment; a standalone risk check asks nobody. Raises Refused."""
    if request.payment_type == RISK_CHECK:
        return Route(connector=NOBODY)
    # A registration moves no money: whoever takes the brand takes it.
    currency = "" if request.payment_type == REGISTER else request.money.currency
    try:
        return route(request.test_mode, request.channel.id, _facts(request, currency))
    except NoRoute as nobody:
        log.info("no_route", channel=request.channel.id.hex, brand=request.brand, why=str(nobody))
        if nobody.lacking:
            wanted = "is required: the acquirer that takes this payment wants it"
            errors = [ParameterError(name=name, message=wanted) for name in nobody.lacking]
            raise refusal.Refused(INVALID, errors) from None
        raise refusal.Refused(refusal.MODE_NOT_SET_UP) from None


def _facts(request: PaymentRequest, currency: str) -> Facts:
    """What routing looks at."""
    means, values = request.means, request.parameters.values
    return Facts(
        brand=request.brand, currency=currency, payment=request.payment, amount=request.money.amount,
        country=values.get("billing.country", ""), payment_type=request.payment_type,
        means=means.kind if means is not None else "",
        digits=means.number.reveal()[:BIN_DIGITS] if isinstance(means, Card) else "",
        sent=frozenset(request.parameters.names),
    )  # fmt: skip


def begin(request: PaymentRequest, way: Route, plan: Plan) -> Payment:
    """The payment, begun or refused. Under an agreement with limits it is decided anew when somebody else drew on the
    agreement meanwhile."""
    standing, refusals = request.standing, request.parameters.refusals
    # A check takes no money: the token may still pay.
    token = request.wallet_token if request.payment_type != RISK_CHECK else None
    starting = partial(store.begin, trace=request.trace, idempotency=request.idempotency, wallet_token=token,
                       alongside=request.alongside)  # fmt: skip
    for _ in range(MAX_TRIES):
        if not refusals and (error := refusal_of(standing, request.merchant, request.now)) is not None:
            request.parameters.refusals = (error,)
        payment = new_payment(request, way)
        code = request.parameters.refusals[0].code if request.parameters.refusals else ""
        agreement = standing.agreement if standing is not None and standing.counts and not code else None
        payment.agreement = agreement.id if agreement is not None else None
        raising = agreement if agreement is not None and is_limited(agreement) else None
        try:
            if starting(payment, refusal=code, raising=raising, plan=plan):
                return payment
        except store.Duplicate:
            payment.duplicate_guard, payment.agreement = None, None
            if starting(payment, refusal=SENT_TWICE):
                return payment
        if request.alongside is not None and not request.held:
            raise Overtaken
        assert standing is not None  # only an agreement can have moved on
        standing = again(standing)
    raise refusal.Refused(BUSY)


def advance(payment: Payment, connector: Connector, request: PaymentRequest, plan: Plan) -> None:
    """Screen, authenticate and submit a payment that has begun; stop where a phase says so."""
    values: dict[str, str | Secret] = {**request.parameters.values, **request.parameters.secrets}
    agreed = request.standing.onwards if request.standing is not None else {}
    halt = screening.screen(payment, request, plan)
    if halt is None and payment.payment_type == RISK_CHECK:
        _finish(payment, Event.APPROVE, passed(payment), request, duration_ms=0)
        return
    if halt is None:
        outcome = phases.authenticate(payment, request)
        if not isinstance(outcome, Halt):
            asked = question(payment, request.means, {**values, **agreed, **outcome})
            submit(payment, connector, asked, request, plan=plan)
            return
        halt = outcome
    if halt.deadline is not None and agreed:
        payment.answer[AGREED] = dict(agreed)
    stop(payment, halt, request, request.means)


def passed(payment: Payment) -> AcquirerReply:
    """The answer of a standalone risk check that nothing speaks against (D18)."""
    return AcquirerReply(code=results.SUCCESS[payment.test_mode], approved=payment.money)


def new_payment(request: PaymentRequest, way: Route) -> Payment:
    """The row of a first payment. The account is sealed only when it will be used: a refused one keeps no number."""
    parameters, means = request.parameters, request.means
    email = parameters.get("customer.email")
    sealed = fingerprint = account_key = None
    answer: dict[str, object] = {}
    if means is not None:
        keys = vault()
        fingerprint = keys.fingerprint(means.account)
        account_key = finding.account_key(request.merchant.id, means.account)
        if not parameters.refusals:
            sealed = keys.seal(means.account, request.payment)
        unsent = request.registration is not None or request.wallet_token is not None
        answer |= merged(facts_of(means, stored=unsent), request.stored)
    if request.detected:
        answer["brandResult"] = request.brand
    # A stored means is charged nothing, and what is said of it later is said by the payments.
    chosen = request.channel.descriptor if request.payment_type != REGISTER else None
    own = own_descriptor(request.channel, request.merchant)
    echo, default = described(parameters.echo(), chosen=chosen, otherwise=own)
    return Payment(
        id=request.payment,
        merchant_id=request.merchant.id,
        channel=request.channel,
        chain=request.payment,
        referenced=None,
        payment_type=request.payment_type,
        brand=request.brand,
        method=brands.BRANDS[request.brand].method,
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
        email_key=finding.email_key(request.merchant.id, email) if email else None,
        account_key=account_key,
        registration=request.registration,
        connector=way.connector.name,
        account=way.account,
        route=dict(way.told) if way.told is not None else None,
        resource_path=request.resource_path,
        max_captures=int(captures) if (captures := parameters.get("numberOfCaptures")) else None,
        final=parameters.get("sequence") == "FINAL",
        request_id=request.trace.request,
        created_at=request.now,
    )


def _duplicate_guard(request: PaymentRequest) -> str | None:
    if not request.channel.refuse_duplicates or request.repeats:
        return None
    return request.parameters.get("merchantTransactionId")


def facts_of(means: Means, *, stored: bool) -> dict[str, object]:
    """What the answer tells of a means beyond the echo. ``stored``: it was not sent, so there is no echo of it."""
    if not isinstance(means, Card):
        return {}
    facts = {"bin": means.facts.bin6, "last4Digits": means.facts.last4}
    if stored:
        more = {"holder": means.holder, "expiryMonth": means.expiry_month, "expiryYear": means.expiry_year,
                "numberType": means.number_type}  # fmt: skip
        facts |= {name: value for name, value in more.items() if value}
    return {"card": facts}


def question(payment: Payment, means: Means | None, values: Mapping[str, str | Secret]) -> AcquirerRequest:
    """What the acquirer is asked; the account is added by who asks (``submit``), since its secrets may not open.
    ``values``: parameters by full name, with the proof of an authentication."""
    cryptogram = values.get(CRYPTOGRAM)
    return AcquirerRequest(
        payment=payment.id,
        operation=payment.payment_type,
        money=payment.money,
        brand=payment.brand,
        at=payment.created_at,
        means=means,
        parameters=onwards({**values, **onwards_of(payment)}),
        return_url=capability.return_url(payment.id),
        cryptogram=cryptogram if isinstance(cryptogram, Secret) else None,
    )


def submit(
    payment: Payment, connector: Connector, asked: AcquirerRequest, asker: Asker, *, plan: Plan | None = None
) -> None:
    """Ask the connector, with no transaction open, and complete the payment by its answer or its silence.

    A first payment that certainly was not accepted is taken to the next acquirer of its route. An approval that the
    payment's rule set refuses for its AVS or CVV answer is taken back at once, by whoever gave it.
    """
    first = time.perf_counter()
    while True:
        started = time.perf_counter()
        reply, event = _asked(payment, connector, asked)
        took = time.perf_counter() - started
        metrics.asked(connector.name, "elsewhere" if reply.elsewhere else event, took)
        if not reply.elsewhere:
            break
        at = clock.now(asker.merchant)
        found = failover.next_way(payment, reply, since=first, at=at, duration_ms=int(took * 1000))
        if found is None:
            break
        connector = found
    _finish(payment, event, reply, asker, duration_ms=int(took * 1000), plan=plan)


def _asked(payment: Payment, connector: Connector, asked: AcquirerRequest) -> tuple[AcquirerReply, Event]:
    """One acquirer's answer, or its silence. An account whose secrets do not open is out of reach: nothing was sent."""
    try:
        asked = replace(asked, account=account_at(connector, payment.channel_id, payment.account))
    except VaultError as fault:
        log.error("account_does_not_open", payment=payment.id.hex, why=str(fault))
        reply = AcquirerReply(code=OUT_OF_REACH, received={"secrets": "they do not open"}, elsewhere=True)
        return reply, Event.DECLINE
    try:
        reply = connector.submit(asked)
        verdict = screening.judged(payment, reply)
        if verdict.outcome is Outcome.DECLINE:
            reply = screening.take_back(connector, asked, reply, verdict)
    except Silence as silence:
        reply = AcquirerReply(
            code=IN_DOUBT_CODE, sent=silence.sent, received={"silence": mask_text(str(silence))},
            connector_tx_id=silence.connector_tx_id,
        )  # fmt: skip
        return reply, Event.LOSE
    return reply, event_of(reply)


def stop(payment: Payment, halt: Halt, asker: Asker, means: Means | None) -> None:
    """Leave the line: declined by a phase of our own, or waiting for the shopper to authenticate."""
    if halt.deadline is None:
        _finish(payment, Event.DECLINE, AcquirerReply(code=halt.code, facts=halt.facts), asker, duration_ms=0)
        return
    reply = AcquirerReply(code=WAITING_CODE, facts=halt.facts, redirect=halt.redirect)
    secrets = one_time_secrets(means)
    waiting = {
        "stage": Suspension.Stage.AUTHENTICATE,
        "deadline": halt.deadline,
        "secrets_sealed": vault().seal(secrets, payment.id) if secrets is not None else None,
    }
    _finish(payment, Event.SUSPEND, reply, asker, duration_ms=0, waiting=waiting)


def _finish(
    payment: Payment,
    event: Event,
    reply: AcquirerReply,
    asker: Asker,
    *,
    duration_ms: int,
    waiting: Mapping[str, object] | None = None,
    plan: Plan | None = None,
) -> None:
    """Complete the payment. If recovery was faster, what it found out is the truth; while it still asks, this is."""
    now = clock.now(asker.merchant)
    completing = partial(
        store.complete, payment, event, reply, at=now, duration_ms=duration_ms, trace=asker.trace,
        idempotency=asker.idempotency, waiting=waiting or waiting_of(event, reply, now), plan=plan,
    )  # fmt: skip
    try:
        completing()
    except ImpossibleMove:
        payment.refresh_from_db()
        if _completed_late(payment, event, completing):
            return
    else:
        return
    store.keep(payment, "submit", reply.sent, reply.received, at=now, duration_ms=duration_ms, trace=asker.trace)


def _completed_late(payment: Payment, event: Event, completing: Callable[[], None]) -> bool:
    """Complete a payment that recovery asks about, unless it has begun to take it back: a void that is on its way would
    undo what we say now. Whoever of the two writes first decides: recovery marks the row that is held here."""
    with transaction.atomic():
        # In the order in which a payment's end writes them.
        Payment.objects.select_for_update().only("id").get(pk=payment.pk)
        asked = OpenPayment.objects.select_for_update().filter(pk=payment.pk).first()
        if asked is not None and asked.taken_back and event is not Event.DECLINE:
            return False
        try:
            completing()
        except ImpossibleMove:
            payment.refresh_from_db()
            return False
    return True


def waiting_of(event: Event, reply: AcquirerReply, now: datetime) -> Mapping[str, object] | None:
    """How long a pending answer is waited for: half an hour for a shopper, weeks for a bank, or as long as the
    connector says. None: nothing waits."""
    if event is not Event.SUSPEND:
        return None
    away = reply.redirect is not None
    within = timedelta(seconds=settings.GATEWAY_SHOPPER_DEADLINE_S if away else settings.GATEWAY_TRANSFER_DEADLINE_S)
    return {"stage": Suspension.Stage.ELSEWHERE, "deadline": max(now + within, reply.until or now)}


def event_of(reply: AcquirerReply) -> Event:
    """What an acquirer's answer does to a payment, by the family of its code."""
    if results.is_approved(reply.code) or (results.is_chargeback(reply.code) and reply.approved is not None):
        return Event.APPROVE
    return Event.SUSPEND if results.is_pending(reply.code) else Event.DECLINE

"""A first payment, from request to response: parse → begin → screen → authenticate → submit → complete → respond.

Every caller (API, one-click, checkout, subscription run) parses its parameters into a PaymentRequest and calls
:func:`process_payment`:

1. parse: gateway.payments.request_builder builds the PaymentRequest, or refuses it before a payment exists.
2. begin: :func:`begin_payment` inserts the payment as STARTED, or as DECLINED. First transaction.
3. screen: gateway.payments.risk_screening applies the risk rules, before any acquirer is called.
4. authenticate: gateway.payments.shopper_authentication returns the 3-D Secure proof, or suspends for the shopper.
5. submit: :func:`submit_with_step_up` calls the acquirer, with no transaction open; on failover or cascade the
   next one of the route, after a soft decline once more with the shopper's challenge.
6. complete: :func:`complete_unless_recovered` writes the outcome, with the response that an idempotency key stores.
   Second transaction.
7. respond: gateway.payments.responses renders the response, unless 6 has done so.

3, 4 and 5 return a PaymentOutcome (Approved, Declined, Suspended, OutcomeUnknown), or let the payment go on. After a
redirect gateway.payments.shopper_return continues with 5. Source: docs/decisions/0002-one-statement-per-phase.md, 0058.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import structlog

from gateway import metrics, tracing
from gateway.catalogue.errors import INVALID_PARAMETER_CODE, ParameterError
from gateway.connectors.accounts import load_connector_account
from gateway.connectors.acquirer_message import CRYPTOGRAM_PARAMETER, forwardable_parameters
from gateway.connectors.capabilities import PARTY_ACCOUNTS
from gateway.connectors.circuit import ACQUIRER_UNREACHABLE
from gateway.connectors.means import Card, Means
from gateway.connectors.null_connector import NO_ACQUIRER
from gateway.connectors.port import (
    AcquirerReply,
    AcquirerRequest,
    ApprovalNotVoidedError,
    Connector,
    OutcomeUnknownError,
)
from gateway.connectors.routing import CONNECTORS, NoRouteError, Route, route_payment
from gateway.connectors.routing_rules import ROUTING_BIN_DIGITS, RoutingFacts
from gateway.core import brands, clock, identifiers, result_codes
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE
from gateway.core.secret import Secret
from gateway.db.statement import build_new_row
from gateway.models import Payment, Status
from gateway.payments import (
    cascade,
    failover,
    held_parts,
    late_outcomes,
    network_tokens,
    refusal,
    risk_screening,
    search_keys,
    shopper_authentication,
    shopper_tokens,
    step_up,
    store,
)
from gateway.payments.agreements import (
    AgreementUse,
    find_agreement_violation,
    has_agreement_limits,
    reload_agreement_use,
)
from gateway.payments.descriptors import apply_descriptor, build_descriptor_parameter, resolve_default_descriptor
from gateway.payments.nested_values import deep_merge
from gateway.payments.outcomes import (
    Approved,
    AuthenticationProof,
    Declined,
    PaymentOutcome,
    Suspended,
    outcome_from_reply,
    outcome_without_answer,
)
from gateway.payments.payment_request import PaymentRequest, RequestOrigin
from gateway.payments.risk_screening import STANDALONE_RISK_CHECK_TYPE, ScreeningPlan
from gateway.payments.side_effects import REGISTRATION_PAYMENT_TYPE, creates_registration
from gateway.payments.states import PaymentTransitionError
from gateway.payments.stored_answer import PrivateFacts, get_attempt_number, merge_shown_facts
from gateway.payments.stored_request import build_stored_request
from gateway.risk.evaluation import RiskOutcome
from gateway.vault.sealing import VaultError, current_vault

MAX_AGREEMENT_TRIES: Final = 100
"""How often a payment re-reads its agreement when another payment counted on it first."""
DUPLICATE_PAYMENT_CODE: Final = "800.110.100"

log = structlog.get_logger(__name__)


class ConcurrentPaymentUpdateError(Exception):
    """Optimistic-lock conflict: the caller's row (a checkout, a subscription run) or the agreement changed since it was
    read. Nothing was written; the caller may read it again and retry."""


def process_payment(request: PaymentRequest) -> Payment:
    """Process one first payment and return it with its result.

    Raises RequestRefusedError when no payment is made (no route for the brand or mode, agreement never free), and
    ConcurrentPaymentUpdateError.
    """
    chosen_route = resolve_route(request)
    plan = risk_screening.plan_payment_screening(request)
    payment = begin_payment(request, chosen_route, plan)
    if payment.status == Status.STARTED:
        advance_payment(payment, chosen_route.connector, request, plan)
    return payment


def resolve_route(request: PaymentRequest) -> Route:
    """Choose the connector and account of a first payment; a standalone risk check has none. Raises
    RequestRefusedError when no acquirer takes the payment."""
    if request.payment_type == STANDALONE_RISK_CHECK_TYPE:
        return Route(connector=NO_ACQUIRER)
    # A registration moves no money: any acquirer that takes the brand can check the account.
    currency = "" if request.payment_type == REGISTRATION_PAYMENT_TYPE else request.money.currency
    try:
        return route_payment(request.test_mode, request.channel.id, _build_routing_facts(request, currency))
    except NoRouteError as fault:
        log.info("no_route", channel=request.channel.id.hex, brand=request.brand, why=str(fault))
        if fault.missing:
            wanted = "is required: the acquirer that takes this payment wants it"
            errors = [ParameterError(name=name, message=wanted) for name in fault.missing]
            raise refusal.RequestRefusedError(INVALID_PARAMETER_CODE, errors) from None
        if fault.unsendable:
            raise refusal.build_unsendable_refusal(fault.unsendable, request.parameters) from None
        raise refusal.RequestRefusedError(refusal.MODE_NOT_CONFIGURED_CODE) from None


def _build_routing_facts(request: PaymentRequest, currency: str) -> RoutingFacts:
    """The facts that routing rules are matched against."""
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
        sent={**request.parameters.secrets, **request.parameters.values},
        card_brand=""
        if brands.is_card_brand(request.brand) or not isinstance(means, Card)
        else means.facts.brand or "",
    )


def begin_payment(request: PaymentRequest, chosen_route: Route, plan: ScreeningPlan) -> Payment:
    """Insert the payment, STARTED or refused as DECLINED. Under an agreement with limits, check again when another
    payment of the agreement began meanwhile.

    Raises ConcurrentPaymentUpdateError, and RequestRefusedError (800.120.402) after MAX_AGREEMENT_TRIES.
    """
    agreement_use = request.agreement_use
    # A risk check takes no money, so it does not use up the wallet's token.
    token = request.wallet_token if request.payment_type != STANDALONE_RISK_CHECK_TYPE else None
    insert = partial(
        store.insert_payment,
        trace=request.trace,
        idempotency=request.idempotency,
        wallet_token=token,
        extra_writes=request.extra_writes,
    )
    for _ in range(MAX_AGREEMENT_TRIES):
        refusals = _find_refusals(request, agreement_use)
        payment = build_payment(request, chosen_route, refusals)
        code = refusals[0].code if refusals else ""
        agreement = (
            agreement_use.agreement
            if agreement_use is not None and agreement_use.counts_towards_limits and not code
            else None
        )
        payment.agreement = agreement.id if agreement is not None else None
        parent = agreement if agreement is not None and has_agreement_limits(agreement) else None
        try:
            if insert(payment, refusal=code, parent=parent, plan=plan):
                return payment
        except store.DuplicatePaymentError:
            payment.duplicate_guard, payment.agreement = None, None
            if insert(payment, refusal=DUPLICATE_PAYMENT_CODE):
                return payment
        if request.extra_writes is not None and not request.row_locked:
            raise ConcurrentPaymentUpdateError
        assert agreement_use is not None  # without the caller's rows, only the agreement's count can have changed
        agreement_use = reload_agreement_use(agreement_use)
    raise refusal.RequestRefusedError(CONCURRENT_UPDATE_CODE)


def _find_refusals(request: PaymentRequest, agreement_use: AgreementUse | None) -> tuple[ParameterError, ...]:
    """Why a payment is declined as it begins: well-formed parameters with a code of their own, else a limit of its
    agreement; empty if nothing declines it."""
    if request.parameters.refusals:
        return request.parameters.refusals
    violation = find_agreement_violation(agreement_use, request.merchant, request.now)
    return (violation,) if violation is not None else ()


def advance_payment(payment: Payment, connector: Connector, request: PaymentRequest, plan: ScreeningPlan) -> None:
    """Screen, authenticate, submit and complete a payment that has begun."""
    proof = _clear_for_acquirer(payment, request, plan)
    if not isinstance(proof, AuthenticationProof):
        complete_unless_recovered(payment, proof, request)
        return
    references = _get_agreement_references(request)
    values: Mapping[str, str | Secret] = {
        **request.parameters.values,
        **request.parameters.secrets,
        **references,
    }
    outcome = submit_with_step_up(payment, connector, request.means, values, proof, request, plan)
    complete_unless_recovered(payment, outcome, request, plan=plan)


def _clear_for_acquirer(
    payment: Payment, request: PaymentRequest, plan: ScreeningPlan
) -> AuthenticationProof | Approved | Declined | Suspended:
    """Screen and authenticate: the proof for the acquirer, or how the payment ends without one."""
    declined = risk_screening.screen_payment(payment, request, plan)
    if declined is not None:
        return declined
    if payment.payment_type == STANDALONE_RISK_CHECK_TYPE:
        # No rule declined it, and there is no acquirer to call (ruling D18).
        reply = AcquirerReply(code=result_codes.SUCCESS_CODES[payment.test_mode], approved=payment.money)
        return Approved(reply=reply, at=clock.merchant_now(request.merchant))
    return shopper_authentication.authenticate_payment(payment, request)


def _get_agreement_references(request: PaymentRequest) -> Mapping[str, str]:
    """The references of the agreement for the acquirer, by parameter name; empty without an agreement."""
    return request.agreement_use.scheme_references if request.agreement_use is not None else {}


def build_payment(request: PaymentRequest, chosen_route: Route, refusals: tuple[ParameterError, ...]) -> Payment:
    """Build the row of a first payment. The account is sealed only when it will be used: a payment with ``refusals``
    stores no account number."""
    parameters, means = request.parameters, request.means
    email = parameters.get("customer.email")
    sealed = fingerprint = last4_key = None
    if means is not None:
        vault = current_vault()
        fingerprint = vault.fingerprint(means.account)
        last4_key = search_keys.build_last4_key(request.merchant.id, means.account)
        if not refusals:
            sealed = vault.seal(means.account, request.payment)
    # A registration charges nothing: the descriptor is that of the payments made with it later.
    channel_default = request.channel.descriptor if request.payment_type != REGISTRATION_PAYMENT_TYPE else None
    displayed_default = resolve_default_descriptor(request.channel, request.merchant)
    echo, default = apply_descriptor(
        build_stored_request(parameters), chosen=channel_default, otherwise=displayed_default
    )
    payment = build_new_row(
        Payment,
        related={"channel": request.channel},
        id=request.payment,
        merchant_id=request.merchant.id,
        chain=request.payment,
        referenced=None,
        payment_type=request.payment_type,
        brand=request.brand,
        method=brands.PAYMENT_BRANDS[request.brand].method,
        amount=request.money.amount,
        currency=request.money.currency,
        test_mode=request.test_mode,
        merchant_transaction_id=parameters.get("merchantTransactionId") or "",
        duplicate_guard=_build_duplicate_guard(request),
        merchant_invoice_id=parameters.get("merchantInvoiceId") or "",
        merchant_memo=parameters.get("merchantMemo") or "",
        request=echo,
        answer=_build_answer(request) | default,
        means=means.kind if means is not None else "",
        means_sealed=sealed,
        means_fingerprint=fingerprint,
        email_key=search_keys.build_email_key(request.merchant.id, email) if email else None,
        last4_key=last4_key,
        name_keys=search_keys.build_name_keys(request.merchant.id, _list_names(request)) or None,
        registration=request.registration,
        connector=chosen_route.connector.name,
        acquirer_merchant_id=chosen_route.account,
        route=dict(chosen_route.audit) if chosen_route.audit is not None else None,
        resource_path=request.resource_path,
        authorization_kind=request.channel.authorization_kind if request.payment_type == "PA" else "",
        max_captures=int(captures) if (captures := parameters.get("numberOfCaptures")) else None,
        request_id=request.trace.request,
        created_at=request.now,
    )
    payment.refusals = refusals
    return payment


def _build_answer(request: PaymentRequest) -> dict[str, object]:
    """``Payment.answer`` of a first payment: what responses show of its means, and what it keeps for itself."""
    answer: dict[str, object] = {}
    if request.means is not None:
        stored = request.registration is not None or request.wallet_token is not None
        answer |= deep_merge(render_means_facts(request.means, stored=stored), request.stored)
    if request.wallet_token is not None and (eci := request.parameters.get("threeDSecure.eci")):
        # The token's contents are not in the echo; captures and reversals repeat its indicator.
        answer = merge_shown_facts(answer, {"threeDSecure": {"eci": eci}})
    if request.detected:
        answer["brandResult"] = request.brand
    kept = PrivateFacts(
        agreement_references=_get_agreement_references(request),
        renews_card=request.renews_card,
        whole_amount_only=request.payment_type in ("DB", "PA")
        and (
            risk_screening.refuses_partial_approvals(request.channel)
            or (request.collection is not None and not request.collection.takes_part)
        ),
        **held_parts.list_collection_facts(request.collection),
    )
    return answer | kept.as_json()


def _list_names(request: PaymentRequest) -> list[str]:
    """Names of the shopper and of the holder of the means, as sent or as the registration has them."""
    sent = [name for each in search_keys.NAME_PARAMETERS if (name := request.parameters.get(each))]
    return [*sent, str(getattr(request.means, "holder", ""))]  # not every means has a holder


def _build_duplicate_guard(request: PaymentRequest) -> str | None:
    """The merchantTransactionId, if the channel refuses a second payment with the same one (unique in the database)."""
    if not request.channel.refuse_duplicates or request.allow_duplicate:
        return None
    return request.parameters.get("merchantTransactionId")


def render_means_facts(means: Means, *, stored: bool) -> dict[str, object]:
    """What an answer shows of a card besides the echo: BIN and last four digits. ``stored``: the card came from a
    registration or a wallet token, so holder and expiry are not in the echo and are shown too. Of a number that is
    shorter than any card, and was refused for it, six digits and four would be all or nearly all."""
    if not isinstance(means, Card) or means.facts.length < brands.MIN_CARD_DIGITS:
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
    """Build the acquirer request, without the acquirer account: ``submit_payment`` adds it, because opening its secrets
    may fail. ``values``: parameters by full name, with the authentication proof."""
    cryptogram = values.get(CRYPTOGRAM_PARAMETER)
    return AcquirerRequest(
        payment=payment.id,
        operation=payment.payment_type,
        authorization_kind=payment.authorization_kind,
        asks_for_part=risk_screening.asks_for_partial_approval(payment),
        money=payment.money,
        brand=payment.brand,
        at=payment.created_at,
        means=means,
        parameters=forwardable_parameters({**values, **build_descriptor_parameter(payment)}),
        return_url="" if isinstance(means, Card) else shopper_tokens.build_return_url(payment.id),
        cryptogram=cryptogram if isinstance(cryptogram, Secret) else None,
        party_accounts={name: value for name in PARTY_ACCOUNTS if isinstance(value := values.get(name), Secret)},
        stored=payment.registration is not None,
        stores=creates_registration(payment),
        attempt=get_attempt_number(payment),
    )


def submit_with_step_up(
    payment: Payment,
    connector: Connector,
    means: Means | None,
    values: Mapping[str, str | Secret],
    proof: AuthenticationProof,
    origin: RequestOrigin,
    plan: ScreeningPlan,
) -> PaymentOutcome:
    """Submit a first payment. After a soft decline it is suspended for a challenge, or submitted once more with the
    proof, where the channel wants it (gateway.payments.step_up).

    ``values``: the parameters by full name, without ``proof``.
    """
    began = time.perf_counter()
    values = step_up.prepare_step_up_values(payment, values)
    acquirer_request = build_acquirer_request(payment, means, {**values, **proof.parameters})
    outcome = submit_payment(payment, connector, acquirer_request, origin, plan, since=began)
    stepped = step_up.step_up(payment, outcome, means, values, origin, plan, since=began)
    if not isinstance(stepped, AuthenticationProof):
        return stepped
    again = {**step_up.prepare_step_up_values(payment, values), **stepped.parameters}
    acquirer_request = build_acquirer_request(payment, means, again)
    return submit_payment(payment, CONNECTORS[payment.connector], acquirer_request, origin, plan, since=began)


def submit_payment(
    payment: Payment,
    connector: Connector,
    acquirer_request: AcquirerRequest,
    origin: RequestOrigin,
    plan: ScreeningPlan | None = None,
    *,
    since: float | None = None,
) -> PaymentOutcome:
    """Call the acquirer, with no transaction open, and return what became of the payment.

    Failover: a first payment that an acquirer certainly did not accept goes to the next acquirer of its route; cascade:
    one that its issuer declined, too, where its rule wants it. A network token that its issuer declined is followed by
    the card number. An approval that fails the AVS/CVV policy of the payment's rule set, or is for less than its
    channel takes, is voided at once, at the acquirer that gave it.
    ``since``: time.perf_counter() when the first acquirer was called, where this is not the first.
    """
    submitted_at = since if since is not None else time.perf_counter()
    declined: Declined | None = None
    while True:
        prepared = _prepare_attempt(payment, connector, acquirer_request)
        started = time.perf_counter()  # a token service's time is not the acquirer's
        with _trace_submission(payment, connector):
            reply = _call_acquirer(payment, connector, prepared) if isinstance(prepared, AcquirerRequest) else prepared
        took, at = time.perf_counter() - started, clock.merchant_now(origin.merchant)
        duration_ms = int(took * 1000)
        outcome = (
            outcome_without_answer(reply, at=at, duration_ms=duration_ms)
            if isinstance(reply, OutcomeUnknownError)
            else outcome_from_reply(reply, at=at, duration_ms=duration_ms)
        )
        retryable = outcome.reply.retryable_elsewhere
        metrics.observe_acquirer_answer(connector.name, "retryable" if retryable else outcome.event, took)
        if retryable:
            next_connector = failover.next_route(
                payment, outcome.reply, plan, since=submitted_at, at=at, duration_ms=duration_ms
            )
        else:
            next_connector = network_tokens.fall_back_to_number(
                payment, connector, outcome, acquirer_request, plan, since=submitted_at
            ) or cascade.next_after_decline(payment, outcome, acquirer_request, plan, since=submitted_at)
        if next_connector is None:
            return outcome if declined is None or not retryable else cascade.restore_decline(declined, outcome)
        if not retryable and isinstance(outcome, Declined):
            declined = outcome
            acquirer_request = replace(acquirer_request, attempt=get_attempt_number(payment))
        connector = next_connector


def _trace_submission(payment: Payment, connector: Connector) -> tracing.TraceSpan:
    ndc = partial(identifiers.format_ndc, payment.request_id, payment.channel_id.hex)
    about = {"connector": connector.name, "operation": payment.payment_type, "payment": payment.id.hex}
    return tracing.trace_span("acquirer submit", ndc=ndc, **about)


def _prepare_attempt(
    payment: Payment, connector: Connector, acquirer_request: AcquirerRequest
) -> AcquirerRequest | AcquirerReply:
    """The request as one acquirer is sent it: with its account, and the card's network token. An account whose secrets
    do not open is an unreachable acquirer, because nothing was sent: the reply of such a one."""
    try:
        account = load_connector_account(connector, payment.channel_id, payment.acquirer_merchant_id)
    except VaultError as fault:
        log.error("acquirer_secrets_unreadable", payment=payment.id.hex, why=str(fault))
        return AcquirerReply(
            code=ACQUIRER_UNREACHABLE, received={"secrets": "they do not open"}, retryable_elsewhere=True
        )
    return replace(
        network_tokens.attach_network_token(payment, connector, acquirer_request),
        account=account,
        at=payment.called_at or acquirer_request.at,
        not_after=payment.send_by,
        trace_number=payment.trace_number,
        take_late_answer=partial(late_outcomes.take_late_answer, payment.id, store.get_attempt_columns(payment)),
    )


def _call_acquirer(
    payment: Payment, connector: Connector, acquirer_request: AcquirerRequest
) -> AcquirerReply | OutcomeUnknownError:
    """Call one acquirer: its reply, or why there is none."""
    try:
        reply = connector.submit(acquirer_request)
        verdict = risk_screening.evaluate_approval(payment, reply)
        if verdict.outcome is RiskOutcome.DECLINE:
            reply = risk_screening.void_refused_approval(connector, acquirer_request, reply, verdict)
    except ApprovalNotVoidedError as unknown:
        kept = PrivateFacts(
            refused_code=unknown.code, refused_details=unknown.details, transaction_link=unknown.transaction_link
        )
        payment.answer = payment.answer | kept.as_json()
        return unknown
    except OutcomeUnknownError as unknown:
        return unknown
    return reply


def complete_unless_recovered(
    payment: Payment, outcome: PaymentOutcome, origin: RequestOrigin, *, plan: ScreeningPlan | None = None
) -> None:
    """Complete the payment. If recovery completed it first, its result stands and only the exchange is recorded; while
    recovery is still inquiring, this outcome decides. ``plan``: of a payment whose acquirer was called."""
    complete = partial(
        store.complete_payment, payment, outcome, trace=origin.trace, idempotency=origin.idempotency, plan=plan
    )
    asked = store.get_attempt_columns(payment)  # before the row is read again: recovery may have left this account
    try:
        complete()
        return
    except PaymentTransitionError:
        payment.refresh_from_db()
    late_outcomes.record_late_outcome(payment, outcome, complete, asked=asked, trace=origin.trace)

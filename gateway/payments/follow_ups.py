"""Follow-ups: captures, refunds, reversals and others of an earlier payment, exact under concurrency.

A follow-up is decided on the chain as it was read and begins only if no other follow-up began since: beginning it
raises the first payment's follow-up counter by compare-and-set. The later of two reads the chain again and decides
again, so two refunds at once can never both pass a ceiling, and no lock is held during the acquirer call.
Source: decisions, section 4.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings
from django.db.models import QuerySet

from gateway.catalogue import structures
from gateway.catalogue.conditions.amounts import WHOLE_AMOUNT_MESSAGE
from gateway.catalogue.endpoints import FOLLOW_UP_ENDPOINT
from gateway.catalogue.parse import (
    INVALID_PARAMETER_CODE,
    Catalogue,
    Parameters,
    mask_reported_value,
)
from gateway.connectors.accounts import find_capture_arrival, load_connector_account
from gateway.connectors.acquirer_message import forwardable_parameters
from gateway.connectors.capabilities import TRANSFER_PARAMETER, TRANSFERS, find_unsendable
from gateway.connectors.means import Means
from gateway.connectors.point_of_service import is_initiated_by_merchant
from gateway.connectors.port import AcquirerRequest
from gateway.connectors.routing import CONNECTORS
from gateway.core import identifiers
from gateway.core.money import fits_currency, format_amount
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE, VAULT_ERROR_CODE
from gateway.db.statement import WriteStatement, build_new_row
from gateway.models import Channel, Merchant, Payment, Status
from gateway.payments import store
from gateway.payments.chain_amounts import CLOSING_TYPES, REAUTHORIZATION, Chain, compute_reversed_amount
from gateway.payments.descriptors import REQUEST_DESCRIPTOR, apply_target_descriptor, build_descriptor_parameter
from gateway.payments.network_tokens import replace_sent_means
from gateway.payments.operation_table import (
    AUTHORIZATION_EXPIRED,
    BATCH_AFTER_END_TEXT,
    INDUSTRY_PRACTICE_OPERATIONS,
    LATE_REAUTHORIZATION_OPERATION,
    OPERATIONS,
    PLATFORM_ONLY_CODE,
    REAUTHORIZATION_OPERATION,
    FollowUpDecision,
    PaymentOperation,
    evaluate_operation,
    find_refusal_text,
)
from gateway.payments.payment_archive import bring_chain_back
from gateway.payments.payment_means import load_payment_means
from gateway.payments.payment_methods import TYPE_NOT_WITH_METHOD_CODE, is_type_supported
from gateway.payments.payment_request import IdempotencyContext, RequestTrace
from gateway.payments.points_of_service import SERVICE_PARAMETERS, find_point_of_service
from gateway.payments.process import complete_unless_recovered, submit_payment
from gateway.payments.refusal import (
    ACCOUNT_ERASED_CODE,
    TYPE_NOT_OFFERED_CODE,
    RequestRefusedError,
    build_parameter_refusal,
    build_unsendable_refusal,
)
from gateway.payments.reversal_border import is_beyond_reversal
from gateway.payments.risk_screening import (
    ScreeningPlan,
    plan_follow_up_screening,
    refuses_partial_approvals,
    screen_follow_up,
)
from gateway.payments.stored_answer import PrivateFacts, read_transaction_link, was_sent_with_token
from gateway.payments.stored_request import build_stored_request
from gateway.vault.sealing import VaultError

MAX_FOLLOW_UP_TRIES = 100
"""How often a follow-up re-reads its chain; each lost try means that another follow-up of the chain began."""
NOT_A_FOLLOW_UP_CODE = "700.300.100"
CAPTURES: Final = "numberOfCaptures"
SEQUENCE: Final = "sequence"
CHARGEBACK_REASON: Final = "chargebackResultCode"
GATEWAY_FOLLOW_UP_PARAMETERS: Final = Catalogue(
    FOLLOW_UP_ENDPOINT.structures[1:], FOLLOW_UP_ENDPOINT.rules, elsewhere=structures.KNOWN_STRUCTURES
)
"""The parameters of a follow-up that the gateway makes: those of the API without the entity."""
_FOLLOW_UP_STRUCTURES: Final = frozenset(structure.title for structure in FOLLOW_UP_ENDPOINT.structures)

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowUpRequest:
    """A follow-up on its way to :func:`process_follow_up`.

    - ``payment``: the id the follow-up will have.
    - ``target``: the payment it follows, None for a malformed id.
    - ``channel``: None if the caller acts for the whole merchant.
    - ``operation``: in place of that of the paymentType.
    - ``chain``: of the target, if the caller has just read it by :func:`load_chain`.
    - ``extra_writes``: called with the chain before the follow-up begins; returns what to add to the statement that
      begins it, or raises.
    """

    payment: UUID
    target: UUID | None
    merchant: Merchant
    channel: Channel | None
    parameters: Parameters
    now: datetime
    trace: RequestTrace
    idempotency: IdempotencyContext | None = None
    operation: PaymentOperation | None = None
    chain: Chain | None = None
    extra_writes: Callable[[Chain], Callable[[WriteStatement], None]] | None = None


def process_follow_up(request: FollowUpRequest) -> Payment:
    """Process one follow-up and return its payment with the result. Raises RequestRefusedError: 404 for an unknown
    payment, 400 for a type that is not offered."""
    operation = request.operation or _resolve_requested_operation(request)
    _check_reference(request)
    _ignore_parameters_without_effect(operation, request.parameters)
    means: Means | None = None
    renewed = False
    known = request.chain
    for _ in range(MAX_FOLLOW_UP_TRIES):
        chain = known or load_chain(request.target, request.merchant, request.channel)
        known = None
        target = chain.find(request.target) if chain is not None and request.target is not None else None
        if chain is None or target is None:
            raise _build_not_found_refusal(operation, request.parameters)
        _check_sendable(request.parameters, operation, target)
        _check_whole_amount(request.parameters, target)
        _ignore_what_the_chain_decides(request.parameters, target)
        decision = decide_follow_up(operation, chain, target, request.parameters, at=request.now)
        if decision.code == AUTHORIZATION_EXPIRED and _renews_expired(target):
            if operation is REAUTHORIZATION_OPERATION:
                operation = LATE_REAUTHORIZATION_OPERATION
                continue
            timely = replace(operation, expired="")
            possible = not decide_follow_up(timely, chain, target, request.parameters, at=request.now).code
            if operation.code == "CP" and possible and not renewed:
                renewed = True
                _renew_authorization(request, chain)
                continue
        # Open the secrets before the payment begins: one whose card does not open must not stay STARTED.
        needs_means = operation.needs_card or CONNECTORS[target.connector].asks_with_means
        if needs_means and not decision.code and means is None:
            authorizing = find_authorizing_payment(chain, target)
            # A rebill authorizes anew, and is sent with the card number.
            token = operation.code != "RB" and was_sent_with_token(authorizing.answer)
            means = _open_chain_means(chain.first.id, authorizing.id if token else None)
            if means is None and chain.first.means:
                raise RequestRefusedError(ACCOUNT_ERASED_CODE)
        if not decision.code:
            _check_account_opens(target)
        row = build_follow_up(operation, target, decision, request)
        parent = None if decision.code else chain.first
        plan = _plan_retries(operation, row, means, request) if not decision.code else None
        extra_writes = request.extra_writes(chain) if request.extra_writes is not None else None
        if store.insert_payment(
            row,
            trace=request.trace,
            refusal=decision.code,
            parent=parent,
            idempotency=request.idempotency,
            plan=plan,
            extra_writes=extra_writes,
        ):
            break
    else:
        raise RequestRefusedError(CONCURRENT_UPDATE_CODE)
    if row.status == Status.STARTED and (stopped := screen_follow_up(row, plan, request)) is not None:
        complete_unless_recovered(row, stopped, request)
    elif row.status == Status.STARTED:
        acquirer_request = name_authorization(
            _build_follow_up_acquirer_request(row, chain, target, means, request), chain, target
        )
        outcome = submit_payment(row, CONNECTORS[row.connector], acquirer_request, request)
        complete_unless_recovered(row, outcome, request, plan=plan)
    return row


def _plan_retries(
    operation: PaymentOperation, row: Payment, means: Means | None, request: FollowUpRequest
) -> ScreeningPlan | None:
    """The schemes' retry rules of a follow-up that asks the issuer anew; None for any other."""
    if not operation.needs_card:
        return None
    by_merchant = is_initiated_by_merchant(request.parameters.values, follows=True)
    return plan_follow_up_screening(row, means, merchant_initiated=by_merchant)


def _renews_expired(target: Payment) -> bool:
    return target.channel.expired_captures == Channel.ExpiredCaptures.RENEW


def _renew_authorization(request: FollowUpRequest, chain: Chain) -> None:
    """Renew an expired authorization before its capture. What became of it, the chain says: a renewal that was not
    approved leaves it expired."""
    first = chain.first
    pairs = [
        ("paymentType", "PA"),
        ("amount", format_amount(chain.authorization.capturable)),
        ("currency", first.currency),
        ("standingInstruction.industryPractice", REAUTHORIZATION),
    ]
    renewal = FollowUpRequest(
        payment=identifiers.row_id(),
        target=first.id,
        merchant=request.merchant,
        channel=None,
        parameters=GATEWAY_FOLLOW_UP_PARAMETERS.parse(pairs),
        now=request.now,
        trace=RequestTrace(method="RENEW", path="CP", entity=first.channel_id),
        operation=LATE_REAUTHORIZATION_OPERATION,
    )
    try:
        process_follow_up(renewal)
    except RequestRefusedError as refused:
        log.warning("authorization_renewal_refused", payment=first.id.hex, code=refused.code)


def resolve_operation(parameters: Parameters) -> PaymentOperation:
    """The operation of a follow-up's paymentType. Raises RequestRefusedError for types that are not follow-ups, and for
    CB and CR in live."""
    kind = parameters["paymentType"]
    practice = parameters.get("standingInstruction.industryPractice") or ""
    operation = INDUSTRY_PRACTICE_OPERATIONS.get(practice) if kind == "PA" else OPERATIONS.get(kind)
    if operation is None:
        raise RequestRefusedError(TYPE_NOT_OFFERED_CODE)
    if not operation.follows:
        raise RequestRefusedError(NOT_A_FOLLOW_UP_CODE)
    if operation.test_only and settings.IS_LIVE:
        raise RequestRefusedError(PLATFORM_ONLY_CODE)
    return operation


def _resolve_requested_operation(request: FollowUpRequest) -> PaymentOperation:
    """The operation of the request's paymentType. Raises RequestRefusedError; a referenceUuid that names no payment is
    told first: what may follow a payment is known only of one that is there."""
    try:
        return resolve_operation(request.parameters)
    except RequestRefusedError:
        _check_reference(request)
        if (
            "referenceUuid" in request.parameters
            and load_chain(request.target, request.merchant, request.channel) is None
        ):
            raise _build_unknown_reference_refusal(request.parameters) from None
        raise


def _check_reference(request: FollowUpRequest) -> None:
    """Check a sent referenceUuid and drop parameters that a follow-up does not take, reporting them as ignored: the
    means comes from the chain (ruling D2). Raises RequestRefusedError if it names another payment than the path."""
    parameters = request.parameters
    reference = parameters.get("referenceUuid")
    if reference is None:
        return
    if identifiers.parse_id(reference) != request.target:
        message = "names another payment than the path does"
        raise build_parameter_refusal(
            INVALID_PARAMETER_CODE, "referenceUuid", message, value=mask_reported_value(reference)
        )
    foreign = [name for name in parameters.names if FOLLOW_UP_ENDPOINT.catalogue.find(name) is None]
    if foreign:
        parameters.drop(*foreign)
        parameters.items = [item for item in parameters.items if item[0].structure.title in _FOLLOW_UP_STRUCTURES]
        parameters.ignored = (*parameters.ignored, *foreign)


def _check_sendable(parameters: Parameters, operation: PaymentOperation, target: Payment) -> None:
    """Raise RequestRefusedError if the target's acquirer cannot be sent what would change the follow-up."""
    sends = CONNECTORS[target.connector].sends
    if names := find_unsendable(sends, target.brand, operation.code, parameters.values):
        raise build_unsendable_refusal(names, parameters)


def _check_whole_amount(parameters: Parameters, target: Payment) -> None:
    """Raise RequestRefusedError for an amount that the chain's currency does not have (ruling D26). With a currency the
    parser has looked; without one it is known only now."""
    amount = parameters.get("amount")
    if amount is not None and "currency" not in parameters and not fits_currency(Decimal(amount), target.currency):
        message = WHOLE_AMOUNT_MESSAGE.format(currency=target.currency)
        raise build_parameter_refusal(INVALID_PARAMETER_CODE, "amount", message, value=amount, known=True)


def _ignore_parameters_without_effect(operation: PaymentOperation, parameters: Parameters) -> None:
    _ignore_number_of_captures(parameters)
    if operation.code not in CLOSING_TYPES:
        parameters.ignore(SEQUENCE)
    if operation.code != "CB":
        parameters.ignore(CHARGEBACK_REASON)
    if parameters.get(TRANSFER_PARAMETER) in TRANSFERS:
        # A follow-up is of the kind of the payment that it follows.
        parameters.ignore(TRANSFER_PARAMETER)


def _ignore_what_the_chain_decides(parameters: Parameters, target: Payment) -> None:
    """Report a brand and a test mode as ignored that are not those of the chain, which has the say (ruling D2)."""
    for name, value in (("paymentBrand", target.brand), ("testMode", target.test_mode)):
        if parameters.get(name) not in (None, value):
            parameters.ignore(name)


def _ignore_number_of_captures(parameters: Parameters) -> None:
    """Drop numberOfCaptures, which only the first authorization sets, and report it as ignored.
    Source: Part A, Basic payment; docs/decisions/0007-operations.md."""
    if CAPTURES in parameters:
        parameters.drop(CAPTURES)
        parameters.ignored = (*parameters.ignored, CAPTURES)


def _build_not_found_refusal(operation: PaymentOperation, parameters: Parameters) -> RequestRefusedError:
    """The refusal of an unknown payment: 404 for the id in the path, a validation error for referenceUuid."""
    if "referenceUuid" in parameters:
        return _build_unknown_reference_refusal(parameters)
    return RequestRefusedError(operation.unknown, status=404)


def _build_unknown_reference_refusal(parameters: Parameters) -> RequestRefusedError:
    return build_parameter_refusal(
        INVALID_PARAMETER_CODE, "referenceUuid", "names no payment of this entity", value=parameters["referenceUuid"]
    )


def _build_follow_up_acquirer_request(
    row: Payment, chain: Chain, target: Payment, means: Means | None, request: FollowUpRequest
) -> AcquirerRequest:
    return AcquirerRequest(
        payment=row.id,
        operation=row.payment_type,
        money=row.money,
        brand=row.brand,
        at=request.now,
        means=means,
        reference=target.connector_tx_id,
        parameters=forwardable_parameters({**request.parameters.values, **build_descriptor_parameter(row)}),
        authorization_kind=row.authorization_kind,
        original=find_point_of_service(chain, row),
    )


def name_authorization(acquirer_request: AcquirerRequest, chain: Chain, target: Payment) -> AcquirerRequest:
    """Add what a follow-up's chain says about its authorization.

    Captures, increments and reversals name the newest approved renewal, by its reference and its transaction link,
    whichever member the path names, since the authorization before it has expired or is given up (docs/decisions/0093);
    a renewal names the first authorization. Captures and reversals have the point of service of what they name
    (docs/decisions/0147).
    A reversal has the cumulative amount: docs/decisions/0068. A capture says which of numberOfCaptures it is.
    ``chain`` may contain the follow-up itself.
    """
    ident, operation = acquirer_request.payment, acquirer_request.operation
    others = Chain([member for member in chain.members if member.id != ident])
    if target.payment_type != "PA":
        reversed_before = compute_reversed_amount(others, target) if operation == "RV" else Decimal(0)
        return replace(acquirer_request, amount_already_reversed=reversed_before)
    held = others.authorization
    # One that has begun, and is asked about or repeated, names what it named then: a renewal has a result before it.
    current = held.find_current(before=chain.find(ident))
    match operation:
        case "CP":
            clearing = chain.authorization.number_capture(ident)
            return replace(_name_authorized_payment(acquirer_request, chain, current), clearing=clearing)
        case "PA" if acquirer_request.point_of_service.practice == REAUTHORIZATION:
            return replace(acquirer_request, reference=chain.first.connector_tx_id, renewable_amount=held.capturable)
        case "PA":
            return _name_raised_payment(acquirer_request, chain, current)
        case "RV":
            since = held.compute_hold(current)
            return replace(
                _name_authorized_payment(acquirer_request, chain, current),
                amount_already_reversed=held.released,
                authorized_amount=held.authorized,
                renewed_amount=since.authorized if current.practice else Decimal(0),
                reversed_since_renewal=since.reversed,
            )
    return acquirer_request


def _name_authorized_payment(acquirer_request: AcquirerRequest, chain: Chain, named: Payment) -> AcquirerRequest:
    """The request of a capture or reversal with the reference of the authorization that it names, and with what that
    one said of its point of service: clearing has to agree with the authorization of its approval code."""
    # None: a connector that is asked without means needs none.
    point = find_point_of_service(chain, named) if acquirer_request.original is not None else None
    return replace(acquirer_request, reference=named.connector_tx_id, original=point)


def _name_raised_payment(acquirer_request: AcquirerRequest, chain: Chain, named: Payment) -> AcquirerRequest:
    """The request of an increment with the reference of the authorization that it names, and with its transaction link,
    unless the increment was told one of its own already."""
    point, own = acquirer_request.original, chain.find(acquirer_request.payment)
    if point is not None:
        told = read_transaction_link(own.answer) if own is not None else ""
        point = replace(point, link=told or find_point_of_service(chain, named).link)
    return replace(acquirer_request, reference=named.connector_tx_id, original=point)


def _check_account_opens(target: Payment) -> None:
    """Raise RequestRefusedError when the secrets of the acquirer account of a follow-up do not open."""
    try:
        load_connector_account(CONNECTORS[target.connector], target.channel_id, target.acquirer_merchant_id)
    except VaultError as fault:
        log.error("acquirer_secrets_unreadable", payment=target.id.hex, why=str(fault))
        raise RequestRefusedError(VAULT_ERROR_CODE) from None


def _open_chain_means(first: UUID, authorizing: UUID | None) -> Means | None:
    """The chain's means out of the vault. Raises RequestRefusedError when it does not open."""
    for last in (False, True):
        try:
            return load_chain_means(first, authorizing)
        except VaultError as fault:
            # Read once more: it may have been rewrapped, and its old key retired, since it was read.
            if last:
                log.error("stored_means_unreadable", payment=first.hex, why=str(fault))
    raise RequestRefusedError(VAULT_ERROR_CODE)


def load_chain_means(first: UUID, authorizing: UUID | None) -> Means | None:
    """The means of a chain, from its first payment's row; without a CVV, which is never stored. ``authorizing``: the
    payment whose authorization is meant (:func:`find_authorizing_payment`): one that was sent with a network token is
    followed with it; None: the card number is wanted. Raises VaultError."""
    means = load_payment_means(Payment.objects.only("means", "means_sealed", "request", "answer").get(pk=first))
    return replace_sent_means(means, authorizing) if authorizing is not None else means


def find_authorizing_payment(chain: Chain, payment: Payment) -> Payment:
    """The payment whose authorization ``payment`` is, or follows: its chain's first one, or a rebill."""
    while payment.referenced is not None and payment.payment_type != "RB":
        followed = chain.find(payment.referenced)
        assert followed is not None  # a chain is read whole
        payment = followed
    return payment


def load_chain(target: UUID | None, merchant: Merchant, channel: Channel | None) -> Chain | None:
    """Load the chain of payment ``target`` in one statement; None when this merchant (and channel) has none. One that
    was archived is brought back first."""
    if target is None:
        return None
    rows = _load_target_chain(target, merchant, channel)
    # A follow-up that was declined at once may have come in while its chain was archived.
    if not rows or rows[0].pk != rows[0].chain:
        archived = rows[0].chain if rows else target
        brought = bring_chain_back(archived, merchant.pk, channel.pk if channel is not None else None)
        # Another request may have brought it back between the two looks.
        if brought or not rows:
            rows = _load_target_chain(target, merchant, channel)
    return Chain(rows) if rows else None


def _load_target_chain(target: UUID, merchant: Merchant, channel: Channel | None) -> list[Payment]:
    targets = Payment.objects.filter(pk=target, merchant=merchant.pk)
    if channel is not None:
        targets = targets.filter(channel=channel.pk)
    members = _defer_unneeded(Payment.objects.filter(chain=targets.values("chain")[:1]))
    return list(members.annotate(sent_descriptor=REQUEST_DESCRIPTOR, sent_service=SERVICE_PARAMETERS))


def load_chain_members(chain: UUID) -> list[Payment]:
    """The payments of the chain that began with ``chain``, oldest first."""
    return list(_defer_unneeded(Payment.objects.filter(chain=chain)).annotate(sent_service=SERVICE_PARAMETERS))


def _defer_unneeded(members: QuerySet[Payment]) -> QuerySet[Payment]:
    """The rows in the chain's order, without the columns that no decision needs."""
    return members.order_by("id").defer("request", "merchant_memo", "means_sealed", "means_fingerprint")


def decide_follow_up(
    operation: PaymentOperation,
    chain: Chain,
    target: Payment,
    parameters: Parameters,
    *,
    at: datetime,
    reported: bool = False,
) -> FollowUpDecision:
    """Decide by the operation table and the request's own refusals whether a follow-up may begin, and its amount.
    ``at``: the merchant's clock; ``reported``: its acquirer reports what has happened, so nothing is too late. A
    capture that waits for a batch has to reach its acquirer before the authorization ends (docs/decisions/0155)."""
    amount = parameters.get("amount")
    if not is_type_supported(target.brand, operation.code):
        return FollowUpDecision(amount=Decimal(amount or 0), code=TYPE_NOT_WITH_METHOD_CODE)
    arrives_at = find_follow_up_arrival(operation, target, at)
    decision = evaluate_operation(
        operation,
        chain,
        target,
        Decimal(amount) if amount is not None else None,
        parameters.get("currency"),
        final=parameters.get(SEQUENCE) == "FINAL",
        reported=reported,
        at=arrives_at,
        settled=bool(operation.settled) and not reported and is_beyond_reversal(target, at),
    )
    if decision.code == AUTHORIZATION_EXPIRED and not chain.authorization.is_expired(at):
        return replace(decision, text=BATCH_AFTER_END_TEXT.format(at=arrives_at.astimezone(UTC)))
    if parameters.refusals and not decision.code:
        return FollowUpDecision(amount=decision.amount, code=parameters.refusals[0].code)
    return decision


def find_follow_up_arrival(operation: PaymentOperation, target: Payment, at: datetime) -> datetime:
    """When a follow-up of ``target`` that is made at ``at`` reaches the acquirer: a capture with the next batch where
    its account collects them, anything else at once."""
    if operation.code != "CP":
        return at
    connector = CONNECTORS.get(target.connector)
    return find_capture_arrival(connector, target.channel_id, target.acquirer_merchant_id, at)


def build_follow_up(
    operation: PaymentOperation, target: Payment, decision: FollowUpDecision, request: FollowUpRequest
) -> Payment:
    """Build the row of a follow-up: brand, means, test mode and currency come from the chain (ruling D2)."""
    parameters = request.parameters
    echo, answer = apply_target_descriptor(build_stored_request(parameters), target)
    if text := decision.text or find_refusal_text(operation, decision.code, target):
        answer = answer | {"resultDetails": {"ExtendedDescription": text}}
    if operation.code == "RB":
        whole_only = refuses_partial_approvals(request.channel or target.channel)
        answer = answer | PrivateFacts(whole_amount_only=whole_only).as_json()
    return build_new_row(
        Payment,
        id=request.payment,
        merchant_id=target.merchant_id,
        channel_id=target.channel_id,
        chain=target.chain,
        referenced=target.id,
        payment_type=operation.code,
        brand=target.brand,
        method=target.method,
        amount=decision.amount,
        currency=target.currency,
        test_mode=target.test_mode,
        merchant_transaction_id=parameters.get("merchantTransactionId") or "",
        merchant_invoice_id=parameters.get("merchantInvoiceId") or "",
        merchant_memo=parameters.get("merchantMemo") or "",
        request=echo,
        answer=answer,
        connector=target.connector,
        acquirer_merchant_id=target.acquirer_merchant_id,
        means=target.means,
        final=parameters.get(SEQUENCE) == "FINAL",
        practice=parameters.get("standingInstruction.industryPractice") or "" if operation.code == "PA" else "",
        authorization_kind=target.authorization_kind if operation.code == "PA" else "",
        request_id=request.trace.request,
        created_at=request.now,
    )

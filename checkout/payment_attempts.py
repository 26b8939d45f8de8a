"""Pays a checkout: one payment at a time, however often and from however many tabs it is submitted.

An attempt begins in the statement that increments the checkout's version and names its payment; of two requests that
read the same checkout one begins. The current payment alone determines if another may follow: after a decline it may;
while it is in progress or in doubt it may not; one that waits for its shopper is voided first, if its connector
confirms that; one that holds a part of the amount is followed by one of the rest (checkout.parts).
Source: Part A, What the service does, 8; Events, 2; decisions, section 7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from checkout import parts, payment_links, session
from checkout.brand_selection import check_brand_offered
from checkout.form_parameters import (
    SubmittedForm,
    find_chosen_registration_id,
    list_offered_registration_ids,
    merge_form_parameters,
)
from checkout.models import Checkout, PaymentLink, ResultCall
from checkout.parts import HeldAmount
from gateway.catalogue import conditions, structures
from gateway.catalogue.conditions.request_facts import STORED_CARD_FACT
from gateway.catalogue.endpoints import CREATE_REGISTRATION_ENDPOINT
from gateway.catalogue.parse import Catalogue, Parameters
from gateway.connectors.means import Card, Means
from gateway.core import clock, identifiers
from gateway.core.money import format_amount
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE
from gateway.core.secret import Secret
from gateway.db.statement import WriteStatement
from gateway.models import Payment, Status, Suspension
from gateway.payments import registrations, shopper_return
from gateway.payments.held_parts import is_held
from gateway.payments.payment_means import load_payment_means, pack_one_time_secrets
from gateway.payments.payment_request import IdempotencyContext, PaymentRequest, RequestTrace
from gateway.payments.process import ConcurrentPaymentUpdateError, process_payment
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.request_builder import StoredMeans, build_condition_facts, build_payment_request
from gateway.payments.step_up import STEP_UP_ATTEMPT
from gateway.payments.stored_answer import read_private_facts
from gateway.vault.sealing import current_vault

_STORE: Final = Catalogue(
    CREATE_REGISTRATION_ENDPOINT.structures[1:],
    tuple(rule for rule in CREATE_REGISTRATION_ENDPOINT.rules if rule not in conditions.CUSTOMER_NAMES),
    elsewhere=structures.KNOWN_STRUCTURES,
)
"""The parameters of a checkout that only stores a means: those of a registration, without a required name (D28)."""
MAX_CHECKOUT_ATTEMPTS: Final = 20
"""Declined cards of one checkout: more attempts are not shopping."""
TOO_MANY_ATTEMPTS_CODE: Final = "700.500.001"
MAX_CHECKOUT_UPDATE_TRIES: Final = 20
"""How often a submission reads its checkout again after losing to a concurrent change."""
RESULT_CALL_DELAY: Final = timedelta(minutes=29)
"""The time from the checkout's creation to the result call."""
MIN_RESULT_CALL_DELAY: Final = timedelta(seconds=10)
"""Least time from a payment's start to that call."""
RESULT_CALL_BEFORE_EXPIRY: Final = timedelta(seconds=3)
"""The call comes while the result can still be fetched, however late the payment was started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckoutSubmission:
    """A submitted form, and the request it came with. ``max_amount``: the rest that the form shows, or that its token's
    limits were checked for; None for the checkout's whole amount."""

    form: SubmittedForm
    trace: RequestTrace
    idempotency: IdempotencyContext | None = None
    max_amount: Decimal | None = None


def pay_checkout(row: Checkout, submission: CheckoutSubmission) -> Payment:
    """Pay the checkout. Returns its payment: this submission's, or the one that exists already.

    Raises InvalidParametersError and RequestRefusedError; then this submission made no payment.
    """
    public_id = row.public_id
    for _ in range(MAX_CHECKOUT_UPDATE_TRIES):
        latest = row.payment
        if latest is None or latest.status == Status.DECLINED or is_held(latest):
            held = parts.find_held_amount(row)
            parts.check_nothing_is_given_back(row, held)
            request = _build_request(row, submission, held)
            if submission.max_amount is not None and request.money.amount > submission.max_amount:
                # Held parts were released since the form was shown, or the checkout's amount was raised: never charge
                # more than the shopper saw, or than the token's limits were checked for.
                raise RequestRefusedError(
                    CONCURRENT_UPDATE_CODE, more="the amount is more than was shown or checked: see the state"
                )
            if held is not None and (part := parts.find_part_of_same_means(held, request)) is not None:
                return part
            _release_transaction_id(row)
            try:
                return process_payment(request)
            except ConcurrentPaymentUpdateError:
                pass
        elif latest.status != Status.PENDING:
            return latest
        elif (settled := _resolve_pending_payment(row, latest, submission)) is not None:
            return settled
        row = session.find_open_checkout(public_id)
    raise RequestRefusedError(CONCURRENT_UPDATE_CODE)


def _build_request(row: Checkout, submission: CheckoutSubmission, held: HeldAmount | None = None) -> PaymentRequest:
    """The payment request of this submission; ``held``: parts of the amount, of which it pays the rest. Raises
    InvalidParametersError and RequestRefusedError."""
    if row.attempts >= MAX_CHECKOUT_ATTEMPTS:
        raise RequestRefusedError(TOO_MANY_ATTEMPTS_CODE, more=f"{MAX_CHECKOUT_ATTEMPTS} payments were tried")
    now = clock.merchant_now(row.merchant)
    parameters, stored = _merge_submission(row, submission.form, now, held)
    request = build_payment_request(
        parameters,
        merchant=row.merchant,
        channel=row.channel,
        now=now,
        trace=submission.trace,
        idempotency=submission.idempotency,
        stored=stored,
        resource_path=f"/v1/checkouts/{row.public_id}/{row.kind}",
    )
    check_brand_offered(row, request)
    link = payment_links.claim_link_payment(row)
    return replace(
        request,
        extra_writes=_claim_checkout(row, request, link, held),
        # The parts of one order share its merchantTransactionId.
        allow_duplicate=held is not None,
        collection=parts.resolve_collection(row, held, request),
    )


def _merge_submission(
    row: Checkout, form: SubmittedForm, now: datetime, held: HeldAmount | None
) -> tuple[Parameters, StoredMeans | None]:
    """The parameters, and the registration that the shopper chose of those offered."""
    prepared, facts, masks = (
        session.load_checkout_values(row),
        build_condition_facts(row.channel, now),
        row.channel.mask_card_data,
    )
    if held is not None:
        prepared["amount"] = format_amount(held.rest)
        for of_the_whole in ("taxAmount", "threeDSecure.amount"):
            prepared.pop(of_the_whole, None)
    if row.kind == Checkout.Kind.REGISTRATION:
        prepared.pop("createRegistration", None)
        return merge_form_parameters(prepared, form, facts, catalogue=_STORE, masks=masks).parameters, None
    chosen, found = find_chosen_registration_id(form), None
    if chosen in list_offered_registration_ids(prepared):
        found = registrations.find_registration(identifiers.parse_id(chosen), row.merchant, row.channel)
    if found is not None and found.means == "card":
        facts |= {STORED_CARD_FACT, f"registration: {found.brand}"}
    merged = merge_form_parameters(prepared, form, facts, masks=masks)
    if found is None:
        return merged.parameters, None
    return merged.parameters, registrations.load_stored_means(found, merged.parameters, now, merged.renewed)


def _claim_checkout(
    row: Checkout, request: PaymentRequest, link: PaymentLink | None, held: HeldAmount | None
) -> Callable[[WriteStatement], None]:
    """The update that sets the checkout's new payment if its version is unchanged, and schedules the result call.
    ``link``: the payment link whose version must be unchanged, too; ``held``: the parts whose rest is paid."""

    def write(write: WriteStatement) -> None:
        write.update(
            row,
            {
                "payment_id": request.payment,
                "attempts": row.attempts + 1,
                "version": row.version + 1,
                "fetched_at": None,
                **parts.list_checkout_changes(held),
            },
            expecting={"version": row.version},
        )
        if link is not None:
            write.update(link, {"version": link.version + 1}, expecting={"version": link.version})
        if held is not None:
            parts.prolong_parts(write, row, held, request.now)
        write.delete(ResultCall, {"checkout_id": row.id})
        if _is_merchants_page(request.parameters.get("shopperResultUrl") or ""):
            write.insert(
                ResultCall,
                payment_id=request.payment,
                checkout_id=row.id,
                due_at=min(
                    max(row.created_at + RESULT_CALL_DELAY, request.now + MIN_RESULT_CALL_DELAY),
                    max(row.expires_at - RESULT_CALL_BEFORE_EXPIRY, request.now),
                ),
            )

    return write


def _is_merchants_page(url: str) -> bool:
    """Whether a result call can be made: to an address on the web that is not our own payment page."""
    return url.lower().startswith(("http://", "https://")) and not session.is_payment_page_url(url)


def _release_transaction_id(row: Checkout) -> None:
    """Clear the duplicate guard of a declined attempt, and of parts that were given back: where a channel refuses a
    second payment with one merchantTransactionId, they do not count as the first."""
    if not row.channel.refuse_duplicates or row.payment is None:
        return
    if row.parts or row.payment.duplicate_guard is not None:
        tried = (row.payment.pk, *row.parts)
        Payment.objects.filter(pk__in=tried, status=Status.DECLINED).update(duplicate_guard=None)


def _resolve_pending_payment(row: Checkout, latest: Payment, submission: CheckoutSubmission) -> Payment | None:
    """Decide about a payment that waits for its shopper. Returns it if the same means is submitted again, or if it
    turns out to be approved; None if it was withdrawn and this submission may go on. Raises RequestRefusedError while
    its result is unknown."""
    if submission.max_amount is not None and latest.amount > submission.max_amount:
        raise RequestRefusedError(CONCURRENT_UPDATE_CODE, more="more is being paid than the form shows: see the state")
    latest.merchant, latest.channel = row.merchant, row.channel
    request = _build_request(row, submission)
    if _is_same_attempt(latest, request):
        return latest
    ended = shopper_return.withdraw_payment(latest, None)
    if ended.status == Status.DECLINED:
        return None
    if ended.status == Status.PENDING:
        raise RequestRefusedError(
            CONCURRENT_UPDATE_CODE,
            more="the payment begun elsewhere cannot be taken back yet; try again soon",
        )
    return ended


def _is_same_attempt(latest: Payment, request: PaymentRequest) -> bool:
    """True for a double click, or the same means again: the shopper continues the existing payment."""
    if latest.brand != request.brand or latest.registration != request.registration:
        return False
    if request.means is None or latest.means_fingerprint is None:
        return request.means is None and latest.means_fingerprint is None
    if not current_vault().matches(request.means.account, latest.means_fingerprint):
        return False
    # A date that the shopper corrects is another attempt: the payment that waits has the wrong one.
    if _read_expiry(load_payment_means(latest)) != _read_expiry(request.means):
        return False
    waiting = Suspension.objects.filter(pk=latest.pk).first()
    if waiting is None:
        return False
    held = current_vault().open(waiting.secrets_sealed, latest.id) if waiting.secrets_sealed is not None else None
    means = request.means
    if isinstance(means, Card) and read_private_facts(latest.answer).attempt >= STEP_UP_ATTEMPT:
        means = replace(means, cvv=None)  # that of the payment is gone with the soft decline (docs/decisions/0147)
    now = pack_one_time_secrets(means, request.parameters.secrets)
    return (held or Secret("")) == (now or Secret(""))


def _read_expiry(means: Means | None) -> tuple[str, str]:
    """Month and year of a card's expiry date; empty for a means without one."""
    return getattr(means, "expiry_month", ""), getattr(means, "expiry_year", "")

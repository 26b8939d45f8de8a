"""One payment per checkout, however often and from however many tabs it is submitted.

An attempt begins in the statement that raises the checkout's version and names its payment; of two that read the same
checkout one begins. Whether another may follow is told by that payment alone: after a decline it may; while it is being
made or in doubt it may not; one that waits for its shopper is taken back first, on the word of whoever was asked.
Source: Part A, What the service does, 8; Events, 2; decisions, section 7.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from checkout import cards, session
from checkout.choice import refuse_what_is_not_offered
from checkout.form import Form, chosen, offered, put_together
from checkout.models import Checkout, ResultCall
from gateway import clock
from gateway.catalogue import conditions, structures
from gateway.catalogue.conditions.situation import STORED_CARD
from gateway.catalogue.endpoints import REGISTER
from gateway.catalogue.parse import Catalogue, Parameters
from gateway.models import Payment, Status, Suspension
from gateway.payments import registrations, resume
from gateway.payments.intake import Stored, facts_of, first_payment
from gateway.payments.means import one_time_secrets
from gateway.payments.process import Overtaken, process
from gateway.payments.refusal import Refused
from gateway.payments.request import Idempotency, PaymentRequest, Trace
from gateway.rows import Write
from gateway.secret import Secret
from gateway.vault import vault

_STORE: Final = Catalogue(
    REGISTER.structures[1:],
    tuple(rule for rule in REGISTER.rules if rule not in conditions.CUSTOMER_NAMES),
    elsewhere=structures.KNOWN_STRUCTURES,
)
"""What a checkout that only stores a means takes: what a registration does, without a name being demanded (D28)."""
MOST_ATTEMPTS: Final = 20
"""Declined cards one checkout may see: who tries more is not shopping."""
TOO_MANY: Final = "700.500.001"
MOST_TRIES: Final = 20
"""How often a submission reads its checkout again; each try lost means that another one changed it."""
CALLED_AFTER: Final = timedelta(minutes=29)
"""From the checkout's creation to the call of a merchant who has not fetched the result."""
AT_LEAST: Final = timedelta(seconds=10)
"""From a payment's start to that call."""
BEFORE_THE_END: Final = timedelta(seconds=3)
"""The call comes while the result can still be fetched, however late the payment was started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A form that somebody submitted, and where it came from."""

    form: Form
    trace: Trace
    idempotency: Idempotency | None = None


def pay(row: Checkout, submission: Submission) -> Payment:
    """Pay the checkout and return its payment as it then stands: this submission's, or the one that is there already.

    Raises Invalid and Refused; then this submission made no payment.
    """
    public_id = row.public_id
    for _ in range(MOST_TRIES):
        standing = row.payment
        if standing is None or standing.status == Status.DECLINED:
            request = _request(row, submission)
            _let_go_of_its_number(row)
            try:
                return process(request)
            except Overtaken:
                pass
        elif standing.status != Status.PENDING:
            return standing
        elif (settled := _standing(row, standing, submission)) is not None:
            return settled
        row = session.find_open(public_id)
    raise Refused(session.IN_PROGRESS)


def _request(row: Checkout, submission: Submission) -> PaymentRequest:
    """The payment that this submission asks for. Raises Invalid and Refused."""
    if row.attempts >= MOST_ATTEMPTS:
        raise Refused(TOO_MANY, more=f"{MOST_ATTEMPTS} payments were tried")
    now = clock.now(row.merchant)
    parameters, stored = _whole(row, submission.form, now)
    request = first_payment(
        parameters, merchant=row.merchant, channel=row.channel, now=now, trace=submission.trace,
        idempotency=submission.idempotency, stored=stored,
        resource_path=f"/v1/checkouts/{row.public_id}/{row.kind}",
    )  # fmt: skip
    refuse_what_is_not_offered(row, request)
    return replace(request, alongside=_claim(row, request))


def _whole(row: Checkout, form: Form, now: datetime) -> tuple[Parameters, Stored | None]:
    """The parameters, and the stored means that the shopper chose of those offered."""
    prepared, facts, masks = session.values_of(row), facts_of(row.channel, now), row.channel.mask_card_data
    if row.kind == Checkout.Kind.REGISTRATION:
        prepared.pop("createRegistration", None)
        return put_together(prepared, form, facts, catalogue=_STORE, masks=masks).parameters, None
    found = cards.chosen_card(row, chosen(form)) if chosen(form) in offered(prepared) else None
    if found is not None and found.means == "card":
        facts |= {STORED_CARD, f"registration: {found.brand}"}
    parameters = put_together(prepared, form, facts, masks=masks).parameters
    return parameters, registrations.stored_means(found, parameters, now) if found is not None else None


def _claim(row: Checkout, request: PaymentRequest) -> Callable[[Write], None]:
    """The checkout names its new payment, if it still is as it was read; and its merchant will have to be called."""

    def write(write: Write) -> None:
        write.update(
            row,
            {"payment_id": request.payment, "attempts": row.attempts + 1, "version": row.version + 1,
             "fetched_at": None},
            expecting={"version": row.version},
        )  # fmt: skip
        write.delete(ResultCall, {"checkout_id": row.id})
        if (request.parameters.get("shopperResultUrl") or "").lower().startswith(("http://", "https://")):
            write.insert(
                ResultCall, payment_id=request.payment, checkout_id=row.id,
                due_at=min(
                    max(row.created_at + CALLED_AFTER, request.now + AT_LEAST),
                    max(row.expires_at - BEFORE_THE_END, request.now),
                ),
            )  # fmt: skip

    return write


def _let_go_of_its_number(row: Checkout) -> None:
    """Where a channel refuses a second payment with one merchantTransactionId, a declined attempt of this checkout is
    no first."""
    if row.channel.refuse_duplicates and row.payment is not None and row.payment.duplicate_guard is not None:
        Payment.objects.filter(pk=row.payment.pk, status=Status.DECLINED).update(duplicate_guard=None)


def _standing(row: Checkout, standing: Payment, submission: Submission) -> Payment | None:
    """What stands when a payment waits for its shopper: itself, for the same means again; None when it was taken back
    and this submission may go on. Raises Refused while nobody can tell how it went elsewhere."""
    standing.merchant, standing.channel = row.merchant, row.channel
    request = _request(row, submission)
    if _is_the_same(standing, request):
        return standing
    ended = resume.withdraw(standing, None)
    if ended.status == Status.DECLINED:
        return None
    if ended.status == Status.PENDING:
        raise Refused(session.IN_PROGRESS, more="the payment begun elsewhere cannot be taken back yet; try again soon")
    return ended


def _is_the_same(standing: Payment, request: PaymentRequest) -> bool:
    """A double click, or the same way again: the shopper goes on where they were."""
    if standing.brand != request.brand or standing.registration != request.registration:
        return False
    if request.means is None or standing.means_fingerprint is None:
        return request.means is None and standing.means_fingerprint is None
    if not vault().matches(request.means.account, standing.means_fingerprint):
        return False
    waiting = Suspension.objects.filter(pk=standing.pk).first()
    if waiting is None:
        return False
    held = vault().open(waiting.secrets_sealed, standing.id) if waiting.secrets_sealed is not None else None
    now = one_time_secrets(request.means)
    return (held or Secret("")) == (now or Secret(""))

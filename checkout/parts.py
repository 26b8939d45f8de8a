"""Parts of a checkout's amount that payments hold until the rest is paid, in the same form and with other means.

A payment of the rest begins in the statement that increments the checkout's version and writes down which payments
hold parts and what is missing; giving the parts back increments it, too. So of two tabs one pays the rest, and none
begins to while the parts are being given back: parts and what is asked for never exceed the amount. Source:
docs/decisions/0129.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q

from checkout.models import Checkout
from gateway.catalogue.parse import InvalidParametersError, ParameterError
from gateway.connectors.means import Card
from gateway.core import brands, clock
from gateway.core.money import format_amount
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE
from gateway.db.statement import WriteStatement
from gateway.models import Channel, Payment, Status, Suspension
from gateway.payments import held_parts, store
from gateway.payments.held_parts import is_held
from gateway.payments.job_hooks import JOB_PREFIX
from gateway.payments.payment_request import PartCollection, PaymentRequest
from gateway.payments.refusal import RequestRefusedError
from gateway.payments.states import PaymentTransitionError
from gateway.vault.sealing import current_vault

REST_FORM_KIND: Final = "card"
"""How a form shows the brands that may pay the rest: a bank's debit is final later than a part is held, and a wallet's
sheet asks for an amount of the page's."""
REST_RETRY_DELAY: Final = timedelta(minutes=1)
"""When a part is looked at again whose rest is being paid."""
MAX_GIVE_BACK_TRIES: Final = 5
_WHOLE_ONLY: Final = (JOB_PREFIX, "marketPlace.sellers[")
"""Beginnings of parameters that belong to one payment of the whole amount: a subscription that begins with it, and the
shares of its sellers."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAmount:
    """What is held of a checkout's amount. ``parts``: the payments that hold it, oldest first; ``rest``: what is
    missing."""

    parts: Sequence[Payment]
    rest: Decimal


def find_held_amount(row: Checkout) -> HeldAmount | None:
    """What is held of the amount; None where nothing is, once all of it is paid, or while it is being given back. It
    takes a query only where a payment of the rest was begun."""
    parts = _load_payments(row.parts) if row.rest is not None else []
    if row.payment is not None and is_held(row.payment):
        parts.append(row.payment)
    # They end together: where one is held no longer, the rest was paid, or they were given back since the row was read.
    if not parts or not all(is_held(one) for one in parts):
        return None
    return HeldAmount(parts=parts, rest=Decimal(row.request["amount"]) - held_parts.sum_held(parts))


def is_part_in_doubt(row: Checkout, held: HeldAmount | None) -> bool:
    """Whether a part of a checkout without a result is being given back, or is held and cannot be counted: until it is
    known it is money of the shopper's, and the whole amount must not be asked for beside it. ``held``: what is held.
    It takes a query only where there are parts that are not."""
    if held is not None or row.payment is None or not (row.parts or is_held(row.payment)):
        return False
    made: bool = Payment.objects.filter(pk__in=[*row.parts, row.payment.pk]).exclude(status=Status.DECLINED).exists()
    return made


def check_nothing_is_given_back(row: Checkout, held: HeldAmount | None) -> None:
    """Raises RequestRefusedError while a part of the checkout is in doubt."""
    if is_part_in_doubt(row, held):
        raise RequestRefusedError(CONCURRENT_UPDATE_CODE, more="what was reserved is being given back; try again soon")


def resolve_collection(row: Checkout, held: HeldAmount | None, request: PaymentRequest) -> PartCollection | None:
    """What becomes of an approval in part of a payment of the checkout; None where its channel does not collect parts.
    A wallet's card, and what only the whole amount can pay, has to be approved in full.

    Raises InvalidParametersError for a means that cannot pay a rest.
    """
    takes_part = isinstance(request.means, Card) and request.wallet_token is None and not _has_whole_only(request)
    is_first_payment = row.kind == Checkout.Kind.PAYMENT and request.payment_type in ("DB", "PA")
    if held is not None and not (takes_part and is_first_payment):
        message = "is no card of a DB or PA: the rest of an amount that is held in part is paid with another card"
        raise InvalidParametersError(
            [ParameterError(name="paymentBrand", value=request.brand, message=message, known=True)]
        )
    if not is_first_payment:
        return None
    if held is None and row.channel.partial_approvals != Channel.PartialApprovals.COLLECT:
        return None
    earlier = tuple(one.id for one in held.parts) if held is not None else ()
    return PartCollection(
        until=row.expires_at,
        earlier=earlier,
        takes_part=takes_part and len(earlier) < held_parts.MAX_HELD_PARTS,
    )


def _has_whole_only(request: PaymentRequest) -> bool:
    return any(name.startswith(_WHOLE_ONLY) for name in request.parameters.values)


def find_part_of_same_means(held: HeldAmount, request: PaymentRequest) -> Payment | None:
    """The payment that holds a part of the same card as ``request``: a card has no rest to give."""
    if request.means is None:
        return None
    vault = current_vault()
    for one in held.parts:
        if one.means_fingerprint is not None and vault.matches(request.means.account, one.means_fingerprint):
            return one
    return None


def list_checkout_changes(held: HeldAmount | None) -> dict[str, Any]:
    """The columns of the checkout as a payment begins."""
    if held is None:
        return {"parts": [], "rest": None}
    return {"parts": [one.id for one in held.parts], "rest": held.rest}


def prolong_parts(write: WriteStatement, row: Checkout, held: HeldAmount, now: datetime) -> None:
    """Hold the parts on while the rest is paid."""
    deadline = min(now + held_parts.PART_HOLD_TIME, row.expires_at)
    for one in held.parts:
        write.update_related(Suspension, {"deadline": deadline}, {"payment_id": one.id})


def render_held_amount(row: Checkout, held: HeldAmount | None) -> dict[str, Any] | None:
    """What is held, for the checkout's page: brand and last digits of each card, its amount, and the rest."""
    if held is None:
        return None
    return {
        "currency": row.request["currency"],
        "rest": format_amount(held.rest),
        "parts": [
            {
                "brand": one.brand,
                "label": brands.PAYMENT_BRANDS[one.brand].label,
                "last4": one.answer.get("card", {}).get("last4Digits", ""),
                "amount": format_amount(held_parts.get_held_amount(one).amount),
            }
            for one in held.parts
        ],
    }


# --- giving back --------------------------------------------------------------------------------------------------


def give_parts_back(row: Checkout) -> bool:
    """Give all parts of a checkout back: their payments are in doubt until recovery has voided them, then declined.
    False if nothing is held, the rest is being paid, or the checkout was changed since it was read: nothing was
    written.
    """
    if _is_rest_being_paid(row):
        return False
    made = [*_load_payments(row.parts), *([row.payment] if row.payment is not None else [])]
    held = [one for one in made if is_held(one)]  # one that ended otherwise keeps no other
    if not held:
        return False
    now = clock.merchant_now(row.merchant)
    last = held[-1]
    earlier = [one.id for one in made if one is not last and (is_held(one) or one.id in row.parts)]
    try:
        with transaction.atomic():
            write = WriteStatement()
            changes = {"payment_id": last.id, "parts": earlier, "rest": None}
            write.update(row, changes | {"version": row.version + 1}, expecting={"version": row.version})
            if not write.run():
                return False
            for part in held:
                part.merchant, part.channel = row.merchant, row.channel
                store.complete_payment(part, held_parts.begin_giving_back(part, now), recover_at=clock.real_now())
    except PaymentTransitionError:
        return False
    return True


def expire_part(payment: Payment) -> bool:
    """Give the parts of the checkout of a held payment back whose time has passed; while the rest is being paid it
    waits. Returns whether it is given back."""
    for _ in range(MAX_GIVE_BACK_TRIES):
        row = (
            Checkout.objects.select_related("merchant", "channel", "payment")
            .filter(Q(payment=payment) | Q(pk=find_checkout_id(payment)))
            .first()
        )
        if row is None or payment.id not in (row.payment_id, *row.parts):
            log.error("held_part_without_checkout", payment=payment.id.hex)
            return False
        if _is_rest_being_paid(row):
            again = clock.merchant_now(row.merchant) + REST_RETRY_DELAY
            Suspension.objects.filter(pk=payment.pk).update(lease_until=None)
            # The payment of the rest may have written a later time meanwhile.
            Suspension.objects.filter(pk=payment.pk, deadline__lt=again).update(deadline=again)
            return False
        if give_parts_back(row):
            return True
    return False


def _is_rest_being_paid(row: Checkout) -> bool:
    """Whether the checkout's last payment has no end yet, and is not one that waits for the rest itself."""
    last = row.payment
    return last is not None and last.status != Status.DECLINED and not is_held(last)


def find_checkout_id(payment: Payment) -> UUID | None:
    """The id of the checkout that a payment was made in, from the path at which its result is fetched."""
    step = payment.resource_path.split("/")
    try:
        return UUID(step[3].split("-")[0]) if len(step) > 3 and step[2] == "checkouts" else None
    except ValueError:
        return None


def _load_payments(idents: Sequence[UUID]) -> list[Payment]:
    found = Payment.objects.in_bulk(idents)
    return [found[ident] for ident in idents]

"""Reads what became of a payment from the gateway, and writes it into pretix's order.

Called after the shopper's return, by webhooks and periodically; none of these is believed. The state is made of the
gateway's records alone, so events may come twice, late or in another order.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from decimal import Decimal

from django.db import transaction
from django.utils.timezone import now
from django.utils.translation import gettext as _
from pretix.base.models import OrderPayment, OrderRefund, Quota
from pretix.base.payment import PaymentException
from pretix.base.services.locking import LockTimeoutException
from tollhouse import ApiError, AuthenticationError, NoAnswerError, RateLimitError, ServerError, TollhouseError
from tollhouse.models import Listed, Payment

log = logging.getLogger(__name__)

NOTHING_FOUND = "700.400.580"
_OPEN = (OrderPayment.PAYMENT_STATE_CREATED, OrderPayment.PAYMENT_STATE_PENDING)
_DONE = (OrderPayment.PAYMENT_STATE_CONFIRMED, OrderPayment.PAYMENT_STATE_REFUNDED)
_ACCEPTED = ("approved", "review", "pending", "chargeback")
"""Outcomes of refunds that count: an acquirer with batches answers pending, and does it."""
TRANSIT_LASTS = timedelta(hours=1)
"""A refund without an answer, and without a record by then, was not made."""


class GatewayAwayError(PaymentException):
    """The gateway does not answer, or refuses whatever this event asks: there is no point in asking more now."""


@contextmanager
def errors_as_payment_exceptions() -> Iterator[None]:
    """The client's errors as pretix expects them."""
    try:
        yield
    except NoAnswerError as error:
        log.warning("no answer of the gateway: %s", error)  # not shown: it tells about the network that pretix is in
        raise GatewayAwayError(_("The payment gateway did not answer. Please try again.")) from None
    except TollhouseError as error:
        away = isinstance(error, AuthenticationError | RateLimitError | ServerError)
        kind = GatewayAwayError if away else PaymentException
        raise kind(_("The payment gateway reported an error: {error}").format(error=error)) from None


def read_records(payment: OrderPayment) -> list[Listed]:
    """The payment's records at the gateway with its refunds and chargebacks, the oldest first. Raises
    PaymentException."""
    provider = payment.payment_provider
    if provider is None:
        raise PaymentException("the plug-in is switched off for this event")
    gateway = provider.build_client()
    with errors_as_payment_exceptions():
        try:
            found = gateway.transactions.list(
                merchantTransactionId=payment.global_id, includeLinkedTransactions=True, limit=500
            )
        except ApiError as error:
            if error.code == NOTHING_FOUND:
                return []
            raise
    return sorted(found.records, key=lambda one: one.id)  # ids rise with time


def find_debit(records: list[Listed], *outcomes: str) -> Listed | None:
    """The oldest debit with one of the outcomes."""
    debits = (one for one in records if one.paymentType == "DB" and "referencedId" not in one)
    return next((one for one in debits if one.outcome in outcomes), None)


def read_result(payment: OrderPayment, *, returned: bool = False) -> None:
    """Bring a payment to the state that it has at the gateway. ``returned``: its shopper has come back, so a decline is
    final, as that of a payment that was pending; else they may still pay on the page. Raises PaymentException."""
    records = read_records(payment)
    paid = find_debit(records, "approved", "review")
    if paid is not None:
        _write_paid(payment, paid)
        settle_refunds(payment, records, paid)
        _write_refunds(payment, records, paid)
        return
    if find_debit(records, "pending") is not None:
        _write_pending(payment)
        return
    declined = find_debit(records[::-1], "declined")
    over = returned or payment.state == OrderPayment.PAYMENT_STATE_PENDING
    if over and declined is not None and payment.state in _OPEN:
        payment.fail(info=payment.info, log_data={"code": declined.code, "message": declined.result.description})


def _write_paid(payment: OrderPayment, paid: Listed) -> None:
    if payment.state in _DONE:
        return
    payment.info_data = {**payment.info_data, "id": paid.id, "code": paid.code}
    if paid.amount != payment.amount or paid.currency != payment.order.event.currency:
        told = f"{paid.amount} {paid.currency} was paid instead of {payment.amount} {payment.order.event.currency}"
        payment.save(update_fields=["info"])  # fail() leaves it out if a decline came before
        payment.fail(info=payment.info, log_data={"id": paid.id, "message": told})
        return
    try:
        payment.confirm()
    except Quota.QuotaExceededException:
        pass  # the payment is confirmed; pretix shows the order to its staff
    except LockTimeoutException:
        raise PaymentException(_("The order is being changed. Please try again.")) from None


def _write_pending(payment: OrderPayment) -> None:
    with transaction.atomic():
        row = OrderPayment.objects.select_for_update().get(pk=payment.pk)
        if row.state == OrderPayment.PAYMENT_STATE_CREATED:
            row.state = OrderPayment.PAYMENT_STATE_PENDING
            row.save(update_fields=["state"])
    payment.refresh_from_db()


def settle_refunds(payment: OrderPayment, records: list[Listed], paid: Listed) -> list[OrderRefund]:
    """Bring pretix's own refunds to the state of the gateway's record with their reference; returns those that were
    made and that pretix did not know as done: their answer was lost, or somebody cancelled them meanwhile."""
    sent = {
        _read(one, "merchantTransactionId"): one
        for one in sorted(records, key=lambda one: one.outcome in _ACCEPTED)  # one that was made is taken
        if one.paymentType == "RF" and _read(one, "referencedId") == paid.id
    }
    made = []
    for refund in OrderRefund.objects.filter(payment=payment, provider=payment.provider):
        record = sent.get(refund.global_id)
        if record is not None and record.outcome in _ACCEPTED:
            if write_refund_done(refund, record):
                made.append(refund)
        elif record is not None or refund.created < now() - TRANSIT_LASTS:
            _write_refund_failed(refund)
    if made:
        payment.refresh_from_db()
    return made


def write_refund_done(refund: OrderRefund, record: Listed | Payment) -> bool:
    """Write a refund that the gateway made; False if it was done already."""
    with transaction.atomic():
        if _lock(refund) == OrderRefund.REFUND_STATE_DONE:
            return False
        refund.info_data = {"id": record.id, "code": record.code}
        refund.done()
    return True


def write_in_transit(refund: OrderRefund) -> None:
    """Mark a refund as in transit after a request without an answer, unless a webhook has settled it meanwhile."""
    with transaction.atomic():
        if _lock(refund) == OrderRefund.REFUND_STATE_CREATED:
            refund.state = OrderRefund.REFUND_STATE_TRANSIT
            refund.save(update_fields=["state"])


def _write_refund_failed(refund: OrderRefund) -> None:
    with transaction.atomic():
        if _lock(refund) == OrderRefund.REFUND_STATE_TRANSIT:
            refund.state = OrderRefund.REFUND_STATE_FAILED
            refund.save(update_fields=["state"])
            data = {"local_id": refund.local_id, "provider": refund.provider, "error": "the gateway did not make it"}
            refund.order.log_action("pretix.event.order.refund.failed", data)


def _lock(refund: OrderRefund) -> str:
    """Read a refund's state anew, its row locked."""
    OrderRefund.objects.select_for_update().get(pk=refund.pk)
    refund.refresh_from_db()
    return str(refund.state)


def _write_refunds(payment: OrderPayment, records: list[Listed], paid: Listed) -> None:
    """Refunds, reversals and chargebacks that were not begun here: pretix asks its staff what to do with the order. Of
    a payment that pretix never took as paid, there is nothing to take from the order."""
    if payment.state not in _DONE:
        return
    ours = f"{payment.global_id.rpartition('-P-')[0]}-R-"
    with transaction.atomic():
        OrderPayment.objects.select_for_update().get(pk=payment.pk)
        known = {one.info_data.get("id") for one in OrderRefund.objects.filter(payment=payment)}
        for one in records:
            if one.paymentType not in ("RF", "RV", "CB") or one.outcome not in _ACCEPTED or one.id in known:
                continue
            if _read(one, "referencedId") != paid.id or _read(one, "merchantTransactionId").startswith(ours):
                continue
            payment.create_external_refund(
                amount=one.amount or Decimal(0), info=json.dumps({"id": one.id, "type": one.paymentType})
            )


def _read(record: Listed, name: str) -> str:
    """A field that the client's model does not name."""
    return str(record[name]) if name in record else ""

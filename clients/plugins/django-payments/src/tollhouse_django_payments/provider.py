"""The provider: a checkout with a hosted payment page; the result is read from the gateway, server to server.

Neither the shopper's return nor a webhook is believed: both only make the provider read the payment's records. So
events may come twice, late or in another order, and refunds made in the gateway's back office arrive as well.
Interface: django-payments, BasicProvider (https://django-payments.readthedocs.io/en/latest/backends.html).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any, NoReturn

from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from payments import FraudStatus, PaymentError, PaymentStatus, RedirectNeeded, get_payment_model
from payments.core import BasicProvider, provider_factory
from tollhouse import (
    Answer,
    ApiError,
    AuthenticationError,
    NotFoundError,
    ParameterErrors,
    Tollhouse,
    TollhouseError,
    WebhookVerificationError,
    webhooks,
)
from tollhouse.models import Listed

from tollhouse_django_payments.chain import ChainState, sum_up_chain

log = logging.getLogger(__name__)

_CENT = Decimal("0.01")
_NOTHING_FOUND = "700.400.580"
_PAID_ALREADY = "200.300.404"
_BEING_PAID = "800.120.402"
TIMEOUT_S = 20.0
"""One try of a request, unless ``client`` has a ``timeout``: the shopper waits for it, and the row is locked."""
_OPEN = (PaymentStatus.WAITING, PaymentStatus.INPUT)
_PAID = (PaymentStatus.CONFIRMED, PaymentStatus.PREAUTH, PaymentStatus.REFUNDED)
_WRITTEN = ("status", "message", "transaction_id", "captured_amount", "fraud_status", "fraud_message", "extra_data")


class TollhouseProvider(BasicProvider):
    """Pays on the hosted payment page of a gateway.

    ``base_url``: https://gateway.example; ``token``, ``entity_id``: of the channel, from the gateway's back office;
    ``webhook_secrets``: of the endpoint that has the address /payments/process/VARIANT/, several while one is changed;
    ``capture``: False only reserves the amount (PA), and `payment.capture()` takes it; ``client``: options of
    `tollhouse.Tollhouse`, such as ``timeout``. Raises ValueError for a setting that is missing, no address, or no
    webhook secret.
    """

    def __init__(
        self,
        *,
        base_url: str,
        token: str,
        entity_id: str,
        webhook_secrets: str | Sequence[str] = (),
        capture: bool = True,
        client: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(capture=capture)
        if not entity_id:
            raise ValueError("entity_id is empty")
        self._secrets = [webhook_secrets] if isinstance(webhook_secrets, str) else list(webhook_secrets)
        for secret in self._secrets:
            _check_secret(secret)
        options = {"timeout": TIMEOUT_S, **(client or {})}
        self._gateway = Tollhouse(base_url, token=token, entity_id=entity_id, **options)

    # --- the shopper's way -------------------------------------------------------------------------------------------

    def get_form(self, payment: Any, data: Any = None) -> NoReturn:
        """Lead the shopper to the payment page. Raises RedirectNeeded always, PaymentError if there is no page."""
        if payment.pk is None:
            payment.save()
        state = self.refresh(payment)
        if payment.status in _PAID or state.status == PaymentStatus.WAITING:
            raise RedirectNeeded(payment.get_success_url())
        if payment.status == PaymentStatus.CANCELLED:
            raise RedirectNeeded(payment.get_failure_url())
        page = self._open_page(payment)
        if payment.status != PaymentStatus.INPUT:
            payment.change_status(PaymentStatus.INPUT)
        raise RedirectNeeded(page)

    def process_data(self, payment: Any, request: HttpRequest) -> HttpResponse:
        """The shopper's return (GET), or a webhook (POST)."""
        if request.method == "POST":
            try:
                self._verify_webhook(request)
            except PaymentError:
                return JsonResponse({"error": "not verified"}, status=400)
            # The address names any variant: a payment is what the gateway of its own variant says.
            try:
                own = provider_factory(payment.variant, payment)
            except ValueError:
                # Nobody can read it any more: its webhook would come again for 30 days.
                log.exception("payment %s has a variant without settings: %s", payment.pk, payment.variant)
                return JsonResponse({"status": "ok"})
            if isinstance(own, TollhouseProvider):
                own.refresh(payment)
            return JsonResponse({"status": "ok"})
        return HttpResponseRedirect(self._find_page_after(payment))

    def get_token_from_request(self, payment: Any, request: HttpRequest) -> str:
        """The token of the payment that a webhook is about. Raises PaymentError: ``code`` 400 for a webhook that was
        not made with one of the secrets, 200 where there is nothing to do, so that it does not come again."""
        event = self._verify_webhook(request)
        token = self._find_token(event) if event.type == "PAYMENT" else None
        if token is None:
            raise PaymentError("nothing to do", code=200)
        return token

    # --- the shop's requests -----------------------------------------------------------------------------------------

    def capture(self, payment: Any, amount: Decimal | None = None) -> Decimal:
        """Capture an authorization, wholly or in part; once. Returns what was captured."""
        state = self.refresh(payment)
        if state.captured_amount:  # captured by an earlier request whose answer was lost, or in the back office
            return state.captured_amount
        taken = _to_cents(state.amount if amount is None else amount)
        self._follow_up(
            "capture",
            lambda key: self._gateway.payments.capture(
                state.payment_id, amount=taken, currency=state.currency, idempotency_key=key
            ),
            key=f"{payment.token}-capture-{taken}",
        )
        payment.captured_amount = taken
        payment.save(update_fields=["captured_amount"])
        return taken

    def release(self, payment: Any) -> None:
        """Release an authorization."""
        state = self.refresh(payment)
        if state.status != PaymentStatus.REFUNDED:
            self._reverse(payment, state)

    def refund(self, payment: Any, amount: Decimal | None = None) -> Decimal:
        """Refund wholly or in part. Returns what was refunded. Repeated because no answer came, and the row was not
        saved, it is made once: its reference names what was left before it and how much it takes."""
        known = _to_cents(payment.captured_amount)
        asked = _to_cents(known if amount is None else amount)
        state = self._read_state(payment)
        reference = f"{payment.token}-refund-{known}-{asked}"
        left = asked - state.refunds.get(reference, Decimal(0))
        if asked <= 0 or left > state.captured_amount:
            raise PaymentError(f"{asked} cannot be refunded: {state.captured_amount} {state.currency} is left")
        for one in state.collected:
            part = min(left, one.amount)
            if part > 0:
                self._refund_part(one.id, part, state.currency, reference)
                left -= part
        return asked

    def cancel(self, payment: Any) -> None:
        """Give up a payment that is not paid. Raises PaymentError if it was paid meanwhile. The page stays open until
        the checkout expires: what is paid there later is given back by itself."""
        self.refresh(payment)
        if payment.status in _PAID:
            raise PaymentError("it has been paid: release or refund it")

    # --- what the gateway knows --------------------------------------------------------------------------------------

    def refresh(self, payment: Any) -> ChainState:
        """Read how a payment stands and write it into its row; the signal is sent where the status has changed. Call it
        in a periodic task for payments that stay WAITING or INPUT, if you have no webhooks. Raises PaymentError."""
        with transaction.atomic():
            type(payment)._default_manager.select_for_update().get(pk=payment.pk)
            payment.refresh_from_db(fields=_WRITTEN)
            state = self._read_state(payment)
            if payment.status == PaymentStatus.CANCELLED:
                self._give_back(payment, state)
            elif state.status in _PAID:
                self._write_paid(payment, state)
            elif state.status == PaymentStatus.WAITING and payment.status in (*_OPEN, PaymentStatus.REJECTED):
                _write_status(payment, PaymentStatus.WAITING, state.message)
            elif state.status == PaymentStatus.REJECTED and payment.status == PaymentStatus.WAITING:
                # Its shopper was through with the page. A decline while it is INPUT: they may still pay there.
                _write_status(payment, PaymentStatus.REJECTED, state.message)
        return state

    def _read_state(self, payment: Any) -> ChainState:
        with _errors_as_payment_errors():
            try:
                found = self._gateway.transactions.list(
                    merchantTransactionId=payment.token, includeLinkedTransactions=True, limit=500
                )
            except ApiError as error:
                if error.code == _NOTHING_FOUND:
                    return ChainState()
                raise
        return sum_up_chain(found.records)

    def _write_paid(self, payment: Any, state: ChainState) -> None:
        payment.transaction_id = state.payment_id
        payment.captured_amount = state.captured_amount
        payment.save(update_fields=["transaction_id", "captured_amount"])
        if state.paid_twice:
            log.error("payment %s was paid twice at the gateway: refund one there", payment.pk)
        if state.in_review and payment.fraud_status != FraudStatus.REVIEW:
            payment.change_fraud_status(FraudStatus.REVIEW, state.message)
        if state.amount != Decimal(payment.total) or state.currency != payment.currency:
            message = f"{state.amount} {state.currency} was paid instead of {payment.total} {payment.currency}"
            return _write_status(payment, PaymentStatus.ERROR, message)
        return _write_status(payment, str(state.status), "")

    def _give_back(self, payment: Any, state: ChainState) -> None:
        """What was paid on the page of a cancelled payment."""
        if state.status == PaymentStatus.PREAUTH:
            return self._reverse(payment, state)
        for one in state.collected:
            self._refund_part(one.id, one.amount, state.currency, f"{payment.token}-cancelled")
        return None

    def _reverse(self, payment: Any, state: ChainState) -> None:
        self._follow_up(
            "reversal",
            lambda key: self._gateway.payments.reverse(state.payment_id, idempotency_key=key),
            key=f"{payment.token}-reversal",
        )

    def _refund_part(self, target: str, amount: Decimal, currency: str, reference: str) -> None:
        self._follow_up(
            "refund",
            lambda key: self._gateway.payments.follow_up(
                target,
                paymentType="RF",
                amount=amount,
                currency=currency,
                merchantTransactionId=reference,
                idempotency_key=key,
            ),
            key=f"{reference}-{target}-{amount}",
        )

    def _follow_up(self, name: str, send: Callable[[str], Answer], *, key: str) -> None:
        """Send a capture, refund or reversal. Raises PaymentError unless it is approved, or will be done by a batch."""
        with _errors_as_payment_errors():
            answer = send(key)
            if answer.replayed and answer.outcome == "declined":
                answer = send("")  # an earlier one was declined, and moved nothing
        if answer.outcome not in ("approved", "review", "pending"):
            raise PaymentError(
                f"the {name} was declined: {answer.code}", gateway_message=answer["result"].get("description")
            )

    # --- checkouts ---------------------------------------------------------------------------------------------------

    def _open_page(self, payment: Any) -> str:
        """The address of the payment page. A payment has one open checkout at a time: two might both be paid."""
        amount = _to_cents(payment.total)
        with transaction.atomic(), _errors_as_payment_errors():
            type(payment)._default_manager.select_for_update().get(pk=payment.pk)
            payment.refresh_from_db(fields=["extra_data"])
            known = getattr(payment.attrs, "tollhouse_checkout", None)
            if known is not None:
                try:
                    self._gateway.checkouts.update(known["id"], amount=amount, currency=payment.currency)
                    return str(known["page"])
                except NotFoundError:
                    pass  # it has expired
                except ApiError as error:
                    if isinstance(error, ParameterErrors) or error.code not in (_PAID_ALREADY, _BEING_PAID):
                        raise  # the amount may be an old one
                    return str(known["page"])  # and the page says so
            made = self._create_checkout(
                {
                    "amount": amount,
                    "currency": payment.currency,
                    "paymentType": "DB" if self._capture else "PA",
                    "paymentPage": True,
                    "merchantTransactionId": payment.token,
                    "shopperResultUrl": self.get_return_url(payment),
                },
                describe_shopper(payment),
            )
            payment.attrs.tollhouse_checkout = {"id": made.id, "page": made.paymentPage}
            payment.save(update_fields=["extra_data"])
            return str(made.paymentPage)

    def _create_checkout(self, order: Mapping[str, Any], shopper: Mapping[str, Any]) -> Any:
        """Leave out the shopper's name and address where the gateway refuses them: they only help risk checks."""
        try:
            return self._gateway.checkouts.create(**order, **shopper)
        except ParameterErrors as error:
            if any(one.name.split(".")[0] not in shopper for one in error.errors):
                raise
            log.warning("sent without the shopper's data: %s", error)
            return self._gateway.checkouts.create(**order)

    def _find_page_after(self, payment: Any) -> str:
        """Where the shopper goes next: by what the gateway says, whatever their address says."""
        try:
            state = self.refresh(payment)
        except PaymentError:
            # It may be paid. A webhook, or the next reading, will tell.
            log.exception("the result of payment %s could not be read", payment.pk)
            if payment.status == PaymentStatus.INPUT:
                _write_status(payment, PaymentStatus.WAITING, "")
            return str(payment.get_success_url())
        if state.status == PaymentStatus.REJECTED and payment.status in _OPEN:
            _write_status(payment, PaymentStatus.REJECTED, state.message)
        good = payment.status in (PaymentStatus.CONFIRMED, PaymentStatus.PREAUTH)
        waits = state.status == PaymentStatus.WAITING and payment.status == PaymentStatus.WAITING
        return str(payment.get_success_url() if good or waits else payment.get_failure_url())

    # --- webhooks ----------------------------------------------------------------------------------------------------

    def _verify_webhook(self, request: HttpRequest) -> webhooks.Event:
        try:
            return webhooks.verify(request.body, request.headers, self._secrets)
        except WebhookVerificationError:
            raise PaymentError("not verified", code=400) from None

    def _find_token(self, event: webhooks.Event) -> str | None:
        """The token of our payment: of the event itself, or of the payment that a capture or refund follows."""
        references = [event.payload.get("merchantTransactionId")]
        if event.payload.get("referencedId"):
            chain = self._read_chain(str(event.payload["id"]))
            references += [one["merchantTransactionId"] for one in chain if "merchantTransactionId" in one]
        tokens = [text for text in references if isinstance(text, str) and text]
        return get_payment_model()._default_manager.filter(token__in=tokens).values_list("token", flat=True).first()

    def _read_chain(self, follow_up: str) -> Iterable[Listed]:
        """The records around a capture or refund; none if it is of another channel, whose webhooks come here as well
        if the endpoint has no channel."""
        with _errors_as_payment_errors():
            try:
                return self._gateway.transactions.get(follow_up, includeLinkedTransactions=True).records
            except ApiError as error:
                refused = isinstance(error, AuthenticationError) and error.status == 403
                if refused or isinstance(error, NotFoundError) or error.code == _NOTHING_FOUND:
                    return ()
                raise


def describe_shopper(payment: Any) -> dict[str, Any]:
    """``customer`` and ``billing`` of a checkout; what the payment does not have is left out."""
    customer = {
        "givenName": payment.billing_first_name or None,
        "surname": payment.billing_last_name or None,
        "email": payment.billing_email or None,
    }
    billing = {
        "street1": payment.billing_address_1 or None,
        "street2": payment.billing_address_2 or None,
        "city": payment.billing_city or None,
        "state": payment.billing_country_area or None,
        "postcode": payment.billing_postcode or None,
        "country": payment.billing_country_code or None,
    }
    # The gateway wants a name with any other parameter of a customer.
    named = customer["givenName"] and customer["surname"]
    return {
        name: fields
        for name, fields, wanted in (("customer", customer, named), ("billing", billing, any(billing.values())))
        if wanted
    }


def _check_secret(secret: str) -> None:
    """Raises ValueError for a text that is no webhook secret."""
    with suppress(WebhookVerificationError):  # nothing was sent: only the secret is read
        webhooks.verify(b"", {}, secret)


def _write_status(payment: Any, status: str, message: str) -> None:
    """Write the status; the signal is sent where it has changed."""
    if payment.status != status:
        payment.change_status(status, message)


def _to_cents(amount: Any) -> Decimal:
    """The amount with two decimals. Raises PaymentError for one with more: nothing is rounded."""
    exact = Decimal(amount)
    if exact != exact.quantize(_CENT):
        raise PaymentError(f"{exact} has more than two decimals")
    return exact.quantize(_CENT)


@contextmanager
def _errors_as_payment_errors() -> Iterator[None]:
    try:
        yield
    except TollhouseError as error:
        raise PaymentError(str(error), gateway_message=getattr(error, "description", None)) from None

"""The payment provider.

Interface: pretix, BasePaymentProvider (https://docs.pretix.eu/dev/development/api/payment.html).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Any

from django import forms
from django.conf import settings
from django.core.validators import URLValidator
from django.db import transaction
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from pretix.base.forms import SecretKeySettingsField
from pretix.base.models import OrderPayment, OrderRefund
from pretix.base.payment import BasePaymentProvider, PaymentException
from pretix.base.views.redirect import safelink
from pretix.multidomain.urlreverse import eventreverse_absolute
from tollhouse import ApiError, ConflictError, NoAnswerError, NotFoundError, ParameterErrors, ServerError, Tollhouse

from pretix_tollhouse.results import (
    errors_as_payment_exceptions,
    find_debit,
    read_records,
    read_result,
    settle_refunds,
    write_in_transit,
    write_refund_done,
)
from pretix_tollhouse.transport import GuardedTransport

log = logging.getLogger(__name__)

RETURN_TAG = "plugins:tollhouse"
"""What the hash in the shopper's return address is made for."""
TIMEOUT_S = 20.0
"""One request; it is not repeated: the shopper waits for it."""
_PAID_ALREADY = "200.300.404"
_BEING_PAID = "800.120.402"


class TollhouseProvider(BasePaymentProvider):
    """Pays on the hosted payment page of a gateway. Settings: the gateway's base address, a token and the entityId of a
    channel; a webhook secret, if there is an endpoint."""

    identifier = "tollhouse"
    verbose_name = "Tollhouse"
    public_name = _("Card and other means of payment")
    abort_pending_allowed = False

    @property
    def settings_form_fields(self) -> OrderedDict[str, forms.Field]:
        """The settings form."""
        hook = eventreverse_absolute(self.event, "plugins:pretix_tollhouse:webhook")
        own = [
            (
                "base_url",
                forms.URLField(
                    label=_("Base address of the gateway"),
                    help_text="https://gateway.example",
                    validators=[] if _is_private_allowed() else [URLValidator(schemes=["https"])],
                ),
            ),
            ("token", SecretKeySettingsField(label=_("Access token"))),
            ("entity_id", forms.RegexField(r"^[0-9a-f]{32}$", label="entityId", help_text=_("Of the channel."))),
            (
                "webhook_secret",
                SecretKeySettingsField(
                    label=_("Webhook secret"),
                    required=False,
                    help_text=format_html(_("Optional. Make an endpoint with the address {address}"), address=hook),
                ),
            ),
        ]
        return OrderedDict([*own, *super().settings_form_fields.items()])

    @property
    def test_mode_message(self) -> str:
        """Whether money moves is the gateway's matter: of its test environment or its live one."""
        return _("Whether real money is charged depends on the payment gateway that this event uses.")

    def build_client(self) -> Tollhouse:
        """The client. Raises PaymentException for settings that are missing."""
        base_url = self.settings.get("base_url") or ""
        if not _is_private_allowed() and not base_url.startswith("https://"):
            raise PaymentException(_("The base address must begin with https://"))
        try:
            return Tollhouse(
                base_url,
                token=self.settings.get("token") or "",
                entity_id=self.settings.get("entity_id") or "",
                timeout=TIMEOUT_S,
                max_retries=0,
                transport=None if _is_private_allowed() else GuardedTransport(),
            )
        except ValueError as error:
            raise PaymentException(str(error)) from None

    def payment_form_render(self, request: HttpRequest, total: Any, order: Any = None) -> str:
        """Said when the means is chosen."""
        return format_html("<p>{}</p>", _("You pay on the payment page after you have confirmed your order."))

    def checkout_confirm_render(self, request: HttpRequest, order: Any = None, info_data: Any = None) -> str:
        """Said before the order is confirmed."""
        return self.payment_form_render(request, None)

    def payment_is_valid_session(self, request: HttpRequest) -> bool:
        """Nothing is asked before the payment page."""
        return True

    # --- the payment -------------------------------------------------------------------------------------------------

    def execute_payment(self, request: HttpRequest, payment: OrderPayment) -> str | None:
        """Make a checkout; the address of its payment page, or None if the payment is made. Raises PaymentException."""
        if "checkout" in payment.info_data:  # the shopper went back and pays again
            read_result(payment)
            if payment.state != OrderPayment.PAYMENT_STATE_CREATED:
                return None
        page = self._open_page(payment)
        # The payment page is shown in no frame; pretix's widget is one.
        return str(safelink(page, framebreak=True)) if request.session.get("iframe_session") else page

    @transaction.atomic
    def _open_page(self, payment: OrderPayment) -> str:
        """One open checkout for a payment: another would be paid as well."""
        OrderPayment.objects.select_for_update().get(pk=payment.pk)
        payment.refresh_from_db(fields=["info"])
        gateway, known = self.build_client(), payment.info_data.get("checkout")
        order = {"amount": payment.amount, "currency": self.event.currency}
        with errors_as_payment_exceptions():
            if known is not None:
                try:
                    gateway.checkouts.update(known["id"], **order)
                    return str(known["page"])
                except NotFoundError:
                    pass  # it has expired
                except ApiError as error:
                    if isinstance(error, ParameterErrors) or error.code not in (_PAID_ALREADY, _BEING_PAID):
                        raise  # the amount may be an old one
                    return str(known["page"])  # and the page says so
            made = gateway.checkouts.create(
                **order,
                paymentType="DB",
                paymentPage=True,
                merchantTransactionId=payment.global_id,
                merchantInvoiceId=payment.global_id.rpartition("-P-")[0],
                locale=payment.order.locale[:2],
                shopperResultUrl=eventreverse_absolute(
                    self.event,
                    "plugins:pretix_tollhouse:return",
                    kwargs={
                        "order": payment.order.code,
                        "hash": payment.order.tagged_secret(RETURN_TAG),
                        "payment": payment.pk,
                    },
                ),
            )
        payment.info_data = {**payment.info_data, "checkout": {"id": made.id, "page": made.paymentPage}}
        payment.save(update_fields=["info"])
        return str(made.paymentPage)

    def payment_pending_render(self, request: HttpRequest, payment: OrderPayment) -> str:
        """Said in the order while the payment is open."""
        if payment.state == OrderPayment.PAYMENT_STATE_PENDING:
            return format_html("<p>{}</p>", _("Your payment is being processed. Please do not pay again."))
        return ""

    # --- refunds -----------------------------------------------------------------------------------------------------

    def payment_refund_supported(self, payment: OrderPayment) -> bool:
        """Yes."""
        return True

    payment_partial_refund_supported = payment_refund_supported

    def execute_refund(self, refund: OrderRefund) -> None:
        """Refund at the gateway. Its reference is the refund's. Without an answer it stays in transit until its record
        is read. Raises PaymentException; also, and nothing is sent, if an earlier one of this amount, which pretix
        did not take for done, turns out to be made."""
        records = read_records(refund.payment)
        paid = find_debit(records, "approved", "review")
        if paid is None:
            raise PaymentException(_("The gateway knows no payment to refund."))
        settled = settle_refunds(refund.payment, records, paid)
        if refund in settled:
            refund.refresh_from_db()
            return
        if refund.amount in [one.amount for one in settled]:
            raise PaymentException(_("An earlier refund of this amount was made after all. Nothing was sent now."))
        with errors_as_payment_exceptions():
            try:
                answer = self.build_client().payments.follow_up(
                    paid.id,
                    paymentType="RF",
                    amount=refund.amount,
                    currency=self.event.currency,
                    merchantTransactionId=refund.global_id,
                    idempotency_key=refund.global_id,
                )
            except (NoAnswerError, ServerError, ConflictError):  # it may have been made
                log.exception("no answer came for refund %s", refund.full_id)
                write_in_transit(refund)
                return
        if answer.outcome not in ("approved", "review", "pending"):
            raise PaymentException(_("The refund was declined: {code}").format(code=answer.code))
        write_refund_done(refund, answer)

    # --- what the staff sees -----------------------------------------------------------------------------------------

    def payment_control_render(self, request: HttpRequest, payment: OrderPayment) -> str:
        """The gateway's id and result code, in the order's page of the back end."""
        found = payment.info_data
        return format_html("<p>{} {}</p>", found.get("id", ""), found.get("code", ""))

    def api_payment_details(self, payment: OrderPayment) -> dict[str, Any]:
        """For pretix's API."""
        return {"id": payment.info_data.get("id"), "code": payment.info_data.get("code")}

    def matching_id(self, payment: OrderPayment) -> str | None:
        """The gateway's id, as in its settlement files."""
        found: str | None = payment.info_data.get("id")
        return found

    def refund_matching_id(self, refund: OrderRefund) -> str | None:
        """The gateway's id of a refund."""
        found: str | None = refund.info_data.get("id")
        return found


def _is_private_allowed() -> bool:
    """pretix's own setting: whether its servers may be asked to connect to private networks, and without TLS."""
    return bool(getattr(settings, "ALLOW_HTTP_TO_PRIVATE_NETWORKS", False))

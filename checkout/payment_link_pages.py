"""Back-office pages of payment links: a list with what was paid, the form of a new link, and a link's page with its QR
code. A link is closed and never changed. Source: docs/decisions/0083.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget, UnfoldBooleanSwitchWidget

from checkout import payment_links
from checkout.models import Checkout, PaymentLink
from gateway.backoffice.kit.base import MerchantPage
from gateway.backoffice.kit.formatting import build_state_pill, format_money, format_number
from gateway.catalogue.endpoints import CREATE_PAYMENT_LINK_ENDPOINT
from gateway.catalogue.parse import InvalidParametersError
from gateway.catalogue.typed_pairs import ParameterPairs
from gateway.core import clock
from gateway.core.masking import mask_text
from gateway.models import Status
from gateway.payments.request_builder import build_condition_facts

MAX_SHOWN_LINK_PAYMENTS: Final = 50
_STATES: Final = {
    payment_links.ACTIVE_STATE: ("good", gettext_lazy("Open")),
    payment_links.PAID_STATE: ("good", gettext_lazy("Paid")),
    payment_links.EXPIRED_STATE: ("plain", gettext_lazy("Expired")),
    payment_links.DEACTIVATED_STATE: ("plain", gettext_lazy("Closed")),
}
_FIELDS: Final = {
    "description": "link.description",
    "amount": "amount",
    "currency": "currency",
    "payment_type": "paymentType",
    "reference": "merchantTransactionId",
    "reusable": "link.reusable",
    "max_payments": "link.maxPayments",
    "open_amount": "link.openAmount",
    "min_amount": "link.minAmount",
    "max_amount": "link.maxAmount",
    "expires_at": "link.expiresAt",
    "locale": "locale",
}
"""Field of the form → parameter of the API, by which it is validated."""

if TYPE_CHECKING:
    _LinkForm = forms.ModelForm[PaymentLink]
else:
    _LinkForm = forms.ModelForm  # takes no parameter at run time


def render_qr_code(text: str) -> SafeString:
    """A QR code as an SVG element for a page. It has a light ground, so that it reads on a dark page, too."""
    import qrcode
    import qrcode.image.svg

    code = qrcode.QRCode(border=4, image_factory=qrcode.image.svg.SvgPathFillImage)
    code.add_data(text)
    code.make(fit=True)
    written = io.BytesIO()
    code.make_image().save(written)
    svg = written.getvalue().decode()
    return SafeString(svg[svg.index("<svg") :])  # the library's own drawing: squares and nothing of the text


def build_link_pill(row: PaymentLink, paid_count: int) -> dict[str, Any]:
    """A link's state as a pill."""
    tone, text = _STATES[payment_links.resolve_link_state(row, paid_count)]
    return {"tone": tone, "text": text}


def _text_field(label: Any, help_text: Any = "", **attrs: str) -> forms.CharField:
    return forms.CharField(
        label=label, required=False, help_text=help_text, widget=UnfoldAdminTextInputWidget(attrs=attrs)
    )


class PaymentLinkForm(_LinkForm):
    """Form of a new link, validated like POST /v1/paymentLinks. ``built``: the link and the statement of its insert."""

    description = _text_field(gettext_lazy("Description"), gettext_lazy("What the shopper reads above the amount."))
    amount = _text_field(gettext_lazy("Amount"), gettext_lazy("Such as 92.00."), inputmode="decimal")
    currency = _text_field(gettext_lazy("Currency"), gettext_lazy("A code such as EUR."))
    payment_type = forms.ChoiceField(
        label=gettext_lazy("Payment type"),
        choices=[("DB", gettext_lazy("take the money at once")), ("PA", gettext_lazy("reserve it, to be captured"))],
        widget=UnfoldAdminSelectWidget(),
    )
    reference = _text_field(
        gettext_lazy("Your reference"), gettext_lazy("merchantTransactionId, 8 characters or more.")
    )
    open_amount = forms.BooleanField(
        label=gettext_lazy("The shopper enters the amount"), required=False, widget=UnfoldBooleanSwitchWidget()
    )
    min_amount = _text_field(gettext_lazy("Least amount"), inputmode="decimal")
    max_amount = _text_field(gettext_lazy("Greatest amount"), inputmode="decimal")
    reusable = forms.BooleanField(
        label=gettext_lazy("It can be paid several times"), required=False, widget=UnfoldBooleanSwitchWidget()
    )
    max_payments = _text_field(
        gettext_lazy("How often at most"), gettext_lazy("Empty: without a limit."), inputmode="numeric"
    )
    expires_at = _text_field(gettext_lazy("Open until (UTC)"), gettext_lazy("Such as 2036-05-14 17:00:00; or empty."))
    locale = _text_field(gettext_lazy("Language of the page"), gettext_lazy("A code such as de; empty: the browser's."))
    built: Any = None

    class Meta:
        model = PaymentLink
        fields = ("channel", "description")

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        channel = found.get("channel")
        if channel is None:
            return found
        sent = {"entityId": channel.entity_id} | {
            name: "true" if value is True else str(value).strip()
            for field, name in _FIELDS.items()
            if (value := found.get(field))
        }
        now = clock.merchant_now(channel.merchant)
        try:
            parameters = CREATE_PAYMENT_LINK_ENDPOINT.catalogue.parse(
                ParameterPairs(sent.items()), facts=build_condition_facts(channel, now), policy=channel.parameters
            )
            self.built = payment_links.build_payment_link(
                parameters, merchant=channel.merchant, channel=channel, now=now
            )
        except InvalidParametersError as fault:
            fields = {name: field for field, name in _FIELDS.items()}
            for error in fault.errors:
                field = fields.get(error.name)
                self.add_error(field, error.message if field else f"{error.name}: {error.message}")
        return found


@admin.register(PaymentLink)
class PaymentLinkAdmin(MerchantPage):
    """The list of payment links, the form of a new one, and a link's page."""

    form = PaymentLinkForm
    nothing = gettext_lazy(
        "A payment link is an address at which shoppers pay. Make one here, or by POST /v1/paymentLinks."
    )
    list_display = (
        "created_at", "description_text", "amount_text", "merchant", "state", "paid_count", "paid_sum", "expires_at",
    )  # fmt: skip
    list_select_related = ("merchant", "channel")
    list_filter = ("merchant",)
    search_fields = ("description",)
    ordering = ("-created_at",)
    fields = ("channel", *_FIELDS)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = path("<uuid:link>/close/", wrap(self.close_view), name="checkout_paymentlink_close")
        return [own, *super().get_urls()]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return payment_links.annotate_link_use(super().get_queryset(request))

    @admin.display(description=gettext_lazy("description"))
    def description_text(self, row: PaymentLink) -> str:
        return mask_text(row.description or row.request.get("merchantTransactionId", "")) or "–"

    @admin.display(description=gettext_lazy("amount"))
    def amount_text(self, row: PaymentLink) -> str:
        if row.amount is not None:
            return format_money(row.amount, row.currency)
        return f"{format_money(row.min_amount)} – {format_money(row.max_amount, row.currency)}"

    @admin.display(description=gettext_lazy("state"))
    def state(self, row: Any) -> str:
        return str(build_link_pill(row, row.paid_count)["text"])

    @admin.display(description=gettext_lazy("paid"), ordering="paid_count")
    def paid_count(self, row: Any) -> str:
        return f"{format_number(row.paid_count)} ×"

    @admin.display(description=gettext_lazy("sum"), ordering="paid_amount")
    def paid_sum(self, row: Any) -> str:
        return format_money(row.paid_amount, row.currency)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A link is shown and closed on a page of its own; there is no form that changes one."""
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        row, write = form.built  # type: ignore[attr-defined]  # PaymentLinkForm
        if change or not self.may(request, "add", row):
            raise PermissionDenied
        row.created_by = request.user.get_username()[:150]
        with transaction.atomic():
            write.run()
            PaymentLink.objects.filter(pk=row.pk).update(created_by=row.created_by)
            self.record(request, "create", row, after=_collect_link_values(row))
        obj.__dict__.update(row.__dict__)

    def response_add(self, request: HttpRequest, obj: Any, post_url_continue: str | None = None) -> HttpResponse:
        messages.success(request, _("The payment link is open. Give it to the shopper."))
        return redirect(reverse("admin:checkout_paymentlink_change", args=[obj.pk]))

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        row: PaymentLink = self.find_viewed_row(request, object_id)
        use = payment_links.count_link_use(row)
        address = payment_links.build_payment_link_url(row)
        paid = Checkout.objects.filter(link=row, payment__status=Status.APPROVED).select_related("payment")
        context = {
            **self.admin_site.each_context(request),
            "title": self.description_text(row) if row.description else _("Payment link"),
            "opts": self.opts,
            "original": row,
            "link": row,
            "asked": self.amount_text(row),
            "address": address,
            "qr": render_qr_code(address),
            "pill": build_link_pill(row, use.count),
            "is_open": payment_links.resolve_link_state(row, use.count) == payment_links.ACTIVE_STATE,
            "use": use,
            "may_close": self.may(request, "change", row),
            "close": reverse("admin:checkout_paymentlink_close", args=[row.pk]),
            "payments": [
                {
                    "row": each.payment,
                    "address": reverse("admin:gateway_payment_change", args=[each.payment_id]),
                    "pill": build_state_pill(each.payment.status),
                }
                for each in paid.order_by("-payment__id")[:MAX_SHOWN_LINK_PAYMENTS]
                if each.payment is not None
            ],
            "sent": [(name, mask_text(value)) for name, value in sorted(row.request.items())],
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/clerk/payment_link.html", context)

    def close_view(self, request: HttpRequest, link: Any) -> HttpResponse:
        """Close a link (POST)."""
        row = self.get_object(request, str(link))
        if row is None:
            raise Http404
        if request.method != "POST" or not self.may(request, "change", row):
            raise PermissionDenied
        with transaction.atomic():
            if payment_links.deactivate_payment_link(row):
                self.record(request, "change", row, before={"active": True}, after={"active": False})
                messages.success(request, _("The payment link is closed."))
        return redirect(reverse("admin:checkout_paymentlink_change", args=[row.pk]))


def _collect_link_values(row: PaymentLink) -> dict[str, Any]:
    """What an audit entry stores of a new link: nothing by which it could be paid."""
    return {
        "channel": str(row.channel_id),
        "description": row.description,
        "currency": row.currency,
        "amount": str(row.amount) if row.amount is not None else f"{row.min_amount} – {row.max_amount}",
        "max_payments": row.max_payments,
        "expires_at": str(row.expires_at) if row.expires_at is not None else None,
    }

"""Back-office pages of the hosted payment page's looks: two colours and a logo for each channel.

A logo is a file, so it has an address of its own that takes one (gateway.api.body_limits). Source: docs/decisions/0083.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from checkout import page_style
from checkout.models import PaymentPageStyle
from gateway.access import permissions
from gateway.api.body_limits import UploadPolicy, allow_uploads, build_upload_url
from gateway.backoffice.kit.base import MerchantPage

CHANGE_STYLE_PERMISSION = "checkout.change_paymentpagestyle"


def may_upload_logo(request: HttpRequest, _names: Mapping[str, Any]) -> bool:
    """Whether the user may set a logo at all; the view checks for which channel."""
    return permissions.has_permission(request.user, CHANGE_STYLE_PERMISSION)


@admin.register(PaymentPageStyle)
class PaymentPageStyleAdmin(MerchantPage):
    """The list of channels with looks of their own, the form of their colours, and the page of a logo."""

    merchant_path, channel_path = "channel__merchant", "channel"
    nothing = gettext_lazy("Every payment page has the product's own colours. Give a channel its own here, and a logo.")
    list_display = ("channel", "accent", "header", "has_logo")
    list_select_related = ("channel__merchant",)
    fields = ("channel", "accent", "header")
    change_form_after_template = "admin/clerk/page_logo_link.html"

    @admin.display(description=gettext_lazy("logo"), boolean=True)
    def has_logo(self, row: PaymentPageStyle) -> bool:
        return row.logo is not None

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("channel",) if obj is not None else ()

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        own = path("<uuid:channel>/logo/", wrap(self.logo_view), name="checkout_paymentpagestyle_logo")
        return [own, *super().get_urls()]

    @method_decorator(allow_uploads(UploadPolicy(most=lambda: page_style.MAX_LOGO_FILE_BYTES, may=may_upload_logo)))
    def logo_view(self, request: HttpRequest, channel: Any) -> HttpResponse:
        """Show the logo (GET), replace or remove it (POST)."""
        row = self.get_object(request, str(channel))
        if row is None:
            raise Http404
        if not self.may(request, "change", row):
            raise PermissionDenied
        if request.method == "POST":
            self._change_logo(request, row)
            return redirect(request.path)
        logo = base64.b64encode(bytes(row.logo)).decode() if row.logo else ""
        context = {
            **self.admin_site.each_context(request),
            "title": _("Logo of %(channel)s") % {"channel": row.channel},
            "opts": self.opts,
            "original": row,
            "logo": f"data:image/png;base64,{logo}" if logo else "",
            "header": row.header,
            "action": build_upload_url(request, request.path),
            "back": reverse("admin:checkout_paymentpagestyle_change", args=[row.pk]),
        }
        return TemplateResponse(request, "admin/clerk/page_logo.html", context)

    def _change_logo(self, request: HttpRequest, row: PaymentPageStyle) -> None:
        had = row.logo is not None
        sent = request.FILES.get("file")
        if request.POST.get("remove") == "yes":
            logo = None
        elif sent is None or (sent.size or 0) > page_style.MAX_LOGO_FILE_BYTES:
            messages.error(request, _("Choose a PNG or JPEG of at most 1 MB."))
            return
        else:
            try:
                logo = page_style.render_logo(sent.read())
            except page_style.LogoRejectedError:
                messages.error(
                    request, _("This file is no picture, or one with too many pixels: choose a PNG or JPEG.")
                )
                return
        with transaction.atomic():
            row.logo = logo
            row.save(update_fields=["logo"])
            self.record(request, "change", row, before={"logo": had}, after={"logo": logo is not None})
        messages.success(request, _("The logo was removed.") if logo is None else _("The logo was replaced."))

"""Docs page about the widget, with a generator of the content security policy for the page around it."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from checkout import csp
from checkout.brand_selection import resolve_form_kind
from checkout.demo.page_source import render_page_source
from gateway import widget_hash
from gateway.core import brands
from gateway.portal.views import render_document

_PLACEHOLDERS: Final = {"{checkout id}": "id", "{integrity}": "integrity"}
"""What is replaced in the page's lines → its name in the answer that has it."""


def _mark_placeholders(source: str) -> SafeString:
    """The lines as HTML; "Run" beside the sample that makes a checkout fills its answer in."""
    shown = str(escape(source))
    for placeholder, name in _PLACEHOLDERS.items():
        shown = shown.replace(placeholder, f'<span data-answer="{name}">{placeholder}</span>')
    return mark_safe(shown)  # noqa: S308 - escaped above


@require_safe
def widget_guide_view(request: HttpRequest) -> HttpResponse:
    """GET /docs/widget: how to put the form into a page. ``?brand=…`` chooses brands for the policy."""
    offered = [brand for brand in brands.PAYMENT_BRANDS.values() if resolve_form_kind(brand)]
    codes = [brand.code for brand in offered]
    chosen = [code for code in request.GET.getlist("brand") if code in codes] or ["VISA", "MASTER"]
    base = urlsplit(settings.GATEWAY_BASE_URL)
    host, origins = f"{base.scheme}://{base.netloc}", settings.GATEWAY_WALLET_ORIGINS
    strict, with_own_styles = (
        csp.format_csp(csp.build_widget_csp(host, chosen, origins, own_styles=own_styles))
        for own_styles in (False, True)
    )
    return render_document(
        request,
        "widget",
        source=_mark_placeholders(render_page_source(settings.GATEWAY_BASE_URL, live=settings.IS_LIVE)),
        csp=strict,
        csp_with_own_styles=with_own_styles,
        chosen=chosen,
        offered=offered,
        integrity=widget_hash.widget_integrity(),
    )

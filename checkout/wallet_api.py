"""POST /v1/checkouts/{id}/wallet-session: merchant validation for a page that opens a wallet's sheet.

Public like the widget's other routes: the checkout's id is the capability. The session is useless elsewhere: a provider
binds it to a domain of the merchant. Source: docs/decisions/0028.
"""

from __future__ import annotations

from typing import ClassVar, Final
from urllib.parse import urlsplit

from django.http import HttpResponse
from rest_framework.request import Request
from rest_framework.response import Response

from checkout import merchant_validation, session
from checkout.api import PublicApiView
from checkout.models import Checkout, WalletProvider
from checkout.wallet_providers import find_wallet_provider
from gateway.api import token_admission
from gateway.api.base_view import decode_form
from gateway.api.envelope import build_envelope
from gateway.catalogue.parse import InvalidParametersError, ParameterError, shorten_reported_value
from gateway.core.secret import reveal_text
from gateway.payments.refusal import RequestRefusedError

MAX_WALLET_REQUEST_BYTES: Final = 8_192
SESSION_WALLET_BRAND: Final = "WALLET1"
PROVIDER_UNREACHABLE_CODE: Final = "900.100.100"
"""Unexpected communication error with the acquirer: here, the wallet's provider."""


class WalletSessionView(PublicApiView):
    """POST with ``paymentBrand`` and ``validationUrl``, as the provider's sheet passed it."""

    http_method_names: ClassVar[list[str]] = ["post"]

    def post(self, request: Request, target: str = "") -> HttpResponse:
        row = session.find_open_checkout(target)
        headers = token_admission.throttle_shopper_request(
            row.id, row.channel, self.trace.ip, token_admission.WIDGET_OPERATION, self.trace.at
        )
        body, fault = self.read_body(request._request, MAX_WALLET_REQUEST_BYTES)
        if fault:
            raise fault
        sent = {name: reveal_text(value) for name, value in decode_form(body)}
        domain = _parse_host(request.headers.get("Origin", ""))
        provider = self._require_provider(row, sent, domain)
        try:
            provider_session = merchant_validation.request_merchant_session(provider, sent["validationUrl"], domain)
        except merchant_validation.MerchantValidationError as fault:
            raise RequestRefusedError(PROVIDER_UNREACHABLE_CODE, more=str(fault)) from None
        answer = build_envelope("000.000.100", self.trace.ndc, session=provider_session)
        response: HttpResponse = Response(answer, headers=headers)
        return response

    def _require_provider(self, row: Checkout, sent: dict[str, str], domain: str) -> WalletProvider:
        """The provider to call. Raises InvalidParametersError with every fault of the request."""
        brand, url = sent.get("paymentBrand", ""), sent.get("validationUrl", "")
        provider = (
            find_wallet_provider(row.channel, SESSION_WALLET_BRAND.lower()) if brand == SESSION_WALLET_BRAND else None
        )
        if provider is None:
            words = (
                f"must be {SESSION_WALLET_BRAND}, and the channel must have its provider configured (walletProviders)"
            )
            raise InvalidParametersError(
                [ParameterError(name="paymentBrand", value=shorten_reported_value(brand), message=words, known=True)]
            )
        errors = []
        if not merchant_validation.is_allowed_validation_url(provider, url):
            words = f"must lie at one of {', '.join(provider.settings['validationHosts'])}"
            errors.append(
                ParameterError(name="validationUrl", value=shorten_reported_value(url), message=words, known=True)
            )
        if domain not in provider.settings["domains"]:
            words = f"must be a page of one of {', '.join(provider.settings['domains'])}"
            errors.append(
                ParameterError(name="Origin", value=shorten_reported_value(domain), message=words, known=True)
            )
        if errors:
            raise InvalidParametersError(errors)
        return provider


def _parse_host(origin: str) -> str:
    """The host of a page's origin; '' for anything else."""
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""

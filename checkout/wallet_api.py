"""POST /v1/checkouts/{id}/wallet-session: a page's wallet sheet asks to be vouched for.

Public like the widget's other routes: the checkout's id is the capability. What it gives is worth nothing elsewhere:
a provider binds a session to a domain of the merchant. Source: docs/decisions/0028.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from rest_framework.request import Request
from rest_framework.response import Response

from checkout import session, validation
from checkout.api import CORS, CheckoutDoor
from checkout.models import Checkout, WalletProvider
from checkout.providers import provider_of
from gateway.api import admission as doorkeeper
from gateway.api.door import decoded
from gateway.api.envelope import envelope
from gateway.catalogue.parse import Invalid, ParameterError, shorten
from gateway.payments.refusal import Refused

MOST_BYTES: Final = 8_192
BRAND: Final = "WALLET1"
NO_ANSWER: Final = "900.100.100"
"""Unexpected communication error with the acquirer: here, the wallet's provider."""


class WalletSessionView(CheckoutDoor):
    """POST with ``paymentBrand`` and ``validationUrl``, as the provider's sheet gave it."""

    http_method_names: ClassVar[list[str]] = ["post"]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """The checkout's id is the capability."""

    @property
    def allowed_methods(self) -> list[str]:
        return ["POST"]

    def post(self, request: Request, target: str) -> Response:
        row = session.find_open(target)
        headers = doorkeeper.throttle_shopper(row.id, row.channel, self.trace.ip, doorkeeper.WIDGET, self.trace.at)
        body, fault = self.read(request._request, MOST_BYTES)
        if fault:
            raise fault
        sent = dict(decoded(body))
        domain = _host(request.headers.get("Origin", ""))
        provider = self._provider(row, sent, domain)
        try:
            found = validation.merchant_session(provider, sent["validationUrl"], domain)
        except validation.NoSession as fault:
            raise Refused(NO_ANSWER, more=str(fault)) from None
        return Response(envelope("000.000.100", self.trace.ndc, session=found), headers=headers)

    def _provider(self, row: Checkout, sent: dict[str, str], domain: str) -> WalletProvider:
        """Who is to be asked. Raises Invalid with everything that speaks against it."""
        brand, url = sent.get("paymentBrand", ""), sent.get("validationUrl", "")
        provider = provider_of(row.channel, BRAND.lower()) if brand == BRAND else None
        if provider is None:
            words = f"must be {BRAND}, and the channel must have its provider configured (walletProviders)"
            raise Invalid([ParameterError(name="paymentBrand", value=shorten(brand), message=words, known=True)])
        errors = []
        if not validation.is_allowed(provider, url):
            words = f"must lie at one of {', '.join(provider.settings['validationHosts'])}"
            errors.append(ParameterError(name="validationUrl", value=shorten(url), message=words, known=True))
        if domain not in provider.settings["domains"]:
            words = f"must be a page of one of {', '.join(provider.settings['domains'])}"
            errors.append(ParameterError(name="Origin", value=shorten(domain), message=words, known=True))
        if errors:
            raise Invalid(errors)
        return provider

    def finalize_response(self, request: Any, response: Any, *args: Any, **kwargs: Any) -> Any:
        response = super().finalize_response(request, response, *args, **kwargs)
        for name, value in CORS.items():
            response[name] = value
        return response


def _host(origin: str) -> str:
    """The host of a page's origin; '' for what is none."""
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""

# Derived from _async/resources.py by `make clients`. Do not edit.
"""The methods of the API by subject. Parameters are those of the reference, nested; sums are Decimals or texts.

``idempotency_key``: '' makes a new one for the request and its repetitions. A declined payment is an answer: look at
its ``outcome``. Errors: see `tollhouse.errors`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal, Unpack

from tollhouse import models
from tollhouse import parameters as p
from tollhouse._requests import build_path

if TYPE_CHECKING:
    from tollhouse._sync.client import Tollhouse


class _Resource:
    def __init__(self, client: Tollhouse) -> None:
        self._client = client


class Payments(_Resource):
    """Payments: debits and authorizations, their captures, refunds and reversals."""

    def create(self, *, idempotency_key: str = "", **parameters: Unpack[p.PaymentRequest]) -> models.Payment:
        """Make a payment: ``paymentType`` DB takes the money at once, PA reserves it."""
        return self._client.request(
            "POST", "/v1/payments", parameters, answer=models.Payment, key=idempotency_key
        )

    def get(self, payment_id: str) -> models.Payment:
        """Get a payment in its present state."""
        return self._client.request("GET", build_path("v1", "payments", payment_id), answer=models.Payment)

    def follow_up(
        self, payment_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.FollowUpRequest]
    ) -> models.Payment:
        """Send a follow-up of a payment; ``paymentType`` names the operation (CP, RF, RV …)."""
        return self._client.request(
            "POST", build_path("v1", "payments", payment_id), parameters, answer=models.Payment, key=idempotency_key
        )

    def capture(
        self, payment_id: str, *, amount: p.Amount, currency: str, idempotency_key: str = ""
    ) -> models.Payment:
        """Capture an authorization, wholly or in part."""
        return self.follow_up(
            payment_id, paymentType="CP", amount=amount, currency=currency, idempotency_key=idempotency_key
        )

    def refund(
        self, payment_id: str, *, amount: p.Amount, currency: str, idempotency_key: str = ""
    ) -> models.Payment:
        """Refund a payment or a capture, wholly or in part."""
        return self.follow_up(
            payment_id, paymentType="RF", amount=amount, currency=currency, idempotency_key=idempotency_key
        )

    def reverse(self, payment_id: str, *, idempotency_key: str = "") -> models.Payment:
        """Reverse a payment that is not captured or settled yet."""
        return self.follow_up(payment_id, paymentType="RV", idempotency_key=idempotency_key)


class Checkouts(_Resource):
    """Checkouts: payments that the shopper makes in the hosted payment form."""

    def create(self, *, idempotency_key: str = "", **parameters: Unpack[p.CheckoutRequest]) -> models.Checkout:
        """Create a checkout; its id goes into the page with the payment form."""
        return self._client.request(
            "POST", "/v1/checkouts", parameters, answer=models.Checkout, key=idempotency_key
        )

    def update(
        self, checkout_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.UpdateCheckoutRequest]
    ) -> models.Checkout:
        """Change a checkout that is not paid."""
        path = build_path("v1", "checkouts", checkout_id)
        return self._client.request("POST", path, parameters, answer=models.Checkout, key=idempotency_key)

    def get_payment(self, checkout_id: str) -> models.Payment:
        """Get the payment of a checkout, when the shopper is back in the shop."""
        path = build_path("v1", "checkouts", checkout_id, "payment")
        return self._client.request("GET", path, answer=models.Payment)

    def get_registration(self, checkout_id: str) -> models.Registration:
        """Get the registration that a checkout without a payment has made."""
        path = build_path("v1", "checkouts", checkout_id, "registration")
        return self._client.request("GET", path, answer=models.Registration)


class PaymentLinks(_Resource):
    """Addresses at which shoppers pay on the gateway's own page."""

    def create(
        self, *, idempotency_key: str = "", **parameters: Unpack[p.PaymentLinkRequest]
    ) -> models.PaymentLink:
        """A link; its ``url`` goes to the shopper."""
        return self._client.request(
            "POST", "/v1/paymentLinks", parameters, answer=models.PaymentLink, key=idempotency_key
        )

    def get(self, link_id: str) -> models.PaymentLink:
        """How it stands: its state, how often it was paid, and how much."""
        return self._client.request("GET", build_path("v1", "paymentLinks", link_id), answer=models.PaymentLink)

    def list(self, **filters: Unpack[p.PaymentLinksRequest]) -> models.PaymentLinks:
        """One page, the newest links first."""
        return self._client.request("GET", "/v1/paymentLinks", filters, answer=models.PaymentLinks)

    def deactivate(self, link_id: str) -> models.PaymentLink:
        """Close it: it is neither opened nor paid any more."""
        path = build_path("v1", "paymentLinks", link_id)
        return self._client.request("DELETE", path, answer=models.PaymentLink)


class Registrations(_Resource):
    """Registrations: stored means of payment."""

    def create(
        self, *, idempotency_key: str = "", **parameters: Unpack[p.RegistrationRequest]
    ) -> models.Registration:
        """Store a means of payment."""
        return self._client.request(
            "POST", "/v1/registrations", parameters, answer=models.Registration, key=idempotency_key
        )

    def get(self, registration_id: str) -> models.Registration:
        """Get a registration, without card number."""
        path = build_path("v1", "registrations", registration_id)
        return self._client.request("GET", path, answer=models.Registration)

    def update(
        self, registration_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.UpdateRegistrationRequest]
    ) -> models.Registration:
        """Update a registration, such as a card's new expiry date."""
        path = build_path("v1", "registrations", registration_id)
        return self._client.request("POST", path, parameters, answer=models.Registration, key=idempotency_key)

    def extend(self, registration_id: str, *, idempotency_key: str = "") -> models.Registration:
        """Extend the time that a registration is kept."""
        path = build_path("v1", "registrations", registration_id, "extend")
        return self._client.request("POST", path, answer=models.Registration, key=idempotency_key)

    def delete(self, registration_id: str) -> models.Registration:
        """Delete a registration."""
        path = build_path("v1", "registrations", registration_id)
        return self._client.request("DELETE", path, answer=models.Registration)

    def pay(
        self, registration_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.OneClickRequest]
    ) -> models.Payment:
        """Pay with a registration."""
        path = build_path("v1", "registrations", registration_id, "payments")
        return self._client.request("POST", path, parameters, answer=models.Payment, key=idempotency_key)


class Schedules(_Resource):
    """Schedules: subscriptions that charge a registration at set times."""

    def create(self, *, idempotency_key: str = "", **parameters: Unpack[p.ScheduleRequest]) -> models.Schedule:
        """Create a subscription; ``job`` says when it charges."""
        return self._client.request(
            "POST", "/v1/schedules", parameters, answer=models.Schedule, key=idempotency_key
        )

    def get(self, schedule_id: str) -> models.Schedule:
        """Get a subscription with its plan and its last runs."""
        return self._client.request("GET", build_path("v1", "schedules", schedule_id), answer=models.Schedule)

    def reschedule(
        self, schedule_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.RescheduleRequest]
    ) -> models.Schedule:
        """Change a subscription's amount or times; what is not sent stays."""
        path = build_path("v1", "schedules", schedule_id, "reschedule")
        return self._client.request("POST", path, parameters, answer=models.Schedule, key=idempotency_key)

    def deschedule(
        self, schedule_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.DescheduleRequest]
    ) -> models.Schedule:
        """Cancel a subscription, at once or after its notice period."""
        path = build_path("v1", "schedules", schedule_id, "deschedule")
        return self._client.request("POST", path, parameters, answer=models.Schedule, key=idempotency_key)


class Authentications(_Resource):
    """3-D Secure without a payment."""

    def create(self, **parameters: Unpack[p.ThreeDSecureRequest]) -> models.Authentication:
        """Authenticate a cardholder. Takes no key, and is not repeated."""
        return self._client.request("POST", "/v1/threeDSecure", parameters, answer=models.Authentication)

    def get(self, authentication_id: str) -> models.Authentication:
        """Get an authentication with its result."""
        path = build_path("v1", "threeDSecure", authentication_id)
        return self._client.request("GET", path, answer=models.Authentication)


class Transactions(_Resource):
    """Transactions: queries of payments by id, by merchantTransactionId or by date."""

    def get(self, transaction_id: str, **filters: Unpack[p.QueryRecordRequest]) -> models.RecordList:
        """Get a transaction; ``includeLinkedTransactions`` adds its captures, refunds and the rest of its chain."""
        path = build_path("v3", "query", transaction_id)
        return self._client.request("GET", path, filters, answer=models.RecordList)

    def list(self, **filters: Unpack[p.QueryRecordsRequest]) -> models.RecordList:
        """List one page of transactions: by ``merchantTransactionId``, or by ``date`` {from, to} in UTC,
        `2026-11-21 10:00:00`."""
        return self._client.request("GET", "/v3/query", filters, answer=models.RecordList)

    def iterate(self, **filters: Unpack[p.QueryRecordsRequest]) -> Iterator[models.Listed]:
        """Iterate over the transactions of all pages, the oldest first."""
        asked: dict[str, Any] = {**filters, "pageNo": 1}
        while True:
            page = self._client.request("GET", "/v3/query", asked, answer=models.RecordList)
            for one in page.records:
                yield one
            if asked["pageNo"] >= (page.pages or 1):
                return
            asked["pageNo"] += 1


class Reports(_Resource):
    """Reports: settlements, which are the payouts of clearing institutes, and their records."""

    def settlements(self, **filters: Unpack[p.AggregationsPageRequest]) -> Iterator[models.Settlement]:
        """Iterate over the settlements of all pages; ``date`` {from, to}."""
        asked: dict[str, Any] = {**filters, "pageNo": 1}
        path = "/reports/v2/reconciliations/aggregations"
        while True:
            page = self._client.request("GET", path, asked, answer=models.Settlements)
            for one in page.aggregations:
                yield one
            if asked["pageNo"] >= (page.pages or 1):
                return
            asked["pageNo"] += 1

    def settlement_records(
        self, settlement_id: str, **filters: Unpack[p.AggregationPageRequest]
    ) -> Iterator[dict[str, Any]]:
        """Iterate over the records of a settlement, under the names of the reconciliation file's columns."""
        asked: dict[str, Any] = {**filters, "pageNo": 1}
        path = build_path("reports", "v2", "reconciliations", "aggregations", settlement_id)
        while True:
            page = self._client.request("GET", path, asked, answer=models.SettlementRecords)
            for one in page.reconciliations:
                yield one
            if asked["pageNo"] >= (page.pages or 1):
                return
            asked["pageNo"] += 1


class TestTools(_Resource):
    """Tools of the test environment; in live they are not found."""

    __test__ = False  # no class of tests, whatever pytest takes its name for

    def read_clock(self) -> models.Clock:
        """Get the merchant's clock."""
        return self._client.request("GET", "/v1/test/clock", answer=models.Clock)

    def advance_clock(self, seconds: int) -> models.Clock:
        """Advance the merchant's clock; work that falls due on the way is done."""
        return self._client.request("POST", "/v1/test/clock", {"advance": seconds}, answer=models.Clock)

    def reset_clock(self) -> models.Clock:
        """Reset the merchant's clock to real time."""
        return self._client.request("DELETE", "/v1/test/clock", answer=models.Clock)

    def list_acquirer_messages(self, payment_id: str) -> models.AcquirerMessages:
        """List the messages to and from the acquirer about a payment, masked."""
        return self._client.request(
            "GET", "/v1/test/acquirer/messages", {"id": payment_id}, answer=models.AcquirerMessages
        )

    def list_mails(self, payment_id: str) -> models.Mails:
        """List the mails that a payment's shopper was sent."""
        return self._client.request("GET", "/v1/test/mails", {"id": payment_id}, answer=models.Mails)

    def decide_transfer(self, payment_id: str, outcome: Literal["arrived", "returned"]) -> models.Payment:
        """Decide a prepayment as its bank would: the transfer came, or it did not."""
        path = build_path("v1", "test", "transfers", payment_id)
        return self._client.request("POST", path, {"outcome": outcome}, answer=models.Payment)

    def create_wallet_token(self, **parameters: Unpack[p.MakeWalletTokenRequest]) -> models.WalletToken:
        """Create a wallet token as a shopper's device makes it."""
        return self._client.request("POST", "/v1/test/wallet-token", parameters, answer=models.WalletToken)

    def open_inspector(self, **parameters: Unpack[p.OpenInspectorRequest]) -> models.Inspector:
        """Open a webhook inspector, whose webhooks are read from here: the gateway cannot call your machine."""
        return self._client.request("POST", "/v1/test/webhooks", parameters, answer=models.Inspector)

    def read_webhooks(self, **filters: Unpack[p.ReadWebhooksRequest]) -> models.KeptWebhooks:
        """Read the webhooks of an inspector, the earliest first."""
        return self._client.request("GET", "/v1/test/webhooks", filters, answer=models.KeptWebhooks)

    def read_requests(self) -> models.RequestLog:
        """Read the request log, the newest first."""
        return self._client.request("GET", "/v1/test/requests", answer=models.RequestLog)

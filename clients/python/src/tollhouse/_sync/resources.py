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
    """Pay, authorise; capture, refund and reverse; read."""

    def create(self, *, idempotency_key: str = "", **parameters: Unpack[p.PaymentRequest]) -> models.Payment:
        """A payment: ``paymentType`` DB takes the money at once, PA reserves it."""
        return self._client.request(
            "POST", "/v1/payments", parameters, answer=models.Payment, key=idempotency_key
        )

    def get(self, payment_id: str) -> models.Payment:
        """A payment as it stands."""
        return self._client.request("GET", build_path("v1", "payments", payment_id), answer=models.Payment)

    def follow_up(
        self, payment_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.FollowUpRequest]
    ) -> models.Payment:
        """Any operation that refers to a payment; ``paymentType`` names it."""
        return self._client.request(
            "POST", build_path("v1", "payments", payment_id), parameters, answer=models.Payment, key=idempotency_key
        )

    def capture(
        self, payment_id: str, *, amount: p.Amount, currency: str, idempotency_key: str = ""
    ) -> models.Payment:
        """Take a reserved sum, or a part of it."""
        return self.follow_up(
            payment_id, paymentType="CP", amount=amount, currency=currency, idempotency_key=idempotency_key
        )

    def refund(
        self, payment_id: str, *, amount: p.Amount, currency: str, idempotency_key: str = ""
    ) -> models.Payment:
        """Give money back: of a payment or a capture, whole or in parts."""
        return self.follow_up(
            payment_id, paymentType="RF", amount=amount, currency=currency, idempotency_key=idempotency_key
        )

    def reverse(self, payment_id: str, *, idempotency_key: str = "") -> models.Payment:
        """Undo what is not captured or settled yet."""
        return self.follow_up(payment_id, paymentType="RV", idempotency_key=idempotency_key)


class Checkouts(_Resource):
    """Payments that the shopper makes in the payment form."""

    def create(self, *, idempotency_key: str = "", **parameters: Unpack[p.CheckoutRequest]) -> models.Checkout:
        """A checkout; its id goes into the page with the payment form."""
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
        """What became of it, when the shopper is back in the shop."""
        path = build_path("v1", "checkouts", checkout_id, "payment")
        return self._client.request("GET", path, answer=models.Payment)

    def get_registration(self, checkout_id: str) -> models.Registration:
        """The registration that a checkout without a payment has made."""
        path = build_path("v1", "checkouts", checkout_id, "registration")
        return self._client.request("GET", path, answer=models.Registration)


class Registrations(_Resource):
    """Stored means of payment."""

    def create(
        self, *, idempotency_key: str = "", **parameters: Unpack[p.RegistrationRequest]
    ) -> models.Registration:
        """Store a means of payment."""
        return self._client.request(
            "POST", "/v1/registrations", parameters, answer=models.Registration, key=idempotency_key
        )

    def get(self, registration_id: str) -> models.Registration:
        """What is stored."""
        path = build_path("v1", "registrations", registration_id)
        return self._client.request("GET", path, answer=models.Registration)

    def update(
        self, registration_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.UpdateRegistrationRequest]
    ) -> models.Registration:
        """Change it: a card's new expiry date."""
        path = build_path("v1", "registrations", registration_id)
        return self._client.request("POST", path, parameters, answer=models.Registration, key=idempotency_key)

    def extend(self, registration_id: str, *, idempotency_key: str = "") -> models.Registration:
        """Keep it longer."""
        path = build_path("v1", "registrations", registration_id, "extend")
        return self._client.request("POST", path, answer=models.Registration, key=idempotency_key)

    def delete(self, registration_id: str) -> models.Registration:
        """Forget it."""
        path = build_path("v1", "registrations", registration_id)
        return self._client.request("DELETE", path, answer=models.Registration)

    def pay(
        self, registration_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.OneClickRequest]
    ) -> models.Payment:
        """A payment with it."""
        path = build_path("v1", "registrations", registration_id, "payments")
        return self._client.request("POST", path, parameters, answer=models.Payment, key=idempotency_key)


class Schedules(_Resource):
    """Subscriptions: a registration that is charged again and again."""

    def create(self, *, idempotency_key: str = "", **parameters: Unpack[p.ScheduleRequest]) -> models.Schedule:
        """A subscription; ``job`` says when it charges."""
        return self._client.request(
            "POST", "/v1/schedules", parameters, answer=models.Schedule, key=idempotency_key
        )

    def get(self, schedule_id: str) -> models.Schedule:
        """Its plan and its last runs."""
        return self._client.request("GET", build_path("v1", "schedules", schedule_id), answer=models.Schedule)

    def reschedule(
        self, schedule_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.RescheduleRequest]
    ) -> models.Schedule:
        """Change amount or times; what is not sent stays."""
        path = build_path("v1", "schedules", schedule_id, "reschedule")
        return self._client.request("POST", path, parameters, answer=models.Schedule, key=idempotency_key)

    def deschedule(
        self, schedule_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.DescheduleRequest]
    ) -> models.Schedule:
        """Give notice."""
        path = build_path("v1", "schedules", schedule_id, "deschedule")
        return self._client.request("POST", path, parameters, answer=models.Schedule, key=idempotency_key)


class Authentications(_Resource):
    """3-D Secure without a payment."""

    def create(self, **parameters: Unpack[p.ThreeDSecureRequest]) -> models.Authentication:
        """Authenticate a cardholder. Takes no key, and is not repeated."""
        return self._client.request("POST", "/v1/threeDSecure", parameters, answer=models.Authentication)

    def get(self, authentication_id: str) -> models.Authentication:
        """How it went."""
        path = build_path("v1", "threeDSecure", authentication_id)
        return self._client.request("GET", path, answer=models.Authentication)


class Transactions(_Resource):
    """Find payments again."""

    def get(self, transaction_id: str, **filters: Unpack[p.QueryRecordRequest]) -> models.RecordList:
        """A transaction; ``includeLinkedTransactions`` adds its captures, refunds and the rest of its chain."""
        path = build_path("v3", "query", transaction_id)
        return self._client.request("GET", path, filters, answer=models.RecordList)

    def list(self, **filters: Unpack[p.QueryRecordsRequest]) -> models.RecordList:
        """One page: by ``merchantTransactionId``, or by ``date`` {from, to} in UTC, `2026-11-21 10:00:00`."""
        return self._client.request("GET", "/v3/query", filters, answer=models.RecordList)

    def iterate(self, **filters: Unpack[p.QueryRecordsRequest]) -> Iterator[models.Listed]:
        """Every transaction of all pages, the oldest first."""
        asked: dict[str, Any] = {**filters, "pageNo": 1}
        while True:
            page = self._client.request("GET", "/v3/query", asked, answer=models.RecordList)
            for one in page.records:
                yield one
            if asked["pageNo"] >= (page.pages or 1):
                return
            asked["pageNo"] += 1


class Reports(_Resource):
    """What institutes have paid out."""

    def settlements(self, **filters: Unpack[p.AggregationsPageRequest]) -> Iterator[models.Settlement]:
        """Every settlement of all pages; ``date`` {from, to}."""
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
        """Every record of a settlement, under the names of the reconciliation file's columns."""
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
        """The merchant's time."""
        return self._client.request("GET", "/v1/test/clock", answer=models.Clock)

    def advance_clock(self, seconds: int) -> models.Clock:
        """Move the merchant's clock on; what falls due on the way is done."""
        return self._client.request("POST", "/v1/test/clock", {"advance": seconds}, answer=models.Clock)

    def reset_clock(self) -> models.Clock:
        """Back to the real time."""
        return self._client.request("DELETE", "/v1/test/clock", answer=models.Clock)

    def list_acquirer_messages(self, payment_id: str) -> models.AcquirerMessages:
        """What the acquirer was sent for a payment, and what it answered, masked."""
        return self._client.request(
            "GET", "/v1/test/acquirer/messages", {"id": payment_id}, answer=models.AcquirerMessages
        )

    def list_mails(self, payment_id: str) -> models.Mails:
        """The mails that a payment's shopper was sent."""
        return self._client.request("GET", "/v1/test/mails", {"id": payment_id}, answer=models.Mails)

    def decide_transfer(self, payment_id: str, outcome: Literal["arrived", "returned"]) -> models.Payment:
        """What the bank reports of a prepayment."""
        path = build_path("v1", "test", "transfers", payment_id)
        return self._client.request("POST", path, {"outcome": outcome}, answer=models.Payment)

    def create_wallet_token(self, **parameters: Unpack[p.MakeWalletTokenRequest]) -> models.WalletToken:
        """A wallet's token as a shopper's device makes it."""
        return self._client.request("POST", "/v1/test/wallet-token", parameters, answer=models.WalletToken)

    def open_inspector(self, **parameters: Unpack[p.OpenInspectorRequest]) -> models.Inspector:
        """Have webhooks kept, to be read from here: the gateway cannot call your machine."""
        return self._client.request("POST", "/v1/test/webhooks", parameters, answer=models.Inspector)

    def read_webhooks(self, **filters: Unpack[p.ReadWebhooksRequest]) -> models.KeptWebhooks:
        """What was kept, the earliest first."""
        return self._client.request("GET", "/v1/test/webhooks", filters, answer=models.KeptWebhooks)

    def read_requests(self) -> models.RequestLog:
        """The newest requests, the newest first."""
        return self._client.request("GET", "/v1/test/requests", answer=models.RequestLog)

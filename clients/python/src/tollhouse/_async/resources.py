"""The methods of the API by subject. Parameters are those of the reference, nested; sums are Decimals or texts.

``idempotency_key``: '' makes a new one for the request and its repetitions. A declined payment is an answer: look at
its ``outcome``. Errors: see `tollhouse.errors`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, Literal, Unpack

from tollhouse import models
from tollhouse import parameters as p
from tollhouse._requests import build_path

if TYPE_CHECKING:
    from tollhouse._async.client import AsyncTollhouse


class _Resource:
    def __init__(self, client: AsyncTollhouse) -> None:
        self._client = client


class Payments(_Resource):
    """Pay, authorise; capture, refund and reverse; read."""

    async def create(self, *, idempotency_key: str = "", **parameters: Unpack[p.PaymentRequest]) -> models.Payment:
        """A payment: ``paymentType`` DB takes the money at once, PA reserves it."""
        return await self._client.request(
            "POST", "/v1/payments", parameters, answer=models.Payment, key=idempotency_key
        )

    async def get(self, payment_id: str) -> models.Payment:
        """A payment as it stands."""
        return await self._client.request("GET", build_path("v1", "payments", payment_id), answer=models.Payment)

    async def follow_up(
        self, payment_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.FollowUpRequest]
    ) -> models.Payment:
        """Any operation that refers to a payment; ``paymentType`` names it."""
        return await self._client.request(
            "POST", build_path("v1", "payments", payment_id), parameters, answer=models.Payment, key=idempotency_key
        )

    async def capture(
        self, payment_id: str, *, amount: p.Amount, currency: str, idempotency_key: str = ""
    ) -> models.Payment:
        """Take a reserved sum, or a part of it."""
        return await self.follow_up(
            payment_id, paymentType="CP", amount=amount, currency=currency, idempotency_key=idempotency_key
        )

    async def refund(
        self, payment_id: str, *, amount: p.Amount, currency: str, idempotency_key: str = ""
    ) -> models.Payment:
        """Give money back: of a payment or a capture, whole or in parts."""
        return await self.follow_up(
            payment_id, paymentType="RF", amount=amount, currency=currency, idempotency_key=idempotency_key
        )

    async def reverse(self, payment_id: str, *, idempotency_key: str = "") -> models.Payment:
        """Undo what is not captured or settled yet."""
        return await self.follow_up(payment_id, paymentType="RV", idempotency_key=idempotency_key)


class Checkouts(_Resource):
    """Payments that the shopper makes in the payment form."""

    async def create(self, *, idempotency_key: str = "", **parameters: Unpack[p.CheckoutRequest]) -> models.Checkout:
        """A checkout; its id goes into the page with the payment form."""
        return await self._client.request(
            "POST", "/v1/checkouts", parameters, answer=models.Checkout, key=idempotency_key
        )

    async def update(
        self, checkout_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.UpdateCheckoutRequest]
    ) -> models.Checkout:
        """Change a checkout that is not paid."""
        path = build_path("v1", "checkouts", checkout_id)
        return await self._client.request("POST", path, parameters, answer=models.Checkout, key=idempotency_key)

    async def get_payment(self, checkout_id: str) -> models.Payment:
        """What became of it, when the shopper is back in the shop."""
        path = build_path("v1", "checkouts", checkout_id, "payment")
        return await self._client.request("GET", path, answer=models.Payment)

    async def get_registration(self, checkout_id: str) -> models.Registration:
        """The registration that a checkout without a payment has made."""
        path = build_path("v1", "checkouts", checkout_id, "registration")
        return await self._client.request("GET", path, answer=models.Registration)


class Registrations(_Resource):
    """Stored means of payment."""

    async def create(
        self, *, idempotency_key: str = "", **parameters: Unpack[p.RegistrationRequest]
    ) -> models.Registration:
        """Store a means of payment."""
        return await self._client.request(
            "POST", "/v1/registrations", parameters, answer=models.Registration, key=idempotency_key
        )

    async def get(self, registration_id: str) -> models.Registration:
        """What is stored."""
        path = build_path("v1", "registrations", registration_id)
        return await self._client.request("GET", path, answer=models.Registration)

    async def update(
        self, registration_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.UpdateRegistrationRequest]
    ) -> models.Registration:
        """Change it: a card's new expiry date."""
        path = build_path("v1", "registrations", registration_id)
        return await self._client.request("POST", path, parameters, answer=models.Registration, key=idempotency_key)

    async def extend(self, registration_id: str, *, idempotency_key: str = "") -> models.Registration:
        """Keep it longer."""
        path = build_path("v1", "registrations", registration_id, "extend")
        return await self._client.request("POST", path, answer=models.Registration, key=idempotency_key)

    async def delete(self, registration_id: str) -> models.Registration:
        """Forget it."""
        path = build_path("v1", "registrations", registration_id)
        return await self._client.request("DELETE", path, answer=models.Registration)

    async def pay(
        self, registration_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.OneClickRequest]
    ) -> models.Payment:
        """A payment with it."""
        path = build_path("v1", "registrations", registration_id, "payments")
        return await self._client.request("POST", path, parameters, answer=models.Payment, key=idempotency_key)


class Schedules(_Resource):
    """Subscriptions: a registration that is charged again and again."""

    async def create(self, *, idempotency_key: str = "", **parameters: Unpack[p.ScheduleRequest]) -> models.Schedule:
        """A subscription; ``job`` says when it charges."""
        return await self._client.request(
            "POST", "/v1/schedules", parameters, answer=models.Schedule, key=idempotency_key
        )

    async def get(self, schedule_id: str) -> models.Schedule:
        """Its plan and its last runs."""
        return await self._client.request("GET", build_path("v1", "schedules", schedule_id), answer=models.Schedule)

    async def reschedule(
        self, schedule_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.RescheduleRequest]
    ) -> models.Schedule:
        """Change amount or times; what is not sent stays."""
        path = build_path("v1", "schedules", schedule_id, "reschedule")
        return await self._client.request("POST", path, parameters, answer=models.Schedule, key=idempotency_key)

    async def deschedule(
        self, schedule_id: str, *, idempotency_key: str = "", **parameters: Unpack[p.DescheduleRequest]
    ) -> models.Schedule:
        """Give notice."""
        path = build_path("v1", "schedules", schedule_id, "deschedule")
        return await self._client.request("POST", path, parameters, answer=models.Schedule, key=idempotency_key)


class Authentications(_Resource):
    """3-D Secure without a payment."""

    async def create(self, **parameters: Unpack[p.ThreeDSecureRequest]) -> models.Authentication:
        """Authenticate a cardholder. Takes no key, and is not repeated."""
        return await self._client.request("POST", "/v1/threeDSecure", parameters, answer=models.Authentication)

    async def get(self, authentication_id: str) -> models.Authentication:
        """How it went."""
        path = build_path("v1", "threeDSecure", authentication_id)
        return await self._client.request("GET", path, answer=models.Authentication)


class Transactions(_Resource):
    """Find payments again."""

    async def get(self, transaction_id: str, **filters: Unpack[p.QueryRecordRequest]) -> models.RecordList:
        """A transaction; ``includeLinkedTransactions`` adds its captures, refunds and the rest of its chain."""
        path = build_path("v3", "query", transaction_id)
        return await self._client.request("GET", path, filters, answer=models.RecordList)

    async def list(self, **filters: Unpack[p.QueryRecordsRequest]) -> models.RecordList:
        """One page: by ``merchantTransactionId``, or by ``date`` {from, to} in UTC, `2026-11-21 10:00:00`."""
        return await self._client.request("GET", "/v3/query", filters, answer=models.RecordList)

    async def iterate(self, **filters: Unpack[p.QueryRecordsRequest]) -> AsyncIterator[models.Listed]:
        """Every transaction of all pages, the oldest first."""
        asked: dict[str, Any] = {**filters, "pageNo": 1}
        while True:
            page = await self._client.request("GET", "/v3/query", asked, answer=models.RecordList)
            for one in page.records:
                yield one
            if asked["pageNo"] >= (page.pages or 1):
                return
            asked["pageNo"] += 1


class Reports(_Resource):
    """What institutes have paid out."""

    async def settlements(self, **filters: Unpack[p.AggregationsPageRequest]) -> AsyncIterator[models.Settlement]:
        """Every settlement of all pages; ``date`` {from, to}."""
        asked: dict[str, Any] = {**filters, "pageNo": 1}
        path = "/reports/v2/reconciliations/aggregations"
        while True:
            page = await self._client.request("GET", path, asked, answer=models.Settlements)
            for one in page.aggregations:
                yield one
            if asked["pageNo"] >= (page.pages or 1):
                return
            asked["pageNo"] += 1

    async def settlement_records(
        self, settlement_id: str, **filters: Unpack[p.AggregationPageRequest]
    ) -> AsyncIterator[dict[str, Any]]:
        """Every record of a settlement, under the names of the reconciliation file's columns."""
        asked: dict[str, Any] = {**filters, "pageNo": 1}
        path = build_path("reports", "v2", "reconciliations", "aggregations", settlement_id)
        while True:
            page = await self._client.request("GET", path, asked, answer=models.SettlementRecords)
            for one in page.reconciliations:
                yield one
            if asked["pageNo"] >= (page.pages or 1):
                return
            asked["pageNo"] += 1


class TestTools(_Resource):
    """Tools of the test environment; in live they are not found."""

    __test__ = False  # no class of tests, whatever pytest takes its name for

    async def read_clock(self) -> models.Clock:
        """The merchant's time."""
        return await self._client.request("GET", "/v1/test/clock", answer=models.Clock)

    async def advance_clock(self, seconds: int) -> models.Clock:
        """Move the merchant's clock on; what falls due on the way is done."""
        return await self._client.request("POST", "/v1/test/clock", {"advance": seconds}, answer=models.Clock)

    async def reset_clock(self) -> models.Clock:
        """Back to the real time."""
        return await self._client.request("DELETE", "/v1/test/clock", answer=models.Clock)

    async def list_acquirer_messages(self, payment_id: str) -> models.AcquirerMessages:
        """What the acquirer was sent for a payment, and what it answered, masked."""
        return await self._client.request(
            "GET", "/v1/test/acquirer/messages", {"id": payment_id}, answer=models.AcquirerMessages
        )

    async def list_mails(self, payment_id: str) -> models.Mails:
        """The mails that a payment's shopper was sent."""
        return await self._client.request("GET", "/v1/test/mails", {"id": payment_id}, answer=models.Mails)

    async def decide_transfer(self, payment_id: str, outcome: Literal["arrived", "returned"]) -> models.Payment:
        """What the bank reports of a prepayment."""
        path = build_path("v1", "test", "transfers", payment_id)
        return await self._client.request("POST", path, {"outcome": outcome}, answer=models.Payment)

    async def create_wallet_token(self, **parameters: Unpack[p.MakeWalletTokenRequest]) -> models.WalletToken:
        """A wallet's token as a shopper's device makes it."""
        return await self._client.request("POST", "/v1/test/wallet-token", parameters, answer=models.WalletToken)

    async def open_inspector(self, **parameters: Unpack[p.OpenInspectorRequest]) -> models.Inspector:
        """Have webhooks kept, to be read from here: the gateway cannot call your machine."""
        return await self._client.request("POST", "/v1/test/webhooks", parameters, answer=models.Inspector)

    async def read_webhooks(self, **filters: Unpack[p.ReadWebhooksRequest]) -> models.KeptWebhooks:
        """What was kept, the earliest first."""
        return await self._client.request("GET", "/v1/test/webhooks", filters, answer=models.KeptWebhooks)

    async def read_requests(self) -> models.RequestLog:
        """The newest requests, the newest first."""
        return await self._client.request("GET", "/v1/test/requests", answer=models.RequestLog)

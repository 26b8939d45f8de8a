"""Writes a planned market (reporting.simulator.market) as the rows that requests at its times would have left.

Rows go in by COPY, a batch of attempts in one transaction, with every trigger and constraint of the tables in force.
Then the merchant's clock moves to the market's end, and what is due on the way happens. Test environment only.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db import connection, models, transaction

from checkout.models import Checkout, random_id
from gateway.connectors.stub.connector import STUB
from gateway.core import clock, identifiers
from gateway.core.masking import mask_pan
from gateway.core.secret import Secret
from gateway.db.copied_rows import build_copy_line, copy_lines, format_copied_bytes
from gateway.models import (
    AcquirerAccount,
    AcquirerCost,
    AcquirerExchange,
    Authentication,
    Channel,
    Division,
    Merchant,
    Notification,
    Payment,
    PaymentEvent,
    Psp,
    RequestLog,
)
from gateway.payments import acquirer_message_store, search_keys
from gateway.timers import time_travel
from gateway.vault.sealing import current_vault
from reporting.simulator.market import (
    MARKET_CURRENCY,
    MARKET_PRICES,
    AbandonedCheckout,
    MarketAttempt,
    MarketFollowUp,
    MarketPlan,
)

MARKET_MERCHANT: Final = "Simulated market"
MARKET_BATCH: Final = 10_000
"""Events in one transaction."""
MARKET_CHECKOUT_MINUTES: Final = 30
_MODELS: Final = (Payment, PaymentEvent, AcquirerExchange, Authentication, Notification, RequestLog, Checkout)
_CONNECTOR: Final = "simulator"
_ATTEMPTS_END_WITHIN: Final = timedelta(hours=1)
"""A shopper's attempts of one purchase follow each other faster than that."""


class MarketRefusedError(Exception):
    """The market cannot be made; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketResult:
    """What was written. ``checkouts``: those that were opened, the abandoned ones included."""

    merchant: Merchant
    channel: Channel
    attempts: int
    approved: int
    follow_ups: int
    checkouts: int
    start: datetime
    end: datetime


def find_market_channel() -> Channel:
    """The channel of the simulated market's own merchant, made at its first use. Raises MarketRefusedError in live."""
    if settings.IS_LIVE:
        raise MarketRefusedError("simulate_market refuses the live environment.")
    psp, _ = Psp.objects.get_or_create(name="Tollhouse Demo PSP")
    division, _ = Division.objects.get_or_create(name="Simulated market", psp=psp)
    merchant, _ = Merchant.objects.get_or_create(name=MARKET_MERCHANT, division=division)
    channel, _ = Channel.objects.get_or_create(
        name="shop", merchant=merchant, defaults={"limits": {"*": None}, "three_d_secure": True}
    )
    _set_up_accounts(channel)
    return channel


def _set_up_accounts(channel: Channel) -> None:
    """The channel's accounts at the stub acquirer, with their prices: routing rules are tried on the market with
    them."""
    for name, (percent, fixed) in MARKET_PRICES.items():
        account, _ = AcquirerAccount.objects.get_or_create(
            channel=channel, connector=STUB.name, acquirer_merchant_id=name, defaults={"name": name}
        )
        if not account.costs.exists():
            AcquirerCost.objects.create(
                account=account,
                percent=percent,
                fixed=fixed,
                currency=MARKET_CURRENCY,
                valid_from=clock.real_now().date(),
            )


def next_market_start(merchant: Merchant) -> datetime:
    """The next midnight (UTC) on the merchant's clock: a market goes on where the one before ended."""
    now = clock.merchant_now(merchant)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight if midnight == now else midnight + timedelta(days=1)


def write_market(channel: Channel, plan: MarketPlan) -> MarketResult:
    """Write the whole market and move the merchant's clock to its end. Raises MarketRefusedError if the clock is past
    its start, or is being moved by somebody else."""
    merchant = channel.merchant
    rows = MarketRows(channel)
    try:
        with time_travel.lock_clock(merchant):
            if clock.merchant_now(merchant) > plan.start:
                raise MarketRefusedError(
                    f"The merchant's clock is at {clock.merchant_now(merchant):%Y-%m-%d %H:%M}, after the market's "
                    f"start, {plan.start:%Y-%m-%d}: clocks are not set back."
                )
            for event in plan.events():
                rows.add(event)
                if rows.waiting >= MARKET_BATCH:
                    rows.write()
            rows.write(final=True)
            while not time_travel.advance_clock(merchant, plan.end - clock.real_now()).complete:
                pass
    except time_travel.ConcurrentAdvanceError:
        raise MarketRefusedError("The merchant's clock is being moved by another process.") from None
    with connection.cursor() as cursor:
        for model in _MODELS:
            cursor.execute(f"ANALYZE {connection.ops.quote_name(model._meta.db_table)}")
    return MarketResult(
        merchant=merchant,
        channel=channel,
        attempts=rows.attempts,
        approved=rows.approved,
        follow_ups=rows.follow_ups,
        checkouts=rows.checkouts,
        start=plan.start,
        end=plan.end,
    )


class MarketRows:
    """Rows that wait to be written, as lines of COPY."""

    def __init__(self, channel: Channel) -> None:
        self.attempts = self.approved = self.follow_ups = self.checkouts = 0
        self.waiting = 0
        self._reached = datetime.min.replace(tzinfo=UTC)
        self._channel = channel
        self._shared = {"merchant_id": channel.merchant_id, "channel_id": channel.pk}
        self._lines: dict[type[models.Model], list[str]] = {model: [] for model in _MODELS}
        self._begun: dict[tuple[int, int], tuple[UUID, MarketAttempt]] = {}
        """Approved attempts that a follow-up is planned for."""
        self._open: dict[int, tuple[UUID, MarketAttempt, UUID]] = {}
        """Checkouts by purchase, with their last attempt and its payment; written when the next purchase begins."""

    def add(self, event: MarketAttempt | MarketFollowUp | AbandonedCheckout) -> None:
        """Add an event with all rows of it."""
        self.waiting += 1
        self._reached = event.at
        if isinstance(event, MarketAttempt):
            self._add_attempt(event)
        elif isinstance(event, MarketFollowUp):
            self._add_follow_up(event)
        else:
            self._add_checkout(random_id(), event.at, event.cents)

    def write(self, *, final: bool = False) -> None:
        """Write everything that waits, in one transaction. ``final``: no further attempt comes; else the checkouts of
        the last hour wait for more."""
        for order in sorted(self._open):
            if not final and self._open[order][1].at > self._reached - _ATTEMPTS_END_WITHIN:
                continue
            key, attempt, payment = self._open.pop(order)
            self._add_checkout(key, attempt.at, attempt.cents, payment=payment, attempts=attempt.place + 1)
        with transaction.atomic(), connection.cursor() as cursor:
            for model, lines in self._lines.items():
                if lines:
                    copy_lines(cursor, model, lines)
                    lines.clear()
        self.waiting = 0

    def _add_attempt(self, event: MarketAttempt) -> None:
        payment, request = identifiers.row_id(), identifiers.row_id()
        self.attempts += 1
        self.approved += event.approved
        if event.follow_ups:
            self._begun[event.order, event.place] = (payment, event)
        path = "/v1/payments"
        if event.checkout:
            checkout = self._open[event.order][0] if event.order in self._open else random_id()
            self._open[event.order] = (checkout, event, payment)
            path = f"/v1/checkouts/{checkout.hex.upper()}-{settings.GATEWAY_NODE}/payment"
        asked = event.path != "left"
        self._add_payment(
            payment,
            request,
            event,
            kind="PA" if event.authorizes else "DB",
            chain=None,
            echo=_build_echo(event),
            resource_path=path if event.checkout else "",
            connector=_CONNECTOR if asked else "",
            details=_build_details(event),
        )
        if event.path != "none":
            self._add_authentication(payment, request, event)
        self._add_log(request, event.at, path, payment, event.answer.code, approved=event.approved)

    def _add_follow_up(self, event: MarketFollowUp) -> None:
        first, attempt = self._begun.pop((event.order, event.place))
        payment, request = identifiers.row_id(), identifiers.row_id()
        self.follow_ups += 1
        self._add_payment(
            payment,
            request,
            attempt,
            kind=event.kind,
            chain=first,
            at=event.at,
            echo={},
            connector=_CONNECTOR,
            details={"AcquirerResponse": "00"},
        )
        self._add_log(request, event.at, f"/v1/payments/{first.hex}", payment, attempt.answer.code, approved=True)

    def _add_payment(
        self,
        payment: UUID,
        request: UUID,
        event: MarketAttempt,
        *,
        kind: str,
        chain: UUID | None,
        echo: dict[str, Any],
        connector: str,
        details: dict[str, str],
        at: datetime | None = None,
        resource_path: str = "",
    ) -> None:
        """The payment with what is written about it. ``chain``: of a follow-up."""
        at = at or event.at
        first, done = chain is None, at + timedelta(milliseconds=20)
        number, amount = event.card, f"{event.cents / 100:.2f}"
        vault, merchant = current_vault(), self._channel.merchant_id
        shown = {"card": {"bin": number[:6], "last4Digits": number[-4:]}} if first else {}
        transaction_id = f"SIM{payment.hex[-20:].upper()}" if connector else ""
        self._line(
            Payment,
            id=payment,
            chain=chain or payment,
            referenced=chain,
            payment_type=kind,
            brand=event.issuer.brand,
            method="CC",
            status="APPROVED" if event.approved else "DECLINED",
            amount=amount,
            currency=MARKET_CURRENCY,
            approved_amount=amount if event.approved else None,
            result_code=event.answer.code,
            test_mode="INTERNAL",
            merchant_transaction_id=_name_order(event) if first else "",
            request=echo,
            answer={**shown, **({"resultDetails": details} if details else {})},
            means="card" if first else "",
            means_sealed=format_copied_bytes(vault.seal(Secret(number), payment)) if first else None,
            means_fingerprint=format_copied_bytes(vault.fingerprint(number)) if first else None,
            email_key=search_keys.build_email_key(merchant, _name_mail(event)) if first else None,
            last4_key=search_keys.build_last4_key(merchant, number) if first else None,
            connector=connector,
            connector_tx_id=transaction_id,
            acquirer_merchant_id=event.account if connector else "",
            resource_path=resource_path,
            sequence=2,
            follow_ups=event.follow_ups if first else 0,
            request_id=request,
            created_at=at,
            completed_at=done,
            **self._shared,
        )
        if connector:
            self._line(
                AcquirerExchange,
                payment_id=payment,
                connector=connector,
                kind="submit",
                at=done,
                duration_ms=12,
                sent={acquirer_message_store.PATCH_KEY: {"card": {"number": mask_pan(number)}}},
                received={"responseCode": details["AcquirerResponse"], "transactionId": transaction_id},
            )
        self._add_events(payment, event, at, done)

    def _add_events(self, payment: UUID, event: MarketAttempt, at: datetime, done: datetime) -> None:
        """The two events of a payment that began ``at`` and was ``done``, and its notification."""
        self._line(PaymentEvent, payment_id=payment, at=at, sequence=1, event="begin", status="STARTED", result_code="")
        self._line(
            PaymentEvent,
            payment_id=payment,
            at=done,
            sequence=2,
            event="approve" if event.approved else "decline",
            status="APPROVED" if event.approved else "DECLINED",
            result_code=event.answer.code,
        )
        self._line(
            Notification,
            kind="PAYMENT",
            action="CREATED",
            payment_id=payment,
            sequence=2,
            created_at=done,
            **self._shared,
        )

    def _add_authentication(self, payment: UUID, request: UUID, event: MarketAttempt) -> None:
        passed = event.path != "left"
        master = event.issuer.brand == "MASTER"
        self._line(
            Authentication,
            id=identifiers.row_id(),
            payment=payment,
            brand=event.issuer.brand,
            network=event.issuer.brand,
            version="2.2.0",
            device_channel="02",
            category="01",
            amount=f"{event.cents / 100:.2f}",
            currency=MARKET_CURRENCY,
            card=mask_pan(event.card),
            step="done",
            flow="frictionless" if event.path == "frictionless" else "challenge",
            trans_status="Y" if passed else "N",
            eci=("02" if master else "05") if passed else "",
            code="" if passed else event.answer.code,
            test_mode="INTERNAL",
            request_id=request,
            created_at=event.at,
            completed_at=event.at + timedelta(milliseconds=10),
            # The table's columns without a default of their own take empty lists and objects.
            **self._shared,
        )

    def _add_checkout(
        self, key: UUID, at: datetime, cents: int, *, payment: UUID | None = None, attempts: int = 0
    ) -> None:
        self.checkouts += 1
        self._line(
            Checkout,
            id=key,
            kind="payment",
            request={"amount": f"{cents / 100:.2f}", "currency": MARKET_CURRENCY, "paymentType": "DB"},
            payment_id=payment,
            attempts=attempts,
            version=1 + attempts,
            created_at=at - timedelta(seconds=90),
            expires_at=at + timedelta(minutes=MARKET_CHECKOUT_MINUTES),
            **self._shared,
        )

    def _add_log(self, request: UUID, at: datetime, path: str, payment: UUID, code: str, *, approved: bool) -> None:
        self._line(
            RequestLog,
            id=request,
            at=clock.real_now(),
            method="POST",
            path=path,
            status=200 if approved else 400,
            result_code=code,
            entity_id=self._channel.pk,
            token=None,
            ip="127.0.0.1",
            duration_ms=20,
            payment=payment,
            parameters=None,
        )

    def _line(self, model: type[models.Model], **values: Any) -> None:
        self._lines[model].append(build_copy_line(model, **values))


def _name_order(event: MarketAttempt) -> str:
    return f"{'charge' if event.merchant_initiated else 'order'}-{event.order}"


def _name_mail(event: MarketAttempt) -> str:
    return f"shopper{event.shopper}@shop.example"


def _build_details(event: MarketAttempt) -> dict[str, str]:
    details = {"AcquirerResponse": event.answer.response} if event.answer.response else {}
    return details | ({"MerchantAdviceCode": event.answer.advice} if event.answer.advice else {})


def _build_echo(event: MarketAttempt) -> dict[str, Any]:
    """The accepted parameters, as a payment stores them."""
    echo: dict[str, Any] = {
        "paymentBrand": event.issuer.brand,
        "merchantTransactionId": _name_order(event),
        "card": {"holder": "Jane Jones", "expiryMonth": "05", "expiryYear": "2034"},
        "customer": {"givenName": "Jane", "surname": "Jones", "email": _name_mail(event)},
        "billing": {
            "street1": "High Street 12",
            "city": "Springfield",
            "postcode": "12345",
            "country": event.issuer.country,
        },
    }
    if event.merchant_initiated:
        echo["standingInstruction"] = {"mode": "REPEATED", "source": "MIT", "type": "RECURRING"}
    if event.exemption:
        echo["threeDSecure"] = {"exemptionFlag": event.exemption}
    return echo

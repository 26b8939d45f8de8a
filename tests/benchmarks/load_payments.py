"""Fill a test environment with payments, quickly: for trials with many rows, and for benchmarks.

    python -m tests.benchmarks.load_payments --count 1000000 --share 0.3

The rows are those that real requests leave: chains with captures, refunds and reversals, declines, events, exchanges,
notifications and log rows, spread evenly over a number of days. One merchant has a share of them all. They are written
by COPY, in batches of one transaction each; a broken run leaves whole batches, and running it again adds more.
"""

from __future__ import annotations

import argparse
import heapq
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import django
from django.conf import settings
from django.db import connection, models, transaction

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()

from gateway.core import clock, identifiers
from gateway.core.masking import mask_pan
from gateway.core.secret import Secret
from gateway.db.copied_rows import build_copy_line, copy_lines, format_copied_bytes
from gateway.models import (
    AcquirerExchange,
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
from gateway.vault.sealing import current_vault

COPY_BATCH_ROWS: Final = 20_000
LOADED_MERCHANTS: Final = 20
LOADED_CARDS: Final = ("4200000000000000", "4111111111111111", "5454545454545454", "5105105105105100")
LOADED_APPROVAL_CODE: Final = "000.100.110"
LOADED_MODELS: Final = (Payment, PaymentEvent, AcquirerExchange, Notification, RequestLog)
# Kinds of chains: weight, first payment, its result code, and the follow-ups with their share of the amount.
PAYMENT_MIX: Final = (
    (70, "DB", LOADED_APPROVAL_CODE, ()),
    (6, "DB", "800.100.155", ()),
    (12, "PA", LOADED_APPROVAL_CODE, (("CP", 1.0),)),
    (2, "PA", LOADED_APPROVAL_CODE, (("CP", 0.5), ("RV", 0.5))),
    (6, "DB", LOADED_APPROVAL_CODE, (("RF", 0.5),)),
    (2, "DB", LOADED_APPROVAL_CODE, (("RF", 0.25), ("RF", 0.25))),
    (2, "PA", LOADED_APPROVAL_CODE, ()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPayment:
    """A payment to be written. ``of``: the first payment of its chain, None for a first one; ``cents``: the amount."""

    channel: Channel
    kind: str
    code: str
    cents: int
    follows: int = 0
    of: UUID | None = None
    card: str = ""


def load_payments(
    count: int, *, share: float = 0.3, channel: str | None = None, days: float = 365, seed: int = 1
) -> None:
    """Write ``count`` payments, follow-ups among them, spread over ``days`` up to now.

    ``share``: the part of one merchant; ``channel``: the entityId of that merchant's channel, one is made without it;
    ``seed``: the same seed makes the same chains. Raises ValueError.
    """
    if settings.IS_LIVE:
        raise ValueError("load_payments refuses the live environment.")
    if count < 1 or not 0 <= share <= 1 or days <= 0:
        raise ValueError("count and days must be above 0, share from 0 to 1.")
    draws = random.Random(seed)
    plan = plan_payments(count, share, *_channels(channel), draws)
    start = clock.real_now() - timedelta(days=days)
    step = timedelta(days=days) / count
    rows = CopyBuffer(draws)
    for number, (key, due) in enumerate(plan):
        rows.add(key, due, start + number * step)
        if (number + 1) % COPY_BATCH_ROWS == 0:
            rows.write()
    rows.write()
    with connection.cursor() as cursor:
        cursor.execute(
            f"VACUUM ANALYZE {', '.join(connection.ops.quote_name(model._meta.db_table) for model in LOADED_MODELS)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Fill the database with made-up payments (test environment only).")
    parser.add_argument("--count", type=int, required=True, help="payments, follow-ups among them")
    parser.add_argument("--share", type=float, default=0.3, help="of one merchant, 0 to 1")
    parser.add_argument("--channel", help="the entityId of that merchant's channel; one is made without it")
    parser.add_argument("--days", type=float, default=365, help="the time over which they are spread, up to now")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same chains")
    load_payments(**vars(parser.parse_args()))


def plan_payments(
    count: int, share: float, large: Channel, others: Sequence[Channel], draws: random.Random
) -> Iterator[tuple[list[UUID], PlannedPayment]]:
    """Exactly ``count`` payments in time order. Each comes with a list that its id is to be added to, from which the
    payments that follow it take theirs."""
    weights = [row[0] for row in PAYMENT_MIX]
    waiting: list[tuple[int, int, list[UUID], PlannedPayment]] = []
    number = ties = 0
    while number < count:
        left = count - number - len(waiting)
        if waiting and (left == 0 or waiting[0][0] <= number):
            yield heapq.heappop(waiting)[2:]
            number += 1
            continue
        _, kind, code, follows = draws.choices(PAYMENT_MIX, weights)[0]
        if len(follows) >= left:
            kind, follows = "DB", ()
        channel = large if draws.random() < share else draws.choice(others)
        cents = draws.randint(100, 50_000) * 4
        card = draws.choice(LOADED_CARDS)
        keys: list[UUID] = []
        yield keys, PlannedPayment(channel=channel, kind=kind, code=code, cents=cents, follows=len(follows), card=card)
        number += 1
        for following, part in follows:
            ties += 1
            due = PlannedPayment(
                channel=channel, kind=following, code=LOADED_APPROVAL_CODE, cents=int(cents * part), card=card
            )
            heapq.heappush(waiting, (number + draws.randint(1, max(1, min(count // 100, left))), ties, keys, due))


class CopyBuffer:
    """Rows waiting to be written, as lines of COPY's text format."""

    def __init__(self, draws: random.Random) -> None:
        self._draws = draws
        self._lines: dict[type[models.Model], list[str]] = {model: [] for model in LOADED_MODELS}
        self._fingerprints = {card: format_copied_bytes(current_vault().fingerprint(card)) for card in LOADED_CARDS}

    def add(self, keys: list[UUID], due: PlannedPayment, at: datetime) -> None:
        """Add a payment with all rows of its two transactions. The first one of a chain adds its id to ``keys``."""
        chain = keys[0] if keys else None
        payment, request = self._id(at), self._id(at)
        if chain is None:
            keys.append(payment)
        amount, approved = f"{due.cents / 100:.2f}", due.code == LOADED_APPROVAL_CODE
        transaction_id = f"SIM{payment.hex[-20:].upper()}"
        order = f"order-{payment.hex[-12:]}" if chain is None else ""
        done = at + timedelta(milliseconds=12)
        echo = _build_echo(due, order)
        details = {"resultDetails": {"AcquirerResponse": "00" if approved else "51"}}
        card = {"card": {"bin": due.card[:6], "last4Digits": due.card[-4:]}}
        first = chain is None
        shared = {"payment_id": payment, "at": at}
        self._line(
            Payment,
            id=payment,
            merchant_id=due.channel.merchant_id,
            channel_id=due.channel.pk,
            chain=chain or payment,
            referenced=chain,
            payment_type=due.kind,
            brand="VISA" if due.card[0] == "4" else "MASTER",
            method="CC",
            status="APPROVED" if approved else "DECLINED",
            amount=amount,
            currency="EUR",
            approved_amount=amount if approved else None,
            result_code=due.code,
            test_mode="INTERNAL",
            merchant_transaction_id=order,
            request=echo,
            answer={**card, **details} if first else details,
            means_sealed=format_copied_bytes(current_vault().seal(Secret(due.card), payment)) if first else None,
            means_fingerprint=self._fingerprints[due.card] if first else None,
            email_key=search_keys.build_email_key(due.channel.merchant_id, echo["customer"]["email"])
            if first
            else None,
            last4_key=search_keys.build_last4_key(due.channel.merchant_id, due.card) if first else None,
            connector="simulator",
            connector_tx_id=transaction_id,
            sequence=2,
            follow_ups=due.follows,
            request_id=request,
            created_at=at,
            completed_at=done,
        )
        self._line(PaymentEvent, **shared, sequence=1, event="begin", status="STARTED", result_code="")
        event, status = ("approve", "APPROVED") if approved else ("decline", "DECLINED")
        self._line(
            PaymentEvent, payment_id=payment, at=done, sequence=2, event=event, status=status, result_code=due.code
        )
        self._line(
            AcquirerExchange,
            payment_id=payment,
            connector="simulator",
            kind="submit",
            at=done,
            duration_ms=0,
            sent={acquirer_message_store.PATCH_KEY: {"card": {"number": mask_pan(due.card), "cvvPresent": first}}},
            received={"responseCode": "00" if approved else "51", "transactionId": transaction_id},
        )
        self._line(
            Notification,
            merchant_id=due.channel.merchant_id,
            channel_id=due.channel.pk,
            kind="PAYMENT",
            action="CREATED",
            payment_id=payment,
            sequence=2,
            created_at=done,
        )
        path = "/v1/payments" if chain is None else f"/v1/payments/{chain.hex}"
        self._line(
            RequestLog,
            id=request,
            at=at,
            method="POST",
            path=path,
            status=200 if approved else 400,
            result_code=due.code,
            entity_id=due.channel.pk,
            token=None,
            ip="127.0.0.1",
            duration_ms=12,
            payment=payment,
            parameters=None,
        )

    def write(self) -> None:
        """Write everything to the database, in one transaction."""
        with transaction.atomic(durable=True), connection.cursor() as cursor:
            # Every foreign key is right by construction; checking each of them again would take most of the time.
            # Only a superuser may skip that.
            cursor.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")
            if cursor.fetchone()[0]:
                cursor.execute("SET LOCAL session_replication_role = replica")
            for model, lines in self._lines.items():
                copy_lines(cursor, model, lines)
                lines.clear()

    def _line(self, model: type[models.Model], **values: Any) -> None:
        self._lines[model].append(build_copy_line(model, **values))

    def _id(self, at: datetime) -> UUID:
        """A UUID of version 7 with the time ``at``, as identifiers.row_id makes one now."""
        milliseconds = int(at.timestamp() * 1000)
        return UUID(
            int=milliseconds << 80 | 7 << 76 | self._draws.getrandbits(12) << 64 | 2 << 62 | self._draws.getrandbits(62)
        )


def _channels(chosen: str | None) -> tuple[Channel, list[Channel]]:
    """The channel that holds the share, and those of the other merchants."""
    psp, _ = Psp.objects.get_or_create(name="Loaded PSP")
    division, _ = Division.objects.get_or_create(name="Loaded", psp=psp)
    if chosen is None:
        large = _channel("Loaded: large", division)
    else:
        key = identifiers.parse_id(chosen)
        found = Channel.objects.filter(pk=key).first() if key is not None else None
        if found is None:
            raise ValueError(f"There is no channel {chosen}.")
        large = found
    return large, [_channel(f"Loaded: {number:02d}", division) for number in range(1, LOADED_MERCHANTS + 1)]


def _channel(name: str, division: Division) -> Channel:
    merchant, _ = Merchant.objects.get_or_create(name=name, division=division)
    return Channel.objects.get_or_create(name="main", merchant=merchant, defaults={"limits": {"*": None}})[0]


def _build_echo(due: PlannedPayment, order: str) -> dict[str, Any]:
    """The accepted parameters, as a payment stores them."""
    if not order:
        return {}
    return {
        "paymentBrand": "VISA" if due.card[0] == "4" else "MASTER",
        "merchantTransactionId": order,
        "card": {"holder": "Jane Jones", "expiryMonth": "05", "expiryYear": "2034"},
        "customer": {"givenName": "Jane", "surname": "Jones", "email": "jane.jones@shop.example"},
        "billing": {"street1": "High Street 12", "city": "Springfield", "postcode": "12345", "country": "DE"},
    }


if __name__ == "__main__":
    main()

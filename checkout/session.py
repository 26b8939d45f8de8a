"""Creates, updates and finds checkouts. Paying one is in checkout.payment_attempts.

Source: Part A, What the service does, 8; Resource identifiers; rulings D3, D4, D14.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import Q

from checkout.models import Checkout, PaymentLink, ResultCall
from gateway.catalogue.endpoints import CREATE_CHECKOUT_ENDPOINT
from gateway.catalogue.parse import INVALID_PARAMETER_CODE, Parameters
from gateway.catalogue.typed_pairs import ParameterValue
from gateway.core import clock
from gateway.core.result_codes import CONCURRENT_UPDATE_CODE
from gateway.core.secret import Secret
from gateway.db.statement import WriteStatement
from gateway.models import Channel, Merchant, Status
from gateway.payments.refusal import RequestRefusedError
from gateway.vault.sealing import current_vault

CHECKOUT_LIFETIME: Final = timedelta(minutes=30)
PAYMENT_PAGE_PATH: Final = "/pay/"
NO_CHECKOUT_TEXT: Final = "No payment session found"
_ID: Final = re.compile(r"([0-9A-F]{32})-([0-9A-Za-z]{1,15})")


def build_checkout_not_found() -> RequestRefusedError:
    """The 404 for an id that is unknown, another merchant's, or expired: all three look the same."""
    return RequestRefusedError(INVALID_PARAMETER_CODE, status=404, more=NO_CHECKOUT_TEXT)


def create_checkout(
    parameters: Parameters, *, merchant: Merchant, channel: Channel, now: datetime, link: PaymentLink | None = None
) -> tuple[Checkout, WriteStatement]:
    """A new checkout and the statement that inserts it; the caller adds its own rows and runs the statement. ``link``:
    the payment link that opens it, which it does not outlive."""
    ends = [now + CHECKOUT_LIFETIME] + ([link.expires_at] if link is not None and link.expires_at is not None else [])
    plain, secret = _split_secrets(parameters)
    row = Checkout(
        merchant=merchant,
        channel=channel,
        link=link,
        kind=resolve_checkout_kind(parameters.values),
        request=plain,
        created_at=now,
        expires_at=min(ends),
    )
    row.request_sealed = _seal_values(secret, row.id)
    write = WriteStatement()
    write.insert(Checkout, **{field.attname: getattr(row, field.attname) for field in Checkout._meta.concrete_fields})
    return row, write


def update_checkout(row: Checkout, parameters: Parameters) -> WriteStatement:
    """The statement that replaces the checkout's parameters by ``parameters`` (the complete new set). The caller adds
    its own rows and runs it; False means that the checkout was changed since it was read.

    Raises RequestRefusedError if the checkout is being paid, or paid.
    """
    if row.payment is not None and row.payment.status != Status.DECLINED:
        if row.payment.status == Status.APPROVED:
            raise RequestRefusedError(INVALID_PARAMETER_CODE, more="the checkout is paid already")
        raise RequestRefusedError(CONCURRENT_UPDATE_CODE, more="a payment of this checkout is being made")
    if row.rest is not None:
        raise RequestRefusedError(CONCURRENT_UPDATE_CODE, more="a part of the amount is held until the rest is paid")
    plain, secret = _split_secrets(parameters)
    write = WriteStatement()
    write.update(
        row,
        {
            "request": plain,
            "request_sealed": _seal_values(secret, row.id),
            "kind": resolve_checkout_kind(parameters.values),
            "version": row.version + 1,
        },
        expecting={"version": row.version},
    )
    return write


ACTIVE_MERCHANT_FILTER: Final = Q(
    merchant__active=True, merchant__division__active=True, merchant__division__psp__active=True
)
"""Merchant, division and PSP above the channel are active."""


def resolve_checkout_kind(values: Mapping[str, str]) -> str:
    """PAYMENT or REGISTRATION: a checkout that only stores a card has createRegistration=true and no paymentType."""
    return Checkout.Kind.PAYMENT if "paymentType" in values else Checkout.Kind.REGISTRATION


def find_checkout(public_id: str, **where: Any) -> Checkout | None:
    """The checkout of that id with its merchant, channel and payment, in one statement; None for an unknown id."""
    found = _ID.fullmatch(public_id)
    if found is None:
        return None
    rows = Checkout.objects.select_related("merchant", "channel", "payment")
    row = rows.filter(ACTIVE_MERCHANT_FILTER, pk=UUID(found[1]), node=found[2], channel__active=True, **where).first()
    if row is not None:
        # One merchant object for all, so that its clock is the same through any of them.
        row.channel.merchant = row.merchant
    return row


def find_open_checkout(public_id: str, **where: Any) -> Checkout:
    """The checkout with this id, if not expired. Raises RequestRefusedError (404)."""
    row = find_checkout(public_id, **where)
    if row is None or is_checkout_expired(row):
        raise build_checkout_not_found()
    return row


def is_checkout_expired(row: Checkout) -> bool:
    """True from 30:00 exactly, by the merchant's clock: the id no longer works."""
    return clock.merchant_now(row.merchant) >= row.expires_at


def count_seconds_left(row: Checkout) -> int:
    """Seconds until the checkout expires, by the merchant's clock."""
    return max(0, int((row.expires_at - clock.merchant_now(row.merchant)).total_seconds()))


def load_plain_values(row: Checkout) -> dict[str, str]:
    """The merchant's parameters without secrets, by full name."""
    return dict(row.request)


def load_checkout_values(row: Checkout) -> dict[str, ParameterValue]:
    """The merchant's parameters by full name, sealed ones opened."""
    values: dict[str, ParameterValue] = dict(row.request)
    if row.request_sealed is not None:
        sealed = current_vault().open(row.request_sealed, row.id)
        values |= {name: Secret(text) for name, text in json.loads(sealed.reveal()).items()}
    return values


def build_hosted_page_url(row: Checkout) -> str:
    """The address of the hosted payment page of a checkout."""
    return f"{settings.GATEWAY_BASE_URL}{PAYMENT_PAGE_PATH}{row.public_id}"


def has_payment_page(row: Checkout) -> bool:
    """Whether the checkout is paid on the hosted payment page, as its merchant or its payment link has it."""
    return row.link_id is not None or row.request.get("paymentPage") == "true"


def is_payment_page_url(url: str) -> bool:
    """Whether ``url`` is of the hosted payment page."""
    return url.startswith(f"{settings.GATEWAY_BASE_URL}{PAYMENT_PAGE_PATH}")


def mark_result_fetched(row: Checkout) -> None:
    """Record that the merchant read the result of the last attempt, and drop the result call."""
    if row.fetched_at is not None or row.payment_id is None:
        return
    write = WriteStatement()
    write.update(row, {"fetched_at": clock.merchant_now(row.merchant)}, expecting={"attempts": row.attempts})
    write.delete(ResultCall, {"checkout_id": row.id})
    write.run()


def hash_checkout_id(public_id: str) -> str:
    """A hash of a checkout's id for logs: a reader learns no usable id (D3)."""
    return f"#{hashlib.sha256(public_id.encode()).hexdigest()[:20]}"


def _split_secrets(parameters: Parameters) -> tuple[dict[str, str], dict[str, Secret]]:
    """Plain and secret values; ``entityId`` is dropped: the channel is a column."""
    find = CREATE_CHECKOUT_ENDPOINT.catalogue.find
    plain = {name: value for name, value in parameters.values.items() if name != "entityId" and find(name) is not None}
    return plain, {name: value for name, value in parameters.secrets.items() if find(name) is not None}


def _seal_values(values: Mapping[str, Secret], row: UUID) -> bytes | None:
    if not values:
        return None
    return current_vault().seal(Secret(json.dumps({name: secret.reveal() for name, secret in values.items()})), row)

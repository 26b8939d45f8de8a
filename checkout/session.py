"""Checkouts made, changed and found. Paying one is in checkout.paying.

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

from django.db.models import Q

from checkout.models import Checkout, ResultCall
from gateway import clock
from gateway.catalogue.endpoints import CHECKOUT
from gateway.catalogue.parse import INVALID, Parameters
from gateway.catalogue.sent import Value
from gateway.models import Channel, Merchant, Status
from gateway.payments.refusal import Refused
from gateway.rows import Write
from gateway.secret import Secret
from gateway.vault import vault

LIFETIME: Final = timedelta(minutes=30)
NO_SESSION: Final = "No payment session found"
IN_PROGRESS: Final = "800.120.402"
_ID: Final = re.compile(r"([0-9A-F]{32})-([0-9A-Za-z]{1,15})")


def none_found() -> Refused:
    """404 for an id that is unknown, another's, or expired: they look the same."""
    return Refused(INVALID, status=404, more=NO_SESSION)


def create(parameters: Parameters, *, merchant: Merchant, channel: Channel, now: datetime) -> tuple[Checkout, Write]:
    """A new checkout, and the statement that writes it: the door adds what belongs to it, and runs it."""
    plain, secret = _parted(parameters)
    row = Checkout(
        merchant=merchant, channel=channel, kind=kind_of(parameters.values), request=plain,
        created_at=now, expires_at=now + LIFETIME,
    )  # fmt: skip
    row.request_sealed = _sealed(secret, row.id)
    write = Write()
    write.insert(Checkout, **{field.attname: getattr(row, field.attname) for field in Checkout._meta.concrete_fields})
    return row, write


def update(row: Checkout, parameters: Parameters) -> Write:
    """What replaces the checkout's parameters, which ``parameters`` holds as they now are, all of them: the door adds
    what belongs to it, and runs it; False then says that somebody else changed it since it was read.

    Raises Refused when it is being paid, or paid.
    """
    if row.payment is not None and row.payment.status != Status.DECLINED:
        if row.payment.status == Status.APPROVED:
            raise Refused(INVALID, more="the checkout is paid already")
        raise Refused(IN_PROGRESS, more="a payment of this checkout is being made")
    plain, secret = _parted(parameters)
    write = Write()
    write.update(
        row,
        {"request": plain, "request_sealed": _sealed(secret, row.id), "kind": kind_of(parameters.values),
         "version": row.version + 1},
        expecting={"version": row.version},
    )  # fmt: skip
    return write


WORKS: Final = Q(merchant__active=True, merchant__division__active=True, merchant__division__psp__active=True)
"""Nothing above the channel is switched off."""


def kind_of(values: Mapping[str, str]) -> str:
    """A checkout that only stores a card has createRegistration=true and no paymentType."""
    return Checkout.Kind.PAYMENT if "paymentType" in values else Checkout.Kind.REGISTRATION


def find(public_id: str, **where: Any) -> Checkout | None:
    """The checkout of that id with its merchant, channel and payment, in one statement; None for an unknown one."""
    found = _ID.fullmatch(public_id)
    if found is None:
        return None
    rows = Checkout.objects.select_related("merchant", "channel", "payment")
    row = rows.filter(WORKS, pk=UUID(found[1]), node=found[2], channel__active=True, **where).first()
    if row is not None:
        # One merchant object: its clock is asked through any of them.
        row.channel.merchant = row.merchant
    return row


def find_open(public_id: str, **where: Any) -> Checkout:
    """The same, and not expired. Raises Refused (404)."""
    row = find(public_id, **where)
    if row is None or is_expired(row):
        raise none_found()
    return row


def is_expired(row: Checkout) -> bool:
    """At 30:00 exactly, by the merchant's clock, the id no longer works."""
    return clock.now(row.merchant) >= row.expires_at


def seconds_left(row: Checkout) -> int:
    return max(0, int((row.expires_at - clock.now(row.merchant)).total_seconds()))


def plain_values_of(row: Checkout) -> dict[str, str]:
    """The merchant's parameters that are no secrets, by full name."""
    return dict(row.request)


def values_of(row: Checkout) -> dict[str, Value]:
    """The merchant's parameters by full name, the sealed ones opened."""
    values: dict[str, Value] = dict(row.request)
    if row.request_sealed is not None:
        sealed = vault().open(row.request_sealed, row.id)
        values |= {name: Secret(text) for name, text in json.loads(sealed.reveal()).items()}
    return values


def fetched(row: Checkout) -> None:
    """The merchant read the result of the last attempt: nobody has to be called about it any more."""
    if row.fetched_at is not None or row.payment_id is None:
        return
    write = Write()
    write.update(row, {"fetched_at": clock.now(row.merchant)}, expecting={"attempts": row.attempts})
    write.delete(ResultCall, {"checkout_id": row.id})
    write.run()


def hashed(public_id: str) -> str:
    """A checkout's id for logs: who reads them learns no id that works (D3)."""
    return f"#{hashlib.sha256(public_id.encode()).hexdigest()[:20]}"


def _parted(parameters: Parameters) -> tuple[dict[str, str], dict[str, Secret]]:
    """Plain values and secret ones; ``entityId`` says which channel, and is not kept twice."""
    find = CHECKOUT.catalogue.find
    plain = {name: value for name, value in parameters.values.items() if name != "entityId" and find(name) is not None}
    return plain, {name: value for name, value in parameters.secrets.items() if find(name) is not None}


def _sealed(values: Mapping[str, Secret], row: UUID) -> bytes | None:
    if not values:
        return None
    return vault().seal(Secret(json.dumps({name: secret.reveal() for name, secret in values.items()})), row)

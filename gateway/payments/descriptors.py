"""The descriptor of a payment: what the shopper's statement says.

It is the one that was sent, else that of the payment a follow-up speaks of, else the channel's own. What was sent or
set up stands in the payment's ``request`` and goes onwards. Where it is the merchant's name alone, it stands in the
payment's ``answer`` and stays here: the acquirer's account has a name of its own, agreed on there.
Source: Part A, Basic payment; Part B, Payment response; docs/decisions/0047.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db.models import prefetch_related_objects
from django.db.models.fields.json import KeyTextTransform

from gateway.models import MAX_DESCRIPTOR, Channel, Merchant, Payment

DESCRIPTOR: Final = "descriptor"
OF_REQUEST: Final = KeyTextTransform(DESCRIPTOR, "request")
"""For payments that are read without their request; they carry it as ``sent_descriptor``."""


def own_descriptor(channel: Channel, merchant: Merchant) -> str:
    """The descriptor of the channel's payments that are sent without one."""
    return channel.descriptor or merchant.name[:MAX_DESCRIPTOR]


def described(echo: Mapping[str, Any], *, chosen: str | None, otherwise: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """``echo`` with the descriptor that goes onwards, and what the answer gains where none does. ``chosen``: what is
    taken where none was sent; ``otherwise``: what is answered where there is not even that."""
    if DESCRIPTOR in echo:
        return dict(echo), {}
    return ({**echo, DESCRIPTOR: chosen}, {}) if chosen else (dict(echo), {DESCRIPTOR: otherwise})


def described_like(echo: Mapping[str, Any], target: Payment) -> tuple[dict[str, Any], dict[str, Any]]:
    """:func:`described` for a follow-up of ``target``, which was read with OF_REQUEST."""
    chosen = getattr(target, "sent_descriptor", None)
    otherwise = target.answer.get(DESCRIPTOR) or ("" if chosen else own_descriptor(target.channel, target.merchant))
    return described(echo, chosen=chosen, otherwise=otherwise)


def onwards_of(payment: Payment) -> dict[str, str]:
    """The descriptor as a parameter for the acquirer; nothing where the account's own name is to stand."""
    return {DESCRIPTOR: payment.request[DESCRIPTOR]} if DESCRIPTOR in payment.request else {}


def descriptor_of(payment: Payment) -> str:
    """What the answer says. A payment of before descriptors were kept has the channel's own."""
    found: str | None = payment.request.get(DESCRIPTOR) or payment.answer.get(DESCRIPTOR)
    return found or own_descriptor(payment.channel, payment.merchant)


def fetch_channels(payments: Iterable[Payment]) -> None:
    """Fetch the channels and merchants that ``descriptor_of`` will ask for, all at once."""
    lacking = [one for one in payments if DESCRIPTOR not in one.request and DESCRIPTOR not in one.answer]
    prefetch_related_objects(lacking, "channel__merchant", "merchant")

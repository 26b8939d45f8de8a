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

from gateway.models import MAX_DESCRIPTOR_CHARS, Channel, Merchant, Payment

DESCRIPTOR: Final = "descriptor"
REQUEST_DESCRIPTOR: Final = KeyTextTransform(DESCRIPTOR, "request")
"""For payments that are read without their request; they carry it as ``sent_descriptor``."""


def resolve_default_descriptor(channel: Channel, merchant: Merchant) -> str:
    """The descriptor of the channel's payments that are sent without one."""
    return channel.descriptor or merchant.name[:MAX_DESCRIPTOR_CHARS]


def apply_descriptor(
    echo: Mapping[str, Any], *, chosen: str | None, otherwise: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """``echo`` with the descriptor that goes onwards, and what the answer gains where none does. ``chosen``: what is
    taken where none was sent; ``otherwise``: what is answered where there is not even that."""
    if DESCRIPTOR in echo:
        return dict(echo), {}
    return ({**echo, DESCRIPTOR: chosen}, {}) if chosen else (dict(echo), {DESCRIPTOR: otherwise})


def apply_target_descriptor(echo: Mapping[str, Any], target: Payment) -> tuple[dict[str, Any], dict[str, Any]]:
    """:func:`apply_descriptor` for a follow-up of ``target``, which was read with REQUEST_DESCRIPTOR."""
    chosen = getattr(target, "sent_descriptor", None)
    otherwise = target.answer.get(DESCRIPTOR) or (
        "" if chosen else resolve_default_descriptor(target.channel, target.merchant)
    )
    return apply_descriptor(echo, chosen=chosen, otherwise=otherwise)


def build_descriptor_parameter(payment: Payment) -> dict[str, str]:
    """The descriptor as a parameter for the acquirer; nothing where the account's own name is to stand."""
    return {DESCRIPTOR: payment.request[DESCRIPTOR]} if DESCRIPTOR in payment.request else {}


def resolve_descriptor(payment: Payment) -> str:
    """What the answer says. A payment of before descriptors were kept has the channel's own."""
    found: str | None = payment.request.get(DESCRIPTOR) or payment.answer.get(DESCRIPTOR)
    return found or resolve_default_descriptor(payment.channel, payment.merchant)


def prefetch_channels(payments: Iterable[Payment]) -> None:
    """Fetch the channels and merchants that ``resolve_descriptor`` will ask for, all at once."""
    lacking = [one for one in payments if DESCRIPTOR not in one.request and DESCRIPTOR not in one.answer]
    prefetch_related_objects(lacking, "channel__merchant", "merchant")

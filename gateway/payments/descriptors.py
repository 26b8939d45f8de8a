"""Statement descriptors: what the shopper's bank statement says.

A payment has the descriptor that was sent, else the one of the payment it follows, else the channel's. A sent or
configured descriptor is stored in ``Payment.request`` and sent to the acquirer. The merchant's name, the last fallback,
is only displayed: it is stored in ``Payment.answer``, and the acquirer uses the name agreed for its account.
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
"""Annotation ``sent_descriptor`` for payments that are read without their ``request``."""


def resolve_default_descriptor(channel: Channel, merchant: Merchant) -> str:
    """The descriptor displayed for payments of the channel without one: the channel's own, else the merchant's name."""
    return channel.descriptor or merchant.name[:MAX_DESCRIPTOR_CHARS]


def apply_descriptor(
    echo: Mapping[str, Any], *, chosen: str | None, otherwise: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns (request, answer): ``echo`` with the descriptor for the acquirer, and the displayed one if there is none.
    ``chosen``: used when none was sent; ``otherwise``: displayed when there is not even that."""
    if DESCRIPTOR in echo:
        return dict(echo), {}
    return ({**echo, DESCRIPTOR: chosen}, {}) if chosen else (dict(echo), {DESCRIPTOR: otherwise})


def apply_target_descriptor(echo: Mapping[str, Any], target: Payment) -> tuple[dict[str, Any], dict[str, Any]]:
    """As :func:`apply_descriptor` for a follow-up of ``target``, which was read with REQUEST_DESCRIPTOR."""
    chosen = getattr(target, "sent_descriptor", None)
    otherwise = target.answer.get(DESCRIPTOR) or (
        "" if chosen else resolve_default_descriptor(target.channel, target.merchant)
    )
    return apply_descriptor(echo, chosen=chosen, otherwise=otherwise)


def build_descriptor_parameter(payment: Payment) -> dict[str, str]:
    """The descriptor as a parameter for the acquirer; empty if the acquirer uses its account's own name."""
    return {DESCRIPTOR: payment.request[DESCRIPTOR]} if DESCRIPTOR in payment.request else {}


def resolve_descriptor(payment: Payment) -> str:
    """The descriptor shown in answers. Payments older than stored descriptors show the channel's own."""
    found: str | None = payment.request.get(DESCRIPTOR) or payment.answer.get(DESCRIPTOR)
    return found or resolve_default_descriptor(payment.channel, payment.merchant)


def lacks_descriptor(payment: Payment) -> bool:
    """Whether :func:`resolve_descriptor` needs the payment's channel and merchant."""
    return DESCRIPTOR not in payment.request and DESCRIPTOR not in payment.answer


def prefetch_channels(payments: Iterable[Payment]) -> None:
    """Fetch the channels and merchants that :func:`resolve_descriptor` needs in one query each."""
    lacking = [row for row in payments if lacks_descriptor(row)]
    prefetch_related_objects(lacking, "channel__merchant", "merchant")

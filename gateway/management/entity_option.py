"""The option --entity of commands: an entityId of a merchant or a channel."""

from __future__ import annotations

from django.core.management.base import CommandError

from gateway.core import identifiers
from gateway.models import Channel, Merchant


def find_option_entity(text: str | None) -> tuple[Merchant, Channel | None]:
    """The merchant, and the channel if the entity is one. Raises CommandError."""
    ident = identifiers.parse_id(text or "")
    if ident is not None:
        if channel := Channel.objects.select_related("merchant").filter(pk=ident).first():
            return channel.merchant, channel
        if merchant := Merchant.objects.filter(pk=ident).first():
            return merchant, None
    raise CommandError("--entity must name a channel or a merchant: 32 lower-case hex digits.")

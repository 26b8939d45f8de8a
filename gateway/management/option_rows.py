"""Rows that the options of commands name by their ids."""

from __future__ import annotations

from typing import TypeVar

from django.core.management.base import CommandError
from django.db.models import Model, QuerySet

from gateway.core import identifiers
from gateway.models import Channel, Merchant

_Row = TypeVar("_Row", bound=Model)


def find_option_row(rows: QuerySet[_Row], text: str, fault: str) -> _Row:
    """The row among ``rows`` whose id is ``text``. Raises CommandError with ``fault``."""
    ident = identifiers.parse_id(text)
    row = rows.filter(pk=ident).first() if ident is not None else None
    if row is None:
        raise CommandError(fault)
    return row


def find_option_entity(text: str | None) -> tuple[Merchant, Channel | None]:
    """The merchant, and the channel if the entity of --entity is one. Raises CommandError."""
    ident = identifiers.parse_id(text or "")
    if ident is not None:
        if channel := Channel.objects.select_related("merchant").filter(pk=ident).first():
            return channel.merchant, channel
        if merchant := Merchant.objects.filter(pk=ident).first():
            return merchant, None
    raise CommandError("--entity must name a channel or a merchant: 32 lower-case hex digits.")


def find_option_channel(text: str | None) -> Channel:
    """The channel of --entity. Raises CommandError."""
    return find_option_row(Channel.objects.all(), text or "", "--entity must name a channel: 32 lower-case hex digits.")

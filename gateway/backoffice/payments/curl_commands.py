"""Curl commands shown on pages: reading and following up a payment, and repeating a logged request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from django.conf import settings
from django.utils.translation import gettext as _

from gateway.backoffice.payments.follow_up_offers import FollowUpOffer
from gateway.core.curl import ENTITY_VARIABLE, format_curl_command
from gateway.core.money import format_amount
from gateway.models import Payment, RequestLog

_HASHED_CHECKOUT_ID: Final = re.compile("#[0-9a-f]+")
"""A checkout's id in the request log: it is a key, so only its hash is stored."""


def build_payment_curls(payment: Payment, offers: Sequence[FollowUpOffer]) -> list[tuple[str, str]]:
    """(title, command) of reading this payment and of each follow-up that is possible; the token stays a variable."""
    path, entity = f"/v1/payments/{payment.id.hex}", payment.channel.entity_id
    commands = [(_("Read it"), _format_command("GET", path, {}, entity))]
    for offer in offers:
        amount = format_amount(offer.most if offer.most is not None else payment.amount)
        fields = {"paymentType": offer.code, "amount": amount, "currency": payment.currency}
        commands.append((offer.title, _format_command("POST", f"/v1/payments/{offer.target.id.hex}", fields, entity)))
    return commands


def build_request_curl(row: RequestLog, sent: Sequence[tuple[str, str]]) -> str:
    """A logged request as a command. Masked values become shell variables for the reader to fill in."""
    fields = {
        name: (_name_variable(name) if "*" in value or "•" in value else value)
        for name, value in sent
        if name not in ("entityId", "authentication.entityId")
    }
    path = _HASHED_CHECKOUT_ID.sub("$CHECKOUT_ID", row.path)
    return _format_command(row.method, path, fields, row.entity_id.hex if row.entity_id else ENTITY_VARIABLE)


def _name_variable(parameter: str) -> str:
    """The shell variable for a masked value; a parameter's name is the sender's, and may hold anything."""
    return f"${re.sub('[^A-Z0-9]+', '_', parameter.upper()).strip('_') or 'VALUE'}"


def _format_command(method: str, path: str, fields: Mapping[str, str], entity: str) -> str:
    command = format_curl_command(method, f"{settings.GATEWAY_BASE_URL}{path}", fields)
    return command.replace(ENTITY_VARIABLE, entity)

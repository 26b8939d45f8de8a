# ruff: noqa: E402 - Django is set up before what needs it is imported
"""The product's WSGI application with one connector more: it breaks in the middle of a payment, card in hand."""

from __future__ import annotations

import os
from types import MappingProxyType

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from gateway.connectors import routing
from gateway.connectors.port import AcquirerReply, AcquirerRequest, OutcomeUnknownError
from gateway.connectors.simulator.connector import SimulatorConnector
from gateway.payments import follow_ups, recovery
from tests.canary.cards import BREAKS_AT, SILENT_AT


class Breaking(SimulatorConnector):
    """Breaks where it has the card in clear, with the card in its message, as careless code would."""

    name = "breaking"

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        card = request.card
        if card is not None and request.money.text() in (BREAKS_AT, SILENT_AT):
            number, cvv = card.number.reveal(), card.cvv.reveal() if card.cvv else ""
            message = {"card.number": number, "card.cvv": cvv}
            if request.money.text() == SILENT_AT:
                raise OutcomeUnknownError(f"no answer to {message}", {"operation": request.operation})
            raise RuntimeError(f"cannot send {message} nor card={number}&cvv={cvv}", request, card)
        return super().submit(request)


connectors = MappingProxyType({**routing.CONNECTORS, Breaking.name: Breaking()})
for module in (routing, follow_ups, recovery):
    module.CONNECTORS = connectors  # type: ignore[misc]

from config.wsgi import application

__all__ = ["application"]

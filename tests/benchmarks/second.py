# ruff: noqa: E402 - Django is set up before what needs it is imported
"""The product's WSGI application with one connector more: a second stub acquirer, at SECOND_ACQUIRER."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from types import MappingProxyType

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.conf import settings

from gateway.connectors import routing
from gateway.connectors.circuit import guard_connector
from gateway.connectors.port import AcquirerReply, AcquirerRequest, OutcomeUnknownError
from gateway.connectors.stub.connections import StubConnectionPool, StubUnansweredError
from gateway.connectors.stub.connector import StubConnector, build_submission, mask_submission, reply_from_stub_answer


class Second(StubConnector):
    name = "second"

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        sent = mask_submission(request)
        try:
            return reply_from_stub_answer(request, lines().ask(build_submission(request, sent)), sent)
        except StubUnansweredError as fault:
            raise OutcomeUnknownError(str(fault), sent) from None


@lru_cache(maxsize=1)
def lines() -> StubConnectionPool:
    """Opened after the fork: gunicorn loads the application in each worker."""
    return StubConnectionPool(
        os.environ["SECOND_ACQUIRER"],
        most=settings.GATEWAY_ACQUIRER_MAX_IN_FLIGHT,
        timeout_s=settings.GATEWAY_ACQUIRER_TIMEOUT_S,
    )


connectors = MappingProxyType({**routing.CONNECTORS, Second.name: guard_connector(Second())})
from config.wsgi import application

own = routing.CONNECTORS
for module in list(sys.modules.values()):
    if getattr(module, "CONNECTORS", None) is own:
        setattr(module, "CONNECTORS", connectors)  # noqa: B010 - a name that is Final for everybody else

__all__ = ["application"]

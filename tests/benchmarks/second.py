# ruff: noqa: E402 - Django is set up before what needs it is imported
"""The product's WSGI application with one connector more: a second stub acquirer, at SECOND_ACQUIRER."""

from __future__ import annotations

import os
from functools import lru_cache
from types import MappingProxyType

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

import django

django.setup()

from django.conf import settings

from gateway.connectors import routing
from gateway.connectors.guarded import guarded
from gateway.connectors.port import AcquirerReply, AcquirerRequest, Silence
from gateway.connectors.stub.connector import Stub, masked_submission, reply_to, submission
from gateway.connectors.stub.line import Lines, Unanswered
from gateway.payments import follow_up, recovery, resume


class Second(Stub):
    name = "second"

    def submit(self, request: AcquirerRequest) -> AcquirerReply:
        sent = masked_submission(request)
        try:
            return reply_to(request, lines().ask(submission(request, sent)), sent)
        except Unanswered as fault:
            raise Silence(str(fault), sent) from None


@lru_cache(maxsize=1)
def lines() -> Lines:
    """Opened after the fork: gunicorn loads the application in each worker."""
    return Lines(
        os.environ["SECOND_ACQUIRER"], most=settings.GATEWAY_ACQUIRER_MAX_IN_FLIGHT,
        timeout_s=settings.GATEWAY_ACQUIRER_TIMEOUT_S,
    )  # fmt: skip


connectors = MappingProxyType({**routing.CONNECTORS, Second.name: guarded(Second())})
for module in (routing, follow_up, recovery, resume):
    module.CONNECTORS = connectors  # type: ignore[misc]

from config.wsgi import application

__all__ = ["application"]

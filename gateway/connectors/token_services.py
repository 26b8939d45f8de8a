"""The configured token service: GATEWAY_TOKEN_SERVICE, or the simulated one in the test environment."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import cast

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from gateway.connectors.simulator.token_service import SIMULATED_TOKEN_SERVICE
from gateway.connectors.token_service import TokenService


def load_token_service() -> TokenService | None:
    """The token service; None where there is none, which is in live without GATEWAY_TOKEN_SERVICE. Raises
    ImproperlyConfigured."""
    if settings.GATEWAY_TOKEN_SERVICE:
        return _import_service(settings.GATEWAY_TOKEN_SERVICE)
    return None if settings.IS_LIVE else SIMULATED_TOKEN_SERVICE


@lru_cache(maxsize=4)
def _import_service(name: str) -> TokenService:
    module, _, member = name.partition(":")
    try:
        return cast(TokenService, getattr(import_module(module), member))
    except (ImportError, AttributeError, ValueError) as fault:
        why = f"GATEWAY_TOKEN_SERVICE names {name}, which is not there: {type(fault).__name__}."
        raise ImproperlyConfigured(why) from None

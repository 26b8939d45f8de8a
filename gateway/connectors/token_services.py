"""The configured token service: GATEWAY_TOKEN_SERVICE, or the simulated one in the test environment."""

from __future__ import annotations

from typing import cast

from django.conf import settings

from gateway.connectors.simulator.token_service import SIMULATED_TOKEN_SERVICE
from gateway.connectors.token_service import TokenService
from gateway.core.addons import import_addon


def load_token_service() -> TokenService | None:
    """The token service; None where there is none, which is in live without GATEWAY_TOKEN_SERVICE. Raises
    ImproperlyConfigured."""
    if name := settings.GATEWAY_TOKEN_SERVICE:
        return cast(TokenService, import_addon("GATEWAY_TOKEN_SERVICE", name))
    return None if settings.IS_LIVE else SIMULATED_TOKEN_SERVICE

"""The configured account updater: GATEWAY_ACCOUNT_UPDATER, or the simulated one in the test environment."""

from __future__ import annotations

from typing import cast

from django.conf import settings

from gateway.connectors.account_updater import AccountUpdater
from gateway.connectors.simulator.account_updater import SIMULATED_ACCOUNT_UPDATER
from gateway.core.addons import import_addon


def load_account_updater() -> AccountUpdater | None:
    """The account updater; None where there is none, which is in live without GATEWAY_ACCOUNT_UPDATER. Raises
    ImproperlyConfigured."""
    if name := settings.GATEWAY_ACCOUNT_UPDATER:
        return cast(AccountUpdater, import_addon("GATEWAY_ACCOUNT_UPDATER", name))
    return None if settings.IS_LIVE else SIMULATED_ACCOUNT_UPDATER

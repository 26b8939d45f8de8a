"""The configured account updater: GATEWAY_ACCOUNT_UPDATER, or the simulated one in the test environment."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import cast

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from gateway.connectors.account_updater import AccountUpdater
from gateway.connectors.simulator.account_updater import SIMULATED_ACCOUNT_UPDATER


def load_account_updater() -> AccountUpdater | None:
    """The account updater; None where there is none, which is in live without GATEWAY_ACCOUNT_UPDATER. Raises
    ImproperlyConfigured."""
    if settings.GATEWAY_ACCOUNT_UPDATER:
        return _import_updater(settings.GATEWAY_ACCOUNT_UPDATER)
    return None if settings.IS_LIVE else SIMULATED_ACCOUNT_UPDATER


@lru_cache(maxsize=4)
def _import_updater(name: str) -> AccountUpdater:
    module, _, member = name.partition(":")
    try:
        return cast(AccountUpdater, getattr(import_module(module), member))
    except (ImportError, AttributeError, ValueError) as fault:
        why = f"GATEWAY_ACCOUNT_UPDATER names {name}, which is not there: {type(fault).__name__}."
        raise ImproperlyConfigured(why) from None

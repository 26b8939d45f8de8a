"""Objects of add-ons that a setting names as ``module:name``: a token service, an account updater, a KMS."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from django.core.exceptions import ImproperlyConfigured


@lru_cache(maxsize=16)
def import_addon(setting: str, name: str) -> Any:
    """What ``name``, the setting's value, names. Raises ImproperlyConfigured, which names the setting and repeats
    nothing of the import's own message."""
    module, _, member = name.partition(":")
    try:
        return getattr(import_module(module), member)
    except (ImportError, AttributeError, ValueError) as fault:
        raise ImproperlyConfigured(f"{setting} names {name}, which is not there: {type(fault).__name__}.") from None

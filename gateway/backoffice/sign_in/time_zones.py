"""The time zone in which a user reads the back office (docs/decisions/0077), and whether single letters are keys."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.core.exceptions import ObjectDoesNotExist
from django.utils import timezone

from gateway.core.time_zones import list_time_zones
from gateway.models import UserPreference

ZONES: Final = tuple(name for name in list_time_zones() if "/" in name and not name.startswith(("Etc", "SystemV")))
"""Zones that the account's page offers."""


def read_zone(user: Any) -> str:
    """The name of the user's zone, '' for UTC."""
    try:
        return str(user.preference.time_zone)
    except ObjectDoesNotExist:
        return ""


def store_zone(user: Any, name: str) -> bool:
    """Store the user's zone; '' for UTC. False for a name that is no zone: then nothing is stored."""
    if name and name != "UTC" and name not in ZONES:
        return False
    kept = "" if name == "UTC" else name
    UserPreference.objects.update_or_create(user=user, defaults={"time_zone": kept})
    return True


def has_page_keys(user: Any) -> bool:
    """Whether single characters are keys of a page. Speech input needs them off (WCAG 2.1.4)."""
    try:
        return bool(user.preference.page_keys)
    except ObjectDoesNotExist:
        return True


def store_page_keys(user: Any, on: bool) -> None:
    """Store whether single characters are keyboard shortcuts."""
    UserPreference.objects.update_or_create(user=user, defaults={"page_keys": on})


def use_zone(name: str) -> AbstractContextManager[None]:
    """Context in which times are shown and read in this zone; '' for UTC."""
    return timezone.override(ZoneInfo(name) if name else None)

"""Names of browsers and systems, from user agents."""

from __future__ import annotations

from typing import Final

from django.utils.text import Truncator

_BROWSERS: Final = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("Firefox/", "Firefox"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
)
_SYSTEMS: Final = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Linux", "Linux"),
)
"""Part of a user agent → the system's name; the first that matches counts."""


def describe_browser(agent: str) -> str:
    """Browser and system of a user agent in a few words; the sign-in record's page shows it whole."""
    words = [next((name for mark, name in marks if mark in agent), "") for marks in (_BROWSERS, _SYSTEMS)]
    return ", ".join(word for word in words if word) or Truncator(agent).chars(40) or "–"

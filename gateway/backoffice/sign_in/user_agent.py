"""What people call the browser behind a session."""

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
"""A mark in what a browser calls itself, and what people call it; the first that is there."""


def describe_browser(agent: str) -> str:
    """A few words of what a browser calls itself; the sign-in's own page has all of it."""
    words = [next((name for mark, name in marks if mark in agent), "") for marks in (_BROWSERS, _SYSTEMS)]
    return ", ".join(word for word in words if word) or Truncator(agent).chars(40) or "–"

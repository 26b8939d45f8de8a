"""A place for what a package needs of one above it, which it does not import.

The package above registers it when Django loads its app.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from django.core.exceptions import ImproperlyConfigured

What = TypeVar("What")


class Hook(Generic[What]):
    """A function, or an object with several, of the Django app ``app``."""

    def __init__(self, app: str) -> None:
        self._app = app
        self._registered: What | None = None

    def register(self, what: What) -> None:
        """Register ``what``, in place of what was registered before."""
        self._registered = what

    def get(self) -> What:
        """What is registered. Raises ImproperlyConfigured without any: nothing must be lost in silence."""
        if self._registered is None:
            raise ImproperlyConfigured(f"{self._app} is not among INSTALLED_APPS")
        return self._registered

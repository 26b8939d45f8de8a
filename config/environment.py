"""Settings from the environment, read strictly: what is no number and no true or false is refused with its name.

django-environ takes any word that it does not know for false, reads "10 min" as 10, and a text that begins with ``$``
as the name of another variable: a switch that guards was off, and part of a secret stood in an error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import environ
from django.core.exceptions import ImproperlyConfigured

_TRUE: Final = frozenset({"true", "on", "yes", "y", "ok", "1"})
_FALSE: Final = frozenset({"false", "off", "no", "n", "0"})
_MAX_SHOWN_CHARS: Final = 40


def _parse_bool(text: str) -> bool:
    word = text.lower()
    if word not in _TRUE | _FALSE:
        raise ValueError
    return word in _TRUE


def _parse_int(text: str) -> int:
    number = int(text)
    if number < 0:
        raise ValueError
    return number


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number) or number < 0:
        raise ValueError
    return number


_PARSERS: Final[dict[Any, tuple[Callable[[str], Any], str]]] = {
    bool: (_parse_bool, "true or false"),
    int: (_parse_int, "a whole number of 0 or more"),
    float: (_parse_float, "a number of 0 or more, such as 2.5"),
}
"""By the type of a setting: how it is read, and what it must be."""


class Environment(environ.Env):  # type: ignore[misc]  # it has no types
    """The variables of this process. A number or a truth value that is set and empty counts as not set."""

    def get_value(
        self, var: str, cast: Any = None, default: Any = environ.Env.NOTSET, parse_default: bool = False
    ) -> Any:
        """The value of ``var`` as ``cast`` has it, else ``default``. Raises ImproperlyConfigured with its name."""
        text = self.ENVIRON.get(var)
        known = _PARSERS.get(cast) if isinstance(cast, type) else None
        parse, words = known or (None, "of its form, see docs/settings.md")
        if text is None or (parse is not None and not text.strip()):
            if default is self.NOTSET:
                raise ImproperlyConfigured(f"Set the {var} environment variable")
            return default
        if default is None and text == "":
            return None
        try:
            return parse(text.strip()) if parse is not None else self.parse_value(text, cast)
        except (ValueError, TypeError):
            shown = f"{var} is {text[:_MAX_SHOWN_CHARS]!r}" if parse is not None else var
            raise ImproperlyConfigured(f"{shown}: it must be {words}.") from None

    def email(self, var: str, default: str) -> dict[str, Any]:
        """Django's settings of mail, of an address. Raises ImproperlyConfigured with its name, not with the address."""
        try:
            return dict(self.email_url(var, default=default))
        except ImproperlyConfigured:
            form = "smtp://user:password@host:587"
            raise ImproperlyConfigured(f"{var} is no address of a mail server, such as {form}.") from None
